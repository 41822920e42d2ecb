"""Rows of v whose velocity a scene prescribes: driven bodies, fixed nodes, and nodes that a motion holds."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple

import numpy as np

from contact.metrics import any_of, is_finite
from femsim.base.errors import InputError
from femsim.base.rotations import (
    angular_velocity,
    cayley_from_quaternion,
    quaternion_conjugate,
    quaternion_multiply,
    vector_from_quaternion,
)
from femsim.model.bodies.body import StepSettings
from femsim.model.commands import rate_of
from femsim.model.drives import driven_pose
from femsim.model.holds import Hold
from femsim.scene.scene import Scene
from femsim.step.residual_kernels import largest
from femsim.step.state import State
from femsim.step.system import System

#: Part of its place, and angle, rad, by which what a motion leads may be off where it stands.
_ROUNDING = 4.0 * np.finfo(np.float64).eps


def prescribed_rows(scene: Scene, system: System) -> np.ndarray:
    """Which rows they are, (n,) bool."""
    prescribed = np.zeros(system.n, dtype=np.bool_)
    for _, rows in _leaders(scene, system):
        prescribed[rows] = True
    return prescribed


def leaders_of(scene: Scene, system: System, joints: Collection[str]) -> tuple[str, ...]:
    """Say what prescribes the velocity of what some of these joints hold, by their names."""
    held = np.zeros(system.n, dtype=np.bool_)
    for coupling in (one for one in system.couplings if one.name in joints):
        for index, rows in coupling.rows:
            held[system.v_slices[index].start + rows] = True
    return tuple(words for words, rows in _leaders(scene, system) if held[rows].any())


def _leaders(scene: Scene, system: System) -> Iterator[tuple[str, np.ndarray]]:
    """Each of what prescribes velocities, in words, and the rows of v that it prescribes."""
    for index in scene.motions:
        body = system.bodies[index]  # that of an arm may be a base that stands
        yield f"the {'base' if body.n_v > 6 else 'motion'} of {body.name}", system.v_slices[index].start + np.arange(6)
    for body, v in zip(system.bodies, system.v_slices, strict=True):
        if len(driven := body.driven_rows()):
            yield f"the motions of joints of {body.name}", v.start + driven
    for index, nodes in scene.fixed_nodes.items():
        rows = system.v_slices[index].start + 3 * nodes[:, None] + np.arange(3)
        yield f"the fixed nodes of {system.bodies[index].name}", rows.ravel()
    for hold in exact_holds(scene):
        yield f"the hold {hold.name}", system.v_slices[hold.body].start + hold.rows


def exact_holds(scene: Scene) -> list[Hold]:
    """Choose the holds that prescribe velocities."""
    return [hold for hold in scene.holds if not hold.gives_way]


class Prescribed(NamedTuple):
    """Velocities of the prescribed rows of v, zero in others, m/s and rad/s.

    Attributes
    ----------
    v : ndarray, (n,)
        In the step: they lead what they move from its start to its end.
    end : ndarray, (n,)
        With which it ends; the same array where that makes no difference.
    """

    v: np.ndarray
    end: np.ndarray


def prescribed(scene: Scene, system: System, state: State, settings: StepSettings, still: float) -> Prescribed:
    """Velocities of these rows in a step and at its end; velocities that differ by less than ``still``, m/s, are the same."""
    if not system.prescribes:
        return Prescribed(system.at_rest, system.at_rest)
    v = prescribed_velocity(scene, system, state, settings)
    if not is_finite(v):
        raise InputError(
            f"{_lost(scene, system, v)} at {state.t + settings.dt:g} s; correct the function of time that it follows."
        )
    return Prescribed(v, prescribed_end(scene, system, state, settings, v, still))


def _lost(scene: Scene, system: System, v: np.ndarray) -> str:
    """Say which motion gives a velocity of prescribed rows, (n,), that is not finite."""
    for index in scene.motions:
        row = system.v_slices[index].start
        if not np.isfinite(v[row : row + 6]).all():
            return f"the motion of {scene.bodies[index].name} is not finite"
    for hold in exact_holds(scene):
        if not np.isfinite(v[system.v_slices[hold.body].start + hold.rows]).all():
            return f"the motion of the hold {hold.name!r} is not finite"
    for body, rows in zip(system.bodies, system.v_slices, strict=True):
        if not np.isfinite(v[rows]).all():
            return f"the motion of a joint of {body.name} is not finite"
    return "a motion is not finite"


def prescribed_velocity(scene: Scene, system: System, state: State, settings: StepSettings) -> np.ndarray:
    """Velocities of these rows that end a step exactly on their motion, (n,); zero elsewhere."""
    if not system.prescribes:
        return system.at_rest
    v, dt = np.zeros(system.n), settings.dt
    turn_between = cayley_from_quaternion if settings.conserving else vector_from_quaternion
    for index, motion in scene.motions.items():
        q = state.q[system.q_slices[index]]
        position, quaternion = driven_pose(scene.bodies[index].initial_q(), motion, state.t + dt)
        row = system.v_slices[index].start
        way, turn = position - q[:3], quaternion_multiply(quaternion, quaternion_conjugate(q[3:7]))
        # what stands has no speed, also none of rounding: robots keep their energy on a base at rest
        if not largest(way) <= _ROUNDING * largest(position):
            v[row : row + 3] = way / dt
        if not largest(turn[1:]) <= _ROUNDING:
            v[row + 3 : row + 6] = turn_between(turn) / dt
    for body, rows, places in zip(system.bodies, system.v_slices, system.q_slices, strict=True):
        driven = body.driven_rows()
        if len(driven):
            v[rows.start + driven] = body.driven_velocity(state.q[places], state.t, dt)
    for hold in exact_holds(scene):
        motion = hold.motion or scene.motions[hold.leader]
        start, target = held_points(system, hold, state), hold.positions(motion, state.t + dt)
        v[system.v_slices[hold.body].start + hold.rows] = ((target - start) / dt).ravel()
    return v


def held_points(system: System, hold: Hold, state: State) -> np.ndarray:
    """Positions (k, 3), m, of held nodes in a state."""
    return np.asarray(state.q[system.q_slices[hold.body]].reshape(-1, 3)[hold.nodes])


def prescribed_end(scene: Scene, system: System, state: State, settings: StepSettings, v: np.ndarray, still: float) -> np.ndarray:
    """Velocities that these rows end a step with, (n,): those of their motions at its end, where theta < 1.

    Bodies that are carried end a step with v0 + (v_hat - v0)/theta. What carries them must end it alike, and not with its mean
    velocity in the step: contact and friction would take the difference from them at the end of each step, and give it back in
    the next. What starts and stops within a step ends it with its mean velocity all the same, and stops in the next: what it
    strikes would be moved without an impulse.

    Parameters
    ----------
    scene, system, state, settings
        As for :func:`prescribed_velocity`.
    v : ndarray, (n,)
        What that gave; the same array is returned where no row ends differently.
    still : float, m/s or rad/s
        By how much velocities may differ that count as the same.
    """
    if not system.prescribes or settings.theta == 1.0:
        return v
    end, t, dt = v.copy(), state.t + settings.dt, settings.dt
    for index, motion in scene.motions.items():
        row = system.v_slices[index].start
        moved, turned = rate_of(motion, t, dt)
        end[row : row + 3] = moved
        if any_of(turned):
            turned = angular_velocity(np.asarray(motion(t)[1], dtype=np.float64), turned)
        end[row + 3 : row + 6] = turned
    for body, rows in zip(system.bodies, system.v_slices, strict=True):
        driven = body.driven_rows()
        if len(driven):
            end[rows.start + driven] = body.driven_rate(t, dt)
    for hold in exact_holds(scene):
        motion = hold.motion or scene.motions[hold.leader]
        end[system.v_slices[hold.body].start + hold.rows] = hold.velocities(motion, t, dt).ravel()
    struck = (np.abs(end) <= still) & (np.abs(state.v) <= still) & (np.abs(v) > still)
    end[struck] = v[struck]
    return end if largest(end - v) > still else v

"""Driven joints of robots and sums of them: the work behind ``Scene.drive_joint``, which says what each parameter is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from femsim.base.errors import InputError, did_you_mean
from femsim.model.bodies.tree import TreeBody
from femsim.model.bodies.tree_joints import TreeJoint
from femsim.model.bodies.tree_kernels import FIXED
from femsim.model.commands import Command
from femsim.model.drives import Profile
from femsim.model.joint_springs import JointSpring
from femsim.scene.checks import Handle, function_of_time, positive
from femsim.scene.contents import SceneContents
from femsim.scene.plausible import notes_on_joint_jump, notes_on_joint_speed, notes_on_joint_start, notes_on_joint_velocity
from femsim.scene.robots import robot_of

#: How far from its start a joint that follows a motion exactly may be at time zero, rad or m.
_JUMP = 1e-6
#: Time after which a motion shows how fast it begins, s.
_SOON = 1e-6


def drive_joint(
    scene: SceneContents,
    what: Handle | str,
    joint: str,
    motion: Callable[[float], float] | None,
    velocity: Callable[[float], float] | None,
    effort: Callable[[float], float] | None,
    stiffness: float | None,
    damping: float | None,
    max_effort: float | None,
) -> None:
    """Drive a joint of a robot, see :meth:`femsim.scene.scene.Scene.drive_joint`."""
    body = robot_of(scene, "drive_joint", what)
    names, sums = body.joint_names(), _sums(scene, body)
    asks = (motion, velocity, effort, stiffness, damping, max_effort)
    if joint not in names and joint in sums:
        asked = _Asked(body, TreeJoint(joint, -1, -1, -1), sums[joint].kind == "torsion", sums[joint].inertia, *asks)
    elif joint not in names:
        raise InputError(f"drive_joint of {body.name}: joint {joint!r} {_undriven(body, joint, [*names, *sums])}")
    else:
        own = body.joint(joint)
        asked = _Asked(body, own, body.turns(joint), body.mass_matrix(body.initial_q())[own.row, own.row], *asks)
    if {asked.label, f"{asked.label}.velocity", f"{asked.label}.effort"} & set(scene.commands):
        raise InputError(f"{asked.call}: it is driven already; drive it once, a stepped simulation changes its target by set.")
    _check_together(asked)
    servo = _servo(asked)
    if joint not in names:
        if asked.exact:
            raise InputError(f"{asked.call}: this is a sum of joints, which a servo moves; give a stiffness with the motion.")
        sums[joint].drive({**_commands(scene, asked), **servo})
        return
    if asked.exact:
        _check_start(asked)
    scene.notes += _notes(asked, scene.dt)
    body.drive_joint(joint, {**_commands(scene, asked), **servo, "exact": asked.exact})


@dataclass(frozen=True)
class _Asked:
    """What a call asks of a joint, as it was given."""

    body: TreeBody
    joint: TreeJoint
    turns: bool
    inertia: float
    motion: Callable[[float], float] | None
    velocity: Callable[[float], float] | None
    effort: Callable[[float], float] | None
    stiffness: float | None
    damping: float | None
    max_effort: float | None

    @property
    def label(self) -> str:
        return f"{self.body.name}.{self.joint.name}"

    @property
    def call(self) -> str:
        """How messages begin."""
        return f"drive_joint of {self.label}"

    @property
    def unit(self) -> str:
        return "rad" if self.turns else "m"

    @property
    def force(self) -> str:
        """Unit of what moves it."""
        return "N m" if self.turns else "N"

    @property
    def exact(self) -> bool:
        """Whether it follows a motion, whatever that takes."""
        return self.motion is not None and self.stiffness is None


def _sums(scene: SceneContents, body: TreeBody) -> dict[str, JointSpring]:
    """Springs on sums of joints of a robot, by their names."""
    springs = [one for one in scene.couplings if isinstance(one, JointSpring)]
    return {one.own_name: one for one in springs if one.name == f"{body.name}.{one.own_name}"}


def _undriven(body: TreeBody, joint: str, names: Sequence[str]) -> str:
    """Why a joint is none that is driven; the end of a sentence."""
    link = body.joint_link(joint)
    if link < 0:
        return f"is unknown{did_you_mean(joint, names)}"
    kind, row = int(body.tree.kind[link]), int(body.tree.row[link])
    leaders = [one.name for one in body.joints if one.row == row and one.name in names]
    if kind != FIXED and leaders:
        return f"mimics {leaders[0]!r}; drive that one, it follows."
    return f"is {'fixed' if kind == FIXED else 'spherical'}; motors are for joints of one coordinate: {', '.join(names)}."


def _check_together(asked: _Asked) -> None:
    """Refuse what is no function of time, and what cannot be asked for together."""
    functions = {"motion": asked.motion, "velocity": asked.velocity, "effort": asked.effort}
    for name, function in functions.items():
        function_of_time(asked.call, name, function, "use fs.Profile.")
    given = {name for name, function in functions.items() if function is not None}
    if not given or {"motion", "velocity"} <= given:
        raise InputError(
            f"{asked.call}: give a motion or a velocity, an effort, or one of the former with an effort added to it."
        )
    if asked.motion is None and asked.stiffness is not None:
        raise InputError(f"{asked.call}: a stiffness belongs to a motion; leave it out, or give the motion that it pulls to.")
    if asked.exact and not (asked.effort is None and asked.damping is None and asked.max_effort is None):
        raise InputError(
            f"{asked.call}: without a stiffness the motion is followed exactly, whatever that takes; give stiffness too, or "
            "leave out damping, effort and max_effort."
        )


def _servo(asked: _Asked) -> dict[str, float]:
    """Stiffness, damping and largest effort of a servo; critical damping where a motion has none of its own."""
    call, own, unit, force, damping = asked.call, asked.joint, asked.unit, asked.force, asked.damping
    stiffness = 0.0 if asked.stiffness is None else positive(f"stiffness of {asked.label}", asked.stiffness, f"{force}/{unit}")
    if asked.velocity is not None and damping is None:
        raise InputError(f"{call}: a servo follows a velocity by damping times the speed error; give damping, {force} s/{unit}.")
    if damping is None:
        damping = 0.0 if asked.motion is None else 2.0 * float(np.sqrt(stiffness * asked.inertia))
    if not (np.isfinite(damping) and damping >= 0.0):
        raise InputError(f"{call}: damping is {damping!r} {force} s/{unit}; allowed are numbers from 0.")
    most = own.max_effort if asked.max_effort is None else asked.max_effort
    if not most > 0.0:
        raise InputError(f"{call}: max_effort is {most!r} {force}; allowed are positive numbers.")
    return {"stiffness": stiffness, "damping": damping, "max_effort": most}


def _check_start(asked: _Asked) -> None:
    """Refuse a motion that is followed exactly, but begins where the joint is not."""
    assert asked.motion is not None
    call, unit, first = asked.call, asked.unit, asked.motion(0.0)
    start = float(asked.body.initial_q()[asked.joint.coordinate])
    try:
        begin = float(np.asarray(first).item())
    except (TypeError, ValueError):
        said = f"{call}: motion gives {first!r} at 0 s; it must give one number, the place in {unit}; use fs.Profile."
        raise InputError(said) from None
    if not abs(begin - start) <= _JUMP:
        raise InputError(
            f"{call}: the motion begins at {begin:g} {unit} and the joint at {start:g}; let it start there by joints="
            f"{{{asked.joint.name!r}: {begin:g}}} of add_robot, or give a stiffness, which pulls it there."
        )


def _notes(asked: _Asked, dt: float) -> list[str]:
    """Say what there is to say of motions that begin with a jump, jump within a step dt, s, or are too fast."""
    out: list[str] = []
    own, motion = asked.joint, asked.motion
    mimics = asked.body.with_mimics(own.name)
    if asked.exact and motion is not None and (speed := float(asked.body.initial_v()[own.row])):
        out += notes_on_joint_start(asked.label, asked.unit, speed, (float(motion(_SOON)) - float(motion(0.0))) / _SOON)
    if asked.exact and isinstance(motion, Profile):
        too_fast = notes_on_joint_speed(asked.label, asked.unit, *motion.fastest, own.max_speed, mimics)
        out += too_fast or notes_on_joint_jump(asked.label, asked.unit, motion.times, motion.values, dt)
    if isinstance(asked.velocity, Profile):
        fastest = max(asked.velocity.extremes(), key=abs)
        out += notes_on_joint_velocity(asked.label, asked.unit, fastest, own.max_speed, mimics)
    return out


def _commands(scene: SceneContents, asked: _Asked) -> dict[str, Command]:
    """Make what is asked for commands of the scene, the first of which has the name of the joint; their functions by kind."""
    label, unit = asked.label, asked.unit
    within = (float(asked.joint.limits[0]), float(asked.joint.limits[1]))
    out = {}
    if asked.motion is not None:
        out["position"] = scene.command(label, asked.motion, "position of the joint", unit, within, led=asked.exact)
    if asked.velocity is not None:
        out["velocity"] = scene.command(f"{label}.velocity" if out else label, asked.velocity, "speed of the joint", f"{unit}/s")
    if asked.effort is not None:
        out["effort"] = scene.command(f"{label}.effort" if out else label, asked.effort, "effort of the joint", asked.force)
    return out

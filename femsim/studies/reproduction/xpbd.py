"""A position-based rod (XPBD with substeps), the baseline of papers/001 Table VIII; to compare with, not for use."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np

from contact import make_solver
from femsim.base.errors import InputError
from femsim.base.rotations import quaternion_conjugate, quaternion_multiply, vector_from_quaternion
from femsim.model.bodies import kinds
from femsim.model.bodies.rod import Rod
from femsim.run.result import SensorSeries
from femsim.scene.scene import Scene
from femsim.step.state import State
from femsim.step.stepper import Stepper
from femsim.studies.reproduction import xpbd_kernels as kernels


@dataclass(frozen=True)
class XpbdRun:
    """What :func:`simulate_xpbd` gives.

    Attributes
    ----------
    status : {"finished", "failed"}
        "failed" when a number was not finite; the series then end with the last step that was.
    message : str
        One sentence.
    time : ndarray, (n_steps,), s
        End of each step.
    sensors : dict of str to SensorSeries
        Sensors "start", "end" and "contact" of the scene; means over the substeps of each step.
    centres : ndarray, (n_steps, n, 3), m
        Centres of the links.
    centre_line : ndarray, (n + 1, 3), m
        Ends of the links after the last step.
    penetration : ndarray, (n_steps,), m
        Largest penetration at the end of each step.
    seconds : ndarray, (n_steps,), s
        CPU time of each step.
    """

    status: str
    message: str
    time: np.ndarray
    sensors: dict[str, SensorSeries]
    centres: np.ndarray
    centre_line: np.ndarray
    penetration: np.ndarray
    seconds: np.ndarray


def simulate_xpbd(scene: Scene, *, substeps: int = 100, iterations: int = 1, duration: float | None = None) -> XpbdRun:
    """Simulate a rod against obstacles by extended position-based dynamics.

    A baseline, not for use: what it answers depends on the number of substeps, and it does not say how far off it is. It stands
    here because papers/001 (section V-E2, Table VIII) compares with it. ``simulate`` solves the same scene
    exactly, in less time.

    Substeps of h = dt / substeps in the manner of Macklin et al., "Small steps in physics simulation" (2019) and "XPBD"
    (2016): predict, project, take velocities from positions. The rod is that of :class:`~femsim.model.bodies.rod.Rod`: the same
    strain, stiffness, masses, drag, loads and held ends. Each joint is one block of six (three at a ball joint), projected
    by (h^2 J M^-1 J^T + K^-1) d = -(e + K^-1 lam); the joints are swept from end to end, forth and back in turn. Contacts follow
    each sweep: found once a step as planes, then the penetration and the way along the plane in this substep are taken back by
    a force that is clipped to Coulomb's cone. The force on a held end is J^T lam of its joint, the mean over the substeps.

    Departures: the gyroscopic torque of the links is left out; the frames of ends move with constant velocity within a step;
    penetration is taken back at once, without the limits of the scene (``correction``, ``max_correction``); damping
    by stiffness (``rayleigh_beta``) is refused.

    Parameters
    ----------
    scene : Scene
        One rod, with contact at the centres of its links, and obstacles.
    substeps : int
        Substeps a time step.
    iterations : int
        Sweeps a substep; one is the published choice.
    duration : float, s, optional
        Simulated time; default of the scene.

    Returns
    -------
    XpbdRun
        Series over the steps.

    Raises
    ------
    InputError
        A scene with anything else that moves, contact on the surface, anisotropic friction, ``rayleigh_beta``, or a number out
        of range.
    """
    for name, value in (("substeps", substeps), ("iterations", iterations)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise InputError(f"{name} is {value!r}; allowed are whole numbers from 1.")
    duration = scene.duration if duration is None else duration
    if not (math.isfinite(duration) and duration >= 0.5 * scene.dt):
        raise InputError(f"duration is {duration} s; allowed are times of at least half a step of {scene.dt} s.")
    rod = _only_rod(scene)
    # its solver is never asked: of the stepper this needs the detection and the loads
    stepper = Stepper(scene, make_solver("banded"))
    rod_steps = _RodSteps(stepper, rod, substeps, iterations)
    n_steps = round(duration / scene.dt)
    seconds, penetration = np.zeros(n_steps), np.zeros(n_steps)
    centres = np.zeros((n_steps, rod.n_links, 3))
    readings = np.zeros((n_steps, len(scene.sensors), 6))
    status, message, done = "finished", f"All {n_steps} steps taken; how far they are from the solution is not known.", n_steps
    for step in range(n_steps):
        began = time.thread_time()
        finite = rod_steps.step()
        seconds[step] = time.thread_time() - began
        if not finite:
            status, message, done = "failed", f"Step {step + 1} gave numbers that are not finite; take more substeps.", step
            break
        centres[step] = rod.centres(stepper.state.q)
        penetration[step] = stepper.contacts.max_penetration(stepper.state, stepper.placed)
        for k, sensor in enumerate(scene.sensors):
            if sensor.kind == "contact" and not sensor.limited:
                readings[step, k] = rod_steps.contact_wrench[[p.name for p in scene.parts].index(sensor.part)]
            elif sensor.kind in ("start", "end"):
                readings[step, k] = rod_steps.end_wrench[0 if sensor.kind == "start" else 1]
    times = scene.dt * np.arange(1, done + 1)
    sensors = {
        sensor.name: SensorSeries(times, readings[:done, k, :3], readings[:done, k, 3:])
        for k, sensor in enumerate(scene.sensors)
        if sensor.kind in ("contact", "start", "end") and not sensor.limited
    }
    line = rod.centre_line(stepper.state.q)
    return XpbdRun(status, message, times, sensors, centres[:done], line, penetration[:done], seconds[:done])


def _only_rod(scene: Scene) -> Rod:
    """Return the rod of a scene that this method can simulate; InputError otherwise."""
    rods = kinds.rods(scene.bodies)
    others = [body.name for body in scene.bodies if body not in rods]
    if others or len(rods) != 1:
        held = f"{len(rods)} rod{'' if len(rods) == 1 else 's'}" + (f" and {', '.join(others)}" if others else "")
        raise InputError(
            f"scene {scene.name!r} has {held}; XPBD takes one rod and obstacles, nothing else that moves. "
            "Use simulate for the rest."
        )
    part = next(p for p in scene.parts if p.body == scene.bodies.index(rods[0]))
    if part.turns:
        raise InputError(f"rod {part.name} has contact 'surface'; XPBD knows contact='centre' only.")
    if any(rule.coefficients for rule in scene.friction_rules):
        raise InputError(f"scene {scene.name!r} has friction that differs by direction; XPBD knows isotropic friction only.")
    beta = rods[0].elastic.rayleigh_beta
    if beta != 0.0:
        raise InputError(
            f"rod {part.name} has rayleigh_beta {beta} s; XPBD knows none, so give it a material with rayleigh_beta 0 "
            "and damp it by translational_damping."
        )
    return rods[0]


class _RodSteps:
    """The arrays of the kernels, and steps of a rod through them."""

    def __init__(self, stepper: Stepper, rod: Rod, substeps: int, iterations: int) -> None:
        self.stepper, self.rod, self.substeps, self.iterations = stepper, rod, substeps, iterations
        n = rod.n_links
        self.joints = rod.joints()
        self.poses, self.velocity = np.zeros((n + 2, 7)), np.zeros((n + 2, 6))
        self.poses[1:-1] = stepper.state.q.reshape(-1, 7)
        self.velocity[1:-1] = stepper.state.v.reshape(-1, 6)
        self.inverse_mass = np.concatenate([[0.0], 1.0 / rod.link_mass, [0.0]])
        self.inverse_inertia = np.zeros((n + 2, 3))
        self.inverse_inertia[1:-1] = 1.0 / rod.link_inertia
        self.damping = np.zeros((n + 2, 4))
        self.damping[1:-1] = rod.lengths[:, None] * [rod.translational_damping, *(3 * [rod.rotational_damping])]
        self.damping[1:-1] += rod.elastic.rayleigh_alpha * np.column_stack([rod.link_mass, rod.link_inertia])
        self.force, self.before = np.zeros((n + 2, 6)), np.zeros((n + 2, 7))
        self.end_wrench, self.contact_wrench = np.zeros((2, 6)), np.zeros((len(stepper.scene.parts), 6))
        self._work = np.zeros((n + 1, 6)), np.zeros((6, 6)), np.zeros(6)

    def step(self) -> bool:
        """Take one time step; return whether all its numbers are finite."""
        stepper, rod, settings = self.stepper, self.rod, self.stepper.settings
        state, model, system = stepper.state, stepper.contacts, stepper.system
        dt = settings.dt
        still = np.zeros(system.n)
        system.assemble(state, settings, still)  # for the loads
        self.force[1:-1] = system.external.reshape(-1, 6)
        travel = float(np.linalg.norm(self.velocity[1:-1, :3], axis=1).max()) + dt * float(np.linalg.norm(settings.gravity))
        margin = stepper.scene.margin + 1.5 * dt * travel
        found = model.detect(state, stepper.placed, [margin, *(0.0 for _ in model.families[1:])])
        rows = model.rows(found, still, dt)
        contacts, friction = rows.families[0].found.contacts, rows.friction
        self._aim_frames(rod.frames_at(state.t), rod.frames_at(state.t + dt))
        forces = np.zeros((len(contacts), 3))
        lam, S, y = self._work
        kernels.run_substeps(
            self.poses, self.velocity, self.before, self.poses.copy(), self.joints.arm, self.joints.kind, self.joints.stiffness,
            self.joints.rest, self.inverse_mass, self.inverse_inertia, self.damping, self.force,
            # points of the rod come in the order of its links
            contacts.point + 1, contacts.gap, contacts.frame, friction, dt / self.substeps, self.substeps, self.iterations,
            lam, np.zeros_like(forces), forces, self.end_wrench, S, y,
        )  # fmt: skip
        if not (np.isfinite(self.poses).all() and np.isfinite(self.velocity).all()):
            return False
        stepper.state = State(self.poses[1:-1].ravel().copy(), self.velocity[1:-1].ravel().copy(), state.t + dt)
        self.contact_wrench = model.accept(rows, forces, np.zeros_like(forces))[0].wrench
        return True

    def _aim_frames(self, old: np.ndarray, new: np.ndarray) -> None:
        """Put the frames (2, 7) where they are at the start of the step, with the velocities that lead them to its end."""
        dt = self.stepper.settings.dt
        for k, row in ((0, 0), (1, -1)):
            self.poses[row] = old[k]
            self.velocity[row, :3] = (new[k, :3] - old[k, :3]) / dt
            self.velocity[row, 3:] = (
                vector_from_quaternion(quaternion_multiply(new[k, 3:], quaternion_conjugate(old[k, 3:]))) / dt
            )

"""One time step of the simulation, on one screen: named stages, one timer each."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from contact import ContactProblem, Solution, Solver, measure
from contact.metrics import NET_FRACTION, NOISE_FRACTION, TINY, contact_velocity, norm
from femsim.base.errors import InputError
from femsim.base.rotations import quaternion_conjugate, quaternion_multiply, vector_from_quaternion
from femsim.model.bodies.body import Body, BodyStep, StepSettings
from femsim.model.drives import driven_pose
from femsim.model.holds import Hold, held_wrench
from femsim.scene.scene import Scene
from femsim.step.advance import take_step
from femsim.step.contacts import Collision, CollisionBody
from femsim.step.report import StepReport
from femsim.step.state import State
from femsim.step.system import System

STAGES = ("assemble", "detect", "solve", "measure", "record")


class Stepper:
    """A scene in motion: its system, its collision model, its state and the contact problem of its last step.

    Parameters
    ----------
    scene : Scene
        What to simulate; not changed.
    solver : Solver
        Contact solver.
    max_halvings : int
        How often a step that cannot be solved is halved, see :mod:`femsim.step.advance`. Default 0: never.
    dt : float, s, optional
        Time step; default that of the scene.

    Raises
    ------
    InputError
        A scene without bodies, or soft bodies and rods that overlap deeply at the start.
    """

    def __init__(self, scene: Scene, solver: Solver, *, max_halvings: int = 0, dt: float | None = None) -> None:
        if not scene.bodies:
            raise InputError(
                f"scene {scene.name!r} has no body that moves; add one by add_soft, add_rod, add_rigid or add_gripper."
            )
        for sensor in scene.sensors:
            body = scene.parts[[p.name for p in scene.parts].index(sensor.part)].body
            if sensor.kind == "mount" and not sensor.hold and body not in scene.motions:
                raise InputError(
                    f"sensor {sensor.name}: kind 'mount' measures the drive of {sensor.part!r}, which has none; "
                    "give it one by scene.drive(..., motion), or use kind 'contact'."
                )
        for moving in scene.bodies:
            moving.reset()
        self.scene, self.solver, self.max_halvings = scene, solver, max_halvings
        #: whether the halves of the last step that could not be solved could not be solved either
        self.halving_is_vain = False
        self.settings = StepSettings(scene.dt if dt is None else dt, scene.theta, scene.gravity)
        self.system = System(scene.bodies, scene.couplings)
        self.system.set_prescribed(self._prescribed_rows())
        self.state = self.system.initial_state()
        self.v_hat = self.state.v.copy()
        self.problem: ContactProblem | None = None
        self.step_count = 0
        self.work = 0.0
        self.friction_loss = 0.0
        self.timings = dict.fromkeys(STAGES, 0.0)
        self.collision = self._make_collision()
        self.collision.update_poses(self.state)
        self._check_start()

    def _check_start(self) -> None:
        """Refuse a scene whose soft bodies and rods overlap too deeply to be pushed apart; warn where they overlap visibly."""
        touching = self.collision.touching
        for a, b, depth, bound in touching.overlaps(self.state) if touching is not None else ():
            names = f"scene {self.scene.name!r}: {self.scene.parts[a].name!r} and {self.scene.parts[b].name!r} overlap"
            if depth > bound:
                raise InputError(
                    f"{names} by {1e3 * depth:.3g} mm at the start; allowed are {1e3 * bound:.3g} mm (half of an element, "
                    "or of the radii of rods). Move them apart."
                )
            if depth > self.scene.margin:
                warnings.warn(f"{names} by {1e3 * depth:.3g} mm at the start and will be pushed apart.", stacklevel=4)

    def _prescribed_rows(self) -> np.ndarray:
        prescribed = np.zeros(self.system.n, dtype=np.bool_)
        for index in self.scene.motions:
            start = self.system.v_slices[index].start
            prescribed[start : start + 6] = True
        for index, nodes in self.scene.fixed_nodes.items():
            rows = self.system.v_slices[index].start + 3 * nodes[:, None] + np.arange(3)
            prescribed[rows.ravel()] = True
        for hold in self.scene.holds:
            prescribed[self.system.v_slices[hold.body].start + hold.rows] = True
        return prescribed

    def _make_collision(self) -> Collision:
        scene = self.scene
        parts = [
            CollisionBody(p.name, p.body, p.link, p.surface, list(p.shapes), p.nodes, p.turns, p.triangles, p.self_contact)
            for p in scene.parts
        ]
        surfaces = sorted({p.surface for p in parts})
        n = len(parts)
        collide = np.zeros((n, n), dtype=np.bool_)
        for a in range(n):
            for b in range(n):
                held = [p.body < 0 or (p.body in scene.motions and p.link == 0) for p in (parts[a], parts[b])]
                same = parts[a].body == parts[b].body and parts[a].body >= 0
                collide[a, b] = a != b and not same and not all(held)
        return Collision(
            self.system, parts, scene.friction_matrix(surfaces), surfaces, collide,
            correction=scene.correction, max_correction=scene.max_correction, anisotropic=scene.anisotropic,
            apart=scene.apart,
        )  # fmt: skip

    @contextmanager
    def timed(self, stage: str) -> Iterator[None]:
        """Add the time of a block to a stage."""
        started = time.perf_counter()
        yield
        self.timings[stage] += time.perf_counter() - started

    def step(self) -> StepReport:
        """Advance by one time step, in parts where it cannot be solved at once."""
        return take_step(self)

    def attempt(self) -> StepReport:
        """Advance by one time step whatever comes of it: assemble, detect, solve, measure, advance."""
        state, collision, settings = self.state, self.collision, self.settings
        with self.timed("assemble"):
            v_prescribed = self._prescribed_velocity(state)
            self.system.assemble(state, settings, v_prescribed)
        with self.timed("detect"):
            collision.detect(state, *self._margins(v_prescribed))
            problem = self.problem = collision.problem(v_prescribed, settings.dt)
        with self.timed("solve"):
            solution = self.solver.solve(problem, collision.warm_start(self.v_hat))
        with self.timed("measure"):
            new = self.system.advance(state, solution.v, settings)
            report = self._measure(problem, solution, state, new)
        self.state, self.v_hat, self.step_count = new, solution.v, report.step
        return report

    def _prescribed_velocity(self, state: State) -> np.ndarray:
        """Velocities of driven rows that end the step exactly on their motion, (n,)."""
        v, dt = np.zeros(self.system.n), self.settings.dt
        for index, motion in self.scene.motions.items():
            q = state.q[self.system.q_slices[index]]
            position, quaternion = driven_pose(self.scene.bodies[index].initial_q(), motion, state.t + dt)
            row = self.system.v_slices[index].start
            v[row : row + 3] = (position - q[:3]) / dt
            v[row + 3 : row + 6] = vector_from_quaternion(quaternion_multiply(quaternion, quaternion_conjugate(q[3:7]))) / dt
        for hold in self.scene.holds:
            motion = hold.motion or self.scene.motions[hold.leader]
            start, target = self._held_points(hold, state), hold.positions(motion, state.t + dt)
            v[self.system.v_slices[hold.body].start + hold.rows] = ((target - start) / dt).ravel()
        return v

    def _held_points(self, hold: Hold, state: State) -> np.ndarray:
        """Positions (k, 3), m, of held nodes in a state."""
        return np.asarray(state.q[self.system.q_slices[hold.body]].reshape(-1, 3)[hold.nodes])

    def _margins(self, v_prescribed: np.ndarray) -> tuple[float, float | np.ndarray]:
        """Return the detection margins, that to shapes and those between soft bodies and rods.

        They are the scene's plus the way of a step: of the fastest point and drive, or of what closes between two bodies.
        """
        way = 1.5 * self.settings.dt
        base = self.scene.margin + way * float(np.linalg.norm(self.settings.gravity)) * self.settings.dt
        fastest = self.collision.fastest_point(self.v_hat) + self.collision.fastest_point(v_prescribed)
        return base + way * fastest, base + way * self.collision.closing_speeds(self.v_hat)

    def _measure(self, problem: ContactProblem, solution: Solution, old: State, new: State) -> StepReport:
        """Residuals by the yardstick, forces on bodies, energies, momentum and the balance of forces."""
        system, collision, dt = self.system, self.collision, self.settings.dt
        u = contact_velocity(problem, solution.v)
        contacts = collision.accept(solution.lam, u)
        pressing = solution.lam[:, 0] > 1e-9 * solution.lam[:, 0].max(initial=0.0)
        slip = np.sqrt(u[:, 1] ** 2 + u[:, 2] ** 2)[pressing]
        self.friction_loss -= dt * float((solution.lam[:, 1:] * u[:, 1:]).sum())
        reaction = system.reaction(solution.v, collision.generalized_force())
        self.work += dt * float((system.external + reaction) @ solution.v)
        self.work += dt * sum(coupling.power for coupling in system.couplings)
        momentum, kinetic, elastic, potential, balance = np.zeros(3), 0.0, 0.0, 0.0, 0.0
        inverted = 0
        mount: dict[str, np.ndarray] = {}
        for index, (body, q, v) in enumerate(zip(system.bodies, system.q_slices, system.v_slices, strict=True)):
            end = body.momentum(new.q[q], new.v[v])
            rate = (end - body.momentum(old.q[q], old.v[v])) / dt
            own = [k for k, part in enumerate(collision.parts) if part.body == index]
            contact = collision.wrench[own, :3].sum(axis=0)
            forces = body.balance(
                BodyStep(
                    old.q[q], old.v[v], new.q[q], new.v[v], solution.v[v], system.b[v], system.external[v], reaction[v], dt,
                    index in self.scene.motions,
                )
            )  # fmt: skip
            self.work += dt * forces.power
            if forces.drive is not None:
                mount[body.name] = forces.drive
            couplings = system.coupling_forces(index)
            joined = couplings.sum(axis=0)
            # relative to the largest force: net contact, outside, of the drive, of a coupling (see metrics.balance)
            largest = max(norm(force) for force in (contact, forces.outside, forces.held, *couplings))
            scale = max(largest, NET_FRACTION * float(collision.force_sum[own].sum()), NOISE_FRACTION * forces.magnitude, TINY)
            balance = max(balance, norm(rate - forces.outside - forces.held - joined - contact) / scale)
            self.work -= dt * body.damping_power(solution.v[v])
            momentum += end
            kinetic += body.kinetic_energy(new.q[q], new.v[v])
            elastic += body.elastic_energy(new.q[q])
            potential -= body.mass * float(self.settings.gravity @ body.centre_of_mass(new.q[q]))
            inverted += body.inverted_elements
        for hold in self.scene.holds:
            points = self._held_points(hold, old)
            forces = reaction[system.v_slices[hold.body].start + hold.rows].reshape(-1, 3)
            mount[hold.name] = held_wrench(points, forces, points.mean(axis=0))
            if hold.leader >= 0:
                leader = system.bodies[hold.leader].name
                mount[leader] = mount[leader] + held_wrench(points, forces, old.q[system.q_slices[hold.leader]][:3])
        return StepReport(
            self.step_count + 1, new.t, solution, measure(problem, solution.v, solution.lam), contacts,
            collision.max_penetration(new), float(slip.max(initial=0.0)), kinetic, elastic, self.work, momentum, balance,
            mount, inverted, potential, self.friction_loss, ((dt, contacts),),
        )  # fmt: skip

    def held_centre(self, name: str) -> np.ndarray:
        """Mean position (3,), m, of held nodes at the current state."""
        hold = next(hold for hold in self.scene.holds if hold.name == name)
        return np.asarray(self._held_points(hold, self.state).mean(axis=0))

    def link_pose(self, part: int) -> tuple[np.ndarray, np.ndarray]:
        """World rotation (3, 3) and position (3,) of a part of the scene, at the current state."""
        return self.collision.pose(part)

    def body_of(self, part: int) -> Body | None:
        """Body of a part of the scene; None for obstacles."""
        index = self.scene.parts[part].body
        return self.scene.bodies[index] if index >= 0 else None

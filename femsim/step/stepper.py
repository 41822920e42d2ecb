"""One time step of the simulation, on one screen: named stages, one timer each."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations
from typing import NamedTuple

import numpy as np

from contact import ContactProblem, Remembering, Solver, contact_velocity
from contact.compressed import times_transposed
from contact.metrics import is_finite
from contact.metrics_kernels import TINY
from femsim.base.errors import InputError
from femsim.model.bodies.body import Body, StepSettings
from femsim.model.contact_rules import ContactRules, Welded
from femsim.scene.described import Described
from femsim.scene.frictions import anisotropic_pairs, pair_restitution, pair_softness
from femsim.scene.own_contact import fixed_pairs, own_pairs
from femsim.scene.pairs import ignored_pairs, led_parts, loose_parts
from femsim.scene.scene import Scene
from femsim.step import soft_pairs
from femsim.step.contact_family import Found, Rates
from femsim.step.contacts import ContactRows, Contacts, within
from femsim.step.end_velocity import EndVelocity, drive_work, end_velocity, weakened
from femsim.step.following import PATIENCE, PATIENCE_BY_THETA, Follow
from femsim.step.free_flight import keep_momentum
from femsim.step.joint_velocity import jointed_mobility
from femsim.step.measure import measure
from femsim.step.newton import Newton, Solved, linearise_ahead, solve_step, started_from
from femsim.step.placed import Placed
from femsim.step.predict import predicted, remembered
from femsim.step.prescribed import Prescribed, exact_holds, prescribed, prescribed_rows
from femsim.step.report import StepReport
from femsim.step.start import check_start
from femsim.step.state import Memory, State
from femsim.step.system import System
from femsim.step.vitals import VitalSigns

#: What each stage counts into: the columns of steps.csv that hold times.
COUNTED = {
    "assemble": "assemble", "detect": "detect", "build": "detect", "solve": "solve", "accept": "measure", "advance": "measure",
    "measure": "measure", "record": "record",
}  # fmt: skip
#: Most searches for contacts in a step.
_MOST_SEARCHES = 3
#: Most times that a step is solved again since its friction did work on bodies.
_MOST_WEAKENINGS = 3
#: Part of the contact margin by which a solved step may sink bodies into each other before halves of it are tried.
SUNK = 0.02
#: ... without contacts that others seemed to hold, before it is taken again with all; beside this part of the way of a step.
_SPARED, _OF_WAY = 1e-6, 1e-2
#: ... at most so much, which they may also be deep at its start; and how far they may slide where some are left out.
_DEEP, _STAYING = 1e-3, 0.1
#: Part of the energy of the bodies that a solved step may make from nothing before halves of it are tried.
GAINED = 0.01
#: Parts of the contact margin: the gap up to which a contact counts as closed, and the way up to which contacts do not follow, by
#: the energy-momentum step (with 0.1 bodies that meet slowly lost 6e-4 of their angular momentum) and by the theta rule.
_CLOSED, _STANDS, _HARDLY = 1e-2, 1e-3, 0.1
#: Part of the last along curved shapes: friction of links that slide by s round a radius R would be s/R off.
_ON_CURVES = 0.1
#: The least energy that counts is that of bodies at so many times the speed that counts as still, or lifted by this part of the
#: contact margin.
_HARDLY_MOVES, _LIFTED = 100.0, 1e-3
#: What moves by no more than this part of the contact margin in a step counts as still.
STILL = 1e-6
#: Contacts may creep so fast, in nonlinear tolerances times contact margins a second, before a step is linearised again, 1/s.
CREEP = 100.0
#: In frames and sensors a contact that presses slips where it goes more contact margins a second than this, 1/s.
SLOW = 1e-3
_NO_IMPULSES = np.zeros(0)
STAGES = ("assemble", "detect", "solve", "measure", "record")


class Stepper:
    """A scene in motion: its system, its contacts, its state and the contact problem of its last step.

    Parameters
    ----------
    scene : Scene
        What to simulate; not changed.
    solver : Solver
        Contact solver.
    dt : float, s, optional
        Time step; default that of the scene.

    Attributes
    ----------
    state : State
        All that the next step reads; a new one after each step.
    settings : StepSettings
        Time step, integration parameter and gravity.
    newton : Newton
        How exactly the nonlinear equations of a step are solved.
    problem : ContactProblem or None
        That of the last step; its matrix is overwritten by the next one.
    timings : dict of str to float
        Seconds spent so far, by column of steps.csv.
    vital_signs : VitalSigns
        Reads what a step says about the health of a run.
    notes : list of str
        What seems odd about the scene, in words.
    described : Described
        What the scene said when the stepper was made; it follows no change of it.
    on_restore : list of callable
        Each is called with the ``sensors`` of a state that was restored: who reads sensors goes on from there.

    Raises
    ------
    InputError
        A scene without bodies, bodies that overlap deeply at the start, or shapes that pass between the nodes of soft bodies.
    """

    #: what the stages are timed by, in seconds
    clock = staticmethod(time.perf_counter)

    def __init__(self, scene: Scene, solver: Solver, *, dt: float | None = None) -> None:
        _check_scene(scene)
        for body in scene.bodies:
            body.reset()
        for coupling in scene.couplings:
            coupling.reset()
        for command in scene.commands.values():
            command.release()
        scene.mover = self
        self.scene, self.solver = scene, solver
        conserving = scene.integrator == "energy-momentum"
        self._gravity = float(np.linalg.norm(scene.gravity))
        tolerance, margin = scene.nonlinear_tolerance, scene.margin
        self.settings = StepSettings(
            scene.dt if dt is None else dt, scene.theta, scene.gravity, conserving, scene.strain_damping if conserving else 0.0,
            tolerance is None,
        )  # fmt: skip
        self.newton = Newton(tolerance, scene.max_solves, STILL * margin / self.settings.dt, CREEP * (tolerance or 0.0) * margin)
        self.system = System(scene.bodies, scene.couplings)
        self.system.set_prescribed(prescribed_rows(scene, self.system))
        self.contacts = Contacts(self.system, scene.parts, contact_rules(scene))
        self.state = replace(self.system.remember(self.system.initial_state()), contacts=self.contacts.no_memory())
        self.least_energy = self._least_energy()
        self.problem: ContactProblem | None = None
        self.timings = dict.fromkeys(STAGES, 0.0)
        self._timers = {stage: _Timed(self, column) for stage, column in COUNTED.items()}
        self.on_restore: list[Callable[[Memory], None]] = []
        self._placed = (self.state.q.tobytes(), self.contacts.places.read(self.state))
        self.state.energy = self.system.energy(self.state) + soft_pairs.energy_at(self.contacts, self.state, self._placed[1])
        self._energy_at_start = self.state.energy
        self._nothing, self._little = np.zeros(self.system.n), [_STANDS * scene.margin] * len(self.contacts.families)
        #: where, at which velocities and with which prescribed ones speeds were asked for last, and which; by whether with none
        self._paced: dict[bool, tuple[Placed, np.ndarray, np.ndarray, list[float | np.ndarray]]] = {}
        self.vital_signs = VitalSigns(scene, self.system, self.contacts, self.state)
        self.notes = check_start(scene, self.contacts, self.vital_signs, self.state, self.settings.dt)
        self.described = Described(scene)

    def __repr__(self) -> str:
        return f"<Stepper of {self.scene.name!r} at {self.state.t:g} s, {len(self.state.v)} velocities>"

    def step(self, *, whole: bool = True, pushing: bool = True) -> StepReport:
        """Advance by one time step, whatever comes of it; :func:`femsim.step.advance.take_step` halves steps that fail.

        Without a ``whole`` set of contacts, those that others seem to hold too are left out: who asks for that asks again where
        the report says ``spared``. Without ``pushing``, parts that overlap may stay as deep as they are.
        """
        state, system, contacts, settings = self.state, self.system, self.contacts, self.settings
        contacts.correction = contacts.rules.correction if pushing else 0.0
        with self.timed("assemble"):
            given = prescribed(self.scene, system, state, settings, self.newton.still)
            system.assemble(state, settings, *given)
        whole |= contacts.rules.softness is not None or self.newton.tolerance is None
        rows, solved, astray = self._solve(given, whole=whole)
        ended = self._end(rows, solved, given)
        solved, new, u, end, arrived = ended.solved, ended.state, ended.u, ended.velocity, ended.placed
        rows = solved.rows
        problem, solution = solved.problem, solved.solution
        self.problem = problem
        with self.timed("advance"):
            new.v = end.v
            keep_momentum(system, settings, problem, solution.v, end.lam, state, new, self.scene.motions)
            solved = end.judged(solved)
        with self.timed("accept"):
            forces, memory = contacts.accept(rows, end.lam, u, end.work, end.late)
        with self.timed("measure"):
            if system.prescribes and settings.theta < 1.0:
                end.driving += drive_work(system, given, forces.late, end, state, new, settings.dt, self.newton.still)
            overlaps = contacts.overlapping(new, arrived, ended.rows)
            penetration = overlaps.depth
            report = measure(
                self.scene, system, settings, solved, end, forces, state, new, penetration, self.newton.still, contacts.owner
            )
            report.elastic_energy += soft_pairs.energy_of(rows, solution.lam)
            gained = report.kinetic_energy + report.elastic_energy - self._energy_at_start
            report.other_loss = report.work - gained - report.friction_loss - report.viscous_loss
            beyond = soft_pairs.beyond(
                contacts.rules.softness, self.vital_signs.sizes.part, overlaps, forces.contacts, solution.lam
            )
            deepest = beyond.pressed.depth
            report.sank, report.theta = self._sank(deepest), settings.theta
            report.ends = ((settings.theta, new.q, new.v),)
            report.spared = astray or (rows.spared and self._sank(deepest, self._may_sink(rows, solution.v, given.v)))
            report.vitals = self.vital_signs.read(problem, solution.lam, forces, new, arrived, beyond)
            report.gained = self._gained(report)
            system.touch(settings, forces.node_force)
            bodies, couplings = system.memories(new.q)
            self.state = State(
                new.q, new.v, new.t, new.v_hat, report.step, report.work, report.friction_loss, state.halving_is_vain,
                bodies, couplings, memory, state.sensors, settings.dt, state.level, solved.ahead,
                remembered(state, settings.dt), report.kinetic_energy + report.elastic_energy, solved.again,
                report.joint_loss, pressed=forces.force_sum,
            )  # fmt: skip
            self._placed = (new.q.tobytes(), arrived)
        return report

    def _solve(self, given: Prescribed, *, whole: bool) -> tuple[ContactRows, Solved, bool]:
        """Find the contacts and solve the step; again, with those in reach of what came of it, where that went further.

        Not so where contacts were left out that others seemed to hold: that may have led astray, which is returned as well.
        """
        contacts, state, settings = self.contacts, self.state, self.settings
        placed, v_hat = self.placed, self._expected()
        if self.system.prescribes:  # solvers that iterate begin with what is prescribed, and keep it to the last bit
            v_hat = np.where(self.system.prescribed, given.v, v_hat)
        margins, ahead = self._margins(placed, Rates(state.v_hat, given.v)), state.ahead
        searched: list[Solved] = []
        for again in range(_MOST_SEARCHES):
            with self.timed("detect"):
                found = contacts.detect(state, placed, margins)
            with self.timed("build"):
                rows = self._rows(found, given, v_hat, whole=whole)
            with self.timed("solve"):
                linearised = None
                if ahead:
                    linearised = linearise_ahead(self.system, state, settings, v_hat, *given, self.newton)
                warm = contacts.warm_start(rows, state.contacts, v_hat, self.system.joints.forces())
                loose = rows.with_friction(self._friction(rows))
                follow, patience = self._follow(loose, given.v), self._patience if all(one.followed for one in searched) else 0
                solved = solve_step(
                    self.system, settings, loose, self.solver, warm, self.newton, linearised, follow, patience,
                    again=state.again and not searched,
                )  # fmt: skip
            searched.append(solved)
            v_hat, ahead = solved.solution.v, True
            rates = Rates(v_hat, given.v)
            if again == _MOST_SEARCHES - 1 or not is_finite(v_hat) or self._unsolved(solved):
                break
            if within(self._speeds(placed, rates), settings.dt, margins):
                break
            if rows.spared:
                return rows, Solved.of(searched), True
            margins = self._margins(placed, rates)
            with self.timed("assemble"):
                self.system.assemble(state, settings, *given)
        return rows, Solved.of(searched), False

    def _rows(self, found: Sequence[Found], given: Prescribed, v_hat: np.ndarray, *, whole: bool) -> ContactRows:
        """Rows of what was found, unless as a ``whole`` without the contacts that others seem to hold too."""
        contacts, dt, margin = self.contacts, self.settings.dt, self.scene.margin
        stay = self.newton.tolerance is None
        rows = contacts.rows(found, given.v, dt, stay=stay)
        if whole:
            return rows
        fewer = contacts.spare(rows, found, Rates(v_hat, given.v), dt, _DEEP * margin, _STAYING * margin)
        return rows if fewer is None else contacts.rows(fewer, given.v, dt, stay=stay)

    def _unsolved(self, solved: Solved) -> bool:
        """Whether the velocities of a search are no guide to what a step reaches: its nonlinear equations were not solved."""
        return self.newton.tolerance is not None and not solved.solution.converged

    def _expected(self) -> np.ndarray:
        """Guess the representative velocity of the step, (n,); it is the last one where one linearisation is asked for."""
        if self.newton.tolerance is None:
            return self.state.v_hat
        return predicted(self.state, self.settings.dt, self.system.free_weight(), self.newton.still)

    def _end(self, rows: ContactRows, solved: Solved, given: Prescribed) -> _Ended:
        """Where a solved step leads, and the velocities that it ends with.

        As long as friction did work on bodies, the step is solved again with less of it.
        """
        friction = self._friction(rows)
        for again in range(1 + _MOST_WEAKENINGS):
            with self.timed("advance"):
                new = self.system.advance(self.state, solved.solution.v, self.settings)
                u = contact_velocity(solved.problem, solved.solution.v)
                arrived, there = self.contacts.places.read(new), solved.rows.with_friction(rows.friction)
                moves = self.follows and not self._hardly_moves(rows.placed, solved.solution.v)
                if moves or given.end is not given.v:
                    there = self.contacts.moved(there, new, given.end, self.settings.dt, middle=False, placed=arrived)
                end = self._end_velocity(there, solved, u, new, given)
                allowed = weakened(friction, rows, solved, end, self.newton)
            if allowed is None or again == _MOST_WEAKENINGS or not solved.solution.converged:
                break
            friction = allowed
            solved = self._solve_again(rows.with_friction(friction), solved, given)
        return _Ended(solved, new, u, end, arrived, there)

    def _end_velocity(self, there: ContactRows, solved: Solved, u: np.ndarray, new: State, given: Prescribed) -> EndVelocity:
        """Velocities at the end of a step, where joints hold bodies too; change ``new`` so far.

        Where contacts push joints beyond their dry friction, as stops may that held them with it in the step, it lets them go.
        """
        projected, own, dt = self.settings.theta < 1.0, new.v, self.settings.dt
        while True:
            new.v, held, impulses = own, self._nothing, _NO_IMPULSES
            joints = jointed_mobility(self.system, self.state, new, projected=projected)
            if joints is not None and projected:
                impulses = joints.impulses(own)
                new.v = joints.joined(own, impulses)
                held = self.system.carried(self.state, new, new.v - own) / dt
            end = end_velocity(self.system, self.settings, there, solved, u, self.state, new, self.newton, joints)
            if joints is None:
                return end
            beside = joints.impulses_beside(dt * times_transposed(there.J, (end.lam - solved.solution.lam).ravel()))
            impulses = beside + impulses if len(impulses) else beside
            if not self.system.joints.release(impulses):
                self.system.joints.add_impulses(impulses)
                driven = self.system.prescribes and projected
                driving = -joints.power(impulses, given.end - given.v) if driven else end.driving
                return replace(end, held=end.held + held, driving=driving)

    def _solve_again(self, rows: ContactRows, solved: Solved, given: Prescribed) -> Solved:
        """Solve a step once more with other rows, from what came of it."""
        system, state, solution = self.system, self.state, solved.solution
        with self.timed("assemble"):
            system.recall(state)
            system.assemble(state, self.settings, *given)
        with self.timed("solve"):
            linearised = linearise_ahead(system, state, self.settings, solution.v, *given, self.newton)
            warm = started_from(solution)
            follow, patience = self._follow(rows, given.v), self._patience if solved.followed else 0
            again = solve_step(system, self.settings, rows, self.solver, warm, self.newton, linearised, follow, patience)
        return Solved.of((solved, again))

    @property
    def follows(self) -> bool:
        """Whether contacts follow the bodies within a step."""
        return self.settings.conserving and self.newton.tolerance is not None

    def _friction(self, rows: ContactRows) -> np.ndarray:
        """Friction by which positions are found, (nc,) or (nc, 2)."""
        return rows.sticky(_CLOSED * self.scene.margin) if self.follows else rows.friction

    @property
    def _patience(self) -> int:
        """Linearisations that may not help while contacts follow the bodies."""
        return PATIENCE if self.settings.conserving else PATIENCE_BY_THETA

    def _follow(self, rows: ContactRows, v_prescribed: np.ndarray) -> Follow | None:
        """Rows of contacts at the middle of the step, by its v_hat; those of the start where hardly anything moves.

        By the theta rule they follow only bodies that turn together, since with levers of the start what turns with a part
        creeps, and soft bodies and rods that slide: along the faces of the start they would go on straight past their edges. By
        backward Euler curved shapes push them as they do at the end of the step.
        """
        if self.newton.tolerance is None or not len(rows.phi):
            return None
        state, dt = self.state, self.settings.dt

        def there(v_hat: np.ndarray, on: ContactRows | None = None, *, guess: bool = False) -> ContactRows:
            if on is not None:
                return self.contacts.on_same_features(on, self.system.moved(state, v_hat, 0.5 * dt), v_prescribed, dt)
            if self._hardly_turns(rows, v_hat) and (guess or self._hardly_leads(rows, v_hat, v_prescribed)):
                return rows
            middle = self.contacts.moved(rows, self.system.moved(state, v_hat, 0.5 * dt), v_prescribed, dt, middle=True)
            if self.follows:
                middle = self.contacts.along_arcs(middle, v_hat)
                return self.contacts.along_chords(middle, rows, v_hat, partial(self.system.moved, state, v_hat, dt))
            if self.settings.theta < 1.0 or guess:
                return middle
            return self.contacts.arrived(middle, self.system.moved(state, v_hat, dt), v_hat)

        return there

    def _hardly_moves(self, placed: Placed, v_hat: np.ndarray) -> bool:
        """Whether a step leads nothing that has contacts away from where it was, ``placed``."""
        return within(self._speeds(placed, Rates(v_hat, self._nothing)), self.settings.dt, self._little)

    def _hardly_leads(self, rows: ContactRows, v_hat: np.ndarray, v_prescribed: np.ndarray) -> bool:
        """Whether contacts stay where they were; by the theta rule, whether deforming bodies stay on the features of theirs."""
        if self.follows:
            return self._hardly_moves(rows.placed, v_hat)
        along, past = self.contacts.slide(rows, Rates(v_hat, v_prescribed))
        return self.settings.dt * max(along / _ON_CURVES, past) <= _HARDLY * self.scene.margin

    def _hardly_turns(self, rows: ContactRows, v_hat: np.ndarray) -> bool:
        """Whether bodies that turn together leave the tangents of their ways so slowly that contacts count as sticking."""
        return 0.5 * self.settings.dt * self.contacts.bend(rows, v_hat) <= SLOW * self.scene.margin

    def _speeds(self, placed: Placed, rates: Rates) -> list[float | np.ndarray]:
        """Bounds of the speeds at which gaps may close, asked once for each velocity with what is prescribed and without."""
        given = rates.v_prescribed if self.system.prescribes else self._nothing
        known = self._paced.get(alone := given is self._nothing)
        if known is None or not (known[0] is placed and known[1] is rates.v_hat and known[2] is given):
            known = self._paced[alone] = (placed, rates.v_hat, given, self.contacts.speeds(placed, rates))
        return known[3]

    def _may_sink(self, rows: ContactRows, v_hat: np.ndarray, v_prescribed: np.ndarray) -> float:
        """Part of the margin by which bodies may sink where contacts were left out: little beside their way, none at rest."""
        way = self.settings.dt * self.contacts.speed(rows, Rates(v_hat, v_prescribed))
        return min(_SPARED + _OF_WAY * way / self.scene.margin, _DEEP)

    def _sank(self, penetration: float, part: float = SUNK) -> bool:
        """Whether a solved step ends deeper than it began, by more than a part of the margin: gaps are linear in a step."""
        bound = part * self.scene.margin
        if self.newton.tolerance is None or not penetration > bound:
            return False
        return penetration > bound + soft_pairs.hard_penetration(self.contacts, self.state, self.placed)

    def overcome(self, report: StepReport) -> int | None:
        """Coupling that the last step should have broken: the weakest weld by which exact motions lead parts into others.

        Their force has no bound. Without the weld contact could push apart what it holds; None where there is no such weld.
        """
        bound = SUNK * self.scene.margin
        if not (self.scene.welds and report.vitals.led.depth > bound):
            return None
        deep = partial(self.vital_signs.deeper, bound=bound)
        return self.system.joints.weakest_of(self.contacts.leading(self.state, self.placed, deep))

    def _gained(self, report: StepReport) -> bool:
        """Whether an energy-momentum step made more than :data:`GAINED` of the energy of the bodies from nothing."""
        if self.newton.tolerance is None or not self.settings.conserving:
            return False
        old, held = self.state, report.kinetic_energy + report.elastic_energy
        made = (held - old.energy) - (report.work - old.work) - report.vitals.pushed
        return made > GAINED * max(held, old.energy, self.least_energy)

    def _least_energy(self) -> float:
        """Least energy, J, that counts: of motion hardly faster than still, of lifts that contacts at rest make by rounding."""
        scene, mass = self.scene, sum(body.mass for body in self.system.bodies)
        lifted = self._gravity * _LIFTED * scene.margin
        return max(mass * max(0.5 * (_HARDLY_MOVES * self.newton.still) ** 2, lifted), TINY)

    def restore(self, state: State) -> None:
        """Go back (or on) to a state of this scene, so that what follows is what followed then, to the last bit.

        A solver that remembers nothing gives the same bits. What others remember (factors of an earlier matrix, gains,
        estimates of cost by which ``auto`` picks) is no part of the state and stays as it is: with it, solves that converge
        agree to the tolerance of the solver, and those that stop at their limit need not agree. A checkpoint has it too, see
        :meth:`recall_solver`.

        Raises
        ------
        InputError
            A state of another scene.
        """
        system = self.system
        sizes = (len(state.q), len(state.v), len(state.bodies), len(state.couplings), len(state.contacts))
        wanted = (system.n_q, system.n, len(system.bodies), len(system.couplings), len(self.contacts.families))
        if sizes != wanted:
            raise InputError(
                f"the state has {sizes} coordinates, velocities, bodies, couplings and families of contacts; scene "
                f"{self.scene.name!r} has {wanted}. Restore a state of this scene with the same bodies."
            )
        state = state.own()
        system.recall(state)
        self.state = state
        for recall in self.on_restore:
            recall(state.sensors)

    def recall_solver(self, memory: Memory) -> None:
        """Give the solver back what it remembered when it was asked for its ``memory``, see :class:`contact.Remembering`."""
        if isinstance(self.solver, Remembering):
            self.solver.recall(memory)

    def timed(self, stage: str) -> _Timed:
        """Add the time of a block to what its stage counts into."""
        return self._timers[stage]

    def ms_since(self, timings: Mapping[str, float]) -> dict[str, float]:
        """Milliseconds by column of steps.csv since :attr:`timings` were these, s."""
        return {stage: 1e3 * (self.timings[stage] - timings[stage]) for stage in timings}

    def _margins(self, placed: Placed, rates: Rates) -> list[float | np.ndarray]:
        """Return the detection margin of each family of contacts.

        Each is that of the scene plus the distance that gaps may close in a step: at first by the speeds of the last step and of
        what is prescribed in this one.
        """
        time_ahead = 1.5 * self.settings.dt
        base = self.scene.margin + time_ahead * self._gravity * self.settings.dt
        return self.contacts.margins(placed, rates, base, time_ahead)

    # ------------------------------------------------------------------ readings of the current state

    @property
    def placed(self) -> Placed:
        """Where the parts are."""
        q = self.state.q.tobytes()
        if self._placed[0] != q:
            self._placed = (q, self.contacts.places.read(self.state))
        return self._placed[1]

    def link_pose(self, part: int) -> tuple[np.ndarray, np.ndarray]:
        """World rotation (3, 3) and position (3,) of a part of the scene."""
        return self.placed.rotation[part], self.placed.translation[part]

    def body_of(self, part: int) -> Body | None:
        """Body of a part of the scene; None for obstacles."""
        return self.scene.body_of(self.scene.parts[part])


class _Ended(NamedTuple):
    """Where a step leads: what solved it, its end, the contact velocities ``u`` (nc, 3), m/s, of its answer, and the end itself.

    That is the velocities there, where the parts are, and the contacts as they are there.
    """

    solved: Solved
    state: State
    u: np.ndarray
    velocity: EndVelocity
    placed: Placed
    rows: ContactRows


class _Timed:
    """A block whose time, s, is added to what its stage counts into, unless it raises."""

    __slots__ = ("_column", "_started", "_stepper")

    def __init__(self, stepper: Stepper, column: str) -> None:
        self._stepper, self._column = stepper, column

    def __enter__(self) -> None:
        self._started = self._stepper.clock()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self._stepper.timings[self._column] += self._stepper.clock() - self._started


def _check_scene(scene: Scene) -> None:
    if not scene.bodies:
        raise InputError(f"scene {scene.name!r} has no body that moves; add one by add_soft, add_rod, add_rigid or add_gripper.")
    driven = {scene.bodies[index].name for index in scene.motions}
    driven |= {found[0] for coupling in scene.couplings if (found := coupling.mounted()) is not None}
    for sensor in scene.sensors:
        body = scene.body_of(scene.parts[scene.part_names.index(sensor.part)])
        if sensor.kind == "mount" and not sensor.hold and (body is None or body.name not in driven):
            raise InputError(
                f"sensor {sensor.name}: kind 'mount' measures the drive of {sensor.part!r}, which has none; "
                "give it one by scene.drive(..., motion), or use kind 'contact'."
            )


def _welds(scene: Scene) -> list[Welded]:
    """Say what welds hold, and with them obstacles, which count as welded to the world, and links on fixed joints."""
    if not scene.welds:
        return []
    others = [*((k, -1) for k, part in enumerate(scene.parts) if part.body < 0), *fixed_pairs(scene)]
    return [*scene.welds, *(Welded(pair, (None, None), None) for pair in others)]


def _led(scene: Scene, still: np.ndarray) -> list[Welded]:
    """Say what exact motions alone move against each other, where welds or motions hold anything but whole rigid bodies.

    Parts that nothing can push, ``still`` (np,) bool, and nodes that are fixed or held exactly move so against the world, links
    of a robot against each other.
    """
    held = [*scene.fixed_nodes.items(), *((hold.body, hold.nodes) for hold in exact_holds(scene))]
    nodes = [
        Welded((k, -1), (of_part, None), None)
        for body, of_part in held
        for k, part in enumerate(scene.parts)
        if part.body == body
    ]
    if not scene.welds and not nodes:
        return []
    pairs = [(int(k), -1) for k in np.flatnonzero(still)]
    for (i, a), (j, b) in combinations(enumerate(scene.parts), 2):
        if a.body == b.body and a.body >= 0:
            body = scene.bodies[a.body]
            if np.isin(body.rows_between(a.link, b.link), body.driven_rows()).all():
                pairs.append((i, j))
    return [*(Welded(pair, (None, None), None) for pair in pairs), *nodes]


def contact_rules(scene: Scene) -> ContactRules:
    """Rules of the contacts of a scene: none within a body but a robot, between parts both fixed or driven, and where ignored."""
    friction = scene.pair_friction()
    body = np.array([p.body for p in scene.parts])
    still = led_parts(scene)
    same = (body[:, None] == body) & (body >= 0)
    pairs = (~same | own_pairs(scene)) & ~(still[:, None] & still)
    np.fill_diagonal(pairs, False)
    ignored = ignored_pairs(scene)
    pairs &= ~ignored
    return ContactRules(
        friction.values, pair_restitution(scene.parts, scene.restitution_rules), pairs, scene.correction, scene.max_correction,
        anisotropic_pairs(scene.friction_rules, friction), scene.no_contact, ignored, scene.most_per_pair,
        pair_softness(scene.parts, scene.softness_rules, scene.restitution_rules), loose_parts(scene),
        scene.until_broken, _welds(scene), _led(scene, still), SLOW * scene.margin,
    )  # fmt: skip

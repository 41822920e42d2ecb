"""The equations of a step solved, not only linearised: Newton's method over contact problems."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from contact import ContactError, ContactProblem, Solution, Solver, WarmStart, metrics
from contact.compiled import Fixed
from contact.compressed import times_transposed
from contact.jacobian_kernels import gather, scatter
from femsim.model.bodies.body import StepSettings
from femsim.step import rows_kernels
from femsim.step.contacts import ContactRows
from femsim.step.following import PATIENCE, Follow, Following
from femsim.step.residual_kernels import largest
from femsim.step.state import State
from femsim.step.system import System
from femsim.step.whole_tangents import Held

#: How the message of a step begins whose nonlinear equations were not solved.
NOT_SOLVED = "The nonlinear equations of the step"
#: Part of the nonlinear tolerance that the residuals of a contact problem may reach which its solver did not call converged.
_NEARLY = 0.1
#: A step whose contact problems were not solved so often ends: in a jam all 25 of a step were not, at half a second each.
_UNSOLVED = 5
#: Speed, m/s or rad/s, that no answer has: equations that led there are not solved, and nothing can be found where it goes.
_LIGHT = 3e8
#: Tangents of bodies of nodes serve once more where the residual is below this many tolerances: each such solve leaves some
#: hundredths of it.
_LAGGED = 20.0
#: Part of the nonlinear tolerance to which the first contact problem of a step is solved where bodies are large and the step
#: before needed more than one: what it lacks is less than what the next linearisation changes (measured on a finger of 4760
#: nodes: with 0.03 a step takes 7.9 refinements, with 0.3 it takes 6.9, with 1 it takes 6.6, but other scenes more problems).
_LOOSE = 0.3
#: ... and that of piles, where it saves a third of the turns of the first problem (measured: with 0.1 to 3 the next linearisation
#: leaves as much as after a sharp one).
_LOOSE_PILE = 1.0
#: Part of the nonlinear tolerance to which free flight is solved, where no contact problem is: what each step lacks adds up over
#: thousands of turns. Not below what costs many solves, unless that is asked for.
_FLIGHT, _FLIGHT_LEAST = 0.1, 1e-5
#: Residual of an answer above which the next tangent is the one that is surely definite, and for how many linearisations at most.
#: Derivatives hold only near the end of the search: of light, stiff bodies that turn they led elsewhere. Measured on 38 scenes,
#: which need 0.82 of the linearisations with 0.02 and with 0.1, 0.87 with 1. Without an end a step that nothing solves drifts
#: off, since turns meet no resistance: a block with a tendon that pulls too hard came to a thousand times the energy.
_FAR, _LED = 0.1, 10
#: The same tangent is taken where a linearisation leaves more than this part of the least residual before it, and more than so
#: many tolerances: metal that turns keeps its length, so that derivatives allow hardly a step off its way. Measured on 70 scenes
#: of the self-test: those that take more than five linearisations a step take 0.7 to 0.98 of them.
_HARDLY, _NEAR = 0.5, 10.0
#: Linearisations before the last that the next one looks back on.
_MEMORY = 8
#: Nonlinear tolerances that a body may lack of its own forces: with 1 a string or a ball that a robot moves takes a third more
#: contact problems. Also that forces of drives may lack: elements between nodes that are all held have no other equations.
_OWN = 10.0
#: Linearisations that a light body asks for go on as long as each leaves at most this part of what it lacks. A rod beside a block
#: of 100 t lacked 2e-2 of its forces after one of them.
_HELPED = 0.5
#: Part of the nonlinear tolerance that answers of contact problems may lack of their own equations where linearisations go on:
#: what a loose solver leaves would else be all that is left of the residual (measured on a sliding cube with `admm` at 1e-5: 6 to
#: 16 linearisations a step, and steps in halves; with 0.1 two).
_SHARE = 0.1
#: Part of its slip by which a contact may go otherwise on the rows where an answer leads than on those of its problem, and how
#: many times speeds along normals count in that.
_SLIP, _SINK = 0.01, 10.0
#: Dynamics residual that the digits of the place may leave where a problem is solved for the velocity itself, and not for what
#: it is beyond the place: metal that turns loses 1e-8 and more, which no solver mends.
_DIGITS = 1e-11
#: To linearise ahead pays where velocities change by less than this part from step to step: the first residual is about the
#: square of that.
_STEADY = 0.5
#: Nonlinear tolerances above which whole tangents are asked where the next linearisation is; how many steps of Newton's method
#: are taken there, and after how many that were no nearer they end. Measured on a cable that swings, at 10 and 20 ms, alone and
#: over a floor: 4 steps take 1.25 times as long as 8, 3 that are no nearer as long as 2. With 30 and 300 tolerances random rods
#: and these take the same; a rod that slides on a floor takes 1.2 times as long with 30 as without.
_WHOLE, _HELD, _SINCE = 100.0, 8, 2
#: Angle, rad, by which a link may turn more there than at the last answer. Equations of string-like rods that are pushed have
#: many solutions, and Newton's method comes to some in which links turn over in a step.
_TURNED = 0.2

_creep_of = Fixed(rows_kernels.creep)


@dataclass(frozen=True)
class Newton:
    """How exactly the nonlinear equations of a step are solved.

    Attributes
    ----------
    tolerance : float or None
        Bound of the nonlinear residual, see :meth:`femsim.step.system.System.residual`. None: one linearisation a step, as in
        papers/001; the residual is measured, but asks for nothing.
    max_solves : int
        Most contact problems in a step.
    still : float, m/s
        Speed that counts as none: the forces that make it are the least that the residual is relative to.
    creep : float, m/s
        Speed that contacts may have, where the answer of a step leads, beyond that which its problem found.
    """

    tolerance: float | None
    max_solves: int
    still: float
    creep: float = math.inf


@dataclass
class Solved:
    """What came of solving the equations of a step.

    Attributes
    ----------
    problem : ContactProblem
        The last contact problem: that whose equations the solution satisfies.
    solution : Solution
        Its answer; not converged where the nonlinear residual stayed above its tolerance. Its iterations are those of all, and
        ``details["effort"]`` is the part of the iterations allowed that a solve took in the mean.
    residuals : tuple of float
        Nonlinear residual of the answer of each contact problem.
    rows : ContactRows
        Rows of its contacts.
    followed : bool
        Whether contacts followed the bodies to the end; False where residuals did not fall while they did.
    ahead : bool
        Whether the next step should be linearised first where the velocity of this one leads it, and not where it starts: that
        costs an assembly and saves a contact problem. After a step that needed more than one, and then until what forces and
        joints at the place were beyond their linearisation at the start would have been within the tolerance; and only while
        velocities change little from step to step.
    again : bool
        Whether one linearisation was not enough: then the first contact problem of the next step need not be solved sharply.
    """

    problem: ContactProblem
    solution: Solution
    residuals: tuple[float, ...]
    rows: ContactRows
    followed: bool = True
    ahead: bool = False
    again: bool = False

    @classmethod
    def of(cls, searched: Sequence[Solved]) -> Solved:
        """Return the last of those by which a step was solved, with the problems and iterations of all."""
        last = searched[-1]
        if len(searched) == 1:
            return last
        solution = replace(last.solution, iterations=sum(one.solution.iterations for one in searched))
        return replace(last, solution=solution, residuals=tuple(r for one in searched for r in one.residuals))

    @property
    def residual(self) -> float:
        """Nonlinear residual of the answer."""
        return self.residuals[-1]

    @property
    def solves(self) -> int:
        """Contact problems solved."""
        return len(self.residuals)


class Ahead(NamedTuple):
    """Where the equations of a step were linearised ahead of its start, and what they are there beyond their linearisation at it.

    Attributes
    ----------
    place : ndarray, (n,)
        Velocity that leads there.
    force : ndarray, (n,), N and N m
        Forces of inertia, bodies, couplings and joints there, the latter with the row forces of the last step, beyond those that
        the linearisation at the start says.
    rate : float, m/s or rad/s
        The largest velocity of a row of the joints there, in the same way.
    """

    place: np.ndarray
    force: np.ndarray
    rate: float


def linearise_ahead(
    system: System,
    state: State,
    settings: StepSettings,
    v_hat: np.ndarray,
    v_prescribed: np.ndarray,
    v_end: np.ndarray,
    newton: Newton,
) -> Ahead | None:
    """Linearise the equations of a step where an estimate of its velocity leads, and return the place.

    Parameters
    ----------
    system : System
        As :meth:`~femsim.step.system.System.assemble` left it at the start of the step; again so, where None is returned.
    state : State
        Start of the step.
    settings : StepSettings
        Settings of the step.
    v_hat : ndarray, (n,)
        The estimate of the representative velocity of the step, see :mod:`femsim.step.predict`.
    v_prescribed, v_end : ndarray, (n,)
        Velocities of the rows that are prescribed, in the step and at its end.
    newton : Newton
        When the step counts as solved.

    Returns
    -------
    ahead : Ahead or None
        Where the equations are linearised; None where one linearisation is asked for, which is that of the start, or where the
        forces there are not finite.
    """
    if newton.tolerance is None:
        return None
    place = np.where(system.prescribed, v_prescribed, v_hat) if system.prescribes else v_hat.copy()
    force, rates = _by_linearisation(system, place)
    if not np.isfinite(system.residual(settings, place, np.zeros(system.n), newton.still)):
        system.recall(state)  # what searches began there would go on from there
        system.assemble(state, settings, v_prescribed, v_end)
        return None
    system.linearise(settings, place)
    there, rates_there = _by_linearisation(system, place)
    beyond = np.abs(rates_there - rates).max(initial=0.0) if len(rates) == len(rates_there) else np.inf
    return Ahead(place, there - force, float(beyond))


def _by_linearisation(system: System, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return what the equations lack at a velocity without contacts, and velocities of rows of joints, as they are linearised."""
    A, lacking, rows = system.A, np.empty(system.n), system.joint_rows()
    scatter(A.indptr, A.indices, A.data, v, lacking)
    lacking -= system.b
    if rows is None:
        return lacking, np.zeros(0)
    velocity = np.empty(rows.n_rows)
    gather(rows.G.indptr, rows.G.indices, rows.G.data, v, velocity)
    return lacking - system.joints.push(), velocity + rows.offset


def solve_step(
    system: System,
    settings: StepSettings,
    rows: ContactRows,
    solver: Solver,
    warm: WarmStart,
    newton: Newton,
    ahead: Ahead | None = None,
    follow: Follow | None = None,
    patience: int = PATIENCE,
    again: bool = False,
) -> Solved:
    """Solve the nonlinear equations of a step, its contacts being those of its start.

    Each iterate is a contact problem, linearised where the last one led and warm-started by it; the contact law is exact in
    all of them, since it is linear in the velocities. The forces that bodies and couplings report are those of the last problem,
    so they balance to its tolerance. No other answer is returned than one of a problem that was solved to the tolerance of the
    solver.

    Parameters
    ----------
    system : System
        As :meth:`~femsim.step.system.System.assemble` left it at the start of the step, or :func:`linearise_ahead`.
    settings : StepSettings
        Settings of the step.
    rows : ContactRows
        Rows of the contacts.
    solver : Solver
        Contact solver.
    warm : WarmStart
        Where it starts.
    newton : Newton
        When to stop.
    ahead : Ahead, optional
        What :func:`linearise_ahead` returned. Default: the system is linearised where the step starts.
    follow : callable, optional
        Gives the rows of the contacts at the middle of the step by its v_hat, so that forces act where bodies are then. Default:
        they stay as at the start.
    patience : int
        Linearisations in a row that may leave more than half of the least residual before them while contacts follow; then they
        stay on their features, with 0 from the start, and if that is no better, where they are.
    again : bool
        Whether one linearisation will not be enough, as in the step before: where bodies are large or in a pile the first contact
        problem is then solved to the nonlinear tolerance or a part of it, and another one follows, even if its answer is enough
        after all.
    """
    guess, place = warm.v, None if ahead is None else ahead.place
    following = Following(follow, patience)
    loose = again and (system.lags or system.is_pile) and newton.max_solves > 1
    part = (_LOOSE_PILE if system.is_pile else _LOOSE) if loose else 0.0
    search = _Search(system, settings, solver, newton, following)
    first = search.begin(following.begin(rows, guess, place), warm, place, part * (newton.tolerance or 0.0))
    loose &= newton.tolerance is not None and first.holds(newton.tolerance)  # to be sharpened
    needed = newton.tolerance is not None and _needed_more(system, newton, rows, ahead, first)
    enough = _enough(system, rows, newton)
    lacked = math.inf  # of its own forces by a body where the last linearisation began that only this asked for
    while newton.tolerance is not None:
        goes_on = _goes_on(search, newton, enough) or (loose and search.solves == 1)
        if not goes_on:
            if search.solves >= newton.max_solves or not search.last.hides(newton, lacked):
                break
            lacked = search.last.own
        search.go_on()
    last, solution = search.last, search.answer()
    system.lead(solution.v)
    ahead_next = needed and _steady(system, guess, solution.v)
    return Solved(
        last.problem, solution, tuple(search.residuals), last.rows, following.followed, ahead_next, search.solves > 1 + loose
    )


class _Search:
    """The linearisations of a step, each about the place where those before it led.

    Attributes
    ----------
    last : _Iterate
        The last one.
    residuals : list of float
        Nonlinear residual of each.
    """

    last: _Iterate

    def __init__(self, system: System, settings: StepSettings, solver: Solver, newton: Newton, following: Following) -> None:
        self._system, self._settings, self._solver, self._newton, self._following = system, settings, solver, newton, following
        self.residuals: list[float] = []
        self._iterations, self._effort = 0, 0.0
        #: contact problems that were not solved
        self.unsolved = 0
        #: the last places, and what they led to
        self._places: list[np.ndarray] = []
        self._led_to: list[_Iterate] = []
        #: whether A lacks the second derivatives of where it is asked for
        self._lagged = False
        #: residual to which contact problems are solved; 0 where the solver does not come there
        self._aim = math.inf

    @property
    def solves(self) -> int:
        """Contact problems solved."""
        return len(self.residuals)

    def begin(self, rows: ContactRows, warm: WarmStart, place: np.ndarray | None, enough: float) -> _Iterate:
        """Solve on the first linearisation, that about a place or, where it is None, about the start."""
        last = self._attempt(rows, warm, place, enough)
        self._lagged = place is None  # then A is that of the start
        self._note(self._system.at_rest if place is None else place, last)
        return last

    def go_on(self) -> None:
        """Linearise about where the last ones led, and solve there."""
        system, settings, newton, last = self._system, self._settings, self._newton, self.last
        self._sharpen()
        held = self._by_whole_tangents()
        place = _next_place(system, settings, newton, self._places, self._led_to) if held is None else held.v
        lagged = system.lags and not self._lagged and last.residual <= _LAGGED * (newton.tolerance or 0.0)
        system.linearise(settings, place, lagged=lagged, positive=self.solves <= _LED and self._is_far())
        there = self._following.rows(last.led, last.solution.v, place)
        warm = started_from(last.solution) if held is None else WarmStart(held.v, held.lam)
        new = self._attempt(there, warm, place)
        if lagged and not new.solution.converged:
            lagged = False
            _nonlinear_residual(system, settings, newton, place, np.zeros(system.n))
            system.linearise(settings, place)
            new = self._attempt(there, warm, place)
        self._lagged = lagged
        self._following.judge(new.led, new.residual, min(self.residuals))
        self._note(place, new)

    def _by_whole_tangents(self) -> Held | None:
        """Return the nearest place to which whole tangents lead, at which the residual was asked last; None where none is nearer.

        Contacts are held in their states, see :mod:`femsim.step.whole_tangents`. Nearer is what lacks less force: what moves
        wildly has large forces, of which it may lack a smaller part.
        """
        system, last, tolerance = self._system, self.last, self._newton.tolerance or 0.0
        problem = last.problem
        plain = problem.rows is None and problem.softness is None and problem.friction.ndim == 1
        if not plain or last.residual <= _WHOLE * tolerance:
            return None
        at = Held(last.solution.v, last.solution.lam)
        best: Held | None = None
        least, since, moved = last.residual * system.scale, 0, False
        for _ in range(_HELD):
            data = system.whole_tangents(self._settings)
            found = None if data is None else system.whole.step(data, system.lacking, at, problem, last.led.J, last.led.phi)
            if found is None:
                break
            at, moved = found, True
            residual = self._residual_at(at)
            since += 1
            lacks = residual * system.scale
            if lacks < least and system.turned(at.v - last.solution.v) * self._settings.dt <= _TURNED:
                best, least, since = at, lacks, 0
            if residual <= tolerance or since == _SINCE or not math.isfinite(residual):
                break
        if best is not None and best is not at:
            self._residual_at(best)
        elif best is None and moved:
            _nonlinear_residual(system, self._settings, self._newton, last.solution.v, last.push)
        return best

    def _residual_at(self, at: Held) -> float:
        """Ask the nonlinear residual at velocities and forces of the contacts where the last answer leads."""
        push = times_transposed(self.last.led.J, at.lam.ravel())
        return _nonlinear_residual(self._system, self._settings, self._newton, at.v, push)

    def _is_far(self) -> bool:
        """Whether the last answer is far from the one that is sought, or the way there so narrow that residuals hardly fall."""
        residual, least = self.last.residual, min(self.residuals[:-1], default=math.inf)
        slow = residual > _HARDLY * least and residual > _NEAR * (self._newton.tolerance or 0.0)
        return residual > _FAR or slow

    def _sharpen(self) -> None:
        """Ask more of contact problems where what an answer lacks of its own equations is much of the nonlinear residual."""
        last, tolerance = self.last, _SHARE * (self._newton.tolerance or 0.0)
        residual = measured(last.problem, last.solution).dynamics_residual
        if self._aim < math.inf:
            self._aim = self._aim if residual <= self._aim else 0.0
            return
        left = _residual_of_solver(self._system, last)
        if last.solution.converged and left > tolerance:
            self._aim = residual * tolerance / left

    def answer(self) -> Solution:
        """Return the last answer, with the iterations of all; not converged where the equations do not hold."""
        details = {**self.last.solution.details, "effort": self._effort / self.solves}
        told = self.last.solution.told(iterations=self._iterations, details=details)
        return _judged(self.last, told, self.solves, self._newton)

    def _attempt(self, rows: ContactRows, warm: WarmStart, place: np.ndarray | None, enough: float = 0.0) -> _Iterate:
        demand = _Demand(enough, self._aim or math.inf)
        return _solve_linearised(
            self._system, self._settings, self._solver, self._newton, rows, warm, self._following.now, place, demand
        )

    def _note(self, place: np.ndarray, last: _Iterate) -> None:
        """Count a linearisation, and remember where it was and what it led to."""
        self.last = last
        self.unsolved += not last.solution.converged
        self._places, self._led_to = [*self._places[-_MEMORY:], place], [*self._led_to[-_MEMORY:], last]
        self.residuals.append(last.residual)
        self._iterations += last.solution.iterations
        self._effort += _effort(self._solver, last.solution)


@dataclass
class _Iterate:
    """Contact problem of a linearisation, its answer with its forces J^T lam, (n,), and the nonlinear residual of both.

    ``rounding`` is the part of the residual that rounding may make, ``own`` the residual of the body that lacks most of its own
    forces, ``driven`` what the linearisation lacks of the forces of drives, and ``creep`` by how much contacts go otherwise on
    other rows, see :func:`_creep`; ``rows`` are those of the problem, ``led`` those where its answer leads, on which the forces
    act.
    """

    problem: ContactProblem
    rows: ContactRows
    led: ContactRows
    solution: Solution
    push: np.ndarray
    residual: float
    rounding: float
    own: float
    driven: float
    creep: float

    def holds(self, tolerance: float) -> bool:
        """Whether the equations of the step hold to a tolerance, or to rounding."""
        return self.residual <= max(tolerance, self.rounding)

    def hides(self, newton: Newton, lacked: float = math.inf) -> bool:
        """Whether the equations hold together, but not those of a light body by its own forces, of contacts, or of drives.

        Where a linearisation was taken for that already, before which a body ``lacked`` so much of its own forces: whether it
        helped this body, and not enough.
        """
        if newton.tolerance is None or not self.solution.converged or self.residual > newton.tolerance:
            return False
        if self.own > _OWN * newton.tolerance and self.residual > self.rounding:
            return self.own <= _HELPED * lacked
        return math.isinf(lacked) and (self.creep > newton.creep or self.driven > _OWN * newton.tolerance)


class _Demand(NamedTuple):
    """Residual at which the answer of a contact problem may stop, and to which it should go on."""

    enough: float
    aim: float


def _residual_of_solver(system: System, last: _Iterate) -> float:
    """Nonlinear residual that an answer makes by what it lacks of the equations of its own problem."""
    problem, found = last.problem, last.solution
    lacking = problem.times(found.v) - problem.b - problem.pushed(found.lam)
    if problem.rows is not None and found.row_forces is not None:
        lacking -= times_transposed(problem.rows.G, found.row_forces)
    if system.prescribes:
        lacking[system.prescribed] = 0.0
    return max(metrics.norm(lacking / np.sqrt(system.diagonal())) / system.scale, system.share(lacking) / _OWN)


def _creep(rows: ContactRows, led: ContactRows, found: Solution) -> float:
    """Speed, m/s, by which contacts go otherwise by an answer on the rows where it leads than on those of its problem.

    That along normals counts more, since bodies sink into each other by it.
    """
    if led is rows or not len(found.lam):
        return 0.0
    one, other = rows.J, led.J
    return _creep_of(
        one.indptr, one.indices, one.data, rows.phi, other.indptr, other.indices, other.data, led.phi, found.v, found.lam,
        _SINK, _SLIP,
    )  # fmt: skip


def _needed_more(system: System, newton: Newton, rows: ContactRows, ahead: Ahead | None, first: _Iterate) -> bool:
    """Whether one linearisation at the start was not enough for a step, or would not have been for one linearised ahead.

    Its answer would have lacked what forces are beyond that linearisation where it leads; ``rows`` are the contacts of the start.
    """
    assert newton.tolerance is not None
    if ahead is None:
        return not first.holds(newton.tolerance) or first.hides(newton)
    beyond = ahead.force
    if first.led is not rows:
        beyond = beyond - first.push + times_transposed(rows.J, first.solution.lam.ravel())
    if system.prescribes:
        beyond = np.where(system.prescribed, 0.0, beyond)
    lacking = metrics.norm(beyond / np.sqrt(system.diagonal()))
    if _creep(rows, first.led, first.solution) > newton.creep:
        return True
    if ahead.rate > newton.still or lacking > max(newton.tolerance, first.rounding) * system.scale:
        return True
    return lacking > first.rounding * system.scale and system.share(beyond) > _OWN * newton.tolerance


def _steady(system: System, before: np.ndarray, v_hat: np.ndarray) -> bool:
    """Whether the velocity before is a better guess of v_hat than none, by :data:`_STEADY`, in the norm of the diagonal of A."""
    root, change = np.sqrt(system.diagonal()), v_hat - before
    if system.prescribes:
        change = np.where(system.prescribed, 0.0, change)
    return metrics.norm(root * change) <= _STEADY * metrics.norm(root * v_hat)


def _solve_linearised(
    system: System,
    settings: StepSettings,
    solver: Solver,
    newton: Newton,
    rows: ContactRows,
    warm: WarmStart,
    follow: Follow | None,
    place: np.ndarray | None,
    demand: _Demand,
) -> _Iterate:
    """Solve the contact problem of the linearisation about a place, None for the start; bodies and couplings take its forces.

    Where the problem cannot be solved, again with an A that is surely positive definite, if that is another one.
    """
    problem = rows.problem(system, settings.dt, *demand)
    solution: Solution | None = None
    try:
        solution = _solved(solver, problem, warm, place)
    except ContactError:
        if place is None:
            raise
    if place is not None and not (solution is not None and solution.converged):
        _nonlinear_residual(system, settings, newton, place, np.zeros(system.n))
        if system.linearise(settings, place, positive=True) or solution is None:
            problem, solution = rows.problem(system, settings.dt, *demand), None
    solution = _but_for_repeated(_solved(solver, problem, warm, place) if solution is None else solution, newton)
    if (fastest := largest(solution.v)) > _LIGHT:
        raise ContactError(f"The equations of the step lead to a speed of {fastest:.1e} m/s or rad/s; take a smaller dt.")
    system.accept(solution.v, solution.row_forces)
    led = rows if follow is None or not math.isfinite(fastest) else follow(solution.v)
    push = problem.pushed(solution.lam) if led is rows else times_transposed(led.J, solution.lam.ravel())
    residual = _nonlinear_residual(system, settings, newton, solution.v, push)
    creep = _creep(rows, led, solution)
    driven = system.driven_lack(solution.v) if newton.tolerance is not None and residual <= newton.tolerance else 0.0
    return _Iterate(problem, rows, led, solution, push, residual, system.rounding, system.worst_share, driven, creep)


def _solved(solver: Solver, problem: ContactProblem, warm: WarmStart, place: np.ndarray | None) -> Solution:
    """Solve a problem that is linearised about a place, for what velocities are beyond it where digits of theirs are missing.

    Its residuals are those of the problem that was solved.
    """
    if place is None or metrics.rounding_at_most(problem, place) <= _DIGITS:
        return solver.solve(problem, warm)
    found = solver.solve(problem.about(place), WarmStart(warm.v - place, warm.lam, warm.row_forces))
    return replace(found, v=place + found.v, law=None)


def _nonlinear_residual(system: System, settings: StepSettings, newton: Newton, v: np.ndarray, push: np.ndarray) -> float:
    """Nonlinear residual at a velocity and contact forces, (n,) each; above the tolerance also where a joint stays open.

    Joints count as closed where they would open at no more than ``still``.
    """
    residual = system.residual(settings, v, push, newton.still)
    if newton.tolerance is None or not system.joints:
        return residual
    return max(residual, newton.tolerance * system.opening / (newton.still * settings.dt))


def _but_for_repeated(solution: Solution, newton: Newton) -> Solution:
    """Take an answer as converged that lacks only what joints ask for which repeat others, and which no velocities give.

    An over-constrained loop that turns has such rows while it is not closed to rounding. How far joints then open is part of the
    nonlinear residual, so that joints which do not fit each other are no converged step.
    """
    if newton.tolerance is None or "contradiction" not in solution.details:
        return solution
    return replace(solution, status="converged")


def _effort(solver: Solver, solution: Solution) -> float:
    """Part of the iterations allowed that a solution took; of the solver that answered, where one was picked."""
    limit = solution.details.get("max_iterations") or getattr(getattr(solver, "options", None), "max_iterations", None)
    return float(solution.iterations / limit) if limit else 0.0


def started_from(solution: Solution) -> WarmStart:
    """Return the start of a solve that goes on from an answer."""
    return WarmStart(solution.v, solution.lam, solution.row_forces)


def _enough(system: System, rows: ContactRows, newton: Newton) -> float:
    """Nonlinear residual to which a step is linearised again: the tolerance, and less where all bodies fly freely."""
    tolerance = newton.tolerance or 0.0
    if len(rows.phi) or system.prescribes or system.is_held:
        return tolerance
    return min(tolerance, max(_FLIGHT * tolerance, _FLIGHT_LEAST))


def _goes_on(search: _Search, newton: Newton, enough: float) -> bool:
    """Whether a step is linearised once more, unless its residual is ``enough``."""
    last = search.last
    if newton.tolerance is None or last.holds(enough) or search.solves >= newton.max_solves or search.unsolved >= _UNSOLVED:
        return False
    return bool(np.isfinite(last.residual)) and _leads_on(last, newton.tolerance)


def _leads_on(last: _Iterate, tolerance: float) -> bool:
    """Whether the answer of a contact problem is good enough to linearise about it: solved, or nearly by this tolerance."""
    if last.solution.converged:
        return True
    found = measured(last.problem, last.solution)
    return max(found.dynamics_residual, found.contact_residual, found.row_residual) <= _NEARLY * tolerance


def measured(problem: ContactProblem, solution: Solution) -> metrics.Metrics:
    """Return all residuals of an answer by the yardstick."""
    forces = None if problem.rows is None else solution.row_forces
    return metrics.measure(problem, solution.v, solution.lam, row_forces=forces, known=solution.residuals, law=solution.law)


def _next_place(
    system: System, settings: StepSettings, newton: Newton, places: list[np.ndarray], led_to: list[_Iterate]
) -> np.ndarray:
    """Velocity to linearise about, at which the residual was asked last.

    That is the last solution, or where by Anderson's extrapolation the last few places and the solutions that they led to
    coincide, if the residual is lower there: the tangents of some forces are not exact, and Newton's method alone then converges
    slowly.
    """
    last = led_to[-1]
    if len(places) > 1:
        v = np.array([one.solution.v for one in led_to])
        gap = np.sqrt(system.diagonal()) * (v - np.array(places))
        share = np.linalg.lstsq((gap[:-1] - gap[-1]).T, -gap[-1], rcond=1e-8)[0]
        shares = np.append(share, 1.0 - share.sum())
        place, push = shares @ v, shares @ np.array([one.push for one in led_to])
        if _nonlinear_residual(system, settings, newton, place, push) < last.residual:
            return np.asarray(place)
        _nonlinear_residual(system, settings, newton, last.solution.v, last.push)
    return last.solution.v


def _judged(last: _Iterate, solution: Solution, solves: int, newton: Newton) -> Solution:
    """Not converged where the contact problem is solved, but not the nonlinear equations."""
    if newton.tolerance is None or last.holds(newton.tolerance) or not solution.converged:
        return solution
    return replace(
        solution,
        status="stopped at the limit",
        message=f"{NOT_SOLVED} still lack {last.residual:.2g} of their forces after {solves} linearisations; "
        f"asked for is {newton.tolerance:g}. Take a smaller dt.",
    )

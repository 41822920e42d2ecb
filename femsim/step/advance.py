"""Steps that fail: the state from before is restored, and the step is taken as two halves, and these again."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from contact import ContactError, ContactProblem, Metrics
from femsim.step.contacts import ContactForces
from femsim.step.locked import UNPUSHED, calmer, locked_parts, runs_away
from femsim.step.report import Acted, StepReport
from femsim.step.state import State
from femsim.step.stepper import Stepper
from femsim.step.system import System
from femsim.step.vitals import Vitals

#: How a step may end, from good to bad. Contacts without a solution have none in parts of the step either.
SOLVED, MADE_ENERGY, SANK, NOT_CONVERGED, INSIDE_OUT, INFEASIBLE, NOT_FINITE = range(7)
#: Steps that leave no contact out after one that did and was taken again: where that goes on, each step would be taken twice.
#: Twice as many where the next one that does is taken again too, up to the most: between flat pads every ninth step was, which
#: took four linearisations for one.
_WHOLE, _WHOLE_MOST = 8, 128


@dataclass(frozen=True)
class Attempt:
    """What came of a step: its length (s), how it ended, and its report or its error."""

    dt: float
    grade: int
    report: StepReport | None
    error: Exception | None


@dataclass(frozen=True)
class _Outcome:
    """Where a step ended, to go back there."""

    state: State
    problem: ContactProblem | None
    acted: Acted

    @classmethod
    def of(cls, stepper: Stepper) -> _Outcome:
        """Outcome of the last step; its problem has a matrix of its own, since the next step overwrites that of the system."""
        problem = stepper.problem
        if problem is not None:
            A = copy.copy(problem.A)  # with the same arrays of indices, by which solvers recognise a pattern
            A.data = A.data.copy()
            problem = replace(
                problem,
                A=A,
                b=problem.b.copy(),
                b_prescribed=None if problem.b_prescribed is None else problem.b_prescribed.copy(),
            )
        return cls(stepper.state, problem, stepper.system.acted())

    def restore(self, stepper: Stepper) -> None:
        """Make the simulation what it was then."""
        stepper.restore(self.state)
        stepper.system.take_acted(self.acted)
        stepper.problem = self.problem


def take_step(stepper: Stepper, max_halvings: int = 0) -> StepReport:
    """Take one time step, and where it fails take it in halves.

    A step fails when its numbers are not finite, when an element ends inverted beyond recovery that was not before
    (``Body.inside_out``), when the judge says that it did not converge, when bodies sank into each other, or when it made energy
    from nothing. Then the state from before is restored and two steps of half the length are taken, each of which may be halved
    again, ``max_halvings`` times in all. Halves are taken only if they end better, all of them, and those of an energy-momentum
    step only if they are solved; otherwise the step is what it was without halving, to the last bit, and reported so. After such
    a step, those that end finite are taken as they are until one is solved again, since trying costs ``max_halvings`` solves. A
    step whose contacts are proved infeasible is not halved: what closes on a body in it does so in the last of its parts too.
    Where an energy-momentum step is neither solved nor mended by halves, backward Euler takes it if that ends no worse:
    velocities at the end of a step that was not solved would otherwise turn round and grow from step to step. One that is solved,
    but in which bodies sank or energy came from nothing, stays unless backward Euler mends it.

    Parameters
    ----------
    stepper : Stepper
        The simulation; its ``step`` takes the step.
    max_halvings : int
        How often a step that fails is halved. Default 0: never.

    Returns
    -------
    StepReport
        Of the whole step, see :func:`joined`.

    Raises
    ------
    ContactError, numpy.linalg.LinAlgError
        That of the whole step, where it gave nothing to go on with.
    """
    if max_halvings == 0:
        return _step(stepper)
    before, end = stepper.state, stepper.state.t + stepper.settings.dt
    whole = attempt(stepper)
    vain = whole.grade == INFEASIBLE or (before.halving_is_vain and whole.grade < NOT_FINITE)
    if whole.report is not None and (whole.grade == SOLVED or (vain and not stepper.settings.conserving)):
        stepper.state = replace(stepper.state, halving_is_vain=vain and whole.grade != SOLVED)
        return whole.report
    outcome = _Outcome.of(stepper)
    bound = min(whole.grade, NOT_CONVERGED) if stepper.settings.conserving else whole.grade
    halves = None if vain else _halves(stepper, before, whole, bound, max_halvings)
    if halves is not None:
        # the time is that asked for, not what rounding makes of the sum
        stepper.state = replace(stepper.state, t=end, step=before.step + 1, halving_is_vain=False)
        report = joined(halves, end)
        stepper.system.take_acted(report.acted)
        return report
    damped = _by_backward_euler(stepper, before) if stepper.settings.conserving else None
    worst = SOLVED if whole.grade < NOT_CONVERGED else whole.grade
    if damped is not None and damped.report is not None and damped.grade <= worst:
        stepper.state = replace(stepper.state, halving_is_vain=damped.grade != SOLVED)
        return damped.report
    if whole.report is None:
        assert whole.error is not None
        stepper.restore(before)
        raise whole.error
    outcome.restore(stepper)
    stepper.state = replace(stepper.state, halving_is_vain=True)
    return whole.report


def _by_backward_euler(stepper: Stepper, before: State) -> Attempt:
    """Go back and take a step of the energy-momentum scheme by backward Euler."""
    stepper.restore(before)
    settings = stepper.settings
    try:
        stepper.settings = replace(settings, theta=1.0, conserving=False, strain_damping=0.0)
        return attempt(stepper)
    finally:
        stepper.settings = settings


def attempt(stepper: Stepper) -> Attempt:
    """Take a step of ``stepper.settings.dt``, a whole one or a part of one, and grade it."""
    old, dt = stepper.state, stepper.settings.dt
    try:
        report = _step(stepper)
    except (ContactError, np.linalg.LinAlgError) as error:  # the step gave numbers that nothing can go on with
        return Attempt(dt, NOT_FINITE, None, error)
    if not report.finite:
        grade = NOT_FINITE
    elif report.solution.status == "infeasible":
        grade = INFEASIBLE
    elif report.inverted_elements and newly_inside_out(stepper.system, old, stepper.state):
        grade = INSIDE_OUT
    elif not report.solution.converged:
        grade = NOT_CONVERGED
    elif report.sank:
        grade = SANK
    else:
        grade = MADE_ENERGY if report.gained else SOLVED
    return Attempt(dt, grade, report, None)


def _step(stepper: Stepper) -> StepReport:
    """Take a step; again without the weakest of the joints that contradict each other or the way, as long as one can break.

    Their forces have no bound, so it breaks before the step ends. Again, too, with all contacts where some were left out that
    others seemed to hold, and did not; so are the next steps then, at once. And again without pushing anything apart where the
    forces of contacts run away, see :mod:`femsim.step.locked`; so are the next steps where that calms them.
    """
    before, tried = stepper.state, 0
    whole, left, pushing, unpushed = before.whole > 0, max(before.whole - 1, 0), before.unpushed == 0, max(before.unpushed - 1, 0)
    again = before.whole_again if whole else 0
    first: tuple[StepReport, _Outcome] | None = None
    while True:
        try:
            with np.errstate(over="ignore", invalid="ignore"):  # numbers that are not finite are seen, and reported
                report = stepper.step(whole=whole, pushing=pushing)
        except (ContactError, np.linalg.LinAlgError):
            if first is None:
                raise
            report, outcome = first
            outcome.restore(stepper)
            break
        report.solves += tried
        if report.spared:
            tried, whole, left = report.solves, True, max(before.whole_again, _WHOLE)
            again = min(2 * left, _WHOLE_MOST)
            stepper.restore(before)
            continue
        if first is None:
            weakest = stepper.system.joints.weakest(report.solution.details.get("contradicting_rows", ()))
            if weakest is None and report.finite:
                weakest = stepper.overcome(report)
            if weakest is not None:
                stepper.restore(before)
                stepper.system.couplings[weakest].break_off()
                stepper.state = before = stepper.system.remember(before)
                continue
            assert stepper.problem is not None
            rules, margin = stepper.contacts.rules, stepper.scene.margin
            if pushing and runs_away(report, before, stepper.system, stepper.settings, margin, stepper.problem, rules):
                first, tried, pushing = (report, _Outcome.of(stepper)), report.solves, False
                stepper.restore(before)
                continue
        elif calmer(report, first[0]):
            unpushed = UNPUSHED
            report.vitals = replace(report.vitals, locked=locked_parts(report, first[0]))
        else:
            tried, (report, outcome) = report.solves, first
            report.solves = tried
            outcome.restore(stepper)
        break
    stepper.state.whole, stepper.state.unpushed, stepper.state.whole_again = left, unpushed, again
    return report


def newly_inside_out(system: System, old: State, new: State) -> bool:
    """Whether an element is inverted beyond recovery in a state, that of the last update, that was not in the one before."""
    for body, q in zip(system.bodies, system.q_slices, strict=True):
        if body.inverted_elements and (body.inside_out(new.q[q]) & ~body.inside_out(old.q[q])).any():
            return True
    return False


def _halves(stepper: Stepper, before: State, whole: Attempt, bound: int, depth: int) -> list[Attempt] | None:
    """Go back and take a step in halves, each if need be in halves again; None where one of them ends at ``bound`` or worse."""
    stepper.restore(before)
    settings = stepper.settings
    taken: list[Attempt] = []
    try:
        for _ in range(2):
            start = stepper.state
            stepper.settings = replace(settings, dt=0.5 * whole.dt)
            half = attempt(stepper)
            parts = [half]
            if half.grade not in (SOLVED, INFEASIBLE) and depth > 1:
                outcome = _Outcome.of(stepper)
                finer = _halves(stepper, start, half, min(bound, half.grade), depth - 1)
                if finer is None:
                    outcome.restore(stepper)
                else:
                    parts = finer
            if max(part.grade for part in parts) >= bound:
                return None
            taken += parts
            stepper.state = replace(stepper.state, step=before.step)
    finally:
        stepper.settings = settings
    return taken


def _mean(values: Sequence[np.ndarray], weights: np.ndarray) -> np.ndarray:
    """Weighted mean of arrays."""
    return np.asarray(sum(w * value for w, value in zip(weights, values, strict=True)))


def joined(parts: Sequence[Attempt], end: float) -> StepReport:
    """Report of a step that ends at a time (s) from those of its sub-steps.

    Forces and wrenches are means over the step (the impulse over dt), residuals and the largest slip those of the worst part,
    iterations the sum; contacts, energies, penetration and inverted elements are those at the end.
    """
    reports = [part.report for part in parts if part.report is not None]
    weights = np.array([part.dt for part in parts]) / sum(part.dt for part in parts)
    last = reports[-1]
    worst = next((report for report in reports if not report.solution.converged), last)
    details = dict(last.solution.details)
    for name in ("virtual_slip", "effort"):
        if name in details:
            details[name] = max(report.solution.details.get(name, 0.0) for report in reports)
    solution = replace(
        last.solution, status=worst.solution.status, details=details,
        message=f"The step was taken in {len(parts)} sub-steps. {worst.solution.message}",
        iterations=sum(report.solution.iterations for report in reports),
    )  # fmt: skip
    metrics = {field.name: max(getattr(report.metrics, field.name) for report in reports) for field in fields(Metrics)}
    each = [report.forces for report in reports]
    forces = ContactForces(
        last.contacts,
        wrench=_mean([one.wrench for one in each], weights),
        spin=_mean([one.spin for one in each], weights),
        force_sum=_mean([one.force_sum for one in each], weights),
        node_force=_mean([one.node_force for one in each], weights),
        generalized=_mean([one.generalized for one in each], weights),
    )
    acted = {
        thing: {name: _mean([report.acted[thing][name] for report in reports], weights) for name in named}
        for thing, named in last.acted.items()
    }
    unbalanced = max(reports, key=lambda report: report.wrench_balance).unbalanced
    lacking = max(reports, key=lambda report: report.nonlinear_residual).lacking
    return replace(
        last, time=end, solution=solution, metrics=Metrics(**metrics), forces=forces, acted=acted,
        mount={name: _mean([report.mount[name] for report in reports], weights) for name in last.mount},
        parts=tuple(part for report in reports for part in report.parts),  # parts of an adaptive step may be halved themselves
        ends=tuple(end for report in reports for end in report.ends),
        max_slip=max(report.max_slip for report in reports),
        wrench_balance=max(report.wrench_balance for report in reports),
        nonlinear_residual=max(report.nonlinear_residual for report in reports),
        unbalanced=unbalanced, lacking=lacking, solves=sum(report.solves for report in reports),
        theta=max(report.theta for report in reports),
        time_error=max(report.time_error for report in reports),
        vitals=Vitals.joined([report.vitals for report in reports]),
    )  # fmt: skip

"""Steps that cannot be solved at once: what moved is put back, and the step is taken as two halves, and these again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from contact import ContactError, Metrics
from femsim.step.state import State
from femsim.step.system import System

if TYPE_CHECKING:
    from femsim.step.report import StepReport
    from femsim.step.stepper import Stepper

#: How a step may end, from good to bad.
SOLVED, NOT_CONVERGED, INSIDE_OUT, NOT_FINITE = range(4)


class Attributes:
    """What an object holds now, to be put back into it: the arrays with their content, all else as it stands.

    Parameters
    ----------
    thing : object
        Any object.
    names : sequence of str, optional
        Some of its attributes; default all.
    """

    def __init__(self, thing: object, names: Sequence[str] | None = None) -> None:
        self._thing = thing
        held = vars(thing) if names is None else {name: getattr(thing, name) for name in names}
        self._held = dict(held)
        self._content = {
            name: value.copy() for name, value in held.items() if isinstance(value, np.ndarray) and value.flags.writeable
        }

    def put_back(self) -> None:
        """Give the object the same arrays again, with the same content."""
        for name, value in self._held.items():
            if name in self._content:
                value[...] = self._content[name]
            setattr(self._thing, name, value)


class Snapshot:
    """All of a simulation that one step changes and the next one reads, to the last bit.

    Bodies say what they keep beside their coordinates by ``memory`` and take it back by ``recall``; couplings are kept
    by their attributes. What solvers remember (factors, estimates of cost) stays as it is: it decides how long they need,
    not what they answer.

    Parameters
    ----------
    stepper : Stepper
        The simulation.
    whole : bool
        Also what a step leaves only for those who read it afterwards: its system, contact problem and forces.
    """

    def __init__(self, stepper: Stepper, *, whole: bool = False) -> None:
        system, collision = stepper.system, stepper.collision
        self._stepper = stepper
        self._memories = [body.memory() for body in system.bodies]
        kept = [Attributes(stepper)]
        kept += [Attributes(coupling) for coupling in system.couplings]
        kept += [Attributes(memory) for memory in collision.memories]
        if whole:
            kept += [Attributes(system), Attributes(system.A, ("data",)), Attributes(collision, collision.step_means)]
            if collision.touching is not None:
                kept.append(Attributes(collision.touching))
        self._kept = kept

    def put_back(self) -> None:
        """Make the simulation what it was; as often as wanted."""
        stepper = self._stepper
        for kept in self._kept:
            kept.put_back()
        for body, memory in zip(stepper.system.bodies, self._memories, strict=True):
            body.recall(memory)
        stepper.collision.update_poses(stepper.state)


@dataclass(frozen=True)
class _Attempt:
    """What came of a step: its length (s), how it ended, its report or its error, and of a sub-step what acted in it."""

    dt: float
    grade: int
    report: StepReport | None
    error: Exception | None
    acted: list[dict[str, Any]]


def take_step(stepper: Stepper) -> StepReport:
    """Take one time step, and where it cannot be solved take it in halves.

    A step is not solved when its numbers are not finite, when an element ends inverted beyond recovery that was not before
    (``Body.inside_out``), or when the judge says that it did not converge. Then everything is put back and two
    steps of half the length are taken, each of which may be halved again, ``max_halvings`` times in all. Halves are taken
    only if they end better, all of them; otherwise the step is what it was without halving, to the last bit, and reported so.
    After such a step, those that end finite are taken as they are until one is solved again, since trying costs
    ``max_halvings`` solves.

    Parameters
    ----------
    stepper : Stepper
        The simulation; its ``attempt`` takes the step.

    Returns
    -------
    StepReport
        Of the whole step, see :func:`_joined`.

    Raises
    ------
    ContactError, numpy.linalg.LinAlgError
        That of the whole step, where it gave nothing to go on with.
    """
    if stepper.max_halvings == 0:
        return stepper.attempt()
    before, end = Snapshot(stepper), stepper.state.t + stepper.settings.dt
    whole = _attempt(stepper)
    if whole.report is not None and (whole.grade == SOLVED or (whole.grade < NOT_FINITE and stepper.halving_is_vain)):
        stepper.halving_is_vain &= whole.grade != SOLVED
        return whole.report
    after = Snapshot(stepper, whole=True)
    halves = _halves(stepper, before, whole, whole.grade, stepper.max_halvings)
    if halves is not None:
        stepper.halving_is_vain = False
        stepper.state = replace(stepper.state, t=end)  # not what rounding makes of the sum
        return _joined(stepper, halves)
    if whole.report is None:
        assert whole.error is not None
        before.put_back()
        raise whole.error
    after.put_back()
    stepper.halving_is_vain = True
    return whole.report


def _attempt(stepper: Stepper, *, part: bool = False) -> _Attempt:
    """Take a step of ``stepper.settings.dt``, a whole one or a part of one, and grade it."""
    old, dt = stepper.state, stepper.settings.dt
    try:
        report = stepper.attempt()
    except (ContactError, np.linalg.LinAlgError) as error:  # the step gave numbers that nothing can go on with
        return _Attempt(dt, NOT_FINITE, None, error, [])
    if not report.finite:
        grade = NOT_FINITE
    elif report.inverted_elements and newly_inside_out(stepper.system, old, stepper.state):
        grade = INSIDE_OUT
    else:
        grade = SOLVED if report.solution.converged else NOT_CONVERGED
    things = _acting(stepper) if part else []
    return _Attempt(dt, grade, report, None, [{name: _copy(getattr(t, name)) for name in t.step_means} for t in things])


def newly_inside_out(system: System, old: State, new: State) -> bool:
    """Whether an element is inverted beyond recovery in a state, that of the last update, that was not in the one before."""
    for body, q in zip(system.bodies, system.q_slices, strict=True):
        if body.inverted_elements and (body.inside_out(new.q[q]) & ~body.inside_out(old.q[q])).any():
            return True
    return False


def _halves(stepper: Stepper, before: Snapshot, whole: _Attempt, bound: int, depth: int) -> list[_Attempt] | None:
    """Go back and take a step in halves, each if need be in halves again; None where one of them ends at ``bound`` or worse."""
    before.put_back()
    settings, number = stepper.settings, stepper.step_count
    taken: list[_Attempt] = []
    try:
        for _ in range(2):
            start = Snapshot(stepper)
            stepper.settings = replace(settings, dt=0.5 * whole.dt)
            half = _attempt(stepper, part=True)
            parts = [half]
            if half.grade != SOLVED and depth > 1:
                after = Snapshot(stepper, whole=True)
                finer = _halves(stepper, start, half, min(bound, half.grade), depth - 1)
                if finer is None:
                    after.put_back()
                else:
                    parts = finer
            if max(part.grade for part in parts) >= bound:
                return None
            taken += parts
            stepper.step_count = number
    finally:
        stepper.settings = settings
    return taken


def _acting(stepper: Stepper) -> list[Any]:
    """Whatever says what acted in the last step."""
    things = [*stepper.system.bodies, *stepper.system.couplings, stepper.collision]
    return [thing for thing in things if hasattr(thing, "step_means")]


def _copy(value: Any) -> Any:
    return tuple(_copy(one) for one in value) if isinstance(value, tuple) else np.array(value)


def _mean(values: list[Any], weights: np.ndarray) -> Any:
    """Weighted mean of numbers, arrays or tuples of them."""
    if isinstance(values[0], tuple):
        return tuple(_mean(list(each), weights) for each in zip(*values, strict=True))
    return sum(w * value for w, value in zip(weights, values, strict=True))


def _joined(stepper: Stepper, parts: list[_Attempt]) -> StepReport:
    """Report of a step from those of its parts, and the same for bodies, couplings and contacts.

    Forces and wrenches are means over the step (the impulse over dt), residuals and the largest slip those of the worst part,
    iterations the sum; contacts, energies, penetration and inverted elements are those at the end.
    """
    reports = [part.report for part in parts if part.report is not None]
    weights = np.array([part.dt for part in parts]) / sum(part.dt for part in parts)
    for k, thing in enumerate(_acting(stepper)):
        for name in thing.step_means:
            mean = _mean([part.acted[k][name] for part in parts], weights)
            setattr(thing, name, float(mean) if np.ndim(mean) == 0 else mean)
    last = reports[-1]
    worst = next((report for report in reports if not report.solution.converged), last)
    said = f"The step was taken in {len(parts)} sub-steps. {worst.solution.message}"
    details = dict(last.solution.details)
    if "virtual_slip" in details:
        details["virtual_slip"] = max(report.solution.details.get("virtual_slip", 0.0) for report in reports)
    solution = replace(
        last.solution, status=worst.solution.status, message=said, details=details,
        iterations=sum(report.solution.iterations for report in reports),
    )  # fmt: skip
    metrics = {field.name: max(getattr(report.metrics, field.name) for report in reports) for field in fields(Metrics)}
    mount = {name: _mean([report.mount[name] for report in reports], weights) for name in last.mount}
    stepper.step_count = last.step
    return replace(
        last, time=stepper.state.t, solution=solution, metrics=Metrics(**metrics), mount=mount,
        parts=tuple((part.dt, report.contacts) for part, report in zip(parts, reports, strict=True)),
        max_slip=max(report.max_slip for report in reports),
        wrench_balance=max(report.wrench_balance for report in reports),
    )  # fmt: skip

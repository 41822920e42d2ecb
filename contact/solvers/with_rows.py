"""Solvers of hard contacts alone on problems with rows or soft contacts: reduced, solved, and judged as given."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial, wraps
from typing import Any, TypeVar, cast

import numpy as np

from contact.metrics import contact_residual, residuals, row_residual
from contact.metrics_kernels import TINY
from contact.problem import ContactProblem
from contact.reduction import Reduction
from contact.rows import Rows
from contact.solvers.base import Solution, WarmStart
from contact.solvers.judge import unbalanced

#: An answer that converged on the reduced problem but not on the given one is asked for again with this part of the tolerance at
#: most and the second at least, between them with the third of what would do: weak rows may stand beside strong contacts ...
_TIGHTER, _TIGHTEST, _SURER = 0.1, 1e-3, 0.3
#: ... at most so many times.
_REPEATS = 3
#: Bounds are wide that are so many times further apart than what a row alone takes.
_WIDE = 1000.0
#: Rows that a message names.
_SHOWN = 6
#: What holds or lacks, where it is more than one.
_SEVERAL = ("the dynamics", "the rows")

Solve = TypeVar("Solve", bound=Callable[..., Solution])


def takes_rows(solve: Solve) -> Solve:
    """Make a method ``solve`` of a solver take rows and soft contacts, which it meets as hard contacts (``contact.reduction``).

    The answer has ``row_forces``. It counts as converged only where dynamics, balance, contact law and the law of the rows hold
    in the problem as it was given; the history is that of the reduced problem. Where all holds but rows that repeat others and
    ask for something else, ``details["contradiction"]`` is the residual of the rows: no velocities make it less.
    """

    @wraps(solve)
    def solved(self: Any, problem: ContactProblem, warm_start: WarmStart | None = None) -> Solution:
        if problem.is_plain:
            return solve(self, problem, warm_start)
        attempt = partial(_attempt, solve, self, warm_start)
        answer = attempt(problem)
        return answer if answer.converged or answer.status == "infeasible" else _without_wide_bounds(attempt, problem, answer)

    return cast(Solve, solved)


def _attempt(solve: Callable[..., Solution], solver: Any, warm_start: WarmStart | None, problem: ContactProblem) -> Solution:
    """Reduce a problem, solve it and judge the answer; sharpen it where only the given problem lacks something."""
    reduction, options = Reduction(problem), solver.options
    tolerance = options.tolerance
    found = solve(solver, reduction.reduced, _start(reduction, warm_start))
    answer, lacking = _judged(reduction, found, tolerance)
    for _ in range(_REPEATS):
        if not (found.converged and lacking) or "contradiction" in answer.details:
            break
        sharper = min(_TIGHTER, max(_TIGHTEST, _SURER * tolerance / lacking))
        options = replace(options, tolerance=sharper * options.tolerance)
        again = solve(type(solver)(options), reduction.reduced, WarmStart(found.v, found.lam))
        if not again.converged:
            break
        found = replace(again, iterations=found.iterations + again.iterations)
        answer, lacking = _judged(reduction, found, tolerance)
    return answer


def _without_wide_bounds(attempt: Callable[[ContactProblem], Solution], problem: ContactProblem, answer: Solution) -> Solution:
    """Answer of a problem that was not solved, where wide bounds of motors and dry friction that do not act are taken away.

    A row between bounds is met as a contact that half of their distance presses: where that is a thousand times what rows
    exert, it sets the scale of all. An answer without bounds whose forces keep them all is one of the given problem.
    """
    rows = problem.rows
    if rows is None:
        return answer
    alone = rows.velocity(problem.b / problem.diagonal, np.zeros(rows.n_rows)) / _give(problem, rows)  # what a row alone takes
    most = _WIDE * float(np.abs(alone).max(initial=TINY))
    wide = np.isfinite(rows.low) & np.isfinite(rows.high) & (rows.high - rows.low > most)
    low, high = wide.copy(), wide.copy()  # the bounds that are taken away
    for _ in range(_REPEATS):
        if not (low.any() or high.any()):
            break
        free = replace(rows, low=np.where(low, -np.inf, rows.low), high=np.where(high, np.inf, rows.high))
        found = attempt(replace(problem, rows=free))
        if not found.converged or found.row_forces is None:
            break
        below, above = low & (found.row_forces < rows.low), high & (found.row_forces > rows.high)
        if not (below.any() or above.any()):
            return replace(found, iterations=answer.iterations + found.iterations)
        low, high = low ^ below, high ^ above
    return answer


def _start(reduction: Reduction, warm_start: WarmStart | None) -> WarmStart | None:
    """Return the start of the reduced problem."""
    if warm_start is None:
        return None
    forces = warm_start.row_forces
    if forces is None:
        forces = np.zeros(reduction.rows.n_rows)
    return WarmStart(reduction.shorten(warm_start.v, warm_start.lam), reduction.contacts(warm_start.lam, forces))


def _judged(reduction: Reduction, found: Solution, tolerance: float) -> tuple[Solution, float]:
    """Return an answer for the problem as it was given, and the largest residual there, 0 where none is above the tolerance."""
    problem = reduction.problem
    v, lam, forces = reduction.expand(found.v, found.lam)
    answer = _named(reduction, replace(found, v=v, lam=lam, row_forces=forces, residuals=None, law=None))
    if not answer.converged:
        return answer, 0.0
    measured, row = residuals(problem, v, lam, row_forces=forces), row_residual(problem, v, forces)
    numbers = {
        "the dynamics": max(measured.dynamics, measured.plain),
        "the balance of a body": unbalanced(measured.balance),
        "the rows": row,
    }
    # a solver of another law (a relaxation, a regularisation) has said so itself
    known = found.residuals
    law = contact_residual(reduction.reduced, found.v, found.lam) if known is None else known.contact
    if law <= tolerance:
        numbers["the contact law"] = measured.contact
    worst = max(numbers, key=lambda name: numbers[name])
    if numbers[worst] <= tolerance:
        return answer if known is None else replace(answer, residuals=measured), 0.0
    named = f" (row {_worst_row(problem, v, forces)} the least)" if worst == "the rows" else ""
    message = (
        f"{worst[0].upper()}{worst[1:]} of the problem {'hold' if worst in _SEVERAL else 'holds'} to {numbers[worst]:.2e} "
        f"only{named}, tolerance {tolerance:.0e}. Of the problem of hard contacts that stands for it: {found.message}"
    )
    details = dict(answer.details)
    if row > tolerance and _holds_but_for_repeated(reduction, v, forces, numbers, tolerance):
        message += " Rows that repeat others ask for something else; no velocities do both."
        details["contradiction"] = row
    return replace(answer, status="stopped at the limit", message=message, details=details), numbers[worst]


def _give(problem: ContactProblem, rows: Rows) -> np.ndarray:
    """How fast each row yields to its own force, (nr,), m/(s N) or rad/(s N m), about; 1 where none can be told."""
    give = rows.G.power(2) @ (1.0 / problem.diagonal) + rows.softness
    return np.asarray(np.where(give > 0.0, give, 1.0))


def _worst_row(problem: ContactProblem, v: np.ndarray, forces: np.ndarray) -> int:
    """Row whose law lacks most, by the terms of :func:`contact.metrics.row_residual`."""
    rows = problem.rows
    assert rows is not None
    give = _give(problem, rows)
    wrong = forces - np.clip(forces - rows.velocity(v, forces) / give, rows.low, rows.high)
    return int(np.argmax(np.abs(wrong) * np.sqrt(give)))


def _holds_but_for_repeated(
    reduction: Reduction, v: np.ndarray, forces: np.ndarray, numbers: dict[str, float], tolerance: float
) -> bool:
    """Whether an answer holds all but what no velocities change of the rows."""
    rows = reduction.rows
    possible = replace(reduction.problem, rows=replace(rows, offset=rows.offset - reduction.repeated))
    others = max(value for name, value in numbers.items() if name != "the rows")
    return max(others, row_residual(possible, v, forces)) <= tolerance


def _named(reduction: Reduction, answer: Solution) -> Solution:
    """Name the rows, not the contacts that stand for them, where there is no solution; those of joints are seen here."""
    if answer.status == "failed":
        return answer
    closing = np.asarray(answer.details.get("closing_contacts", ()), dtype=np.int64)
    rows, limits = reduction.contradicting, reduction.rows_of(closing)
    if not (len(rows) or len(limits)):
        return answer
    rows = np.union1d(rows, limits)
    details = {**answer.details, "contradicting_rows": rows}
    if len(closing):
        details["closing_contacts"] = closing[closing < reduction.problem.n_contacts]
    said = f"{len(rows)} rows ask for what no velocities can do together: {_listed(rows)}."
    if len(rows) == 1:
        said = f"Row {rows[0]} asks for what no velocities can do."
    message = f"{answer.message} {said}" if answer.status == "infeasible" else said
    return replace(answer, status="infeasible", message=message, details=details)


def _listed(numbers: np.ndarray) -> str:
    """Return the first numbers as words."""
    return ", ".join(map(str, numbers[:_SHOWN])) + (" ..." if len(numbers) > _SHOWN else "")

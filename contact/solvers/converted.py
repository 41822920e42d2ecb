"""Local problems for solvers that need a matrix A: solved by way of an equivalent problem, judged on the given one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from contact.local import LocalProblem, measure_local
from contact.solvers.base import History, Solution, Solver, WarmStart

#: A solver that converged on the equivalent problem but not on the given one goes on at this part of its tolerance ...
_TIGHTER = 0.1
#: ... at most so many times.
_REPEATS = 4


class _Options(Protocol):
    @property
    def tolerance(self) -> float: ...

    @property
    def max_iterations(self) -> int: ...


def solve_converted(
    problem: LocalProblem, warm_start: WarmStart | None, make: Callable[[Any], Solver], options: _Options
) -> Solution:
    """Solve W r + q = u under the contact law by a solver of A v = b + J^T lam, see :func:`contact.local.to_global`.

    Parameters
    ----------
    problem : LocalProblem
        Problem with a symmetric W without negative eigenvalues.
    warm_start : WarmStart, optional
        Forces to start from; its velocity is not used. Default zero.
    make : callable
        ``make(options)`` returns the solver.
    options : dataclass
        Its options: ``tolerance`` is the bound of the contact residual of the given problem, ``max_iterations`` the limit in all.

    Returns
    -------
    Solution
        ``v`` is empty. The history holds the residuals of the equivalent problem; the verdict is by
        :func:`contact.local.measure_local`.

    Raises
    ------
    NotApplicableError
        W is not symmetric or has negative eigenvalues.
    """
    converted = problem.equivalent
    warm = None
    if warm_start is not None:
        warm = WarmStart(converted.J.T @ warm_start.lam.ravel(), warm_start.lam)
    rows, timings = [np.zeros((0, 3))], dict[str, float]()
    tolerance, max_iterations = options.tolerance, options.max_iterations
    goal, left = tolerance, max_iterations
    for _ in range(1 + _REPEATS):
        found = make(replace(options, tolerance=goal, max_iterations=left)).solve(converted, warm)  # type: ignore[type-var]
        rows.append(np.column_stack([found.history.dynamics, found.history.contact, found.history.step_norm]))
        for stage, seconds in found.timings.items():
            timings[stage] = timings.get(stage, 0.0) + seconds
        residual = measure_local(problem, found.lam).contact_residual
        left -= found.iterations
        if not found.converged or residual <= tolerance or left < 1:
            break
        goal, warm = _TIGHTER * goal, WarmStart(found.v, found.lam)
    status, message = found.status, found.message
    said = f"contact residual {residual:.2e} of the problem as it was given"
    if residual <= tolerance:
        status, message = "converged", f"Converged in {max_iterations - left} iterations ({said}, tolerance {tolerance:.0e})."
    elif found.converged:
        status, message = "stopped at the limit", f"{message} But the {said} is above the tolerance {tolerance:.0e}."
    history = np.concatenate(rows)
    return replace(
        found, v=np.zeros(0), status=status, message=message, iterations=len(history),
        history=History(history[:, 0], history[:, 1], history[:, 2]), timings=timings,
    )  # fmt: skip

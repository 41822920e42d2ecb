"""Local problems for solvers that need a matrix A: solved by way of an equivalent problem, judged on the given one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from contact.local import LocalProblem, measure_local
from contact.solvers.base import History, Solution, Solver, WarmStart

#: A solver that converged on the equivalent problem but not on the given one goes on at this part of its tolerance ...
_TIGHTER = 0.1
#: ... at most so many times.
_REPEATS = 4


def solve_converted(
    problem: LocalProblem,
    warm_start: WarmStart | None,
    make: Callable[[float, int], Solver],
    tolerance: float,
    max_iterations: int,
) -> Solution:
    """Solve W r + q = u under the contact law by a solver of A v = b + J^T lam, see :func:`contact.local.to_global`.

    Parameters
    ----------
    problem : LocalProblem
        Problem with a symmetric W without negative eigenvalues.
    warm_start : WarmStart, optional
        Forces to start from; its velocity is not used. Default zero.
    make : callable
        ``make(tolerance, max_iterations)`` returns the solver.
    tolerance : float
        Bound of the contact residual of the given problem.
    max_iterations : int
        Iterations in all.

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
    goal, left = tolerance, max_iterations
    for _ in range(1 + _REPEATS):
        found = make(goal, left).solve(converted, warm)
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

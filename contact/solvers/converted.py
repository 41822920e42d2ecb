"""Local problems for solvers that need a matrix A: solved by way of an equivalent problem, judged on the given one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar, cast

import numpy as np

from contact.local import LocalProblem
from contact.solvers.base import Solution, Solver, SolverOptions, Told, WarmStart
from contact.solvers.judge import Judge, Row, drive

#: A solver that converged on the equivalent problem but not on the given one goes on at this part of its tolerance ...
_TIGHTER = 0.1
#: ... at most so many times.
_REPEATS = 4

Options = TypeVar("Options", bound=SolverOptions)


def solve_converted(
    problem: LocalProblem, warm_start: WarmStart | None, make: Callable[[Options], Solver], options: Options
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
        ``v`` is empty. The history holds the residuals of the equivalent problem; the verdict is that of the given one.

    Raises
    ------
    NotApplicableError
        W is not symmetric or has negative eigenvalues.
    """
    judge = Judge(problem, options.tolerance)
    repeats = _Repeats(problem, warm_start, make, options)
    drive(repeats, judge, options.max_iterations)
    note = "" if judge.converged else repeats.found.message
    if repeats.found.converged and not judge.converged:
        note += f" But the contact residual {judge.last.contact:.2e} of the problem as it was given is above the tolerance."
    return judge.solution(repeats.timings, repeats.found.details, note)


class Converting(Told):
    """Base of solvers that need a matrix A: local problems they take by way of an equivalent one."""

    def solve_local(self, problem: LocalProblem, warm_start: WarmStart | None = None) -> Solution:
        """Solve a problem given by W and q, by way of an equivalent one, see :func:`solve_converted`.

        Parameters
        ----------
        problem : LocalProblem
            Problem with a symmetric W without negative eigenvalues; NotApplicableError otherwise.
        warm_start : WarmStart, optional
            Forces to start from. Default zero.
        """
        make = cast("Callable[[SolverOptions], Solver]", type(self))
        return solve_converted(problem, warm_start, make, self.options)


class _Repeats:
    """Solves of the equivalent problem, each to a smaller tolerance and from the answer before."""

    def __init__(
        self, problem: LocalProblem, warm_start: WarmStart | None, make: Callable[[Any], Solver], options: SolverOptions
    ) -> None:
        self.problem, self._make, self.options = problem, make, options
        self._warm = None
        if warm_start is not None:
            self._warm = WarmStart(problem.equivalent.J.T @ warm_start.lam.ravel(), warm_start.lam)
        self.timings = dict[str, float]()
        self.best, self._solves, self._goal = -1, 0, options.tolerance
        self.found: Solution

    @property
    def over(self) -> bool:
        return not self.found.converged or self._solves > _REPEATS

    @property
    def failed(self) -> bool:
        return self.found.status == "failed"

    def until(self, aim: float, limit: int) -> list[Row]:
        """One solve, to a tenth of the tolerance of the one before."""
        solver = self._make(replace(self.options, tolerance=self._goal, max_iterations=limit))
        found = self.found = solver.solve(self.problem.equivalent, self._warm)
        self._solves, self._goal, self._warm = self._solves + 1, _TIGHTER * self._goal, WarmStart(found.v, found.lam)
        self.best += found.iterations
        for stage, seconds in found.timings.items():
            self.timings[stage] = self.timings.get(stage, 0.0) + seconds
        history = found.history
        return list(zip(history.dynamics.tolist(), history.contact.tolist(), history.step_norm.tolist(), strict=True))

    def answer(self) -> tuple[np.ndarray, np.ndarray]:
        return np.zeros(0), self.found.lam

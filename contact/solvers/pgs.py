"""PGS: projected Gauss-Seidel on the Delassus operator, the first baseline of papers/001 (section V-C1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from contact.delassus import DelassusOperator
from contact.local import LocalProblem
from contact.problem import ContactProblem
from contact.solvers import dense_kernels as kernels
from contact.solvers.base import Check, Solution, WarmStart
from contact.solvers.condensed import Condensed, CondensedOptions, solve_condensed, solve_local


@dataclass(frozen=True)
class PgsOptions(CondensedOptions):
    """Options of PGS.

    Attributes
    ----------
    max_iterations : int
        Limit of sweeps over all contacts. Default 1000.
    operator : {"strict", "proximal"}
        Strict: the local problem of each contact is solved exactly for the Signorini-Coulomb law (papers/004: NBGS). Proximal:
        closest point of the friction cone (papers/004 Alg. 2, PGS-CCP), which converges to the convex relaxation; where contacts
        slide that is another law, so our metrics do not pass it and the status says "stopped at the limit".
    check_every : int
        Sweeps after which u = W lam + q is evaluated afresh, against the rounding of its updates. A verdict always comes from a
        fresh one. Default 50.
    """

    solver_name: ClassVar[str] = "pgs"

    check_every: int = 50

    def _checks(self) -> list[Check]:
        return [*super()._checks(), ("check_every", self.check_every, self.check_every >= 1, "integers >= 1")]


class _Sweeps:
    """One iteration = one sweep of block Gauss-Seidel over all contacts."""

    def __init__(self, problem: Condensed, lam: np.ndarray, options: PgsOptions) -> None:
        self.problem, self.lam, self.strict = problem, lam, options.operator == "strict"
        self._check_every, self._sweeps = options.check_every, 0
        self.u = np.empty_like(lam)
        self._blocks = np.empty((len(problem.friction), 3, 3))
        kernels.diagonal_blocks(problem.WT, self._blocks)
        self.refresh()

    def advance(self) -> None:
        kernels.gauss_seidel(self.problem.WT, self._blocks, self.problem.friction, self.strict, 1, self.lam, self.u)
        self._sweeps += 1
        if self._sweeps % self._check_every == 0:
            self.refresh()

    def refresh(self) -> None:
        kernels.velocities(self.problem.WT, self.problem.q, self.lam, self.u)


class Pgs:
    """Projected Gauss-Seidel on u = W lam + q, contact after contact (papers/001 ref. 17; papers/004 Alg. 5 without relaxation).

    A is factorised afresh in every solve (the symbolic analysis is kept while the pattern of A and the rows touched stay), W is
    assembled, then the sweeps run on dense rows of W.

    Parameters
    ----------
    options : PgsOptions, optional
        Options; defaults are documented there.

    Notes
    -----
    ``Solution.details``: ``operator``, ``law_residual`` (natural map of the law that was solved, which for the proximal operator
    is the convex relaxation), ``returned_iteration`` (the best by that law) and ``backend``. In the history the contact residual
    is that of each sweep, the dynamics residual that of the answer they led to (every sweep has a v that is exact to
    rounding), and the step is the change of the contact velocities.
    """

    description = "PGS: projected Gauss-Seidel on the assembled Delassus operator (baseline of papers/001)"

    def __init__(self, options: PgsOptions | None = None) -> None:
        self.options = options or PgsOptions()
        self._operator = DelassusOperator(self.options.backend, self.options.threads)

    def _start(self, problem: Condensed, lam: np.ndarray) -> _Sweeps:
        return _Sweeps(problem, lam, self.options)

    def solve(self, problem: ContactProblem, warm_start: WarmStart | None = None) -> Solution:
        """Solve the problem; ContactError when A is not positive definite.

        Parameters
        ----------
        problem : ContactProblem
            Any problem, friction isotropic or not.
        warm_start : WarmStart, optional
            Its forces are the start; its velocity is not used. Default zero.
        """
        return solve_condensed(problem, warm_start, self.options, self._operator, self._start)

    def solve_local(self, problem: LocalProblem, warm_start: WarmStart | None = None) -> Solution:
        """Solve a problem given by W and q alone; v of the solution is empty.

        Parameters
        ----------
        problem : LocalProblem
            W may be non-symmetric.
        warm_start : WarmStart, optional
            Its forces are the start. Default zero.
        """
        return solve_local(problem, warm_start, self.options, self._start)

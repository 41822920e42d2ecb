"""What the dual rivals share: the problem condensed on its contacts, how their iterates are judged, and what they return.

PGS and APGD iterate on the forces alone, with u = W lam + q, where W = J A^-1 J^T is the Delassus operator and q = J A^-1 b + phi
(papers/001 eq. 3). Each iterate has its own velocity v = A^-1 (b + J^T lam), which satisfies the dynamics to rounding; so the
contact law decides, and it is measured in every iteration from u, without a solve of the size of A.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol, get_args

import numpy as np

from contact.delassus import DelassusOperator
from contact.linear import Backend
from contact.local import LocalProblem
from contact.metrics import natural_map_scale
from contact.problem import ContactProblem, force_scales, from_isotropic, isotropic, to_isotropic
from contact.solvers.base import Judge, Solution, WarmStart, check_options
from contact.solvers.dense import relative_residual

#: Where A or the balance of a body refuses an answer that the contact law passes, the law is asked for this much more.
_TIGHTER = 0.3


@dataclass(frozen=True)
class CondensedOptions:
    """Options that PGS and APGD share; each documents them."""

    solver_name: ClassVar[str]

    tolerance: float = 1e-5
    max_iterations: int = 1000
    operator: Literal["strict", "proximal"] = "strict"
    backend: Backend = "auto"
    threads: int = 1

    def __post_init__(self) -> None:
        """Check the values once.

        Raises
        ------
        ContactError
            A value outside its range.
        """
        check_options(
            self.solver_name,
            ("tolerance", self.tolerance, 0 < self.tolerance < 1, "numbers between 0 and 1"),
            ("max_iterations", self.max_iterations, self.max_iterations >= 1, "integers >= 1"),
            ("operator", self.operator, self.operator in ("strict", "proximal"), "'strict' and 'proximal'"),
            ("backend", self.backend, self.backend in get_args(Backend), "'auto', 'pardiso' and 'superlu'"),
            ("threads", self.threads, self.threads >= 1, "integers >= 1"),
        )


@dataclass(frozen=True)
class Condensed:
    """The contact law between u = W lam + q and lam, with one friction coefficient a contact.

    Attributes
    ----------
    WT : ndarray, (3nc, 3nc), m/(N s)
        Transposed Delassus operator, C-order.
    q : ndarray, (3nc,), m/s
        Velocity without contact forces.
    friction : ndarray, (nc,)
        Coulomb coefficients.
    rho : ndarray, (nc,), N s/m
        Scale of the natural map that judges.
    """

    WT: np.ndarray
    q: np.ndarray
    friction: np.ndarray
    rho: np.ndarray


class DualMethod(Protocol):
    """A method that improves forces of a condensed problem.

    Attributes
    ----------
    lam, u : ndarray, (3nc,), N and m/s
        Present forces and their contact velocities.
    """

    lam: np.ndarray
    u: np.ndarray

    def advance(self) -> None:
        """Do one iteration."""
        ...

    def refresh(self) -> None:
        """Evaluate u = W lam + q afresh."""
        ...


class Run(Protocol):
    """Iterations that can be continued, judged by :class:`RunJudge`.

    Attributes
    ----------
    rows : list of (dynamics, contact, step)
        Residuals of every iteration; dynamics is NaN where it is only known when v is computed.
    best : int
        Row of the iterate ``lam``, (3nc,), the best by the law of the method.
    over, failed : bool
        Whether to stop for good, and whether that is for a value that is not finite.
    """

    rows: list[tuple[float, float, float]]
    best: int
    lam: np.ndarray

    @property
    def over(self) -> bool: ...  # noqa: D102

    @property
    def failed(self) -> bool: ...  # noqa: D102

    def until(self, aim: float) -> None:
        """Iterate until the Signorini-Coulomb law and the dynamics hold to ``aim`` as far as the method sees, or it is over."""
        ...


class RunJudge(Judge):
    """A judge that sees only the iterates that could be answers; the history of the others comes from the run."""

    def follow(self, run: Run, velocity: Callable[[], np.ndarray], force: Callable[[np.ndarray], np.ndarray]) -> None:
        """Let a run iterate until an answer passes or the run is over; then own its history.

        Parameters
        ----------
        run : Run
            The iterations.
        velocity : callable
            v, (n,), of the run's best iterate.
        force : callable
            lam, (nc, 3), of the problem from that of the run.
        """
        history: list[tuple[float, float, float]] = []
        aim, finished = self.tolerance, False
        while not finished:
            run.until(aim)
            finished = self.done(velocity(), force(run.lam), 0.0) or run.over
            judged = self._rows[-1][0]
            history += [(judged if np.isnan(d) else d, c, step) for d, c, step in run.rows[len(history) :]]
            aim *= _TIGHTER
        self._rows, self._best_row = history, run.best
        self.failed = run.failed and not self.converged


def relaxation_note(strict: bool, law_residual: float) -> str:
    """Sentence on what an answer of the proximal operator is; empty for the strict one."""
    if strict:
        return ""
    return f"Solved was the convex relaxation, to {law_residual:.2e}; where contacts slide it is not the contact law."


#: Starts a method from forces, (3nc,), which it may overwrite.
StartMethod = Callable[[Condensed, np.ndarray], DualMethod]


class _Run:
    """Iterations of a method with one row of history each, and the best iterate by the law of the method."""

    def __init__(self, problem: Condensed, lam: np.ndarray, options: CondensedOptions, method: StartMethod) -> None:
        self.problem, self.options = problem, options
        self.strict = options.operator == "strict"
        self.lam = np.array(lam, dtype=np.float64).ravel()
        self.method = method(problem, self.lam.copy())
        self.rows: list[tuple[float, float, float]] = []
        self.best, self.law_residual = 0, np.inf

    @property
    def over(self) -> bool:
        """Whether the limit is reached or the values are not finite."""
        return len(self.rows) >= self.options.max_iterations or self.failed

    @property
    def failed(self) -> bool:
        """Whether the last iteration gave a value that is not finite."""
        return bool(self.rows) and not np.isfinite(self.rows[-1][1])

    def until(self, aim: float) -> None:
        """Iterate until the Signorini-Coulomb law holds to ``aim`` by a fresh u."""
        method, problem = self.method, self.problem
        while not self.over:
            before = method.u.copy()
            method.advance()
            step = float(np.linalg.norm(method.u - before))
            contact = self._residual()
            if contact <= aim:
                method.refresh()
                contact = self._residual()
            self.rows.append((np.nan, contact, step))
            own = contact if self.strict else relative_residual(method.lam, method.u, problem.friction, problem.rho, False)
            if own < self.law_residual or contact <= aim:
                self.best, self.law_residual, self.lam = len(self.rows) - 1, own, method.lam.copy()
            if contact <= aim:
                return

    def _residual(self) -> float:
        return relative_residual(self.method.lam, self.method.u, self.problem.friction, self.problem.rho)

    def details(self, **more: Any) -> dict[str, Any]:
        """Numbers for the solution."""
        return {"operator": self.options.operator, "law_residual": self.law_residual, "returned_iteration": self.best + 1} | more


def solve_condensed(
    problem: ContactProblem,
    warm_start: WarmStart | None,
    options: CondensedOptions,
    operator: DelassusOperator,
    method: StartMethod,
) -> Solution:
    """Factorise A, assemble W, iterate, and return the judged answer with v = A^-1 (b + J^T lam)."""
    clock = time.perf_counter
    started = clock()
    same = isotropic(problem)
    operator.factorize(same)
    factorized = clock()
    W = operator.operator(same.J)  # symmetric
    q = operator.begin(same.b) + same.phi.ravel()
    assembled = clock()
    start = np.zeros((problem.n_contacts, 3)) if warm_start is None else to_isotropic(problem, warm_start.lam.reshape(-1, 3))
    run = _Run(Condensed(W, q, same.friction, natural_map_scale(same)), start, options, method)
    judge = RunJudge(problem, options.tolerance)
    judge.follow(run, lambda: operator.finish(run.lam), lambda lam: from_isotropic(problem, lam.reshape(-1, 3)))
    times = {"factorize": factorized - started, "operator": assembled - factorized, "iterate": clock() - assembled}
    return judge.solution(times, run.details(backend=operator.factorization.name), relaxation_note(run.strict, run.law_residual))


def solve_local(problem: LocalProblem, warm_start: WarmStart | None, options: CondensedOptions, method: StartMethod) -> Solution:
    """Solve a problem that is given condensed; v of the solution is empty."""
    started = time.perf_counter()
    start = np.zeros((problem.n_contacts, 3)) if warm_start is None else warm_start.lam
    rho = force_scales(problem.W.diagonal().reshape(-1, 3))
    condensed = Condensed(np.ascontiguousarray(problem.W.T), problem.q.ravel(), problem.friction, rho)
    run = _Run(condensed, start, options, method)
    judge = RunJudge(problem, options.tolerance)
    judge.follow(run, lambda: np.zeros(0), lambda lam: lam)
    times = {"iterate": time.perf_counter() - started}
    return judge.solution(times, run.details(), relaxation_note(run.strict, run.law_residual))

"""What the dual rivals share: the problem condensed on its contacts, how their iterates are judged, and what they return.

PGS and APGD iterate on the forces alone, with u = W lam + q, where W = J A^-1 J^T is the Delassus operator and q = J A^-1 b + phi
(papers/001 eq. 3). Each iterate has its own velocity v = A^-1 (b + J^T lam), which satisfies the dynamics to rounding; so the
contact law decides, and it is measured in every iteration from u, without a solve of the size of A.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Literal, NamedTuple, Protocol, TypeVar

import numpy as np

from contact.delassus import DelassusOperator
from contact.local import LocalProblem
from contact.metrics import natural_map_scale
from contact.problem import ContactProblem, force_scales, from_isotropic, isotropic, to_isotropic
from contact.solvers.base import FactorizationOptions, OperatorOptions, Solution, Told, WarmStart
from contact.solvers.dense import relative_residual
from contact.solvers.judge import Judge, Row, drive
from contact.solvers.with_rows import takes_rows

#: Law that holds at the fixed points of a method: the contact law, its convex relaxation, or the least energy of each contact on
#: the section of its cone with u_n = 0, which is neither.
Law = Literal["coulomb", "relaxed", "energy"]
#: A method of another law ends where its own law holds to this part of the aim, and the contact law does not.
_OWN_LAW = 0.1


@dataclass(frozen=True)
class CondensedOptions(FactorizationOptions, OperatorOptions):
    """Options that PGS and APGD share."""

    @property
    def law(self) -> Law:
        """Law that holds where the forces no longer change."""
        return "coulomb" if self.operator == "strict" else "relaxed"


class Condensed(NamedTuple):
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
    change : float
        Largest change of a force in the last iteration over the largest force; inf where it is not measured.
    over : bool
        Whether a rule of the method's own ends it.
    """

    lam: np.ndarray
    u: np.ndarray
    change: float
    over: bool

    def advance(self) -> None:
        """Do one iteration."""
        ...

    def many(self, aim: float, limit: int, least: float, best: np.ndarray) -> tuple[np.ndarray, int]:
        """Do iterations at once, until the contact law holds to ``aim``, at most ``limit``; none where it cannot.

        Returns their contact residuals and changes of the velocities, (k, 2), and which of them has the least residual below
        ``least``, whose forces are in ``best``, (3nc,); -1 for none.
        """
        ...

    def watch(self, residual: float) -> None:
        """Take the least contact residual of the last iterations, to act on a lack of progress."""
        ...

    def refresh(self) -> None:
        """Evaluate u = W lam + q afresh."""
        ...

    def details(self) -> dict[str, float]:
        """Numbers of its own for the solution."""
        ...


def relaxation_note(law: Law, law_residual: float) -> str:
    """Sentence on what an answer of another law is; empty for the contact law."""
    if law == "coulomb":
        return ""
    if law == "energy":
        return (
            f"Solved was the law of least energy on the cone with u_n = 0, until forces changed by {law_residual:.2e}; where "
            "contacts slide and their normal and tangent are coupled it is not the contact law."
        )
    return f"Solved was the convex relaxation, to {law_residual:.2e}; where contacts slide it is not the contact law."


#: Starts a method from forces, (3nc,), which it may overwrite.
StartMethod = Callable[[Condensed, np.ndarray], DualMethod]


class _DualIterations:
    """Iterations of a method on the forces with one row of history each, and the best iterate by the law of the method."""

    def __init__(
        self,
        problem: Condensed,
        lam: np.ndarray,
        options: CondensedOptions,
        method: StartMethod,
        answer: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]],
    ) -> None:
        self.problem, self.options, self._answer = problem, options, answer
        self.law = options.law
        self._rho_of_W = force_scales(problem.WT.diagonal().reshape(-1, 3))
        self.lam = np.array(lam, dtype=np.float64).ravel()
        self.method = method(problem, self.lam.copy())
        self.best, self.law_residual, self.failed = 0, np.inf, False
        self._done = 0
        #: whether another law than the contact law holds, so that more iterations bring nothing
        self.own_law_holds = False

    @property
    def over(self) -> bool:
        return self.failed or self.method.over or self.own_law_holds

    @property
    def ended(self) -> str:
        """How the iterations ended, where it was by a rule of the method and not by the law or the limit."""
        if self.own_law_holds:
            return "Ended where its own law holds, after {} iterations"
        return "Ended by its plateau rule after {} iterations" if self.method.over else ""

    def until(self, aim: float, limit: int) -> list[Row]:
        """Iterate until the Signorini-Coulomb law holds to ``aim`` by a fresh u, on the scales of A and W."""
        method = self.method
        rows: list[Row] = []
        while len(rows) < limit and not self.over:
            found, place = method.many(aim, limit - len(rows), self.law_residual, self.lam)
            if len(found):
                contact, step = found[-1].tolist()
                if place >= 0:
                    self.best, self.law_residual = self._done + place, float(found[place, 0])
                rows += [(None, residual, change) for residual, change in found[:-1].tolist()]
                self._done += len(found) - 1
                method.watch(float(found[:, 0].min()))
            else:
                before = method.u.copy()
                method.advance()
                before -= method.u
                step = math.sqrt(before @ before)
                contact = self._residual()
                method.watch(contact)
            done = contact <= aim and self._residual(by_w=True) <= aim
            if done:
                method.refresh()
                contact = self._residual()
                done = contact <= aim and self._residual(by_w=True) <= aim
            rows.append((None, contact, step))
            self.failed = not math.isfinite(contact)
            own = self._own_residual(contact)
            if own < self.law_residual or done:
                self.best, self.law_residual, self.lam = self._done, own, method.lam.copy()
            self._done += 1
            if done:
                break
            self.own_law_holds = self.law != "coulomb" and own <= _OWN_LAW * aim
        return rows

    def answer(self) -> tuple[np.ndarray, np.ndarray]:
        return self._answer(self.lam)

    def _own_residual(self, contact: float) -> float:
        """Residual of the law that the method solves."""
        method, problem = self.method, self.problem
        if self.law == "coulomb":
            return contact
        if self.law == "energy":
            return method.change
        return relative_residual(method.lam, method.u, problem.friction, problem.rho, False)

    def _residual(self, by_w: bool = False) -> float:
        rho = self._rho_of_W if by_w else self.problem.rho
        return relative_residual(self.method.lam, self.method.u, self.problem.friction, rho)

    def details(self, **more: Any) -> dict[str, Any]:
        """Numbers for the solution."""
        found = {"operator": self.options.operator, "law_residual": self.law_residual, "returned_iteration": self.best + 1}
        return found | self.method.details() | more

    def verdict(self, judge: Judge, times: dict[str, float], **more: Any) -> Solution:
        """Return the judged answer, with what it is where the method solves another law."""
        note = relaxation_note(self.law, self.law_residual)
        return judge.solution(times, self.details(**more), note, ended=self.ended)


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

    def answer(lam: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return operator.finish(lam), from_isotropic(problem, lam.reshape(-1, 3))

    condensed = Condensed(W, q, same.friction, natural_map_scale(same))
    iterations, judge = _DualIterations(condensed, start, options, method, answer), Judge(problem, options.tolerance)
    judge.know(force_scales(W.diagonal().reshape(-1, 3)), float(np.abs(q.reshape(-1, 3)[q[::3] < 0]).max(initial=0.0)))
    drive(iterations, judge, options.max_iterations)
    times = {"factorize": factorized - started, "operator": assembled - factorized, "iterate": clock() - assembled}
    return iterations.verdict(judge, times, backend=operator.factorization.name)


def solve_local(problem: LocalProblem, warm_start: WarmStart | None, options: CondensedOptions, method: StartMethod) -> Solution:
    """Solve a problem that is given condensed; v of the solution is empty."""
    started = time.perf_counter()
    start = np.zeros((problem.n_contacts, 3)) if warm_start is None else warm_start.lam
    rho = problem.scales
    condensed = Condensed(np.ascontiguousarray(problem.W.T), problem.q.ravel(), problem.friction, rho)
    iterations = _DualIterations(condensed, start, options, method, lambda lam: (np.zeros(0), lam))
    judge = Judge(problem, options.tolerance)
    drive(iterations, judge, options.max_iterations)
    times = {"iterate": time.perf_counter() - started}
    return iterations.verdict(judge, times)


Options = TypeVar("Options", bound=CondensedOptions)


class CondensedSolver(Told, ABC, Generic[Options]):
    """A solver that iterates on the forces alone; a subclass says by which method.

    Parameters
    ----------
    options : CondensedOptions
        Its options.
    """

    def __init__(self, options: Options) -> None:
        self.options = options
        self._operator = DelassusOperator(options.backend, options.threads)

    @abstractmethod
    def _start(self, problem: Condensed, lam: np.ndarray) -> DualMethod:
        """Start the method from forces, (3nc,), which it may overwrite."""

    @takes_rows
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
            W may be non-symmetric (APGD then has no function to minimise, and no proof of convergence).
        warm_start : WarmStart, optional
            Its forces are the start. Default zero.
        """
        return solve_local(problem, warm_start, self.options, self._start)

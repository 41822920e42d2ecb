"""What all solvers share: common options, warm start, solution, and the driver that judges their iterates.

A solver ends in one of three ways, and :class:`Judge` alone decides which:

- *converged*: the dynamics residual, in both norms, and the contact residual are at most the tolerance, and the force balance of
  each body is at most :data:`BALANCE_FACTOR` times that, all recomputed by ``contact.metrics``.
- *stopped at the limit*: iterations, sweeps or whatever else the solver may spend ran out first.
- *failed*: a value is not finite or its square overflows, or the method cannot go on.

The answer is the iterate that converged, else the best that was judged.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any, ClassVar, Literal, Protocol, get_args

import numpy as np

from contact.errors import ContactError
from contact.linear import Backend
from contact.local import LocalProblem, measure_local
from contact.metrics import Residuals, residuals
from contact.problem import ContactProblem

Status = Literal["converged", "stopped at the limit", "failed"]
#: An option to be checked: name, value, whether it is good, and what is allowed.
Check = tuple[str, object, bool, str]
#: Dynamics residual, contact residual and step norm of one iteration; None where only the judge can know.
Row = tuple[float | None, float | None, float]
#: Rows of some iterations; an array, (k, 3), where all is known.
Rows = Sequence[Row] | np.ndarray

#: The force balance of each body must hold to this many times the tolerance.
BALANCE_FACTOR = 5.0
#: Where the judge refuses an iterate that a method takes for the answer, the method is asked for this much more.
_TIGHTER = 0.3


@dataclass(frozen=True)
class WarmStart:
    """Starting point of a solve.

    Attributes
    ----------
    v : ndarray, (n,), m/s
        Velocity of the previous step (the representative velocity, not the end velocity; see papers/001 section V-A5).
    lam : ndarray, (nc, 3), N
        Contact forces of the previous step in this step's frames, zero for new contacts.
    """

    v: np.ndarray
    lam: np.ndarray


@dataclass(frozen=True)
class History:
    """Residuals by iteration, the first row after the first iteration.

    Attributes
    ----------
    dynamics : ndarray, (iterations,)
        True dynamics residual of the pair that would be returned, formula as ``metrics.dynamics_residual``.
    contact : ndarray, (iterations,)
        True contact residual, formula as ``metrics.contact_residual``.
    step_norm : ndarray, (iterations,), m/s
        Step length theta of the iteration; reported, never used to stop.
    """

    dynamics: np.ndarray
    contact: np.ndarray
    step_norm: np.ndarray


@dataclass(frozen=True)
class Solution:
    """Answer of a solver.

    Attributes
    ----------
    v : ndarray, (n,), m/s
        Velocity.
    lam : ndarray, (nc, 3), N
        Contact forces, normal first.
    status : {"converged", "stopped at the limit", "failed"}
        Judged by true residuals.
    message : str
        One sentence on how it ended.
    iterations : int
        Iterations used.
    history : History
        Residuals by iteration.
    timings : dict
        Seconds by stage.
    details : dict
        Solver-specific numbers, documented by the solver.
    """

    v: np.ndarray
    lam: np.ndarray
    status: Status
    message: str
    iterations: int
    history: History
    timings: dict[str, float] = field(default_factory=dict)
    details: dict[str, Any] = field(default_factory=dict)

    @property
    def converged(self) -> bool:
        """Whether the tolerance was reached by true residuals."""
        return self.status == "converged"


class Solver(Protocol):
    """Anything that solves a :class:`~contact.problem.ContactProblem`."""

    def solve(self, problem: ContactProblem, warm_start: WarmStart | None = None) -> Solution:
        """Solve, optionally from a starting point."""
        ...


# ---------------------------------------------------------------------- options


@dataclass(frozen=True)
class SolverOptions:
    """Options of every solver.

    Attributes
    ----------
    tolerance : float
        Both true residuals (dynamics and contact, see ``contact.metrics``) must be at most this, and the force balance of each
        body at most five times this.
    max_iterations : int
        Limit of iterations.
    """

    solver_name: ClassVar[str]

    tolerance: float = 1e-5
    max_iterations: int = 1000

    def __post_init__(self) -> None:
        """Check the values once.

        Raises
        ------
        ContactError
            The first value outside its range.
        """
        for name, value, good, allowed in self._checks():
            if not good:
                raise ContactError(f"option {name} of solver {self.solver_name!r} is {value!r}; allowed are {allowed}.")

    def _checks(self) -> list[Check]:
        """Return what is allowed; a class that adds options adds its rows."""
        return [
            ("tolerance", self.tolerance, 0 < self.tolerance < 1, "numbers between 0 and 1"),
            self._limit_check(),
        ]

    def _limit_check(self) -> Check:
        return "max_iterations", self.max_iterations, self.max_iterations >= 1, "integers >= 1"

    @classmethod
    def describe(cls) -> str:
        """Text on all options, each from the class that documents it last."""
        texts: dict[str, str] = {}
        for base in reversed(cls.__mro__):
            _, _, attributes = inspect.cleandoc(base.__dict__.get("__doc__") or "").partition("Attributes\n----------\n")
            name = ""
            for line in attributes.splitlines():
                name = name if line.startswith(" ") else line.split(" : ")[0]
                texts[name] = line if not line.startswith(" ") else f"{texts[name]}\n{line}"
        head = (inspect.getdoc(cls) or "").partition("\n")[0]
        return "\n".join([head, "", *texts.values()])


@dataclass(frozen=True)
class OperatorOptions(SolverOptions):
    """Options of solvers with a choice between the contact law and its relaxation.

    Attributes
    ----------
    operator : {"strict", "proximal"}
        Projection of papers/001 eq. (26): strict satisfies the Signorini-Coulomb law, proximal its convex relaxation (eq. 28).
    """

    operator: Literal["strict", "proximal"] = "strict"

    def _checks(self) -> list[Check]:
        return [
            *super()._checks(),
            ("operator", self.operator, self.operator in ("strict", "proximal"), "'strict' and 'proximal'"),
        ]


@dataclass(frozen=True)
class FactorizationOptions(SolverOptions):
    """Options of solvers that factorize A.

    Attributes
    ----------
    backend : {"auto", "pardiso", "superlu"}
        Direct solver, see ``contact.linear``. Default: Pardiso where it runs.
    threads : int
        Threads of the direct solver. Default 1.
    """

    backend: Backend = "auto"
    threads: int = 1

    def _checks(self) -> list[Check]:
        return [
            *super()._checks(),
            ("backend", self.backend, self.backend in get_args(Backend), "'auto', 'pardiso' and 'superlu'"),
            ("threads", self.threads, self.threads >= 1, "integers >= 1"),
        ]


# ---------------------------------------------------------------------- the judge


class Judge:
    """Judges iterates by true residuals, keeps the best one and the history, and writes the verdict.

    Parameters
    ----------
    problem : ContactProblem or LocalProblem
        The problem to be solved. A local problem has the contact residual only.
    tolerance : float
        Bound of the residuals.
    measure : callable, optional
        ``measure(v, lam)`` returns the residuals, for a solver whose options ask for another contact law than the problem's.
        Default: those of ``contact.metrics`` and :func:`contact.local.measure_local`.
    """

    def __init__(
        self,
        problem: ContactProblem | LocalProblem,
        tolerance: float,
        measure: Callable[[np.ndarray, np.ndarray], Residuals] | None = None,
    ) -> None:
        self.problem, self.tolerance, self._measure = problem, tolerance, measure or partial(_residuals, problem)
        self.converged = self.failed = False
        #: residuals of the last iterate and of the best one
        self.last = self.best = Residuals(np.inf, np.inf, np.inf, np.inf)
        self.rows: list[Sequence[float]] = []
        self._best_row = 0
        self._v, self._lam = np.zeros(getattr(problem, "n", 0)), np.zeros((problem.n_contacts, 3))

    def look(self, v: np.ndarray, lam: np.ndarray, row: int) -> bool:
        """Judge an iterate; True when it converged or is not finite.

        Parameters
        ----------
        v : ndarray, (n,), m/s
            Velocity; empty for a local problem.
        lam : ndarray, (nc, 3) or (3 nc,), N
            Contact forces.
        row : int
            Its row of the history.
        """
        self.last = self._measure(v, lam)
        # before any comparison: max() forgets a NaN that stands second, and comparisons with one are False
        self.failed = not all(map(math.isfinite, self.last))
        self.converged = not self.failed and self._passes(self.last)
        if self.converged or (not self.failed and self.last.worst < self.best.worst):
            self.best, self._best_row = self.last, row
            self._v, self._lam = v.copy(), lam.reshape(-1, 3).copy()
        return self.converged or self.failed

    def _passes(self, found: Residuals) -> bool:
        largest = max(found.dynamics, found.contact, found.plain)
        return largest <= self.tolerance and found.balance <= BALANCE_FACTOR * self.tolerance

    @property
    def excess(self) -> float:
        """What must come below the tolerance beside the contact residual: dynamics in both norms, and balance over its factor."""
        if self.failed:
            return np.inf
        return max(self.last.dynamics, self.last.plain, self.last.balance / BALANCE_FACTOR)

    def record(self, rows: Rows) -> None:
        """Add rows to the history; what a method cannot know is that of the last iterate."""
        if isinstance(rows, np.ndarray):
            self.rows += rows.tolist()
            return
        known = self.last
        self.rows += [(known.dynamics if d is None else d, known.contact if c is None else c, step) for d, c, step in rows]

    def solution(self, timings: dict[str, float], details: dict[str, Any], note: str = "", law: str = "") -> Solution:
        """Return the best iterate with its verdict.

        Parameters
        ----------
        timings, details : dict
            Those of the solution.
        note : str
            Sentence to end the message with.
        law : str
            What to say of the contact law beside the residuals.
        """
        history = np.fromiter(chain.from_iterable(self.rows), np.float64).reshape(-1, 3)
        n, best = len(history), self.best
        status: Status = "converged" if self.converged else "failed" if self.failed else "stopped at the limit"
        verdict = {
            "converged": f"Converged in {n} iterations",
            "failed": f"Iteration {n} gave a value that is not finite",
            "stopped at the limit": f"Stopped at the limit of {n} iterations",
        }[status]
        if not self.converged and max(best.dynamics, best.contact) <= self.tolerance:
            note = f"Only the balance of a body or the plain norm of the dynamics is missing. {note}".strip()
        numbers = f"dynamics residual {best.dynamics:.2e}, contact residual {best.contact:.2e}, tolerance {self.tolerance:.0e}"
        if not self.converged and self._best_row < n - 1:
            place = f"that of iteration {self._best_row + 1}" if self._best_row >= 0 else "the start"
            numbers += f"; returned is the best iterate, {place}"
        message = f"{verdict} ({numbers}{f', {law}' if law else ''}).{f' {note}' if note else ''}"
        columns = History(history[:, 0], history[:, 1], history[:, 2])
        return Solution(self._v, self._lam, status, message, n, columns, timings, details)


def _residuals(problem: ContactProblem | LocalProblem, v: np.ndarray, lam: np.ndarray) -> Residuals:
    if isinstance(problem, LocalProblem):
        return Residuals(0.0, measure_local(problem, lam).contact_residual, 0.0, 0.0)
    return residuals(problem, v, lam)


# ---------------------------------------------------------------------- the driver


class Method(Protocol):
    """Iterations that can be continued, driven by :func:`drive`.

    Attributes
    ----------
    best : int
        Row of the history, from 0, that holds the iterate of :meth:`answer`.
    over, failed : bool
        Whether the method cannot go on, by a limit of its own or because it failed; whether a value is not finite.
    """

    @property
    def best(self) -> int: ...  # noqa: D102

    @property
    def over(self) -> bool: ...  # noqa: D102

    @property
    def failed(self) -> bool: ...  # noqa: D102

    def until(self, aim: float, limit: int) -> Rows:
        """Iterate until the residuals that the method sees are at most ``aim``, ``limit`` more times, or it is over.

        Returns the rows of these iterations. A method that sees no residuals does one iteration.
        """
        ...

    def answer(self) -> tuple[np.ndarray, np.ndarray]:
        """v, (n,), m/s, and lam, (nc, 3) or (3 nc,), N, of the best iterate, in the variables of the problem that is judged."""
        ...


def drive(method: Method, judge: Judge, limit: int) -> None:
    """Let a method iterate until the judge is content, its limit of iterations is reached, or it is over."""
    aim = judge.tolerance
    while True:
        rows = method.until(aim, limit - len(judge.rows))
        finished = judge.look(*method.answer(), method.best)
        judge.record(rows)
        if method.failed and not judge.converged:
            judge.failed = True
        if finished or method.over or len(judge.rows) >= limit:
            return
        aim *= _TIGHTER

"""What all solvers share: the solution, its history, the warm start, and the judge of convergence."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import numpy as np

from contact.errors import ContactError
from contact.local import LocalProblem, measure_local
from contact.metrics import residuals
from contact.problem import ContactProblem

Status = Literal["converged", "stopped at the limit", "failed"]

#: The force balance of each body must hold to this many times the tolerance.
BALANCE_FACTOR = 5.0


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


def check_options(solver: str, *checks: tuple[str, object, bool, str]) -> None:
    """Check options of a solver: rows of (name, value, whether it is good, what is allowed).

    Raises
    ------
    ContactError
        The first bad value.
    """
    for name, value, good, allowed in checks:
        if not good:
            raise ContactError(f"option {name} of solver {solver!r} is {value!r}; allowed are {allowed}.")


class Judge:
    """Judges iterates by true residuals, keeps the history and the best one, and writes the verdict.

    Converged means: dynamics residual, in both norms, and contact residual at most ``tolerance`` and the force balance of each
    body at most ``BALANCE_FACTOR`` times that, all from ``contact.metrics``. A local problem has the contact residual only.

    Parameters
    ----------
    problem : ContactProblem or LocalProblem
        The problem to be solved.
    tolerance : float
        Bound of both residuals.
    """

    def __init__(self, problem: ContactProblem | LocalProblem, tolerance: float) -> None:
        self.problem, self.tolerance = problem, tolerance
        self.converged = self.failed = False
        #: what is to come below the tolerance beside the contact residual: both norms of the dynamics, balance over its bound
        self.dynamics = np.inf
        self._rows: list[tuple[float, float, float]] = []
        self._best, self._best_row = np.inf, 0
        self._v, self._lam = np.zeros(getattr(problem, "n", 0)), np.zeros((problem.n_contacts, 3))

    def done(self, v: np.ndarray, lam: np.ndarray, step_norm: float) -> bool:
        """Judge an iterate; True when it converged or is not finite.

        Parameters
        ----------
        v : ndarray, (n,), m/s
            Velocity; empty for a local problem.
        lam : ndarray, (nc, 3) or (3 nc,), N
            Contact forces.
        step_norm : float, m/s
            Step length for the history.
        """
        if isinstance(self.problem, LocalProblem):
            dynamics, contact, unbalanced, plain = 0.0, measure_local(self.problem, lam).contact_residual, 0.0, 0.0
        else:
            dynamics, contact, unbalanced, plain = residuals(self.problem, v, lam)
        self._rows.append((dynamics, contact, step_norm))
        # before any comparison: max() forgets a NaN that stands second, and comparisons with one are False
        self.failed = not np.isfinite((dynamics, contact, unbalanced, plain)).all()
        if self.failed:
            self.converged, self.dynamics = False, np.inf
            return True
        self.dynamics = max(dynamics, plain, unbalanced / BALANCE_FACTOR)
        worst = max(dynamics, contact)
        self.converged = max(worst, plain) <= self.tolerance and unbalanced <= BALANCE_FACTOR * self.tolerance
        if worst < self._best or self.converged:
            self._best, self._best_row = worst, len(self._rows) - 1
            self._v, self._lam = v.copy(), lam.reshape(-1, 3).copy()
        return self.converged

    @property
    def residuals(self) -> tuple[float, float]:
        """Dynamics and contact residual of the last iterate."""
        return self._rows[-1][:2] if self._rows else (np.inf, np.inf)

    def solution(self, timings: dict[str, float], details: dict[str, Any], note: str = "") -> Solution:
        """Return the best iterate with its verdict; ``note`` is added to the sentence."""
        history = np.array(self._rows).reshape(-1, 3)
        n = len(history)
        status: Status = "converged" if self.converged else "failed" if self.failed else "stopped at the limit"
        said = {
            "converged": f"Converged in {n} iterations",
            "failed": f"Iteration {n} gave a value that is not finite",
            "stopped at the limit": f"Stopped at the limit of {n} iterations",
        }[status]
        dynamics, contact = history[self._best_row, :2] if n else (np.inf, np.inf)
        if not self.converged and max(dynamics, contact) <= self.tolerance:
            note = f"Only the balance of a body or the plain norm of the dynamics is missing. {note}".strip()
        message = (
            f"{said} (dynamics residual {dynamics:.2e}, contact residual {contact:.2e}, tolerance {self.tolerance:.0e})."
            f"{' ' + note if note else ''}"
        )
        return Solution(
            self._v, self._lam, status, message, n, History(history[:, 0], history[:, 1], history[:, 2]), timings, details
        )

"""What all solvers share: the solution, its history, the warm start."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import numpy as np

from contact.problem import ContactProblem

Status = Literal["converged", "stopped at the limit", "failed"]


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

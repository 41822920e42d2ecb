"""APGD: accelerated projected gradient descent on the forces, the second baseline of papers/001 (section V-C1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from contact.problem import force_scales
from contact.solvers.apgd_kernels import Iterates, accelerated_step
from contact.solvers.condensed import Condensed, CondensedOptions, CondensedSolver
from contact.solvers.dense_kernels import velocities

#: The strict operator loses its momentum and half its step length when the residual has not come down to this part of the best
#: one before for so many iterations (doubled each time). Slow progress is common and braking hurts it; cycles make none.
_PROGRESS, _PATIENCE = 0.97, 300


@dataclass(frozen=True)
class ApgdOptions(CondensedOptions):
    """Options of APGD.

    Attributes
    ----------
    operator : {"strict", "proximal"}
        Proximal: the method of Mazhar et al. (2015), which minimises lam^T W lam / 2 + q^T lam over the friction cones, the
        convex relaxation; where contacts slide that is another law, so our metrics do not pass it and the status says "stopped
        at the limit". Strict: the same with q shifted by mu |u_t| (De Saxce; papers/004 eq. 163) of the present iterate, whose
        fixed points satisfy the Signorini-Coulomb law; it has no proof of convergence. Where it makes no progress (seen for
        mu >= 2), it goes on without momentum and with shorter steps.
    """

    solver_name: ClassVar[str] = "apgd"


class _Gradient:
    """One iteration = one accelerated step, with one product by W and sometimes two."""

    def __init__(self, problem: Condensed, lam: np.ndarray, options: ApgdOptions) -> None:
        self.problem, self.lam, self.strict = problem, lam, options.operator == "strict"
        self.u = np.empty_like(lam)
        self.over, self.change = False, np.inf
        self.refresh()
        self._scale = force_scales(problem.WT.diagonal().reshape(-1, 3))
        self._theta, self._L = 1.0, 1.0
        self._iterates = Iterates(
            self.lam.copy(), self.u.copy(), self.lam, self.u, np.empty_like(lam), np.empty_like(lam)
        )  # fmt: skip
        self._brake, self._patience, self._waited, self._goal = 1.0, _PATIENCE, 0, np.inf

    def advance(self) -> None:
        p = self.problem
        self._theta, self._L = accelerated_step(
            p, self._scale, self.strict, self._theta, self._L, self._brake, self._iterates
        )  # fmt: skip

    def many(self, aim: float, limit: int, least: float, best: np.ndarray) -> tuple[np.ndarray, int]:
        """No iterations at once: a step is mostly products with W."""
        return np.empty((0, 2)), -1

    def watch(self, residual: float) -> None:
        """Brake the strict operator after a while without progress; each time for longer."""
        if not self.strict:
            return
        self._waited += 1
        if residual <= self._goal:
            self._goal, self._waited = _PROGRESS * residual, 0
        elif self._waited > self._patience:
            self._brake, self._patience, self._waited = 2.0 * self._brake, 2 * self._patience, 0

    def refresh(self) -> None:
        velocities(self.problem.WT, self.problem.q, self.lam, self.u)

    def details(self) -> dict[str, float]:
        """Numbers of its own for the solution."""
        return {}


class Apgd(CondensedSolver[ApgdOptions]):
    """Accelerated projected gradient descent on u = W lam + q (papers/001 ref. 28: Mazhar et al. 2015).

    Nesterov's momentum with restart where it points uphill, and steps 1/L with L doubled until it bounds the curvature along the
    step. Departures: L is measured in a metric that weighs each contact by the trace of its block of W, so that units and masses
    do not change the iterates; and the strict operator (see :class:`ApgdOptions`). A and W as in PGS.

    Parameters
    ----------
    options : ApgdOptions, optional
        Options; defaults are documented there.

    Notes
    -----
    ``Solution.details`` and the history are those of :class:`contact.solvers.sweeps.Pgs`.
    """

    description = "APGD: accelerated projected gradient on the assembled Delassus operator (baseline of papers/001)"

    def __init__(self, options: ApgdOptions | None = None) -> None:
        super().__init__(options or ApgdOptions())

    def _start(self, problem: Condensed, lam: np.ndarray) -> _Gradient:
        return _Gradient(problem, lam, self.options)

"""Exact solution of a condensed contact problem u = W lam + q: Gauss-Seidel sweeps and semi-smooth Newton steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.linalg as sl

from contact.solvers import dense_kernels as kernels

#: Sweeps before the first Newton step; doubled after each step that did not help, up to the largest.
_FIRST_SWEEPS, _MOST_SWEEPS = 3, 400
#: A Newton step must reduce the residual by this factor for another one to follow at once.
_GOOD_STEP = 0.5
#: ... and one with the factors of an earlier step by this factor, else they are made anew.
_GOOD_OLD_FACTORS = 0.1
#: Shifts of the diagonal tried in turn when W is singular.
_SHIFTS = (1e-14, 1e-10, 1e-7, 1e-4)


@dataclass
class DenseResult:
    """What :meth:`DenseSolver.solve` did: sweeps and Newton steps used, and the residual of its answer."""

    sweeps: int
    newton_steps: int
    residual: float


def relative_residual(lam: np.ndarray, u: np.ndarray, friction: np.ndarray, rho: np.ndarray, strict: bool = True) -> float:
    """Natural-map residual of forces lam and velocities u, (3k,) each; 0 without contacts."""
    residual, scale = kernels.natural_map(lam, u, friction, rho, strict)
    return residual / scale if scale > 0 else 0.0


class DenseSolver:
    """Solves u = W lam + q under the Signorini-Coulomb law for one W and any q.

    Sweeps of exact local solves (non-linear block Gauss-Seidel) find which contacts are open, stick and slide; semi-smooth
    Newton steps on those then converge quadratically. A Newton step is kept only when it reduces the natural-map residual,
    otherwise twice as many sweeps follow; a singular W (hyperstatic) gets a growing shift on the diagonal of the Newton matrix,
    never in the law. The factors of the last Newton matrix are used again for as long as that still divides the residual by ten.

    Parameters
    ----------
    WT : ndarray, (3k, 3k), m/(N s)
        Transposed Delassus operator, C-order; need not be symmetric.
    friction : ndarray, (k,)
        Coulomb coefficients.
    rho : ndarray, (k,), N s/m
        Scale of the natural map.
    """

    def __init__(self, WT: np.ndarray, friction: np.ndarray, rho: np.ndarray) -> None:
        k = len(friction)
        self.WT, self.friction, self.rho = WT, friction, rho
        self._blocks = np.empty((k, 3, 3))
        kernels.diagonal_blocks(WT, self._blocks)
        self._active, self._slides, self._trial = np.empty(k, dtype=np.int64), np.empty(k, dtype=np.bool_), np.empty((k, 3))
        self._u = np.empty(3 * k)
        self._factors: tuple[np.ndarray, np.ndarray] | None = None
        self._factored_active, self._factored_slides = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.bool_)

    def solve(
        self,
        q: np.ndarray,
        lam: np.ndarray,
        tolerance: float,
        max_sweeps: int,
        report: Callable[[np.ndarray, np.ndarray], None] | None = None,
    ) -> DenseResult:
        """Solve, updating lam in place.

        Parameters
        ----------
        q : ndarray, (3k,), m/s
            Velocity without contact forces.
        lam : ndarray, (3k,), N
            Start, replaced by the best iterate met.
        tolerance : float
            Relative natural-map residual to reach.
        max_sweeps : int
            Limit of sweeps, a Newton step counting as one.
        report : callable, optional
            Called with lam and u after each batch of sweeps and after each Newton step that helped.
        """
        if not len(self.friction):
            return DenseResult(0, 0, 0.0)
        u = self._u
        current = self._residual(q, lam)
        best, best_lam = current, lam.copy()
        used = newton_steps = shift = 0
        batch = _FIRST_SWEEPS
        # a warm start may be so near that the last Newton matrix finishes the work
        sweep = self._factors is None
        while best > tolerance and used < max_sweeps:
            if sweep:
                batch = min(batch, max_sweeps - used)
                kernels.gauss_seidel(self.WT, self._blocks, self.friction, True, batch, lam, u)
                used += batch
                current = self._residual(q, lam)
                if report:
                    report(lam, u)
            sweep, helped = True, False
            while True:
                if current < best:
                    best, best_lam = current, lam.copy()
                if best <= tolerance or used >= max_sweeps:
                    break
                before, before_lam = current, lam.copy()
                used, newton_steps = used + 1, newton_steps + 1
                current = self._newton_step(q, lam, before, _SHIFTS[shift])
                if not current < before:
                    # back to where the sweeps were, which need not be the best iterate: they must not run in circles
                    lam[:] = before_lam
                    current = self._residual(q, lam)
                    break
                if report:
                    report(lam, u)
                helped = helped or current <= _GOOD_STEP * before
                if current > _GOOD_STEP * before:
                    break
            if current < best:
                best, best_lam = current, lam.copy()
            if not helped:
                batch = min(2 * batch, _MOST_SWEEPS)
                shift = (shift + 1) % len(_SHIFTS)
        lam[:] = best_lam
        return DenseResult(used, newton_steps, best)

    def _residual(self, q: np.ndarray, lam: np.ndarray) -> float:
        """Set u = W lam + q afresh and return the residual."""
        kernels.velocities(self.WT, q, lam, self._u)
        return relative_residual(lam, self._u, self.friction, self.rho)

    def _newton_step(self, q: np.ndarray, lam: np.ndarray, before: float, shift: float) -> float:
        """One semi-smooth Newton step on lam in place; return the residual, infinite when the matrix is singular."""
        u = self._u
        count = kernels.classify(lam, u, self._blocks, self.friction, self._active, self._slides, self._trial)
        active, slides = self._active[:count], self._slides[:count]
        opened = np.ones(len(self.friction), dtype=np.bool_)
        opened[active] = False
        forces = lam.reshape(-1, 3)
        if forces[opened].any():
            forces[opened] = 0.0
            kernels.velocities(self.WT, q, lam, u)
        if not count:
            return self._residual(q, lam)
        matrix, right = np.empty((3 * count, 3 * count)), np.empty(3 * count)
        same = (
            self._factors is not None
            and np.array_equal(active, self._factored_active)
            and np.array_equal(slides, self._factored_slides)
        )
        kernels.newton_right(self._blocks, lam, u, self.friction, active, slides, self._trial, right)
        if same and self._factors is not None:
            change, _ = sl.lapack.dgetrs(*self._factors, right)
            start = forces[active].copy()
            forces[active] += change.reshape(-1, 3)
            after = self._residual(q, lam)
            if after <= _GOOD_OLD_FACTORS * before:
                return after
            forces[active] = start
            kernels.velocities(self.WT, q, lam, u)
        kernels.newton_matrix(self.WT, self._blocks, self.friction, active, slides, self._trial, shift, matrix)
        factor, pivots, singular = sl.lapack.dgetrf(matrix.T, overwrite_a=1)
        change = np.full(3 * count, np.nan) if singular else sl.lapack.dgetrs(factor, pivots, right)[0]
        if not np.isfinite(change).all():
            self._factors = None
            return np.inf
        self._factors, self._factored_active, self._factored_slides = (factor, pivots), active.copy(), slides.copy()
        forces[active] += change.reshape(-1, 3)
        return self._residual(q, lam)

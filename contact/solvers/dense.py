"""Exact solution of a condensed contact problem u = W lam + q: Gauss-Seidel sweeps, semi-smooth Newton, proximal points."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.linalg as sl

from contact.metrics import any_of
from contact.metrics_kernels import natural_map, relative
from contact.solvers import dense_kernels as kernels
from contact.solvers.judge import VELOCITY_FACTOR
from contact.solvers.local_kernels import EXACT_RULE, sweep_contacts

#: Sweeps before the first attempts of Newton's method; after the proximal points the last number goes on doubling.
SWEEPS = (3, 30, 100)
#: ... times the number of contacts over this.
_CONTACTS = 50
#: Most Newton steps of an attempt on the problem itself, and on a proximal one.
_NEWTON_STEPS, _PROXIMAL_STEPS = 12, 25
#: An attempt ends early when its last three residuals are this much above its best, or, of many contacts on
#: the problem itself, so many last ones have hardly gained.
_HOPELESS, _IDLE = 1e3, 5
#: Old factors of a Newton matrix serve for as long as each step with them divides the residual by ten.
_GOOD_OLD_FACTORS = 0.1
#: A Newton matrix is singular below this reciprocal condition: forces are not unique. Then W counts with this part of its
#: diagonal, so that a step goes where the equations lead, and along forces that change no velocity it hardly goes at all.
_SINGULAR, _NULL_SHIFT = 1e-13, 1e-4
#: Scale of the trial forces: u over this many times the mean diagonal of W. Larger ones make Newton's method cycle.
TRIAL_SCALE = 10.0
#: Proximal shift, relative to the diagonal of W: first, smallest and largest, and its factors after success and failure.
_SHIFT_FIRST, _SHIFT_LEAST, _SHIFT_MOST, _SHIFT_DOWN, _SHIFT_UP = 1e-2, 1e-13, 1.0, 0.1, 30.0
#: A proximal problem is solved to this part of the residual of the problem itself, or of the tolerance.
_PROXIMAL_REDUCTION, _PROXIMAL_TOLERANCE = 1e-2, 0.3
#: A search ends where forces that could undo this many times the velocities of the problem hide that these stay.
_RUNAWAY = 1e6
#: Proximal problems before the rest is left to sweeps, and sweeps after one that failed.
_PROXIMAL_POINTS, _RESCUE_SWEEPS = 60, 10
#: What hardly gains: a residual that does not fall to this part of itself. Where an answer is good enough, a search ends that
#: hardly gains in so many proximal points, or in a batch of sweeps after them. Within so many times the tolerance, where what is
#: left is mostly rounding, it ends after fewer points, or after one batch.
_GAIN, _LINGERING, _CLOSE, _LINGERING_CLOSE = 0.5, 15, 100.0, 3


@dataclass
class DenseResult:
    """What :meth:`DenseSolver.solve` did: sweeps and Newton steps used, the residual of its answer, and how it ended.

    ``runaway``: forces grew without bound, beside which the velocities that they leave look small.
    """

    sweeps: int
    newton_steps: int
    residual: float
    runaway: bool = False


def relative_residual(lam: np.ndarray, u: np.ndarray, friction: np.ndarray, rho: np.ndarray, strict: bool = True) -> float:
    """Natural-map residual of forces lam and velocities u, (3k,) each; 0 without contacts."""
    return float(relative(*natural_map(lam, u, friction, rho, strict)))


class DenseSolver:
    """Solves u = W lam + q under the Signorini-Coulomb law for one W and any q.

    Sweeps of exact local solves (non-linear block Gauss-Seidel) find about which contacts are open, stick and slide; semi-smooth
    Newton steps on those converge quadratically, and are let go through larger residuals on the way. Where that fails, as it does
    when forces are not unique (hyperstatic W) or W is ill-conditioned, the proximal point method takes over: the law with
    u + s D (lam - lam_k) instead of u, D the mean diagonal of W, has the better conditioned W + s D and is solved by the same
    Newton steps; its solution is the next lam_k, and s falls with each success. Its fixed points solve the problem itself.

    Parameters
    ----------
    WT : ndarray, (3k, 3k), m/(N s)
        Transposed Delassus operator, C-order; need not be symmetric.
    friction : ndarray, (k,)
        Coulomb coefficients.
    rho : ndarray, (k,), N s/m
        Scale of the natural map.
    only_newton : bool
        Only try Newton's method from the start, which treats all contacts alike: where forces are not unique, sweeps give those
        that come first more.
    """

    def __init__(self, WT: np.ndarray, friction: np.ndarray, rho: np.ndarray, *, only_newton: bool = False) -> None:
        k = len(friction)
        self.only_newton = only_newton
        self.WT, self.friction, self.rho = WT, friction, rho
        self._blocks, self._fixed = np.empty((k, 3, 3)), np.empty(k, dtype=np.bool_)
        self._compliance, self._scale = np.empty(k), np.empty(k)
        # a contact that nothing can move along its normal has no force
        self._some_fixed = kernels.prepare(WT, TRIAL_SCALE, self._blocks, self._compliance, self._scale, self._fixed)
        self._active, self._slides, self._trial = np.empty(k, dtype=np.int64), np.empty(k, dtype=np.bool_), np.empty((k, 3))
        self._right = np.empty(3 * k)
        self._u = np.empty(3 * k)
        # of the last residual: largest velocity of the problem, largest that a force could undo, and the natural map
        self.speed, self.reach, self.forces_alone = 0.0, 0.0, np.inf
        self._shift, self._shifted, self._centre = np.zeros(k), False, np.zeros(3 * k)
        self._factors: tuple[np.ndarray, np.ndarray] | None = None
        self._singular_from = k + 1
        self._factored_active, self._factored_slides = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.bool_)

    def solve(
        self,
        q: np.ndarray,
        lam: np.ndarray,
        tolerance: float,
        max_sweeps: int,
        report: Callable[[np.ndarray, np.ndarray], None] | None = None,
        enough: float = 0.0,
    ) -> DenseResult:
        """Solve, updating lam in place.

        Parameters
        ----------
        q : ndarray, (3k,), m/s
            Velocity without contact forces.
        lam : ndarray, (3k,), N
            Start, replaced by the best iterate met.
        tolerance : float
            Relative natural-map residual to reach; velocities of contacts must hold to a hundred times that.
        max_sweeps : int
            Limit of sweeps, a Newton step counting as one.
        report : callable, optional
            Called with lam and u after each batch of sweeps and each attempt of Newton's method.
        enough : float
            Residual with which a search ends early that hardly gains any more: of forces that are far from unique it may creep on
            for all of its sweeps.
        """
        if not len(self.friction):
            return DenseResult(0, 0, 0.0)
        if not any_of(~(q[::3] >= 0.0)):  # what nothing presses together parts, though friction might hold it, too
            lam[:] = 0.0
            return DenseResult(0, 0, 0.0)
        if self._some_fixed:
            lam.reshape(-1, 3)[self._fixed] = 0.0
        search = _Search(self, q, lam, tolerance, max_sweeps, report, enough)
        search.run()
        lam[:] = search.best_lam
        return DenseResult(search.sweeps, search.newton_steps, search.best, search.runaway)

    def shift_to(self, shift: float, centre: np.ndarray) -> None:
        """Make the problem the proximal one with s = shift around centre, (3k,); shift 0 is the problem itself."""
        if shift or self._shifted:  # without a shift nothing depends on the centre
            self._shift[:] = shift * self._compliance
            self._centre[:] = centre
        self._shifted = bool(self._shift.any()) if shift else False
        self._factors = None if shift else self._factors

    def residual(self, q: np.ndarray, lam: np.ndarray) -> float:
        """Set u afresh and return the residual of the present problem, forces relative to forces and velocities to velocities."""
        found, self.speed, self.reach, self.forces_alone = kernels.residual(
            self.WT, q, lam, self._shift, self._centre, self.friction, self.rho, self._u, VELOCITY_FACTOR
        )
        return float(found)

    def _set_velocities(self, q: np.ndarray, lam: np.ndarray) -> None:
        kernels.velocities(self.WT, q, lam, self._u)
        kernels.add_proximal(self._shift, self._centre, lam, self._u)

    def sweep(self, lam: np.ndarray, count: int) -> None:
        """Sweeps on lam and u of the problem itself."""
        sweep_contacts(self.WT, self._blocks, self.friction, EXACT_RULE, count, lam, self._u)

    def newton_step(self, q: np.ndarray, lam: np.ndarray, before: float) -> float:
        """One semi-smooth Newton step on lam in place; return the residual, infinite when the matrix is singular."""
        WT, u = self.WT, self._u
        count = kernels.begin_newton(
            WT, q, lam, self._shift, self._centre, self.friction, self._scale, u, self._active, self._slides, self._trial,
            self._right,
        )  # fmt: skip
        if not count:
            return self.residual(q, lam)
        active, slides, right = self._active[:count], self._slides[:count], self._right[: 3 * count]
        if self._factors is not None and self._is_factored(active, slides):
            start = lam.copy()
            kernels.end_newton(active, sl.lapack.dgetrs(*self._factors, right)[0], lam)
            after = self.residual(q, lam)
            if after <= _GOOD_OLD_FACTORS * before:
                return after
            lam[:] = start
            self._set_velocities(q, lam)
        factor, pivots = self._factorize(active, slides)
        if not kernels.end_newton(active, sl.lapack.dgetrs(factor, pivots, right)[0], lam):
            self._factors = None
            return np.inf
        self._factors, self._factored_active, self._factored_slides = (factor, pivots), active.copy(), slides.copy()
        return self.residual(q, lam)

    def _is_factored(self, active: np.ndarray, slides: np.ndarray) -> bool:
        """Whether the factors are those of these closed contacts and of these that slide."""
        return active.tobytes() == self._factored_active.tobytes() and slides.tobytes() == self._factored_slides.tobytes()

    def _factorize(self, active: np.ndarray, slides: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """LU factors and pivots of the Newton matrix, with ``_NULL_SHIFT`` where it is singular and the problem is not proximal.

        As many closed contacts as were singular before, or more, are taken to be so.
        """
        matrix, proximal = np.empty((3 * len(active), 3 * len(active))), self._shifted
        arguments = (self._scale, self.friction, active, slides, self._trial, matrix)
        if proximal or len(active) < self._singular_from:
            size = kernels.newton_matrix(self.WT, self._shift, *arguments)
            factor, pivots, _ = sl.lapack.dgetrf(matrix.T, overwrite_a=1)
            if proximal or sl.lapack.dgecon(factor, size)[0] >= _SINGULAR:
                return factor, pivots
            self._singular_from = len(active)
        kernels.newton_matrix(self.WT, _NULL_SHIFT * self._compliance, *arguments)
        factor, pivots, _ = sl.lapack.dgetrf(matrix.T, overwrite_a=1)
        return factor, pivots


class _Search:
    """One solve of a :class:`DenseSolver`: its counts, its limit and the best iterate met."""

    def __init__(
        self,
        solver: DenseSolver,
        q: np.ndarray,
        lam: np.ndarray,
        tolerance: float,
        max_sweeps: int,
        report: Callable[[np.ndarray, np.ndarray], None] | None,
        enough: float,
    ) -> None:
        self.solver, self.q, self.lam, self.tolerance, self.limit, self._report = solver, q, lam, tolerance, max_sweeps, report
        self._enough = enough
        self.sweeps = self.newton_steps = 0
        self.runaway = False
        # a Newton step costs about as much as a sweep for each contact, so many contacts are worth more sweeps before one; where
        # it fails they are worth no more, since proximal points lead there in fewer steps, from few sweeps best (measured)
        self._weight = max(len(solver.friction) // _CONTACTS, 1)
        solver.shift_to(0.0, lam)
        self.best, self.best_lam, self._start = solver.residual(q, lam), lam.copy(), lam.copy()

    @property
    def over(self) -> bool:
        """Whether the tolerance or the limit is reached, or forces run away."""
        return self.best <= self.tolerance or self.sweeps >= self.limit or self.runaway

    def run(self) -> None:
        """Go through the methods, the cheap one first."""
        # a warm start may be so near that the factors of the last Newton matrix finish the work
        near = self.solver._factors is not None or self.solver.only_newton
        if near and not self.over:
            start = self.lam.copy()
            self._newton(self.tolerance, _NEWTON_STEPS, self.best)
            self.lam[:] = start
        if self.solver.only_newton:
            return
        before = np.inf
        for sweeps in SWEEPS:
            if self.over or (self._is_close and self._lingers(before)):
                return
            before = self.best
            self._sweep_and_step(self._weight * sweeps)
            if self._weight > 1 and not self.over:
                self.lam[:] = self._start
                self._sweep(SWEEPS[0])
                break
        if self._proximal_points():
            return
        sweeps, before = self._weight * SWEEPS[-1], np.inf
        while not (self.over or self._lingers(before)):
            before = self.best
            self._sweep_and_step(sweeps)
            sweeps *= 2

    @property
    def _is_close(self) -> bool:
        """Whether an answer is good enough and near the tolerance."""
        return self.best <= min(self._enough, _CLOSE * self.tolerance)

    def _lingers(self, before: float) -> bool:
        """Whether an answer that is good enough has hardly gained since it had the residual ``before``."""
        return _GAIN * before < self.best <= self._enough

    def _keep(self, known: float = math.inf) -> float:
        """Judge lam by the problem itself (no shift), keep it when it is the best, and return its residual.

        That may be ``known``, where it was asked last.
        """
        solver = self.solver
        residual = known if math.isfinite(known) else solver.residual(self.q, self.lam)
        if residual > self.tolerance >= solver.forces_alone and solver.reach > _RUNAWAY * solver.speed:
            self.runaway, self.best, self.best_lam = True, residual, self.lam.copy()
        if self._report:
            self._report(self.lam, solver._u)
        if residual < self.best:
            self.best, self.best_lam = residual, self.lam.copy()
        return residual

    def _sweep(self, count: int) -> float:
        """Sweep from lam; return the residual of where that led."""
        self.solver.residual(self.q, self.lam)
        count = min(count, self.limit - self.sweeps)
        self.solver.sweep(self.lam, count)
        self.sweeps += count
        return self._keep()

    def _sweep_and_step(self, count: int) -> None:
        """Sweep from lam and try Newton's method there; lam is where the sweeps led."""
        residual = self._sweep(count)
        swept = self.lam.copy()
        self._newton(self.tolerance, _NEWTON_STEPS, residual)
        self.lam[:] = swept

    def _newton(self, tolerance: float, most: int, known: float | None = None) -> bool:
        """Newton steps on the present (possibly proximal) problem from lam; whether they reached the tolerance.

        Residuals may rise on the way: the sets of closed and sliding contacts often come right only after one or two bad steps.
        That of lam may be ``known``, where it was asked last.
        """
        solver = self.solver
        residuals = [solver.residual(self.q, self.lam) if known is None else known]
        may_idle = self._weight == 1 or solver._shifted
        while residuals[-1] > tolerance and len(residuals) <= most and self.sweeps < self.limit:
            residuals.append(solver.newton_step(self.q, self.lam, residuals[-1]))
            self.sweeps, self.newton_steps = self.sweeps + 1, self.newton_steps + 1
            if not math.isfinite(residuals[-1]) or (len(residuals) > 4 and min(residuals[-3:]) > _HOPELESS * min(residuals)):
                break
            if not may_idle and len(residuals) > _IDLE and min(residuals[-_IDLE:]) > _GAIN * min(residuals[:-_IDLE]):
                break
        if not solver._shifted:
            self._keep(residuals[-1])
        return residuals[-1] <= tolerance

    def _proximal_points(self) -> bool:
        """Proximal point method with Newton steps inside, from lam; whether the search should end."""
        solver, shift = self.solver, _SHIFT_FIRST
        bests = [np.inf] * _LINGERING
        for _ in range(_PROXIMAL_POINTS):
            if self.over or self._lingers(bests[-_LINGERING_CLOSE if self._is_close else -_LINGERING]):
                return True
            bests.append(self.best)
            centre = self.lam.copy()
            before = self.best
            solver.shift_to(shift, centre)
            aim = max(_PROXIMAL_TOLERANCE * self.tolerance, _PROXIMAL_REDUCTION * min(before, 0.1))
            reached = self._newton(aim, _PROXIMAL_STEPS)
            solver.shift_to(0.0, centre)
            residual = self._keep() if np.isfinite(self.lam).all() else np.inf
            if reached:
                # also where the residual did not fall: then the step was short because the shift was large
                shift = max(_SHIFT_DOWN * shift, _SHIFT_LEAST)
                continue
            if not residual < before:
                self.lam[:] = centre
            self._sweep(_RESCUE_SWEEPS)
            shift = min(_SHIFT_UP * shift, _SHIFT_MOST)
        return False

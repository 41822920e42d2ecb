"""Semi-smooth Newton on the augmented Lagrangian's equation with the strict operator: the baselines of papers/000 Table II."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from contact.linear import Backend
from contact.metrics import is_finite, norm
from contact.metrics_kernels import TINY
from contact.solvers import augmented_kernels as kernels
from contact.solvers.augmented import InnerFound, Surrogate, System
from contact.solvers.newton_ways import DenseWay, SparseWay, Way, columns_of

Globalization = Literal["damped", "dogleg"]
#: Trust region: gains below and above which it changes, by which factors, and the least gain of a step that is taken.
_POOR, _GOOD, _SHRINK, _GROW, _TAKEN = 0.25, 0.75, 0.25, 2.0, 1e-4
#: Smallest radius beside the size of the start.
_SMALLEST = 1e-14


class StrictNewton:
    """Solves r(v) = A v - b - J^T T(lam - beta (J v + phi)) = 0 with the strict operator T (papers/000 eq. 19).

    Here the slip speeds of the surrogate are not used: T holds the Signorini-Coulomb law by itself. r is semi-smooth, its
    Jacobian A + J^T beta dT J is neither symmetric nor always regular, and |r|^2 / 2, the merit function, is not convex.

    Departure: norms are weighted by 1 / sqrt(A_ii), since rows of A differ in their units.

    Parameters
    ----------
    system : System
        The problem.
    method : {"damped", "dogleg"}
        Backtracking along the Newton step, or Powell's dogleg in a trust region.
    backend, threads
        See ``contact.sparse_lu.make_sparse_factors``.
    """

    def __init__(self, system: System, method: Globalization, backend: Backend = "auto", threads: int = 1) -> None:
        self._problem, self._method = system.problem, method
        ways: tuple[Way, ...] = DenseWay(), SparseWay(backend, threads)
        columns = columns_of(system.problem)
        self._way = next(way for way in ways if way.take(system.problem, columns))
        nc, self._load = system.problem.n_contacts, norm(system.problem.weight * system.problem.b)
        self._force, self._gain, self._room = np.empty((nc, 3)), np.empty((nc, 3, 3)), np.empty(system.problem.n)

    def forces(self, given: Surrogate, u: np.ndarray) -> np.ndarray:
        """T of the trial forces."""
        force = np.empty_like(given.lam)
        kernels.strict_with_slope(given.lam, u, self._problem.friction, given.beta, force, self._gain, np.empty(len(u), np.int8))
        return force

    def _residual(self, given: Surrogate, v: np.ndarray, state: np.ndarray) -> tuple[np.ndarray, float]:
        """Return r at v, (n,), N, times the weight, and the size of its largest term; sets the gains, u and A v - b there."""
        problem, weight = self._problem, self._problem.weight
        self._u = problem.moved(v).reshape(-1, 3) + problem.phi
        kernels.strict_with_slope(given.lam, self._u, problem.friction, given.beta, self._force, self._gain, state)
        moving, pushed = problem.times(v), problem.pushed(self._force)
        self._still = moving - problem.b
        return weight * (self._still - pushed), max(norm(weight * moving), self._load, norm(weight * pushed), TINY)

    def solve(self, given: Surrogate, v: np.ndarray, state: np.ndarray, aim: float, most: int) -> InnerFound:
        """Step until the residual is at most ``aim``, they are so many, or no step reduces the merit function."""
        evaluations, weight, radius = 0, self._problem.weight, 0.0
        r, scale = self._residual(given, v, state)
        for step in range(most + 1):
            size = norm(r) / scale
            if not math.isfinite(size):
                return InnerFound(step, evaluations, step, np.inf)
            if step == most or size <= aim:
                break
            # a matrix that cannot be factorized leaves v where it is
            d = -self._way.solve(r / weight) if self._way.factorize(self._gain) else np.full(len(v), np.nan)
            if not is_finite(d):
                break
            if self._method == "damped":
                alpha, count = kernels.strict_backtrack(*self._along(given, d), float(r @ r), self._room)
                taken = alpha * d if alpha > 0.0 else None
            else:
                radius = radius or float(np.linalg.norm(d / weight))
                taken, radius, count = self._dogleg(given, r, d, radius)
            evaluations += count
            if taken is None:
                step += 1
                break
            v += taken
            r, scale = self._residual(given, v, state)
        return InnerFound(step, evaluations, step, norm(r) / scale)

    def _along(self, given: Surrogate, d: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return the arguments of :func:`augmented_kernels.strict_merit` from v, where the residual was asked last, along d."""
        problem, J = self._problem, self._problem.J
        moved = problem.moved(d).reshape(-1, 3)
        return (
            given.lam, self._u, moved, problem.friction, given.beta, self._still, problem.times(d), problem.weight,
            J.indptr, J.indices, J.data,
        )  # fmt: skip

    def _dogleg(self, given: Surrogate, r: np.ndarray, newton: np.ndarray, radius: float) -> tuple[np.ndarray | None, float, int]:
        """Powell's step in the variables v / weight: the step or None, the next radius, and the evaluations."""
        w = self._problem.weight
        gradient = w * self._product(w * r, transposed=True)
        moved = w * self._product(w * gradient)
        length = float(np.linalg.norm(gradient))
        cauchy = -(length**2 / max(float(moved @ moved), TINY)) * gradient
        p_newton, before, smallest = newton / w, float(r @ r), _SMALLEST * max(float(np.linalg.norm(newton / w)), TINY)
        for count in range(1, 100):
            p = _dogleg_point(cauchy, p_newton, radius)
            linear = r + w * self._product(w * p)
            there = kernels.strict_merit(*self._along(given, w * p), 1.0, self._room)
            gained = (before - there) / max(before - float(linear @ linear), TINY)
            full = float(np.linalg.norm(p)) >= 0.99 * radius
            if gained < _POOR:
                radius *= _SHRINK
            elif gained > _GOOD and full:
                radius *= _GROW
            if gained > _TAKEN:
                return w * p, radius, count
            if not radius > smallest:
                break
        return None, radius, count

    def _product(self, x: np.ndarray, *, transposed: bool = False) -> np.ndarray:
        """Return (A + J^T gain J) x, or its transpose times x."""
        problem, gain = self._problem, self._gain
        moved = problem.moved(x).reshape(-1, 3)
        along = np.einsum("mdc,md->mc" if transposed else "mcd,md->mc", gain, moved)
        return np.asarray(problem.A @ x + problem.pushed(along))


def _dogleg_point(cauchy: np.ndarray, newton: np.ndarray, radius: float) -> np.ndarray:
    """Point on the path from 0 over the Cauchy point to the Newton point at distance ``radius``, or the Newton point."""
    if np.linalg.norm(newton) <= radius:
        return newton
    length = float(np.linalg.norm(cauchy))
    if length >= radius:
        return np.asarray(radius / length * cauchy)
    leg = newton - cauchy
    a, b, c = float(leg @ leg), float(cauchy @ leg), length**2 - radius**2
    return np.asarray(cauchy + (-b + np.sqrt(b * b - a * c)) / a * leg)

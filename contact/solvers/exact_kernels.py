"""Compiled kernels of the exact solver: what surrounds the condensed contact problem of a refinement, a call for each stage."""

from __future__ import annotations

import numpy as np

from contact.compiled import njit
from contact.jacobian_kernels import contact_velocities, scatter
from contact.metrics_kernels import larger, term_sizes


@njit(cache=True)
def begin(
    A_indptr: np.ndarray, A_indices: np.ndarray, A_data: np.ndarray,
    indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, phi: np.ndarray, b: np.ndarray, weight: np.ndarray,
    v: np.ndarray, lam: np.ndarray, standing: float, u: np.ndarray, Av: np.ndarray, chosen: np.ndarray,
) -> tuple[int, float]:  # fmt: skip
    """Fill u = J v + phi (nc, 3), A v (n,) and the contacts to begin with (nc,); return their number and the dynamics residual.

    A contact is chosen that bears force, lam (nc, 3), or approaches, see :func:`approach`. One array is made: J^T lam. The 15
    parameters are A and J by their arrays, the rest of the problem, the iterate and the results.
    """
    push = np.empty(v.shape[0])
    scatter(A_indptr, A_indices, A_data, v, Av)
    contact_velocities(indptr, indices, data, v, phi, u)
    scatter(indptr, indices, data, lam.ravel(), push)
    slowest = standing_speed(u, standing)
    count = 0
    for m in range(chosen.shape[0]):
        pressed = lam[m, 0] != 0.0 or lam[m, 1] != 0.0 or lam[m, 2] != 0.0
        chosen[m] = pressed or u[m, 0] <= slowest
        count += chosen[m]
    return count, term_sizes(Av, b, push, weight)[0]


@njit(cache=True, inner=True)
def standing_speed(u: np.ndarray, standing: float) -> float:
    """Speed, m/s, below which the sign of a normal velocity is rounding's: so much of the largest of all, u (nc, 3)."""
    largest = 0.0
    for m in range(u.shape[0]):
        for c in range(3):
            largest = larger(largest, abs(u[m, c]))
    return standing * largest


@njit(cache=True)
def approach(u: np.ndarray, standing: float, chosen: np.ndarray) -> bool:
    """Choose also, in ``chosen`` (nc,), contacts that approach or stand still to rounding; return whether any is new."""
    slowest, new = standing_speed(u, standing), False
    for m in range(chosen.shape[0]):
        if not chosen[m] and u[m, 0] <= slowest:
            chosen[m] = new = True
    return new


@njit(cache=True)
def lacking(
    indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, b: np.ndarray, lam: np.ndarray, Av: np.ndarray, out: np.ndarray
) -> None:
    """Fill out = b + J^T lam - A v, (n,), N, of forces (nc, 3)."""
    scatter(indptr, indices, data, lam.ravel(), out)
    for i in range(out.shape[0]):
        out[i] = b[i] + out[i] - Av[i]


@njit(cache=True)
def speed_without_forces(q: np.ndarray, lam: np.ndarray) -> float:
    """Largest velocity without contact forces q, (3k,), m/s, of contacts that press, or that approach without forces."""
    largest = 0.0
    for n in range(0, q.shape[0], 3):
        if q[n] < 0.0 or lam[n] != 0.0 or lam[n + 1] != 0.0 or lam[n + 2] != 0.0:
            largest = larger(largest, larger(abs(q[n]), larger(abs(q[n + 1]), abs(q[n + 2]))))
    return largest

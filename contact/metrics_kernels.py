"""Loops of the yardstick over contacts and points; each sum and product is that of the formula, in the order of numpy's."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from contact.cone import project_cone

#: Scales below this count as zero.
TINY = 1e-300


@njit(cache=True)
def relative(residual: float, scale: float) -> float:
    """Divide a residual by its scale: 0 where both are 0, and NaN unless both are finite.

    An overflow is therefore never a small residual: without the rule, forces of 1e170 N, whose squares are infinite, would have
    the residual 0.
    """
    if not (math.isfinite(residual) and math.isfinite(scale)):
        return math.nan
    return residual / max(scale, TINY)


@njit(cache=True)
def natural_map_parts(
    u: np.ndarray, lam: np.ndarray, rho: np.ndarray, friction: np.ndarray, relaxed: bool, rho_u: np.ndarray, wrong: np.ndarray
) -> None:
    """Fill rho uh and lam - P_K(lam - rho uh), (nc, 3) each, N; see ``contact.metrics.natural_map``."""
    for m in range(lam.shape[0]):
        normal = u[m, 0]
        if not relaxed:
            normal += friction[m] * math.sqrt(u[m, 1] * u[m, 1] + u[m, 2] * u[m, 2])
        rho_u[m, 0], rho_u[m, 1], rho_u[m, 2] = normal * rho[m], u[m, 1] * rho[m], u[m, 2] * rho[m]
        p_n, p_0, p_1 = project_cone(lam[m, 0] - rho_u[m, 0], lam[m, 1] - rho_u[m, 1], lam[m, 2] - rho_u[m, 2], friction[m])
        wrong[m, 0], wrong[m, 1], wrong[m, 2] = lam[m, 0] - p_n, lam[m, 1] - p_0, lam[m, 2] - p_1


@njit(cache=True)
def larger(x: float, y: float) -> float:
    """Return the larger of two numbers, and NaN where one of them is."""
    return y if y > x or y != y else x


@njit(cache=True)
def distance_to_cone(lam: np.ndarray, friction: np.ndarray) -> float:
    """Largest distance by which a force leaves its cone, see ``contact.metrics.distance_to_cone``."""
    worst = 0.0
    for m in range(lam.shape[0]):
        length = math.sqrt(lam[m, 1] * lam[m, 1] + lam[m, 2] * lam[m, 2])
        worst = larger(larger(worst, length - friction[m] * lam[m, 0]), -lam[m, 0])
    return worst


@njit(cache=True, error_model="numpy")
def alignment(u: np.ndarray, lam: np.ndarray, rho: np.ndarray, smallest: float) -> float:
    """Largest 1 + cos(angle between slip and friction force), see ``contact.metrics.alignment``."""
    fastest, strongest = smallest, smallest
    for m in range(lam.shape[0]):
        for c in range(3):
            fastest = larger(fastest, abs(u[m, c]))
        undone = math.sqrt(lam[m, 0] * lam[m, 0] + lam[m, 1] * lam[m, 1] + lam[m, 2] * lam[m, 2]) / rho[m]
        fastest, strongest = larger(fastest, undone), larger(strongest, lam[m, 0])
    worst, found = -math.inf, False
    for m in range(lam.shape[0]):
        speed = math.sqrt(u[m, 1] * u[m, 1] + u[m, 2] * u[m, 2])
        force = math.sqrt(lam[m, 1] * lam[m, 1] + lam[m, 2] * lam[m, 2])
        if speed > 1e-6 * fastest and lam[m, 0] > 1e-6 * strongest and force > 0.0:
            cosine = (u[m, 1] * lam[m, 1] + u[m, 2] * lam[m, 2]) / (speed * force)
            worst, found = larger(worst, 1.0 + cosine), True
    return worst if found else 0.0


@njit(cache=True)
def lengths(vectors: np.ndarray, out: np.ndarray) -> None:
    """Fill the lengths (k,) of vectors (k, 3)."""
    for m in range(vectors.shape[0]):
        out[m] = math.sqrt(vectors[m, 0] * vectors[m, 0] + vectors[m, 1] * vectors[m, 1] + vectors[m, 2] * vectors[m, 2])


@njit(cache=True)
def point_sums(
    first: np.ndarray, second: np.ndarray, third: np.ndarray, start: int, stop: int, stride: int, out: np.ndarray
) -> None:
    """Fill the sums (3, 3) of the vectors that begin at every stride-th row of three arrays from start to stop - 1."""
    out[:] = 0.0
    for row in range(start, stop, stride):
        for c in range(3):
            out[0, c] += first[row + c]
            out[1, c] += second[row + c]
            out[2, c] += third[row + c]

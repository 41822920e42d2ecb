"""The friction cone: projections used by the solvers (compiled) and by the metrics (vectorised)."""

from __future__ import annotations

import math

import numpy as np
from numba import njit


@njit(cache=True)
def project_strict(lam_n: float, lam_0: float, lam_1: float, mu: float) -> tuple[float, float, float]:
    """Strict operator of papers/001 eq. (26): clip the normal force, then the tangent to the disc of radius mu lam_n.

    With a diagonal surrogate Delassus operator its result satisfies the Signorini-Coulomb law exactly (Prop. 4).

    Parameters
    ----------
    lam_n, lam_0, lam_1 : float, N
        Trial force.
    mu : float
        Coulomb coefficient.
    """
    if lam_n <= 0.0:
        return 0.0, 0.0, 0.0
    bound = mu * lam_n
    length = math.sqrt(lam_0 * lam_0 + lam_1 * lam_1)
    if length <= bound:
        return lam_n, lam_0, lam_1
    scale = bound / length
    return lam_n, lam_0 * scale, lam_1 * scale


@njit(cache=True)
def project_cone(lam_n: float, lam_0: float, lam_1: float, mu: float) -> tuple[float, float, float]:
    """Closest point of the second-order cone |lam_t| <= mu lam_n (proximal operator of papers/001 eq. 26).

    The polar test comes before the membership test, so that at mu = 0 a negative normal force gives zero.
    """
    length = math.sqrt(lam_0 * lam_0 + lam_1 * lam_1)
    if mu * length <= -lam_n:
        return 0.0, 0.0, 0.0
    if length <= mu * lam_n:
        return lam_n, lam_0, lam_1
    normal = (lam_n + mu * length) / (1.0 + mu * mu)
    scale = mu * normal / length
    return normal, lam_0 * scale, lam_1 * scale


def project_cones(lam: np.ndarray, friction: np.ndarray) -> np.ndarray:
    """Closest points of the friction cones, vectorised.

    Parameters
    ----------
    lam : ndarray, (nc, 3), N
        Trial forces, normal first.
    friction : ndarray, (nc,)
        Coulomb coefficients.

    Returns
    -------
    ndarray, (nc, 3), N
    """
    normal, tangent = lam[:, 0], lam[:, 1:]
    length = np.linalg.norm(tangent, axis=1)
    polar = friction * length <= -normal
    inside = ~polar & (length <= friction * normal)
    edge = ~(polar | inside)
    on_edge = (normal + friction * length) / (1.0 + friction**2)
    out = np.where(polar[:, None], 0.0, lam)
    out[edge, 0] = on_edge[edge]
    out[edge, 1:] = tangent[edge] * (friction * on_edge / np.where(length > 0, length, 1.0))[edge, None]
    return out

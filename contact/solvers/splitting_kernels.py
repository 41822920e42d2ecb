"""Compiled half of an iteration of splitting: each contact by itself."""

from __future__ import annotations

import math

import numpy as np

from contact.compiled import njit
from contact.cone import project_cone, project_strict

STRICT, PROXIMAL, LAGGED = range(3)


@njit(cache=True)
def split_step(
    u: np.ndarray,
    friction: np.ndarray,
    penalty: np.ndarray,
    operator: int,
    relaxation: float,
    z: np.ndarray,
    lam: np.ndarray,
    z_new: np.ndarray,
    lam_new: np.ndarray,
) -> None:
    """Project forces and update the dual velocities of one iteration (papers/003 eqs. 37-38, papers/004 Alg. 6).

    With p = lam - penalty u the new lam = P(p) and z = (lam - p) / penalty satisfy the law of the operator exactly.

    Parameters
    ----------
    u : ndarray, (3k,), m/s
        Contact velocities of the linear step.
    friction : ndarray, (k,)
        Coulomb coefficients.
    penalty : ndarray, (k,), N s/m
        Force per velocity of each contact, 1 / Theta.
    operator : int
        STRICT, PROXIMAL, or LAGGED: proximal with the correction of De Saxce by the old z.
    relaxation : float
        Weight of u beside the old z; 1 is none.
    z, lam : ndarray, (3k,), m/s and N
        Those that the linear step took.
    z_new, lam_new : ndarray, (3k,), m/s and N
        Filled; they may be z and lam themselves.
    """
    for i in range(friction.shape[0]):
        n, s, t = 3 * i, 3 * i + 1, 3 * i + 2
        shift = friction[i] * math.sqrt(z[s] * z[s] + z[t] * z[t]) if operator == LAGGED else 0.0
        p_n = lam[n] - penalty[i] * (relaxation * u[n] + (1.0 - relaxation) * z[n] + shift)
        p_0 = lam[s] - penalty[i] * (relaxation * u[s] + (1.0 - relaxation) * z[s])
        p_1 = lam[t] - penalty[i] * (relaxation * u[t] + (1.0 - relaxation) * z[t])
        if operator == STRICT:
            lam_new[n], lam_new[s], lam_new[t] = project_strict(p_n, p_0, p_1, friction[i])
        else:
            lam_new[n], lam_new[s], lam_new[t] = project_cone(p_n, p_0, p_1, friction[i])
        z_new[n] = (lam_new[n] - p_n) / penalty[i] - shift
        z_new[s], z_new[t] = (lam_new[s] - p_0) / penalty[i], (lam_new[t] - p_1) / penalty[i]


@njit(cache=True)
def split_sizes(
    x: np.ndarray,
    penalty: np.ndarray,
    weight: np.ndarray,
    z: np.ndarray,
    lam: np.ndarray,
    z_new: np.ndarray,
    lam_new: np.ndarray,
) -> tuple[float, float, float, float, float]:
    """Norms by which the penalty is chosen, and the combined residual of the acceleration.

    Parameters
    ----------
    x : ndarray, (3k,), N
        Forces of the linear step.
    penalty, weight : ndarray, (k,)
        1 / Theta, N s/m, and the scale of each contact in which norms are taken, sqrt(m/(N s)), ones for none.
    z, lam, z_new, lam_new : ndarray, (3k,), m/s and N
        Before and after the projection.

    Returns
    -------
    tuple of float
        Of ``x - lam_new``, ``Theta (lam_new - lam)``, the larger of forces, and z_new: norms in the weights; and
        ``|z_new - z|^2 / Theta + Theta |lam_new - lam|^2``.
    """
    primal = dual = force = carried = velocity = combined = 0.0
    for i in range(penalty.shape[0]):
        w, r = weight[i] * weight[i], penalty[i]
        for k in range(3 * i, 3 * i + 3):
            gap, change, turn = x[k] - lam_new[k], lam_new[k] - lam[k], z_new[k] - z[k]
            primal += w * gap * gap
            dual += change * change / (r * r * w)
            force += w * lam_new[k] * lam_new[k]
            carried += w * x[k] * x[k]
            velocity += z_new[k] * z_new[k] / w
            combined += r * turn * turn + change * change / r
    return math.sqrt(primal), math.sqrt(dual), math.sqrt(max(force, carried)), math.sqrt(velocity), combined

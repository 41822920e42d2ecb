"""Compiled iteration of APGD."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from contact.compiled import njit
from contact.cone import project_cone
from contact.solvers.condensed import Condensed
from contact.solvers.dense_kernels import velocities

#: Factor on the curvature L after each iteration, so that the steps can grow again (0.9 as in Mazhar et al. 2015).
_FORGET = 0.9
#: Trials of L in one iteration; from any start they reach the largest eigenvalue of a scaled W with 3 nc rows.
_TRIALS = 60


class Iterates(NamedTuple):
    """Arrays (3nc,) of an accelerated step: forces in N and their contact velocities in m/s.

    Attributes
    ----------
    y, u_y : ndarray
        Extrapolated forces, from which a step starts.
    lam, u : ndarray
        The last step's.
    new, u_new : ndarray
        Scratch.
    """

    y: np.ndarray
    u_y: np.ndarray
    lam: np.ndarray
    u: np.ndarray
    new: np.ndarray
    u_new: np.ndarray


@njit(cache=True)
def accelerated_step(
    problem: Condensed, scale: np.ndarray, strict: bool, theta: float, L: float, brake: float, iterates: Iterates
) -> tuple[float, float]:
    """One iteration in place; return the momentum parameter theta and the curvature L.

    From y, u_y = W y + q: the projected gradient step with the smallest L of a doubling sequence that bounds the curvature along
    the step; then lam, u are the step's, and y, u_y extrapolate it, or equal it where the momentum points uphill (restart).
    ``scale``, (nc,), N s/m, is the metric: it makes steps independent of units and of masses. ``brake`` divides the steps and
    switches the momentum off where it is above 1.
    """
    friction = problem.friction
    y, u_y, lam, u, new, u_new = iterates
    for _ in range(_TRIALS):
        for i in range(friction.shape[0]):
            n, s, t = 3 * i, 3 * i + 1, 3 * i + 2
            size = scale[i] / (L * brake)
            lift = friction[i] * math.sqrt(u_y[s] * u_y[s] + u_y[t] * u_y[t]) if strict else 0.0
            new[n], new[s], new[t] = project_cone(
                y[n] - size * (u_y[n] + lift), y[s] - size * u_y[s], y[t] - size * u_y[t], friction[i]
            )
        velocities(problem.WT, problem.q, new, u_new)
        curvature, length = 0.0, 0.0
        for k in range(new.shape[0]):
            d = new[k] - y[k]
            curvature += d * (u_new[k] - u_y[k])
            length += d * d / scale[k // 3]
        if curvature <= L * length:
            break
        L = max(2.0 * L, curvature / length)
    uphill = 0.0
    for k in range(new.shape[0]):
        uphill += (y[k] - new[k]) * (new[k] - lam[k]) / scale[k // 3]
    momentum = 0.0
    if uphill > 0.0 or brake > 1.0:
        theta = 1.0
    else:
        next_theta = 0.5 * theta * (math.sqrt(theta * theta + 4.0) - theta)
        momentum = theta * (1.0 - theta) / (theta * theta + next_theta)
        theta = next_theta
    for k in range(new.shape[0]):
        y[k] = new[k] + momentum * (new[k] - lam[k])
        u_y[k] = u_new[k] + momentum * (u_new[k] - u[k])
        lam[k], u[k] = new[k], u_new[k]
    return theta, L * _FORGET

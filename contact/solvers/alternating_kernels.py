"""Compiled kernels of alternating steps between dynamics and contact law."""

from __future__ import annotations

import math

import numpy as np

from contact.compiled import njit
from contact.solvers.primal_kernels import OPEN, SLIDE, STICK


@njit(cache=True)
def law_forces(friction: np.ndarray, z: np.ndarray, lam: np.ndarray, state: np.ndarray) -> int:
    """Fill the forces lam (nc, 3), N, and states (nc,) int8 of z = lam - R u (nc, 3), N; return how many states changed.

    Any z is such a difference of one pair that holds the law of Signorini and Coulomb, whatever the positive diagonal R is, as
    long as its two tangents are the same.
    """
    changed = 0
    for m in range(z.shape[0]):
        z_n, z_0, z_1 = z[m, 0], z[m, 1], z[m, 2]
        if z_n <= 0.0:
            now = OPEN
            lam[m, 0] = lam[m, 1] = lam[m, 2] = 0.0
        else:
            length, bound = math.sqrt(z_0 * z_0 + z_1 * z_1), friction[m] * z_n
            now = STICK if length <= bound else SLIDE
            share = 1.0 if length <= bound else bound / length
            lam[m, 0], lam[m, 1], lam[m, 2] = z_n, share * z_0, share * z_1
        changed += now != state[m]
        state[m] = now
    return changed


@njit(cache=True)
def penalties(state: np.ndarray, scales: np.ndarray, free: float, sliding: float, held: float, penalty: np.ndarray) -> None:
    """Fill the diagonal R (nc, 3), N s/m, of contacts by their states and force scales (nc,), N s/m.

    It is ``held`` times the scale along what holds, the normal of what presses and the tangents of what sticks, ``sliding`` times
    along the tangents of what slides, and ``free`` times where nothing presses.
    """
    for m in range(state.shape[0]):
        tangent = free if state[m] == OPEN else (held if state[m] == STICK else sliding)
        penalty[m, 0] = (free if state[m] == OPEN else held) * scales[m]
        penalty[m, 1] = penalty[m, 2] = tangent * scales[m]


@njit(cache=True)
def change_penalty(lam: np.ndarray, old: np.ndarray, new: np.ndarray, z: np.ndarray) -> None:
    """Turn z = lam - R u (nc, 3) into that of the same pair with another R, (nc, 3) both, in place."""
    for m in range(z.shape[0]):
        for c in range(3):
            z[m, c] = lam[m, c] + new[m, c] / old[m, c] * (z[m, c] - lam[m, c])


@njit(cache=True)
def drive(penalty: np.ndarray, lam: np.ndarray, z: np.ndarray, u: np.ndarray, out: np.ndarray) -> None:
    """Fill the forces 2 lam - z - R u (nc, 3), N, which the dynamics are asked to answer."""
    for m in range(z.shape[0]):
        for c in range(3):
            out[m, c] = 2.0 * lam[m, c] - z[m, c] - penalty[m, c] * u[m, c]


@njit(cache=True)
def gap(penalty: np.ndarray, lam: np.ndarray, z: np.ndarray, u: np.ndarray, out: np.ndarray) -> None:
    """Fill what z (nc, 3) is reflected by, 2 (lam - z - R u), N, over the root of R: nothing where dynamics and law agree."""
    for m in range(z.shape[0]):
        for c in range(3):
            out[m, c] = 2.0 * (lam[m, c] - z[m, c] - penalty[m, c] * u[m, c]) / math.sqrt(penalty[m, c])

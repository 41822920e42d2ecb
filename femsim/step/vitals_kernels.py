"""Kernels of the vitals of a step: which of many pairs is deepest, which contact creeps fastest, what undoes penetrations."""

from __future__ import annotations

import math

import numpy as np

from contact.compiled import njit


@njit(cache=True, _nrt=False)
def undoing(gap: np.ndarray, dt: float, correction: float, most: float, speed: np.ndarray) -> None:
    """Fill the speeds, (nc,), m/s, at which a step of dt, s, opens gaps that are negative, (nc,), m; 0 of others."""
    for m in range(gap.shape[0]):
        speed[m] = min(correction * max(-gap[m], 0.0) / dt, most)


@njit(cache=True, _nrt=False, error_model="numpy")
def deepest(parts: np.ndarray, depth: np.ndarray, size: np.ndarray) -> tuple[int, float]:
    """Return which pair, (k, 2), is deepest, (k,), m, by the smaller size, m, of its parts; and how deep by that."""
    worst, most = 0, -math.inf
    for k in range(parts.shape[0]):
        share = depth[k] / min(size[parts[k, 0]], size[parts[k, 1]])
        if share != share:  # as numpy has it, what is no number is the largest
            return k, share
        if share > most:
            worst, most = k, share
    return worst, most


@njit(cache=True, _nrt=False)
def fastest_creep(lam: np.ndarray, u: np.ndarray, friction: np.ndarray, sticks: float, presses: float) -> tuple[int, float]:
    """Return which of one or more contacts creeps fastest, and its tangential speed, m/s; 0 where none sticks.

    Those stick whose tangential force is below a part ``sticks`` of what friction (nc,) allows, and that bear more than a part
    ``presses`` of the largest normal force. lam and u, (nc, 3), N and m/s, are their forces and velocities, normal first.
    """
    largest, worst, most = lam[0, 0], 0, 0.0
    for m in range(1, lam.shape[0]):
        if lam[m, 0] > largest or lam[m, 0] != lam[m, 0]:  # with one that is no number nothing presses
            largest = lam[m, 0]
    for m in range(lam.shape[0]):
        normal = lam[m, 0]
        if math.hypot(lam[m, 1], lam[m, 2]) < sticks * friction[m] * normal and normal > presses * largest:
            speed = math.hypot(u[m, 1], u[m, 2])
            if speed != speed:
                return m, speed
            if speed > most:
                worst, most = m, speed
    return worst, most

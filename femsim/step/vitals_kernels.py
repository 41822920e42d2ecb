"""Kernels of the vitals of a step: which of many pairs is deepest, which contact creeps fastest, what pushes along a surface."""

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


@njit(cache=True, _nrt=False)
def against(
    point: np.ndarray,
    normal: np.ndarray,
    x: np.ndarray,
    triangles: np.ndarray,
    first: np.ndarray,
    around: np.ndarray,
    most: np.ndarray,
) -> None:
    """Fill how much contacts push nodes into their surface: the largest cosine between a normal and an inward triangle.

    Parameters
    ----------
    point : ndarray, (nc,)
        Node of each contact.
    normal : ndarray, (nc, 3)
        From what presses on it to the node.
    x : ndarray, (n, 3), m
        Where the nodes are.
    triangles : ndarray, (t, 3)
        Surface by these, outward.
    first, around : ndarray, (n + 1,) and (3 t,)
        Where the triangles of a node begin in ``around``, and the triangles by node.
    most : ndarray, (nc,)
        Filled; 0 where nothing pushes inwards.
    """
    for m in range(point.shape[0]):
        most[m] = 0.0
        for place in range(first[point[m]], first[point[m] + 1]):
            a, b, c = triangles[around[place], 0], triangles[around[place], 1], triangles[around[place], 2]
            x1, y1, z1 = x[b, 0] - x[a, 0], x[b, 1] - x[a, 1], x[b, 2] - x[a, 2]
            x2, y2, z2 = x[c, 0] - x[a, 0], x[c, 1] - x[a, 1], x[c, 2] - x[a, 2]
            n0, n1, n2 = y1 * z2 - z1 * y2, z1 * x2 - x1 * z2, x1 * y2 - y1 * x2
            length = math.sqrt(n0 * n0 + n1 * n1 + n2 * n2)
            if length > 0.0:
                most[m] = max(most[m], -(normal[m, 0] * n0 + normal[m, 1] * n1 + normal[m, 2] * n2) / length)

"""Kernels of the vitals of a step: which of many pairs is deepest, which contact creeps fastest, what pushes along a surface."""

from __future__ import annotations

import math

import numpy as np

from contact.compiled import njit
from contact.vector_kernels import cross, minus, norm, plus, row as row_of


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
def link_speeds(
    k: int,
    v: np.ndarray,
    row: np.ndarray,
    origin: np.ndarray,
    joint_start: np.ndarray,
    joint_row: np.ndarray,
    screw: np.ndarray,
    centre: np.ndarray,
) -> tuple[float, float]:
    """Speed of the centre (parts, 3), m, of rigid part k, m/s, and of its turning, rad/s, at v (n,).

    The arrays between are those of :class:`femsim.step.point_rows_kernels.RigidParts`.
    """
    twist, first = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0), row[k]
    for e in range(joint_start[k], joint_start[k + 1]):
        rate = v[joint_row[e]]
        twist = (
            twist[0] + rate * screw[e, 0], twist[1] + rate * screw[e, 1], twist[2] + rate * screw[e, 2],
            twist[3] + rate * screw[e, 3], twist[4] + rate * screw[e, 4], twist[5] + rate * screw[e, 5],
        )  # fmt: skip
    turn = (v[first + 3] + twist[3], v[first + 4] + twist[4], v[first + 5] + twist[5])
    lever = minus(row_of(centre, k), row_of(origin, k))
    speed = plus((v[first] + twist[0], v[first + 1] + twist[1], v[first + 2] + twist[2]), cross(turn, lever))
    return norm(speed), norm(turn)


@njit(cache=True, inner=True)
def inwards(
    point: int, normal: np.ndarray, x: np.ndarray, triangles: np.ndarray, first: np.ndarray, around: np.ndarray, enough: float
) -> float:
    """How much a contact pushes a node into its surface: the largest cosine between its normal and an inward triangle.

    The first that is ``enough`` is as good as the largest; 0 where nothing pushes inwards. Others as in :func:`press`.
    """
    most = 0.0
    for place in range(first[point], first[point + 1]):
        a, b, c = triangles[around[place], 0], triangles[around[place], 1], triangles[around[place], 2]
        x1, y1, z1 = x[b, 0] - x[a, 0], x[b, 1] - x[a, 1], x[b, 2] - x[a, 2]
        x2, y2, z2 = x[c, 0] - x[a, 0], x[c, 1] - x[a, 1], x[c, 2] - x[a, 2]
        n0, n1, n2 = y1 * z2 - z1 * y2, z1 * x2 - x1 * z2, x1 * y2 - y1 * x2
        length = math.sqrt(n0 * n0 + n1 * n1 + n2 * n2)
        if length > 0.0:
            most = max(most, -(normal[0] * n0 + normal[1] * n1 + normal[2] * n2) / length)
        if most >= enough:
            break
    return most


@njit(cache=True, _nrt=False)
def press(
    soft: int,
    part: np.ndarray,
    lam: np.ndarray,
    point: np.ndarray,
    normal: np.ndarray,
    x: np.ndarray,
    triangles: np.ndarray,
    first: np.ndarray,
    around: np.ndarray,
    enough: float,
    sums: np.ndarray,
) -> None:
    """Sum up by part what presses on the nodes of a soft one, and what of it pushes them along the surface, from another side.

    That side is another one than those that press nodes in, if any do, by more than 60 degrees: what comes to an uneven surface
    askew, or to its rim, may push nodes along it with the very side that presses others.

    Parameters
    ----------
    soft : int
        Number of the soft part.
    part, lam : ndarray, (nc, 2) and (nc, 3), N
        Parts of each contact, and its force, normal first.
    point, normal : ndarray, (nc, 2, 3) and (nc, 3)
        Points of its sides, of which the first is meant, and direction from what presses to the node.
    x : ndarray, (n, 3), m
        Where the nodes of the body are.
    triangles : ndarray, (t, 3)
        Surface by these, outward.
    first, around : ndarray, (p + 1,) and (3 t,)
        Where the triangles of a point begin in ``around``, and the triangles by point.
    enough : float
        Cosine to an inward triangle from which on a force pushes into the surface.
    sums : ndarray, (np, 5), N
        Filled, for each part that presses: both, and the sum of the forces that press nodes in.
    """
    sums[:] = 0.0
    for m in range(part.shape[0]):
        j = part[m, 1]
        if part[m, 0] != soft or not lam[m, 0] > 0.0:
            continue
        sums[j, 0] += lam[m, 0]
        if inwards(point[m, 0, 0], normal[m], x, triangles, first, around, enough) >= enough:
            for c in range(3):
                sums[j, 2 + c] += lam[m, 0] * normal[m, c]
    for m in range(part.shape[0]):
        j = part[m, 1]
        if part[m, 0] != soft or not lam[m, 0] > 0.0:
            continue
        size = math.sqrt(sums[j, 2] ** 2 + sums[j, 3] ** 2 + sums[j, 4] ** 2)
        same = normal[m, 0] * sums[j, 2] + normal[m, 1] * sums[j, 3] + normal[m, 2] * sums[j, 4]
        if same <= 0.5 * size and inwards(point[m, 0, 0], normal[m], x, triangles, first, around, enough) < enough:
            sums[j, 1] += lam[m, 0]

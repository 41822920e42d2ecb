"""Compiled kernel of :mod:`femsim.step.thin_shapes`: how deep points are inside of a closed surface."""

from __future__ import annotations

import math

import numpy as np

from contact.compiled import njit
from contact.distance_kernels import closest_on_triangle
from contact.vector_kernels import entry


@njit(cache=True)
def find_below(
    points: np.ndarray, nodes: np.ndarray, triangles: np.ndarray, reach: float, least: float, below: np.ndarray
) -> int:
    """Mark which points (k, 3) are in the box around a surface and below it at the nearest of its nodes; return how many.

    Nodes are looked at so far, ``reach``, around the box of the points that are in the box, all where none is so near. Below:
    by more than ``least`` across the mean normal of the triangles of the node. Room for the normals is made at the start.
    """
    low, high = np.full(3, np.inf), np.full(3, -np.inf)
    for i in range(nodes.shape[0]):
        for c in range(3):
            low[c], high[c] = min(low[c], nodes[i, c]), max(high[c], nodes[i, c])
    near_low, near_high, count = np.full(3, np.inf), np.full(3, -np.inf), 0
    for i in range(points.shape[0]):
        below[i] = True
        for c in range(3):
            below[i] = below[i] and low[c] < points[i, c] < high[c]
        if below[i]:
            count += 1
            for c in range(3):
                near_low[c], near_high[c] = min(near_low[c], points[i, c]), max(near_high[c], points[i, c])
    if count == 0:
        return 0
    close, n_close = np.empty(nodes.shape[0], dtype=np.int64), 0
    for i in range(nodes.shape[0]):
        inside = True
        for c in range(3):
            inside = inside and near_low[c] - reach < nodes[i, c] < near_high[c] + reach
        if inside:
            close[n_close] = i
            n_close += 1
    if n_close == 0:
        n_close = nodes.shape[0]
        close[:] = np.arange(n_close)
    nearest, normal = np.full(points.shape[0], -1), np.zeros((nodes.shape[0], 3))
    wanted = np.zeros(nodes.shape[0], dtype=np.bool_)
    for i in range(points.shape[0]):
        least_square = math.inf
        for k in range(n_close if below[i] else 0):
            at = close[k]
            x, y, z = nodes[at, 0] - points[i, 0], nodes[at, 1] - points[i, 1], nodes[at, 2] - points[i, 2]
            square = x * x + y * y + z * z
            if square < least_square:
                least_square, nearest[i] = square, at
        if below[i]:
            wanted[nearest[i]] = True
    add_normals(nodes, triangles, wanted, normal)
    count = 0
    for i in range(points.shape[0]):
        if not below[i]:
            continue
        at = nearest[i]
        x, y, z = normal[at, 0], normal[at, 1], normal[at, 2]
        height = (points[i, 0] - nodes[at, 0]) * x + (points[i, 1] - nodes[at, 1]) * y + (points[i, 2] - nodes[at, 2]) * z
        below[i] = height < -least * math.sqrt(x * x + y * y + z * z)
        count += below[i]
    return count


@njit(cache=True, inner=True)
def add_normals(nodes: np.ndarray, triangles: np.ndarray, wanted: np.ndarray, normal: np.ndarray) -> None:
    """Add the normals of triangles to ``normal``, (n, 3), m^2, at all nodes of each that has one that is ``wanted``, (n,), bool.

    ``nodes`` (n, 3), m; ``triangles`` (m, 3), whose normals are as long as twice their areas.
    """
    for t in range(triangles.shape[0]):
        i, j, k = triangles[t, 0], triangles[t, 1], triangles[t, 2]
        if not (wanted[i] or wanted[j] or wanted[k]):
            continue
        a0, a1, a2 = nodes[j, 0] - nodes[i, 0], nodes[j, 1] - nodes[i, 1], nodes[j, 2] - nodes[i, 2]
        b0, b1, b2 = nodes[k, 0] - nodes[i, 0], nodes[k, 1] - nodes[i, 1], nodes[k, 2] - nodes[i, 2]
        across = (a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0)
        for corner in (i, j, k):
            for c in range(3):
                normal[corner, c] += across[c]


@njit(cache=True)
def deepest(points: np.ndarray, corners: np.ndarray) -> float:
    """Largest distance to a closed surface of triangles (m, 3, 3) of the points (k, 3) that are inside of it; 0 where none is.

    Inside is what the surface goes around: the sum of its solid angles (van Oosterom and Strackee 1983) over 4 pi is 1.
    """
    depth = 0.0
    for i in range(points.shape[0]):
        x, y, z = points[i, 0], points[i, 1], points[i, 2]
        turns = 0.0
        for t in range(corners.shape[0]):
            a0, a1, a2 = corners[t, 0, 0] - x, corners[t, 0, 1] - y, corners[t, 0, 2] - z
            b0, b1, b2 = corners[t, 1, 0] - x, corners[t, 1, 1] - y, corners[t, 1, 2] - z
            c0, c1, c2 = corners[t, 2, 0] - x, corners[t, 2, 1] - y, corners[t, 2, 2] - z
            a, b = math.sqrt(a0 * a0 + a1 * a1 + a2 * a2), math.sqrt(b0 * b0 + b1 * b1 + b2 * b2)
            c = math.sqrt(c0 * c0 + c1 * c1 + c2 * c2)
            triple = a0 * (b1 * c2 - b2 * c1) + a1 * (b2 * c0 - b0 * c2) + a2 * (b0 * c1 - b1 * c0)
            below = a * b * c + (a0 * b0 + a1 * b1 + a2 * b2) * c
            below += (b0 * c0 + b1 * c1 + b2 * c2) * a + (c0 * a0 + c1 * a1 + c2 * a2) * b
            turns += math.atan2(triple, below)
        if turns <= math.pi:  # half of the whole angle, and atan2 gives half of the solid angle
            continue
        nearest = math.inf
        for t in range(corners.shape[0]):
            a, b, c, _ = closest_on_triangle((x, y, z), entry(corners, t, 0), entry(corners, t, 1), entry(corners, t, 2))
            square = 0.0
            for k in range(3):
                square += (a * corners[t, 0, k] + b * corners[t, 1, k] + c * corners[t, 2, k] - points[i, k]) ** 2
            nearest = min(nearest, square)
        depth = max(depth, math.sqrt(nearest))
    return depth

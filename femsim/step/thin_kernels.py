"""Compiled kernel of :mod:`femsim.step.thin_shapes`: how deep points are inside of a closed surface."""

from __future__ import annotations

import math

import numpy as np

from contact.compiled import njit
from contact.distance_kernels import closest_on_triangle
from contact.vector_kernels import entry


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

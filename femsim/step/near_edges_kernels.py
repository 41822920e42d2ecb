"""Whether edges of a rigid part are near a soft body: segments against the triangles of its surface."""

from __future__ import annotations

import numpy as np

from contact.compiled import njit
from contact.distance_kernels import closest_on_triangle
from contact.vector_kernels import Vector, dot, entry, minus, norm, plus, times

#: Halvings of a segment by which the point closest to a triangle is found: to a thousandth of its length.
HALVINGS = 10


@njit(cache=True, inner=True, _nrt=False)
def from_triangle(p: Vector, a: Vector, b: Vector, c: Vector) -> float:
    """Distance of a point from a triangle, m."""
    wa, wb, wc, _ = closest_on_triangle(p, a, b, c)
    return norm(minus(p, plus(times(wa, a), plus(times(wb, b), times(wc, c)))))


@njit(cache=True, inner=True, _nrt=False)
def comes_near(start: Vector, along: Vector, a: Vector, b: Vector, c: Vector, reach: float) -> bool:
    """Whether a segment comes within a reach, m, of a triangle: the distance is convex along it, and is halved towards its least.

    A ball round the triangle, too far from the segment, says first that it does not.
    """
    middle = times(1.0 / 3.0, plus(a, plus(b, c)))
    radius = max(norm(minus(a, middle)), norm(minus(b, middle)), norm(minus(c, middle)))
    length2 = dot(along, along)
    s = min(max(dot(minus(middle, start), along) / length2, 0.0), 1.0) if length2 > 0.0 else 0.0
    if norm(minus(middle, plus(start, times(s, along)))) > radius + reach:
        return False
    first, last, step = 0.0, 1.0, 1e-3
    for _ in range(HALVINGS):
        s = 0.5 * (first + last)
        here = from_triangle(plus(start, times(s, along)), a, b, c)
        if here <= reach:
            return True
        if from_triangle(plus(start, times(s + step * (last - first), along)), a, b, c) < here:
            first = s
        else:
            last = s
    return False


@njit(cache=True, _nrt=False)
def is_near(
    edges: np.ndarray, lower: np.ndarray, upper: np.ndarray, rotation: np.ndarray, translation: np.ndarray,
    x: np.ndarray, triangles: np.ndarray, size: np.ndarray, reach: float, part: float,
) -> bool:  # fmt: skip
    """Whether an edge (k, 2, 3) of a rigid part placed so lies within reach of a triangle (n, 3) of the nodes x (., 3).

    In reach is what is within ``reach``, m, or within a ``part`` of the ``size`` (n,), m, of the triangle. ``lower`` and
    ``upper`` (3,) are the corners of the box round the edges, in the frame of the part.
    """
    for t in range(triangles.shape[0]):
        beyond = max(reach, part * size[t])
        a = _within(x, triangles[t, 0], rotation, translation)
        b = _within(x, triangles[t, 1], rotation, translation)
        c = _within(x, triangles[t, 2], rotation, translation)
        apart = False
        for i in range(3):
            apart |= min(a[i], b[i], c[i]) > upper[i] + beyond or max(a[i], b[i], c[i]) < lower[i] - beyond
        if apart:
            continue
        for k in range(edges.shape[0]):
            start = entry(edges, k, 0)
            if comes_near(start, minus(entry(edges, k, 1), start), a, b, c, beyond):
                return True
    return False


@njit(cache=True, inner=True, _nrt=False)
def _within(x: np.ndarray, i: int, rotation: np.ndarray, translation: np.ndarray) -> Vector:
    """Place of a node in the frame of a part, m."""
    dx, dy, dz = x[i, 0] - translation[0], x[i, 1] - translation[1], x[i, 2] - translation[2]
    return (
        rotation[0, 0] * dx + rotation[1, 0] * dy + rotation[2, 0] * dz,
        rotation[0, 1] * dx + rotation[1, 1] * dy + rotation[2, 1] * dz,
        rotation[0, 2] * dx + rotation[1, 2] * dy + rotation[2, 2] * dz,
    )

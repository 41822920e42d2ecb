"""Compiled closest points: of a point and a triangle, and of two lines."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from contact.compiled import njit
from contact.vector_kernels import Vector, dot, entry, minus

FloatArray = npt.NDArray[np.float64]

#: Feature of a triangle that holds its closest point: the face, the edges ab, bc, ca, or the vertices a, b, c.
FACE, EDGE_AB, EDGE_BC, EDGE_CA, VERTEX_A, VERTEX_B, VERTEX_C = 0, 1, 2, 3, 4, 5, 6


@njit(cache=True, inner=True)
def closest_on_triangle(p: Vector, a: Vector, b: Vector, c: Vector) -> tuple[float, float, float, int]:
    """Barycentric weights of the point of triangle abc closest to p, and the feature that holds it.

    One region after the other is tested by the projections of p on the edges ab and ac, taken from each corner (C. Ericson,
    Real-Time Collision Detection, 2005, section 5.1.5). The weights of corners off the feature are exactly 0.
    """
    ab, ac = minus(b, a), minus(c, a)
    from_a = minus(p, a)
    ab_a, ac_a = dot(ab, from_a), dot(ac, from_a)
    if ab_a <= 0.0 and ac_a <= 0.0:
        return 1.0, 0.0, 0.0, VERTEX_A
    from_b = minus(p, b)
    ab_b, ac_b = dot(ab, from_b), dot(ac, from_b)
    if ab_b >= 0.0 and ac_b <= ab_b:
        return 0.0, 1.0, 0.0, VERTEX_B
    # in the plane of the triangle the corners have the weights area / |ab x ac|^2
    area_c = ab_a * ac_b - ab_b * ac_a
    if area_c <= 0.0 and ab_a >= 0.0 and ab_b <= 0.0:
        along = ab_a / (ab_a - ab_b)
        return 1.0 - along, along, 0.0, EDGE_AB
    from_c = minus(p, c)
    ab_c, ac_c = dot(ab, from_c), dot(ac, from_c)
    if ac_c >= 0.0 and ab_c <= ac_c:
        return 0.0, 0.0, 1.0, VERTEX_C
    area_b = ab_c * ac_a - ab_a * ac_c
    if area_b <= 0.0 and ac_a >= 0.0 and ac_c <= 0.0:
        along = ac_a / (ac_a - ac_c)
        return 1.0 - along, 0.0, along, EDGE_CA
    area_a = ab_b * ac_c - ab_c * ac_b
    if area_a <= 0.0 and ac_b - ab_b >= 0.0 and ab_c - ac_c >= 0.0:
        along = (ac_b - ab_b) / ((ac_b - ab_b) + (ab_c - ac_c))
        return 0.0, 1.0 - along, along, EDGE_BC
    total = area_a + area_b + area_c
    return area_a / total, area_b / total, area_c / total, FACE


@njit(cache=True)
def closest_on_triangles(point: FloatArray, corners: FloatArray, closest: FloatArray) -> None:
    """Fill ``closest`` (m, 3) with the points of triangles, corners (m, 3, 3), closest to a point (3,); all in m."""
    p = (point[0], point[1], point[2])
    for t in range(corners.shape[0]):
        weight_a, weight_b, weight_c, _ = closest_on_triangle(p, entry(corners, t, 0), entry(corners, t, 1), entry(corners, t, 2))
        for i in range(3):
            closest[t, i] = weight_a * corners[t, 0, i] + weight_b * corners[t, 1, i] + weight_c * corners[t, 2, i]


@njit(cache=True, inner=True)
def closest_on_lines(uu: float, uv: float, vv: float, uw: float, vw: float, square: float) -> tuple[float, float]:
    """Parameters (s, t) at which the lines s u and t v - w are closest: the minimum of |w + s u - t v|^2.

    Given are the scalar products of u, v and w, and ``square`` = |u x v|^2 = uu vv - uv^2, which must not be 0.
    """
    return (uv * vw - vv * uw) / square, (uu * vw - uv * uw) / square

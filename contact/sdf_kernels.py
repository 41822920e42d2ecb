"""Compiled signed distances from the nodes of a grid to a closed triangle mesh.

Triangles are culled by blocks of nodes: one that is the closest to a node of a block with centre c and half diagonal r is at most
2 r farther from c than the closest one to c.
"""

from __future__ import annotations

from math import inf, sqrt

import numpy as np
import numpy.typing as npt

from contact.compiled import njit
from contact.distance_kernels import closest_on_triangle
from contact.vector_kernels import Vector, dot, entry, minus, plus, times

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


@njit(cache=True, inner=True)
def offset_from_closest(p: Vector, corners: FloatArray, t: int) -> tuple[Vector, int]:
    """Vector from the closest point of triangle t to a point (m), and the feature that holds it; ``corners`` (n, 3, 3), m.

    All vectors start from corner a, so that no digits are lost far from the origin.
    """
    a = entry(corners, t, 0)
    b, c, p = minus(entry(corners, t, 1), a), minus(entry(corners, t, 2), a), minus(p, a)
    _, weight_b, weight_c, feature = closest_on_triangle(p, (0.0, 0.0, 0.0), b, c)
    return minus(p, plus(times(weight_b, b), times(weight_c, c))), feature


@njit(cache=True, inner=True)
def near_triangles(p: Vector, reach: float, corners: FloatArray, among: IntArray, n: int, near: IntArray, far: FloatArray) -> int:
    """Fill ``near`` with those of triangles ``among[:n]`` at most ``reach`` (m) farther from a point than the closest one.

    ``corners`` (t, 3, 3), m, are those of all triangles; ``far`` is room for n distances. Returns how many there are.
    """
    closest = inf
    for i in range(n):
        offset, _ = offset_from_closest(p, corners, among[i])
        far[i] = sqrt(dot(offset, offset))
        closest = min(closest, far[i])
    limit = (closest + reach) * (1.0 + 1e-9)
    count = 0
    for i in range(n):
        if far[i] <= limit:
            near[count] = among[i]
            count += 1
    return count


@njit(cache=True, inner=True)
def signed_distance(p: Vector, corners: FloatArray, normals: FloatArray, among: IntArray, n: int) -> float:
    """Signed distance (m) of a point to the closest of triangles ``among[:n]``, negative behind its pseudonormal."""
    best2, side = inf, 0.0
    for i in range(n):
        t = among[i]
        offset, feature = offset_from_closest(p, corners, t)
        distance2 = dot(offset, offset)
        if distance2 < best2:
            best2, side = distance2, dot(offset, entry(normals, t, feature))
    return -sqrt(best2) if side < 0.0 else sqrt(best2)


@njit(cache=True, inner=True)
def node(origin: Vector, spacing: float, i: float, j: float, k: float) -> Vector:
    """Position of a place (i, j, k), in cells, of a grid, m."""
    return origin[0] + i * spacing, origin[1] + j * spacing, origin[2] + k * spacing


@njit(cache=True, inner=True)
def fill_block(
    values: FloatArray, i0: int, j0: int, k0: int, origin: Vector, spacing: float, corners: FloatArray, normals: FloatArray,
    among: IntArray, n: int,
) -> None:  # fmt: skip
    """Fill the values of up to 4 x 4 x 4 nodes from (i0, j0, k0) on, given the triangles ``among[:n]`` near them."""
    for i in range(i0, min(i0 + 4, values.shape[0])):
        for j in range(j0, min(j0 + 4, values.shape[1])):
            for k in range(k0, min(k0 + 4, values.shape[2])):
                values[i, j, k] = signed_distance(node(origin, spacing, i, j, k), corners, normals, among, n)


@njit(cache=True)
def fill_grid(values: FloatArray, origin: FloatArray, spacing: float, corners: FloatArray, normals: FloatArray) -> None:
    """Fill the values (nx, ny, nz) at all nodes of a grid, by blocks of 16, then 4 nodes a side, then single nodes.

    ``origin`` (3,) and ``spacing`` are in m; ``corners`` (t, 3, 3), m, and pseudonormals ``normals`` (t, 7, 3) are those of
    :func:`contact.sdf_grid.triangle_table`. It allocates its lists of triangles: a grid is filled once.
    """
    n_triangles = corners.shape[0]
    everything = np.arange(n_triangles)
    outer, inner = np.empty(n_triangles, dtype=np.int64), np.empty(n_triangles, dtype=np.int64)
    far = np.empty(n_triangles, dtype=np.float64)
    start = (origin[0], origin[1], origin[2])
    outer_reach, inner_reach = sqrt(3.0) * 15.0 * spacing, sqrt(3.0) * 3.0 * spacing
    nx, ny, nz = values.shape
    for i16 in range(0, nx, 16):
        for j16 in range(0, ny, 16):
            for k16 in range(0, nz, 16):
                centre = node(start, spacing, i16 + 7.5, j16 + 7.5, k16 + 7.5)
                n_outer = near_triangles(centre, outer_reach, corners, everything, n_triangles, outer, far)
                for i in range(i16, min(i16 + 16, nx), 4):
                    for j in range(j16, min(j16 + 16, ny), 4):
                        for k in range(k16, min(k16 + 16, nz), 4):
                            centre = node(start, spacing, i + 1.5, j + 1.5, k + 1.5)
                            n_inner = near_triangles(centre, inner_reach, corners, outer, n_outer, inner, far)
                            fill_block(values, i, j, k, start, spacing, corners, normals, inner, n_inner)

"""Compiled signed distances from the nodes of a grid to a closed triangle mesh.

A tree of boxes finds the triangles near each small block of nodes. Each gets the plane through its point closest to the centre of
the block, across the line between the two: the triangle lies behind it, so that no node is nearer to it than to the plane. A node
measures only triangles whose plane is nearer than the closest one so far.
"""

from __future__ import annotations

from math import inf, sqrt
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from contact.compiled import njit
from contact.distance_kernels import closest_on_triangle
from contact.tree_kernels import Tree, box_distance2, fit_boxes
from contact.vector_kernels import Vector, dot, entry, minus, plus, row, times, write_row

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

#: Triangles of a block that :func:`distance_beyond` looks at together, and numbers that a block takes in its tree.
TOGETHER = 4
BEYOND = 12 + 9 * TOGETHER

#: Part by which rounding may make the squared distance of a box larger than that of what is in it.
ROUNDED = 1e-9

#: Nodes of a block along each side: with 2 or 4 a grid takes up to a quarter longer.
BLOCK = 3

#: Nodes of a chunk along each side, whole blocks: a grid is filled by chunks, where something comes near.
CHUNK = 9

#: A chunk of a grid whose values are not known is UNKNOWN, then WANTED by who asked for them, then KNOWN.
UNKNOWN, WANTED, KNOWN = 0.0, 1.0, 2.0


class Near(NamedTuple):
    """Triangles near a block of nodes, the first ones of t, and room to work in.

    Attributes
    ----------
    triangle : ndarray, (t,)
        Their numbers.
    level, slope : ndarray, (t,), m, and (t, 3)
        Plane of each before which it does not reach: distance of the centre of the block, and its gradient.
    stack : ndarray
        Room for two branches of the tree a level.
    """

    triangle: IntArray
    level: FloatArray
    slope: FloatArray
    stack: IntArray


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
def distance_beyond(
    x: float, y: float, z: float, bound: float, values: FloatArray, start: int, n: int
) -> tuple[float, float, float, float]:
    """Distance of a point outside a mesh (m) and the unit vector from its closest point, of equally close ones the first.

    ``values[start:]`` has the n blocks of :func:`contact.sdf_grid.triangle_tree`. What is not nearer than ``bound`` (m) is
    infinitely far, with a zero vector. On the surface the vector is +z.
    """
    best2, best, p, way = bound * bound * (1.0 + ROUNDED) if bound > 0.0 else 0.0, -1, (x, y, z), (0.0, 0.0, 0.0)
    # boxes up to a hair farther than the closest triangle so far are not trusted, since both are rounded
    limit2 = best2 * (1.0 + ROUNDED)
    # the near one of two branches goes first; each bit of ``left`` says whether the other one of a level is left to do
    branch, left, far2 = 1, 0, away2(p, values, start + 6)
    while True:
        if far2 <= limit2 and branch < n:
            one, two = away2(p, values, start + 12 * branch), away2(p, values, start + 12 * branch + 6)
            branch, left, far2 = 2 * branch + (1 if two < one else 0), 2 * left + 1, min(one, two)
            continue
        if far2 <= limit2:
            at = start + 12 * n + 9 * TOGETHER * (branch - n)
            for t in range(at, at + 9 * TOGETHER, 9):
                a = (values[t], values[t + 1], values[t + 2])
                b = minus((values[t + 3], values[t + 4], values[t + 5]), a)
                c, own = minus((values[t + 6], values[t + 7], values[t + 8]), a), minus(p, a)
                _, weight_b, weight_c, _ = closest_on_triangle(own, (0.0, 0.0, 0.0), b, c)
                offset = minus(own, plus(times(weight_b, b), times(weight_c, c)))
                square = dot(offset, offset)
                if square < best2 or (square == best2 and t < best):
                    best2, best, way = square, t, offset
            limit2 = best2 * (1.0 + ROUNDED)
        while left & 1 == 0 and left > 0:
            branch, left = branch // 2, left // 2
        if left == 0:
            break
        branch, left = branch ^ 1, left - 1
        far2 = away2(p, values, start + 6 * branch)
    if best < 0:
        return inf, 0.0, 0.0, 0.0
    distance = sqrt(best2)
    if distance == 0.0:
        return 0.0, 0.0, 0.0, 1.0
    return distance, way[0] / distance, way[1] / distance, way[2] / distance


@njit(cache=True, inner=True)
def away2(p: Vector, values: FloatArray, at: int) -> float:
    """Squared distance (m^2) of a point to the box whose lower and upper corner are in ``values[at:]``."""
    dx = max(values[at] - p[0], p[0] - values[at + 3], 0.0)
    dy = max(values[at + 1] - p[1], p[1] - values[at + 4], 0.0)
    dz = max(values[at + 2] - p[2], p[2] - values[at + 5], 0.0)
    return dx * dx + dy * dy + dz * dz


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
def supported(p: Vector, offset: Vector, corners: FloatArray, t: int) -> tuple[float, Vector]:
    """Distance (m) of a point to the plane across ``offset`` behind which all of triangle t lies, and the unit vector towards it.

    For any offset the distance of x to the triangle is at least what this plane says, distance + slope . (x - p).
    """
    length = sqrt(dot(offset, offset))
    slope = times(1.0 / length, offset) if length > 0.0 else (0.0, 0.0, 0.0)
    a, b, c = minus(p, entry(corners, t, 0)), minus(p, entry(corners, t, 1)), minus(p, entry(corners, t, 2))
    return min(dot(slope, a), dot(slope, b), dot(slope, c)), slope


@njit(cache=True, inner=True)
def gather_near(centre: Vector, reach: float, seed: int, tree: Tree, corners: FloatArray, near: Near) -> tuple[int, int]:
    """Fill ``near`` with triangles that may be at most ``reach`` (m) farther from the centre of a block than the closest one.

    ``seed`` is a triangle that may be near. Returned are how many they are, and the closest one.
    """
    offset, _ = offset_from_closest(centre, corners, seed)
    limit, count, top = sqrt(dot(offset, offset)) + reach, 0, 1
    leaves, boxes = tree.leaf.shape[0], tree.boxes
    near.stack[0] = 1
    while top > 0:
        top -= 1
        branch = near.stack[top]
        if box_distance2(boxes, branch, centre) > limit * limit:
            continue
        if branch < leaves:
            first, last = 2 * branch, 2 * branch + 1
            if box_distance2(boxes, last, centre) < box_distance2(boxes, first, centre):
                first, last = last, first
            near.stack[top], near.stack[top + 1] = last, first
            top += 2
            continue
        t = tree.leaf[branch - leaves]
        offset, _ = offset_from_closest(centre, corners, t)
        if sqrt(dot(offset, offset)) + reach < limit:
            limit, seed = sqrt(dot(offset, offset)) + reach, t
        near.triangle[count] = t
        near.level[count], slope = supported(centre, offset, corners, t)
        write_row(near.slope, count, slope)
        count += 1
    kept = 0
    for m in range(count):
        if near.level[m] <= limit:
            near.triangle[kept], near.level[kept] = near.triangle[m], near.level[m]
            write_row(near.slope, kept, row(near.slope, m))
            kept += 1
    return kept, seed


@njit(cache=True, inner=True)
def closest_of_near(p: Vector, away: Vector, hair: float, seed: int, count: int, corners: FloatArray, near: Near) -> int:
    """Triangle closest to a point, ``away`` (m) from the centre of its block; of equally close ones the first.

    It is one of the ``count`` in ``near``, as ``seed`` is. Planes up to ``hair`` (m) farther than the closest one so far are not
    trusted, since they are rounded.
    """
    best = seed
    offset, _ = offset_from_closest(p, corners, best)
    best2 = dot(offset, offset)
    limit = sqrt(best2) + hair
    for m in range(count):
        if near.level[m] + dot(row(near.slope, m), away) > limit:
            continue
        t = near.triangle[m]
        offset, _ = offset_from_closest(p, corners, t)
        distance2 = dot(offset, offset)
        if distance2 < best2 or (distance2 == best2 and t < best):
            best, best2 = t, distance2
            limit = sqrt(best2) + hair
    return best


@njit(cache=True, inner=True)
def ask_for_chunks(i: int, j: int, k: int, chunks: FloatArray, start: int, ny: int, nz: int) -> bool:
    """Want the chunks with the corners of cell (i, j, k) of a grid that are unknown; return whether there are any.

    ``chunks[start:]`` says of each whether it is; ``ny`` and ``nz`` are the numbers of nodes of the grid along y and z.
    """
    along_y, along_z = (ny + CHUNK - 1) // CHUNK, (nz + CHUNK - 1) // CHUNK
    news = False
    for a in range(i // CHUNK, (i + 1) // CHUNK + 1):
        for b in range(j // CHUNK, (j + 1) // CHUNK + 1):
            for c in range(k // CHUNK, (k + 1) // CHUNK + 1):
                at = start + (a * along_y + b) * along_z + c
                if chunks[at] == UNKNOWN:
                    chunks[at], news = WANTED, True
    return news


@njit(cache=True)
def fill_grid(
    values: FloatArray,
    origin: FloatArray,
    spacing: float,
    wanted: BoolArray,
    tree: Tree,
    corners: FloatArray,
    normals: FloatArray,
) -> None:
    """Fill the values (nx, ny, nz) at the nodes of those chunks of a grid that are ``wanted`` (cx, cy, cz).

    It goes by blocks of ``BLOCK`` nodes a side. ``origin`` (3,) and ``spacing`` are in m; ``tree`` is one over the triangles,
    whose boxes are filled here; ``corners`` (t, 3, 3), m, and pseudonormals ``normals`` (t, 7, 3) are those of
    :func:`contact.sdf_grid.triangle_table`. It allocates its room: a chunk is filled once.
    """
    n = corners.shape[0]
    fit_boxes(tree, corners.reshape(-1, 3), np.arange(3 * n).reshape(-1, 3), 3)
    near = Near(np.empty(n, dtype=np.int64), np.empty(n), np.empty((n, 3)), np.empty(128, dtype=np.int64))
    half, hair = 0.5 * (BLOCK - 1), 1e-9 * spacing
    # one that is the closest to a node is at most this much farther from the centre than the closest one to that
    reach = 2.0 * sqrt(3.0) * half * spacing + hair
    start, seed = (origin[0], origin[1], origin[2]), 0
    nx, ny, nz = values.shape
    for i0 in range(0, nx, BLOCK):
        for j0 in range(0, ny, BLOCK):
            for k0 in range(0, nz, BLOCK):
                if not wanted[i0 // CHUNK, j0 // CHUNK, k0 // CHUNK]:
                    continue
                centre = node(start, spacing, i0 + half, j0 + half, k0 + half)
                count, seed = gather_near(centre, reach, seed, tree, corners, near)
                t = seed
                for i in range(i0, min(i0 + BLOCK, nx)):
                    for j in range(j0, min(j0 + BLOCK, ny)):
                        for k in range(k0, min(k0 + BLOCK, nz)):
                            p = node(start, spacing, i, j, k)
                            t = closest_of_near(p, minus(p, centre), hair, t, count, corners, near)
                            offset, feature = offset_from_closest(p, corners, t)
                            distance = sqrt(dot(offset, offset))
                            values[i, j, k] = -distance if dot(offset, entry(normals, t, feature)) < 0.0 else distance

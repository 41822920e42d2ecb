"""Compiled kernels of detection: points with a radius, centres of spheres and ends of capsules, against meshes.

Where an edge or a vertex of a mesh is nearest, its sampled distance is too large, beside right angles by up to a seventh of a
cell: more than small spheres have for a margin; and its normal is off by as much as a cell is of the distance. So it is measured
from the triangles. In a valley, between two faces that are equally near, the sampled one is too small, its normal lies between
theirs. There it stays: a sphere has one contact with a mesh, and would else go from face to face.

Vertices see spheres and capsules too, which may lie on several peaks. All around the place where one rolls on a fine mesh they
would press it with normals that lean, and brake it: those count that are no farther from it than all of their neighbours.
"""

from __future__ import annotations

from math import inf

import numpy as np
import numpy.typing as npt

from contact.compiled import njit
from contact.crease_kernels import Triangles, measured_distance
from contact.detect_kernels import HAIR, MESH, world_normal, write_frame
from contact.placed_kernels import Output, Place, axis_of, move_up, own, place_of
from contact.vector_kernels import dot, minus, row

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


@njit(cache=True, _nrt=False)
def measured_rounds(
    count: int,
    points: FloatArray,
    radius: FloatArray,
    margin: FloatArray,
    kind: IntArray,
    box_half: FloatArray,
    grid_place: FloatArray,
    rotation: FloatArray,
    translation: FloatArray,
    triangles: Triangles,
    out: Output,
) -> int:
    """Measure the distance of each of the first ``count`` contacts of a point with a radius and a mesh; return how many are left.

    The arrays are those of :func:`contact.detect_kernels.detect_points`, which writes them from a cell farther away. Of the two
    distances the smaller one counts. Contacts that are not within the margin go.
    """
    kept = 0
    for k in range(count):
        i, s = out.point[k], out.shape[k]
        if radius[i] > 0.0 and kind[s] == MESH and out.feature[k] == 0:
            place = own(rotation, s, minus(row(points, i), place_of(translation, s)))
            cell, sampled = grid_place[s, 3], out.gap[k] + radius[i]
            hair = HAIR * max(box_half[s, 0], box_half[s, 1], box_half[s, 2])
            distance, way = measured_distance(place, s, abs(sampled) + cell, hair, triangles)
            if distance <= sampled + HAIR * cell:
                normal = world_normal(way[0], way[1], way[2], s, rotation)
                out.gap[k] = distance - radius[i]
                write_frame(out.frame[k], normal[0], normal[1], normal[2])
                for j in range(3):
                    out.position[k, j] = points[i, j] - radius[i] * normal[j]
            if not out.gap[k] < margin[i]:
                continue
        kept = move_up(kept, k, out)
    return kept


@njit(cache=True, _nrt=False)
def nearest_vertices(
    count: int,
    points: FloatArray,
    neighbour_start: IntArray,
    neighbour: IntArray,
    half: FloatArray,
    rotation: FloatArray,
    translation: FloatArray,
    out: Output,
) -> int:
    """Leave out of the first ``count`` contacts those of vertices with a neighbour that is nearer; return how many are left.

    ``neighbour`` holds the points that share an edge with point i from ``neighbour_start[i]`` to ``neighbour_start[i + 1]``, none
    for what is no vertex of a mesh. Asked are spheres and capsules, with half the length ``half`` (s,) of the axis, m, 0 of
    spheres; it is negative for other shapes.
    """
    kept = 0
    for k in range(count):
        i, s = out.point[k], out.shape[k]
        first, last = neighbour_start[i], neighbour_start[i + 1]
        if half[s] >= 0.0 and last > first and out.feature[k] == 0:
            least = inf
            for e in range(first, last):
                least = min(least, off_axis(row(points, neighbour[e]), s, half[s], rotation, translation))
            if least < (1.0 - HAIR) * off_axis(row(points, i), s, half[s], rotation, translation):
                continue
        kept = move_up(kept, k, out)
    return kept


@njit(cache=True, inner=True, _nrt=False)
def off_axis(place: Place, s: int, half: float, rotation: FloatArray, translation: FloatArray) -> float:
    """Square of the distance, m^2, of a place from the axis of sphere or capsule s, of which ``half`` is half the length, m."""
    away, axis = minus(place, place_of(translation, s)), axis_of(rotation, s, 2)
    along = dot(away, axis)
    beyond = max(abs(along) - half, 0.0)
    return dot(away, away) - along * along + beyond * beyond

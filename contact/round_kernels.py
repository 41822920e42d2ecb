"""Compiled kernels of detection: points with a radius, centres of spheres and ends of capsules, against meshes.

Where an edge or a vertex of a mesh is nearest, its sampled distance is too large, beside right angles by up to a seventh of a
cell: more than small spheres have for a margin; and its normal is off by as much as a cell is of the distance. So it is measured
from the triangles. In a valley, between two faces that are equally near, the sampled one is too small, its normal lies between
theirs. There it stays: a sphere has one contact with a mesh, and would else go from face to face.

Vertices see spheres too, which may lie on several peaks. All around the place where one rolls on a fine mesh they would press it
with normals that lean, and brake it: those count that are no farther from it than all of their neighbours. So they do with
capsules, which may lie on vertices alone, as across a smooth ridge: there all count, since from one nearest vertex to the next a
capsule rocks and gains energy.
"""

from __future__ import annotations

from math import inf

import numpy as np
import numpy.typing as npt

from contact.compiled import njit
from contact.crease_kernels import Triangles, measured_distance
from contact.detect_kernels import HAIR, MESH, world_normal, write_frame
from contact.placed_kernels import Output, move_up, own, place_of
from contact.vector_kernels import dot, minus, row

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]


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
    sphere: BoolArray,
    translation: FloatArray,
    out: Output,
) -> int:
    """Leave out of ``count`` contacts those of vertices with a neighbour nearer to a ``sphere`` (s,); return how many are left.

    ``neighbour`` holds the points that share an edge with point i from ``neighbour_start[i]`` to ``neighbour_start[i + 1]``, none
    for what is no vertex of a mesh.
    """
    kept = 0
    for k in range(count):
        i, s = out.point[k], out.shape[k]
        first, last = neighbour_start[i], neighbour_start[i + 1]
        if sphere[s] and last > first and out.feature[k] == 0:
            centre, least = place_of(translation, s), inf
            for e in range(first, last):
                away = minus(row(points, neighbour[e]), centre)
                least = min(least, dot(away, away))
            own_way = minus(row(points, i), centre)
            if least < (1.0 - HAIR) * dot(own_way, own_way):
                continue
        kept = move_up(kept, k, out)
    return kept

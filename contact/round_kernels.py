"""Compiled kernels of detection: points with a radius, centres of spheres and ends of capsules, against meshes.

Where an edge or a vertex of a mesh is nearest, its sampled distance is too large, beside right angles by up to a seventh of a
cell: more than small spheres have for a margin; and its normal is off by as much as a cell is of the distance. So it is measured
from the triangles. In a valley, between two faces that are equally near, the sampled one is too small, its normal lies between
theirs. There it stays: a sphere has one contact with a mesh, and would else go from face to face.

Vertices see spheres too, which may lie on several peaks. All around the place where one rolls on a fine mesh they would press it
with normals that lean, and brake it: those count that are no farther from it than all of their neighbours.

So they do with capsules, cylinders and cones. These may lie on vertices alone, as across a smooth ridge: of the nearest ones only
they would rock from one to the next and gain energy. But what has both ends, or one rim all around, on the same plane of a mesh
lies on them as on a box. Vertices that are not above that plane are left out: a body whose ends stay above it does so too.
"""

from __future__ import annotations

from math import inf, sqrt

import numpy as np
import numpy.typing as npt

from contact.compiled import njit
from contact.crease_kernels import Triangles, measured_distance
from contact.detect_kernels import CAPSULE, HAIR, MESH, world_normal, write_frame
from contact.placed_kernels import Output, axis_of, move_up, own, place_of
from contact.rim_kernels import DEEPEST
from contact.shapes import RIM_POINTS
from contact.vector_kernels import Vector, dot, entry, minus, row

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

#: Ends lie on the same plane where the angle between their normals is less; in radii, so far above a plane vertices lie on it.
FLUSH = 1e-4

#: A cylinder lies on its rims where the cosine between its axis and the normal is less: a step does not turn it onto a cap.
LIES = 0.5

#: What a contact is named that is left out.
GONE = -1


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
    sphere: IntArray,
    translation: FloatArray,
    out: Output,
) -> int:
    """Leave out of ``count`` contacts those of vertices with a neighbour nearer to a sphere; return how many are left.

    ``sphere`` (s,) is the point at the centre of each sphere, -1 for other shapes. ``neighbour`` holds the points that share an
    edge with point i from ``neighbour_start[i]`` to ``neighbour_start[i + 1]``, none for what is no vertex of a mesh. A vertex at
    which the centre has its own contact is left out, too.
    """
    kept = 0
    for k in range(count):
        i, s = out.point[k], out.shape[k]
        first, last = neighbour_start[i], neighbour_start[i + 1]
        if sphere[s] >= 0 and last > first and out.feature[k] == 0:
            centre, least = place_of(translation, s), inf
            for e in range(first, last):
                away = minus(row(points, neighbour[e]), centre)
                least = min(least, dot(away, away))
            own_way = minus(row(points, i), centre)
            if least < (1.0 - HAIR) * dot(own_way, own_way) or is_met(kept, k, count, points, sphere[s], out):
                continue
        kept = move_up(kept, k, out)
    return kept


@njit(cache=True, inner=True, _nrt=False)
def is_met(kept: int, k: int, count: int, points: FloatArray, centre: int, out: Output) -> bool:
    """Whether the vertex of contact k is where a ``centre`` has a contact of its own, among those ``kept`` and those after k."""
    vertex = row(points, out.point[k])
    for c in range(count):
        if (c < kept or c > k) and out.point[c] == centre:
            normal, away = entry(out.frame, c, 0), minus(vertex, row(points, centre))
            along = dot(away, normal)
            if along < 0.0 and dot(away, away) - along * along <= HAIR * HAIR * along * along:
                return True
    return False


@njit(cache=True)
def without_held(
    count: int,
    points: FloatArray,
    owner: IntArray,
    first: IntArray,
    kind: IntArray,
    size: FloatArray,
    rotation: FloatArray,
    translation: FloatArray,
    out: Output,
) -> int:
    """Leave out of ``count`` contacts of vertices those with bodies whose ends lie on the same mesh; return how many are left.

    ``owner`` (p,) is the shape of a vertex of a mesh, an end of a capsule or a point of a rim, -1 for others; ``first`` (s,) is
    the first of these points of each shape.
    """
    # contacts of the ends of each shape as a list: the first one, and what follows each
    start, after, level = np.full(kind.shape[0], -1), np.full(count, -1), np.empty(count)
    for c in range(count):
        s = owner[out.point[c]]
        if s >= 0 and kind[s] != MESH and kind[out.shape[c]] == MESH:
            after[c], start[s] = start[s], c
    for s in range(kind.shape[0]):
        c = start[s]
        while c >= 0:
            level[c] = level_of(c, s, start[s], after, first, kind, size, rotation, translation, out) + FLUSH * size[s, 0]
            c = after[c]
    for k in range(count):
        c = start[out.shape[k]] if out.feature[k] == 0 else -1
        while c >= 0:
            i = out.point[k]
            if out.shape[c] == owner[i] and dot(entry(out.frame, c, 0), row(points, i)) <= level[c]:
                out.feature[k] = GONE
            c = after[c]
    kept = 0
    for k in range(count):
        if out.feature[k] != GONE:
            kept = move_up(kept, k, out)
    return kept


@njit(cache=True, inner=True, _nrt=False)
def level_of(
    c: int,
    s: int,
    start: int,
    after: IntArray,
    first: IntArray,
    kind: IntArray,
    size: FloatArray,
    rotation: FloatArray,
    translation: FloatArray,
    out: Output,
) -> float:
    """Height along the normal of contact c up to which shape s lies on its ends, m; -inf where it does not.

    One that lies has it for the contact of its first end, if the second one is on the same plane; one that stands on a rim for
    the first point of that, if all of them are. The list of contacts of ends is that of :func:`without_held`.
    """
    normal = entry(out.frame, c, 0)
    per_end = 1 if kind[s] == CAPSULE else RIM_POINTS
    end = (out.point[c] - first[s]) // per_end
    lying = 0 if per_end == 1 else DEEPEST
    stands = per_end > 1 and out.feature[c] == 0 and out.point[c] == first[s] + end * per_end
    upright = per_end > 1 and abs(dot(normal, axis_of(rotation, s, 2))) > LIES
    if not stands and (upright or end > 0 or out.feature[c] != lying):
        return -inf
    low, other, around = height_of(c, end, s, normal, size, rotation, translation, out), -inf, 0
    d = start
    while d >= 0:
        if out.shape[d] == out.shape[c] and dot(entry(out.frame, d, 0), normal) >= 1.0 - 0.5 * FLUSH * FLUSH:
            its = (out.point[d] - first[s]) // per_end
            height = height_of(d, its, s, normal, size, rotation, translation, out)
            if stands and its == end and out.feature[d] == 0:
                low, around = min(low, height), around + 1
            # the tip of a cone has one point
            if its > end and (out.feature[d] == lying or (per_end > 1 and size[s, 2] == 0.0 and out.feature[d] == 0)):
                other = max(other, height)
        d = after[d]
    if stands:
        return low if around == RIM_POINTS else -inf
    return min(low, other)


@njit(cache=True, inner=True, _nrt=False)
def height_of(
    c: int,
    end: int,
    s: int,
    normal: Vector,
    size: FloatArray,
    rotation: FloatArray,
    translation: FloatArray,
    out: Output,
) -> float:
    """Height along a normal, m, of what is under contact c of an end of shape s; less by what the rim lies lower than that."""
    at = dot(normal, row(out.position, c))
    height = at - out.gap[c] * dot(normal, entry(out.frame, c, 0))
    if out.feature[c] != DEEPEST:
        return height
    lean, radius = dot(normal, axis_of(rotation, s, 2)), size[s, 0] if end == 0 else size[s, 2]
    lowest = (
        dot(normal, place_of(translation, s)) + (2 * end - 1) * size[s, 1] * lean - radius * sqrt(max(1.0 - lean * lean, 0.0))
    )
    return height - max(at - lowest, 0.0)

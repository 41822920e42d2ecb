"""Compiled kernels of detection: corners of boxes and vertices of meshes at the edges of meshes and boxes.

Where two shapes lie flush, a corner of one is exactly on an edge of the other. The distance alone cannot say which of the two
faces there carries it. That of a mesh, which is sampled, points between them, and errs by up to a seventh of a cell beside edges:
within a cell of a crease it is measured. What can say: a corner presses on a face only where none of its own edges leads further
into it. :func:`contact.detect_kernels.corner_distance` does the same for two boxes.
"""

from __future__ import annotations

from math import inf, sqrt
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from contact.compiled import njit
from contact.crease_kernels import BUNCH, Creases, is_beyond, measured_distance
from contact.detect_kernels import BOX, DEEPER, HAIR, LEAN, MESH, PARALLEL, box_distance, write_frame
from contact.placed_kernels import Output, Shapes, axis_of, move_up, moved, own, place_of, world
from contact.vector_kernels import Vector, cross, dot, minus, norm, over, plus, row

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

#: A vertex outside a shape is no contact where one of its edges leads into it by more than this cosine. Edges that turn by less
#: than contact.creases.CREASE are tested by their vertices alone, so that those may lean by as much more.
AWAY = 0.3

#: What is square to a crease may be off by this, see :func:`contact.creases.bunch_boxes`.
LEVEL = 1e-3


class Corners(NamedTuple):
    """Points (p of them) with edges: corners of boxes and vertices of meshes.

    Attributes
    ----------
    shape : ndarray, (p,)
        Box or mesh of each, -1 where it is neither.
    start : ndarray, (p + 1,)
        First edge of each.
    edge : ndarray, (n, 4)
        Unit vectors away from them along their edges, in the frame of the shape, and the lengths of these, m.
    margin : ndarray, (p,), m
        Contacts have a gap below it.
    left, right : ndarray, (m, 3)
        Outward normals of both faces at each segment of :class:`contact.crease_kernels.Creases`, in the frame of its shape.
    """

    shape: IntArray
    start: IntArray
    edge: FloatArray
    margin: FloatArray
    left: FloatArray
    right: FloatArray


@njit(cache=True, _nrt=False)
def faced_corners(count: int, corners: Corners, creases: Creases, shapes: Shapes, out: Output) -> int:
    """Give each of the first ``count`` contacts of a corner with a mesh or box the face that holds it; return how many are left.

    Two boxes are left out. Beside a crease the distance of a mesh is measured. A corner takes the face that :func:`held` finds:
    where it is far behind that, and a much shorter way leads out past an edge (DEEPER), one that it is less far behind. One that
    is outside and has no edge that reaches the shape is behind no face: it may be on the far side of a thin body.
    Without one it keeps what it has, but is no contact where it does not face that by AWAY and is outside, within a hair: other
    points of its body are nearer. Contacts that are not within the margin go: those of corners at edges are found from further
    away.
    """
    kept = 0
    for k in range(count):
        i, b = out.point[k], out.shape[k]
        a = corners.shape[i]
        if a >= 0 and out.feature[k] == 0 and (shapes.kind[b] == MESH or (shapes.kind[b] == BOX and shapes.kind[a] != BOX)):
            old = (out.frame[k, 0, 0], out.frame[k, 0, 1], out.frame[k, 0, 2])
            place = own(shapes.rotation, b, minus(row(out.position, k), place_of(shapes.translation, b)))
            cell = shapes.grid_place[b, 3] if shapes.kind[b] == MESH else 0.0
            if is_beside_crease(place, b, cell, creases):
                measured, way = measured_distance(place, b, abs(out.gap[k]) + cell, hair_of(b, shapes), creases.triangles)
                if measured < inf:
                    old, out.gap[k] = world(shapes.rotation, b, way), measured
                    write_frame(out.frame[k], old[0], old[1], old[2])
            against = own(shapes.rotation, a, old)
            lean = leaning(i, against, corners)
            within = 0.0 if lean >= -LEAN else DEEPER * overlap(a, b, shapes)
            if out.gap[k] > hair_of(b, shapes) and not reaches(i, against, out.gap[k], corners):
                within = 0.0
            gap, normal = held(i, a, b, place, within, within, corners, creases, shapes)
            if gap < -hair_of(b, shapes):
                deep = DEEPER * past_edge(i, a, b, place, -gap, corners, creases, shapes)
                if gap < -deep:
                    gap, normal = held(i, a, b, place, within, deep, corners, creases, shapes)
            if gap < inf:
                out.gap[k] = gap
                turned = world(shapes.rotation, b, normal)
                write_frame(out.frame[k], turned[0], turned[1], turned[2])
            elif lean < -AWAY and out.gap[k] > -hair_of(b, shapes):
                continue
            if not out.gap[k] < corners.margin[i]:
                continue
        kept = move_up(kept, k, out)
    return kept


@njit(cache=True, inner=True, _nrt=False)
def hair_of(b: int, shapes: Shapes) -> float:
    """Points this close to an edge of shape b are on it, m."""
    return HAIR * max(shapes.box_half[b, 0], shapes.box_half[b, 1], shapes.box_half[b, 2])


@njit(cache=True, inner=True, _nrt=False)
def leaning(i: int, normal: Vector, corners: Corners) -> float:
    """Least cosine between a normal and the edges of corner i, both in the frame of its shape: below 0 one leads against it."""
    least = inf
    for e in range(corners.start[i], corners.start[i + 1]):
        least = min(least, dot(normal, row(corners.edge, e)))
    return least


@njit(cache=True, inner=True, _nrt=False)
def reaches(i: int, normal: Vector, gap: float, corners: Corners) -> bool:
    """Whether an edge of corner i, ``gap`` (m) away along a normal, both in the frame of its shape, leads as far as that."""
    for e in range(corners.start[i], corners.start[i + 1]):
        if gap + corners.edge[e, 3] * dot(normal, row(corners.edge, e)) <= 0.0:
            return True
    return False


@njit(cache=True, inner=True, _nrt=False)
def held(
    i: int, a: int, b: int, place: Vector, within: float, deep: float, corners: Corners, creases: Creases, shapes: Shapes
) -> tuple[float, Vector]:
    """Signed distance of corner i of shape a from the face of shape b that holds it at an edge, and its normal in the frame of b.

    ``place`` (m) is in that frame. It is the nearest face at an edge that the corner faces (up to LEAN), of those within a hair
    of each other the one that it faces most. The corner lies above the edge or beside it on the face, within a hair; or, where it
    does not face what is nearest, no farther inside its border than ``within`` (m), DEEPER times the overlap of the bounding
    boxes, and no farther behind the face than ``deep`` (m), this or DEEPER times :func:`past_edge`. Its foot must be on the
    shape, for the plane of a face goes on where the face has ended. The distance is inf without such a face.
    """
    hair = hair_of(b, shapes)
    within, deep = within + hair, deep + hair
    # along, inward and gap are square to each other, up to LEVEL: a corner that a face holds is no farther from its edge
    across = max(deep, corners.margin[i])
    reach = (1.0 + LEVEL) * (hair + sqrt(within * within + across * across))
    best, most, found = -inf, -inf, (0.0, 0.0, 1.0)
    for g in range(creases.box_start[b], creases.box_start[b + 1]):
        if is_beyond(place, creases.boxes, g, reach):
            continue
        first = creases.start[b] + (g - creases.box_start[b]) * BUNCH
        last = min(first + BUNCH, creases.start[b + 1])
        past_ends(place, first, last, creases)
        for c in range(first, last):
            if creases.turned[0, 7, c - first] > hair:
                continue
            away = minus(place, row(creases.middle, c))
            for side in range(2):
                inward = dot(away, row(creases.one, c) if side == 0 else row(creases.two, c))
                if inward < -hair or inward > within:
                    continue
                normal = row(corners.left, c) if side == 0 else row(corners.right, c)
                gap = dot(away, normal)
                if gap < -deep or gap < best - hair or gap >= corners.margin[i]:
                    continue
                facing = leaning(i, own(shapes.rotation, a, world(shapes.rotation, b, normal)), corners)
                better = facing >= -LEAN and (gap > best + hair or facing > most)
                if better and is_on(moved(place, -gap, normal), b, 2.0 * hair, creases, shapes):
                    best, most, found = gap, facing, normal
    return (best, found) if best > -inf else (inf, found)


@njit(cache=True, inner=True, _nrt=False)
def past_ends(place: Vector, first: int, last: int, creases: Creases) -> None:
    """Say how far (m) a place is past the ends of each of the segments from first to last, along these, for many at once.

    The last row of ``turned`` takes the answers, below 0 between both ends.
    """
    x, y, z, dx, dy, dz, half, past = (
        creases.packed[0, first:last], creases.packed[1, first:last], creases.packed[2, first:last],
        creases.packed[3, first:last], creases.packed[4, first:last], creases.packed[5, first:last],
        creases.packed[6, first:last], creases.turned[0, 7],
    )  # fmt: skip
    px, py, pz = place
    for m in range(last - first):
        past[m] = abs((px - x[m]) * dx[m] + (py - y[m]) * dy[m] + (pz - z[m]) * dz[m]) - half[m]


@njit(cache=True, inner=True, _nrt=False)
def past_edge(i: int, a: int, b: int, place: Vector, most: float, corners: Corners, creases: Creases, shapes: Shapes) -> float:
    """Least way (m) that leads corner i of shape a past an edge of shape b, across this and an edge of its own; at most ``most``.

    Asked are edges no farther from it than that; ``place`` (m) is in the frame of b. Both shapes fall away from the plane of both
    edges: convex ones do not overlap by more.
    """
    least = most
    for g in range(creases.box_start[b], creases.box_start[b + 1]):
        if is_beyond(place, creases.boxes, g, most):
            continue
        first = creases.start[b] + (g - creases.box_start[b]) * BUNCH
        for c in range(first, min(first + BUNCH, creases.start[b + 1])):
            away, along = minus(place, row(creases.middle, c)), row(creases.along, c)
            reach = creases.half[c] + most
            if dot(away, away) > reach * reach:
                continue
            one, two = row(creases.one, c), row(creases.two, c)
            for e in range(corners.start[i], corners.start[i + 1]):
                spoke = own(shapes.rotation, b, world(shapes.rotation, a, row(corners.edge, e)))
                normal = cross(along, spoke)
                sine = norm(normal)
                if sine < PARALLEL:
                    continue
                normal = over(normal, sine if dot(normal, one) + dot(normal, two) <= 0.0 else -sine)
                depth = max(-dot(away, normal), 0.0)
                if depth >= least or max(dot(normal, one), dot(normal, two)) > 0.0:
                    continue
                if leaning(i, own(shapes.rotation, a, world(shapes.rotation, b, normal)), corners) >= -HAIR:
                    least = depth
    return least


@njit(cache=True, inner=True, _nrt=False)
def is_on(place: Vector, b: int, hair: float, creases: Creases, shapes: Shapes) -> bool:
    """Whether a place in the frame of shape b, a box or mesh, is on its surface within a hair (m)."""
    if shapes.kind[b] == BOX:
        return abs(box_distance(*place, shapes.size[b, 0], shapes.size[b, 1], shapes.size[b, 2])[0]) <= hair
    return measured_distance(place, b, hair, hair, creases.triangles)[0] < inf


@njit(cache=True, inner=True, _nrt=False)
def is_beside_crease(place: Vector, b: int, reach: float, creases: Creases) -> bool:
    """Whether a place in the frame of shape b is nearer to a segment of this than ``reach`` (m)."""
    for g in range(creases.box_start[b], creases.box_start[b + 1]):
        if is_beyond(place, creases.boxes, g, reach):
            continue
        first = creases.start[b] + (g - creases.box_start[b]) * BUNCH
        for c in range(first, min(first + BUNCH, creases.start[b + 1])):
            away, near = minus(place, row(creases.middle, c)), reach + creases.half[c]
            square = dot(away, away)
            if square < near * near:
                along = dot(away, row(creases.along, c))
                beyond = max(abs(along) - creases.half[c], 0.0)
                if sqrt(max(square - along * along, 0.0) + beyond * beyond) < reach:
                    return True
    return False


@njit(cache=True, inner=True, _nrt=False)
def overlap(a: int, b: int, shapes: Shapes) -> float:
    """Least depth (m) by which the bounding boxes of shapes a and b overlap along an axis, at most their least half extent."""
    between = plus(
        minus(place_of(shapes.translation, a), place_of(shapes.translation, b)),
        minus(world(shapes.rotation, a, row(shapes.box_centre, a)), world(shapes.rotation, b, row(shapes.box_centre, b))),
    )
    least = inf
    for j in range(3):
        least = min(least, shapes.box_half[a, j], shapes.box_half[b, j])
    for k in range(6):
        axis = axis_of(shapes.rotation, a if k < 3 else b, k % 3)
        depth = -abs(dot(axis, between))
        for j in range(3):
            depth += shapes.box_half[a, j] * abs(dot(axis, axis_of(shapes.rotation, a, j)))
            depth += shapes.box_half[b, j] * abs(dot(axis, axis_of(shapes.rotation, b, j)))
        least = min(least, depth)
    return max(least, 0.0)

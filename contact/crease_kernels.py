"""Compiled kernels of detection: edges of meshes, boxes and capsules that cross, and edges of meshes against cylinders.

Edges of boxes that cross edges of boxes have a kernel of their own, :mod:`contact.edge_kernels`, and so have edges of boxes and
capsules against cylinders, :mod:`contact.rim_kernels`.
"""

from __future__ import annotations

from math import inf, sqrt
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from contact.compiled import njit
from contact.detect_kernels import (
    BOX,
    CAPSULE,
    DEEPER,
    HAIR,
    LEAN,
    MESH,
    PARALLEL,
    box_distance,
    capsule_distance,
)
from contact.distance_kernels import closest_on_lines
from contact.placed_kernels import Output, Place, Shapes, axis_of, move_up, moved, own, place_of, put, world
from contact.rim_kernels import OVERLAP
from contact.sdf_kernels import offset_from_closest
from contact.segment_kernels import segment_contacts
from contact.vector_kernels import cross, dot, entry, minus, norm, over, plus, row, times

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

#: Features of an edge of a mesh against a cylinder start here, each edge has room for five.
ON_CYLINDER = OVERLAP + 1

#: Segments of a bunch, neighbours in the order of a shape, which are left out together where they are beside another segment.
BUNCH = 32


class Triangles(NamedTuple):
    """Triangles of the meshes among s shapes (t of them), in the frames of these.

    Attributes
    ----------
    start : ndarray, (s + 1,)
        First triangle of each mesh.
    corners, normals : ndarray, (t, 3, 3), m, and (t, 7, 3)
        Of triangles and their features, see :func:`contact.sdf_grid.triangle_table`.
    balls : ndarray, (t, 4), m
        Centre and radius of a ball about each triangle.
    box_start, boxes : ndarray, (s + 1,) and (bunches, 6), m
        First bunch of each mesh: BUNCH triangles, neighbours in its order; lower and upper corners of the boxes around them, see
        :func:`contact.creases.bunch_boxes`.
    """

    start: IntArray
    corners: FloatArray
    normals: FloatArray
    balls: FloatArray
    box_start: IntArray
    boxes: FloatArray


class Creases(NamedTuple):
    """Segments of s shapes, in the frames of these (n of them), and the triangles of meshes.

    Attributes
    ----------
    start : ndarray, (s + 1,)
        First segment of each shape.
    middle, along, half : ndarray, (n, 3), (n, 3) and (n,), m
        Middle, unit vector and half the length of each.
    one, two : ndarray, (n, 3)
        Unit vectors across it along its two faces, away from it; 0 for the axis of a capsule.
    thickness : ndarray, (n,), m
        Radius of a capsule.
    first : ndarray, (s,)
        First point of each shape, -1 for none.
    reach : ndarray, (s,), m
        Margin of its contacts.
    triangles : Triangles
        Those of the meshes.
    near, turned : ndarray, (2, most) and (2, 8, most)
        Room to work in: some segments of two shapes; in the world their middles, from the origin of the shape (m), their
        directions, half their lengths (m), and a number.
    bunch : ndarray, (bunches, 6), m
        Room for the centres and half extents of the boxes around bunches of those of the second side.
    box_start, boxes : ndarray, (s + 1,) and (bunches, 6), m
        First bunch of the segments of each shape, and the boxes around them, as for triangles.
    packed : ndarray, (7, n)
        Middles, directions and halves of the lengths once more, each coordinate in a row.
    """

    start: IntArray
    middle: FloatArray
    along: FloatArray
    half: FloatArray
    one: FloatArray
    two: FloatArray
    thickness: FloatArray
    first: IntArray
    reach: FloatArray
    triangles: Triangles
    near: IntArray
    turned: FloatArray
    bunch: FloatArray
    box_start: IntArray
    boxes: FloatArray
    packed: FloatArray


@njit(cache=True, _nrt=False)
def crossing_creases(
    count: int,
    creases: Creases,
    shapes: Shapes,
    point_body: IntArray,
    may_contact: BoolArray,
    within: BoolArray,
    closer: float,
    out: Output,
) -> int:
    """Update ``out`` from ``count`` on with the contacts of crossing segments of all pairs of shapes but two boxes.

    Returned is how many contacts there are. A contact is that of the first point of one shape, with the other as its shape. Of
    bodies ``within`` the reach is less by ``closer`` (m). The number may exceed the room; contacts beyond it are counted, not
    written.
    """
    n_shapes = shapes.kind.shape[0]
    for i in range(n_shapes):
        for j in range(i + 1, n_shapes):
            without = creases.start[i + 1] == creases.start[i] or creases.start[j + 1] == creases.start[j]
            if without or (shapes.kind[i] == BOX and shapes.kind[j] == BOX):
                continue
            a, b = i, j
            if creases.first[a] < 0 or not may_contact[shapes.body[a], shapes.body[b]]:
                a, b = j, i
                if creases.first[a] < 0 or not may_contact[shapes.body[a], shapes.body[b]]:
                    continue
            reach = creases.reach[a] - (closer if closer > 0.0 and within[shapes.body[a], shapes.body[b]] else 0.0)
            if not close(a, b, reach, shapes) or apart(a, b, reach, shapes):
                continue
            fewer_a = creases.start[a + 1] - creases.start[a] <= creases.start[b + 1] - creases.start[b]
            n_near_a = gather(a, b, 0, reach, creases, shapes) if fewer_a else 1
            n_near_b = gather(b, a, 1, reach, creases, shapes) if n_near_a > 0 else 0
            if n_near_b > 0 and not fewer_a:
                n_near_a = gather(a, b, 0, reach, creases, shapes)
            before = count
            bunch_up(n_near_b if n_near_a > 0 else 0, creases)
            between = minus(place_of(shapes.translation, a), place_of(shapes.translation, b))
            for k in range(n_near_a):
                for first in range(0, n_near_b, BUNCH):
                    if past(k, first // BUNCH, between, creases):
                        continue
                    last = min(first + BUNCH, n_near_b)
                    meeting(k, first, last, between, creases)
                    for m in range(first, last):
                        if creases.turned[1, 7, m] <= 0.0:
                            count = crossing(count, a, b, creases.near[0, k], creases.near[1, m], reach, creases, shapes, out)
            flat = shapes.kind[a] != CAPSULE and shapes.kind[b] != CAPSULE
            if flat and count <= out.point.shape[0]:
                count = without_needless(before, count, a, b, point_body, shapes, out)
    return count


@njit(cache=True, _nrt=False)
def creases_on_cylinders(count: int, creases: Creases, shapes: Shapes, may_contact: BoolArray, out: Output) -> int:
    """Update ``out`` from ``count`` on with the contacts of creases of meshes with cylinders whose rims are points.

    Returned is how many contacts there are; they are those of the first point of the cylinder.
    """
    n_shapes = shapes.kind.shape[0]
    for a in range(n_shapes):
        if shapes.rim[a] < 0:
            continue
        for b in range(n_shapes):
            if shapes.kind[b] != MESH or not may_contact[shapes.body[a], shapes.body[b]]:
                continue
            if not close(a, b, shapes.reach[a], shapes) or apart(a, b, shapes.reach[a], shapes):
                continue
            origin = place_of(shapes.translation, b)
            for k in range(creases.start[b], creases.start[b + 1]):
                middle = plus(origin, world(shapes.rotation, b, row(creases.middle, k)))
                along = world(shapes.rotation, b, row(creases.along, k))
                if beside(a, middle, along, creases.half[k], shapes):
                    continue
                one = times(-1.0, world(shapes.rotation, b, row(creases.one, k)))
                two = times(-1.0, world(shapes.rotation, b, row(creases.two, k)))
                number = ON_CYLINDER + 5 * (k - creases.start[b])
                count = segment_contacts(count, a, b, number, middle, along, creases.half[k], 0.0, one, two, shapes, out)
    return count


@njit(cache=True, inner=True, _nrt=False)
def close(a: int, b: int, reach: float, shapes: Shapes) -> bool:
    """Whether the balls about the bounding boxes of two shapes come within reach of each other."""
    between = minus(place_of(shapes.translation, a), place_of(shapes.translation, b))
    between = plus(between, world(shapes.rotation, a, row(shapes.box_centre, a)))
    between = minus(between, world(shapes.rotation, b, row(shapes.box_centre, b)))
    half_a, half_b = row(shapes.box_half, a), row(shapes.box_half, b)
    return sqrt(dot(between, between)) <= sqrt(dot(half_a, half_a)) + sqrt(dot(half_b, half_b)) + max(reach, 0.0)


@njit(cache=True, inner=True, _nrt=False)
def apart(a: int, b: int, reach: float, shapes: Shapes) -> bool:
    """Whether the bounding boxes of two shapes are farther apart than reach along an axis of one of them."""
    between = minus(place_of(shapes.translation, a), place_of(shapes.translation, b))
    between = plus(between, world(shapes.rotation, a, row(shapes.box_centre, a)))
    between = minus(between, world(shapes.rotation, b, row(shapes.box_centre, b)))
    for k in range(6):
        axis = axis_of(shapes.rotation, a if k < 3 else b, k % 3)
        extent = reach
        for j in range(3):
            extent += shapes.box_half[a, j] * abs(dot(axis, axis_of(shapes.rotation, a, j)))
            extent += shapes.box_half[b, j] * abs(dot(axis, axis_of(shapes.rotation, b, j)))
        if abs(dot(axis, between)) > extent * (1.0 + 1e-8):
            return True
    return False


@njit(cache=True, inner=True, _nrt=False)
def beside(a: int, middle: Place, along: Place, half: float, shapes: Shapes) -> bool:
    """Whether a segment in the world, by its middle, direction and half its length (m), is beyond the reach of cylinder a.

    Asked is along its axes, where :func:`contact.segment_kernels.segment_contacts` looks for the nearest point.
    """
    place = own(shapes.rotation, a, minus(middle, place_of(shapes.translation, a)))
    direction = own(shapes.rotation, a, along)
    for i in range(3):
        extent = half * abs(direction[i]) + shapes.box_half[a, i] + shapes.reach[a]
        if abs(place[i] - shapes.box_centre[a, i]) > extent * (1.0 + 1e-9):
            return True
    return False


@njit(cache=True, inner=True, _nrt=False)
def gather(a: int, b: int, side: int, reach: float, creases: Creases, shapes: Shapes) -> int:
    """Fill ``near`` and ``turned`` of a side with those segments of a whose bounding box, in the frame of b, comes within reach.

    Returned is how many they are.
    """
    count, near, turned = 0, creases.near[side], creases.turned[side]
    between = minus(place_of(shapes.translation, a), place_of(shapes.translation, b))
    for g in range(creases.box_start[a], creases.box_start[a + 1]):
        if away_from(a, b, g, between, reach, creases, shapes):
            continue
        first = creases.start[a] + (g - creases.box_start[a]) * BUNCH
        for k in range(first, min(first + BUNCH, creases.start[a + 1])):
            middle = world(shapes.rotation, a, row(creases.middle, k))
            direction = world(shapes.rotation, a, row(creases.along, k))
            place, along = own(shapes.rotation, b, plus(between, middle)), own(shapes.rotation, b, direction)
            beyond = reach + creases.thickness[k]
            inside = True
            for i in range(3):
                extent = creases.half[k] * abs(along[i]) + shapes.box_half[b, i] + beyond
                inside &= abs(place[i] - shapes.box_centre[b, i]) <= extent * (1.0 + 1e-9)
            if inside:
                near[count] = k
                for i in range(3):
                    turned[i, count], turned[3 + i, count] = middle[i], direction[i]
                turned[6, count] = creases.half[k]
                count += 1
    return count


@njit(cache=True, inner=True, _nrt=False)
def away_from(a: int, b: int, g: int, between: Place, reach: float, creases: Creases, shapes: Shapes) -> bool:
    """Whether the box of bunch g of shape a is beyond the reach (m) of the bounding box of shape b, along the axes of b."""
    box = creases.boxes[g]
    middle = (0.5 * (box[0] + box[3]), 0.5 * (box[1] + box[4]), 0.5 * (box[2] + box[5]))
    place = own(shapes.rotation, b, plus(between, world(shapes.rotation, a, middle)))
    for i in range(3):
        axis, extent = axis_of(shapes.rotation, b, i), shapes.box_half[b, i] + reach
        for j in range(3):
            extent += 0.5 * (box[3 + j] - box[j]) * abs(dot(axis, axis_of(shapes.rotation, a, j)))
        if abs(place[i] - shapes.box_centre[b, i]) > extent * (1.0 + 1e-8):
            return True
    return False


@njit(cache=True, inner=True, _nrt=False)
def bunch_up(n: int, creases: Creases) -> None:
    """Fill the boxes of the bunches of the first n gathered segments of the second side."""
    others = creases.turned[1]
    for first in range(0, n, BUNCH):
        for i in range(3):
            lower, upper = inf, -inf
            for m in range(first, min(first + BUNCH, n)):
                extent = others[6, m] * abs(others[3 + i, m])
                lower, upper = min(lower, others[i, m] - extent), max(upper, others[i, m] + extent)
            box = creases.bunch[first // BUNCH]
            box[i], box[3 + i] = 0.5 * (lower + upper), 0.5 * (upper - lower)


@njit(cache=True, inner=True, _nrt=False)
def past(k: int, g: int, between: Place, creases: Creases) -> bool:
    """Whether no segment of bunch g has a place beside gathered segment k of a: the common perpendicular would leave from there.

    ``between`` (m) leads from the origin of b to that of a.
    """
    mine, box, far, extent = creases.turned[0], creases.bunch[g], 0.0, creases.turned[0, 6, k]
    for i in range(3):
        far += mine[3 + i, k] * (between[i] + mine[i, k] - box[i])
        extent += abs(mine[3 + i, k]) * box[3 + i]
    return abs(far) > extent * (1.0 + 1e-8)


@njit(cache=True, inner=True, _nrt=False)
def meeting(k: int, first: int, last: int, between: Place, creases: Creases) -> None:
    """Say where the line of gathered segment k of a and those from first to last of b are closest inside both: not above 0.

    ``between`` (m) leads from the origin of b to that of a. It is what :func:`crossing` asks, up to a hair and without its
    divisions, for many at once: it leaves out nearly all pairs. The last row of ``turned`` of b takes the answers, by how
    much the farther of the two places is beyond an end.
    """
    mine, others = creases.turned[0], creases.turned[1]
    sx, sy, sz = between[0] + mine[0, k], between[1] + mine[1, k], between[2] + mine[2, k]
    ax, ay, az, half = mine[3, k], mine[4, k], mine[5, k], mine[6, k]
    x, y, z, dx, dy, dz, length, beyond = (
        others[0, first:last], others[1, first:last], others[2, first:last], others[3, first:last],
        others[4, first:last], others[5, first:last], others[6, first:last], others[7, first:last],
    )  # fmt: skip
    for m in range(last - first):
        ox, oy, oz = dx[m], dy[m], dz[m]
        nx, ny, nz = ay * oz - az * oy, az * ox - ax * oz, ax * oy - ay * ox
        square = (nx * nx + ny * ny + nz * nz) * (1.0 + 1e-9)
        wx, wy, wz = sx - x[m], sy - y[m], sz - z[m]
        cosine = ax * ox + ay * oy + az * oz
        on_along, on_other = ax * wx + ay * wy + az * wz, ox * wx + oy * wy + oz * wz
        on_a, on_b = abs(cosine * on_other - on_along) - square * half, abs(on_other - cosine * on_along) - square * length[m]
        beyond[m] = on_a if on_a > on_b else on_b


@njit(cache=True, inner=True, _nrt=False)
def is_beyond(place: Place, boxes: FloatArray, g: int, reach: float) -> bool:
    """Whether a place is farther than ``reach`` (m) from box g, all in one frame."""
    square = 0.0
    for i in range(3):
        beyond = max(boxes[g, i] - place[i], place[i] - boxes[g, 3 + i], 0.0)
        square += beyond * beyond
    return square > reach * reach


@njit(cache=True, inner=True, _nrt=False)
def measured_distance(place: Place, b: int, reach: float, hair: float, triangles: Triangles) -> tuple[float, Place]:
    """Signed distance (m) of mesh b at a place in its frame, and its normal there; inf beyond ``reach`` (m).

    Within a hair (m) of the surface the normal is that of the closest face, edge or vertex.
    """
    best, closest, found, way = reach, -1, 0, (0.0, 0.0, 1.0)
    for g in range(triangles.box_start[b], triangles.box_start[b + 1]):
        if is_beyond(place, triangles.boxes, g, best):
            continue
        first = triangles.start[b] + (g - triangles.box_start[b]) * BUNCH
        for t in range(first, min(first + BUNCH, triangles.start[b + 1])):
            away, near = minus(place, row(triangles.balls, t)), best + triangles.balls[t, 3]
            if dot(away, away) < near * near:
                offset, feature = offset_from_closest(place, triangles.corners, t)
                if dot(offset, offset) < best * best:
                    best, closest, found, way = norm(offset), t, feature, offset
    if closest < 0:
        return inf, way
    normal = entry(triangles.normals, closest, found)
    distance, length = -best if dot(way, normal) < 0.0 else best, norm(normal)
    if best > hair:
        return distance, over(way, distance)
    return distance, over(normal, length) if length > 0.0 else (0.0, 0.0, 1.0)


@njit(cache=True, inner=True, _nrt=False)
def depth_in(s: int, place: Place, beside: float, creases: Creases, shapes: Shapes) -> tuple[float, Place]:
    """Exact signed distance of shape s, a box, capsule or mesh, at a place in its frame (m), and its normal there.

    Above ``beside`` it may be that of a plane in front of the shape.
    """
    x, y, z = place
    if shapes.kind[s] == BOX:
        distance, nx, ny, nz = box_distance(x, y, z, shapes.size[s, 0], shapes.size[s, 1], shapes.size[s, 2])
        return distance, (nx, ny, nz)
    if shapes.kind[s] == CAPSULE:
        distance, nx, ny, nz = capsule_distance(x, y, z, shapes.size[s, 0], shapes.size[s, 1])
        return distance, (nx, ny, nz)
    for i in range(3):
        from_centre = place[i] - shapes.box_centre[s, i]
        away = abs(from_centre) - shapes.box_half[s, i] * (1.0 + 1e-9)
        if away > beside:
            out = 1.0 if from_centre > 0.0 else -1.0
            return away, (out if i == 0 else 0.0, out if i == 1 else 0.0, out if i == 2 else 0.0)
    return measured_distance(place, s, inf, 0.0, creases.triangles)


@njit(cache=True, inner=True, _nrt=False)
def goes_in(
    s: int, start: Place, along: Place, least: float, most: float, beside: float, creases: Creases, shapes: Shapes
) -> bool:
    """Whether a segment goes through shape s, or past it by less than ``beside`` (m), at a place in its frame or on from there.

    Each step leads to the plane through what is nearest, behind which a convex shape lies. It may not leave the segment, which
    reaches from ``least`` to ``most`` (m). Past an edge of less than a right angle a face may be between, and then another one.
    """
    at = 0.0
    for _ in range(3):
        distance, normal = depth_in(s, moved(start, at, along), beside, creases, shapes)
        if distance <= beside:
            return True
        slope = dot(normal, along)
        if abs(slope) < PARALLEL:
            return False
        at -= distance / slope
        if at < least or at > most:
            return False
    return False


@njit(cache=True, inner=True, _nrt=False)
def way_out(place: Place, first: Place, last: Place, one: Place, two: Place) -> float:
    """How far a segment must go along the normal of a face to lie outside the nearer of the two faces at an edge, m.

    ``place`` is a point of it seen from the edge, ``first`` and ``last`` lead from there to its ends, ``one`` and ``two`` from
    the edge along its faces. An axis of a capsule, whose ``one`` and ``two`` are 0, has no faces: infinite.
    """
    cosine = dot(one, two)
    sine = sqrt(max(dot(one, one) - cosine * cosine, 0.0))
    if sine == 0.0:
        return np.inf
    least = np.inf
    for face in range(2):
        normal = minus(times(cosine, one), two) if face == 0 else minus(times(cosine, two), one)
        out = dot(place, normal) + min(dot(first, normal), dot(last, normal))
        least = min(least, -out / sine)
    return least


@njit(cache=True, inner=True, _nrt=False)
def crossing(count: int, a: int, b: int, i: int, j: int, reach: float, creases: Creases, shapes: Shapes, out: Output) -> int:
    """Contact of segment i of a and segment j of b where they cross.

    Their closest points count where both lie inside (not at an end, see HAIR) and the common perpendicular leads out of b and
    into a (up to LEAN): the faces of both fall away from the plane of contact. Where the segments have passed each other, each
    must go through the other body there or on from there (up to LEAN): an edge at its far side is no contact. Nor may a much
    shorter way aside lead one of them out of the faces of the other (DEEPER): blocks that meet at an edge are not as deep as
    this is long.
    """
    turn = shapes.rotation
    along, other = world(turn, a, row(creases.along, i)), world(turn, b, row(creases.along, j))
    normal = cross(along, other)
    sine = sqrt(dot(normal, normal))
    if sine < PARALLEL:
        return count
    origin = place_of(shapes.translation, b)
    from_a, from_b = world(turn, a, row(creases.middle, i)), world(turn, b, row(creases.middle, j))
    start = plus(minus(place_of(shapes.translation, a), origin), from_a)  # from the origin of b, that no digits are lost
    between = minus(start, from_b)
    one_a, two_a = world(turn, a, row(creases.one, i)), world(turn, a, row(creases.two, i))
    one_b, two_b = world(turn, b, row(creases.one, j)), world(turn, b, row(creases.two, j))
    into = minus(plus(one_a, two_a), plus(one_b, two_b))
    leads = dot(normal, into)
    if creases.thickness[i] > 0.0 and creases.thickness[j] > 0.0:
        leads = dot(normal, between)
    normal = times((1.0 if leads >= 0.0 else -1.0) / sine, normal)
    offset = dot(normal, between)
    gap = offset - creases.thickness[i] - creases.thickness[j]
    if gap >= reach:
        return count
    if max(dot(normal, one_b), dot(normal, two_b)) > LEAN or min(dot(normal, one_a), dot(normal, two_a)) < -LEAN:
        return count
    on_a, on_b = closest_on_lines(
        1.0, dot(along, other), 1.0, dot(along, between), dot(other, between), sine * sine
    )  # fmt: skip
    hair = HAIR * min(creases.half[i], creases.half[j])
    if abs(on_a) > creases.half[i] - hair or abs(on_b) > creases.half[j] - hair:
        return count
    if offset < -hair:
        past = times(offset, normal)
        aside = way_out(past, times(-on_a - creases.half[i], along), times(creases.half[i] - on_a, along), one_b, two_b)
        past = times(-offset, normal)
        back = way_out(past, times(-on_b - creases.half[j], other), times(creases.half[j] - on_b, other), one_a, two_a)
        if DEEPER * min(aside, back) < -offset:
            return count
        beside, half = hair - LEAN * offset, creases.half[i]
        in_b, way = own(turn, b, moved(start, on_a, along)), own(turn, b, along)
        if not goes_in(b, in_b, way, -half - on_a, half - on_a, beside, creases, shapes):
            return count
        half = creases.half[j]
        in_a = own(turn, a, minus(moved(from_b, on_b, other), minus(place_of(shapes.translation, a), origin)))
        if not goes_in(a, in_a, own(turn, a, other), -half - on_b, half - on_b, beside, creases, shapes):
            return count
    feature = 1 + (i - creases.start[a]) * (creases.start[b + 1] - creases.start[b]) + j - creases.start[b]
    at_contact = plus(origin, moved(moved(start, on_a, along), -creases.thickness[i] - 0.5 * gap, normal))
    return put(count, creases.first[a], b, feature, gap, normal, at_contact, out)


@njit(cache=True, inner=True, _nrt=False)
def without_needless(before: int, count: int, a: int, b: int, point_body: IntArray, shapes: Shapes, out: Output) -> int:
    """Take the needless contacts of a and b out of those from ``before`` on; return how many contacts are left.

    Edges of bodies that overlap a little may lie past each other by much: that of a box on a slab, and one at the border of the
    slab. Such a contact is needless where another one of the same bodies, within its depth of it, is less than 1 / DEEPER of it
    deep. Capsules have no such edges.
    """
    kept = before
    half_a, half_b = row(shapes.box_half, a), row(shapes.box_half, b)
    hair = HAIR * min(max(half_a[0], half_a[1], half_a[2]), max(half_b[0], half_b[1], half_b[2]))
    for k in range(before, count):
        depth, needless = -out.gap[k], False
        if depth > hair:
            place = row(out.position, k)
            for m in range(count):
                body, other = point_body[out.point[m]], shapes.body[out.shape[m]]
                same = body == shapes.body[a] and other == shapes.body[b]
                if m == k or not (same or (body == shapes.body[b] and other == shapes.body[a])):
                    continue
                way = minus(row(out.position, m), place)
                needless |= DEEPER * -out.gap[m] < depth and dot(way, way) <= DEEPER * DEEPER * depth * depth
        if needless:
            continue
        kept = move_up(kept, k, out)
    return kept

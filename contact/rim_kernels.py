"""Compiled kernels of detection: cylinders as smooth surfaces, with contact at the lowest points of their rims and mantles.

Fixed points on a rim would make a cylinder a prism, which does not roll. Here the points move along the rims with the pose: on a
flat face the lowest point of each rim is known, on other shapes the signed distance is minimised along the rim. A cylinder
that stands needs more than its lowest point: RIM_POINTS of its rim, evenly, the first of them the lowest; within FLAT of
upright, where rounding decides which is lowest, they are points fixed to the cylinder. Edges of boxes and axes of capsules are
tested against the signed distance of the cylinder, which is convex, so that they have one deepest point.
"""

from __future__ import annotations

from math import cos, inf, pi, sin, sqrt
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from contact.detect_kernels import (
    BOX,
    CAPSULE,
    CYLINDER,
    DEEPER,
    HAIR,
    LEAN,
    PARALLEL,
    PLANE,
    SPHERE,
    Distance,
    cylinder_distance,
    shape_distance,
    write_frame,
)
from contact.distance_kernels import closest_on_lines
from contact.shapes import RIM_POINTS
from contact.vector_kernels import Vector, cross, dot, minus, times

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

#: A cap whose normal is off that of a face by less than this sine lies flat on it: its points are fixed to the cylinder.
FLAT = 1e-6

#: Below this sine all RIM_POINTS of the lower rim are tested, above it those a quarter of the rim apart. Points close to the
#: lowest one would brake a cylinder that rolls fast: in a step they are taken to move straight on, into the face.
NEARLY_FLAT = 0.05

#: Mantles whose axes have less than this sine between them do not cross: their rims are as close.
ALONG = 1e-4

#: A rim that does not face the nearer of side and cap of a cylinder takes the other, up to this fraction of the radius behind.
SHALLOW = 0.1

#: Along a rim a dip of the distance by less than this fraction of the radius is none.
LEVEL = 1e-9

#: Features of contacts that are no points of a rim: those of segments start at SEGMENT, each has room for five.
SEGMENT, DEEPEST, CROSSING = 1, 101, 102

#: Steps of the golden section: 0.618 to this power is 1e-10.
SECTIONS = 48
GOLDEN = 0.6180339887498949

Place = tuple[float, float, float]


class Shapes(NamedTuple):
    """Shapes (s of them) as in :class:`contact.shapes.ShapeTable`, with their poses in the world, and what belongs to them.

    Attributes
    ----------
    kind, size, box_centre, box_half, grid_values, grid_index, grid_place : ndarray
        Those of the table.
    rotation, translation : ndarray, (s, 3, 3) and (s, 3), m
        World poses.
    body, rim : ndarray, (s,)
        Body of each, and the first of the 2 RIM_POINTS points of a cylinder, -1 for none.
    reach : ndarray, (s,), m
        Margin of the contacts of a cylinder.
    """

    kind: IntArray
    size: FloatArray
    box_centre: FloatArray
    box_half: FloatArray
    grid_values: FloatArray
    grid_index: IntArray
    grid_place: FloatArray
    rotation: FloatArray
    translation: FloatArray
    body: IntArray
    rim: IntArray
    reach: FloatArray


class Output(NamedTuple):
    """Room for contacts, as in :class:`contact.detect.PointContacts`."""

    point: IntArray
    shape: IntArray
    gap: FloatArray
    frame: FloatArray
    position: FloatArray
    feature: IntArray


@njit(cache=True)
def rolling_contacts(count: int, shapes: Shapes, may_contact: BoolArray, out: Output) -> int:
    """Update ``out`` from ``count`` on with the contacts of all cylinders whose rims are points; return how many there are.

    The contact is that of a point of the cylinder: for rims of one of its 2 RIM_POINTS (see :func:`rim_on_face`), for all others
    of the first one. A sphere has contact by its centre already. The number may exceed the room; contacts beyond it are counted,
    not written.
    """
    distance = np.empty(RIM_POINTS)
    for a in range(shapes.kind.shape[0]):
        if shapes.rim[a] < 0:
            continue
        for b in range(shapes.kind.shape[0]):
            kind = shapes.kind[b]
            if kind == SPHERE or not may_contact[shapes.body[a], shapes.body[b]]:
                continue
            if kind == PLANE:
                normal = axis_of(shapes.rotation, b, 2)
                count = face_contacts(count, a, b, normal, place_of(shapes.translation, b), -1, shapes, out)
            elif not near(a, b, shapes):
                continue
            elif kind == BOX:
                count = box_contacts(count, a, b, shapes, out)
            elif kind == CAPSULE:
                along = axis_of(shapes.rotation, b, 2)
                none = (0.0, 0.0, 0.0)
                count = segment_contacts(
                    count, a, b, SEGMENT, place_of(shapes.translation, b), along, shapes.size[b, 1], shapes.size[b, 0],
                    none, none, shapes, out,
                )  # fmt: skip
            else:
                count = rim_contacts(count, a, b, distance, shapes, out)
                once = a < b or shapes.rim[b] < 0 or not may_contact[shapes.body[b], shapes.body[a]]
                if kind == CYLINDER and once:
                    count = mantle_contact(count, a, b, shapes, out)
    return count


@njit(cache=True)
def axis_of(rotation: FloatArray, s: int, i: int) -> Vector:
    """Axis i of shape s in the world."""
    return rotation[s, 0, i], rotation[s, 1, i], rotation[s, 2, i]


@njit(cache=True)
def place_of(translation: FloatArray, s: int) -> Place:
    """Origin of shape s in the world, m."""
    return translation[s, 0], translation[s, 1], translation[s, 2]


@njit(cache=True)
def own(rotation: FloatArray, s: int, v: Vector) -> Vector:
    """World vector v in the frame of shape s."""
    return dot(axis_of(rotation, s, 0), v), dot(axis_of(rotation, s, 1), v), dot(axis_of(rotation, s, 2), v)


@njit(cache=True)
def world(rotation: FloatArray, s: int, v: Vector) -> Vector:
    """Vector v of the frame of shape s in the world."""
    return (
        rotation[s, 0, 0] * v[0] + rotation[s, 0, 1] * v[1] + rotation[s, 0, 2] * v[2],
        rotation[s, 1, 0] * v[0] + rotation[s, 1, 1] * v[1] + rotation[s, 1, 2] * v[2],
        rotation[s, 2, 0] * v[0] + rotation[s, 2, 1] * v[1] + rotation[s, 2, 2] * v[2],
    )


@njit(cache=True)
def moved(place: Place, length: float, direction: Vector) -> Place:
    """Place + length direction."""
    return place[0] + length * direction[0], place[1] + length * direction[1], place[2] + length * direction[2]


@njit(cache=True)
def near(a: int, b: int, shapes: Shapes) -> bool:
    """Whether the balls about the cylinder a and the bounding box of b come within the reach of a."""
    half, size = shapes.box_half, shapes.size
    centre = world(shapes.rotation, b, (shapes.box_centre[b, 0], shapes.box_centre[b, 1], shapes.box_centre[b, 2]))
    between = minus(minus(place_of(shapes.translation, a), place_of(shapes.translation, b)), centre)
    radii = sqrt(half[b, 0] ** 2 + half[b, 1] ** 2 + half[b, 2] ** 2) + sqrt(size[a, 0] ** 2 + size[a, 1] ** 2)
    return sqrt(dot(between, between)) <= radii + max(shapes.reach[a], 0.0)


@njit(cache=True)
def put(count: int, point: int, b: int, feature: int, gap: float, normal: Vector, place: Place, out: Output) -> int:
    """Write a contact where there is room, with the normal made a unit vector; return the number of contacts."""
    if count < out.point.shape[0]:
        out.point[count], out.shape[count], out.feature[count], out.gap[count] = point, b, feature, gap
        length = sqrt(dot(normal, normal))
        write_frame(out.frame[count], normal[0] / length, normal[1] / length, normal[2] / length)
        for i in range(3):
            out.position[count, i] = place[i]
    return count + 1


# ------------------------------------------------------------------ rims on flat faces


@njit(cache=True)
def rim_on_face(k: int, normal: Vector, radius: float, half_length: float) -> tuple[bool, float, float, float]:
    """Point k of the rims of a cylinder against a face with this normal, both in its frame, and whether it is tested.

    Points 0 to RIM_POINTS - 1 are on the rim at z < 0, the others on that at z > 0. The first point of each is the lowest one,
    the others follow at equal angles; on the upper rim only the first is tested. Within FLAT they are the points of
    ``Cylinder.features()``, and the upper rim has none.
    """
    nx, ny, nz = normal
    lower = (k < RIM_POINTS) == (nz >= 0.0)
    i = k % RIM_POINTS
    z = -half_length if k < RIM_POINTS else half_length
    sine = sqrt(nx * nx + ny * ny)
    c, s = cos(2.0 * pi * i / RIM_POINTS), sin(2.0 * pi * i / RIM_POINTS)
    if sine < FLAT:
        return lower, radius * c, radius * s, z
    tested = i == 0 or (lower and (sine < NEARLY_FLAT or i % (RIM_POINTS // 4) == 0))
    ux, uy = -nx / sine, -ny / sine
    return tested, radius * (c * ux - s * uy), radius * (s * ux + c * uy), z


@njit(cache=True)
def face_contacts(count: int, a: int, b: int, normal: Vector, origin: Place, axis: int, shapes: Shapes, out: Output) -> int:
    """Contacts of the rims of cylinder a with a face through ``origin`` (world) of b.

    The face is unbounded for ``axis`` -1; else it is that of a box across this axis, and points beside it by more than HAIR of
    the largest half extent are no contacts.
    """
    lean = own(shapes.rotation, a, normal)
    place, centre = place_of(shapes.translation, a), place_of(shapes.translation, b)
    hair = HAIR * max(shapes.size[b, 0], shapes.size[b, 1], shapes.size[b, 2])
    for k in range(2 * RIM_POINTS):
        tested, x, y, z = rim_on_face(k, lean, shapes.size[a, 0], shapes.size[a, 1])
        if not tested:
            continue
        point = moved(place, 1.0, world(shapes.rotation, a, (x, y, z)))
        gap = dot(normal, minus(point, origin))
        if not gap < shapes.reach[a]:
            continue
        if axis >= 0:
            i, j = (axis + 1) % 3, (axis + 2) % 3
            offset = own(shapes.rotation, b, minus(point, centre))
            beside = max(abs(offset[i]) - shapes.size[b, i], abs(offset[j]) - shapes.size[b, j])
            if beside > hair:
                continue
        count = put(count, shapes.rim[a] + k, b, 0, gap, normal, point, out)
    return count


# ------------------------------------------------------------------ boxes


@njit(cache=True)
def face_gap(face: int, a: int, b: int, shapes: Shapes) -> tuple[float, Vector]:
    """Gap between cylinder a and the plane of a face of box b, and the normal: face 2 i is at the lower end of axis i."""
    i, sign = face // 2, -1.0 if face % 2 == 0 else 1.0
    axis = axis_of(shapes.rotation, b, i)
    normal = times(sign, axis)
    lean = own(shapes.rotation, a, normal)
    between = minus(place_of(shapes.translation, a), place_of(shapes.translation, b))
    extent = shapes.size[a, 1] * abs(lean[2]) + shapes.size[a, 0] * sqrt(lean[0] ** 2 + lean[1] ** 2)
    return dot(normal, between) - shapes.size[b, i] - extent, normal


@njit(cache=True)
def box_contacts(count: int, a: int, b: int, shapes: Shapes, out: Output) -> int:
    """Contacts of cylinder a with the faces and the edges of box b; corners of boxes are points of their own.

    A face counts unless it is behind the cylinder by more than DEEPER times the depth along the normal of the best face.
    """
    best = -inf
    for face in range(6):
        best = max(best, face_gap(face, a, b, shapes)[0])
    if best >= shapes.reach[a]:
        return count
    size, centre = shapes.size, place_of(shapes.translation, b)
    hair = HAIR * max(size[b, 0], size[b, 1], size[b, 2])
    for face in range(6):
        gap, normal = face_gap(face, a, b, shapes)
        if gap >= min(best, DEEPER * best) - hair:
            count = face_contacts(count, a, b, normal, moved(centre, size[b, face // 2], normal), face // 2, shapes, out)
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        for e in range(4):
            first, second = (1.0 if e >> 1 else -1.0), (1.0 if e & 1 else -1.0)
            x, y, z = axis_of(shapes.rotation, b, i), axis_of(shapes.rotation, b, j), axis_of(shapes.rotation, b, k)
            middle = moved(moved(centre, first * size[b, j], y), second * size[b, k], z)
            one, two = times(first, y), times(second, z)
            number = SEGMENT + 5 * (4 * i + e)
            count = segment_contacts(count, a, b, number, middle, x, size[b, i], 0.0, one, two, shapes, out)
    return count


# ------------------------------------------------------------------ segments: edges of boxes, axes of capsules


@njit(cache=True)
def on_segment(t: float, middle: Place, along: Vector, radius: float, half_length: float) -> Distance:
    """Signed distance and normal of a cylinder at the point t of a segment in its frame."""
    x, y, z = moved(middle, t, along)
    return cylinder_distance(x, y, z, radius, half_length)


@njit(cache=True)
def deepest_on_segment(middle: Place, along: Vector, length: float, radius: float, half_length: float) -> float:
    """Parameter of the point of a segment that is nearest to (or deepest in) a cylinder, all in its frame.

    The foot of the axis counts where the mantle is nearest there: no other point is nearer to the mantle. Else the golden
    section finds the point, as the distance is convex.
    """
    across = along[0] ** 2 + along[1] ** 2
    if across > ALONG**2:
        t = min(max(-(middle[0] * along[0] + middle[1] * along[1]) / across, -length), length)
        if on_segment(t, middle, along, radius, half_length)[3] == 0.0:
            return t
    low, high = -length, length
    left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    at_left = on_segment(left, middle, along, radius, half_length)[0]
    at_right = on_segment(right, middle, along, radius, half_length)[0]
    for _ in range(SECTIONS):
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - GOLDEN * (high - low)
            at_left = on_segment(left, middle, along, radius, half_length)[0]
        else:
            low, left, at_left = left, right, at_right
            right = low + GOLDEN * (high - low)
            at_right = on_segment(right, middle, along, radius, half_length)[0]
    return 0.5 * (low + high)


@njit(cache=True)
def across_rims(place: Place, along: Vector, radius: float, half_length: float) -> tuple[float, Vector, Place]:
    """Gap and normal of a line, or of another rim, over the rim of a cylinder, in its frame, and the point of the rim.

    Given are the point of the line that is nearest and the direction of the line there. The normal is perpendicular to both:
    that of the distance jumps from cap to mantle where the point enters the cylinder. The gap is inf where the two run along
    each other.
    """
    side = 1.0 if place[2] >= 0.0 else -1.0
    rho = sqrt(place[0] ** 2 + place[1] ** 2)
    if rho == 0.0:
        return inf, along, place
    ux, uy = place[0] / rho, place[1] / rho
    rim = (radius * ux, radius * uy, side * half_length)
    normal = cross((-uy, ux, 0.0), along)
    sine = sqrt(dot(normal, normal) / dot(along, along))
    if sine < PARALLEL:
        return inf, along, rim
    outward = normal[0] * ux + normal[1] * uy + side * normal[2]
    normal = times((1.0 if outward >= 0.0 else -1.0) / sqrt(dot(normal, normal)), normal)
    if normal[0] * ux + normal[1] * uy < 0.0 or side * normal[2] < 0.0:
        return inf, normal, rim
    return dot(normal, minus(place, rim)), normal, rim


@njit(cache=True)
def segment_contacts(
    count: int,
    a: int,
    b: int,
    number: int,
    middle: Place,
    along: Vector,
    length: float,
    thickness: float,
    one: Vector,
    two: Vector,
    shapes: Shapes,
    out: Output,
) -> int:
    """Contacts of a segment of b (world: middle, unit vector, half its length) with cylinder a, features ``number`` and on.

    They are the deepest point inside the segment; where it passes over a cap, the two points where it leaves the cap; and where
    it lies along the mantle, the two points where it leaves that. The last ones hold a segment that rests flat, and make the
    deepest point needless. Normals must lead into b: not along ``one`` or ``two``, the outward normals of the faces of an edge,
    by more than LEAN; where it cuts a rim see :func:`across_rims`. The
    arguments are many because they are all that is known of a segment.
    """
    radius, half = shapes.size[a, 0], shapes.size[a, 1]
    place = place_of(shapes.translation, a)
    m = own(shapes.rotation, a, minus(middle, place))
    u = own(shapes.rotation, a, along)
    reach = shapes.reach[a] + thickness
    hair = HAIR * max(radius, half)
    if on_segment(0.0, m, u, radius, half)[0] - length >= reach:
        return count
    t = deepest_on_segment(m, u, length, radius, half)
    deepest, nx, ny, nz = on_segment(t, m, u, radius, half)
    if deepest >= reach:
        return count
    floor = min(deepest, DEEPER * deepest) - hair
    across = u[0] ** 2 + u[1] ** 2
    needless = abs(t) > length - hair
    for end in range(1, 5):
        way = -1.0 if end % 2 == 1 else 1.0
        if end <= 2:  # leaves the cap
            foot = m[0] * u[0] + m[1] * u[1]
            square = foot * foot - across * (m[0] ** 2 + m[1] ** 2 - radius * radius)
            if abs(u[2]) > LEAN or square <= 0.0:
                continue
            at = (-foot + way * sqrt(square)) / across
            x, y, z = moved(m, at, u)
            side = 1.0 if z >= 0.0 else -1.0
            gap, normal, flat = side * z - half, (0.0, 0.0, side), abs(u[2]) < FLAT
        else:  # leaves the mantle
            if across > LEAN**2:
                continue
            at = (way * half - m[2]) / u[2]
            x, y, z = moved(m, at, u)
            rho = sqrt(x * x + y * y)
            if rho == 0.0:
                continue
            gap, normal, flat = rho - radius, (x / rho, y / rho, 0.0), across < FLAT**2
        if abs(at) > length - hair or gap < floor or gap >= reach or not (flat or abs(at - t) > SHALLOW * radius):
            continue
        normal = world(shapes.rotation, a, normal)
        if max(dot(normal, one), dot(normal, two)) > LEAN:
            continue
        needless |= flat and gap <= deepest + hair
        touch = moved(moved(middle, at, along), -gap, normal)
        count = put(count, shapes.rim[a], b, number + end, gap - thickness, times(-1.0, normal), touch, out)
    if needless:
        return count
    normal = (nx, ny, nz)
    if abs(dot(normal, u)) > FLAT or (nz != 0.0 and abs(nz) != 1.0):
        gap, sharp, _rim = across_rims(moved(m, t, u), u, radius, half)
        if abs(gap - deepest) <= hair + 0.5 * max(-deepest, 0.0):
            deepest, normal = gap, sharp
    normal = world(shapes.rotation, a, normal)
    if max(dot(normal, one), dot(normal, two)) > LEAN:
        return count
    touch = moved(moved(middle, t, along), -deepest, normal)
    return put(count, shapes.rim[a], b, number, deepest - thickness, times(-1.0, normal), touch, out)


# ------------------------------------------------------------------ rims on curved shapes


@njit(cache=True)
def on_circle(angle: float, centre: Place, x: Vector, y: Vector, b: int, shapes: Shapes) -> Distance:
    """Signed distance and normal of shape b at centre + cos(angle) x + sin(angle) y, all in the frame of b."""
    px, py, pz = moved(moved(centre, cos(angle), x), sin(angle), y)
    return shape_distance(
        b, px, py, pz, shapes.kind, shapes.size, shapes.grid_values, shapes.grid_index, shapes.grid_place
    )  # fmt: skip


@njit(cache=True)
def deepest_on_circle(low: float, high: float, centre: Place, x: Vector, y: Vector, b: int, shapes: Shapes) -> float:
    """Angle between two bounds at which a circle is nearest to shape b, by the golden section."""
    left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    at_left, at_right = on_circle(left, centre, x, y, b, shapes)[0], on_circle(right, centre, x, y, b, shapes)[0]
    for _ in range(SECTIONS):
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - GOLDEN * (high - low)
            at_left = on_circle(left, centre, x, y, b, shapes)[0]
        else:
            low, left, at_left = left, right, at_right
            right = low + GOLDEN * (high - low)
            at_right = on_circle(right, centre, x, y, b, shapes)[0]
    return 0.5 * (low + high)


@njit(cache=True)
def faced_distance(
    angle: float, centre: Place, x: Vector, y: Vector, out_of_cap: Vector, b: int, shapes: Shapes
) -> tuple[float, Vector]:
    """Signed distance and normal of shape b for a point of a rim as in :func:`on_circle`, given the outward normal of the cap.

    Where b is a cylinder the rim must face it: the normal leads along neither the radius nor ``out_of_cap`` by more than LEAN,
    or other points of the cylinder are nearer. If the nearest surface fails, a point up to SHALLOW of the radius inside takes
    the other one, so that cylinders of equal length lie side by side; without any the distance is infinite.
    """
    d, nx, ny, nz = on_circle(angle, centre, x, y, b, shapes)
    normal = (nx, ny, nz)
    if shapes.kind[b] != CYLINDER:
        return d, normal
    c, s = cos(angle), sin(angle)
    radial = (c * x[0] + s * y[0], c * x[1] + s * y[1], c * x[2] + s * y[2])
    lean = LEAN * sqrt(dot(radial, radial))
    if dot(normal, radial) <= lean and dot(normal, out_of_cap) <= LEAN:
        return d, normal
    radius, half = shapes.size[b, 0], shapes.size[b, 1]
    hair = HAIR * max(radius, half)
    px, py, pz = moved(centre, 1.0, radial)
    rho, side = sqrt(px * px + py * py), 1.0 if pz >= 0.0 else -1.0
    side_gap, cap_gap = rho - radius, side * pz - half
    if max(side_gap, cap_gap) > hair or rho == 0.0:
        return inf, normal
    normal = (px / rho, py / rho, 0.0)
    if side_gap >= -SHALLOW * radius and dot(normal, radial) <= lean and dot(normal, out_of_cap) <= LEAN:
        return side_gap, normal
    normal = (0.0, 0.0, side)
    if cap_gap >= -SHALLOW * radius and dot(normal, radial) <= lean and dot(normal, out_of_cap) <= LEAN:
        return cap_gap, normal
    return inf, normal


@njit(cache=True)
def sharp_distance(
    angle: float, centre: Place, x: Vector, y: Vector, out_of_cap: Vector, b: int, shapes: Shapes
) -> tuple[float, Vector]:
    """Return what :func:`faced_distance` does, but where a rim crosses that of another cylinder the normal across both.

    There the normal of the distance is not across the first one, or leads to a rim; this one must be faced as well.
    """
    d, nx, ny, nz = on_circle(angle, centre, x, y, b, shapes)
    radius = sqrt(dot(x, x))
    radial = moved(times(cos(angle), x), sin(angle), y)
    along = minus(times(cos(angle), y), times(sin(angle), x))
    slope = nx * along[0] + ny * along[1] + nz * along[2]
    if shapes.kind[b] == CYLINDER and (abs(slope) > FLAT * radius or (nz != 0.0 and abs(nz) != 1.0)):
        gap, normal, _rim = across_rims(moved(centre, 1.0, radial), along, shapes.size[b, 0], shapes.size[b, 1])
        if abs(gap - d) <= HAIR * radius + 0.5 * max(-d, 0.0):
            if dot(normal, radial) <= LEAN * radius and dot(normal, out_of_cap) <= LEAN:
                return gap, normal
    return faced_distance(angle, centre, x, y, out_of_cap, b, shapes)


@njit(cache=True)
def rim_contacts(count: int, a: int, b: int, distance: FloatArray, shapes: Shapes, out: Output) -> int:
    """Contacts of the rims of cylinder a with shape b by its signed distance; ``distance`` (RIM_POINTS,) is room to work in.

    Where the cap lies flat (NEARLY_FLAT) they are fixed points of the rim; elsewhere its local minima.
    """
    radius, half, turn = shapes.size[a, 0], shapes.size[a, 1], shapes.rotation
    x = times(radius, own(turn, b, axis_of(turn, a, 0)))
    y = times(radius, own(turn, b, axis_of(turn, a, 1)))
    axis = own(turn, b, axis_of(turn, a, 2))
    middle = own(turn, b, minus(place_of(shapes.translation, a), place_of(shapes.translation, b)))
    origin, reach, step = place_of(shapes.translation, b), shapes.reach[a], 2.0 * pi / RIM_POINTS
    for rim in range(2):
        out_of_cap = axis if rim == 1 else times(-1.0, axis)
        centre = moved(middle, half, out_of_cap)
        for i in range(RIM_POINTS):
            distance[i] = on_circle(step * i, centre, x, y, b, shapes)[0]
        for i in range(RIM_POINTS):
            point = shapes.rim[a] + rim * RIM_POINTS + i
            if distance[i] < reach:
                gap, normal = faced_distance(step * i, centre, x, y, out_of_cap, b, shapes)
                if gap < reach and abs(dot(normal, axis)) > sqrt(1.0 - NEARLY_FLAT**2):
                    where = moved(moved(centre, cos(step * i), x), sin(step * i), y)
                    where = moved(origin, 1.0, world(turn, b, where))
                    count = put(count, point, b, 0, gap, world(turn, b, normal), where, out)
            before, after = distance[i - 1], distance[(i + 1) % RIM_POINTS]
            dip = distance[i] <= before and distance[i] < after and max(before, after) - distance[i] > LEVEL * radius
            if not dip or distance[i] - step * radius >= reach:
                continue
            angle = deepest_on_circle(step * (i - 1), step * (i + 1), centre, x, y, b, shapes)
            where = moved(moved(centre, cos(angle), x), sin(angle), y)
            gap, normal = sharp_distance(angle, centre, x, y, out_of_cap, b, shapes)
            if gap < reach:
                where = moved(origin, 1.0, world(turn, b, where))
                count = put(count, point, b, DEEPEST, gap, world(turn, b, normal), where, out)
    return count


@njit(cache=True)
def mantle_contact(count: int, a: int, b: int, shapes: Shapes, out: Output) -> int:
    """Contact of the mantles of cylinders a and b, whose axes cross at points inside both."""
    along, other = axis_of(shapes.rotation, a, 2), axis_of(shapes.rotation, b, 2)
    between = minus(place_of(shapes.translation, a), place_of(shapes.translation, b))
    cosine = dot(along, other)
    normal = cross(along, other)
    square = dot(normal, normal)
    if square < ALONG**2:
        return count
    on_a, on_b = closest_on_lines(1.0, cosine, 1.0, dot(along, between), dot(other, between), square)
    if abs(on_a) >= shapes.size[a, 1] or abs(on_b) >= shapes.size[b, 1]:
        return count
    apart = minus(moved(between, on_a, along), times(on_b, other))
    length = sqrt(dot(apart, apart))
    gap = length - shapes.size[a, 0] - shapes.size[b, 0]
    if gap >= shapes.reach[a] or length == 0.0:
        return count
    normal = times(1.0 / length, apart)
    foot = moved(place_of(shapes.translation, a), on_a, along)
    return put(count, shapes.rim[a], b, CROSSING, gap, normal, moved(foot, -shapes.size[a, 0], normal), out)

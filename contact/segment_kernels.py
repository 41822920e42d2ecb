"""Compiled kernels of detection: segments (edges of boxes, axes of capsules) against cylinders and cones.

The signed distance of both is convex, so that a segment has one deepest point, or lies flat on a cap or along the mantle.
"""

from __future__ import annotations

from math import inf, sqrt

from contact.compiled import njit
from contact.detect_kernels import CONE, DEEPER, HAIR, LEAN, PARALLEL, Distance, cylinder_distance
from contact.frustum_kernels import cone_distance
from contact.placed_kernels import Output, Place, Shapes, moved, own, place_of, put, world
from contact.vector_kernels import Vector, cross, dot, minus, times

#: A cap whose normal is off that of a face by less than this sine lies flat on it: its points are fixed to the cylinder.
FLAT = 1e-6

#: Mantles whose axes have less than this sine between them do not cross: their rims are as close.
ALONG = 1e-4

#: A rim that does not face the nearer of side and cap of a cylinder takes the other, up to this fraction of the radius behind.
SHALLOW = 0.1

#: Steps of the golden section: 0.618 to this power is 1e-10.
SECTIONS = 48
GOLDEN = 0.6180339887498949


@njit(cache=True, inner=True)
def on_segment(t: float, middle: Place, along: Vector, radius: float, half_length: float) -> Distance:
    """Signed distance and normal of a cylinder at the point t of a segment in its frame."""
    x, y, z = moved(middle, t, along)
    return cylinder_distance(x, y, z, radius, half_length)


@njit(cache=True, inner=True)
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


@njit(cache=True, inner=True)
def across_rims(place: Place, along: Vector, radius: float, half_length: float, top: float) -> tuple[float, Vector, Place]:
    """Gap and normal of a line, or of another rim, over the rim of a cylinder or cone, in its frame, and the point of the rim.

    Given are the point of the line that is nearest and the direction of the line there. The normal is perpendicular to both:
    that of the distance jumps from cap to mantle where the point enters the cylinder. The gap is inf where the two run along
    each other, and over the tip of a cone.
    """
    side = 1.0 if place[2] >= 0.0 else -1.0
    slope = -side * 0.5 * (radius - top) / half_length
    radius = top if side > 0.0 else radius
    rho = sqrt(place[0] ** 2 + place[1] ** 2)
    if rho == 0.0 or radius == 0.0:
        return inf, along, place
    ux, uy = place[0] / rho, place[1] / rho
    rim = (radius * ux, radius * uy, side * half_length)
    normal = cross((-uy, ux, 0.0), along)
    sine = sqrt(dot(normal, normal) / dot(along, along))
    if sine < PARALLEL:
        return inf, along, rim
    outward = normal[0] * ux + normal[1] * uy + side * normal[2]
    normal = times((1.0 if outward >= 0.0 else -1.0) / sqrt(dot(normal, normal)), normal)
    if normal[0] * ux + normal[1] * uy < 0.0 or side * normal[2] + slope * (normal[0] * ux + normal[1] * uy) < 0.0:
        return inf, normal, rim
    return dot(normal, minus(place, rim)), normal, rim


@njit(cache=True, inner=True)
def sharpest(rise: float) -> float:
    """Most depth over distance from the faces of a cone: 1 / sin of half the angle at its base, given the sine of the mantle."""
    return sqrt(2.0 / (1.0 - rise))


@njit(cache=True, inner=True)
def between(distance: float, thickness: float) -> float:
    """How far a contact is from a segment at this distance from a cone, m: half-way to a round one, on the cone for an edge."""
    return 0.5 * (distance + thickness) if thickness > 0.0 else distance


@njit(cache=True, inner=True)
def segment_on_cone(
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
    """Contact of a segment of b with cone a, as :func:`segment_contacts`: its deepest point, if it is inside the segment."""
    radius, half, top = shapes.size[a, 0], shapes.size[a, 1], shapes.size[a, 2]
    m = own(shapes.rotation, a, minus(middle, place_of(shapes.translation, a)))
    u = own(shapes.rotation, a, along)
    reach = shapes.reach[a] + thickness
    x, y, z = m
    if cone_distance(x, y, z, radius, half, top)[0] - length >= reach:
        return count
    low, high = -length, length
    for _ in range(SECTIONS):
        left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
        x, y, z = moved(m, left, u)
        at_left = cone_distance(x, y, z, radius, half, top)[0]
        x, y, z = moved(m, right, u)
        if at_left <= cone_distance(x, y, z, radius, half, top)[0]:
            high = right
        else:
            low = left
    t = 0.5 * (low + high)
    x, y, z = moved(m, t, u)
    deepest, nx, ny, nz = cone_distance(x, y, z, radius, half, top)
    if deepest >= reach or abs(t) > length - HAIR * radius:
        return count
    slope = nx * u[0] + ny * u[1] + nz * u[2]
    normal = (nx - slope * u[0], ny - slope * u[1], nz - slope * u[2])
    if abs(slope) > FLAT:  # it cuts a rim, or the tip
        gap, sharp, _rim = across_rims((x, y, z), u, radius, half, top)
        narrowing = (radius - top) / sqrt((radius - top) ** 2 + 4.0 * half * half)
        if abs(gap - deepest) <= HAIR * radius + (sharpest(narrowing) - 0.9) * max(-deepest, 0.0):
            deepest, normal = gap, sharp
    square = dot(normal, normal)
    if square < PARALLEL**2:
        return count
    normal = world(shapes.rotation, a, times(1.0 / sqrt(square), normal))
    if max(dot(normal, one), dot(normal, two)) > LEAN:
        return count
    at_contact = moved(moved(middle, t, along), -between(deepest, thickness), normal)
    return put(count, shapes.rim[a], b, number, deepest - thickness, times(-1.0, normal), at_contact, out)


@njit(cache=True, inner=True)
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
    """Contacts of a segment of b (world: middle, unit vector, half its length) with cylinder or cone a, features from ``number``.

    They are the deepest point inside the segment; where it passes over a cap, the two points where it leaves the cap; and where
    it lies along the mantle, the two points where it leaves that. The last ones hold a segment that rests flat, and make the
    deepest point needless. Normals must lead into b: not along ``one`` or ``two``, the outward normals of the faces of an edge,
    by more than LEAN; where it cuts a rim see :func:`across_rims`. The
    arguments are many because they are all that is known of a segment.
    """
    if shapes.kind[a] == CONE:
        return segment_on_cone(count, a, b, number, middle, along, length, thickness, one, two, shapes, out)
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
        at_contact = moved(moved(middle, at, along), -between(gap, thickness), normal)
        count = put(count, shapes.rim[a], b, number + end, gap - thickness, times(-1.0, normal), at_contact, out)
    if needless:
        return count
    normal = (nx, ny, nz)
    if abs(dot(normal, u)) > FLAT or (nz != 0.0 and abs(nz) != 1.0):
        gap, sharp, _rim = across_rims(moved(m, t, u), u, radius, half, radius)
        if abs(gap - deepest) <= hair + 0.5 * max(-deepest, 0.0):
            deepest, normal = gap, sharp
    normal = world(shapes.rotation, a, normal)
    if max(dot(normal, one), dot(normal, two)) > LEAN:
        return count
    at_contact = moved(moved(middle, t, along), -between(deepest, thickness), normal)
    return put(count, shapes.rim[a], b, number, deepest - thickness, times(-1.0, normal), at_contact, out)

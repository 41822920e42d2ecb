"""Compiled kernels of detection: cylinders and cones as smooth surfaces, with contact at the lowest points of their rims.

Fixed points on a rim would make a cylinder a prism, which does not roll. Here the points move along the rims with the pose: on a
flat face the lowest point of each rim is known, on other shapes the signed distance is minimised along the rim. A cylinder
that stands needs more than its lowest point: RIM_POINTS of its rim, evenly, the first of them the lowest; within FLAT of
upright, where rounding decides which is lowest, they are points fixed to the cylinder. Edges of boxes and axes of capsules are
tested against the signed distance of the cylinder, which is convex, so that they have one deepest point.

A cone is a cylinder whose upper rim is smaller, or a point. On a face it lies on the lowest points of both. Its mantle is tested
against segments, the axes of cylinders and the mantles of other cones.
"""

from __future__ import annotations

from math import cos, inf, pi, sin, sqrt

import numpy as np
import numpy.typing as npt

from contact.compiled import njit
from contact.detect_kernels import BOX, CAPSULE, CONE, CYLINDER, DEEPER, HAIR, LEAN, MESH, PLANE, SPHERE, Distance, shape_distance
from contact.distance_kernels import closest_on_lines
from contact.frustum_kernels import cone_distance
from contact.placed_kernels import Output, Place, Shapes, axis_of, move_up, moved, near, own, place_of, put, world
from contact.segment_kernels import ALONG, FLAT, GOLDEN, SECTIONS, SHALLOW, across_rims, segment_contacts, sharpest
from contact.shapes import RIM_POINTS
from contact.vector_kernels import Vector, cross, dot, minus, times

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

#: Below this sine all RIM_POINTS of the lower rim are tested, above it those a quarter of the rim apart. Points close to the
#: lowest one would brake a cylinder that rolls fast: in a step they are taken to move straight on, into the face.
NEARLY_FLAT = 0.05

#: Along a rim a dip of the distance by less than this fraction of the radius is none.
LEVEL = 1e-9

#: Steps of the search for the direction of least overlap, and how much closer it looks where one gains nothing.
TURNS, CLOSER = 80, 0.7

#: Times that a point goes from one shape to the other and back, to learn whether they overlap, and how much
#: farther it goes than to their surfaces, of the size of one.
PROJECTIONS, INTO = 100, 2e-2

#: Features of contacts other than that of a point of a rim, 0: those of segments start at SEGMENT, each has room for five, those
#: of the same point with the six faces of a box at FACE.
SEGMENT, FACE, DEEPEST, CROSSING, OVERLAP = 1, 61, 101, 102, 103


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
                count = face_contacts(count, a, b, normal, place_of(shapes.translation, b), -1, 0, shapes, out)
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
            elif kind == CYLINDER or kind == CONE:
                both = shapes.rim[b] >= 0 and may_contact[shapes.body[b], shapes.body[a]]
                if a < b or not both:
                    count = cylinder_contacts(count, a, b, both, distance, shapes, out)
            else:
                count, _ = rim_contacts(count, a, b, distance, shapes, out)
    return count


# ------------------------------------------------------------------ rims on flat faces


@njit(cache=True, inner=True)
def rim_on_face(k: int, normal: Vector, radius: float, half_length: float, top: float) -> tuple[bool, float, float, float]:
    """Point k of the rims of a cylinder or cone against a face with this normal, both in its frame, and whether it is tested.

    Points 0 to RIM_POINTS - 1 are on the rim at z < 0, the others on that at z > 0. The first point of each is the lowest one,
    the others follow at equal angles; on the upper rim only the first is tested. Within FLAT they are the points of
    ``features()``, and the upper rim has none. A rim without radius, the tip of a cone, has one point.
    """
    nx, ny, nz = normal
    lower = (k < RIM_POINTS) == (nz >= 0.0)
    i = k % RIM_POINTS
    z = -half_length if k < RIM_POINTS else half_length
    radius = radius if k < RIM_POINTS else top
    sine = sqrt(nx * nx + ny * ny)
    c, s = cos(2.0 * pi * i / RIM_POINTS), sin(2.0 * pi * i / RIM_POINTS)
    if sine < FLAT:
        return lower and (radius > 0.0 or i == 0), radius * c, radius * s, z
    tested = i == 0 or (lower and radius > 0.0 and (sine < NEARLY_FLAT or i % (RIM_POINTS // 4) == 0))
    ux, uy = -nx / sine, -ny / sine
    return tested, radius * (c * ux - s * uy), radius * (s * ux + c * uy), z


@njit(cache=True, inner=True)
def face_contacts(
    count: int, a: int, b: int, normal: Vector, origin: Place, axis: int, feature: int, shapes: Shapes, out: Output
) -> int:
    """Contacts of the rims of cylinder a with a face through ``origin`` (world) of b, which are all named ``feature``.

    The face is unbounded for ``axis`` -1; else it is that of a box across this axis, and points beside it by more than HAIR of
    the largest half extent are no contacts.
    """
    lean = own(shapes.rotation, a, normal)
    place, centre = place_of(shapes.translation, a), place_of(shapes.translation, b)
    hair = HAIR * max(shapes.size[b, 0], shapes.size[b, 1], shapes.size[b, 2])
    for k in range(2 * RIM_POINTS):
        tested, x, y, z = rim_on_face(k, lean, shapes.size[a, 0], shapes.size[a, 1], shapes.size[a, 2])
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
        count = put(count, shapes.rim[a] + k, b, feature, gap, normal, point, out)
    return count


# ------------------------------------------------------------------ boxes


@njit(cache=True, inner=True)
def face_gap(face: int, a: int, b: int, shapes: Shapes) -> tuple[float, Vector]:
    """Gap between cylinder a and the plane of a face of box b, and the normal: face 2 i is at the lower end of axis i."""
    i, sign = face // 2, -1.0 if face % 2 == 0 else 1.0
    axis = axis_of(shapes.rotation, b, i)
    normal = times(sign, axis)
    lean = own(shapes.rotation, a, normal)
    between = minus(place_of(shapes.translation, a), place_of(shapes.translation, b))
    sine, rise = sqrt(lean[0] ** 2 + lean[1] ** 2), shapes.size[a, 1] * lean[2]
    extent = max(rise + shapes.size[a, 0] * sine, shapes.size[a, 2] * sine - rise)
    return dot(normal, between) - shapes.size[b, i] - extent, normal


@njit(cache=True, inner=True)
def box_contacts(count: int, a: int, b: int, shapes: Shapes, out: Output) -> int:
    """Contacts of cylinder a with the faces and the edges of box b; corners of boxes are points of their own.

    A face counts unless it is behind the cylinder by more than DEEPER times the depth along the normal of the best face.
    For cones see also :func:`within_overlap`.
    """
    before = count
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
            count = face_contacts(
                count, a, b, normal, moved(centre, size[b, face // 2], normal), face // 2, FACE + face, shapes, out
            )
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        for e in range(4):
            first, second = (1.0 if e >> 1 else -1.0), (1.0 if e & 1 else -1.0)
            x, y, z = axis_of(shapes.rotation, b, i), axis_of(shapes.rotation, b, j), axis_of(shapes.rotation, b, k)
            middle = moved(moved(centre, first * size[b, j], y), second * size[b, k], z)
            one, two = times(first, y), times(second, z)
            number = SEGMENT + 5 * (4 * i + e)
            count = segment_contacts(count, a, b, number, middle, x, size[b, i], 0.0, one, two, shapes, out)
    return within_overlap(before, count, a, b, shapes, out) if shapes.kind[a] == CONE else count


# ------------------------------------------------------------------ rims on curved shapes


@njit(cache=True, inner=True)
def on_circle(angle: float, centre: Place, x: Vector, y: Vector, b: int, shapes: Shapes) -> Distance:
    """Signed distance and normal of shape b at centre + cos(angle) x + sin(angle) y, all in the frame of b."""
    px, py, pz = moved(moved(centre, cos(angle), x), sin(angle), y)
    return shape_distance(
        b, px, py, pz, shapes.kind, shapes.size, shapes.grid_values, shapes.grid_index, shapes.grid_place, inf
    )  # fmt: skip


@njit(cache=True, inner=True)
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


@njit(cache=True, inner=True)
def faced(normal: Vector, radial: Vector, radius: float, out_of_cap: Vector, slope: float) -> bool:
    """Whether a normal leads to a rim: along neither the mantle's nor the cap's by more than LEAN.

    ``radial`` leads to the point of the rim, m; the mantle narrows by ``slope`` times the way from the cap.
    """
    along = dot(normal, radial)
    return along <= LEAN * radius and dot(normal, out_of_cap) + slope * along / radius <= LEAN


@njit(cache=True, inner=True)
def out_of_mantle(s: int, shapes: Shapes) -> tuple[float, float]:
    """Outward normal of the mantle of cylinder or cone s, in a plane through its axis: away from the axis, and along it."""
    narrowing, height = shapes.size[s, 0] - shapes.size[s, 2], 2.0 * shapes.size[s, 1]
    length = sqrt(narrowing * narrowing + height * height)
    return height / length, narrowing / length


@njit(cache=True, inner=True)
def faced_distance(
    angle: float, centre: Place, x: Vector, y: Vector, out_of_cap: Vector, slope: float, b: int, shapes: Shapes
) -> tuple[float, Vector]:
    """Signed distance and normal of shape b for a point of a rim as in :func:`on_circle`, given the outward normal of the cap.

    Where b is a cylinder or cone the rim must face it by :func:`faced`, or other points are nearer. If the nearest surface fails,
    a point up to SHALLOW of the radius inside takes the other one, so that cylinders of equal length lie side by side and equal
    ones on each other; without any the distance is infinite.
    """
    d, nx, ny, nz = on_circle(angle, centre, x, y, b, shapes)
    normal = (nx, ny, nz)
    if shapes.kind[b] != CYLINDER and shapes.kind[b] != CONE:
        return d, normal
    c, s = cos(angle), sin(angle)
    radial = (c * x[0] + s * y[0], c * x[1] + s * y[1], c * x[2] + s * y[2])
    own_radius = sqrt(dot(radial, radial))
    if faced(normal, radial, own_radius, out_of_cap, slope):
        return d, normal
    radius, half = shapes.size[b, 0], shapes.size[b, 1]
    hair = HAIR * max(radius, half)
    px, py, pz = moved(centre, 1.0, radial)
    rho, side = sqrt(px * px + py * py), 1.0 if pz >= 0.0 else -1.0
    across, rise = out_of_mantle(b, shapes)
    side_gap, cap_gap = (rho - radius) * across + (pz + half) * rise, side * pz - half
    if max(side_gap, cap_gap) > hair or rho == 0.0:
        return inf, normal
    normal = (across * px / rho, across * py / rho, rise)
    if side_gap >= -SHALLOW * radius and faced(normal, radial, own_radius, out_of_cap, slope):
        return side_gap, normal
    normal = (0.0, 0.0, side)
    if cap_gap >= -SHALLOW * radius and faced(normal, radial, own_radius, out_of_cap, slope):
        return cap_gap, normal
    return inf, normal


@njit(cache=True, inner=True)
def sharp_distance(
    angle: float, centre: Place, x: Vector, y: Vector, out_of_cap: Vector, slope: float, b: int, shapes: Shapes
) -> tuple[float, Vector]:
    """Return what :func:`faced_distance` does, but where a rim crosses that of another cylinder the normal across both.

    There the normal of the distance is not across the first one, or leads to a rim; this one must be faced as well.
    """
    d, nx, ny, nz = on_circle(angle, centre, x, y, b, shapes)
    radius = sqrt(dot(x, x))
    radial = moved(times(cos(angle), x), sin(angle), y)
    along = minus(times(cos(angle), y), times(sin(angle), x))
    turned = nx * along[0] + ny * along[1] + nz * along[2]
    rise = 0.0
    hair, deeper = 0.0, 0.5
    if shapes.kind[b] == CONE:
        rise = out_of_mantle(b, shapes)[1]
        hair, deeper = HAIR, sharpest(rise) - 0.9
    round_shape = shapes.kind[b] == CYLINDER or shapes.kind[b] == CONE
    if round_shape and (abs(turned) > FLAT * radius or (abs(nz - rise) > hair and abs(nz) != 1.0)):
        gap, normal, _rim = across_rims(
            moved(centre, 1.0, radial), along, shapes.size[b, 0], shapes.size[b, 1], shapes.size[b, 2]
        )
        if abs(gap - d) <= HAIR * radius + deeper * max(-d, 0.0):
            if faced(normal, radial, radius, out_of_cap, slope):
                return gap, normal
    return faced_distance(angle, centre, x, y, out_of_cap, slope, b, shapes)


@njit(cache=True, inner=True)
def rim_contacts(count: int, a: int, b: int, distance: FloatArray, shapes: Shapes, out: Output) -> tuple[int, float]:
    """Contacts of the rims of cylinder a with shape b by its signed distance; ``distance`` (RIM_POINTS,) is room to work in.

    Where the cap lies flat (NEARLY_FLAT) they are fixed points of the rim; elsewhere its local minima. Returned are the number of
    contacts and the least distance of a fixed point, m.
    """
    least = inf
    half, turn = shapes.size[a, 1], shapes.rotation
    across, aside = own(turn, b, axis_of(turn, a, 0)), own(turn, b, axis_of(turn, a, 1))
    axis = own(turn, b, axis_of(turn, a, 2))
    middle = own(turn, b, minus(place_of(shapes.translation, a), place_of(shapes.translation, b)))
    origin, reach, step = place_of(shapes.translation, b), shapes.reach[a], 2.0 * pi / RIM_POINTS
    for rim in range(2):
        radius = shapes.size[a, 0] if rim == 0 else shapes.size[a, 2]
        x, y = times(radius, across), times(radius, aside)
        narrowing = 0.5 * (shapes.size[a, 0] - shapes.size[a, 2]) / half
        slope = narrowing if rim == 0 else -narrowing
        out_of_cap = axis if rim == 1 else times(-1.0, axis)
        centre = moved(middle, half, out_of_cap)
        if radius == 0.0:
            gap, nx, ny, nz = on_circle(0.0, centre, x, y, b, shapes)
            least = min(least, gap)
            if gap < reach:
                where = moved(origin, 1.0, world(turn, b, centre))
                count = put(count, shapes.rim[a] + RIM_POINTS, b, 0, gap, world(turn, b, (nx, ny, nz)), where, out)
            continue
        for i in range(RIM_POINTS):
            distance[i] = on_circle(step * i, centre, x, y, b, shapes)[0]
            least = min(least, distance[i])
        dips = 0
        for i in range(RIM_POINTS):
            point = shapes.rim[a] + rim * RIM_POINTS + i
            if distance[i] < reach:
                gap, normal = faced_distance(step * i, centre, x, y, out_of_cap, slope, b, shapes)
                if gap < reach and abs(dot(normal, axis)) > sqrt(1.0 - NEARLY_FLAT**2):
                    where = moved(moved(centre, cos(step * i), x), sin(step * i), y)
                    where = moved(origin, 1.0, world(turn, b, where))
                    count = put(count, point, b, 0, gap, world(turn, b, normal), where, out)
            before, after = distance[i - 1], distance[(i + 1) % RIM_POINTS]
            dip = distance[i] <= before and distance[i] < after and max(before, after) - distance[i] > LEVEL * radius
            if not dip or distance[i] - step * radius >= reach:
                continue
            # the dips of a rim keep their names while it rolls, so that they are followed
            if shapes.kind[a] == CONE or shapes.kind[b] == MESH:
                point, dips = shapes.rim[a] + rim * RIM_POINTS + dips, dips + 1
            angle = deepest_on_circle(step * (i - 1), step * (i + 1), centre, x, y, b, shapes)
            where = moved(moved(centre, cos(angle), x), sin(angle), y)
            gap, normal = sharp_distance(angle, centre, x, y, out_of_cap, slope, b, shapes)
            if gap < reach:
                where = moved(origin, 1.0, world(turn, b, where))
                count = put(count, point, b, DEEPEST, gap, world(turn, b, normal), where, out)
    return count, least


@njit(cache=True, inner=True)
def cylinder_contacts(count: int, a: int, b: int, both: bool, distance: FloatArray, shapes: Shapes, out: Output) -> int:
    """Contacts of cylinders, or cones, a and b, with the rims of both where ``both``.

    Where a rim is inside the other cylinder but no contact faces it, as after a step in which they shot into each other, there is
    one in the direction of least overlap; where one is a cone see :func:`within_overlap`. Most pairs are apart along an axis or
    the line between the centres.
    """
    between = minus(place_of(shapes.translation, a), place_of(shapes.translation, b))
    length = sqrt(dot(between, between))
    ways = (axis_of(shapes.rotation, a, 2), axis_of(shapes.rotation, b, 2), times(1.0 / max(length, 1e-300), between))
    for way in ways:
        if apart_along(way, a, b, shapes) >= shapes.reach[a]:
            return count
    before = count
    count, least = rim_contacts(count, a, b, distance, shapes, out)
    if both:
        count, other = rim_contacts(count, b, a, distance, shapes, out)
        least = min(least, other)
    if shapes.kind[a] != shapes.kind[b]:
        if shapes.kind[a] == CONE:
            count = axis_on_cone(count, a, b, shapes, out)
        elif both:
            count = axis_on_cone(count, b, a, shapes, out)
        return within_overlap(before, count, a, b, shapes, out)
    if shapes.kind[a] == CONE:
        return within_overlap(before, mantles_of_cones(count, a, b, shapes, out), a, b, shapes, out)
    count = mantle_contact(count, a, b, shapes, out)
    if count > before or least >= 0.0:
        return count
    gap, normal, place = least_overlap(a, b, axis_of(shapes.rotation, a, 2), shapes)
    return put(count, shapes.rim[a], b, OVERLAP, gap, normal, place, out) if gap < 0.0 else count


@njit(cache=True, inner=True)
def axis_on_cone(count: int, a: int, b: int, shapes: Shapes, out: Output) -> int:
    """Contact of the mantle of cylinder b, by its axis, with cone a."""
    along, none = axis_of(shapes.rotation, b, 2), (0.0, 0.0, 0.0)
    return segment_contacts(
        count,
        a,
        b,
        CROSSING,
        place_of(shapes.translation, b),
        along,
        shapes.size[b, 1],
        shapes.size[b, 0],
        none,
        none,
        shapes,
        out,
    )


@njit(cache=True, inner=True)
def extent(direction: Vector, s: int, shapes: Shapes) -> Vector:
    """Point of cylinder, cone or box s that lies farthest along a direction, from its middle, m."""
    axis = axis_of(shapes.rotation, s, 2)
    if shapes.kind[s] == BOX:
        end = (0.0, 0.0, 0.0)
        for i in range(3):
            axis = axis_of(shapes.rotation, s, i)
            end = moved(end, shapes.size[s, i] if dot(direction, axis) >= 0.0 else -shapes.size[s, i], axis)
        return end
    cosine = dot(direction, axis)
    across = minus(direction, times(cosine, axis))
    length = sqrt(dot(across, across))
    base, half, top = shapes.size[s, 0], shapes.size[s, 1], shapes.size[s, 2]
    ahead = 2.0 * half * cosine - (base - top) * length  # of the upper rim before the lower one
    end = times(half if ahead > 0.0 else -half if ahead < 0.0 else 0.0, axis)
    radius = top if ahead > 0.0 else base if ahead < 0.0 else 0.5 * (base + top)
    return moved(end, radius / length, across) if length > HAIR else end


@njit(cache=True, inner=True)
def gap_along(way: Vector, a: int, b: int, shapes: Shapes) -> float:
    """Gap of cylinders, cones or boxes a and b along a direction from b to a, m."""
    between = minus(place_of(shapes.translation, a), place_of(shapes.translation, b))
    return dot(way, minus(moved(between, 1.0, extent(times(-1.0, way), a, shapes)), extent(way, b, shapes)))


@njit(cache=True, inner=True)
def climb(normal: Vector, a: int, b: int, shapes: Shapes) -> tuple[float, Vector]:
    """Largest gap of such a and b along directions from b to a uphill of this one, m, and its direction.

    The gap has ridges: six ways around are tried, turned from one time to the next, and closer where none gains. It ends where
    they are apart.
    """
    gap, turn = gap_along(normal, a, b, shapes), 0.5
    for trial in range(TURNS):
        if gap >= 0.0:
            break
        x = (0.0, normal[2], -normal[1]) if abs(normal[0]) < 0.6 else (normal[2], 0.0, -normal[0])
        x = times(1.0 / sqrt(dot(x, x)), x)
        y = cross(normal, x)
        best, found = gap, normal
        for k in range(6):
            angle = pi / 3.0 * (k + GOLDEN * trial)
            way = moved(moved(normal, turn * cos(angle), x), turn * sin(angle), y)
            way = times(1.0 / sqrt(dot(way, way)), way)
            apart = gap_along(way, a, b, shapes)
            if apart > best:
                best, found = apart, way
        if best > gap:
            gap, normal = best, found
        else:
            turn *= CLOSER
    return gap, normal


@njit(cache=True, inner=True)
def least_overlap(a: int, b: int, first: Vector, shapes: Shapes) -> tuple[float, Vector, Place]:
    """Gap of such a and b along the direction in which it is largest, that direction, and a place between them.

    It leads from b to a, and is searched for from ``first`` and from the line between the centres. Where one is found along which
    they are apart it may be any.
    """
    centre = place_of(shapes.translation, b)
    between = minus(place_of(shapes.translation, a), centre)
    length = sqrt(dot(between, between))
    gap, normal = climb(first, a, b, shapes)
    if gap < 0.0 and length > 0.0:
        other, way = climb(times(1.0 / length, between), a, b, shapes)
        if other > gap:
            gap, normal = other, way
    on_a, on_b = extent(times(-1.0, normal), a, shapes), extent(normal, b, shapes)
    middle = times(0.5, moved(moved(between, 1.0, on_a), 1.0, on_b))
    return gap, normal, moved(centre, 1.0, middle)


@njit(cache=True, inner=True)
def beside(point: Place, s: int, shapes: Shapes) -> tuple[float, Vector]:
    """Distance of a point from shape s, m, and the outward normal there."""
    x, y, z = own(shapes.rotation, s, minus(point, place_of(shapes.translation, s)))
    d, nx, ny, nz = shape_distance(
        s, x, y, z, shapes.kind, shapes.size, shapes.grid_values, shapes.grid_index, shapes.grid_place, inf
    )
    return d, world(shapes.rotation, s, (nx, ny, nz))


@njit(cache=True, inner=True)
def common(a: int, b: int, shapes: Shapes) -> int:
    """Whether cylinders, cones or boxes a and b are known to have a point in common, 1, or to be apart, -1; else 0.

    A point goes to the closest one of a, to that of b, and so on, to where they are nearest; every other time a little
    farther (INTO, or a tenth of it), and so into both.
    """
    point, farther = place_of(shapes.translation, b), INTO * max(shapes.size[a, 0], shapes.size[a, 1])
    for k in range(PROJECTIONS):
        more = 0.0 if k % 2 == 0 else farther if k % 4 == 1 else 0.1 * farther
        d, normal = beside(point, a, shapes)
        if d <= 0.0:
            return 1
        point = moved(point, -d - more, normal)
        d, normal = beside(point, b, shapes)
        if d <= 0.0:
            return 1
        if gap_along(normal, a, b, shapes) >= 0.0:
            return -1
        point = moved(point, -d - more, normal)
    return 0


@njit(cache=True, inner=True)
def apart_along(direction: Vector, a: int, b: int, shapes: Shapes) -> float:
    """Gap between the extents of cylinders or cones a and b along a line with this direction, m."""
    reach = dot(direction, minus(place_of(shapes.translation, a), place_of(shapes.translation, b)))
    way = direction if reach >= 0.0 else times(-1.0, direction)
    back = times(-1.0, way)
    return abs(reach) - dot(back, extent(back, a, shapes)) - dot(way, extent(way, b, shapes))


@njit(cache=True, inner=True)
def mantle_contact(count: int, a: int, b: int, shapes: Shapes, out: Output) -> int:
    """Contact of the mantles of cylinders a and b, whose axes cross at points inside both.

    It must be no deeper than DEEPER times the depth across a cap: where a cap presses on a mantle the axes may cross too.
    """
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
    caps = max(apart_along(along, a, b, shapes), apart_along(other, a, b, shapes))
    if gap >= shapes.reach[a] or length == 0.0 or gap < DEEPER * caps:
        return count
    normal = times(1.0 / length, apart)
    foot = moved(place_of(shapes.translation, a), on_a, along)
    return put(count, shapes.rim[a], b, CROSSING, gap, normal, moved(foot, -shapes.size[a, 0] - 0.5 * gap, normal), out)


@njit(cache=True, inner=True)
def slant(normal: Vector, s: int, shapes: Shapes) -> tuple[Place, Vector, float]:
    """Line of the mantle of cone s with this outward normal: its middle from that of the axis, unit vector, and half length."""
    axis = axis_of(shapes.rotation, s, 2)
    across = minus(normal, times(dot(normal, axis), axis))
    across = times(1.0 / sqrt(dot(across, across)), across)
    base, half, top = shapes.size[s, 0], shapes.size[s, 1], shapes.size[s, 2]
    along = minus(times(half, axis), times(0.5 * (base - top), across))
    length = sqrt(dot(along, along))
    return times(0.5 * (base + top), across), times(1.0 / length, along), length


@njit(cache=True, inner=True)
def mantles_apart(a: int, b: int, shapes: Shapes) -> tuple[float, Vector]:
    """Gap of cones a and b along the normal of their mantles from b to a, m, and that normal; -inf where there is none.

    It has a known cosine with either axis, so that there are two: n = x a + y b +- z (a x b), with the axes a and b.
    """
    along, other = axis_of(shapes.rotation, a, 2), axis_of(shapes.rotation, b, 2)
    cosine, sideways = dot(along, other), cross(along, other)
    square = dot(sideways, sideways)
    if square < ALONG**2:
        return -inf, along
    on_a, on_b = -out_of_mantle(a, shapes)[1], out_of_mantle(b, shapes)[1]
    x, y = (on_a - cosine * on_b) / square, (on_b - cosine * on_a) / square
    left = (1.0 - x * on_a - y * on_b) / square
    if left <= 0.0:
        return -inf, along
    z = sqrt(left)
    best, normal = -inf, along
    for k in range(2):
        way = moved(moved(times(x, along), y, other), z if k == 0 else -z, sideways)
        gap = gap_along(way, a, b, shapes)
        if gap > best:
            best, normal = gap, way
    return best, normal


@njit(cache=True, inner=True)
def mantles_of_cones(count: int, a: int, b: int, shapes: Shapes, out: Output) -> int:
    """Contact of the mantles of cones a and b, where lines of both with opposite normals cross at points inside both.

    Lines at the far sides cross too, see :func:`within_overlap`.
    """
    best, normal = mantles_apart(a, b, shapes)
    if best == -inf or best >= shapes.reach[a]:
        return count
    from_a, line_a, half_a = slant(times(-1.0, normal), a, shapes)
    from_b, line_b, half_b = slant(normal, b, shapes)
    between = minus(place_of(shapes.translation, a), place_of(shapes.translation, b))
    apart = minus(moved(between, 1.0, from_a), from_b)
    cosine = dot(line_a, line_b)
    square = 1.0 - cosine * cosine
    if square < ALONG**2:
        return count
    at_a, at_b = closest_on_lines(1.0, cosine, 1.0, dot(line_a, apart), dot(line_b, apart), square)
    if abs(at_a) >= half_a or abs(at_b) >= half_b:
        return count
    foot = moved(moved(place_of(shapes.translation, a), 1.0, from_a), at_a, line_a)
    return put(count, shapes.rim[a], b, CROSSING, best, normal, moved(foot, -0.5 * best, normal), out)


@njit(cache=True, inner=True)
def corner_on_cone(a: int, b: int, shapes: Shapes) -> tuple[float, Vector]:
    """Least distance of a corner of box b from cone a, m, and the normal there, into the cone."""
    least, normal, size = inf, (0.0, 0.0, 1.0), shapes.size
    for k in range(8):
        corner = (size[b, 0] * (1 - 2 * (k & 1)), size[b, 1] * (1 - (k & 2)), size[b, 2] * (1 - (k >> 2) * 2))
        place = moved(place_of(shapes.translation, b), 1.0, world(shapes.rotation, b, corner))
        x, y, z = own(shapes.rotation, a, minus(place, place_of(shapes.translation, a)))
        d, nx, ny, nz = cone_distance(x, y, z, size[a, 0], size[a, 1], size[a, 2])
        if d < least:
            least, normal = d, (-nx, -ny, -nz)
    return least, world(shapes.rotation, a, normal)


@njit(cache=True, inner=True)
def within_overlap(before: int, count: int, a: int, b: int, shapes: Shapes, out: Output) -> int:
    """Leave out contacts from ``before`` on that are deeper than DEEPER times the overlap of a and b, one of them a cone.

    Sharp rims at each other, mantles at their far sides and an axis beside a cap give such contacts, also of bodies that are
    apart. Where they overlap and none, nor a corner of a box, is as deep as 1 / DEEPER of it, there is one in the direction of
    least overlap. Returned is the number of contacts.
    """
    if count > out.gap.shape[0]:
        return count
    deepest, hair, least, first = inf, HAIR * max(shapes.size[a, 0], shapes.size[a, 1]), -inf, axis_of(shapes.rotation, a, 2)
    for k in range(before, count):
        deepest = min(deepest, out.gap[k])
        sign = 1.0 if out.shape[k] == b else -1.0
        way = (sign * out.frame[k, 0, 0], sign * out.frame[k, 0, 1], sign * out.frame[k, 0, 2])
        apart = gap_along(way, a, b, shapes)
        if apart > least:
            least, first = apart, way
    if -hair <= deepest < 0.0 or (deepest >= 0.0 and least >= 0.0):
        return count
    known = -1 if least >= 0.0 else common(a, b, shapes)
    if deepest >= 0.0 and known < 1:
        return count
    gap, normal, place, corner = 0.0, first, place_of(shapes.translation, a), inf
    if known >= 0:
        if shapes.kind[b] == BOX:
            corner, way = corner_on_cone(a, b, shapes)
            for face in range(-1, 6):
                if face >= 0:
                    way = times(-1.0 if face % 2 == 0 else 1.0, axis_of(shapes.rotation, b, face // 2))
                apart = gap_along(way, a, b, shapes)
                if apart > least:
                    least, first = apart, way
        gap, normal, place = least_overlap(a, b, first, shapes)
    kept, seen = before, DEEPER * corner < gap
    for k in range(before, count):
        if out.gap[k] < min(DEEPER * gap, 0.0) - hair:
            continue
        seen |= DEEPER * out.gap[k] < gap
        kept = move_up(kept, k, out)
    return put(kept, shapes.rim[a], b, OVERLAP, gap, normal, place, out) if gap < 0.0 and not seen else kept

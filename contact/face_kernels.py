"""Compiled kernels of detection: triangles of one shape against the distance of another, one contact each where it is least.

Points against surfaces miss edges that cross: the rim of a bowl on the rim of a pot. The least distance over a triangle is
found by moves from one corner towards another, as in the method of Frank and Wolfe with pairwise steps, from its best corner on
(papers/000, bolt and nut, which takes plain steps: these creep where an edge lies across the triangle).
"""

from __future__ import annotations

from math import cos, inf, sin
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from contact.compiled import njit
from contact.crease_kernels import close
from contact.detect_kernels import shape_distance
from contact.placed_kernels import Output, Place, Shapes, moved, own, place_of, put, world
from contact.vector_kernels import Vector, dot, minus, plus

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

#: Most moves over a triangle, and places that each tries. Two move along sides, a third along their sum.
MOVES, PLACES = 18, 40

#: A move ends where the slope is this part of the size of the triangle, or the bracket this part of the way.
FLAT, SHORT = 1e-7, 1e-6

#: The least distance is found where no corner lies closer along the normal by more than this part of the way to it.
LEVEL = 1e-3

#: A corner has at least 1 - SHARE of the weights where the least distance is there, and at most SHARE where it is on a side.
SHARE = 1e-3


class Faces(NamedTuple):
    """Triangles of s shapes, m.

    Attributes
    ----------
    start : ndarray, (s + 1,)
        First triangle of each shape.
    turned : ndarray, (s,), bool
        Whether corners are radius, angle and height of a surface that is turned about z; else x, y and z.
    corners : ndarray, (t, 3, 3), m and rad
        In the frame of the shape.
    owns : ndarray, (t, 3), bool
        Whether the contacts on the side opposite to each corner are those of this triangle, not of its neighbour.
    centre, ball : ndarray, (t, 3) and (t,), m
        A ball about each triangle.
    thickness : ndarray, (s,), m
        Half the thickness of what the triangles are in the middle of.
    first : ndarray, (s,)
        First point of each shape, -1 for none.
    reach : ndarray, (s,), m
        Margin of its contacts.
    faced : ndarray, (s, s), bool
        Whether triangles of the first are tested against the second.
    feature : int
        Feature of the contacts of the first triangle.
    """

    start: IntArray
    turned: BoolArray
    corners: FloatArray
    owns: BoolArray
    centre: FloatArray
    ball: FloatArray
    thickness: FloatArray
    first: IntArray
    reach: FloatArray
    faced: BoolArray
    feature: int


@njit(cache=True)
def contacts_of_faces(count: int, faces: Faces, shapes: Shapes, out: Output) -> int:
    """Update ``out`` from ``count`` on with the contacts inside triangles and on their sides; return how many there are.

    Those at corners are left to the points of the shape. Each is written for the first point of its shape, ``faces.first``, with
    the number of its triangle as feature. The number may exceed the room; contacts beyond it are counted, not written.
    """
    n_shapes = shapes.kind.shape[0]
    weight = np.empty(3)
    for a in range(n_shapes):
        for b in range(n_shapes):
            if not faces.faced[a, b] or not close(a, b, faces.reach[a], shapes):
                continue
            between = minus(place_of(shapes.translation, a), place_of(shapes.translation, b))
            beyond = faces.thickness[a] + faces.reach[a]
            for t in range(faces.start[a], faces.start[a + 1]):
                centre = (faces.centre[t, 0], faces.centre[t, 1], faces.centre[t, 2])
                x, y, z = own(shapes.rotation, b, plus(between, world(shapes.rotation, a, centre)))
                far = max(
                    abs(x - shapes.box_centre[b, 0]) - shapes.box_half[b, 0],
                    abs(y - shapes.box_centre[b, 1]) - shapes.box_half[b, 1],
                    abs(z - shapes.box_centre[b, 2]) - shapes.box_half[b, 2],
                )
                if far > faces.ball[t] + beyond:
                    continue
                if distance_at(b, x, y, z, shapes)[0] > faces.ball[t] + beyond:
                    continue
                if not least(t, a, b, between, weight, faces, shapes):
                    continue
                place, _, _ = on_face(t, weight, faces.turned[a], faces)
                at = plus(between, world(shapes.rotation, a, place))
                x, y, z = own(shapes.rotation, b, at)
                gap, nx, ny, nz = distance_at(b, x, y, z, shapes)
                gap -= faces.thickness[a]
                if gap < faces.reach[a]:
                    normal = world(shapes.rotation, b, (nx, ny, nz))
                    at_contact = plus(place_of(shapes.translation, b), moved(at, -faces.thickness[a], normal))
                    feature = faces.feature + t - faces.start[a]
                    count = put(count, faces.first[a], b, feature, gap, normal, at_contact, out)
    return count


@njit(cache=True, inner=True)
def distance_at(b: int, x: float, y: float, z: float, shapes: Shapes) -> tuple[float, float, float, float]:
    """Signed distance and normal of shape b at a place in its frame."""
    return shape_distance(
        b, x, y, z, shapes.kind, shapes.size, shapes.grid_values, shapes.grid_index, shapes.grid_place, inf
    )  # fmt: skip


@njit(cache=True, inner=True)
def on_face(t: int, weight: FloatArray, turned: bool, faces: Faces) -> tuple[Place, Vector, Vector]:
    """Place in the frame of the shape at weights (3,) of the corners, and how it moves with the first two coordinates."""
    p, q, r = 0.0, 0.0, 0.0
    for k in range(3):
        p += weight[k] * faces.corners[t, k, 0]
        q += weight[k] * faces.corners[t, k, 1]
        r += weight[k] * faces.corners[t, k, 2]
    if turned:
        c, s = cos(q), sin(q)
        return (p * c, p * s, r), (c, s, 0.0), (-p * s, p * c, 0.0)
    return (p, q, r), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0)


@njit(cache=True, inner=True)
def slope(t: int, a: int, b: int, between: Vector, weight: FloatArray, faces: Faces, shapes: Shapes) -> tuple[float, Vector]:
    """Signed distance of b at weights (3,) of the corners, and its derivatives by the coordinates of the corners."""
    place, by_first, by_second = on_face(t, weight, faces.turned[a], faces)
    x, y, z = own(shapes.rotation, b, plus(between, world(shapes.rotation, a, place)))
    d, nx, ny, nz = distance_at(b, x, y, z, shapes)
    normal = own(shapes.rotation, a, world(shapes.rotation, b, (nx, ny, nz)))
    return d, (dot(normal, by_first), dot(normal, by_second), normal[2])


@njit(cache=True, inner=True)
def along(gradient: Vector, faces: Faces, t: int, k: int) -> float:
    """Value of a linear function of the coordinates at corner k."""
    return gradient[0] * faces.corners[t, k, 0] + gradient[1] * faces.corners[t, k, 1] + gradient[2] * faces.corners[t, k, 2]


@njit(cache=True, inner=True)
def least(t: int, a: int, b: int, between: Vector, weight: FloatArray, faces: Faces, shapes: Shapes) -> bool:
    """Fill the weights (3,) with where triangle t of a has the least distance from b, and whether that is a contact of its own.

    It is none at a corner, nor on a side that another triangle owns.
    """
    best, lowest = 0, np.inf
    for k in range(3):
        weight[0], weight[1], weight[2] = 0.0, 0.0, 0.0
        weight[k] = 1.0
        d = slope(t, a, b, between, weight, faces, shapes)[0]
        if d < lowest:
            best, lowest = k, d
    weight[0], weight[1], weight[2] = 0.0, 0.0, 0.0
    weight[best] = 1.0
    b0, b1, b2 = weight[0], weight[1], weight[2]
    for move in range(MOVES):
        if move % 3 == 2:  # on along what the last two moves made together
            way = (weight[0] - b0, weight[1] - b1, weight[2] - b2)
            gradient = slope(t, a, b, between, weight, faces, shapes)[1]
        else:
            if move % 3 == 0:
                b0, b1, b2 = weight[0], weight[1], weight[2]
            gradient = slope(t, a, b, between, weight, faces, shapes)[1]
            values = (along(gradient, faces, t, 0), along(gradient, faces, t, 1), along(gradient, faces, t, 2))
            target = 0 if values[0] <= min(values[1], values[2]) else (1 if values[1] <= values[2] else 2)
            away = target
            for k in range(3):
                if weight[k] > 0.0 and values[k] > values[away]:
                    away = k
            if not values[away] - values[target] > LEVEL * faces.ball[t]:
                break
            w0 = (1.0 if target == 0 else 0.0) - (1.0 if away == 0 else 0.0)
            w1 = (1.0 if target == 1 else 0.0) - (1.0 if away == 1 else 0.0)
            w2 = (1.0 if target == 2 else 0.0) - (1.0 if away == 2 else 0.0)
            way = (w0, w1, w2)
        descend(t, a, b, between, way, rise_along(way, gradient, faces, t), weight, faces, shapes)
    for k in range(3):
        if weight[k] > 1.0 - SHARE or (weight[k] < SHARE and not faces.owns[t, k]):
            return False
    return True


@njit(cache=True, inner=True)
def rise_along(way: Vector, gradient: Vector, faces: Faces, t: int) -> float:
    """Slope of the distance along a way of the weights, given its derivatives by the coordinates of the corners."""
    return way[0] * along(gradient, faces, t, 0) + way[1] * along(gradient, faces, t, 1) + way[2] * along(gradient, faces, t, 2)


@njit(cache=True, inner=True)
def descend(
    t: int, a: int, b: int, between: Vector, way: Vector, rise: float, weight: FloatArray, faces: Faces, shapes: Shapes
) -> None:
    """Move the weights (3,) along a way, as far as they stay positive, to where the distance no longer falls.

    ``rise`` is its slope where they are. The end is bracketed: secants of the slope, by the rule of Illinois, find it in a few
    places where it is smooth; where one does not halve the bracket, as at an edge, the middle follows.
    """
    start = (weight[0], weight[1], weight[2])
    most = np.inf
    for k in range(3):
        if way[k] < 0.0:
            most = min(most, -start[k] / way[k])
    if not (rise < 0.0 and 0.0 < most < np.inf):
        return
    low, falls, high, rises = 0.0, rise, most, 0.0
    part, last, middle = most, 0, False
    for place in range(PLACES):
        for k in range(3):
            weight[k] = max(start[k] + part * way[k], 0.0)
        now = rise_along(way, slope(t, a, b, between, weight, faces, shapes)[1], faces, t)
        before = high - low
        if now > 0.0:
            if last > 0:
                falls *= 0.5
            high, rises, last = part, now, 1
        else:
            if last < 0:
                rises *= 0.5
            low, falls, last = part, now, -1
        if low == most or abs(now) <= FLAT * faces.ball[t] or high - low <= SHORT * most:
            break
        middle = place > 0 and not middle and high - low > 0.5 * before
        part = 0.5 * (low + high) if middle else (low * rises - high * falls) / (rises - falls)

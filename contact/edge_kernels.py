"""Compiled kernels of detection: edges of boxes that cross edges of other boxes.

Tests of corners against boxes (:mod:`contact.detect_kernels`) miss two boxes whose corners all lie beside each other, e.g. a bar
across another one, or two equal squares of which one is turned. The closest points then lie inside an edge of each.
"""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from contact.compiled import njit
from contact.detect_kernels import BOX, DEEPER, HAIR, LEAN, PARALLEL, box_separation, face_separation, separation, write_frame
from contact.distance_kernels import closest_on_lines
from contact.placed_kernels import Output, axis_of, moved, place_of
from contact.vector_kernels import Vector, cross, dot, minus, norm, plus, times, write_row

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

#: Pairs of edges of two boxes; the number of a pair is 12 times that of the first edge, plus that of the second.
EDGE_PAIRS = 144

#: The gap of a crossing may be less than that of the boxes along a normal of a face by this fraction of it.
SLACK = 1e-2


class Boxes(NamedTuple):
    """Shapes (s of them) of which some are boxes.

    Attributes
    ----------
    size : ndarray, (s, 3), m
        Half extents of the boxes.
    rotation, translation : ndarray, (s, 3, 3) and (s, 3), m
        World poses.
    """

    size: FloatArray
    rotation: FloatArray
    translation: FloatArray


class Pair(NamedTuple):
    """Two boxes whose edges may cross.

    Attributes
    ----------
    a, b : int
        Numbers of the shapes; the contacts are those of the corners of a, with b as their shape.
    corner : int
        The first corner of a among all points.
    between : tuple of 3 float, m
        From the origin of b to that of a.
    hair : float, m
        Points of an edge this close to its end are not inside it.
    least, reach : float, m
        The gaps of contacts are from ``least`` to below ``reach``.
    """

    a: int
    b: int
    corner: int
    between: Vector
    hair: float
    least: float
    reach: float


@njit(cache=True)
def crossing_edges(
    count: int,
    shape_corner: IntArray,
    shape_body: IntArray,
    may_contact: BoolArray,
    kind: IntArray,
    size: FloatArray,
    rotation: FloatArray,
    translation: FloatArray,
    margin: FloatArray,
    out_point: IntArray,
    out_shape: IntArray,
    out_gap: FloatArray,
    out_frame: FloatArray,
    out_position: FloatArray,
    out_feature: IntArray,
) -> int:
    """Update the out_ arrays from ``count`` on with the crossing edges of all pairs of boxes; return how many contacts there are.

    The closest points of two edges count where both lie inside (not at an end, see HAIR), the common perpendicular leads out of
    both boxes (up to LEAN), and the gap is no smaller than that of the boxes along the normal of any face, nor an overlap more
    than DEEPER times as deep as along any axis: so the side of a box that stands on another one is not taken for a contact.
    ``shape_corner`` (s,) is the first point of the corners of a box, -1 where they are no points; the contact is that of the
    point at the start of the edge, with the other box as its shape. The number may exceed the room in the arrays; contacts beyond
    it are counted, not written. Arrays are handed over one by one for speed, see :mod:`contact.detect_kernels`.
    """
    boxes = Boxes(size, rotation, translation)
    out = Output(out_point, out_shape, out_gap, out_frame, out_position, out_feature)
    n_shapes = kind.shape[0]
    for first in range(n_shapes):
        for second in range(first + 1, n_shapes):
            if kind[first] != BOX or kind[second] != BOX:
                continue
            a, b = first, second
            if shape_corner[a] < 0 or not may_contact[shape_body[a], shape_body[b]]:
                a, b = second, first
                if shape_corner[a] < 0 or not may_contact[shape_body[a], shape_body[b]]:
                    continue
            near, pair = pair_of(a, b, shape_corner[a], margin[shape_corner[a]], boxes)
            if near:
                for i in range(3):
                    for j in range(3):
                        count = crossings(count, pair, i, j, boxes, out)
    return count


@njit(cache=True, forceinline=True, _nrt=False)
def pair_of(a: int, b: int, corner: int, reach: float, boxes: Boxes) -> tuple[bool, Pair]:
    """Whether two boxes are so near that edges may cross within ``reach`` (m), and what their edges need to know."""
    size, rotation, translation = boxes.size, boxes.rotation, boxes.translation
    between = minus(place_of(translation, a), place_of(translation, b))
    radius_a = sqrt(size[a, 0] ** 2 + size[a, 1] ** 2 + size[a, 2] ** 2)
    radius_b = sqrt(size[b, 0] ** 2 + size[b, 1] ** 2 + size[b, 2] ** 2)
    if norm(between) > radius_a + radius_b + max(reach, 0.0):
        return False, Pair(a, b, corner, between, 0.0, 0.0, reach)
    faces = face_separation(a, b, size, rotation, translation)
    if faces >= reach:
        return False, Pair(a, b, corner, between, 0.0, 0.0, reach)
    hair = HAIR * min(max(size[a, 0], size[a, 1], size[a, 2]), max(size[b, 0], size[b, 1], size[b, 2]))
    axes = box_separation(a, b, size, rotation, translation)
    least = max(faces - SLACK * abs(faces), min(axes, DEEPER * axes)) - hair
    return True, Pair(a, b, corner, between, hair, least, reach)


@njit(cache=True, forceinline=True, _nrt=False)
def crossings(count: int, pair: Pair, i: int, j: int, boxes: Boxes, out: Output) -> int:
    """Write the contacts of the edges of a along its axis i with those of b along its axis j; return how many there are."""
    a, b, rotation = pair.a, pair.b, boxes.rotation
    along_a, along_b = axis_of(rotation, a, i), axis_of(rotation, b, j)
    perpendicular = cross(along_a, along_b)
    sine = norm(perpendicular)
    if sine < PARALLEL:
        return count
    normal = times(1.0 / sine if dot(perpendicular, pair.between) >= 0.0 else -1.0 / sine, perpendicular)
    if separation(normal[0], normal[1], normal[2], a, b, boxes.size, rotation, boxes.translation) >= pair.reach:
        return count
    i1, i2, j1, j2 = (i + 1) % 3, (i + 2) % 3, (j + 1) % 3, (j + 2) % 3
    across_a1, across_a2 = axis_of(rotation, a, i1), axis_of(rotation, a, i2)
    across_b1, across_b2 = axis_of(rotation, b, j1), axis_of(rotation, b, j2)
    out_a1, out_a2, out_b1, out_b2 = (
        dot(normal, across_a1),
        dot(normal, across_a2),
        dot(normal, across_b1),
        dot(normal, across_b2),
    )
    cosine = dot(along_a, along_b)
    for k in range(4):  # the edges of a, by the sides of the other two axes on which they lie
        a1, a2 = (1.0 if k >> 1 else -1.0), (1.0 if k & 1 else -1.0)
        if a1 * out_a1 > LEAN or a2 * out_a2 > LEAN:
            continue
        middle = moved(moved(pair.between, a1 * boxes.size[a, i1], across_a1), a2 * boxes.size[a, i2], across_a2)
        for m in range(4):
            b1, b2 = (1.0 if m >> 1 else -1.0), (1.0 if m & 1 else -1.0)
            if b1 * out_b1 < -LEAN or b2 * out_b2 < -LEAN:
                continue
            apart = moved(moved(middle, -b1 * boxes.size[b, j1], across_b1), -b2 * boxes.size[b, j2], across_b2)
            gap = dot(apart, normal)
            if gap < pair.least or gap >= pair.reach:
                continue
            on_a, on_b = closest_on_lines(1.0, cosine, 1.0, dot(along_a, apart), dot(along_b, apart), sine * sine)
            if abs(on_a) > boxes.size[a, i] - pair.hair or abs(on_b) > boxes.size[b, j] - pair.hair:
                continue
            if count < out.point.shape[0]:
                start = (k >> 1) << (2 - i1) | (k & 1) << (2 - i2)
                out.point[count], out.shape[count], out.gap[count] = pair.corner + start, b, gap
                out.feature[count] = 1 + 12 * (4 * i + k) + 4 * j + m
                write_frame(out.frame[count], normal[0], normal[1], normal[2])
                on_edge = moved(plus(place_of(boxes.translation, b), middle), on_a, along_a)
                write_row(out.position, count, moved(on_edge, -0.5 * gap, normal))
            count += 1
    return count

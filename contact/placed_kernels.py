"""Shapes in the world and the contacts found on them, as groups of arrays for kernels, and the algebra of their frames."""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from contact.compiled import njit
from contact.detect_kernels import write_frame
from contact.vector_kernels import Vector, dot, minus

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

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
        Body of each, and the first of the 2 RIM_POINTS points of a cylinder or cone, -1 for none.
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


@njit(cache=True, inner=True, _nrt=False)
def axis_of(rotation: FloatArray, s: int, i: int) -> Vector:
    """Axis i of shape s in the world."""
    return rotation[s, 0, i], rotation[s, 1, i], rotation[s, 2, i]


@njit(cache=True, inner=True, _nrt=False)
def place_of(translation: FloatArray, s: int) -> Place:
    """Origin of shape s in the world, m."""
    return translation[s, 0], translation[s, 1], translation[s, 2]


@njit(cache=True, inner=True, _nrt=False)
def own(rotation: FloatArray, s: int, v: Vector) -> Vector:
    """World vector v in the frame of shape s."""
    return dot(axis_of(rotation, s, 0), v), dot(axis_of(rotation, s, 1), v), dot(axis_of(rotation, s, 2), v)


@njit(cache=True, inner=True, _nrt=False)
def world(rotation: FloatArray, s: int, v: Vector) -> Vector:
    """Vector v of the frame of shape s in the world."""
    return (
        rotation[s, 0, 0] * v[0] + rotation[s, 0, 1] * v[1] + rotation[s, 0, 2] * v[2],
        rotation[s, 1, 0] * v[0] + rotation[s, 1, 1] * v[1] + rotation[s, 1, 2] * v[2],
        rotation[s, 2, 0] * v[0] + rotation[s, 2, 1] * v[1] + rotation[s, 2, 2] * v[2],
    )


@njit(cache=True, inner=True, _nrt=False)
def moved(place: Place, length: float, direction: Vector) -> Place:
    """Place + length direction."""
    return place[0] + length * direction[0], place[1] + length * direction[1], place[2] + length * direction[2]


@njit(cache=True, inner=True, _nrt=False)
def near(a: int, b: int, shapes: Shapes) -> bool:
    """Whether the balls about the cylinder a and the bounding box of b come within the reach of a."""
    half, size = shapes.box_half, shapes.size
    centre = world(shapes.rotation, b, (shapes.box_centre[b, 0], shapes.box_centre[b, 1], shapes.box_centre[b, 2]))
    between = minus(minus(place_of(shapes.translation, a), place_of(shapes.translation, b)), centre)
    radii = sqrt(half[b, 0] ** 2 + half[b, 1] ** 2 + half[b, 2] ** 2) + sqrt(size[a, 0] ** 2 + size[a, 1] ** 2)
    return sqrt(dot(between, between)) <= radii + max(shapes.reach[a], 0.0)


@njit(cache=True, inner=True, _nrt=False)
def put(count: int, point: int, b: int, feature: int, gap: float, normal: Vector, place: Place, out: Output) -> int:
    """Write a contact where there is room, with the normal made a unit vector; return the number of contacts."""
    if count < out.point.shape[0]:
        out.point[count], out.shape[count], out.feature[count], out.gap[count] = point, b, feature, gap
        length = sqrt(dot(normal, normal))
        write_frame(out.frame[count], normal[0] / length, normal[1] / length, normal[2] / length)
        for i in range(3):
            out.position[count, i] = place[i]
    return count + 1


@njit(cache=True, inner=True, _nrt=False)
def move_up(kept: int, k: int, out: Output) -> int:
    """Keep contact k as number ``kept``, at most k, where others before it were left out; return how many are kept then."""
    if kept < k:
        out.point[kept], out.shape[kept], out.feature[kept] = out.point[k], out.shape[k], out.feature[k]
        out.gap[kept] = out.gap[k]
        for i in range(3):
            out.position[kept, i] = out.position[k, i]
            for j in range(3):
                out.frame[kept, i, j] = out.frame[k, i, j]
    return kept + 1

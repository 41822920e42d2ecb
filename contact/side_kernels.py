"""Deforming bodies as the kernels see them: the sides of a pair, room to work in, and the contacts that are written."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from contact.compiled import njit
from contact.detect_kernels import write_frame
from contact.vector_kernels import Vector

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

#: Kinds of contacts: vertex on surface, edge on edge, point on segment.
VERTEX_FACE, EDGE_EDGE, POINT_SEGMENT = 0, 1, 2
#: Weights below this count as zero: the closest point then lies on an edge or a vertex.
SNAP = 1e-7


class Bodies(NamedTuple):
    """The nb bodies.

    Attributes
    ----------
    first_point, first_edge : ndarray, (nb + 1,)
        First point and edge of each body, and the number of points and edges.
    strand : ndarray, (nb,), bool
        Which bodies are strands.
    radius, spacing : ndarray, (nb,), m
        Radius of each strand, mean distance of its points; 0 for surfaces.
    depth : ndarray, (nb,), m
        Largest depth from which a surface pushes points out; 0 for strands.
    rigid : ndarray, (nb,), bool
        Which bodies do not deform: their keen edges also press the flat edges of others.
    """

    first_point: IntArray
    first_edge: IntArray
    strand: BoolArray
    radius: FloatArray
    spacing: FloatArray
    depth: FloatArray
    rigid: BoolArray


class Side(NamedTuple):
    """One body of a pair, see :class:`Bodies`: points ``first`` to ``stop`` - 1, edges ``first_edge`` to ``stop_edge`` - 1."""

    body: int
    first: int
    stop: int
    first_edge: int
    stop_edge: int
    strand: bool
    radius: float
    spacing: float
    depth: float
    rigid: bool


class Near(NamedTuple):
    """Closest points of the triangles near one vertex, room for m.

    Attributes
    ----------
    feature : ndarray, (m,)
        Feature that holds the closest point: a triangle, the number of triangles plus an edge, or both numbers plus a vertex.
    triangle : ndarray, (m,)
        The triangle.
    distance2 : ndarray, (m,), m^2
        Squared distance to the vertex.
    weight : ndarray, (m, 3)
        Barycentric weights in the triangle.
    """

    feature: IntArray
    triangle: IntArray
    distance2: FloatArray
    weight: FloatArray


class Kept(NamedTuple):
    """Possible contacts of one vertex by growing distance, room for k.

    Attributes
    ----------
    gap : ndarray, (k,), m
        Signed distance of the vertex itself, without a radius.
    normal : ndarray, (k, 3)
        Unit normal of each.
    near : ndarray, (k,)
        Its place among those near, see :class:`Near`.
    """

    gap: FloatArray
    normal: FloatArray
    near: IntArray


class Work(NamedTuple):
    """Room to work in: ``stack`` and ``hits`` of the search in a tree, and what is near one vertex."""

    stack: IntArray
    hits: IntArray
    near: Near
    kept: Kept


class Output(NamedTuple):
    """Contacts with room for r; those beyond it are counted, not written. See :class:`contact.deformable.DeformableContacts`.

    Attributes
    ----------
    key_base : int
        More than any number in a key; a key is (kind key_base + feature of side 0) key_base + feature of side 1.
    kind, key : ndarray, (r,)
        Kind and key.
    body : ndarray, (r, 2)
        Bodies of the two sides.
    gap : ndarray, (r,), m
        Gap.
    frame : ndarray, (r, 3, 3)
        Normal and tangents.
    point, weight : ndarray, (r, 2, 3)
        Points of each side and their weights.
    """

    key_base: int
    kind: IntArray
    key: IntArray
    body: IntArray
    gap: FloatArray
    frame: FloatArray
    point: IntArray
    weight: FloatArray


@njit(cache=True, inner=True)
def side_of(bodies: Bodies, k: int) -> Side:
    """Return body k as one side of a pair."""
    return Side(
        k, bodies.first_point[k], bodies.first_point[k + 1], bodies.first_edge[k], bodies.first_edge[k + 1],
        bodies.strand[k], bodies.radius[k], bodies.spacing[k], bodies.depth[k], bodies.rigid[k],
    )  # fmt: skip


@njit(cache=True, inline="always")
def write_contact(
    out: Output, place: int, kind: int, feature0: int, feature1: int, body0: int, body1: int, gap: float, normal: Vector
) -> None:
    """Write a contact between features of bodies 0 and 1 except for its points."""
    out.kind[place], out.gap[place] = kind, gap
    out.key[place] = (kind * out.key_base + feature0) * out.key_base + feature1
    out.body[place, 0], out.body[place, 1] = body0, body1
    write_frame(out.frame[place], normal[0], normal[1], normal[2])


@njit(cache=True, inner=True)
def write_side(out_point: IntArray, out_weight: FloatArray, points: tuple[int, int, int], weights: Vector) -> None:
    """Write the points of one side of a contact, (3,), and their weights, (3,); those of weight 0 are written as none, -1."""
    for i in range(3):
        used = weights[i] > 0.0
        out_point[i] = points[i] if used else -1
        out_weight[i] = weights[i] if used else 0.0

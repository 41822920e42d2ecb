"""Edges of shapes as segments: the creases of meshes, the edges of boxes, the axes of capsules.

Points of one body against the surface of another miss two bodies that cross: a bar across a bar. What is closest there lies
inside an edge of each. :mod:`contact.crease_kernels` finds such contacts of what this table lists.
"""

from __future__ import annotations

from collections.abc import Sequence
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from contact.crease_kernels import BUNCH, ON_CYLINDER, Creases, Triangles
from contact.facing_kernels import LEVEL, Corners
from contact.sdf_grid import triangle_table
from contact.shapes import Box, Capsule, Mesh, Shape

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

#: An edge of a mesh is a crease where the surface turns by more than this angle, outwards, rad; others are left to the vertices.
CREASE = 0.2

#: Edges of a mesh whose directions, and whose faces, differ by less than this go on in each other and are one crease.
STRAIGHT = 1e-6

#: So many pairs of creases are compared at once, about.
PAIRS_AT_ONCE = 1_000_000

#: A mesh has a valley where its surface turns inwards by more than this angle, rad: more than coordinates that were rounded do.
VALLEY = 1e-3

Segments = tuple[FloatArray, FloatArray, FloatArray, FloatArray]
NONE: Segments = (np.zeros((0, 3)), np.zeros((0, 3)), np.zeros((0, 3)), np.zeros((0, 3)))


#: Creases of meshes that live: several detectors ask for them.
_KEPT: WeakKeyDictionary[Mesh, Segments] = WeakKeyDictionary()


def mesh_creases(mesh: Mesh) -> Segments:
    """Both ends (n, 3), m, of the creases of a mesh, and two unit vectors (n, 3) from each along its faces."""
    ends, one, two, outward = _edges(mesh)
    start, end = mesh.points[ends[:, 0]], mesh.points[ends[:, 1]]
    sharp = (np.einsum("ni,ni->n", one, two) > -np.cos(CREASE)) & (np.einsum("ni,ni->n", outward, two) < 0.0)
    return _joined(ends[sharp], start[sharp], end[sharp], one[sharp], two[sharp])


def is_smooth_and_convex(mesh: Mesh) -> bool:
    """Whether a mesh has no creases (:data:`CREASE`) and no valleys (:data:`VALLEY`)."""
    _, one, two, outward = _edges(mesh)
    turn = np.arctan2(-np.einsum("ni,ni->n", outward, two), -np.einsum("ni,ni->n", one, two))  # outwards
    return bool(turn.max() <= CREASE and turn.min() >= -VALLEY)


def _edges(mesh: Mesh) -> tuple[IntArray, FloatArray, FloatArray, FloatArray]:
    """Return ends (n, 2) of the edges of a mesh, unit vectors (n, 3) from each along its two faces, and normals of the first."""
    triangles = mesh.triangles
    directed = np.stack([triangles, np.roll(triangles, -1, axis=1)], axis=2).reshape(-1, 2)
    opposite = np.roll(triangles, 1, axis=1).ravel()  # the corner of the triangle that is not on the edge
    order = np.lexsort(np.sort(directed, axis=1).T)
    left, right = order[0::2], order[1::2]  # the surface is closed: each edge has two triangles
    start, end = mesh.points[directed[left, 0]], mesh.points[directed[left, 1]]
    along = end - start
    along /= np.linalg.norm(along, axis=1, keepdims=True)
    one, two = (_across(mesh.points[opposite[side]] - start, along) for side in (left, right))
    return directed[left], one, two, np.cross(along, one)


def _across(vectors: FloatArray, along: FloatArray) -> FloatArray:
    """Return unit vectors (n, 3): the part of vectors that is perpendicular to unit vectors."""
    across = vectors - np.einsum("ni,ni->n", vectors, along)[:, None] * along
    return np.asarray(across / np.linalg.norm(across, axis=1, keepdims=True))


def _joined(vertices: IntArray, start: FloatArray, end: FloatArray, one: FloatArray, two: FloatArray) -> Segments:
    """Join creases that go on in each other: where a bar crosses the vertex between them, neither has it inside."""
    along = (end - start) / np.linalg.norm(end - start, axis=1, keepdims=True)
    chain = np.arange(len(start))

    def root(k: int) -> int:
        while chain[k] != k:
            k = int(chain[k])
        return k

    for k, other in going_on(vertices, along, one, two).tolist():
        chain[root(k)] = root(other)
    kept: list[tuple[FloatArray, ...]] = []
    roots = np.array([root(k) for k in range(len(start))], dtype=np.int64)
    order = np.argsort(roots, kind="stable")
    for own in np.split(order, np.flatnonzero(np.diff(roots[order])) + 1) if len(order) else []:
        k = roots[own[0]]
        ends = np.concatenate([start[own], end[own]])
        place = ends @ along[k]
        kept.append((ends[place.argmin()], ends[place.argmax()], one[k], two[k]))
    if not kept:
        return NONE
    first, last, left, right = (np.stack(column) for column in zip(*kept, strict=True))
    return first, last, left, right


def going_on(vertices: IntArray, along: FloatArray, one: FloatArray, two: FloatArray) -> IntArray:
    """Pairs (n, 2) of creases that meet in a vertex and go on in each other, the later one first, in the order of the later."""
    crease, side = np.repeat(np.arange(len(vertices)), 2), np.tile([0, 1], len(vertices))
    order = np.argsort(vertices.ravel(), kind="stable")
    crease, side, vertex = crease[order], side[order], vertices.ravel()[order]
    earlier = np.arange(len(vertex)) - np.searchsorted(vertex, vertex)  # creases at the same vertex before each
    found = [np.zeros((0, 3), dtype=np.int64)]
    for part in np.split(np.arange(len(vertex)), np.flatnonzero(np.diff(np.cumsum(earlier) // PAIRS_AT_ONCE)) + 1):
        at = np.repeat(part, earlier[part])
        mates = at - 1 - (np.arange(len(at)) - np.repeat(np.cumsum(earlier[part]) - earlier[part], earlier[part]))
        k, other = crease[at], crease[mates]
        alike = np.zeros(len(k), dtype=np.bool_)
        for left, right in ((one, two), (two, one)):
            differs = np.maximum(np.abs(one[k] - left[other]).max(axis=1), np.abs(two[k] - right[other]).max(axis=1))
            alike |= differs < STRAIGHT
        alike[alike] = np.linalg.norm(np.cross(along[k[alike]], along[other[alike]]), axis=1) < STRAIGHT
        found.append(np.column_stack([k, side[at], other])[alike])
    every = np.concatenate(found)
    return every[np.lexsort(every.T[::-1])][:, [0, 2]]


def box_edges(box: Box) -> Segments:
    """Return the ends of the twelve edges of a box, and two unit vectors from each along its faces, as :func:`mesh_creases`."""
    rows: list[tuple[FloatArray, ...]] = []
    half, axes = box.half_extents, np.eye(3)
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        for first in (-1.0, 1.0):
            for second in (-1.0, 1.0):
                middle = first * half[j] * axes[j] + second * half[k] * axes[k]
                rows.append((middle - half[i] * axes[i], middle + half[i] * axes[i], -second * axes[k], -first * axes[j]))
    start, end, one, two = (np.stack(column) for column in zip(*rows, strict=True))
    return start, end, one, two


def segments(shape: Shape) -> Segments:
    """Return the ends of the segments of a shape and the unit vectors along their faces, 0 where it has none."""
    if isinstance(shape, Mesh):
        if shape not in _KEPT:
            _KEPT[shape] = mesh_creases(shape)
        return _KEPT[shape]
    if isinstance(shape, Box):
        return box_edges(shape)
    if isinstance(shape, Capsule):
        end = np.array([[0.0, 0.0, shape.half_length]])
        return -end, end, np.zeros((1, 3)), np.zeros((1, 3))
    return NONE


def edges_of_corners(shape: Box | Mesh) -> tuple[IntArray, FloatArray]:
    """Edges at each corner or vertex, in the order of ``features``: the first of each (k + 1,), unit vectors, lengths, (n, 4)."""
    if isinstance(shape, Box):
        corners = shape.features()[0]
        along = (-np.sign(corners)[:, :, None] * np.eye(3)).reshape(-1, 3)
        return 3 * np.arange(9), np.column_stack([along, np.tile(2.0 * np.asarray(shape.half_extents), 8)])
    used, triangles = np.unique(shape.triangles, return_inverse=True)
    triangles = triangles.reshape(-1, 3)  # closed and turned alike: each edge is run through once in either direction
    ends = np.stack([triangles, np.roll(triangles, -1, axis=1)], axis=2).reshape(-1, 2)
    ends = ends[np.argsort(ends[:, 0], kind="stable")]
    along = shape.points[used[ends[:, 1]]] - shape.points[used[ends[:, 0]]]
    first = np.searchsorted(ends[:, 0], np.arange(len(used) + 1))
    length = np.linalg.norm(along, axis=1, keepdims=True)
    return first, np.column_stack([along / length, length])


def make_corners(
    shapes: Sequence[Shape], first: IntArray, margin: FloatArray, along: FloatArray, one: FloatArray, two: FloatArray
) -> Corners:
    """Corners of boxes and vertices of meshes as what :mod:`contact.facing_kernels` reads.

    ``shapes``, ``first`` and ``margin`` are those of :class:`CreaseTable`, the others, (n, 3), those of its ``creases``.
    """
    known: dict[int, tuple[IntArray, FloatArray]] = {}
    owner: IntArray = np.full(len(margin), -1, dtype=np.int64)
    counts: IntArray = np.zeros(len(margin), dtype=np.int64)
    edges = [np.zeros((0, 4))]
    for s in sorted(np.flatnonzero(first >= 0).tolist(), key=lambda s: int(first[s])):
        shape = shapes[s]
        if isinstance(shape, Box | Mesh):
            if id(shape) not in known:
                known[id(shape)] = edges_of_corners(shape)
            start, own = known[id(shape)]
            points = slice(first[s], first[s] + len(start) - 1)
            owner[points], counts[points] = s, np.diff(start)
            edges.append(own)
    left = np.cross(along, one)
    left *= np.where(np.einsum("ni,ni->n", left, two) > 0.0, -1.0, 1.0)[:, None]  # a face falls away from the other's normal
    right = np.cross(along, two)
    right *= np.where(np.einsum("ni,ni->n", right, one) > 0.0, -1.0, 1.0)[:, None]
    return Corners(owner, np.concatenate([[0], np.cumsum(counts)]).astype(np.int64), np.concatenate(edges), margin, left, right)


def bunch_boxes(start: IntArray, middle: FloatArray, radius: FloatArray) -> tuple[IntArray, FloatArray]:
    """Boxes around bunches of balls: the first of each shape, (s + 1,), and lower and upper corners, (n, 6), m.

    Parameters
    ----------
    start : ndarray, (s + 1,)
        First ball of each shape.
    middle, radius : ndarray, (b, 3) and (b,), m
        Balls in the frames of the shapes.
    """
    counts = -(-np.diff(start) // BUNCH)
    firsts = [np.arange(first, last, BUNCH) for first, last in zip(start[:-1].tolist(), start[1:].tolist(), strict=True)]
    every = np.concatenate([np.zeros(0, dtype=np.int64), *firsts])
    lower, upper = np.zeros((0, 3)), np.zeros((0, 3))
    if len(every):
        lower = np.minimum.reduceat(middle - radius[:, None], every)
        upper = np.maximum.reduceat(middle + radius[:, None], every)
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64), np.column_stack([lower, upper])


def reaches(along: FloatArray, half: FloatArray, one: FloatArray, two: FloatArray) -> FloatArray:
    """Radii (n,), m, of balls about segments, larger by LEVEL; infinite for joined ones to which their faces are less level."""
    lean = np.maximum(np.abs(np.einsum("ni,ni->n", along, one)), np.abs(np.einsum("ni,ni->n", along, two)))
    return np.where(lean < 0.5 * LEVEL, half * (1.0 + LEVEL), np.inf)


def make_triangles(shapes: Sequence[Shape]) -> Triangles:
    """Triangles of the meshes among shapes, as the arrays that :func:`contact.crease_kernels.measured_distance` reads."""
    tables: dict[int, tuple[FloatArray, FloatArray]] = {}
    rows, counts = [(np.zeros((0, 3, 3)), np.zeros((0, 7, 3)))], []
    for shape in shapes:
        if isinstance(shape, Mesh):
            if id(shape) not in tables:
                tables[id(shape)] = triangle_table(shape.points, shape.triangles)
            rows.append(tables[id(shape)])
        counts.append(len(shape.triangles) if isinstance(shape, Mesh) else 0)
    corners, normals = (np.concatenate(column) for column in zip(*rows, strict=True))
    middle = corners.mean(axis=1)
    radius = np.linalg.norm(corners - middle[:, None], axis=2).max(axis=1, initial=0.0) * (1.0 + 1e-9)
    start = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return Triangles(start, corners, normals, np.column_stack([middle, radius]), *bunch_boxes(start, middle, radius))


class CreaseTable:
    """The segments of shapes as the arrays that :mod:`contact.crease_kernels` reads.

    Parameters
    ----------
    shapes : sequence of Shape
        The s shapes.
    first : ndarray, (s,)
        First point of each, -1 where it has none.
    margin : ndarray, (p,), m
        Margin of each point; kept, not copied.

    Attributes
    ----------
    creases : Creases
        The arrays; ``creases.reach`` is to be filled before each use.
    corners : Corners
        Corners of boxes and vertices of meshes.
    features : int
        Features of their contacts are less than this.
    """

    def __init__(self, shapes: Sequence[Shape], first: IntArray, margin: FloatArray) -> None:
        known: dict[int, Segments] = {}
        rows: list[Segments] = []
        counts = []
        thickness = [np.zeros(0)]
        for shape in shapes:
            if id(shape) not in known:
                known[id(shape)] = segments(shape)
            own = known[id(shape)]
            rows.append(own)
            counts.append(len(own[0]))
            thickness.append(np.full(len(own[0]), shape.radius if isinstance(shape, Capsule) else 0.0))
        start, end, one, two = (np.concatenate([np.zeros((0, 3)), *column]) for column in zip(*rows, strict=True))
        length = np.linalg.norm(end - start, axis=1)
        most = max(counts, default=0)
        begin = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        centre, along, half = 0.5 * (start + end), (end - start) / length[:, None], 0.5 * length
        thick = np.concatenate(thickness)
        self.creases = Creases(
            begin, centre, along, half, one, two, thick, first, np.zeros(len(shapes)), make_triangles(shapes),
            np.zeros((2, most), dtype=np.int64), np.zeros((2, 8, most)), np.zeros((most // BUNCH + 1, 6)),
            *bunch_boxes(begin, centre, thick + reaches(along, half, one, two)),
            np.ascontiguousarray(np.column_stack([centre, along, half]).T),
        )  # fmt: skip
        self.corners = make_corners(shapes, first, margin, self.creases.along, one, two)
        self.features = max(1 + most * most, ON_CYLINDER + 5 * most)

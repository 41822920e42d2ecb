"""Contacts between deforming bodies: closed triangle surfaces and strands (chains of points with a radius), also with themselves.

``DeformableDetector(...)`` builds a tree of boxes over the triangles and one over the edges of each body once;
``DeformableDetector.detect`` refits them every step and finds the pairs (:mod:`contact.deformable_kernels`). Each side of a
contact is a point of a feature, a weighted sum of up to three points.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from contact import deformable_kernels as kernels
from contact.errors import ContactError

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

#: Features of one surface that may be near one vertex, at the start; the room grows when needed.
_NEAR = 256
#: Contacts that there is room for at the start, for each point.
_ROOM = 4


@dataclass(frozen=True)
class Surface:
    """A closed surface of triangles that encloses a deforming body.

    Parameters
    ----------
    n_points : int
        Number of its points.
    triangles : ndarray, (k, 3)
        Corners, points of this body counted from 0, counter-clockwise seen from outside; every edge belongs to two triangles
        or more.
    depth : ndarray, (k,), m
        How deep a point may lie behind a triangle to be pushed out of it; half of the thickness of the material is sensible.
    """

    n_points: int
    triangles: IntArray
    depth: FloatArray


@dataclass(frozen=True)
class Strand:
    """A chain of points with a radius: the centre line of a rod.

    Parameters
    ----------
    arc : ndarray, (n,), m
        Place of each point along the strand, increasing.
    radius : float, m
        Half of its thickness.
    """

    arc: FloatArray
    radius: float

    @property
    def n_points(self) -> int:
        """Number of points."""
        return len(self.arc)


@dataclass
class Touches:
    """Contacts of deforming bodies at one instant.

    Attributes
    ----------
    kind : ndarray, (n,)
        ``VERTEX_FACE``, ``EDGE_EDGE`` or ``POINT_SEGMENT`` of :mod:`contact.deformable_kernels`.
    key : ndarray, (n,)
        Number of the pair, different for each contact, the same as long as the same features touch.
    body : ndarray, (n, 2)
        Bodies of the two sides.
    gap : ndarray, (n,), m
        Distance of the two surfaces; negative is penetration.
    frame : ndarray, (n, 3, 3)
        Rows: normal (from side 1 to side 0), first tangent, second tangent; world, right-handed and orthonormal.
    point : ndarray, (n, 2, 3)
        Points of each side, -1 where there are fewer.
    weight : ndarray, (n, 2, 3)
        Their weights, which sum to one; 0 where there is no point.
    position : ndarray, (n, 2, 3), m
        Where the force acts on each side: the weighted points moved by the radius along the normal.
    """

    kind: IntArray
    key: IntArray
    body: IntArray
    gap: FloatArray
    frame: FloatArray
    point: IntArray
    weight: FloatArray
    position: FloatArray

    def __len__(self) -> int:
        """Return the number of contacts."""
        return len(self.gap)

    def select(self, chosen: IntArray | npt.NDArray[np.bool_]) -> Touches:
        """Return some of the contacts, by mask or number."""
        return Touches(*(getattr(self, field.name)[chosen] for field in fields(self)))


class _Output(NamedTuple):
    """Arrays that the kernels fill, see :class:`Touches`."""

    kind: IntArray
    key: IntArray
    body: IntArray
    gap: FloatArray
    frame: FloatArray
    point: IntArray
    weight: FloatArray


class _Tree:
    """Complete binary tree of boxes over features that lie in a row of space; built once, refitted every step."""

    def __init__(self, middle: FloatArray, first: int) -> None:
        n = len(middle)
        size = 1 << max(n - 1, 0).bit_length()
        self.first, self.stop = first, first + n
        self.leaf: IntArray = np.full(size, -1, dtype=np.int64)
        # leaves are spread evenly, so that no subtree is empty but at the bottom
        self.leaf[(np.arange(n) * size) // max(n, 1)] = _space_order(middle)
        self.boxes = np.empty((2 * size, 6))

    def refit(self, points: FloatArray, corners: IntArray) -> None:
        kernels.refit(points, corners, self.first, self.leaf, self.boxes)


def _space_order(middle: FloatArray) -> IntArray:
    """Order of points along a Z-curve of 2^20 cells a side, (n,)."""
    low = middle.min(axis=0, initial=np.inf)
    extent = float((middle - low).max(initial=0.0)) or 1.0
    cell = ((middle - low) / extent * (2**20 - 1)).astype(np.int64)
    code = np.zeros(len(middle), dtype=np.int64)
    for bit in range(20):
        for axis in range(3):
            code |= ((cell[:, axis] >> bit) & 1) << (3 * bit + axis)
    return np.argsort(code, kind="stable")


class DeformableDetector:
    """Finds the contacts between deforming bodies, step after step.

    Which pairs of features touch, and when, is said in the functions of :mod:`contact.deformable_kernels`: vertices against
    surfaces, sharp edges and segments where they cross, points against strands.

    Parameters
    ----------
    bodies : sequence of Surface or Strand
        The nb bodies; their points follow one another in this order.
    collide : array_like of bool, (nb, nb)
        Which bodies touch each other (symmetric); on the diagonal, which touch themselves. Within a body, features that share a
        point do not touch, and segments of a strand less than pi times the sum of the radii apart along it do not either.
    points : array_like, (N, 3), m
        Positions for which the trees are built; any typical ones, e.g. those at rest.

    Raises
    ------
    ContactError
        An array of the wrong shape, a surface with an open edge, or a number that is no point.
    """

    def __init__(self, bodies: Sequence[Surface | Strand], collide: npt.ArrayLike, points: npt.ArrayLike) -> None:
        self.bodies = tuple(bodies)
        nb = len(self.bodies)
        matrix = np.asarray(collide)
        if matrix.shape != (nb, nb) or matrix.dtype != np.bool_ or not np.array_equal(matrix, matrix.T):
            raise ContactError(
                f"DeformableDetector: collide has shape {matrix.shape} and type {matrix.dtype}; give a symmetric matrix of bool, "
                f"({nb}, {nb})."
            )
        counts = [body.n_points for body in self.bodies]
        self.start: IntArray = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        self.n_points = int(self.start[-1])
        where = self._points(points)
        triangles, edges, faces, depth, arc = [], [], [], [], []
        edge_count, triangle_edge = 0, []
        self._triangle_trees: list[_Tree] = []
        self._edge_trees: list[_Tree] = []
        triangle_count = 0
        for k, body in enumerate(self.bodies):
            start = self.start[k]
            if isinstance(body, Surface):
                corners = self._checked(body, k)
                own_edges, own_faces, of_triangle = _edges_of(corners, k)
                triangles.append(corners + start)
                depth.append(np.asarray(body.depth, dtype=np.float64))
                edges.append(np.where(own_edges >= 0, own_edges + start, -1))
                faces.append(own_faces + triangle_count)
                triangle_edge.append(of_triangle + edge_count)
                arc.append(np.zeros(body.n_points))
            else:
                corners = np.zeros((0, 3), dtype=np.int64)
                n = max(body.n_points - 1, 0)
                own = start + np.arange(n)
                edges.append(np.column_stack([own, own + 1, np.full((n, 2), -1)]))
                faces.append(np.full((n, 2), -1))
                arc.append(np.asarray(body.arc, dtype=np.float64))
            self._triangle_trees.append(_Tree(where[corners + start].mean(axis=1), triangle_count))
            self._edge_trees.append(_Tree(where[edges[-1][:, :2]].mean(axis=1), edge_count))
            triangle_count += len(corners)
            edge_count += len(edges[-1])
        empty = np.zeros((0, 3), dtype=np.int64)
        self._triangles = np.ascontiguousarray(np.concatenate([empty, *triangles]), dtype=np.int64)
        self._triangle_edge = np.ascontiguousarray(np.concatenate([empty, *triangle_edge]), dtype=np.int64)
        self._edges = np.ascontiguousarray(np.concatenate([np.zeros((0, 4)), *edges]), dtype=np.int64)
        self._faces = np.ascontiguousarray(np.concatenate([np.zeros((0, 2)), *faces]), dtype=np.int64)
        self._depth = np.concatenate([np.zeros(0), *depth])
        self._deepest = [float(np.max(body.depth, initial=0.0)) if isinstance(body, Surface) else 0.0 for body in self.bodies]
        self._arc = np.concatenate([np.zeros(0), *arc])
        # triangles round each point
        self._around: IntArray = np.argsort(self._triangles.ravel(), kind="stable") // 3
        counted = np.bincount(self._triangles.ravel(), minlength=self.n_points)
        self._around_start: IntArray = np.concatenate([[0], np.cumsum(counted)]).astype(np.int64)
        #: mean distance of the points of strands, m
        self._spacing = [
            (float(body.arc[-1] - body.arc[0]) / max(body.n_points - 1, 1) if isinstance(body, Strand) else 0.0)
            for body in self.bodies
        ]
        self._pairs = [(a, b) for a in range(nb) for b in range(a, nb) if matrix[a, b]]
        self._used = sorted({k for pair in self._pairs for k in pair})
        self._normal = np.zeros((len(self._triangles), 3))
        self._vertex_normal, self._edge_normal = np.zeros((self.n_points, 3)), np.zeros((len(self._edges), 3))
        self._sharp = np.zeros(len(self._edges), dtype=np.bool_)
        self._key_base = max(self.n_points, len(self._edges), kernels.MAX_KEPT * nb) + 1
        depth_of_tree = max([len(t.leaf) for t in (*self._triangle_trees, *self._edge_trees)], default=1).bit_length()
        self._stack: IntArray = np.zeros(2 * depth_of_tree + 4, dtype=np.int64)
        self._good = np.zeros((16, 5))
        self._make_seen(_NEAR)
        self._make_room(_ROOM * self.n_points + 16)

    def _points(self, points: npt.ArrayLike) -> FloatArray:
        where = np.require(points, np.float64, "C")
        if where.shape != (self.n_points, 3) or not np.isfinite(where).all():
            raise ContactError(
                f"DeformableDetector: points have shape {where.shape}; give finite positions of shape ({self.n_points}, 3)."
            )
        return where

    @staticmethod
    def _checked(body: Surface, number: int) -> IntArray:
        corners = np.asarray(body.triangles)
        wrong = corners.ndim != 2 or corners.shape[1] != 3 or corners.dtype.kind not in "iu"
        if wrong or corners.min(initial=0) < 0 or corners.max(initial=-1) >= body.n_points:
            raise ContactError(
                f"DeformableDetector: triangles of body {number} have shape {corners.shape} and type {corners.dtype}; give whole "
                f"numbers from 0 to {body.n_points - 1}, three a row."
            )
        if np.shape(body.depth) != (len(corners),):
            raise ContactError(
                f"DeformableDetector: depth of body {number} has shape {np.shape(body.depth)}; give one length for each of the "
                f"{len(corners)} triangles."
            )
        return np.asarray(corners, dtype=np.int64)

    def _make_seen(self, room: int) -> None:
        self._seen_id, self._seen_triangle = np.zeros(room, dtype=np.int64), np.zeros(room, dtype=np.int64)
        self._seen = np.zeros((room, 4))

    def _make_room(self, room: int) -> None:
        self._out = _Output(
            np.zeros(room, dtype=np.int64), np.zeros(room, dtype=np.int64), np.zeros((room, 2), dtype=np.int64), np.zeros(room),
            np.zeros((room, 3, 3)), np.zeros((room, 2, 3), dtype=np.int64), np.zeros((room, 2, 3)),
        )  # fmt: skip

    def detect(self, points: npt.ArrayLike, margin: npt.ArrayLike) -> Touches:
        """Find all contacts with gap < margin.

        Parameters
        ----------
        points : ndarray, (N, 3), m
            Positions.
        margin : float or ndarray, (nb, nb), m
            Margin of each pair of bodies, a < b at [a, b].

        Returns
        -------
        Touches
            Ordered by pair of bodies, then kind, then feature. A pair of vertices is reported once.

        Raises
        ------
        ContactError
            Points of the wrong shape, or a position or margin that is not finite.
        """
        where = self._points(points)
        nb = len(self.bodies)
        margins = np.broadcast_to(np.asarray(margin, dtype=np.float64), (nb, nb))
        if not np.isfinite(margins).all():
            raise ContactError("DeformableDetector: a margin is not finite; give lengths in m.")
        for k in self._used:
            self._triangle_trees[k].refit(where, self._triangles)
            self._edge_trees[k].refit(where, self._edges[:, :2])
        kernels.surface_normals(
            where, self._triangles, self._edges, self._faces,
            self._normal, self._vertex_normal, self._edge_normal, self._sharp,
        )  # fmt: skip
        count = self._collect(where, margins)
        while count < 0 or count > len(self._out.kind):
            if count < 0:
                self._make_seen(2 * len(self._seen))
            else:
                self._make_room(2 * count)
            count = self._collect(where, margins)
        out = self._out
        once = _first_of_vertex_pairs(out.kind[:count], out.point[:count], out.weight[:count])
        body, frame = out.body[:count][once], out.frame[:count][once]
        point, weight = out.point[:count][once], out.weight[:count][once]
        radius = np.array([b.radius if isinstance(b, Strand) else 0.0 for b in self.bodies])
        position = np.einsum("msi,msic->msc", weight, where[point])
        side = np.array([-1.0, 1.0])
        position += (side * radius[body])[:, :, None] * frame[:, None, 0]
        return Touches(
            out.kind[:count][once], out.key[:count][once], body, out.gap[:count][once], frame, point, weight, position
        )  # fmt: skip

    def _collect(self, where: FloatArray, margins: FloatArray) -> int:
        """Fill the output; answer the number of contacts, or -1 when there is no room for the features near a vertex."""
        count = 0
        for a, b in self._pairs:
            margin = float(margins[a, b])
            for one, other in ((a, b), (b, a)) if a != b else ((a, a),):
                if isinstance(self.bodies[other], Surface):
                    count = self._vertices(where, one, other, margin, count)
                    if count < 0:
                        return -1
                else:
                    count = self._strand_points(where, one, other, margin, count)
            count = self._crossings(where, a, b, margin, count)
        return count

    def _radius(self, k: int) -> float:
        body = self.bodies[k]
        return body.radius if isinstance(body, Strand) else 0.0

    def _vertices(self, where: FloatArray, a: int, b: int, margin: float, count: int) -> int:
        tree, radius = self._triangle_trees[b], self._radius(a)
        return kernels.vertex_faces(
            where, (a, b), self.start[a], self.start[a + 1], radius, isinstance(self.bodies[a], Strand), self._vertex_normal,
            self._triangles, self._normal, self._triangle_edge, self._faces, self._edge_normal,
            self._around_start, self._around, self._depth,
            tree.first, tree.leaf, tree.boxes, margin, max(margin + radius, self._deepest[b]), self._key_base, self._stack,
            self._seen_id, self._seen_triangle, self._seen, self._good, count, *self._out,
        )  # fmt: skip

    def _strand_points(self, where: FloatArray, a: int, b: int, margin: float, count: int) -> int:
        tree = self._edge_trees[b]
        leads = (self._spacing[a], a) < (self._spacing[b], b)  # the strand with its points closer together
        return kernels.point_segments(
            where, (a, b), isinstance(self.bodies[a], Strand), leads, (self._radius(a), self._radius(b)), self._arc,
            self.start[a], self.start[a + 1], self._vertex_normal, self._edges, tree.first, tree.stop, tree.leaf, tree.boxes,
            margin, self._key_base, self._stack, count, *self._out,
        )  # fmt: skip

    def _crossings(self, where: FloatArray, a: int, b: int, margin: float, count: int) -> int:
        radii, own, tree = (self._radius(a), self._radius(b)), self._edge_trees[a], self._edge_trees[b]
        strands = (isinstance(self.bodies[a], Strand), isinstance(self.bodies[b], Strand))
        return kernels.edge_edges(
            where, (a, b), strands, radii, self._arc, own.first, own.stop, self._edges, self._faces, self._edge_normal,
            self._sharp, self._depth, tree.first, tree.leaf, tree.boxes, margin,
            max(margin + radii[0] + radii[1], self._deepest[a], self._deepest[b]), self._key_base, self._stack, count, *self._out,
        )  # fmt: skip

    def overlaps(self, points: npt.ArrayLike) -> list[tuple[int, int, float, float]]:
        """Find different bodies that overlap, however deeply; slow, for the start.

        Returns
        -------
        list of (a, b, depth, bound)
            Bodies a < b, the largest depth of a point of one in the other (m; of two strands, the overlap where they are
            closest), and how deep it may be for ``detect`` to see and undo it.
        """
        where, found = self._points(points), []
        touches = self.detect(points, 0.0)
        for a, b in self._pairs:
            if a == b:
                continue
            depth, bound = 0.0, np.inf
            for one, other in ((a, b), (b, a)):
                surface = self.bodies[other]
                if isinstance(surface, Surface):
                    tree = self._triangle_trees[other]
                    inside = kernels.depth_inside(
                        where, self.start[one], self.start[one + 1], self._triangles, tree.first, tree.stop
                    )  # fmt: skip
                    depth = max(depth, inside + (self._radius(one) if inside > 0.0 else 0.0))
                    bound = min(bound, float(np.min(surface.depth, initial=np.inf)) + self._radius(one))
            own = (touches.body == (a, b)).all(axis=1) | (touches.body == (b, a)).all(axis=1)
            depth = max(depth, -float(touches.gap[own].min(initial=0.0)))
            if bound == np.inf:  # two strands are pushed apart rightly until their centre lines cross
                bound = 0.5 * (self._radius(a) + self._radius(b))
            if depth > 0.0:
                found.append((a, b, depth, bound))
        return found


def _edges_of(triangles: IntArray, number: int) -> tuple[IntArray, IntArray, IntArray]:
    """Edges of a closed surface: ends and corners across them (E, 4), two triangles of each, edges of each triangle."""
    directed = np.stack([triangles[:, [0, 1]], triangles[:, [1, 2]], triangles[:, [2, 0]]], axis=1).reshape(-1, 2)
    across = triangles[:, [2, 0, 1]].ravel()
    ends, first, of_triangle, counts = np.unique(
        np.sort(directed, axis=1), axis=0, return_index=True, return_inverse=True, return_counts=True
    )
    of_triangle = of_triangle.reshape(-1)
    if len(counts) and counts.min() < 2:
        open_edge = ends[np.argmin(counts)]
        raise ContactError(
            f"DeformableDetector: the surface of body {number} is open at the edge between its points {open_edge[0]} and "
            f"{open_edge[1]}; give a closed one."
        )
    rest = np.setdiff1d(np.arange(len(directed)), first)
    second = np.empty(len(ends), dtype=np.int64)
    second[of_triangle[rest[::-1]]] = rest[::-1]
    edges = np.column_stack([ends, across[first], across[second]])
    faces = np.column_stack([first // 3, second // 3])
    return edges, faces, of_triangle.reshape(-1, 3)


def _first_of_vertex_pairs(kind: IntArray, point: IntArray, weight: FloatArray) -> npt.NDArray[np.bool_]:
    """Mark contacts, (n,), but of two that name the same two points the later: a vertex and a vertex see each other."""
    once = np.ones(len(kind), dtype=np.bool_)
    single = np.flatnonzero((kind != kernels.EDGE_EDGE) & (weight[:, 1].max(axis=1, initial=0.0) == 1.0))
    if len(single) > 1:
        other = np.take_along_axis(point[single, 1], weight[single, 1].argmax(axis=1)[:, None], axis=1)[:, 0]
        pairs = np.sort(np.column_stack([point[single, 0, 0], other]), axis=1)
        _, first = np.unique(pairs, axis=0, return_index=True)
        once[np.setdiff1d(single, single[first])] = False
    return once

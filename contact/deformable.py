"""Contacts between deforming bodies: closed triangle surfaces and strands (chains of points with a radius), also with themselves.

``DeformableDetector(...)`` builds a tree of boxes over the triangles and one over the edges of each body once;
``DeformableDetector.detect`` refits them every step and finds the pairs (:mod:`contact.deformable_kernels`). Each side of a
contact is a point of a feature, a weighted sum of up to three points.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from contact.deformable_kernels import find_contacts, place_on_same_features
from contact.errors import ContactError
from contact.side_kernels import EDGE_EDGE, VERTEX_FACE, Bodies, Kept, Near, Output, Work
from contact.surface_kernels import Features, depth_inside
from contact.trees import plant
from contact.vertex_kernels import MAX_ROUND

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

#: Triangles that may be near one vertex, at the start; the room grows when needed.
_NEAR = 256
#: Contacts at the start, for each point; the room grows when needed.
_ROOM = 4
#: Possible contacts of one vertex with one body, of which it keeps a few.
_KEPT = 2 * MAX_ROUND
#: A surface is flat about a point where the unit normals of the triangles there differ by less than this.
_STRAIGHT = 1e-6
#: Room of a vertex that differs by less is the same, m: the crossing closest to the vertex then stands for all.
_ALIKE = 1e-9
#: A face lies along a contact where the cosine of their normals is more than this.
_ABOUT = 0.7


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
        How deep a point may lie behind each triangle and still be pushed out; half the thickness of the material is sensible.
    rigid : bool
        Whether it does not deform: then its keen edges also press the flat edges of others, between their vertices.
    """

    n_points: int
    triangles: IntArray
    depth: FloatArray
    rigid: bool = False


@dataclass(frozen=True)
class Strand:
    """A chain of points with a radius: the centre line of a rod.

    Parameters
    ----------
    arc : ndarray, (n,), m
        Place of each point along the strand, increasing.
    radius : float, m
        Half of its thickness.
    rigid : bool
        Whether it is a ball or a capsule, which does not deform: it has contact with all facets about it.
    """

    arc: FloatArray
    radius: float
    rigid: bool = False

    @property
    def n_points(self) -> int:
        """Number of points."""
        return len(self.arc)

    @property
    def spacing(self) -> float:
        """Mean distance of neighbouring points along the strand, m."""
        return float(self.arc[-1] - self.arc[0]) / max(self.n_points - 1, 1)


@dataclass
class DeformableContacts:
    """Contacts of deforming bodies at one instant.

    Attributes
    ----------
    kind : ndarray, (n,)
        ``VERTEX_FACE``, ``EDGE_EDGE`` or ``POINT_SEGMENT`` of :mod:`contact.side_kernels`.
    key : ndarray, (n,)
        Number of the pair of features: different for each contact, and the same from step to step while they stay in contact.
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

    def select(self, chosen: IntArray | npt.NDArray[np.bool_]) -> DeformableContacts:
        """Return some of the contacts, by mask or number."""
        return DeformableContacts(*(getattr(self, field.name)[chosen] for field in fields(self)))

    def needed(self, bodies: Sequence[Surface | Strand]) -> npt.NDArray[np.bool_]:
        """Mark the contacts, (n,), that hold the (nb,) bodies apart.

        A vertex of a flat surface just off a face of a rigid body hangs on the vertices that lie on this face by several edges.
        All of these cross the edge of the body there, and each crossing asks for the same once the vertices on the face are held:
        that the vertex off it stays below. The one that leaves it least room is enough; with all of them forces would not be
        unique, and a contact problem in which they slide has next to no answer that iterations find.
        """
        keep = np.ones(len(self), dtype=np.bool_)
        rigid, soft = (
            np.array([isinstance(b, Surface) and b.rigid == of for b in bodies], dtype=np.bool_) for of in (True, False)
        )
        side = np.where(rigid[self.body[:, 1]], 0, 1)
        number = np.flatnonzero((self.kind == EDGE_EDGE) & rigid[self.body].any(axis=1) & soft[self.body].any(axis=1))
        if len(number) < 2:
            return keep
        own, other = side[number], 1 - side[number]
        ends, weight = self.point[number, own, :2], self.weight[number, own, :2]
        lies = self._lies(ends, self.body[number, other], self.frame[number, 0] * np.where(own == 0, 1.0, -1.0)[:, None], rigid)
        single = lies[:, 0] != lies[:, 1]
        number, off = number[single], np.where(lies[single, 0], 1, 0)
        ends, weight, other = ends[single], weight[single], other[single]
        each = np.arange(len(number))
        share = weight[each, off]
        edge = np.sort(self.point[number, other, :2], axis=1)
        group = np.unique(np.column_stack([ends[each, off], edge]), axis=0, return_inverse=True)[1].reshape(-1)
        room = np.round(self.gap[number] / share / _ALIKE)
        order = np.lexsort((-share, room, group))
        first = np.ones(len(order), dtype=np.bool_)
        first[1:] = group[order][1:] != group[order][:-1]
        keep[number[order[~first]]] = False
        return keep

    def _lies(self, ends: IntArray, against: IntArray, normal: FloatArray, rigid: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """Whether vertices (k, 2) have contact with a face of rigid bodies (k,) that looks about along normals (k, 3), (k, 2)."""
        on_face = np.flatnonzero((self.kind == VERTEX_FACE) & rigid[self.body[:, 1]])
        base = len(rigid)
        held = base * self.point[on_face, 0, 0] + self.body[on_face, 1]
        order = np.argsort(held, kind="stable")
        held, along = held[order], self.frame[on_face[order], 0]
        asked = base * ends + against[:, None]
        first, last = np.searchsorted(held, asked), np.searchsorted(held, asked, side="right")
        lies = np.zeros(ends.shape, dtype=np.bool_)
        for k in range(int((last - first).max(initial=0))):
            of, end = np.nonzero(first + k < last)
            lies[of, end] |= (along[first[of, end] + k] * normal[of]).sum(axis=1) > _ABOUT
        return lies

    def on_same_features(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Weights (n, 2, 3) and frames (n, 3, 3), of which only the normals count, where points (N, 3), m, are now.

        Edges that cross go on for a while beyond their ends as lines, and faces as planes: the two points of a contact then stay
        apart along its normal, however they slide. Further out, and where a vertex is on an edge, on a vertex or on a strand,
        weights stay, and the normal is zero.
        """
        weight, frame = self.weight.copy(), np.zeros_like(self.frame)
        place_on_same_features(points, self.kind, self.point, self.frame, weight, frame)
        return weight, frame


class DeformableDetector:
    """Finds the contacts between deforming bodies, step after step.

    Vertices are tested against surfaces (:mod:`contact.vertex_kernels`), sharp edges and segments of strands against each other,
    and points against strands (:mod:`contact.deformable_kernels`).

    Parameters
    ----------
    bodies : sequence of Surface or Strand
        The nb bodies; their points follow one another in this order.
    may_contact : array_like of bool, (nb, nb)
        Which bodies can be in contact with each other (symmetric), and on the diagonal, which with themselves. Within a body,
        features that share a point are never in contact, nor are segments of a strand with less than pi times the sum of the
        radii between them along it.
    points : array_like, (N, 3), m
        Positions for which the trees are built; any typical ones, e.g. those at rest.

    Raises
    ------
    ContactError
        An array of the wrong shape, a surface with an open edge, or a number that is no point.
    """

    def __init__(self, bodies: Sequence[Surface | Strand], may_contact: npt.ArrayLike, points: npt.ArrayLike) -> None:
        self.bodies = tuple(bodies)
        nb = len(self.bodies)
        matrix = np.asarray(may_contact)
        if matrix.shape != (nb, nb) or matrix.dtype != np.bool_ or not np.array_equal(matrix, matrix.T):
            raise ContactError(
                f"DeformableDetector: may_contact has shape {matrix.shape} and type {matrix.dtype}; give a symmetric matrix of "
                f"bool, ({nb}, {nb})."
            )
        self.start: IntArray = np.concatenate([[0], np.cumsum([body.n_points for body in self.bodies])]).astype(np.int64)
        self.n_points = int(self.start[-1])
        where = self._points(points)
        self._features, first_triangle, first_edge = self._number_features(where)
        triangles, edges = self._features.triangles, self._features.edges
        self._triangle_trees = plant([where[own].mean(axis=1) for own in np.split(triangles, first_triangle[1:-1])][:nb], 3)
        self._edge_trees = plant([where[own[:, :2]].mean(axis=1) for own in np.split(edges, first_edge[1:-1])][:nb], 2)
        self._table = Bodies(
            self.start,
            first_edge,
            np.array([isinstance(body, Strand) for body in self.bodies], dtype=np.bool_),
            np.array([body.radius if isinstance(body, Strand) else 0.0 for body in self.bodies], dtype=np.float64),
            np.array([body.spacing if isinstance(body, Strand) else 0.0 for body in self.bodies], dtype=np.float64),
            np.array([np.max(body.depth, initial=0.0) if isinstance(body, Surface) else 0.0 for body in self.bodies]),
            np.array([body.rigid for body in self.bodies], dtype=np.bool_),
        )
        self._pairs: IntArray = np.ascontiguousarray(np.argwhere(np.triu(matrix)), dtype=np.int64)
        self._used: IntArray = np.unique(self._pairs)
        trees = (self._triangle_trees, self._edge_trees)
        largest = max([int(np.diff(forest.root).max(initial=1)) for forest in trees])
        self._stack: IntArray = np.zeros(2 * largest.bit_length() + 4, dtype=np.int64)
        self._hits: IntArray = np.zeros(largest, dtype=np.int64)
        self._kept = Kept(np.zeros(_KEPT), np.zeros((_KEPT, 3)), np.zeros(_KEPT, dtype=np.int64))
        self._make_near(_NEAR)
        self._make_room(_ROOM * self.n_points + 16)

    def _number_features(self, where: FloatArray) -> tuple[Features, IntArray, IntArray]:
        """Features of all bodies, and the first triangle and the first edge of each body, (nb + 1,) each."""
        triangles, edges, faces, of_triangle = [], [], [], []
        first_triangle, first_edge = [0], [0]
        for k, body in enumerate(self.bodies):
            start = self.start[k]
            if isinstance(body, Surface):
                corners = self._checked(body, k)
                own_edges, own_faces, own_of_triangle = _edges_of(corners, k)
                own_edges = np.where(own_edges >= 0, own_edges + start, -1)
                triangles.append(corners + start)
                faces.append(own_faces + first_triangle[-1])
                of_triangle.append(own_of_triangle + first_edge[-1])
                first_triangle.append(first_triangle[-1] + len(corners))
            else:
                n = max(body.n_points - 1, 0)
                ends = start + np.arange(n)
                own_edges = np.column_stack([ends, ends + 1, np.full((n, 2), -1)])
                faces.append(np.full((n, 2), -1))
                first_triangle.append(first_triangle[-1])
            edges.append(own_edges)
            first_edge.append(first_edge[-1] + len(own_edges))
        corners, n_edges = _stacked(triangles, 3), first_edge[-1]
        around = np.argsort(corners.ravel(), kind="stable") // 3
        counted = np.bincount(corners.ravel(), minlength=self.n_points)
        depths = [np.asarray(body.depth, dtype=np.float64) for body in self.bodies if isinstance(body, Surface)]
        arcs = [np.asarray(b.arc, dtype=np.float64) if isinstance(b, Strand) else np.zeros(b.n_points) for b in self.bodies]
        features = Features(
            where, corners, _stacked(of_triangle, 3), _stacked(edges, 4), _stacked(faces, 2),
            np.concatenate([[0], np.cumsum(counted)]).astype(np.int64), around.astype(np.int64),
            np.concatenate([np.zeros(0), *depths]), np.concatenate([np.zeros(0), *arcs]),
            np.zeros((len(corners), 3)), np.zeros((self.n_points, 3)), np.zeros((n_edges, 3)),
            *(np.zeros(n, dtype=np.bool_) for n in (n_edges, n_edges, n_edges, self.n_points)),
        )  # fmt: skip
        for k, body in enumerate(self.bodies):
            if isinstance(body, Surface) and body.rigid:
                features.amid[self.start[k] : self.start[k + 1]] = _amid_faces(where[self.start[k] : self.start[k + 1]], body)
        return features, np.array(first_triangle, dtype=np.int64), np.array(first_edge, dtype=np.int64)

    def _points(self, points: npt.ArrayLike) -> FloatArray:
        where = np.require(points, np.float64, ("C", "W"))
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

    def _make_near(self, room: int) -> None:
        self._near = Near(np.zeros(room, dtype=np.int64), np.zeros(room, dtype=np.int64), np.zeros(room), np.zeros((room, 3)))

    def _make_room(self, room: int) -> None:
        key_base = max(self.n_points, len(self._features.edges), MAX_ROUND * len(self.bodies)) + 1
        self._out = Output(
            key_base, np.zeros(room, dtype=np.int64), np.zeros(room, dtype=np.int64), np.zeros((room, 2), dtype=np.int64),
            np.zeros(room), np.zeros((room, 3, 3)), np.zeros((room, 2, 3), dtype=np.int64), np.zeros((room, 2, 3)),
        )  # fmt: skip

    def detect(self, points: npt.ArrayLike, margin: npt.ArrayLike) -> DeformableContacts:
        """Find all contacts with gap < margin.

        Parameters
        ----------
        points : ndarray, (N, 3), m
            Positions.
        margin : float or ndarray, (nb, nb), m
            Margin of each pair of bodies, a < b at [a, b].

        Returns
        -------
        DeformableContacts
            Ordered by pair of bodies, then kind, then feature. A pair of vertices is reported once.

        Raises
        ------
        ContactError
            Points of the wrong shape, or a position or margin that is not finite.
        """
        where = self._points(points)
        nb = len(self.bodies)
        margins = np.array(np.broadcast_to(np.asarray(margin, dtype=np.float64), (nb, nb)))
        if not np.isfinite(margins).all():
            raise ContactError("DeformableDetector: a margin is not finite; give lengths in m.")
        features = self._features._replace(points=where)
        count = self._find(features, margins)
        while count < 0 or count > len(self._out.kind):
            if count < 0:
                self._make_near(2 * len(self._near.feature))
            else:
                self._make_room(2 * count)
            count = self._find(features, margins)
        out = self._out
        once = _first_of_vertex_pairs(out.kind[:count], out.point[:count], out.weight[:count])
        body, frame = out.body[:count][once], out.frame[:count][once]
        point, weight = out.point[:count][once], out.weight[:count][once]
        position = np.einsum("msi,msic->msc", weight, where[point])
        side = np.array([-1.0, 1.0])
        position += (side * self._table.radius[body])[:, :, None] * frame[:, None, 0]
        return DeformableContacts(
            out.kind[:count][once], out.key[:count][once], body, out.gap[:count][once], frame, point, weight, position
        )  # fmt: skip

    def _find(self, features: Features, margins: FloatArray) -> int:
        """Fill the output; return the number of contacts, or -1 when there is too little room for the features near a vertex."""
        work = Work(self._stack, self._hits, self._near, self._kept)
        trees = (self._triangle_trees, self._edge_trees)
        return find_contacts(features, self._table, self._used, *trees, self._pairs, margins, work, self._out)

    def overlaps(self, points: npt.ArrayLike) -> list[tuple[int, int, float, float]]:
        """Find different bodies that overlap, however deeply; slow, for the start.

        Returns
        -------
        list of (a, b, depth, bound)
            Bodies a < b, the largest depth of a point of one in the other (m; of two strands, the overlap where they are
            closest), and how deep it may be for ``detect`` to see and undo it.
        """
        where, found = self._points(points), []
        contacts, triangles, radius = self.detect(points, 0.0), self._triangle_trees.first, self._table.radius
        for a, b in self._pairs.tolist():
            if a == b:
                continue
            depth, bound = 0.0, np.inf
            for one, other in ((a, b), (b, a)):
                surface = self.bodies[other]
                if isinstance(surface, Surface):
                    inside = depth_inside(
                        where, self.start[one], self.start[one + 1], self._features.triangles, triangles[other],
                        triangles[other + 1],
                    )  # fmt: skip
                    depth = max(depth, inside + (float(radius[one]) if inside > 0.0 else 0.0))
                    bound = min(bound, float(np.min(surface.depth, initial=np.inf)) + float(radius[one]))
            own = (contacts.body == (a, b)).all(axis=1) | (contacts.body == (b, a)).all(axis=1)
            depth = max(depth, -float(contacts.gap[own].min(initial=0.0)))
            if bound == np.inf:  # the normal of two strands is right until their centre lines cross
                bound = 0.5 * float(radius[a] + radius[b])
            if depth > 0.0:
                found.append((a, b, depth, bound))
        return found


def _amid_faces(where: FloatArray, body: Surface) -> npt.NDArray[np.bool_]:
    """Points of a surface, (n,), about which it is flat."""
    corner = where[body.triangles]
    normal = np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0])
    normal /= np.maximum(np.linalg.norm(normal, axis=1, keepdims=True), 1e-300)
    low, high = np.full((len(where), 3), np.inf), np.full((len(where), 3), -np.inf)
    np.minimum.at(low, body.triangles.ravel(), np.repeat(normal, 3, axis=0))
    np.maximum.at(high, body.triangles.ravel(), np.repeat(normal, 3, axis=0))
    return np.asarray((high - low).max(axis=1) < _STRAIGHT)


def _stacked(parts: list[IntArray], width: int) -> IntArray:
    """Rows of all parts, (k, width), as int64 in C order."""
    return np.ascontiguousarray(np.concatenate([np.zeros((0, width)), *parts]), dtype=np.int64)


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
    """Mark all contacts, (n,), except the later of two between the same two points: each vertex finds the other."""
    once = np.ones(len(kind), dtype=np.bool_)
    single = np.flatnonzero((kind != EDGE_EDGE) & (weight[:, 1].max(axis=1, initial=0.0) == 1.0))
    if len(single) > 1:
        other = np.take_along_axis(point[single, 1], weight[single, 1].argmax(axis=1)[:, None], axis=1)[:, 0]
        pairs = np.sort(np.column_stack([point[single, 0, 0], other]), axis=1)
        _, first = np.unique(pairs, axis=0, return_index=True)
        once[np.setdiff1d(single, single[first])] = False
    return once

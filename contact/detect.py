"""Contacts of points with shapes: which, how deep, where, and in which frame.

``Detector(...)`` allocates once; ``Detector.detect`` is called every step: broad phase
(:mod:`contact.broad_phase`), then the exact distance of each candidate point in the frame of the shape
(:mod:`contact.detect_kernels`), then that of spheres and ends of capsules from the triangles of meshes
(:mod:`contact.round_kernels`), then which face of a mesh holds a corner at an edge (:mod:`contact.facing_kernels`), then
crossing edges of boxes (:mod:`contact.edge_kernels`), then cylinders as smooth surfaces (:mod:`contact.rim_kernels`), then
crossing edges of meshes and capsules (:mod:`contact.crease_kernels`), then triangles against the distance of turned shapes
(:mod:`contact.face_kernels`), of whose contacts a number is kept (:mod:`contact.thinning_kernels`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from contact.broad_phase import BroadPhase, any_able
from contact.compiled import Fixed
from contact.crease_kernels import creases_on_cylinders, crossing_creases
from contact.creases import CreaseTable, make_triangles
from contact.detect_kernels import THREADED, TURNED, VERTEX, place_shapes, search
from contact.edge_kernels import EDGE_PAIRS, crossing_edges
from contact.errors import ContactError
from contact.face_kernels import Faces, contacts_of_faces
from contact.faces import faced_pairs, make_faces
from contact.facing_kernels import faced_corners
from contact.metrics import any_of
from contact.placed_kernels import Output, Shapes
from contact.rim_kernels import rolling_contacts
from contact.round_kernels import measured_rounds, nearest_vertices, without_held
from contact.shape_points import ShapePoints, bodies_in_contact, radii, whole_numbers
from contact.shapes import Box, Capsule, Mesh, PlacedShape, Revolved, ShapeTable, Thread
from contact.thinning_kernels import thinned

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

#: ``PointContacts.feature`` is less than this where there are no edges of meshes and capsules, see ``Detector.features``.
FEATURES = EDGE_PAIRS + 1

#: Contacts of two bodies that are kept where one of them is a turned shape.
MOST_PER_PAIR = 120


@dataclass
class PointContacts:
    """Contacts of points with shapes at one instant.

    They are ordered by shape, then by point; those of edges of boxes follow, then those of cylinders, then those of edges of
    meshes and capsules, then those of triangles.

    The arrays are views of the detector's own, which its next ``detect`` overwrites; ``copy`` keeps them.

    Attributes
    ----------
    point : ndarray, (n,)
        Number of the point; where edges cross, of the corner at which the edge of the point's body starts; for a cylinder, of the
        point of the rim, which moves along it, or of the first one for contacts on mantle and caps; for an edge of a mesh or the
        axis of a capsule, and for a triangle, the first point of the shape.
    shape : ndarray, (n,)
        Number of the placed shape.
    gap : ndarray, (n,), m
        Signed distance of the point minus its radius; negative is penetration.
    frame : ndarray, (n, 3, 3)
        Rows: normal, first tangent, second tangent, in world components; right-handed and orthonormal. The
        normal points from the shape to the point.
    position : ndarray, (n, 3), m
        Where the force acts, in the world: the point moved by its radius against the normal; half-way between two edges, two
        mantles, or round bodies (a sphere or a round end of a body, and a sphere, a capsule or a cylinder).
    feature : ndarray, (n,)
        0 for a point, else 1 plus the number of the pair of edges (12 times the edge of the point's body, plus the other edge);
        for a cylinder see :mod:`contact.rim_kernels`, for edges of meshes and capsules :mod:`contact.crease_kernels`; for
        triangles their number follows. Less than ``Detector.features``. Each triple of point, shape and feature occurs once.
    """

    point: IntArray
    shape: IntArray
    gap: FloatArray
    frame: FloatArray
    position: FloatArray
    feature: IntArray

    def __len__(self) -> int:
        """Return the number of contacts."""
        return len(self.point)

    @property
    def n(self) -> int:
        """Number of contacts."""
        return len(self.point)

    def copy(self) -> PointContacts:
        """Return the contacts with arrays of their own."""
        return PointContacts(
            self.point.copy(), self.shape.copy(), self.gap.copy(), self.frame.copy(), self.position.copy(), self.feature.copy()
        )

    def select(self, which: slice | BoolArray | IntArray) -> PointContacts:
        """Return some of the contacts, by mask (n,), numbers or slice, with arrays of their own."""
        if isinstance(which, slice):
            return PointContacts(
                self.point[which], self.shape[which], self.gap[which], self.frame[which], self.position[which],
                self.feature[which],
            ).copy()  # fmt: skip
        index = np.flatnonzero(which) if which.dtype == np.bool_ else which
        return PointContacts(
            self.point[index], self.shape[index], self.gap[index], self.frame[index], self.position[index], self.feature[index]
        )


class Detector:
    """Finds the contacts of a fixed set of points with a fixed set of shapes, step after step.

    Of its 14 parameters six come from :func:`contact.shape_points.first_points` together; each can be left out.

    Parameters
    ----------
    shapes : sequence of PlacedShape
        The s shapes.
    point_body : array_like, (p,)
        Body of each point; keep the points of a body together (see :class:`contact.broad_phase.BroadPhase`).
    point_radius : array_like, (p,), m
        Radius of each point: 0 for a node of a soft body, the radius for the centre of a sphere.
    point_surface : array_like, (p,)
        Surface material of each point, for ``friction``.
    may_contact : array_like of bool, (nb, nb)
        Whether points of body i are tested against shapes of body j, at [i, j]. The diagonal is ignored: no
        body is in contact with itself.
    max_contacts : int, optional
        Room for this many contacts in one step; without it the room grows as needed.
    shape_corner : array_like, (s,), optional
        For each box whose corners are points, the first of the eight, which lie in the order of ``Box.features``; else -1. Such a
        corner is tested against boxes by :func:`contact.detect_kernels.corner_distance`, and the edges of such a box against
        those of others.
    shape_rim : array_like, (s,), optional
        For each cylinder or cone whose rims are points, the first of the 2 RIM_POINTS, in the order of its ``features``; else -1.
        Its rims, caps and mantle are then smooth surfaces to planes, boxes, capsules, cylinders and meshes, see
        :mod:`contact.rim_kernels`; the points themselves only lend their numbers. Centres of spheres, ends of capsules, corners
        of boxes and vertices of meshes have contact with it as points of their own.
    shape_edge : array_like, (s,), optional
        For each mesh or capsule whose vertices or ends are points, the first of them, which lie in the order of ``features``;
        else -1. Its edges, and the axis of a capsule, are then tested against those of meshes, of boxes with ``shape_corner``
        and of capsules, and those of a mesh against cylinders with ``shape_rim``.
        Vertices of meshes, and corners of boxes at meshes, take the face that holds them, see :mod:`contact.facing_kernels`.
    shape_face : array_like, (s,), optional
        For each Revolved or mesh whose points are those of ``features``, the first of them; else -1. Its triangles are then
        tested against other shapes, see :func:`contact.faces.faced_pairs`.
    shape_centre : array_like, (s,), optional
        For each sphere whose centre is a point, that point; else -1. Its contacts with spheres, boxes, capsules and Revolveds are
        those of the centre alone, since their distances are exact: not those of their points too, and of two spheres one.
    shape_thread : array_like, (s,), optional
        For each Thread whose points are those of ``features``, the first of them; else -1. Ends of a thread do not stop points of
        one that is screwed through them, see :func:`contact.turned_kernels.screwed_distance`.
    most_per_pair : int
        Where one of two bodies has a Revolved or Thread, this many of their contacts are kept, see
        :func:`contact.thinning_kernels.thinned`.
    within : array_like of bool, (nb, nb), optional
        Pairs of bodies with a smaller margin in :meth:`detect_placed`: links of one robot, which moves as a whole.

    Attributes
    ----------
    shapes : tuple of PlacedShape
        The shapes.
    point_body, point_radius, point_surface : ndarray, (p,)
        As given.
    shape_body, shape_surface : ndarray, (s,)
        Body and surface material of each shape.
    features : int
        ``PointContacts.feature`` is less than this.
    nested : bool
        Whether the contacts within a margin are those within any larger one whose gap is below it, in the same order: where all
        are of points on shapes, one by one.

    Raises
    ------
    ContactError
        When an array has the wrong shape or names a body that is not there, or a radius is negative.
    """

    def __init__(
        self,
        shapes: Sequence[PlacedShape],
        point_body: npt.ArrayLike,
        point_radius: npt.ArrayLike,
        point_surface: npt.ArrayLike,
        may_contact: npt.ArrayLike,
        max_contacts: int | None = None,
        shape_corner: npt.ArrayLike | None = None,
        shape_rim: npt.ArrayLike | None = None,
        shape_edge: npt.ArrayLike | None = None,
        shape_face: npt.ArrayLike | None = None,
        shape_centre: npt.ArrayLike | None = None,
        shape_thread: npt.ArrayLike | None = None,
        most_per_pair: int = MOST_PER_PAIR,
        within: npt.ArrayLike | None = None,
    ) -> None:
        self.shapes = tuple(shapes)
        self._may_contact = matrix = bodies_in_contact(may_contact)
        self._mutual, self._n_bodies = bool((matrix == matrix.T).all()), len(matrix)
        self._within = np.zeros((0, 0), dtype=np.bool_) if within is None else np.array(within, order="C")
        if within is not None and (self._within.shape != matrix.shape or self._within.dtype != np.bool_):
            raise ContactError(
                f"Detector: within has shape {self._within.shape} and type {self._within.dtype}; give bool of the shape of "
                f"may_contact, {matrix.shape}."
            )
        self._take_bodies(point_body, point_radius, point_surface)
        given = ShapePoints(self.point_body, self.point_radius, self.shapes, self.shape_body)
        self._shape_corner = given.firsts("shape_corner", shape_corner)
        self._shape_rim = given.firsts("shape_rim", shape_rim)
        self._shape_centre = given.firsts("shape_centre", shape_centre)
        edge, face = given.firsts("shape_edge", shape_edge), given.firsts("shape_face", shape_face)
        self._mark_points(given)
        self._grows = max_contacts is None
        room = 4 * len(self.point_body) + 32 * int((self._shape_corner >= 0).sum()) if max_contacts is None else int(max_contacts)
        if room < 0:
            raise ContactError(
                f"Detector: max_contacts is {max_contacts}; give 0 or more, or leave it out for as many as it takes."
            )
        self._make_room(room)
        self._prepare_search()
        self._prepare_edges(edge)
        self._prepare_rounds(given, edge)
        self._prepare_ends(given, edge)
        self._take_faces(face, int(most_per_pair))
        beyond_points = self._boxes_near or self._rolls or self._creases is not None or self._faces is not None
        self.nested = not (beyond_points or self._has_centres or self._neighbours is not None or self._thins is not None)
        self._cover(given, (self._shape_corner, edge, face))
        thread = given.firsts("shape_thread", shape_thread)
        for s in np.flatnonzero(thread >= 0):
            self._point_corner[given.own(int(s), int(thread[s]))] = THREADED - s

    def _take_bodies(self, point_body: npt.ArrayLike, point_radius: npt.ArrayLike, point_surface: npt.ArrayLike) -> None:
        """Check and keep the bodies and surfaces of points and shapes, and the radii of points."""
        self.point_body = whole_numbers("point_body", point_body, None, self._n_bodies)
        n_points = len(self.point_body)
        self.point_surface = whole_numbers("point_surface", point_surface, n_points, None)
        self.point_radius = radii(point_radius, n_points)
        self.shape_body = whole_numbers("body of shapes", [s.body for s in self.shapes], None, self._n_bodies)
        self.shape_surface = whole_numbers("surface of shapes", [s.surface for s in self.shapes], None, None)
        self._last_surface = max(self.point_surface.max(initial=-1), self.shape_surface.max(initial=-1))

    def _mark_points(self, given: ShapePoints) -> None:
        """Note which points are corners of boxes, lie on rims, or are centres of spheres."""
        n_points = len(self.point_body)
        self._point_corner: IntArray = np.full(n_points, -1, dtype=np.int64)
        self._on_rim, self._is_centre = np.zeros(n_points, dtype=np.bool_), np.zeros(n_points, dtype=np.bool_)
        for s in np.flatnonzero(self._shape_corner >= 0):
            self._point_corner[given.own(int(s), self._shape_corner[s])] = s
        for s in np.flatnonzero(self._shape_rim >= 0):
            self._on_rim[given.own(int(s), self._shape_rim[s])] = True
        self._is_centre[self._shape_centre[self._shape_centre >= 0]] = True
        self._has_centres = bool(self._is_centre.any())

    def _prepare_search(self) -> None:
        """Make what :func:`search` reads and works in: tables of the shapes, runs of points, poses, margins."""
        self._place_shapes, self._search = Fixed(place_shapes), Fixed(search)
        matrix, n_points, n_shapes = self._may_contact, len(self.point_body), len(self.shapes)
        largest = [float(self.point_radius[matrix[self.point_body, body]].max(initial=0.0)) for body in self.shape_body]
        self._table = ShapeTable([s.shape for s in self.shapes], largest)
        self._broad = BroadPhase(n_shapes, self.point_body)
        self._margin, self._reach, self._rim_reach = np.zeros(n_points), np.zeros(n_points), np.zeros(n_shapes)
        #: the same margins for those points alone that are looked at, -inf for all others
        self._margin_among = np.empty(n_points)
        #: margin of the last call, if it was one number
        self._last_margin: float | None = None
        self._local_rotation = np.array([s.rotation for s in self.shapes]).reshape(n_shapes, 3, 3)
        self._local_translation = np.array([s.translation for s in self.shapes]).reshape(n_shapes, 3)
        self._rotation, self._translation = np.zeros((n_shapes, 3, 3)), np.zeros((n_shapes, 3))
        self._closer = 0.0
        self._none_placed, self._n_pairs, self._edge = np.zeros(0, dtype=np.int64), 0, np.zeros((3, 3))

    def _prepare_edges(self, edge: IntArray) -> None:
        """Note which shapes have edges or rims that may cross those of others: points do not see that."""
        self._crossing_edges, self._rolling_contacts = Fixed(crossing_edges), Fixed(rolling_contacts)
        self._crossing_creases, self._creases_on_cylinders = Fixed(crossing_creases), Fixed(creases_on_cylinders)
        self._faced_corners = Fixed(faced_corners)
        #: shapes that are boxes, and bodies whose points are corners of some; edges of others cannot cross
        self._box: BoolArray = np.array([isinstance(placed.shape, Box) for placed in self.shapes], dtype=np.bool_)
        self._capsule: BoolArray = np.array([isinstance(placed.shape, Capsule) for placed in self.shapes], dtype=np.bool_)
        self._cornered = np.zeros(self._n_bodies, dtype=np.bool_)
        self._cornered[self.shape_body[self._shape_corner >= 0]] = True
        self._boxes_near = bool(self._may_contact[np.ix_(self.shape_body[self._box], self._cornered)].any() or not self._mutual)
        self._box_edges = self._box[:, None] & self._cornered[self._broad.run_body]
        self._rolls = bool((self._shape_rim >= 0).any())
        self._creases = self._crease_table(edge)
        self._crossed, self._rims_crossed = self._crossed_by(self._cross), self._crossed_by(self._on_rims)
        #: points of bodies with crossing edges, see :func:`contact.crease_kernels.without_needless`
        self._edged: IntArray = np.zeros(0, dtype=np.int64)
        if self._creases is not None:
            edged = np.unique(self.shape_body[(self._cross & ~self._capsule[:, None] & ~self._capsule).any(axis=1)])
            self._edged = np.flatnonzero(np.isin(self.point_body, edged))
            self._flush_by = self._crossed_by(self._flush)
            self._point_corner[(self._creases.corners.shape >= 0) & (self._point_corner < 0)] = VERTEX
        walls = [len(placed.shape.points) - 1 for placed in self.shapes if isinstance(placed.shape, Revolved)]
        self.features = max([FEATURES, *walls, *([] if self._creases is None else [self._creases.features])])

    def _prepare_rounds(self, given: ShapePoints, first: IntArray) -> None:
        """Note which meshes points with a radius may be near, and take their triangles; the neighbours of their vertices."""
        self._measured_rounds, self._nearest_vertices = Fixed(measured_rounds), Fixed(nearest_vertices)
        mesh: BoolArray = np.array([isinstance(placed.shape, Mesh) for placed in self.shapes], dtype=np.bool_)
        starts = self._broad.run_start[:-1]
        thick = np.maximum.reduceat(self.point_radius, starts) > 0.0 if len(starts) else np.zeros(0, dtype=np.bool_)
        #: whether points of a run are measured, (s, runs)
        self._rounds = mesh[:, None] & thick & self._may_contact[np.ix_(self._broad.run_body, self.shape_body)].T
        self._has_rounds = bool(self._rounds.any())
        if self._has_rounds:
            shapes = [placed.shape for placed in self.shapes]
            self._triangles = make_triangles(shapes) if self._creases is None else self._creases.creases.triangles
        #: neighbours of vertices of meshes, and centres of the spheres that are measured at them; None without such
        self._neighbours: tuple[IntArray, IntArray, IntArray] | None = None
        sphere = self._shape_centre >= 0
        own = np.flatnonzero((first >= 0) & mesh)
        if self._mutual and self._may_contact[np.ix_(self.shape_body[own], self.shape_body[sphere])].any():
            self._neighbours = (*given.neighbours(own, first[own]), self._shape_centre)

    def _prepare_ends(self, given: ShapePoints, edge: IntArray) -> None:
        """Note which shape vertices of meshes, ends of capsules and points of rims belong to, and which may be near vertices."""
        self._without_held = Fixed(without_held)
        first = np.maximum(edge, self._shape_rim)
        self._owner: IntArray = np.full(len(self.point_body), -1, dtype=np.int64)
        ends, meshed = np.zeros(len(self.shapes), dtype=np.bool_), np.zeros(self._n_bodies, dtype=np.bool_)
        for s in np.flatnonzero(first >= 0).tolist():
            shape, points = self.shapes[s].shape, given.own(s, int(first[s]))
            if isinstance(shape, Mesh):
                meshed[self.shape_body[s]] = True
            elif (self.point_radius[points] == shape.features()[1]).all():
                ends[s] = True
            else:
                continue
            self._owner[points] = s
        #: first points of shapes (s,), and which runs of points may have vertices that are left out, (s, runs)
        self._first_owned, runs = first, self._broad.run_body
        self._held = ends[:, None] & meshed[runs] & self._may_contact[np.ix_(runs, self.shape_body)].T
        self._holds = bool(self._held.any())

    def _cover(self, given: ShapePoints, kinds: Sequence[IntArray]) -> None:
        """Note which points are of shapes whose distance says all that spheres need to know, and which are of turned shapes."""
        self._covered = self._is_centre.copy()
        for firsts in kinds:
            for s in np.flatnonzero(firsts >= 0):
                shape, own = self.shapes[s].shape, given.own(int(s), int(firsts[s]))
                if isinstance(shape, Box | Capsule | Revolved):
                    self._covered[own] = True
                if isinstance(shape, Revolved):
                    self._point_corner[own] = TURNED

    def _crease_table(self, first: IntArray) -> CreaseTable | None:
        """Segments of the shapes; None where none of them can cross, so that their kernel is neither called nor compiled."""
        kinds = [type(placed.shape) for placed in self.shapes]
        first = np.maximum(first, self._shape_corner)
        box, rims = self._box, self._shape_rim >= 0
        mesh = np.array([kind is Mesh for kind in kinds], dtype=np.bool_)
        pointed = self._may_contact[np.ix_(self.shape_body, self.shape_body)] & (np.maximum(first, self._shape_rim) >= 0)[:, None]
        both = pointed | pointed.T
        edged = np.array([kind in (Mesh, Capsule, Box) for kind in kinds], dtype=np.bool_)
        self._cross = both & edged[:, None] & edged & ~(box[:, None] & box)
        self._on_rims = both & ((rims[:, None] & mesh) | (rims[:, None] & mesh).T)
        if not (self._cross | self._on_rims).any():
            return None
        #: pairs of a mesh with a mesh or box, whose corners may be at edges of each other
        self._flush = self._cross & ((mesh[:, None] & (mesh | box)) | (mesh[:, None] & (mesh | box)).T)
        return CreaseTable([placed.shape for placed in self.shapes], np.maximum(first, self._shape_rim), self._margin)

    def _take_faces(self, first: IntArray, most: int) -> None:
        """Make the triangles of the shapes, and note of which pairs of bodies contacts are thinned out."""
        self._contacts_of_faces = Fixed(contacts_of_faces)
        shapes = [placed.shape for placed in self.shapes]
        if most < 1:
            raise ContactError(f"Detector: most_per_pair is {most}; give a whole number of at least 1.")
        self._most = most
        turned = np.zeros(len(self._may_contact), dtype=np.bool_)
        turned[[body for shape, body in zip(shapes, self.shape_body, strict=True) if isinstance(shape, Revolved | Thread)]] = True
        self._thins = (turned[:, None] | turned) & (self._may_contact | self._may_contact.T) if turned.any() else None
        pairs = self._may_contact[np.ix_(self.shape_body, self.shape_body)] & (first >= 0)[:, None]
        faced = faced_pairs(shapes, pairs) if turned.any() else np.zeros((0, 0), dtype=np.bool_)
        self._faces: Faces | None = make_faces(shapes, first, faced, self.features) if faced.any() else None
        if self._faces is not None:
            self.features += int(np.diff(self._faces.start).max())

    def _crossed_by(self, able: BoolArray) -> BoolArray | None:
        """Which shapes may be crossed by one of the body of each run of points, (s, runs), given which shapes can (s, s).

        None where no two can, or where no pair of shapes needs to be near: only one of two has points for the other.
        """
        if not able.any() or not self._mutual:
            return None
        out = np.zeros((len(able), len(self._broad.run_body)), dtype=np.bool_)
        for run, body in enumerate(self._broad.run_body):
            out[:, run] = able[:, self.shape_body == body].any(axis=1)
        return out

    def _near(self, able: BoolArray, crossed: BoolArray | None, n_pairs: int) -> bool:
        """Whether points of a body are near a shape that crosses one of its shapes, given what :meth:`_crossed_by` found."""
        return any_of(able) if crossed is None else self._any_of(crossed, n_pairs)

    def _any_of(self, able: BoolArray, n_pairs: int) -> bool:
        """Whether any of the candidate pairs is one of those that are able, (s, runs)."""
        return bool(any_able(self._broad.pairs, n_pairs, able))

    def _make_room(self, room: int) -> None:
        self._point: IntArray = np.zeros(room, dtype=np.int64)
        self._shape: IntArray = np.zeros(room, dtype=np.int64)
        self._gap = np.zeros(room)
        self._frame = np.zeros((room, 3, 3))
        self._position = np.zeros((room, 3))
        self._feature: IntArray = np.zeros(room, dtype=np.int64)
        self._output = Output(self._point, self._shape, self._gap, self._frame, self._position, self._feature)
        #: what :func:`search` takes beside points and poses, once it was asked for: for all points, and among some
        self._arguments: tuple[tuple[Any, ...], tuple[Any, ...]] | None = None

    def world_poses(self, body_rotation: npt.ArrayLike, body_translation: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
        """World poses of the shapes: R = R_b R_s, t = R_b t_s + t_b.

        Parameters
        ----------
        body_rotation : ndarray, (nb, 3, 3)
            World rotation of each body.
        body_translation : ndarray, (nb, 3), m
            World position of the origin of each body's frame.

        Returns
        -------
        rotation, translation : ndarray, (s, 3, 3) and (s, 3), m
            The detector's own arrays, overwritten by the next call.
        """
        rotation = _floats("body_rotation", body_rotation, (self._n_bodies, 3, 3))
        translation = _floats("body_translation", body_translation, (self._n_bodies, 3))
        local = self._local_rotation, self._local_translation
        self._place_shapes(self.shape_body, *local, rotation, translation, self._rotation, self._translation)
        return self._rotation, self._translation

    def detect(
        self,
        points: npt.ArrayLike,
        shape_rotation: npt.ArrayLike,
        shape_translation: npt.ArrayLike,
        margin: float | FloatArray,
    ) -> PointContacts:
        """Find all contacts with gap < margin.

        Parameters
        ----------
        points : ndarray, (p, 3), m
            World positions.
        shape_rotation, shape_translation : ndarray, (s, 3, 3) and (s, 3), m
            World poses of the shapes, see :meth:`world_poses`.
        margin : float or ndarray, (p,), m
            A contact is reported when its gap is below this. Meshes are seen up to
            contact.shapes.GRID_PADDING of their longest side only.

        Returns
        -------
        PointContacts
            Views, valid until the next call.

        Raises
        ------
        ContactError
            When an array has the wrong shape, a position or margin is not a number, or there are more than the
            ``max_contacts`` that were given.
        """
        where = _floats("points", points, (len(self.point_body), 3))
        rotation = _floats("shape_rotation", shape_rotation, (len(self.shapes), 3, 3))
        translation = _floats("shape_translation", shape_translation, (len(self.shapes), 3))
        return self._found(where, self._none_placed, rotation, translation, rotation, translation, margin)

    def detect_on(
        self,
        points: npt.ArrayLike,
        body_rotation: npt.ArrayLike,
        body_translation: npt.ArrayLike,
        margin: float | FloatArray,
        *,
        whole: bool = False,
    ) -> PointContacts:
        """Find the same by the poses of the bodies: what :meth:`detect` finds with :meth:`world_poses`, in one call.

        Parameters
        ----------
        points, margin
            As for :meth:`detect`.
        body_rotation, body_translation
            As for :meth:`world_poses`.
        whole : bool
            Whether no contacts are left out where two bodies have many: who looks for those of before finds each of them.
        """
        where = _floats("points", points, (len(self.point_body), 3))
        rotation = _floats("body_rotation", body_rotation, (self._n_bodies, 3, 3))
        translation = _floats("body_translation", body_translation, (self._n_bodies, 3))
        return self.detect_placed(where, rotation, translation, margin, whole=whole)

    def detect_placed(
        self,
        points: FloatArray,
        body_rotation: FloatArray,
        body_translation: FloatArray,
        margin: float | FloatArray,
        *,
        whole: bool = False,
        among: IntArray | None = None,
        closer: float = 0.0,
    ) -> PointContacts:
        """Find the same, of float64 in C-order of the shapes that :meth:`detect_on` asks for: nothing is checked.

        With ``among`` (k,) contacts of other points than these may be missing, and nothing else changes. Of the pairs ``within``
        such as have a gap above the margin less ``closer`` (m) may be missing.
        """
        self._closer = closer if len(self._within) else 0.0
        try:
            return self._found(
                points, self.shape_body, body_rotation, body_translation, self._rotation, self._translation, margin, whole, among
            )
        finally:
            self._closer = 0.0

    def _found(
        self,
        where: FloatArray,
        placed: IntArray,
        body_rotation: FloatArray,
        body_translation: FloatArray,
        rotation: FloatArray,
        translation: FloatArray,
        margin: float | FloatArray,
        whole: bool = False,
        among: IntArray | None = None,
    ) -> PointContacts:
        """Find the contacts of points with shapes, which are first placed on their bodies ``placed`` (s,) or (0,)."""
        self._take_margin(margin)
        if among is not None:
            self._look_among(among)
        n = 0
        if len(self.shapes):
            bad, self._n_pairs, n = self._search(
                where, placed, body_rotation, body_translation, rotation, translation,
                *(self._arguments or self._gathered())[among is not None], self._closer,
            )  # fmt: skip
            if bad >= 0:
                raise ContactError(
                    f"detect: points[{bad}] is {where[bad].tolist()}; positions must be finite: the step before "
                    "this one went wrong (try a smaller time step)."
                )
            if self._has_rounds and 0 < n <= len(self._point) and self._any_of(self._rounds, self._n_pairs):
                n = self._measured_rounds(
                    n, where, self.point_radius, self._margin, self._table.kind, self._table.box_half, self._table.grid_place,
                    rotation, translation, self._triangles, self._output,
                )  # fmt: skip
            if self._has_centres and n <= len(self._point):
                n = self._without_twins(n)
            if self._neighbours is not None and not whole and 0 < n <= len(self._point):
                n = self._nearest_vertices(n, where, *self._neighbours, translation, self._output)
            if not self.nested:
                n = self._edges_and_faces(n, rotation, translation, self._n_pairs)
                if self._holds and not whole and 0 < n <= len(self._point) and self._any_of(self._held, self._n_pairs):
                    table = self._table
                    n = self._without_held(
                        n, where, self._owner, self._first_owned, table.kind, table.size, rotation, translation, self._output
                    )
                if self._thins is not None and not whole and self._most < n <= len(self._point):
                    n = thinned(n, self._most, self.point_body, self.shape_body, self._thins, self._output)
            if self._table.make_asked():
                return self._found(where, placed, body_rotation, body_translation, rotation, translation, margin, whole, among)
        if n > len(self._point) and self._grows:
            self._make_room(2 * n)
            return self._found(where, placed, body_rotation, body_translation, rotation, translation, margin, whole, among)
        if n > len(self._point):
            raise ContactError(
                f"detect: {n} contacts, but there is room for max_contacts = {len(self._point)}; build the "
                f"Detector with max_contacts of at least {n} (or a smaller margin)."
            )
        return PointContacts(
            self._point[:n], self._shape[:n], self._gap[:n], self._frame[:n], self._position[:n], self._feature[:n]
        )

    @property
    def candidates(self) -> IntArray:
        """Shape and run of points (see :class:`contact.broad_phase.BroadPhase`) of each pair that the last call looked at."""
        return self._broad.pairs[: self._n_pairs]

    def _gathered(self) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Gather what :func:`search` takes beside points and poses, in its order: for all points, and among some."""
        table, broad = self._table, self._broad
        before = (
            self._local_rotation, self._local_translation, self._reach, broad.run_body, self.shape_body, self._may_contact,
            broad.box, self.point_radius,
        )  # fmt: skip
        after = (
            broad.run_start, broad.pairs, table.kind, table.size, table.box_centre, table.box_half,
            table.grid_values if len(table.grid_values) else None, table.grid_index, table.grid_place, self._point_corner,
            self._shape_corner, self._edge, self._within, *self._output,
        )  # fmt: skip
        self._arguments = (*before, self._margin, *after), (*before, self._margin_among, *after)
        return self._arguments

    def _look_among(self, points: IntArray) -> None:
        """Leave out points that are not asked for, but those that say which crossing edges are needless."""
        margin = self._margin_among
        margin.fill(-np.inf)
        margin[points] = self._margin[points]
        if len(self._edged):
            margin[self._edged] = self._margin[self._edged]

    def _without_twins(self, n: int) -> int:
        """Take out of the first n contacts those that points have with a sphere whose centre has found their shape."""
        point, shape = self._point[:n], self._shape[:n]
        centre = self._shape_centre[shape]
        twin = self._covered[point] & (centre >= 0) & (~self._is_centre[point] | (point > centre))
        if not twin.any():
            return n
        keep = ~(twin & self._may_contact[self.shape_body[shape], self.point_body[point]])
        kept = int(keep.sum())
        for own in self._output:
            own[:kept] = own[:n][keep]
        return kept

    def _edges_and_faces(self, n: int, rotation: FloatArray, translation: FloatArray, n_pairs: int) -> int:
        """Write the contacts that points do not see after the first n; return how many there are."""
        table = self._table
        if self._creases is not None and 0 < n <= len(self._point) and self._near(self._flush, self._flush_by, n_pairs):
            placed = self._placed(rotation, translation)
            n = self._faced_corners(n, self._creases.corners, self._creases.creases, placed, self._output)
        # where no box has corners of another one near it, the kernel of the edges is neither called nor compiled
        if self._boxes_near and self._any_of(self._box_edges, n_pairs):
            n = self._crossing_edges(
                n, self._shape_corner, self.shape_body, self._may_contact, table.kind, table.size, rotation, translation,
                self._margin, *self._output,
            )  # fmt: skip
        if self._rolls:
            n = self._rolling_contacts(n, self._placed(rotation, translation), self._may_contact, self._output)
        if self._creases is not None and self._near(self._cross, self._crossed, n_pairs):
            placed = self._placed(rotation, translation)
            n = self._crossing_creases(
                n, self._creases.creases, placed, self.point_body, self._may_contact, self._within, self._closer, self._output
            )
        if self._creases is not None and self._near(self._on_rims, self._rims_crossed, n_pairs):
            n = self._creases_on_cylinders(
                n, self._creases.creases, self._placed(rotation, translation), self._may_contact, self._output
            )
        if self._faces is not None:
            n = self._contacts_of_faces(n, self._faces, self._placed(rotation, translation), self._output)
        return n

    def _take_margin(self, margin: float | FloatArray) -> None:
        """Check the margins of a call and hand them to all that look for contacts."""
        if isinstance(margin, np.ndarray) and margin.shape != self.point_radius.shape:
            raise ContactError(
                f"detect: margin has shape {margin.shape}; give one number or one for each of the "
                f"{len(self.point_radius)} points."
            )
        if not isinstance(margin, np.ndarray) and margin == self._last_margin:
            return
        self._last_margin = None
        self._margin[:] = margin
        np.add(self.point_radius, self._margin, out=self._reach)
        lengths = self._reach.sum() if isinstance(margin, np.ndarray) else margin
        if not lengths < np.inf and len(self._margin):
            bad = int(np.flatnonzero(~np.isfinite(self._margin))[0])
            raise ContactError(f"detect: margin of point {bad} is {self._margin[bad]} m; give finite lengths.")
        if self._creases is not None:
            first = self._creases.creases.first
            np.copyto(self._creases.creases.reach, self._margin[first], where=first >= 0)
        if self._faces is not None:
            first = self._faces.first
            np.copyto(self._faces.reach, self._margin[first], where=first >= 0)
        if self._rolls:  # points of rims that are surfaces are no points: with this margin they are in contact with nothing
            np.copyto(self._rim_reach, self._margin[self._shape_rim], where=self._shape_rim >= 0)
            self._margin[self._on_rim] = self._reach[self._on_rim] = -np.inf
        self._last_margin = None if isinstance(margin, np.ndarray) else margin

    def _placed(self, rotation: FloatArray, translation: FloatArray) -> Shapes:
        """Return what the kernels of cylinders and of edges of meshes read."""
        t = self._table
        return Shapes(
            t.kind, t.size, t.box_centre, t.box_half, t.grid_values, t.grid_index, t.grid_place, rotation, translation,
            self.shape_body, self._shape_rim, self._rim_reach,
        )  # fmt: skip

    def friction(self, contacts: PointContacts, table: npt.ArrayLike) -> FloatArray:
        """Coefficient of each contact, (n,), from a table (k, k) by surface of point and of shape."""
        values = np.asarray(table, dtype=np.float64)
        largest = self._last_surface
        if values.ndim != 2 or min(values.shape) <= largest:
            raise ContactError(
                f"friction: the table has shape {values.shape}; give a square one for the surface materials 0 to {largest}."
            )
        picked: FloatArray = values[self.point_surface[contacts.point], self.shape_surface[contacts.shape]]
        return picked


def _floats(field: str, value: npt.ArrayLike, shape: tuple[int, ...]) -> FloatArray:
    """Return the array where it is fit for a kernel, else a copy that is."""
    if isinstance(value, np.ndarray) and value.dtype == np.float64 and value.flags.carray and value.shape == shape:
        return value
    array = np.require(value, np.float64, ("C", "W"))
    if array.shape != shape:
        raise ContactError(f"detect: {field} has shape {array.shape}; it must be {shape}.")
    return array

"""Shapes with a signed distance, negative inside, each in its own frame; lengths in m.

Points of other bodies are tested against the signed distance of a shape, and its own ``features`` (points with a radius) against
the shapes of other bodies.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from contact.checked import array_of, positive, whole
from contact.errors import ContactError
from contact.frustum import RIM_POINTS as RIM_POINTS, Cone as Cone
from contact.turned_shapes import Revolved as Revolved, Thread as Thread

if TYPE_CHECKING:
    from contact.sdf_grid import GrowingGrid, Lattice, SdfGrid

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

#: A mesh grid reaches this fraction of the longest side beyond the mesh, plus the largest radius of points tested against it.
GRID_PADDING = 0.1


@dataclass(frozen=True)
class Plane:
    """The half space z <= 0 of its frame; the normal is +z."""

    @property
    def bounding_radius(self) -> float:
        """Infinite."""
        return float("inf")

    @property
    def aabb(self) -> tuple[FloatArray, FloatArray]:
        """Lower and upper corner, (3,) each, m: unbounded but for z <= 0."""
        return np.full(3, -np.inf), np.array([np.inf, np.inf, 0.0])

    def features(self, extra: int = 0) -> tuple[FloatArray, FloatArray]:
        """Points (0, 3) and radii (0,): a plane has none; contacts with it are those of the points of other bodies."""
        whole("Plane.features", "extra", extra, 0)
        return np.empty((0, 3)), np.empty(0)


@dataclass(frozen=True, eq=False, init=False)
class Box:
    """A box about the origin of its frame, edges along the axes.

    Attributes
    ----------
    half_extents : ndarray, (3,), m
        Half the edge lengths.
    """

    half_extents: FloatArray

    def __init__(self, half_extents: npt.ArrayLike, *others: object) -> None:
        if others:
            told = ", ".join(map(str, (half_extents, *others)))
            raise ContactError(f"Box: half_extents is one argument, not {1 + len(others)}; write Box(({told})), in m.")
        half = array_of("Box", "half_extents", half_extents, (3,))
        if not (half > 0.0).all():
            raise ContactError(f"Box: half_extents is {half.tolist()} m; give three positive lengths (half the edges).")
        for axis, length in zip("xyz", half, strict=True):
            positive("Box", f"half_extents along {axis}", float(length))
        object.__setattr__(self, "half_extents", half)

    @property
    def bounding_radius(self) -> float:
        """Radius of the enclosing ball about the origin, m."""
        return float(np.linalg.norm(self.half_extents))

    @property
    def aabb(self) -> tuple[FloatArray, FloatArray]:
        """Lower and upper corner, (3,) each, m."""
        return -self.half_extents, self.half_extents.copy()

    def features(self, extra: int = 0) -> tuple[FloatArray, FloatArray]:
        """Points (k, 3) m and radii (k,) m: the 8 corners, or a lattice on all faces.

        The lattice has ``extra`` points between the ends of each edge: ``extra=1`` gives corners and the
        midpoints of edges and faces (26 points).
        """
        whole("Box.features", "extra", extra, 0)
        ticks = np.linspace(-1.0, 1.0, 2 + extra)
        lattice = np.stack(np.meshgrid(ticks, ticks, ticks, indexing="ij"), axis=-1).reshape(-1, 3)
        points = lattice[np.abs(lattice).max(axis=1) == 1.0] * self.half_extents
        return points, np.zeros(len(points))


@dataclass(frozen=True)
class Sphere:
    """A sphere about the origin of its frame.

    Attributes
    ----------
    radius : float, m
        Radius.
    """

    radius: float

    def __post_init__(self) -> None:
        positive("Sphere", "radius", self.radius)

    @property
    def bounding_radius(self) -> float:
        """Radius of the enclosing ball about the origin, m."""
        return float(self.radius)

    @property
    def aabb(self) -> tuple[FloatArray, FloatArray]:
        """Lower and upper corner, (3,) each, m."""
        return np.full(3, -float(self.radius)), np.full(3, float(self.radius))

    def features(self, extra: int = 0) -> tuple[FloatArray, FloatArray]:
        """Points (1, 3) m and radii (1,) m: the centre with the radius; ``extra`` changes nothing."""
        whole("Sphere.features", "extra", extra, 0)
        return np.zeros((1, 3)), np.array([float(self.radius)])


@dataclass(frozen=True)
class Capsule:
    """All points within ``radius`` of the segment from z = -half_length to z = half_length.

    Attributes
    ----------
    radius : float, m
        Radius.
    half_length : float, m
        Half the length of the axis segment, without the round ends.
    """

    radius: float
    half_length: float

    def __post_init__(self) -> None:
        positive("Capsule", "radius", self.radius)
        positive("Capsule", "half_length", self.half_length)

    @property
    def bounding_radius(self) -> float:
        """Radius of the enclosing ball about the origin, m."""
        return float(self.radius + self.half_length)

    @property
    def aabb(self) -> tuple[FloatArray, FloatArray]:
        """Lower and upper corner, (3,) each, m."""
        upper = np.array([self.radius, self.radius, self.radius + self.half_length], dtype=np.float64)
        return -upper, upper

    def features(self, extra: int = 0) -> tuple[FloatArray, FloatArray]:
        """Points (2 + extra, 3) m and radii (2 + extra,) m: the ends and ``extra`` between them."""
        whole("Capsule.features", "extra", extra, 0)
        points = np.zeros((2 + extra, 3))
        points[:, 2] = np.linspace(-self.half_length, self.half_length, 2 + extra)
        return points, np.full(len(points), float(self.radius))


@dataclass(frozen=True)
class Cylinder:
    """A flat-ended cylinder about the origin of its frame, axis z.

    Attributes
    ----------
    radius : float, m
        Radius.
    half_length : float, m
        Half the length.
    """

    radius: float
    half_length: float

    def __post_init__(self) -> None:
        positive("Cylinder", "radius", self.radius)
        positive("Cylinder", "half_length", self.half_length)

    @property
    def bounding_radius(self) -> float:
        """Radius of the enclosing ball about the origin, m."""
        return float(np.hypot(self.radius, self.half_length))

    @property
    def aabb(self) -> tuple[FloatArray, FloatArray]:
        """Lower and upper corner, (3,) each, m."""
        upper = np.array([self.radius, self.radius, self.half_length], dtype=np.float64)
        return -upper, upper

    def features(self, extra: int = 0) -> tuple[FloatArray, FloatArray]:
        """Points (k, 3) m and radii (k,) m: RIM_POINTS on both rims and ``extra`` rings between."""
        whole("Cylinder.features", "extra", extra, 0)
        angle = 2.0 * np.pi * np.arange(RIM_POINTS) / RIM_POINTS
        ring = self.radius * np.column_stack([np.cos(angle), np.sin(angle), np.zeros(RIM_POINTS)])
        levels = np.linspace(-self.half_length, self.half_length, 2 + extra)
        points = np.concatenate([ring + np.array([0.0, 0.0, z]) for z in levels])
        return points, np.zeros(len(points))


@dataclass(frozen=True, eq=False, init=False)
class Mesh:
    """A closed triangle mesh; its signed distance is sampled on a grid when first needed, and kept.

    Attributes
    ----------
    points : ndarray, (n, 3), m
        Vertices.
    triangles : ndarray, (t, 3)
        Vertex numbers, counter-clockwise seen from outside.
    resolution : int
        Cells of the distance grid along the longest side of the mesh.
    name : str
        Used in messages.

    Raises
    ------
    ContactError
        When the surface is open or not manifold (says how many edges), has triangles without area, or is
        inside out.
    """

    points: FloatArray
    triangles: IntArray
    resolution: int
    name: str

    def __init__(
        self, points: npt.ArrayLike, triangles: npt.ArrayLike | None = None, resolution: int = 48, name: str = ""
    ) -> None:
        title = f"Mesh {name!r}" if name else "Mesh"
        if triangles is None:
            raise ContactError(
                f"{title}: triangles are missing; give points (n, 3) and triangles (t, 3): of a TriMesh m "
                "Mesh(m.points, m.triangles), of a file fs.mesh_shape(path)."
            )
        vertices = array_of(title, "points", points, (-1, 3))
        cells = np.array(triangles)
        if cells.ndim != 2 or cells.shape[1] != 3 or len(cells) == 0 or cells.dtype.kind not in "iu":
            raise ContactError(
                f"{title}: triangles has shape {cells.shape} and type {cells.dtype}; give whole numbers (t, 3), t > 0."
            )
        cells = np.ascontiguousarray(cells, dtype=np.int64)
        cells.flags.writeable = False
        whole(title, "resolution", resolution, 4)
        _check_closed(title, vertices, cells)
        object.__setattr__(self, "points", vertices)
        object.__setattr__(self, "triangles", cells)
        object.__setattr__(self, "resolution", int(resolution))
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "_grids", {})

    @property
    def bounding_radius(self) -> float:
        """Radius of the enclosing ball about the origin, m."""
        return float(np.linalg.norm(self.points, axis=1).max())

    @property
    def aabb(self) -> tuple[FloatArray, FloatArray]:
        """Lower and upper corner, (3,) each, m."""
        return self.points.min(axis=0), self.points.max(axis=0)

    def features(self, extra: int = 0) -> tuple[FloatArray, FloatArray]:
        """Points (k, 3) m and radii (k,) m: the vertices and ``extra`` points along each edge, evenly."""
        whole("Mesh.features", "extra", extra, 0)
        used = self.points[np.unique(self.triangles)]
        if not extra:
            return used, np.zeros(len(used))
        edges = np.unique(_numbered(np.sort(_directed_edges(self.triangles), axis=1), len(self.points)))
        a, b = (self.points[ends] for ends in divmod(edges, len(self.points)))
        parts = [a + (b - a) * (i / (extra + 1)) for i in range(1, extra + 1)]
        points = np.concatenate([used, *parts])
        return points, np.zeros(len(points))

    def grid(self, largest_radius: float = 0.0) -> SdfGrid:
        """Signed distance grid, built on the first call (0.3 s for 5000 triangles) and kept; detectors build only parts of it.

        Parameters
        ----------
        largest_radius : float, m
            Largest radius of the points that will be tested. The grid reaches this plus GRID_PADDING of the
            longest side beyond the mesh; a point whose *centre* is farther away is never in contact, whatever
            its margin, unless :meth:`sampled_radius` is less than this.

        Raises
        ------
        ContactError
            When the grid would be too large.
        """
        return self.growing_grid(largest_radius).whole()

    def growing_grid(self, largest_radius: float = 0.0) -> GrowingGrid:
        """Return the same, measured only where it was asked for; parameters and errors are those of :meth:`grid`."""
        from contact.sdf_grid import begin_grid

        grids: dict[tuple[int, int, int], GrowingGrid] = self.__dict__["_grids"]
        nodes = self.lattice(largest_radius).shape  # says which grid: paddings of as many whole cells have one
        if nodes not in grids:
            padding = self._padding(largest_radius)
            grids[nodes] = begin_grid(self.points, self.triangles, resolution=self.resolution, padding=padding, name=self.name)
        return grids[nodes]

    def lattice(self, largest_radius: float = 0.0) -> Lattice:
        """Where the nodes of :meth:`grid` are, which is known before it is built; parameters and errors are the same."""
        from contact.sdf_grid import lay_grid

        return lay_grid(self.points, resolution=self.resolution, padding=self._padding(largest_radius), name=self.name)

    def sampled_radius(self, largest_radius: float) -> float:
        """Largest radius of points that the grid reaches for, m: none where it would have far more nodes than without that.

        Beyond the grid the distance is then that of the closest triangle.
        """
        from contact.sdf_grid import MANY_NODES, nodes_along

        nodes = nodes_along(*self.aabb, self.resolution, self._padding(largest_radius))
        return largest_radius if math.prod(nodes.tolist()) <= MANY_NODES else 0.0

    def _padding(self, largest_radius: float) -> float:
        """How far the grid reaches beyond the mesh, m."""
        lower, upper = self.aabb
        return GRID_PADDING * float((upper - lower).max()) + float(largest_radius)


Shape = Plane | Box | Sphere | Capsule | Cylinder | Mesh | Revolved | Thread | Cone


@dataclass(frozen=True, eq=False, init=False)
class PlacedShape:
    """A shape fixed to a body.

    Attributes
    ----------
    shape : Shape
        The shape, in its own frame.
    body : int
        Number of the body it is fixed to.
    rotation : ndarray, (3, 3)
        Rotation of the shape's frame in the body's: columns are the shape's axes.
    translation : ndarray, (3,), m
        Origin of the shape's frame in the body's.
    surface : int
        Number of its surface material in the friction table.

    Raises
    ------
    ContactError
        When a number is negative, or the rotation is not a proper rotation within 1e-9.
    """

    shape: Shape
    body: int
    rotation: FloatArray
    translation: FloatArray
    surface: int

    def __init__(
        self,
        shape: Shape,
        body: int,
        rotation: npt.ArrayLike | None = None,
        translation: npt.ArrayLike | None = None,
        surface: int = 0,
    ) -> None:
        if not isinstance(shape, Shape):
            raise ContactError(
                f"PlacedShape: shape is {shape!r}; give a Plane, Box, Sphere, Capsule, Cylinder, Mesh, Revolved or "
                "Thread of contact.shapes."
            )
        whole("PlacedShape", "body", body, 0)
        whole("PlacedShape", "surface", surface, 0)
        turn = array_of("PlacedShape", "rotation", np.eye(3) if rotation is None else rotation, (3, 3))
        error = float(np.abs(turn.T @ turn - np.eye(3)).max())
        if error > 1e-9 or np.linalg.det(turn) < 0.0:
            raise ContactError(
                f"PlacedShape: rotation has determinant {np.linalg.det(turn):.6g} and R^T R is off the "
                f"identity by {error:.3g}; give a proper rotation (orthonormal columns, determinant +1)."
            )
        shift = array_of("PlacedShape", "translation", np.zeros(3) if translation is None else translation, (3,))
        object.__setattr__(self, "shape", shape)
        object.__setattr__(self, "body", int(body))
        object.__setattr__(self, "rotation", turn)
        object.__setattr__(self, "translation", shift)
        object.__setattr__(self, "surface", int(surface))


def signed_distance(shape: Shape, points: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Signed distance and outward unit normal (its gradient) at points of the shape's own frame.

    Exact for the primitives; a mesh answers from its grid, +inf and a zero normal outside of it. Where the
    nearest surface point is not unique the choice is fixed: see the functions in
    :mod:`contact.detect_kernels`.

    Parameters
    ----------
    shape : Shape
        The shape.
    points : array_like, (n, 3), m
        Points in the shape's frame.

    Returns
    -------
    distance : ndarray, (n,), m
        Negative inside.
    normal : ndarray, (n, 3)
        Unit normals.

    Raises
    ------
    ContactError
        When ``points`` has another shape or holds a value that is not finite.
    """
    from contact.detect_kernels import distances

    where = array_of("signed_distance", "points", points, (-1, 3))
    where.flags.writeable = True  # the kernel's one specialisation takes writable arrays
    table = ShapeTable([shape])
    distance, normal = np.empty(len(where)), np.empty((len(where), 3))
    arrays = table.kind, table.size, table.grid_values, table.grid_index, table.grid_place
    distances(0, where, *arrays, distance, normal)
    while table.make_asked():
        distances(0, where, *arrays, distance, normal)
    return distance, normal


def closest_points_on_triangles(point: npt.ArrayLike, corners: npt.ArrayLike) -> FloatArray:
    """Point of each triangle that is closest to a point.

    Parameters
    ----------
    point : array_like, (3,), m
        The point.
    corners : array_like, (m, 3, 3), m
        Corners of the m triangles, one a row.

    Returns
    -------
    ndarray, (m, 3), m
        The closest points, in the triangles or on their sides.

    Raises
    ------
    ContactError
        When an array has another shape or holds a value that is not finite.
    """
    from contact.distance_kernels import closest_on_triangles

    where = array_of("closest_points_on_triangles", "point", point, (3,))
    triangles = array_of("closest_points_on_triangles", "corners", corners, (-1, 3, 3))
    closest = np.empty((len(triangles), 3))
    closest_on_triangles(where, triangles, closest)
    return closest


class ShapeTable:
    """Shapes as the arrays that the kernels read.

    Parameters
    ----------
    shapes : sequence of Shape
        The s shapes.
    largest_radius : sequence of float, optional, m
        For each shape, the largest radius of the points that are tested against it (sets the size of grids of meshes).

    Attributes
    ----------
    kind : ndarray, (s,)
        Number of the kind, see :mod:`contact.detect_kernels`.
    size : ndarray, (s, 3), m
        Half extents, or radius and half length, of what has rims also the upper radius, or what the shape says (``numbers``).
    box_centre, box_half : ndarray, (s, 3), m
        Bounding box in the shape's frame; zero for a plane. It bounds the contacts of a mesh too:
        interpolation keeps linear bounds, so that the grid never shows less than the distance along an axis.
    grid_values : ndarray, m
        Of all grids, one after the other, the nodes, trees of triangles and the states of the chunks; numbers of turned shapes.
    grid_index : ndarray, (s, 6)
        First node, number of nodes along x, y, z, how many blocks the tree after them has, and 1 where a distance was
        asked for that is not known yet, see :meth:`make_asked`; of a turned shape its first number and how many pairs there
        are. Along x a mesh without a grid yet has 0 nodes.
    grid_place : ndarray, (s, 4), m
        Position of the first node and spacing.
    """

    def __init__(self, shapes: list[Shape], largest_radius: list[float] | None = None) -> None:
        from contact import detect_kernels as kernels
        from contact.sdf_grid import chunks_along
        from contact.sdf_kernels import BEYOND, TOGETHER

        n = len(shapes)
        self.kind: IntArray = np.zeros(n, dtype=np.int64)
        self.size: FloatArray = np.zeros((n, 3))
        self.box_centre: FloatArray = np.zeros((n, 3))
        self.box_half: FloatArray = np.zeros((n, 3))
        self.grid_index: IntArray = np.zeros((n, 6), dtype=np.int64)
        self.grid_place: FloatArray = np.ones((n, 4))
        #: first node of each grid, by its mesh and its numbers of nodes and blocks
        starts: dict[tuple[int, tuple[int, int, int, int]], int] = {}
        #: meshes, each with the largest radius of points at it, by the number of the shape
        self._meshes: dict[int, tuple[Mesh, float]] = {}
        numbers: list[tuple[int, FloatArray]] = []
        length = 0
        for s, shape in enumerate(shapes):
            if isinstance(shape, Plane):
                self.kind[s] = kernels.PLANE
                continue
            lower, upper = shape.aabb
            self.box_centre[s], self.box_half[s] = 0.5 * (lower + upper), 0.5 * (upper - lower)
            if isinstance(shape, Box):
                self.kind[s], self.size[s] = kernels.BOX, shape.half_extents
            elif isinstance(shape, Sphere):
                self.kind[s], self.size[s, 0] = kernels.SPHERE, shape.radius
            elif isinstance(shape, Capsule):
                self.kind[s], self.size[s, :2] = kernels.CAPSULE, (shape.radius, shape.half_length)
            elif isinstance(shape, Cylinder):
                self.kind[s], self.size[s] = kernels.CYLINDER, (shape.radius, shape.half_length, shape.radius)
            elif isinstance(shape, Cone):
                self.kind[s], self.size[s] = kernels.CONE, (shape.radius, shape.half_length, shape.top)
            elif isinstance(shape, Revolved | Thread):
                self.kind[s] = kernels.REVOLVED if isinstance(shape, Revolved) else kernels.THREAD
                own_size, own_values = shape.numbers
                self.size[s, : len(own_size)] = own_size
                self.grid_index[s, :2] = length, len(own_values) // 2
                numbers.append((length, own_values))
                length += len(own_values)
            else:
                asked = 0.0 if largest_radius is None else largest_radius[s]
                radius = shape.sampled_radius(asked)
                place, blocks = shape.lattice(radius), -(-len(shape.triangles) // TOGETHER) if radius < asked else 0
                key = id(shape), (*place.shape, blocks)
                if key not in starts:
                    starts[key] = length
                    length += math.prod(place.shape) + blocks * BEYOND + math.prod(chunks_along(place.shape))
                self.grid_index[s, 4] = blocks
                self.kind[s], self.grid_index[s, 0] = kernels.MESH, starts[key]
                self.grid_place[s] = (*place.origin, place.spacing)
                self._meshes[s] = shape, radius
        self.grid_values: FloatArray = np.zeros(length)  # room, which takes no memory before grids are written there
        for start, own_values in numbers:
            self.grid_values[start : start + len(own_values)] = own_values

    def make_asked(self) -> bool:
        """Measure what kernels asked for of grids and did not find; return whether there was any: then ask again."""
        if not self._meshes:
            return False
        asked = np.flatnonzero(self.grid_index[:, 5]).tolist()
        for s in asked:
            self._measure(s)
        self.grid_index[asked, 5] = 0
        return bool(asked)

    def _measure(self, s: int) -> None:
        """Begin the grid of mesh s, or measure those chunks of it that are wanted."""
        from contact.sdf_grid import triangle_tree
        from contact.sdf_kernels import BEYOND, CHUNK, KNOWN, UNKNOWN, WANTED

        shape, radius = self._meshes[s]
        grid, begins = shape.growing_grid(radius), self.grid_index[s, 1] == 0
        start, blocks = int(self.grid_index[s, 0]), int(self.grid_index[s, 4])
        after = start + grid.values.size
        behind = after + blocks * BEYOND
        values = self.grid_values[start:after].reshape(grid.values.shape)
        states = self.grid_values[behind : behind + grid.known.size].reshape(grid.known.shape)
        if begins:
            values[:] = grid.values
            states[:] = np.where(grid.known, KNOWN, UNKNOWN)
            if blocks:
                self.grid_values[after:behind] = triangle_tree(shape.points, shape.triangles)
            self.grid_index[s, 1:4] = grid.values.shape
            return
        wanted = states == WANTED
        grid.measure(wanted)
        for chunk in np.argwhere(wanted):
            own = tuple(slice(first, first + CHUNK) for first in (CHUNK * chunk).tolist())
            values[own] = grid.values[own]
        states[wanted] = KNOWN


def _directed_edges(triangles: IntArray) -> IntArray:
    return np.stack([triangles, np.roll(triangles, -1, axis=1)], axis=2).reshape(-1, 2)


def _numbered(edges: IntArray, count: int) -> IntArray:
    """One number for each edge, (k,), ordered as the pairs (k, 2) of numbers below the count are, and sorted ten times faster."""
    return edges[:, 0] * count + edges[:, 1]


def _check_closed(title: str, points: FloatArray, triangles: IntArray) -> None:
    """Raise ContactError unless the triangles bound a solid and point outward."""
    if triangles.min() < 0 or triangles.max() >= len(points):
        raise ContactError(
            f"{title}: triangles name vertices {triangles.min()} to {triangles.max()}; allowed are 0 to {len(points) - 1}."
        )
    corners = points[triangles]
    sides = np.roll(corners, -1, axis=1) - corners
    area = 0.5 * np.linalg.norm(np.cross(sides[:, 0], sides[:, 1]), axis=1)
    flat = np.flatnonzero(area <= 1e-12 * (sides**2).sum(axis=2).max(axis=1))
    if len(flat):
        raise ContactError(
            f"{title}: {len(flat)} triangles have no area (first: {flat[:10].tolist()}); remove them and close the surface again."
        )
    directed = _directed_edges(triangles)
    edges, uses = np.unique(_numbered(np.sort(directed, axis=1), len(points)), return_counts=True)
    n_open, n_many = int((uses == 1).sum()), int((uses > 2).sum())
    if n_open or n_many:
        first = [int(end) for end in divmod(edges[uses != 2][0], len(points))]
        raise ContactError(
            f"{title}: the surface is not closed: {n_open} open edges and {n_many} non-manifold edges (more "
            f"than two triangles), the first between vertices {first}; merge duplicated vertices and repair "
            "the surface so that every edge has two triangles."
        )
    n_turned = len(edges) - int((np.unique(_numbered(directed, len(points)), return_counts=True)[1] == 1).sum()) // 2
    if n_turned:
        raise ContactError(
            f"{title}: triangles are not oriented alike: {n_turned} edges are run through twice in the same "
            "direction; orient all triangles counter-clockwise seen from outside."
        )
    volume = float(np.einsum("ti,ti->", corners[:, 0] - points[0], np.cross(sides[:, 0], sides[:, 1])) / 6.0)
    if not volume > 0.0:
        raise ContactError(
            f"{title}: the signed volume is {volume:.6g} m3, so the surface is inside out; reverse the "
            "triangles (triangles[:, ::-1])."
        )

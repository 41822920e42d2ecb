"""The tetrahedral mesh of a soft body: validated once, constant afterwards."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from meshes.errors import MeshError
from meshes.surface import TriMesh, as_cells, as_points, boundary_triangles, listed

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

ZERO_VOLUME = 1e-9
"""An element is called flat when |6 V| is at most this times its longest edge cubed (regular: 0.71)."""

_UNITS = {"m": 1.0, "cm": 1e-2, "mm": 1e-3}


@dataclass(frozen=True, eq=False, repr=False)
class TetMesh:
    """Linear tetrahedra, all positively oriented; create it with `make_tetmesh`, which validates.

    Parameters
    ----------
    points : ndarray, shape (n, 3), m
        Node coordinates. Treat the arrays as constant: `digest` is computed from them.
    tets : ndarray of int64, shape (m, 4)
        Node numbers with (b - a) x (c - a) . (d - a) > 0.
    name : str
        Name shown in messages and pictures.
    source : str
        File or generator of the mesh.
    digest : str
        SHA-256 of both arrays (little-endian float64 and int64), hexadecimal.
    regions : mapping of str to ndarray of int64
        Numbers of the tetrahedra of each named region: the physical groups of its file, those of `with_region`, or none.

    Raises
    ------
    MeshError
        No digest.
    """

    points: Floats
    tets: Ints
    name: str = ""
    source: str = ""
    digest: str = ""
    regions: Mapping[str, Ints] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.digest:
            raise MeshError("a TetMesh needs a digest; create it by make_tetmesh(points, tets), which validates the arrays.")

    def __repr__(self) -> str:
        low, high = self.bounds
        size = " x ".join(f"{1e3 * length:.4g}" for length in high - low)
        return f"<TetMesh {self.name!r}: {len(self.points)} nodes, {len(self.tets)} tetrahedra, {size} mm>"

    @cached_property
    def volume(self) -> float:
        """Sum of the element volumes, m3."""
        return float(tet_determinants(self.points, self.tets).sum() / 6.0)

    @property
    def bounds(self) -> Floats:
        """Smallest and largest coordinates, shape (2, 3), m."""
        return np.array([self.points.min(axis=0), self.points.max(axis=0)])

    @cached_property
    def surface_triangles(self) -> Ints:
        """Boundary faces, outward, node numbers of this mesh, shape (k, 3)."""
        return boundary_triangles(self.tets)

    @cached_property
    def surface_nodes(self) -> Ints:
        """Sorted numbers of the nodes on the boundary, shape (s,)."""
        return np.unique(self.surface_triangles)

    def surface(self) -> TriMesh:
        """Return the boundary as a separate surface, with only the nodes that it uses.

        Corner i of the surface is node `surface_nodes[i]` of this mesh.
        """
        triangles = np.searchsorted(self.surface_nodes, self.surface_triangles)
        return TriMesh(self.points[self.surface_nodes], triangles, self.name, self.source)

    def with_region(self, name: str, where: Callable[[Floats], ArrayLike]) -> "TetMesh":
        """Return the mesh with one more named region, for a material of its own.

        Parameters
        ----------
        name : str
            Name of the region, not taken yet.
        where : callable
            ``where(centres (m, 3) m) -> (m,) bool``: which tetrahedra are in it, by their centres.

        Raises
        ------
        MeshError
            If the name is empty or taken, ``where`` is no function or its answer not one boolean for each tetrahedron, or none
            is in the region.
        """
        this = f"mesh {self.name!r}"
        if not isinstance(name, str) or not name:
            raise MeshError(f"{this}: the name of a region is {name!r}, but must be a text; call it e.g. 'base'.")
        if name in self.regions:
            raise MeshError(f"{this}: region {name!r} exists already; choose another name.")
        if not callable(where):
            raise MeshError(
                f"{this}: where of region {name!r} is of type {type(where).__name__}, but must be a function of the centres of "
                "tetrahedra, e.g. lambda x: x[:, 2] < 0.002."
            )
        centres: Floats = self.points[self.tets].mean(axis=1)
        inside = np.asarray(where(centres))
        if inside.shape != (len(centres),) or inside.dtype != bool:
            raise MeshError(
                f"{this}: where of region {name!r} gave {inside.dtype} of shape {inside.shape}, but must give a boolean for "
                f"each of the {len(centres)} centres, e.g. lambda x: x[:, 2] < 0.002."
            )
        if not inside.any():
            low, high = (limits.round(6).tolist() for limits in (centres.min(axis=0), centres.max(axis=0)))
            raise MeshError(
                f"{this}: no tetrahedron is in region {name!r}; their centres span {low} to {high} m: move its border, or take "
                "smaller elements."
            )
        return replace(self, regions={**self.regions, name: np.flatnonzero(inside)})

    def transformed(
        self, rotation: ArrayLike | None = None, translation: ArrayLike | None = None, scale: float = 1.0
    ) -> "TetMesh":
        """Return the mesh at scale * R x + t.

        Parameters
        ----------
        rotation : array_like, shape (3, 3), optional
            Proper rotation matrix R; the identity by default.
        translation : array_like, shape (3,), m, optional
            Vector t; zero by default.
        scale : float
            Factor, dimensionless, greater than 0.

        Raises
        ------
        MeshError
            If R is no proper rotation, t is not three finite numbers, or the scale is not positive.
        """
        where = f"mesh {self.name!r}"
        R = np.eye(3) if rotation is None else np.asarray(rotation, dtype=np.float64)
        t = np.zeros(3) if translation is None else np.asarray(translation, dtype=np.float64)
        if R.shape != (3, 3) or not np.allclose(R @ R.T, np.eye(3), atol=1e-9) or np.linalg.det(R) < 0.0:
            raise MeshError(
                f"{where}: rotation is {R.tolist()}, but must be a (3, 3) rotation matrix (orthonormal, "
                "determinant +1); normalise it, and do not mirror meshes by it."
            )
        if t.shape != (3,) or not np.isfinite(t).all():
            raise MeshError(f"{where}: translation is {t.tolist()}, but must be three finite numbers in m; correct it.")
        moved = check_scale(scale, where) * self.points @ R.T + t
        return replace(make_tetmesh(moved, self.tets, name=self.name, source=self.source), regions=self.regions)


def make_tetmesh(points: ArrayLike, tets: ArrayLike, *, name: str = "mesh", source: str = "arrays") -> TetMesh:
    """Validate and convert arrays to a tetrahedral mesh.

    Parameters
    ----------
    points : array_like, shape (n, 3), m
        Node coordinates.
    tets : array_like of int, shape (m, 4)
        Node numbers of linear tetrahedra, positive orientation.
    name, source : str, optional
        See `TetMesh`.

    Returns
    -------
    TetMesh
        Its arrays are copies, C-ordered float64 and int64.

    Raises
    ------
    MeshError
        If a shape is wrong, there is no tetrahedron, a coordinate is not finite, a number points to no
        node, elements are inverted, flat or doubled (listed), or nodes belong to no tetrahedron (listed).
    """
    where = f"mesh {name!r} from {source}"
    xyz = as_points(points, where)
    cells = as_cells(tets, 4, len(xyz), "tetrahedron", where)
    determinants = tet_determinants(xyz, cells)
    corners = xyz[cells]
    pairs = ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3))
    longest = np.max([np.linalg.norm(corners[:, i] - corners[:, j], axis=1) for i, j in pairs], axis=0)
    flat = np.abs(determinants) <= ZERO_VOLUME * longest**3
    if flat.any():
        bad = np.flatnonzero(flat)
        raise MeshError(
            f"{where}: {len(bad)} of {len(cells)} tetrahedra have zero volume (elements {listed(bad)}); "
            "remove them or mesh the body again."
        )
    inverted = np.flatnonzero(determinants < 0.0)
    if len(inverted):
        cure = (
            "all are inverted, so swap two columns of the connectivity"
            if len(inverted) == len(cells)
            else "swap two nodes of each, or untangle the nodes"
        )
        raise MeshError(
            f"{where}: {len(inverted)} of {len(cells)} tetrahedra are inverted, their volume is negative "
            f"(elements {listed(inverted)}); {cure}."
        )
    used = np.zeros(len(xyz), dtype=bool)
    used[cells] = True
    unused = np.flatnonzero(~used)
    if len(unused):
        raise MeshError(
            f"{where}: {len(unused)} of {len(xyz)} nodes belong to no tetrahedron (nodes {listed(unused)}); "
            "remove them, they would have no mass."
        )
    try:
        boundary = boundary_triangles(cells)
    except MeshError as error:
        raise MeshError(f"{where}: {error}") from None
    mesh = TetMesh(xyz, cells, name, source, _digest(xyz, cells))
    mesh.__dict__["surface_triangles"] = boundary  # fills the cached property
    return mesh


def tet_determinants(points: Floats, tets: Ints) -> Floats:
    """Return six times the signed volume of each tetrahedron, shape (m,), m3."""
    origin = points[tets[:, 0]]
    ab, ac, ad = (points[tets[:, corner]] - origin for corner in (1, 2, 3))
    determinants: Floats = np.einsum("ij,ij->i", np.cross(ab, ac), ad)
    return determinants


def check_scale(scale: float, where: str) -> float:
    """Return the scale as a float, or raise MeshError unless it is finite and greater than 0."""
    if not (np.isfinite(scale) and scale > 0.0):
        raise MeshError(f"{where}: scale is {scale!r}, but must be finite and greater than 0; use 0.001 for millimetres.")
    return float(scale)


def length_scale(unit: str) -> float:
    """Return the factor from a unit of length to metres.

    Parameters
    ----------
    unit : {"m", "cm", "mm"}
        Unit of length, e.g. of a file.

    Raises
    ------
    MeshError
        For any other unit.
    """
    if unit not in _UNITS:
        raise MeshError(f"unit of length is {unit!r}; allowed are {', '.join(map(repr, _UNITS))}.")
    return _UNITS[unit]


def _digest(points: Floats, tets: Ints) -> str:
    digest = hashlib.sha256()
    digest.update(points.astype("<f8", copy=False).tobytes())
    digest.update(tets.astype("<i8", copy=False).tobytes())
    return digest.hexdigest()

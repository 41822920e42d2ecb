"""Triangle surfaces: the boundary of tetrahedra, closedness, volume and mass properties."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from meshes.errors import MeshError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class TriMesh:
    """Triangle surface; create it with `make_trimesh`, which validates.

    Parameters
    ----------
    points : ndarray, shape (n, 3), m
        Corner coordinates.
    triangles : ndarray of int64, shape (k, 3)
        Corner numbers; on a closed surface counter-clockwise seen from outside.
    name : str
        Name shown in messages and pictures.
    source : str
        File or generator of the surface.
    """

    points: Floats
    triangles: Ints
    name: str
    source: str

    def __repr__(self) -> str:
        return f"<TriMesh {self.name!r}: {len(self.points)} points, {len(self.triangles)} triangles, from {self.source}>"

    @cached_property
    def is_closed(self) -> bool:
        """Whether every edge belongs to exactly two triangles."""
        return count_bad_edges(self.triangles) == 0

    @cached_property
    def is_consistently_oriented(self) -> bool:
        """Whether neighbouring triangles traverse their common edge in opposite directions."""
        edges = _directed_edges(self.triangles)
        return len(distinct_rows(edges)[0]) == len(edges)

    @cached_property
    def signed_volume(self) -> float:
        """Enclosed volume, m3: positive for outward triangles; meaningless for an open surface."""
        if len(self.triangles) == 0:
            return 0.0
        corners = (self.points - self.points.mean(axis=0))[self.triangles]
        return float(np.einsum("ij,ij->", corners[:, 0], np.cross(corners[:, 1], corners[:, 2])) / 6.0)

    @property
    def bounds(self) -> Floats:
        """Smallest and largest coordinates, shape (2, 3), m."""
        return np.array([self.points.min(axis=0), self.points.max(axis=0)])


def make_trimesh(points: ArrayLike, triangles: ArrayLike, *, name: str, source: str) -> TriMesh:
    """Validate and convert arrays to a surface.

    Parameters
    ----------
    points : array_like, shape (n, 3), m
        Corner coordinates.
    triangles : array_like of int, shape (k, 3)
        Corner numbers.
    name, source : str
        See `TriMesh`.

    Raises
    ------
    MeshError
        If a shape is wrong, there is no triangle, a coordinate is not finite, or a number refers to no corner.
    """
    where = f"surface {name!r} from {source}"
    xyz = as_points(points, where)
    tris = as_cells(triangles, 3, len(xyz), "triangle", where)
    return TriMesh(xyz, tris, name, source)


def boundary_triangles(tets: ArrayLike) -> Ints:
    """Return the faces of only one tetrahedron, outward for positive tetrahedra.

    Parameters
    ----------
    tets : array_like of int, shape (m, 4)
        Node numbers; positive means (b - a) x (c - a) . (d - a) > 0.

    Returns
    -------
    ndarray of int64, shape (k, 3)
        Node numbers in the order of the tetrahedra, counter-clockwise seen from outside.

    Raises
    ------
    MeshError
        If a face belongs to more than two tetrahedra.
    """
    cells = np.asarray(tets, dtype=np.int64).reshape(-1, 4)
    faces = cells[:, [[0, 2, 1], [0, 1, 3], [1, 2, 3], [0, 3, 2]]].reshape(-1, 3)
    _, inverse, counts = np.unique(np.sort(faces, axis=1), axis=0, return_inverse=True, return_counts=True)
    shared = counts[inverse.reshape(-1)]
    if shared.max(initial=0) > 2:
        crowded = np.unique(np.flatnonzero(shared > 2) // 4)
        raise MeshError(
            f"faces of {len(crowded)} tetrahedra belong to more than two tetrahedra (elements "
            f"{listed(crowded)}); remove the duplicate or overlapping elements."
        )
    return np.ascontiguousarray(faces[shared == 1])


def count_bad_edges(triangles: Ints) -> int:
    """Return the number of edges that do not belong to exactly two triangles."""
    _, number = distinct_rows(np.sort(_directed_edges(triangles), axis=1))
    return int(np.count_nonzero(np.bincount(number) != 2))


def distinct_rows(rows: Floats | Ints) -> tuple[Ints, Ints]:
    """Find the first of each set of equal rows, in sorted order, and for all rows the place of their own in it.

    As np.unique by rows has it, which takes ten times longer.

    Parameters
    ----------
    rows : ndarray, (n, k)
        Finite numbers.

    Returns
    -------
    first, inverse : ndarray of int64, (m,) and (n,)
        rows[first] are all different; rows[first][inverse] are the rows.
    """
    order = np.lexsort(rows.T[::-1])
    new = np.zeros(len(rows), dtype=np.bool_)
    new[:1] = True
    for column in rows.T:
        in_order = column[order]
        new[1:] |= in_order[1:] != in_order[:-1]
    inverse = np.empty(len(rows), dtype=np.int64)
    inverse[order] = np.cumsum(new) - 1
    return order[new], inverse


def merged(points: Floats, triangles: Ints) -> tuple[Floats, Ints]:
    """Merge points with equal coordinates, drop triangles that lose a corner, keep the order.

    Parameters
    ----------
    points : ndarray, (n, 3), m
        Finite corner coordinates.
    triangles : ndarray of int64, (k, 3)
        Their numbers.
    """
    first, inverse = distinct_rows(points)
    joined = first[inverse][triangles]
    a, b, c = joined.T
    joined = joined[(a != b) & (b != c) & (c != a)]
    used = np.unique(joined)
    return points[used], np.searchsorted(used, joined)


def solid_mass_properties(trimesh: TriMesh, density: float) -> tuple[float, Floats, Floats]:
    """Return mass, centre of mass and inertia of the solid inside a closed surface.

    Exact integrals over the polyhedron, as a sum over the signed tetrahedra between one point and each triangle (covariance of a
    tetrahedron: J. Blow, A. J. Binstock, "How to find the inertia tensor (or other mass properties) of a 3D solid body
    represented by a triangle mesh", 2004).

    Parameters
    ----------
    trimesh : TriMesh
        Closed surface, triangles outward.
    density : float
        Mass per volume, kg/m3, greater than 0.

    Returns
    -------
    mass : float
        kg.
    com : ndarray, shape (3,)
        Centre of mass, m.
    inertia : ndarray, shape (3, 3)
        Inertia tensor about the centre of mass, axes of the surface, kg m2.

    Raises
    ------
    MeshError
        If the surface is open, not consistently oriented or inside out, or the density is not positive.
    """
    if not (np.isfinite(density) and density > 0.0):
        raise MeshError(
            f"surface {trimesh.name!r}: density is {density!r}, but must be finite and greater than 0 kg/m3; "
            "give the density of the solid."
        )
    require_closed(trimesh)
    origin = trimesh.points.mean(axis=0)
    corners = (trimesh.points - origin)[trimesh.triangles]
    sixth = np.einsum("ij,ij->i", corners[:, 0], np.cross(corners[:, 1], corners[:, 2]))
    volume = float(sixth.sum() / 6.0)
    total = corners.sum(axis=1)
    centre = np.einsum("i,ij->j", sixth, total) / (24.0 * volume)
    # Second moments of one tetrahedron with a corner at 0: det / 120 (sum x_i x_i^T + s s^T), s = sum x_i.
    second = np.einsum("i,ipj,ipk->jk", sixth, corners, corners) + np.einsum("i,ij,ik->jk", sixth, total, total)
    covariance = density * (second / 120.0 - volume * np.outer(centre, centre))
    inertia = np.trace(covariance) * np.eye(3) - covariance
    return density * volume, origin + centre, 0.5 * (inertia + inertia.T)


def require_closed(trimesh: TriMesh) -> None:
    """Raise MeshError unless the surface is closed, consistently oriented and outward."""
    where = f"surface {trimesh.name!r} from {trimesh.source}"
    bad = count_bad_edges(trimesh.triangles)
    if bad:
        raise MeshError(
            f"{where} is not closed: {bad} edges do not belong to exactly two triangles, but a closed "
            "surface is needed here; fill the holes and remove duplicate triangles."
        )
    if not trimesh.is_consistently_oriented:
        raise MeshError(
            f"{where} has neighbouring triangles of opposite orientation, but all must run counter-clockwise "
            "seen from outside; make the normals consistent."
        )
    if trimesh.signed_volume <= 0.0:
        raise MeshError(
            f"{where} is inside out (signed volume {trimesh.signed_volume:.4g} m3), but its triangles must "
            "run counter-clockwise seen from outside; flip all triangles."
        )


def as_points(points: ArrayLike, where: str) -> Floats:
    """Return a C-ordered float64 copy of shape (n, 3), or raise MeshError."""
    try:
        xyz = np.array(points, dtype=np.float64, order="C")
    except (TypeError, ValueError):
        raise MeshError(f"{where}: points are no array of numbers, but must have shape (n, 3) in m; convert them.") from None
    if xyz.ndim != 2 or xyz.shape[1] != 3:
        raise MeshError(f"{where}: points have shape {xyz.shape}, but must have shape (n, 3) in m; reshape them.")
    bad = np.flatnonzero(~np.isfinite(xyz).all(axis=1))
    if len(bad):
        raise MeshError(
            f"{where}: {len(bad)} nodes have coordinates that are not finite, the first is node {bad[0]} at "
            f"{tuple(xyz[bad[0]].tolist())}; repair the file or the arrays."
        )
    return xyz


def as_cells(cells: ArrayLike, corners: int, n_points: int, what: str, where: str) -> Ints:
    """Return a C-ordered int64 copy of shape (m, corners), m > 0, numbers in range, or raise MeshError."""
    given: NDArray[Any] = np.asarray(cells)
    if given.size == 0:
        raise MeshError(f"{where}: there is not one {what}; give a mesh that has some.")
    if given.ndim != 2 or given.shape[1] != corners or given.dtype.kind not in "iu":
        raise MeshError(
            f"{where}: the {what} array has shape {given.shape} and type {given.dtype}, but must be integers "
            f"of shape (m, {corners}); convert it."
        )
    numbers = np.array(given, dtype=np.int64, order="C")
    bad = np.flatnonzero(((numbers < 0) | (numbers >= n_points)).any(axis=1))
    if len(bad):
        raise MeshError(
            f"{where}: {what} {bad[0]} refers to nodes {numbers[bad[0]].tolist()}, but the nodes "
            f"are numbered 0 to {n_points - 1} ({len(bad)} such elements: {listed(bad)}); "
            "correct the connectivity."
        )
    return numbers


def listed(numbers: Ints, limit: int = 10) -> str:
    """Return the first few numbers as text."""
    text = ", ".join(str(number) for number in numbers[:limit].tolist())
    return text + (", ..." if len(numbers) > limit else "")


def _directed_edges(triangles: Ints) -> Ints:
    return triangles[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2)

"""Mass of the meshes of MJCF files, by the rules of that format, and its ellipsoids."""

from __future__ import annotations

import numpy as np
from scipy.spatial import QhullError

from contact import ContactError, Mesh
from femsim.model.robot_files import hull
from meshes import TriMesh, solid_mass_properties, sphere_triangles

#: How a mesh has mass: as its convex hull, by signed volumes, by volumes that all count (default of the format), as a shell.
KINDS = ("convex", "exact", "legacy", "shell")

#: Products of inertia below this part of the largest entry are rounding: they would turn the axes of a cube.
_ROUNDED = 1e-12

Moments = tuple[float, np.ndarray, np.ndarray]


def mass_of_mesh(surface: TriMesh, kind: str) -> Moments:
    """Mass at density 1, centre of mass and inertia about it (kg, m, kg m^2) of a surface, which may be open or inside out.

    Volumes are those of tetrahedra between one point and the triangles: first the middle of the surface, then the centre of mass
    that came out. Where all of them count, a surface that is not convex has more mass than it encloses. That of a shell is its
    area. The mass is not positive where a surface encloses nothing, or is inside out and volumes have signs.

    Parameters
    ----------
    surface : TriMesh
        Its triangles.
    kind : str
        One of `KINDS`.
    """
    try:
        mesh = hull(surface.points, surface.name) if kind == "convex" else surface
    except (QhullError, ContactError):
        return 0.0, np.zeros(3), np.zeros((3, 3))
    corners = np.asarray(mesh.points)[mesh.triangles]
    area = 0.5 * np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1)
    centre = area @ corners.mean(axis=1) / max(float(area.sum()), np.finfo(np.float64).tiny)
    if kind == "shell":
        return float(area.sum()), centre, _inertia(corners - centre, area, 3)
    arms = corners - centre
    volumes = _volumes(arms, kind)
    if volumes.sum() > 0.0:
        centre = centre + volumes @ arms.sum(axis=1) / (4.0 * volumes.sum())
        volumes = _volumes(corners - centre, kind)
    return float(volumes.sum()), centre, _inertia(corners - centre, volumes, 4)


def fitted(kind: str, surface: TriMesh, way: str, around: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sizes (n,), m, of a geom fitted to a mesh; its place (3,), m, and its axes, columns of (3, 3), in the frame of the mesh.

    The axes are the principal ones, the longest last. A box has the mass and inertia of the mesh, where its density is 1, or is
    around its points; others have their sizes from those of that box, by the rules of the format.

    Parameters
    ----------
    kind : str
        Sphere, capsule, cylinder, ellipsoid or box.
    surface : TriMesh
        Triangles of the mesh.
    way : str
        How it has mass, one of `KINDS`.
    around : bool
        Whether the box is around its points.

    Raises
    ------
    ValueError
        A mesh that encloses nothing.
    """
    mass, centre, inertia = mass_of_mesh(surface, way)
    if not mass > 0.0:
        raise ValueError("it encloses nothing, or is inside out")
    inertia = np.where(np.abs(inertia) > _ROUNDED * np.abs(inertia).max(), inertia, 0.0)
    moments, axes = (found[..., ::-1] for found in np.linalg.eigh(inertia))
    axes = axes * [1.0, 1.0, np.linalg.det(axes)]
    half = 0.5 * np.sqrt(np.maximum(6.0 * (moments.sum() - 2.0 * moments) / mass, 0.0))
    if around:
        own = (surface.points - centre) @ axes
        low, high = own.min(axis=0), own.max(axis=0)
        half, centre = 0.5 * (high - low), centre + axes @ (0.5 * (low + high))
    across = float(half[:2].max() if around else half[:2].mean())
    sizes = {
        "sphere": [half.max() if around else half.mean()],
        "capsule": [across, max(0.0, half[2] - (across if around else 0.5 * across))],
        "cylinder": [across, half[2]],
    }.get(kind, half)
    return np.array(sizes), centre, axes


def ellipsoid(half: np.ndarray) -> Mesh:
    """Convex mesh of 642 points with the volume of an ellipsoid: 0.29 % too large at its points, 0.17 % too small between them.

    Parameters
    ----------
    half : ndarray, (3,), m
        Half its extents along x, y and z.
    """
    ball = sphere_triangles(1.0)
    larger = np.cbrt(4.0 / 3.0 * np.pi / solid_mass_properties(ball, 1.0)[0])
    return Mesh(larger * ball.points * half, ball.triangles, name="ellipsoid")


def mass_of_ellipsoid(half: np.ndarray) -> Moments:
    """Mass at density 1, centre of mass and inertia about it (kg, m, kg m^2) of an ellipsoid."""
    mass, squares = 4.0 / 3.0 * np.pi * float(half.prod()), half**2
    return mass, np.zeros(3), 0.2 * mass * np.diag(squares.sum() - squares)


def _volumes(corners: np.ndarray, kind: str) -> np.ndarray:
    """Volumes (k,), m^3, of the tetrahedra between zero and triangles (k, 3, 3)."""
    signed = np.einsum("ij,ij->i", corners[:, 0], np.cross(corners[:, 1], corners[:, 2])) / 6.0
    return np.abs(signed) if kind == "legacy" else signed


def _inertia(corners: np.ndarray, masses: np.ndarray, count: int) -> np.ndarray:
    """Inertia about zero of triangles (count 3), or of the tetrahedra between them and zero (count 4), with their masses (k,)."""
    total = corners.sum(axis=1)
    second = np.einsum("i,ipj,ipk->jk", masses, corners, corners) + np.einsum("i,ij,ik->jk", masses, total, total)
    second /= count * (count + 1)
    return np.trace(second) * np.eye(3) - second

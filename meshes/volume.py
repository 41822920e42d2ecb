"""Filling closed surfaces with tetrahedra by pytetwild (extra `mesh`), and detection of self-intersection."""

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from meshes.errors import MeshError
from meshes.load import load_surface, load_tetmesh
from meshes.surface import TriMesh, listed, require_closed
from meshes.tetmesh import TetMesh, make_tetmesh, tet_determinants

MOST_TETS = 1_000_000
"""More tetrahedra than this, estimated from the volume, are refused: the likely reason is a wrong unit of length."""

CROSSING = 1e-6
"""A surface crosses itself where parts go through each other by more than this times its largest coordinate; files in single
precision are rounded by a tenth of it."""

_SURFACES = (".stl", ".obj", ".ply")
_PAIRS_AT_ONCE = 2_000_000
_FEW_PAIRS = 20_000


def load_volume(path: str | Path, *, edge_length: float, scale: float = 1.0) -> TetMesh:
    """Read the mesh of a soft body: tetrahedra, or a closed surface, which is then filled with tetrahedra.

    Parameters
    ----------
    path : path-like
        Tetrahedra (.vtu, .vtk, .msh, .mesh, .inp), or a surface (.stl, .obj, .ply).
    edge_length : float
        Edge length of the tetrahedra that fill a surface, m; not used for tetrahedra.
    scale : float
        Factor from the file's unit of length to metres: 0.001 for a file in millimetres.

    Raises
    ------
    MeshError
        As `load_tetmesh`, `load_surface` and `tetrahedralize`.
    """
    path = Path(path)
    if path.suffix.lower() in _SURFACES:
        return tetrahedralize(load_surface(path, scale=scale), edge_length)
    return load_tetmesh(path, scale=scale)


def tetrahedralize(
    surface: TriMesh, edge_length: float, *, envelope: float = 1e-3, stop_energy: float = 10.0, name: str | None = None
) -> TetMesh:
    """Fill a closed surface with tetrahedra by fTetWild.

    The mesh differs from run to run; save it for later use.

    Parameters
    ----------
    surface : TriMesh
        Closed, outward, without self-intersection.
    edge_length : float
        Target edge length, m.
    envelope : float
        Allowed distance from the surface, as a fraction of the diagonal of its bounding box.
    stop_energy : float
        Energy at which the mesher stops improving elements; 3 is that of regular ones.
    name : str, optional
        Name of the mesh; default that of the surface.

    Raises
    ------
    MeshError
        If the surface is open, non-manifold, inside out or self-intersecting, the edge length is not positive, longer than the
        body or so short that it would give more than `MOST_TETS` tetrahedra, or pytetwild is not installed or fails.
    """
    where = f"surface {surface.name!r} from {surface.source}"
    if not (np.isfinite(edge_length) and edge_length > 0.0):
        raise MeshError(f"{where}: edge_length is {edge_length!r} m, but must be finite and greater than 0.")
    require_closed(surface)
    require_simple(surface)
    size = np.ptp(surface.bounds, axis=0)
    extent = f"{size[0]:.4g} x {size[1]:.4g} x {size[2]:.4g} m"
    if edge_length > size.max():
        raise MeshError(
            f"{where}: it is {extent}, but edge_length is {edge_length:.4g} m, longer than all of it; if the file is in metres, "
            "leave the scale out (mesh_unit=m in the scenes), else take shorter edges."
        )
    # a regular tetrahedron of edge h has the volume h^3 / (6 sqrt 2)
    count = surface.signed_volume * 6.0 * np.sqrt(2.0) / edge_length**3
    if count > MOST_TETS:
        raise MeshError(
            f"{where}: its {extent} with edges of {edge_length:.4g} m would take "
            f"{count:.2g} tetrahedra, at most {MOST_TETS:.0e} are made; if the file is in millimetres, say so by the scale 0.001 "
            "(mesh_unit=mm in the scenes), else take longer edges."
        )
    try:
        import pytetwild
    except ImportError:
        raise MeshError(
            f"{where}: pytetwild, which fills surfaces with tetrahedra, is not installed; install the extra 'mesh' "
            "(pip install 'femsim[mesh]'), or mesh the surface elsewhere and give tetrahedra."
        ) from None
    # the mesher leaves a file in the working folder
    with tempfile.TemporaryDirectory() as scratch, contextlib.chdir(scratch):
        try:
            points, cells = pytetwild.tetrahedralize(  # type: ignore[attr-defined]  # it exports without __all__
                surface.points,
                surface.triangles.astype(np.int32),
                edge_length_abs=edge_length,
                epsilon=envelope,
                stop_energy=stop_energy,
            )
        except (MemoryError, RuntimeError) as error:
            raise MeshError(
                f"{where}: the mesher failed at edges of {edge_length:.4g} m ({type(error).__name__}: {error}); take other edges."
            ) from None
    xyz, tets = np.asarray(points, dtype=np.float64), np.asarray(cells, dtype=np.int64).reshape(-1, 4)
    if not len(tets):
        raise MeshError(f"{where}: the mesher found no inside at edges of {edge_length:.4g} m; take shorter edges.")
    if tet_determinants(xyz, tets).sum() < 0.0:
        tets = tets[:, [0, 1, 3, 2]]  # the mesher's own order is left-handed
    return make_tetmesh(xyz, tets, name=name or surface.name, source=surface.source)


def require_simple(surface: TriMesh) -> None:
    """Raise MeshError if the surface intersects itself."""
    crossed = crossing_triangles(surface)
    if len(crossed):
        raise MeshError(
            f"surface {surface.name!r} from {surface.source} crosses itself: edges of other parts pierce {len(crossed)} of its "
            f"{len(surface.triangles)} triangles ({listed(crossed)}), but a body at rest cannot overlap itself; repair the shape."
        )


def crossing_triangles(surface: TriMesh) -> NDArray[np.int64]:
    """Return the triangles, sorted, that are pierced by an edge that shares no corner with them.

    Parameters
    ----------
    surface : TriMesh
        Any surface. Parts that are in contact, lie in one plane, or intersect by less than `CROSSING` do not count.
    """
    points, triangles = surface.points, surface.triangles
    edges = np.unique(np.sort(triangles[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2), axis=1), axis=0)
    ends, corners = points[edges], points[triangles]
    low, high = corners.min(axis=1), corners.max(axis=1)
    centres, middles = 0.5 * (low + high), ends.mean(axis=1)
    reach = 0.5 * np.linalg.norm(high - low, axis=1).max() + 0.5 * np.linalg.norm(ends[:, 1] - ends[:, 0], axis=1)
    least = CROSSING * np.abs(points).max()
    crossed: list[NDArray[np.int64]] = []
    for edge, triangle in _pairs_within(reach, middles, centres):
        close = ((ends[edge].min(axis=1) <= high[triangle]) & (ends[edge].max(axis=1) >= low[triangle])).all(axis=1)
        close &= ~(edges[edge][:, :, None] == triangles[triangle][:, None, :]).any(axis=(1, 2))
        edge, triangle = edge[close], triangle[close]
        (p, q), (a, b, c) = ends[edge].transpose(1, 0, 2), corners[triangle].transpose(1, 0, 2)
        normal = np.cross(b - a, c - a)
        thin = least * np.linalg.norm(normal, axis=1)
        below, above = _dot(normal, p - a), _dot(normal, q - a)
        pierced = (np.minimum(below, above) < -thin) & (np.maximum(below, above) > thin)
        sense = np.sign(above - below)
        for start, end in ((a, b), (b, c), (c, a)):  # the edge passes on the inner side of each triangle edge
            common = np.cross(end - start, q - p)
            pierced &= sense * _dot(common, p - start) < -least * np.linalg.norm(common, axis=1)
        crossed.append(triangle[pierced])
    return np.unique(np.concatenate(crossed)) if crossed else np.zeros(0, dtype=np.int64)


def _pairs_within(
    reach: NDArray[np.float64], middles: NDArray[np.float64], centres: NDArray[np.float64]
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Yield edges and triangles, some at once: all with a centre in reach of the middle.

    Where there are few, others too: they take less time than the import of SciPy's tree.
    """
    if len(middles) * len(centres) <= _FEW_PAIRS:
        yield np.repeat(np.arange(len(middles)), len(centres)), np.tile(np.arange(len(centres)), len(middles))
        return
    from scipy.spatial import cKDTree

    tree = cKDTree(centres)
    near = tree.query_ball_point(middles, reach, return_length=True)
    chunk = np.cumsum(near) // _PAIRS_AT_ONCE
    for number in np.unique(chunk):
        own = np.flatnonzero(chunk == number)
        found = tree.query_ball_point(middles[own], reach[own])
        yield np.repeat(own, near[own]), np.concatenate([np.asarray(row, dtype=np.int64) for row in found])


def _dot(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """Products of vectors, row by row, (n, 3) each."""
    out: NDArray[np.float64] = np.einsum("ij,ij->i", a, b)
    return out

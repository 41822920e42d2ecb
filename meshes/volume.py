"""From a closed surface to tetrahedra by pytetwild (extra `mesh`), and surfaces that cross themselves."""

import contextlib
import tempfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from meshes.errors import MeshError
from meshes.load import load_surface, load_tetmesh
from meshes.surface import TriMesh, listed, require_closed
from meshes.tetmesh import TetMesh, make_tetmesh, tet_determinants

MOST_TETS = 1_000_000
"""More tetrahedra than this, by the volume of the body, are refused: a wrong unit of length is the likely reason."""

_SURFACES = (".stl", ".obj", ".ply")
_PAIRS_AT_ONCE = 2_000_000


def load_volume(path: str | Path, *, edge_length: float, scale: float = 1.0) -> TetMesh:
    """Read the mesh of a soft body: tetrahedra as they are, or a closed surface, which is meshed.

    Parameters
    ----------
    path : path-like
        Tetrahedra (.vtu, .vtk, .msh, .mesh, .inp), or a surface (.stl, .obj, .ply).
    edge_length : float
        Edges of the tetrahedra that a surface is meshed with, m; unused for tetrahedra.
    scale : float
        Factor from the file's unit of length to metres: 0.001 for a file in millimetres.

    Raises
    ------
    MeshError
        As `load_tetmesh`, `load_surface` and `tetrahedralize`, or if the rest shape crosses itself.
    """
    path = Path(path)
    if path.suffix.lower() in _SURFACES:
        return tetrahedralize(load_surface(path, scale=scale), edge_length)
    mesh = load_tetmesh(path, scale=scale)
    require_simple(mesh.surface())
    return mesh


def tetrahedralize(
    surface: TriMesh, edge_length: float, *, envelope: float = 1e-3, stop_energy: float = 10.0, name: str | None = None
) -> TetMesh:
    """Fill a closed surface with tetrahedra by fTetWild.

    The mesher's result differs from run to run; save what is to be used again.

    Parameters
    ----------
    surface : TriMesh
        Closed, outward, not crossing itself.
    edge_length : float
        Edge length asked of the mesher, m.
    envelope : float
        How far the mesher may leave the surface, as a fraction of the diagonal of its box.
    stop_energy : float
        Energy at which the mesher stops to improve elements; 3 is that of regular ones.
    name : str, optional
        Name of the mesh; default that of the surface.

    Raises
    ------
    MeshError
        If the surface is open, not manifold, inside out or crosses itself, the edge length is not positive or so short that more
        than `MOST_TETS` tetrahedra would come out, pytetwild is not installed, or it finds no inside.
    """
    where = f"surface {surface.name!r} from {surface.source}"
    if not (np.isfinite(edge_length) and edge_length > 0.0):
        raise MeshError(f"{where}: edge_length is {edge_length!r} m, but must be finite and greater than 0.")
    require_closed(surface)
    require_simple(surface)
    size = np.ptp(surface.bounds, axis=0)
    # a regular tetrahedron of edge h has the volume h^3 / (6 sqrt 2)
    count = surface.signed_volume * 6.0 * np.sqrt(2.0) / edge_length**3
    if count > MOST_TETS:
        raise MeshError(
            f"{where}: its {size[0]:.4g} x {size[1]:.4g} x {size[2]:.4g} m with edges of {edge_length:.4g} m would take "
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
    # the mesher leaves a file behind
    with tempfile.TemporaryDirectory() as scratch, contextlib.chdir(scratch):
        points, cells = pytetwild.tetrahedralize(  # type: ignore[attr-defined]  # it exports without __all__
            surface.points,
            surface.triangles.astype(np.int32),
            edge_length_abs=edge_length,
            epsilon=envelope,
            stop_energy=stop_energy,
        )
    xyz, tets = np.asarray(points, dtype=np.float64), np.asarray(cells, dtype=np.int64).reshape(-1, 4)
    if not len(tets):
        raise MeshError(f"{where}: the mesher found no inside at edges of {edge_length:.4g} m; take shorter edges.")
    if tet_determinants(xyz, tets).sum() < 0.0:
        tets = tets[:, [0, 1, 3, 2]]  # the mesher's own order is left-handed
    return make_tetmesh(xyz, tets, name=name or surface.name, source=surface.source)


def require_simple(surface: TriMesh) -> None:
    """Raise MeshError if the surface crosses itself."""
    crossed = crossing_triangles(surface)
    if len(crossed):
        raise MeshError(
            f"surface {surface.name!r} from {surface.source} crosses itself: edges of other parts pierce {len(crossed)} of its "
            f"{len(surface.triangles)} triangles ({listed(crossed)}), but a body at rest cannot overlap itself; repair the shape."
        )


def crossing_triangles(surface: TriMesh) -> NDArray[np.int64]:
    """Return the triangles, sorted, that an edge pierces with which they share no corner.

    Parameters
    ----------
    surface : TriMesh
        Any surface. Parts that only touch, or lie in one plane, do not count.
    """
    from scipy.spatial import cKDTree

    points, triangles = surface.points, surface.triangles
    edges = np.unique(np.sort(triangles[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2), axis=1), axis=0)
    ends, corners = points[edges], points[triangles]
    low, high = corners.min(axis=1), corners.max(axis=1)
    centres, middles = 0.5 * (low + high), ends.mean(axis=1)
    reach = 0.5 * np.linalg.norm(high - low, axis=1).max() + 0.5 * np.linalg.norm(ends[:, 1] - ends[:, 0], axis=1)
    tree = cKDTree(centres)
    near = tree.query_ball_point(middles, reach, return_length=True)
    chunk = np.cumsum(near) // _PAIRS_AT_ONCE
    crossed: list[NDArray[np.int64]] = []
    for number in np.unique(chunk):
        own = np.flatnonzero(chunk == number)
        found = tree.query_ball_point(middles[own], reach[own])
        edge = np.repeat(own, near[own])
        triangle = np.concatenate([np.asarray(row, dtype=np.int64) for row in found])
        close = ((ends[edge].min(axis=1) <= high[triangle]) & (ends[edge].max(axis=1) >= low[triangle])).all(axis=1)
        close &= ~(edges[edge][:, :, None] == triangles[triangle][:, None, :]).any(axis=(1, 2))
        edge, triangle = edge[close], triangle[close]
        (p, q), (a, b, c) = ends[edge].transpose(1, 0, 2), corners[triangle].transpose(1, 0, 2)
        sides = _volumes(a, b, c, p) * _volumes(a, b, c, q) < 0.0
        around = np.sign([_volumes(p, q, a, b), _volumes(p, q, b, c), _volumes(p, q, c, a)])
        crossed.append(triangle[sides & (np.abs(around.sum(axis=0)) == 3.0)])
    return np.unique(np.concatenate(crossed)) if crossed else np.zeros(0, dtype=np.int64)


def _volumes(
    a: NDArray[np.float64], b: NDArray[np.float64], c: NDArray[np.float64], d: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Six times the signed volume of tetrahedra, corners (n, 3) each."""
    out: NDArray[np.float64] = np.einsum("ij,ij->i", np.cross(b - a, c - a), d - a)
    return out

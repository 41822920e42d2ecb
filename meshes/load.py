"""Reading and writing mesh files with meshio, with messages instead of tracebacks.

Files of others are read in a child process with limits (`foreign`); those that come with femsim are read directly.
"""

import difflib
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import foreign
from foreign.binary_meshes import binary_stl
from foreign.mesh_files import REGION, read_mesh
from meshes.errors import MeshError
from meshes.surface import TriMesh, make_trimesh, merged, require_closed
from meshes.tetmesh import TetMesh, check_scale, make_tetmesh

_PACKED = Path(__file__).resolve().parent / "_data"  # a wheel has its copy of the meshes here; a clone never has this folder
FILES = _PACKED if _PACKED.is_dir() else _PACKED.parents[1] / "data" / "meshes"
"""Folder of the meshes that come with the project."""

TET_SUFFIXES = (".vtu", ".vtk", ".msh", ".mesh", ".inp")
SURFACE_SUFFIXES = (".stl", ".obj", ".ply", ".vtk", ".vtu", ".dae", ".glb")
FARTHEST, SMALLEST = 1e6, 1e-9
"""Coordinates beyond the first and bodies smaller than the second, m, are refused."""
#: What reads them, imported before a reader has its limits: trimesh alone takes more memory than a small file may.
_BOTH = ["meshio", "trimesh"]
_LIBRARIES = {".dae": ["collada"], ".glb": ["trimesh"], ".obj": _BOTH, ".stl": _BOTH}


class _File(NamedTuple):
    """What a mesh file holds: points, kinds of all blocks of cells, the wanted blocks by kind, and their regions."""

    points: NDArray[np.float64]
    kinds: list[str]
    blocks: list[tuple[str, NDArray[np.int64]]]
    regions: dict[str, NDArray[np.int64]] | None = None


def load_tetmesh(path: str | Path, *, scale: float = 1.0) -> TetMesh:
    """Read a tetrahedral mesh.

    Parameters
    ----------
    path : path-like
        A .vtu, .vtk, .msh, .mesh or .inp file; cells other than linear tetrahedra are ignored. Physical groups, references,
        element sets and cell arrays such as "material" become its ``regions``.
    scale : float
        Factor from the file's unit of length to metres: 0.001 for a file in millimetres.

    Returns
    -------
    TetMesh
        Named by the file's stem, its source is the path as given.

    Raises
    ------
    MeshError
        If the file is missing (meshes of the same folder are listed), unreadable or without tetrahedra,
        or the mesh is not valid (see `make_tetmesh`).
    """
    path = Path(path)
    factor = check_scale(scale, str(path))
    mesh = _read(path, TET_SUFFIXES, ["tetra"])
    blocks = [cells for _, cells in mesh.blocks]
    if not blocks:
        found = ", ".join(sorted(set(mesh.kinds))) or "none"
        raise MeshError(
            f"{path}: the file has no linear tetrahedra (its cells: {found}), but a soft body needs "
            "them; mesh the volume first, for example with pytetwild or gmsh, first order."
        )
    points = _in_metres(path, mesh.points, factor)
    return replace(make_tetmesh(points, np.concatenate(blocks), name=path.stem, source=str(path)), regions=mesh.regions or {})


def load_surface(path: str | Path, *, scale: float = 1.0, closed: bool = False) -> TriMesh:
    """Read a triangle surface; points with equal coordinates are merged (STL repeats them).

    Parameters
    ----------
    path : path-like
        An .stl, .obj, .ply, .vtk, .vtu, .dae or .glb file; quadrilaterals are divided in two, other cells are ignored. COLLADA
        (.dae) and glTF (.glb) need the extra ``mesh``; which way is up there stays as it is, in glTF y.
    scale : float
        Factor from the file's unit of length to metres; .dae and .glb files say their unit, so that it is one beside that.
    closed : bool
        Whether to require a closed, outward surface.

    Returns
    -------
    TriMesh
        Named by the file's stem, its source is the path as given.

    Raises
    ------
    MeshError
        If the file is missing (meshes of the same folder are listed), unreadable or without triangles, a
        coordinate is not finite, or a closed surface is required and it is open or inside out.
    """
    path = Path(path)
    factor = check_scale(scale, str(path))
    mesh = _read(path, SURFACE_SUFFIXES, ["triangle", "quad"])
    parts = [cells for kind, cells in mesh.blocks if kind == "triangle"]
    for kind, cells in mesh.blocks:
        if kind == "quad":
            parts += [cells[:, [0, 1, 2]], cells[:, [0, 2, 3]]]
    if not parts:
        found = ", ".join(sorted(set(mesh.kinds))) or "none"
        raise MeshError(f"{path}: the file has no triangles (its cells: {found}); export the surface as triangles.")
    points, triangles = _in_metres(path, mesh.points, factor), np.concatenate(parts)
    if np.isfinite(points).all() and triangles.min(initial=0) >= 0 and triangles.max(initial=-1) < len(points):
        points, triangles = merged(points, triangles)  # else make_trimesh reports the error
    if not len(triangles):
        raise MeshError(f"{path}: each of its triangles has two corners in one place; export the surface again.")
    surface = make_trimesh(points, triangles, name=path.stem, source=str(path))
    if closed:
        require_closed(surface)
    return surface


def save_tetmesh(mesh: TetMesh, path: str | Path) -> Path:
    """Write a mesh with its regions as binary, compressed .vtu, exact to the last bit.

    Parameters
    ----------
    mesh : TetMesh
        The mesh.
    path : path-like
        File to write; the suffix must be .vtu and the folder must exist.

    Returns
    -------
    Path
        The file written.

    Raises
    ------
    MeshError
        If the suffix differs or the file cannot be written.
    """
    import meshio

    path = Path(path)
    if path.suffix.lower() != ".vtu":
        raise MeshError(f"{path}: the suffix is {path.suffix!r}, but meshes are saved as '.vtu'; rename the file.")
    inside = {f"{REGION}{name}": [np.isin(np.arange(len(mesh.tets)), own).astype(np.int8)] for name, own in mesh.regions.items()}
    try:
        meshio.Mesh(mesh.points, [("tetra", mesh.tets)], cell_data=inside).write(path, file_format="vtu", binary=True)
    except OSError as error:
        raise MeshError(f"{path}: the mesh cannot be written ({error.strerror or error}); check the folder.") from None
    return path


def _read(path: Path, suffixes: tuple[str, ...], kinds: list[str]) -> _File:
    """Return points and the wanted cells of a file, or raise MeshError."""
    if path.suffix.lower() not in suffixes:
        raise MeshError(
            f"{path}: the suffix is {path.suffix!r}, but must be one of {', '.join(suffixes)}; convert the "
            "file (`meshio convert`, or the program that wrote it)."
        )
    if not path.is_file():
        raise MeshError(f"{path}: there is no such file; {_nearby(path, suffixes)}")
    full = path.resolve()
    try:
        if path.suffix.lower() == ".stl" and (corners := binary_stl(full)) is not None:
            return _File(corners.reshape(-1, 3), ["triangle"], [("triangle", np.arange(corners.size // 3).reshape(-1, 3))])
        with foreign.in_this_process() if full.parent == FILES else nullcontext():
            found = foreign.call(
                read_mesh,
                full.stat().st_size,
                libraries=_LIBRARIES.get(path.suffix.lower(), ["meshio"]),
                path=str(full),
                kinds=kinds,
            )
    except (foreign.Refused, OSError) as error:
        raise MeshError(
            f"{path}: the file cannot be read as {path.suffix} ({error}); check that it is complete and in "
            "the format that its suffix says."
        ) from None
    blocks = [(kind, found[f"cells {number}"]) for number, kind in enumerate(found["types"]) if kind in kinds]
    regions = {name: found[f"region {number}"] for number, name in enumerate(found["regions"])}
    return _File(found["points"], found["types"], blocks, regions)


def _in_metres(path: Path, points: NDArray[np.float64], factor: float) -> NDArray[np.float64]:
    """Scale the points of a file, and refuse what is far away or has no size."""
    if not len(points):
        raise MeshError(f"{path}: the file has no points; export the mesh again.")
    with np.errstate(over="ignore"):
        scaled: NDArray[np.float64] = factor * points
    finite = scaled[np.isfinite(scaled)]  # make_tetmesh and make_trimesh name the others
    farthest = float(np.abs(finite).max(initial=0.0))
    if farthest > FARTHEST:
        raise MeshError(
            f"{path}: a coordinate is {farthest:.3g} m, but at most {FARTHEST:g} m are allowed; check the scale and the unit of "
            "the file, or move the body to the origin."
        )
    if len(finite) == scaled.size and np.ptp(scaled, axis=0).max() < SMALLEST:
        raise MeshError(
            f"{path}: the whole mesh spans {np.ptp(scaled, axis=0).max():.3g} m, but at least {SMALLEST:g} m are needed; check "
            "the scale and the unit of the file."
        )
    return scaled


def _nearby(path: Path, suffixes: tuple[str, ...]) -> str:
    folder = path.parent
    if not folder.is_dir():
        return f"the folder {folder} does not exist either; check the path."
    names = sorted(entry.name for entry in folder.iterdir() if entry.suffix.lower() in suffixes)
    if not names:
        return f"the folder {folder} has no mesh of a known format ({', '.join(suffixes)}); check the path."
    near = difflib.get_close_matches(path.name, names, n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    shown = ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")
    return f"{hint}The meshes there are: {shown}."

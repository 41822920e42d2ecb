"""Points and cells of mesh files, by meshio, pycollada and trimesh. Call it through `foreign.call`: it may take for ever."""

from __future__ import annotations

import contextlib
import io
import re
from typing import Any

import numpy as np

from foreign.abaqus_sets import element_sets
from foreign.child import Refused

#: A header of PLY is not longer, bytes.
_PLY_HEADER = 1 << 16
#: The last line of .stl in text is not longer with what is empty behind it, bytes.
_LAST_LINE = 1 << 12
#: Corners of the kinds of cells that femsim asks for.
_CORNERS = {"triangle": 3, "quad": 4, "tetra": 4}
#: Numbers of a point in .obj with its weight or its colour, by red, green, blue and perhaps opacity.
_COLOURED = (4, 6, 7)
#: A face of .obj that counts its points from the last one.
_FROM_END = re.compile(rb"^[ \t]*f[ \t](?:[^\r\n]*[ \t])?-", re.MULTILINE)
#: Cell arrays whose names begin so mark the cells of the region that follows.
REGION = "region:"
#: More regions than this are none; volumes have three dimensions.
_MOST_REGIONS, _DIMENSION = 1000, 3
#: Whole numbers on cells so named say what each is of, in the order in which they are looked for.
_TAGS = ("gmsh:physical", "gmsh:geometrical", "medit:ref", "material", "material_id", "materialids", "region", "attribute")


class _Ending(io.BufferedReader):
    """A file that is not read on behind its end: readers that wait there for a bracket would wait for ever."""

    _ended = False

    def read(self, size: int | None = -1, /) -> bytes:
        """Read bytes; refuse the file where the second call in a row finds none."""
        return self._known(super().read(size), size)

    def readline(self, size: int | None = -1, /) -> bytes:
        """Read a line, with the same end."""
        return self._known(super().readline(size), size)

    def _known(self, found: bytes, size: int | None) -> bytes:
        if not found and size != 0:
            if self._ended:
                raise Refused("it is cut off: it ends where more should follow")
            self._ended = True
        return found


def read_mesh(path: str, kinds: list[str]) -> dict[str, Any]:
    """Read a mesh.

    Parameters
    ----------
    path : str
        File of a kind that meshio knows by its suffix, of COLLADA (.dae), whose points are then in metres, or of glTF (.glb).
    kinds : list of str
        Kinds of cells that are wanted, in meshio's words.

    Returns
    -------
    dict
        ``points`` (n, 2 or 3), ``types``: the kinds of all blocks of cells, ``cells N``, (m, corners), of each wanted block N;
        ``regions``, names of the regions of the wanted cells, and ``region N``, (k,), the numbers of the cells of each, counted
        over all wanted blocks.
    """
    if path.lower().endswith(".ply"):
        with open(path, "rb") as stream:
            if b"end_header" not in stream.read(_PLY_HEADER):  # meshio reads on behind the end of the file for ever
                raise Refused("its header has no end_header: it is cut off")
    if path.lower().endswith(".dae"):
        return _collada(path)
    if path.lower().endswith(".glb"):
        return _gltf(path)
    if path.lower().endswith(".vtu"):
        _no_entities(path, b"<VTKFile")
    import meshio

    noise = io.StringIO()  # meshio prints its attempts, and ends the process if no reader fits
    # before it detects a text .stl it reads its size as that of a binary one, which may overflow
    with contextlib.redirect_stdout(noise), contextlib.redirect_stderr(noise), np.errstate(all="ignore"):
        kind = _msh_format(path) if path.lower().endswith(".msh") else None
        if kind == "ansys":
            with _Ending(io.FileIO(path)) as stream:
                mesh = meshio.read(stream, kind)
        elif path.lower().endswith((".obj", ".stl")):
            mesh = _by_either(path)
        else:
            mesh = meshio.read(path, kind)
        points = np.asarray(mesh.points, dtype=np.float64)
    if points.ndim != 2 or points.shape[1] not in (2, 3):
        raise Refused(f"its points are a table of shape {points.shape}, and not two or three numbers each")
    out: dict[str, Any] = {"points": points, "types": [str(block.type) for block in mesh.cells]}
    for number, block in enumerate(mesh.cells):
        if block.type in kinds:
            cells = np.asarray(block.data)
            if cells.dtype.kind not in "iu" or cells.ndim != 2:
                raise Refused(f"its {block.type} cells are no table of whole numbers")
            if cells.shape[1] != _CORNERS.get(block.type, cells.shape[1]):
                raise Refused(f"its {block.type} cells have {cells.shape[1]} corners")
            if cells.dtype.kind == "u" and cells.size and cells.max() > np.iinfo(np.int64).max:
                raise Refused(f"a {block.type} cell refers to point {cells.max()}")
            out[f"cells {number}"] = cells.astype(np.int64)
    return out | _regions(path, mesh, kinds)


def _regions(path: str, mesh: Any, kinds: list[str]) -> dict[str, Any]:
    """Names and cells of the regions that the wanted cells are divided into; no names where nothing says so."""
    wanted = [block.type in kinds for block in mesh.cells]
    found = _sets(path, mesh, wanted) if path.lower().endswith(".inp") else _marked(mesh, wanted) or _tagged(mesh, wanted)
    return {"regions": list(found)} | {f"region {number}": cells for number, cells in enumerate(found.values())}


def _whole_numbers(blocks: Any, wanted: list[bool]) -> np.ndarray | None:
    """Join the values of the wanted cells, where they are whole numbers."""
    own = [np.asarray(values) for values, is_wanted in zip(blocks, wanted, strict=False) if is_wanted]
    if not own or not all(values.ndim == 1 and values.dtype.kind in "iu" for values in own):
        return None
    return np.concatenate(own)


def _marked(mesh: Any, wanted: list[bool]) -> dict[str, np.ndarray]:
    """Regions that cell arrays of their own mark, as femsim writes them."""
    arrays = {name: _whole_numbers(mesh.cell_data[name], wanted) for name in mesh.cell_data if name.startswith(REGION)}
    return {name[len(REGION) :]: np.flatnonzero(marks) for name, marks in arrays.items() if marks is not None}


def _tagged(mesh: Any, wanted: list[bool]) -> dict[str, np.ndarray]:
    """Regions by the first of the known tags; named where the file names its tags, else by their numbers."""
    named = {name.lower(): blocks for name, blocks in mesh.cell_data.items()}
    for tag in _TAGS:
        tags = _whole_numbers(named.get(tag, ()), wanted)
        if tags is None:
            continue
        values = np.unique(tags)
        if len(values) > _MOST_REGIONS:  # a number for each cell is no region
            continue
        names = {int(number): str(name) for name, (number, dimension) in mesh.field_data.items() if dimension == _DIMENSION}
        found = {names.get(int(value), str(value)): np.flatnonzero(tags == value) for value in values}
        return found | _groups(mesh, wanted)
    return {}


def _groups(mesh: Any, wanted: list[bool]) -> dict[str, np.ndarray]:
    """Named groups of gmsh, of which a volume may be in several; its tag is one of them."""
    starts = np.cumsum([0, *(len(block) if is_wanted else 0 for block, is_wanted in zip(mesh.cells, wanted, strict=True))])
    found = {}
    for name, blocks in mesh.cell_sets.items():
        if name.startswith("gmsh:") or len(blocks) != len(wanted):
            continue
        own = [start + np.asarray(cells) for start, cells, is_wanted in zip(starts, blocks, wanted, strict=False) if is_wanted]
        cells = np.concatenate([np.zeros(0, dtype=np.int64), *own]).astype(np.int64)
        if len(cells):
            found[str(name)] = cells
    return found


def _sets(path: str, mesh: Any, wanted: list[bool]) -> dict[str, np.ndarray]:
    """Element sets of an Abaqus file, which may overlap; none where they cannot be told."""
    try:
        blocks, sets = element_sets(path, [block.data.shape[1] for block in mesh.cells])
    except ValueError:
        return {}
    labels = np.concatenate(
        [np.zeros(0, dtype=np.int64), *(own for own, is_wanted in zip(blocks, wanted, strict=True) if is_wanted)]
    )
    found = {name: np.flatnonzero(np.isin(labels, of)) for name, of in sets.items()}
    return {name: cells for name, cells in found.items() if len(cells)} if len(found) <= _MOST_REGIONS else {}


def _by_either(path: str) -> Any:
    """Read an .obj or .stl file by meshio, or by trimesh where that cannot.

    meshio cannot join texture or normals that have numbers of their own in .obj, nor pass over an empty line before the last one
    of .stl in text, where Assimp writes one. Colours that follow the coordinates of a point are left out. A text of .stl that is
    cut off may end between two triangles, so its last line is asked for.
    """
    import meshio

    if path.lower().endswith(".stl"):
        with open(path, "rb") as stream:
            stream.seek(max(0, stream.seek(0, io.SEEK_END) - _LAST_LINE))
            if not stream.read().rstrip().rpartition(b"\n")[2].lstrip().lower().startswith(b"endsolid"):
                raise Refused("it is cut off: a text of .stl ends with endsolid, and in binary its size is that of its triangles")
    counted = _counted(path) if path.lower().endswith(".obj") else None
    try:
        read: Any = meshio.read(path) if counted is None else meshio.read(io.StringIO(counted.decode("latin-1")), "obj")
        if np.ndim(read.points) == 2 and read.points.shape[1] in _COLOURED:
            read.points = read.points[:, :3]
        return read
    except Exception as error:
        try:
            import trimesh
        except ImportError:
            raise error from None
        with (
            open(path, "rb") if counted is None else io.BytesIO(counted) as stream
        ):  # no name: files beside it are not looked for
            found: Any = trimesh.load(stream, file_type=path.lower()[-3:], force="mesh", process=False)
        if not len(getattr(found, "faces", ())):
            raise
        return meshio.Mesh(np.asarray(found.vertices), [("triangle", np.asarray(found.faces))])


def _counted(path: str) -> bytes | None:
    """Points and faces of an .obj file whose faces count points from the last one that was given, -1; None of another one."""
    with open(path, "rb") as stream:
        data = stream.read()
    if not _FROM_END.search(data):
        return None
    lines, count = [], 0
    for line in data.splitlines():
        words = line.split()
        if words[:1] == [b"v"]:
            count += 1
            lines.append(line)
        elif words[:1] == [b"f"]:
            corners = [int(word.split(b"/")[0]) for word in words[1:]]
            if corners and min(corners) < -count:
                raise Refused(f"a face refers to point {min(corners)} where it has {count}")
            lines.append(b"f " + b" ".join(b"%d" % (one + count + 1 if one < 0 else one) for one in corners))
    return b"\n".join(lines) + b"\n"


def _collada(path: str) -> dict[str, Any]:
    """Read the triangles of a COLLADA file as its scene places them, in metres; the direction that it calls up stays as it is."""
    _no_entities(path, b"<COLLADA")
    try:
        import collada
    except ImportError:
        raise Refused("reading COLLADA needs pycollada: install 'femsim[mesh]', or export the mesh as .stl") from None

    with open(path, "rb") as stream:
        document = collada.Collada(stream, ignore=[collada.common.DaeUnsupportedError, collada.common.DaeBrokenRefError])
    points, triangles, count = [], [], 0
    for geometry in document.scene.objects("geometry") if document.scene is not None else ():
        for primitive in geometry.primitives():
            found = primitive.triangleset() if hasattr(primitive, "triangleset") else primitive
            corners = getattr(found, "vertex_index", None)
            if corners is None or found.vertex is None or corners.ndim != 2 or corners.shape[1] != 3:
                continue  # lines
            points.append(np.asarray(found.vertex, dtype=np.float64))
            triangles.append(np.asarray(corners, dtype=np.int64) + count)
            count += len(points[-1])
    unit = document.assetInfo.unitmeter or 1.0
    return {
        "regions": [],
        "points": float(unit) * np.concatenate([np.zeros((0, 3)), *points]),
        "types": ["triangle"],
        "cells 0": np.concatenate([np.zeros((0, 3), dtype=np.int64), *triangles]),
    }


def _gltf(path: str) -> dict[str, Any]:
    """Read the triangles of a binary glTF file as its scene places them, in metres; the direction that is up there stays y."""
    try:
        import trimesh
    except ImportError:
        raise Refused("reading glTF needs trimesh: install 'femsim[mesh]', or export the mesh as .stl") from None
    with open(path, "rb") as stream:
        found: Any = trimesh.load(stream, file_type="glb", force="mesh", process=False)
    points, triangles = np.asarray(found.vertices, dtype=np.float64), np.asarray(found.faces, dtype=np.int64)
    return {"regions": [], "points": points.reshape(-1, 3), "types": ["triangle"], "cells 0": triangles.reshape(-1, 3)}


def _no_entities(path: str, root: bytes) -> None:
    """Refuse an XML file that defines entities before its root: none needs them, and some of a few bytes become 10^9 letters."""
    with open(path, "rb") as stream:
        for line in stream:
            before, found, _ = line.partition(root)
            if b"<!DOCTYPE" in before or b"<!ENTITY" in before:
                raise Refused("it defines entities (<!DOCTYPE ...>), which no such file needs")
            if found:
                return


def _msh_format(path: str) -> str:
    """Say which of the two kinds of .msh a file is: meshio tries both, and the second never ends on a cut file of the first."""
    with open(path, "rb") as stream:
        first = stream.read(256).lstrip()[:1]
    kinds = {b"$": "gmsh", b"(": "ansys"}
    if first not in kinds:
        raise Refused("it is neither of gmsh, which begins with $MeshFormat, nor of Ansys")
    return kinds[first]

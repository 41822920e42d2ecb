"""Points and cells of mesh files, by meshio. Call it through `foreign.call`: it may take for ever."""

from __future__ import annotations

import contextlib
import io
from typing import Any

import numpy as np

from foreign.child import Refused

#: A header of PLY is not longer, bytes.
_PLY_HEADER = 1 << 16


def read_mesh(path: str, kinds: list[str]) -> dict[str, Any]:
    """Read a mesh.

    Parameters
    ----------
    path : str
        File of a kind that meshio knows by its suffix.
    kinds : list of str
        Kinds of cells that are wanted, in meshio's words.

    Returns
    -------
    dict
        ``points`` (n, 2 or 3), ``types``: the kinds of all blocks of cells, ``cells N``, (m, corners), of each wanted block N.
    """
    if path.lower().endswith(".ply"):
        with open(path, "rb") as stream:
            if b"end_header" not in stream.read(_PLY_HEADER):  # meshio reads on behind the end of the file for ever
                raise Refused("its header has no end_header: it is cut off")
    import meshio

    noise = io.StringIO()  # meshio prints its attempts, and ends the process if no reader fits
    # before it detects a text .stl it reads its size as that of a binary one, which may overflow
    with contextlib.redirect_stdout(noise), contextlib.redirect_stderr(noise), np.errstate(all="ignore"):
        mesh = meshio.read(path, _msh_format(path) if path.lower().endswith(".msh") else None)
        points = np.asarray(mesh.points, dtype=np.float64)
    if points.ndim != 2:
        raise Refused("its points are no table")
    out: dict[str, Any] = {"points": points, "types": [str(block.type) for block in mesh.cells]}
    for number, block in enumerate(mesh.cells):
        if block.type in kinds:
            cells = np.asarray(block.data)
            if cells.dtype.kind not in "iu" or cells.ndim != 2:
                raise Refused(f"its {block.type} cells are no table of whole numbers")
            if cells.dtype.kind == "u" and cells.size and cells.max() > np.iinfo(np.int64).max:
                raise Refused(f"a {block.type} cell refers to point {cells.max()}")
            out[f"cells {number}"] = cells.astype(np.int64)
    return out


def _msh_format(path: str) -> str:
    """Say which of the two kinds of .msh a file is: meshio tries both, and the second never ends on a cut file of the first."""
    with open(path, "rb") as stream:
        first = stream.read(256).lstrip()[:1]
    kinds = {b"$": "gmsh", b"(": "ansys"}
    if first not in kinds:
        raise Refused("it is neither of gmsh, which begins with $MeshFormat, nor of Ansys")
    return kinds[first]

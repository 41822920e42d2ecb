"""Points and cells of mesh files, by meshio. Call it through `foreign.call`: it may take for ever."""

from __future__ import annotations

import contextlib
import io
from typing import Any

import numpy as np

from foreign.child import Refused


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
    import meshio

    noise = io.StringIO()  # meshio prints its attempts, and ends the process if no reader fits
    # before it detects a text .stl it reads its size as that of a binary one, which may overflow
    with contextlib.redirect_stdout(noise), contextlib.redirect_stderr(noise), np.errstate(all="ignore"):
        mesh = meshio.read(path)
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

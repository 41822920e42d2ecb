"""Mesh files that are plain tables of numbers: binary STL, and the .msh of MuJoCo. Their sizes are checked first."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from foreign.child import Refused

_STL_HEADER = 80
_STL = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("more", "<u2")])


def binary_stl(path: str | Path) -> np.ndarray | None:
    """Read corners (t, 3, 3) of the triangles of a binary STL file; None where its size is not that of one.

    Raises
    ------
    OSError
        The file cannot be read.
    """
    size = Path(path).stat().st_size
    with open(path, "rb") as stream:
        count = int.from_bytes(stream.read(_STL_HEADER + 4)[_STL_HEADER:], "little")
        if not count or size != _STL_HEADER + 4 + count * _STL.itemsize:
            return None
        return np.fromfile(stream, _STL, count)["corners"].astype(np.float64)


def mujoco_msh(path: str | Path) -> tuple[np.ndarray, np.ndarray]:
    """Read points (n, 3) and triangles (k, 3), which may be none, of a binary .msh file of MuJoCo.

    It begins with the numbers of points, normals, texture coordinates and triangles; their tables follow in this order.

    Raises
    ------
    Refused
        It is no such file, or cut off.
    OSError
        The file cannot be read.
    """
    size = Path(path).stat().st_size
    with open(path, "rb") as stream:
        counts = np.frombuffer(stream.read(16), "<i4").tolist() if size >= 16 else []
        if not counts or min(counts) < 0 or size != 16 + sum(n * b for n, b in zip(counts, (12, 12, 8, 12), strict=True)):
            raise Refused("its size is not that of a .msh file of MuJoCo, which is binary")
        points = np.fromfile(stream, "<f4", 3 * counts[0]).reshape(-1, 3).astype(np.float64)
        stream.seek(12 * counts[1] + 8 * counts[2], 1)
        return points, np.fromfile(stream, "<i4", 3 * counts[3]).reshape(-1, 3).astype(np.int64)

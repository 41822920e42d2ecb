"""The gripper pad: a box of 6 x 40 x 40 mm whose edges are chamfered by 1 mm, in metres, as binary STL.

Run by `python -m meshes.recipes.pad --out FILE.stl`; gives the same file at every run.
"""

import argparse
import struct
import sys
from pathlib import Path

import numpy as np

from meshes.generate import chamfered_box_triangles
from meshes.surface import TriMesh

SIZE = (0.006, 0.04, 0.04)
"""Outer edge lengths along x, y, z, m."""

CHAMFER = 1e-3
"""Length cut off each face at each edge, m."""


def make_pad() -> TriMesh:
    """Return the pad, centred at the origin, thin along x (the closing direction of the fingers)."""
    return chamfered_box_triangles(SIZE, CHAMFER)


def stl_bytes(surface: TriMesh, title: str) -> bytes:
    """Return a surface as a binary STL file: 80 bytes of title, the count, 50 bytes a triangle."""
    corners = surface.points[surface.triangles]
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    record = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])
    rows = np.zeros(len(corners), dtype=record)
    rows["normal"] = normals
    rows["corners"] = corners
    head = title.encode("ascii")[:80].ljust(80)
    return head + struct.pack("<I", len(rows)) + rows.tobytes()


def main(arguments: list[str] | None = None) -> int:
    """Write the pad."""
    parser = argparse.ArgumentParser(description="Make the pad of the gripper.")
    parser.add_argument("--out", required=True, help="file to write (.stl)")
    options = parser.parse_args(arguments)
    Path(options.out).write_bytes(stl_bytes(make_pad(), "gripper pad 6 x 40 x 40 mm, chamfer 1 mm, unit m"))
    return 0


if __name__ == "__main__":
    sys.exit(main())

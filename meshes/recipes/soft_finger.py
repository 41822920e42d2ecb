"""A soft finger to mount: 50 mm long, 24 mm wide, 12 mm thick at its root and 8 mm at its tip, of structured tetrahedra.

Run by `python -m meshes.recipes.soft_finger --out FILE.vtu`; gives the same mesh at every run.
"""

import argparse
import sys

import numpy as np

from meshes.generate import box_tets
from meshes.load import save_tetmesh
from meshes.tetmesh import TetMesh, make_tetmesh

LENGTH, WIDTH = 0.05, 0.024
"""Along z and along x, m."""

ROOT, TIP = 0.012, 0.008
"""Thickness along y at both ends, m."""

CELLS = (4, 2, 8)
"""Cells along x, y and z."""


def make_finger() -> TetMesh:
    """Return the finger: the centre of its root at the origin, its tip at positive z."""
    block = box_tets((1.0, 1.0, 1.0), CELLS)
    x, y, z = block.points.T
    along = z + 0.5
    points = np.column_stack([WIDTH * x, (ROOT + (TIP - ROOT) * along) * y, LENGTH * along])
    return make_tetmesh(points, block.tets, name="soft_finger", source="meshes.recipes.soft_finger")


def main(arguments: list[str] | None = None) -> int:
    """Write the finger."""
    parser = argparse.ArgumentParser(description="Make the soft finger.")
    parser.add_argument("--out", required=True, help="file to write (.vtu)")
    save_tetmesh(make_finger(), parser.parse_args(arguments).out)
    return 0


if __name__ == "__main__":
    sys.exit(main())

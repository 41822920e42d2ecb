"""Boxes with a chamber."""

from __future__ import annotations

import numpy as np

import femsim as fs


def without(mesh: fs.TetMesh, hollow: np.ndarray) -> fs.TetMesh:
    """Take tetrahedra out of a mesh."""
    tets = mesh.tets[~hollow]
    used, numbers = np.unique(tets, return_inverse=True)
    return fs.make_tetmesh(mesh.points[used], numbers.reshape(tets.shape), name="hollow", source="test")


def hollow_box(holes: int = 1) -> fs.TetMesh:
    """Box of 3 x 3 cells across and 2 holes + 1 along x, with a hole of a cell in each odd one."""
    cells = (2 * holes + 1, 3, 3)
    mesh = fs.box_tets(0.01 * np.array(cells), cells)
    cell = np.floor(mesh.points[mesh.tets].mean(axis=1) / 0.01 + 0.5 * np.array(cells)).astype(int)
    return without(mesh, (cell[:, 0] % 2 == 1) & (cell[:, 1:] == 1).all(axis=1))

"""Quadratic tetrahedra: mid-side nodes for a linear mesh."""

import numpy as np
from numpy.typing import NDArray

from meshes.tetmesh import TetMesh, make_tetmesh, tet_determinants

EDGES = ((0, 1), (1, 2), (0, 2), (0, 3), (1, 3), (2, 3))
"""Corners of the edge that carries node 4, 5, ... of a quadratic tetrahedron (VTK's order)."""

# the four corners, then the inner octahedron divided along the diagonal from node 6 to node 8
_PARTS = np.array(
    [[0, 4, 6, 7], [4, 1, 5, 8], [6, 5, 2, 9], [7, 8, 9, 3], [6, 8, 4, 5], [6, 8, 5, 9], [6, 8, 9, 7], [6, 8, 7, 4]]
)


def quadratic(mesh: TetMesh) -> tuple[TetMesh, NDArray[np.int64]]:
    """Put a node in the middle of every edge.

    Parameters
    ----------
    mesh : TetMesh
        m linear tetrahedra on n nodes.

    Returns
    -------
    refined : TetMesh
        The n nodes, followed by those of the edges; each tetrahedron divided into eight, elements 8 e to 8 e + 7: corners 0 to 3
        first, then four from the middle. For pictures, surfaces and contact.
    elements : ndarray of int64, (m, 10)
        Nodes of the quadratic tetrahedra: corners, then the edges `EDGES`. Edges are straight.
    """
    ends = np.sort(mesh.tets[:, EDGES].reshape(-1, 2), axis=1)
    unique, number = np.unique(ends, axis=0, return_inverse=True)
    elements = np.hstack([mesh.tets, len(mesh.points) + number.reshape(-1, 6)])
    points = np.vstack([mesh.points, mesh.points[unique].mean(axis=1)])
    parts = elements[:, _PARTS].reshape(-1, 4)
    mirrored = tet_determinants(points, parts) < 0.0
    parts[mirrored] = parts[mirrored][:, [0, 1, 3, 2]]
    return make_tetmesh(points, parts, name=mesh.name, source=mesh.source), elements

"""The ball of the gripping scene: radius 30 mm, about 1460 nodes and 6300 to 6900 tetrahedra.

Meshed by pytetwild (fTetWild) from an icosphere. The surface nodes are then put on one sphere around
the origin, whose radius is chosen so that the polyhedron has exactly the volume of the 30 mm ball;
that is 0.09 mm more than 30 mm. pytetwild is not reproducible: two runs give two meshes.

Run by `python -m meshes.recipes.ball --out FILE.vtu`; needs the extra `mesh`.
"""

import argparse
import math
import sys

import numpy as np
from numpy.typing import NDArray

from meshes.generate import sphere_triangles
from meshes.load import save_tetmesh
from meshes.quality import describe, quality
from meshes.surface import boundary_triangles
from meshes.tetmesh import TetMesh, make_tetmesh
from meshes.volume import tetrahedralize

RADIUS = 0.03
"""Radius of the ball, m."""

EDGE_LENGTH = 5.2e-3
"""Edge length asked of the mesher, m; it makes them about 4.4 mm."""

ENVELOPE = 1e-3
"""How far the mesher may leave the icosphere, as a fraction of the diagonal of its box."""

STOP_ENERGY = 6.0
"""Energy at which the mesher stops to improve elements (its default is 10)."""

NODES = (1400, 1500)
TETS = (6300, 6900)
MIN_SCALED_JACOBIAN = 0.2


def make_ball(radius: float = RADIUS, edge_length: float = EDGE_LENGTH) -> TetMesh:
    """Mesh the ball once.

    Parameters
    ----------
    radius : float
        Radius of the sphere of equal volume, m.
    edge_length : float
        Edge length asked of the mesher, m.

    Returns
    -------
    TetMesh
        Centred at the origin; all surface nodes at one distance from it.

    Raises
    ------
    MeshError
        If pytetwild is not installed or a made element is not valid.
    """
    made = tetrahedralize(sphere_triangles(radius, 3), edge_length, envelope=ENVELOPE, stop_energy=STOP_ENERGY)
    points = _on_sphere(made.points, made.tets, 4.0 / 3.0 * math.pi * radius**3)
    return make_tetmesh(points, made.tets, name="ball_r30", source="meshes.recipes.ball")


def _on_sphere(points: NDArray[np.float64], tets: NDArray[np.int64], volume: float) -> NDArray[np.float64]:
    """Put the surface nodes on the sphere around the origin that gives the polyhedron this volume."""
    triangles = boundary_triangles(tets)
    surface = np.unique(triangles)
    placed = points.copy()
    unit = points[surface] / np.linalg.norm(points[surface], axis=1, keepdims=True)
    placed[surface] = unit
    corners = placed[triangles]
    unit_volume = np.einsum("ij,ij->", corners[:, 0], np.cross(corners[:, 1], corners[:, 2])) / 6.0
    placed[surface] = unit * np.cbrt(volume / unit_volume)
    return placed


def main(arguments: list[str] | None = None) -> int:
    """Make the ball until it meets the targets, write it and print what it is."""
    parser = argparse.ArgumentParser(description="Make the tetrahedral ball of the gripping scene.")
    parser.add_argument("--out", required=True, help="file to write (.vtu)")
    parser.add_argument("--attempts", type=int, default=10, help="how often to mesh before giving up")
    options = parser.parse_args(arguments)
    for attempt in range(1, options.attempts + 1):
        mesh = make_ball()
        worst = quality(mesh).scaled_jacobian_min
        print(f"attempt {attempt}: {len(mesh.points)} nodes, {len(mesh.tets)} tetrahedra, worst {worst:.3f}")
        counts_fit = NODES[0] <= len(mesh.points) <= NODES[1] and TETS[0] <= len(mesh.tets) <= TETS[1]
        if counts_fit and worst > MIN_SCALED_JACOBIAN:
            save_tetmesh(mesh, options.out)
            print(describe(mesh))
            return 0
    print(
        f"no attempt met the targets: nodes {NODES}, tetrahedra {TETS}, worst > {MIN_SCALED_JACOBIAN}",
        file=sys.stderr,
    )
    return 1


if __name__ == "__main__":
    sys.exit(main())

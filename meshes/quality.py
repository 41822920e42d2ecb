"""Element quality of tetrahedral meshes (Verdict's measures, computed by VTK)."""

from dataclasses import dataclass

import numpy as np

from meshes.tetmesh import TetMesh


@dataclass(frozen=True)
class MeshQuality:
    """Quality of a tetrahedral mesh.

    Parameters
    ----------
    scaled_jacobian_min, scaled_jacobian_median : float
        Scaled Jacobian: 1 for a regular tetrahedron, 0 for a flat one; below 0.1 is poor.
    min_dihedral_deg : float
        Smallest angle between two faces of any element, degrees; 70.5 for a regular tetrahedron.
    radius_ratio_max : float
        Largest circumradius / (3 inradius): 1 for a regular tetrahedron.
    """

    scaled_jacobian_min: float
    scaled_jacobian_median: float
    min_dihedral_deg: float
    radius_ratio_max: float


def quality(mesh: TetMesh) -> MeshQuality:
    """Measure the elements of a mesh.

    Parameters
    ----------
    mesh : TetMesh
        The mesh.

    Returns
    -------
    MeshQuality
        Verdict's scaled Jacobian, dihedral angle and radius ratio.
    """
    import pyvista

    grid = pyvista.UnstructuredGrid({pyvista.CellType.TETRA: mesh.tets}, mesh.points)
    measured = grid.cell_quality(["scaled_jacobian", "min_angle", "radius_ratio"])
    jacobian = np.asarray(measured["scaled_jacobian"])
    return MeshQuality(
        scaled_jacobian_min=float(jacobian.min()),
        scaled_jacobian_median=float(np.median(jacobian)),
        min_dihedral_deg=float(np.asarray(measured["min_angle"]).min()),
        radius_ratio_max=float(np.asarray(measured["radius_ratio"]).max()),
    )


def describe(mesh: TetMesh) -> str:
    """Return a few lines of text about a mesh: counts, size, quality, digest."""
    measured = quality(mesh)
    size = np.diff(mesh.bounds, axis=0)[0] * 1e3
    return "\n".join(
        [
            f"{mesh.name} ({mesh.source})",
            f"  nodes            {len(mesh.points)}, {len(mesh.surface_nodes)} of them on the surface",
            f"  tetrahedra       {len(mesh.tets)}",
            f"  size             {size[0]:.4g} x {size[1]:.4g} x {size[2]:.4g} mm",
            f"  volume           {mesh.volume * 1e9:.6g} mm3",
            f"  scaled Jacobian  min {measured.scaled_jacobian_min:.3f}, median {measured.scaled_jacobian_median:.3f}",
            f"  dihedral angle   min {measured.min_dihedral_deg:.1f} deg",
            f"  radius ratio     max {measured.radius_ratio_max:.2f}",
            f"  digest           {mesh.digest}",
        ]
    )

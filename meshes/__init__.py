"""Meshes: reading, generating, checking and writing points and cells. Imports nothing else of femsim; lengths in metres.

- `tetmesh`: `TetMesh`, the tetrahedra of a soft body, validated once by `make_tetmesh`.
- `surface`: `TriMesh`, `boundary_triangles`, closedness, and `solid_mass_properties` for rigid bodies.
- `generate`: structured boxes, cylinders and balls of tetrahedra, and triangle surfaces to draw.
- `load`: `load_tetmesh`, `load_surface`, `save_tetmesh` by meshio; `FILES` is the folder of the meshes that come with femsim,
  `data/meshes` of a clone and `meshes/_data` of a wheel.
- `quadratic`: mid-side nodes for a linear mesh.
- `quality`: scaled Jacobian, dihedral angle, radius ratio; `describe` prints them.
- `turned`: solids of revolution and screw threads.
- `volume`: `load_volume` and `tetrahedralize` fill a closed surface with tetrahedra (extra `mesh`).
- `recipes/`: how the files in `data/meshes` were made.

>>> from meshes import ball_tets, solid_mass_properties
>>> ball = ball_tets(0.03, 4)
>>> len(ball.points), len(ball.tets)
(125, 384)
>>> mass, com, inertia = solid_mass_properties(ball.surface(), density=1000.0)

Invalid input raises `MeshError` (in `errors`), a ValueError, with a sentence that names the file and the remedy.
"""

from meshes.errors import MeshError
from meshes.generate import (
    ball_tets,
    box_tets,
    box_triangles,
    capsule_triangles,
    chamfered_box_triangles,
    cylinder_tets,
    cylinder_triangles,
    sphere_triangles,
)
from meshes.load import FILES, load_surface, load_tetmesh, save_tetmesh
from meshes.quality import MeshQuality, describe, quality
from meshes.surface import TriMesh, boundary_triangles, make_trimesh, merged, solid_mass_properties
from meshes.tetmesh import TetMesh, length_scale, make_tetmesh
from meshes.turned import padded_outline, revolved_mass_properties, revolved_triangles, thread_triangles
from meshes.volume import load_volume, require_simple, tetrahedralize

__all__ = [
    "FILES",
    "MeshError",
    "MeshQuality",
    "TetMesh",
    "TriMesh",
    "ball_tets",
    "boundary_triangles",
    "box_tets",
    "box_triangles",
    "capsule_triangles",
    "chamfered_box_triangles",
    "cylinder_tets",
    "cylinder_triangles",
    "describe",
    "length_scale",
    "load_surface",
    "load_tetmesh",
    "load_volume",
    "make_tetmesh",
    "make_trimesh",
    "merged",
    "padded_outline",
    "quality",
    "require_simple",
    "revolved_mass_properties",
    "revolved_triangles",
    "save_tetmesh",
    "solid_mass_properties",
    "sphere_triangles",
    "tetrahedralize",
    "thread_triangles",
]

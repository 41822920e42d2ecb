"""Contact as a library of its own: arrays in, velocities and forces out.

The tour, in the order of a time step:

1. ``shapes`` (``turned_shapes``, ``frustum``, values by ``checked``): Plane, Box, Sphere, Capsule, Cylinder, Cone, Mesh,
   Revolved, Thread, each with a signed distance; that of a mesh is a grid (``sdf_grid``, ``sdf_kernels``), that of what is
   turned in ``turned_kernels``, of a cone in ``frustum_kernels``.
2. ``detect`` (after ``broad_phase``): contacts of points with shapes, of boxes along their edges, of cylinders and cones as
   smooth surfaces and of walls by their triangles; a :class:`Detector` gives their gaps, positions and
   frames, normal first, as :class:`PointContacts`. ``shape_points`` says which points are corners, rims or centres of shapes;
   ``creases`` and ``faces`` are their edges and triangles. Kernels:
   ``placed_kernels`` are the groups of arrays, ``detect_kernels`` the points, ``round_kernels`` round bodies at meshes,
   ``facing_kernels`` corners at edges, ``edge_kernels`` edges of boxes, ``segment_kernels``, ``crease_kernels`` and
   ``rim_kernels`` edges against other shapes and cylinders, ``face_kernels`` triangles; ``thinning_kernels`` keep few of many.
   ``deformable``: contacts of surfaces and strands that deform, with each other and themselves; a :class:`DeformableDetector`
   gives :class:`DeformableContacts`. Kernels: ``side_kernels`` are the groups of arrays, ``surface_kernels`` the surfaces,
   ``trees`` and ``tree_kernels`` find what is near, ``vertex_kernels`` and ``deformable_kernels`` write the contacts.
3. ``problem``: :class:`ContactProblem`, A v = b + J^T lam with the Signorini-Coulomb law on u = J v + phi; ``rows``: joints,
   limits and motors beside contacts, and ``reduction``, by which every solver takes them, with ``equalities``
   (``equality_kernels``) eliminated; ``feasibility``: whether it can have a solution.
4. ``nodalize``: every contact acts on nodes, predefined or virtual (papers/001 section III-A).
5. ``cone``, ``solvers``: projections, and the solvers by name (``SOLVERS``); COND is the primary one. ``linear`` and
   ``sparse_lu`` factorize A, by ``mkl`` where it runs, ``delassus`` makes W = J A^-1 J^T, by ``turns`` with factors that turn
   with the bodies and by ``smooth_motions`` with factors of single precision beside which bodies balance,
   ``jacobian_kernels`` are loops over J and A, which ``compressed`` makes without the questions of scipy; ``once`` is a
   property without a lock.
6. ``metrics``: THE yardstick, residuals of an answer computed outside all solvers; ``narrow``: scales of W for bodies as narrow
   as rods.
7. ``split``: many small groups of contacts at once, by a sparse W; ``masses``: contacts of bodies that have nothing but their
   masses; ``local``, ``fclib``: problems condensed to their contacts (:class:`LocalProblem`), and problems as HDF5 files.

Compiled loops of NAME are in ``NAME_kernels``; ``compiled`` says how they are compiled, ``kernel_sources`` from what,
``together`` how several threads run one, ``vector_kernels`` and ``distance_kernels`` are what all of them use. ``errors`` has the
exceptions.

Units are SI: v in m/s, lam in N (the papers' lambda with a force-level A), A in N s/m. The room knows nothing of bodies
or scenes, and imports nothing else of ours but ``foreign``, by which ``fclib`` reads and writes.
"""

from contact.deformable import DeformableContacts, DeformableDetector, Strand, Surface
from contact.detect import Detector, PointContacts
from contact.errors import ContactError, NotApplicableError
from contact.fclib import FclibProblem, read_fclib, write_fclib
from contact.local import LocalProblem, make_local_problem, measure_local, to_global
from contact.metrics import LocalMetrics, Metrics, contact_velocity, measure
from contact.nodalize import NodalContactProblem, nodalize
from contact.problem import ContactProblem, Group, GroupKind, from_isotropic, isotropic, make_problem, to_isotropic
from contact.rows import Rows, make_rows
from contact.shape_points import first_points
from contact.shapes import (
    Box,
    Capsule,
    Cone,
    Cylinder,
    Mesh,
    PlacedShape,
    Plane,
    Revolved,
    Shape,
    Sphere,
    Thread,
    closest_points_on_triangles,
    signed_distance,
)
from contact.solvers import (
    SOLVERS,
    Cond,
    CondOptions,
    History,
    Remembering,
    Solution,
    Solver,
    WarmStart,
    condense,
    make_solver,
    register_solver,
)
from contact.solvers.invertible import inverse_contact

__all__ = [
    "SOLVERS", "Box", "Capsule", "Cond", "CondOptions", "Cone", "ContactError", "ContactProblem", "Cylinder",
    "DeformableContacts", "DeformableDetector", "Detector", "FclibProblem", "Group", "GroupKind", "History", "LocalMetrics",
    "LocalProblem", "Mesh", "Metrics", "NodalContactProblem", "NotApplicableError", "PlacedShape", "Plane", "PointContacts",
    "Remembering", "Revolved", "Rows", "Shape", "Solution", "Solver", "Sphere", "Strand", "Surface", "Thread", "WarmStart",
    "closest_points_on_triangles", "condense", "contact_velocity", "first_points", "from_isotropic", "inverse_contact",
    "isotropic", "make_local_problem", "make_problem", "make_rows", "make_solver", "measure", "measure_local", "nodalize",
    "read_fclib", "register_solver", "signed_distance", "to_global", "to_isotropic", "write_fclib",
]  # fmt: skip

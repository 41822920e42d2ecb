"""Contact as a library of its own: arrays in, velocities and forces out.

The tour, in the order of a time step:

1. ``shapes``: what can be touched (Plane, Box, Sphere, Capsule, Cylinder, Mesh), each with a signed distance.
2. ``broad_phase``, ``detect``: points against shapes; a :class:`Detector` gives gaps, positions and frames, normal first.
3. ``problem``: :class:`ContactProblem`, A v = b + J^T lam with the Signorini-Coulomb law on u = J v + phi.
4. ``nodalize``: every contact acts on nodes, predefined or virtual (papers/001 section III-A).
5. ``cone``, ``solvers``: projections, and the solvers by name (``SOLVERS``); COND is the primary one.
6. ``metrics``: THE yardstick, residuals of an answer computed outside all solvers.

Units are SI: v in m/s, lam in N (the papers' lambda with a force-level A), A in N s/m. The room knows nothing of bodies,
scenes or files and imports nothing else of ours.
"""

from contact.detect import Contacts, Detector
from contact.errors import ContactError
from contact.metrics import Metrics, contact_velocity, measure
from contact.nodalize import NodalContactProblem, nodalize
from contact.problem import ContactProblem, Group, make_problem
from contact.shapes import Box, Capsule, Cylinder, Mesh, PlacedShape, Plane, Shape, Sphere, signed_distance
from contact.solvers import SOLVERS, Cond, CondOptions, History, Solution, Solver, WarmStart, make_solver

__all__ = [
    "SOLVERS", "Box", "Capsule", "Cond", "CondOptions", "ContactError", "ContactProblem", "Contacts", "Cylinder", "Detector",
    "Group", "History", "Mesh", "Metrics", "NodalContactProblem", "PlacedShape", "Plane", "Shape", "Solution", "Solver", "Sphere",
    "WarmStart", "contact_velocity", "make_problem", "make_solver", "measure", "nodalize", "signed_distance",
]  # fmt: skip

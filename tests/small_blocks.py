"""A block of a soft body as a contact problem."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from contact import ContactProblem, Group, make_problem
from femsim.model.bodies.body import StepSettings
from femsim.model.bodies.soft import SoftBody
from materials import Elastic
from meshes.generate import box_tets

UP = np.array([[0.0, 0, 1], [1, 0, 0], [0, 1, 0]])  # normal, tangents


def soft_block(young: float, divisions: int = 6, friction: float = 0.4) -> ContactProblem:
    """A block of 4 cm on a floor, falling: the nodes of its underside touch."""
    mesh = box_tets((0.04, 0.04, 0.04), divisions)
    body = SoftBody("block", mesh.points, mesh.tets, Elastic(young, 0.4, 1100.0), velocity=np.zeros(3))
    indptr, indices = body.pattern()
    data, b, external = np.empty(len(indices)), np.empty(body.n_v), np.empty(body.n_v)
    body.assemble(mesh.points.ravel(), np.tile([0.05, 0.02, -0.1], body.n_v // 3), 0.0,
                  StepSettings(0.01, 0.5, np.array([0.0, 0.0, -9.81])), data, b, external)  # fmt: skip
    low = np.flatnonzero(mesh.points[:, 2] <= mesh.points[:, 2].min() + 1e-9)
    J = sp.lil_matrix((3 * len(low), body.n_v))
    for m, node in enumerate(low):
        J[3 * m : 3 * m + 3, 3 * node : 3 * node + 3] = UP
    A = sp.csc_matrix((data, indices, indptr), shape=(body.n_v, body.n_v))
    return make_problem(A, b, J, np.zeros(len(low)), friction, dt=0.01, groups=(Group("block", 0, body.n_v, "nodes"),))

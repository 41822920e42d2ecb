"""Random contact problems, with A and with W."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from slow_twins import body_between_nodes

from contact import (
    ContactProblem,
    Group,
    LocalProblem,
    make_local_problem,
    make_problem,
)


def random_global(seed: int, *, plane: bool = False, anisotropic: bool = False) -> ContactProblem:
    """Nodes and a body, with names, kinds and a time step of their own; in the plane without second tangents."""
    problem = body_between_nodes(np.random.default_rng(seed), 5, 4, inertia=3.0)
    phi = np.random.default_rng(seed + 100).standard_normal((4, 3))
    J = problem.J.toarray()
    if plane:
        J[2::3], phi[:, 2] = 0.0, 0.0
    friction = np.column_stack([problem.friction, 2.0 * problem.friction]) if anisotropic else problem.friction
    groups = (Group("weich é", 0, 15, "nodes"), Group("body", 15, problem.n, "generalized"))
    A = 0.5 * (problem.A + problem.A.T)  # bit for bit symmetric
    return make_problem(A, problem.b, sp.csr_array(J), phi, friction, dt=0.0125, groups=groups)


def random_local(
    rng: np.random.Generator, nc: int, *, rank: int | None = None, plane: bool = False, asymmetry: float = 0.0
) -> LocalProblem:
    """A problem of random rank; in the plane its second tangents have zero rows and columns."""
    G = rng.standard_normal((3 * nc, rank or 3 * nc))
    turn = rng.standard_normal((3 * nc, 3 * nc))
    W = G @ G.T + asymmetry * (turn - turn.T)  # its symmetric part has no negative eigenvalue
    q = rng.standard_normal((nc, 3))
    if plane:
        W[2::3], W[:, 2::3], q[:, 2] = 0.0, 0.0, 0.0
    return make_local_problem(W, q, rng.uniform(0.1, 1.0, nc))

"""Random chains of links with contacts, for tests of solvers of rods."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from contact import ContactProblem, Group, make_problem


def chain(n: int, nc: int, rng: np.random.Generator, *, mu: float = 0.5, coupled: float = 1.0) -> ContactProblem:
    """n links with springs between neighbours, nc contacts with random frames and levers, pressed together."""
    blocks = np.zeros((6 * n, 6 * n))
    for i in range(n):
        root = rng.standard_normal((6, 6))
        blocks[6 * i : 6 * i + 6, 6 * i : 6 * i + 6] += root @ root.T / 6 + np.eye(6)
    for i in range(n - 1):
        root = rng.standard_normal((6, 12))
        where = slice(6 * i, 6 * i + 12)
        blocks[where, where] += coupled * root.T @ root / 4
    J = sp.lil_matrix((3 * nc, 6 * n))
    for m in range(nc):
        frame = np.linalg.qr(rng.standard_normal((3, 3)))[0]
        link = m % n
        J[3 * m : 3 * m + 3, 6 * link : 6 * link + 3] = frame
        J[3 * m : 3 * m + 3, 6 * link + 3 : 6 * link + 6] = 0.1 * rng.standard_normal((3, 3))
    b = rng.standard_normal(6 * n)
    phi = np.column_stack([-np.abs(rng.standard_normal(nc)) + 0.3, 0.5 * rng.standard_normal((nc, 2))])
    return make_problem(sp.csc_matrix(blocks), b, J, phi, mu, dt=0.01, groups=(Group("chain", 0, 6 * n, "links"),))

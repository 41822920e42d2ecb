"""Problems of kinematic trees, like robots with legs: what A and J couple lies on ways to the ground."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from contact import ContactProblem, Group, make_problem

#: Two joints, and on the second one a leg of two and one of one, and a leg of two on the first one.
PARENTS = (-1, 0, 1, 2, 1, 0, 5)


def ancestors(parents: tuple[int, ...], row: int) -> list[int]:
    """Rows on the way to the ground, the row first."""
    return [] if row < 0 else [row, *ancestors(parents, parents[row])]


def two_robots(seed: int, *, spring: float = 0.0) -> ContactProblem:
    """Two robots of seven rows and a body of three; contacts of one leg, of two and three legs, and of several of these bodies.

    A spring joins two legs of the first robot.
    """
    rng = np.random.default_rng(seed)
    blocks = []
    for _ in range(2):
        L = np.zeros((7, 7))
        for row in range(7):
            L[row, ancestors(PARENTS, row)] = rng.standard_normal(len(ancestors(PARENTS, row)))
        L[np.diag_indices(7)] = rng.uniform(1.0, 2.0, 7)
        blocks.append(L.T @ L)
    A = sp.block_diag([*blocks, np.diag([2.0, 3.0, 4.0])]).tolil()
    A[3, 4] -= spring
    A[4, 3] -= spring
    on = ((3,), (6, 4), (3, 4, 6), (1,), (4, 7 + 3), (3, 6, 7 + 3, 7 + 6), (6, 14), (9, 16))
    J = np.zeros((3 * len(on), 17))
    for m, ends in enumerate(on):
        for end in ends:
            first = 7 if 7 <= end < 14 else 0
            columns = [first + row for row in ancestors(PARENTS, end - first)] if end < 14 else [14, 15, 16]
            J[3 * m : 3 * m + 3, columns] = rng.standard_normal((3, len(columns)))
    groups = [Group("a", 0, 7, "generalized", PARENTS), Group("b", 7, 14, "generalized", PARENTS),
              Group("body", 14, 17, "generalized")]  # fmt: skip
    phi = rng.standard_normal((len(on), 3)) * [0.3, 0.1, 0.1] - [0.5, 0.0, 0.0]
    friction = rng.uniform(0.2, 0.8, len(on))
    return make_problem(A.tocsc(), rng.standard_normal(17), sp.csr_matrix(J), phi, friction, dt=0.01, groups=groups)

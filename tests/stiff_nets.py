"""Nets of stiff springs on a floor: problems whose A hides its smooth modes."""

from __future__ import annotations

import numpy as np

from contact import (
    ContactProblem,
    make_problem,
)

FLOOR = np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])


def net_of_springs(seed: int, stiffness: float = 1e8) -> ContactProblem:
    """20 nodes joined by springs, A = K D^T D + I, all on a floor, with a random load: one stiff free body."""
    rng, n = np.random.default_rng(seed), 20
    joined = [(i, (i + k) % n) for k in (1, 2, 7) for i in range(n)]
    x = rng.standard_normal((n, 3))
    D = np.zeros((len(joined), 3 * n))
    for row, (i, j) in enumerate(joined):
        along = (x[i] - x[j]) / np.linalg.norm(x[i] - x[j])
        D[row, 3 * i : 3 * i + 3], D[row, 3 * j : 3 * j + 3] = along, -along
    b = 0.3 * rng.standard_normal(3 * n)
    b[2::3] -= 1.0
    return make_problem(stiffness * D.T @ D + np.eye(3 * n), b, np.kron(np.eye(n), FLOOR), np.zeros(n), 0.5, dt=0.01)

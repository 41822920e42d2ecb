"""A contact problem condensed to its contacts whose W is sparse: group by group, each of contacts that move one another."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from contact.compiled import njit
from contact.problem import force_scales
from contact.solvers.dense import DenseSolver
from contact.solvers.dense_kernels import IMMOVABLE, solve_local


def solve_split(
    W: sp.csr_matrix, q: np.ndarray, friction: np.ndarray, forces: np.ndarray, tolerance: float, max_sweeps: int = 20000
) -> float:
    """Solve u = W lam + q under the Signorini-Coulomb law; return the largest residual of a group.

    Contacts alone, such as those of nodes with lumped masses on a floor, are solved to rounding; the others group by group by
    :class:`~contact.solvers.dense.DenseSolver`.

    Parameters
    ----------
    W : scipy.sparse.csr_matrix, (3 nc, 3 nc), m/(N s)
        Delassus operator, normal first.
    q : ndarray, (nc, 3), m/s
        Contact velocity without contact forces.
    friction : ndarray, (nc,)
        Coulomb coefficient of each contact.
    forces : ndarray, (nc, 3), N
        Start, replaced by the solution.
    tolerance : float
        Relative natural-map residual of each group to reach.
    max_sweeps : int
        Limit of sweeps and Newton steps in a group.
    """
    blocks = sp.bsr_matrix(W, blocksize=(3, 3))
    graph = sp.csr_matrix((np.ones(len(blocks.indices), dtype=np.int8), blocks.indices, blocks.indptr))
    _, group_of = connected_components(graph, directed=False)
    alone = np.bincount(group_of)[group_of] == 1
    _solve_alone(blocks.indptr, blocks.data, alone, q, friction, forces)
    worst = 0.0
    for number in np.unique(group_of[~alone]):
        group = np.flatnonzero(group_of == number)
        rows = (3 * group[:, None] + np.arange(3)).ravel()
        own = W[rows][:, rows].toarray()
        solver = DenseSolver(np.ascontiguousarray(own.T), friction[group], force_scales(own.diagonal().reshape(-1, 3)))
        lam = forces[group].ravel()
        worst = max(worst, solver.solve(q[group].ravel(), lam, tolerance, max_sweeps).residual)
        forces[group] = lam.reshape(-1, 3)
    return worst


@njit(cache=True)
def _solve_alone(
    indptr: np.ndarray, blocks: np.ndarray, alone: np.ndarray, q: np.ndarray, friction: np.ndarray, forces: np.ndarray
) -> None:
    """Fill the forces of the contacts that share nothing with others; the blocks of W (m, 3, 3) stand row by row."""
    for i in range(len(alone)):
        if not alone[i]:
            continue
        for c in range(3):
            forces[i, c] = 0.0
        if indptr[i + 1] == indptr[i]:
            continue
        k = indptr[i]
        if blocks[k, 0, 0] > IMMOVABLE * (blocks[k, 0, 0] + blocks[k, 1, 1] + blocks[k, 2, 2]):
            forces[i, 0], forces[i, 1], forces[i, 2] = solve_local(blocks, k, q[i, 0], q[i, 1], q[i, 2], friction[i])

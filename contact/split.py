"""A contact problem condensed to its contacts whose W is sparse: group by group, each of contacts that move one another."""

from __future__ import annotations

import numpy as np

from contact.compiled import njit
from contact.masses_kernels import BlockRows, find_groups, gather_group
from contact.problem import force_scales
from contact.solvers.dense import DenseSolver
from contact.solvers.dense_kernels import IMMOVABLE, solve_local


def solve_split(
    W: BlockRows,
    q: np.ndarray,
    friction: np.ndarray,
    forces: np.ndarray,
    tolerance: float,
    max_sweeps: int = 20000,
    enough: float = 0.0,
) -> float:
    """Solve u = W lam + q under the Signorini-Coulomb law; return the largest residual of a group.

    Contacts alone, such as those of nodes with lumped masses on a floor, are solved to rounding; the others group by group by
    :class:`~contact.solvers.dense.DenseSolver`.

    Parameters
    ----------
    W : BlockRows, (nc, nc) blocks, m/(N s)
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
    enough : float
        Residual with which a group is done that hardly gains any more.
    """
    nc = len(friction)
    order, ptr, joined = np.empty(nc, dtype=np.int64), np.empty(nc + 1, dtype=np.int64), np.empty(nc, dtype=np.int64)
    count = _solve_alone(W, q, friction, forces, order, ptr, joined)
    worst, place = 0.0, np.empty(nc, dtype=np.int64)
    for number in joined[:count]:
        group = order[ptr[number] : ptr[number + 1]]
        WT = np.empty((3 * len(group), 3 * len(group)))
        gather_group(W, group, place, WT)
        solver = DenseSolver(WT, friction[group], force_scales(WT.diagonal().reshape(-1, 3)))
        lam = forces[group].ravel()
        worst = max(worst, solver.solve(q[group].ravel(), lam, tolerance, max_sweeps, enough=enough).residual)
        forces[group] = lam.reshape(-1, 3)
    return worst


@njit(cache=True)
def _solve_alone(
    W: BlockRows,
    q: np.ndarray,
    friction: np.ndarray,
    forces: np.ndarray,
    order: np.ndarray,
    ptr: np.ndarray,
    joined: np.ndarray,
) -> int:
    """Fill the forces of contacts that share nothing with others, and the numbers of the groups of others; return how many.

    ``order`` and ``ptr`` become what :func:`contact.masses_kernels.find_groups` makes of them.
    """
    indptr, blocks, count = W.indptr, W.blocks, 0
    for number in range(find_groups(indptr, W.indices, order, ptr)):
        if ptr[number + 1] > ptr[number] + 1:
            joined[count] = number
            count += 1
            continue
        i = order[ptr[number]]
        for c in range(3):
            forces[i, c] = 0.0
        if indptr[i + 1] == indptr[i]:
            continue
        k = indptr[i]
        if blocks[k, 0, 0] > IMMOVABLE * (blocks[k, 0, 0] + blocks[k, 1, 1] + blocks[k, 2, 2]):
            forces[i, 0], forces[i, 1], forces[i, 2] = solve_local(blocks, k, q[i, 0], q[i, 1], q[i, 2], friction[i])
    return count

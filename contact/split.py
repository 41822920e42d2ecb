"""A contact problem condensed to its contacts whose W is sparse: group by group, each of contacts that move one another."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial

import numpy as np
import scipy.sparse as sp

from contact.compiled import Fixed, njit
from contact.local import LocalProblem
from contact.masses_kernels import BlockRows, find_groups, gather_group
from contact.metrics_kernels import force_scales as fill_scales
from contact.problem import ContactProblem, Group, force_scales
from contact.solvers.base import WarmStart
from contact.solvers.canal import Canal, CanalOptions
from contact.solvers.dense import SWEEPS, TRIAL_SCALE, DenseSolver
from contact.solvers.dense_kernels import IMMOVABLE, prepare, residual, solve_local
from contact.solvers.judge import VELOCITY_FACTOR
from contact.solvers.local_kernels import EXACT_RULE, Rule, sweep_contacts

#: Groups of at most so many contacts are tried by sweeps alone before anything is made for them.
_SMALL = 50
#: Groups of at least so many contacts have this number of sweeps and Newton steps before CANAL is asked. For 96 to 152 contacts
#: of boxes that lean on one another it takes 15 to 40 ms, the proximal points 0.1 to 1.4 s; for 48 to 120 of piles of dishes 5 to
#: 30 ms, the points 0.1 to 0.7 s, which leave 1e-6 to 1e-5 of two in three.
_MANY, _TRIED = 16, 30
#: CANAL is asked where forces are not unique: where the rank of W is at most this part of its rows. Of as many contacts as need
#: no sweeps first that is more: by a sparse root it takes 10 to 110 ms for 350 to 500 contacts of a plate on a mat, of rank 0.73
#: to 0.99, the proximal points 0.01 to 7.7 s. Fewer are left to these, whose answers are sharper (1e-10 to 1e-15, CANAL's 1e-9).
_SINGULAR, _SINGULAR_OF_MANY = 0.7, 1.0
#: Residual that CANAL aims at, its most iterations, and the residual with which its answer will do.
_SHARP, _ITERATIONS, _FINE = 2e-9, 60, 1e-8
#: Sweeps and Newton steps after CANAL: of 38 problems of 141 to 188 contacts of a wall of boxes in a jam they solve what 20 000
#: solve, in 0.1 s, not 1 to 4.
_AFTER = 300
#: Of so many contacts CANAL is asked first, where a sparse root of W is known: a sweep over them takes as long as its answer.
_SWEPT = 150
#: What :class:`~contact.solvers.dense.DenseSolver` begins with.
_FIRST_SWEEPS = SWEEPS[0]


def solve_split(
    W: BlockRows,
    q: np.ndarray,
    friction: np.ndarray,
    forces: np.ndarray,
    tolerance: float,
    max_sweeps: int = 20000,
    enough: float = 0.0,
    root: Callable[[], sp.csr_matrix] | None = None,
) -> float:
    """Solve u = W lam + q under the Signorini-Coulomb law; return the largest residual of a group.

    Contacts alone, such as those of nodes with lumped masses on a floor, are solved to rounding, the others group by group by
    :class:`~contact.solvers.dense.DenseSolver`. What its first sweeps solve, as they do nearly all small groups, is solved
    without one, to the same bits. Many contacts of few bodies are left to :class:`~contact.solvers.canal.Canal` where that does
    not soon find an answer.

    Parameters
    ----------
    W : BlockRows, (nc, nc) blocks, m/(N s)
        Delassus operator, normal first, with int64 as :func:`contact.masses.split_operator` makes it; all arrays are C-order.
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
    root : callable, optional
        Gives a sparse R, (3nc, n), with W = R R^T, as :func:`contact.masses.operator_root` does. It is asked for at most once.
    """
    nc = len(friction)
    order, ptr, joined = np.empty(nc, dtype=np.int64), np.empty(nc + 1, dtype=np.int64), np.empty(nc, dtype=np.int64)
    count, worst, place = _alone(W, q, friction, forces, order, ptr, joined, tolerance), 0.0, np.empty(nc, dtype=np.int64)
    if count:
        count, worst = _by_sweeps(W, q, friction, forces, order, ptr, joined[:count], tolerance, EXACT_RULE)
    sparse = None if root is None or not count else cache(root)
    for number in joined[:count]:
        group = order[ptr[number] : ptr[number + 1]]
        WT = np.empty((3 * len(group), 3 * len(group)))
        gather_group(W, group, place, WT)
        solver = DenseSolver(WT, friction[group], force_scales(WT.diagonal().reshape(-1, 3)))
        lam = forces[group].ravel()
        moved = None if sparse is None else partial(_rows_of, sparse, group)
        worst = max(worst, _solve_group(solver, q[group].ravel(), lam, (tolerance, max_sweeps, enough), moved))
        forces[group] = lam.reshape(-1, 3)
    return worst


def _rows_of(root: Callable[[], sp.csr_matrix], group: np.ndarray) -> sp.csr_matrix:
    """Return the rows of a group of contacts in R, (3k, m), and its columns that are not zero."""
    own = root()[(3 * group[:, None] + np.arange(3)).ravel()]
    return own[:, np.unique(own.indices)]


def _solve_group(
    solver: DenseSolver,
    q: np.ndarray,
    lam: np.ndarray,
    rules: tuple[float, int, float],
    root: Callable[[], sp.csr_matrix] | None,
) -> float:
    """Solve one group, updating lam (3k,), N, in place; return its residual. ``rules``: tolerance, most sweeps, enough."""
    tolerance, left, enough = rules
    count = len(solver.friction)
    if count >= _MANY:
        residual = np.inf
        if root is None or count < _SWEPT:
            found = solver.solve(q, lam, tolerance, min(_TRIED, left), enough=enough)
            left, residual = left - found.sweeps, found.residual
            if residual <= max(tolerance, min(enough, _SHARP)) or found.runaway:
                return residual
        improved = _solve_by_velocities(solver, q, lam, residual, root)
        if improved is not None:
            if improved <= min(enough, _FINE):
                return improved
            left = min(left, _AFTER)
    return solver.solve(q, lam, tolerance, left, enough=enough).residual


def _solve_by_velocities(
    solver: DenseSolver, q: np.ndarray, lam: np.ndarray, before: float, root: Callable[[], sp.csr_matrix] | None
) -> float | None:
    """Improve lam (3k,), N, by CANAL, and return its residual; None where not far fewer velocities than rows are moved."""
    if root is None:
        problem, singular = LocalProblem(solver.WT, q.reshape(-1, 3), solver.friction).equivalent, _SINGULAR
    else:
        R, singular = root(), _SINGULAR_OF_MANY if len(solver.friction) >= _SWEPT else _SINGULAR
        n = R.shape[1]
        groups = (Group("all", 0, n, "generalized"),)
        problem = ContactProblem(
            sp.identity(n, format="csc"), np.zeros(n), R, q.reshape(-1, 3), solver.friction, 1.0, groups
        )  # fmt: skip
    if problem.n > singular * len(q):
        return None
    canal = Canal(CanalOptions(tolerance=_SHARP, max_iterations=_ITERATIONS))
    found = canal.solve(problem, WarmStart(problem.J.T @ lam, lam.reshape(-1, 3))).lam.ravel()
    residual = solver.residual(q, found)
    if residual < before:
        lam[:] = found
    return min(residual, before)


@njit(cache=True)
def _solve_alone(
    W: BlockRows,
    q: np.ndarray,
    friction: np.ndarray,
    forces: np.ndarray,
    order: np.ndarray,
    ptr: np.ndarray,
    joined: np.ndarray,
    tolerance: float,
) -> int:
    """Fill the forces of contacts that share nothing with others, and the numbers of the other groups; return how many.

    Contacts whose block is singular, as at links that joints leave one or two ways to go, are such groups where their force does
    not hold to the tolerance. ``order`` and ``ptr`` become what :func:`contact.masses_kernels.find_groups` makes of them.
    """
    indptr, blocks, count = W.indptr, W.blocks, 0
    nothing, diagonal, rho, u = np.zeros(3), np.empty((1, 3)), np.empty(1), np.empty(3)
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
            for c in range(3):
                diagonal[0, c] = blocks[k, c, c]
            fill_scales(diagonal, rho)
            own = friction[i : i + 1]
            found = residual(blocks[k], q[i], forces[i], nothing[:1], nothing, own, rho, u, VELOCITY_FACTOR)[0]
            if not found <= tolerance:
                forces[i, :] = 0.0
                joined[count] = number
                count += 1
    return count


@njit(cache=True)
def _sweep_groups(
    W: BlockRows,
    q: np.ndarray,
    friction: np.ndarray,
    forces: np.ndarray,
    order: np.ndarray,
    ptr: np.ndarray,
    joined: np.ndarray,
    tolerance: float,
    rule: Rule,
) -> tuple[int, float]:
    """Solve the small groups of ``joined`` by the first sweeps of a DenseSolver, as far as they reach the tolerance.

    Returns how many groups are left, whose numbers ``joined`` then begins with, and the largest residual of the others.
    """
    most = 1
    for number in joined:
        size = ptr[number + 1] - ptr[number]
        if size <= _SMALL:
            most = max(most, size)
    entries, blocks, diagonals = np.empty(9 * most * most), np.empty((most, 3, 3)), np.empty((most, 3))
    compliance, scale, fixed = np.empty(most), np.empty(most), np.empty(most, dtype=np.bool_)
    rho, mu, shift = np.empty(most), np.empty(most), np.zeros(most)
    lam, u, free, centre = np.empty(3 * most), np.empty(3 * most), np.empty(3 * most), np.zeros(3 * most)
    place, left, worst = np.empty(order.shape[0], dtype=np.int64), 0, 0.0
    for number in joined:
        group = order[ptr[number] : ptr[number + 1]]
        k = group.shape[0]
        joined[left] = number
        if k > _SMALL:
            left += 1
            continue
        approaches = False
        for a in range(k):
            approaches = approaches or not q[group[a], 0] >= 0.0
        if not approaches:  # as a DenseSolver has it
            for a in range(k):
                forces[group[a], :] = 0.0
            continue
        WT = entries[: 9 * k * k].reshape((3 * k, 3 * k))
        gather_group(W, group, place, WT)
        prepare(WT, TRIAL_SCALE, blocks[:k], compliance[:k], scale[:k], fixed[:k])
        for a in range(k):
            mu[a] = friction[group[a]]
            for c in range(3):
                diagonals[a, c] = WT[3 * a + c, 3 * a + c]
                lam[3 * a + c] = 0.0 if fixed[a] else forces[group[a], c]
                free[3 * a + c] = q[group[a], c]
        fill_scales(diagonals[:k], rho[:k])
        x, v, own, start = lam[: 3 * k], u[: 3 * k], free[: 3 * k], centre[: 3 * k]
        found = residual(WT, own, x, shift[:k], start, mu[:k], rho[:k], v, VELOCITY_FACTOR)[0]
        if found > tolerance:
            sweep_contacts(WT, blocks[:k], mu[:k], rule, _FIRST_SWEEPS, x, v)
            found = residual(WT, own, x, shift[:k], start, mu[:k], rho[:k], v, VELOCITY_FACTOR)[0]
        if not found <= tolerance:
            left += 1
            continue
        worst = max(worst, found)
        for a in range(k):
            for c in range(3):
                forces[group[a], c] = lam[3 * a + c]
    return left, worst


# the step hands over the same kinds of arrays each time
_alone, _by_sweeps = Fixed(_solve_alone), Fixed(_sweep_groups)

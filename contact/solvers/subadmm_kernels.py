"""Compiled kernels of SubADMM: right-hand sides and solves body by body, forces contact by contact.

Both are cut into shares for threads; residuals are added up body by body and by :data:`BLOCK` contacts, so that no bit depends
on the shares.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from contact.compiled import njit
from contact.cone import project_strict
from contact.metrics_kernels import law_parts, relative
from contact.solvers.canal_kernels import cholesky, substitute, weighted
from contact.together import wait

#: Contacts whose residuals are added up by themselves.
BLOCK = 64
#: What :attr:`Systems.start` says of a large subsystem, and of one that is a tree.
LARGE, TREE = -1, -2


class Pieces(NamedTuple):
    """J by contacts and subsystems: piece p has three entries ``jac`` in each of the columns ``col[ptr[p]:ptr[p + 1]]``.

    ``contact`` (pieces,) is the contact of each, in order; contact m has those from ``first[m]`` to ``first[m + 1]``.
    """

    contact: np.ndarray
    ptr: np.ndarray
    col: np.ndarray
    jac: np.ndarray
    first: np.ndarray


class Systems(NamedTuple):
    """Subsystems: s has rows ``row[ptr[s]:ptr[s + 1]]`` of A and pieces ``piece[own[s]:own[s + 1]]`` of J.

    Those of few rows have a matrix, square, from ``start[s]`` on in ``data``; of others it is ``LARGE`` or ``TREE``. ``of_row``
    (n,) is the subsystem of each row of A, and ``place`` (n,) its row in the matrix.

    Row k of a tree, k as in ``row``, has entries ``tree[line[k]:line[k + 1]]`` of a lower factor, at its ancestors ``up``, the
    places of these, from the root on, and itself.
    """

    ptr: np.ndarray
    row: np.ndarray
    own: np.ndarray
    piece: np.ndarray
    start: np.ndarray
    of_row: np.ndarray
    place: np.ndarray
    data: np.ndarray
    line: np.ndarray
    up: np.ndarray
    tree: np.ndarray


class Data(NamedTuple):
    """What stays: ``b`` and ``weight`` (n,), ``phi`` (nc, 3), ``friction`` and ``rho`` (nc,)."""

    b: np.ndarray
    weight: np.ndarray
    phi: np.ndarray
    friction: np.ndarray
    rho: np.ndarray


class State(NamedTuple):
    """What changes: v (n,), lam (nc, 3), slack - J_p v of all pieces of a contact (nc, 3), m/s, and J_p v (pieces, 3)."""

    v: np.ndarray
    lam: np.ndarray
    gap: np.ndarray
    moved: np.ndarray


class Room(NamedTuple):
    """Arrays to work in: right-hand side, residual and J^T lam (n,), forces (pieces, 3), u (nc, 3), sums.

    ``of_systems`` (subsystems, 3) and ``of_contacts`` (blocks of contacts, 5) are what residuals are added up from; ``x`` (n,)
    has the rows of the subsystems in their order.
    """

    right: np.ndarray
    residual: np.ndarray
    pushed: np.ndarray
    force: np.ndarray
    u: np.ndarray
    x: np.ndarray
    of_systems: np.ndarray
    of_contacts: np.ndarray


class Shares(NamedTuple):
    """What each thread does: subsystems ``system[t]:system[t + 1]`` and blocks of contacts ``block[t]:block[t + 1]``.

    ``met`` is that of :func:`contact.together.wait`.
    """

    system: np.ndarray
    block: np.ndarray
    met: np.ndarray


@njit(cache=True, _nrt=False)
def join_groups(indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, system: np.ndarray, first: np.ndarray) -> None:
    """Put the number of the set of groups that A joins, by their first ones, into ``system`` (n,), on entry that of the group.

    Entries that are stored but zero join nothing. ``first`` (groups,), on entry 0, 1, 2 ..., is to work in.
    """
    for j in range(system.shape[0]):
        for k in range(indptr[j], indptr[j + 1]):
            a, b = system[indices[k]], system[j]
            if a == b or data[k] == 0.0:
                continue
            while first[a] != a:
                a = first[a]
            while first[b] != b:
                b = first[b]
            first[max(a, b)] = min(a, b)
    sets = 0
    for g in range(first.shape[0]):
        if first[g] == g:
            first[g], sets = sets, sets + 1
        else:
            first[g] = first[first[g]]
    for j in range(system.shape[0]):
        system[j] = first[system[j]]


@njit(cache=True)
def find_trees(
    indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, parent: np.ndarray, system: np.ndarray, is_tree: np.ndarray
) -> int:
    """Fill which subsystems are trees with branches, by ``parent`` (n,) and ``system`` (n,) of each row of A.

    What A couples beside them, as a spring between two legs, leaves none; a chain without branches is none either. Return the
    entries of their factors.
    """
    n, last = system.shape[0], np.full(is_tree.shape[0], -1, dtype=np.int64)
    above, below = np.full(n, -1, dtype=np.int64), np.zeros(is_tree.shape[0], dtype=np.bool_)
    room = np.zeros(is_tree.shape[0], dtype=np.int64)
    is_tree[:] = False
    for j in range(n):
        s = system[j]
        is_tree[s] |= parent[j] != last[s]
        last[s], i = j, j
        while i >= 0:
            above[i] = j
            room[s] += 1
            i = parent[i]
        for k in range(indptr[j], indptr[j + 1]):
            below[s] |= indices[k] < j and data[k] != 0.0 and above[indices[k]] != j
    entries = 0
    for s in range(is_tree.shape[0]):
        is_tree[s] &= not below[s]
        entries += room[s] if is_tree[s] else 0
    return entries


@njit(cache=True, _nrt=False)
def lay_trees(
    parent: np.ndarray, is_tree: np.ndarray, ptr: np.ndarray, row: np.ndarray, place: np.ndarray, line: np.ndarray, up: np.ndarray
) -> None:
    """Fill ``line`` and ``up`` of :class:`Systems`, by ``parent`` (n,) of each row of A."""
    line[0] = 0
    for s in range(is_tree.shape[0]):
        for k in range(ptr[s], ptr[s + 1]):
            line[k + 1] = line[k]
            if not is_tree[s]:
                continue
            if parent[row[k]] >= 0:
                first = ptr[s] + place[parent[row[k]]]
                for e in range(line[first], line[first + 1]):
                    up[line[k + 1]] = up[e]
                    line[k + 1] += 1
            up[line[k + 1]] = k - ptr[s]
            line[k + 1] += 1


@njit(cache=True, inner=True)
def sort_branches(parent: np.ndarray, first: int, end: int, col: np.ndarray, jac: np.ndarray, branch: np.ndarray) -> None:
    """Sort the columns of a piece so that each branch of the tree is by itself; fill the ``branch`` of each, from 0 on.

    A branch goes from the last column that is left towards the root; what several of them hang on is in the first.
    """
    branch[: end - first] = -1
    label = done = 0
    while done < end - first:
        low = -1  # the lowest column of this branch yet
        while True:
            best = -1
            for k in range(first + done, end):  # the last one that hangs in the branch
                if best >= 0 and col[k] <= col[best]:
                    continue
                i = low
                while i > col[k]:
                    i = parent[i]
                if low < 0 or i == col[k]:
                    best = k
            if best < 0:
                break
            low, k = col[best], first + done
            col[best], col[k] = col[k], low
            for c in range(3):
                jac[best, c], jac[k, c] = jac[k, c], jac[best, c]
            branch[done] = label
            done += 1
        label += 1


@njit(cache=True)
def split_columns(
    indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, system: np.ndarray, parent: np.ndarray, is_tree: np.ndarray,
    contact: np.ndarray, ptr: np.ndarray, col: np.ndarray, jac: np.ndarray,
) -> int:  # fmt: skip
    """Fill the pieces of J in compressed rows, by ``system`` (n,) of each column, of trees by branches; return how many.

    The arrays are as long as the entries of J, which are more than there can be; four work arrays are made.
    """
    n, systems = system.shape[0], 0
    for j in range(n):
        systems = max(systems, system[j] + 1)
    place, seen, order = np.full(n, -1, dtype=np.int64), np.full(systems, -1, dtype=np.int64), np.empty(systems, dtype=np.int64)
    branch = np.empty(n, dtype=np.int64)
    total = end = 0
    ptr[0] = 0
    for m in range((indptr.shape[0] - 1) // 3):
        found = 0
        for k in range(indptr[3 * m], indptr[3 * m + 3]):
            s = system[indices[k]]
            if seen[s] != m:
                seen[s] = m
                order[found] = s
                found += 1
        for f in range(found):
            first = end
            for c in range(3):
                for k in range(indptr[3 * m + c], indptr[3 * m + c + 1]):
                    j = indices[k]
                    if system[j] != order[f]:
                        continue
                    if place[j] < first:
                        place[j] = end
                        col[end] = j
                        jac[end, 0] = jac[end, 1] = jac[end, 2] = 0.0
                        end += 1
                    jac[place[j], c] = data[k]
            if is_tree[order[f]]:
                sort_branches(parent, first, end, col, jac, branch)
                for k in range(first, end - 1):
                    if branch[k + 1 - first] != branch[k - first]:
                        contact[total] = m
                        total += 1
                        ptr[total] = k + 1
            contact[total] = m
            total += 1
            ptr[total] = end
    return total


@njit(cache=True, inner=True)
def factorize_tree(
    indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, pieces: Pieces, beta: np.ndarray, systems: Systems, s: int
) -> bool:
    """Fill H = A_j + sum beta J_p^T J_p of a tree and factorize H = L^T L; False where that breaks down.

    Entries of L are where a row hangs on another one, so none is filled in (papers/000 section VI-C). Its diagonal is inverted.
    """
    base, place, line, up, L = systems.ptr[s], systems.place, systems.line, systems.up, systems.tree
    end = systems.ptr[s + 1]
    L[line[base] : line[end]] = 0.0
    for k in range(base, end):
        j = systems.row[k]
        for e in range(indptr[j], indptr[j + 1]):
            if systems.of_row[indices[e]] == s and indices[e] <= j and data[e] != 0.0:
                i = base + place[indices[e]]
                L[line[k] + line[i + 1] - line[i] - 1] += data[e]
    for n in range(systems.own[s], systems.own[s + 1]):
        p = systems.piece[n]
        factor = beta[pieces.contact[p]]
        for a in range(pieces.ptr[p], pieces.ptr[p + 1]):
            k = base + place[pieces.col[a]]
            for c in range(pieces.ptr[p], pieces.ptr[p + 1]):
                i = base + place[pieces.col[c]]
                if i > k:
                    continue
                entry = 0.0
                for r in range(3):
                    entry += pieces.jac[a, r] * pieces.jac[c, r]
                L[line[k] + line[i + 1] - line[i] - 1] += factor * entry
    for k in range(end - 1, base - 1, -1):
        first, last = line[k], line[k + 1] - 1
        if not L[last] > 0.0:
            return False
        root = 1.0 / math.sqrt(L[last])
        L[last] = root
        for e in range(first, last):
            L[e] *= root
        for e in range(first, last):  # what row k hangs on has the first of its ancestors
            i = line[base + up[e]]
            for c in range(first, e + 1):
                L[i + c - first] -= L[e] * L[c]
    return True


@njit(cache=True, inner=True)
def substitute_tree(systems: Systems, s: int, x: np.ndarray) -> None:
    """Solve L^T L x = right of a tree in place of x."""
    base, line, up, L = systems.ptr[s], systems.line, systems.up, systems.tree
    for k in range(x.shape[0] - 1, -1, -1):
        first, last = line[base + k], line[base + k + 1] - 1
        x[k] *= L[last]
        for e in range(first, last):
            x[up[e]] -= L[e] * x[k]
    for k in range(x.shape[0]):
        first, last = line[base + k], line[base + k + 1] - 1
        total = x[k]
        for e in range(first, last):
            total -= L[e] * x[up[e]]
        x[k] = total * L[last]


@njit(cache=True, nogil=True)
def factorize_systems(
    indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, pieces: Pieces, beta: np.ndarray, systems: Systems, first: int,
    last: int,
) -> bool:  # fmt: skip
    """Fill A_j + sum beta J_p^T J_p of the small ones of these subsystems and factorize them; False where that breaks down."""
    place = systems.place
    for s in range(first, last):
        if systems.start[s] == TREE:
            if not factorize_tree(indptr, indices, data, pieces, beta, systems, s):
                return False
            continue
        if systems.start[s] == LARGE:
            continue
        size = systems.ptr[s + 1] - systems.ptr[s]
        H = systems.data[systems.start[s] : systems.start[s] + size * size].reshape(size, size)
        H[:] = 0.0
        for i in range(systems.ptr[s], systems.ptr[s + 1]):
            j = systems.row[i]
            for k in range(indptr[j], indptr[j + 1]):
                if systems.of_row[indices[k]] == s:
                    H[place[indices[k]], place[j]] += data[k]
        for i in range(systems.own[s], systems.own[s + 1]):
            p = systems.piece[i]
            factor = beta[pieces.contact[p]]
            for a in range(pieces.ptr[p], pieces.ptr[p + 1]):
                row = H[place[pieces.col[a]]]
                for c in range(pieces.ptr[p], pieces.ptr[p + 1]):
                    entry = 0.0
                    for r in range(3):
                        entry += pieces.jac[a, r] * pieces.jac[c, r]
                    row[place[pieces.col[c]]] += factor * entry
        if not cholesky(H):
            return False
    return True


@njit(cache=True, inner=True)
def move_pieces(pieces: Pieces, systems: Systems, s: int, v: np.ndarray, moved: np.ndarray) -> None:
    """Fill moved (pieces, 3) = J_p v of the pieces of a subsystem."""
    for i in range(systems.own[s], systems.own[s + 1]):
        p = systems.piece[i]
        x_0 = x_1 = x_2 = 0.0
        for k in range(pieces.ptr[p], pieces.ptr[p + 1]):
            x = v[pieces.col[k]]
            x_0 += pieces.jac[k, 0] * x
            x_1 += pieces.jac[k, 1] * x
            x_2 += pieces.jac[k, 2] * x
        moved[p, 0], moved[p, 1], moved[p, 2] = x_0, x_1, x_2


@njit(cache=True)
def move_all(pieces: Pieces, systems: Systems, v: np.ndarray, moved: np.ndarray) -> None:
    """Fill moved (pieces, 3) = J_p v."""
    for s in range(systems.start.shape[0]):
        move_pieces(pieces, systems, s, v, moved)


@njit(cache=True, inner=True)
def add_piece(pieces: Pieces, p: int, f_0: float, f_1: float, f_2: float, out: np.ndarray) -> None:
    """Add J_p^T f to out (n,)."""
    for k in range(pieces.ptr[p], pieces.ptr[p + 1]):
        out[pieces.col[k]] += pieces.jac[k, 0] * f_0 + pieces.jac[k, 1] * f_1 + pieces.jac[k, 2] * f_2


@njit(cache=True, nogil=True)
def solve_bodies(
    pieces: Pieces, systems: Systems, data: Data, beta: np.ndarray, state: State, room: Room, shares: Shares, thread: int
) -> None:
    """Fill the right-hand sides of the subsystems of a thread, and velocities of the small ones (papers/000 eq. 34)."""
    force, moved, gap, lam = room.force, state.moved, state.gap, state.lam
    for s in range(shares.system[thread], shares.system[thread + 1]):
        first, last = systems.ptr[s], systems.ptr[s + 1]
        for i in range(first, last):
            room.right[systems.row[i]] = data.b[systems.row[i]]
        for i in range(systems.own[s], systems.own[s + 1]):
            p = systems.piece[i]
            m = pieces.contact[p]
            for c in range(3):
                force[p, c] = beta[m] * (moved[p, c] + gap[m, c]) + lam[m, c]
            add_piece(pieces, p, force[p, 0], force[p, 1], force[p, 2], room.right)
        if systems.start[s] == LARGE:
            continue
        size, x = last - first, room.x[first:last]
        for i in range(size):
            x[i] = room.right[systems.row[first + i]]
        if systems.start[s] == TREE:
            substitute_tree(systems, s, x)
        else:
            substitute(systems.data[systems.start[s] : systems.start[s] + size * size].reshape(size, size), x)
        for i in range(size):
            state.v[systems.row[first + i]] = x[i]
        move_pieces(pieces, systems, s, state.v, moved)


@njit(cache=True, inner=True)
def project_contacts(pieces: Pieces, data: Data, beta: np.ndarray, state: State, room: Room, block: int) -> None:
    """Take over new forces and slacks of a block of contacts (papers/000 eqs. 35 to 39), and add their residuals up."""
    u, lam, gap, moved = room.u, state.lam, state.gap, state.moved
    wrong = strength = motion = slack = speed = 0.0
    for m in range(BLOCK * block, min(BLOCK * (block + 1), lam.shape[0])):
        for c in range(3):
            u[m, c] = data.phi[m, c]
            for p in range(pieces.first[m], pieces.first[m + 1]):
                u[m, c] += moved[p, c]
        step = beta[m] / max(pieces.first[m + 1] - pieces.first[m], 1)
        n_0, n_1, n_2 = project_strict(
            lam[m, 0] - step * u[m, 0], lam[m, 1] - step * u[m, 1], lam[m, 2] - step * u[m, 2], data.friction[m]
        )
        gap[m, 0], gap[m, 1], gap[m, 2] = (n_0 - lam[m, 0]) / beta[m], (n_1 - lam[m, 1]) / beta[m], (n_2 - lam[m, 2]) / beta[m]
        lam[m, 0], lam[m, 1], lam[m, 2] = n_0, n_1, n_2
        a_0, a_1, a_2, e_0, e_1, e_2 = law_parts(u[m, 0], u[m, 1], u[m, 2], n_0, n_1, n_2, data.rho[m], data.friction[m], False)
        wrong += e_0 * e_0 + e_1 * e_1 + e_2 * e_2
        motion += a_0 * a_0 + a_1 * a_1 + a_2 * a_2
        strength += n_0 * n_0 + n_1 * n_1 + n_2 * n_2
        for c in range(3):
            slack, speed = max(slack, abs(gap[m, c])), max(speed, abs(u[m, c]))
    sums = room.of_contacts[block]
    sums[0], sums[1], sums[2], sums[3], sums[4] = wrong, motion, strength, slack, speed


@njit(cache=True, inner=True)
def add_dynamics(pieces: Pieces, systems: Systems, data: Data, beta: np.ndarray, state: State, room: Room, s: int) -> None:
    """Add the squares of A v - b - J^T lam, J^T lam and A v of a subsystem up.

    The first without a product with A: what was pushed with, ``room.force``, less what the penalty and the new forces hold of it.
    """
    residual, pushed = room.residual, room.pushed
    for i in range(systems.ptr[s], systems.ptr[s + 1]):
        residual[systems.row[i]] = pushed[systems.row[i]] = 0.0
    for i in range(systems.own[s], systems.own[s + 1]):
        p = systems.piece[i]
        m, force, moved = pieces.contact[p], room.force[p], state.moved[p]
        f_0, f_1, f_2 = state.lam[m, 0], state.lam[m, 1], state.lam[m, 2]
        r_0, r_1, r_2 = force[0] - beta[m] * moved[0], force[1] - beta[m] * moved[1], force[2] - beta[m] * moved[2]
        add_piece(pieces, p, r_0 - f_0, r_1 - f_1, r_2 - f_2, residual)
        add_piece(pieces, p, f_0, f_1, f_2, pushed)
    rr = ff = aa = 0.0
    for i in range(systems.ptr[s], systems.ptr[s + 1]):
        j = systems.row[i]
        weight = data.weight[j]
        rr += (weight * residual[j]) ** 2
        ff += (weight * pushed[j]) ** 2
        aa += (weight * (residual[j] + data.b[j] + pushed[j])) ** 2
    sums = room.of_systems[s]
    sums[0], sums[1], sums[2] = rr, ff, aa


@njit(cache=True, inner=True)
def residuals(data: Data, room: Room) -> tuple[float, float, float]:
    """Dynamics and contact residual of the pair, and the largest slack error over the largest contact velocity."""
    rr = ff = aa = wrong = motion = strength = slack = speed = 0.0
    for s in range(room.of_systems.shape[0]):
        rr, ff, aa = rr + room.of_systems[s, 0], ff + room.of_systems[s, 1], aa + room.of_systems[s, 2]
    for k in range(room.of_contacts.shape[0]):
        sums = room.of_contacts[k]
        wrong, motion, strength = wrong + sums[0], motion + sums[1], strength + sums[2]
        slack, speed = max(slack, sums[3]), max(speed, sums[4])
    dynamics = relative(math.sqrt(rr), max(weighted(data.weight, data.b), math.sqrt(max(ff, aa))))
    return dynamics, relative(math.sqrt(wrong), math.sqrt(max(strength, motion))), relative(slack, speed)


@njit(cache=True, nogil=True)
def update_contacts(
    pieces: Pieces, systems: Systems, data: Data, beta: np.ndarray, state: State, room: Room, shares: Shares, thread: int
) -> tuple[float, float, float]:
    """Take over new forces and slacks at new velocities; return what :func:`residuals` does, the same in every thread.

    ``room.force`` holds on entry what :func:`solve_bodies` pushed with.
    """
    threads = shares.system.shape[0] - 1
    for s in range(shares.system[thread], shares.system[thread + 1]):
        if systems.start[s] == LARGE:
            move_pieces(pieces, systems, s, state.v, state.moved)
    wait(shares.met, thread, threads)
    for block in range(shares.block[thread], shares.block[thread + 1]):
        project_contacts(pieces, data, beta, state, room, block)
    wait(shares.met, thread, threads)
    for s in range(shares.system[thread], shares.system[thread + 1]):
        add_dynamics(pieces, systems, data, beta, state, room, s)
    wait(shares.met, thread, threads)
    return residuals(data, room)


@njit(cache=True, nogil=True)
def iterate(
    pieces: Pieces, systems: Systems, data: Data, beta: np.ndarray, state: State, room: Room, shares: Shares, thread: int,
    rows: np.ndarray, aim: float,
) -> int:  # fmt: skip
    """Iterate until both residuals are at most ``aim`` or a value is not finite, at most as often as there are rows.

    For problems without large subsystems; the first thread fills rows (k, 3) with what :func:`residuals` returns, and each
    returns how many.
    """
    for i in range(rows.shape[0]):
        solve_bodies(pieces, systems, data, beta, state, room, shares, thread)
        dynamics, contact, slack = update_contacts(pieces, systems, data, beta, state, room, shares, thread)
        if thread == 0:
            rows[i, 0], rows[i, 1], rows[i, 2] = dynamics, contact, slack
        if max(dynamics, contact) <= aim or not math.isfinite(dynamics + contact):
            return i + 1
    return rows.shape[0]

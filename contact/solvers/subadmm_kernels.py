"""Compiled kernels of SubADMM: right-hand sides and solves body by body, forces contact by contact."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from contact.compiled import njit
from contact.cone import project_strict
from contact.metrics_kernels import law_parts, relative
from contact.solvers.canal_kernels import cholesky, substitute, weighted


class Pieces(NamedTuple):
    """J by contacts and subsystems: piece p has three entries ``jac`` in each of the columns ``col[ptr[p]:ptr[p + 1]]``.

    ``contact`` (pieces,) is the contact of each, ``shares`` (nc,) the pieces of each contact.
    """

    contact: np.ndarray
    ptr: np.ndarray
    col: np.ndarray
    jac: np.ndarray
    shares: np.ndarray


class Blocks(NamedTuple):
    """Small subsystems: rows ``row[ptr[j]:ptr[j + 1]]`` of subsystem j, and its matrix, square, from ``start[j]`` on in ``data``.

    ``block`` (n,) is the subsystem of each row of A, -1 where it is a large one, and ``place`` (n,) its row in the matrix.
    """

    ptr: np.ndarray
    row: np.ndarray
    start: np.ndarray
    block: np.ndarray
    place: np.ndarray
    data: np.ndarray


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
    """Arrays to work in: right-hand side, residual and J^T lam (n,), forces (pieces, 3), u (nc, 3), one block's row (n,)."""

    right: np.ndarray
    residual: np.ndarray
    pushed: np.ndarray
    force: np.ndarray
    u: np.ndarray
    x: np.ndarray


@njit(cache=True)
def split_columns(
    indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, system: np.ndarray, contact: np.ndarray, ptr: np.ndarray,
    col: np.ndarray, jac: np.ndarray,
) -> int:  # fmt: skip
    """Fill the pieces of J in compressed rows, by ``system`` (n,) of each column; return how many.

    The arrays are as long as the entries of J, which are more than there can be; three work arrays are made.
    """
    n, systems = system.shape[0], 0
    for j in range(n):
        systems = max(systems, system[j] + 1)
    place, seen, order = np.full(n, -1, dtype=np.int64), np.full(systems, -1, dtype=np.int64), np.empty(systems, dtype=np.int64)
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
            contact[total] = m
            total += 1
            ptr[total] = end
    return total


@njit(cache=True)
def factorize_blocks(
    indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, pieces: Pieces, beta: np.ndarray, blocks: Blocks
) -> bool:
    """Fill the matrices A_j + sum beta J_p^T J_p of the small subsystems and factorize them; False where that breaks down."""
    blocks.data[:] = 0.0
    for j in range(indptr.shape[0] - 1):
        s = blocks.block[j]
        if s >= 0:
            size = blocks.ptr[s + 1] - blocks.ptr[s]
            for k in range(indptr[j], indptr[j + 1]):
                if blocks.block[indices[k]] == s:
                    blocks.data[blocks.start[s] + blocks.place[indices[k]] * size + blocks.place[j]] += data[k]
    for p in range(pieces.contact.shape[0]):
        first, last = pieces.ptr[p], pieces.ptr[p + 1]
        if first == last or blocks.block[pieces.col[first]] < 0:
            continue
        s, factor = blocks.block[pieces.col[first]], beta[pieces.contact[p]]
        size = blocks.ptr[s + 1] - blocks.ptr[s]
        for a in range(first, last):
            row = blocks.start[s] + blocks.place[pieces.col[a]] * size
            for c in range(first, last):
                entry = 0.0
                for r in range(3):
                    entry += pieces.jac[a, r] * pieces.jac[c, r]
                blocks.data[row + blocks.place[pieces.col[c]]] += factor * entry
    for s in range(blocks.start.shape[0]):
        size = blocks.ptr[s + 1] - blocks.ptr[s]
        if not cholesky(blocks.data[blocks.start[s] : blocks.start[s] + size * size].reshape(size, size)):
            return False
    return True


@njit(cache=True)
def move_pieces(pieces: Pieces, v: np.ndarray, moved: np.ndarray) -> None:
    """Fill moved (pieces, 3) = J_p v."""
    for p in range(pieces.contact.shape[0]):
        x_0 = x_1 = x_2 = 0.0
        for k in range(pieces.ptr[p], pieces.ptr[p + 1]):
            x = v[pieces.col[k]]
            x_0 += pieces.jac[k, 0] * x
            x_1 += pieces.jac[k, 1] * x
            x_2 += pieces.jac[k, 2] * x
        moved[p, 0], moved[p, 1], moved[p, 2] = x_0, x_1, x_2


@njit(cache=True, inner=True)
def add_pieces(pieces: Pieces, force: np.ndarray, out: np.ndarray) -> None:
    """Add J_p^T force, (pieces, 3), to out (n,)."""
    for p in range(pieces.contact.shape[0]):
        for k in range(pieces.ptr[p], pieces.ptr[p + 1]):
            out[pieces.col[k]] += pieces.jac[k, 0] * force[p, 0] + pieces.jac[k, 1] * force[p, 1] + pieces.jac[k, 2] * force[p, 2]


@njit(cache=True)
def solve_bodies(pieces: Pieces, blocks: Blocks, data: Data, beta: np.ndarray, state: State, room: Room) -> None:
    """Fill the right-hand sides of all subsystems and the velocities of the small ones (papers/000 eq. 34)."""
    for p in range(pieces.contact.shape[0]):
        m = pieces.contact[p]
        for c in range(3):
            room.force[p, c] = beta[m] * (state.moved[p, c] + state.gap[m, c]) + state.lam[m, c]
    room.right[:] = data.b
    add_pieces(pieces, room.force, room.right)
    for s in range(blocks.start.shape[0]):
        first, last = blocks.ptr[s], blocks.ptr[s + 1]
        size = last - first
        x = room.x[:size]
        for i in range(size):
            x[i] = room.right[blocks.row[first + i]]
        substitute(blocks.data[blocks.start[s] : blocks.start[s] + size * size].reshape(size, size), x)
        for i in range(size):
            state.v[blocks.row[first + i]] = x[i]


@njit(cache=True)
def update_contacts(pieces: Pieces, data: Data, beta: np.ndarray, state: State, room: Room, row: np.ndarray) -> None:
    """Take over new forces and slacks at new velocities (papers/000 eqs. 35 to 39), contact by contact.

    Fills ``row``: dynamics and contact residual of the pair, and the largest slack error over the largest contact velocity.
    ``room.force`` holds on entry what :func:`solve_bodies` pushed with.
    """
    u, lam, gap, moved = room.u, state.lam, state.gap, state.moved
    # A v - b - J^T lam without a product with A: what was pushed with, less what the penalty holds of it
    for p in range(pieces.contact.shape[0]):
        m, x_0, x_1, x_2 = pieces.contact[p], 0.0, 0.0, 0.0
        for k in range(pieces.ptr[p], pieces.ptr[p + 1]):
            x = state.v[pieces.col[k]]
            x_0 += pieces.jac[k, 0] * x
            x_1 += pieces.jac[k, 1] * x
            x_2 += pieces.jac[k, 2] * x
        moved[p, 0], moved[p, 1], moved[p, 2] = x_0, x_1, x_2
        for c in range(3):
            room.force[p, c] -= beta[m] * moved[p, c]
    u[:] = data.phi
    for p in range(pieces.contact.shape[0]):
        for c in range(3):
            u[pieces.contact[p], c] += moved[p, c]
    wrong = strength = motion = slack = speed = 0.0
    for m in range(lam.shape[0]):
        step = beta[m] / max(pieces.shares[m], 1)
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
    for p in range(pieces.contact.shape[0]):
        for c in range(3):
            room.force[p, c] -= lam[pieces.contact[p], c]
    room.residual[:] = 0.0
    add_pieces(pieces, room.force, room.residual)
    for p in range(pieces.contact.shape[0]):
        for c in range(3):
            room.force[p, c] = lam[pieces.contact[p], c]
    room.pushed[:] = 0.0
    add_pieces(pieces, room.force, room.pushed)
    size = weighted(data.weight, room.residual)
    scale = max(weighted(data.weight, data.b), weighted(data.weight, room.pushed))
    for i in range(data.b.shape[0]):
        room.residual[i] += data.b[i] + room.pushed[i]
    row[0] = relative(size, max(scale, weighted(data.weight, room.residual)))
    row[1] = relative(math.sqrt(wrong), max(math.sqrt(strength), math.sqrt(motion)))
    row[2] = relative(slack, speed)


@njit(cache=True)
def iterate(
    pieces: Pieces, blocks: Blocks, data: Data, beta: np.ndarray, state: State, room: Room, rows: np.ndarray, aim: float
) -> int:
    """Iterate until both residuals are at most ``aim`` or a value is not finite, at most as often as there are rows.

    For problems without large subsystems; fills rows (k, 3) as :func:`update_contacts`, and returns how many.
    """
    for i in range(rows.shape[0]):
        solve_bodies(pieces, blocks, data, beta, state, room)
        update_contacts(pieces, data, beta, state, room, rows[i])
        worst = max(rows[i, 0], rows[i, 1])
        if worst <= aim or not math.isfinite(rows[i, 0] + rows[i, 1]):
            return i + 1
    return rows.shape[0]

"""Compiled kernels of the two-level cycle: block Gauss-Seidel sweeps, and the rigid modes of aggregates of points.

The sweeps take their sums by ``block_rows.block_row``. Small work arrays are made at the start of a call, none in a loop.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from contact.compiled import njit
from contact.solvers.block_rows import block_row
from contact.solvers.primal_kernels import OPEN, SLIDE, STICK, Columns

#: Kinds of a block row: a point, and the first and the second three unknowns of an aggregate of something else.
POINT, FIRST, SECOND = 0, 1, 2


class Blocks(NamedTuple):
    """Rows of 3x3 blocks as ``block_rows.apply_blocks`` takes them, place of each diagonal block, and what is added to that one.

    ``added`` (rows, 3, 3): J^T G J of contacts on one point each, which fills diagonal blocks only.
    """

    ptr: np.ndarray
    col: np.ndarray
    values: np.ndarray
    diagonal: np.ndarray
    added: np.ndarray


class Modes(NamedTuple):
    """Aggregate of each block row, (rows,), and how its six modes move the row, (rows, 3, 6)."""

    aggregate: np.ndarray
    shape: np.ndarray


class Coarse(NamedTuple):
    """Where block k of the fine matrix goes in the coarse one, and its transpose, (blocks,) each."""

    place: np.ndarray
    transposed: np.ndarray


@njit(cache=True)
def find_points(indptr: np.ndarray, indices: np.ndarray, point_of: np.ndarray, point: np.ndarray) -> bool:
    """Fill the point that each contact acts on, (nc,), -1 for none; False where one acts on several or on something else.

    ``point_of`` (n,) is the point of each row of v, -1 for none; J is given by its compressed rows.
    """
    for m in range(point.shape[0]):
        point[m] = -1
        for k in range(indptr[3 * m], indptr[3 * m + 3]):
            i = point_of[indices[k]]
            if i < 0 or (point[m] >= 0 and point[m] != i):
                return False
            point[m] = i
    return True


@njit(cache=True)
def find_kinds(gain: np.ndarray, kind: np.ndarray) -> None:
    """Fill what each contact holds by its gain (nc, 3, 3): nothing, all (it sticks) or its normal; the states of a contact."""
    for m in range(kind.shape[0]):
        normal = gain[m, 0, 0]
        tangent = 0.5 * (gain[m, 1, 1] + gain[m, 2, 2])
        kind[m] = OPEN if normal == 0.0 else (STICK if tangent > 0.5 * normal else SLIDE)


@njit(cache=True)
def add_gains(
    columns: Columns, rows: np.ndarray, point: np.ndarray, gain: np.ndarray, added: np.ndarray, held: np.ndarray
) -> None:
    """Fill J^T G J by block rows, ``added``, and ``held``: the same without what normal motion does to friction, symmetric."""
    added[:] = 0.0
    held[:] = 0.0
    jac = np.zeros((3, 3))
    for m in range(point.shape[0]):
        i = point[m]
        if i < 0:
            continue
        jac[:] = 0.0
        for a in range(columns.ptr[m], columns.ptr[m + 1]):
            for c in range(3):
                jac[c, rows[columns.col[a]] % 3] = columns.jac[a, c]
        for r in range(3):
            for s in range(3):
                own = gain[m, r, s]
                if own == 0.0:
                    continue
                for a in range(3):
                    for b in range(3):
                        part = jac[r, a] * own * jac[s, b]
                        added[i, a, b] += part
                        if (r == 0) == (s == 0):
                            held[i, a, b] += part


@njit(cache=True, inner=True)
def _invert(M: np.ndarray, out: np.ndarray) -> None:
    """Fill the inverse of a 3x3 matrix; infinite or NaN where it is singular."""
    c_0 = M[1, 1] * M[2, 2] - M[1, 2] * M[2, 1]
    c_1 = M[1, 2] * M[2, 0] - M[1, 0] * M[2, 2]
    c_2 = M[1, 0] * M[2, 1] - M[1, 1] * M[2, 0]
    determinant = M[0, 0] * c_0 + M[0, 1] * c_1 + M[0, 2] * c_2
    factor = 1.0 / determinant if determinant != 0.0 else np.inf
    out[0, 0], out[1, 0], out[2, 0] = factor * c_0, factor * c_1, factor * c_2
    out[0, 1] = factor * (M[0, 2] * M[2, 1] - M[0, 1] * M[2, 2])
    out[1, 1] = factor * (M[0, 0] * M[2, 2] - M[0, 2] * M[2, 0])
    out[2, 1] = factor * (M[0, 1] * M[2, 0] - M[0, 0] * M[2, 1])
    out[0, 2] = factor * (M[0, 1] * M[1, 2] - M[0, 2] * M[1, 1])
    out[1, 2] = factor * (M[0, 2] * M[1, 0] - M[0, 0] * M[1, 2])
    out[2, 2] = factor * (M[0, 0] * M[1, 1] - M[0, 1] * M[1, 0])


@njit(cache=True)
def invert_diagonal(blocks: Blocks, inverse: np.ndarray) -> None:
    """Fill the inverses of the diagonal blocks, (rows, 3, 3)."""
    M = np.empty((3, 3))
    for i in range(blocks.diagonal.shape[0]):
        start = 9 * blocks.diagonal[i]
        for r in range(3):
            for c in range(3):
                M[r, c] = blocks.values[start + 3 * c + r] + blocks.added[i, r, c]
        _invert(M, inverse[i])


@njit(cache=True)
def fill_modes(
    blocks: Blocks, kind: np.ndarray, points: np.ndarray, centre: np.ndarray, size: float, held: np.ndarray, modes: Modes
) -> None:
    """Fill how the modes of the aggregates move each block row.

    Those of points, at ``points`` (rows, 3) m, are the translations and the rotations about the ``centre`` (aggregates, 3) m, in
    units of ``size``, m. (D + held)^-1 D with the block D of A takes out what contacts hold. Rows that no entry joins to others
    have none: a sweep solves them.
    """
    D, M, inverse, part = np.empty((3, 3)), np.empty((3, 3)), np.empty((3, 3)), np.empty((3, 6))
    for i in range(kind.shape[0]):
        P = modes.shape[i]
        P[:] = 0.0
        joined = False
        for k in range(blocks.ptr[i], blocks.ptr[i + 1]):
            if k != blocks.diagonal[i]:
                for e in range(9):
                    joined |= blocks.values[9 * k + e] != 0.0
        if not joined:
            continue
        start = 9 * blocks.diagonal[i]
        first = 3 if kind[i] == SECOND else 0
        for c in range(3):
            P[c, first + c] = 1.0
        if kind[i] == POINT:
            a = modes.aggregate[i]
            d_0, d_1, d_2 = points[i, 0] - centre[a, 0], points[i, 1] - centre[a, 1], points[i, 2] - centre[a, 2]
            P[1, 3], P[2, 3] = -d_2 / size, d_1 / size
            P[0, 4], P[2, 4] = d_2 / size, -d_0 / size
            P[0, 5], P[1, 5] = -d_1 / size, d_0 / size
            if held[i].any():
                for r in range(3):
                    for c in range(3):
                        D[r, c] = blocks.values[start + 3 * c + r]
                        M[r, c] = D[r, c] + held[i, r, c]
                _invert(M, inverse)
                for r in range(3):
                    for q in range(6):
                        part[r, q] = D[r, 0] * P[0, q] + D[r, 1] * P[1, q] + D[r, 2] * P[2, q]
                for r in range(3):
                    for q in range(6):
                        P[r, q] = inverse[r, 0] * part[0, q] + inverse[r, 1] * part[1, q] + inverse[r, 2] * part[2, q]


@njit(cache=True)
def galerkin(blocks: Blocks, held: np.ndarray, modes: Modes, coarse: Coarse, out: np.ndarray) -> None:
    """Fill the coarse blocks, (coarse blocks, 6, 6), of P^T (A + held) P; A is symmetric."""
    out[:] = 0.0
    M, T = np.empty((3, 3)), np.empty((3, 6))
    for i in range(blocks.diagonal.shape[0]):
        P = modes.shape[i]
        for k in range(blocks.ptr[i], blocks.ptr[i + 1]):
            j = blocks.col[k]
            if j < i:
                continue
            for r in range(3):
                for c in range(3):
                    M[r, c] = blocks.values[9 * k + 3 * c + r]
            if j == i:
                for r in range(3):
                    for c in range(3):
                        M[r, c] += held[i, r, c]
            Q = modes.shape[j]
            for r in range(3):
                for q in range(6):
                    T[r, q] = M[r, 0] * Q[0, q] + M[r, 1] * Q[1, q] + M[r, 2] * Q[2, q]
            own = out[coarse.place[k]]
            for p in range(6):
                for q in range(6):
                    own[p, q] += P[0, p] * T[0, q] + P[1, p] * T[1, q] + P[2, p] * T[2, q]
            if j > i:
                other = out[coarse.transposed[k]]
                for p in range(6):
                    for q in range(6):
                        other[q, p] += P[0, p] * T[0, q] + P[1, p] * T[1, q] + P[2, p] * T[2, q]


@njit(cache=True)
def sweep_down(blocks: Blocks, inverse: np.ndarray, modes: Modes, b: np.ndarray, x: np.ndarray, coarse: np.ndarray) -> None:
    """Gauss-Seidel downwards from zero for K x = b, and what that leaves, restricted to the modes, ``coarse`` (aggregates, 6)."""
    sums = np.empty(x.shape[0])
    ptr, col, values, diagonal = blocks.ptr, blocks.col, blocks.values, blocks.diagonal
    for i in range(diagonal.shape[0]):
        block_row(values, col, x, sums, ptr[i], diagonal[i], i)
        r_0, r_1, r_2 = b[3 * i] - sums[3 * i], b[3 * i + 1] - sums[3 * i + 1], b[3 * i + 2] - sums[3 * i + 2]
        D = inverse[i]
        for c in range(3):
            x[3 * i + c] = D[c, 0] * r_0 + D[c, 1] * r_1 + D[c, 2] * r_2
    coarse[:] = 0.0
    for i in range(diagonal.shape[0]):
        block_row(values, col, x, sums, diagonal[i] + 1, ptr[i + 1], i)
        P, own = modes.shape[i], coarse[modes.aggregate[i]]
        for q in range(6):
            own[q] -= P[0, q] * sums[3 * i] + P[1, q] * sums[3 * i + 1] + P[2, q] * sums[3 * i + 2]


@njit(cache=True)
def sweep_up(
    blocks: Blocks, inverse: np.ndarray, modes: Modes, b: np.ndarray, coarse: np.ndarray, x: np.ndarray, product: np.ndarray
) -> None:
    """Add the coarse correction to x, sweep upwards, and fill the product K x: after the sweep it is b + L (x - x before)."""
    sums, change = np.empty(x.shape[0]), np.empty(x.shape[0])
    ptr, col, values, diagonal = blocks.ptr, blocks.col, blocks.values, blocks.diagonal
    for i in range(diagonal.shape[0]):
        P, own = modes.shape[i], coarse[modes.aggregate[i]]
        for c in range(3):
            total = 0.0
            for q in range(6):
                total += P[c, q] * own[q]
            x[3 * i + c] += total
    for i in range(diagonal.shape[0] - 1, -1, -1):
        block_row(values, col, x, sums, ptr[i], diagonal[i], i)
        r_0, r_1, r_2 = b[3 * i] - sums[3 * i], b[3 * i + 1] - sums[3 * i + 1], b[3 * i + 2] - sums[3 * i + 2]
        block_row(values, col, x, sums, diagonal[i] + 1, ptr[i + 1], i)
        r_0, r_1, r_2 = r_0 - sums[3 * i], r_1 - sums[3 * i + 1], r_2 - sums[3 * i + 2]
        D = inverse[i]
        for c in range(3):
            new = D[c, 0] * r_0 + D[c, 1] * r_1 + D[c, 2] * r_2
            change[3 * i + c] = new - x[3 * i + c]
            x[3 * i + c] = new
    for i in range(diagonal.shape[0]):
        block_row(values, col, change, sums, ptr[i], diagonal[i], i)
        for c in range(3):
            product[3 * i + c] = b[3 * i + c] + sums[3 * i + c]


@njit(cache=True)
def find_free(blocks: Blocks, free: np.ndarray) -> None:
    """Mark rows, (3 rows,) by 1, that some other entry joins to others; what prescribes a velocity leaves its row alone, 0."""
    for i in range(blocks.ptr.shape[0] - 1):
        for a in range(3):
            size = 0.0
            for k in range(blocks.ptr[i], blocks.ptr[i + 1]):
                for b in range(3):
                    if k != blocks.diagonal[i] or a != b:
                        size += abs(blocks.values[9 * k + 3 * b + a])
            free[3 * i + a] = 1.0 if size > 0.0 else 0.0


@njit(cache=True)
def translations(blocks: Blocks, body: np.ndarray, free: np.ndarray, stiffness: np.ndarray) -> None:
    """Fill the matrix, (bodies, 3, 3), of the translations of the free rows of each body; ``body`` (rows,) is -1 for none."""
    stiffness[:] = 0.0
    for i in range(blocks.ptr.shape[0] - 1):
        g = body[i]
        if g < 0:
            continue
        for a in range(3):
            if free[3 * i + a] == 0.0:
                continue
            for b in range(3):
                stiffness[g, a, b] += free[3 * i + b] * blocks.added[i, a, b]
            for k in range(blocks.ptr[i], blocks.ptr[i + 1]):
                j = blocks.col[k]
                if body[j] == g:
                    for b in range(3):
                        stiffness[g, a, b] += free[3 * j + b] * blocks.values[9 * k + 3 * b + a]


@njit(cache=True)
def net_lacking(blocks: Blocks, body: np.ndarray, free: np.ndarray, r: np.ndarray, x: np.ndarray, lacking: np.ndarray) -> None:
    """Fill the sums, (bodies, 3), of r - K x over the free rows of each body."""
    lacking[:] = 0.0
    for i in range(blocks.ptr.shape[0] - 1):
        g = body[i]
        if g < 0:
            continue
        for a in range(3):
            if free[3 * i + a] == 0.0:
                continue
            left = r[3 * i + a]
            for b in range(3):
                left -= blocks.added[i, a, b] * x[3 * i + b]
            for k in range(blocks.ptr[i], blocks.ptr[i + 1]):
                for b in range(3):
                    left -= blocks.values[9 * k + 3 * b + a] * x[3 * blocks.col[k] + b]
            lacking[g, a] += left

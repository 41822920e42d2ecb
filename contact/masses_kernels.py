"""Compiled kernels on an inverse mass matrix of blocks and on the operator of the contacts between them.

Each contact and each block of M that it acts on make a pair. W is summed over the blocks: two contacts that act on the same one
have J M^-1 J^T of that block in common.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from contact.compiled import njit


class Masses(NamedTuple):
    """Inverse of a mass matrix that is made of blocks on its diagonal, in some order of its rows.

    Attributes
    ----------
    block, place : ndarray of int64, (n,)
        Block of each row of v, and its place in the block.
    first, rows : ndarray of int64, (blocks + 1,) and (n,)
        Rows of v by blocks: those of block k are ``rows[first[k]:first[k + 1]]``.
    start, inverse : ndarray, (blocks + 1,) int64 and (entries,)
        Inverses of the blocks, row by row, one after another; 0 in the rows and columns of velocities that are prescribed.
    """

    block: np.ndarray
    place: np.ndarray
    first: np.ndarray
    rows: np.ndarray
    start: np.ndarray
    inverse: np.ndarray


class BlockRows(NamedTuple):
    """A matrix of 3x3 blocks by rows: those of row i stand in ``blocks`` (m, 3, 3) from ``indptr[i]`` to ``indptr[i + 1]``."""

    indptr: np.ndarray
    indices: np.ndarray
    blocks: np.ndarray


class Acting(NamedTuple):
    """Pairs of a contact and a block of M that it acts on.

    Attributes
    ----------
    ptr, block, start : ndarray of int64, (k + 1,), (pairs,), (pairs,)
        Pairs by contacts, the block of each, and where its entries start in the next two.
    left, right : ndarray, (entries,)
        Columns of J in the block, 3 rows one after another, and dt times these times the inverse of the block.
    by_block, contact, pair : ndarray of int64, (blocks + 1,), (pairs,), (pairs,)
        Pairs by blocks: their contacts and their numbers.
    """

    ptr: np.ndarray
    block: np.ndarray
    start: np.ndarray
    left: np.ndarray
    right: np.ndarray
    by_block: np.ndarray
    contact: np.ndarray
    pair: np.ndarray


@njit(cache=True)
def invert(blocks: np.ndarray, held: np.ndarray, out: np.ndarray) -> bool:
    """Fill the inverses of symmetric positive definite blocks (k, m, m), row by row in out (k m m,), by Cholesky's factors.

    Rows that are ``held``, (k m,) bool, are left out: their rows and columns are 0. False where a block is not positive definite.
    """
    m = blocks.shape[1]
    L, x = np.zeros((m, m)), np.zeros(m)
    for k in range(blocks.shape[0]):
        for r in range(m):
            for c in range(r + 1):
                total = 0.0
                if not (held[k * m + r] or held[k * m + c]):
                    total = blocks[k, r, c]
                elif r == c:
                    total = 1.0
                for i in range(c):
                    total -= L[r, i] * L[c, i]
                if r > c:
                    L[r, c] = total / L[c, c]
                elif total > 0.0:
                    L[r, r] = math.sqrt(total)
                else:
                    return False
        for c in range(m):
            for r in range(c):
                x[r] = 0.0
            for r in range(c, m):
                total = 1.0 if r == c and not held[k * m + c] else 0.0
                for i in range(c, r):
                    total -= L[r, i] * x[i]
                x[r] = total / L[r, r]
            for r in range(m - 1, -1, -1):
                total = x[r]
                for i in range(r + 1, m):
                    total -= L[i, r] * x[i]
                x[r] = total / L[r, r]
                out[(k * m + r) * m + c] = x[r]
    return True


@njit(cache=True)
def times(masses: Masses, x: np.ndarray, out: np.ndarray) -> None:
    """Fill out = M^-1 x, (n,)."""
    for i in range(out.shape[0]):
        k = masses.block[i]
        first, size = masses.first[k], masses.first[k + 1] - masses.first[k]
        at, total = masses.start[k] + masses.place[i] * size, 0.0
        for c in range(size):
            total += masses.inverse[at + c] * x[masses.rows[first + c]]
        out[i] = total


@njit(cache=True)
def between_rows(
    masses: Masses, indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, rows: np.ndarray, work: np.ndarray, out: np.ndarray
) -> None:
    """Fill G M^-1 G^T of some rows of G, (p, p), exactly symmetric; ``work`` (n,) is scratch, 0 before and after."""
    for i in range(rows.shape[0]):
        for fill in (True, False):
            for at in range(indptr[rows[i]], indptr[rows[i] + 1]):
                k = masses.block[indices[at]]
                first, size = masses.first[k], masses.first[k + 1] - masses.first[k]
                own = masses.start[k] + masses.place[indices[at]] * size
                for c in range(size):
                    if fill:
                        work[masses.rows[first + c]] += data[at] * masses.inverse[own + c]
                    else:
                        work[masses.rows[first + c]] = 0.0
            if not fill:
                continue
            for j in range(i + 1):
                total = 0.0
                for at in range(indptr[rows[j]], indptr[rows[j] + 1]):
                    total += data[at] * work[indices[at]]
                out[i, j] = out[j, i] = total


@njit(cache=True)
def merge(masses: Masses, set_of: np.ndarray, ptr: np.ndarray, members: np.ndarray) -> Masses:
    """Return the same inverse with one block for all rows of v of each set, after those that are in none.

    Parameters
    ----------
    masses : Masses
        Its blocks belong to one set or none each.
    set_of : ndarray of int64, (n,)
        Set of each row of v; -1 for none.
    ptr, members : ndarray of int64, (sets + 1,) and (k,)
        Rows of v by sets.
    """
    n, sets, count, entries = set_of.shape[0], ptr.shape[0] - 1, 0, 0
    for k in range(masses.first.shape[0] - 1):
        if set_of[masses.rows[masses.first[k]]] < 0:
            count += 1
            entries += (masses.first[k + 1] - masses.first[k]) ** 2
    for s in range(sets):
        entries += (ptr[s + 1] - ptr[s]) ** 2
    out = Masses(
        np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64), np.zeros(count + sets + 1, dtype=np.int64),
        np.empty(n, dtype=np.int64), np.zeros(count + sets + 1, dtype=np.int64), np.zeros(entries),
    )  # fmt: skip
    count = 0
    for k in range(masses.first.shape[0] - 1):
        first, size = masses.first[k], masses.first[k + 1] - masses.first[k]
        if set_of[masses.rows[first]] >= 0:
            continue
        for c in range(size):
            row = masses.rows[first + c]
            out.rows[out.first[count] + c], out.block[row], out.place[row] = row, count, c
        for c in range(size * size):
            out.inverse[out.start[count] + c] = masses.inverse[masses.start[k] + c]
        out.first[count + 1], out.start[count + 1] = out.first[count] + size, out.start[count] + size * size
        count += 1
    for s in range(sets):
        size = ptr[s + 1] - ptr[s]
        for c in range(size):
            row = members[ptr[s] + c]
            out.rows[out.first[count] + c], out.block[row], out.place[row] = row, count, c
        out.first[count + 1], out.start[count + 1] = out.first[count] + size, out.start[count] + size * size
        count += 1
    for s in range(sets):
        for c in range(ptr[s], ptr[s + 1]):
            row = members[c]
            k = masses.block[row]
            first, size = masses.first[k], masses.first[k + 1] - masses.first[k]
            for i in range(size):
                to = out.start[out.block[row]] + out.place[row] * (ptr[s + 1] - ptr[s]) + out.place[masses.rows[first + i]]
                out.inverse[to] = masses.inverse[masses.start[k] + masses.place[row] * size + i]
    return out


@njit(cache=True)
def times_blocks(W: BlockRows, x: np.ndarray, out: np.ndarray) -> None:
    """Fill out = W x, (rows, 3)."""
    for i in range(out.shape[0]):
        for r in range(3):
            out[i, r] = 0.0
        for k in range(W.indptr[i], W.indptr[i + 1]):
            j = W.indices[k]
            for r in range(3):
                for c in range(3):
                    out[i, r] += W.blocks[k, r, c] * x[j, c]


@njit(cache=True, inner=True)
def count_pairs(
    masses: Masses,
    indptr: np.ndarray,
    indices: np.ndarray,
    contacts: np.ndarray,
    seen: np.ndarray,
    ptr: np.ndarray,
    starts: np.ndarray,
) -> None:
    """Fill the numbers of pairs and of entries before each contact, ``ptr`` and ``starts`` (k + 1,); ``seen`` (blocks,) is -1."""
    for i in range(contacts.shape[0]):
        ptr[i + 1], starts[i + 1] = ptr[i], starts[i]
        for at in range(indptr[3 * contacts[i]], indptr[3 * contacts[i] + 3]):
            k = masses.block[indices[at]]
            if seen[k] != i:
                seen[k] = i
                ptr[i + 1] += 1
                starts[i + 1] += 3 * (masses.first[k + 1] - masses.first[k])


@njit(cache=True, inner=True)
def fill_pairs(
    masses: Masses,
    indptr: np.ndarray,
    indices: np.ndarray,
    data: np.ndarray,
    contacts: np.ndarray,
    starts: np.ndarray,
    known: np.ndarray,
    dt: float,
    acting: Acting,
) -> None:
    """Fill the pairs; ``known`` (blocks,) is scratch. The counts ``by_block`` must be 0, and so ``left`` and ``right``."""
    known[:] = -1
    for i in range(contacts.shape[0]):
        count, entry = acting.ptr[i], starts[i]
        for r in range(3):
            row = 3 * contacts[i] + r
            for at in range(indptr[row], indptr[row + 1]):
                k = masses.block[indices[at]]
                size = masses.first[k + 1] - masses.first[k]
                if known[k] < acting.ptr[i]:
                    known[k] = count
                    acting.block[count], acting.start[count] = k, entry
                    acting.by_block[k + 1] += 1
                    count, entry = count + 1, entry + 3 * size
                acting.left[acting.start[known[k]] + r * size + masses.place[indices[at]]] = data[at]
    for k in range(masses.first.shape[0] - 1):
        acting.by_block[k + 1] += acting.by_block[k]
    for k in range(masses.first.shape[0] - 1):
        known[k] = acting.by_block[k]
    for i in range(contacts.shape[0]):
        for p in range(acting.ptr[i], acting.ptr[i + 1]):
            k, at = acting.block[p], acting.start[p]
            acting.contact[known[k]], acting.pair[known[k]] = i, p
            known[k] += 1
            size, own = masses.first[k + 1] - masses.first[k], masses.start[k]
            for r in range(3):
                for c in range(size):
                    total = 0.0
                    for j in range(size):
                        total += acting.left[at + r * size + j] * masses.inverse[own + j * size + c]
                    acting.right[at + r * size + c] = dt * total


@njit(cache=True, inner=True)
def count_neighbours(acting: Acting, met: np.ndarray, indptr: np.ndarray) -> None:
    """Fill the numbers of contacts that share a block with the contacts before each, (k + 1,); ``met`` (k,) starts at -1."""
    for i in range(met.shape[0]):
        indptr[i + 1] = indptr[i]
        for p in range(acting.ptr[i], acting.ptr[i + 1]):
            k = acting.block[p]
            for other in range(acting.by_block[k], acting.by_block[k + 1]):
                if met[acting.contact[other]] != i:
                    met[acting.contact[other]] = i
                    indptr[i + 1] += 1


@njit(cache=True, inner=True)
def fill_neighbours(masses: Masses, acting: Acting, place: np.ndarray, W: BlockRows) -> None:
    """Fill W, whose blocks are 0; ``place`` (k,) is scratch."""
    place[:] = -1
    for i in range(place.shape[0]):
        count = W.indptr[i]
        for p in range(acting.ptr[i], acting.ptr[i + 1]):
            k, a = acting.block[p], acting.start[p]
            size = masses.first[k + 1] - masses.first[k]
            for other in range(acting.by_block[k], acting.by_block[k + 1]):
                j, b = acting.contact[other], acting.start[acting.pair[other]]
                if place[j] < W.indptr[i]:
                    place[j] = count
                    W.indices[count] = j
                    count += 1
                block = W.blocks[place[j]]
                for r in range(3):
                    for c in range(3):
                        for m in range(size):
                            block[r, c] += acting.right[a + r * size + m] * acting.left[b + c * size + m]


@njit(cache=True)
def operator(
    masses: Masses, indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, contacts: np.ndarray, dt: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return W = dt J M^-1 J^T of some contacts, see ``contact.masses.split_operator``; what it counts, it makes room for.

    The arrays are those of :class:`BlockRows`: to make one, numba reads its class from a string of bytes in each call.
    """
    k, blocks = contacts.shape[0], masses.first.shape[0] - 1
    seen, ptr, starts = np.full(blocks, -1), np.zeros(k + 1, dtype=np.int64), np.zeros(k + 1, dtype=np.int64)
    count_pairs(masses, indptr, indices, contacts, seen, ptr, starts)
    pairs, entries = ptr[k], starts[k]
    acting = Acting(
        ptr, np.empty(pairs, dtype=np.int64), np.empty(pairs, dtype=np.int64), np.zeros(entries), np.zeros(entries),
        np.zeros(blocks + 1, dtype=np.int64), np.empty(pairs, dtype=np.int64), np.empty(pairs, dtype=np.int64),
    )  # fmt: skip
    fill_pairs(masses, indptr, indices, data, contacts, starts, seen, dt, acting)
    met, first = np.full(k, -1), np.zeros(k + 1, dtype=np.int64)
    count_neighbours(acting, met, first)
    W = BlockRows(first, np.empty(first[k], dtype=np.int64), np.zeros((first[k], 3, 3)))
    fill_neighbours(masses, acting, met, W)
    return W.indptr, W.indices, W.blocks


@njit(cache=True, inner=True)
def find_groups(indptr: np.ndarray, indices: np.ndarray, order: np.ndarray, ptr: np.ndarray) -> int:
    """Put contacts that a chain of entries joins one after another; return the number of such groups.

    ``order`` (k,) becomes the contacts by groups, each sorted, and ``ptr`` (k + 1,) where groups start. The pattern is symmetric.
    """
    n, count, filled = order.shape[0], 0, 0
    found = np.zeros(n, dtype=np.bool_)
    for i in range(n):
        if found[i]:
            continue
        ptr[count], reached = filled, filled
        found[i] = True
        order[filled] = i
        filled += 1
        while reached < filled:
            at = order[reached]
            reached += 1
            for k in range(indptr[at], indptr[at + 1]):
                j = indices[k]
                if not found[j]:
                    found[j] = True
                    order[filled] = j
                    filled += 1
        order[ptr[count] : filled].sort()
        count += 1
    ptr[count] = filled
    return count


@njit(cache=True)
def gather_group(W: BlockRows, group: np.ndarray, place: np.ndarray, WT: np.ndarray) -> None:
    """Fill the transpose of the rows and columns of a group of contacts, (3m, 3m); ``place`` (k,) is scratch."""
    for a in range(group.shape[0]):
        place[group[a]] = a
    WT[:] = 0.0
    for a in range(group.shape[0]):
        for k in range(W.indptr[group[a]], W.indptr[group[a] + 1]):
            b = place[W.indices[k]]
            for r in range(3):
                for c in range(3):
                    WT[3 * b + c, 3 * a + r] = W.blocks[k, r, c]

"""Kernels of :mod:`femsim.step.whole_tangents`: states of contacts, and the sparse system of velocities and contact forces."""

from __future__ import annotations

import math

import numpy as np

from contact.compiled import njit

#: States of contacts: no force; force along the normal and a given way; a force against any motion; none of these rows.
OPEN, SLIDES, STICKS, ASIDE = 0, 1, 2, 3


@njit(cache=True)
def states(
    starts: np.ndarray,
    u: np.ndarray,
    lam: np.ndarray,
    scale: np.ndarray,
    friction: np.ndarray,
    state: np.ndarray,
    way: np.ndarray,
) -> int:
    """Fill the ``state`` (nc,) int8 of contacts and the ``way`` (nc, 2) of those that slide; return how many forces are unknown.

    ``starts`` (3 nc + 1,) are those of the compressed rows of the contacts: what has no entries is aside. ``u`` (nc, 3) m/s are
    the speeds at contacts, ``lam`` (nc, 3) N their forces, ``scale`` (nc,) N s/m the force for a speed, ``friction`` (nc,). The
    force of a contact that slides is lam_n (1, way).
    """
    unknown = 0
    for i in range(len(state)):
        way[i, 0] = way[i, 1] = 0.0
        if starts[3 * i + 3] == starts[3 * i]:
            state[i] = ASIDE
            continue
        normal = lam[i, 0] - scale[i] * u[i, 0]
        p, q = lam[i, 1] - scale[i] * u[i, 1], lam[i, 2] - scale[i] * u[i, 2]
        size = math.sqrt(p * p + q * q)
        if normal <= 0.0:
            state[i] = OPEN
        elif size <= friction[i] * normal:
            state[i] = STICKS
            unknown += 3
        else:
            state[i] = SLIDES
            way[i, 0], way[i, 1] = friction[i] * p / size, friction[i] * q / size
            unknown += 1
    return unknown


@njit(cache=True)
def held_system(
    starts: np.ndarray,
    columns: np.ndarray,
    values: np.ndarray,
    J_starts: np.ndarray,
    J_columns: np.ndarray,
    J_values: np.ndarray,
    state: np.ndarray,
    way: np.ndarray,
    give: float,
    indptr: np.ndarray,
    indices: np.ndarray,
    data: np.ndarray,
) -> int:
    """Fill the compressed rows of [[A, -P], [R, -give]] with P the columns of unknown forces and R the speeds that vanish.

    ``starts``, ``columns`` and ``values`` are the compressed rows of A, (n, n), the three after them those of J, (3 nc, n); give
    is in m/(N s). ``indptr`` (n + unknown + 1,), ``indices`` and ``data`` have room for nnz(A) + 4 nnz(J) + unknown entries;
    returns how many there are. Entries of a row may name a column twice, which means their sum.
    """
    n, nc = len(starts) - 1, len(state)
    # entries of P in each row, after those of A
    count = np.zeros(n + 1, dtype=np.int64)
    for i in range(nc):
        if state[i] == SLIDES or state[i] == STICKS:
            for e in range(J_starts[3 * i], J_starts[3 * i + 3]):
                count[J_columns[e]] += 1
    place = 0
    indptr[0] = 0
    for r in range(n):
        for e in range(starts[r], starts[r + 1]):
            indices[place], data[place] = columns[e], values[e]
            place += 1
        free = place
        place += count[r]
        count[r] = free
        indptr[r + 1] = place
    y = n
    for i in range(nc):
        if state[i] != SLIDES and state[i] != STICKS:
            continue
        for k in range(3):
            row = 3 * i + k
            unknown = y + k if state[i] == STICKS else y
            factor = 1.0 if state[i] == STICKS or k == 0 else way[i, k - 1]
            for e in range(J_starts[row], J_starts[row + 1]):
                free = count[J_columns[e]]
                indices[free], data[free] = unknown, -factor * J_values[e]
                count[J_columns[e]] += 1
            if state[i] == STICKS or k == 0:
                for e in range(J_starts[row], J_starts[row + 1]):
                    indices[place], data[place] = J_columns[e], J_values[e]
                    place += 1
                indices[place], data[place] = unknown, -give
                place += 1
                indptr[unknown + 1] = place
        y += 3 if state[i] == STICKS else 1
    return place

"""Compiled products with block diagonal rotations of triples of rows."""

from __future__ import annotations

import numpy as np

from contact.compiled import njit


@njit(cache=True)
def between(before: np.ndarray, now: np.ndarray, turn: np.ndarray) -> None:
    """Fill the turns ``now`` ``before``^T, (k, 3, 3) each."""
    for t in range(turn.shape[0]):
        for r in range(3):
            for c in range(3):
                turn[t, r, c] = now[t, r, 0] * before[t, c, 0] + now[t, r, 1] * before[t, c, 1] + now[t, r, 2] * before[t, c, 2]


@njit(cache=True)
def turn(rows: np.ndarray, turn: np.ndarray, x: np.ndarray, back: bool, out: np.ndarray) -> None:
    """Fill the triples of ``out``, (n,), with those of ``x``, (n,), turned, or turned ``back``."""
    for t in range(rows.shape[0]):
        k = rows[t]
        a, b, c = x[k], x[k + 1], x[k + 2]
        for r in range(3):
            if back:
                out[k + r] = turn[t, 0, r] * a + turn[t, 1, r] * b + turn[t, 2, r] * c
            else:
                out[k + r] = turn[t, r, 0] * a + turn[t, r, 1] * b + turn[t, r, 2] * c


@njit(cache=True)
def turned_rows(
    indptr: np.ndarray,
    indices: np.ndarray,
    data: np.ndarray,
    rows: np.ndarray,
    triple: np.ndarray,
    turn: np.ndarray,
    out_indptr: np.ndarray,
    out_indices: np.ndarray,
    out_data: np.ndarray,
) -> int:
    """Fill J R in compressed rows, R turning triples of columns; return how many entries it has, at most three times those of J.

    Entries of one triple that follow one another in a row of J become three, ``triple`` (n,) says of which they are, -1 for none.
    """
    entry = 0
    out_indptr[0] = 0
    for i in range(indptr.shape[0] - 1):
        last = -1
        for k in range(indptr[i], indptr[i + 1]):
            column = indices[k]
            t = triple[column]
            if t < 0:
                out_indices[entry], out_data[entry] = column, data[k]
                entry += 1
            else:
                if t != last:
                    for c in range(3):
                        out_indices[entry + c], out_data[entry + c] = rows[t] + c, 0.0
                    entry += 3
                r = column - rows[t]
                for c in range(3):
                    out_data[entry - 3 + c] += data[k] * turn[t, r, c]
            last = t
        out_indptr[i + 1] = entry
    return entry

"""Compiled kernels of joints: their rows below each other, and how fast they move."""

from __future__ import annotations

import numpy as np

from contact.compiled import njit


@njit(cache=True)
def append_rows(
    G: np.ndarray,
    place: np.ndarray,
    columns: np.ndarray,
    given: np.ndarray,
    prescribed: np.ndarray,
    rounded: float,
    first: int,
    at: int,
    indptr: np.ndarray,
    indices: np.ndarray,
    data: np.ndarray,
    moved: np.ndarray,
) -> int:
    """Append the dense rows of a joint, (p, m), to a matrix in compressed rows without zeros; return how many entries it has.

    Columns may be named twice, and are added. Of a loop within one robot what the base does to both sides cancels, and much else
    in a plane one. What is left of a row by rounding is no row at all: entries are zero below ``rounded`` of the largest that
    they are sums of.

    Parameters
    ----------
    G : ndarray, (p, m)
        The rows.
    place, columns : ndarray of int64, (m,) and (k,)
        Place of each column of G among the columns of the matrix, which grow.
    given, prescribed : ndarray, (n,), and (n,) bool
        Velocities that are given, zero elsewhere; and columns that are left out.
    first, at : int
        Rows and entries that are there.
    indptr, indices, data : ndarray
        The matrix.
    moved : ndarray, (rows, 2)
        By what the velocities given move each row, and the sum of the sizes.
    """
    row = np.empty(columns.shape[0])
    for r in range(G.shape[0]):
        row[:] = 0.0
        largest = 0.0
        for c in range(G.shape[1]):
            row[place[c]] += G[r, c]
            largest = max(largest, abs(G[r, c]))
        moved[first + r] = 0.0
        for c in range(columns.shape[0]):
            if abs(row[c]) <= rounded * largest:
                continue
            moved[first + r, 0] += row[c] * given[columns[c]]
            moved[first + r, 1] += abs(row[c] * given[columns[c]])
            if not prescribed[columns[c]]:
                indices[at], data[at] = columns[c], row[c]
                at += 1
        indptr[first + r + 1] = at
    return at


@njit(cache=True, _nrt=False)
def largest_speed(row: np.ndarray, v: np.ndarray, given: np.ndarray) -> float:
    """Return the largest sum of the sizes of two velocities (n,) on some rows, (k,); 0 without rows."""
    largest = 0.0
    for k in range(row.shape[0]):
        speed = abs(v[row[k]]) + abs(given[row[k]])
        if speed > largest or speed != speed:  # what is no number bounds nothing
            largest = speed
    return largest

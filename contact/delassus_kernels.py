"""Compiled assembly of the Delassus operator."""

from __future__ import annotations

import numpy as np

from contact.compiled import njit


@njit(cache=True)
def congruence(
    indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, compliance: np.ndarray, row: np.ndarray, W: np.ndarray
) -> None:
    """Fill W = J G J^T, exactly symmetric, for J in compressed rows and a symmetric dense G; ``row``, (m,), is working space."""
    for i in range(W.shape[0]):
        for c in range(row.shape[0]):
            row[c] = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            factor, source = data[k], compliance[indices[k]]
            for c in range(row.shape[0]):
                row[c] += factor * source[c]
        for j in range(i + 1):
            total = 0.0
            for k in range(indptr[j], indptr[j + 1]):
                total += data[k] * row[indices[k]]
            W[i, j] = total
            W[j, i] = total


@njit(cache=True)
def fill_dense(
    indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, rows: np.ndarray, A: np.ndarray, unit: np.ndarray
) -> None:
    """Fill a matrix in compressed columns, transposed, and the unit vectors of some of its rows, (m, n); both are 0 before."""
    for j in range(A.shape[0]):
        for k in range(indptr[j], indptr[j + 1]):
            A[j, indices[k]] = data[k]
    for i in range(rows.shape[0]):
        unit[i, rows[i]] = 1.0


@njit(cache=True)
def pick_symmetric(columns: np.ndarray, rows: np.ndarray, out: np.ndarray) -> None:
    """Fill the symmetric part of some rows, (m,), of as many columns, which stand in the rows of ``columns``, (m, n)."""
    for i in range(rows.shape[0]):
        for j in range(rows.shape[0]):
            out[i, j] = 0.5 * (columns[j, rows[i]] + columns[i, rows[j]])

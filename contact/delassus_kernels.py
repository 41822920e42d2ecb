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

"""Rows of several joints as one sparse matrix."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

#: Entries of rows of joints below this part of the terms that they are sums of are rounding.
_ROUNDED = 1e-13


def stacked(parts: Sequence[tuple[np.ndarray, np.ndarray]], n: int) -> sp.csr_matrix:
    """Dense rows (p, m), each over columns (m,) of n, one below the other; columns may be named twice, and are added.

    Of a loop within one robot what the base does to both sides cancels, and much else in a plane one. What is left of a row by
    rounding is no row at all: entries below :data:`_ROUNDED` of what they are sums of become zero.
    """
    values, columns, starts, at = [np.zeros(0)], [np.zeros(0, dtype=np.int64)], [np.zeros(1, dtype=np.int64)], 0
    for where, G in parts:
        p, m = G.shape
        values.append(G.ravel())
        columns.append(np.tile(where, p))
        starts.append(at + m * np.arange(1, p + 1))
        at += p * m
    indptr = np.concatenate(starts)
    out = sp.csr_matrix((np.concatenate(values), np.concatenate(columns), indptr), shape=(len(indptr) - 1, n))
    largest = np.maximum.reduceat(np.abs(np.append(out.data, 0.0)), indptr[:-1]) if len(indptr) > 1 else np.zeros(0)
    out.sum_duplicates()
    out.data[np.abs(out.data) <= np.repeat(_ROUNDED * largest, np.diff(out.indptr))] = 0.0
    return out

"""Sparse matrices of scipy made without its questions, which take longer than the product with a small one."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from contact import jacobian_kernels as kernels

_ROWS, _COLUMNS = sp.csr_matrix((1, 1)), sp.csc_matrix((1, 1))


def compressed_rows(indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, n: int) -> sp.csr_matrix:
    """Matrix (len(indptr) - 1, n) of these arrays, which it keeps.

    Nothing is asked: indices are int32 as scipy would choose them, in order in each row, each once.
    """
    out = object.__new__(sp.csr_matrix)
    out.__dict__.update(_ROWS.__dict__)
    out.indptr, out.indices, out.data, out._shape = indptr, indices, data, (len(indptr) - 1, n)
    return out


def compressed_columns(indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, n: int) -> sp.csc_matrix:
    """Matrix (n, len(indptr) - 1) of these arrays, which it keeps; see :func:`compressed_rows`."""
    out = object.__new__(sp.csc_matrix)
    out.__dict__.update(_COLUMNS.__dict__)
    out.indptr, out.indices, out.data, out._shape = indptr, indices, data, (n, len(indptr) - 1)
    return out


def times_transposed(J: sp.csr_matrix, x: np.ndarray) -> np.ndarray:
    """J^T x, (columns,), of a vector (rows,)."""
    out = np.empty(J.shape[1])
    kernels.scatter(J.indptr, J.indices, J.data, x, out)
    return out


def rows_of_contacts(J: sp.csr_matrix, chosen: np.ndarray) -> sp.csr_matrix:
    """Rows of some contacts, (nc,) bool, of a Jacobian with three rows a contact."""
    indptr = np.empty(3 * int(np.count_nonzero(chosen)) + 1, dtype=J.indptr.dtype)
    indices, data = np.empty_like(J.indices), np.empty_like(J.data)
    n = kernels.pick_contacts(J.indptr, J.indices, J.data, chosen, indptr, indices, data)
    return compressed_rows(indptr, indices[:n], data[:n], J.shape[1])

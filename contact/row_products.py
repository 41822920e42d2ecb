"""Products of a contact Jacobian, in compressed rows, with vectors.

They sum in the order of scipy's, so the results are the same to the last bit; but what scipy asks before each product takes it
several times as long as the product of a small Jacobian.
"""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True)
def gather(indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, v: np.ndarray, out: np.ndarray) -> None:
    """Fill out = J v, one entry a row of J."""
    for i in range(out.shape[0]):
        total = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            total += data[k] * v[indices[k]]
        out[i] = total


@njit(cache=True)
def scatter(indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, lam: np.ndarray, out: np.ndarray) -> None:
    """Fill out = J^T lam, lam with one entry a row of J."""
    out[:] = 0.0
    for i in range(lam.shape[0]):
        for k in range(indptr[i], indptr[i + 1]):
            out[indices[k]] += data[k] * lam[i]

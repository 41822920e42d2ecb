"""Motions of bodies as a whole, exact beside factors of single precision.

Rounding of factors shows most in the smoothest motions, those that cost least force: bodies would then balance to the tolerance
of the solver only. A correction in these motions alone leaves nothing there, for the price of a product with few columns.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.linalg as sl
import scipy.sparse as sp

from contact.compiled import njit
from contact.problem import Group, group_rows

#: Most motions that are corrected: with more, factors of double precision are cheaper.
_MOST = 48


def motions_of(groups: Sequence[Group]) -> np.ndarray:
    """Motions of all groups, (k, 3): first row, row after the last, rows from one point to the next; none if they are too many.

    Groups of points have their three translations, others every row.
    """
    found: list[tuple[int, int, int]] = []
    for start, stop, stride in zip(*group_rows(tuple(groups)), strict=True):
        if stride:
            found += [(start + c, stop, stride) for c in range(3)]
        else:
            found += [(row, row + 1, 1) for row in range(start, stop)]
        if len(found) > _MOST:
            return np.zeros((0, 3), dtype=np.int64)
    return np.array(found, dtype=np.int64).reshape(-1, 3)


class SmoothMotions:
    """Correction of A^-1 b in the span of T, the motions of bodies as a whole: T^T (b - A x) becomes zero to rounding.

    Parameters
    ----------
    A : scipy.sparse.csc_matrix, (n, n)
        Symmetric. Rows that stand alone in it (prescribed ones) take part in no motion. Where it is not positive definite in
        these motions nothing is corrected.
    motions : ndarray of int, (k, 3)
        What :func:`motions_of` gives.
    """

    def __init__(self, A: sp.csc_matrix, motions: np.ndarray) -> None:
        n, k = A.shape[0], len(motions)
        self._motion, self._reach = np.full(n, -1, dtype=np.int32), np.empty((k, 2), dtype=np.int64)
        # pages of zeros that nothing is written to take no memory
        self._image, stiffness = np.zeros((k, n)), np.zeros((k, k))
        self._lacking, self._factor = np.empty(k), stiffness
        if not k:
            return
        fill_motions(A.indptr, A.indices, A.data, motions, self._motion, self._image, self._reach, stiffness)
        self._factor, bad = sl.lapack.dpotrf(stiffness, lower=1)
        if bad:
            self._motion[:] = -1

    def correct(self, x: np.ndarray, b: np.ndarray) -> None:
        """Correct x, (n,), by what b - A x, (n,), says of the motions."""
        if len(self._lacking):
            lack_of_motions(self._motion, self._image, self._reach, x, b, self._lacking)
            add_motions(self._motion, sl.lapack.dpotrs(self._factor, self._lacking, lower=1)[0], x)


@njit(cache=True, _nrt=False)
def fill_motions(
    indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, motions: np.ndarray,
    motion: np.ndarray, image: np.ndarray, reach: np.ndarray, stiffness: np.ndarray,
) -> None:  # fmt: skip
    """Fill what :class:`SmoothMotions` needs of A, in compressed columns, and its motions, (k, 3).

    Filled are the motion that each row takes part in, (n,), where it is in any; the ``image`` A T, transposed, (k, n), and
    T^T A T, (k, k), which are zero; and the rows, half-open, on which each motion acts, (k, 2). A motion of no rows has a
    stiffness of 1.
    """
    for m in range(motions.shape[0]):
        first, stop, stride, row = motions[m, 0], motions[m, 1], motions[m, 2], image[m]
        low, high, taken = first, first, False
        for j in range(first, stop, stride):
            if stop - first > stride and _stands_alone(indptr, indices, data, j):
                continue
            motion[j], taken = m, True
            for p in range(np.uint64(indptr[j]), np.uint64(indptr[j + 1])):  # unsigned: see jacobian_kernels
                i = np.uint64(indices[p])
                row[i] += data[p]
                low, high = min(low, np.int64(i)), max(high, np.int64(i) + 1)
        reach[m, 0], reach[m, 1] = low, high
        if not taken:
            stiffness[m, m] = 1.0
    for m in range(motions.shape[0]):
        for j in range(reach[m, 0], reach[m, 1]):
            if motion[j] >= 0:
                stiffness[m, motion[j]] += image[m, j]


@njit(cache=True, inner=True)
def _stands_alone(indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, j: int) -> bool:
    """Whether a column of A has no entry but on the diagonal."""
    for p in range(indptr[j], indptr[j + 1]):
        if indices[p] != j and data[p] != 0.0:
            return False
    return True


@njit(cache=True, _nrt=False)
def lack_of_motions(
    motion: np.ndarray, image: np.ndarray, reach: np.ndarray, x: np.ndarray, b: np.ndarray, lacking: np.ndarray
) -> None:
    """Fill T^T (b - A x), (k,); arguments as :func:`fill_motions` fills them."""
    for m in range(lacking.shape[0]):
        total = 0.0
        for i in range(reach[m, 0], reach[m, 1]):
            total += image[m, i] * x[i]
        lacking[m] = -total
    for i in range(x.shape[0]):
        if motion[i] >= 0:
            lacking[motion[i]] += b[i]


@njit(cache=True, _nrt=False)
def add_motions(motion: np.ndarray, share: np.ndarray, x: np.ndarray) -> None:
    """Add T share to x, (n,), share (k,)."""
    for i in range(x.shape[0]):
        if motion[i] >= 0:
            x[i] += share[motion[i]]

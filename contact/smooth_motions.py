"""Motions of bodies as a whole, exact beside factors of single precision.

Rounding of factors shows most in the smoothest motions, those that cost least force: bodies would then balance to the tolerance
of the solver only. A correction in these motions alone leaves nothing there, for the price of a product with few columns.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.linalg as sl
import scipy.sparse as sp

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
        Symmetric positive definite. Rows that stand alone in it (prescribed ones) take part in no motion.
    motions : ndarray of int, (k, 3)
        What :func:`motions_of` gives.
    """

    def __init__(self, A: sp.csc_matrix, motions: np.ndarray) -> None:
        n = A.shape[0]
        columns = np.repeat(np.arange(n), np.diff(A.indptr))
        joined = np.bincount(A.indices[(A.data != 0.0) & (A.indices != columns)], minlength=n) > 0
        rows = [np.arange(first, stop, stride) for first, stop, stride in motions]
        kept = [own if len(own) == 1 else own[joined[own]] for own in rows]
        kept = [own for own in kept if len(own)]
        places = np.concatenate([np.zeros(0, dtype=np.int64), *kept])
        motion = np.repeat(np.arange(len(kept)), [len(own) for own in kept])
        self._T = sp.csr_matrix((np.ones(len(places)), (places, motion)), shape=(n, len(kept)))
        self._back = self._T.T.tocsr()
        self._AT = (A @ self._T).T.tocsr()
        self._factor = sl.cho_factor((self._AT @ self._T).toarray(), lower=True) if len(kept) else None

    def correct(self, x: np.ndarray, b: np.ndarray) -> None:
        """Correct x, (n,), by what b - A x, (n,), says of the motions."""
        if self._factor is not None:
            x += self._T @ sl.cho_solve(self._factor, self._back @ b - self._AT @ x, check_finite=False)

"""Whether A is positive definite, which Newton systems do not tell: what contacts hold may make those so where A is not."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from contact.errors import NotPositiveError
from contact.linear import Backend, DenseCholesky, Pardiso, make_factorization, same_pattern
from contact.sparse_lu import PardisoCholesky

#: Matrices of at most so many rows are factorized densely.
_DENSE_ROWS = 150
#: Part of the diagonal that single precision is not shown: more than its factors err by, so that what has factors without it is
#: positive definite (with nothing left out, 7 % of matrices whose least eigenvalue was -1e-11 to -1e-9 had factors).
_LEFT_OUT = 1e-5


class Definite:
    """Tells whether matrices are positive definite, by Cholesky's factors; their order is kept while the pattern stays.

    Factors in single precision are asked first, since they take half the time and memory: where a matrix has them with a part of
    its diagonal left out that is larger than their rounding, it is positive definite. Where they break down, those in double
    precision decide.

    Parameters
    ----------
    backend, threads
        See ``contact.linear.make_factorization``.
    """

    def __init__(self, backend: Backend = "auto", threads: int = 1) -> None:
        self._sparse, self._dense = make_factorization(backend, threads), DenseCholesky()
        self._single = PardisoCholesky(threads) if isinstance(self._sparse, Pardiso) else None
        self._pattern: tuple[np.ndarray, np.ndarray] | None = None
        self._diagonal = np.zeros(0, dtype=np.int64)

    def says(self, A: sp.csc_matrix) -> bool:
        """Whether a symmetric A, (n, n), with a full diagonal is positive definite."""
        n = A.shape[0]
        if n == 0 or (n > _DENSE_ROWS and self.says_roughly(A)):
            return True
        try:
            (self._dense if n <= _DENSE_ROWS else self._sparse).factorize(A, np.zeros(0, dtype=np.int64))
        except NotPositiveError:
            return False
        return True

    def says_roughly(self, A: sp.csc_matrix) -> bool:
        """Whether factors in single precision say so; not where it hardly is, and never without MKL."""
        if self._single is None:
            return False
        if not same_pattern(self._pattern, A):
            self._pattern = A.indptr, A.indices
            self._single.analyse(A.indptr, A.indices)
            self._diagonal = np.flatnonzero(A.indices == np.repeat(np.arange(A.shape[0]), np.diff(A.indptr)))
        less = A.data.copy()
        less[self._diagonal] *= 1.0 - _LEFT_OUT
        return self._single.factorize(less)

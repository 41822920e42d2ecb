"""Whether A is positive definite, which Newton systems do not tell: what contacts hold may make those so where A is not."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from contact.errors import NotPositiveError
from contact.linear import Backend, DenseCholesky, Pardiso, make_factorization, same_pattern
from contact.sparse_lu import PardisoCholesky

#: Matrices of at most so many rows are factorized densely.
_DENSE_ROWS = 150


class Definite:
    """Tells whether matrices are positive definite, by Cholesky's factors; their order is kept while the pattern stays.

    Factors in single precision are asked first, since they take half the time and memory: those of a matrix that is not positive
    definite by more than rounding break down. Where they do, those in double precision decide.

    Parameters
    ----------
    backend, threads
        See ``contact.linear.make_factorization``.
    """

    def __init__(self, backend: Backend = "auto", threads: int = 1) -> None:
        self._sparse, self._dense = make_factorization(backend, threads), DenseCholesky()
        self._single = PardisoCholesky(threads) if isinstance(self._sparse, Pardiso) else None
        self._pattern: tuple[np.ndarray, np.ndarray] | None = None

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
        """Whether factors in single precision say so; never without MKL."""
        if self._single is None:
            return False
        if not same_pattern(self._pattern, A):
            self._pattern = A.indptr, A.indices
            self._single.analyse(A.indptr, A.indices)
        return self._single.factorize(A.data)

"""Direct solution of sparse systems whose entries change and whose symmetric pattern stays: MKL Pardiso, or SuperLU."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import splu

from contact.errors import ContactError
from contact.linear import Backend, make_factorization
from contact.mkl import POSITIVE_DEFINITE, SOLVE, STRUCTURALLY_SYMMETRIC, MklFactors


class SparseFactors(Protocol):
    """A factorized matrix with a symmetric pattern; its entries need not be symmetric.

    Attributes
    ----------
    name : str
        Name of the library that does the work.
    """

    name: str

    def analyse(self, indptr: np.ndarray, indices: np.ndarray) -> None:
        """Take a pattern in compressed rows, (n + 1,) and (nnz,), int32, sorted within rows, with every diagonal entry."""
        ...

    def factorize(self, values: np.ndarray) -> bool:
        """Factorize the entries (nnz,) on the last pattern; False where that broke down."""
        ...

    def solve(self, b: np.ndarray) -> np.ndarray:
        """Return the solution, (n,), for a right-hand side (n,)."""
        ...


class PardisoLu:
    """MKL Pardiso for real structurally symmetric matrices.

    Parameters
    ----------
    threads : int
        Threads of MKL. Default 1.
    """

    name = "pardiso"
    _kind = STRUCTURALLY_SYMMETRIC

    def __init__(self, threads: int = 1) -> None:
        self._factors = MklFactors(self._kind, threads)

    def analyse(self, indptr: np.ndarray, indices: np.ndarray) -> None:
        """Take a pattern in compressed rows and order it."""
        self._factors.release()
        self._n = len(indptr) - 1
        self._indptr, self._indices = indptr.astype(np.int32), indices.astype(np.int32)
        self._permutation = np.zeros(self._n, dtype=np.int32)
        self._factors.options[:] = 0
        self._set_options(self._factors.options)
        self._take(np.zeros(len(indices)))
        error = self._factors.analyse()
        if error:
            raise ContactError(f"MKL Pardiso stopped with its error {error} while it ordered a matrix; use backend 'superlu'.")

    def _take(self, values: np.ndarray) -> None:
        self._factors.take(values, self._indptr, self._indices, self._permutation)

    def _set_options(self, options: np.ndarray) -> None:
        # own options; nested dissection; pivots below 1e-13 of the matrix are replaced; indices from 0
        options[[0, 1, 9, 34]] = 1, 2, 13, 1

    def factorize(self, values: np.ndarray) -> bool:
        """Factorize the entries on the last pattern; False where that broke down."""
        self._take(np.ascontiguousarray(values, dtype=np.float64))
        return self._factors.factorize() == 0

    def solve(self, b: np.ndarray) -> np.ndarray:
        """Return the solution for a right-hand side (n,)."""
        x = np.empty(self._n)
        self._factors.call(SOLVE, np.ascontiguousarray(b, dtype=np.float64), x)
        return x


class PardisoCholesky(PardisoLu):
    """MKL Pardiso for symmetric positive definite matrices, whose diagonal is scaled to one, in single precision.

    Factors take half the memory, and a substitution two thirds of the time; answers are good to the rounding of single precision
    times the condition of the scaled matrix.
    """

    _kind = POSITIVE_DEFINITE

    def analyse(self, indptr: np.ndarray, indices: np.ndarray) -> None:
        """Take a symmetric pattern in compressed rows and order it."""
        rows = np.repeat(np.arange(len(indptr) - 1, dtype=np.int32), np.diff(indptr))
        self._upper = np.flatnonzero(indices >= rows)
        self._diagonal = np.flatnonzero(indices == rows)
        self._row, columns = rows[self._upper], indices[self._upper]
        counts = np.bincount(self._row, minlength=len(indptr) - 1)
        super().analyse(np.concatenate([[0], np.cumsum(counts)]), columns)

    def _set_options(self, options: np.ndarray) -> None:
        # own options; nested dissection; single precision; indices from 0
        options[[0, 1, 27, 34]] = 1, 2, 1, 1

    def factorize(self, values: np.ndarray) -> bool:
        """Factorize the entries on the last pattern; False where the matrix is not positive definite."""
        diagonal = values[self._diagonal]
        if not (diagonal > 0.0).all():
            return False
        self._scale = 1.0 / np.sqrt(diagonal)
        scaled = values[self._upper] * self._scale[self._row] * self._scale[self._indices]
        self._take(scaled.astype(np.float32))
        return self._factors.factorize() == 0

    def solve(self, b: np.ndarray) -> np.ndarray:
        """Return the solution for a right-hand side (n,), roughly."""
        x = np.empty(self._n, dtype=np.float32)
        self._factors.call(SOLVE, (self._scale * b).astype(np.float32), x)
        return np.asarray(self._scale * x)


class SuperLu:
    """SuperLU of scipy; it orders anew in each factorization."""

    name = "superlu"

    def analyse(self, indptr: np.ndarray, indices: np.ndarray) -> None:
        """Take a pattern in compressed rows."""
        self._pattern = indptr, indices

    def factorize(self, values: np.ndarray) -> bool:
        """Factorize the entries on the last pattern; False where that broke down."""
        indptr, indices = self._pattern
        n = len(indptr) - 1
        try:
            # compressed rows of a matrix are compressed columns of its transpose
            self._lu = splu(sp.csc_matrix((values, indices, indptr), shape=(n, n)), permc_spec="MMD_AT_PLUS_A")
        except RuntimeError:
            return False
        return True

    def solve(self, b: np.ndarray) -> np.ndarray:
        """Return the solution for a right-hand side (n,)."""
        return np.asarray(self._lu.solve(np.asarray(b, dtype=np.float64), trans="T"))


def make_sparse_factors(backend: Backend = "auto", threads: int = 1) -> SparseFactors:
    """Create them; ``backend`` as for :func:`contact.linear.make_factorization`, whose errors these are."""
    if make_factorization(backend, threads).name == "pardiso":
        return PardisoLu(threads)
    return SuperLu()

"""Direct solution of sparse systems whose entries change and whose symmetric pattern stays: MKL Pardiso, or SuperLU."""

from __future__ import annotations

import ctypes
import sys
from typing import Protocol

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import splu

from contact.errors import ContactError
from contact.linear import Backend, load_mkl, make_factorization

#: Phases and matrix type of MKL Pardiso.
_ANALYSE, _FACTORIZE, _SOLVE, _RELEASE = 11, 22, 33, -1
_STRUCTURALLY_SYMMETRIC = 1


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

    def __init__(self, threads: int = 1) -> None:
        self._mkl = load_mkl()
        self._pardiso = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 16)(("pardiso", self._mkl))
        self._threads = threads
        self._handle = np.zeros(64, dtype=np.int64)
        self._options = np.zeros(64, dtype=np.int32)
        #: its scalar arguments: one, type of the matrix, phase, size, columns, silence, error
        self._numbers = np.array([1, _STRUCTURALLY_SYMMETRIC, 0, 0, 1, 0, 0], dtype=np.int32)
        self._analysed = False

    def __del__(self) -> None:
        if getattr(self, "_analysed", False) and not sys.is_finalizing():
            self._call(_RELEASE, np.zeros(1), np.zeros(1))

    def _call(self, phase: int, b: np.ndarray, x: np.ndarray) -> int:
        """One call of MKL's pardiso; returns its error."""
        numbers = self._numbers
        numbers[2:] = phase, self._n, 1, 0, 0
        one, kind, asked, size, width, silent, status = (numbers.ctypes.data + 4 * k for k in range(len(numbers)))
        matrix = (array.ctypes.data for array in (self._values, self._indptr, self._indices, self._permutation))
        before = self._mkl.MKL_Set_Num_Threads_Local(self._threads)
        self._pardiso(
            self._handle.ctypes.data, one, one, kind, asked, size, *matrix, width, self._options.ctypes.data, silent,
            b.ctypes.data, x.ctypes.data, status,
        )  # fmt: skip
        self._mkl.MKL_Set_Num_Threads_Local(before)
        return int(numbers[-1])

    def analyse(self, indptr: np.ndarray, indices: np.ndarray) -> None:
        """Take a pattern in compressed rows and order it."""
        if self._analysed:
            self._call(_RELEASE, np.zeros(1), np.zeros(1))
            self._handle[:] = 0
            self._analysed = False
        self._n = len(indptr) - 1
        self._indptr, self._indices = indptr.astype(np.int32), indices.astype(np.int32)
        self._values, self._permutation = np.zeros(len(indices)), np.zeros(self._n, dtype=np.int32)
        self._options[:] = 0
        # own options; nested dissection; pivots below 1e-13 of the matrix are replaced; indices from 0
        self._options[[0, 1, 9, 34]] = 1, 2, 13, 1
        error = self._call(_ANALYSE, np.zeros(1), np.zeros(1))
        if error:
            raise ContactError(f"MKL Pardiso stopped with its error {error} while it ordered a matrix; use backend 'superlu'.")
        self._analysed = True

    def factorize(self, values: np.ndarray) -> bool:
        """Factorize the entries on the last pattern; False where that broke down."""
        self._values = np.ascontiguousarray(values, dtype=np.float64)
        return self._call(_FACTORIZE, np.zeros(1), np.zeros(1)) == 0

    def solve(self, b: np.ndarray) -> np.ndarray:
        """Return the solution for a right-hand side (n,)."""
        x = np.empty(self._n)
        self._call(_SOLVE, np.ascontiguousarray(b, dtype=np.float64), x)
        return x


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

"""Direct solution of A x = b behind one small face: MKL Pardiso where it runs, SuperLU of scipy elsewhere.

Contact forces act on few rows of A. A factorization is therefore made with those rows, the *patch*, kept to the end: what is left
there is the Schur complement S of the patch, dense and small, and its inverse ``compliance`` = (A^-1) restricted to the patch is
all that a contact solver needs of A. One factorization then gives the whole Delassus operator ``J A^-1 J^T`` for about the price
of factorizing (measured on the gripped ball: 27 ms, where solving for each column takes 630 ms).
"""

from __future__ import annotations

import importlib.util
import math
from typing import Literal, Protocol

import numpy as np
import scipy.linalg as sl
import scipy.sparse as sp
from scipy.sparse.linalg import splu

from contact import delassus_kernels as kernels
from contact.errors import ContactError, NotPositiveError
from contact.mkl import BACKWARD, FORWARD, INDEFINITE, POSITIVE_DEFINITE, SOLVE, MklFactors

Backend = Literal["auto", "pardiso", "superlu"]

#: MKL's error where a pivot is not positive.
_NOT_POSITIVE = -4
#: Pivots of quasi-definite matrices below 10 to the minus this are perturbed; scaled ones have none.
_PERTURBATION = 13
NOT_POSITIVE = "A is not positive definite (its factorization broke down); check materials, time step and units."


class Factorization(Protocol):
    """A factorized symmetric positive definite matrix whose patch is kept to the end.

    Attributes
    ----------
    name : str
        Name of the library that does the work.
    patch : ndarray of int, (m,)
        Rows of A that forces may act on, sorted.
    compliance : ndarray, (m, m)
        (A^-1) restricted to the patch.
    """

    name: str
    patch: np.ndarray
    compliance: np.ndarray

    def factorize(self, A: sp.csc_matrix, patch: np.ndarray) -> None:
        """Factorize A, (n, n), keeping the patch. ContactError when A is not positive definite."""
        ...

    def solve(self, b: np.ndarray) -> np.ndarray:
        """Return A^-1 b for b of shape (n,) or (n, k)."""
        ...

    def begin(self, b: np.ndarray) -> np.ndarray:
        """Forward-substitute b, (n,), and return (A^-1 b) on the patch, (m,)."""
        ...

    def finish(self, force: np.ndarray) -> np.ndarray:
        """Return A^-1 (b + E force), (n,), with b of the last ``begin`` and ``force`` (m,) on the patch."""
        ...


def same_pattern(pattern: tuple[np.ndarray, np.ndarray] | None, A: sp.csc_matrix) -> bool:
    """Whether A has its entries where a pattern (indptr, indices) has them; None is no pattern.

    The arrays are compared, since scipy makes new views of them with each matrix; the same arrays cost nothing.
    """
    if pattern is None:
        return False
    pairs = zip(pattern, (A.indptr, A.indices), strict=True)
    return all(one is other or np.array_equal(one, other) for one, other in pairs)


def _inverse(S: np.ndarray) -> np.ndarray:
    """Inverse of a symmetric positive definite matrix, of which the lower triangle (Fortran order) is read."""
    if not S.size:
        return np.zeros_like(S, order="C")
    factor, bad = sl.lapack.dpotrf(S, lower=1, overwrite_a=1)
    if not bad:
        inverse, bad = sl.lapack.dpotri(factor, lower=1, overwrite_c=1)
    if bad:
        raise NotPositiveError(NOT_POSITIVE)
    # the transpose of the lower triangle of a Fortran matrix is the upper one in C order
    upper = np.triu(inverse.T)
    return np.ascontiguousarray(upper + np.triu(upper, 1).T)


class Pardiso:
    """MKL Pardiso with a Schur complement on the patch.

    Parameters
    ----------
    threads : int
        Threads of MKL. Default 1.
    """

    name = "pardiso"
    _kind = POSITIVE_DEFINITE
    #: type of the numbers of the factors
    _type: type[np.floating] = np.float64

    def __init__(self, threads: int = 1) -> None:
        self._factors = MklFactors(self._kind, threads)
        self._pattern: tuple[np.ndarray, np.ndarray] | None = None
        self.patch = np.zeros(0, dtype=np.int64)

    def _unjoined_pivots(self) -> np.ndarray | None:
        """Entries of ``_values`` on the diagonal outside the patch where no entry joins two rows there, else None."""
        outside = self._marks == 0
        rows = np.repeat(np.arange(self._n, dtype=np.int32), np.diff(self._indptr))
        entries = np.flatnonzero(outside[rows] & outside[self._indices])
        return entries if np.array_equal(rows[entries], self._indices[entries]) else None

    def _substitute(self, phase: int, b: np.ndarray) -> np.ndarray:
        """Return what a phase makes of b, (n,) or (n, k); as float32 b is of about 1, so that small numbers keep their digits."""
        columns = 1 if b.ndim == 1 else b.shape[1]
        if self._type is np.float64:
            x = np.empty_like(b, order="F")
            _check(self._factors.call(phase, b, x, columns))
            return x
        size = 2.0 ** math.frexp(float(np.abs(b).max(initial=0.0)))[1]
        narrow = np.asfortranarray(b / size, dtype=np.float32)
        x = np.empty_like(narrow, order="F")
        _check(self._factors.call(phase, narrow, x, columns))
        return size * x.astype(np.float64)

    def factorize(self, A: sp.csc_matrix, patch: np.ndarray, *, single: bool = False) -> None:
        """Factorize A, (n, n), keeping the patch.

        ContactError when A is not positive definite, its rows are not sorted within columns, or the patch is all of it.
        ``single`` keeps factors as float32: half the memory and the time, for those who measure what an answer lacks and go on.
        """
        if len(patch) == A.shape[0]:
            # MKL then ends the process at times, where A has no fill
            raise ContactError(
                f"the patch holds all {len(patch)} rows of A; MKL Pardiso needs one outside it, use backend 'superlu'."
            )
        same, kind = same_pattern(self._pattern, A), np.float32 if single else np.float64
        analyse = not same or kind is not self._type or not np.array_equal(patch, self.patch)
        if analyse and self._pattern is not None:
            self._factors.release()
            self._pattern = None
        self._type = kind
        if not same:
            self._take_pattern(A)
        if analyse:
            self.patch = patch.astype(np.int64)
            self._marks = np.zeros(self._n, dtype=np.int32)
            self._marks[patch] = 1
        self._values = A.data[self._lower].astype(kind, copy=False)
        self._factors.take(self._values, self._indptr, self._indices, self._marks)
        m = len(patch)
        if analyse:
            self._set_options(m > 0)
            _check(self._factors.analyse())
            self._pattern = (A.indptr, A.indices)
        if self._pivots is not None and not (self._values[self._pivots] > 0).all():
            raise NotPositiveError(NOT_POSITIVE)
        S = np.zeros((m, m), kind, order="F")
        _check(self._factors.factorize(S if m else None))
        self.compliance = _inverse(S.astype(np.float64, order="F", copy=False))

    def _take_pattern(self, A: sp.csc_matrix) -> None:
        """Find the lower triangle by columns, which is the upper one by rows."""
        if not A.has_sorted_indices:  # MKL then reads what is not there
            raise ContactError("the rows of A are not sorted within its columns; call A.sort_indices(), as make_problem does.")
        self._n = A.shape[0]
        columns = np.repeat(np.arange(self._n, dtype=np.int32), np.diff(A.indptr))
        self._lower = np.flatnonzero(A.indices >= columns)
        self._indices = A.indices[self._lower].astype(np.int32)
        counts = np.bincount(columns[self._lower], minlength=self._n)
        self._indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)

    def _set_options(self, has_patch: bool) -> None:
        """Set what MKL is told of a matrix that it has not seen yet."""
        options = self._factors.options
        options[:] = 0
        # own options; nested dissection; numbers of single precision; no permutation by matching; indices from 0
        options[[0, 1, 27, 34]] = 1, 2, self._type is np.float32, 1
        if self._kind == INDEFINITE:
            options[9] = _PERTURBATION
        self._pivots = self._unjoined_pivots()
        if has_patch:
            # the Schur complement is returned, the factors are kept for the solves
            options[35] = 2
            if self._pivots is not None:
                # MKL's default then reads memory that it never set, and at times ends the process; its two-level factorization
                # does not, but takes negative pivots without a word
                options[23] = 1

    def begin(self, b: np.ndarray) -> np.ndarray:
        """Forward-substitute b, (n,), and return (A^-1 b) on the patch, (m,)."""
        b = np.array(b, dtype=np.float64)
        if not len(self.patch):
            self._forward = b
            return np.zeros(0)
        self._forward = self._substitute(FORWARD, b)
        return np.asarray(self.compliance @ self._forward[self.patch])

    def finish(self, force: np.ndarray) -> np.ndarray:
        """Return A^-1 (b + E force), (n,), with b of the last ``begin`` and ``force`` (m,) on the patch."""
        if not len(self.patch):
            return self.solve(self._forward)
        middle = self._forward.copy()
        middle[self.patch] = self.compliance @ (self._forward[self.patch] + force)
        return self._substitute(BACKWARD, middle)

    def solve(self, b: np.ndarray) -> np.ndarray:
        """Return A^-1 b for b of shape (n,) or (n, k)."""
        return self._substitute(SOLVE, np.asfortranarray(b, dtype=np.float64))


def _check(error: int) -> None:
    """Raise what an error of MKL means; 0 is none."""
    if error == _NOT_POSITIVE:
        raise NotPositiveError(NOT_POSITIVE)
    if error:
        raise ContactError(f"MKL Pardiso stopped with its error {error}; use backend 'superlu'.")


class QuasiDefinite(Protocol):
    """A factorized symmetric matrix [A B^T; B -C] with A and C positive definite."""

    name: str

    def factorize(self, K: sp.csc_matrix, positive: int) -> None:
        """Factorize K, (n, n), whose first ``positive`` rows are those of A.

        ContactError when it has not as many positive and n - positive negative eigenvalues.
        """
        ...

    def solve(self, b: np.ndarray) -> np.ndarray:
        """Return K^-1 b for b of shape (n,)."""
        ...


class PardisoQuasiDefinite(Pardiso):
    """MKL Pardiso for quasi-definite matrices, whose pivots need no order: those on the diagonal will do."""

    _kind = INDEFINITE

    def factorize(self, K: sp.csc_matrix, positive: int) -> None:  # type: ignore[override]
        """Factorize K and count the signs of its pivots."""
        super().factorize(K, np.zeros(0, dtype=np.int64))
        found = (int(self._factors.options[21]), int(self._factors.options[22]))
        if found != (positive, self._n - positive):
            raise ContactError(_wrong_signs(*found, positive, self._n))

    def _unjoined_pivots(self) -> np.ndarray | None:
        """Return None: negative pivots are right here."""
        return None


class SuperLUQuasiDefinite:
    """SuperLU of scipy for quasi-definite matrices, with pivots on the diagonal."""

    name = "superlu"

    def factorize(self, K: sp.csc_matrix, positive: int) -> None:
        """Factorize K and count the signs of its pivots."""
        try:
            self._lu = splu(K, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
        except RuntimeError as error:
            raise NotPositiveError(NOT_POSITIVE) from error
        pivots = self._lu.U.diagonal()
        found = int((pivots > 0).sum()), int((pivots < 0).sum())
        if found != (positive, K.shape[0] - positive) or not np.array_equal(self._lu.perm_r, self._lu.perm_c):
            raise ContactError(_wrong_signs(*found, positive, K.shape[0]))

    def solve(self, b: np.ndarray) -> np.ndarray:
        """Return K^-1 b for b of shape (n,)."""
        return np.asarray(self._lu.solve(b))


def _wrong_signs(above: int, below: int, positive: int, n: int) -> str:
    return f"{NOT_POSITIVE[:-1]} (pivots: {above} positive, {below} negative; {positive} and {n - positive} expected)."


def make_quasi_definite(backend: Backend = "auto", threads: int = 1) -> QuasiDefinite:
    """Create a factorization of quasi-definite matrices; arguments and errors are those of :func:`make_factorization`."""
    if make_factorization(backend, threads).name == "superlu":
        return SuperLUQuasiDefinite()
    return PardisoQuasiDefinite(threads)


class SuperLU:
    """SuperLU of scipy: no Schur complement, so the compliance costs one solve for each row of the patch."""

    name = "superlu"

    def factorize(self, A: sp.csc_matrix, patch: np.ndarray) -> None:
        """Factorize A, (n, n), and find the compliance of the patch, (m,). NotPositiveError when A is not positive definite."""
        try:
            self._lu = splu(
                A.astype(np.float64, copy=False),
                permc_spec="MMD_AT_PLUS_A",
                diag_pivot_thresh=0.0,
                options={"SymmetricMode": True},
            )
        except RuntimeError as error:
            raise NotPositiveError(NOT_POSITIVE) from error
        if A.shape[0] and (self._lu.U.diagonal().min() <= 0 or not np.array_equal(self._lu.perm_r, self._lu.perm_c)):
            raise NotPositiveError(NOT_POSITIVE)
        self.patch = patch.astype(np.int64)
        unit = np.zeros((A.shape[0], len(patch)))
        unit[patch, np.arange(len(patch))] = 1.0
        self.compliance = np.ascontiguousarray(self._lu.solve(unit)[patch]) if len(patch) else np.zeros((0, 0))
        self.compliance += self.compliance.T.copy()
        self.compliance *= 0.5

    def solve(self, b: np.ndarray) -> np.ndarray:
        """Return A^-1 b for b of shape (n,) or (n, k)."""
        return np.asarray(self._lu.solve(np.asarray(b, dtype=np.float64)))

    def begin(self, b: np.ndarray) -> np.ndarray:
        """Solve for b, (n,), and return the part on the patch, (m,)."""
        self._b = np.asarray(b, dtype=np.float64)
        return np.asarray(self._lu.solve(self._b)[self.patch])

    def finish(self, force: np.ndarray) -> np.ndarray:
        """Return A^-1 (b + E force), (n,), with b of the last ``begin`` and ``force`` (m,) on the patch."""
        b = self._b.copy()
        b[self.patch] += force
        return np.asarray(self._lu.solve(b))


class DenseCholesky:
    """LAPACK's Cholesky factors of a small matrix, without a search for an order; any patch, also all of it."""

    name = "lapack"

    def factorize(self, A: sp.csc_matrix, patch: np.ndarray) -> None:
        """Factorize A, (n, n). ContactError when A is not positive definite."""
        n, m = len(A.indptr) - 1, len(patch)
        transposed, unit, self.compliance = np.zeros((n, n)), np.zeros((m, n)), np.empty((m, m))
        kernels.fill_dense(A.indptr, A.indices, A.data, patch, transposed, unit)
        self._factor, bad = sl.lapack.dpotrf(transposed.T, lower=1, overwrite_a=1, clean=0)
        if bad:
            raise NotPositiveError(NOT_POSITIVE)
        self.patch, self._columns = patch, unit.T
        if m:
            sl.lapack.dpotrs(self._factor, self._columns, lower=1, overwrite_b=1)
        kernels.pick_symmetric(unit, patch, self.compliance)

    def solve(self, b: np.ndarray) -> np.ndarray:
        """Return A^-1 b for b of shape (n,) or (n, k)."""
        return np.asarray(sl.lapack.dpotrs(self._factor, b, lower=1)[0])

    def begin(self, b: np.ndarray) -> np.ndarray:
        """Solve for b, (n,), and return the part on the patch, (m,)."""
        self._free = self.solve(b)
        return np.asarray(self._free[self.patch])

    def finish(self, force: np.ndarray) -> np.ndarray:
        """Return A^-1 (b + E force), (n,), with b of the last ``begin`` and ``force`` (m,) on the patch."""
        return np.asarray(self._free + self._columns @ force)


def make_factorization(backend: Backend = "auto", threads: int = 1) -> Factorization:
    """Create a factorization.

    Parameters
    ----------
    backend : {"auto", "pardiso", "superlu"}
        ``"auto"`` takes Pardiso where pypardiso is installed and its MKL loads, else SuperLU.
    threads : int
        Threads of MKL.

    Raises
    ------
    ContactError
        Unknown name, or Pardiso asked for where it does not run.
    """
    if backend not in ("auto", "pardiso", "superlu"):
        raise ContactError(f"backend is {backend!r}; allowed are 'auto', 'pardiso' and 'superlu'.")
    if backend != "superlu":
        try:
            if importlib.util.find_spec("pypardiso") is None:
                raise ImportError("pypardiso is not installed")
            return Pardiso(threads)
        except (ImportError, OSError) as error:
            if backend == "pardiso":
                raise ContactError(
                    f"backend 'pardiso' does not run here ({error}); install pypardiso, or use 'superlu'."
                ) from error
    return SuperLU()

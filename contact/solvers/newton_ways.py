"""Ways to solve the systems of Newton steps on (v, lam): dense, banded along a chain, sparse."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np
import scipy.linalg as sl
import scipy.sparse as sp

from contact.jacobian_kernels import gather
from contact.linear import Backend
from contact.problem import ContactProblem
from contact.solvers import banded_kernels as banded, primal_kernels as kernels
from contact.solvers.krylov import gmres
from contact.sparse_lu import SparseFactors, make_sparse_factors

#: Matrices of at most so many rows, or with more than this share of entries, are solved densely.
_DENSE_ROWS, _DENSE_SHARE = 150, 0.6
#: Most steps of GMRES with older factors, and the part of what may be left that they leave, so that forces balance better.
_LAGGED_STEPS, _SHARPER = 16, 1e-2
#: Older factors are not tried where more contacts than so many have changed their state.
_FEW = 2


def columns_of(problem: ContactProblem) -> kernels.Columns:
    """Return J of a problem by contacts."""
    J, ptr = problem.J, np.empty(problem.n_contacts + 1, dtype=np.int64)
    kernels.count_columns(J.indptr, J.indices, problem.n, ptr)
    columns = kernels.Columns(ptr, np.empty(int(ptr[-1]), dtype=np.int32), np.empty((int(ptr[-1]), 3)))
    kernels.fill_columns(J.indptr, J.indices, J.data, problem.n, *columns)
    return columns


def pattern_of(problem: ContactProblem, columns: kernels.Columns) -> sp.csr_matrix:
    """Return the pattern of A + J^T J with its diagonal, (n, n), indices in order; J comes by contacts."""
    (ptr, col, _), n = columns, problem.n
    touched = sp.csr_matrix((np.ones(len(col), dtype=np.int32), col, ptr), shape=(len(ptr) - 1, n))
    own = sp.csr_matrix((np.ones(problem.A.nnz, dtype=np.int32), problem.A.indices, problem.A.indptr), shape=(n, n))
    pattern = sp.csr_matrix(own + touched.T @ touched + sp.identity(n, dtype=np.int32, format="csr"))
    pattern.sort_indices()
    return pattern


def _has_entries(problem: ContactProblem, columns: kernels.Columns, number: float) -> bool:
    """Whether the pattern has so many entries; it is made only where A and the contacts, each by itself, have as many."""
    most = problem.A.nnz + problem.n + int(np.square(np.diff(columns.ptr)).sum())
    return most >= number and pattern_of(problem, columns).nnz >= number


class Way(Protocol):
    """One way to solve (A + J^T gain J) x = r."""

    @property
    def name(self) -> str:
        """Name of the way, as it stands among the details of a solution."""
        ...

    def take(self, problem: ContactProblem, columns: kernels.Columns) -> bool:
        """Take a problem and its J by contacts; False where this way is not made for it."""
        ...

    def factorize(self, gain: np.ndarray) -> bool:
        """Factorize with gains (nc, 3, 3), N s/m; False where that broke down."""
        ...

    def solve(self, r: np.ndarray, left: float = 0.0) -> np.ndarray:
        """Return x, (n,), m/s, for r (n,), N, to about nine digits; NaN where that broke down.

        ``left``: what may be left of the residual in the norm ||r||^2 = sum r_i^2 / A_ii, where more than that.
        """
        ...


class DenseWay:
    """Dense LU, for few unknowns or matrices that are full anyway."""

    name = "dense"

    def take(self, problem: ContactProblem, columns: kernels.Columns) -> bool:
        """Take a problem of few rows, or one whose contacts fill the matrix."""
        n = problem.n
        if n > _DENSE_ROWS and not _has_entries(problem, columns, _DENSE_SHARE * n * n):
            return False
        self._A, self._columns = problem.A.toarray(order="F"), columns
        return True

    def factorize(self, gain: np.ndarray) -> bool:
        """Factorize A + J^T gain J, gain (nc, 3, 3), N s/m; False where a pivot is 0."""
        H = self._A.copy(order="F")
        kernels.add_contacts(self._columns, gain, H)
        self._factors, self._pivots, bad = sl.lapack.dgetrf(H, overwrite_a=1)
        return not bad

    def solve(self, r: np.ndarray, left: float = 0.0) -> np.ndarray:
        """Substitute."""
        return np.asarray(sl.lapack.dgetrs(self._factors, self._pivots, r)[0])


class BandedWay:
    """Block LU along chains of links; see ``contact.solvers.banded_kernels``."""

    name = "banded"

    def take(self, problem: ContactProblem, columns: kernels.Columns) -> bool:
        """Take rods alone, with every contact on one link."""
        n, nc = problem.n // 6, problem.n_contacts
        if not problem.groups or any(group.kind != "links" for group in problem.groups):
            return False
        self._diagonal, self._upper = np.empty((n, 6, 6)), np.empty((n, 6, 6))
        self._contacts = kernels.LinkBlocks(np.empty(nc, dtype=np.int64), np.empty((nc, 3, 6)))
        J, A, place = problem.J, problem.A, np.empty((n, 2, 6, 6), dtype=np.int64)
        if not banded.find_links(A.indptr, A.indices, place):
            return False
        banded.gather_links(place, A.data, self._diagonal, self._upper)
        if not banded.gather_contacts(J.indptr, J.indices, J.data, *self._contacts):
            return False
        self._work = np.empty((n, 6, 6)), np.empty((n, 6, 6))
        return True

    def factorize(self, gain: np.ndarray) -> bool:
        """Take the gains; the factors are made with each solve, which costs little beside them."""
        self._gain = gain
        return True

    def solve(self, r: np.ndarray, left: float = 0.0) -> np.ndarray:
        """Sweep along the chains; NaN where a block is singular."""
        x = r.reshape(-1, 6).copy()
        if not kernels.solve_links(self._contacts, (self._diagonal, self._upper), self._gain, self._work, x):
            x[:] = np.nan
        return x.ravel()


class SparseWay:
    """Sparse LU. Where next to no contact has changed its state since, a few steps of GMRES with the old factors do instead.

    The pattern is A united with |J|^T |J|, open contacts included; it is kept, with its ordering, for as long as the entries of
    the next problems that are factorized have their places in it, but for contacts that add nothing to them.

    Parameters
    ----------
    backend, threads
        See ``contact.sparse_lu.make_sparse_factors``.
    factors : SparseFactors, optional
        Others than those, for matrices of a special kind.
    lag : bool
        Whether old factors may do.
    """

    name = "sparse"

    def __init__(
        self, backend: Backend = "auto", threads: int = 1, factors: SparseFactors | None = None, *, lag: bool = True
    ) -> None:
        self.factors = factors or make_sparse_factors(backend, threads)
        self.linear_algebra, self._lag = self.factors.name, lag
        self.forget()

    def forget(self) -> None:
        """Drop pattern and factors."""
        self._indptr, self._indices = np.zeros(1, dtype=np.int32), np.zeros(0, dtype=np.int32)
        self._factorized: np.ndarray | None = None
        self._factored_gain = np.zeros((0, 3, 3))
        self.factorizations = self.krylov_steps = 0

    @property
    def has_factors(self) -> bool:
        """Whether there are factors, of the last matrix that was factorized."""
        return self._factorized is not None

    def memory(self) -> dict[str, np.ndarray]:
        """Return what gives pattern and factors again."""
        if self._factorized is None:
            return {}
        return {
            "indptr": self._indptr, "indices": self._indices, "factorized": self._factorized, "gain": self._factored_gain,
        }  # fmt: skip

    def recall(self, memory: Mapping[str, np.ndarray]) -> None:
        """Take it back, and make the factors again."""
        self.forget()
        if memory:
            self._set_pattern(memory["indptr"], memory["indices"])
            self._make_factors(memory["factorized"].copy(), memory["gain"].copy())

    def pattern(self) -> dict[str, np.ndarray]:
        """Return the pattern alone, where factors are made anew for each problem."""
        return {"indptr": self._indptr, "indices": self._indices}

    def recall_pattern(self, memory: Mapping[str, np.ndarray]) -> None:
        """Take it back."""
        self.forget()
        if memory and len(memory["indices"]):
            self._set_pattern(memory["indptr"], memory["indices"])

    def take(self, problem: ContactProblem, columns: kernels.Columns) -> bool:
        """Take any problem."""
        self._problem, self._columns, self._placed = problem, columns, False
        return True

    def _find_places(self) -> None:
        """Find the places of the entries of the problem, in a new pattern where the old one is not one of A."""
        self._places = np.empty(int(np.square(np.diff(self._columns.ptr)).sum()), dtype=np.int32)
        self._A_places = np.empty(self._problem.A.nnz, dtype=np.int32)
        self._lacking = np.empty(self._problem.n_contacts, dtype=np.bool_)
        if not self._place():
            self._renew(self._problem)
        self._placed = True

    def _place(self) -> bool:
        """Find the places of the entries of A and of the contacts that the pattern has; whether it has all of A."""
        A, pattern = self._problem.A, (self._indptr, self._indices)
        if len(self._indptr) != A.shape[0] + 1 or not kernels.entry_places(A.indptr, A.indices, *pattern, self._A_places):
            return False
        kernels.block_places(self._columns, *pattern, self._places, self._lacking)
        return True

    def _renew(self, problem: ContactProblem) -> None:
        """Make the pattern of this problem, which has places for all of its entries."""
        pattern = pattern_of(problem, self._columns)
        self._set_pattern(pattern.indptr, pattern.indices)
        self._factorized = None
        if not self._place() or self._lacking.any():
            raise AssertionError("the pattern of A and J lacks an entry of its own")

    def _set_pattern(self, indptr: np.ndarray, indices: np.ndarray) -> None:
        self._indptr, self._indices = indptr.astype(np.int32), indices.astype(np.int32)
        self.factors.analyse(self._indptr, self._indices)

    def _make_factors(self, values: np.ndarray, gain: np.ndarray) -> bool:
        self._fresh = self.factors.factorize(values)
        self._factorized, self._factored_gain = (values, gain) if self._fresh else (None, gain)
        self.factorizations += 1
        return self._fresh

    def left_out(self, needed: np.ndarray) -> np.ndarray:
        """Contacts, (nc,) bool, for which the pattern has no places: none, in a new one, where one that is ``needed`` is such."""
        if not self._placed:
            self._find_places()
        if (self._lacking & needed).any():
            self._renew(self._problem)
        return self._lacking

    def factorize(self, gain: np.ndarray) -> bool:
        """Take the gains; factorize where the factors before do not serve."""
        self.left_out(np.asarray(gain.any(axis=(1, 2))))
        self._gain, self._values = gain, np.empty(len(self._indices))
        kernels.assemble(self._problem.A.data, self._A_places, self._columns, self._places, gain, self._values)
        self._fresh = False
        return self._serves() or self._make_factors(self._values, gain.copy())

    def _serves(self) -> bool:
        """Whether no more than a few contacts have gains of another kind than the factors were made with."""
        if not self._lag or self._factorized is None or len(self._factored_gain) != len(self._gain):
            return False
        return kernels.differing(self._factored_gain, self._gain) <= _FEW

    def solve(self, r: np.ndarray, left: float = 0.0) -> np.ndarray:
        """Return x, (n,), m/s, for r (n,), N: by substitution, or steps of GMRES where the factors are old, see :class:`Way`.

        Where GMRES does not get there, the factors are made anew; NaN where that breaks down.
        """
        if not self._fresh:
            found = gmres(self._substitute, self._problem.weight, r, _SHARPER * left, _LAGGED_STEPS)
            self.krylov_steps += found.steps
            if found.x is not None:
                return found.x
            if not self._make_factors(self._values, self._gain.copy()):
                return np.full(len(r), np.nan)
        return self.factors.solve(r)

    def _substitute(self, r: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Answer by the old factors, and the product of the matrix with it."""
        x, product = self.factors.solve(r), np.empty(len(r))
        gather(self._indptr, self._indices, self._values, x, product)
        return x, product

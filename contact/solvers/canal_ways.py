"""The three ways in which CANAL solves its Newton systems (A + J^T gain J) x = r with symmetric gains: dense, patch, sparse."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
import scipy.linalg as sl
import scipy.sparse as sp

from contact.errors import ContactError
from contact.linear import Backend, make_factorization
from contact.metrics import contact_velocity
from contact.problem import ContactProblem, Group, force_scales
from contact.solvers import canal_kernels as kernels, primal_kernels
from contact.solvers.augmented import LINE_SEARCH, ROUNDING, ConvexNewton, Inner, InnerFound, Surrogate
from contact.solvers.judge import Judge
from contact.solvers.newton_ways import SparseWay, Way, columns_of, pattern_of

WayName = Literal["dense", "patch", "sparse"]
#: Problems of at most so many rows are dense, and those with more than this share of entries in A + J^T J.
_DENSE_ROWS, _DENSE_SHARE = 200, 0.6
#: Largest patch, in rows and beside the root of the rows of A, and entries in a row of A up to which sparse factors are quicker
#: anyway. Dense factors take its rows**3, sparse ones those of A**1.5: of a ball with 4.8 times the root the patch takes 90 to
#: 130 ms from nothing, sparse factors 140 to 220; of cubes with 5.2 to 6.7 times it 40 to 470 and 17 to 270, of mats and
#: stacks with 12 to 19 times 30 to 470 and 12 to 84.
_PATCH_ROWS, _PATCH_REACH, _FEW_ENTRIES = 600, 5.0, 20
#: Rows up to which our own kernel is quicker than LAPACK: always, and where J has at most this share of entries, as that of rigid
#: bodies, which LAPACK squares as a full matrix (measured: 1.7 times as quick on piles of 12 to 32 bodies).
_OWN_ROWS, _OWN_ROWS_OF_BODIES, _OWN_SHARE = 60, 200, 0.4


def choose(problem: ContactProblem) -> WayName:
    """Name the way that should be quickest for a problem."""
    n = problem.n
    if n <= _DENSE_ROWS:
        return "dense"
    if pattern_of(problem, columns_of(problem)).nnz > _DENSE_SHARE * n * n:
        return "dense"
    if problem.A.nnz <= _FEW_ENTRIES * n:
        return "sparse"
    patch = len(np.unique(problem.J.indices))
    return "patch" if 0 < patch <= min(_PATCH_ROWS, _PATCH_REACH * math.sqrt(n)) else "sparse"


class CholeskyWay:
    """Dense Cholesky factors, with J^T gain J as the square of at most three rows a contact."""

    name = "dense"

    def __init__(self, A: np.ndarray, J: np.ndarray) -> None:
        self._A, self._J, self._rows = A, J, np.empty_like(J)

    def take(self, _problem: ContactProblem, _columns: primal_kernels.Columns) -> bool:
        """Return False: it is made for one problem."""
        return False

    def factorize(self, gain: np.ndarray) -> bool:
        """Factorize A + J^T gain J."""
        rows = self._rows[: kernels.root_rows(gain, self._J, self._rows)]
        # the transpose of a matrix in C order is one in Fortran order, so nothing is copied
        H = self._A.copy(order="F")
        if len(rows):
            H = sl.blas.dsyrk(1.0, rows.T, beta=1.0, c=H, lower=1, overwrite_c=1)
        self._factor, bad = sl.lapack.dpotrf(H, lower=1, overwrite_a=1, clean=0)
        return not bad

    def solve(self, r: np.ndarray, left: float = 0.0) -> np.ndarray:
        """Substitute."""
        return np.asarray(sl.lapack.dpotrs(self._factor, r, lower=1)[0])


class SparseCholesky:
    """Sparse Cholesky factors behind the face of ``contact.sparse_lu.SparseFactors``."""

    def __init__(self, backend: Backend, threads: int) -> None:
        self._factorization = make_factorization(backend, threads)
        self.name = self._factorization.name

    def analyse(self, indptr: np.ndarray, indices: np.ndarray) -> None:
        """Take a symmetric pattern."""
        self._pattern = indices, indptr

    def factorize(self, values: np.ndarray) -> bool:
        """Factorize the entries on the last pattern; False where they are not positive definite."""
        n = len(self._pattern[1]) - 1
        try:
            self._factorization.factorize(sp.csc_matrix((values, *self._pattern), shape=(n, n)), np.zeros(0, dtype=np.int64))
        except ContactError:
            return False
        return True

    def solve(self, b: np.ndarray) -> np.ndarray:
        """Return the solution for a right-hand side (n,)."""
        return self._factorization.solve(b)


class CompiledNewton(ConvexNewton):
    """The steps of ``ConvexNewton`` on a small dense problem in one kernel."""

    def __init__(self, system: Base, A: np.ndarray, J: np.ndarray) -> None:
        super().__init__(system)
        problem, columns = system.problem, columns_of(system.problem)
        n, nc = problem.n, problem.n_contacts
        ptr = np.empty(nc + 1, dtype=np.int64)
        start, stop = np.empty(len(columns.col), dtype=np.int64), np.empty(len(columns.col), dtype=np.int64)
        kernels.find_runs(columns.ptr, columns.col, np.full(n, -1, dtype=np.int64), ptr, start, stop)
        self._dense = kernels.DenseProblem(A, J, problem.b, problem.weight, problem.phi, problem.friction, ptr, start, stop)
        u, trial, force, moved = np.empty((4, nc, 3))
        Av, pushed, r, d, product = np.empty((5, n))
        gain, H = np.empty((nc, 3, 3)), np.empty((n, n))
        self._work = kernels.DenseWork(u, trial, force, moved, gain, Av, pushed, r, d, product, H)

    def solve(self, given: Surrogate, v: np.ndarray, state: np.ndarray, aim: float, most: int) -> InnerFound:
        """Newton steps until the residual is at most ``aim``, or below rounding and hardly falls."""
        rules = aim, ROUNDING, LINE_SEARCH, most
        steps, evaluations, size = kernels.newton_steps(self._dense, self._work, tuple(given), v, state, rules)
        return InnerFound(steps, evaluations, steps, size)


class Base:
    """A problem as one of the ways sees it; as it stands here, the whole problem of which nothing is known.

    Parameters
    ----------
    problem : ContactProblem
        What is iterated on, with one friction coefficient a contact.
    rho : ndarray, (nc,), N s/m
        Force per velocity of each contact.
    way : Way
        Solves Newton systems.
    """

    name: WayName

    def __init__(self, problem: ContactProblem, rho: np.ndarray, way: Way) -> None:
        self.problem, self.rho, self.way = problem, rho, way

    def inner(self) -> Inner:
        """Return what solves the convex inner problems quickest."""
        return ConvexNewton(self)

    def start(self, v: np.ndarray) -> np.ndarray:
        """Return the velocity of ``problem`` for one of the whole problem, (n,), m/s."""
        return v

    def whole(self, v: np.ndarray, _lam: np.ndarray) -> np.ndarray:
        """Return the velocity of the whole problem, (n,), m/s, for one of ``problem`` and forces (nc, 3), N."""
        return v

    def correct(self, _v: np.ndarray, _lam: np.ndarray) -> bool:
        """Take in what a pair that solves ``problem`` lacks in the whole one; whether there is such a thing."""
        return False

    def tell(self, judge: Judge) -> None:
        """Tell the judge what is known about W."""


class DenseBase(Base):
    """All rows, as dense matrices.

    Parameters
    ----------
    problem : ContactProblem
        With one friction coefficient a contact.
    rho : ndarray, (nc,), N s/m, optional
        Force per velocity of each contact. Default: the scales of the problem.
    """

    name: WayName = "dense"

    def __init__(self, problem: ContactProblem, rho: np.ndarray | None = None) -> None:
        self._A, self._J = problem.A.toarray(), np.ascontiguousarray(problem.J.toarray())
        super().__init__(problem, problem.scales if rho is None else rho, CholeskyWay(self._A, self._J))

    def inner(self) -> Inner:
        """Return a single kernel for few rows, else steps by LAPACK."""
        own = self.problem.J.nnz <= _OWN_SHARE * self._J.size
        most = _OWN_ROWS_OF_BODIES if own else _OWN_ROWS
        return CompiledNewton(self, self._A, self._J) if self.problem.n <= most else super().inner()

    def tell(self, judge: Judge) -> None:
        """Tell the judge of the diagonal of W, by solves with A."""
        problem = self.problem
        factor, bad = sl.lapack.dpotrf(self._A, lower=1)
        if not bad:
            half = sl.lapack.dtrtrs(factor, self._J.T, lower=1)[0]
            know(judge, problem, sl.lapack.dpotrs(factor, problem.b, lower=1)[0], np.einsum("ij,ij->j", half, half))


def know(judge: Judge, problem: ContactProblem, free: np.ndarray, diagonal: np.ndarray) -> None:
    """Tell a judge the diagonal of W, (3 nc,), and the speed without contact forces, from A^-1 b, (n,)."""
    q = contact_velocity(problem, free)
    judge.know(force_scales(diagonal.reshape(-1, 3)), float(np.abs(q[q[:, 0] < 0]).max(initial=0.0)))


class PatchBase(DenseBase):
    """The rows that contacts act on: minimised over all others, the inner problem has the Schur complement of A on them.

    Its Newton iterates are those of the whole problem, once all other rows are in balance.

    Parameters
    ----------
    problem : ContactProblem
        With one friction coefficient a contact; some rows take no part in any contact.
    backend, threads
        See ``contact.linear.make_factorization``.
    """

    name: WayName = "patch"

    def __init__(self, problem: ContactProblem, backend: Backend, threads: int) -> None:
        self._factorization = make_factorization(backend, threads)
        patch = np.unique(problem.J.indices)
        self._factorization.factorize(problem.A, patch)
        free = self._factorization.begin(problem.b)
        factor, _ = sl.lapack.dpotrf(self._factorization.compliance, lower=1)
        S = sl.lapack.dpotri(factor, lower=1)[0]
        S = np.tril(S) + np.tril(S, -1).T
        m, self._patch, self._free = len(patch), patch, free
        group = (Group("patch", 0, m, "generalized"),)
        #: phi of the whole problem, and of this one, in which what rounding leaves in S and its inverse is made up for
        self._phi, phi = problem.phi, problem.phi.copy()
        left = ContactProblem(sp.csc_matrix(S), S @ free, problem.J[:, patch], phi, problem.friction, problem.dt, group)
        super().__init__(left, problem.scales)

    def start(self, v: np.ndarray) -> np.ndarray:
        """Return the part on the patch."""
        return np.asarray(v[self._patch])

    def whole(self, _v: np.ndarray, lam: np.ndarray) -> np.ndarray:
        """Return A^-1 (b + J^T lam)."""
        return self._factorization.finish(self.problem.pushed(lam))

    def correct(self, v: np.ndarray, lam: np.ndarray) -> bool:
        """Let contacts have the velocities in ``problem`` that the whole one has with these forces."""
        off = self.problem.moved(self.whole(v, lam)[self._patch] - v).reshape(-1, 3)
        self.problem.phi[:] = self._phi + off
        return True

    def tell(self, judge: Judge) -> None:
        """Tell the judge of the diagonal of W, of which the compliance of the patch is the middle."""
        columns = self._factorization.compliance @ self._J.T
        know(judge, self.problem, self._free, np.einsum("ij,ji->i", self._J, columns))


class SparseBase(Base):
    """All rows, with sparse Cholesky factors.

    Parameters
    ----------
    problem : ContactProblem
        With one friction coefficient a contact.
    way : SparseWay
        Keeps pattern and factors from one problem to the next.
    """

    name: WayName = "sparse"

    def __init__(self, problem: ContactProblem, way: SparseWay) -> None:
        way.take(problem, columns_of(problem))
        super().__init__(problem, problem.scales, way)

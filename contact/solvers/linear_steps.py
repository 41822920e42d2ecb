"""The linear half of an iteration of splitting: dynamics with a penalty on the contact velocity, in three equal forms.

Given a force t = lam + R z on the contacts, all of them find v, x and u with ``A v = b + J^T x``, ``u = J v + phi`` and
``x = t - R u``, R = 1 / Theta (papers/003 eq. 30):

======= ======================================================== ===========================================
dual    (W + Theta) x = Theta t - q                               W once, then dense factors; W may be all there is
primal  (A + J^T R J) v = b + J^T (t - R phi)                     sparse factors, positive definite
saddle  [A J^T; J -Theta] [v; -x] = [b; Theta t - phi]            sparse factors, quasi-definite, scaled
======= ======================================================== ===========================================
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, Protocol

import numpy as np
import scipy.linalg as sl
import scipy.sparse as sp

from contact.delassus import DelassusOperator
from contact.linear import Factorization, QuasiDefinite
from contact.problem import ContactProblem, force_scales
from contact.solvers.judge import Judge

Linear = Literal["auto", "dual", "primal", "saddle"]
#: Rows of contacts up to which W is formed, whatever A is.
_FEW_ROWS = 100
#: Beyond them W is formed where it has at most so many entries for one of A: the others solve with sparse factors.
_DENSE = 4


class LinearStep(Protocol):
    """One form of the linear step for one problem."""

    name: str

    def prepare(self, penalty: np.ndarray) -> None:
        """Factorize with the penalty R, (rows,), N s/m."""
        ...

    def solve(self, force: np.ndarray) -> np.ndarray:
        """Contact velocity u, (rows,), m/s, for a force t, (rows,), N."""
        ...

    def velocity(self, carried: np.ndarray, u: np.ndarray) -> np.ndarray:
        """Velocity v, (n,), m/s, of forces x and contact velocities u that :meth:`solve` gave under any penalty."""
        ...


def choose(problem: ContactProblem) -> Linear:
    """Form that is expected to be the fastest: dual where W is small beside A, else primal."""
    rows = problem.J.shape[0]
    return "dual" if rows <= _FEW_ROWS or rows * rows <= _DENSE * problem.A.nnz else "primal"


class DenseStep:
    """Dual form on W as it is, with free rows whose forces are given.

    Parameters
    ----------
    W : ndarray, (m + l, m + l), m/(N s)
        Delassus operator of m rows of contacts and l free rows.
    q : ndarray, (m + l,), m/s
        Velocity without forces.
    rows : int
        m.
    symmetric : bool
        Whether Cholesky factors will do; else those of LU.
    """

    name = "dual"

    def __init__(self, W: np.ndarray, q: np.ndarray, rows: int, symmetric: bool) -> None:
        self.W, self.q, self.symmetric, self._m = W, q, symmetric, rows
        #: forces on the free rows, and the velocities there after the last solve
        self.free_force = np.zeros(len(q) - rows)
        self.free_velocity = np.zeros(len(q) - rows)

    def prepare(self, penalty: np.ndarray) -> None:
        """Factorize W + Theta."""
        m = self._m
        matrix = np.array(self.W[:m, :m], order="F")
        matrix[np.diag_indices(m)] += 1.0 / penalty
        self._penalty = penalty
        if not m:
            return
        if self.symmetric:
            self._factor, bad = sl.lapack.dpotrf(matrix, lower=1)
            self.symmetric = not bad  # else eigenvalues below -Theta, from files with few digits
        if not self.symmetric:
            self._factor, self._pivots, _ = sl.lapack.dgetrf(matrix, overwrite_a=1)

    def solve(self, force: np.ndarray) -> np.ndarray:
        """Contact velocity for a force."""
        m = self._m
        right = force / self._penalty - self.q[:m]
        if len(self.free_force):
            right -= self.W[:m, m:] @ self.free_force
        if not m:
            x = right
        elif self.symmetric:
            # two triangular solves; LAPACK's dpotrs takes three times as long for one column
            x = sl.blas.dtrsv(self._factor, sl.blas.dtrsv(self._factor, right, lower=1), lower=1, trans=1)
        else:
            x = sl.lapack.dgetrs(self._factor, self._pivots, right)[0]
        if len(self.free_force):
            self.free_velocity = self.W[m:, :m] @ x + self.W[m:, m:] @ self.free_force + self.q[m:]
        return np.asarray((force - x) / self._penalty)

    def velocity(self, carried: np.ndarray, u: np.ndarray) -> np.ndarray:
        """Return nothing: a problem given by W has no velocities."""
        return np.zeros(0)


class DualStep(DenseStep):
    """Dual form of a problem with a matrix A, whose W is formed once.

    Parameters
    ----------
    problem : ContactProblem
        Problem with isotropic friction.
    operator : DelassusOperator
        Factorizes A.
    rows : csr_matrix, (m + l, n), optional
        Rows of contacts, then free rows. Default those of the contacts.
    """

    def __init__(self, problem: ContactProblem, operator: DelassusOperator, rows: sp.csr_matrix | None = None) -> None:
        rows = problem.J if rows is None else rows
        operator.factorize(problem if rows is problem.J else _with_rows(problem, rows))
        self._operator = operator
        W = operator.operator(rows)
        q = operator.begin(problem.b)
        q[: problem.J.shape[0]] += problem.phi.ravel()
        super().__init__(W, q, problem.J.shape[0], True)

    @property
    def scales(self) -> np.ndarray:
        """Force per velocity of each contact by its block of W, (nc,), N s/m."""
        return force_scales(self.W.diagonal()[: self._m].reshape(-1, 3))

    def tell(self, judge: Judge) -> None:
        """Give the judge the scale of W and the speed without contact forces."""
        q = self.q[: self._m].reshape(-1, 3)
        judge.know(self.scales, float(np.abs(q[q[:, 0] < 0]).max(initial=0.0)))

    def velocity(self, carried: np.ndarray, u: np.ndarray) -> np.ndarray:
        """A^-1 (b + J^T x), with the forces on free rows behind those of the contacts."""
        return self._operator.finish(carried)


def _with_rows(problem: ContactProblem, rows: sp.csr_matrix) -> ContactProblem:
    """Return a problem that shows other rows to the factorization, which keeps those."""
    return replace(problem, J=rows)


def _keys(matrix: sp.csc_matrix) -> np.ndarray:
    """Return one rising number for each entry of a matrix with sorted columns."""
    rows, columns = matrix.shape
    return np.asarray(np.repeat(np.arange(columns), np.diff(matrix.indptr)) * rows + matrix.indices)


class PrimalStep:
    """Primal form: one positive definite matrix of the size of A.

    Parameters
    ----------
    problem : ContactProblem
        Problem with isotropic friction.
    factors : Factorization
        Keeps the symbolic analysis from problem to problem.
    """

    name = "primal"

    def __init__(self, problem: ContactProblem, factors: Factorization) -> None:
        self._problem, self._factors = problem, factors
        C, A = problem.J, problem.A.tocoo()
        # A and each penalty keep their entries in one pattern, so that the symbolic analysis is made once
        S = (abs(C).T @ abs(C)).tocoo()
        where = np.concatenate([A.row, S.row]), np.concatenate([A.col, S.col])
        self._A = sp.csc_matrix((np.concatenate([A.data, np.zeros(S.nnz)]), where), shape=A.shape)
        self._A.sort_indices()
        self._matrix = self._A.copy()
        self._keys = _keys(self._A)

    def prepare(self, penalty: np.ndarray) -> None:
        """Factorize A + J^T R J."""
        C = self._problem.J
        K = sp.csc_matrix(C.T @ sp.diags(penalty) @ C)
        K.sort_indices()
        self._matrix.data[:] = self._A.data
        if K.nnz:
            self._matrix.data[np.searchsorted(self._keys, _keys(K))] += K.data
        self._factors.factorize(self._matrix, np.zeros(0, dtype=np.int64))
        self._penalty, self._shift = penalty, penalty * self._problem.phi.ravel()

    def solve(self, force: np.ndarray) -> np.ndarray:
        """Contact velocity for a force."""
        return self._problem.moved(self._solve(force)) + self._problem.phi.ravel()

    def _solve(self, force: np.ndarray) -> np.ndarray:
        return self._factors.solve(self._problem.b + self._problem.pushed(force - self._shift))

    def velocity(self, carried: np.ndarray, u: np.ndarray) -> np.ndarray:
        """Solve once more, for t = x + R u."""
        return self._solve(carried + self._penalty * u)


class SaddleStep:
    """Saddle-point form: one quasi-definite matrix of the size of A and J together (papers/003 Alg. 1).

    Both sides are scaled by the roots of the diagonals of A and Theta; unscaled, the factors of problems whose second tangents
    have no rows are wrong. Factors without n positive and m negative pivots are an error.

    Parameters
    ----------
    problem : ContactProblem
        Problem with isotropic friction.
    factors : QuasiDefinite
        Keeps the symbolic analysis from problem to problem.
    """

    name = "saddle"

    def __init__(self, problem: ContactProblem, factors: QuasiDefinite) -> None:
        self._problem, self._factors = problem, factors
        self._scale_v = problem.weight
        D = sp.diags(self._scale_v)
        self._A, self._J = sp.csc_matrix(D @ problem.A @ D), sp.csr_matrix(problem.J @ D)

    def prepare(self, penalty: np.ndarray) -> None:
        """Factorize the scaled matrix."""
        root = np.sqrt(penalty)
        rows = sp.diags(root) @ self._J
        matrix = sp.bmat([[self._A, rows.T], [rows, -sp.identity(len(penalty))]], format="csc")
        matrix.sort_indices()
        self._factors.factorize(matrix, self._problem.n)
        self._penalty, self._root = penalty, root

    def _solve(self, force: np.ndarray) -> np.ndarray:
        p, n = self._problem, self._problem.n
        right = np.concatenate([self._scale_v * p.b, self._root * (force / self._penalty - p.phi.ravel())])
        return self._factors.solve(right)[: n + len(force)]

    def solve(self, force: np.ndarray) -> np.ndarray:
        """Contact velocity for a force."""
        x = -self._root * self._solve(force)[self._problem.n :]
        return np.asarray((force - x) / self._penalty)

    def velocity(self, carried: np.ndarray, u: np.ndarray) -> np.ndarray:
        """Solve once more, for t = x + R u."""
        return np.asarray(self._scale_v * self._solve(carried + self._penalty * u)[: self._problem.n])

"""Newton steps on (v, lam) that never form W: forces are eliminated contact by contact, then one sparse system is solved."""

from __future__ import annotations

import warnings
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
from contact.solvers.multigrid import MultigridWay
from contact.solvers.older_factors import OlderFactors
from contact.sparse_lu import SparseFactors, make_sparse_factors

#: Matrices of at most so many rows, or with more than this share of entries, are solved densely.
_DENSE_ROWS, _DENSE_SHARE = 150, 0.3
#: Most steps of GMRES with older factors, and the part of what may be left that they leave, so that forces balance better.
_LAGGED_STEPS, _SHARPER = 16, 1e-2
#: Older factors are not tried where more contacts than so many have changed their state.
_FEW = 2


class Way(Protocol):
    """One way to solve (A + J^T gain J) x = r."""

    @property
    def name(self) -> str:
        """Name of the way."""
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
        if n > _DENSE_ROWS:
            filled = problem.A.nnz + float(np.square(np.diff(columns.ptr)).sum())
            if filled < _DENSE_SHARE * n * n:
                return False
        self._A, self._J = problem.A.toarray(), problem.J.toarray()
        return True

    def factorize(self, gain: np.ndarray) -> bool:
        """Factorize A + J^T gain J."""
        pushed = (gain @ self._J.reshape(len(gain), 3, self._J.shape[1])).reshape(self._J.shape)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", sl.LinAlgWarning)
            self._factors = sl.lu_factor(self._A + self._J.T @ pushed, overwrite_a=True, check_finite=False)
        return bool(self._factors[0].diagonal().all())

    def solve(self, r: np.ndarray, left: float = 0.0) -> np.ndarray:
        """Substitute."""
        return np.asarray(sl.lu_solve(self._factors, r, check_finite=False))


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
    the next problems that are factorized have their places in it.

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
        self.factorizations = self.analyses = self.krylov_steps = 0

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
        """Find the places of the entries of the problem, in a new pattern where the old one lacks some."""
        self._places = np.empty(int(np.square(np.diff(self._columns.ptr)).sum()), dtype=np.int32)
        self._A_places = np.empty(self._problem.A.nnz, dtype=np.int32)
        if not self._place():
            self._renew(self._problem)
            if not self._place():
                raise AssertionError("the pattern of A and J lacks an entry of its own")
        self._values, self._placed = np.empty(len(self._indices)), True

    def _place(self) -> bool:
        """Find the places of the entries of A and of the contacts; whether all are there."""
        A, pattern = self._problem.A, (self._indptr, self._indices)
        if len(self._indptr) != A.shape[0] + 1:
            return False
        return kernels.entry_places(A.indptr, A.indices, *pattern, self._A_places) and kernels.block_places(
            self._columns, *pattern, self._places
        )

    def _renew(self, problem: ContactProblem) -> None:
        """Make the pattern of this problem."""
        (ptr, col, _), n = self._columns, problem.n
        touched = sp.csr_matrix((np.ones(len(col), dtype=np.int32), col, ptr), shape=(len(ptr) - 1, n))
        own = sp.csr_matrix((np.ones(problem.A.nnz, dtype=np.int32), problem.A.indices, problem.A.indptr), shape=(n, n))
        pattern = sp.csr_matrix(own + touched.T @ touched + sp.identity(n, dtype=np.int32, format="csr"))
        pattern.sort_indices()
        self._set_pattern(pattern.indptr, pattern.indices)
        self._factorized = None
        self.analyses += 1

    def _set_pattern(self, indptr: np.ndarray, indices: np.ndarray) -> None:
        self._indptr, self._indices = indptr.astype(np.int32), indices.astype(np.int32)
        self.factors.analyse(self._indptr, self._indices)

    def _make_factors(self, values: np.ndarray, gain: np.ndarray) -> bool:
        self._fresh = self.factors.factorize(values)
        self._factorized, self._factored_gain = (values, gain) if self._fresh else (None, gain)
        self.factorizations += 1
        return self._fresh

    def factorize(self, gain: np.ndarray) -> bool:
        """Take the gains; factorize where the factors before do not serve."""
        self._gain = gain
        if not self._placed:
            self._find_places()
        kernels.assemble(self._problem.A.data, self._A_places, self._columns, self._places, gain, self._values)
        self._fresh = False
        return self._serves() or self._make_factors(self._values.copy(), gain.copy())

    def _serves(self) -> bool:
        """Whether no more than a few contacts have gains of another kind than the factors were made with."""
        if not self._lag or self._factorized is None or len(self._factored_gain) != len(self._gain):
            return False
        return kernels.differing(self._factored_gain, self._gain) <= _FEW

    def solve(self, r: np.ndarray, left: float = 0.0) -> np.ndarray:
        """Substitute, or steps of GMRES where the factors are old; NaN where a factorization broke down."""
        if not self._fresh:
            found = gmres(self._substitute, self._problem.weight, r, _SHARPER * left, _LAGGED_STEPS)
            self.krylov_steps += found.steps
            if found.x is not None:
                return found.x
            if not self._make_factors(self._values.copy(), self._gain.copy()):
                return np.full(len(r), np.nan)
        return self.factors.solve(r)

    def _substitute(self, r: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Answer by the old factors, and the product of the matrix with it."""
        x, product = self.factors.solve(r), np.empty(len(r))
        gather(self._indptr, self._indices, self._values, x, product)
        return x, product


class PrimalNewton:
    """Regularised semi-smooth Newton steps on (v, lam) of one problem after another.

    With dlam = change - gain J dv of :func:`contact.solvers.primal_kernels.linearise` a step is ::

        (A + J^T gain J) dv = b + J^T (lam + change) - A v

    so that the dynamics hold to rounding after it, and the contact law where the states of all contacts were right.

    Parameters
    ----------
    backend, threads
        See ``contact.sparse_lu.make_sparse_factors``.
    """

    def __init__(self, backend: Backend = "auto", threads: int = 1) -> None:
        self._dense, self._banded, self.sparse = DenseWay(), BandedWay(), SparseWay(backend, threads, lag=False)
        self._older = OlderFactors(self.sparse.factors)
        self.multigrid = MultigridWay(self.sparse, backend, threads)
        self.way: Way = self.sparse

    def take(self, law: ContactProblem) -> None:
        """Take a problem with one friction coefficient a contact."""
        nc = law.n_contacts
        J, ptr = law.J, np.empty(nc + 1, dtype=np.int64)
        kernels.count_columns(J.indptr, J.indices, law.n, ptr)
        columns = kernels.Columns(ptr, np.empty(int(ptr[-1]), dtype=np.int32), np.empty((int(ptr[-1]), 3)))
        kernels.fill_columns(J.indptr, J.indices, J.data, law.n, *columns)
        self.problem = law
        self.rho = law.scales
        self.columns = columns
        ways: tuple[Way, ...] = self._banded, self._dense, self.multigrid, self.sparse
        self.way = next(way for way in ways if way.take(law, columns))
        self._gain, self._change = np.empty((nc, 3, 3)), np.empty((nc, 3))
        self.state = np.full(nc, -1, dtype=np.int8)
        self.changed = nc
        self.step_size = 0.0

    def law(self, shift: float, trial_scale: float) -> kernels.Law:
        """Parameters of the linearisation, relative to the compliances of the contacts."""
        return kernels.Law(self.problem.friction, 1.0 / self.rho, shift, trial_scale)

    def memory(self) -> dict[str, np.ndarray]:
        """Return what one problem leaves for the next: pattern and factors of the sparse way, the coarse matrix of multigrid."""
        parts = {"sparse": self.sparse.memory(), "multigrid": self.multigrid.memory(), "older": self._older.memory()}
        return {f"{name}/{key}": value for name, part in parts.items() for key, value in part.items()}

    def recall(self, memory: Mapping[str, np.ndarray]) -> None:
        """Take it back."""
        for name, way in (("sparse", self.sparse), ("multigrid", self.multigrid), ("older", self._older)):
            way.recall({key.partition("/")[2]: value for key, value in memory.items() if key.startswith(f"{name}/")})

    def step(self, rules: kernels.Law, v: np.ndarray, lam: np.ndarray, centre: np.ndarray, share: float = 0.0) -> bool:
        """One Newton step on v (n,), m/s, and lam (nc, 3), N, in place; False where the matrix cannot be factorized.

        ``share`` is the residual of the dynamics that the step may leave, where it iterates; 0 for none beyond rounding.
        """
        problem = self.problem
        u = problem.moved(v).reshape(-1, 3) + problem.phi
        self.changed = kernels.linearise(rules, lam, u, centre, self._gain, self._change, self.state)
        if not np.isfinite(self._gain).all():
            return False
        Av = problem.times(v)
        size = max(float(np.linalg.norm(problem.weight * problem.b)), float(np.linalg.norm(problem.weight * Av)))
        if self._go_by_older_factors(v, lam, problem.b + problem.pushed(lam) - Av, share * size):
            return True
        r = problem.b + problem.pushed(lam + self._change) - Av
        if not self.way.factorize(self._gain):
            self._older.forget()
            return False
        if self.way is self.sparse:
            self._older.take(problem, self._gain)
        dv = self.way.solve(r, share * size)
        v += dv
        self.step_size = float(np.linalg.norm(dv))
        kernels.add_forces(self._gain, self._change, problem.moved(dv).reshape(-1, 3), lam)
        return bool(np.isfinite(self.step_size))

    def _go_by_older_factors(self, v: np.ndarray, lam: np.ndarray, r: np.ndarray, left: float) -> bool:
        """Take the step with the factors of an earlier one, where the dynamics lack r (n,), N; False where they do not serve."""
        problem = self.problem
        if self.way is not self.sparse or not self.sparse.has_factors or not self._older.serve(problem, self._gain):
            return False
        found, steps = self._older.solve(problem, self._gain, self._change, r, left)
        self.sparse.krylov_steps += steps
        if found is None:
            return False
        v += found[0]
        lam += found[1]
        self.step_size = float(np.linalg.norm(found[0]))
        return True

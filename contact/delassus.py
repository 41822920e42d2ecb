"""The Delassus operator W = J A^-1 J^T of a contact problem, from one factorization of A that may be older than A."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import scipy.sparse as sp

from contact.delassus_kernels import congruence
from contact.errors import ContactError
from contact.jacobian_kernels import gather, scatter
from contact.linear import Backend, DenseCholesky, Factorization, Pardiso, make_factorization, same_pattern
from contact.problem import ContactProblem, Group
from contact.smooth_motions import SmoothMotions, motions_of
from contact.turns import Turned, Turns, whole_triples

#: Largest patch whose Schur complement is formed, in rows for each row of J; beyond it W is solved for column by column.
_PATCH_PER_ROW = 2.0
#: ... and in rows of A.
_PATCH_OF_ALL = 0.8
#: Most rows that are added to the patch by solves before a new factorization is cheaper.
_MOST_EXTRA = 48
#: ... and with a new factorization before a new order of elimination is cheaper, which takes as long as the numbers do.
_FEW_EXTRA = 24
#: Right-hand sides solved for at once.
_CHUNK = 64
#: Rows of A from which factors are larger than caches, so that single precision halves the time of what streams them.
_SINGLE_FROM = 3000
#: Factors in single precision serve where they give a motion of all rows alike to this part: smooth ones they give worst.
_SINGLE_SERVES = 1e-2
#: ... and where entries on the diagonal, and what is divided by them, are far from the ends of its range.
_SINGLE_RANGE = 1e15


def _same(a: np.ndarray, b: np.ndarray) -> bool:
    return a is b or np.array_equal(a, b)


def _worth_keeping(patch: int, rows: int, n: int) -> bool:
    """Whether a patch of that size pays: not one of nearly everything, nor one much larger than J needs."""
    return patch <= _PATCH_PER_ROW * rows and patch <= _PATCH_OF_ALL * n


class DelassusOperator:
    """Factorized A with the rows that contacts act on kept apart.

    Parameters
    ----------
    backend : {"auto", "pardiso", "superlu"}
        Direct solver, see ``contact.linear``.
    threads : int
        Threads of MKL.
    factorization : Factorization, optional
        What factorizes instead of the backend: dense factors for small matrices.
    refined : bool
        Whether who asks measures what answers lack and goes on: MKL's factors of large matrices are then of single precision,
        until they do not serve a matrix of this pattern. How bodies move as a whole is right to rounding all the same.

    Attributes
    ----------
    single : bool
        Whether the factors are of single precision.
    """

    def __init__(
        self, backend: Backend = "auto", threads: int = 1, factorization: Factorization | None = None, *, refined: bool = False
    ) -> None:
        self.factorization: Factorization = factorization or make_factorization(backend, threads)
        self._pattern: tuple[np.ndarray, np.ndarray] | None = None
        self._refined, self._double, self.single = refined, False, False
        #: bodies of the problem that was factorized last, and how they move as a whole
        self._groups: tuple[Group, ...] | None = None
        self._whole = np.zeros((0, 3), dtype=np.int64)
        #: correction of those by the last A that was factorized or that factors serve
        self._smooth: SmoothMotions | None = None
        #: rows that the last factorization kept, none where it failed
        self._kept = np.zeros(0, dtype=np.int64)
        self.forget()

    def forget(self) -> None:
        """Drop the factorization, so that the next problem gets its own."""
        self._rows = np.zeros(0, dtype=np.int64)
        self._place = np.zeros(0, dtype=np.int32)
        self._extra = np.zeros((0, 0))
        self._data = np.zeros(0)
        self._added: list[np.ndarray] = []
        #: how the factorized A had turned, and what has turned since
        self._turns: Turns | None = None
        self._since: Turned | None = None
        self.factorized = False

    def sharpen(self) -> None:
        """Drop factors of single precision, which do not serve matrices of this pattern."""
        self._double = True
        self.forget()

    def memory(self) -> dict[str, np.ndarray]:
        """Return what gives these factors again, for :meth:`recall`: the matrix, its turns, the rows kept and those added.

        Of factors that were dropped, which rows they kept: the next ones may keep them again.
        """
        if self._pattern is None or not (self.factorized or len(self._kept)):
            return {}
        indptr, indices = self._pattern
        if not self.factorized:
            return {"indptr": indptr, "indices": indices, "kept": self._kept, "double": np.array(self._double)}
        sizes = np.array([len(rows) for rows in self._added], dtype=np.int64)
        added = np.concatenate([np.zeros(0, dtype=np.int64), *self._added])
        patch, turns = self.factorization.patch, {}
        if self._turns is not None:
            turns = {"turned_rows": self._turns.rows, "turned": self._turns.rotation}
        own = {"indptr": indptr, "indices": indices, "data": self._data, "patch": patch, "sizes": sizes, "added": added}
        return own | turns | {"double": np.array(self._double), "whole": self._whole}

    def recall(self, memory: Mapping[str, np.ndarray]) -> None:
        """Make the factors again that :meth:`memory` told of, to the last bit: the same calls in the same order.

        Factors of the same matrix with the same rows, which it has already, stay.
        """
        own = self.memory()
        if own and own.keys() == memory.keys() and all(np.array_equal(own[name], memory[name]) for name in own):
            return
        self.forget()
        self._kept, self._double = memory.get("kept", self._kept[:0]), bool(memory.get("double", False))
        if "data" not in memory:
            self._pattern = (memory["indptr"], memory["indices"]) if memory else None
            return
        indptr, n = memory["indptr"], len(memory["indptr"]) - 1
        self._pattern, self._whole, self._groups = (indptr, memory["indices"]), memory["whole"], None
        self._factorize(sp.csc_matrix((memory["data"], memory["indices"], indptr), shape=(n, n)), memory["patch"])
        if "turned" in memory:
            self._turns = Turns(memory["turned_rows"], memory["turned"])
        for rows in np.split(memory["added"], np.cumsum(memory["sizes"])[:-1]) if len(memory["sizes"]) else ():
            self._add(rows)

    def factorize(self, problem: ContactProblem, patch: np.ndarray | None = None, J: sp.csr_matrix | None = None) -> None:
        """Factorize A of a problem.

        Parameters
        ----------
        problem : ContactProblem
            Its A is factorized.
        patch : ndarray of int, optional
            Rows to keep, sorted. Default: those that its contacts act on.
        J : scipy.sparse.csr_matrix, optional
            Rows that :meth:`operator` will be asked for. Where the rows kept last hold nearly all of theirs, these are kept again
            instead, and the others added: the order of elimination stays.

        Raises
        ------
        ContactError
            A is not positive definite.
        """
        if patch is None:
            patch = np.unique(problem.J.indices)
        if problem.turns is not None:
            patch = whole_triples(patch, problem.turns, problem.n)
        if not self._keeps(len(patch), problem.J.shape[0], problem.n):
            patch = np.zeros(0, dtype=np.int64)
        missing = self._kept[:0]
        if (
            J is not None
            and len(self._kept)
            and isinstance(self.factorization, Pardiso)
            and same_pattern(self._pattern, problem.A)
        ):
            lacking = np.setdiff1d(J.indices, self._kept)
            if problem.turns is not None and len(lacking):
                lacking = whole_triples(lacking, problem.turns, problem.n)
            if len(lacking) <= _FEW_EXTRA:
                patch, missing = self._kept, lacking
        if problem.groups is not self._groups:
            self._groups, self._whole = problem.groups, motions_of(problem.groups)
        self._factorize(problem.A, patch)
        self._turns = problem.turns
        if len(missing):
            self._add(missing)

    def _factorize(self, A: sp.csc_matrix, patch: np.ndarray) -> None:
        """Factorize A and keep exactly these rows."""
        self.factorized = False  # where that fails, what was there before is gone
        self._kept = patch[:0]
        self._double &= same_pattern(self._pattern, A)
        n = len(A.indptr) - 1
        large = self._refined and n >= _SINGLE_FROM and len(self._whole) > 0
        large &= isinstance(self.factorization, Pardiso)
        self.single = large and not self._double and self._serves_single(A, patch)
        if not self.single:
            self.factorization.factorize(A, patch)
            self._double = large
        self._smooth = SmoothMotions(A, self._whole) if self.single else None
        self._pattern = (A.indptr, A.indices)
        self._data, self._added = A.data.copy(), []
        self._rows = self._kept = self.factorization.patch
        self._place = np.empty(n, dtype=np.int32)
        self._place.fill(-1)
        self._place[self._rows] = np.arange(len(self._rows))
        self._extra = np.zeros((n, 0))
        self._compliance = self.factorization.compliance
        self._turns = self._since = None
        self.factorized = True

    def _serves_single(self, A: sp.csc_matrix, patch: np.ndarray) -> bool:
        """Factorize in single precision; return whether that serves. A may also not be positive definite in any."""
        assert isinstance(self.factorization, Pardiso)
        diagonal = A.diagonal()
        if not (1.0 / _SINGLE_RANGE < diagonal.min() and diagonal.max() < _SINGLE_RANGE):
            return False
        ones, force = np.ones(A.shape[0]), np.empty(A.shape[0])
        scatter(A.indptr, A.indices, A.data, ones, force)
        try:
            self.factorization.factorize(A, patch, single=True)
        except ContactError:
            return False
        return bool(np.abs(self.factorization.solve(force) - ones).max() <= _SINGLE_SERVES)

    def fits(self, problem: ContactProblem, J: sp.csr_matrix) -> bool:
        """Whether the factorization can serve A of this problem and rows J: same pattern of A, few new rows in J (then added)."""
        if not self.factorized or not same_pattern(self._pattern, problem.A):
            return False
        if self.single:
            self._smooth = SmoothMotions(problem.A, self._whole)
        self._since, now = None, problem.turns
        if now is not None and self._turns is not None and _same(now.rows, self._turns.rows):
            self._since = Turned(self._turns, now, problem.n)
        if not len(self._rows):
            # without a patch each row of J costs a solve: only for few of them, or where no patch would help
            return J.shape[0] <= _MOST_EXTRA or not self._keeps(len(np.unique(J.indices)), J.shape[0], problem.n)
        missing = J.indices[self._place[J.indices] < 0]
        missing = np.unique(missing) if len(missing) else missing
        if now is not None and len(missing):
            missing = whole_triples(missing, now, problem.n)
        if len(missing) + self._extra.shape[1] > _MOST_EXTRA:
            return False
        if len(missing):
            self._add(missing)
        return True

    def _keeps(self, patch: int, rows: int, n: int) -> bool:
        """Whether to keep so many rows of n for so many rows of J; dense factors have them all at hand."""
        return isinstance(self.factorization, DenseCholesky) or _worth_keeping(patch, rows, n)

    def _add(self, rows: np.ndarray) -> None:
        """Add rows to the patch by one solve each."""
        self._added.append(rows)
        unit = np.zeros((self._extra.shape[0], len(rows)))
        unit[rows, np.arange(len(rows))] = 1.0
        columns = self.factorization.solve(unit)
        m = len(self._rows)
        grown = np.empty((m + len(rows), m + len(rows)))
        grown[:m, :m] = self._compliance
        grown[:m, m:] = columns[self._rows]
        grown[m:, :m] = columns[self._rows].T
        grown[m:, m:] = 0.5 * (columns[rows] + columns[rows].T)
        self._compliance, self._rows = grown, np.concatenate([self._rows, rows])
        self._place[rows] = np.arange(m, len(self._rows))
        self._extra = np.hstack([self._extra, columns])

    def operator(self, J: sp.csr_matrix) -> np.ndarray:
        """W = J A^-1 J^T, (rows of J, rows of J), symmetric, C-order; J stays that of :meth:`begin` and :meth:`finish`.

        What has turned since A was factorized turns J back, and not the compliance: W = (J R) A^-1 (J R)^T.
        """
        m, J = len(J.indptr) - 1, J if self._since is None else self._since.jacobian(J)
        W = np.empty((m, m))
        if len(self._rows):
            self._entries = (J.indptr, self._place[J.indices], J.data)
            congruence(*self._entries, self._compliance, np.empty(len(self._rows)), W)
            return W
        self._entries = (J.indptr, J.indices, J.data)
        for start in range(0, m, _CHUNK):
            part = J if m <= _CHUNK else J[start : start + _CHUNK]
            W[:, start : start + _CHUNK] = J @ self.factorization.solve(part.toarray().T)
        return np.ascontiguousarray(0.5 * (W + W.T))

    def begin(self, b: np.ndarray) -> np.ndarray:
        """J A^-1 b, (rows of J,); remembers b for :meth:`finish`."""
        b = b if self._since is None else self._since.back(b)
        if not len(self._rows):
            inner = self._solution = self.factorization.solve(b)
        else:
            inner = self.factorization.begin(b)
            if self._extra.shape[1]:
                inner = np.concatenate([inner, self._extra.T @ b])
        self._b = b
        out = np.empty(len(self._entries[0]) - 1)
        gather(*self._entries, inner, out)
        return out

    def finish(self, lam: np.ndarray) -> np.ndarray:
        """A^-1 (b + J^T lam), (n,), with b of the last :meth:`begin`."""
        since, (step, pushed) = self._since, self._finished(lam)
        step = step if since is None else since.forth(step)
        if self._smooth is not None:
            self._smooth.correct(step, pushed if since is None else since.forth(pushed))
        return step

    def _finished(self, lam: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the same, and b + J^T lam, where A was factorized; the latter where there are motions to correct."""
        force, m = np.empty(len(self._rows) or len(self._place)), len(self.factorization.patch)
        scatter(*self._entries, lam, force)
        if not len(self._rows):
            step = np.asarray(self._solution + self.factorization.solve(force))
        elif m == len(force):
            step = self.factorization.finish(force)
        else:
            step = np.asarray(self.factorization.finish(force[:m]) + self._extra @ force[m:])
        if self._smooth is None:
            return step, self._b
        pushed = self._b.copy()
        if len(self._rows):
            pushed[self._rows] += force
        else:
            pushed += force
        return step, pushed

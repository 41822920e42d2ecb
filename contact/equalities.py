"""Equality rows eliminated: x = x0 + Z y satisfies E x + offset = 0 for every y.

Rows that have a column of their own, which no other row has, are satisfied by it, one after another: a held node by its own
velocity, a body by its one joint. What is left is dense, one block for each set of columns that rows join, orthonormal in the
norm of diag(A), by a complete orthogonal decomposition; so rows may repeat each other.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.linalg import lapack

from contact import equality_kernels as kernels
from contact.equality_kernels import Basis

#: Rows of a set that depend on others to this part of the largest are redundant; row lengths are 1.
_RANK = 1e-10
#: Columns of which a basis leaves this part are zero: nothing can move along them.
NOTHING = 1e-12
#: A column of its own eliminates a row where its entry is not less than this part of the largest, columns by their scale.
_OWN = 1e-3


class _Dense(NamedTuple):
    """Rows (p,) of one set that have no columns of their own, and the decomposition M = P [L 0] Q^T of them on columns (k,).

    M is the rows on these columns, by the scale of these and of length 1; ``own`` (k, rank) is the part of Q that L has, ``left``
    (p, rank) is P L, by its inner and upper factor where rows repeat others, and ``order`` P.
    """

    rows: np.ndarray
    columns: np.ndarray
    scale: np.ndarray
    length: np.ndarray
    order: np.ndarray
    own: np.ndarray
    inner: np.ndarray | None
    upper: np.ndarray

    def solve(self, given: np.ndarray) -> np.ndarray:
        """Least x, (k,), in the norm of 1 / scale, for which the rows are given, or nearest to it."""
        asked = (self.length * given)[self.order]
        if self.inner is None:
            z = lapack.dtrtrs(self.upper, asked, trans=1)[0]
        else:
            z = lapack.dtrtrs(self.upper, self.inner.T @ asked)[0]
        return np.asarray(self.scale * (self.own @ z))

    def push(self, force: np.ndarray) -> np.ndarray:
        """Least row forces, (p,), each by its length, for a force on the columns (k,)."""
        asked = self.own.T @ (self.scale * force)
        lam = np.empty(len(self.order))
        if self.inner is None:
            lam[self.order] = lapack.dtrtrs(self.upper, asked)[0]
        else:
            lam[self.order] = self.inner @ lapack.dtrtrs(self.upper, asked, trans=1)[0]
        return self.length * lam


def _decompose(rows: np.ndarray, columns: np.ndarray, M: np.ndarray, scale: np.ndarray) -> tuple[_Dense, np.ndarray]:
    """Decompose rows (p, k) of a set; also the basis of what they allow, (k, k - rank)."""
    M *= scale
    length = 1.0 / np.sqrt((M * M).sum(axis=1))
    M *= length[:, None]
    k, p = len(columns), len(rows)
    factors, order, tau, _, _ = lapack.dgeqp3(M.T)
    sizes = np.abs(factors.diagonal())
    rank = int((sizes > _RANK * sizes[0]).sum())
    upper = np.triu(factors[:rank])
    Q = np.zeros((k, k), order="F")
    Q[:, : min(p, k)] = factors[:, : min(p, k)]
    Q = lapack.dorgqr(Q, tau, lwork=64 * k, overwrite_a=1)[0]
    free = Q[:, rank:]
    if free.size:
        free[np.sqrt((free * free).sum(axis=1)) <= NOTHING] = 0.0  # columns that the rows hold fast
    inner = None
    if rank < p:  # rows that repeat others
        inner, upper = np.linalg.qr(upper.T)
    return _Dense(rows, columns, scale, length, order - 1, Q[:, :rank], inner, upper), scale[:, None] * free


class Equalities:
    """What equality rows allow, and their forces.

    Parameters
    ----------
    E : sparse matrix, (p, N)
        Rows in compressed form, none of them empty.
    node : ndarray of int64, (N,)
        Which columns belong together, by numbers below N.
    scale : ndarray, (N,)
        1 / sqrt(diag A).
    offset : ndarray, (p,)
        E x + offset = 0 is asked for.

    Attributes
    ----------
    basis : Basis
        Z.
    x0 : ndarray, (N,)
        A particular x, the nearest one where rows contradict each other.
    """

    def __init__(self, E: sp.csr_matrix, node: np.ndarray, scale: np.ndarray, offset: np.ndarray) -> None:
        p, N = E.shape
        self._E = E
        of_row, of_column = np.empty(p, dtype=np.int64), np.empty(N, dtype=np.int64)
        sets = kernels.join(E.indptr, E.indices, node, of_row, of_column)
        rows, entries = np.empty(p, dtype=np.int64), np.empty(p, dtype=np.int64)
        own = kernels.find_own(E.indptr, E.indices, E.data, scale, _OWN, rows, entries)
        self._rows, self._entries = rows[:own], entries[:own]
        left, free = np.ones(p, dtype=np.bool_), np.ones(N, dtype=np.bool_)
        left[self._rows], free[E.indices[self._entries]] = False, False
        row_ptr, column_ptr, all_ptr = np.zeros((3, sets + 1), dtype=np.int64)
        in_rows, in_columns, in_all = np.empty(p, dtype=np.int64), np.empty(N, dtype=np.int64), np.empty(N, dtype=np.int64)
        kernels.by_sets(of_row, left, row_ptr, in_rows)
        kernels.by_sets(of_column, free, column_ptr, in_columns)
        kernels.by_sets(of_column, np.ones(N, dtype=np.bool_), all_ptr, in_all)
        self._dense: list[_Dense] = []
        width, bases = np.diff(column_ptr), {}
        for s in np.flatnonzero(np.diff(row_ptr)):
            own_rows, columns = in_rows[row_ptr[s] : row_ptr[s + 1]], in_columns[column_ptr[s] : column_ptr[s + 1]]
            M = np.zeros((len(own_rows), len(columns)))
            kernels.gather_rows(E.indptr, E.indices, E.data, own_rows, columns, np.empty(N, dtype=np.int64), M)
            dense, bases[s] = _decompose(own_rows, columns, M, scale[columns])
            self._dense.append(dense)
            width[s] = bases[s].shape[1]
        kept = of_column < 0
        count = int(kept.sum())
        order = np.where(kept, np.cumsum(kept) - 1, -1)
        place, sizes = np.zeros(N, dtype=np.int64), np.diff(all_ptr)
        ends = np.cumsum(np.repeat(width, sizes))
        joined = in_all[: all_ptr[-1]]
        place[joined] = ends - np.repeat(width, sizes)
        values = np.zeros(int(ends[-1]) if len(ends) else 0)
        start = count + np.cumsum(width) - width
        self.basis = Basis(order, of_column, place, values, start, width)
        self.x0 = np.zeros(N)
        for s in np.arange(sets):
            columns = in_columns[column_ptr[s] : column_ptr[s + 1]]
            if s in bases:
                values[place[columns][:, None] + np.arange(width[s])] = bases[s]
            else:
                values[place[columns] + np.arange(width[s])] = scale[columns]
        for dense in self._dense:
            self.x0[dense.columns] = dense.solve(-offset[dense.rows])
        kernels.fill_own(E.indptr, E.indices, E.data, self._rows, self._entries, offset, NOTHING, self.basis, self.x0)
        #: columns that eliminate no row, (N,) bool, in which Z is orthonormal in the norm of 1 / scale
        self.free = free

    @property
    def kept(self) -> np.ndarray:
        """Whether each column of x is none that rows join, (N,) bool."""
        return self.basis.set_of < 0

    def forces(self, force: np.ndarray) -> np.ndarray:
        """Row forces, (p,), for a force on x, (N,); those that rows which repeat others share are the least."""
        E, out, force = self._E, np.zeros(self._E.shape[0]), force.copy()
        kernels.push_own(E.indptr, E.indices, E.data, self._rows, self._entries, force, out)
        for dense in self._dense:
            out[dense.rows] = dense.push(force[dense.columns])
        return out

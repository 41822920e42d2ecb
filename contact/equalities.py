"""Equality rows eliminated: x = x0 + Z y satisfies E x + offset = 0 for every y.

Rows that have a column of their own, which no other row has, are satisfied by it, one after another: a held node by its own
velocity, a body by its one joint. What is left is dense, one block for each set of columns that rows join, orthonormal in the
norm of diag(A), by a complete orthogonal decomposition; so rows may repeat each other.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.linalg import lapack

from contact import equality_kernels as kernels
from contact.equality_kernels import Basis
from contact.jacobian_kernels import gather

#: Rows of a set that depend on others to this part of the largest are redundant; row lengths are 1, but for the next.
_RANK = 1e-10
#: Columns of which a basis leaves this part are zero: nothing can move along them.
NOTHING = 1e-12
#: Part of the size of its vector that each row has at least: beside the others it may be rounding.
_LEAST_OF_VECTOR = 0.1
#: A column of its own eliminates a row where its entry is not less than this part of its vector, columns by their scale.
_OWN = 1e-3


def sizes_of_vectors(squares: np.ndarray, vector: np.ndarray) -> np.ndarray:
    """Size of the vector that each row is a component of, (p,), from the squares of the sizes of rows; ``vector`` numbers it."""
    return np.asarray(np.sqrt(np.bincount(vector, weights=squares))[vector])


class _Dense(NamedTuple):
    """Rows (p,) of one set that have no columns of their own, and the decomposition M = P [L 0] Q^T of them on columns (k,).

    M is the rows on these columns, by the scale of these and of length 1, or, where rows repeat others, by the sizes of their
    vectors; ``own`` (k, rank) is the part of Q that L has, ``left`` (p, rank) is P L, by its inner and upper factor where rows
    repeat others, and ``order`` P.
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


def _decompose(
    E: sp.csr_matrix, rows: np.ndarray, columns: np.ndarray, scales: np.ndarray, size: np.ndarray
) -> tuple[_Dense, np.ndarray]:
    """Decompose rows (p,) of E on the columns (k,) of a set; also the basis of what they allow, (k, k - rank).

    Rows that repeat others count by the sizes of their vectors, those of E. Those that are small beside theirs do before that is
    asked: across the plane of a loop that is tilted by a hair a row is rounding, and of length 1 it would repeat nothing.
    """
    M, scale = np.zeros((len(rows), len(columns))), scales[columns]
    kernels.gather_rows(E.indptr, E.indices, E.data, rows, columns, np.empty(E.shape[1], dtype=np.int64), M)
    M *= scale
    length = 1.0 / np.maximum(np.sqrt((M * M).sum(axis=1)), _LEAST_OF_VECTOR * size[rows])
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
        share = 1.0 / (length * size[rows])
        inner, upper = np.linalg.qr(share[order - 1, None] * upper.T)
        length = 1.0 / size[rows]
    return _Dense(rows, columns, scale, length, order - 1, Q[:, :rank], inner, upper), scale[:, None] * free


class _Members(NamedTuple):
    """Members of sets, those of set s from ``ptr[s]`` to ``ptr[s + 1]``."""

    ptr: np.ndarray
    members: np.ndarray

    @classmethod
    def of(cls, set_of: np.ndarray, chosen: np.ndarray, sets: int) -> _Members:
        """Sort those that are chosen, (k,) bool, by their sets (k,)."""
        out = cls(np.zeros(sets + 1, dtype=np.int64), np.empty(len(set_of), dtype=np.int64))
        kernels.by_sets(set_of, chosen, *out)
        return out

    def one(self, s: int) -> np.ndarray:
        """Members of a set."""
        return self.members[self.ptr[s] : self.ptr[s + 1]]

    def each(self) -> Iterator[tuple[int, np.ndarray]]:
        """Go through the sets that have members."""
        return ((s, self.one(s)) for s in np.flatnonzero(np.diff(self.ptr)).tolist())


def _room(of_column: np.ndarray, width: np.ndarray) -> Basis:
    """Make room for the basis of sets with so many entries of y, (sets,); its values are zero."""
    kept, N = of_column < 0, len(of_column)
    joined = _Members.of(of_column, ~kept, len(width))
    ends = np.cumsum(np.repeat(width, np.diff(joined.ptr)))
    place, members = np.zeros(N, dtype=np.int64), joined.members[: joined.ptr[-1]]
    place[members] = ends - width[of_column[members]]
    values = np.zeros(int(ends[-1]) if len(ends) else 0)
    return Basis(
        np.where(kept, np.cumsum(kept) - 1, -1), of_column, place, values, int(kept.sum()) + np.cumsum(width) - width, width
    )


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
    vector : ndarray of int, (p,)
        Numbers of the vectors that rows are components of: components count by the size of all of them, whatever their axes.

    Attributes
    ----------
    basis : Basis
        Z.
    x0 : ndarray, (N,)
        A particular x, the nearest one where rows contradict each other.
    """

    def __init__(self, E: sp.csr_matrix, node: np.ndarray, scale: np.ndarray, offset: np.ndarray, vector: np.ndarray) -> None:
        p, N = E.shape
        self._E = E
        of_row, of_column = np.empty(p, dtype=np.int64), np.empty(N, dtype=np.int64)
        sets = kernels.join(E.indptr, E.indices, node, of_row, of_column)
        gather(E.indptr, E.indices, E.data**2, scale**2, squares := np.empty(p))
        size = sizes_of_vectors(squares, vector)
        rows, entries = np.empty(p, dtype=np.int64), np.empty(p, dtype=np.int64)
        own = kernels.find_own(E.indptr, E.indices, E.data, scale, size, _OWN, rows, entries)
        self._rows, self._entries = rows[:own], entries[:own]
        left, free = np.ones(p, dtype=np.bool_), np.ones(N, dtype=np.bool_)
        left[self._rows], free[E.indices[self._entries]] = False, False
        columns = _Members.of(of_column, free, sets)
        width, self._dense, bases = np.diff(columns.ptr), [], {}
        for s, in_set in _Members.of(of_row, left, sets).each():
            dense, bases[s] = _decompose(E, in_set, columns.one(s), scale, size)
            self._dense.append(dense)
            width[s] = bases[s].shape[1]
        self.basis = _room(of_column, width)
        place, values = self.basis.place, self.basis.values
        for s, in_set in columns.each():
            if s in bases:
                values[place[in_set][:, None] + np.arange(width[s])] = bases[s]
            else:
                values[place[in_set] + np.arange(width[s])] = scale[in_set]
        self.x0 = np.zeros(N)
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

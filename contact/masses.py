"""Contacts between bodies that have nothing but their masses: the inverse mass matrix by blocks, and W of contacts."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from contact import masses_kernels as kernels
from contact.compiled import Fixed
from contact.masses_kernels import BlockRows, Masses
from contact.problem import ContactProblem

# masses are always of the same kinds of arrays
_times, _operator = Fixed(kernels.times), Fixed(kernels.operator)


def velocities(masses: Masses, impulse: np.ndarray) -> np.ndarray:
    """Velocities, (n,), that impulses (n,), N s, make."""
    out = np.empty(len(impulse))
    _times(masses, np.ascontiguousarray(impulse, dtype=np.float64), out)
    return out


def as_matrix(masses: Masses) -> sp.csr_matrix:
    """M^-1 as a sparse matrix (n, n) with entries of its own."""
    size = np.diff(masses.first)[masses.block]
    indptr = np.concatenate([[0], np.cumsum(size)])
    within = np.arange(indptr[-1]) - np.repeat(indptr[:-1], size)
    indices = masses.rows[np.repeat(masses.first[masses.block], size) + within]
    values = masses.inverse[np.repeat(masses.start[masses.block] + masses.place * size, size) + within]
    return sp.csr_matrix((values, indices, indptr), shape=(len(size), len(size)))


def product(W: BlockRows, x: np.ndarray) -> np.ndarray:
    """W x of x, (rows, 3)."""
    out = np.empty((len(W.indptr) - 1, 3))
    kernels.times_blocks(W, x, out)
    return out


def softened(W: BlockRows, softness: np.ndarray) -> BlockRows:
    """W with the softness of its contacts, (k,), m/(N s), on its normal diagonal; the same object."""
    row = np.repeat(np.arange(len(W.indptr) - 1), np.diff(W.indptr))
    own = np.flatnonzero(W.indices == row)
    W.blocks[own, 0, 0] += softness[row[own]]
    return W


def split_operator(masses: Masses, problem: ContactProblem, contacts: np.ndarray, dt: float) -> BlockRows:
    """W = dt J M^-1 J^T of some contacts of a problem, with a block where two of them act on one block of M.

    Parameters
    ----------
    masses : Masses
        M^-1.
    problem : ContactProblem
        Has J.
    contacts : ndarray of int64, (k,)
        Contacts to keep.
    dt : float, s
        Time in which forces act.

    Returns
    -------
    BlockRows
        (k, k) blocks, m/(N s).
    """
    J = problem.J
    return BlockRows(*_operator(masses, J.indptr, J.indices, J.data, contacts, dt))


def operator_root(masses: Masses, problem: ContactProblem, contacts: np.ndarray, dt: float) -> sp.csr_matrix:
    """Return R, (3k, n), sparse as J is, with W = R R^T for what :func:`split_operator` gives: sqrt(dt) J M^-1/2.

    Parameters
    ----------
    masses, problem, contacts, dt
        As there.
    """
    sizes, starts = np.diff(masses.first), masses.start[:-1]
    root = masses.inverse.copy()
    for size in np.unique(sizes):
        place = starts[sizes == size, None] + np.arange(size * size)
        values, vectors = np.linalg.eigh(masses.inverse[place].reshape(-1, size, size))
        halves = (vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]) @ vectors.transpose(0, 2, 1)
        root[place] = halves.reshape(len(place), -1)
    rows = (3 * contacts[:, None] + np.arange(3)).ravel()
    return sp.csr_matrix(np.sqrt(dt) * (problem.J[rows] @ as_matrix(masses._replace(inverse=root))))

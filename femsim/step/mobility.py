"""Inverse masses of all bodies side by side, by which impulses at the end of a step change velocities."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from contact import ContactError
from contact.masses_kernels import Masses, invert
from femsim.model.bodies.body import Body
from femsim.step.state import State


class Mobility:
    """Makes the inverse mass matrix of some bodies; where blocks stand is worked out once, as long as no size changes.

    Parameters
    ----------
    bodies : sequence of Body
        Their rows of v follow one another.
    q_slices, v_slices : sequence of slice
        Coordinates and rows of v of each.
    """

    def __init__(self, bodies: Sequence[Body], q_slices: Sequence[slice], v_slices: Sequence[slice]) -> None:
        self._bodies, self._q_slices, self._v_slices = tuple(bodies), tuple(q_slices), tuple(v_slices)
        self._known: tuple[list[np.ndarray], Masses] | None = None
        #: rows of v of the blocks of bodies that have only such of one size, by the first row and how many of what size they are
        self._in_order: dict[tuple[int, ...], np.ndarray] = {}

    def masses(self, old: State, new: State, held: np.ndarray) -> Masses:
        """M^-1 at the end of a step, with nothing on rows that are held, (n,) bool; it is overwritten by the next.

        Raises
        ------
        ContactError
            A mass matrix is not positive definite.
        """
        rows: list[np.ndarray] = []
        blocks: list[np.ndarray] = []
        for body, q, v in zip(self._bodies, self._q_slices, self._v_slices, strict=True):
            inertia = body.inertia(old.q[q], new.q[q])
            for own, masses in self._rows_and_blocks(inertia, v):
                rows.append(own)
                blocks.append(masses)
        known = self._known
        if known is None or len(known[0]) != len(rows) or not all(map(_same, known[0], rows)):
            known = self._known = rows, _layout(rows, len(held))
        at = 0
        for own, masses in zip(rows, blocks, strict=True):
            count = masses.size
            if not invert(masses, held[own.ravel()], known[1].inverse[at : at + count]):
                raise ContactError("the mass matrix of a body is not positive definite.")
            at += count
        return known[1]

    def _rows_and_blocks(self, inertia: np.ndarray | sp.spmatrix, v: slice) -> list[tuple[np.ndarray, np.ndarray]]:
        """Rows of v (k, m) and masses (k, m, m) of the blocks of a body, of each size."""
        if isinstance(inertia, sp.dia_matrix):
            inertia = inertia.data[0][:, None, None]
        if not isinstance(inertia, np.ndarray):
            return [(own + v.start, masses) for own, masses in _blocks(inertia)]
        key = (v.start, *inertia.shape)
        if key not in self._in_order:
            self._in_order[key] = np.arange(v.start, v.stop).reshape(inertia.shape[:2])
        return [(self._in_order[key], inertia)]


def _same(a: np.ndarray, b: np.ndarray) -> bool:
    return a is b or np.array_equal(a, b)


def mass_times(inertia: np.ndarray | sp.spmatrix, v: np.ndarray) -> np.ndarray:
    """M v, (n,), of a mass matrix as bodies give it, see ``Body.inertia``."""
    if isinstance(inertia, np.ndarray):
        return np.asarray((inertia @ v.reshape(*inertia.shape[:2], 1)).ravel())
    return np.asarray(inertia @ v)


def _blocks(inertia: sp.spmatrix) -> list[tuple[np.ndarray, np.ndarray]]:
    """Split a sparse mass matrix into blocks: rows (k, m) and masses (k, m, m) of those of each size."""
    matrix = sp.csr_matrix(inertia)
    _, block_of = connected_components(matrix, directed=False)
    order, sizes = np.argsort(block_of, kind="stable"), np.bincount(block_of)
    first = np.cumsum(sizes) - sizes
    found = []
    for size in np.unique(sizes):
        members = order[first[sizes == size][:, None] + np.arange(size)]
        i = np.broadcast_to(members[:, :, None], (*members.shape, size))
        j = np.broadcast_to(members[:, None, :], i.shape)
        found.append((members, np.asarray(matrix[i.ravel(), j.ravel()]).reshape(i.shape)))
    return found


def _layout(rows: Sequence[np.ndarray], n: int) -> Masses:
    """Where blocks with these rows, (k, m) each, stand; their inverses are still to be filled."""
    sizes = np.concatenate([np.full(len(own), own.shape[1]) for own in rows])
    order = np.concatenate([own.ravel() for own in rows])
    first, start = (np.concatenate([[0], np.cumsum(each)]) for each in (sizes, sizes**2))
    block, place = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    block[order] = np.repeat(np.arange(len(sizes)), sizes)
    place[order] = np.arange(n) - np.repeat(first[:-1], sizes)
    return Masses(block, place, first, order, start, np.empty(int(start[-1])))

"""Newton's method by whole tangents, contacts held in their states: where a step of rods is linearised next.

The contact problems of a step have symmetric tangents. Energy-momentum steps of rods have none: where stiff links turn, forces
pull along other directions than strains change along, and linearisations by the symmetric part come nearer by a half or a fifth
each. Here the equations are solved by their whole derivatives, with contacts that stick, slide and are open as they are at the
last answer and the places found; a sparse linear system each, and no contact problem. What is found is no answer: the next
contact problem, which is linearised there, says which states hold (the semi-smooth Newton method of Alart and Curnier 1991, with
directions of slip held).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from contact import ContactProblem
from contact.compressed import times_transposed
from contact.jacobian_kernels import gather
from contact.metrics import is_finite
from contact.sparse_lu import SuperLu, make_sparse_factors
from femsim.step import whole_kernels as kernels

#: Compliance of contacts that are held, over that of the problem: it answers those that repeat others.
_GIVES_WAY = 1e-10


class Held(NamedTuple):
    """Velocities, (n,), and contact forces, (nc, 3), N, that a step of Newton's method leads to."""

    v: np.ndarray
    lam: np.ndarray


class WholeTangents:
    """The linear systems of the method, over the rows of bodies that are not of nodes: soft bodies go on as they do.

    Parameters
    ----------
    A : scipy.sparse.csc_matrix, (n, n)
        Pattern of the equations.
    inside : ndarray, (n,) bool
        Rows of v that are solved for.
    """

    def __init__(self, A: sp.csc_matrix, inside: np.ndarray) -> None:
        columns = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))
        self._rows = np.flatnonzero(inside)
        number = np.cumsum(inside) - 1
        self._all = bool(inside.all())
        kept = np.flatnonzero(inside[A.indices] & inside[columns])
        rows, columns = number[A.indices[kept]], number[columns[kept]]
        # entries row by row, since factors take compressed rows
        order = np.lexsort((columns, rows))
        self._entries, self._columns = kept[order], columns[order].astype(np.int32)
        self._starts = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=len(self._rows)))]).astype(np.int32)
        self._factors = make_sparse_factors()
        self._factors.analyse(self._starts, self._columns)

    def step(
        self, data: np.ndarray, lacking: np.ndarray, at: Held, problem: ContactProblem, J: sp.csr_matrix, phi: np.ndarray
    ) -> Held | None:
        """Return where one step leads; None where the system cannot be solved.

        Parameters
        ----------
        data : ndarray, (nnz,)
            Entries of the derivative in the pattern of A.
        lacking : ndarray, (n,), N and N m
            What the equations lack at the place, contact forces included; zero on prescribed rows.
        at : Held
            The place.
        problem : ContactProblem
            The last contact problem, for friction and compliances.
        J, phi : csr_matrix, (3 nc, n), and ndarray, (nc, 3), m/s
            Rows of the contacts.
        """
        values, r = data[self._entries], -lacking[self._rows]
        own = J if self._all else J[:, self._rows]
        u = np.empty(phi.shape)
        gather(J.indptr, J.indices, J.data, at.v, u.reshape(-1))
        u += phi
        state, way = np.empty(len(u), dtype=np.int8), np.empty((len(u), 2))
        unknown = kernels.states(own.indptr, u, at.lam, problem.scales, problem.friction, state, way) if len(u) else 0
        aside = (state == kernels.ASIDE)[:, None]
        r -= times_transposed(own, np.where(aside, 0.0, at.lam).ravel())
        lam = np.where(aside, at.lam, 0.0)
        if unknown:
            give = _GIVES_WAY / max(float(problem.scales.max()), np.finfo(np.float64).tiny)
            closed = np.zeros_like(u, dtype=np.bool_)
            closed[state == kernels.STICKS] = True
            closed[slides := state == kernels.SLIDES, 0] = True
            found = self._with_contacts(values, own, (state, way, give, unknown), np.concatenate([r, -u[closed]]))
            change, lam[closed] = found[: len(r)], found[len(r) :]
            lam[slides, 1:] = way[slides] * lam[slides, :1]
        else:
            change = self._factors.solve(r) if self._factors.factorize(values) else np.full(len(r), np.nan)
        if not (is_finite(change) and is_finite(lam)):
            return None
        v = at.v.copy()
        v[self._rows] += change
        return Held(v, lam)

    def _with_contacts(
        self, values: np.ndarray, own: sp.csr_matrix, closed: tuple[np.ndarray, np.ndarray, float, int], right: np.ndarray
    ) -> np.ndarray:
        """Solve for the changes of velocities and the unknown forces, (n + unknown,); NaN where that breaks down."""
        state, way, give, unknown = closed
        most = len(values) + 4 * own.nnz + unknown
        starts, columns, entries = np.empty(len(right) + 1, dtype=np.int32), np.empty(most, dtype=np.int32), np.empty(most)
        size = kernels.held_system(
            self._starts, self._columns, values, own.indptr, own.indices, own.data, state, way, give, starts, columns, entries
        )
        factors = SuperLu()
        factors.analyse(starts, columns[:size])
        return factors.solve(right) if factors.factorize(entries[:size]) else np.full(len(right), np.nan)

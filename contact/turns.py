"""How parts of v have turned, so that factors of an earlier A turn with the bodies.

Where a soft body turns, its block of A becomes about R A R^T with a rotation for each node in R. Factors of the earlier A
serve for much longer as R A^-1 R^T: of a bar that bends by 10 degrees an iteration with them leaves half of the error, where
factors as they were multiply it by five.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from contact import turns_kernels as kernels
from contact.compressed import compressed_rows


class Turns(NamedTuple):
    """Rotations of triples of rows of v since a time that is the same for all problems of a scene; other rows do not turn.

    Attributes
    ----------
    rows : ndarray of int, (k,)
        First of the three rows of each triple; no row is in two of them.
    rotation : ndarray, (k, 3, 3)
        Rotation of each, to the frame of v.
    """

    rows: np.ndarray
    rotation: np.ndarray


class Turned:
    """Turns from one time to another.

    Parameters
    ----------
    before, now : Turns
        Of the same rows, at both times.
    n : int
        Rows of v.
    """

    def __init__(self, before: Turns, now: Turns, n: int) -> None:
        self._rows, self._n = now.rows, n
        self._turn = np.empty_like(now.rotation)
        kernels.between(before.rotation, now.rotation, self._turn)
        self._triple = triples(now, n)

    def back(self, x: np.ndarray) -> np.ndarray:
        """Return R^T x, (n,)."""
        out = x.astype(np.float64)
        kernels.turn(self._rows, self._turn, x, True, out)
        return out

    def forth(self, x: np.ndarray) -> np.ndarray:
        """Return R x, (n,)."""
        out = x.copy()
        kernels.turn(self._rows, self._turn, x, False, out)
        return out

    def jacobian(self, J: sp.csr_matrix) -> sp.csr_matrix:
        """Return J R, whose rows name all three rows of each triple that J has one of, perhaps more than once."""
        room = 3 * len(J.indices)
        indptr, indices, data = np.empty_like(J.indptr), np.empty(room, dtype=J.indices.dtype), np.empty(room)
        count = kernels.turned_rows(
            J.indptr, J.indices, J.data, self._rows, self._triple, self._turn, indptr, indices, data
        )  # fmt: skip
        return compressed_rows(indptr, indices[:count], data[:count], self._n)


def triples(turns: Turns, n: int) -> np.ndarray:
    """Triple that each of n rows is in, (n,); -1 for none."""
    out = np.full(n, -1, dtype=np.int32)
    out[turns.rows[:, None] + np.arange(3)] = np.arange(len(turns.rows), dtype=np.int32)[:, None]
    return out


def whole_triples(rows: np.ndarray, turns: Turns, n: int) -> np.ndarray:
    """Rows with the others of their triples, sorted."""
    triple = triples(turns, n)[rows]
    of_triples = turns.rows[np.unique(triple[triple >= 0])]
    return np.union1d(rows[triple < 0], (of_triples[:, None] + np.arange(3)).ravel())

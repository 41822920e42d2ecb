"""The joints of a scene that hold by rows of the contact problem, all together: their rows, and what forces do to them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import scipy.sparse as sp

from contact import Rows, make_rows
from femsim.model.couplings import Coupling
from femsim.step.state import State

#: Entries of rows of joints below this part of the terms that they are sums of are rounding.
_ROUNDED = 1e-13
#: What is left open of joints whose sides are both prescribed, over one metre or radian a step and the speeds of the sides.
_LEFT_OPEN = 1e-12
_NONE = np.zeros(0)


class Joints:
    """Couplings that hold by rows instead of forces; false as a condition where there are none.

    Parameters
    ----------
    couplings : sequence of Coupling
        All couplings of a scene; those with ``joins`` are joints.
    rows : sequence of ndarray
        Rows of v of each coupling.
    q_slices : sequence of slice
        Coordinates of each body.
    n : int
        Size of v.

    Attributes
    ----------
    numbers : list of int
        Which of the couplings are joints.
    """

    def __init__(self, couplings: Sequence[Coupling], rows: Sequence[np.ndarray], q_slices: Sequence[slice], n: int) -> None:
        self._couplings, self._rows_of, self._q_slices, self._n = couplings, rows, q_slices, n
        self.numbers = [k for k, coupling in enumerate(couplings) if coupling.joins]
        self._joints = [couplings[k] for k in self.numbers]
        #: joint and row within it of each of the last rows
        self._row_joints: list[tuple[int, int]] = []
        self._at_rest = np.zeros(n)

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self.numbers)

    def rows(self, given: np.ndarray, prescribed: np.ndarray, dt: float) -> Rows | None:
        """Rows for the contact problem, in the order of the couplings; None where nothing is joined by rows.

        Velocities ``given`` (n,) of ``prescribed`` rows (n,) bool are part of their offsets; dt in s.
        """
        held_by = [(k, held) for k in self.numbers if (held := self._couplings[k].constraint()) is not None]
        self._row_joints = [(k, row) for k, held in held_by for row in range(len(held.offset))]
        if not held_by:
            return None
        parts = [(self._rows_of[k], held) for k, held in held_by]
        G = _stacked([(rows, held.G) for rows, held in parts], self._n)
        known = np.concatenate([held.offset for _, held in parts])
        offset, size = known + G @ given, np.abs(known) + abs(G) @ np.abs(given)
        G.data[prescribed[G.indices]] = 0.0
        G.eliminate_zeros()
        # where no velocity is free, what rounding leaves open counts as closed
        offset[(np.diff(G.indptr) == 0) & (np.abs(offset) <= _LEFT_OPEN * (1.0 / dt + size))] = 0.0
        return make_rows(G, offset, *(np.concatenate([held[k] for _, held in parts]) for k in (2, 3)))

    def names(self, rows: Iterable[int]) -> tuple[str, ...]:
        """Names of the joints that had some of the last :meth:`rows`, by their numbers; they may have broken since."""
        return tuple(dict.fromkeys(self._couplings[self._row_joints[row][0]].name for row in rows))

    def weakest(self, rows: Iterable[int]) -> int | None:
        """Coupling with the least strength against some of the last :meth:`rows`; None where all bear any force."""
        strengths = [(self._couplings[k].strength_of(row), k) for k, row in (self._row_joints[row] for row in rows)]
        least, weakest = min(strengths, default=(np.inf, -1))
        return weakest if least < np.inf else None

    def jacobian(self, state: State) -> sp.csr_matrix:
        """Rows of joints that velocities of a state keep, (p, n)."""
        parts = [(self._rows_of[k], self._couplings[k].constraint_at(self._q_of(k, state))) for k in self.numbers]
        return _stacked(parts, self._n)

    def release(self, state: State, impulses: np.ndarray) -> bool:
        """Let joints go of the rows of :meth:`jacobian` whose bounds impulses (p,), N s, exceed; whether any did."""
        at, released = 0, False
        for k in self.numbers:
            size = len(self._couplings[k].constraint_at(self._q_of(k, state)))
            released |= self._couplings[k].release(impulses[at : at + size])
            at += size
        return released

    def add_impulses(self, state: State, impulses: np.ndarray) -> None:
        """Give joints what the rows of :meth:`jacobian` did, (p,), N s."""
        at = 0
        for k in self.numbers:
            size = len(self._couplings[k].constraint_at(self._q_of(k, state)))
            self._couplings[k].add_impulse(impulses[at : at + size])
            at += size

    def _q_of(self, coupling: int, state: State) -> list[np.ndarray]:
        return [state.q[self._q_slices[body]] for body, _ in self._couplings[coupling].rows]

    def forces(self) -> np.ndarray:
        """Last forces of the rows of :meth:`rows`, (p,)."""
        return np.concatenate([_NONE, *(joint.row_forces for joint in self._joints if joint.constraint() is not None)])

    def opening(self) -> float:
        """Largest opening of a joint where they were placed last, m or rad."""
        return max((float(np.abs(joint.opening).max(initial=0.0)) for joint in self._joints), default=0.0)

    def push(self) -> np.ndarray:
        """Force of the rows of all joints, (n,), N and N m, where they were placed last."""
        return self._sum([joint.push() for joint in self._joints])

    def pushed(self) -> np.ndarray:
        """Force of all joints in the last step, (n,), N and N m."""
        return self._sum([joint.pushed for joint in self._joints])

    def _sum(self, forces: Sequence[np.ndarray]) -> np.ndarray:
        if not forces:
            return self._at_rest
        out = np.zeros(self._n)
        for k, force in zip(self.numbers, forces, strict=True):
            np.add.at(out, self._rows_of[k], force)
        return out

    def take(self, forces: np.ndarray) -> None:
        """Let joints take the forces of their rows, (p,)."""
        at = 0
        for joint in self._joints:
            held = joint.constraint()
            if held is not None:
                joint.take_rows(forces[at : at + len(held.offset)])
                at += len(held.offset)


def _stacked(parts: Sequence[tuple[np.ndarray, np.ndarray]], n: int) -> sp.csr_matrix:
    """Dense rows (p, m), each over columns (m,) of n, one below the other; columns may be named twice, and are added.

    Of a loop within one robot what the base does to both sides cancels, and much else in a plane one. What is left of a row by
    rounding is no row at all: entries below :data:`_ROUNDED` of what they are sums of become zero.
    """
    values, columns, starts, at = [np.zeros(0)], [np.zeros(0, dtype=np.int64)], [np.zeros(1, dtype=np.int64)], 0
    for where, G in parts:
        p, m = G.shape
        values.append(G.ravel())
        columns.append(np.tile(where, p))
        starts.append(at + m * np.arange(1, p + 1))
        at += p * m
    indptr = np.concatenate(starts)
    out = sp.csr_matrix((np.concatenate(values), np.concatenate(columns), indptr), shape=(len(indptr) - 1, n))
    largest = np.maximum.reduceat(np.abs(np.append(out.data, 0.0)), indptr[:-1]) if len(indptr) > 1 else np.zeros(0)
    out.sum_duplicates()
    out.data[np.abs(out.data) <= np.repeat(_ROUNDED * largest, np.diff(out.indptr))] = 0.0
    return out

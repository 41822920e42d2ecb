"""The joints of a scene that hold by rows of the contact problem, all together: their rows, and what forces do to them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import scipy.sparse as sp

from contact import Rows, make_rows
from contact.compressed import compressed_rows
from femsim.model.contact_rules import Breaks
from femsim.model.couplings import Coupling
from femsim.model.joined import Joined, Strength
from femsim.step import joint_rows_kernels as kernels
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
        #: those of the last :meth:`rows` and of the last :meth:`jacobian`: coupling, and how many
        self._row_joints: list[tuple[int, int]] = []
        self._velocity_rows: list[tuple[int, int]] = []
        #: columns of A that they act on, in order, and the place of each of their rows of v there
        self._columns = {k: np.unique(rows[k], return_inverse=True) for k in self.numbers}
        self._at_rest, self._none = np.zeros(n), np.zeros(n, dtype=np.bool_)

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self.numbers)

    def rows(self, given: np.ndarray, prescribed: np.ndarray, dt: float) -> Rows | None:
        """Rows for the contact problem, in the order of the couplings; None where nothing is joined by rows.

        Velocities ``given`` (n,) of ``prescribed`` rows (n,) bool are part of their offsets; dt in s.
        """
        held_by = [(k, held) for k in self.numbers if (held := self._couplings[k].constraint()) is not None]
        self._row_joints = [(k, len(held.offset)) for k, held in held_by]
        if not held_by:
            return None
        known, low, high = (np.concatenate([held[k] for _, held in held_by]) for k in (1, 2, 3))
        vector = _numbered([held.vector for _, held in held_by])
        G, moved = self._stacked([(k, held.G) for k, held in held_by], given, prescribed)
        offset = known + moved[:, 0]
        # where no velocity is free, what rounding leaves open counts as closed
        idle = G.indptr[1:] == G.indptr[:-1]
        if idle.any():
            offset[idle & (np.abs(offset) <= _LEFT_OPEN * (1.0 / dt + np.abs(known) + moved[:, 1]))] = 0.0
        if not (np.isfinite(G.data).all() and np.isfinite(offset).all()):
            return make_rows(G, offset, low, high, vector=vector)
        return Rows(G, offset, low, high, np.zeros(len(offset)), vector)

    def _stacked(
        self, parts: Sequence[tuple[int, np.ndarray]], given: np.ndarray, left_out: np.ndarray
    ) -> tuple[sp.csr_matrix, np.ndarray]:
        """Rows of couplings by their numbers, dense over their rows of v, one below the other, without some columns, (n,) bool.

        Also by what velocities ``given`` move each row, and the sum of the sizes, (p, 2).
        """
        p, most = sum(len(G) for _, G in parts), sum(G.size for _, G in parts)
        indptr, indices, data = np.zeros(p + 1, dtype=np.int32), np.empty(most, dtype=np.int32), np.empty(most)
        moved, first, at = np.empty((p, 2)), 0, 0
        for k, G in parts:
            columns, place = self._columns[k]
            at = kernels.append_rows(
                np.ascontiguousarray(G), place, columns, given, left_out, _ROUNDED, first, at, indptr, indices, data, moved
            )
            first += len(G)
        return compressed_rows(indptr, indices[:at], data[:at], self._n), moved

    def names(self, rows: Iterable[int]) -> tuple[str, ...]:
        """Names of the joints that had some of the last :meth:`rows`, by their numbers; they may have broken since."""
        return tuple(dict.fromkeys(self._couplings[self._joint_of(row)[0]].name for row in rows))

    def _joint_of(self, row: int) -> tuple[int, int]:
        """Coupling of one of the last :meth:`rows`, and which of its rows it is."""
        for k, size in self._row_joints:
            if row < size:
                return k, row
            row -= size
        raise IndexError(row)

    def weakest(self, rows: Iterable[int]) -> int | None:
        """Coupling with the least strength against some of the last :meth:`rows`; None where all bear any force."""
        strengths = [(self._couplings[k].strength_of(row), k) for k, row in map(self._joint_of, rows)]
        least, weakest = min(strengths, default=(np.inf, -1))
        return weakest if least < np.inf else None

    def weakest_of(self, joints: Sequence[Breaks]) -> int | None:
        """Coupling with the least strength against forces among these; None where none of them breaks."""
        weak = [
            (own.strength.force, own.strength.torque, k)
            for k, own in enumerate(self._couplings)
            if isinstance(own, Joined) and own.strength != Strength() and any(own is one for one in joints)
        ]
        return min(weak)[2] if weak else None

    def broken(self) -> int:
        """How many have broken so far."""
        return sum(isinstance(own, Joined) and own.broken for own in self._couplings)

    def jacobian(self, state: State) -> tuple[sp.csr_matrix, np.ndarray]:
        """Rows of joints that velocities of a state keep, (p, n), and numbers of the vectors they are components of, (p,)."""
        kept = [self._couplings[k].constraint_at(self._q_of(k, state)) for k in self.numbers]
        parts = [(k, G) for k, (G, _) in zip(self.numbers, kept, strict=True)]
        self._velocity_rows = [(k, len(G)) for k, G in parts]
        return self._stacked(parts, self._at_rest, self._none)[0], _numbered([vector for _, vector in kept])

    def release(self, impulses: np.ndarray) -> bool:
        """Let joints go of rows of the last :meth:`jacobian` whose bounds impulses (p,), N s, exceed; whether any did."""
        at, released = 0, False
        for k, size in self._velocity_rows:
            released |= self._couplings[k].release(impulses[at : at + size])
            at += size
        return released

    def add_impulses(self, impulses: np.ndarray) -> None:
        """Give joints what the rows of the last :meth:`jacobian` did, (p,), N s."""
        at = 0
        for k, size in self._velocity_rows:
            self._couplings[k].add_impulse(impulses[at : at + size])
            at += size

    def _q_of(self, coupling: int, state: State) -> list[np.ndarray]:
        return [state.q[self._q_slices[body]] for body, _ in self._couplings[coupling].rows]

    def forces(self) -> np.ndarray:
        """Last forces of the rows of :meth:`rows`, (p,)."""
        if not self._joints:
            return _NONE
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
        """Let joints take the forces of the last :meth:`rows`, (p,)."""
        at = 0
        for k, size in self._row_joints:
            self._couplings[k].take_rows(forces[at : at + size])
            at += size


def _numbered(vectors: Sequence[np.ndarray]) -> np.ndarray:
    """Return numbers of vectors for the rows of couplings below each other, (p,), from those that each coupling gives its own."""
    out, at = [np.zeros(0, dtype=np.int64)], 0
    for own in vectors:
        out.append(at + own)
        at += int(own.max(initial=-1)) + 1
    return np.concatenate(out)

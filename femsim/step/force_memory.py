"""Contact forces of the last step, by which solvers start."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from contact.compiled import Fixed, njit


@dataclass
class ForceMemory:
    """Forces of the contacts of a step, where the next one starts.

    Attributes
    ----------
    keys : ndarray, (nc,)
        What the contacts are recognised by, ascending.
    forces : ndarray, (nc, 3), N
        World forces.
    """

    keys: np.ndarray
    forces: np.ndarray

    @classmethod
    def empty(cls) -> ForceMemory:
        """Nothing known."""
        return cls(np.zeros(0, dtype=np.int64), np.zeros((0, 3)))

    @classmethod
    def of(cls, keys: np.ndarray, forces: np.ndarray) -> ForceMemory:
        """World forces (nc, 3) of contacts with unique keys (nc,) in any order."""
        if ascend(keys):
            return cls(keys, forces)
        order = np.argsort(keys, kind="stable")
        return cls(keys[order], forces[order])

    def recall(self, keys: np.ndarray, frames: np.ndarray) -> np.ndarray:
        """Return the forces (nc, 3) in the frames (nc, 3, 3) of contacts that were there; zero for new ones."""
        if not len(keys):
            return np.zeros((0, 3))
        if keys.tobytes() == self.keys.tobytes():
            lam = np.empty((len(keys), 3))
            _turn_into(frames, self.forces, lam)
            return lam
        lam = np.zeros((len(keys), 3))
        if len(self.keys):
            place = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
            same = self.keys[place] == keys
            known = np.empty((np.count_nonzero(same), 3))
            _turn_into(frames[same], self.forces[place[same]], known)
            lam[same] = known
        return lam


@njit(cache=True, _nrt=False)
def turn_into(frames: np.ndarray, vectors: np.ndarray, out: np.ndarray) -> None:
    """Fill vectors (nc, 3) of the world as frames (nc, 3, 3) have them, in the order of sums that numpy's einsum has here."""
    for m in range(out.shape[0]):
        for i in range(3):
            ends = frames[m, i, 0] * vectors[m, 0] + frames[m, i, 2] * vectors[m, 2]
            out[m, i] = 0.0 + (ends + frames[m, i, 1] * vectors[m, 1])  # zeros are positive, as there


@njit(cache=True, _nrt=False)
def ascend(keys: np.ndarray) -> bool:
    """Whether each key, (nc,), is larger than the one before."""
    for m in range(1, keys.shape[0]):
        if keys[m] <= keys[m - 1]:
            return False
    return True


_turn_into = Fixed(turn_into)

"""Contact forces of the last step, by which solvers start."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from contact.compiled import njit


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
            return np.asarray(np.einsum("mij,mj->mi", frames, self.forces))
        lam = np.zeros((len(keys), 3))
        if len(self.keys):
            place = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
            same = self.keys[place] == keys
            lam[same] = np.einsum("mij,mj->mi", frames[same], self.forces[place[same]])
        return lam


@njit(cache=True, _nrt=False)
def ascend(keys: np.ndarray) -> bool:
    """Whether each key, (nc,), is larger than the one before."""
    for m in range(1, keys.shape[0]):
        if keys[m] <= keys[m - 1]:
            return False
    return True

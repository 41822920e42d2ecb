"""Nodes of a soft body that move together as if rigid: rows of the contact problem, without a mass of their own.

Three of the nodes, the triad, keep their distances; every other node keeps its place in their axes, three rows each. Forces of
the rows are in balance by themselves: a row moves a node against what a rigid motion of the triad, by least squares, makes of
its place, so every rigid motion of all nodes leaves the velocity of the row zero. In an energy-momentum step that holds at the
mean of the places where the step begins and ends; a rigid displacement is a rigid motion about these (Cayley's turn), so the
rows do no work and keep both momenta exactly.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from femsim.model import patch_kernels as kernels
from femsim.model.joined import Joined, NodeFrame, Side, Strength

#: Triads whose height is less than this part of their longest side are in one line.
_FLAT = 1e-3
#: Share of the largest from which a distance counts as large as it: corners of a box are as far from its middle but for rounding.
_AS_FAR = 1.0 - 1e-6
_PAIRS = ((0, 1), (1, 2), (2, 0))


def triad(points: np.ndarray) -> np.ndarray | None:
    """Numbers (3,) of three points (k, 3) that are far from each other; None where all are in one line."""
    first = _furthest(np.linalg.norm(points - points.mean(axis=0), axis=1))
    away = points - points[first]
    length = np.linalg.norm(away, axis=1)
    second = _furthest(length)
    if not length[second] > 0.0:
        return None
    height = np.linalg.norm(np.cross(away, away[second] / length[second]), axis=1)
    third = _furthest(height)
    return np.array([first, second, third]) if height[third] > _FLAT * length[second] else None


def _furthest(distance: np.ndarray) -> int:
    """Choose the first that is as far as any: rounding, and with it place and turn of a scene, is not to choose."""
    return int(np.argmax(distance >= _AS_FAR * distance.max()))


class KeptShape(Joined):
    """Keeps the shape of nodes of a soft body, which may have any place and turn.

    Parameters
    ----------
    name : str
        Name in messages.
    body : int
        Number of the soft body in the system.
    nodes : ndarray of int, (k,)
        Its nodes, at least three that are not in one line.
    points : ndarray, (k, 3), m
        Where they start.
    chosen : ndarray of int, (3,)
        Which of them are the triad, see :func:`triad`.
    """

    kind = "kept shape"

    def __init__(self, name: str, body: int, nodes: np.ndarray, points: np.ndarray, chosen: np.ndarray) -> None:
        self._three, self._others = chosen, np.setdiff1d(np.arange(len(nodes)), chosen)
        mean = points[chosen].mean(axis=0)
        self._own, self._rest = points[chosen] - mean, points[self._others] - mean
        self._lengths = np.array([np.linalg.norm(points[chosen[a]] - points[chosen[b]]) for a, b in _PAIRS])
        self._at = points.copy()
        pose = np.concatenate([points.mean(axis=0), [1.0, 0.0, 0.0, 0.0]])
        super().__init__(name, (Side(body, NodeFrame(nodes), pose), Side(-1, None, pose)), Strength())

    def _read(self, q: Sequence[np.ndarray]) -> np.ndarray:
        frame = self.sides[0].frame
        assert frame is not None
        self._at = q[0][frame.rows].reshape(-1, 3)
        out = np.empty(3 * len(self._others) + 3)
        kernels.shape_kept(self._at, self._three, self._others, self._own, self._rest, self._lengths, out)
        return out

    def _points(self) -> np.ndarray:
        return self._at.copy()

    def _jacobian(self, shift: np.ndarray) -> np.ndarray:
        G = np.empty((3 * len(self._others) + 3, self._at.size))
        kernels.shape_rows(self._at + shift, self._three, self._others, G)
        return G

    def _wrench(self, lam: np.ndarray) -> np.ndarray:
        return np.zeros(6)

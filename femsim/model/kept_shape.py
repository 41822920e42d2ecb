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

from femsim.base.rotations import cross_matrix, nearest_rotation
from femsim.model.joined import Joined, NodeFrame, Side, Strength

#: Triads whose height is less than this part of their longest side are in one line.
_FLAT = 1e-3
_PAIRS = ((0, 1), (1, 2), (2, 0))


def triad(points: np.ndarray) -> np.ndarray | None:
    """Numbers (3,) of three points (k, 3) that are far from each other; None where all are in one line."""
    first = int(np.argmax(np.linalg.norm(points - points.mean(axis=0), axis=1)))
    away = points - points[first]
    length = np.linalg.norm(away, axis=1)
    second = int(np.argmax(length))
    if not length[second] > 0.0:
        return None
    height = np.linalg.norm(np.cross(away, away[second] / length[second]), axis=1)
    third = int(np.argmax(height))
    return np.array([first, second, third]) if height[third] > _FLAT * length[second] else None


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
        self._at = at = q[0][frame.rows].reshape(-1, 3)
        three = at[self._three]
        mean = three.mean(axis=0)
        turn = nearest_rotation((three - mean).T @ self._own)
        places = at[self._others] - mean - self._rest @ turn.T
        lengths = [np.linalg.norm(three[a] - three[b]) for a, b in _PAIRS]
        return np.concatenate([places.ravel(), np.array(lengths) - self._lengths])

    def _points(self) -> np.ndarray:
        return self._at.copy()

    def _jacobian(self, shift: np.ndarray) -> np.ndarray:
        points, own, others = self._at + shift, self._three, self._others
        k, n = len(points), len(others)
        three = points[own]
        mean = three.mean(axis=0)
        arms = three - mean
        inverse = np.linalg.inv((arms * arms).sum() * np.eye(3) - arms.T @ arms)
        spin = [inverse @ cross_matrix(arm) for arm in arms]  # angular velocity of the triad by the velocity of each
        G = np.zeros((3 * n + 3, 3 * k))
        lever = np.zeros((n, 3, 3))
        away = points[others] - mean
        lever[:, 0, 1], lever[:, 0, 2], lever[:, 1, 2] = -away[:, 2], away[:, 1], -away[:, 0]
        lever -= lever.transpose(0, 2, 1)
        rows = 3 * np.arange(n)[:, None] + np.arange(3)
        G[rows, 3 * others[:, None] + np.arange(3)] = 1.0
        for node, turning in zip(own, spin, strict=True):
            G[: 3 * n, 3 * node : 3 * node + 3] = (lever @ turning - np.eye(3) / 3.0).reshape(-1, 3)
        for row, (a, b) in enumerate(_PAIRS, start=3 * n):
            along = three[a] - three[b]
            along = along / np.linalg.norm(along)
            G[row, 3 * own[a] : 3 * own[a] + 3] = along
            G[row, 3 * own[b] : 3 * own[b] + 3] = -along
        return G

    def _wrench(self, lam: np.ndarray) -> np.ndarray:
        return np.zeros(6)

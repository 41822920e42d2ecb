"""Edges of a surface that pass through it."""

from __future__ import annotations

import numpy as np


def crossings(x: np.ndarray, triangles: np.ndarray, depth: float = 1e-6) -> int:
    """Count the edges that pass through a triangle they share no node with, both ends further than a depth (m) from its plane."""
    edges = np.unique(np.sort(triangles[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2), axis=1), axis=0)
    a, b, c = (x[triangles[:, i]] for i in range(3))
    normal = np.cross(b - a, c - a)
    normal /= np.linalg.norm(normal, axis=1)[:, None]
    count = 0
    for p, q in edges:
        start, end = ((x[k] - a) * normal for k in (p, q))
        start, end = start.sum(axis=1), end.sum(axis=1)
        apart = ~np.isin(triangles, (p, q)).any(axis=1)
        for t in np.flatnonzero(apart & (start * end < 0) & (np.minimum(np.abs(start), np.abs(end)) > depth)):
            point = x[p] + start[t] / (start[t] - end[t]) * (x[q] - x[p])
            weights, *_ = np.linalg.lstsq(np.column_stack([b[t] - a[t], c[t] - a[t]]), point - a[t], rcond=None)
            count += weights.min() > 1e-3 and weights.sum() < 1 - 1e-3
    return count

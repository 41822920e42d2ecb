"""Trees of boxes over the triangles or edges of bodies, for the kernels of :mod:`contact.tree_kernels`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from contact.tree_kernels import Forest

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


def plant(middles: Sequence[FloatArray], n_corners: int) -> Forest:
    """Plant a tree for each body over its features; neighbours in space share branches.

    Parameters
    ----------
    middles : sequence of ndarray, (k, 3), m
        Middles of the k features of each body.
    n_corners : int
        Points of a feature.

    Returns
    -------
    Forest
        The trees; their boxes are yet to be filled.
    """
    leaves, first, root = [], [0], [0]
    for middle in middles:
        n = len(middle)
        size = 1 << max(n - 1, 0).bit_length()
        leaf = np.full(size, -1, dtype=np.int64)
        # the leaves are spread evenly: no subtree is empty except at the bottom
        leaf[(np.arange(n) * size) // max(n, 1)] = _space_order(middle)
        leaves.append(leaf)
        first.append(first[-1] + n)
        root.append(root[-1] + size)
    leaf = np.concatenate([np.zeros(0, dtype=np.int64), *leaves])
    return Forest(np.array(first, dtype=np.int64), np.array(root, dtype=np.int64), leaf, np.empty((2 * len(leaf), 6)), n_corners)


def _space_order(middle: FloatArray) -> IntArray:
    """Return the order of points along a Z-curve of 2^20 cells a side, (n,)."""
    low = middle.min(axis=0, initial=np.inf)
    extent = float((middle - low).max(initial=0.0)) or 1.0
    cell = ((middle - low) / extent * (2**20 - 1)).astype(np.int64)
    code = np.zeros(len(middle), dtype=np.int64)
    for bit in range(20):
        for axis in range(3):
            code |= ((cell[:, axis] >> bit) & 1) << (3 * bit + axis)
    return np.argsort(code, kind="stable")

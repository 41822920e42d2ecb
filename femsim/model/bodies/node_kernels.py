"""Compiled means of elements at nodes."""

from __future__ import annotations

import math

import numpy as np

from contact.compiled import njit
from femsim.model.bodies.rotation_kernels import rotation_of

# squared length of a sum of quaternions below which they have no mean: those of one node are nearly opposite
_NO_MEAN = 1e-6


@njit(cache=True)
def node_rotations(elements: np.ndarray, quaternion: np.ndarray, rotation: np.ndarray) -> None:
    """Fill the mean rotation of the elements around each node, ``rotation`` (n, 3, 3); the identity where there is none.

    ``quaternion`` (m, 4) is that of each element, of either sign. It allocates the sums of the nodes.
    """
    total = np.zeros((rotation.shape[0], 4))
    for e in range(elements.shape[0]):
        q0, q1, q2, q3 = quaternion[e, 0], quaternion[e, 1], quaternion[e, 2], quaternion[e, 3]
        for a in range(elements.shape[1]):
            i = elements[e, a]
            along = total[i, 0] * q0 + total[i, 1] * q1 + total[i, 2] * q2 + total[i, 3] * q3
            sign = -1.0 if along < 0.0 else 1.0
            total[i, 0] += sign * q0
            total[i, 1] += sign * q1
            total[i, 2] += sign * q2
            total[i, 3] += sign * q3
    for i in range(rotation.shape[0]):
        square = total[i, 0] ** 2 + total[i, 1] ** 2 + total[i, 2] ** 2 + total[i, 3] ** 2
        w, x, y, z = 1.0, 0.0, 0.0, 0.0
        if square > _NO_MEAN:
            scale = 1.0 / math.sqrt(square)
            w, x, y, z = scale * total[i, 0], scale * total[i, 1], scale * total[i, 2], scale * total[i, 3]
        R = rotation_of((w, x, y, z))
        for r in range(3):
            for c in range(3):
                rotation[i, r, c] = R[3 * r + c]


@njit(cache=True, _nrt=False)
def same_numbers(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two arrays (n,) hold the same numbers; what is no number is like nothing."""
    for i in range(a.shape[0]):
        if not a[i] == b[i]:
            return False
    return True

"""Rotations as unit quaternions (w, x, y, z), one at a time: a step uses them once per body."""

from __future__ import annotations

import math

import numpy as np


def _numbers(a: np.ndarray) -> list[float]:
    """Return the entries of a vector as floats, in one call."""
    return np.asarray(a, dtype=np.float64).tolist()


def cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Cross product of two vectors (3,); ten times faster than numpy's, which is made for stacks of vectors."""
    (x0, y0, z0), (x1, y1, z1) = _numbers(a), _numbers(b)
    return np.array([y0 * z1 - z0 * y1, z0 * x1 - x0 * z1, x0 * y1 - y0 * x1])


def cross_matrix(a: np.ndarray) -> np.ndarray:
    """Matrix of the cross product a x, (3, 3) for a vector (3,), (n, 3, 3) for vectors (n, 3)."""
    out = np.zeros((*a.shape, 3))
    out[..., 0, 1], out[..., 0, 2], out[..., 1, 2] = -a[..., 2], a[..., 1], -a[..., 0]
    return np.asarray(out - np.swapaxes(out, -1, -2))


def nearest_rotation(M: np.ndarray) -> np.ndarray:
    """Rotation matrix (3, 3) with the least distance to a matrix (3, 3), in the norm of its entries."""
    left, _, right = np.linalg.svd(M)
    turn = left @ right
    if float(turn[0] @ cross(turn[1], turn[2])) < 0.0:  # a reflection
        left[:, 2] *= -1.0
        turn = left @ right
    return np.asarray(turn)


def quaternion_to_matrix(q: np.ndarray) -> np.ndarray:
    """Rotation matrix (3, 3) of a unit quaternion (4,)."""
    w, x, y, z = _numbers(q)
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def quaternion_from_matrix(R: np.ndarray) -> np.ndarray:
    """Turn a rotation matrix (3, 3) into a unit quaternion (4,), or many (n, 3, 3) into (n, 4), which takes hardly longer."""
    from scipy.spatial.transform import Rotation  # slow to import

    return Rotation.from_matrix(R).as_quat(scalar_first=True)


def quaternion_multiply(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Product a b: rotate by b, then by a."""
    (w0, x0, y0, z0), (w1, x1, y1, z1) = _numbers(a), _numbers(b)
    return np.array(
        [
            w0 * w1 - x0 * x1 - y0 * y1 - z0 * z1,
            w0 * x1 + x0 * w1 + y0 * z1 - z0 * y1,
            w0 * y1 - x0 * z1 + y0 * w1 + z0 * x1,
            w0 * z1 + x0 * y1 - y0 * x1 + z0 * w1,
        ]
    )


def quaternion_from_vector(rotation: np.ndarray) -> np.ndarray:
    """Exponential map: unit quaternion of a rotation vector (3,), rad."""
    angle = math.sqrt(float(rotation @ rotation))
    scale = 0.5 - angle * angle / 48.0 if angle < 1e-4 else math.sin(0.5 * angle) / angle
    return np.concatenate(([math.cos(0.5 * angle)], scale * np.asarray(rotation, dtype=np.float64)))


def angular_velocity(rotation: np.ndarray, rate: np.ndarray) -> np.ndarray:
    """Angular velocity (3,), rad/s, world, of a rotation vector (3,), rad, that changes at a rate (3,), rad/s."""
    angle = math.sqrt(float(rotation @ rotation))
    small = angle < 1e-3
    first = 0.5 - angle * angle / 24.0 if small else (1.0 - math.cos(angle)) / angle**2
    second = (1.0 - angle * angle / 20.0) / 6.0 if small else (angle - math.sin(angle)) / angle**3
    across = cross(rotation, rate)
    return np.asarray(rate + first * across + second * cross(rotation, across))


def vector_from_quaternion(q: np.ndarray) -> np.ndarray:
    """Rotation vector (3,), rad, of a unit quaternion, at most pi long."""
    q = -q if q[0] < 0 else q
    length = float(np.linalg.norm(q[1:]))
    if length < 1e-12:
        return np.asarray(2.0 * q[1:])
    return np.asarray(2.0 * math.atan2(length, float(q[0])) / length * q[1:])


def cayley_from_quaternion(q: np.ndarray) -> np.ndarray:
    """Vector (3,) of Cayley's map of a rotation by less than pi: 2 tan(angle/2) along its axis."""
    return np.asarray(2.0 * q[1:] / q[0])


def quaternion_conjugate(q: np.ndarray) -> np.ndarray:
    """Inverse rotation."""
    return np.asarray(q * np.array([1.0, -1.0, -1.0, -1.0]))

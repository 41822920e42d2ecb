"""Wrenches about another point, the wrench of a weight, and rotations as users write them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from femsim.base.errors import InputError
from femsim.base.rotations import quaternion_from_vector, quaternion_to_matrix


def rotation_matrix(what: str, value: Sequence[Any] | np.ndarray, *, degrees: bool = False) -> np.ndarray:
    """Read a rotation: a vector (3,) along the axis, as long as the angle, or a proper rotation matrix (3, 3).

    Parameters
    ----------
    what : str
        Name for messages.
    value : array_like
        Rotation vector (rad, or degrees) or matrix.
    degrees : bool
        Whether the angle of the vector is in degrees.

    Returns
    -------
    ndarray, (3, 3)

    Raises
    ------
    InputError
        Another shape, or a matrix that is not a rotation.
    """
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        array = np.zeros(0)
    if array.shape == (3,) and np.isfinite(array).all():
        return quaternion_to_matrix(quaternion_from_vector(np.radians(array) if degrees else array))
    if array.shape != (3, 3) or not np.allclose(array @ array.T, np.eye(3), atol=1e-6) or np.linalg.det(array) < 0:
        raise InputError(
            f"{what} is {value!r}; allowed are a rotation vector of 3 numbers and a 3 x 3 matrix with orthonormal, right-handed "
            "rows."
        )
    return array


def move_wrench(force: np.ndarray, torque: np.ndarray, arm: np.ndarray) -> np.ndarray:
    """Torque about another point: T + arm x F.

    Parameters
    ----------
    force, torque : ndarray, (..., 3), N and N m
        Wrench about the old point.
    arm : ndarray, (3,) or (..., 3), m
        Old point seen from the new one, same frame.
    """
    return np.asarray(torque + np.cross(np.broadcast_to(arm, np.shape(force)), force))


def weight_wrench(mass: float, centre: np.ndarray, gravity: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Force m g and torque c x m g of a weight, about the origin of the frame of centre and gravity.

    Parameters
    ----------
    mass : float, kg
        Mass that hangs on the sensor.
    centre : ndarray, (3,), m
        Its centre.
    gravity : ndarray, (3,), m/s^2
        Acceleration of gravity.
    """
    force = mass * np.asarray(gravity)
    return force, np.cross(centre, force)

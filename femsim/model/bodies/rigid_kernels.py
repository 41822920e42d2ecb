"""Kernel of the free rotation of a rigid body."""

from __future__ import annotations

import math

import numpy as np

from contact.compiled import njit
from femsim.model.bodies.rotation_kernels import Vector, cross, dot, scaled, times_vector

_MOST_PASSES = 60


@njit(cache=True)
def free_rotation(inverse: np.ndarray, spin: np.ndarray, dt: float, omega: np.ndarray, cayley: bool = False) -> bool:
    """Fill the constant angular velocity by which a free body turns in a step, so that it keeps energy and angular momentum.

    In the frame of the body at the start, with the angular momentum L0 = ``spin`` (3,) kg m^2/s there and exp(-dt omega) L0 at
    the end, omega = I^-1 (L0 + exp(-dt omega) L0)/2. The change of L is then square to omega, so the energy stays; of second
    order in dt. With ``cayley`` the body turns by Cayley's map of dt omega instead. ``inverse`` is I^-1, (3, 3),
    1/(kg m^2). False where the
    search for such an omega does not end, as where a body turns by radians; omega is then I^-1 L0.
    """
    L = (spin[0], spin[1], spin[2])
    inverted = (
        inverse[0, 0], inverse[0, 1], inverse[0, 2], inverse[1, 0], inverse[1, 1], inverse[1, 2],
        inverse[2, 0], inverse[2, 1], inverse[2, 2],
    )  # fmt: skip
    first = times_vector(inverted, L)
    w = first
    for _ in range(_MOST_PASSES):
        at_end = _turned_by_cayley(scaled(-dt, w), L) if cayley else _turned(scaled(-dt, w), L)
        new = times_vector(inverted, (0.5 * (L[0] + at_end[0]), 0.5 * (L[1] + at_end[1]), 0.5 * (L[2] + at_end[2])))
        change = (new[0] - w[0], new[1] - w[1], new[2] - w[2])
        w = new
        if dot(change, change) <= 1e-31 * dot(w, w):
            omega[0], omega[1], omega[2] = w
            return True
    omega[0], omega[1], omega[2] = first
    return False


@njit(cache=True, forceinline=True)
def _turned(r: Vector, x: Vector) -> Vector:
    """X turned by the rotation vector r, rad."""
    angle = math.sqrt(dot(r, r))
    if angle == 0.0:
        return x
    half = math.sin(0.5 * angle) / angle
    across = cross(r, x)
    twice = cross(r, across)
    one, two = math.sin(angle) / angle, 2.0 * half * half
    return (
        x[0] + one * across[0] + two * twice[0],
        x[1] + one * across[1] + two * twice[1],
        x[2] + one * across[2] + two * twice[2],
    )


@njit(cache=True, forceinline=True)
def _turned_by_cayley(r: Vector, x: Vector) -> Vector:
    """X turned by Cayley's map of r: x' - x = r x (x + x')/2."""
    across = cross(r, x)
    twice = cross(r, across)
    one = 1.0 / (1.0 + 0.25 * dot(r, r))
    return (
        x[0] + one * (across[0] + 0.5 * twice[0]),
        x[1] + one * (across[1] + 0.5 * twice[1]),
        x[2] + one * (across[2] + 0.5 * twice[2]),
    )

"""Kernels of bodies of rigid links: the velocity of their base, and the free rotation of a rigid body."""

from __future__ import annotations

import math

import numpy as np

from contact.compiled import njit
from contact.vector_kernels import cross, dot, times as scaled
from femsim.model.bodies.rotation_kernels import Vector, times_vector

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


@njit(cache=True, error_model="numpy")
def solve_leading(M: np.ndarray, x: np.ndarray) -> None:
    """Replace x (k,) by the solution y of M[:k, :k] y = x, M being symmetric and positive definite there, by Cholesky."""
    n = x.shape[0]
    L = np.zeros((n, n))
    for r in range(n):
        for c in range(r + 1):
            total = M[r, c]
            for k in range(c):
                total -= L[r, k] * L[c, k]
            L[r, c] = math.sqrt(total) if r == c else total / L[c, c]
    for r in range(n):
        for k in range(r):
            x[r] -= L[r, k] * x[k]
        x[r] /= L[r, r]
    for r in range(n - 1, -1, -1):
        for k in range(r + 1, n):
            x[r] -= L[k, r] * x[k]
        x[r] /= L[r, r]


@njit(cache=True, error_model="numpy")
def lead_base(
    M: np.ndarray, M_new: np.ndarray, v: np.ndarray, v_hat: np.ndarray, rate: np.ndarray, dt: float, theta: float,
    v_new: np.ndarray,
) -> None:  # fmt: skip
    """Fill the velocity of a base, the first six of v_new (n_v,), by linear momentum, and angular momentum about its centre.

    By the mid-point rule the angular momentum about places of the world stays. By others a point that flies along changes its own
    about these, so there that about the centre of mass of the whole stays, however fast it flies.

    Parameters
    ----------
    M, M_new : ndarray, (n_v, n_v)
        Mass matrices where the step starts and ends.
    v, v_hat : ndarray, (n_v,)
        Velocity at the start, and representative velocity; the centre moves by the latter.
    rate : ndarray, (n_v,), N and N m
        Rate of momentum.
    dt, theta : float, s and 1
        Time step, and the part of it after which forces are evaluated.
    v_new : ndarray, (n_v,)
        Its joints are read.
    """
    n = v.shape[0]
    before, after = np.zeros(6), np.empty(6)
    for i in range(6):
        for a in range(n):
            before[i] += M[i, a] * v[a]
        after[i] = before[i] + dt * rate[i]
    if theta == 0.5:
        way = (-dt * v_hat[0], -dt * v_hat[1], -dt * v_hat[2])
    else:  # of the centre of mass of the whole from that of the base
        way = (
            (M_new[1, 5] - M[1, 5]) / M[0, 0], (M_new[2, 3] - M[2, 3]) / M[0, 0], (M_new[0, 4] - M[0, 4]) / M[0, 0],
        )  # fmt: skip
    rest = 1.0 - theta
    held = (theta * before[0] + rest * after[0], theta * before[1] + rest * after[1], theta * before[2] + rest * after[2])
    carried = cross(way, held)
    for i in range(3):
        after[3 + i] += carried[i]
    for i in range(6):
        for a in range(6, n):
            after[i] -= M_new[i, a] * v_new[a]
    solve_leading(M_new, after)
    v_new[:6] = after

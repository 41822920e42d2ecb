"""Kernels of bodies of rigid links: their mass matrix, the velocity of their base, and the free rotation of a rigid body."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from contact.compiled import njit
from femsim.model.bodies.rotation_kernels import Vector, cross, dot, scaled, times_vector

_MOST_PASSES = 60


class Links(NamedTuple):
    """Links that slide on a base, which is the first.

    Attributes
    ----------
    mass : ndarray, (links,), kg
        Their masses.
    offset, axis : ndarray, (links, 3), m and 1
        From the base's centre of mass to theirs where joints are at 0, and joint directions (zero for the base), by the base.
    inertia : ndarray, (3, 3), kg m^2
        Sum of their inertias about their own centres of mass.
    """

    mass: np.ndarray
    offset: np.ndarray
    axis: np.ndarray
    inertia: np.ndarray


class Placed(NamedTuple):
    """What :func:`place_links` fills; the attributes are those of ``femsim.model.bodies.articulated._Configuration``."""

    rotation: np.ndarray
    lever: np.ndarray
    axis: np.ndarray
    arm: np.ndarray
    inertia: np.ndarray
    M: np.ndarray


@njit(cache=True)
def place_links(links: Links, q: np.ndarray, out: Placed) -> None:
    """Fill rotation, levers and mass matrix of the coordinates q (7 + joints,) of a body; the mass matrix must be 0."""
    w, x, y, z = q[3], q[4], q[5], q[6]
    R, M = out.rotation, out.M
    R[0, 0], R[0, 1], R[0, 2] = 1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)
    R[1, 0], R[1, 1], R[1, 2] = 2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)
    R[2, 0], R[2, 1], R[2, 2] = 2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)
    for r in range(3):
        for c in range(r + 1):
            total = 0.0
            for i in range(3):
                for j in range(3):
                    total += R[r, i] * links.inertia[i, j] * R[c, j]
            out.inertia[r, c] = out.inertia[c, r] = M[3 + r, 3 + c] = M[3 + c, 3 + r] = total
    for k in range(links.mass.shape[0]):
        mass, row = links.mass[k], 5 + k
        for r in range(3):
            axis, offset = links.axis, links.offset
            out.axis[k, r] = R[r, 0] * axis[k, 0] + R[r, 1] * axis[k, 1] + R[r, 2] * axis[k, 2]
            out.lever[k, r] = R[r, 0] * offset[k, 0] + R[r, 1] * offset[k, 1] + R[r, 2] * offset[k, 2]
            if k > 0:
                out.lever[k, r] += out.axis[k, r] * q[6 + k]
        p, a = (out.lever[k, 0], out.lever[k, 1], out.lever[k, 2]), (out.axis[k, 0], out.axis[k, 1], out.axis[k, 2])
        arm = cross(p, a)
        square, along = dot(p, p), dot(a, a)
        M[0, 4] += mass * p[2]
        M[0, 5] -= mass * p[1]
        M[1, 5] += mass * p[0]
        for r in range(3):
            out.arm[k, r] = arm[r]
            M[r, r] += mass
            for c in range(3):
                M[3 + r, 3 + c] += mass * ((square if r == c else 0.0) - p[r] * p[c])
            if k > 0:
                M[row, r] = M[r, row] = mass * a[r]
                M[row, 3 + r] = M[3 + r, row] = mass * arm[r]
        if k > 0:
            M[row, row] = mass * along
    M[1, 3], M[2, 3], M[2, 4] = -M[0, 4], -M[0, 5], -M[1, 5]
    M[4, 0], M[5, 0], M[5, 1] = M[0, 4], M[0, 5], M[1, 5]
    M[3, 1], M[3, 2], M[4, 2] = M[1, 3], M[2, 3], M[2, 4]


@njit(cache=True)
def turn_by_cayley(q: np.ndarray, r: np.ndarray, out: np.ndarray) -> None:
    """Fill the unit quaternion q (4,) turned by Cayley's map of a vector (3,), world frame: (1 + r/2) q, normalised."""
    w0, x0, y0, z0 = 1.0, 0.5 * r[0], 0.5 * r[1], 0.5 * r[2]
    w1, x1, y1, z1 = q[0], q[1], q[2], q[3]
    w, x = w0 * w1 - x0 * x1 - y0 * y1 - z0 * z1, w0 * x1 + x0 * w1 + y0 * z1 - z0 * y1
    y, z = w0 * y1 - x0 * z1 + y0 * w1 + z0 * x1, w0 * z1 + x0 * y1 - y0 * x1 + z0 * w1
    size = math.sqrt(w * w + x * x + y * y + z * z)
    out[0], out[1], out[2], out[3] = w / size, x / size, y / size, z / size


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
def solve_base(M: np.ndarray, x: np.ndarray) -> None:
    """Replace x (6,) by the solution y of M[:6, :6] y = x, M being symmetric and positive definite there, by Cholesky."""
    L = np.zeros((6, 6))
    for r in range(6):
        for c in range(r + 1):
            total = M[r, c]
            for k in range(c):
                total -= L[r, k] * L[c, k]
            L[r, c] = math.sqrt(total) if r == c else total / L[c, c]
    for r in range(6):
        for k in range(r):
            x[r] -= L[r, k] * x[k]
        x[r] /= L[r, r]
    for r in range(5, -1, -1):
        for k in range(r + 1, 6):
            x[r] -= L[k, r] * x[k]
        x[r] /= L[r, r]


@njit(cache=True, error_model="numpy")
def lead_base(
    M: np.ndarray, M_new: np.ndarray, v: np.ndarray, v_hat: np.ndarray, rate: np.ndarray, dt: float, v_new: np.ndarray
) -> None:
    """Fill the velocity of a base, the first six of v_new (n_v,), by linear momentum, and angular momentum about its centre.

    Parameters
    ----------
    M, M_new : ndarray, (n_v, n_v)
        Mass matrices where the step starts and ends.
    v, v_hat : ndarray, (n_v,)
        Velocity at the start, and representative velocity; the centre moves by the latter.
    rate : ndarray, (n_v,), N and N m
        Rate of momentum.
    dt : float, s
        Time step.
    v_new : ndarray, (n_v,)
        Its joints are read.
    """
    n = v.shape[0]
    before, after = np.zeros(6), np.empty(6)
    for i in range(6):
        for a in range(n):
            before[i] += M[i, a] * v[a]
        after[i] = before[i] + dt * rate[i]
    mean = (0.5 * (before[0] + after[0]), 0.5 * (before[1] + after[1]), 0.5 * (before[2] + after[2]))
    carried = cross((v_hat[0], v_hat[1], v_hat[2]), mean)
    for i in range(3):
        after[3 + i] -= dt * carried[i]
    for i in range(6):
        for a in range(6, n):
            after[i] -= M_new[i, a] * v_new[a]
    solve_base(M_new, after)
    v_new[:6] = after

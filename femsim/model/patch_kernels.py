"""Compiled kernels of some nodes of a soft body that turn together: their frame, and the rows that keep their shape."""

from __future__ import annotations

import math

import numpy as np

from contact.compiled import njit
from femsim.model.bodies.rotation_kernels import (
    Matrix,
    Vector,
    cofactors,
    polar_quaternion,
    rotation_of,
    symmetric_times,
    times_vector,
)


@njit(cache=True, inner=True)
def weighted(x: np.ndarray, y: np.ndarray) -> Matrix:
    """Return the sum of x y^T over vectors (k, 3)."""
    c = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    for i in range(x.shape[0]):
        c = (
            c[0] + x[i, 0] * y[i, 0], c[1] + x[i, 0] * y[i, 1], c[2] + x[i, 0] * y[i, 2],
            c[3] + x[i, 1] * y[i, 0], c[4] + x[i, 1] * y[i, 1], c[5] + x[i, 1] * y[i, 2],
            c[6] + x[i, 2] * y[i, 0], c[7] + x[i, 2] * y[i, 1], c[8] + x[i, 2] * y[i, 2],
        )  # fmt: skip
    return c


@njit(cache=True, inner=True)
def arms_of(points: np.ndarray, triad: np.ndarray, arms: np.ndarray, mean: np.ndarray) -> None:
    """Fill the mean (3,) of three of the points (k, 3) and where they are from there, (3, 3), m."""
    for c in range(3):
        mean[c] = (points[triad[0], c] + points[triad[1], c] + points[triad[2], c]) / 3.0
        for i in range(3):
            arms[i, c] = points[triad[i], c] - mean[c]


@njit(cache=True, inner=True)
def cross_axis(a: Vector, c: int) -> Vector:
    """Return a x e_c, e_c the unit vector of axis c."""
    return (0.0, a[2], -a[1]) if c == 0 else ((-a[2], 0.0, a[0]) if c == 1 else (a[1], -a[0], 0.0))


@njit(cache=True)
def place_patch(
    x: np.ndarray,
    weights: np.ndarray,
    rest: np.ndarray,
    local: np.ndarray,
    turn: np.ndarray,
    pose: np.ndarray,
    arm: np.ndarray,
    G: np.ndarray,
) -> None:
    """Fill the pose of a frame on nodes, (7,), its lever, (3,), and its Jacobian, (6, 3 k), see ``PatchFrame``.

    Parameters
    ----------
    x, rest : ndarray, (k, 3), m
        Nodes now, and at rest from their weighted mean.
    weights : ndarray, (k,)
        Weights, which sum to 1.
    local, turn : ndarray, (3,), m, and (4,)
        Place and quaternion of the frame at rest, from that mean.
    """
    k, mean = x.shape[0], np.zeros(3)
    for i in range(k):
        for c in range(3):
            mean[c] += weights[i] * x[i, c]
    arms = np.empty((k, 3))
    for i in range(k):
        for c in range(3):
            arms[i, c] = weights[i] * (x[i, c] - mean[c])
    C = weighted(arms, rest)
    q, _ = polar_quaternion(C, (1.0, 0.0, 0.0, 0.0))
    R = rotation_of(q)
    lever = times_vector(R, (local[0], local[1], local[2]))
    for c in range(3):
        pose[c], arm[c] = mean[c] + lever[c], lever[c]
    t0, t1, t2, t3 = turn[0], turn[1], turn[2], turn[3]
    pose[3] = q[0] * t0 - q[1] * t1 - q[2] * t2 - q[3] * t3
    pose[4] = q[0] * t1 + q[1] * t0 + q[2] * t3 - q[3] * t2
    pose[5] = q[0] * t2 - q[1] * t3 + q[2] * t0 + q[3] * t1
    pose[6] = q[0] * t3 + q[1] * t2 - q[2] * t1 + q[3] * t0
    # P = C R^T, symmetric; tr(P) I - P
    p00 = C[0] * R[0] + C[1] * R[1] + C[2] * R[2]
    p11 = C[3] * R[3] + C[4] * R[4] + C[5] * R[5]
    p22 = C[6] * R[6] + C[7] * R[7] + C[8] * R[8]
    p01 = 0.5 * (C[0] * R[3] + C[1] * R[4] + C[2] * R[5] + C[3] * R[0] + C[4] * R[1] + C[5] * R[2])
    p02 = 0.5 * (C[0] * R[6] + C[1] * R[7] + C[2] * R[8] + C[6] * R[0] + C[7] * R[1] + C[8] * R[2])
    p12 = 0.5 * (C[3] * R[6] + C[4] * R[7] + C[5] * R[8] + C[6] * R[3] + C[7] * R[4] + C[8] * R[5])
    H = (p11 + p22, p00 + p22, p00 + p11, -p01, -p02, -p12)
    cofactor = cofactors(H)
    det = H[0] * cofactor[0] + H[3] * cofactor[3] + H[4] * cofactor[4]
    G[:] = 0.0
    for i in range(k):
        a = times_vector(R, (rest[i, 0], rest[i, 1], rest[i, 2]))
        w = weights[i] / det
        for c in range(3):
            spin = symmetric_times(cofactor, cross_axis(a, c))
            s0, s1, s2 = w * spin[0], w * spin[1], w * spin[2]
            j = 3 * i + c
            G[3, j], G[4, j], G[5, j] = s0, s1, s2
            G[0, j] = s1 * lever[2] - s2 * lever[1]
            G[1, j] = s2 * lever[0] - s0 * lever[2]
            G[2, j] = s0 * lever[1] - s1 * lever[0]
            G[c, j] += weights[i]


@njit(cache=True)
def shape_kept(
    points: np.ndarray,
    triad: np.ndarray,
    others: np.ndarray,
    own: np.ndarray,
    rest: np.ndarray,
    lengths: np.ndarray,
    out: np.ndarray,
) -> None:
    """Fill what the rows of ``KeptShape`` lack, (3 n + 3,): places of the others in the axes of a triad, and its sides.

    Parameters
    ----------
    points : ndarray, (k, 3), m
        Nodes now.
    triad, others : ndarray of int64, (3,) and (n,)
        Which are which.
    own, rest : ndarray, (3, 3) and (n, 3), m
        The triad and the others at the start, from its mean.
    lengths : ndarray, (3,), m
        Sides of the triad then.
    """
    mean, arms, n = np.zeros(3), np.empty((3, 3)), others.shape[0]
    arms_of(points, triad, arms, mean)
    q, _ = polar_quaternion(weighted(arms, own), (1.0, 0.0, 0.0, 0.0))
    R = rotation_of(q)
    for i in range(n):
        a = times_vector(R, (rest[i, 0], rest[i, 1], rest[i, 2]))
        for c in range(3):
            out[3 * i + c] = points[others[i], c] - mean[c] - a[c]
    for i in range(3):
        total = 0.0
        for c in range(3):
            total += (points[triad[i], c] - points[triad[(i + 1) % 3], c]) ** 2
        out[3 * n + i] = math.sqrt(total) - lengths[i]


@njit(cache=True)
def shape_rows(points: np.ndarray, triad: np.ndarray, others: np.ndarray, G: np.ndarray) -> None:
    """Fill the velocities of these rows by those of the nodes, (3 n + 3, 3 k); arguments as for :func:`shape_kept`."""
    mean, arms, n = np.zeros(3), np.empty((3, 3)), others.shape[0]
    arms_of(points, triad, arms, mean)
    S = weighted(arms, arms)
    H = (S[4] + S[8], S[0] + S[8], S[0] + S[4], -S[1], -S[2], -S[5])
    cofactor = cofactors(H)
    det = H[0] * cofactor[0] + H[3] * cofactor[3] + H[4] * cofactor[4]
    G[:] = 0.0
    for i in range(n):
        for c in range(3):
            G[3 * i + c, 3 * others[i] + c] = 1.0
    for t in range(3):
        for c in range(3):
            # the angular velocity of the triad that a unit velocity of one of its points makes
            spin = symmetric_times(cofactor, cross_axis((arms[t, 0], arms[t, 1], arms[t, 2]), c))
            s0, s1, s2 = spin[0] / det, spin[1] / det, spin[2] / det
            j = 3 * triad[t] + c
            for i in range(n):
                x, y, z = points[others[i], 0] - mean[0], points[others[i], 1] - mean[1], points[others[i], 2] - mean[2]
                G[3 * i, j] -= s1 * z - s2 * y
                G[3 * i + 1, j] -= s2 * x - s0 * z
                G[3 * i + 2, j] -= s0 * y - s1 * x
                G[3 * i + c, j] -= 1.0 / 3.0
    for i in range(3):
        a, b, total = triad[i], triad[(i + 1) % 3], 0.0
        for c in range(3):
            total += (points[a, c] - points[b, c]) ** 2
        length = math.sqrt(total)
        for c in range(3):
            along = (points[a, c] - points[b, c]) / length
            G[3 * n + i, 3 * a + c] = along
            G[3 * n + i, 3 * b + c] = -along

"""Kernels of the position-based rod: substeps of prediction, one sweep of joints and contacts, and velocities; arrays filled.

Poses are numbered as in ``femsim.model.bodies.rod_kernels``: the frame of the start, the n links, the frame of the end; joint k
stands between poses k and k + 1. Frames have no inverse mass.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from femsim.model.bodies.rod_kernels import ABSENT, BALL, _middle_rotation
from femsim.model.bodies.soft_kernels import rotation_entries

#: 3x3 matrices that a joint needs while it is projected.
SCRATCH = 9
_HI, _HJ, _II, _IJ, _L, _R, _GI, _GJ, _T = range(SCRATCH)


@njit(cache=True)
def _turn(poses: np.ndarray, p: int, x: float, y: float, z: float) -> None:
    """Turn the quaternion of a pose by a small rotation vector (world), and make it of unit length."""
    q0 = poses[p, 3]
    q1 = poses[p, 4]
    q2 = poses[p, 5]
    q3 = poses[p, 6]
    a = q0 - 0.5 * (x * q1 + y * q2 + z * q3)
    b = q1 + 0.5 * (x * q0 + y * q3 - z * q2)
    c = q2 + 0.5 * (y * q0 + z * q1 - x * q3)
    d = q3 + 0.5 * (z * q0 + x * q2 - y * q1)
    scale = 1.0 / math.sqrt(a * a + b * b + c * c + d * d)
    poses[p, 3] = scale * a
    poses[p, 4] = scale * b
    poses[p, 5] = scale * c
    poses[p, 6] = scale * d


@njit(cache=True)
def _rotation(poses: np.ndarray, p: int, out: np.ndarray) -> None:
    """Fill the rotation matrix (3, 3) of a pose."""
    (
        out[0, 0], out[0, 1], out[0, 2], out[1, 0], out[1, 1], out[1, 2], out[2, 0], out[2, 1], out[2, 2],
    ) = rotation_entries(poses[p, 3], poses[p, 4], poses[p, 5], poses[p, 6])  # fmt: skip


@njit(cache=True)
def _turned_diagonal(R: np.ndarray, d0: float, d1: float, d2: float, out: np.ndarray) -> None:
    """Fill out (3, 3) with R diag(d0, d1, d2) R^T."""
    for r in range(3):
        for c in range(3):
            out[r, c] = R[r, 0] * d0 * R[c, 0] + R[r, 1] * d1 * R[c, 1] + R[r, 2] * d2 * R[c, 2]


@njit(cache=True)
def _times(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
    """Fill out (3, 3) with a b."""
    for r in range(3):
        for c in range(3):
            out[r, c] = a[r, 0] * b[0, c] + a[r, 1] * b[1, c] + a[r, 2] * b[2, c]


@njit(cache=True)
def _cross_matrix(x: float, y: float, z: float, out: np.ndarray) -> None:
    """Fill out (3, 3) with the matrix of the cross product, [x, y, z] times."""
    out[0, 0] = out[1, 1] = out[2, 2] = 0.0
    out[0, 1] = -z
    out[0, 2] = y
    out[1, 0] = z
    out[1, 2] = -x
    out[2, 0] = -y
    out[2, 1] = x


@njit(cache=True)
def solve_spd(S: np.ndarray, y: np.ndarray, n: int) -> None:
    """Replace y (n,) by S^-1 y, S (n, n) symmetric positive definite; S becomes its Cholesky factor (lower triangle)."""
    for r in range(n):
        for c in range(r + 1):
            total = S[r, c]
            for k in range(c):
                total -= S[r, k] * S[c, k]
            S[r, c] = math.sqrt(total) if r == c else total / S[c, c]
        total = y[r]
        for k in range(r):
            total -= S[r, k] * y[k]
        y[r] = total / S[r, r]
    for r in range(n - 1, -1, -1):
        total = y[r]
        for k in range(r + 1, n):
            total -= S[k, r] * y[k]
        y[r] = total / S[r, r]


@njit(cache=True)
def project_joint(
    k: int,
    poses: np.ndarray,
    arm: np.ndarray,
    kind: np.ndarray,
    stiffness: np.ndarray,
    rest: np.ndarray,
    inverse_mass: np.ndarray,
    inverse_inertia: np.ndarray,
    square: float,
    lam: np.ndarray,
    end_wrench: np.ndarray,
    scratch: np.ndarray,
    S: np.ndarray,
    y: np.ndarray,
) -> None:
    """Project joint k: move both its poses by h^2 M^-1 J^T d, (h^2 J M^-1 J^T + K^-1) d = -(e + K^-1 lam), and add d to lam.

    ``poses`` (n + 2, 7) change; ``arm``, ``kind``, ``stiffness`` and ``rest`` as in :class:`femsim.model.bodies.rod.RodJoints`;
    ``inverse_mass`` (n + 2,) 1/kg and ``inverse_inertia`` (n + 2, 3) 1/(kg m^2) about the axes of the link; ``square`` is h^2,
    s^2; ``lam`` (n + 1, 6) N and N m, world axes. Of the first and the last joint J^T d is added to ``end_wrench`` (2, 6), the
    wrench on the frame. ``scratch`` (SCRATCH, 3, 3), ``S`` (6, 6) and ``y`` (6,) are overwritten.

    Long because it is one formula whose 3 x 3 blocks are shared by all three kinds of joint; its arrays are those of a run.
    e is the strain of :func:`femsim.model.bodies.rod_kernels.joint_states` with its exact derivative, turned to world axes.
    """
    if kind[k] == ABSENT:
        return
    i, j = k, k + 1
    R, L, turned = scratch[_R], scratch[_L], scratch[_T]
    _rotation(poses, i, R)
    ci0 = arm[i] * R[0, 2]
    ci1 = arm[i] * R[1, 2]
    ci2 = arm[i] * R[2, 2]
    _turned_diagonal(R, inverse_inertia[i, 0], inverse_inertia[i, 1], inverse_inertia[i, 2], scratch[_II])
    _rotation(poses, j, R)
    cj0 = arm[j] * R[0, 2]
    cj1 = arm[j] * R[1, 2]
    cj2 = arm[j] * R[2, 2]
    _turned_diagonal(R, inverse_inertia[j, 0], inverse_inertia[j, 1], inverse_inertia[j, 2], scratch[_IJ])
    g0 = (poses[j, 0] - cj0) - (poses[i, 0] + ci0)
    g1 = (poses[j, 1] - cj1) - (poses[i, 1] + ci1)
    g2 = (poses[j, 2] - cj2) - (poses[i, 2] + ci2)
    y[0] = g0
    y[1] = g1
    y[2] = g2
    size = 3
    if kind[k] == BALL:
        _cross_matrix(ci0, ci1, ci2, scratch[_HI])
        _cross_matrix(cj0, cj1, cj2, scratch[_HJ])
    else:
        size = 6
        q0, q1, q2, q3, phi0, phi1, phi2 = _middle_rotation(poses, i, j)
        (
            R[0, 0], R[0, 1], R[0, 2], R[1, 0], R[1, 1], R[1, 2], R[2, 0], R[2, 1], R[2, 2],
        ) = rotation_entries(q0, q1, q2, q3)  # fmt: skip
        e0 = phi0 - rest[k, 0]
        e1 = phi1 - rest[k, 1]
        e2 = phi2 - rest[k, 2]
        p0 = R[0, 0] * phi0 + R[0, 1] * phi1 + R[0, 2] * phi2
        p1 = R[1, 0] * phi0 + R[1, 1] * phi1 + R[1, 2] * phi2
        p2 = R[2, 0] * phi0 + R[2, 1] * phi1 + R[2, 2] * phi2
        for r in range(3):
            y[3 + r] = R[r, 0] * e0 + R[r, 1] * e1 + R[r, 2] * e2
        angle = math.sqrt(p0 * p0 + p1 * p1 + p2 * p2)
        if angle < 1e-3:  # the next terms of the series are below 1e-13
            s = 1.0 + angle * angle / 24.0
            along = -1.0 / 24.0
            half = 0.125 + angle * angle / 384.0
        else:
            s = 0.5 * angle / math.sin(0.5 * angle)
            along = (1.0 - s) / (angle * angle)
            half = 0.5 * math.tan(0.25 * angle) / angle
        _cross_matrix(ci0 + 0.5 * g0, ci1 + 0.5 * g1, ci2 + 0.5 * g2, scratch[_HI])
        _cross_matrix(cj0 + 0.5 * g0, cj1 + 0.5 * g1, cj2 + 0.5 * g2, scratch[_HJ])
        dot = half * (g0 * p0 + g1 * p1 + g2 * p2)
        for r in range(3):
            p = p0 if r == 0 else (p1 if r == 1 else p2)
            L[r, 0] = along * p * p0
            L[r, 1] = along * p * p1
            L[r, 2] = along * p * p2
            L[r, r] += s
            p *= half
            for c in range(3):
                x = p * (g0 if c == 0 else (g1 if c == 1 else g2)) - (dot if r == c else 0.0)
                scratch[_HI, r, c] += x
                scratch[_HJ, r, c] -= x
    # with G = H I^-1: S_gg = sum of 1/m + H I^-1 H^T, S_pg = L (G_j - G_i)^T, S_pp = L (I_i^-1 + I_j^-1) L
    _times(scratch[_HI], scratch[_II], scratch[_GI])
    _times(scratch[_HJ], scratch[_IJ], scratch[_GJ])
    for r in range(3):
        for c in range(r + 1):
            total = 0.0
            for m in range(3):
                total += scratch[_GI, r, m] * scratch[_HI, c, m] + scratch[_GJ, r, m] * scratch[_HJ, c, m]
            S[r, c] = square * total
        S[r, r] += square * (inverse_mass[i] + inverse_mass[j])
    if size == 3:
        for r in range(3):
            S[r, r] += 1.0 / stiffness[k, 2]
            y[r] += lam[k, r] / stiffness[k, 2]
    else:
        for r in range(3):
            for c in range(3):
                total = 0.0
                for m in range(3):
                    total += L[r, m] * (scratch[_GJ, c, m] - scratch[_GI, c, m])
                S[3 + r, c] = square * total
        for r in range(3):
            for c in range(3):
                total = 0.0
                for m in range(3):
                    total += L[r, m] * (scratch[_II, m, c] + scratch[_IJ, m, c])
                turned[r, c] = total
        for r in range(3):
            for c in range(r + 1):
                total = 0.0
                for m in range(3):
                    total += turned[r, m] * L[m, c]
                S[3 + r, 3 + c] = square * total
        for part in range(2):
            o = 3 * part
            _turned_diagonal(R, 1.0 / stiffness[k, o], 1.0 / stiffness[k, o + 1], 1.0 / stiffness[k, o + 2], turned)
            for r in range(3):
                for c in range(r + 1):
                    S[o + r, o + c] += turned[r, c]
                for c in range(3):
                    y[o + r] += turned[r, c] * lam[k, o + c]
    solve_spd(S, y, size)
    for r in range(size):
        y[r] = -y[r]
        lam[k, r] += y[r]
    # wrenches J^T d on both sides, their torques in S
    for r in range(3):
        S[0, r] = scratch[_HI, 0, r] * y[0] + scratch[_HI, 1, r] * y[1] + scratch[_HI, 2, r] * y[2]
        S[1, r] = scratch[_HJ, 0, r] * y[0] + scratch[_HJ, 1, r] * y[1] + scratch[_HJ, 2, r] * y[2]
        if size == 6:
            couple = L[r, 0] * y[3] + L[r, 1] * y[4] + L[r, 2] * y[5]
            S[0, r] -= couple
            S[1, r] += couple
    for side in range(2):
        p = i + side
        sign = 2.0 * side - 1.0
        inverse = scratch[_II + side]
        if inverse_mass[p] > 0.0:
            for r in range(3):
                poses[p, r] += sign * square * inverse_mass[p] * y[r]
            _turn(
                poses, p,
                square * (inverse[0, 0] * S[side, 0] + inverse[0, 1] * S[side, 1] + inverse[0, 2] * S[side, 2]),
                square * (inverse[1, 0] * S[side, 0] + inverse[1, 1] * S[side, 1] + inverse[1, 2] * S[side, 2]),
                square * (inverse[2, 0] * S[side, 0] + inverse[2, 1] * S[side, 1] + inverse[2, 2] * S[side, 2]),
            )  # fmt: skip
        else:
            for r in range(3):
                end_wrench[side, r] += sign * y[r]
                end_wrench[side, 3 + r] += S[side, r]


@njit(cache=True)
def project_contact(
    poses: np.ndarray,
    p: int,
    start: np.ndarray,
    before: np.ndarray,
    frame: np.ndarray,
    gap: float,
    mu: float,
    weight: float,
    lam: np.ndarray,
) -> None:
    """Project the centre of pose p out of a plane and back along it, and fill lam (3,) N, normal first, with the contact force.

    ``start`` and ``before`` (3,) m are its positions at the start of the step, where the distance is ``gap``, and of the substep;
    ``frame`` (3, 3) the normal and two tangents; ``weight`` m / h^2, N/m. The force that takes back the penetration and the way
    along the plane is clipped: the normal part to what presses, then the tangential part to mu times it.
    """
    distance = gap
    along1 = along2 = 0.0
    for c in range(3):
        distance += frame[0, c] * (poses[p, c] - start[c])
        way = poses[p, c] - before[c]
        along1 += frame[1, c] * way
        along2 += frame[2, c] * way
    normal = max(lam[0] - weight * distance, 0.0)
    side1 = lam[1] - weight * along1
    side2 = lam[2] - weight * along2
    length = math.sqrt(side1 * side1 + side2 * side2)
    if length > mu * normal:
        side1 *= mu * normal / length
        side2 *= mu * normal / length
    for c in range(3):
        change = frame[0, c] * (normal - lam[0]) + frame[1, c] * (side1 - lam[1]) + frame[2, c] * (side2 - lam[2])
        poses[p, c] += change / weight
    lam[0] = normal
    lam[1] = side1
    lam[2] = side2


@njit(cache=True)
def predict(
    poses: np.ndarray,
    velocity: np.ndarray,
    inverse_mass: np.ndarray,
    inverse_inertia: np.ndarray,
    force: np.ndarray,
    h: float,
    R: np.ndarray,
    inverse: np.ndarray,
) -> None:
    """Move poses (n + 2, 7) by their velocities (n + 2, 6) after the forces (n + 2, 6) have changed these.

    Poses without inverse mass go on as they are. ``R`` and ``inverse`` (3, 3) are overwritten. The gyroscopic torque is left out.
    """
    for p in range(poses.shape[0]):
        if inverse_mass[p] > 0.0:
            _rotation(poses, p, R)
            _turned_diagonal(R, inverse_inertia[p, 0], inverse_inertia[p, 1], inverse_inertia[p, 2], inverse)
            for c in range(3):
                velocity[p, c] += h * inverse_mass[p] * force[p, c]
                velocity[p, 3 + c] += h * (
                    inverse[c, 0] * force[p, 3] + inverse[c, 1] * force[p, 4] + inverse[c, 2] * force[p, 5]
                )
        for c in range(3):
            poses[p, c] += h * velocity[p, c]
        _turn(poses, p, h * velocity[p, 3], h * velocity[p, 4], h * velocity[p, 5])


@njit(cache=True)
def slow_down(
    poses: np.ndarray,
    velocity: np.ndarray,
    inverse_mass: np.ndarray,
    inverse_inertia: np.ndarray,
    damping: np.ndarray,
    h: float,
    R: np.ndarray,
) -> None:
    """Take drag from the velocities, implicitly: ``damping`` (n + 2, 4) N s/m and, about the axes of the link, N m s/rad.

    It comes after the joints, so that what is at rest feels none. ``R`` (3, 3) is overwritten.
    """
    for p in range(poses.shape[0]):
        if inverse_mass[p] == 0.0:
            continue
        factor = 1.0 / (1.0 + h * damping[p, 0] * inverse_mass[p])
        spin0 = spin1 = spin2 = 0.0
        _rotation(poses, p, R)
        for a in range(3):
            own = R[0, a] * velocity[p, 3] + R[1, a] * velocity[p, 4] + R[2, a] * velocity[p, 5]
            own /= 1.0 + h * damping[p, 1 + a] * inverse_inertia[p, a]
            spin0 += R[0, a] * own
            spin1 += R[1, a] * own
            spin2 += R[2, a] * own
            velocity[p, a] *= factor
        velocity[p, 3] = spin0
        velocity[p, 4] = spin1
        velocity[p, 5] = spin2


@njit(cache=True)
def find_velocities(poses: np.ndarray, before: np.ndarray, inverse_mass: np.ndarray, h: float, velocity: np.ndarray) -> None:
    """Fill the velocities (n + 2, 6) that lead from poses ``before`` to ``poses`` (n + 2, 7) in h s; those of frames stay."""
    for p in range(poses.shape[0]):
        if inverse_mass[p] == 0.0:
            continue
        for c in range(3):
            velocity[p, c] = (poses[p, c] - before[p, c]) / h
        a0 = before[p, 3]
        a1 = before[p, 4]
        a2 = before[p, 5]
        a3 = before[p, 6]
        b0 = poses[p, 3]
        b1 = poses[p, 4]
        b2 = poses[p, 5]
        b3 = poses[p, 6]
        # vector part of b conjugate(a), over its scalar part: tan of half the angle, which _turn undoes
        w = 2.0 / (h * (a0 * b0 + a1 * b1 + a2 * b2 + a3 * b3))
        velocity[p, 3] = w * (a0 * b1 - a1 * b0 + a2 * b3 - a3 * b2)
        velocity[p, 4] = w * (a0 * b2 - a2 * b0 + a3 * b1 - a1 * b3)
        velocity[p, 5] = w * (a0 * b3 - a3 * b0 + a1 * b2 - a2 * b1)


@njit(cache=True)
def run_substeps(
    poses: np.ndarray,
    velocity: np.ndarray,
    before: np.ndarray,
    start: np.ndarray,
    arm: np.ndarray,
    kind: np.ndarray,
    stiffness: np.ndarray,
    rest: np.ndarray,
    inverse_mass: np.ndarray,
    inverse_inertia: np.ndarray,
    damping: np.ndarray,
    force: np.ndarray,
    contact_pose: np.ndarray,
    contact_gap: np.ndarray,
    contact_frame: np.ndarray,
    friction: np.ndarray,
    h: float,
    substeps: int,
    iterations: int,
    lam: np.ndarray,
    contact_lam: np.ndarray,
    contact_sum: np.ndarray,
    end_wrench: np.ndarray,
    scratch: np.ndarray,
    S: np.ndarray,
    y: np.ndarray,
) -> None:
    """Take the substeps of a step; sweeps of joints go forth and back in turn, contacts follow each sweep.

    Many arguments, since a kernel takes the arrays of a run one by one.
    ``poses`` (n + 2, 7) and ``velocity`` (n + 2, 6) are advanced; ``start`` holds the poses at the start of the step, where the
    nc contacts were found: ``contact_pose`` (nc,) the pose that touches, ``contact_gap`` (nc,) m, ``contact_frame`` (nc, 3, 3),
    ``friction`` (nc,). ``contact_sum`` (nc, 3) and ``end_wrench`` (2, 6) become means of the forces over the substeps.
    Other arrays as in :func:`project_joint`, :func:`predict` and :func:`slow_down`.
    """
    last = kind.shape[0] - 1
    contact_sum[:] = 0.0
    end_wrench[:] = 0.0
    for substep in range(substeps):
        before[:] = poses
        predict(poses, velocity, inverse_mass, inverse_inertia, force, h, scratch[_R], scratch[_T])
        lam[:] = 0.0
        contact_lam[:] = 0.0
        for iteration in range(iterations):
            for number in range(last + 1):
                k = number if (substep + iteration) % 2 == 0 else last - number
                project_joint(
                    k, poses, arm, kind, stiffness, rest, inverse_mass, inverse_inertia, h * h, lam, end_wrench, scratch, S, y
                )
            for c in range(contact_gap.shape[0]):
                p = contact_pose[c]
                project_contact(
                    poses, p, start[p], before[p], contact_frame[c], contact_gap[c], friction[c],
                    1.0 / (h * h * inverse_mass[p]), contact_lam[c],
                )  # fmt: skip
        contact_sum += contact_lam
        find_velocities(poses, before, inverse_mass, h, velocity)
        slow_down(poses, velocity, inverse_mass, inverse_inertia, damping, h, scratch[_R])
    contact_sum /= substeps
    end_wrench /= substeps

"""Kernels of the position-based rod: substeps of prediction, one sweep of joints and contacts, and velocities; arrays filled.

Poses are numbered as in ``femsim.model.bodies.rod_kernels``: the frame of the start, the n links, the frame of the end; joint k
stands between poses k and k + 1. Frames have no inverse mass.
"""

from __future__ import annotations

import math

import numpy as np

from contact.compiled import njit
from contact.vector_kernels import dot, times as scaled
from femsim.model.bodies.rod_kernels import ABSENT, BALL
from femsim.model.bodies.rotation_kernels import (
    Matrix,
    Vector,
    add_to_diagonal,
    cross_matrix,
    middle_rotation,
    minus,
    outer,
    plus,
    rotation_at,
    rotation_of,
    scaled_columns,
    times,
    times_transposed,
    times_vector,
    transposed_times_vector,
)


@njit(cache=True, inner=True)
def _turn(poses: np.ndarray, p: int, w: Vector) -> None:
    """Turn the quaternion of a pose by a small rotation vector (world), and make it of unit length."""
    x, y, z = w
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


@njit(cache=True, forceinline=True)
def _turned_diagonal(R: Matrix, d0: float, d1: float, d2: float) -> Matrix:
    """R diag(d0, d1, d2) R^T."""
    return times_transposed(scaled_columns(R, (d0, d1, d2)), R)


@njit(cache=True, forceinline=True)
def _arm(arm: np.ndarray, p: int, R: Matrix) -> Vector:
    """Half the link of pose p along its tangent."""
    return arm[p] * R[2], arm[p] * R[5], arm[p] * R[8]


@njit(cache=True, forceinline=True)
def _angle_factors(p: Vector) -> tuple[float, float, float]:
    """Factors s = (a/2) / sin(a/2), (1 - s) / a^2 and tan(a/4) / (2 a) of a turn p by the angle a."""
    angle = math.sqrt(dot(p, p))
    if angle < 1e-3:  # the next terms of the series are below 1e-13
        return 1.0 + angle * angle / 24.0, -1.0 / 24.0, 0.125 + angle * angle / 384.0
    s = 0.5 * angle / math.sin(0.5 * angle)
    return s, (1.0 - s) / (angle * angle), 0.5 * math.tan(0.25 * angle) / angle


@njit(cache=True, forceinline=True)
def _halfway(c: Vector, g: Vector) -> Vector:
    """Return c + g/2."""
    return c[0] + 0.5 * g[0], c[1] + 0.5 * g[1], c[2] + 0.5 * g[2]


@njit(cache=True, forceinline=True)
def _add_lower(S: np.ndarray, r0: int, c0: int, factor: float, A: Matrix) -> None:
    """Add factor A, of which the lower triangle is read, to the block of S that begins at (r0, c0)."""
    for r in range(3):
        for c in range(r + 1):
            S[r0 + r, c0 + c] += factor * A[3 * r + c]


@njit(cache=True, forceinline=True)
def _add_response(y: np.ndarray, o: int, A: Matrix, lam: np.ndarray, k: int) -> None:
    """Add A lam[k, o:o+3] to y[o:o+3], one product after another."""
    for r in range(3):
        y[o + r] = y[o + r] + A[3 * r] * lam[k, o] + A[3 * r + 1] * lam[k, o + 1] + A[3 * r + 2] * lam[k, o + 2]


@njit(cache=True, inner=True)
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


@njit(cache=True, inner=True)
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
    S: np.ndarray,
    y: np.ndarray,
) -> None:
    """Project joint k: move both its poses by h^2 M^-1 J^T d, (h^2 J M^-1 J^T + K^-1) d = -(e + K^-1 lam), and add d to lam.

    ``poses`` (n + 2, 7) change; ``arm``, ``kind``, ``stiffness`` and ``rest`` as in
    :class:`femsim.model.bodies.rod_joints.RodJoints`; ``inverse_mass`` (n + 2,) 1/kg and ``inverse_inertia`` (n + 2, 3)
    1/(kg m^2) about the axes of the link; ``square`` is h^2, s^2; ``lam`` (n + 1, 6) N and N m, world axes. Of the first and the
    last joint J^T d is added to ``end_wrench`` (2, 6), the wrench on the frame. ``S`` (6, 6) and ``y`` (6,) are overwritten. The
    13 arguments are the rod and the state of the sweep.

    e is the strain of :func:`femsim.model.bodies.rod_kernels.joint_states` with its exact derivative J, turned to world axes:
    of the gap u_j - u_i + H_i w_i + H_j w_j, of the rotation L (w_j - w_i). With G = H I^-1 the blocks of J M^-1 J^T are
    S_gg = sum of 1/m + H I^-1 H^T, S_pg = L (G_j - G_i)^T and S_pp = L (I_i^-1 + I_j^-1) L.
    """
    if kind[k] == ABSENT:
        return
    i, j = k, k + 1
    R_i, R_j = rotation_at(poses, i), rotation_at(poses, j)
    c_i, c_j = _arm(arm, i, R_i), _arm(arm, j, R_j)
    I_i = _turned_diagonal(R_i, inverse_inertia[i, 0], inverse_inertia[i, 1], inverse_inertia[i, 2])
    I_j = _turned_diagonal(R_j, inverse_inertia[j, 0], inverse_inertia[j, 1], inverse_inertia[j, 2])
    g = (
        (poses[j, 0] - c_j[0]) - (poses[i, 0] + c_i[0]),
        (poses[j, 1] - c_j[1]) - (poses[i, 1] + c_i[1]),
        (poses[j, 2] - c_j[2]) - (poses[i, 2] + c_i[2]),
    )
    H_i, H_j = cross_matrix(c_i), cross_matrix(c_j)
    R = L = R_i
    size = 3
    if kind[k] != BALL:
        size = 6
        middle, phi = middle_rotation(poses, i, j)
        R = rotation_of(middle)
        e = times_vector(R, (phi[0] - rest[k, 0], phi[1] - rest[k, 1], phi[2] - rest[k, 2]))
        for r in range(3):
            y[3 + r] = e[r]
        p = times_vector(R, phi)
        s, along, half = _angle_factors(p)
        L = add_to_diagonal(outer(scaled(along, p), p), s)
        uneven = add_to_diagonal(outer(scaled(half, p), g), -(half * dot(g, p)))
        H_i = plus(cross_matrix(_halfway(c_i, g)), uneven)
        H_j = minus(cross_matrix(_halfway(c_j, g)), uneven)
    G_i, G_j = times(H_i, I_i), times(H_j, I_j)
    for r in range(3):
        y[r] = g[r]
        for c in range(r + 1):
            total = 0.0
            for m in range(3):
                total += G_i[3 * r + m] * H_i[3 * c + m] + G_j[3 * r + m] * H_j[3 * c + m]
            S[r, c] = square * total
        S[r, r] += square * (inverse_mass[i] + inverse_mass[j])
    if size == 3:
        for r in range(3):
            S[r, r] += 1.0 / stiffness[k, 2]
            y[r] += lam[k, r] / stiffness[k, 2]
    else:
        coupled = times_transposed(L, minus(G_j, G_i))
        for r in range(3):
            for c in range(3):
                S[3 + r, c] = square * coupled[3 * r + c]
            for c in range(r + 1):
                S[3 + r, 3 + c] = 0.0
        _add_lower(S, 3, 3, square, times(times(L, plus(I_i, I_j)), L))
        for o in (0, 3):
            soft = _turned_diagonal(R, 1.0 / stiffness[k, o], 1.0 / stiffness[k, o + 1], 1.0 / stiffness[k, o + 2])
            _add_lower(S, o, o, 1.0, soft)
            _add_response(y, o, soft, lam, k)
    solve_spd(S, y, size)
    for r in range(size):
        y[r] = -y[r]
        lam[k, r] += y[r]
    push = (y[0], y[1], y[2])
    turn_i, turn_j = transposed_times_vector(H_i, push), transposed_times_vector(H_j, push)
    if size == 6:
        couple = times_vector(L, (y[3], y[4], y[5]))
        turn_i = (turn_i[0] - couple[0], turn_i[1] - couple[1], turn_i[2] - couple[2])
        turn_j = (turn_j[0] + couple[0], turn_j[1] + couple[1], turn_j[2] + couple[2])
    _push(poses, i, 0, square, inverse_mass[i], I_i, (-push[0], -push[1], -push[2]), turn_i, end_wrench)
    _push(poses, j, 1, square, inverse_mass[j], I_j, push, turn_j, end_wrench)


@njit(cache=True, inner=True)
def _push(
    poses: np.ndarray,
    p: int,
    side: int,
    square: float,
    inverse_mass: float,
    inverse_inertia: Matrix,
    force: Vector,
    torque: Vector,
    end_wrench: np.ndarray,
) -> None:
    """Move pose p by h^2 M^-1 times a wrench; add the wrench to that on the frame of its side where the pose is a frame."""
    if inverse_mass > 0.0:
        for r in range(3):
            poses[p, r] += square * inverse_mass * force[r]
        _turn(poses, p, scaled(square, times_vector(inverse_inertia, torque)))
    else:
        for r in range(3):
            end_wrench[side, r] += force[r]
            end_wrench[side, 3 + r] += torque[r]


@njit(cache=True, inner=True)
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


@njit(cache=True, inner=True)
def predict(
    poses: np.ndarray,
    velocity: np.ndarray,
    inverse_mass: np.ndarray,
    inverse_inertia: np.ndarray,
    force: np.ndarray,
    h: float,
) -> None:
    """Move poses (n + 2, 7) by their velocities (n + 2, 6) after the forces (n + 2, 6) have changed these.

    Poses without inverse mass go on as they are. The gyroscopic torque is left out.
    """
    for p in range(poses.shape[0]):
        if inverse_mass[p] > 0.0:
            inverse = _turned_diagonal(
                rotation_at(poses, p), inverse_inertia[p, 0], inverse_inertia[p, 1], inverse_inertia[p, 2]
            )  # fmt: skip
            spin_up = times_vector(inverse, (force[p, 3], force[p, 4], force[p, 5]))
            for c in range(3):
                velocity[p, c] += h * inverse_mass[p] * force[p, c]
                velocity[p, 3 + c] += h * spin_up[c]
        for c in range(3):
            poses[p, c] += h * velocity[p, c]
        _turn(poses, p, (h * velocity[p, 3], h * velocity[p, 4], h * velocity[p, 5]))


@njit(cache=True, inner=True)
def slow_down(
    poses: np.ndarray,
    velocity: np.ndarray,
    inverse_mass: np.ndarray,
    inverse_inertia: np.ndarray,
    damping: np.ndarray,
    h: float,
) -> None:
    """Take drag from the velocities, implicitly: ``damping`` (n + 2, 4) N s/m and, about the axes of the link, N m s/rad.

    It comes after the joints, so that what is at rest feels none.
    """
    for p in range(poses.shape[0]):
        if inverse_mass[p] == 0.0:
            continue
        factor = 1.0 / (1.0 + h * damping[p, 0] * inverse_mass[p])
        R = rotation_at(poses, p)
        own = transposed_times_vector(R, (velocity[p, 3], velocity[p, 4], velocity[p, 5]))
        own = (
            own[0] / (1.0 + h * damping[p, 1] * inverse_inertia[p, 0]),
            own[1] / (1.0 + h * damping[p, 2] * inverse_inertia[p, 1]),
            own[2] / (1.0 + h * damping[p, 3] * inverse_inertia[p, 2]),
        )
        spin = times_vector(R, own)
        for c in range(3):
            velocity[p, c] *= factor
            velocity[p, 3 + c] = spin[c]


@njit(cache=True, inner=True)
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
    S: np.ndarray,
    y: np.ndarray,
) -> None:
    """Take the substeps of a step; sweeps of joints go forth and back in turn, contacts follow each sweep.

    Many arguments, since a kernel takes the arrays of a run one by one.
    ``poses`` (n + 2, 7) and ``velocity`` (n + 2, 6) are advanced; ``start`` holds the poses at the start of the step, where the
    nc contacts were found: ``contact_pose`` (nc,) the pose in contact, ``contact_gap`` (nc,) m, ``contact_frame`` (nc, 3, 3),
    ``friction`` (nc,). ``contact_sum`` (nc, 3) and ``end_wrench`` (2, 6) become means of the forces over the substeps.
    Other arrays as in :func:`project_joint`, :func:`predict` and :func:`slow_down`; the 25 arguments are the whole solver: a
    step is one call.
    """
    last = kind.shape[0] - 1
    contact_sum[:] = 0.0
    end_wrench[:] = 0.0
    for substep in range(substeps):
        before[:] = poses
        predict(poses, velocity, inverse_mass, inverse_inertia, force, h)
        lam[:] = 0.0
        contact_lam[:] = 0.0
        for iteration in range(iterations):
            for number in range(last + 1):
                k = number if (substep + iteration) % 2 == 0 else last - number
                project_joint(k, poses, arm, kind, stiffness, rest, inverse_mass, inverse_inertia, h * h, lam, end_wrench, S, y)
            for c in range(contact_gap.shape[0]):
                p = contact_pose[c]
                project_contact(
                    poses, p, start[p], before[p], contact_frame[c], contact_gap[c], friction[c],
                    1.0 / (h * h * inverse_mass[p]), contact_lam[c],
                )  # fmt: skip
        contact_sum += contact_lam
        find_velocities(poses, before, inverse_mass, h, velocity)
        slow_down(poses, velocity, inverse_mass, inverse_inertia, damping, h)
    contact_sum /= substeps
    end_wrench /= substeps

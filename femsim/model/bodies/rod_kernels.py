"""Kernels of rods of rigid links: strains, forces and stiffness of the joints, the system, the step; arrays in, arrays filled.

Poses are numbered with the supports of the two ends around the links: pose 0 is the frame that may hold the start, poses 1 to n
the links, pose n + 1 the frame that may hold the end. Joint k stands between pose i = k and pose j = k + 1, so the n - 1 joints
inside the rod and the two at its ends are one formula. Velocities of a link are u (of its centre) and w (angular, world), three
each. 3x3 matrices are rows of nine entries.

Notation of a joint: Q = R_i^T R_j, phi = log Q,
R = R_i exp(phi/2) the frame half-way, c_i and c_j half the links along their tangents, g = (x_j - c_j) - (x_i + c_i) the gap,
e = [R^T g ; phi - phi_0] the strain times the length of the joint, e^T K e / 2 its energy.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from femsim.model.bodies.soft_kernels import rotation_entries

#: Kinds of joints: no joint (a free end), stiff in all six ways, a ball joint (ends only).
ABSENT, FULL, BALL = 0, 1, 2
# a row of ``geometry``: C (9), H_i (9), H_j (9), D (9), axis (3), tension, stretch
_C, _HI, _HJ, _D, _AXIS, _TENSION, _STRETCH = 0, 9, 18, 27, 36, 39, 40
#: Numbers that a joint keeps of its geometry.
GEOMETRY = 41
# a row of ``blocks``: S (9), U_i (9), U_j (9), T_ii (9), T_ij (9), T_jj (9)
_S, _UI, _UJ, _TII, _TIJ, _TJJ = 0, 9, 18, 27, 36, 45
#: Numbers in the stiffness of a joint.
BLOCKS = 54


@njit(cache=True)
def _times(out: np.ndarray, o: int, a: np.ndarray, i: int, b: np.ndarray, j: int) -> None:
    """Fill out[o:o+9] with the product of the matrices a[i:i+9] and b[j:j+9]."""
    for r in range(3):
        a0 = a[i + 3 * r]
        a1 = a[i + 3 * r + 1]
        a2 = a[i + 3 * r + 2]
        for c in range(3):
            out[o + 3 * r + c] = a0 * b[j + c] + a1 * b[j + 3 + c] + a2 * b[j + 6 + c]


@njit(cache=True)
def _transposed_times(out: np.ndarray, o: int, a: np.ndarray, i: int, b: np.ndarray, j: int) -> None:
    """Fill out[o:o+9] with the product of the transpose of a[i:i+9] and b[j:j+9]."""
    for r in range(3):
        a0 = a[i + r]
        a1 = a[i + 3 + r]
        a2 = a[i + 6 + r]
        for c in range(3):
            out[o + 3 * r + c] = a0 * b[j + c] + a1 * b[j + 3 + c] + a2 * b[j + 6 + c]


@njit(cache=True)
def _add_cross(out: np.ndarray, o: int, x: float, y: float, z: float) -> None:
    """Add the matrix of the cross product, [x, y, z] times, to out[o:o+9]."""
    out[o + 1] -= z
    out[o + 2] += y
    out[o + 3] += z
    out[o + 5] -= x
    out[o + 6] -= y
    out[o + 7] += x


@njit(cache=True)
def _add_across(out: np.ndarray, o: int, factor: float, axis: np.ndarray, a: int) -> None:
    """Add factor (I - d d^T) to out[o:o+9], d the unit vector axis[a:a+3]."""
    for r in range(3):
        for c in range(3):
            out[o + 3 * r + c] -= factor * axis[a + r] * axis[a + c]
        out[o + 4 * r] += factor


@njit(cache=True)
def _middle_rotation(poses: np.ndarray, i: int, j: int) -> tuple[float, float, float, float, float, float, float]:
    """Quaternion half-way from pose i to pose j by the shorter turn, and the vector of that turn in the axes of both, rad."""
    a0 = poses[i, 3]
    a1 = poses[i, 4]
    a2 = poses[i, 5]
    a3 = poses[i, 6]
    b0 = poses[j, 3]
    b1 = poses[j, 4]
    b2 = poses[j, 5]
    b3 = poses[j, 6]
    w = a0 * b0 + a1 * b1 + a2 * b2 + a3 * b3
    sign = 1.0 if w >= 0.0 else -1.0
    # conjugate(a) b
    x = sign * (a0 * b1 - a1 * b0 - a2 * b3 + a3 * b2)
    y = sign * (a0 * b2 + a1 * b3 - a2 * b0 - a3 * b1)
    z = sign * (a0 * b3 - a1 * b2 + a2 * b1 - a3 * b0)
    sine = math.sqrt(x * x + y * y + z * z)
    factor = 2.0 * math.atan2(sine, sign * w) / sine if sine > 1e-12 else 2.0
    m0 = a0 + sign * b0
    m1 = a1 + sign * b1
    m2 = a2 + sign * b2
    m3 = a3 + sign * b3
    scale = 1.0 / math.sqrt(m0 * m0 + m1 * m1 + m2 * m2 + m3 * m3)
    return scale * m0, scale * m1, scale * m2, scale * m3, factor * x, factor * y, factor * z


@njit(cache=True)
def rotations(poses: np.ndarray, rotation: np.ndarray) -> None:
    """Fill the rotation matrices (n, 9) of the quaternions of poses (n, 7)."""
    for p in range(poses.shape[0]):
        (
            rotation[p, 0], rotation[p, 1], rotation[p, 2], rotation[p, 3], rotation[p, 4], rotation[p, 5], rotation[p, 6],
            rotation[p, 7], rotation[p, 8],
        ) = rotation_entries(poses[p, 3], poses[p, 4], poses[p, 5], poses[p, 6])  # fmt: skip


@njit(cache=True)
def joint_states(
    poses: np.ndarray,
    rotation: np.ndarray,
    arm: np.ndarray,
    kind: np.ndarray,
    stiffness: np.ndarray,
    rest: np.ndarray,
    ceiling: float,
    geometry: np.ndarray,
    force: np.ndarray,
    strain: np.ndarray,
) -> float:
    """Fill strains, forces and geometry of all joints and return their energy, J.

    ``poses`` (n + 2, 7) and ``rotation`` (n + 2, 9) are those of the links with the frames of the ends around them; ``arm``
    (n + 2,) m is half the length of each link, zero for the frames; ``kind`` (n + 1,) the kind of each joint, ``stiffness``
    (n + 1, 6) N/m and N m/rad along axes 1, 2, 3 and about them, ``rest`` (n + 1, 3) rad the rotation phi_0 at rest.

    ``strain`` (n + 1, 6) becomes e (m and rad, axes of the joint), ``force`` (n + 1, 9) the derivative of the energy: by x_j (N,
    that by x_i is minus it), by the rotation of i and by that of j (N m). With ``geometry`` (n + 1, GEOMETRY) the variation of
    the gap, turned to world axes, is u_j - u_i + H_i w_i + H_j w_j, its stiffness C, that of rotation D, so the kept part of
    the second derivative is J^T K J; ``axis`` is the tangent and ``tension`` the pull for :func:`joint_blocks`, clipped to
    [0, ceiling] N.

    d(R) is exact: its angular velocity is (I - B) w_i + B w_j with B = (I - tan(|phi|/4)/|phi| [phi]) / 2 in world axes, and
    d(phi) = R^T (s I + (1 - s) phi phi^T / |phi|^2) (w_j - w_i) with s = (|phi|/2) / sin(|phi|/2).
    """
    energy = 0.0
    last = poses.shape[0] - 1
    for k in range(last):
        i, j = k, k + 1
        for c in range(6):
            strain[k, c] = 0.0
        for c in range(9):
            force[k, c] = 0.0
        if kind[k] == ABSENT:
            continue
        row = geometry[k]
        for c in range(GEOMETRY):
            row[c] = 0.0
        ci0 = arm[i] * rotation[i, 2]
        ci1 = arm[i] * rotation[i, 5]
        ci2 = arm[i] * rotation[i, 8]
        cj0 = arm[j] * rotation[j, 2]
        cj1 = arm[j] * rotation[j, 5]
        cj2 = arm[j] * rotation[j, 8]
        g0 = (poses[j, 0] - cj0) - (poses[i, 0] + ci0)
        g1 = (poses[j, 1] - cj1) - (poses[i, 1] + ci1)
        g2 = (poses[j, 2] - cj2) - (poses[i, 2] + ci2)
        _add_cross(row, _HI, ci0, ci1, ci2)
        _add_cross(row, _HJ, cj0, cj1, cj2)
        if kind[k] == BALL:
            link = j if k == 0 else i
            spring = stiffness[k, 2]
            for c in range(3):
                row[_C + 4 * c] = spring
                row[_AXIS + c] = rotation[link, 3 * c + 2]
                strain[k, c] = rotation[link, c] * g0 + rotation[link, 3 + c] * g1 + rotation[link, 6 + c] * g2
            row[_TENSION] = max(spring * strain[k, 2], 0.0)
            energy += 0.5 * spring * (g0 * g0 + g1 * g1 + g2 * g2)
            n0 = spring * g0
            n1 = spring * g1
            n2 = spring * g2
            m0 = m1 = m2 = 0.0
        else:
            q0, q1, q2, q3, phi0, phi1, phi2 = _middle_rotation(poses, i, j)
            r00, r01, r02, r10, r11, r12, r20, r21, r22 = rotation_entries(q0, q1, q2, q3)
            strain[k, 0] = r00 * g0 + r10 * g1 + r20 * g2
            strain[k, 1] = r01 * g0 + r11 * g1 + r21 * g2
            strain[k, 2] = r02 * g0 + r12 * g1 + r22 * g2
            strain[k, 3] = phi0 - rest[k, 0]
            strain[k, 4] = phi1 - rest[k, 1]
            strain[k, 5] = phi2 - rest[k, 2]
            for c in range(6):
                energy += 0.5 * stiffness[k, c] * strain[k, c] * strain[k, c]
            # the turn in world axes, and s, (1 - s) / |phi|^2, tan(|phi| / 4) / |phi|
            p0 = r00 * phi0 + r01 * phi1 + r02 * phi2
            p1 = r10 * phi0 + r11 * phi1 + r12 * phi2
            p2 = r20 * phi0 + r21 * phi1 + r22 * phi2
            square = p0 * p0 + p1 * p1 + p2 * p2
            if square < 1e-4:
                s = 1.0 + square / 24.0 + 7.0 * square * square / 5760.0
                along = -1.0 / 24.0 - 7.0 * square / 5760.0
                tangent = 0.25 + square / 192.0
            else:
                angle = math.sqrt(square)
                s = 0.5 * angle / math.sin(0.5 * angle)
                along = (1.0 - s) / square
                tangent = math.tan(0.25 * angle) / angle
            # C = R K R^T of the gap; D = (s I + along p p^T) R K R^T (s I + along p p^T) of the rotation
            k0 = stiffness[k, 0]
            k1 = stiffness[k, 1]
            k2 = stiffness[k, 2]
            row[_C] = k0 * r00 * r00 + k1 * r01 * r01 + k2 * r02 * r02
            row[_C + 4] = k0 * r10 * r10 + k1 * r11 * r11 + k2 * r12 * r12
            row[_C + 8] = k0 * r20 * r20 + k1 * r21 * r21 + k2 * r22 * r22
            row[_C + 1] = row[_C + 3] = k0 * r00 * r10 + k1 * r01 * r11 + k2 * r02 * r12
            row[_C + 2] = row[_C + 6] = k0 * r00 * r20 + k1 * r01 * r21 + k2 * r02 * r22
            row[_C + 5] = row[_C + 7] = k0 * r10 * r20 + k1 * r11 * r21 + k2 * r12 * r22
            k0 = stiffness[k, 3]
            k1 = stiffness[k, 4]
            k2 = stiffness[k, 5]
            # rows of R^T (s I + along p p^T): axis a of R is turned to s axis + along phi_a p
            a0 = s * r00 + along * phi0 * p0
            a1 = s * r10 + along * phi0 * p1
            a2 = s * r20 + along * phi0 * p2
            b0 = s * r01 + along * phi1 * p0
            b1 = s * r11 + along * phi1 * p1
            b2 = s * r21 + along * phi1 * p2
            d0 = s * r02 + along * phi2 * p0
            d1 = s * r12 + along * phi2 * p1
            d2 = s * r22 + along * phi2 * p2
            row[_D] = k0 * a0 * a0 + k1 * b0 * b0 + k2 * d0 * d0
            row[_D + 4] = k0 * a1 * a1 + k1 * b1 * b1 + k2 * d1 * d1
            row[_D + 8] = k0 * a2 * a2 + k1 * b2 * b2 + k2 * d2 * d2
            row[_D + 1] = row[_D + 3] = k0 * a0 * a1 + k1 * b0 * b1 + k2 * d0 * d1
            row[_D + 2] = row[_D + 6] = k0 * a0 * a2 + k1 * b0 * b2 + k2 * d0 * d2
            row[_D + 5] = row[_D + 7] = k0 * a1 * a2 + k1 * b1 * b2 + k2 * d1 * d2
            couple0 = k0 * strain[k, 3]
            couple1 = k1 * strain[k, 4]
            couple2 = k2 * strain[k, 5]
            m0 = couple0 * a0 + couple1 * b0 + couple2 * d0
            m1 = couple0 * a1 + couple1 * b1 + couple2 * d1
            m2 = couple0 * a2 + couple1 * b2 + couple2 * d2
            n0 = row[_C] * g0 + row[_C + 1] * g1 + row[_C + 2] * g2
            n1 = row[_C + 3] * g0 + row[_C + 4] * g1 + row[_C + 5] * g2
            n2 = row[_C + 6] * g0 + row[_C + 7] * g1 + row[_C + 8] * g2
            # [g] B = [g]/2 - tangent/2 (p g^T - (g . p) I), and [g] (I - B) with the other sign
            _add_cross(row, _HI, 0.5 * g0, 0.5 * g1, 0.5 * g2)
            _add_cross(row, _HJ, 0.5 * g0, 0.5 * g1, 0.5 * g2)
            half = 0.5 * tangent
            dot = half * (g0 * p0 + g1 * p1 + g2 * p2)
            h = half * p0
            row[_HI] += h * g0 - dot
            row[_HI + 1] += h * g1
            row[_HI + 2] += h * g2
            row[_HJ] -= h * g0 - dot
            row[_HJ + 1] -= h * g1
            row[_HJ + 2] -= h * g2
            h = half * p1
            row[_HI + 3] += h * g0
            row[_HI + 4] += h * g1 - dot
            row[_HI + 5] += h * g2
            row[_HJ + 3] -= h * g0
            row[_HJ + 4] -= h * g1 - dot
            row[_HJ + 5] -= h * g2
            h = half * p2
            row[_HI + 6] += h * g0
            row[_HI + 7] += h * g1
            row[_HI + 8] += h * g2 - dot
            row[_HJ + 6] -= h * g0
            row[_HJ + 7] -= h * g1
            row[_HJ + 8] -= h * g2 - dot
            row[_AXIS] = r02
            row[_AXIS + 1] = r12
            row[_AXIS + 2] = r22
            row[_TENSION] = min(max(stiffness[k, 2] * strain[k, 2], 0.0), ceiling)
            row[_STRETCH] = strain[k, 2]
        force[k, 0] = n0
        force[k, 1] = n1
        force[k, 2] = n2
        for c in range(3):
            force[k, 3 + c] = row[_HI + c] * n0 + row[_HI + 3 + c] * n1 + row[_HI + 6 + c] * n2
            force[k, 6 + c] = row[_HJ + c] * n0 + row[_HJ + 3 + c] * n1 + row[_HJ + 6 + c] * n2
        force[k, 3] -= m0
        force[k, 4] -= m1
        force[k, 5] -= m2
        force[k, 6] += m0
        force[k, 7] += m1
        force[k, 8] += m2
    return energy


@njit(cache=True)
def joint_blocks(
    kind: np.ndarray, arm: np.ndarray, geometry: np.ndarray, material: float, geometric: float, blocks: np.ndarray
) -> None:
    """Fill the stiffness of each joint, material J^T K J + geometric times the tension term, as six 3x3 blocks.

    In the order (u_i, w_i, u_j, w_j) the matrix of a joint is::

        [  S     -U_i   -S     -U_j  ]
        [ -U_i^T  T_ii   U_i^T  T_ij ]
        [ -S      U_i    S      U_j  ]
        [ -U_j^T  T_ij^T U_j^T  T_jj ]

    The tension term is the second variation of the stretch times the pull T. With t = w x axis of each side, tm their mean, y the
    variation of the gap across the axis (rows of H), l the length of the joint, e3 its stretch and a_i, a_j the arms, it is
    T (tm . y + (l + e3)/2 |tm|^2 + (a_j - a_i)/4 (|t_j|^2 - |t_i|^2) + l/8 |t_i - t_j|^2): exact where the axes of the links are
    parallel and the joint has no shear, and with y in this form never indefinite together with the shear stiffness k G A/l as
    long as (a_j - a_i)^2 / l^2 <= 1 - T / (k G A). At a ball joint it is T l |t|^2 / 2 of its link. ``blocks``
    (n + 1, BLOCKS) of absent joints stay as they are.
    """
    last = kind.shape[0] - 1
    for k in range(last + 1):
        if kind[k] == ABSENT:
            continue
        g = geometry[k]
        out = blocks[k]
        _times(out, _UI, g, _C, g, _HI)
        _times(out, _UJ, g, _C, g, _HJ)
        _transposed_times(out, _TII, g, _HI, out, _UI)
        _transposed_times(out, _TIJ, g, _HI, out, _UJ)
        _transposed_times(out, _TJJ, g, _HJ, out, _UJ)
        for c in range(9):
            out[_S + c] = material * g[_C + c]
            out[_UI + c] *= material
            out[_UJ + c] *= material
            out[_TII + c] = material * (out[_TII + c] + g[_D + c])
            out[_TIJ + c] = material * (out[_TIJ + c] - g[_D + c])
            out[_TJJ + c] = material * (out[_TJJ + c] + g[_D + c])
        pull = geometric * g[_TENSION]
        length = arm[k] + arm[k + 1]
        if pull > 0.0:
            if kind[k] == BALL:
                _add_across(out, _TJJ if k == 0 else _TII, pull * length, g, _AXIS)
            else:
                half = -0.5 * pull
                _add_cross(out, _UI, half * g[_AXIS], half * g[_AXIS + 1], half * g[_AXIS + 2])
                _add_cross(out, _UJ, half * g[_AXIS], half * g[_AXIS + 1], half * g[_AXIS + 2])
                middle = 0.25 * pull * (2.0 * length + g[_STRETCH])
                uneven = 0.5 * pull * (arm[k + 1] - arm[k])
                _add_across(out, _TII, middle - uneven, g, _AXIS)
                _add_across(out, _TJJ, middle + uneven, g, _AXIS)
                _add_across(out, _TIJ, 0.25 * pull * g[_STRETCH], g, _AXIS)
                for r in range(3):
                    d1 = 0.5 * pull * g[_AXIS + (r + 1) % 3]
                    d2 = 0.5 * pull * g[_AXIS + (r + 2) % 3]
                    for c in range(3):  # axis x columns of H_i and H_j
                        z_i = d1 * g[_HI + 3 * ((r + 2) % 3) + c] - d2 * g[_HI + 3 * ((r + 1) % 3) + c]
                        z_j = d1 * g[_HJ + 3 * ((r + 2) % 3) + c] - d2 * g[_HJ + 3 * ((r + 1) % 3) + c]
                        out[_TII + 3 * r + c] += z_i
                        out[_TII + 3 * c + r] += z_i
                        out[_TJJ + 3 * r + c] += z_j
                        out[_TJJ + 3 * c + r] += z_j
                        out[_TIJ + 3 * r + c] += z_j
                        out[_TIJ + 3 * c + r] += z_i
        for block in (_TII, _TJJ):  # symmetric to the last bit
            out[block + 1] = out[block + 3]
            out[block + 2] = out[block + 6]
            out[block + 5] = out[block + 7]


@njit(cache=True)
def joint_response(blocks: np.ndarray, k: int, velocity: np.ndarray, response: np.ndarray) -> None:
    """Fill response (12,) with the matrix of joint k times velocity (12,), both in the order (u_i, w_i, u_j, w_j)."""
    for r in range(3):
        side = turn_i = turn_j = 0.0
        for c in range(3):
            drift = velocity[6 + c] - velocity[c]
            w_i = velocity[3 + c]
            w_j = velocity[9 + c]
            rc = 3 * r + c
            cr = 3 * c + r
            side += blocks[k, _S + rc] * drift + blocks[k, _UI + rc] * w_i + blocks[k, _UJ + rc] * w_j
            turn_i += blocks[k, _UI + cr] * drift + blocks[k, _TII + rc] * w_i + blocks[k, _TIJ + rc] * w_j
            turn_j += blocks[k, _UJ + cr] * drift + blocks[k, _TIJ + cr] * w_i + blocks[k, _TJJ + rc] * w_j
        response[r] = -side
        response[3 + r] = turn_i
        response[6 + r] = side
        response[9 + r] = turn_j


@njit(cache=True)
def system(
    rotation: np.ndarray,
    v: np.ndarray,
    mass: np.ndarray,
    inertia: np.ndarray,
    damping: np.ndarray,
    kind: np.ndarray,
    force: np.ndarray,
    blocks: np.ndarray,
    end_pull: np.ndarray,
    end_motion: np.ndarray,
    implicit: float,
    alpha: float,
    response: np.ndarray,
    data: np.ndarray,
    b: np.ndarray,
) -> None:
    """Fill the CSC entries of A and add to b, of which the external forces are there already.

    ``rotation`` (n + 2, 9), ``kind`` (n + 1,), ``force`` (n + 1, 9) and ``blocks`` (n + 1, BLOCKS) as above; ``v`` (6 n,);
    ``mass`` (n,) kg, ``inertia`` (n, 3) kg m^2 about the axes of the link, ``damping`` (n, 2) N s/m and N m s/rad of each link;
    ``end_pull`` (2,) N m the pull of the loads on the two free ends times their lever, as it enters A; ``end_motion`` (2, 12) the
    velocities at the joints of the two ends, those of the links zero; ``implicit`` theta dt, s; ``alpha`` mass-proportional
    damping, 1/s; ``response`` (2, 12) becomes the change of the forces there by this motion.

    The columns of link l are 36 (3 l - 1) entries from the start on (0 for the first), each with the rows of the link before, its
    own and those of the link behind it, as far as there are.
    """
    n = mass.shape[0]
    for i in range(n):
        start = 36 * (3 * i - 1) if i > 0 else 0
        own = 6 if i > 0 else 0
        stride = own + (12 if i < n - 1 else 6)
        p = i + 1
        r00 = rotation[p, 0]
        r01 = rotation[p, 1]
        r02 = rotation[p, 2]
        r10 = rotation[p, 3]
        r11 = rotation[p, 4]
        r12 = rotation[p, 5]
        r20 = rotation[p, 6]
        r21 = rotation[p, 7]
        r22 = rotation[p, 8]
        i0 = inertia[i, 0]
        i1 = inertia[i, 1]
        i2 = inertia[i, 2]
        t00 = i0 * r00 * r00 + i1 * r01 * r01 + i2 * r02 * r02
        t11 = i0 * r10 * r10 + i1 * r11 * r11 + i2 * r12 * r12
        t22 = i0 * r20 * r20 + i1 * r21 * r21 + i2 * r22 * r22
        t01 = i0 * r00 * r10 + i1 * r01 * r11 + i2 * r02 * r12
        t02 = i0 * r00 * r20 + i1 * r01 * r21 + i2 * r02 * r22
        t12 = i0 * r10 * r20 + i1 * r11 * r21 + i2 * r12 * r22
        # what stands before (as j of joint i) and behind (as i of joint i + 1); absent joints are zero
        place = start + own
        for c in range(3):
            for r in range(3):
                rc = 3 * r + c
                cross = blocks[i, _UJ + rc] - blocks[i + 1, _UI + rc]
                data[place + c * stride + r] = blocks[i, _S + rc] + blocks[i + 1, _S + rc]
                data[place + (3 + c) * stride + r] = cross
                data[place + r * stride + 3 + c] = cross
                data[place + (3 + c) * stride + 3 + r] = blocks[i, _TJJ + rc] + blocks[i + 1, _TII + rc]
        factor = 1.0 / implicit + alpha
        along = factor * mass[i] + damping[i, 0]
        data[place] += along
        data[place + stride + 1] += along
        data[place + 2 * stride + 2] += along
        turn = place + 3 * stride + 3
        data[turn] += factor * t00 + damping[i, 1]
        data[turn + stride + 1] += factor * t11 + damping[i, 1]
        data[turn + 2 * stride + 2] += factor * t22 + damping[i, 1]
        data[turn + 1] += factor * t01
        data[turn + stride] += factor * t01
        data[turn + 2] += factor * t02
        data[turn + 2 * stride] += factor * t02
        data[turn + stride + 2] += factor * t12
        data[turn + 2 * stride + 1] += factor * t12
        o0 = v[6 * i + 3]
        o1 = v[6 * i + 4]
        o2 = v[6 * i + 5]
        s0 = t00 * o0 + t01 * o1 + t02 * o2
        s1 = t01 * o0 + t11 * o1 + t12 * o2
        s2 = t02 * o0 + t12 * o1 + t22 * o2
        b[6 * i + 3] += s0 / implicit - (o1 * s2 - o2 * s1)
        b[6 * i + 4] += s1 / implicit - (o2 * s0 - o0 * s2)
        b[6 * i + 5] += s2 / implicit - (o0 * s1 - o1 * s0)
        for c in range(3):
            b[6 * i + c] += mass[i] * v[6 * i + c] / implicit - force[i, c] + force[i + 1, c]
            b[6 * i + 3 + c] -= force[i, 6 + c] + force[i + 1, 3 + c]
    for k in range(1, n):  # the two blocks of each joint between links, transposes of each other
        i = k - 1
        start = 36 * (3 * i - 1) if i > 0 else 0
        own = 6 if i > 0 else 0
        stride = own + 12
        below = start + own + 6
        above = 36 * (3 * k - 1)
        other = 18 if k < n - 1 else 12
        for c in range(3):
            for r in range(3):
                rc = 3 * r + c
                s = -blocks[k, _S + rc]
                u = blocks[k, _UI + rc]
                w = -blocks[k, _UJ + 3 * c + r]
                t = blocks[k, _TIJ + 3 * c + r]
                data[below + c * stride + r] = s
                data[below + (3 + c) * stride + r] = u
                data[below + c * stride + 3 + r] = w
                data[below + (3 + c) * stride + 3 + r] = t
                data[above + r * other + c] = s
                data[above + r * other + 3 + c] = u
                data[above + (3 + r) * other + c] = w
                data[above + (3 + r) * other + 3 + c] = t
    for end in range(2):
        k = 0 if end == 0 else n
        link = 0 if end == 0 else n - 1
        start = 36 * (3 * link - 1) if link > 0 else 0
        own = 6 if link > 0 else 0
        stride = own + (12 if link < n - 1 else 6)
        turn = start + own + 3 * stride + 3
        for r in range(3):
            for c in range(3):
                data[turn + c * stride + r] -= end_pull[end] * rotation[link + 1, 3 * r + 2] * rotation[link + 1, 3 * c + 2]
            data[turn + r * stride + r] += end_pull[end]
        if kind[k] != ABSENT:
            joint_response(blocks, k, end_motion[end], response[end])
            for c in range(6):  # the link is pose j of the first joint and pose i of the last
                b[6 * link + c] -= response[end, 6 - 6 * end + c]


@njit(cache=True)
def advance(
    q: np.ndarray,
    v: np.ndarray,
    v_hat: np.ndarray,
    inertia: np.ndarray,
    dt: float,
    theta: float,
    q_new: np.ndarray,
    v_new: np.ndarray,
) -> None:
    """Fill poses (n, 7) and velocities (6 n,) at the end of the step; the spin of each link is advanced by the torque on it.

    The torque of the step, gyroscopic term included, is what eq. (9) gave the link: its spin I w grows by dt times it, and the
    new w follows from the new orientation.
    """
    for i in range(q.shape[0]):
        o = 6 * i
        for c in range(3):
            q_new[i, c] = q[i, c] + dt * v_hat[o + c]
            v_new[o + c] = v[o + c] + (v_hat[o + c] - v[o + c]) / theta
        x = 0.5 * dt * v_hat[o + 3]
        y = 0.5 * dt * v_hat[o + 4]
        z = 0.5 * dt * v_hat[o + 5]
        half = math.sqrt(x * x + y * y + z * z)
        w = math.cos(half)
        factor = math.sin(half) / half if half > 1e-8 else 1.0
        x *= factor
        y *= factor
        z *= factor
        q0 = q[i, 3]
        q1 = q[i, 4]
        q2 = q[i, 5]
        q3 = q[i, 6]
        n0 = w * q0 - x * q1 - y * q2 - z * q3
        n1 = w * q1 + x * q0 + y * q3 - z * q2
        n2 = w * q2 - x * q3 + y * q0 + z * q1
        n3 = w * q3 + x * q2 - y * q1 + z * q0
        scale = 1.0 / math.sqrt(n0 * n0 + n1 * n1 + n2 * n2 + n3 * n3)
        q_new[i, 3] = scale * n0
        q_new[i, 4] = scale * n1
        q_new[i, 5] = scale * n2
        q_new[i, 6] = scale * n3
        a0 = v[o + 3] + (v_hat[o + 3] - v[o + 3]) / theta
        a1 = v[o + 4] + (v_hat[o + 4] - v[o + 4]) / theta
        a2 = v[o + 5] + (v_hat[o + 5] - v[o + 5]) / theta
        s0, s1, s2 = _body_scaled(q0, q1, q2, q3, inertia[i, 0], inertia[i, 1], inertia[i, 2], a0, a1, a2)
        o0 = v[o + 3]
        o1 = v[o + 4]
        o2 = v[o + 5]
        t0, t1, t2 = _body_scaled(q0, q1, q2, q3, inertia[i, 0], inertia[i, 1], inertia[i, 2], o0, o1, o2)
        s0 += dt * (o1 * t2 - o2 * t1)
        s1 += dt * (o2 * t0 - o0 * t2)
        s2 += dt * (o0 * t1 - o1 * t0)
        v_new[o + 3], v_new[o + 4], v_new[o + 5] = _body_scaled(
            q_new[i, 3], q_new[i, 4], q_new[i, 5], q_new[i, 6],
            1.0 / inertia[i, 0], 1.0 / inertia[i, 1], 1.0 / inertia[i, 2], s0, s1, s2,
        )  # fmt: skip


@njit(cache=True)
def _body_scaled(
    q0: float,
    q1: float,
    q2: float,
    q3: float,
    k0: float,
    k1: float,
    k2: float,
    x: float,
    y: float,
    z: float,
) -> tuple[float, float, float]:
    """Return R diag(k) R^T (x, y, z), R the rotation of the unit quaternion q."""
    r00, r01, r02, r10, r11, r12, r20, r21, r22 = rotation_entries(q0, q1, q2, q3)
    a = k0 * (r00 * x + r10 * y + r20 * z)
    b = k1 * (r01 * x + r11 * y + r21 * z)
    c = k2 * (r02 * x + r12 * y + r22 * z)
    return r00 * a + r01 * b + r02 * c, r10 * a + r11 * b + r12 * c, r20 * a + r21 * b + r22 * c


@njit(cache=True)
def spins(q: np.ndarray, v: np.ndarray, inertia: np.ndarray, spin: np.ndarray) -> None:
    """Fill the angular momentum (n, 3) of each link about its own centre, kg m^2/s, from poses (n, 7) and velocities (6 n,)."""
    for i in range(q.shape[0]):
        spin[i, 0], spin[i, 1], spin[i, 2] = _body_scaled(
            q[i, 3], q[i, 4], q[i, 5], q[i, 6], inertia[i, 0], inertia[i, 1], inertia[i, 2],
            v[6 * i + 3], v[6 * i + 4], v[6 * i + 5],
        )  # fmt: skip

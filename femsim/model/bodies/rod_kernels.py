"""Kernels of rods of rigid links: strains, forces and stiffness of the joints, the system, the step; arrays in, arrays filled.

Poses are numbered with the supports of the two ends around the links: pose 0 is the frame that may hold the start, poses 1 to n
the links, pose n + 1 the frame that may hold the end. Joint k stands between pose i = k and pose j = k + 1, so the n - 1 joints
inside the rod and the two at its ends are one formula. Velocities of a link are u (of its centre) and w (angular, world), three
each. 3x3 matrices are rows of nine entries. Over 600 lines: all formulas of a joint stand together.

Notation of a joint: Q = R_i^T R_j, phi = log Q,
R = R_i exp(phi/2) the frame half-way, c_i and c_j half the links along their tangents, g = (x_j - c_j) - (x_i + c_i) the gap,
e = [R^T g ; phi - phi_0] the strain times the length of the joint, e^T K e / 2 its energy.
"""

from __future__ import annotations

import math

import numpy as np

from contact.compiled import njit
from contact.vector_kernels import cross, dot, minus as less, plus as added, times as scaled
from femsim.model.bodies.rotation_kernels import (
    Matrix,
    Quaternion,
    Vector,
    add_to_diagonal,
    by_entries,
    cross_matrix,
    cross_times,
    middle_rotation,
    minus,
    outer,
    plus,
    rotation_at,
    rotation_of,
    scaled_matrix,
    times,
    times_vector,
    transposed,
    transposed_times,
    transposed_times_vector,
    turned_diagonal,
)

#: Kinds of joints: no joint (a free end), stiff in all six ways, a ball joint (ends only).
ABSENT, FULL, BALL = 0, 1, 2
# where the parts of a row of ``geometry`` begin: C (9), H_i (9), H_j (9), D (9), axis (3), tension, stretch
_C, _HI, _HJ, _D, _AXIS, _TENSION, _STRETCH = 0, 9, 18, 27, 36, 39, 40
#: Numbers that a joint keeps of its geometry.
GEOMETRY = 41
# where the parts of a row of ``blocks`` begin: S (9), U_i (9), U_j (9), T_ii (9), T_ij (9), T_jj (9)
_S, _UI, _UJ, _TII, _TIJ, _TJJ = 0, 9, 18, 27, 36, 45
#: Numbers in the stiffness of a joint.
BLOCKS = 54


@njit(cache=True, forceinline=True)
def vector_at(a: np.ndarray, k: int, o: int) -> Vector:
    """Read the vector a[k, o:o+3]."""
    return a[k, o], a[k, o + 1], a[k, o + 2]


@njit(cache=True, forceinline=True)
def put_vector(a: np.ndarray, k: int, o: int, x: Vector) -> None:
    """Fill a[k, o:o+3]."""
    a[k, o] = x[0]
    a[k, o + 1] = x[1]
    a[k, o + 2] = x[2]


@njit(cache=True, forceinline=True)
def matrix_at(a: np.ndarray, k: int, o: int) -> Matrix:
    """Read the matrix a[k, o:o+9]."""
    return a[k, o], a[k, o + 1], a[k, o + 2], a[k, o + 3], a[k, o + 4], a[k, o + 5], a[k, o + 6], a[k, o + 7], a[k, o + 8]


@njit(cache=True, forceinline=True)
def put_matrix(a: np.ndarray, k: int, o: int, A: Matrix) -> None:
    """Fill a[k, o:o+9]."""
    a[k, o] = A[0]
    a[k, o + 1] = A[1]
    a[k, o + 2] = A[2]
    a[k, o + 3] = A[3]
    a[k, o + 4] = A[4]
    a[k, o + 5] = A[5]
    a[k, o + 6] = A[6]
    a[k, o + 7] = A[7]
    a[k, o + 8] = A[8]


@njit(cache=True)
def rotations(poses: np.ndarray, rotation: np.ndarray) -> None:
    """Fill the rotation matrices (n, 9) of the quaternions of poses (n, 7)."""
    for p in range(poses.shape[0]):
        put_matrix(rotation, p, 0, rotation_at(poses, p))


@njit(cache=True, _nrt=False)
def moved_from(poses: np.ndarray, before: np.ndarray) -> int:
    """Whether poses (n + 2, 7) are others than before: 0 none, 1 only those of the frames of the ends, 2 those of links."""
    last = poses.shape[0] - 1
    for p in range(1, last):
        for c in range(7):
            if poses[p, c] != before[p, c]:
                return 2
    for c in range(7):
        if poses[0, c] != before[0, c] or poses[last, c] != before[last, c]:
            return 1
    return 0


@njit(cache=True, _nrt=False)
def weights(mass: np.ndarray, gravity: np.ndarray, force: np.ndarray) -> None:
    """Fill the weights of links, (n, 6) N and N m, by their masses (n,) and gravity (3,) m/s^2."""
    for i in range(mass.shape[0]):
        for c in range(3):
            force[i, c] = mass[i] * gravity[c]
            force[i, 3 + c] = 0.0


@njit(cache=True, _nrt=False)
def link_masses(poses: np.ndarray, mass: np.ndarray, principal: np.ndarray, out: np.ndarray) -> None:
    """Fill mass and inertia of each link, (2 n, 3, 3), at poses (n, 7) from masses (n,) and principal inertias (n, 3)."""
    for k in range(mass.shape[0]):
        spin = turned_diagonal(rotation_at(poses, k), vector_at(principal, k, 0))
        for r in range(3):
            for c in range(3):
                out[2 * k, r, c] = mass[k] if r == c else 0.0
                out[2 * k + 1, r, c] = spin[3 * r + c]


@njit(cache=True, forceinline=True)
def axis_of(rotation: np.ndarray, p: int) -> Vector:
    """Axis 3 of pose p, along the rod."""
    return rotation[p, 2], rotation[p, 5], rotation[p, 8]


@njit(cache=True, forceinline=True)
def gap_of(poses: np.ndarray, k: int, c_i: Vector, c_j: Vector) -> Vector:
    """Gap of joint k, g = (x_j - c_j) - (x_i + c_i)."""
    j = k + 1
    return (
        (poses[j, 0] - c_j[0]) - (poses[k, 0] + c_i[0]),
        (poses[j, 1] - c_j[1]) - (poses[k, 1] + c_i[1]),
        (poses[j, 2] - c_j[2]) - (poses[k, 2] + c_i[2]),
    )


@njit(cache=True, forceinline=True)
def _plus_energy(energy: float, K: Vector, e: Vector) -> float:
    """Energy + K_a e_a^2 / 2, summed one after another."""
    return energy + 0.5 * K[0] * e[0] * e[0] + 0.5 * K[1] * e[1] * e[1] + 0.5 * K[2] * e[2] * e[2]


@njit(cache=True, forceinline=True)
def _angle_factors(p: Vector) -> tuple[float, float, float]:
    """Factors s = (a/2) / sin(a/2), (1 - s) / a^2 and tan(a/4) / a of a turn p by the angle a; small angles by their series."""
    square = dot(p, p)
    if square < 1e-4:
        return 1.0 + square / 24.0 + 7.0 * square * square / 5760.0, -1.0 / 24.0 - 7.0 * square / 5760.0, 0.25 + square / 192.0
    angle = math.sqrt(square)
    s = 0.5 * angle / math.sin(0.5 * angle)
    return s, (1.0 - s) / square, math.tan(0.25 * angle) / angle


@njit(cache=True, forceinline=True)
def _turned_axes(R: Matrix, phi: Vector, p: Vector, s: float, along: float) -> Matrix:
    """L R with L = s I + along p p^T and p = R phi: column a is s times axis a, plus along phi_a p."""
    return (
        s * R[0] + along * phi[0] * p[0], s * R[1] + along * phi[1] * p[0], s * R[2] + along * phi[2] * p[0],
        s * R[3] + along * phi[0] * p[1], s * R[4] + along * phi[1] * p[1], s * R[5] + along * phi[2] * p[1],
        s * R[6] + along * phi[0] * p[2], s * R[7] + along * phi[1] * p[2], s * R[8] + along * phi[2] * p[2],
    )  # fmt: skip


@njit(cache=True, forceinline=True)
def _gap_derivatives(c_i: Vector, c_j: Vector, g: Vector, p: Vector, tangent: float) -> tuple[Matrix, Matrix]:
    """H_i = [c_i] + [g] (I - B) and H_j = [c_j] + [g] B with [g] B = [g]/2 - tangent/2 (p g^T - (g . p) I)."""
    half = 0.5 * tangent
    skew = cross_matrix(scaled(0.5, g))
    uneven = add_to_diagonal(outer(scaled(half, p), g), -(half * dot(g, p)))
    return plus(plus(cross_matrix(c_i), skew), uneven), minus(plus(cross_matrix(c_j), skew), uneven)


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
    that by x_i is minus it), by the rotation of i and by that of j (N m). Of each joint ``geometry`` (n + 1, GEOMETRY) keeps
    C, H_i, H_j and D (below), the tangent ``axis``, the ``tension`` for :func:`joint_blocks`, clipped to [0, ceiling] N, and
    the stretch.

    Derivation, sums over repeated indices, K and N the stiffness along the axes and about them. The strain is
    e_a = R_ka g_k and f_a = phi_a - phi_0a, the energy E = (K_a e_a^2 + N_a f_a^2) / 2. A turn w of a pose changes its
    axes by d R_ka = eps_klm w_l R_ma, so with the velocities of both links

        d g_k = u_jk - u_ik + [c_i]_kl w_il + [c_j]_kl w_jl,
        R_ka d e_a = d g_k + [g]_kl w_l,  w = (I - B) w_i + B w_j the velocity of R, B = (I - tan(|p|/4)/|p| [p]) / 2,
        R_ka d phi_a = L_kl (w_jl - w_il),  L = s I + (1 - s) p p^T / |p|^2,  s = (|p|/2) / sin(|p|/2),

    p_k = R_ka phi_a the turn in world axes; B and L are the exact tangent maps of the rotation half-way and of the logarithm.
    So R d e = u_j - u_i + H_i w_i + H_j w_j with H_i = [c_i] + [g] (I - B) and H_j = [c_j] + [g] B, and with
    [g] [p] = p g^T - (g . p) I both are plain sums. The derivatives of E are

        n = C g by x_j,  H_i^T n - m by the turn of i,  H_j^T n + m by the turn of j,
        C = R K R^T,  m = L R N f;

    C and D = L R N R^T L^T are the stiffness that :func:`joint_blocks` takes. A ball joint has C = K I, H = [c] and no m.
    """
    energy = 0.0
    for k in range(kind.shape[0]):
        if kind[k] == ABSENT:
            for c in range(6):
                strain[k, c] = 0.0
            for c in range(9):
                force[k, c] = 0.0
            continue
        c_i = scaled(arm[k], axis_of(rotation, k))
        c_j = scaled(arm[k + 1], axis_of(rotation, k + 1))
        g = gap_of(poses, k, c_i, c_j)
        if kind[k] == BALL:
            link = 1 if k == 0 else k
            spring = stiffness[k, 2]
            e = transposed_times_vector(matrix_at(rotation, link, 0), g)
            f = (0.0, 0.0, 0.0)
            energy += 0.5 * spring * dot(g, g)
            n = scaled(spring, g)
            m = (0.0, 0.0, 0.0)
            H_i, H_j = cross_matrix(c_i), cross_matrix(c_j)
            C = (spring, 0.0, 0.0, 0.0, spring, 0.0, 0.0, 0.0, spring)
            D = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
            axis = axis_of(rotation, link)
            tension = max(spring * e[2], 0.0)
            stretch = 0.0
        else:
            middle, phi = middle_rotation(poses, k, k + 1)
            R = rotation_of(middle)
            along_axes, about_axes = vector_at(stiffness, k, 0), vector_at(stiffness, k, 3)
            e = transposed_times_vector(R, g)
            f = (phi[0] - rest[k, 0], phi[1] - rest[k, 1], phi[2] - rest[k, 2])
            energy = _plus_energy(_plus_energy(energy, along_axes, e), about_axes, f)
            p = times_vector(R, phi)
            s, along, tangent = _angle_factors(p)
            LR = _turned_axes(R, phi, p, s, along)
            C = turned_diagonal(R, along_axes)
            D = turned_diagonal(LR, about_axes)
            n = times_vector(C, g)
            m = times_vector(LR, by_entries(about_axes, f))
            H_i, H_j = _gap_derivatives(c_i, c_j, g, p, tangent)
            axis = (R[2], R[5], R[8])
            tension = min(max(along_axes[2] * e[2], 0.0), ceiling)
            stretch = e[2]
        turn_i, turn_j = transposed_times_vector(H_i, n), transposed_times_vector(H_j, n)
        put_vector(strain, k, 0, e)
        put_vector(strain, k, 3, f)
        put_vector(force, k, 0, n)
        put_vector(force, k, 3, (turn_i[0] - m[0], turn_i[1] - m[1], turn_i[2] - m[2]))
        put_vector(force, k, 6, (turn_j[0] + m[0], turn_j[1] + m[1], turn_j[2] + m[2]))
        put_matrix(geometry, k, _C, C)
        put_matrix(geometry, k, _HI, H_i)
        put_matrix(geometry, k, _HJ, H_j)
        put_matrix(geometry, k, _D, D)
        put_vector(geometry, k, _AXIS, axis)
        geometry[k, _TENSION] = tension
        geometry[k, _STRETCH] = stretch
    return energy


@njit(cache=True)
def take_pulls(kind: np.ndarray, force: np.ndarray, ceiling: float, geometry: np.ndarray) -> None:
    """Take the tension of ``geometry`` from forces (n + 1, 9) N that act in place of those of the same poses.

    Half-way through a step, links that turn stand apart as they do at neither end of it: their stiffness makes a pull of that
    which does not act.
    """
    for k in range(kind.shape[0]):
        if kind[k] != ABSENT:
            pull = max(dot(vector_at(force, k, 0), vector_at(geometry, k, _AXIS)), 0.0)
            geometry[k, _TENSION] = pull if kind[k] == BALL else min(pull, ceiling)


@njit(cache=True)
def pulls_by_velocity(kind: np.ndarray, force: np.ndarray, geometry: np.ndarray, pull: np.ndarray, ways: np.ndarray) -> None:
    """Fill the pull of each joint, (n + 1,) N, and how its stretch goes with the velocities of its sides, ``ways`` (n + 1, 9).

    ``force`` (n + 1, 9) N is that which acts. With H_i, H_j and the axis a of ``geometry`` the stretch goes by
    a . (u_j - u_i) + (H_i^T a) . w_i + (H_j^T a) . w_j; a, H_i^T a and H_j^T a are a row of ``ways``.
    """
    for k in range(kind.shape[0]):
        if kind[k] == ABSENT:
            continue
        axis = vector_at(geometry, k, _AXIS)
        pull[k] = dot(vector_at(force, k, 0), axis)
        put_vector(ways, k, 0, axis)
        put_vector(ways, k, 3, transposed_times_vector(matrix_at(geometry, k, _HI), axis))
        put_vector(ways, k, 6, transposed_times_vector(matrix_at(geometry, k, _HJ), axis))


@njit(cache=True)
def foresee_pulls(
    kind: np.ndarray,
    pull: np.ndarray,
    ways: np.ndarray,
    stiffness: np.ndarray,
    before: np.ndarray,
    now: np.ndarray,
    implicit: float,
    foreseen: np.ndarray,
) -> None:
    """Fill what a linearisation foresees of the pull of each joint, (n + 1,) N, at velocities ``now`` (n + 2, 6); at least 0.

    ``pull`` and ``ways`` are those of :func:`pulls_by_velocity` at velocities ``before``, ``stiffness`` (n + 1, 6) N/m is that of
    the joints, ``implicit`` s the time that velocities act for.
    """
    for k in range(kind.shape[0]):
        if kind[k] == ABSENT:
            continue
        rate = 0.0
        for c in range(3):
            u_i, u_j = now[k, c] - before[k, c], now[k + 1, c] - before[k + 1, c]
            w_i, w_j = now[k, 3 + c] - before[k, 3 + c], now[k + 1, 3 + c] - before[k + 1, 3 + c]
            rate += ways[k, c] * (u_j - u_i) + ways[k, 3 + c] * w_i + ways[k, 6 + c] * w_j
        foreseen[k] = max(pull[k] + implicit * stiffness[k, 2] * rate, 0.0)


@njit(cache=True)
def bound_pulls(most: np.ndarray, geometry: np.ndarray) -> None:
    """Leave no more of the tension of ``geometry`` than ``most`` (n + 1,) N."""
    for k in range(most.shape[0]):
        geometry[k, _TENSION] = min(geometry[k, _TENSION], most[k])


@njit(cache=True, forceinline=True)
def _across(A: Matrix, factor: float, d: Vector) -> Matrix:
    """Return A + factor (I - d d^T), d of unit length."""
    return add_to_diagonal(minus(A, outer(scaled(factor, d), d)), factor)


@njit(cache=True, forceinline=True)
def _mirrored(A: Matrix) -> Matrix:
    """Copy the lower triangle of A to the upper one: symmetric to the last bit."""
    return A[0], A[3], A[6], A[3], A[4], A[7], A[6], A[7], A[8]


@njit(cache=True, forceinline=True)
def _sum_by_rows(A: Matrix, B: Matrix, C: Matrix) -> Matrix:
    """Return A + B + C, below the diagonal A + C + B: the same bits as the transpose of A^T + C^T + B^T, summed alike."""
    upper, lower = plus(plus(A, B), C), plus(plus(A, C), B)
    return upper[0], upper[1], upper[2], lower[3], upper[4], upper[5], lower[6], lower[7], upper[8]


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
    for k in range(kind.shape[0]):
        if kind[k] == ABSENT:
            continue
        C, D = matrix_at(geometry, k, _C), matrix_at(geometry, k, _D)
        H_i, H_j = matrix_at(geometry, k, _HI), matrix_at(geometry, k, _HJ)
        U_i, U_j = times(C, H_i), times(C, H_j)
        T_ii = scaled_matrix(material, plus(transposed_times(H_i, U_i), D))
        T_ij = scaled_matrix(material, minus(transposed_times(H_i, U_j), D))
        T_jj = scaled_matrix(material, plus(transposed_times(H_j, U_j), D))
        U_i, U_j = scaled_matrix(material, U_i), scaled_matrix(material, U_j)
        pull = geometric * geometry[k, _TENSION]
        length = arm[k] + arm[k + 1]
        if pull > 0.0:
            axis = vector_at(geometry, k, _AXIS)
            if kind[k] == BALL:
                if k == 0:
                    T_jj = _across(T_jj, pull * length, axis)
                else:
                    T_ii = _across(T_ii, pull * length, axis)
            else:
                stretch = geometry[k, _STRETCH]
                middle = 0.25 * pull * (2.0 * length + stretch)
                uneven = 0.5 * pull * (arm[k + 1] - arm[k])
                turning = scaled(0.5 * pull, axis)
                Z_i, Z_j = cross_times(turning, H_i), cross_times(turning, H_j)
                U_i, U_j = minus(U_i, cross_matrix(turning)), minus(U_j, cross_matrix(turning))
                T_ii = plus(plus(_across(T_ii, middle - uneven, axis), transposed(Z_i)), Z_i)
                T_jj = plus(plus(_across(T_jj, middle + uneven, axis), transposed(Z_j)), Z_j)
                T_ij = _sum_by_rows(_across(T_ij, 0.25 * pull * stretch, axis), Z_j, transposed(Z_i))
        put_matrix(blocks, k, _S, scaled_matrix(material, C))
        put_matrix(blocks, k, _UI, U_i)
        put_matrix(blocks, k, _UJ, U_j)
        put_matrix(blocks, k, _TII, _mirrored(T_ii))
        put_matrix(blocks, k, _TIJ, T_ij)
        put_matrix(blocks, k, _TJJ, _mirrored(T_jj))


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
def add_joint_responses(blocks: np.ndarray, velocity: np.ndarray, responses: np.ndarray, out: np.ndarray) -> None:
    """Fill the response (n + 1, 12) of all joints to velocities (n + 2, 6) of the poses; add to out (6 n,) what links feel."""
    n = velocity.shape[0] - 2
    for k in range(n + 1):
        joint_response(blocks, k, velocity[k : k + 2].reshape(12), responses[k])
        for c in range(6):
            if k > 0:
                out[6 * (k - 1) + c] += responses[k, c]
            if k < n:
                out[6 * k + c] += responses[k, 6 + c]


@njit(cache=True)
def equations(
    rotation: np.ndarray,
    there: np.ndarray,
    v: np.ndarray,
    v_hat: np.ndarray,
    mass: np.ndarray,
    inertia: np.ndarray,
    damping: np.ndarray,
    force: np.ndarray,
    implicit: float,
    alpha: float,
    linear: bool,
    out: np.ndarray,
    inertial: np.ndarray,
) -> None:
    """Fill the equations of the links at v_hat (6 n,) without external forces and damping of the joints, N and N m.

    ``inertial`` (6 n,) becomes the change of momentum, (M_there v_hat - M v)/implicit, ``out`` that + D v_hat + f. The others
    are as in :func:`system`; ``rotation`` is that of the start of the step, ``there`` the one where f and M_there are evaluated,
    ``force`` that of the joints there. Where a step is ``linear`` M_there is M, and ``out`` has C v of the start: forces that
    grow from step to step where thin links turn, as they move the spin about their axes by the much larger one across it.
    The 13 parameters are the step, the constants of the links, the forces on them and the results.
    """
    for i in range(mass.shape[0]):
        principal = vector_at(inertia, i, 0)
        spin_matrix = turned_diagonal(matrix_at(rotation, i + 1, 0), principal)
        spin_there = spin_matrix if linear else turned_diagonal(matrix_at(there, i + 1, 0), principal)
        o = 6 * i
        w, w_hat = (v[o + 3], v[o + 4], v[o + 5]), (v_hat[o + 3], v_hat[o + 4], v_hat[o + 5])
        spin, slowed = times_vector(spin_matrix, w), times_vector(spin_there, w_hat)
        gained = less(slowed, spin)
        gyroscopic = cross(w, spin) if linear else (0.0, 0.0, 0.0)
        for c in range(3):
            inertial[o + c] = mass[i] * (v_hat[o + c] - v[o + c]) / implicit
            along = (alpha * mass[i] + damping[i, 0]) * v_hat[o + c]
            out[o + c] = inertial[o + c] + along + force[i, c] - force[i + 1, c]
            inertial[o + 3 + c] = gained[c] / implicit
            turning = alpha * slowed[c] + damping[i, 1] * w_hat[c]
            out[o + 3 + c] = inertial[o + 3 + c] + gyroscopic[c] + turning + force[i, 6 + c] + force[i + 1, 3 + c]


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
    own and those of the link behind it, as far as there are. The 15 arguments are state, constants, joints and ends of one rod.
    """
    n = mass.shape[0]
    for i in range(n):
        start = 36 * (3 * i - 1) if i > 0 else 0
        own = 6 if i > 0 else 0
        stride = own + (12 if i < n - 1 else 6)
        spin_matrix = turned_diagonal(matrix_at(rotation, i + 1, 0), vector_at(inertia, i, 0))
        # what stands before (as j of joint i) and behind (as i of joint i + 1); absent joints are zero
        place = start + own
        for c in range(3):
            for r in range(3):
                rc = 3 * r + c
                coupled = blocks[i, _UJ + rc] - blocks[i + 1, _UI + rc]
                data[place + c * stride + r] = blocks[i, _S + rc] + blocks[i + 1, _S + rc]
                data[place + (3 + c) * stride + r] = coupled
                data[place + r * stride + 3 + c] = coupled
                data[place + (3 + c) * stride + 3 + r] = blocks[i, _TJJ + rc] + blocks[i + 1, _TII + rc]
        factor = 1.0 / implicit + alpha
        along = factor * mass[i] + damping[i, 0]
        data[place] += along
        data[place + stride + 1] += along
        data[place + 2 * stride + 2] += along
        turn = place + 3 * stride + 3
        turning = add_to_diagonal(scaled_matrix(factor, spin_matrix), damping[i, 1])
        for c in range(3):
            for r in range(3):
                data[turn + c * stride + r] += turning[3 * r + c]
        w = (v[6 * i + 3], v[6 * i + 4], v[6 * i + 5])
        spin = times_vector(spin_matrix, w)
        gyroscopic = cross(w, spin)
        for c in range(3):
            b[6 * i + 3 + c] += spin[c] / implicit - gyroscopic[c]
        for c in range(3):
            b[6 * i + c] += mass[i] * v[6 * i + c] / implicit - force[i, c] + force[i + 1, c]
            b[6 * i + 3 + c] -= force[i, 6 + c] + force[i + 1, 3 + c]
    _neighbour_blocks(blocks, n, data)
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


@njit(cache=True, inner=True)
def _neighbour_blocks(blocks: np.ndarray, n: int, data: np.ndarray) -> None:
    """Fill the two blocks of A of each joint between links, transposes of each other; the places as in :func:`system`."""
    for k in range(1, n):
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


@njit(cache=True)
def advance(
    q: np.ndarray,
    v: np.ndarray,
    v_hat: np.ndarray,
    inertia: np.ndarray,
    dt: float,
    theta: float,
    linear: bool,
    q_new: np.ndarray,
    v_new: np.ndarray,
) -> None:
    """Fill poses (n, 7) and velocities (6 n,) at the end of the step; the spin of each link is advanced by the torque on it.

    The torque of the step is what :func:`equations`, or where it is ``linear`` eq. (9) with its gyroscopic term, gave the link:
    its spin I w grows by dt times it, and the new w follows from the new orientation.
    """
    for i in range(q.shape[0]):
        o = 6 * i
        for c in range(3):
            q_new[i, c] = q[i, c] + dt * v_hat[o + c]
            v_new[o + c] = v[o + c] + (v_hat[o + c] - v[o + c]) / theta
        start = (q[i, 3], q[i, 4], q[i, 5], q[i, 6])
        w_hat = (v_hat[o + 3], v_hat[o + 4], v_hat[o + 5])
        turned = _turned(start, scaled(0.5 * dt, w_hat))
        for c in range(4):
            q_new[i, 3 + c] = turned[c]
        principal = vector_at(inertia, i, 0)
        w = (v[o + 3], v[o + 4], v[o + 5])
        there = start if linear else _turned(start, scaled(0.5 * theta * dt, w_hat))
        spin = by_body_axes(start, principal, w)
        gained = less(by_body_axes(there, principal, w_hat), spin)
        if linear:
            gained = added(gained, scaled(theta * dt, cross(w, spin)))
        spin = added(spin, scaled(1.0 / theta, gained))
        inverse = (1.0 / inertia[i, 0], 1.0 / inertia[i, 1], 1.0 / inertia[i, 2])
        w_end = by_body_axes(turned, inverse, spin)
        for c in range(3):
            v_new[o + 3 + c] = w_end[c]


@njit(cache=True, forceinline=True)
def _turned(q: Quaternion, half: Vector) -> Quaternion:
    """Turn q by the world rotation vector 2 half, rad, by the exponential map; normalised."""
    angle = math.sqrt(dot(half, half))
    w = math.cos(angle)
    x, y, z = scaled(math.sin(angle) / angle if angle > 1e-8 else 1.0, half)
    q0, q1, q2, q3 = q
    n0 = w * q0 - x * q1 - y * q2 - z * q3
    n1 = w * q1 + x * q0 + y * q3 - z * q2
    n2 = w * q2 - x * q3 + y * q0 + z * q1
    n3 = w * q3 + x * q2 - y * q1 + z * q0
    scale = 1.0 / math.sqrt(n0 * n0 + n1 * n1 + n2 * n2 + n3 * n3)
    return scale * n0, scale * n1, scale * n2, scale * n3


@njit(cache=True, forceinline=True)
def by_body_axes(q: Quaternion, k: Vector, x: Vector) -> Vector:
    """R diag(k) R^T x, R the rotation of the unit quaternion q."""
    R = rotation_of(q)
    return times_vector(R, by_entries(k, transposed_times_vector(R, x)))


@njit(cache=True)
def spins(q: np.ndarray, v: np.ndarray, inertia: np.ndarray, spin: np.ndarray) -> None:
    """Fill the angular momentum (n, 3) of each link about its own centre, kg m^2/s, from poses (n, 7) and velocities (6 n,)."""
    for i in range(q.shape[0]):
        w = (v[6 * i + 3], v[6 * i + 4], v[6 * i + 5])
        L = by_body_axes((q[i, 3], q[i, 4], q[i, 5], q[i, 6]), vector_at(inertia, i, 0), w)
        put_vector(spin, i, 0, L)

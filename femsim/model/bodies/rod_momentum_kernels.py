"""Kernels of the energy-momentum step of rods: forces between two states by which energy and angular momentum are kept.

A link that goes by u dt and Theta = w dt turns by Cayley's map: R1 - R0 = Theta x (R0 + R1)/2, the mid-point rule for its axes.
Then products of axes and gaps change by means times changes, exactly, and so do the strains of the joints (notation of
:mod:`femsim.model.bodies.rod_kernels`; means are those of both ends, T = (Theta_i + Theta_j)/2, delta = Theta_j - Theta_i):

    change of g = dt (u_j - u_i) - Theta_i x mean c_i - Theta_j x mean c_j,
    change of R^T g = mean R^T (change of g - Omega x mean g),   Omega = T + G delta,
    change of phi = P delta,

Omega being the turn of the frame half-way. G and P, below, are matrices of the two states; both hold without remainder, and each
is the mean of two forms that change places when time is reversed, so the step is of second order. With D the matrix of these
changes, D z = change of e for z = (u_i, w_i, u_j, w_j) dt, the forces

    f = D^T K (mean of e + a change of e)

do the work of the energy and lose a times twice the energy of the change of strain. A turn of everything leaves D z = 0, so
moments about the mean places vanish. The spin of a link goes from R0 I W0 to R1 I W1 with W0 + W1 = 2 R0^T w, its velocities in
its own axes, by which the work of a torque is the change of its energy.

Sources: Simo, Tarnow and Doblare, "Non-linear dynamics of three-dimensional rods: exact energy and momentum conserving
algorithms", Int. J. Numer. Methods Eng. 38, 1995; Romero and Armero, "An objective finite element approximation of the kinematics
of geometrically exact rods and its use in the formulation of an energy-momentum conserving scheme in dynamics", ibid. 54, 2002;
the spin: Simo and Wong, ibid. 31, 1991. They interpolate nodes; here the strains are those of femsim's joints.
"""

from __future__ import annotations

import math

import numpy as np

from contact.compiled import njit
from contact.vector_kernels import cross, dot, minus as less, plus as added, times as scaled
from femsim.model.bodies.rod_kernels import (
    ABSENT,
    BALL,
    axis_of,
    by_body_axes,
    gap_of,
    matrix_at,
    put_matrix,
    put_vector,
    vector_at,
)
from femsim.model.bodies.rotation_kernels import (
    Matrix,
    Quaternion,
    Vector,
    by_entries,
    plus,
    relative_rotation,
    rotation_at,
    rotation_of,
    scaled_matrix,
    times_vector,
    transposed_times_vector,
    turn_by_sine,
)

#: Where the parts of what a joint is at the start of a step begin: gap (3), arms of i and j (6), turn (c, s) (4), s in world
#: axes (3), axes half-way (9), strain and turn beyond rest (6), factor of the logarithm; and how many numbers that are.
_GAP, _ARMS, _C, _S, _WORLD, _AXES, _STRAIN, _TURN, _LOG, START = 0, 3, 9, 10, 13, 16, 25, 28, 31, 32
# sin^2 of half a turn below which the logarithm is taken by its series, and change of it below which by its slope
_SMALL_TURN, _SMALL_CHANGE = 0.02, 1e-3


@njit(cache=True, forceinline=True)
def _mean(a: Vector, b: Vector) -> Vector:
    """Return (a + b)/2."""
    return 0.5 * (a[0] + b[0]), 0.5 * (a[1] + b[1]), 0.5 * (a[2] + b[2])


@njit(cache=True, forceinline=True)
def turned_by_cayley(q: Quaternion, turn: Vector) -> Quaternion:
    """Turn q by Cayley's map of a world vector: (1 + turn/2) q, normalised."""
    q0, q1, q2, q3 = q
    x, y, z = scaled(0.5, turn)
    n0 = q0 - x * q1 - y * q2 - z * q3
    n1 = q1 + x * q0 + y * q3 - z * q2
    n2 = q2 - x * q3 + y * q0 + z * q1
    n3 = q3 + x * q2 - y * q1 + z * q0
    scale = 1.0 / math.sqrt(n0 * n0 + n1 * n1 + n2 * n2 + n3 * n3)
    return scale * n0, scale * n1, scale * n2, scale * n3


@njit(cache=True)
def turned_poses(q: np.ndarray, v_hat: np.ndarray, dt: float, q_new: np.ndarray) -> None:
    """Fill where links at poses q (n, 7) go in a time at velocities v_hat (6 n,): centres straight, turns by Cayley's map."""
    for i in range(q.shape[0]):
        o = 6 * i
        for c in range(3):
            q_new[i, c] = q[i, c] + dt * v_hat[o + c]
        turn = (dt * v_hat[o + 3], dt * v_hat[o + 4], dt * v_hat[o + 5])
        turned = turned_by_cayley((q[i, 3], q[i, 4], q[i, 5], q[i, 6]), turn)
        for c in range(4):
            q_new[i, 3 + c] = turned[c]


@njit(cache=True, inner=True)
def turn_slope(h0: float, h1: float, y0: float, y1: float) -> float:
    """(h(y1) - h(y0))/(y1 - y0) of h(y) = 2 asin(sqrt y)/sqrt y, 0 <= y < 1, also where y1 is close to y0."""
    change = y1 - y0
    if abs(change) > _SMALL_CHANGE:
        return (h1 - h0) / change
    y = 0.5 * (y0 + y1)
    if y < _SMALL_TURN:
        first = third = 0.0
        term, power, power_3 = 1.0, 1.0, 1.0
        for k in range(1, 14):
            term *= (2.0 * k - 1.0) / (2.0 * k)
            share = 2.0 * term / (2.0 * k + 1.0)  # h is the sum of share y^k, and 2
            first += share * k * power
            power *= y
            if k >= 3:
                third += share * k * (k - 1.0) * (k - 2.0) * power_3
                power_3 *= y
    else:
        root = 1.0 / math.sqrt(1.0 - y)
        h = 2.0 * math.asin(math.sqrt(y)) / math.sqrt(y)
        first = (root - 0.5 * h) / y
        second = (0.5 * root**3 - 1.5 * first) / y
        third = (0.75 * root**5 - 2.5 * second) / y
    return first + third * change * change / 24.0


@njit(cache=True, forceinline=True)
def _on_frame(t: Vector, T: Vector, delta: Vector, s: Vector, c: float, shares: tuple[float, float], sense: float) -> Vector:
    """G^T t, in the form of the start (sense 1) or the end (-1), of the turn (c, s) between the links in world axes.

    With N = sqrt(1 + |Theta|^2/4) of both links, ``shares`` are sigma, the mean of 1/N, and nu, by which
    1/N_j - 1/N_i = -nu T . delta. The sum of two quaternions turned by (1 + Theta/2)/N makes

        G = [-sense nu X T^T - sigma [s] + (sigma/2) sense T s^T] / d,   X = 2 s + (T . s) T/2 + sense ((1 + c) delta/2 + T x s),
        d = 2 sigma (1 + c) - sense (sigma delta - nu (T . delta) T) . s / 2;

    time reversed, T, delta and Omega change their signs.
    """
    sigma, nu = shares
    along = dot(T, delta)
    along_s = dot(T, s)
    d = 2.0 * sigma * (1.0 + c) - 0.5 * sense * (sigma * dot(delta, s) - nu * along * along_s)
    side = cross(T, s)
    X = (
        2.0 * s[0] + sense * (0.5 * (1.0 + c) * delta[0] + side[0]) + 0.5 * along_s * T[0],
        2.0 * s[1] + sense * (0.5 * (1.0 + c) * delta[1] + side[1]) + 0.5 * along_s * T[1],
        2.0 * s[2] + sense * (0.5 * (1.0 + c) * delta[2] + side[2]) + 0.5 * along_s * T[2],
    )
    on_turn = -sense * nu * dot(X, t)
    on_s = 0.5 * sense * sigma * dot(T, t)
    turned = cross(s, t)  # -[s]^T t = s x t
    return (
        (on_turn * T[0] + sigma * turned[0] + on_s * s[0]) / d,
        (on_turn * T[1] + sigma * turned[1] + on_s * s[1]) / d,
        (on_turn * T[2] + sigma * turned[2] + on_s * s[2]) / d,
    )


@njit(cache=True, forceinline=True)
def _on_turn(x: Vector, R: Matrix, eta: Vector, T: Vector, d: float, N: float, s: Vector, c: float, sense: float) -> Vector:
    """P_s^T x, with P_s delta the change of s in the form of the start (sense 1) or the end (-1); R the axes of link i there."""
    own = scaled(0.5 / N, added(scaled(c, x), cross(s, x)))
    lost = -sense * dot(s, x) / (4.0 * N * (1.0 + N))
    y = times_vector(R, added(own, scaled(lost, eta)))
    return scaled(1.0 / d, added(y, scaled(0.5 * sense, cross(T, y))))


@njit(cache=True)
def joint_starts(
    poses: np.ndarray, rotation: np.ndarray, arm: np.ndarray, kind: np.ndarray, rest: np.ndarray, start: np.ndarray
) -> None:
    """Fill ``start`` (n + 1, START), what :func:`step_forces` needs of each joint where the step starts.

    ``poses`` (n + 2, 7), ``rotation`` (n + 2, 9) and the others are as in ``joint_states``.
    """
    for k in range(kind.shape[0]):
        if kind[k] == ABSENT:
            continue
        i, j = scaled(arm[k], axis_of(rotation, k)), scaled(arm[k + 1], axis_of(rotation, k + 1))
        g = gap_of(poses, k, i, j)
        put_vector(start, k, _GAP, g)
        put_vector(start, k, _ARMS, i)
        put_vector(start, k, _ARMS + 3, j)
        if kind[k] == BALL:
            continue
        c, s, middle = relative_rotation(poses, k, k + 1)
        axes, factor = rotation_of(middle), turn_by_sine(c, s)
        start[k, _C], start[k, _LOG] = c, factor
        put_vector(start, k, _S, s)
        put_vector(start, k, _WORLD, times_vector(axes, s))
        put_matrix(start, k, _AXES, axes)
        put_vector(start, k, _STRAIN, transposed_times_vector(axes, g))
        put_vector(start, k, _TURN, less(scaled(factor, s), vector_at(rest, k, 0)))


@njit(cache=True, inner=True)
def _joint_forces(
    start: np.ndarray,
    rotations: tuple[Matrix, Matrix],
    after: np.ndarray,
    turn: np.ndarray,
    k: int,
    arms: tuple[Vector, Vector],
    g1: Vector,
    stiffness: np.ndarray,
    rest: np.ndarray,
    slowing: float,
) -> tuple[bool, Vector, Vector, Vector]:
    """Give the forces of a joint that is stiff in all ways, by x_j and by the turns of i and j; False where none are found.

    ``rotations`` are those of link i at the start and at the end.
    """
    i, j = k, k + 1
    c0, s0, first_axes = start[k, _C], vector_at(start, k, _S), matrix_at(start, k, _AXES)
    c1, s1, half_way = relative_rotation(after, i, j)
    last_axes = rotation_of(half_way)
    first, second = vector_at(turn, i, 0), vector_at(turn, j, 0)
    T, delta = _mean(first, second), less(second, first)
    d = 1.0 + 0.25 * dot(first, second)
    nothing = (0.0, 0.0, 0.0)
    if d <= 0.0:
        return False, nothing, nothing, nothing
    # turn of j against i in the axes of i, at the start and at the end
    side = cross(T, delta)
    eta0 = transposed_times_vector(rotations[0], scaled(1.0 / d, less(delta, scaled(0.5, side))))
    eta1 = transposed_times_vector(rotations[1], scaled(1.0 / d, added(delta, scaled(0.5, side))))
    N = math.sqrt(1.0 + 0.25 * dot(eta0, eta0))
    if c0 - 0.5 * dot(eta0, s0) <= 0.0:  # beyond half a turn, where the logarithm jumps
        return False, nothing, nothing, nothing
    # stresses: K (mean e + a change of e)
    along, about = vector_at(stiffness, k, 0), vector_at(stiffness, k, 3)
    e0, e1 = vector_at(start, k, _STRAIN), transposed_times_vector(last_axes, g1)
    h0, h1 = start[k, _LOG], turn_by_sine(c1, s1)
    f0, f1 = vector_at(start, k, _TURN), less(scaled(h1, s1), vector_at(rest, k, 0))
    pull = by_entries(along, added(_mean(e0, e1), scaled(slowing, less(e1, e0))))
    moment = by_entries(about, added(_mean(f0, f1), scaled(slowing, less(f1, f0))))
    # the gap in the axes half-way
    n = times_vector(scaled_matrix(0.5, plus(first_axes, last_axes)), pull)
    t = cross(n, _mean(vector_at(start, k, _GAP), g1))
    norm_i, norm_j = math.sqrt(1.0 + 0.25 * dot(first, first)), math.sqrt(1.0 + 0.25 * dot(second, second))
    shares = (0.5 * (1.0 / norm_i + 1.0 / norm_j), 0.5 / (norm_i * norm_j * (norm_i + norm_j)))
    uneven = _mean(
        _on_frame(t, T, delta, vector_at(start, k, _WORLD), c0, shares, 1.0),
        _on_frame(t, T, delta, times_vector(last_axes, s1), c1, shares, -1.0),
    )
    # the logarithm of the turn
    middle = _mean(s0, s1)
    slope = 2.0 * turn_slope(h0, h1, dot(s0, s0), dot(s1, s1)) * dot(middle, moment)
    x = added(scaled(0.5 * (h0 + h1), moment), scaled(slope, middle))
    m = _mean(
        _on_turn(x, rotations[0], eta0, T, d, N, s0, c0, 1.0),
        _on_turn(x, rotations[1], eta1, T, d, N, s1, c1, -1.0),
    )
    half, twist = scaled(0.5, t), added(uneven, m)
    arm_i, arm_j = arms
    on_i = less(less(half, twist), cross(arm_i, n))
    on_j = less(added(half, twist), cross(arm_j, n))
    return True, n, on_i, on_j


@njit(cache=True, inner=True)
def joint_force(
    start: np.ndarray,
    rotation: np.ndarray,
    after: np.ndarray,
    turn: np.ndarray,
    arm: np.ndarray,
    kind: np.ndarray,
    stiffness: np.ndarray,
    rest: np.ndarray,
    slowing: float,
    end_rotation: np.ndarray,
    k: int,
) -> tuple[bool, Vector, Vector, Vector]:
    """Give the forces of joint k, which is not absent, as :func:`step_forces` orders them; False where none are found.

    The 11 parameters are those of :func:`step_forces`, with the axes at the end of the step, (n + 2, 9).
    """
    i1, j1 = scaled(arm[k], axis_of(end_rotation, k)), scaled(arm[k + 1], axis_of(end_rotation, k + 1))
    arms = (_mean(vector_at(start, k, _ARMS), i1), _mean(vector_at(start, k, _ARMS + 3), j1))
    g1 = gap_of(after, k, i1, j1)
    if kind[k] != BALL:
        axes = matrix_at(rotation, k, 0), matrix_at(end_rotation, k, 0)
        return _joint_forces(start, axes, after, turn, k, arms, g1, stiffness, rest, slowing)
    # the change of the gap is damped in the axes of the link
    link = 1 if k == 0 else k
    g0 = vector_at(start, k, _GAP)
    g, spring = _mean(g0, g1), stiffness[k, 2]
    R = scaled_matrix(0.5, plus(matrix_at(rotation, link, 0), matrix_at(end_rotation, link, 0)))
    change = transposed_times_vector(R, less(less(g1, g0), cross(vector_at(turn, link, 0), g)))
    slowed = times_vector(R, scaled(spring * slowing, change))
    n, t = added(scaled(spring, g), slowed), cross(slowed, g)
    on_i, on_j = cross(n, arms[0]), cross(n, arms[1])
    if k == 0:
        return True, n, on_i, added(on_j, t)
    return True, n, added(on_i, t), on_j


@njit(cache=True)
def step_forces(
    start: np.ndarray,
    rotation: np.ndarray,
    after: np.ndarray,
    turn: np.ndarray,
    arm: np.ndarray,
    kind: np.ndarray,
    stiffness: np.ndarray,
    rest: np.ndarray,
    slowing: float,
    middle: np.ndarray,
    end_rotation: np.ndarray,
    force: np.ndarray,
) -> None:
    """Fill the force (n + 1, 9) of each joint against deformation in a step, as ``joint_states`` orders it.

    ``start`` (n + 1, START) and ``rotation`` (n + 2, 9) are the joints, see :func:`joint_starts`, and the axes of all poses at
    the start of the step, ``after`` (n + 2, 7) the poses at its end, ``turn`` (n + 2, 3) rad Cayley's vectors between their
    axes; ``slowing`` is a, the part of the change of strain that is damped. ``arm``, ``kind``, ``stiffness`` and ``rest`` are as
    in ``joint_states``. Where a joint turns beyond half a turn in the step it has its force of ``middle`` (n + 1, 9).
    ``end_rotation`` (n + 2, 9) becomes the axes at the end. The 12 parameters are both ends of the step, the constants of the
    joints and the results.
    """
    for p in range(after.shape[0]):
        put_matrix(end_rotation, p, 0, rotation_at(after, p))
    for k in range(kind.shape[0]):
        if kind[k] == ABSENT:
            for c in range(9):
                force[k, c] = 0.0
            continue
        found, n, on_i, on_j = joint_force(start, rotation, after, turn, arm, kind, stiffness, rest, slowing, end_rotation, k)
        if found:
            put_vector(force, k, 0, n)
            put_vector(force, k, 3, on_i)
            put_vector(force, k, 6, on_j)
        else:
            for c in range(9):
                force[k, c] = middle[k, c]


@njit(cache=True, inner=True)
def turned_force(
    before: np.ndarray,
    after: np.ndarray,
    v: np.ndarray,
    v_hat: np.ndarray,
    inertia: np.ndarray,
    drag: float,
    dt: float,
    alpha: float,
    i: int,
) -> tuple[Vector, Vector]:
    """Give the rate of the spin of link i, and that with drag and mass-proportional damping, N m, see :func:`step_equations`."""
    o = 6 * i
    start = (before[i, 3], before[i, 4], before[i, 5], before[i, 6])
    end = (after[i, 3], after[i, 4], after[i, 5], after[i, 6])
    w, w_hat = (v[o + 3], v[o + 4], v[o + 5]), (v_hat[o + 3], v_hat[o + 4], v_hat[o + 5])
    principal = vector_at(inertia, i, 0)
    own, own_hat = transposed_times_vector(rotation_of(start), w), transposed_times_vector(rotation_of(start), w_hat)
    at_end = by_entries(principal, less(scaled(2.0, own_hat), own))
    spin = by_body_axes(start, principal, w)
    spin_end = times_vector(rotation_of(end), at_end)
    slowed = _mean(by_body_axes(start, principal, w_hat), by_body_axes(end, principal, w_hat))
    rate = ((spin_end[0] - spin[0]) / dt, (spin_end[1] - spin[1]) / dt, (spin_end[2] - spin[2]) / dt)
    slowing = added(scaled(alpha, slowed), scaled(drag, w_hat))
    return rate, added(rate, slowing)


@njit(cache=True)
def step_equations(
    before: np.ndarray,
    after: np.ndarray,
    v: np.ndarray,
    v_hat: np.ndarray,
    mass: np.ndarray,
    inertia: np.ndarray,
    damping: np.ndarray,
    force: np.ndarray,
    dt: float,
    alpha: float,
    out: np.ndarray,
    inertial: np.ndarray,
) -> None:
    """Fill the equations of the links at v_hat (6 n,) without external forces, N and N m.

    ``before`` and ``after`` (n, 7) are the poses of the links at both ends of the step, v (6 n,) the velocities at its start,
    ``force`` (n + 1, 9) that of the joints; ``mass``, ``inertia`` and ``damping`` as in ``rod_kernels.system``. ``inertial``
    (6 n,) becomes the change of momentum and spin by dt, ``out`` that with drag and joints. The 12 parameters are both ends of
    the step, the constants of the links, the forces on them and the results.
    """
    for i in range(mass.shape[0]):
        o = 6 * i
        rate, turning = turned_force(before, after, v, v_hat, inertia, damping[i, 1], dt, alpha, i)
        for c in range(3):
            inertial[o + c] = 2.0 * mass[i] * (v_hat[o + c] - v[o + c]) / dt
            along = (alpha * mass[i] + damping[i, 0]) * v_hat[o + c]
            out[o + c] = inertial[o + c] + along + force[i, c] - force[i + 1, c]
            inertial[o + 3 + c] = rate[c]
            out[o + 3 + c] = turning[c] + force[i, 6 + c] + force[i + 1, 3 + c]


@njit(cache=True)
def step_advance(q: np.ndarray, v: np.ndarray, v_hat: np.ndarray, dt: float, q_new: np.ndarray, v_new: np.ndarray) -> None:
    """Fill poses (n, 7) and velocities (6 n,) at the end of the step; those in the axes of a link become 2 v_hat - v."""
    turned_poses(q, v_hat, dt, q_new)
    for i in range(q.shape[0]):
        o = 6 * i
        start, end = rotation_at(q, i), rotation_at(q_new, i)
        rest = (2.0 * v_hat[o + 3] - v[o + 3], 2.0 * v_hat[o + 4] - v[o + 4], 2.0 * v_hat[o + 5] - v[o + 5])
        w = times_vector(end, transposed_times_vector(start, rest))
        for c in range(3):
            v_new[o + c] = 2.0 * v_hat[o + c] - v[o + c]
            v_new[o + 3 + c] = w[c]

"""Kernels of trees of rigid links in generalized coordinates: places, twists, mass matrix and inverse dynamics.

All spatial quantities are in world axes, those that are summed along the tree about one point, the centre of mass of the base.
So nothing is transformed from link to link: the composite rigid bodies of the mass matrix and the forces of inverse dynamics
are sums. The algorithms are those of Featherstone, "Rigid Body Dynamics Algorithms", Springer 2008, chapters 5 (recursive
Newton-Euler) and 6 (composite rigid bodies).

``q`` holds the place of the base's centre of mass (3), its quaternion (4) and the joint coordinates, a quaternion for a spherical
joint; ``v`` the base's velocity (3), its angular velocity (3), world, and the joint speeds. The speed of a spherical joint is the
angular velocity of the link against its parent, in the axes of the joint on the parent.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from contact.compiled import njit
from contact.vector_kernels import cross, dot, minus as less, plus as added, row, times as scaled
from femsim.model.bodies.rotation_kernels import (
    Matrix,
    Quaternion,
    Vector,
    rotation_entries,
    times,
    times_transposed,
    times_vector,
    transposed_times_vector,
)

#: Kinds of joints, by their numbers in :class:`Tree`.
FIXED, REVOLUTE, PRISMATIC, SPHERICAL = range(4)


class Tree(NamedTuple):
    """Links in an order in which parents come first; the base is link 0.

    Attributes
    ----------
    parent, kind : ndarray, (links,)
        Parent of each link, -1 for the base, and the kind of the joint to it.
    row, coordinate : ndarray, (links,)
        First row of v and first entry of q of the joint, -1 where it has none. A mimic joint has those of the joint it follows.
    leads : ndarray, (links,), bool
        Whether the joint has a coordinate of its own.
    ratio, offset : ndarray, (links,)
        Position of the joint is ratio q + offset, in rad or m; 1 and 0 but for mimic joints.
    place, turn : ndarray, (links, 3) and (links, 3, 3), m
        Frame of the joint in that of the parent.
    axis : ndarray, (links, 3)
        Unit axis of the joint in its frame.
    centre : ndarray, (links, 3), m
        Centre of mass in the frame of the link.
    mass, inertia : ndarray, (links,) and (links, 3, 3), kg and kg m^2
        Mass, and inertia about the centre of mass in the axes of the link.
    rotor : ndarray, (n_v,), kg m^2 or kg
        Inertia of the rotors as the joints feel it; zero on the rows of the base.
    """

    parent: np.ndarray
    kind: np.ndarray
    row: np.ndarray
    coordinate: np.ndarray
    leads: np.ndarray
    ratio: np.ndarray
    offset: np.ndarray
    place: np.ndarray
    turn: np.ndarray
    axis: np.ndarray
    centre: np.ndarray
    mass: np.ndarray
    inertia: np.ndarray
    rotor: np.ndarray


class Places(NamedTuple):
    """Where the links are.

    Attributes
    ----------
    rotation : ndarray, (links, 3, 3)
        World rotation of each link.
    centre, origin : ndarray, (links, 3), m
        Centre of mass, and origin of the link's frame, which lies on the axis of its joint.
    axis : ndarray, (links, 3, 3)
        World directions of the joint: the first row, of a spherical joint all three.
    """

    rotation: np.ndarray
    centre: np.ndarray
    origin: np.ndarray
    axis: np.ndarray


def no_places(links: int) -> Places:
    """Room for the places of so many links."""
    return Places(np.zeros((links, 3, 3)), np.zeros((links, 3)), np.zeros((links, 3)), np.zeros((links, 3, 3)))


@njit(cache=True, forceinline=True)
def link_matrix(a: np.ndarray, i: int) -> Matrix:
    """Matrix of a link out of those of all, (links, 3, 3)."""
    return a[i, 0, 0], a[i, 0, 1], a[i, 0, 2], a[i, 1, 0], a[i, 1, 1], a[i, 1, 2], a[i, 2, 0], a[i, 2, 1], a[i, 2, 2]


@njit(cache=True, inner=True)
def _turned(axis: Vector, angle: float) -> Matrix:
    """Rotation by an angle (rad) about a unit axis, by its quaternion."""
    half = math.sin(0.5 * angle)
    return rotation_entries(math.cos(0.5 * angle), half * axis[0], half * axis[1], half * axis[2])


@njit(cache=True)
def place_links(tree: Tree, q: np.ndarray, out: Places) -> None:
    """Fill where the links are at coordinates q (n_q,)."""
    for k in range(tree.parent.shape[0]):
        kind, c = tree.kind[k], tree.coordinate[k]
        if k == 0:
            R = rotation_entries(q[3], q[4], q[5], q[6])
            origin = less((q[0], q[1], q[2]), times_vector(R, row(tree.centre, 0)))
        else:
            p = tree.parent[k]
            above = link_matrix(out.rotation, p)
            R = times(above, link_matrix(tree.turn, k))
            origin = added(row(out.origin, p), times_vector(above, row(tree.place, k)))
            own = row(tree.axis, k)
            if kind == SPHERICAL:
                for i in range(3):  # the axes of the joint on the parent
                    for j in range(3):
                        out.axis[k, i, j] = R[3 * j + i]
                R = times(R, rotation_entries(q[c], q[c + 1], q[c + 2], q[c + 3]))
            elif kind != FIXED:
                axis = times_vector(R, own)
                out.axis[k, 0, 0], out.axis[k, 0, 1], out.axis[k, 0, 2] = axis
                position = tree.ratio[k] * q[c] + tree.offset[k]
                if kind == REVOLUTE:
                    R = times(R, _turned(own, position))
                else:
                    origin = added(origin, scaled(position, axis))
        centre = added(origin, times_vector(R, row(tree.centre, k)))
        if k == 0:
            centre = (q[0], q[1], q[2])
        for i in range(3):
            out.origin[k, i], out.centre[k, i] = origin[i], centre[i]
            for j in range(3):
                out.rotation[k, i, j] = R[3 * i + j]


@njit(cache=True, inner=True)
def _joint_twist(tree: Tree, places: Places, v: np.ndarray, k: int) -> tuple[Vector, Vector]:
    """Return how fast a joint slides (m/s) and turns (rad/s), world."""
    kind, r = tree.kind[k], tree.row[k]
    slide, turn = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
    if kind == SPHERICAL:
        for i in range(3):
            turn = added(turn, scaled(v[r + i], row(places.axis[k], i)))
    elif kind == REVOLUTE:
        turn = scaled(tree.ratio[k] * v[r], row(places.axis[k], 0))
    elif kind == PRISMATIC:
        slide = scaled(tree.ratio[k] * v[r], row(places.axis[k], 0))
    return slide, turn


@njit(cache=True)
def fill_twists(tree: Tree, places: Places, v: np.ndarray, twist: np.ndarray) -> None:
    """Fill the velocity of the centre of mass and the angular velocity of each link, (links, 6), m/s and rad/s."""
    for i in range(6):
        twist[0, i] = v[i]
    for k in range(1, tree.parent.shape[0]):
        p = tree.parent[k]
        above = (twist[p, 3], twist[p, 4], twist[p, 5])
        slide, turn = _joint_twist(tree, places, v, k)
        at = added(
            (twist[p, 0], twist[p, 1], twist[p, 2]),
            cross(above, less(row(places.origin, k), row(places.centre, p))),
        )
        omega = added(above, turn)
        velocity = added(added(at, slide), cross(omega, less(row(places.centre, k), row(places.origin, k))))
        for i in range(3):
            twist[k, i], twist[k, 3 + i] = velocity[i], omega[i]


@njit(cache=True)
def fill_momenta(tree: Tree, places: Places, twist: np.ndarray, momentum: np.ndarray) -> None:
    """Fill momentum and spin about the own centre of mass of each link, (links, 6), kg m/s and kg m^2/s."""
    for k in range(tree.parent.shape[0]):
        R = link_matrix(places.rotation, k)
        inertia = times_transposed(times(R, link_matrix(tree.inertia, k)), R)
        spin = times_vector(inertia, (twist[k, 3], twist[k, 4], twist[k, 5]))
        for i in range(3):
            momentum[k, i], momentum[k, 3 + i] = tree.mass[k] * twist[k, i], spin[i]


class Thin(NamedTuple):
    """How thin links are.

    Attributes
    ----------
    axis : ndarray, (links, 3)
        Axis of least inertia in the frame of each link.
    least, across : ndarray, (links,), kg m^2
        Moment of inertia about it, and mean of the two others, which differ by less than ``least``.
    rest : ndarray, (links, 3, 3), kg m^2
        What the inertia has beside these: it is square to the axis and no larger than half of ``least``.
    """

    axis: np.ndarray
    least: np.ndarray
    across: np.ndarray
    rest: np.ndarray


def how_thin(inertia: np.ndarray) -> Thin:
    """How thin links are whose inertia, (links, 3, 3), kg m^2, is that about their centres of mass."""
    moments, axes = np.linalg.eigh(inertia)
    axis, least, across = np.ascontiguousarray(axes[:, :, 0]), np.maximum(moments[:, 0], 0.0), moments[:, 1:].mean(axis=1)
    along = axis[:, :, None] * axis[:, None, :]
    rest = inertia - across[:, None, None] * (np.eye(3) - along) - least[:, None, None] * along
    return Thin(axis, least, across, np.ascontiguousarray(rest))


@njit(cache=True, inner=True)
def thin_impulse(
    axes: tuple[Vector, Vector, Vector], turns: tuple[Matrix, Matrix, Matrix], omegas: tuple[Vector, Vector, Vector],
    least: float, across: float, rest: Matrix, dt: float,
) -> Vector:  # fmt: skip
    """Return the impulse of the torque, N m s, by which the angular velocity of a thin link changes in a time dt, s.

    With n the thin axis, omega = w + s n and w square to n it is

        I_t P (w1 - w0) + I_a (s1 - s0) n + dt omega x I_a s n,    P = 1 - n n^T,

    where n, and omega in the product, are those of the place within the step where forces are: the first two parts cost no more
    energy than they leave where that is the end, whatever the rotation, and the last does no work. So none of the spin across
    the axis goes into that about it, as the difference of the spins has it, and a fast spin leaves what is across it alone.
    What is left of the inertia, ``rest``, is in the axes of the link.

    Parameters
    ----------
    axes, turns, omegas : tuples of three
        World axis, rotation and angular velocity at the start, within the step and at its end.
    least, across, rest : float, float and matrix, kg m^2
        I_a, I_t and what the inertia has beside, see :class:`Thin`.
    dt : float, s
        The time.
    """
    n, omega = axes[1], omegas[1]
    first, last = dot(axes[0], omegas[0]), dot(axes[2], omegas[2])
    w = less(less(omegas[2], scaled(last, axes[2])), less(omegas[0], scaled(first, axes[0])))
    change = added(scaled(across, less(w, scaled(dot(n, w), n))), scaled(least * (last - first), n))
    own = less(transposed_times_vector(turns[2], omegas[2]), transposed_times_vector(turns[0], omegas[0]))
    spin = times_vector(turns[1], times_vector(rest, transposed_times_vector(turns[1], omega)))
    carried = cross(omega, added(scaled(least * dot(n, omega), n), spin))
    return added(added(change, times_vector(turns[1], times_vector(rest, own))), scaled(dt, carried))


@njit(cache=True)
def spin_thin(
    thin: Thin, which: np.ndarray, places: tuple[Places, Places, Places], twists: tuple[np.ndarray, np.ndarray, np.ndarray],
    dt: float, first: np.ndarray, last: np.ndarray,
) -> None:  # fmt: skip
    """Replace the change of the spins of some links, ``which`` (k,), in a step by that of :func:`thin_impulse`.

    Places and twists (links, 6) are those at the start, within the step and at its end. The spins in ``last`` (links, 6),
    kg m^2/s, are replaced by those in ``first`` and this change.
    """
    for k in which:
        turns = (
            link_matrix(places[0].rotation, k), link_matrix(places[1].rotation, k), link_matrix(places[2].rotation, k),
        )  # fmt: skip
        own = row(thin.axis, k)
        axes = (times_vector(turns[0], own), times_vector(turns[1], own), times_vector(turns[2], own))
        omegas = (
            (twists[0][k, 3], twists[0][k, 4], twists[0][k, 5]), (twists[1][k, 3], twists[1][k, 4], twists[1][k, 5]),
            (twists[2][k, 3], twists[2][k, 4], twists[2][k, 5]),
        )  # fmt: skip
        change = thin_impulse(axes, turns, omegas, thin.least[k], thin.across[k], link_matrix(thin.rest, k), dt)
        for i in range(3):
            last[k, 3 + i] = first[k, 3 + i] + change[i]


@njit(cache=True)
def project(tree: Tree, places: Places, wrench: np.ndarray, out: np.ndarray) -> None:
    """Fill the generalized force (n_v,) of wrenches (links, 6) at the centres of mass of the links, N and N m.

    It is sum_k S_k^T w_k, S_k being the Jacobian of link k; one small work array is made.
    """
    links = tree.parent.shape[0]
    total = np.empty((links, 6))
    for k in range(links):
        moment = cross(less(row(places.centre, k), row(places.centre, 0)), (wrench[k, 0], wrench[k, 1], wrench[k, 2]))
        for i in range(3):
            total[k, i], total[k, 3 + i] = wrench[k, i], wrench[k, 3 + i] + moment[i]
    out[:] = 0.0
    for k in range(links - 1, 0, -1):
        kind, r, p = tree.kind[k], tree.row[k], tree.parent[k]
        force, moment = (total[k, 0], total[k, 1], total[k, 2]), (total[k, 3], total[k, 4], total[k, 5])
        about = less(moment, cross(less(row(places.origin, k), row(places.centre, 0)), force))
        if kind == SPHERICAL:
            for i in range(3):
                out[r + i] += dot(row(places.axis[k], i), about)
        elif kind == REVOLUTE:
            out[r] += tree.ratio[k] * dot(row(places.axis[k], 0), about)
        elif kind == PRISMATIC:
            out[r] += tree.ratio[k] * dot(row(places.axis[k], 0), force)
        for i in range(6):
            total[p, i] += total[k, i]
    for i in range(6):
        out[i] = total[0, i]


@njit(cache=True, inner=True)
def _screw(tree: Tree, places: Places, k: int, i: int) -> tuple[Vector, Vector]:
    """Velocity at the base's centre of mass and angular velocity that column i of joint k gives to what hangs on it."""
    axis = scaled(tree.ratio[k], row(places.axis[k], i))
    if tree.kind[k] == PRISMATIC:
        return axis, (0.0, 0.0, 0.0)
    return cross(axis, less(row(places.centre, 0), row(places.origin, k))), axis


@njit(cache=True, forceinline=True)
def _columns(kind: int) -> int:
    """Columns of a kind of joint."""
    return 3 if kind == SPHERICAL else (0 if kind == FIXED else 1)


@njit(cache=True)
def fill_mass(tree: Tree, places: Places, M: np.ndarray) -> None:
    """Fill the mass matrix (n_v, n_v) by composite rigid bodies; one small work array is made."""
    links = tree.parent.shape[0]
    body = np.zeros((links, 10))  # mass, first moment (3), inertia about the base's centre of mass (00, 11, 22, 01, 02, 12)
    M[:] = 0.0
    for k in range(links - 1, -1, -1):
        R, m = link_matrix(places.rotation, k), tree.mass[k]
        own = times_transposed(times(R, link_matrix(tree.inertia, k)), R)
        x, y, z = less(row(places.centre, k), row(places.centre, 0))
        body[k, 0] += m
        body[k, 1] += m * x
        body[k, 2] += m * y
        body[k, 3] += m * z
        body[k, 4] += own[0] + m * (y * y + z * z)
        body[k, 5] += own[4] + m * (x * x + z * z)
        body[k, 6] += own[8] + m * (x * x + y * y)
        body[k, 7] += own[1] - m * x * y
        body[k, 8] += own[2] - m * x * z
        body[k, 9] += own[5] - m * y * z
        h = (body[k, 1], body[k, 2], body[k, 3])
        inertia = (
            body[k, 4], body[k, 7], body[k, 8], body[k, 7], body[k, 5], body[k, 9], body[k, 8], body[k, 9], body[k, 6],
        )  # fmt: skip
        if k == 0:
            for i in range(3):
                M[i, i] = body[0, 0]
                for j in range(3):
                    M[3 + i, 3 + j] = inertia[3 * i + j]
            M[0, 4], M[0, 5], M[1, 3], M[1, 5], M[2, 3], M[2, 4] = h[2], -h[1], -h[2], h[0], h[1], -h[0]
            M[4, 0], M[5, 0], M[3, 1], M[5, 1], M[3, 2], M[4, 2] = h[2], -h[1], -h[2], h[0], h[1], -h[0]
            break
        for i in range(_columns(tree.kind[k])):
            a = tree.row[k] + i
            linear, angular = _screw(tree, places, k, i)
            force = added(scaled(body[k, 0], linear), cross(angular, h))
            moment = added(times_vector(inertia, angular), cross(h, linear))
            for c in range(3):
                M[c, a] += force[c]
                M[3 + c, a] += moment[c]
            for j in range(_columns(tree.kind[k])):
                above, turning = _screw(tree, places, k, j)
                M[tree.row[k] + j, a] += dot(above, force) + dot(turning, moment)
            p = tree.parent[k]
            while p > 0:
                for j in range(_columns(tree.kind[p])):
                    above, turning = _screw(tree, places, p, j)
                    both = dot(above, force) + dot(turning, moment)
                    b = tree.row[p] + j
                    M[a, b] += both
                    M[b, a] += both
                p = tree.parent[p]
        for i in range(10):
            body[tree.parent[k], i] += body[k, i]
    for a in range(6, M.shape[0]):
        M[a, a] += tree.rotor[a]
        for c in range(a):  # symmetric to the last bit
            M[a, c] = M[c, a]


@njit(cache=True)
def configure(tree: Tree, q: np.ndarray, places: Places, M: np.ndarray) -> None:
    """Fill where the links are at coordinates q (n_q,), and the mass matrix (n_v, n_v) there."""
    place_links(tree, q, places)
    fill_mass(tree, places, M)


@njit(cache=True)
def fill_jacobian(tree: Tree, places: Places, link: int, S: np.ndarray) -> None:
    """Fill the Jacobian (6, n_v) of a link: velocity of its centre of mass, then its angular velocity."""
    S[:] = 0.0
    x, y, z = less(row(places.centre, link), row(places.centre, 0))
    for i in range(6):
        S[i, i] = 1.0
    S[0, 4], S[0, 5], S[1, 3], S[1, 5], S[2, 3], S[2, 4] = z, -y, -z, x, y, -x
    k = link
    while k > 0:
        for i in range(_columns(tree.kind[k])):
            linear, angular = _screw(tree, places, k, i)
            velocity = added(linear, cross(angular, (x, y, z)))
            for c in range(3):
                S[c, tree.row[k] + i] += velocity[c]
                S[3 + c, tree.row[k] + i] += angular[c]
        k = tree.parent[k]


@njit(cache=True)
def fill_screws(tree: Tree, places: Places, link: int, rows: np.ndarray, out: np.ndarray) -> None:
    """Fill what the joints above a link give to it: velocity at the base's centre of mass, angular velocity, (k, 6).

    ``rows`` (k,) are the rows of v of these joints, each once.
    """
    out[:] = 0.0
    k = link
    while k > 0:
        for i in range(_columns(tree.kind[k])):
            linear, angular = _screw(tree, places, k, i)
            for m in range(rows.shape[0]):
                if rows[m] == tree.row[k] + i:
                    for c in range(3):
                        out[m, c] += linear[c]
                        out[m, 3 + c] += angular[c]
        k = tree.parent[k]


@njit(cache=True)
def inverse_dynamics(tree: Tree, places: Places, v: np.ndarray, rate: np.ndarray, gravity: np.ndarray, out: np.ndarray) -> None:
    """Fill the generalized force (n_v,) that gives the accelerations ``rate`` (n_v,) at velocities v, by Newton and Euler.

    It is M rate + C v less the force of gravity (3,), m/s^2; N along, N m about. Some small work arrays are made.
    """
    links = tree.parent.shape[0]
    twist, change, wrench = np.empty((links, 6)), np.empty((links, 6)), np.empty((links, 6))
    fill_twists(tree, places, v, twist)
    for k in range(links):
        omega = (twist[k, 3], twist[k, 4], twist[k, 5])
        if k == 0:
            at, turned = (rate[0], rate[1], rate[2]), (rate[3], rate[4], rate[5])
        else:
            p = tree.parent[k]
            above = (twist[p, 3], twist[p, 4], twist[p, 5])
            slide, turn = _joint_twist(tree, places, v, k)
            sliding, turning = _joint_twist(tree, places, rate, k)
            turned = added((change[p, 3], change[p, 4], change[p, 5]), added(turning, cross(above, turn)))
            arm = less(row(places.origin, k), row(places.centre, p))
            at = added((change[p, 0], change[p, 1], change[p, 2]), cross((change[p, 3], change[p, 4], change[p, 5]), arm))
            at = added(at, cross(above, added(cross(above, arm), scaled(2.0, slide))))
            at = added(at, sliding)
            arm = less(row(places.centre, k), row(places.origin, k))
            at = added(at, added(cross(turned, arm), cross(omega, cross(omega, arm))))
        for i in range(3):
            change[k, i], change[k, 3 + i] = at[i], turned[i]
        R = link_matrix(places.rotation, k)
        inertia = times_transposed(times(R, link_matrix(tree.inertia, k)), R)
        moment = added(times_vector(inertia, turned), cross(omega, times_vector(inertia, omega)))
        for i in range(3):
            wrench[k, i], wrench[k, 3 + i] = tree.mass[k] * (at[i] - gravity[i]), moment[i]
    project(tree, places, wrench, out)
    for a in range(6, out.shape[0]):
        out[a] += tree.rotor[a] * rate[a]


@njit(cache=True, inner=True)
def _turned_quaternion(q: Quaternion, turn: Vector, cayley: bool) -> Quaternion:
    """Quaternion turned by a rotation vector from the left, or by Cayley's map of it; normalised."""
    if cayley:
        w, factor = 1.0, 0.5
    else:
        angle = math.sqrt(dot(turn, turn))
        w, factor = math.cos(0.5 * angle), 0.5 - angle * angle / 48.0 if angle < 1e-4 else math.sin(0.5 * angle) / angle
    x, y, z = scaled(factor, turn)
    n0 = w * q[0] - x * q[1] - y * q[2] - z * q[3]
    n1 = w * q[1] + x * q[0] + y * q[3] - z * q[2]
    n2 = w * q[2] - x * q[3] + y * q[0] + z * q[1]
    n3 = w * q[3] + x * q[2] - y * q[1] + z * q[0]
    size = math.sqrt(n0 * n0 + n1 * n1 + n2 * n2 + n3 * n3)
    return n0 / size, n1 / size, n2 / size, n3 / size


@njit(cache=True, forceinline=True)
def _product(a: Quaternion, b: Quaternion) -> Quaternion:
    return (
        a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3], a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2],
        a[0] * b[2] - a[1] * b[3] + a[2] * b[0] + a[3] * b[1], a[0] * b[3] + a[1] * b[2] - a[2] * b[1] + a[3] * b[0],
    )  # fmt: skip


@njit(cache=True)
def turn_of_link(tree: Tree, turns: np.ndarray, q: np.ndarray, link: int, out: np.ndarray) -> None:
    """Fill the quaternion (4,) of a link, whose sign does not jump where q does not.

    ``turns``, (links, 4), are the quaternions w, x, y, z of the rotations ``tree.turn``.
    """
    found, k = (1.0, 0.0, 0.0, 0.0), link
    while k > 0:
        kind, c = tree.kind[k], tree.coordinate[k]
        if kind == SPHERICAL:
            found = _product((q[c], q[c + 1], q[c + 2], q[c + 3]), found)
        elif kind == REVOLUTE:
            half = 0.5 * (tree.ratio[k] * q[c] + tree.offset[k])
            x, y, z = scaled(math.sin(half), row(tree.axis, k))
            found = _product((math.cos(half), x, y, z), found)
        found = _product((turns[k, 0], turns[k, 1], turns[k, 2], turns[k, 3]), found)
        k = tree.parent[k]
    out[0], out[1], out[2], out[3] = _product((q[3], q[4], q[5], q[6]), found)


@njit(cache=True)
def move(tree: Tree, q: np.ndarray, v: np.ndarray, time: float, cayley: bool, out: np.ndarray) -> None:
    """Fill the coordinates (n_q,) that q becomes at velocities v in a time, s; by Cayley's map or the exponential one."""
    for i in range(3):
        out[i] = q[i] + time * v[i]
    turn = (time * v[3], time * v[4], time * v[5])
    out[3], out[4], out[5], out[6] = _turned_quaternion((q[3], q[4], q[5], q[6]), turn, cayley)
    for k in range(1, tree.parent.shape[0]):
        c, r = tree.coordinate[k], tree.row[k]
        if not tree.leads[k]:
            continue
        if tree.kind[k] == SPHERICAL:
            turn = (time * v[r], time * v[r + 1], time * v[r + 2])
            own = (q[c], q[c + 1], q[c + 2], q[c + 3])
            out[c], out[c + 1], out[c + 2], out[c + 3] = _turned_quaternion(own, turn, cayley)
        else:
            out[c] = q[c] + time * v[r]


@njit(cache=True)
def step_rate(
    tree: Tree, middle: Places, before: np.ndarray, after: np.ndarray, change: np.ndarray, dt: float, out: np.ndarray
) -> None:
    """Fill the rate of momentum (n_v,) of a step, by d'Alembert where it leads: sum_k S_k^T (h_k1 - h_k0) / dt.

    Parameters
    ----------
    tree, middle : Tree and Places
        The links, and where they are within the step.
    before, after : ndarray, (links, 6), kg m/s and kg m^2/s
        Momenta and spins of the links at its ends, see :func:`fill_momenta`.
    change : ndarray, (n_v,)
        Change of v in the step, for the rotors.
    dt : float, s
        Time step.
    out : ndarray, (n_v,), N and N m
        Filled.
    """
    project(tree, middle, (after - before) / dt, out)
    for a in range(6, out.shape[0]):
        out[a] += tree.rotor[a] * change[a] / dt


@njit(cache=True)
def fill_link_places(
    tree: Tree, places: Places, links: np.ndarray, starts: np.ndarray, rows: np.ndarray,
    rotation: np.ndarray, centre: np.ndarray, screw: np.ndarray,
) -> None:  # fmt: skip
    """Fill world rotation, (k, 3, 3), and centre of mass, (k, 3), m, of links, and what joints give to each, (m, 6).

    The latter as :func:`fill_screws` has it, of the k-th link with ``rows`` from ``starts[k]`` to ``starts[k + 1]``.
    """
    for k in range(links.shape[0]):
        first, last, link = starts[k], starts[k + 1], links[k]
        fill_screws(tree, places, link, rows[first:last], screw[first:last])
        for i in range(3):
            centre[k, i] = places.centre[link, i]
            for j in range(3):
                rotation[k, i, j] = places.rotation[link, i, j]

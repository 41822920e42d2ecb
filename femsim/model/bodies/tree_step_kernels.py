"""Kernels of a step of trees of rigid links: its equations where it leads, the motors in them, and the velocities at its end."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from contact.compiled import njit
from contact.vector_kernels import dot, row
from femsim.model.bodies.rigid_kernels import solve_leading
from femsim.model.bodies.rotation_kernels import times_vector
from femsim.model.bodies.tree_kernels import (
    Places,
    Thin,
    Tree,
    fill_jacobian,
    fill_mass,
    fill_momenta,
    fill_twists,
    link_matrix,
    move,
    place_links,
    spin_thin,
    step_rate,
)

#: Part of its angular velocity that a link may leak into the spin about its thin axis while it turns by a radian, see
#: :func:`find_leaking`. It adds up from step to step: with a tenth of the angle per step in its place a chain failed at 1 ms.
MOST_LEAK = 0.1
#: What an energy of a step may be off by as a part of the energies that it is the difference of.
_ROUNDING = 1e-14


class Motors(NamedTuple):
    """What drives the joints of one coordinate in a step.

    Attributes
    ----------
    row, coordinate : ndarray, (k,)
        Row of v and entry of q of each.
    servo : ndarray, (6, k)
        Effort that is added, target, its speed, stiffness, damping and limit.
    passive : ndarray, (n_v,)
        Damping of the joints.
    """

    row: np.ndarray
    coordinate: np.ndarray
    servo: np.ndarray
    passive: np.ndarray


@njit(cache=True)
def fill_motors(motors: Motors, q: np.ndarray, v: np.ndarray, implicit: float, force: np.ndarray, damping: np.ndarray) -> None:
    """Fill force and damping (n_v,) of the joints, so that their effort is ``force - damping v`` about q and v.

    Where a motor is at its limit its effort is that, and has no damping.
    """
    damping[:] = motors.passive
    for k in range(motors.row.shape[0]):
        feed, target, pace = motors.servo[0, k], motors.servo[1, k], motors.servo[2, k]
        stiffness, own, limit = motors.servo[3, k], motors.servo[4, k], motors.servo[5, k]
        r = motors.row[k]
        effort, gain = feed + stiffness * (target - q[motors.coordinate[k]]) + own * (pace - v[r]), stiffness * implicit + own
        if abs(effort) > limit:
            effort, gain = math.copysign(limit, effort), 0.0
        force[r] = effort + gain * v[r]
        damping[r] += gain


class Ends(NamedTuple):
    """Where a step begins, where it is within its length and where it ends, with room for momenta and twists (links, 6).

    ``thin`` has all links, and ``leaking`` (k,) are those whose spin changes by :func:`tree_kernels.thin_impulse`.
    """

    before: Places
    middle: Places
    after: Places
    first: np.ndarray
    last: np.ndarray
    twist: np.ndarray
    thin: Thin
    leaking: np.ndarray


class Start(NamedTuple):
    """From where a tree takes a step, and how.

    Attributes
    ----------
    q, v : ndarray, (n_q,) and (n_v,)
        Coordinates and velocities.
    driven, ends : ndarray, (k,)
        Rows of v of joints that follow a motion, and the velocities with which they end the step.
    gravity : ndarray, (3,), m/s^2
        Acceleration of gravity.
    dt, implicit : float, s
        Time step, and the part of it after which forces are evaluated, theta dt.
    cayley : bool
        Whether what turns does so by Cayley's map.
    """

    q: np.ndarray
    v: np.ndarray
    driven: np.ndarray
    ends: np.ndarray
    gravity: np.ndarray
    dt: float
    implicit: float
    cayley: bool


class Equations(NamedTuple):
    """Mass matrix (n_v, n_v), rate of momentum, external forces, and force and damping of the motors of a step, (n_v,)."""

    M: np.ndarray
    rate: np.ndarray
    external: np.ndarray
    force: np.ndarray
    damping: np.ndarray


@njit(cache=True, error_model="numpy")
def find_leaking(
    tree: Tree, thin: Thin, places: Places, M: np.ndarray, start: Start, free: bool, twist: np.ndarray
) -> np.ndarray:
    """Find the links, (k,), that leak too much of their spin into that about their thin axis where a step takes its change.

    A link that turns by the angle h in a step, across its axis, leaves up to (I_t - I_a) h^2/2 of its angular velocity in the
    spin about that axis, as this turns; where theta is 1/2 what is left is h^3. Against that stand the inertia of the link about
    its axis and what the joints hang on it: none comes where these let nothing turn so. ``M`` is the mass matrix at ``places``,
    ``free`` whether the base gives way; ``twist`` (links, 6) is filled, work arrays are made.
    """
    links, n = tree.parent.shape[0], start.v.shape[0]
    fill_twists(tree, places, start.v, twist)
    part, suspects, uneven = np.zeros(links), 0, abs(2.0 * start.implicit / start.dt - 1.0)
    for k in range(links):
        axis = times_vector(link_matrix(places.rotation, k), row(thin.axis, k))
        omega = (twist[k, 3], twist[k, 4], twist[k, 5])
        along = dot(axis, omega)
        h = start.dt * math.sqrt(max(dot(omega, omega) - along * along, 0.0))
        leaked = 0.5 * (thin.across[k] - thin.least[k]) * h * (uneven + h)
        if leaked > MOST_LEAK * thin.least[k]:
            part[k] = leaked
            suspects += 1
    if suspects == 0:
        return np.empty(0, dtype=np.int64)
    held = np.zeros(n, dtype=np.bool_)
    held[:6] = not free
    held[start.driven] = True
    L, S, x = np.zeros((n, n)), np.empty((6, n)), np.empty(n)
    for r in range(n):
        for c in range(r + 1):
            total = (1.0 if r == c else 0.0) if held[r] or held[c] else M[r, c]
            for m in range(c):
                total -= L[r, m] * L[c, m]
            L[r, c] = math.sqrt(total) if r == c else total / L[c, c]
    found, number = np.empty(suspects, dtype=np.int64), 0
    for k in range(links):
        if part[k] == 0.0:
            continue
        axis = times_vector(link_matrix(places.rotation, k), row(thin.axis, k))
        fill_jacobian(tree, places, k, S)
        gives = 0.0
        for r in range(n):
            total = 0.0 if held[r] else axis[0] * S[3, r] + axis[1] * S[4, r] + axis[2] * S[5, r]
            for m in range(r):
                total -= L[r, m] * x[m]
            x[r] = total / L[r, r]
            gives += x[r] * x[r]
        if part[k] * gives > MOST_LEAK:
            found[number] = k
            number += 1
    return found[:number].copy()


@njit(cache=True)
def energies(
    tree: Tree, places: Places, twist: np.ndarray, momentum: np.ndarray, v: np.ndarray, gravity: np.ndarray
) -> tuple[float, float]:
    """Kinetic energy of links with these twists, momenta and spins (links, 6), and rotors at v (n_v,); their potential; J."""
    kinetic, potential = 0.0, 0.0
    for k in range(twist.shape[0]):
        for i in range(6):
            kinetic += 0.5 * twist[k, i] * momentum[k, i]
        for i in range(3):
            potential -= tree.mass[k] * gravity[i] * places.centre[k, i]
    for a in range(6, v.shape[0]):
        kinetic += 0.5 * tree.rotor[a] * v[a] * v[a]
    return kinetic, potential


@njit(cache=True)
def keep_energy(first: tuple[float, float], last: tuple[float, float], dt: float, v_hat: np.ndarray, out: Equations) -> None:
    """Add to the rate of momentum of the joints what the step, of dt, lacks of the energy that its links gain.

    ``first`` and ``last`` are kinetic and potential energy at its ends, J. The work of the rate, less that of the weight, which
    ``external`` holds, on v_hat (n_v,) is not quite their difference; a multiple of M v_hat, of second order in dt, makes up for
    it. What may be rounding adds nothing.
    """
    n, size, added = v_hat.shape[0], 0.0, np.zeros(v_hat.shape[0])
    lacks = (last[0] - first[0]) + (last[1] - first[1])
    rounding = _ROUNDING * (first[0] + last[0] + abs(first[1]) + abs(last[1]))
    for a in range(6, n):
        lacks -= dt * v_hat[a] * (out.rate[a] - out.external[a])
        for c in range(6, n):
            added[a] += out.M[a, c] * v_hat[c]
        size += dt * v_hat[a] * added[a]
    if size > 0.0 and abs(lacks) > rounding:
        for a in range(6, n):
            out.rate[a] += (lacks - math.copysign(rounding, lacks)) / size * added[a]


@njit(cache=True)
def fill_equations(
    tree: Tree, ends: Ends, motors: Motors, start: Start, moved: np.ndarray, v_hat: np.ndarray, out: Equations
) -> None:
    """Fill the equations of a step that is at ``moved`` (n_q,) and has the representative velocity v_hat (n_v,).

    Velocities of joints that follow a motion go from those of the start, which ``start.v`` has so that v_hat leads from it to the
    change by the rule of the others, to ``start.ends``. Energy is kept where the base rests and no joint follows a motion: beside
    what these do, what the equations lack of it is not small where the other joints are slow. Some small work arrays are made.
    """
    n, theta = v_hat.shape[0], start.implicit / start.dt
    v0, v1, end = start.v.copy(), np.empty(n), start.q.copy()
    for a in range(n):
        v1[a] = start.v[a] + (v_hat[a] - start.v[a]) / theta
    for k in range(start.driven.shape[0]):
        a = start.driven[k]
        v0[a] = start.ends[k] - (v_hat[a] - start.v[a]) / theta
        v1[a] = start.ends[k]
    move(tree, start.q, v_hat, start.dt, start.cayley, end)
    fill_twists(tree, ends.before, v0, ends.twist)
    begun = ends.twist.copy() if ends.leaking.shape[0] else ends.twist
    fill_momenta(tree, ends.before, ends.twist, ends.first)
    first = energies(tree, ends.before, ends.twist, ends.first, v0, start.gravity)
    place_links(tree, end, ends.after)
    fill_twists(tree, ends.after, v1, ends.twist)
    fill_momenta(tree, ends.after, ends.twist, ends.last)
    last = energies(tree, ends.after, ends.twist, ends.last, v1, start.gravity)
    place_links(tree, moved, ends.middle)
    fill_mass(tree, ends.middle, out.M)
    if ends.leaking.shape[0]:
        ended = ends.twist.copy()
        fill_twists(tree, ends.middle, v_hat, ends.twist)
        places, twists = (ends.before, ends.middle, ends.after), (begun, ends.twist, ended)
        spin_thin(ends.thin, ends.leaking, places, twists, start.dt, ends.first, ends.last)
    step_rate(tree, ends.middle, ends.first, ends.last, v1 - v0, start.dt, out.rate)
    for a in range(n):
        out.external[a] = out.M[a, 0] * start.gravity[0] + out.M[a, 1] * start.gravity[1] + out.M[a, 2] * start.gravity[2]
    if start.cayley and start.driven.shape[0] == 0 and not (start.v[:6].any() or v_hat[:6].any()):
        keep_energy(first, last, start.dt, v_hat, out)
    fill_motors(motors, moved, v_hat, start.implicit, out.force, out.damping)
    out.external[:] += out.force


@njit(cache=True)
def fill_slope(M: np.ndarray, damping: np.ndarray, implicit: float, slope: np.ndarray, data: np.ndarray) -> None:
    """Fill the slope M/(theta dt) of the rate of momentum, (n_v, n_v), and its entries with the damping of joints, (n_v n_v,)."""
    n, k = M.shape[0], 0
    for a in range(n):
        for c in range(n):
            slope[a, c] = M[a, c] / implicit
            data[k] = slope[a, c]
            if a == c:
                data[k] += damping[a]
            k += 1


@njit(cache=True)
def linearise(
    tree: Tree, ends: Ends, motors: Motors, start: Start, out: Equations, slope: np.ndarray, data: np.ndarray, b: np.ndarray
) -> None:
    """Fill the equations of a step that its start leads through, and A v = b for it: :func:`fill_slope`, and b (n_v,)."""
    moved = start.q.copy()
    move(tree, start.q, start.v, start.implicit, start.cayley, moved)
    fill_equations(tree, ends, motors, start, moved, start.v, out)
    fill_slope(out.M, out.damping, start.implicit, slope, data)
    for a in range(b.shape[0]):
        total = 0.0
        for c in range(b.shape[0]):
            total += slope[a, c] * start.v[c]
        b[a] = total - out.rate[a] + out.external[a]


@njit(cache=True)
def end_joints(
    start: Start, M: np.ndarray, damping: np.ndarray, v_hat: np.ndarray, free: bool, v_new: np.ndarray, calmed: np.ndarray
) -> None:
    """Fill the velocities where a step with v_hat ends, and by how much less of them joints that are damped hard leave.

    Each of these brakes itself alone, by the impulse -c (v_new - v_hat), c = M_jj r^2/4 (r: :class:`tree.TreeBody`), to which
    the other joints, and the base where it is ``free``, give way; those that follow a motion do not. ``M`` is the mass matrix
    where the step ends; a free base gets its velocity by :func:`rigid_kernels.lead_base`, and ``calmed`` has none of it.
    """
    n, theta = v_hat.shape[0], start.implicit / start.dt
    stays, hard = np.zeros(n, dtype=np.bool_), False
    stays[:6] = not free
    stays[start.driven] = True
    braked = M.copy()
    for a in range(n):
        v_new[a] = start.v[a] + (v_hat[a] - start.v[a]) / theta
        r = start.dt * damping[a] / M[a, a] if damping[a] > 0.0 and not stays[a] else 0.0
        brake = 0.25 * r * r * M[a, a]
        calmed[a] = -brake * (v_new[a] - v_hat[a])
        hard |= calmed[a] != 0.0
        for c in range(n):
            if stays[a] or stays[c]:
                braked[a, c] = 0.0
        braked[a, a] = 1.0 if stays[a] else M[a, a] + brake
    if hard:
        solve_leading(braked, calmed)
    calmed[:6] = 0.0
    v_new += calmed
    for k in range(start.driven.shape[0]):
        v_new[start.driven[k]] = start.ends[k]


@njit(cache=True)
def calming(
    M: np.ndarray, calmed: np.ndarray, middle: np.ndarray, free: bool, passive: np.ndarray, damping: np.ndarray, dt: float,
    effort: np.ndarray, damped: np.ndarray,
) -> float:  # fmt: skip
    """Add the impulses that changed velocities by ``calmed`` (n_v,) to efforts and damping; return their power, W.

    Parameters
    ----------
    M : ndarray, (n_v, n_v)
        Mass matrix where the step ends.
    calmed, middle : ndarray, (n_v,)
        Changes, and the velocities after them.
    free : bool
        Whether the base gives way.
    passive, damping : ndarray, (n_v,)
        Damping of the joints alone, and with that of servos, which share the impulses so.
    dt : float, s
        Time step.
    effort, damped : ndarray, (n_v,), N m and N
        Added to.
    """
    n = calmed.shape[0]
    change, given = calmed.copy(), np.zeros(6)
    if free:
        for i in range(6):
            for a in range(6, n):
                given[i] -= M[i, a] * calmed[a]
        solve_leading(M, given)
        change[:6] = given
    power = 0.0
    for a in range(n):
        impulse = 0.0
        for c in range(n):
            impulse += M[a, c] * change[c]
        impulse /= dt
        power += (middle[a] - 0.5 * change[a]) * impulse
        if a >= 6:
            own = passive[a] / damping[a] if damping[a] > 0.0 else 0.0
            effort[a] += (1.0 - own) * impulse
            damped[a] += own * impulse
    return power

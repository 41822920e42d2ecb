"""Compiled local solvers of one contact, and the sweeps that call them contact after contact.

The local problem of a contact is ``u = a lam + q`` with its block ``a`` of W and ``q`` its velocity without its own force.
Which force a sweep gives it is named by a :class:`Rule`; which law holds where the forces no longer change depends on that
(papers/004 Algs. 2 to 5):

========== ========================================================== =================================================
EXACT      Signorini-Coulomb law of the contact alone, to rounding    the law
CONE       P_K(lam - g (u + s)), one gradient step                    s = 0: its convex relaxation; lagged: the law
DECOUPLED  normal force first, then the tangent on its disc           the law
ELLIPSE    least energy on the section of the cone with u_n = 0       s = 0: neither, where W_nt != 0; lagged: the law
========== ========================================================== =================================================

``s = (mu |u_t|, 0, 0)`` with the present velocity u is the correction of De Saxce, lagged by one visit of the contact.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from contact.compiled import njit
from contact.cone import project_cone
from contact.metrics_kernels import natural_map, relative
from contact.solvers.dense_kernels import IMMOVABLE, solve_block, solve_local, update_velocity, velocities

EXACT, CONE, DECOUPLED, DECOUPLED_LARGE, ELLIPSE, BISECTION = range(6)
#: Angles at which the section is looked at first, of all its circle.
_ANGLES = 24
#: Step of the cone over the one beyond which it need not converge, by the largest row sum of the block.
_MOST_STEP = 1.9
#: A relaxed force that shall open is zero where it moves its contact by less than this part of its velocity.
_NOTHING = 1e-14


class Rule(NamedTuple):
    """How a sweep changes the force of a contact.

    Attributes
    ----------
    local : int
        Local solver, one of the constants of this module.
    lagged : bool
        Whether the correction of De Saxce counts, for CONE, ELLIPSE and BISECTION.
    relaxation : float
        Part of the way to the force of the local solver, in (0, 1].
    """

    local: int
    lagged: bool
    relaxation: float


#: What the exact solver sweeps by.
EXACT_RULE = Rule(EXACT, False, 1.0)


@njit(cache=True, inner=True)
def cone_step(
    a: np.ndarray, i: int, u: tuple[float, float, float], lam: tuple[float, float, float], mu: float, shift: float
) -> tuple[float, float, float]:
    """Gradient step and projection (papers/004 Alg. 2), u that of the present force lam, shift the correction in m/s.

    The step is 3 / trace a; departure: at most 1.9 over the largest row sum, beyond which the block alone may diverge.
    """
    rows = 0.0
    for r in range(3):
        rows = max(rows, abs(a[i, r, 0]) + abs(a[i, r, 1]) + abs(a[i, r, 2]))
    g = min(3.0 / (a[i, 0, 0] + a[i, 1, 1] + a[i, 2, 2]), _MOST_STEP / rows)
    return project_cone(lam[0] - g * (u[0] + shift), lam[1] - g * u[1], lam[2] - g * u[2], mu)


@njit(cache=True, inner=True)
def decoupled_step(
    a: np.ndarray, i: int, u: tuple[float, float, float], lam: tuple[float, float, float], mu: float, large: bool
) -> tuple[float, float, float]:
    """Step the normal force by W_nn, then the tangent by one entry of W_tt on its disc (papers/004 Alg. 3).

    The text takes the smaller entry, and diverges where they differ by more than 2; ``large`` takes the larger one.
    """
    normal = lam[0] - u[0] / a[i, 0, 0]
    if normal <= 0.0:
        return 0.0, 0.0, 0.0
    small, entry = min(a[i, 1, 1], a[i, 2, 2]), max(a[i, 1, 1], a[i, 2, 2])
    if not large and small > IMMOVABLE * entry:  # a plane problem has an empty second tangent
        entry = small
    t_0, t_1 = lam[1] - u[1] / entry, lam[2] - u[2] / entry
    length, bound = math.sqrt(t_0 * t_0 + t_1 * t_1), mu * normal
    if length <= bound:
        return normal, t_0, t_1
    return normal, t_0 * bound / length, t_1 * bound / length


@njit(cache=True, inner=True)
def _on_section(
    a: np.ndarray, i: int, q: tuple[float, float, float], mu: float, shift: float, angle: float
) -> tuple[float, float, float]:
    """Return normal force, slope and energy at an angle of the section {u_n = 0} with the surface of the cone.

    The normal force is 0 where the section has no point with a positive one. The slope is that of the energy lam.a lam / 2 +
    lam.(q + shift), of a block that is not symmetric that of the work u_t . dlam_t + shift dlam_n.
    """
    c, s = math.cos(angle), math.sin(angle)
    below = a[i, 0, 0] + mu * (a[i, 0, 1] * c + a[i, 0, 2] * s)
    if below <= 0.0:
        return 0.0, 0.0, 0.0
    normal = -q[0] / below
    normal_slope = -normal * mu * (a[i, 0, 2] * c - a[i, 0, 1] * s) / below
    t_0, t_1 = mu * normal * c, mu * normal * s
    u_0 = a[i, 1, 0] * normal + a[i, 1, 1] * t_0 + a[i, 1, 2] * t_1 + q[1]
    u_1 = a[i, 2, 0] * normal + a[i, 2, 1] * t_0 + a[i, 2, 2] * t_1 + q[2]
    slope = u_0 * (mu * normal_slope * c - t_1) + u_1 * (mu * normal_slope * s + t_0) + shift * normal_slope
    energy = 0.5 * (t_0 * (u_0 + q[1]) + t_1 * (u_1 + q[2]) + normal * q[0]) + shift * normal
    return normal, slope, energy


@njit(cache=True, inner=True)
def _flat_angle(a: np.ndarray, i: int, q: tuple[float, float, float], mu: float, shift: float, low: float, high: float) -> float:
    """Angle between low and high where the slope becomes positive, by regula falsi that halves in every third step."""
    _, f_low, _ = _on_section(a, i, q, mu, shift, low)
    _, f_high, _ = _on_section(a, i, q, mu, shift, high)
    for k in range(100):
        angle = low - f_low * (high - low) / (f_high - f_low) if f_high > f_low and k % 3 != 2 else 0.5 * (low + high)
        if not low < angle < high:
            angle = 0.5 * (low + high)
        if not low < angle < high:  # neighbours
            break
        _, f, _ = _on_section(a, i, q, mu, shift, angle)
        if f == 0.0:
            return angle
        if f < 0.0:
            low, f_low = angle, f
        else:
            high, f_high = angle, f
    return low if abs(f_low) < abs(f_high) else high


@njit(cache=True, inner=True)
def ellipse_step(
    a: np.ndarray, i: int, q: tuple[float, float, float], stick: tuple[float, float, float], mu: float, shift: float, walk: bool
) -> tuple[float, float, float]:
    """Least energy on the section of the cone with u_n = 0, where the contact slides (papers/004 Alg. 4 and its bisection).

    Parameters
    ----------
    a : ndarray, (k, 3, 3), m/(N s)
        Blocks of W.
    i : int
        Contact.
    q : tuple of float, m/s
        Its velocity without its own force, q_n < 0.
    stick : tuple of float, N
        Force for u = 0, outside the cone.
    mu : float
        Coulomb coefficient, positive.
    shift : float, m/s
        Correction of De Saxce, or 0.
    walk : bool
        Start at the angle of the sticking force and walk downhill (RaiSim), else from the best of 24 angles (the least root of
        the quartic, NBGS). The section can have more than one minimum, and they may differ then.
    """
    part = 2.0 * math.pi / _ANGLES
    if walk:
        angle = math.atan2(stick[2], stick[1])
        normal, slope, _ = _on_section(a, i, q, mu, shift, angle)
        way = -part if slope > 0.0 else part
        for _ in range(_ANGLES):
            if normal <= 0.0 or slope == 0.0:
                break
            other = angle + way
            beyond, f, _ = _on_section(a, i, q, mu, shift, other)
            if beyond <= 0.0:
                normal = 0.0
                break
            if (f > 0.0) == (way > 0.0):
                angle = _flat_angle(a, i, q, mu, shift, min(angle, other), max(angle, other))
                break
            angle = other
        if normal > 0.0:
            normal, _, _ = _on_section(a, i, q, mu, shift, angle)
            return normal, mu * normal * math.cos(angle), mu * normal * math.sin(angle)
    best, least = -1, math.inf
    for k in range(_ANGLES):
        normal, _, energy = _on_section(a, i, q, mu, shift, k * part)
        if normal > 0.0 and energy < least:
            best, least = k, energy
    if best < 0:
        return 0.0, 0.0, 0.0
    angle = best * part
    low, high = angle - part, angle + part
    below, f_low, _ = _on_section(a, i, q, mu, shift, low)
    above, f_high, _ = _on_section(a, i, q, mu, shift, high)
    if below > 0.0 and above > 0.0 and f_low < 0.0 < f_high:
        angle = _flat_angle(a, i, q, mu, shift, low, high)
    normal, _, _ = _on_section(a, i, q, mu, shift, angle)
    return normal, mu * normal * math.cos(angle), mu * normal * math.sin(angle)


@njit(cache=True, inner=True)
def local_force(
    a: np.ndarray, i: int, u: tuple[float, float, float], lam: tuple[float, float, float], mu: float, rule: Rule
) -> tuple[float, float, float]:
    """Force of contact i by the local solver of a rule, with u, m/s, the velocity under the present force lam, N."""
    shift = mu * math.sqrt(u[1] * u[1] + u[2] * u[2]) if rule.lagged else 0.0
    if rule.local == CONE:
        return cone_step(a, i, u, lam, mu, shift)
    if rule.local == DECOUPLED or rule.local == DECOUPLED_LARGE:
        return decoupled_step(a, i, u, lam, mu, rule.local == DECOUPLED_LARGE)
    q_n = u[0] - (a[i, 0, 0] * lam[0] + a[i, 0, 1] * lam[1] + a[i, 0, 2] * lam[2])
    q_0 = u[1] - (a[i, 1, 0] * lam[0] + a[i, 1, 1] * lam[1] + a[i, 1, 2] * lam[2])
    q_1 = u[2] - (a[i, 2, 0] * lam[0] + a[i, 2, 1] * lam[1] + a[i, 2, 2] * lam[2])
    if rule.local == EXACT or q_n >= 0.0 or mu == 0.0:
        return solve_local(a, i, q_n, q_0, q_1, mu)
    stick = solve_block(a, i, 0.0, -q_n, -q_0, -q_1)
    if math.sqrt(stick[1] * stick[1] + stick[2] * stick[2]) <= mu * stick[0]:
        return stick
    return ellipse_step(a, i, (q_n, q_0, q_1), stick, mu, shift, rule.local == BISECTION)


@njit(cache=True)
def sweep_contacts(
    WT: np.ndarray, a: np.ndarray, mu: np.ndarray, rule: Rule, sweeps: int, lam: np.ndarray, u: np.ndarray
) -> float:
    """Sweeps over the contacts (papers/004 Alg. 5), updating lam (3k,) and u (3k,); return the last sweep's largest step.

    The step is relative to the largest force.

    Parameters
    ----------
    WT : ndarray, (3k, 3k), m/(N s)
        Transposed Delassus operator, C-order.
    a : ndarray, (k, 3, 3), m/(N s)
        Its blocks, see :func:`contact.solvers.dense_kernels.diagonal_blocks`.
    mu : ndarray, (k,)
        Coulomb coefficients.
    rule : Rule
        Local solver, correction and relaxation.
    sweeps : int
        How many.
    lam, u : ndarray, (3k,), N and m/s
        Forces and their contact velocities.
    """
    step = 0.0
    largest = 0.0
    for _ in range(sweeps):
        step = 0.0
        largest = 0.0
        for i in range(mu.shape[0]):
            n, s, t = 3 * i, 3 * i + 1, 3 * i + 2
            if WT[n, n] <= IMMOVABLE * (WT[n, n] + WT[s, s] + WT[t, t]):
                # nothing moves along its normal, so no force there is right, and a large one must not hide that it approaches
                lam[n], lam[s], lam[t] = 0.0, 0.0, 0.0
                continue
            if lam[n] == 0.0 and u[n] >= 0.0:
                # open and separating: nothing changes, for the cone without correction only when mu |u_t| <= u_n
                if rule.local != CONE or rule.lagged or mu[i] * math.sqrt(u[s] * u[s] + u[t] * u[t]) <= u[n]:
                    continue
            r_n, r_0, r_1 = local_force(a, i, (u[n], u[s], u[t]), (lam[n], lam[s], lam[t]), mu[i], rule)
            if rule.relaxation != 1.0:
                w, gone = rule.relaxation, r_n == 0.0
                r_n, r_0, r_1 = lam[n] + w * (r_n - lam[n]), lam[s] + w * (r_0 - lam[s]), lam[t] + w * (r_1 - lam[t])
                if gone and r_n * WT[n, n] <= _NOTHING * abs(u[n]):
                    r_n, r_0, r_1 = 0.0, 0.0, 0.0
            change = max(abs(r_n - lam[n]), abs(r_0 - lam[s]), abs(r_1 - lam[t]))
            if change != 0.0:
                update_velocity(WT, n, r_n - lam[n], u)
                update_velocity(WT, s, r_0 - lam[s], u)
                update_velocity(WT, t, r_1 - lam[t], u)
                lam[n], lam[s], lam[t] = r_n, r_0, r_1
            step = max(step, change)
            largest = max(largest, abs(r_n), abs(r_0), abs(r_1))
        step = step / largest if largest > 0.0 else 0.0
    return step


@njit(cache=True)
def sweep_until(
    WT: np.ndarray, q: np.ndarray, a: np.ndarray, mu: np.ndarray, rho: np.ndarray, rule: Rule, fresh: bool,
    limits: tuple[float, float], lam: np.ndarray, u: np.ndarray, best: np.ndarray, rows: np.ndarray,
) -> tuple[int, int]:  # fmt: skip
    """Sweeps until the contact residual is at most the aim or not finite, at most as many as there are rows; one array is made.

    The 12 parameters are the local problem, the rule of a sweep, when to stop, and the results.

    Parameters
    ----------
    WT, a, mu, rule, lam, u
        As for :func:`sweep_contacts`.
    q : ndarray, (3k,), m/s
        Contact velocities without forces.
    rho : ndarray, (k,), N s/m
        Scales of the natural map.
    fresh : bool
        Whether the last of the rows is of velocities evaluated afresh.
    limits : tuple of float
        The aim, and the least residual so far.
    best : ndarray, (3k,), N
        Filled with the forces of the least residual below that.
    rows : ndarray, (sweeps, 2)
        Filled with the contact residual and the change of the velocities, m/s, of each sweep.

    Returns
    -------
    tuple of int
        How many sweeps, and which of them has the least residual; -1 for none.
    """
    before, count, place = np.empty(u.shape[0]), rows.shape[0], -1
    aim, least = limits
    for i in range(count):
        before[:] = u
        sweep_contacts(WT, a, mu, rule, 1, lam, u)
        if fresh and i == count - 1:
            velocities(WT, q, lam, u)
        moved = 0.0
        for k in range(u.shape[0]):
            moved += (u[k] - before[k]) ** 2
        wrong, size = natural_map(lam, u, mu, rho, np.bool_(True))
        rows[i, 0], rows[i, 1] = relative(wrong, size), math.sqrt(moved)
        if rows[i, 0] < least:
            least, place = rows[i, 0], i
            best[:] = lam
        if rows[i, 0] <= aim or not math.isfinite(rows[i, 0]):
            return i + 1, place
    return count, place

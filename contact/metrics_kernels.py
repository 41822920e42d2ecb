"""Loops of the yardstick over contacts and points; each sum and product is that of the formula, in the order of numpy's."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from contact.compiled import njit
from contact.cone import project_cone
from contact.jacobian_kernels import compliances, taking_part

#: Scales below this count as zero.
TINY = 1e-300
#: A force balance is relative to the net force on a body, but at least to this part of the sum of all force magnitudes on it.
NET_FRACTION = 0.01
#: ... and to this part of the sum of all |b|, far above rounding, where nothing acts on a body or all of it cancels.
NOISE_FRACTION = 1e-6


class Groups(NamedTuple):
    """Bodies of a problem, and room for what is measured of each.

    Attributes
    ----------
    start, stop, stride : ndarray, (groups,)
        Rows of each, and rows from one node or link to the next, 0 for generalized groups.
    diagonal : ndarray, (n,), N s/m
        Diagonal of A.
    takes_part : ndarray, (groups, nc), bool
        Whether each takes part in each contact.
    loads : ndarray, (groups,), N
        Load on each.
    moving, least : ndarray, (groups,), N
        Room for :func:`moving_forces` and :func:`least_scales`.
    """

    start: np.ndarray
    stop: np.ndarray
    stride: np.ndarray
    diagonal: np.ndarray
    takes_part: np.ndarray
    loads: np.ndarray
    moving: np.ndarray
    least: np.ndarray


@njit(cache=True)
def relative(residual: float, scale: float) -> float:
    """Divide a residual by its scale: 0 where both are 0, and NaN unless both are finite.

    An overflow is therefore never a small residual: without the rule, forces of 1e170 N, whose squares are infinite, would have
    the residual 0.
    """
    if not (math.isfinite(residual) and math.isfinite(scale)):
        return math.nan
    return residual / max(scale, TINY)


@njit(cache=True)
def larger(x: float, y: float) -> float:
    """Return the larger of two numbers, and NaN where one of them is."""
    return y if y > x or y != y else x


@njit(cache=True, inner=True)
def relative_to_terms(residual: float, Av: float, b: float, force: float) -> float:
    """Size of A v - b - J^T lam relative to the largest of its three terms; all four are norms, or all four their squares."""
    return relative(residual, larger(Av, larger(b, force)))


@njit(cache=True)
def term_sizes(Av: np.ndarray, b: np.ndarray, force: np.ndarray, weight: np.ndarray) -> tuple[float, float, float]:
    """Sizes of the dynamics of a problem, from A v, b and J^T lam, (n,) N, and the weight of each row.

    Relative residual and largest term in the norm of the weighted rows, relative residual in the plain norm.
    """
    r_2 = a_2 = b_2 = f_2 = 0.0
    plain_r = plain_a = plain_b = plain_f = 0.0
    for i in range(b.shape[0]):
        r, square = Av[i] - b[i] - force[i], weight[i] * weight[i]
        rr, aa, bb, ff = r * r, Av[i] * Av[i], b[i] * b[i], force[i] * force[i]
        plain_r, plain_a, plain_b, plain_f = plain_r + rr, plain_a + aa, plain_b + bb, plain_f + ff
        r_2, a_2, b_2, f_2 = r_2 + square * rr, a_2 + square * aa, b_2 + square * bb, f_2 + square * ff
    plain = relative(math.sqrt(plain_r), math.sqrt(larger(plain_a, larger(plain_b, plain_f))))
    largest = math.sqrt(larger(a_2, larger(b_2, f_2)))
    return relative(math.sqrt(r_2), largest), largest, plain


@njit(cache=True, inner=True)
def law_parts(
    u_n: float, u_0: float, u_1: float, lam_n: float, lam_0: float, lam_1: float, rho: float, mu: float, relaxed: bool
) -> tuple[float, float, float, float, float, float]:
    """Rho uh and lam - P_K(lam - rho uh) of one contact, N; the natural map of ``contact.metrics.natural_map``.

    uh is u with mu |u_t| added to its normal part (De Saxce), or u itself for the ``relaxed`` law.
    """
    if not relaxed:
        u_n += mu * math.sqrt(u_0 * u_0 + u_1 * u_1)
    v_n, v_0, v_1 = u_n * rho, u_0 * rho, u_1 * rho
    p_n, p_0, p_1 = project_cone(lam_n - v_n, lam_0 - v_0, lam_1 - v_1, mu)
    return v_n, v_0, v_1, lam_n - p_n, lam_0 - p_0, lam_1 - p_1


@njit(cache=True)
def natural_map(lam: np.ndarray, u: np.ndarray, mu: np.ndarray, rho: np.ndarray, strict: bool) -> tuple[float, float]:
    """Return |lam - P_K(lam - rho uh)| and max(|lam|, |rho uh|), N, see :func:`law_parts`.

    Forces ``lam``, N, and velocities ``u``, m/s, (3 nc,); coefficients ``mu`` and scales ``rho``, N s/m, (nc,). ``strict``:
    with De Saxce's term.
    """
    residual = 0.0
    force = 0.0
    velocity = 0.0
    for i in range(mu.shape[0]):
        n, s, t = 3 * i, 3 * i + 1, 3 * i + 2
        v_n, v_0, v_1, e_n, e_0, e_1 = law_parts(u[n], u[s], u[t], lam[n], lam[s], lam[t], rho[i], mu[i], not strict)
        residual += e_n**2 + e_0**2 + e_1**2
        force += lam[n] ** 2 + lam[s] ** 2 + lam[t] ** 2
        velocity += v_n**2 + v_0**2 + v_1**2
    return math.sqrt(residual), math.sqrt(larger(force, velocity))


@njit(cache=True)
def law_errors(
    u: np.ndarray, lam: np.ndarray, phi: np.ndarray, rho: np.ndarray, friction: np.ndarray, relaxed: bool
) -> tuple[float, float, float, float]:
    """Errors of the contact law over the contacts that press or approach; others hold it, whatever their velocity is.

    Returns
    -------
    velocity : float, m/s
        Largest component of (lam - P_K(lam - rho uh)) / rho, or largest velocity of penetration.
    pace : float, m/s
        Largest component of u and phi.
    force : float
        Norm of lam - P_K(lam - rho uh) relative to the larger of those of lam and rho uh.
    most : float
        The same relative to that of lam alone: no smaller rho gives a larger ``force``.
    """
    velocity = pace = wrong = strength = motion = 0.0
    for m in range(lam.shape[0]):
        if u[m, 0] >= 0.0 and lam[m, 0] == 0.0 and lam[m, 1] == 0.0 and lam[m, 2] == 0.0:
            continue
        v_n, v_0, v_1, e_n, e_0, e_1 = law_parts(
            u[m, 0], u[m, 1], u[m, 2], lam[m, 0], lam[m, 1], lam[m, 2], rho[m], friction[m], relaxed
        )
        # the penetration once more: beside a large enough force rounding swallows it
        velocity = larger(velocity, larger(larger(abs(e_n), larger(abs(e_0), abs(e_1))) / rho[m], -u[m, 0]))
        for c in range(3):
            pace = larger(pace, larger(abs(u[m, c]), abs(phi[m, c])))
        wrong += e_n * e_n + e_0 * e_0 + e_1 * e_1
        strength += lam[m, 0] ** 2 + lam[m, 1] ** 2 + lam[m, 2] ** 2
        motion += v_n * v_n + v_0 * v_0 + v_1 * v_1
    wrong, strength = math.sqrt(wrong), math.sqrt(strength)
    return velocity, pace, relative(wrong, larger(strength, math.sqrt(motion))), relative(wrong, strength)


@njit(cache=True)
def idle_speed(u: np.ndarray, lam: np.ndarray, friction: np.ndarray) -> float:
    """Largest lam_n max(u_n, 0) + mu lam_n |u_t| + lam_t . u_t of a contact over the largest force of all, m/s.

    It is the power by which contact and friction are off: zero where the law of Signorini and Coulomb holds (the bipotential of
    de Saxce and Feng), positive where a force in its cone presses on what parts, or does not oppose what slides. No estimate of
    W is in it.
    """
    worst = strongest = 0.0
    for m in range(lam.shape[0]):
        speed = math.sqrt(u[m, 1] * u[m, 1] + u[m, 2] * u[m, 2])
        off = lam[m, 0] * (larger(u[m, 0], 0.0) + friction[m] * speed) + lam[m, 1] * u[m, 1] + lam[m, 2] * u[m, 2]
        worst = larger(worst, off)
        strongest = larger(strongest, math.sqrt(lam[m, 0] ** 2 + lam[m, 1] ** 2 + lam[m, 2] ** 2))
    return worst / strongest if strongest > 0.0 else 0.0


@njit(cache=True, inner=True)
def distance_to_cone(lam: np.ndarray, friction: np.ndarray) -> float:
    """Largest distance by which a force leaves its cone, N: ``cone_violation`` of ``contact.metrics.LocalMetrics``."""
    worst = 0.0
    for m in range(lam.shape[0]):
        length = math.sqrt(lam[m, 1] * lam[m, 1] + lam[m, 2] * lam[m, 2])
        worst = larger(larger(worst, length - friction[m] * lam[m, 0]), -lam[m, 0])
    return worst


@njit(cache=True, inner=True, error_model="numpy")
def alignment(u: np.ndarray, lam: np.ndarray, rho: np.ndarray) -> float:
    """Largest 1 + cos(angle between slip and friction force): ``slip_alignment`` of ``contact.metrics.LocalMetrics``."""
    fastest, strongest = TINY, TINY
    for m in range(lam.shape[0]):
        for c in range(3):
            fastest = larger(fastest, abs(u[m, c]))
        undone = math.sqrt(lam[m, 0] * lam[m, 0] + lam[m, 1] * lam[m, 1] + lam[m, 2] * lam[m, 2]) / rho[m]
        fastest, strongest = larger(fastest, undone), larger(strongest, lam[m, 0])
    worst, found = -math.inf, False
    for m in range(lam.shape[0]):
        speed = math.sqrt(u[m, 1] * u[m, 1] + u[m, 2] * u[m, 2])
        force = math.sqrt(lam[m, 1] * lam[m, 1] + lam[m, 2] * lam[m, 2])
        if speed > 1e-6 * fastest and lam[m, 0] > 1e-6 * strongest and force > 0.0:
            cosine = (u[m, 1] * lam[m, 1] + u[m, 2] * lam[m, 2]) / (speed * force)
            worst, found = larger(worst, 1.0 + cosine), True
    return worst if found else 0.0


@njit(cache=True)
def translations(
    start: np.ndarray, stop: np.ndarray, stride: np.ndarray, indptr: np.ndarray, indices: np.ndarray, data: np.ndarray,
    b: np.ndarray, out: np.ndarray,
) -> None:  # fmt: skip
    """Fill the velocity t (n,), m/s, that moves each group of points as one, where each component of A t has the sum that b has.

    A is symmetric, in CSC; rows of no group, and of groups without points (stride 0), keep what they are. One array is made at
    the start: to which group and component a row belongs.
    """
    label = np.full(len(b), -1, dtype=np.int32)
    for g in range(len(start)):
        if stride[g] > 0:
            for c in range(3):
                for j in range(start[g] + c, stop[g], stride[g]):
                    label[j] = 3 * g + c
    for g in range(len(start)):
        if stride[g] <= 0:
            continue
        for c in range(3):
            own, force, resistance = 3 * g + c, 0.0, 0.0
            for j in range(start[g] + c, stop[g], stride[g]):
                force += b[j]
                for p in range(np.uint64(indptr[j]), np.uint64(indptr[j + 1])):  # unsigned: see jacobian_kernels
                    if label[np.uint64(indices[p])] == own:
                        resistance += data[p]
            if resistance > 0.0:
                for j in range(start[g] + c, stop[g], stride[g]):
                    out[j] = force / resistance


@njit(cache=True, inner=True)
def net_forces(start: np.ndarray, stop: np.ndarray, stride: np.ndarray, force: np.ndarray, out: np.ndarray) -> None:
    """Fill the length of the sum of the force vectors on the points of each group, 0 for groups without points (stride 0)."""
    for g in range(start.shape[0]):
        square = 0.0
        if stride[g] > 0:
            for c in range(3):
                total = 0.0
                for i in range(start[g] + c, stop[g], stride[g]):
                    total += force[i]
                square += total * total
        out[g] = math.sqrt(square)


@njit(cache=True)
def moving_forces(
    start: np.ndarray, stop: np.ndarray, stride: np.ndarray, diagonal: np.ndarray, v: np.ndarray, out: np.ndarray
) -> None:
    """Fill the root of the sum of squares of a_ii v_i, N, over the nodes or links of each group; 0 for generalized groups."""
    for g in range(start.shape[0]):
        total = 0.0
        if stride[g] > 0:
            for i in range(start[g], stop[g], stride[g]):
                for c in range(i, i + 3):
                    force = diagonal[c] * v[c]
                    total += force * force
        out[g] = math.sqrt(total)


@njit(cache=True)
def least_scales(
    loads: np.ndarray, moving: np.ndarray, lam: np.ndarray, takes_part: np.ndarray, b_size: float, out: np.ndarray
) -> None:
    """Fill the least scale, N, of the balance of each group, see ``contact.metrics.balance``.

    The load on it, its part of the sum of the forces lam (nc, 3) on it, and of its ``moving`` forces and of all loads.
    """
    for g in range(out.shape[0]):
        total = 0.0
        for m in range(lam.shape[0]):
            if takes_part[g, m]:
                total += math.sqrt(lam[m, 0] * lam[m, 0] + lam[m, 1] * lam[m, 1] + lam[m, 2] * lam[m, 2])
        out[g] = larger(larger(loads[g], NET_FRACTION * total), NOISE_FRACTION * larger(moving[g], b_size))


@njit(cache=True)
def worst_balance(
    start: np.ndarray,
    stop: np.ndarray,
    stride: np.ndarray,
    least: np.ndarray,
    diagonal: np.ndarray,
    b: np.ndarray,
    Av: np.ndarray,
    force: np.ndarray,
    size: float,
) -> float:
    """Worst relative force balance of a body, see ``contact.metrics.balance``.

    Parameters
    ----------
    start, stop, stride : ndarray, (groups,)
        Rows of each group, and rows from one node or link to the next, 0 for generalized groups.
    least : ndarray, (groups,), N
        Least scale of a group of nodes or links.
    diagonal, b, Av, force : ndarray, (rows,)
        Diagonal of A in N s/m; b, A v and J^T lam in N.
    size : float
        Squared scale of the dynamics residual of the whole problem.
    """
    worst = 0.0
    for g in range(start.shape[0]):
        total = 0.0
        scale = 0.0
        if stride[g] > 0:
            net = 0.0
            for c in range(3):
                r = 0.0
                f = 0.0
                for i in range(start[g] + c, stop[g], stride[g]):
                    r += Av[i] - b[i] - force[i]
                    f += force[i]
                total += r * r
                net += f * f
            scale = larger(least[g] * least[g], net)
        else:
            terms_b = 0.0
            terms_a = 0.0
            terms_f = 0.0
            for i in range(start[g], stop[g]):
                d = 1.0 / diagonal[i]
                total += (Av[i] - b[i] - force[i]) ** 2 * d
                terms_b += b[i] * b[i] * d
                terms_a += Av[i] * Av[i] * d
                terms_f += force[i] * force[i] * d
            scale = larger(larger(terms_b, larger(terms_a, terms_f)), NOISE_FRACTION * NOISE_FRACTION * size)
        worst = larger(worst, math.sqrt(relative(total, scale)))
    return worst


@njit(cache=True)
def balances(
    groups: Groups, Av: np.ndarray, b: np.ndarray, force: np.ndarray, v: np.ndarray, lam: np.ndarray, size: float, b_size: float
) -> float:
    """Worst relative force balance of a body, see ``contact.metrics.balance``.

    Parameters
    ----------
    groups : Groups
        Bodies and the rows of A.
    Av, b, force, v : ndarray, (n,)
        A v, b and J^T lam, N; velocity.
    lam : ndarray, (nc, 3), N
        Contact forces.
    size : float
        Squared scale of the dynamics residual of the whole problem.
    b_size : float, N
        Sum of all |b| on nodes and links.
    """
    start, stop, stride = groups.start, groups.stop, groups.stride
    moving_forces(start, stop, stride, groups.diagonal, v, groups.moving)
    least_scales(groups.loads, groups.moving, lam, groups.takes_part, b_size, groups.least)
    return worst_balance(start, stop, stride, groups.least, groups.diagonal, b, Av, force, size)


@njit(cache=True, error_model="numpy")
def measure_problem(
    indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, b: np.ndarray, load: np.ndarray, start: np.ndarray,
    stop: np.ndarray, stride: np.ndarray, diagonal: np.ndarray, takes_part: np.ndarray, loads: np.ndarray, weight: np.ndarray,
    compliance: np.ndarray,
) -> float:  # fmt: skip
    """Fill what residuals of a problem are measured by, from J and b; return the sum of all |b| on nodes and links, N.

    Filled are ``takes_part``, which is False, and ``loads``, what ``load`` (n,), N, sums up to; the weight of each row, (n,),
    1 / sqrt(a_ii); and the diagonal of J diag(A)^-1 J^T, (3 nc,).
    """
    for i in range(weight.shape[0]):
        weight[i] = 1.0 / math.sqrt(diagonal[i])
    compliances(indptr, indices, data, diagonal, compliance)
    taking_part(indptr, indices, stop, takes_part)
    net_forces(start, stop, stride, load, loads)
    size = 0.0
    for g in range(start.shape[0]):
        if stride[g] > 0:
            for i in range(start[g], stop[g], stride[g]):
                size += abs(b[i]) + abs(b[i + 1]) + abs(b[i + 2])
    return size


@njit(cache=True)
def force_scales(blocks: np.ndarray, rho: np.ndarray) -> None:
    """Fill the force per velocity of each contact, see ``contact.problem.force_scales``; ``blocks`` (nc, 3)."""
    plane, alone, moving, total = True, False, 0, 0.0
    for m in range(rho.shape[0]):
        plane = plane and blocks[m, 2] == 0.0
        alone = alone or blocks[m, 1] == 0.0
        trace = blocks[m, 0] + blocks[m, 1] + blocks[m, 2]
        if trace > 0.0:
            moving, total = moving + 1, total + trace
    for m in range(rho.shape[0]):
        trace, dim = blocks[m, 0] + blocks[m, 1] + blocks[m, 2], 2.0 if plane else 3.0
        moves = trace > 0.0
        if alone and moves and blocks[m, 1] == 0.0 and blocks[m, 2] == 0.0:
            dim = 1.0
        if moves:
            rho[m] = dim / trace
        else:
            rho[m] = dim / (total / moving) if moving > 0 else 1.0


@njit(cache=True)
def residuals(
    start: np.ndarray, stop: np.ndarray, stride: np.ndarray, diagonal: np.ndarray, takes_part: np.ndarray, loads: np.ndarray,
    moving: np.ndarray, least: np.ndarray, Av: np.ndarray, b: np.ndarray, force: np.ndarray, v: np.ndarray, lam: np.ndarray,
    weight: np.ndarray, law_u: np.ndarray, law_lam: np.ndarray, rho: np.ndarray, friction: np.ndarray, relaxed: bool,
    b_size: float,
) -> tuple[float, float, float, float]:  # fmt: skip
    """All that decides on convergence: :func:`term_sizes`, the relative :func:`natural_map` and :func:`balances`.

    Dynamics, contact law, balance, and dynamics in the plain norm. Arguments are those of these functions; ``lam`` are the forces
    (nc, 3) of the problem, ``law_lam`` and ``law_u``, (3 nc,), forces and velocities in the variables of the contact law.
    The 20 are :class:`Groups`, one by one since every solve asks, and one problem and one answer, in the variables of both.
    """
    groups = Groups(start, stop, stride, diagonal, takes_part, loads, moving, least)
    dynamics, size, plain = term_sizes(Av, b, force, weight)
    wrong, scale = natural_map(law_lam, law_u, friction, rho, not relaxed)
    return dynamics, relative(wrong, scale), balances(groups, Av, b, force, v, lam, size * size, b_size), plain


@njit(cache=True)
def law_sizes(u: np.ndarray, lam: np.ndarray, rho: np.ndarray, friction: np.ndarray) -> tuple[float, float, float, float]:
    """Largest distance to the cone, |u_n lam_n|, approach -u_n and :func:`alignment`, over all contacts; 0 without any."""
    product = approach = 0.0
    for m in range(lam.shape[0]):
        product, approach = larger(product, abs(u[m, 0] * lam[m, 0])), larger(approach, -u[m, 0])
    return distance_to_cone(lam, friction), product, approach, alignment(u, lam, rho)


@njit(cache=True, inner=True)
def holding_forces(
    start: np.ndarray, stop: np.ndarray, stride: np.ndarray, b: np.ndarray, Av: np.ndarray, out: np.ndarray
) -> None:
    """Fill the force (N) that would keep each group of nodes or links from accelerating, |sum of b - A v| at the warm start v.

    It is weight and load where the warm start is the last velocity, so that a fast body is balanced as sharply as one at rest.
    1e-3 of |sum of b| and ``NOISE_FRACTION`` of the sum of |b| over all these groups keep it from zero where a body flies freely
    without gravity or rests on what holds it.
    """
    magnitudes = 0.0
    for g in range(start.shape[0]):
        if stride[g] > 0:
            for i in range(start[g], stop[g], stride[g]):
                magnitudes += abs(b[i]) + abs(b[i + 1]) + abs(b[i + 2])
    for g in range(start.shape[0]):
        total = 0.0
        b_total = 0.0
        for c in range(3):
            r = 0.0
            s = 0.0
            for i in range(start[g] + c, stop[g], max(stride[g], 3)):
                r += b[i] - Av[i]
                s += b[i]
            total += r * r
            b_total += s * s
        out[g] = max(math.sqrt(total), max(1e-3 * math.sqrt(b_total), NOISE_FRACTION * magnitudes))


@njit(cache=True)
def row_sizes(
    indptr: np.ndarray,
    indices: np.ndarray,
    data: np.ndarray,
    offset: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    softness: np.ndarray,
    vector: np.ndarray,
    least: float,
    diagonal: np.ndarray,
    v: np.ndarray,
    forces: np.ndarray,
    unsure: np.ndarray,
    give: np.ndarray,
) -> tuple[float, float, float]:
    """Return the error of the law of rows and the sizes of forces and velocities, see ``contact.metrics.row_residual``.

    G, (p, n), is in compressed rows; ``offset``, ``low``, ``high``, ``softness`` and ``forces`` are (p,), so are numbers
    ``vector``, of which no row that moves counts less than ``least`` of the largest; ``v``, ``diagonal``, that of A, and
    ``unsure``, what each velocity counts at least, are (n,). ``give``, (p,), takes 1 / rho, and 0 for rows that nothing can move.
    """
    mean, moving, largest = 0.0, 0, np.zeros(give.shape[0])
    for i in range(give.shape[0]):
        give[i] = softness[i]
        for k in range(indptr[i], indptr[i + 1]):
            give[i] += data[k] * data[k] / diagonal[indices[k]]
        largest[vector[i]] = max(largest[vector[i]], give[i])
    for i in range(give.shape[0]):
        if give[i] > 0.0:
            give[i] = max(give[i], least * largest[vector[i]])
            mean += give[i]
            moving += 1
    mean = mean / moving if moving else 1.0
    wrong, force, reach = 0.0, 0.0, 0.0
    for i in range(give.shape[0]):
        weight = give[i] if give[i] > 0.0 else mean  # 1 / rho
        w, most = offset[i] + softness[i] * forces[i], abs(offset[i])
        for k in range(indptr[i], indptr[i + 1]):
            w += data[k] * v[indices[k]]
            most += abs(data[k]) * max(abs(v[indices[k]]), unsure[indices[k]])
        lacking = forces[i] - min(max(forces[i] - w / weight, low[i]), high[i])
        wrong += weight * lacking * lacking
        force += weight * forces[i] * forces[i]
        reach += most * most / weight
    return math.sqrt(wrong), math.sqrt(force), math.sqrt(reach)

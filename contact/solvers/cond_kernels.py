"""Compiled kernels of COND: the whole fixed-point iteration in one function, arrays in, arrays filled.

Layout of the unknown x (see ``contact.nodalize``): rows of nodes and bodies, padded to a multiple of three, then three
rows a virtual node. A of the bodies comes as 3x3 blocks (compressed rows), the virtual nodes are applied matrix-free.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from contact.cone import project_cone, project_strict
from contact.metrics import NET_FRACTION, NOISE_FRACTION


@njit(cache=True)
def gather_blocks(source: np.ndarray, index: np.ndarray, blocks: np.ndarray) -> None:
    """Fill the 3x3 blocks from the entries of the CSC matrix: index -1 means zero, -2 one (padding of the diagonal)."""
    flat = blocks.reshape(-1)
    for k in range(index.shape[0]):
        i = index[k]
        flat[k] = source[i] if i >= 0 else (0.0 if i == -1 else 1.0)


@njit(cache=True)
def apply_matrix(
    ptr: np.ndarray,
    col: np.ndarray,
    blocks: np.ndarray,
    vptr: np.ndarray,
    vdof: np.ndarray,
    vjac: np.ndarray,
    gain: np.ndarray,
    x: np.ndarray,
    y: np.ndarray,
) -> None:
    """Update y = A x of eq. (15): block rows, then the virtual nodes without assembling them."""
    n_blocks = ptr.shape[0] - 1
    for i in range(n_blocks):
        s0 = 0.0
        s1 = 0.0
        s2 = 0.0
        for k in range(ptr[i], ptr[i + 1]):
            j = 3 * col[k]
            x0 = x[j]
            x1 = x[j + 1]
            x2 = x[j + 2]
            s0 += blocks[k, 0, 0] * x0 + blocks[k, 0, 1] * x1 + blocks[k, 0, 2] * x2
            s1 += blocks[k, 1, 0] * x0 + blocks[k, 1, 1] * x1 + blocks[k, 1, 2] * x2
            s2 += blocks[k, 2, 0] * x0 + blocks[k, 2, 1] * x1 + blocks[k, 2, 2] * x2
        y[3 * i] = s0
        y[3 * i + 1] = s1
        y[3 * i + 2] = s2
    for q in range(gain.shape[0]):
        row = 3 * n_blocks + 3 * q
        d0 = x[row]
        d1 = x[row + 1]
        d2 = x[row + 2]
        for e in range(vptr[q], vptr[q + 1]):
            xe = x[vdof[e]]
            d0 -= vjac[e, 0] * xe
            d1 -= vjac[e, 1] * xe
            d2 -= vjac[e, 2] * xe
        d0 *= gain[q]
        d1 *= gain[q]
        d2 *= gain[q]
        y[row] = d0
        y[row + 1] = d1
        y[row + 2] = d2
        for e in range(vptr[q], vptr[q + 1]):
            y[vdof[e]] -= vjac[e, 0] * d0 + vjac[e, 1] * d1 + vjac[e, 2] * d2


@njit(cache=True)
def extended_diagonal(
    ptr: np.ndarray,
    col: np.ndarray,
    blocks: np.ndarray,
    vptr: np.ndarray,
    vdof: np.ndarray,
    vjac: np.ndarray,
    gain: np.ndarray,
    diagonal: np.ndarray,
) -> None:
    """Fill the diagonal of A of eq. (15)."""
    n_blocks = ptr.shape[0] - 1
    for i in range(n_blocks):
        for k in range(ptr[i], ptr[i + 1]):
            if col[k] == i:
                for c in range(3):
                    diagonal[3 * i + c] = blocks[k, c, c]
    for q in range(gain.shape[0]):
        for c in range(3):
            diagonal[3 * n_blocks + 3 * q + c] = gain[q]
        for e in range(vptr[q], vptr[q + 1]):
            for c in range(3):
                diagonal[vdof[e]] += gain[q] * vjac[e, c] * vjac[e, c]


@njit(cache=True)
def node_steps(
    ptr: np.ndarray,
    blocks: np.ndarray,
    first: int,
    last: int,
    virtual_row: int,
    gain: np.ndarray,
    w: np.ndarray,
) -> None:
    """Fill w by Frobenius minimisation (papers/001 IV-C1), equal within a node, and by 1/kv on virtual nodes.

    On entry w holds the diagonal of A; block rows first..last-1 are filled.

    Departure from the paper: the two nodes of a D-contact keep steps of their own; Prop. 3 needs equal steps only within
    a node. A virtual node takes 1/kv, which with the dense step of its body keeps the spectrum of W A below two.
    """
    for i in range(first, last):
        trace = 0.0
        square = 0.0
        for k in range(ptr[i], ptr[i + 1]):
            for r in range(3):
                for c in range(3):
                    square += blocks[k, r, c] * blocks[k, r, c]
        for c in range(3):
            trace += w[3 * i + c]  # w holds the diagonal on entry
        for c in range(3):
            w[3 * i + c] = trace / square
    for q in range(gain.shape[0]):
        for c in range(3):
            w[virtual_row + 3 * q + c] = 1.0 / gain[q]


@njit(cache=True)
def shrink_steps(
    group_of: np.ndarray,
    group_is_nodes: np.ndarray,
    vptr: np.ndarray,
    vdof: np.ndarray,
    vjac: np.ndarray,
    gain: np.ndarray,
    w: np.ndarray,
) -> None:
    """Shrink the steps of nodes that carry virtual nodes (points inside elements).

    1/w grows by the absolute row sums of kv J_v^T J_v.
    Equal within a node: each of its rows adds to all three.
    """
    for q in range(gain.shape[0]):
        if not group_is_nodes[group_of[q]]:
            continue
        for e in range(vptr[q], vptr[q + 1]):
            row_sum = 0.0
            for f in range(vptr[q], vptr[q + 1]):
                row_sum += abs(vjac[e, 0] * vjac[f, 0] + vjac[e, 1] * vjac[f, 1] + vjac[e, 2] * vjac[f, 2])
            first = 3 * (vdof[e] // 3)
            for c in range(3):
                w[first + c] = 1.0 / (1.0 / w[first + c] + gain[q] * row_sum)


@njit(cache=True)
def add_gain_blocks(
    group_of: np.ndarray,
    group_start: np.ndarray,
    vptr: np.ndarray,
    vdof: np.ndarray,
    vjac: np.ndarray,
    gain: np.ndarray,
    dense: np.ndarray,
) -> None:
    """Add kv J_v^T J_v (eq. 15) of all virtual nodes to the blocks ``dense`` (groups, size, size) of generalized groups."""
    size = dense.shape[1]
    for q in range(gain.shape[0]):
        g = group_of[q]
        base = group_start[g]
        if vdof[vptr[q + 1] - 1] - base >= size:
            continue  # a virtual node on a group of nodes
        for e in range(vptr[q], vptr[q + 1]):
            for f in range(vptr[q], vptr[q + 1]):
                dot = vjac[e, 0] * vjac[f, 0] + vjac[e, 1] * vjac[f, 1] + vjac[e, 2] * vjac[f, 2]
                dense[g, vdof[e] - base, vdof[f] - base] += gain[q] * dot


@njit(cache=True)
def apply_steps(
    w: np.ndarray,
    dense_start: np.ndarray,
    dense_size: np.ndarray,
    dense: np.ndarray,
    residual: np.ndarray,
    step: np.ndarray,
) -> None:
    """Update step = W residual: diagonal on nodes, a dense block ``dense[g, :size, :size]`` on each generalized group."""
    for i in range(residual.shape[0]):
        step[i] = w[i] * residual[i]
    for g in range(dense_start.shape[0]):
        base = dense_start[g]
        for r in range(dense_size[g]):
            total = 0.0
            for c in range(dense_size[g]):
                total += dense[g, r, c] * residual[base + c]
            step[base + r] = total


@njit(cache=True)
def largest_eigenvalue(
    ptr: np.ndarray,
    col: np.ndarray,
    blocks: np.ndarray,
    vptr: np.ndarray,
    vdof: np.ndarray,
    vjac: np.ndarray,
    gain: np.ndarray,
    w: np.ndarray,
    dense_start: np.ndarray,
    dense_size: np.ndarray,
    dense: np.ndarray,
    x: np.ndarray,
    y: np.ndarray,
    iterations: int,
) -> float:
    """Power iteration on W A from x (updated in place): estimate of its largest eigenvalue from below."""
    value = 0.0
    for _ in range(iterations):
        apply_matrix(ptr, col, blocks, vptr, vdof, vjac, gain, x, y)
        norm = 0.0
        energy = 0.0
        for i in range(x.shape[0]):
            energy += x[i] * y[i]
        apply_steps(w, dense_start, dense_size, dense, y, x)
        for i in range(x.shape[0]):
            norm += x[i] * y[i]
        value = norm / energy
        scale = 1.0 / math.sqrt(norm)
        for i in range(x.shape[0]):
            x[i] *= scale
    return value


@njit(cache=True)
def contact_sweep(
    only_coupled: bool,
    strict: bool,
    node: np.ndarray,
    block: np.ndarray,
    phi: np.ndarray,
    friction: np.ndarray,
    coupled: np.ndarray,
    w: np.ndarray,
    lam: np.ndarray,
    x: np.ndarray,
) -> float:
    """One Gauss-Seidel pass over the contacts of the surrogate problem (Alg. 2).

    Returns the largest force change relative to the largest force.

    x already holds v* + W J^T lam; each contact removes its own share by the projection of eq. (26) on
    gamma = sum of the steps of its nodes. A contact whose nodes have no other contact is solved exactly by one pass; the
    others (``coupled``) converge by passes with lam kept per contact (design: a node in several contacts at once).
    """
    change = 0.0
    largest = 0.0
    for m in range(node.shape[0]):
        if only_coupled and not coupled[m]:
            continue
        u0 = phi[m, 0]
        u1 = phi[m, 1]
        u2 = phi[m, 2]
        gamma = 0.0
        for side in range(2):
            s = node[m, side]
            if s >= 0:
                for c in range(3):
                    xc = x[s + c]
                    u0 += block[m, side, 0, c] * xc
                    u1 += block[m, side, 1, c] * xc
                    u2 += block[m, side, 2, c] * xc
                gamma += w[s]
        if gamma == 0.0:
            continue  # an obstacle against an obstacle: no unknown is touched
        t0 = lam[m, 0] - u0 / gamma
        t1 = lam[m, 1] - u1 / gamma
        t2 = lam[m, 2] - u2 / gamma
        if strict:
            p0, p1, p2 = project_strict(t0, t1, t2, friction[m])
        else:
            p0, p1, p2 = project_cone(t0, t1, t2, friction[m])
        d0 = p0 - lam[m, 0]
        d1 = p1 - lam[m, 1]
        d2 = p2 - lam[m, 2]
        lam[m, 0] = p0
        lam[m, 1] = p1
        lam[m, 2] = p2
        for side in range(2):
            s = node[m, side]
            if s >= 0:
                for c in range(3):
                    x[s + c] += w[s] * (block[m, side, 0, c] * d0 + block[m, side, 1, c] * d1 + block[m, side, 2, c] * d2)
        change = max(change, abs(d0) + abs(d1) + abs(d2))
        largest = max(largest, abs(p0) + abs(p1) + abs(p2))
    return change / largest if largest > 0.0 else change


@njit(cache=True)
def add_contact_forces(
    node: np.ndarray,
    block: np.ndarray,
    lam: np.ndarray,
    sign: float,
    w: np.ndarray,
    weighted: bool,
    y: np.ndarray,
) -> None:
    """Update y += sign W^weighted J^T lam on the nodes of the contacts."""
    for m in range(node.shape[0]):
        for side in range(2):
            s = node[m, side]
            if s >= 0:
                factor = sign * (w[s] if weighted else 1.0)
                for c in range(3):
                    y[s + c] += factor * (
                        block[m, side, 0, c] * lam[m, 0] + block[m, side, 1, c] * lam[m, 1] + block[m, side, 2, c] * lam[m, 2]
                    )


@njit(cache=True)
def natural_residual(
    node: np.ndarray,
    block: np.ndarray,
    phi: np.ndarray,
    friction: np.ndarray,
    strict: bool,
    rho: np.ndarray,
    lam: np.ndarray,
    x: np.ndarray,
    first_virtual: int,
    point_velocity: np.ndarray,
) -> float:
    """Natural-map residual, formula of ``metrics.contact_residual`` (without the De Saxce term for the proximal law).

    Virtual nodes count with ``point_velocity`` (nv, 3): the velocity of the point of their body for the residual of the
    original problem, or their own for that of the nodal one.
    """
    total = 0.0
    force = 0.0
    velocity = 0.0
    for m in range(node.shape[0]):
        u0 = phi[m, 0]
        u1 = phi[m, 1]
        u2 = phi[m, 2]
        for side in range(2):
            s = node[m, side]
            if s >= first_virtual:
                q = (s - first_virtual) // 3
                u0 += point_velocity[q, 0]
                u1 += point_velocity[q, 1]
                u2 += point_velocity[q, 2]
            elif s >= 0:
                for c in range(3):
                    xc = x[s + c]
                    u0 += block[m, side, 0, c] * xc
                    u1 += block[m, side, 1, c] * xc
                    u2 += block[m, side, 2, c] * xc
        if strict:
            u0 += friction[m] * math.sqrt(u1 * u1 + u2 * u2)
        u0 *= rho[m]
        u1 *= rho[m]
        u2 *= rho[m]
        p0, p1, p2 = project_cone(lam[m, 0] - u0, lam[m, 1] - u1, lam[m, 2] - u2, friction[m])
        total += (lam[m, 0] - p0) ** 2 + (lam[m, 1] - p1) ** 2 + (lam[m, 2] - p2) ** 2
        force += lam[m, 0] ** 2 + lam[m, 1] ** 2 + lam[m, 2] ** 2
        velocity += u0 * u0 + u1 * u1 + u2 * u2
    scale = max(force, velocity)
    return math.sqrt(total / scale) if scale > 0.0 else 0.0


@njit(cache=True)
def worst_balance(
    group_start: np.ndarray,
    group_stop: np.ndarray,
    group_is_nodes: np.ndarray,
    group_force: np.ndarray,
    diagonal: np.ndarray,
    b: np.ndarray,
    Ax: np.ndarray,
    force: np.ndarray,
    whole: float,
) -> float:
    """Worst relative force balance of a body, as ``metrics.balance``.

    ``group_force`` (groups,) is the least scale of a group of nodes,
    ``whole`` the squared scale of the dynamics residual of the whole problem.
    """
    worst = 0.0
    for g in range(group_start.shape[0]):
        total = 0.0
        scale = 0.0
        if group_is_nodes[g]:
            net = 0.0
            for c in range(3):
                r = 0.0
                f = 0.0
                for i in range(group_start[g] + c, group_stop[g], 3):
                    r += Ax[i] - b[i] - force[i]
                    f += force[i]
                total += r * r
                net += f * f
            scale = max(group_force[g] * group_force[g], net)
        else:
            b_total = 0.0
            a_total = 0.0
            for i in range(group_start[g], group_stop[g]):
                d = 1.0 / diagonal[i]
                total += (Ax[i] - b[i] - force[i]) ** 2 * d
                b_total += b[i] * b[i] * d
                a_total += Ax[i] * Ax[i] * d
            scale = max(max(b_total, a_total), NOISE_FRACTION * NOISE_FRACTION * whole)
        if total > 0.0:
            worst = max(worst, math.sqrt(total / scale) if scale > 0.0 else math.inf)
    return worst


@njit(cache=True)
def force_scales(group_start: np.ndarray, group_stop: np.ndarray, b: np.ndarray, Ax: np.ndarray, scales: np.ndarray) -> None:
    """Fill the force (N) that would keep each group of nodes from accelerating, |sum of b - A x| at the warm start.

    It is weight and load where the warm start is the last velocity, so that a fast body is balanced as sharply as one at rest.
    1e-3 of |sum of b| and ``NOISE_FRACTION`` of the sum of all |b| keep it from zero where a body flies freely without gravity.
    """
    for g in range(group_start.shape[0]):
        total = 0.0
        b_total = 0.0
        magnitudes = 0.0
        for c in range(3):
            r = 0.0
            s = 0.0
            for i in range(group_start[g] + c, group_stop[g], 3):
                r += b[i] - Ax[i]
                s += b[i]
                magnitudes += abs(b[i])
            total += r * r
            b_total += s * s
        scales[g] = max(math.sqrt(total), max(1e-3 * math.sqrt(b_total), NOISE_FRACTION * magnitudes))


@njit(cache=True)
def iterate(
    ptr: np.ndarray,
    col: np.ndarray,
    blocks: np.ndarray,
    vptr: np.ndarray,
    vdof: np.ndarray,
    vjac: np.ndarray,
    gain: np.ndarray,
    multiplier: np.ndarray,
    b: np.ndarray,
    diagonal: np.ndarray,
    diagonal_bodies: np.ndarray,
    w: np.ndarray,
    dense_start: np.ndarray,
    dense_size: np.ndarray,
    dense: np.ndarray,
    node: np.ndarray,
    block: np.ndarray,
    phi: np.ndarray,
    friction: np.ndarray,
    coupled: np.ndarray,
    rho_contact: np.ndarray,
    group_start: np.ndarray,
    group_stop: np.ndarray,
    group_is_nodes: np.ndarray,
    group_of_row: np.ndarray,
    strict: bool,
    chebyshev: bool,
    relaxation: float,
    delay: int,
    local_sweeps: int,
    patience: int,
    exact_gain: bool,
    update_interval: int,
    update_ratio: float,
    tolerance: float,
    balance_factor: float,
    max_iterations: int,
    x: np.ndarray,
    lam: np.ndarray,
    work: np.ndarray,
    history: np.ndarray,
) -> tuple[int, int]:
    """Velocity fixed-point iteration with Chebyshev acceleration (papers/001 Algs. 1-3).

    On entry x and lam hold the warm start; on return x is the un-extrapolated iterate v** and lam its force. Updates
    ``history`` (iterations, 3): dynamics residual, contact residual, step norm. Returns (iterations, status): 0 converged,
    1 stopped at the limit, 2 not finite.

    One product with A an iteration: A is applied to v** (so that the residual of the returned pair is exact and free), and
    A of the extrapolated iterate follows from the same linear combination. The norms of eq. (39) and of the step weigh each
    row by its diagonal of A, so that they do not depend on units.

    Safeguard: when the best residual has not halved for ``patience`` iterations the acceleration restarts and the multipliers are
    updated half as often; from the third time on the acceleration stays off.
    """
    size = x.shape[0]
    Ax = work[0]
    star = work[1]
    A_star = work[2]
    x_old = work[3]
    Ax_old = work[4]
    residual = work[5]
    force = work[6]
    b_now = work[7]
    body_Av = work[8]
    n_rows = 3 * (ptr.shape[0] - 1)
    nv = gain.shape[0]

    for i in range(size):
        b_now[i] = b[i] if i < n_rows else 0.0
        x_old[i] = x[i]
    for q in range(nv):
        for c in range(3):
            b_now[n_rows + 3 * q + c] = -multiplier[q, c]
            for e in range(vptr[q], vptr[q + 1]):
                b_now[vdof[e]] += vjac[e, c] * multiplier[q, c]
    apply_matrix(ptr, col, blocks, vptr, vdof, vjac, gain, x, Ax)
    for i in range(size):
        Ax_old[i] = Ax[i]

    point_velocity = np.zeros((nv, 3))
    inverse_diagonal = work[9]
    b2 = 0.0
    for i in range(n_rows):
        inverse_diagonal[i] = 1.0 / diagonal_bodies[i]
        b2 += b[i] * b[i] * inverse_diagonal[i]
    group_force = np.zeros(group_start.shape[0])
    free_force = np.zeros(group_start.shape[0])
    force_scales(group_start, group_stop, b, Ax, free_force)
    nu = 1.0
    radius = 0.0
    since_start = 0
    step_norm_old = 0.0
    best = math.inf
    best_at = 0
    restarts = 0
    last_update = 0
    for iteration in range(1, max_iterations + 1):
        # v* = v - W (A v - b), eq. (20); then v** = v* + W J^T lam, eq. (24), with lam by Alg. 2
        for i in range(size):
            residual[i] = b_now[i] - Ax[i]
        apply_steps(w, dense_start, dense_size, dense, residual, star)
        for i in range(size):
            star[i] += x[i]
        add_contact_forces(node, block, lam, 1.0, w, True, star)
        contact_sweep(False, strict, node, block, phi, friction, coupled, w, lam, star)
        for _ in range(local_sweeps):
            if contact_sweep(True, strict, node, block, phi, friction, coupled, w, lam, star) < 0.1 * tolerance:
                break

        # true residuals of the pair (v**, lam), on the problem without virtual nodes: they hand their force to the body (eq. 18)
        apply_matrix(ptr, col, blocks, vptr, vdof, vjac, gain, star, A_star)
        for i in range(n_rows):
            body_Av[i] = A_star[i]
        for i in range(size):
            force[i] = 0.0
        add_contact_forces(node, block, lam, 1.0, w, False, force)
        mismatch = 0.0
        total = 0.0
        for q in range(nv):
            for c in range(3):
                carried = A_star[n_rows + 3 * q + c]  # kv (v_v - J_v v), what the node carries beyond its multiplier
                pushed = force[n_rows + 3 * q + c]
                mismatch += carried * carried
                total += multiplier[q, c] ** 2 + pushed * pushed
                point_velocity[q, c] = star[n_rows + 3 * q + c]
                if exact_gain:
                    point_velocity[q, c] -= carried / gain[q]
                for e in range(vptr[q], vptr[q + 1]):
                    body_Av[vdof[e]] += vjac[e, c] * carried
                    force[vdof[e]] += vjac[e, c] * pushed
        mismatch = math.sqrt(mismatch / total) if exact_gain and total > 0.0 else 0.0
        # three accumulators a sum: rows come in threes, and a single chain of additions would wait for each of its results
        r_0 = r_1 = r_2 = a_0 = a_1 = a_2 = f_0 = f_1 = f_2 = 0.0
        for i in range(0, n_rows, 3):
            d = inverse_diagonal[i]
            r = body_Av[i] - b[i] - force[i]
            r_0 += r * r * d
            a_0 += body_Av[i] * body_Av[i] * d
            f_0 += force[i] * force[i] * d
            d = inverse_diagonal[i + 1]
            r = body_Av[i + 1] - b[i + 1] - force[i + 1]
            r_1 += r * r * d
            a_1 += body_Av[i + 1] * body_Av[i + 1] * d
            f_1 += force[i + 1] * force[i + 1] * d
            d = inverse_diagonal[i + 2]
            r = body_Av[i + 2] - b[i + 2] - force[i + 2]
            r_2 += r * r * d
            a_2 += body_Av[i + 2] * body_Av[i + 2] * d
            f_2 += force[i + 2] * force[i + 2] * d
        scale = max(b2, max(a_0 + a_1 + a_2, f_0 + f_1 + f_2))
        dynamics = math.sqrt((r_0 + r_1 + r_2) / scale) if scale > 0.0 else 0.0
        contact = natural_residual(node, block, phi, friction, strict, rho_contact, lam, star, n_rows, point_velocity)

        # extrapolation, eq. (38) with the under-relaxation of Wang 2015, and A of it by linearity
        since_start += 1
        if not chebyshev or since_start < delay or restarts > 2:
            nu = 1.0
        elif since_start == delay:
            nu = 2.0 / (2.0 - radius * radius)
        else:
            nu = 4.0 / (4.0 - radius * radius * nu)
        for i in range(size):
            new = nu * (relaxation * (star[i] - x[i]) + x[i] - x_old[i]) + x_old[i]
            A_new = nu * (relaxation * (A_star[i] - Ax[i]) + Ax[i] - Ax_old[i]) + Ax_old[i]
            x_old[i] = x[i]
            Ax_old[i] = Ax[i]
            x[i] = new
            Ax[i] = A_new
        s_0 = s_1 = s_2 = 0.0
        for i in range(0, size, 3):
            s_0 += (x[i] - x_old[i]) ** 2 * diagonal[i]
            s_1 += (x[i + 1] - x_old[i + 1]) ** 2 * diagonal[i + 1]
            s_2 += (x[i + 2] - x_old[i + 2]) ** 2 * diagonal[i + 2]
        step_norm = math.sqrt(s_0 + s_1 + s_2)
        history[iteration - 1, 0] = dynamics
        history[iteration - 1, 1] = contact
        history[iteration - 1, 2] = step_norm
        if not (math.isfinite(dynamics) and math.isfinite(contact) and math.isfinite(step_norm)):
            return iteration, 2
        if step_norm_old > 0.0:
            radius = min(step_norm / step_norm_old, 1.0)  # eq. (39)
        step_norm_old = step_norm

        done = dynamics <= tolerance and contact <= tolerance
        if done:
            group_force[:] = 0.0
            for m in range(node.shape[0]):
                magnitude = math.sqrt(lam[m, 0] ** 2 + lam[m, 1] ** 2 + lam[m, 2] ** 2)
                for side in range(2):
                    if 0 <= node[m, side] < group_of_row.shape[0]:
                        group_force[group_of_row[node[m, side]]] += magnitude
            for g in range(group_force.shape[0]):
                group_force[g] = max(NET_FRACTION * group_force[g], free_force[g])
            imbalance = worst_balance(
                group_start, group_stop, group_is_nodes, group_force, diagonal_bodies, b, body_Av, force, scale
            )
            done = imbalance <= balance_factor * tolerance
        if done:
            for i in range(size):
                x[i] = star[i]
            return iteration, 0
        if exact_gain and iteration - last_update >= update_interval and dynamics < update_ratio * mismatch:
            # augmented-Lagrangian update (papers/000 eq. 11): the multiplier takes over what the virtual nodes carry now
            last_update = iteration
            for q in range(nv):
                for c in range(3):
                    change = A_star[n_rows + 3 * q + c]
                    multiplier[q, c] += change
                    b_now[n_rows + 3 * q + c] -= change
                    for e in range(vptr[q], vptr[q + 1]):
                        b_now[vdof[e]] += vjac[e, c] * change
        merit = max(dynamics, contact)
        if merit < 0.5 * best:
            best = merit
            best_at = iteration
        elif iteration - best_at >= patience and chebyshev:
            restarts += 1
            update_interval *= 2
            best_at = iteration
            best = merit
            since_start = 0
            nu = 1.0
            for i in range(size):
                x[i] = star[i]
                Ax[i] = A_star[i]
                x_old[i] = star[i]
                Ax_old[i] = A_star[i]
            step_norm_old = 0.0
            radius = 0.0
    for i in range(size):
        x[i] = star[i]
    return max_iterations, 1

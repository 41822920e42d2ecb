"""Compiled kernels of COND: the whole fixed-point iteration in one function, arrays in, arrays filled.

Layout of the unknown x (see ``contact.nodalize``): rows of nodes and bodies, padded to a multiple of three, then three
rows a virtual node. A of the bodies comes as 3x3 blocks (compressed rows, see ``block_rows``), the virtual nodes are applied
matrix-free.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from contact.cone import project_cone, project_cone_elliptic, project_strict_elliptic
from contact.metrics import NET_FRACTION, NOISE_FRACTION
from contact.solvers.block_rows import apply_blocks

#: An accelerated iteration that is this many times worse than the best iterate goes back to it.
RETREAT = 100.0
#: Acceleration restarts unless the best residual has fallen to this part of itself within the patience.
PROGRESS = 0.9
#: Iterations with safe steps after going back, before Barzilai-Borwein steps are tried again.
SAFE_STEPS = 10
#: Restarts after which the plain iteration runs for the rest ...
MAX_RESTARTS = 1
#: ... with steps halved by each further one, so many times.
MAX_HALVINGS = 6


@njit(cache=True)
def gather_blocks(source: np.ndarray, index: np.ndarray, values: np.ndarray) -> None:
    """Fill the first entries of ``values`` from those of the CSC matrix: index -1 means 0, -2 means 1 (padding rows)."""
    for k in range(index.shape[0]):
        i = index[k]
        values[k] = source[i] if i >= 0 else (0.0 if i == -1 else 1.0)


@njit(cache=True)
def add_virtual_nodes(
    first_virtual: int,
    vptr: np.ndarray,
    vdof: np.ndarray,
    vjac: np.ndarray,
    gain: np.ndarray,
    x: np.ndarray,
    y: np.ndarray,
) -> None:
    """Update y += (A of eq. 15 - A of the bodies) x: fill the virtual rows, add kv J_v^T (J_v v - v_v) to those of the bodies."""
    for q in range(gain.shape[0]):
        row = first_virtual + 3 * q
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
def apply_matrix(
    ptr: np.ndarray,
    col: np.ndarray,
    values: np.ndarray,
    vptr: np.ndarray,
    vdof: np.ndarray,
    vjac: np.ndarray,
    gain: np.ndarray,
    x: np.ndarray,
    y: np.ndarray,
) -> None:
    """Update y = A x of eq. (15): block rows, then the virtual nodes without assembling them."""
    apply_blocks(ptr, col, values, x, y)
    add_virtual_nodes(3 * (ptr.shape[0] - 1), vptr, vdof, vjac, gain, x, y)


@njit(cache=True)
def extended_diagonal(
    ptr: np.ndarray,
    col: np.ndarray,
    values: np.ndarray,
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
                    diagonal[3 * i + c] = values[9 * k + 4 * c]
    for q in range(gain.shape[0]):
        for c in range(3):
            diagonal[3 * n_blocks + 3 * q + c] = gain[q]
        for e in range(vptr[q], vptr[q + 1]):
            for c in range(3):
                diagonal[vdof[e]] += gain[q] * vjac[e, c] * vjac[e, c]


@njit(cache=True)
def node_steps(
    ptr: np.ndarray,
    values: np.ndarray,
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
            for entry in range(9 * k, 9 * k + 9):
                square += values[entry] * values[entry]
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
def jacobi_steps(virtual_row: int, gain: np.ndarray, w: np.ndarray) -> None:
    """Fill w with 1 / (mean diagonal of A) of each node and 1/kv of each virtual node; on entry w holds the diagonal of A."""
    for i in range(0, virtual_row, 3):
        step = 3.0 / (w[i] + w[i + 1] + w[i + 2])
        w[i] = w[i + 1] = w[i + 2] = step
    for q in range(gain.shape[0]):
        for c in range(3):
            w[virtual_row + 3 * q + c] = 1.0 / gain[q]


@njit(cache=True)
def apply_steps(
    w: np.ndarray,
    dense_start: np.ndarray,
    dense_size: np.ndarray,
    dense: np.ndarray,
    alpha: float,
    b: np.ndarray,
    Ax: np.ndarray,
    x: np.ndarray,
    star: np.ndarray,
) -> None:
    """Update star = x + alpha W (b - A x), eq. (20).

    W is diagonal on nodes and a dense block ``dense[g, :size, :size]`` on each generalized group.
    """
    for i in range(x.shape[0]):
        star[i] = x[i] + alpha * w[i] * (b[i] - Ax[i])
    for g in range(dense_start.shape[0]):
        base = dense_start[g]
        for r in range(dense_size[g]):
            total = 0.0
            for c in range(dense_size[g]):
                total += dense[g, r, c] * (b[base + c] - Ax[base + c])
            star[base + r] = x[base + r] + alpha * total


@njit(cache=True)
def largest_eigenvalue(
    ptr: np.ndarray,
    col: np.ndarray,
    values: np.ndarray,
    vptr: np.ndarray,
    vdof: np.ndarray,
    vjac: np.ndarray,
    gain: np.ndarray,
    w: np.ndarray,
    dense_start: np.ndarray,
    dense_size: np.ndarray,
    dense: np.ndarray,
    x: np.ndarray,
    iterations: int,
) -> float:
    """Power iteration on W A from x (updated in place): estimate of its largest eigenvalue from below."""
    value = 0.0
    y, step, zero = np.empty(x.shape[0]), np.empty(x.shape[0]), np.zeros(x.shape[0])
    for _ in range(iterations):
        apply_matrix(ptr, col, values, vptr, vdof, vjac, gain, x, y)
        apply_steps(w, dense_start, dense_size, dense, 1.0, y, zero, zero, step)
        norm = 0.0
        energy = 0.0
        for i in range(x.shape[0]):
            energy += x[i] * y[i]
            norm += step[i] * y[i]
        value = norm / energy
        scale = 1.0 / math.sqrt(norm)
        for i in range(x.shape[0]):
            x[i] = step[i] * scale
    return value


@njit(cache=True)
def barzilai_borwein(
    w: np.ndarray,
    dense_start: np.ndarray,
    dense_size: np.ndarray,
    dense: np.ndarray,
    dense_inverse: np.ndarray,
    x: np.ndarray,
    x_old: np.ndarray,
    Ax: np.ndarray,
    Ax_old: np.ndarray,
    zero: np.ndarray,
    step: np.ndarray,
) -> tuple[float, float]:
    """Both step sizes of papers/001 IV-C2 in the inner product of W^-1: (s.W^-1 s / s.z, s.z / z.W z), z = A s.

    ``dense_inverse`` holds the inverses of the blocks ``dense``, ``zero`` zeros; ``step`` is overwritten by W z. Both are 0
    where s is zero.
    """
    apply_steps(w, dense_start, dense_size, dense, 1.0, Ax, Ax_old, zero, step)
    length = 0.0
    energy = 0.0
    square = 0.0
    for i in range(x.shape[0]):
        d = x[i] - x_old[i]
        z = Ax[i] - Ax_old[i]
        length += d * d / w[i]
        energy += d * z
        square += z * step[i]
    for g in range(dense_start.shape[0]):
        base = dense_start[g]
        for r in range(dense_size[g]):
            d = x[base + r] - x_old[base + r]
            length -= d * d / w[base + r]
            for c in range(dense_size[g]):
                length += d * dense_inverse[g, r, c] * (x[base + c] - x_old[base + c])
    if not (energy > 0.0 and square > 0.0):
        return 0.0, 0.0
    return length / energy, energy / square


@njit(cache=True)
def contact_sweep(
    first: bool,
    strict: bool,
    node: np.ndarray,
    block: np.ndarray,
    first_virtual: int,
    phi: np.ndarray,
    friction: np.ndarray,
    coupled: np.ndarray,
    alpha: float,
    w: np.ndarray,
    regularization: float,
    lam: np.ndarray,
    x: np.ndarray,
    force: np.ndarray,
) -> float:
    """One Gauss-Seidel pass over the contacts of the surrogate problem with steps alpha w (Alg. 2).

    Returns the largest force change of a coupled contact relative to the largest force of one.

    x already holds v* and alpha W J^T lam of the contacts that share a node (``coupled``). Each of those removes its own share by
    the projection of eq. (26) on gamma = sum of the steps of its nodes, and converges by passes with lam kept per contact
    (design: a node in several contacts at once). The others are solved exactly, from zero, by the ``first`` pass and left out
    later; ``force`` gets their J^T lam. A regularisation Omega = ``regularization`` I adds to gamma (eq. 37).
    """
    change = 0.0
    largest = 0.0
    for m in range(node.shape[0]):
        shares = coupled[m]
        if not (first or shares):
            continue
        u0 = phi[m, 0]
        u1 = phi[m, 1]
        u2 = phi[m, 2]
        gamma = regularization
        for side in range(2):
            s = node[m, side]
            if s >= first_virtual:  # its block is the identity
                u0 += x[s]
                u1 += x[s + 1]
                u2 += x[s + 2]
                gamma += alpha * w[s]
            elif s >= 0:
                x0 = x[s]
                x1 = x[s + 1]
                x2 = x[s + 2]
                u0 += block[m, side, 0, 0] * x0 + block[m, side, 0, 1] * x1 + block[m, side, 0, 2] * x2
                u1 += block[m, side, 1, 0] * x0 + block[m, side, 1, 1] * x1 + block[m, side, 1, 2] * x2
                u2 += block[m, side, 2, 0] * x0 + block[m, side, 2, 1] * x1 + block[m, side, 2, 2] * x2
                gamma += alpha * w[s]
        if gamma == 0.0:  # an obstacle against an obstacle: no unknown is touched
            lam[m, 0] = lam[m, 1] = lam[m, 2] = 0.0
            continue
        d0 = d1 = d2 = 0.0
        if shares:
            d0 = lam[m, 0]
            d1 = lam[m, 1]
            d2 = lam[m, 2]
        stiffness = 1.0 / gamma
        t0 = d0 - (u0 + regularization * d0) * stiffness
        t1 = d1 - (u1 + regularization * d1) * stiffness
        t2 = d2 - (u2 + regularization * d2) * stiffness
        if strict:
            p0, p1, p2 = project_strict_elliptic(t0, t1, t2, friction[m, 0], friction[m, 1])
        else:
            p0, p1, p2 = project_cone_elliptic(t0, t1, t2, friction[m, 0], friction[m, 1])
        d0 = p0 - d0
        d1 = p1 - d1
        d2 = p2 - d2
        lam[m, 0] = p0
        lam[m, 1] = p1
        lam[m, 2] = p2
        for side in range(2):
            s = node[m, side]
            if s < 0:
                continue
            f0, f1, f2 = d0, d1, d2
            if s < first_virtual:
                f0 = block[m, side, 0, 0] * d0 + block[m, side, 1, 0] * d1 + block[m, side, 2, 0] * d2
                f1 = block[m, side, 0, 1] * d0 + block[m, side, 1, 1] * d1 + block[m, side, 2, 1] * d2
                f2 = block[m, side, 0, 2] * d0 + block[m, side, 1, 2] * d1 + block[m, side, 2, 2] * d2
            step = alpha * w[s]
            x[s] += step * f0
            x[s + 1] += step * f1
            x[s + 2] += step * f2
            if not shares:
                force[s] += f0
                force[s + 1] += f1
                force[s + 2] += f2
        if shares:
            change = max(change, abs(d0) + abs(d1) + abs(d2))
            largest = max(largest, abs(p0) + abs(p1) + abs(p2))
    return change / largest if largest > 0.0 else change


@njit(cache=True)
def add_force(
    node: np.ndarray,
    block: np.ndarray,
    first_virtual: int,
    m: int,
    f0: float,
    f1: float,
    f2: float,
    alpha: float,
    w: np.ndarray,
    weighted: bool,
    y: np.ndarray,
) -> None:
    """Update y += alpha W^weighted J_m^T f on the nodes of contact m."""
    for side in range(2):
        s = node[m, side]
        if s < 0:
            continue
        factor = alpha * w[s] if weighted else alpha
        if s >= first_virtual:
            y[s] += factor * f0
            y[s + 1] += factor * f1
            y[s + 2] += factor * f2
        else:
            y[s] += factor * (block[m, side, 0, 0] * f0 + block[m, side, 1, 0] * f1 + block[m, side, 2, 0] * f2)
            y[s + 1] += factor * (block[m, side, 0, 1] * f0 + block[m, side, 1, 1] * f1 + block[m, side, 2, 1] * f2)
            y[s + 2] += factor * (block[m, side, 0, 2] * f0 + block[m, side, 1, 2] * f1 + block[m, side, 2, 2] * f2)


@njit(cache=True)
def natural_residual(
    node: np.ndarray,
    block: np.ndarray,
    phi: np.ndarray,
    mean: np.ndarray,
    stretch: np.ndarray,
    strict: bool,
    regularization: float,
    rho: np.ndarray,
    lam: np.ndarray,
    x: np.ndarray,
    first_virtual: int,
    point_velocity: np.ndarray,
) -> float:
    """Natural-map residual, formula of ``metrics.contact_residual`` (without the De Saxce term for the proximal law).

    Virtual nodes count with ``point_velocity`` (nv, 3): the velocity of the point of their body for the residual of the
    original problem, or their own for that of the nodal one. ``mean`` (nc,) and ``stretch`` (nc, 2) are mubar and N of
    ``problem.isotropic``.
    """
    total = 0.0
    force = 0.0
    velocity = 0.0
    for m in range(node.shape[0]):
        u0 = phi[m, 0] + regularization * lam[m, 0]
        u1 = phi[m, 1] + regularization * lam[m, 1]
        u2 = phi[m, 2] + regularization * lam[m, 2]
        for side in range(2):
            s = node[m, side]
            if s >= first_virtual:
                q = (s - first_virtual) // 3
                u0 += point_velocity[q, 0]
                u1 += point_velocity[q, 1]
                u2 += point_velocity[q, 2]
            elif s >= 0:
                x0 = x[s]
                x1 = x[s + 1]
                x2 = x[s + 2]
                u0 += block[m, side, 0, 0] * x0 + block[m, side, 0, 1] * x1 + block[m, side, 0, 2] * x2
                u1 += block[m, side, 1, 0] * x0 + block[m, side, 1, 1] * x1 + block[m, side, 1, 2] * x2
                u2 += block[m, side, 2, 0] * x0 + block[m, side, 2, 1] * x1 + block[m, side, 2, 2] * x2
        f0 = lam[m, 0]
        f1 = lam[m, 1] / stretch[m, 0]
        f2 = lam[m, 2] / stretch[m, 1]
        u1 *= stretch[m, 0]
        u2 *= stretch[m, 1]
        if strict:
            u0 += mean[m] * math.sqrt(u1 * u1 + u2 * u2)
        u0 *= rho[m]
        u1 *= rho[m]
        u2 *= rho[m]
        p0, p1, p2 = project_cone(f0 - u0, f1 - u1, f2 - u2, mean[m])
        total += (f0 - p0) ** 2 + (f1 - p1) ** 2 + (f2 - p2) ** 2
        force += f0 * f0 + f1 * f1 + f2 * f2
        velocity += u0 * u0 + u1 * u1 + u2 * u2
    scale = max(force, velocity)
    return math.sqrt(total / scale) if scale > 0.0 else 0.0


@njit(cache=True)
def residual_sums(
    Av: np.ndarray, b: np.ndarray, force: np.ndarray, weight: np.ndarray, sums: np.ndarray
) -> tuple[float, float, float]:
    """Add up weight times the squares of A v - b - J^T lam, of A v and of J^T lam over the rows.

    ``sums`` (3, any) is overwritten. Each lane of ``sums`` adds every so many rows: one chain of additions would
    wait for each of its results.
    """
    lanes = sums.shape[1]
    sums[:] = 0.0
    r_sum, a_sum, f_sum = sums[0], sums[1], sums[2]
    for start in range(0, b.shape[0], lanes):
        stop = min(start + lanes, b.shape[0])
        A_part, b_part, f_part, d_part = Av[start:stop], b[start:stop], force[start:stop], weight[start:stop]
        for i in range(stop - start):
            r = A_part[i] - b_part[i] - f_part[i]
            r_sum[i] += r * r * d_part[i]
        for i in range(stop - start):
            a_sum[i] += A_part[i] * A_part[i] * d_part[i]
            f_sum[i] += f_part[i] * f_part[i] * d_part[i]
    r_total = a_total = f_total = 0.0
    for i in range(lanes):
        r_total += r_sum[i]
        a_total += a_sum[i]
        f_total += f_sum[i]
    return r_total, a_total, f_total


@njit(cache=True)
def distance(x: np.ndarray, y: np.ndarray, weight: np.ndarray, sums: np.ndarray) -> float:
    """Norm of x - y with weights, square root of the sum of weight (x - y)^2; ``sums`` (3, any) is overwritten."""
    lanes = sums.shape[1]
    total = sums[0]
    total[:] = 0.0
    for start in range(0, x.shape[0], lanes):
        stop = min(start + lanes, x.shape[0])
        x_part, y_part, d_part = x[start:stop], y[start:stop], weight[start:stop]
        for i in range(stop - start):
            d = x_part[i] - y_part[i]
            total[i] += d * d * d_part[i]
    square = 0.0
    for i in range(lanes):
        square += total[i]
    return math.sqrt(square)


@njit(cache=True)
def worst_balance(
    group_start: np.ndarray,
    group_stop: np.ndarray,
    group_stride: np.ndarray,
    group_force: np.ndarray,
    diagonal: np.ndarray,
    b: np.ndarray,
    Ax: np.ndarray,
    force: np.ndarray,
    whole: float,
) -> float:
    """Worst relative force balance of a body, as ``metrics.balance``.

    ``group_stride`` (groups,) are the rows from one node or link to the next, 0 for generalized groups; ``group_force``
    (groups,) is the least scale of a group of nodes or links,
    ``whole`` the squared scale of the dynamics residual of the whole problem.
    """
    worst = 0.0
    for g in range(group_start.shape[0]):
        total = 0.0
        scale = 0.0
        if group_stride[g] > 0:
            net = 0.0
            for c in range(3):
                r = 0.0
                f = 0.0
                for i in range(group_start[g] + c, group_stop[g], group_stride[g]):
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
def plain_residual(b: np.ndarray, Ax: np.ndarray, force: np.ndarray) -> float:
    """Dynamics residual in the plain 2-norm, as ``metrics.dynamics_residual_plain``; arrays as long as ``b`` count."""
    r_2 = 0.0
    a_2 = 0.0
    b_2 = 0.0
    f_2 = 0.0
    for i in range(b.shape[0]):
        r_2 += (Ax[i] - b[i] - force[i]) ** 2
        a_2 += Ax[i] * Ax[i]
        b_2 += b[i] * b[i]
        f_2 += force[i] * force[i]
    scale = max(a_2, max(b_2, f_2))
    return math.sqrt(r_2 / scale) if scale > 0.0 else 0.0


@njit(cache=True)
def force_scales(
    group_start: np.ndarray,
    group_stop: np.ndarray,
    group_stride: np.ndarray,
    b: np.ndarray,
    Ax: np.ndarray,
    scales: np.ndarray,
) -> None:
    """Fill the force (N) that would keep each group of nodes or links from accelerating, |sum of b - A x| at the warm start.

    It is weight and load where the warm start is the last velocity, so that a fast body is balanced as sharply as one at rest.
    1e-3 of |sum of b| and ``NOISE_FRACTION`` of the sum of |b| over all these groups keep it from zero where a body flies freely
    without gravity or rests on what holds it.
    """
    magnitudes = 0.0
    for g in range(group_start.shape[0]):
        if group_stride[g] > 0:
            for i in range(group_start[g], group_stop[g], group_stride[g]):
                magnitudes += abs(b[i]) + abs(b[i + 1]) + abs(b[i + 2])
    for g in range(group_start.shape[0]):
        total = 0.0
        b_total = 0.0
        for c in range(3):
            r = 0.0
            s = 0.0
            for i in range(group_start[g] + c, group_stop[g], max(group_stride[g], 3)):
                r += b[i] - Ax[i]
                s += b[i]
            total += r * r
            b_total += s * s
        scales[g] = max(math.sqrt(total), max(1e-3 * math.sqrt(b_total), NOISE_FRACTION * magnitudes))


@njit(cache=True)
def iterate(
    ptr: np.ndarray,
    col: np.ndarray,
    values: np.ndarray,
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
    dense_inverse: np.ndarray,
    node: np.ndarray,
    block: np.ndarray,
    phi: np.ndarray,
    friction: np.ndarray,
    mean: np.ndarray,
    stretch: np.ndarray,
    coupled: np.ndarray,
    regularization: float,
    rho_contact: np.ndarray,
    group_start: np.ndarray,
    group_stop: np.ndarray,
    group_stride: np.ndarray,
    group_of_row: np.ndarray,
    strict: bool,
    chebyshev: bool,
    adaptive: bool,
    safe_step: float,
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
    answer: np.ndarray,
    answer_lam: np.ndarray,
    work: np.ndarray,
    history: np.ndarray,
) -> tuple[int, int, int]:
    """Velocity fixed-point iteration with Chebyshev acceleration or Barzilai-Borwein steps (papers/001 Algs. 1-3, IV-C).

    Where no node is shared or virtual, the projection satisfies the law to rounding in every iteration (Prop. 4); its residual is
    then evaluated only in the first iteration and wherever it decides, and its last value stands in the history between.

    On entry ``answer`` and ``answer_lam`` hold the warm start; on return the un-extrapolated iterate v** and its force: the one
    that converged, else the best by the larger of its true residuals. Updates ``history`` (iterations, 3): dynamics residual,
    contact residual, step norm. Returns (iterations, status, iteration that is returned): status 0 converged, 1 stopped at the
    limit, 2 not finite.

    One product with A an iteration: A is applied to v** (so that the residual of the returned pair is exact and free), and
    A of the extrapolated iterate follows from the same linear combination. The norms of eq. (39) and of the step weigh each
    row by its diagonal of A, so that they do not depend on units.

    Safeguards: when the best residual has not fallen to ``PROGRESS`` of itself within ``patience`` iterations, or an adaptive
    iteration is ``RETREAT`` times worse than the best iterate, the acceleration restarts there; restarts for lack of progress
    also halve the rate of the multipliers' updates, and after ``MAX_RESTARTS`` of them the plain iteration with the step
    ``safe_step`` runs for the rest, halved each time it stalls for a quarter of the patience (the strict operator can make the
    plain iteration cycle where friction is large).
    """
    size = answer.shape[0]
    n_rows = 3 * (ptr.shape[0] - 1)
    nv = gain.shape[0]
    x, x_old, Ax, Ax_old = work[0], work[1], work[2], work[3]
    star, A_star, x_best, A_best = work[4], work[5], work[6], work[7]
    body_Av, force, b_now, zero = work[8], work[9], work[10], work[11]
    inverse_diagonal = np.empty(n_rows)
    nc = node.shape[0]
    lam, best_lam = np.empty((nc, 3)), np.empty((nc, 3))
    any_coupled = False
    for m in range(nc):
        any_coupled = any_coupled or coupled[m]
        for c in range(3):
            lam[m, c] = best_lam[m, c] = answer_lam[m, c]
    point_velocity = np.zeros((nv, 3))
    sums = np.empty((3, 256))

    for i in range(size):
        zero[i] = 0.0
        x[i] = x_old[i] = x_best[i] = answer[i]
        b_now[i] = b[i] if i < n_rows else 0.0
    for q in range(nv):
        for c in range(3):
            b_now[n_rows + 3 * q + c] = -multiplier[q, c]
            for e in range(vptr[q], vptr[q + 1]):
                b_now[vdof[e]] += vjac[e, c] * multiplier[q, c]
    apply_matrix(ptr, col, values, vptr, vdof, vjac, gain, x, Ax)
    for i in range(size):
        Ax_old[i] = A_best[i] = Ax[i]
    b2 = 0.0
    for i in range(n_rows):
        inverse_diagonal[i] = 1.0 / diagonal_bodies[i]
        b2 += b[i] * b[i] * inverse_diagonal[i]
    group_force = np.zeros(group_start.shape[0])
    free_force = np.zeros(group_start.shape[0])
    force_scales(group_start, group_stop, group_stride, b, Ax, free_force)

    alpha = safe_step
    safe_until = 0
    nu = 1.0
    radius = 0.0
    contact = 0.0
    since_start = 0
    step_norm_old = 0.0
    best = math.inf
    best_at = 0
    reference = math.inf
    window = 0
    restarts = 0
    last_update = 0
    for iteration in range(1, max_iterations + 1):
        # v* = v - W (A v - b), eq. (20); then v** = v* + W J^T lam, eq. (24), with lam by Alg. 2
        apply_steps(w, dense_start, dense_size, dense, alpha, b_now, Ax, x, star)
        if any_coupled:
            for m in range(nc):
                if coupled[m]:
                    add_force(node, block, n_rows, m, lam[m, 0], lam[m, 1], lam[m, 2], alpha, w, True, star)
        for i in range(size):
            force[i] = 0.0
        contact_sweep(True, strict, node, block, n_rows, phi, friction, coupled, alpha, w, regularization, lam, star, force)
        if any_coupled:
            for _ in range(local_sweeps):
                change = contact_sweep(
                    False, strict, node, block, n_rows, phi, friction, coupled, alpha, w, regularization, lam, star, force
                )
                if change < 0.1 * tolerance:
                    break

        # true residuals of the pair (v**, lam), on the problem without virtual nodes: they hand their force to the body (eq. 18)
        apply_blocks(ptr, col, values, star, A_star)
        Av = A_star
        if nv > 0:
            for i in range(n_rows):
                body_Av[i] = A_star[i]
            Av = body_Av
            add_virtual_nodes(n_rows, vptr, vdof, vjac, gain, star, A_star)
        if any_coupled:
            for m in range(nc):
                if coupled[m]:
                    add_force(node, block, n_rows, m, lam[m, 0], lam[m, 1], lam[m, 2], 1.0, w, False, force)
        mismatch = 0.0
        total = 0.0
        for q in range(nv):
            row = n_rows + 3 * q
            for c in range(3):
                carried = A_star[row + c]  # kv (v_v - J_v v), what the node carries beyond its multiplier
                mismatch += carried * carried
                total += multiplier[q, c] ** 2 + force[row + c] ** 2
                point_velocity[q, c] = star[row + c]
                if exact_gain:
                    point_velocity[q, c] -= carried / gain[q]
            for e in range(vptr[q], vptr[q + 1]):
                pushed = vjac[e, 0] * force[row] + vjac[e, 1] * force[row + 1] + vjac[e, 2] * force[row + 2]
                force[vdof[e]] += pushed
        mismatch = math.sqrt(mismatch / total) if exact_gain and total > 0.0 else 0.0
        r_2, a_2, f_2 = residual_sums(Av, b, force, inverse_diagonal, sums)
        scale = max(b2, max(a_2, f_2))
        dynamics = math.sqrt(r_2 / scale) if scale > 0.0 else 0.0
        if any_coupled or nv > 0 or iteration == 1 or dynamics <= tolerance or iteration == max_iterations:
            contact = natural_residual(
                node, block, phi, mean, stretch, strict, regularization, rho_contact, lam, star, n_rows, point_velocity
            )

        # extrapolation, eq. (38) with the under-relaxation of Wang 2015, and A of it by linearity
        since_start += 1
        if not chebyshev or since_start < delay or restarts > MAX_RESTARTS:
            nu = 1.0
        elif since_start == delay:
            nu = 2.0 / (2.0 - radius * radius)
        else:
            nu = 4.0 / (4.0 - radius * radius * nu)
        for i in range(size):
            x_old[i] = nu * (relaxation * (star[i] - x[i]) + x[i] - x_old[i]) + x_old[i]
        for i in range(size):
            Ax_old[i] = nu * (relaxation * (A_star[i] - Ax[i]) + Ax[i] - Ax_old[i]) + Ax_old[i]
        x, x_old, Ax, Ax_old = x_old, x, Ax_old, Ax
        step_norm = distance(x, x_old, diagonal, sums)
        history[iteration - 1, 0] = dynamics
        history[iteration - 1, 1] = contact
        history[iteration - 1, 2] = step_norm
        finite = math.isfinite(b2 + r_2 + a_2 + f_2) and math.isfinite(contact) and math.isfinite(step_norm)
        if step_norm_old > 0.0:
            radius = min(step_norm / step_norm_old, 1.0)  # eq. (39)
        step_norm_old = step_norm

        done = finite and dynamics <= tolerance and contact <= tolerance
        if done:
            group_force[:] = 0.0
            for m in range(nc):
                magnitude = math.sqrt(lam[m, 0] ** 2 + lam[m, 1] ** 2 + lam[m, 2] ** 2)
                for side in range(2):
                    if 0 <= node[m, side] < group_of_row.shape[0]:
                        group_force[group_of_row[node[m, side]]] += magnitude
            for g in range(group_force.shape[0]):
                group_force[g] = max(NET_FRACTION * group_force[g], free_force[g])
            imbalance = worst_balance(group_start, group_stop, group_stride, group_force, diagonal_bodies, b, Av, force, scale)
            done = imbalance <= balance_factor * tolerance and plain_residual(b, Av, force) <= tolerance
        merit = max(dynamics, contact)
        if done or (finite and merit < best):
            best = merit
            best_at = iteration
            star, A_star, x_best, A_best = x_best, A_best, star, A_star
            for m in range(nc):
                for c in range(3):
                    best_lam[m, c] = lam[m, c]
        if done or not finite or iteration == max_iterations:
            for i in range(size):
                answer[i] = x_best[i]
            for m in range(nc):
                for c in range(3):
                    answer_lam[m, c] = best_lam[m, c]
            return iteration, 0 if done else (1 if finite else 2), best_at

        if exact_gain and iteration - last_update >= update_interval and dynamics < update_ratio * mismatch:
            # augmented-Lagrangian update (papers/000 eq. 11): the multiplier takes over what the virtual nodes carry now
            last_update = iteration
            current = A_best if best_at == iteration else A_star
            for q in range(nv):
                for c in range(3):
                    change = current[n_rows + 3 * q + c]
                    multiplier[q, c] += change
                    b_now[n_rows + 3 * q + c] -= change
                    for e in range(vptr[q], vptr[q + 1]):
                        b_now[vdof[e]] += vjac[e, c] * change
        if merit <= tolerance:  # only the balance of the bodies or the plain norm is missing
            window = iteration
        stalled = iteration - window >= (patience if restarts <= MAX_RESTARTS else patience // 4)
        if stalled and best < PROGRESS * reference:
            stalled = False
            reference = best
            window = iteration
        stalled = stalled and restarts <= MAX_RESTARTS + MAX_HALVINGS
        if stalled or (adaptive and merit > RETREAT * best):
            if stalled:
                restarts += 1
                update_interval *= 2
                if restarts > MAX_RESTARTS + 1:
                    safe_step *= 0.5
            safe_until = iteration + SAFE_STEPS
            window = iteration
            reference = best
            since_start = 0
            nu = 1.0
            for i in range(size):
                x[i] = x_old[i] = x_best[i]
                Ax[i] = Ax_old[i] = A_best[i]
            for m in range(nc):
                for c in range(3):
                    lam[m, c] = best_lam[m, c]
            step_norm_old = 0.0
            radius = 0.0
        if restarts > MAX_RESTARTS:
            alpha = safe_step
        elif adaptive:
            one, two = barzilai_borwein(w, dense_start, dense_size, dense, dense_inverse, x, x_old, Ax, Ax_old, zero, force)
            alpha = one if iteration % 2 else two
            if alpha <= 0.0 or iteration < safe_until:
                alpha = safe_step
    return 0, 1, 0

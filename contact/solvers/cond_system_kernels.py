"""Compiled kernels of COND on A of eq. (15) and on the step-size matrix W; see ``cond_groups`` for the arrays."""

from __future__ import annotations

import math

import numpy as np

from contact.compiled import njit
from contact.solvers.block_rows import apply_blocks
from contact.solvers.cond_groups import Matrix, Steps


@njit(cache=True, _nrt=False)
def scatter_entries(source: np.ndarray, places: np.ndarray, values: np.ndarray) -> None:
    """Put each number of ``source`` in its place in ``values``; the others stay."""
    for k in range(places.shape[0]):
        values[np.uint64(places[k])] = source[k]  # unsigned: see jacobian_kernels


@njit(cache=True, inner=True, _nrt=False)
def add_virtual_nodes(matrix: Matrix, x: np.ndarray, y: np.ndarray) -> None:
    """Update y += (A of eq. 15 - A of the bodies) x: fill the virtual rows, add kv J_v^T (J_v v - v_v) to those of the bodies."""
    vptr, vdof, vjac, gain = matrix.vptr, matrix.vdof, matrix.vjac, matrix.gain
    for q in range(gain.shape[0]):
        row = matrix.first_virtual + 3 * q
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


@njit(cache=True, inner=True, _nrt=False)
def apply_matrix(matrix: Matrix, x: np.ndarray, y: np.ndarray) -> None:
    """Update y = A x of eq. (15): block rows, then the virtual nodes without assembling them."""
    apply_blocks(matrix.ptr, matrix.col, matrix.values, x, y)
    add_virtual_nodes(matrix, x, y)


@njit(cache=True, _nrt=False)
def extended_diagonal(matrix: Matrix, of_bodies: np.ndarray, diagonal: np.ndarray) -> None:
    """Fill the diagonal of A of eq. (15) from that of A of the bodies."""
    vptr, vdof, vjac, gain = matrix.vptr, matrix.vdof, matrix.vjac, matrix.gain
    for i in range(matrix.first_virtual):
        diagonal[i] = of_bodies[i]
    for q in range(gain.shape[0]):
        for c in range(3):
            diagonal[matrix.first_virtual + 3 * q + c] = gain[q]
        for e in range(vptr[q], vptr[q + 1]):
            for c in range(3):
                diagonal[vdof[e]] += gain[q] * vjac[e, c] * vjac[e, c]


@njit(cache=True, _nrt=False)
def node_steps(matrix: Matrix, first: int, last: int, w: np.ndarray) -> None:
    """Fill w by Frobenius minimisation (papers/001 IV-C1), equal within a node, and by 1/kv on virtual nodes.

    On entry w holds the diagonal of A; block rows first..last-1 are filled.

    Departure from the paper: the two nodes of a D-contact keep steps of their own; Prop. 3 needs equal steps only within
    a node. A virtual node takes 1/kv, which with the dense step of its body keeps the spectrum of W A below two.
    """
    ptr, values, gain, virtual_row = matrix.ptr, matrix.values, matrix.gain, matrix.first_virtual
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


@njit(cache=True, _nrt=False)
def shrink_steps(matrix: Matrix, group_of: np.ndarray, group_is_nodes: np.ndarray, w: np.ndarray) -> None:
    """Shrink the steps of nodes that carry virtual nodes (points inside elements).

    1/w grows by the absolute row sums of kv J_v^T J_v.
    Equal within a node: each of its rows adds to all three.
    """
    vptr, vdof, vjac, gain = matrix.vptr, matrix.vdof, matrix.vjac, matrix.gain
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


@njit(cache=True, _nrt=False)
def add_gain_blocks(matrix: Matrix, group_of: np.ndarray, group_start: np.ndarray, dense: np.ndarray) -> None:
    """Add kv J_v^T J_v (eq. 15) of all virtual nodes to the blocks ``dense`` (groups, size, size) of generalized groups."""
    vptr, vdof, vjac, gain = matrix.vptr, matrix.vdof, matrix.vjac, matrix.gain
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


@njit(cache=True, _nrt=False)
def jacobi_steps(matrix: Matrix, w: np.ndarray) -> None:
    """Fill w with 1 / (mean diagonal of A) of each node and 1/kv of each virtual node; on entry w holds the diagonal of A."""
    virtual_row, gain = matrix.first_virtual, matrix.gain
    for i in range(0, virtual_row, 3):
        step = 3.0 / (w[i] + w[i + 1] + w[i + 2])
        w[i] = w[i + 1] = w[i + 2] = step
    for q in range(gain.shape[0]):
        for c in range(3):
            w[virtual_row + 3 * q + c] = 1.0 / gain[q]


@njit(cache=True, inner=True, _nrt=False)
def apply_steps(steps: Steps, alpha: float, b: np.ndarray, Ax: np.ndarray, x: np.ndarray, star: np.ndarray) -> None:
    """Update star = x + alpha W (b - A x), eq. (20).

    W is diagonal on nodes and a dense block ``dense[g, :size, :size]`` on each generalized group.
    """
    w, dense_start, dense_size, dense = steps.w, steps.start, steps.size, steps.dense
    for i in range(x.shape[0]):
        star[i] = x[i] + alpha * w[i] * (b[i] - Ax[i])
    for g in range(dense_start.shape[0]):
        base = dense_start[g]
        for r in range(dense_size[g]):
            total = 0.0
            for c in range(dense_size[g]):
                total += dense[g, r, c] * (b[base + c] - Ax[base + c])
            star[base + r] = x[base + r] + alpha * total


@njit(cache=True, _nrt=False)
def largest_eigenvalue(matrix: Matrix, steps: Steps, x: np.ndarray, iterations: int, scratch: np.ndarray) -> float:
    """Power iteration on W A from x (updated in place): estimate of its largest eigenvalue from below.

    ``scratch`` (3, size) is overwritten.
    """
    y, step, zero = scratch[0], scratch[1], scratch[2]
    for i in range(x.shape[0]):
        zero[i] = 0.0
    value = 0.0
    for _ in range(iterations):
        apply_matrix(matrix, x, y)
        apply_steps(steps, 1.0, y, zero, zero, step)
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


@njit(cache=True, inner=True, _nrt=False)
def barzilai_borwein(
    steps: Steps, x: np.ndarray, x_old: np.ndarray, Ax: np.ndarray, Ax_old: np.ndarray, zero: np.ndarray, step: np.ndarray
) -> tuple[float, float]:
    """Both step sizes of papers/001 IV-C2 in the inner product of W^-1: (s.W^-1 s / s.z, s.z / z.W z), z = A s.

    ``zero`` holds zeros; ``step`` is overwritten by W z. Both are 0 where s is zero.
    """
    w, dense_start, dense_size, dense_inverse = steps.w, steps.start, steps.size, steps.inverse
    apply_steps(steps, 1.0, Ax, Ax_old, zero, step)
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

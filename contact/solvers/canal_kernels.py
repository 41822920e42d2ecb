"""Compiled kernels of CANAL: its Newton iteration on a small dense problem, and square roots of gains for a large one."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from contact.compiled import njit
from contact.solvers.augmented_kernels import exact_step, project_with_slope, trial_forces


class DenseProblem(NamedTuple):
    """A problem without sparse matrices.

    ``A`` (n, n), N s/m; ``J`` (3nc, n); ``b`` and its ``weight`` in norms, (n,); ``phi`` (nc, 3), m/s; ``friction`` (nc,). The
    columns of contact m that are not zero lie between ``start[k]`` and ``stop[k]`` for k from ``ptr[m]`` to ``ptr[m + 1]``.
    """

    A: np.ndarray
    J: np.ndarray
    b: np.ndarray
    weight: np.ndarray
    phi: np.ndarray
    friction: np.ndarray
    ptr: np.ndarray
    start: np.ndarray
    stop: np.ndarray


class DenseWork(NamedTuple):
    """Arrays of :func:`newton_steps` that need not be kept: of size (nc, 3), (nc, 3, 3), (n,) and (n, n)."""

    u: np.ndarray
    trial: np.ndarray
    force: np.ndarray
    moved: np.ndarray
    gain: np.ndarray
    Av: np.ndarray
    pushed: np.ndarray
    r: np.ndarray
    d: np.ndarray
    product: np.ndarray
    H: np.ndarray


@njit(cache=True)
def find_runs(
    columns_ptr: np.ndarray, col: np.ndarray, marks: np.ndarray, ptr: np.ndarray, start: np.ndarray, stop: np.ndarray
) -> None:
    """Fill the runs of columns without a gap of each contact; ``marks`` (n,) int64 holds no m on entry, e.g. -1 everywhere."""
    total = 0
    ptr[0] = 0
    for m in range(columns_ptr.shape[0] - 1):
        first, last = marks.shape[0], 0
        for k in range(columns_ptr[m], columns_ptr[m + 1]):
            marks[col[k]] = m
            first, last = min(first, col[k]), max(last, col[k] + 1)
        j = first
        while j < last:
            start[total] = j
            while j < last and marks[j] == m:
                j += 1
            stop[total] = j
            total += 1
            while j < last and marks[j] != m:
                j += 1
        ptr[m + 1] = total


@njit(cache=True, inner=True)
def move(dense: DenseProblem, v: np.ndarray, out: np.ndarray) -> None:
    """Fill out (nc, 3) = J v."""
    J = dense.J
    for m in range(out.shape[0]):
        x_0 = x_1 = x_2 = 0.0
        for k in range(dense.ptr[m], dense.ptr[m + 1]):
            for j in range(dense.start[k], dense.stop[k]):
                x_0 += J[3 * m, j] * v[j]
                x_1 += J[3 * m + 1, j] * v[j]
                x_2 += J[3 * m + 2, j] * v[j]
        out[m, 0], out[m, 1], out[m, 2] = x_0, x_1, x_2


@njit(cache=True, inner=True)
def push(dense: DenseProblem, force: np.ndarray, out: np.ndarray) -> None:
    """Fill out (n,) = J^T force."""
    J = dense.J
    out[:] = 0.0
    for m in range(force.shape[0]):
        x_0, x_1, x_2 = force[m, 0], force[m, 1], force[m, 2]
        if x_0 != 0.0 or x_1 != 0.0 or x_2 != 0.0:
            for k in range(dense.ptr[m], dense.ptr[m + 1]):
                for j in range(dense.start[k], dense.stop[k]):
                    out[j] += x_0 * J[3 * m, j] + x_1 * J[3 * m + 1, j] + x_2 * J[3 * m + 2, j]


@njit(cache=True, inner=True)
def multiply(A: np.ndarray, v: np.ndarray, out: np.ndarray) -> None:
    """Fill out = A v of a symmetric A."""
    out[:] = 0.0
    for i in range(v.shape[0]):
        for j in range(v.shape[0]):
            out[j] += v[i] * A[i, j]


@njit(cache=True, inner=True)
def assemble(dense: DenseProblem, gain: np.ndarray, H: np.ndarray) -> None:
    """Fill the upper triangle of H = A + J^T gain J, gain (nc, 3, 3) symmetric."""
    J, start, stop = dense.J, dense.start, dense.stop
    H[:] = dense.A
    for m in range(gain.shape[0]):
        G = gain[m]
        if G[0, 0] == 0.0 and G[1, 1] == 0.0 and G[2, 2] == 0.0:
            continue
        J_0, J_1, J_2 = J[3 * m], J[3 * m + 1], J[3 * m + 2]
        for k in range(dense.ptr[m], dense.ptr[m + 1]):
            for i in range(start[k], stop[k]):
                x_0 = G[0, 0] * J_0[i] + G[0, 1] * J_1[i] + G[0, 2] * J_2[i]
                x_1 = G[1, 0] * J_0[i] + G[1, 1] * J_1[i] + G[1, 2] * J_2[i]
                x_2 = G[2, 0] * J_0[i] + G[2, 1] * J_1[i] + G[2, 2] * J_2[i]
                row = H[i]
                for other in range(k, dense.ptr[m + 1]):
                    for j in range(max(start[other], i), stop[other]):
                        row[j] += x_0 * J_0[j] + x_1 * J_1[j] + x_2 * J_2[j]


@njit(cache=True, inner=True)
def cholesky(H: np.ndarray) -> bool:
    """Factorize H = U^T U in place of its upper triangle, which alone is read; False where H is not positive definite."""
    n = H.shape[0]
    for k in range(n):
        pivot = H[k, k]
        if not pivot > 0.0:
            return False
        root = 1.0 / math.sqrt(pivot)
        upper = H[k]
        for j in range(k, n):
            upper[j] *= root
        for i in range(k + 1, n):
            factor, row = upper[i], H[i]
            if factor != 0.0:
                for j in range(i, n):
                    row[j] -= factor * upper[j]
    return True


@njit(cache=True, inner=True)
def substitute(U: np.ndarray, x: np.ndarray) -> None:
    """Solve U^T U x = right in place of x."""
    n = x.shape[0]
    for k in range(n):
        x[k] /= U[k, k]
        for j in range(k + 1, n):
            x[j] -= U[k, j] * x[k]
    for k in range(n - 1, -1, -1):
        total = x[k]
        for j in range(k + 1, n):
            total -= U[k, j] * x[j]
        x[k] = total / U[k, k]


@njit(cache=True, inner=True)
def weighted(weight: np.ndarray, x: np.ndarray) -> float:
    """Norm of weight * x."""
    total = 0.0
    for i in range(x.shape[0]):
        total += (weight[i] * x[i]) ** 2
    return math.sqrt(total)


@njit(cache=True)
def newton_steps(
    dense: DenseProblem,
    work: DenseWork,
    given: tuple[np.ndarray, np.ndarray, np.ndarray],
    v: np.ndarray,
    state: np.ndarray,
    rules: tuple[float, float, float, int],
) -> tuple[int, int, float]:
    """Newton steps with exact line search on a surrogate: what ``ConvexNewton.solve`` does, in one go.

    Parameters
    ----------
    dense, work
        The problem and arrays to work in.
    given : tuple
        Forces lam (nc, 3), N, slip speeds (nc,), m/s, and penalties (nc,), N s/m, of the surrogate.
    v : ndarray, (n,), m/s
        Start, replaced by the answer.
    state : ndarray, (nc,), int8
        Filled with the states of the contacts.
    rules : tuple
        Residual to reach, that below which rounding may end it, part of the derivative that a line search may leave, most steps.

    Returns
    -------
    steps, evaluations, residual
        As in ``InnerFound``.
    """
    lam, slip, beta = given
    aim, rounding, accuracy, most = rules
    u, trial, force, Av, r, d = work.u, work.trial, work.force, work.Av, work.r, work.d
    mu, b, weight = dense.friction, dense.b, dense.weight
    multiply(dense.A, v, Av)
    b_size, last, steps, evaluations = weighted(weight, b), math.inf, 0, 0
    while True:
        move(dense, v, u)
        u += dense.phi
        trial_forces(lam, u, slip, mu, beta, trial)
        project_with_slope(trial, mu, beta, force, work.gain, state)
        push(dense, force, work.pushed)
        for i in range(r.shape[0]):
            r[i] = Av[i] - b[i] - work.pushed[i]
        scale = max(b_size, weighted(weight, Av), weighted(weight, work.pushed))
        size = weighted(weight, r) / scale if scale > 0.0 else 0.0
        if not math.isfinite(size):
            return steps, evaluations, math.inf
        if steps >= most or size <= aim or (size <= rounding and size > 0.5 * last):
            return steps, evaluations, size
        last = size
        assemble(dense, work.gain, work.H)
        for i in range(r.shape[0]):
            d[i] = -r[i]
        if not cholesky(work.H):
            return steps, evaluations, math.inf
        substitute(work.H, d)
        multiply(dense.A, d, work.product)
        move(dense, d, work.moved)
        start = energy = 0.0
        for i in range(r.shape[0]):
            start += d[i] * (Av[i] - b[i])
            energy += d[i] * work.product[i]
        alpha, count = exact_step(trial, work.moved, mu, beta, start, energy, accuracy)
        for i in range(r.shape[0]):
            v[i] += alpha * d[i]
            Av[i] += alpha * work.product[i]
        steps, evaluations = steps + 1, evaluations + count


@njit(cache=True)
def root_rows(gain: np.ndarray, J: np.ndarray, rows: np.ndarray) -> int:
    """Fill rows R of R^T R = J^T gain J for gains (nc, 3, 3), symmetric without negative eigenvalues; return how many.

    Of each gain the factors F of F^T F = gain by pivots on the diagonal are taken; those of a contact that slides are two. J is
    (3nc, n), rows (3nc, n).
    """
    total = 0
    left = np.empty((3, 3))
    for m in range(gain.shape[0]):
        left[:] = gain[m]
        least = 1e-14 * (left[0, 0] + left[1, 1] + left[2, 2])
        for _ in range(3):
            p = 0
            for c in range(1, 3):
                if left[c, c] > left[p, p]:
                    p = c
            if not left[p, p] > least:
                break
            root = math.sqrt(left[p, p])
            f = left[p, 0] / root, left[p, 1] / root, left[p, 2] / root
            for j in range(J.shape[1]):
                rows[total, j] = f[0] * J[3 * m, j] + f[1] * J[3 * m + 1, j] + f[2] * J[3 * m + 2, j]
            total += 1
            for c in range(3):
                for e in range(3):
                    left[c, e] -= f[c] * f[e]
            for c in range(3):
                left[p, c] = left[c, p] = 0.0
    return total

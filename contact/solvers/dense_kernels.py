"""Compiled kernels on the dense Delassus operator: exact local solves, residuals, Newton matrices.

All of them work on ``u = W lam + q`` (papers/001 eq. 3) with W given *transposed*: row j of ``WT`` is what a change of component
j does to all contact velocities, so one update runs over contiguous memory, also where W is not symmetric.
"""

from __future__ import annotations

import math

import numpy as np

from contact.compiled import njit
from contact.metrics_kernels import TINY, larger, law_parts, natural_map, relative

#: Relative size of what is added to the diagonal of a 3x3 block before it is inverted, so that an empty row stays harmless.
_TINY_DIAGONAL = 1e-14
#: A block is singular whose determinant is at most this part of the cube of its trace: its forces are not unique.
_SINGULAR = 1e-12
#: Shift of the proximal points of such a block, relative to its trace, and how many there are; the velocities that they may lack,
#: relative to those of the contact, with which one ends them, and with which the last will do.
_SHIFT, _POINTS, _STILL, _NEARLY = 1e-5, 6, 1e-15, 1e-9
#: Rounding of velocities under a force, by that shift.
_ROUNDING = 1e-16 / _SHIFT
#: A contact is immovable along its normal when W_nn is at most this part of the trace of its block.
IMMOVABLE = 1e-12
#: A contact is open for a Newton step whose trial force is at most this part of the largest.
STANDING = 1e-12


@njit(cache=True, inner=True)
def solve_block(a: np.ndarray, i: int, s: float, x: float, y: float, z: float) -> tuple[float, float, float]:
    """Solve (a[i] + diag(0, s, s)) r = (x, y, z) by cofactors."""
    a00, a01, a02 = a[i, 0, 0], a[i, 0, 1], a[i, 0, 2]
    a10, a11, a12 = a[i, 1, 0], a[i, 1, 1] + s, a[i, 1, 2]
    a20, a21, a22 = a[i, 2, 0], a[i, 2, 1], a[i, 2, 2] + s
    c00, c01, c02 = a11 * a22 - a12 * a21, a12 * a20 - a10 * a22, a10 * a21 - a11 * a20
    determinant, unit = a00 * c00 + a01 * c01 + a02 * c02, 1.0
    if not (determinant != 0.0 and math.isfinite(determinant)):  # products of three leave the range of numbers
        unit = 1.0 / max(abs(a00), abs(a11), abs(a22))
        a00, a01, a02, a10, a11, a12 = a00 * unit, a01 * unit, a02 * unit, a10 * unit, a11 * unit, a12 * unit
        a20, a21, a22 = a20 * unit, a21 * unit, a22 * unit
        c00, c01, c02 = a11 * a22 - a12 * a21, a12 * a20 - a10 * a22, a10 * a21 - a11 * a20
        determinant = a00 * c00 + a01 * c01 + a02 * c02
    inverse = 1.0 / determinant if determinant != 0.0 else math.inf
    x, y, z = x * unit, y * unit, z * unit
    return (
        inverse * (c00 * x + (a02 * a21 - a01 * a22) * y + (a01 * a12 - a02 * a11) * z),
        inverse * (c01 * x + (a00 * a22 - a02 * a20) * y + (a02 * a10 - a00 * a12) * z),
        inverse * (c02 * x + (a01 * a20 - a00 * a21) * y + (a00 * a11 - a01 * a10) * z),
    )


@njit(cache=True, inner=True)
def solve_shifted(a: np.ndarray, i: int, s: float, x: float, y: float, z: float, shift: float) -> tuple[float, float, float]:
    """Solve (a[i] + diag(shift, s, s)) r = (x, y, z): by cofactors without a shift, else by elimination."""
    if shift == 0.0:
        return solve_block(a, i, s, x, y, z)
    diagonal, right = (a[i, 0, 0] + shift, a[i, 1, 1] + s, a[i, 2, 2] + s), (x, y, z)
    p = 0
    if diagonal[1] > diagonal[p]:
        p = 1
    if diagonal[2] > diagonal[p]:
        p = 2
    q, t = (p + 1) % 3, (p + 2) % 3
    if diagonal[t] - a[i, t, p] * a[i, p, t] / diagonal[p] > diagonal[q] - a[i, q, p] * a[i, p, q] / diagonal[p]:
        q, t = t, q
    f_q, f_t = a[i, q, p] / diagonal[p], a[i, t, p] / diagonal[p]
    m_qq, m_qt = diagonal[q] - f_q * a[i, p, q], a[i, q, t] - f_q * a[i, p, t]
    m_tq, m_tt = a[i, t, q] - f_t * a[i, p, q], diagonal[t] - f_t * a[i, p, t]
    b_q, b_t, f = right[q] - f_q * right[p], right[t] - f_t * right[p], m_tq / m_qq
    r_t = (b_t - f * b_q) / (m_tt - f * m_qt)
    r_q = (b_q - m_qt * r_t) / m_qq
    r_p = (right[p] - a[i, p, q] * r_q - a[i, p, t] * r_t) / diagonal[p]
    if p == 0:
        return (r_p, r_q, r_t) if q == 1 else (r_p, r_t, r_q)
    if p == 1:
        return (r_q, r_p, r_t) if q == 0 else (r_t, r_p, r_q)
    return (r_q, r_t, r_p) if q == 0 else (r_t, r_q, r_p)


@njit(cache=True, inner=True)
def is_singular(a: np.ndarray, i: int) -> bool:
    """Whether a[i] is so near a block of lower rank that cofactors of it are mostly rounding."""
    trace = abs(a[i, 0, 0]) + abs(a[i, 1, 1]) + abs(a[i, 2, 2])
    first = a[i, 1, 1] * a[i, 2, 2] - a[i, 1, 2] * a[i, 2, 1]
    second = a[i, 1, 2] * a[i, 2, 0] - a[i, 1, 0] * a[i, 2, 2]
    third = a[i, 1, 0] * a[i, 2, 1] - a[i, 1, 1] * a[i, 2, 0]
    return abs(a[i, 0, 0] * first + a[i, 0, 1] * second + a[i, 0, 2] * third) <= _SINGULAR * trace**3


@njit(cache=True, inner=True)
def solve_local(a: np.ndarray, i: int, q_n: float, q_0: float, q_1: float, mu: float) -> tuple[float, float, float]:
    """Force of one contact alone: u = a[i] lam + q under the Signorini-Coulomb law, to rounding.

    Open when q_n >= 0; else by :func:`solve_closed`. What a singular block presses, as that of a link with one or two ways to
    go, is the limit of proximal points from no force: of many forces with the same velocity one that is hardly larger than need
    be. Where they do not get there, cofactors have the last word, unless their rounding is more than what the points lack.

    Parameters
    ----------
    a : ndarray, (k, 3, 3), m/(N s)
        Diagonal blocks of W, ``_TINY_DIAGONAL`` added.
    i : int
        Contact.
    q_n, q_0, q_1 : float, m/s
        Velocity of the contact without its own force.
    mu : float
        Coulomb coefficient.
    """
    if q_n >= 0.0:
        return 0.0, 0.0, 0.0
    if mu == 0.0:
        return -q_n / a[i, 0, 0], 0.0, 0.0
    if is_singular(a, i):
        shift = _SHIFT * (a[i, 0, 0] + a[i, 1, 1] + a[i, 2, 2])
        speed, lacks = max(-q_n, max(abs(q_0), abs(q_1))), math.inf
        r_n, r_0, r_1 = 0.0, 0.0, 0.0
        for _ in range(_POINTS):
            b_n, b_0, b_1 = r_n, r_0, r_1
            r_n, r_0, r_1 = solve_closed(a, i, q_n - shift * b_n, q_0 - shift * b_0, q_1 - shift * b_1, mu, shift)
            lacks = shift * max(abs(r_n - b_n), max(abs(r_0 - b_0), abs(r_1 - b_1)))
            if lacks <= _STILL * speed:
                break
        if lacks > _NEARLY * speed:
            f_n, f_0, f_1 = solve_closed(a, i, q_n, q_0, q_1, mu, 0.0)
            rounding = _ROUNDING * shift * max(f_n, max(abs(f_0), abs(f_1)))
            u_n = a[i, 0, 0] * f_n + a[i, 0, 1] * f_0 + a[i, 0, 2] * f_1 + q_n
            if f_n > 0.0 and max(rounding, abs(u_n)) < lacks:  # neither lost by cancellation nor without bound
                return f_n, f_0, f_1
        return r_n, r_0, r_1
    return solve_closed(a, i, q_n, q_0, q_1, mu, 0.0)


@njit(cache=True, inner=True)
def solve_closed(
    a: np.ndarray, i: int, q_n: float, q_0: float, q_1: float, mu: float, shift: float
) -> tuple[float, float, float]:
    """Force of a contact that approaches, q_n < 0, by a[i] with a shift of its diagonal; else as :func:`solve_local`.

    Sticking when the force for u = 0 lies in the cone; else sliding with u_t = -s lam_t, where s > 0 is the
    root of |lam_t(s)| - mu lam_n(s), lam(s) = -(a + diag(0, s, s))^-1 q, found by Newton steps inside a bracket. The signed form
    has a root also where the sticking force pulls.
    """
    r_n, r_0, r_1 = solve_shifted(a, i, shift, -q_n, -q_0, -q_1, shift)
    if math.sqrt(r_0 * r_0 + r_1 * r_1) <= mu * r_n:
        return r_n, r_0, r_1
    low, high = shift, a[i, 1, 1] + a[i, 2, 2] + a[i, 0, 0]
    for _ in range(200):
        r_n, r_0, r_1 = solve_shifted(a, i, high, -q_n, -q_0, -q_1, shift)
        if math.sqrt(r_0 * r_0 + r_1 * r_1) < mu * r_n:
            break
        low = high
        high *= 4.0
    s = 0.5 * (low + high)
    for _ in range(100):
        r_n, r_0, r_1 = solve_shifted(a, i, s, -q_n, -q_0, -q_1, shift)
        length = math.sqrt(r_0 * r_0 + r_1 * r_1)
        value = length - mu * r_n
        if value > 0.0:
            low = s
        else:
            high = s
        if abs(value) <= 1e-15 * length or high - low <= 1e-15 * high:
            break
        d_n, d_0, d_1 = solve_shifted(a, i, s, 0.0, -r_0, -r_1, shift)
        slope = (r_0 * d_0 + r_1 * d_1) / length - mu * d_n if length > 0.0 else 0.0
        step = s - value / slope if slope != 0.0 else low
        s = step if low < step < high else 0.5 * (low + high)
    # exactly on the cone, so that what is left of the root finding is in the velocity only
    length = math.sqrt(r_0 * r_0 + r_1 * r_1)
    if r_n <= 0.0 or length == 0.0:
        return max(r_n, 0.0), 0.0, 0.0
    scale = mu * r_n / length
    return r_n, r_0 * scale, r_1 * scale


@njit(cache=True)
def diagonal_blocks(WT: np.ndarray, a: np.ndarray) -> None:
    """Fill a, (k, 3, 3), with the diagonal blocks of W and a trace of the identity."""
    for i in range(a.shape[0]):
        small = _TINY_DIAGONAL * (WT[3 * i, 3 * i] + WT[3 * i + 1, 3 * i + 1] + WT[3 * i + 2, 3 * i + 2])
        for r in range(3):
            for c in range(3):
                a[i, r, c] = WT[3 * i + c, 3 * i + r]
            a[i, r, r] += small if small > 0.0 else 1.0


@njit(cache=True)
def prepare(
    WT: np.ndarray, times: float, blocks: np.ndarray, compliance: np.ndarray, scale: np.ndarray, fixed: np.ndarray
) -> bool:
    """Fill what a search needs to know of W; return whether it has contacts that nothing can move along their normals.

    The :func:`diagonal_blocks` (k, 3, 3); of each contact the mean diagonal entry and so many ``times`` that, the scale of its
    trial forces, (k,) m/(N s); and whether it is immovable, (k,): then it has no force, and its scale is infinite.
    """
    diagonal_blocks(WT, blocks)
    some = False
    for i in range(compliance.shape[0]):
        n = 3 * i
        compliance[i] = (blocks[i, 0, 0] + blocks[i, 1, 1] + blocks[i, 2, 2]) / 3.0
        fixed[i] = WT[n, n] <= IMMOVABLE * (WT[n, n] + WT[n + 1, n + 1] + WT[n + 2, n + 2])
        scale[i] = math.inf if fixed[i] else times * compliance[i]
        some = some or fixed[i]
    return some


@njit(cache=True, inner=True)
def update_velocity(WT: np.ndarray, j: int, change: float, u: np.ndarray) -> None:
    """Add W[:, j] change to u."""
    row = WT[j]
    for k in range(u.shape[0]):
        u[k] += row[k] * change


@njit(cache=True)
def velocities(WT: np.ndarray, q: np.ndarray, lam: np.ndarray, u: np.ndarray) -> None:
    """Fill u = W lam + q afresh."""
    for k in range(u.shape[0]):
        u[k] = q[k]
    for j in range(lam.shape[0]):
        if lam[j] != 0.0:
            update_velocity(WT, j, lam[j], u)


@njit(cache=True)
def add_proximal(shift: np.ndarray, centre: np.ndarray, lam: np.ndarray, u: np.ndarray) -> None:
    """Add shift (lam - centre) to u; shift, (k,), is one number a contact."""
    for k in range(u.shape[0]):
        u[k] += shift[k // 3] * (lam[k] - centre[k])


@njit(cache=True, inner=True)
def velocity_error(lam: np.ndarray, u: np.ndarray, q: np.ndarray, mu: np.ndarray, rho: np.ndarray) -> tuple[float, float, float]:
    """Largest velocities, m/s, over the contacts that press or approach, by components.

    Of the error, (lam - P_K(lam - rho uh)) / rho; of the problem, u and q; and what forces could undo, lam / rho.
    """
    error = speed = reach = 0.0
    for i in range(mu.shape[0]):
        n, s, t = 3 * i, 3 * i + 1, 3 * i + 2
        if u[n] >= 0.0 and lam[n] == 0.0 and lam[s] == 0.0 and lam[t] == 0.0:
            continue
        _, _, _, e_n, e_0, e_1 = law_parts(u[n], u[s], u[t], lam[n], lam[s], lam[t], rho[i], mu[i], np.bool_(False))
        # the penetration once more: beside a large enough force rounding swallows it
        error = larger(error, larger(larger(abs(e_n), larger(abs(e_0), abs(e_1))) / rho[i], -u[n]))
        reach = larger(reach, larger(abs(lam[n]), larger(abs(lam[s]), abs(lam[t]))) / rho[i])
        for k in range(n, n + 3):
            speed = larger(speed, larger(abs(u[k]), abs(q[k])))
    return error, speed, reach


@njit(cache=True, inner=True)
def judge(
    WT: np.ndarray,
    q: np.ndarray,
    lam: np.ndarray,
    shift: np.ndarray,
    centre: np.ndarray,
    mu: np.ndarray,
    rho: np.ndarray,
    u: np.ndarray,
) -> tuple[float, float, float, float, float]:
    """Fill u afresh, proximal part included; return what :func:`velocity_error` and :func:`natural_map` say of it."""
    velocities(WT, q, lam, u)
    add_proximal(shift, centre, lam, u)
    error, speed, reach = velocity_error(lam, u, q, mu, rho)
    residual, size = natural_map(lam, u, mu, rho, np.bool_(True))
    return error, speed, reach, residual, size


@njit(cache=True)
def residual(
    WT: np.ndarray,
    q: np.ndarray,
    lam: np.ndarray,
    shift: np.ndarray,
    centre: np.ndarray,
    mu: np.ndarray,
    rho: np.ndarray,
    u: np.ndarray,
    leniency: float,
) -> tuple[float, float, float, float]:
    """Fill u afresh, proximal part included; return the residual of forces and velocities, and what it is made of.

    These are the largest velocity of the problem and the largest that a force could undo, m/s, and the natural map alone.
    Velocities count with the part 1 / ``leniency`` of their error relative to the first.
    """
    error, speed, reach, wrong, size = judge(WT, q, lam, shift, centre, mu, rho, u)
    forces = relative(wrong, size)
    return larger(forces, error / (TINY if speed < TINY else speed) / leniency), speed, reach, forces


@njit(cache=True, inner=True)
def classify(
    lam: np.ndarray, u: np.ndarray, scale: np.ndarray, mu: np.ndarray, active: np.ndarray, slides: np.ndarray, trial: np.ndarray
) -> int:
    """Fill the closed contacts, whether each slides and its trial force y = lam - u / scale; return how many are closed.

    The test of Alart and Curnier: open when y_n <= 0, sliding when |y_t| > mu y_n. scale, (k,), is a compliance a contact.
    Open as well below ``STANDING`` times the largest y_n: a contact that others carry, without force and speed, as the fourth
    corner of a box has when three are closed, where only rounding decides on the sign.
    """
    count = 0
    least = 0.0
    for i in range(mu.shape[0]):
        least = max(least, STANDING * (lam[3 * i] - u[3 * i] / scale[i]))
    for i in range(mu.shape[0]):
        n, s, t = 3 * i, 3 * i + 1, 3 * i + 2
        y_n = lam[n] - u[n] / scale[i]
        if y_n <= least:
            continue
        y_0, y_1 = lam[s] - u[s] / scale[i], lam[t] - u[t] / scale[i]
        active[count] = i
        slides[count] = math.sqrt(y_0 * y_0 + y_1 * y_1) > mu[i] * y_n
        trial[count, 0], trial[count, 1], trial[count, 2] = y_n, y_0, y_1
        count += 1
    return count


@njit(cache=True, inner=True)
def newton_right(
    lam: np.ndarray,
    u: np.ndarray,
    scale: np.ndarray,
    mu: np.ndarray,
    active: np.ndarray,
    slides: np.ndarray,
    trial: np.ndarray,
    right: np.ndarray,
) -> None:
    """Fill the right-hand side of the semi-smooth Newton step: minus the residuals of the rows of :func:`newton_matrix`."""
    for c in range(active.shape[0]):
        i = active[c]
        n, s, t = 3 * i, 3 * i + 1, 3 * i + 2
        right[3 * c] = -u[n]
        if not slides[c]:
            right[3 * c + 1] = -u[s]
            right[3 * c + 2] = -u[t]
            continue
        y_0, y_1 = trial[c, 1], trial[c, 2]
        bound = mu[i] * lam[n] / math.sqrt(y_0 * y_0 + y_1 * y_1)
        right[3 * c + 1] = -scale[i] * (lam[s] - bound * y_0)
        right[3 * c + 2] = -scale[i] * (lam[t] - bound * y_1)


@njit(cache=True)
def begin_newton(
    WT: np.ndarray,
    q: np.ndarray,
    lam: np.ndarray,
    shift: np.ndarray,
    centre: np.ndarray,
    mu: np.ndarray,
    scale: np.ndarray,
    u: np.ndarray,
    active: np.ndarray,
    slides: np.ndarray,
    trial: np.ndarray,
    right: np.ndarray,
) -> int:
    """Begin a semi-smooth Newton step: :func:`classify`, open contacts without force and u as it is then, :func:`newton_right`.

    Return how many contacts are closed, of which alone ``active``, ``slides``, ``trial`` and ``right`` (3k,) tell.
    The 12 parameters are the local problem, its iterate, and room for the system of the step.
    """
    count = classify(lam, u, scale, mu, active, slides, trial)
    following, pushed = 0, False
    for i in range(mu.shape[0]):
        if following < count and active[following] == i:
            following += 1
            continue
        for c in range(3 * i, 3 * i + 3):
            pushed = pushed or lam[c] != 0.0
            lam[c] = 0.0
    if pushed:
        velocities(WT, q, lam, u)
        add_proximal(shift, centre, lam, u)
    newton_right(lam, u, scale, mu, active[:count], slides, trial, right)
    return count


@njit(cache=True)
def end_newton(active: np.ndarray, change: np.ndarray, lam: np.ndarray) -> bool:
    """Add the change of force of each closed contact, (3 count,), unless it is not finite: then return False."""
    for c in range(change.shape[0]):
        if not math.isfinite(change[c]):
            return False
    for c in range(active.shape[0]):
        for k in range(3):
            lam[3 * active[c] + k] += change[3 * c + k]
    return True


@njit(cache=True)
def newton_matrix(
    WT: np.ndarray,
    shift: np.ndarray,
    scale: np.ndarray,
    mu: np.ndarray,
    active: np.ndarray,
    slides: np.ndarray,
    trial: np.ndarray,
    matrix: np.ndarray,
) -> float:
    """Fill the matrix (transposed: row = unknown) of the semi-smooth Newton step on the closed contacts; return its 1-norm.

    Unknown: the changes of force of the closed contacts; open ones already hold zero. Normal rows ask u_n = 0, sticking rows
    u_t = 0, sliding rows the linearised lam_t = mu lam_n y_t / |y_t| with the sensitivity of the direction (Alart-Curnier), times
    ``scale`` so that all rows have the size of W. W counts with ``shift``, (k,), added to its diagonal.
    """
    count = active.shape[0]
    for cj in range(count):
        j = active[cj]
        for dj in range(3):
            row = WT[3 * j + dj]
            out = matrix[3 * cj + dj]
            for ci in range(count):
                i = active[ci]
                w_n, w_0, w_1 = row[3 * i], row[3 * i + 1], row[3 * i + 2]
                if i == j:
                    if dj == 0:
                        w_n += shift[i]
                    elif dj == 1:
                        w_0 += shift[i]
                    else:
                        w_1 += shift[i]
                out[3 * ci] = w_n
                if not slides[ci]:
                    out[3 * ci + 1] = w_0
                    out[3 * ci + 2] = w_1
                    continue
                w = scale[i]
                y_0, y_1 = trial[ci, 1], trial[ci, 2]
                length = math.sqrt(y_0 * y_0 + y_1 * y_1)
                d_0, d_1 = y_0 / length, y_1 / length
                turn = mu[i] * trial[ci, 0] / length
                # d(direction part) = turn (I - d d^T) (dlam_t - W_t dlam / w)
                along = d_0 * w_0 + d_1 * w_1
                x_0, x_1 = turn * (w_0 - d_0 * along), turn * (w_1 - d_1 * along)
                if i == j:
                    if dj == 0:
                        x_0 -= w * mu[i] * d_0
                        x_1 -= w * mu[i] * d_1
                    elif dj == 1:
                        x_0 += w * (1.0 - turn * (1.0 - d_0 * d_0))
                        x_1 += w * turn * d_0 * d_1
                    else:
                        x_0 += w * turn * d_0 * d_1
                        x_1 += w * (1.0 - turn * (1.0 - d_1 * d_1))
                out[3 * ci + 1] = x_0
                out[3 * ci + 2] = x_1
    largest = 0.0
    for row in range(3 * count):
        total = 0.0
        for c in range(3 * count):
            total += abs(matrix[row, c])
        largest = larger(largest, total)
    return largest

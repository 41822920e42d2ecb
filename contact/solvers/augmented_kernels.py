"""Compiled kernels of the augmented Lagrangian of papers/000: projections with their derivatives, line search sums."""

from __future__ import annotations

import math

import numpy as np

from contact.compiled import njit
from contact.cone import project_cone, project_strict
from contact.solvers.primal_kernels import OPEN, SLIDE, STICK

#: Backtracking: part of the slope that must be gained, and the smallest step.
ARMIJO, SHORTEST = 1e-4, 1e-12


@njit(cache=True)
def trial_forces(
    lam: np.ndarray, u: np.ndarray, slip: np.ndarray, friction: np.ndarray, beta: np.ndarray, trial: np.ndarray
) -> None:
    """Fill trial = lam - beta (u + (mu slip, 0, 0)), (nc, 3), N: papers/000 eqs. 20 and 21 with a slip speed that is given."""
    for m in range(lam.shape[0]):
        trial[m, 0] = lam[m, 0] - beta[m] * (u[m, 0] + friction[m] * slip[m])
        trial[m, 1] = lam[m, 1] - beta[m] * u[m, 1]
        trial[m, 2] = lam[m, 2] - beta[m] * u[m, 2]


@njit(cache=True)
def project(trial: np.ndarray, friction: np.ndarray, force: np.ndarray) -> None:
    """Fill force = P_K(trial), (nc, 3), N."""
    for m in range(trial.shape[0]):
        force[m, 0], force[m, 1], force[m, 2] = project_cone(trial[m, 0], trial[m, 1], trial[m, 2], friction[m])


@njit(cache=True)
def project_with_slope(
    trial: np.ndarray, friction: np.ndarray, beta: np.ndarray, force: np.ndarray, gain: np.ndarray, state: np.ndarray
) -> int:
    """Fill force = P_K(trial), gain = beta dP_K (nc, 3, 3), N s/m, and the states; return how many states changed.

    On the boundary of the cone (papers/000 eq. 23) dP_K is symmetric with eigenvalues between 0 and 1.
    """
    changed = 0
    for m in range(trial.shape[0]):
        mu = friction[m]
        t_n, t_0, t_1 = trial[m, 0], trial[m, 1], trial[m, 2]
        gain[m] = 0.0
        force[m, 0], force[m, 1], force[m, 2] = project_cone(t_n, t_0, t_1, mu)
        length = math.sqrt(t_0 * t_0 + t_1 * t_1)
        if mu * length <= -t_n:
            now = OPEN
        elif length <= mu * t_n:
            now = STICK
            for c in range(3):
                gain[m, c, c] = beta[m]
        else:
            now = SLIDE
            k = beta[m] / (1.0 + mu * mu)
            d_0, d_1 = t_0 / length, t_1 / length
            across = k * (mu * mu + mu * t_n / length)
            along = k * mu * mu
            gain[m, 0, 0] = k
            gain[m, 0, 1] = gain[m, 1, 0] = k * mu * d_0
            gain[m, 0, 2] = gain[m, 2, 0] = k * mu * d_1
            gain[m, 1, 1] = along * d_0 * d_0 + across * d_1 * d_1
            gain[m, 1, 2] = gain[m, 2, 1] = (along - across) * d_0 * d_1
            gain[m, 2, 2] = along * d_1 * d_1 + across * d_0 * d_0
        changed += now != state[m]
        state[m] = now
    return changed


@njit(cache=True)
def strict_with_slope(
    lam: np.ndarray, u: np.ndarray, friction: np.ndarray, beta: np.ndarray, force: np.ndarray, gain: np.ndarray, state: np.ndarray
) -> None:
    """Fill force = T(lam - beta u) with the strict operator, (nc, 3), N, gain = beta dT (nc, 3, 3), N s/m, and the states.

    dT is not symmetric where a contact slides: the bound of the tangent follows the normal force, but not the reverse.
    """
    for m in range(lam.shape[0]):
        mu = friction[m]
        t_n, t_0, t_1 = lam[m, 0] - beta[m] * u[m, 0], lam[m, 1] - beta[m] * u[m, 1], lam[m, 2] - beta[m] * u[m, 2]
        force[m, 0], force[m, 1], force[m, 2] = project_strict(t_n, t_0, t_1, mu)
        gain[m] = 0.0
        length = math.sqrt(t_0 * t_0 + t_1 * t_1)
        if t_n <= 0.0:
            state[m] = OPEN
        elif length <= mu * t_n:
            state[m] = STICK
            for c in range(3):
                gain[m, c, c] = beta[m]
        else:
            state[m] = SLIDE
            d_0, d_1 = t_0 / length, t_1 / length
            across = beta[m] * mu * t_n / length
            gain[m, 0, 0] = beta[m]
            gain[m, 1, 0], gain[m, 2, 0] = beta[m] * mu * d_0, beta[m] * mu * d_1
            gain[m, 1, 1], gain[m, 2, 2] = across * d_1 * d_1, across * d_0 * d_0
            gain[m, 1, 2] = gain[m, 2, 1] = -across * d_0 * d_1


@njit(cache=True)
def strict_merit(
    lam: np.ndarray,
    u: np.ndarray,
    along: np.ndarray,
    friction: np.ndarray,
    beta: np.ndarray,
    still: np.ndarray,
    moving: np.ndarray,
    weight: np.ndarray,
    indptr: np.ndarray,
    indices: np.ndarray,
    data: np.ndarray,
    alpha: float,
    room: np.ndarray,
) -> float:
    """Return |r|^2 at v + alpha d, r = A v - b - J^T T(lam - beta u) with the strict operator T, times ``weight`` (n,).

    ``u`` is J v + phi and ``along`` J d, (nc, 3) m/s; ``still`` A v - b and ``moving`` A d, (n,) N; J is in compressed rows.
    ``room`` (n,) is scratch. The 13 arguments are the contacts, both ends, J and how far to go.
    """
    for i in range(room.shape[0]):
        room[i] = still[i] + alpha * moving[i]
    for m in range(lam.shape[0]):
        force = project_strict(
            lam[m, 0] - beta[m] * (u[m, 0] + alpha * along[m, 0]),
            lam[m, 1] - beta[m] * (u[m, 1] + alpha * along[m, 1]),
            lam[m, 2] - beta[m] * (u[m, 2] + alpha * along[m, 2]),
            friction[m],
        )
        if force[0] == 0.0:
            continue
        for c in range(3):
            for k in range(np.uint64(indptr[3 * m + c]), np.uint64(indptr[3 * m + c + 1])):
                room[np.uint64(indices[k])] -= data[k] * force[c]
    total = 0.0
    for i in range(room.shape[0]):
        total += (weight[i] * room[i]) ** 2
    return total


@njit(cache=True)
def strict_backtrack(
    lam: np.ndarray,
    u: np.ndarray,
    along: np.ndarray,
    friction: np.ndarray,
    beta: np.ndarray,
    still: np.ndarray,
    moving: np.ndarray,
    weight: np.ndarray,
    indptr: np.ndarray,
    indices: np.ndarray,
    data: np.ndarray,
    before: float,
    room: np.ndarray,
) -> tuple[float, int]:
    """Halve alpha from 1 until |r|^2 falls enough from ``before``; 0 where it never does, and the evaluations.

    Arguments as in :func:`strict_merit`.
    """
    alpha, count = 1.0, 0
    while alpha > SHORTEST:
        count += 1
        merit = strict_merit(lam, u, along, friction, beta, still, moving, weight, indptr, indices, data, alpha, room)
        if merit <= (1.0 - 2.0 * ARMIJO * alpha) * before:
            return alpha, count
        alpha *= 0.5
    return 0.0, count


@njit(cache=True, inner=True)
def slope_at(trial: np.ndarray, moved: np.ndarray, friction: np.ndarray, beta: np.ndarray, alpha: float) -> tuple[float, float]:
    """Add up (J d) . P_K(trial - alpha beta J d) and (J d) . beta dP_K (J d) over the contacts; ``moved`` is J d, (nc, 3)."""
    work = curvature = 0.0
    for m in range(trial.shape[0]):
        mu, step = friction[m], alpha * beta[m]
        x_n, x_0, x_1 = moved[m, 0], moved[m, 1], moved[m, 2]
        t_n, t_0, t_1 = trial[m, 0] - step * x_n, trial[m, 1] - step * x_0, trial[m, 2] - step * x_1
        p_n, p_0, p_1 = project_cone(t_n, t_0, t_1, mu)
        work += x_n * p_n + x_0 * p_0 + x_1 * p_1
        length = math.sqrt(t_0 * t_0 + t_1 * t_1)
        if mu * length <= -t_n:
            continue
        if length <= mu * t_n:
            curvature += beta[m] * (x_n * x_n + x_0 * x_0 + x_1 * x_1)
        else:
            k = beta[m] / (1.0 + mu * mu)
            d_0, d_1 = t_0 / length, t_1 / length
            along, across = x_0 * d_0 + x_1 * d_1, x_1 * d_0 - x_0 * d_1
            boundary = x_n + mu * along
            curvature += k * (boundary * boundary + (mu * mu + mu * t_n / length) * across * across)
    return work, curvature


@njit(cache=True)
def exact_step(
    trial: np.ndarray, moved: np.ndarray, friction: np.ndarray, beta: np.ndarray, start: float, energy: float, accuracy: float
) -> tuple[float, int]:
    """Step length at which the convex function along d is smallest, and the evaluations that took.

    Its derivative is ``start + alpha energy - (J d) . P_K(trial - alpha beta J d)`` with start = d . (A v - b) and energy =
    d . A d; Newton steps within a bracket look for its zero until it is at most ``accuracy`` of what it is at 0.
    """
    value, _ = slope_at(trial, moved, friction, beta, 0.0)
    aim = accuracy * abs(start - value)
    low, high, alpha = 0.0, math.inf, 1.0
    for count in range(1, 60):
        work, curvature = slope_at(trial, moved, friction, beta, alpha)
        value = start + alpha * energy - work
        if not abs(value) > aim:
            return alpha, count
        if value < 0.0:
            low = alpha
        else:
            high = alpha
        following = alpha - value / (energy + curvature)
        if not low < following < high:
            following = 0.5 * (low + high) if high < math.inf else 2.0 * alpha
        alpha = following
    return alpha, 60

"""The friction cone: projections used by the solvers and by the metrics."""

from __future__ import annotations

import math

import numpy as np

from contact.compiled import njit


@njit(cache=True, inner=True)
def project_strict(lam_n: float, lam_0: float, lam_1: float, mu: float) -> tuple[float, float, float]:
    """Strict operator of papers/001 eq. (26): clip the normal force, then the tangent to the disc of radius mu lam_n.

    With a diagonal surrogate Delassus operator its result satisfies the Signorini-Coulomb law exactly (Prop. 4).

    Parameters
    ----------
    lam_n, lam_0, lam_1 : float, N
        Trial force.
    mu : float
        Coulomb coefficient.
    """
    if lam_n <= 0.0:
        return 0.0, 0.0, 0.0
    bound = mu * lam_n
    length = math.sqrt(lam_0 * lam_0 + lam_1 * lam_1)
    if length <= bound:
        return lam_n, lam_0, lam_1
    scale = bound / length
    return lam_n, lam_0 * scale, lam_1 * scale


@njit(cache=True, inner=True, error_model="numpy")
def project_cone(lam_n: float, lam_0: float, lam_1: float, mu: float) -> tuple[float, float, float]:
    """Closest point of the second-order cone |lam_t| <= mu lam_n (proximal operator of papers/001 eq. 26).

    The polar test comes before the membership test, so that at mu = 0 a negative normal force gives zero.
    """
    length = math.sqrt(lam_0 * lam_0 + lam_1 * lam_1)
    if mu * length <= -lam_n:
        return 0.0, 0.0, 0.0
    if length <= mu * lam_n:
        return lam_n, lam_0, lam_1
    normal = (lam_n + mu * length) / (1.0 + mu * mu)
    scale = mu * normal / length
    return normal, lam_0 * scale, lam_1 * scale


@njit(cache=True, inner=True)
def project_ellipse(t_0: float, t_1: float, a_0: float, a_1: float) -> tuple[float, float]:
    """Closest point of the filled ellipse with semi-axes a_0, a_1 > 0 (N): tangent part of papers/001 Prop. 6.

    The foot is a_i^2 t_i / (a_i^2 + s) with s >= 0 the root of |(a_i t_i / (a_i^2 + s))| = 1. Newton runs on 1/|.| - 1, which
    rises and bends down, so that steps from s = 0 never pass the root; on a circle the first one lands on it.
    """
    size = max(a_0, a_1)
    e_0, e_1 = a_0 / size, a_1 / size
    z_0, z_1 = t_0 / size, t_1 / size
    if math.hypot(z_0 / e_0, z_1 / e_1) <= 1.0:
        return t_0, t_1
    if not max(abs(z_0), abs(z_1)) < 1e100:  # so far away, or the ellipse so small, that only the direction counts
        y_0, y_1 = e_0 * t_0, e_1 * t_1
        length = math.hypot(y_0, y_1)
        return a_0 * y_0 / length, a_1 * y_1 / length
    q_0, q_1 = e_0 * e_0, e_1 * e_1
    s = 0.0
    for _ in range(100):
        d_0, d_1 = 1.0 / (q_0 + s), 1.0 / (q_1 + s)
        y_0, y_1 = e_0 * z_0 * d_0, e_1 * z_1 * d_1
        length = math.hypot(y_0, y_1)
        step = (length - 1.0) * length * length / (y_0 * y_0 * d_0 + y_1 * y_1 * d_1)
        s += max(step, 0.0)
        if step <= 1e-16 * (min(q_0, q_1) + s):
            break
    y_0, y_1 = e_0 * z_0 / (q_0 + s), e_1 * z_1 / (q_1 + s)
    length = math.hypot(y_0, y_1)
    return a_0 * y_0 / length, a_1 * y_1 / length


@njit(cache=True, inner=True)
def project_strict_elliptic(lam_n: float, lam_0: float, lam_1: float, mu_0: float, mu_1: float) -> tuple[float, float, float]:
    """Strict operator on the ellipsoidal cone of papers/001 eq. (12).

    With one gamma a contact its result is that of maximum dissipation (Prop. 6).

    Parameters
    ----------
    lam_n, lam_0, lam_1 : float, N
        Trial force.
    mu_0, mu_1 : float
        Coulomb coefficients along the two tangents, both positive or both zero.
    """
    if mu_0 == mu_1:
        return project_strict(lam_n, lam_0, lam_1, mu_0)
    if lam_n <= 0.0:
        return 0.0, 0.0, 0.0
    p_0, p_1 = project_ellipse(lam_0, lam_1, mu_0 * lam_n, mu_1 * lam_n)
    return lam_n, p_0, p_1


@njit(cache=True, inner=True)
def project_cone_elliptic(lam_n: float, lam_0: float, lam_1: float, mu_0: float, mu_1: float) -> tuple[float, float, float]:
    """Closest point of the ellipsoidal cone |(lam_t / mu)| <= lam_n (proximal operator for papers/001 eq. 12).

    With multiplier kappa of the surface and r = kappa / (1 + kappa) in (0, 1) the foot is P (1, mu_i^2 t_i / ...), and r is the
    root of (1 - 2 r) Q(r) - lam_n with Q = |(mu_i t_i / (mu_i^2 (1 - r) + r))|, which falls from outside the cone to the polar
    cone. Newton steps that leave the bracket are replaced by bisection.
    """
    if mu_0 == mu_1:
        return project_cone(lam_n, lam_0, lam_1, mu_0)
    if math.hypot(mu_0 * lam_0, mu_1 * lam_1) <= -lam_n:
        return 0.0, 0.0, 0.0
    if math.hypot(lam_0 / mu_0, lam_1 / mu_1) <= lam_n:
        return lam_n, lam_0, lam_1
    q_0, q_1 = mu_0 * mu_0, mu_1 * mu_1
    low, high = 0.0, 1.0
    r = 0.5
    for _ in range(200):
        d_0, d_1 = 1.0 / (q_0 * (1.0 - r) + r), 1.0 / (q_1 * (1.0 - r) + r)
        y_0, y_1 = mu_0 * lam_0 * d_0, mu_1 * lam_1 * d_1
        length = math.hypot(y_0, y_1)
        value = (1.0 - 2.0 * r) * length - lam_n
        if value > 0.0:
            low = r
        else:
            high = r
        slope = (y_0 * y_0 * d_0 * (1.0 - q_0) + y_1 * y_1 * d_1 * (1.0 - q_1)) / length
        slope = -2.0 * length - (1.0 - 2.0 * r) * slope
        r_new = r - value / slope if slope < 0.0 else low
        if not low < r_new < high:
            r_new = 0.5 * (low + high)
        if abs(r_new - r) <= 2e-16 * r or not low < r_new < high:
            break
        r = r_new
    d_0, d_1 = 1.0 / (q_0 * (1.0 - r) + r), 1.0 / (q_1 * (1.0 - r) + r)
    y_0, y_1 = mu_0 * lam_0 * d_0 * (1.0 - r), mu_1 * lam_1 * d_1 * (1.0 - r)
    return math.hypot(y_0, y_1), mu_0 * y_0, mu_1 * y_1


@njit(cache=True)
def project_forces(trial: np.ndarray, friction: np.ndarray, strict: bool, lam: np.ndarray) -> None:
    """Fill lam (nc, 3), N, with the projections of trial forces (nc, 3), N; friction (nc, 2), the strict or proximal operator."""
    for m in range(trial.shape[0]):
        t_n, t_0, t_1 = trial[m, 0], trial[m, 1], trial[m, 2]
        if strict:
            lam[m, 0], lam[m, 1], lam[m, 2] = project_strict_elliptic(t_n, t_0, t_1, friction[m, 0], friction[m, 1])
        else:
            lam[m, 0], lam[m, 1], lam[m, 2] = project_cone_elliptic(t_n, t_0, t_1, friction[m, 0], friction[m, 1])

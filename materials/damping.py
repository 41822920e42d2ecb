"""Rayleigh damping D = alpha M + beta K: conversion between its constants and damping ratios."""

import math

from materials.errors import MaterialError


def damping_ratio(alpha: float, beta: float, omega: float) -> float:
    """Return the damping ratio of a mode: zeta = alpha / (2 omega) + beta omega / 2.

    Parameters
    ----------
    alpha : float
        Mass-proportional constant, 1/s.
    beta : float
        Stiffness-proportional constant, s.
    omega : float
        Undamped angular frequency of the mode, rad/s, greater than 0.

    Returns
    -------
    float
        Fraction of critical damping, dimensionless.

    Raises
    ------
    MaterialError
        If omega is not greater than 0 or a constant is negative or not finite.
    """
    _check("alpha", alpha, zero=True)
    _check("beta", beta, zero=True)
    _check("omega", omega, zero=False)
    return alpha / (2.0 * omega) + beta * omega / 2.0


def rayleigh_from_ratios(zeta1: float, omega1: float, zeta2: float, omega2: float) -> tuple[float, float]:
    """Return (alpha, beta) that give two modes their damping ratios.

    Solves alpha / (2 omega_i) + beta omega_i / 2 = zeta_i for i = 1, 2.

    Parameters
    ----------
    zeta1, zeta2 : float
        Required damping ratios, dimensionless, at least 0.
    omega1, omega2 : float
        Angular frequencies of the two modes, rad/s, different and greater than 0.

    Returns
    -------
    tuple of float
        alpha in 1/s and beta in s, both at least 0.

    Raises
    ------
    MaterialError
        If an input is out of range, the frequencies are equal, or only a negative constant (which
        would feed energy into some modes) could give both ratios.
    """
    for field, value in (("zeta1", zeta1), ("zeta2", zeta2)):
        _check(field, value, zero=True)
    for field, value in (("omega1", omega1), ("omega2", omega2)):
        _check(field, value, zero=False)
    if omega1 == omega2:
        raise MaterialError(f"rayleigh_from_ratios: omega1 and omega2 are both {omega1!r} rad/s; give two different frequencies.")
    span = omega2 * omega2 - omega1 * omega1
    alpha = 2.0 * omega1 * omega2 * (zeta1 * omega2 - zeta2 * omega1) / span
    beta = 2.0 * (zeta2 * omega2 - zeta1 * omega1) / span
    # Rounding of an exact zero (for example with zeta proportional to omega) must not count as negative.
    tiny = 1e-12 * max(zeta1, zeta2)
    alpha = 0.0 if abs(alpha) <= tiny * max(omega1, omega2) else alpha
    beta = 0.0 if abs(beta) <= tiny / max(omega1, omega2) else beta
    if alpha < 0.0 or beta < 0.0:
        raise MaterialError(
            f"rayleigh_from_ratios: ratios {zeta1!r} at {omega1!r} rad/s and {zeta2!r} at {omega2!r} rad/s "
            f"need alpha = {alpha:.4g} 1/s and beta = {beta:.4g} s, but both must be at least 0; bring the "
            "two ratios closer together (zeta1/zeta2 must lie between omega1/omega2 and omega2/omega1)."
        )
    return alpha, beta


def _check(field: str, value: float, *, zero: bool) -> None:
    if not math.isfinite(value) or value < 0.0 or (value == 0.0 and not zero):
        allowed = "at least 0" if zero else "greater than 0"
        raise MaterialError(f"Rayleigh damping: {field} is {value!r}, but must be finite and {allowed}; correct {field}.")

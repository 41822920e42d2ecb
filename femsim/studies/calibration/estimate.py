"""Least squares between bounds, covariances, intervals, what the data cannot tell. Arrays only; unit coordinates.

Residuals are in standard deviations of their noise. Intervals come from the Jacobian J at the best fit. Where residuals are no
white noise, as those of a model that is not exact, the usual covariance s^2 (J^T J)^-1 is far too small. Then the largest of two
counts: the usual one for as many samples as are independent, by the autocorrelation of the residuals; and that of Driscoll and
Kraay (Review of Economics and Statistics 80, 1998), (J^T J)^-1 S (J^T J)^-1, where S sums the products of scores of all channels
at times less than L apart with the weights of Newey and West.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

#: Residuals do not depend on a parameter whose derivatives are this part of the largest of all.
BLIND = 1e-9
_AT_BOUND = 1e-3
_CORRELATED = 0.95
_FLAT = 0.25


@dataclass(frozen=True, eq=False)
class Estimate:
    """What the residuals say about the parameters.

    Attributes
    ----------
    deviation : ndarray, (p,)
        Standard deviations, in unit coordinates.
    correlation : ndarray, (p, p)
        Of the estimates.
    half, joint_half : ndarray, (p,)
        Half the interval of each parameter by itself, and of all at once (Bonferroni).
    scale : float
        Root of the sum of squares by degrees of freedom: 1 where noise is all that is left.
    samples, effective : float
        Number of residuals, and of independent ones with the same information.
    directions : ndarray, (p, p)
        Rows: principal directions of the covariance, the least certain first.
    spreads : ndarray, (p,)
        Standard deviations along them.
    blind : ndarray of bool, (p,)
        Parameters that the residuals do not depend on.
    """

    deviation: np.ndarray
    correlation: np.ndarray
    half: np.ndarray
    joint_half: np.ndarray
    scale: float
    samples: int
    effective: float
    directions: np.ndarray
    spreads: np.ndarray
    blind: np.ndarray


def estimate(
    residuals: Sequence[np.ndarray], jacobians: Sequence[np.ndarray], prior: np.ndarray, confidence: float, *, known_noise: bool
) -> Estimate:
    """Find intervals at a best fit.

    Parameters
    ----------
    residuals : sequence of ndarray, (m, c)
        Residuals of each reading in standard deviations: m times, c channels.
    jacobians : sequence of ndarray, (m, c, p)
        Their derivatives by unit coordinates.
    prior : ndarray, (p,)
        1 by the squared standard deviation of the prior of each parameter; 0 without one.
    confidence : float
        Level of the intervals.
    known_noise : bool
        Whether the standard deviations were given; then residuals smaller than them make no interval smaller.
    """
    from scipy.stats import t as student

    p = len(prior)
    n = sum(r.size for r in residuals)
    normal = sum((np.einsum("mcp,mcq->pq", j, j) for j in jacobians), np.zeros((p, p)))
    strength = np.sqrt(np.diag(normal))
    blind = strength <= BLIND * max(1.0, float(strength.max(initial=0.0)))
    squares = float(sum((r**2).sum() for r in residuals))
    scale2 = squares / max(n - p, 1)
    factor = max(1.0, scale2) if known_noise else scale2
    fixed = np.diag(prior) + np.diag(np.where(blind & (prior == 0), 1e-12, 0.0))
    information = normal / max(factor, 1e-300) + fixed
    covariance = np.linalg.inv(information)
    meat, memory = np.zeros((p, p)), 1.0
    for r, j in zip(residuals, jacobians, strict=True):
        window, own = _memory(r)
        memory = max(memory, own)
        scores = np.einsum("mc,mcp->mp", r, j)
        meat += scores.T @ scores
        for lag in range(1, window):
            product = scores[lag:].T @ scores[:-lag]
            meat += (1.0 - lag / window) * (product + product.T)
    robust = covariance @ (meat / max(factor, 1e-300) ** 2 + np.diag(prior)) @ covariance
    fewer = np.linalg.inv(information / memory + (1.0 - 1.0 / memory) * fixed)  # the prior is not of the samples
    deviation = np.sqrt(np.maximum(np.diag(fewer), np.diag(robust)))
    usual = np.sqrt(np.diag(covariance))
    correlation = covariance / np.outer(usual, usual)
    effective = n / memory
    freedom = max(effective - p, 1.0)
    half = student.ppf(0.5 + 0.5 * confidence, freedom) * deviation
    joint = student.ppf(1.0 - 0.5 * (1.0 - confidence) / p, freedom) * deviation
    values, vectors = np.linalg.eigh(correlation * np.outer(deviation, deviation))
    return Estimate(
        deviation, correlation, half, joint, float(np.sqrt(scale2)), n, effective, vectors.T[::-1],
        np.sqrt(np.maximum(values[::-1], 0.0)), blind,
    )  # fmt: skip


def autocorrelation(residual: np.ndarray) -> np.ndarray:
    """Find the autocorrelation of all channels together, at lags 1, 2 ... before the first at which it is no larger than chance.

    Parameters
    ----------
    residual : ndarray, (m, c)
        Residuals of a reading; lags end at a quarter of m.
    """
    m = len(residual)
    centred = residual - residual.mean(axis=0)
    power = float((centred**2).sum())
    out: list[float] = []
    while power > 0 and len(out) + 1 < m // 4:
        rho = float((centred[len(out) + 1 :] * centred[: -len(out) - 1]).sum()) / power
        if rho < 2.0 / np.sqrt(residual.size):
            break
        out.append(rho)
    return np.array(out)


def _memory(residual: np.ndarray) -> tuple[int, float]:
    """Window of the weights, and how many residuals go on one independent one, from the autocorrelation of all channels."""
    rho = autocorrelation(residual)
    return (2 * (len(rho) + 1) if len(rho) else 1), 1.0 + 2.0 * float(rho.sum())


def concerns(names: Sequence[str], unit: np.ndarray, found: Estimate) -> list[str]:
    """Say what the data cannot tell.

    Parameters
    ----------
    names : sequence of str
        Of the parameters.
    unit : ndarray, (p,)
        Best fit, unit coordinates.
    found : Estimate
        Its estimate.
    """
    out = [f"the logs do not depend on {name}: it cannot be identified" for name, b in zip(names, found.blind, strict=True) if b]
    for name, u, blind in zip(names, unit, found.blind, strict=True):
        if not blind and (u < _AT_BOUND or u > 1 - _AT_BOUND):
            out.append(f"{name} is at its {'lower' if u < 0.5 else 'upper'} bound; its interval does not hold, widen the bounds")
    for a in range(len(names)):
        for b in range(a):
            if abs(found.correlation[a, b]) > _CORRELATED and not (found.blind[a] or found.blind[b]):
                out.append(
                    f"{names[b]} and {names[a]} are correlated by {found.correlation[a, b]:.3f}: the logs tell a combination of "
                    "them better than each; fix one, or add an experiment that tells them apart"
                )
    for direction, spread in zip(found.directions, found.spreads, strict=True):
        if spread > _FLAT and not found.blind[np.argmax(np.abs(direction))]:
            parts = [f"{x:+.2f} {name}" for name, x in zip(names, direction, strict=True) if abs(x) > 0.1]
            out.append(f"flat direction: {', '.join(parts)} (parts of the ranges) is known to {spread:.2g} of the ranges only")
    return out


def least_squares(
    residual: Callable[[np.ndarray], np.ndarray],
    jacobian: Callable[[np.ndarray], np.ndarray],
    start: np.ndarray,
    *,
    evaluations: int,
    tolerance: float,
) -> tuple[np.ndarray, bool]:
    """Minimise the sum of squares in the unit cube (scipy's trust-region reflective method, scaled by the Jacobian).

    Parameters
    ----------
    residual, jacobian : callable
        Of unit coordinates (p,): (n,) and (n, p).
    start : ndarray, (p,)
        Where to begin.
    evaluations : int
        Most evaluations of ``residual``.
    tolerance : float
        Relative change of cost or coordinates at which it ends.

    Returns
    -------
    (ndarray, bool)
        The best point, and whether it ended by the tolerance.
    """
    from scipy.optimize import least_squares as minimise

    inside = np.clip(start, 2 * _AT_BOUND, 1 - 2 * _AT_BOUND)
    done = minimise(
        residual, inside, jac=jacobian, bounds=(0.0, 1.0), x_scale="jac", method="trf", ftol=tolerance, xtol=tolerance,
        gtol=None, max_nfev=evaluations,
    )  # fmt: skip
    return done.x, done.status > 0

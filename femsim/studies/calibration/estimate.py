"""Least squares between bounds, covariances and intervals. Arrays only; unit coordinates.

Residuals are in standard deviations of their noise. Intervals come from the Jacobian J at the best fit. Where residuals are not
white noise, as those of a model that is not exact, the usual covariance s^2 (J^T J)^-1 is far too small. Then the larger of two
counts: the usual one for as many samples as are independent, by the autocorrelation of the residuals; and that of Driscoll and
Kraay (Review of Economics and Statistics 80, 1998), (J^T J)^-1 S (J^T J)^-1, where S sums the products of scores of all channels
at times less than L apart with the weights of Newey and West.

A tare leaves the error of its mean in all samples alike. The best fit takes part of it up, so that residuals do not show it: its
share, (J^T J)^-1 g^T C g (J^T J)^-1 with the sums g of J over time and the covariance C of the means, comes on top.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from femsim.studies.comparison.agreement import autocorrelation

#: Residuals do not depend on a parameter whose derivatives are this part of the largest of all.
BLIND = 1e-9
#: A coordinate so near to 0 or 1 is at its bound.
AT_BOUND = 1e-3


@dataclass(frozen=True, eq=False)
class Estimate:
    """What the residuals tell about the parameters.

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
    residuals: Sequence[np.ndarray],
    jacobians: Sequence[np.ndarray],
    prior: np.ndarray,
    confidence: float,
    *,
    known_noise: bool,
    constants: Sequence[np.ndarray] = (),
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
        Whether the standard deviations are given; then smaller residuals do not make intervals smaller.
    constants : sequence of ndarray, (k, c)
        Of each reading, rows of which the sum of outer products is the covariance of what is constant in its residuals, in
        standard deviations; none by default.
    """
    from scipy.special import stdtrit  # as scipy.stats.t.ppf, which takes a second to import

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
    shifts = [covariance @ shift / max(factor, 1e-300) for shift in shifts_of(jacobians, constants)]
    deviation = np.sqrt(np.maximum(np.diag(fewer), np.diag(robust)) + sum((shift**2).sum(axis=1) for shift in shifts))
    usual = np.sqrt(np.diag(covariance))
    correlation = covariance / np.outer(usual, usual)
    effective = n / memory
    freedom = max(effective - p, 1.0)
    half = stdtrit(freedom, 0.5 + 0.5 * confidence) * deviation
    joint = stdtrit(freedom, 1.0 - 0.5 * (1.0 - confidence) / p) * deviation
    values, vectors = np.linalg.eigh(correlation * np.outer(deviation, deviation))
    return Estimate(
        deviation, correlation, half, joint, float(np.sqrt(scale2)), n, effective, vectors.T[::-1],
        np.sqrt(np.maximum(values[::-1], 0.0)), blind,
    )  # fmt: skip


def shifts_of(jacobians: Sequence[np.ndarray], constants: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Find what constant errors of one standard deviation add to J^T r, (p, k) a reading.

    Parameters
    ----------
    jacobians, constants
        As for :func:`estimate`.
    """
    return [np.einsum("mcp,kc->pk", j, rows) for j, rows in zip(jacobians, constants, strict=bool(constants))]


def _memory(residual: np.ndarray) -> tuple[int, float]:
    """Window of the weights, and how many residuals go on one independent one, from the autocorrelation of all channels."""
    rho = autocorrelation(residual)
    return (2 * (len(rho) + 1) if len(rho) else 1), 1.0 + 2.0 * float(rho.sum())


def least_squares(
    residual: Callable[[np.ndarray], np.ndarray],
    jacobian: Callable[[np.ndarray], np.ndarray],
    start: np.ndarray,
    *,
    evaluations: int,
    tolerance: float,
) -> tuple[np.ndarray, bool, float]:
    """Minimise the sum of squares in the unit cube (scipy's trust-region reflective method, scaled by the Jacobian).

    Parameters
    ----------
    residual, jacobian : callable
        Of unit coordinates (p,): (n,) and (n, p).
    start : ndarray, (p,)
        Start point.
    evaluations : int
        Largest number of evaluations of ``residual``.
    tolerance : float
        Relative change of the cost or the coordinates at which it stops.

    Returns
    -------
    (ndarray, bool, float)
        The best point, whether the tolerance was reached, and the part of the cost that a step of the linear model would gain,
        however long between the bounds: not small where steps had to be short.
    """
    from scipy.optimize import least_squares as minimise, lsq_linear

    inside = np.clip(start, 2 * AT_BOUND, 1 - 2 * AT_BOUND)
    done = minimise(
        residual, inside, jac=jacobian, bounds=(0.0, 1.0), x_scale="jac", method="trf", ftol=tolerance, xtol=tolerance,
        gtol=None, max_nfev=evaluations,
    )  # fmt: skip
    ahead = lsq_linear(done.jac, -done.fun, bounds=(-done.x, 1.0 - done.x))
    return done.x, done.status > 0, 1.0 - float(ahead.cost) / max(float(done.cost), 1e-300)

"""Bootstrap: residuals are drawn again and fitted with the model linearised at the best fit. Arrays only; it needs no runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from femsim.studies.calibration.estimate import BLIND, shifts_of
from femsim.studies.comparison.agreement import autocorrelation


@dataclass(frozen=True, eq=False)
class Bootstrap:
    """Percentile intervals of a bootstrap.

    Attributes
    ----------
    low, high : ndarray, (p,)
        Ends, measured from the best fit; NaN where the residuals, or those of a draw, do not depend on the parameter.
    deviation : ndarray, (p,)
        Standard deviations of the draws.
    lengths : tuple of int
        Samples in a block, one number per reading; empty where whole trials are drawn.
    blocks : tuple of int
        Blocks in a reading, or trials.
    """

    low: np.ndarray
    high: np.ndarray
    deviation: np.ndarray
    lengths: tuple[int, ...]
    blocks: tuple[int, ...]


def bootstrap_blocks(
    residuals: Sequence[np.ndarray],
    jacobians: Sequence[np.ndarray],
    prior: np.ndarray,
    confidence: float,
    *,
    draws: int,
    seed: int,
    constants: Sequence[np.ndarray] = (),
) -> Bootstrap:
    """Draw blocks of consecutive residuals, and fit each draw with the linearised model.

    Blocks keep all channels and trials of a reading at a time together. They may start anywhere and wrap around at the end
    (the circular blocks of Politis and Romano, 1992). Residuals are centred channel by channel and widened by the degrees
    of freedom; means of priors, and what is constant in the residuals, are drawn from their distributions.

    Parameters
    ----------
    residuals, jacobians, prior, confidence, constants
        As for :func:`~femsim.studies.calibration.estimate.estimate`.
    draws, seed : int
        Number of draws, and seed.

    Returns
    -------
    Bootstrap
        Its intervals.
    """
    p, n = len(prior), sum(r.size for r in residuals)
    rng = np.random.default_rng(seed)
    gradient = np.sqrt(prior) * rng.standard_normal((draws, p))
    widened = math.sqrt(n / max(n - p, 1))
    lengths = tuple(block_length(r) for r in residuals)
    blocks = tuple(math.ceil(len(r) / length) for r, length in zip(residuals, lengths, strict=True))
    for r, j, length, count in zip(residuals, jacobians, lengths, blocks, strict=True):
        m, centred, flat = len(r), widened * (r - r.mean(axis=0)), j.reshape(-1, p)
        for draw in range(draws):
            starts = rng.integers(0, m, count)
            rows = ((starts[:, None] + np.arange(length)) % m).ravel()[:m]
            gradient[draw] += centred[rows].ravel() @ flat
    for shift in shifts_of(jacobians, constants):
        gradient += rng.standard_normal((draws, shift.shape[1])) @ shift.T
    normal = sum((np.einsum("mcp,mcq->pq", j, j) for j in jacobians), np.diag(prior))
    return _percentiles(gradient, np.tile(normal, (draws, 1, 1)), confidence, lengths, blocks)


def bootstrap_trials(
    residuals: Sequence[np.ndarray],
    jacobians: Sequence[np.ndarray],
    prior: np.ndarray,
    confidence: float,
    *,
    draws: int,
    seed: int,
    trials: Sequence[tuple[str, int]],
) -> Bootstrap:
    """Draw whole trials, and fit each draw with the linearised model.

    Deviations are widened by sqrt(T / (T - 1)) for T trials; means of priors are drawn from their distributions.

    Parameters
    ----------
    residuals, jacobians, prior, confidence, draws, seed
        As for :func:`bootstrap_blocks`; the columns of a trial are together.
    trials : sequence of (str, int)
        Experiment and number of trials of each reading. Readings of an experiment with as many trials are drawn together, as
        instruments of the same runs.

    Returns
    -------
    Bootstrap
        Its intervals.
    """
    p = len(prior)
    rng = np.random.default_rng(seed)
    gradient = np.sqrt(prior) * rng.standard_normal((draws, p))
    normal = np.tile(np.diag(prior), (draws, 1, 1))
    drawn: dict[tuple[str, int], np.ndarray] = {}
    for r, j, (experiment, count) in zip(residuals, jacobians, trials, strict=True):
        if (experiment, count) not in drawn:
            picks = rng.integers(0, count, (draws, count))
            drawn[experiment, count] = np.stack([(picks == t).sum(axis=1) for t in range(count)], axis=1).astype(float)
        times = drawn[experiment, count]
        r_of, j_of = r.reshape(len(r), count, -1), j.reshape(len(j), count, -1, p)
        gradient += math.sqrt(count / (count - 1)) * (times - 1.0) @ np.einsum("mtc,mtcp->tp", r_of, j_of)
        normal += np.einsum("dt,tpq->dpq", times, np.einsum("mtcp,mtcq->tpq", j_of, j_of))
    return _percentiles(gradient, normal, confidence, (), tuple(count for _, count in trials))


def _percentiles(
    gradient: np.ndarray, normal: np.ndarray, confidence: float, lengths: tuple[int, ...], blocks: tuple[int, ...]
) -> Bootstrap:
    """Solve for the change of the best fit in each draw, and take percentiles."""
    strength = np.sqrt(np.einsum("dpp->dp", normal))
    blind = strength.min(axis=0) <= BLIND * max(1.0, float(strength.max(initial=0.0)))
    changes = -np.linalg.solve(normal + np.diag(np.where(blind, 1.0, 0.0)), gradient[..., None])[..., 0]
    changes[:, blind] = np.nan
    low, high = np.quantile(changes, [0.5 - 0.5 * confidence, 0.5 + 0.5 * confidence], axis=0)
    return Bootstrap(low, high, changes.std(axis=0), lengths, blocks)


def block_length(residual: np.ndarray) -> int:
    """Choose the block length that makes the error of a variance smallest (Politis and White, 2004).

    (2 G^2 / D)^(1/3) m^(1/3) with G the sum of |k| rho(k) over the lags k of both signs and D = 4/3 (sum of rho(k))^2
    (Econometric Reviews 23, corrected by Patton, Politis and White, 28, 2009). Departure: rho is cut off where it is no larger
    than chance, not weighted.

    Parameters
    ----------
    residual : ndarray, (m, c)
        Residuals of a reading.

    Returns
    -------
    int
        From 1 for white residuals to about a quarter of m, where lags end.
    """
    rho = autocorrelation(residual)
    if not len(rho):
        return 1
    G, total = 2.0 * float(np.arange(1, len(rho) + 1) @ rho), 1.0 + 2.0 * float(rho.sum())
    return math.ceil((1.5 * G**2 / total**2 * len(residual)) ** (1 / 3))

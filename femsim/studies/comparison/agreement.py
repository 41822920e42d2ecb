"""Formulas that compare a simulated with a measured signal; every comparison with a log uses these and no others."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

#: Part of the largest value beside it below which a change of a signal is rounding.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Agreement:
    """How well a simulated signal s follows a measured one m on the same n times.

    A value that the signals do not define, such as the correlation of a constant, is NaN.

    Attributes
    ----------
    rmse : float, unit of the signal
        sqrt(mean((s - m)^2)).
    nrmse : float, 1
        ``rmse`` by the range max(m) - min(m).
    bias : float, unit of the signal
        mean(s - m).
    peak_error : float, unit of the signal
        max|s| - max|m|, each at its own time.
    largest_error : float, unit of the signal
        max|s - m|.
    correlation : float, 1
        Pearson's coefficient.
    gain, gain_error : float, 1
        Slope of the least-squares line m = gain s + offset, and its standard error for independent residuals. About 1 when the
        units are right, negative when the sign is wrong.
    offset : float, unit of the signal
        Constant of that line: the log where the run is zero.
    """

    rmse: float
    nrmse: float
    bias: float
    peak_error: float
    largest_error: float
    correlation: float
    gain: float
    gain_error: float
    offset: float


def agreement(simulated: np.ndarray, measured: np.ndarray, largest: float = 0.0) -> Agreement:
    """Compare two signals on the same times.

    Parameters
    ----------
    simulated, measured : ndarray, (n,)
        Finite values, the same unit, n >= 3.
    largest : float, the same unit
        Largest value of the simulated signals of its group, such as the three forces: what is rounding beside it is constant.
    """
    error = simulated - measured
    spread = float(np.ptp(measured))
    rmse = float(np.sqrt(np.mean(error**2)))
    s, m = simulated - simulated.mean(), measured - measured.mean()
    ss, mm, sm = float(s @ s), float(m @ m), float(s @ m)
    # a signal that is constant but for rounding has no slope
    s_varies = ss > max(1e-24 * max(float(simulated @ simulated), 1e-300), len(s) * (_ROUNDING * largest) ** 2)
    m_varies = mm > 1e-24 * max(float(measured @ measured), 1e-300)
    gain = gain_error = offset = math.nan
    if s_varies:
        gain = sm / ss
        offset = float(measured.mean() - gain * simulated.mean())
        gain_error = math.sqrt(max(mm - gain * sm, 0.0) / (len(s) - 2) / ss)
    return Agreement(
        rmse=rmse,
        nrmse=rmse / spread if spread > 0 else math.nan,
        bias=float(error.mean()),
        peak_error=float(np.abs(simulated).max() - np.abs(measured).max()),
        largest_error=float(np.abs(error).max()),
        correlation=sm / math.sqrt(ss * mm) if s_varies and m_varies else math.nan,
        gain=gain,
        gain_error=gain_error,
        offset=offset,
    )


def vector_rmse(simulated: np.ndarray, measured: np.ndarray) -> tuple[float, float]:
    """Compare vectors by the length of their difference: root mean square and maximum.

    Parameters
    ----------
    simulated, measured : ndarray, (n, c)
        Finite values, the same unit.
    """
    squared = ((simulated - measured) ** 2).sum(axis=1)
    return float(np.sqrt(squared.mean())), float(np.sqrt(squared.max()))


def mean_and_confidence(values: Sequence[float]) -> tuple[float, float]:
    """Mean of repeated trials and half the width of its 95 % confidence interval (Student's t).

    Parameters
    ----------
    values : sequence of float
        One number per trial; those that are not finite are left out. With fewer than two, the half width is NaN.
    """
    from scipy.special import stdtrit  # as scipy.stats.t.ppf, which takes a second to import

    finite = np.array([x for x in values if math.isfinite(x)])
    if not len(finite):
        return math.nan, math.nan
    if len(finite) == 1:
        return float(finite[0]), math.nan
    half = float(stdtrit(len(finite) - 1, 0.975)) * float(finite.std(ddof=1)) / math.sqrt(len(finite))
    return float(finite.mean()), half


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

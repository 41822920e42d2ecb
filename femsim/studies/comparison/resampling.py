"""Records on another clock: even samples, common grids, gaps, and a low-pass filter."""

from __future__ import annotations

import math

import numpy as np

#: Usual intervals that make a gap.
_GAP = 5.0
#: Samples come in packets where at least so many long intervals, at most so many samples apart, take most of the time, and this
#: part of them is of one length.
_LEAST_PACKETS, _MOST_IN_PACKET, _REGULAR = 5, 100, 0.8


def lowpass(values: np.ndarray, rate: float, cutoff: float, order: int = 4) -> np.ndarray:
    """Filter by a zero-phase Butterworth low-pass (forwards and backwards, so the order counts twice).

    Parameters
    ----------
    values : ndarray, (n, k)
        Evenly sampled; NaN is bridged by a line before filtering.
    rate : float, Hz
        Sampling rate.
    cutoff : float, Hz
        Cut-off frequency (half the amplitude there), below half the rate.
    order : int
        Order of one pass.
    """
    from scipy.signal import butter, sosfiltfilt

    sections = butter(order, cutoff, fs=rate, output="sos")
    pad = min(len(values) - 1, 3 * (2 * len(sections) + 1), max(1, int(min(3 * rate / cutoff, len(values)))))
    return np.asarray(sosfiltfilt(sections, fill_gaps(values), axis=0, padlen=pad))


def fill_gaps(values: np.ndarray) -> np.ndarray:
    """Bridge NaN by lines, column by column, (n, k); a column without any number becomes zero."""
    out = np.array(values, dtype=np.float64)
    index = np.arange(len(out))
    for column in out.T:
        good = np.isfinite(column)
        if not good.all():
            column[:] = np.interp(index, index[good], column[good]) if good.any() else 0.0
    return out


def resample(time: np.ndarray, values: np.ndarray, grid: np.ndarray) -> np.ndarray:
    """Values on another grid by monotone cubic interpolation (no overshoot at jumps), (len(grid), k).

    Parameters
    ----------
    time : ndarray, (n,), s
        Ascending.
    values : ndarray, (n, k)
        NaN is bridged by lines.
    grid : ndarray, s
        Within the time.
    """
    if len(grid) == len(time) and np.allclose(grid, time, rtol=0, atol=1e-9):
        return fill_gaps(values)
    from scipy.interpolate import PchipInterpolator

    with np.errstate(over="ignore"):  # its harmonic mean of slopes, where one is next to zero
        return np.asarray(PchipInterpolator(time, fill_gaps(values), axis=0)(grid))


def usual_interval(time: np.ndarray) -> tuple[float, float]:
    """Find the usual interval of a record, and the longest one that is no gap: five of them.

    Where samples arrive in packets, their stamps are next to each other, and most of the time passes between packets. Then the
    usual interval is the mean one, and five packets late is a gap.

    Parameters
    ----------
    time : ndarray, (n,), s
        Ascending.

    Returns
    -------
    (float, float)
        s.
    """
    steps = np.diff(time)
    usual = float(np.median(steps))
    between = steps[steps > _GAP * usual]
    if len(between) >= max(_LEAST_PACKETS, len(steps) / _MOST_IN_PACKET) and between.sum() > 0.5 * steps.sum():
        period = float(np.median(between))
        if np.mean((between > 0.5 * period) & (between < 2.0 * period)) > _REGULAR:
            return float(steps[steps <= _GAP * period].mean()), _GAP * period
    return usual, _GAP * usual


def gap_mask(time: np.ndarray, values: np.ndarray, grid: np.ndarray) -> tuple[np.ndarray, float]:
    """Say which grid times the record covers: false in gaps, see :func:`usual_interval`.

    Parameters
    ----------
    time : ndarray, (n,), s
        Ascending times of the record.
    values : ndarray, (n, k)
        A row with any NaN is no sample.
    grid : ndarray, s
        Times in question.

    Returns
    -------
    (ndarray of bool, float)
        The mask, and the longest gap in s (0 when there is none).
    """
    good = np.isfinite(values).all(axis=1)
    if good.sum() < 2:
        return np.zeros(len(grid), dtype=bool), math.inf
    usual, most = usual_interval(time)
    kept = time[good]
    place = np.clip(np.searchsorted(kept, grid, side="right"), 1, len(kept) - 1)
    width = np.diff(kept)
    slack = 1e-9 + 1e-6 * usual
    inside = (grid >= kept[0] - slack) & (grid <= kept[-1] + slack)
    on_sample = np.minimum(np.abs(grid - kept[place - 1]), np.abs(grid - kept[place])) <= slack
    longest = float(width.max())
    return inside & ((width[place - 1] <= most) | on_sample), longest if longest > most else 0.0


def evenly(time: np.ndarray, values: np.ndarray, least: int) -> tuple[np.ndarray, np.ndarray]:
    """Even time stamps at the usual rate of a record, and its values there.

    Parameters
    ----------
    time : ndarray, (n,), s
        Ascending, from 0.
    values : ndarray, (n, k)
        NaN is bridged by lines.
    least : int
        Samples at least.
    """
    interval = np.diff(time)
    usual, _ = usual_interval(time)
    if np.allclose(interval, usual, rtol=1e-3):
        return time, fill_gaps(values)
    count = max(math.floor(time[-1] / usual * (1 + 1e-12)) + 1, least)
    even = np.linspace(0.0, time[-1], count)
    return even, resample(time, values, even)

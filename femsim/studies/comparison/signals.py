"""Signals of logs and runs: low-pass filters, common time grids, the lag between records."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


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
    pad = min(len(values) - 1, 3 * (2 * len(sections) + 1), max(1, int(3 * rate / cutoff)))
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


_GAINS = (0.5, 2.0)


@dataclass(frozen=True)
class Lag:
    """Best alignment of two records.

    Attributes
    ----------
    samples : float
        Sample j of the second record belongs to sample j + samples of the first.
    explained : float
        Part of the variation that the aligned records share, 0 to 1.
    """

    samples: float
    explained: float


def find_lag(
    first: np.ndarray, second: np.ndarray, weights: np.ndarray, *, least: int, greatest: int, near: int | None = None
) -> Lag | None:
    """Find the lag between two evenly sampled records by normalised cross-correlation over their overlap.

    For each whole shift, a line second = gain first + offset with a gain from 1/2 to 2 is laid through the overlap; the part of
    the second record's variation that it explains, times the part of the shorter record's variation that lies in the overlap, is
    summed over the channels by weight. A parabola through the best three gives the fraction of a sample. Where that explains
    less than 0.8, and any gain of any sign in each channel (the squared correlation) leaves less than half of the rest
    unexplained, the latter counts: a wrong unit or sign. It is not the first choice, since records that swing and die out look
    alike half a period or many periods later. Overlaps shorter than half the shorter record are not looked at.

    Parameters
    ----------
    first, second : ndarray, (n, k) and (m, k)
        Records at one rate; NaN is left out.
    weights : ndarray, (k,)
        Weight of each channel, summing to 1 over those that vary.
    least, greatest : int
        Range of shifts that is looked at.
    near : int, optional
        Climb from this shift to the next best instead of looking for the best of all, with gains as above: what is left of
        a lag, in signals that repeat.

    Returns
    -------
    Lag or None
        None when no channel varies or no shift leaves enough overlap.
    """
    n, m, k = len(first), len(second), first.shape[1]
    shifts = np.arange(-(m - 1), n)
    shorter_is_first = n <= m
    positive, either = np.zeros(len(shifts)), np.zeros(len(shifts))
    allowed = (shifts >= least) & (shifts <= greatest)
    for c in range(k):
        good_a, good_b = np.isfinite(first[:, c]), np.isfinite(second[:, c])
        if weights[c] <= 0 or not good_a.any() or not good_b.any():
            continue
        one_a, one_b = good_a.astype(float), good_b.astype(float)
        a = np.where(good_a, first[:, c] - first[good_a, c].mean(), 0.0)
        b = np.where(good_b, second[:, c] - second[good_b, c].mean(), 0.0)
        total_a, total_b = float(a @ a), float(b @ b)
        if total_a <= 0 or total_b <= 0:
            continue
        count = np.maximum(np.round(_correlate(one_a, one_b)), 1.0)
        sum_a, sum_b = _correlate(a, one_b), _correlate(one_a, b)
        var_a = np.maximum(_correlate(a * a, one_b) - sum_a**2 / count, 1e-9 * total_a)
        var_b = np.maximum(_correlate(one_a, b * b) - sum_b**2 / count, 1e-9 * total_b)
        covariance = _correlate(a, b) - sum_a * sum_b / count
        gain = np.clip(covariance / var_a, *_GAINS)
        fitted = np.clip((2.0 * gain * covariance - gain**2 * var_a) / var_b, 0.0, 1.0)
        r = np.clip(covariance / np.sqrt(var_a * var_b), -1.0, 1.0)
        share = np.minimum(var_a / total_a if shorter_is_first else var_b / total_b, 1.0)
        allowed &= count >= 0.5 * min(one_a.sum(), one_b.sum())
        positive += weights[c] * share * fitted
        either += weights[c] * share * r**2
    if not allowed.any() or not positive[allowed].max(initial=0.0) + either[allowed].max(initial=0.0) > 0:
        return None
    best = [int(np.argmax(np.where(allowed, score, -1.0))) for score in (positive, either)]
    any_gain = near is None and positive[best[0]] < 0.8 and (1.0 - either[best[1]]) < 0.5 * (1.0 - positive[best[0]])
    score, at = (either, best[1]) if any_gain else (positive, best[0])
    if near is not None:
        at = near + m - 1
        for side in (-1, 1):
            while 0 < at < len(shifts) - 1 and allowed[at + side] and score[at + side] > score[at]:
                at += side
    fraction = 0.0
    if 0 < at < len(shifts) - 1 and allowed[at - 1] and allowed[at + 1]:
        left, middle, right = score[at - 1 : at + 2]
        curvature = left - 2.0 * middle + right
        fraction = 0.5 * (left - right) / curvature if curvature < 0 else 0.0
    return Lag(float(shifts[at] + np.clip(fraction, -0.5, 0.5)), float(score[at]))


def _correlate(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """sum_j a[j + shift] b[j] for all shifts from -(len(b) - 1) to len(a) - 1."""
    from scipy.signal import correlate

    return np.asarray(correlate(a, b, mode="full", method="auto"))


def variation_weights(values: np.ndarray, groups: Sequence[str]) -> np.ndarray:
    """Weight of each channel in an alignment: its part of the variation of its group (force, torque, a marker), groups alike.

    Parameters
    ----------
    values : ndarray, (n, k)
        Record; NaN is left out.
    groups : sequence of str
        Group of each channel.

    Returns
    -------
    ndarray, (k,)
        Sums to 1, or is zero when nothing varies.
    """
    filled = fill_gaps(values)
    variance = filled.var(axis=0)
    variance[variance <= 1e-24 * np.maximum((filled**2).mean(axis=0), 1e-300)] = 0.0
    out = np.zeros(len(groups))
    for group in dict.fromkeys(groups):
        own = np.array([g == group for g in groups])
        total = float(variance[own].sum())
        if total > 0:
            out[own] = variance[own] / total
    return out / out.sum() if out.sum() > 0 else out


def gap_mask(time: np.ndarray, values: np.ndarray, grid: np.ndarray) -> tuple[np.ndarray, float]:
    """Say which grid times the record covers: false in gaps longer than five of its usual intervals.

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
    usual = float(np.median(np.diff(time)))
    kept = time[good]
    place = np.clip(np.searchsorted(kept, grid, side="right"), 1, len(kept) - 1)
    width = np.diff(kept)
    slack = 1e-9 + 1e-6 * usual
    inside = (grid >= kept[0] - slack) & (grid <= kept[-1] + slack)
    on_sample = np.minimum(np.abs(grid - kept[place - 1]), np.abs(grid - kept[place])) <= slack
    longest = float(width.max())
    return inside & ((width[place - 1] <= 5.0 * usual) | on_sample), longest if longest > 5.0 * usual else 0.0

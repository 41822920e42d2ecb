"""When in the run a log starts: the lag between two records, by cross-correlation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from femsim.base.errors import InputError
from femsim.studies.comparison.log import Log
from femsim.studies.comparison.resampling import fill_gaps, gap_mask, resample, usual_interval

_MOST_ALIGNED = 200_000  # samples in the search for the lag
_SHORT = 1_000_000  # products of samples; fewer are summed one by one sooner than by Fourier transforms
_FARTHEST = 1e15  # s; beyond any overlap
#: A torque that varies by less than this part of a force (N m by N), or a force by less than this part of a torque, is none.
_ROUNDING = 1e-9
#: Records that differ by less than this part of their variation are the same, and need no fraction of a sample.
SAME = 1e-9
#: How far around the best lag it is looked for by a parabola, samples, from coarse to fine.
_REACHES = (1.0, 0.25, 0.0625)
#: Units that clocks without a unit often have, s, and seconds under a header that says ms; and how many times as long as a run a
#: log may be.
_UNITS, _ALIKE_LONG = {"ms": 1e-3, "us": 1e-6, "ns": 1e-9, "s": 1e3}, 10.0
#: Of a log over the run, where units are right: with the sign of the run, and with the other one.
_GAINS, _TURNED = (0.5, 2.0), (-2.0, -0.5)
_ANY = (-math.inf, math.inf)
#: Another gain decides where it leaves less than this part of what the best one of these leaves unexplained, and is spoken of
#: where it leaves less than the second, or, of another size, the third; both where it explains so much more.
_DECIDES, _SPOKEN, _SIZED, _MORE = 0.5, 0.9, 0.25, 3e-3
#: Below this score no start fits well.
_POOR = 0.8
#: A start that a card gives is doubted where one that lies more than so many intervals of the slower record away fits better, and
#: those that fit alike lie within this part of the shorter record.
_LEAST_APART, _UNCLEAR = 1.5, 0.05
#: Scores say nothing about which lag is right where they differ by less than this part of what the best one leaves unexplained,
#: and this more, but at most by this.
_ALIKE = (0.05, 1e-5, 1e-3)


class Start(NamedTuple):
    """When in a run a log starts.

    Attributes
    ----------
    offset : float, s
        Time of the run at the first sample of the log.
    explained : float, 1
        Part of the variation that both share there, 0 to 1; NaN where the card gives the offset, as the next one.
    uncertain : float, s
        How far apart times lie that fit as well.
    better : str
        What another sign or gain, or another start than that of the card, would change for the better; "" for nothing.
    """

    offset: float
    explained: float
    uncertain: float
    better: str = ""


def find_offset(
    run_time: np.ndarray, simulated: np.ndarray, run_rate: float, log: Log, time: np.ndarray, values: np.ndarray
) -> Start:
    """Find when in the run a log starts.

    Parameters
    ----------
    run_time, simulated : ndarray, (n,) s and (n, k)
        The run.
    run_rate : float, Hz
        Its sampling rate.
    log : Log
        Its card may give the offset, or the largest one.
    time, values : ndarray, (m,) s and (m, k)
        The log at even times, filtered.

    Returns
    -------
    Start

    Raises
    ------
    InputError
        One of them does not vary, or no overlap is left.
    """
    card = log.card
    longest = max(float(run_time[-1] - run_time[0]), float(time[-1]))
    rate = min(max(run_rate, log.rate), _MOST_ALIGNED / longest)
    run_grid = np.arange(run_time[0], run_time[-1] + 1e-9, 1.0 / rate)
    log_grid = np.arange(0.0, time[-1] + 1e-9, 1.0 / rate)
    covered, _ = gap_mask(log.time, log.values, log_grid)
    second = resample(time, values, np.minimum(log_grid, time[-1]))
    second[~covered] = np.nan
    weights = variation_weights(second, [c.group for c in log.channels])
    first = resample(run_time, simulated, np.minimum(run_grid, run_time[-1]))
    if card.time.offset != "auto":
        given, begins = float(card.time.offset), float(run_time[0])
        between = np.diff(log.time)  # of samples in packets the stamps are late by up to a packet
        apart = _LEAST_APART * max(1.0 / run_rate, float(between[between <= usual_interval(log.time)[1]].max()))
        return Start(given, math.nan, math.nan, _fits_better(first, second, weights, begins, rate, given, apart))
    reach = min(card.time.max_lag or math.inf, _FARTHEST)
    bounds = [(sign * reach - run_time[0]) * rate for sign in (-1.0, 1.0)]
    lag = find_lag(first, second, weights, least=math.floor(bounds[0]), greatest=math.ceil(bounds[1]))
    if lag is None:
        raise InputError(
            f"the log {log.source} cannot be aligned with the run: one of them does not vary, or time.max_lag leaves "
            f"no overlap; give time.offset in the card.{clock_hint(log, float(run_time[-1] - run_time[0]))}"
        )
    better = ""
    if lag.other is not None:
        shift, explained, how = lag.other
        better = (
            f"{how}, and from {run_time[0] + shift / rate:.4g} s of the run on, it would share {100 * explained:.1f} instead of "
            f"{100 * lag.explained:.1f} % of its variation: check its sign and unit, or give time.offset in the card"
        )
    return Start(float(run_time[0] + lag.samples / rate), lag.explained, lag.uncertain / rate, better)


def _fits_better(
    first: np.ndarray, second: np.ndarray, weights: np.ndarray, begins: float, rate: float, given: float, apart: float
) -> str:
    """Say which start fits far better than the one that a card gives; "" for none, or one that is not clear or within ``apart``.

    ``begins`` is when the first record does, in s, as ``given`` and ``apart``.
    """
    found = find_lag(first, second, weights, least=-len(second), greatest=len(first))
    if found is None or found.uncertain > _UNCLEAR * min(len(first), len(second)):
        return ""
    scores, _, allowed = _scores(first, second, weights)
    at = round(min(max((given - begins) * rate + len(second) - 1, -1.0), float(len(allowed))))
    # by any gain: where that of a wrong unit is all that is wrong, the clock is right
    shared = float(scores[:, at].max()) if 0 <= at < len(allowed) and allowed[at] else 0.0
    start = begins + found.samples / rate
    better = found.explained > max(_POOR, shared + _MORE) and 1.0 - found.explained < _DECIDES * (1.0 - shared)
    if not better or abs(start - given) <= apart:
        return ""
    return (
        f"from {start:.4g} s of the run on, instead of {given:.4g} s as time.offset of the card says, it would share "
        f"{100 * found.explained:.1f} instead of {100 * shared:.1f} % of its variation: check its clock"
    )


def clock_hint(log: Log, lasts: float) -> str:
    """Say which unit the times of a log seem to have where it is so many times as long as the run; "" for none."""
    for unit, factor in _UNITS.items():
        if log.card.time.unit is None and 1.0 / _ALIKE_LONG < factor * log.time[-1] / lasts < _ALIKE_LONG:
            return (
                f" The log lasts {log.time[-1]:.3g} s and the run {lasts:.3g} s: if its times are in {unit}, set time.unit = "
                f'"{unit}" in the card.'
            )
    return ""


@dataclass(frozen=True)
class Lag:
    """Best alignment of two records.

    Attributes
    ----------
    samples : float
        Sample j of the second record belongs to sample j + samples of the first.
    explained : float
        Part of the variation that the aligned records share, 0 to 1.
    uncertain : float
        How far apart shifts lie whose scores are next to the best one, samples.
    other : tuple of int, float and str, optional
        Shift, and the part of the variation shared there, that is better by another gain, but not by so much that it was taken;
        and in words by which.
    """

    samples: float
    explained: float
    uncertain: float
    other: tuple[int, float, str] | None = None


def find_lag(
    first: np.ndarray, second: np.ndarray, weights: np.ndarray, *, least: int, greatest: int, near: int | None = None
) -> Lag | None:
    """Find the lag between two evenly sampled records by normalised cross-correlation over their overlap.

    For each whole shift, a line second = gain first + offset with a gain from 1/2 to 2 is fitted to the overlap. Its score is the
    part of the second record's variation that it explains, times the part of a record's variation that lies in the overlap,
    summed over the channels by weight. That part is the larger one of the two records: one of them may end early, and the other
    one rest before it begins. From the best shift it climbs to the next peak of what is explained of samples
    that neighbouring shifts share. A parabola through what the best shift and its neighbours explain of the samples that all
    three have gives the fraction of a sample: overlaps of their own would bend it towards the longest one. Kinks bend it too,
    so it is repeated a quarter and a sixteenth of a sample around its top, between samples of the first record, the run, which
    has less noise to smooth there. Where a gain from -2
    to -1/2 leaves less than half of the rest unexplained, or, where the best score is below 0.8, a gain of any size and sign in
    each channel does (the squared correlation), that other score decides: a sign or a unit is wrong. It does not come first,
    because records that oscillate and decay look alike half a period or many periods later. Overlaps shorter than half the
    shorter record are skipped.

    Parameters
    ----------
    first, second : ndarray, (n, k) and (m, k)
        Records at one rate; NaN is left out.
    weights : ndarray, (k,)
        Weight of each channel, summing to 1 over those that vary.
    least, greatest : int
        Range of shifts.
    near : int, optional
        Climb from this shift instead of searching the whole range: the remaining lag of signals that repeat.

    Returns
    -------
    Lag or None
        None when no channel varies or no shift leaves enough overlap.
    """
    n, m = len(first), len(second)
    shifts = np.arange(-(m - 1), n)
    scores, covered, allowed = _scores(first, second, weights)
    allowed &= (shifts >= least) & (shifts <= greatest)
    if not allowed.any() or not sum(score[allowed].max(initial=0.0) for score in scores) > 0:
        return None
    best = [int(np.argmax(np.where(allowed, score, -1.0))) for score in scores]
    most = [float(score[at]) for score, at in zip(scores, best, strict=True)]
    fits = [score / max(float(covered[at]), 1e-300) for score, at in zip(most, best, strict=True)]  # of the overlap alone

    def better(k: int, part: float, than: int = 0) -> bool:
        less = all(1.0 - own[k] < part * (1.0 - own[than]) for own in ((most,) if most[than] < _POOR else (most, fits)))
        return near is None and less and most[k] > most[than] + _MORE

    k = 1 if better(1, _DECIDES) else 0
    k = 2 if most[k] < _POOR and better(2, _DECIDES, k) else k
    score, gains = scores[k], (_GAINS, _TURNED, _ANY)[k]
    at = _climbed(first, second, weights, best[k] if near is None else near + m - 1, allowed, gains)
    lag = float(shifts[at])
    if 0 < at < len(shifts) - 1 and allowed[at - 1] and allowed[at + 1]:
        for reach in _REACHES:
            left, middle, right = _same_samples(first, second, weights, lag, gains, reach)
            curvature = left - 2.0 * middle + right
            if curvature < 0 and middle < 1.0 - SAME:
                lag += reach * float(np.clip(0.5 * (left - right) / curvature, -0.5, 0.5))
    alike = shifts[allowed & (score >= most[k] - min(_ALIKE[0] * (1.0 - most[k]) + _ALIKE[1], _ALIKE[2]))]
    other = None
    if k == 0 and better(1, _SPOKEN):
        other = (int(shifts[best[1]]), most[1], "turned to the opposite sign")
    if k < 2 and abs(best[2] - best[k]) > 1 and better(2, _SIZED, k):
        other = (int(shifts[best[2]]), most[2], "by a gain beyond 1/2 to 2")
    return Lag(lag, float(score[at]), float(np.ptp(alike)), other)


def _climbed(
    first: np.ndarray, second: np.ndarray, weights: np.ndarray, at: int, allowed: np.ndarray, gains: tuple[float, float]
) -> int:
    """Climb from a shift to the next peak of what is explained of the samples that neighbouring shifts share.

    The score prefers long overlaps, by which it misses the lag of a record that ends while its force still grows, or that rises
    and holds.
    """
    side = 0
    while 0 < at < len(allowed) - 1 and allowed[at - 1] and allowed[at + 1]:
        left, middle, right = _same_samples(first, second, weights, at - len(second) + 1, gains)
        if middle >= 1.0 - SAME or max(left, right) <= middle:
            break
        step = -1 if left > right else 1
        if step == -side:
            break
        side, at = step, at + step
    return at


def _same_samples(
    first: np.ndarray, second: np.ndarray, weights: np.ndarray, shift: float, gains: tuple[float, float], reach: float = 1.0
) -> tuple[float, float, float]:
    """Return what a shift, and those so far before and after, explain of the samples of the second that all of them overlap."""
    begin, end = max(0, -math.floor(shift - reach)), min(len(second), len(first) - math.ceil(shift + reach))
    b = second[begin:end]
    three = [_between(first, begin, end, shift + d) for d in (-reach, 0.0, reach)]
    good = np.isfinite(b) & np.isfinite(three[0]) & np.isfinite(three[1]) & np.isfinite(three[2])
    found = [0.0, 0.0, 0.0]
    for c in np.flatnonzero((weights > 0) & (good.sum(axis=0) > 2)):
        own = b[good[:, c], c]
        own = own - own.mean()
        for k, a in enumerate(three):
            other = a[good[:, c], c]
            other = other - other.mean()
            var_a, var_b, covariance = float(other @ other), float(own @ own), float(other @ own)
            if var_a > 0 and var_b > 0:
                gain = float(np.clip(covariance / var_a, *gains))
                found[k] += float(weights[c]) * (2.0 * gain * covariance - gain**2 * var_a) / var_b
    return found[0], found[1], found[2]


def _between(values: np.ndarray, begin: int, end: int, shift: float) -> np.ndarray:
    """Take samples from begin to end of a record that is shifted, on lines between its own."""
    whole = math.floor(shift)
    part, own = shift - whole, values[begin + whole : end + whole]
    return own if part == 0.0 else own + part * (values[begin + whole + 1 : end + whole + 1] - own)


def _scores(first: np.ndarray, second: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Score all shifts by a bounded gain of either sign and by any gain, (3, n + m - 1).

    Also return, (n + m - 1,) each, the part of the variation that overlaps, and where enough overlaps.
    """
    n, m, k = len(first), len(second), first.shape[1]
    scores, covered, enough = np.zeros((3, n + m - 1)), np.zeros(n + m - 1), np.ones(n + m - 1, dtype=bool)
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
        r = np.clip(covariance / np.sqrt(var_a * var_b), -1.0, 1.0)
        share = np.minimum(np.maximum(var_a / total_a, var_b / total_b), 1.0)
        enough &= count >= 0.5 * min(one_a.sum(), one_b.sum())
        for score, gains in ((scores[0], _GAINS), (scores[1], _TURNED)):
            gain = np.clip(covariance / var_a, *gains)
            score += weights[c] * share * np.clip((2.0 * gain * covariance - gain**2 * var_a) / var_b, 0.0, 1.0)
        scores[2] += weights[c] * share * r**2
        covered += weights[c] * share
    return scores, covered, enough


def _correlate(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """sum_j a[j + shift] b[j] for all shifts from -(len(b) - 1) to len(a) - 1."""
    if len(a) * len(b) < _SHORT:
        return np.correlate(a, b, mode="full")
    from scipy.fft import irfft, next_fast_len, rfft  # scipy.signal does the same, and takes a second and a half to import

    count = len(a) + len(b) - 1
    length = next_fast_len(count, real=True)
    return np.asarray(irfft(rfft(a, length) * rfft(b[::-1], length), length)[:count])


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
    wrench = all(group in ("force", "torque") for group in groups)
    largest = float(variance.max(initial=0.0)) if wrench else 0.0  # of a run as a log, torques may be rounding errors alone
    out = np.zeros(len(groups))
    for group in dict.fromkeys(groups):
        own = np.array([g == group for g in groups])
        total = float(variance[own].sum())
        if total > _ROUNDING**2 * largest:
            out[own] = variance[own] / total
    return out / out.sum() if out.sum() > 0 else out

"""Compare a run with logs of experiments: one clock, one frame, one grid, one filter, then numbers by axis."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from femsim.base.errors import InputError, naming_parameters
from femsim.base.units import UNITS
from femsim.run.result import Run
from femsim.studies.comparison.agreement import Agreement, agreement, autocorrelation, vector_rmse
from femsim.studies.comparison.alignment import clock_hint, find_lag, find_offset
from femsim.studies.comparison.card import Card, read_card
from femsim.studies.comparison.comparison import Comparison, Trial
from femsim.studies.comparison.log import LEAST_SAMPLES, Log, check_once, read_log, tare_mean
from femsim.studies.comparison.readers import Channel
from femsim.studies.comparison.resampling import evenly, gap_mask, lowpass, resample
from femsim.studies.comparison.run_series import RunSeries, read_run
from femsim.studies.comparison.words import constant_hint

#: A lag is uncertain where others fit alike that lie further apart than this part of the shorter record.
_UNCERTAIN = 0.05
#: Part of the range of markers that the run may have moved when those of a log count as at rest.
_MOVED = 0.05
#: Samples of a tare window that tell how they scatter.
_LEAST_SCATTER = 4
#: Samples of a grid that a card may ask for.
_MOST_SAMPLES = 5_000_000
#: A constant part of the misfit is spoken of from this part of its square on, where it is so many times what is left, and from so
#: many N on.
_MOST, _NOTICED, _LEAST_FORCE = 0.8, 0.5, 1e-3
#: It is taken for a weight where it lies along gravity (cosine), and for that of a body whose mass is so near.
_ALONG, _SAME_MASS = 0.97, 0.05
#: Run and log have one shape, of the same or of the other sign, from this correlation on.
_ALIKE = 0.9
#: A gain is that of a unit where its logarithm is so near.
_SAME_UNIT = 0.01
#: A lag that remains is told where run and log share this part of the variation.
_SHARED = 0.5

LogLike = Log | str | Path


@naming_parameters
def compare(
    run: Run | RunSeries | str | Path,
    log: LogLike | Sequence[LogLike],
    card: Card | Mapping[str, Any] | str | Path | None = None,
    *,
    sensor: str | None = None,
) -> Comparison:
    """Compare a run with the log of an experiment, or with several logs of the same experiment.

    Parameters
    ----------
    run : Run, RunSeries or path
        A run in memory, its series, or a run folder; an interrupted one is compared as far as it went.
    log : path or Log, or a sequence of them
        What ``read_log`` reads, or what it gave (which saves reading it again, as in a calibration). Several
        logs are repeated trials: each is aligned by itself, and the run is compared with their mean where all of them have data.
    card : Card, mapping or path, optional
        What the files of the logs do not say, see :class:`~femsim.studies.comparison.card.Card`; for all of them.
    sensor : str, optional
        Sensor of the run, instead of that of the card.

    Returns
    -------
    Comparison

    Raises
    ------
    InputError
        No run, no log, no common channel or time, or a log or card that is wrong.
    """
    series = read_run(run)
    given = [log] if isinstance(log, (Log, str, Path)) else list(log)
    if not given:
        raise InputError("no log is given; name at least one.")
    if any(isinstance(entry, Log) for entry in given) and (card is not None or sensor is not None):
        raise InputError(
            "a log that is read already has its card; give card and sensor to read_log, or the path of the log here."
        )
    check_once([entry.source if isinstance(entry, Log) else entry for entry in given])
    card = read_card(card)
    if sensor is not None:
        card = card.for_sensor(sensor)
    if not any(isinstance(entry, Log) for entry in given):  # which have cards of their own
        series.check_instruments(card)
    logs = [
        entry if isinstance(entry, Log)
        else read_log(entry, card, sensors=series.kinds, markers=series.markers, gravity=series.gravity)
        for entry in given
    ]  # fmt: skip
    first = logs[0]
    for other in logs[1:]:
        if other.channels != first.channels or other.sensor != first.sensor:
            raise InputError(
                f"the logs {first.source} and {other.source} have different channels ({_names(first)}; {_names(other)}); compare "
                "logs of one experiment, or name the columns in a card."
            )
    return _compare(series, logs)


def _names(log: Log) -> str:
    return ", ".join(c.name for c in log.channels)


@dataclass(frozen=True, eq=False)
class _Placed:
    """A log on even times, filtered, with its place on the clock of the run."""

    log: Log
    time: np.ndarray
    values: np.ndarray
    offset: float
    explained: float
    uncertain: float
    better: str

    @property
    def end(self) -> float:
        """Time of the run at the last sample of the log, s."""
        return self.offset + float(self.time[-1])


def _compare(run: RunSeries, logs: Sequence[Log]) -> Comparison:
    card, channels = logs[0].card, logs[0].channels
    warnings = [*run.warnings, *(f"{log.source}: {text}" for log in logs for text in log.warnings)]
    run, raw = _finite_values(run, logs[0])
    single = channels[0].alone
    if logs[0].sensor is None:
        logs = [_marker_values(log, raw[0], warnings) for log in logs]
        raw = raw - raw[0] if card.marker_values == "displacement" else raw
    run_rate = (len(run.time) - 1) / float(run.time[-1] - run.time[0])
    rates = [run_rate, *(log.rate for log in logs)]
    rate = card.rate or min(rates)
    _check_rate(card, run, logs)
    cutoff = _cutoff(card, rate, rates)
    simulated = _filtered(raw, run_rate, cutoff, card)
    placed = [_place(run, simulated, run_rate, log, cutoff) for log in logs]
    doubts = _clock_doubts(run, placed)
    if card.marker_values != "position":
        doubts += [text for p in placed if (text := _moved_by_then(run, raw, p))]
    if (logs[0].sensor is not None or single) and card.tare is not None and card.tare.run:
        simulated = simulated - _tare_of_run(run, simulated, placed, warnings)
    grid = _grid(run, placed, rate, run_rate)
    on_grid = resample(run.time, simulated, grid)
    trials = [_trial(p, grid, on_grid, rate, _tare_error(run, raw, p), warnings) for p in placed]
    measured = np.mean([t.values for t in trials], axis=0)
    good = np.isfinite(measured).all(axis=1)
    if good.sum() < LEAST_SAMPLES:
        raise InputError(f"the logs have {int(good.sum())} common samples on the grid; at least {LEAST_SAMPLES} are needed.")
    axes = _agreements(channels, on_grid[good], measured[good])
    doubts += _value_doubts(run, logs[0], on_grid[good], measured[good], axes)
    if logs[0].sensor is None and not single and card.marker_values == "position":
        doubts += _frame_doubts(channels, raw, on_grid[good], measured[good])
    groups = {g: [k for k, c in enumerate(channels) if c.group == g] for g in dict.fromkeys(c.group for c in channels)}
    return Comparison(
        run=run.name,
        sensor=None if logs[0].sensor is None else run.sensor_of(logs[0]),
        channels=channels,
        time=grid,
        simulated=on_grid,
        run_time=run.time,
        run_values=simulated,
        measured=measured,
        trials=tuple(trials),
        axes=axes,
        vectors={g: vector_rmse(on_grid[good][:, own], measured[good][:, own]) for g, own in groups.items()},
        rate=rate,
        cutoff=cutoff,
        warnings=tuple(dict.fromkeys([*warnings, *doubts])),
    )


def _finite_values(run: RunSeries, log: Log) -> tuple[RunSeries, np.ndarray]:
    """Return the run on the times at which it reads the channels of a log, and what it reads, (n, k), all of it numbers."""
    time, values = run.read_for(log)
    run = replace(run, time=time)
    if not np.isfinite(values).all():
        row, column = np.argwhere(~np.isfinite(values))[0]
        raise InputError(
            f"the run {run.name} has readings that are not finite, first {log.channels[column].name} at {run.time[row]:.4g} s; "
            "see its status. A gap beyond `reach` of its sensor is infinite: raise that."
        )
    return run, values


def _clock_doubts(run: RunSeries, placed: Sequence[_Placed]) -> list[str]:
    """Say of which logs the place on the clock of the run is uncertain."""
    lasts = float(run.time[-1] - run.time[0])
    doubts = [
        f"{p.log.source}: run and log share only {100 * p.explained:.0f} % of their variation, so the lag found is uncertain; "
        "give time.offset in the card"
        for p in placed
        if p.explained < 0.5
    ]
    doubts += [
        f"{p.log.source}: starts that lie {p.uncertain:.3g} s apart fit the run alike, so the lag found is uncertain; give "
        "time.offset in the card"
        for p in placed
        if p.explained >= 0.5 and p.uncertain > _UNCERTAIN * min(float(p.time[-1]), lasts)
    ]
    return doubts + [f"{p.log.source}: {p.better}" for p in placed if p.better]


def _value_doubts(
    run: RunSeries, log: Log, simulated: np.ndarray, measured: np.ndarray, axes: Mapping[str, Agreement]
) -> list[str]:
    """Say where wrong units or signs, or a constant part, explain how run and logs differ, (n, k) each without gaps."""
    unlike = _unit_hints(log.channels, axes)
    constant = _offset_hints(run, log.channels, simulated - measured) if log.sensor is not None and not unlike else []
    doubts = [*unlike.values(), *constant]
    if not constant:
        own = [(k, c) for k, c in enumerate(log.channels) if c.name not in unlike and (c.kind != "position" or c.alone)]
        hints = [constant_hint(c, simulated[:, k], measured[:, k], axes[c.name]) for k, c in own]
        doubts += [text for text in hints if text]
    return doubts


def _marker_values(log: Log, start: np.ndarray, warnings: list[str]) -> Log:
    """Markers of a log as the card asks for them: positions, displacements, or positions fitted to the run's first row."""
    card = log.card
    if card.marker_values == "position":
        if card.tare is not None and not log.channels[0].alone:
            warnings.append("the tare of the card is not used, since marker_values is 'position'; 'displacement' counts from it")
        return log
    reference = tare_mean(log.source, log.time, log.values, card.tare)
    if card.marker_values == "displacement":
        return replace(log, values=log.values - reference)
    seen, wanted = reference.reshape(-1, 3), start.reshape(-1, 3)
    centred = seen - seen.mean(axis=0)
    if len(seen) < 3 or np.linalg.svd(centred, compute_uv=False)[1] < 1e-6:
        raise InputError(
            f"a rigid fit needs three markers that are not on a line; {log.source} gives {len(seen)}, use displacements."
        )
    u, _, vt = np.linalg.svd(centred.T @ (wanted - wanted.mean(axis=0)))
    turn = vt.T @ np.diag([1.0, 1.0, np.linalg.det(vt.T @ u.T)]) @ u.T
    left = float(np.sqrt((((centred @ turn.T) + wanted.mean(axis=0) - wanted) ** 2).sum(axis=1).mean()))
    warnings.append(f"{log.source}: the rigid fit of {len(seen)} markers leaves {1e3 * left:.3g} mm")
    moved = (log.values.reshape(len(log.values), -1, 3) - seen.mean(axis=0)) @ turn.T + wanted.mean(axis=0)
    return replace(log, values=moved.reshape(len(log.values), -1))


def _check_rate(card: Card, run: RunSeries, logs: Sequence[Log]) -> None:
    """Refuse a grid of too few or too many samples, and a filter that leaves less than a wave of a record."""
    lasts = min(float(run.time[-1] - run.time[0]), *(float(log.time[-1]) for log in logs))
    if card.rate is not None and not LEAST_SAMPLES - 1 <= lasts * card.rate <= _MOST_SAMPLES:
        raise InputError(
            f"rate is {card.rate:g} Hz, but run and log have {lasts:.4g} s in common at most; allowed is what gives "
            f"{LEAST_SAMPLES} to {_MOST_SAMPLES} samples. Leave it out for the lower rate of both."
        )
    if card.filter is not None and card.filter.cutoff * lasts < 1.0:
        raise InputError(
            f"filter.cutoff is {card.filter.cutoff:g} Hz, but run and log have {lasts:.4g} s in common at most, less than one "
            f"wave of it; it must be above {1.0 / lasts:.3g} Hz."
        )


def _moved_by_then(run: RunSeries, raw: np.ndarray, placed: _Placed) -> str:
    """Say that the run has moved by when a log's markers count from, whereas its own count from its first row; "" for no."""
    log, tare = placed.log, placed.log.card.tare
    there = np.isfinite(log.values).all(axis=1)
    if tare is not None:
        there &= (log.time >= tare.start) & (log.time <= tare.end)
    times = placed.offset + (log.time[there] if tare is not None else log.time[there][:1])
    times = times[(times >= run.time[0]) & (times <= run.time[-1])]
    if not len(times):
        return ""
    moved = np.abs(resample(run.time, raw, times).mean(axis=0) - raw[0])
    if moved.max() <= _MOVED * float(np.ptp(raw, axis=0).max()):
        return ""
    return (
        f"{log.source}: its markers count from {times[0]:.4g} s of the run, when they are up to {1e3 * moved.max():.3g} mm from "
        "the run's first row, from which those of the run count; start the log, or a tare window, where the run rests"
    )


def _cutoff(card: Card, rate: float, rates: Sequence[float]) -> float | None:
    """Cut-off of the card; else, where a signal has more than twice the rate of the grid, what the grid can show."""
    slowest = min(rates)
    if card.filter is not None:
        if card.filter.cutoff >= 0.5 * slowest:
            raise InputError(
                f"filter.cutoff is {card.filter.cutoff:g} Hz, but the slowest signal has {slowest:.6g} samples a "
                "second; it must be below half of that."
            )
        return card.filter.cutoff
    return 0.4 * min(rate, slowest) if max(rates) > 2.0 * rate else None


def _filtered(values: np.ndarray, rate: float, cutoff: float | None, card: Card) -> np.ndarray:
    return values if cutoff is None else lowpass(values, rate, cutoff, card.filter.order if card.filter else 4)


def _place(run: RunSeries, simulated: np.ndarray, run_rate: float, log: Log, cutoff: float | None) -> _Placed:
    """Bring a log to even times, filter it and find its place on the clock of the run."""
    time, even = evenly(log.time, log.values, LEAST_SAMPLES)
    values = _filtered(even, log.rate, cutoff, log.card)
    return _Placed(log, time, values, *find_offset(run.time, simulated, run_rate, log, time, values))


def _grid(run: RunSeries, placed: Sequence[_Placed], rate: float, run_rate: float) -> np.ndarray:
    """Find the times that the run and all logs share; the run's own where the rates agree."""
    window = placed[0].log.card.window or (-math.inf, math.inf)
    start = max(float(run.time[0]), window[0], *(p.offset for p in placed))
    end = min(float(run.time[-1]), window[1], *(p.end for p in placed))
    if abs(rate / run_rate - 1.0) < 1e-6:
        grid = run.time[(run.time >= start - 1e-9) & (run.time <= end + 1e-9)]
    else:
        grid = np.arange(start, end + 1e-9, 1.0 / rate) if end > start else np.zeros(0)
    if len(grid) < LEAST_SAMPLES:
        spans = ", ".join(f"{p.log.source} {p.offset:.4g} to {p.offset + p.log.time[-1]:.4g} s" for p in placed)
        raise InputError(
            f"run and logs share {len(grid)} sample{'' if len(grid) == 1 else 's'} at {rate:g} Hz; at least {LEAST_SAMPLES} are "
            "needed. The run has "
            f"{run.time[0]:.4g} to {run.time[-1]:.4g} s, {spans}; check time.offset, window and rate of the card."
            f"{clock_hint(placed[0].log, float(run.time[-1] - run.time[0]))}"
        )
    return np.minimum(grid, run.time[-1])


def _agreements(channels: Sequence[Channel], simulated: np.ndarray, measured: np.ndarray) -> dict[str, Agreement]:
    """Compare each channel, of (n, k) each, by its name."""
    size = np.abs(simulated).max(axis=0, initial=0.0)
    largest = {c.group: max(float(size[k]) for k, other in enumerate(channels) if other.group == c.group) for c in channels}
    return {c.name: agreement(simulated[:, k], measured[:, k], largest[c.group]) for k, c in enumerate(channels)}


def _trial(
    placed: _Placed, grid: np.ndarray, simulated: np.ndarray, rate: float, tare_error: np.ndarray, warnings: list[str]
) -> Trial:
    """Compare one log with the run on the grid; its gaps stay out."""
    log, channels = placed.log, placed.log.channels
    covered, longest = gap_mask(log.time, log.values, grid - placed.offset)
    if longest > 0:
        missing = 100 * (1 - covered.mean())
        warnings.append(f"{log.source} has gaps of up to {longest:.3g} s, which are left out ({missing:.1f} % of the time)")
    values = resample(placed.time, placed.values, np.clip(grid - placed.offset, placed.time[0], placed.time[-1]))
    values[~covered] = np.nan
    if covered.sum() < max(LEAST_SAMPLES, 0.5 * len(grid)):
        raise InputError(
            f"the log {log.source} has numbers in only {100 * covered.mean():.0f} % of the time that it shares with the run; "
            "compare a part without gaps by 'window' in the card, or mend the log."
        )
    axes = _agreements(channels, simulated[covered], values[covered])
    reach, lags = len(simulated) // 10, {}
    for k, c in enumerate(channels):
        own = values[:, [k]] * (-1.0 if axes[c.name].correlation <= -_ALIKE else 1.0)
        lag = find_lag(simulated[:, [k]], own, np.ones(1), least=-reach, greatest=reach, near=0)
        known = lag is not None and abs(lag.samples) < reach and max(lag.explained, axes[c.name].correlation ** 2) >= _SHARED
        lags[c.name] = 0.0 - lag.samples / rate if lag is not None and known else math.nan
    return Trial(log.source, placed.offset, placed.explained, values, axes, lags, placed.time, placed.values, tare_error)


def _tare_error(run: RunSeries, raw: np.ndarray, placed: _Placed) -> np.ndarray:
    """Find how uncertain a log's mean in its tare window is, (r, k): as :class:`Trial` has it.

    By how the log scatters there about the run and a straight line, motion and creep being no noise, and for as many samples as
    are independent by their autocorrelation. Fewer than four samples say nothing of it.
    """
    log, tare = placed.log, placed.log.card.tare
    none = np.zeros((0, len(log.channels)))
    if tare is None or (log.sensor is None and not log.channels[0].alone and log.card.marker_values != "displacement"):
        return none
    there = (log.time >= tare.start) & (log.time <= tare.end) & np.isfinite(log.values).all(axis=1)
    time, n = log.time[there], int(there.sum())
    if n < _LEAST_SCATTER:
        return none
    apart = log.values[there] - resample(run.time, raw, np.clip(placed.offset + time, run.time[0], run.time[-1]))
    line = np.column_stack([np.ones(n), time - time.mean()])
    scatter = apart - line @ np.linalg.lstsq(line, apart, rcond=None)[0]
    memory = np.array([min(1.0 + 2.0 * float(autocorrelation(own[:, None]).sum()), float(n)) for own in scatter.T])
    return np.asarray(np.linalg.qr(scatter, mode="r") * np.sqrt(memory / (n * (n - 2.0))))


def _tare_of_run(run: RunSeries, simulated: np.ndarray, placed: Sequence[_Placed], warnings: list[str]) -> np.ndarray:
    """Mean of the run in the tare windows of the logs, (k,); where the run has not begun then, its first row.

    It is taken at the samples of the log: a mean of other samples differs where the signal changes in the window.
    """
    means = []
    for p in placed:
        tare = p.log.card.tare
        assert tare is not None
        start, end = p.offset + tare.start, p.offset + tare.end
        there = (p.log.time >= tare.start) & (p.log.time <= tare.end) & np.isfinite(p.log.values).all(axis=1)
        times = p.offset + p.log.time[there]
        times = times[(times >= run.time[0] - 1e-9) & (times <= run.time[-1] + 1e-9)]
        if not len(times):
            times = run.time[[np.argmin(np.abs(run.time - 0.5 * (start + end)))]]
            warnings.append(
                f"{p.log.source}: the tare window is from {start:.4g} to {end:.4g} s of the run, which has "
                f"{run.time[0]:.4g} to {run.time[-1]:.4g} s; the run is tared by its nearest row"
            )
        means.append(resample(run.time, simulated, np.clip(times, run.time[0], run.time[-1])).mean(axis=0))
    return np.asarray(np.mean(means, axis=0))


def _frame_doubts(channels: Sequence[Channel], raw: np.ndarray, simulated: np.ndarray, measured: np.ndarray) -> list[str]:
    """Say that markers of a log lie farther from those of the run, all along, than any of them moves; ``raw``: the whole run."""
    constant = np.linalg.norm((simulated - measured).mean(axis=0).reshape(-1, 3), axis=1)
    moves = max(float(np.linalg.norm(np.ptp(own.reshape(len(own), -1, 3), axis=0), axis=1).max()) for own in (raw, measured))
    k = int(constant.argmax())
    if constant[k] <= moves:
        return []
    return [
        f"marker {channels[3 * k].group} of the log lies {1e3 * constant[k]:.3g} mm from that of the run on average, and none "
        f"moves by more than {1e3 * moves:.3g} mm: are frame.rotation and frame.translation of the card right? Displacements "
        'need no translation (marker_values = "displacement")'
    ]


def _offset_hints(run: RunSeries, channels: Sequence[Channel], error: np.ndarray) -> list[str]:
    """Say where a constant force makes most of the misfit, and what it may be; ``error`` (n, k) is run minus log."""
    own = [k for k, c in enumerate(channels) if c.kind == "force"]
    if not own:
        return []
    constant = error[:, own].mean(axis=0)
    part = float(constant @ constant) / max(float((error[:, own] ** 2).sum(axis=1).mean()), 1e-300)
    size, gravity = float(np.linalg.norm(constant)), np.asarray(run.gravity)
    if part < _MOST or size < _NOTICED * float(np.abs(error[:, own] - constant).max(initial=0.0)) or size < _LEAST_FORCE:
        return []
    cause = "a bias of the sensor, or a tare that only one of them has"
    full = np.zeros(3)
    full[["xyz".index(channels[k].name[1]) for k in own]] = constant
    pull = float(np.linalg.norm(gravity))
    if pull > 0.0 and abs(float(full @ gravity)) > _ALONG * size * pull:
        mass = size / pull
        near = [name for name, own_mass in run.masses.items() if abs(own_mass / mass - 1.0) < _SAME_MASS]
        cause = f"the weight of {mass:.3g} kg" + (f": {' or '.join(near)} weighs that" if near else "")
        cause += "; take it off by tare or gravity of the card, or by the tool of a reading"
    return [
        f"a constant {size:.3g} N makes {100 * part:.0f} % of the misfit of the force: {cause}. What is fitted to it is not "
        "to be believed"
    ]


def _unit_hints(channels: Sequence[Channel], axes: Mapping[str, Agreement]) -> dict[str, str]:
    """Say by channel where run and log lie on a line whose slope suggests a wrong unit or sign."""
    out = {}
    for c in channels:
        a = axes[c.name]
        if a.correlation <= -_ALIKE:
            asked = "is frame.sign of the card right?" if c.kind != "position" else "is frame.rotation of the card right?"
            if c.alone:
                asked = "is its sign right ('-' before its column in the card turns it)?"
            out[c.name] = f"{c.name} of the log is {a.gain:.3g} times that of the run: {asked}"
        elif a.correlation >= _ALIKE and ((unit := _unit_of(c.kind, a.gain)) or not 0.1 < a.gain < 10.0):
            asked = f"is its unit right{f' ({unit})' if unit else ''}?"
            out[c.name] = f"{c.name} of the log is {a.gain:.3g} times that of the run: {asked}"
    return out


def _unit_of(kind: str, gain: float) -> str:
    """Name the unit by which a log may have been read wrongly, of those that a gain is near to; "" for none."""
    units = UNITS["length" if kind == "position" else kind].items()
    near = (name for name, size in units if size != 1.0 and abs(abs(math.log(gain)) - abs(math.log(size))) < _SAME_UNIT)
    return next(near, "")

"""Compare a run with logs of experiments: one clock, one frame, one grid, one filter, then numbers by axis."""

from __future__ import annotations

import csv
import json
import math
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from femsim.base.errors import InputError, did_you_mean
from femsim.base.files import write_json
from femsim.run.result import Run
from femsim.studies.comparison.agreement import Agreement, agreement, mean_and_confidence, vector_rmse
from femsim.studies.comparison.logs import WRENCH_AXES, Card, Channel, Log, read_card, read_log, read_table, tare_mean
from femsim.studies.comparison.signals import fill_gaps, find_lag, gap_mask, lowpass, resample, variation_weights
from viz import comparison_page, plot_comparison

LogLike = Log | str | Path
_LEAST = 10  # samples that a comparison needs
_MOST_ALIGNED = 200_000  # samples in the search for the lag


@dataclass(frozen=True, eq=False)
class Trial:
    """One log against the run.

    Attributes
    ----------
    source : str
        File.
    offset : float, s
        Time of the run at the first sample of the log.
    explained : float, 1
        Part of the variation that run and log share at this offset, 0 to 1; NaN where the offset was given.
    values : ndarray, (n, k), N, N m or m
        The log on the common grid, filtered; NaN in its gaps.
    axes : dict of str to Agreement
        By channel.
    lags : dict of str to float, s
        By channel: how much later than the run the log still is after alignment; the nearest match.
    """

    source: str
    offset: float
    explained: float
    values: np.ndarray
    axes: dict[str, Agreement]
    lags: dict[str, float]


@dataclass(frozen=True, eq=False)
class Comparison:
    """A run beside one or more logs of the same experiment.

    Attributes
    ----------
    run : str
        Run folder or name of the scene.
    sensor : str, optional
        Sensor of the run; None for markers.
    channels : tuple of Channel
        What the columns are.
    time : ndarray, (n,), s
        Common grid, on the clock of the run.
    simulated : ndarray, (n, k), N, N m or m
        The run on the grid, filtered as the logs are.
    measured : ndarray, (n, k)
        Mean of the trials; NaN where one of them has a gap.
    trials : tuple of Trial
        One a log.
    axes : dict of str to Agreement
        The run against ``measured``, by channel.
    vectors : dict of str to (float, float)
        Root mean square and largest length of the error vector, by group of channels (force, torque, each marker).
    rate : float, Hz
        Rate of the grid.
    cutoff : float, optional, Hz
        Low-pass on both; None when there was none.
    warnings : tuple of str
        What a reader should know.
    """

    run: str
    sensor: str | None
    channels: tuple[Channel, ...]
    time: np.ndarray
    simulated: np.ndarray
    measured: np.ndarray
    trials: tuple[Trial, ...]
    axes: dict[str, Agreement]
    vectors: dict[str, tuple[float, float]]
    rate: float
    cutoff: float | None
    warnings: tuple[str, ...]

    def residual(self, *, scaled: bool = True) -> np.ndarray:
        """Errors of all channels behind each other, without gaps, for a least-squares fit.

        Parameters
        ----------
        scaled : bool
            Divide each group (force, torque, a marker) by the largest range of its measured channels, so that groups weigh alike.

        Returns
        -------
        ndarray, (n_complete * k,)
            Simulated minus measured.
        """
        good = np.isfinite(self.measured).all(axis=1)
        error = (self.simulated - self.measured)[good]
        if scaled:
            ranges = np.ptp(self.measured[good], axis=0)
            groups = np.array([c.group for c in self.channels])
            error = error / np.array([ranges[groups == g].max() or 1.0 for g in groups])
        return np.asarray(error.T.ravel())

    def confidence(self) -> dict[str, dict[str, tuple[float, float]]]:
        """Mean over the trials and half the 95 % interval, by channel and by name of the measure (and ``lag``)."""
        out: dict[str, dict[str, tuple[float, float]]] = {}
        for channel in self.channels:
            name = channel.name
            out[name] = {
                f.name: mean_and_confidence([getattr(t.axes[name], f.name) for t in self.trials]) for f in fields(Agreement)
            } | {"lag": mean_and_confidence([t.lags[name] for t in self.trials])}
        return out

    def spread(self) -> dict[str, float]:
        """Return the standard deviation of repeated trials about their mean, pooled over time, by channel; empty for one log."""
        if len(self.trials) < 2:
            return {}
        deviation = np.std(np.stack([t.values for t in self.trials]), axis=0, ddof=1)
        return {c.name: float(np.sqrt(np.nanmean(column**2))) for c, column in zip(self.channels, deviation.T, strict=True)}

    def to_dict(self) -> dict[str, Any]:
        """All numbers but the series, for JSON; what is not defined is None."""
        spread, confidence = self.spread(), self.confidence()
        unit = {c.group: c.unit for c in self.channels}
        content = {
            "run": self.run,
            "sensor": self.sensor,
            "logs": [
                {"file": t.source, "offset_s": t.offset, "explained": t.explained, "axes": _trial_axes(t)} for t in self.trials
            ],
            "grid": {
                "from_s": float(self.time[0]), "to_s": float(self.time[-1]), "samples": len(self.time), "rate_Hz": self.rate,
                "cutoff_Hz": self.cutoff,
            },
            "axes": {
                c.name: {
                    "unit": c.unit,
                    **asdict(self.axes[c.name]),
                    "lag": confidence[c.name]["lag"][0],
                    **({"spread": spread[c.name]} if spread else {}),
                    **({"confidence": {k: list(v) for k, v in confidence[c.name].items()}} if spread else {}),
                }
                for c in self.channels
            },
            "vectors": {
                name: {"unit": unit[name], "rmse": rmse, "largest_error": largest}
                for name, (rmse, largest) in self.vectors.items()
            },
            "warnings": list(self.warnings),
        }  # fmt: skip
        return _plain(content)

    def summary(self) -> str:
        """Table of the measures by axis, as text."""
        what = f"sensor {self.sensor}" if self.sensor else "markers"
        lines = [f"{self.run}, {what}, {self.time[0]:.3f} to {self.time[-1]:.3f} s at {self.rate:g} Hz, {self._filter_words()}"]
        for t in self.trials:
            how = "given" if math.isnan(t.explained) else f"found, {100 * t.explained:.1f} % of the variation shared"
            lines.append(f"{t.source}: its first sample is at {t.offset:.4f} s of the run ({how})")
        head = ("axis", "unit", "RMSE", "NRMSE", "bias", "peak", "largest", "corr.", "lag ms", "gain", "offset")
        rows: list[tuple[str, ...]] = [head]
        for c in self.channels:
            a, lag = self.axes[c.name], mean_and_confidence([t.lags[c.name] for t in self.trials])[0]
            measures = (a.rmse, a.nrmse, a.bias, a.peak_error, a.largest_error)
            line = (f"{a.correlation:.4f}", f"{1e3 * lag:.3g}", f"{a.gain:.4g}", f"{a.offset:.3g}")
            rows.append((c.name, c.unit, *(f"{x:.3g}" for x in measures), *line))
        widths = [max(len(row[k]) for row in rows) for k in range(len(head))]
        sides = ("<", "<", *(">" for _ in widths[2:]))
        table = ("  ".join(f"{x:{side}{w}}" for x, side, w in zip(row, sides, widths, strict=True)) for row in rows)
        lines += ["", *(line.rstrip() for line in table), ""]
        unit = {c.group: c.unit for c in self.channels}
        lines += [
            f"{g}: error vector {rms:.3g} {unit[g]} RMS, {most:.3g} {unit[g]} at most" for g, (rms, most) in self.vectors.items()
        ]
        if len(self.trials) > 1:
            spread = ", ".join(f"{name} {value:.2g}" for name, value in self.spread().items())
            lines.append(f"axes above: against the mean of {len(self.trials)} trials, whose own spread is {spread}")
        return "\n".join([*lines, *(f"warning: {text}" for text in self.warnings)])

    def _filter_words(self) -> str:
        return "not filtered" if self.cutoff is None else f"both low-passed at {self.cutoff:g} Hz"

    def write(self, folder: str | Path) -> Path:
        """Write comparison.json, comparison.csv (the aligned series), overlay.png, overlay.svg and report.html.

        Parameters
        ----------
        folder : path
            Must not exist; it appears when all files are complete.

        Raises
        ------
        InputError
            The folder exists or cannot be written.
        """
        folder = Path(folder)
        if folder.exists():
            raise InputError(f"the folder {folder} exists; choose another by --out, or remove it.")
        partial = folder.with_name(f".{folder.name}.partial-{os.getpid()}")
        try:
            partial.mkdir(parents=True)
        except OSError as error:
            raise InputError(f"the folder {folder} cannot be made ({error.strerror}); choose another by --out.") from error
        try:
            content = self.to_dict()
            write_json(partial / "comparison.json", content)
            with open(partial / "comparison.csv", "w", newline="", encoding="utf-8") as stream:
                table = csv.writer(stream)
                units = [f"{c.name}_{c.unit.replace(' ', '')}" for c in self.channels]
                logs = [f"log{k + 1}" for k in range(len(self.trials))]
                table.writerow(["time_s", *(f"{who}.{u}" for who in ("run", *logs) for u in units)])
                for row in np.column_stack([self.time, self.simulated, *(t.values for t in self.trials)]):
                    table.writerow([f"{x:.10g}" if math.isfinite(x) else "" for x in row])
            pictures = plot_comparison(
                self.time, self.simulated, [t.values for t in self.trials], [(c.name, c.group, c.unit) for c in self.channels],
                [partial / "overlay.png", partial / "overlay.svg"],
            )  # fmt: skip
            (partial / "report.html").write_text(comparison_page(content, pictures[1]), encoding="utf-8")
            partial.rename(folder)
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise
        return folder


def compare(
    run: Run | Record | str | Path,
    log: LogLike | Sequence[LogLike],
    card: Card | Mapping[str, Any] | str | Path | None = None,
    *,
    sensor: str | None = None,
) -> Comparison:
    """Compare a run with the log of an experiment, or with several logs of the same experiment.

    Parameters
    ----------
    run : Run, Record or path
        A run in memory, its table of readings, or a run folder; an interrupted one is compared as far as it went.
    log : path or Log, or a sequence of them
        What ``read_log`` reads, or what it gave (which saves reading it again, as in a calibration). Several
        are repeated trials: each is aligned by itself, and the run is compared with their mean on the times that all cover.
    card : Card, mapping or path, optional
        What the logs' files do not say, see :class:`~femsim.studies.comparison.logs.Card`; for all of them.
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
    record = _read_run(run)
    given = [log] if isinstance(log, (Log, str, Path)) else list(log)
    if not given:
        raise InputError("no log is given; name at least one.")
    if any(isinstance(entry, Log) for entry in given) and (card is not None or sensor is not None):
        raise InputError(
            "a log that is read already has its card; give card and sensor to read_log, or the path of the log here."
        )
    card = read_card(card)
    if sensor is not None and card.markers:
        raise InputError(f"sensor {sensor!r} is asked for, but the card maps markers; leave one of them out.")
    if sensor is not None:
        card = card.model_copy(update={"sensor": sensor})
    logs = [
        entry if isinstance(entry, Log)
        else read_log(entry, card, sensors=record.sensors, markers=record.markers, gravity=record.gravity)
        for entry in given
    ]  # fmt: skip
    first = logs[0]
    for other in logs[1:]:
        if other.channels != first.channels or other.sensor != first.sensor:
            raise InputError(
                f"the logs {first.source} and {other.source} have different channels ({_names(first)}; {_names(other)}); compare "
                "logs of one experiment, or name the columns in a card."
            )
    return _compare(record, logs)


def _names(log: Log) -> str:
    return ", ".join(c.name for c in log.channels)


@dataclass(frozen=True, eq=False)
class Record:
    """What a comparison needs of a run: its time (n,), its columns by channel of each sensor and marker, gravity."""

    name: str
    time: np.ndarray
    columns: dict[str, np.ndarray]
    sensors: tuple[str, ...]
    markers: tuple[str, ...]
    gravity: tuple[float, ...]
    warnings: tuple[str, ...]

    def values(self, log: Log) -> np.ndarray:
        """Columns that belong to the channels of a log, (n, k)."""
        if log.sensor is not None:
            sensor = log.sensor
            if sensor not in self.sensors and sensor == "log" and len(self.sensors) == 1:
                sensor = self.sensors[0]
            if sensor not in self.sensors:
                known = ", ".join(self.sensors) or "none"
                raise InputError(
                    f"which force/torque sensor of {self.name} the log {log.source} belongs to is not said; it has {known}. Name "
                    "one as 'sensor' in the card, or by --sensor."
                    if log.sensor == "log"
                    else f"sensor {sensor!r} is not in {self.name}{did_you_mean(sensor, self.sensors)}"
                )
            return np.column_stack([self.columns[f"{sensor}_{c.name}"] for c in log.channels])
        missing = [c.group for c in log.channels if c.group not in self.markers]
        if missing:
            raise InputError(f"marker {missing[0]!r} is not in {self.name}{did_you_mean(missing[0], self.markers)}")
        return np.column_stack([self.columns[c.name.replace(".", "_")] for c in log.channels])


def _read_run(run: Run | Record | str | Path) -> Record:
    """Take the sensors of a run in memory or of a run folder."""
    if isinstance(run, Record):
        return run
    if isinstance(run, Run):
        columns = {f"{n}_{a}": s for n, series in run.sensors.items()
                   for a, s in zip(WRENCH_AXES, np.hstack([series.force, series.torque]).T, strict=True)}  # fmt: skip
        columns |= {f"{n}_{a}": s for n, m in run.markers.items() for a, s in zip("xyz", m.position.T, strict=True)}
        times = [*(s.time for s in run.sensors.values()), *(m.time for m in run.markers.values())]
        time = times[0] if times else np.zeros(0)
        name = str(run.folder or run.info["scene"]["name"])
        return _checked(name, time, columns, run.info, [])
    folder = Path(run)
    if not folder.is_dir() or not (folder / "run.json").is_file():
        raise InputError(f"{folder} is not a run folder (it has no run.json); give the folder that 'femsim run' wrote.")
    try:
        info = json.loads((folder / "run.json").read_text(encoding="utf-8"))
        status = info["status"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{folder / 'run.json'} cannot be read ({error}); the run is damaged, run the scene again.") from error
    if not (folder / "sensors.csv").is_file():
        raise InputError(f"{folder} has no sensors.csv: it is no complete run folder; run the scene again.")
    try:
        table = read_table(folder / "sensors.csv")
    except InputError as error:
        raise InputError(f"the run {folder} has no readings to compare: {error}") from None
    warnings = [f"sensors.csv: {text}" for text in table.warnings]
    if status == "running":
        warnings.append("the run is still going on or was killed; it is compared as far as it is written")
    elif status in ("interrupted", "failed", "not converged"):
        warnings.append(f"the run is marked {status!r}: {info.get('message', '')}")
    if "time" not in table.columns:
        raise InputError(
            f"{folder / 'sensors.csv'} has no column time_s; it is of another program or an older femsim, run again."
        )
    columns = {c: table.numbers(c) for c in table.columns}
    return _checked(str(folder), columns.pop("time"), columns, info, warnings)


def make_record(name: str, table: Mapping[str, np.ndarray], gravity: Sequence[float]) -> Record:
    """Make what :func:`compare` takes out of a table of readings, such as the series of a case of a sweep.

    Parameters
    ----------
    name : str
        What messages call it.
    table : mapping of str to ndarray, (n,)
        Columns as in sensors.csv, with their units: time_s, NAME_fx_N ..., NAME_x_m ...
    gravity : (3,) float, m/s^2
        World frame.

    Raises
    ------
    InputError
        No sensor and no marker, or too few rows.
    """
    columns = {column.rpartition("_")[0]: values for column, values in table.items()}
    return _checked(name, columns.pop("time"), columns, {"settings": {"gravity_mps2": list(gravity)}}, [])


def _checked(name: str, time: np.ndarray, columns: dict[str, np.ndarray], info: dict[str, Any], warnings: list[str]) -> Record:
    sensors = tuple(c[:-3] for c in columns if c.endswith("_fx") and all(f"{c[:-3]}_{a}" in columns for a in WRENCH_AXES))
    markers = tuple(c[:-2] for c in columns if c.endswith("_x") and all(f"{c[:-2]}_{a}" in columns for a in "xyz"))
    if not sensors and not markers:
        raise InputError(f"the run {name} has no sensor and no marker; add some by scene.sensor(...) and run it again.")
    if len(time) < _LEAST:
        raise InputError(f"the run {name} has {len(time)} steps; at least {_LEAST} are needed to compare anything.")
    gravity = info.get("settings", {}).get("gravity_mps2")
    if gravity is None:
        gravity = (0.0, 0.0, -9.81)
        warnings = [*warnings, "run.json is of an older femsim and does not say its gravity; (0, 0, -9.81) m/s2 is taken"]
    return Record(name, time, columns, sensors, markers, tuple(float(g) for g in gravity), tuple(warnings))


def _compare(record: Record, logs: Sequence[Log]) -> Comparison:
    card, channels = logs[0].card, logs[0].channels
    raw = record.values(logs[0])
    if not np.isfinite(raw).all():
        raise InputError(f"the run {record.name} has readings that are not finite; see its status.")
    warnings = [*record.warnings]
    for log in logs:
        warnings += [f"{log.source}: {text}" for text in log.warnings]
    if logs[0].sensor is None:
        logs = [_marker_values(log, raw[0], warnings) for log in logs]
        raw = raw - raw[0] if card.marker_values == "displacement" else raw
    run_rate = (len(record.time) - 1) / float(record.time[-1] - record.time[0])
    rates = [run_rate, *(log.rate for log in logs)]
    rate = card.rate or min(rates)
    cutoff = _cutoff(card, rate, rates)
    order = card.filter.order if card.filter else 4
    simulated = raw if cutoff is None else lowpass(raw, run_rate, cutoff, order)
    evened = [_even(log) for log in logs]
    filtered = [
        values if cutoff is None else lowpass(values, log.rate, cutoff, order)
        for log, (_, values) in zip(logs, evened, strict=True)
    ]
    offsets = []
    for log, (time, _), values in zip(logs, evened, filtered, strict=True):
        offset, explained = _offset(record.time, simulated, run_rate, log, time, values)
        offsets.append((offset, explained))
        if explained < 0.5:
            warnings.append(
                f"{log.source}: run and log share only {100 * explained:.0f} % of their variation, so the lag found is "
                "uncertain; give time.offset in the card"
            )
    grid = _grid(record, logs, evened, [o for o, _ in offsets], rate, run_rate)
    on_grid = resample(record.time, simulated, grid)
    trials, complete = [], np.ones(len(grid), dtype=bool)
    for log, (time, _), values, (offset, explained) in zip(logs, evened, filtered, offsets, strict=True):
        covered, longest = gap_mask(log.time, log.values, grid - offset)
        if longest > 0:
            missing = 100 * (1 - covered.mean())
            warnings.append(f"{log.source} has gaps of up to {longest:.3g} s, which are left out ({missing:.1f} % of the time)")
        placed = resample(time, values, np.clip(grid - offset, time[0], time[-1]))
        placed[~covered] = np.nan
        complete &= covered
        if covered.sum() < max(_LEAST, 0.5 * len(grid)):
            raise InputError(
                f"the log {log.source} has numbers in only {100 * covered.mean():.0f} % of the time that it shares with the run; "
                "compare a part without gaps by 'window' in the card, or mend the log."
            )
        trials.append(_trial(log.source, offset, explained, channels, on_grid, placed, covered, rate))
    if complete.sum() < _LEAST:
        raise InputError(f"the logs have {int(complete.sum())} common samples on the grid; at least {_LEAST} are needed.")
    measured = np.mean([t.values for t in trials], axis=0)
    good = np.isfinite(measured).all(axis=1)
    axes = {c.name: agreement(on_grid[good, k], measured[good, k]) for k, c in enumerate(channels)}
    warnings += _unit_hints(channels, axes)
    groups = {g: [k for k, c in enumerate(channels) if c.group == g] for g in dict.fromkeys(c.group for c in channels)}
    vectors = {g: vector_rmse(on_grid[good][:, own], measured[good][:, own]) for g, own in groups.items()}
    sensor = None if logs[0].sensor is None else (record.sensors[0] if logs[0].sensor == "log" else logs[0].sensor)
    return Comparison(
        record.name,
        sensor,
        channels,
        grid,
        on_grid,
        measured,
        tuple(trials),
        axes,
        vectors,
        rate,
        cutoff,
        tuple(dict.fromkeys(warnings)),
    )


def _cutoff(card: Card, rate: float, rates: Sequence[float]) -> float | None:
    """Cut-off of the card; else, where one signal is sampled more than twice as fast as the grid, what the grid can show."""
    slowest = min(rates)
    if card.filter is not None:
        if card.filter.cutoff >= 0.5 * slowest:
            raise InputError(
                f"filter.cutoff is {card.filter.cutoff:g} Hz, but the slowest signal has {slowest:.6g} samples a "
                "second; it must be below half of that."
            )
        return card.filter.cutoff
    return 0.4 * min(rate, slowest) if max(rates) > 2.0 * rate else None


def _even(log: Log) -> tuple[np.ndarray, np.ndarray]:
    """Even time stamps at the usual rate of a log, and its values there."""
    interval = np.diff(log.time)
    usual = float(np.median(interval))
    if np.allclose(interval, usual, rtol=1e-3):
        return log.time, fill_gaps(log.values)
    count = max(math.floor(log.time[-1] / usual * (1 + 1e-12)) + 1, _LEAST)
    even = np.linspace(0.0, log.time[-1], count)
    return even, resample(log.time, log.values, even)


def _marker_values(log: Log, start: np.ndarray, warnings: list[str]) -> Log:
    """Markers of a log as the card wants them: positions, displacements, or positions fitted to the run's first row."""
    card = log.card
    if card.marker_values == "position":
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


def _offset(
    run_time: np.ndarray, simulated: np.ndarray, run_rate: float, log: Log, time: np.ndarray, values: np.ndarray
) -> tuple[float, float]:
    """Time of the run at the log's first sample, and the shared variation (NaN when given)."""
    card = log.card
    if card.time.offset != "auto":
        return float(card.time.offset), math.nan
    longest = max(float(run_time[-1] - run_time[0]), float(time[-1]))
    rate = min(max(run_rate, log.rate), _MOST_ALIGNED / longest)
    run_grid = np.arange(run_time[0], run_time[-1] + 1e-9, 1.0 / rate)
    log_grid = np.arange(0.0, time[-1] + 1e-9, 1.0 / rate)
    covered, _ = gap_mask(log.time, log.values, log_grid)
    second = resample(time, values, np.minimum(log_grid, time[-1]))
    second[~covered] = np.nan
    weights = variation_weights(second, [c.group for c in log.channels])
    reach = card.time.max_lag or math.inf
    bounds = [(sign * reach - run_time[0]) * rate if math.isfinite(reach) else sign * 2**40 for sign in (-1.0, 1.0)]
    lag = find_lag(
        resample(run_time, simulated, np.minimum(run_grid, run_time[-1])), second, weights, least=math.floor(bounds[0]),
        greatest=math.ceil(bounds[1]),
    )  # fmt: skip
    if lag is None:
        raise InputError(
            f"the log {log.source} cannot be aligned with the run: one of them does not vary, or time.max_lag leaves "
            "no overlap; give time.offset in the card."
        )
    return float(run_time[0] + lag.samples / rate), lag.explained


def _grid(
    record: Record, logs: Sequence[Log], evened: Sequence[tuple[np.ndarray, np.ndarray]], offsets: Sequence[float], rate: float,
    run_rate: float,
) -> np.ndarray:  # fmt: skip
    """Find the times that the run and all logs share; the run's own where the rates agree."""
    window = logs[0].card.window or (-math.inf, math.inf)
    start = max(float(record.time[0]), window[0], *offsets)
    end = min(float(record.time[-1]), window[1], *(o + float(t[-1]) for o, (t, _) in zip(offsets, evened, strict=True)))
    if abs(rate / run_rate - 1.0) < 1e-6:
        grid = record.time[(record.time >= start - 1e-9) & (record.time <= end + 1e-9)]
    else:
        grid = np.arange(start, end + 1e-9, 1.0 / rate)
    if len(grid) < _LEAST:
        spans = ", ".join(f"{log.source} {o:.4g} to {o + log.time[-1]:.4g} s" for log, o in zip(logs, offsets, strict=True))
        raise InputError(
            f"run and logs share {len(grid)} samples at {rate:g} Hz; at least {_LEAST} are needed. The run has "
            f"{record.time[0]:.4g} to {record.time[-1]:.4g} s, {spans}; check time.offset, window and rate of the card."
        )
    return np.minimum(grid, record.time[-1])


def _trial(
    source: str, offset: float, explained: float, channels: Sequence[Channel], simulated: np.ndarray, values: np.ndarray,
    covered: np.ndarray, rate: float,
) -> Trial:  # fmt: skip
    axes = {c.name: agreement(simulated[covered, k], values[covered, k]) for k, c in enumerate(channels)}
    reach, lags = len(simulated) // 10, {}
    for k, c in enumerate(channels):
        lag = find_lag(simulated[:, [k]], values[:, [k]], np.ones(1), least=-reach, greatest=reach, near=0)
        lags[c.name] = -lag.samples / rate if lag is not None and abs(lag.samples) < reach else math.nan
    return Trial(source, offset, explained, values, axes, lags)


def _unit_hints(channels: Sequence[Channel], axes: Mapping[str, Agreement]) -> list[str]:
    """Say where a clear line between run and log has a slope that smells of a unit or a sign."""
    out = []
    for c in channels:
        a = axes[c.name]
        if a.correlation <= -0.9:
            out.append(f"{c.name} of the log is {a.gain:.3g} times that of the run: is frame.sign of the card right?")
        elif a.correlation >= 0.9 and not 0.1 < a.gain < 10.0:
            out.append(f"{c.name} of the log is {a.gain:.3g} times that of the run: is its unit right?")
    return out


def _trial_axes(trial: Trial) -> dict[str, dict[str, float]]:
    return {name: asdict(a) | {"lag": trial.lags[name]} for name, a in trial.axes.items()}


def _plain(value: Any) -> Any:
    """Numbers that JSON has: what is not finite becomes None."""
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value

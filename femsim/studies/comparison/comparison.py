"""The result of a comparison: numbers by axis, series on a common grid, and the folder with report and overlay."""

from __future__ import annotations

import base64
import csv
import math
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from femsim.base.errors import InputError
from femsim.base.files import is_free, replacing, write_errors, write_json
from femsim.base.notebook import card
from femsim.studies.comparison.agreement import Agreement, mean_and_confidence
from femsim.studies.comparison.readers import Channel
from femsim.studies.comparison.words import better_frame, sentence
from viz import ComparedRun, comparison_page, plot_comparison


@dataclass(frozen=True, eq=False, repr=False)
class Trial:
    """One log against the run.

    Attributes
    ----------
    source : str
        File.
    offset : float, s
        Time of the run at the first sample of the log.
    explained : float, 1
        Part of the variation that run and log share at this offset, 0 to 1; NaN where the offset is given.
    values : ndarray, (n, k), unit of the channels
        The log on the common grid, filtered; NaN in its gaps.
    axes : dict of str to Agreement
        By channel.
    lags : dict of str to float, s
        By channel, the remaining delay of the log behind the run after alignment.
    own_time : ndarray, (m,), s
        Even times on the clock of the log, from 0.
    own_values : ndarray, (m, k), unit of the channels
        The log there, filtered, its gaps bridged.
    tare_error : ndarray, (r, k), unit of the channels
        Rows of which the sum of outer products is the covariance of the mean that was taken off as a tare; none without one.
    """

    source: str
    offset: float
    explained: float
    values: np.ndarray
    axes: dict[str, Agreement]
    lags: dict[str, float]
    own_time: np.ndarray
    own_values: np.ndarray
    tare_error: np.ndarray

    def __repr__(self) -> str:
        return f"<Trial {self.source}: {len(self.values)} samples, first at {self.offset:.4g} s of the run>"


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """A run beside one or more logs of the same experiment.

    Attributes
    ----------
    run : str
        Run folder or name of the scene.
    sensor : str, optional
        Sensor of the run; None for markers and single columns.
    channels : tuple of Channel
        The columns.
    time : ndarray, (n,), s
        Common grid, on the clock of the run.
    simulated : ndarray, (n, k), unit of the channels
        The run on the grid, filtered as the logs are.
    run_time, run_values : ndarray, (N,), s, and (N, k), unit of the channels
        All of the run, filtered and tared as ``simulated``.
    measured : ndarray, (n, k)
        Mean of the trials; NaN where one of them has a gap.
    trials : tuple of Trial
        One per log.
    axes : dict of str to Agreement
        The run against ``measured``, by channel.
    vectors : dict of str to (float, float)
        Root mean square and largest length of the error vector, by group of channels (force, torque, each marker or
        single column).
    rate : float, Hz
        Rate of the grid.
    cutoff : float, optional, Hz
        Cut-off of the low-pass on both; None without a filter.
    warnings : tuple of str
        What a reader should know.
    """

    run: str
    sensor: str | None
    channels: tuple[Channel, ...]
    time: np.ndarray
    simulated: np.ndarray
    run_time: np.ndarray
    run_values: np.ndarray
    measured: np.ndarray
    trials: tuple[Trial, ...]
    axes: dict[str, Agreement]
    vectors: dict[str, tuple[float, float]]
    rate: float
    cutoff: float | None
    warnings: tuple[str, ...]

    def __repr__(self) -> str:
        return f"<Comparison of {self.run}, {self.what}, with {len(self.trials)} logs: {'; '.join(self.words())}>"

    @property
    def what(self) -> str:
        """What of the run is compared: "sensor NAME", "markers" or "columns"."""
        if self.sensor is not None:
            return f"sensor {self.sensor}"
        return "columns" if self.channels[0].alone else "markers"

    def _repr_html_(self) -> str:
        head = ("axis", "unit", "RMSE", "NRMSE", "bias", "correlation", "gain")
        rows = [
            (
                c.name,
                c.unit,
                *(f"{getattr(self.axes[c.name], name):.3g}" for name in ("rmse", "nrmse", "bias", "correlation", "gain")),
            )
            for c in self.channels
        ]
        lines = [*self.words(), *(f"warning: {text}" for text in self.warnings)]
        with tempfile.TemporaryDirectory(prefix="femsim_compare_") as scratch:
            channels, values = [c.drawn for c in self.channels], [trial.values for trial in self.trials]
            (path,) = plot_comparison(self.time, values, [self.drawn()], channels, [Path(scratch) / "overlay.svg"])
            picture = base64.b64encode(path.read_bytes()).decode("ascii")
        image = f'<img alt="run over log" style="max-width:100%" src="data:image/svg+xml;base64,{picture}">'
        return card(f"{self.run} beside {', '.join(Path(t.source).name for t in self.trials)}", head, rows, lines) + image

    def residual(self, *, scaled: bool = True) -> np.ndarray:
        """Errors of all channels, one after the other and without gaps, for a least-squares fit.

        Parameters
        ----------
        scaled : bool
            Divide each group (force, torque, a marker, a column) by the largest range of its measured channels, so that all
            groups have the same weight.

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
        """Mean over the trials and half the 95 % interval, by channel and by measure (and ``lag``)."""
        out: dict[str, dict[str, tuple[float, float]]] = {}
        for channel in self.channels:
            name = channel.name
            out[name] = {
                f.name: mean_and_confidence([getattr(t.axes[name], f.name) for t in self.trials]) for f in fields(Agreement)
            } | {"lag": mean_and_confidence([t.lags[name] for t in self.trials])}
        return out

    def words(self, channels: Sequence[str] = ()) -> list[str]:
        """Say in a sentence an axis how the run differs from the log, and, where another frame or sign fits better, which.

        Parameters
        ----------
        channels : sequence of str
            Only these; all by default.
        """
        good = np.isfinite(self.measured).all(axis=1)
        ranges: dict[str, float] = {}
        for channel, span in zip(self.channels, np.ptp(self.measured[good], axis=0), strict=True):
            ranges[channel.group] = max(float(span), ranges.get(channel.group, 0.0))
        said = []
        for channel in [c for c in self.channels if not channels or c.name in channels]:
            lag = mean_and_confidence([trial.lags[channel.name] for trial in self.trials])[0]
            said.append(sentence(channel, self.axes[channel.name], lag, ranges[channel.group]))
        return said + self.better_frames()

    def better_frames(self) -> list[str]:
        """Say, in one sentence or none, which other frame, sign or order of the columns of the logs would fit clearly better."""
        good = np.isfinite(self.measured).all(axis=1)
        frame = better_frame(self.channels, self.simulated[good], self.measured[good])
        return [frame] if frame else []

    def drawn(self, label: str = "run", first: Comparison | None = None, channels: Sequence[str] = ()) -> ComparedRun:
        """Return this run for a figure.

        Parameters
        ----------
        label : str
            Its name in the legend.
        first : Comparison, optional
            Another run beside the same logs, whose clock the figure has.
        channels : sequence of str
            Only these; all by default.
        """
        shift = 0.0 if first is None else first.trials[0].offset - self.trials[0].offset
        own = [k for k, c in enumerate(self.channels) if not channels or c.name in channels]
        return ComparedRun(label, self.time + shift, self.simulated[:, own], (self.simulated - self.measured)[:, own])

    def spread(self) -> dict[str, float]:
        """Return the standard deviation of repeated trials about their mean, pooled over time, by channel; empty for one log."""
        if len(self.trials) < 2:
            return {}
        deviation = np.std(np.stack([t.values for t in self.trials]), axis=0, ddof=1)
        return {c.name: float(np.sqrt(np.nanmean(column**2))) for c, column in zip(self.channels, deviation.T, strict=True)}

    def to_dict(self) -> dict[str, Any]:
        """Return all numbers but the series, for JSON; undefined numbers are None."""
        spread, confidence = self.spread(), self.confidence()
        unit = {c.group: c.unit for c in self.channels}
        content = {
            "run": self.run,
            "sensor": self.sensor,
            "what": self.what,
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
            "words": self.words(),
            "warnings": list(self.warnings),
        }  # fmt: skip
        return _for_json(content)

    def summary(self) -> str:
        """Return a table of the measures by axis, as text."""
        lines = [
            f"{self.run}, {self.what}, {self.time[0]:.3f} to {self.time[-1]:.3f} s at {self.rate:g} Hz, {self._filter_words()}"
        ]
        for t in self.trials:
            how = "given" if math.isnan(t.explained) else f"found, {100 * t.explained:.1f} % of the variation shared"
            lines.append(f"{t.source}: its first sample is at {t.offset:.4f} s of the run ({how})")
        repeated, spread = len(self.trials) > 1, self.spread()
        own = ("spread", *(f"RMSE {k + 1}" for k in range(len(self.trials)))) if repeated else ()
        head = ("axis", "unit", "RMSE", "NRMSE", "bias", "peak", "largest", "corr.", "lag ms", "gain", "offset", *own)
        rows: list[tuple[str, ...]] = [head]
        for c in self.channels:
            a, lag = self.axes[c.name], mean_and_confidence([t.lags[c.name] for t in self.trials])[0]
            measures = (a.rmse, a.nrmse, a.bias, a.peak_error, a.largest_error)
            line = (_cell(a.correlation, ".4f"), _cell(1e3 * lag), _cell(a.gain, ".4g"), _cell(a.offset))
            alone = (spread[c.name], *(t.axes[c.name].rmse for t in self.trials)) if repeated else ()
            rows.append((c.name, c.unit, *map(_cell, measures), *line, *map(_cell, alone)))
        widths = [max(len(row[k]) for row in rows) for k in range(len(head))]
        sides = ("<", "<", *(">" for _ in widths[2:]))
        table = ("  ".join(f"{x:{side}{w}}" for x, side, w in zip(row, sides, widths, strict=True)) for row in rows)
        lines += ["", *(line.rstrip() for line in table), "", *self.words()]
        unit = {c.group: c.unit for c in self.channels if not c.alone}  # of a single column the table says it
        lengths = [
            f"{g}: error vector {self.vectors[g][0]:.3g} {u} RMS, {self.vectors[g][1]:.3g} {u} at most" for g, u in unit.items()
        ]
        lines += ["", *lengths] if lengths else []
        if repeated:
            lines.append(
                f"against the mean of {len(self.trials)} trials; spread: standard deviation of the trials about it; RMSE 1 ...: "
                "against each trial alone"
            )
        return "\n".join([*lines, *(f"warning: {text}" for text in self.warnings)])

    def _filter_words(self) -> str:
        return "not filtered" if self.cutoff is None else f"both low-passed at {self.cutoff:g} Hz"

    def write(self, folder: str | Path) -> Path:
        """Write comparison.json, comparison.csv (the aligned series), overlay.png, overlay.svg and report.html.

        Parameters
        ----------
        folder : path
            New or empty; it appears when all files are complete.

        Raises
        ------
        InputError
            The folder exists or cannot be written.
        """
        folder = Path(folder)
        if not is_free(folder):
            raise InputError(f"the folder {folder} exists; choose another by --out, or remove it.")
        content = self.to_dict()
        values = [t.values for t in self.trials]
        with write_errors(f"the folder {folder}", "choose another by --out"), replacing(folder) as partial:
            partial.mkdir(parents=True)
            write_json(partial / "comparison.json", content)
            with open(partial / "comparison.csv", "w", newline="", encoding="utf-8") as stream:
                table = csv.writer(stream)
                columns = [c.column for c in self.channels]
                logs = [f"log{k + 1}" for k in range(len(self.trials))]
                table.writerow(["time_s", *(f"{who}.{c}" for who in ("run", *logs) for c in columns)])
                for row in np.column_stack([self.time, self.simulated, *values]):
                    table.writerow([f"{x:.10g}" if math.isfinite(x) else "" for x in row])
            channels = [c.drawn for c in self.channels]
            pictures = [partial / "overlay.png", partial / "overlay.svg"]
            plot_comparison(self.time, values, [self.drawn()], channels, pictures)
            (partial / "report.html").write_text(comparison_page(content, pictures[1]), encoding="utf-8")
        return folder


def _cell(value: float, form: str = ".3g") -> str:
    """Write a number of the table; "-" for one that is not known."""
    return "-" if math.isnan(value) else format(value, form)


def _trial_axes(trial: Trial) -> dict[str, dict[str, float]]:
    return {name: asdict(a) | {"lag": trial.lags[name]} for name, a in trial.axes.items()}


def _for_json(value: Any) -> Any:
    """Numbers that JSON has: what is not finite becomes None."""
    if isinstance(value, dict):
        return {k: _for_json(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_for_json(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value

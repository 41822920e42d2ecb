"""Overlay of a run and experiment logs, and the HTML page of a comparison."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from viz.errors import VizError
from viz.files import save_figure
from viz.look import COLOURS, Look
from viz.page import number, page, table, warnings
from viz.plots import FloatArray, _figure

__all__ = ["ComparedRun", "comparison_page", "plot_comparison"]

#: Logs are greys, wide, behind the runs.
_LOG = ("#b4bac2", "#8f969f", "#d2d6da", "#6f767f")
DEFAULT_LOOK = Look()
#: Units in which figures and sentences show values, and how many of them an SI unit has.
SHOWN_UNITS = {
    "N": (1.0, "N"), "N m": (1.0, "N m"), "m": (1e3, "mm"), "rad": (1.0, "rad"), "rad/s": (1.0, "rad/s"), "m/s": (1e3, "mm/s"),
    "Pa": (1e-3, "kPa"), "m^2": (1e6, "mm²"), "m^3": (1e6, "ml"), "J": (1.0, "J"), "1": (1.0, "1"),
}  # fmt: skip
#: Panels that have room beside each other: the axes of a vector.
_BESIDE = 3


@dataclass(frozen=True)
class ComparedRun:
    """One run of a figure of comparison.

    Attributes
    ----------
    label : str
        Name in the legend.
    time : ndarray, (n,), s
        On the clock of the first run.
    simulated : ndarray, (n, k), unit of the channels
        The run.
    error : ndarray, (n, k)
        Run minus log, or minus the mean of several logs; NaN is a gap.
    """

    label: str
    time: FloatArray
    simulated: FloatArray
    error: FloatArray


def plot_comparison(
    time: FloatArray,
    trials: Sequence[FloatArray],
    runs: Sequence[ComparedRun],
    channels: Sequence[tuple[str, str, str]],
    paths: Sequence[Path],
    look: Look = DEFAULT_LOOK,
) -> list[Path]:
    """Draw each channel of runs over that of logs, and below it the error of the runs; each channel has a range of its own.

    Groups (force, torque, a marker, single columns of one unit) have rows of their own, with up to three channels beside each
    other; narrow figures, below 120 mm, have a row for each channel.

    Parameters
    ----------
    time : ndarray, (n,), s
        Times of the logs, on the clock of the first run.
    trials : sequence of ndarray, (n, k), unit of the channels
        The logs; NaN is a gap.
    runs : sequence of ComparedRun
        The runs, at least one.
    channels : sequence of (str, str, str)
        Name, group and unit (SI, a key of ``SHOWN_UNITS``) of each channel.
    paths : sequence of Path
        Files to write, .png, .svg or .pdf.
    look : Look
        Size and font.

    Returns
    -------
    list of Path
        The files.

    Raises
    ------
    VizError
        No channel, no run, or arrays of different sizes.
    """
    sizes = [(np.shape(values), len(time)) for values in trials]
    sizes += [(np.shape(values), len(run.time)) for run in runs for values in (run.simulated, run.error)]
    if not channels or not runs or any(shape != (length, len(channels)) for shape, length in sizes):
        raise VizError("a comparison needs a run, at least one channel, and a column for each in the runs and in every log.")

    import matplotlib

    narrow = look.inches < 120.0 / 25.4
    groups = [[k] for k in range(len(channels))] if narrow else _grouped(channels)
    columns = max(len(own) for own in groups)
    with matplotlib.rc_context(look.settings):
        height = 0.6 + len(groups) * (1.9 if narrow else 2.2)
        figure, panels = _figure(
            2 * len(groups), height, columns, look, sharey=False, gridspec_kw={"height_ratios": [2.2, 1] * len(groups)}
        )
        for row, own in enumerate(groups):
            for column in range(columns):
                above, below = (panels[(2 * row + part) * columns + column] for part in (0, 1))
                if column >= len(own):
                    above.set_visible(False)
                    below.set_visible(False)
                    continue
                k = own[column]
                name, _, unit = channels[k]
                factor, shown = SHOWN_UNITS[unit]
                for number, values in enumerate(trials):
                    label = "log" if len(trials) == 1 else f"log {number + 1}"
                    above.plot(time, factor * values[:, k], color=_LOG[number % len(_LOG)], label=label, linewidth=2.2)
                for number, run in enumerate(runs):
                    style = {"color": COLOURS[number % 6], "linestyle": ("-", "--", "-.", ":")[number % 4], "linewidth": 1.1}
                    above.plot(run.time, factor * run.simulated[:, k], label=run.label, **style)
                    below.plot(run.time, factor * run.error[:, k], **style)
                below.axhline(0.0, color="#808080", linewidth=0.6)
                above.set_ylabel(f"{name.replace('_', ' ')} [{shown}]")
                below.set_ylabel(f"error [{shown}]")
                if row == len(groups) - 1 or column >= len(groups[row + 1]):
                    below.set_xlabel("time [s]")
                    below.tick_params(labelbottom=True)
        handles, labels = panels[0].get_legend_handles_labels()
        figure.align_ylabels([panel for panel in panels if panel.get_visible()])
        figure.legend(handles, labels, loc="outside upper center", ncols=look.columns(labels))
        for path in paths:
            save_figure(figure, path)
    return list(paths)


def _grouped(channels: Sequence[tuple[str, str, str]]) -> list[list[int]]:
    """Numbers of the channels of each row: those of a group, divided where there are many."""
    groups = [[k for k, c in enumerate(channels) if c[1] == group] for group in dict.fromkeys(c[1] for c in channels)]
    return [own[k : k + _BESIDE] for own in groups for k in range(0, len(own), _BESIDE)]


def comparison_page(content: Mapping[str, Any], picture: Path) -> str:
    """Make a self-contained HTML page of a comparison.

    Parameters
    ----------
    content : mapping
        Content of comparison.json.
    picture : Path
        The overlay as SVG, which is embedded.

    Returns
    -------
    str
        The page.
    """
    grid = content["grid"]
    filtered = "not filtered" if grid["cutoff_Hz"] is None else f"both low-passed at {grid['cutoff_Hz']:g} Hz"
    svg = picture.read_text(encoding="utf-8")
    columns = ("rmse", "nrmse", "bias", "peak_error", "largest_error", "correlation", "lag", "gain", "gain_error", "offset")
    repeated = len(content["logs"]) > 1
    head = [
        "axis",
        "unit",
        *("lag [ms]" if c == "lag" else c.replace("_", " ") for c in columns),
        *(["spread of trials"] if repeated else []),
    ]
    rows = [
        [name, axis["unit"], *(_shown(axis, c) for c in columns), *([number(axis["spread"])] if repeated else [])]
        for name, axis in content["axes"].items()
    ]
    logs = [
        [log["file"], number(log["offset_s"]), "given" if log["explained"] is None else number(log["explained"])]
        for log in content["logs"]
    ]
    vectors = [
        [name, v["unit"], number(v["rmse"]), number(v["largest_error"])]
        for name, v in content["vectors"].items()
        if name not in content["axes"]  # of a single column the axis says it
    ]
    explained = (
        "Error is run minus log. NRMSE is relative to the range of the log; peak error is max|run| - max|log|; lag is the "
        "remaining delay of the log; gain and offset come from the line log = gain run + offset."
        + (
            " Axes are relative to the mean of the trials; ± gives the half-width of the 95 % interval over the trials."
            if repeated
            else ""
        )
    )
    return page(
        f"Comparison of {content['run']}",
        f"<h1>{html.escape(content['run'])}, {html.escape(content['what'])}</h1>\n"
        f"<p>{grid['from_s']:.4g} to {grid['to_s']:.4g} s of the run, {grid['samples']} samples at {grid['rate_Hz']:g} Hz, "
        f"{filtered}.</p>\n"
        + "".join(f"<p>{html.escape(text)}.</p>\n" for text in content["words"])
        + warnings(content["warnings"])
        + f"<h2>Overlay</h2>\n{svg[svg.index('<svg') :]}\n<h2>By axis</h2>\n{table(head, rows)}<p>{explained}</p>\n"
        + (f"<h2>Error vectors</h2>\n{table(['group', 'unit', 'RMS length', 'largest'], vectors)}" if vectors else "")
        + f"<h2>Logs</h2>\n{table(['file', 'run time of its first sample, s', 'variation shared'], logs)}",
    )


def _shown(axis: Mapping[str, Any], column: str) -> str:
    factor = 1e3 if column == "lag" else 1.0  # ms
    value, half = axis[column], axis.get("confidence", {}).get(column, (None, None))[1]
    return number(None if value is None else factor * value) + (f" ± {number(factor * half)}" if half is not None else "")

"""Overlay of a run and experiment logs, and the HTML page of a comparison."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from viz.errors import VizError
from viz.page import number, page, table, warnings
from viz.plots import COLOURS, STYLE, FloatArray, _figure

__all__ = ["comparison_page", "plot_comparison"]

_UNITS = {"N": (1.0, "N"), "N m": (1.0, "N m"), "m": (1e3, "mm")}


def plot_comparison(
    time: FloatArray,
    simulated: FloatArray,
    trials: Sequence[FloatArray],
    channels: Sequence[tuple[str, str, str]],
    paths: Sequence[Path],
) -> list[Path]:
    """Draw each channel of a run over that of its logs, one panel per channel, in three columns.

    Parameters
    ----------
    time : ndarray, (n,), s
        Common times.
    simulated : ndarray, (n, k), N, N m or m
        The run.
    trials : sequence of ndarray, (n, k)
        The logs; NaN is a gap.
    channels : sequence of (str, str, str)
        Name, group and unit of each channel; a group of several channels takes one row.
    paths : sequence of Path
        Files to write, .png, .svg or .pdf.

    Returns
    -------
    list of Path
        The files.

    Raises
    ------
    VizError
        No channel, or arrays of different sizes.
    """
    if not channels or any(np.shape(a) != (len(time), len(channels)) for a in (simulated, *trials)):
        raise VizError("a comparison needs at least one channel, and a column for each in the run and in every log.")

    import matplotlib

    groups = list(dict.fromkeys(group for _, group, _ in channels))
    columns = max(sum(group == g for _, group, _ in channels) for g in groups)
    with matplotlib.rc_context(STYLE):
        figure, panels = _figure(len(groups), 0.7 + 1.5 * len(groups), columns=columns)
        for row, group in enumerate(groups):
            own = [k for k, c in enumerate(channels) if c[1] == group]
            factor, unit = _UNITS[channels[own[0]][2]]
            for column, axis in enumerate(panels[row * columns : (row + 1) * columns]):
                if column >= len(own):
                    axis.set_visible(False)
                    continue
                k = own[column]
                for number, values in enumerate(trials):
                    label = "log" if len(trials) == 1 else f"log {number + 1}"
                    axis.plot(time, factor * values[:, k], color=COLOURS[1 + number % 6], label=label, linewidth=1.6, alpha=0.75)
                axis.plot(time, factor * simulated[:, k], color=COLOURS[0], linestyle="--", label="run")
                axis.set_title(channels[k][0].replace("_", " "), loc="left", fontsize=9)
            panels[row * columns].set_ylabel(f"{'position' if unit == 'mm' else group} [{unit}]")
        for axis in panels[-columns:]:
            axis.set_xlabel("time [s]")
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper right", ncols=min(len(trials) + 1, 5))
        for path in paths:
            figure.savefig(path, metadata={".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(path.suffix, {}))
    return list(paths)


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
    what = f"sensor {content['sensor']}" if content["sensor"] else "markers"
    filtered = "not filtered" if grid["cutoff_Hz"] is None else f"both low-passed at {grid['cutoff_Hz']:g} Hz"
    svg = picture.read_text(encoding="utf-8")
    columns = ("rmse", "nrmse", "bias", "peak_error", "largest_error", "correlation", "lag", "gain", "gain_error", "offset")
    repeated = len(content["logs"]) > 1
    head = ["axis", "unit", *(c.replace("_", " ") for c in columns), *(["spread of trials"] if repeated else [])]
    rows = [
        [name, axis["unit"], *(_shown(axis, c) for c in columns), *([number(axis["spread"])] if repeated else [])]
        for name, axis in content["axes"].items()
    ]
    logs = [
        [log["file"], number(log["offset_s"]), "given" if log["explained"] is None else number(log["explained"])]
        for log in content["logs"]
    ]
    vectors = [[name, v["unit"], number(v["rmse"]), number(v["largest_error"])] for name, v in content["vectors"].items()]
    explained = (
        "Error is run minus log. NRMSE is relative to the range of the log; peak error is max|run| - max|log|; lag (s) is the "
        "remaining delay of the log; gain and offset come from the line log = gain run + offset."
        + (
            " Axes are relative to the mean of the trials; ± gives the half-width of the 95 % interval over the trials."
            if repeated
            else ""
        )
    )
    return page(
        f"Comparison of {content['run']}",
        f"<h1>{html.escape(content['run'])}, {html.escape(what)}</h1>\n"
        f"<p>{grid['from_s']:.4g} to {grid['to_s']:.4g} s of the run, {grid['samples']} samples at {grid['rate_Hz']:g} Hz, "
        f"{filtered}.</p>\n"
        + warnings(content["warnings"])
        + f"<h2>Overlay</h2>\n{svg[svg.index('<svg') :]}\n<h2>By axis</h2>\n{table(head, rows)}<p>{explained}</p>\n"
        + f"<h2>Error vectors</h2>\n{table(['group', 'unit', 'RMS length', 'largest'], vectors)}"
        + f"<h2>Logs</h2>\n{table(['file', 'run time of its first sample, s', 'variation shared'], logs)}",
    )


def _shown(axis: Mapping[str, Any], column: str) -> str:
    half = axis.get("confidence", {}).get(column, (None, None))[1]
    return number(axis[column]) + (f" ± {number(half)}" if half is not None else "")

"""Figure of how a calibration converged, and one page that holds all of it."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from viz.errors import VizError
from viz.page import number, page, table, warnings
from viz.plots import COLOURS, STYLE, _figure

__all__ = ["calibration_page", "plot_calibration"]


def plot_calibration(
    phases: Sequence[str],
    misfits: Sequence[float],
    values: Mapping[str, Sequence[float]],
    axes: Mapping[str, tuple[str, str]],
    paths: Sequence[Path],
) -> list[Path]:
    """Draw misfit and parameters of each evaluation, coloured by phase.

    Parameters
    ----------
    phases : sequence of str
        Phase of each evaluation.
    misfits : sequence of float, 1
        Root mean square of the errors by the range of the logs; NaN where a run failed.
    values : mapping of str to sequence of float
        By parameter.
    axes : mapping of str to (str, str)
        Unit and scale ("linear" or "log") by parameter.
    paths : sequence of Path
        Files to write, .png, .svg or .pdf.

    Returns
    -------
    list of Path
        The files.

    Raises
    ------
    VizError
        No evaluation.
    """
    if not len(misfits):
        raise VizError("a calibration without evaluations cannot be drawn.")

    import matplotlib

    number, cost = np.arange(1, len(misfits) + 1), np.asarray(misfits, dtype=float)
    with matplotlib.rc_context(STYLE):
        figure, panels = _figure(1 + len(values), 0.8 + 1.3 * (1 + len(values)))
        best = np.minimum.accumulate(np.where(np.isfinite(cost), cost, np.inf))
        shown = np.isfinite(best)
        panels[0].plot(number[shown], best[shown], color="0.6", drawstyle="steps-post", zorder=0)
        panels[0].set_ylabel("misfit [1]")
        panels[0].set_yscale("log")
        for axis, (name, points) in zip(panels[1:], values.items(), strict=True):
            unit, scale = axes[name]
            axis.set_yscale(scale)
            axis.set_ylabel(f"{name.replace('_', ' ')}\n[{unit or '1'}]")
            axis.plot(number, points, color="0.85", linewidth=0.6, zorder=0)
        for k, phase in enumerate(dict.fromkeys(phases)):
            own = np.array([p == phase for p in phases])
            series = (cost, *(np.asarray(points) for points in values.values()))
            for axis, y in zip(panels, series, strict=True):
                axis.plot(number[own], y[own], ".", color=COLOURS[k % len(COLOURS)], label=phase, markersize=4)
        panels[-1].set_xlabel("evaluation")
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper right", ncols=5)
        for path in paths:
            figure.savefig(path, metadata={".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(path.suffix, {}))
    return list(paths)


def calibration_page(content: Mapping[str, Any], convergence: Path, overlays: Mapping[str, Path]) -> str:
    """Make one HTML page of a calibration, which needs no other file.

    Parameters
    ----------
    content : mapping
        Content of calibration.json.
    convergence : Path
        Figure as SVG; it goes into the page.
    overlays : mapping of str to Path
        Overlay of each reading as SVG, by title.

    Returns
    -------
    str
        The page.
    """
    level = f"{100 * content['confidence']:g} %"
    parameters = [
        [
            name, p["unit"], number(p["value"]), _interval(p["interval"]), _interval(p["joint_interval"]),
            _interval(p["between"]), number(p["reference"]),
        ]
        for name, p in content["parameters"].items()
    ]  # fmt: skip
    head = ["parameter", "unit", "value", f"{level} interval", f"{level} for all at once", "bounds", "reference"]
    reference = content["errors"]["reference"]
    errors = [
        [
            experiment, what, group, number(rms), number(largest),
            number(reference.get(experiment, {}).get(group, (None, None))[0]),
        ]
        for key, what in (("fitted", "fitted"), ("held_out", "held out"))
        for experiment, groups in content["errors"][key].items()
        for group, (rms, largest) in groups.items()
    ]  # fmt: skip
    names = list(content["parameters"])
    correlation = [[name, *(number(x) for x in row)] for name, row in zip(names, content["correlation"], strict=True)]
    drawings = "".join(f"<h2>{html.escape(title)}</h2>\n{_drawing(path)}\n" for title, path in overlays.items())
    title = f"Calibration of {Path(content['scene']).stem}"
    return page(
        title,
        f"<h1>{html.escape(title)}</h1>\n"
        f"<p>{html.escape(content['status'])}: {html.escape(content['message'])} {content['evaluations']} evaluations.</p>\n"
        + table(head, parameters)
        + warnings(content["warnings"])
        + "<h2>Errors</h2>\n"
        + table(["experiment", "", "group", "RMS", "largest", "RMS at the reference"], errors)
        + "<p>Length of the error vector, run minus mean of the trials, SI units.</p>\n"
        + f"<h2>Correlation of the estimates</h2>\n{table(['', *names], correlation)}"
        + f"<h2>Convergence</h2>\n{_drawing(convergence)}\n"
        + "<p>Misfit: root mean square of the errors by the range of the logs.</p>\n"
        + drawings,
    )


def _interval(pair: Sequence[float] | None) -> str:
    return "-" if pair is None else f"{number(pair[0])} to {number(pair[1])}"


def _drawing(path: Path) -> str:
    svg = path.read_text(encoding="utf-8")
    return svg[svg.index("<svg") :]

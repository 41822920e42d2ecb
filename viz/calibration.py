"""Figures of the convergence and the profiles of a calibration, and its HTML page."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from viz.errors import VizError
from viz.files import save_figure
from viz.look import COLOURS, STYLE
from viz.page import number, page, table, warnings
from viz.plots import _figure

__all__ = ["calibration_page", "plot_calibration", "plot_profiles"]

_RISE = 2.0  # largest rise of a profile that is drawn, relative to its level


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
        Root mean square of the errors relative to the range of the logs; NaN if a run failed.
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
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper right", ncols=5 if len(set(phases)) <= 5 else 3)
        for path in paths:
            save_figure(figure, path)
    return list(paths)


def plot_profiles(
    curves: Mapping[str, tuple[Sequence[float], Sequence[float]]],
    values: Mapping[str, float],
    intervals: Mapping[str, tuple[float, float]],
    profiles: Mapping[str, tuple[float, float]],
    bootstraps: Mapping[str, tuple[float, float]],
    axes: Mapping[str, tuple[str, str]],
    paths: Sequence[Path],
) -> list[Path]:
    """Draw the profile of each parameter with the parabola of the Jacobian, and the intervals below them.

    Parameters
    ----------
    curves : mapping of str to (sequence of float, sequence of float)
        By parameter: ascending values, and the rise of the sum of squares there relative to the level (1 at the ends).
    values : mapping of str to float
        Best fit.
    intervals, profiles, bootstraps : mapping of str to (float, float)
        Intervals from the Jacobian, the profile (NaN without an end) and the bootstrap (empty without one).
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
        No curve.
    """
    if not curves:
        raise VizError("profiles without a parameter cannot be drawn.")

    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator
    from scipy.interpolate import PchipInterpolator

    columns = min(len(curves), 3)
    rows = -(-len(curves) // columns)
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(2.6 * columns + 0.4, 2.5 * rows + 0.3), layout="constrained")
        FigureCanvasAgg(figure)
        panels = figure.subplots(rows, columns, squeeze=False).ravel()
        for panel in panels[len(curves) :]:
            panel.set_visible(False)
        for panel, (name, (points, rises)) in zip(panels, curves.items(), strict=False):
            unit, scale = axes[name]
            to, back = (np.log, np.exp) if scale == "log" else (np.asarray, np.asarray)
            x, best = to(np.asarray(points, dtype=float)), float(to(values[name]))
            half = float(to(intervals[name][1])) - best
            rise = np.asarray(rises, dtype=float)  # below 0 at a better fit
            root = np.sign(x - best) * np.sign(rise) * np.sqrt(np.abs(rise))  # a straight line if the model is linear
            near = x[rise <= _RISE]
            reach = min(1.2 * half, float(np.ptp(x)) or 1.2 * half)  # for a parameter without effect, the bounds
            low, high = min(float(near[0]), best - reach), max(float(near[-1]), best + reach)
            parabola = np.linspace(low, high, 200)
            panel.plot(back(parabola), ((parabola - best) / half) ** 2, "--", color="0.55", label="Jacobian")
            if len(x) > 1:
                fine = np.linspace(x[0], x[-1], 200)
                line = PchipInterpolator(x, root)(fine)
                panel.plot(back(fine), np.sign(fine - best) * line * np.abs(line), color=COLOURS[0], label="profile")
            panel.plot(points, rises, ".", color=COLOURS[0], markersize=5)
            panel.axhline(1.0, color="0.3", linewidth=0.8)
            panel.axvline(values[name], color="0.85", linewidth=0.8, zorder=0)
            floor = min(0.0, float(rise.min()))
            bars = [("0.55", intervals[name]), (COLOURS[0], profiles[name])]
            bars += [(COLOURS[1], bootstraps[name])] if name in bootstraps and np.isfinite(bootstraps[name]).all() else []
            for k, (colour, (start, end)) in enumerate(bars):
                ends = np.clip([-np.inf if np.isnan(start) else start, np.inf if np.isnan(end) else end], back(low), back(high))
                label = "bootstrap" if k == 2 else None
                panel.plot(ends, [floor - 0.12 - 0.13 * k] * 2, color=colour, linewidth=3.0, solid_capstyle="butt", label=label)
            if scale == "log" and high - low > np.log(5.0):
                panel.set_xscale("log")
            else:
                panel.xaxis.set_major_locator(MaxNLocator(4))
            panel.set_xlim(float(back(low)), float(back(high)))
            panel.set_ylim(floor - 0.5, _RISE)
            panel.set_yticks([0.0, 0.5, 1.0, 1.5, 2.0])
            panel.set_xlabel(f"{name.replace('_', ' ')} [{unit or '1'}]")
        for first in panels[::columns]:
            first.set_ylabel("rise / level [1]")
        named = {label: line for panel in panels for line, label in zip(*panel.get_legend_handles_labels(), strict=True)}
        figure.legend(list(named.values()), list(named), loc="outside upper right", ncols=3)
        for path in paths:
            save_figure(figure, path)
    return list(paths)


def calibration_page(
    content: Mapping[str, Any], convergence: Path, overlays: Mapping[str, Path], profiles: Path | None = None
) -> str:  # fmt: skip
    """Make a self-contained HTML page of a calibration.

    Parameters
    ----------
    content : mapping
        Content of calibration.json.
    convergence : Path
        Figure as SVG, which is embedded.
    overlays : mapping of str to Path
        Overlay of each reading as SVG, by title.
    profiles : Path, optional
        Figure of the profiles as SVG.

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
    told = content.get("readings", {})
    readings = [[name, number(reading["value"]), _interval(reading["interval"])] for name, reading in told.items()]
    head = ["parameter", "unit", "value", f"{level} interval", f"{level} simultaneous", "bounds", "reference"]
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
        + (table(["reading of the Prony terms", "value", f"{level} interval"], readings) if readings else "")
        + warnings(content["warnings"])
        + "<h2>Errors</h2>\n"
        + table(["experiment", "", "group", "RMS", "largest", "RMS at the reference"], errors)
        + "<p>Length of the error vector (run minus mean of the trials), SI units.</p>\n"
        + _more_intervals(content, profiles)
        + f"<h2>Correlation of the estimates</h2>\n{table(['', *names], correlation)}"
        + f"<h2>Convergence</h2>\n{_drawing(convergence)}\n"
        + "<p>Misfit: root mean square of the errors relative to the range of the logs.</p>\n"
        + drawings,
    )


def _interval(pair: Sequence[float | None] | None) -> str:
    return "-" if pair is None else f"{number(pair[0])} to {number(pair[1])}"


def _ends(pair: Sequence[float | None]) -> str:
    return " to ".join("no end" if end is None else f"{end:.6g}" for end in pair)


def _more_intervals(content: Mapping[str, Any], profiles: Path | None) -> str:
    """Make the section on profiles and bootstrap; empty without any."""
    more = [kind for kind in ("profile", "bootstrap") if kind in content["intervals"]]
    if not more:
        return ""
    rows = [
        [name, p["unit"], _ends(p["interval"]), *(_ends(p[f"{kind}_interval"]) for kind in more)]
        for name, p in content["parameters"].items()
    ]
    text = f"<h2>Intervals of {100 * content['confidence']:g} %</h2>\n" + table(["parameter", "unit", "Jacobian", *more], rows)
    if profiles is not None:
        text += f"{_drawing(profiles)}\n<p>Rise of the sum of squares with the others refitted: 1 at the ends of a profile. "
        text += "Bars: the intervals.</p>\n"
    return text


def _drawing(path: Path) -> str:
    svg = path.read_text(encoding="utf-8")
    return svg[svg.index("<svg") :]

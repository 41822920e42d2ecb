"""Figures of a sweep: metrics over parameters as curves, heat maps, parallel coordinates and pairs; Sobol indices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

import foreign
from foreign.tables import read_parquet
from foreign.text import read_json
from viz.errors import VizError
from viz.files import save_figure
from viz.look import COLOURS, STYLE, WIDTH, Look, plot_folder

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure
    from pandas import DataFrame

__all__ = ["plot_sensitivity", "plot_sweep"]

_MANY_CURVES = len(COLOURS)
_MANY_METRICS = 6
_MAP = "viridis"
DEFAULT_LOOK = Look()
_FINISHED = ("converged", "not converged")
_WRONG = "wrong by its health"
_RING: dict[str, Any] = {"linestyle": "none", "marker": "o", "markerfacecolor": "none", "markeredgecolor": "#c00000"}


def plot_sweep(folder: Path, out: Path | None = None, *, look: Look = DEFAULT_LOOK) -> list[Path]:
    """Draw the table of a sweep.

    Each figure as PNG, SVG and PDF: ``curves`` (each metric over the parameter with most values; one line per combination of the
    others if these are few, else points), ``map_METRIC`` (a metric over two parameters, if exactly two numbers vary and form a
    grid), ``parallel`` (parallel coordinates, coloured by the first metric) and ``pairs`` (all varied parameters and metrics
    against each other). Cases that failed or were not run are omitted; those that are wrong by their health are ringed, or dashed
    in ``parallel``. The first six metrics are drawn.

    Parameters
    ----------
    folder : Path
        Folder of a sweep, with sweep.json and results.parquet.
    out : Path, optional
        Folder of the figures; default ``folder/plots``. Files of the same name are replaced.
    look : Look
        Size, font and formats.

    Returns
    -------
    list of Path
        The files written.

    Raises
    ------
    VizError
        A folder without a sweep; a sweep without metrics, varied numbers or finished cases; pandas is missing.
    """
    folder = Path(folder)
    info, table = read_sweep_table(folder)
    table = table[table["status"].isin(_FINISHED)]
    columns = [f"parameter_{name}" if f"parameter_{name}" in table else name for name in info["varied"]]
    found = [name for name in info["metrics"] if table[name].dtype.kind in "iuf"]
    metrics = [name for name in found if np.isfinite(table[name]).any()][:_MANY_METRICS]
    varied = [name for name in columns if table[name].nunique() > 1]
    numbers = [name for name in varied if table[name].dtype.kind in "iuf"]
    if table.empty or not metrics or not numbers:
        lacks = "finished case" if table.empty else "metric with a value" if not metrics else "number that varies"
        raise VizError(f"{folder} has no {lacks}, so there is nothing to plot.")
    out = plot_folder(folder / "plots" if out is None else Path(out))

    import matplotlib

    units, scales = info["units"], info["scales"]
    draw = _Drawing(
        table,
        look,
        {name: units.get(name.removeprefix("parameter_"), units.get(name, "")) for name in (*varied, *metrics)},
        {name: scales.get(name.removeprefix("parameter_"), "") for name in varied},
    )
    with matplotlib.rc_context(look.settings):
        figures = {"curves": draw.curves(numbers, varied, metrics)}
        if len(numbers) == len(varied) == 2 and len(table) == table[varied[0]].nunique() * table[varied[1]].nunique():
            figures |= {f"map_{metric}": draw.heat_map(numbers, metric) for metric in metrics}
        if len(numbers) + len(metrics) > 2:
            figures["parallel"] = draw.parallel([*numbers, *metrics], metrics[0])
            figures["pairs"] = draw.pairs([*numbers, *metrics], metrics[0])
        written = []
        for name, figure in figures.items():
            for ending in look.formats:
                path = out / f"{name}.{ending}"
                save_figure(figure, path)
                written.append(path)
    return written


def read_sweep_table(folder: Path) -> tuple[dict[str, Any], DataFrame]:
    """Read what a sweep is, and its table.

    Parameters
    ----------
    folder : Path
        Folder of a sweep.

    Returns
    -------
    (dict, DataFrame)
        ``varied`` and ``metrics``, names of columns that are there (a parameter's may begin with ``parameter_``), ``units`` and
        ``scales`` by name; one row a case.

    Raises
    ------
    VizError
        No sweep, a file that is damaged, or pandas is missing.
    """
    try:
        import pandas
    except ImportError as error:
        raise VizError('plots of sweeps need pandas, which is not installed; install "femsim[sweep]".') from error
    path = folder / "results.parquet"
    try:
        info = read_json(folder / "sweep.json")
        full = path.resolve()
        read = foreign.call(read_parquet, full.stat().st_size, libraries=["pandas", "pyarrow.parquet"], path=str(full))
    except (OSError, ValueError) as error:
        if isinstance(error, FileNotFoundError) and (folder / "sweep.json").exists():
            raise VizError(
                f"the sweep in {folder} was killed before it wrote a table; go on by femsim sweep FILE --resume, then draw it."
            ) from error
        raise VizError(f"{folder} has no table of a sweep ({error}); give the folder that femsim sweep wrote.") from error
    held = dict(read["texts"]) | {name[1:]: values for name, values in read.items() if name.startswith("=")}
    table = pandas.DataFrame({name: held[name] for name in read["names"]})
    said = info if isinstance(info, dict) else {}
    out: dict[str, Any] = {"varied": said.get("varied"), "metrics": said.get("metrics")}
    for name in ("units", "scales"):  # sweeps of an older femsim have none
        words = said.get(name)
        out[name] = {key: str(word) for key, word in words.items()} if isinstance(words, dict) else {}
    for name, values in out.items():
        if not isinstance(values, (list, dict)) or not all(isinstance(value, str) for value in values):
            raise VizError(f"{folder / 'sweep.json'}: {name} is no list of names; run the sweep again with --resume.")
    columns = [f"parameter_{name}" if f"parameter_{name}" in table else name for name in out["varied"]]
    asked = ["status", *out["metrics"], *columns]
    lacks = [name for name in asked if name not in table]
    if lacks:
        raise VizError(f"{path} lacks the column {lacks[0]!r}; run the sweep again with --resume, which makes the table anew.")
    return out, table


def plot_sensitivity(
    indices: Mapping[str, tuple[Sequence[str], Sequence[tuple[float, float]], Sequence[tuple[float, float]]]], path: Path
) -> Path:
    """Draw Sobol indices as bars with their intervals, one panel per metric.

    Parameters
    ----------
    indices : mapping
        By metric: names of the parameters, their first-order and total indices, each with the half-width of its interval; 1.
    path : Path
        File to write, .png or .svg.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    VizError
        No metric.
    """
    if not indices:
        raise VizError("a study of sensitivity without indices cannot be drawn.")

    import matplotlib

    count = max(len(names) for names, _, _ in indices.values())
    with matplotlib.rc_context(STYLE):
        figure, axes = _new(len(indices), 1, WIDTH, 0.9 + len(indices) * (0.5 + 0.35 * count), sharex=True)
        for axis, (metric, (names, *kinds)) in zip(axes[:, 0], indices.items(), strict=True):
            for k, (label, pairs) in enumerate(zip(("first order", "total"), kinds, strict=True)):
                index, half = np.array(pairs, dtype=float).T
                places = np.arange(len(names)) + 0.36 * (k - 0.5)
                axis.barh(places, index, 0.34, xerr=half, color=COLOURS[k], ecolor="0.3", capsize=2, label=label)
            axis.set_yticks(range(len(names)), [name.replace("_", " ") for name in names])
            axis.invert_yaxis()
            axis.grid(False, axis="y")
            axis.set_title(metric, loc="left", fontsize="medium")
        axes[-1, 0].set_xlim(left=min(0.0, axes[-1, 0].get_xlim()[0]), right=max(1.0, axes[-1, 0].get_xlim()[1]))
        axes[-1, 0].set_xlabel("part of the variance [1]")
        figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper right", ncols=2)
        save_figure(figure, path)
    return path


def _new(rows: int, columns: int, width: float, height: float, **options: Any) -> tuple[Figure, npt.NDArray[Any]]:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.subplots(rows, columns, squeeze=False, **options)


def _logarithmic(values: npt.NDArray[np.float64]) -> bool:
    """Whether a logarithmic axis shows the values better."""
    known = values[np.isfinite(values)]
    return bool(known.size and known.min() > 0 and known.max() > 9.9 * known.min())


class _Drawing:
    """The figures of one table, with units and scales of its columns."""

    def __init__(self, table: DataFrame, look: Look, units: Mapping[str, str], scales: Mapping[str, str]) -> None:
        self._table, self._look, self._units, self._scales = table, look, units, scales
        verdict = table["verdict"] if "verdict" in table else np.zeros(len(table))  # sweeps of an older femsim have none
        self._wrong = np.asarray(verdict == "wrong")

    def _label(self, name: str, broken: bool = False) -> str:
        """Name and unit of a column; a long name in several lines."""
        unit = self._units.get(name, "")
        return (_broken(name) if broken else name) + (("\n" if broken else " ") + f"[{unit}]" if unit else "")

    def _logarithmic(self, name: str) -> bool:
        """Whether an axis is logarithmic: as the parameter was sampled, else where that shows the values better."""
        values = self._table[name].to_numpy(float)
        scale = self._scales.get(name, "")
        if scale:
            return scale == "log" and bool(np.nanmin(values) > 0)
        return _logarithmic(values)

    def _value(self, name: str, value: Any) -> str:
        unit = self._units.get(name, "")
        return f"{name} {_text(value)}" + (f" {unit}" if unit not in ("", "1") else "")

    def _ring(self, axis: Axes, x: Any, y: Any, size: float = 7.0) -> None:
        """Draw rings around the points, (n,), of the cases that are wrong by their health."""
        if self._wrong.any():
            axis.plot(np.asarray(x)[self._wrong], np.asarray(y)[self._wrong], markersize=size, label=_WRONG, **_RING)

    def _wide(self, width: float, height: float) -> tuple[float, float]:
        """Size of a figure that needs a width, inches, unless the look has one."""
        own = self._look.size(height)
        return (max(WIDTH, width), own[1]) if self._look.width is None else own

    def curves(self, numbers: list[str], varied: list[str], metrics: list[str]) -> Figure:
        """Draw each metric over the parameter with most values."""
        table = self._table
        across = max(numbers, key=lambda name: table[name].nunique())
        others = [name for name in varied if name != across]
        groups = list(table.groupby(others)) if others else [((), table)]
        lines = len(groups) <= _MANY_CURVES and len(groups) < len(table)
        figure, axes = _new(len(metrics), 1, *self._look.size(0.8 + 1.9 * len(metrics)), sharex=True)
        for axis, metric in zip(axes[:, 0], metrics, strict=True):
            if lines:
                for number, (key, group) in enumerate(groups):
                    ordered = group.sort_values(across)
                    label = ", ".join(self._value(name, value) for name, value in zip(others, key, strict=True))
                    axis.plot(ordered[across], ordered[metric], marker=".", color=COLOURS[number], label=label)
            else:
                axis.plot(table[across], table[metric], linestyle="none", marker=".", color=COLOURS[0])
            self._ring(axis, table[across], table[metric])
            axis.set_ylabel(self._label(metric))
        if self._logarithmic(across):
            axes[-1, 0].set_xscale("log")
            _plain_ticks(axes[-1, 0].xaxis, table[across])
        axes[-1, 0].set_xlabel(self._label(across))
        self._legend(figure, axes[0, 0])
        return figure

    def _legend(self, figure: Figure, axis: Axes) -> None:
        """Give a figure the legend of one of its axes, unless that is empty."""
        handles, labels = axis.get_legend_handles_labels()
        if labels:
            figure.legend(handles, labels, loc="outside upper center", ncols=self._look.columns(labels))

    def heat_map(self, numbers: list[str], metric: str) -> Figure:
        """Draw a metric over two parameters."""
        table = self._table
        values = table.pivot(index=numbers[1], columns=numbers[0], values=metric)
        figure, axes = _new(1, 1, *self._look.size(3.8))
        axis = axes[0, 0]
        axis.grid(False)
        image = axis.pcolormesh(np.arange(values.shape[1] + 1), np.arange(values.shape[0] + 1), values.to_numpy(float), cmap=_MAP)
        for ticks, labels, name in (
            (axis.set_xticks, values.columns, numbers[0]),
            (axis.set_yticks, values.index, numbers[1]),
        ):
            every = max(1, len(labels) // 8)
            ticks(np.arange(len(labels))[::every] + 0.5, [f"{value:.3g}" for value in labels[::every]])
            (axis.set_xlabel if name == numbers[0] else axis.set_ylabel)(self._label(name))
        places = [
            axis_values.get_indexer(table[name]) + 0.5
            for name, axis_values in zip(numbers, (values.columns, values.index), strict=True)
        ]
        self._ring(axis, *places)
        self._legend(figure, axis)
        figure.colorbar(image, ax=axis, label=self._label(metric))
        return figure

    def parallel(self, names: list[str], colour_by: str) -> Figure:
        """Draw one line per case through one vertical axis per column, each from its smallest to its largest value."""
        table = self._table
        from matplotlib import colormaps
        from matplotlib.collections import LineCollection

        figure, axes = _new(1, 1, *self._wide(1.3 * len(names), 3.6))
        axis = axes[0, 0]
        scaled = np.empty((len(table), len(names)))
        for k, name in enumerate(names):
            x = table[name].to_numpy(float)
            low, high = np.nanmin(x), np.nanmax(x)
            if self._logarithmic(name):
                scaled[:, k] = np.log(x / low) / np.log(high / low)
            else:
                scaled[:, k] = (x - low) / (high - low) if high > low else 0.5
            axis.text(k, -0.04, f"{low:.3g}", ha="center", va="top", fontsize="small")
            axis.text(k, 1.04, f"{high:.3g}", ha="center", va="bottom", fontsize="small")
            axis.axvline(k, color="#808080", linewidth=0.8)
        points = np.stack([np.broadcast_to(np.arange(len(names), dtype=float), scaled.shape), scaled], axis=2)
        colours = table[colour_by].to_numpy(float)
        lines = LineCollection(list(points), cmap=colormaps[_MAP], linewidths=0.8, alpha=max(0.15, min(1.0, 60 / len(table))))
        lines.set_array(colours)
        lines.set_linestyle(["--" if wrong else "-" for wrong in self._wrong])
        axis.add_collection(lines)
        if self._wrong.any():
            axis.plot([], [], linestyle="--", color="0.3", label=_WRONG)
            self._legend(figure, axis)
        labels = [self._label(name, broken=True) + ("\n(log)" if self._logarithmic(name) else "") for name in names]
        axis.set_xticks(range(len(names)), labels)
        axis.tick_params(axis="x", pad=16, length=0)
        axis.set_yticks([])
        axis.set_ylim(-0.12, 1.12)
        axis.set_xlim(-0.4, len(names) - 0.6)
        axis.grid(False)
        axis.spines[["left", "bottom"]].set_visible(False)
        bar = figure.colorbar(lines, ax=axis, label=self._label(colour_by))
        if bar.solids is not None:  # full colours, unlike the pale lines
            bar.solids.set_alpha(1.0)
        return figure

    def pairs(self, names: list[str], colour_by: str) -> Figure:
        """Draw all parameters and metrics against each other."""
        table = self._table
        n = len(names)
        figure, axes = _new(n, n, *self._wide(1.5 * n, max(WIDTH, 1.5 * n)), sharex="col")
        logarithmic = {name: self._logarithmic(name) for name in names}
        for row, vertical in enumerate(names):
            for column, horizontal in enumerate(names):
                axis = axes[row, column]
                if column > row:
                    axis.set_visible(False)
                    continue
                x = table[horizontal].to_numpy(float)
                if logarithmic[horizontal]:
                    axis.set_xscale("log")
                    _plain_ticks(axis.xaxis, table[horizontal])
                else:
                    _whole_ticks(axis.xaxis, table[horizontal])
                if row == column:
                    known = x[np.isfinite(x)]
                    edges = np.geomspace if logarithmic[horizontal] else np.linspace
                    low, high = known.min(), known.max()
                    axis.hist(known, bins=edges(low, high, 13) if high > low else 1, color="#b0b7c0")
                    axis.set_yticks([])
                else:
                    axis.scatter(x, table[vertical], c=table[colour_by], cmap=_MAP, s=5)
                    self._ring(axis, x, table[vertical], 5.0)
                    if logarithmic[vertical]:
                        axis.set_yscale("log")
                        _plain_ticks(axis.yaxis, table[vertical])
                    else:
                        _whole_ticks(axis.yaxis, table[vertical])
                if column == 0 and row > 0:
                    axis.set_ylabel(self._label(vertical, broken=True))
                if row == n - 1:
                    axis.set_xlabel(self._label(horizontal, broken=True))
                    axis.tick_params(axis="x", labelrotation=45)  # panels are narrow
        self._legend(figure, axes[1, 0])
        return figure


def _plain_ticks(axis: Axis, values: Any) -> None:
    """Label a logarithmic axis over less than 30 with plain numbers; matplotlib writes 1.05 x 10^0 there."""
    from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter, StrMethodFormatter

    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    if high / low >= 30:
        return
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)) if high / low >= 4 else MaxNLocator(4, steps=[1, 2, 5, 10]))
    axis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axis.set_minor_formatter(NullFormatter())


def _whole_ticks(axis: Axis, values: Any) -> None:
    """Label a linear axis of very small or large values with whole numbers; matplotlib writes their power of ten at its end."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    def number(value: float, _place: int) -> str:
        digits, exponent, power = f"{value:.3g}".partition("e")
        return f"{digits}e{int(power)}" if exponent else digits

    largest = float(np.nanmax(np.abs(values)))
    if largest < 1e-3 or largest >= 1e5:
        axis.set_major_locator(MaxNLocator(3))
        axis.set_major_formatter(FuncFormatter(number))


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, int | float) else str(value)


def _broken(name: str) -> str:
    """Break a long name into lines at its underscores."""
    return name.replace("_", "_\n", 2) if len(name) > 12 else name

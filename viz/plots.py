"""Figures of a run's tables (forces, solver, energy, penetration) and of solver convergence."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from viz.errors import VizError
from viz.files import no_run, save_figure
from viz.look import COLOURS, STYLE, Look, plot_folder, unknown
from viz.tables import GROUPED, VECTORS, Table, read_table, vectors_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["plot_convergence", "plot_run", "plot_runs"]

FloatArray = npt.NDArray[np.float64]

#: Columns of steps.csv that are drawn.
STEP_COLUMNS = (
    "time_s", "iterations", "dynamics_residual", "contact_residual", "max_penetration_m", "kinetic_energy_J", "elastic_energy_J",
    "work_J",
)  # fmt: skip
AXES = ("fx", "fy", "fz", "tx", "ty", "tz", "x", "y", "z")
DEFAULT_LOOK = Look()
#: Panels of a figure: with hundreds its layout takes hours.
_MOST_PANELS = 20
#: Letters of a label beside a panel before it goes on in the next line.
_LABEL = 18
_Panel = TypeVar("_Panel")


def plot_run(run_dir: str | os.PathLike[str], out: Path | None = None) -> list[Path]:
    """Draw the tables of one run folder; see `plot_runs`."""
    return plot_runs([run_dir], out)


def plot_runs(
    run_dirs: Sequence[str | os.PathLike[str]],
    out: Path | None = None,
    *,
    sensors: Sequence[str] = (),
    axes: Sequence[str] = (),
    look: Look = DEFAULT_LOOK,
    figures: Sequence[str] = (),
) -> list[Path]:
    """Draw the tables of run folders, several runs over each other.

    Figures, each as PNG, SVG and PDF: ``forces`` and ``torques`` (the components of each sensor in sensors.csv), ``markers``
    (their coordinates), ``gauges`` (the other columns), ``solver`` (iterations and residuals), ``energy`` (kinetic, elastic,
    work) and ``penetration``, the last three from steps.csv. In figures of one run colours distinguish quantities; in figures of
    several they distinguish runs, each quantity has its own panel, and the legend names the folders. Where a figure would have
    more than 20 panels, sensors that stay zero are left out, and the others go on in ``forces_2`` ...

    Parameters
    ----------
    run_dirs : sequence of Path
        Run folders with steps.csv and, when the scene has sensors, sensors.csv.
    out : Path, optional
        Folder of the figures, by default ``RUN/plots`` of the first run; files of the same name are replaced.
    sensors : sequence of str
        Only these sensors and markers; then no figures of steps.csv.
    axes : sequence of str
        Only these components: fx, fy, fz, tx, ty, tz, and x, y, z of markers; then no figures of steps.csv.
    look : Look
        Size, font, names in the legend, formats.
    figures : sequence of str
        Only these figures.

    Returns
    -------
    list of Path
        The files written. ``forces``, ``torques``, ``markers`` and ``gauges`` are omitted if no run has a sensor for them,
        torques also where all are zero.

    Raises
    ------
    VizError
        When no folder is given, a run folder or steps.csv is missing, a table is broken, a column is missing, no run has a sensor
        or axis that is asked for, or there is no such figure.
    """
    folders = [Path(folder) for folder in run_dirs]
    if not folders:
        raise VizError("no run folder was given; give one or more.")
    names = look.names(_labels(folders))
    runs = {name: _read_run(folder) for name, folder in zip(names, folders, strict=True)}
    if sensors or axes:
        check_choice(sensors, axes, [table for _, table in runs.values()])
        runs = {name: (steps, _chosen(table, sensors, axes)) for name, (steps, table) in runs.items()}
    out = plot_folder(folders[0] / "plots" if out is None else Path(out))

    import matplotlib

    of_steps = ("solver", "energy", "penetration")
    for name in figures:
        if name not in (*VECTORS, "gauges", *of_steps):
            raise VizError(unknown("the figure", name, (*VECTORS, "gauges", *of_steps)))
    wanted = set(figures) or {*VECTORS, "gauges", *(() if sensors or axes else of_steps)}
    with matplotlib.rc_context(look.settings):
        one = len(runs) == 1
        drawn = _figures_of_one(*next(iter(runs.values())), wanted, look) if one else _figures_of_several(runs, wanted, look)
        written = []
        for name, figure in drawn.items():
            for ending in look.formats:
                path = out / f"{name}.{ending}"
                save_figure(figure, path)
                written.append(path)
    return written


def check_choice(sensors: Sequence[str], axes: Sequence[str], tables: Sequence[Table]) -> None:
    """Raise VizError, with the nearest name, for a sensor or axis that no table has."""
    columns = dict.fromkeys(column for table in tables for column in table if column != "time_s")
    found = [GROUPED.fullmatch(column) for column in columns]
    names = list(dict.fromkeys(match[1] for match in found if match))
    for name in sensors:
        if name not in names and not any(column.startswith(f"{name}_") for column in columns if not GROUPED.fullmatch(column)):
            raise VizError(unknown("the sensor", name, names or columns))
    for axis in axes:
        if axis not in AXES:
            raise VizError(unknown("the axis", axis, AXES))
    if not any(_chosen(dict.fromkeys(columns, np.zeros(0)), sensors, axes)):
        raise VizError(
            f"no sensor {', '.join(sensors) or 'of these runs'} has an axis {' or '.join(axes)}; nothing is left to plot."
        )


def _chosen(table: Table, sensors: Sequence[str], axes: Sequence[str]) -> Table:
    """Return the columns of some sensors and components, and the time."""
    out = {}
    for column, values in table.items():
        match = GROUPED.fullmatch(column)
        if match:
            wanted = (not sensors or match[1] in sensors) and (not axes or match[2] in axes)
        else:
            wanted = not axes and any(column.startswith(f"{name}_") for name in sensors)
        if wanted or (column == "time_s" and values.size):
            out[column] = values
    return out


def _labels(folders: list[Path]) -> list[str]:
    """Names of the runs: the last part of their paths, or the full paths if these are equal."""
    names = [folder.resolve().name for folder in folders]
    return names if len(set(names)) == len(names) else [str(folder) for folder in folders]


def _read_run(folder: Path) -> tuple[Table, Table]:
    """Read the tables of a run: steps and sensors (empty without any)."""
    if not folder.is_dir():
        raise VizError(no_run(folder))
    steps = read_table(folder / "steps.csv", STEP_COLUMNS)
    sensors_file = folder / "sensors.csv"
    return steps, read_table(sensors_file, ("time_s",)) if sensors_file.exists() else {}


def _gauge_panels(tables: Iterable[Table]) -> list[tuple[str, str, float, bool]]:
    """Panels of :func:`_overlay` for columns of no force sensor and no marker; the header has their names and units."""
    panels = []
    for column in dict.fromkeys(name for table in tables for name in table):
        name, _, unit = column.rpartition("_")
        if column != "time_s" and name and not GROUPED.fullmatch(column):
            unit = unit.replace("m2", "m$^2$").replace("m3", "m$^3$")
            label = textwrap.fill(f"{name.replace('_', ' ')} [{unit}]", _LABEL, break_long_words=False, break_on_hyphens=False)
            panels.append((column, label, 1.0, False))
    return panels


def _pages(
    name: str, panels: Sequence[_Panel], is_zero: Callable[[_Panel], bool], draw: Callable[[Sequence[_Panel]], Figure]
) -> dict[str, Figure]:
    """Draw a figure, or several of at most so many panels; then without those of what stays zero."""
    if len(panels) > _MOST_PANELS:
        panels = [panel for panel in panels if not is_zero(panel)]
    pages = [panels[first : first + _MOST_PANELS] for first in range(0, len(panels), _MOST_PANELS)]
    return {f"{name}_{number}" if number > 1 else name: draw(page) for number, page in enumerate(pages, 1)}


def _stays_zero(tables: Iterable[Table], columns: Iterable[str]) -> bool:
    """Whether columns have nothing but zeros and gaps in all tables that have them."""
    columns = list(columns)
    return not any(np.nan_to_num(table[column]).any() for table in tables for column in columns if column in table)


def _figures_of_one(steps: Table, sensors: Table, wanted: Collection[str], look: Look) -> dict[str, Figure]:
    """Draw the figures that are wanted of one run."""
    figures: dict[str, Figure] = {}
    for name in VECTORS:
        if name in wanted:
            figures |= _vectors(name, sensors, look)
    if "gauges" in wanted:
        figures |= _gauges({"": sensors}, look)
    of_steps = {"solver": _solver_figure, "energy": _energy_figure, "penetration": _penetration_figure}
    return figures | {name: draw_steps(steps, look) for name, draw_steps in of_steps.items() if name in wanted}


def _vectors(name: str, table: Table, look: Look) -> dict[str, Figure]:
    """Draw vectors of one run, a panel for each sensor."""
    return _pages(
        name, list(vectors_of(table, name).items()), lambda one: _stays_zero([table], one[1].values()),
        lambda some: _vector_figure(table, dict(some), name, look),
    )  # fmt: skip


def _gauges(tables: Mapping[str, Table], look: Look) -> dict[str, Figure]:
    """Draw the columns of no force sensor and no marker."""
    return _columns("gauges", tables, _gauge_panels(tables.values()), look)


def _columns(
    name: str, tables: Mapping[str, Table], panels: Sequence[tuple[str, str, float, bool]], look: Look
) -> dict[str, Figure]:
    """Draw columns, a panel each."""
    return _pages(name, panels, lambda panel: _stays_zero(tables.values(), panel[:1]), lambda some: _overlay(tables, some, look))


def _figures_of_several(runs: Mapping[str, tuple[Table, Table]], wanted: Collection[str], look: Look) -> dict[str, Figure]:
    """Draw the figures that are wanted of several runs."""
    steps = {name: tables[0] for name, tables in runs.items()}
    sensors = {name: tables[1] for name, tables in runs.items()}
    figures: dict[str, Figure] = {}
    for name, (_, symbol, _, unit, factor) in VECTORS.items():
        if name not in wanted:
            continue
        own: dict[str, dict[str, str]] = {}
        for table in sensors.values():
            for sensor, columns in vectors_of(table, name).items():
                own.setdefault(sensor, {}).update(columns)
        panels = [
            (column, f"{sensor.replace('_', ' ')}\n{_component(symbol, axis)} [{unit}]", factor, False)
            for sensor, columns in own.items()
            for axis, column in columns.items()
        ]
        figures |= _columns(name, sensors, panels, look)
    if "gauges" in wanted:
        figures |= _gauges(sensors, look)
    of_steps = {
        "solver": [("iterations", "iterations [1]", 1.0, False), ("dynamics_residual", "dynamics\nresidual [1]", 1.0, True),
                   ("contact_residual", "contact\nresidual [1]", 1.0, True)],
        "energy": [(f"{kind}_J", f"{kind.removesuffix('_energy')} [J]", 1.0, False) for kind in
                   ("kinetic_energy", "elastic_energy", "work")],
        "penetration": [("max_penetration_m", "largest penetration [mm]", 1e-3, True)],
    }  # fmt: skip
    return figures | {name: _overlay(steps, panels, look) for name, panels in of_steps.items() if name in wanted}


def _component(symbol: str, axis: str) -> str:
    return f"${symbol}_{axis}$" if symbol else f"${axis}$"


def _overlay(tables: Mapping[str, Table], panels: Sequence[tuple[str, str, float, bool]], look: Look) -> Figure:
    """One panel per column (name, label, unit, whether logarithmic) with one curve per run that has it."""
    figure, axes = _figure(len(panels), 0.9 + 1.3 * len(panels), look=look)
    for axis, (column, label, unit, logarithmic) in zip(axes, panels, strict=True):
        shown = []
        for number, (name, table) in enumerate(tables.items()):
            if column not in table:
                continue
            values = table[column] / unit
            shown.append(values)
            axis.plot(
                table["time_s"],
                _positive(values) if logarithmic else values,
                color=COLOURS[number % len(COLOURS)],
                linestyle=("-", "--", "-.", ":")[number % 4],
                label=name,
            )
        if logarithmic:
            _logarithmic(axis, *shown)
        axis.set_ylabel(label)
    handles: dict[str, Any] = {}
    for axis in axes:
        handles |= dict(zip(*reversed(axis.get_legend_handles_labels()), strict=True))
    if any(handles):
        figure.legend(handles.values(), handles.keys(), loc="outside upper right", ncols=min(len(handles), look.columns(handles)))
    return figure


def plot_convergence(
    curves: Mapping[str, tuple[FloatArray, FloatArray]],
    path: Path,
    *,
    title: str = "",
    tolerance: float | None = None,
) -> Path:
    """Draw the convergence of solvers on one problem: the residual over CPU time and over iterations, all axes logarithmic.

    Parameters
    ----------
    curves : mapping of str to (ndarray, ndarray)
        By solver: CPU time at the end of each iteration, (iterations,), ms, and the residual there, (iterations,), 1. Residuals
        that are zero or not finite are gaps.
    path : Path
        File to write; its suffix sets the format. An existing file is replaced.
    title : str
        Name of the problem.
    tolerance : float, optional
        Drawn as a dashed line.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    VizError
        No curve, a curve without points or with arrays of different lengths, an unknown suffix, or a file that cannot be written.
    """
    path = _checked_name(path)
    if not curves:
        raise VizError(f"the plot {path} has no curve; give the residuals of at least one solver.")
    for name, (times, residuals) in curves.items():
        if not len(residuals) or np.shape(times) != np.shape(residuals):
            raise VizError(
                f"the curve {name!r} has times of shape {np.shape(times)} and residuals of shape {np.shape(residuals)}; "
                "give as many of one as of the other, at least one."
            )

    import matplotlib

    with matplotlib.rc_context(STYLE):
        figure, panels = _figure(1, 3.2, columns=2)
        for axis, label in zip(panels, ("CPU time [ms],\nsplit evenly over iterations", "iterations [1]"), strict=True):
            axis.set_xscale("log")
            axis.xaxis.set_minor_formatter("")
            axis.set_xlabel(label)
            if tolerance is not None:
                axis.axhline(tolerance, color="#808080", linestyle=(0, (2, 2)), linewidth=0.8)
        for number, (name, (times, residuals)) in enumerate(curves.items()):
            style = {
                "color": COLOURS[number % len(COLOURS)],
                "linestyle": ("-", "--", "-.", ":")[number // len(COLOURS) % 4],
                "marker": "." if len(residuals) <= 30 else None,  # with few points a line alone shows little
            }
            shown = _positive(np.where(np.isfinite(residuals), residuals, np.nan))
            panels[0].plot(times, shown, label=name, **style)
            panels[1].plot(np.arange(1, len(shown) + 1), shown, **style)
        _whole_decades(panels[0], *(times for times, _ in curves.values()))
        _whole_decades(panels[1], *(np.arange(1.0, len(times) + 1.0) for times, _ in curves.values()))
        _logarithmic(panels[0], *(residuals[np.isfinite(residuals)] for _, residuals in curves.values()))
        panels[0].set_ylabel("larger residual [1]")
        panels[0].set_title(title, loc="left", fontsize=9)
        figure.legend(loc="outside upper right", ncols=min(len(curves), 5))
        try:
            save_figure(figure, path)
        except OSError as error:
            raise VizError(f"the plot {path} cannot be written ({error.strerror}); choose another place.") from error
    return path


def plot_performance(profiles: Mapping[str, tuple[FloatArray, FloatArray]], path: Path, *, label: str, title: str = "") -> Path:
    """Draw performance profiles: the share of problems that each solver answers within a ratio of the best, over that ratio.

    Parameters
    ----------
    profiles : mapping of str to (ndarray, ndarray)
        By solver, in the order of the legend: ratios of at least 1, (k,), ascending, and the share of problems up to there, (k,);
        both empty where it solved nothing.
    path : Path
        File to write; its suffix sets the format. An existing file is replaced.
    label : str
        What the ratio is of.
    title : str
        Title.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    VizError
        No profile, an unknown suffix, or a file that cannot be written.
    """
    path = _checked_name(path)
    if not profiles:
        raise VizError(f"the plot {path} has no profile; give that of at least one solver.")
    end = max((float(tau[-1]) for tau, _ in profiles.values() if len(tau)), default=1.0)
    end = 1.1 * max(end, 2.0)

    import matplotlib

    with matplotlib.rc_context(STYLE):
        figure, (axis,) = _figure(1, 3.6)
        for number, (name, (tau, share)) in enumerate(profiles.items()):
            steps = np.concatenate([[1.0], tau, [end]])
            heights = np.concatenate([[0.0], share, share[-1:] if len(share) else [0.0]])
            axis.step(
                steps, heights, where="post", label=name, color=COLOURS[number % len(COLOURS)],
                linestyle=("-", "--", "-.", ":")[number // len(COLOURS) % 4],
            )  # fmt: skip
        axis.set_xscale("log", base=2)
        axis.set_xlim(1.0, end)
        axis.set_ylim(-0.02, 1.02)
        axis.set_xlabel(f"{label} [1]")
        axis.set_ylabel("share of problems [1]")
        axis.set_title(title, loc="left", fontsize=9)
        for text in figure.legend(loc="outside right upper").get_texts():
            text.set_parse_math(False)  # a $ in a name is no formula
        try:
            save_figure(figure, path)
        except OSError as error:
            raise VizError(f"the plot {path} cannot be written ({error.strerror}); choose another place.") from error
    return path


def _checked_name(path: Path) -> Path:
    """Refuse a file that is no picture by its name."""
    path = Path(path)
    if path.suffix not in (".png", ".svg", ".pdf"):
        raise VizError(f"the plot {path} has the suffix {path.suffix!r}; allowed are .png, .svg and .pdf.")
    return path


def _figure(rows: int, height: float, columns: int = 1, look: Look = DEFAULT_LOOK, **options: Any) -> tuple[Figure, list[Any]]:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=look.size(height), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(rows, columns, squeeze=False, **({"sharex": "col", "sharey": "row"} | options)).ravel()
    axes[-1].set_xlabel("time [s]")
    for axis in axes:
        axis.margins(x=0.01)
    figure.align_ylabels(axes)
    return figure, list(axes)


def _vector_figure(table: Table, sensors: Mapping[str, Mapping[str, str]], name: str, look: Look) -> Figure:
    """Draw the components of some sensors, one panel each."""
    _, symbol, quantity, unit, factor = VECTORS[name]
    figure, axes = _figure(len(sensors), 0.6 + 1.6 * len(sensors), look=look)
    for panel, (sensor, columns) in zip(axes, sensors.items(), strict=True):
        for axis, column in columns.items():
            number = "xyz".index(axis)
            panel.plot(
                table["time_s"],
                table[column] / factor,
                color=COLOURS[number],
                linestyle=("-", "--", "-.")[number],
                label=_component(symbol, axis),
            )
        panel.set_ylabel(f"{quantity} [{unit}]")
        panel.set_title(sensor.replace("_", " "), loc="left")
    handles = {text: handle for panel in axes for handle, text in zip(*panel.get_legend_handles_labels(), strict=True)}
    axes[0].legend(handles.values(), handles, ncols=3, loc="lower right", bbox_to_anchor=(1.0, 1.0), borderaxespad=0.0)
    return figure


def _solver_figure(steps: Table, look: Look) -> Figure:
    figure, (above, below) = _figure(2, 3.8, look=look)
    above.plot(steps["time_s"], steps["iterations"], color=COLOURS[0], drawstyle="steps-mid")
    above.set_ylabel("iterations [1]")
    above.set_ylim(bottom=0)
    for column, label, colour, dashes in (
        ("dynamics_residual", "dynamics", COLOURS[0], "-"),
        ("contact_residual", "contact", COLOURS[1], "--"),
    ):
        below.plot(steps["time_s"], _positive(steps[column]), color=colour, linestyle=dashes, label=label)
    _logarithmic(below, steps["dynamics_residual"], steps["contact_residual"])
    below.set_ylabel("residual [1]")
    below.legend(ncols=2, loc="lower right", bbox_to_anchor=(1.0, 1.0), borderaxespad=0.0)
    return figure


def _energy_figure(steps: Table, look: Look) -> Figure:
    figure, (axis,) = _figure(1, 2.6, look=look)
    curves = (
        ("kinetic_energy_J", "kinetic", "-"),
        ("elastic_energy_J", "elastic", "--"),
        ("work_J", "work", "-."),
    )
    largest = max(float(np.nanmax(np.abs(steps[column]), initial=0.0)) for column, _, _ in curves)
    scale, unit = (1e-3, "mJ") if 0 < largest < 0.1 else (1.0, "J")
    for (column, label, dashes), colour in zip(curves, COLOURS, strict=False):
        axis.plot(steps["time_s"], steps[column] / scale, color=colour, linestyle=dashes, label=label)
    axis.set_ylabel(f"energy [{unit}]")
    axis.legend(ncols=3, loc="lower right", bbox_to_anchor=(1.0, 1.0), borderaxespad=0.0)
    return figure


def _penetration_figure(steps: Table, look: Look) -> Figure:
    figure, (axis,) = _figure(1, 2.4, look=look)
    depth = steps["max_penetration_m"] * 1e3
    axis.plot(steps["time_s"], _positive(depth), color=COLOURS[0])
    _logarithmic(axis, depth)
    axis.set_ylabel("largest penetration [mm]")
    return figure


def _whole_decades(axis: Any, *curves: FloatArray) -> None:
    """Let a logarithmic x axis begin and end at powers of ten around its curves, so that it has at least two labels."""
    shown = np.concatenate([curve[curve > 0] for curve in curves])
    if shown.size:
        first, last = np.floor(np.log10(shown.min())), np.ceil(np.log10(shown.max()))
        axis.set_xlim(10.0**first, 10.0 ** max(last, first + 1.0))


def _positive(values: FloatArray) -> FloatArray:
    """Return the values, with gaps for those that a logarithmic axis cannot show."""
    return np.where(values > 0, values, np.nan)


def _logarithmic(axis: Any, *curves: FloatArray) -> None:
    """Use a logarithmic axis if it can show any value."""
    shown = np.concatenate([curve[curve > 0] for curve in curves])
    if shown.size:
        if shown.min() == shown.max():  # a flat curve has no range
            axis.set_ylim(shown.min() / 3, shown.max() * 3)
        axis.set_yscale("log")

"""The curves of one sensor beside the picture in the browser, with the moment that is shown."""

from __future__ import annotations

import html
import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from viz.errors import VizError
from viz.look import COLOURS
from viz.marks import INK
from viz.tables import GROUPED, VECTORS, Table, read_table, vectors_of

__all__ = ["SensorPlot"]

FloatArray = npt.NDArray[np.float64]

OFF = "none"
#: Most points of a curve that the page draws.
MOST = 600
#: Part of the range of the curves that stays free above and below them.
ROOM = 0.05


def _line(begin: str, values: Sequence[str], end: str) -> str:
    """HTML of a line whose values have the colours of their curves: it is their legend."""
    pairs = zip(itertools.cycle(COLOURS), values, strict=False)
    coloured = [f'<b style="color:{colour}">{html.escape(value + end)}</b>' for colour, value in pairs]
    return f'<div style="padding:.2em 1em;font-size:12px;color:{INK}">{html.escape(begin)}{", ".join(coloured)}</div>'


class SensorPlot:
    """A choice of sensors, the curves of the one that is chosen, and its values at the moment shown.

    Parameters
    ----------
    gui : viser.GuiApi
        Where it is shown.
    run_dir : Path
        Run folder; one without sensors shows nothing.

    Attributes
    ----------
    choice : handle
        The menu of what can be drawn; its ``value`` is "none" or for instance "floor force".
    """

    def __init__(self, gui: Any, run_dir: Path) -> None:
        self._gui, self._path = gui, Path(run_dir) / "sensors.csv"
        self._table: Table = {}
        self._drawn: tuple[str, int] = (OFF, -1)
        self._curves: list[FloatArray] = []
        self._times: FloatArray = np.zeros(0)
        self._plot: Any = None
        self.look()
        self.choice = gui.add_dropdown("Sensor", (OFF, *self._sources()), initial_value=OFF, visible=bool(self._sources()))
        self._values = gui.add_html("", visible=False)

    def look(self) -> None:
        """Read the table again, which may have grown."""
        try:
            self._table = read_table(self._path, ("time_s",))
        except VizError:
            self._table = {}

    def show(self, time: float) -> None:
        """Draw the chosen sensor and mark a moment, s."""
        choice = str(self.choice.value)
        if choice == OFF or choice not in self._sources():
            if self._plot is not None:
                self._plot.remove()
                self._plot, self._drawn = None, (OFF, -1)
            self._values.visible = False
            return
        names, columns, unit, factor = self._sources()[choice]
        whole = self._table["time_s"]
        if self._drawn != (choice, len(whole)):
            kept = np.unique(np.linspace(0, len(whole) - 1, min(MOST, len(whole))).round().astype(int))
            self._times = whole[kept]
            self._curves = [np.nan_to_num(self._table[column][kept] / factor) for column in columns]
        data = (self._times, *self._curves, self._mark(time))
        if self._plot is not None and self._drawn[0] == choice:
            self._plot.data = data
        else:
            if self._plot is not None:
                self._plot.remove()
            self._plot = self._new(names, f"{choice} [{unit}]", data)
        self._drawn = (choice, len(whole))
        at = min(int(np.searchsorted(whole, time - 1e-9)), len(whole) - 1)
        values = [f"{name} {self._table[column][at] / factor:.4g}" for name, column in zip(names, columns, strict=True)]
        self._values.content = _line(f"at {whole[at]:.4g} s: ", values, f" {unit}")
        self._values.visible = True

    def _sources(self) -> dict[str, tuple[list[str], list[str], str, float]]:
        """Return what can be drawn: names of its curves, their columns, unit shown, and its size."""
        found: dict[str, tuple[list[str], list[str], str, float]] = {}
        for figure, (prefix, _, quantity, unit, factor) in VECTORS.items():
            for sensor, columns in vectors_of(self._table, figure).items():
                found[f"{sensor} {quantity}"] = ([prefix + axis for axis in columns], list(columns.values()), unit, factor)
        for column in self._table:
            name, _, unit = column.rpartition("_")
            if name and column != "time_s" and not GROUPED.fullmatch(column):
                found[name.replace("_", " ")] = ([name.rpartition("_")[2]], [column], unit, 1.0)
        return found

    def _mark(self, time: float) -> FloatArray:
        """Return a curve that is flat below the others, but for a needle at a moment."""
        low, high = min(curve.min() for curve in self._curves), max(curve.max() for curve in self._curves)
        room = ROOM * (high - low) or 1.0
        needle = np.full(len(self._times), low - room)
        needle[min(int(np.searchsorted(self._times, time - 1e-9)), len(self._times) - 1)] = high + room
        return needle

    def _new(self, names: list[str], title: str, data: tuple[FloatArray, ...]) -> Any:
        import viser.uplot as uplot

        curves = [uplot.Series(label=name, stroke=COLOURS[k % len(COLOURS)], width=2) for k, name in enumerate(names)]
        return self._gui.add_uplot(
            data=data,
            series=(uplot.Series(label="s"), *curves, uplot.Series(label="now", stroke="#555555", width=1)),
            title=title,
            scales={"x": uplot.Scale(time=False), "y": uplot.Scale(auto=True)},
            legend=uplot.Legend(show=False),
            aspect=1.5,
        )

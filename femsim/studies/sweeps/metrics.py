"""Summary numbers of a run, and conditions that stop it; both name columns of steps.csv and sensors.csv."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from femsim.base.errors import InputError, did_you_mean

REDUCTIONS: dict[str, Callable[[np.ndarray], float]] = {
    "max": lambda x: float(x.max()),
    "min": lambda x: float(x.min()),
    "mean": lambda x: float(x.mean()),
    "median": lambda x: float(np.median(x)),
    "std": lambda x: float(x.std()),
    "absmax": lambda x: float(np.abs(x).max()),
    "rms": lambda x: float(np.sqrt(np.mean(x * x))),
    "first": lambda x: float(x[0]),
    "final": lambda x: float(x[-1]),
}
_COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt,
}  # fmt: skip
_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_METRIC = re.compile(rf"\s*(\w+)\s*\(\s*([^\s,()]+)\s*(?:,\s*({_NUMBER})\s*,\s*({_NUMBER})\s*)?\)\s*")
_CONDITION = re.compile(rf"\s*(abs\()?\s*([^\s,()<>=]+)\s*(\))?\s*(>=|<=|>|<)\s*({_NUMBER})\s*")


#: Units at the ends of columns, as they are written.
_UNITS = {
    "N": "N", "Nm": "N m", "m": "m", "m2": "m²", "m3": "m³", "Pa": "Pa", "J": "J", "W": "W", "s": "s", "rad": "rad", "mps": "m/s",
    "radps": "rad/s", "kgmps": "kg m/s", "kg": "kg", "ms": "ms",
}  # fmt: skip


class OutputError(InputError):
    """A metric, series or stop condition names a column that the scene does not write: the sweep file is wrong, not the case."""


@dataclass(frozen=True)
class Metric:
    """A reduction of a column over a window of time.

    Attributes
    ----------
    reduction : str
        Name in ``REDUCTIONS``; ``std`` is the population's.
    column : str
        Column of steps.csv or sensors.csv.
    start, end : float, s
        The steps that end in [start, end] count; the whole run by default.
    """

    reduction: str
    column: str
    start: float = -np.inf
    end: float = np.inf

    def value(self, table: Mapping[str, np.ndarray]) -> float:
        """Compute the metric.

        Parameters
        ----------
        table : mapping of str to ndarray, (n_steps,)
            Columns by name, ``time_s`` (s) among them.

        Returns
        -------
        float
            In the unit of the column; NaN when no step ends in the window.
        """
        inside = self._inside(table)
        return REDUCTIONS[self.reduction](table[self.column][inside]) if inside.any() else float("nan")

    def _inside(self, table: Mapping[str, np.ndarray]) -> np.ndarray:
        """Which steps end in the window, (n_steps,)."""
        return (table["time_s"] >= self.start - self._tiny) & (table["time_s"] <= self.end + self._tiny)

    @property
    def _tiny(self) -> float:
        """What rounding may have done to the time of a step, s."""
        return 1e-9 * max(1.0, abs(self.end) if np.isfinite(self.end) else 1.0)

    def missed_by(self, duration: float) -> str:
        """Say why no step of a run of this duration, s, ends in the window; "" where some may."""
        if self.start <= duration + self._tiny and self.end >= -self._tiny:
            return ""
        return f"its window, {self.start:g} to {self.end:g} s, lies outside the run, which lasts {duration:g} s"

    def lacking(self, table: Mapping[str, np.ndarray]) -> str:
        """Say why its value in a run is no number; "" where it is one."""
        if np.isfinite(self.value(table)):
            return ""
        if not self._inside(table).any():
            return (
                f"no step ends in its window, {self.start:g} to {self.end:g} s; the last one ends at {table['time_s'][-1]:.6g} s"
            )
        return f"{self.column} is not finite in some step"


@dataclass(frozen=True)
class Condition:
    """A comparison of a column, or of its absolute value, with a number in the unit of the column."""

    column: str
    absolute: bool
    comparison: str
    bound: float

    def holds(self, row: Mapping[str, float]) -> bool:
        """Whether it holds for the row of one step."""
        value = abs(row[self.column]) if self.absolute else row[self.column]
        return _COMPARISONS[self.comparison](value, self.bound)

    def __str__(self) -> str:
        bound = repr(self.bound).removesuffix(".0")  # all digits: cases are known by it
        return f"{f'abs({self.column})' if self.absolute else self.column} {self.comparison} {bound}"


def parse_metric(text: str) -> Metric:
    """Read ``reduction(column)`` or ``reduction(column, start, end)``.

    Raises
    ------
    InputError
        Another form, an unknown reduction, or a window that ends before it starts.
    """
    match = _METRIC.fullmatch(text)
    if match is None:
        raise InputError(
            f"has the metric {text!r}; write REDUCTION(COLUMN) or REDUCTION(COLUMN, START, END) with times in s, for instance "
            "mean(floor_fz_N, 0.5, 1.0)"
        )
    reduction, column, start, end = match.groups()
    if reduction not in REDUCTIONS:
        raise InputError(f"has the metric {text!r}, whose reduction is unknown{did_you_mean(reduction, REDUCTIONS)}".rstrip("."))
    if start is None:
        return Metric(reduction, column)
    if float(end) < float(start):
        raise InputError(f"has the metric {text!r}, whose window ends before it starts; exchange the times")
    return Metric(reduction, column, float(start), float(end))


def unit_of(column: str) -> str:
    """Return the unit of a column of steps.csv or sensors.csv, which its name ends in; "" where it has none."""
    return _UNITS.get(column.rpartition("_")[2], "")


def parse_condition(text: str) -> Condition:
    """Read ``column > number``, with one of > >= < <=, and ``abs(column)`` for the absolute value.

    Raises
    ------
    InputError
        Another form.
    """
    match = _CONDITION.fullmatch(text)
    if match is None or bool(match[1]) != bool(match[3]):
        raise InputError(f"has the condition {text!r}; write COLUMN > NUMBER, for instance abs(floor_fz_N) >= 50")
    return Condition(match[2], bool(match[1]), match[4], float(match[5]))


def check_column(name: str, table: Mapping[str, object]) -> None:
    """Refuse a column that a run does not have.

    Raises
    ------
    OutputError
        Names the nearest columns.
    """
    if name not in table:
        raise OutputError(f"the scene writes no column {name!r}{did_you_mean(name, table)}")

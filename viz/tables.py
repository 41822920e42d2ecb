"""The tables of a run, steps.csv and sensors.csv, as arrays by column."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

import numpy as np
import numpy.typing as npt

from foreign import Refused
from foreign.text import read_text
from viz.errors import VizError

__all__ = ["GROUPED", "VECTORS", "Table", "read_table", "vectors_of"]

Table = dict[str, npt.NDArray[np.float64]]

#: Columns of sensors.csv that belong to a force sensor or a marker.
GROUPED = re.compile(r"(.+)_(f[xyz]|t[xyz]|[xyz])_(N|Nm|m)")
#: Figures of vectors: what begins the name of their axes, symbol of a component, quantity, unit shown and its size.
VECTORS = {
    "forces": ("f", "F", "force", "N", 1.0), "torques": ("t", "M", "torque", "N m", 1.0),
    "markers": ("", "", "position", "mm", 1e-3),
}  # fmt: skip


def read_table(path: Path, needed: tuple[str, ...]) -> Table:
    """Read a CSV with a header line into one array per column; an incomplete last line is ignored."""
    if not path.is_file():
        raise VizError(f"{path} does not exist; give the folder of a run that wrote its tables.")
    try:
        rows = list(csv.reader(io.StringIO(read_text(path), newline="")))
    except (OSError, Refused, csv.Error) as error:
        raise VizError(f"{path} cannot be read ({error}); is it the table of a run?") from error
    header = [name.strip() for name in rows[0]] if rows else []
    missing = [name for name in needed if name not in header]
    if missing:
        raise VizError(f"{path} lacks the columns {missing}; its first line must name them. Present are: {header}.")
    values = np.empty((len(rows) - 1, len(header)))
    for number, row in enumerate(rows[1:]):
        try:
            if len(row) != len(header):
                raise ValueError
            values[number] = [float(cell) if cell.strip() else np.nan for cell in row]
        except ValueError:
            if number == len(rows) - 2:
                values = values[:-1]
                break
            raise VizError(
                f"{path}, line {number + 2} must hold {len(header)} numbers, as the first line names, but is "
                f"{','.join(row)[:80]!r}; repair or remove the line."
            ) from None
    if len(values) == 0:
        raise VizError(f"{path} has no rows; the run ended before its first step.")
    return {name: np.ascontiguousarray(values[:, column]) for column, name in enumerate(header)}


def vectors_of(table: Table, figure: str) -> dict[str, dict[str, str]]:
    """Columns of a figure of vectors, by sensor and component."""
    prefix = VECTORS[figure][0]
    out: dict[str, dict[str, str]] = {}
    for column in table:
        match = GROUPED.fullmatch(column)
        if match and match[2][:-1] == prefix:
            out.setdefault(match[1], {})[match[2][-1]] = column
    if figure == "torques":  # many sensors have none
        out = {name: own for name, own in out.items() if any(np.nan_to_num(table[column]).any() for column in own.values())}
    return out

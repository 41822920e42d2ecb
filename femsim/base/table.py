"""Text tables of any layout: a preamble, a delimiter, a decimal point or comma, names and units of columns, then numbers.

pandas reads such tables when it is told their layout. This reader finds the layout, and its errors name the line and the cell,
which is what a user needs to mend a log.
"""

from __future__ import annotations

import csv
import math
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

import foreign
from femsim.base.errors import InputError
from femsim.base.units import split_unit, units_of_row
from foreign.text import decoded, read_bytes

#: A table of more columns is none.
MOST_COLUMNS = 5000


@dataclass(frozen=True)
class Table:
    """A text table as it is in the file: columns, rows of cells with their line numbers, and notes from the preamble.

    Columns without a name are called by their place, from 1; so are those whose name others have too: ``double`` has such names
    with their places. ``titles`` are the names as they are in the file, with their units.
    """

    path: Path
    columns: tuple[str, ...]
    units: tuple[str, ...]
    rows: list[list[str]] = field(repr=False)
    lines: list[int] = field(repr=False)
    notes: dict[str, str]
    decimal_comma: bool
    warnings: tuple[str, ...]
    double: dict[str, tuple[str, ...]] = field(default_factory=dict)
    titles: tuple[str, ...] = ()

    @property
    def named(self) -> bool:
        """Whether the columns have names."""
        return self.columns[0] != "1" or bool(self.double)

    def check_single(self, name: str, what: str, remedy: str) -> None:
        """Refuse a name that several columns have; ``what`` is what the column is wanted for, ``remedy`` says what to do.

        Raises
        ------
        InputError
            Names the places of the columns.
        """
        if name in self.double:
            places = self.double[name]
            raise InputError(
                f"the table {self.path} has {len(places)} columns {name!r} (columns {', '.join(places)}), each of which may be "
                f"{what}; {remedy}."
            )

    def numbers(self, name: str, infinite: bool = False) -> np.ndarray:
        """Column as float64, (n,); empty cells and "nan" are NaN. ``infinite`` says whether "inf" is a number.

        Raises
        ------
        InputError
            A cell that is no number, or an infinite one unless allowed.
        """
        column = self.columns.index(name)
        out = np.empty(len(self.rows))
        for k, row in enumerate(self.rows):
            try:
                out[k] = _number(row[column], self.decimal_comma)
            except ValueError:
                raise InputError(
                    f"{self.path}, line {self.lines[k]}: column {name!r} holds {row[column][:40]!r}, which is no number; "
                    "repair or remove the line."
                ) from None
        endless = np.flatnonzero(np.isinf(out))
        if len(endless) and not infinite:
            k = int(endless[0])
            raise InputError(
                f"{self.path}, line {self.lines[k]}: column {name!r} holds {self.rows[k][column][:40]!r}, which is infinite; "
                "repair or remove the line, or leave the cell empty."
            )
        return out


def read_table(path: Path, what: str = "log") -> Table:
    """Read a text table with whatever stands above it; ``what`` is the word for the file in messages.

    Raises
    ------
    InputError
        An empty file, or one without two columns of numbers.
    """
    try:
        raw = read_bytes(path)
    except (OSError, foreign.Refused) as error:
        raise InputError(f"the {what} {path} cannot be read ({getattr(error, 'strerror', None) or error}); correct it.") from None
    if b"\0" in raw[:4096]:
        raise InputError(
            f"the {what} {path} is no text; export it as CSV, or give it the suffix of its kind (.c3d, .mcap, .bag)."
        )
    lines = [(k, line.strip(" ")) for k, line in enumerate(decoded(raw).splitlines(), start=1) if line.strip()]
    if not lines:
        raise InputError(f"the {what} {path} is empty; check the logger, or give another file.")
    delimiter, comma, first = _layout(f"the {what} {path}", lines)
    width = len(_split(lines[first][1], delimiter))
    trailing = delimiter is not None and all(line.endswith(delimiter) for _, line in lines[first:-1] or lines[first:])
    above = [(k, line.rstrip(delimiter) if trailing else line) for k, line in lines[:first]]
    if len(lines) == first + 1 and above and len(_split(above[-1][1], delimiter)) > width - trailing:
        raise InputError(f"the {what} {path} has one line of numbers ({lines[first][0]}), and that is cut off; check the logger.")
    header, units, notes, double, titles = _header(above, delimiter, width - trailing)
    rows, numbers = [], []
    warnings = [
        f"{len(places)} columns have the name {name!r}; they are called {', '.join(places)}, by their places"
        for name, places in double.items()
    ]
    for k, (number, line) in enumerate(lines[first:], start=first):
        cells = _split(line.removesuffix(delimiter) if trailing and delimiter else line, delimiter)
        if len(cells) != len(header):
            if k == len(lines) - 1:
                warnings.append(f"the last line ({number}) is cut off and left out")
                break
            raise InputError(
                f"{path}, line {number} has {len(cells)} cells, but the table has {len(header)} columns; repair or "
                "remove the line."
            )
        rows.append(cells)
        numbers.append(number)
    return Table(path, header, units, rows, numbers, notes, comma, tuple(warnings), double, titles)


def _layout(file: str, lines: list[tuple[int, str]]) -> tuple[str | None, bool, int]:
    """Delimiter, whether numbers have a decimal comma, and the place of the first line of numbers."""
    head = lines[:200]
    for number, line in head:
        if (most := max(line.count(delimiter) for delimiter in ";\t, ")) >= MOST_COLUMNS:
            raise InputError(f"{file} has {most + 1} columns in line {number}; at most {MOST_COLUMNS} are read, so export less.")
    best: tuple[int, str | None, bool, int] = (0, None, False, 0)
    for delimiter, comma in ((";", False), (";", True), ("\t", False), ("\t", True), (",", False), (",", True), (None, False)):
        data = [k for k, (_, line) in enumerate(head) if is_data(_split(line, delimiter), comma)]
        if len(data) > best[0]:
            best = (len(data), delimiter, comma, data[0])
    if not best[0]:
        raise InputError(f"{file} has no line with two or more numbers; it is empty, or no table.")
    return best[1:]


def _split(line: str, delimiter: str | None) -> list[str]:
    cells = line.split(delimiter)
    if '"' in line and delimiter is not None:
        with suppress(csv.Error):  # a cell that is too long
            cells = next(csv.reader([line], delimiter=delimiter, skipinitialspace=True))
    return [cell.strip().strip('"').strip() for cell in cells]


def is_data(cells: list[str], comma: bool) -> bool:
    """Whether a line is one of numbers: at least two, and more than half of its cells that are not empty."""
    numbers = 0
    for cell in cells:
        try:
            _number(cell, comma)
            numbers += bool(cell)
        except ValueError:
            pass
    return numbers >= 2 and 2 * numbers > len([c for c in cells if c])


def _number(cell: str, comma: bool) -> float:
    if not cell:
        return math.nan
    return float(cell.replace(",", ".") if comma else cell)


def _header(
    above: list[tuple[int, str]], delimiter: str | None, width: int
) -> tuple[tuple[str, ...], tuple[str, ...], dict[str, str], dict[str, tuple[str, ...]], tuple[str, ...]]:
    """Names and units of the columns, notes ("Force Units", "N") of the lines above, places of double names, names with units."""
    names: list[str] = []
    units, used = [""] * width, len(above)
    candidates = [_split(line.lstrip("#% "), delimiter) for _, line in above]
    while used and len(candidates[used - 1]) == width and not names:
        cells = candidates[used - 1]
        used -= 1
        stated = units_of_row(cells) if used and len(candidates[used - 1]) == width else []
        if stated:
            units = stated
        else:
            names = cells
    titles = tuple(names)
    for k, name in enumerate(titles):
        names[k], unit = split_unit(name)
        units[k] = unit or units[k]
    double: dict[str, tuple[str, ...]] = {}
    if not names or len(set(names)) != width:
        full = names or [""] * width
        often = Counter(full)
        double = {
            name: tuple(str(k + 1) for k, other in enumerate(full) if other == name) for name in often if name and often[name] > 1
        }
        names = [name if name and often[name] == 1 else str(k + 1) for k, name in enumerate(full)]
    notes = {}
    for cells in filter(None, candidates[:used]):  # a comment may be empty
        key, _, value = " ".join(cells).partition(":") if len(cells) == 1 else (cells[0].rstrip(":"), "", cells[1])
        notes[key.strip().lower()] = value.strip()
    return tuple(names), tuple(units), notes, double, titles

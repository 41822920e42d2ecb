"""Draw the page and the profiles of a benchmark again, from its table alone."""

from __future__ import annotations

import csv
import io
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, get_args

import foreign
from femsim.base.errors import InputError, did_you_mean
from femsim.studies.problems.bench import BenchRow, BenchStatus, new_folder, write_rows
from femsim.studies.problems.pages import write_profiles
from femsim.studies.problems.traits import Traits
from foreign.text import read_text

_STATUSES = tuple(str(word) for part in get_args(BenchStatus) for word in get_args(part))
#: Largest table that is read, bytes; longest cell; largest number in one that profiles are drawn from, or that is a trait.
_BYTES, _LONGEST, _LARGEST = 50_000_000, 2000, 1e100


def redraw_bench(table: str | Path, out: str | Path) -> list[BenchRow]:
    """Write the page, the tables and the plots of the profiles of a benchmark again; nothing is solved.

    Parameters
    ----------
    table : path
        The file ``bench.csv`` of :func:`femsim.bench`, also with lines taken out, or those of several joined. Where
        ``problems.csv`` lies beside it, the page also counts by kind of problem. Convergence plots need the benchmark itself.
    out : path
        Folder to make.

    Returns
    -------
    list of BenchRow
        The lines of the table, without curves.

    Raises
    ------
    InputError
        A file that cannot be read or is no such table (the message names line and column), or a folder that exists or cannot
        be made.
    """
    table = Path(table)
    rows = _read_rows(table)
    beside = table.parent / "problems.csv"
    known = _read_traits(beside) if beside.is_file() else {}
    folder = new_folder(Path(out))
    write_rows(folder / "bench.csv", rows)
    shown = dict.fromkeys(row.problem for row in rows)
    write_profiles(folder, rows, rows[0].tolerance, {name: known[name] for name in shown if name in known})
    return rows


def _read_rows(path: Path) -> list[BenchRow]:
    kinds: dict[str, Callable[[str], Any]] = {"str": _word, "int": _whole, "float": _of_answer, "BenchStatus": _status}
    columns = {f.name: kinds[str(f.type)] for f in fields(BenchRow) if str(f.type) in kinds}
    columns |= {"cpu_ms": _number, "tolerance": _number}
    rows: list[BenchRow] = []
    seen: dict[tuple[str, str], int] = {}
    for line, cells in _read(path, columns):
        row = BenchRow(**cells)
        for column in ("problem", "solver"):
            if not cells[column]:
                raise InputError(f"{path}, line {line}: column {column!r} is empty; repair or remove the line.")
        if not row.tolerance > 0:
            raise InputError(f"{path}, line {line}: column 'tolerance' is {row.tolerance:g}; allowed are positive numbers.")
        if rows and row.tolerance != rows[0].tolerance:
            raise InputError(
                f"{path}, line {line}: column 'tolerance' is {row.tolerance:g}, above it {rows[0].tolerance:g}; profiles compare "
                "answers to one tolerance, so draw each by itself."
            )
        if row.status == "converged" and not (math.isfinite(row.cpu_ms) and row.iterations >= 0):
            column = "iterations" if math.isfinite(row.cpu_ms) else "cpu_ms"
            raise InputError(f"{path}, line {line}: column {column!r} has no value for an answer that converged; correct it.")
        if (before := seen.setdefault((row.problem, row.solver), line)) != line:
            raise InputError(
                f"{path}, line {line}: column 'solver' has {row.solver!r} on {row.problem!r} again (line {before}); keep one."
            )
        rows.append(row)
    if not rows:
        raise InputError(f"{path} has no line below its columns; give the bench.csv of a benchmark.")
    return rows


def _read_traits(path: Path) -> dict[str, Traits]:
    numbers: dict[str, Callable[[str], Any]] = {
        name: {"velocities": _whole, "contacts": _whole, "rows": _whole, "soft": _truth}.get(name, _number)
        for name in Traits._fields
    }
    lines = _read(path, {"problem": _word, **numbers, "categories": _word})
    return {cells["problem"]: Traits(*(cells[name] for name in Traits._fields)) for _, cells in lines}


def _read(path: Path, columns: dict[str, Callable[[str], Any]]) -> list[tuple[int, dict[str, Any]]]:
    """Read a table with exactly these columns, in any order: the number of each line, and its values."""
    try:
        text = read_text(path, _BYTES)
    except (OSError, foreign.Refused) as error:
        raise InputError(f"the table {path} cannot be read ({getattr(error, 'strerror', None) or error}); correct it.") from None
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        header = next(reader, [])
        _check_header(path, header, columns)
        lines = []
        for cells in reader:
            if not cells:
                continue
            if len(cells) != len(header):
                raise InputError(
                    f"{path}, line {reader.line_num} has {len(cells)} cells, but the table has {len(header)} columns; repair or "
                    "remove the line."
                )
            lines.append((reader.line_num, _values(path, reader.line_num, header, cells, columns)))
    except csv.Error as error:
        raise InputError(f"{path}, line {reader.line_num} is no CSV ({error}); repair or remove the line.") from None
    return lines


def _check_header(path: Path, header: Sequence[str], columns: dict[str, Callable[[str], Any]]) -> None:
    for name in header:
        if name not in columns:
            shown = name[:40]
            raise InputError(f"{path} has the column {shown!r}, which is unknown{did_you_mean(shown, columns)}")
        if header.count(name) > 1:
            raise InputError(f"{path} has the column {name!r} {header.count(name)} times; keep one.")
    for name in columns:
        if name not in header:
            raise InputError(f"{path} lacks the column {name!r}; give the bench.csv that femsim bench wrote, whole.")


def _values(
    path: Path, line: int, header: Sequence[str], cells: Sequence[str], columns: dict[str, Callable[[str], Any]]
) -> dict[str, Any]:
    found = {}
    for name, cell in zip(header, cells, strict=True):
        try:
            found[name] = columns[name](cell)
        except ValueError as error:
            raise InputError(
                f"{path}, line {line}: column {name!r} holds {cell[:40]!r}, {error}; repair or remove the line."
            ) from None
    return found


def _word(cell: str) -> str:
    if len(cell) > _LONGEST or not cell.isprintable():
        raise ValueError(f"allowed are {_LONGEST} characters that can be printed")
    return cell


def _whole(cell: str) -> int:
    if not (cell.isascii() and cell.isdigit() and len(cell) < 19):
        raise ValueError("allowed are whole numbers from 0")
    return int(cell)


def _number(cell: str, most: float = _LARGEST) -> float:
    """Read a number, at least 0, as all of them are; nan where there is none."""
    if cell in ("", "nan"):
        return math.nan
    try:
        value = float(cell)
    except ValueError:
        value = -1.0
    if not 0.0 <= value <= most:
        raise ValueError(f"allowed are numbers from 0 to {most:.3g}, or nothing")
    return value


def _of_answer(cell: str) -> float:
    """Read a residual, an error or a time beside it, which is only handed on: of a solver that went astray it is of any size."""
    return _number(cell, sys.float_info.max)


def _truth(cell: str) -> bool:
    if cell not in ("True", "False"):
        raise ValueError("allowed are True and False")
    return cell == "True"


def _status(cell: str) -> str:
    if cell not in _STATUSES:
        raise ValueError(f"which is unknown{did_you_mean(cell[:40], _STATUSES)}".rstrip("."))
    return cell

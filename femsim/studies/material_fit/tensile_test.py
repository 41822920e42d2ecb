"""Tensile tests: curves of engineering stress over strain, read from CSV files of any layout."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import foreign
from femsim.base.errors import InputError
from foreign.text import decoded, read_bytes

#: Samples that a test must have; larger numbers, and longer names of columns, are none of a tensile test.
LEAST_SAMPLES, _LARGEST, _LONGEST_TITLE = 2, 1e15, 200
#: Silicones tear at stretches of 10 to 15; below the second one a sample is pressed together.
_LONGEST_STRETCH, _PRESSED = 20.0, 0.9
_MODULUS = {"Pa": 1.0, "kPa": 1e3, "MPa": 1e6, "N/mm2": 1e6, "GPa": 1e9}
_RATIO = {"": 1.0, "1": 1.0, "-": 1.0, "mm/mm": 1.0, "m/m": 1.0, "%": 0.01}
_TIME = {"s": 1.0, "ms": 1e-3, "min": 60.0, "h": 3600.0}
_STRAINS = ("engineering strain", "nominal strain", "stretch", "strain", "tensile strain")
_STRESSES = ("engineering stress", "nominal stress", "stress", "tensile stress")
_IN_BRACKETS = re.compile(r"[(\[](.*)[)\]]")


@dataclass(frozen=True)
class TensileTest:
    """A uniaxial test.

    Attributes
    ----------
    name : str
        Name of the file without its ending.
    stretch : ndarray, (n,)
        Length over rest length.
    stress : ndarray, (n,), Pa
        Engineering stress: force over rest area.
    time : ndarray, (n,), s, or None
        When the samples were taken; None without a column of it.
    no_time : str
        Why a column of it is not read, and what to do; empty without one.
    """

    name: str
    stretch: np.ndarray
    stress: np.ndarray
    time: np.ndarray | None = None
    no_time: str = ""


def read_tensile_test(path: str | Path) -> TensileTest:
    """Read engineering strain (or stretch) and stress from a CSV file.

    Parameters
    ----------
    path : path-like
        Text with lines of head, if any, then a line of column names, then numbers; separated by semicolons, tabs or commas, and
        with a decimal comma where these separate nothing. One column is named "engineering strain", "nominal strain", "tensile
        strain", "strain" or "stretch" (in round or square brackets 1, mm/mm or %), one "engineering stress", "nominal stress",
        "tensile stress" or "stress" with its unit, e.g. "Engineering Stress (MPa)" or "stress [kPa]". A column "time" (in
        brackets s, ms, min or h) is read where all of it is numbers that do not fall. Columns of true strain and stress are not
        used; other columns may stand beside.

    Returns
    -------
    TensileTest
        Samples in the order of the file.

    Raises
    ------
    InputError
        The file cannot be read, a column or its unit is missing, or a line is no numbers.
    """
    path = Path(path)
    try:
        raw = read_bytes(path)
        if b"\0" in raw[:4096]:
            raise foreign.Refused("it is no text; export it as CSV")
        text = decoded(raw)
        marks = sorted(";\t,", key=text.count, reverse=True)
        tables = {mark: list(csv.reader(text.splitlines(), delimiter=mark)) for mark in marks}
    except (OSError, foreign.Refused, csv.Error) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{path}: the tensile test cannot be read ({reason}); check the path and the file.") from None
    # numbers with a decimal comma may have more commas than separators
    separator = next((mark for mark, rows in tables.items() if _named(rows) is not None), next(iter(tables)))
    rows = tables[separator]
    first, x, y = _find_header(path, rows)
    titles = rows[first - 1]
    factor_x, factor_y = _unit(path, titles[x], _RATIO), _unit(path, titles[y], _MODULUS)
    values = []
    for index, cells in enumerate(rows[first:], start=first + 1):
        if not any(cell.strip() for cell in cells):
            continue
        try:
            pair = _number(cells[x], separator), _number(cells[y], separator)
        except (ValueError, IndexError):
            pair = (math.nan, math.nan)
        if not (math.isfinite(pair[0]) and math.isfinite(pair[1])):
            raise InputError(
                f"{path}, line {index}: {separator.join(cells)[:60]!r} has no two finite numbers; correct or remove it."
            )
        values.append(pair)
    data = np.array(values, dtype=np.float64).reshape(-1, 2)
    if len(data) < LEAST_SAMPLES:
        raise InputError(
            f"{path}: the tensile test has {len(data)} sample{'s' * (len(data) != 1)} below its names; "
            f"at least {LEAST_SAMPLES} are needed."
        )
    stretch = factor_x * data[:, 0] + (0.0 if _plain_title(titles[x]) == "stretch" else 1.0)
    if len(stretch) and stretch.min() <= 0.0:
        raise InputError(
            f"{path}: the smallest stretch is {stretch.min():.4g}, but must be greater than 0; check column {titles[x]!r}."
        )
    if np.abs(data).max() > _LARGEST:
        raise InputError(f"{path}: a value of {np.abs(data).max():.3g} is none of a tensile test; check the columns.")
    if stretch.max() > _LONGEST_STRETCH:
        raise InputError(
            f"{path}: the largest stretch is {stretch.max():.4g}, but no rubber reaches {_LONGEST_STRETCH:g}; is column "
            f"{titles[x]!r} in %? Then write (%) behind its name."
        )
    pressed = stretch < _PRESSED
    if pressed.sum() > 2 and np.mean(data[pressed, 1] > 0.0) > 0.5:
        raise InputError(
            f"{path}: stresses are positive at stretches from {stretch.min():.4g} to {_PRESSED}, where a rubber is pressed "
            f"together; is column {titles[x]!r} a strain, which begins at 0? Then name it so; else check its sign."
        )
    return TensileTest(path.stem, stretch, factor_y * data[:, 1], *_times(titles, rows, first, separator))


def _number(cell: str, separator: str) -> float:
    """Read a number, whose comma is a decimal one where it separates nothing."""
    return float(cell if separator == "," else cell.replace(",", "."))


def _times(titles: Sequence[str], rows: Sequence[Sequence[str]], first: int, separator: str) -> tuple[np.ndarray | None, str]:
    """Read the times of the samples, s; None where there is no column of them, or with the reason why it is not read."""
    names = [_plain_title(title) for title in titles]
    if "time" not in names:
        return None, ""
    column = names.index("time")
    title = titles[column].strip()
    unit = _IN_BRACKETS.search(title)
    factor = _TIME.get(unit.group(1).strip().lower()) if unit else None
    if factor is None:
        has = f"the unit {unit.group(1).strip()!r}" if unit else "no unit"
        return None, f"column {title!r} has {has}; write one of {', '.join(_TIME)} in brackets behind the name"
    times: list[float] = []
    for number, cells in enumerate(rows[first:], start=first + 1):
        if not any(cell.strip() for cell in cells):
            continue
        try:
            value = _number(cells[column], separator)
        except (ValueError, IndexError):
            value = math.nan
        if not math.isfinite(value) or (times and value < times[-1]):
            trouble = f"falls from {times[-1]:g} to {value:g}" if math.isfinite(value) else "is no number"
            return None, f"column {title!r} {trouble} in line {number}; correct or remove that line"
        times.append(value)
    return factor * np.array(times), ""


def _find_header(path: Path, rows: Sequence[Sequence[str]]) -> tuple[int, int, int]:
    """Find the line of column names: the number of lines up to it, and the columns of strain and of stress."""
    found = _named(rows)
    if found is not None:
        return found
    true = any(_plain_title(cell).startswith("true ") for row in rows for cell in row)
    what = "of true strain e and stress s write the stretch exp(e) and s exp(-e)" if true else "add such a line above the numbers"
    raise InputError(
        f"{path}: no line names a column 'engineering strain' (or 'stretch') and a column 'engineering stress (MPa)'; {what}."
    )


def _named(rows: Sequence[Sequence[str]]) -> tuple[int, int, int] | None:
    """As :func:`_find_header`; None where no line names both columns."""
    for count, row in enumerate(rows, start=1):
        names = [_plain_title(cell) for cell in row]
        x = next((names.index(name) for name in _STRAINS if name in names), None)
        y = next((names.index(name) for name in _STRESSES if name in names), None)
        if x is not None and y is not None:
            return count, x, y
    return None


def _plain_title(title: str) -> str:
    """Name of a column without its unit, in small letters."""
    if len(title) > _LONGEST_TITLE:
        return ""
    return re.sub(r"\s+", " ", _IN_BRACKETS.sub("", title)).strip().lower()


def _unit(path: Path, title: str, known: dict[str, float]) -> float:
    found = _IN_BRACKETS.search(title)
    unit = (found.group(1) if found else "").strip()
    factors = {name.lower(): factor for name, factor in known.items()}
    plain = unit.lower().replace("mm^2", "mm2").replace("mm²", "mm2")
    if plain not in factors:
        has = f"the unit {unit!r}" if unit else "no unit"
        allowed = ", ".join(name for name in known if name)
        raise InputError(f"{path}: column {title!r} has {has}; write one of {allowed} in brackets behind the name.")
    return factors[plain]

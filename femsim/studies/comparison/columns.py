"""Which column of a text table is what: by the card, else by its name."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np

from femsim.base.errors import InputError, did_you_mean
from femsim.base.table import Table, is_data
from femsim.base.units import COLUMN_UNITS, TIME_UNITS, split_unit
from femsim.model.path_files import time_column, time_parts, times_of
from femsim.studies.comparison.card import Card

WRENCH_AXES = ("fx", "fy", "fz", "tx", "ty", "tz")
_PREFIXES = ("", "wrench", "fieldwrench")
_NAME_ONE = "name one by its number in a card"
_TIME_NAMES = {"t", "time", "times", "timestamp", "stamp", "elapsedtime", "timestamps", "seconds", "sec"}
#: How far a rate may be from that of time stamps, relative, to be the same.
_SAME_RATE = 0.02
#: Hz in a unit of sample rates, in small letters without blanks.
_RATE_UNITS = {
    "": 1.0, "hz": 1.0, "1/s": 1.0, "/s": 1.0, "samples/s": 1.0, "samples/sec": 1.0, "samples/second": 1.0, "khz": 1e3,
}  # fmt: skip


class Column(NamedTuple):
    """A column that is used: name and group of its channel, what it measures, its own name in the table, and its sign."""

    channel: str
    group: str
    kind: str
    name: str
    sign: float = 1.0


def group_of(axis: str) -> str:
    """Group of a component of a wrench: "force" or "torque"."""
    return "force" if axis[0] == "f" else "torque"


def choose_columns(
    table: Table, card: Card, sensors: Sequence[str], markers: Sequence[str]
) -> tuple[list[Column], str | None, tuple[str, ...]]:
    """Choose the columns of a table that are used, and the sensor that they belong to; None for markers and single columns.

    Third come notes on columns that are recognised too, but not used: a log is compared by its forces or by its markers.

    Parameters
    ----------
    table : Table
        The log.
    card : Card
        What it says about columns counts; without a word, they are recognised by their names.
    sensors, markers : sequence of str
        Names in the run.

    Raises
    ------
    InputError
        A column that is missing, none that is recognised, two for one axis, or no word about the sensor.
    """
    if card.markers:
        return _markers_of_card(table, card), None, ()
    if card.columns:
        return _columns_of_card(table, card), None, ()
    if card.axes:
        return _axes_of_card(table, card), card.sensor or only_sensor(table.path, sensors), ()
    by_name = [] if card.sensor is not None else _markers_by_name(table, markers)
    sensor = _sensor_by_name(table, card, sensors, by_name)
    axes = _axes_by_name(table, sensor) if sensor is not None else []
    if axes:
        found = ", ".join(column.name for column in by_name)
        note = f"columns {found} look like markers and are not used beside a force; to compare them, name them under markers"
        return axes, sensor, (f"{note} in a card",) if by_name else ()
    if by_name:
        used = {column.name for column in by_name}
        others = [c for c in table.columns if c not in used]
        found = ", ".join(c for c in others if any(squeezed(c) in _names_of(axis, _PREFIXES) for axis in WRENCH_AXES))
        note = f"columns {found} look like a force or torque and are not used beside markers; to compare them, give the sensor"
        return by_name, None, (f"{note} (--sensor, or sensor in a card)",) if found else ()
    raise InputError(
        f"in the log {table.path} no column is recognised as a force or torque (Fx, Force X (N) ...)"
        f"{' or as a marker of the run' if markers else ''}; name them under axes in a card. "
        f"Columns are {', '.join(table.titles or table.columns)}."
    )


def _markers_of_card(table: Table, card: Card) -> list[Column]:
    out = []
    for marker, place in card.markers.items():
        three = [f"{place} {axis}" for axis in "XYZ"] if isinstance(place, str) else place
        what = f"marker {marker}"
        names = [(f"{marker}.{axis}", _known(table, c, what)) for axis, c in zip("xyz", three, strict=True)]
        out += [Column(channel, marker, "length", name) for channel, name in names]
    return out


def _columns_of_card(table: Table, card: Card) -> list[Column]:
    out: list[Column] = []
    for own, there in card.columns.items():
        name, kind = single_column(own)
        turned = there.startswith("-") and there not in (*table.titles, *table.columns)
        column = _known(table, there[1:] if turned else there, own)
        out.append(Column(name, name, kind, column, -1.0 if turned else 1.0))
    check_different([column.channel for column in out])
    return out


def check_different(names: Sequence[str]) -> None:
    """Refuse two columns of a run whose names without units are one.

    Raises
    ------
    InputError
        Names it.
    """
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"the card maps two columns {twice!r} of different units; compare one at a time, each by its own card.")


def single_column(own: str) -> tuple[str, str]:
    """Split a column of a run into its name without the unit, and what it measures; without a unit it is a number."""
    name, _, suffix = own.rpartition("_")
    return (name, COLUMN_UNITS[suffix][0]) if name and suffix and suffix in COLUMN_UNITS else (own, "number")


def _axes_of_card(table: Table, card: Card) -> list[Column]:
    return [Column(a, group_of(a), group_of(a), _known(table, card.axes[a], a)) for a in WRENCH_AXES if a in card.axes]


def _known(table: Table, column: str, what: str) -> str:
    """Name of a column that the card names, with or without its unit; with it, it may be one of several with that name."""
    if table.titles.count(column) == 1:
        return table.columns[table.titles.index(column)]
    wanted = column if column in table.columns else split_unit(column)[0]
    table.check_single(wanted, what, _NAME_ONE)
    if wanted not in table.columns:
        raise InputError(f"the log {table.path} has no column {column!r} for {what}{did_you_mean(column, table.columns)}")
    return wanted


def _markers_by_name(table: Table, markers: Sequence[str]) -> list[Column]:
    out: list[Column] = []
    for name, marker, axis in ((f"{marker}.{axis}", marker, axis) for marker in markers for axis in "xyz"):
        hits = [c for c in (*table.columns, *table.double) if squeezed(c) == squeezed(marker) + axis]
        _check_single(table, hits, name)
        out += [Column(name, marker, "length", column) for column in hits]
    return out


def _check_single(table: Table, hits: Sequence[str], what: str) -> None:
    for column in hits:
        table.check_single(column, what, _NAME_ONE)


def _sensor_by_name(table: Table, card: Card, sensors: Sequence[str], markers: Sequence[Column]) -> str | None:
    """Sensor of the card; else the only one that the columns name; else the only one of the run; None where there are markers."""
    if card.sensor is not None:
        return card.sensor
    named = [s for s in sensors if any(squeezed(column).startswith(squeezed(s) + "f") for column in table.columns)]
    if len(named) == 1:
        return named[0]
    return None if markers else only_sensor(table.path, sensors)


def _names_of(axis: str, prefixes: Sequence[str]) -> set[str]:
    """Names, squeezed, by which a component of a wrench is recognised."""
    endings = {axis, f"{group_of(axis)}{axis[1]}"}
    if axis[0] == "t":
        endings |= {f"m{axis[1]}", f"moment{axis[1]}"}
    return {prefix + ending for prefix in prefixes for ending in endings}


def _axes_by_name(table: Table, sensor: str) -> list[Column]:
    prefixes = (*_PREFIXES, squeezed(sensor), squeezed(sensor.removesuffix("_measured")))
    out: list[Column] = []
    for axis in WRENCH_AXES:
        names = _names_of(axis, prefixes)
        hits = [c for c in (*table.columns, *table.double) if squeezed(c) in names]
        _check_single(table, hits, axis)
        if len(hits) > 1:
            raise InputError(
                f"the log {table.path} has columns {hits}, each of which may be {axis}; name one under axes in the card."
            )
        out += [Column(axis, group_of(axis), group_of(axis), column) for column in hits]
    return out


def squeezed(name: str) -> str:
    """Lower-case letters and digits of a name, nothing else."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


def only_sensor(path: Path, sensors: Sequence[str]) -> str:
    """Return the sensor of a run that has one; "log" without a run.

    Raises
    ------
    InputError
        There are several.
    """
    if len(sensors) == 1 or not sensors:
        return sensors[0] if sensors else "log"
    raise InputError(
        f"the run has the sensors {', '.join(sensors)}, and nothing says which of them the log {path} belongs to; name one as "
        "'sensor' in the card, or by --sensor (femsim plot: --sensors)."
    )


def time_stamps(table: Table, card: Card) -> np.ndarray:
    """Time stamps of a table, (n,), s: its time column, seconds and nanoseconds in two, or a rate of the card or of the preamble.

    Raises
    ------
    InputError
        Neither, or a unit that is not one of time.
    """
    rate, column = card.time.rate, card.time.column
    if column is None and rate is None:
        column = _time_column(table) or _divided_clock(table)
        rate = None if column is not None else _noted_rate(table)
    if column is None:
        return np.arange(len(table.rows)) / float(rate or 1.0)
    return _stamps(table, column, card)


def _stamps(table: Table, column: str, card: Card) -> np.ndarray:
    """Time stamps of a column, (n,), s."""
    name = column if column in table.columns else split_unit(column)[0]
    table.check_single(name, "the time", "name one by its number as time.column in a card")
    if name not in table.columns:
        raise InputError(f"the log {table.path} has no time column {column!r}{did_you_mean(column, table.columns)}")
    if card.time.unit is None and len(_clock_parts(table, name)) == 2:
        return times_of(table, name, None)[0]
    unit = card.time.unit or table.units[table.columns.index(name)] or "s"
    if unit not in TIME_UNITS:
        raise InputError(f"the time column of {table.path} has the unit {unit!r}; set time.unit in the card.")
    return table.numbers(name) * TIME_UNITS[unit]


def notes_on_time(table: Table, card: Card) -> list[str]:
    """Say where the time of a table, which the card names, has something in brackets that is no unit that is known."""
    return [] if card.time.column is None else notes_on_brackets(table, card.time.column, "s", "time.unit", card.time.unit)


def notes_on_brackets(table: Table, column: str, taken: str, field: str, given: str | float | None) -> list[str]:
    """Say that a column is taken in an SI unit since its brackets hold no unit that is known, where the card gives none.

    Parameters
    ----------
    table : Table
        The log.
    column : str
        Name of the column, as the card may have it.
    taken, field : str
        The SI unit, and where the card may say another.
    given : str or float, optional
        What the card says.
    """
    stated = column in table.columns and table.units[table.columns.index(column)]
    if given is not None or stated or not column.endswith((")", "]")):
        return []
    return [
        f"column {column!r} is taken in {taken}, since what stands in its brackets is no unit that is known; if it is one, set "
        f"{field} in the card"
    ]


def notes_on_rate(table: Table, card: Card) -> list[str]:
    """Say where the rate of a card is not that of the stamps that the table has beside it; a count of rows is none."""
    if card.time.rate is None or (column := _time_column(table) or _divided_clock(table)) is None:
        return []
    with suppress(InputError):
        stamps = _stamps(table, column, card)
        return [] if (np.diff(table.numbers(column)) == 1.0).all() else odd_rate(card.time.rate, stamps, f"column {column!r}")
    return []


def odd_rate(rate: float, stamps: np.ndarray, where: str) -> list[str]:
    """Say where a rate of a card, Hz, is neither the usual nor the mean one of time stamps, (n,), s."""
    stamps = np.sort(stamps[np.isfinite(stamps)])
    steps = np.diff(stamps)
    steps = steps[steps > 0.0]
    if len(steps) < 2:
        return []
    found = 1.0 / float(np.median(steps)), (len(stamps) - 1) / float(stamps[-1] - stamps[0])
    if min(abs(one / rate - 1.0) for one in found) <= _SAME_RATE:
        return []
    return [
        f"time.rate = {rate:g} Hz of the card is taken, but the stamps beside it, {where}, are {found[0]:.4g} Hz: the log lasts "
        f"{found[1] / rate:.3g} times as long as they say; leave time.rate out to read them"
    ]


def _time_column(table: Table) -> str | None:
    """Find the first column by a name of time that holds numbers; a clock such as 4/4/2024 3:36 PM does not count."""
    hits = [c for c in table.columns if squeezed(c) in _TIME_NAMES]
    return next((c for c in hits if is_data([table.rows[0][table.columns.index(c)]] * 2, table.decimal_comma)), None)


def _divided_clock(table: Table) -> str | None:
    """Find a clock of two columns, such as header.stamp.sec and header.stamp.nanosec."""
    found = time_column(table)
    return found if found is not None and len(_clock_parts(table, found)) == 2 else None


def _clock_parts(table: Table, name: str) -> tuple[str, ...]:
    """Columns of a clock: this one, or those of seconds and of parts of a second."""
    try:
        return time_parts(table, name)
    except InputError:  # a part that is no number
        return (name,)


def _check_times(table: Table) -> None:
    for column in table.double:
        if squeezed(column) in _TIME_NAMES:
            table.check_single(column, "the time", "name one by its number as time.column in a card")


def _noted_rate(table: Table) -> float:
    """Find the sampling rate in the preamble, Hz."""
    noted = next((v for k, v in table.notes.items() if "sample rate" in k or k in ("rate", "sampling rate")), "")
    if noted:
        match = re.fullmatch(r"([0-9.]+(?:[eE][+-]?[0-9]+)?)\s*(.*)", noted.replace(",", ".") if table.decimal_comma else noted)
        try:
            rate = float(match[1]) * _RATE_UNITS[match[2].replace(" ", "").lower()] if match else 0.0
        except (KeyError, ValueError):
            rate = 0.0
        if not 0.0 < rate < math.inf:
            raise InputError(
                f"the log {table.path} notes the sample rate {noted!r}; allowed are a number with Hz, kHz, 1/s, samples/s or no "
                "unit. Set time.rate in a card, in Hz."
            )
        return rate
    _check_times(table)
    clocks = [c for c in table.columns if squeezed(c) in _TIME_NAMES]
    problem = f"holds {table.rows[0][table.columns.index(clocks[0])]!r}, which is no number" if clocks else "is missing"
    raise InputError(
        f"the time column of the log {table.path} {problem}; give time.column or time.rate in a card. Columns are "
        f"{', '.join(table.columns)}."
    )

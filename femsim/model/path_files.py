"""What the files of robots hold: poses over time, in text tables of any layout and in ROS bags, as the numbers stand there."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import foreign
from femsim.base.errors import InputError, did_you_mean, meant
from femsim.base.packages import require
from femsim.base.place import data_folder
from femsim.base.table import Table, is_data, read_table
from femsim.base.units import TIME_UNITS, UNITS, plain_unit
from foreign import logs
from foreign.text import read_text

#: How orientations are written, and how many numbers each has; those of poses hold the position too.
ORIENTATIONS = {"wxyz": 4, "xyzw": 4, "vector": 3, "matrix": 9, "pose_rows": 16, "pose_columns": 16}
WORDS = {
    "wxyz": "quaternions w, x, y, z", "xyzw": "quaternions x, y, z, w", "vector": "rotation vectors",
    "matrix": "rotation matrices by rows", "pose_rows": "matrices (4, 4) by rows", "pose_columns": "matrices (4, 4) by columns",
}  # fmt: skip
_BAGS = (".mcap", ".bag", ".db3")
_TIME_NAMES = {"t", "time", "timestamp", "timestamps", "stamp", "seconds", "sec"}
#: Longer names of times, by their letters, a unit at the end taken off: "elapsed", "robot_time", "field.header.stamp".
_CLOCKS = "robot|controller|device|sensor|header|field|msg|message|ros|unix|epoch|utc|gps|system|sim|simulation|wall|host|elapsed"
_LONG_TIME = re.compile(
    rf"(?:{_CLOCKS}|relative|rel|absolute|abs|recording|log)*(?:time|timestamp|stamp|clock|elapsed)"
    r"(?:(?:from|since)(?:the)?(?:start|begin|beginning|epoch|boot))?|.*headerstamp"
)
#: How units stand at the end of names: "stamp.nanosec". Those of more than two letters are names of times on their own.
_TIME_ENDS = {
    "s": "s", "sec": "s", "secs": "s", "second": "s", "seconds": "s", "ms": "ms", "msec": "ms", "msecs": "ms", "millis": "ms",
    "millisec": "ms", "milliseconds": "ms", "us": "us", "usec": "us", "usecs": "us", "micros": "us", "microsec": "us",
    "microseconds": "us", "ns": "ns", "nsec": "ns", "nsecs": "ns", "nanos": "ns", "nanosec": "ns", "nanosecs": "ns",
    "nanoseconds": "ns",
}  # fmt: skip
#: Names that are longer than this are none of a time.
_LONGEST_NAME = 80
#: Names of orientations end in these, after nothing or after what ends in no letter: "qw", "pose.orientation.w", "tool_r11".
_BEFORE = r"(|.*[^a-z])"
_QUATERNION = re.compile(_BEFORE + r"(?:q|quat|quaternion|orientation|rotation|rot|ori)[_. ]?([wxyz])")
_VECTOR = re.compile(_BEFORE + r"(?:r|rot|rotvec|rotation_?vector|rotation|axis_?angle)[_. ]?([xyz])")
_EULER = re.compile(_BEFORE + r"(roll|pitch|yaw)")
_MATRIX = re.compile(_BEFORE + r"(?:r|m|rot|rotation)[_. ]?([0-3])[_. ]?([0-3])")
#: What stands before x, y and z of a column that is no position.
_NO_PLACE = re.compile(
    _BEFORE + r"(?:f|force|t|torque|m|moment|v|vel|velocity|linear|angular|speed|w|omega|a|acc|acceleration|gyro|q|quat"
    r"|quaternion|orientation|r|rot|rotvec|rotation|ori)[_. ]?"
)
_PLACE = re.compile(r"(.*?)([xyz])")
#: Last row of the matrix of a pose, and what may lack of it.
_LAST_ROW, _ROUNDED = np.array([0.0, 0.0, 0.0, 1.0]), 1e-6
#: Rows from which times that state no unit are doubted, and the least step between them, s.
_MANY_ROWS, _LONG_STEP = 20, 1.0
_MATRIX_KEYS = [[f"{i + k}{j + k}" for i in range(3) for j in range(3)] for k in (0, 1)]


@dataclass(frozen=True)
class RawPath:
    """Poses as they stand in a file.

    Attributes
    ----------
    places : ndarray, (n, 3)
        Positions in ``unit``.
    turns : ndarray, (n, k), optional
        Numbers of the orientations; None where the file has none.
    orientation : str
        How they are written, one of :data:`ORIENTATIONS`; "" for none.
    unit, angle : str
        Units that the file states of lengths and of rotation vectors, "" for none.
    times : ndarray, (n,), s, optional
        From the first pose; None where the file has none.
    clock : float, s
        Time of the first pose on the clock of the file.
    lines : sequence of int
        Number of the line or message of each pose.
    word : str
        "line" or "message".
    frame : str
        Frame that the file names; "" for none.
    by_name : bool
        Whether a header names the parts of the orientations, so that their order in the file is no matter.
    notes, on_times : tuple of str
        What a reader should know; the second where speeds make it plausible, see :func:`may_be_ms`.
    """

    places: np.ndarray
    turns: np.ndarray | None
    orientation: str
    unit: str
    angle: str
    times: np.ndarray | None
    clock: float
    lines: Sequence[int]
    word: str = "line"
    frame: str = ""
    by_name: bool = False
    notes: tuple[str, ...] = ()
    on_times: tuple[str, ...] = ()


def one_of(count: int) -> str:
    """Say how many places there are like the one that is named."""
    return "the only such place" if count == 1 else f"one of {count} such places"


#: Ways from row to row, (n - 1,), and their largest speed.
Way = tuple[np.ndarray, float]


@dataclass(frozen=True)
class Asked:
    """What a user says of a file: see :func:`femsim.model.paths.load_path`."""

    orientation: str | None = None
    columns: Sequence[str] | None = None
    time: str | None = None
    time_unit: str | None = None
    topic: str | None = None


def read_path(file: Path, asked: Asked) -> RawPath:
    """Read the poses of a file.

    Parameters
    ----------
    file : Path
        A bag (a ROS file or the folder of a rosbag2), one number a line, or a table.
    asked : Asked
        What the user says of it.

    Raises
    ------
    InputError
        A file that cannot be read, columns that are missing or ambiguous, a cell that is no number.
    """
    if file.suffix.lower() in _BAGS or (file.is_dir() and (file / "metadata.yaml").is_file()):
        return _read_bag(file, asked)
    numbers = _single_numbers(file)
    return _of_rows(file, *numbers, asked) if numbers is not None else _of_table(file, asked)


def read_turns(file: Path, orientation: str | None) -> tuple[np.ndarray, str]:
    """Read a file of orientations alone: as many numbers a line as one has, or one number a line; return how they are written.

    Raises
    ------
    InputError
        A file that cannot be read, or with another number of columns.
    """
    single = _single_numbers(file)
    if single is None:
        table = read_table(file, "path")
        values = np.column_stack([finite_column(table, name) for name in table.columns])
    else:
        width = ORIENTATIONS.get(orientation or "matrix", 9)
        if len(single[0]) % width:
            raise InputError(
                f"path {file} has {len(single[0])} lines of one number; orientations need a multiple of {width}, or say by "
                "orientation= how they are written."
            )
        values = single[0].reshape(-1, width)
    kind = orientation or {9: "matrix"}.get(values.shape[1])
    if kind is None or ORIENTATIONS[kind] != values.shape[1] or kind.startswith("pose"):
        raise InputError(
            f"path {file} has {values.shape[1]} numbers for each orientation; allowed are 4 with orientation='wxyz' or 'xyzw', 3 "
            "with 'vector', 9 with 'matrix'."
        )
    return values, kind


def _single_numbers(file: Path) -> tuple[np.ndarray, list[int]] | None:
    """Numbers and their lines of a file that has one a line; None for a table."""
    try:
        text = read_text(file, encoding="latin-1")
    except (OSError, foreign.Refused) as error:
        reason = getattr(error, "strerror", None) or error
        folders = [] if file.exists() else [file.parent, data_folder("trajectories")]
        near = meant(file.name, (other.name for folder in folders if folder.is_dir() for other in folder.iterdir()))
        advice = near or " give a table of positions, .mcap, .bag or a rosbag2."
        raise InputError(f"path {file} cannot be read ({reason});{advice}") from None
    lines = [(number, line.strip()) for number, line in enumerate(text.splitlines(), 1)]
    lines = [(number, line) for number, line in lines if line]
    if not lines:
        raise InputError(f"path {file} is empty; give one row of x, y, z a step.")
    if not _is_number(lines[0][1]):
        return None
    for number, line in lines:
        if not _is_number(line):
            raise InputError(f"path {file}: line {number} is {line[:60]!r}; allowed is one number, as in line {lines[0][0]}.")
        if not math.isfinite(float(line)):
            raise InputError(f"path {file}: line {number} is {line[:60]!r}; every number must be finite, repair it.")
    return np.array([float(line) for _, line in lines]), [number for number, _ in lines]


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _of_rows(file: Path, numbers: np.ndarray, lines: list[int], asked: Asked) -> RawPath:
    """Poses of a file with one number a line: x, y, z and those of the orientation in turn."""
    width = _width(asked.orientation)
    if len(numbers) % width:
        raise InputError(
            f"path {file} has {len(numbers)} lines of one number; {'x, y, z' if width == 3 else 'poses'} in turn need a multiple "
            f"of {width}."
        )
    places, turns = _split(file, numbers.reshape(-1, width), asked.orientation, lines[::width])
    return RawPath(places, turns, asked.orientation or "", "", "", None, 0.0, lines[::width])


def _width(orientation: str | None) -> int:
    """How many numbers a pose has."""
    own = ORIENTATIONS[orientation] if orientation else 0
    return own if own == 16 else 3 + own


def _split(file: Path, values: np.ndarray, orientation: str | None, lines: Sequence[int]) -> tuple[np.ndarray, np.ndarray | None]:
    """Positions (n, 3) and orientations (n, k) of the numbers of poses; those of matrices (4, 4) become matrices by rows."""
    if orientation is None:
        return values[:, :3], None
    if not orientation.startswith("pose"):
        return values[:, :3], values[:, 3:]
    matrices = values.reshape(-1, 4, 4)
    if orientation == "pose_columns":
        matrices = matrices.transpose(0, 2, 1)
    bad = np.flatnonzero(np.abs(matrices[:, 3] - _LAST_ROW).max(axis=1) > _ROUNDED)
    if len(bad):
        other = "pose_rows" if orientation == "pose_columns" else "pose_columns"
        turned = bool((np.abs(matrices[:, :, 3] - _LAST_ROW).max(axis=1) <= _ROUNDED).all())
        advice = f"they fit orientation={other!r}" if turned else "check the order of the columns"
        raise InputError(
            f"path {file}: line {lines[bad[0]]} has no pose by orientation={orientation!r}: the last row of its matrix is "
            f"{', '.join(f'{x:.4g}' for x in matrices[bad[0], 3])}, and must be 0, 0, 0, 1; {advice}."
        )
    return matrices[:, :3, 3].copy(), matrices[:, :3, :3].reshape(-1, 9)


# ---------------------------------------------------------------------- tables


def _of_table(file: Path, asked: Asked) -> RawPath:
    table = read_table(file, "path")
    named = table.named
    if asked.columns is not None:
        columns, orientation, time = _named_columns(table, asked)
    elif named:
        columns, orientation, time = _recognised(table, asked)
    else:
        columns, orientation, time = _counted(table, asked)
    if asked.time is None:
        check_double_times(table, time)
    for name in columns:
        table.check_single(name, "a part of the pose", "rename one, or name the right ones by their numbers in columns=")
    time = asked.time if asked.time is not None else time
    if time is not None and time not in table.columns:
        raise InputError(f"path {file} has no time column {time!r}{did_you_mean(time, table.columns)}")
    values = np.column_stack([finite_column(table, name) for name in columns])
    places, turns = _split(file, values, orientation, table.lines)
    times, clock = (None, 0.0) if time is None else times_of(table, time, asked.time_unit)
    units = [table.units[table.columns.index(name)] for name in columns]
    unit, angle = _stated(file, columns[:3], units[:3], "length"), _stated(file, columns[3:], units[3:], "angle")
    unread = [name for name in table.columns if name not in (*columns, *(time_parts(table, time) if time is not None else ()))]
    notes = list(table.warnings)
    on_times = [] if time is None or times is None else notes_on_times(table, time, asked.time_unit, times)
    if named and unread:
        notes.append(f"columns that were not read: {', '.join(unread[:12])}{' ...' if len(unread) > 12 else ''}")
    return RawPath(
        places, turns, orientation or "", unit, angle, times, clock, table.lines,
        by_name=asked.columns is None and named, notes=tuple(notes), on_times=tuple(on_times),
    )  # fmt: skip


def finite_column(table: Table, name: str) -> np.ndarray:
    """Numbers of a column of a table, (n,); InputError, with the line, where one is missing or not finite."""
    values = table.numbers(name)
    missing = np.flatnonzero(~np.isfinite(values))
    if len(missing):
        raise InputError(
            f"path {table.path}: line {table.lines[missing[0]]} has no number in column {name!r}; every number must be there and "
            "finite, repair or remove the line."
        )
    return values


def _stated(file: Path, names: Sequence[str], units: Sequence[str], kind: str) -> str:
    """Return the unit that the header states of some columns; "" for none."""
    found = {plain_unit(unit) for unit in units}
    if len(found) > 1:
        raise InputError(f"path {file}: columns {', '.join(names)} have the units {', '.join(units)}; give them all in one unit.")
    unit = found.pop() if found else ""
    if unit and unit not in UNITS[kind]:
        raise InputError(f"path {file}: column {names[0]!r} has the unit {unit!r}; allowed are {', '.join(UNITS[kind])}.")
    return unit


def times_of(table: Table, name: str, given: str | None) -> tuple[np.ndarray, float]:
    """Return the times from the first row, s, and the time of that on the clock of the file."""
    unit = given or _time_name(table, name)[1] or "s"
    if unit not in TIME_UNITS:
        raise InputError(
            f"path {table.path}: the time column {name!r} has the unit {unit!r}; allowed are {', '.join(TIME_UNITS)}, by "
            "time_unit=."
        )
    parts = (name,) if given else time_parts(table, name)
    times, clock = np.zeros(len(table.rows)), 0.0
    for part in parts:
        stamps, scale = finite_column(table, part), TIME_UNITS[unit if len(parts) == 1 else _time_name(table, part)[1]]
        with np.errstate(over="ignore"):  # what is infinite is refused with all that lasts too long
            times, clock = times + scale * (stamps - stamps[0]), clock + float(scale * stamps[0])
    return times, clock


def notes_on_turns(joint: str, values: np.ndarray) -> list[str]:
    """Note a joint without a range that a log without units turns by more than two turns, rad."""
    far = float(np.abs(values).max(initial=0.0))
    if far <= 4.0 * math.pi:
        return []
    return [f"{joint} goes to {far:.4g} rad, {far / (2.0 * math.pi):.3g} turns: are these degrees? Then say angle='deg'"]


def notes_on_times(table: Table, name: str, given: str | None, times: np.ndarray, ways: Sequence[Way] = ()) -> list[str]:
    """Say where times that state no unit may be no seconds: many rows, whole numbers, and long steps, see `may_be_ms`."""
    stated = given or _time_name(table, name)[1]
    steps = np.diff(times)
    if stated or len(times) < _MANY_ROWS or np.median(steps) < _LONG_STEP or np.abs(steps - np.round(steps)).max() > 1e-6:
        return []
    if not may_be_ms(times, *ways):
        return []
    return [
        f"the time column {name!r} states no unit and is taken as s, so that rows are {np.median(steps):g} s apart; where they "
        "are ms, say time_unit='ms', where they are s, 's'"
    ]


def may_be_ms(times: np.ndarray, *ways: Way) -> bool:
    """Whether ways between times, (n - 1,), stay below their largest speeds where times (n,), read as s, are ms."""
    return all(bool((np.abs(way) <= 1e-3 * most * np.diff(times)).all()) for way, most in ways)


def time_parts(table: Table, name: str) -> tuple[str, ...]:
    """Columns that are a time together with this one: seconds and parts of one, as "stamp.sec" and "stamp.nanosec"."""
    stem, unit = _time_name(table, name)
    units = {
        other: end for other in table.columns for own, end in [_time_name(table, other)] if own == stem and end in TIME_UNITS
    }
    whole = [other for other, end in units.items() if TIME_UNITS[end] == 1.0]
    parts = [other for other, end in units.items() if TIME_UNITS[end] < 1.0 and _below_one(table, other, TIME_UNITS[end])]
    return (whole[0], parts[0]) if unit and len(whole) == len(parts) == 1 and name in (whole[0], parts[0]) else (name,)


def _below_one(table: Table, name: str, scale: float) -> bool:
    """Whether all numbers of a column are parts of one second."""
    values = scale * finite_column(table, name)
    return bool(values.min() >= 0.0 and values.max() <= 1.0)


def _time_name(table: Table, name: str) -> tuple[str, str]:
    """Letters of the name of a column without its unit of time, and this unit; "" for none."""
    unit = table.units[table.columns.index(name)]
    words = re.findall("[a-z]+", re.sub("(?<=[a-z])(?=[A-Z])", " ", name).lower())
    if not unit and words and words[-1] in _TIME_ENDS:
        unit = _TIME_ENDS[words.pop()]
    return "".join(words), unit


def _named_columns(table: Table, asked: Asked) -> tuple[list[str], str | None, str | None]:
    """Columns that the user names."""
    columns = [str(name) for name in asked.columns or ()]
    units = {f"{name}_{unit}": name for name, unit in zip(table.columns, table.units, strict=True) if unit}
    columns = [units.get(name, name) for name in columns]
    for name in columns:
        if name not in table.columns:
            raise InputError(f"path {table.path} has no column {name!r}{did_you_mean(name, table.columns)}")
    width = _width(asked.orientation)
    if len(columns) != width:
        means = WORDS[asked.orientation] if asked.orientation else "positions alone; say orientation= where there are more"
        raise InputError(f"path {table.path}: columns names {len(columns)}; allowed are {width}, since poses are {means}.")
    order = "".join(match[2] for name in columns[3:] if (match := _QUATERNION.fullmatch(name.lower())))
    if asked.orientation in ("wxyz", "xyzw") and sorted(order) == list("wxyz") and order != asked.orientation:
        other = f", or say orientation={order!r}" if order in ORIENTATIONS else ""
        raise InputError(
            f"path {table.path}: columns names {', '.join(columns[3:])}, but orientation is {asked.orientation!r}; give them in "
            f"this order{other}."
        )
    return columns, asked.orientation, asked.time or time_or_none(table, columns)


def time_column(table: Table, taken: Collection[str] = ()) -> str | None:
    """Find the first column by a name of time that holds numbers, and is none of those that are ``taken`` for something else."""
    return next((c for c in _named_times(table, taken) if is_data([_first(table, c)] * 2, table.decimal_comma)), None)


def time_or_none(table: Table, taken: Collection[str]) -> str | None:
    """Return :func:`time_column`; None only where no column is named so, since rows would be taken as dt apart.

    Raises
    ------
    InputError
        Times are no numbers: dates, or the first one lacks.
    """
    time, named = time_column(table, taken), _named_times(table, taken)
    if time is None and named:
        raise InputError(
            f"path {table.path}: the time column {named[0]!r} begins with {_first(table, named[0])[:40]!r}, which is no number; "
            "write times in s, or another unit by time_unit=, or leave the column out and give dt=, s from row to row."
        )
    return time


def _named_times(table: Table, taken: Collection[str]) -> list[str]:
    free = [name for name in table.columns if name not in taken and len(name) <= _LONGEST_NAME]
    hits = [name for name in free if re.sub("[^a-z]", "", name.lower()) in _TIME_NAMES]
    return hits + [name for name in free if _is_time(table, name)]


def _first(table: Table, name: str) -> str:
    return table.rows[0][table.columns.index(name)]


def check_double_times(table: Table, time: str | None) -> None:
    """Refuse columns of one name that may be the time, where no better one was found: rows would be taken as dt apart.

    Raises
    ------
    InputError
        Names their places.
    """
    for name in table.double:
        plain = re.sub("[^a-z]", "", name.lower())
        if plain in _TIME_NAMES or (time is None and len(name) <= _LONGEST_NAME and _LONG_TIME.fullmatch(plain)):
            table.check_single(name, "the time", "rename one, or name one by its number as time=")


def _named_units(table: Table) -> list[tuple[str, str]]:
    """Names of columns with their units; one of several columns once, with that of the first."""
    double = [(name, table.units[int(places[0]) - 1]) for name, places in table.double.items()]
    return [*zip(table.columns, table.units, strict=True), *double]


def _is_time(table: Table, name: str) -> bool:
    """Whether a longer name is one of a time."""
    stem, unit = _time_name(table, name)
    if not stem:
        return len(re.sub("[^a-z]", "", name.lower())) > 2
    return bool(_LONG_TIME.fullmatch(stem)) and (not unit or plain_unit(unit) in TIME_UNITS)


def _counted(table: Table, asked: Asked) -> tuple[list[str], str | None, str | None]:
    """Columns of a table without names, by their number."""
    width, found = _width(asked.orientation), len(table.columns)
    if found not in (width, width + 1):
        what = "3 (x, y, z) or 4 (time, x, y, z)" if width == 3 else f"{width} or, with the time first, {width + 1}"
        raise InputError(
            f"path {table.path} has {found} columns without names; allowed are {what}, or others by orientation= ("
            f"{', '.join(map(repr, ORIENTATIONS))}) or a header line."
        )
    columns = list(table.columns[found - width :])
    return columns, asked.orientation, table.columns[0] if found > width else None


def _recognised(table: Table, asked: Asked) -> tuple[list[str], str | None, str | None]:
    """Columns by their names."""
    kind, turns = _turn_columns(table, asked.orientation)
    places = _place_columns(table, turns)
    return places + turns, kind, asked.time or time_or_none(table, places + turns)


def _place_columns(table: Table, taken: Sequence[str]) -> list[str]:
    """Columns of x, y and z: the only ones with a unit of length, or with none, whose names say nothing else."""
    found: dict[str, dict[str, str]] = {}
    for name, unit in _named_units(table):
        match = _PLACE.fullmatch(name.lower())
        if not match or name in taken or (unit and plain_unit(unit) not in UNITS["length"]):
            continue
        if unit or not _NO_PLACE.fullmatch(match[1]):
            found.setdefault(match[1], {})[match[2]] = name
    whole = {stem: [own[axis] for axis in "xyz"] for stem, own in found.items() if len(own) == 3}
    if len(whole) != 1:
        several = ", ".join(" ".join(names) for names in whole.values())
        which = (
            f"several may be a position: {several}" if whole else "none is a position (robot.load_path reads angles of joints)"
        )
        if twice := [name for name in table.double if _PLACE.fullmatch(name.lower())]:
            which = f"columns {' and '.join(table.double[twice[0]])} have one name, {twice[0]!r}"
        raise InputError(
            f"path {table.path}: of its columns {' '.join(table.columns)[:120]!r}, {which}; name three by columns=, or let one "
            "name end in 'x_m', one in 'y_m', one in 'z_m'."
        )
    return next(iter(whole.values()))


def _turn_columns(table: Table, asked: str | None) -> tuple[str | None, list[str]]:
    """How orientations are written and their columns, in that order; none where no name says so."""
    if asked is not None and asked.startswith("pose"):
        raise InputError(f"path {table.path}: poses as matrices (4, 4) under a header need columns=, 16 names.")
    whole: dict[str, list[list[str]]] = {"wxyz": [], "vector": [], "euler": [], "matrix": []}
    parts: list[str] = []
    for kind, pattern, keys in (
        ("wxyz", _QUATERNION, ["w", "x", "y", "z"]),
        ("vector", _VECTOR, ["x", "y", "z"]),
        ("euler", _EULER, ["roll", "pitch", "yaw"]),
        ("matrix", _MATRIX, None),
    ):
        found: dict[str, dict[str, str]] = {}
        for name, unit in _named_units(table):
            match = pattern.fullmatch(name.lower())
            if match and (not unit or (kind in ("vector", "euler") and plain_unit(unit) in UNITS["angle"])):
                found.setdefault(match[1], {})["".join(match.groups()[1:])] = name
        for own in found.values():
            for first in [keys] if keys else _MATRIX_KEYS:
                if set(own) == set(first):
                    whole[kind].append([own[key] for key in first])
            if kind == "wxyz" and len(own) == 3:
                parts = [*own.values()]
    return _choose_turns(table, asked, whole, parts)


def _choose_turns(
    table: Table, asked: str | None, whole: dict[str, list[list[str]]], parts: Sequence[str]
) -> tuple[str | None, list[str]]:
    """Of the columns that may be orientations, those that are; ``parts`` are three of a quaternion."""
    wanted = {"xyzw": "wxyz"}.get(asked or "", asked)  # by name, the order of the columns is no matter
    if wanted is None:
        if whole["wxyz"] or whole["matrix"]:
            wanted = "wxyz" if whole["wxyz"] else "matrix"
        elif whole["vector"]:
            names = " ".join(whole["vector"][0])
            raise InputError(
                f"path {table.path}: columns {names} may be rotation vectors or angles of some Euler convention, which are not "
                "read; say orientation='vector' for the first, or name the three columns of the position by columns=."
            )
        elif whole["euler"]:
            raise InputError(
                f"path {table.path}: columns {' '.join(whole['euler'][0])} are Euler angles, which are not read, since nothing "
                "says their order; write quaternions or matrices, or leave them out: name the three columns of the position by "
                "columns=."
            )
        elif parts:
            raise InputError(
                f"path {table.path}: columns {' '.join(parts)} are three parts of a quaternion; write the fourth too, or leave "
                "them out: name the three columns of the position by columns=."
            )
        else:
            return None, []
    if len(whole[wanted]) != 1:
        several = f"{len(whole[wanted])} sets of columns are" if whole[wanted] else "no columns are recognised as"
        raise InputError(
            f"path {table.path}: {several} {WORDS[asked or wanted]}; name them by columns=, after the three of the position. "
            f"Columns are {', '.join(table.columns)[:200]}."
        )
    return wanted, whole[wanted][0]


# ---------------------------------------------------------------------- bags


def _read_bag(file: Path, asked: Asked) -> RawPath:
    """Stamped poses or transforms of one topic of a ROS bag."""
    path = file.parent if file.suffix.lower() == ".db3" else file
    mcap = path.suffix.lower() == ".mcap"
    libraries = ["mcap.reader", "mcap_ros2.decoder"] if mcap else ["rosbags.highlevel", "rosbags.typesys"]
    for library in libraries:
        require(library, f"the path {file}", "logs")
    try:
        full = path.resolve()
        found = foreign.call(logs.read_poses, logs.size_of(str(full)), libraries=libraries, path=str(full), topic=asked.topic)
    except (foreign.Refused, OSError) as error:
        raise InputError(f"the path {file} cannot be read as a ROS bag: {error}.") from error
    topics = found["topics"]
    if asked.topic is not None and asked.topic not in topics:
        raise InputError(f"the path {file} has no poses on topic {asked.topic!r}{did_you_mean(asked.topic, topics)}")
    if "poses" not in found:
        raise InputError(
            f"the path {file} has {len(topics)} topics with PoseStamped, TransformStamped or Odometry "
            f"({', '.join(topics) or 'none'}); name one by topic=."
        )
    stamps, poses, frames = found["nanoseconds"], found["poses"], found["frames"]
    if not len(poses):
        raise InputError(f"the path {file} has no message on its topic; check the recorder, or give another topic=.")
    if not np.isfinite(poses).all():
        bad = int(np.flatnonzero(~np.isfinite(poses).all(axis=1))[0])
        raise InputError(f"the path {file}: message {bad + 1} has a number that is not finite; cut the bag there.")
    order = np.argsort(stamps, kind="stable")  # a bag is in the order in which messages arrived; their own stamps count
    if len(frames) > 1:
        raise InputError(f"the path {file} has poses in the frames {', '.join(frames)}; record those of one frame.")
    return RawPath(
        poses[order, :3], poses[order, 3:], "xyzw", "m", "", 1e-9 * (stamps[order] - stamps[order[0]]),
        1e-9 * float(stamps[order[0]]), (1 + order).tolist(), "message", frames[0] if frames else "",
    )  # fmt: skip

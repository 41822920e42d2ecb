"""Logs of experiments: CSV of any column names, C3D markers, ROS bags, read by a small card into SI and the world frame.

A card (TOML) says what the file does not: which column is what, units, frame, point, sign, tare. Conventions are those of a run's
``sensors.csv``: forces in N **on** the sensed part, torques in N m about the sensor's point, positions in m, world frame.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from femsim.base.errors import InputError, did_you_mean
from femsim.base.wrenches import rotation_matrix, weight_wrench

WRENCH_AXES = ("fx", "fy", "fz", "tx", "ty", "tz")
_TIME_UNITS = {"s": 1.0, "sec": 1.0, "seconds": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9, "min": 60.0}
_KGF, _LBF, _INCH = 9.80665, 4.4482216152605, 0.0254
_FORCE_UNITS = {
    "N": 1.0, "mN": 1e-3, "kN": 1e3, "kg": _KGF, "kgf": _KGF, "g": 1e-3 * _KGF, "gf": 1e-3 * _KGF, "lbf": _LBF, "lb": _LBF,
}  # fmt: skip
_TORQUE_UNITS = {
    "Nm": 1.0, "mNm": 1e-3, "Nmm": 1e-3, "Ncm": 1e-2, "kgfm": _KGF, "kgfcm": 1e-2 * _KGF, "lbfin": _LBF * _INCH,
    "lbin": _LBF * _INCH, "inlb": _LBF * _INCH, "lbfft": 12 * _LBF * _INCH,
}  # fmt: skip
_LENGTH_UNITS = {"m": 1.0, "cm": 1e-2, "mm": 1e-3, "um": 1e-6, "in": _INCH}
#: Values above these are taken for a wrong unit, unless the card says accept_large: N, N m, m.
_LARGE = {"force": 1e4, "torque": 1e3, "position": 1e2}
_UNIT_OF = {"force": "N", "torque": "N m", "position": "m"}
_TABLES = (".csv", ".txt", ".tsv", ".dat", ".log")

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Finite = Annotated[float, Field(allow_inf_nan=False)]
Triple = tuple[Finite, Finite, Finite]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class TimeCard(_Strict):
    """Table ``[time]``: the clock of the log. Its times count from the first sample of the file."""

    column: str | None = Field(default=None, description="column of the time stamps; default: recognised by its name")
    unit: str | None = Field(default=None, description="s, ms, us, ns or min; default: from the header, else s")
    rate: Positive | None = Field(default=None, description="samples a second, where no column holds the time")
    offset: Finite | Literal["auto"] = Field(
        default="auto", description="time of the run at the first sample of the log, s, or 'auto'"
    )
    max_lag: Positive | None = Field(default=None, description="largest |offset| that 'auto' looks at, s")
    repair: bool = Field(
        default=False, description="sort rows by time and keep the first of equal stamps, instead of refusing the log"
    )


class UnitsCard(_Strict):
    """Table ``[units]``: a name, or the SI value of one unit of the log (1e-6 for counts of a micronewton)."""

    force: str | Positive | None = Field(default=None, description="N, mN, kN, kg or kgf, g or gf, lbf; default: header, else N")
    torque: str | Positive | None = Field(
        None, description="N m, N mm, mN m, N cm, kgf cm, lbf in, lbf ft; default: header, else N m"
    )
    length: str | Positive | None = Field(default=None, description="m, cm, mm, um, in; default: from the file, else m")

    @field_validator("force", "torque", "length")
    @classmethod
    def _known(cls, value: str | float | None, info: Any) -> str | float | None:
        known = {"force": _FORCE_UNITS, "torque": _TORQUE_UNITS, "length": _LENGTH_UNITS}[info.field_name]
        if isinstance(value, str) and _plain_unit(value) not in known:
            raise ValueError(f"unit {value!r} is unknown{did_you_mean(value, known)}")
        return value


class FrameCard(_Strict):
    """Table ``[frame]``: from the axes and the point of the log to those of the run."""

    rotation: list[Any] | None = Field(
        None, description="rotation that takes vectors of the log to the world: vector (3) or matrix (3 x 3, rows of the world)"
    )
    angle: Literal["rad", "deg"] = Field(default="rad", description="unit of the rotation vector")
    sign: Literal[1, -1] = Field(
        default=1, description="-1 when the log's forces are those of the sensed part on its surroundings"
    )
    point: Triple = Field(
        default=(0.0, 0.0, 0.0), description="point of the log's torques, from the point of the run's sensor, world, m"
    )
    translation: Triple = Field(default=(0.0, 0.0, 0.0), description="added to positions after the rotation, m")


class TareCard(_Strict):
    """Table ``[tare]``: window of the log, s from its first sample.

    Its mean is taken off (of wrenches), or is the place that displacements count from (of markers).
    """

    start: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    end: Positive


class GravityCard(_Strict):
    """Table ``[gravity]``: what hangs on the sensor; its weight, as the sensor shows it, is taken off before anything else."""

    mass: Positive = Field(description="kg")
    centre: Triple = Field(default=(0.0, 0.0, 0.0), description="centre of mass in the frame of the sensor, m")


class FilterCard(_Strict):
    """Table ``[filter]``: zero-phase Butterworth low-pass on both, the log and the run."""

    cutoff: Positive = Field(description="Hz")
    order: int = Field(default=4, ge=1, le=8, description="order of one pass; it goes forwards and backwards")


class Card(_Strict):
    """What a log's file does not say about it; every field has a default.

    Read from TOML by :func:`read_card`.
    """

    sensor: str | None = Field(
        default=None, description="sensor of the run; default: the only one, or the one that the columns name"
    )
    axes: dict[Literal["fx", "fy", "fz", "tx", "ty", "tz"], str] = Field(
        default_factory=dict, description="column of each component; default: recognised by their names"
    )
    markers: dict[str, str | Annotated[list[str], Field(min_length=3, max_length=3)]] = Field(
        default_factory=dict, description="marker of the run = label of the log (C3D), or its three columns (CSV)"
    )
    marker_values: Literal["position", "displacement", "fitted"] = Field(
        default="position",
        description="compare positions; displacements from the tare window (else the first sample) and from the run's first "
        "row; or positions after a rigid fit of the markers of that window to the run's first row",
    )
    topic: str | None = Field(default=None, description="topic of a ROS bag; default: the only one with WrenchStamped")
    rate: Positive | None = Field(default=None, description="rate of the common grid, Hz; default: the lower of log and run")
    window: tuple[Finite, Finite] | None = Field(default=None, description="part of the run's time that is compared, s")
    accept_large: bool = Field(
        default=False, description="take forces above 1e4 N, torques above 1e3 N m and lengths above 100 m as true"
    )
    time: TimeCard = TimeCard.model_validate({})
    units: UnitsCard = UnitsCard.model_validate({})
    frame: FrameCard = FrameCard.model_validate({})
    tare: TareCard | None = None
    gravity: GravityCard | None = None
    filter: FilterCard | None = None


@dataclass(frozen=True)
class Channel:
    """One column: ``name`` ("fx", "tip_1.x"), ``group`` ("force", "torque" or the marker), ``unit`` ("N", "N m", "m")."""

    name: str
    group: str
    unit: str


@dataclass(frozen=True, eq=False)
class Log:
    """A log in SI and the world frame, on its own clock.

    Attributes
    ----------
    source : str
        File.
    time : ndarray, (n,), s
        From the first sample, ascending.
    channels : tuple of Channel
        What the columns are.
    values : ndarray, (n, k)
        N, N m or m; NaN where the log has no number.
    card : Card
        How it was read.
    sensor : str, optional
        Sensor of the run that it belongs to; None for markers.
    warnings : tuple of str
        What a reader should know.
    """

    source: str
    time: np.ndarray
    channels: tuple[Channel, ...]
    values: np.ndarray
    card: Card
    sensor: str | None
    warnings: tuple[str, ...] = ()

    @property
    def rate(self) -> float:
        """Usual sampling rate, Hz."""
        return 1.0 / float(np.median(np.diff(self.time)))


@dataclass(frozen=True)
class Table:
    """A text table as it is in the file: columns, rows of cells with their line numbers, and notes from the preamble."""

    path: Path
    columns: tuple[str, ...]
    units: tuple[str, ...]
    rows: list[list[str]] = field(repr=False)
    lines: list[int] = field(repr=False)
    notes: dict[str, str]
    decimal_comma: bool
    warnings: tuple[str, ...]

    def numbers(self, name: str) -> np.ndarray:
        """Column as float64, (n,); empty cells are NaN.

        Raises
        ------
        InputError
            A cell that is no number.
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
        return out


def read_card(source: Card | Mapping[str, Any] | str | Path | None) -> Card:
    """Read a card from a TOML file, or check one given as a mapping.

    Parameters
    ----------
    source : Card, mapping, path or None
        None is the card with all defaults.

    Raises
    ------
    InputError
        A file that cannot be read or is no TOML, unknown fields, or values that are not allowed; all at once.
    """
    if source is None:
        return Card()
    if isinstance(source, Card):
        return source
    where = "the card"
    if isinstance(source, (str, Path)):
        where = f"card {source}"
        try:
            with open(source, "rb") as stream:
                source = tomllib.load(stream)
        except OSError as error:
            raise InputError(f"{where} cannot be read ({error.strerror}); correct its path.") from error
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise InputError(f"{where} is no TOML: {error}; correct it.") from error
    try:
        card = Card.model_validate(dict(source))
    except ValidationError as error:
        raise InputError(f"{where}: {_sentences(error)}") from None
    rotation_matrix(f"{where}: frame.rotation", np.eye(3) if card.frame.rotation is None else card.frame.rotation)
    if card.tare and card.tare.end <= card.tare.start:
        raise InputError(f"{where}: tare runs from {card.tare.start} to {card.tare.end} s; the end must lie behind the start.")
    if card.window and card.window[1] <= card.window[0]:
        raise InputError(f"{where}: window is {card.window}; the end must lie behind the start.")
    if card.time.unit and card.time.unit not in _TIME_UNITS:
        raise InputError(f"{where}: time.unit {card.time.unit!r} is unknown{did_you_mean(card.time.unit, _TIME_UNITS)}")
    if card.markers and (card.axes or card.sensor or card.gravity or card.frame.sign != 1 or card.frame.point != (0, 0, 0)):
        raise InputError(
            f"{where} has markers beside sensor, axes, gravity, frame.sign or frame.point of a wrench; keep one kind."
        )
    return card


def _sentences(error: ValidationError) -> str:
    """All findings of pydantic as one line; an unknown field with the nearest known one."""
    out = []
    for finding in error.errors():
        place = ".".join(str(x) for x in finding["loc"])
        if finding["type"] == "extra_forbidden":
            model: Any = Card
            for step in finding["loc"][:-1]:
                inner = str(model.model_fields[step].annotation)
                model = next(
                    m for m in (TimeCard, UnitsCard, FrameCard, TareCard, GravityCard, FilterCard) if m.__name__ in inner
                )
            out.append(f"field {place!r} is unknown{did_you_mean(str(finding['loc'][-1]), model.model_fields)}")
        else:
            out.append(f"{place} is {finding['input']!r}: {finding['msg'].removeprefix('Value error, ').rstrip('.')}.")
    return " ".join(out)


# ---------------------------------------------------------------------------------------------------------------- reading files


def read_log(
    path: str | Path,
    card: Card | Mapping[str, Any] | str | Path | None = None,
    *,
    sensors: Sequence[str] = (),
    markers: Sequence[str] = (),
    gravity: Sequence[float] = (0.0, 0.0, -9.81),
) -> Log:
    """Read a log of an experiment.

    Parameters
    ----------
    path : path
        .csv, .txt, .tsv or .dat: a text table with ``,``, ``;``, tabs or spaces, decimal point or comma, any preamble. .c3d:
        markers. .mcap, .bag or the folder of a rosbag2: geometry_msgs/WrenchStamped. The last two need ``pip install
        "femsim[logs]"``.
    card : Card, mapping or path, optional
        What the file does not say; without one, columns are recognised by their names: Fx, Force X (N), left_fx_N, Time (ms) ...
    sensors, markers : sequence of str
        Names in the run, to recognise columns and labels by and to check the card against.
    gravity : (3,) float, m/s^2
        World frame, for ``[gravity]`` of the card.

    Returns
    -------
    Log

    Raises
    ------
    InputError
        A file that is missing, empty or of unknown kind, columns that are missing or no numbers, time stamps that repeat or run
        backwards, values that look like a wrong unit, a card that does not fit.
    """
    path, card = Path(path), read_card(card)
    if not path.exists():
        raise InputError(f"the log {path} does not exist; correct its path.")
    if card.sensor is not None and sensors and card.sensor not in sensors:
        raise InputError(
            f"the card asks for sensor {card.sensor!r}, which the run does not have{did_you_mean(card.sensor, sensors)}"
        )
    for name in card.markers:
        if markers and name not in markers:
            raise InputError(f"the card maps marker {name!r}, which the run does not have{did_you_mean(name, markers)}")
    suffix = path.suffix.lower()
    if suffix == ".c3d":
        raw = _read_c3d(path, card, markers)
    elif suffix in (".mcap", ".bag", ".db3") or (path.is_dir() and (path / "metadata.yaml").is_file()):
        raw = _read_ros(path, card)
    elif path.is_file() and (suffix in _TABLES or not suffix):
        raw = _read_table_log(path, card, sensors, markers)
    else:
        raise InputError(
            f"the log {path} is of a kind that is not read; allowed are text tables ({', '.join(_TABLES)}), .c3d, .mcap, "
            ".bag and the folder of a rosbag2."
        )
    return _to_world(_in_order(raw), gravity, sensors)


def _in_order(log: Log) -> Log:
    """Check the clock: finite, ascending; or repair it when the card says so."""
    time, values, warnings = log.time, log.values, list(log.warnings)
    bad = int((~np.isfinite(time)).sum())
    if bad:
        time, values = time[np.isfinite(time)], values[np.isfinite(time)]
        warnings.append(f"{bad} rows without a time stamp are left out")
    if len(time) < 10:
        raise InputError(f"the log {log.source} has {len(time)} samples; at least 10 are needed to compare anything.")
    backwards, repeats = np.flatnonzero(np.diff(time) < 0), np.flatnonzero(np.diff(time) == 0)
    if (len(backwards) or len(repeats)) and not log.card.time.repair:
        kind, where = ("run backwards", backwards) if len(backwards) else ("repeat", repeats)
        at = int(where[0])
        raise InputError(
            f"the time stamps of {log.source} {kind} at {len(where)} places, first from sample {at + 1} to {at + 2} "
            f"({time[at]:.15g} s, then {time[at + 1]:.15g} s); correct them, give time.rate where samples are even, or set "
            "time.repair = true in the card to sort them and keep the first of equal ones."
        )
    if len(backwards) or len(repeats):
        before = len(time)
        time, first = np.unique(time, return_index=True)  # sorted, first of equals
        values = values[first]
        warnings.append(
            f"time stamps were repaired: {len(backwards)} ran backwards, {before - len(time)} repeated ones were left out"
        )
    if len(time) < 10:
        raise InputError(f"the log {log.source} has {len(time)} different time stamps; at least 10 are needed.")
    return Log(log.source, time - time[0], log.channels, values, log.card, log.sensor, tuple(warnings))


def _to_world(log: Log, gravity: Sequence[float], sensors: Sequence[str]) -> Log:
    """Weight off, tare, rotate, sign, point: to the conventions of the run."""
    card, values, warnings = log.card, log.values.copy(), list(log.warnings)
    for channel, column in zip(log.channels, values.T, strict=True):
        kind = channel.group if channel.group in ("force", "torque") else "position"
        finite = column[np.isfinite(column)]
        if not len(finite):
            raise InputError(
                f"the log {log.source} has no number for {channel.name}; leave it out of the card or correct the log."
            )
        largest = float(np.abs(finite).max())
        if largest > _LARGE[kind] and not card.accept_large:
            raise InputError(
                f"the log {log.source} reaches {largest:.3g} {_UNIT_OF[kind]} in {channel.name}: is the unit right? Set "
                f"units.{'length' if kind == 'position' else kind} in the card (a name, or the SI value of one unit), or "
                "accept_large = true where it is."
            )
    turn = np.eye(3) if card.frame.rotation is None else rotation_matrix(
        "frame.rotation", card.frame.rotation, degrees=card.frame.angle == "deg"
    )  # fmt: skip
    groups = list(dict.fromkeys(c.group for c in log.channels))
    block = {g: [i for i, c in enumerate(log.channels) if c.group == g] for g in groups}
    needs_all = card.frame.rotation is not None or card.gravity is not None or any(card.frame.point)
    for group, own in block.items():
        if needs_all and len(own) != 3:
            raise InputError(
                f"the log {log.source} has only {', '.join(log.channels[i].name for i in own)} of the {group}, but "
                "frame.rotation, frame.point and gravity of the card need three axes; name the columns of all three under axes."
            )
    if any(card.frame.point) and "torque" in block and "force" not in block:
        raise InputError(f"the log {log.source} has no force, without which torques cannot move to another frame.point.")
    if card.gravity is not None:
        force, torque = weight_wrench(card.gravity.mass, np.array(card.gravity.centre), turn.T @ np.asarray(gravity))
        for group, weight in (("force", force), ("torque", torque)):
            if group in block:
                values[:, block[group]] -= weight
    if log.sensor is not None and card.tare is not None:
        values -= tare_mean(log.source, log.time, values, card.tare)
    for own in block.values():
        if card.frame.rotation is not None:
            values[:, own] = values[:, own] @ turn.T
    if log.sensor is None:
        for own in block.values():
            values[:, own] += card.frame.translation
    else:
        values *= card.frame.sign
        if any(card.frame.point) and "torque" in block:
            values[:, block["torque"]] += np.cross(card.frame.point, values[:, block["force"]])
    return Log(log.source, log.time, log.channels, values, card, log.sensor, tuple(warnings))


def tare_mean(source: str, time: np.ndarray, values: np.ndarray, tare: TareCard | None) -> np.ndarray:
    """Mean of the rows in the tare window, (k,); of the first complete row without one.

    Raises
    ------
    InputError
        No complete row there.
    """
    good = np.isfinite(values).all(axis=1)
    if tare is not None:
        good &= (time >= tare.start) & (time <= tare.end)
    if not good.any():
        window = "" if tare is None else f" between {tare.start:g} and {tare.end:g} s, the tare window"
        raise InputError(f"the log {source} has no complete sample{window}; it lasts {time[-1]:g} s from its first sample.")
    return np.asarray(values[good].mean(axis=0) if tare is not None else values[np.argmax(good)])


# ---------------------------------------------------------------------------------------------------------------- text tables


def read_table(path: Path) -> Table:
    """Read a text table with whatever stands above it.

    Raises
    ------
    InputError
        An empty file, or one without two columns of numbers.
    """
    raw = path.read_bytes()
    if b"\0" in raw[:4096]:
        raise InputError(f"the log {path} is no text; export it as CSV, or give it the suffix of its kind (.c3d, .mcap, .bag).")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = raw.decode("latin-1")
    lines = [(k, line.strip(" ")) for k, line in enumerate(text.splitlines(), start=1) if line.strip()]
    if not lines:
        raise InputError(f"the log {path} is empty; check the logger, or give another file.")
    delimiter, comma, first = _layout(path, lines)
    width = len(_split(lines[first][1], delimiter))
    trailing = delimiter is not None and all(line.endswith(delimiter) for _, line in lines[first:-1])
    above = [(k, line.rstrip(delimiter) if trailing else line) for k, line in lines[:first]]
    header, units, notes = _header(above, delimiter, width - trailing)
    rows, numbers, warnings = [], [], []
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
    return Table(path, header, units, rows, numbers, notes, comma, tuple(warnings))


def _layout(path: Path, lines: list[tuple[int, str]]) -> tuple[str | None, bool, int]:
    """Delimiter, whether numbers have a decimal comma, and the place of the first line of numbers."""
    head = lines[:200]
    best: tuple[int, str | None, bool, int] = (0, None, False, 0)
    for delimiter, comma in ((";", False), (";", True), ("\t", False), ("\t", True), (",", False), (None, False)):
        data = [k for k, (_, line) in enumerate(head) if _is_data(_split(line, delimiter), comma)]
        if len(data) > best[0]:
            best = (len(data), delimiter, comma, data[0])
    if not best[0]:
        raise InputError(f"the log {path} has no line with two or more numbers; it is empty, or no table.")
    return best[1:]


def _split(line: str, delimiter: str | None) -> list[str]:
    return [cell.strip().strip('"').strip() for cell in line.split(delimiter)]


def _is_data(cells: list[str], comma: bool) -> bool:
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
) -> tuple[tuple[str, ...], tuple[str, ...], dict[str, str]]:
    """Names and units of the columns, and notes ("Force Units", "N") of the lines above them."""
    names: list[str] = []
    units, used = [""] * width, len(above)
    candidates = [_split(line.lstrip("#% "), delimiter) for _, line in above]
    while used and len(candidates[used - 1]) == width and not names:
        cells = candidates[used - 1]
        used -= 1
        if all(_is_unit(cell) for cell in cells) and used and len(candidates[used - 1]) == width:
            units = cells
        else:
            names = cells
    for k, name in enumerate(names):
        names[k], unit = _name_and_unit(name)
        units[k] = unit or units[k]
    if not names or len(set(names)) != width:
        full = names or [""] * width
        names = [name if name and full.count(name) == 1 else str(k + 1) for k, name in enumerate(full)]
    notes = {}
    for cells in candidates[:used]:
        key, _, value = " ".join(cells).partition(":") if len(cells) == 1 else (cells[0].rstrip(":"), "", cells[1])
        notes[key.strip().lower()] = value.strip()
    return tuple(names), tuple(units), notes


def _name_and_unit(name: str) -> tuple[str, str]:
    """Split "Fx (N)", "Fx [N]" and "left_fx_N"; what stands in brackets but is no unit stays."""
    match = re.fullmatch(r"(.+?)\s*[\[(]([^\])]*)[\])]", name) or re.fullmatch(r"(.+?)_([A-Za-zµ]+)", name)
    if match and _is_unit(match[2]):
        return match[1].strip(), match[2]
    return name, ""


def _plain_unit(unit: str) -> str:
    return re.sub(r"[\s.*·⋅\-_]", "", unit)


def _is_unit(text: str) -> bool:
    unit = _plain_unit(text)
    return bool(unit) and any(unit in known for known in (_TIME_UNITS, _FORCE_UNITS, _TORQUE_UNITS, _LENGTH_UNITS))


def _read_table_log(path: Path, card: Card, sensors: Sequence[str], markers: Sequence[str]) -> Log:
    table = read_table(path)
    columns, sensor = _map_columns(table, card, sensors, markers)
    time = _table_time(table, card)
    values, channels = [], []
    for name, group, column in columns:
        kind = group if sensor is not None else "length"
        given = getattr(card.units, kind)
        stated = table.units[table.columns.index(column)] or table.notes.get(f"{kind} units", "")
        values.append(
            table.numbers(column) * _factor(f"the log {path}, column {column!r}", kind, given if given is not None else stated)
        )
        channels.append(Channel(name, group, _UNIT_OF["position" if sensor is None else group]))
    return Log(str(path), time, tuple(channels), np.column_stack(values), card, sensor, table.warnings)


def _factor(where: str, kind: str, unit: str | float) -> float:
    """SI value of a unit; "" is the SI unit itself."""
    if not isinstance(unit, str):
        return unit
    known = {"force": _FORCE_UNITS, "torque": _TORQUE_UNITS, "length": _LENGTH_UNITS}[kind]
    if unit and _plain_unit(unit) not in known:
        raise InputError(f"{where} has the unit {unit!r}, which is none of a {kind}; set units.{kind} in the card.")
    return known[_plain_unit(unit)] if unit else 1.0


def _map_columns(
    table: Table, card: Card, sensors: Sequence[str], markers: Sequence[str]
) -> tuple[list[tuple[str, str, str]], str | None]:
    """Columns that are used, as (channel, group, column), and the sensor; None for markers."""

    def known(column: str, what: str) -> str:
        wanted = _name_and_unit(column)[0] if column not in table.columns else column
        if wanted not in table.columns:
            raise InputError(f"the log {table.path} has no column {column!r} for {what}{did_you_mean(column, table.columns)}")
        return wanted

    if card.markers:
        out = []
        for marker, place in card.markers.items():
            three = [f"{place} {axis}" for axis in "XYZ"] if isinstance(place, str) else place
            out += [(f"{marker}.{axis}", marker, known(c, f"marker {marker}")) for axis, c in zip("xyz", three, strict=True)]
        return out, None
    if card.axes:
        ordered = sorted(card.axes.items(), key=lambda item: WRENCH_AXES.index(item[0]))
        return [(axis, "force" if axis[0] == "f" else "torque", known(c, axis)) for axis, c in ordered], (
            card.sensor or _only_sensor(table.path, sensors)
        )
    plain = {column: re.sub(r"[^a-z0-9]", "", column.lower()) for column in table.columns}
    found_markers = [
        (f"{marker}.{axis}", marker, column)
        for marker in markers
        for axis in "xyz"
        for column, short in plain.items()
        if card.sensor is None and short == re.sub(r"[^a-z0-9]", "", marker.lower()) + axis
    ]
    sensor: str | None
    named = [s for s in sensors if any(short.startswith(_squeeze(s) + "f") for short in plain.values())]
    if card.sensor is None and len(named) == 1:
        sensor = named[0]
    else:
        sensor = card.sensor or (None if found_markers else _only_sensor(table.path, sensors))
    found: list[tuple[str, str, str]] = []
    own = [_squeeze(name) for name in (sensor or "", (sensor or "").removesuffix("_measured"))]
    for axis in WRENCH_AXES if sensor is not None else ():
        kind = "force" if axis[0] == "f" else "torque"
        endings = {axis, f"{kind}{axis[1]}"} | ({f"m{axis[1]}", f"moment{axis[1]}"} if kind == "torque" else set())
        allowed = {prefix + ending for ending in endings for prefix in ("", "wrench", "fieldwrench", *own)}
        hits = [column for column, short in plain.items() if short in allowed]
        if len(hits) > 1:
            raise InputError(
                f"the log {table.path} has columns {hits}, each of which may be {axis}; name one under axes in the card."
            )
        found += [(axis, kind, column) for column in hits]
    if found or found_markers:
        return found or found_markers, sensor if found else None
    raise InputError(
        f"in the log {table.path} no column is recognised as a force or torque (Fx, Force X (N) ...)"
        f"{' or as a marker of the run' if markers else ''}; name them under axes in a card. "
        f"Columns are {', '.join(table.columns)}."
    )


def _squeeze(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _only_sensor(path: Path, sensors: Sequence[str]) -> str:
    if len(sensors) == 1 or not sensors:
        return sensors[0] if sensors else "log"
    raise InputError(
        f"the run has the sensors {', '.join(sensors)}, and nothing says which of them the log {path} belongs to; name one as "
        "'sensor' in the card, or by --sensor."
    )


def _table_time(table: Table, card: Card) -> np.ndarray:
    """Time stamps of a table, s."""
    rate = card.time.rate
    column = card.time.column
    if column is None and rate is None:
        names = {"t", "time", "times", "timestamp", "stamp", "elapsedtime", "timestamps", "seconds", "sec"}
        hits = [c for c in table.columns if _squeeze(c) in names]
        usable = [c for c in hits if _is_data([table.rows[0][table.columns.index(c)]] * 2, table.decimal_comma)]
        if usable:
            column = usable[0]
        else:
            noted = next((v for k, v in table.notes.items() if "sample rate" in k or k in ("rate", "sampling rate")), "")
            match = re.match(r"[0-9.eE+]+", noted)
            if not match:
                problem = f"holds {table.rows[0][table.columns.index(hits[0])]!r}, which is no number" if hits else "is missing"
                raise InputError(
                    f"the time column of the log {table.path} {problem}; give time.column or time.rate in a card. Columns are "
                    f"{', '.join(table.columns)}."
                )
            rate = float(match[0])
    if column is None:
        return np.arange(len(table.rows)) / float(rate or 1.0)
    name = column if column in table.columns else _name_and_unit(column)[0]
    if name not in table.columns:
        raise InputError(f"the log {table.path} has no time column {column!r}{did_you_mean(column, table.columns)}")
    unit = card.time.unit or table.units[table.columns.index(name)] or "s"
    if unit not in _TIME_UNITS:
        raise InputError(f"the time column of {table.path} has the unit {unit!r}; set time.unit in the card.")
    return table.numbers(name) * _TIME_UNITS[unit]


# ---------------------------------------------------------------------------------------------------------- C3D and ROS bags


def _read_c3d(path: Path, card: Card, markers: Sequence[str]) -> Log:
    ezc3d = _extra("ezc3d", path)
    try:
        content = ezc3d.c3d(str(path))
    except Exception as error:  # the library raises whatever its C++ part throws
        raise InputError(f"the log {path} cannot be read as C3D ({error}); it is cut off, or of another kind.") from error
    parameters = content["parameters"]["POINT"]
    points, labels = content["data"]["points"], [str(x).strip() for x in parameters["LABELS"]["value"]]
    chosen: dict[str, str] = {}
    for marker, label in card.markers.items():
        if not isinstance(label, str):
            raise InputError(
                f"the card maps marker {marker!r} to {label}; in a C3D file name one label, for instance {labels[:1]}."
            )
        chosen[marker] = label
    if not card.markers:
        squeezed = {_squeeze(label): label for label in labels}
        chosen = {marker: squeezed[_squeeze(marker)] for marker in markers if _squeeze(marker) in squeezed}
        if not chosen:
            raise InputError(
                f"no marker of the run ({', '.join(markers) or 'it has none'}) is a label of {path} ({', '.join(labels)}); map "
                "them under [markers] in a card."
            )
    unit = (parameters.get("UNITS", {}).get("value") or [""])[0]
    factor = _factor(f"the log {path}", "length", card.units.length if card.units.length is not None else str(unit))
    values, channels = [], []
    for marker, label in chosen.items():
        if label not in labels:
            raise InputError(f"the log {path} has no marker {label!r} for {marker}{did_you_mean(label, labels)}")
        values.append(factor * points[:3, labels.index(label), :].T)  # NaN where the point was not seen
        channels += [Channel(f"{marker}.{axis}", marker, "m") for axis in "xyz"]
    rate = card.time.rate or float(parameters["RATE"]["value"][0])
    return Log(str(path), np.arange(points.shape[2]) / rate, tuple(channels), np.hstack(values), card, None)


def _read_ros(path: Path, card: Card) -> Log:
    """Read geometry_msgs/WrenchStamped from a single .mcap, a rosbag2 folder or a ROS 1 .bag."""
    path = path.parent if path.suffix.lower() == ".db3" else path
    try:
        # a bag is in the order in which messages arrived; their own stamps count
        rows = sorted(_mcap_wrenches(path, card) if path.suffix.lower() == ".mcap" else _rosbag_wrenches(path, card))
    except InputError:
        raise
    except Exception as error:  # both libraries raise errors of many kinds on a cut or foreign file
        raise InputError(f"the log {path} cannot be read as a ROS bag ({type(error).__name__}: {error}).") from error
    if not rows:
        raise InputError(f"the log {path} has no message on its topic; check the recorder, or set topic in the card.")
    first = rows[0][0]
    time = np.array([(stamp - first) * 1e-9 for stamp, *_ in rows])
    units = [_factor(str(path), kind, getattr(card.units, kind) or "") for kind in ("force", "torque")]
    values = np.array([row[1:] for row in rows]) * np.repeat(units, 3)
    channels = tuple(Channel(a, "force" if a[0] == "f" else "torque", "N" if a[0] == "f" else "N m") for a in WRENCH_AXES)
    return Log(str(path), time, channels, values, card, card.sensor or "log")


def _choose_topic(path: Path, card: Card, topics: Iterable[str]) -> str:
    known = sorted(set(topics))
    if card.topic is not None and card.topic not in known:
        raise InputError(f"the log {path} has no WrenchStamped on topic {card.topic!r}{did_you_mean(card.topic, known)}")
    if card.topic is None and len(known) != 1:
        raise InputError(
            f"the log {path} has {len(known)} topics with geometry_msgs/WrenchStamped ({', '.join(known) or 'none'}); "
            "name one as 'topic' in the card."
        )
    return card.topic or known[0]


def _wrench_row(message: Any) -> tuple[float, ...]:
    stamp, force, torque = message.header.stamp, message.wrench.force, message.wrench.torque
    nanoseconds = stamp.sec * 1_000_000_000 + stamp.nanosec
    return (nanoseconds, force.x, force.y, force.z, torque.x, torque.y, torque.z)


def _mcap_wrenches(path: Path, card: Card) -> Iterable[tuple[float, ...]]:
    reader, decoder = _extra("mcap.reader", path), _extra("mcap_ros2.decoder", path)
    with open(path, "rb") as stream:
        mcap = reader.make_reader(stream, decoder_factories=[decoder.DecoderFactory()])
        summary = mcap.get_summary()
        if summary is None:
            raise InputError(f"the log {path} has no summary: the recorder was cut off; repair it by 'mcap recover'.")
        wrench = ("geometry_msgs/msg/WrenchStamped", "geometry_msgs/WrenchStamped")
        ids = [key for key, schema in summary.schemas.items() if schema.name in wrench]
        topic = _choose_topic(path, card, (c.topic for c in summary.channels.values() if c.schema_id in ids))
        yield from (_wrench_row(found.decoded_message) for found in mcap.iter_decoded_messages(topics=[topic]))


def _rosbag_wrenches(path: Path, card: Card) -> Iterable[tuple[float, ...]]:
    highlevel, stores = _extra("rosbags.highlevel", path), _extra("rosbags.typesys", path)
    with highlevel.AnyReader([path], default_typestore=stores.get_typestore(stores.Stores.LATEST)) as bag:
        found = [c for c in bag.connections if c.msgtype == "geometry_msgs/msg/WrenchStamped"]
        topic = _choose_topic(path, card, (c.topic for c in found))
        for connection, _, raw in bag.messages([c for c in found if c.topic == topic]):
            yield _wrench_row(bag.deserialize(raw, connection.msgtype))


def _extra(module: str, path: Path) -> Any:
    import importlib

    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise InputError(f'the log {path} needs {module.split(".")[0]}: pip install "femsim[logs]".') from error

"""What the files of logs hold: text tables, C3D markers, ROS bags; one reader a kind of file.

The readers give SI units, but the axes, the point and the clock are those of the log.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import foreign
from femsim.base.errors import InputError, did_you_mean
from femsim.base.packages import require
from femsim.base.table import read_table
from femsim.base.units import COLUMN_UNITS, stated_unit, unit_factor
from femsim.studies.comparison.card import Card
from femsim.studies.comparison.columns import (
    WRENCH_AXES,
    check_different,
    choose_columns,
    group_of,
    notes_on_brackets,
    notes_on_rate,
    notes_on_time,
    odd_rate,
    single_column,
    squeezed,
    time_stamps,
)
from foreign import logs

_SUFFIX = {unit: suffix for suffix, (_, unit) in COLUMN_UNITS.items()}
_SI = dict(COLUMN_UNITS.values())
#: What the columns of a run may be that are compared with a field of JointState, of a hinge and of a slider.
_OF_FIELD = {"position": ("angle", "length"), "velocity": ("rate", "speed"), "effort": ("torque", "force")}
_KIND = {unit: kind for kind, unit in COLUMN_UNITS.values()} | {"m": "position"}


@dataclass(frozen=True)
class Channel:
    """One column: its name, its group, and its unit as it is written.

    ``name`` is "fx", "tip_1.x" or a column of the run without its unit, "elbow_torque"; ``group`` is "force", "torque", the
    marker or that same column; ``unit`` is "N", "N m", "m", "rad", "rad/s" ...
    """

    name: str
    group: str
    unit: str

    @property
    def kind(self) -> str:
        """What is measured: "force", "torque", "position", or another quantity of :data:`femsim.base.units.UNITS`."""
        return _KIND[self.unit]

    @property
    def column(self) -> str:
        """Name with its unit, as in the header of a table."""
        return "_".join(part for part in (self.name, _SUFFIX[self.unit]) if part)

    @property
    def alone(self) -> bool:
        """Whether it is a single column of the run, no axis of a wrench or marker."""
        return self.name == self.group

    @property
    def drawn(self) -> tuple[str, str, str]:
        """Name, row and unit in a figure: single columns of one unit have their rows together."""
        return self.name, self.unit if self.alone else self.group, self.unit


@dataclass(frozen=True, eq=False)
class Recording:
    """What a file holds.

    Attributes
    ----------
    time : ndarray, (n,), s
        Time stamps as they are in the file.
    channels : tuple of Channel
        What the columns are.
    values : ndarray, (n, k)
        SI units, in the frame of the log; NaN where it has no number.
    sensor : str, optional
        Sensor of the run that it belongs to; None for markers and single columns.
    warnings : tuple of str
        What a reader should know.
    """

    time: np.ndarray
    channels: tuple[Channel, ...]
    values: np.ndarray
    sensor: str | None
    warnings: tuple[str, ...] = ()


def read_text(path: Path, card: Card, sensors: Sequence[str], markers: Sequence[str]) -> Recording:
    """Read a text table."""
    table = read_table(path)
    columns, sensor, notes = choose_columns(table, card, sensors, markers)
    time = time_stamps(table, card)
    values, channels, doubts = [], [], notes_on_time(table, card)
    for name, group, kind, column, sign in columns:
        stated = table.units[table.columns.index(column)] or stated_unit(column, kind) or table.notes.get(f"{kind} units", "")
        factor = unit_factor(f"the log {path}, column {column!r}", kind, getattr(card.units, kind), stated)
        with np.errstate(over="ignore"):  # what is infinite is refused below, with all other values
            values.append(table.numbers(column) * (sign * factor))
        channels.append(Channel(name, group, _SI[kind]))
        doubts += notes_on_brackets(table, column, _SI[kind], f"units.{kind}", getattr(card.units, kind) or stated or None)
    return Recording(
        time, tuple(channels), np.column_stack(values), sensor, (*table.warnings, *notes, *doubts, *notes_on_rate(table, card))
    )


def read_c3d(path: Path, card: Card, markers: Sequence[str]) -> Recording:
    """Read markers from a C3D file."""
    require("ezc3d", f"the log {path}", "logs")
    try:
        full = path.resolve()
        found = foreign.call(logs.read_c3d, full.stat().st_size, libraries=["ezc3d"], path=str(full))
    except (foreign.Refused, OSError) as error:
        raise InputError(f"the log {path} cannot be read as C3D ({error}); it is cut off, or of another kind.") from error
    points, labels = found["points"], found["labels"]
    chosen = _chosen_labels(path, card, markers, labels)
    factor = unit_factor(f"the log {path}", "length", card.units.length, found["unit"])
    values, channels = [], []
    for marker, label in chosen.items():
        if label not in labels:
            raise InputError(f"the log {path} has no marker {label!r} for {marker}{did_you_mean(label, labels)}")
        if labels.index(label) >= points.shape[1]:
            raise InputError(
                f"the log {path} has {points.shape[1]} points, but {label!r} is its label {labels.index(label) + 1}."
            )
        values.append(factor * points[:, labels.index(label), :].T)  # NaN where the point was not seen
        channels += [Channel(f"{marker}.{axis}", marker, "m") for axis in "xyz"]
    rate = card.time.rate or found["rate"]
    if not (math.isfinite(rate) and rate > 0):
        raise InputError(f"the log {path} has a rate of {rate} Hz; set time.rate in the card.")
    stamps = np.arange(points.shape[2]) / found["rate"] if found["rate"] > 0.0 else np.zeros(0)
    odd = odd_rate(rate, stamps, "those of its header")
    return Recording(np.arange(points.shape[2]) / rate, tuple(channels), np.hstack(values), None, tuple(odd))


def _chosen_labels(path: Path, card: Card, markers: Sequence[str], labels: Sequence[str]) -> dict[str, str]:
    """Label of each marker of the run: by the card, else those that are equal but for blanks, dashes and capitals."""
    chosen: dict[str, str] = {}
    for marker, label in card.markers.items():
        if not isinstance(label, str):
            raise InputError(
                f"the card maps marker {marker!r} to {label}; in a C3D file name one label, for instance {labels[:1]}."
            )
        chosen[marker] = label
    if not card.markers:
        label_of = {squeezed(label): label for label in labels}
        chosen = {marker: label_of[squeezed(marker)] for marker in markers if squeezed(marker) in label_of}
        if not chosen:
            raise InputError(
                f"no marker of the run ({', '.join(markers) or 'it has none'}) is a label of {path} ({', '.join(labels)}); map "
                "them under [markers] in a card."
            )
    return chosen


def read_ros(path: Path, card: Card) -> Recording:
    """Read a single .mcap, a rosbag2 folder or a ROS 1 .bag: WrenchStamped, or JointState where the card maps columns."""
    return _read_joints(path, card) if card.columns else _read_wrenches(path, card)


def _read_wrenches(path: Path, card: Card) -> Recording:
    found = _read_bag(path, card, "geometry_msgs/WrenchStamped", logs.read_bag)
    stamps, rows = found["nanoseconds"], found["wrenches"]
    if len(found["frames"]) > 1:
        names = ", ".join(repr(name) for name in found["frames"])
        raise InputError(
            f"the log {path} has wrenches in the frames {names} on one topic; record those of one sensor, in one frame."
        )
    time, order, odd = _clock(stamps, rows, card)
    units = [unit_factor(str(path), kind, getattr(card.units, kind), "") for kind in ("force", "torque")]
    values = rows[order] * np.repeat(units, 3)
    channels = tuple(Channel(axis, group_of(axis), _SI[group_of(axis)]) for axis in WRENCH_AXES)
    return Recording(time, channels, values, card.sensor or "log", odd)


def _read_joints(path: Path, card: Card) -> Recording:
    """Single columns of a run beside JOINT.position, JOINT.velocity and JOINT.effort of JointState."""
    wanted = [_joint_column(path, own, there) for own, there in card.columns.items()]
    check_different([name for name, *_ in wanted])
    joints = list(dict.fromkeys(joint for *_, joint, _, _ in wanted))
    found = _read_bag(path, card, "sensor_msgs/JointState", logs.read_joints, joints=joints)
    missing = next((joint for joint in joints if joint not in found["joints"]), None)
    if missing is not None:
        raise InputError(f"the log {path} has no joint {missing!r}{did_you_mean(missing, found['joints'])}")
    states = found["states"]
    time, order, odd = _clock(found["nanoseconds"], states.reshape(len(states), -1), card)
    values, channels = [], []
    for name, kind, joint, field, sign in wanted:
        column = states[order, joints.index(joint), logs.JOINT_FIELDS.index(field)]
        if np.isnan(column).all():
            raise InputError(f"the log {path} has no {field} of joint {joint!r}; its publisher leaves it out.")
        values.append(column * (sign * unit_factor(f"the log {path}, {joint}.{field}", kind, getattr(card.units, kind), "")))
        channels.append(Channel(name, name, _SI[kind]))
    table = np.column_stack(values)
    if not np.isfinite(table).all(axis=1).any():
        raise InputError(
            f"the log {path} has no message with all of {', '.join(joints)}; compare those of one publisher at a time, each by "
            "its own card."
        )
    return Recording(time, tuple(channels), table, None, odd)


def _joint_column(path: Path, own: str, there: str) -> tuple[str, str, str, str, float]:
    """Name and quantity of a column of the run, joint, field and sign of what it is compared with."""
    name, kind = single_column(own)
    joint, _, field = there.removeprefix("-").rpartition(".")
    if not joint or field not in logs.JOINT_FIELDS:
        raise InputError(
            f"the card maps {own} to {there!r} of the log {path}; of JointState, name JOINT.position, JOINT.velocity or "
            "JOINT.effort."
        )
    if kind not in _OF_FIELD[field]:
        raise InputError(
            f"the card maps {own} to {there!r} of the log {path}, but {field} is none of a {kind}; allowed are columns of "
            f"{' and '.join(_OF_FIELD[field])}."
        )
    return name, kind, joint, field, -1.0 if there.startswith("-") else 1.0


def _read_bag(path: Path, card: Card, message: str, reader: Callable[..., dict[str, Any]], **more: Any) -> dict[str, Any]:
    """Messages of the topic of the card, or of the only one."""
    path = path.parent if path.suffix.lower() == ".db3" else path
    libraries = (
        ["mcap.reader", "mcap_ros2.decoder"] if path.suffix.lower() == ".mcap" else ["rosbags.highlevel", "rosbags.typesys"]
    )
    for library in libraries:
        require(library, f"the log {path}", "logs")
    try:
        full = path.resolve()
        found = foreign.call(reader, logs.size_of(str(full)), libraries=libraries, path=str(full), topic=card.topic, **more)
    except (foreign.Refused, OSError) as error:
        raise InputError(f"the log {path} cannot be read as a ROS bag: {error}.") from error
    known = found["topics"]
    if card.topic is not None and card.topic not in known:
        raise InputError(
            f"the log {path} has no {message.partition('/')[2]} on topic {card.topic!r}{did_you_mean(card.topic, known)}"
        )
    if card.topic is None and len(known) != 1:
        raise InputError(
            f"the log {path} has {len(known)} topics with {message} ({', '.join(known) or 'none'}); "
            "name one as 'topic' in the card."
        )
    if not len(found["nanoseconds"]) and not found.get("joints"):
        raise InputError(f"the log {path} has no message on its topic; check the recorder, or set topic in the card.")
    return found


def _clock(stamps: np.ndarray, rows: np.ndarray, card: Card) -> tuple[np.ndarray, np.ndarray, tuple[str, ...]]:
    """Return times, s, the order of the messages: by their own stamps, since a bag is in that of their arrival; and warnings."""
    if (rate := card.time.rate) is not None:
        odd = odd_rate(rate, 1e-9 * (stamps - stamps[:1]), "those of its messages")
        return np.arange(len(stamps)) / rate, np.arange(len(stamps)), tuple(odd)
    order = np.lexsort((*rows.T[::-1], stamps))
    return (stamps[order] - stamps[order[:1]]) * 1e-9, order, ()

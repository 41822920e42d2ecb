"""What the files of logs hold: text tables, C3D markers, ROS bags; one reader a kind of file.

The readers give SI units, but the axes, the point and the clock are those of the log.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from femsim.base.errors import InputError, did_you_mean
from femsim.studies.comparison.card import Card
from femsim.studies.comparison.columns import WRENCH_AXES, choose_columns, group_of, squeezed, time_stamps
from femsim.studies.comparison.table import read_table
from femsim.studies.comparison.units import unit_factor

SI_UNIT = {"force": "N", "torque": "N m", "position": "m"}
_KIND = {unit: kind for kind, unit in SI_UNIT.items()}


@dataclass(frozen=True)
class Channel:
    """One column: ``name`` ("fx", "tip_1.x"), ``group`` ("force", "torque" or the marker), ``unit`` ("N", "N m", "m")."""

    name: str
    group: str
    unit: str

    @property
    def kind(self) -> str:
        """What is measured: "force", "torque" or "position"."""
        return _KIND[self.unit]


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
        N, N m or m, in the frame of the log; NaN where it has no number.
    sensor : str, optional
        Sensor of the run that it belongs to; None for markers.
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
    columns, sensor = choose_columns(table, card, sensors, markers)
    time = time_stamps(table, card)
    values, channels = [], []
    for name, group, column in columns:
        kind = group if sensor is not None else "length"
        stated = table.units[table.columns.index(column)] or table.notes.get(f"{kind} units", "")
        factor = unit_factor(f"the log {path}, column {column!r}", kind, getattr(card.units, kind), stated)
        values.append(table.numbers(column) * factor)
        channels.append(Channel(name, group, SI_UNIT["position" if sensor is None else group]))
    return Recording(time, tuple(channels), np.column_stack(values), sensor, table.warnings)


def read_c3d(path: Path, card: Card, markers: Sequence[str]) -> Recording:
    """Read markers from a C3D file."""
    ezc3d = _extra("ezc3d", path)
    try:
        content = ezc3d.c3d(str(path))
    except Exception as error:  # the library raises whatever its C++ part throws
        raise InputError(f"the log {path} cannot be read as C3D ({error}); it is cut off, or of another kind.") from error
    parameters = content["parameters"]["POINT"]
    points, labels = content["data"]["points"], [str(x).strip() for x in parameters["LABELS"]["value"]]
    chosen = _chosen_labels(path, card, markers, labels)
    unit = (parameters.get("UNITS", {}).get("value") or [""])[0]
    factor = unit_factor(f"the log {path}", "length", card.units.length, str(unit))
    values, channels = [], []
    for marker, label in chosen.items():
        if label not in labels:
            raise InputError(f"the log {path} has no marker {label!r} for {marker}{did_you_mean(label, labels)}")
        values.append(factor * points[:3, labels.index(label), :].T)  # NaN where the point was not seen
        channels += [Channel(f"{marker}.{axis}", marker, "m") for axis in "xyz"]
    rate = card.time.rate or float(parameters["RATE"]["value"][0])
    return Recording(np.arange(points.shape[2]) / rate, tuple(channels), np.hstack(values), None)


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
    units = [unit_factor(str(path), kind, getattr(card.units, kind), "") for kind in ("force", "torque")]
    values = np.array([row[1:] for row in rows]) * np.repeat(units, 3)
    channels = tuple(Channel(axis, group_of(axis), SI_UNIT[group_of(axis)]) for axis in WRENCH_AXES)
    return Recording(time, channels, values, card.sensor or "log")


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
    """Import a package that only some logs need."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise InputError(f'the log {path} needs {module.split(".")[0]}: pip install "femsim[logs]".') from error

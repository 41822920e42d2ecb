"""Logs of experiments: read a file of any kind by a small card, and bring it to SI units and the world frame of the run.

Conventions are those of a run's ``sensors.csv``: forces in N **on** the sensed part, torques in N m about the sensor's point,
positions in m, world frame. The clock of a log starts at its first sample; ``alignment`` finds where that is in the run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from femsim.base.errors import InputError, did_you_mean, naming_parameters
from femsim.base.wrenches import weight_wrench
from femsim.scene.sensor_kinds import SENSOR_KINDS
from femsim.studies.comparison.card import Card, TareCard, read_card
from femsim.studies.comparison.readers import Channel, Recording, read_c3d, read_ros, read_text
from femsim.studies.comparison.resampling import usual_interval

_TABLES = (".csv", ".txt", ".tsv", ".dat", ".log")
#: Values above these are taken for a wrong unit, unless the card says accept_large: N, N m, m, rad, rad/s, m/s, Pa, m^2, m^3,
#: J, 1.
_LARGE = {
    "force": 1e4, "torque": 1e3, "position": 1e2, "angle": 1e3, "rate": 1e4, "speed": 1e3, "pressure": 1e8, "area": 1e2,
    "volume": 1e2, "energy": 1e6, "number": 1e9,
}  # fmt: skip
#: And these are refused also then: beyond them, sums and squares overflow. Time stamps, s.
_LARGEST, _LATEST = 1e15, 1e12
#: Even samples that a log with gaps may be spread over.
_MOST_SAMPLES = 20_000_000
#: Part of the stamps that repeat, from which on their clock may be one that is rounded, not one with a row twice.
_ROUNDED = 0.05
#: A marker that is lost jumps by so many of its usual steps.
_JUMP = 10.0
#: Readings that are exactly alike for so many samples, in at most this part of a record, are frozen where others, but for this
#: part, all differ.
_LEAST_FROZEN, _MOST_FROZEN, _REPEATS = 5, 0.25, 0.01
#: Samples that a comparison needs.
LEAST_SAMPLES = 10


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
        SI units; NaN where the log has no number.
    card : Card
        How it was read.
    sensor : str, optional
        Sensor of the run that it belongs to; None for markers and single columns.
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
        return 1.0 / usual_interval(self.time)[0]


@naming_parameters
def read_log(
    path: str | Path,
    card: Card | Mapping[str, Any] | str | Path | None = None,
    *,
    sensors: Sequence[str] | Mapping[str, str] = (),
    markers: Sequence[str] = (),
    gravity: Sequence[float] = (0.0, 0.0, -9.81),
) -> Log:
    """Read a log of an experiment.

    Parameters
    ----------
    path : path
        .csv, .txt, .tsv or .dat: a text table with ``,``, ``;``, tabs or spaces, decimal point or comma, any preamble. .c3d:
        markers. .mcap, .bag or the folder of a rosbag2: geometry_msgs/WrenchStamped, or sensor_msgs/JointState where the card
        maps columns. The last two need ``pip install "femsim[logs]"``.
    card : Card, mapping or path, optional
        What the file does not say; without one, columns are recognised by their names: Fx, Force X (N), left_fx_N, Time (ms) ...
    sensors : sequence of str, or mapping of str to str
        Names of sensors in the run, to recognise columns by and to check the card against; or their kinds by name, by which
        ``[gravity]`` of the card knows how the log shows a weight. Without a kind it takes one that reads downwards.
    markers : sequence of str
        Names of markers in the run, to recognise columns and labels by.
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
    kinds, sensors = dict(sensors) if isinstance(sensors, Mapping) else {}, tuple(sensors)
    if not path.exists():
        raise InputError(f"the log {path} does not exist; correct its path.")
    if card.sensor is not None and sensors and card.sensor not in sensors:
        raise InputError(
            f"sensor {card.sensor!r}, which is asked for, is not in the run{no_sensor(card.sensor, sensors, markers)}"
        )
    for name in card.markers:
        if markers and name not in markers:
            raise InputError(f"the card maps marker {name!r}, which the run does not have{did_you_mean(name, markers)}")
    suffix, text = path.suffix.lower(), path.is_file() and (path.suffix.lower() in _TABLES or not path.suffix)
    if card.columns and suffix == ".c3d":
        raise InputError(
            f"the card maps columns, which text tables ({', '.join(_TABLES)}) and ROS bags of joints have, but the log is {path}"
            "; write its signals to a table, a column each, or leave [columns] out."
        )
    if suffix == ".c3d":
        recording = read_c3d(path, card, markers)
    elif suffix in (".mcap", ".bag", ".db3") or (path.is_dir() and (path / "metadata.yaml").is_file()):
        recording = read_ros(path, card)
    elif text:
        recording = read_text(path, card, sensors, markers)
    elif suffix == ".toml":
        raise InputError(
            f"{path} is no log but a card, which says how logs are read; give it as --card {path} (in Python: card=)."
        )
    else:
        raise InputError(
            f"the log {path} is of a kind that is not read; allowed are text tables ({', '.join(_TABLES)}), .c3d, .mcap, "
            ".bag and the folder of a rosbag2."
        )
    recording = _in_order(str(path), recording, repair=card.time.repair)
    _check_size(str(path), recording, card)
    recording = replace(recording, warnings=(*recording.warnings, *_unseen(recording), *_frozen(recording)))
    pull, warnings = np.zeros(3), recording.warnings
    if card.gravity is not None:
        kind = kinds.get(recording.sensor or "", next(iter(kinds.values())) if len(kinds) == 1 else "")
        pull = np.asarray(gravity, dtype=np.float64)
        if kind not in SENSOR_KINDS:
            warnings += (
                "the kind of the run's sensor is not known, so gravity of the card is taken off as a weight that reads downwards",
            )
        elif SENSOR_KINDS[kind].holds == (card.frame.sign == 1):
            pull = -pull
    values = _to_world(str(path), recording, card, pull)
    return Log(str(path), recording.time, recording.channels, values, card, recording.sensor, warnings)


def _in_order(source: str, recording: Recording, *, repair: bool) -> Recording:
    """Check the clock: finite and ascending, from 0; or repair it."""
    time, values, warnings = recording.time, recording.values, list(recording.warnings)
    bad = int((~np.isfinite(time)).sum())
    if bad:
        time, values = time[np.isfinite(time)], values[np.isfinite(time)]
        warnings.append(f"{bad} rows without a time stamp are left out")
    if len(time) < LEAST_SAMPLES:
        raise InputError(f"the log {source} has {len(time)} samples; at least {LEAST_SAMPLES} are needed to compare anything.")
    if float(np.abs(time).max()) > _LATEST:
        raise InputError(f"the log {source} has a time stamp of {np.abs(time).max():.3g} s; set time.unit in the card.")
    backwards, repeats = np.flatnonzero(np.diff(time) < 0), np.flatnonzero(np.diff(time) == 0)
    if (len(backwards) or len(repeats)) and not repair:
        kind, where = ("run backwards", backwards) if len(backwards) else ("repeat", repeats)
        at = int(where[0])
        raise InputError(
            f"the time stamps of {source} {kind} at {len(where)} places, first from sample {at + 1} to {at + 2} "
            f"({time[at]:.15g} s, then {time[at + 1]:.15g} s); {_remedy(time)}."
        )
    if len(backwards) or len(repeats):
        before = len(time)
        time, first = np.unique(time, return_index=True)  # sorted, first of equals
        values = values[first]
        warnings.append(
            f"time stamps were repaired: {len(backwards)} ran backwards, {before - len(time)} repeated ones were left out"
        )
    if len(time) < LEAST_SAMPLES:
        raise InputError(f"the log {source} has {len(time)} different time stamps; at least {LEAST_SAMPLES} are needed.")
    time = time - time[0]
    usual, _ = usual_interval(time)
    if time[-1] > usual * max(_MOST_SAMPLES, 10 * len(time)):
        raise InputError(
            f"the log {source} has {len(time)} samples, usually {usual:.3g} s apart, but lasts {time[-1]:.3g} s; correct its "
            "time stamps, or set time.rate in the card."
        )
    return replace(recording, time=time, values=values, warnings=tuple(warnings))


def _remedy(time: np.ndarray) -> str:
    """Say what to do with stamps that repeat or run backwards; of even samples by a rounded clock, at which rate they are."""
    steps, rows = np.diff(time), np.arange(len(time))
    tick = float(steps[steps > 0].min(initial=np.inf))
    if np.isfinite(tick) and (steps >= 0).all() and np.mean(steps == 0) >= _ROUNDED:
        slope, start = np.polyfit(rows, time - time[0], 1)
        if slope > 0 and np.abs(time - time[0] - start - slope * rows).max() <= tick:
            return (
                f"they are those of even samples whose clock is rounded to {tick:.3g} s: set time.rate = {1.0 / slope:.5g} in "
                "the card (or what the logger was set to), without time.column"
            )
    return (
        "correct them, give time.rate where samples are even, or set time.repair = true in the card to sort them and keep the "
        "first of equal ones"
    )


def _check_size(source: str, recording: Recording, card: Card) -> None:
    """Refuse channels without a number, and values so large that their unit is likely wrong."""
    for channel, column in zip(recording.channels, recording.values.T, strict=True):
        finite = column[np.isfinite(column)]
        if not len(finite):
            raise InputError(f"the log {source} has no number for {channel.name}; leave it out of the card or correct the log.")
        infinite = np.flatnonzero(np.isinf(column))
        if len(infinite):
            raise InputError(
                f"the log {source} is infinite in {channel.name}, first at sample {infinite[0] + 1} of {len(column)}; repair it."
            )
        largest = float(np.abs(finite).max())
        if largest > _LARGEST:
            raise InputError(f"the log {source} reaches {largest:.3g} {channel.unit} in {channel.name}; repair it.")
        if largest > _LARGE[channel.kind] and not card.accept_large:
            raise InputError(
                f"the log {source} reaches {largest:.3g} {channel.unit} in {channel.name}: is the unit right? Set "
                f"units.{'length' if channel.kind == 'position' else channel.kind} in the card (a name, or the SI value of one "
                "unit), or accept_large = true where it is."
            )


def _unseen(recording: Recording) -> list[str]:
    """Say which markers jump to 0, 0, 0 exactly, as some systems write where they do not see them."""
    out = []
    for marker in dict.fromkeys(c.group for c in recording.channels if c.kind == "position" and not c.alone):
        values = recording.values[:, [k for k, c in enumerate(recording.channels) if c.group == marker]]
        zero = (values == 0.0).all(axis=1)
        steps = np.linalg.norm(np.diff(values, axis=0), axis=1)
        at_edge = zero[1:] != zero[:-1]
        usual, jumps = steps[~zero[1:] & ~zero[:-1] & np.isfinite(steps)], steps[at_edge & np.isfinite(steps)]
        if len(jumps) and len(usual) and jumps.min() > _JUMP * np.median(usual):
            out.append(
                f"marker {marker} jumps to 0, 0, 0 exactly, in {int(zero.sum())} of {len(zero)} samples, as where it was not "
                "seen; empty these cells, since they count as measured"
            )
    return out


def _frozen(recording: Recording) -> list[str]:
    """Say where forces and single columns keep one value exactly and then jump, as where a sensor or its link was out."""
    out = []
    groups: dict[str, list[int]] = {}
    for k, channel in enumerate(recording.channels):
        if channel.alone or channel.kind != "position":
            groups.setdefault(channel.name if channel.alone else "", []).append(k)
    for own in groups.values():
        steps = np.linalg.norm(np.diff(recording.values[:, own], axis=0), axis=1)
        still = steps == 0.0
        edges = np.flatnonzero(np.diff(np.r_[False, still, False]))
        spans = [(a, b) for a, b in edges.reshape(-1, 2) if b - a + 1 >= _LEAST_FROZEN and a > 0 and b < len(steps)]
        moving = steps[~still & np.isfinite(steps)]
        lost = sum(b - a for a, b in spans)
        if not spans or not len(moving) or lost > _MOST_FROZEN * len(steps) or still.sum() - lost > _REPEATS * len(steps):
            continue
        a, b = max(spans, key=lambda span: steps[span[1]])
        if steps[b] > _JUMP * np.median(moving):
            time, names = recording.time, ", ".join(recording.channels[k].name for k in own)
            out.append(
                f"{names}: not one digit changes from {time[a]:.4g} to {time[b]:.4g} s, then they jump, as where the sensor or "
                "its link was out; empty these cells, since they count as measured"
            )
    return out


def _to_world(source: str, recording: Recording, card: Card, pull: np.ndarray) -> np.ndarray:
    """Bring values to the conventions of the run, (n, k): weight off, tare, rotate, sign, point; of single columns only the tare.

    ``pull`` is gravity as the log shows it, (3,), m/s^2, world frame.
    """
    values, frame, turn = recording.values.copy(), card.frame, card.frame.matrix()
    if recording.channels[0].alone:
        return values if card.tare is None else values - tare_mean(source, recording.time, values, card.tare)
    groups = dict.fromkeys(c.group for c in recording.channels)
    block = {g: [i for i, c in enumerate(recording.channels) if c.group == g] for g in groups}
    _check_axes(source, recording, card, block)
    if card.gravity is not None:
        force, torque = weight_wrench(card.gravity.mass, np.array(card.gravity.centre), turn.T @ pull)
        for group, weight in (("force", force), ("torque", torque)):
            if group in block:
                values[:, block[group]] -= weight
    if recording.sensor is not None and card.tare is not None:
        values -= tare_mean(source, recording.time, values, card.tare)
    for own in block.values():
        if frame.rotation is not None:
            values[:, own] = values[:, own] @ turn.T
    if recording.sensor is None:
        for own in block.values():
            values[:, own] += frame.translation
    else:
        values *= frame.sign
        if any(frame.point) and "torque" in block:
            values[:, block["torque"]] += np.cross(frame.point, values[:, block["force"]])
    return values


def _check_axes(source: str, recording: Recording, card: Card, block: Mapping[str, list[int]]) -> None:
    """Refuse a group with fewer than three axes where the card mixes them."""
    moves = any(card.frame.point)
    for group, own in block.items():
        if (card.frame.rotation is not None or card.gravity is not None or moves) and len(own) != 3:
            raise InputError(
                f"the log {source} has only {', '.join(recording.channels[i].name for i in own)} of the {group}, but "
                "frame.rotation, frame.point and gravity of the card need three axes; name the columns of all three under axes."
            )
    if moves and "torque" in block and "force" not in block:
        raise InputError(f"the log {source} has no force, without which torques cannot move to another frame.point.")


def no_sensor(name: str, sensors: Sequence[str], markers: Sequence[str]) -> str:
    """Return the end of a sentence that starts "sensor ... is not in the run": what there is."""
    if name in markers:
        return " as a force: it is a marker. Leave sensor out, and name its columns or label under [markers] of a card."
    return did_you_mean(name, sensors) + (f" Markers are {', '.join(markers)}." if markers else "")


def check_once(paths: Sequence[str | Path]) -> None:
    """Refuse a log that is listed twice: it would count as two trials.

    Raises
    ------
    InputError
        Names it.
    """
    known: dict[Path, str | Path] = {}
    for path in paths:
        full = Path(path).resolve()
        if full in known:
            again = "" if str(known[full]) == str(path) else f", as {known[full]} and as {path}"
            raise InputError(
                f"the log {path} is listed twice{again}; each log is one trial, and one that counts twice narrows the intervals "
                "without reason. List it once."
            )
        known[full] = path


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

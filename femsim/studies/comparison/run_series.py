"""The series of a run that a comparison needs, from a run in memory, a run folder or a table."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from femsim.base.errors import InputError, did_you_mean
from femsim.base.status import EXIT_STATUS
from femsim.base.table import read_table
from femsim.run.result import Run
from femsim.scene.sensor_kinds import POSITION, SENSOR_KINDS, WRENCH, names
from femsim.studies.comparison.card import Card
from femsim.studies.comparison.log import LEAST_SAMPLES, Log, no_sensor
from femsim.studies.comparison.resampling import resample
from foreign.text import read_json
from viz.ending import how_it_ended
from viz.files import no_run

#: Kinds of channels that a sensor reads of a step, not of its end.
_OF_STEP = ("force", "torque", "pressure")
#: Numbers whose squares are far below the largest that there are.
_LARGEST = 1e100
#: Steps of a run are of one length, or of those that an adaptive step has: at most so many times their median.
_LONGEST = 1e6
#: Forces of all rows act equally early where that differs by less than this part of a row.
_ALIKE = 1e-9


@dataclass(frozen=True, eq=False)
class RunSeries:
    """What a comparison needs of a run.

    Attributes
    ----------
    name : str
        What messages call it.
    time : ndarray, (n,), s
        Ends of the steps.
    columns : dict of str to ndarray, (n,)
        Columns of sensors.csv by name, SENSOR_fx_N, MARKER_x_m ...; SI units, world frame.
    sensors, markers : tuple of str
        Their names.
    gravity : tuple of float, (3,), m/s^2
        World frame.
    warnings : tuple of str
        What a reader should know.
    masses : dict of str to float, kg
        Bodies by name, and all together; empty where they are not known.
    kinds : dict of str to str
        Kinds of the sensors; "" where it is not known.
    theta : float
        Part of a step after which its forces act: 1/2 where they are means of the step, 1 where they are those of its end.
    substeps : ndarray, (n,), optional
        Of a run whose steps are as long as the motion asks for: the parts of each row, whose forces are means over it.
    """

    name: str
    time: np.ndarray
    columns: dict[str, np.ndarray]
    sensors: tuple[str, ...]
    markers: tuple[str, ...]
    gravity: tuple[float, ...]
    warnings: tuple[str, ...]
    masses: dict[str, float] = field(default_factory=dict)
    kinds: dict[str, str] = field(default_factory=dict)
    theta: float = 1.0
    substeps: np.ndarray | None = None

    def read_for(self, log: Log) -> tuple[np.ndarray, np.ndarray]:
        """Read times (n,), s, and the columns that belong to a log, (n, k), with forces at the instants at which they act.

        Forces, torques and pressures are those of a step at theta, half a step before its end where they are means, all else that
        of its end. A row of equal parts reads the mean of theirs. A log of both has the times of ends, and forces interpolated;
        so have rows of different numbers of parts.
        """
        values, acting = self.values(log), [c.kind in _OF_STEP for c in log.channels]
        usual = float(np.median(np.diff(self.time)))
        early = np.full(1, (1.0 - self.theta) * usual)
        if self.substeps is not None and self.theta > 0.5:
            parts = np.maximum(self.substeps, 1.0)
            early = (0.5 - (self.theta - 0.5) / parts) * np.minimum(np.diff(self.time, prepend=-math.inf), usual)
        before = self.time - early
        if not early.any() or not any(acting) or not np.isfinite(values).all():
            return self.time, values
        if all(acting) and np.ptp(early) <= _ALIKE * usual:
            return before, values
        own = np.flatnonzero(acting)
        values[:, own] = resample(before, values[:, own], np.minimum(self.time, before[-1]))
        return self.time, values

    def values(self, log: Log) -> np.ndarray:
        """Columns that belong to the channels of a log, (n, k)."""
        self.check_instruments(log.card)
        if log.sensor is not None:
            sensor = self.sensor_of(log)
            return np.column_stack([self.columns[f"{sensor}_{c.column}"] for c in log.channels])
        if log.channels[0].alone:
            return np.column_stack([self.columns[c.column] for c in log.channels])
        missing = [c.group for c in log.channels if c.group not in self.markers]
        if missing:
            there = did_you_mean(missing[0], self.markers) if self.markers else ", which has no markers."
            raise InputError(f"marker {missing[0]!r} is not in {self.name}{there}")
        return np.column_stack([self.columns[c.column.replace(".", "_")] for c in log.channels])

    def check_instruments(self, card: Card) -> None:
        """Refuse a run without the columns that a card maps; without any, one that has neither a wrench nor a marker.

        Raises
        ------
        InputError
            Names the nearest column; or says which sensors the run has, and how their columns are compared.
        """
        for column in card.columns:
            if column not in self.columns:
                raise InputError(
                    f"column {column!r}, which [columns] of the card names, is not in sensors.csv of {self.name}"
                    f"{did_you_mean(column, self.columns)}"
                )
        if not card.columns and not self.sensors and not self.markers:
            taken = [kind for kind, declared in SENSOR_KINDS.items() if declared.is_wrench]
            gauges = ", ".join(f"{sensor} ({kind})" for sensor, kind in self.kinds.items()) or ", ".join(self.columns)
            raise InputError(
                f"the run {self.name} has {f'only {gauges}' if gauges else 'no sensor and no marker'}; a comparison takes "
                f"markers, and sensors of the kinds {', '.join(taken)}: add one by scene.sensor(...) and run the scene again"
                f"{'. Or name columns of its sensors.csv under [columns] in a card' if gauges else ''}."
            )

    def sensor_of(self, log: Log) -> str:
        """Sensor to compare with the log of a wrench: the one that its card names, or the only one."""
        sensor = log.sensor or "log"  # "log" names none
        if sensor in self.sensors:
            return sensor
        if sensor == "log" and len(self.sensors) == 1:
            return self.sensors[0]
        if sensor == "log":
            raise InputError(
                f"nothing says which force/torque sensor of {self.name} the log {log.source} belongs to; it has "
                f"{', '.join(self.sensors) or 'none'}. Name one as 'sensor' in the card, or by --sensor."
            )
        raise InputError(f"sensor {sensor!r} is not in {self.name}{no_sensor(sensor, self.sensors, self.markers)}")


def read_run(run: Run | RunSeries | str | Path) -> RunSeries:
    """Take the series of a run in memory or of a run folder; of a run that was interrupted, as far as it went.

    Raises
    ------
    InputError
        No run folder, one that is damaged, or a run with too few steps.
    """
    if isinstance(run, RunSeries):
        return run
    if isinstance(run, Run):
        columns = {name: values for name, values in run.table().items() if name not in run.steps}
        name, parts = str(run.folder or run.info["scene"]["name"]), run.steps["substeps"] if _is_adaptive(run.info) else None
        return _checked(name, run.steps["time_s"], columns, run.info, [], parts)
    folder = Path(run)
    if not folder.is_dir() or not (folder / "run.json").is_file():
        said = no_run(folder)
        raise InputError(f"{said.rstrip('.')}. The run comes first, then the logs." if folder.is_file() else said)
    try:
        info = read_json(folder / "run.json")
        status = str(info["status"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{folder / 'run.json'} cannot be read ({error}); the run is damaged, run the scene again.") from error
    if not (folder / "sensors.csv").is_file():
        raise InputError(f"{folder} has no sensors.csv: it is no complete run folder; run the scene again.")
    try:
        table = read_table(folder / "sensors.csv")
    except InputError as error:
        raise InputError(f"the run {folder} has no readings to compare: {error}") from None
    warnings = [f"sensors.csv: {text}" for text in table.warnings]
    status, message = how_it_ended(folder, info)
    if status == "running":
        warnings.append("the run is still going on; it is compared as far as it is written")
    elif status == "killed":
        warnings.append(f"the run was {message} It is compared as far as it is written")
    elif status in EXIT_STATUS and status != "converged":
        warnings.append(f"the run is marked {status!r}: {info.get('message', '')}")
    if "time_s" not in table.titles:
        raise InputError(
            f"{folder / 'sensors.csv'} has no column time_s; it is of another program or an older femsim, run again."
        )
    # a gap to nothing is infinite
    columns = {title: table.numbers(c, infinite=True) for title, c in zip(table.titles, table.columns, strict=True)}
    time = columns.pop("time_s")
    return _checked(str(folder), time, columns, info, warnings, _parts(folder, time) if _is_adaptive(info) else None)


def _is_adaptive(info: Mapping[str, Any]) -> bool:
    """Whether the steps of a run are as long as the motion asks for, by its run.json."""
    return _section(info, "settings").get("time_tolerance_m") is not None


def _parts(folder: Path, time: np.ndarray) -> np.ndarray | None:
    """Read how many parts each row of a run folder has, (n,), by the ends of rows; None where its steps.csv does not tell it."""
    try:
        table = read_table(folder / "steps.csv")
        ends, parts = (table.numbers(table.columns[table.titles.index(title)]) for title in ("time_s", "substeps"))
    except (InputError, ValueError):
        return None
    there = np.isfinite(ends) & np.isfinite(parts)
    return np.interp(time, ends[there], parts[there]) if there.any() else None


def make_run_series(
    name: str,
    table: Mapping[str, np.ndarray],
    gravity: Sequence[float],
    masses: Mapping[str, float] | None = None,
    kinds: Mapping[str, str] | None = None,
    theta: float = 1.0,
) -> RunSeries:
    """Make the series of a run out of a table of them, such as that of a case of a sweep.

    Parameters
    ----------
    name : str
        What messages call it.
    table : mapping of str to ndarray, (n,)
        Columns as in sensors.csv, with their units: time_s, NAME_fx_N ..., NAME_x_m ... Those of a run whose steps are as long as
        the motion asks for have ``substeps`` of steps.csv too.
    gravity : (3,) float, m/s^2
        World frame.
    masses : mapping of str to float, kg, optional
        Bodies by name.
    kinds : mapping of str to str, optional
        Kinds of the sensors and markers by name.
    theta : float
        That of the scene, see :class:`RunSeries`.

    Raises
    ------
    InputError
        Too few rows.
    """
    columns = dict(table)
    parts = columns.pop("substeps", None)
    return _checked(
        name,
        columns.pop("time_s"),
        columns,
        {
            "settings": {"gravity_mps2": list(gravity), "theta": theta},
            "bodies": {body: {"mass_kg": mass} for body, mass in (masses or {}).items()},
            "sensors": {sensor: {"kind": kind} for sensor, kind in (kinds or {}).items()},
        },
        [],
        parts,
    )


def _checked(
    name: str, time: np.ndarray, columns: dict[str, np.ndarray], info: dict[str, Any], warnings: list[str],
    parts: np.ndarray | None,
) -> RunSeries:  # fmt: skip
    sensors, markers = _having(names(WRENCH), columns), _having(names(POSITION), columns)
    told = {
        sensor: str(entry.get("kind", "")) for sensor, entry in _section(info, "sensors").items() if isinstance(entry, Mapping)
    }
    if len(time) < LEAST_SAMPLES:
        raise InputError(f"the run {name} has {len(time)} steps; at least {LEAST_SAMPLES} are needed to compare anything.")
    if not np.isfinite(time).all() or not (np.diff(time) > 0).all():
        raise InputError(f"the run {name}: its times are not finite and ascending; its table is damaged, run the scene again.")
    steps = np.diff(time)
    k, usual = int(steps.argmax()), float(np.median(steps))
    if steps[k] > _LONGEST * usual:
        raise InputError(
            f"the run {name} goes from {time[k]:.4g} s to {time[k + 1]:.4g} s in one step, and by {usual:.3g} s in others; its "
            "table is damaged, run the scene again."
        )
    for column, values in columns.items():
        most = float(np.abs(values[np.isfinite(values)]).max(initial=0.0))
        if most > _LARGEST:
            raise InputError(f"the run {name} reaches {most:.3g} in {column}; its table is damaged, run the scene again.")
    gravity = _section(info, "settings").get("gravity_mps2")
    if gravity is None:
        gravity = (0.0, 0.0, -9.81)
        warnings = [*warnings, "run.json is of an older femsim and does not say its gravity; (0, 0, -9.81) m/s2 is taken"]
    bodies = {body: entry for body, entry in _section(info, "bodies").items() if isinstance(entry, Mapping)}
    try:
        masses = {body: float(entry["mass_kg"]) for body, entry in bodies.items() if "mass_kg" in entry}
        pull = tuple(float(g) for g in gravity)
    except (TypeError, ValueError, OverflowError):
        pull, masses = (), {}
    if len(pull) != 3 or not np.isfinite([*pull, *masses.values()]).all():
        raise InputError(f"the run {name}: run.json holds no numbers for gravity or a mass; it is damaged, run the scene again.")
    if len(masses) > 1:
        masses["all bodies together"] = sum(masses.values())
    kinds = {s: told.get(s, told.get(s.removesuffix("_measured"), "")) for s in sensors}
    if not sensors and not markers:
        kinds = told
    theta = _section(info, "settings").get("theta")
    known = float(theta) if isinstance(theta, (int, float)) and 0.5 <= theta <= 1.0 else 1.0
    return RunSeries(name, time, columns, sensors, markers, pull, tuple(warnings), masses, kinds, known, parts)


def _having(ends: Sequence[str], columns: Mapping[str, np.ndarray]) -> tuple[str, ...]:
    """Names of sensors that have a column for each of these ends."""
    found = (column.removesuffix(f"_{ends[0]}") for column in columns if column.endswith(f"_{ends[0]}"))
    return tuple(name for name in found if all(f"{name}_{end}" in columns for end in ends))


def _section(info: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return a part of run.json; empty where it has none."""
    found = info.get(name)
    return found if isinstance(found, Mapping) else {}

"""A run that is on disk, as the object that it was when it ended."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, get_args

import numpy as np

from femsim.base.errors import InputError, naming_parameters
from femsim.base.status import Status
from femsim.run.folder import read_run_json
from femsim.run.result import SERIES, Run
from femsim.scene.sensor_kinds import SENSOR_KINDS, SensorKind
from viz.ending import how_it_ended
from viz.tables import read_table


@naming_parameters
def load_run(folder: str | Path) -> Run:
    """Read a run folder: what :func:`~femsim.run.simulate.simulate` returned when it wrote the folder.

    Parameters
    ----------
    folder : path
        Run folder; also one whose run goes on, or was killed: as far as its tables are written.

    Returns
    -------
    Run
        Tables, readings, status, health verdict, ``info``; numbers to the ten digits that the tables have. It has no ``stepper``.
        The status of a run that goes on or was killed is "interrupted", and the message says which.

    Raises
    ------
    InputError, VizError
        No run folder; a run.json that is damaged; tables that are damaged, or without a row.
    """
    folder = Path(folder)
    info = read_run_json(folder)
    if not isinstance(info, dict) or not all(isinstance(info.get(name, {}), dict) for name in ("scene", "settings", "health")):
        raise InputError(f"{folder / 'run.json'} is not that of a run; run the scene again.")
    ended, message = how_it_ended(folder, info)
    status: Status = next((known for known in get_args(Status) if known == ended), "interrupted")
    if ended == "running":
        message = "The run goes on; this is what it has written so far."
    steps = read_table(folder / "steps.csv", ("step", "time_s"))
    sensors = read_table(folder / "sensors.csv", ("time_s",))
    n = min(len(steps["time_s"]), len(sensors["time_s"]))  # of a run that goes on, one may be written further
    steps, sensors = ({name: values[:n] for name, values in table.items()} for table in (steps, sensors))
    return Run(status, message, folder, steps, end=None, info=info, **_series(sensors))


def _series(table: dict[str, np.ndarray]) -> dict[str, dict[str, Any]]:
    """Sort the columns of sensors.csv into the readings of all sensors, by group and name, as the header alone tells them."""
    groups: dict[str, dict[str, Any]] = {group: {} for group in SERIES}
    for name, kind in _sensors([column for column in table if column != "time_s"]):
        own = {column.name: table[f"{name}_{column.name}"] for column in kind.columns}
        groups[kind.series][name] = SERIES[kind.series].of(table["time_s"], own)
    return groups


def _sensors(columns: Sequence[str]) -> Iterator[tuple[str, SensorKind]]:
    """Find the sensors whose columns follow each other as a kind declares them."""
    for place, first in enumerate(columns):
        for kind in SENSOR_KINDS.values():
            name = first.removesuffix(f"_{kind.columns[0].name}")
            if list(columns[place : place + len(kind.columns)]) == [f"{name}_{column.name}" for column in kind.columns]:
                yield name, kind
                break

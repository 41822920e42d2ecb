"""One case of a sweep: run it in this process, reduce its tables to metrics, write its folder."""

from __future__ import annotations

import csv
import errno
import json
import os
import shutil
import socket
import tempfile
import time
import traceback
import uuid
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from femsim.base.errors import InputError
from femsim.base.files import write_json
from femsim.base.place import ROOT
from femsim.base.status import FINISHED
from femsim.run.folder import hold_folder
from femsim.studies.sweeps.metrics import OutputError, check_column, parse_condition, parse_metric
from femsim.studies.sweeps.packing import unpack
from femsim.studies.sweeps.sampling import source_version
from foreign.text import read_json
from viz.ending import is_locked

#: Its row; a folder that has it is complete. All columns of a case that functions made.
CASE_FILE, TABLES_FILE = "case.json", "tables.npz"
_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)


def _origin() -> str:
    """Machine and folder that femsim runs from here."""
    return f"{socket.gethostname()}:{ROOT}"


@dataclass(frozen=True)
class Job:
    """What a process needs to run a case; plain values only, because it travels as JSON.

    Attributes
    ----------
    case, id, parameters
        Of the case, see :class:`~femsim.studies.sweeps.sampling.Case`.
    scene : str
        Scene file; ``source`` replaces it where it is missing or differs.
    source : str
        Its text.
    folder : str
        Parent of the folder of the case; "" writes nothing.
    settings : dict
        Options of ``simulate``.
    metrics : dict of str to str
        Reductions by name.
    stop : list of str
        Conditions.
    series : list of str or "all"
        Columns to keep.
    fps : float, 1/s
        Frames per simulated second; 0 keeps no frames.
    version : str
        :func:`~femsim.studies.sweeps.sampling.source_version` where the job was made.
    origin : str
        Machine and folder of femsim where the job was made.
    time, memory, retries
        Limits; s, bytes, 1.
    steps : int
        0 runs the whole case; another number only so many steps, for an estimate.
    only_built : bool
        Build the scene and look for the columns that are asked for, and take no step: a row without results.
    built : str
        Instead of a scene file: functions and arguments, see :mod:`femsim.studies.sweeps.packing`. All columns are kept then.
    """

    case: int
    id: str
    parameters: dict[str, Any]
    scene: str
    source: str
    folder: str
    settings: dict[str, Any] = field(default_factory=dict)
    metrics: dict[str, str] = field(default_factory=dict)
    stop: list[str] = field(default_factory=list)
    series: list[str] | str = field(default_factory=list)
    fps: float = 0.0
    version: str = field(default_factory=source_version)
    origin: str = field(default_factory=_origin)
    time: float | None = None
    memory: float | None = None
    retries: int = 1
    steps: int = 0
    only_built: bool = False
    built: str = ""


Row = dict[str, Any]
"""What a case gives: case, id, status, message, attempts, parameters, metrics, outputs, health, wall_s, cpu_s, overhead_s, ...

``again`` says of one that failed that its cause, a full disk or a process that was killed, may be gone at another try.
"""


def run_case(job: Job) -> Row:
    """Run a case in this process; any error becomes its status.

    The folder of the case is filled under another name and moved to its place when it is complete.

    Parameters
    ----------
    job : Job
        The case.

    Returns
    -------
    dict
        Row of the case.
    """
    with ExitStack() as held:
        return _run_case(job, held)


def _run_case(job: Job, held: ExitStack) -> Row:
    """Run a case; ``held`` holds the folder that is filled for it, which tells other studies that somebody works on it."""
    from femsim.scene.scene_file import is_input_error

    wall, cpu = time.perf_counter(), time.process_time()
    row = new_row(job)
    final = Path(job.folder) / job.id
    work = work_folder(final, os.getpid())
    try:
        if job.version != source_version():
            if job.origin == _origin():
                raise InputError(
                    f"femsim was changed since the sweep began (it was {job.version}, and is {source_version()}); undo the "
                    "change and go on by --resume, or start the sweep anew, and leave femsim as it is until it ends."
                )
            raise InputError(
                f"this worker has femsim {source_version()}, but the sweep was started with {job.version}; install the same "
                "on both."
            )
        if job.folder:
            done = read_row(final)  # of a worker that ended it and was lost before it could say so
            if done is not None and satisfies(done, job):
                return done
            shutil.rmtree(work, ignore_errors=True)
            work.mkdir(parents=True)
            held.enter_context(hold_folder(work, lambda folder: None))
        _simulate(job, row, work)
    except Exception as error:
        row["status"], row["message"] = "failed", f"{type(error).__name__}: {error}"
        if is_input_error(error):
            row["message"] = str(error)
        elif not isinstance(error, OSError):
            row["traceback"] = traceback.format_exc()
        row["disk"] = isinstance(error, OSError) and error.errno in _DISK
        row["again"] = row["disk"] or job.version != source_version()
        row["sweep_wrong"] = isinstance(error, OutputError)
    row["wall_s"], row["cpu_s"] = time.perf_counter() - wall, time.process_time() - cpu
    row["overhead_s"], row["ended_s"] = row["wall_s"] - row.get("stepping_s", 0.0), time.time()
    if job.folder:
        try:
            finish_folder(work, final, row)
        except OSError as error:
            shutil.rmtree(work, ignore_errors=True)
            row.update(
                status="failed",
                disk=error.errno in _DISK,
                again=True,
                message=f"{final} cannot be written ({error.strerror}); the case is not kept.",
            )
    return row


def work_folder(final: Path, pid: int) -> Path:
    """Name of the folder that a process fills for a case; whoever kills the process removes it."""
    return final.with_name(f".{final.name}-{socket.gethostname()}-{pid}")


def remove_left(cases: Path, ids: Iterable[str]) -> None:
    """Remove what lost workers left of these cases: not what a process works on, as one of a study that shares them."""
    begins = tuple(f".{one}-" for one in ids)
    for folder in cases.glob(".*"):
        if folder.name.startswith(begins) and not is_locked(folder):
            shutil.rmtree(folder, ignore_errors=True)


def new_row(job: Job) -> Row:
    """Row of a case without results yet."""
    return {
        "case": job.case, "id": job.id, "status": "failed", "message": "", "attempts": 1, "parameters": job.parameters,
        "metrics": {}, "health": {},
        "outputs": {"metrics": job.metrics, "series": job.series, "fps": job.fps},
        "wall_s": 0.0, "cpu_s": 0.0, "overhead_s": 0.0, "ended_s": time.time(),
        "worker": f"{socket.gethostname()}-{os.getpid()}", "version": job.version,
    }  # fmt: skip


def finish_folder(work: Path, final: Path, row: Row) -> None:
    """Write the row of a case into its folder and move the folder to its place; it replaces an older one.

    Raises
    ------
    OSError
        The disk is full, or the folder cannot be written.
    """
    work.mkdir(parents=True, exist_ok=True)
    write_json(work / CASE_FILE, row)
    for _ in range(3):  # another worker may finish the same case at the same time
        if final.exists():
            old = final.with_name(f".{final.name}-{uuid.uuid4().hex[:8]}")
            try:
                os.replace(final, old)
            except FileNotFoundError:
                continue
            shutil.rmtree(old, ignore_errors=True)
        try:
            os.replace(work, final)
            return
        except OSError:
            if not final.exists():
                raise
    shutil.rmtree(work, ignore_errors=True)


def read_row(folder: Path) -> Row | None:
    """Row of a case that finished or failed before; None where there is none that can be read."""
    try:
        row: Row = read_json(folder / CASE_FILE)
    except (OSError, ValueError):
        return None
    return row if _is_row(row) and row["id"] == folder.name else None


def _is_row(row: Any) -> bool:
    """Whether a file holds all that is asked of a row, so that a damaged one is run again."""
    if not isinstance(row, dict) or not all(isinstance(row.get(name), str) for name in ("id", "status", "message")):
        return False
    had, metrics = row.get("outputs"), row.get("metrics")
    if not (isinstance(had, dict) and isinstance(metrics, dict) and isinstance(row.get("health"), dict)):
        return False
    series = had.get("series")
    return (
        all(is_number(value) for value in metrics.values())
        and isinstance(had.get("metrics"), dict)
        and (series == "all" or (isinstance(series, list) and all(isinstance(name, str) for name in series)))
        and is_number(had.get("fps"))
    )


def is_number(value: Any) -> bool:
    """Whether a value of JSON is a number that a table can hold."""
    return type(value) is float or (type(value) is int and -(1 << 63) <= value < 1 << 63)


def is_believed(row: Row) -> bool:
    """Whether a case finished, and its numbers are physics: not wrong by their health."""
    return row["status"] in FINISHED and row.get("health", {}).get("verdict") != "wrong"


def satisfies(row: Row | None, job: Job) -> bool:
    """Whether a row is finished and holds everything that a job asks for, so that the case need not run."""
    if row is None or row["status"] not in FINISHED:
        return False
    had = row["outputs"]
    return (
        all(had["metrics"].get(name) == text for name, text in job.metrics.items())
        and (had["series"] == "all" or (job.series != "all" and set(job.series) <= set(had["series"])))
        and job.fps in (0.0, had["fps"])
    )


def _simulate(job: Job, row: Row, work: Path) -> None:
    """Run the scene of a job and fill its row."""
    from femsim.base.versions import versions
    from femsim.run.columns import step_columns
    from femsim.run.sensors import sensor_columns
    from femsim.scene.scene_file import load_scene

    metrics = {name: parse_metric(text) for name, text in job.metrics.items()}
    stop = [parse_condition(text) for text in job.stop]

    def until(values: dict[str, float]) -> str | None:
        return next((f"{condition}." for condition in stop if condition.holds(values)), None)

    with tempfile.TemporaryDirectory() as scratch:
        packed = unpack(job.built) if job.built else None
        path = None if packed is not None else _scene_file(job, Path(scratch))
        scene = packed.scene() if packed is not None else load_scene(str(path), **job.parameters)
        columns = dict.fromkeys([*step_columns(), *sensor_columns(scene)])
        series = [] if isinstance(job.series, str) else job.series
        for name in (*(m.column for m in metrics.values()), *(c.column for c in stop), *series):
            check_column(name, columns)
        dt, duration = (job.settings.get(name) or getattr(scene, name) for name in ("dt", "duration"))
        missed = {name: why for name, metric in metrics.items() if (why := metric.missed_by(duration))}
        row["missed"] = "; ".join(f"metrics.{name}: {why}" for name, why in missed.items())
        if job.only_built:
            row.update(status="converged", message="The scene is built.")
            return
        from femsim.run.simulate import simulate

        dt = scene.dt_bounds[1] if dt == "auto" else dt
        if packed is not None and packed.loop is not None:
            run = packed.run(scene, job.settings)
        else:
            run = simulate(
                scene,
                **job.settings | {"duration": min(job.steps * dt, duration) if job.steps else duration},
                until=until if stop else None,
                out=work / "run" if job.folder and job.fps else None,
                fps=job.fps or 100.0,
                scene_path=path,
            )
    if run.status == "interrupted":
        raise KeyboardInterrupt
    if packed is not None:
        row["values"] = packed.values(run)
        np.savez(work / TABLES_FILE, allow_pickle=False, **run.table())
    stepping = 1e-3 * float(run.steps["ms_step"].sum())
    row.update(
        status=run.status, message=run.message, stepping_s=stepping, health=run.info.get("health", {}), versions=versions(),
        all_parameters=scene.parameters, planned_steps=round(duration / dt),
    )  # fmt: skip
    if job.steps:
        row.update(dt=dt, columns=list(columns))
    if not len(run.steps["step"]):
        return
    table = run.table()
    row["metrics"] = {name: metric.value(table) for name, metric in metrics.items()}
    for name, metric in metrics.items():
        if (why := metric.lacking(table)) and not job.steps:
            row["message"] += f" Metric {name} has no number: {why}."
    if job.folder and job.series:
        names = list(table) if job.series == "all" else ["time_s", *(name for name in job.series if name != "time_s")]
        _write_series(work / "series.csv", {name: table[name] for name in names})


def _scene_file(job: Job, scratch: Path) -> Path:
    """Scene file of a job, or a copy of it where this machine does not see that file."""
    path = Path(job.scene)
    try:
        if path.read_text(encoding="utf-8") == job.source:
            return path
    except (OSError, ValueError):
        pass
    copy = scratch / path.name
    copy.write_text(job.source, encoding="utf-8")
    return copy


def _write_series(path: Path, columns: Mapping[str, np.ndarray]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows([f"{value:.10g}" for value in row] for row in zip(*columns.values(), strict=True))


def to_json(job: Job) -> str:
    """Job as one line."""
    return json.dumps(asdict(job), default=str)

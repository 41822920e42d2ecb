"""What a run writes step by step: the tables steps.csv and sensors.csv, and when frames and problems are due."""

from __future__ import annotations

import os
import time
from array import array
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from contact import write_fclib
from contact.fclib import import_h5py
from femsim.base.errors import InputError
from femsim.base.files import named_errors, replacing
from femsim.run.checkpoint import Checkpoint
from femsim.run.columns import cell, step_columns, step_row
from femsim.run.frames import Frames
from femsim.run.health import HealthWatch
from femsim.run.instruments import ON_TIME
from femsim.run.sensors import Sensors, sensor_columns
from femsim.step.report import StepReport
from femsim.step.stepper import Stepper

#: Rows of the tables wait at most so long (s) and a step, so that they cost one write instead of one a step.
_FLUSH_S = 0.5


class TableWriter:
    """CSV file that grows by a row per step: the header is written at once, rows when they are asked for, and whole.

    Parameters
    ----------
    path : Path, optional
        File; None keeps the rows in memory only.
    columns : sequence of str
        Header.
    rows : ndarray, (n, n_columns), optional
        Rows of a run that goes on; the file is made anew of them.

    Attributes
    ----------
    last : list of float
        The last row; empty before the first.
    """

    def __init__(self, path: Path | None, columns: Sequence[str], rows: np.ndarray | None = None) -> None:
        self.columns = tuple(columns)
        known = [] if rows is None else rows.tolist()
        self.last: list[float] = known[-1] if known else []
        #: of all rows, one after the other: as numbers of Python they take four times the memory
        self._values = array("d", (x for row in known for x in row))
        self.path, self._file, self._size = path, -1, 0
        self._waiting: list[str] = []
        if path:
            self._write_anew(path)
            self._file = os.open(path, os.O_WRONLY | os.O_APPEND)
            self._folder = path.parent.stat()

    def _write_anew(self, path: Path) -> None:
        """Write the header and all rows so far."""
        text = "".join([_line(self.columns), *(_line(map(cell, row)) for row in self.rows.tolist())])
        with replacing(path) as temporary:
            temporary.write_text(text, encoding="utf-8", newline="")
        self._size = len(text.encode())

    def add(self, row: Sequence[float]) -> None:
        """Add a row."""
        self.last = list(row)
        self._values.extend(row)
        if self._file >= 0:
            self._waiting.append(_line(map(cell, row)))

    def flush(self) -> None:
        """Write the rows that wait.

        Raises
        ------
        OSError
            They cannot be written; ``filename`` is the table.
        """
        rest, self._waiting = memoryview("".join(self._waiting).encode()), []
        if rest and self._file >= 0 and self.path:
            with named_errors(self.path):
                while rest:
                    written = os.write(self._file, rest)
                    rest, self._size = rest[written:], self._size + written

    @property
    def rows(self) -> np.ndarray:
        """All rows so far, (n_rows, n_columns)."""
        return np.array(self._values, dtype=np.float64).reshape(-1, len(self.columns))

    def table(self) -> dict[str, np.ndarray]:
        """All columns by name, (n_rows,) each."""
        data = self.rows
        return {name: data[:, k] for k, name in enumerate(self.columns)}

    def close(self) -> None:
        """Write the rows that wait and close the file; if a program removed or saved it meanwhile, write all rows anew."""
        file, path = self._file, self.path
        if file >= 0 and path:
            try:
                self.flush()
                here = path.parent.is_dir() and os.path.samestat(path.parent.stat(), self._folder)
                if here and (path.stat().st_size if path.is_file() else -1) != self._size:
                    self._write_anew(path)
            finally:
                self._file = -1
                os.close(file)


def _line(cells: Iterable[str]) -> str:
    """Write a row of CSV; neither numbers nor names of columns hold commas or quotes."""
    return ",".join(cells) + "\r\n"


class Recorder:
    """Writes what a stepper does.

    A killed run may lose its last frame and the rows of its last second, but no row on disk is of a step whose frame was due
    and is not there: rows are written when no frame is in writing.

    Parameters
    ----------
    stepper : Stepper
        The simulation.
    folder : Path, optional
        Run folder, already made; None records the tables in memory and no frames.
    fps : float, 1/s
        Frames a simulated second.
    fields, format, precision
        Of the frames, see :class:`femsim.run.frames.Frames`.
    dump : range
        Steps whose contact problems are written to ``problems/``; default none.
    done : Checkpoint, optional
        Where a run goes on: tables and frames are taken back to there. The stepper is still at its start.

    Attributes
    ----------
    problems : list of str
        Files of contact problems written so far, relative to the run folder.
    answered : dict of str to int
        Number of steps by the solver that answered them; a halved step counts for its last part.
    health : HealthWatch
        Judges each step.
    on_verdict : callable, optional
        Called when its verdict has changed.

    Raises
    ------
    InputError
        Unknown field, format or precision, a frame rate that is not positive, or problems to write without a folder.
    ContactError
        Problems to write, and h5py is missing.
    VizError
        Frames in the format vtkhdf, and h5py is missing.
    """

    clock = staticmethod(time.monotonic)

    def __init__(
        self,
        stepper: Stepper,
        folder: Path | None,
        *,
        fps: float = 100.0,
        fields: Sequence[str] | None = None,
        format: str = "pvd",
        precision: str = "float64",
        dump: range = range(0),
        done: Checkpoint | None = None,
    ) -> None:
        if not (np.isfinite(fps) and fps > 0):
            raise InputError(f"fps is {fps}; allowed are positive numbers of frames a simulated second.")
        if dump and folder is None:
            raise InputError("dump_problems asks for files, but no run folder is written; name one by out.")
        if dump:
            import_h5py()
        self.stepper, self.folder, self.dump = stepper, folder, dump
        self.health = HealthWatch(stepper)
        self.on_verdict: Callable[[], None] | None = None
        carried: dict[str, Any] = {}
        if done is not None:
            carried = done.carried["recorder"]
            self.health.recall(carried["health"])
        self.problems: list[str] = list(carried.get("problems", []))
        self.answered: dict[str, int] = dict(carried.get("answered", {}))
        self.frame_interval = 1.0 / fps
        self._next_frame = float(carried.get("next_frame", 0.0))
        self.sensors = Sensors(stepper)
        self.frames: Frames | None = None
        self._flushed = self._stepped = self.clock()
        if folder:
            self.frames = Frames(
                stepper, folder, fields=fields, format=format, precision=precision, written=carried.get("frames")
            )
        rows = {} if done is None else done.rows
        self.steps = TableWriter(folder / "steps.csv" if folder else None, step_columns(), rows.get("steps"))
        self.sensor_table = TableWriter(
            folder / "sensors.csv" if folder else None, sensor_columns(stepper.scene), rows.get("sensors")
        )

    def carried(self) -> dict[str, Any]:
        """Return what a checkpoint keeps of the recorder, as JSON knows it; tables and frames are written up to there first."""
        frames = self.frames.written() if self.frames else None
        self._flush()
        return {
            "problems": self.problems, "answered": self.answered, "next_frame": self._next_frame, "frames": frames,
            "health": self.health.memory(),
        }  # fmt: skip

    def frame(self, report: StepReport | None) -> None:
        """Write a frame of the current state; None at the start, before any step."""
        if self.frames:
            self.frames.write(report)

    def problem(self, step: int) -> None:
        """Write the contact problem of a step, when it was asked for, to problems/step_NNNNN.hdf5."""
        problem = self.stepper.problem
        if self.folder is None or problem is None or step not in self.dump:
            return
        name = f"problems/step_{step:05d}.hdf5"
        (self.folder / name).parent.mkdir(exist_ok=True)
        write_fclib(self.folder / name, problem, title=f"{self.stepper.scene.name}, step {step}", description="Units are SI.")
        self.problems.append(name)

    def frame_due(self, time: float) -> bool:
        """Whether a frame is due at a time (s)."""
        if time < self._next_frame - ON_TIME * self.stepper.settings.dt:
            return False
        self._next_frame += self.frame_interval * max(1.0, np.floor((time - self._next_frame) / self.frame_interval + 1.0 + 1e-9))
        return True

    def _flush(self) -> None:
        """Write the rows of both tables that wait."""
        self._flushed = self.clock()
        self.sensor_table.flush()
        self.steps.flush()

    def _settled(self, wait: bool) -> bool:
        """Whether all frames so far are in the files; ``wait`` until they are."""
        if self.frames and wait:
            self.frames.settle()
        return self.frames is None or self.frames.settled

    def step(self, report: StepReport, timings: dict[str, float]) -> None:
        """Record a step: rows of both tables, and a frame when one is due.

        The rows of the steps before are written first, where some wait for long and no frame is in writing: the next frame would
        wait for the last one anyway. After a step that took long they need not wait for another one.
        """
        slow = self.clock() - self._stepped > _FLUSH_S
        with self.stepper.timed("record"):
            due = self.frame_due(report.time)
            if self.clock() - self._flushed > _FLUSH_S and self._settled(wait=due):
                self._flush()
            self.sensor_table.add(self.sensors.row(report))
            if due:
                self.frame(report)
            before = self.health.findings.verdict
            self.health.look(report)
            if self.on_verdict is not None and self.health.findings.verdict != before:
                self.on_verdict()
        self.steps.add(step_row(report, self.stepper.ms_since(timings)))
        name = _solver_of(self.stepper, report)
        self.answered[name] = self.answered.get(name, 0) + 1
        if slow and self._settled(wait=True):
            self._flush()
        self._stepped = self.clock()

    def last_row(self) -> dict[str, float]:
        """Return what the last step wrote to both tables, by name of the column."""
        tables = (self.sensor_table, self.steps)
        return {name: float(value) for table in tables for name, value in zip(table.columns, table.last, strict=True)}

    def close(self) -> None:
        """Close all files; the frames and tables are complete up to the last step."""
        with ExitStack() as all_of_them:  # each is closed, whatever the others say
            all_of_them.callback(self.steps.close)  # the last one first: frames before rows
            all_of_them.callback(self.sensor_table.close)
            if self.frames:
                all_of_them.callback(self.frames.close)


def _solver_of(stepper: Stepper, report: StepReport) -> str:
    """Name of the solver that answered a step: the one that ``auto`` returned, or the solver of the run."""
    solver = stepper.solver
    own = getattr(getattr(solver, "options", None), "solver_name", type(solver).__name__)
    return str(report.solution.details.get("picked", own))

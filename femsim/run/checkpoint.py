"""Checkpoints: all that a run needs to go on as if it had never stopped, in files that are whole or not there.

``RUN/checkpoints/`` holds the last two, ``step_000001234.checkpoint``, and the rows of both tables so far, ``steps.rows`` and
``sensors.rows``. A checkpoint is a line of text with its version and the digest of the rest, then numpy's npz without pickle: the
state, what the solver remembers, and what loop, tables and frames carry. The rows are float64, appended and never changed, so
that a checkpoint of a long run costs no more than one of a short run; each says how many are its own, and their digest.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from contact.solvers.base import below
from femsim.base.errors import InputError
from femsim.base.files import named_errors, replacing
from femsim.run.folder import digest_of
from femsim.step.state import State
from foreign.text import parse_json, unpack_npz

FOLDER = "checkpoints"
#: Version of the files.
VERSION = 8
#: Unless something else is asked for: one each ten minutes, so none of a shorter run.
DEFAULT_EVERY = "600s"
_MAGIC = "femsim checkpoint"
_KEPT = 2


@dataclass(frozen=True)
class Every:
    """When a checkpoint is due: after so many ``steps``, or so many ``seconds`` of wall time; both 0 is never."""

    steps: int = 0
    seconds: float = 0.0

    @classmethod
    def of(cls, text: str | int | None) -> Every:
        """Read ``"600s"`` (seconds), ``"500"`` (steps), ``"0"`` (never); None is :data:`DEFAULT_EVERY`."""
        words = DEFAULT_EVERY if text is None else str(text).strip()
        try:
            if words.endswith("s"):
                seconds = float(words[:-1])
                if np.isfinite(seconds) and seconds > 0:
                    return cls(seconds=seconds)
            elif int(words) >= 0:
                return cls(steps=int(words))
        except ValueError:
            pass
        raise InputError(f"checkpoint_every is {text!r}; write a number of steps (500), of seconds (60s), or 0 for never.")

    @property
    def never(self) -> bool:
        """Whether none is ever due."""
        return not self.steps and not self.seconds


@dataclass(frozen=True)
class Checkpoint:
    """What a run was after a step.

    Attributes
    ----------
    step : int
        Steps done.
    state : State
        State of the simulation.
    solver : dict of str to ndarray
        What the solver remembers, see :class:`contact.solvers.base.Remembering`.
    carried : dict
        What loop, recorder and frames carry, as JSON knows it.
    rows : dict of str to ndarray, (step, n_columns)
        Rows of the tables by name.
    """

    step: int
    state: State
    solver: dict[str, np.ndarray]
    carried: dict[str, Any]
    rows: dict[str, np.ndarray]


class Checkpoints:
    """Writes the checkpoints of a run.

    Parameters
    ----------
    folder : Path, optional
        Run folder; None writes none.
    every : Every
        When one is due.
    """

    clock = staticmethod(time.monotonic)

    def __init__(self, folder: Path | None, every: Every) -> None:
        self.folder = None if folder is None or every.never else folder / FOLDER
        self.every = every
        self._last_step, self._last_time = 0, self.clock()
        self._rows: dict[str, _RowFile] = {}

    def go_on(self, done: Checkpoint) -> None:
        """Go on after a checkpoint; those behind it, which could not be used, are removed."""
        self._last_step = done.step
        if self.folder is not None:
            self._rows = {name: _RowFile(self.folder / f"{name}.rows", rows) for name, rows in done.rows.items()}
            for path in found_checkpoints(self.folder.parent):
                if path.name > _name(done.step):
                    path.unlink(missing_ok=True)

    def due(self, step: int) -> bool:
        """Whether one is due after a step."""
        if self.folder is None:
            return False
        if self.every.steps:
            return step - self._last_step >= self.every.steps
        return self.clock() - self._last_time >= self.every.seconds

    def save(
        self,
        step: int,
        state: State,
        solver: Mapping[str, np.ndarray],
        carried: dict[str, Any],
        rows: Mapping[str, np.ndarray],
    ) -> None:
        """Write a checkpoint after a step, and remove those before the last two; nothing where there is no folder.

        Raises
        ------
        OSError
            The disk is full, or the folder is gone.
        """
        if self.folder is None:
            return
        self.folder.mkdir(exist_ok=True)
        tables = {}
        for name, table in rows.items():
            file = self._rows.setdefault(name, _RowFile(self.folder / f"{name}.rows"))
            tables[name] = file.extend(table)
        meta = {"step": step, "carried": carried, "tables": tables}
        arrays = {f"state/{name}": value for name, value in state.arrays().items()}
        arrays |= {f"solver/{name}": value for name, value in solver.items()}
        content = io.BytesIO()
        np.savez(content, allow_pickle=False, meta=np.frombuffer(json.dumps(meta).encode(), dtype=np.uint8), **arrays)
        data = content.getvalue()
        path = self.folder / _name(step)
        with replacing(path) as temporary, temporary.open("wb") as target:
            target.write(stamped(data))
            target.flush()
            os.fsync(target.fileno())
        for old in found_checkpoints(self.folder.parent)[_KEPT:]:
            old.unlink(missing_ok=True)
        self._last_step, self._last_time = step, self.clock()


class _RowFile:
    """Rows of a table as float64, one after the other; written rows never change.

    Parameters
    ----------
    path : Path
        File.
    rows : ndarray, (n, n_columns), optional
        Rows that it has already.
    """

    def __init__(self, path: Path, rows: np.ndarray | None = None) -> None:
        self.path = path
        self._count, self._bytes, self._digest = 0, 0, hashlib.blake2b(digest_size=32)
        if rows is not None:
            self._take(rows)

    def _take(self, rows: np.ndarray) -> bytes:
        data = rows.astype("<f8", copy=False).tobytes()
        self._digest.update(data)
        self._count, self._bytes = self._count + len(rows), self._bytes + len(data)
        return data

    def extend(self, rows: np.ndarray) -> dict[str, Any]:
        """Write the rows that are not there yet; return number, columns and digest of all."""
        place, columns = self._bytes, rows.shape[1]
        data = self._take(rows[self._count :])
        with named_errors(self.path):
            handle = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o666)
            try:
                rest = memoryview(data)
                while rest:
                    written = os.pwrite(handle, rest, place)
                    rest, place = rest[written:], place + written
                os.fsync(handle)
            finally:
                os.close(handle)
        return {"rows": self._count, "columns": columns, "digest": self._digest.hexdigest()}


def stamped(data: bytes) -> bytes:
    """Put the first line before what a checkpoint holds: its version and its digest."""
    return f"{_MAGIC} {VERSION} {digest_of(data)}\n".encode() + data


def found_checkpoints(folder: Path) -> list[Path]:
    """Files of the checkpoints of a run folder, the newest first."""
    return sorted((folder / FOLDER).glob("step_*.checkpoint"), reverse=True)


def remove_checkpoints(folder: Path) -> None:
    """Remove the checkpoints of a run folder, which is complete."""
    shutil.rmtree(folder / FOLDER, ignore_errors=True)


def read_checkpoint(path: Path) -> Checkpoint:
    """Read a checkpoint and the rows that belong to it.

    Raises
    ------
    InputError
        Not a checkpoint, of another version, or damaged.
    """
    try:
        head, _, data = path.read_bytes().partition(b"\n")
        words = head.decode("ascii").split()
        if " ".join(words[:2]) != _MAGIC or len(words) != 4:
            raise ValueError("it is no checkpoint")
        if words[2] != str(VERSION):
            raise ValueError(f"it has version {words[2]}, this femsim reads {VERSION}")
        if words[3] != digest_of(data):
            raise ValueError("its digest does not fit, so it is damaged")
        arrays = unpack_npz(io.BytesIO(data), len(data))
        meta = parse_json(arrays.pop("meta").tobytes().decode("utf-8"))
        rows = {name: _read_rows(path.with_name(f"{name}.rows"), table) for name, table in meta["tables"].items()}
        state = State.from_arrays(below(arrays, "state"))
        return Checkpoint(meta["step"], state, below(arrays, "solver"), meta["carried"], rows)
    except (OSError, ValueError, TypeError, KeyError, EOFError, BadZipFile) as error:
        raise InputError(f"the checkpoint {path} cannot be used ({error}).") from error


def _read_rows(path: Path, table: Mapping[str, Any]) -> np.ndarray:
    count, columns = int(table["rows"]), int(table["columns"])
    with path.open("rb") as file:
        data = file.read(8 * count * columns)
    if len(data) != 8 * count * columns or digest_of(data) != table["digest"]:
        raise ValueError(f"the rows in {path.name} are damaged")
    return np.frombuffer(data, dtype="<f8").reshape(count, columns)


def _name(step: int) -> str:
    return f"step_{step:09d}.checkpoint"

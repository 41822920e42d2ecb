"""Prescribed motion and time profiles: what a robot arm or an actuator does, given from outside."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

import foreign
from femsim.base.errors import InputError
from femsim.base.rotations import (
    quaternion_from_vector,
    quaternion_multiply,
)
from foreign.text import read_text

#: Paths that go farther, m, or take longer, s, are refused; and those of more columns.
FARTHEST, MOST_COLUMNS = 1e6, 1000


def _key_frames(what: str, times: Sequence[float], values: Sequence[object], width: int | None) -> tuple[np.ndarray, np.ndarray]:
    t = np.asarray(times, dtype=np.float64)
    x = np.asarray(values, dtype=np.float64)
    shape = (len(t),) if width is None else (len(t), width)
    if t.ndim != 1 or len(t) < 1 or x.shape != shape:
        one = "one value" if width is None else f"one row of {width} numbers"
        raise InputError(f"{what}: {len(t)} times and values of shape {x.shape}; allowed is {one} for each time.")
    if not (np.all(np.isfinite(t)) and np.all(np.isfinite(x))):
        raise InputError(f"{what}: a time or value is not finite; remove or repair that key frame.")
    if np.any(np.diff(t) <= 0):
        bad = int(np.flatnonzero(np.diff(t) <= 0)[0]) + 1
        raise InputError(f"{what}: time {t[bad]} s (entry {bad}) does not lie after {t[bad - 1]} s; times must increase.")
    return t, x


class Profile:
    """Scalar function of time through key values, e.g. a gripping force.

    Parameters
    ----------
    times : sequence of float, s
        Increasing.
    values : sequence of float
        Value at each time (N for a force, m for a position); constant before the first and after the last.
    smooth : bool
        Ease in and out of every key value (cubic with zero slope there); otherwise straight lines.
    name : str
        Name by which :meth:`femsim.run.simulation.Simulation.set` finds all that it drives.

    Raises
    ------
    InputError
        Times that do not increase, wrong sizes or values that are not finite.
    """

    def __init__(self, times: Sequence[float], values: Sequence[float], *, smooth: bool = True, name: str = "") -> None:
        self.name = name
        self.times, self.values = _key_frames("Profile", times, values, None)
        self._cubics = _eased(self.times, self.values) if smooth and len(self.times) > 1 else []
        self._starts: list[float] = self.times[:-1].tolist()

    def __repr__(self) -> str:
        keys = ", ".join(f"{value:g} at {time:g} s" for time, value in zip(self.times, self.values, strict=True))
        return f"<Profile {keys}>"

    def __call__(self, t: float) -> float:
        """Value at time t (s)."""
        t = float(min(max(t, self.times[0]), self.times[-1]))
        if not self._cubics:
            return float(np.interp(t, self.times, self.values))
        piece = bisect_right(self._starts, t) - 1
        value, square, cube = self._cubics[piece]
        s = t - self._starts[piece]
        return value + square * (s * s) + cube * (s * s * s)


def _eased(times: np.ndarray, values: np.ndarray) -> list[tuple[float, float, float]]:
    """Cubic from each key frame to the next that starts and ends at rest: factors of 1, s^2 and s^3, s from its start."""
    span = np.diff(times)
    slope = np.diff(values) / span
    bend = -2.0 * slope / span
    return list(zip(values[:-1].tolist(), (slope / span - bend).tolist(), (bend / span).tolist(), strict=True))


class Motion:
    """Rigid motion through key frames, relative to where the body starts.

    Parameters
    ----------
    times : sequence of float, s
        Increasing.
    displacements : sequence of (3,) float, m
        Displacement from the start pose, world frame, at each time.
    rotations : sequence of (3,) float, rad, optional
        Rotation vector from the start pose, world frame, at each time.
    smooth : bool
        Ease in and out of every key frame; otherwise constant speed between them.
    name : str
        Name by which :meth:`femsim.run.simulation.Simulation.set` finds all that it drives.

    Raises
    ------
    InputError
        Times that do not increase, wrong sizes or values that are not finite.
    """

    def __init__(
        self,
        times: Sequence[float],
        displacements: Sequence[Sequence[float]],
        rotations: Sequence[Sequence[float]] | None = None,
        *,
        smooth: bool = True,
        name: str = "",
    ) -> None:
        self.name = name
        t, x = _key_frames("Motion displacements", times, displacements, 3)
        r = np.zeros_like(x) if rotations is None else _key_frames("Motion rotations", times, rotations, 3)[1]
        self._displacement = [Profile(list(t), list(x[:, i]), smooth=smooth) for i in range(3)]
        self._rotation = [Profile(list(t), list(r[:, i]), smooth=smooth) for i in range(3)]

    def __call__(self, t: float) -> tuple[np.ndarray, np.ndarray]:
        """Displacement (3,), m, and rotation vector (3,), rad, from the start pose at time t (s)."""
        return np.array([p(t) for p in self._displacement]), np.array([p(t) for p in self._rotation])


def load_path(file: str | Path, *, dt: float = 0.01) -> tuple[np.ndarray, np.ndarray]:
    """Read a path of positions, e.g. of a robot's end-effector.

    Columns are separated by commas or blanks. Allowed are one number a line (x, y, z in turn), three columns (x, y, z), four
    columns (time, x, y, z), or any columns under a header line that names ``time_s`` and three that end in ``x_m``, ``y_m`` and
    ``z_m``.

    Parameters
    ----------
    file : path
        Text file; lengths in metres, times in seconds.
    dt : float, s
        Time from row to row where the file has no times: row k, from 0, is then reached at (k + 1) dt.

    Returns
    -------
    times : ndarray, (n,), s
        Increasing and greater than 0.
    positions : ndarray, (n, 3), m
        Position at each time.

    Raises
    ------
    InputError
        A file that cannot be read, wrong columns, a number that is not finite, or times that do not increase.
    """
    if not (np.isfinite(dt) and dt > 0):
        raise InputError(f"path {file}: dt is {dt!r} s; allowed are positive numbers.")
    try:
        lines = read_text(Path(file)).splitlines()
    except (OSError, foreign.Refused) as error:
        raise InputError(f"path {file} cannot be read ({error}); give a text file of positions.") from error
    rows = [(number, line.replace(",", " ").split()) for number, line in enumerate(lines, 1)]
    rows = [(number, words) for number, words in rows if words]
    if not rows:
        raise InputError(f"path {file} is empty; give one row of x, y, z a step.")
    columns = _path_columns(file, rows[0][1])
    if not _are_numbers(rows[0][1]):
        del rows[0]
    width = len(rows[0][1]) if rows else 0
    if rows and columns is not None and max(column for column in columns if column is not None) >= width:
        raise InputError(f"path {file}: line {rows[0][0]} has {width} numbers, fewer than its header names.")
    if width > MOST_COLUMNS:
        raise InputError(f"path {file} has {width} columns; at most {MOST_COLUMNS} are read.")
    values = np.empty((len(rows), width))
    for row, (number, words) in enumerate(rows):
        if len(words) != width or not _are_numbers(words):
            raise InputError(
                f"path {file}: line {number} is {' '.join(words[:20])[:60]!r}; allowed are {width} numbers as in the others."
            )
        values[row] = [float(word) for word in words]
        if not np.all(np.isfinite(values[row])):
            raise InputError(f"path {file}: line {number} is {' '.join(words)[:60]!r}; every number must be finite, repair it.")
    if len(values) and np.abs(values).max() > FARTHEST:
        raise InputError(
            f"path {file} reaches {np.abs(values).max():.3g}; at most {FARTHEST:g} m or s are allowed, check the units."
        )
    if columns is None:
        if len(values) % 3 or not len(values):
            raise InputError(f"path {file} has {len(values)} lines of one number; x, y, z in turn need a multiple of three.")
        values, columns = values.reshape(-1, 3), (None, 0, 1, 2)
    if len(values) < 2:
        raise InputError(f"path {file} has {len(values)} rows; a path needs at least two.")
    time, *place = columns
    times = dt * np.arange(1, len(values) + 1) if time is None else values[:, time]
    bad = np.flatnonzero(np.diff(times, prepend=0.0) <= 0)
    if len(bad):
        before = times[bad[0] - 1] if bad[0] else 0.0
        raise InputError(
            f"path {file}: time {times[bad[0]]:g} s of row {bad[0] + 1} does not lie after {before:g} s; times must increase."
        )
    return times, values[:, place]


def _are_numbers(words: Sequence[str]) -> bool:
    try:
        [float(word) for word in words]
    except ValueError:
        return False
    return True


def _path_columns(file: str | Path, words: Sequence[str]) -> tuple[int | None, int, int, int] | None:
    """Columns of time (None: none), x, y, z by the first line of a path; None for one number a line."""
    if _are_numbers(words):
        if len(words) not in (1, 3, 4):
            raise InputError(
                f"path {file} has {len(words)} columns; allowed are 1 (x, y, z in turn), 3 (x, y, z), 4 (time, x, y, z), or a "
                "header line that names them."
            )
        return {1: None, 3: (None, 0, 1, 2), 4: (0, 1, 2, 3)}[len(words)]
    found = [[k for k, word in enumerate(words) if word.endswith(end)] for end in ("x_m", "y_m", "z_m")]
    if any(len(k) != 1 for k in found):
        raise InputError(
            f"path {file}: its header is {' '.join(words)[:80]!r}; one column must end in 'x_m', one in 'y_m', one in 'z_m'."
        )
    return (words.index("time_s") if "time_s" in words else None), found[0][0], found[1][0], found[2][0]


PoseFunction = Callable[[float], tuple[np.ndarray, np.ndarray]]


def driven_pose(q0: np.ndarray, motion: PoseFunction, t: float) -> tuple[np.ndarray, np.ndarray]:
    """Position (3,), m, and quaternion (4,) of a base that starts at q0 and follows a motion."""
    displacement, rotation = motion(t)
    return q0[:3] + displacement, quaternion_multiply(quaternion_from_vector(rotation), q0[3:7])

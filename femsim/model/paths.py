"""Paths of robots: poses over time from a file, checked, and turned into a motion that follows them without easing."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from femsim.base.errors import InputError, did_you_mean, naming_all_parameters, naming_parameters
from femsim.base.place import data_folder
from femsim.base.rotations import (
    quaternion_conjugate,
    quaternion_from_vector,
    quaternion_multiply,
    quaternion_to_matrix,
    vector_from_quaternion,
)
from femsim.base.units import TIME_UNITS, UNITS, plain_unit
from femsim.model.path_files import ORIENTATIONS, WORDS, Asked, RawPath, may_be_ms, one_of, read_path, read_turns

#: Positions beyond this, m, are taken for a wrong unit where nothing states it; those beyond the second are refused. Longest, s.
_REACH, FARTHEST, _LATEST = 20.0, 1e6, 1e6
#: A jump is this many times as fast as the steps around it, this many rows each side; it takes less time than this, s, and goes
#: farther than this, m and rad.
_TIMES_FASTER, _AROUND, _LONGEST_JUMP, _LEAST_WAY = 10.0, 4, 0.1, (1e-3, 0.02)
#: Most rows of a log that lie elsewhere by a fault, and are none of a jump that stays.
_MOST_OUT = 2
#: Largest part of a rotation vector, rad.
_MOST_TURNED = 1e4
#: How far a quaternion may be from length 1, or a matrix from a rotation: files have some digits only.
_ROUGH = 1e-2


@naming_all_parameters
@dataclass(frozen=True, eq=False, repr=False)
class ToolPath:
    """Poses of a robot's tool over time: of a file by :func:`load_path`, of a formula by ``fs.ToolPath(name, times, positions)``.

    Attributes
    ----------
    source : str
        File, or what messages call it.
    times : ndarray, (n,), s
        From the first pose, increasing from 0.
    positions : ndarray, (n, 3), m
        In the frame of the world, see ``base`` of :func:`load_path`.
    quaternions : ndarray, (n, 4), optional
        Unit quaternions w, x, y, z that turn from the tool to the world; a change of sign between neighbours, which is no turn,
        is taken out. None where there are no orientations.
    clock : float, s
        Time of the first pose on the clock of the file; 0 where it has none.
    words : str
        How the file was read: units, orientations, frame.
    notes : tuple of str
        What a reader should know: gaps, columns that were not read.

    Raises
    ------
    InputError
        Another shape, numbers that are not finite, times that do not increase from 0, quaternions that are none.
    """

    source: str
    times: np.ndarray
    positions: np.ndarray
    quaternions: np.ndarray | None = None
    clock: float = 0.0
    words: str = ""
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        given = {"times": self.times, "positions": self.positions, "quaternions": self.quaternions}
        n = np.size(self.times)
        for name, shape in (("times", (n,)), ("positions", (n, 3)), ("quaternions", (n, 4))):
            if given[name] is None:
                continue
            value = np.asarray(given[name], dtype=np.float64)
            if n < 2 or value.shape != shape or not np.isfinite(value).all():
                raise InputError(
                    f"path {self.source}: {name} has the shape {value.shape}, {int(np.isfinite(value).sum())} of its "
                    f"{value.size} numbers finite; allowed are finite numbers of the shape {shape} for {n} times, at least two."
                )
            object.__setattr__(self, name, value)
        if self.times[0] != 0.0 or (np.diff(self.times) <= 0.0).any():
            raise InputError(f"path {self.source}: times begin at {self.times[0]:g} s; they must increase, from 0 on.")
        if self.quaternions is None:
            return
        if np.abs(np.linalg.norm(self.quaternions, axis=1) - 1.0).max() > 1e-6:
            raise InputError(f"path {self.source}: quaternions must have the length 1; divide them by their length.")
        object.__setattr__(self, "quaternions", _steady(self.quaternions))

    def __repr__(self) -> str:
        way = np.linalg.norm(np.diff(self.positions, axis=0), axis=1)
        fastest = float((way / np.diff(self.times)).max())
        lines = [f"{self.source}: {len(self.times)} poses in {self.duration:g} s, {way.sum():.4g} m, at most {fastest:.3g} m/s"]
        return f"<ToolPath {'; '.join([*lines, *filter(None, [self.words]), *self.notes])}>"

    @property
    def duration(self) -> float:
        """Time from the first pose to the last, s."""
        return float(self.times[-1])

    @property
    def start(self) -> tuple[np.ndarray, np.ndarray]:
        """First pose, to put a body there: position (3,), m, and rotation vector (3,), rad."""
        turn = np.zeros(3) if self.quaternions is None else vector_from_quaternion(self.quaternions[0])
        return self.positions[0].copy(), turn

    def motion(
        self, *, start: float = 0.0, centre: Sequence[float] | None = None, spline: bool = True, name: str = ""
    ) -> PathMotion:
        """Make the motion that follows the path from where a body starts, without easing at each pose.

        Between poses it is a cubic spline. Straight lines change the speed at each pose at once: what a mount or a wrist bears
        jumps there, the more the smaller dt is. Before ``start`` it rests at the first pose, after its end at the last.

        Parameters
        ----------
        start : float, s
            When it leaves the first pose.
        centre : (3,) float, m, optional
            Centre of what follows it, at its start, beside a tool that stands at the first position of the path: where the tool
            turns, it goes round it. Default: the tool is the centre. Centres are those that motions turn about: the centre of
            mass of a driven body, the mean of held nodes, the end of a rod.
        spline : bool
            False: straight between poses, at constant speed, on the shortest turn.
        name : str
            Name by which :meth:`femsim.run.simulation.Simulation.set` finds all that it drives.

        Returns
        -------
        PathMotion
            For ``scene.drive``, ``scene.hold`` and ``fs.RodEnd``.

        Raises
        ------
        InputError
            A time or a centre that is not finite.
        """
        arm = np.zeros(3) if centre is None else np.asarray(centre, dtype=np.float64) - self.positions[0]
        if arm.shape != (3,) or not np.isfinite(arm).all() or not math.isfinite(start):
            raise InputError(
                f"motion of path {self.source}: start is {start!r} s and centre {centre!r} m; both must be finite, centre (3,)."
            )
        return PathMotion(self, float(start), arm, spline, name)


class PathMotion:
    """Motion through the poses of a path, relative to the first; made by :meth:`ToolPath.motion`.

    Between poses are cubic splines of the position, at rest at both ends, and of the orientation; or the straight line and the
    shortest turn.
    """

    def __init__(self, path: ToolPath, start: float, arm: np.ndarray, spline: bool, name: str) -> None:
        self.name = name
        self._path, self._arm = path, arm
        self._times: list[float] = (start + path.times).tolist()
        self._way = path.positions - path.positions[0]
        turns = path.quaternions
        self._turns = None if turns is None else _multiply(turns, quaternion_conjugate(turns[0]))
        self._steps = None if turns is None else _turn_vectors(turns)
        self._curve = self._turning = None
        if spline:
            from scipy.interpolate import CubicSpline
            from scipy.spatial.transform import Rotation, RotationSpline

            self._curve = CubicSpline(path.times, self._way, bc_type="clamped")
            if self._turns is not None:
                self._turning = RotationSpline(path.times, Rotation.from_quat(self._turns[:, [1, 2, 3, 0]]))

    def __repr__(self) -> str:
        return f"<motion along {self._path!r}>"

    def __call__(self, t: float) -> tuple[np.ndarray, np.ndarray]:
        """Displacement (3,), m, and rotation vector (3,), rad, from the start pose at time t (s)."""
        times = self._times
        k = min(max(bisect_right(times, t) - 1, 0), len(times) - 2)
        part = min(max((t - times[k]) / (times[k + 1] - times[k]), 0.0), 1.0)
        between = 0.0 < part < 1.0
        way = (1.0 - part) * self._way[k] + part * self._way[k + 1]  # the ends exactly
        if between and self._curve is not None:
            way = self._curve(t - times[0])
        if self._turns is None or self._steps is None:
            return way, np.zeros(3)
        turn = quaternion_multiply(quaternion_from_vector(part * self._steps[k]), self._turns[k])
        if between and self._turning is not None:
            turn = np.roll(self._turning(t - times[0]).as_quat(), 1)
        return way + quaternion_to_matrix(turn) @ self._arm - self._arm, vector_from_quaternion(turn)


@partial(naming_parameters, at_once=True)
def load_path(
    file: str | Path,
    *,
    dt: float = 0.01,
    orientation: str | None = None,
    orientations: str | Path | None = None,
    columns: Sequence[str] | None = None,
    time: str | None = None,
    time_unit: str | None = None,
    length: str | None = None,
    angle: str | None = None,
    topic: str | None = None,
    base: tuple[Sequence[float], Sequence[float]] | None = None,
    max_speed: float = 5.0,
    max_turn: float = 20.0,
    jumps: bool = False,
) -> ToolPath:
    """Read a path of positions or poses that a robot wrote.

    Text tables of any layout (commas, semicolons, tabs or blanks, a preamble, a decimal comma), files of one number a line, and
    ROS bags (.mcap, .bag, the folder of a rosbag2; needs ``pip install "femsim[logs]"``) with PoseStamped, TransformStamped or
    Odometry. Columns of a table are recognised by the names in its header ("time_s", "ee_x_m", "Z (mm)", "qw",
    "pose.orientation.x", "r11" ... "r33"), or counted where it has none: x, y, z, then the orientation; the time, if any, first.

    Parameters
    ----------
    file : path
        The file, or the name of one in ``data/trajectories``, e.g. "arm7_lift.csv".
    dt : float, s
        Time from row to row where the file has no times.
    orientation : {"wxyz", "xyzw", "vector", "matrix", "pose_rows", "pose_columns"}, optional
        How orientations are written: quaternions with w first or last, rotation vectors, rotation matrices by rows, or matrices
        (4, 4) of the whole pose by rows or by columns (libfranka's ``O_T_EE``). Not needed where a header names the parts of a
        quaternion or matrix, nor for bags. Euler angles are not read.
    orientations : path, optional
        A second file with the orientations of the poses alone.
    columns : sequence of str, optional
        Names of the columns in this order: x, y, z and those of the orientation; or the 16 of a matrix.
    time : str, optional
        Name of the time column. Default: the first with a name of time ("time", "t", "header.stamp" ...).
    time_unit : str, optional
        Unit of the times, "s", "ms", "us", "ns", "min" or "h". Default: that in the header, else s.
    length : {"m", "mm", "cm", "um", "in"}, optional
        Unit of the positions. Default: that in the header, else m.
    angle : {"rad", "deg"}, optional
        Unit of rotation vectors. Default: that in the header, else rad.
    topic : str, optional
        Topic of a bag, where several have poses.
    base : ((3,) float, (3,) float), m and rad, optional
        Where the frame of the file is in the world, e.g. the base of the robot: position and rotation vector.
    max_speed, max_turn : float, m/s and rad/s
        Largest speed and turning rate between poses; a path that is faster is refused.
    jumps : bool
        Whether a step ten times as fast as those around it, also out and back, is accepted; otherwise it is refused as a fault
        of the log.

    Returns
    -------
    ToolPath
        Poses in the world, in SI units; ``path.motion()`` is what ``scene.drive`` takes.

    Raises
    ------
    InputError
        A file that cannot be read, wrong columns, units or orientations, a number that is not finite, times that do not increase,
        a path that is too fast or jumps: with the line and the time.
    """
    file = shipped_path(file)
    _check_options(file, dt, orientation, {"length": length, "angle": angle, "time": time_unit}, (max_speed, max_turn))
    raw = read_path(file, Asked(orientation if orientations is None else None, columns, time, time_unit, topic))
    if len(raw.places) < 2:
        raise InputError(f"path {file} has {len(raw.places)} rows; a path needs at least two.")
    turns, kind = raw.turns, raw.orientation
    if orientations is not None:
        turns, kind = read_turns(Path(orientations), orientation)
        if len(turns) != len(raw.places):
            raise InputError(f"path {file} has {len(raw.places)} positions, but {orientations} has {len(turns)} orientations.")
    times = dt * np.arange(len(raw.places)) if raw.times is None else raw.times
    rows = _Rows(file, times, raw)
    rows.check_times()
    unit, angle = length or raw.unit, angle or raw.angle
    positions = UNITS["length"][plain_unit(unit or "m")] * raw.places
    rows.check_reach(positions, bool(unit))
    quaternions = None if turns is None else rows.quaternions(turns, kind, angle)
    positions, quaternions = _placed(file, base, positions, quaternions)
    notes = rows.check_steps(positions, quaternions, max_speed, max_turn, jumps)
    ways = [(np.linalg.norm(np.diff(positions, axis=0), axis=1), max_speed)]
    if quaternions is not None:
        ways.append((np.linalg.norm(_turn_vectors(quaternions), axis=1), max_turn))
    on_times = raw.on_times if may_be_ms(times, *ways) else ()
    written = WORDS.get(raw.orientation if orientations is None else kind, "no orientations")
    if raw.by_name and orientations is None and raw.orientation == "wxyz":
        written = "quaternions by name"
    words = [f"lengths in {unit or 'm'}", written]
    words.append(f"frame {raw.frame!r}" if raw.frame else "frame of the file")
    words[-1] += " is the world" if base is None else f" stands at {list(base[0])} m, turned by {list(base[1])} rad, in the world"
    words += [f"no time column: rows are dt = {dt:g} s apart"] if raw.times is None else []
    return ToolPath(str(file), times, positions, quaternions, raw.clock, ", ".join(words), (*raw.notes, *on_times, *notes))


def shipped_path(file: str | Path) -> Path:
    """File of a path: one of your own, or one that comes with femsim."""
    own, ours = Path(file), data_folder("trajectories") / file
    return ours if not own.exists() and ours.is_file() else own


def _check_options(
    file: Path, dt: float, orientation: str | None, units: dict[str, str | None], limits: tuple[float, float]
) -> None:
    if isinstance(dt, bool) or not (math.isfinite(dt) and dt > 0):
        raise InputError(f"path {file}: dt is {dt!r} s; allowed are positive numbers.")
    if orientation is not None and orientation not in ORIENTATIONS:
        raise InputError(f"path {file}: orientation {orientation!r} is unknown{did_you_mean(str(orientation), ORIENTATIONS)}")
    for kind, unit in units.items():
        known, option = (TIME_UNITS, "time_unit") if kind == "time" else (UNITS[kind], kind)
        if unit is not None and plain_unit(str(unit)) not in known:
            raise InputError(f"path {file}: {option} is {unit!r}; allowed are {', '.join(known)}.")
    if not all(limit > 0 for limit in limits):
        raise InputError(f"path {file}: max_speed is {limits[0]!r} m/s and max_turn {limits[1]!r} rad/s; both must be positive.")


@dataclass(frozen=True)
class _Rows:
    """Rows of a file with their lines and times, to check what they hold and to say where."""

    file: Path
    times: np.ndarray
    raw: RawPath

    def at(self, k: int) -> str:
        """Say where row k is."""
        stamp = f"{self.times[k]:.6g} s" if not self.raw.clock else f"{self.times[k]:.6g} s after the first"
        return f"{self.raw.word} {self.raw.lines[k]} ({stamp})"

    def check_times(self) -> None:
        bad = np.flatnonzero(np.diff(self.times) <= 0)
        if len(bad):
            k = int(bad[0]) + 1
            kind = "repeats the time of" if self.times[k] == self.times[k - 1] else "lies before"
            raise InputError(
                f"path {self.file}: {self.at(k)} {kind} {self.at(k - 1)}, {one_of(len(bad))}; times must increase: "
                "sort the file, or remove what repeats."
            )
        if not self.times[-1] <= _LATEST:
            raise InputError(
                f"path {self.file} lasts {self.times[-1]:.3g} s; at most {_LATEST:g} s are allowed, so check the unit: time_unit="
                "'ms', 'us' or 'ns'."
            )

    def check_reach(self, positions: np.ndarray, stated: bool) -> None:
        far = np.abs(positions).max(axis=1)
        k = int(far.argmax())
        if far[k] > FARTHEST:
            raise InputError(f"path {self.file} reaches {far[k]:.3g} m in {self.at(k)}; at most {FARTHEST:g} m, check the units.")
        if far[k] > _REACH and not stated:
            raise InputError(
                f"path {self.file} reaches {far[k]:.3g} in {self.at(k)}, and nothing states the unit; say length='mm', or 'm' if "
                "it is so far."
            )

    def quaternions(self, turns: np.ndarray, kind: str, angle: str) -> np.ndarray:
        """Make unit quaternions (n, 4), w first, of what a file has, without a change of sign between neighbours."""
        from scipy.spatial.transform import Rotation  # slow to import

        if kind == "vector":
            turns = UNITS["angle"][plain_unit(angle or "rad")] * turns
            size = np.abs(turns).max(axis=1)
            k = int(size.argmax())
            if size[k] > _MOST_TURNED:
                raise InputError(f"path {self.file}: {self.at(k)} is turned by {size[k]:.3g} rad; at most {_MOST_TURNED:g} rad.")
            if size[k] > 2.0 * math.pi + _ROUGH and not angle:
                raise InputError(
                    f"path {self.file}: {self.at(k)} is turned by {size[k]:.3g} rad, more than a full turn; say angle='deg', or "
                    "'rad' if it is so."
                )
            found = Rotation.from_rotvec(turns)
        elif kind in ("wxyz", "xyzw"):
            with np.errstate(over="ignore"):
                size = np.linalg.norm(turns, axis=1)
            bad = np.flatnonzero(~(np.abs(size - 1.0) <= _ROUGH))
            if len(bad):
                raise InputError(
                    f"path {self.file}: the quaternion of {self.at(int(bad[0]))} has length {size[bad[0]]:.4g}; allowed is 1, so "
                    "check the columns and their order."
                )
            found = Rotation.from_quat(turns[:, [1, 2, 3, 0]] if kind == "wxyz" else turns)
        else:
            matrices = turns.reshape(-1, 3, 3)
            with np.errstate(over="ignore", invalid="ignore"):
                off = np.abs(matrices @ matrices.transpose(0, 2, 1) - np.eye(3)).max(axis=(1, 2))
                off = np.where(np.linalg.det(matrices) > 0, off, np.inf)
            bad = np.flatnonzero(~(off <= _ROUGH))
            if len(bad):
                raise InputError(
                    f"path {self.file}: the matrix of {self.at(int(bad[0]))} is no rotation: its rows must be unit vectors, "
                    "right-handed and at right angles; check their order ('pose_rows' or 'pose_columns')."
                )
            found = Rotation.from_matrix(matrices)
        return _steady(found.as_quat()[:, [3, 0, 1, 2]])

    def check_steps(
        self, positions: np.ndarray, quaternions: np.ndarray | None, max_speed: float, max_turn: float, jumps: bool
    ) -> tuple[str, ...]:
        """Refuse steps and turns that are too fast, and jumps; return notes about gaps."""
        spans = np.diff(self.times)
        ways = [(np.diff(positions, axis=0), max_speed, "m", "max_speed", "moves")]
        if quaternions is not None:
            ways.append((_turn_vectors(quaternions), max_turn, "rad", "max_turn", "turns"))
        for (steps, limit, unit, option, verb), least in zip(ways, _LEAST_WAY, strict=False):
            way = np.linalg.norm(steps, axis=1)
            with np.errstate(over="ignore"):
                speed = way / spans
            fast = np.flatnonzero(~(speed <= limit))
            if len(fast):
                k = int(fast[0])
                raise InputError(
                    f"path {self.file} {verb} by {way[k]:.4g} {unit} from {self.at(k)} to {self.at(k + 1)}, at {speed[k]:.4g} "
                    f"{unit}/s, {one_of(len(fast))}; allowed are {limit:g} {unit}/s. Check units and dt, remove "
                    f"what is wrong, or give {option}=."
                )
            found, back = _jumps(steps, spans, least), _outliers(steps, spans, 2.0 * least)
            if (len(found) or len(back)) and not jumps:
                k = min([*found.tolist(), *back.tolist()])
                again = " and back at once" if k in back else ""
                found = np.union1d(found, back)
                raise InputError(
                    f"path {self.file} jumps by {way[k]:.4g} {unit} from {self.at(k)} to {self.at(k + 1)}{again}, ten times as "
                    f"fast as around it, {one_of(len(found))}; remove what is wrong, or say jumps=True if the robot "
                    "did so."
                )
        usual = float(np.median(spans))
        gaps = np.flatnonzero(spans > 10.0 * usual)
        return tuple(f"no pose from {self.at(k)} to {self.at(k + 1)}: straight there" for k in gaps[:3].tolist())


def _jumps(steps: np.ndarray, spans: np.ndarray, least: float) -> np.ndarray:
    """Which short steps, (n, 3), are far faster than those around them."""
    way, around = np.linalg.norm(steps, axis=1), _fastest_around(steps, spans, ())
    return np.flatnonzero((way > _TIMES_FASTER * around * spans) & (way > least) & (spans < _LONGEST_JUMP))


def _outliers(steps: np.ndarray, spans: np.ndarray, least: float) -> np.ndarray:
    """Which of these steps lead to one row, or to two, from where the path comes back at once: faults of a log as well."""
    way, found = np.linalg.norm(steps, axis=1), np.zeros(len(steps), dtype=np.bool_)
    for more in range(1, _MOST_OUT + 1):
        n = max(len(steps) - more, 0)
        around = np.maximum(_fastest_around(steps, spans, (more,))[:n], _fastest_around(steps, spans, (-more,))[more:])
        least_way, span = np.minimum(way[:n], way[more:]), np.maximum(spans[:n], spans[more:])
        rest = np.linalg.norm(sum(steps[k : n + k] for k in range(more + 1)), axis=1)
        found[:n] |= (
            (least_way > np.maximum(_TIMES_FASTER * around * span, least)) & (rest < 0.5 * least_way) & (span < _LONGEST_JUMP)
        )
    return np.flatnonzero(found)


def _fastest_around(steps: np.ndarray, spans: np.ndarray, without: tuple[int, ...]) -> np.ndarray:
    """Largest speed of the steps around each, but for itself and those so many places from it; infinite in short paths."""
    n = len(steps)
    if n < 2 * _AROUND:
        return np.full(n, np.inf)
    with np.errstate(over="ignore"):
        padded = np.pad(np.linalg.norm(steps, axis=1) / spans, _AROUND, constant_values=0.0)
    return np.asarray(
        np.max([padded[_AROUND + s : _AROUND + s + n] for s in range(-_AROUND, _AROUND + 1) if s not in (0, *without)], axis=0)
    )


def _placed(
    file: Path,
    base: tuple[Sequence[float], Sequence[float]] | None,
    positions: np.ndarray,
    quaternions: np.ndarray | None,
) -> tuple[np.ndarray, np.ndarray | None]:
    """Bring poses from the frame of the file to the world."""
    if base is None:
        return positions, quaternions
    try:
        place, vector = (np.array(given, dtype=np.float64) for given in base)
    except (TypeError, ValueError):
        place = vector = np.full(1, np.nan)
    if place.shape != (3,) or vector.shape != (3,) or not np.isfinite([place, vector]).all():
        raise InputError(f"path {file}: base is {base!r}; give a position (3,), m, and a rotation vector (3,), rad.")
    turn = quaternion_from_vector(vector)
    turned = None if quaternions is None else _multiply(np.broadcast_to(turn, quaternions.shape), quaternions)
    return place + positions @ quaternion_to_matrix(turn).T, turned


def _steady(quaternions: np.ndarray) -> np.ndarray:
    """Return the same orientations, (n, 4), without a change of sign between neighbours."""
    flips = np.where(np.einsum("ij,ij->i", quaternions[1:], quaternions[:-1]) < 0, -1.0, 1.0)
    return np.asarray(quaternions * np.concatenate([[1.0], np.cumprod(flips)])[:, None])


def _multiply(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Products of quaternions (n, 4) with others, (n, 4) or one (4,)."""
    w, v = a[:, :1], a[:, 1:]
    b = np.broadcast_to(b, a.shape)
    x, u = b[:, :1], b[:, 1:]
    return np.concatenate([w * x - np.sum(v * u, axis=1, keepdims=True), w * u + x * v + np.cross(v, u)], axis=1)


def _turn_vectors(quaternions: np.ndarray) -> np.ndarray:
    """Rotation vectors (n - 1, 3), rad, world frame, from each quaternion to the next: the shortest, since no sign changes."""
    between = _multiply(quaternions[1:], quaternions[:-1] * np.array([1.0, -1.0, -1.0, -1.0]))
    size = np.linalg.norm(between[:, 1:], axis=1)
    scale = np.where(size > 1e-12, 2.0 * np.arctan2(size, between[:, 0]) / np.maximum(size, 1e-12), 2.0)
    return np.asarray(scale[:, None] * between[:, 1:])

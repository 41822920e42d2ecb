"""Paths of the joints of a robot: found for a tool that goes along a path, or read from a log of joint angles; both checked."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from femsim.base.errors import InputError, did_you_mean, naming_all_parameters
from femsim.base.rotations import (
    cross_matrix,
    quaternion_conjugate,
    quaternion_from_matrix,
    quaternion_from_vector,
    quaternion_multiply,
    quaternion_to_matrix,
    vector_from_quaternion,
)
from femsim.base.table import Table, read_table
from femsim.base.units import UNITS, plain_unit
from femsim.model.bodies.tree import TreeBody
from femsim.model.drives import Profile
from femsim.model.path_files import (
    check_double_times,
    finite_column,
    notes_on_times,
    notes_on_turns,
    one_of,
    time_or_none,
    times_of,
)
from femsim.model.paths import ToolPath, shipped_path
from femsim.model.robot_checks import three

#: What a tool may lack of its pose, m and rad, since axes in files are rounded and an arm of fewer than six joints cannot make up
#: for it; what it lacks with a word, and the steps of joints below which it gets no closer; the error, and the part of the last
#: one, that end the search.
_CLOSE, _SAID, _EXACT, _STILL = (1e-6, 1e-4), 1e-8, 1e-11, 0.99
#: Most steps for a pose; starts that are tried for the first one.
_MOST_STEPS, _STARTS = 200, 40
#: Length, m, by which a turn of 1 rad weighs; damping over the error; longest step of a joint, rad or m.
_LENGTH, _DAMPING, _LONGEST = 0.2, 1e-2, 0.3
#: Part of its range by which a joint that starts beyond it may be wrong, as logs are rounded; fastest plausible, m/s and rad/s.
_ROUGH, _FASTEST = 1e-4, (5.0, 20.0)


@naming_all_parameters
@dataclass(frozen=True, eq=False, repr=False)
class JointPath:
    """Positions of the joints of a robot over time.

    Attributes
    ----------
    source : str
        Where it is from.
    times : ndarray, (n,), s
        From the first row, increasing from 0.
    joints : dict of str to ndarray, (n,), rad or m
        Positions of each joint.
    notes : tuple of str
        What a reader should know.
    ranges : dict of str to (float, float), rad or m
        Least and largest position of joints that have ends.
    """

    source: str
    times: np.ndarray
    joints: Mapping[str, np.ndarray]
    notes: tuple[str, ...] = ()
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    def __repr__(self) -> str:
        speeds = {name: float(np.abs(np.diff(own) / np.diff(self.times)).max()) for name, own in self.joints.items()}
        fastest = max(speeds, key=lambda name: speeds[name])
        said = f"{self.source}: {len(self.times)} positions of {len(self.joints)} joints in {self.duration:g} s"
        return (
            f"<JointPath {'; '.join([said, f'{fastest} is the fastest, at most {speeds[fastest]:.3g} a second', *self.notes])}>"
        )

    @property
    def duration(self) -> float:
        """Time from the first row to the last, s."""
        return float(self.times[-1])

    @property
    def start(self) -> dict[str, float]:
        """First position of each joint, for ``scene.add_robot(..., joints=path.start)``."""
        return {name: float(own[0]) for name, own in self.joints.items()}

    def motion(self, joint: str, *, start: float = 0.0, spline: bool = True) -> Profile:
        """Make the motion of one joint for ``scene.drive_joint``, at rest before and after.

        It is a cubic spline through the rows; where that would leave the range of the joint, cubics that do not. Straight lines
        change the speed of the joint at each row at once: torques and wrist forces jump there, the more the smaller dt is.

        Parameters
        ----------
        joint : str
            Its name.
        start : float, s
            When it leaves its first position.
        spline : bool
            False: straight lines between the rows.

        Raises
        ------
        InputError
            No such joint.
        """
        if joint not in self.joints:
            raise InputError(f"{self.source} has no joint {joint!r}{did_you_mean(joint, list(self.joints))}")
        times, values = (start + self.times).tolist(), self.joints[joint].tolist()
        curve = Profile(times, values, smooth="spline" if spline else False)
        (low, high), (least, most) = self.ranges.get(joint, (-math.inf, math.inf)), curve.extremes()
        if spline and not low <= least <= most <= high:
            curve = Profile(times, values, smooth="monotone")
        return curve


@dataclass(frozen=True)
class Tool:
    """A point of a link that goes along a path.

    Attributes
    ----------
    link : int
        Number of the link.
    place, turn : ndarray, (3,) and (4,), m
        Pose of the tool in the frame of the link: position and quaternion.
    """

    link: int
    place: np.ndarray
    turn: np.ndarray

    def pose(self, body: TreeBody, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """World position (3,), m, and rotation (3, 3)."""
        rotation, origin = body.frame_pose(q, self.link)
        return origin + rotation @ self.place, rotation @ quaternion_to_matrix(self.turn)


class _Chain:
    """The joints of one coordinate between the base and a tool, and how they reach poses."""

    def __init__(self, what: str, body: TreeBody, tool: Tool) -> None:
        own = set(body.link_rows(tool.link).tolist())
        self.joints = [joint for joint in (body.joint(name) for name in body.joint_names()) if joint.row in own]
        if not self.joints:
            raise InputError(f"{what}: no joint of one coordinate moves link {body.links[tool.link]!r}; name one that moves.")
        self.what, self.body, self.tool = what, body, tool
        self.rows = np.array([joint.row for joint in self.joints])
        self.places = np.array([joint.coordinate for joint in self.joints])
        self.low, self.high = (np.array([joint.limits[k] for joint in self.joints]) for k in (0, 1))

    def lacks(self, q: np.ndarray, place: np.ndarray, turn: np.ndarray | None) -> np.ndarray:
        """Position (3,), m, and rotation vector (3,), rad, world, from the tool to a pose; no turn where none is asked for."""
        here, rotation = self.tool.pose(self.body, q)
        if turn is None:
            return place - here
        between = quaternion_multiply(turn, quaternion_conjugate(quaternion_from_matrix(rotation)))
        return np.concatenate([place - here, vector_from_quaternion(between)])

    def reach(self, q: np.ndarray, place: np.ndarray, turn: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        """Go from coordinates q to a pose by damped least squares within the limits; the coordinates and what lacks.

        Levenberg's damping goes with the square of what lacks, so the last steps are Newton's. A joint at a limit that would go
        beyond it stays there while the others move on.
        """
        q, weight = q.copy(), np.array([1.0, 1.0, 1.0, _LENGTH, _LENGTH, _LENGTH])
        error = self.lacks(q, place, turn)
        weight = weight[: len(error)]
        for _ in range(_MOST_STEPS):
            if np.abs(error).max() < _EXACT:
                break
            at, J = q[self.places], self._jacobian(q)[: len(error)] * weight[:, None]
            wanted, free = weight * error, np.ones(len(at), dtype=np.bool_)
            for _ in range(len(at)):
                G = J * free
                step = G.T @ np.linalg.solve(G @ G.T + (1e-14 + _DAMPING * wanted @ wanted) * np.eye(len(wanted)), wanted)
                stuck = free & (((at <= self.low) & (step < 0.0)) | ((at >= self.high) & (step > 0.0)))
                if not stuck.any():
                    break
                free &= ~stuck
            step *= min(1.0, _LONGEST / max(float(np.abs(step).max()), _LONGEST))
            new = q.copy()
            new[self.places] = np.clip(at + step, self.low, self.high)
            found = self.lacks(new, place, turn)
            no_closer = close(found) and float(np.abs(found).max()) > _STILL * float(np.abs(error).max())
            if np.array_equal(new, q) or (no_closer and float(np.abs(step).max()) < _SAID):
                break
            q, error = new, found
        return q, error

    def _jacobian(self, q: np.ndarray) -> np.ndarray:
        """Velocity of the tool and its angular velocity by the joints, (6, k)."""
        S = self.body.link_jacobian(q, self.tool.link)[:, self.rows]
        S[:3] -= cross_matrix(self.tool.pose(self.body, q)[0] - self.body.link_pose(q, self.tool.link)[1]) @ S[3:]
        return S

    def search(self, q: np.ndarray, place: np.ndarray, turn: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        """Go to a pose from q, or else from the best of some other places within the limits, always the same ones."""
        best = self.reach(q, place, turn)
        rng = np.random.default_rng(0)
        low, high = np.maximum(self.low, -math.pi), np.minimum(self.high, math.pi)
        for _ in range(_STARTS):
            if close(best[1]):
                break
            other = q.copy()
            other[self.places] = rng.uniform(low, high)
            found = self.reach(other, place, turn)
            best = min(best, found, key=lambda one: float(np.abs(one[1]).max()))
        return best

    def says(self, q: np.ndarray, error: np.ndarray) -> str:
        """Say what lacks, and which joints are at their limits."""
        said = f"the tool lacks {1e3 * float(np.linalg.norm(error[:3])):.3g} mm"
        if len(error) > 3:
            said += f" and {float(np.linalg.norm(error[3:])):.3g} rad"
        ends = [f"{joint.name} at {at:.4g}" for joint, at in zip(self.joints, q[self.places], strict=True) if at in joint.limits]
        return said + (
            f", with {', '.join(ends)} at the end of {'its range' if len(ends) == 1 else 'their ranges'}" if ends else ""
        )


def close(error: np.ndarray) -> bool:
    """Whether a pose is reached."""
    return all(float(np.abs(part).max(initial=0.0)) < bound for part, bound in zip((error[:3], error[3:]), _CLOSE, strict=True))


def reach_pose(what: str, body: TreeBody, tool: Tool, place: np.ndarray, turn: np.ndarray | None) -> dict[str, float]:
    """Positions of the joints, rad or m, that put a tool at a position (3,), m, and a quaternion (4,), from where they start.

    Raises
    ------
    InputError
        A pose out of reach.
    """
    chain = _Chain(what, body, tool)
    q, error = chain.search(body.initial_q(), place, turn)
    if not close(error):
        few = turn is not None and len(chain.joints) < 6
        or_free = f", or leave turn out: {len(chain.joints)} joints reach few turns at a place" if few else ""
        raise InputError(
            f"{what}: the pose is out of reach; {chain.says(q, error)}. Move the pose,{' or' * (not few)} start elsewhere by "
            f"joints={or_free}."
        )
    return {joint.name: float(q[joint.coordinate]) for joint in chain.joints}


def follow(what: str, body: TreeBody, tool: Tool, path: ToolPath, *, relative: bool, turn_free: bool, faster: bool) -> JointPath:
    """Positions of the joints that lead a tool along a path, see :meth:`Following.follow`."""
    chain, q = _Chain(what, body, tool), body.initial_q()
    here, rotation = tool.pose(body, q)
    own = quaternion_from_matrix(rotation)
    places, turns = path.positions, path.quaternions
    if relative:
        places = here + places - places[0]
    given = None
    if not turn_free:
        first = None if turns is None else quaternion_conjugate(turns[0])
        given = np.tile(own, (len(places), 1)) if turns is None else turns
        if relative and turns is not None and first is not None:
            given = np.array([quaternion_multiply(quaternion_multiply(turn, first), own) for turn in turns])
    out, lacks = np.empty((len(places), len(chain.joints))), np.zeros(2)
    for k, place in enumerate(places):
        turn = None if given is None else given[k]
        q, error = chain.search(q, place, turn) if k == 0 else chain.reach(q, place, turn)
        if not close(error):
            raise InputError(
                f"{what}: the path leaves the reach at pose {k + 1} of {len(places)} ({path.times[k]:.4g} s); "
                f"{chain.says(q, error)}. Move the base or the path, start elsewhere by joints=, or say turn_free=True."
            )
        out[k] = q[chain.places]
        lacks = np.maximum(lacks, [np.linalg.norm(error[:3]), np.linalg.norm(error[3:])])
    notes = () if lacks.max() < _SAID else (f"the tool lacks up to {1e3 * lacks[0]:.2g} mm and {lacks[1]:.2g} rad",)
    joints = {joint.name: out[:, k].copy() for k, joint in enumerate(chain.joints)}
    if not faster:
        _check_speeds(what, body, path.times, joints)
    return JointPath(f"{body.name} along {path.source}", path.times.copy(), joints, notes, ranges=_ranges(body, joints))


def _ranges(body: TreeBody, joints: Mapping[str, np.ndarray]) -> dict[str, tuple[float, float]]:
    """Ranges of these joints."""
    return {name: (float(body.joint(name).limits[0]), float(body.joint(name).limits[1])) for name in joints}


def _check_speeds(what: str, body: TreeBody, times: np.ndarray, joints: Mapping[str, np.ndarray]) -> None:
    """Refuse joints that go faster than they can."""
    for name, own in joints.items():
        speed = np.abs(np.diff(own)) / np.diff(times)
        k, most = int(speed.argmax()), body.joint(name).max_speed
        if speed[k] > most * (1.0 + 1e-9):
            raise InputError(
                f"{what}: joint {name!r} goes at {speed[k]:.4g} a second from {times[k]:.4g} s to {times[k + 1]:.4g} s; its most "
                f"is {most:.4g}{body.with_mimics(name)}. Slow it down, or start elsewhere by joints=; faster=True accepts it."
            )


def load_joint_path(
    what: str,
    body: TreeBody,
    file: Path,
    columns: Sequence[str] | Mapping[str, str] | None,
    dt: float,
    time: str | None,
    time_unit: str | None,
    angle: str | None,
    faster: bool,
) -> JointPath:
    """Read a log of joint positions, see :meth:`Following.load_path`."""
    if angle is not None and plain_unit(angle) not in UNITS["angle"]:
        raise InputError(f"{what}: angle is {angle!r}; allowed are {', '.join(UNITS['angle'])}.")
    if not (math.isfinite(dt) and dt > 0.0):
        raise InputError(f"{what}: dt is {dt!r} s; allowed are positive numbers.")
    table, names = read_table(file, "path"), body.joint_names()
    if len(table.rows) < 2:
        raise InputError(f"path {file} has {len(table.rows)} rows; a path needs at least two.")
    stamp = time if time is not None else _stamp(table, names, columns)
    if time is None and table.named:
        check_double_times(table, stamp)
    if stamp is not None and stamp not in table.columns:
        raise InputError(f"path {file} has no time column {stamp!r}{did_you_mean(stamp, table.columns)}")
    times = dt * np.arange(len(table.rows)) if stamp is None else times_of(table, stamp, time_unit)[0]
    late = np.flatnonzero(np.diff(times) <= 0.0)
    if len(late):
        raise InputError(
            f"path {file}: line {table.lines[int(late[0]) + 1]} is not later than the one before; times must increase."
        )
    found, odd = dict[str, np.ndarray](), list[str]()
    chosen = _chosen(what, table, names, columns, stamp)
    for joint, column in chosen.items():
        own, kind = body.joint(joint), "angle" if body.turns(joint) else "length"
        given = (angle if kind == "angle" else None) or table.units[table.columns.index(column)]
        unit = given or {"angle": "rad", "length": "m"}[kind]
        if plain_unit(unit) not in UNITS[kind]:
            raise InputError(f"path {file}: column {column!r} has the unit {unit!r}; allowed are {', '.join(UNITS[kind])}.")
        values, (low, high) = UNITS[kind][plain_unit(unit)] * finite_column(table, column), own.limits
        slack = _ROUGH * min(high - low, 1.0)
        beyond = np.flatnonzero((values < low - slack) | (values > high + slack))
        if len(beyond):
            k = int(beyond[0])
            raise InputError(
                f"path {file}: line {table.lines[k]} has {joint} at {values[k]:.4g}, beyond {low:.4g} to {high:.4g}, its range, "
                f"{one_of(len(beyond))}; check units (angle='deg') and columns=."
            )
        found[joint] = np.clip(values, low, high)
        odd += notes_on_turns(joint, values) if kind == "angle" and not given else []
    if not faster:
        _check_speeds(f"path {file}", body, times, found)
    absent = [name for name in names if name not in found]
    notes = [*table.warnings, *odd, *([f"joints without a column: {', '.join(absent)}"] if absent else [])]
    if stamp is not None:
        ways = [(np.diff(own), min(body.joint(name).max_speed, _FASTEST[body.turns(name)])) for name, own in found.items()]
        notes += notes_on_times(table, stamp, time_unit, times, ways)
    else:
        unread = [column for column in table.columns if column not in chosen.values()]
        notes.append(
            f"no time column: rows are dt = {dt:g} s apart" + (f"; not read: {', '.join(unread[:12])}" if unread else "")
        )
    return JointPath(str(file), times, found, tuple(notes), _ranges(body, found))


def _stamp(table: Table, joints: Sequence[str], columns: Sequence[str] | Mapping[str, str] | None) -> str | None:
    """Find the time column: by its name, or the first of a table without names that has one column more than joints."""
    if not table.named:
        return table.columns[0] if columns is None and len(table.columns) == len(joints) + 1 else None
    named = {name.lower() for name in joints}
    taken = [column for column in table.columns if column.lower() in named] if columns is None else list(columns)
    return time_or_none(table, list(columns.values()) if isinstance(columns, Mapping) else taken)


def _chosen(
    what: str, table: Table, names: Sequence[str], columns: Sequence[str] | Mapping[str, str] | None, stamp: str | None
) -> dict[str, str]:
    """Column of each joint: by the names of the header, as they are given, or counted."""
    for column in table.double:
        meant = column in (columns.values() if isinstance(columns, Mapping) else columns or ())
        if meant or (columns is None and _plain(column) in {name.lower() for name in names}):
            table.check_single(column, f"joint {column!r}", "rename one, or name the right one by its number in columns=")
    if isinstance(columns, Mapping):
        chosen = dict(columns)
    elif columns is not None:
        if len(columns) > len(names):
            raise InputError(
                f"{what}: columns names {len(columns)} columns; the robot has {len(names)} joints of one coordinate."
            )
        chosen = dict(zip(names, columns, strict=False))
    elif not table.named:
        count = len(table.columns)
        if count not in (len(names), len(names) + 1):
            raise InputError(
                f"path {table.path} has {count} columns without names; allowed are {len(names)}, those of {', '.join(names)}, or "
                "one more with the time first."
            )
        chosen = dict(zip(names, table.columns[count - len(names) :], strict=True))
    else:
        plain = {_plain(column): column for column in table.columns}
        chosen = {name: plain[name.lower()] for name in names if name.lower() in plain and plain[name.lower()] != stamp}
        if not chosen:
            raise InputError(
                f"path {table.path}: no column is named by a joint; say columns={{joint: name}}. Joints are {', '.join(names)}; "
                f"columns {', '.join(table.columns)[:200]}."
            )
    for joint, column in chosen.items():
        if joint not in names:
            raise InputError(f"{what}: joint {joint!r} is unknown{did_you_mean(joint, names)}")
        if column not in table.columns:
            raise InputError(f"path {table.path} has no column {column!r}{did_you_mean(column, table.columns)}")
    return chosen


def _plain(column: str) -> str:
    """Name of a column in small letters, without the word position."""
    return column.lower().removesuffix("_position").removeprefix("position_")


def tool_of(what: str, links: Sequence[str], link: str, place: Sequence[float], turn: Sequence[float]) -> Tool:
    """Check a tool on a link, by its position (3,), m, and rotation vector (3,), rad, in the frame of the link."""
    if link not in links:
        raise InputError(f"{what}: link {link!r} is unknown{did_you_mean(link, links)}")
    numbers = []
    for role, given in (("tool", place), ("tool_rotation", turn)):
        numbers.append(three(f"{what}: {role} is", given, "m" if role == "tool" else "rad"))
    return Tool(list(links).index(link), numbers[0], quaternion_from_vector(numbers[1]))


@naming_all_parameters
class Following(ABC):
    """What a robot answers about places of its links and paths of its joints."""

    name: str

    @abstractmethod
    def body(
        self,
        name: str,
        position: np.ndarray,
        quaternion: np.ndarray,
        joints: Mapping[str, float | Sequence[float]],
        speeds: Mapping[str, float | Sequence[float]],
    ) -> TreeBody:
        """Make the body of a scene."""

    def _placed(self, position: Sequence[float], rotation: Sequence[float], joints: Mapping[str, float] | None) -> TreeBody:
        place, turn = three(f"position of {self.name} is", position, "m"), three(f"rotation of {self.name} is", rotation, "rad")
        return self.body(self.name, place, quaternion_from_vector(turn), joints or {}, {})

    def pose(
        self,
        link: str,
        joints: Mapping[str, float] | None = None,
        *,
        tool: Sequence[float] = (0.0, 0.0, 0.0),
        tool_rotation: Sequence[float] = (0.0, 0.0, 0.0),
        position: Sequence[float] = (0.0, 0.0, 0.0),
        rotation: Sequence[float] = (0.0, 0.0, 0.0),
    ) -> tuple[np.ndarray, np.ndarray]:
        """Where a link is, or a tool on it.

        Parameters
        ----------
        link : str
            The link.
        joints : dict of str to float, rad or m, optional
            Positions of the joints, as for ``scene.add_robot``.
        tool, tool_rotation : (3,) float, m and rad
            Pose of the tool in the frame of the link: position and rotation vector. Default: the frame itself.
        position, rotation : (3,) float, m and rad
            Pose of the base, as for ``scene.add_robot``.

        Returns
        -------
        place, rotation : ndarray, (3,) and (3,), m and rad
            Position and rotation vector, world.

        Raises
        ------
        InputError
            No such link or joint.
        """
        body = self._placed(position, rotation, joints)
        place, turn = tool_of(f"pose of {self.name}", body.links, link, tool, tool_rotation).pose(body, body.initial_q())
        return place, vector_from_quaternion(quaternion_from_matrix(turn))

    def reach(
        self,
        link: str,
        place: Sequence[float],
        turn: Sequence[float] | None = None,
        *,
        joints: Mapping[str, float] | None = None,
        tool: Sequence[float] = (0.0, 0.0, 0.0),
        tool_rotation: Sequence[float] = (0.0, 0.0, 0.0),
        position: Sequence[float] = (0.0, 0.0, 0.0),
        rotation: Sequence[float] = (0.0, 0.0, 0.0),
    ) -> dict[str, float]:
        """Inverse kinematics: positions of the joints that put a tool at a pose, within their limits.

        Damped least squares from ``joints``; where that does not reach it, from other places as well, always the same ones.

        Parameters
        ----------
        link : str
            Link that carries the tool.
        place : (3,) float, m
            Where the tool shall be, world.
        turn : (3,) float, rad, optional
            Its rotation vector, world. Default: any.
        joints : dict of str to float, rad or m, optional
            Where the search starts; joints that do not move the tool stay there.
        tool, tool_rotation, position, rotation
            See :meth:`pose`.

        Returns
        -------
        dict of str to float, rad or m
            Of the joints between base and link; what the tool may lack, 1e-6 m and 1e-4 rad, an arm with axes that are rounded
            needs, and others come within 1e-11.

        Raises
        ------
        InputError
            A pose out of reach, with what lacks; no such link or joint.
        """
        what, body = f"reach of {self.name}", self._placed(position, rotation, joints)
        own = tool_of(what, body.links, link, tool, tool_rotation)
        quaternion = None if turn is None else quaternion_from_vector(three(f"{what}: turn is", turn, "rad"))
        return reach_pose(what, body, own, three(f"{what}: place is", place, "m"), quaternion)

    def follow(
        self,
        path: ToolPath,
        link: str,
        *,
        joints: Mapping[str, float] | None = None,
        relative: bool = False,
        turn_free: bool = False,
        faster: bool = False,
        tool: Sequence[float] = (0.0, 0.0, 0.0),
        tool_rotation: Sequence[float] = (0.0, 0.0, 0.0),
        position: Sequence[float] = (0.0, 0.0, 0.0),
        rotation: Sequence[float] = (0.0, 0.0, 0.0),
    ) -> JointPath:
        """Inverse kinematics along a path: positions of the joints that lead a tool through its poses, within their limits.

        Parameters
        ----------
        path : ToolPath
            See :func:`femsim.load_path`; of the tool, in the world. Without orientations the tool keeps that of its start.
        link : str
            Link that carries the tool.
        joints : dict of str to float, rad or m, optional
            Where the search for the first pose starts.
        relative : bool
            Whether the path starts where the tool is at ``joints``, and only what it moves and turns from there counts.
        turn_free : bool
            Whether only the position is followed.
        faster : bool
            Whether joints may go faster than the robot says that they can.
        tool, tool_rotation, position, rotation
            See :meth:`pose`.

        Returns
        -------
        JointPath
            Of the joints between base and link: ``path.start`` for ``add_robot``, ``path.motion(joint)`` for ``drive_joint``.

        Raises
        ------
        InputError
            Where the path leaves the reach, with the pose and what lacks; where a joint would be too fast; no such link or joint.
        """
        if not isinstance(path, ToolPath):
            raise InputError(f"follow of {self.name}: path is {path!r}; give what fs.load_path reads from a file.")
        what, body = f"follow of {self.name}", self._placed(position, rotation, joints)
        own = tool_of(what, body.links, link, tool, tool_rotation)
        return follow(what, body, own, path, relative=relative, turn_free=turn_free, faster=faster)

    def load_path(
        self,
        file: str | Path,
        *,
        columns: Sequence[str] | Mapping[str, str] | None = None,
        dt: float = 0.01,
        time: str | None = None,
        time_unit: str | None = None,
        angle: str | None = None,
        faster: bool = False,
    ) -> JointPath:
        """Read a log of joint positions: a text table with a column for each joint.

        Parameters
        ----------
        file : path
            The file; any layout that :func:`femsim.load_path` reads as a table.
        columns : sequence of str, or dict of joint to column, optional
            Names of the columns, in the order of the joints or by joint. Default: those named as the joints are, a unit behind
            them or not ("joint1_deg"), or, without a header, all in the order of the joints, the time first.
        dt : float, s
            Time from row to row where the file has no times.
        time, time_unit : str, optional
            Name and unit of the time column, see :func:`femsim.load_path`.
        angle : {"rad", "deg"}, optional
            Unit of the angles. Default: that in the header, else rad.
        faster : bool
            Whether joints may go faster than the robot says that they can.

        Raises
        ------
        InputError
            A file that cannot be read, no column of a joint, a position beyond the range of its joint, a joint that is too fast.
        """
        what = f"path of {self.name}"
        body = self._placed((0.0, 0.0, 0.0), (0.0, 0.0, 0.0), None)
        return load_joint_path(what, body, shipped_path(file), columns, dt, time, time_unit, angle, faster)

"""Prescribed motion and time profiles: what a robot arm or an actuator does, given from outside."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np

from femsim.base.errors import InputError, naming_parameters
from femsim.base.rotations import (
    quaternion_from_vector,
    quaternion_multiply,
)
from femsim.model.profile_kernels import Pieces


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


#: Key frames that are not named one by one.
MANY = 8
#: How a :class:`Profile` goes from value to value.
Smoothness = bool | Literal["spline", "monotone"]


class Profile:
    """Scalar function of time through key values, e.g. a gripping force.

    Parameters
    ----------
    times : sequence of float, s
        Increasing.
    values : sequence of float
        Value at each time (N for a force, m for a position); constant before the first and after the last.
    smooth : bool, "spline" or "monotone"
        Ease in and out of every key value (cubic with zero slope there). False: straight lines, whose speed jumps at key values.
        "spline": cubic spline through all values, whose acceleration is continuous, at rest at both ends. "monotone": cubics that
        never leave the range of neighbouring values, whose speed is continuous.
    name : str
        Name by which :meth:`femsim.run.simulation.Simulation.set` finds all that it drives.

    Raises
    ------
    InputError
        Times that do not increase, wrong sizes or values that are not finite.
    """

    @naming_parameters
    def __init__(self, times: Sequence[float], values: Sequence[float], *, smooth: Smoothness = True, name: str = "") -> None:
        self.name = name
        self.times, self.values = _key_frames("Profile", times, values, None)
        if smooth not in (True, False, "spline", "monotone"):
            raise InputError(f"Profile: smooth is {smooth!r}; allowed are True, False, 'spline' and 'monotone'.")
        self._cubics = _cubics(self.times, self.values, smooth) if smooth and len(self.times) > 1 else []
        self._starts: list[float] = self.times[:-1].tolist()
        self._first, self._last, self._end = float(self.times[0]), float(self.times[-1]), float(self.values[-1])
        #: straight lines: value and slope from each key frame
        self._lines = list(zip(self.values[:-1].tolist(), (np.diff(self.values) / np.diff(self.times)).tolist(), strict=True))

    def __repr__(self) -> str:
        if len(self.times) > MANY:
            span = f"{len(self.times)} key frames from {self.times[0]:g} to {self.times[-1]:g} s"
            return f"<Profile {span}, {self.values.min():g} to {self.values.max():g}>"
        keys = ", ".join(f"{value:g} at {time:g} s" for time, value in zip(self.times, self.values, strict=True))
        return f"<Profile {keys}>"

    def extremes(self) -> tuple[float, float]:
        """Return the smallest and the largest value, also between keys."""
        if not self._cubics:
            return float(self.values.min()), float(self.values.max())
        value, speed, square, cube = np.array(self._cubics).T
        with np.errstate(divide="ignore", invalid="ignore"):  # where the speed has no zero
            larger = -(square + np.copysign(np.sqrt(square * square - 3.0 * cube * speed), square))
            s = np.stack([larger / (3.0 * cube), speed / larger])
        s = np.where((s > 0.0) & (s < np.diff(self.times)), s, 0.0)
        every = np.append(value + speed * s + square * s**2 + cube * s**3, self.values)
        return float(every.min()), float(every.max())

    @property
    def fastest(self) -> tuple[float, float]:
        """Largest rate, also between keys, 1/s, without its sign, and a time of it, s; zeros with one key frame."""
        if len(self.times) < 2:
            return 0.0, 0.0
        pieces, span = self.pieces[: len(self.times) - 1], np.diff(self.times)
        start, _, speed, square, cube = pieces.T
        with np.errstate(divide="ignore", invalid="ignore"):  # where the rate has no extreme
            bend = -square / (3.0 * cube)
        s = np.stack([np.zeros(len(span)), span, np.where((bend > 0.0) & (bend < span), bend, 0.0)])
        rates = np.abs(speed + s * (2.0 * square + s * 3.0 * cube))
        k = int(rates.argmax())
        return float(rates.flat[k]), float((start + s).flat[k])

    def __call__(self, t: float) -> float:
        """Value at time t (s)."""
        t = float(min(max(t, self._first), self._last))
        piece = bisect_right(self._starts, t) - 1
        if not self._cubics:
            if t >= self._last:
                return self._end
            value, slope = self._lines[piece]
            return slope * (t - self._starts[piece]) + value
        value, speed, square, cube = self._cubics[piece]
        s = t - self._starts[piece]
        return value + speed * s + square * (s * s) + cube * (s * s * s)

    def rate(self, t: float) -> float:
        """Rate of change just before time t (s), 1/s."""
        if not self._first < t <= self._last:
            return 0.0
        piece = bisect_left(self._starts, t) - 1
        if not self._cubics:
            return float(self._lines[piece][1])
        _, speed, square, cube = self._cubics[piece]
        s = t - self._starts[piece]
        return float(speed + s * (2.0 * square + s * 3.0 * cube))

    @property
    def pieces(self) -> np.ndarray:
        """Start of each piece, s, and its factors of s^0 to s^3, (k, 5); straight lines have their last point as a piece too."""
        if self._cubics:
            return np.column_stack([self._starts, self._cubics])
        lines = [(start, *line, 0.0, 0.0) for start, line in zip(self._starts, self._lines, strict=True)]
        return np.array([*lines, (self._last, self._end, 0.0, 0.0, 0.0)])


def as_pieces(profiles: Sequence[Profile]) -> Pieces:
    """Profiles for :func:`femsim.model.profile_kernels.value_of`, which gives what each gives, to the last bit."""
    each = [profile.pieces for profile in profiles]
    every = np.concatenate([np.zeros((0, 5)), *each])
    ptr = np.concatenate([[0], np.cumsum([len(own) for own in each])]).astype(np.int64)
    last = np.array([profile.times[-1] for profile in profiles], dtype=np.float64)
    return Pieces(ptr, last, every[:, 0].copy(), every[:, 1:].copy())


def _cubics(times: np.ndarray, values: np.ndarray, smooth: Smoothness) -> list[tuple[float, float, float, float]]:
    """Cubic from each key frame to the next, see :class:`Profile`: factors of s^0 to s^3, s the time since it."""
    if smooth in ("spline", "monotone"):
        from scipy.interpolate import CubicSpline, PchipInterpolator

        curve = CubicSpline(times, values, bc_type="clamped") if smooth == "spline" else PchipInterpolator(times, values)
        return [(d, c, b, a) for a, b, c, d in curve.c.T.tolist()]
    span = np.diff(times)
    slope = np.diff(values) / span
    bend = -2.0 * slope / span
    rest = np.zeros(len(span)).tolist()
    return list(zip(values[:-1].tolist(), rest, (slope / span - bend).tolist(), (bend / span).tolist(), strict=True))


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

    @naming_parameters
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

    def __repr__(self) -> str:
        times = self._displacement[0].times
        name = f" {self.name!r}" if self.name else ""
        moved, turned = self(float(times[-1]))
        turn = f", turned by {np.degrees(np.linalg.norm(turned)):.3g} degrees" if np.any(turned) else ""
        keys = f"{len(times)} key frames from {times[0]:g} to {times[-1]:g} s" if len(times) > 1 else "one key frame"
        return f"<Motion{name}: {keys}, at last moved by {', '.join(f'{x:.3g}' for x in moved)} m{turn}>"

    @property
    def travel(self) -> float:
        """Largest distance from the start among its key frames, m."""
        return float(np.linalg.norm([p.values for p in self._displacement], axis=0).max())

    @property
    def turns(self) -> np.ndarray:
        """Rotation vectors of its key frames, (n, 3), rad."""
        return np.column_stack([p.values for p in self._rotation])

    @property
    def fastest(self) -> tuple[float, float, float]:
        """Largest mean speed between two key frames, m/s, and the times of the two, s; zeros with one key frame."""
        times = self._displacement[0].times
        if len(times) < 2:
            return 0.0, 0.0, 0.0
        way = np.linalg.norm([np.diff(p.values) for p in self._displacement], axis=0)
        k = int(np.argmax(way / np.diff(times)))
        return float(way[k] / (times[k + 1] - times[k])), float(times[k]), float(times[k + 1])

    def __call__(self, t: float) -> tuple[np.ndarray, np.ndarray]:
        """Displacement (3,), m, and rotation vector (3,), rad, from the start pose at time t (s)."""
        return np.array([p(t) for p in self._displacement]), np.array([p(t) for p in self._rotation])

    def rate(self, t: float) -> tuple[np.ndarray, np.ndarray]:
        """Rates of both just before time t (s), m/s and rad/s."""
        return np.array([p.rate(t) for p in self._displacement]), np.array([p.rate(t) for p in self._rotation])


PoseFunction = Callable[[float], tuple[np.ndarray, np.ndarray]]


def at_rest(t: float) -> tuple[np.ndarray, np.ndarray]:
    """Motion of what stands where it is: no displacement (3,), m, and no rotation vector (3,), rad, at any time t (s)."""
    return np.zeros(3), np.zeros(3)


def driven_pose(q0: np.ndarray, motion: PoseFunction, t: float) -> tuple[np.ndarray, np.ndarray]:
    """Position (3,), m, and quaternion (4,) of a base that starts at q0 and follows a motion."""
    displacement, rotation = motion(t)
    return q0[:3] + displacement, quaternion_multiply(quaternion_from_vector(rotation), q0[3:7])

"""Functions of time that somebody may take over while a simulation is stepped: targets of drives, forces, pressures, loads."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from contact.metrics import any_of
from femsim.base.errors import InputError
from femsim.base.rotations import angular_velocity, cross, quaternion_from_vector, quaternion_to_matrix
from femsim.model.drives import Motion, PoseFunction, Profile, at_rest

#: What some functions give, and its units, for messages.
MOTION = ("displacement and rotation vector from the start", "m and rad")
FORCE, WRENCH = ("force", "N"), ("force and torque", "N and N m")
#: Part of a step over which functions without a rate of their own are differenced, and by which rates are asked for before its
#: end: where a rate jumps there, rounding must not decide.
_PART, _BEFORE = 1.0 / 1024.0, 1e-6
#: How far a target may be beyond the range of its joint, m or rad.
BEYOND = 1e-6


class Command:
    """A function of time of a scene, as given until a value is commanded instead.

    Parameters
    ----------
    name : str
        Name by which it is taken over.
    given : callable
        What the scene was given; called with the time in s.
    what, unit : str
        What its values are, and their unit, for messages.
    within : (float, float), optional
        Range that a commanded value must keep.
    led : bool
        Whether something follows it exactly, so that a jump of it has the speed of the time that it is given.

    Attributes
    ----------
    label : str
        Second name, of its own or shared with others: the ``name`` of the Profile or Motion that was given. Empty for none.
    commanded : bool
        Whether a value is commanded at present.
    """

    def __init__(
        self,
        name: str,
        given: Callable[[float], Any],
        what: str,
        unit: str,
        within: tuple[float, float] | None = None,
        *,
        led: bool = False,
    ) -> None:
        self.name, self.given, self.what, self.unit, self.within, self.led = name, given, what, unit, within, led
        self.label = str(getattr(given, "name", ""))
        #: times and values of begin and end; None as the last one is what was given
        self._taken: tuple[float, np.ndarray, float, np.ndarray | None] | None = None
        self.commanded = False
        self._motion = (what, unit) == MOTION
        #: loads are checked by the call that takes them
        self._of_load = (what, unit) in (FORCE, WRENCH)

    def __repr__(self) -> str:
        taken = "as given" if self._taken is None else "commanded"
        return f"<Command {self.name!r}: {self.what}{f' in {self.unit}' if self.unit else ''}, {taken}>"

    def __call__(self, t: float) -> Any:
        """Value at time t (s): the one commanded, on the way there at constant speed, or the one given."""
        if self._taken is None:
            return self._as_given(t)
        begun, start, end, target = self._taken
        if target is None:
            if t >= end:
                return self._as_given(t)
            target = np.array(self._as_given(t), dtype=np.float64)
        if t >= end:
            value = target
        elif t <= begun:
            value = start
        else:
            value = start + (t - begun) / (end - begun) * (target - start)
        return float(value) if value.ndim == 0 else value

    def _as_given(self, t: float) -> Any:
        """Return what was given for time t (s), checked unless it is a load or a number."""
        value = self.given(t)
        is_number = isinstance(value, float) and not self._motion
        return value if self._of_load or is_number or self.given is at_rest else self._checked(value, t)

    def rate(self, t: float, dt: float) -> np.ndarray:
        """Rate of change just before a time t (s), at the end of a step of dt (s), see :func:`rate_of`."""
        if self._taken is None:
            return self._rate_as_given(t, dt)
        begun, start, end, target = self._taken
        if target is None:
            if t - _BEFORE * dt > end:
                return self._rate_as_given(t, dt)
            part = (t - begun) / (end - begun)
            ahead = np.array(self._as_given(t), dtype=np.float64) - start
            return ahead / (end - begun) + part * self._rate_as_given(t, dt)
        if end == begun:  # what jumps where the step begins moves in all of it
            return (target - start) / dt if abs(t - dt - begun) < 0.5 * dt else np.zeros_like(target)
        return (target - start) / (end - begun) if begun < t - _BEFORE * dt <= end else np.zeros_like(target)

    def _rate_as_given(self, t: float, dt: float) -> np.ndarray:
        has_rate = isinstance(self.given, Profile | Motion) or self.given is at_rest
        return rate_of(self.given if has_rate else self._as_given, t, dt)

    def _checked(self, value: Any, t: float) -> Any:
        """Return what was given for time t (s) as a number, or as displacement and rotation vector.

        Raises
        ------
        InputError
            It is neither.
        """
        try:
            if not self._motion and value is not None:
                return np.asarray(value, dtype=np.float64).item()
            moved, turned = (np.asarray(one, dtype=np.float64) for one in value)
            if moved.shape == turned.shape == (3,):
                return moved, turned
        except (TypeError, ValueError):
            pass
        wanted = "a pair of (3,) arrays, e.g. those of fs.Motion" if self._motion else "one number"
        raise InputError(
            f"{self.name}: its function of time gives {value!r} at {t:g} s; it must give {wanted}: {self.what}, {self.unit}."
        )

    def take(self, value: Any, now: float, over: float) -> None:
        """Go from the value at time ``now`` (s) to another one within ``over`` (s), and stay there.

        Raises
        ------
        InputError
            As :meth:`target` does.
        """
        start, target = np.array(self(now), dtype=np.float64), self.target(value, now)
        self._taken, self.commanded = (now, start, now + over, target), True

    def target(self, value: Any, now: float) -> np.ndarray:
        """Value that would be commanded at time ``now`` (s), in the shape of those given; nothing is.

        Raises
        ------
        InputError
            Numbers that are not finite, of another shape than those given, or beyond the range.
        """
        start = np.array(self(now), dtype=np.float64)
        try:
            target = np.array(value, dtype=np.float64)
        except (TypeError, ValueError):
            target = np.full(1, np.nan)
        if start.shape == (2, 3) and target.shape in ((3,), (6,)):  # a motion without its turn, or in one row
            target = np.array([target[:3], target[3:] if target.shape == (6,) else start[1]])
        if target.shape != start.shape or not np.isfinite(target).all():
            shape = {(): "one number", (2, 3): "(3,) or two times (3,) numbers"}.get(start.shape, f"{start.shape} numbers")
            raise InputError(f"{self.name}: the value is {value!r}; allowed are {shape}, finite: {self.what}, {self.unit}.")
        if self.within is not None and not self.within[0] - BEYOND <= float(target) <= self.within[1] + BEYOND:
            low, high = self.within
            turned = math.radians(float(target))
            degrees = self.unit == "rad" and abs(target) > 2.0 * math.pi and low <= turned <= high
            hint = f"; {target:g} degrees are {turned:.4g}" if degrees else ""
            raise InputError(
                f"{self.name}: the value is {target:g} {self.unit}; the range of the joint is {low:g} to {high:g}{hint}."
            )
        return target

    def release(self, now: float = 0.0, over: float = 0.0) -> None:
        """Follow what was given again, at once or from the value at time ``now`` (s) within ``over`` (s)."""
        back = self.commanded and over > 0.0
        self._taken = (now, np.array(self(now), dtype=np.float64), now + over, None) if back else None
        self.commanded = back

    def memory(self) -> dict[str, np.ndarray]:
        """Give what was commanded, arrays by name, for :meth:`recall`; without a target on the way back, empty for nothing."""
        if self._taken is None:
            return {}
        begun, start, end, target = self._taken
        return {"times": np.array([begun, end]), "start": start.copy()} | ({} if target is None else {"target": target.copy()})

    def recall(self, memory: dict[str, np.ndarray]) -> None:
        """Take back what :meth:`memory` gave."""
        if not memory:
            self.release()
            return
        begun, end = (float(time) for time in memory["times"])
        target = memory["target"].copy() if "target" in memory else None
        self._taken, self.commanded = (begun, memory["start"].copy(), end, target), True


class FrameMotion:
    """What a motion of a frame means for another point that goes with it, such as a centre of mass.

    Parameters
    ----------
    given : callable
        Displacement (3,), m, of the origin of the frame and rotation vector (3,), rad, about it.
    arm : ndarray, (3,), m
        From there to the point, at the start, world.
    """

    def __init__(self, given: PoseFunction, arm: np.ndarray) -> None:
        self.given, self.arm = given, arm

    def __call__(self, t: float) -> tuple[np.ndarray, np.ndarray]:
        """Displacement (3,), m, of the point and rotation vector (3,), rad, at time t (s)."""
        moved, turned = self.given(t)
        turned = np.asarray(turned, dtype=np.float64)
        return np.asarray(moved, dtype=np.float64) + (self._turned(turned) - self.arm), turned

    def _turned(self, turned: np.ndarray) -> np.ndarray:
        return np.asarray(quaternion_to_matrix(quaternion_from_vector(turned)) @ self.arm)

    def rate(self, t: float, dt: float) -> np.ndarray:
        """Rates of both just before a time t (s), at the end of a step of dt (s), (2, 3), m/s and rad/s."""
        moved, turning = rate_of(self.given, t, dt)
        if not any_of(turning):
            return np.array([moved, turning])
        turned = np.asarray(self.given(t)[1], dtype=np.float64)
        return np.array([moved + cross(angular_velocity(turned, turning), self._turned(turned)), turning])


def rate_of(function: Callable[[float], Any], t: float, dt: float) -> np.ndarray:
    """Rate of change of a function of time just before a time t (s), at the end of a step of dt (s).

    What has a rate is asked for it. Others are asked at three places of the last part of the step, and a parabola through these
    answers. Where they do not differ to the last bit, what is at rest is told from what moves in jumps, as values that are held
    from step to step do, by the mean rate in the step.
    """
    if isinstance(function, Command | FrameMotion):
        return function.rate(t, dt)
    if isinstance(function, Profile | Motion):
        return np.asarray(function.rate(t - _BEFORE * dt), dtype=np.float64)
    if function is at_rest:
        return np.zeros((2, 3))
    h = dt * _PART
    last, middle, first = (np.asarray(function(place), dtype=np.float64) for place in (t, t - h, t - 2.0 * h))
    if not (last - first).any():
        return np.asarray((last - np.asarray(function(t - dt), dtype=np.float64)) / dt)
    return np.asarray((3.0 * (last - middle) - (middle - first)) / (2.0 * h))

"""Springs and motors on sums of joints of a robot, such as tendons over the joints of a finger: a coupling, implicit in A."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from femsim.base.arguments import shown
from femsim.base.errors import InputError, did_you_mean
from femsim.model.bodies.body import StepSettings
from femsim.model.bodies.tree import TreeBody
from femsim.model.bodies.tree_joints import Motor
from femsim.model.couplings import CouplingDefaults
from femsim.model.robot_checks import number_of, numbers_of
from femsim.model.swings import Swing, elastic_tension


@dataclass(frozen=True)
class RobotSpring:
    """A spring of a robot on the sum of positions of joints, each by a coefficient: the length of a tendon over them, say.

    Beyond its length at rest it pulls that sum back by stiffness times what is beyond, and each joint by its coefficient times
    this. A joint alone with the coefficient 1 has a spring of its own, beside what drives it. :meth:`femsim.Scene.drive_joint`
    also takes the name of a spring: its motor pulls the sum, with a stiffness of 0 alone.

    Parameters
    ----------
    name : str
        Its name.
    joints : dict of str to float
        Coefficients by names of joints of one coordinate, 1 or m/rad; also of joints that mimic others.
    stiffness : float
        Of the sum: N m/rad, or N/m where it is one in m.
    rest : float or (float, float), rad or m
        The sum at rest, or a range of it within which the spring is slack.
    damping : float, N m s/rad or N s/m
        Of the speed of the sum.
    """

    name: str
    joints: Mapping[str, float]
    stiffness: float
    rest: float | tuple[float, float] = 0.0
    damping: float = 0.0

    @property
    def slack(self) -> tuple[float, float]:
        """Ends of the range at rest, rad or m."""
        low, high = np.broadcast_to(numbers_of(self.rest), 2)
        return float(low), float(high)


def check_springs(what: str, springs: Sequence[RobotSpring], moving: Sequence[str]) -> None:
    """Refuse springs without a name of their own, on other joints than those of one coordinate, or with wrong numbers."""
    names: list[str] = []
    for spring in springs:
        own = f"{what}: spring {spring.name!r}"
        if not isinstance(spring.name, str) or spring.name in names:
            raise InputError(f"{own} is there twice, or its name is no text; give each spring a name of its own.")
        names.append(spring.name)
        if not isinstance(spring.joints, Mapping) or not spring.joints:
            raise InputError(f"{own} has joints {shown(spring.joints)}; give coefficients by names of joints: {{'j1': 1.0}}.")
        for joint, coefficient in spring.joints.items():
            if joint not in moving:
                raise InputError(f"{own} names {joint!r}, no joint of one coordinate{did_you_mean(str(joint), moving)}")
            if not (math.isfinite(number_of(coefficient)) and number_of(coefficient) != 0.0):
                raise InputError(f"{own} has the coefficient {coefficient!r} of {joint!r}; allowed are finite numbers but 0.")
        for role, value in (("stiffness", spring.stiffness), ("damping", spring.damping)):
            if not 0.0 <= number_of(value) < math.inf:
                raise InputError(f"{own} has {role} {value!r}; allowed are numbers from 0.")
        rest = numbers_of(spring.rest)
        if rest.shape not in ((), (2,)) or not np.isfinite(rest).all() or (rest.shape == (2,) and rest[0] > rest[1]):
            raise InputError(f"{own} is at rest at {shown(spring.rest)}; allowed is a number, or two, the lower one first.")


class JointSpring(CouplingDefaults):
    """Spring and damper on a sum of joints, s = c . q + c0: the force -(k <s> + d s') c, <s> what is beyond the range at rest.

    In an energy-momentum step it is the change of the energy k/2 <s>^2 over that of s, so it gives back what it took at any
    step, also where it becomes slack. Where it would turn a joint round in each step it is nearer to that of the end, see
    :class:`femsim.model.swings.Swing`.

    Parameters
    ----------
    body : TreeBody
        The robot.
    index : int
        Its number in the system.
    spring : RobotSpring
        The spring, checked.

    Attributes
    ----------
    kind : str
        "torsion" where all its joints turn, else "spring": its sum is then in m.
    force, length : float
        Force by which it and its motor pulled the sum back in the last step, damping included, and the sum at its end.
    own_name : str
        Name without that of the robot.
    motor : Motor
        What drives the sum.
    """

    def __init__(self, body: TreeBody, index: int, spring: RobotSpring) -> None:
        self.name, self.own_name = f"{body.name}.{spring.name}", spring.name
        self._body, self._spring = body, spring
        rows: dict[int, float] = {}
        places: dict[int, int] = {}
        self._offset = 0.0
        self.kind = "torsion"
        for joint, coefficient in spring.joints.items():
            link = body.joint_link(joint)
            if "prismatic" in body.sensor_kinds(link):
                self.kind = "spring"
            row = int(body.tree.row[link])
            rows[row] = rows.get(row, 0.0) + float(coefficient) * float(body.tree.ratio[link])
            places[row] = int(body.tree.coordinate[link])
            self._offset += float(coefficient) * float(body.tree.offset[link])
        own = sorted(rows)
        self._coefficients, self._coordinates = np.array([rows[row] for row in own]), np.array([places[row] for row in own])
        self.rows: tuple[tuple[int, np.ndarray], ...] = ((index, np.array(own, dtype=np.int64)),)
        self.entries: tuple[np.ndarray, np.ndarray] | None = None
        self.forces: tuple[np.ndarray, ...] = (np.zeros(3),)
        self._low, self._high = spring.slack
        self._settings = StepSettings(0.0, 0.5, np.zeros(3))
        self._swing = Swing()
        self._begins, self._known_rate, self._time, self._rate = True, 0.0, 0.0, 0.0
        self.motor, self._pull, self._gains = Motor(), 0.0, (0.0, 0.0)
        self._settle(body.initial_q())
        self.reset()

    @property
    def inertia(self) -> float:
        """Inertia of the sum at the start, kg m^2 or kg, where its joints alone move."""
        rows = self.rows[0][1]
        M = self._body.mass_matrix(self._body.initial_q())[np.ix_(rows, rows)]
        return 1.0 / float(self._coefficients @ np.linalg.solve(M, self._coefficients))

    def drive(self, drive: Mapping[str, Any]) -> None:
        """Set what drives the sum: fields of Motor."""
        self.motor = replace(Motor(), **drive)

    def reset(self) -> None:
        """Forget the last steps."""
        self._swing.reset()
        self._rate = float(self._coefficients @ self._body.initial_v()[self.rows[0][1]])
        self._calm(np.zeros(len(self._coefficients)))
        self.force = self.power = self.lost = 0.0

    def _length_at(self, q: np.ndarray) -> float:
        """Sum of the joints at coordinates of the robot, rad or m."""
        return float(self._coefficients @ q[self._coordinates]) + self._offset

    def _settle(self, q: np.ndarray) -> None:
        self.length = self._first = self._last = self._length_at(q)
        self._stretch()

    def efforts(self, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Rows of v that it acts on, (k,), and what it does there at coordinates and velocities of the robot, N m and N."""
        self._settle(q)
        rows = self.rows[0][1]
        pull = self._now + self._spring.damping * float(self._coefficients @ v[rows])
        return rows, np.asarray(-pull * self._coefficients)

    def prepare(self, q: Sequence[np.ndarray], t: float, v_hat: np.ndarray | None = None) -> None:
        """Read the joints."""
        self._begins, self._time = v_hat is None, t
        own = self._length_at(q[0])
        if v_hat is None:
            self._start = self._first = self._last = own
            self._known_rate = 0.0
            return
        self._known_rate = float(self._coefficients @ v_hat)
        if self._settings.conserving:
            self._first, self._last = self._start, self._start + self._settings.dt * self._known_rate
        else:
            self._first = self._last = own
        self._stretch()
        self._drive(0.5 * (self._first + self._last), 0.0, self._known_rate)

    def _drive(self, length: float, beyond: float, rate: float) -> None:
        """Find what the motor pulls with at a sum, without its damping, and its stiffness and damping.

        At its limit it has none. Whether it is there is asked at a rate, and where the sum is ``beyond`` its length.
        """
        motor, settings = self.motor, self._settings
        if not motor.drives:
            return
        begin = self._time - settings.theta * settings.dt
        effort, target, pace = motor.asked(max(begin, 0.0), self._time, settings.dt, settings.theta)  # below zero is rounding
        if not (math.isfinite(effort) and math.isfinite(target) and math.isfinite(pace)):
            raise InputError(
                f"{self.name}: its drive gives a target, speed or effort that is not finite from {begin:g} s on; correct its "
                "function of time."
            )
        at_rest = effort + motor.stiffness * (target - length) + motor.damping * pace
        self._pull, self._gains = -at_rest, (motor.stiffness, motor.damping)
        if abs(exerted := at_rest - motor.stiffness * beyond - motor.damping * rate) > motor.max_effort:
            self._pull, self._gains = -math.copysign(motor.max_effort, exerted), (0.0, 0.0)

    def _stretch(self) -> None:
        """Find the force of the step, and its slope, where it was placed last."""
        k, low, high, damping = self._spring.stiffness, self._low, self._high, self._swing.damping
        if low == high:
            self._now = k * (0.5 * (self._first + self._last) - low) + damping * k * (self._last - self._first)
            self._slope = k * (1.0 + 2.0 * damping)
            return
        above, slope = elastic_tension(k, self._first - high, self._last - high, damping)
        below, other = elastic_tension(k, low - self._first, low - self._last, damping)
        self._now, self._slope = above - below, slope + other

    def assemble(self, settings: StepSettings, block: np.ndarray, b: np.ndarray) -> None:
        """Fill stiffness and damping, and the force of the spring."""
        self._settings = settings
        if self._begins:
            self._swing.begin(max(self._first - self._high, 0.0) - max(self._low - self._first, 0.0), settings)
            self._stretch()
            self._drive(self._first, settings.theta * settings.dt * self._rate, self._rate)
            self._begins = False
        implicit, (stiffness, damping) = settings.theta * settings.dt, self._gains
        stiff, servo = implicit * self._slope, implicit * stiffness + damping
        turns = 2.0 * self._swing.damping if settings.conserving else 1.0
        self._calm((turns * stiff + self._spring.damping + servo) * self._coefficients**2)
        gain = stiff + self._spring.damping + servo
        np.multiply(gain, np.outer(self._coefficients, self._coefficients), out=block)
        np.multiply(-self._now - self._pull, self._coefficients, out=b)

    def _calm(self, damping: np.ndarray) -> None:
        """Let the robot calm its joints at the end of a step as if their motors had this damping, (k,)."""
        own = np.zeros(self._body.n_v)
        own[self.rows[0][1]] = damping
        self._body.sprung[self.name] = own

    def exerted(self) -> np.ndarray:
        """Force on the joints, (k,), N m and N."""
        damped = (self._spring.damping + self._gains[1]) * self._known_rate
        return np.asarray(-(self._now + self._pull + damped) * self._coefficients)

    def accept(self, v_hat: np.ndarray) -> None:
        """Take the force of the step and its power."""
        rate = float(self._coefficients @ v_hat)
        implicit = self._settings.theta * self._settings.dt
        damped, beyond = self._spring.damping * rate, implicit * (rate - self._known_rate)
        driven = self._pull + self._gains[0] * beyond + self._gains[1] * rate
        self.force, self._rate = self._now + self._slope * beyond + damped + driven, rate
        self.power, self.lost = -self.force * rate, damped * rate

    def settle(self, q: Sequence[np.ndarray]) -> None:
        """Take the sum at the end of the step."""
        self._settle(q[0])
        self._swing.end()

    def memory(self) -> dict[str, np.ndarray]:
        """How it was stretched in the last steps, and how fast."""
        return {**self._swing.memory(), "rate": np.array(self._rate)}

    def recall(self, memory: Mapping[str, np.ndarray]) -> None:
        """Go back to there."""
        self._swing.recall(memory)
        self._rate = float(memory["rate"])

    def reading(self) -> tuple[float, float]:
        """Force of the last step, and the sum at its end."""
        return self.force, self.length

    def acted(self) -> dict[str, np.ndarray]:
        """Also the force, (1,)."""
        return super().acted() | {"force": np.array([self.force])}

    def take_acted(self, acted: Mapping[str, np.ndarray]) -> None:
        """Answer that these acted."""
        super().take_acted(acted)
        self.force = float(acted["force"][0])

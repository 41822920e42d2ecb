"""Joints of robots and what drives them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from femsim.model.bodies.body import StepSettings
from femsim.model.drives import Profile, as_pieces
from femsim.model.profile_kernels import follow

Time = Callable[[float], float]


@dataclass(frozen=True)
class Motor:
    """What drives one joint, beside its own damping, or a sum of joints; N m and rad, or N and m for one that slides.

    Attributes
    ----------
    position : callable, optional
        ``position(t)`` that a servo follows, or that the joint has exactly.
    velocity : callable, optional
        ``velocity(t)`` that a servo without stiffness follows.
    effort : callable, optional
        ``effort(t)``, alone or added to a servo.
    stiffness, damping : float
        Of the servo.
    max_effort : float
        Most that servo and effort do together.
    exact : bool
        Whether the joint follows ``position`` exactly, whatever that takes.
    """

    position: Time | None = None
    velocity: Time | None = None
    effort: Time | None = None
    stiffness: float = 0.0
    damping: float = 0.0
    max_effort: float = np.inf
    exact: bool = False

    @property
    def drives(self) -> bool:
        """Whether it does anything."""
        return not (self.position is None and self.velocity is None and self.effort is None)

    def asked(self, begin: float, place: float, dt: float, theta: float) -> tuple[float, float, float]:
        """Effort, target and speed of a step of dt from ``begin`` that is taken at ``place``, theta of it later, s."""
        effort = target = pace = 0.0
        if self.effort is not None:
            effort = self.effort(place)
        if self.position is not None:
            first, last = self.position(begin), self.position(begin + dt)
            target, pace = first + theta * (last - first), (last - first) / dt
        elif self.velocity is not None:
            pace = self.velocity(place)
        return effort, target, pace


class Followed:
    """Servos that do nothing but follow a :class:`~femsim.model.drives.Profile`, read all at once.

    Parameters
    ----------
    motors : sequence of Motor
        Those of all joints.

    Attributes
    ----------
    own, others : ndarray and list of int
        Numbers of these motors, and of those that drive their joints in another way.
    """

    def __init__(self, motors: Sequence[Motor]) -> None:
        driving = [k for k, motor in enumerate(motors) if motor.drives and not motor.exact]
        given = {k: _profile(motors[k].position) for k in driving if motors[k].effort is None}
        profiles = {k: profile for k, profile in given.items() if profile is not None}
        self.own, self.others = np.array(list(profiles), dtype=np.int64), [k for k in driving if k not in profiles]
        self._commands: list[Any] = [motors[k].position for k in profiles]
        self._pieces = as_pieces(list(profiles.values()))
        gains = [(motors[k].stiffness, motors[k].damping, motors[k].max_effort) for k in profiles]
        self._gains = np.ascontiguousarray(np.array(gains, dtype=np.float64).reshape(-1, 3).T)

    def __repr__(self) -> str:
        return f"<Followed: {len(self.own)} servos of profiles, {len(self.others)} others>"

    def as_given(self) -> bool:
        """Whether all of them follow their profiles now, and none a value that somebody commanded."""
        return not any(command.commanded for command in self._commands)

    def fill(self, t: float, settings: StepSettings, servo: np.ndarray) -> None:
        """Fill their columns of feed, target, pace, stiffness, damping and limit, (6, joints), for a step from t (s)."""
        follow(self._pieces, t, settings.dt, settings.theta, self.own, self._gains, servo)


def _profile(command: object) -> Profile | None:
    """Profile that a command was given; None where that was another function."""
    given = getattr(command, "given", None)
    return given if type(given) is Profile else None


@dataclass(frozen=True)
class TreeJoint:
    """A joint of a tree that has coordinates of its own.

    Attributes
    ----------
    name : str
        Its name.
    link : int
        The link that it moves.
    row, coordinate : int
        First of its rows of v, and of its entries of q.
    limits : (float, float), rad or m
        Its range.
    damping : float, N m s/rad or N s/m
        Viscous friction.
    max_effort : float, N m or N
        Most that its motor does.
    friction : float, N m or N
        Dry friction.
    max_speed : float, rad/s or m/s
        Speed that a path may not exceed.
    """

    name: str
    link: int
    row: int
    coordinate: int
    limits: tuple[float, float] = (-np.inf, np.inf)
    damping: float = 0.0
    max_effort: float = np.inf
    friction: float = 0.0
    max_speed: float = np.inf

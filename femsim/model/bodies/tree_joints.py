"""Joints of robots and what drives them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

Time = Callable[[float], float]


@dataclass(frozen=True)
class Motor:
    """What drives one joint, beside its own damping; N m and rad, or N and m for one that slides.

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

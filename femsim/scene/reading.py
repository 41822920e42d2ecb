"""What an instrument at a sensor shows of its wrench: frame, point, weight of the tool, filter, sampling, bias, noise."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from femsim.base.errors import InputError, naming_fields
from femsim.base.wrenches import rotation_matrix


@naming_fields
@dataclass(frozen=True)
class Reading:
    """Options of a force/torque sensor; every default changes nothing.

    What they make of the true wrench goes to further columns ``NAME_measured_fx_N`` ..., in this order: point, weight, frame,
    low-pass, sampling, bias and noise. Poses are those of when the force acts: its mean over the step is that in its middle.

    Parameters
    ----------
    frame : "world", "body", str or array_like
        Axes of the reading: the world's, those of the sensed rigid part (which turn with it), those of another rigid part of the
        scene by its name, e.g. "gripper", or fixed ones, given by the rotation (vector (3,) in rad, or matrix (3, 3)) that takes
        vectors of the sensor to the world.
    point : (3,) float, m, optional
        Point that the torque is about: in the frame of the part and seen from its centre of mass where ``frame`` is "body" or
        names a part (it moves along), else a fixed point of the world. Default: the reference point, see docs/outputs.md.
    tool : (float, (3,) float) or "body", kg and m, optional
        What hangs on a mount sensor and has its weight taken off: mass and centre of mass (frame of the body, from the reference
        point; of held nodes in axes that turn with them, the world's at the start), or the driven body as it is, a gripper with
        its fingers, or the soft body whose nodes are held.
    lowpass : float, Hz, optional
        Cut-off of a causal Butterworth filter of second order (it delays, as in an instrument).
    rate : float, Hz, optional
        Sampling rate; between samples the last one is held. Default: every step.
    bias : (6,) float, N and N m
        Added to each sample.
    noise : (float, float) or (6,) float, N and N m
        Standard deviation of white noise on each sample, of forces and of torques, or of each axis.
    seed : int
        Seed of the noise.

    Raises
    ------
    InputError
        A value that is not allowed.
    """

    frame: Any = "world"
    point: Any = None
    tool: Any = None
    lowpass: float | None = None
    rate: float | None = None
    bias: Any = (0.0,) * 6
    noise: Any = (0.0, 0.0)
    seed: int = 0
    rotation: np.ndarray = field(init=False, repr=False, compare=False)
    turns: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        known = isinstance(self.frame, str)
        object.__setattr__(self, "rotation", np.eye(3) if known else rotation_matrix("frame of a reading", self.frame))
        object.__setattr__(self, "turns", known and self.frame != "world")
        per_axis = np.size(self.noise) == 6
        for name, size in (("point", 3), ("bias", 6), ("noise", 6 if per_axis else 2)):
            value = getattr(self, name)
            if name != "point" or value is not None:
                object.__setattr__(self, name, _numbers(f"{name} of a reading", value, size))
        if (self.noise < 0).any():
            raise InputError(f"noise of a reading is {tuple(self.noise)}; allowed are standard deviations >= 0.")
        object.__setattr__(self, "noise", self.noise if per_axis else np.repeat(self.noise, 3))
        for name in ("lowpass", "rate"):
            given = getattr(self, name)
            if given is not None and not (isinstance(given, int | float) and math.isfinite(given) and given > 0):
                raise InputError(f"{name} of a reading is {given!r} Hz; allowed are positive numbers.")
        if isinstance(self.seed, bool) or not isinstance(self.seed, int | np.integer) or self.seed < 0:
            raise InputError(f"seed of a reading is {self.seed!r}; allowed are whole numbers from 0.")
        if self.tool is not None and not (isinstance(self.tool, str) and self.tool == "body"):
            try:
                mass, centre = self.tool
            except (TypeError, ValueError):
                raise InputError(
                    f"tool of a reading is {self.tool!r}; allowed are (mass in kg, centre (3,) in m) and 'body'."
                ) from None
            (mass,) = _numbers("mass of the tool of a reading", [mass], 1)
            object.__setattr__(self, "tool", (float(mass), _numbers("centre of the tool of a reading", centre, 3)))


def _numbers(what: str, value: Any, size: int) -> np.ndarray:
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        array = np.zeros(0)
    if array.shape != (size,) or not np.isfinite(array).all():
        raise InputError(f"{what} is {value!r}; allowed are {size} finite numbers.")
    return array

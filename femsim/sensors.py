"""What a force/torque sensor shows: its frame and point, weight of the tool, filter, sampling, bias and noise."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from femsim.errors import InputError
from femsim.signals import move_wrench, rotation_matrix, weight_wrench


@dataclass(frozen=True)
class Reading:
    """Options of a force/torque sensor; every default changes nothing.

    What they make of the true wrench goes to further columns ``NAME_measured_fx_N`` ..., in this order: point, weight, frame,
    low-pass, sampling, bias and noise. Poses are those at the end of the step.

    Parameters
    ----------
    frame : "world", "body" or array_like
        Axes of the reading: the world's, those of the sensed rigid part (which turn with it), or fixed ones, given by the
        rotation (vector (3,) in rad, or matrix (3, 3)) that takes vectors of the sensor to the world.
    point : (3,) float, m, optional
        Point that the torque is about: in the frame of the body and seen from its own reference point where ``frame`` is
        "body" (it moves along), else a fixed point of the world. Default: the reference point, see docs/outputs.md.
    tool : (float, (3,) float), kg and m, optional
        Mass and centre of mass (frame of the body, from the reference point) whose weight is taken off a mount sensor.
    lowpass : float, Hz, optional
        Cut-off of a causal Butterworth filter of second order (it delays, as in an instrument).
    rate : float, Hz, optional
        Sampling rate; between samples the last one is held. Default: every step.
    bias : (6,) float, N and N m
        Added to each sample.
    noise : (float, float), N and N m
        Standard deviation of white noise on each sample, of forces and of torques.
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
        if known and self.frame not in ("world", "body"):
            raise InputError(
                f"frame of a reading is {self.frame!r}; allowed are 'world', 'body' and a rotation vector or matrix."
            )
        object.__setattr__(self, "rotation", np.eye(3) if known else rotation_matrix("frame of a reading", self.frame))
        object.__setattr__(self, "turns", known and self.frame == "body")
        for name, size in (("point", 3), ("bias", 6), ("noise", 2)):
            value = getattr(self, name)
            if name != "point" or value is not None:
                object.__setattr__(self, name, _numbers(f"{name} of a reading", value, size))
        if (self.noise < 0).any():
            raise InputError(f"noise of a reading is {tuple(self.noise)}; allowed are standard deviations >= 0.")
        for name in ("lowpass", "rate"):
            given = getattr(self, name)
            if given is not None and not (isinstance(given, int | float) and math.isfinite(given) and given > 0):
                raise InputError(f"{name} of a reading is {given!r} Hz; allowed are positive numbers.")
        if self.tool is not None:
            try:
                mass, centre = self.tool
            except (TypeError, ValueError):
                raise InputError(f"tool of a reading is {self.tool!r}; allowed are (mass in kg, centre (3,) in m).") from None
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


class Instrument:
    """A sensor with a reading at work: one call a step, in the order of time.

    Parameters
    ----------
    reading : Reading
        Its options.
    dt : float, s
        Time step.
    gravity : ndarray, (3,), m/s^2
        World frame.

    Raises
    ------
    InputError
        A cut-off that the time step cannot show, or a rate above that of the steps.
    """

    def __init__(self, reading: Reading, dt: float, gravity: np.ndarray) -> None:
        if reading.lowpass is not None and reading.lowpass >= 0.5 / dt:
            raise InputError(f"lowpass of a reading is {reading.lowpass:g} Hz; steps of {dt:g} s show less than {0.5 / dt:g} Hz.")
        if reading.rate is not None and reading.rate > (1.0 + 1e-9) / dt:
            raise InputError(f"rate of a reading is {reading.rate:g} Hz; steps of {dt:g} s give at most {1.0 / dt:g} Hz.")
        from scipy.signal import butter

        self.reading, self.gravity = reading, gravity
        self._sections = None if reading.lowpass is None else butter(2, reading.lowpass, fs=1.0 / dt, output="sos")
        self._memory: np.ndarray | None = None
        self._noise = np.random.default_rng(reading.seed)
        self._next_sample = 0.0
        self._held = np.zeros(6)

    def read(self, time: float, wrench: np.ndarray, rotation: np.ndarray, origin: np.ndarray) -> np.ndarray:
        """Give what the sensor shows after a step.

        Parameters
        ----------
        time : float, s
            End of the step.
        wrench : ndarray, (6,), N and N m
            True force and torque about ``origin``, world frame.
        rotation : ndarray, (3, 3)
            Axes of the sensed body in the world, as columns.
        origin : ndarray, (3,), m
            Reference point, world.

        Returns
        -------
        ndarray, (6,)
        """
        r = self.reading
        point = origin if r.point is None else (origin + rotation @ r.point if r.turns else r.point)
        force, torque = wrench[:3], move_wrench(wrench[:3], wrench[3:], origin - point)
        if r.tool is not None:
            weight, moment = weight_wrench(r.tool[0], origin + rotation @ r.tool[1] - point, self.gravity)
            force, torque = force + weight, torque + moment  # a mount at rest carries -weight
        axes = rotation if r.turns else r.rotation
        shown = np.concatenate([axes.T @ force, axes.T @ torque])
        if self._sections is not None:
            from scipy.signal import sosfilt, sosfilt_zi

            if self._memory is None:
                self._memory = sosfilt_zi(self._sections)[:, :, None] * shown
            filtered, self._memory = sosfilt(self._sections, shown[None], axis=0, zi=self._memory)
            shown = filtered[0]
        if r.rate is None or time >= self._next_sample - 1e-9:
            self._held = shown + r.bias + np.repeat(r.noise, 3) * self._noise.standard_normal(6)
            self._next_sample += 1.0 / r.rate if r.rate is not None else 0.0
        return self._held.copy()

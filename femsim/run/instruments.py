"""Sensors with a reading at work: the wrench of a step in, what the instrument shows out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from femsim.base.errors import InputError
from femsim.base.wrenches import move_wrench, weight_wrench
from femsim.scene.reading import Reading

#: The 128-bit numbers of the generator of noise are kept in two words of 64 bits.
_WORD = 1 << 64
#: Part of a step by which a time may fall short of a frame or sample: times are sums of steps, off by 2e-8 s after a million.
ON_TIME = 1e-3


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

        self.reading, self.gravity, self._slack = reading, gravity, ON_TIME * dt
        self._sections = None if reading.lowpass is None else butter(2, reading.lowpass, fs=1.0 / dt, output="sos")
        self.reset()

    def reset(self) -> None:
        """Forget all that was read: the next step is the first."""
        self._filter: np.ndarray | None = None
        self._noise = np.random.Generator(np.random.PCG64(self.reading.seed))
        self._next_sample = 0.0
        self._held = np.zeros(6)

    def reseed(self, seed: Sequence[int]) -> None:
        """Start the noise anew."""
        self._noise = np.random.Generator(np.random.PCG64(np.random.SeedSequence(list(seed))))

    def read(
        self,
        time: float,
        wrench: np.ndarray,
        origin: np.ndarray,
        pose: tuple[np.ndarray, np.ndarray],
        tool: tuple[float, np.ndarray] | None,
    ) -> np.ndarray:
        """Give what the sensor shows after a step.

        Parameters
        ----------
        time : float, s
            End of the step.
        wrench : ndarray, (6,), N and N m
            True force and torque about ``origin``, world frame.
        origin : ndarray, (3,), m
            Reference point, world.
        pose : (ndarray, ndarray), (3, 3) and (3,), m
            Axes of the part that the reading turns with, as columns, and its centre of mass, world.
        tool : (float, ndarray), kg and m, optional
            Mass whose weight is taken off and its centre, (3,), world.

        Returns
        -------
        ndarray, (6,)
        """
        r, (rotation, centre) = self.reading, pose
        point = origin if r.point is None else (centre + rotation @ r.point if r.turns else r.point)
        force, torque = wrench[:3], move_wrench(wrench[:3], wrench[3:], origin - point)
        if tool is not None:
            weight, moment = weight_wrench(tool[0], tool[1] - point, self.gravity)
            force, torque = force + weight, torque + moment  # a mount at rest carries -weight
        axes = rotation if r.turns else r.rotation
        shown = np.concatenate([axes.T @ force, axes.T @ torque])
        if self._sections is not None:
            from scipy.signal import sosfilt, sosfilt_zi

            if self._filter is None:
                self._filter = sosfilt_zi(self._sections)[:, :, None] * shown
            filtered, self._filter = sosfilt(self._sections, shown[None], axis=0, zi=self._filter)
            shown = filtered[0]
        if r.rate is None or time >= self._next_sample - self._slack:
            self._held = shown + r.bias + r.noise * self._noise.standard_normal(6)
            if r.rate is not None:  # samples stand on one grid of times, also of a reading that starts late
                self._next_sample += max(1.0, np.floor((time - self._next_sample) * r.rate + 1.0 + 1e-9)) / r.rate
        return self._held.copy()

    def memory(self) -> dict[str, np.ndarray]:
        """Give what it carries from step to step, for :meth:`recall`: filter (empty before the first step), noise, sampling."""
        state = self._noise.bit_generator.state
        halves = [part for name in ("state", "inc") for part in divmod(state["state"][name], _WORD)]
        return {
            "filter": np.zeros(0) if self._filter is None else self._filter.copy(),
            "noise": np.array([*halves, state["has_uint32"], state["uinteger"]], dtype=np.uint64),
            "next_sample": np.array(self._next_sample),
            "held": self._held.copy(),
        }

    def recall(self, memory: Mapping[str, np.ndarray]) -> None:
        """Take back what :meth:`memory` gave."""
        self._filter = memory["filter"].copy() if memory["filter"].size else None
        high, low, inc_high, inc_low, has_uint32, uinteger = (int(word) for word in memory["noise"])
        self._noise.bit_generator.state = {
            "bit_generator": "PCG64",
            "state": {"state": high * _WORD + low, "inc": inc_high * _WORD + inc_low},
            "has_uint32": has_uint32,
            "uinteger": uinteger,
        }
        self._next_sample, self._held = float(memory["next_sample"]), memory["held"].copy()

"""Stiff fluids and cables in an energy-momentum step: forces by both ends, nearer to the last where they would alternate."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from femsim.model.bodies.body import StepSettings
from femsim.model.bodies.evenness import Evenness

#: Damping by the ``strain_damping`` of a scene, and the most of it, with which the force is that of the end of the step.
_STIFFER, _MOST = 10.0, 0.5


class Swing:
    """How much the change of a strain, the lack of a volume or an elongation, adds to the force of a step.

    A force by the mean of both ends lets a stiff strain turn round about its rest from step to step, for ever at the limit: the
    step hardly moves what is strained. So gamma times the change over the step is added, a viscosity of gamma dt. Of at most 1/2,
    with which it is the force of the end, the part acts by which the strain does turn round, see
    :mod:`femsim.model.bodies.evenness`: nearly nothing where the step follows a swing.

    Attributes
    ----------
    damping : float
        gamma of the step that was begun; 0 in other steps than those of energy-momentum.
    """

    def __init__(self) -> None:
        self._evenness = Evenness(lambda: np.ones(1))
        self.reset()

    def reset(self) -> None:
        """Forget all."""
        self._evenness.reset()
        self._settings: StepSettings | None = None
        self.damping = 0.0

    def begin(self, strain: float, settings: StepSettings) -> None:
        """Begin a step from a strain, of any unit."""
        self._settings, self.damping = settings, 0.0
        self._evenness.begin(np.array([strain]))
        if settings.conserving:
            self.damping = self._evenness.share * min(_STIFFER * settings.strain_damping, _MOST)

    def end(self) -> None:
        """End the step that was begun, where one was."""
        if self._settings is not None:
            self._evenness.end(self._settings)
        self._settings = None

    def memory(self) -> dict[str, np.ndarray]:
        """Give what is remembered of the last steps; arrays that no step changes."""
        return self._evenness.memory()

    def recall(self, memory: Mapping[str, np.ndarray]) -> None:
        """Go back to where these were, from :meth:`memory`, with no step begun."""
        self._evenness.recall(memory)
        self._settings = None


def ends(t: float, settings: StepSettings) -> tuple[float, float]:
    """Return the times, s, of both ends of the step whose forces are those of t; but for energy-momentum that time alone."""
    if not settings.conserving:
        return t, t
    begin = max(t - settings.theta * settings.dt, 0.0)  # below zero is rounding
    return begin, t + (1.0 - settings.theta) * settings.dt


def end_of_step(x: np.ndarray, v_hat: np.ndarray, settings: StepSettings) -> np.ndarray:
    """Positions (k, 3), m, at the end of a step that is at x after theta dt, with the velocity v_hat (3 k,)."""
    return moved(x, v_hat, (1.0 - settings.theta) * settings.dt)


def moved(x: np.ndarray, v: np.ndarray, time: float) -> np.ndarray:
    """Positions (k, 3), m, after a time, s, with the velocity v (3 k,)."""
    return np.asarray(x + time * v.reshape(-1, 3))


def elastic_tension(stiffness: float, first: float, last: float, damping: float = 0.0) -> tuple[float, float]:
    """Tension of an elastic cable, N, that is longer than free by so much (m) at two ends of a step; its slope, N/m.

    The change of k/2 <d>^2 over that of the length, <d> = max(d, 0), and ``damping`` times that of k <d>, but never a push. The
    slope is that by the mean of both.
    """
    pulled, change = (max(first, 0.0), max(last, 0.0)), last - first
    taut = last > 0.0 if first * last < 0.0 else max(first, last) > 0.0
    viscous, slope = damping * stiffness * (pulled[1] - pulled[0]), 2.0 * damping * stiffness * taut
    if first * last >= 0.0:  # on one side all the way
        return 0.5 * stiffness * sum(pulled) + viscous, stiffness * taut + slope
    tension = 0.5 * stiffness * (pulled[1] ** 2 - pulled[0] ** 2) / change
    if tension + viscous <= 0.0:
        return 0.0, 0.0
    return tension + viscous, 2.0 * (stiffness * pulled[1] - tension) / change + slope

"""How evenly a body is strained from step to step: `strain_damping` acts on what turns round within a few steps.

A viscosity of alpha dt takes from each swing in proportion to alpha w dt, so a step with it is of first order. It is meant for
motion that the step does not follow: contacts that chatter, waves shorter than the step. So the body looks back. Between the
starts of the last steps its strains, of stiffness k, changed at rates r1 and, before that, r2; of alpha the part

    min(1, sum k (r1 - r2)^2 / sum k (r1^2 + r2^2))^2

acts: all where strain turns round from step to step, and about (w dt)^4 / 4 where the step follows a swing of frequency w, but at
its ends, where all strains turn round at once: over a swing it acts like 2.5 (w dt)^3. It is known when a step starts and never
negative, so no step gains energy by it. Where contacts pushed on the body in the last step all of alpha acts: impacts are of
first order, and what rests shall come to rest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from contact.compiled import njit
from femsim.model.bodies.body import StepSettings


class Evenness:
    """Strains of a body at the starts of its steps.

    Parameters
    ----------
    stiffness : callable
        ``stiffness() -> (k,)``, by which strains weigh: twice the energy of a strain of one, of any unit.

    Attributes
    ----------
    share : float
        Part of ``strain_damping`` that acts in the step that was begun.
    touched : bool
        Whether contacts pushed on the body in the last step.
    """

    def __init__(self, stiffness: Callable[[], np.ndarray]) -> None:
        self._stiffness = stiffness
        self.reset()

    def __repr__(self) -> str:
        return f"<Evenness: {self.share:.3g} of the damping acts>"

    def reset(self) -> None:
        """Forget all: two steps are damped in full."""
        self.share, self.touched = 1.0, False
        self._forget()

    def _forget(self) -> None:
        self._strain, self._rate, self._dt = _NONE, _NONE, 0.0  # of the last step: strain at its start, rate before it, length
        self._now, self._now_rate = _NONE, _NONE

    def memory(self) -> dict[str, np.ndarray]:
        """Give what is remembered of the last steps; arrays that no step changes."""
        return {
            "last_strain": self._strain, "last_rate": self._rate, "last_dt": np.array(self._dt), "touched": np.array(self.touched)
        }  # fmt: skip

    def recall(self, memory: Mapping[str, np.ndarray]) -> None:
        """Go back to where these were, from :meth:`memory`."""
        self._strain, self._rate, self._dt = memory["last_strain"], memory["last_rate"], float(memory["last_dt"])
        self.touched = bool(memory["touched"])

    def damping(self, settings: StepSettings) -> float:
        """Damping of strain changes, alpha, that acts in the step that was begun."""
        return settings.strain_damping * self.share

    def begin(self, strain: np.ndarray) -> None:
        """Begin a step from strains (k,), which become its own."""
        self._now, self._now_rate, self.share = strain, _NONE, 1.0
        if not len(self._strain):
            return
        self._now_rate = (strain - self._strain) / self._dt
        if len(self._rate) and not self.touched:
            self.share = unevenness(self._now_rate, self._rate, self._stiffness())

    def end(self, settings: StepSettings) -> None:
        """End the step that was begun; after one without ``strain_damping`` nothing is known."""
        if settings.conserving and settings.strain_damping > 0.0:
            self._strain, self._rate, self._dt = self._now, self._now_rate, settings.dt
        else:
            self._forget()


_NONE = np.empty(0)


@njit(cache=True)
def unevenness(rate: np.ndarray, before: np.ndarray, stiffness: np.ndarray) -> float:
    """Part of the damping that acts after two rates (k,) of strains of this ``stiffness`` (k,); all where nothing moves."""
    changed = moved = 0.0
    for k in range(rate.shape[0]):
        change = rate[k] - before[k]
        changed += stiffness[k] * change * change
        moved += stiffness[k] * (rate[k] * rate[k] + before[k] * before[k])
    return (changed / moved) ** 2 if changed < moved else 1.0

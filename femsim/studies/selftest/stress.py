"""What a stress scene is, and how a run of it is judged."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from femsim.base.errors import InputError
from femsim.run.simulate import simulate
from femsim.scene.scene import Scene
from femsim.step.report import StepReport
from femsim.step.stepper import Stepper

#: Simulated seconds of the long form; processor seconds after the first step, which may compile, from which a scene is too slow
#: in the short and in the long form; wall seconds of one step are this many times more.
LONG, SLOW_SHORT, SLOW_LONG, WALL = 10.0, 60.0, 1800.0, 10.0
#: Steps of the long form: a scene whose time step is so small that it needs more ends earlier.
MOST_STEPS = 100_000
#: Bodies that are slower than this, m/s, are taken to be at rest.
STILL = 1e-3
#: ... and what they are lifted by, m, when contacts push out what rounding let in.
LIFTED = 1e-6
#: Columns of steps.csv that need not be finite: how far time was off is not known in the first step.
_MAY_BE_NAN = ("time_error_m",)


@dataclass(frozen=True)
class Holds:
    """What must hold at every step.

    Attributes
    ----------
    energy : float
        Energy that came from nowhere, over the largest energy that passed: at most this.
    penetration : float, m
        Of contacts that the run has: at most this.
    inverted : int
        Steps in a row with inverted elements: at most this; none at the end.
    below : float, m
        No tunnelling: no centre of a body goes lower than this.
    within : float, m
        Nor further from the origin than this.
    top : float, m
        No collapse: the highest centre of a body is never lower than this.
    """

    energy: float = 0.02
    penetration: float = 1e-3
    inverted: int = 0
    below: float = -1e-3
    within: float = 20.0
    top: float = -math.inf


@dataclass(frozen=True)
class Stress:
    """A stress scene.

    Attributes
    ----------
    name : str
        Name, unique.
    what : str
        What is hard about it, in words.
    build : callable
        Makes the scene, with its time step.
    holds : Holds, optional
        What must hold; None where nothing can.
    may_name : collection of str
        Kinds of reasons, one of which the verdict must name where something does not hold, see
        :class:`femsim.scene.health_bounds.HealthBounds`. Empty: everything must hold.
    refused : str
        Words with which the scene is refused instead; "" where it must run.
    short : float, s
        Simulated time of the short form: what is hard must have happened by then.
    """

    name: str
    what: str
    build: Callable[[], Scene]
    holds: Holds | None = field(default_factory=Holds)
    may_name: Collection[str] = ()
    refused: str = ""
    short: float = 0.3

    @property
    def demand(self) -> str:
        """What is asked of it, in words."""
        named = f"names {' or '.join(sorted(set(self.may_name)))}"
        if self.refused:
            return "refused with words"
        if self.holds is None:
            return f"verdict {named}"
        return f"bounds hold{', or verdict ' + named if self.may_name else ''}"


@dataclass(frozen=True)
class Outcome:
    """How a stress scene ended.

    Attributes
    ----------
    stress : Stress
        The scene.
    passed : bool
        Whether it ended as it states.
    ended : str
        "holds", "named", "refused" or "failed".
    text : str
        What was seen.
    verdict : str
        Verdict of the run on itself; "" without one.
    reasons : tuple of str
        Kinds of its reasons.
    steps : int
        Steps taken.
    seconds : float, s
        Processor time.
    """

    stress: Stress
    passed: bool
    ended: str
    text: str
    verdict: str = ""
    reasons: tuple[str, ...] = ()
    steps: int = 0
    seconds: float = 0.0


class Watch:
    """Measures, after each step, where bodies are, and ends a run that takes too long."""

    def __init__(self, slow: float) -> None:
        self._slow, self._until = slow, math.inf
        self.lowest, self.farthest, self.top, self.too_slow, self.least = math.inf, 0.0, math.inf, False, 0.0

    def step(self, stepper: Stepper, report: StepReport) -> None:
        """Look at the centres of all bodies; the least energy that counts is that of all at 1 mm/s, or lifted by a micrometre."""
        mass, weight = sum(body.mass for body in stepper.system.bodies), float(np.linalg.norm(stepper.scene.gravity))
        self.least = mass * max(0.5 * STILL**2, weight * LIFTED)
        highest = -math.inf
        for body, q in zip(stepper.system.bodies, stepper.system.q_slices, strict=True):
            centre = body.centre_of_mass(stepper.state.q[q])
            highest = max(highest, float(centre[2]))
            self.lowest = min(self.lowest, float(centre[2]))
            self.farthest = max(self.farthest, float(np.linalg.norm(centre)))
        self.top = min(self.top, highest)

    def end(self, row: Mapping[str, float]) -> str | None:
        """Say that it takes too long."""
        if self._until == math.inf:
            self._until = time.process_time() + self._slow
        self.too_slow = time.process_time() > self._until
        return "it takes too long" if self.too_slow else None


def duration_of(stress: Stress, dt: float, long: bool) -> float:
    """Return the simulated time of a scene with so long a step, s, in the short or the long form."""
    return min(LONG, MOST_STEPS * dt) if long else stress.short


def run_stress(stress: Stress, *, long: bool = False) -> Outcome:
    """Run a stress scene and judge it.

    Parameters
    ----------
    stress : Stress
        The scene.
    long : bool
        For ten simulated seconds or `MOST_STEPS` steps, instead of its own short time.

    Raises
    ------
    KeyboardInterrupt
        Somebody asked the process to end.
    """
    began, slow = time.process_time(), SLOW_LONG if long else SLOW_SHORT
    watch = Watch(slow)
    try:
        scene = stress.build()
        run = simulate(
            scene, duration=duration_of(stress, scene.dt, long), on_step=watch.step, until=watch.end, max_step_seconds=WALL * slow
        )
    except InputError as error:
        good = bool(stress.refused) and stress.refused in str(error)
        return Outcome(stress, good, "refused" if good else "failed", f"refused: {error}", seconds=time.process_time() - began)
    except Exception as error:  # whatever it is, it is a failure of this scene, and the others go on
        return Outcome(
            stress, False, "failed", f"{type(error).__name__}: {str(error)[:200]}", seconds=time.process_time() - began
        )
    if run.status == "interrupted":  # the signal is for the command, and not for one of its scenes
        raise KeyboardInterrupt
    health: dict[str, Any] = run.info.get("health", {})
    kinds = tuple(str(reason["kind"]) for reason in health.get("reasons", ()))
    broken = [f"status {run.status}: {run.message}"] if run.status == "failed" else []
    if watch.too_slow:
        broken.append(f"too slow: {len(run.steps['step'])} steps in {slow:.0f} s")
    elif stress.holds is not None:
        broken += violations(stress.holds, run.steps, watch)
        if not broken and health.get("verdict") == "wrong":
            broken.append(f"every bound holds, but the verdict is wrong and names {', '.join(kinds)}")
    named = sorted(set(stress.may_name) & set(kinds)) if health.get("verdict", "good") != "good" else []
    if stress.refused:
        ended, passed, text = "failed", False, f"it runs, but must be refused ({stress.refused})"
    elif not broken and stress.holds is not None:
        ended, passed, text = "holds", True, "every bound holds"
    elif named and not watch.too_slow:
        ended, passed = "named", True
        text = next(str(r["text"]) for r in health["reasons"] if r["kind"] == named[0])
    else:
        ended, passed = "failed", False
        text = "; ".join(broken) or f"the verdict is {health.get('verdict', 'missing')} and names {', '.join(kinds) or 'nothing'}"
    return Outcome(
        stress, passed, ended, text, str(health.get("verdict", "")), kinds, len(run.steps["step"]), time.process_time() - began
    )


def violations(holds: Holds, steps: Mapping[str, np.ndarray], watch: Watch) -> list[str]:
    """Say what does not hold, measured from the table of steps and from where bodies were."""
    out = []
    for name, values in steps.items():
        if name not in _MAY_BE_NAN and not np.isfinite(values).all():
            out.append(f"{name} is not finite in step {int(np.argmin(np.isfinite(values))) + 1}")
    if not len(steps["step"]):
        return [*out, "no step was taken"]
    created = energy_created(steps, watch.least)
    if not created <= holds.energy:
        out.append(f"energy: {created:.2g} of the largest that passed came from nowhere, allowed {holds.energy:g}")
    deepest = float(steps["max_penetration_m"].max())
    if not deepest <= holds.penetration:
        out.append(f"penetration: {deepest:.3g} m, allowed {holds.penetration:g} m")
    led = float(steps["led_overlap_m"].max()) if "led_overlap_m" in steps else 0.0
    if not led <= holds.penetration:
        out.append(f"driven or fixed parts: {led:.3g} m in each other, allowed {holds.penetration:g} m")
    longest = _longest_in_a_row(steps["inverted_elements"] > 0)
    if longest > holds.inverted or steps["inverted_elements"][-1] > 0:
        out.append(f"inverted elements: in {longest} steps in a row, allowed {holds.inverted}")
    if watch.lowest < holds.below:
        out.append(f"tunnelling: a centre at z = {watch.lowest:.3g} m, allowed {holds.below:g} m")
    if watch.top < holds.top:
        out.append(f"collapse: the highest centre at z = {watch.top:.3g} m, allowed {holds.top:g} m")
    if watch.farthest > holds.within:
        out.append(f"a body is {watch.farthest:.3g} m away, allowed {holds.within:g} m")
    return out


def energy_created(steps: Mapping[str, np.ndarray], least: float) -> float:
    """Energy that came from nowhere over the largest that passed: how far E + known losses - W rose above its lowest value."""
    held, lost = steps["kinetic_energy_J"] + steps["elastic_energy_J"], steps["friction_loss_J"] + steps["viscous_loss_J"]
    balance = held + lost - steps["work_J"]
    rise = balance - np.minimum.accumulate(balance)
    gains = np.clip(np.diff(steps["work_J"], prepend=0.0), 0.0, None)
    passed = np.maximum.accumulate(np.maximum(steps["kinetic_energy_J"] + steps["elastic_energy_J"], np.cumsum(gains)))
    return float((rise / np.maximum(passed, max(least, np.finfo(np.float64).tiny))).max())


def _longest_in_a_row(marked: np.ndarray) -> int:
    longest = count = 0
    for mark in marked:
        count = count + 1 if mark else 0
        longest = max(longest, count)
    return longest

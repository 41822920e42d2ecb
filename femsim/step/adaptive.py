"""Steps of a length that the motion asks for: an estimate of the local error, and halves of halves of the longest step."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from femsim.base.errors import InputError
from femsim.step.advance import INFEASIBLE, NOT_FINITE, SOLVED, Attempt, attempt, joined, take_step
from femsim.step.report import StepReport
from femsim.step.state import State
from femsim.step.stepper import Stepper
from femsim.step.system import System

#: Part of the tolerance that the error of a step of twice the length must be expected to keep, before it is tried.
_SAFE = 0.5
#: Most halvings of the longest step.
_MOST_LEVELS = 20


@dataclass(frozen=True)
class StepLengths:
    """Which steps an adaptive run takes.

    Attributes
    ----------
    longest : float, s
        The step that is reported: one row of the tables each.
    levels : int
        How often it may be halved.
    tolerance : float, m
        Bound of the local error of a step, see :func:`local_error`.
    """

    longest: float
    levels: int
    tolerance: float

    @classmethod
    def between(cls, shortest: float, longest: float, tolerance: float) -> StepLengths:
        """Lengths from ``longest`` by halves down to ``shortest``, s, or at most a factor of two below it.

        Raises
        ------
        InputError
            More than 20 halvings.
        """
        levels = max(math.ceil(math.log2(longest / shortest) - 1e-9), 0)
        if levels > _MOST_LEVELS:
            raise InputError(
                f"dt_bounds are {shortest:g} and {longest:g} s, {levels} halvings apart; allowed are at most {_MOST_LEVELS}: "
                "raise the shortest step or lower the longest."
            )
        return cls(longest, levels, tolerance)


def local_error(system: System, old: State, new: State, theta: float) -> float:
    """Estimate of the error of position that a step makes, m: of the worst body, the root of its mean square by mass.

    Two parts: how far v_hat is from that extrapolated from the step before, scaled to the error of a rule of second order,
    |q'''| dt^3 / 12; and for theta beyond 1/2 the error of first order, (theta - 1/2) dt^2 |q''|. Rows whose velocity is given
    make none. Where a contact closes, both are about dt times the jump of velocity, so impacts are passed in short steps.

    Parameters
    ----------
    system : System
        All bodies.
    old, new : State
        Start and end of the step.
    theta : float
        Integration parameter.
    """
    dt, last = new.t - old.t, old.dt
    changed = np.where(system.prescribed, 0.0, new.v - old.v)
    curved = np.zeros(system.n)
    if theta < 1.0:
        faster = (old.v - old.v_hat) * (theta * dt / ((1.0 - theta) * last)) if last > 0.0 else 0.0
        curved = np.where(system.prescribed, 0.0, new.v_hat - old.v - faster)
    first, second = theta - 0.5, dt / (3.0 * (dt + last))
    worst = 0.0
    for body, q, v in zip(system.bodies, system.q_slices, system.v_slices, strict=True):
        place, mass = old.q[q], body.mass
        if mass > 0.0:
            speed, jerk = (math.sqrt(2.0 * body.kinetic_energy(place, w[v]) / mass) for w in (changed, curved))
            worst = max(worst, dt * (first * speed + second * jerk))
    return worst


def take_adaptive_step(stepper: Stepper, lengths: StepLengths, max_halvings: int = 0) -> StepReport:
    """Advance by the longest step, in parts that keep the local error within its tolerance.

    A part whose estimate is too large, in which a joint breaks, or that cannot be solved, is undone and taken at half the length
    or less, down to the shortest, which is taken as :func:`femsim.step.advance.take_step` takes it, whatever its error. A part
    that follows one with little error is twice as long; one whose contacts are proved infeasible is taken as it is. Parts are the
    longest step over powers of two and begin at multiples of their length, so the same input takes the same steps, and the tables
    have a row each ``lengths.longest``.

    Parameters
    ----------
    stepper : Stepper
        The simulation.
    lengths : StepLengths
        Which lengths are allowed.
    max_halvings : int
        How often a shortest part that cannot be solved is halved further.

    Raises
    ------
    ContactError, numpy.linalg.LinAlgError
        That of a shortest part which gave nothing to go on with.
    """
    before, settings, joints = stepper.state, stepper.settings, stepper.system.joints
    end, ticks, order = before.t + lengths.longest, 2**lengths.levels, 3 if settings.theta == 0.5 else 2
    parts: list[Attempt] = []
    tick, level = 0, min(before.level, lengths.levels)
    try:
        while tick < ticks:
            start, dt, broken = stepper.state, lengths.longest / 2**level, joints.broken()
            stepper.settings = replace(settings, dt=dt)
            if level == lengths.levels:
                report = take_step(stepper, max_halvings)
                part = Attempt(dt, SOLVED if report.finite else NOT_FINITE, report, None)
            else:
                part = attempt(stepper)
            if part.report is not None:
                part.report.time_error = local_error(stepper.system, start, stepper.state, settings.theta)
            known = part.report is not None and part.grade == SOLVED and joints.broken() == broken
            error = part.report.time_error if part.report is not None and known else math.inf
            if level < lengths.levels and not error <= lengths.tolerance and part.grade != INFEASIBLE:
                stepper.restore(start)
                level += _halvings(error / lengths.tolerance, order, lengths.levels - level)
                continue
            parts.append(part)
            if part.grade == NOT_FINITE:
                break
            tick += ticks >> level
            stepper.state = replace(stepper.state, step=before.step, t=before.t + lengths.longest * (tick / ticks))
            if level and tick % (2 * (ticks >> level)) == 0 and error * 2.0**order <= _SAFE * lengths.tolerance:
                level -= 1
    finally:
        stepper.settings = settings
    stepper.state = replace(stepper.state, t=end, step=before.step + 1, level=level)
    report = joined(parts, end)
    stepper.system.take_acted(report.acted)
    return report


def _halvings(excess: float, order: int, most: int) -> int:
    """How often to halve a step whose error is ``excess`` times too large."""
    if not math.isfinite(excess):
        return 1
    return max(1, min(math.ceil(math.log2(excess) / order), most))

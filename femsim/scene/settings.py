"""Settings of a scene: what each may be, whether it is given with the scene or set later."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, get_args

import numpy as np

from femsim.base.errors import InputError
from femsim.scene.checks import LONGEST_STEP, positive, vector
from femsim.scene.health_bounds import HealthBounds

#: How a step is taken in time.
Integrator = Literal["theta", "energy-momentum"]


def time_step(dt: float | str) -> float | str:
    """Check a time step, s, or "auto"."""
    if isinstance(dt, str):
        if dt != "auto":
            raise InputError(f'dt is {dt!r}; allowed are a number of seconds and "auto".')
        return dt
    return positive("dt", dt, "s", LONGEST_STEP)


def scheme(integrator: str | None, theta: float | None, nonlinear_tolerance: float | None) -> tuple[Integrator, float]:
    """How a step is taken, and its theta: what is not given follows from what is."""
    if integrator is None:
        papers = theta is not None or nonlinear_tolerance is None  # theta alone, or one linearisation a step
        integrator = "theta" if papers else "energy-momentum"
    if integrator not in get_args(Integrator):
        raise InputError(f"integrator is {integrator!r}; allowed are {', '.join(map(repr, get_args(Integrator)))}.")
    if integrator == "energy-momentum":
        if theta is not None:
            raise InputError(f"theta is {theta}; the energy-momentum step has none of its own, so leave it out, or integrator.")
        if nonlinear_tolerance is None:
            raise InputError(
                "nonlinear_tolerance is None; the energy-momentum step must be solved, so give a bound such as 1e-4."
            )
        return "energy-momentum", 0.5
    theta = 1.0 if theta is None else theta
    if not (_is_number(theta) and 0.5 <= theta <= 1.0):
        raise InputError(f"theta is {theta!r}; allowed are values from 0.5 (mid-point) to 1 (backward Euler).")
    return "theta", float(theta)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | np.floating | np.integer)


def share(name: str, value: float, least: str = "") -> float:
    """Check a number from 0 to 1."""
    if not (_is_number(value) and 0.0 <= value <= 1.0):
        raise InputError(f"{name} is {value!r}; allowed are values from 0{least} to 1.")
    return value


def whole(name: str, value: int) -> int:
    """Check a number of things, at least one."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InputError(f"{name} is {value!r}; allowed are whole numbers from 1.")
    return value


def bounds(given: Sequence[float]) -> tuple[float, float]:
    """Check the bounds of an adaptive time step, s."""
    if not isinstance(given, Sequence) or len(given) != 2:
        raise InputError(f"dt_bounds is {given!r}; give the shortest and the longest step in s, such as (1e-4, 1e-2).")
    shortest, longest = (positive("dt_bounds", one, "s") for one in given)
    if shortest > longest:
        raise InputError(f"dt_bounds are {shortest:g} and {longest:g} s; give the shortest step first, then the longest.")
    return shortest, longest


def health_bounds(given: HealthBounds | None) -> HealthBounds:
    """Check the bounds of the health verdict; those by default where there are none."""
    if not isinstance(given, HealthBounds | None):
        raise InputError(f"health is {given!r}; give fs.HealthBounds(...), or leave it out.")
    return given or HealthBounds()


def nonlinear(tolerance: float | None) -> float | None:
    """Check a nonlinear tolerance."""
    return None if tolerance is None else positive("nonlinear_tolerance", tolerance, "1")


#: What a setting becomes, by name: the number itself, or an error that says what is allowed.
CHECKS: dict[str, Callable[[Any], Any]] = {
    "strain_damping": lambda value: share("strain_damping", value, " (none)"),
    "correction": lambda value: share("correction", value),
    "health": health_bounds,
    "thin_shapes": bool,
    "nonlinear_tolerance": nonlinear,
    "max_solves": lambda value: whole("max_solves", value),
    "most_per_pair": lambda value: whole("most_per_pair", value),
    "dt_bounds": bounds,
    "time_tolerance": lambda value: positive("time_tolerance", value, "m"),
    "duration": lambda value: positive("duration", value, "s"),
    "gravity": lambda value: vector("gravity", value).copy(),
    "largest_size": lambda value: positive("largest_size", value, "m"),
    "margin": lambda value: positive("margin", value, "m"),
    "max_correction": lambda value: positive("max_correction", value, "m/s"),
}

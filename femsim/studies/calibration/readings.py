"""What fitted Prony terms mean: loss factors at frequencies and creep between times, with intervals."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import numpy as np

from femsim.base.errors import InputError, did_you_mean
from femsim.scene.scene_file import Parameter
from femsim.studies.calibration.file import CalibrationFile, PronyReadings
from materials import MaterialError, creep, loss_factor

#: Difference of unit coordinates for derivatives.
_STEP = 1e-4


def check_names(file: CalibrationFile, parameters: Iterable[Parameter], where: str) -> None:
    """Refuse names in ``[prony]`` that are no parameters of the scene, and values there that are no terms.

    Raises
    ------
    InputError
        Names the entry.
    """
    if file.prony is None:
        return
    defaults = {p.name: p.default for p in parameters}
    for name in (entry for term in file.prony.terms for entry in term if isinstance(entry, str)):
        if name not in defaults:
            raise InputError(
                f"{where}: prony.terms names {name!r}, which is no parameter of the scene{did_you_mean(name, defaults)}"
            )
    try:
        values(file, _fixed(file, defaults) | {name: free.value(0.5) for name, free in file.free.items()})
    except (MaterialError, TypeError, ValueError) as error:
        raise InputError(f"{where}: [prony]: {error}") from None


def values(file: CalibrationFile, parameters: Mapping[str, object]) -> dict[str, float]:
    """Return loss factors and creep by what they are, from values of all parameters by name."""
    asked = file.prony
    assert isinstance(asked, PronyReadings)
    terms = [tuple(float(parameters[x] if isinstance(x, str) else x) for x in term) for term in asked.terms]  # type: ignore[arg-type]
    out = {f"loss factor at {f:g} Hz": float(loss_factor(terms, f, asked.poisson_ratio)) for f in asked.loss_factor}
    for start, end in asked.creep:
        grown = creep(terms, end, asked.poisson_ratio) / creep(terms, start, asked.poisson_ratio)
        out[f"creep from {start:g} to {end:g} s"] = float(grown) - 1.0
    return out


def with_intervals(
    file: CalibrationFile,
    parameters: Iterable[Parameter],
    best: np.ndarray,
    half: np.ndarray | None,
    correlation: np.ndarray,
) -> dict[str, tuple[float, float, float]]:
    """Return value and ends of the interval of each reading; empty without ``[prony]``.

    Parameters
    ----------
    file : CalibrationFile
        With or without readings.
    parameters : iterable of Parameter
        Of the scene, whose defaults count where the file says nothing.
    best : ndarray, (p,)
        Unit coordinates of the free parameters at the best fit.
    half : ndarray, (p,), or None
        Half of their intervals; None where there are none, and the ends are NaN.
    correlation : ndarray, (p, p)
        Of their errors; by it the reading's interval follows from its derivatives there.
    """
    if file.prony is None:
        return {}
    fixed = _fixed(file, {p.name: p.default for p in parameters})

    def at(unit: np.ndarray) -> dict[str, float]:
        return values(file, fixed | {name: free.value(float(u)) for (name, free), u in zip(file.free.items(), unit, strict=True)})

    found = at(best)
    if half is None:
        return {name: (value, float("nan"), float("nan")) for name, value in found.items()}
    slopes = [_slope(at, best, k) for k in range(len(best))]
    out = {}
    for name, value in found.items():
        reach = np.array([slope[name] for slope in slopes]) * half
        wide = float(np.sqrt(max(reach @ correlation @ reach, 0.0)))
        out[name] = (value, value - wide, value + wide)
    return out


def _slope(at: Callable[[np.ndarray], dict[str, float]], best: np.ndarray, k: int) -> dict[str, float]:
    """Differentiate each reading by unit coordinate k, from one side at a bound."""
    low, high = best.copy(), best.copy()
    low[k], high[k] = max(best[k] - _STEP, 0.0), min(best[k] + _STEP, 1.0)
    below, above = at(low), at(high)
    return {name: (above[name] - below[name]) / (high[k] - low[k]) for name in above}


def _fixed(file: CalibrationFile, defaults: Mapping[str, object]) -> dict[str, object]:
    """Values of the parameters that are not free: those of the file, else the defaults of the scene."""
    return {**defaults, **file.parameters}

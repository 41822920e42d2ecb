"""What the logs cannot tell: parameters without effect, at a bound or correlated, and intervals that hold less than they say."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from femsim.studies.calibration.bootstrap import Bootstrap
from femsim.studies.calibration.estimate import AT_BOUND, Estimate
from femsim.studies.calibration.profiles import Profile

_CORRELATED = 0.95
_FLAT = 0.25
_LOWER = 0.05  # a sum of squares below that of the best fit is reported from this part of the level on
_CURVED = 0.2  # profiles are said to differ from the Jacobian's intervals from this part of half of them on
_FEW = 8  # blocks in a sequence


def concerns(names: Sequence[str], unit: np.ndarray, found: Estimate) -> list[str]:
    """Say what the data cannot tell.

    Parameters
    ----------
    names : sequence of str
        Of the parameters.
    unit : ndarray, (p,)
        Best fit, unit coordinates.
    found : Estimate
        Its estimate.
    """
    out = [f"the logs do not depend on {name}: it cannot be identified" for name, b in zip(names, found.blind, strict=True) if b]
    for name, u, half, blind in zip(names, unit, found.half, found.blind, strict=True):
        if not blind and (u < AT_BOUND or u > 1 - AT_BOUND):
            out.append(f"{name} is at its {'lower' if u < 0.5 else 'upper'} bound; its interval does not hold, widen the bounds")
        elif not blind and not half <= min(u, 1.0 - u):
            out.append(
                f"the interval of {name} goes beyond its bounds, where nothing was tried: the logs hardly tell it; add an "
                "experiment that depends on it more, fix it, or widen the bounds"
            )
    for a in range(len(names)):
        for b in range(a):
            if abs(found.correlation[a, b]) > _CORRELATED and not (found.blind[a] or found.blind[b]):
                out.append(
                    f"{names[b]} and {names[a]} are correlated by {found.correlation[a, b]:.3f}: the logs tell a combination of "
                    "them better than each; fix one, or add an experiment that tells them apart"
                )
    for direction, spread in zip(found.directions, found.spreads, strict=True):
        if spread > _FLAT and not found.blind[np.argmax(np.abs(direction))]:
            parts = [f"{x:+.2f} {name}" for name, x in zip(names, direction, strict=True) if abs(x) > 0.1]
            out.append(f"flat direction: {', '.join(parts)} (parts of the ranges) is known to {spread:.2g} of the ranges only")
    return out


def interval_concerns(
    names: Sequence[str],
    value: Callable[[int, float], float],
    best: np.ndarray,
    found: Estimate,
    profiles: Sequence[Profile],
    bootstrap: Bootstrap | None,
) -> list[str]:
    """Say where profiles have no end, what they tell about the fit, and where a bootstrap has too little to draw from.

    Parameters
    ----------
    names : sequence of str
        Of the parameters.
    value : callable
        ``value(k, u)``: value of parameter k at a coordinate.
    best : ndarray, (p,)
        Best fit, unit coordinates.
    found : Estimate
        Intervals of the Jacobian.
    profiles : sequence of Profile
        One per parameter; empty where they were not asked for.
    bootstrap : Bootstrap, optional
        The bootstrap.
    """
    out = []
    for k, (name, own) in enumerate(zip(names, profiles, strict=False)):
        for side, reason, reached in zip(("lower", "upper"), own.reasons, own.reached, strict=True):
            if reason:
                why = {
                    "bound": "there is none before the bound",
                    "failed": f"runs beyond {value(k, reached):.4g} fail",
                    "budget": f"not found by intervals.evaluations, it lies beyond {value(k, reached):.4g}; raise them",
                }[reason]
                out.append(f"the profile of {name} has no {side} end: {why}")
        differs = max((abs(abs(end - best[k]) / found.half[k] - 1.0) for end in own.ends if math.isfinite(end)), default=0.0)
        if differs > _CURVED:
            out.append(
                f"the profile of {name} ends elsewhere than the interval of the Jacobian, by {100 * differs:.0f} % of half of "
                "it: the model is not linear there, or the refinement ended beside the bottom; take the profile"
            )
        if own.rises.min() < -_LOWER:
            lower = ", ".join(
                f"{n} {value(i, u):.6g}" for i, (n, u) in enumerate(zip(names, own.units[own.rises.argmin()], strict=True))
            )
            out.append(f"the profile of {name} found a better fit than the refinement: start at {lower}")
    if bootstrap is not None and min(bootstrap.blocks) < _FEW:
        what = "blocks" if bootstrap.lengths else "trials"
        out.append(f"the bootstrap draws from {min(bootstrap.blocks)} {what} of a reading only; its intervals are too narrow")
    if bootstrap is not None:
        out += [
            f'the bootstrap has no interval of {name}: trials drawn without the others do not depend on it; take "blocks"'
            for name, low, blind in zip(names, bootstrap.low, found.blind, strict=True)
            if math.isnan(low) and not blind
        ]
    return out

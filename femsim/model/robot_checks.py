"""What links and joints of robots are given, checked: numbers, rotations and lists, each wrong one a sentence."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from femsim.base.arguments import shown
from femsim.base.errors import InputError, did_you_mean
from femsim.base.rotations import nearest_rotation, quaternion_from_vector, quaternion_to_matrix

_Kind = TypeVar("_Kind")
#: How far a matrix may be from a rotation: some are written with a few digits.
_ROUGH = 1e-3
#: How far one is that is taken as it stands.
_EXACT = 1e-12


def numbers_of(value: object) -> np.ndarray:
    """Array of numbers; an empty one, which no check lets pass, of texts, None and the like."""
    try:
        given = np.asarray(value)
    except (TypeError, ValueError):  # rows of different lengths
        return np.zeros(0)
    return given.astype(np.float64) if given.dtype.kind in "biuf" else np.zeros(0)


def number_of(value: object) -> float:
    """Return a number; NaN, which no check lets pass, for anything else."""
    given = numbers_of(value)
    return float(given) if given.shape == () else math.nan


def three(said: str, value: object, unit: str) -> np.ndarray:
    """Three finite numbers; InputError otherwise, which begins with what is ``said`` of them."""
    given = numbers_of(value)
    if given.shape != (3,) or not np.isfinite(given).all():
        raise InputError(f"{said} {shown(value)}; allowed are three finite numbers, {unit}.")
    return given


def rotation_matrix(what: str, rotation: object) -> np.ndarray:
    """Matrix (3, 3) of a rotation vector, (3,) rad, or of a matrix that is one; InputError otherwise."""
    given = numbers_of(rotation)
    if given.shape == (3,) and np.isfinite(given).all():
        return quaternion_to_matrix(quaternion_from_vector(given))
    if given.shape != (3, 3) or not np.isfinite(given).all():
        raise InputError(f"{what} has the rotation {shown(rotation)}; allowed are a rotation vector, rad, or a matrix (3, 3).")
    with np.errstate(over="ignore", invalid="ignore"):
        off = float(np.abs(given @ given.T - np.eye(3)).max())
    if not off <= _ROUGH or np.linalg.det(given) < 0.0:
        raise InputError(
            f"{what} has the rotation {given.tolist()}, which is none: rows must be unit vectors at right angles, right-handed; "
            "give such a matrix, or a rotation vector, rad."
        )
    return given if off <= _EXACT else nearest_rotation(given)


def listed(what: str, role: str, given: object, kinds: tuple[type[_Kind], ...]) -> list[_Kind]:
    """List of things of some kinds; InputError otherwise."""
    words = " or ".join(f"fs.{kind.__name__}" for kind in kinds)
    if isinstance(given, (*kinds, str)) or not isinstance(given, Iterable):
        raise InputError(f"{what} has {role} {shown(given)}; allowed is a list of {words}.")
    out = list(given)
    for one in out:
        if not isinstance(one, kinds):
            raise InputError(f"{what}: {role} holds {shown(one)}; allowed are {words}.")
    return out


def limits_of(what: str, limits: object) -> tuple[float, float]:
    """Check a range; InputError otherwise."""
    given = numbers_of(limits)
    if given.shape != (2,) or not given[0] < given[1]:
        raise InputError(f"{what} has limits {shown(limits)}; the lower one must be below the upper one, two numbers.")
    return float(given[0]), float(given[1])


def mimic_of(what: str, mimic: Any) -> tuple[str, float, float]:
    """Check what a joint mimics; InputError otherwise."""
    if not (isinstance(mimic, Sequence) and len(mimic) == 3 and isinstance(mimic[0], str)):
        raise InputError(
            f"{what} has mimic {shown(mimic)}; allowed are the name of a joint, a factor and an offset: ('j1', 1.0, 0.0)."
        )
    return mimic[0], number_of(mimic[1]), number_of(mimic[2])


def by_joint(what: str, role: str, given: Any, known: Sequence[str]) -> Mapping[str, Any]:
    """Check that something is given by names of joints; InputError otherwise."""
    if not isinstance(given, Mapping):
        example = f"{{{known[0]!r}: 0.1}}" if known else "{}"
        raise InputError(f"{role} of {what} are {shown(given)}; give numbers by names of joints: {example}.")
    return given


def check_names(what: str, links: Sequence[str], joints: Sequence[str], hint: str = "") -> None:
    """Refuse links or joints of one name."""
    for kind, names in (("link", links), ("joint", joints)):
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise InputError(f"{what}: {kind} {twice[0]!r} is there twice; give each {kind} a name of its own{hint}.")


def unset(name: str, mimics: Mapping[str, tuple[str, float, float] | None], known: Sequence[str]) -> str:
    """Why a joint has no position of its own; the end of a sentence."""
    if name not in mimics:
        return f"is unknown{did_you_mean(name, known)}"
    if (own := mimics[name]) is None:
        return "is fixed; leave it out."
    other, factor, offset = own
    return f"mimics {other!r}, and is at {factor:g} times that plus {offset:g}; leave it out, and give that of {other!r}."


def out_of_range(what: str, at: float, low: float, high: float, unit: str) -> str:
    """Say that a joint starts beyond its range; and that angles are in rad, where degrees may have been meant."""
    turned = math.radians(at)
    degrees = unit == "rad" and abs(at) > 2.0 * math.pi and low <= turned <= high
    return f"{what} starts at {at:g} {unit}; its range is {low:g} to {high:g}{f'; {at:g} degrees are {turned:.4g}' * degrees}."

"""Checks of the numbers that shapes are made of."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from contact.errors import ContactError

FloatArray = npt.NDArray[np.float64]

#: Longest side or radius of a shape, m: far beyond it the squares and differences of places have no digits left for contacts.
LONGEST = 1e6


def array_of(title: str, field: str, value: npt.ArrayLike, shape: tuple[int, ...]) -> FloatArray:
    """Return a read-only C-ordered float64 copy of the given shape (-1: any length), all values finite."""
    wanted = "(" + ", ".join("n" if k < 0 else str(k) for k in shape) + ("," if len(shape) == 1 else "") + ")"
    try:
        array = np.array(value, dtype=np.float64, order="C")
    except (TypeError, ValueError):
        raise ContactError(f"{title}: {field} is {value!r}; give numbers of shape {wanted}.") from None
    if array.ndim != len(shape) or any(k >= 0 and k != m for k, m in zip(shape, array.shape, strict=True)):
        raise ContactError(f"{title}: {field} has shape {array.shape}; give an array of shape {wanted}.")
    if not np.isfinite(array).all():
        first = tuple(int(k) for k in np.argwhere(~np.isfinite(array))[0])
        raise ContactError(f"{title}: {field} at {first} is {array[first]}; give finite values.")
    array.flags.writeable = False
    return array


def positive(title: str, field: str, value: float) -> None:
    """Raise ContactError unless the value is a positive length up to LONGEST."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise ContactError(f"{title}: {field} is {value!r}; give a positive length in m.")
    if not 0.0 < value < float("inf"):
        raise ContactError(f"{title}: {field} is {value} m; give a positive, finite length.")
    if value > LONGEST:
        raise ContactError(f"{title}: {field} is {value:g} m; allowed are lengths up to {LONGEST:g} m. Are its units right?")


def whole(title: str, field: str, value: int, least: int) -> None:
    """Raise ContactError unless the value is a whole number of at least ``least``."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise ContactError(f"{title}: {field} is {value!r}; give a whole number of at least {least}.")

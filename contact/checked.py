"""Checks of the numbers that shapes and contact problems are made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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


def spread(values: FloatArray, shape: tuple[int, ...]) -> FloatArray:
    """Repeat values to a shape, in a new array that can be written: kernels are compiled again for one that cannot."""
    return np.array(np.broadcast_to(values, shape), order="C")


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


def real_array(name: str, values: npt.ArrayLike) -> np.ndarray:
    """Return numbers as an array of floats, the same where it is one; ContactError for texts, complex numbers and objects."""
    try:
        given = np.asarray(values)
        if given.dtype.kind == "O":
            given = given.astype(np.float64)
    except (TypeError, ValueError):  # lists of different lengths among others
        raise ContactError(f"{name} is {_kind(values)}; give real numbers.") from None
    if given.dtype.kind not in "fiub":
        raise ContactError(f"{name} is {_kind(values)}; give real numbers.")
    return np.asarray(given, dtype=np.float64)


def real_matrix(name: str, values: object, make: Callable[..., Any]) -> Any:
    """Return what ``make``, a class of sparse matrices, makes of a matrix of real numbers; ContactError for what is none."""
    if getattr(getattr(values, "dtype", None), "kind", "f") in "fiub":
        try:
            return make(values, dtype=np.float64)
        except (TypeError, ValueError):
            pass
    raise ContactError(f"{name} is {_kind(values)}; give a matrix of real numbers, sparse or an array with two dimensions.")


def _kind(values: object) -> str:
    """Return what something is that was given for numbers."""
    if not isinstance(values, np.ndarray):
        complex_ = getattr(getattr(values, "dtype", None), "kind", "") == "c"
        return f"a {type(values).__name__}{' of complex numbers' if complex_ else ''}"
    return f"an array of {'complex numbers' if values.dtype.kind == 'c' else values.dtype} with shape {values.shape}"

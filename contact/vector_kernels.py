"""Compiled algebra of three-component vectors, held as tuples so that they stay in registers; sums run from x to z."""

from __future__ import annotations

from math import sqrt

import numpy as np
import numpy.typing as npt

from contact.compiled import njit

FloatArray = npt.NDArray[np.float64]
Vector = tuple[float, float, float]


@njit(cache=True, forceinline=True)
def row(array: FloatArray, i: int) -> Vector:
    """Row i of an array (n, 3)."""
    return array[i, 0], array[i, 1], array[i, 2]


@njit(cache=True, forceinline=True)
def entry(array: FloatArray, i: int, j: int) -> Vector:
    """Vector (i, j) of an array (n, m, 3)."""
    return array[i, j, 0], array[i, j, 1], array[i, j, 2]


@njit(cache=True, forceinline=True)
def write_row(array: FloatArray, i: int, a: Vector) -> None:
    """Write a vector into row i of an array (n, 3)."""
    array[i, 0], array[i, 1], array[i, 2] = a


@njit(cache=True, forceinline=True)
def plus(a: Vector, b: Vector) -> Vector:
    """Add two vectors."""
    return a[0] + b[0], a[1] + b[1], a[2] + b[2]


@njit(cache=True, forceinline=True)
def minus(a: Vector, b: Vector) -> Vector:
    """Subtract the second vector from the first."""
    return a[0] - b[0], a[1] - b[1], a[2] - b[2]


@njit(cache=True, forceinline=True)
def times(factor: float, a: Vector) -> Vector:
    """Multiply a vector by a number."""
    return factor * a[0], factor * a[1], factor * a[2]


@njit(cache=True, forceinline=True)
def over(a: Vector, divisor: float) -> Vector:
    """Divide a vector by a number."""
    return a[0] / divisor, a[1] / divisor, a[2] / divisor


@njit(cache=True, forceinline=True)
def dot(a: Vector, b: Vector) -> float:
    """Scalar product a . b."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@njit(cache=True, forceinline=True)
def cross(a: Vector, b: Vector) -> Vector:
    """Vector product a x b."""
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


@njit(cache=True, forceinline=True)
def norm(a: Vector) -> float:
    """Length |a|."""
    return sqrt(dot(a, a))

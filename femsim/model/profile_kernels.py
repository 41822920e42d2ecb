"""Kernels of profiles over time: what drives many joints that follow them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from contact.compiled import njit


class Pieces(NamedTuple):
    """Profiles as polynomials from each key frame to the next.

    Attributes
    ----------
    ptr, last : ndarray, (k + 1,) int64 and (k,), s
        Pieces of profile i are those from ``ptr[i]`` to ``ptr[i + 1]``; it keeps the value that it has at its last key frame.
    start, factor : ndarray, (m,), s, and (m, 4)
        When each piece starts, and its factors of s^0 to s^3, s the time since then.
    """

    ptr: np.ndarray
    last: np.ndarray
    start: np.ndarray
    factor: np.ndarray


@njit(cache=True, forceinline=True)
def value_of(pieces: Pieces, k: int, t: float) -> float:
    """Value of profile k at a time, s."""
    low, high = pieces.ptr[k], pieces.ptr[k + 1]
    at = min(max(t, pieces.start[low]), pieces.last[k])
    while high - low > 1:
        half = (low + high) // 2
        if pieces.start[half] <= at:
            low = half
        else:
            high = half
    s = at - pieces.start[low]
    square = s * s
    line = pieces.factor[low, 0] + pieces.factor[low, 1] * s
    return line + pieces.factor[low, 2] * square + pieces.factor[low, 3] * (square * s)


@njit(cache=True, _nrt=False)
def follow(pieces: Pieces, t: float, dt: float, theta: float, own: np.ndarray, gains: np.ndarray, servo: np.ndarray) -> None:
    """Fill what drives joints that follow profiles in a step from t of length dt, s.

    Parameters
    ----------
    own : ndarray of int64, (k,)
        Their columns of ``servo``.
    gains : ndarray, (3, k)
        Stiffness, damping and limit of each.
    servo : ndarray, (6, joints)
        Feed, target at theta of the step, pace, stiffness, damping and limit.
    """
    for k in range(own.shape[0]):
        begin, end, j = value_of(pieces, k, t), value_of(pieces, k, t + dt), own[k]
        servo[0, j], servo[1, j], servo[2, j] = 0.0, begin + theta * (end - begin), (end - begin) / dt
        servo[3, j], servo[4, j], servo[5, j] = gains[0, k], gains[1, k], gains[2, k]

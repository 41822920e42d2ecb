"""Kernel of profiles over time: the values of many of them at once."""

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


@njit(cache=True, _nrt=False)
def values_at(pieces: Pieces, t: float, out: np.ndarray) -> None:
    """Fill the values (k,) of profiles at a time, s."""
    for k in range(out.shape[0]):
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
        out[k] = line + pieces.factor[low, 2] * square + pieces.factor[low, 3] * (square * s)

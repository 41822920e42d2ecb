"""Compiled kernel of detection: many contacts of two bodies are thinned out to a number that keeps what they can carry."""

from __future__ import annotations

import itertools
from math import sqrt

import numpy as np
import numpy.typing as npt

from contact.compiled import njit
from contact.placed_kernels import Output, move_up

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

#: Directions in the space of wrenches: along its axes, and the diagonals between two and three of them.
DIRECTIONS: FloatArray = np.array(
    [v for v in itertools.product((0.0, 1.0, -1.0), repeat=6) if 0 < np.count_nonzero(v) <= 3], dtype=np.float64
)
DIRECTIONS = DIRECTIONS[np.argsort((DIRECTIONS != 0.0).sum(axis=1), kind="stable")]

#: Of two contacts the one with the lower number is taken unless the other is farther out, or farther from those taken, by
#: more than this part.
TIE = 1e-6


@njit(cache=True)
def thinned(count: int, most: int, point_body: IntArray, shape_body: IntArray, thins: BoolArray, out: Output) -> int:
    """Leave at most ``most`` of the ``count`` contacts of each pair of bodies that ``thins`` (nb, nb); return how many are left.

    Their order stays. See :func:`choose`.
    """
    pair = np.empty(count, dtype=np.int64)
    place, wrench = np.empty(count, dtype=np.int64), np.empty((6, count))
    apart, taken = np.empty(count), np.ones(count, dtype=np.bool_)
    n_bodies = thins.shape[0]
    for i in range(count):
        a, b = point_body[out.point[i]], shape_body[out.shape[i]]
        pair[i] = min(a, b) * n_bodies + max(a, b) if thins[a, b] else -1
    for i in range(count):
        own = pair[i]
        if own < 0:
            continue
        n = 0
        for j in range(i, count):
            if pair[j] == own:
                place[n] = j
                n += 1
                pair[j] = -1
        if n <= most:
            continue
        fill_wrenches(n, place, own // n_bodies, point_body, wrench, out)
        choose(n, most, place, wrench, apart, taken, out.gap)
    kept = 0
    for i in range(count):
        if taken[i]:
            kept = move_up(kept, i, out)
    return kept


@njit(cache=True, inner=True)
def choose(n: int, most: int, place: IntArray, wrench: FloatArray, apart: FloatArray, taken: BoolArray, gap: FloatArray) -> None:
    """Update ``taken`` of the n contacts at ``place``: ``most`` of them stay. ``apart`` is room to work in.

    They are chosen as points of the space of wrenches: the normal, and its torque about the middle of the contacts over their
    mean distance from it. First come those that are outermost in the DIRECTIONS, up to two thirds, then again and again the one
    with the largest product of the distances to those taken and to the mean of all, and last the deepest one. Nothing depends on
    the step before, so the same contacts stay while they are there and move little: their forces are known to the next step.
    """
    deepest, wide, value = 0, np.zeros(n), np.empty(n)
    for c in range(6):
        mean = 0.0
        for k in range(n):
            mean += wrench[c, k] / n
        for k in range(n):
            wide[k] += (wrench[c, k] - mean) ** 2
    for k in range(n):
        taken[place[k]] = False
        apart[k] = np.inf
        if gap[place[k]] < gap[place[deepest]]:
            deepest = k
    direction, number = 0, 0
    while number < most:
        best = deepest
        if number < most - 1 or taken[place[deepest]]:
            if direction == DIRECTIONS.shape[0] or 3 * number >= 2 * most:
                for k in range(n):
                    value[k] = -1.0 if taken[place[k]] else apart[k] * wide[k]
            else:
                value[:] = 0.0
                for c in range(6):
                    if DIRECTIONS[direction, c] != 0.0:
                        for k in range(n):
                            value[k] += DIRECTIONS[direction, c] * wrench[c, k]
                direction += 1
            best = 0
            for k in range(n):
                if value[k] > value[best] + TIE * abs(value[best]):
                    best = k
            if taken[place[best]]:
                continue
        taken[place[best]] = True
        number += 1
        for k in range(n):
            square = 0.0
            for c in range(6):
                square += (wrench[c, k] - wrench[c, best]) ** 2
            apart[k] = min(apart[k], square)


@njit(cache=True, inner=True)
def fill_wrenches(n: int, place: IntArray, body: int, point_body: IntArray, wrench: FloatArray, out: Output) -> None:
    """Fill the wrenches (6, n) of unit normal forces on one of two bodies of the contacts at ``place`` (n,)."""
    cx, cy, cz = 0.0, 0.0, 0.0
    for k in range(n):
        i = place[k]
        cx += out.position[i, 0] / n
        cy += out.position[i, 1] / n
        cz += out.position[i, 2] / n
    size = 0.0
    for k in range(n):
        i = place[k]
        x, y, z = out.position[i, 0] - cx, out.position[i, 1] - cy, out.position[i, 2] - cz
        size += sqrt(x * x + y * y + z * z) / n
        side = 1.0 if point_body[out.point[i]] == body else -1.0
        nx, ny, nz = side * out.frame[i, 0, 0], side * out.frame[i, 0, 1], side * out.frame[i, 0, 2]
        wrench[0, k], wrench[1, k], wrench[2, k] = nx, ny, nz
        wrench[3, k], wrench[4, k], wrench[5, k] = y * nz - z * ny, z * nx - x * nz, x * ny - y * nx
    for c in range(3, 6):
        for k in range(n):
            wrench[c, k] /= max(size, 1e-300)

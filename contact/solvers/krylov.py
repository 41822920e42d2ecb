"""GMRES with a preconditioner that gives the product with the matrix beside its answer."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

#: Steps after which the pace so far decides whether it will get there.
_TRIED = 3
#: Part of the residual after the first answer that may be left where nobody says how much; and of the right-hand side, rounding.
_ACCURACY, _ROUNDING = 1e-9, 1e-14
#: A vector that keeps more than this part of its length needs no second orthogonalisation.
_KEEPS = 0.7

#: x = M r and K x, for a right-hand side r.
Preconditioner = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]


class Found(NamedTuple):
    """Answer x, (n,), or None where too few steps lead there, steps after the first application, and digits asked of them."""

    x: np.ndarray | None
    steps: int
    digits: float


def gmres(both: Preconditioner, weight: np.ndarray, r: np.ndarray, left: float, limit: int, tried: int = _TRIED) -> Found:
    """Solve K x = r until ||weight (r - K x)|| is at most ``left``.

    One application of the preconditioner comes first: what contacts hold is stiff by orders of magnitude, and is gone from the
    residual after it. Preconditioned on the right, so the residual that is made small is the true one.

    Parameters
    ----------
    both : callable
        Preconditioner, which returns K M r beside M r; M is linear.
    weight, r : ndarray, (n,)
        Weights of the norm, positive, and the right-hand side.
    left : float
        What may be left; 0 for nine digits.
    limit : int
        Most steps after the first application; where the pace says that it takes more, it stops.
    tried : int
        Steps after which it is asked.
    """
    x, product = both(r)
    rest = weight * (r - product)
    start = float(np.linalg.norm(rest))
    if not math.isfinite(start):
        return Found(None, 0, 0.0)
    aim = left or max(_ACCURACY * start, _ROUNDING * float(np.linalg.norm(weight * r)))
    if start <= aim:
        return Found(x, 0, 0.0)
    digits = math.log10(start / aim)
    basis, R = np.empty((limit + 1, len(r))), np.zeros((limit, limit))
    answers, rotations = np.empty((limit, len(r))), np.empty((limit, 2))
    right = np.zeros(limit + 1)
    right[0] = start
    basis[0] = rest / start
    for k in range(limit):
        answers[k], product = both(basis[k] / weight)
        w = weight * product
        column, last = _orthogonalise(basis[: k + 1], w)
        if not math.isfinite(last):
            return Found(None, k + 1, digits)
        for i in range(k):
            c, d = rotations[i]
            column[i], column[i + 1] = c * column[i] + d * column[i + 1], c * column[i + 1] - d * column[i]
        length = math.hypot(column[k], last)
        if length == 0.0:
            return Found(None, k + 1, digits)
        c, d = rotations[k] = column[k] / length, last / length
        column[k] = length
        R[: k + 1, k] = column
        right[k], right[k + 1] = c * right[k], -d * right[k]
        now = abs(float(right[k + 1]))
        if now <= aim:
            y = solve_triangular(R[: k + 1, : k + 1], right[: k + 1], check_finite=False)
            return Found(x + y @ answers[: k + 1], k + 1, digits)
        if k + 1 >= tried and (now >= start or math.log(aim / start) / math.log(now / start) * (k + 1) > limit):
            return Found(None, k + 1, digits)
        basis[k + 1] = w / last
    return Found(None, limit, digits)


def _orthogonalise(basis: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, float]:
    """Take the parts along the basis, (k, n), out of w, in place; return them, (k,), and the length that is left."""
    before = math.sqrt(float(w @ w))
    column = basis @ w
    w -= column @ basis
    length = math.sqrt(float(w @ w))
    if length <= _KEEPS * before:
        part = basis @ w
        w -= part @ basis
        column += part
        length = math.sqrt(float(w @ w))
    return column, length

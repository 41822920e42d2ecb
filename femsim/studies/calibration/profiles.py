"""Profiles of the sum of squares: intervals where a model is not linear. Arrays, and a callable that runs; unit coordinates.

A profile walks away from the best fit along one parameter and fits all others again at each place, by runs. Its level is the
rise of the sum of squares at which a parabola with the curvature J^T J ends at the interval of the Jacobian: the quantile of
F(1, nu) at the confidence, times the variance of the residuals, times the number of residuals that count as one independent
residual (see ``estimate``). So both intervals are the same where the model is linear and the best fit is the minimum.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from femsim.studies.calibration.estimate import Estimate

Reason = Literal["", "bound", "failed", "budget"]
#: Residuals, priors last, at each of some points; None where a case failed.
Residuals = Callable[[Sequence[np.ndarray]], list[np.ndarray | None]]
_Walk = Generator[list[np.ndarray], list[np.ndarray | None], None]
_AT_LEVEL = 0.01  # an end is found when the root of the rise is so near to that of the level; then it is interpolated
_REFITTED = 0.002  # the others are fitted again when this part of the level is left to gain


@dataclass(frozen=True, eq=False)
class Profile:
    """Profile of one parameter.

    Attributes
    ----------
    ends : (float, float)
        Interval; NaN on a side without an end.
    reasons : (str, str)
        Why a side has no end: "bound" (none before the bound), "failed" (runs beyond ``reached`` fail), "budget" (not found
        within the evaluations); "" where it has one.
    reached : (float, float)
        The furthest coordinate on each side that is inside.
    units : ndarray, (n, p)
        Points with the others fitted again, by rising coordinate of the parameter; the best fit is one of them.
    rises : ndarray, (n,)
        Rise of the sum of squares there, relative to the level: 1 at an end.
    """

    ends: tuple[float, float]
    reasons: tuple[Reason, Reason]
    reached: tuple[float, float]
    units: np.ndarray
    rises: np.ndarray


class _SpentError(Exception):
    """The evaluations of a side are spent."""


def profile(
    best: np.ndarray, residual: np.ndarray, J: np.ndarray, found: Estimate, residuals: Residuals, *, evaluations: int, step: float
) -> list[Profile]:
    """Profile the sum of squares along each parameter; all sides walk at once, so that their runs fill the cores.

    The others are fitted by Gauss-Newton steps between their bounds with a Jacobian that each run corrects (Broyden, Mathematics
    of Computation 19, 1965). A point counts as outside only when derivatives by fresh differences leave nothing to gain. The
    search for the ends uses the root of the rise, which is a straight line where the model is linear.

    Parameters
    ----------
    best : ndarray, (p,)
        Best fit.
    residual : ndarray, (n,)
        Residuals there, priors last.
    J : ndarray, (n, p)
        Their derivatives.
    found : Estimate
        Intervals of the Jacobian.
    residuals : callable
        Gives residuals at points.
    evaluations : int
        Largest number of points on one side of a parameter.
    step : float
        Difference step.

    Returns
    -------
    list of Profile
        One per parameter.
    """
    p = len(best)
    curvature = J.T @ J + np.diag(np.where(found.blind, 1e-12, 0.0))
    levels = found.half**2 / np.diag(np.linalg.inv(curvature))
    sides = [
        _Side(best, residual, J, found, k, sign, float(levels[k]), evaluations, step) for k in range(p) for sign in (-1.0, 1.0)
    ]
    _together([side.walk() for side in sides], residuals)
    out = []
    for k in range(p):
        low, high = sides[2 * k], sides[2 * k + 1]
        points = sorted([*low.points, *high.points, (best, 0.0)], key=lambda point: float(point[0][k]))
        out.append(
            Profile(
                (low.end, high.end), (low.reason, high.reason), (low.reached, high.reached),
                np.array([unit for unit, _ in points]), np.array([rise for _, rise in points]),
            )
        )  # fmt: skip
    return out


def _together(walks: Sequence[_Walk], residuals: Residuals) -> None:
    """Advance all walks round by round; the points of a round are evaluated together."""
    wanted = {walk: points for walk in walks if (points := next(walk, None)) is not None}
    while wanted:
        answers = iter(residuals([point for points in wanted.values() for point in points]))
        later = {}
        for walk, points in wanted.items():
            try:
                later[walk] = walk.send([next(answers) for _ in points])
            except StopIteration:
                continue
        wanted = later


class _Side:
    """One side of the profile of one parameter."""

    def __init__(
        self, best: np.ndarray, residual: np.ndarray, J: np.ndarray, found: Estimate, k: int, sign: float, level: float,
        evaluations: int, step: float,
    ) -> None:  # fmt: skip
        self.points: list[tuple[np.ndarray, float]] = []
        self.end, self.reached = math.nan, float(best[k])
        self.reason: Reason = ""
        self._best, self._k, self._sign, self._level, self._left, self._step = best, k, sign, level, evaluations, step
        self._half, self._weights = float(found.half[k]), found.deviation**-2.0
        self._others = np.delete(np.arange(len(best)), k)
        self._unit, self._residual, self._J = best, residual, J
        self._near = {"inside": (best, residual, J)}  # where a refit may start
        self._least = float(residual @ residual)

    def walk(self) -> _Walk:
        """Walk until the rise reaches the level, or there is a reason to stop."""
        try:
            yield from self._walk()
        except _SpentError:
            self.reason = "budget"

    def _walk(self) -> _Walk:
        room = float(1.0 - self._best[self._k] if self._sign > 0 else self._best[self._k])
        before, inside = (0.0, 0.0), (0.0, 0.0)  # distance from the best fit, root of the rise by the level
        outside: tuple[float, float] | None = None
        wall = math.inf  # runs fail from here on
        distance = min(0.5 * self._half, room)
        while inside[0] < room:
            there = yield from self._refit(distance)
            if there is None:
                wall = distance
            elif abs(there - 1.0) <= _AT_LEVEL:
                self._end_between(inside, (distance, there), room)
                return
            elif there < 1.0:
                before, inside = inside, (distance, there)
                self._near["inside"] = self._unit, self._residual, self._J
                self.reached = float(self._best[self._k] + self._sign * distance)
            else:
                outside = (distance, there)
                self._near["outside"] = self._unit, self._residual, self._J
            if outside is not None and outside[0] - inside[0] < _AT_LEVEL * outside[0]:
                self._end_between(inside, outside, room)
                return
            if wall - inside[0] < 0.05 * self._half:
                self.reason = "failed"
                return
            if outside is not None:
                part = (1.0 - inside[1]) / (outside[1] - inside[1])
                distance = inside[0] + min(max(part, 0.1), 0.9) * (outside[0] - inside[0])
            else:
                slope = (inside[1] - before[1]) / (inside[0] - before[0]) if inside[0] > before[0] else 0.0
                ahead = (1.0 - inside[1]) / slope if slope > 0 else math.inf
                distance = min(inside[0] + min(ahead, max(2.0 * inside[0], 0.5 * self._half)), room)
            distance = min(distance, 0.5 * (inside[0] + wall))
        self.reason = "bound"

    def _end_between(self, a: tuple[float, float], b: tuple[float, float], room: float) -> None:
        distance = min(a[0] + (b[0] - a[0]) * (1.0 - a[1]) / (b[1] - a[1]), room)
        self.end = self.reached = float(self._best[self._k] + self._sign * distance)

    def _refit(self, distance: float) -> Generator[list[np.ndarray], list[np.ndarray | None], float | None]:
        """Fit the others at a distance; return the root of the rise over the level, None where the run there fails."""
        k, target = self._k, self._best[self._k] + self._sign * distance
        self._unit, self._residual, self._J = min(self._near.values(), key=lambda near: abs(near[0][k] - target))
        unit = np.clip(self._unit + self._change(target - self._unit[k])[0], 0.0, 1.0)
        unit[k] = min(max(target, 0.0), 1.0)
        residual = yield from self._run(unit)
        if residual is None:
            return None
        self._move(unit, residual)
        fresh, part = False, 1.0
        while True:
            change, gain = self._change(0.0)
            if gain <= _REFITTED * self._level:
                if fresh or not len(self._others) or self._root() < 1.0 - _AT_LEVEL:
                    break
            else:
                unit = np.clip(self._unit + part * change, 0.0, 1.0)
                residual = yield from self._run(unit)
                if residual is not None and residual @ residual < self._residual @ self._residual:
                    self._move(unit, residual)
                    part = 1.0
                    continue
                if fresh:
                    part *= 0.25
                    if part < 0.01:  # as rough as the runs are, this is the bottom
                        break
                    continue
            yield from self._differences()
            fresh = True
        self.points.append((self._unit, (float(self._residual @ self._residual) - self._least) / self._level))
        return self._root()

    def _root(self) -> float:
        return math.sqrt(max(float(self._residual @ self._residual) - self._least, 0.0) / self._level)

    def _run(self, unit: np.ndarray) -> Generator[list[np.ndarray], list[np.ndarray | None], np.ndarray | None]:
        self._spend(1)
        return (yield [unit])[0]

    def _spend(self, count: int) -> None:
        if count > self._left:
            raise _SpentError
        self._left -= count

    def _change(self, along: float) -> tuple[np.ndarray, float]:
        """Gauss-Newton step between the bounds for a given change of the parameter, and the gain of the others' part of it."""
        from scipy.optimize import lsq_linear

        change = np.zeros(len(self._best))
        change[self._k] = along
        if not len(self._others):
            return change, 0.0
        Q, R = np.linalg.qr(self._J[:, self._others])
        q = Q.T @ (self._residual + along * self._J[:, self._k])
        at = self._unit[self._others]
        own = lsq_linear(R, -q, bounds=(-at - 1e-12, 1.0 - at + 1e-12), method="bvls").x
        change[self._others] = own
        return change, float(q @ q - (q + R @ own) @ (q + R @ own))

    def _move(self, unit: np.ndarray, residual: np.ndarray) -> None:
        """Move to a point, and correct the derivatives by the change of the residual (Broyden)."""
        move = unit - self._unit
        weighted = self._weights * move
        self._J = self._J + np.outer(residual - self._residual - self._J @ move, weighted / max(float(move @ weighted), 1e-300))
        self._unit, self._residual = unit, residual

    def _differences(self) -> _Walk:
        """Take derivatives with respect to the others from fresh differences; one whose run fails keeps its old value."""
        self._spend(len(self._others))
        points = []
        for j in self._others:
            point = self._unit.copy()
            point[j] += self._step if point[j] + self._step <= 1.0 else -self._step
            points.append(point)
        answers = yield points
        self._J = self._J.copy()
        for j, point, answer in zip(self._others, points, answers, strict=True):
            if answer is not None:
                self._J[:, j] = (answer - self._residual) / (point[j] - self._unit[j])

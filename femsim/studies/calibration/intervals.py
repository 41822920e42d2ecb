"""Intervals beside those of the Jacobian: profiles of the sum of squares, and bootstrap. Arrays only; unit coordinates.

A profile walks away from the best fit along one parameter and fits all others again at each place, by runs. Its level is the
rise of the sum of squares at which a parabola with the curvature J^T J ends at the interval of the Jacobian: the quantile of
F(1, nu) at the confidence, times the variance of the residuals, times how many of them go on one independent one (see
``estimate``). So both intervals are the same where the model is linear and the best fit at the bottom.

The bootstrap draws residuals again and fits them with the model linearised at the best fit; it needs no runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from femsim.studies.calibration.estimate import BLIND, Estimate, autocorrelation

Reason = Literal["", "bound", "failed", "budget"]
#: Residuals behind each other, priors last, at each of some points; None where a case failed.
Residuals = Callable[[Sequence[np.ndarray]], list[np.ndarray | None]]
_Walk = Generator[list[np.ndarray], list[np.ndarray | None], None]
_AT_LEVEL = 0.01  # an end is found when the root of the rise is so near to that of the level; then it is interpolated
_REFITTED = 0.002  # the others are fitted again when this part of the level is left to gain
_LOWER = 0.05  # a sum of squares below that of the best fit is said from this part of the level on
_CURVED = 0.2  # profiles are said to differ from the Jacobian's intervals from this part of half of them on
_FEW = 8  # blocks in a sequence


@dataclass(frozen=True, eq=False)
class Profile:
    """Profile of one parameter.

    Attributes
    ----------
    ends : (float, float)
        Interval; NaN on a side without an end.
    reasons : (str, str)
        Why a side has none: "bound" (none before the bound), "failed" (runs beyond ``reached`` fail), "budget" (not found within
        the evaluations); "" where it has one.
    reached : (float, float)
        The furthest coordinate on each side that is inside.
    units : ndarray, (n, p)
        Points with the others fitted again, by rising coordinate of the parameter; the best fit is one of them.
    rises : ndarray, (n,)
        Rise of the sum of squares there, in parts of the level: 1 at an end.
    """

    ends: tuple[float, float]
    reasons: tuple[Reason, Reason]
    reached: tuple[float, float]
    units: np.ndarray
    rises: np.ndarray


@dataclass(frozen=True, eq=False)
class Bootstrap:
    """Percentile intervals of a bootstrap.

    Attributes
    ----------
    low, high : ndarray, (p,)
        Ends, measured from the best fit; NaN where the residuals do not depend on the parameter.
    deviation : ndarray, (p,)
        Standard deviations of the draws.
    lengths : tuple of int
        Samples in a block, one a reading; empty where whole trials were drawn.
    blocks : tuple of int
        Blocks in a reading, or trials.
    """

    low: np.ndarray
    high: np.ndarray
    deviation: np.ndarray
    lengths: tuple[int, ...]
    blocks: tuple[int, ...]


class _SpentError(Exception):
    """The evaluations of a side are spent."""


def profile(
    best: np.ndarray, residual: np.ndarray, J: np.ndarray, found: Estimate, residuals: Residuals, *, evaluations: int, step: float
) -> list[Profile]:
    """Profile the sum of squares along each parameter; all sides walk at once, so that their runs fill the cores.

    The others are fitted by Gauss-Newton steps between their bounds with a Jacobian that each run corrects (Broyden, Mathematics
    of Computation 19, 1965). A place counts as outside only after derivatives by fresh differences leave nothing to gain. Ends
    are looked for on the root of the rise, which is a straight line where the model is linear.

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
        Most points asked for on one side of a parameter.
    step : float
        Difference step.

    Returns
    -------
    list of Profile
        One a parameter.
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
    """Go on with all walks round by round; what they ask for in a round is evaluated at once."""
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
        """Walk until the rise has reached the level, or there is a reason not to go on."""
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
        """Fit the others at a distance; give the root of the rise by the level, None where the run there fails."""
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
        """Gauss-Newton step between the bounds with a given change of the parameter, and how much the others gain by theirs."""
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
        """Go to a point, and correct the derivatives by what was seen on the way."""
        way = unit - self._unit
        weighted = self._weights * way
        self._J = self._J + np.outer(residual - self._residual - self._J @ way, weighted / max(float(way @ weighted), 1e-300))
        self._unit, self._residual = unit, residual

    def _differences(self) -> _Walk:
        """Take derivatives by the others from fresh differences; one whose run fails stays."""
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


def bootstrap_blocks(
    residuals: Sequence[np.ndarray],
    jacobians: Sequence[np.ndarray],
    prior: np.ndarray,
    confidence: float,
    *,
    draws: int,
    seed: int,
) -> Bootstrap:
    """Draw blocks of residuals that follow each other, and fit each draw with the linearised model.

    Blocks keep all channels and trials of a reading at a time together; they may start anywhere, and go on at the start behind
    the end (the circular blocks of Politis and Romano, 1992). Residuals are centred channel by channel and widened by the degrees
    of freedom; means of priors are drawn from their distributions.

    Parameters
    ----------
    residuals, jacobians, prior, confidence
        As for :func:`~femsim.studies.calibration.estimate.estimate`.
    draws, seed : int
        Number of draws, and seed.

    Returns
    -------
    Bootstrap
        Its intervals.
    """
    p, n = len(prior), sum(r.size for r in residuals)
    rng = np.random.default_rng(seed)
    gradient = np.sqrt(prior) * rng.standard_normal((draws, p))
    widened = math.sqrt(n / max(n - p, 1))
    lengths = tuple(block_length(r) for r in residuals)
    blocks = tuple(math.ceil(len(r) / length) for r, length in zip(residuals, lengths, strict=True))
    for r, j, length, count in zip(residuals, jacobians, lengths, blocks, strict=True):
        m, centred, flat = len(r), widened * (r - r.mean(axis=0)), j.reshape(-1, p)
        for draw in range(draws):
            starts = rng.integers(0, m, count)
            rows = ((starts[:, None] + np.arange(length)) % m).ravel()[:m]
            gradient[draw] += centred[rows].ravel() @ flat
    normal = sum((np.einsum("mcp,mcq->pq", j, j) for j in jacobians), np.diag(prior))
    return _percentiles(gradient, np.tile(normal, (draws, 1, 1)), confidence, lengths, blocks)


def bootstrap_trials(
    residuals: Sequence[np.ndarray],
    jacobians: Sequence[np.ndarray],
    prior: np.ndarray,
    confidence: float,
    *,
    draws: int,
    seed: int,
    trials: Sequence[tuple[str, int]],
) -> Bootstrap:
    """Draw whole trials, and fit each draw with the linearised model.

    Deviations are widened by sqrt(T / (T - 1)) for T trials; means of priors are drawn from their distributions.

    Parameters
    ----------
    residuals, jacobians, prior, confidence, draws, seed
        As for :func:`bootstrap_blocks`; the columns of a trial are together.
    trials : sequence of (str, int)
        Experiment and number of trials of each reading. Readings of an experiment with as many trials are drawn together, as
        instruments of the same runs.

    Returns
    -------
    Bootstrap
        Its intervals.
    """
    p = len(prior)
    rng = np.random.default_rng(seed)
    gradient = np.sqrt(prior) * rng.standard_normal((draws, p))
    normal = np.tile(np.diag(prior), (draws, 1, 1))
    drawn: dict[tuple[str, int], np.ndarray] = {}
    for r, j, (experiment, count) in zip(residuals, jacobians, trials, strict=True):
        if (experiment, count) not in drawn:
            picks = rng.integers(0, count, (draws, count))
            drawn[experiment, count] = np.stack([(picks == t).sum(axis=1) for t in range(count)], axis=1).astype(float)
        times = drawn[experiment, count]
        r_of, j_of = r.reshape(len(r), count, -1), j.reshape(len(j), count, -1, p)
        gradient += math.sqrt(count / (count - 1)) * (times - 1.0) @ np.einsum("mtc,mtcp->tp", r_of, j_of)
        normal += np.einsum("dt,tpq->dpq", times, np.einsum("mtcp,mtcq->tpq", j_of, j_of))
    return _percentiles(gradient, normal, confidence, (), tuple(count for _, count in trials))


def _percentiles(
    gradient: np.ndarray, normal: np.ndarray, confidence: float, lengths: tuple[int, ...], blocks: tuple[int, ...]
) -> Bootstrap:
    """Solve for the change of the best fit in each draw, and take percentiles."""
    strength = np.sqrt(np.einsum("dpp->p", normal) / len(normal))
    blind = strength <= BLIND * max(1.0, float(strength.max(initial=0.0)))
    changes = -np.linalg.solve(normal + np.diag(np.where(blind, 1.0, 0.0)), gradient[..., None])[..., 0]
    changes[:, blind] = np.nan
    low, high = np.quantile(changes, [0.5 - 0.5 * confidence, 0.5 + 0.5 * confidence], axis=0)
    return Bootstrap(low, high, changes.std(axis=0), lengths, blocks)


def block_length(residual: np.ndarray) -> int:
    """Find how many samples a block needs: what makes the error of a variance smallest (Politis and White, 2004).

    (2 G^2 / D)^(1/3) m^(1/3) with G the sum of |k| rho(k) over the lags k of both signs and D = 4/3 (sum of rho(k))^2
    (Econometric Reviews 23, corrected by Patton, Politis and White, 28, 2009). Departure: rho is cut off where it is no larger
    than chance, instead of being weighted.

    Parameters
    ----------
    residual : ndarray, (m, c)
        Residuals of a reading.

    Returns
    -------
    int
        From 1 for white residuals to about a quarter of m, where lags end.
    """
    rho = autocorrelation(residual)
    if not len(rho):
        return 1
    G, total = 2.0 * float(np.arange(1, len(rho) + 1) @ rho), 1.0 + 2.0 * float(rho.sum())
    return math.ceil((1.5 * G**2 / total**2 * len(residual)) ** (1 / 3))


def interval_concerns(
    names: Sequence[str],
    value: Callable[[int, float], float],
    best: np.ndarray,
    found: Estimate,
    profiles: Sequence[Profile],
    bootstrap: Bootstrap | None,
) -> list[str]:
    """Say where profiles have no end, what they tell of the fit, and where a bootstrap has too little to draw from.

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
        One a parameter; none where they were not asked for.
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
    return out

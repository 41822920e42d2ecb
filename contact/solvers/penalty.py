"""How the penalty of splitting adapts: rules from the primal and the dual residual to a factor."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple, Protocol

import numpy as np

Policy = Literal["residual", "balanced", "normalized", "linear", "spectral", "doubling", "fixed"]


class Sizes(NamedTuple):
    """What a rule sees of an iteration: primal residual, N, dual residual, m/s, forces, N, velocities, m/s; and true residuals.

    The norms are scaled by contact where the penalty is.
    """

    primal: float
    dual: float
    force: float
    velocity: float
    dynamics: float
    contact: float


class Rule(Protocol):
    """A rule for the penalty rho = Theta, velocity per force."""

    def factor(self, iteration: int, sizes: Sizes) -> float:
        """Factor on rho after an iteration, counted from 1; 1 leaves it alone."""
        ...


class Fixed:
    """No change."""

    def factor(self, iteration: int, sizes: Sizes) -> float:
        """Return 1."""
        return 1.0


@dataclass
class Balanced:
    """Root of the ratio of primal to dual residual, every so many iterations (papers/003 eqs. 41-42).

    Departures: the text takes the ratio itself, whose root needs fewer factorizations; and later looks are rarer, a tenth of the
    iterations so far apart. A residual that is exactly zero (as the primal one of a column in which every contact presses) is as
    far below the other as can be, which changes rho by the whole clamp, down to :attr:`least` of what it was.

    Parameters
    ----------
    every : int
        Iterations between looks, at least.
    kind : {"balanced", "normalized", "residual"}
        The norms of the splitting; those relative to the forces or velocities that they are errors of; or the true residuals of
        dynamics and contact law.
    clamp, deadband : float
        Largest factor of a look, up or down; smaller ones than the second change nothing.
    """

    every: int
    kind: Literal["balanced", "normalized", "residual"] = "balanced"
    clamp: float = 50.0
    deadband: float = 2.0
    least: ClassVar[float] = 1e-7
    _next: int = 0
    _by_zeros: float = 1.0

    def factor(self, iteration: int, sizes: Sizes) -> float:
        """Return the factor, or 1 within the dead band and where it is not time to look."""
        if iteration < max(self._next, self.every):
            return 1.0
        self._next = iteration + max(self.every, iteration // 10)
        primal, dual = sizes.primal, sizes.dual
        if self.kind == "normalized":
            primal, dual = primal * sizes.velocity, dual * sizes.force
        elif self.kind == "residual":
            primal, dual = sizes.dynamics, sizes.contact
        if not (primal >= 0 and dual >= 0 and math.isfinite(primal) and math.isfinite(dual)):
            return 1.0
        if primal == 0 or dual == 0:
            return self._at_zero(primal, dual)
        wanted = min(max(math.sqrt(primal / dual), 1.0 / self.clamp), self.clamp)
        return 1.0 if 1.0 / self.deadband <= wanted <= self.deadband else wanted

    def _at_zero(self, primal: float, dual: float) -> float:
        """Return the factor where a residual is zero: the clamp, as long as all such factors together keep their bound."""
        factor = 1.0 if primal == dual else 1.0 / self.clamp if primal == 0 else self.clamp
        together = self._by_zeros * factor
        if not self.least <= together <= 1.0 / self.least:
            return 1.0
        self._by_zeros = together
        return factor


@dataclass
class Threshold:
    """A fixed factor where one residual is ten times the other (papers/004: linear and spectral adaptation)."""

    step: float
    every: int
    ratio: float = 10.0

    def factor(self, iteration: int, sizes: Sizes) -> float:
        """Return the factor, its inverse, or 1."""
        if iteration % self.every:
            return 1.0
        if sizes.primal > self.ratio * sizes.dual:
            return self.step
        return 1.0 / self.step if sizes.dual > self.ratio * sizes.primal else 1.0


class Doubling:
    """Root of the ratio of the true residuals over the last half of the iterations since, after 50, 100, 200, ... of them."""

    first, band, most = 50, 10.0, 4.0

    def __init__(self) -> None:
        self._next, self._rows = self.first, list[tuple[float, float]]()

    def factor(self, iteration: int, sizes: Sizes) -> float:
        """Return the factor: down where the dynamics lag behind."""
        self._rows.append((sizes.dynamics, sizes.contact))
        if iteration < self._next:
            return 1.0
        recent = np.array(self._rows[len(self._rows) // 2 :])
        self._next, self._rows = 2 * iteration, []
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = float(np.exp(np.diff(np.log(recent), axis=1).mean()))
        if not (math.isfinite(ratio) and ratio > 0) or 1 / self.band < ratio < self.band:
            return 1.0
        return 1.0 / float(np.clip(math.sqrt(ratio), 1 / self.most, self.most))


def largest_eigenvalue(W: np.ndarray, weight: np.ndarray, steps: int = 20) -> float:
    """Largest eigenvalue of S W S with S = 1 / weight by power iteration from a vector of ones (papers/004: 20 steps)."""
    x = np.ones(len(W))
    size = 0.0
    for _ in range(steps):
        x = (W @ (x / weight)) / weight
        size = float(np.linalg.norm(x))
        if not size > 0:
            break
        x /= size
    return size


def make_rule(policy: Policy, every: int, condition: float = 1.0) -> Rule:
    """Return the rule of a name; condition is kappa = L / m for the spectral one."""
    if policy == "doubling":
        return Doubling()
    if policy in ("balanced", "normalized", "residual"):
        return Balanced(every, policy)
    if policy == "linear":
        return Threshold(1.5, every)
    if policy == "spectral":
        return Threshold(condition**0.05, every)
    return Fixed()

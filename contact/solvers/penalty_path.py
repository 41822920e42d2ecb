"""A path of answers of the strict contact law as the penalty grows: what finishes CANAL where slip speeds are slow to settle."""

from __future__ import annotations

import math

import numpy as np

from contact.metrics import natural_map
from contact.metrics_kernels import larger
from contact.solvers.augmented import INNER_LEAST, ROUNDING, Surrogate, System
from contact.solvers.strict_newton import StrictNewton

#: First penalty, relative to the force per velocity of each contact, its largest value, and the factor of its growth; the growth
#: is the square root of itself after each point that Newton's method does not reach, and the path ends below the least one.
#: Measured on nine hard problems of leaning boxes, each from four starts (``data/results/solvers.md``).
_FIRST, _MOST, _GROWTH, _LEAST_GROWTH = 1e3, 1e9, 3.0, 1.1
#: The first penalty falls by this factor where its own point is not reached, down to the least one.
_FALL, _LEAST = 0.1, 1.0
#: A point is solved to this part of the last residual, at most to the second number, by so many Newton steps; so many points
#: and Newton steps are made in all.
_INNER, _INNER_MOST, _NEWTON, _POINTS, _BUDGET = 0.1, 1e-2, 30, 40, 250


class PenaltyPath:
    """Proximal points of the strict contact law, each the start of the next, which has a larger penalty.

    A point solves ``A v = b + J^T T(lam - beta (J v + phi))``, with the strict operator T of papers/000 eq. 19, by damped Newton
    steps, and ``lam`` follows. Unlike the convex surrogates of ``contact.solvers.augmented`` it holds no slip speeds fast, so it
    does not wait for them. Its equations have no energy, and Newton's method may get stuck; near the last point it rarely does,
    so a point that it does not reach is approached by a smaller growth of the penalty.

    Parameters
    ----------
    system : System
        The problem, with one friction coefficient a contact.
    inner : StrictNewton
        Newton's method on its strict equations.
    start : tuple
        Velocities (n,), m/s, and forces (nc, 3), N, near an answer.
    residual : float
        Their larger residual.
    first : float
        First penalty, relative to the force per velocity of each contact.
    """

    def __init__(
        self, system: System, inner: StrictNewton, start: tuple[np.ndarray, np.ndarray], residual: float, first: float = _FIRST
    ) -> None:
        self._system, self._inner = system, inner
        self.v, self.lam = start[0].copy(), start[1].copy()
        self._state = np.full(len(self.lam), -1, dtype=np.int8)
        self._growth, self._reached, self._next, self._points = _GROWTH, 0.0, first, 0
        #: residuals of the dynamics and of the contact law at the present pair
        self.dynamics = self.contact = residual
        self.newton_steps = self.evaluations = self.unfinished = 0
        self.over = False

    @property
    def residual(self) -> float:
        """The larger residual of the present pair."""
        return float(larger(self.dynamics, self.contact))

    def advance(self, residual: float) -> None:
        """Try the next point, from the present pair with this residual."""
        problem, rho = self._system.problem, self._system.rho
        aim = min(max(_INNER * residual, INNER_LEAST), _INNER_MOST)
        given, v = Surrogate(self.lam, np.zeros(len(rho)), self._next * rho), self.v.copy()
        found = self._inner.solve(given, v, self._state, aim, _NEWTON)
        self.newton_steps += found.steps
        self.evaluations += found.evaluations
        self._points += 1
        if found.residual <= max(aim, ROUNDING):
            u = problem.moved(v).reshape(-1, 3) + problem.phi
            self.v, self.lam = v, self._inner.forces(given, u)
            self.dynamics, self.contact = found.residual, natural_map(u, self.lam, rho, problem.friction)
            self._reached, self._next = self._next, min(self._growth * self._next, _MOST)
        else:
            self.unfinished += 1
            if self._reached:
                self._growth = math.sqrt(self._growth)
                self._next = self._growth * self._reached
            else:
                self._next *= _FALL
        stuck = self._growth < _LEAST_GROWTH or self._next < _LEAST
        self.over = stuck or self.newton_steps >= _BUDGET or self._points >= _POINTS

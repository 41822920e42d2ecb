"""Augmented Lagrangian of the contact problem (papers/000 section IV): convex inner problems solved by Newton with exact steps.

Outer iteration, with the slip speeds s of the De Saxce term and the forces lam of the last one::

    v   = argmin 1/2 v^T A v - b^T v + sum |P_K(t)|^2 / (2 beta),    t = lam - beta (J v + phi + (mu s, 0, 0))
    lam = P_K(t),    u = J v + phi + (lam - lam_old) / beta,    s = |u_t|

Departures: beta is a multiple of the force per velocity of each contact; it grows only where the constraint error, not that of
s, is what lags; s is accelerated (Anderson) where its plain update is slow; an inner problem is solved to a part of the residual
of the outer one.
"""

from __future__ import annotations

import numpy as np

from contact.metrics_kernels import TINY
from contact.problem import ContactProblem
from contact.solvers import augmented_kernels as kernels
from contact.solvers.primal_newton import PrimalNewton

#: Penalty relative to the scale of each contact, its growth and its largest value.
BETA, GROWTH, MOST = 10.0, 10.0, 1e6
#: It grows where the constraint error fell by less than the first and is above this part of the slip error.
_LAG, _SHARE = 0.25, 0.3
#: The derivative along a step falls to this part of itself.
_LINE_SEARCH = 1e-3
#: An inner problem is solved to this part of the last residual, between these bounds; steps that gain less end it below the last.
_INNER, _INNER_LEAST, _INNER_MOST, _ROUNDING = 0.1, 1e-12, 1e-2, 1e-7
#: Slip speeds are accelerated when their error fell by less than the second number over the first number of iterations.
_SLOW_OVER, _SLOW = 10, 0.1
#: Combinations with a larger sum of coefficients are not trusted.
_WILDEST = 1e3


class AugmentedLagrangian:
    """Outer iterations on one problem.

    Parameters
    ----------
    newton : PrimalNewton
        Has taken the problem; its way solves the Newton systems.
    v, lam : ndarray, (n,), m/s and (nc, 3), N
        Start, in the variables of ``isotropic(problem)``.
    beta : float
        First penalty relative to the scale of each contact.
    growth, most : float
        Factor of its growth, and its largest value.
    max_newton : int
        Most Newton steps of an inner problem.
    window : int
        Iterates of the acceleration; 0 for none.
    """

    def __init__(
        self,
        newton: PrimalNewton,
        v: np.ndarray,
        lam: np.ndarray,
        *,
        beta: float = BETA,
        growth: float = GROWTH,
        most: float = MOST,
        max_newton: int = 30,
        window: int = 5,
    ) -> None:
        self.newton, self.problem = newton, newton.problem
        problem: ContactProblem = newton.problem
        nc = problem.n_contacts
        self.v, self.lam = v.copy(), lam.copy()
        u = problem.moved(v).reshape(-1, 3) + problem.phi
        self.slip = np.hypot(u[:, 1], u[:, 2])
        self.beta, self._growth, self._most, self.max_newton = beta, growth, most, max_newton
        self._anderson = _Anderson(window)
        self._trial, self._gain = np.empty((nc, 3)), np.empty((nc, 3, 3))
        self.state = np.full(nc, -1, dtype=np.int8)
        #: constraint and slip error of the last iteration, m/s, and the states that changed in it
        self.al_error = self.slip_error = np.inf
        self.changed = nc
        self._slips: list[float] = []
        self.newton_steps = self.evaluations = 0
        self.failed = False

    def advance(self, residual: float) -> None:
        """One outer iteration; ``residual`` is the true one of the present pair, which decides how sharp the inner problem is."""
        problem, mu = self.problem, self.problem.friction
        beta = self.beta * self.newton.rho
        states = self.state.copy()
        self._minimise(beta, min(max(_INNER * residual, _INNER_LEAST), _INNER_MOST))
        self.changed = int(np.count_nonzero(states != self.state))
        u = problem.moved(self.v).reshape(-1, 3) + problem.phi
        kernels.trial_forces(self.lam, u, self.slip, mu, beta, self._trial)
        new = np.empty_like(self.lam)
        kernels.project(self._trial, mu, new)
        error = (new - self.lam) / beta[:, None]
        slip = np.hypot(u[:, 1] + error[:, 1], u[:, 2] + error[:, 2])
        before = self.al_error
        self.al_error = float(np.linalg.norm(error))
        self.slip_error = float(np.linalg.norm(mu * (slip - self.slip)))
        self._slips.append(self.slip_error)
        self.slip = self._anderson.next(self.slip, slip, self._slow)
        self.lam = new
        if self.al_error > _LAG * before and self.al_error > _SHARE * self.slip_error:
            self.beta = min(self._growth * self.beta, self._most)

    @property
    def _slow(self) -> bool:
        slips = self._slips
        return len(slips) > _SLOW_OVER and slips[-1] > _SLOW * slips[-1 - _SLOW_OVER]

    def restart(self) -> None:
        """Forget the acceleration."""
        self._anderson.forget()

    def _minimise(self, beta: np.ndarray, aim: float) -> None:
        """Newton steps with exact step lengths on v, to a weighted dynamics residual of ``aim``."""
        problem, way, mu = self.problem, self.newton.way, self.problem.friction
        Av = problem.A @ self.v
        force, last = np.empty_like(self.lam), np.inf
        b_size = float(np.linalg.norm(problem.weight * problem.b))
        for _ in range(self.max_newton):
            u = problem.moved(self.v).reshape(-1, 3) + problem.phi
            kernels.trial_forces(self.lam, u, self.slip, mu, beta, self._trial)
            kernels.project_with_slope(self._trial, mu, beta, force, self._gain, self.state)
            pushed = problem.pushed(force)
            r = Av - problem.b - pushed
            scale = max(b_size, float(np.linalg.norm(problem.weight * Av)), float(np.linalg.norm(problem.weight * pushed)))
            size = float(np.linalg.norm(problem.weight * r)) / max(scale, TINY)
            if not np.isfinite(size):
                self.failed = True
                return
            if size <= aim or (size <= _ROUNDING and size > 0.5 * last):
                return
            last = size
            if not way.factorize(self._gain):
                self.failed = True
                return
            d = -way.solve(r)
            product, moved = problem.A @ d, problem.moved(d).reshape(-1, 3)
            start, energy = float(d @ (Av - problem.b)), float(d @ product)
            alpha, count = kernels.exact_step(self._trial, moved, mu, beta, start, energy, _LINE_SEARCH)
            self.v += alpha * d
            Av += alpha * product
            self.newton_steps += 1
            self.evaluations += count


class _Anderson:
    """Acceleration of a fixed point s = g(s) >= 0 with a window of differences."""

    def __init__(self, window: int) -> None:
        self._window = window
        self.forget()

    def forget(self) -> None:
        self._steps: list[np.ndarray] = []
        self._errors: list[np.ndarray] = []
        self._last: tuple[np.ndarray, np.ndarray] | None = None

    def next(self, s: np.ndarray, image: np.ndarray, use: bool) -> np.ndarray:
        """Return the next s from the present one and its image; the image itself where it is not to be used or not trusted."""
        if not self._window:
            return image
        error = image - s
        if self._last is not None:
            self._steps.append(image - self._last[0])
            self._errors.append(error - self._last[1])
            del self._steps[: -self._window], self._errors[: -self._window]
        self._last = image, error
        if not use or not self._errors:
            return image
        matrix = np.column_stack(self._errors)
        coefficients = np.linalg.lstsq(matrix, error, rcond=1e-12)[0]
        if not np.abs(coefficients).sum() <= _WILDEST:
            return image
        return np.asarray(np.maximum(image - np.column_stack(self._steps) @ coefficients, 0.0))

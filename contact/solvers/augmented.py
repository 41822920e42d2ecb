"""Augmented Lagrangian of the contact problem (papers/000 section IV): convex inner problems solved by Newton with exact steps.

Outer iteration, with the slip speeds s of the De Saxce term and the forces lam of the last one::

    v   = argmin 1/2 v^T A v - b^T v + sum |P_K(t)|^2 / (2 beta),    t = lam - beta (J v + phi + (mu s, 0, 0))
    lam = P_K(t),    u = J v + phi + (lam - lam_old) / beta,    s = |u_t|

Departures: beta is a multiple of the force per velocity of each contact; it grows only where the constraint error, not that of
s, is what lags; s is accelerated (Anderson) where no contact changed its state, so that its update is smooth, and where it is
slow; an inner problem is solved to a part of the residual of the outer one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

import numpy as np

from contact.metrics import natural_map, norm
from contact.metrics_kernels import TINY, larger
from contact.problem import ContactProblem
from contact.solvers import augmented_kernels as kernels
from contact.solvers.newton_ways import Way

#: It grows where the constraint error fell by less than the first and is above this part of the slip error.
_LAG, _SHARE = 0.25, 0.3
#: The derivative along a step falls to this part of itself.
LINE_SEARCH = 1e-3
#: An inner problem is solved to this part of the last residual, between these bounds; steps that gain less end it below the last.
_INNER, INNER_LEAST, _INNER_MOST, ROUNDING = 0.1, 1e-12, 1e-2, 1e-7
#: ... or always to this.
_TIGHT = 1e-10
#: Slip speeds are slow when their error fell by less than the second number over the first number of iterations.
_SLOW_OVER, _SLOW = 10, 0.1
#: Combinations with a larger sum of coefficients are not trusted.
_WILDEST = 1e3


@dataclass(frozen=True)
class Plan:
    """How the outer iterations go on.

    Attributes
    ----------
    beta : float
        First penalty relative to the scale of each contact.
    growth, most : float
        Factor of its growth, and its largest value.
    max_newton : int
        Most Newton steps of an inner problem.
    window : int
        Iterates of the acceleration of s; 0 for none.
    rule : {"balanced", "paper"}
        When the penalty grows: where the constraint error lags behind that of s, or whenever it fell too little (papers/000
        Alg. 1).
    inner : {"adaptive", "tight"}
        How sharply an inner problem is solved: to a part of the last residual, or always to 1e-10.
    """

    beta: float = 10.0
    growth: float = 10.0
    most: float = 1e6
    max_newton: int = 30
    window: int = 5
    rule: Literal["balanced", "paper"] = "balanced"
    inner: Literal["adaptive", "tight"] = "adaptive"


class System(Protocol):
    """A problem with one friction coefficient a contact, the force per velocity of each, and a way to solve Newton systems."""

    @property
    def problem(self) -> ContactProblem: ...  # noqa: D102

    @property
    def rho(self) -> np.ndarray: ...  # noqa: D102

    @property
    def way(self) -> Way: ...  # noqa: D102


class Surrogate(NamedTuple):
    """What an inner problem holds fast: forces lam (nc, 3), N, slip speeds (nc,), m/s, and penalties (nc,), N s/m."""

    lam: np.ndarray
    slip: np.ndarray
    beta: np.ndarray


class InnerFound(NamedTuple):
    """What solving an inner problem took: Newton steps, evaluations of the line search, factorizations, and how it ended.

    ``residual`` is the weighted dynamics residual of v and the forces that the surrogate has there; infinite where a value is not
    finite or a matrix broke down.
    """

    steps: int
    evaluations: int
    factorizations: int
    residual: float


class Inner(Protocol):
    """A method for the inner problems."""

    def solve(self, given: Surrogate, v: np.ndarray, state: np.ndarray, aim: float, most: int) -> InnerFound:
        """Improve v (n,), m/s, in place to a residual of ``aim``, with at most so many steps, and fill the states (nc,) int8."""
        ...

    def forces(self, given: Surrogate, u: np.ndarray) -> np.ndarray:
        """Return the forces (nc, 3), N, of the surrogate at contact velocities u (nc, 3), m/s."""
        ...


class ConvexNewton:
    """Newton steps with exact line search on the convex surrogate (papers/000 eqs. 22 to 26).

    Parameters
    ----------
    system : System
        Its way solves the Newton systems.
    """

    def __init__(self, system: System) -> None:
        self._system, nc = system, system.problem.n_contacts
        self._trial, self._gain, self._force = np.empty((nc, 3)), np.empty((nc, 3, 3)), np.empty((nc, 3))

    def forces(self, given: Surrogate, u: np.ndarray) -> np.ndarray:
        """P_K of the trial forces."""
        mu, force = self._system.problem.friction, np.empty_like(given.lam)
        kernels.trial_forces(given.lam, u, given.slip, mu, given.beta, self._trial)
        kernels.project(self._trial, mu, force)
        return force

    def solve(self, given: Surrogate, v: np.ndarray, state: np.ndarray, aim: float, most: int) -> InnerFound:
        """Newton steps until the residual is at most ``aim``, or below rounding and hardly falls."""
        problem, way, mu = self._system.problem, self._system.way, self._system.problem.friction
        Av, last, steps, evaluations = problem.A @ v, np.inf, 0, 0
        b_size = norm(problem.weight * problem.b)
        while True:
            u = problem.moved(v).reshape(-1, 3) + problem.phi
            kernels.trial_forces(given.lam, u, given.slip, mu, given.beta, self._trial)
            kernels.project_with_slope(self._trial, mu, given.beta, self._force, self._gain, state)
            pushed = problem.pushed(self._force)
            r = Av - problem.b - pushed
            scale = max(b_size, norm(problem.weight * Av), norm(problem.weight * pushed))
            size = norm(problem.weight * r) / max(scale, TINY)
            if not np.isfinite(size):
                return InnerFound(steps, evaluations, steps, np.inf)
            if steps >= most or size <= aim or (size <= ROUNDING and size > 0.5 * last):
                return InnerFound(steps, evaluations, steps, size)
            last = size
            if not way.factorize(self._gain):
                return InnerFound(steps, evaluations, steps, np.inf)
            d = -way.solve(r)
            product, moved = problem.A @ d, problem.moved(d).reshape(-1, 3)
            start, energy = float(d @ (Av - problem.b)), float(d @ product)
            alpha, count = kernels.exact_step(self._trial, moved, mu, given.beta, start, energy, LINE_SEARCH)
            v += alpha * d
            Av += alpha * product
            steps, evaluations = steps + 1, evaluations + count


class AugmentedLagrangian:
    """Outer iterations on one problem.

    Parameters
    ----------
    system : System
        The problem, with one friction coefficient a contact.
    v, lam : ndarray, (n,), m/s and (nc, 3), N
        Start.
    plan : Plan, optional
        How they go on.
    inner : Inner, optional
        What solves the inner problems. Default: :class:`ConvexNewton`.
    """

    def __init__(
        self, system: System, v: np.ndarray, lam: np.ndarray, plan: Plan | None = None, inner: Inner | None = None
    ) -> None:
        self.system, self.problem, self._plan = system, system.problem, plan or Plan()
        self._inner = inner or ConvexNewton(system)
        self.max_newton = self._plan.max_newton
        self.newton_steps = self.evaluations = self.factorizations = self.unfinished = 0
        self.failed = False
        self.begin(v, lam)

    def begin(self, v: np.ndarray, lam: np.ndarray) -> None:
        """Begin anew, from v (n,), m/s, and lam (nc, 3), N."""
        nc = self.problem.n_contacts
        self.v, self.lam = v.copy(), lam.copy()
        u = self.problem.moved(v).reshape(-1, 3) + self.problem.phi
        self.slip = np.hypot(u[:, 1], u[:, 2])
        self.beta, self._anderson = self._plan.beta, _Anderson(self._plan.window)
        self.state = np.full(nc, -1, dtype=np.int8)
        #: constraint and slip error of the last iteration, m/s, and the states that changed in it
        self.al_error = self.slip_error = np.inf
        self.changed = nc
        #: dynamics residual of v and lam, and that of the contact law
        self.dynamics = self.contact = np.inf
        self._slips: list[float] = []

    def advance(self, residual: float) -> None:
        """One outer iteration; ``residual`` is the true one of the present pair, which decides how sharp the inner problem is."""
        problem, mu, plan = self.problem, self.problem.friction, self._plan
        given = Surrogate(self.lam, self.slip, self.beta * self.system.rho)
        states = self.state.copy()
        aim = _TIGHT if plan.inner == "tight" else min(max(_INNER * residual, INNER_LEAST), _INNER_MOST)
        found = self._inner.solve(given, self.v, self.state, aim, self.max_newton)
        self.newton_steps += found.steps
        self.evaluations += found.evaluations
        self.factorizations += found.factorizations
        self.unfinished += found.residual > max(aim, ROUNDING)
        self.changed = int(np.count_nonzero(states != self.state))
        self.failed = not np.isfinite(found.residual)
        u = problem.moved(self.v).reshape(-1, 3) + problem.phi
        new = self._inner.forces(given, u)
        self.dynamics, self.contact = found.residual, natural_map(u, new, self.system.rho, mu)
        error = (new - self.lam) / given.beta[:, None]
        slip = np.hypot(u[:, 1] + error[:, 1], u[:, 2] + error[:, 2])
        before = self.al_error
        self.al_error = norm(error)
        self.slip_error = norm(mu * (slip - self.slip))
        self._slips.append(self.slip_error)
        self.slip = self._anderson.next(self.slip, slip, self.changed == 0 or self._slow)
        self.lam = new
        if self.al_error > _LAG * before and (plan.rule == "paper" or self.al_error > _SHARE * self.slip_error):
            self.beta = min(plan.growth * self.beta, plan.most)

    @property
    def residual(self) -> float:
        """The larger residual of the present pair."""
        return float(larger(self.dynamics, self.contact))

    @property
    def _slow(self) -> bool:
        slips = self._slips
        return len(slips) > _SLOW_OVER and slips[-1] > _SLOW * slips[-1 - _SLOW_OVER]

    def restart(self) -> None:
        """Forget the acceleration."""
        self._anderson.forget()


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
        if not np.isfinite(error).all():
            self.forget()
            return image
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

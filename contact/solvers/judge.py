"""The judge of all solvers, and the driver of their iterations.

A solver ends in one of five ways, and :class:`Judge` alone decides which:

- *converged*: the dynamics residual, in both norms, and the contact residual are at most the tolerance, and the force balance of
  each body is at most :data:`BALANCE_FACTOR` times that, all recomputed by ``contact.metrics``; and each contact holds its law on
  the scale of the velocities of the problem, see :class:`Judge`.
- *infeasible*: the problem has no solution, with the contacts that prove it (:func:`contact.feasibility.closing_contacts`).
- *stopped at rounding*: the contact law holds to the tolerance, and the dynamics to what the digits of v allow, which is clearly
  more than the tolerance (:func:`contact.metrics.rounding`). No iteration would change that; a larger tolerance would.
- *stopped at the limit*: iterations, sweeps or whatever else the solver may spend ran out first.
- *failed*: a value is not finite or its square overflows, or the method cannot go on.

The answer is the iterate that converged, else the best that was judged.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from itertools import chain, count
from typing import Any, Protocol

import numpy as np

from contact.feasibility import closing_contacts, free_velocities
from contact.local import LocalProblem
from contact.metrics import LawArguments, Residuals, law_arguments, natural_map, residuals, rounding, rounding_at_most
from contact.metrics_kernels import TINY, idle_speed, law_errors
from contact.narrow import narrow_scales
from contact.problem import ContactProblem, isotropic
from contact.solvers.base import History, Solution, Status

#: Dynamics residual, contact residual and step norm of one iteration; None where only the judge can know.
Row = tuple[float | None, float | None, float]
#: Rows of some iterations; an array, (k, 3), where all is known.
Rows = Sequence[Row] | np.ndarray

#: The force balance of each body must hold to this many times the tolerance.
BALANCE_FACTOR = 5.0
#: Balance of a body that may be rounding: forces of stiff ones cancel up to theirs, and the least scale is 1e-6 of these.
_BALANCED = 1e-9
#: The velocity of each contact must hold to this many times the tolerance on the scale of the data, but at least to the second
#: number, or to the tolerance where that is larger.
VELOCITY_FACTOR, VELOCITY_BOUND = 100.0, 1e-2
#: The natural map with the blocks of W may be so many times the tolerance relative to contact forces alone, without what
#: velocities make, or to this part of the latter, far above rounding, where that is more.
FORCE_FACTOR, MOTION_FRACTION = 100.0, 1e-6
#: A dynamics residual of so many times what rounding leaves is rounding, where that is so many times the tolerance.
_AT_ROUNDING, _BARRED = 4.0, 4.0
#: How an answer begins, with {} for the number of iterations.
_VERDICTS: dict[Status, str] = {
    "converged": "Converged in {} iterations",
    "infeasible": "Found infeasible in {} iterations",
    "failed": "Iteration {} gave a value that is not finite",
    "stopped at rounding": "Stopped at rounding after {} iterations",
    "stopped at the limit": "Stopped at the limit of {} iterations",
}
#: Most contacts that a message names.
MOST_NAMED = 8
#: Where the judge refuses an iterate that a method takes for the answer, the method is asked for this much more.
_TIGHTER = 0.3


class Judge:
    """Judges iterates by true residuals, keeps the best one and the history, and writes the verdict.

    Parameters
    ----------
    problem : ContactProblem or LocalProblem
        The problem to be solved. A local problem has the contact residual only.
    tolerance : float
        Bound of the residuals; what is enough for the problem, where that is more. Iterations go on to the aim of the problem,
        where that is less.
    measure : callable, optional
        ``measure(v, lam, law)`` returns the residuals by the arguments of the natural map, for a solver that has A v. Default:
        those of ``contact.metrics``; of a local problem the contact residual.
    law : callable, optional
        ``law(v, lam)`` returns the arguments of the natural map, for a solver whose options ask for another contact law than the
        problem's. Default: those of the Signorini-Coulomb law.
    relaxed : bool
        Whether that law is the convex relaxation. Default no.

    Notes
    -----
    The contact residual is relative to all forces, so heavy contacts hide light ones, and forces that grow without bound hide any
    velocity. What else must hold, over the contacts that press or approach:

    - the largest ``|lam - P_K(lam - rho uh)| / rho`` of a contact, relative to the largest velocity that they have, or would have
      without contact forces, is at most what :func:`lenient` allows;
    - the natural map with the blocks of W for rho is at most the tolerance, where a solver knows W (:meth:`know`) or bodies are
      narrow (:func:`contact.narrow.narrow_scales`); of the former also a hundred times the tolerance relative to forces alone
      (:func:`lenient_force`);
    - else the power by which contacts and friction are off, over the largest force, is at most a hundredth of this velocity
      (:func:`contact.metrics_kernels.idle_speed`).

    Where W is not known rho is estimated from the diagonal of A. Of stiff bodies it is too large then, and all numbers with it
    are too small where a force is wrong, though not where a velocity is.
    """

    def __init__(
        self,
        problem: ContactProblem | LocalProblem,
        tolerance: float,
        measure: Callable[[np.ndarray, np.ndarray, LawArguments], Residuals] | None = None,
        law: Callable[[np.ndarray, np.ndarray], LawArguments] | None = None,
        relaxed: bool = False,
    ) -> None:
        self.problem, self._measure = problem, measure or partial(_residuals, problem)
        self._bound = self.tolerance = tolerance
        if isinstance(problem, ContactProblem):
            self._bound = max(tolerance, problem.enough)
            self.tolerance = min(self._bound, problem.aim)
        #: whether an iterate met the bound, perhaps not the aim; the best one is such a one then
        self._held = False
        self._law, self._relaxed = law or partial(_law, problem), relaxed
        #: whether the residuals are those of the yardstick
        self._plain = law is None and not relaxed and isinstance(problem, ContactProblem)
        self.converged = self.failed = False
        #: dynamics residual that rounding leaves of the last iterate, where only that bars it from the tolerance; else 0
        self.rounding = 0.0
        #: contacts that prove that there is no solution
        self.closing = np.zeros(0, dtype=np.int64)
        #: residuals of the last iterate and of the best one
        self.last = self.best = Residuals(np.inf, np.inf, np.inf, np.inf)
        #: error of the contact law on the scale of the problem of the last iterate whose residuals pass, 0 of others
        self.error = 0.0
        self.rows: list[Sequence[float]] = []
        self._best_row = 0
        self._v, self._lam = np.zeros(getattr(problem, "n", 0)), np.zeros((problem.n_contacts, 3))
        #: arguments of the natural map of the best iterate, once there is one
        self._best_law: LawArguments | None = None
        self._rho: np.ndarray | None = None
        #: contact velocities without contact forces: estimates so far, and where better ones come from
        self._free: list[np.ndarray] = []
        self._better = iter([problem.q]) if isinstance(problem, LocalProblem) else free_velocities(problem)
        self._speed = 0.0

    def know(self, rho: np.ndarray, speed: float) -> None:
        """Take what a solver knows that has W.

        Parameters
        ----------
        rho : ndarray, (nc,), N s/m
            Force per velocity of each contact by its block of W, in the variables of ``isotropic(problem)``.
        speed : float, m/s
            Largest velocity without contact forces, J A^-1 b + phi, over the contacts that press or approach.
        """
        self._rho, self._speed = rho, speed

    def look(self, v: np.ndarray, lam: np.ndarray, row: int) -> bool:
        """Judge an iterate; True when it converged, is not finite, or shows that there is no solution.

        Parameters
        ----------
        v : ndarray, (n,), m/s
            Velocity; empty for a local problem.
        lam : ndarray, (nc, 3) or (3 nc,), N
            Contact forces.
        row : int
            Its row of the history.
        """
        law = self._law(v, lam)
        self.last, self.error = self._measure(v, lam, law), 0.0
        # before any comparison: max() forgets a NaN that stands second, and comparisons with one are False
        self.failed = not all(map(math.isfinite, self.last))
        self.converged, holds = False, not self.failed and self._passes(self.last, self._bound)
        if holds:
            self.error = self._law_error(law)
            holds = self.error <= self._bound
            self.closing = self.closing if holds else self._closing(law)
            self.converged = holds and self._passes(self.last, self.tolerance) and self.error <= self.tolerance
        over = self.converged or self.failed or len(self.closing) > 0
        self.rounding = 0.0 if over or not self._plain else barring(self.problem, v, lam, self.last, self.tolerance)
        if self.rounding and self._law_error(law) > self.tolerance:
            self.rounding = 0.0
        final = self.converged or len(self.closing) > 0 or self.rounding > 0
        better = (holds, -self.last.worst) > (self._held, -self.best.worst)
        if not self.failed and (better or (final and holds >= self._held)):
            self._held = holds
            self.best, self._best_row = self.last, row
            self._v, self._lam = v.copy(), lam.reshape(-1, 3).copy()
            self._best_law = LawArguments(law.u, law.lam.copy(), law.rho, law.friction, law.phi)
        return final or self.failed

    @staticmethod
    def _passes(found: Residuals, tolerance: float) -> bool:
        largest = max(found.dynamics, found.contact, found.plain)
        return largest <= tolerance and unbalanced(found.balance) <= tolerance

    def _law_error(self, law: LawArguments) -> float:
        """Error of the contact law on the scale of the problem, to be compared with the tolerance; 0 when there is no contact.

        See the notes of the class.
        """
        rho = law.rho if self._rho is None else self._rho
        velocity, pace, force, most = law_errors(law.u, law.lam, law.phi, rho, law.friction, self._relaxed)
        error = lenient(velocity, max(pace, self._speed))
        if self._rho is not None:
            return max(error, force, lenient_force(force, most))
        for speed in self._free_speeds(law) if error > self.tolerance else ():
            error = lenient(velocity, max(pace, speed))
            if error <= self.tolerance:
                break
        if most > self.tolerance and self._narrow_scales is not None:
            error = max(error, natural_map(law.u, law.lam, self._narrow_scales, law.friction, self._relaxed))
        idle = 0.0 if self._relaxed else idle_speed(law.u, law.lam, law.friction)
        if idle > VELOCITY_BOUND * pace:
            error = max(error, self._idleness(law, idle, pace))
        return error

    def _idleness(self, law: LawArguments, idle: float, pace: float) -> float:
        """Return an idle speed, m/s, over the velocity of the data, at least ``pace``; 0 within its bound.

        Better estimates of that velocity are asked for only as long as the bound asks for more.
        """
        known = max(pace, TINY)
        for speed in self._free_speeds(law):
            known = max(known, speed)
            if idle <= VELOCITY_BOUND * known:
                return 0.0
        return idle / known

    @cached_property
    def _narrow_scales(self) -> np.ndarray | None:
        """Force per velocity of each contact by its block of W, (nc,), N s/m, where that costs little."""
        return None if isinstance(self.problem, LocalProblem) else narrow_scales(isotropic(self.problem))

    def _free_speeds(self, law: LawArguments) -> Iterator[float]:
        """Largest velocity without contact forces, m/s, of contacts that press or approach; without W ever better estimates."""
        pressing = law.lam.any(axis=1) | (law.u[:, 0] < 0)
        for k in count():
            if k == len(self._free):
                better = next(self._better, None)
                if better is None:
                    return
                self._free.append(better)
            yield float(np.abs(self._free[k][pressing]).max(initial=0.0))

    def _closing(self, law: LawArguments) -> np.ndarray:
        """Contacts that prove that there is no solution, see :func:`contact.feasibility.closing_contacts`."""
        pace = law_errors(law.u, law.lam, law.phi, law.rho, law.friction, self._relaxed)[1]
        closing = closing_contacts(self.problem, law.u, law.lam, pace)
        if not len(closing):  # a larger speed asks for more
            return closing
        return closing_contacts(self.problem, law.u, law.lam, max(pace, *self._free_speeds(law)))

    def _law_of_best(self) -> LawArguments:
        return self._best_law or self._law(self._v, self._lam)

    @property
    def excess(self) -> float:
        """What must come below the tolerance beside the contact residual: dynamics in both norms, and balance over its factor."""
        if self.failed:
            return np.inf
        return max(self.last.dynamics, self.last.plain, unbalanced(self.last.balance))

    def record(self, rows: Rows) -> None:
        """Add rows to the history; what a method cannot know is that of the last iterate."""
        if isinstance(rows, np.ndarray):
            self.rows += rows.tolist()
            return
        known = self.last
        self.rows += [(known.dynamics if d is None else d, known.contact if c is None else c, step) for d, c, step in rows]

    @property
    def _status(self) -> Status:
        if self.converged or self.failed:
            return "converged" if self.converged else "failed"
        if len(self.closing):
            return "infeasible"
        return "stopped at rounding" if self.rounding else "stopped at the limit"

    def _proof(self) -> str:
        """Sentence on why there is no solution."""
        approach = float(-self._law_of_best().u[self.closing, 0].min())
        names = ", ".join(map(str, self.closing[:MOST_NAMED])) + (", ..." if len(self.closing) > MOST_NAMED else "")
        what = f"contacts {names} close" if len(self.closing) > 1 else f"contact {names} closes"
        return (
            f"No solution is within reach: {what} at up to {approach:.3g} m/s while their forces cancel, however large they are."
        )

    def solution(
        self, timings: dict[str, float], details: dict[str, Any], note: str = "", law: str = "", ended: str = ""
    ) -> Solution:
        """Return the best iterate with its verdict.

        Parameters
        ----------
        timings, details : dict
            Those of the solution.
        note : str
            Sentence to end the message with.
        law : str
            What to say of the contact law beside the residuals.
        ended : str
            How a method ended that reached its limit by a rule of its own, {} for the number of iterations.
        """
        history = np.fromiter(chain.from_iterable(self.rows), np.float64).reshape(-1, 3)
        n, best = len(history), self.best
        self.converged |= self._held
        if not (self.converged or self.failed or len(self.closing)):
            self.closing = self._closing(self._law_of_best())
        status = self._status
        verdict = ended if ended and status == "stopped at the limit" else _VERDICTS[status]
        if status == "stopped at the limit" and max(best.dynamics, best.contact) <= self.tolerance:
            missing = "law of a light or slow contact" if self.error else "balance of a body or the plain norm of the dynamics"
            note = f"Only the {missing} is missing. {note}".strip()
        if status == "stopped at rounding":
            note = f"The digits of v leave {self.rounding:.1e} of the dynamics: ask for a larger tolerance. {note}".strip()
        if status == "infeasible":
            note = f"{self._proof()} {note}".strip()
            details = {**details, "closing_contacts": self.closing}
        numbers = f"dynamics residual {best.dynamics:.2e}, contact residual {best.contact:.2e}, tolerance {self._bound:.0e}"
        if not self.converged and self._best_row < n - 1:
            place = f"that of iteration {self._best_row + 1}" if self._best_row >= 0 else "the start"
            numbers += f"; returned is the best iterate, {place}"
        message = f"{verdict.format(n)} ({numbers}{f', {law}' if law else ''}).{f' {note}' if note else ''}"
        columns = History(history[:, 0], history[:, 1], history[:, 2])
        known, arguments = (best, self._best_law) if self._plain and self._best_law is not None else (None, None)
        return Solution(self._v, self._lam, status, message, n, columns, timings, details, residuals=known, law=arguments)


def barring(problem: ContactProblem | LocalProblem, v: np.ndarray, lam: np.ndarray, found: Residuals, tolerance: float) -> float:
    """Dynamics residual that rounding leaves, where only that bars a pair from the tolerance; else 0.

    ``found`` are its residuals. The contact residual must be at most the tolerance, though rounding leaves more in the dynamics:
    on the scale of stiff forces it is small long before contact forces are right.
    """
    dynamics = max(found.dynamics, found.plain)
    if isinstance(problem, LocalProblem) or not found.contact <= tolerance < dynamics:
        return 0.0
    if dynamics > _AT_ROUNDING * rounding_at_most(problem, v, lam):
        return 0.0
    left = rounding(problem, v, lam)
    return left if _BARRED * tolerance < left and dynamics <= _AT_ROUNDING * left else 0.0


def unbalanced(balance: float) -> float:
    """Tolerance for which a balance of bodies passes: 0 of one that may be rounding, whatever is asked for."""
    return 0.0 if balance <= _BALANCED else balance / BALANCE_FACTOR


def lenient(velocity: float, speed: float) -> float:
    """Tolerance for which an error of a contact velocity passes beside the velocity of the problem, both in m/s.

    A hundredth of the relative error, see ``VELOCITY_FACTOR``: forces that cancel, as those of a stack, make velocities so much
    less accurate than forces. Above 1 % (``VELOCITY_BOUND``) the relative error itself.
    """
    error = velocity / max(speed, TINY)
    return error / VELOCITY_FACTOR if error <= VELOCITY_BOUND else error


def lenient_force(force: float, most: float) -> float:
    """Tolerance for which an error of contact forces passes beside themselves, however fast they slide.

    ``force`` and ``most`` are the natural map relative to forces or velocities and to forces alone, see
    :func:`contact.metrics_kernels.law_errors`: what slides at 10 m/s would hide forces that are half wrong.
    """
    return min(most, force / MOTION_FRACTION) / FORCE_FACTOR


def law_error(problem: ContactProblem | LocalProblem, v: np.ndarray, lam: np.ndarray) -> float:
    """Error of the contact law of an answer on the scale of the velocities of its problem, unit-free; see :class:`Judge`.

    An answer is good to a tolerance where this is at most the tolerance, beside the residuals. W is not used unless it is given.

    Parameters
    ----------
    problem : ContactProblem or LocalProblem
        The problem that was to be solved.
    v : ndarray, (n,), m/s
        Velocity; not used for a local problem.
    lam : ndarray, (nc, 3) or (3 nc,), N
        Contact forces, normal first.
    """
    return Judge(problem, 0.0)._law_error(_law(problem, v, lam))


def _law(problem: ContactProblem | LocalProblem, v: np.ndarray, lam: np.ndarray) -> LawArguments:
    if isinstance(problem, LocalProblem):
        lam = lam.reshape(-1, 3)
        return LawArguments(problem.contact_velocity(lam), lam, problem.scales, problem.friction, np.zeros_like(lam))
    return law_arguments(problem, v, lam)


def _residuals(problem: ContactProblem | LocalProblem, v: np.ndarray, lam: np.ndarray, law: LawArguments) -> Residuals:
    if isinstance(problem, LocalProblem):
        return Residuals(0.0, natural_map(*law[:4]), 0.0, 0.0)
    return residuals(problem, v, lam, law=law)


# ---------------------------------------------------------------------- the driver


class Method(Protocol):
    """Iterations that can be continued, driven by :func:`drive`.

    Attributes
    ----------
    best : int
        Row of the history, from 0, that holds the iterate of :meth:`answer`.
    over, failed : bool
        Whether the method cannot go on, by a limit of its own; whether a value is not finite, which ends it as well.
    """

    @property
    def best(self) -> int: ...  # noqa: D102

    @property
    def over(self) -> bool: ...  # noqa: D102

    @property
    def failed(self) -> bool: ...  # noqa: D102

    def until(self, aim: float, limit: int) -> Rows:
        """Iterate until the residuals that the method sees are at most ``aim``, ``limit`` more times, or it is over.

        Returns the rows of these iterations. A method that sees no residuals does one iteration.
        """
        ...

    def answer(self) -> tuple[np.ndarray, np.ndarray]:
        """v, (n,), m/s, and lam, (nc, 3) or (3 nc,), N, of the best iterate, in the variables of the problem that is judged."""
        ...


def drive(method: Method, judge: Judge, limit: int, wait: int | None = None) -> None:
    """Let a method iterate until the judge is content, its limit of iterations is reached, or it is over.

    Where the judge was not content with residuals that the method took for those asked for, it looks again after at most ``wait``
    iterations; by default when they are ten times smaller.
    """
    aim = judge.tolerance
    while True:
        most = limit - len(judge.rows)
        most = most if wait is None or not judge.rows else min(wait, most)
        rows = method.until(aim, most)
        finished = judge.look(*method.answer(), method.best)
        judge.record(rows)
        if method.failed and not judge.converged:
            judge.failed = True
        if finished or method.over or method.failed or len(judge.rows) >= limit:
            return
        if wait is None or len(rows) < most:
            aim *= _TIGHTER

"""The equations of a step solved, not only linearised: Newton's method over contact problems."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from contact import ContactProblem, Solution, Solver, WarmStart, metrics
from femsim.model.bodies.body import StepSettings
from femsim.step.contacts import ContactRows
from femsim.step.system import System

#: How the message of a step begins whose nonlinear equations were not solved.
NOT_SOLVED = "The nonlinear equations of the step"
#: Part of the nonlinear tolerance that the residuals of a contact problem may reach which its solver did not call converged.
_NEARLY = 0.1
#: Linearisations before the last that the next one looks back on.
_MEMORY = 8


@dataclass(frozen=True)
class Newton:
    """How exactly the nonlinear equations of a step are solved.

    Attributes
    ----------
    tolerance : float or None
        Bound of the nonlinear residual, see :meth:`femsim.step.system.System.residual`. None: one linearisation a step, as in
        papers/001; the residual is measured, but asks for nothing.
    max_solves : int
        Most contact problems in a step.
    still : float, m/s
        Speed that counts as none: the forces that make it are the least that the residual is relative to.
    """

    tolerance: float | None
    max_solves: int
    still: float


@dataclass(frozen=True)
class Solved:
    """What came of it.

    Attributes
    ----------
    problem : ContactProblem
        The last contact problem: that whose equations the solution satisfies.
    solution : Solution
        Its answer; not converged where the nonlinear residual stayed above its tolerance. Its iterations are those of all, and
        ``details["effort"]`` is the part of the iterations allowed that a solve took in the mean.
    residuals : tuple of float
        Nonlinear residual of the answer of each contact problem.
    """

    problem: ContactProblem
    solution: Solution
    residuals: tuple[float, ...]

    @property
    def residual(self) -> float:
        """Nonlinear residual of the answer."""
        return self.residuals[-1]

    @property
    def solves(self) -> int:
        """Contact problems solved."""
        return len(self.residuals)


def solve_step(
    system: System, settings: StepSettings, rows: ContactRows, solver: Solver, warm: WarmStart, newton: Newton
) -> Solved:
    """Solve the nonlinear equations of a step, its contacts and their normals being those of its start.

    Each iterate is a contact problem, linearised where the last one led and warm-started by it; the contact law is exact in
    all of them, since it is linear in the velocities. The forces that bodies and couplings report are those of the last problem,
    so they balance to its tolerance.

    Parameters
    ----------
    system : System
        As :meth:`~femsim.step.system.System.assemble` left it at the start of the step.
    settings : StepSettings
        Settings of the step.
    rows : ContactRows
        Rows of the contacts.
    solver : Solver
        Contact solver.
    warm : WarmStart
        Where it starts.
    newton : Newton
        When to stop.
    """
    attempt = partial(_attempt, system, settings, rows, solver, newton.still)
    last = attempt(warm)
    residuals, iterations, effort = [last.residual], last.solution.iterations, _effort(solver, last.solution)
    places, led_to = [np.zeros(system.n)], [last]
    while newton.tolerance is not None and not last.holds(newton.tolerance) and len(residuals) < newton.max_solves:
        if not np.isfinite(last.residual) or not _leads_on(last, newton.tolerance):
            break
        place = _next_place(system, settings, newton.still, places, led_to)
        system.linearise(settings, place)
        last = attempt(WarmStart(last.solution.v, last.solution.lam))
        places, led_to = [*places[-_MEMORY:], place], [*led_to[-_MEMORY:], last]
        residuals.append(last.residual)
        iterations += last.solution.iterations
        effort += _effort(solver, last.solution)
    details = {**last.solution.details, "effort": effort / len(residuals)}
    solution = _judged(last, replace(last.solution, iterations=iterations, details=details), len(residuals), newton)
    return Solved(last.problem, solution, tuple(residuals))


@dataclass(frozen=True)
class _Iterate:
    """Contact problem of a linearisation, its answer with its forces J^T lam, (n,), and the nonlinear residual of both.

    ``rounding`` is the part of the residual that rounding may make.
    """

    problem: ContactProblem
    solution: Solution
    push: np.ndarray
    residual: float
    rounding: float

    def holds(self, tolerance: float) -> bool:
        """Whether the equations of the step hold to a tolerance, or to rounding."""
        return self.residual <= max(tolerance, self.rounding)


def _attempt(
    system: System, settings: StepSettings, rows: ContactRows, solver: Solver, still: float, warm: WarmStart
) -> _Iterate:
    """Solve the contact problem of the present linearisation; bodies and couplings take its forces."""
    problem = rows.problem(system, settings.dt)
    solution = solver.solve(problem, warm)
    system.accept(solution.v)
    push = problem.pushed(solution.lam)
    residual = system.residual(settings, solution.v, push, still)
    return _Iterate(problem, solution, push, residual, system.rounding)


def _effort(solver: Solver, solution: Solution) -> float:
    """Part of the iterations allowed that a solution took; of the solver that answered, where one was picked."""
    limit = solution.details.get("max_iterations") or getattr(getattr(solver, "options", None), "max_iterations", None)
    return float(solution.iterations / limit) if limit else 0.0


def _leads_on(last: _Iterate, tolerance: float) -> bool:
    """Whether the answer of a contact problem is good enough to linearise about it: solved, or nearly by this tolerance."""
    if last.solution.converged:
        return True
    found = metrics.measure(last.problem, last.solution.v, last.solution.lam)
    return max(found.dynamics_residual, found.contact_residual) <= _NEARLY * tolerance


def _next_place(
    system: System, settings: StepSettings, still: float, places: list[np.ndarray], led_to: list[_Iterate]
) -> np.ndarray:
    """Velocity to linearise about, at which the residual was asked last.

    That is the last solution, or where the last few places and the solutions that they led to meet by Anderson's extrapolation,
    if the residual is lower there: the tangents of some forces are not exact, and Newton's method alone then converges slowly.
    """
    last = led_to[-1]
    if len(places) > 1:
        v = np.array([one.solution.v for one in led_to])
        gap = np.sqrt(system.A.diagonal()) * (v - np.array(places))
        share = np.linalg.lstsq((gap[:-1] - gap[-1]).T, -gap[-1], rcond=1e-8)[0]
        shares = np.append(share, 1.0 - share.sum())
        place, push = shares @ v, shares @ np.array([one.push for one in led_to])
        if system.residual(settings, place, push, still) < last.residual:
            return np.asarray(place)
        system.residual(settings, last.solution.v, last.push, still)
    return last.solution.v


def _judged(last: _Iterate, solution: Solution, solves: int, newton: Newton) -> Solution:
    """Not converged where the contact problem is solved, but not the nonlinear equations."""
    if newton.tolerance is None or last.holds(newton.tolerance) or not solution.converged:
        return solution
    return replace(
        solution,
        status="stopped at the limit",
        message=f"{NOT_SOLVED} still lack {last.residual:.2g} of their forces after {solves} linearisations; "
        f"asked for is {newton.tolerance:g}. Take a smaller dt.",
    )

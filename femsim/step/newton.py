"""The equations of a step solved, not only linearised: Newton's method over contact problems."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from contact import ContactProblem, Solution, Solver, WarmStart
from femsim.model.bodies.body import StepSettings
from femsim.step.contacts import ContactRows
from femsim.step.system import System

#: A Newton step must bring the residual below this part of the last one, or it is halved ...
_ENOUGH = 0.9
#: ... at most this often.
_MOST_CUTS = 4


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
    """

    tolerance: float | None
    max_solves: int


@dataclass(frozen=True)
class Solved:
    """What came of it.

    Attributes
    ----------
    problem : ContactProblem
        The last contact problem: that whose equations the solution satisfies.
    solution : Solution
        Its answer; not converged where the nonlinear residual stayed above its tolerance. Its iterations are those of all.
    residual : float
        Nonlinear residual of the answer.
    solves : int
        Contact problems solved.
    """

    problem: ContactProblem
    solution: Solution
    residual: float
    solves: int


def solve_step(
    system: System, settings: StepSettings, rows: ContactRows, solver: Solver, warm: WarmStart, newton: Newton
) -> Solved:
    """Solve the nonlinear equations of a step, its contacts and their normals being those of its start.

    Each iterate is a contact problem, linearised where the last one led and warm-started by it; the contact law is exact in all
    of them, since it is linear in the velocities. Where the residual does not fall, the next linearisation is between the last two
    places. The forces that bodies and couplings report are those of the last problem, so they balance to its tolerance.

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
    problem = rows.problem(system, settings.dt)
    solution = solver.solve(problem, warm)
    system.accept(solution.v)
    push = problem.pushed(solution.lam)
    residual = system.residual(settings, solution.v, push)
    about, about_push, about_residual = solution.v, push, np.inf
    solves, iterations = 1, solution.iterations
    while newton.tolerance is not None and not residual <= newton.tolerance and solves < newton.max_solves:
        if solution.status == "failed" or not np.isfinite(residual):
            break
        place, there, cuts = solution.v, residual, 0
        while there > _ENOUGH * about_residual and cuts < _MOST_CUTS:
            cuts += 1
            share = 0.5**cuts
            place, at_place = about + share * (solution.v - about), about_push + share * (push - about_push)
            there = system.residual(settings, place, at_place)
        about, about_push, about_residual = place, push if cuts == 0 else at_place, there
        system.linearise(settings, place)
        problem = rows.problem(system, settings.dt)
        solution = solver.solve(problem, WarmStart(solution.v, solution.lam))
        system.accept(solution.v)
        push = problem.pushed(solution.lam)
        residual = system.residual(settings, solution.v, push)
        solves += 1
        iterations += solution.iterations
    return Solved(problem, _judged(replace(solution, iterations=iterations), residual, solves, newton), residual, solves)


def _judged(solution: Solution, residual: float, solves: int, newton: Newton) -> Solution:
    """Not converged where the contact problem is solved, but not the nonlinear equations."""
    if newton.tolerance is None or residual <= newton.tolerance or not solution.converged:
        return solution
    return replace(
        solution,
        status="stopped at the limit",
        message=f"The nonlinear equations of the step still lack {residual:.2g} of their forces after {solves} linearisations; "
        f"asked for is {newton.tolerance:g}. Take a smaller dt.",
    )

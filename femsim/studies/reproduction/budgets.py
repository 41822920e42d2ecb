"""Solvers that are stopped after a number of iterations: what they reach by the residual of papers/000, and the time."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from contact import ContactProblem, Solution, Solver, WarmStart, make_solver
from contact.cone import project_forces
from contact.linear import make_factorization
from femsim.scene.scene import Scene
from femsim.step.stepper import Stepper
from femsim.studies.reproduction.measuring import REFERENCE, Raw, linearised_once

#: A tolerance that no answer reaches, so that the number of iterations ends a solve.
NEVER = 1e-15


class Budget(NamedTuple):
    """A solver and the numbers of iterations after which it is stopped.

    Attributes
    ----------
    label : str
        As tables show it.
    solver : str
        Name in ``contact.SOLVERS``.
    options : dict
        Of the solver.
    counts : tuple of int
        Numbers of iterations, ascending.
    """

    label: str
    solver: str
    options: dict[str, Any]
    counts: tuple[int, ...]


class Reached(NamedTuple):
    """What a stopped solver gave: residual of papers/000, N s; CPU time, ms; and numbers of CANAL, 0 of other solvers.

    ``newton`` are its Newton steps, ``unfinished`` its inner problems that missed their tolerance.
    """

    residual: float
    ms: float
    newton: int
    unfinished: int


def paper_residual(problem: ContactProblem, lam: np.ndarray) -> float:
    """Residual of papers/000, section VII: |l - T(l - u)| over the contacts, N s beside m/s, with l = dt lam.

    T is the strict operator, and u the velocity that the forces give, so that the dynamics hold. Its terms differ in their units;
    the paper adds them.

    Parameters
    ----------
    problem : ContactProblem
        With one friction coefficient a contact.
    lam : ndarray, (nc, 3), N
        Contact forces.
    """
    factors = make_factorization()
    factors.factorize(problem.A, np.zeros(0, dtype=np.int64))
    v = factors.solve(problem.b + problem.pushed(lam))
    impulse, out = problem.dt * lam, np.empty_like(lam)
    trial = impulse - problem.moved(v).reshape(-1, 3) - problem.phi
    project_forces(trial, np.column_stack([problem.friction, problem.friction]), True, out)
    return float(np.linalg.norm(impulse - out)) / problem.n_contacts


def reach(problem: ContactProblem, budget: Budget, count: int, warm_start: WarmStart | None = None) -> Reached:
    """Solve a problem with so many iterations, and measure the answer."""
    solver = make_solver(budget.solver, tolerance=NEVER, max_iterations=count, **budget.options)
    started = time.process_time()
    solution = solver.solve(problem, warm_start)
    ms = 1e3 * (time.process_time() - started)
    newton, unfinished = (int(solution.details.get(name, 0)) for name in ("newton_steps", "unfinished"))
    return Reached(paper_residual(problem, solution.lam), ms, newton, unfinished)


def measure_all(problems: Sequence[ContactProblem], budgets: Iterable[Budget]) -> Raw:
    """Measure all budgets on all problems from nothing; by label: counts, and residual and ms, (problems, counts)."""
    raw: Raw = {}
    for budget in budgets:
        reach(problems[0], budget, budget.counts[0])  # compiles
        found = [[reach(problem, budget, count) for count in budget.counts] for problem in problems]
        raw[budget.label] = {
            "counts": list(budget.counts),
            "residual": [[_few(each.residual) for each in row] for row in found],
            "ms": [[_few(each.ms) for each in row] for row in found],
            "newton": [[each.newton for each in row] for row in found],
            "unfinished": [[each.unfinished for each in row] for row in found],
        }
    return raw


def _few(value: float) -> float:
    """Three digits, which is what a stored number has."""
    return float(f"{value:.3g}")


class Keeping:
    """A solver that keeps the last problem of a run and where it starts.

    Parameters
    ----------
    solver : Solver
        By what the run goes on.
    """

    def __init__(self, solver: Solver) -> None:
        self._solver = solver
        self.problem: ContactProblem | None = None
        self.start: WarmStart | None = None

    def solve(self, problem: ContactProblem, warm_start: WarmStart | None = None) -> Solution:
        """Solve, and keep a copy, since the step goes on to use A and b otherwise."""
        self.problem, self.start = replace(problem, A=problem.A.copy(), b=problem.b.copy()), warm_start
        return self._solver.solve(problem, warm_start)


def last_problem(scene: Scene, steps: int) -> ContactProblem:
    """Return the contact problem of a step of a run, each linearised once."""
    keeping = Keeping(make_solver("auto", tolerance=REFERENCE))
    stepper = Stepper(linearised_once(scene), keeping)
    for _ in range(steps):
        stepper.step()
    if keeping.problem is None:
        raise AssertionError(f"{scene.name}: step {steps} has no contact problem")
    return keeping.problem


def digits(values: np.ndarray) -> np.ndarray:
    """Return -log10, with at most 17 digits."""
    return np.asarray(-np.log10(np.maximum(values, 1e-17)))

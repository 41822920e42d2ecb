"""Solve the contact problem of a file, and judge the answer on the problem as it stands in the file."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from contact import (
    SOLVERS,
    ContactError,
    ContactProblem,
    FclibProblem,
    LocalMetrics,
    LocalProblem,
    Metrics,
    NotApplicableError,
    Solution,
    Solver,
    WarmStart,
    contact_velocity,
    make_solver,
    measure,
    measure_local,
    read_fclib,
)
from contact.local import SYMMETRY
from contact.solvers.judge import law_error
from femsim.base.errors import InputError, naming_parameters
from femsim.base.files import check_output, replacing, write_errors
from femsim.base.status import Status

#: Where a solver reports "converged" and the residuals disagree, it gets this many more tries, each at a tenth of the tolerance.
_REFINEMENTS = 4


@dataclass(frozen=True)
class SolvedProblem:
    """Answer to a problem of a file.

    Attributes
    ----------
    status : {"converged", "not converged", "failed"}
        "converged": every residual of :attr:`residuals` is at most the tolerance, whatever the solver reports; "failed": the
        solver returned values that are not finite.
    message : str
        One sentence.
    v : ndarray, (n,), optional
        Velocity; None for a problem of the local form.
    r, u : ndarray, (spacedim nc,)
        Contact forces and velocities in the dimension and order of the file, normal first.
    l : ndarray, (p,), optional
        Forces of equalities and other rows, in the order of the problem; None where there are none.
    metrics : Metrics or LocalMetrics
        All residuals on the problem of the file.
    solver : str
        Name of the solver.
    iterations : int
        Iterations used.
    seconds : float, s
        Wall time of the solver.
    description : str
        The problem in a few words.
    tolerance : float
        Tolerance that was asked for.
    """

    status: Status
    message: str
    v: np.ndarray | None = field(repr=False)
    r: np.ndarray = field(repr=False)
    u: np.ndarray = field(repr=False)
    metrics: Metrics | LocalMetrics
    solver: str
    iterations: int
    seconds: float
    description: str
    tolerance: float
    l: np.ndarray | None = field(default=None, repr=False)  # noqa: E741  # FCLib's letter

    @property
    def residuals(self) -> dict[str, float]:
        """The residuals that decide: of the contact law, and of rows and the dynamics in both norms where there are dynamics."""
        names = ["contact_residual", "dynamics_residual", "dynamics_residual_plain"]
        names += ["row_residual"] if self.l is not None else []
        return {name: value for name, value in self.metrics.as_dict().items() if name in names}

    def summary(self) -> str:
        """Describe the answer in a few lines: status, solver, time, all residuals."""
        lines = {
            "problem": self.description,
            "status": f"{self.status}: {self.message}",
            "solver": f"{self.solver}, {self.iterations} iterations, {self.seconds:.3f} s",
        }
        lines |= {name.replace("_", " "): f"{value:.2e}" for name, value in self.metrics.as_dict().items()}
        return "\n".join(f"{name:<24}{text}" for name, text in lines.items())


@naming_parameters
def solve_problem(
    path: str | Path,
    solver: str = "auto",
    *,
    tolerance: float = 1e-6,
    max_iterations: int | None = None,
    out: str | Path | None = None,
    solver_options: dict[str, Any] | None = None,
) -> SolvedProblem:
    """Solve the contact problem of an FCLib file.

    The solver does not judge itself: all residuals are computed anew on the problem of the file. Where the solver reports
    "converged" and the residuals disagree (it may stop by another norm, or solve an equivalent problem), it continues from its
    answer with a tenth of the tolerance, at most four times.

    Parameters
    ----------
    path : path
        File of the local or the global form, see :func:`contact.read_fclib`.
    solver : str
        Name in ``contact.SOLVERS``. Problems of the local form go to its method ``solve_local``; solvers that need a matrix A
        convert them to an equivalent problem, which requires a symmetric W.
    tolerance : float
        The residual of the contact law, of rows, and of the dynamics in both norms, must be at most this.
    max_iterations : int, optional
        Iteration limit in all; default of the solver.
    out : path, optional
        NPZ file with ``r`` and ``u``, (spacedim nc,), for the global form ``v``, (n,), and ``l``, (p,), forces of equalities and
        other rows where there are some; written also when the tolerance was
        not reached, but not when the answer is not finite. An existing file is replaced.
    solver_options : dict, optional
        Further options of the solver.

    Raises
    ------
    InputError, ContactError
        A file that cannot be read or written, an unknown solver or option, or a W that the solver cannot take.
    """
    path, target = Path(path), None if out is None else Path(out)
    if target is not None:
        _check_target(target, path)
    if not isinstance(solver_options, dict | None):
        raise InputError(f"solver_options is {type(solver_options).__name__}; give a dict of options by name.")
    if "tolerance" in (solver_options or {}):
        raise InputError("solver_options holds a tolerance; give it as the argument tolerance of solve_problem.")
    options = {"max_iterations": max_iterations, **(solver_options or {})}
    chosen = make_solver(solver, tolerance=tolerance, **options)
    file = read_fclib(path)
    solve = solve_function(file, solver, path)
    goal, iterations, seconds = tolerance, 0, 0.0
    warm: WarmStart | None = None
    answers: list[SolvedProblem] = []
    while len(answers) <= _REFINEMENTS:
        started = time.perf_counter()
        try:
            solution = solve(chosen, warm)
        except (ContactError, np.linalg.LinAlgError, MemoryError) as error:
            raise InputError(f"{path} cannot be solved by {solver!r}: {error}; choose another solver.") from error
        seconds += time.perf_counter() - started
        iterations += solution.iterations
        answers.append(judge_answer(file, solution, solver, tolerance, path))
        left = None if max_iterations is None else max_iterations - iterations
        if answers[-1].status != "not converged" or not solution.converged or (left is not None and left < 1):
            break
        goal, warm = 0.1 * goal, WarmStart(solution.v, solution.lam, solution.row_forces)
        chosen = make_solver(solver, **{**options, "tolerance": goal, "max_iterations": left})
    best = replace(min(answers, key=_worst), iterations=iterations, seconds=seconds)
    if target is not None and best.status != "failed":
        arrays = {name: values for name in ("v", "r", "u", "l") if (values := getattr(best, name)) is not None}
        advice = "free the disk or choose another place"
        with write_errors(target, advice), replacing(target) as temporary, temporary.open("wb") as stream:
            np.savez(stream, **arrays)
    return best


def _check_target(target: Path, problem: Path) -> None:
    check_output(target, "name a file such as solution.npz")
    if target.exists() and problem.exists() and target.samefile(problem):
        raise InputError(f"the output {target} is the problem itself; name another file such as solution.npz.")


def solve_function(file: FclibProblem, name: str, path: Path) -> Callable[[Solver, WarmStart | None], Solution]:
    """Choose how a solver gets the problem of a file: by ``solve``, or by ``solve_local`` in the local form."""
    problem = file.problem
    if not isinstance(problem, LocalProblem):
        return lambda solver, warm: solver.solve(problem, warm)
    takes_local = [known for known, entry in SOLVERS.items() if hasattr(entry.solver, "solve_local")]
    if name in takes_local:
        return lambda solver, warm: solver.solve_local(problem, warm)  # type: ignore[attr-defined]
    raise NotApplicableError(
        f"{path} is of the local form, which solver {name!r} does not take; choose from {', '.join(takes_local)}."
    )


def judge_answer(file: FclibProblem, solution: Solution, solver: str, tolerance: float, path: Path) -> SolvedProblem:
    """Measure an answer on the problem of the file, in the dimension of the file."""
    problem, v = file.problem, solution.v
    lam = solution.lam.copy()
    lam[:, file.spacedim :] = 0.0
    metrics: Metrics | LocalMetrics
    with np.errstate(invalid="ignore", over="ignore"):  # of answers that are not finite, which are reported as such
        if isinstance(problem, LocalProblem):
            u, metrics, n = problem.contact_velocity(lam), measure_local(problem, lam), ""
        else:
            found = measure(problem, v, lam, row_forces=solution.row_forces if problem.rows is not None else None)
            u, metrics, n = contact_velocity(problem, v), found, f", {problem.n} velocities"
    form = "local" if isinstance(problem, LocalProblem) else "global"
    if file.asymmetry > SYMMETRY:
        n += f", W not symmetric (by {file.asymmetry:.1e} of its largest entry)"
    text = f"{path}: {form}, {file.spacedim}D, {problem.n_contacts} contact{'s' * (problem.n_contacts != 1)}{n}"
    r, u = file.flatten(lam), file.flatten(u)
    forces = None
    if problem.rows is not None:
        forces = problem.rows.forces(lam) if isinstance(problem, LocalProblem) else solution.row_forces
        text += f", {len(forces)} rows of joints, limits and motors"
    v_of = None if form == "local" else v
    answer = SolvedProblem("converged", "", v_of, r, u, metrics, solver, 0, 0.0, text, tolerance, forces)
    said = f"the solver says: {solution.message}"
    if not all(np.isfinite(values).all() for values in (v, r, u)):
        return replace(answer, status="failed", message=f"The answer is not finite; {said}")
    worst = max(answer.residuals, key=lambda name: answer.residuals[name])
    law = problem.loaded(solution.row_forces) if isinstance(problem, ContactProblem) else problem
    broken = law_error(law, v, lam) if answer.residuals[worst] <= tolerance else 0.0
    if broken > tolerance:
        text = f"The residuals pass, but a contact breaks its law on the scale of the velocities ({broken:.2e}); {said}"
        return replace(answer, status="not converged", message=text)
    if answer.residuals[worst] <= tolerance:
        return replace(answer, message=f"All residuals are at most the tolerance {tolerance:.0e}.")
    shortfall = f"{worst.replace('_', ' ')} {answer.residuals[worst]:.2e} is above the tolerance {tolerance:.0e}"
    return replace(answer, status="not converged", message=f"The {shortfall}; {said}")


def _worst(answer: SolvedProblem) -> float:
    return float("inf") if answer.status == "failed" else max(answer.residuals.values())

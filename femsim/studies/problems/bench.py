"""Compare contact solvers on saved problems and on the steps of scenes: times, true residuals, errors, convergence plots."""

from __future__ import annotations

import copy
import csv
import math
import os
import statistics
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from contact import (
    ContactError,
    ContactProblem,
    FclibProblem,
    LocalProblem,
    NotApplicableError,
    Solution,
    Solver,
    WarmStart,
    make_solver,
    read_fclib,
)
from contact.solvers.judge import law_error
from femsim.base.errors import InputError, did_you_mean, naming_parameters
from femsim.base.files import is_free, replacing, write_errors, write_json
from femsim.base.status import Status
from femsim.base.versions import machine, versions
from femsim.scene.scene import Scene
from femsim.scene.scene_file import find_scene, list_scenes, load_scene, scene_errors
from femsim.step.stepper import Stepper
from femsim.studies.problems.arena import SETS, Entrant, expand_sets, limited, read_entrants
from femsim.studies.problems.pages import paper_metrics, write_profiles
from femsim.studies.problems.sets import GENERATED
from femsim.studies.problems.solve import SolvedProblem, judge_answer, solve_function
from femsim.studies.problems.traits import Traits, traits
from viz import plot_convergence

BenchStatus = Status | Literal["refused", "not applicable", "over time"]

#: Solver of the run that gives the problems of a scene, with its own default tolerance.
_RUN_SOLVER = "auto"
#: Steps of a scene when none are asked for.
_STEPS = 5
#: CPU time of one sample of the product A x, s, and how many samples.
_SAMPLE, _SAMPLES = 2e-3, 7
_ADVICE = "free the disk or choose another place"
#: Iterations of the untimed first solve where there is a time limit.
_WARM_UP = 2
#: CPU time, s, that this one, which compiles, may take beyond the limit.
_COMPILING = 120.0
#: Errors of one solver on one problem; the benchmark goes on without it.
_REFUSALS = (ContactError, np.linalg.LinAlgError, MemoryError)

Solve = Callable[[Solver, WarmStart | None], Solution]


@dataclass(frozen=True)
class BenchRow:
    """What one solver did with one problem; numbers that do not exist are NaN.

    Attributes
    ----------
    problem : str
        File without its ending, or the scene and the step.
    contacts, velocities : int
        Size of the problem; no velocities in a problem of the local form.
    solver : str
        Name in ``contact.SOLVERS``, with options where some were given: ``name:option=value``.
    status : {"converged", "not converged", "failed", "refused", "not applicable", "over time"}
        "converged": both residuals below are at most the tolerance, whatever the solver says. "failed": the answer is not finite.
        "refused": the solver raised an error. "not applicable": the solver does not take problems of this form. "over time": it
        had no answer within the time limit.
    message : str
        One sentence.
    iterations : int
        Iterations used.
    cpu_ms : float, ms
        CPU time of a solve, median. In a scene the solver has solved the step before, as in a run. A file stands alone: there
        this is ``first_use_ms``.
    first_use_ms : float, ms
        CPU time of the first solve of a new solver (its kernels compiled), median.
    times_fastest : float
        ``cpu_ms`` over that of the fastest solver that converged on this problem.
    times_matvec : float
        ``cpu_ms`` over that of scipy's product A x, A in CSR (W x in the local form), measured in the same run.
    dynamics_residual, contact_residual : float
        True residuals of ``contact.metrics``; the local form has the latter only.
    row_residual : float
        That of joints, limits and motors; 0 where there are none.
    step_norm : float, m/s
        Last step length that the solver reports.
    penetration_mm : float, mm
        Largest penetration that the step adds: ``metrics.penetration_velocity`` times the time step.
    force_error : float
        |lam - lam*| / |lam*|, where * is the answer of :attr:`most_accurate`. Forces need not be unique.
    velocity_error : float
        |v - v*|_A / |v*|_A with |x|_A^2 = x^T A x.
    factorizations : float
        Factorizations that the solver reports; nan where it does not.
    natural_map : float, N
        papers/004: largest |lam - P_K(lam - uh)| of a contact, uh = u + (mu |u_t|, 0, 0). Its size depends on units.
    dual_residual : float, m/s
        papers/004: largest |uh - P_K*(uh)|, and over the largest |u|, where there is one, as ``dual_relative``.
    complementarity : float, W
        papers/004: largest |uh . lam|, and over the largest |u| |lam| as ``complementarity_relative``.
    most_accurate : str
        Solver whose larger residual is the smallest on this problem; empty when none has an answer.
    tolerance : float
        What the residuals had to keep.
    curve_ms, curve_residual : ndarray, (iterations,), ms and 1
        CPU time at the end of each iteration and the larger residual there, from the history of the solver. Only the total is
        measured: ``cpu_ms`` is split evenly over the iterations, after the stages before "iterate" where the solver times them.
    """

    problem: str
    contacts: int
    velocities: int
    solver: str
    status: BenchStatus
    message: str
    iterations: int = 0
    cpu_ms: float = math.nan
    first_use_ms: float = math.nan
    times_fastest: float = math.nan
    times_matvec: float = math.nan
    dynamics_residual: float = math.nan
    contact_residual: float = math.nan
    row_residual: float = math.nan
    step_norm: float = math.nan
    penetration_mm: float = math.nan
    force_error: float = math.nan
    velocity_error: float = math.nan
    factorizations: float = math.nan
    natural_map: float = math.nan
    dual_residual: float = math.nan
    dual_relative: float = math.nan
    complementarity: float = math.nan
    complementarity_relative: float = math.nan
    most_accurate: str = ""
    tolerance: float = math.nan
    curve_ms: np.ndarray = field(default_factory=lambda: np.zeros(0), repr=False)
    curve_residual: np.ndarray = field(default_factory=lambda: np.zeros(0), repr=False)

    @property
    def residual(self) -> float:
        """The larger of the two residuals, inf where there is no answer."""
        values = [value for value in (self.dynamics_residual, self.contact_residual) if math.isfinite(value)]
        return max(values, default=math.inf)


@dataclass(frozen=True)
class _Problem:
    """A problem in a sequence; one that is not ``shown`` is there because a solver meets it before the next one."""

    name: str
    path: Path
    file: FclibProblem
    warm_start: WarmStart | None = None
    shown: bool = True


@dataclass
class _Attempt:
    """What one solver did with one problem, so far."""

    solve: Solve | None = None
    status: BenchStatus = "refused"
    message: str = ""
    solution: Solution | None = None
    seconds: list[float] = field(default_factory=list)
    first_use: list[float] = field(default_factory=list)

    def end_over_time(self, limit: float | None) -> None:
        self.solve, self.solution, self.status = None, None, "over time"
        self.message = f"No answer within {limit:g} s of CPU time."

    def refuse(self, error: BaseException) -> None:
        status: BenchStatus = "not applicable" if isinstance(error, NotApplicableError) else "refused"
        self.solve, self.solution, self.status, self.message = None, None, status, f"{error}"


@naming_parameters
def bench(
    problems: Sequence[str | Path],
    solvers: Sequence[str] | None = None,
    *,
    tolerance: float = 1e-6,
    max_iterations: int | None = None,
    steps: Sequence[int] | None = None,
    parameters: dict[str, Any] | None = None,
    repeat: int = 3,
    time_limit: float | None = None,
    out: str | Path | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[BenchRow]:
    """Compare contact solvers on the same problems, from the same starting points.

    Each solver first solves all problems once, so that kernels are compiled, and is then timed by the CPU time of the process.
    (Threads that wait use CPU time too: set OMP_NUM_THREADS to 1 before Python starts, as the command does.) ``contact.metrics``
    judges its answers. The problems of a scene are those of a run solved by "auto", with its warm starts. A new solver gets them
    in order. Before a step whose predecessor is not among ``steps`` it also solves the predecessor, untimed, so that it can reuse
    factorizations as it would in a run.

    Parameters
    ----------
    problems : sequence of path
        FCLib files, folders of them, "small" for our own ones, scene files (.py) and names of scenes that come with femsim.
    solvers : sequence of str, optional
        Names in ``contact.SOLVERS``, each with options where wanted: ``"admm:every=1:penalty=0.3"``. Default all but "auto",
        which picks one of the others, and but presets of others.
    tolerance : float
        Tolerance of every solver, and what both residuals must keep.
    max_iterations : int, optional
        Iteration limit of every solver; default their own.
    steps : sequence of int, optional
        Steps of scenes, from 1. Default five, spread over the run.
    parameters : dict, optional
        Values for parameters of the scenes.
    repeat : int
        Solves of which the median time is taken.
    time_limit : float, s, optional
        CPU time of a solve; one that takes longer is "over time". Compiled code is not interrupted. Default: none.
    out : path, optional
        Folder to make, with ``bench.md`` (a page), ``bench.json`` (all numbers, curves, versions, machine), ``bench.csv`` (one
        line a row), ``problems.csv`` (traits of each problem), a convergence plot ``PROBLEM.png`` of each problem, and the
        performance profiles ``profile.csv``, ``solved.csv``, ``profile_iterations.png`` and ``profile_ms.png``
        (:mod:`femsim.studies.problems.profiles`). They are complete for the arguments that are done, also after an interrupt.
        Default: nothing is written.
    progress : callable, optional
        ``progress(done, total)`` after each solver that is done with an argument.

    Returns
    -------
    list of BenchRow
        One row per problem and solver, in their order.

    Raises
    ------
    InputError, ContactError
        No problem, an unknown solver, a file that is missing or cannot be read, steps outside the run, options for scenes
        without a scene, a value out of range, or a folder that exists or cannot be made.
    """
    options: dict[str, Any] = {"tolerance": tolerance, "max_iterations": max_iterations}
    entrants = read_entrants(solvers, options, _RUN_SOLVER)
    if repeat < 1:
        raise InputError(f"repeat is {repeat}; allowed are whole numbers from 1.")
    if time_limit is not None and not 0 < time_limit < math.inf:
        raise InputError(f"the time limit is {time_limit} s; allowed are positive numbers.")
    sources = _sources(problems, steps, parameters or {})
    folder = None if out is None else new_folder(Path(out))
    try:
        rows: list[BenchRow] = []
        known: dict[str, Traits] = {}
        for number, source in enumerate(sources):
            sequence = [source] if isinstance(source, _Problem) else _problems_of(*source)
            attempts: dict[str, list[_Attempt]] = {}
            for done, entrant in enumerate(entrants, 1):
                attempts[entrant.label] = _try_solver(entrant, sequence, repeat, time_limit, in_order=isinstance(source, tuple))
                if progress is not None:
                    progress(number * len(entrants) + done, len(sources) * len(entrants))
            for index, problem in enumerate(sequence):
                if problem.shown:
                    rows += _compare(problem, {label: found[index] for label, found in attempts.items()}, tolerance)
            if folder is not None:
                labels = [entrant.label for entrant in entrants]
                asked = {"repeat": repeat, "time_limit": time_limit, "parameters": parameters or {}, "solvers": labels}
                shown = {problem.name: problem.file.problem for problem in sequence if problem.shown}
                known |= {name: traits(problem) for name, problem in shown.items()}
                _write(folder, rows, options | asked, list(shown), known)
    except BaseException:  # no empty folder stays, also not after Ctrl-C
        if folder is not None:
            with suppress(OSError):  # it has results
                folder.rmdir()
        raise
    return rows


# ---------------------------------------------------------------------- what was asked for


def _sources(
    problems: Sequence[str | Path], steps: Sequence[int] | None, parameters: dict[str, Any]
) -> list[_Problem | tuple[str, Path, Scene, list[int]]]:
    """Read and build everything that was named, so that errors come before the first solve."""
    if not problems:
        raise InputError("no problem was named; give FCLib files (.hdf5) or scenes.")
    sources: list[_Problem | tuple[str, Path, Scene, list[int]]] = []
    names: list[str] = []
    scenes = {path.stem for path in list_scenes()}
    for path in expand_sets(problems, tuple(scenes)):
        count = names.count(path.stem)
        names.append(path.stem)
        name = path.stem if not count else f"{path.stem}-{count + 1}"
        if path.suffix == ".py" or (str(path) in scenes and not path.exists()):
            found = find_scene(path)
            scene = load_scene(found, **parameters)
            sources.append((name, found, scene, _chosen_steps(scene, found, steps)))
        elif str(path) in GENERATED and not path.exists():
            names.pop()
            for one, problem in GENERATED[str(path)]():
                sources.append(_Problem(f"{path}, {one}", path, FclibProblem(problem, 3)))
        elif not path.exists():
            beside = [str(file) for file in path.parent.glob("*") if file.suffix in (".hdf5", ".h5", ".py")]
            raise InputError(
                f"problem {str(path)!r} does not exist{did_you_mean(str(path), (*scenes, *SETS, *GENERATED, *beside))}"
            )
        else:
            sources.append(_Problem(name, path, read_fclib(path)))
    if not any(isinstance(source, tuple) for source in sources):
        for option, given in (("steps", steps is not None), ("parameters", bool(parameters))):
            if given:
                raise InputError(f"{option} are given, but only scenes have them; leave them out, or name a scene (.py).")
    return sources


def _chosen_steps(scene: Scene, path: Path, steps: Sequence[int] | None) -> list[int]:
    last = round(scene.duration / scene.dt)
    if steps is None:
        return sorted({max(1, round(last * part / _STEPS)) for part in range(1, _STEPS + 1)})
    wrong = [step for step in steps if not 1 <= step <= last]
    if wrong or not len(steps):
        said = f"step {wrong[0]} is not in the run of {path}" if wrong else f"no step of {path} is named"
        raise InputError(f"{said}; allowed are 1 to {last}, the last step.")
    return sorted(set(steps))


def new_folder(folder: Path) -> Path:
    """Make the folder of the results, or take an empty one."""
    if not is_free(folder):
        raise InputError(f"the output folder {folder} exists; choose another by --out.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"the output folder {folder} cannot be made ({error.strerror}); choose another by --out.") from error
    return folder


# ---------------------------------------------------------------------- problems of a scene


class _Keeper:
    """A solver that keeps copies of the problems of some steps, before the next step overwrites them."""

    def __init__(self, solver: Solver, steps: set[int]) -> None:
        self.solver, self.steps = solver, steps
        self.step, self.unconverged = 0, 0
        self.kept: dict[int, tuple[ContactProblem, WarmStart | None]] = {}

    def solve(self, problem: ContactProblem, warm_start: WarmStart | None = None) -> Solution:
        self.step += 1
        if self.step in self.steps:
            self.kept[self.step] = copy.deepcopy((problem, warm_start))
        solution = self.solver.solve(problem, warm_start)
        self.unconverged += not solution.converged
        return solution


def _problems_of(name: str, path: Path, scene: Scene, steps: list[int]) -> list[_Problem]:
    """Run a scene up to the last of some steps and return their problems, each after its predecessor."""
    asked = set(steps)
    keeper = _Keeper(make_solver(_RUN_SOLVER), asked | {step - 1 for step in asked})
    with scene_errors(path, "a function of the scene"):
        stepper = Stepper(scene, keeper)
        while keeper.step < steps[-1]:
            try:
                finite = stepper.step().finite
            except np.linalg.LinAlgError as error:
                raise InputError(f"{path}: step {keeper.step} of the run failed ({error}); correct the scene.") from error
            if not finite:
                raise InputError(f"{path}: step {keeper.step} of the run gave values that are not finite; correct the scene.")
    if keeper.unconverged:
        warnings.warn(
            f"{path}: {keeper.unconverged} of {keeper.step} steps of the run that gives the problems did not converge.",
            stacklevel=3,
        )
    return [
        _Problem(f"{name}, step {step}", path, FclibProblem(problem, 3), warm_start, step in asked)
        for step, (problem, warm_start) in sorted(keeper.kept.items())
    ]


# ---------------------------------------------------------------------- one solver


def _try_solver(
    entrant: Entrant, sequence: list[_Problem], repeat: int, time_limit: float | None, *, in_order: bool
) -> list[_Attempt]:
    """Warm a solver up, then time a new one on each problem, and one on all of them in order if asked for."""
    attempts = [_Attempt() for _ in sequence]
    name, options = entrant.name, entrant.options
    # with a limit only what needs to be compiled
    first = options if time_limit is None else {**options, "max_iterations": _WARM_UP}
    for problem, attempt in zip(sequence, attempts, strict=True):
        try:
            attempt.solve = solve_function(problem.file, name, problem.path)
        except ContactError as error:
            attempt.refuse(error)
        _timed(make_solver(name, **first), problem, attempt, None if time_limit is None else time_limit + _COMPILING)
    for _ in range(repeat):
        for problem, attempt in zip(sequence, attempts, strict=True):
            if problem.shown:
                attempt.first_use += _timed(make_solver(name, **options), problem, attempt, time_limit)
    for _ in range(repeat if in_order else 0):
        solver = make_solver(name, **options)
        for problem, attempt in zip(sequence, attempts, strict=True):
            attempt.seconds += _timed(solver, problem, attempt, time_limit)
    return attempts


def _timed(solver: Solver, problem: _Problem, attempt: _Attempt, time_limit: float | None) -> list[float]:
    """Solve a problem once and keep the answer; return the CPU time, s, or nothing when it was refused or over time."""
    if attempt.solve is None:
        return []
    started = time.process_time()
    try:
        with limited(time_limit):
            attempt.solution = attempt.solve(solver, problem.warm_start)
    except TimeoutError:
        attempt.end_over_time(time_limit)
        return []
    except _REFUSALS as error:
        attempt.refuse(error)
        return []
    spent = time.process_time() - started
    if time_limit is not None and spent > time_limit:
        attempt.end_over_time(time_limit)
        return []
    return [spent]


# ---------------------------------------------------------------------- all solvers on one problem


def _compare(problem: _Problem, attempts: dict[str, _Attempt], tolerance: float) -> list[BenchRow]:
    answers: dict[str, SolvedProblem] = {}
    rows: dict[str, BenchRow] = {}
    matvec = _matvec_ms(problem.file.problem)
    for name, attempt in attempts.items():
        if attempt.solution is not None:
            answers[name] = judge_answer(problem.file, attempt.solution, name, tolerance, problem.path)
        rows[name] = _row(problem, name, attempt, answers.get(name), tolerance, matvec)
    usable = [name for name in answers if rows[name].status != "failed"]
    if not usable:
        return list(rows.values())
    best = min(usable, key=lambda name: rows[name].residual)
    fastest = min((row.cpu_ms for row in rows.values() if row.status == "converged"), default=math.nan)
    for name in usable:
        force, velocity = _errors(problem.file.problem, answers[name], answers[best])
        rows[name] = replace(
            rows[name], times_fastest=rows[name].cpu_ms / max(fastest, 1e-6), force_error=force, velocity_error=velocity
        )
    return [replace(row, most_accurate=best) for row in rows.values()]


def _row(
    problem: _Problem, name: str, attempt: _Attempt, answer: SolvedProblem | None, tolerance: float, matvec: float
) -> BenchRow:
    """Fill the columns of one solver that need no other solver."""
    contact = problem.file.problem
    velocities = 0 if isinstance(contact, LocalProblem) else contact.n
    row = BenchRow(problem.name, contact.n_contacts, velocities, name, attempt.status, attempt.message, tolerance=tolerance)
    solution = attempt.solution
    if solution is None or answer is None:
        return row
    first_use = 1e3 * statistics.median(attempt.first_use)
    cpu = 1e3 * statistics.median(attempt.seconds) if attempt.seconds else first_use
    history = solution.history
    status: BenchStatus = "failed"
    metrics = answer.metrics.as_dict()
    if answer.status != "failed":
        residuals = [metrics.get(key, 0.0) for key in ("dynamics_residual", "contact_residual", "row_residual")]
        law = contact if isinstance(contact, LocalProblem) else contact.loaded(solution.row_forces)
        reached = max(residuals) <= tolerance and law_error(law, solution.v, solution.lam) <= tolerance
        status = "converged" if reached else "not converged"
    dt = 1.0 if isinstance(contact, LocalProblem) else contact.dt
    paper: dict[str, Any] = dict(paper_metrics(contact, solution.v, solution.lam))
    return replace(
        row,
        **paper,
        factorizations=float(solution.details.get("factorizations", math.nan)),
        status=status,
        message=solution.message,
        iterations=solution.iterations,
        cpu_ms=cpu,
        first_use_ms=first_use,
        times_matvec=cpu / matvec,
        dynamics_residual=metrics.get("dynamics_residual", math.nan),
        contact_residual=metrics["contact_residual"],
        row_residual=metrics.get("row_residual", math.nan),
        step_norm=float(history.step_norm[-1]) if len(history.step_norm) else math.nan,
        penetration_mm=abs(1e3 * dt * metrics["penetration_velocity"]),  # abs: of -0.0
        curve_ms=cpu * _elapsed(solution),
        curve_residual=np.maximum(history.dynamics, history.contact),
    )


def _elapsed(solution: Solution) -> np.ndarray:
    """Part of the time of a solve that has passed at the end of each iteration in its history."""
    n, spent = len(solution.history.contact), solution.timings
    before = sum(spent.values()) - spent["iterate"] if "iterate" in spent else 0.0
    start = before / max(sum(spent.values()), before, 1e-300)
    return start + (1.0 - start) * np.arange(1, n + 1) / max(n, 1)


def _errors(problem: ContactProblem | LocalProblem, answer: SolvedProblem, best: SolvedProblem) -> tuple[float, float]:
    """Errors of forces and, in the norm of A, of velocities, relative to the best answer; nan where that is zero."""
    size = float(np.linalg.norm(best.r))
    force = float(np.linalg.norm(answer.r - best.r)) / size if size else math.nan
    if isinstance(problem, LocalProblem) or answer.v is None or best.v is None:
        return force, math.nan
    difference, energy = answer.v - best.v, float(best.v @ (problem.A @ best.v))
    return force, math.sqrt(max(float(difference @ (problem.A @ difference)), 0.0) / energy) if energy > 0 else math.nan


def _matvec_ms(problem: ContactProblem | LocalProblem) -> float:
    """CPU time of scipy's CSR product with A, or with W where there is no A; median of samples."""
    A = sp.csr_matrix(problem.W if isinstance(problem, LocalProblem) else problem.A)
    x = np.ones(A.shape[1])
    inner = 1
    samples: list[float] = []
    while len(samples) < _SAMPLES:
        started = time.process_time()
        for _ in range(inner):
            A @ x
        spent = time.process_time() - started
        if spent < 0.5 * _SAMPLE:
            inner *= 2
        else:
            samples.append(1e3 * spent / inner)
    return statistics.median(samples)


# ---------------------------------------------------------------------- files


def write_rows(path: Path, rows: Sequence[BenchRow]) -> None:
    """Write a CSV file with a line of each row, without its curves."""
    columns = [f.name for f in fields(BenchRow) if not f.name.startswith("curve")]
    with write_errors(path, _ADVICE), replacing(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(columns)
        writer.writerows([_cell(getattr(row, name)) for name in columns] for row in rows)


def _write(folder: Path, rows: list[BenchRow], settings: dict[str, Any], fresh: list[str], known: dict[str, Traits]) -> None:
    """Write all rows so far, traits of their problems, and the plots of the problems that are new."""
    write_rows(folder / "bench.csv", rows)
    content = {
        "settings": settings,
        "versions": versions(),
        "machine": machine() | {"threads": os.environ.get("OMP_NUM_THREADS", "not set")},
        "time": "CPU time of the process, ms",
        "rows": [{f.name: _plain(getattr(row, f.name)) for f in fields(BenchRow)} for row in rows],
    }
    write_json(folder / "bench.json", content)
    write_profiles(folder, rows, settings["tolerance"], known)
    for name in fresh:
        curves = {
            row.solver: (row.curve_ms, row.curve_residual) for row in rows if row.problem == name and len(row.curve_residual)
        }
        if curves:
            path = folder / f"{name.replace(', step ', '_step_')}.png"
            plot_convergence(curves, path, title=name, tolerance=settings["tolerance"])


def _cell(value: Any) -> Any:
    """Write a number with as many digits as it deserves; empty where there is none."""
    if isinstance(value, float):
        return f"{value:.6g}" if math.isfinite(value) else ""
    return value


def _plain(value: Any) -> Any:
    """Make a value fit for JSON, which has no nan; points of curves keep six digits."""
    if isinstance(value, np.ndarray):
        return [float(f"{x:.6g}") if math.isfinite(x) else None for x in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value

"""Randomised trials of a scene of papers/001 section V: every solver on some steps of runs that are solved exactly.

Each trial draws the parameters that the paper draws, from its ranges. Our solver ``auto`` runs the scene to 1e-8; some steps,
drawn from the whole run, are solved again by the others from the warm start of that run, so that errors of one step do not go
into the next (in the paper each solver drives a run of its own). Trial 0 has the parameters of the experiment, or the middle of
the ranges; it is not among the means, and gives the curves of the figures.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from contact import Solver, make_solver
from contact.solvers.auto import conditioning
from femsim.model.bodies import kinds
from femsim.scene.scene import Scene
from femsim.studies.reproduction.measuring import (
    Gauge,
    Raw,
    Settings,
    Step,
    first_below,
    follow,
    limited,
    row_of,
    run_row,
    solve,
    spread,
)

#: Stopping rules: the paper's step norm, and true residuals at most ``RESIDUAL``.
STEP_RULE, RESIDUAL_RULE = "step", "residual"
RESIDUAL, REFERENCE = 1e-5, 1e-8
#: Numbers of iterations of Table VII.
FIXED = (50, 100)
#: Options of COND in Table IX.
VARIANTS: dict[str, dict[str, Any]] = {"plain": {"chebyshev": False}, "Barzilai-Borwein": {"step": "barzilai-borwein"}}
COND_LIMIT = 5000


@dataclass(frozen=True)
class Study:
    """What is tried.

    Attributes
    ----------
    name : str
        Of the scene, in what is said.
    scene : callable
        Builds the scene from parameters.
    ranges : mapping
        Least and largest value of each parameter that is drawn.
    threshold : float, m/s
        Step norm at which the paper stops.
    gauge : callable
        Gives the gauge of errors for a scene.
    axes : bool
        Whether the gauge is one force, whose components are drawn; else its norm is.
    trials, samples, dense : int
        Randomised trials, steps sampled in each, and steps sampled in trial 0.
    steps : int
        Steps of a run.
    dual_limit : int
        Largest number of iterations of PGS and APGD.
    splitting : bool
        Whether fixed numbers of iterations of COND and CCS are measured too (Table VII).
    driver : (str, float)
        Solver that runs the scene, and its tolerance. A coarser one than the default is for scenes that take long: the sampled
        steps then have an answer of ``auto`` to ``REFERENCE`` apart.
    """

    name: str
    scene: Callable[..., Scene]
    ranges: Mapping[str, tuple[float, float]]
    threshold: float
    gauge: Callable[[Scene], Gauge]
    axes: bool
    trials: int
    samples: int
    dense: int
    steps: int
    dual_limit: int
    splitting: bool = False
    driver: tuple[str, float] = ("auto", REFERENCE)

    def value(self, force: np.ndarray) -> float | list[float]:
        """Return what is drawn of a gauge."""
        return force.tolist() if self.axes else float(np.linalg.norm(force))

    def make_driver(self) -> Solver:
        """Return the solver that runs the scene."""
        name, tolerance = self.driver
        return make_solver(name, tolerance=tolerance)


@dataclass
class _Trial:
    """What a trial gave: rows of solvers on samples, and series over the steps of the run."""

    rows: list[Raw] = field(default_factory=list)
    series: dict[str, list[Any]] = field(
        default_factory=lambda: {
            key: [] for key in ("time", "gauge", "penetration", "dynamics_ms", "solver_ms", "iterations", "converged", "picked")
        }
    )


class _Solvers:
    """The solvers of a trial; each keeps what it knows of the pattern of A."""

    def __init__(self, study: Study) -> None:
        self.study = study
        limits = {"cond": COND_LIMIT, "pgs": study.dual_limit, "apgd": study.dual_limit}
        self.to_residual = {name: make_solver(name, tolerance=RESIDUAL, max_iterations=limit) for name, limit in limits.items()}
        self.stopped = {name: make_solver(name, tolerance=1e-14) for name in limits}
        self.variants = {
            name: make_solver("cond", tolerance=RESIDUAL, max_iterations=COND_LIMIT, **options)
            for name, options in VARIANTS.items()
        }
        self.fixed: dict[tuple[str, int], Solver] = {
            (name, limit): make_solver(name, tolerance=1e-14, max_iterations=limit)
            for name in (("cond", "ccs") if study.splitting else ())
            for limit in FIXED
        }

        self.exact = make_solver("auto", tolerance=REFERENCE)

    def exactly(self, step: Step) -> Step:
        """Return the step with the answer that errors are measured against."""
        if self.study.driver[1] <= REFERENCE:
            return step
        solution, seconds = solve(self.exact, step)
        return replace(step, solution=solution, seconds=seconds)

    def measure(self, step: Step, gauge: Gauge) -> list[Raw]:
        """Solve a step, whose own answer is the reference, by all of them."""
        rows: list[Raw] = []

        common = {"step": step.number, "time": step.report.time, "conditioning": conditioning(step.problem)}

        def add(solver: str, stop: str, values: Raw) -> None:
            rows.append(common | {"solver": solver, "stop": stop} | values)

        for name, solver in self.to_residual.items():
            solution, seconds = solve(solver, step)
            add(name, RESIDUAL_RULE, asdict(row_of(step, solution, seconds, gauge)))
            enough = first_below(solution.history.step_norm, self.study.threshold)
            if enough < solution.iterations:  # else the answer is the same
                solution, seconds = solve(limited(self.stopped[name], enough), step)
            value = {"gauge": self.study.value(gauge(step, solution))}
            add(name, STEP_RULE, value | asdict(row_of(step, solution, seconds, gauge)))
        for name, solver in self.variants.items():
            solution, _ = solve(solver, step)
            add(name, RESIDUAL_RULE, {"iterations": solution.iterations, "converged": float(solution.converged)})
            add(name, STEP_RULE, {"iterations": first_below(solution.history.step_norm, self.study.threshold)})
        for (name, limit), solver in self.fixed.items():
            add(name, f"{limit} iterations", asdict(run_row(solver, step, gauge)))
        add("auto", RESIDUAL_RULE, asdict(row_of(step, step.solution, step.seconds, gauge)))
        return rows


def _run(study: Study, parameters: Mapping[str, float], chosen: Sequence[int], last: int) -> _Trial:
    """Run a scene to a step, and solve the chosen ones by every solver."""
    scene = study.scene(**parameters)
    gauge, solvers, trial = study.gauge(scene), _Solvers(study), _Trial()
    for step in follow(scene, study.make_driver(), last):
        if step.number in chosen:
            trial.rows += solvers.measure(solvers.exactly(step), gauge)
        solution = step.solution
        values = {
            "time": step.report.time,
            "gauge": study.value(gauge(step, solution)),
            "penetration": 1e3 * step.report.max_penetration,
            "dynamics_ms": 1e3 * step.dynamics_seconds,
            "solver_ms": 1e3 * step.seconds,
            "iterations": solution.iterations,
            "converged": bool(solution.converged),
            "picked": str(solution.details.get("picked", study.driver[0])),
        }
        for key, value in values.items():
            trial.series[key].append(value)
    return trial


def draw_steps(rng: np.random.Generator, last: int, trials: int, samples: int) -> list[list[int]]:
    """Draw for each trial as many steps; all together they are spread over the run, one in each of as many equal parts.

    Parameters
    ----------
    rng : Generator
        Source of chance.
    last : int
        Steps of a run.
    trials, samples : int
        How many, and steps in each.

    Returns
    -------
    list of list of int
        Sorted steps from 1, by trial.
    """
    count = trials * samples
    edges = np.linspace(0.0, last, count + 1)
    drawn = np.minimum(np.floor(rng.uniform(edges[:-1], edges[1:])).astype(int) + 1, last)
    return [sorted(int(step) for step in part) for part in rng.permutation(drawn).reshape(trials, samples)]


def run_trials(study: Study, settings: Settings) -> Raw:
    """Run trial 0 and the randomised ones.

    Returns
    -------
    dict
        ``rows`` (a list of dicts: trial, parameters' number, step, solver, stop and the fields of
        ``measuring.Row``), ``drawn`` (parameters by trial), ``reference`` (means and counts over the
        steps of the randomised runs), ``curves`` and ``dense`` (series and rows of trial 0).
    """
    rng = np.random.default_rng(5)
    settings.say(f"{study.name}: the run of the figures")
    compiled = _Solvers(study)
    for step in follow(study.scene(), study.make_driver(), 2):  # compile, so that no figure has it
        compiled.measure(compiled.exactly(step), study.gauge(step.stepper.scene))
    nominal = _run(study, {}, spread(max(1, study.steps // study.dense), study.steps, study.dense), study.steps)
    rows: list[Raw] = []
    drawn: list[dict[str, float]] = []
    series: dict[str, list[Any]] = {}
    for trial, chosen in enumerate(draw_steps(rng, study.steps, study.trials, study.samples), start=1):
        settings.say(f"{study.name}: trial {trial} of {study.trials}, {chosen[-1]} steps")
        drawn.append({name: float(rng.uniform(*limits)) for name, limits in study.ranges.items()})
        found = _run(study, drawn[-1], chosen, chosen[-1])
        rows += [{"trial": trial} | row for row in found.rows]
        for key, values in found.series.items():
            series.setdefault(key, []).extend(values)
    return {
        "rows": rows,
        "drawn": drawn,
        "reference": _summary(series),
        "nominal": _summary(nominal.series),
        "curves": {key: _rounded(nominal.series[key]) for key in ("time", "gauge", "penetration")},
        "dense": nominal.rows,
        "threshold": study.threshold,
        "axes": study.axes,
        "driver": study.driver,
        "mesh": mesh_size(study.scene()),
    }


def mesh_size(scene: Scene) -> str:
    """Say how fine the soft bodies and rods of a scene are."""
    soft, rods = kinds.soft_bodies(scene.bodies), kinds.rods(scene.bodies)
    if rods:
        return f"{sum(rod.n_links for rod in rods)} links"
    many = f" in {len(soft)} bodies" if len(soft) > 1 else ""
    return f"{sum(body.n_nodes for body in soft)} nodes, {sum(len(body.tets) for body in soft)} tetrahedra{many}"


def _summary(series: Mapping[str, list[Any]]) -> Raw:
    """Means over steps, and how many converged."""
    picked = sorted(set(series["picked"]))
    return {
        "steps": len(series["time"]),
        "converged": sum(series["converged"]),
        "dynamics_ms": statistics.fmean(series["dynamics_ms"]),
        "solver_ms": statistics.fmean(series["solver_ms"]),
        "solver_ms_median": statistics.median(series["solver_ms"]),
        "iterations": statistics.fmean(series["iterations"]),
        "penetration": statistics.fmean(series["penetration"]),
        "largest_penetration": max(series["penetration"]),
        "picked": {name: series["picked"].count(name) for name in picked},
    }


def _rounded(values: list[Any]) -> list[Any]:
    """At most about 600 values of a series, to six digits, as a file of curves wants them."""
    values = values[:: max(1, len(values) // 600)]
    return [[float(f"{x:.6g}") for x in value] if isinstance(value, list) else float(f"{value:.6g}") for value in values]


# ---------------------------------------------------------------------- what is read from it


def chosen_rows(rows: Sequence[Raw], solver: str, stop: str) -> list[Raw]:
    """Rows of a solver under a stopping rule."""
    return [row for row in rows if row["solver"] == solver and row["stop"] == stop]


def average(rows: Sequence[Raw], solver: str, stop: str, name: str) -> float:
    """Mean of a column; nan where there are no rows."""
    found = [row[name] for row in chosen_rows(rows, solver, stop)]
    return statistics.fmean(found) if found else float("nan")


def missed(rows: Sequence[Raw], solver: str, stop: str) -> int:
    """How many did not converge."""
    return sum(not row["converged"] for row in chosen_rows(rows, solver, stop))

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
from pathlib import Path
from typing import Any

import numpy as np

from contact import Solver, make_solver
from contact.solvers.auto import conditioning
from femsim.model.bodies.rod import Rod
from femsim.model.bodies.soft import SoftBody
from femsim.scene.scene import Scene
from femsim.studies.reproduction.measuring import (
    Gauge,
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
from femsim.studies.reproduction.text import markdown, number, percent, picture, short, times

Raw = dict[str, Any]
#: The paper's figures by solver: penetration mm, error, solver time ms, iterations, part of the time for assembly.
Paper = Mapping[str, tuple[float, float, float, float, str]]

#: Stopping rules: the paper's step norm, and true residuals at most ``RESIDUAL``.
STEP_RULE, RESIDUAL_RULE = "step", "residual"
RESIDUAL, REFERENCE = 1e-5, 1e-8
#: Numbers of iterations of Table VII.
FIXED = (50, 100)
#: Options of COND in Table IX.
VARIANTS: dict[str, dict[str, Any]] = {"plain": {"chebyshev": False}, "Barzilai-Borwein": {"step": "barzilai-borwein"}}
COND_LIMIT = 5000
#: Least penetration that is drawn, mm, and markers of the solvers.
FLOOR, MARKERS = 1e-12, {"cond": "o", "pgs": "s", "apgd": "^"}


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
    soft = [body for body in scene.bodies if isinstance(body, SoftBody)]
    rods = [body for body in scene.bodies if isinstance(body, Rod)]
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


def rule(stop: str, threshold: float) -> str:
    """Name of a stopping rule for a reader."""
    return {STEP_RULE: f"step < {threshold:.0e}", RESIDUAL_RULE: f"residual {RESIDUAL:.0e}"}.get(stop, stop)


def solver_table(raw: Raw, unit: str, factor: float, paper: Paper) -> str:
    """Table of the solvers as in Tables II, III, V and VI.

    Parameters
    ----------
    raw : dict
        Of :func:`run_trials`.
    unit : str
        Unit of the gauge's errors.
    factor : float
        From N to that unit.
    paper : mapping
        The paper's figures by solver.
    """
    lines = []
    rows = raw["rows"]
    for solver in ("cond", "pgs", "apgd"):
        for stop in (STEP_RULE, RESIDUAL_RULE):
            count = len(chosen_rows(rows, solver, stop))
            lines.append(
                [
                    solver,
                    rule(stop, raw["threshold"]),
                    f"{count - missed(rows, solver, stop)}/{count}" if stop == RESIDUAL_RULE else "-",
                    number(average(rows, solver, stop, "iterations")),
                    f"{number(average(rows, solver, stop, 'ms'))} ({short(average(rows, solver, stop, 'assembly_ms'))})",
                    short(average(rows, solver, stop, "penetration")),
                    f"{number(factor * average(rows, solver, stop, 'norm_error'))} / "
                    f"{number(factor * average(rows, solver, stop, 'error'))}",
                    percent(average(rows, solver, stop, "relative_error")),
                    f"{short(average(rows, solver, stop, 'dynamics'))}; {short(average(rows, solver, stop, 'contact'))}",
                    "{:g}; {:g}; {:g}{}; {:g}".format(*(paper[solver][k] for k in (0, 1, 2, 4, 3))) if stop == STEP_RULE else "-",
                ]
            )
    exact = chosen_rows(rows, "auto", RESIDUAL_RULE)
    lines.append(
        [
            "auto",
            f"residual {REFERENCE:.0e}",
            f"{sum(row['converged'] for row in exact):.0f}/{len(exact)}",
            number(average(rows, "auto", RESIDUAL_RULE, "iterations")),
            number(average(rows, "auto", RESIDUAL_RULE, "ms")),
            short(average(rows, "auto", RESIDUAL_RULE, "penetration")),
            "reference",
            "-",
            f"{short(average(rows, 'auto', RESIDUAL_RULE, 'dynamics'))}; "
            f"{short(average(rows, 'auto', RESIDUAL_RULE, 'contact'))}",
            "-",
        ]
    )
    header = [
        "solver", "stop", "converged", "iterations", "solver CPU ms (assembly)", "penetration mm",
        f"error {unit}: of the norm / norm of the error", "relative", "dynamics; contact residual", "paper: MP; error; ST; IN",
    ]  # fmt: skip
    return markdown(header, lines)


def trials_sentence(raw: Raw, what: str) -> str:
    """Say how many trials and samples there are, what was drawn, and how the runs went."""
    drawn, reference = raw["drawn"], raw["reference"]
    ranges = ", ".join(
        f"{name} {short(min(values))} to {short(max(values))}"
        for name in drawn[0]
        for values in [[trial[name] for trial in drawn]]
    )
    samples = len(chosen_rows(raw["rows"], "cond", STEP_RULE))
    picked = ", ".join(f"{name} in {count}" for name, count in reference["picked"].items())
    driver, tolerance = raw["driver"]
    return (
        f"{len(drawn)} randomised trials (drawn: {ranges}) of {what}, each run by `{driver}` to {tolerance:.0e} up to the last "
        f"step sampled in it: {reference['steps']} steps, of which {reference['converged']} converged (solver: {picked}), "
        f"{number(reference['dynamics_ms'])} ms for assembly and detection (DT) and {number(reference['solver_ms'])} ms for the "
        f"solver a step, largest penetration {short(reference['largest_penetration'])} mm. {samples} steps, spread over the "
        "run, are solved again by the others, and means are over these."
    )


def draw_curves(raw: Raw, path: Path, label: str) -> None:
    """Draw penetration and gauge of trial 0 over time, with what the solvers stopped by their step say."""
    curves = raw["curves"]
    values = np.array(curves["gauge"])
    columns = [values[:, k] for k in range(3)] if raw["axes"] else [values]
    labels = [f"{label}, {axis}" for axis in "xyz"] if raw["axes"] else [label]
    with picture(path, 1 + len(columns)) as axes:
        axes[0].plot(curves["time"], np.maximum(curves["penetration"], FLOOR), "k-", lw=1.0, label="the run, end of step")
        for axis, column, text in zip(axes[1:], columns, labels, strict=True):
            axis.plot(curves["time"], column, "k-", lw=1.0, label="the run")
            axis.set(xlabel="time [s]", ylabel=text)
        for solver, marker in MARKERS.items():
            found = chosen_rows(raw["dense"], solver, STEP_RULE)
            when = [row["time"] for row in found]
            style = {"linestyle": "", "marker": marker, "markersize": 4, "fillstyle": "none", "label": solver}
            axes[0].plot(when, [max(row["penetration"], FLOOR) for row in found], **style)
            for k, axis in enumerate(axes[1:]):
                axis.plot(when, [row["gauge"][k] if raw["axes"] else row["gauge"] for row in found], **style)
        axes[0].set(xlabel="time [s]", ylabel="penetration [mm]", yscale="log")
        axes[0].legend(fontsize=6)
        axes[1].legend(fontsize=6)


def common_text(raw: Raw, paper: Paper) -> list[str]:
    """Sentences for each of the scenes."""
    rows = raw["rows"]
    ms = {name: average(rows, name, STEP_RULE, "ms") for name in ("cond", "pgs", "apgd")}
    same = {name: average(rows, name, RESIDUAL_RULE, "ms") for name in ms}
    counts = {name: average(rows, name, STEP_RULE, "iterations") for name in ms}
    penetration = {name: average(rows, name, STEP_RULE, "penetration") for name in ms}
    relative = {name: average(rows, name, STEP_RULE, "relative_error") for name in ms}
    auto = average(rows, "auto", RESIDUAL_RULE, "ms")
    failed = {name: missed(rows, name, RESIDUAL_RULE) for name in ms}
    count = len(chosen_rows(rows, "cond", RESIDUAL_RULE))
    order = sorted(penetration, key=lambda name: penetration[name])
    assembly, published_assembly = average(rows, "pgs", STEP_RULE, "assembly_ms"), paper["pgs"][4].strip(" ()")
    kappa = statistics.median(row["conditioning"] for row in chosen_rows(rows, "cond", STEP_RULE))
    published = {name: paper[name][2] / paper["cond"][2] for name in ("pgs", "apgd")}
    here = {name: ms[name] / ms["cond"] for name in published}
    claims = {
        "COND is the fastest by its stop": min(here.values()) > 1.0,
        f"it is {min(published.values()):.0f} times as fast or more": min(here.values()) >= min(published.values()),
        "COND needs the fewest iterations": counts["cond"] <= min(counts["pgs"], counts["apgd"]),
        "COND penetrates least": order[0] == "cond",
    }
    if paper["cond"][1] > 1.1 * paper["apgd"][1]:
        claims["COND has a larger error than APGD"] = relative["cond"] > relative["apgd"]
    holds, fails = ([claim for claim, true in claims.items() if true is wanted] for wanted in (True, False))
    sentences = [
        f"Of what the paper says of this scene, this holds here: {'; '.join(holds) or 'nothing'}. This does not: "
        f"{'; '.join(fails) or 'nothing'}.",
        f"Time, by the paper's stop: PGS takes {times(ms['pgs'] / ms['cond'])} and APGD {times(ms['apgd'] / ms['cond'])} as "
        f"long as COND (paper: {paper['pgs'][2] / paper['cond'][2]:.0f} and {paper['apgd'][2] / paper['cond'][2]:.0f} times); "
        f"to the same true residual of {RESIDUAL:.0e} {times(same['pgs'] / same['cond'])} and "
        f"{times(same['apgd'] / same['cond'])}. `auto` takes {number(auto)} ms to {REFERENCE:.0e}, {times(auto / ms['cond'])} "
        "the time of COND by the paper's stop.",
        f"Why the times differ: PGS spends {number(assembly)} ms on factorization and W (paper: {published_assembly} ms), which "
        "the Schur complement of MKL Pardiso gives here instead of one solve a contact row; the paper's COND runs on four cores.",
        f"Conditioning of A, which decides how many iterations COND needs: {number(kappa)} in the median of these steps, by the "
        "estimate that `auto` uses. The sizes, densities and damping that enter it are ours where the paper gives none.",
        f"Iterations by the paper's stop: COND {number(counts['cond'])}, PGS {number(counts['pgs'])}, APGD "
        f"{number(counts['apgd'])} (paper: {paper['cond'][3]:g}, {paper['pgs'][3]:g}, {paper['apgd'][3]:g}). What the step norm "
        f"leaves of error, relative: COND {percent(relative['cond'])}, PGS {percent(relative['pgs'])}, APGD "
        f"{percent(relative['apgd'])}.",
        f"Penetration, from least to most: {', '.join(f'{name} {short(penetration[name])} mm' for name in order)} (paper: COND "
        f"{paper['cond'][0]:g}, PGS {paper['pgs'][0]:g}, APGD {paper['apgd'][0]:g}).",
    ]
    if any(failed.values()):
        said = ", ".join(f"{name} {number} of {count}" for name, number in failed.items() if number)
        sentences.append(f"Not at the residual {RESIDUAL:.0e} within the limit of iterations: {said}; their times end there.")
    return sentences


def acceleration_lines(name: str, raw: Raw, paper: str) -> list[list[str]]:
    """Lines of Table IX for a scene."""
    rows, lines = raw["rows"], []
    for stop in (STEP_RULE, RESIDUAL_RULE):
        cells = []
        for variant in ("plain", "cond", "Barzilai-Borwein"):
            count = len(chosen_rows(rows, variant, stop))
            failed = missed(rows, variant, stop) if stop == RESIDUAL_RULE else 0
            cells.append(
                number(average(rows, variant, stop, "iterations")) + (f" ({failed} of {count} not converged)" if failed else "")
            )
        lines.append([name, rule(stop, raw["threshold"]), *cells, paper if stop == STEP_RULE else "-"])
    return lines

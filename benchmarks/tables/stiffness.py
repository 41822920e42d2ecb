"""Tables III and IV of papers/001: the gripped ball at three stiffnesses, stopped by step norm and by true residual."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from benchmarks.tables.common import (
    Row,
    Settings,
    first_below,
    follow,
    limited,
    markdown,
    mean,
    nodal_rows,
    number,
    percent,
    reference_solver,
    row_of,
    run_row,
    short,
    solve,
    spread,
    warm_up,
)
from contact.solvers import Solver, make_solver

MODULI = (1e5, 1e6, 1e7)
SOLVERS = ("cond", "pgs", "apgd", "ccs")
#: Step norms, m/s, at which the paper's rule stops: 1e-4 in most of its scenes, 1e-5 for the ball.
STEP_NORMS = (1e-4, 1e-5)
TOLERANCE = 1e-5
#: Iterations that the paper's Table III has on average.
FIXED = 38
#: Iterations among which the first small step is searched.
SEARCH = {"cond": 3000, "pgs": 1000, "apgd": 1000, "ccs": 1000}
EXACT_TOLERANCES = (1e-5, 1e-8)
#: Papers/001 Table III: penetration mm, internal force error N, solver time ms (assembly), iterations.
PAPER_III = {
    "cond": ("0.0058", "0.156", "8.46", "37.5"),
    "pgs": ("1.99", "0.319", "805 (624)", "234"),
    "apgd": ("0.233", "0.124", "677 (626)", "100"),
}
#: Papers/001 Table IV: iterations at 0.1, 1 and 10 MPa.
PAPER_IV = {"cond": ("39.7", "37.9", "35.0"), "pgs": ("146", "224", "307"), "apgd": ("48", "101", "201")}

Key = tuple[str, str]


def rule(threshold: float) -> str:
    """Name of a stop by step norm."""
    return f"step < {threshold:.0e}"


RESIDUAL_RULE, FIXED_RULE = f"residual {TOLERANCE:.0e}", f"{FIXED} iterations"


def rules(name: str) -> list[str]:
    """Stopping rules that a solver is measured with, in the order of the tables."""
    return [*([FIXED_RULE] if name == "cond" else []), *map(rule, STEP_NORMS), RESIDUAL_RULE]


def _measure(settings: Settings, young_modulus: float) -> dict[Key, list[Row]]:
    """Rows by solver and stopping rule over steps that are spread over the run."""
    scene = settings.ball(young_modulus)
    last = settings.some(round(scene.duration / scene.dt), 12)
    chosen = set(spread(1 + last // 20, last, settings.some(25, 3)))
    rows: dict[Key, list[Row]] = defaultdict(list)
    exact = {t: make_solver("exact", tolerance=t) for t in EXACT_TOLERANCES}
    to_residual = {name: make_solver(name, tolerance=TOLERANCE) for name in SOLVERS}
    searching: dict[str, Solver] = {
        name: make_solver(name, tolerance=1e-12, max_iterations=settings.some(SEARCH[name], 200)) for name in SOLVERS
    }
    # one for each rule: a solver that met the same A a moment ago would have its analysis for nothing
    stopped = {(name, r): make_solver(name, tolerance=1e-14) for name in SOLVERS for r in rules(name) if r != RESIDUAL_RULE}
    for step in follow(scene, reference_solver(), last):
        if step.number == 1:
            warm_up([*exact.values(), *to_residual.values(), *stopped.values()], step)
        for tolerance, solver in exact.items():  # in every step, so that its factorization is as old as in a run
            row = run_row(solver, step)
            if step.number in chosen:
                rows["exact", f"residual {tolerance:.0e}"].append(row)
        if step.number not in chosen:
            continue
        rows["exact", "reference"].append(row_of(step.problem, step.solution, step.solution, step.seconds))
        for name in SOLVERS:
            rows[name, RESIDUAL_RULE].append(run_row(to_residual[name], step))
            found, _ = solve(searching[name], step)
            enough = {rule(threshold): first_below(found.history.step_norm, threshold) for threshold in STEP_NORMS}
            for (solver_name, stop), fixed in stopped.items():
                if solver_name == name:
                    rows[name, stop].append(run_row(limited(fixed, enough.get(stop, FIXED)), step))
    return rows


def _errors(values: list[Row]) -> str:
    """Mean and largest relative error of the forces."""
    return f"{percent(mean(values, 'relative_error'))} / {percent(max(v.relative_error for v in values))}"


def _table_iii(rows: dict[Key, list[Row]]) -> str:
    lines = []
    keys = [(name, r) for name in SOLVERS for r in rules(name)]
    keys += [("exact", f"residual {t:.0e}") for t in EXACT_TOLERANCES]
    for name, stop in keys:
        values = rows[name, stop]
        paper = PAPER_III.get(name) if stop == rule(STEP_NORMS[-1]) else None
        lines.append(
            [
                name,
                stop,
                number(mean(values, "iterations")),
                f"{number(mean(values, 'ms'))} ({short(mean(values, 'assembly_ms'))})",
                short(mean(values, "penetration")),
                f"{short(mean(values, 'force_error'))} ({_errors(values)})",
                short(mean(values, "dynamics")),
                short(mean(values, "contact")),
                f"{sum(v.converged for v in values):.0f}/{len(values)}" if stop.startswith("residual") else "-",
                f"{paper[3]}; {paper[2]}; {paper[0]}; {paper[1]}" if paper else "-",
            ]
        )
    header = [
        "solver", "stop", "iterations", "CPU ms (assembly)", "penetration mm", "force error N", "dynamics", "contact",
        "converged", "paper: its; ms; mm; N",
    ]  # fmt: skip
    return markdown(header, lines)


def _table_iv(rows: dict[float, dict[Key, list[Row]]]) -> str:
    lines = []
    for name in SOLVERS:
        for stop in rules(name):
            cells = []
            for modulus in MODULI:
                values = rows[modulus][name, stop]
                failed = len(values) - sum(v.converged for v in values)
                note = f" ({failed:.0f} not converged)" if failed and stop == RESIDUAL_RULE else ""
                cells.append(
                    f"{number(mean(values, 'iterations'))}; {short(max(v.residual for v in values))}; {_errors(values)}{note}"
                )
            paper = " / ".join(PAPER_IV[name]) if stop == rule(STEP_NORMS[-1]) and name in PAPER_IV else "-"
            lines.append([name, stop, *cells, paper])
    for tolerance in EXACT_TOLERANCES:
        stop = f"residual {tolerance:.0e}"
        cells = []
        for modulus in MODULI:
            values = rows[modulus]["exact", stop]
            cells.append(
                f"{number(mean(values, 'iterations'))}; {short(max(v.residual for v in values))}; "
                f"{_errors(values)}; {number(mean(values, 'ms'))} ms"
            )
        lines.append(["exact", stop, *cells, "-"])
    return markdown(["solver", "stop", *(f"{m / 1e6:g} MPa" for m in MODULI), "paper: iterations"], lines)


def _trace(settings: Settings, young_modulus: float, solver: Solver) -> tuple[np.ndarray, np.ndarray, list[float], int]:
    """Run the scene; forces on the nodes and their velocities, (steps, n) each, last step norms, and steps that converged."""
    scene = settings.ball(young_modulus)
    forces, velocities, norms, converged = [], [], [], 0
    for step in follow(scene, solver, settings.some(round(scene.duration / scene.dt), 12)):
        nodes = nodal_rows(step.problem)
        forces.append((step.problem.J.T @ step.solution.lam.ravel())[nodes])
        velocities.append(step.solution.v[nodes])
        norms.append(float(step.solution.history.step_norm[-1]))
        converged += step.solution.converged
    return np.array(forces), np.array(velocities), norms, converged


def _table_runs(settings: Settings) -> str:
    """Whole runs by COND in which errors feed the next step, beside a run that is solved exactly."""
    lines = []
    for modulus in MODULI:
        expected, true_velocities, _, _ = _trace(settings, modulus, reference_solver())
        variants = {FIXED_RULE: {"tolerance": 1e-14, "max_iterations": FIXED}, RESIDUAL_RULE: {"tolerance": TOLERANCE}}
        for stop, options in variants.items():
            forces, velocities, norms, converged = _trace(settings, modulus, make_solver("cond", **options))
            size = np.linalg.norm(expected, axis=1)
            wrong = np.linalg.norm(forces - expected, axis=1) / size.mean()
            # backward Euler: what a node has moved is the sum of dt v
            moved = settings.ball(modulus).dt * np.cumsum(velocities - true_velocities, axis=0).reshape(len(size), -1, 3)
            lines.append(
                [
                    f"{modulus / 1e6:g} MPa",
                    stop,
                    "-" if stop == FIXED_RULE else f"{converged}/{len(size)}",
                    f"{short(float(np.median(norms)))} / {short(max(norms))}",
                    f"{percent(float(wrong.mean()))} / {percent(float(wrong.max()))}",
                    short(1e3 * float(np.linalg.norm(moved, axis=2).max())),
                ]
            )
    header = [
        "ball", "COND stops at", "converged", "step norm m/s, median / largest", "force error, mean / largest",
        "worst node off by mm",
    ]  # fmt: skip
    return markdown(header, lines)


def make(settings: Settings) -> dict[str, str]:
    """Make both tables, and that of whole runs."""
    rows = {modulus: _measure(settings, modulus) for modulus in MODULI}
    return {"III": _table_iii(rows[1e6]), "IV": _table_iv(rows), "IV-runs": _table_runs(settings)}

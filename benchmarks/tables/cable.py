"""Tables V and VIII of papers/001: the cable winding by COND, its rivals, exact solvers and position-based dynamics."""

from __future__ import annotations

import statistics
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import femsim as fs
from benchmarks.bench_step import CpuStepper
from benchmarks.tables.common import (
    ROOT,
    Row,
    Settings,
    first_below,
    follow,
    limited,
    markdown,
    mean,
    number,
    picture,
    row_of,
    short,
    spread,
)
from contact import ContactError, ContactProblem, Solution, Solver, WarmStart, make_solver
from femsim.bodies.body import StepSettings
from femsim.bodies.rod import Rod

SCENE = ROOT / "scenes" / "cable_winding.py"
#: Step norm at which the paper stops, m/s, and iterations after which we do not look for it any more.
THRESHOLD, LIMIT = 1e-4, 1000
#: Damping of the published program, N s/m and N m s/rad, of every link whatever its length.
PUBLISHED_DAMPING = 0.01
#: Papers/001 Table V: penetration mm; force error against their experiment N; dynamics ms; solver ms; iterations.
PAPER_V = {
    "cond": "0.0021; 0.3996; 2.086; 1.229; 18.28",
    "pgs": "0.0521; 0.3997; 2.103; 74.27; 65.61",
    "apgd": "0.0556; 0.3976; 2.112; 56.72; 46.05",
}
#: Papers/001 Table VIII: penetration mm; force error N; ms. Position-based dynamics there had 120 links.
PAPER_VIII = {
    ("COND", 100): "-; 0.553; 3.95",
    ("COND", 200): "-; 0.553; 7.13",
    ("XPBD", 100): "0.0036; 2.654; 94.45",
    ("XPBD", 200): "0.0026; 1.575; 187.6",
}


def winding(settings: Settings, links: int = 320, **parameters: Any) -> tuple[fs.Scene, int]:
    """Return the cable winding and its steps."""
    scene = fs.load_scene(SCENE, links=settings.some(links, 80), **parameters)
    return scene, settings.some(5500, 30)


class Clocked:
    """A solver with its CPU seconds; with a probe, it stops where the probe's step norm is first below the paper's threshold."""

    def __init__(self, solver: Solver, probe: Solver | None = None) -> None:
        self.solver, self.probe = solver, probe
        self.seconds: list[float] = []

    def solve(self, problem: ContactProblem, warm_start: WarmStart | None = None) -> Solution:
        if self.probe is not None:
            limited(self.solver, first_below(self.probe.solve(problem, warm_start).history.step_norm, THRESHOLD))
        started = time.thread_time()
        solution = self.solver.solve(problem, warm_start)
        self.seconds.append(time.thread_time() - started)
        return solution


def by_step_norm(name: str, **options: Any) -> Clocked:
    """Return a solver that stops as the paper's do: a tolerance that nobody reaches, and as many iterations as the probe says."""
    return Clocked(*(make_solver(name, tolerance=1e-14, max_iterations=LIMIT, **options) for _ in range(2)))


@dataclass
class Loop:
    """A run by one solver: ``force`` (n, 3) N on the tool; lists by step; ``failed`` the step it failed at, or 0."""

    force: np.ndarray
    iterations: list[int]
    dynamics_ms: float
    solver_ms: float
    penetration: float
    dynamics: float
    contact: float
    step_norm: float
    failed: int


def run_loop(scene: fs.Scene, steps: int, solver: Clocked) -> Loop:
    """Run a scene by a solver, whatever comes of it; medians of times, residuals and step norms, the largest penetration (mm)."""
    stepper = CpuStepper(scene, solver)
    rod = stepper.scene.bodies[0]
    assert isinstance(rod, Rod)
    force, iterations, spent, residuals, norms, penetration, failed = [], [], [], [], [], 0.0, 0
    for step in range(1, steps + 1):
        before = stepper.timings["assemble"] + stepper.timings["detect"]
        try:
            report = stepper.step()
        except (ContactError, np.linalg.LinAlgError):
            failed = step
            break
        if not report.finite:
            failed = step
            break
        spent.append(stepper.timings["assemble"] + stepper.timings["detect"] - before)
        force.append(rod.end_wrench[1, :3].copy())
        iterations.append(report.solution.iterations)
        residuals.append((report.metrics.dynamics_residual, report.metrics.contact_residual))
        norms.append(report.solution.history.step_norm[-1] if report.solution.iterations else 0.0)
        penetration = max(penetration, report.max_penetration)
    dynamics, contact = np.median(residuals, axis=0)
    return Loop(
        np.array(force), iterations, 1e3 * statistics.median(spent), 1e3 * statistics.median(solver.seconds),
        1e3 * penetration, float(dynamics), float(contact), statistics.median(norms), failed,
    )  # fmt: skip


def force_error(force: np.ndarray, reference: np.ndarray, failed: int = 0) -> str:
    """Mean and largest distance of force curves (n, 3) N, or the step at which one ended."""
    if failed:
        return f"failed at step {failed}"
    error = np.linalg.norm(force - reference, axis=1)
    return f"{number(error.mean())} / {number(error.max())}"


def tool_force(rod: Rod, v_hat: np.ndarray, settings: StepSettings) -> np.ndarray:
    """Force (3,) N on the tool, had the step just taken had these velocities; but for a part that does not depend on them."""
    wrench, power = rod.end_wrench.copy(), rod.end_power
    q = rod.initial_q()
    rod.advance(q, v_hat, v_hat, settings, q.copy(), v_hat.copy())
    force = rod.end_wrench[1, :3].copy()
    rod.end_wrench[:], rod.end_power = wrench, power
    return force


def sampled(settings: Settings, count: int) -> tuple[dict[tuple[str, str], list[Row]], dict[tuple[str, str], list[float]]]:
    """Solvers on some steps of the converged run, from the same warm starts; rows and errors of the tool's force, N."""
    scene, steps = winding(settings)
    rod = scene.bodies[0]
    assert isinstance(rod, Rod)
    stepping = StepSettings(scene.dt, scene.theta, scene.gravity)
    solvers = {
        ("cond", "step < 1e-4"): by_step_norm("cond"),
        ("cond", "residual 1e-5"): Clocked(make_solver("cond", max_iterations=settings.some(5000, 100))),
        ("pgs", "step < 1e-4"): by_step_norm("pgs"),
        ("pgs", "residual 1e-5"): Clocked(make_solver("pgs", max_iterations=settings.some(2000, 50))),
        ("apgd", "step < 1e-4"): by_step_norm("apgd"),
        ("apgd", "residual 1e-5"): Clocked(make_solver("apgd", max_iterations=settings.some(2000, 50))),
        ("exact", "residual 1e-8"): Clocked(make_solver("exact", tolerance=1e-8)),
        ("banded", "residual 1e-8"): Clocked(make_solver("banded", tolerance=1e-8)),
    }
    chosen = spread(settings.some(100, 10), steps, count)
    rows: dict[tuple[str, str], list[Row]] = defaultdict(list)
    errors: dict[tuple[str, str], list[float]] = defaultdict(list)
    for step in follow(scene, make_solver("banded", tolerance=1e-10), steps):
        if step.number not in chosen:
            continue
        exact = tool_force(rod, step.solution.v, stepping)
        for key, solver in solvers.items():
            if step.number == chosen[0]:  # compile, and see the pattern of A
                solver.solve(step.problem, step.warm_start)
            solution = solver.solve(step.problem, step.warm_start)
            rows[key].append(row_of(step.problem, solution, step.solution, solver.seconds[-1]))
            errors[key].append(float(np.linalg.norm(tool_force(rod, solution.v, stepping) - exact)))
    return rows, errors


def table_v(settings: Settings, reference: Loop, steps: int) -> str:
    """Table V: runs of their own, then the same steps for everybody."""
    loops = {
        ("cond", "step < 1e-4"): run_loop(*winding(settings), by_step_norm("cond")),
        ("cond, Barzilai-Borwein", "step < 1e-4"): run_loop(*winding(settings), by_step_norm("cond", step="barzilai-borwein")),
        ("banded", "residual 1e-8"): reference,
    }
    lines = []
    for (solver, stop), loop in loops.items():
        lines.append(
            [
                solver,
                stop,
                f"own run, {steps}",
                number(statistics.fmean(loop.iterations)),
                short(loop.penetration),
                force_error(loop.force, reference.force, loop.failed) if loop is not reference else "reference",
                number(loop.dynamics_ms),
                number(loop.solver_ms),
                f"{short(loop.dynamics)}; {short(loop.contact)}",
                short(loop.step_norm) if loop is not reference else "-",
                PAPER_V.get(solver, "-"),
            ]
        )
    count = settings.some(20, 2)
    rows, errors = sampled(settings, count)
    for (solver, stop), found in rows.items():
        missed = sum(row.converged == 0.0 for row in found) if stop.startswith("residual") else 0
        assembly = statistics.median(row.assembly_ms for row in found)
        lines.append(
            [
                solver,
                stop + (f" (missed by {missed})" if missed else ""),
                f"{len(found)} of the reference",
                number(mean(found, "iterations")),
                short(max(row.penetration for row in found)),
                f"{number(statistics.fmean(errors[solver, stop]))} / {number(max(errors[solver, stop]))}",
                number(reference.dynamics_ms),
                f"{number(statistics.median(row.ms for row in found))} ({short(assembly)})",
                "; ".join(short(statistics.median(getattr(row, name) for row in found)) for name in ("dynamics", "contact")),
                "-",
                PAPER_V.get(solver, "-") if stop.startswith("step") else "-",
            ]
        )
    header = [
        "solver", "stop", "steps", "iterations", "penetration mm", "tool force error N, mean / max", "dynamics ms",
        "solver ms (assembly)", "dynamics; contact residual", "step norm m/s", "paper: mm; N; ms; ms; iterations",
    ]  # fmt: skip
    return markdown(header, lines)


def table_viii(settings: Settings, reference: Loop) -> tuple[str, dict[str, np.ndarray]]:
    """Table VIII, and the force curves of XPBD by their names."""
    lines, curves = [], {}

    def line(
        method: str, links: int, count: str, force: np.ndarray, failed: int, penetration: float, ms: float, paper: str
    ) -> None:
        end = " ".join(f"{x:+.2f}" for x in force[-1]) if len(force) else "-"
        error = force_error(force, reference.force, failed)
        lines.append([method, str(links), count, error, end, short(penetration), number(ms), paper])

    for iterations in (100, 200):
        scene, steps = winding(settings)
        loop = run_loop(scene, steps, Clocked(make_solver("cond", tolerance=1e-14, max_iterations=iterations)))
        line(
            "COND", scene.bodies[0].n_v // 6, f"{iterations} iterations", loop.force, loop.failed, loop.penetration,
            loop.dynamics_ms + loop.solver_ms, PAPER_VIII["COND", iterations],
        )  # fmt: skip
    for substeps in (100, 200):
        scene, steps = winding(settings, links=120)
        run = fs.simulate_xpbd(scene, substeps=settings.some(substeps, substeps // 10), duration=steps * scene.dt)
        force = run.sensors["tool"].force
        curves[f"XPBD, 120 links, {substeps} substeps"] = force
        line(
            "XPBD", scene.bodies[0].n_v // 6, f"{substeps} substeps", force, 0 if len(force) == steps else len(force) + 1,
            1e3 * float(run.penetration.max(initial=0.0)), 1e3 * statistics.median(run.seconds), PAPER_VIII["XPBD", substeps],
        )  # fmt: skip
    loop = reference
    ms = loop.dynamics_ms + loop.solver_ms
    line("banded", settings.some(320, 80), "residual 1e-8", loop.force, 0, loop.penetration, ms, "-")
    header = [
        "method", "links", "work a step", "tool force error N, mean / max", "force at the end N", "penetration mm", "ms a step",
        "paper: mm; N; ms",
    ]  # fmt: skip
    return markdown(header, lines), curves


def published(settings: Settings) -> tuple[np.ndarray, np.ndarray] | None:
    """Force curves (n, 3) N of the published program and of ours on its end path with its damping; None without the data."""
    file = Path() if settings.data is None else settings.data.parent / "cable_winding" / "authors_program_N160.csv"
    if not file.is_file():
        return None
    links = settings.some(160, 80)
    per_metre = PUBLISHED_DAMPING * links / 0.4
    scene = fs.load_scene(SCENE, links=links, damping=per_metre, rotational_damping=per_metre, trajectory=str(file))
    steps = settings.some(5500, 30)
    run = fs.simulate(scene, duration=steps * scene.dt)
    return np.loadtxt(file, delimiter=",", skiprows=1)[:steps, 1:4], run.sensors["tool"].force


def draw(settings: Settings, reference: np.ndarray, curves: dict[str, np.ndarray], both: Sequence[np.ndarray] | None) -> None:
    """Draw the pull on the tool: XPBD beside ours, and the published program beside ours with its damping and path."""
    time_s = 0.01 * np.arange(1, len(reference) + 1)
    with picture(settings.pictures / "cable_forces.png", 2 if both else 1) as axes:
        axes[0].plot(time_s, np.linalg.norm(reference, axis=1), color="k", label="converged, 320 links")
        for name, force in curves.items():
            axes[0].plot(time_s[: len(force)], np.linalg.norm(force, axis=1), lw=1.0, label=name)
        if both:
            for force, name, style in zip(
                both, ("published program", "converged, its damping and path"), ("-", "--"), strict=True
            ):
                axes[1].plot(time_s[: len(force)], np.linalg.norm(force, axis=1), style, lw=1.2, label=f"{name}, 160 links")
        for ax in axes:
            ax.set(xlabel="time (s)", ylabel="force on the tool (N)")
            ax.legend(fontsize=6)


def make(settings: Settings) -> dict[str, str]:
    """Make both tables and the picture."""
    scene, steps = winding(settings)
    reference = run_loop(scene, steps, Clocked(make_solver("banded", tolerance=1e-8)))
    five = table_v(settings, reference, steps)
    eight, curves = table_viii(settings, reference)
    draw(settings, reference.force, curves, published(settings))
    return {"V": five, "VIII": eight}

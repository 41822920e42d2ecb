"""Table V and Figure 9 of papers/001: a cable is wound on a post by a robot."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from contact import ContactError, ContactProblem, Solution, Solver, WarmStart, make_solver
from femsim.model.bodies.kinds import rods
from femsim.model.bodies.rod import Rod
from femsim.run.result import end_with
from femsim.run.simulate import simulate
from femsim.scene.scene import Scene
from femsim.studies.reproduction import trials
from femsim.studies.reproduction.measuring import CpuStepper, Raw, Settings, Step, first_below, limited, steps_of
from femsim.studies.reproduction.paper import published as of_paper
from femsim.studies.reproduction.text import image, markdown, number, percent, picture, short
from femsim.studies.reproduction.trial_tables import scene_section
from femsim.studies.reproduction.trials import Study

#: Step norm at which the paper stops, m/s, and limits of iterations among which it is looked for, one after the other.
THRESHOLD, LIMITS = 1e-4, (50, 200, 1000)
#: Damping of the published program, N s/m and N m s/rad, of every link whatever its length, and its links.
PUBLISHED_DAMPING, PUBLISHED_LINKS = 0.01, 160
PUBLISHED_FILE = "authors_program_N160.csv"


class ToolForce:
    """Gauge: force of the cable on the tool, (3,) N."""

    def __call__(self, step: Step, solution: Solution) -> np.ndarray:
        """Return the force that an answer gives."""
        rod = rods(step.stepper.scene.bodies)[0]
        force = np.array(rod.end_wrench[1, :3])
        if solution is not step.report.solution:
            force += tool_force(rod, solution.v) - tool_force(rod, step.report.solution.v)
        return force


def tool_force(rod: Rod, v_hat: np.ndarray) -> np.ndarray:
    """Force (3,) N on the tool, had the step just taken had these velocities; but for a part that does not depend on them."""
    wrench, power = rod.end_wrench.copy(), rod.end_power
    rod.accept(v_hat)
    force = rod.end_wrench[1, :3].copy()
    rod.end_wrench[:], rod.end_power = wrench, power
    return np.asarray(force)


class Clocked:
    """A solver with its CPU seconds; with a probe, it stops where the probe's step norm is first below the paper's threshold."""

    def __init__(self, solver: Solver, probe: Solver | None = None) -> None:
        self.solver, self.probe = solver, probe
        self.seconds: list[float] = []

    def solve(self, problem: ContactProblem, warm_start: WarmStart | None = None) -> Solution:
        """Solve."""
        if self.probe is not None:
            for limit in LIMITS:
                norms = limited(self.probe, limit).solve(problem, warm_start).history.step_norm
                if norms.min(initial=np.inf) < THRESHOLD or len(norms) < limit:
                    break
            limited(self.solver, first_below(norms, THRESHOLD))
        started = time.thread_time()
        solution = self.solver.solve(problem, warm_start)
        self.seconds.append(time.thread_time() - started)
        return solution


def by_step_norm(name: str, **options: Any) -> Clocked:
    """Return a solver that stops as the paper's do: a tolerance that nobody reaches, and as many iterations as the probe says."""
    return Clocked(*(make_solver(name, tolerance=1e-14, **options) for _ in range(2)))


def converged() -> Clocked:
    """Return the solver of the reference runs."""
    return Clocked(make_solver("banded", tolerance=1e-8))


@dataclass
class Loop:
    """A run by one solver: ``force`` (n, 3) N on the tool; the rest as :func:`run_loop` says; ``failed`` the step or 0."""

    force: np.ndarray
    iterations: float
    dynamics_ms: float
    solver_ms: float
    penetration: float
    dynamics: float
    contact: float
    step_norm: float
    failed: int


def run_loop(scene: Scene, steps: int, solver: Clocked) -> Loop:
    """Run a scene by a solver, whatever comes of it.

    Returns
    -------
    Loop
        Mean iterations; medians of times (CPU ms), residuals and step norms; the largest penetration (mm).
    """
    stepper = CpuStepper(scene, solver)
    rod = rods(stepper.scene.bodies)[0]
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
        np.array(force), statistics.fmean(iterations), 1e3 * statistics.median(spent), 1e3 * statistics.median(solver.seconds),
        1e3 * penetration, float(dynamics), float(contact), statistics.median(norms), failed,
    )  # fmt: skip


def force_error(force: np.ndarray, reference: np.ndarray) -> tuple[float, float]:
    """Mean and largest distance of force curves (n, 3) N; the longer one is cut."""
    error = np.linalg.norm(force - reference[: len(force)], axis=1)
    return float(error.mean()), float(error.max())


def error_text(error: tuple[float, float], failed: int) -> str:
    """Write both errors, or the step at which a run failed."""
    return f"failed at step {failed}" if failed else f"{number(error[0])} / {number(error[1])}"


def thinned(force: np.ndarray, points: int = 550) -> list[list[float]]:
    """Every so many rows of a curve (n, 3), as a file of results wants them."""
    return [[round(float(x), 6) for x in row] for row in force[:: max(1, len(force) // points)]]


def steps_to_take(settings: Settings) -> int:
    """Count the steps of a winding."""
    return 30 if settings.tiny else steps_of(settings.cable())


def measure(settings: Settings) -> Raw:
    """Run the trials, and COND and the reference by themselves; with the data also the published program's case."""
    steps = steps_to_take(settings)
    study = Study(
        name="cable",
        scene=settings.cable,
        ranges={"young_modulus": (4e6, 5e6), "poisson_ratio": (0.4, 0.49), "mu": (0.5, 1.5)},
        threshold=THRESHOLD,
        gauge=lambda scene: ToolForce(),
        axes=True,
        trials=settings.some(20, 2),
        samples=settings.some(1, 2, 1),
        dense=settings.some(25, 8, 2),
        steps=steps,
        dual_limit=settings.some(1500, 1000, 50),
    )
    raw = trials.run_trials(study, settings)
    settings.say("cable: runs of their own")
    steps = settings.some(steps, 1500, steps)
    loops = {
        "banded": run_loop(settings.cable(), steps, converged()),
        "cond": run_loop(settings.cable(), steps, by_step_norm("cond")),
        "cond, Barzilai-Borwein": run_loop(settings.cable(), steps, by_step_norm("cond", step="barzilai-borwein")),
    }
    reference = loops["banded"].force
    raw["loops"] = {
        name: {key: value for key, value in vars(loop).items() if key != "force"} | {"error": force_error(loop.force, reference)}
        for name, loop in loops.items()
    }
    raw["steps"] = steps
    if settings.data is not None:
        settings.say("cable: the published program's case")
        raw["published"] = _published(settings, settings.data / PUBLISHED_FILE, steps)
    return raw


def _published(settings: Settings, file: Path, steps: int) -> Raw:
    """Compare the published program with ours on its end path with its damping."""
    per_metre = PUBLISHED_DAMPING * PUBLISHED_LINKS / 0.4
    scene = settings.cable(links=PUBLISHED_LINKS, damping=per_metre, rotational_damping=per_metre, trajectory=str(file))
    run = simulate(scene, duration=steps * scene.dt, quiet=True)
    end_with(run)
    theirs, ours = np.loadtxt(file, delimiter=",", skiprows=1)[:steps, 1:4], run.sensors["tool"].force
    return {"theirs": thinned(theirs), "ours": thinned(ours), "error": force_error(ours, theirs), "seconds": steps * scene.dt}


def write(raws: dict[str, Raw], figures: Path) -> str:
    """Tables, figures and text."""
    raw, paper = raws["cable"], of_paper("table_V")
    lines = [
        [
            name,
            "residual 1e-08" if name == "banded" else f"step < {THRESHOLD:.0e}",
            number(loop["iterations"]),
            short(loop["penetration"]),
            "reference" if name == "banded" else error_text(loop["error"], loop["failed"]),
            f"{number(loop['solver_ms'])} (DT {number(loop['dynamics_ms'])})",
            f"{short(loop['dynamics'])}; {short(loop['contact'])}",
        ]
        for name, loop in raw["loops"].items()
    ]
    header = [
        "own run by", "stop", "iterations", "penetration mm", "tool force error N, mean / max", "CPU ms",
        "dynamics; contact residual",
    ]  # fmt: skip
    points = [
        f"Second table: medians of own runs of {raw['steps']} steps with the parameters of the experiment.",
        f"The paper's error of {paper['cond']['error']:.1f} N is against its experiment, which is not public.",
    ]
    pictures = []
    if "published" in raw:
        published = raw["published"]
        figure = figures / "fig9_published.png"
        _draw_published(published, figure)
        size = float(np.linalg.norm(published["theirs"], axis=1).mean())
        pictures = [image("The published program and ours", figure)]
        points.append(
            f"With damping and path of the program published with the paper ({PUBLISHED_LINKS} links, {PUBLISHED_DAMPING} N s/m "
            f"and N m s/rad a link) our force is {number(published['error'][0])} N off its own on average "
            f"({percent(published['error'][0] / size)}), {number(published['error'][1])} N at most."
        )
    else:
        points.append("The comparison with the published program is left out: no folder with its forces was given by `--data`.")
    return scene_section(
        raw, paper, figures / "fig9_cable.png", scene="the winding", curve="force on the tool",
        caption="Penetration and force on the tool", tables=[markdown(header, lines)], pictures=pictures, points=points,
    )  # fmt: skip


def _draw_published(published: Raw, path: Path) -> None:
    """Draw both force curves."""
    theirs, ours = np.array(published["theirs"]), np.array(published["ours"])
    t = np.linspace(0.0, published["seconds"], len(theirs))
    with picture(path, 3) as axes:
        for k, axis in enumerate(axes):
            axis.plot(t, theirs[:, k], label="published program")
            axis.plot(t, ours[:, k], "--", lw=1.0, label="ours, its damping and path")
            axis.set(xlabel="time [s]", ylabel=f"force on the tool, {'xyz'[k]} [N]")
        axes[0].legend(fontsize=6)

"""What the tables share: scenes in two sizes, steps with their exact answers, measurements of a solver, text."""

from __future__ import annotations

import copy
import math
import statistics
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import femsim as fs
from contact import ContactProblem, Solution, Solver, WarmStart, make_solver, measure
from femsim.stepper import Stepper, StepReport
from viz.plots import STYLE

ROOT = Path(__file__).resolve().parents[2]
#: Tolerance of the answers that errors are measured against.
REFERENCE = 1e-10


@dataclass(frozen=True)
class Settings:
    """How the tables are made.

    Attributes
    ----------
    pictures : Path
        Folder for pictures.
    data : Path, optional
        Folder with FCLib files and ``check_fc.py``.
    quick : bool
        Tiny scenes and few steps: everything runs, no figure means anything.
    """

    pictures: Path
    data: Path | None = None
    quick: bool = False

    def ball(self, young_modulus: float, dt: float = 0.01) -> fs.Scene:
        """Return the main job: a soft ball that is gripped, lifted and held."""
        if self.quick:
            return _small_grip(young_modulus, dt)
        return fs.load_scene(ROOT / "scenes" / "soft_ball_gripping.py", young_modulus=young_modulus, dt=dt)

    def mat(self, young_modulus: float = 75e3, dt: float = 0.01) -> fs.Scene:
        """Return a mat that lies on the floor, is pulled sideways against its friction, and comes to rest."""
        side, cells = (0.06, 4) if self.quick else (0.3, 26)
        scene = fs.Scene("mat", dt=dt, duration=0.6, theta=1.0)
        scene.add_floor()
        rubber = fs.Elastic(young_modulus, 0.35, 1000.0, rayleigh_beta=1e-3, name="mat")
        weight = 9.81 * 1000.0 * side * side * 0.01
        pull = fs.Profile([0.05, 0.1, 0.3, 0.35], [0.0, 0.45 * weight, 0.45 * weight, 0.0])  # friction holds up to 0.3
        mat = scene.add_soft(
            "mat",
            fs.box_tets((side, side, 0.01), (cells, cells, 1)),
            rubber,
            position=(0.0, 0.0, 0.005),
            load=lambda t: (float(pull(t)), 0.0, 0.0),
        )
        scene.set_friction(mat, "floor", 0.3)
        return scene

    def soft_gripper(self) -> fs.Scene:
        """Return the silicone gripper that takes a rigid box."""
        sizes = {"cells": (4, 5, 8)} if self.quick else {}
        return fs.load_scene(ROOT / "scenes" / "soft_gripper.py", **sizes)

    def some(self, full: int, quick: int) -> int:
        """Return one of two counts."""
        return quick if self.quick else full

    def some_range(self, full: tuple[int, int], quick: tuple[int, int]) -> tuple[int, int]:
        """Return one of two ranges of steps."""
        return quick if self.quick else full


def _small_grip(young_modulus: float, dt: float) -> fs.Scene:
    """Return a cube of 64 nodes that two fingers take from the floor: the ball's job in a second."""
    scene = fs.Scene("small_grip", dt=dt, duration=2.0, theta=1.0)
    scene.add_floor()
    rubber = fs.Elastic(young_modulus, 0.35, 1000.0, rayleigh_beta=1e-3, name="cube")
    cube = scene.add_soft("cube", fs.box_tets((0.04, 0.04, 0.04), 3), rubber, position=(0.0, 0.0, 0.02))
    pad = fs.Box((0.003, 0.02, 0.02))
    fingers = [
        fs.Finger(name, pad, offset=(-sign * 0.0235, 0.0, -0.06), closing=(sign, 0.0, 0.0))
        for name, sign in (("left", 1.0), ("right", -1.0))
    ]
    gripper = scene.add_gripper("gripper", fingers, position=(0.0, 0.0, 0.085), mass=0.5, joint_limits=(-0.01, 0.03))
    scene.set_friction(cube, gripper, 0.5)
    scene.set_friction(cube, "floor", 0.5)
    scene.drive(gripper, force=fs.Profile([0.0, 0.02, 0.05], [0.0, 0.5, 10.0]), fingers=True)
    scene.drive(gripper, fs.Motion([0.06, 0.5], [(0.0, 0.0, 0.0), (0.0, 0.0, 0.03)]))
    return scene


# ---------------------------------------------------------------------- steps of a scene


@dataclass(frozen=True)
class Step:
    """A step that a run has just taken.

    Attributes
    ----------
    number : int
        From 1.
    problem : ContactProblem
        Its contact problem.
    warm_start : WarmStart or None
        Where solvers start.
    solution : Solution
        Answer that the run goes on with.
    seconds : float
        CPU time of that solve.
    report : StepReport
        What the step did.
    """

    number: int
    problem: ContactProblem
    warm_start: WarmStart | None
    solution: Solution
    seconds: float
    report: StepReport


class _Timed:
    """A solver that keeps its last call and its CPU time; of A and b, which the step goes on to use otherwise, a copy."""

    def __init__(self, solver: Solver) -> None:
        self.solver = solver
        self.problem: ContactProblem | None = None
        self.warm_start: WarmStart | None = None
        self.seconds = 0.0

    def solve(self, problem: ContactProblem, warm_start: WarmStart | None = None) -> Solution:
        A = copy.copy(problem.A)  # with the same arrays of indices, by which solvers know a pattern again
        A.data = A.data.copy()
        self.problem, self.warm_start = replace(problem, A=A, b=problem.b.copy()), warm_start
        started = time.process_time()
        solution = self.solver.solve(problem, warm_start)
        self.seconds = time.process_time() - started
        return solution


def follow(scene: fs.Scene, solver: Solver, steps: int) -> Iterator[Step]:
    """Run a scene by a solver, step by step."""
    timed = _Timed(solver)
    stepper = Stepper(scene, timed)
    for number in range(1, steps + 1):
        report = stepper.step()
        assert timed.problem is not None
        yield Step(number, timed.problem, timed.warm_start, report.solution, timed.seconds, report)


# ---------------------------------------------------------------------- a solver on a problem


@dataclass(frozen=True)
class Row:
    """What a solver did with a problem.

    Attributes
    ----------
    iterations : float
        Iterations.
    ms, assembly_ms : float, ms
        CPU time, and the part of it before the first iteration (for the dual solvers: factorization and Delassus operator).
    penetration : float, mm
        Largest penetration that the step adds: penetration velocity times dt.
    force_error, relative_error : float, N and 1
        |J^T (lam - lam*)| over all rows of points, and the same over |J^T lam*|.
    dynamics, contact : float
        True residuals.
    converged : float
        1 where the solver said so.
    """

    iterations: float
    ms: float
    assembly_ms: float
    penetration: float
    force_error: float
    relative_error: float
    dynamics: float
    contact: float
    converged: float

    @property
    def residual(self) -> float:
        """The larger of both residuals."""
        return max(self.dynamics, self.contact)


#: Stages of ``Solution.timings`` that come before the first iteration.
_ASSEMBLY = ("nodalize", "prepare", "factorize", "operator")


def nodal_rows(problem: ContactProblem) -> np.ndarray:
    """Rows of v that belong to points, (n,), bool; all of them where there are none."""
    nodes = np.zeros(problem.n, dtype=np.bool_)
    for group in problem.groups:
        nodes[group.start : group.stop] = group.kind == "nodes"
    return nodes if nodes.any() else ~nodes


def row_of(problem: ContactProblem, solution: Solution, exact: Solution, seconds: float) -> Row:
    """Measure an answer."""
    metrics = measure(problem, solution.v, solution.lam)
    nodes = nodal_rows(problem)
    wrong, size = (float(np.linalg.norm((problem.J.T @ lam.ravel())[nodes])) for lam in (solution.lam - exact.lam, exact.lam))
    spent = sum(solution.timings.values())
    share = sum(solution.timings.get(stage, 0.0) for stage in _ASSEMBLY) / spent if spent else 0.0
    return Row(
        solution.iterations,
        1e3 * seconds,
        1e3 * seconds * share,
        abs(1e3 * problem.dt * metrics.penetration_velocity),
        wrong,
        wrong / size if size else 0.0,
        metrics.dynamics_residual,
        metrics.contact_residual,
        float(solution.converged),
    )


def solve(solver: Solver, step: Step) -> tuple[Solution, float]:
    """Solve the problem of a step from its warm start; return also the CPU time, s."""
    started = time.process_time()
    solution = solver.solve(step.problem, step.warm_start)
    return solution, time.process_time() - started


def run_row(solver: Solver, step: Step) -> Row:
    """Solve the problem of a step and measure the answer against that of the run."""
    solution, seconds = solve(solver, step)
    return row_of(step.problem, solution, step.solution, seconds)


def limited(solver: Any, iterations: int) -> Solver:
    """Give a solver another limit; what it keeps of earlier problems stays."""
    solver.options = replace(solver.options, max_iterations=max(iterations, 1))
    return solver  # type: ignore[no-any-return]


def first_below(step_norm: np.ndarray, threshold: float) -> int:
    """Iterations after which the step norm is below a threshold for the first time; all of them where it never is."""
    below = np.flatnonzero(step_norm < threshold)
    return int(below[0]) + 1 if len(below) else len(step_norm)


def warm_up(solvers: Iterable[Solver], step: Step) -> None:
    """Compile what a solver needs, and let it see the pattern of A, as it has in a run."""
    for solver in solvers:
        solver.solve(step.problem, step.warm_start)


def mean(rows: Sequence[Row], name: str) -> float:
    """Mean of a column."""
    return statistics.fmean(getattr(row, name) for row in rows)


def reference_solver() -> Solver:
    """Return the exact solver to ``REFERENCE``, which drives runs and is what errors are measured against."""
    return make_solver("exact", tolerance=REFERENCE)


def spread(first: int, last: int, count: int) -> list[int]:
    """About ``count`` steps from ``first`` to ``last``, evenly."""
    return sorted({round(x) for x in np.linspace(first, last, count)})


# ---------------------------------------------------------------------- text


def number(value: float, digits: int = 3) -> str:
    """Write a number with few digits; a dash where there is none."""
    if not math.isfinite(value):
        return "-"
    if value == 0.0:
        return "0"
    if 0.001 <= abs(value) < 10 ** max(digits, 5):
        decimals = max(digits - 1 - math.floor(math.log10(abs(value))), 0)
        return f"{value:.{decimals}f}"
    return f"{value:.{digits - 1}e}".replace("e-0", "e-").replace("e+0", "e")


short = partial(number, digits=2)


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Write a table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def percent(value: float) -> str:
    """Write a share."""
    return f"{number(100.0 * value, 2)} %"


@contextmanager
def picture(path: Path, panels: int) -> Iterator[Any]:
    """Give a row of axes, in the style of all plots, and write them as a PNG."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(4.4 * panels, 3.2), layout="constrained")
        yield figure.subplots(1, panels, squeeze=False)[0]
        figure.savefig(path, dpi=130)

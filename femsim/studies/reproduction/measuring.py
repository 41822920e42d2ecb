"""What all parts share: scenes in three sizes, steps with their exact answers, measurements of a solver."""

from __future__ import annotations

import copy
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from contact import Box, ContactProblem, Solution, Solver, WarmStart, make_solver, measure
from femsim.model.bodies.kinds import soft_bodies
from femsim.model.bodies.soft import SoftBody
from femsim.model.drives import Motion, Profile
from femsim.scene.checks import Finger
from femsim.scene.scene import Scene
from femsim.scene.scene_file import load_scene
from femsim.step.report import StepReport
from femsim.step.state import State
from femsim.step.stepper import Stepper
from materials import Elastic
from meshes import box_tets

#: Tolerance of the answers that errors are measured against.
REFERENCE = 1e-10
#: How much is made: all of it, less of it on the same scenes, or tiny scenes that only show that everything runs.
Size = Literal["full", "quick", "tiny"]
#: What a part has measured, as it is stored.
Raw = dict[str, Any]


def _silent(_: str) -> None:
    """Say nothing."""


@dataclass(frozen=True)
class Settings:
    """How much is measured.

    Attributes
    ----------
    size : {"full", "quick", "tiny"}
        All of it; the same scenes with fewer trials and steps; tiny scenes, where everything runs and no figure means anything.
    data : Path, optional
        Folder with ``authors_program_N160.csv``, the forces of the program published with papers/001.
    say : callable
        Told what is being done.
    """

    size: Size = "full"
    data: Path | None = None
    say: Callable[[str], None] = _silent

    @property
    def tiny(self) -> bool:
        """Whether the scenes are tiny."""
        return self.size == "tiny"

    def some(self, full: int, quick: int, tiny: int | None = None) -> int:
        """Return one of three counts; without a third one, the tiny one is the quick one."""
        return {"full": full, "quick": quick, "tiny": quick if tiny is None else tiny}[self.size]

    def ball(self, **parameters: Any) -> Scene:
        """Return the main job: a soft ball that is gripped, lifted and held."""
        return linearised_once(_small_grip(**parameters) if self.tiny else load_scene("soft_ball_gripping", **parameters))

    def mat(self, **parameters: Any) -> Scene:
        """Return a soft mat that a hand folds."""
        return linearised_once(load_scene("soft_mat_folding", **({"cells": (8, 5)} if self.tiny else {}), **parameters))

    def gripper(self, **parameters: Any) -> Scene:
        """Return a silicone gripper that closes on a rigid box and lifts it."""
        return linearised_once(load_scene("soft_gripper", **({"cells": (4, 5, 8)} if self.tiny else {}), **parameters))

    def cable(self, links: int = 320, **parameters: Any) -> Scene:
        """Return a cable that is wound on a post."""
        return linearised_once(load_scene("cable_winding", links=80 if self.tiny else links, **parameters))

    def pulled_mat(self, young_modulus: float = 75e3, dt: float = 0.01, cells: int | None = None) -> Scene:
        """Return a mat that lies on the floor, is pulled sideways against its friction, and comes to rest."""
        side, default = (0.06, 4) if self.tiny else (0.3, 26)
        cells = cells or default
        scene = Scene("mat", dt=dt, duration=0.6, theta=1.0)
        scene.add_floor()
        rubber = Elastic(young_modulus, 0.35, 1000.0, rayleigh_beta=1e-3, name="mat")
        weight = 9.81 * 1000.0 * side * side * 0.01
        pull = Profile([0.05, 0.1, 0.3, 0.35], [0.0, 0.45 * weight, 0.45 * weight, 0.0])  # friction holds up to 0.3
        mat = scene.add_soft(
            "mat",
            box_tets((side, side, 0.01), (cells, cells, 1), alternating=False),
            rubber,
            position=(0.0, 0.0, 0.005),
            load=lambda t: (float(pull(t)), 0.0, 0.0),
        )
        scene.set_friction(mat, "floor", 0.3)
        return linearised_once(scene)


def linearised_once(scene: Scene) -> Scene:
    """Let a scene take each step as the paper does: linearised once, at its start."""
    scene.nonlinear_tolerance = None
    return scene


def steps_of(scene: Scene) -> int:
    """Count the time steps of a scene."""
    return round(scene.duration / scene.dt)


def _small_grip(young_modulus: float = 1e6, poisson_ratio: float = 0.35, friction: float = 0.5, dt: float = 0.01) -> Scene:
    """Return a cube of 64 nodes that two fingers take from the floor: the ball's job in a second."""
    scene = Scene("small_grip", dt=dt, duration=2.0, theta=1.0)
    scene.add_floor()
    rubber = Elastic(young_modulus, poisson_ratio, 1000.0, rayleigh_beta=1e-3, name="cube")
    cube = scene.add_soft("cube", box_tets((0.04, 0.04, 0.04), 3, alternating=False), rubber, position=(0.0, 0.0, 0.02))
    pad = Box((0.003, 0.02, 0.02))
    fingers = [
        Finger(name, pad, offset=(-sign * 0.0235, 0.0, -0.06), closing=(sign, 0.0, 0.0))
        for name, sign in (("left", 1.0), ("right", -1.0))
    ]
    gripper = scene.add_gripper("gripper", fingers, position=(0.0, 0.0, 0.085), mass=0.5, joint_limits=(-0.01, 0.03))
    scene.set_friction(cube, gripper, friction)
    scene.set_friction(cube, "floor", friction)
    scene.drive(gripper, force=Profile([0.0, 0.02, 0.05], [0.0, 0.5, 10.0]), fingers=True)
    scene.drive(gripper, Motion([0.06, 0.5], [(0.0, 0.0, 0.0), (0.0, 0.0, 0.03)]))
    return scene


# ---------------------------------------------------------------------- steps of a scene


class CpuStepper(Stepper):
    """A stepper whose stages are timed by the CPU time of the thread."""

    clock = staticmethod(time.thread_time)


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
    seconds, dynamics_seconds : float
        CPU time of that solve, and of assembly and detection.
    report : StepReport
        What the step did.
    stepper : Stepper
        The run.
    before : State
        Where the step began.
    """

    number: int
    problem: ContactProblem
    warm_start: WarmStart | None
    solution: Solution
    seconds: float
    dynamics_seconds: float
    report: StepReport
    stepper: Stepper
    before: State


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


def follow(scene: Scene, solver: Solver, steps: int) -> Iterator[Step]:
    """Run a scene by a solver, step by step."""
    timed = _Timed(solver)
    stepper = CpuStepper(scene, timed)
    spent = 0.0
    for number in range(1, steps + 1):
        before = stepper.state
        report = stepper.step()
        assert timed.problem is not None
        total = stepper.timings["assemble"] + stepper.timings["detect"]
        yield Step(
            number, timed.problem, timed.warm_start, report.solution, timed.seconds, total - spent, report, stepper, before
        )
        spent = total


# ---------------------------------------------------------------------- quantities that are compared

#: What is compared with the exact answer of a step: an array, (k,), for an answer.
Gauge = Callable[[Step, Solution], np.ndarray]


def soft_body(scene: Scene) -> SoftBody:
    """Return the first soft body of a scene."""
    return soft_bodies(scene.bodies)[0]


class InternalForce:
    """Gauge: elastic forces on the nodes of a soft body, (3 n,) N, where an answer would bring it.

    Parameters
    ----------
    scene : Scene
        Its first soft body is the one; a copy of it is used, so that the run stays as it is.
    """

    def __init__(self, scene: Scene) -> None:
        self.body = copy.deepcopy(soft_body(scene))

    def __call__(self, step: Step, solution: Solution) -> np.ndarray:
        """Return the forces that an answer gives."""
        system = step.stepper.system
        index = system.bodies.index(soft_body(step.stepper.scene))
        q = step.before.q[system.q_slices[index]] + step.problem.dt * solution.v[system.v_slices[index]]
        self.body.update_elements(q)
        return self.body.internal_force.ravel().copy()


def contact_force(step: Step, solution: Solution) -> np.ndarray:
    """Gauge: sum of the contact forces on the first soft body, (3,) N."""
    system = step.stepper.system
    index = system.bodies.index(soft_body(step.stepper.scene))
    force = step.problem.J.T @ solution.lam.ravel()
    return np.asarray(force[system.v_slices[index]].reshape(-1, 3).sum(axis=0))


def node_forces(step: Step, solution: Solution) -> np.ndarray:
    """Gauge: contact forces on all nodes, N."""
    return np.asarray((step.problem.J.T @ solution.lam.ravel())[nodal_rows(step.problem)])


def nodal_rows(problem: ContactProblem) -> np.ndarray:
    """Rows of v that belong to points, (n,), bool; all of them where there are none."""
    nodes = np.zeros(problem.n, dtype=np.bool_)
    for group in problem.groups:
        nodes[group.start : group.stop] = group.kind == "nodes"
    return nodes if nodes.any() else ~nodes


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
    error, norm_error : float
        Norm of the error of the gauge, and error of its norm, in the gauge's unit.
    relative_error : float
        ``error`` over the norm of the gauge.
    dynamics, contact : float
        True residuals.
    converged : float
        1 where the solver said so.
    """

    iterations: float
    ms: float
    assembly_ms: float
    penetration: float
    error: float
    norm_error: float
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


def row_of(step: Step, solution: Solution, seconds: float, gauge: Gauge = node_forces) -> Row:
    """Measure an answer to a step against that of the run."""
    problem = step.problem
    metrics = measure(problem, solution.v, solution.lam, row_forces=solution.row_forces if problem.rows else None)
    expected, found = gauge(step, step.solution), gauge(step, solution)
    size = float(np.linalg.norm(expected))
    wrong = float(np.linalg.norm(found - expected))
    spent = sum(solution.timings.values())
    share = sum(solution.timings.get(stage, 0.0) for stage in _ASSEMBLY) / spent if spent else 0.0
    return Row(
        solution.iterations,
        1e3 * seconds,
        1e3 * seconds * share,
        abs(1e3 * problem.dt * metrics.penetration_velocity),
        wrong,
        abs(float(np.linalg.norm(found)) - size),
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


def run_row(solver: Solver, step: Step, gauge: Gauge = node_forces) -> Row:
    """Solve the problem of a step and measure the answer against that of the run."""
    solution, seconds = solve(solver, step)
    return row_of(step, solution, seconds, gauge)


def limited(solver: Any, iterations: int) -> Solver:
    """Give a solver another limit; what it keeps of earlier problems stays."""
    solver.options = replace(solver.options, max_iterations=max(iterations, 1))
    return solver


def first_below(step_norm: np.ndarray, threshold: float) -> int:
    """Count iterations until the step norm is below a threshold for the first time; all of them where it never is."""
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

"""Test 3 of papers/003 (Figure 11): a robot in an over-constrained loop, driven by its tool, alone and among boxes."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

from contact import ContactProblem, Solution, WarmStart, make_solver
from femsim.scene.scene_file import load_scene
from femsim.step.stepper import Stepper
from femsim.studies.reproduction.measuring import Raw, Settings
from femsim.studies.reproduction.paper import published
from femsim.studies.reproduction.splittings import TOLERANCE
from femsim.studies.reproduction.text import markdown, number, percent, section

#: Iterations after which the paper's method is done, at most.
_PAPER = 15


class _Watched:
    """ADMM, and what it took for each problem of a run."""

    def __init__(self) -> None:
        self._solver = make_solver("admm", tolerance=TOLERANCE)
        self.rows: list[list[float]] = []

    def solve(self, problem: ContactProblem, warm_start: WarmStart | None = None) -> Solution:
        """Solve, and note contacts, iterations, factorizations, CPU seconds, and the residual after 15 iterations."""
        started = time.process_time()
        solution = self._solver.solve(problem, warm_start)
        seconds, history = time.process_time() - started, solution.history
        early = np.maximum(history.dynamics, history.contact)[:_PAPER].min(initial=np.inf)
        took = [solution.iterations, solution.details["factorizations"], seconds, float(early)]
        self.rows.append([len(problem.phi), *map(float, took)])
        return solution


def measure(settings: Settings) -> Raw:
    """Run the scene without and with boxes, step after step as each comes."""
    raw: Raw = {}
    steps = settings.some(393, 90, 3)
    for case, boxes in (("alone", False), ("boxes", True)):
        settings.say(f"robot: {case}")
        solver = _Watched()
        stepper = Stepper(load_scene("robot_boxes", boxes=boxes), solver)
        opening, good = 0.0, 0
        for _ in range(steps):
            good += stepper.step().solution.converged
            opening = max(opening, float(stepper.system.opening))
        raw[case] = {"rows": solver.rows, "steps": steps, "converged": good, "opening": opening}
    return raw


def write(raws: dict[str, Raw], _figures: Path) -> str:
    """Table of iterations, and what the paper says."""
    raw, given = raws["robot"], published("test_3", "003")
    lines = []
    for case, name in (("alone", "the robot alone"), ("boxes", "with 15 boxes")):
        contacts, iterations, factorizations, seconds, early = np.array(raw[case]["rows"]).T
        cells = [name, str(len(contacts)), f"{contacts.min():.0f} to {contacts.max():.0f}"]
        cells += [f"{np.quantile(iterations, share):.0f}" for share in (0.5, 0.9, 1.0)]
        cells += [percent(float((iterations <= _PAPER).mean())), number(float(np.median(early)), 2)]
        cells += [f"{np.median(factorizations):.0f}, {factorizations.max():.0f}", number(1e3 * float(np.median(seconds)))]
        lines.append(cells)
    header = [
        "", "problems", "contacts", f"iterations to {TOLERANCE:g}, median", "90 %", "most", f"at most {_PAPER}",
        f"residual after {_PAPER}, median", "factorizations, median, most", "CPU ms, median",
    ]  # fmt: skip
    alone, boxes = raw["alone"], raw["boxes"]
    return section(
        "`scenes/robot_boxes.py`: six revolute joints, driven at the tool through a weld; beside the boom a spring in a tube, "
        "with "
        f"{given['loop']}, an over-constrained loop; 15 boxes {given['height']} m high and {given['width']} m wide, friction "
        f"{given['friction']}, steps of {given['dt_ms']} ms, as in the paper. Not given, and ours: sizes, masses, path; five "
        "stacks of three boxes of 8 kg. The problems of a run by `admm`, each from the answer of the one before.",
        markdown(header, lines),
        points=[
            f"Alone: {alone['converged']} of {alone['steps']} steps converge, and joints open by "
            f"{number(alone['opening'], 2)} m or rad at most (paper: {given['alone']}).",
            f"With boxes: {boxes['converged']} of {boxes['steps']} steps converge, and joints open by "
            f"{number(boxes['opening'], 2)} (paper: {given['claim']}; its tolerance and how its boxes stand are not given). "
            "Stacks "
            "that lean on one another are slow.",
        ],
    )

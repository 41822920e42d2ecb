"""Sections VII-A2 and VII-B2 of papers/000: whole tasks of robot arms, in which a solver has a few iterations a step."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from contact import ContactError, ContactProblem, Solution, WarmStart, make_solver
from femsim.model.bodies.body import Body
from femsim.scene.scene import Scene
from femsim.scene.scene_file import load_scene
from femsim.step.state import State
from femsim.step.stepper import Stepper
from femsim.studies.reproduction.budgets import NEVER, Budget
from femsim.studies.reproduction.measuring import Raw, Settings, linearised_once, steps_of
from femsim.studies.reproduction.paper import published
from femsim.studies.reproduction.text import markdown, number, section, short

#: The arm that screws: as its scene has it, and led askew and too low by stiff servos.
ASSEMBLIES: dict[str, dict[str, float]] = {
    "as it is": {},
    "led askew": {"aside": 6.0, "ahead": 8.0, "stiffness": 4000.0, "damping": 100.0},
}
#: Iterations of each solver; the second of them in the quick form.
_COUNTS = {"canal": (1, 3, 10), "subadmm": (10, 30, 100), "pgs": (1, 10, 100)}
#: Pitch of the thread, and how far the nut begins above the bolt, m.
PITCH, ABOVE = 0.005, 0.002
#: A nut is on when it has turned so often on the thread, and is no further from it, m: by its play along the axis, 0.115 mm, and
#: by what may sink.
_TURNS, _OFF = 2.0, 2.5e-4
#: A pot is piled when it ends so near to its place, m, so upright, degree, and so slow, m/s.
_PLACE, _TILT, _STILL = 5e-3, 1.0, 1e-3
#: Neither is when anything sank deeper into anything on the way, m.
_SUNK = {"assembly": 1e-4, "piling": 5e-4}
#: Steps at the end in which the pot must be slow, and in which its jerk is measured.
_LAST, _LET_GO = 24, 144


class _Timed:
    """A solver that is stopped after a number of iterations, and its CPU time, ms, in each step."""

    def __init__(self, budget: Budget, count: int) -> None:
        self._solver = make_solver(budget.solver, tolerance=NEVER, max_iterations=count, **budget.options)
        self.ms: list[float] = []
        self.contacts: list[int] = []

    def solve(self, problem: ContactProblem, warm_start: WarmStart | None = None) -> Solution:
        """Solve, and note the time."""
        started = time.process_time()
        solution = self._solver.solve(problem, warm_start)
        self.ms.append(1e3 * (time.process_time() - started))
        self.contacts.append(problem.n_contacts)
        return solution


class Done(NamedTuple):
    """What came of a task.

    Attributes
    ----------
    stepper : Stepper
        As it ended.
    states : list of State
        After each step that was taken.
    penetration : float, m
        The largest.
    ms : list of float
        CPU time of the solver in each step.
    contacts : int
        Most contacts of a step.
    """

    stepper: Stepper
    states: list[State]
    penetration: float
    ms: list[float]
    contacts: int

    def coordinates(self, body: Body, state: State) -> np.ndarray:
        """Coordinates of a body in a state."""
        return state.q[self.stepper.system.q_slices[self.stepper.system.bodies.index(body)]]


def perform(scene: Scene, budget: Budget, count: int, steps: int | None = None) -> Done:
    """Run a scene by a solver that is stopped after so many iterations, each step linearised once and taken as it leaves it.

    Parameters
    ----------
    scene : Scene
        The task; it may be performed again.
    budget : Budget
        The solver.
    count : int
        Iterations a step.
    steps : int, optional
        Steps to take. Default: all. Fewer are taken where one gives no finite numbers.
    """
    solver = _Timed(budget, count)
    stepper = Stepper(linearised_once(scene), solver)
    penetration, states = 0.0, []
    for _ in range(steps or steps_of(scene)):
        try:
            report = stepper.step()
        except (ContactError, np.linalg.LinAlgError):
            break
        if not report.finite:
            break
        penetration = max(penetration, report.max_penetration)
        states.append(stepper.state)
    return Done(stepper, states, penetration, solver.ms, max(solver.contacts, default=0))


def _measured(settings: Settings, scene: Scene, outcome: Callable[[Done], dict[str, float]]) -> list[Raw]:
    """Perform a task by all solvers, each with some numbers of iterations."""
    rows, steps = [], 3 if settings.tiny else None
    for solver, counts in _COUNTS.items():
        budget = Budget(f"`{solver}`", solver, {}, counts if settings.size == "full" else counts[1:2])
        if not settings.tiny:  # where times mean something
            perform(scene, budget, 1, 2)  # compiles
        for count in budget.counts:
            done = perform(scene, budget, count, steps)
            reached = {name: float(f"{value:.3g}") for name, value in outcome(done).items()} if done.states else {}
            rows.append(
                {
                    "solver": budget.label, "iterations": count, "steps": len(done.states),
                    "all": steps or steps_of(scene), "ms": float(f"{np.median(done.ms):.3g}"),
                    "contacts": done.contacts, "velocities": int((~done.stepper.system.prescribed).sum()),
                    "penetration": float(f"{done.penetration:.3g}"), **reached,
                }
            )  # fmt: skip
    return rows


def measure_assembly(settings: Settings) -> Raw:
    """Screw a nut onto a bolt by an arm."""
    rows = {}
    for case, parameters in ASSEMBLIES.items():
        settings.say(f"assembly: {case}")
        rows[case] = _measured(settings, load_scene("arm_screws_nut", **parameters), screwed)
    return {"rows": rows}


def screwed(done: Done) -> dict[str, float]:
    """How often the nut turned on the thread, and how far it is off the thread in the end, m."""
    scene = done.stepper.scene
    arm, nut = scene.body("arm"), next(part.link for part in scene.parts if part.name == "arm.nut")
    first, last = arm.initial_q(), done.coordinates(arm, done.states[-1])
    before, after = (arm.joint_state(q, np.zeros(arm.n_v), arm.joint_link("joint7"))[0] for q in (first, last))
    turns = (after - before) / (2.0 * math.pi)
    sunk = float(arm.link_pose(first, nut)[1][2] - arm.link_pose(last, nut)[1][2])
    return {"turns": turns - ABOVE / PITCH, "off": abs(sunk - PITCH * turns)}


def measure_piling(settings: Settings) -> Raw:
    """Put a pot on a pile by a hand."""
    return {"rows": _measured(settings, load_scene("hand_piles_pot"), piled)}


def piled(done: Done) -> dict[str, float]:
    """How far the pot is from its place over the plate at the start, m, its tilt, degree, its speed, m/s, and its jerk, m/s^3.

    The speed is the largest of the last steps; the jerk is the root mean square after the fingers let go.
    """
    scene, states = done.stepper.scene, done.states
    pot, plate = scene.body("pot"), scene.body("plate")
    rotation, place = pot.link_pose(done.coordinates(pot, states[-1]), 0)
    _, below = plate.link_pose(plate.initial_q(), 0)
    places = np.array([done.coordinates(pot, state)[:3] for state in states])
    steps = np.diff(places, axis=0) / scene.dt
    jerk = np.diff(steps[-_LET_GO:], 2, axis=0) / scene.dt**2
    return {
        "aside": float(np.linalg.norm((place - below)[:2])),
        "height": float(place[2] - below[2]),
        "tilt": math.degrees(math.acos(min(float(rotation[2, 2]), 1.0))),
        "speed": float(np.linalg.norm(steps[-_LAST:], axis=1).max(initial=0.0)),
        "jerk": float(np.sqrt(np.mean(np.sum(jerk**2, axis=1)))) if len(jerk) else 0.0,
    }


def is_on(row: Mapping[str, Any]) -> bool:
    """Whether a nut was screwed on."""
    if row["steps"] < row["all"] or row["penetration"] > _SUNK["assembly"]:
        return False
    return bool(row["turns"] >= _TURNS and row["off"] <= _OFF)


def is_piled(row: Mapping[str, Any]) -> bool:
    """Whether a pot stands on the pile."""
    if row["steps"] < row["all"] or row["penetration"] > _SUNK["piling"]:
        return False
    return bool(row["aside"] <= _PLACE and row["height"] > 0.0 and row["tilt"] <= _TILT and row["speed"] <= _STILL)


def _mm(metres: float) -> str:
    return short(1e3 * metres)


def _cells(row: Mapping[str, Any]) -> list[str]:
    """Solver, iterations, time and penetration; and where it broke down."""
    broke = "" if row["steps"] == row["all"] else f", ended in step {row['steps'] + 1} of {row['all']}"
    return [row["solver"], f"{row['iterations']}{broke}", number(row["ms"]), _mm(row["penetration"])]


def _verdicts(rows: list[Raw], good: Callable[[Mapping[str, Any]], bool]) -> str:
    """Which solvers did it with how many iterations, in what time, and which did not."""

    def named(yes: bool) -> str:
        some = [f"{row['solver']} {row['iterations']} ({number(row['ms'], 2)} ms)" for row in rows if good(row) is yes]
        return ", ".join(some) or "none"

    return f"by {named(True)}. Not by {named(False)}."


def write_assembly(raws: dict[str, Raw], _: Path) -> str:
    """Write what became of the nut."""
    given, cases = published("assembly", "000"), raws["assembly"]["rows"]
    lines = [
        [case, *_cells(row), number(row.get("turns", math.nan)), _mm(row.get("off", math.nan)), "yes" if is_on(row) else "no"]
        for case, rows in cases.items()
        for row in rows
    ]
    first, hard = next(iter(cases.values()))[0], ASSEMBLIES["led askew"]
    return section(
        f"`scenes/arm_screws_nut.py`: an arm with compliant joints, {first['velocities']} velocities, leads a nut to a bolt and "
        f"screws it on, with at most {first['contacts']} contacts, in {first['all']} steps of {given['dt']} s. Each step is "
        "linearised once and goes on with what the solver has after so many iterations. Given: impedance control, the nut fixed "
        f"to the gripper, {given['budget_ms']} ms a step. Not given, and ours: arm, path, stiffness. Led askew: "
        f"{hard['aside']:g} mm "
        f"beside the axis and {hard['ahead']:g} mm too low at the end, {hard['stiffness']:g} N m/rad.",
        markdown(
            ["arm", "solver", "iterations", "CPU ms a step, median", "deepest, mm", "turns on the thread", "off it, mm", "on"],
            lines,
        ),
        points=[
            *(f"The arm {case}: on {_verdicts(rows, is_on)}" for case, rows in cases.items()),
            f"Paper, in {given['budget_ms']} ms: {given['claim']}. Our `pgs` starts from the step before and solves each contact "
            "exactly; most of its time goes into W.",
            f"On: {_TURNS:g} turns, within {_mm(_OFF)} mm of the thread, whose play is 0.12 mm, nothing deeper than "
            f"{_mm(_SUNK['assembly'])} mm.",
        ],
    )


def write_piling(raws: dict[str, Raw], _: Path) -> str:
    """Write what became of the pot."""
    given, rows = published("piling", "000"), raws["piling"]["rows"]
    lines = []
    for row in rows:
        aside, tilt, speed, jerk = (row.get(name, math.nan) for name in ("aside", "tilt", "speed", "jerk"))
        lines.append([*_cells(row), _mm(aside), short(tilt), _mm(speed), short(jerk), "yes" if is_piled(row) else "no"])
    first = rows[0]
    return section(
        f"`scenes/hand_piles_pot.py`: four fingers of an arm put a pot of {given['pot_kg']} kg on a plate and two bowls of "
        f"{given['dish_kg']} kg; {first['velocities']} velocities (paper: {given['velocities']}), at most {first['contacts']} "
        f"contacts, {first['all']} steps of {given['dt']} s, solved as above. Given: masses, impedance control, "
        f"{given['budget_ms']} ms a step. Not given, and ours: arm, hand, dishes, path, stiffness.",
        markdown(
            [
                "solver", "iterations", "CPU ms a step, median", "deepest, mm", "aside, mm", "tilt, degree",
                "speed at the end, mm/s", "jerk when let go, m/s^3", "piled",
            ],
            lines,
        ),
        points=[
            f"The pot: piled {_verdicts(rows, is_piled)}",
            f"Paper, in {given['budget_ms']} ms: {given['claim']}. Our `subadmm` needs more iterations than that holds.",
            f"Piled: within {_mm(_PLACE)} mm and {_TILT:g} degree of its place, slower than {_mm(_STILL)} mm/s at the end, and "
            f"nothing deeper than {_mm(_SUNK['piling'])} mm on the way.",
        ],
    )  # fmt: skip

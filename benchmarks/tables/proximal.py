"""Strict operator against proximal: what the convex relaxation does to things that slide."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import femsim as fs
from benchmarks.tables.common import Settings
from contact.metrics import contact_velocity
from contact.solvers import make_solver
from femsim.studies.reproduction.measuring import Step, follow, solve
from femsim.studies.reproduction.text import markdown, number, percent

FRICTION = 0.3
OPERATORS = ("strict", "proximal")
TOLERANCE = 1e-6
LIMIT = 20_000
#: A contact slides when it presses and is faster than this, m/s.
SLIDES = 1e-3


@dataclass
class _Sums:
    """What is collected over the steps in which contacts slide."""

    lift: list[float]
    expected: list[float]
    gap: list[float]
    iterations: list[int]
    missed: int = 0


def _look(step: Step, sums: _Sums) -> None:
    """Normal velocities J v, without the offset gap/dt of the law, of contacts that slide, and their gaps after the step."""
    sums.iterations.append(step.solution.iterations)
    sums.missed += not step.solution.converged
    lam, dt = step.solution.lam, step.problem.dt
    u = contact_velocity(step.problem, step.solution.v)
    speed = np.linalg.norm(u[:, 1:], axis=1)
    slides = (speed > SLIDES) & (lam[:, 0] > 1e-6 * lam[:, 0].max(initial=0.0))
    if slides.any():
        sums.lift.append(float(u[slides, 0].max()))
        sums.expected.append(float(FRICTION * speed[slides].mean()))
        sums.gap.append(float(dt * u[slides, 0].mean()))


def _box(dt: float) -> fs.Scene:
    return fs.load_scene("anisotropic_box", mu_along=FRICTION, mu_across=FRICTION, speed_y=0.0, height=0.1, dt=dt)


def make(settings: Settings) -> dict[str, str]:
    """Make the table."""
    cases: dict[str, Callable[[], fs.Scene]] = {
        "mat, dt 10 ms": settings.pulled_mat,
        "mat, dt 5 ms": lambda: settings.pulled_mat(dt=0.005),
        "box, dt 10 ms": lambda: _box(0.01),
        "box, dt 5 ms": lambda: _box(0.005),
    }
    lines = []
    for name in list(cases)[: settings.some(len(cases), 1)]:
        scene = cases[name]()
        steps = settings.some(round(min(scene.duration, 0.4) / scene.dt), 14)
        other = make_solver("cond", operator="proximal", tolerance=TOLERANCE, max_iterations=LIMIT)
        difference: list[float] = []
        for operator in OPERATORS:
            sums = _Sums([], [], [], [])
            for step in follow(scene, make_solver("cond", operator=operator, tolerance=TOLERANCE, max_iterations=LIMIT), steps):
                _look(step, sums)
                if operator == "strict" and step.number % settings.some(4, 4) == 0:
                    relaxed, _ = solve(other, step)
                    size = float(np.linalg.norm(step.solution.lam))
                    difference.append(float(np.linalg.norm(relaxed.lam - step.solution.lam)) / size if size else 0.0)
            lines.append(
                [
                    name,
                    operator,
                    f"{steps - sums.missed}/{steps}",
                    number(float(np.mean(sums.iterations))),
                    number(1e3 * max(sums.lift, default=0.0)),
                    number(1e3 * max(sums.expected, default=0.0)),
                    number(1e3 * max(sums.gap, default=0.0)),
                    percent(float(np.mean(difference))) + " / " + percent(max(difference)) if operator == "proximal" else "-",
                ]
            )
    header = [
        "scene", "operator", "converged", "iterations", "largest u_n while sliding mm/s", "mu times largest mean slip mm/s",
        "hover u_n dt mm", "forces differ from strict on the same step, mean / largest",
    ]  # fmt: skip
    return {"operators": markdown(header, lines)}

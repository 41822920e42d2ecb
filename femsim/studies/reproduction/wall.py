"""Test 2 of papers/003 (Figures 7 to 10): a heavy ball goes into walls of loose bricks."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from contact import ContactProblem, Solution, WarmStart, make_solver
from femsim.scene.scene_file import load_scene
from femsim.step.stepper import Stepper
from femsim.studies.reproduction.column import first_problem
from femsim.studies.reproduction.measuring import Raw, Settings
from femsim.studies.reproduction.paper import published
from femsim.studies.reproduction.splittings import (
    HEADER,
    JACOBI,
    OURS,
    SPECTRAL,
    TOLERANCE,
    Method,
    admm,
    below,
    cells,
    curve,
    draw,
    p_admm,
    p_fadmm,
    said,
)
from femsim.studies.reproduction.text import image, markdown, number, picture, section

#: Iterations of a step of the run, which is stopped there, not at a tolerance.
_ITERATIONS = 150
#: Softness of all contacts in the sweep of Figure 10, m/(N s): from hard to softer than a brick is light.
_SOFTNESSES = (0.0, 1e-8, 1e-6, 1e-4)


class _Counted:
    """ADMM with a fixed number of iterations a step, and what they took."""

    def __init__(self) -> None:
        self._solver = make_solver("admm", tolerance=TOLERANCE, max_iterations=_ITERATIONS)
        self.rows: list[tuple[int, float, float]] = []

    def solve(self, problem: object, warm_start: WarmStart | None = None) -> Solution:
        """Solve, and note contacts, seconds and residual."""
        started = time.process_time()
        solution: Solution = self._solver.solve(problem, warm_start)  # type: ignore[arg-type]
        worst = np.maximum(solution.history.dynamics, solution.history.contact)
        self.rows.append((len(solution.lam), time.process_time() - started, float(worst.min(initial=np.inf))))
        return solution


def _bricks(settings: Settings) -> dict[str, int]:
    """Walls, rows and bricks of a row."""
    given = published("test_2", "003")
    full = {name: given[name] for name in ("walls", "rows", "bricks")}
    return {"full": full, "quick": full, "tiny": {"walls": 1, "rows": 2, "bricks": 3}}[settings.size]


def measure(settings: Settings) -> Raw:
    """Solve the step of the impact from nothing by all methods, and run on with few iterations a step."""
    size = _bricks(settings)
    settings.say("wall: the impact")
    problem = first_problem("wrecking_ball", **size)
    limit, fast = settings.some(1500, 1000, 40), settings.some(2000, 1000, 40)
    rows = []
    for method in (
        admm(problem.dt), p_admm(), p_fadmm(), OURS, JACOBI, SPECTRAL, Method("`canal`", "canal", {}),
    ):  # fmt: skip
        settings.say(f"wall: {method.label}")
        first_order = method in (JACOBI, SPECTRAL)
        rows.append(curve(problem, method, fast if first_order else 60 if method.solver == "canal" else limit))
        rows[-1].pop("forces")
    soft = [_soft(problem, softness, limit, settings) for softness in _SOFTNESSES]
    settings.say("wall: the run")
    solver, steps = _Counted(), settings.some(25, 6, 2)
    stepper = Stepper(load_scene("wrecking_ball", **size), solver)
    speeds, depth = [], 0.0
    for _ in range(steps):
        report = stepper.step()
        speeds.append(float(stepper.state.v[-5]))
        depth = max(depth, float(report.max_penetration))
    return {
        "size": size, "rows": rows, "limit": limit, "fast": fast, "contacts": problem.n_contacts, "velocities": problem.n,
        "pressing": int((problem.phi[:, 0] * problem.dt < 1e-6).sum()), "steps": steps, "dt": problem.dt,
        "run": [list(row) for row in solver.rows], "speeds": speeds, "penetration": depth, "soft": soft,
    }  # fmt: skip


def _soft(problem: ContactProblem, softness: float, limit: int, settings: Settings) -> list[Raw]:
    """Solve the step with contacts that are all as soft as that, by the splittings of Figure 10."""
    given = replace(problem, softness=np.full(problem.phi.shape, softness) if softness else None)
    rows = []
    for method in (p_admm(), OURS):
        settings.say(f"wall: {method.label}, contacts soft by {softness:g} m/(N s)")
        rows.append(curve(given, method, limit))
        pressing = np.array(rows[-1].pop("forces"))[:, 0]
        rows[-1] |= {"softness": softness, "largest": float(pressing.max()), "sum": float(pressing.sum())}
    return rows


def _soft_points(raw: Raw) -> list[str]:
    """Tell what the softness of contacts does."""
    told, values = [], ", ".join(f"{pair[0]['softness']:g}" for pair in raw["soft"])
    for label in dict.fromkeys(row["label"] for rows in raw["soft"] for row in rows):
        own = [row for rows in raw["soft"] for row in rows if row["label"] == label]
        counts = [said(below(row, TOLERANCE), len(row["residual"])) for row in own]
        told.append(f"{label} {', '.join(counts)}")
    hard, *softer = (rows[-1] for rows in raw["soft"])
    sunk = ", ".join(number(1e3 * row["softness"] * raw["dt"] * row["largest"], 2) for row in softer)
    return [
        f"Figure 10, all contacts soft in all directions, by {values} m/(N s) (paper: curves whose values are not in its text). "
        f"Iterations to {TOLERANCE:g}: {'; '.join(told)}. In the step the contact that presses most gives way by {sunk} mm, and "
        f"the sum of the normal forces is {', '.join(number(row['sum'] / hard['sum'], 2) for row in softer)} times that of hard "
        "contacts.",
    ]


def write(raws: dict[str, Raw], figures: Path) -> str:
    """Table, Figures 8 to 10, and the run."""
    raw = raws["wall"]
    rows, size = raw["rows"], raw["size"]
    named = {row["label"]: row for row in rows}
    with picture(figures / "admm_wall.png", 3) as (first, second, third):
        labels = (JACOBI.label, SPECTRAL.label, "ADMM, n_s = 5", "P-ADMM, n_s = 5")
        draw(first, [named[label] for label in labels], "against first-order methods (Figure 8)")
        draw(second, [row for row in rows if row["label"] not in labels[:2]], "splittings and CANAL (Figure 9)")
        sweep = [row | {"label": f"{row['label']}, {row['softness']:g}"} for pair in raw["soft"] for row in pair]
        draw(third, sweep, "softness of contacts, m/(N s) (Figure 10)")
        for axes in (first, second, third):
            axes.set_xscale("log")
    bricks = size["walls"] * size["rows"] * size["bricks"]
    run = np.array(raw["run"])
    given = published("test_2", "003")

    def reached(label: str, level: float) -> str:
        return said(below(named[label], level), len(named[label]["residual"]))

    canal = named["`canal`"]
    return section(
        f"{bricks} bricks of 3.96 x 4 x 2 m and 3168 kg in {size['walls']} walls (paper: {given['walls']} walls of "
        f"{given['rows']} rows of "
        f"{given['bricks']}), a ball of 8 m and 2145 t, friction {given['friction']}, steps of {given['dt_ms']} ms. Not given, "
        "and ours: "
        "half bonds, clearances of 40 mm, walls 9 m apart, the ball at half their height with 16 m/s, its impact in the first "
        "step. "
        f"That step: {raw['velocities']} velocities, {raw['contacts']} contacts, of which {raw['pressing']} are closed at its "
        "start.",
        markdown(HEADER, [cells(row) for row in rows]),
        image("Residuals of the impact", figures / "admm_wall.png"),
        points=[
            f"To 1e-4: Jacobi {reached(JACOBI.label, 1e-4)} iterations, spectral gradient {reached(SPECTRAL.label, 1e-4)}, ADMM "
            f"{reached('ADMM, n_s = 5', 1e-4)}, P-ADMM {reached('P-ADMM, n_s = 5', 1e-4)} (paper: {given['claim']}; curves, no "
            "numbers).",
            f"To {TOLERANCE:g}: `admm` {reached(OURS.label, TOLERANCE)} iterations in {number(named[OURS.label]['ms'])} ms; "
            "`canal`, second order, "
            f"{reached('`canal`', TOLERANCE)} in {number(canal['ms'])} ms. `admm` then still lacks the balance of single light "
            "bricks, which `canal` has.",
            f"The run: {raw['steps']} steps by `admm` with {_ITERATIONS} iterations at most, "
            f"{number(1e3 * float(np.median(run[:, 1])))} ms each "
            f"(median; at most {int(run[:, 0].max())} contacts), residual of the contact law "
            f"{number(float(np.median(run[:, 2])), 2)} (median, "
            f"worst {number(float(run[:, 2].max()), 2)}), largest penetration {number(1e3 * raw['penetration'])} mm; the ball "
            "slows from 16 to "
            f"{number(raw['speeds'][-1])} m/s.",
            *_soft_points(raw),
        ],
    )  # fmt: skip

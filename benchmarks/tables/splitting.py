"""Table VII of papers/001: COND and CCS after fixed numbers of iterations."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

import femsim as fs
from benchmarks.tables.common import (
    Row,
    Settings,
    follow,
    markdown,
    mean,
    number,
    percent,
    reference_solver,
    run_row,
    short,
    spread,
    warm_up,
)
from contact.solvers import Solver, make_solver

ITERATIONS = (50, 100)
#: Papers/001 Table VII: penetration mm, internal force error mN, ms.
PAPER = {
    ("COND", 50): ("0.0049", "0.966", "10.9"),
    ("COND", 100): ("0.0050", "0.162", "20.9"),
    ("CCS", 50): ("0.0051", "13.4", "66.0"),
    ("CCS", 100): ("0.0053", "6.56", "107.9"),
}


def _solvers(virtual: bool) -> dict[tuple[str, int], Solver]:
    """Fixed numbers of iterations: a tolerance that nobody reaches."""
    found: dict[tuple[str, int], Solver] = {}
    for limit in ITERATIONS:
        fixed = {"tolerance": 1e-14, "max_iterations": limit}
        found["COND", limit] = make_solver("cond", **fixed)
        found["CCS", limit] = make_solver("ccs", **fixed)
        if virtual:
            found["CCS, virtual nodes", limit] = make_solver("ccs", virtual_nodes=True, **fixed)
    return found


def _rows(settings: Settings, scene: fs.Scene, chosen: list[int], virtual: bool) -> dict[tuple[str, int], list[Row]]:
    """Rows by solver and number of iterations; the run itself is solved by COND on the mat, where it is the faster one."""
    rows: dict[tuple[str, int], list[Row]] = defaultdict(list)
    solvers = _solvers(virtual)
    driver = reference_solver() if virtual else make_solver("cond", tolerance=1e-11, max_iterations=20000)
    for step in follow(scene, driver, chosen[-1]):
        if step.number == chosen[0] - 1:
            warm_up(solvers.values(), step)
        if step.number in chosen:
            for key, solver in solvers.items():
                rows[key].append(run_row(solver, step))
    return rows


def make(settings: Settings) -> dict[str, str]:
    """Make the table for the mat, and for the ball, whose gripper needs virtual nodes."""
    cases: dict[str, tuple[Callable[[], fs.Scene], list[int], bool]] = {
        "mat": (settings.mat, spread(12, 50, settings.some(8, 2)), False),
        "ball": (lambda: settings.ball(1e6), spread(*settings.some_range((25, 150), (4, 12)), settings.some(12, 2)), True),
    }
    lines = []
    for name, (scene, chosen, virtual) in cases.items():
        for (solver, limit), rows in _rows(settings, scene(), chosen, virtual).items():
            paper = PAPER.get((solver, limit)) if name == "mat" else None
            lines.append(
                [
                    name,
                    solver,
                    str(limit),
                    f"{number(mean(rows, 'ms'))} ({short(mean(rows, 'assembly_ms'))})",
                    short(mean(rows, "penetration")),
                    f"{number(1e3 * mean(rows, 'force_error'))} ({percent(mean(rows, 'relative_error'))})",
                    short(mean(rows, "dynamics")),
                    short(mean(rows, "contact")),
                    f"{paper[2]}; {paper[0]}; {paper[1]}" if paper else "-",
                ]
            )
    header = [
        "scene", "solver", "iterations", "CPU ms (assembly)", "penetration mm", "force error mN", "dynamics", "contact",
        "paper: ms; mm; mN",
    ]  # fmt: skip
    return {"VII": markdown(header, lines)}

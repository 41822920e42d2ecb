"""Table IX of papers/001: iterations of COND without and with Chebyshev acceleration, and with Barzilai-Borwein steps."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from benchmarks.tables.cable import PUBLISHED_DAMPING, winding
from benchmarks.tables.common import Settings, first_below, follow, markdown, number, reference_solver, solve, spread
from contact.solvers import make_solver

VARIANTS: dict[str, dict[str, Any]] = {
    "plain": {"chebyshev": False},
    "Chebyshev": {},
    "Barzilai-Borwein": {"step": "barzilai-borwein"},
}
TOLERANCE = 1e-5
LIMIT = 5000
#: Papers/001 Table IX, without and with, and the step norm at which each scene stops.
PAPER = {
    "mat": ("167.4", "39.72", 1e-4),
    "ball": ("138.8", "37.51", 1e-5),
    "cable": ("40.14", "18.28", 1e-4),
    "cable, published damping": ("40.14", "18.28", 1e-4),
    "soft gripper": ("155.7", "30.88", 1e-6),
}


def make(settings: Settings) -> dict[str, str]:
    """Make the table."""
    limit = settings.some(LIMIT, 200)
    cable, steps = winding(settings)
    per_metre = PUBLISHED_DAMPING * settings.some(320, 80) / 0.4
    damped, _ = winding(settings, damping=per_metre, rotational_damping=per_metre)
    some_steps = spread(settings.some(100, 10), steps, settings.some(20, 2))
    runs = {
        "mat": (settings.mat(), spread(1, settings.some(60, 8), settings.some(20, 2))),
        "ball": (settings.ball(1e6), spread(*settings.some_range((5, 200), (3, 12)), settings.some(20, 2))),
        "cable": (cable, some_steps),
        "cable, published damping": (damped, some_steps),
        "soft gripper": (settings.soft_gripper(), spread(*settings.some_range((30, 250), (40, 42)), settings.some(20, 2))),
    }
    drivers = {
        "mat": make_solver("cond", tolerance=1e-10, max_iterations=20000),
        "ball": reference_solver(),
        "cable": make_solver("banded", tolerance=1e-10),
        "cable, published damping": make_solver("banded", tolerance=1e-10),
        "soft gripper": reference_solver(),
    }
    lines = []
    for name, (scene, chosen) in runs.items():
        off, on, threshold = PAPER[name]
        solvers = {v: make_solver("cond", tolerance=TOLERANCE, max_iterations=limit, **given) for v, given in VARIANTS.items()}
        by_rule: dict[tuple[str, str], list[int]] = defaultdict(list)
        missed: dict[str, int] = defaultdict(int)
        for step in follow(scene, drivers[name], chosen[-1]):
            if step.number not in chosen:
                continue
            for variant, solver in solvers.items():
                solution, _ = solve(solver, step)
                by_rule[variant, "residual"].append(solution.iterations)
                missed[variant] += not solution.converged
                by_rule[variant, "step"].append(first_below(solution.history.step_norm, threshold))
        for stop, text in (("step", f"step < {threshold:.0e}"), ("residual", f"residual {TOLERANCE:.0e}")):
            cells = []
            for variant in VARIANTS:
                values = by_rule[variant, stop]
                failed = f" ({missed[variant]} of {len(values)} not converged)" if stop == "residual" and missed[variant] else ""
                cells.append(number(sum(values) / len(values)) + failed)
            lines.append([name, text, *cells, f"{off} / {on}" if stop == "step" else "-"])
    return {"IX": markdown(["scene", "stop", *VARIANTS, "paper: off / on"], lines)}

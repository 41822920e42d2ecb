"""Picture: residual over time of every solver on one step of the ball that is lifted."""

from __future__ import annotations

import tempfile
from pathlib import Path

import femsim as fs
from benchmarks.tables.common import ROOT, Settings
from femsim.studies.reproduction.text import markdown, number, short
from viz import plot_convergence

SOLVERS = ("cond", "pgs", "apgd", "ccs", "exact")
STEP, TOLERANCE = 90, 1e-8
SCENE = ROOT / "scenes" / "soft_ball_gripping.py"
QUICK = '''"""A small grip."""

from femsim.studies.reproduction.measuring import Settings


def build():
    """Build the scene of the quick mode."""
    return Settings("tiny").ball()
'''


def make(settings: Settings) -> dict[str, str]:
    """Draw the picture and make the table that goes with it."""
    with tempfile.TemporaryDirectory() as folder:
        scene = SCENE
        if settings.tiny:
            scene = Path(folder) / "small_grip.py"
            scene.write_text(QUICK, encoding="utf-8")
        step = settings.some(STEP, 8)
        rows = fs.bench([scene], SOLVERS, tolerance=TOLERANCE, max_iterations=settings.some(5000, 200), steps=[step], repeat=3)
    curves = {row.solver: (row.curve_ms, row.curve_residual) for row in rows if len(row.curve_residual)}
    title = f"ball 1 MPa, step {step} (lifted)"
    plot_convergence(curves, settings.pictures / "solvers_convergence.png", title=title, tolerance=TOLERANCE)
    lines = [
        [
            row.solver,
            row.status,
            str(row.iterations),
            number(row.cpu_ms),
            number(row.times_matvec),
            short(row.residual),
            "-" if row.solver == row.most_accurate else short(row.force_error),
        ]
        for row in rows
    ]
    header = ["solver", "status", "iterations", "CPU ms", "x matvec", "residual", "force error, relative"]
    return {"convergence": markdown(header, lines)}

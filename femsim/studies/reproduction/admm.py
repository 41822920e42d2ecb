"""The page of papers/003 (ADMM), section 8."""

from __future__ import annotations

from femsim.studies.reproduction import bars, column, robot, wall
from femsim.studies.reproduction.page import Evaluation, Section
from femsim.studies.reproduction.paper import published


def _lead() -> list[str]:
    """How the page is to be read."""
    return [
        "- The paper prints no tables, and its figures are not in the text that we have: its words stand beside our numbers.",
        f"- Times are CPU time of one thread in ms on a busy machine; the paper's are from {published('machine', '003')}.",
        "- The residual is the larger one of the dynamics and of the contact law (`contact/metrics.py`); the paper plots its "
        "primal and dual residual in N s and m/s.",
        "- Our splittings solve the exact contact law, the paper's its convex relaxation; where nothing slides they are the "
        "same. "
        "The spectral penalty of the paper, named without a formula, is not here.",
    ]


EVALUATION = Evaluation(
    "admm",
    "admm.md",
    "The tests of papers/003 (ADMM), ours beside the paper's",
    _lead,
    {"column": column.measure, "wall": wall.measure, "robot": robot.measure, "bars": bars.measure},
    (
        Section(
            ("test1", "fig2", "fig3", "fig4", "fig5", "fig6"),
            "Test 1: a column with a mass ratio of 1000",
            ("column",),
            column.write,
        ),
        Section(("test2", "fig8", "fig9"), "Test 2: wrecking ball", ("wall",), wall.write),
        Section(("test3", "fig11"), "Test 3: a robot among boxes", ("robot",), robot.write),
        Section(("test4", "fig12", "fig13"), "Test 4: deformable bars", ("bars",), bars.write),
    ),
)

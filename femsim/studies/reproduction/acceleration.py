"""Table IX of papers/001: iterations of COND without and with Chebyshev acceleration, and with Barzilai-Borwein steps."""

from __future__ import annotations

from pathlib import Path

from femsim.studies.reproduction.measuring import Raw
from femsim.studies.reproduction.paper import published
from femsim.studies.reproduction.text import markdown, section, times
from femsim.studies.reproduction.trial_tables import acceleration_lines
from femsim.studies.reproduction.trials import COND_LIMIT, STEP_RULE, average

#: Parts that it reads.
SCENES = ("mat", "ball", "cable", "gripper")


def write(raws: dict[str, Raw], figures: Path) -> str:
    """Table and text."""
    paper = published("table_IX")
    lines = [line for name in SCENES for line in acceleration_lines(name, raws[name], "{:g} / {:g}".format(*paper[name]))]
    gains = {
        name: average(raws[name]["rows"], "plain", STEP_RULE, "iterations")
        / average(raws[name]["rows"], "cond", STEP_RULE, "iterations")
        for name in SCENES
    }
    said = ", ".join(f"{name} {times(gain)} (paper {paper[name][0] / paper[name][1]:.1f})" for name, gain in gains.items())
    return section(
        f"Mean iterations on the steps of Tables II, III, V and VI, at most {COND_LIMIT}; to the first step norm below the "
        "paper's "
        "threshold, or to the residual.",
        markdown(["scene", "stop", "plain", "Chebyshev", "Barzilai-Borwein", "paper: off / on"], lines),
        points=[
            f"Iterations of plain COND by the paper's stop, relative to Chebyshev acceleration: {said}. The paper gives no "
            "figures "
            "for Barzilai-Borwein steps (IV-C2; here both sizes in turn, Jacobi-scaled, guarded).",
        ],
    )

"""Table IX of papers/001: iterations of COND without and with Chebyshev acceleration, and with Barzilai-Borwein steps."""

from __future__ import annotations

from pathlib import Path

from femsim.studies.reproduction.text import markdown, times
from femsim.studies.reproduction.trials import COND_LIMIT, STEP_RULE, Raw, acceleration_lines, average

#: Parts that it reads, and the paper's mean iterations without and with acceleration.
PAPER = {"mat": (167.4, 39.72), "ball": (138.8, 37.51), "cable": (40.14, 18.28), "gripper": (155.7, 30.88)}


def write(raws: dict[str, Raw], figures: Path) -> str:
    """Table and text."""
    lines = [line for name, paper in PAPER.items() for line in acceleration_lines(name, raws[name], "{:g} / {:g}".format(*paper))]
    gains = {
        name: average(raws[name]["rows"], "plain", STEP_RULE, "iterations")
        / average(raws[name]["rows"], "cond", STEP_RULE, "iterations")
        for name in PAPER
    }
    said = ", ".join(f"{name} {times(gain)} (paper {PAPER[name][0] / PAPER[name][1]:.1f})" for name, gain in gains.items())
    return "\n".join(
        [
            f"Mean iterations on the steps of Tables II, III, V and VI; where the limit of {COND_LIMIT} was reached it counts "
            "as that and is said. The step rule counts to the first step norm below the paper's threshold, or to the residual "
            "where that came first.",
            "",
            markdown(["scene", "stop", "plain", "Chebyshev", "Barzilai-Borwein", "paper: off / on"], lines),
            "",
            f"- Plain COND needs by the paper's stop, as a multiple of that with Chebyshev acceleration: {said}.",
            "- Barzilai-Borwein steps (IV-C2: both sizes in turn, Jacobi-scaled, guarded) stand beside it; the paper gives no "
            "figures for them.",
        ]
    )

"""The page of papers/004: its solvers on our own suite."""

from __future__ import annotations

from femsim.studies.reproduction import suite
from femsim.studies.reproduction.page import Evaluation, Section


def _lead() -> list[str]:
    """How the page is to be read."""
    return [
        "- **The results of papers/004 are not in the text that we have**: nothing here is beside its numbers. Solvers, metrics "
        "and traits of problems are the paper's, the problems ours (`femsim bench small stack ring mechanisms` has the same).",
        "- Joints are [eliminated](../solvers.md#joints-limits-and-motors) for all solvers alike; the paper keeps them as rows "
        "of "
        "its dual problem. No warm starts, compliance or stabilisation.",
        "- Times are CPU time of one thread in ms on a busy machine, kernels compiled.",
    ]


EVALUATION = Evaluation(
    "dual",
    "dual.md",
    "The solvers of papers/004 on problems of our own",
    _lead,
    {"suite": suite.measure},
    (Section(("suite",), "Solved, ranks and metrics", ("suite",), suite.write),),
)

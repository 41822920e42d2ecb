"""The page of papers/001 (COND), section V."""

from __future__ import annotations

from collections.abc import Callable

from femsim.studies.reproduction import (
    acceleration,
    anisotropic,
    box,
    cable,
    invertible,
    position_based,
    scaling,
    soft_scenes,
    stiffness,
)
from femsim.studies.reproduction.measuring import Raw, Settings
from femsim.studies.reproduction.page import Evaluation, Section
from femsim.studies.reproduction.paper import published

#: What is measured, by name: each gives its raw results.
PARTS: dict[str, Callable[[Settings], Raw]] = {
    "box": box.measure,
    "mat": soft_scenes.measure_mat,
    "ball": soft_scenes.measure_ball,
    "stiffness": stiffness.measure,
    "cable": cable.measure,
    "gripper": soft_scenes.measure_gripper,
    "scaling": scaling.measure,
    "position_based": position_based.measure,
    "invertible": invertible.measure,
    "anisotropic": anisotropic.measure,
}


SECTIONS = (
    Section(("I", "fig6"), "Table I and Figure 6: virtual nodes", ("box",), box.write),
    Section(("II", "fig7"), "Table II and Figure 7: soft mat folding", ("mat",), soft_scenes.write_mat),
    Section(("III", "fig8"), "Table III and Figure 8: soft ball gripping", ("ball",), soft_scenes.write_ball),
    Section(("IV",), "Table IV: three stiffnesses", ("stiffness",), stiffness.write),
    Section(("V", "fig9"), "Table V and Figure 9: cable winding", ("cable",), cable.write),
    Section(("VI", "fig10"), "Table VI and Figure 10: soft gripper", ("gripper",), soft_scenes.write_gripper),
    Section(("fig11",), "Figure 11: scalability", ("scaling",), scaling.write),
    Section(("VII",), "Table VII: contact-constraint splitting", ("mat",), soft_scenes.write_splitting),
    Section(("VIII", "fig12"), "Table VIII and Figure 12: position-based dynamics", ("position_based",), position_based.write),
    Section(("fig13",), "Figure 13: invertible contact", ("invertible",), invertible.write),
    Section(("fig14",), "Figure 14: anisotropic friction", ("anisotropic",), anisotropic.write),
    Section(("IX",), "Table IX: Chebyshev acceleration", acceleration.SCENES, acceleration.write),
)


def _lead() -> list[str]:
    """How the page is to be read."""
    return [
        "- Times are CPU time of one thread in ms; the paper's are from "
        f"{published('cores')} cores of {published('machine')}. DT is the time of assembly and detection.",
        "- Residuals are the true ones (`contact/metrics.py`). *Step* is the paper's stop: the norm of the change of an "
        "iteration, in m/s.",
        "- In Tables II, III, V, VI, VII and IX all solvers answer the same steps of a run of ours; in the paper each solver "
        "drives a run of its own. In Figures 7 to 10 the line is the run, the marks are the solvers stopped by their step.",
        "- Errors are those of the norm of the forces; in brackets the norm of the difference, relative to the forces.",
        "- Sizes, grips, densities, damping and paths that the paper does not give are ours. They decide the conditioning of A, "
        "and so how many iterations COND needs.",
    ]


EVALUATION = Evaluation(
    "cond", "index.md", "The evaluation of papers/001, ours beside the paper's", _lead, PARTS, SECTIONS
)  # fmt: skip

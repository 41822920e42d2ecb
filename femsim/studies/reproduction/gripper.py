"""Table VI and Figure 10 of papers/001: a silicone gripper takes a rigid object."""

from __future__ import annotations

from pathlib import Path

from femsim.studies.reproduction import trials
from femsim.studies.reproduction.measuring import Settings, contact_force, steps_of
from femsim.studies.reproduction.trials import Paper, Raw, Study

#: Papers/001 Table VI; errors in N, against the experiment.
PAPER: Paper = {
    "cond": (0.0005, 0.1169, 18.24, 30.88, ""),
    "pgs": (0.0397, 0.1175, 547.0, 59.06, " (533)"),
    "apgd": (0.0409, 0.1172, 547.3, 57.81, " (533)"),
}


def measure(settings: Settings) -> Raw:
    """Run the trials."""
    study = Study(
        name="gripper",
        scene=settings.gripper,
        ranges={"young_modulus": (50e3, 100e3), "poisson_ratio": (0.4, 0.49), "friction": (0.5, 2.1)},
        threshold=1e-6,
        gauge=lambda _: contact_force,
        axes=True,
        trials=settings.some(20, 2),
        samples=settings.some(1, 2, 1),
        dense=settings.some(12, 6, 2),
        steps=settings.some(steps_of(settings.gripper()), steps_of(settings.gripper()), 40),
        dual_limit=settings.some(300, 200, 20),
    )
    return trials.run_trials(study, settings)


def write(raws: dict[str, Raw], figures: Path) -> str:
    """Table, figure and text."""
    raw = raws["gripper"]
    trials.draw_curves(raw, figures / "fig10_gripper.png", "contact force on a finger [N]")
    return "\n".join(
        [
            trials.trials_sentence(raw, f"the silicone gripper ({raw['mesh']}; paper: 4889 and 18122)"),
            "",
            trials.solver_table(raw, "N", 1.0, PAPER),
            "",
            "![Penetration and contact force of the gripper](figures/fig10_gripper.png)",
            "",
            *(f"- {sentence}" for sentence in trials.common_text(raw, PAPER)),
            "- The paper's errors of force (0.117 N) and its displacement errors DE (1.9 mm) are against its own experiment, "
            "which is not public and whose geometry is not given: they are the error of a model, not of a solver, and nothing "
            "here compares with them. Ours are against the converged answer of the same step. The paper's DT is 43.2 ms.",
        ]
    )

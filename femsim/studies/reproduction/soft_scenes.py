"""Tables II, III, VI and VII and Figures 7, 8 and 10 of papers/001: soft mat folding, soft ball gripping, a soft gripper."""

from __future__ import annotations

from pathlib import Path

from femsim.studies.reproduction.measuring import InternalForce, Raw, Settings, contact_force, steps_of
from femsim.studies.reproduction.paper import published
from femsim.studies.reproduction.text import markdown, number, percent, section, short, times
from femsim.studies.reproduction.trial_tables import scene_section
from femsim.studies.reproduction.trials import FIXED, Study, average, run_trials


def measure_mat(settings: Settings) -> Raw:
    """Run the trials of a mat that a hand folds."""
    study = Study(
        name="mat",
        scene=settings.mat,
        ranges={"young_modulus": (50e3, 100e3), "poisson_ratio": (0.3, 0.4), "friction": (0.1, 0.5)},
        threshold=1e-4,
        gauge=InternalForce,
        axes=False,
        trials=settings.some(20, 2),
        samples=1,
        dense=settings.some(6, 4, 2),
        steps=settings.some(steps_of(settings.mat()), steps_of(settings.mat()), 6),
        dual_limit=settings.some(100, 100, 20),
        splitting=True,
        driver=("cond", 1e-5),
    )
    return run_trials(study, settings)


def measure_ball(settings: Settings) -> Raw:
    """Run the trials of a ball that is gripped, lifted and held."""
    study = Study(
        name="ball",
        scene=settings.ball,
        ranges={"young_modulus": (0.5e6, 2e6), "poisson_ratio": (0.3, 0.4), "friction": (0.4, 0.6)},
        threshold=1e-5,
        gauge=InternalForce,
        axes=False,
        trials=settings.some(20, 3, 2),
        samples=settings.some(4, 3, 1),
        dense=settings.some(25, 12, 3),
        steps=12 if settings.tiny else steps_of(settings.ball()),
        dual_limit=settings.some(1000, 1000, 100),
    )
    return run_trials(study, settings)


def measure_gripper(settings: Settings) -> Raw:
    """Run the trials of a silicone gripper that takes a rigid object."""
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
    return run_trials(study, settings)


def write_mat(raws: dict[str, Raw], figures: Path) -> str:
    """Table II, Figure 7 and text."""
    paper = published("table_II")
    return scene_section(
        raws["mat"], paper, figures / "fig7_mat.png", scene="the mat that is folded", curve="internal force",
        caption="Penetration and internal force of the mat", points=[],
    )  # fmt: skip


def write_ball(raws: dict[str, Raw], figures: Path) -> str:
    """Table III, Figure 8 and text."""
    paper = published("table_III")
    point = f"The paper's PGS penetrates by {paper['pgs']['penetration']:.0f} mm; ours solves each contact exactly."
    return scene_section(
        raws["ball"], paper, figures / "fig8_ball.png", scene="the soft ball", curve="internal force",
        caption="Penetration and internal force of the ball", points=[point],
    )  # fmt: skip


def write_gripper(raws: dict[str, Raw], figures: Path) -> str:
    """Table VI, Figure 10 and text."""
    paper = published("table_VI")
    point = (
        f"The paper's errors of force ({paper['cond']['error']:.3f} N) and displacement ({paper['displacement_mm']} mm) are "
        "against its own experiment, which is not public."
    )
    return scene_section(
        raws["gripper"], paper, figures / "fig10_gripper.png", scene="the silicone gripper", curve="contact force on a finger",
        caption="Penetration and contact force of the gripper", points=[point],
    )  # fmt: skip


def write_splitting(raws: dict[str, Raw], figures: Path) -> str:
    """Table VII and text."""
    paper, rows = published("table_VII"), raws["mat"]["rows"]
    lines, ms, error = [], {}, {}
    for solver in ("cond", "ccs"):
        for limit in FIXED:
            names = ("ms", "assembly_ms", "penetration", "norm_error", "error", "relative_error", "dynamics", "contact")
            row = {name: average(rows, solver, f"{limit} iterations", name) for name in names}
            ms[solver, limit], error[solver, limit] = row["ms"], row["error"]
            lines.append(
                [
                    solver, str(limit), f"{number(row['ms'])} ({short(row['assembly_ms'])})", short(row["penetration"]),
                    f"{number(1e3 * row['norm_error'])} ({percent(row['relative_error'])})",
                    f"{short(row['dynamics'])}; {short(row['contact'])}",
                    "{:g}; {:g}; {:g}".format(*paper[solver][str(limit)]),
                ]
            )  # fmt: skip
    header = [
        "solver", "iterations", "CPU ms (assembly)", "penetration mm", "error mN", "dynamics; contact residual",
        "paper: mm; mN; ms",
    ]  # fmt: skip
    # CCS as a multiple of COND, after 50 and 100 iterations, here and in the paper
    slower, wrong = ([times(x["ccs", limit] / x["cond", limit]) for limit in FIXED] for x in (ms, error))
    theirs_wrong, theirs_slower = (
        [paper["ccs"][str(limit)][k] / paper["cond"][str(limit)][k] for limit in FIXED] for k in (1, 2)
    )
    return section(
        "After fixed numbers of iterations, on the steps of Table II:",
        markdown(header, lines),
        points=[
            f"CCS takes {slower[0]} and {slower[1]} as long as COND (paper: {theirs_slower[0]:.1f} and {theirs_slower[1]:.1f} "
            f"times); its error (norm of the difference) is {wrong[0]} and {wrong[1]} that of COND (paper, by its norm: "
            f"{theirs_wrong[0]:.0f} and {theirs_wrong[1]:.0f} times).",
        ],
    )

"""Section V-F of papers/001: contact forces of a step, and the same found from its velocity alone."""

from __future__ import annotations

import numpy as np

from benchmarks.tables.common import Settings, follow, markdown, number, percent, picture
from contact.solvers import make_solver
from contact.solvers.invertible import inverse_contact

#: Omega, m/(N s), and the residual, both as in the paper; and a tighter residual.
REGULARIZATION = 1e-3
TOLERANCES = (1e-4, 1e-6)
#: Error of the paper, mN.
PAPER = {"mat": 0.087, "ball": 0.48}

Curves = dict[str, tuple[np.ndarray, np.ndarray]]


def make(settings: Settings) -> dict[str, str]:
    """Make the table, and the picture after the paper's Fig. 13."""
    lines = []
    panels: dict[str, Curves] = {}
    for name in PAPER:
        for tolerance in TOLERANCES:
            forward, inverse, wrong, times, missed = [], [], [], [], 0
            scene = settings.mat() if name == "mat" else settings.ball(1e6)
            options = {"operator": "proximal", "regularization": REGULARIZATION, "tolerance": tolerance}
            steps = settings.some(round(scene.duration / scene.dt), 6)
            for step in follow(scene, make_solver("cond", **options), steps):
                lam = step.solution.lam
                found = inverse_contact(step.problem, step.solution.v, REGULARIZATION)
                forward.append(float(np.linalg.norm(lam)))
                inverse.append(float(np.linalg.norm(found)))
                wrong.append(float(np.linalg.norm(found - lam)))
                times.append(step.report.time)
                missed += not step.solution.converged
            lines.append(
                [
                    name,
                    f"{tolerance:.0e}",
                    f"{len(times) - missed}/{len(times)}",
                    number(float(np.mean(forward))),
                    f"{number(1e3 * float(np.mean(wrong)))} / {number(1e3 * max(wrong))}",
                    number(1e3 * float(np.mean(np.abs(np.subtract(forward, inverse))))),
                    percent(float(np.mean(wrong)) / float(np.mean(forward))),
                    number(PAPER[name]),
                ]
            )
        panels[name] = {
            "forward, proximal": (np.array(times), np.array(forward)),
            "inverse": (np.array(times), np.array(inverse)),
        }
        strict = follow(scene, make_solver("exact", tolerance=1e-8) if name == "ball" else make_solver("cond"), steps)
        panels[name]["strict"] = (np.array(times), np.array([float(np.linalg.norm(step.solution.lam)) for step in strict]))
    _draw(panels, settings)
    header = [
        "scene", "residual", "converged", "mean force N", "forces differ mN, mean / largest", "norms differ mN, mean", "relative",
        "paper mN",
    ]  # fmt: skip
    return {"V-F": markdown(header, lines)}


def _draw(panels: dict[str, Curves], settings: Settings) -> None:
    with picture(settings.pictures / "solvers_invertible.png", len(panels)) as axes:
        for axis, (name, curves) in zip(axes, panels.items(), strict=True):
            for (label, (times, norms)), style in zip(curves.items(), ("-", "--", ":"), strict=True):
                axis.plot(times, norms, style, label=label)
            axis.set(title=name, xlabel="time [s]", ylabel="norm of the contact forces [N]")
        axes[0].legend()

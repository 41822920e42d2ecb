"""Figure 13 of papers/001 (section V-F): contact forces of a step, and the same found from its velocity alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from contact import make_solver
from contact.solvers.invertible import inverse_contact
from femsim.studies.reproduction.measuring import Raw, Settings, follow, steps_of
from femsim.studies.reproduction.paper import published
from femsim.studies.reproduction.text import image, markdown, number, percent, picture, section
from femsim.studies.reproduction.trials import mesh_size

#: Omega, m/(N s), and the residual, both as in the paper; and a tighter residual.
REGULARIZATION = 1e-3
TOLERANCES = (1e-4, 1e-6)
SCENES = ("mat", "ball")


def measure(settings: Settings) -> Raw:
    """Run both scenes with the proximal operator at both residuals, and with the strict one."""
    raw: Raw = {}
    for name in SCENES:
        scene = settings.mat() if name == "mat" else settings.ball()
        whole = steps_of(scene)
        steps = settings.some(whole, 150 if name == "mat" else whole, 6)
        cases: dict[str, Raw] = {}
        for tolerance in TOLERANCES if name == "ball" else TOLERANCES[:1]:
            settings.say(f"invertible: {name}, residual {tolerance:.0e}")
            options = {"operator": "proximal", "regularization": REGULARIZATION, "tolerance": tolerance}
            case: dict[str, list[Any]] = {key: [] for key in ("time", "forward", "inverse", "wrong", "converged")}
            for step in follow(scene, make_solver("cond", **options), steps):
                lam = step.solution.lam
                found = inverse_contact(step.problem, step.solution.v, REGULARIZATION)
                values = (
                    step.report.time,
                    *(float(np.linalg.norm(x)) for x in (lam, found, found - lam)),
                    step.solution.converged,
                )
                for key, value in zip(case, values, strict=True):
                    case[key].append(value)
            cases[f"{tolerance:.0e}"] = case
        settings.say(f"invertible: {name}, strict operator")
        strict = follow(scene, make_solver("exact", tolerance=1e-8) if name == "ball" else make_solver("cond"), steps)
        raw[name] = {
            "proximal": cases, "strict": [float(np.linalg.norm(step.solution.lam)) for step in strict], "mesh": mesh_size(scene),
            "of": whole,
        }  # fmt: skip
    return raw


def write(raws: dict[str, Raw], figures: Path) -> str:
    """Table, figure and text."""
    raw, paper = raws["invertible"], published("figure_13")
    lines, differences = [], {}
    for name, scene in raw.items():
        for tolerance, case in scene["proximal"].items():
            forward, inverse, wrong = (np.array(case[key]) for key in ("forward", "inverse", "wrong"))
            differences[name, tolerance] = 1e3 * float(np.abs(forward - inverse).mean())
            lines.append(
                [
                    name, tolerance, f"{sum(case['converged'])}/{len(forward)}", number(float(forward.mean())),
                    f"{number(1e3 * float(wrong.mean()))} / {number(1e3 * float(wrong.max()))}",
                    number(differences[name, tolerance]),
                    percent(float(wrong.mean() / forward.mean())), number(paper[name]),
                ]
            )  # fmt: skip
    with picture(figures / "fig13_invertible.png", len(raw)) as axes:
        for axis, (name, scene) in zip(axes, raw.items(), strict=True):
            case = next(iter(scene["proximal"].values()))
            axis.plot(case["time"], case["forward"], "-", label="forward, proximal")
            axis.plot(case["time"], case["inverse"], "--", label="inverse")
            axis.plot(case["time"], scene["strict"], ":", label="strict")
            axis.set(title=name, xlabel="time [s]", ylabel="norm of the contact forces [N]")
        axes[0].legend()
    header = [
        "scene", "residual", "converged", "mean force N", "forces differ mN, mean / largest", "norms differ mN, mean", "relative",
        "paper mN",
    ]  # fmt: skip
    steps = ", ".join(f"{name}: {len(scene['strict'])} of {scene['of']} steps ({scene['mesh']})" for name, scene in raw.items())
    mat = {key: np.array(raw["mat"]["proximal"][f"{TOLERANCES[0]:.0e}"][key]) for key in ("forward", "wrong")}
    jitter = {
        name: float(np.abs(np.diff(values, 2)).mean())
        for name, values in (("proximal", mat["forward"]), ("strict", np.array(raw["mat"]["strict"])))
    }
    return section(
        f"Runs with the proximal operator and Omega = {REGULARIZATION:g} I ({steps}); forces of each step beside those that "
        "`contact.solvers.invertible.inverse_contact` finds from the velocity.",
        markdown(header, lines),
        image("Norm of the contact forces", figures / "fig13_invertible.png"),
        points=[
            "Ball: the difference falls with the residual. Mat: it is larger than the paper's, since contacts with the "
            "fingers and "
            "of the mat with itself have virtual nodes or several nodes.",
            f"Jitter of the mat (mean second difference of the norm): proximal {number(jitter['proximal'])} N, strict "
            f"{number(jitter['strict'])} N (paper: jitter of the proximal operator).",
        ],
    )

"""Table III of papers/000: robots of 18 velocities are dropped on each other; ADMM split by bodies, by robots, and not split."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from contact import make_solver
from femsim.base.place import data_folder
from femsim.model.urdf import load_robot
from femsim.scene.scene import Scene
from femsim.step.stepper import Stepper
from femsim.studies.reproduction.budgets import Budget, Keeping, digits, reach
from femsim.studies.reproduction.measuring import Raw, Settings, linearised_once
from femsim.studies.reproduction.paper import published
from femsim.studies.reproduction.text import markdown, number, section

#: Distances of the robots along x, y and z, and by how much a layer is shifted along x and y, m.
APART, SHIFT, HEIGHT = (0.8, 0.5, 0.5), (0.12, 0.07), 0.45
#: Contacts are found within this, m.
MARGIN = 2e-3
#: Tolerance of the run.
_TOLERANCE = 1e-5
#: The splittings: what the option of the solver and the table of the paper call them.
SPLITS = {"by bodies": ("body", "subadmm"), "by robots": ("subsystem", "no_body"), "not split": ("none", "no_sub")}
BODIES, ROBOTS, WHOLE = SPLITS
#: Rules for the penalty, and what the option of the solver calls them.
RULES = {"adapted": "balanced", "fixed": "fixed"}
#: Each answer is timed so often, in turns; the least time counts.
_TIMES = 3


def dropped(side: int) -> Scene:
    """Return the scene of side^3 robots over a floor, whose links have no contact with those of the same robot."""
    scene = Scene("quadrupeds", dt=1.0 / 240.0, duration=1.0, theta=1.0, default_friction=0.5, margin=MARGIN)
    scene.add_floor()
    robot = load_robot(data_folder("robots") / "quadruped.urdf")
    for k, (z, x, y) in enumerate(np.ndindex(side, side, side)):
        place = (APART[0] * x + SHIFT[0] * z, APART[1] * y + SHIFT[1] * z, HEIGHT + APART[2] * z)
        scene.add_robot(robot, name=f"robot_{k}", base="free", position=place, self_contact=False)
    return scene


def measure(settings: Settings) -> Raw:
    """Drop them, and solve steps on which many are in contact by all splittings from their warm starts."""
    iterations = int(published("table_III", "000")["iterations"])
    first, last, every = 20, 60, settings.some(1, 4)
    if settings.tiny:
        first, last, every = 8, 10, 1
    budgets = [
        Budget(f"{label}, {rule}", "subadmm", {"split": split, "adaptive": adaptive}, (iterations,))
        for label, (split, _) in SPLITS.items()
        for rule, adaptive in RULES.items()
    ]
    rows = []
    for side in (1,) if settings.tiny else (2, 3):
        settings.say(f"quadrupeds: {side**3} robots")
        keeping, contacts = Keeping(make_solver("auto", tolerance=_TOLERANCE)), []
        stepper = Stepper(linearised_once(dropped(side)), keeping)
        found: Raw = {budget.label: [] for budget in budgets}
        for step in range(1, last + 1):
            stepper.step()
            problem = keeping.problem
            if step < first or step % every or problem is None or not problem.n_contacts:
                continue
            contacts.append(problem.n_contacts)
            if len(contacts) == 1:
                for budget in budgets:
                    reach(problem, budget, 1)  # compiles
            turns = [[reach(problem, budget, iterations, keeping.start) for budget in budgets] for _ in range(_TIMES)]
            for budget, *there in zip(budgets, *turns, strict=True):
                ms = min(each.ms for each in there)
                found[budget.label].append([float(f"{there[0].residual:.3g}"), float(f"{ms:.3g}")])
        rows.append({"robots": side**3, "velocities": 18 * side**3, "contacts": contacts, "found": found})
    return {"rows": rows, "iterations": iterations}


def write(raws: dict[str, Raw], _folder: Path) -> str:
    """Table III."""
    raw, given = raws["quadrupeds"], published("table_III", "000")
    lines: list[list[str]] = []
    over_bodies: dict[str, list[str]] = {ROBOTS: [], WHOLE: []}
    adapted = next(iter(RULES))
    for row in raw["rows"]:
        ms = {}
        for label, (_split, printed) in SPLITS.items():
            for rule in RULES:
                values = np.array(row["found"][f"{label}, {rule}"])
                ms[label, rule] = float(values[:, 1].mean())
                known = row["robots"] == given["robots"] and rule == adapted
                lines.append(
                    [
                        str(row["robots"]), str(row["velocities"]), f"{min(row['contacts'])} to {max(row['contacts'])}", label,
                        rule, number(ms[label, rule]), f"{digits(values[:, 0]).mean():.2f}",
                        f"{given[printed]['ms']}; {given[printed]['digits'].text}" if known else "-",
                    ]
                )  # fmt: skip
        for label, ratios in over_bodies.items():
            ratios.append(f"{ms[label, adapted] / ms[BODIES, adapted]:.2f} with {row['robots']} robots")
    sub, none, body = (given[printed]["ms"] for printed in ("subadmm", "no_sub", "no_body"))
    return section(
        f"Steps of a fall onto a floor and onto each other, {raw['iterations']} iterations from their warm starts. The "
        f"robots of the "
        "paper, Laikago of 18 velocities, are replaced by ours (`data/robots/quadruped.urdf`, also 18), with boxes, "
        "capsules and balls "
        f"as shapes; heights and distances are ours, limits of joints count as contacts (paper: {given['contacts']} contacts).",
        markdown(
            [
                "robots", "velocities", "contacts", "ADMM split", "penalty", "ms, mean", "-log10 residual, mean",
                "paper: ms; -log10",
            ],
            lines,
        ),
        points=[
            f"Not split over split by bodies: {', '.join(over_bodies[WHOLE])} (paper: {none / sub:.2f} with {given['robots']}, "
            f"{given['many_ratio']} with {given['many']}).",
            f"By robots over by bodies: {', '.join(over_bodies[ROBOTS])} (paper: {body / sub:.2f}). Only the factors of a robot "
            "differ, since no link here has contact with another one of its robot.",
            f"Each time is the least of {_TIMES}, which take turns with the others.",
        ],
    )  # fmt: skip

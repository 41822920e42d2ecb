"""Figure 11 of papers/000: spheres are poured from a bottle; time and residual of a few iterations by their number."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from contact import Revolved, Sphere, make_solver
from femsim.model.drives import Motion
from femsim.scene.scene import Scene
from femsim.step.stepper import Stepper
from femsim.studies.reproduction.budgets import Budget, Keeping, reach
from femsim.studies.reproduction.measuring import Raw, Settings, linearised_once
from femsim.studies.reproduction.paper import published
from femsim.studies.reproduction.text import image, markdown, number, picture, section, short

#: Radius, m, and density, kg/m^3, of a sphere: given.
RADIUS, DENSITY = 0.005, 1e4
#: Radius, height and padding of the bottle and of what it is poured into, m; mass of the bottle, kg; stiffness of its hold.
BOTTLE, RECEIVER, MASS, HOLD = (0.025, 0.11, 0.0025), (0.04, 0.08, 0.0025), 0.15, (2000.0, 20.0)
#: Spheres of a layer: one on the axis and the others on a ring of this radius, m; height of a layer, m.
_LAYER, _RING, _HEIGHT = 9, 0.015, 0.0101
FRICTION, _LIFT, _TILT = 0.3, 0.07, 2.0
#: Of the run: tolerance and most iterations of `apgd`.
_TOLERANCE, _LIMIT = 1e-4, 300


def _cup(size: tuple[float, float, float]) -> Revolved:
    radius, height, padding = size
    return Revolved([(0.0, 0.0), (radius, 0.0), (radius, height)], padding)


def pouring(particles: int) -> Scene:
    """Return the scene: a bottle on springs is lifted and tilted over a cup on the floor."""
    scene = Scene("pouring", dt=1.0 / 240.0, duration=1.5, theta=1.0, default_friction=FRICTION)
    scene.add_floor()
    scene.add_obstacle("receiver", _cup(RECEIVER), position=(0.075, 0.0, RECEIVER[2]))
    bottom = 0.1
    bottle = scene.add_rigid("bottle", _cup(BOTTLE), mass=MASS, position=(0.0, 0.0, bottom))
    still = (0.0, 0.0, 0.0)
    scene.drive(bottle, Motion([0.1, 1.1], [still, (0.0, 0.0, _LIFT)], [still, (0.0, _TILT, 0.0)]), stiffness=HOLD)
    for k in range(particles):
        layer, place = divmod(k, _LAYER)
        radius, angle = (0.0, 0.0) if place == 0 else (_RING, 2.0 * np.pi * (place - 1) / (_LAYER - 1) + 0.2 * layer)
        height = bottom + BOTTLE[2] + RADIUS + 1e-5 + layer * _HEIGHT
        at = (radius * np.cos(angle), radius * np.sin(angle), height)
        scene.add_rigid(f"sphere_{k}", Sphere(RADIUS), density=DENSITY, position=at)
    return scene


def measure(settings: Settings) -> Raw:
    """Pour by `apgd`, and solve a part of the steps by the others from its warm start."""
    given = published("figure_11", "000")
    sizes = given["particles"] if settings.size == "full" else given["particles"][::2] if settings.size == "quick" else [1, 2]
    steps, every = settings.some(360, 330, 4), settings.some(6, 15, 2)
    budgets = [
        Budget("`canal`", "canal", {}, (given["canal"],)), Budget("`subadmm`", "subadmm", {}, (given["others"],)),
        Budget("`pgs`", "pgs", {}, (given["others"],)),
    ]  # fmt: skip
    rows = []
    for particles in sizes:
        settings.say(f"pouring: {particles} spheres")
        keeping = Keeping(make_solver("apgd", tolerance=_TOLERANCE, max_iterations=_LIMIT))
        stepper = Stepper(linearised_once(pouring(particles)), keeping)
        found: Raw = {budget.label: [] for budget in budgets}
        contacts, unsolved = [], 0
        for step in range(1, steps + 1):
            unsolved += not stepper.step().solution.converged
            problem = keeping.problem
            if step % every or problem is None or not problem.n_contacts:
                continue
            contacts.append(problem.n_contacts)
            for budget in budgets:
                if len(contacts) == 1:
                    reach(problem, budget, 1)  # compiles
                there = reach(problem, budget, budget.counts[0], keeping.start)
                found[budget.label].append([float(f"{there.residual:.3g}"), float(f"{there.ms:.3g}")])
        poured = sum(1 for x in stepper.state.q[7:].reshape(-1, 7)[:, 2] if x < 0.09)
        rows.append(
            {
                "particles": particles, "velocities": 6 * (particles + 1), "contacts": contacts, "unsolved": unsolved,
                "poured": poured, "found": found,
            }
        )  # fmt: skip
    return {"rows": rows, "steps": steps, "every": every}


def exponent(velocities: list[int], ms: list[float]) -> float:
    """Slope of the time over the number of velocities, both logarithmic."""
    return float(np.polyfit(np.log(velocities), np.log(ms), 1)[0])


def write(raws: dict[str, Raw], figures: Path) -> str:
    """Table and Figure 11."""
    raw, given = raws["pouring"], published("figure_11", "000")
    rows = raw["rows"]
    velocities = [row["velocities"] for row in rows]
    means = {
        label: np.array([np.mean(row["found"][label], axis=0) for row in rows]) for label in rows[0]["found"]
    }  # residual and ms, (sizes, 2)
    middle = {label: np.array([np.median(row["found"][label], axis=0) for row in rows]) for label in means}
    with picture(figures / "canal_pouring.png", 2) as (left, right):
        for label, values in means.items():
            name = label.replace("`", "")
            left.loglog(velocities, values[:, 1], marker=".", label=name)
            right.loglog(velocities, values[:, 0], marker=".", label=name)
        left.set(xlabel="velocities", ylabel="CPU ms a step, mean")
        right.set(xlabel="velocities", ylabel="residual of the paper, mean")
        left.legend(fontsize="x-small")
    slopes = {label: exponent(velocities, list(values[:, 1])) for label, values in means.items()}
    lines = [
        [
            str(row["particles"]), str(row["velocities"]), number(float(np.mean(row["contacts"]))),
            *(f"{number(means[label][k, 1])}; {number(means[label][k, 0], 2)}; {short(middle[label][k, 0])}" for label in means),
        ]
        for k, row in enumerate(rows)
    ]  # fmt: skip
    counts = {"`canal`": given["canal"], "`subadmm`": given["others"], "`pgs`": given["others"]}
    last = {label: float(values[-1, 0]) for label, values in means.items()}
    return section(
        f"Spheres of 5 mm and 10 g/cm^3 (given) are poured in {raw['steps']} steps of 1/240 s; the run goes on by `apgd`, "
        f"and every "
        f"{raw['every']}th step is also solved from its warm start with a fixed number of iterations. Ours, instead of the "
        f"arms of "
        "the paper, which are not in its text: a bottle of 0.15 kg on springs that is lifted by 70 mm and tilted by 2 rad "
        f"over a cup, friction {FRICTION}. {sum(row['unsolved'] for row in rows)} steps of the runs miss {_TOLERANCE:g} in "
        f"{_LIMIT} iterations.",
        markdown(
            [
                "spheres", "velocities", "contacts, mean",
                *(f"{label}, {counts[label]} iterations: ms; residual, mean; median" for label in means),
            ],
            lines,
        ),
        image("Pouring: time and residual by velocities", figures / "canal_pouring.png"),
        points=[
            "Exponent of the time over the velocities: "
            + ", ".join(f"{label} {short(slope)}" for label, slope in slopes.items())
            + f" (paper: {given['cost']}).",
            "Mean residual at the largest size: " + ", ".join(f"{label} {short(value)}" for label, value in last.items())
            + f" (paper: {given['accuracy']}). Our `pgs`, with exact solves of each contact, is more accurate than theirs.",
        ],
    )  # fmt: skip

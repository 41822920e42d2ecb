"""Table I and Figure 6 of papers/001: a box pushed over a floor by virtual nodes, by multipliers and by penalties."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from contact import Box
from femsim.run.result import end_with
from femsim.run.simulate import simulate
from femsim.scene.scene import Scene
from femsim.step.report import StepReport
from femsim.step.stepper import Stepper
from femsim.studies.reproduction.measuring import Raw, Settings
from femsim.studies.reproduction.paper import printed, published
from femsim.studies.reproduction.text import image, markdown, number, picture, section

GRAVITY, MASS, HALF, FRICTION, FORCE, STEP, STEPS = 9.81, 0.5, 0.1, 0.2, 1.5, 0.01, 100
GAINS = (1e3, 1e4, 1e5)
#: Stiffness N/m and damping N s/m of a corner, and N s/m below the friction limit; the paper does not give its own.
PENALTY = (100.0, 0.5, 1.0)


def exact_path() -> np.ndarray:
    """Positions (STEPS + 1, 3), m, of the sliding box in closed form."""
    t = STEP * np.arange(STEPS + 1)
    pull = (FORCE - FRICTION * MASS * GRAVITY) / MASS
    return np.column_stack([0.0 * t, 0.5 * pull * t**2, HALF + 0.0 * t])


def virtual_node_path(gain: float | None) -> np.ndarray:
    """Positions (STEPS + 1, 3), m, of the box by COND with virtual nodes of a gain, N s/m; None: with multipliers."""
    scene = Scene("box_sliding", dt=STEP, duration=STEP * STEPS, theta=0.5, correction=0.0, nonlinear_tolerance=None)
    scene.add_floor()
    scene.add_rigid(
        "box", Box((HALF, HALF, HALF)), mass=MASS, position=(0.0, 0.0, HALF),
        load=lambda t: ((0.0, FORCE, 0.0), (0.0, 0.0, 0.0)),
    )  # fmt: skip
    scene.set_friction("box", "floor", FRICTION)
    places = [np.array([0.0, 0.0, HALF])]

    def record(stepper: Stepper, report: StepReport) -> None:
        places.append(stepper.state.q[:3].copy())

    options = {} if gain is None else {"gain": gain, "exact_gain": False}
    run = simulate(
        scene, solver="cond", tolerance=1e-10, max_iterations=20000, max_halvings=0, solver_options=options,
        on_step=record, quiet=True,
    )  # fmt: skip
    end_with(run)
    return np.array(places)


def penalty_states(factor: float) -> np.ndarray:
    """Places y, z (m) and angle about x (rad), (STEPS + 1, 3), of the box on spring-dampers at its lower edges.

    Semi-implicit Euler steps. An edge (two corners) presses with k d - c d', never pulls, and is held by friction in
    proportion to its speed up to Coulomb's limit; ``factor`` multiplies all gains.
    """
    stiffness, damping, grip = (2.0 * factor * gain for gain in PENALTY)
    inertia = MASS * (2.0 * HALF) ** 2 / 6.0
    place, speed = np.array([0.0, HALF, 0.0]), np.zeros(3)  # y, z, angle about x
    places = [place]
    for _ in range(STEPS):
        force = np.array([FORCE, -MASS * GRAVITY, 0.0])
        cosine, sine = math.cos(place[2]), math.sin(place[2])
        for y, z in ((-HALF, -HALF), (HALF, -HALF)):
            arm = np.array([cosine * y - sine * z, sine * y + cosine * z])
            v = speed[:2] + speed[2] * np.array([-arm[1], arm[0]])
            depth = -(place[1] + arm[1])
            if depth <= 0.0:
                continue
            normal = max(stiffness * depth - damping * v[1], 0.0)
            tangential = -math.copysign(min(grip * abs(v[0]), FRICTION * normal), v[0])
            force += [tangential, normal, arm[0] * normal - arm[1] * tangential]
        speed = speed + STEP * force / [MASS, MASS, inertia]
        place = place + STEP * speed
        places.append(place)
    return np.array(places)


def measure(settings: Settings) -> Raw:
    """Measure all formulations, by their names."""
    paths = {f"COND, kv {gain:.0e}": virtual_node_path(gain) for gain in GAINS}
    paths |= {"COND, multipliers (our default)": virtual_node_path(None)}
    for name, factor in (("penalty 1", 1.0), ("penalty 2", 10.0)):
        paths[name] = np.column_stack([np.zeros(STEPS + 1), penalty_states(factor)[:, :2]])
    exact = exact_path()
    return {
        "errors": {name: (1e3 * np.abs(path - exact).mean(axis=0)).tolist() for name, path in paths.items()},
        "paths": {name: np.round(path[:, 1:], 9).tolist() for name, path in paths.items()},
    }


def write(raws: dict[str, Raw], figures: Path) -> str:
    """Table, figure and text."""
    raw, paper = raws["box"], published("table_I")
    errors = raw["errors"]
    lines = [
        [name, *(number(0.0 if value < 1e-12 else value) for value in error), printed(paper[name]) if name in paper else "-"]
        for name, error in errors.items()
    ]
    t, exact = STEP * np.arange(STEPS + 1), exact_path()
    with picture(figures / "fig6_box.png", 2) as axes:
        for name in ("COND, kv 1e+05", "penalty 1", "penalty 2"):
            path = np.array(raw["paths"][name])
            for axis, values in zip(axes, path.T, strict=True):
                axis.plot(t, 1e3 * values, label=name)
        for axis, values, label in zip(axes, exact[:, 1:].T, "yz", strict=True):
            axis.plot(t, 1e3 * values, "k--", lw=1.0, label="closed form")
            axis.set(xlabel="time [s]", ylabel=f"{label} [mm]")
        axes[0].legend()
    off = np.max([np.abs(np.subtract(errors[name], paper[name])) for name in paper if name.startswith("COND")])
    return section(
        f"A box of 0.2 m and 0.5 kg on a floor (mu 0.2) is pushed by {FORCE} N (not in the paper; gives its errors) for 1 s, "
        f"{STEPS} steps of 10 ms, mid-point rule.",
        markdown(["formulation", "x error mm", "y error mm", "z error mm", "paper: x; y; z"], lines),
        image("Position of the box", figures / "fig6_box.png"),
        points=[
            f"The rows of COND differ from the paper's by at most {number(off, 2)} mm. The gains of the penalty model are not "
            f"given; ours: {PENALTY[0]:g} N/m and {PENALTY[1]:g} N s/m a corner, {PENALTY[2]:g} N s/m below the friction limit, "
            "ten times as large in penalty 2.",
        ],
    )

"""Free spin, 2 rev/s at 10 ms: what bodies keep of angular momentum and energy; prints the tables of data/results/checks.md.

    python -m benchmarks.spinning laws           # ten turns of a bar, every law, linear and quadratic elements; ten minutes
    python -m benchmarks.spinning tight          # ten turns of some of them, solved to 5e-9, undamped; two minutes
    python -m benchmarks.spinning turns [WORDS]  # a hundred turns of bars, bent rods and a rigid box; half an hour

Defaults of `Scene`, but for gravity, unless a row says otherwise. WORDS picks the rows whose names have one of them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import femsim as fs
from contact.solvers import make_solver
from femsim.model.bodies.articulated import ArticulatedBody
from femsim.model.bodies.rod import Rod
from femsim.model.bodies.soft import SoftBody
from femsim.step.stepper import Stepper
from materials import Elastic, Law, MooneyRivlin, Ogden

DT, RATE = 0.01, 4.0 * np.pi
STEPS_A_TURN = 50
#: Velocity of the centre of mass, m/s: 1 m/s in a direction of its own.
FLIGHT = (0.6, -0.64, 0.48)


@dataclass
class Kept:
    """What a run kept, relative to its start.

    Parameters
    ----------
    spin : float, 1
        Largest change of angular momentum about the centre of mass.
    drift : float, 1
        Largest change of linear momentum, of mass times speed of the bodies, which fly at 1 m/s.
    lowest, highest : float, 1
        Energy less that at the start, least and most of all steps.
    solves : float, 1
        Solves a step, mean.
    unsolved : int, 1
        Steps that did not converge.
    late : float, 1
        Change of energy after the first tenth of the turns.
    """

    spin: float
    drift: float
    lowest: float
    highest: float
    solves: float
    unsolved: int
    late: float


def laws(young: float, nu: float) -> list[Law]:
    """Every elastic law at a modulus (Pa) and a Poisson's ratio."""
    mu = young / (2.0 * (1.0 + nu))
    return [
        fs.Corotational(), fs.StVenantKirchhoff(), fs.StableNeoHookean(), MooneyRivlin(0.375 * mu, 0.125 * mu),
        Ogden((0.8 * mu, -0.2 * mu), (1.7, -3.2)),
    ]  # fmt: skip


def bar(law: Law, element: Any, young: float, nu: float, **options: Any) -> fs.Scene:
    """A free bar of 60 x 30 x 20 mm that turns, from its shape at rest."""
    scene = fs.Scene("spin", dt=DT, gravity=(0, 0, 0), **options)
    mu = law.shear_modulus or young / (2.0 * (1.0 + nu))
    rubber = Elastic(2.0 * mu * (1.0 + nu), nu, 1000.0, law=law, name="rubber")
    mesh = fs.box_tets((0.06, 0.03, 0.02), (2, 1, 1))
    scene.add_soft("bar", mesh, rubber, element=element, velocity=FLIGHT, angular_velocity=(0.0, 0.0, RATE))
    return scene


def bent_rod(young: float, rise: float = 0.3, **options: Any) -> fs.Scene:
    """A free bent rod of 12 links, 3 mm thick, that turns, from its shape at rest; without rise it is flat."""
    scene = fs.Scene("spin", dt=DT, gravity=(0, 0, 0), **options)
    s = np.linspace(0.0, 1.0, 13)
    points = 0.1 * np.column_stack([np.sin(2 * s) / 2, 1 - np.cos(2 * s) / 2, rise * s**2])
    rubber = Elastic(young, 0.4, 1200.0, name="rubber")
    scene.add_rod("rod", points, fs.circular_section(0.003), rubber, velocity=FLIGHT, angular_velocity=(0.0, 0.0, RATE))
    return scene


def rigid_box(spin: tuple[float, float, float], **options: Any) -> fs.Scene:
    """A free rigid box of 60 x 40 x 20 mm."""
    scene = fs.Scene("spin", dt=DT, gravity=(0, 0, 0), **options)
    scene.add_rigid("box", fs.Box((0.03, 0.02, 0.01)), density=1000.0, velocity=FLIGHT, angular_velocity=spin)
    return scene


def spin_and_energy(stepper: Stepper) -> tuple[np.ndarray, float]:
    """Angular momentum about the centre of mass, (3,) kg m2/s, and energy but for that of flight, J, of the only body."""
    body, state = stepper.scene.bodies[0], stepper.state
    if isinstance(body, SoftBody):
        x, v = state.q.reshape(-1, 3), state.v.reshape(-1, 3)
        spin = np.cross(x, body.node_mass[:, None] * v).sum(axis=0)
    else:
        assert isinstance(body, Rod | ArticulatedBody)
        spin = body.angular_momentum(state.q, state.v)
    spin = spin - np.cross(body.centre_of_mass(state.q), body.momentum(state.q, state.v))
    flight = 0.5 * body.momentum(state.q, state.v) @ body.momentum(state.q, state.v) / body.mass
    return spin, body.kinetic_energy(state.q, state.v) - flight + body.elastic_energy(state.q)


def run(scene: fs.Scene, turns: int) -> Kept:
    """Take so many turns."""
    stepper = Stepper(scene, make_solver("auto"))
    body = stepper.scene.bodies[0]
    spin, energy = spin_and_energy(stepper)
    momentum, drift = body.momentum(stepper.state.q, stepper.state.v), 0.0
    worst, lowest, highest, solves, unsolved = 0.0, 0.0, -np.inf, 0, 0
    early = 0.0
    for k in range(turns * STEPS_A_TURN):
        report = stepper.step()
        solves += report.solves
        unsolved += not report.solution.converged
        now = spin_and_energy(stepper)
        worst = max(worst, float(np.linalg.norm(now[0] - spin) / np.linalg.norm(spin)))
        change = body.momentum(stepper.state.q, stepper.state.v) - momentum
        drift = max(drift, float(np.linalg.norm(change) / np.linalg.norm(momentum)))
        left = now[1] / energy - 1.0
        lowest, highest = min(lowest, left), max(highest, left)
        early = left if k < turns * STEPS_A_TURN // 10 else early
    return Kept(worst, drift, lowest, highest, solves / (turns * STEPS_A_TURN), unsolved, left - early)


def show(name: str, kept: Kept) -> None:
    """Print one row."""
    energy = f"{kept.lowest:+.1e} to {kept.highest:+.1e}"
    print(
        f"| {name} | {kept.spin:.1e} | {kept.drift:.1e} | {energy} | {kept.late:+.1e} | {kept.solves:.1f} | {kept.unsolved} |",
        flush=True,
    )


def every_law(words: list[str]) -> None:
    """Ten turns of a bar: every law x both elements, 0.1 to 10 MPa, nu 0.3 and 0.45."""
    for young in (1e5, 1e6, 1e7):
        for nu in (0.3, 0.45):
            for law in laws(young, nu):
                for element in ("linear", "quadratic"):
                    name = f"{young / 1e6:g} MPa, nu {nu}, {type(law).__name__}, {element}"
                    if not words or any(word in name for word in words):
                        show(name, run(bar(law, element, young, nu), 10))


def tight(words: list[str]) -> None:
    """Ten turns of bars, solved to 5e-9, undamped."""
    for k, element, young, nu in ((0, "linear", 1e5, 0.3), (2, "quadratic", 1e6, 0.45), (1, "linear", 1e7, 0.45)):
        law = laws(young, nu)[k]
        name = f"{young / 1e6:g} MPa, nu {nu}, {type(law).__name__}, {element}, 5e-9"
        if not words or any(word in name for word in words):
            show(name, run(bar(law, element, young, nu, strain_damping=0.0, nonlinear_tolerance=5e-9), 10))


def hundred_turns(words: list[str]) -> None:
    """A hundred turns of bars, bent rods and a rigid box."""
    rows: dict[str, Callable[[], fs.Scene]] = {}
    for young in (1e5, 1e6, 1e7):
        for damping in (0.05, 0.0):
            said = "" if damping else ", undamped"
            rows[f"bent rod, {young / 1e6:g} MPa{said}"] = lambda E=young, d=damping: bent_rod(E, strain_damping=d)
        rows[f"flat bent rod, {young / 1e6:g} MPa"] = lambda E=young: bent_rod(E, rise=0.0)
        for law in laws(young, 0.3)[:3]:
            for element in ("quadratic", "linear"):
                name = f"bar, {element}, {young / 1e6:g} MPa, {type(law).__name__}"
                rows[name] = lambda E=young, one=law, kind=element: bar(one, kind, E, 0.3)
    rows["rigid box, about its middle axis"] = lambda: rigid_box((0.1, RATE, 0.1))
    for name, scene in rows.items():
        if not words or any(word in name for word in words):
            show(name, run(scene(), 100))


if __name__ == "__main__":
    {"laws": every_law, "tight": tight, "turns": hundred_turns}[sys.argv[1]](sys.argv[2:])

"""Where `strain_damping` acts: on strain that turns round from step to step, on bodies in contact, not on even motion."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pendulums import PENDULUMS

import femsim as fs
from contact.solvers import make_solver
from femsim.model.bodies.calming import calm_edges, edge_lengths
from femsim.model.bodies.evenness import unevenness
from femsim.step.stepper import Stepper

EM: dict[str, Any] = {"integrator": "energy-momentum"}


def test_the_part_that_acts() -> None:
    rng = np.random.default_rng(3)
    rate, before, stiffness = rng.normal(size=8), rng.normal(size=8), rng.uniform(1.0, 2.0, 8)
    assert unevenness(rate, rate, stiffness) == 0.0
    assert unevenness(rate, -rate, stiffness) == 1.0 and unevenness(0.0 * rate, 0.0 * rate, stiffness) == 1.0
    assert unevenness(rate * np.nan, rate, stiffness) == 1.0
    wanted = stiffness @ (rate - before) ** 2 / (stiffness @ (rate**2 + before**2))
    assert unevenness(rate, before, stiffness) == pytest.approx(min(1.0, wanted) ** 2, rel=1e-14)
    near = rate + 0.1 * before
    wanted = stiffness @ (rate - near) ** 2 / (stiffness @ (rate**2 + near**2))
    assert unevenness(rate, near, stiffness) == pytest.approx(wanted**2, rel=1e-14) and wanted < 0.1


def test_lengths_of_edges() -> None:
    x, edges = np.random.default_rng(4).normal(size=(6, 3)), np.array([[0, 1], [2, 5], [4, 3]])
    np.testing.assert_allclose(edge_lengths(x, edges), np.linalg.norm(x[edges[:, 1]] - x[edges[:, 0]], axis=1), rtol=1e-15)


def test_edges_that_part_evenly_are_not_calmed() -> None:
    x, edges = np.array([[0.0, 0.0, 0.0], [0.1, 0.0, 0.0]]), np.array([[0, 1]])
    impulse, mobility, push = np.array([1e-3]), np.full(2, 1e3), np.zeros((2, 3))

    def parting(by: float) -> float:
        v, v_hat = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0]]), np.array([[0.0, 0.0, 0.0], [by, 0.0, 0.0]])
        calm_edges(x, edges, impulse, mobility, v_hat, v, push)
        return float(v[1, 0] - v[0, 0])

    assert parting(1.0) == 1.0 and parting(0.0) == pytest.approx(1.0 / 3.0, rel=1e-14) and parting(-1.0) == parting(0.0)
    c = 1e-3 * (0.1**2 / (1.0 + 0.9**2)) ** 2
    assert parting(0.9) == pytest.approx(1.0 / (1.0 + 2e3 * c), rel=1e-14)


@pytest.mark.parametrize("name", ["rod, clamped", "soft, hinged"])
def test_a_swing_that_the_step_follows_is_hardly_damped(name: str) -> None:
    """A viscosity of 0.05 dt takes a hundred times what is taken here; a step that is restored goes on with the same bits."""
    left = {}
    for damping in (0.0, 0.05):
        scene = fs.Scene("swing", dt=0.004, gravity=(0, 0, 0), strain_damping=damping, nonlinear_tolerance=1e-9, **EM)
        PENDULUMS[name](scene)
        stepper = Stepper(scene, make_solver("auto", tolerance=1e-11))
        for _ in range(60):
            assert stepper.step().solution.converged
        kept = stepper.state
        for _ in range(60):
            stepper.step()
        left[damping], ended = stepper.state.energy - stepper.state.work, stepper.state
        stepper.restore(kept)
        for _ in range(60):
            stepper.step()
        assert stepper.state.q.tobytes() == ended.q.tobytes() and stepper.state.v.tobytes() == ended.v.tobytes()
    swung = stepper.state.energy
    assert 0.0 < left[0.0] - left[0.05] < 1e-4 * swung, (left, swung)


@pytest.mark.parametrize("law", ["corotational", "stable_neo_hookean"])
def test_a_bar_that_is_let_go_keeps_its_energy_by_default(law: Any) -> None:
    """Nearly incompressible, quadratic, clamped, down and up: 13.6 mm, energy within 1 % of the drop, never above its start."""
    scene = fs.Scene("released", dt=0.005, duration=0.3)
    mesh = fs.box_tets((0.1, 0.03, 0.03), (6, 2, 2))
    rubber = fs.Elastic(263824.0, 0.499, 1070.0, name="rubber")
    scene.add_soft("bar", mesh, rubber, law=law, element="quadratic", fixed=lambda x: x[:, 0] > 0.0499)
    tip = int(np.argmin(((mesh.points - (-0.05, 0, 0)) ** 2).sum(axis=1)))
    scene.sensor("tip", "bar", kind="marker", node=tip)
    run = fs.simulate(scene, quiet=True)
    assert run.status == "converged"
    assert run.markers["tip"].position[:25, 2].min() == pytest.approx(-0.0136, rel=0.01)
    energy = sum(run.steps[f"{kind}_energy_J"] for kind in ("kinetic", "elastic", "potential"))
    drop = -run.steps["potential_energy_J"].min()
    assert -0.01 * drop < energy.min() and energy.max() < 1e-6 * drop


def test_a_body_in_contact_is_damped_in_full() -> None:
    """From the step after the one in which it lands until the one after it has left."""
    scene = fs.Scene("ball", dt=0.002, **EM)
    scene.add_floor()
    scene.add_soft("ball", fs.ball_tets(0.03, 4), fs.Elastic(2e5, 0.4, 1000.0), position=(0, 0, 0.0305))
    stepper = Stepper(scene, make_solver("auto"))
    pressed, memories = [], []
    for _ in range(60):
        pressed.append(bool(stepper.step().forces.force_sum.max() > 0.0))
        memories.append(bool(stepper.state.bodies[0]["touched"]))
    assert memories == pressed and 0 < sum(pressed) < 60

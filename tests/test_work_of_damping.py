"""Damping in the work and in the balance of forces of a step: with the wrong sign, these tests fail."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import femsim as fs

NO_GRAVITY = (0.0, 0.0, 0.0)
FORCE = 0.3


def energy_less_work(run: fs.Run) -> np.ndarray:
    """Kinetic and elastic energy less the work since the start, J."""
    return run.steps["kinetic_energy_J"] + run.steps["elastic_energy_J"] - run.steps["work_J"]


@pytest.mark.parametrize(
    "drive",
    [{"force": lambda t: FORCE}, {"position": lambda t: 0.02 * t, "stiffness": 50.0, "damping": 3.0}],
    ids=["force", "servo"],
)
def test_the_work_of_a_finger_is_less_by_what_its_joint_damps(drive: dict[str, Any]) -> None:
    """A finger on a standing base, no gravity: at theta = 1/2 its kinetic energy is the work of the step, to rounding."""
    scene = fs.Scene("finger", dt=0.01, duration=0.3, theta=0.5, gravity=NO_GRAVITY)
    finger = fs.Finger("one", fs.Box((0.01, 0.01, 0.01)), offset=(0, 0, 0), closing=(1, 0, 0), mass=0.2)
    hand = scene.add_gripper("hand", [finger], joint_damping=1.5)
    scene.drive(hand, fs.Motion([0.0], [(0, 0, 0)]))
    scene.drive(hand, fingers=True, **drive)
    run = fs.simulate(scene, tolerance=1e-12)
    speed = run.stepper.state.v[6]
    assert run.steps["kinetic_energy_J"][-1] == pytest.approx(0.5 * 0.2 * speed**2, rel=1e-12)
    np.testing.assert_allclose(energy_less_work(run), 0.0, atol=1e-9 * run.steps["work_J"].max())
    lost = run.steps["joint_loss_J"][-1]
    assert lost > 0.01 * run.steps["work_J"][-1]
    if "force" in drive:
        assert lost + 0.5 * 0.2 * speed**2 == pytest.approx(FORCE * run.stepper.state.q[7], rel=1e-9)
    if "force" in drive:  # the force itself does more work than is left of it
        assert run.steps["work_J"][-1] < 0.8 * FORCE * run.stepper.state.q[7]


@pytest.mark.parametrize(("theta", "share", "prony"), [(1.0, 0.1, ()), (0.5, 0.0, ()), (0.5, 0.0, ((0.5, 0.05),))])
def test_what_the_step_itself_takes_of_the_work_of_a_drive_is_told(
    theta: float, share: float, prony: tuple[tuple[float, float], ...]
) -> None:
    """Ten equal steps shear a light block by d: force k x at the end of each does k d^2 / 2 (1 + 1 / 10), half-way k d^2 / 2."""
    scene = fs.Scene("sheared", dt=0.01, duration=0.1, theta=theta, gravity=NO_GRAVITY)
    light = fs.Elastic(density=10.0, young_modulus=1e5, poisson_ratio=0.3, prony=prony)
    block = scene.add_soft("block", fs.box_tets((0.02, 0.02, 0.02), 1), light)
    scene.hold(block, lambda x: x[:, 2] < 0.0, lambda t: ((0, 0, 0), (0, 0, 0)), name="below")
    scene.hold(block, lambda x: x[:, 2] > 0.0, lambda t: ((1e-3 * t, 0, 0), (0, 0, 0)), name="above")
    run = fs.simulate(scene)
    viscous = run.steps["viscous_loss_J"]
    assert bool(viscous[-1] > 0.1 * run.steps["elastic_energy_J"][-1]) is bool(prony)
    np.testing.assert_allclose(run.steps["other_loss_J"], -energy_less_work(run) - viscous, rtol=0, atol=1e-12)
    assert run.steps["other_loss_J"][-1] == pytest.approx(share * run.steps["elastic_energy_J"][-1], abs=2e-3 * 1e-7, rel=2e-3)


def free_body(kind: str, theta: float | None, **options: float) -> fs.Run:
    """A soft block or a rod that flies without gravity, and is damped against the world; None is the energy-momentum step."""
    scene = fs.Scene("free", dt=0.01, duration=0.1, gravity=NO_GRAVITY, theta=theta)
    drag = options.pop("drag", 0.0)
    rubber = fs.Elastic(1e5, 0.3, 1000.0, **options, name="rubber")
    velocity = (0.3, -0.2, 0.1)
    if kind == "soft":
        scene.add_soft("body", fs.box_tets((0.03, 0.02, 0.02), (3, 2, 2)), rubber, velocity=velocity)
    else:
        line = np.linspace((0, 0, 0), (0.1, 0, 0), 6)
        scene.add_rod("body", line, fs.circular_section(0.004), rubber, velocity=velocity, translational_damping=drag)
    return fs.simulate(scene, tolerance=1e-10)


@pytest.mark.parametrize(
    ("kind", "options", "rate"),
    [
        ("soft", {"rayleigh_alpha": 2.0}, 2.0),
        ("rod", {"rayleigh_alpha": 2.0}, 2.0),
        ("rod", {"drag": 0.1}, 0.1 / (1000.0 * np.pi * 0.004**2)),
    ],
    ids=["soft, alpha", "rod, alpha", "rod, drag"],
)
@pytest.mark.parametrize("theta", [1.0, 0.5, None])
def test_damping_against_the_world_balances(kind: str, options: dict[str, float], rate: float, theta: float | None) -> None:
    """Nothing else acts: v falls as the rule says each step, and the balance counts the force that does it."""
    run = free_body(kind, theta, **options)
    momentum = np.column_stack([run.steps[f"momentum_{c}_kgmps"] for c in "xyz"])
    mass = run.stepper.scene.body("body").mass
    part = theta or 0.5
    fall = ((1.0 - (1.0 - part) * 0.01 * rate) / (1.0 + part * 0.01 * rate)) ** np.arange(1.0, 11.0)
    np.testing.assert_allclose(momentum, mass * np.outer(fall, (0.3, -0.2, 0.1)), rtol=1e-6)
    assert run.steps["wrench_balance"].max() < 1e-8


@pytest.mark.parametrize("theta", [0.5, 1.0])
def test_a_drive_does_the_work_that_lifting_takes(theta: float) -> None:
    """A box is lifted at a constant speed: what the drive gives is what gravity takes, so the work of both is nothing."""
    scene = fs.Scene("lift", dt=0.01, duration=0.2, theta=theta)
    box = scene.add_rigid("box", fs.Box((0.02, 0.02, 0.02)), mass=0.5, velocity=(0, 0, 0.1))
    scene.drive(box, lambda t: (np.array([0.0, 0.0, 0.1 * t]), np.zeros(3)))
    scene.sensor("arm", box, kind="mount")
    run = fs.simulate(scene)
    assert run.sensors["arm"].force[:, 2] == pytest.approx(0.5 * 9.81, rel=1e-9)
    assert np.abs(run.steps["work_J"]).max() < 1e-9 * 0.5 * 9.81 * 0.02

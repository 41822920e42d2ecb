"""Soft bodies and rods that turn at the start: the field of a rigid body about the centre of mass, and runs that go on so."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

import femsim as fs

RUBBER = fs.Elastic(1e7, 0.3, 1000.0, name="rubber")
VELOCITY, OMEGA = np.array([0.3, -0.2, 0.5]), np.array([1.0, -2.0, 3.0])
TURN = np.array([0.4, 0.1, -0.7])


def heavy_on_one_side(points: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(np.where(points[:, 0] > points[:, 0].mean(), 0.01, 0.0))


@pytest.mark.parametrize(
    "options",
    [{}, {"law": "stable_neo_hookean"}, {"element": "quadratic"}, {"added_mass": heavy_on_one_side}],
    ids=["corotational", "hyperelastic", "quadratic", "carrying"],
)
def test_a_soft_body_starts_as_a_rigid_one_about_its_centre_of_mass(options: dict[str, object]) -> None:
    scene = fs.Scene("soft", theta=1.0)
    mesh = fs.box_tets((0.05, 0.02, 0.03), (3, 1, 2))
    scene.add_soft(
        "bar", mesh, RUBBER, position=(1.0, 2.0, 3.0), rotation=TURN, velocity=VELOCITY, angular_velocity=OMEGA,
        **options,  # type: ignore[arg-type]
    )  # fmt: skip
    body = scene.body("bar")
    x, mass = body.initial_q().reshape(-1, 3), body.node_mass  # type: ignore[attr-defined]
    centre = mass @ x / mass.sum()
    expected = [VELOCITY + np.cross(OMEGA, point - centre) for point in x]
    np.testing.assert_allclose(body.initial_v().reshape(-1, 3), expected, atol=1e-14)
    np.testing.assert_allclose(body.momentum(body.initial_q(), body.initial_v()), mass.sum() * VELOCITY, rtol=1e-12)


def test_a_rod_starts_as_a_rigid_one_about_its_centre_of_mass() -> None:
    """Centres and links: the kinetic energy is that of its mass and its inertia about the centre."""
    scene = fs.Scene("rod", theta=1.0)
    angle = np.linspace(0.0, 2.0, 9) ** 1.5  # links of different length
    points = 0.1 * np.column_stack([np.cos(angle), np.sin(angle), 0.3 * angle])
    scene.add_rod("arc", points, fs.circular_section(0.004), RUBBER, velocity=VELOCITY, angular_velocity=OMEGA)
    body = scene.body("arc")
    q, v = body.initial_q(), body.initial_v()
    x = q.reshape(-1, 7)[:, :3]
    mass = body.link_mass  # type: ignore[attr-defined]
    centre = mass @ x / mass.sum()
    expected = [[*(VELOCITY + np.cross(OMEGA, point - centre)), *OMEGA] for point in x]
    np.testing.assert_allclose(v.reshape(-1, 6), expected, atol=1e-14)
    np.testing.assert_allclose(body.momentum(q, v), mass.sum() * VELOCITY, rtol=1e-12)
    arm, axes, own = x - centre, body.axes(q), body.link_inertia  # type: ignore[attr-defined]
    inertia = sum(
        m * (r @ r * np.eye(3) - np.outer(r, r)) + a @ np.diag(i) @ a.T for m, r, a, i in zip(mass, arm, axes, own, strict=True)
    )
    energy = 0.5 * mass.sum() * VELOCITY @ VELOCITY + 0.5 * OMEGA @ inertia @ OMEGA
    assert body.kinetic_energy(q, v) == pytest.approx(energy, rel=1e-12)


@pytest.mark.parametrize("kind", ["soft", "rod"])
def test_a_bar_goes_on_turning_as_a_rigid_one(kind: str) -> None:
    """4 rad/s for 0.1 s without gravity: turned by 0.4 rad, to the first order of the step; its centre has moved by v t."""
    scene = fs.Scene("free", dt=1e-3, duration=0.1, theta=0.5, gravity=(0, 0, 0))
    velocity, omega = (0.1, 0.0, 0.0), (0.0, 0.0, 4.0)
    if kind == "soft":
        scene.add_soft("bar", fs.box_tets((0.1, 0.02, 0.02), (5, 1, 1)), RUBBER, velocity=velocity, angular_velocity=omega)
    else:
        line = np.linspace((-0.05, 0, 0), (0.05, 0, 0), 11)
        scene.add_rod("bar", line, fs.circular_section(0.01), RUBBER, velocity=velocity, angular_velocity=omega)
    body, stride = scene.body("bar"), 3 if kind == "soft" else 7
    old = body.initial_q()
    run = fs.simulate(scene, tolerance=1e-8)
    new = run.stepper.state.q
    (ax, ay), (bx, by) = (np.subtract(*q.reshape(-1, stride)[[-1, 0], :2]) for q in (old, new))
    assert np.arctan2(ax * by - ay * bx, ax * bx + ay * by) == pytest.approx(0.4, rel=0.01)
    np.testing.assert_allclose(body.centre_of_mass(new), [0.01, 0, 0], atol=1e-9)

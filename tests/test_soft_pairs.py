"""Softness of pairs in scenes: depth by force, rebound, energy and verdicts, beside closed forms and a plain recursion."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import femsim as fs
from contact import make_solver
from contact.masses import softened
from contact.masses_kernels import BlockRows
from femsim.step.rows_kernels import Given, normal_offsets
from femsim.step.stepper import Stepper

G = 9.81
WAYS: dict[str, dict[str, Any]] = {
    "energy-momentum": {"integrator": "energy-momentum"}, "mid-point": {"theta": 0.5}, "backward_euler": {"theta": 1.0},
}  # fmt: skip
EACH_WAY = pytest.mark.parametrize("way", WAYS)


def ball_on_floor(way: str, softness: float, height: float, *, dt: float = 0.001, speed: float = 0.0) -> Stepper:
    scene = fs.Scene("soft", dt=dt, **WAYS[way])
    floor = scene.add_floor()
    ball = scene.add_rigid("ball", fs.Sphere(0.02), mass=0.5, position=(0, 0, 0.02 + height), velocity=(0, 0, speed))
    scene.set_softness(ball, floor, softness)
    return Stepper(scene, make_solver("auto", tolerance=1e-11))


def plain_drop(way: str, softness: float, height: float, speed: float, steps: int) -> list[tuple[float, float]]:
    """Heights (m) and velocities (m/s) of a ball of 0.5 kg at steps of 1 ms by the equations of one contact."""
    theta, m, dt, out, x, v = 1.0 if way == "backward_euler" else 0.5, 0.5, 0.001, [], height, speed
    for _ in range(steps):
        # m (v_hat - v) / (theta dt) = f - m g and x + dt v_hat + softness f = 0
        free = v - theta * dt * G
        force = max(0.0, -(x + dt * free) / (softness + theta * dt**2 / m))
        v_hat = free + theta * dt * force / m
        v, x = v + (v_hat - v) / theta, x + dt * v_hat
        if force > 0.0 and theta < 1.0:  # what the second half presses further, as long as it does not pull
            v = max(v - dt * force / m, v / (1.0 + (1.0 - theta) * dt**2 / (softness * m)))
        out.append((x, v))
    return out


@EACH_WAY
@pytest.mark.parametrize("softness", [1e-4, 1e-6, 1e-8])
def test_a_ball_lands_as_one_spring_says(way: str, softness: float) -> None:
    stepper = ball_on_floor(way, softness, 0.002, speed=-0.3)
    steps = 40
    found, held = [], []
    for _ in range(steps):
        report = stepper.step()
        found.append((stepper.state.q[2] - 0.02, stepper.state.v[2]))
        held.append(report.kinetic_energy + report.elastic_energy + report.potential_energy)
    assert np.array(found) == pytest.approx(np.array(plain_drop(way, softness, 0.002, -0.3, steps)), rel=1e-7, abs=1e-10)
    assert np.diff(held).max() < 1e-11 and min(height for height, _ in found) < 0.0


@EACH_WAY
@pytest.mark.parametrize(("gap", "speed", "dt"), [(1e-4, 0.1, 0.001), (2e-3, 0.2, 0.01)])
def test_a_contact_that_just_closes_is_solved(way: str, gap: float, speed: float, dt: float) -> None:
    """Its force and velocity are what rounding leaves of gap / dt, and no part of one another: a round number was *wrong*."""
    scene = fs.Scene("soft", dt=dt, gravity=(0, 0, 0), **WAYS[way])
    ball = scene.add_rigid("ball", fs.Sphere(0.01), mass=0.05, position=(0, 0, 0.01 + gap), velocity=(0, 0, -speed))
    scene.set_softness(ball, scene.add_floor(), 1e-4)
    simulation = fs.Simulation(scene).step()
    assert simulation.verdict == "good" and abs(simulation.pose("ball")[1][2] - 0.01) < 1e-15
    assert simulation.report.metrics.contact_residual < 1e-9


@EACH_WAY
def test_a_weight_rests_as_deep_as_its_contacts_are_soft(way: str) -> None:
    """A box on four corners sinks by a quarter of c m g; put there, it stays, though contact undoes other penetrations."""
    softness, sunk = 1e-4, 0.25e-4 * 0.5 * G
    scene = fs.Scene("rest", dt=0.01, correction=0.2, **WAYS[way])
    floor = scene.add_floor()
    box = scene.add_rigid("box", fs.Box((0.02, 0.02, 0.02)), mass=0.5, position=(0, 0, 0.02 - sunk))
    scene.set_softness(box, floor, softness)
    stepper = Stepper(scene, make_solver("auto", tolerance=1e-11))
    assert stepper.state.energy == pytest.approx(0.5 * sunk * 0.5 * G, rel=1e-12)
    for _ in range(3):
        report = stepper.step()
        assert stepper.state.q[2] == pytest.approx(0.02 - sunk, abs=1e-11) and np.abs(stepper.state.v).max() < 1e-8
        assert report.contacts.lam[:, 0] == pytest.approx(np.full(4, 0.125 * G), rel=1e-6)
        assert report.elastic_energy == pytest.approx(0.5 * sunk * 0.5 * G, rel=1e-6)
        assert report.max_penetration == pytest.approx(sunk, rel=1e-6) and not report.sank
        assert report.vitals.deepest.depth < 1e-10 and report.vitals.pushed == 0.0


def test_contacts_are_hard_in_the_limit() -> None:
    for way in WAYS:
        nearly, hard = ball_on_floor(way, 1e-13, 0.0005, speed=-1.0), ball_on_floor(way, 0.0, 0.0005, speed=-1.0)
        for _ in range(3):
            nearly.step(), hard.step()
            assert nearly.state.v == pytest.approx(hard.state.v, abs=1e-6), way
            assert nearly.state.q == pytest.approx(hard.state.q, abs=1e-9), way


@pytest.mark.parametrize("kind", ["floor", "each other", "by faces"])
def test_contacts_of_deforming_bodies_give_way(kind: str) -> None:
    """Each contact of a cube at rest is c times its force deep, and together they bear its weight."""
    rubber = fs.Elastic(1e5, 0.3, 1000.0, name="rubber")
    scene = fs.Scene("cubes", dt=0.01, theta=1.0)
    floor = scene.add_floor()
    if kind == "floor":
        below = floor
    elif kind == "each other":
        below = scene.add_soft("below", fs.box_tets((0.02, 0.02, 0.01), (2, 2, 1)), rubber, position=(0, 0, 0.005))
    else:
        below = scene.add_obstacle("below", fs.Box((0.01, 0.01, 0.005)), position=(0.0, 0.0, 0.005))
        scene.contact_by_faces("below")
    cube = scene.add_soft(
        "cube", fs.box_tets((0.03, 0.03, 0.03), (2, 2, 2)), rubber, position=(0, 0, 0.015 if kind == "floor" else 0.025)
    )
    scene.set_softness(cube, below, 2e-3)
    stepper = Stepper(scene, make_solver("auto"))
    borne = []
    for _ in range(120):
        contacts = stepper.step().contacts
        pressing = (contacts.lam[:, 0] > 1e-9) & (contacts.part == scene.part_names.index("cube")).any(axis=1)
        borne.append(contacts.lam[pressing, 0].sum())
    # by faces, contacts come and go with the depth, by turns: 4 % more and less than the weight
    assert np.mean(borne[-2:]) == pytest.approx(0.027 * G, rel=1e-3) and pressing.sum() >= 3
    if kind != "by faces":
        assert borne[-1] == pytest.approx(borne[-2], rel=1e-3)
        assert contacts.gap[pressing] == pytest.approx(-2e-3 * contacts.lam[pressing, 0], rel=1e-3, abs=1e-9)


def test_joined_bodies_on_soft_contacts() -> None:
    """Two boxes welded to one rest on eight corners; the velocities at the end come from masses that are joined."""
    scene = fs.Scene("welded", dt=0.01, theta=0.5)
    floor, sunk = scene.add_floor(), 1e-4 * 1.0 * G / 8
    for name, x in (("a", 0.0), ("b", 0.041)):
        scene.add_rigid(name, fs.Box((0.02, 0.02, 0.02)), mass=0.5, position=(x, 0, 0.02))
        scene.set_softness(name, floor, 1e-4)
    scene.join("a", "b", "weld", at=(0.0205, 0, 0.02))
    stepper = Stepper(scene, make_solver("auto"))
    held = []
    for _ in range(60):
        report = stepper.step()
        held.append(report.kinetic_energy + report.elastic_energy + report.potential_energy)
    assert report.max_penetration == pytest.approx(sunk, rel=1e-4) and np.diff(held).max() < 1e-10


def test_health_knows_how_far_contacts_give_way() -> None:
    """What softness explains is no penetration, up to half of the body; what is deeper is."""
    verdicts = []
    for softness in (1e-3, 4e-3):
        stepper = ball_on_floor("backward_euler", softness, -softness * 0.5 * G)
        report = stepper.step()
        verdicts.append(report.vitals.deepest)
        assert any("soft" in note for note in stepper.notes)
    assert verdicts[0].share < 1e-6
    assert verdicts[1].depth < 1e-9  # 19.6 mm of 40
    scene = fs.Scene("deep", dt=0.001, theta=1.0)
    floor = scene.add_floor()
    ball = scene.add_rigid("ball", fs.Sphere(0.02), mass=0.5, position=(0, 0, 0.021), velocity=(0, 0, -1.0))
    scene.set_softness(ball, floor, 0.1)
    run = fs.simulate(scene, duration=0.04)
    assert any("in each other" in reason["text"] for reason in run.info["health"]["reasons"])


def test_the_energy_of_soft_contacts_is_no_gain() -> None:
    """A ball that rebounds from a soft floor has its energy from there, and not from nowhere."""
    scene = fs.Scene("rebound", dt=0.001)
    floor = scene.add_floor()
    ball = scene.add_rigid("ball", fs.Sphere(0.02), mass=0.5, position=(0, 0, 0.021), velocity=(0, 0, -0.5))
    scene.set_softness(ball, floor, 1e-3)
    run = fs.simulate(scene, duration=0.1)
    speed = run.steps["momentum_z_kgmps"] / 0.5
    assert speed.max() > 0.4 and run.steps["kinetic_energy_J"].min() < 0.01 * run.steps["kinetic_energy_J"][0]
    assert run.info["health"]["verdict"] == "good" and run.status == "converged"


def test_softness_goes_on_the_normal_diagonal_alone() -> None:
    blocks = np.arange(27.0).reshape(3, 3, 3)
    W = BlockRows(np.array([0, 2, 3]), np.array([1, 0, 1]), blocks.copy())
    expected = blocks.copy()
    expected[1, 0, 0] += 5.0
    expected[2, 0, 0] += 7.0
    np.testing.assert_array_equal(softened(W, np.array([5.0, 7.0])).blocks, expected)


def test_offsets_of_soft_contacts_are_whole() -> None:
    given = Given(np.zeros(0, dtype=bool), np.zeros(0), 0.01, 0.2, 0.05)
    gap = np.array([1e-3, -1e-4, -1e-2, -1e-2])
    assert normal_offsets(gap, given) == pytest.approx([0.1, -0.002, -0.05, -0.05])
    assert normal_offsets(gap, given, np.array([0.0, 0.0, 0.0, 1e-5])) == pytest.approx([0.1, -0.002, -0.05, -1.0])


@pytest.mark.parametrize("wrong", [-0.1, float("inf"), float("nan"), True, "soft"])
def test_softness_is_validated(wrong: Any) -> None:
    scene = fs.Scene("wrong", theta=1.0)
    floor = scene.add_floor()
    box = scene.add_rigid("box", fs.Box((0.02, 0.02, 0.02)), mass=0.1)
    with pytest.raises(fs.InputError, match=r"softness of 'box' and 'floor' is .* in m/N"):
        scene.set_softness(box, floor, wrong)
    with pytest.raises(fs.InputError, match="softness: body or surface 'ceiling' is unknown"):
        scene.set_softness(box, "ceiling", 0.5)


def test_a_pair_is_soft_or_rebounds() -> None:
    scene = fs.Scene("both", theta=1.0)
    floor = scene.add_floor()
    box = scene.add_rigid("box", fs.Box((0.02, 0.02, 0.02)), mass=0.1, position=(0, 0, 0.02))
    scene.set_softness(box, floor, 1e-6)
    scene.set_restitution(box, floor, 0.5)
    with pytest.raises(fs.InputError, match="have a softness and a restitution"):
        Stepper(scene, make_solver("auto"))
    scene.set_restitution(box, floor, 0.0)
    run = fs.simulate(scene, duration=scene.dt)
    assert run.info["softness"] == [{"bodies": ["floor", "box"], "m_per_N": 1e-6}]
    scene.set_softness(box, floor, 0.0)
    assert fs.simulate(scene, duration=scene.dt).info["softness"] == []

"""Bodies on what turns: a box sticks to a table whatever else there is in the scene, a roller turns beneath one."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

import femsim as fs

TURNS = 5.0  # rad/s
AT = np.array([0.1, 0.0, 0.005])  # m, of the box on the table


def on_a_table(
    mass: float, *, dt: float = 0.01, heavy: float = 0.0, driven: bool = False, theta: float | None = None
) -> fs.Scene:
    """Box of 0.1 kg; the table, of this mass (kg), turns on a hinge or is driven; with a heavy box (kg) at rest far away."""
    scene = fs.Scene("table", dt=dt, duration=0.4, theta=theta)
    slab, turn = fs.Box((0.3, 0.3, 0.01)), (0.0, 0.0, TURNS)
    if driven:
        scene.add_rigid("table", slab, mass=mass, position=(0.0, 0.0, -0.01))
        scene.drive("table", lambda t: (np.zeros(3), np.array([0.0, 0.0, TURNS * t])))
    else:
        scene.add_rigid("table", slab, mass=mass, position=(0.0, 0.0, -0.01), angular_velocity=turn)
        scene.join("table", "world", "hinge", at=(0.0, 0.0, 0.0), axis=(0.0, 0.0, 1.0))
    moves = (0.0, TURNS * AT[0], 0.0)
    scene.add_rigid("box", fs.Box((0.03, 0.03, 0.005)), mass=0.1, position=AT, velocity=moves, angular_velocity=turn)
    scene.set_friction("box", "table", 0.5)
    if heavy:
        scene.add_floor(-1.0)
        scene.add_rigid("heavy", fs.Box((0.5, 0.5, 0.5)), mass=heavy, position=(5.0, 0.0, -0.5))
    return scene


def crept(simulation: fs.Simulation) -> float:
    """How far the box has moved on the table, m."""
    turned, centre = simulation.pose("table")
    return float(np.linalg.norm(turned.T @ (simulation.pose("box")[1] - centre) - AT - [0.0, 0.0, 0.01]))


@pytest.mark.parametrize(
    ("scene", "most"),
    [
        pytest.param(on_a_table(0.5), 5e-6, id="light"),
        pytest.param(on_a_table(0.5, heavy=500.0), 5e-6, id="something heavy elsewhere"),
        pytest.param(on_a_table(20.0), 5e-6, id="heavy table"),
        pytest.param(on_a_table(20.0, dt=0.002), 5e-6, id="short steps"),
        pytest.param(on_a_table(0.5, heavy=500.0, driven=True), 5e-6, id="driven"),
        pytest.param(on_a_table(20.0, theta=1.0), 6e-5, id="theta rule"),
        pytest.param(on_a_table(20.0, theta=1.0, dt=0.005), 1.5e-5, id="theta rule, a fourth in half the step"),
        pytest.param(on_a_table(0.5, driven=True, theta=1.0), 5e-6, id="driven by the theta rule"),
    ],
)
def test_a_box_sticks_to_a_table_that_turns(scene: fs.Scene, most: float) -> None:
    """Along the tangents of its steps it would creep outwards by r w^2 dt / 2 a second, 12.5 mm at 10 ms, and miss few forces.

    The first steps need a second linearisation, the others are linearised ahead.
    """
    simulation, solves = fs.Simulation(scene), []
    for _ in range(round(scene.duration / scene.dt)):
        simulation.step()
        solves.append(simulation.report.solves)
    assert simulation.verdict == "good"
    assert crept(simulation) < most
    assert np.mean(solves) < 1.2


@pytest.mark.parametrize("theta", [None, 1.0])
@pytest.mark.parametrize("turns", [0.5, 2.0, 10.0])
def test_a_driven_roller_turns_beneath_a_box(turns: float, theta: float | None) -> None:
    """The box slides up and down only: with the way of the roller bent along normals it would sink by (dt w)^2 r / 2 a step."""
    scene = fs.Scene("roller", dt=0.01, duration=0.2, theta=theta)
    scene.add_rigid("roller", fs.Cylinder(0.05, 0.1), mass=2.0, rotation=(0.5 * math.pi, 0.0, 0.0))
    scene.drive("roller", lambda t: (np.zeros(3), np.array([0.0, turns * t, 0.0])))
    scene.add_rigid("box", fs.Box((0.04, 0.04, 0.01)), mass=0.5, position=(0.0, 0.0, 0.06))
    scene.join("box", "world", "slider", at=(0.0, 0.0, 0.05), axis=(0.0, 0.0, 1.0))
    scene.set_friction("box", "roller", 0.3)
    simulation = fs.Simulation(scene)
    simulation.step(20)
    assert simulation.verdict == "good"
    assert simulation.pose("box")[1][2] == pytest.approx(0.06, abs=1e-9)
    assert simulation.row()["max_penetration_m"] < 1e-9


@pytest.mark.parametrize("theta", [None, 1.0])
def test_a_hand_turns_a_rigid_box(theta: float | None) -> None:
    """Its four corners on a pad are led as far as a body goes that turns as the hand does: none of them slips."""
    scene = fs.Scene("hand", dt=0.01, duration=0.6, gravity=(0.0, 0.0, 0.0), theta=theta)
    scene.add_rigid("cube", fs.Box((0.01, 0.01, 0.01)), mass=0.02, position=(0.1, 0.0, 0.0))
    pad = fs.Box((0.02, 0.002, 0.02))
    hand = scene.add_gripper(
        "hand",
        [fs.Finger("left", pad, (0.1, 0.0125, 0.0), (0, -1, 0)), fs.Finger("right", pad, (0.1, -0.0125, 0.0), (0, 1, 0))],
    )
    scene.set_friction("cube", hand, 0.8)
    scene.drive(hand, fs.Motion([0.3, 0.6], [(0, 0, 0), (0, 0, 0)], [(0, 0, 0), (0, 0, 0.5)]))
    scene.drive(hand, fingers=["left"], position=fs.Profile([0.0, 0.1], [0.0, 5e-4]), stiffness=1e6)
    scene.drive(hand, fingers=["right"], force=fs.Profile([0.0, 0.2], [0.0, 20.0]))
    simulation = fs.Simulation(scene)
    simulation.step(30)
    before = simulation.pose("cube")[1]
    simulation.step(30)
    assert simulation.verdict == "good"
    turned, centre = simulation.pose("cube")
    assert turned.T @ centre == pytest.approx(before, abs=1e-6)
    assert turned[1, 0] == pytest.approx(math.sin(0.5), abs=1e-6)


def test_friction_on_a_drum_does_not_depend_on_whether_it_turns_or_the_ring_round_it() -> None:
    """By backward Euler at 0.1 rad a step; with levers of the middle and normals of the end a ring that turned had 0.84 of it.

    What friction takes lacked as much where the pair has restitution: ways that are bent counted as work of impacts.
    """
    box, inner, thick, rate = fs.box_tets((1.0, 1.0, 1.0), (32, 2, 1)), 0.0295, 0.004, 10.0
    found = []
    angle, away = 2.0 * np.pi * (box.points[:, 0] + 0.5), inner + thick * (box.points[:, 2] + 0.5)
    round_it = np.column_stack([away * np.sin(angle), 0.012 * box.points[:, 1], away * np.cos(angle)])
    _, first, number = np.unique(np.round(round_it, 9), axis=0, return_index=True, return_inverse=True)
    ring, rubber = fs.make_tetmesh(round_it[first], number.ravel()[box.tets]), fs.Elastic(3e5, 0.4, 1000.0, name="rubber")

    def squeezed(x: np.ndarray) -> np.ndarray:
        radius = np.hypot(x[:, 0], x[:, 2])
        wider = 1.0 + 5.5e-4 * np.clip(1.0 - (radius - inner) / thick, 0.0, 1.0) / radius
        return x * np.column_stack([wider, np.ones(len(x)), wider])

    def turning(speed: float) -> Callable[[float], tuple[np.ndarray, np.ndarray]]:
        return lambda t: (np.zeros(3), np.array([0.0, speed * t, 0.0]))

    for turns in (0.0, 1.0):
        scene = fs.Scene("drum", dt=0.01, duration=0.2, theta=1.0, gravity=(0.0, 0.0, 0.0))
        scene.add_soft("ring", ring, rubber, start_points=squeezed)
        scene.add_rigid("drum", fs.Cylinder(0.03, 0.02), mass=0.2, rotation=(np.pi / 2, 0.0, 0.0))
        scene.hold("ring", lambda x: np.hypot(x[:, 0], x[:, 2]) > 0.0332, turning(turns * rate))
        scene.drive("drum", turning((turns - 1.0) * rate))
        scene.set_friction("ring", "drum", 0.3)
        scene.set_restitution("ring", "drum", 0.5)
        scene.sensor("drum", "drum")
        scene.sensor("ring", "ring")
        run = fs.simulate(scene)
        drum, around = (run.sensors[name].torque[-5:, 1].mean() for name in ("drum", "ring"))
        assert drum == pytest.approx(-around, rel=1e-6)
        found.append((drum, run.steps["friction_loss_J"][-1]))
    assert found[1] == pytest.approx(found[0], rel=0.03)


@pytest.mark.parametrize("theta", [None, 1.0])
def test_a_rod_swings_beside_a_block_of_100_t_as_alone(theta: float | None) -> None:
    """What holds its end bears the same: it lacked a hundredth, as forces of the block made the tolerance."""

    def root(mass: float, tolerance: float) -> np.ndarray:
        scene = fs.Scene("rod", dt=0.005, duration=0.05, theta=theta, nonlinear_tolerance=tolerance)
        end = fs.RodEnd("clamped", motion=lambda t: (np.array([0.05 * t, 0.1 * t, 0.0]), np.array([0.0, 0.0, 2.0 * t])))
        points, silicone = np.linspace((0.0, 0.0, 0.0), (0.16, 0.0, 0.0), 9), fs.Elastic(1e8, 0.4, 1200.0)
        scene.add_rod("rod", points, fs.circular_section(0.003), silicone, start=end)
        scene.sensor("root", "rod", kind="start")
        if mass:
            scene.add_floor(-1.0)
            scene.add_rigid("block", fs.Box((0.5, 0.5, 0.5)), mass=mass, position=(5.0, 0.0, -0.5))
        run = fs.simulate(scene)
        assert run.verdict == "good"
        return np.asarray(run.sensors["root"].force)

    alone, beside = root(0.0, 1e-7), root(1e5, 1e-4)
    assert np.abs(beside - alone).max() <= 4e-4 * np.abs(alone).max()

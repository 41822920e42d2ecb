"""Scenes of driven robots and a pulley: what they pull, push, bear and turn against closed forms."""

from __future__ import annotations

import math

import numpy as np
import pytest

import femsim as fs
from scenes import robot_boxes

G = 9.81


def good(run: fs.Run) -> bool:
    return run.status == "converged" and run.verdict == "good" and run.info["notes"] == []


# ---------------------------------------------------------------------- a cable on a pulley

#: Radius of the pulley and radius at which the cable runs, m.
INNER, LEVER = 0.02, 0.022


@pytest.mark.parametrize("bearing", [0.0, 0.01])
def test_a_pulley_that_turns_takes_what_its_bearing_takes(bearing: float) -> None:
    """(T2 - T1) (R + r) is the friction of the bearing, and the pulley turns as far as the cable goes."""
    run = fs.simulate(fs.load_scene("pulley", bearing=bearing), duration=0.7)
    assert good(run)
    late = run.steps["time_s"] > 0.35
    pull = np.linalg.norm(run.sensors["pull"].force, axis=1)[late].mean()
    assert pull == pytest.approx(1.0 + bearing / LEVER, rel=1e-3)
    assert run.sensors["bearing"].torque[late, 1].mean() == pytest.approx(-bearing, abs=1e-8)
    # the bearing bears both pulls
    assert run.sensors["bearing"].force[late, 2].mean() == pytest.approx(1.0 + pull, rel=2e-3)
    axis = run.stepper.link_pose(1)[0][:, 0]
    assert math.atan2(-axis[2], axis[0]) == pytest.approx(0.02 * 0.7 / LEVER, rel=0.01)


def test_a_pulley_that_its_bearing_holds_is_a_capstan() -> None:
    """T2 = T1 exp(k theta), k = mu R / (R + r) (1 - k^2 r / R) for a cable that is bent by the friction at its surface."""
    run = fs.simulate(fs.load_scene("pulley", bearing=0.2), duration=0.7)
    assert good(run)
    np.testing.assert_allclose(run.stepper.link_pose(1)[0][0], [1.0, 0.0, 0.0], atol=1e-8)
    pull = np.linalg.norm(run.sensors["pull"].force, axis=1)[run.steps["time_s"] > 0.35].mean()
    assert pull == pytest.approx(math.exp(0.3 * math.pi * INNER / LEVER), rel=0.012)
    k = 0.3 * INNER / LEVER
    for _ in range(20):
        k = 0.3 * INNER / LEVER * (1.0 - k * k * (LEVER - INNER) / INNER)
    assert pull == pytest.approx(math.exp(k * math.pi), rel=0.005)


# ---------------------------------------------------------------------- a loop that pushes boxes


def test_a_crank_pushes_boxes_by_the_work_of_friction() -> None:
    """All boxes go the stroke less the gap; the motor gives what friction and a first blow take; its torque is F dx / dangle."""
    run = fs.simulate(fs.load_scene("crank_pusher"))
    assert good(run)
    ways = [np.ptp(run.markers[f"box_{k}"].position[:, 0]) for k in range(3)]
    np.testing.assert_allclose(ways, 2.0 * 0.05 - 0.002, atol=1e-7)
    taken = 0.4 * 0.2 * G * sum(ways)
    assert run.steps["friction_loss_J"][-1] == pytest.approx(taken, rel=1e-6)
    angle, torque = (run.gauges["motor"].values[name] for name in ("angle_rad", "torque_Nm"))
    work = float(torque @ np.diff(angle, prepend=math.pi))
    assert taken < work < 1.005 * taken
    # where the slide goes fastest nothing is accelerated: the push is the friction of all boxes
    guide = run.gauges["guide"].values["position_m"]
    fastest = int(np.argmax(np.diff(guide))) + 1
    push = -run.sensors["push"].force[:, 0]
    assert push[fastest] == pytest.approx(0.4 * 3 * 0.2 * G, rel=0.02)
    per_angle = -0.05 * np.sin(angle) * (1.0 + 0.05 * np.cos(angle) / np.sqrt(0.14**2 - (0.05 * np.sin(angle)) ** 2))
    assert torque[fastest] == pytest.approx(push[fastest] * per_angle[fastest], rel=0.01)
    assert run.sensors["loop"].force[fastest, 0] == pytest.approx(-push[fastest], rel=0.02)


# ---------------------------------------------------------------------- quadrupeds


def test_a_heap_of_quadrupeds_comes_to_rest_and_weighs_what_it_weighs() -> None:
    run = fs.simulate(fs.load_scene("quadruped_drop"))
    assert good(run)
    assert run.steps["kinetic_energy_J"][-1] < 1e-6
    np.testing.assert_allclose(run.sensors["floor"].force[-1], [0.0, 0.0, -8 * 16.24 * G], atol=1e-5 * 8 * 16.24 * G)
    assert run.steps["max_penetration_m"].max() < 1e-3


def test_the_feet_of_one_quadruped_bear_its_weight() -> None:
    run = fs.simulate(fs.load_scene("quadruped_drop", robots=1))
    assert good(run)
    feet = sum(series.force[-1] for name, series in run.sensors.items() if name != "floor")
    np.testing.assert_allclose(feet, [0.0, 0.0, 16.24 * G], atol=1e-6 * 16.24 * G)


# ---------------------------------------------------------------------- a nut on a bolt


def test_a_hand_screws_a_nut_down_by_a_pitch_a_turn() -> None:
    """The way of the nut is that of the wrist, and the torque that of a screw between the radii of its flanks."""
    run = fs.simulate(fs.load_scene("nut_by_hand"))
    assert good(run)
    angle, torque = (run.gauges["wrist"].values[name] for name in ("angle_rad", "torque_Nm"))
    sunk = run.markers["nut"].position[:, 2] - run.markers["nut"].position[0, 2]
    assert angle[-1] == pytest.approx(-0.5 * math.pi, abs=1e-9)
    apart = np.abs(sunk - 0.005 * angle / (2.0 * math.pi))
    assert np.median(apart) < 1e-9 and apart.max() < 5e-6  # it may hang for single steps, within the play
    moving = (run.steps["time_s"] > 0.3) & (run.steps["time_s"] < 1.3)
    load = -run.sensors["bolt"].force[moving, 2].mean()
    assert load == pytest.approx(100.0 + G * run.stepper.scene.body("nut").mass, rel=1e-3)
    slope = 0.1 / math.cos(math.pi / 6.0)
    bounds = [load * (slope * r - 0.005 / (2.0 * math.pi)) / (1.0 + slope * 0.005 / (2.0 * math.pi * r)) for r in (0.0215, 0.024)]
    assert bounds[0] < -torque[moving].mean() < bounds[1]
    # the jaws press by their motor and carry the press of the slide
    carried = run.sensors["left"].force + run.sensors["right"].force
    assert carried[moving, 2].mean() == pytest.approx(100.0, rel=1e-4)


# ---------------------------------------------------------------------- an arm and a cable


def test_an_arm_winds_a_cable_with_the_force_of_a_given_path() -> None:
    """Solved as exactly as it goes, to the first second of winding; the wrist bears this force and the weight of the hand."""
    runs = []
    for name in ("arm_winds_cable", "cable_winding"):
        scene = fs.load_scene(name, links=80, duration=6.0)
        scene.nonlinear_tolerance = 1e-8
        runs.append(fs.simulate(scene, tolerance=1e-9))
        assert good(runs[-1])
    tool, given = (run.sensors["tool"].force for run in runs)
    assert np.linalg.norm(given, axis=1).max() > 0.35
    np.testing.assert_allclose(tool, given, atol=1e-6)
    slow = runs[0].steps["time_s"] < 4.9  # straight up: after that it goes round, and the hand is accelerated
    hand = np.array([0.0, 0.0, 0.66 * G])
    np.testing.assert_allclose((runs[0].sensors["wrist"].force + tool)[slow][30:], np.tile(hand, (slow.sum() - 30, 1)), atol=0.02)


# ---------------------------------------------------------------------- an arm and a bottle


def test_what_an_arm_pours_is_in_the_pot_and_not_at_its_wrist() -> None:
    run = fs.simulate(fs.load_scene("pouring", layers=1, dt=0.003), duration=2.199)
    assert good(run)
    weight = 7 * 2500.0 * 4.0 / 3.0 * math.pi * 0.006**3 * G
    wrist, floor = run.sensors["wrist"].force[:, 2], run.sensors["floor"].force[:, 2]
    settled = int(0.2 / 0.003)
    assert wrist[settled] - wrist[-1] == pytest.approx(weight, rel=1e-4)
    assert wrist[-1] == pytest.approx((0.66 + 0.1) * G, rel=1e-6)
    # they still roll and meet there: the floor bears their weight and gives them what momentum they gain, each step
    gained = np.diff(run.steps["momentum_z_kgmps"])[-33:] / 0.003
    np.testing.assert_allclose(floor[settled] - floor[-33:], weight + gained, rtol=1e-4)
    system, state = run.stepper.system, run.stepper.state
    places = [state.q[q][:3] for body, q in zip(system.bodies, system.q_slices, strict=True) if body.name.startswith("sphere")]
    away = np.array(places) - [0.42, -0.095, 0.0]
    assert (np.hypot(*away[:, :2].T) < 0.08).all() and (away[:, 2] < 0.05).all()


# ---------------------------------------------------------------------- a robot led by its tool


def energy(arm: fs.Robot, place: np.ndarray) -> float:
    """Of weight and spring, J, where the tool is at a place, m; independent of the dynamics."""
    joints = arm.reach("tool", place, (0.0, 0.0, 0.0), joints=robot_boxes.BENT, tool=(robot_boxes.REACH, 0.0, 0.0))
    joints |= robot_boxes.compensator(joints["shoulder"])
    weight = sum(G * link.mass * arm.pose(link.name, joints, tool=link.centre)[0][2] for link in arm.links)
    return float(weight + 0.5 * 2.0e4 * (joints["stroke"] + 0.15) ** 2)


def test_a_robot_led_by_its_tool_takes_one_iteration_and_keeps_its_loop_closed() -> None:
    """The loop holds two ways more than it must, and the boom weighs 75 times the tool (papers/003, test 3)."""
    sim = fs.Simulation(fs.load_scene("robot_boxes", boxes=False), solver="admm")
    arm, lug = robot_boxes.robot(), robot_boxes.ROD - robot_boxes.SHOULDER - [0.0, 0.0, 0.5 * robot_boxes.BOOM]
    half = 0.5 * float(np.linalg.norm(robot_boxes.ROD - robot_boxes.TUBE))
    place, apart = np.array([robot_boxes.ROW, -1.3, robot_boxes.LEVEL]), []
    sim.step(10)
    slope = [(energy(arm, place + h) - energy(arm, place - h)) / 2e-5 for h in 1e-5 * np.eye(3)]
    np.testing.assert_allclose(sim.read("lead").force, slope, atol=1e-5)
    for _ in range(383):
        sim.step()
        assert sim.row()["iterations"] == sim.row()["solves"] <= 4
        (turned, rod), (leant, boom) = sim.pose("robot.rod"), sim.pose("robot.boom")
        apart.append(turned @ [half, 0.0, 0.0] + rod - leant @ lug - boom)
    assert np.abs(apart).max() < 1e-8
    assert sim.verdict == "good"


def test_boxes_that_a_robot_pushes_have_the_momentum_that_it_gives_them() -> None:
    """Of all forces on them: of the tool, of the floor, and their weight."""
    scene = fs.load_scene("robot_boxes")
    run = fs.simulate(scene, duration=0.85, tolerance=1e-9)
    assert good(run)
    system, state = run.stepper.system, run.stepper.state
    boxes = [v for body, v in zip(system.bodies, system.v_slices, strict=True) if body.name.startswith("box_")]
    assert len(boxes) == 15
    momentum = 8.0 * sum(state.v[v][:3] for v in boxes)
    impulse = -scene.dt * (run.sensors["push"].force + run.sensors["floor"].force).sum(axis=0) - [0.0, 0.0, 15 * 8.0 * G * 0.85]
    np.testing.assert_allclose(impulse, momentum, atol=1e-7)
    assert momentum[1] > 8.0  # two of the stacks go


# ---------------------------------------------------------------------- an arm and dishes


def test_a_hand_puts_a_bowl_on_a_plate() -> None:
    """Held, it weighs at the wrist; put down, the plate bears it and the hand is free."""
    run = fs.simulate(fs.load_scene("dishes_by_hand"), duration=1.8)
    assert good(run)
    wrist, at = run.sensors["wrist"].force[:, 2], (run.steps["time_s"] > 0.8) & (run.steps["time_s"] < 0.9)
    assert wrist[at].mean() == pytest.approx((0.66 + 0.15) * G, rel=0.02)
    assert wrist[-8] == pytest.approx(0.66 * G, rel=5e-5)  # in the end it begins to rise
    assert run.sensors["plate"].force[-1, 2] == pytest.approx((0.3 + 0.15) * G, rel=1e-4)
    bowl = run.markers["bowl"].position
    np.testing.assert_allclose(bowl[-1, :2], [0.40, 0.05], atol=2e-3)
    assert bowl[-1, 2] - bowl[0, 2] == pytest.approx(0.006, abs=1e-5)  # thickness of the plate


# ---------------------------------------------------------------------- tasks of an arm with compliant joints


def test_an_arm_screws_a_nut_onto_a_bolt() -> None:
    """It leans on one side of its flanks: they push it aside by tan 30 degrees of its load, and brake it as a screw is braked."""
    run = fs.simulate(fs.load_scene("arm_screws_nut"))
    assert good(run)
    turned = np.ptp(run.gauges["joint7"].values["angle_rad"]) / (2.0 * math.pi)
    sunk = float(run.markers["nut"].position[0, 2] - run.markers["nut"].position[-1, 2])
    assert turned == pytest.approx(2.65, abs=1e-3)  # 2.25 on the thread
    assert abs(sunk - 0.005 * turned) < 0.0002 * math.tan(math.pi / 6.0)  # within the play
    assert run.steps["max_penetration_m"].max() < 5e-6
    moving = (run.steps["time_s"] > 1.0) & (run.steps["time_s"] < 2.0)
    bolt, wrist = run.sensors["bolt"].force[moving].mean(axis=0), run.sensors["wrist"]
    np.testing.assert_allclose(wrist.force[moving].mean(axis=0) - bolt, [0.0, 0.0, (0.5 + 0.97) * G], atol=2e-3)
    load = -float(bolt[2])
    assert 4.0 < load < 6.0
    assert math.hypot(bolt[0], bolt[1]) == pytest.approx(load * math.tan(math.pi / 6.0), rel=0.02)
    slope = 0.1 / math.cos(math.pi / 6.0)
    bounds = [load * (slope * r - 0.005 / (2.0 * math.pi)) for r in (0.0215, 0.024)]
    assert bounds[0] < -wrist.torque[moving, 2].mean() < bounds[1]


def test_a_hand_piles_a_pot_of_fifty_times_the_mass_of_a_dish() -> None:
    run = fs.simulate(fs.load_scene("hand_piles_pot"))
    assert good(run)
    time = run.steps["time_s"]
    pot, plate = run.markers["pot_place"].position, run.markers["plate_place"].position
    np.testing.assert_allclose(pot[-1, :2], [0.40, 0.13], atol=1e-3)
    assert np.abs(pot[-20:] - pot[-1]).max() < 1e-7
    assert (
        np.abs(plate - plate[0]).max() < 1e-4
        and np.abs(run.markers["bowl_place"].position - run.markers["bowl_place"].position[0]).max() < 1e-4
    )
    # carried, it weighs at the wrist and in the fingers, and the floor has the dishes alone
    carried = (time > 0.8) & (time < 1.2)
    fingers = sum(run.sensors[f"finger{k}"].force for k in range(1, 5))
    assert fingers[carried, 2].mean() == pytest.approx(-5.0 * G, rel=0.02)
    hand = run.sensors["wrist"].force[0, 2]
    assert run.sensors["wrist"].force[carried, 2].mean() == pytest.approx(hand + 5.0 * G, rel=0.02)
    assert run.sensors["floor"].force[carried, 2].mean() == pytest.approx(-0.3 * G, rel=1e-6)
    # put down, the plate has it
    assert run.sensors["plate"].force[-1, 2] == pytest.approx(-5.0 * G, rel=1e-5)
    assert run.sensors["floor"].force[-1, 2] == pytest.approx(-5.3 * G, rel=1e-5)
    assert not fingers[-20:].any()

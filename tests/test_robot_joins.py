"""Links of robots as partners of joints, glue and rod ends: forces by hand, loops against quadrature, momentum, states."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from random_trees import random_body, slow_frames
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

import femsim as fs
from contact import make_solver
from femsim.base.rotations import quaternion_to_matrix
from femsim.model.bodies.tree_kernels import move
from femsim.step.stepper import Stepper
from materials import circular_section

G = 9.81


def bar(name: str, length: float, mass: float) -> fs.RobotLink:
    return fs.RobotLink.solid(name, fs.Piece(fs.Box((length / 2, 0.01, 0.01)), (length / 2, 0, 0)), mass)


def arm(**elbow: Any) -> fs.Robot:
    """A base with an upper arm that turns about z and a forearm about y, each 0.2 m long."""
    base = fs.RobotLink.solid("base", fs.Piece(fs.Box((0.03, 0.03, 0.03))), 1.0)
    joints = [
        fs.RobotJoint("shoulder", "base", "upper", axis=(0, 0, 1), position=(0, 0, 0.1)),
        fs.RobotJoint("elbow", "upper", "fore", axis=(0, 1, 0), position=(0.2, 0, 0), **elbow),
    ]
    return fs.Robot("arm", [base, bar("upper", 0.2, 0.8), bar("fore", 0.2, 0.5)], joints)


def still(t: float) -> float:
    return 0.0


def test_a_box_on_the_flange_weighs_on_every_motor_and_joint() -> None:
    scene = fs.Scene("flange", dt=0.01, duration=0.05)
    scene.add_robot(arm())
    scene.add_rigid("box", fs.Box((0.02, 0.02, 0.02)), mass=0.3, position=(0.42, 0, 0.1))
    scene.join("box", "arm.fore", at=(0.4, 0, 0.1), name="weld")
    for joint in ("shoulder", "elbow"):
        scene.drive_joint("arm", joint, still)
    scene.sensor("weld", "weld", kind="reaction")
    scene.sensor("elbow", "arm.elbow", kind="revolute")
    scene.sensor("wrench", "arm.elbow", kind="joint")
    scene.sensor("mount", "arm", kind="mount")
    run = fs.simulate(scene)
    moment = G * (0.5 * 0.1 + 0.3 * 0.22)
    assert run.status == "converged" and run.steps["wrench_balance"].max() < 1e-9
    assert run.gauges["elbow"].values["torque_Nm"][-1] == pytest.approx(-moment, abs=1e-9)
    np.testing.assert_allclose(run.sensors["weld"].force[-1], [0, 0, 0.3 * G], atol=1e-9)
    np.testing.assert_allclose(run.sensors["weld"].torque[-1], [0, -0.3 * G * 0.02, 0], atol=1e-9)
    np.testing.assert_allclose(run.sensors["wrench"].force[-1], [0, 0, 0.8 * G], atol=1e-9)
    np.testing.assert_allclose(run.sensors["wrench"].torque[-1], [0, -moment + 0.8 * G * 0.1, 0], atol=1e-9)
    np.testing.assert_allclose(run.sensors["mount"].force[-1], [0, 0, 2.6 * G], atol=1e-9)


@pytest.mark.parametrize("faces", [False, True])
def test_a_cube_glued_beside_an_exact_jaw_feels_no_force_of_it(faces: bool) -> None:
    """Glue and jaw both follow the link: contact at glued nodes read 45 kN, or steps did not converge."""
    robot = arm()
    jaw = fs.RobotLink.solid("jaw", fs.Piece(fs.Box((0.005, 0.01, 0.005)), (0, 0, 0)), 0.05)
    slide = fs.RobotJoint("slide", "fore", "jaw", "prismatic", axis=(0, 0, 1), position=(0.195, 0, -0.015), limits=(-0.01, 0.01))
    scene = fs.Scene("jaw", dt=0.01, duration=0.1)
    scene.add_robot(fs.Robot("arm", [*robot.links, jaw], [*robot.joints, slide]))
    rubber = fs.Elastic(5e5, 0.4, 1000.0, rayleigh_beta=0.005, name="rubber")
    cube = scene.add_soft("cube", fs.box_tets((0.02, 0.02, 0.02), 4), rubber, position=(0.41, 0, 0.09))
    scene.join(cube, "arm.fore", at=(0.4, 0, 0.09), where=lambda x: x[:, 0] < 0.4 + 1e-6)
    scene.contact_by_faces("arm.jaw", on=faces)
    hold = -G * (0.5 * 0.1 + 0.05 * 0.195 + 0.008 * 0.21)
    scene.drive_joint("arm", "shoulder", still)
    scene.drive_joint("arm", "elbow", still, effort=lambda t: hold, stiffness=500.0)
    scene.drive_joint("arm", "slide", still)
    scene.sensor("jaw", "arm.jaw")
    scene.sensor("slide", "arm.slide", kind="prismatic")
    run = fs.simulate(scene)
    assert run.steps["converged"].all() and run.verdict == "good", run.summary()
    assert np.abs(run.sensors["jaw"].force).max() < 1e-3
    assert run.gauges["slide"].values["force_N"] == pytest.approx(0.05 * G, rel=0.05)


def test_a_motion_into_nodes_that_glue_a_hold_or_fixed_keeps_is_told_and_never_halved() -> None:
    """Nothing can push them apart; steps with glue did not converge, or were halved in vain, and contact was said to fail."""
    runs, bottom = [], lambda x: x[:, 2] < 1e-6
    for how in ("weld glue", "hold grip", "fixed= of cube"):
        scene = fs.Scene("pushed", dt=0.01, duration=0.05, theta=1.0)
        rubber = fs.Elastic(2e5, 0.4, 1000.0, name="rubber")
        fixed = bottom if how.startswith("fixed") else None
        cube = scene.add_soft("cube", fs.box_tets((0.04, 0.04, 0.04), 2), rubber, position=(0, 0, 0.02), fixed=fixed)
        plate = scene.add_rigid("plate", fs.Box((0.019, 0.02, 0.005)), mass=0.1, position=(0, 0, -0.005))
        scene.drive(plate, fs.Motion([0.0], [(0, 0, 0)]))
        if how == "weld glue":
            scene.join(cube, plate, at=(0, 0, 0), where=bottom, name="glue")
        if how == "hold grip":
            scene.hold(cube, bottom, on=plate, name="grip")
        pusher = scene.add_rigid("pusher", fs.Box((0.01, 0.01, 0.005)), mass=0.1, position=(0.03, 0, 0.003))
        scene.drive(pusher, fs.Motion([0, 0.05], [(0, 0, 0), (-0.0009, 0, 0)]))
        runs.append(fs.simulate(scene))
        assert runs[-1].steps["converged"].all() and (runs[-1].steps["substeps"] == 1).all()
        (reason,) = runs[-1].info["health"]["reasons"]
        assert (reason["kind"], reason["bodies"], runs[-1].verdict) == ("led_overlap", ["cube", "pusher"], "doubtful")
        assert f"held by {how}," in reason["text"] and "no sensor reads" in reason["text"] and "stiffness" in reason["advice"]
    for column in ("max_penetration_m", "led_overlap_m", "elastic_energy_J", "kinetic_energy_J"):
        for run in runs[:2]:
            np.testing.assert_allclose(run.steps[column], runs[2].steps[column], rtol=1e-3)
    assert runs[0].steps["led_overlap_m"][-1] == pytest.approx(0.0009, rel=1e-6)  # measured all the same


def mimic_hand() -> fs.Robot:
    """Two jaws that one coordinate moves against each other, 0.041 m apart."""
    links = [fs.RobotLink.solid(name, fs.Piece(fs.Box((0.005, 0.02, 0.02))), 0.05) for name in ("left", "right")]
    joints = [
        fs.RobotJoint("close", "base", "left", "prismatic", axis=(1, 0, 0), position=(-0.0255, 0, 0), limits=(-0.01, 0.02)),
        fs.RobotJoint(
            "follow", "base", "right", "prismatic", axis=(-1, 0, 0), position=(0.0255, 0, 0), limits=(-0.01, 0.02),
            mimic=("close", 1.0, 0.0),
        ),
    ]  # fmt: skip
    return fs.Robot("hand", [fs.RobotLink("base"), *links], joints)


@pytest.mark.parametrize("breakable", [None, (1e3, 1e3)])
def test_what_is_welded_to_a_flange_has_no_contact_with_the_link_below_it(breakable: tuple[float, float] | None) -> None:
    """Arms of labs end in a frame on a fixed joint; a hand on it lay 19 mm in the last link, "contact pushes them apart"."""
    plain = arm()
    flange = fs.RobotJoint("mount", "fore", "flange", "fixed", position=(0.2, 0, 0))
    robot = fs.Robot("arm", [*plain.links, fs.RobotLink("flange")], [*plain.given, flange])
    scene = fs.Scene("flange", dt=0.01, duration=0.05)
    scene.add_robot(robot)
    scene.add_rigid("box", fs.Box((0.02, 0.02, 0.02)), mass=0.3, position=(0.412, 0, 0.1))
    scene.join("box", "arm.flange", at=(0.4, 0, 0.1), breakable=breakable)
    scene.add_rigid("tip", fs.Box((0.01, 0.01, 0.01)), mass=0.1, position=(0.384, 0, 0.1))  # on the box, within the forearm
    scene.join("tip", "box", at=(0.4, 0, 0.1), breakable=breakable)
    for joint in ("shoulder", "elbow"):
        scene.drive_joint("arm", joint, still)
    scene.sensor("elbow", "arm.elbow", kind="revolute")
    run = fs.simulate(scene)
    assert run.verdict.startswith("good") and run.steps["max_penetration_m"].max() < 1e-9
    assert run.gauges["elbow"].values["torque_Nm"][-1] == pytest.approx(-G * (0.05 + 0.3 * 0.212 + 0.1 * 0.184), abs=1e-9)
    said = [note for note in run.notes if "overlap" in note]
    assert not [note for note in said if "breaks" not in note] and bool(said) == (breakable is not None)


def test_a_jaw_closes_on_what_is_welded_to_the_jaw_that_it_mimics() -> None:
    """One coordinate moves both, but not alike; they counted as one, without contact, and the jaw went through the box."""
    scene = fs.Scene("mimic", dt=0.01, duration=0.2, gravity=(0, 0, 0))
    hand = scene.add_robot(mimic_hand())
    scene.add_rigid("box", fs.Box((0.02, 0.01, 0.01)), mass=0.1)
    scene.join("box", "hand.left", at=(-0.02, 0, 0))
    scene.drive_joint(hand, "close", fs.Profile([0, 0.1], [0, 1e-3]), stiffness=5e3, damping=50.0)
    scene.sensor("right", "hand.right")
    run = fs.simulate(scene)
    assert run.verdict == "good" and run.steps["max_penetration_m"].max() < 1e-9
    # it stops after 0.25 mm, and the motor pulls both jaws, each with half of its force
    assert run.sensors["right"].force[-1, 0] == pytest.approx(0.5 * 5e3 * 0.75e-3, rel=1e-6)


def momenta(stepper: Stepper) -> tuple[np.ndarray, np.ndarray]:
    """Linear and angular momentum of all bodies."""
    system, state = stepper.system, stepper.state
    each = [
        (body.momentum(state.q[q], state.v[v]), body.angular_momentum(state.q[q], state.v[v]))  # type: ignore[attr-defined]
        for body, q, v in zip(system.bodies, system.q_slices, system.v_slices, strict=True)
    ]
    return np.sum([p for p, _ in each], axis=0), np.sum([spin for _, spin in each], axis=0)


def test_who_moves_the_base_exerts_what_changes_the_momentum_of_robot_and_box() -> None:
    scene = fs.Scene("moved", dt=0.01, duration=0.2)
    robot = scene.add_robot(arm(damping=0.05))
    scene.add_rigid("box", fs.Box((0.02, 0.02, 0.02)), mass=0.3, position=(0.42, 0, 0.1))
    scene.join("box", "arm.fore", at=(0.4, 0, 0.1))
    scene.drive(robot, lambda t: (np.array([0.0, 0.2 * math.sin(9 * t), 0.1 * t]), np.zeros(3)))
    stepper, before, speeds = Stepper(scene, make_solver("auto")), np.array([0.0, 0.0, 0.0]), np.zeros(2)
    for _ in range(20):
        report = stepper.step()
        speeds = np.maximum(speeds, np.abs(stepper.state.v[6:8]))
        assert report.solution.converged and report.wrench_balance < 1e-6
        rate, before = (report.momentum - before) / 0.01, report.momentum
        weight = np.array([0.0, 0.0, 2.6 * G])
        np.testing.assert_allclose(report.mount["arm"][:3], rate + weight, atol=2e-5)
    assert speeds.min() > 0.3  # both joints turn


def test_a_free_robot_with_a_box_on_a_ball_keeps_its_momenta() -> None:
    scene = fs.Scene("free", dt=0.01, duration=0.3, gravity=(0, 0, 0), nonlinear_tolerance=1e-10)
    turning = dict(angular_velocity=(1.0, 2.0, -1.5), speeds={"shoulder": 1.0, "elbow": -2.0})
    scene.add_robot(arm(), base="free", velocity=(0.1, -0.2, 0.3), **turning)  # type: ignore[arg-type]
    scene.add_rigid("box", fs.Box((0.02, 0.02, 0.02)), mass=0.3, position=(0.42, 0, 0.1))
    scene.join("box", "arm.fore", "ball", at=(0.4, 0, 0.1))
    stepper = Stepper(scene, make_solver("auto", tolerance=1e-12))
    stepper.step()
    p, spin = momenta(stepper)
    for _ in range(29):
        assert stepper.step().solution.converged
    after = momenta(stepper)
    np.testing.assert_allclose(after[0], p, atol=1e-10)
    np.testing.assert_allclose(after[1], spin, atol=1e-10)
    assert np.linalg.norm(spin) > 0.1


def parallelogram(dt: float, duration: float, kind: str = "hinge", turn: float = 0.0) -> fs.Scene:
    """Two cranks of 0.2 m and a coupler of 0.3 m that one joint closes to a loop; all turned about z."""
    joints = [
        fs.RobotJoint("left", "base", "first", axis=(0, 1, 0)),
        fs.RobotJoint("pin", "first", "coupler", axis=(0, 1, 0), position=(0.2, 0, 0)),
        fs.RobotJoint("right", "base", "second", axis=(0, 1, 0), position=(0.3, 0, 0)),
    ]
    links = [fs.RobotLink("base"), bar("first", 0.2, 0.3), bar("coupler", 0.3, 0.5), bar("second", 0.2, 0.3)]
    scene = fs.Scene("loop", dt=dt, duration=duration)
    angle = math.pi / 2 - 0.9  # hanging is pi/2
    robot = fs.Robot("bars", links, joints)
    scene.add_robot(robot, rotation=(0, 0, turn), joints={"left": angle, "pin": -angle, "right": angle})
    c, s = math.cos(turn), math.sin(turn)
    far = 0.3 + 0.2 * math.cos(angle)
    axis: dict[str, Any] = dict(axis=(-s, c, 0.0)) if kind == "hinge" else {}
    at = (c * far, s * far, -0.2 * math.sin(angle))
    scene.join("bars.coupler", "bars.second", kind, at=at, name="closing", **axis)  # type: ignore[arg-type]
    return scene


def swung(duration: float) -> float:
    """Angle of the cranks by quadrature: both swing about their ends, the coupler goes round without turning."""
    spin = 2 * (float(np.asarray(bar("", 0.2, 0.3).inertia)[1, 1]) + 0.3 * 0.1**2) + 0.5 * 0.2**2
    pull = G * (2 * 0.3 * 0.1 + 0.5 * 0.2)

    def rates(t: float, y: np.ndarray) -> list[float]:
        return [y[1], -pull / spin * math.sin(y[0])]

    end = solve_ivp(rates, (0.0, duration), [-0.9, 0.0], method="DOP853", rtol=1e-12, atol=1e-12)
    return math.pi / 2 + float(end.y[0, -1])


@pytest.mark.parametrize("kind, turn", [("hinge", 0.0), ("hinge", 0.7), ("ball", 0.0)])
def test_a_loop_of_links_closes_and_swings_as_quadrature_says(kind: str, turn: float) -> None:
    errors = []
    for dt in (0.01, 0.005):
        scene = parallelogram(dt, 0.5, kind, turn)
        stepper = Stepper(scene, make_solver("auto"))
        reports = [stepper.step() for _ in range(round(0.5 / dt))]
        assert all(report.solution.converged for report in reports)
        (body,) = scene.bodies
        q = stepper.state.q
        ends = []
        for link, length in ((scene.part_names.index("bars.coupler"), 0.3), (scene.part_names.index("bars.second"), 0.2)):
            R, centre = body.link_pose(q, link)
            ends.append(centre + R @ [length / 2, 0, 0])
        assert ends[0] == pytest.approx(ends[1], abs=1e-8)
        assert q[7] == pytest.approx(q[8], abs=1e-7)
        errors.append(abs(float(q[7]) - swung(0.5)))
        energy = [report.kinetic_energy - report.work for report in reports]
        assert np.abs(energy).max() < 2e-3 * max(report.kinetic_energy for report in reports)
    assert errors[1] < 5e-4 and 3.0 < errors[0] / errors[1] < 5.0, errors


@pytest.mark.parametrize("kind", ["ball", "hinge"])
@pytest.mark.parametrize("turn", [1e-12, 1e-9, 1e-6, 0.7, 1.5, 1.570796])
def test_a_plane_loop_bears_nothing_across_its_plane(kind: str, turn: float) -> None:
    """Its joint asks there for what the others give already; its share hung on the axes of the world, and had no bound.

    Where the plane was off those axes by a hair, the row across it was one of rounding that held the loop fast.
    """
    forces = []
    for angle in (0.0, turn):
        scene = parallelogram(0.01, 0.1, kind, angle)
        scene.sensor("closing", "closing", kind="reaction")
        scene.sensor("right", "bars.right", kind="joint")
        run = fs.simulate(scene)
        assert run.status == "converged" and run.steps["substeps"].max() == 1
        back = Rotation.from_rotvec((0.0, 0.0, -angle))
        closing, right = run.sensors["closing"], run.sensors["right"]
        forces.append(np.hstack([back.apply(each) for each in (closing.force, closing.torque, right.force, right.torque)]))
    assert np.abs(forces[0][:, 0]).max() > 0.5
    np.testing.assert_allclose(forces[1], forces[0], atol=5e-3)  # equations of motion are solved to 1e-4
    assert np.abs(forces[1][:, [1, 3, 5, 7, 9, 11]]).max() < 1e-9  # across, and moments but about its normal


def test_a_soft_cube_is_glued_to_a_link() -> None:
    """It hangs on it: the glue bears its weight and what moves it, and the motor of the elbow that too."""
    scene = fs.Scene("glue", dt=0.01, duration=0.2)
    scene.add_robot(arm())
    scene.drive_joint("arm", "shoulder", lambda t: 1.5 * t * t)
    scene.drive_joint("arm", "elbow", still)
    cube = scene.add_soft("cube", fs.box_tets((0.04, 0.04, 0.04), 2), "ecoflex_00_50", position=(0.3, 0, 0.07))
    scene.join(cube, "arm.fore", at=(0.3, 0, 0.09), where=lambda x: x[:, 2] > 0.0899, name="glue")
    scene.sensor("elbow", "arm.elbow", kind="joint")
    body = scene.bodies[1]
    start = body.initial_q().reshape(-1, 3)
    glued = start[:, 2] > 0.0899
    run = fs.simulate(scene)
    stepper, before = Stepper(scene, make_solver("auto")), np.zeros(3)
    own, q, v = scene.bodies[0], stepper.system.q_slices[1], stepper.system.v_slices[1]
    (coupling,) = stepper.system.couplings
    for _ in range(20):
        report = stepper.step()
        assert report.solution.converged and report.wrench_balance <= 1e-6
        after = body.momentum(stepper.state.q[q], stepper.state.v[v])
        rate, before = (after - before) / 0.01, after
        assert coupling.wrench[:3] == pytest.approx(  # type: ignore[attr-defined]
            rate + np.array([0.0, 0.0, body.mass * G]), abs=1e-6
        )
    moment = np.array([0.0, 0.0, (body.mass + 0.5) * G])
    assert run.sensors["elbow"].force[-1][2] == pytest.approx(moment[2] + rate[2], abs=1e-5)
    R, centre = own.link_pose(stepper.state.q[stepper.system.q_slices[0]], 2)
    carried = (start[glued] - [0.3, 0, 0.1]) @ R.T + centre
    assert stepper.state.q[q].reshape(-1, 3)[glued] == pytest.approx(carried, abs=1e-8)
    assert R[1, 0] == pytest.approx(math.sin(1.5 * 0.04), abs=1e-9)


@pytest.mark.parametrize("settings", [{}, {"theta": 1.0}])
def test_a_link_holds_the_end_of_a_rod(settings: dict[str, float]) -> None:
    """A cable hangs on the forearm: what it weighs, that on the elbow comes on top."""
    scene = fs.Scene("rod", dt=0.01, duration=0.3, **settings)  # type: ignore[arg-type]
    scene.add_robot(arm())
    scene.drive_joint("arm", "shoulder", lambda t: 0.3 * (1 - math.cos(5 * t)))
    scene.drive_joint("arm", "elbow", still)
    points = np.column_stack([np.full(9, 0.4), np.zeros(9), 0.1 - 0.01 * np.arange(9)])
    rubber = fs.Elastic(young_modulus=1e6, poisson_ratio=0.45, density=1100.0)
    scene.add_rod("cable", points, circular_section(0.002), rubber, start=fs.RodEnd("clamped", on="arm.fore"))
    stepper, before = Stepper(scene, make_solver("auto")), np.zeros(3)
    body, q, v = scene.bodies[1], stepper.system.q_slices[1], stepper.system.v_slices[1]
    for _ in range(30):
        report = stepper.step()
        assert report.solution.converged and report.wrench_balance <= 1e-6
        after = body.momentum(stepper.state.q[q], stepper.state.v[v])
        rate, before = (after - before) / 0.01, after
        pulled = body.held_end(0)[0][:3]  # what the rod does to the link
        assert -pulled == pytest.approx(rate + np.array([0.0, 0.0, body.mass * G]), abs=1e-6)
    R, centre = scene.bodies[0].link_pose(stepper.state.q[stepper.system.q_slices[0]], 2)
    first = stepper.state.q[q][:3]
    assert np.linalg.norm(first - (centre + R @ [0.1, 0, 0])) < 0.01
    assert np.abs(before).max() > 1e-4


def test_a_state_restored_goes_on_to_the_last_bit() -> None:
    scene = parallelogram(0.01, 0.2)
    scene.add_rigid("box", fs.Box((0.02, 0.02, 0.02)), mass=0.3, position=(0.15, 0.05, 0))
    scene.join("box", "bars.coupler", at=(0.15, 0.0, 0.0))
    stepper = Stepper(scene, make_solver("exact", lag=False))
    for _ in range(3):
        stepper.step()
    kept, ends = stepper.state, []
    for _ in range(2):
        stepper.restore(kept)
        for _ in range(4):
            stepper.step()
        ends.append(stepper.state)
    assert np.array_equal(ends[0].q, ends[1].q) and np.array_equal(ends[0].v, ends[1].v)


@pytest.mark.parametrize("seed", range(3))
def test_quaternions_of_links_are_those_of_their_matrices_and_do_not_jump(seed: int) -> None:
    rng = np.random.default_rng(seed)
    body = random_body(rng)
    q, v = body.initial_q(), rng.standard_normal(body.n_v)
    before = [body.link_turn(q, k) for k in range(len(body.links))]
    for _ in range(400):
        new = q.copy()
        move(body.tree, q, v, 0.05, False, new)
        turns = [body.link_turn(new, k) for k in range(len(body.links))]
        for old, turn in zip(before, turns, strict=True):
            assert old @ turn > 0.5
        q, before = new, turns
    rotation, _ = slow_frames(body, q)
    for k, turn in enumerate(before):
        np.testing.assert_allclose(quaternion_to_matrix(turn), rotation[k], atol=1e-12)


def test_a_link_is_not_joined_to_itself() -> None:
    scene = fs.Scene("wrong", dt=0.01, duration=0.1)
    scene.add_robot(arm())
    join: Callable[..., Any] = scene.join
    with pytest.raises(fs.InputError, match="two links of a robot"):
        join("arm.fore", "arm.fore", at=(0, 0, 0))


#: Crank and rod of a slider-crank, m.
CRANK, ROD = 0.05, 0.14


def slider_crank(axis: tuple[float, float, float]) -> fs.Scene:
    """Slider-crank on a stand that turns it; closed by a hinge, which holds three ways more than it must."""
    links = [fs.RobotLink(name, 0.1, inertia=1e-4 * np.eye(3)) for name in ("stand", "frame", "crank", "rod", "slide")]
    upright, along = (0.0, 0.0, 1.0), (1.0, 0.0, 0.0)
    joints = [
        fs.RobotJoint("turn", "stand", "frame", "continuous", axis=along),
        fs.RobotJoint("motor", "frame", "crank", "continuous", axis=upright),
        fs.RobotJoint("pin", "crank", "rod", "continuous", (CRANK, 0.0, 0.0), axis=upright),
        fs.RobotJoint("guide", "frame", "slide", "prismatic", axis=along, limits=(0.0, 0.3)),
    ]
    scene = fs.Scene("slider_crank", dt=0.01, duration=0.4)
    start = {"motor": math.pi, "pin": -math.pi, "guide": ROD - CRANK}
    scene.add_robot(fs.Robot("pusher", links, joints), joints=start)
    scene.join("pusher.rod", "pusher.slide", "hinge", at=(ROD - CRANK, 0.0, 0.0), axis=axis, name="loop")
    scene.drive_joint("pusher", "motor", fs.Profile([0.0, 0.1, 0.4], [math.pi, math.pi, math.pi - 3.0]))
    scene.drive_joint("pusher", "turn", fs.Profile([0.0, 0.1, 0.4], [0.0, 0.0, 1.5]))
    return scene


@pytest.mark.parametrize("solver", ["auto", "exact"])
def test_a_loop_that_holds_more_than_it_must_turns_without_halved_steps(solver: str) -> None:
    """Where its plane turns, rows that repeat others ask for something else until the loop is closed."""
    scene = slider_crank((0.0, 0.0, 1.0))
    for name in ("motor", "guide"):
        scene.sensor(name, f"pusher.{name}", kind="revolute" if name == "motor" else "prismatic")
    run = fs.simulate(scene, solver=solver)
    assert run.status == "converged" and run.verdict == "good"
    assert run.steps["substeps"].max() == 1 and run.steps["solves"].max() <= 6
    angle, place = run.gauges["motor"].values["angle_rad"], run.gauges["guide"].values["position_m"]
    closed = CRANK * np.cos(angle) + np.sqrt(ROD**2 - (CRANK * np.sin(angle)) ** 2)
    assert place == pytest.approx(closed, abs=1e-8) and np.ptp(place) > 0.09


def test_a_loop_that_cannot_turn_is_said() -> None:
    run = fs.simulate(slider_crank((0.0, 1e-3, 1.0)))
    assert run.verdict == "wrong" and "the joint loop cannot hold" in run.info["health"]["reasons"][0]["text"]

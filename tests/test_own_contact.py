"""Links of one robot have contact with each other: which, by rows of its joints alone, with forces, momentum and limits right."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from killed_runs import cube_run, killed_at
from random_trees import random_robot
from same_runs import differences
from small_scene import scene_file

import femsim as fs
from femsim.scene.own_contact import pairs_of_links
from femsim.step.stepper import Stepper

LEVEL = (0.0, 0.0, 0.0)
TIP = np.diag([1.5e-5, 1.5e-5, 2e-6])


def hand(*, limits: tuple[float, float] = (-2.0, 2.0)) -> fs.Robot:
    """Two fingers of two links each on a palm, 60 mm apart, that fold towards each other."""
    links = [fs.RobotLink("palm", 0.3, inertia=1e-4 * np.eye(3), shapes=[fs.Piece(fs.Box((0.03, 0.02, 0.01)))])]
    joints = []
    for side, sign in (("left", -1.0), ("right", 1.0)):
        for part, above, place in (("root", "palm", (0.03 * sign, 0.0, 0.01)), ("tip", f"{side}_root", (0.0, 0.0, 0.06))):
            name = f"{side}_{part}"
            capsule = fs.Piece(fs.Capsule(0.007, 0.022), (0.0, 0.0, 0.03))
            links.append(fs.RobotLink(name, 0.05, (0.0, 0.0, 0.03), TIP, shapes=[capsule]))
            axis = (0.0, -sign, 0.0)
            joints.append(fs.RobotJoint(name, above, name, "revolute", place, axis=axis, limits=limits, damping=1e-3))
    return fs.Robot("hand", links, joints)


def folding(
    robot: fs.Robot | None = None, *, dt: float = 0.001, duration: float = 0.2, servos: bool = True, **options: Any
) -> fs.Scene:
    """The hand closes on itself, its roots by 0.05 N m, its tips held by servos or free."""
    scene = fs.Scene("folding", dt=dt, duration=duration, gravity=LEVEL)
    scene.add_robot(robot or hand(), **options)
    for side in ("left", "right"):
        scene.drive_joint("hand", f"{side}_root", effort=fs.Profile([0.0], [0.05]))
        if servos:
            scene.drive_joint("hand", f"{side}_tip", fs.Profile([0.0], [0.0]), stiffness=1.0)
        scene.sensor(f"{side}_root", f"hand.{side}_root", kind="revolute")
        scene.sensor(f"{side}_tip", f"hand.{side}_tip", kind="revolute")
    return scene


def jaws(speed: float = 0.0, *, mimic: bool = False, effort: float = 0.0, **options: Any) -> fs.Scene:
    """Two jaws of 0.1 kg that slide towards each other on a palm, 20 mm apart."""
    links = [fs.RobotLink("palm", 0.5, inertia=1e-3 * np.eye(3))]
    joints = []
    for name, sign in (("left", 1.0), ("right", -1.0)):
        links.append(fs.RobotLink(name, 0.1, inertia=1e-5 * np.eye(3), shapes=[fs.Piece(fs.Box((0.01, 0.01, 0.01)))]))
        follows = ("left", 1.0, 0.0) if mimic and name == "right" else None
        place, axis = (-0.02 * sign, 0.0, 0.0), (sign, 0.0, 0.0)
        joints.append(fs.RobotJoint(name, "palm", name, "prismatic", place, axis=axis, limits=(-0.1, 0.1), mimic=follows))
    scene = fs.Scene("jaws", dt=0.005, duration=0.1, gravity=LEVEL)
    speeds = {"left": speed} if mimic else {"left": speed, "right": speed}
    scene.add_robot(fs.Robot("jaws", links, joints), speeds=speeds, **options)
    if effort:
        scene.drive_joint("jaws", "left", effort=fs.Profile([0.0], [effort]))
    return scene


# ---------------------------------------------------------------------- which links


def test_neighbours_have_none_also_through_fixed_joints_and_bare_links() -> None:
    """A trunk, a bare hip, a thigh, a shank with a foot fixed to it, and an arm on the trunk."""
    parent, fixed = np.array([-1, 0, 1, 2, 3, 0]), np.array([False, False, False, False, True, False])
    shaped = np.array([True, False, True, True, True, True])
    # trunk 0, thigh 2, shank 3, foot 4, arm 5
    assert pairs_of_links(parent, fixed, shaped) == [(0, 3), (0, 4), (2, 5), (3, 5), (4, 5)]
    bare = np.zeros(6, dtype=np.bool_)
    assert pairs_of_links(parent, fixed, bare) == []


def with_balls(robot: fs.Robot, radius: float) -> fs.Robot:
    """The robot with a ball about the centre of mass of each link that has mass."""
    ball = fs.Sphere(radius)
    return fs.Robot(
        robot.name,
        [replace(one, shapes=[fs.Piece(ball, tuple(one.centre))] if one.mass > 0.0 else []) for one in robot.links],
        robot.joints,
    )


@pytest.mark.parametrize("seed", range(3))
def test_rows_are_those_of_the_links_without_the_base(seed: int) -> None:
    """J against the Jacobians of both links, on a robot with all kinds of joints, one of which mimics another."""
    scene = fs.Scene("random", dt=0.005, duration=0.01, gravity=LEVEL)
    scene.add_robot(with_balls(random_robot(np.random.default_rng(seed)), 1e-3), name="r", base="free")
    stepper = Stepper(scene, fs.make_solver("auto"))
    contacts, state, (body,) = stepper.contacts, stepper.state, scene.bodies
    found = contacts.detect(state, stepper.placed, [10.0] * len(contacts.families))
    rows = contacts.rows(found, np.zeros(body.n_v), scene.dt)
    c, points = found[0].contacts, contacts.families[0]
    side = np.column_stack([points.point_part[c.point], points.shape_part[c.shape]])  # type: ignore[attr-defined]
    assert (np.diff(rows.J.indptr[: 3 * len(c)]).reshape(-1)[1:] > 0).all()
    seen = set()
    for m, (a, b) in enumerate(side.tolist()):
        expected = np.zeros((3, body.n_v))
        for part, sign in ((a, 1.0), (b, -1.0)):
            link = scene.parts[part].link
            S = body.link_jacobian(state.q, link)  # type: ignore[attr-defined]
            lever = c.position[m] - body.link_pose(state.q, link)[1]
            expected += sign * (S[:3] + np.cross(S[3:].T, lever).T)
        own = rows.J[3 * m : 3 * m + 3]
        np.testing.assert_allclose(own.toarray(), c.frame[m] @ expected, atol=1e-13)
        assert own.indices.min() >= 6 and all(np.diff(own[k].indices).min(initial=1) > 0 for k in range(3))
        seen.add(tuple(sorted(scene.part_names[part] for part in (a, b))))
    # 28 pairs of 8 links, without the eight on the two sides of a joint and two that a fixed joint makes one
    apart = {("r", "r.l1"), ("r.l1", "r.l2"), ("r", "r.l3"), ("r", "r.l4"), ("r.l3", "r.l4"), ("r.l3", "r.l5"), ("r.l4", "r.l5")}
    apart |= {("r.l2", "r.l6"), ("r.l6", "r.l7")}
    assert len(seen) == 28 - len(apart) and not seen & apart


def test_what_a_scene_leaves_out_passes_through() -> None:
    def left(change: Callable[[fs.Scene], object] = lambda scene: None, **options: Any) -> tuple[float, list[str]]:
        scene = jaws(0.5, **options)
        change(scene)
        run = fs.simulate(scene)
        assert run.verdict == "good", run.summary()
        return float(run.stepper.state.q[7]), run.info["notes"]

    assert left() == (pytest.approx(0.01, abs=1e-9), [])
    through = pytest.approx(0.05, abs=1e-9)
    assert left(lambda scene: scene.ignore_contact("jaws.left", "jaws.right")) == (through, [])
    assert left(lambda scene: scene.ignore_contact(scene.contact_group("both", ["jaws.left", "jaws.right"]))) == (through, [])
    assert left(lambda scene: scene.ignore_contact("jaws")) == (through, [])
    assert left(self_contact=False) == (through, [])
    with pytest.raises(fs.InputError, match="'jaws' is one body, and what is named of it has no contact"):
        jaws(self_contact=False).ignore_contact("jaws")


def test_links_that_overlap_at_the_start_have_none_and_a_note() -> None:
    """The jaws start 2 mm inside each other; the run says that they stay free to."""
    scene = jaws(joints={"left": 0.012, "right": 0.01})
    run = fs.simulate(scene, duration=0.02)
    assert run.info["notes"] == [
        "robot jaws: links left and right (2 mm) overlap at the start, so they have no contact with each other all along"
    ]
    assert run.verdict == "good" and run.steps["max_penetration_m"].max() == 0.0
    flush = fs.simulate(jaws(joints={"left": 0.01, "right": 0.01}, effort=1.0), duration=0.02)
    assert flush.info["notes"] == [] and flush.steps["contacts"].min() > 0


# ---------------------------------------------------------------------- forces


@pytest.mark.parametrize("base", ["fixed", "free"])
def test_a_hand_that_folds_on_itself_bears_what_its_motors_press(base: Any) -> None:
    """At rest the force on each tip has the moment of each motor about its joint; a free hand drifts nowhere."""
    scene = folding(base=base)
    for side, other in (("left", "right"), ("right", "left")):
        scene.sensor(side, f"hand.{side}_tip", partner=f"hand.{other}_tip")
    scene.sensor("pair", "hand.left_tip", kind="pair", partner="hand.right_tip")
    run = fs.simulate(scene, tolerance=1e-10)
    assert run.status == "converged" and run.verdict == "good", run.summary()
    assert run.steps["wrench_balance"].max() < 1e-9 and run.steps["max_penetration_m"].max() < 1e-7
    np.testing.assert_array_equal(run.sensors["left"].force, -run.sensors["right"].force)
    pressed = float(np.linalg.norm(run.sensors["left"].force[-1]))
    assert pressed > 0.1 and run.gauges["pair"].values["normal_N"][-1] == pytest.approx(pressed, rel=1e-6)
    body, q = scene.bodies[0], run.stepper.state.q
    for side in ("left", "right"):
        force, tip = run.sensors[side].force[-1], body.link_pose(q, body.joint_link(f"{side}_tip"))[1]
        for part in ("root", "tip"):
            joint = body.frame_pose(q, body.joint_link(f"{side}_{part}"))[1]  # type: ignore[attr-defined]
            moment = run.sensors[side].torque[-1] + np.cross(tip - joint, force)
            motor = run.gauges[f"{side}_{part}"].values["torque_Nm"][-1]
            # closed by positive turns about +y on the left and -y on the right
            assert (1.0 if side == "left" else -1.0) * moment[1] == pytest.approx(-motor, abs=1e-6)
    if base == "free":
        assert np.abs(body.momentum(q, run.stepper.state.v)).max() < 1e-12


def test_one_motor_presses_two_jaws_with_half_of_its_force_each() -> None:
    """The right jaw mimics the left one: the force moves both, and the row of the joint has the motion of both."""
    run = fs.simulate(with_sensor(jaws(mimic=True, effort=3.0)))
    assert run.verdict == "good"
    assert run.sensors["left"].force[-1, 0] == pytest.approx(-1.5, rel=1e-6)


def with_sensor(scene: fs.Scene) -> fs.Scene:
    scene.sensor("left", "jaws.left", partner="jaws.right")
    return scene


@pytest.mark.parametrize("solver", ["cond", "exact", "pgs", "admm", "canal", "subadmm", "cond-newton"])
def test_every_solver_takes_them(solver: str) -> None:
    run = fs.simulate(with_sensor(jaws(mimic=True, effort=3.0)), solver, duration=0.06)
    assert run.status == "converged" and run.sensors["left"].force[-1, 0] == pytest.approx(-1.5, rel=1e-4)


@pytest.mark.parametrize("restitution", [0.0, 0.5, 1.0])
def test_jaws_that_meet_keep_the_energy_that_restitution_leaves(restitution: float) -> None:
    """On a free palm; linear momentum stays that of the start, zero."""
    scene = jaws(0.5, base="free")
    scene.set_restitution("jaws.left", "jaws.right", restitution)
    run = fs.simulate(scene, tolerance=1e-10)
    kinetic = run.steps["kinetic_energy_J"]
    assert kinetic[0] == pytest.approx(0.025, rel=1e-9)
    assert kinetic[-1] == pytest.approx(0.025 * restitution**2, abs=1e-9)
    assert np.abs(scene.bodies[0].momentum(run.stepper.state.q, run.stepper.state.v)).max() < 1e-12
    assert run.verdict == "good"


def test_limits_hold_while_links_press_on_each_other() -> None:
    """The tips bend outwards, away from each other, until their range ends; then the roots press on a stiff finger."""
    scene = folding(hand(limits=(-0.05, 1.0)), servos=False)
    run = fs.simulate(scene, tolerance=1e-10)
    assert run.verdict == "good"
    for side in ("left", "right"):
        angle, stop = (run.gauges[f"{side}_tip"].values[name] for name in ("angle_rad", "limit_Nm"))
        assert angle.min() > -0.05 - 1e-9 and angle[-1] == pytest.approx(-0.05, abs=1e-9)
        assert stop[-1] > 0.01


def test_links_rub_on_each_other_by_their_friction() -> None:
    """Pads of a jaw that is pressed and of one that is pulled along it: it slides off by mu N."""
    links = [fs.RobotLink("palm", 0.5, inertia=1e-3 * np.eye(3))]
    joints = []
    for name, z, axis in (("low", 0.0, (1.0, 0.0, 0.0)), ("high", 0.02, (0.0, 0.0, 1.0))):
        links.append(fs.RobotLink(name, 0.1, inertia=1e-5 * np.eye(3), shapes=[fs.Piece(fs.Box((0.02, 0.01, 0.01)))]))
        joints.append(fs.RobotJoint(name, "palm", name, "prismatic", (0.0, 0.0, z), axis=axis))
    scene = fs.Scene("pads", dt=0.005, duration=0.05, gravity=LEVEL)
    scene.add_robot(fs.Robot("pads", links, joints))
    scene.set_friction("pads.low", "pads.high", 0.3)
    scene.drive_joint("pads", "high", effort=fs.Profile([0.0], [-2.0]))
    scene.drive_joint("pads", "low", effort=fs.Profile([0.0], [1.0]))
    scene.sensor("low", "pads.low", partner="pads.high")
    run = fs.simulate(scene)
    np.testing.assert_allclose(run.sensors["low"].force[-1], [-0.6, 0.0, -2.0], atol=1e-5)
    speed = run.stepper.state.v[scene.bodies[0].joint("low").row]  # type: ignore[attr-defined]
    assert speed == pytest.approx(0.4 / 0.1 * 0.05, rel=1e-3) and run.verdict == "good"


# ---------------------------------------------------------------------- joints that follow motions


def test_motions_that_drive_links_into_each_other_are_wrong_by_name() -> None:
    """All joints in between are exact, so nothing can keep the jaws apart; with a servo contact does."""
    exact = jaws()
    for joint in ("left", "right"):
        exact.drive_joint("jaws", joint, fs.Profile([0.0, 0.1], [0.0, 0.015]))
    run = fs.simulate(exact)
    assert run.verdict == "wrong" and run.steps["led_overlap_m"].max() == pytest.approx(0.01, abs=1e-9)
    (reason,) = (one for one in run.info["health"]["reasons"] if one["kind"] == "led_overlap")
    assert reason["bodies"] == ["jaws.left", "jaws.right"]
    assert "all joints between them follow motions exactly" in reason["sentence"]
    servo = with_sensor(jaws())
    servo.drive_joint("jaws", "left", fs.Profile([0.0, 0.1], [0.0, 0.015]))
    servo.drive_joint("jaws", "right", fs.Profile([0.0, 0.1], [0.0, 0.015]), stiffness=1000.0)
    run = fs.simulate(servo, duration=0.3)
    assert run.verdict == "good" and run.steps["led_overlap_m"].max() == 0.0
    assert run.sensors["left"].force[-1, 0] == pytest.approx(-1000.0 * 0.01, rel=1e-4)


# ---------------------------------------------------------------------- state

SCENE = '''"""A hand on a free palm folds on itself."""

import numpy as np

import femsim as fs


def build(steps: int = 24) -> fs.Scene:
    """Fold a hand.

    Parameters
    ----------
    steps : int, 1
        Number of steps.
    """
    from test_own_contact import folding

    return folding(base="free", dt=0.002, duration=0.002 * steps)
'''


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that fork")
def test_killed_and_resumed_gives_the_same_files(tmp_path: Path) -> None:
    scene, steps = scene_file(tmp_path, SCENE), 70
    whole = cube_run(scene, tmp_path / "whole", steps)()
    assert whole.status == "converged" and whole.steps["contacts"][:20].max() == 0 and whole.steps["contacts"][-10:].min() > 0
    folder = tmp_path / "killed"
    killed_at(63, cube_run(scene, folder, steps))
    assert fs.resume(folder).status == "converged"
    assert differences(tmp_path / "whole", folder) == []


def test_saved_and_forked_goes_on_to_the_same_bits() -> None:
    sim = fs.Simulation(folding(dt=0.002), "exact")
    sim.step(65)
    saved, twin = sim.save(), sim.fork()
    first, again = sim.step(10).row(), twin.step(10).row()
    sim.restore(saved)
    once_more = sim.step(10).row()
    names = [name for name in first if not name.startswith("ms_")]
    assert first["contacts"] > 0 and all(first[name] == again[name] == once_more[name] for name in names)


def test_pairs_of_links_are_reported() -> None:
    scene = folding()
    assert set(scene.sense_pairs()) == {
        "hand-hand.left_tip", "hand-hand.right_tip", "hand.left_root-hand.right_root", "hand.left_root-hand.right_tip",
        "hand.right_root-hand.left_tip", "hand.left_tip-hand.right_tip",
    }  # fmt: skip


def test_a_robot_that_falls_looks_for_its_own_contacts_no_further() -> None:
    """What its base does closes no gap between its links: a margin of its own keeps fast robots from many open contacts."""
    counts = []
    for speed in (0.0, 20.0):
        scene = folding(base="free", velocity=(0.0, 0.0, -speed), dt=0.01)
        stepper = Stepper(scene, fs.make_solver("auto"))
        stepper.step()
        counts.append(len(stepper.state.contacts[0].keys))
    assert counts == [0, 0]


def cube_of_triangles(half: float) -> fs.Mesh:
    corners = half * np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
    quads = ((0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3))
    return fs.Mesh(corners, [triangle for a, b, c, d in quads for triangle in ((a, b, c), (a, c, d))])


@pytest.mark.parametrize("turn", [0.0, np.pi / 2])
@pytest.mark.parametrize(
    ("shape", "depth", "exact"),
    [(fs.Box((0.02,) * 3), "20", False), (fs.Box((0.02,) * 3), "20", True), (cube_of_triangles(0.02), "13", True)],
)
def test_links_of_one_shape_in_one_place_overlap(turn: float, exact: bool, shape: fs.Box | fs.Mesh, depth: str) -> None:
    """All corners, edges and faces of equal boxes lie on those of the other: nothing was seen, and the scene refused or wrong."""
    cubes = [fs.RobotLink.solid(name, fs.Piece(shape), 0.5) for name in ("base", "x", "y")]
    joints = [
        fs.RobotJoint("x", "base", "x", "prismatic", axis=(1, 0, 0)),
        fs.RobotJoint("y", "x", "y", "prismatic", rotation=(0, 0, turn), axis=(0, 1, 0)),
    ]
    scene = fs.Scene("table", dt=0.005, duration=0.05, gravity=LEVEL)
    scene.add_robot(fs.Robot("table", cubes, joints))
    for joint in "xy":
        scene.drive_joint("table", joint, fs.Profile([0.0, 0.05], [0.0, 0.01]), stiffness=None if exact else 1e4)
    said = f"robot table: links base and y ({depth} mm) overlap at the start, so they have no contact with each other all along"
    assert scene.own_pairs == [] and scene.notes == [said]
    run = fs.simulate(scene)
    assert run.verdict == "good" and run.steps["led_overlap_m"].max() == 0.0

"""Robots in scenes: on their feet, pressing on soft bodies, stepped from outside; and what is wrong in a call is said."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import femsim as fs

G = 9.81
LEGS = [f"{end}_{side}" for end in ("front", "hind") for side in ("left", "right")]
PAGE = Path(__file__).resolve().parent.parent / "docs" / "guide" / "robots.md"


def quadruped(duration: float, **options: object) -> fs.Scene:
    """The quadruped with bent legs that servos hold, let go 1 mm above the floor."""
    scene = fs.Scene("quadruped", dt=0.005, duration=duration, **options)  # type: ignore[arg-type]
    scene.add_floor()
    bent = {f"{leg}_{joint}": angle for leg in LEGS for joint, angle in (("pitch", 0.6), ("knee", -1.2))}
    height = 0.4 * math.cos(0.6) + 0.022
    scene.add_robot("quadruped.urdf", base="free", position=(0, 0, height + 0.001), joints=bent)
    for joint in scene.bodies[0].joint_names():
        scene.drive_joint("quadruped", joint, fs.Profile([0.0], [bent.get(joint, 0.0)]), stiffness=400.0, damping=20.0)
    for leg in LEGS:
        scene.sensor(leg, f"quadruped.{leg}_foot")
        scene.sensor(f"{leg}_knee", f"quadruped.{leg}_knee", kind="revolute")
    return scene


def test_a_quadruped_stands_on_its_feet_with_its_weight() -> None:
    """16.24 kg; its torques are those by which the forces on the feet bend the knees."""
    run = fs.simulate(quadruped(1.5), tolerance=1e-10)
    assert run.status == "converged" and run.verdict == "good"
    weight = sum(run.sensors[leg].force[-1] for leg in LEGS)
    np.testing.assert_allclose(weight, [0, 0, 16.24 * G], atol=1e-6 * 16.24 * G)
    assert run.steps["wrench_balance"].max() < 1e-6
    body, q = run.stepper.scene.bodies[0], run.stepper.state.q
    for leg in LEGS:
        knee = body.frame_pose(q, body.joint_link(f"{leg}_knee"))[1]  # type: ignore[attr-defined]
        foot = body.joint_link(f"{leg}_ankle")
        contact = body.link_pose(q, foot)[1] - [0, 0, 0.022]
        # of what is below the knee: the force on the foot, and the weights of shank and foot
        shank = body.link_pose(q, body.joint_link(f"{leg}_knee"))[1]
        moment = np.cross(contact - knee, run.sensors[leg].force[-1])
        moment -= np.cross(shank - knee, [0, 0, 0.3 * G]) + np.cross(body.link_pose(q, foot)[1] - knee, [0, 0, 0.06 * G])
        assert run.gauges[f"{leg}_knee"].values["torque_Nm"][-1] == pytest.approx(-moment[1], abs=1e-4)


def test_what_was_saved_and_forked_goes_on_to_the_same_bits() -> None:
    sim = fs.Simulation(quadruped(1.0), "exact")
    sim.step(40)
    saved, twin = sim.save(), sim.fork()
    first = sim.step(10).row()
    again = twin.step(10).row()
    sim.restore(saved)
    once_more = sim.step(10).row()
    names = [name for name in first if not name.startswith("ms_")]
    assert names and all(first[name] == again[name] == once_more[name] for name in names)


def test_a_target_of_a_joint_is_commanded_while_it_is_stepped() -> None:
    scene = fs.Scene("arm", dt=0.005, duration=1.0)
    scene.add_robot("arm7.urdf", name="arm")
    scene.drive_joint("arm", "joint2", fs.Profile([0.0], [0.0]))
    scene.drive_joint("arm", "joint4", fs.Profile([0.0], [0.0]), stiffness=2000.0, effort=fs.Profile([0.0], [0.0]))
    scene.drive_joint("arm", "joint6", velocity=fs.Profile([0.0], [0.0]), damping=200.0)
    scene.drive_joint("arm", "joint7", effort=fs.Profile([0.0], [0.0]))
    for k in (2, 4, 6, 7):
        scene.sensor(f"q{k}", f"arm.joint{k}", kind="revolute")
    sim = fs.Simulation(scene)
    assert (
        sim.targets["arm.joint2"] == "position of the joint, rad"
        and sim.targets["arm.joint4.effort"] == "effort of the joint, N m"
    )
    assert sim.targets["arm.joint6"] == "speed of the joint, rad/s" and sim.targets["arm.joint7"] == "effort of the joint, N m"
    sim.set("arm.joint2", 0.3, over=0.1)
    sim.set("arm.joint6", 0.5)
    sim.set("arm.joint7", 0.05)
    sim.step(20)
    values = {k: sim.read(f"q{k}").values for k in (2, 4, 6, 7)}
    assert values[2]["angle_rad"] == pytest.approx(0.3, abs=1e-9)
    assert values[6]["rate_radps"] == pytest.approx(0.5, rel=0.02)
    assert values[7]["torque_Nm"] == pytest.approx(0.05, abs=1e-12) and values[7]["angle_rad"] > 0.0
    sim.set("arm.joint2", None)
    assert sim.step().read("q2").values["angle_rad"] == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("level", [fs.Profile([0.0], [math.pi / 2]), lambda t: math.pi / 2], ids=["profile", "function"])
def test_a_motor_gives_no_more_than_its_limit(level: fs.Profile | Callable[[float], float]) -> None:
    """10 N m cannot lift the arm of 12 N m that is held level: joint2 gives 10 and the arm falls; without the limit it holds."""
    ends = {}
    for limit in (10.0, 1000.0):
        scene = fs.Scene("weak", dt=0.005, duration=0.3)
        scene.add_robot("arm7.urdf", name="arm", joints={"joint2": math.pi / 2})
        for joint in scene.bodies[0].joint_names():
            if joint != "joint2":
                scene.drive_joint("arm", joint, fs.Profile([0.0], [0.0]))
        scene.drive_joint("arm", "joint2", level, stiffness=1e5, max_effort=limit)
        scene.sensor("q", "arm.joint2", kind="revolute")
        run = fs.simulate(scene)
        ends[limit] = run.gauges["q"].values
        assert run.status == "converged" and np.abs(ends[limit]["torque_Nm"]).max() <= limit * (1.0 + 1e-6)
    held = fs.load_robot("arm7.urdf").inverse_dynamics({"joint2": math.pi / 2})["joint2"]
    assert 10.0 < abs(held) < 90.0
    assert ends[10.0]["angle_rad"][-1] > math.pi / 2 + 0.01 and abs(ends[10.0]["torque_Nm"][-1]) == pytest.approx(10.0, rel=1e-6)
    assert ends[1000.0]["angle_rad"][-1] == pytest.approx(math.pi / 2 - held / 1e5, abs=1e-5)


def test_gravity_compensation_holds_the_arm_without_servos() -> None:
    robot, start = fs.load_robot("arm7.urdf"), {"joint2": 0.7, "joint4": 1.1, "joint6": -0.4}
    scene = fs.Scene("held", dt=0.005, duration=0.5)
    scene.add_robot(robot, joints=start)
    for joint, effort in robot.inverse_dynamics(start).items():
        scene.drive_joint("arm7", joint, effort=fs.Profile([0.0], [effort]))
    run = fs.simulate(scene)
    body = scene.bodies[0]
    np.testing.assert_allclose(run.stepper.state.q, body.initial_q(), atol=1e-9)


def examples() -> list[str]:
    """Code of the page."""
    return re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.S)


@pytest.mark.skipif(not PAGE.is_file(), reason="the docs are not here (they come with the repository)")
def test_soft_fingers_on_an_arm_lift_a_box_along_a_log(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A stranger's script: in the end the wrist bears hand, fingers and box along its own axis."""
    monkeypatch.chdir(tmp_path)
    code = examples()[1]
    assert code.count("\n") < 40
    names: dict[str, object] = {}
    exec(code, names)
    run = names["run"]
    assert isinstance(run, fs.Run) and run.status == "converged" and run.verdict == "good"
    assert run.markers["box"].position[-1] == pytest.approx([0.36, 0.02, 0.04], abs=1e-3)  # held without slip
    assert run.sensors["wrist_measured"].force[-1] == pytest.approx([0, 0, -names["weight"]], abs=0.03)  # type: ignore[operator]
    assert run.steps["wrench_balance"].max() < 1e-6


@pytest.mark.skipif(not PAGE.is_file(), reason="the docs are not here (they come with the repository)")
def test_the_example_of_the_guide_runs_and_its_wrist_balances(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The wrist bears the hand, 0.66 kg, less what the block pushes up."""
    monkeypatch.chdir(tmp_path)
    code = examples()[0]
    assert code.count("\n") < 40
    code = code.replace("run = ", "for finger in ('left', 'right'):\n    scene.sensor(finger, f'arm.{finger}_finger')\nrun = ")
    names: dict[str, object] = {}
    exec(code, names)
    run = names["run"]
    assert isinstance(run, fs.Run) and run.status == "converged" and run.verdict == "good"
    pushed = run.sensors["left"].force + run.sensors["right"].force
    assert pushed[-1, 2] > 5.0
    # at rest; while it moves, its inertia too
    np.testing.assert_allclose(run.sensors["wrist"].force[-1], [0, 0, 0.66 * G] - pushed[-1], atol=2e-2)
    turn = run.stepper.link_pose(run.stepper.scene.part_names.index("arm.flange"))[0]
    np.testing.assert_allclose(run.sensors["wrist_measured"].force[-1], turn.T @ run.sensors["wrist"].force[-1], atol=1e-9)


def test_an_arm_lifts_a_soft_ball_and_its_joints_bear_both() -> None:
    """While it is held the wrist bears hand and ball, and the joints bear the arm and the moment of the ball."""
    scene = fs.load_scene("arm_lifts_ball")
    run = fs.simulate(scene)
    assert run.status == "converged" and run.verdict == "good" and run.steps["wrench_balance"].max() < 1e-9
    body, ball = scene.body("arm"), scene.body("ball")
    np.testing.assert_allclose(run.sensors["wrist"].force[-1], [0, 0, (0.66 + ball.mass) * G], atol=2e-3)
    for finger, sign in (("left", 1.0), ("right", -1.0)):
        assert run.sensors[finger].force[-1, 1] == pytest.approx(sign * 15.0, abs=1e-2)
    assert np.ptp(run.markers["ball"].position[[20, -1], 2]) == pytest.approx(0.06, abs=1e-3)
    q = run.stepper.state.q[run.stepper.system.q_slices[scene.bodies.index(body)]]
    at = {joint.name: float(q[joint.coordinate]) for joint in body.joints}  # type: ignore[attr-defined]
    alone = fs.load_robot("arm7.urdf").inverse_dynamics(at)
    nodes = run.stepper.state.q[run.stepper.system.q_slices[scene.bodies.index(ball)]]
    centre = ball.centre_of_mass(nodes)
    for joint in ("joint2", "joint4", "joint6"):
        axis = body.frame_pose(q, body.joint_link(joint))[1]  # type: ignore[attr-defined]
        moment = -(centre[0] - axis[0]) * ball.mass * G
        assert run.gauges[joint].values["torque_Nm"][-1] == pytest.approx(alone[joint] + moment, abs=2e-3)


def arm_scene() -> fs.Scene:
    scene = fs.Scene("arm", dt=0.005)
    scene.add_floor()
    scene.add_robot("arm7.urdf", name="arm")
    scene.add_rigid("box", fs.Box((0.1, 0.1, 0.1)), mass=1.0, position=(1, 0, 0))
    return scene


def zero(t: float) -> float:
    return 0.0


still = fs.Motion([0.0], [(0.0, 0.0, 0.0)])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda s: s.add_robot("arm7.urdf", name="arm"), "'arm' is taken"),
        (lambda s: s.add_robot("arm7.urdf", base="hanging"), "base of robot arm7 is 'hanging'; allowed are 'fixed', 'free'"),
        (lambda s: s.add_robot("arm7.urdf", joints={"joint9": 0.1}), "joint 'joint9' is unknown; did you mean"),
        (lambda s: s.add_robot("arm7.urdf", joints={"joint2": 2.5}), "'joint2' starts at 2.5 rad; its range is -2 to 2\\.$"),
        (lambda s: s.add_robot("arm7.urdf", joints={"joint2": 90}), "its range is -2 to 2; 90 degrees are 1.571"),
        (lambda s: s.add_robot("arm7.urdf", joints={"left_jaw": 9}), "'left_jaw' starts at 9 m; its range is 0 to 0.0[0-9]*\\.$"),
        (lambda s: s.add_robot("arm7.urdf", joints=[0.0] * 7), r"are \[0.0, .*give numbers by names of joints: {'joint1': 0.1}"),
        (lambda s: s.add_robot(None), "robot is None; give an fs.Robot, or the name or path of a URDF or MJCF file"),
        (lambda s: s.drive("arm.hand", still), "'arm.hand' is a part of the body 'arm'; name that, and its joints"),
        (lambda s: s.drive("floor", still), "'floor' is an obstacle, which stands still; add what shall move by add_rigid"),
        (lambda s: s.drive_joint("arm", "hand_mount", zero), "'hand_mount' is fixed; motors are for joints of one coordinate"),
        (lambda s: s.drive_joint("arm", "joint1", still), "motion gives .* at 0 s; it must give one number, the place in rad"),
        (lambda s: s.add_robot("arm7.urdf", velocity=(1, 0, 0)), "velocity and angular_velocity are those of a free base"),
        (lambda s: s.drive_joint("box", "joint1", zero), "'box' is a rigid body, no robot"),
        (lambda s: s.drive_joint("arm", "elbow", zero), "joint 'elbow' is unknown"),
        (lambda s: s.drive_joint("arm", "right_jaw", zero), "joint 'right_jaw' mimics 'left_jaw'; drive that one"),
        (lambda s: s.drive_joint("arm", "joint1"), "give a motion or a velocity, an effort"),
        (lambda s: s.drive_joint("arm", "joint1", zero, damping=3.0), "without a stiffness the motion is followed exactly"),
        (lambda s: s.drive_joint("arm", "joint1", velocity=zero), "give damping, N m s/rad"),
        (lambda s: s.drive_joint("arm", "joint1", effort=zero, stiffness=3.0), "a stiffness belongs to a motion"),
        (lambda s: s.drive_joint("arm", "joint1", lambda t: 0.5), "the motion begins at 0.5 rad and the joint at 0"),
        (lambda s: s.drive_joint("arm", "joint1", zero, stiffness=-1.0), "stiffness of arm.joint1 is -1.0"),
        (lambda s: s.drive_joint("arm", "joint1", 0.3), "motion is 0.3, but must be a function of time"),
        (lambda s: s.sensor("q", "arm.left_jaw", kind="revolute"), "kind 'revolute' needs a joint of a robot that turns"),
        (lambda s: s.sensor("q", "box", kind="prismatic"), "kind 'prismatic' needs a joint of a robot that slides"),
    ],
)  # fmt: skip
def test_wrong_calls_are_said(call: Callable[[fs.Scene], None], words: str) -> None:
    with pytest.raises(fs.InputError, match=words):
        call(arm_scene())


def pair(joint: Mapping[str, Any] = {}, link: Mapping[str, Any] = {}, **robot: Any) -> fs.Robot:
    """Two links and a joint, with some of their fields given."""
    inertia = 1e-3 * np.eye(3)
    links = [fs.RobotLink("a", 1.0, inertia=inertia), fs.RobotLink(**{"name": "b", "mass": 1.0, "inertia": inertia, **link})]
    return fs.Robot("r", links, [fs.RobotJoint(**{"name": "j", "parent": "a", "child": "b", **joint})], **robot)


BALL = {"kind": "spherical"}
SHEARED = [[1.0, 0.5, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: pair({"rotation": 2.0 * np.eye(3)}), "joint 'j' has the rotation .*, which is none: rows must be unit vectors"),
        (lambda: pair({"rotation": SHEARED}), "which is none"),
        (lambda: pair({"rotation": np.diag([1.0, 1.0, -1.0])}), "which is none: .*right-handed"),
        (lambda: pair({"rotation": (math.nan, 0, 0)}), "has the rotation .*; allowed are a rotation vector, rad, or a matrix"),
        (lambda: pair({"rotation": (1, 0, 0, 0)}), r"has the rotation \(1, 0, 0, 0\); allowed are a rotation vector"),
        (lambda: pair({"position": (math.nan, 0, 0)}), "has the position .*; allowed are three finite numbers, m"),
        (lambda: pair({"position": (0, 0)}), r"has the position \(0, 0\); allowed"),
        (lambda: pair({"axis": "z"}), "has axis 'z'; allowed are three numbers, not all zero"),
        (lambda: pair({"axis": (0, 0)}), r"has axis \[0.0, 0.0\]; allowed"),
        (lambda: pair({"limits": None}), "has limits None; the lower one must be below the upper one"),
        (lambda: pair({"limits": (1,)}), r"has limits \(1,\)"),
        (lambda: pair({"limits": ("a", 1)}), r"has limits \('a', 1\)"),
        (lambda: pair({**BALL, "limits": (-1, 1)}), r"'j' is spherical and has limits \(-1, 1\); joints of one"),
        (lambda: pair({"kind": "planar", "limits": (-1, 1)}), "'j' is planar and has limits"),
        (lambda: pair({"kind": "floating", "limits": (-1, 1)}), "'j' is floating and has limits"),
        (lambda: pair({"kind": "continuous", "limits": (0, 1)}), "'j' is continuous and has limits .* let it be revolute"),
        (lambda: pair({"damping": None}), "has damping None; allowed are numbers from 0"),
        (lambda: pair({"damping": "0.1"}), "has damping '0.1'"),
        (lambda: pair({"max_effort": None}), "has max_effort None; allowed are positive numbers, or math.inf"),
        (lambda: pair({"mimic": "k"}), r"has mimic 'k'; allowed are the name of a joint, a factor and an offset"),
        (lambda: pair({"mimic": ("k", 1)}), r"has mimic \('k', 1\)"),
        (lambda: pair(link={"mass": "1"}), "link 'b' has mass '1' kg"),
        (lambda: pair(link={"mass": None}), "link 'b' has mass None kg"),
        (lambda: pair(link={"inertia": "x"}), "link 'b' has inertia 'x'"),
        (lambda: pair(link={"centre": (0, None, 0)}), r"centre \(0, None, 0\); allowed are finite"),
        (lambda: pair(link={"shapes": [fs.Box((0.1, 0.1, 0.1))]}), "link 'b': shapes holds .*; allowed are fs.Piece"),
        (lambda: pair(link={"shapes": fs.Piece(fs.Sphere(0.1))}), "link 'b' has shapes .*; allowed is a list of fs.Piece"),
        (lambda: pair(link={"name": 3}), "a robot, link or joint has the name 3; allowed are texts"),
        (lambda: pair(no_contact=[3]), "no_contact holds 3; give pairs of links"),
        (lambda: fs.Robot("r", fs.RobotLink("a")), "has links .*; allowed is a list of fs.RobotLink"),  # type: ignore[arg-type]
        (lambda: fs.Robot("r", ["a"]), "links holds 'a'; allowed are fs.RobotLink"),  # type: ignore[list-item]
        (lambda: fs.Robot("r", [fs.RobotLink("a")], ["j"]), "joints holds 'j'"),  # type: ignore[list-item]
        (lambda: fs.RobotLink.solid("x", fs.Piece(fs.Sphere(0.1)), math.nan), "link 'x' has mass nan kg"),
        (lambda: fs.RobotLink.solid("x", "ball", 1.0), "link 'x': piece of a compound is a str; allowed are Box"),  # type: ignore[arg-type]
        (lambda: fs.RobotLink.solid("x", fs.Piece(fs.Sphere(0.1)), None), "link 'x' has mass None kg"),  # type: ignore[arg-type]
        (lambda: pair().inverse_dynamics({}, gravity=(0, 1)), r"gravity is \(0, 1\); allowed are three finite numbers, m/s"),
        (lambda: pair().inverse_dynamics({}, gravity=(0, 0, math.nan)), "gravity is"),
        (lambda: pair().inverse_dynamics({}, gravity=-9.81), "gravity is -9.81"),  # type: ignore[arg-type]
        (lambda: pair().inverse_dynamics({}, rotation=np.eye(3)), "rotation is array.*; allowed are three finite numbers, rad"),
        (lambda: pair().inverse_dynamics({"j": "x"}), "joint 'j' starts at 'x'; allowed is a finite number, rad"),  # type: ignore[dict-item]
        (lambda: pair().inverse_dynamics({}, {"j": math.nan}), "joint 'j' has the speed nan; allowed is a finite number, rad/s"),
        (lambda: pair({"kind": "prismatic"}).inverse_dynamics({}, {"j": [1, 2]}), r"speed \[1, 2\]; .* m/s"),  # type: ignore[dict-item]
        (lambda: pair().inverse_dynamics({}, {}, {"j": math.nan}), "the rate of joint 'j' is nan; allowed is a finite number"),
        (lambda: pair().inverse_dynamics({}, {}, {"k": 1.0}), "rates names 'k', no joint of one coordinate; there is only j"),
        (lambda: pair().inverse_dynamics({}, {}, [1.0]), r"rates of inverse_dynamics of r are \[1.0\]; give"),  # type: ignore[arg-type]
        (lambda: pair(BALL).inverse_dynamics({}, {"j": 1.0}), "joint 'j' has the speed 1.0; allowed are three finite numbers"),
        (lambda: pair(BALL).inverse_dynamics({}, {}, {"j": 1.0}), "rates names 'j', no joint of one coordinate; there is none"),
        (lambda: pair(BALL).inverse_dynamics({"j": "ab"}), "spherical joint 'j' starts at 'ab'; allowed is a quaternion"),  # type: ignore[dict-item]
        (lambda: pair().pose("b", position=(0, 0)), r"position of r is \(0, 0\); allowed are three finite numbers, m"),
        (lambda: pair().reach("b", (0, 0)), r"place is \(0, 0\); allowed are three finite numbers, m"),
        (lambda: fs.load_robot(None), "load_robot: path is None; give the name or path"),  # type: ignore[arg-type]
    ],
)  # fmt: skip
def test_wrong_robots_are_one_sentence(call: Callable[[], object], words: str) -> None:
    with pytest.raises(fs.InputError, match=words) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_a_solid_link_is_made_of_a_shape_alone_too() -> None:
    bare, whole = (fs.RobotLink.solid("x", one, 2.0) for one in (fs.Sphere(0.1), fs.Piece(fs.Sphere(0.1))))
    assert bare.shapes == whole.shapes and np.array_equal(bare.inertia, whole.inertia)
    np.testing.assert_allclose(np.diag(bare.inertia), 0.4 * 2.0 * 0.1**2)


def test_a_rotation_of_few_digits_is_the_nearest_one() -> None:
    """As people write them; not a whit of it scales the links."""
    given = np.array([[0.7071, -0.7071, 0.0], [0.7071, 0.7071, 0.0], [0.0, 0.0, 1.0]])
    place, turn = pair({"rotation": given}).pose("b", tool=(1.0, 0.0, 0.0))
    np.testing.assert_allclose(place, [math.sqrt(0.5), math.sqrt(0.5), 0.0], atol=1e-15)
    np.testing.assert_allclose(turn, [0.0, 0.0, math.pi / 4], atol=1e-15)


def test_a_joint_that_is_driven_faster_than_it_can_is_noted() -> None:
    """With the speed at its peak, not the mean one; not where a servo gives way, nor within the limit."""
    for end, exact, noted in ((6.0, True, True), (6.0, False, False), (0.19, True, False)):
        scene = fs.Scene("fast", dt=0.005, duration=0.3)
        scene.add_robot(pair({"kind": "continuous", "max_speed": 1.0}))
        scene.drive_joint("r", "j", fs.Profile([0.0, 0.3], [0.0, end]), stiffness=None if exact else 10.0)
        said = "joint r.j is driven at 30 rad/s at 0.15 s, but its most is 1 rad/s; let its motion take longer"
        assert scene.notes == ([said] if noted else [])
    for speed, noted in ((-1.5, True), (-1.0, False)):
        scene = fs.Scene("fast", dt=0.005, duration=0.3)
        scene.add_robot(pair({"kind": "continuous", "max_speed": 1.0}))
        scene.drive_joint("r", "j", velocity=fs.Profile([0.0, 0.3], [0.0, speed]), damping=1.0)
        said = "joint r.j is to go at -1.5 rad/s, but its most is 1 rad/s; give it less velocity"
        assert scene.notes == ([said] if noted else [])


def test_a_joint_that_jumps_within_a_step_is_noted() -> None:
    """Of a robot that states no limit: not one that goes fast throughout, nor a rough log, nor more than a step."""
    k, said = np.arange(60), "the motion that joint r.j follows exactly goes 0.5 rad from 0.1 to 0.102 s, within a time step of"
    slow, late = 0.1 * np.sin(0.1 * k), np.where(k > 30, 0.5, 0.0)
    cases: list[tuple[Any, Any, bool]] = [
        ([0.0, 0.1, 0.102, 0.3], [0.0, 0.0, 0.5, 0.5], True),
        ([0.0, 0.1, 0.15, 0.3], [0.0, 0.0, 0.5, 0.5], False),
        (0.002 * k, 0.5 * k, False),
        (0.002 * k, 0.01 * (k % 2), False),
        (0.002 * k + 0.04, slow + late, True),
    ]
    for times, values, noted in cases:
        scene = fs.Scene("jump", dt=0.005, duration=0.3)
        scene.add_robot(pair({"kind": "continuous"}), joints={"j": float(np.asarray(values)[0])})
        scene.drive_joint("r", "j", fs.Profile(times, values, smooth=False))  # type: ignore[arg-type]
        found = [note for note in scene.notes if "is it a jump?" in note]
        assert len(found) == noted and (not noted or "within a time step of 0.005 s" in found[0])
        assert times is not cases[0][0] or found[0].startswith(said)


def test_a_speed_at_the_start_beside_an_exact_motion_is_noted() -> None:
    """The motor stopped it in the first step, by any torque, without a word."""
    ramp = fs.Profile([0.0, 1.0], [0.0, 2.0], smooth=False)
    for motion, rate in ((fs.Profile([0.0], [0.0]), "0.00"), (ramp, ""), (math.sin, "1.00")):
        scene = fs.Scene("start", dt=0.005)
        scene.add_robot(pair({"kind": "continuous"}), speeds={"j": 2.0})
        scene.drive_joint("r", "j", motion)
        said = f"joint r.j starts at 2 rad/s, and the motion that it follows exactly at {rate}: its motor takes the difference "
        assert scene.notes == ([f"{said}in the first step"] if rate else [])


def test_names_of_joints_that_joints_are_made_of_are_taken() -> None:
    """Two joints were called w_1, and one of them was driven for the other."""
    links = [fs.RobotLink.solid(name, fs.Piece(fs.Box((0.02, 0.02, 0.02))), 0.5) for name in "abc"]
    joints = [fs.RobotJoint("w", "a", "b", "universal"), fs.RobotJoint("w_1", "b", "c", position=(0.1, 0, 0))]
    with pytest.raises(fs.InputError, match=r"joint 'w_1' is there twice; .*; universal, planar and floating joints are made of"):
        fs.Robot("two", links, joints)
    for joint, link, said in (("base_x", "b", "joint 'base_x'"), ("j", "ground", "link 'ground'")):
        robot = fs.Robot("one", [links[0], fs.RobotLink(link, 1.0, inertia=np.eye(3))], [fs.RobotJoint(joint, "a", link)])
        with pytest.raises(fs.InputError, match=f"a planar base is made of .* the robot has {said} already"):
            fs.Scene("planar").add_robot(robot, base="planar")


def test_a_pose_is_that_of_the_centre_or_of_a_point_of_the_link() -> None:
    """What the robot says of a tool, while it is stepped; the position alone is that of the centre of mass."""
    robot, start = fs.load_robot("arm7.urdf"), {"joint2": 0.6, "joint4": 1.9, "joint7": 0.4}
    scene = fs.Scene("arm", dt=0.005)
    scene.add_robot(robot, name="arm", position=(0.1, 0.2, 0.3), rotation=(0.1, 0.2, 0.3), joints=start)
    scene.add_rigid("box", fs.Box((0.1, 0.1, 0.1)), mass=1.0, position=(0, 0, 2), rotation=(0, 0, math.pi / 2))
    sim = fs.Simulation(scene)
    for tool in ((0.0, 0.0, 0.0), (0.01, -0.02, 0.1)):
        place, turn = robot.pose("hand", start, tool=tool, position=(0.1, 0.2, 0.3), rotation=(0.1, 0.2, 0.3))
        rotation, position = sim.pose("arm.hand", tool=tool)
        np.testing.assert_allclose(position, place, atol=1e-12)
        np.testing.assert_allclose(rotation, Rotation.from_rotvec(turn).as_matrix(), atol=1e-12)
    centre = next(np.asarray(link.centre) for link in robot.links if link.name == "hand")
    np.testing.assert_allclose(sim.pose("arm.hand", tool=centre)[1], sim.pose("arm.hand")[1], atol=1e-12)
    np.testing.assert_allclose(sim.pose("box", tool=(0.1, 0, 0))[1], (0.0, 0.1, 2.0), atol=1e-12)
    with pytest.raises(fs.InputError, match="pose of 'box': tool"):
        sim.pose("box", tool=(0.1, 0))


def test_a_position_of_a_joint_that_mimics_or_is_fixed_is_refused_with_why() -> None:
    robot = fs.load_robot("arm7.urdf")
    follower = next(joint for joint in robot.joints if joint.mimic is not None)
    with pytest.raises(fs.InputError, match=rf"joint '{follower.name}' mimics 'left_jaw', and is at 1 times that plus 0"):
        fs.Scene("arm").add_robot(robot, joints={follower.name: 0.01})
    fixed = next(joint.name for joint in robot.joints if joint.kind == "fixed")
    with pytest.raises(fs.InputError, match=f"joint '{fixed}' is fixed; leave it out"):
        robot.pose("hand", {fixed: 0.0})


def test_a_planar_base_slides_and_turns() -> None:
    scene = fs.Scene("cart", dt=0.005, duration=0.1)
    robot = fs.Robot("cart", [fs.RobotLink.solid("plate", fs.Piece(fs.Box((0.2, 0.1, 0.02))), 3.0)])
    scene.add_robot(robot, base="planar", position=(0, 0, 0.3), speeds={"base_x": 0.4, "base_turn": 1.0})
    scene.sensor("mount", "cart", kind="mount")
    run = fs.simulate(scene)
    body, state = scene.bodies[0], run.stepper.state
    np.testing.assert_allclose(body.link_pose(state.q, 1)[1], [0.04, 0, 0.3], atol=1e-9)
    assert state.q[-1] == pytest.approx(0.1, abs=1e-9)
    np.testing.assert_allclose(run.sensors["mount"].force[-1], [0, 0, 3.0 * G], atol=1e-6)


def test_joints_that_undo_each_other_are_named_not_the_base() -> None:
    """Two pins about one axis, the link between them without inertia about it."""
    links = [fs.RobotLink.solid("base", fs.Piece(fs.Box((0.1, 0.1, 0.1))), 1.0), fs.RobotLink("ring", 0.1)]
    pins = [fs.RobotJoint("roll", "base", "ring", axis=(0, 0, 1)), fs.RobotJoint("yaw", "ring", "head", axis=(0, 0, 1))]
    robot = fs.Robot("r", [*links, fs.RobotLink("head", 0.5, (0.1, 0, 0))], pins)
    scene = fs.Scene("flies", dt=0.01)
    with pytest.raises(fs.InputError, match="joints 'roll' and 'yaw' can turn or slide against each other without moving"):
        scene.add_robot(robot, base="free")


def test_a_free_base_without_mass_is_refused_when_it_is_added(tmp_path: Path) -> None:
    """It failed in the first step: A is not positive definite, check materials, time step and units."""
    geom = '<geom type="box" size="0.1 0.1 0.1"/>'
    (tmp_path / "arm.xml").write_text(
        f'<mujoco><worldbody><body name="a"><joint name="pan"/>{geom}</body></worldbody></mujoco>', encoding="utf-8"
    )
    scene = fs.Scene("arm", dt=0.01, duration=0.1)
    with pytest.raises(fs.InputError, match=r"its base 'world' has no mass or inertia of its own, .* base='fixed'"):
        scene.add_robot(tmp_path / "arm.xml", base="free")
    scene.add_robot(tmp_path / "arm.xml")
    assert fs.simulate(scene).status == "converged"

"""Inverse kinematics and logs of joints: poses against closed forms and what kinematics gives back, limits, speeds, messages."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import femsim as fs

HOME = {"joint2": 0.604, "joint4": 1.942, "joint6": 0.595}


def path_of(folder: Path, positions: np.ndarray, turns: Rotation | None = None, dt: float = 0.02) -> fs.ToolPath:
    rows = positions if turns is None else np.column_stack([positions, turns.as_quat()])
    file = folder / "tool.txt"
    file.write_text("\n".join(" ".join(f"{x:.15g}" for x in row) for row in rows))
    return fs.load_path(file, dt=dt, orientation=None if turns is None else "xyzw")


def circle(centre: np.ndarray, radius: float, n: int = 60) -> np.ndarray:
    angle = np.linspace(0.0, 2.0 * np.pi, n)
    return np.asarray(centre + radius * np.column_stack([np.cos(angle) - 1.0, np.sin(angle), 0.3 * np.sin(angle)]))


def two_bars() -> fs.Robot:
    """An arm in the plane x, z: 0.3 and 0.2 m."""
    bars = [fs.RobotLink.solid(name, fs.Piece(fs.Box((0.1, 0.01, 0.01))), 0.1) for name in ("upper", "fore")]
    joints = [
        fs.RobotJoint("shoulder", "base", "upper", axis=(0, -1, 0), max_speed=2.0),
        fs.RobotJoint("elbow", "upper", "fore", axis=(0, -1, 0), position=(0.3, 0, 0), limits=(0.1, 2.5), max_speed=2.0),
    ]
    return fs.Robot("bars", [fs.RobotLink("base"), *bars], joints)


@pytest.mark.parametrize("x, z", [(0.3, 0.25), (0.1, -0.2), (-0.35, 0.1)])
def test_two_bars_reach_as_the_law_of_cosines_says(x: float, z: float) -> None:
    found = two_bars().reach("fore", (x, 0, z), tool=(0.2, 0, 0), joints={"elbow": 1.0})
    far = math.hypot(x, z)
    elbow = math.acos((far**2 - 0.3**2 - 0.2**2) / (2 * 0.3 * 0.2))
    shoulder = math.atan2(z, x) - math.atan2(0.2 * math.sin(elbow), 0.3 + 0.2 * math.cos(elbow))
    assert found["elbow"] == pytest.approx(elbow, abs=1e-6)
    assert math.remainder(found["shoulder"] - shoulder, 2 * math.pi) == pytest.approx(0.0, abs=1e-6)


def test_an_arm_follows_a_path_with_its_tool_turned_and_its_base_placed(tmp_path: Path) -> None:
    robot = fs.load_robot("arm7.urdf")
    tool: dict[str, Any] = dict(
        tool=(0.01, -0.02, 0.1), tool_rotation=(0.1, 0.7, -0.2), position=(0.2, -0.1, 0.3), rotation=(0.1, 0.2, 1.0)
    )
    place, turn = robot.pose("hand", HOME, **tool)
    turns = Rotation.from_rotvec(np.linspace([0, 0, 0], [0.3, -0.2, 0.4], 60)) * Rotation.from_rotvec(turn)
    path = path_of(tmp_path, circle(place, 0.04), turns)
    found = robot.follow(path, "hand", joints=HOME, **tool)
    assert set(found.joints) == {f"joint{k}" for k in range(1, 8)} and found.duration == path.duration
    for k in (0, 7, 31, 59):
        at, turned = robot.pose("hand", {name: float(own[k]) for name, own in found.joints.items()}, **tool)
        assert at == pytest.approx(path.positions[k], abs=1e-7)
        assert (Rotation.from_rotvec(turned) * turns[k].inv()).magnitude() < 1e-7
    assert max(float(np.abs(np.diff(own)).max()) for own in found.joints.values()) < 0.1  # no leap from one branch to another
    assert found.motion("joint2", start=0.5)(0.5 + 7 * 0.02) == pytest.approx(found.joints["joint2"][7], abs=1e-12)
    assert found.start == {name: own[0] for name, own in found.joints.items()}


def test_a_relative_path_starts_where_the_tool_is_and_keeps_its_turn(tmp_path: Path) -> None:
    robot = fs.load_robot("arm7.urdf")
    place, turn = robot.pose("hand", HOME)
    found = robot.follow(path_of(tmp_path, circle(np.array([5.0, 6.0, 7.0]), 0.03)), "hand", joints=HOME, relative=True)
    assert found.start == pytest.approx({f"joint{k}": HOME.get(f"joint{k}", 0.0) for k in range(1, 8)}, abs=1e-7)
    at, turned = robot.pose("hand", {name: float(own[20]) for name, own in found.joints.items()})
    assert at - place == pytest.approx(circle(np.zeros(3), 0.03)[20], abs=1e-7)
    assert turned == pytest.approx(turn, abs=1e-7)


def test_a_path_that_leaves_the_reach_says_where_and_which_joint_is_at_its_end(tmp_path: Path) -> None:
    way = np.column_stack([np.linspace(0.3, 0.55, 51), np.zeros(51), np.zeros(51)])
    with pytest.raises(fs.InputError, match=r"at pose 41 of 51 \(0.8 s\); the tool lacks .* mm, with elbow at 0.1 at the end"):
        two_bars().follow(path_of(tmp_path, way), "fore", tool=(0.2, 0, 0), turn_free=True)
    assert math.sqrt(0.3**2 + 0.2**2 + 2 * 0.06 * math.cos(0.1)) < way[40, 0]  # what the law of cosines allows


def test_an_arm_of_three_joints_reaches_turns_that_rounded_axes_leave_it(tmp_path: Path) -> None:
    """As files have 1.5708 for a right angle: the axes lean by 3.7e-6 rad, which no joint of such an arm can make up for."""
    bars = [fs.RobotLink.solid(name, fs.Piece(fs.Box((0.1, 0.01, 0.01))), 0.1) for name in ("upper", "fore", "hand")]
    joints = [
        fs.RobotJoint("shoulder", "base", "upper", rotation=(1.5708, 0, 0)),
        fs.RobotJoint("elbow", "upper", "fore", position=(0.3, 0, 0)),
        fs.RobotJoint("wrist", "fore", "hand", position=(0.2, 0, 0)),
    ]
    robot = fs.Robot("planar", [fs.RobotLink("base"), *bars], joints)
    level = Rotation.from_euler("x", math.pi / 2)
    down = Rotation.from_euler("y", math.pi / 2) * level
    found = robot.reach("hand", (0.3, 0, 0.1), down.as_rotvec(), joints={"elbow": -1.0})
    place, turn = robot.pose("hand", found)
    assert np.linalg.norm(place - (0.3, 0, 0.1)) < 1e-6
    assert (Rotation.from_rotvec(turn) * down.inv()).magnitude() == pytest.approx(1.5708 - math.pi / 2, rel=0.05)
    assert sum(found.values()) == pytest.approx(-math.pi / 2, abs=1e-5)

    way = path_of(
        tmp_path, np.column_stack([np.linspace(0.3, 0.35, 6), np.zeros(6), np.full(6, 0.1)]), Rotation.concatenate([down] * 6)
    )
    followed = robot.follow(way, "hand", joints=found, faster=True)
    assert len(followed.notes) == 1 and "the tool lacks up to" in followed.notes[0]
    with pytest.raises(fs.InputError, match=r"and 0\.1 rad\. Move .*, or leave turn out: 3 joints reach few turns at a place"):
        robot.reach("hand", (0.3, 0, 0.1), (Rotation.from_euler("x", 0.1) * down).as_rotvec())


def test_a_joint_that_would_be_too_fast_is_named(tmp_path: Path) -> None:
    way = np.column_stack([np.linspace(0.3, 0.45, 16), np.zeros(16), np.zeros(16)])
    options: dict[str, Any] = dict(tool=(0.2, 0, 0), turn_free=True)
    path = path_of(tmp_path, way, dt=0.005)
    with pytest.raises(fs.InputError, match=r"joint 'shoulder' goes at .* its most is 2"):
        two_bars().follow(path, "fore", **options)
    assert len(two_bars().follow(path, "fore", faster=True, **options).times) == 16


def test_what_a_robot_follows_is_where_its_tool_goes_in_a_scene(tmp_path: Path) -> None:
    robot = fs.load_robot("arm7.urdf")
    place, _ = robot.pose("hand", HOME)
    path = path_of(tmp_path, circle(place, 0.02, 11), dt=0.02)
    found = robot.follow(path, "hand", joints=HOME)
    scene = fs.Scene("go", dt=0.02, duration=0.2)
    arm = scene.add_robot(robot, name="arm", joints=found.start)
    for joint in found.joints:
        scene.drive_joint(arm, joint, found.motion(joint))
    run = fs.simulate(scene)
    body = scene.bodies[0]
    assert body.frame_pose(run.stepper.state.q, body.links.index("hand"))[1] == pytest.approx(  # type: ignore[attr-defined]
        path.positions[-1], abs=1e-7
    )


# ---------------------------------------------------------------------- logs of joints


@pytest.mark.parametrize(
    "text, options",
    [
        ("time_ms,shoulder_deg,elbow_deg\n0,10,20\n500,20,40\n1000,30,60\n", {}),
        ("t;Elbow (deg);Shoulder (deg)\n0;20,0;10,0\n0,5;40,0;20,0\n1;60,0;30,0\n", {}),
        ("0 10 20\n0.5 20 40\n1 30 60\n", {"angle": "deg"}),
        ("10 20\n20 40\n30 60\n", {"angle": "deg", "dt": 0.5}),
        ("a,b,c\n0,20,10\n0.5,40,20\n1,60,30\n", {"time": "a", "columns": {"elbow": "b", "shoulder": "c"}, "angle": "deg"}),
        ("s,a,b\n0,10,20\n0.5,20,40\n1,30,60\n", {"time": "s", "columns": ["a", "b"], "angle": "deg"}),
    ],
)
def test_a_log_of_joints_is_read(text: str, options: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text(text)
    log = two_bars().load_path(tmp_path / "log.csv", **options)
    assert log.times == pytest.approx([0.0, 0.5, 1.0])
    assert log.joints["shoulder"] == pytest.approx(np.radians([10, 20, 30]))
    assert log.joints["elbow"] == pytest.approx(np.radians([20, 40, 60]))


def test_times_of_a_log_that_may_be_no_seconds_are_noted(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("time,shoulder,elbow\n" + "".join(f"{10 * k},{0.001 * k},0.3\n" for k in range(50)))
    noted = two_bars().load_path(tmp_path / "log.csv").notes
    assert len(noted) == 1 and "rows are 10 s apart; where they are ms, say time_unit='ms'" in noted[0]
    assert two_bars().load_path(tmp_path / "log.csv", time_unit="ms").notes == ()
    (tmp_path / "slow.csv").write_text("time,shoulder,elbow\n" + "".join(f"{k},{0.04 * k},0.3\n" for k in range(50)))
    assert two_bars().load_path(tmp_path / "slow.csv").notes == ()  # as ms at 40 rad/s


def test_a_joint_that_mimics_goes_no_faster_than_it_can(tmp_path: Path) -> None:
    """At 1 rad/s of the one that leads it turns back at 5."""
    bars = [fs.RobotLink.solid(name, fs.Piece(fs.Box((0.1, 0.01, 0.01))), 0.1) for name in ("left", "right")]
    joints = [
        fs.RobotJoint("lead", "base", "left", "continuous", max_speed=2.0),
        fs.RobotJoint("led", "base", "right", "continuous", max_speed=4.0, mimic=("lead", -5.0, 0.0)),
    ]
    robot = fs.Robot("hand", [fs.RobotLink("base"), *bars], joints)
    (tmp_path / "log.csv").write_text("t,lead\n0,0\n1,0.79\n")
    assert robot.load_path(tmp_path / "log.csv").joints["lead"][-1] == 0.79
    (tmp_path / "log.csv").write_text("t,lead\n0,0\n1,1\n")
    with pytest.raises(fs.InputError, match=r"'lead' goes at 1 a second .*; its most is 0.8 with joints that mimic it"):
        robot.load_path(tmp_path / "log.csv")


@pytest.mark.parametrize(
    "names, duration, note",
    [
        ("header.stamp", 3.0, ""),
        ("time_from_start", 3.0, ""),
        ("elapsed_ms", 0.003, ""),
        ("runtime_error", 0.5, "no time column: rows are dt = 0.5 s apart; not read: runtime_error"),
    ],
)
def test_times_of_logs_are_known_by_their_names(names: str, duration: float, note: str, tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text(f"{names},shoulder,elbow\n2,0,1\n5,0.1,1\n")
    log = two_bars().load_path(tmp_path / "log.csv", dt=0.5, faster=True)
    assert log.duration == pytest.approx(duration, rel=1e-12) and list(log.notes) == ([note] if note else [])


def test_a_joint_is_no_time(tmp_path: Path) -> None:
    """One that is named as times are."""
    bar = fs.RobotLink.solid("bar", fs.Piece(fs.Box((0.1, 0.01, 0.01))), 0.1)
    robot = fs.Robot("clock", [fs.RobotLink("base"), bar], [fs.RobotJoint("clock", "base", "bar", axis=(0, -1, 0))])
    (tmp_path / "log.csv").write_text("clock,current_A\n0,1\n0.5,1\n")
    log = robot.load_path(tmp_path / "log.csv", dt=0.5)
    assert log.duration == 0.5 and log.joints["clock"].tolist() == [0.0, 0.5]
    assert log.notes == ("no time column: rows are dt = 0.5 s apart; not read: current_A",)


@pytest.mark.parametrize(
    "text, options, said",
    [
        ("t,shoulder,elbow\n0,0,3\n1,0,1\n", {}, "line 2 has elbow at 3, beyond 0.1 to 2.5"),
        ("t,shoulder,elbow\n0,0,1\n0.1,1,1\n", {}, "joint 'shoulder' goes at 10 a second from 0 s to 0.1 s; its most is 2"),
        ("t,shoulder,elbow\n0,0,1\n0,1,1\n", {}, "line 3 is not later"),
        ("t,shoulder,elbow\n0,0,1\n1,nan,1\n", {}, "line 3 has no number in column 'shoulder'"),
        ("t,q1,q2\n0,0,1\n1,1,1\n", {}, "no column is named by a joint"),
        ("t,shoulder,elbow\n12:00:00,0,1\n12:00:01,1,1\n", {}, "the time column 't' begins with '12:00:00', which is no number"),
        ("t,shoulder_mm\n0,0\n1,1\n", {}, "has the unit 'mm'; allowed are"),
        ("0 1 2 3 4\n0 1 2 3 4\n", {}, "has 5 columns without names; allowed are 2"),
        ("t,shoulder,elbow\n0,0,1\n1,1,1\n", {"columns": {"elbo": "elbow"}}, "did you mean 'elbow'"),
        ("t,shoulder,elbow\n0,0,1\n1,1,1\n", {"columns": ["a", "elbow"]}, "has no column 'a'"),
        ("t,shoulder,elbow\n0,0,1\n1,1,1\n", {"angle": "grad"}, "allowed are rad, deg"),
        ("t,shoulder,elbow\n0,0,1\n1,1,1\n", {"time": "tt"}, "no time column 'tt'"),
        ("t,shoulder,elbow,elbow\n0,0,1,1\n1,1,1,1\n", {}, r"has 2 columns 'elbow' \(columns 3, 4\), each of which may be joint"),
        ("elbow,elbow\n0.5,1\n1,1\n", {}, r"has 2 columns 'elbow' \(columns 1, 2\)"),
        ("t,shoulder,elbow,t\n0,0,1,0\n1,1,1,1\n", {}, r"has 2 columns 't' \(columns 1, 4\), each of which may be the time"),
    ],
)
def test_wrong_logs_are_a_sentence(text: str, options: dict[str, Any], said: str, tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text(text)
    with pytest.raises(fs.InputError, match=said):
        two_bars().load_path(tmp_path / "log.csv", **options)


@pytest.mark.parametrize(
    "call, said",
    [
        (lambda robot: robot.reach("far", (0, 0, 0)), "link 'far' is unknown"),
        (lambda robot: robot.reach("base", (0, 0, 0)), "no joint of one coordinate moves link 'base'"),
        (lambda robot: robot.reach("fore", (0, 0, 3)), "out of reach; the tool lacks"),
        (lambda robot: robot.pose("fore", tool=(0, 0)), "allowed are three finite numbers"),
        (lambda robot: robot.pose("fore", {"elbo": 1.0}), "did you mean 'elbow'"),
        (lambda robot: robot.follow("tool.csv", "fore"), "path is 'tool.csv'; give what fs.load_path reads from a file"),
    ],
)
def test_wrong_calls_are_a_sentence(call: Any, said: str) -> None:
    with pytest.raises(fs.InputError, match=said):
        call(two_bars())


def test_forces_along_rows_far_apart_are_those_of_the_motion_they_mean() -> None:
    """Rows of 20 ms, steps of 10 to 2.5 ms: by a spline the wrist bears weight and inertia; straight lines jump at each row."""
    robot = fs.load_robot("arm7.urdf")
    way = robot.follow(fs.load_path("arm7_lift.csv"), "hand")
    part = np.linspace(0.0, 1.0, 601)
    lift = 0.03 * (60.0 * part - 180.0 * part**2 + 120.0 * part**3) / 0.36  # m/s^2, of the polynomial that the rows are from
    expected = 0.66 * (9.81 + lift)
    ranges: dict[bool, list[float]] = {True: [], False: []}
    for dt in (0.01, 0.005, 0.0025):
        for spline, found in ranges.items():
            scene = fs.Scene("arm", dt=dt, duration=0.6)
            scene.add_robot(robot, name="arm", joints=way.start)
            for joint in way.joints:
                scene.drive_joint("arm", joint, way.motion(joint, spline=spline))
            scene.drive_joint("arm", "left_jaw", fs.Profile([0.0], [0.0]))
            scene.sensor("wrist", "arm.hand_mount", kind="joint")
            force = fs.simulate(scene).sensors["wrist"].force[:, 2]
            found.append(float(np.ptp(force)))
    assert ranges[True] == pytest.approx([np.ptp(expected)] * 3, rel=0.05)
    assert ranges[False][2] > 1.9 * ranges[False][1] > 5.0 * ranges[True][1]


def test_a_spline_that_would_leave_the_range_of_its_joint_gives_way(tmp_path: Path) -> None:
    """Rows that go to the very end of a joint and stay there: a spline would swing beyond."""
    limits = next(joint.limits for joint in fs.load_robot("arm7.urdf").joints if joint.name == "joint4")
    assert limits is not None
    end = limits[1]
    rows = "\n".join(f"{0.5 * k},{x!r}" for k, x in enumerate([0.0, 0.0, end, end, 0.0]))
    file = tmp_path / "log.csv"
    file.write_text(f"time_s,joint4\n{rows}\n", encoding="utf-8")
    way = fs.load_robot("arm7.urdf").load_path(file, faster=True)
    curve, free = way.motion("joint4"), fs.Profile(way.times.tolist(), way.joints["joint4"].tolist(), smooth="spline")
    assert free.extremes()[1] > end + 0.05 and curve.extremes() == (0.0, end)
    for time, place in zip(way.times, way.joints["joint4"], strict=True):
        assert curve(time) == free(time) == pytest.approx(place, abs=1e-15)


def test_a_log_of_a_joint_without_a_range_that_turns_far_may_be_in_degrees(tmp_path: Path) -> None:
    """Ninety degrees were ninety rad without a word, where no range refuses them."""
    joint = fs.RobotJoint("swing", "base", "bar", axis=(0, -1, 0))
    robot = fs.Robot("bar", [fs.RobotLink("base"), fs.RobotLink.solid("bar", fs.Piece(fs.Box((0.1, 0.01, 0.01))), 0.1)], [joint])
    for head, most, options, noted in (
        ("swing", 90.0, {}, True), ("swing", -90.0, {}, True), ("swing", 12.0, {}, False), ("swing (rad)", 90.0, {}, False),
        ("swing", 90.0, {"angle": "deg"}, False),
    ):  # fmt: skip
        (tmp_path / "log.csv").write_text(f"t,{head}\n0,0\n1,{most}\n")
        notes = robot.load_path(tmp_path / "log.csv", **options).notes  # type: ignore[arg-type]
        said = "swing goes to 90 rad, 14.3 turns: are these degrees? Then say angle='deg'"
        assert any(said in note for note in notes) == noted

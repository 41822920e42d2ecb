"""Paths of robots: what is read from which file, what is refused and where, and the motion that follows them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from full_sets import full_set, needs_full_sets
from log_files import write_bag_of_poses, write_mcap_of_poses
from scipy.spatial.transform import Rotation

import femsim as fs

XYZ = np.array([[0.1, 0.2, 0.3], [0.11, 0.2, 0.3], [0.12, 0.21, 0.3]])
TURNS = Rotation.from_rotvec([[0.1, -0.2, 3.0], [0.1, -0.2, 3.1], [0.1, -0.2, 3.2]])  # the last is beyond pi
WXYZ = TURNS.as_quat()[:, [3, 0, 1, 2]]


def rows(*columns: np.ndarray) -> str:
    return "\n".join(" ".join(f"{x:.12g}" for x in row) for row in np.column_stack(columns)) + "\n"


def put(folder: Path, text: str, name: str = "path.txt") -> Path:
    (folder / name).write_text(text)
    return folder / name


def same_turns(path: fs.ToolPath) -> bool:
    assert path.quaternions is not None
    assert np.einsum("ij,ij->i", path.quaternions[1:], path.quaternions[:-1]).min() > 0  # no change of sign
    return bool((TURNS * Rotation.from_quat(path.quaternions[:, [1, 2, 3, 0]]).inv()).magnitude().max() < 1e-9)


# ---------------------------------------------------------------------- what is read


@pytest.mark.parametrize(
    ("text", "times"),
    [
        ("\n".join(f"{x}" for x in XYZ.ravel()), None),
        (rows(XYZ), None),
        ("\n".join("{}, {}, {}".format(*row) for row in XYZ) + "\n\n", None),
        (rows([0.0, 0.5, 1.5], XYZ), [0.0, 0.5, 1.5]),
        (rows([0.5, 1.0, 2.0], XYZ), [0.0, 0.5, 1.5]),
        ("fx_N,time_s,ee_x_m,ee_y_m,ee_z_m\n9,0.5,0.1,0.2,0.3\n9,1,0.11,0.2,0.3\n9,2,0.12,0.21,0.3", [0.0, 0.5, 1.5]),
        ("Fx Fy Fz vx vy vz x y z\n" + rows(np.ones((3, 6)), XYZ), None),
        (
            "Robot 7\n\nTime (ms);X (mm);Y (mm);Z (mm)\n0;100,0;200,0;300,0\n500;110,0;200,0;300,0\n1500;120,0;210,0;300,0\n",
            [0.0, 0.5, 1.5],
        ),
        ("x_m y_m z_m\n" + rows(XYZ), None),
        ("# of the robot\n# \n# x_m y_m z_m\n" + rows(XYZ), None),
    ],
)
def test_positions_are_read(text: str, times: list[float] | None, tmp_path: Path) -> None:
    path = fs.load_path(put(tmp_path, text), dt=0.25)
    assert np.allclose(path.positions, XYZ, rtol=0, atol=1e-15)
    assert path.times == pytest.approx(times or [0.0, 0.25, 0.5])
    assert path.quaternions is None and "no orientations" in path.words


@pytest.mark.parametrize(
    ("names", "times"),
    [
        ("header.stamp", [0.0, 0.5, 1.5]),
        ("field.header.stamp", [0.0, 0.5, 1.5]),
        ("/arm/joint_states/header/stamp", [0.0, 0.5, 1.5]),
        ("elapsed_time", [0.0, 0.5, 1.5]),
        ("elapsed_s", [0.0, 0.5, 1.5]),
        ("elapsedTime_ms", [0.0, 0.0005, 0.0015]),
        ("robot_time_s", [0.0, 0.5, 1.5]),
        ("time_from_start", [0.0, 0.5, 1.5]),
        ("unix_time", [0.0, 0.5, 1.5]),
        ("secs", [0.0, 0.5, 1.5]),
        ("stamp.millis", [0.0, 0.0005, 0.0015]),
        ("clock", [0.0, 0.5, 1.5]),
        ("runtime_error", None),
        ("start_time", None),
        ("clock_skew", None),
        ("lifetime", None),
        ("min", None),
        ("elapsed_N", None),
    ],
)
def test_times_are_known_by_their_names(names: str, times: list[float] | None, tmp_path: Path) -> None:
    """Or the words say that there are none."""
    path = fs.load_path(put(tmp_path, f"{names} x_m y_m z_m\n" + rows([0.0, 0.5, 1.5], XYZ)), dt=0.25, max_speed=1e3, jumps=True)
    assert path.times == pytest.approx(times or [0.0, 0.25, 0.5], rel=1e-12)
    assert ("no time column: rows are dt = 0.25 s apart" in path.words) == (times is None)
    assert path.notes == (() if times else (f"columns that were not read: {names.removesuffix('_N')}",))


@pytest.mark.parametrize("names", ["header.stamp.sec header.stamp.nanosec", "stamp_sec stamp_nsec", "secs nsecs"])
def test_seconds_and_what_is_beyond_them_are_one_time(names: str, tmp_path: Path) -> None:
    """As ROS writes stamps; in any order of the columns."""
    stamps = np.array([[1700000005.0, 750000000.0], [1700000006.0, 250000000.0], [1700000007.0, 250000000.0]])
    for order in ([0, 1], [1, 0]):
        header = " ".join(names.split()[k] for k in order)
        path = fs.load_path(put(tmp_path, f"{header} x_m y_m z_m\n" + rows(stamps[:, order], XYZ)))
        assert path.times == pytest.approx([0.0, 0.5, 1.5], abs=1e-12) and path.notes == ()
        assert path.clock == 1700000005.75


@pytest.mark.parametrize(
    ("header", "turns", "options"),
    [
        ("", WXYZ, {"orientation": "wxyz"}),
        ("", -WXYZ, {"orientation": "wxyz"}),
        ("", WXYZ[:, [1, 2, 3, 0]] * [[1], [-1], [1]], {"orientation": "xyzw"}),
        ("", TURNS.as_rotvec(), {"orientation": "vector"}),
        ("", TURNS.as_rotvec(degrees=True), {"orientation": "vector", "angle": "deg"}),
        ("", TURNS.as_matrix().reshape(3, 9), {"orientation": "matrix"}),
        ("x_m,y_m,z_m,qx,qy,qz,qw\n", WXYZ[:, [1, 2, 3, 0]], {}),
        ("pose.position.x,pose.position.y,pose.position.z,pose.orientation.w,pose.orientation.x,pose.orientation.y,"
         "pose.orientation.z\n", WXYZ, {}),
        ("tcp_x_m,tcp_y_m,tcp_z_m,tcp_rx_deg,tcp_ry_deg,tcp_rz_deg\n", TURNS.as_rotvec(degrees=True), {"orientation": "vector"}),
        ("x,y,z," + ",".join(f"r{i}{j}" for i in "123" for j in "123") + "\n", TURNS.as_matrix().reshape(3, 9), {}),
        ("p_0,p_1,p_2,p_3,p_4,p_5\n", TURNS.as_rotvec(), {"orientation": "vector", "columns": [f"p_{k}" for k in range(6)]}),
    ],
)  # fmt: skip
def test_orientations_are_read(header: str, turns: np.ndarray, options: dict[str, object], tmp_path: Path) -> None:
    text = rows(XYZ, turns)
    file = put(tmp_path, header + (text.replace(" ", ",") if header else text))
    path = fs.load_path(file, dt=0.25, **options)
    assert ("quaternions by name" in repr(path)) == ("qw" in header or "orientation.w" in header)
    assert np.array_equal(path.positions, XYZ) and same_turns(path)
    assert np.allclose(path.start[1], TURNS[0].as_rotvec()) and np.array_equal(path.start[0], XYZ[0])


@pytest.mark.parametrize("order", ["pose_rows", "pose_columns"])
def test_whole_poses_and_second_files_are_read(order: str, tmp_path: Path) -> None:
    poses = np.tile(np.eye(4), (3, 1, 1))
    poses[:, :3, :3], poses[:, :3, 3] = TURNS.as_matrix(), XYZ
    flat = (poses if order == "pose_rows" else poses.transpose(0, 2, 1)).reshape(3, 16)
    path = fs.load_path(put(tmp_path, rows([0.0, 0.5, 1.0], flat)), orientation=order)
    assert np.array_equal(path.positions, XYZ) and same_turns(path) and path.times.tolist() == [0.0, 0.5, 1.0]
    places = put(tmp_path, "\n".join(f"{x}" for x in XYZ.ravel()), "p.txt")
    matrices = put(tmp_path, "\n".join(f"{x:.15g}" for x in TURNS.as_matrix().ravel()), "R.txt")
    quaternions = put(tmp_path, rows(WXYZ), "q.txt")
    assert same_turns(fs.load_path(places, dt=0.5, orientations=matrices))
    assert same_turns(fs.load_path(places, dt=0.5, orientations=quaternions, orientation="wxyz"))
    with pytest.raises(fs.InputError, match=r"has 3 positions, but .*q.txt has 2 orientations"):
        fs.load_path(places, orientations=put(tmp_path, rows(WXYZ[:2]), "q.txt"), orientation="wxyz")


@needs_full_sets
@pytest.mark.parametrize("order", ["pose_rows", "pose_columns"])
def test_matrices_of_the_other_order_are_refused(order: str, tmp_path: Path) -> None:
    """They were read as poses that all lie at the origin."""
    poses = np.tile(np.eye(4), (3, 1, 1))
    poses[:, :3, :3], poses[:, :3, 3] = TURNS.as_matrix(), XYZ
    other = "pose_columns" if order == "pose_rows" else "pose_rows"
    flat = (poses if other == "pose_rows" else poses.transpose(0, 2, 1)).reshape(3, 16)
    said = f"line 1 has no pose by orientation='{order}': the last row of its matrix is 0.1, 0.2, 0.3, 1, and must be 0, 0, 0, 1"
    with pytest.raises(fs.InputError, match=f"{said}; they fit orientation='{other}'"):
        fs.load_path(put(tmp_path, rows(flat)), orientation=order)
    flat[1, [3, 12]] = 0.5
    with pytest.raises(fs.InputError, match="check the order of the columns"):
        fs.load_path(put(tmp_path, "\n".join(f"{x}" for x in flat.ravel())), orientation=order)


def test_the_order_of_a_quaternion_must_not_contradict_its_names(tmp_path: Path) -> None:
    file = put(tmp_path, "x,y,z,qx,qy,qz,qw\n" + rows(XYZ, WXYZ[:, [1, 2, 3, 0]]).replace(" ", ","))
    names = ["x", "y", "z", "qx", "qy", "qz", "qw"]
    with pytest.raises(
        fs.InputError, match=r"columns names qx, qy, qz, qw, but orientation is 'wxyz'; .* or say orientation='xyzw'"
    ):
        fs.load_path(file, columns=names, orientation="wxyz")
    assert same_turns(fs.load_path(file, columns=names, orientation="xyzw"))
    assert same_turns(fs.load_path(file, columns=["x", "y", "z", "qw", "qx", "qy", "qz"], orientation="wxyz"))


@pytest.mark.parametrize(
    ("name", "step", "count", "options", "noted"),
    [
        ("time", 10.0, 50, {}, True),
        ("time", 1.0, 50, {}, True),
        ("time_s", 10.0, 50, {}, False),
        ("time", 10.0, 50, {"time_unit": "ms"}, False),
        ("time", 0.5, 50, {}, False),
        ("time", 1.37, 50, {}, False),
        ("time", 10.0, 5, {}, False),
    ],
)
def test_times_that_may_be_no_seconds_are_noted(
    name: str, step: float, count: int, options: dict[str, Any], noted: bool, tmp_path: Path
) -> None:
    """A path of 2 s with its times in ms was one of 2000 s without a word."""
    k = np.arange(count)
    path = fs.load_path(put(tmp_path, f"{name} x y z\n" + rows(step * k, 1e-3 * k, 0 * k, 0 * k)), **options)
    assert any(f"rows are {step:g} s apart; where they are ms, say time_unit='ms'" in note for note in path.notes) == noted


def test_times_are_not_called_ms_where_the_tool_would_be_too_fast(tmp_path: Path) -> None:
    """A path at 1 Hz of 20 mm a second, or of 0.1 rad: as ms 20 m/s, or 100 rad/s."""
    k = np.arange(30)
    path = fs.load_path(put(tmp_path, "time x y z\n" + rows(k, 0.02 * k, 0 * k, 0 * k)))
    assert path.notes == ()
    turning = rows(k, 1e-3 * k, 0 * k, 0 * k, np.cos(0.05 * k), np.sin(0.05 * k), 0 * k, 0 * k)
    assert fs.load_path(put(tmp_path, "time x y z qw qx qy qz\n" + turning)).notes == ()


def test_the_published_path_of_the_robot_is_read() -> None:
    """5500 poses, the tool straight down in all of them, 2.573 m of way, at most 0.000755 m in a step (its README)."""
    folder = full_set("cable_winding")
    path = fs.load_path(folder / "p_des.txt", orientations=folder / "R_des.txt")
    way = np.linalg.norm(np.diff(path.positions, axis=0), axis=1)
    assert (
        len(path.times) == 5500 and way.sum() == pytest.approx(2.573, abs=5e-4) and way.max() == pytest.approx(7.55e-4, abs=1e-6)
    )
    assert path.quaternions is not None and np.abs(np.abs(path.quaternions) - [0, 1, 0, 0]).max() < 1e-6


@pytest.mark.parametrize("kind", ["PoseStamped", "TransformStamped", "Odometry"])
def test_bags_are_read(kind: str, tmp_path: Path) -> None:
    poses = np.column_stack([XYZ, WXYZ[:, [1, 2, 3, 0]]])
    file = write_mcap_of_poses(tmp_path / "a.mcap", kind, poses, rate=4.0)
    path = fs.load_path(file)
    assert path.times.tolist() == [0.0, 0.25, 0.5] and np.array_equal(path.positions, XYZ) and same_turns(path)
    assert "frame 'base' is the world" in path.words and path.clock == pytest.approx(1.7e9)
    with pytest.raises(fs.InputError, match=r"no poses on topic '/pos'"):
        fs.load_path(file, topic="/pos")
    with pytest.raises(fs.InputError, match=r"2 topics with PoseStamped.*/other, /pose.*topic="):
        fs.load_path(write_mcap_of_poses(tmp_path / "b.mcap", kind, poses, rate=4.0, topics=("/pose", "/other")))


def test_a_bag_with_a_topic_without_a_name_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("rosbags")
    write_bag_of_poses(tmp_path / "bag", np.tile([0.1, 0.2, 0.3, 0.0, 0.0, 0.0, 1.0], (4, 1)), rate=4.0)
    words = tmp_path / "bag" / "metadata.yaml"
    words.write_text(words.read_text().replace("name: /pose", "name:"))
    with pytest.raises(fs.InputError, match="it has a topic without a name"):
        fs.load_path(tmp_path / "bag")


def test_rosbags_are_read(tmp_path: Path) -> None:
    folder = write_bag_of_poses(tmp_path / "bag", np.column_stack([XYZ, WXYZ[:, [1, 2, 3, 0]]]), rate=4.0)
    path = fs.load_path(folder)
    assert path.times.tolist() == [0.0, 0.25, 0.5] and np.array_equal(path.positions, XYZ) and same_turns(path)


# ---------------------------------------------------------------------- what is refused, and where

LONG = np.column_stack([np.linspace(0, 0.1, 41), np.zeros((41, 2))])


def changed(row: int, x: float) -> str:
    out = LONG.copy()
    out[row:, 0] += x
    return rows(out)


@pytest.mark.parametrize(
    ("text", "options", "match"),
    [
        ("", {}, "is empty"),
        ("1\n2\n3\n4", {}, "4 lines of one number"),
        ("1\n2\nthree", {}, "line 3 is 'three'"),
        ("1 2 3\n4 nan 6\n1 2 3", {}, "line 2 has no number in column '2'"),
        (
            "timestamp,x,y,z\n2024-01-01T00:00:00.00,1,2,3\n2024-01-01T00:00:00.02,1,2,3",
            {},
            "'timestamp' begins with '2024-01-01T",
        ),
        ("time_ms,x,y,z\n,1,2,3\n20,1,2,3", {"columns": ["x", "y", "z"]}, "'time' begins with '', which is no"),
        ("1 2 3\n4 5\n7 8 9", {}, "line 2 has 2 cells, but the table has 3"),
        ("1 2 3\n4 5 x\n7 8 9", {}, "line 2: column '3' holds 'x'"),
        ("1 2 3 4 5\n1 2 3 4 5", {}, r"5 columns without names; allowed are 3 \(x, y, z\) or 4"),
        (rows(XYZ, WXYZ), {}, r"7 columns without names.*orientation="),
        (
            "a b c\n1 2 3\n4 5 6",
            {},
            r"none is a position \(robot.load_path reads angles of joints\); name three by columns=.*'x_m'",
        ),
        (
            "left_x,left_y,left_z,b_x,b_y,b_z\n1,2,3,4,5,6\n1,2,3,4,5,6",
            {},
            "several may be a position: left_x left_y left_z, b_x b_y b_z",
        ),
        ("x,y,z,rx,ry,rz\n1,2,3,0,0,0\n1,2,3,0,0,0", {}, "rx ry rz may be rotation vectors or angles of some Euler"),
        (
            "x,y,z,roll,pitch,yaw_deg\n1,2,3,0,0,9\n1,2,3,0,0,9",
            {},
            "roll pitch yaw are Euler angles, which are not read, .* columns=",
        ),
        ("x,y,z,qx,qy,qz\n1,2,3,0,0,0\n1,2,3,0,0,0", {}, "qx qy qz are three parts of a quaternion; write the fourth"),
        ("x_mm,y_m,z_m\n1,2,3\n4,5,6", {}, "units mm, m, m; give them all in one"),
        ("1 2 3", {}, "1 rows"),
        (
            "0.1 1 2 3\n0.3 1 2 3\n0.2 1 2 3",
            {},
            r"line 3 \(0.1 s after the first\) lies before line 2 .*, the only such place; times",
        ),
        ("0 1 2 3\n1 1 2 3\n1 1 2 3", {}, r"line 3 \(1 s\) repeats the time of line 2 \(1 s\)"),
        ("0 1 2 3\n1000000000 1 2 3", {}, "lasts 1e[+]09 s.*time_unit='ms', 'us' or 'ns'"),
        ("100 200 300\n101 200 300", {}, r"reaches 300 in line 1 \(0 s\).*length='mm'"),
        (
            "100 200 300\n101 200 300",
            {"length": "m", "dt": 10.0, "max_speed": 0.05},
            r"moves by 1 m from line 1 \(0 s\) to line 2",
        ),
        (changed(20, 0.2), {}, r"moves by 0.2025 m from line 20 \(0.19 s\) to line 21 \(0.2 s\), at 20.25 m/s"),
        (changed(20, 0.03), {}, r"jumps by 0.0325 m from line 20 \(0.19 s\) to line 21 \(0.2 s\), ten times as fast"),
        (rows(XYZ, 2 * WXYZ), {"orientation": "wxyz"}, r"quaternion of line 1 \(0 s\) has length 2; allowed is 1"),
        (rows(XYZ, -TURNS.as_matrix().reshape(3, 9)), {"orientation": "matrix"}, r"matrix of line 1 \(0 s\) is no rotation"),
        (rows(XYZ, TURNS.as_rotvec(degrees=True)), {"orientation": "vector"}, "more than a full turn; say angle='deg'"),
        (rows(XYZ, WXYZ), {"orientation": "xyzw", "dt": 0.001, "max_speed": 20}, "turns by .* rad from line 1"),
        (rows(XYZ), {"orientation": "zyx"}, "orientation 'zyx' is unknown"),
        (rows(XYZ), {"length": "ell"}, "length is 'ell'; allowed are m, cm"),
        (rows(XYZ), {"dt": 0.0}, "dt is 0.0 s"),
        (rows(XYZ), {"dt": True}, "dt is True s"),
        (rows(XYZ), {"max_speed": -1.0}, "both must be positive"),
        (rows(XYZ), {"base": (0, 0, 0)}, r"base is \(0, 0, 0\); give a position"),
        ("x_m,y_m,z_m\n" + rows(XYZ).replace(" ", ","), {"columns": ["x", "y", "zed"]}, "has no column 'zed'"),
    ],
)
def test_bad_paths_are_refused(text: str, options: dict[str, object], match: str, tmp_path: Path) -> None:
    with pytest.raises(fs.InputError, match=match) as caught:
        fs.load_path(put(tmp_path, text), **options)
    assert "path.txt" in str(caught.value)


def spiked(rows_of: Sequence[int], way: float, turn: float = 0.0) -> str:
    """A slow path along x and about z of which some rows lie off by way (m) in y and turn (rad)."""
    out, angle = LONG.copy(), np.linspace(0.0, 0.1, len(LONG))
    out[list(rows_of), 1] += way
    angle[list(rows_of)] += turn
    return rows(out, np.column_stack([0.0 * angle, 0.0 * angle, np.sin(angle / 2), np.cos(angle / 2)]))


@pytest.mark.parametrize(
    ("out", "way", "turn", "said"),
    [
        ([20], 0.03, 0.0, r"jumps by 0.0301 m from line 20 \(0.19 s\) to line 21 \(0.2 s\) and back at once, ten times as fast"),
        ([20, 21], 0.03, 0.0, r"jumps by 0.0301 m from line 20 \(0.19 s\) to line 21 .* and back at once"),
        ([20], 0.0, 0.15, r"jumps by 0.15.* rad from line 20 \(0.19 s\) to line 21 .* and back at once"),
        ([3, 30], 0.03, 0.0, r"from line 3 .* to line 4 .* one of 2 such places"),
        ([20], 0.0015, 0.0, ""),
    ],
)
def test_rows_that_lie_elsewhere_by_a_fault_are_refused(
    out: list[int], way: float, turn: float, said: str, tmp_path: Path
) -> None:
    """But not those that the last digit moves; and all are taken where the robot did so."""
    file = put(tmp_path, spiked(out, way, turn))
    assert len(fs.load_path(file, orientation="xyzw", jumps=True).times) == 41
    if not said:
        fs.load_path(file, orientation="xyzw")
        return
    with pytest.raises(fs.InputError, match=said):
        fs.load_path(file, orientation="xyzw")


def test_a_quick_way_out_and_back_is_no_fault(tmp_path: Path) -> None:
    """A tap within 0.1 s from rest, by a smooth curve: its speed grows over rows."""
    for rest in (0.0, 0.003):
        tap = 0.02 * np.sin(np.pi * np.clip((np.arange(41) - 15) / 10.0, 0.0, 1.0)) ** 2 + rest * np.arange(41)
        fs.load_path(put(tmp_path, rows(LONG + np.column_stack([0 * tap, tap, 0 * tap]))))


@pytest.mark.parametrize(
    ("header", "options", "words"),
    [
        ("time,x,y,z,qw,qx,qy,qz,qw", {}, r"2 columns 'qw' \(columns 5, 9\), each of which may be a part of the pose"),
        ("time,x,y,z,qw,qx,qy,qz,y", {}, r"2 columns 'y' \(columns 3, 9\), each of which may be a part of the pose"),
        ("time,x_m,x_m,z_m,qw,qx,qy,qz", {}, r"columns 2 and 3 have one name, 'x'; name three by columns="),
        ("time,x,y,z,qw,qx,qy,qz,time", {}, r"2 columns 'time' \(columns 1, 9\), each of which may be the time"),
        ("header.stamp,x,y,z,qw,qx,qy,qz,header.stamp", {}, r"2 columns 'header.stamp' .* may be the time; .* number as time="),
        ("time,x,y,z,qw,qx,qy,qz,time", {"time": "1"}, ""),
        ("time,x,y,z,qw,qx,qy,qz,qw", {"columns": ["x", "y", "z", "5", "qx", "qy", "qz"], "orientation": "wxyz"}, ""),
        ("time,ee_x,ee_y,ee_z,qw,qx,qy,qz,x,x", {}, ""),
        ("time,x,y,z,qw,qx,qy,qz,load,load", {}, ""),
    ],
)
def test_double_names_of_a_pose_are_refused(header: str, options: dict[str, Any], words: str, tmp_path: Path) -> None:
    """They were left out with a note: a pose without its orientation, or at dt instead of its times."""
    rows = [[f"{0.1 * k:.1f}", "0", "0", f"{0.01 * k:.2f}", "0.6", "0.8", "0", "0", "5", "5"] for k in range(9)]
    path = tmp_path / "p.csv"
    path.write_text("\n".join([header, *(",".join(row[: header.count(",") + 1]) for row in rows)]))
    if words:
        with pytest.raises(fs.InputError, match=words):
            fs.load_path(path, **options)
    else:
        read = fs.load_path(path, **options)
        assert read.quaternions is not None and read.times[1] == pytest.approx(0.1)
        assert read.positions[1] == pytest.approx([0.0, 0.0, 0.01])


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(fs.InputError, match=r"arm7_lif.csv cannot be read \(No such.*\); did you mean 'arm7_lift.csv'\?$"):
        fs.load_path("arm7_lif.csv")
    with pytest.raises(fs.InputError, match=r"nothing.txt cannot be read"):
        fs.load_path(tmp_path / "nothing.txt")


def test_what_the_robot_did_can_be_accepted(tmp_path: Path) -> None:
    path = fs.load_path(put(tmp_path, changed(20, 0.03)), jumps=True)
    assert path.positions[-1, 0] == pytest.approx(0.13)
    gap = fs.load_path(put(tmp_path, rows([*np.arange(20) * 0.01, *(1.0 + np.arange(21) * 0.01)], LONG)))
    assert gap.notes == ("no pose from line 20 (0.19 s) to line 21 (1 s): straight there",)
    assert "no pose from line 20" in repr(gap) and "41 poses in 1.2 s" in repr(gap)
    starts = np.concatenate([np.zeros(20), 0.5 * 2.0 * (0.01 * np.arange(21)) ** 2])  # from rest, by 2 m/s2
    assert fs.load_path(put(tmp_path, rows(starts, np.zeros((41, 2))))).notes == ()


# ---------------------------------------------------------------------- the motion


def test_a_motion_follows_the_poses_without_easing(tmp_path: Path) -> None:
    """At the poses themselves, half-way between them, before and after, and about another centre; beyond half a turn too."""
    base = ([1.0, -2.0, 0.5], [0.3, 0.2, -1.0])
    path = fs.load_path(put(tmp_path, rows(XYZ, WXYZ)), dt=0.25, orientation="wxyz", base=base)
    turn = Rotation.from_rotvec(base[1])
    places, turns = turn.apply(XYZ) + base[0], turn * TURNS
    centre = places[0] + [0.0, 0.05, 0.1]
    follow, beside = path.motion(start=1.0), path.motion(start=1.0, centre=centre)
    for t, row in ((-3.0, 0), (1.0, 0), (1.25, 1), (1.5, 2), (9.0, 2)):
        way, vector = follow(t)
        moved = turns[row] * turns[0].inv()
        assert np.allclose(places[0] + way, places[row], rtol=0, atol=1e-15)
        assert (Rotation.from_rotvec(vector) * moved.inv()).magnitude() < 1e-12
        assert np.allclose(centre + beside(t)[0], places[row] + moved.apply(centre - places[0]), rtol=0, atol=1e-14)
    way, vector = path.motion(start=1.0, spline=False)(1.375)
    half = Rotation.from_rotvec(vector) * turns[0]
    assert np.allclose(places[0] + way, 0.5 * (places[1] + places[2]))
    assert (half * turns[1].inv()).magnitude() == pytest.approx((half * turns[2].inv()).magnitude(), rel=1e-12)
    with pytest.raises(fs.InputError, match="both must be finite"):
        path.motion(start=float("nan"))


def test_what_a_mount_bears_along_a_path_is_what_its_motion_means() -> None:
    """Rows of 20 ms of a polynomial that lifts by 30 mm and turns by 0.15 rad in 0.6 s; the body is 1 kg and a cube of 50 mm."""
    path = fs.load_path("arm7_lift.csv")
    position, rotation = path.start
    lift, turn = 0.03 * 5.7735 / 0.36, 0.15 * 5.7735 / 0.36 * 0.05**2 / 6.0  # N and N m, at most
    for dt in (0.01, 0.0025):
        ranges = {}
        for spline in (True, False):
            scene = fs.Scene("hand", dt=dt, duration=0.6)
            scene.add_rigid("hand", fs.Box((0.025, 0.025, 0.025)), mass=1.0, position=position, rotation=rotation)
            scene.drive("hand", path.motion(spline=spline))
            scene.sensor("mount", "hand", kind="mount")
            mount = fs.simulate(scene).sensors["mount"]
            ranges[spline] = float(np.ptp(mount.force[:, 2])), float(np.ptp(mount.torque[:, 2]))
        assert ranges[True] == pytest.approx((2.0 * lift, 2.0 * turn), rel=0.05)
        assert ranges[False][0] > 1.9 * ranges[True][0]


def test_a_driven_body_goes_where_the_robot_went(tmp_path: Path) -> None:
    """Two full turns of a hand, which rotation vectors cannot hold without a jump, and its tool on a circle."""
    angle = np.linspace(0.0, 4.0 * np.pi, 101)
    turns = Rotation.from_rotvec(np.column_stack([np.zeros((101, 2)), angle]))
    places = turns.apply([0.1, 0.0, 0.0])
    path = fs.load_path(put(tmp_path, rows(places, turns.as_quat())), dt=0.01, orientation="xyzw", max_turn=20.0)
    scene = fs.Scene("hand", dt=0.01, duration=1.0, gravity=(0, 0, 0))
    scene.add_rigid("hand", fs.Box((0.02, 0.02, 0.02)), mass=1.0, position=(0.0, 0.0, 0.0))
    scene.drive("hand", path.motion(centre=(0.0, 0.0, 0.0), name="robot"))
    with fs.Simulation(scene) as sim:
        assert sim.targets["robot"].startswith("displacement")
        for k in (13, 50, 75, 100):
            rotation, position = sim.step(k - sim.state.step).pose("hand")
            assert np.abs(position).max() < 3e-13  # the tool goes round it
            assert np.abs(rotation @ [0.1, 0.0, 0.0] - places[k]).max() < 1e-12


def test_the_page_works_as_it_stands_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = Path(fs.__file__).resolve().parent.parent / "docs" / "paths.md"
    if not page.is_file():
        pytest.skip("the docs are not here (they come with the repository)")
    monkeypatch.chdir(tmp_path)
    put(tmp_path, rows(XYZ, WXYZ[:, [1, 2, 3, 0]]), "tool.csv")
    names: dict[str, Any] = {}
    for code in re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.S):
        exec(code.replace('orientation="xyzw"', 'orientation="xyzw", dt=0.25'), names)
    path, scene = names["path"], names["scene"]
    assert scene.duration == 1.0
    run = fs.simulate(scene, duration=0.52)
    assert np.allclose(path.positions[0], [0.1, 0.1, 1.1], atol=1e-5)  # turned by a right angle about z
    assert run.sensors["wrist"].force[10, 2] == pytest.approx(0.5 * 9.81, rel=1e-9)  # at rest: its weight


def test_a_path_of_a_formula_is_one_of_a_file() -> None:
    t = np.linspace(0.0, 1.0, 5)
    path = fs.ToolPath("arc", t.tolist(), np.column_stack([np.cos(t), np.sin(t), 0 * t]).tolist())  # type: ignore[arg-type]
    assert path.duration == 1.0 and repr(path).startswith("<ToolPath arc: 5 poses in 1 s, 0.997")
    np.testing.assert_allclose(path.motion()(0.5)[0], [np.cos(0.5) - 1.0, np.sin(0.5), 0.0], atol=1e-15)


@pytest.mark.parametrize("spline", [True, False])
def test_a_change_of_sign_in_a_path_of_arrays_is_no_turn(spline: bool) -> None:
    angles = np.linspace(0.0, 2.0, 5)
    turns = np.column_stack([np.cos(angles / 2), 0 * angles, 0 * angles, np.sin(angles / 2)])
    signs = np.array([1.0, -1.0, 1.0, 1.0, -1.0])[:, None]
    path = fs.ToolPath("turn", angles, np.zeros((5, 3)), signs * turns)
    assert path.quaternions is not None and np.array_equal(path.quaternions, turns)
    for t in (0.3, 0.7, 1.2, 1.9):
        np.testing.assert_allclose(path.motion(spline=spline)(t)[1], [0.0, 0.0, t], atol=1e-12)


@pytest.mark.parametrize(
    ("times", "positions", "quaternions", "words"),
    [
        ([0.0], [[0, 0, 0]], None, "at least two"),
        ([0.0, 1.0], [[0, 0], [0, 0]], None, r"positions has the shape \(2, 2\)"),
        ([0.0, 1.0], [[0, 0, 0], [0, 0, np.nan]], None, "5 of its 6 numbers finite"),
        ([0.1, 1.0], np.zeros((2, 3)), None, "begin at 0.1 s"),
        ([0.0, 1.0, 1.0], np.zeros((3, 3)), None, "must increase"),
        ([0.0, 1.0], np.zeros((2, 3)), np.ones((2, 4)), "length 1"),
        ([0.0, 1.0], np.zeros((2, 3)), np.ones((2, 3)), "quaternions has the shape"),
    ],
)
def test_a_path_of_wrong_arrays_is_a_sentence(times: Any, positions: Any, quaternions: Any, words: str) -> None:
    with pytest.raises(fs.InputError, match=words):
        fs.ToolPath("arc", times, positions, quaternions)

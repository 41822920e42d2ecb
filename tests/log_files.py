"""Logs of a force sensor, of markers, of poses and of joints, written in the formats of others."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

RATE, COUNT = 250.0, 60
TIME = np.arange(COUNT) / RATE
VALUES = np.round(np.random.default_rng(2).normal(0.0, 3.0, (COUNT, 6)), 6)
WRENCH_STAMPED = """std_msgs/Header header
geometry_msgs/Wrench wrench
================================================================================
MSG: std_msgs/Header
builtin_interfaces/Time stamp
string frame_id
================================================================================
MSG: builtin_interfaces/Time
int32 sec
uint32 nanosec
================================================================================
MSG: geometry_msgs/Wrench
geometry_msgs/Vector3 force
geometry_msgs/Vector3 torque
================================================================================
MSG: geometry_msgs/Vector3
float64 x
float64 y
float64 z
"""


def write_c3d(path: Path, points: np.ndarray, labels: list[str], unit: str, hidden: tuple[int, int] | None = None) -> Path:
    ezc3d = pytest.importorskip("ezc3d")
    c3d = ezc3d.c3d()
    c3d["parameters"]["POINT"]["RATE"]["value"] = [RATE]
    c3d["parameters"]["POINT"]["LABELS"]["value"] = labels
    c3d.add_parameter("POINT", "UNITS", [unit])
    data, residuals = np.ones((4, *points.shape[1:])), np.zeros((1, *points.shape[1:]))
    data[:3] = points
    if hidden is not None:
        residuals[0, hidden[0], hidden[1]] = -1.0  # as C3D marks what was not seen
    c3d["data"]["points"] = data
    c3d["data"]["meta_points"]["residuals"] = residuals
    c3d["data"]["meta_points"]["camera_masks"] = np.zeros((7, *points.shape[1:]), dtype=bool)
    c3d.write(str(path))
    return path


def write_mcap(path: Path, topics: tuple[str, ...] = ("/wrench",), frames: tuple[str, ...] = ("tool0",)) -> Path:
    writer_module = pytest.importorskip("mcap_ros2.writer")
    with open(path, "wb") as stream:
        writer = writer_module.Writer(stream)
        schema = writer.register_msgdef("geometry_msgs/msg/WrenchStamped", WRENCH_STAMPED)
        for k, (t, row) in enumerate(zip(TIME, VALUES, strict=True)):
            stamp = 1_700_000_000_000_000_000 + round(t * 1e9)
            message = {
                "header": {"stamp": {"sec": stamp // 10**9, "nanosec": stamp % 10**9}, "frame_id": frames[k % len(frames)]},
                "wrench": {
                    name: dict(zip("xyz", part.tolist(), strict=True)) for name, part in (("force", row[:3]), ("torque", row[3:]))
                },
            }
            for topic in topics:
                writer.write_message(topic, schema, message, log_time=stamp + 5_000_000 * (k % 2), publish_time=stamp, sequence=k)
        writer.finish()
    return path


_HEADER = WRENCH_STAMPED[
    WRENCH_STAMPED.index("=" * 80 + "\nMSG: std_msgs/Header") : WRENCH_STAMPED.index("MSG: geometry_msgs/Wrench")
]
_POSE = "MSG: geometry_msgs/{}\n{} {}\nQuaternion {}\n" + "=" * 80 + "\nMSG: geometry_msgs/{}\nfloat64 x\nfloat64 y\nfloat64 z\n"
_POSE += "=" * 80 + "\nMSG: geometry_msgs/Quaternion\nfloat64 x\nfloat64 y\nfloat64 z\nfloat64 w\n"
_OF_POSE = _POSE.format("Pose", "Point", "position", "orientation", "Point")
_OF_TRANSFORM = _POSE.format("Transform", "Vector3", "translation", "rotation", "Vector3")
_COVERED = "MSG: geometry_msgs/PoseWithCovariance\ngeometry_msgs/Pose pose\nfloat64[36] covariance\n" + "=" * 80 + "\n"
#: Definitions of messages with poses, cut to what is read; and their package.
POSES = {
    "PoseStamped": ("geometry_msgs", "std_msgs/Header header\ngeometry_msgs/Pose pose\n" + _HEADER + _OF_POSE),
    "TransformStamped": (
        "geometry_msgs",
        "std_msgs/Header header\nstring child_frame_id\ngeometry_msgs/Transform transform\n" + _HEADER + _OF_TRANSFORM,
    ),
    "Odometry": (
        "nav_msgs",
        "std_msgs/Header header\nstring child_frame_id\ngeometry_msgs/PoseWithCovariance pose\n" + _HEADER + _COVERED + _OF_POSE,
    ),
}


def write_mcap_of_poses(path: Path, kind: str, poses: np.ndarray, rate: float, topics: tuple[str, ...] = ("/pose",)) -> Path:
    """Write poses (n, 7), m and x, y, z, w, in the frame "base", the first of which arrives last."""
    writer_module = pytest.importorskip("mcap_ros2.writer")
    package, definition = POSES[kind]
    with open(path, "wb") as stream:
        writer = writer_module.Writer(stream)
        schema = writer.register_msgdef(f"{package}/msg/{kind}", definition)
        for k in range(len(poses)):
            stamp = 1_700_000_000_000_000_000 + round(k / rate * 1e9)
            place, turn = (
                dict(zip("xyz", poses[k, :3].tolist(), strict=True)),
                dict(zip("xyzw", poses[k, 3:].tolist(), strict=True)),
            )
            message = {"header": {"stamp": {"sec": stamp // 10**9, "nanosec": stamp % 10**9}, "frame_id": "base"}}
            if kind == "TransformStamped":
                message |= {"child_frame_id": "tool", "transform": {"translation": place, "rotation": turn}}
            else:
                pose = {"position": place, "orientation": turn}
                message |= {"pose": pose} if kind == "PoseStamped" else {"pose": {"pose": pose, "covariance": [0.0] * 36}}
            for topic in topics:
                late = 10**9 * (k == 0)  # the first arrives last
                writer.write_message(topic, schema, message, log_time=stamp + late, publish_time=stamp, sequence=k)
        writer.finish()
    return path


#: The time of each message, s, and by joint as many of position, velocity and effort as it has.
JointMessages = list[tuple[float, dict[str, list[float]]]]


def write_mcap_of_joints(path: Path, messages: JointMessages, topics: tuple[str, ...] = ("/js",)) -> Path:
    """Write joint states."""
    writer_module = pytest.importorskip("mcap_ros2.writer")
    definition = "std_msgs/Header header\nstring[] name\nfloat64[] position\nfloat64[] velocity\nfloat64[] effort\n" + _HEADER
    with open(path, "wb") as stream:
        writer = writer_module.Writer(stream)
        schema = writer.register_msgdef("sensor_msgs/msg/JointState", definition.rpartition("=" * 80)[0])
        for k, (time, joints) in enumerate(messages):
            stamp = 1_700_000_000_000_000_000 + round(time * 1e9)
            head = {"stamp": {"sec": stamp // 10**9, "nanosec": stamp % 10**9}, "frame_id": ""}
            message: dict[str, object] = {"header": head, "name": [*joints]}
            for f, field in enumerate(("position", "velocity", "effort")):
                message[field] = [own[f] for own in joints.values() if len(own) > f]
            for topic in topics:
                writer.write_message(topic, schema, message, log_time=stamp, publish_time=stamp, sequence=k)
        writer.finish()
    return path


def write_bag_of_joints(path: Path, messages: JointMessages) -> Path:
    """Write joint states, each with all three numbers, into a rosbag2, a folder."""
    rosbag2 = pytest.importorskip("rosbags.rosbag2")
    from rosbags.typesys import Stores, get_typestore

    store = get_typestore(Stores.ROS2_HUMBLE)
    types = store.types
    header, clock, state = types["std_msgs/msg/Header"], types["builtin_interfaces/msg/Time"], types["sensor_msgs/msg/JointState"]
    with rosbag2.Writer(path, version=9) as writer:
        connection = writer.add_connection("/js", state.__msgtype__, typestore=store)
        for time, joints in messages:
            stamp = 1_700_000_000_000_000_000 + round(time * 1e9)
            numbers = np.ascontiguousarray(np.array([*joints.values()], dtype=np.float64).T)
            message = state(header(clock(stamp // 10**9, stamp % 10**9), ""), [*joints], *numbers)
            writer.write(connection, stamp, store.serialize_cdr(message, state.__msgtype__))
    return path


def write_ros1_bag_of_joints(path: Path, messages: JointMessages) -> Path:
    """Write joint states, each with all three numbers, into a bag of ROS 1, a file that ends in .bag."""
    rosbag1 = pytest.importorskip("rosbags.rosbag1")
    from rosbags.typesys import Stores, get_typestore

    store = get_typestore(Stores.ROS1_NOETIC)
    types = store.types
    header, clock, state = types["std_msgs/msg/Header"], types["builtin_interfaces/msg/Time"], types["sensor_msgs/msg/JointState"]
    path = path.with_suffix(".bag")
    with rosbag1.Writer(path) as writer:
        connection = writer.add_connection("/js", state.__msgtype__, typestore=store)
        for k, (time, joints) in enumerate(messages):
            stamp = 1_700_000_000_000_000_000 + round(time * 1e9)
            numbers = np.ascontiguousarray(np.array([*joints.values()], dtype=np.float64).T)
            message = state(header(k, clock(stamp // 10**9, stamp % 10**9), ""), [*joints], *numbers)
            writer.write(connection, stamp, store.serialize_ros1(message, state.__msgtype__))
    return path


def write_bag_of_poses(path: Path, poses: np.ndarray, rate: float) -> Path:
    """Write poses as PoseStamped into a rosbag2, a folder."""
    rosbag2 = pytest.importorskip("rosbags.rosbag2")
    from rosbags.typesys import Stores, get_typestore

    store = get_typestore(Stores.ROS2_HUMBLE)
    types = store.types
    header, time = types["std_msgs/msg/Header"], types["builtin_interfaces/msg/Time"]
    point, quaternion = types["geometry_msgs/msg/Point"], types["geometry_msgs/msg/Quaternion"]
    pose, stamped = types["geometry_msgs/msg/Pose"], types["geometry_msgs/msg/PoseStamped"]
    with rosbag2.Writer(path, version=9) as writer:
        connection = writer.add_connection("/pose", stamped.__msgtype__, typestore=store)
        for k, row in enumerate(poses.tolist()):
            stamp = 1_700_000_000_000_000_000 + round(k / rate * 1e9)
            head = header(time(stamp // 10**9, stamp % 10**9), "base")
            message = stamped(head, pose(point(*row[:3]), quaternion(*row[3:])))
            writer.write(connection, stamp, store.serialize_cdr(message, stamped.__msgtype__))
    return path

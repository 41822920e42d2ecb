"""Recordings in binary formats: C3D by ezc3d, ROS bags by mcap and rosbags. Call them through `foreign.call`."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable
from typing import Any

import numpy as np

from foreign.child import Refused

_WRENCH = ("geometry_msgs/msg/WrenchStamped", "geometry_msgs/WrenchStamped")
_JOINTS = ("sensor_msgs/msg/JointState", "sensor_msgs/JointState")
#: What a message says of each joint, in the order of the numbers that are read.
JOINT_FIELDS = ("position", "velocity", "effort")
#: Names of joints of one topic, above which it is none of a robot.
_MOST_JOINTS = 10_000
_POSES = tuple(
    f"{package}/{middle}{name}"
    for package, name in (("geometry_msgs", "PoseStamped"), ("geometry_msgs", "TransformStamped"), ("nav_msgs", "Odometry"))
    for middle in ("msg/", "")
)


def read_c3d(path: str) -> dict[str, Any]:
    """Read points: ``points`` (3, markers, frames) in the file's unit with NaN where not seen, ``labels``, ``unit``, ``rate``."""
    _check_c3d(path)
    import ezc3d

    content = ezc3d.c3d(path)
    parameters = content["parameters"]["POINT"]
    return {
        "points": np.asarray(content["data"]["points"], dtype=np.float64)[:3],
        "labels": [str(x).strip() for x in parameters["LABELS"]["value"]],
        "unit": str((parameters.get("UNITS", {}).get("value") or [""])[0]),
        "rate": float(parameters["RATE"]["value"][0]),
    }


def _check_c3d(path: str) -> None:
    """Compare the sizes that the header of a C3D file claims with the file, before any of them is believed.

    The header is a block of 512 bytes of 16-bit words: 2 points, 3 analog values a frame, 4 and 5 first and last frame, 9 first
    block of data; words 7 and 8 are a float32 that is negative where data are float32. The third byte of the parameters names
    the processor: 84 Intel, 85 DEC, 86 MIPS, which is big-endian.
    """
    size = os.path.getsize(path)
    with open(path, "rb") as stream:
        head = stream.read(512)
        if len(head) < 512 or head[1] != 80:
            raise Refused("it has no header of C3D")
        stream.seek(512 * (head[0] - 1) if head[0] else 0)
        parameters = stream.read(4)
    if len(parameters) < 4 or parameters[3] not in (84, 85, 86):
        raise Refused("its parameters are cut off")
    order = ">" if parameters[3] == 86 else "<"
    words = struct.unpack(f"{order}10H", head[:20])
    points, analogs, first, last, data = words[1], words[2], words[3], words[4], words[8]
    width = 4 if head[{84: 15, 85: 13, 86: 12}[parameters[3]]] & 0x80 else 2  # the sign of the float in the processor's order
    frames = last - first + 1
    needed = 512 * (data - 1) + frames * width * (4 * points + analogs)
    if data < 1 or needed > size + 512 or 512 * (head[0] - 1 + parameters[2]) > size + 512:
        raise Refused(f"its header claims {frames} frames of {points} points, but it has {size} bytes: it is cut off")


def read_bag(path: str, topic: str | None) -> dict[str, Any]:
    """Read stamped wrenches of a topic.

    Returns
    -------
    dict
        ``topics``: all that have wrenches. Where the topic is one of them, or the only one for None: ``nanoseconds`` (n,) as they
        arrived, ``wrenches`` (n, 6), and ``frames``, all that their headers name.
    """
    topics, rows = _messages(path, topic, _WRENCH)
    if rows is None:
        return {"topics": topics}
    stamps, values, frames = [], [], set()
    for message in rows:
        force, torque = message.wrench.force, message.wrench.torque
        stamps.append(_nanoseconds(message))
        frames.add(str(message.header.frame_id))
        values.append((force.x, force.y, force.z, torque.x, torque.y, torque.z))
    return {
        "topics": topics,
        "nanoseconds": np.array(stamps, dtype=np.int64),
        "wrenches": np.array(values, dtype=np.float64).reshape(-1, 6),
        "frames": sorted(frames),
    }


def read_joints(path: str, topic: str | None, joints: list[str]) -> dict[str, Any]:
    """Read joint states of a topic.

    A message may name its joints in any order, or some of them only, where a robot and its gripper share a topic; those without
    any of the joints that are asked for are left out.

    Returns
    -------
    dict
        ``topics``: all that have some. Where the topic is one of them, or the only one for None: ``nanoseconds`` (n,) as they
        arrived, ``states`` (n, k, 3), position, velocity and effort of the joints that are asked for, NaN where a message has
        none, and ``joints``, all that messages name.
    """
    topics, rows = _messages(path, topic, _JOINTS)
    if rows is None:
        return {"topics": topics}
    stamps, values, seen = [], [], dict.fromkeys([""])
    for number, message in enumerate(rows, 1):
        names = [str(name) for name in message.name]
        parts = [np.asarray(getattr(message, name), dtype=np.float64).reshape(-1) for name in JOINT_FIELDS]
        if len(set(names)) < len(names) or any(len(part) not in (0, len(names)) for part in parts):
            raise Refused(f"message {number} names a joint twice, or has other numbers than joints")
        seen |= dict.fromkeys(names)
        if len(seen) > _MOST_JOINTS:
            raise Refused(f"its messages name more than {_MOST_JOINTS} joints")
        if not any(joint in names for joint in joints):
            continue
        row = np.full((len(joints), len(parts)), np.nan)
        for k, joint in enumerate(joints):
            for f, part in enumerate(parts if joint in names else []):
                row[k, f] = part[names.index(joint)] if len(part) else np.nan
        stamps.append(_nanoseconds(message))
        values.append(row)
    return {
        "topics": topics,
        "nanoseconds": np.array(stamps, dtype=np.int64),
        "states": np.array(values, dtype=np.float64).reshape(-1, len(joints), len(JOINT_FIELDS)),
        "joints": sorted(name for name in seen if name),
    }


def read_poses(path: str, topic: str | None) -> dict[str, Any]:
    """Read stamped poses, transforms or odometry of a topic.

    Returns
    -------
    dict
        ``topics``: all that have some. Where the topic is one of them, or the only one for None: ``nanoseconds`` (n,) as they
        arrived, ``poses`` (n, 7), position and quaternion x, y, z, w, and ``frames``, all that their headers name.
    """
    topics, rows = _messages(path, topic, _POSES)
    if rows is None:
        return {"topics": topics}
    stamps, values, frames = [], [], set()
    for message in rows:
        if hasattr(message, "transform"):
            place, turn = message.transform.translation, message.transform.rotation
        else:
            pose = message.pose if hasattr(message.pose, "orientation") else message.pose.pose
            place, turn = pose.position, pose.orientation
        stamps.append(_nanoseconds(message))
        frames.add(str(message.header.frame_id))
        values.append((place.x, place.y, place.z, turn.x, turn.y, turn.z, turn.w))
    return {
        "topics": topics,
        "nanoseconds": np.array(stamps, dtype=np.int64),
        "poses": np.array(values, dtype=np.float64).reshape(-1, 7),
        "frames": sorted(frames),
    }


def _nanoseconds(message: Any) -> int:
    stamp = message.header.stamp
    return int(stamp.sec) * 1_000_000_000 + int(stamp.nanosec)


def _messages(path: str, topic: str | None, types: tuple[str, ...]) -> tuple[list[str], Iterable[Any] | None]:
    """Topics with messages of some types, and those of the one that is asked for; None where that is not clear."""
    return (_mcap if path.lower().endswith(".mcap") else _rosbag)(path, topic, types)


def _chosen(topics: list[str], topic: str | None) -> str | None:
    if topic is None:
        return topics[0] if len(topics) == 1 else None
    return topic if topic in topics else None


def _mcap(path: str, topic: str | None, types: tuple[str, ...]) -> tuple[list[str], Iterable[Any] | None]:
    from mcap.reader import make_reader
    from mcap_ros2.decoder import DecoderFactory

    with open(path, "rb") as stream:
        reader = make_reader(stream, decoder_factories=[DecoderFactory()])
        summary = reader.get_summary()
        if summary is None:
            raise Refused("it has no summary: the recorder was cut off; repair it by 'mcap recover'")
        ids = [key for key, schema in summary.schemas.items() if schema.name in types]
        topics = sorted({channel.topic for channel in summary.channels.values() if channel.schema_id in ids})
        chosen = _chosen(topics, topic)
        if chosen is None:
            return topics, None
        return topics, [found.decoded_message for found in reader.iter_decoded_messages(topics=[chosen])]


def _rosbag(path: str, topic: str | None, types: tuple[str, ...]) -> tuple[list[str], Iterable[Any] | None]:
    from pathlib import Path

    from rosbags.highlevel import AnyReader
    from rosbags.typesys import Stores, get_typestore

    with AnyReader([Path(path)], default_typestore=get_typestore(Stores.LATEST)) as bag:
        found = [c for c in bag.connections if c.msgtype in types]
        if not all(isinstance(c.topic, str) and c.topic for c in found):  # as metadata.yaml may have it
            raise ValueError("it has a topic without a name")
        topics = sorted({c.topic for c in found})
        chosen = _chosen(topics, topic)
        if chosen is None:
            return topics, None
        messages = bag.messages([c for c in found if c.topic == chosen])
        return topics, [bag.deserialize(raw, connection.msgtype) for connection, _, raw in messages]


def size_of(path: str) -> int:
    """Size of a file, or of all files of a folder, bytes."""
    if not os.path.isdir(path):
        return os.path.getsize(path)
    return sum(entry.stat().st_size for entry in os.scandir(path) if entry.is_file())

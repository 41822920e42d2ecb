"""Logs of a force sensor and of markers, written in the formats of others."""

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


def write_mcap(path: Path, topics: tuple[str, ...] = ("/wrench",)) -> Path:
    writer_module = pytest.importorskip("mcap_ros2.writer")
    with open(path, "wb") as stream:
        writer = writer_module.Writer(stream)
        schema = writer.register_msgdef("geometry_msgs/msg/WrenchStamped", WRENCH_STAMPED)
        for k, (t, row) in enumerate(zip(TIME, VALUES, strict=True)):
            stamp = 1_700_000_000_000_000_000 + round(t * 1e9)
            message = {
                "header": {"stamp": {"sec": stamp // 10**9, "nanosec": stamp % 10**9}, "frame_id": "tool0"},
                "wrench": {
                    name: dict(zip("xyz", part.tolist(), strict=True)) for name, part in (("force", row[:3]), ("torque", row[3:]))
                },
            }
            for topic in topics:
                writer.write_message(topic, schema, message, log_time=stamp + 5_000_000 * (k % 2), publish_time=stamp, sequence=k)
        writer.finish()
    return path

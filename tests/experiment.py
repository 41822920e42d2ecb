"""A run folder made in a second and logs made of it, for tests of comparisons."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

import femsim as fs
from femsim.studies.comparison.run_series import RunSeries, make_run_series

NAMES = ("fx", "fy", "fz", "tx", "ty", "tz")
#: Forces along x over time, s, that look alike half a period off.
SWINGS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "grows": lambda t: t * np.sin(2.6 * np.pi * t),
    "beats": lambda t: np.sin(0.9 * t) * np.sin(2.6 * np.pi * t),
    "pressed and let back": lambda t: np.interp(t, [0.0, 1.0, 2.0, 3.0, 4.0], [0.0, 0.0, 1.0, 0.3, 0.3]),
}


def shaken_box(**reading: object) -> fs.Scene:
    """A box that is carried along a jerky way, with a sensor in the wrist and a marker."""
    scene = fs.Scene("shaken_box", dt=0.01, duration=2.0, theta=1.0)
    scene.add_rigid("box", fs.Box((0.02, 0.03, 0.05)), mass=0.5, position=(0.0, 0.0, 0.2))
    way = [(0, 0, 0), (0.05, 0.0, 0.02), (0.02, 0.06, 0.1), (-0.04, 0.02, 0.05), (0, 0, 0)]
    turns = [(0, 0, 0), (0.4, 0.0, 0.3), (0.2, 0.6, -0.3), (-0.5, 0.1, 0.2), (0, 0, 0)]
    scene.drive("box", fs.Motion([0.3, 0.6, 1.0, 1.3, 1.7], way, turns))
    scene.sensor("wrist", "box", kind="mount", **reading)
    scene.sensor("dot", "box", kind="marker")
    return scene


def write_csv(path: Path, time: np.ndarray, values: np.ndarray, header: str = "time,Fx,Fy,Fz,Tx,Ty,Tz") -> Path:
    """Write a log with a header line."""
    np.savetxt(path, np.column_stack([time, values]), delimiter=",", header=header, comments="", fmt="%.16g")
    return path


def sensor_table(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Time (n,) and wrench (n, 6) of the wrist of a run folder."""
    table = np.loadtxt(folder / "sensors.csv", delimiter=",", skiprows=1)
    return table[:, 0], table[:, 1:7]


def seen_by(folder: Path, start: float, length: float, rate: float) -> tuple[np.ndarray, np.ndarray]:
    """What a perfect instrument logs of the wrist that is switched on at ``start`` of the run (it waits at the run's ends)."""
    time, wrench = sensor_table(folder)
    own = np.arange(0.0, length, 1.0 / rate)
    return own, np.column_stack([np.interp(own + start, time, column) for column in wrench.T])


def pulled(time: np.ndarray, **columns: np.ndarray) -> RunSeries:
    """A run with one sensor whose wrench is given."""
    table = {f"pull_{a}_{'N' if a[0] == 'f' else 'Nm'}": columns.get(a, 0.0 * time) for a in NAMES}
    return make_run_series("pulled", {"time_s": time, **table}, (0.0, 0.0, -9.81))

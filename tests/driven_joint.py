"""A scene of a driven joint, a tendon and a chamber, and logs of their columns as an instrument shows them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

SCENE = '''"""A driven pendulum; a bar pulled by a tendon and an inflated box where asked for."""

import numpy as np

import femsim as fs

TIMES = [0.1, 0.3, 0.45, 0.7, 0.8]


def build(damping: float = 0.05, mass: float = 0.5, soft: bool = False) -> fs.Scene:
    """Drive it.

    Parameters
    ----------
    damping : float, N m s/rad
        Of the joint.
    mass : float, kg
        Of the pendulum.
    soft : bool
        Whether there are a tendon and a chamber.
    """
    scene = fs.Scene("driven_joint", dt=0.005, duration=1.0, theta=1.0)
    rod = fs.RobotLink.solid("rod", fs.Piece(fs.Box((0.01, 0.01, 0.1)), (0, 0, -0.1)), mass)
    pin = fs.RobotJoint("pin", "base", "rod", axis=(0, 1, 0), damping=damping)
    scene.add_robot(fs.Robot("arm", [fs.RobotLink("base"), rod], [pin]), position=(1.0, 0, 0))
    scene.drive_joint("arm", "pin", fs.Profile(TIMES, [0.0, 0.8, 0.3, -0.4, 0.2], smooth="spline"))
    scene.sensor("elbow", "arm.pin", kind="revolute")
    if soft:
        rubber = fs.Elastic(1e5, 0.3, 1000.0, name="rubber")
        scene.add_soft("bar", fs.box_tets((0.06, 0.01, 0.01), (3, 1, 1)), rubber, fixed=lambda p: p[:, 0] < -0.0299)
        way = [(0.029, 0, 0.004), (-0.029, 0, 0.004)]
        tendon = scene.add_tendon("bar", way, fs.Profile(TIMES, [0.0, 0.3, 0.1, 0.2, 0.0], smooth="monotone"))
        scene.sensor("wire", tendon, kind="tendon")
        mesh = fs.box_tets((0.03, 0.03, 0.03), 3)
        shell = mesh.tets[np.abs(mesh.points[mesh.tets].mean(axis=1)).max(axis=1) > 0.005]
        used, numbers = np.unique(shell, return_inverse=True)
        hollow = fs.make_tetmesh(mesh.points[used], numbers.reshape(shell.shape), name="hollow", source="test")
        scene.add_soft("box", hollow, rubber, position=(0, 0.2, 0), fixed=lambda p: p[:, 2] < -0.0149)
        scene.sensor("air", scene.pressurize("box", fs.Profile(TIMES, [0, 4e3, 1e3, 2e3, 0], smooth="monotone")), kind="chamber")
    return scene
'''


def write_scene(folder: Path) -> Path:
    """Write the scene file."""
    path = folder / "driven_joint.py"
    path.write_text(SCENE, encoding="utf-8")
    return path


def as_logged(table: dict[str, np.ndarray], column: str, start: float, rate: float) -> np.ndarray:
    """A column of a run as an instrument of another rate shows it that is switched on at ``start`` of the run, SI."""
    return np.interp(start + np.arange(0.0, 1.0, 1.0 / rate), table["time_s"], table[column])


def write_table(path: Path, header: str, rows: np.ndarray) -> Path:
    """Write a log with a header line."""
    np.savetxt(path, rows, delimiter=",", header=header, comments="", fmt="%.12g")
    return path

"""A kind of joint and a format of robots that femsim has never seen, added as CONTRIBUTING.md says."""

from __future__ import annotations

import csv
import math
from itertools import pairwise
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

import femsim as fs
from femsim.base.rotations import quaternion_to_matrix
from femsim.model.joints import JOINTS, Joint, JointKind

G = 9.81


class InPlane(Joint):
    """Keeps a point in the plane across the axis of the second side; all else is free."""

    has_axis = True

    def _opening(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return quaternion_to_matrix(b[3:7])[:, :1].T @ (a[:3] - b[:3])

    def _held(self, relative: np.ndarray, axes: np.ndarray) -> np.ndarray:
        return axes[:, :1].T @ relative[:3]

    def _reaction(self, lam: np.ndarray, axes: np.ndarray) -> np.ndarray:
        return np.concatenate([lam[0] * axes[:, 0], np.zeros(3)])


def slide(duration: float, **options: object) -> fs.Scene:
    """A ball of 0.2 kg whose centre slides on a plane that leans by 30 degrees."""
    scene = fs.Scene("slide", dt=0.01, duration=duration)
    scene.add_rigid("ball", fs.Sphere(0.01), mass=0.2, angular_velocity=(1.0, 2.0, 3.0))
    scene.join("ball", "world", "plane", at=(0, 0, 0), axis=(0.5, 0, math.sqrt(0.75)), name="plane", **options)  # type: ignore[arg-type]
    scene.sensor("plane", "plane", kind="reaction")
    return scene


@pytest.fixture
def plane(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(JOINTS, "plane", InPlane)


def test_kinds_are_those_of_the_type() -> None:
    assert tuple(JOINTS) == get_args(JointKind)


@pytest.mark.usefixtures("plane")
def test_a_kind_of_joint_holds_what_it_says() -> None:
    """On the slope the acceleration is g sin 30 = 4.905 m/s^2, the reaction m g cos 30 across the plane; the spin stays."""
    run = fs.simulate(slide(0.5))
    assert run.status == "converged" and run.verdict == "good" and run.steps["wrench_balance"].max() < 1e-6
    q, v = run.stepper.state.q, run.stepper.state.v
    down = np.array([math.sqrt(0.75), 0, -0.5])
    np.testing.assert_allclose(q[:3], 0.5 * 0.5 * G * 0.5**2 * down, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(v[3:6], [1.0, 2.0, 3.0], rtol=1e-6)
    np.testing.assert_allclose(
        run.sensors["plane"].force[5:],
        0.2 * G * math.sqrt(0.75) * np.array([[0.5, 0, math.sqrt(0.75)]] * 45),
        rtol=1e-6,
        atol=1e-9,
    )


@pytest.mark.usefixtures("plane")
def test_it_breaks_and_is_restored_like_any_other() -> None:
    """It bears 1.699 N. With a strength of 1.6 N it breaks after the first step, and the ball flies on with its speed along x."""
    along = G * 0.5 * math.sqrt(0.75)  # acceleration along x on the slope
    broken, whole = (fs.simulate(slide(0.1, breakable=strength)).stepper.state.q[0] for strength in (1.6, 1.8))
    assert broken == pytest.approx(along * 0.01 * (0.5 * 0.01 + 0.09), rel=1e-6)
    assert whole == pytest.approx(0.5 * along * 0.1**2, rel=1e-6)
    sim = fs.Simulation(slide(1.0), "exact")
    saved = sim.step(5).save()
    wanted = sim.step(5).state
    sim.restore(saved)
    assert sim.step(5).state == wanted


@pytest.mark.usefixtures("plane")
def test_what_it_has_not_is_said() -> None:
    with pytest.raises(fs.InputError, match="a plane has neither limits nor friction"):
        slide(0.1, limits=(-1.0, 1.0))
    with pytest.raises(fs.InputError, match="a plane has an axis; give it"):
        scene = fs.Scene("s")
        scene.add_rigid("ball", fs.Sphere(0.01), mass=0.2)
        scene.join("ball", "world", "plane", at=(0, 0, 0))  # type: ignore[arg-type]


def load_table(path: Path) -> fs.Robot:
    """Read a robot from a table of its links: name, mass, and where the hinge about y is on the one before."""
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    links = [fs.RobotLink.solid(row["name"], fs.Piece(fs.Sphere(0.02)), float(row["mass_kg"])) for row in rows]
    joints = [
        fs.RobotJoint(f"to_{b['name']}", a["name"], b["name"], position=(0, 0, float(b["z_m"])), axis=(0, 1, 0))
        for a, b in pairwise(rows)
    ]
    return fs.Robot(path.stem, links, joints, source=str(path))


def test_a_format_of_robots(tmp_path: Path) -> None:
    """Two balls of 1 and 2 kg below the base: the joints bear their weights; a mass that is none is named with the file."""
    path = tmp_path / "chain.csv"
    path.write_text("name,mass_kg,z_m\nbase,1,0\nupper,1,-0.1\nlower,2,-0.1\n")
    scene = fs.Scene("chain", dt=0.01, duration=0.1)
    scene.add_robot(load_table(path))
    scene.sensor("upper", "chain.upper", kind="joint")
    run = fs.simulate(scene)
    assert run.status == "converged"
    np.testing.assert_allclose(run.sensors["upper"].force[-1], [0, 0, 3 * G], atol=1e-8)
    path.write_text("name,mass_kg,z_m\nbase,1,0\nupper,-1,-0.1\n")
    with pytest.raises(fs.InputError, match=r"chain\.csv.*upper"):
        load_table(path)

"""Robots beside Pinocchio and MuJoCo, where these are installed (extra `rivals`)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks import judge_robots
from femsim.base.place import ROOT

FILES = [ROOT / "data" / "robots" / name for name in ("arm7.urdf", "quadruped.urdf")] + [ROOT / "tests" / "crane.urdf"]


@pytest.fixture(params=FILES, ids=lambda path: path.stem)
def robot(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A file with all six numbers of each inertia, which Pinocchio asks for."""
    whole: Path = tmp_path / request.param.name
    text = request.param.read_text(encoding="utf-8")
    whole.write_text(re.sub(r"(<inertia (?![^>]*ixy)[^>]*)/>", r'\1 ixy="0" ixz="0" iyz="0"/>', text), encoding="utf-8")
    return whole


@pytest.mark.parametrize("base", ["fixed", "free"])
def test_dynamics_are_those_of_pinocchio(robot: Path, base: str) -> None:
    pytest.importorskip("pinocchio")
    judged = judge_robots.judge(robot, base)  # type: ignore[arg-type]
    assert max(judged.mass, judged.bias, judged.jacobian) <= judge_robots.TOLERANCE and judged.speeds > 2


def test_dynamics_are_those_of_mujoco(robot: Path) -> None:
    pytest.importorskip("mujoco")
    differences = judge_robots.judge_by_mujoco(robot)
    assert differences is not None and max(differences) <= judge_robots.TOLERANCE


def test_a_robot_of_one_joint_is_judged(tmp_path: Path) -> None:
    pytest.importorskip("pinocchio")
    inertia = '<mass value="1"/><inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/>'
    link = f'<link name="{{}}"><inertial><origin xyz="0.1 0 0.2"/>{inertia}</inertial></link>'
    joint = '<joint name="j" type="continuous"><parent link="a"/><child link="b"/><axis xyz="0 1 0"/></joint>'
    (tmp_path / "one.urdf").write_text(f'<robot name="one">{link.format("a")}{link.format("b")}{joint}</robot>')
    judged = judge_robots.judge(tmp_path / "one.urdf", "fixed")
    assert max(judged.mass, judged.bias, judged.jacobian) <= judge_robots.TOLERANCE and judged.speeds == 1

"""Robots beside Pinocchio and MuJoCo, where these are installed (extra `rivals`)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks import judge_robots
from femsim.base.place import ROOT

FILES = [
    ROOT / "data" / "robots" / "arm7.urdf",
    ROOT / "data" / "robots" / "quadruped.urdf",
    Path(__file__).with_name("crane.urdf"),
]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
@pytest.mark.parametrize("base", ["fixed", "free"])
def test_dynamics_are_those_of_pinocchio(judged_file: Path, base: str) -> None:
    pytest.importorskip("pinocchio")
    judged = judge_robots.judge(judged_file, base)  # type: ignore[arg-type]
    assert max(judged.mass, judged.bias, judged.jacobian) <= judge_robots.TOLERANCE and judged.speeds > 2


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_dynamics_are_those_of_mujoco(judged_file: Path) -> None:
    pytest.importorskip("mujoco")
    differences = judge_robots.judge_by_mujoco(judged_file)
    assert differences is not None and max(differences) <= judge_robots.TOLERANCE

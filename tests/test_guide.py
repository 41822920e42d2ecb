"""The scenes of docs/guide/own_gripper.md and own_cable.md run as they stand there."""

from __future__ import annotations

import re
from pathlib import Path

import meshio
import numpy as np
import pytest

import femsim as fs

GUIDE = Path(__file__).resolve().parent.parent / "docs" / "guide"

pytestmark = pytest.mark.skipif(not GUIDE.is_dir(), reason="the docs are not here (they come with the repository)")


def scenes(folder: Path) -> Path:
    """Write the scenes of the pages into a folder, and return it."""
    for page, name in (("own_gripper.md", "my_gripper.py"), ("own_cable.md", "my_cable.py")):
        (code,) = re.findall(r"```python\n(.*?)```", (GUIDE / page).read_text(encoding="utf-8"), flags=re.S)
        assert f"`{name}`" in (GUIDE / page).read_text(encoding="utf-8")
        (folder / name).write_text(code, encoding="utf-8")
    return folder


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with the scenes of the pages."""
    monkeypatch.chdir(tmp_path)
    return scenes(tmp_path)


def finger() -> fs.TetMesh:
    """A block whose origin is not at its root, as files of others have it."""
    block = fs.box_tets((0.012, 0.02, 0.04), (2, 2, 5))
    return fs.make_tetmesh(block.points + np.array([0.1, 0.0, 0.3]), block.tets, name="finger", source="test")


@pytest.mark.parametrize(("kind", "unit"), [("vtu", "m"), ("stl", "mm")])
def test_two_fingers_from_a_file_grip_the_box(kind: str, unit: str, files: Path) -> None:
    """Also from a surface in millimetres, as it comes from a CAD program."""
    if kind == "vtu":
        fs.save_tetmesh(finger(), files / "finger.vtu")
    else:
        pytest.importorskip("pytetwild", reason="the extra mesh is not installed")
        meshio.Mesh(1e3 * finger().points, [("triangle", finger().surface_triangles)]).write(files / "finger.stl")
    scene = fs.load_scene(files / "my_gripper.py", finger=f"finger.{kind}", unit=unit)
    assert scene.body("left").mass == pytest.approx(1070 * 0.012 * 0.02 * 0.04, rel=1e-3)
    run = fs.simulate(scene, duration=0.8)
    assert run.status == "converged"
    left, right = run.sensors["left_jaw"].force, run.sensors["right_jaw"].force
    assert abs(left[0, 0]) < 1e-3  # the fingers begin beside the box; what a mesh that is not symmetric sways
    assert abs(left[-1, 0]) > 0.1  # and press on it at the end, both alike
    np.testing.assert_allclose(left[-1, 0], -right[-1, 0], rtol=0.05)
    assert run.markers["box"].position[-1, 2] > run.markers["box"].position[0, 2] + 1e-4  # lifted


@pytest.fixture(scope="module")
def without_slack(tmp_path_factory: pytest.TempPathFactory) -> fs.Run:
    return fs.simulate(fs.load_scene(scenes(tmp_path_factory.mktemp("cable")) / "my_cable.py"), duration=0.85)


def test_a_cable_without_slack_is_stretched_between_wall_clip_and_robot(without_slack: fs.Run) -> None:
    """The robot's pull is that of a straight spring from the wall to the bar of the second clip and to the lifted connector."""
    run = without_slack
    assert run.status == "converged"
    stretched = 0.22 + np.hypot(0.14, 0.05 - 0.0012)  # m; the cable is 1.2 mm higher than it began when it leans on the bar
    pull = 1e7 * np.pi * 0.003**2 * (stretched / 0.36 - 1.0)  # N, E A times strain
    force = run.sensors["robot"].force[-1] - [0.0, 0.0, 9.81 * 0.01]  # without the connector's weight
    assert np.linalg.norm(force) == pytest.approx(pull, rel=0.08)
    assert force[2] / force[0] == pytest.approx((0.05 - 0.0012) / 0.14, rel=0.08)  # in the direction of the cable
    weight = 9.81 * 1400.0 * np.pi * 0.003**2 * 0.36  # N, of the cable, most of which the robot carries
    assert force[2] - run.sensors["second_clip"].force[-1, 2] == pytest.approx(weight, rel=0.15)  # the bar holds it down
    assert not run.sensors["first_clip"].force[:, 1:].any()  # the cable lies free in the first clip


def test_slack_takes_the_pull_off_the_robot(files: Path, without_slack: fs.Run) -> None:
    slack = fs.simulate(fs.load_scene(files / "my_cable.py", slack=0.04), duration=0.85)
    pulls = [np.linalg.norm(run.sensors["robot"].force[-1]) for run in (without_slack, slack)]
    assert pulls[1] < 0.05 * pulls[0]

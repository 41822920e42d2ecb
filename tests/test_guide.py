"""The scene of docs/guide/own_gripper.md runs as it stands there."""

from __future__ import annotations

import re
from pathlib import Path

import meshio
import numpy as np
import pytest

import femsim as fs

PAGE = Path(__file__).resolve().parent.parent / "docs" / "guide" / "own_gripper.md"

pytestmark = pytest.mark.skipif(not PAGE.is_file(), reason="the docs are not here (they come with the repository)")


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the scene of the page."""
    monkeypatch.chdir(tmp_path)
    code = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.S)
    for name, text in zip(("my_gripper.py",), code, strict=True):
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


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

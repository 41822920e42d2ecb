"""Kernels compiled ahead: the next process finds them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from shared_kernels import link_kernels
from small_scene import scene_file

from femsim.cli.compilation import SCENES, compile_ahead
from femsim.scene.scene_file import list_scenes

ROOT = Path(__file__).resolve().parent.parent
BOX = {"anisotropic_box": 0.01}
#: Calls few kernels.
FALL = """import femsim as fs


def build():
    scene = fs.Scene("fall", dt=0.01, duration=0.01, theta=1.0)
    scene.add_rigid("ball", fs.Sphere(0.01), mass=0.1)
    return scene
"""
#: Files of kernels that it calls.
CALLED = {"tree_kernels", "articulated_kernels", "end_velocity_kernels"}
#: Runs a scene and prints how many kernels were compiled.
COUNT = """
import sys
import numba
class Listener(numba.core.event.Listener):
    count = 0
    def on_start(self, event): self.count += 1
    def on_end(self, event): ...
listener = Listener()
numba.core.event.register("numba:compile", listener)
from femsim.cli import execute
status = execute(["run", sys.argv[1], "--out", sys.argv[2], "--quiet"])
print(status, listener.count)
"""


def test_a_run_after_it_compiles_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scene = scene_file(tmp_path, FALL, "fall.py").name
    link_kernels(tmp_path / "cache", without=CALLED)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    said: list[str] = []
    (trouble,) = compile_ahead({"no_such_scene": 0.01}, said.append)
    assert trouble.startswith("no_such_scene: femsim: ") and "FAILED" in said[-1]
    said.clear()
    assert compile_ahead({scene: 0.01}, said.append) == []
    assert said[0].endswith(f"one to two minutes: {scene}") and said[-1].startswith("1 of 1, ")
    compiled = {path.name.split(".")[0] for path in (tmp_path / "cache").rglob("*.nbi")}
    assert compiled >= CALLED
    command = [sys.executable, "-c", COUNT, scene, str(tmp_path / "run")]
    done = subprocess.run(command, env=os.environ, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0", "0"]
    said.clear()
    assert compile_ahead({scene: 0.01}, said.append) == []
    assert len(said) == 1 and "already" in said[0]


def test_a_full_disk_leaves_no_half_of_what_is_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*names: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space left"):
        compile_ahead({"no_such_scene": 0.01}, lambda line: None)
    assert not [path for path in (tmp_path / "cache").iterdir() if "compiled-ahead" in path.name]


def test_without_a_folder_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NUMBA_CACHE_DIR")
    (line,) = compile_ahead(BOX, lambda line: None)
    assert "no folder" in line


def test_the_scenes_are_there() -> None:
    assert set(SCENES) <= {path.stem for path in list_scenes()}

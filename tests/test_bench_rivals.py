"""Benchmark beside MuJoCo and Drake: its quality is that of the motion, and a program that is absent is said."""

from __future__ import annotations

import importlib.util
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import femsim as fs
from benchmarks import bench_rivals as rivals, rival_drake as drake, rival_mujoco as mujoco, rival_tasks as tasks


def test_our_box_goes_the_way_of_theory() -> None:
    slides = rivals.ours_box(replace(tasks.BOX_SLIDES, steps=20), 1.5)
    assert slides.quality[0] < 1e-9 and slides.quality[1] < 1e-6 and slides.mean > 0.0


def test_quality_of_the_box() -> None:
    task, dt = tasks.BOX_SLIDES, tasks.BOX_SLIDES.dt
    t = dt * np.arange(1, task.steps + 1)
    way = 0.5 * (1.5 / 0.4 - 0.3 * 9.81) * t**2 + 1e-4
    off, lift, _ = tasks.box_quality(task, 1.5, way.tolist(), [0.05, 0.0507, 0.05])
    assert (off, lift) == pytest.approx((0.1, 0.7))
    creep, _, _ = tasks.box_quality(tasks.BOX_STICKS, 0.5, (2e-6 * t).tolist(), [0.05])
    assert creep == pytest.approx(2e-3)


def test_quality_of_the_mat_and_the_ball() -> None:
    task = tasks.MAT_SLIDES
    t = task.dt * np.arange(task.steps)
    mass = 1000.0 * 0.3 * 0.3 * 0.01
    place = 0.5 * (4.0 / mass - 0.25 * 9.81) * t**2
    found = tasks.mat_quality(task, 4.0, place.tolist(), [2e-3, 1e-3])
    assert found == pytest.approx((0.25, 2.0, 1.0))
    assert tasks.mat_quality(tasks.MAT_STICKS, 1.5, (3e-6 * t).tolist(), [0.0])[0] == pytest.approx(3e-3)
    t = tasks.BALL.dt * np.arange(tasks.BALL.steps)
    below = 1e-3 * np.clip(t - 0.7, 0.0, 0.8) + 1e-5 * np.clip(t - 1.7, 0.0, None)
    depth = np.where(t < 0.5, 5e-3, 1e-4)
    assert tasks.ball_quality(tasks.BALL, below.tolist(), depth.tolist()) == pytest.approx((0.8, 1e-2, 0.1))


@pytest.mark.skipif(importlib.util.find_spec("mujoco") is None, reason="MuJoCo is not installed")
@pytest.mark.parametrize("contact", mujoco.CONTACTS)
def test_mujoco_slides_about_as_far(contact: str) -> None:
    assert mujoco.mujoco_box(tasks.BOX_SLIDES, 1.5, contact).quality[0] < 10.0
    short = mujoco.mujoco_mat(replace(tasks.MAT_STICKS, steps=35), 1.5, contact)
    assert 0.0 < short.quality[1] < 1.0 and abs(short.quality[0]) < 10.0  # mm/s: its contact creeps


@pytest.mark.skipif(importlib.util.find_spec("pydrake") is None, reason="Drake is not installed")
def test_drake_slides_about_as_far_and_bears_a_cube() -> None:
    off, lift, _ = drake.drake_box(tasks.BOX_SLIDES, 1.5, "lagged").quality
    assert 1.0 < off < 30.0 and lift < 0.1  # mm, of 403
    plant = drake.Plant(0.005, "lagged", 0.3, pull=1.0)
    points = plant.add_soft(fs.box_tets((0.02,) * 3, (2, 2, 2)), fs.Elastic(1e5, 0.35, 1000.0, rayleigh_beta=1e-3), 0.3, 0.01)
    step = plant.start()
    for _ in range(20):
        step()
    assert abs(points()[:, 0].mean()) < 1e-3  # friction holds it but for creep: without, it would have gone 5 mm
    assert abs(points()[:, 2].min()) < 1e-4


def test_what_is_not_installed_is_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{rivals.START}\nold\n{rivals.END}\nafter\n")
    monkeypatch.setattr(rivals.importlib.util, "find_spec", lambda _: None)
    done = rivals.Result("femsim", 2.0, 1.5, (0.25, 0.0, math.nan))
    monkeypatch.setitem(rivals.TASKS, "box", [(tasks.BOX_SLIDES, (1.5,))])
    monkeypatch.setitem(rivals.OURS, "box", lambda *_: done)
    monkeypatch.setattr("sys.argv", ["bench_rivals.py", "--only", "box", "--repeat", "1", "--write", str(page)])
    rivals.main()
    said = capsys.readouterr()
    for name in ("MuJoCo", "Drake"):
        assert f'{name} is not installed: pip install -e ".[rivals]"' in said.err
    assert "| femsim | 2 / 1.5 | 1 | 0.25 | 0 |  |" in said.out
    text = page.read_text()
    assert (
        text.startswith(f"before\n{rivals.START}\n| box slides") and text.endswith(f"{rivals.END}\nafter\n") and "old" not in text
    )

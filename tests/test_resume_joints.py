"""Runs with robots and joints that are killed and go on give the files of one that never stopped."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from jointed_scenes import JOINED, ROBOT
from killed_runs import cube_run, killed_at
from same_runs import differences
from small_scene import scene_file

import femsim as fs

STEPS = 24
#: Steps at which a run of each kind is killed; FEMSIM_KILLED_STEPS=20 for more, and for a kind that takes half a minute.
KILLED_STEPS = int(os.environ.get("FEMSIM_KILLED_STEPS", "2"))
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that fork")
KINDS: list[tuple[str, str, dict[str, Any]]] = [
    ("robot", "pvd", {}),
    ("robot", "vtkhdf", {"fields": ("all",)}),
    ("joined", "pvd", {}),
    ("joined", "vtkhdf", {"fields": ("all",)}),
    ("joined", "pvd", {"dt": "auto"}),
    *([("robot", "vtkhdf", {"dt": "auto"})] if KILLED_STEPS > 2 else []),
]


@pytest.mark.parametrize(("kind", "format", "options"), KINDS, ids=["-".join((a, b, *c)) for a, b, c in KINDS])
def test_killed_at_random_steps_and_resumed_gives_the_same_files(
    kind: str, format: str, options: dict[str, Any], tmp_path: Path
) -> None:
    if format == "vtkhdf":
        pytest.importorskip("h5py")
    steps = 12 if "dt" in options else STEPS  # with steps of their own length they take long
    scene, options = scene_file(tmp_path, {"robot": ROBOT, "joined": JOINED}[kind]), options | {"format": format}
    whole = cube_run(scene, tmp_path / "whole", steps, **options)()
    assert whole.status == "converged"
    for step in np.random.default_rng(len(kind)).choice(np.arange(1, steps), min(KILLED_STEPS, steps - 1), replace=False):
        folder = tmp_path / f"killed{step}"
        killed_at(int(step), cube_run(scene, folder, steps, **options))
        assert fs.resume(folder).status == "converged"
        assert differences(tmp_path / "whole", folder) == [], step
        assert json.loads((folder / "run.json").read_text())["process"]["resumed"][0]["step"] == 5 * ((step - 1) // 5)
        shutil.rmtree(folder)


def test_what_is_carried_is_in_these_scenes(tmp_path: Path) -> None:
    """Else the test above would say little: stops, dry friction, a limit of a motor, and the break of a joint come in the run."""
    robot = fs.simulate(fs.load_scene(scene_file(tmp_path, ROBOT, "robot.py")))
    elbow, shoulder = robot.gauges["elbow"].values, robot.gauges["shoulder"].values
    assert elbow["limit_Nm"][:5].max() == 0.0 and abs(elbow["limit_Nm"]).max() > 0.01
    assert shoulder["friction_Nm"].min() < -0.0099 and abs(shoulder["rate_radps"]).min() < 1e-9
    joined = fs.simulate(fs.load_scene(scene_file(tmp_path, JOINED, "joined.py")))
    weld = np.linalg.norm(joined.sensors["weld"].force, axis=1)
    assert weld.max() > 1.0 and not weld[-10:].any()
    hinge, way = joined.sensors["hinge"].force, joined.sensors["way"].force
    assert np.ptp(hinge[:8, 1]) < 0.2 and abs(hinge[:, 1]).max() > 1.0, "the stop of the door"
    assert way[0, 0] == pytest.approx(-0.1, abs=1e-6) and way[-1, 0] == pytest.approx(0.0, abs=1e-6), (
        "the sledge rubs, then rests"
    )

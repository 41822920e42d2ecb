"""Checkpoints: a run that is killed and goes on gives the files of one that never stopped; broken checkpoints are passed over."""

from __future__ import annotations

import json
import os
import re
import shutil
import time
import warnings
from collections.abc import Callable
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from killed_runs import cube_run, in_child, killed_after, killed_at
from same_runs import content, differences
from small_scene import FILE, cube_scene, scene_file

import femsim as fs
from contact import SOLVERS, Remembering, make_solver
from femsim.run.checkpoint import VERSION, Checkpoints, Every, found_checkpoints, read_checkpoint
from femsim.step.advance import take_step
from femsim.step.stepper import Stepper

STEPS = 24
#: Steps at which a run of each kind is killed; FEMSIM_KILLED_STEPS=20 for more.
KILLED_STEPS = int(os.environ.get("FEMSIM_KILLED_STEPS", "5"))
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that fork")

#: A cube with all that is carried from step to step: an instrument with noise, a rate and a filter, slip, a joint of a gripper.
RICH = FILE.replace(
    '    scene.sensor("cube", "cube")\n',
    '    scene.sensor("cube", "cube", reading=fs.Reading(noise=(0.01, 0.001), rate=30.0, lowpass=20.0, seed=3))\n'
    '    scene.sensor("slid", "cube", kind="slip")\n'
    '    scene.add_rigid("box", fs.Box((0.01, 0.01, 0.01)), mass=0.1, position=(0.1, 0, 0.012), velocity=(0.3, 0, 0))\n',
).replace("position=(*where, 0.5 * side))", "position=(*where, 0.5 * side), velocity=(0.2, 0.1, -0.1))")


@pytest.fixture
def rich(tmp_path: Path) -> Path:
    return scene_file(tmp_path, RICH)


def steps_to_kill_at() -> list[int]:
    """One behind each checkpoint, which are five steps apart, then a second one behind each, and so on."""
    rng = np.random.default_rng(15)
    behind = [rng.permutation(part) for part in np.split(np.arange(1, STEPS), [5, 10, 15, 20])]
    return [int(step) for ones in zip_longest(*behind) for step in ones if step is not None][:KILLED_STEPS]


@pytest.mark.parametrize(("format", "fields"), [("pvd", None), ("vtkhdf", ("all",))])
def test_killed_at_random_steps_and_resumed_gives_the_same_files(
    format: str, fields: tuple[str, ...] | None, rich: Path, tmp_path: Path
) -> None:
    if format == "vtkhdf":
        pytest.importorskip("h5py")
    options = {"format": format, "fields": fields}
    cube_run(rich, tmp_path / "whole", STEPS, **options)()
    for step in steps_to_kill_at():
        folder = tmp_path / f"killed{step}"
        killed_at(step, cube_run(rich, folder, STEPS, **options))
        run = fs.resume(folder)
        assert run.status == "converged" and len(run.steps["step"]) == STEPS
        assert differences(tmp_path / "whole", folder) == [], step
        assert json.loads((folder / "run.json").read_text())["process"]["resumed"][0]["step"] == 5 * ((step - 1) // 5)
        shutil.rmtree(folder)


def test_a_run_with_steps_of_its_own_length_goes_on(tmp_path: Path) -> None:
    """dt="auto": where it is killed, in flight or in the impact, the lengths go on as they would have been."""
    falling = RICH.replace("0.5 * side), velocity=(0.2, 0.1, -0.1)", "0.5 * side + 0.004), velocity=(0.2, 0.1, -0.1)")
    scene, options = scene_file(tmp_path, falling), {"dt": "auto", "checkpoint_every": 1}
    cube_run(scene, tmp_path / "whole", 7, **options)()
    parts = substeps(tmp_path / "whole")
    assert parts.min() < 10 and parts.max() > 30
    impact = int(parts.argmax()) + 1
    for step in (impact - 1, impact, 6):
        folder = tmp_path / f"killed{step}"
        killed_at(step, cube_run(scene, folder, 7, **options))
        assert fs.resume(folder).status == "converged"
        assert json.loads((folder / "run.json").read_text())["process"]["resumed"][0]["step"] == step - 1
        assert differences(tmp_path / "whole", folder) == [], step


def substeps(folder: Path) -> np.ndarray:
    """Parts of each step, from steps.csv."""
    table = np.genfromtxt(folder / "steps.csv", delimiter=",", names=True)
    return np.asarray(table["substeps"], dtype=np.int64)


def test_killed_at_any_moment_and_twice_gives_the_same_files(rich: Path, tmp_path: Path) -> None:
    steps = 2 * STEPS
    cube_run(rich, tmp_path / "whole", steps)()
    random, killed = np.random.default_rng(4), 0
    for number in range(6):
        folder = tmp_path / f"killed{number}"
        killed += killed_after(random.uniform(0, 0.2), cube_run(rich, folder, steps), (folder / "steps.csv").exists)
        if killed and status_of(folder) == "running":
            killed += killed_after(random.uniform(0.05, 0.15), partial(fs.resume, folder), lambda: True)
        if status_of(folder) == "running":
            fs.resume(folder)
        # Killed after the word "converged": the run is whole, and the checkpoints that it no longer needs may still be there.
        left = [name for name in differences(tmp_path / "whole", folder) if not name.startswith("checkpoints/")]
        assert left == [] and status_of(folder) == "converged"
    assert killed > 3


def status_of(folder: Path) -> str:
    """Status in run.json."""
    return str(json.loads((folder / "run.json").read_text())["status"])


@pytest.mark.parametrize("solver", sorted(SOLVERS.keys() - {"banded"}))
def test_every_solver_goes_on_with_the_bits_it_would_have_given(solver: str) -> None:
    scene, options = cube_scene(), {"tolerance": 1e-6} if solver in ("apgd", "ccs", "pgs") else {}
    whole = Stepper(scene, make_solver(solver, **options))
    for _ in range(5):
        take_step(whole)
    state, memory = whole.state.copy(), whole.solver.memory() if isinstance(whole.solver, Remembering) else {}
    memory = {name: value.copy() for name, value in memory.items()}
    reports = [take_step(whole) for _ in range(4)]
    again = Stepper(cube_scene(), make_solver(solver, **options))
    again.restore(state)
    again.recall_solver(memory)
    for report in reports:
        assert said(take_step(again)) == said(report)
    assert again.state.differences(whole.state) == []


def said(report: Any) -> tuple[int, float]:
    """What a solver says that depends on what it remembers."""
    return report.solution.iterations, report.solution.details.get("largest_eigenvalue", 0.0)


@pytest.mark.parametrize("solver", ["cond", "exact", "auto"])
def test_what_solvers_remember_matters(solver: str) -> None:
    """Else the test above could not fail: without it something is another."""
    whole, again = (Stepper(cube_scene(), make_solver(solver)) for _ in range(2))
    for _ in range(5):
        take_step(whole)
    again.restore(whole.state.copy())
    same = said(take_step(whole)) == said(take_step(again))
    assert not same or again.state.differences(whole.state)


def test_a_broken_checkpoint_falls_back_to_the_one_before(rich: Path, tmp_path: Path) -> None:
    cube_run(rich, tmp_path / "whole", STEPS)()
    folder = tmp_path / "killed"
    killed_at(18, cube_run(rich, folder, STEPS))
    paths = found_checkpoints(folder)
    assert [path.name for path in paths] == ["step_000000015.checkpoint", "step_000000010.checkpoint"]
    whole = paths[0].read_bytes()
    older = whole.replace(f"checkpoint {VERSION}".encode(), f"checkpoint {VERSION - 1}".encode(), 1)
    assert older != whole
    for broken in (whole[:-1], whole[:200], b"", whole[:-40] + bytes(40), older):
        paths[0].write_bytes(broken)
        with pytest.raises(fs.InputError, match=r"the checkpoint .* cannot be used"):
            read_checkpoint(paths[0])
    assert read_checkpoint(paths[1]).step == 10
    with pytest.warns(UserWarning, match=r"step_000000015\.checkpoint cannot be used .*The one before is tried"):
        fs.resume(folder)
    assert differences(tmp_path / "whole", folder) == []


def test_without_any_checkpoint_the_run_starts_again(rich: Path, tmp_path: Path) -> None:
    cube_run(rich, tmp_path / "whole", STEPS)()
    folder = tmp_path / "killed"
    killed_at(18, cube_run(rich, folder, STEPS))
    (folder / "checkpoints" / "steps.rows").write_bytes(b"")
    with pytest.warns(UserWarning, match="the rows in steps.rows are damaged"):
        fs.resume(folder)
    assert differences(tmp_path / "whole", folder) == []


def test_frames_that_are_gone_are_seen(rich: Path, tmp_path: Path) -> None:
    cube_run(rich, tmp_path / "whole", STEPS)()
    folder = tmp_path / "killed"
    killed_at(18, cube_run(rich, folder, STEPS))
    (folder / "frames.pvd").unlink()
    with pytest.warns(UserWarning, match=r"frames\.pvd"):
        fs.resume(folder)
    assert differences(tmp_path / "whole", folder) == []


def test_an_interrupted_run_goes_on_where_it_was(rich: Path, tmp_path: Path) -> None:
    cube_run(rich, tmp_path / "whole", STEPS, checkpoint_every=None)()

    def interrupt(stepper: Any, report: Any) -> None:
        if report.step == 7:
            os.kill(os.getpid(), 2)

    run = cube_run(rich, tmp_path / "run", STEPS, checkpoint_every=None)(on_step=interrupt)
    assert run.status == "interrupted" and [path.name for path in found_checkpoints(tmp_path / "run")] == [
        "step_000000007.checkpoint"
    ]
    (half := tmp_path / "run" / ".comparison.4242.tmp").mkdir()  # of a comparison that was killed
    (half / "report.html").write_text("half")
    again = fs.resume(tmp_path / "run")
    assert not half.exists()
    assert again.status == "converged" and again.info["process"]["resumed"][0]["step"] == 7
    assert differences(tmp_path / "whole", tmp_path / "run") == []


def test_a_scene_that_changed_is_refused_unless_forced(rich: Path, tmp_path: Path) -> None:
    folder = tmp_path / "killed"
    killed_at(7, cube_run(rich, folder, STEPS))
    rich.write_text(rich.read_text() + "\n# changed\n")
    with pytest.raises(fs.InputError, match=r"the scene file .* is not the one that .* was started with; put that back"):
        fs.resume(folder)
    rich.write_text(rich.read_text().replace("fs.Elastic(young_modulus", "fs.Elastic(2 * young_modulus"))
    with pytest.raises(fs.InputError, match="is not the one"):
        fs.resume(folder)
    assert fs.resume(folder, force=True).status == "converged"


def test_bodies_that_changed_are_refused(tmp_path: Path) -> None:
    text = FILE.replace("import femsim", "from pathlib import Path\n\nimport femsim")
    text = text.replace("fs.Elastic(young_modulus", "fs.Elastic(float(Path(__file__ + '.txt').read_text())")
    scene = scene_file(tmp_path, text)
    (tmp_path / f"{scene.name}.txt").write_text("1e5")
    killed_at(7, cube_run(scene, tmp_path / "killed", STEPS))
    (tmp_path / f"{scene.name}.txt").write_text("2e5")
    with pytest.raises(fs.InputError, match=r"the scene has other bodies than when .* was started"):
        fs.resume(tmp_path / "killed")


@pytest.mark.parametrize("name", [None, "/" + 300 * "a" + "/cube.py", "cube\0.py"])
def test_the_copy_of_the_scene_serves_where_the_file_is_gone(name: str | None, rich: Path, tmp_path: Path) -> None:
    """Also where no file can have the name."""
    cube_run(rich, tmp_path / "whole", STEPS)()
    killed_at(7, cube_run(rich, tmp_path / "killed", STEPS))
    rich.unlink()
    if name is not None:
        path = tmp_path / "killed" / "run.json"
        info = json.loads(path.read_text())
        info["scene"] |= {"file": name, "path": name}
        path.write_text(json.dumps(info))
    assert fs.resume(tmp_path / "killed").status == "converged"
    assert differences(tmp_path / "whole", tmp_path / "killed") == ([] if name is None else ["run.json"])


def test_a_scene_in_memory_is_given_again(tmp_path: Path) -> None:
    killed_at(3, lambda on_step: fs.simulate(cube_scene(), out=tmp_path / "run", checkpoint_every=2, on_step=on_step))
    with pytest.raises(fs.InputError, match=r"was not made from a scene file; go on in Python: resume\(.*, scene=\.\.\.\)"):
        fs.resume(tmp_path / "run")
    assert fs.resume(tmp_path / "run", scene=cube_scene()).status == "converged"


def test_what_cannot_go_on_is_said(rich: Path, tmp_path: Path, call: Callable[..., tuple[int, str, str]]) -> None:
    cube_run(rich, tmp_path / "done", 4)()
    for folder, words in (
        ("done", r"is complete \(converged\)"),
        ("nothing", "nothing does not exist; give the folder that a run wrote"),
    ):
        status, _, err = call("resume", str(tmp_path / folder))
        assert status == 2 and re.search(words, err), err
    assert not (tmp_path / "done" / "checkpoints").exists()


def test_values_of_other_kinds_in_run_json_are_no_bug(rich: Path, tmp_path: Path) -> None:
    folder = tmp_path / "killed"
    killed_at(7, cube_run(rich, folder, STEPS))
    told = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps(told | {"process": 3}))
    with pytest.raises(fs.InputError, match="another process is writing into the run folder"):
        fs.resume(folder)  # nobody knows
    (folder / "run.json").write_text(json.dumps(told | {"versions": "x"}))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # other versions
        assert fs.resume(folder).status == "converged"


def test_the_command_resumes(rich: Path, tmp_path: Path, call: Callable[..., tuple[int, str, str]]) -> None:
    cube_run(rich, tmp_path / "whole", STEPS)()
    killed_at(17, cube_run(rich, tmp_path / "killed", STEPS))
    status, out, _ = call("resume", str(tmp_path / "killed"))
    assert status == 0 and "All 24 steps converged" in out
    assert differences(tmp_path / "whole", tmp_path / "killed") == []


def test_two_runs_into_one_folder(rich: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    pid = in_child(lambda: cube_run(rich, folder, STEPS)(on_step=lambda *_: time.sleep(0.05)))
    end = time.monotonic() + 60
    while not (folder / "steps.csv").exists():
        assert time.monotonic() < end
        time.sleep(0.01)
    try:
        for again in (lambda: fs.resume(folder), lambda: cube_run(rich, folder, STEPS, overwrite=True)()):
            with pytest.raises(fs.InputError, match=f"process {pid} on .* is writing into the run folder"):
                again()
    finally:
        assert os.waitpid(pid, 0)[1] == 0
    assert json.loads((folder / "run.json").read_text())["status"] == "converged"


def test_when_a_checkpoint_is_due(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(Checkpoints, "clock", staticmethod(lambda: now[0]))
    default = Checkpoints(tmp_path, Every.of(None))
    now[0] = 599.0
    assert not default.due(10**6)
    now[0] = 600.0
    assert default.due(1)
    steps = Checkpoints(tmp_path, Every.of("5"))
    assert [steps.due(step) for step in (4, 5)] == [False, True]
    assert not Checkpoints(tmp_path, Every.of(0)).due(10**9) and not Checkpoints(None, Every.of(5)).due(10)
    assert Every.of("0.5s").seconds == 0.5
    for wrong in ("", "s", "-1", "5m", "0s", "infs", "nans", 1.5):
        with pytest.raises(fs.InputError, match="write a number of steps"):
            Every.of(wrong)  # type: ignore[arg-type]


def test_the_comparison_sees_a_byte(rich: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        cube_run(rich, tmp_path / name, 3)()
    assert differences(tmp_path / "a", tmp_path / "b") == []
    path = tmp_path / "b" / "steps.csv"
    path.write_bytes(path.read_bytes().replace(b"\r\n3,0.03,", b"\r\n3,0.04,"))
    (tmp_path / "b" / "more").touch()
    assert differences(tmp_path / "a", tmp_path / "b") == ["more", "steps.csv"] and content(path)

"""A simulation that is stepped from outside: the same bits as a run, readings, to and fro, forks, recording."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from many_drives import many_drives
from small_scene import DT, STEPS, cube_scene, last_row, same

import femsim as fs
from contact import ContactError
from contact.delassus import DelassusOperator
from femsim.step.stepper import Stepper

RUBBER = fs.Elastic(1e5, 0.3, 1000.0, name="rubber")


# ------------------------------------------------------------------ the engine of a run


@pytest.mark.parametrize("solver", ["auto", "exact", "cond"])
def test_steps_are_those_of_a_run(solver: str) -> None:
    run = fs.simulate(cube_scene(), solver)
    sim = fs.Simulation(cube_scene(), solver)
    assert sim.time == 0.0 and sim.row() == {} and sim.converged and sim.verdict == "good"
    assert sim.step(STEPS - 1).step() is sim
    assert same(sim.row(), last_row(run))
    assert sim.time == run.steps["time_s"][-1] and sim.dt == DT and sim.converged and sim.verdict == run.verdict
    assert np.array_equal(sim.read("floor").force, run.sensors["floor"].force[-1])
    assert np.array_equal(sim.read("floor").torque, run.sensors["floor"].torque[-1])
    assert np.array_equal(sim.read("corner").position, run.markers["corner"].position[-1])
    assert np.array_equal(sim.points("cube")[3], sim.read("corner").position)
    rotation, position = sim.pose("box")
    assert np.allclose(rotation, np.eye(3)) and position[2] == pytest.approx(0.03 + 0.01 * sim.time / 0.1, abs=2e-3)
    assert repr(sim) == "<Simulation of 'small_cube' at 0.04 s, step 4>"


def test_adaptive_steps_are_those_of_a_run() -> None:
    options: dict[str, Any] = {"dt": "auto", "dt_bounds": (1e-3, 1e-2)}
    run = fs.simulate(cube_scene(**options))
    assert same(fs.Simulation(cube_scene(**options)).step(STEPS).row(), last_row(run))
    assert run.steps["substeps"].max() > 1


def test_a_fixed_dt_of_its_own() -> None:
    assert fs.Simulation(cube_scene(), dt=0.002).step().time == 0.002


# ------------------------------------------------------------------ to and fro


def test_restored_and_forked_simulations_go_on_with_the_same_bits() -> None:
    sim = fs.Simulation(cube_scene())
    saved = sim.step(2).save()
    twin = sim.fork()
    expected = sim.step(2).row()
    sim.restore(saved)
    assert sim.time == 2 * DT and same(sim.step(2).row(), expected)
    assert twin.time == 2 * DT and same(twin.step(2).row(), expected)
    sim.reset()
    assert sim.time == 0.0 and sim.row() == {} and same(sim.step(4).row(), expected)


def test_forks_that_step_in_turn_go_their_own_ways() -> None:
    alone = fs.Simulation(cube_scene(load=lambda t: (0, 0, 0)))
    pushed = fs.Simulation(cube_scene(load=lambda t: (0, 0, 0)))
    pushed.set("cube.load", (0.5, 0, 0))
    a = fs.Simulation(cube_scene(load=lambda t: (0, 0, 0)))
    b = a.fork()
    b.set("cube.load", (0.5, 0, 0))
    for _ in range(STEPS):
        a.step()
        b.step()
    assert same(a.row(), alone.step(STEPS).row()) and same(b.row(), pushed.step(STEPS).row())
    assert b.points("cube")[:, 0].mean() > a.points("cube")[:, 0].mean() + 1e-4
    assert a.state != b.state


def test_factors_that_are_there_are_not_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Going back makes none where they are the same; forks that come and go hand their solver on."""
    made: list[int] = []
    whole = DelassusOperator._factorize

    def counted(self: DelassusOperator, *given: Any) -> None:
        made.append(1)
        whole(self, *given)

    sim = fs.Simulation(cube_scene(), "exact").step(2)
    saved = sim.save()
    monkeypatch.setattr(DelassusOperator, "_factorize", counted)
    for _ in range(3):
        sim.restore(saved)
    assert not made
    rows = []
    for _ in range(3):
        fork = sim.fork()
        fork.points("cube"), fork.verdict  # its turn
        rows.append((len(made), fork.step().row()))
        del fork
    assert [count for count, _ in rows] == [1, 1, 1] and same(rows[0][1], rows[2][1])
    assert same(sim.step().row(), rows[0][1])


def test_each_has_a_verdict_of_its_own() -> None:
    sim = fs.Simulation(cube_scene()).step()
    saved, twin = sim.save(), sim.fork()
    sim.set("box", (0, 0, -0.03))  # into the floor
    assert sim.step().verdict == "wrong" and "box and floor are" in sim.reasons[0]
    assert twin.step().verdict == "good" and twin.reasons == []
    assert sim.verdict == "wrong"
    sim.restore(saved)
    assert sim.verdict == "good"


def test_steps_that_do_not_converge_count_at_once() -> None:
    """They counted when a run had ended only; the verdict was good beside ``converged`` of False."""
    options: dict[str, Any] = {"solver": "cond", "max_iterations": 1, "max_halvings": 0}
    run = fs.simulate(cube_scene(), **options)
    sim = fs.Simulation(cube_scene(), **options)
    assert sim.verdict == "good" and not run.steps["converged"].all()
    while sim.step().converged:
        pass
    k = int(np.flatnonzero(run.steps["converged"] == 0)[0])
    assert sim.state.step == k + 1 and sim.verdict == "wrong"
    assert any(f"1 of {k + 1} steps did not converge" in reason for reason in sim.reasons)
    saved = sim.save()
    sim.step(STEPS - k - 1)
    assert sim.verdict == run.verdict and sim.reasons == [reason["sentence"] for reason in run.info["health"]["reasons"]]
    sim.restore(saved)
    assert any(f"1 of {k + 1} steps did not converge" in reason for reason in sim.reasons)
    sim.reset()
    assert sim.verdict == "good"


def test_handles_are_taken_as_the_scene_takes_them() -> None:
    scene = fs.Scene("handles", dt=DT, duration=1.0, gravity=(0.0, 0.0, 0.0))
    box = scene.add_rigid("box", fs.Box((0.01, 0.01, 0.01)), mass=0.1)
    cube = scene.add_soft("cube", fs.box_tets((0.02, 0.02, 0.02), 1), RUBBER, position=(0.1, 0.0, 0.0))
    hand = scene.add_gripper("hand", [fs.Finger("left", fs.Box((0.01, 0.01, 0.01)), (1, 0, 0), (-1, 0, 0))], position=(1, 0, 0))
    scene.drive(hand, fs.Motion([0.0], [(0, 0, 0)]))
    scene.sensor("box", box)
    sim = fs.Simulation(scene)
    sim.push(box, (0.1, 0.0, 0.0))
    sim.set(hand, (0.0, 0.0, 0.01))
    sim.step()
    assert sim.pose(box)[1][0] > 0.0 and np.array_equal(sim.pose(box)[1], sim.pose("box")[1])
    assert sim.pose(hand)[1][2] == pytest.approx(0.01) and np.array_equal(sim.points(cube), sim.points("cube"))
    assert np.array_equal(sim.read(box).force, sim.read("box").force)
    sim.push(box, None)


def test_saved_in_a_file(tmp_path: Path) -> None:
    sim = fs.Simulation(cube_scene()).step()
    sim.set("box", (0, 0, 0.02), over=0.05)
    saved = sim.step().save()
    there = sim.row()
    expected = sim.step(2).row()
    saved.write(tmp_path / "here.npz")
    other = fs.Simulation(cube_scene())
    other.restore(fs.Saved.read(tmp_path / "here.npz"))
    assert other.time == 2 * DT and same(other.row(), there) and other.read("floor").force.shape == (3,)
    assert same(other.step(2).row(), expected)


def test_noise_starts_from_a_seed() -> None:
    def scene() -> fs.Scene:
        made = cube_scene()
        made.sensor("noisy", "box", kind="mount", reading=fs.Reading(noise=(1,) * 6, seed=4))
        return made

    sim = fs.Simulation(scene())
    first = sim.step().read("noisy_measured").force
    sim.reset()
    assert np.array_equal(sim.step().read("noisy_measured").force, first)
    sim.reset(seed=7)
    other = sim.step().read("noisy_measured").force
    sim.reset(seed=7)
    assert np.array_equal(sim.step().read("noisy_measured").force, other) and not np.array_equal(other, first)


# ------------------------------------------------------------------ recording


def test_a_recorded_simulation_is_a_run(tmp_path: Path) -> None:
    run = fs.simulate(cube_scene(), out=tmp_path / "run")
    with fs.Simulation(cube_scene(), out=tmp_path / "stepped") as sim:
        sim.step(STEPS)
    recorded = sim.close()
    assert (
        recorded is not None and recorded.status == "converged" and recorded.message == "All 4 steps converged by true residuals."
    )
    for name in ("sensors.csv", "frames.pvd"):
        assert (tmp_path / "run" / name).read_bytes() == (tmp_path / "stepped" / name).read_bytes()
    frames = sorted(path.relative_to(tmp_path / "run") for path in (tmp_path / "run" / "frames").rglob("*"))
    assert frames and all((tmp_path / "stepped" / name).exists() for name in frames)
    info = json.loads((tmp_path / "stepped" / "run.json").read_text(encoding="utf-8"))
    assert info["status"] == "converged" and info["stepped"] and info["health"]["verdict"] == run.verdict
    with pytest.raises(fs.InputError, match="was stepped by a Simulation"):
        fs.resume(tmp_path / "stepped", scene=cube_scene())


def test_a_closed_simulation_keeps_its_readings_and_goes_nowhere() -> None:
    with fs.Simulation(cube_scene()) as sim:
        saved = sim.step(2).save()
        twin = sim.fork()
    row = sim.row()
    for call in (sim.step, lambda: sim.set("box", (0, 0, 1e-4)), lambda: sim.push("cube", (0, 0, 1)), sim.fork, sim.reset,
                 lambda: sim.restore(saved)):  # fmt: skip
        with pytest.raises(fs.InputError, match=rf"^\w+: the simulation of .* was closed at {2 * DT:g} s; make a new one"):
            call()
    assert sim.row() == row and sim.converged and sim.time == pytest.approx(2 * DT) and sim.verdict == "good"
    assert twin.step(2).time == pytest.approx(4 * DT)  # a fork goes on
    assert repr(saved) == f"<Saved simulation at {2 * DT:g} s, step 2>"


@pytest.mark.parametrize("error", [ValueError("mine"), KeyboardInterrupt()])
def test_a_recording_that_an_error_ends_says_so(error: BaseException, tmp_path: Path) -> None:
    with pytest.raises(type(error)), fs.Simulation(cube_scene(), out=tmp_path / "run") as sim:
        sim.step(2)
        raise error
    info = json.loads((tmp_path / "run" / "run.json").read_text())
    said = "ValueError: mine" if isinstance(error, ValueError) else "KeyboardInterrupt"
    assert (info["status"], info["message"]) == ("interrupted", f"Ended after step 2 by {said}.")


def test_notes_of_a_run_are_those_of_its_scene() -> None:
    scene = fs.Scene("box", dt=0.01, duration=0.02, gravity=(0.0, 0.0, 0.0))
    scene.drive(scene.add_rigid("box", fs.Box((0.01,) * 3), mass=0.1), fs.Motion([0.0], [(0.001, 0.0, 0.0)]))
    run = fs.simulate(scene)
    assert run.notes == scene.notes and len(run.notes) == 1 and f"note               {run.notes[0]}" in run.summary()


def test_a_simulation_says_what_is_unlikely_once_in_a_process(caplog: pytest.LogCaptureFixture) -> None:
    """An environment makes a new one for each episode; a loop of control has no summary to read it in."""
    for density in (1.5, 1.25):
        scene = fs.Scene("light", dt=0.01, duration=0.02)
        scene.add_rigid("feather_of_a_loop", fs.Box((0.01,) * 3), density=density)
        sim = fs.Simulation(scene)
        assert len(sim.notes) == 1 and f"{density}" in sim.notes[0]
        assert sim.fork().notes == sim.notes
    said = [record.message for record in caplog.records if "feather_of_a_loop" in record.message]
    assert len(said) == 1 and said[0].startswith("femsim: note: ") and "1.5" in said[0]


def test_recorded_in_memory_with_a_fork_beside_it() -> None:
    run = fs.simulate(cube_scene())
    sim = fs.Simulation(cube_scene(), record=True)
    twin = sim.step(2).fork()
    twin.step(5)
    sim.step(2)
    recorded = sim.close()
    assert recorded is not None and twin.close() is None
    table = run.table()
    assert all(np.array_equal(values, table[name]) for name, values in recorded.table().items() if not name.startswith("ms_"))


def test_a_recording_does_not_go_back() -> None:
    with fs.Simulation(cube_scene(), record=True) as sim:
        saved = sim.step().save()
        with pytest.raises(fs.InputError, match="records cannot go back"):
            sim.restore(saved)
        with pytest.raises(fs.InputError, match="records cannot go back"):
            sim.reset()


# ------------------------------------------------------------------ the page


def test_the_examples_of_the_page_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    page = (Path(fs.__file__).parents[1] / "docs" / "guide" / "control.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        if "import gymnasium" not in block or find_spec("gymnasium") is not None:
            exec(block, names)
    said = capsys.readouterr().out
    force = float(said.split()[0])
    assert [case.status for case in names["runs"]] == ["converged", "converged", "failed"]
    assert "over" not in names or (names["info"]["verdict"] == "good" and names["reward"] > -0.5), names["reward"]
    assert force == pytest.approx(5.0, abs=0.05)
    assert names["best"] in (0.0002, 0.0004, 0.0006) and (tmp_path / "runs" / "pressed" / "run.json").is_file()


# ------------------------------------------------------------------ faults


def test_a_step_that_fails_leaves_the_simulation_where_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    sim = fs.Simulation(cube_scene(), record=True, max_halvings=0).step(2)
    before = sim.state

    def broken(self: Stepper, *, whole: bool = True, pushing: bool = True) -> Any:
        raise ContactError("no solution.")

    with monkeypatch.context() as patch:
        patch.setattr(Stepper, "step", broken)
        with pytest.raises(fs.StepFailedError, match=r"step 3 at 0.03 s failed: no solution. Go back"):
            sim.step(2)
    assert sim.state == before and same(sim.fork().step().row(), fs.Simulation(cube_scene()).step(3).row())
    recorded = sim.close()
    assert recorded is not None and recorded.status == "failed" and recorded.message.startswith("step 3 at 0.03 s failed")
    assert recorded.verdict == "wrong" and recorded.info["health"]["reasons"][0]["kind"] == "failed"  # as of a run of its own


def test_a_recording_that_went_on_after_a_failed_step_is_not_failed() -> None:
    """The push that no step can take was let go again: the run said "failed" of a step that stands nowhere in it."""
    with fs.Simulation(cube_scene(), record=True) as sim:
        sim.step(2).push("cube", (0, 0, 1e15))
        with pytest.raises(fs.StepFailedError, match="step 3 at"):
            sim.step()
        sim.push("cube", None)
        sim.step(2)
    run, plain = sim.close(), fs.Simulation(cube_scene()).step(4)
    assert run is not None and (run.status, len(run.steps["step"])) == ("converged", 4)
    assert np.allclose(sim.points("cube"), plain.points("cube"), atol=1e-12)  # factors of the failed step stay in the solver


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_a_step_that_is_interrupted_is_undone(error: type[BaseException]) -> None:
    """Bodies stood in the middle of the step, and the next one began there: strains of Prony terms, time, places."""
    asked: list[float] = []

    def load(t: float) -> tuple[float, float, float]:
        asked.append(t)
        if interrupt and t > before.t + 0.7 * DT:
            raise error
        return 0.1, 0.0, -0.1

    scene, interrupt = fs.Scene("cube", dt="auto", duration=0.1), False
    scene.add_floor()
    rubber = fs.Elastic(1e5, 0.3, 1000.0, prony=((0.3, 0.02),))
    scene.add_soft("cube", fs.box_tets((0.02,) * 3, 2), rubber, position=(0, 0, 0.0105), velocity=(0.1, 0, -0.5), load=load)
    scene.sensor("cube", "cube", kind="slip")
    sim = fs.Simulation(scene).step(2)
    before, twin, interrupt = sim.state, sim.fork(), True
    with pytest.raises(error):
        sim.step()
    interrupt = False
    assert max(asked) > before.t + 0.7 * DT and sim.state == before  # parts of the step had been taken
    assert same(sim.step(2).row(), twin.step(2).row()) and sim.state == twin.state


def test_a_simulation_ends_where_a_run_does() -> None:
    """A ball without a floor leaves the scene; the step that shows it stands, the next one is not taken, and one can go back."""
    scene = fs.Scene("fall", dt=0.05, duration=1.0, theta=1.0)
    scene.add_rigid("ball", fs.Sphere(0.01), mass=0.1)
    run = fs.simulate(scene, duration=5.0)
    sim = fs.Simulation(scene)
    start = sim.save()
    with pytest.raises(fs.StepFailedError, match=r"step \d+ is not taken: ball has left the scene.* Go back to a saved state"):
        sim.step(100)
    assert run.status == "failed" and sim.state.step == run.steps["step"][-1] and sim.verdict == run.verdict == "wrong"
    sim.restore(start)
    assert sim.step(3).verdict == "good"


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda sim: sim.step(0), "n is 0; allowed are whole numbers from 1"),
        (lambda sim: sim.step(1.5), "n is 1.5; allowed"),
        (lambda sim: sim.set("boxx", (0, 0, 0)), "target 'boxx' is unknown in scene 'small_cube'; did you mean 'box'"),
        (lambda sim: sim.set("", 1.0), "target '' is unknown"),
        (lambda sim: sim.set("box", 1.0), "box: the value is 1.0; allowed are .* displacement and rotation vector"),
        (lambda sim: sim.set("box", (0, np.nan, 0)), "allowed are .* finite"),
        (lambda sim: sim.set("box", "up"), "box: the value is 'up'"),
        (lambda sim: sim.set("box", (0, 0, 0), over=-1.0), "over is -1.0 s; allowed"),
        (lambda sim: sim.read("flor"), "sensor 'flor' is unknown in scene 'small_cube'; did you mean 'floor'"),
        (lambda sim: sim.read("floor"), "no reading before the first step"),
        (lambda sim: sim.points("box"), "it is rigid and has none; ask for its pose"),
        (
            lambda sim: sim.points("floor"),
            "it is rigid and has none; ask for its pose. Of soft bodies and rods there is only cube",
        ),
        (lambda sim: sim.points("ball"), "no soft body or rod is called so; there is only cube"),
        (lambda sim: sim.pose("cube"), "it deforms: ask for its points; no rigid part is called so"),
        (lambda sim: sim.set("gravity", (0, 0, 0)), "'gravity' is no target but a setting of the scene: change it there, make"),
        (lambda sim: sim.restore(sim.state), "restore: saved is a SeenState; give what save"),
        (lambda sim: sim.save().write(3), "path is 3, but must be a text or a path"),
        (lambda sim: fs.Simulation(cube_scene(), record="no"), "record is 'no', but must be True or False"),
        (lambda sim: sim.restore(fs.Simulation(many_drives()).save()), "of another scene: its body 0 is hand of 8 coord"),
        (lambda sim: sim.restore(3), "restore: saved is 3; give what save"),
        (lambda sim: fs.Simulation(cube_scene(), "conda"), "solver 'conda' is unknown"),
        (lambda sim: fs.Simulation(cube_scene(), overwrite=True), "overwrite is True, but nothing is written: give out too"),
        (lambda sim: fs.Simulation(cube_scene(), record=True, fps=30), "fps is 30, but nothing is written: give out too"),
        (lambda sim: fs.Simulation(cube_scene(), fields=["velocity"]), r"fields is \['velocity'\], but nothing is written"),
        (lambda sim: sim.reset(-1), "reset: seed is -1; allowed are whole numbers from 0"),
        (lambda sim: sim.reset(1.5), "reset: seed is 1.5; allowed"),
        (lambda sim: sim.save().write("nowhere/saved.npz"), r"the file nowhere/saved.npz cannot be written \(No such file"),
    ],
)
def test_wrong_calls_are_answered_with_a_sentence(wrong: Any, said: str) -> None:
    sim = fs.Simulation(cube_scene())
    with pytest.raises(ValueError, match=said):
        wrong(sim)
    assert same(sim.step(STEPS).row(), last_row(fs.simulate(cube_scene())))


def test_what_is_no_saved_simulation(tmp_path: Path) -> None:
    sim = fs.Simulation(cube_scene()).step()
    with pytest.raises(fs.InputError, match="cannot be read as a saved simulation"):
        fs.Saved.read(tmp_path / "none.npz")
    sim.state.save(tmp_path / "state.npz")
    with pytest.raises(fs.InputError, match="no saved simulation of version"):
        fs.Saved.read(tmp_path / "state.npz")
    np.savez(tmp_path / "old.npz", version=np.array(1))  # named no bodies
    with pytest.raises(fs.InputError, match="no saved simulation of version 2 but of version 1; write it again"):
        fs.Saved.read(tmp_path / "old.npz")
    np.savez(tmp_path / "half.npz", version=np.array(2))
    with pytest.raises(fs.InputError, match="no complete simulation"):
        fs.Saved.read(tmp_path / "half.npz")


def two_boxes(names: str = "ab", sensed: str = "a", *, mass: float = 0.1, gravity: float = -9.81) -> fs.Scene:
    scene = fs.Scene("two", dt=DT, duration=1.0, gravity=(0.0, 0.0, gravity), default_friction=mass)
    scene.add_floor()
    for name in names:
        place = (0.1 * "abc".index(name), 0.0, 0.03)
        scene.add_rigid(name, fs.Box((0.01, 0.01, 0.01)), mass=mass, position=place)
    scene.sensor("force", sensed)
    return scene


@pytest.mark.parametrize("by_file", [False, True])
@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"names": "ba"}, "of another scene: its body 0 is a of 7 coordinates, that of 'two' is b of 7 coordinates; build"),
        ({"names": "abc"}, "its body 2 is missing, that of 'two' is c of 7"),
        ({"sensed": "b"}, r"its sensor 0 is force \(contact\) of a, that of 'two' is force \(contact\) of b"),
    ],
)
def test_what_another_scene_saved_is_refused(other: dict[str, Any], said: str, by_file: bool, tmp_path: Path) -> None:
    """Boxes of another order exchanged their places without a word; other masses are another circumstance, and go on."""
    saved = fs.Simulation(two_boxes()).step(3).save()
    if by_file:
        saved.write(tmp_path / "saved.npz")
        saved = fs.Saved.read(tmp_path / "saved.npz")
    sim = fs.Simulation(two_boxes(**other))
    with pytest.raises(fs.InputError, match=said):
        sim.restore(saved)
    assert sim.time == 0.0
    heavier = fs.Simulation(two_boxes(mass=0.3, gravity=-1.6))
    heavier.restore(saved)
    assert heavier.time == pytest.approx(3 * DT) and heavier.step().converged


def later_scene() -> fs.Scene:
    scene = fs.Scene("later", dt=DT, duration=1.0)
    scene.add_floor()
    scene.add_rigid("box", fs.Box((0.02, 0.02, 0.02)), mass=0.1, position=(0.0, 0.0, 0.02))
    scene.add_soft("cube", fs.box_tets((0.02, 0.02, 0.02), 1), "ecoflex_00_50", position=(0.5, 0.0, 0.01))
    scene.set_friction("cube", "floor", 0.4)
    scene.set_friction("box", "floor", 0.5)
    scene.sensor("force", "box")
    return scene


CHANGES: dict[str, Callable[[fs.Scene], Any]] = {
    "other sensors": lambda scene: scene.sensor("place", "box", kind="marker"),
    "other bodies and parts": lambda scene: scene.add_rigid("ball", fs.Sphere(0.01), mass=0.1, position=(0.0, 0.0, 1.0)),
    "other drives, loads": lambda scene: scene.drive("box", fs.Motion([0.0, 1.0], [(0.0, 0.0, 0.0), (0.0, 0.0, 0.1)])),
    "other rules of contact": lambda scene: scene.set_friction("box", "floor", 0.3),  # instead of the one before
    "other pairs without contact": lambda scene: scene.ignore_contact("box", "floor"),
    "other holds": lambda scene: scene.hold("cube", [0, 1, 2], fs.Motion([0.0], [(0.0, 0.0, 0.0)])),
    "other joints": lambda scene: scene.add_tendon("cube", [0, 7], force=lambda t: 0.0),
    "other surfaces of parts": lambda scene: scene.contact_by_faces("box"),
    r"another gravity, \(0, 0, -1\) for \(0, 0, -9.81\)": lambda scene: setattr(scene, "gravity", (0, 0, -1)),
    r"another gravity, \(0, 0, 0\)": lambda scene: scene.gravity.fill(0.0),
    "another dt, 0.02 for": lambda scene: setattr(scene, "dt", 0.02),
    "another integrator, 'theta' for 'energy-momentum'": lambda scene: setattr(scene, "theta", 1.0),
    "other loads of bodies": lambda scene: setattr(scene.bodies[0], "load", lambda t: ((1.0, 0.0, 0.0), (0.0, 0.0, 0.0))),
    "other shapes of parts": lambda scene: scene.parts[0].shapes.clear(),
    "another default_friction, 0.9 for 0.5": lambda scene: setattr(scene, "default_friction", 0.9),
    "another margin": lambda scene: setattr(scene, "margin", 0.002),
    "another health": lambda scene: setattr(scene, "health", fs.HealthBounds(led_overlap=(1.0, 1.0))),
}


@pytest.mark.parametrize("said", CHANGES)
def test_what_is_changed_in_the_scene_later_is_not_taken_in_silence(said: str) -> None:
    """It was taken without a word, and did nothing; gravity in place did so by half."""
    scene = later_scene()
    sim = fs.Simulation(scene, record=True).step()
    scene.set_friction("box", "floor", 0.5)  # as before
    scene.duration = 2.0  # which no step reads
    CHANGES[said](scene)
    with pytest.raises(fs.InputError, match=rf"step: scene 'later' has .*{said}.* than when.*fs\.Simulation"):
        sim.step()
    assert sim.state.step == 1
    run = sim.close()  # what it recorded stands
    assert run is not None and run.status == "converged" and list(run.sensors) == ["force"] and sim.read("force").force[2] > 0.0
    fs.Simulation(scene).step()


def test_a_run_says_that_its_scene_was_changed_in_between() -> None:
    scene = later_scene()
    with pytest.raises(fs.InputError, match="on_step: scene 'later' has another gravity"):
        fs.simulate(scene, quiet=True, on_step=lambda *_: setattr(scene, "gravity", (0, 0, 0)))


def test_from_here_on_under_another_gravity() -> None:
    """A box falls 0.1 s by 1 m/s^2, then 0.1 s by 2 m/s^2 and sideways: its speed is the sum."""
    scene = fs.Scene("fall", dt=DT, duration=1.0, gravity=(0.0, 0.0, -1.0))
    scene.add_rigid("box", fs.Box((0.01, 0.01, 0.01)), mass=0.1)
    before = fs.Simulation(scene)
    saved = before.step(round(0.1 / DT)).save()
    scene.gravity = (0.5, 0.0, -2.0)  # type: ignore[assignment]
    sim = fs.Simulation(scene)
    sim.restore(saved)
    sim.step(round(0.1 / DT))
    assert sim.state.v[:3] == pytest.approx((0.05, 0.0, -0.3)) and sim.verdict == "good"
    with pytest.raises(fs.InputError, match="another gravity"):
        before.step()


def test_what_came_later_is_not_read() -> None:
    scene = later_scene()
    sim = fs.Simulation(scene).step()
    scene.add_soft("later", fs.box_tets((0.02, 0.02, 0.02), 1), "ecoflex_00_50", position=(0.5, 0.0, 0.1))
    scene.add_rigid("ball", fs.Sphere(0.01), mass=0.1, position=(0.0, 0.0, 1.0))
    scene.sensor("ball", "ball")
    asked = {"points": lambda: sim.points("later"), "pose": lambda: sim.pose("ball"), "read": lambda: sim.read("ball")}
    for call, ask in asked.items():
        with pytest.raises(fs.InputError, match=rf"{call}: scene 'later' has other bodies and parts and sensors than"):
            ask()


def test_no_attribute_is_set_in_silence() -> None:
    sim = fs.Simulation(later_scene())
    for name, said in (("gravity", "is one of the scene: change it there"), ("time", "to be read"), ("tolerance", "give it as")):
        with pytest.raises(AttributeError, match=rf"{name} of a simulation cannot be set; .*{said}"):
            setattr(sim, name, 1.0)
    with pytest.raises(AttributeError, match="no attribute 'positions'; did you mean 'points'"):
        _ = sim.positions  # type: ignore[attr-defined]


def test_two_recordings_to_one_folder(tmp_path: Path) -> None:
    with fs.Simulation(cube_scene(), out=tmp_path / "run") as sim:
        sim.step()
        for overwrite in (False, True):
            with pytest.raises(fs.InputError, match=r"of this process is writing into the run folder .*; close\(\) it first"):
                fs.Simulation(cube_scene(), out=tmp_path / "run", overwrite=overwrite)

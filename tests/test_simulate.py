"""A run: its folder and tables, its states, what happens to an old run, and that the same input gives the same bits."""

from __future__ import annotations

import csv
import hashlib
import json
import math
import os
import signal
import socket
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from killed_runs import killed_after
from small_scene import DT, STEPS, cube_scene, scene_file

import femsim as fs
from contact.linear import make_factorization
from femsim.run.folder import hold_folder
from femsim.run.frames import Shown
from femsim.run.recorder import TableWriter
from viz import LiveSeries
from viz.ending import heartbeat_age

# The contract with scripts outside: these columns are there, under these names (more may stand between them).
STEP_COLUMNS = (
    "step", "time_s", "contacts", "iterations", "dynamics_residual", "contact_residual", "step_norm", "max_penetration_m",
    "max_slip_mps", "kinetic_energy_J", "elastic_energy_J", "work_J", "momentum_x_kgmps", "momentum_y_kgmps",
    "momentum_z_kgmps", "wrench_balance", "ms_assemble", "ms_detect", "ms_solve", "ms_record", "ms_step",
)  # fmt: skip
WRENCH = ("fx_N", "fy_N", "fz_N", "tx_Nm", "ty_Nm", "tz_Nm")
OnStep = Callable[[Any, Any], None]


def table(path: Path) -> tuple[list[str], np.ndarray]:
    with path.open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    return header, np.array(rows, dtype=float).reshape(len(rows), len(header))


def info(folder: Path) -> dict:
    return json.loads((folder / "run.json").read_text(encoding="utf-8"))


def assert_readable(folder: Path, steps: int) -> None:
    """Both tables have all steps, the index lists a frame of each at its time, and the start; every file listed can be read."""
    for name in ("steps.csv", "sensors.csv"):
        assert len(table(folder / name)[1]) == steps
    frames, (header, rows) = fs.read_pvd(folder / "frames.pvd"), table(folder / "steps.csv")
    assert [time for time, _ in frames] == [0.0, *rows[:, header.index("time_s")]]  # to the last bit
    assert [time for time, _ in frames] == pytest.approx([DT * k for k in range(steps + 1)])
    for _, files in frames:
        assert fs.read_part(files["cube"]).n_points == 27
        assert set(files) == {"floor", "cube", "box", "contacts"}


def stop_at(step: int, how: Callable[[], None]) -> OnStep:
    def on_step(stepper: Any, report: Any) -> None:
        if report.step == step:
            how()

    return on_step


def fail(*_: object, **__: object) -> None:
    raise RuntimeError("the disk melted")


def huge_load(t: float) -> tuple[float, float, float]:
    return 0.0, 0.0, 1e307 if t > 1.5 * DT else 0.0


# ------------------------------------------------------------------ the folder


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[fs.Run, Path]:
    folder = tmp_path_factory.mktemp("simulate")
    run = fs.simulate(cube_scene(), out=folder / "run", scene_path=scene_file(folder))
    return run, folder / "run"


def test_the_folder_has_exactly_its_files(done: tuple[fs.Run, Path]) -> None:
    run, folder = done
    assert run.status == "converged" and run.folder == folder
    assert sorted(path.name for path in folder.iterdir()) == [
        "frames", "frames.pvd", "run.json", "scene.py", "sensors.csv", "steps.csv",
    ]  # fmt: skip
    assert (folder / "scene.py").read_bytes() == (folder.parent / "small_cube.py").read_bytes()
    assert not list(folder.rglob("*.tmp*")) and not list(folder.parent.glob(".*"))


def test_steps_table(done: tuple[fs.Run, Path]) -> None:
    run, folder = done
    header, rows = table(folder / "steps.csv")
    assert [name for name in header if name in STEP_COLUMNS] == list(STEP_COLUMNS)
    assert list(run.steps) == header and len(set(header)) == len(header)
    for name, column in zip(header, rows.T, strict=True):
        np.testing.assert_allclose(column, run.steps[name], rtol=1e-9, err_msg=name)
    np.testing.assert_array_equal(run.steps["step"], np.arange(1, STEPS + 1))
    np.testing.assert_allclose(run.steps["time_s"], DT * np.arange(1, STEPS + 1))
    assert run.steps["contacts"].max() >= 9 and run.steps["iterations"].min() >= 1
    stages = sum(run.steps[f"ms_{stage}"] for stage in ("assemble", "detect", "solve", "measure", "record"))
    np.testing.assert_allclose(run.steps["ms_step"], stages)
    for stage, seconds in run.stepper.timings.items():
        assert run.steps[f"ms_{stage}"].sum() == pytest.approx(1e3 * seconds), stage


def test_sensors_table(done: tuple[fs.Run, Path]) -> None:
    run, folder = done
    header, rows = table(folder / "sensors.csv")
    expected = [f"{name}_{component}" for name in ("floor", "cube", "arm") for component in WRENCH]
    assert header == ["time_s", *expected, "corner_x_m", "corner_y_m", "corner_z_m"]
    assert list(run.sensors) == ["floor", "cube", "arm"] and list(run.markers) == ["corner"]
    np.testing.assert_allclose(rows[:, 0], run.steps["time_s"])
    for k, sensor in enumerate(run.sensors.values()):
        assert sensor.force.shape == sensor.torque.shape == (STEPS, 3)
        np.testing.assert_allclose(rows[:, 1 + 6 * k : 4 + 6 * k], sensor.force, rtol=1e-9)
        np.testing.assert_allclose(rows[:, 4 + 6 * k : 7 + 6 * k], sensor.torque, rtol=1e-9)
    np.testing.assert_allclose(rows[:, -3:], run.markers["corner"].position, rtol=1e-9)


def test_planes_reach_under_all_that_a_scene_holds() -> None:
    """Also where the bodies are far from the origin, and where a plane is steep."""
    scene = fs.Scene("far", dt=0.01, duration=0.1)
    scene.add_floor()
    scene.add_rigid("box", fs.Box((0.05, 0.05, 0.05)), mass=0.5, position=(3.0, 0.0, 0.05))
    scene.add_rigid("ball", fs.Sphere(0.02), mass=0.1, position=(3.0, -1.0, 0.05))
    slope = np.array([math.sin(0.3), 0.0, math.cos(0.3)])
    scene.add_obstacle("slope", fs.Plane(), position=(1.0, 0.0, -1.0), rotation=(0.0, 0.3, 0.0))
    series = LiveSeries()
    Shown(fs.Simulation(scene).stepper, series).write(None)
    bodies = np.concatenate([np.asarray(series.read(0, part).points) for part in ("box", "ball")])
    floor, steep = (np.asarray(series.read(0, part).points) for part in ("floor", "slope"))
    np.testing.assert_array_equal(floor[:, 2], 0.0)
    np.testing.assert_allclose((steep - [1.0, 0.0, -1.0]) @ slope, 0.0, atol=1e-12)
    for plane in (floor, steep):
        assert np.all(plane.min(axis=0)[:2] < bodies.min(axis=0)[:2]) and np.all(plane.max(axis=0)[:2] > bodies.max(axis=0)[:2])


def test_frames(done: tuple[fs.Run, Path]) -> None:
    run, folder = done
    assert_readable(folder, STEPS)
    _, files = fs.read_pvd(folder / "frames.pvd")[-1]
    cube = fs.read_part(files["cube"])
    np.testing.assert_array_equal(cube.points[3], run.markers["corner"].position[-1])
    assert set(cube.point_data) == {"velocity", "contact_force", "displacement", "contact_pressure"}
    assert set(cube.cell_data) == {"von_mises"}
    np.testing.assert_allclose(cube.point_data["contact_force"].sum(axis=0), run.sensors["cube"].force[-1], rtol=1e-4, atol=1e-6)
    contacts = fs.read_part(files["contacts"])
    assert contacts.n_points == run.steps["contacts"][-1]
    np.testing.assert_allclose(np.linalg.norm(contacts.point_data["normal"], axis=1), 1.0, rtol=1e-6)
    heights = [fs.read_part(files["box"]).points[:, 2].min() for _, files in fs.read_pvd(folder / "frames.pvd")]
    assert np.all(np.diff(heights) > 0)  # it is driven up


def test_run_json(done: tuple[fs.Run, Path]) -> None:
    run, folder = done
    content = info(folder)
    assert {
        "status", "message", "scene", "parameters", "settings", "bodies", "friction", "restitution", "softness", "solver",
        "versions", "machine", "command", "started", "timings_s", "health", "health_bounds", "ignored_contacts",
        "parts", "drives", "sensors", "notes", "problems", "call", "process",
    } == set(content)  # fmt: skip
    assert content["status"] == run.status == "converged" and content["message"] == run.message
    path = folder.parent / "small_cube.py"
    assert content["scene"] == {
        "name": "small_cube", "file": str(path), "path": str(path.resolve()),
        "digest": hashlib.blake2b(path.read_bytes(), digest_size=32).hexdigest(),
    }  # fmt: skip
    assert content["call"]["solver"] == "auto" and content["call"]["format"] == "pvd"
    assert content["process"]["pid"] == os.getpid() and content["process"]["host"] == socket.gethostname()
    assert content["process"]["step"] == STEPS and abs(heartbeat_age(content["process"])) < 600.0
    assert content["settings"]["dt_s"] == DT and content["settings"]["steps"] == STEPS
    assert content["settings"]["gravity_mps2"] == [0.0, 0.0, -9.81]
    assert content["bodies"]["cube"]["mass_kg"] == pytest.approx(0.008)
    assert content["bodies"]["cube"]["material"]["young_modulus_Pa"] == 1e5
    assert content["bodies"]["cube"]["mesh"]["nodes"] == 27 and len(content["bodies"]["cube"]["mesh"]["digest"]) == 64
    assert {"surfaces": ["floor", "rubber"], "coefficient": 0.5} in content["friction"]
    assert content["solver"]["name"] == "auto" and content["solver"]["options"]["tolerance"] == 1e-8
    assert content["solver"]["linear_algebra"] == make_factorization().name
    assert sum(content["solver"]["answered"].values()) == STEPS and set(content["solver"]["answered"]) <= {"cond", "exact"}
    assert content["versions"]["femsim"] == fs.__version__ and content["versions"]["numpy"] == np.__version__
    assert content["machine"]["cpus"] == os.cpu_count()
    assert content["timings_s"]["wall"] > 0 and content["health"]["steps"] == STEPS
    assert content["health"]["largest_wrench_balance"] == run.steps["wrench_balance"].max()


def test_summary(done: tuple[fs.Run, Path]) -> None:
    run, _ = done
    text = run.summary()
    for words in ("converged", f"steps              {STEPS} (0.040 s simulated), 0 not converged", "ms a step", "worst, step"):
        assert words in text
    for stage in ("assemble", "detect", "solve", "measure", "record"):
        assert stage in text
    for line in ("iterations", "max penetration", "dynamics residual", "contact residual", "wrench balance", "answered by"):
        assert any(row.startswith(line) for row in text.splitlines()), line
    run = replace(run, steps=run.steps | {"ms_step": np.array([19700.0, 7.0, 8.0, 9.0])})
    assert " 8.00 mean after the first step of 19.7 s" in run.summary()
    run.steps["ms_step"][0] = 19.0  # as any other
    assert " 10.75 mean\n" in run.summary()


def test_parameters_of_a_scene_file_are_in_run_json(tmp_path: Path) -> None:
    fs.simulate(fs.load_scene(scene_file(tmp_path), young_modulus="2e5", steps=1), out=tmp_path / "run")
    assert info(tmp_path / "run")["parameters"]["young_modulus"] == {"value": 2e5, "unit": "Pa"}
    assert not (tmp_path / "run" / "scene.py").exists()


# ------------------------------------------------------------------ physics of what is recorded


def test_sensors_are_sums_of_the_contacts() -> None:
    sums, momenta = [], []

    def on_step(stepper: Any, report: Any) -> None:
        sums.append(report.contacts.force.sum(axis=0))
        momenta.append(stepper.scene.bodies[0].momentum(None, stepper.state.v[stepper.system.v_slices[0]]))

    scene = cube_scene()
    start = scene.bodies[0].momentum(None, scene.bodies[0].initial_v())  # type: ignore[arg-type]
    run = fs.simulate(scene, tolerance=1e-9, on_step=on_step)
    floor, cube, arm = (run.sensors[name].force for name in ("floor", "cube", "arm"))
    size = np.abs(floor).max()
    assert size > 0.05
    np.testing.assert_allclose(floor, -cube, atol=1e-12 * size)
    np.testing.assert_allclose(np.abs(sums), np.abs(floor), atol=1e-12 * size)  # nothing else touches
    rate = np.diff([start, *momenta], axis=0) / DT
    np.testing.assert_allclose(cube + 0.008 * scene.gravity, rate, atol=1e-7 * size)
    # the box is 0.1 kg on a known path: the arm carries its weight and accelerates it
    height = fs.Motion([0.0, 0.1], [(0, 0, 0), (0, 0, 0.01)])
    path = np.array([height(DT * k)[0][2] for k in range(STEPS + 1)])
    speed = np.concatenate([[0.0], np.diff(path) / DT])
    np.testing.assert_allclose(arm[:, 2], 0.1 * (9.81 + np.diff(speed) / DT), rtol=1e-6)


# ------------------------------------------------------------------ the same again


def assert_same(a: fs.Run, b: fs.Run) -> None:
    for name in ("q", "v"):
        np.testing.assert_array_equal(getattr(a.stepper.state, name), getattr(b.stepper.state, name))
    for name in a.steps:
        if not name.startswith("ms_"):
            np.testing.assert_array_equal(a.steps[name], b.steps[name], err_msg=name)
    for name in a.sensors:
        np.testing.assert_array_equal(a.sensors[name].force, b.sensors[name].force)
        np.testing.assert_array_equal(a.sensors[name].torque, b.sensors[name].torque)


def test_two_scenes_and_two_runs_of_one_scene_give_the_same_bits() -> None:
    scene = cube_scene()
    first = fs.simulate(scene)
    second = fs.simulate(scene)
    assert_same(first, second)
    assert_same(first, fs.simulate(cube_scene()))
    np.testing.assert_array_equal(scene.bodies[0].initial_q(), cube_scene().bodies[0].initial_q())


def test_recording_and_a_failed_run_before_do_not_change_the_result(tmp_path: Path) -> None:
    scene = cube_scene()
    in_memory = fs.simulate(scene)
    fs.simulate(scene, max_iterations=1, dt=0.02)
    recorded = fs.simulate(scene, out=tmp_path / "run")
    assert_same(in_memory, recorded)
    assert in_memory.folder is None and scene.dt == DT
    header, rows = table(tmp_path / "run" / "steps.csv")
    for name, column in zip(header, rows.T, strict=True):
        if not name.startswith("ms_"):
            assert [f"{x:.10g}" for x in in_memory.steps[name]] == [f"{x:.10g}" for x in column], name


# ------------------------------------------------------------------ options


def test_dt_and_duration_of_a_run() -> None:
    run = fs.simulate(cube_scene(), dt=0.005, duration=0.03)
    np.testing.assert_allclose(run.steps["time_s"], 0.005 * np.arange(1, 7))
    assert run.info["settings"] | {"dt_s": 0.005, "duration_s": 0.03, "steps": 6} == run.info["settings"]
    assert len(fs.simulate(cube_scene(duration=2 * DT)).steps["step"]) == 2


@pytest.mark.parametrize(
    ("dt", "duration", "end"),
    [
        (0.1, 0.25, "the duration of 0.25 s is no whole number of steps of 0.1 s: the run ends at 0.2 s, after 2 steps"),
        (0.01, 0.0102, "the duration of 0.0102 s is no whole number of steps of 0.01 s: the run ends at 0.01 s, after 1 step"),
        ("auto", 0.026, "the duration of 0.026 s is no whole number of steps of 0.01 s: the run ends at 0.03 s, after 3 steps"),
        (0.1, 0.3, ""),
        (1.0 / 240.0, 0.05, ""),
        (0.01, 0.01 * (1.0 + 1e-7), ""),
    ],
)
def test_a_duration_that_is_no_whole_number_of_steps_is_noted(dt: Any, duration: float, end: str) -> None:
    scene = fs.Scene("flight", dt=0.05, duration=0.1)
    scene.add_rigid("ball", fs.Sphere(0.01), mass=0.1)
    run = fs.simulate(scene, dt=dt, duration=duration)
    assert run.info["notes"] == ([end] if end else [])
    said = f"ends at {run.steps['time_s'][-1]:g} s, after {len(run.steps['time_s'])} step"
    assert said in end if end else run.steps["time_s"][-1] == pytest.approx(duration, rel=1e-6)


@pytest.mark.parametrize(
    ("fps", "times"),
    [
        (100.0, [0, 1, 2, 3, 4, 5, 6, 7, 8]),
        (50.0, [0, 2, 4, 6, 8]),
        (30.0, [0, 4, 7]),
        (1e-3, [0]),
        (1e4, [0, 1, 2, 3, 4, 5, 6, 7, 8]),
    ],
)
def test_fps(fps: float, times: list[int], tmp_path: Path) -> None:
    fs.simulate(cube_scene(), duration=8 * DT, fps=fps, out=tmp_path / "run")
    frames = fs.read_pvd(tmp_path / "run" / "frames.pvd")
    assert [time for time, _ in frames] == pytest.approx([DT * k for k in times])


@pytest.mark.parametrize("fields", [(), "von_mises", ("von_mises",), ("velocity", "displacement")])
def test_fields(fields: tuple[str, ...] | str, tmp_path: Path) -> None:
    fs.simulate(cube_scene(), duration=DT, fields=fields, out=tmp_path / "run")
    cube = fs.read_part(fs.read_pvd(tmp_path / "run" / "frames.pvd")[-1][1]["cube"])
    assert {*cube.point_data, *cube.cell_data} == ({fields} if isinstance(fields, str) else set(fields))


def test_all_fields_and_default_stand_for_lists(tmp_path: Path) -> None:
    fs.simulate(cube_scene(), duration=DT, fields=("default", "rotation"), precision="float32", out=tmp_path / "run")
    cube = fs.read_part(fs.read_pvd(tmp_path / "run" / "frames.pvd")[-1][1]["cube"])
    assert set(cube.cell_data) == {"von_mises", "rotation"} and cube.points.dtype == np.float32
    assert info(tmp_path / "run")["settings"]["precision"] == "float32"
    fs.simulate(cube_scene(), duration=DT, fields=("all",), out=tmp_path / "all")
    cube = fs.read_part(fs.read_pvd(tmp_path / "all" / "frames.pvd")[-1][1]["cube"])
    fields = ("von_mises", "cauchy_stress", "strain_energy_density", "rotation", "principal_stretches", "material")
    assert set(cube.cell_data) == set(fields)


@pytest.mark.parametrize("option", ["format", "precision"])
def test_unknown_format_or_precision(option: str, tmp_path: Path) -> None:
    with pytest.raises(fs.InputError, match=f"{option} is 'xdmf'; allowed are"):
        fs.simulate(cube_scene(), out=tmp_path / "run", **{option: "xdmf"})
    assert not (tmp_path / "run").exists()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that fork")
@pytest.mark.parametrize("format", ["pvd", "vtkhdf"])
def test_a_run_killed_at_any_time_leaves_all_frames_but_the_last(format: str, tmp_path: Path) -> None:
    """A run whose frames are written as fast as they can be."""
    if format == "vtkhdf":
        pytest.importorskip("h5py")
    for delay in (0.0, 0.021, 0.13):
        folder = tmp_path / f"run{delay}"

        def run(folder: Path = folder) -> None:
            fs.simulate(cube_scene(duration=60.0), out=folder, format=format)

        def begun(steps: Path = folder / "steps.csv") -> bool:
            return steps.exists() and len(steps.read_text().splitlines()) >= 8

        assert killed_after(delay, run, begun)
        series = fs.open_frames(folder)
        rows = (folder / "steps.csv").read_text().splitlines()[1:]
        assert len(series.times) >= max(7, len(rows))  # the frame of a step is written before its row; one more at the start
        np.testing.assert_allclose(series.times, DT * np.arange(len(series.times)), atol=1e-9)
        for number in (0, len(series.times) - 1):
            cube = series.read(number, "cube")
            assert cube.n_points == 27 and np.isfinite(np.asarray(cube.points)).all() and "von_mises" in cube.cell_data
            assert series.read(number, "contacts").n_points >= 0


# ------------------------------------------------------------------ how a run ends


def test_not_converged(tmp_path: Path) -> None:
    run = fs.simulate(cube_scene(), max_iterations=1, out=tmp_path / "run")
    assert run.status == info(tmp_path / "run")["status"] == "not converged"
    assert f"{STEPS} of {STEPS} steps" in run.message and "raise max_iterations" in run.message
    assert run.steps["converged"].sum() == 0 and info(tmp_path / "run")["health"]["unconverged_steps"] == STEPS
    assert_readable(tmp_path / "run", STEPS)


@pytest.fixture(params=["SIGINT", "SIGTERM", "SIGHUP"])
def number(request: pytest.FixtureRequest) -> Iterator[int]:
    """A signal that asks to end, which is put back to what it was."""
    asked = getattr(signal, request.param)
    before = signal.getsignal(asked)
    yield asked
    signal.signal(asked, before)


def test_an_interrupt_ends_after_the_step(number: int, tmp_path: Path) -> None:
    def mine(*_: object) -> None:
        raise AssertionError("the handler of the caller is not called")

    signal.signal(number, mine)
    run = fs.simulate(cube_scene(), out=tmp_path / "run", on_step=stop_at(2, lambda: os.kill(os.getpid(), number)))
    assert run.status == info(tmp_path / "run")["status"] == "interrupted"
    assert run.message == f"Interrupted after step 2 of {STEPS}; all steps so far are recorded."
    assert_readable(tmp_path / "run", 2)
    assert signal.getsignal(number) is mine


@pytest.mark.parametrize("number", ["SIGTERM", "SIGHUP"], indirect=True)
def test_a_script_that_is_asked_to_end_ends_when_all_is_written(number: int, tmp_path: Path) -> None:
    signal.signal(number, signal.SIG_DFL)
    with pytest.raises(SystemExit) as ended:
        fs.simulate(cube_scene(), out=tmp_path / "run", on_step=stop_at(2, lambda: os.kill(os.getpid(), number)))
    assert ended.value.code == 128 + number and info(tmp_path / "run")["status"] == "interrupted"
    assert_readable(tmp_path / "run", 2)


def test_a_signal_that_is_ignored_stays_ignored(number: int) -> None:
    signal.signal(number, signal.SIG_IGN)
    run = fs.simulate(cube_scene(), on_step=stop_at(2, lambda: os.kill(os.getpid(), number)))
    assert run.status == "converged" and signal.getsignal(number) == signal.SIG_IGN


def test_an_interrupt_in_the_last_step_changes_nothing() -> None:
    run = fs.simulate(cube_scene(), on_step=stop_at(STEPS, lambda: os.kill(os.getpid(), signal.SIGINT)))
    assert run.status == "converged"


def test_a_second_interrupt_ends_at_once_and_leaves_what_there_is(tmp_path: Path) -> None:
    def twice() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        fs.simulate(cube_scene(), out=tmp_path / "run", on_step=stop_at(2, twice))
    assert info(tmp_path / "run")["status"] == "interrupted"
    assert_readable(tmp_path / "run", 2)


def test_numbers_that_are_none_end_as_failed(tmp_path: Path) -> None:
    run = fs.simulate(cube_scene(load=huge_load), out=tmp_path / "run")
    assert run.status == info(tmp_path / "run")["status"] == "failed"
    assert run.message.startswith("Step 2 at 0.0200 s failed: ") and info(tmp_path / "run")["message"] == run.message
    assert_readable(tmp_path / "run", 1)
    assert np.all(np.isfinite(run.steps["kinetic_energy_J"]))
    assert "failed" in run.summary()


def test_failed_at_the_first_step_has_empty_tables() -> None:
    run = fs.simulate(cube_scene(load=lambda t: (1e307, 0.0, 0.0)), max_halvings=0)
    assert run.status == "failed" and run.steps["step"].shape == (0,) and run.sensors["floor"].force.shape == (0, 3)
    health, status = run.summary().splitlines()
    assert status == f"status             failed: {run.message}"
    assert health.startswith("health             wrong: the step failed")
    assert run.verdict == "wrong"


def test_an_exception_leaves_complete_tables_and_says_so(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="the disk melted"):
        fs.simulate(cube_scene(), out=tmp_path / "run", on_step=stop_at(3, fail))
    assert info(tmp_path / "run")["status"] == "failed"
    assert info(tmp_path / "run")["message"] == "Stopped after step 3 by RuntimeError: the disk melted"
    assert_readable(tmp_path / "run", 3)


# ------------------------------------------------------------------ the old run


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A run folder with something of the user's in it."""
    fs.simulate(cube_scene(), out=tmp_path / "run", duration=DT)
    (tmp_path / "run" / "notes.txt").write_text("mine")
    return tmp_path / "run"


def beside(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.parent.iterdir())


def test_a_run_is_never_replaced_unasked(old: Path) -> None:
    with pytest.raises(fs.InputError, match=r"run exists; choose another by --out, or replace it by --overwrite .*overwrite=T"):
        fs.simulate(cube_scene(), out=old)
    assert (old / "notes.txt").read_text() == "mine" and beside(old) == ["run"]


def test_an_empty_folder_is_taken_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as tempfile makes, or a container mounts; also the one that one is in."""
    inode = os.stat(tmp_path).st_ino
    monkeypatch.chdir(tmp_path)
    fs.simulate(cube_scene(), out=".")
    assert_readable(tmp_path, STEPS)
    assert os.stat(tmp_path).st_ino == inode


def test_an_empty_folder_stays_where_the_run_does_not_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "empty"
    folder.mkdir()
    monkeypatch.setattr("femsim.run.simulate.Recorder", fail)
    with pytest.raises(RuntimeError):
        fs.simulate(cube_scene(), out=folder)
    assert folder.is_dir() and not list(folder.iterdir())


def test_an_empty_folder_that_another_run_has_just_taken_is_left_to_it(tmp_path: Path) -> None:
    """Between the moment when it holds the folder and its first file."""
    folder = tmp_path / "run"
    folder.mkdir()
    inode = folder.stat().st_ino
    with hold_folder(folder), pytest.raises(fs.InputError, match="another process is writing into the run folder"):
        fs.simulate(cube_scene(), out=folder)
    assert folder.stat().st_ino == inode


def test_two_runs_do_not_take_one_empty_folder(tmp_path: Path) -> None:
    with fs.Simulation(cube_scene(), out=tmp_path) as first:
        with pytest.raises(fs.InputError, match="is writing into the run folder"):
            fs.simulate(cube_scene(), out=tmp_path)
        first.step()
    assert_readable(tmp_path, 1)


def test_overwrite_replaces_the_whole_folder(old: Path) -> None:
    fs.simulate(cube_scene(), out=old, overwrite=True)
    assert not (old / "notes.txt").exists() and beside(old) == ["run"]
    assert_readable(old, STEPS)


def test_the_old_run_is_there_until_the_new_one_is_complete(old: Path) -> None:
    seen = []
    fs.simulate(
        cube_scene(), out=old, overwrite=True,
        on_step=lambda stepper, report: seen.append((old.parent / ".run.replaced" / "notes.txt").read_text()),
    )  # fmt: skip
    assert seen == ["mine"] * STEPS and beside(old) == ["run"]


@pytest.mark.parametrize(
    "options", [{"fps": 0.0}, {"fields": ("x",)}, {"scene_path": "no_such.py"}, {"solver": "x"}, {"dt": -1.0}]
)
def test_a_run_that_cannot_start_leaves_the_old_one_in_place(options: dict[str, object], old: Path) -> None:
    with pytest.raises(ValueError, match=r"\."):
        fs.simulate(cube_scene(), out=old, overwrite=True, **options)  # type: ignore[arg-type]
    assert (old / "notes.txt").read_text() == "mine" and beside(old) == ["run"]
    assert info(old)["status"] == "converged"
    with pytest.raises(ValueError, match=r"\."):
        fs.simulate(cube_scene(), out=old.parent / "new", **options)  # type: ignore[arg-type]
    assert beside(old) == ["run"]


def test_a_run_that_breaks_off_leaves_the_old_one_beside_it(old: Path) -> None:
    with pytest.raises(RuntimeError) as caught:
        fs.simulate(cube_scene(), out=old, overwrite=True, on_step=stop_at(2, fail))
    kept = old.parent / ".run.replaced"
    assert caught.value.__notes__ == [f"The run that it was to replace is kept in {kept}."]
    assert (kept / "notes.txt").read_text() == "mine" and info(kept)["status"] == "converged"
    assert info(old)["status"] == "failed" and str(kept) in info(old)["message"]
    # and the next one that does not complete does not lose it either
    run = fs.simulate(cube_scene(load=huge_load), out=old, overwrite=True)
    assert run.status == "failed" and run.message.endswith(f"is kept in {kept}-2.")
    assert (kept / "notes.txt").read_text() == "mine"
    # the first that is complete takes the place of all
    fs.simulate(cube_scene(), out=old, overwrite=True)
    assert beside(old) == ["run"]


def test_an_interrupted_run_leaves_the_old_one_beside_it(old: Path) -> None:
    on_step = stop_at(1, lambda: os.kill(os.getpid(), signal.SIGINT))
    run = fs.simulate(cube_scene(), out=old, overwrite=True, on_step=on_step)
    kept = old.parent / ".run.replaced"
    assert run.status == "interrupted" and run.message.endswith(f"The run that it was to replace is kept in {kept}.")
    assert (kept / "notes.txt").read_text() == "mine"


def test_a_run_can_be_repeated_from_its_own_copy_of_the_scene(tmp_path: Path) -> None:
    path = scene_file(tmp_path)
    folder = tmp_path / "run"
    fs.simulate(fs.load_scene(path), out=folder, scene_path=path)
    copy = folder / "scene.py"
    fs.simulate(fs.load_scene(copy), out=folder, scene_path=copy, overwrite=True)
    assert copy.read_bytes() == path.read_bytes()


@pytest.mark.parametrize("format", ["pvd", "vtkhdf"])
def test_frames_have_the_times_of_the_tables(tmp_path: Path, format: str) -> None:
    """Times are sums of steps: the third frame was at 0.30000000000000004 s."""
    if format == "vtkhdf":
        pytest.importorskip("h5py")
    scene = fs.Scene("box", dt=0.1, duration=0.3)
    scene.add_rigid("box", fs.Box((0.1, 0.1, 0.1)), mass=1.0)
    fs.simulate(scene, out=tmp_path / "run", format=format)
    assert list(fs.open_frames(tmp_path / "run").times) == [0.0, 0.1, 0.2, 0.3]


def test_rows_in_memory_take_the_room_of_their_numbers() -> None:
    """As numbers of Python they took 1.4 kB a step even where nothing but one cube was read."""
    writer, rows, columns = TableWriter(None, [f"c{k}" for k in range(40)]), 3000, 40
    tracemalloc.start()
    for n in range(rows):
        writer.add([n, *(float(n + k) for k in range(1, columns))])
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < 1.3 * 8 * rows * columns  # it grows by an eighth at a time
    assert np.array_equal(writer.rows, np.arange(rows)[:, None] + np.arange(columns)) and writer.last[0] == rows - 1
    again = TableWriter(None, writer.columns, writer.rows)
    assert again.last == writer.last and np.array_equal(again.table()["c7"], np.arange(rows) + 7.0)


@pytest.mark.parametrize("change", ["removed", "saved"])
def test_a_table_that_another_program_changed_is_whole_at_the_end(change: str, tmp_path: Path) -> None:
    """Rows went to the file that was no more there, and the run said "converged"."""
    folder, short = tmp_path / "run", b"step\r\n1\r\n"

    def meddle(stepper: Any, report: Any) -> None:
        for table in ("steps.csv", "sensors.csv"):
            if report.step == 2:
                (folder / table).unlink()
                if change == "saved":  # as editors do
                    (folder / table).write_bytes(short)

    run = fs.simulate(cube_scene(), out=folder, quiet=True, on_step=meddle)
    again = fs.load_run(folder)
    assert len(again.steps["step"]) == len(run.steps["step"]) == STEPS
    np.testing.assert_allclose(again.sensors["floor"].force, run.sensors["floor"].force, rtol=1e-8)


def test_tables_are_not_written_into_a_folder_of_the_same_name(tmp_path: Path) -> None:
    """Whoever moves a running run away may have begun another one in its place."""
    folder = tmp_path / "run"

    def move(stepper: Any, report: Any) -> None:
        if report.step == 2:
            folder.rename(tmp_path / "moved")
            folder.mkdir()
            (folder / "steps.csv").write_text("mine")

    with suppress(OSError):
        fs.simulate(cube_scene(), out=folder, quiet=True, on_step=move, fps=1.0)
    assert (folder / "steps.csv").read_text() == "mine"


def test_a_folder_that_is_no_run_is_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.tex").write_text("years of work")
    with pytest.raises(fs.InputError, match=r"thesis is not a run \(it has no run.json\), so it is not replaced"):
        fs.simulate(cube_scene(), out=tmp_path / "thesis", overwrite=True)
    (tmp_path / "file").write_text("text")
    with pytest.raises(fs.InputError, match="is not a run"):
        fs.simulate(cube_scene(), out=tmp_path / "file", overwrite=True)
    assert (tmp_path / "thesis" / "chapter.tex").exists() and (tmp_path / "file").read_text() == "text"


def test_the_folder_that_one_is_in_is_not_replaced(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(old)
    for out in (".", "..", str(old)):
        with pytest.raises(fs.InputError, match="is the one you are in; choose another"):
            fs.simulate(cube_scene(), out=out, overwrite=True)
    assert (old / "notes.txt").exists()


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(fs.InputError, match=r"file/run cannot be written \(Not a directory\); choose another by --out"):
        fs.simulate(cube_scene(), out=tmp_path / "file" / "run")


def test_a_linked_run_is_replaced_by_a_folder_and_its_target_stays(old: Path) -> None:
    link = old.parent / "latest"
    link.symlink_to(old, target_is_directory=True)
    fs.simulate(cube_scene(), out=link, overwrite=True)
    assert not link.is_symlink() and (old / "notes.txt").read_text() == "mine" and beside(old) == ["latest", "run"]

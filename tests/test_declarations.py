"""What is declared once: columns of steps.csv, kinds of sensors, fields of the frames; all who show them say the same."""

from __future__ import annotations

import csv
import importlib.util
import inspect
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from small_scene import cube_scene

import femsim as fs
from contact import make_solver
from femsim.model.bodies.outputs import Marker, OutputDefaults
from femsim.model.fields import FRAME_FIELDS, field_help
from femsim.run import columns, sensors
from femsim.run.columns import STEP_COLUMNS, StepColumn
from femsim.run.frames import DEFAULT_FIELDS, FIELDS
from femsim.run.recorder import Recorder
from femsim.run.result import SERIES
from femsim.run.sensors import READERS, Reader
from femsim.scene import sensor_kinds
from femsim.scene.sensor_kinds import POSITION, SENSOR_KINDS, WRENCH, SensorColumn, SensorKind, names
from femsim.step.advance import take_step
from femsim.step.report import StepReport
from femsim.step.state import State
from femsim.step.stepper import Stepper
from viz import plots, stage

DOCS = Path(fs.__file__).resolve().parent.parent / "docs"
#: How a unit is written at the end of a column's name.
ENDINGS = {"N m": "Nm", "m^2": "m2", "m^3": "m3", "m/s": "mps", "kg m/s": "kgmps", "rad/s": "radps"}
ENDINGS |= {u: u for u in ("m", "s", "N", "Pa", "J", "rad")}


def make_tables() -> ModuleType:
    """The script that writes the tables of the docs."""
    path = DOCS / "make_tables.py"
    if not path.is_file():
        pytest.skip("the docs are not here (they come with the repository)")
    spec = importlib.util.spec_from_file_location("make_tables", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_tables_of_the_docs_are_those_of_the_code() -> None:
    tables = make_tables()
    assert [path.name for path in tables.TABLES] == ["outputs.md", "commands.md"]
    for path, of in tables.TABLES.items():
        page = path.read_text(encoding="utf-8")
        assert tables.filled(page, of) == page, "run python docs/make_tables.py"
    with pytest.raises(ValueError, match="the page lacks '<!-- columns of steps"):
        tables.filled("# An empty page", tables.TABLES[DOCS / "outputs.md"])


def test_names_end_in_their_units() -> None:
    declared = [(c.name, c.unit) for c in STEP_COLUMNS if c.unit not in ("1", "ms")]
    declared += [(f"x_{c.name}", c.unit) for kind in SENSOR_KINDS.values() for c in kind.columns if c.unit != "1"]
    for name, unit in declared:
        assert name.rpartition("_")[2] == ENDINGS[unit], name
    assert all(c.name.startswith("ms_") for c in STEP_COLUMNS if c.unit == "ms")
    assert len({c.name for c in STEP_COLUMNS}) == len(STEP_COLUMNS)


def test_every_kind_of_sensor_has_a_reader_a_series_and_its_name_in_the_help() -> None:
    assert set(READERS) == set(SENSOR_KINDS)
    assert {kind.series for kind in SENSOR_KINDS.values()} == set(SERIES) <= set(fs.Run.__dataclass_fields__)
    options = set(inspect.signature(fs.Scene.sensor).parameters)
    assert {limit for kind in SENSOR_KINDS.values() for limit in kind.limits} <= options
    said = inspect.getdoc(fs.Scene.sensor) or ""
    assert [kind for kind in SENSOR_KINDS if f'"{kind}"' not in said] == []


def test_plots_draw_declared_columns_and_know_wrenches_and_positions() -> None:
    assert set(plots.STEP_COLUMNS) <= {c.name for c in STEP_COLUMNS}
    grouped = {c.name for kind in SENSOR_KINDS.values() for c in kind.columns if plots.GROUPED.search(f"s_{c.name}")}
    assert grouped == {*names(WRENCH), *names(POSITION)}


def test_pictures_and_help_know_the_fields() -> None:
    for field in FRAME_FIELDS:
        unit = stage.legend(field.name, 0.0)[1]
        assert unit.replace("³", "^3") == field.unit or field.name == "radius", field.name
        assert field.always or re.search(rf"\b{field.name}\b", field_help())
    assert set(DEFAULT_FIELDS) < set(FIELDS) and "radius" not in FIELDS
    assert FIELDS[:3] == ("velocity", "contact_force", "displacement") and "rotation" not in DEFAULT_FIELDS


class SpeedReader(Reader):
    """Speed of the centre of mass."""

    def read(self, report: StepReport) -> Sequence[float]:
        return [float(np.linalg.norm(self.body.momentum(self.q, self.v)) / self.body.mass)]


def test_a_kind_of_sensor_is_added_by_a_declaration_and_a_reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kind = SensorKind((SensorColumn("speed_mps", "m/s"),), "speed of the centre of mass", refusal="{part!r} stands still.")
    monkeypatch.setitem(SENSOR_KINDS, "speed", kind)
    monkeypatch.setitem(READERS, "speed", SpeedReader)
    monkeypatch.setattr(OutputDefaults, "sensor_kinds", lambda self, link: frozenset({"speed"}))
    scene = cube_scene()
    scene.sensor("fast", "cube", kind="speed")
    with pytest.raises(fs.InputError, match="sensor wall: 'floor' stands still"):
        scene.sensor("wall", "floor", kind="speed")
    with pytest.raises(fs.InputError, match="a reading is of forces and torques; kind 'speed' has none"):
        scene.sensor("wall", "cube", kind="speed", reading=fs.Reading())
    run = fs.simulate(scene, out=tmp_path / "run")
    with (tmp_path / "run" / "sensors.csv").open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    assert header[-1] == "fast_speed_mps"
    values = run.gauges["fast"].values["speed_mps"]
    np.testing.assert_allclose([float(row[-1]) for row in rows], values, rtol=1e-9)
    np.testing.assert_allclose(values, run.table()["fast_speed_mps"])
    momentum = np.linalg.norm([run.steps[f"momentum_{axis}_kgmps"] for axis in "xy"], axis=0)
    assert momentum[0] > 0.0 and (values >= momentum / scene.body("cube").mass - 1e-12).all()
    assert "| `speed` | `NAME_speed_mps` | speed of the centre of mass |" in sensor_kinds.sensor_table()


def test_a_column_is_added_by_one_entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    heat = StepColumn("heat_J", "J", "friction heat", lambda report, ms: 2.0 * report.friction_loss)
    monkeypatch.setattr(columns, "STEP_COLUMNS", (*STEP_COLUMNS, heat))
    run = fs.simulate(cube_scene(), duration=0.015, out=tmp_path / "run")
    header = (tmp_path / "run" / "steps.csv").read_text(encoding="utf-8").splitlines()[0]
    assert header.endswith(f",{STEP_COLUMNS[-1].name},heat_J")
    np.testing.assert_array_equal(run.steps["heat_J"], 2.0 * run.steps["friction_loss_J"])
    assert "| `heat_J` | friction heat |" in columns.step_table()


class Cloud(OutputDefaults):
    """Three loose particles: a body of nodes that says nothing of how it is drawn or read."""

    name, kind, what = "cloud", "nodes", "cloud of particles"

    def initial_q(self) -> np.ndarray:
        return np.arange(9.0)


def test_a_body_of_nodes_is_drawn_and_marked_without_saying_how() -> None:
    cloud, q = Cloud(), np.arange(9.0) + 0.5
    drawing = cloud.drawing(0)
    assert drawing is not None and drawing.kind == "points" and drawing.points.shape == (3, 3)
    frame = cloud.frame(q, np.ones(9), np.full(9, 2.0), ("displacement", "velocity", "tension"))
    assert set(frame.point_data) == {"displacement", "velocity"} and not frame.cell_data
    np.testing.assert_array_equal(frame.point_data["displacement"], np.full((3, 3), 0.5))
    np.testing.assert_array_equal(cloud.marker_position(q, cloud.marker("sensor m", 0, 1, None)), [3.5, 4.5, 5.5])
    np.testing.assert_array_equal(cloud.marker_position(q, Marker(0, (0, 2), (0.5, 0.5))), [3.5, 4.5, 5.5])
    for call, words in (
        (lambda: cloud.marker("sensor m", 0, 3, None), "sensor m: node 3 of 'cloud'; allowed are 0 to 2"),
        (lambda: cloud.marker("sensor m", 0, None, np.zeros(3)), "'at' places a marker on a soft body"),
        (lambda: cloud.hold_frame(0, np.zeros(7), 0.1), "a cloud of particles carries no frame, for a joint or the end of a rod"),
        (lambda: cloud.held_end(0), "has no ends"),
        (lambda: cloud.link_momentum(q, q, 0), "has no links"),
        (lambda: cloud.link_pose(q, 0), "has no rigid parts"),
    ):
        with pytest.raises(fs.InputError, match=words):
            call()


def test_a_part_that_nothing_draws_is_refused(tmp_path: Path) -> None:
    scene = fs.Scene("bare", duration=0.02, theta=1.0)
    scene.add_rigid("box", fs.Box((0.01, 0.01, 0.01)), mass=0.1)
    scene.parts[0].visual = None
    with pytest.raises(fs.InputError, match="part 'box' cannot be drawn"):
        fs.simulate(scene, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_halved_steps_join_as_declared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns of a step in parts against those of the parts: the last, the sum or the worst."""
    parts: list[list[StepReport]] = [[]]
    take = Stepper.step

    def watched(stepper: Stepper, *, whole: bool = True, pushing: bool = True) -> StepReport:
        report = take(stepper, whole=whole, pushing=pushing)
        parts[-1].append(report)
        return report

    def next_step(stepper: Stepper, report: StepReport) -> None:
        reports.append(report)
        parts.append([])

    class Hasty:
        """Says of long steps that they did not converge."""

        description = "planted"

        def __init__(self) -> None:
            self._solver = make_solver("exact")

        def solve(self, problem: Any, warm_start: Any = None) -> Any:
            solution = self._solver.solve(problem, warm_start)
            return replace(solution, status="stopped at the limit", message="Planted.") if problem.dt > 0.007 else solution

    reports: list[StepReport] = []
    monkeypatch.setattr(Stepper, "step", watched)
    monkeypatch.setattr("femsim.run.simulate.make_solver", lambda name, **chosen: Hasty())
    fs.simulate(cube_scene(), on_step=next_step)
    ms = dict.fromkeys(("assemble", "detect", "solve", "measure", "record"), 0.0)
    assert reports[0].parts and all(len(report.parts) == 2 for report in reports)
    for report, (_, *taken) in zip(reports, parts, strict=False):
        for column in STEP_COLUMNS:
            values = [column.read(part, ms) for part in taken]
            worst = min(values) if column.name == "converged" else max(values)
            wanted = {"end": values[-1], "sum": sum(values), "worst": worst}[column.joins]
            assert column.read(report, ms) == pytest.approx(wanted, rel=1e-12), column.name


def remembering_scene() -> fs.Scene:
    """Each sensor that carries something from step to step, and one whose points are those of the start, on a box that slides."""
    scene = cube_scene()
    scene.sensor("noisy", "floor", reading=fs.Reading(lowpass=20.0, rate=40.0, noise=(0.1, 0.01), seed=4))
    scene.sensor("slid", "cube", kind="slip")
    hand = scene.add_gripper("hand", [fs.Finger("one", fs.Box((0.01, 0.01, 0.01)), (0.02, 0, 0), (1, 0, 0))], position=(1, 0, 1))
    scene.drive(hand, lambda t: (np.array([0.0, 0.0, t * t]), np.zeros(3)))
    scene.sensor("joint", "hand.one", kind="joint")
    scene.add_rigid("crate", fs.Box((0.01, 0.01, 0.01)), mass=0.1, position=(-0.2, 0, 0.01), velocity=(-1, 0, 0))
    scene.sensor("edge", "crate", where=lambda x: x[:, 0] > -0.2)
    return scene


def exact_stepper(scene: fs.Scene) -> Stepper:
    """With a solver that remembers nothing, so that equal states give equal bits."""
    return Stepper(scene, make_solver("exact", tolerance=1e-10, lag=False))


def read_steps(recorder: Recorder, count: int) -> list[list[float]]:
    """Rows of sensors.csv of the next steps."""
    return [recorder.sensors.row(take_step(recorder.stepper, 1)) for _ in range(count)]


def test_a_state_carries_what_sensors_remember(tmp_path: Path) -> None:
    """Saved after five steps and restored, before or after the sensors are made, or where it was: the same rows, bit by bit."""
    stepper = exact_stepper(remembering_scene())
    recorder = Recorder(stepper, None)
    begun, first = stepper.state, read_steps(recorder, 5)
    halfway = stepper.state
    halfway.save(tmp_path / "state.npz")
    carried = {"slid/slip", "slid/friction", "joint/momentum", *(f"noisy_measured/{x}" for x in ("filter", "noise", "held"))}
    assert carried <= halfway.sensors.keys() == begun.sensors.keys()
    kept = halfway.copy()
    rows = read_steps(recorder, 5)
    assert kept == halfway and not np.array_equal(
        stepper.state.sensors["noisy_measured/noise"], kept.sensors["noisy_measured/noise"]
    )
    names = sensors.sensor_columns(stepper.scene)
    assert all(rows[-1][names.index(name)] != 0.0 for name in ("slid_slip_m", "joint_fz_N", "noisy_measured_fz_N", "edge_fz_N"))
    for restored_first in (True, False):
        fresh = exact_stepper(remembering_scene())
        if restored_first:
            fresh.restore(State.load(tmp_path / "state.npz"))
        again = Recorder(fresh, None)
        if not restored_first:
            fresh.restore(State.load(tmp_path / "state.npz"))
        assert read_steps(again, 5) == rows and fresh.state == stepper.state
    stepper.restore(begun)
    assert read_steps(recorder, 5) == first and stepper.state == halfway


def test_a_sensor_that_a_state_knows_nothing_of_starts_there() -> None:
    """Sums from 0, no momentum of before, noise from its seed, and samples at the times at which they would have stood."""
    stepper = exact_stepper(remembering_scene())
    whole = read_steps(Recorder(stepper, None), 5)
    state = replace(stepper.state, sensors={})
    recorder = Recorder(stepper, None)
    expected = read_steps(recorder, 5)
    fresh = exact_stepper(remembering_scene())
    fresh.restore(state)
    rows = read_steps(Recorder(fresh, None), 5)
    stepper.restore(state)
    assert read_steps(recorder, 5) == rows
    names = sensors.sensor_columns(fresh.scene)
    column = {name: np.array([[row[k] for row in table] for table in (whole, expected, rows)]) for k, name in enumerate(names)}
    assert np.array_equal(column["joint_fz_N"][2], column["joint_fz_N"][1])
    np.testing.assert_allclose(column["slid_slip_m"][2], column["slid_slip_m"][1] - column["slid_slip_m"][0, -1], atol=1e-15)
    _, shown, late = column["noisy_measured_fz_N"]  # samples at 80 and 100 ms, and the late one at once
    np.testing.assert_array_equal(np.diff(late) != 0.0, [False, True, False, True])
    np.testing.assert_array_equal(np.diff(shown) != 0.0, [False, True, False, True])
    assert not np.array_equal(late, shown)

"""A run that is read from its folder: it is what the simulation returned; what is no run or damaged is said in words."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_scene import cube_scene

import femsim as fs
from femsim.run.result import SERIES, series_of
from femsim.scene.sensor_kinds import SENSOR_KINDS, SensorSpec


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> fs.Run:
    return fs.simulate(cube_scene(), out=tmp_path_factory.mktemp("stored") / "run")


@pytest.fixture
def folder(done: fs.Run, tmp_path: Path) -> Path:
    assert done.folder is not None
    return shutil.copytree(done.folder, tmp_path / "run")


def change(folder: Path, **values: Any) -> None:
    info = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps(info | values))


def test_a_run_from_its_folder_is_what_the_simulation_returned(done: fs.Run) -> None:
    assert done.folder is not None
    run = fs.load_run(str(done.folder))
    assert (run.status, run.message, run.folder, run.name, run.verdict) == (
        done.status, done.message, done.folder, done.name, done.verdict,
    )  # fmt: skip
    assert run.reasons == done.reasons and run.info["notes"] == done.info["notes"]
    table, before = run.table(), done.table()
    assert list(table) == list(before)
    for name, values in table.items():
        np.testing.assert_allclose(values, before[name], rtol=1e-9, err_msg=name)
    assert sum(len(getattr(done, group)) for group in SERIES) > 3
    for group in SERIES:
        for name, series in getattr(done, group).items():
            assert type(getattr(run, group)[name]) is type(series)
    assert run.summary() == done.summary() and len(run.plot().pictures) > 0
    with pytest.raises(fs.InputError, match=r"was read from .*; simulate the scene again"):
        run.stepper  # noqa: B018
    assert done.stepper.state.step == len(done.steps["step"])


def test_the_header_alone_tells_which_sensors_there_are(folder: Path) -> None:
    """Sensors of all kinds in any order, with names that look like columns."""
    time = np.loadtxt(folder / "steps.csv", delimiter=",", skiprows=1, usecols=1)
    rng = np.random.default_rng(7)
    for _ in range(20):
        order = rng.permutation(list(SENSOR_KINDS))
        endings = ("", "_x_m", "_fx", "_gap_m", "_force_N", "_contacts", " 2")
        specs = [SensorSpec(f"s{k}{rng.choice(endings)}", "cube", str(kind)) for k, kind in enumerate(order)]
        columns = [f"{spec.name}_{column.name}" for spec in specs for column in SENSOR_KINDS[spec.kind].columns]
        table = {"time_s": time} | {column: float(k) + time for k, column in enumerate(columns)}
        rows = zip(*table.values(), strict=True)
        lines = [",".join(table), *(",".join(map(repr, map(float, row))) for row in rows)]
        (folder / "sensors.csv").write_text("\n".join(lines))
        run, wanted = fs.load_run(folder), series_of(specs, table)
        for group in SERIES:
            found = getattr(run, group)
            assert list(found) == list(wanted[group])
            for name, series in found.items():
                for column, values in series.by_column().items():
                    np.testing.assert_array_equal(values, wanted[group][name].by_column()[column])


def test_a_run_that_goes_on_or_was_killed_is_read_as_far_as_it_is_written(folder: Path) -> None:
    lines = (folder / "sensors.csv").read_text().splitlines(keepends=True)
    (folder / "sensors.csv").write_text("".join(lines[:-1]) + lines[-1][:20])  # a line that is being written
    change(folder, status="running", message="", process=None)
    run = fs.load_run(folder)
    assert run.status == "interrupted" and run.message.startswith("The run goes on")
    assert len(run.steps["time_s"]) == len(run.sensors["cube"].time) == len(lines) - 2 > 1
    np.testing.assert_array_equal(run.steps["time_s"], run.sensors["cube"].time)
    change(folder, process={"pid": 2**22 + 1, "host": "gone", "step": 3, "heartbeat": "2020-01-01T00:00:00+00:00"})
    run = fs.load_run(folder)
    assert run.status == "interrupted" and run.message.startswith("killed at step 4 of 4")


def test_what_is_no_run_or_damaged_is_said(folder: Path) -> None:
    with pytest.raises(fs.InputError, match=r"does not exist; did you mean .*run"):
        fs.load_run(folder.with_name("runn"))
    with pytest.raises(fs.InputError, match=r"steps\.csv is a file of the run .*; give that folder"):
        fs.load_run(folder / "steps.csv")
    with pytest.raises(fs.InputError, match=r"has no run\.json"):
        fs.load_run(folder / "frames")
    header = (folder / "steps.csv").read_text().splitlines()[0]
    (folder / "steps.csv").write_text(header + "\n")
    with pytest.raises(fs.VizError, match=r"steps\.csv has no rows"):
        fs.load_run(folder)
    for text in ("[1]", '{"health": 3}'):
        (folder / "run.json").write_text(text)
        with pytest.raises(fs.InputError, match=r"run\.json is not that of a run"):
            fs.load_run(folder)
    (folder / "run.json").write_text("{")
    with pytest.raises(fs.InputError, match=r"run\.json cannot be read"):
        fs.load_run(folder)

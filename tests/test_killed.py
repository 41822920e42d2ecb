"""What a kill leaves: frames that VTK's own reader opens, tables of whole rows, a run that says that it was killed; `repair`."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from killed_frames import seen_by_vtk
from killed_runs import cube_run, killed_after, killed_at
from small_scene import scene_file

import femsim as fs
from femsim.run.folder import remove_halves
from femsim.run.recorder import Recorder, TableWriter

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that fork")
#: Kills of each kind; by FEMSIM_KILLS=100 as often as it takes to meet rare moments (which gave no fault, nor 20 resumed runs).
KILLS = int(os.environ.get("FEMSIM_KILLS", "3"))
KINDS = [("pvd", None), ("pvd", ("all",)), ("vtkhdf", None), ("vtkhdf", ("all",))]
LONG = 100000


@pytest.fixture
def cube(tmp_path: Path) -> Path:
    return scene_file(tmp_path)


def assert_whole_rows(path: Path) -> int:
    """All rows of a table are whole; how many there are."""
    header, *rows = path.read_bytes().splitlines(keepends=True)
    assert all(row.endswith(b"\r\n") and row.count(b",") == header.count(b",") for row in [header, *rows])
    return len(rows)


def assert_vtk_reads(folder: Path) -> int:
    """VTK's reader opens the file of all parts and each part, and finds in each as many steps as it says; how many in all."""
    seen = seen_by_vtk(folder)
    whole = seen.pop("frames")
    assert whole["steps"] == max(len(whole["times"]), 1) and set(seen) == {"cube", "floor", "contacts"}
    for name, part in seen.items():
        assert part["steps"] == max(len(part["times"]), 1) >= whole["steps"], name
        np.testing.assert_allclose(part["times"], 0.01 * np.arange(len(part["times"])), atol=1e-9)
        assert {tuple(counts) for counts in part["fields"]} == {tuple(part["fields"][0])}, name
    assert {tuple(counts) for counts in seen["cube"]["points"]} == {(27,)}
    return int(whole["steps"])


@pytest.mark.parametrize(("format", "fields"), KINDS)
def test_a_run_killed_at_any_moment(format: str, fields: tuple[str, ...] | None, cube: Path, tmp_path: Path) -> None:
    if format == "vtkhdf":
        pytest.importorskip("h5py")
    random = np.random.default_rng(len(format) + 10 * (fields is None))
    for number in range(KILLS):
        folder = tmp_path / f"run{number}"
        run = cube_run(cube, folder, LONG, format=format, fields=fields, checkpoint_every=None)

        def begun(folder: Path = folder) -> bool:
            return (folder / f"frames.{format}").exists() and len(list((folder / "frames").iterdir())) >= 3

        assert killed_after(random.uniform(0.0, 0.6), run, begun)
        rows = [assert_whole_rows(folder / name) for name in ("steps.csv", "sensors.csv")]
        frames = fs.open_frames(folder) if format == "vtkhdf" or fs.read_pvd(folder / "frames.pvd") else None
        if frames is not None:
            np.testing.assert_allclose(frames.times, 0.01 * np.arange(len(frames.times)), atol=1e-9)
            for one in (0, len(frames.times) // 2, len(frames.times) - 1):
                data = frames.read(one, "cube")
                assert data.n_points == 27 and np.isfinite(np.asarray(data.points)).all()
                assert abs(np.asarray(data.points)).max() > 0.009, "no frame is lost in the middle"
        if format == "vtkhdf":
            assert_vtk_reads(folder)
        count = len(frames.times) if frames is not None else 0
        assert max(rows) < max(count, 1)  # the frame of a step is written before its row, and one before the first step
        done = fs.repair(folder)
        assert done[-1].startswith("run.json: Killed at step ") and fs.repair(folder) == []
        if format == "vtkhdf":
            assert assert_vtk_reads(folder) == count
        shutil.rmtree(folder)


class Lazy:
    """A thread of frames that is as late as it can be: it writes a frame when somebody waits for it."""

    def __init__(self, background: bool) -> None:
        self.work: Callable[[], None] | None = None

    @property
    def settled(self) -> bool:
        return self.work is None

    busy = property(lambda self: self.work is not None)

    def wait(self) -> None:
        work, self.work = self.work, None
        if work is not None:
            work()

    def start(self, work: Callable[[], None]) -> None:
        self.wait()
        self.work = work

    def close(self) -> None:
        self.wait()


@pytest.mark.parametrize(("seconds", "late"), [(0.1, 3), (2.0, 0)])
@pytest.mark.parametrize("format", ["pvd", "vtkhdf"])
def test_no_row_comes_before_the_frame_of_its_step(
    format: str, seconds: float, late: int, cube: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whenever rows are written, so at any moment of a kill; they come though a frame is always in writing."""
    if format == "vtkhdf":
        pytest.importorskip("h5py")
    monkeypatch.setattr("viz.vtk_series.Worker", Lazy)
    monkeypatch.setattr("viz.vtk_hdf.Worker", Lazy)
    now, folder, write, seen = [0.0], tmp_path / "run", TableWriter.flush, {"steps": 0, "sensors": 0}

    def clock() -> float:
        now[0] += seconds
        return now[0]

    def flush(table: TableWriter) -> None:
        write(table)
        if table.path is not None and (count := assert_whole_rows(table.path)):
            assert count < len(fs.open_frames(folder).times), "the first frame is that of the start"
            seen[table.path.stem] = count

    def look(stepper: object, report: Any) -> None:
        assert min(seen.values()) >= report.step - late

    monkeypatch.setattr(Recorder, "clock", staticmethod(clock))
    monkeypatch.setattr(TableWriter, "flush", flush)
    cube_run(cube, folder, 12, format=format)(on_step=look)
    assert seen == {"steps": 12, "sensors": 12}


def test_a_run_that_goes_on_opens_in_vtk(cube: Path, tmp_path: Path) -> None:
    pytest.importorskip("h5py")
    looked: list[int] = []

    def look(stepper: object, report: object) -> None:
        looked.append(0)
        if len(looked) in (3, 17):
            assert_vtk_reads(tmp_path / "run")

    cube_run(cube, tmp_path / "run", 20, format="vtkhdf", fields=("all",))(on_step=look)
    assert len(looked) == 20 and seen_by_vtk(tmp_path / "run")["frames"]["steps"] == 21


def test_parts_that_differ_by_a_step_are_mended(cube: Path, tmp_path: Path) -> None:
    """As femsim left them before; one part cannot be read at all."""
    h5py = pytest.importorskip("h5py")
    folder = tmp_path / "run"
    cube_run(cube, folder, 6, format="vtkhdf", fields=("all",))()
    with h5py.File(folder / "frames" / "cube.vtkhdf", "r+") as file:
        file["VTKHDF/Steps"].attrs["NSteps"] = np.int64(5)
    before = fs.open_frames(folder).read(3, "cube")
    (half := folder / ".comparison.99999999.tmp").mkdir()  # of a comparison that was killed
    (half / "report.html").write_text("half")
    assert fs.repair(folder) == [f"{half.name}: half a folder, removed.", "frames.vtkhdf: 3 parts of 5 frames each."]
    assert_vtk_reads(folder)
    after = fs.open_frames(folder)
    assert len(after.times) == 5 and np.array_equal(after.read(3, "cube").points, before.points)
    assert set(after.read(3, "cube").cell_data) == set(before.cell_data)
    (folder / "frames" / "floor.vtkhdf").write_bytes(b"no HDF5")
    (folder / "frames.vtkhdf").unlink()
    (done, count) = fs.repair(folder)
    assert "floor.vtkhdf cannot be read" in done and count == "frames.vtkhdf: 2 parts of 5 frames each."
    assert fs.open_frames(folder).parts == ["contacts", "cube"]


def test_what_a_process_writes_just_now_stays(tmp_path: Path) -> None:
    """A comparison of another process beside a run that is resumed lost its folder, and ended in an error."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as writer:
        (half := tmp_path / f".comparison.{writer.pid}.tmp").mkdir()
        for name in (".overlay.99999999.tmp.png", "report.html"):
            (half / name).write_text("half")
        (own := tmp_path / f".run.{os.getpid()}.tmp.json").touch()  # this process resumes, and so writes nothing now
        assert remove_halves(tmp_path) == [f"{own.name}: half a file, removed."] and len(list(half.iterdir())) == 2
        os.utime(half, (1e9, 1e9))  # the number of a process that ended long ago
        assert f"{half.name}: half a folder, removed." in remove_halves(tmp_path) and not half.exists()
        (half := tmp_path / f".comparison.{writer.pid}.tmp").mkdir()
        writer.communicate(b"\n")
    assert remove_halves(tmp_path) == [f"{half.name}: half a folder, removed."]


def test_an_index_that_lists_missing_files_is_mended(cube: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    cube_run(cube, folder, 6)()
    (folder / "frames" / "cube_000006.vtu").write_bytes(b"")
    with (folder / "steps.csv").open("ab") as file:
        file.write(b"7,0.07,3")
    (folder / ".run.99999999.tmp.json").touch()
    assert fs.repair(folder) == [
        ".run.99999999.tmp.json: half a file, removed.",
        "steps.csv: 1 rows that were not whole taken away.",
        "frames.pvd: 1 frames taken out whose files are missing or empty.",
    ]
    assert len(fs.open_frames(folder).times) == 6 and fs.repair(folder) == []
    series = folder / "frames" / "cube.vtu.series"
    written = series.read_bytes()
    assert [entry["time"] for entry in json.loads(written)["files"]] == fs.open_frames(folder).times  # as in the index
    series.write_bytes(written[: written.index(b",\n")] + b"\n]}\n")  # a kill leaves it up to 25 frames late
    assert fs.repair(folder) == ["frames: 1 .series files listed other frames than frames.pvd."]
    assert series.read_bytes() == written and fs.repair(folder) == []


def test_a_repair_writes_into_the_folder_of_frames_alone(cube: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    cube_run(cube, folder, 2)()
    index = folder / "frames.pvd"
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file() and path != index}
    listed = index.read_bytes().replace(b'name="cube"', b'name="../../out"')
    index.write_bytes(listed.replace(b"frames/cube_", b"frames/../../out_"))
    for number in range(3):
        (tmp_path / f"out_{number:06d}.vtu").write_bytes(b"x")
    fs.repair(folder)
    assert not list(tmp_path.glob("*.series"))
    assert all(path.read_bytes() == text for path, text in before.items())


def test_a_killed_run_says_so_everywhere(cube: Path, tmp_path: Path, call: Callable[..., tuple[int, str, str]]) -> None:
    folder = tmp_path / "run"
    killed_at(27, cube_run(cube, folder, 40))
    log = tmp_path / "log.csv"
    log.write_text("time_s,fx_N,fy_N,fz_N\n" + "".join(f"{0.01 * k},0,0,{0.07 + 0.01 * k}\n" for k in range(1, 26)))
    card = tmp_path / "card.toml"
    card.write_text("[time]\noffset = 0.0\n")
    words = f"killed at step 25 of 40: process {json.loads((folder / 'run.json').read_text())['process']['pid']} on "
    for command in (["plot", "--formats", "svg"], ["report", "--stills", "0"]):
        status, _, err = call(command[0], str(folder), *command[1:])
        assert status == 0 and words in err and "is gone; femsim resume goes on with it" in err, err
    assert words in (folder / "report.html").read_text() and ">killed<" in (folder / "report.html").read_text()
    status, out, err = call("compare", str(folder), str(log), "--sensor", "cube", "--card", str(card))
    assert words in out + err, out + err
    status, out, _ = call("repair", str(folder))
    assert status == 0 and f"run.json: Killed {words[7:]}" in out
    assert json.loads((folder / "run.json").read_text())["status"] == "failed"
    assert fs.resume(folder).status == "converged"


def test_the_vtk_reader_of_these_tests_sees_what_is_wrong(cube: Path, tmp_path: Path) -> None:
    """More times than steps, as a kill left them before: VTK writes beyond its memory, or parts differ."""
    h5py = pytest.importorskip("h5py")
    folder = tmp_path / "run"
    cube_run(cube, folder, 6, format="vtkhdf")()
    with h5py.File(folder / "frames" / "cube.vtkhdf", "r+") as file:
        file["VTKHDF/Steps"].attrs["NSteps"] = np.int64(3)
    with pytest.raises(AssertionError):
        assert_vtk_reads(folder)

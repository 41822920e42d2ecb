"""The time series on disk: what is written is what is read, and a killed run stays readable."""

import itertools
import json
import os
import re
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from killed_runs import killed_after
from small_frames import TET_POINTS, TETS, TRIANGLES, add_small_parts, make_frame, make_series

from viz import PartFrame, PvdSeries, VizError, files as writing, read_part, read_pvd, vtk_series
from viz.background import Worker
from viz.vtk_series import index_lines

ROOT = Path(__file__).parent.parent


def check_frame(files: dict[str, Path], expected: dict[str, PartFrame], points_dtype: str = "float64") -> None:
    assert list(files) == list(expected)
    for name, frame in expected.items():
        data = read_part(files[name])
        np.testing.assert_array_equal(np.asarray(data.points), np.asarray(frame.points, dtype=points_dtype))
        for stored, given in ((data.point_data, frame.point_data), (data.cell_data, frame.cell_data)):
            assert set(stored.keys()) == set(given)
            for field, values in given.items():
                kind = np.float32 if np.asarray(values).dtype.kind == "f" else np.int32
                np.testing.assert_array_equal(np.asarray(stored[field]), np.asarray(values).astype(kind))


@pytest.mark.parametrize("points_dtype", ["float64", "float32"])
def test_round_trip(tmp_path, points_dtype):
    times = [0.0, 0.01, 0.1 + 0.2, 7.0, 1e3]
    with make_series(tmp_path, points_dtype=points_dtype) as series:
        for number, t in enumerate(times):
            series.write_frame(t, make_frame(number))
        assert series.n_frames == 5
    frames = read_pvd(tmp_path / "frames.pvd")
    assert [t for t, _ in frames] == times  # to the last bit
    for number, (_, files) in enumerate(frames):
        assert files["ball"] == tmp_path / "frames" / f"ball_{number:06d}.vtu"
        assert files["contacts"] == tmp_path / "frames" / f"contacts_{number:06d}.vtp"
        check_frame(files, make_frame(number), points_dtype)
    ball, pad, contacts = (read_part(frames[2][1][name]) for name in ("ball", "pad", "contacts"))
    np.testing.assert_array_equal(ball.cells_dict[10], TETS)
    np.testing.assert_array_equal(pad.regular_faces, TRIANGLES)
    assert contacts.n_verts == 2
    assert not list(tmp_path.rglob("*.tmp*"))


def test_files_are_lz4_appended_raw(tmp_path):
    with make_series(tmp_path) as series:
        series.write_frame(0.0, make_frame(0))
    for file in (tmp_path / "frames").glob("*.vt?"):
        content = file.read_bytes()
        assert b'compressor="vtkLZ4DataCompressor"' in content
        assert b'<AppendedData encoding="raw">' in content


def test_the_ranges_in_the_header_are_those_of_the_frame(tmp_path):
    """ParaView takes its first colour range from RangeMin and RangeMax."""
    with make_series(tmp_path) as series:
        for number in range(3):
            series.write_frame(number, make_frame(number))
    for number, (_, files) in enumerate(read_pvd(tmp_path / "frames.pvd")):
        header = files["ball"].read_bytes().split(b"<AppendedData")[0].decode()
        stress = re.search(r'Name="von_mises".*RangeMin="(\S+)" *RangeMax="(\S+)"', header)
        values = np.asarray(make_frame(number)["ball"].cell_data["von_mises"])
        np.testing.assert_allclose([float(x) for x in stress.groups()], [values.min(), values.max()], rtol=1e-6)


def test_a_frame_does_not_leak_into_the_next_nor_follow_the_callers_array(tmp_path):
    points, contacts = TET_POINTS.copy(), PartFrame(np.zeros((0, 3)))
    with PvdSeries(tmp_path / "frames.pvd", tmp_path / "frames") as series:
        series.add_part("ball", TET_POINTS, TETS, "tetra")
        series.add_part("contacts", None, None, "points")
        for number in range(3):
            points += 1.0
            series.write_frame(number, {"ball": PartFrame(points), "contacts": contacts})
        points += 100.0
    for number, (_, files) in enumerate(read_pvd(tmp_path / "frames.pvd")):
        np.testing.assert_array_equal(read_part(files["ball"]).points, TET_POINTS + number + 1)


def test_index_holds_names_and_part_numbers_and_survives_a_move(tmp_path):
    with make_series(tmp_path / "old") as series:
        series.write_frame(0.5, make_frame(1))
    text = (tmp_path / "old" / "frames.pvd").read_text()
    assert '<DataSet timestep="0.5" group="" part="1" name="pad" file="frames/pad_000000.vtp"/>' in text
    os.rename(tmp_path / "old", tmp_path / "new & <odd>")
    check_frame(read_pvd(tmp_path / "new & <odd>" / "frames.pvd")[0][1], make_frame(1))


@pytest.mark.parametrize("name", ["a \"b\" & <c> 'd'", "&quot;"])
def test_a_folder_and_a_field_may_have_any_name(name, tmp_path):
    frame = make_frame(1)
    frame["ball"].point_data[name] = np.arange(5.0)
    with PvdSeries(tmp_path / "frames.pvd", tmp_path / name) as series:
        add_small_parts(series)
        series.write_frame(0.0, frame)
    check_frame(read_pvd(tmp_path / "frames.pvd")[0][1], frame)
    assert [line[3] for line in index_lines(tmp_path / "frames.pvd")] == [
        f"{name}/{part}" for part in ("ball_000000.vtu", "pad_000000.vtp", "contacts_000000.vtp")
    ]


def test_series_json_lists_each_part(tmp_path):
    with make_series(tmp_path) as series:
        for number in range(3):
            series.write_frame(0.1 * number, make_frame(number))
        early = json.loads((tmp_path / "frames" / "ball.vtu.series").read_text())
        assert [item["name"] for item in early["files"]] == ["ball_000000.vtu"]
    for name in ("ball.vtu.series", "pad.vtp.series", "contacts.vtp.series"):
        content = json.loads((tmp_path / "frames" / name).read_text())
        stem, ending, _ = name.split(".")
        assert content == {
            "file-series-version": "1.0",
            "files": [{"name": f"{stem}_{i:06d}.{ending}", "time": 0.1 * i} for i in range(3)],
        }


def test_index_every_and_close(tmp_path):
    series = make_series(tmp_path, index_every=3)
    listed = []
    for number in range(5):
        series.write_frame(number, make_frame(number))
        listed.append(len(read_pvd(tmp_path / "frames.pvd")))
    assert listed == [0, 0, 3, 3, 3]
    series.close()
    assert len(read_pvd(tmp_path / "frames.pvd")) == 5
    with pytest.raises(VizError, match="closed"):
        series.write_frame(9.0, make_frame(0))


@pytest.mark.parametrize("background", [False, True])
def test_the_indices_of_a_long_series_are_not_rewritten_with_each_frame(tmp_path, monkeypatch, background):
    """They were, at a cost that grew with the square of the frames: of 30000 frames of two parts half of the run was that."""
    clock, written, replace = [0.0], [], vtk_series.replace_file

    def counted(path: str, data: bytes) -> None:
        written.append((Path(path).suffix, len(data)))
        replace(path, data)

    monkeypatch.setattr(vtk_series, "_LONG", 3000)
    monkeypatch.setattr(vtk_series, "replace_file", counted)
    monkeypatch.setattr(PvdSeries, "clock", staticmethod(lambda: clock[0]))
    series = make_series(tmp_path, background=background)
    for number in range(120):
        series.write_frame(number, make_frame(number))
    series.settle()
    listed = len(read_pvd(tmp_path / "frames.pvd"))
    assert 8 < listed < 20, "a short one lists each frame at once"
    assert max(size for suffix, size in written if suffix in (".pvd", ".series")) < 4000
    clock[0] = 1.1
    for number in (120, 121):
        series.write_frame(number, make_frame(number))
    series.settle()
    assert len(read_pvd(tmp_path / "frames.pvd")) == 121, "a second later it lists all"
    assert len(json.loads((tmp_path / "frames" / "ball.vtu.series").read_text())["files"]) == 121
    assert series.written()["frames"] == len(read_pvd(tmp_path / "frames.pvd")) == 122, "also where a checkpoint is written"
    series.write_frame(122.0, make_frame(122))
    series.close()
    assert [time for time, _ in read_pvd(tmp_path / "frames.pvd")] == list(range(123))


def test_a_new_series_never_lists_frames_of_the_old_one(tmp_path):
    with make_series(tmp_path) as series:
        series.write_frame(0.0, make_frame(0))
    make_series(tmp_path)
    assert read_pvd(tmp_path / "frames.pvd") == []


def test_an_error_in_the_run_leaves_all_finished_frames(tmp_path):
    with pytest.raises(RuntimeError), make_series(tmp_path, index_every=100) as series:
        series.write_frame(0.0, make_frame(0))
        series.write_frame(1.0, make_frame(1))
        raise RuntimeError
    assert [t for t, _ in read_pvd(tmp_path / "frames.pvd")] == [0.0, 1.0]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that fork")
def test_kill_at_any_time_leaves_a_readable_index(tmp_path):
    """Kill a writer at five moments: every listed frame must be whole."""

    def write(folder):
        series = make_series(folder)
        for number in itertools.count():
            series.write_frame(number * 0.01, make_frame(number))

    for delay in (0.0, 0.013, 0.031, 0.05, 0.101):
        folder = tmp_path / str(delay)
        assert killed_after(delay, partial(write, folder), (folder / "frames" / "ball_000003.vtu").exists)
        frames = read_pvd(folder / "frames.pvd")
        assert len(frames) >= 3
        assert len(frames) >= len(list((folder / "frames").glob("contacts_*.vtp"))) - 1  # index is up to date
        for number, (t, files) in enumerate(frames):
            assert t == number * 0.01
            if number % 10 == 0 or number == len(frames) - 1:
                check_frame(files, make_frame(number))
        for file in (folder / "frames").glob("[!.]*.series"):  # a name with a dot in front was being written
            assert json.loads(file.read_text())["files"]


def test_data_files_are_complete_before_the_index_names_them(tmp_path, monkeypatch):
    """At each rename of an index, every file it lists is there."""
    replace, seen = os.replace, []

    def watched(source, target):
        if str(target).endswith(".pvd"):
            listed = [file for _, files in read_pvd(Path(source)) for file in files.values()]
            seen.append(len(listed))
            assert all(file.is_file() for file in listed)
        replace(source, target)

    monkeypatch.setattr(writing.os, "replace", watched)
    with make_series(tmp_path) as series:
        for number in range(3):
            series.write_frame(number, make_frame(number))
    assert seen == [0, 3, 6, 9]


@pytest.mark.parametrize("name", ["", "a/b", "../x", "a b", ".hidden", "ä", 'q"', "x" * 101, "a\n", 3])
def test_odd_names_are_refused(tmp_path, name):
    series = PvdSeries(tmp_path / "frames.pvd", tmp_path / "frames")
    with pytest.raises(VizError, match="not allowed"):
        series.add_part(name, TET_POINTS, TETS, "tetra")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("Ball", TET_POINTS, TETS, "tetra"), "'Ball' is taken"),
        (("x", TET_POINTS, TETS, "hexahedron"), "'tetra', 'triangle', 'line' and 'points'"),
        (("x", TET_POINTS, TETS[:, :3], "tetra"), r"shape \(m, 4\)"),
        (("x", TET_POINTS, TETS.astype(float), "tetra"), "integers"),
        (("x", TET_POINTS[:4], TETS, "tetra"), "points 0 to 4; allowed are 0 to 3"),
        (("x", TET_POINTS, -TETS, "tetra"), "points -4 to 0"),
        (("x", TET_POINTS[:, :2], TETS, "tetra"), r"\(n, 3\)"),
        (("x", None, TETS, "tetra"), "both points and cells"),
        (("x", None, TRIANGLES, "points"), "cells=None"),
    ],
)
def test_wrong_parts_are_refused(tmp_path, arguments, message):
    with pytest.raises(VizError, match=message):
        make_series(tmp_path).add_part(*arguments)


def test_wrong_frames_are_refused_and_write_nothing(tmp_path):
    series = make_series(tmp_path)
    series.write_frame(0.0, make_frame(0))
    before = sorted(tmp_path.rglob("*"))
    good = make_frame(1)
    ball = good["ball"]
    wrong = [
        ({k: v for k, v in good.items() if k != "pad"}, r"missing: \['pad'\]"),
        ({**good, "cat": ball}, r"not registered: \['cat'\]"),
        ({**good, "ball": PartFrame(TET_POINTS[:4], ball.point_data, ball.cell_data)}, "has 5 points but"),
        ({**good, "ball": PartFrame(TET_POINTS, {"velocity": np.zeros((4, 3))})}, r"\(5,\) or \(5, k\)"),
        ({**good, "ball": PartFrame(TET_POINTS, {}, {"von_mises": np.zeros(3)})}, r"\(2,\) or \(2, k\)"),
        ({**good, "ball": PartFrame(TET_POINTS, ball.point_data)}, "fields of part 'ball' changed"),
        ({**good, "ball": PartFrame(TET_POINTS, {"velocity": np.array(["a"] * 5)})}, "real numbers"),
        ({**good, "ball": PartFrame(TET_POINTS, {"velocity": np.zeros((5, 3, 3))})}, "has shape"),
    ]
    for parts, message in wrong:
        with pytest.raises(VizError, match=message):
            series.write_frame(1.0, parts)
    for t in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(VizError, match="frame time"):
            series.write_frame(t, good)
    with pytest.raises(VizError, match="after the first frame"):
        series.add_part("late", None, None, "points")
    assert sorted(tmp_path.rglob("*")) == before
    series.write_frame(1.0, good)
    check_frame(read_pvd(tmp_path / "frames.pvd")[1][1], good)


def test_an_unwritable_file_is_an_os_error_and_is_not_listed(tmp_path):
    series = make_series(tmp_path)
    series.write_frame(0.0, make_frame(0))
    (tmp_path / "frames" / "pad_000001.vtp" / "in_the_way").mkdir(parents=True)
    with pytest.raises(OSError):
        series.write_frame(1.0, make_frame(1))
    series.close()
    assert [t for t, _ in read_pvd(tmp_path / "frames.pvd")] == [0.0]


@pytest.mark.parametrize("background", [False, True])
def test_after_a_failed_frame_the_indices_list_the_good_ones(tmp_path, background):
    series = make_series(tmp_path, background=background)
    series.write_frame(0.0, make_frame(0))
    series.flush()
    way = tmp_path / "frames" / "pad_000001.vtp"
    (way / "in_the_way").mkdir(parents=True)
    with pytest.raises(OSError):
        series.write_frame(1.0, make_frame(1))
        series.flush()
    (way / "in_the_way").rmdir()
    way.rmdir()
    series.write_frame(2.0, make_frame(2))
    series.close()
    frames = read_pvd(tmp_path / "frames.pvd")
    assert [t for t, _ in frames] == [0.0, 2.0]
    check_frame(frames[1][1], make_frame(2))
    for file in (tmp_path / "frames").glob("*.series"):
        assert [entry["time"] for entry in json.loads(file.read_text())["files"]] == [0.0, 2.0]


def test_frames_written_behind_are_those_written_at_once(tmp_path):
    """The same bytes, also when the caller changes its arrays meanwhile; an error of the last one comes at the end."""
    for name, background in (("at_once", False), ("behind", True)):
        with make_series(tmp_path / name, background=background) as series:
            for number in range(30):
                frame = make_frame(number)
                series.write_frame(number, frame)
                for part in frame.values():
                    part.points[:] = np.nan
                    for values in (*part.point_data.values(), *part.cell_data.values()):
                        values[...] = 7
    files = [sorted(p.relative_to(tmp_path / n) for p in (tmp_path / n).rglob("*")) for n in ("at_once", "behind")]
    assert files[0] == files[1] and len(files[0]) > 60
    for file in files[0]:
        if (tmp_path / "behind" / file).is_file():
            assert (tmp_path / "behind" / file).read_bytes() == (tmp_path / "at_once" / file).read_bytes(), file
    series = make_series(tmp_path / "last", background=True)
    series.write_frame(0.0, make_frame(0))
    series.flush()
    (tmp_path / "last" / "frames" / "pad_000001.vtp" / "in_the_way").mkdir(parents=True)
    series.write_frame(1.0, make_frame(1))
    with pytest.raises(OSError):
        series.close()
    assert [t for t, _ in read_pvd(tmp_path / "last" / "frames.pvd")] == [0.0]


def test_an_error_behind_comes_with_the_next_piece_of_work():
    worker, done = Worker(True), []
    worker.start(lambda: done.append(1 / 0))
    with pytest.raises(ZeroDivisionError):
        worker.start(lambda: done.append(1))
    worker.start(lambda: done.append(2))
    worker.close()
    assert done == [2] and not worker.busy


def test_wrong_options_and_files_are_refused(tmp_path):
    with pytest.raises(VizError, match="points_dtype"):
        make_series(tmp_path, points_dtype="float16")
    with pytest.raises(VizError, match="index_every"):
        make_series(tmp_path, index_every=0)
    with pytest.raises(VizError, match="does not exist"):
        read_pvd(tmp_path / "none.pvd")
    for content in ("", "<VTKFile type='PolyData'/>", "<VTKFile type='Collection'>"):
        (tmp_path / "bad.pvd").write_text(content)
        with pytest.raises(VizError, match="not a PVD index"):
            read_pvd(tmp_path / "bad.pvd")
    with pytest.raises(VizError, match="does not exist"):
        read_part(tmp_path / "x.vtu")
    with pytest.raises(VizError, match=r"allowed are \.vtu and \.vtp"):
        read_part(tmp_path / "bad.pvd")


def test_importing_viz_is_light():
    code = (
        "import sys, viz; heavy = {'vtk', 'vtkmodules', 'pyvista', 'matplotlib', 'imageio', 'scipy', 'ssl'};"
        "found = heavy & {name.split('.')[0] for name in sys.modules}; assert not found, found"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


def test_writing_imports_neither_pyvista_nor_a_renderer(tmp_path):
    code = (
        "import sys; from pathlib import Path; from small_frames import make_frame, make_series\n"
        "with make_series(Path(sys.argv[1])) as series: series.write_frame(0.0, make_frame(1))\n"
        "found = [name for name in sys.modules if name.startswith(('pyvista', 'vtkmodules.vtkRendering'))]\n"
        "assert not found, found"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")])}
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True, env=environment)


@pytest.mark.parametrize("count", [1, 3, 4, 15, 16, 17, 67, 68, 69, 1000])
@pytest.mark.parametrize("zeros", [False, True])
def test_fields_of_every_length_and_of_zeros_survive(tmp_path, count, zeros):
    """The LZ4 blocks are made by hand: lengths around the limits of their codes, and the short form of zeros."""
    values = np.zeros(count) if zeros else np.random.default_rng(count).standard_normal(count)
    with PvdSeries(tmp_path / "frames.pvd", tmp_path / "frames") as series:
        series.add_part("dots", None, None, "points")
        series.write_frame(0.0, {"dots": PartFrame(np.zeros((count, 3)), {"value": values})})
    found = read_part(read_pvd(tmp_path / "frames.pvd")[0][1]["dots"])
    np.testing.assert_array_equal(found.point_data["value"], values.astype(np.float32))
    assert not np.asarray(found.points).any() and found.n_points == count


@pytest.mark.parametrize("time", ["inf", "-inf", "nan", "1e999", "soon"])
def test_a_time_that_is_no_number_is_refused(time: str, tmp_path: Path) -> None:
    index = tmp_path / "frames.pvd"
    entry = f'<DataSet timestep="{time}" name="a" file="a.vtu"/>'
    index.write_text(f'<?xml version="1.0"?><VTKFile type="Collection"><Collection>{entry}</Collection></VTKFile>')
    with pytest.raises(VizError, match="is not a number"):
        read_pvd(index)


@pytest.mark.parametrize(
    ("name", "number"),
    [("NumberOfPoints", 10**12), ("NumberOfCells", 10**11), ("NumberOfComponents", 10**10), ("NumberOfTuples", 10**11)],
)
def test_a_frame_that_claims_more_than_it_holds_is_refused(name: str, number: int, tmp_path: Path) -> None:
    """Before VTK allocates anything for it."""
    path = tmp_path / "frame.vtu"
    path.write_text(
        '<VTKFile type="UnstructuredGrid" version="1.0" byte_order="LittleEndian"><UnstructuredGrid>'
        f'<Piece NumberOfPoints="1" NumberOfCells="0" {name}="{number}">'
        '<Points><DataArray type="Float64" NumberOfComponents="3" format="ascii">0 0 0</DataArray></Points>'
        "</Piece></UnstructuredGrid></VTKFile>"
    )
    with pytest.raises(VizError, match="cannot hold that"):
        read_part(path)

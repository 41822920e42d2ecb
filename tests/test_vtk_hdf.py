"""The compact format: what is written is what VTK's own reader, pyvista and we read."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from small_frames import TET_POINTS, TETS, TRIANGLES, make_frame

from viz import HdfSeries, PartFrame, PvdSeries, VizError, open_frames

h5py = pytest.importorskip("h5py")
LOOK = "import sys, pathlib, viz; print(len(viz.open_frames(pathlib.Path(sys.argv[1])).times))"
TIMES = [0.0, 0.1 + 0.2, 0.5, 2.25, 7.0]


def frame(number: int) -> dict[str, PartFrame]:
    return make_frame(number) | {"rod": PartFrame(TET_POINTS + number, {"radius": np.full(5, 0.1 * number)})}


def add_parts(series: HdfSeries | PvdSeries) -> None:
    series.add_part("ball", TET_POINTS, TETS, "tetra")
    series.add_part("pad", TET_POINTS[:4], TRIANGLES, "triangle")
    series.add_part("contacts", None, None, "points")
    series.add_part("rod", TET_POINTS, None, "line")


def write(folder: Path, **options: str) -> Path:
    with HdfSeries(folder / "frames.vtkhdf", folder / "frames", **options) as series:
        add_parts(series)
        for number, time in enumerate(TIMES):
            series.write_frame(time, frame(number))
    return folder


def assert_same(found, expected: PartFrame, points_dtype: str = "float64") -> None:
    np.testing.assert_array_equal(np.asarray(found.points), np.asarray(expected.points, dtype=points_dtype))
    for stored, given in ((found.point_data, expected.point_data), (found.cell_data, expected.cell_data)):
        assert set(stored.keys()) == set(given)
        for name, values in given.items():
            kind = np.float32 if np.asarray(values).dtype.kind == "f" else np.int32
            np.testing.assert_array_equal(np.asarray(stored[name]), np.asarray(values).astype(kind))


def assert_cells(found, name: str, number: int) -> None:
    if name == "ball":
        np.testing.assert_array_equal(found.cells_dict[10], TETS)
    elif name == "pad":
        np.testing.assert_array_equal(found.regular_faces, TRIANGLES)
    elif name == "rod":
        assert list(found.lines) == [5, 0, 1, 2, 3, 4]
    else:
        assert found.n_verts == number % 3


@pytest.mark.parametrize("points_dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", ["ball", "pad", "contacts", "rod"])
def test_vtk_reads_every_part_at_every_time(name: str, points_dtype: str, tmp_path: Path) -> None:
    import pyvista
    from vtkmodules.vtkCommonExecutionModel import vtkStreamingDemandDrivenPipeline
    from vtkmodules.vtkIOHDF import vtkHDFReader

    write(tmp_path, points_dtype=points_dtype)
    reader = vtkHDFReader()
    reader.SetFileName(str(tmp_path / "frames" / f"{name}.vtkhdf"))
    reader.UpdateInformation()
    times = reader.GetOutputInformation(0).Get(vtkStreamingDemandDrivenPipeline.TIME_STEPS())
    assert list(times) == TIMES
    for number in (3, 0, 4, 1, 2):
        reader.UpdateTimeStep(TIMES[number])
        found = pyvista.wrap(reader.GetOutputDataObject(0))
        assert_same(found, frame(number)[name], points_dtype)
        assert_cells(found, name, number)


def test_pyvista_opens_the_whole_as_blocks(tmp_path: Path) -> None:
    import pyvista

    blocks = pyvista.read(write(tmp_path) / "frames.vtkhdf")
    assert blocks.keys() == ["ball", "pad", "contacts", "rod"]
    for name, part in frame(0).items():
        assert_same(blocks[name], part)


@pytest.mark.parametrize("format", ["pvd", "vtkhdf"])
def test_open_frames_reads_both_formats(format: str, tmp_path: Path) -> None:
    if format == "vtkhdf":
        write(tmp_path)
    else:
        with PvdSeries(tmp_path / "frames.pvd", tmp_path / "frames") as series:
            add_parts(series)
            for number, time in enumerate(TIMES):
                series.write_frame(time, frame(number))
    found = open_frames(tmp_path)
    assert found.times == TIMES and found.parts == ["ball", "pad", "contacts", "rod"]
    for number in (2, 0, 4):
        for name, part in frame(number).items():
            data = found.read(number, name)
            assert_same(data, part)
            assert_cells(data, name, number)
    with pytest.raises(VizError, match="no part 'cat'"):
        found.read(0, "cat")


def test_a_reader_may_look_while_the_series_is_written(tmp_path: Path) -> None:
    with HdfSeries(tmp_path / "frames.vtkhdf", tmp_path / "frames") as series:
        add_parts(series)
        for number, time in enumerate(TIMES):
            series.write_frame(time, frame(number))
            if number == 2:
                child = subprocess.run([sys.executable, "-c", LOOK, str(tmp_path)], capture_output=True, text=True, check=True)
                assert child.stdout.strip() == "3"


def test_topology_is_stored_once_and_compressed(tmp_path: Path) -> None:
    write(tmp_path)
    with h5py.File(tmp_path / "frames" / "ball.vtkhdf") as file:
        group = file["VTKHDF"]
        assert len(group["Connectivity"]) == 8 and len(group["Types"]) == 2 and len(group["Points"]) == 25
        assert group["Points"].compression == "gzip" and group["Points"].shuffle and group["Points"].chunks == (5, 3)


def test_wrong_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with HdfSeries(tmp_path / "frames.vtkhdf", tmp_path / "frames") as series:
        add_parts(series)
        with pytest.raises(VizError, match="'Assembly' is taken"):
            series.add_part("Assembly", None, None, "points")
        series.write_frame(0.0, frame(0))
        with pytest.raises(VizError, match="frame time"):
            series.write_frame(0.0, frame(1))
        with pytest.raises(VizError, match="missing"):
            series.write_frame(1.0, make_frame(1))
    with pytest.raises(VizError, match="closed"):
        series.write_frame(2.0, frame(1))
    assert open_frames(tmp_path).times == [0.0]
    (tmp_path / "frames" / "pad.vtkhdf").write_bytes(b"")
    with pytest.raises(VizError, match="cannot be read as frames"):
        open_frames(tmp_path)
    with pytest.raises(VizError, match=r"neither frames\.pvd nor frames\.vtkhdf"):
        open_frames(tmp_path / "frames")
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(VizError, match=r"femsim\[hdf\]"):
        HdfSeries(tmp_path / "x.vtkhdf", tmp_path / "x")


def test_rows_that_a_file_only_claims_are_refused(tmp_path: Path) -> None:
    """The points of a part are replaced by 1e12 rows, of which none is stored."""
    write(tmp_path)
    with h5py.File(tmp_path / "frames" / "ball.vtkhdf", "r+") as file:
        group = file["VTKHDF"]
        del group["Points"]
        group.create_dataset("Points", (10**12, 3), chunks=(1024, 3), dtype="f8")
        group["NumberOfPoints"][:] = 10**12
    frames = open_frames(tmp_path)
    assert frames.read(0, "rod").n_points == 5
    with pytest.raises(VizError, match="cannot hold that"):
        frames.read(0, "ball")

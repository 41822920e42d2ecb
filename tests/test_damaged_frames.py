"""Frames that are cut off, damaged or of another layout: read as VTK reads them, or refused by a sentence."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pyvista
from small_frames import TET_POINTS, TETS, add_small_parts, make_frame, make_series
from vtkmodules.vtkIOXML import vtkXMLPolyDataWriter, vtkXMLUnstructuredGridWriter

from viz import HdfSeries, VizError, open_frames, read_part, write_paraview_script
from viz.vtk_xml import XmlPiece

h5py = pytest.importorskip("h5py")
ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def frames(tmp_path: Path) -> Path:
    """Folder of the files of a run with three parts and three frames."""
    with make_series(tmp_path, components={"quaternion": ("w", "x", "y", "z")}) as series:
        for number in range(3):
            frame = make_frame(number)
            frame["ball"].point_data["quaternion"] = np.full((5, 4), 0.5)
            frame["ball"].point_data["zero"] = np.zeros((5, 3))
            series.write_frame(0.1 * number, frame)
    return tmp_path / "frames"


def write_hdf(folder: Path) -> Path:
    with HdfSeries(folder / "frames.vtkhdf", folder / "frames") as series:
        add_small_parts(series)
        for number in range(3):
            series.write_frame(0.1 * number, make_frame(number))
    return folder


def read_all(folder: Path) -> None:
    """Read all parts of all frames, and let VTK walk their cells as it does to draw them."""
    found = open_frames(folder)
    for number in range(len(found.times)):
        for part in found.parts:
            data: Any = found.read(number, part)
            skin = data.extract_surface(algorithm="dataset_surface") if data.IsA("vtkUnstructuredGrid") else data.triangulate()
            assert np.isfinite(skin.bounds).all()


def assert_same(found: Any, expected: Any) -> None:
    assert type(found) is type(expected)
    assert found.points.dtype == expected.points.dtype
    np.testing.assert_array_equal(found.points, expected.points)
    grid = found.IsA("vtkUnstructuredGrid")
    for name in ("cells", "celltypes") if grid else ("verts", "lines", "faces", "strips"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    for ours, theirs in ((found.GetPointData(), expected.GetPointData()), (found.GetCellData(), expected.GetCellData())):
        assert ours.GetNumberOfArrays() == theirs.GetNumberOfArrays()
        for k in range(ours.GetNumberOfArrays()):
            one, other = ours.GetArray(k), theirs.GetArray(k)
            assert one.GetName() == other.GetName()
            assert [one.GetComponentName(c) for c in range(4)] == [other.GetComponentName(c) for c in range(4)]
            np.testing.assert_array_equal(pyvista.convert_array(one), pyvista.convert_array(other))


def test_what_femsim_wrote_is_what_vtk_reads(frames: Path) -> None:
    files = [path for path in frames.iterdir() if path.suffix in (".vtu", ".vtp")]
    assert len(files) == 9
    for path in files:
        assert_same(read_part(path), pyvista.read(path))


@pytest.mark.parametrize("name", ["ball_000001.vtu", "pad_000001.vtp"])
@pytest.mark.parametrize(
    ("mode", "compressor", "encoded"),
    [("Appended", kind, False) for kind in ("None", "ZLib", "LZ4", "LZMA")]  # the first three are unpacked without VTK
    + [("Appended", "LZ4", True), ("Binary", "ZLib", False), ("Ascii", "None", False)],
)
@pytest.mark.parametrize("header", [32, 64])
def test_other_layouts_are_read_as_vtk_reads_them(
    name: str, mode: str, compressor: str, encoded: bool, header: int, frames: Path, tmp_path: Path
) -> None:
    path = tmp_path / f"other{Path(name).suffix}"
    writer: Any = vtkXMLUnstructuredGridWriter() if path.suffix == ".vtu" else vtkXMLPolyDataWriter()
    writer.SetInputData(pyvista.read(frames / name))
    getattr(writer, f"SetDataModeTo{mode}")()
    getattr(writer, f"SetCompressorTypeTo{compressor}")()
    getattr(writer, f"SetHeaderTypeToUInt{header}")()
    writer.SetEncodeAppendedData(encoded)
    writer.SetFileName(str(path))
    assert writer.Write()
    assert_same(read_part(path), pyvista.read(path))


def test_a_block_of_many_is_unpacked(tmp_path: Path) -> None:
    """VTK writes blocks of some kB each; the last one is shorter."""
    grid = pyvista.ImageData(dimensions=(30, 30, 30)).cast_to_unstructured_grid()
    grid.point_data["number"] = np.arange(grid.n_points)
    grid.save(tmp_path / "many.vtu")
    assert_same(read_part(tmp_path / "many.vtu"), pyvista.read(tmp_path / "many.vtu"))


# ---------------------------------------------------------------------- damaged


@pytest.mark.parametrize("name", ["ball_000001.vtu", "pad_000001.vtp", "contacts_000002.vtp"])
def test_a_file_that_is_cut_is_refused(name: str, frames: Path) -> None:
    path, data = frames / name, (frames / name).read_bytes()
    tail = data.rindex(b"\n</AppendedData>")
    for length in [*range(0, tail, 1 + tail // 30), tail - 1]:
        path.write_bytes(data[:length])
        with pytest.raises(VizError, match=f"{name}.*cut off or damaged"):
            read_part(path)


def _tet(cells: list[list[int]], points: np.ndarray = TET_POINTS, **fields: np.ndarray) -> bytes:
    piece = XmlPiece("tetra", np.array(cells, dtype=np.int32), {})
    return piece.content(points, {"point": fields, "cell": {}})


_GOOD = [[0, 1, 2, 3]]
_NAN = np.where(np.arange(15).reshape(5, 3) == 7, np.nan, TET_POINTS)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (_tet([[0, 1, 2, 1_000_000_000]]), "a cell has point 1000000000 of 5"),
        (_tet([[0, 1, 2, -7]]), "a cell has point -7 of 5"),
        (_tet(_GOOD, _NAN), "point 2 is not finite"),
        (_tet(_GOOD, value=np.zeros(4, np.float32)), "where"),
        (_tet([[0, 1, 2]]), "cell 0 has 3 corners"),
        (_tet(_GOOD).replace(b'NumberOfPoints="5"', b'NumberOfPoints="6"'), "120 bytes where 144 should be"),
        (_tet(_GOOD).replace(b'NumberOfCells="1"', b'NumberOfCells="2"'), "should be"),
        (_tet(_GOOD).replace(b'NumberOfPoints="5"', b'NumberOfPoints="99999999999"'), "cannot hold that"),
        (_tet(_GOOD).replace(b'NumberOfPoints="5"', b'NumberOfPoints="-5"'), "its NumberOfPoints is '-5'"),
        (_tet(_GOOD).replace(b'offset="0"', b'offset="900000"'), "unpack_from requires|behind the end"),
        (_tet(_GOOD).replace(b'NumberOfComponents="3"', b'NumberOfComponents="2"'), "should be"),
        (_tet(_GOOD).replace(b"<Points>", b"<Points"), "its header is not XML"),
        (b"<!DOCTYPE a>" + _tet(_GOOD), "VTK cannot read it|cannot be read"),
    ],
)
def test_what_vtk_would_stumble_over_is_refused(content: bytes, words: str, tmp_path: Path) -> None:
    path = tmp_path / "a.vtu"
    path.write_bytes(content)
    with pytest.raises(VizError, match=words):
        read_part(path)


@pytest.mark.parametrize(
    ("kind", "corners", "words"),
    [("line", [0, 1, 99], "point 99 of 5"), ("triangle", [0, 1, 5], "point 5 of 5"), ("points", [9], "point 9 of 5")],
)
def test_lines_faces_and_points_are_checked(kind: str, corners: list[int], words: str, tmp_path: Path) -> None:
    path = tmp_path / "a.vtp"
    path.write_bytes(XmlPiece(kind, np.array([corners], np.int32), {}).content(TET_POINTS, {"point": {}, "cell": {}}))
    with pytest.raises(VizError, match=words):
        read_part(path)


@pytest.mark.parametrize("text", ["0 1 2 77", "0 1 2 -1"])
def test_cells_that_vtk_itself_read_are_checked_too(text: str, tmp_path: Path) -> None:
    path = tmp_path / "a.vtu"
    writer = vtkXMLUnstructuredGridWriter()
    writer.SetInputData(pyvista.UnstructuredGrid({10: TETS[:1]}, TET_POINTS))
    writer.SetDataModeToAscii()
    writer.SetFileName(str(path))
    writer.Write()
    data = path.read_text()
    assert data.count("0 1 2 3") == 1
    path.write_text(data.replace("0 1 2 3", text))
    with pytest.raises(VizError, match=f"has point {text.split()[-1]} of 5"):
        read_part(path)


def test_arrays_that_are_not_packed_are_as_long_as_the_header_says(frames: Path, tmp_path: Path) -> None:
    path, writer = tmp_path / "plain.vtu", vtkXMLUnstructuredGridWriter()
    writer.SetInputData(pyvista.read(frames / "ball_000001.vtu"))
    writer.SetDataModeToAppended()
    writer.SetEncodeAppendedData(False)
    writer.SetCompressorTypeToNone()
    writer.SetFileName(str(path))
    writer.Write()
    data = path.read_bytes()
    size = (len(TET_POINTS) * 3 * 8).to_bytes(4, "little")  # of the points
    path.write_bytes(data.replace(size, (10 * 3 * 8).to_bytes(4, "little")))
    with pytest.raises(VizError, match=r"has 240 bytes where 120 should be|behind the end"):
        read_part(path)
    path.write_bytes(data.replace(b'NumberOfPoints="5"', b'NumberOfPoints="4"'))
    with pytest.raises(VizError, match="should be"):
        read_part(path)


def test_a_packed_block_is_as_long_as_it_says(frames: Path) -> None:
    """The first block of the file is unpacked by VTK, which knows no other length than the one that it is told."""
    path = frames / "ball_000001.vtu"
    data = path.read_bytes()
    place = data.index(b'raw">\n_') + 7
    assert data[place : place + 8] == (1).to_bytes(8, "little")
    length = int.from_bytes(data[place + 24 : place + 32], "little")
    path.write_bytes(data[: place + 24] + (length - 1).to_bytes(8, "little") + data[place + 32 :])
    with pytest.raises(VizError, match="does not unpack to"):
        read_part(path)


# ---------------------------------------------------------------------- VTKHDF


def _set(place: str, value: Any) -> Callable[[Any], None]:
    def change(group: Any) -> None:
        group[place][...] = value

    return change


def _cut_points(group: Any) -> None:
    group["Points"].resize(2, axis=0)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (_set("Connectivity", 99), "a cell has point 99 of 5"),
        (_set("Types", 42), "of kind 42"),
        (_set("Types", 12), "cell 0 has 4 corners"),
        (_set("NumberOfCells", 3), "3 cells with 8 corners"),
        (_set("Points", np.nan), "point 0 is not finite"),
        (_set("Steps/PointOffsets", 10**9), "rows where 1000000000 to"),
        (_set("Steps/PointOffsets", -5), "rows where -5 to"),
        (_cut_points, "has 2 rows where"),
        (_set("Steps/Values", np.inf), "a time is not finite"),
    ],
)
def test_a_damaged_part_of_vtkhdf_is_refused(change: Callable[[Any], None], words: str, tmp_path: Path) -> None:
    write_hdf(tmp_path)
    read_all(tmp_path)
    with h5py.File(tmp_path / "frames" / "ball.vtkhdf", "r+") as file:
        change(file["VTKHDF"])
    with pytest.raises(VizError, match=words):
        read_all(tmp_path)


def test_a_vtkhdf_file_that_is_cut_is_refused(tmp_path: Path) -> None:
    path = write_hdf(tmp_path) / "frames" / "ball.vtkhdf"
    data = path.read_bytes()
    for length in range(0, len(data), 1 + len(data) // 20):
        path.write_bytes(data[:length])
        with pytest.raises(VizError, match=r"ball\.vtkhdf"):
            read_all(tmp_path)


def test_a_link_out_of_the_run_is_not_followed(tmp_path: Path) -> None:
    """Else a run folder of somebody else shows any HDF5 file of the reader's machine."""
    (tmp_path / "run").mkdir()
    write_hdf(tmp_path / "run")
    (tmp_path / "run" / "frames" / "ball.vtkhdf").rename(tmp_path / "ball.vtkhdf")
    with h5py.File(tmp_path / "run" / "frames.vtkhdf", "r+") as file:
        del file["VTKHDF/ball"]
        file["VTKHDF/ball"] = h5py.ExternalLink("../ball.vtkhdf", "/VTKHDF")
    with pytest.raises(VizError, match=r"links \.\./ball\.vtkhdf, which is not in the folder of the run"):
        open_frames(tmp_path / "run")


def test_a_link_inside_a_part_is_not_followed(tmp_path: Path) -> None:
    write_hdf(tmp_path)
    with h5py.File(tmp_path / "frames" / "ball.vtkhdf", "r+") as file:
        del file["VTKHDF/Points"]
        file["VTKHDF/Points"] = h5py.ExternalLink("pad.vtkhdf", "/VTKHDF/Points")
    with pytest.raises(VizError, match=r"ball\.vtkhdf: its VTKHDF/Points is a link to another place"):
        open_frames(tmp_path)


# ---------------------------------------------------------------------- commands


@pytest.mark.parametrize("kind", ["xml", "hdf"])
def test_a_command_ends_as_a_sentence(kind: str, tmp_path: Path) -> None:
    if kind == "hdf":
        path = write_hdf(tmp_path) / "frames" / "ball.vtkhdf"
    else:
        with make_series(tmp_path) as series:
            series.write_frame(0.0, make_frame(0))
        path = tmp_path / "frames" / "ball_000000.vtu"
    write_paraview_script(tmp_path)
    path.write_bytes(path.read_bytes()[:600])
    code = "import sys; from femsim.cli import main; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-c", code, "paraview", str(tmp_path)], capture_output=True, text=True, timeout=300, cwd=ROOT
    )
    assert done.returncode == 2, done.stderr
    assert path.name in done.stderr and done.stderr.startswith("femsim: ") and done.stderr.count("\n") == 1

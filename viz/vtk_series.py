"""Time series for ParaView: a PVD index beside one VTK XML file a part and frame.

The layout (chosen because Debian's ParaView 5.11 opens it with the right times, and a killed run leaves it
readable)::

    frames.pvd                      index: time, part number, part name, file
    frames/NAME_000123.vtu          "tetra" parts
    frames/NAME_000123.vtp          "triangle", "line" and "points" parts
    frames/NAME.vtu.series          an index of one part alone (.vtp.series likewise); up to 25 frames late

Every file is written under a temporary name and then renamed, data files before the index that lists them, so
at any moment each index on disk is complete and lists only complete files. (Nothing is forced to the disk:
this protects against a killed process, not against a power cut.)
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, get_args
from xml.etree import ElementTree
from xml.sax.saxutils import quoteattr

import numpy as np
import numpy.typing as npt

from viz.errors import VizError

if TYPE_CHECKING:
    import pyvista

__all__ = ["PartFrame", "PartKind", "PvdSeries", "read_part", "read_pvd"]

PartKind = Literal["tetra", "triangle", "line", "points"]

_EXTENSION: dict[str, str] = {"tetra": "vtu", "triangle": "vtp", "line": "vtp", "points": "vtp"}
_CORNERS: dict[str, int] = {"tetra": 4, "triangle": 3, "points": 1}
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.\-]{0,99}")
_LZ4_BLOCK = 1 << 18  # bytes; 5 % smaller files than VTK's default of 32 KiB in the same time
_SERIES_EVERY = 25  # frames between two writes of the .series files: each costs as much time as the PVD index

_PVD_HEAD = (
    b'<?xml version="1.0"?>\n'
    b'<VTKFile type="Collection" version="1.0" byte_order="LittleEndian" header_type="UInt64">\n'
    b"<Collection>\n"
)
_PVD_TAIL = b"</Collection>\n</VTKFile>\n"
_SERIES_HEAD = b'{"file-series-version": "1.0", "files": [\n'
_SERIES_TAIL = b"\n]}\n"


@dataclass(frozen=True)
class PartFrame:
    """What one part looks like at one time.

    Attributes
    ----------
    points : ndarray, shape (n, 3)
        Positions [m]. n is fixed by `PvdSeries.add_part`, except for parts of kind "points".
    point_data : mapping of str to ndarray, shape (n,) or (n, k)
        Fields on the points. Floats are stored as float32, integers and booleans as int32.
    cell_data : mapping of str to ndarray, shape (m,) or (m, k)
        Fields on the cells; m = n for parts of kind "points".
    """

    points: npt.ArrayLike
    point_data: Mapping[str, npt.ArrayLike] = field(default_factory=dict)
    cell_data: Mapping[str, npt.ArrayLike] = field(default_factory=dict)


class PvdSeries:
    """Write the time series of several named parts, frame by frame.

    Parameters
    ----------
    pvd_path : Path
        The index file, for instance ``RUN/frames.pvd``. Written empty at once, so that an index of an earlier
        run never lists files of this one.
    frames_dir : Path
        Folder of the data files; created when missing. Stored relative to the index, so a run folder can be
        moved.
    points_dtype : {"float64", "float32"}
        Precision of the stored positions.
    index_every : int
        Rewrite the PVD index every this many frames (and on `close`). 1 = nothing is lost when the process is
        killed.

    Raises
    ------
    VizError
        When an option is outside what is allowed.
    OSError
        When a folder or file cannot be written.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from pathlib import Path
    >>> folder = Path(tempfile.mkdtemp())
    >>> with PvdSeries(folder / "frames.pvd", folder / "frames") as series:
    ...     series.add_part("tet", np.eye(4, 3), [[3, 0, 1, 2]], "tetra")
    ...     series.write_frame(0.0, {"tet": PartFrame(np.eye(4, 3), {"velocity": np.zeros((4, 3))})})
    >>> [time for time, files in read_pvd(folder / "frames.pvd")]
    [0.0]
    """

    def __init__(
        self,
        pvd_path: Path,
        frames_dir: Path,
        *,
        points_dtype: Literal["float64", "float32"] = "float64",
        index_every: int = 1,
    ) -> None:
        if points_dtype not in ("float64", "float32"):
            raise VizError(f"points_dtype is {points_dtype!r}; allowed are 'float64' and 'float32'.")
        if index_every < 1:
            raise VizError(f"index_every is {index_every}; it must be 1 or more (frames between two index writes).")
        self.pvd_path = Path(pvd_path)
        self.frames_dir = Path(frames_dir)
        self._points_dtype: np.dtype[Any] = np.dtype(points_dtype)
        self._index_every = int(index_every)
        self._parts: dict[str, _Part] = {}
        self._n_frames = 0
        self._last_time = -np.inf
        self._pending = 0
        self._closed = False
        self.frames_dir.mkdir(parents=True, exist_ok=True)
        self._prefix = os.path.relpath(self.frames_dir, self.pvd_path.parent).replace(os.sep, "/") + "/"
        self._index = bytearray()
        _replace_file(self.pvd_path, _PVD_HEAD + _PVD_TAIL)

    @property
    def n_frames(self) -> int:
        """Number of frames written so far."""
        return self._n_frames

    def add_part(self, name: str, points: npt.ArrayLike | None, cells: npt.ArrayLike | None, kind: PartKind) -> None:
        """Register a part with its topology, before the first frame.

        Parameters
        ----------
        name : str
            Letters, digits, ``_``, ``-`` and ``.``, starting with a letter or digit; it becomes part of the
            file names and the block name in ParaView.
        points : array-like, shape (n, 3), or None
            Positions [m]; only their number is used. None for kind "points", whose number may change in every
            frame.
        cells : array-like of int, shape (m, 4) or (m, 3), or None
            Corners of each cell as point numbers from 0; None for kind "points" (every point is a vertex) and for kind "line"
            (one line through all points, in their order).
        kind : {"tetra", "triangle", "line", "points"}
            What the cells are.

        Raises
        ------
        VizError
            On a name that is not allowed or taken, a wrong shape, a corner outside the points, or after the
            first frame.
        """
        self._require_open()
        if self._n_frames:
            raise VizError(f"part {name!r} was added after the first frame; add all parts before write_frame.")
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise VizError(
                f"the part name {name!r} is not allowed; use 1 to 100 letters, digits, '_', '-' or '.', "
                "starting with "
                "a letter or digit (it becomes a file name)."
            )
        if name.casefold() in (other.casefold() for other in self._parts):
            raise VizError(f"the part name {name!r} is taken (upper and lower case count as equal); choose another.")
        if kind not in get_args(PartKind):
            raise VizError(f"part {name!r} has kind {kind!r}; allowed are 'tetra', 'triangle', 'line' and 'points'.")
        if kind in ("points", "line") and cells is not None and np.size(cells):
            raise VizError(f"part {name!r} of kind {kind!r} was given cells; pass cells=None, its points say all.")
        if kind == "points":
            part = _Part(name, kind, 0, None, self._points_dtype)
        elif kind == "line":
            n_points = 0 if points is None else _checked_points(name, points).shape[0]
            if n_points < 2:
                raise VizError(f"part {name!r} of kind 'line' has {n_points} points; a line needs at least two.")
            part = _Part(name, kind, n_points, np.arange(n_points, dtype=np.int32)[None], self._points_dtype)
        else:
            if points is None or cells is None:
                raise VizError(f"part {name!r} of kind {kind!r} needs both points and cells.")
            n_points = _checked_points(name, points).shape[0]
            part = _Part(name, kind, n_points, _checked_cells(name, kind, cells, n_points), self._points_dtype)
        self._parts[name] = part

    def write_frame(self, time: float, parts: Mapping[str, PartFrame]) -> None:
        """Write one file a part, then the index.

        Everything is checked before the first file is touched. The first frame settles which fields a part
        has; later frames must bring the same ones (ParaView shows only fields that every frame has).

        Parameters
        ----------
        time : float
            Time of the frame [s]; finite, later than that of the frame before.
        parts : mapping of str to PartFrame
            One entry for each registered part.

        Raises
        ------
        VizError
            On a part that is missing or unknown, a wrong array shape, a changed set of fields, or a wrong
            time.
        OSError
            When a file cannot be written (disk full, folder gone).
        """
        self._require_open()
        time = float(time)
        if not (np.isfinite(time) and time > self._last_time):
            raise VizError(f"frame time {time} s is not allowed; it must be finite and later than {self._last_time} s.")
        if not self._parts:
            raise VizError("write_frame was called before any add_part; register the parts first.")
        if parts.keys() != self._parts.keys():
            missing, unknown = (
                sorted(self._parts.keys() - parts.keys()),
                sorted(parts.keys() - self._parts.keys()),
            )
            raise VizError(f"a frame needs every registered part once; missing: {missing}, not registered: {unknown}.")
        for name, part in self._parts.items():
            part.check(parts[name])
        files = {name: f"{name}_{self._n_frames:06d}.{part.extension}" for name, part in self._parts.items()}
        for name, part in self._parts.items():
            part.fill(parts[name])
            part.write(self.frames_dir / files[name])
        for number, (name, part) in enumerate(self._parts.items()):
            part.append_to_index(time, files[name])
            self._index += (
                f'<DataSet timestep="{time!r}" group="" part="{number}" name="{name}" '
                f"file={quoteattr(self._prefix + files[name])}/>\n"
            ).encode()
        self._n_frames += 1
        self._last_time = time
        self._pending += 1
        if self._pending >= self._index_every:
            self.flush()
        if self._n_frames % _SERIES_EVERY == 1:
            self._write_series()

    def flush(self) -> None:
        """Write the PVD index now."""
        if self._pending:
            _replace_file(self.pvd_path, _PVD_HEAD, self._index, _PVD_TAIL)
            self._pending = 0

    def close(self) -> None:
        """Write the indices and end the series; a second call does nothing."""
        if not self._closed:
            self.flush()
            self._write_series()
            self._closed = True

    def __enter__(self) -> Self:
        """Return the series itself."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Close the series, also after an error, so that all finished frames are listed."""
        self.close()

    def _write_series(self) -> None:
        for part in self._parts.values():
            _replace_file(self._series_path(part), _SERIES_HEAD, part.index, _SERIES_TAIL)

    def _series_path(self, part: _Part) -> Path:
        return self.frames_dir / f"{part.name}.{part.extension}.series"

    def _require_open(self) -> None:
        if self._closed:
            raise VizError(f"the series {self.pvd_path} is closed; make a new PvdSeries.")


class _Part:
    """One part: its VTK data set and writer, made once, and the buffers that each frame is copied into."""

    def __init__(
        self,
        name: str,
        kind: PartKind,
        n_points: int,
        cells: npt.NDArray[np.int32] | None,
        dtype: np.dtype[Any],
    ) -> None:
        from vtkmodules.vtkCommonCore import vtkPoints
        from vtkmodules.vtkCommonDataModel import VTK_TETRA, vtkPolyData, vtkUnstructuredGrid
        from vtkmodules.vtkIOXML import vtkXMLPolyDataWriter, vtkXMLUnstructuredGridWriter

        self.name = name
        self.kind = kind
        self.extension = _EXTENSION[kind]
        self.n_points = n_points
        self.n_cells = 0 if cells is None else cells.shape[0]
        self.index = bytearray()
        self._dtype = dtype
        self._fields: dict[str, dict[str, tuple[int, ...]]] | None = None  # point/cell -> name -> trailing shape
        self._buffers: dict[tuple[str, str], tuple[npt.NDArray[Any], Any]] = {}
        self._points = vtkPoints()
        self._data: Any
        self._writer: Any
        if kind == "tetra":
            assert cells is not None
            self._data = vtkUnstructuredGrid()
            self._data.SetCells(VTK_TETRA, _cell_array(cells))
            self._writer = vtkXMLUnstructuredGridWriter()
        else:
            self._data = vtkPolyData()
            if cells is not None and kind == "line":
                self._data.SetLines(_cell_array(cells))
            elif cells is not None:
                self._data.SetPolys(_cell_array(cells))
            self._writer = vtkXMLPolyDataWriter()
        self._data.SetPoints(self._points)
        self._writer.SetInputData(self._data)
        self._writer.SetDataModeToAppended()
        self._writer.EncodeAppendedDataOff()
        self._writer.SetCompressorTypeToLZ4()
        self._writer.SetBlockSize(_LZ4_BLOCK)

    def check(self, frame: PartFrame) -> None:
        """Raise VizError unless the frame fits this part; nothing is changed."""
        points = _checked_points(self.name, frame.points)
        if self.kind != "points" and points.shape[0] != self.n_points:
            raise VizError(
                f"part {self.name!r} has {self.n_points} points but the frame brings {points.shape[0]}; only "
                "parts of "
                "kind 'points' may change their number."
            )
        n_cells = points.shape[0] if self.kind == "points" else self.n_cells
        fields = {
            "point": _checked_fields(self.name, "point", frame.point_data, points.shape[0]),
            "cell": _checked_fields(self.name, "cell", frame.cell_data, n_cells),
        }
        if self._fields is not None and fields != self._fields:
            raise VizError(
                f"the fields of part {self.name!r} changed from {_listed(self._fields)} to "
                f"{_listed(fields)}; every "
                "frame must bring the same fields with the same number of components."
            )

    def fill(self, frame: PartFrame) -> None:
        """Update the VTK data set given a checked frame."""
        points = np.asarray(frame.points)
        if self.kind == "points" and points.shape[0] != self.n_points:
            self._buffers.clear()
            self.n_points = self.n_cells = points.shape[0]
        if self.kind == "points" and not self._buffers:
            self._data.SetVerts(_cell_array(np.arange(self.n_points, dtype=np.int32)[:, None]))
        self._points.SetData(self._updated("points", "", points, self._dtype))
        self._points.Modified()
        fields: dict[str, dict[str, tuple[int, ...]]] = {"point": {}, "cell": {}}
        for place, mapping, target in (
            ("point", frame.point_data, self._data.GetPointData()),
            ("cell", frame.cell_data, self._data.GetCellData()),
        ):
            for name, values in mapping.items():
                array = np.asarray(values)
                stored = np.dtype(np.float32 if array.dtype.kind == "f" else np.int32)
                target.AddArray(self._updated(place, name, array, stored))  # replaces the array of that name
                fields[place][name] = array.shape[1:]
        self._fields = fields

    def _updated(self, place: str, name: str, values: npt.NDArray[Any], dtype: np.dtype[Any]) -> Any:
        """Copy values into the buffer that VTK looks at, made on first use; return the VTK array."""
        known = self._buffers.get((place, name))
        if known is None or known[0].dtype != dtype:
            buffer = np.empty(values.shape, dtype)
            array = _vtk_array(buffer, deep=False)
            if values.ndim == 2:  # also right for zero rows
                array.SetNumberOfComponents(values.shape[1])
            array.SetName(name or "Points")
            known = self._buffers[place, name] = (buffer, array)
        np.copyto(known[0], values, casting="unsafe")
        known[1].Modified()
        return known[1]

    def write(self, path: Path) -> None:
        """Write the data set to a temporary file and rename it."""
        temporary = path.with_name(f".{path.name}.tmp")
        self._writer.SetFileName(str(temporary))
        if self._writer.Write() != 1:
            temporary.unlink(missing_ok=True)
            raise OSError(f"{path} could not be written; is the disk full or the folder gone?")
        os.replace(temporary, path)

    def append_to_index(self, time: float, file_name: str) -> None:
        """Add a line to the index of this part."""
        line = json.dumps({"name": file_name, "time": time}).encode()
        self.index += b",\n" + line if self.index else line


def read_pvd(path: Path) -> list[tuple[float, dict[str, Path]]]:
    """Read a PVD index.

    Parameters
    ----------
    path : Path
        The .pvd file.

    Returns
    -------
    list of (float, dict of str to Path)
        For each time [s], in rising order, the file of each part by name (``part0`` and so on where a foreign
        index has no names).

    Raises
    ------
    VizError
        When the file is missing or not a PVD index.
    """
    path = Path(path)
    if not path.is_file():
        raise VizError(f"{path} does not exist; give the .pvd index of a finished or running simulation.")
    try:
        root = ElementTree.parse(path).getroot()
    except ElementTree.ParseError as error:
        raise VizError(f"{path} is not a PVD index: {error}.") from error
    if root.tag != "VTKFile" or root.get("type") != "Collection":
        raise VizError(f"{path} is not a PVD index; it must hold <VTKFile type='Collection'>.")
    frames: dict[float, dict[str, Path]] = {}
    for item in root.iter("DataSet"):
        file = item.get("file")
        try:
            time = float(item.get("timestep", ""))
        except ValueError:
            raise VizError(f"{path}: timestep {item.get('timestep')!r} of {file!r} is not a number.") from None
        if not file:
            raise VizError(f"{path}: the DataSet at timestep {time} names no file.")
        name = item.get("name") or f"part{item.get('part', '0')}"
        frames.setdefault(time, {})[name] = path.parent / file
    return sorted(frames.items())


def read_part(file: Path) -> pyvista.DataSet:
    """Read one .vtu or .vtp file.

    Parameters
    ----------
    file : Path
        A data file that `read_pvd` listed.

    Returns
    -------
    pyvista.UnstructuredGrid or pyvista.PolyData
        Points [m], cells and fields, as written.

    Raises
    ------
    VizError
        When the file is missing or of another kind.
    """
    import pyvista

    file = Path(file)
    if file.suffix not in (".vtu", ".vtp"):
        raise VizError(f"{file} cannot be read as a part; allowed are .vtu and .vtp files.")
    if not file.is_file():
        raise VizError(f"{file} does not exist although an index lists it; was it moved away from its .pvd file?")
    data = pyvista.read(file)
    if not isinstance(data, pyvista.DataSet):
        raise VizError(f"{file} does not hold a single data set.")
    return data


def _checked_points(name: str, points: npt.ArrayLike) -> npt.NDArray[Any]:
    array = np.asarray(points)
    if array.ndim != 2 or array.shape[1] != 3 or array.dtype.kind not in "fiu":
        raise VizError(
            f"the points of part {name!r} have shape {array.shape} and type {array.dtype}; they must be (n, 3) numbers."
        )
    return array


def _checked_cells(name: str, kind: PartKind, cells: npt.ArrayLike, n_points: int) -> npt.NDArray[np.int32]:
    array = np.asarray(cells)
    corners = _CORNERS[kind]
    if array.ndim != 2 or array.shape[1] != corners or array.dtype.kind not in "iu":
        raise VizError(
            f"the cells of part {name!r} have shape {array.shape} and type {array.dtype}; kind {kind!r} "
            "needs integers "
            f"of shape (m, {corners})."
        )
    if array.size and (array.min() < 0 or array.max() >= n_points):
        raise VizError(f"the cells of part {name!r} name points {array.min()} to {array.max()}; allowed are 0 to {n_points - 1}.")
    return np.ascontiguousarray(array, dtype=np.int32)


def _checked_fields(part: str, place: str, fields: Mapping[str, npt.ArrayLike], length: int) -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {}
    for name, values in fields.items():
        array = np.asarray(values)
        if not name or not name.isprintable():
            raise VizError(f"the {place} field name {name!r} of part {part!r} is not allowed; use printable characters.")
        if array.dtype.kind not in "fiub":
            raise VizError(f"the {place} field {name!r} of part {part!r} has type {array.dtype}; it must be real numbers.")
        if array.ndim not in (1, 2) or array.shape[0] != length:
            raise VizError(
                f"the {place} field {name!r} of part {part!r} has shape {array.shape}; it must be "
                f"({length},) or "
                f"({length}, k), one row for each {place}."
            )
        shapes[name] = array.shape[1:]
    return shapes


def _listed(fields: Mapping[str, Mapping[str, tuple[int, ...]]]) -> str:
    return (
        ", ".join(f"{place} {name}{list(shape) or ''}" for place, names in fields.items() for name, shape in names.items())
        or "none"
    )


def _cell_array(cells: npt.NDArray[np.int32]) -> Any:
    """Return a vtkCellArray of equal cells with 32 bit storage (half the bytes of VTK's default)."""
    from vtkmodules.vtkCommonDataModel import vtkCellArray

    count, corners = cells.shape
    offsets = np.arange(0, count * corners + 1, corners, dtype=np.int32)
    array = vtkCellArray()
    corner_list = np.ascontiguousarray(cells).ravel()
    array.SetData(_vtk_array(offsets, deep=True), _vtk_array(corner_list, deep=True))
    return array


def _vtk_array(values: npt.NDArray[Any], *, deep: bool) -> Any:
    """Return a vtkDataArray with a copy of the values (deep) or looking at their memory."""
    from vtkmodules.util.numpy_support import numpy_to_vtk

    return numpy_to_vtk(values, deep=deep)  # type: ignore[no-untyped-call]


def _replace_file(path: Path, *pieces: bytes | bytearray) -> None:
    """Write a file under a temporary name and rename it: readers see the old or the new one, whole."""
    temporary = path.with_name(f".{path.name}.tmp")
    with open(temporary, "wb") as stream:
        stream.writelines(pieces)
    os.replace(temporary, path)

"""Compact time series: VTKHDF with h5py and gzip, topology only once; for ParaView 5.12 and newer.

The layout (vtkHDFReader of VTK 9.7 and pyvista 0.49 open every file)::

    frames.vtkhdf           "MultiBlockDataSet" of all parts: links to the data below, with times and number of steps of its own
    frames/NAME.vtkhdf      one part, "UnstructuredGrid" (tetrahedra) or "PolyData" (triangles, lines, points), at all times

Each file of a part is written after each frame, data before the step count, optionally in a thread while the next frame is made
(`viz.safe_file`). VTK opens the first file only where all parts have the same number of steps, and reads over the end of its
memory where there are more times than steps. So the first file is written whole, in one step, every second and at the end, and
counts steps that all parts have; nothing in it changes, whatever becomes of the process.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt

from viz.background import Worker
from viz.errors import VizError
from viz.files import replace_file, temporary_name
from viz.parts import Part, PartFrame, PartKind, PartRegister, stored_fields
from viz.safe_file import PAGE, SafeFile

__all__ = ["HdfSeries"]

_VERSION = (2, 2)
_SECTIONS = {"points": "Vertices", "line": "Lines", "triangle": "Polygons"}
_POLYDATA = ("Vertices", "Lines", "Polygons", "Strips")
_VTK_TETRA = 10
_INDEX_S = 1.0  # at most so long between two writings of the file that links all parts
_HEADER = 512  # bytes of an object header, at most
_TABLE_ROWS = 256  # rows of small tables that are stored together
_COMPRESSION: dict[str, Any] = {"compression": "gzip", "compression_opts": 1, "shuffle": True}


def import_h5py() -> Any:
    """Import h5py, or raise an error that says how to install it."""
    try:
        import h5py
    except ImportError as error:
        raise VizError('the format vtkhdf needs h5py; pip install "femsim[hdf]", or choose the format pvd.') from error
    return h5py


class HdfSeries:
    """Write the time series of several named parts as VTKHDF, frame by frame.

    Parameters
    ----------
    path : Path
        The file that links all parts, for instance ``RUN/frames.vtkhdf``; an existing one is replaced.
    frames_dir : Path
        Folder of the part files; created if missing.
    points_dtype : {"float64", "float32"}
        Precision of the stored positions.
    background : bool
        Write frames in a thread. The next frame or `close` then raises an error, and a killed process may lose the last frame.
    goes_on : bool
        The series of an earlier process goes on: its files stay until `go_on` says from where.

    Raises
    ------
    VizError
        When h5py is missing or an option is not allowed.
    OSError
        When the file cannot be written.
    """

    clock = staticmethod(time.monotonic)

    def __init__(
        self,
        path: Path,
        frames_dir: Path,
        *,
        points_dtype: Literal["float64", "float32"] = "float64",
        background: bool = False,
        goes_on: bool = False,
    ) -> None:
        import_h5py()
        self._worker = Worker(background)
        self.path, self.frames_dir = Path(path), Path(frames_dir)
        self._parts = PartRegister(str(path), points_dtype)
        self._files: dict[str, _PartFile] = {}
        self._times: list[float] = []
        self._indexed, self._indexed_at = 0, 0.0
        self._goes_on = goes_on
        if not goes_on:
            self.path.unlink(missing_ok=True)
        self.frames_dir.mkdir(parents=True, exist_ok=True)

    @property
    def n_frames(self) -> int:
        """Number of frames written so far."""
        return self._parts.n_frames

    def add_part(self, name: str, points: npt.ArrayLike | None, cells: npt.ArrayLike | None, kind: PartKind) -> None:
        """Register a part with its topology, before the first frame; see `PvdSeries.add_part`."""
        if name == "Assembly":
            raise VizError("the part name 'Assembly' is taken by the format vtkhdf; choose another.")
        path = self._part_path(name)
        part = self._parts.add(name, points, cells, kind)
        self._files[name] = _PartFile(Path(temporary_name(path)) if self._goes_on else path, part)

    def _part_path(self, name: str) -> Path:
        return self.frames_dir / f"{name}.vtkhdf"

    def write_frame(self, time: float, parts: Mapping[str, PartFrame]) -> None:
        """Append a frame; it is checked before any file is written. See `PvdSeries.write_frame`."""
        time = self._parts.check(time, parts)
        number = self.n_frames
        copies = {name: file.stored(parts[name]) for name, file in self._files.items()}
        self._worker.start(lambda: self._write(time, copies, number))
        self._parts.written(time, parts)

    @property
    def settled(self) -> bool:
        """Whether no frame is being written: a kill now loses none of those given."""
        return self._worker.settled

    def settle(self) -> None:
        """Wait for the frame that is being written, and raise its error if it failed."""
        self._worker.wait()

    def _write(self, time: float, parts: Mapping[str, PartFrame], number: int) -> None:
        for name, file in self._files.items():
            file.write(time, parts[name], number)
        self._times.append(time)
        if number == 0 or self.clock() > self._indexed_at + _INDEX_S:
            self._write_index()

    def _write_index(self) -> None:
        """Write the file that links all parts as blocks, up to the last frame that all of them have."""
        prefix = os.path.relpath(self.frames_dir, self.path.parent).replace(os.sep, "/")
        links = {name: (f"{prefix}/{name}.vtkhdf", file.part.kind, file.names()) for name, file in self._files.items()}
        replace_file(str(self.path), _index_image(links, self._times))
        self._indexed, self._indexed_at = len(self._times), self.clock()

    def written(self) -> dict[str, Any]:
        """Write everything outstanding; return the number of frames and the fields of each part, for JSON and `go_on`."""
        self._worker.wait()
        if self._indexed < len(self._times):
            self._write_index()
        return {"frames": self.n_frames, "fields": {name: file.field_names() for name, file in self._files.items()}}

    def go_on(self, written: Mapping[str, Any]) -> None:
        """Go on where `written` was called, with the same parts: the files are made again of the frames up to there.

        Raises
        ------
        VizError
            The files hold fewer frames, or cannot be read.
        """
        h5py, count = import_h5py(), int(written["frames"])
        for name, file in self._files.items():
            path = self._part_path(name)
            try:
                if count:
                    with h5py.File(path, "r", locking=False) as old:
                        self._times = [float(t) for t in old["VTKHDF/Steps/Values"][:count]]
                        if len(self._times) < count or int(old["VTKHDF/Steps"].attrs["NSteps"]) < count:
                            raise VizError(f"{path} holds fewer than the {count} frames that were written.")
                        if file.part.kind != "points" and int(old["VTKHDF/NumberOfPoints"][0]) != file.part.n_points:
                            raise VizError(f"{path} has another number of points; is it of this run?")
                        for number, time in enumerate(self._times):
                            file.write(time, stored_frame(old["VTKHDF"], number, written["fields"].get(name)), number)
            except (OSError, KeyError, RuntimeError) as error:
                raise VizError(f"{path} cannot be read ({error}); the frames cannot go on.") from error
            os.replace(file.file.path, path)
            file.file.path = path
        if count:
            self._parts.go_on(count, self._times[-1])
            self._write_index()

    def close(self) -> None:
        """End the series; a second call has no effect."""
        if self._parts.closed:
            return
        self._parts.closed = True
        try:
            self._worker.close()
        finally:
            try:
                if self._indexed < len(self._times):
                    self._write_index()
            finally:
                for file in self._files.values():
                    file.close()

    def __enter__(self) -> Self:
        """Return the series itself."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Close the series, also after an error."""
        self.close()


class _PartFile:
    """The file of one part."""

    def __init__(self, path: Path, part: Part) -> None:
        h5py = import_h5py()
        self.part = part
        # no lock: ParaView may read during the run; the oldest file format: it has no mark "open for writing" that a
        # killed process would leave behind
        self.file = SafeFile(path)
        self._file = h5py.File(self.file, "w", libver=("earliest", "v108"))
        group = self._group = self._file.create_group("VTKHDF")
        steps = self._steps = group.create_group("Steps")
        kind = part.kind
        _mark(group, "UnstructuredGrid" if kind == "tetra" else "PolyData")
        steps.attrs["NSteps"] = np.int64(0)
        self._n_steps = h5py.h5a.open(steps.id, b"NSteps")
        self._times = _Table(steps, "Values", np.dtype(np.float64))  # beside the number of steps, so that one write changes both
        self._rows = part.n_points if kind != "points" else None
        self._points = _Table(group, "Points", part.points_dtype, (3,), rows=self._rows)
        self._point_offsets = _Table(steps, "PointOffsets")
        places = [h5py.h5o.get_info(one).addr for one in (steps.id, self._times.dataset)]
        # the first page is the last that a commit writes, and holds the number of steps and that of times; else two commits
        self._counted_last = max(places) + _HEADER < PAGE
        self._constant = [_Table(steps, "NumberOfParts", fill=1)]  # grow with their fill value
        self._fields: dict[tuple[str, str], tuple[_Table, _Table]] = {}
        for place in ("PointData", "CellData"):
            group.create_group(place)
            steps.create_group(f"{place}Offsets")
        sections = ("",) if kind == "tetra" else _POLYDATA
        # the reader adds PartOffsets to the place of the offsets of cells, so it must be zero where these are stored once
        self._part_offsets, self._cell_offsets = (
            _Table(steps, "PartOffsets"),
            _Table(steps, "CellOffsets", shape=(len(sections),)),
        )
        steps["ConnectivityIdOffsets"] = steps["CellOffsets"]
        if kind == "points":
            self._make_vertices()
            return
        self._constant += [self._part_offsets, self._cell_offsets]
        group.create_dataset("NumberOfPoints", data=np.array([part.n_points], np.int64))
        for section in sections:
            own = group.create_group(section) if section else group
            cells = part.cells if section == _SECTIONS.get(kind, "") else np.zeros((0, 1), np.int32)
            count, corners = cells.shape
            own.create_dataset("NumberOfCells", data=np.array([count], np.int64))
            own.create_dataset("NumberOfConnectivityIds", data=np.array([count * corners], np.int64))
            _write_once(own, "Connectivity", cells.ravel().astype(np.int64))
            _write_once(own, "Offsets", np.arange(count + 1, dtype=np.int64) * corners)
        if kind == "tetra":
            _write_once(group, "Types", np.full(len(part.cells), _VTK_TETRA, np.uint8))

    def _make_vertices(self) -> None:
        """Make the cell tables of a part of points, which change with every frame."""
        self._counts = [_Table(self._group, "NumberOfPoints")]
        for section in _POLYDATA:
            own = self._group.create_group(section)
            count = _Table(own, "NumberOfCells")
            own["NumberOfConnectivityIds"] = own["NumberOfCells"]
            connectivity, offsets = _Table(own, "Connectivity"), _Table(own, "Offsets")
            if section == "Vertices":
                self._counts.append(count)
                self._connectivity, self._offsets = connectivity, offsets
            else:
                self._constant += [count, offsets]

    def stored(self, frame: PartFrame) -> PartFrame:
        """Copy a checked frame in stored form."""
        points = np.array(frame.points, dtype=self.part.points_dtype)
        return PartFrame(points, stored_fields(frame.point_data), stored_fields(frame.cell_data))

    def write(self, time: float, frame: PartFrame, number: int) -> None:
        """Append a frame in stored form and flush it, then count it."""
        points = np.asarray(frame.points)
        begin, count = self._points.length, len(points)
        self._points.append(points)
        self._point_offsets.append(np.array([begin]))
        for table in self._constant:
            table.grow(1)
        if self.part.kind == "points":
            self._part_offsets.append(np.array([number]))
            self._cell_offsets.append(np.array([[begin, 0, 0, 0]]))
            for table in self._counts:
                table.append(np.array([count]))
            self._connectivity.append(np.arange(count))
            self._offsets.append(np.arange(count + 1))
        for place, fields in (("PointData", frame.point_data), ("CellData", frame.cell_data)):
            for name, values in ((name, np.asarray(values)) for name, values in fields.items()):
                if number == 0:
                    rows = len(values) if self.part.kind != "points" else None
                    self._fields[place, name] = (
                        _Table(self._group[place], name, values.dtype, values.shape[1:], rows=rows),
                        _Table(self._steps[f"{place}Offsets"], name),
                    )
                data, offsets = self._fields[place, name]
                offsets.append(np.array([data.length]))
                data.append(values)
        if not self._counted_last:
            self._commit()
        self._times.append(np.array([time]))
        self._n_steps.write(np.array(number + 1, dtype=np.int64))
        self._commit()

    def _commit(self) -> None:
        self._file.flush()
        self.file.commit()

    def field_names(self) -> dict[str, list[str]]:
        """Names of the fields in the order in which the first frame brought them, by place."""
        return {place: [name for one, name in self._fields if one == place] for place in ("PointData", "CellData")}

    def names(self) -> tuple[list[str], list[str]]:
        """Names of what the group of the part holds beside its steps, and of what these hold beside the times."""
        return [name for name in self._group if name != "Steps"], [name for name in self._steps if name != "Values"]

    def close(self) -> None:
        """Close the file; what was not committed is lost."""
        self.file.failed = True
        if self._file:
            self._file.close()
        self.file.close()


class _Table:
    """A dataset that grows by rows. It calls HDF5 directly, because h5py's convenience costs more than the writing.

    Parameters
    ----------
    group : h5py.Group
        Where it stands.
    name : str
        Name.
    dtype : dtype
        Type of the values.
    shape : tuple of int
        Shape of a row.
    rows : int, optional
        Rows of a frame, which are compressed together. None: small uncompressed blocks, because a block that is recompressed with
        every frame would not survive a kill.
    fill : int
        Value of rows added without data.
    """

    def __init__(
        self,
        group: Any,
        name: str,
        dtype: np.dtype[Any] = np.dtype(np.int64),  # noqa: B008 (a constant)
        shape: tuple[int, ...] = (),
        *,
        rows: int | None = None,
        fill: int = 0,
    ) -> None:
        self._space = import_h5py().h5s
        packing = {} if rows is None else _COMPRESSION
        chunks = (max(1, _TABLE_ROWS if rows is None else rows), *shape)
        made = group.create_dataset(name, (0, *shape), dtype, maxshape=(None, *shape), chunks=chunks, fillvalue=fill, **packing)
        self._id, self._dtype, self._shape = made.id, dtype, shape
        self.dataset = made.id
        self.length = 0

    def grow(self, count: int) -> None:
        """Add rows of the fill value."""
        self.length += count
        self._id.set_extent((self.length, *self._shape))

    def append(self, rows: npt.NDArray[Any]) -> None:
        """Add rows."""
        if not len(rows):
            return
        begin = self.length
        self.grow(len(rows))
        values = np.ascontiguousarray(rows, dtype=self._dtype)
        place = self._id.get_space()
        place.select_hyperslab((begin, *(0 for _ in self._shape)), values.shape)
        self._id.write(self._space.create_simple(values.shape), place, values)


def stored_frame(group: Any, number: int, fields: Mapping[str, list[str]] | None) -> PartFrame:
    """Read a frame of a part as it is stored; ``fields`` says which ones in which order, by default all."""
    steps = group["Steps"]
    count = int(group["NumberOfPoints"][int(steps["PartOffsets"][number])])
    begin = int(steps["PointOffsets"][number])
    points = np.asarray(group["Points"][begin : begin + count])
    data: dict[str, dict[str, npt.NDArray[Any]]] = {"PointData": {}, "CellData": {}}
    for place, found in data.items():
        for name in group[place] if fields is None else fields[place]:
            start = int(steps[f"{place}Offsets/{name}"][number])
            rows = count
            if place == "CellData" and group.attrs["Type"] == b"UnstructuredGrid":
                rows = int(group["NumberOfCells"][0])
            elif place == "CellData":
                own = int(steps["PartOffsets"][number])
                rows = sum(int(group[section]["NumberOfCells"][own]) for section in _POLYDATA)
            found[name] = np.asarray(group[place][name][start : start + rows])
    return PartFrame(points, data["PointData"], data["CellData"])


def _index_image(parts: Mapping[str, tuple[str, PartKind, tuple[list[str], list[str]]]], times: list[float]) -> bytes:
    """Content of the file that links all parts: by name the file of each, its kind, and the names in it and in its steps."""
    h5py = import_h5py()
    with h5py.File("index", "w", driver="core", backing_store=False, libver=("earliest", "v108")) as file:
        root = file.create_group("VTKHDF", track_order=True)
        _mark(root, "MultiBlockDataSet")
        assembly = root.create_group("Assembly", track_order=True)
        values = file.create_dataset("times", data=np.array(times))
        for name, (path, kind, (own, of_steps)) in parts.items():
            group = root.create_group(name)
            _mark(group, "UnstructuredGrid" if kind == "tetra" else "PolyData")
            steps = group.create_group("Steps")
            steps.attrs["NSteps"] = np.int64(len(times))
            steps["Values"] = values
            for target, names, place in ((group, own, "/VTKHDF"), (steps, of_steps, "/VTKHDF/Steps")):
                for one in names:
                    target[one] = h5py.ExternalLink(path, f"{place}/{one}")
            assembly[name] = h5py.SoftLink(f"/VTKHDF/{name}")
        file.flush()
        image: bytes = file.id.get_file_image()
    return image


def _write_once(group: Any, name: str, values: npt.NDArray[Any]) -> None:
    group.create_dataset(name, data=values, **(_COMPRESSION if values.size else {}))


def _mark(group: Any, kind: str) -> None:
    """Set the attributes of every VTKHDF group."""
    h5py = import_h5py()
    group.attrs["Version"] = np.array(_VERSION, dtype=np.int64)
    group.attrs.create("Type", kind.encode("ascii"), dtype=h5py.string_dtype("ascii", len(kind)))

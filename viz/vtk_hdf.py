"""Compact time series: VTKHDF with h5py and gzip, topology only once; for ParaView 5.12 and newer.

The layout (vtkHDFReader of VTK 9.7 and pyvista 0.49 open every file; docs/outputs.md lists layouts that fail)::

    frames.vtkhdf           "MultiBlockDataSet" of all parts: links to the files below, written once
    frames/NAME.vtkhdf      one part, "UnstructuredGrid" (tetrahedra) or "PolyData" (triangles, lines, points), at all times

Each file is flushed after each frame, data before the step count, optionally in a thread while the next frame is made.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt

from viz.background import Worker
from viz.errors import VizError
from viz.parts import Part, PartFrame, PartKind, PartRegister, stored_fields

__all__ = ["HdfSeries"]

_VERSION = (2, 2)
_SECTIONS = {"points": "Vertices", "line": "Lines", "triangle": "Polygons"}
_POLYDATA = ("Vertices", "Lines", "Polygons", "Strips")
_VTK_TETRA = 10
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

    Raises
    ------
    VizError
        When h5py is missing or an option is not allowed.
    OSError
        When the file cannot be written.
    """

    def __init__(
        self,
        path: Path,
        frames_dir: Path,
        *,
        points_dtype: Literal["float64", "float32"] = "float64",
        background: bool = False,
    ) -> None:
        import_h5py()
        self._worker = Worker(background)
        self.path, self.frames_dir = Path(path), Path(frames_dir)
        self._parts = PartRegister(str(path), points_dtype)
        self._files: dict[str, _PartFile] = {}
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
        self._files[name] = _PartFile(self.frames_dir / f"{name}.vtkhdf", self._parts.add(name, points, cells, kind))

    def write_frame(self, time: float, parts: Mapping[str, PartFrame]) -> None:
        """Append a frame; it is checked before any file is written. See `PvdSeries.write_frame`."""
        time = self._parts.check(time, parts)
        number = self.n_frames
        copies = {name: file.stored(parts[name]) for name, file in self._files.items()}
        self._worker.start(lambda: self._write(time, copies, number))
        self._parts.written(time, parts)

    def _write(self, time: float, parts: Mapping[str, PartFrame], number: int) -> None:
        for name, file in self._files.items():
            file.write(time, parts[name], number)
        if number == 0:
            self._write_index()

    def _write_index(self) -> None:
        """Write the file that links all parts as blocks."""
        h5py = import_h5py()
        temporary = self.path.with_name(f".{self.path.name}.tmp")
        prefix = os.path.relpath(self.frames_dir, self.path.parent).replace(os.sep, "/")
        with h5py.File(temporary, "w") as file:
            root = file.create_group("VTKHDF", track_order=True)
            _mark(root, "MultiBlockDataSet")
            assembly = root.create_group("Assembly", track_order=True)
            for name in self._files:
                root[name] = h5py.ExternalLink(f"{prefix}/{name}.vtkhdf", "/VTKHDF")
                assembly[name] = h5py.SoftLink(f"/VTKHDF/{name}")
        os.replace(temporary, self.path)

    def close(self) -> None:
        """End the series; a second call has no effect."""
        self._parts.closed = True
        try:
            self._worker.close()
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
        self._file = h5py.File(path, "w", libver=("earliest", "v108"), locking=False)
        group = self._group = self._file.create_group("VTKHDF")
        steps = self._steps = group.create_group("Steps")
        kind = part.kind
        _mark(group, "UnstructuredGrid" if kind == "tetra" else "PolyData")
        steps.attrs["NSteps"] = np.int64(0)
        self._n_steps = h5py.h5a.open(steps.id, b"NSteps")
        self._rows = part.n_points if kind != "points" else None
        self._points = _Table(group, "Points", part.points_dtype, (3,), rows=self._rows)
        self._point_offsets = _Table(steps, "PointOffsets")
        self._times = _Table(steps, "Values", np.dtype(np.float64))
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
        self._times.append(np.array([time]))
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
        self._file.flush()
        self._n_steps.write(np.array(number + 1, dtype=np.int64))
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()


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


def _write_once(group: Any, name: str, values: npt.NDArray[Any]) -> None:
    group.create_dataset(name, data=values, **(_COMPRESSION if values.size else {}))


def _mark(group: Any, kind: str) -> None:
    """Set the attributes of every VTKHDF group."""
    h5py = import_h5py()
    group.attrs["Version"] = np.array(_VERSION, dtype=np.int64)
    group.attrs.create("Type", kind.encode("ascii"), dtype=h5py.string_dtype("ascii", len(kind)))

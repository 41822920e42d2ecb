"""Time series for ParaView: a PVD index and one VTK XML file per part and frame.

The layout (Debian's ParaView 5.11 opens it with the right times, and it stays readable after a killed run)::

    frames.pvd                      index: time, part number, part name, file
    frames/NAME_000123.vtu          "tetra" parts
    frames/NAME_000123.vtp          "triangle", "line" and "points" parts
                                    (no new file for an unchanged part; the indices list the old one again)
    frames/NAME.vtu.series          index of one part (.vtp.series likewise); up to 25 frames late, or a second

A long index is rewritten once a second: after each frame, as a short one, it would cost more the longer the series is.

Every file is written under a temporary name and then renamed, data files before the index that lists them, so at any moment each
index on disk is complete and lists only complete files. (Nothing is synced to disk: this protects against a killed process, not
against a power failure.) A thread may write the files of a frame while the next frame is made; a killed process may then lose the
last one.
"""

from __future__ import annotations

import html
import json
import math
import os
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self
from xml.etree import ElementTree

import numpy as np
import numpy.typing as npt

from viz.background import Worker
from viz.errors import VizError
from viz.files import replace_file
from viz.parts import Part, PartFrame, PartKind, PartRegister, stored_fields
from viz.vtk_reading import read_part
from viz.vtk_xml import XmlPiece, quoted

if TYPE_CHECKING:
    import pyvista

__all__ = ["PvdSeries", "read_pvd"]

EXTENSION: dict[str, str] = {"tetra": "vtu", "triangle": "vtp", "line": "vtp", "points": "vtp"}
_SERIES_EVERY = 25  # frames between two writes of the .series files, each of which costs as much time as the PVD index
_LONG, _INDEX_S = 1 << 20, 1.0  # bytes of a PVD index that is written at most so often, s

_PVD_HEAD = (
    b'<?xml version="1.0"?>\n'
    b'<VTKFile type="Collection" version="1.0" byte_order="LittleEndian" header_type="UInt64">\n'
    b"<Collection>\n"
)
_PVD_TAIL = b"</Collection>\n</VTKFile>\n"
_INDEX_LINE = re.compile(rb'<DataSet timestep="([^"]+)" group="" part="\d+" name="([^"]+)" file="([^"]*)"/>\n')
_FRAME_FILE = re.compile(r"\d{6,}\.vt[pu]")
_SERIES_HEAD = b'{"file-series-version": "1.0", "files": [\n'
_SERIES_TAIL = b"\n]}\n"


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
        Rewrite the PVD index every n frames (and on `close`). 1 = nothing is lost if the process is killed, or a second of a long
        series.
    components : mapping of str to tuple of str, optional
        Component names by field, for instance of a quaternion; default: numbers.
    background : bool
        Write the files of a frame in a thread. The next frame, `flush` or `close` then raises an error, and a killed process may
        lose the last frame.
    goes_on : bool
        The series of an earlier process goes on: its index stays until `go_on` says from where.

    Raises
    ------
    VizError
        When an option is not allowed.
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

    clock = staticmethod(monotonic)

    def __init__(
        self,
        pvd_path: Path,
        frames_dir: Path,
        *,
        points_dtype: Literal["float64", "float32"] = "float64",
        index_every: int = 1,
        components: Mapping[str, tuple[str, ...]] | None = None,
        background: bool = False,
        goes_on: bool = False,
    ) -> None:
        if index_every < 1:
            raise VizError(f"index_every is {index_every}; it must be 1 or more (frames between two index writes).")
        self.pvd_path = Path(pvd_path)
        self.frames_dir = Path(frames_dir)
        self._parts = PartRegister(str(pvd_path), points_dtype)
        self._index_every = int(index_every)
        self._components = dict(components or {})
        self._files: dict[str, _PartFiles] = {}
        self._pending = 0
        self._indexed_at, self._series_at = self.clock(), -_SERIES_EVERY
        self._worker = Worker(background)
        self._listed = 0  # bytes of the index before the frame in writing
        self.frames_dir.mkdir(parents=True, exist_ok=True)
        self._prefix = os.path.relpath(self.frames_dir, self.pvd_path.parent).replace(os.sep, "/") + "/"
        self._index = bytearray()
        if not goes_on:
            replace_file(str(self.pvd_path), _PVD_HEAD + _PVD_TAIL)

    @property
    def n_frames(self) -> int:
        """Number of frames written so far."""
        return self._parts.n_frames

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
        part = self._parts.add(name, points, cells, kind)
        self._files[name] = _PartFiles(part, XmlPiece(kind, part.cells, self._components))

    def write_frame(self, time: float, parts: Mapping[str, PartFrame]) -> None:
        """Write one file per part, then the index; with `background`, in a thread.

        Everything is checked before the first file is written. The first frame sets the fields of a part; later frames must have
        the same ones (ParaView shows only fields that every frame has).

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
        time = self._parts.check(time, parts)
        self._finish(self._worker.wait)
        self._listed = len(self._index)
        for files in self._files.values():
            files.mark()
        self._finish(lambda: self._start(time, parts))
        self._parts.written(time, parts)

    def _start(self, time: float, parts: Mapping[str, PartFrame]) -> None:
        """Make the files of a checked frame and start writing them."""
        new: list[tuple[str, bytes]] = []
        for name, files in self._files.items():
            new += files.files(parts[name], str(self.frames_dir), self.n_frames)
        for number, (name, files) in enumerate(self._files.items()):
            files.append_to_index(time)
            self._index += (
                f'<DataSet timestep="{time!r}" group="" part="{number}" name="{name}" '
                f"file={quoted(self._prefix + files.file)}/>\n"
            ).encode()
        self._pending += 1
        if self._pending >= self._index_every and (len(self._index) <= _LONG or self.clock() > self._indexed_at + _INDEX_S):
            new.append(self._index_file())
            if self.n_frames >= self._series_at + _SERIES_EVERY:
                new += self._series_files()
                self._series_at = self.n_frames
        self._worker.start(lambda: _write(new))

    @property
    def settled(self) -> bool:
        """Whether no frame is being written: a kill now loses none of those given."""
        return self._worker.settled

    def settle(self) -> None:
        """Wait for the frame that is being written, and raise its error if it failed."""
        self._finish(self._worker.wait)

    def flush(self) -> None:
        """Write everything outstanding, the PVD index last."""
        self._finish(self._worker.wait)
        if self._pending:
            _write([self._index_file()])

    def written(self) -> dict[str, Any]:
        """Write everything outstanding; return the number of frames and the fields of each part, for JSON and `go_on`."""
        self.flush()
        fields = {name: files.stored() for name, files in self._files.items()} if self.n_frames else {}
        return {"frames": self.n_frames, "fields": fields}

    def go_on(self, written: Mapping[str, Any]) -> None:
        """Go on where `written` was called, with the same parts: frames and files behind it are removed.

        Raises
        ------
        VizError
            The index lists fewer frames, other parts, or files that cannot be read.
        """
        count, names = int(written["frames"]), list(self._files)
        lines = index_lines(self.pvd_path)
        if len(lines) < count * len(names):
            raise VizError(f"{self.pvd_path} lists fewer than the {count} frames that were written; was it changed?")
        del lines[count * len(names) :]
        for number, (line, time, name, file) in enumerate(lines):
            if name != names[number % len(names)]:
                raise VizError(f"{self.pvd_path} lists part {name!r} where {names[number % len(names)]!r} was written.")
            self._index += line
            self._files[name].file = file[len(self._prefix) :]
            self._files[name].append_to_index(time)
        if lines:
            for name, files in self._files.items():
                files.go_on(read_part(self.frames_dir / files.file), written["fields"][name])
            self._parts.go_on(count, lines[-1][1])
        listed = {file for _, _, _, file in lines}
        for path in self.frames_dir.iterdir():
            name, _, rest = path.name.rpartition("_")
            if name in self._files and _FRAME_FILE.fullmatch(rest) and self._prefix + path.name not in listed:
                path.unlink()
        replace_file(*self._index_file())

    def close(self) -> None:
        """Write the indices and end the series; a second call has no effect."""
        if self._parts.closed:
            return
        self._parts.closed = True
        try:
            self._finish(self._worker.close)
        finally:
            _write(([self._index_file()] if self._pending else []) + self._series_files())

    def _finish(self, work: Callable[[], None]) -> None:
        """Call a function that raises the error of the last frame, if any; the indices then drop this frame."""
        try:
            work()
        except BaseException:  # the indices must name no frame that is not there, also after Ctrl-C
            if not self._worker.busy:  # else it was interrupted while the frame is still being written
                del self._index[self._listed :]
                for files in self._files.values():
                    files.forget()
                self._pending = 1
            raise

    def _index_file(self) -> tuple[str, bytes]:
        self._pending, self._indexed_at = 0, self.clock()
        return str(self.pvd_path), b"".join([_PVD_HEAD, self._index, _PVD_TAIL])

    def __enter__(self) -> Self:
        """Return the series itself."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Close the series, also after an error, so that all finished frames are listed."""
        self.close()

    def _series_files(self) -> list[tuple[str, bytes]]:
        return [
            (f"{self.frames_dir}/{name}.{EXTENSION[files.part.kind]}.series", b"".join([_SERIES_HEAD, files.index, _SERIES_TAIL]))
            for name, files in self._files.items()
        ]


class _PartFiles:
    """The files of one part."""

    def __init__(self, part: Part, piece: XmlPiece) -> None:
        self.part = part
        self.index = bytearray()
        self.file = ""  # of the last frame
        self._listed = 0  # bytes of the index before that
        self._piece = piece
        self._last: tuple[npt.NDArray[Any], dict[str, dict[str, npt.NDArray[Any]]]] | None = None

    def files(self, frame: PartFrame, folder: str, number: int) -> list[tuple[str, bytes]]:
        """Return file name and content of a checked frame; no content if it equals the last one, whose file then serves both."""
        part = self.part
        points = np.array(frame.points, dtype=part.points_dtype)
        fields = {"point": stored_fields(frame.point_data), "cell": stored_fields(frame.cell_data)}
        if self.file and self._is_last(points, fields):
            return []
        if part.kind == "points" and (self._last is None or len(points) != len(self._last[0])):
            self._piece.set_cells(np.arange(len(points), dtype=np.int32)[:, None])
        self.file = f"{part.name}_{number:06d}.{EXTENSION[part.kind]}"
        self._last = (points, fields)
        return [(f"{folder}/{self.file}", self._piece.content(points, fields))]

    def stored(self) -> dict[str, dict[str, tuple[str, list[int]]]]:
        """Type and shape of the fields of the last frame, by place and name in their order."""
        assert self._last is not None
        return {
            place: {name: (values.dtype.str, list(values.shape[1:])) for name, values in fields.items()}
            for place, fields in self._last[1].items()
        }

    def go_on(self, last: pyvista.DataSet, stored: Mapping[str, Mapping[str, tuple[str, list[int]]]]) -> None:
        """Go on after a frame that was read again; ``stored`` is what :meth:`stored` said of it."""
        points = np.array(last.points, dtype=self.part.points_dtype)
        rows = {"point": len(points), "cell": len(points) if self.part.kind == "points" else len(self.part.cells)}
        data = {"point": last.point_data, "cell": last.cell_data}
        fields = {
            place: {
                name: np.array(data[place][name]) if rows[place] else np.zeros((0, *shape), np.dtype(kind))
                for name, (kind, shape) in known.items()
            }
            for place, known in stored.items()
        }
        if self.part.kind == "points":
            self._piece.set_cells(np.arange(len(points), dtype=np.int32)[:, None])
        self._last = (points, fields)

    def mark(self) -> None:
        """Record the end of the index before a frame."""
        self._listed = len(self.index)

    def forget(self) -> None:
        """Remove the last frame, which could not be written."""
        del self.index[self._listed :]
        self.file, self._last = "", None

    def _is_last(self, points: npt.NDArray[Any], fields: dict[str, dict[str, npt.NDArray[Any]]]) -> bool:
        if self._last is None or not np.array_equal(points, self._last[0]):
            return False
        return all(
            values.dtype == self._last[1][place][name].dtype and np.array_equal(values, self._last[1][place][name])
            for place, known in fields.items()
            for name, values in known.items()
        )

    def append_to_index(self, time: float) -> None:
        """Add the last file to the index of this part."""
        line = json.dumps({"name": self.file, "time": time}).encode()
        self.index += b",\n" + line if self.index else line


def index_of(lines: Iterable[bytes]) -> bytes:
    """Content of an index of these lines."""
    return b"".join([_PVD_HEAD, *lines, _PVD_TAIL])


def index_lines(path: Path) -> list[tuple[bytes, float, str, str]]:
    """Lines of an index that we wrote: as they are, and time, part and file of each; damaged ones are left out."""
    try:
        lines = path.read_bytes().splitlines(keepends=True)
    except OSError as error:
        raise VizError(f"{path} cannot be read ({error.strerror}); the frames cannot go on.") from error
    found = []
    for line in lines:
        match = _INDEX_LINE.fullmatch(line)
        with suppress(ValueError):  # no number, no text
            if match and math.isfinite(time := float(match[1])):
                found.append((line, time, match[2].decode(), html.unescape(match[3].decode())))
    return found


def series_of(lines: Iterable[tuple[bytes, float, str, str]], folder: str) -> dict[str, bytes]:
    """Contents of the .series files of the parts, by name, for what an index lists in a folder under our names."""
    found: dict[str, list[bytes]] = {}
    for _, time, name, file in lines:
        inside, _, number = file.rpartition(f"{name}_")
        if inside == f"{folder}/" and _FRAME_FILE.fullmatch(number) and "/" not in name:
            entry = json.dumps({"name": f"{name}_{number}", "time": time}).encode()
            found.setdefault(f"{name}{Path(number).suffix}.series", []).append(entry)
    return {name: b"".join([_SERIES_HEAD, b",\n".join(entries), _SERIES_TAIL]) for name, entries in found.items()}


def read_pvd(path: Path) -> list[tuple[float, dict[str, Path]]]:
    """Read a PVD index.

    Parameters
    ----------
    path : Path
        The .pvd file.

    Returns
    -------
    list of (float, dict of str to Path)
        For each time [s], in ascending order, the file of each part by name (``part0`` and so on if a foreign index has no
        names).

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
            if not math.isfinite(time):
                raise ValueError
        except ValueError:
            raise VizError(f"{path}: timestep {item.get('timestep')!r} of {file!r} is not a number.") from None
        if not file:
            raise VizError(f"{path}: the DataSet at timestep {time} names no file.")
        name = item.get("name") or f"part{item.get('part', '0')}"
        frames.setdefault(time, {})[name] = path.parent / file
    return sorted(frames.items())


def _write(files: Iterable[tuple[str, bytes]]) -> None:
    """Write files one after the other."""
    for path, data in files:
        replace_file(path, data)

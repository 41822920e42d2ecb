"""Read the frames of a run in any format."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

import foreign
from foreign.hdf5 import check_frames, read_links
from viz.cells import CellRows, Field, make_data_set
from viz.claims import check_claim
from viz.errors import VizError
from viz.files import no_run
from viz.vtk_hdf import import_h5py
from viz.vtk_reading import read_part
from viz.vtk_series import read_pvd

if TYPE_CHECKING:
    import pyvista

__all__ = ["FrameSeries", "open_frames"]


class FrameSeries(Protocol):
    """Frames of a run.

    Attributes
    ----------
    path : Path
        The file that was opened.
    times : list of float
        Time of each frame, s, ascending.
    parts : list of str
        Names of the parts of the first frame.
    """

    path: Path
    times: list[float]
    parts: list[str]

    def read(self, number: int, part: str) -> pyvista.DataSet:
        """Read a part of a frame: points [m], cells and fields, as written; VizError when the frame has no such part."""
        ...

    def source(self, number: int, part: str) -> Hashable:
        """Return what a part of a frame is read from: the same for frames that share what is written once."""
        ...


class PvdFrames:
    """Frames of a PVD series."""

    def __repr__(self) -> str:
        return f"<Frames of {self.path}: {len(self.times)}, parts {', '.join(self.parts) or 'none'}>"

    def __init__(self, path: Path) -> None:
        self.path = path
        frames = read_pvd(path)
        self.times = [time for time, _ in frames]
        self.files = [files for _, files in frames]
        self.parts = list(self.files[0]) if frames else []

    def read(self, number: int, part: str) -> pyvista.DataSet:
        """Read a part of a frame."""
        if part not in self.files[number]:
            raise VizError(f"frame {number} (t = {self.times[number]} s) lists no part {part!r} as the first one did.")
        return read_part(self.files[number][part])

    def source(self, number: int, part: str) -> Hashable:
        """Return the file of a part of a frame."""
        return self.files[number].get(part)


class HdfFrames:
    """Frames in VTKHDF, also of a running or killed run: those that all parts have.

    A child with limits walks the structure of all files first (`foreign.hdf5.check_frames`); what is read here later are numbers.
    """

    def __repr__(self) -> str:
        return f"<Frames of {self.path}: {len(self.times)}, parts {', '.join(self.parts) or 'none'}>"

    def __init__(self, path: Path) -> None:
        h5py = import_h5py()
        self.path = path
        self._files: dict[str, Any] = {}
        with _sentences(path):
            links = foreign.call(read_links, path.stat().st_size, libraries=["h5py"], path=str(path.resolve()))["files"]
            files = {name: _inside(path.parent, link) for name, link in links}
            size = sum(file.stat().st_size for file in files.values())
            foreign.call(check_frames, size, libraries=["h5py"], paths=[str(file) for file in files.values()])
            for name, file in files.items():
                self._files[name] = h5py.File(file, "r", locking=False)["VTKHDF"]
            self.parts = list(files)
            counts = [int(group["Steps"].attrs["NSteps"]) for group in self._files.values()]
            self.times = [float(t) for t in _rows(self._files[self.parts[0]]["Steps/Values"], 0, min(counts))]
            if not np.isfinite(self.times).all():
                raise ValueError("a time is not finite")

    def read(self, number: int, part: str) -> pyvista.DataSet:
        """Read a part of a frame."""
        if part not in self._files:
            raise VizError(f"{self.path} lists no part {part!r}; it has {', '.join(self.parts)}.")
        group = self._files[part]
        with _sentences(Path(group.file.filename)):
            return self._read(group, number)

    def source(self, number: int, part: str) -> Hashable:
        """Return what a part of a frame is read from: rows of its own."""
        return number, part

    def _read(self, group: Any, number: int) -> pyvista.DataSet:
        steps = group["Steps"]
        own = int(steps["PartOffsets"][number])  # of this frame if the topology changes, else 0
        n_points = int(group["NumberOfPoints"][own])
        points = _rows(group["Points"], int(steps["PointOffsets"][number]), n_points)
        if group.attrs["Type"] == b"UnstructuredGrid":
            count = int(group["NumberOfCells"][0])
            rows = {"": _cells(_rows(group["Connectivity"], 0, len(group["Connectivity"])), count)}
            rows[""] = rows[""]._replace(types=np.full(count, int(group["Types"][0]), dtype=np.uint8))
        else:
            rows = {}
            for section, name in (("Vertices", "Verts"), ("Lines", "Lines"), ("Polygons", "Polys")):
                count = int(group[section]["NumberOfCells"][own])
                if count:
                    where = int(steps["CellOffsets"][number][0])
                    length = int(group[section]["NumberOfConnectivityIds"][own])
                    rows[name] = _cells(_rows(group[section]["Connectivity"], where, length), count)
        n_cells = sum(len(cells.offsets) for cells in rows.values())
        fields = [
            Field(place, name, _rows(values, int(steps[f"{place}Offsets/{name}"][number]), count))
            for place, count in (("PointData", n_points), ("CellData", n_cells))
            for name, values in group[place].items()
        ]
        return make_data_set(points, rows, fields)


@contextmanager
def _sentences(path: Path) -> Iterator[None]:
    """Turn what HDF5 and numpy say of a damaged file into a sentence that names it."""
    try:
        yield
    except VizError:
        raise
    except (foreign.Refused, OSError, KeyError, AttributeError, ValueError, TypeError, IndexError, RuntimeError) as error:
        raise VizError(f"{path} cannot be read as frames of a run ({error}); was a file moved or cut short?") from error


def _inside(folder: Path, link: str) -> Path:
    """File of a part, which is in the folder of the run."""
    file = (folder / link).resolve()
    if not file.is_relative_to(folder.resolve()):
        raise ValueError(f"it links {link}, which is not in the folder of the run")
    return file


def _cells(corners: npt.NDArray[Any], count: int) -> CellRows:
    """Cells of equally many corners each."""
    if count < 1 or len(corners) % count:
        raise ValueError(f"it has {count} cells with {len(corners)} corners")
    each = len(corners) // count
    return CellRows(corners.astype(np.int64), np.arange(1, count + 1, dtype=np.int64) * each)


def _rows(dataset: Any, begin: int, count: int) -> npt.NDArray[Any]:
    rows = max(min(count, len(dataset) - begin), 0)
    claimed = float(rows) * dataset.dtype.itemsize * math.prod(dataset.shape[1:])
    check_claim(Path(dataset.file.filename), claimed, f"{rows} rows of {dataset.name}")
    if begin < 0 or count < 0 or rows != count:
        raise ValueError(f"its {dataset.name} has {len(dataset)} rows where {begin} to {begin + count} should be")
    return np.asarray(dataset[begin : begin + count])


def open_frames(run_dir: Path) -> FrameSeries:
    """Open the frames of a run folder.

    Parameters
    ----------
    run_dir : Path
        Folder with ``frames.pvd`` or ``frames.vtkhdf``, of a finished, running or stopped run.

    Returns
    -------
    FrameSeries
        Times, names of parts, and ``read(number, part)``.

    Raises
    ------
    VizError
        When there are no frames, or they cannot be read.
    """
    run_dir = Path(run_dir)
    if not run_dir.is_dir() or (run_dir / "sweep.json").is_file():
        raise VizError(no_run(run_dir))
    series: FrameSeries
    if (run_dir / "frames.pvd").is_file():
        series = PvdFrames(run_dir / "frames.pvd")
    elif (run_dir / "frames.vtkhdf").is_file():
        series = HdfFrames(run_dir / "frames.vtkhdf")
    else:
        raise VizError(f"{run_dir} holds neither frames.pvd nor frames.vtkhdf; give the folder of a run that recorded frames.")
    if not series.times:
        raise VizError(f"{series.path} lists no frames; the run ended before its first one.")
    return series

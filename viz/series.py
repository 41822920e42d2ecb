"""Read the frames of a run in any format."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from viz.claims import check_claim
from viz.errors import VizError
from viz.vtk_hdf import import_h5py
from viz.vtk_series import read_part, read_pvd

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


class PvdFrames:
    """Frames of a PVD series."""

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


class HdfFrames:
    """Frames in VTKHDF, also of a running or killed run: those that all parts have."""

    def __init__(self, path: Path) -> None:
        h5py = import_h5py()
        self.path = path
        self._files: dict[str, Any] = {}
        try:
            with h5py.File(path, "r", locking=False) as index:
                self.parts = list(index["VTKHDF/Assembly"])
                links = {name: _part_file(h5py, index["VTKHDF"], name) for name in self.parts}
            for name, link in links.items():
                self._files[name] = h5py.File(path.parent / link, "r", locking=False)["VTKHDF"]
            counts = [int(group["Steps"].attrs["NSteps"]) for group in self._files.values()]
            self.times = [float(t) for t in self._files[self.parts[0]]["Steps/Values"][: min(counts)]]
        except (OSError, KeyError, AttributeError) as error:
            raise VizError(f"{path} cannot be read as frames of a run ({error}); was a file moved or cut short?") from error

    def read(self, number: int, part: str) -> pyvista.DataSet:
        """Read a part of a frame."""
        import pyvista

        if part not in self._files:
            raise VizError(f"{self.path} lists no part {part!r}; it has {', '.join(self.parts)}.")
        group = self._files[part]
        steps = group["Steps"]
        own = int(steps["PartOffsets"][number])  # of this frame if the topology changes, else 0
        n_points = int(group["NumberOfPoints"][own])
        points = _rows(group["Points"], int(steps["PointOffsets"][number]), n_points)
        data: Any
        if group.attrs["Type"] == b"UnstructuredGrid":
            n_cells = int(group["NumberOfCells"][0])
            corners = _rows(group["Connectivity"], 0, len(group["Connectivity"])).reshape(n_cells, -1)
            data = pyvista.UnstructuredGrid({int(group["Types"][0]): corners}, points)
        else:
            data = pyvista.PolyData()
            data.points = points
            for section, name in (("Vertices", "verts"), ("Lines", "lines"), ("Polygons", "faces")):
                count = int(group[section]["NumberOfCells"][own])
                if count:
                    where = int(steps["CellOffsets"][number][0])
                    ids = _rows(group[section]["Connectivity"], where, int(group[section]["NumberOfConnectivityIds"][own]))
                    setattr(data, name, np.insert(ids.reshape(count, -1), 0, ids.size // count, axis=1).ravel())
            n_cells = data.n_cells
        for place, target, count in (("PointData", data.GetPointData(), n_points), ("CellData", data.GetCellData(), n_cells)):
            for name, values in group[place].items():
                target.AddArray(_vtk_array(name, _rows(values, int(steps[f"{place}Offsets/{name}"][number]), count)))
        return data


def _part_file(h5py: Any, root: Any, name: str) -> str:
    """File of a part: its group links to the data there, or, in runs of an older femsim, is a link itself."""
    link = root.get(name, getlink=True)
    return str((link if isinstance(link, h5py.ExternalLink) else root[name].get("Points", getlink=True)).filename)


def _rows(dataset: Any, begin: int, count: int) -> npt.NDArray[Any]:
    rows = max(min(count, len(dataset) - begin), 0)
    claimed = float(rows) * dataset.dtype.itemsize * math.prod(dataset.shape[1:])
    check_claim(Path(dataset.file.filename), claimed, f"{rows} rows of {dataset.name}")
    return np.asarray(dataset[begin : begin + count])


def _vtk_array(name: str, values: npt.NDArray[Any]) -> Any:
    """Return a vtkDataArray; pyvista itself refuses arrays without rows."""
    from vtkmodules.util.numpy_support import numpy_to_vtk

    array: Any = numpy_to_vtk(values, deep=True)  # type: ignore[no-untyped-call]
    if values.ndim == 2:
        array.SetNumberOfComponents(values.shape[1])
    array.SetName(name)
    return array


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
    if not run_dir.is_dir():
        raise VizError(f"the run folder {run_dir} does not exist; give the folder that a run wrote.")
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

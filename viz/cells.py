"""Build VTK data sets from plain arrays that were read from a file; what VTK would stumble over is refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import pyvista

__all__ = ["SECTIONS", "CellRows", "Field", "make_data_set"]

#: Kinds of cells of a polygonal data set, in the order of their cell data, and their fewest corners.
SECTIONS = {"Verts": 1, "Lines": 2, "Polys": 3, "Strips": 3}
#: Corners of the kinds of cells of a grid, by VTK's number of the kind: so many, or (`_SOME`) at least so many.
_CORNERS = {1: 1, 3: 2, 5: 3, 8: 4, 9: 4, 10: 4, 11: 8, 12: 8, 13: 6, 14: 5, 21: 3, 22: 6, 23: 8, 24: 10, 25: 20}
_SOME = {2: 1, 4: 2, 7: 3}
_FEWEST, _EXACT = np.zeros(256, dtype=np.int64), np.zeros(256, dtype=bool)
for _kind, _count in (_CORNERS | _SOME).items():
    _FEWEST[_kind], _EXACT[_kind] = _count, _kind in _CORNERS


class CellRows(NamedTuple):
    """Cells: corners of all in a row, where each ends, and their kinds in a grid."""

    connectivity: npt.NDArray[Any]
    offsets: npt.NDArray[Any]
    types: npt.NDArray[Any] | None = None


class Field(NamedTuple):
    """A field: "PointData" or "CellData", its name, its rows, names of its components."""

    place: str
    name: str
    values: npt.NDArray[Any]
    components: tuple[str, ...] = ()


def make_data_set(points: npt.NDArray[Any], rows: Mapping[str, CellRows], fields: Sequence[Field]) -> pyvista.DataSet:
    """Build a data set.

    Parameters
    ----------
    points : ndarray, shape (n, 3)
        Positions [m].
    rows : mapping of str to CellRows
        Cells by section, see `SECTIONS`; one entry "" with the kinds of cells is an unstructured grid.
    fields : sequence of Field
        Values at points and cells.

    Raises
    ------
    ValueError
        A corner that is no point, ends that do not fit, a cell with too few corners, a field of another length.
    """
    import pyvista
    from vtkmodules.util.numpy_support import numpy_to_vtk
    from vtkmodules.vtkCommonCore import vtkPoints
    from vtkmodules.vtkCommonDataModel import vtkPolyData, vtkUnstructuredGrid

    if points.ndim != 2 or points.shape[1] != 3 or points.dtype.kind != "f":
        raise ValueError(f"its points are {points.dtype} of shape {points.shape}, and not three numbers each")
    if not np.isfinite(points).all():
        raise ValueError(f"its point {int(np.argmin(np.isfinite(points).all(axis=1)))} is not finite")
    for name, cells in rows.items():
        _check(name, cells, len(points))
    grid = "" in rows
    data: Any = vtkUnstructuredGrid() if grid else vtkPolyData()
    places = vtkPoints()
    places.SetData(numpy_to_vtk(np.ascontiguousarray(points), deep=True))  # type: ignore[no-untyped-call]
    data.SetPoints(places)
    for name, cells in rows.items():
        if grid:
            assert cells.types is not None
            kinds = numpy_to_vtk(np.ascontiguousarray(cells.types, dtype=np.uint8), deep=True)  # type: ignore[no-untyped-call]
            data.SetCells(kinds, _cell_array(cells))
        else:
            getattr(data, f"Set{name}")(_cell_array(cells))
    counts = {"PointData": len(points), "CellData": sum(len(cells.offsets) for cells in rows.values())}
    targets = {"PointData": data.GetPointData(), "CellData": data.GetCellData()}
    for field in fields:
        if len(field.values) != counts[field.place] or field.values.ndim > 2:
            raise ValueError(f"its field {field.name!r} has {len(field.values)} rows where {counts[field.place]} should be")
        targets[field.place].AddArray(_vtk_array(field))
    found: pyvista.DataSet = pyvista.wrap(data)
    return found


def _check(name: str, cells: CellRows, n_points: int) -> None:
    """Refuse cells whose corners are no points, or that have too few of them."""
    corners, ends = cells.connectivity, cells.offsets
    if corners.ndim != 1 or ends.ndim != 1 or corners.dtype.kind not in "iu" or ends.dtype.kind not in "iu":
        raise ValueError("its cells are no whole numbers")
    if corners.size and not (corners.min() >= 0 and corners.max() < n_points):
        raise ValueError(f"a cell has point {corners.max() if corners.max() >= n_points else corners.min()} of {n_points}")
    if (ends[-1] if ends.size else 0) != corners.size:
        raise ValueError(f"its cells end at {ends[-1] if ends.size else 0} of {corners.size} corners")
    if ends.size and (ends.min() < 0 or ends.max() > corners.size):
        raise ValueError("a cell ends outside of its corners")
    counts = np.empty(len(ends), dtype=np.int64)
    counts[:1], counts[1:] = ends[:1], ends[1:].astype(np.int64) - ends[:-1]
    if cells.types is None:
        if name not in SECTIONS:
            raise ValueError("its cells have no kinds")
        fewest: npt.NDArray[Any] = np.full(counts.shape, SECTIONS[name])
        exact = np.zeros(counts.shape, dtype=bool)
    else:
        if len(cells.types) != len(counts):
            raise ValueError(f"it has {len(cells.types)} kinds of {len(counts)} cells")
        kinds = cells.types.astype(np.uint8)
        fewest, exact = _FEWEST[kinds], _EXACT[kinds]
        if not fewest.all():
            raise ValueError(f"a cell is of kind {cells.types[np.argmin(fewest)]}, which frames do not have")
    bad = (counts < fewest) | (exact & (counts != fewest))
    if bad.any():
        raise ValueError(f"cell {int(np.argmax(bad))} has {counts[np.argmax(bad)]} corners")


def _cell_array(cells: CellRows) -> Any:
    from vtkmodules.util.numpy_support import numpy_to_vtk
    from vtkmodules.vtkCommonDataModel import vtkCellArray

    width = np.int32 if len(cells.connectivity) < 2**31 else np.int64
    ends = np.zeros(len(cells.offsets) + 1, dtype=width)
    ends[1:] = cells.offsets
    corners = cells.connectivity.astype(width, copy=False)
    array = vtkCellArray()
    array.SetData(numpy_to_vtk(ends, deep=True), numpy_to_vtk(corners, deep=True))  # type: ignore[no-untyped-call]
    return array


def _vtk_array(field: Field) -> Any:
    """Return a vtkDataArray; pyvista itself refuses arrays without rows."""
    from vtkmodules.util.numpy_support import numpy_to_vtk

    array: Any = numpy_to_vtk(np.ascontiguousarray(field.values), deep=True)  # type: ignore[no-untyped-call]
    if field.values.ndim == 2:
        array.SetNumberOfComponents(field.values.shape[1])
    array.SetName(field.name)
    for number, name in enumerate(field.components):
        array.SetComponentName(number, name)
    return array

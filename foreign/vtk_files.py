"""Points, cells and fields of VTK XML files, by VTK. Call it through `foreign.call`: a damaged file may end the process."""

from __future__ import annotations

from typing import Any

import numpy as np

from foreign.child import Refused


def read_vtk(path: str) -> dict[str, Any]:
    """Read a .vtu or .vtp file of any layout that VTK reads.

    Parameters
    ----------
    path : str
        The file.

    Returns
    -------
    dict
        ``points`` (n, 3); ``sections``: names of the kinds of cells, ``""`` of a grid, which also has ``types``;
        ``SECTION connectivity`` and ``SECTION offsets``, the ends of its cells; ``PointData`` and ``CellData``: name of each
        field and names of its components; ``PointData N`` the values of field N.
    """
    from vtkmodules.util import numpy_support
    from vtkmodules.vtkIOXML import vtkXMLPolyDataReader, vtkXMLUnstructuredGridReader

    to_numpy: Any = numpy_support.vtk_to_numpy
    wrong: list[str] = []
    reader: Any = vtkXMLPolyDataReader() if path.lower().endswith(".vtp") else vtkXMLUnstructuredGridReader()
    for source in (reader, reader.GetReaderErrorObserver(), reader.GetParserErrorObserver()):
        if source is not None:
            source.AddObserver("ErrorEvent", lambda *_: wrong.append("VTK cannot read it"))
    reader.SetFileName(path)
    reader.Update()
    data = reader.GetOutput()
    if wrong or data is None or (data.GetPoints() is None and data.GetNumberOfCells()):
        raise Refused("VTK cannot read it")
    points = data.GetPoints()
    out: dict[str, Any] = {
        "points": np.zeros((0, 3)) if points is None else to_numpy(points.GetData()),
        "sections": [],
    }
    grid = bool(data.IsA("vtkUnstructuredGrid"))
    sections = (
        {"": data.GetCells()} if grid else {name: getattr(data, f"Get{name}")() for name in ("Verts", "Lines", "Polys", "Strips")}
    )
    for name, cells in sections.items():
        if grid or (cells is not None and cells.GetNumberOfCells()):
            out["sections"].append(name)
            out[f"{name} connectivity"] = to_numpy(cells.GetConnectivityArray()).astype(np.int64)
            out[f"{name} offsets"] = to_numpy(cells.GetOffsetsArray()).astype(np.int64)[1:]
    if grid:
        kinds = data.GetCellTypes() if hasattr(data, "GetCellTypes") else None
        out["types"] = np.zeros(0, np.uint8) if kinds is None else to_numpy(kinds)
    for place, held in (("PointData", data.GetPointData()), ("CellData", data.GetCellData())):
        out[place] = []
        for number in range(held.GetNumberOfArrays()):
            array = held.GetArray(number)
            if array is not None:  # texts are no fields
                out[f"{place} {len(out[place])}"] = to_numpy(array)
                labels = [array.GetComponentName(k) for k in range(array.GetNumberOfComponents())]
                out[place].append([str(array.GetName()), [label for label in labels if label is not None]])
    return out

"""Read the frames of a run as VTK's own reader does, in a process of its own: it ends the process where a file is wrong."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

_LOOK = """
import json, sys
import vtk
from vtk.util.numpy_support import vtk_to_numpy
vtk.vtkObject.GlobalWarningDisplayOff()

def look(path):
    reader = vtk.vtkHDFReader()
    reader.SetFileName(path)
    reader.UpdateInformation()
    key = vtk.vtkStreamingDemandDrivenPipeline.TIME_STEPS()
    info = reader.GetOutputInformation(0)
    times = [info.Get(key, k) for k in range(info.Length(key))]
    steps = reader.GetNumberOfSteps()
    out = {"times": times, "steps": steps, "points": [], "fields": []}
    for time in times or [0.0]:
        reader.UpdateTimeStep(time)
        data = reader.GetOutputDataObject(0)
        blocks = [data]
        if data.IsA("vtkCompositeDataSet"):
            it = data.NewIterator()
            it.InitTraversal()
            blocks = []
            while not it.IsDoneWithTraversal():
                blocks.append(it.GetCurrentDataObject())
                it.GoToNextItem()
        out["points"].append([one.GetNumberOfPoints() for one in blocks])
        out["fields"].append([one.GetPointData().GetNumberOfArrays() + one.GetCellData().GetNumberOfArrays() for one in blocks])
        sums = [float(abs(vtk_to_numpy(one.GetPoints().GetData())).sum()) for one in blocks if one.GetNumberOfPoints()]
        assert all(value == value for value in sums)
    return out

print(json.dumps({path: look(path) for path in sys.argv[1:]}))
"""


def seen_by_vtk(folder: Path) -> dict[str, dict]:
    """What vtkHDFReader sees in the file of all parts, "frames", and in that of each part: times, steps, points, fields."""
    paths = [folder / "frames.vtkhdf", *sorted((folder / "frames").glob("*.vtkhdf"))]
    done = subprocess.run([sys.executable, "-c", _LOOK, *map(str, paths)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return {Path(path).stem: found for path, found in json.loads(done.stdout).items()}

"""The series opened by the real program; skipped where ParaView is absent."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from test_vtk_series import make_frame, make_series

CHECK = """
import json, sys
from paraview.simple import PVDReader, OpenDataFile, UpdatePipeline, servermanager

def facts(reader, times):
    found = []
    for time in times:
        UpdatePipeline(time, reader)
        data = servermanager.Fetch(reader)
        blocks = {}
        if data.IsA("vtkCompositeDataSet"):
            for i in range(data.GetNumberOfBlocks()):
                # ParaView keeps the name= of a DataSet in the meta data of its block.
                blocks[data.GetMetaData(i).Get(data.NAME())] = data.GetBlock(i)
        else:
            blocks["only"] = data
        found.append({name: describe(block) for name, block in blocks.items()})
    return found

def describe(block):
    while block.IsA("vtkCompositeDataSet"):
        block = block.GetBlock(0)
    arrays = {}
    for place, fields in (("point", block.GetPointData()), ("cell", block.GetCellData())):
        for i in range(fields.GetNumberOfArrays()):
            array = fields.GetArray(i)
            arrays[place + " " + array.GetName()] = [array.GetNumberOfComponents(), array.GetNumberOfTuples()]
    return {
        "points": block.GetNumberOfPoints(),
        "cells": block.GetNumberOfCells(),
        "arrays": arrays,
        "bounds": block.GetBounds(),
    }

result = {}
for key, reader in (("pvd", PVDReader(FileName=sys.argv[1])), ("series", OpenDataFile(sys.argv[2]))):
    times = list(reader.TimestepValues)
    result[key] = {"times": times, "frames": facts(reader, times)}
json.dump(result, open(sys.argv[3], "w"))
"""


def run_in_paraview(arguments: list[str], folder: Path) -> None:
    """Run CHECK; Debian's ParaView has no off-screen rendering, but reading needs none."""
    program = shutil.which("pvpython")
    if program is None:
        pytest.skip("ParaView's pvpython is not on the PATH (Debian: apt-get install paraview python3-paraview)")
    script = folder / "check.py"
    script.write_text(CHECK)
    # ParaView brings its own Python: nothing of the virtual environment may reach it.
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "VIRTUAL_ENV"))}
    child = subprocess.run([program, str(script), *arguments], env=environment, capture_output=True, text=True, timeout=180)
    assert child.returncode == 0, child.stdout + child.stderr


def test_paraview_opens_the_series(tmp_path):
    times = [0.0, 0.1 + 0.2, 0.5, 2.25]
    with make_series(tmp_path) as series:
        for number, time in enumerate(times):
            series.write_frame(time, make_frame(number))
    result_file = tmp_path / "result.json"
    series_file = tmp_path / "frames" / "ball.vtu.series"
    run_in_paraview([str(tmp_path / "frames.pvd"), str(series_file), str(result_file)], tmp_path)
    result = json.loads(result_file.read_text())

    assert result["pvd"]["times"] == times
    assert result["series"]["times"] == times
    for number, blocks in enumerate(result["pvd"]["frames"]):
        frame = make_frame(number)
        assert list(blocks) == ["ball", "pad", "contacts"]
        n_contacts = number % 3
        assert [blocks[name]["points"] for name in blocks] == [5, 4, n_contacts]
        assert [blocks[name]["cells"] for name in blocks] == [2, 2, n_contacts]
        assert blocks["ball"]["arrays"] == {
            "point velocity": [3, 5],
            "point marker": [1, 5],
            "cell von_mises": [1, 2],
        }
        assert blocks["contacts"]["arrays"] == {
            "point force": [3, n_contacts],
            "point gap": [1, n_contacts],
            "point state": [1, n_contacts],
        }
        points = np.asarray(frame["ball"].points)
        expected = np.column_stack([points.min(axis=0), points.max(axis=0)]).ravel()
        np.testing.assert_allclose(blocks["ball"]["bounds"], expected, rtol=1e-15)
        np.testing.assert_allclose(result["series"]["frames"][number]["only"]["bounds"], expected, rtol=1e-15)

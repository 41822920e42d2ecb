"""ParaView's own Python, where it is installed."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

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

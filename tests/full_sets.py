"""The full sets of others' data, which are no part of this repository: their tests run where FEMSIM_FULL_SETS names the folder.

It holds `fclib/` (FCLib files and check_fc.py), `experiments/` (dragonskin_beam/, elastomer_tensile/) and `cable_winding/`.
Everything else is tested on the small files in data/.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import fclib_check
import pytest

FOLDER = os.environ.get("FEMSIM_FULL_SETS")
DATA = Path(__file__).resolve().parents[1] / "data"
REASON = "FEMSIM_FULL_SETS names no folder with the full sets"
needs_full_sets = pytest.mark.skipif(FOLDER is None, reason=REASON)


def full_set(name: str) -> Path:
    """Folder of a full set.

    Raises
    ------
    FileNotFoundError
        The folder that FEMSIM_FULL_SETS names does not hold it.
    """
    if FOLDER is None:
        pytest.skip(REASON)
    if not (Path(FOLDER) / name).is_dir():
        raise FileNotFoundError(f"FEMSIM_FULL_SETS is {FOLDER}, which holds no {name}/; name the folder that does, or unset it.")
    return Path(FOLDER) / name


#: Judges of solutions of FCLib problems: our own, and the one that comes with the full set.
CHECKERS = ("ours", pytest.param("external", marks=needs_full_sets))


def checker(name: str) -> Any:
    """Return a checker with ``matrix(m, n, i, j, x)``, ``read_problem(path)`` and ``check(problem, r, v)``."""
    if name == "ours":
        return fclib_check
    path = full_set("fclib") / "check_fc.py"
    spec = importlib.util.spec_from_file_location("check_fc", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    write, sys.dont_write_bytecode = sys.dont_write_bytecode, True  # it is not ours: leave its folder as it is
    try:
        spec.loader.exec_module(module)
    finally:
        sys.dont_write_bytecode = write
    return SimpleNamespace(
        matrix=module.Mat,
        read_problem=lambda path: module.read_problem(str(path)),
        check=lambda problem, r, v=None: module.check(problem, r, None, v),
    )

"""Files written whole: a temporary name first, then a rename, so that readers see the old file or the new one."""

from __future__ import annotations

import difflib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from foreign.whole import replacing, temporary_name
from viz.fonts import with_fonts

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["no_run", "replace_file", "replacing", "save_figure", "temporary_name"]

_BINARY = getattr(os, "O_BINARY", 0)  # Windows
#: Without a date, so that equal figures are equal files.
_UNDATED: dict[str, dict[str, Any]] = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
#: Runs that are named where another was meant.
NAMED = 5


def no_run(path: Path) -> str:
    """Say of something that is not the folder of a run what it is and what to give."""
    if path.suffix == ".py" and path.is_file():
        return f"{path} is a scene, not the folder of a run; run it first: femsim run {path}"
    if path.is_file():
        if (path.parent / "run.json").is_file():
            return f"{path} is a file of the run {path.parent}; give that folder."
        return f"{path} is a file; give the folder that a run wrote."
    if (path / "sweep.json").is_file():
        return (
            f"{path} is the folder of a sweep, not of a run: its runs are in {path / 'cases'}; draw it by femsim plot {path}, "
            "go on with it by femsim sweep --resume."
        )
    if (path / "calibration.json").is_file():
        return (
            f"{path} is the folder of a calibration, not of a run: its page is {path / 'report.html'}; "
            "go on with it by femsim calibrate --resume."
        )
    if path.is_dir():
        return f"{path} is not a run folder (it has no run.json); give the folder that a run wrote."
    return f"the run folder {path} does not exist; {_runs_near(path)}"


def _runs_near(path: Path) -> str:
    """Name the runs beside a folder that is not there: the one with nearly its name, else the latest ones."""
    try:
        beside = {folder.name: folder for folder in path.parent.iterdir() if (folder / "run.json").is_file()}
        latest = sorted(beside, key=lambda name: (beside[name] / "run.json").stat().st_mtime, reverse=True)
    except OSError:
        latest = []
    near = difflib.get_close_matches(path.name, latest, 1, 0.6)
    if near:
        return f"did you mean {path.parent / near[0]}?"
    runs = f" The latest {'run' if len(latest) == 1 else 'runs'} there: {', '.join(latest[:NAMED])}." if latest else ""
    return f"give the folder that a run wrote.{runs}"


def replace_file(path: str, data: bytes) -> None:
    """Write bytes to a file in one step.

    Raises
    ------
    OSError
        When it cannot be written in full.
    """
    with replacing(path) as temporary:
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | _BINARY, 0o666)
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(handle, rest) :]
        finally:
            os.close(handle)


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure of matplotlib in the format of the path's suffix, in one step; an SVG with the fonts that it uses."""
    with replacing(path) as temporary:
        figure.savefig(temporary, metadata=_UNDATED.get(path.suffix, {}))
        if path.suffix == ".svg":
            drawn = Path(temporary)
            drawn.write_text(with_fonts(drawn.read_text(encoding="utf-8")), encoding="utf-8")

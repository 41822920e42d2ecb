"""Mend a run folder that a kill, a full disk or a lost process left: what is whole of it can then be read by everything."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from femsim.base.errors import InputError, naming_parameters
from femsim.base.files import replacing, write_json
from femsim.run.folder import hold_folder, refuse_busy, remove_halves
from foreign.text import read_json
from viz import repair_frames
from viz.ending import how_it_ended
from viz.files import no_run


@naming_parameters
def repair(folder: str | Path) -> list[str]:
    """Mend a run folder: frames that all parts have, tables of whole rows, a status; no half files.

    Parameters
    ----------
    folder : path
        Run folder.

    Returns
    -------
    list of str
        What was done, a sentence each; empty where nothing was wrong.

    Raises
    ------
    InputError
        No run folder, or one that a process is writing into.
    """
    folder = Path(folder)
    if not (folder / "run.json").is_file():
        raise InputError(no_run(folder))
    refuse_busy(folder)
    info = _read_info(folder / "run.json")
    status, message = ("", "") if info is None else how_it_ended(folder, info)  # before the lock, which looks like a run at work
    with hold_folder(folder):
        done = remove_halves(folder)
        done += [text for name in ("steps.csv", "sensors.csv") for text in _cut(folder / name)]
        done += repair_frames(folder)
        if info is None:
            done.append("run.json: cannot be read, and cannot be mended.")
        elif status == "killed":
            message = message[0].upper() + message[1:]
            write_json(folder / "run.json", info | {"status": "failed", "message": message})
            done.append(f"run.json: {message}")
        return done


def _cut(path: Path) -> list[str]:
    """Take away a last row that is not whole."""
    if not path.is_file():
        return []
    lines = path.read_bytes().splitlines(keepends=True)
    whole = [line for line in lines if line.endswith(b"\n") and line.count(b",") == lines[0].count(b",")]
    if len(whole) == len(lines):
        return []
    with replacing(path) as temporary:
        temporary.write_bytes(b"".join(whole))
    return [f"{path.name}: {len(lines) - len(whole)} rows that were not whole taken away."]


def _read_info(path: Path) -> dict[str, Any] | None:
    try:
        info = read_json(path)
    except (OSError, ValueError):
        return None
    return info if isinstance(info, dict) else None

"""Mend the frames of a run that was killed, or whose disk was full, so that every reader opens what is whole of them."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

import foreign
from foreign.hdf5 import check_frames, read_index
from viz.errors import VizError
from viz.files import replace_file
from viz.parts import PartKind
from viz.vtk_hdf import HdfSeries, import_h5py
from viz.vtk_series import index_lines, index_of, series_of

__all__ = ["repair_frames"]


def repair_frames(run_dir: Path) -> list[str]:
    """Mend the frames of a run folder; a sound series stays as it is.

    Parameters
    ----------
    run_dir : Path
        Run folder.

    Returns
    -------
    list of str
        What was done, a sentence each; empty where nothing was wrong.

    Raises
    ------
    VizError
        Nothing of the frames can be read.
    """
    if (run_dir / "frames.pvd").is_file():
        return _repair_pvd(run_dir / "frames.pvd")
    if (run_dir / "frames.vtkhdf").is_file() or list((run_dir / "frames").glob("*.vtkhdf")):
        return _repair_hdf(run_dir)
    return []


def _repair_pvd(path: Path) -> list[str]:
    """List only frames whose files are all there, in lines that can be read, and the same in the .series of the parts."""
    lines = index_lines(path)
    if not lines:  # none of ours
        return []
    missing = {time for _, time, _, file in lines if not _has_content(path.parent / file)}
    kept = [line for line in lines if line[1] not in missing]
    good = [line for line, _, _, _ in kept]
    content = index_of(good)
    late = {path.parent / "frames" / name: text for name, text in series_of(kept, "frames").items()}
    late = {file: text for file, text in late.items() if not file.is_file() or file.read_bytes() != text}
    for file, text in late.items():
        replace_file(str(file), text)
    if content == path.read_bytes():
        return [f"frames: {len(late)} .series files listed other frames than {path.name}."] if late else []
    replace_file(str(path), content)
    if missing:
        return [f"{path.name}: {len(missing)} frames taken out whose files are missing or empty."]
    return [f"{path.name}: damaged lines taken out; {len(good)} are left."]


def _has_content(path: Path) -> bool:
    try:
        return path.stat().st_size > 0
    except (OSError, ValueError):  # a name with a zero byte
        return False


def _repair_hdf(run_dir: Path) -> list[str]:
    """Bring all parts to the frames that each of them has, and link them anew."""
    h5py, done = import_h5py(), []
    names, indexed = _indexed(run_dir / "frames.vtkhdf")
    names = names or sorted(path.stem for path in (run_dir / "frames").glob("*.vtkhdf"))
    parts: dict[str, tuple[PartKind, Any, Any, str]] = {}
    counts: dict[str, int] = {}
    for name in names:
        path = run_dir / "frames" / f"{name}.vtkhdf"
        try:
            foreign.call(check_frames, path.stat().st_size, libraries=["h5py"], paths=[str(path.resolve())])
            with h5py.File(path, "r", locking=False) as file:
                group = file["VTKHDF"]
                count = int(group["Steps"].attrs["NSteps"])
                sound = len(group["Steps/Values"]) == count
                counts[name] = min(count, len(group["Steps/Values"])) if sound else -min(count, len(group["Steps/Values"]))
                parts[name] = _topology(group)
        except (foreign.Refused, OSError, KeyError, RuntimeError, ValueError) as error:
            done.append(f"{path.name} cannot be read ({error}); the frames have no part {name!r} any more.")
            with suppress(OSError):
                path.rename(path.with_suffix(".broken"))
    if not parts:
        raise VizError(f"{run_dir / 'frames'}: no part can be read; nothing can be mended.")
    count = min(abs(one) for one in counts.values())
    if not done and set(counts.values()) == {count} and indexed == dict.fromkeys(names, count):
        return []
    dtype = next(iter(parts.values()))[3]
    series = HdfSeries(run_dir / "frames.vtkhdf", run_dir / "frames", points_dtype=dtype, goes_on=True)  # type: ignore[arg-type]
    for name, (kind, points, cells, _) in parts.items():
        series.add_part(name, points, cells, kind)
    series.go_on({"frames": count, "fields": {}})
    series.close()
    return [*done, f"frames.vtkhdf: {len(parts)} parts of {count} frames each."]


def _indexed(path: Path) -> tuple[list[str], dict[str, int]]:
    """Names of the parts that the file of all parts links, and how many steps it says each has; of older files none."""
    try:
        found = foreign.call(read_index, path.stat().st_size, libraries=["h5py"], path=str(path.resolve()))
    except (OSError, foreign.Refused):
        return [], {}
    return [name for name, _ in found["parts"]], {name: count for name, count in found["parts"] if count >= 0}


def _topology(group: Any) -> tuple[PartKind, Any, Any, str]:
    """Kind of a part, some points of the right number, its cells, and the type of its points."""
    dtype, counts = str(group["Points"].dtype), group["NumberOfPoints"]
    if counts.maxshape[0] is None:
        return "points", None, None, dtype
    points = np.zeros((int(counts[0]), 3))
    if group.attrs["Type"] == b"UnstructuredGrid":
        return "tetra", points, np.asarray(group["Connectivity"]).reshape(-1, 4), dtype
    if int(group["Lines/NumberOfCells"][0]):
        return "line", points, None, dtype
    return "triangle", points, np.asarray(group["Polygons/Connectivity"]).reshape(-1, 3), dtype

"""Compare run folders byte by byte, but for the times in them."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

#: What of run.json is a time, or says which process wrote it.
_TIMES = ("process", "timings_s", "started", "command")


def content(path: Path) -> bytes:
    """Content of a file of a run without the times in it."""
    if path.name == "steps.csv":
        rows = list(csv.reader(io.StringIO(path.read_bytes().decode())))
        kept = [k for k, name in enumerate(rows[0]) if not name.startswith("ms_")]
        return "\n".join(",".join(row[k] for k in kept) for row in rows).encode()
    if path.name == "run.json":  # which libraries of threads are loaded depends on what the process did before
        info = json.loads(path.read_text(encoding="utf-8"))
        info = {name: value for name, value in info.items() if name not in _TIMES}
        for one in (info, info.get("machine", {}), info.get("solver", {})):
            one.pop("machine", None)
        info["health"] = {name: value for name, value in info.get("health", {}).items() if "ms_step" not in name}
        return json.dumps(info, indent=1).encode()
    return path.read_bytes()


def differences(a: Path, b: Path) -> list[str]:
    """Names of the files that only one of two run folders has, or that differ by more than times."""
    files = [{str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()} for folder in (a, b)]
    return sorted(
        name for name in files[0] | files[1] if name not in files[0] & files[1] or content(a / name) != content(b / name)
    )

"""How a run ended, also one that was killed and could not say so: run.json then still says "running"."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from foreign.text import read_json

__all__ = ["heartbeat_age", "how_it_ended", "is_written_to"]

#: A process on another host that has not been heard of for so long (s) counts as gone.
SILENT_S = 120.0


def is_written_to(run_dir: Path, info: Mapping[str, Any]) -> bool:
    """Whether the process that wrote a run folder is still at work there.

    It holds a lock on the folder, which no kill leaves behind. Where there are no locks, or on another host, the process and the
    age of its last word decide.
    """
    process = info.get("process")
    if not isinstance(process, Mapping):
        return info.get("status") == "running"  # of an older femsim: nobody knows
    locked = is_locked(run_dir)
    if locked or info.get("status") != "running":
        return bool(locked)
    if process.get("host") != platform.node():
        return heartbeat_age(process) < SILENT_S
    return locked is None and _is_there(process.get("pid"))


def is_locked(run_dir: Path) -> bool | None:
    """Whether a process holds the lock of a folder; None where folders cannot be locked."""
    try:
        import fcntl

        handle = os.open(run_dir, os.O_RDONLY)
    except (ImportError, OSError):
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return None
    finally:
        os.close(handle)
    return False


def how_it_ended(run_dir: Path, info: Mapping[str, Any]) -> tuple[str, str]:
    """Status and message of a run, with what became of one whose process is gone.

    Parameters
    ----------
    run_dir : Path
        Run folder.
    info : mapping
        Content of its run.json.

    Returns
    -------
    (str, str)
        Those of run.json; of a run that was killed "killed", and at which step.
    """
    status, message = str(info.get("status", "unknown")), str(info.get("message") or "")
    if status != "running" or is_written_to(run_dir, info):
        return status, message
    process, settings = info.get("process"), info.get("settings")
    process = process if isinstance(process, Mapping) else {}
    told = process.get("step")
    step = max(told if isinstance(told, int) else 0, _rows(run_dir / "steps.csv"))
    of = f" of {settings['steps']}" if isinstance(settings, Mapping) and "steps" in settings else ""
    again = "; femsim resume goes on with it" if info.get("call") else ""
    return "killed", f"killed at step {step}{of}: process {process.get('pid')} on {process.get('host')} is gone{again}."


def heartbeat_age(process: Mapping[str, Any]) -> float:
    """Seconds since a run was heard of; infinite where it never was."""
    with suppress(ValueError, TypeError):
        return time.time() - datetime.fromisoformat(str(process.get("heartbeat"))).timestamp()
    return float("inf")


def read_ending(run_dir: Path) -> tuple[str, str]:
    """Status and message of a run folder; ("unknown", "") where it has no run.json that can be read."""
    try:
        info = read_json(run_dir / "run.json")
    except (OSError, ValueError):
        return "unknown", ""
    return how_it_ended(run_dir, info) if isinstance(info, dict) else ("unknown", "")


def _rows(path: Path) -> int:
    """Whole rows of a table, without its header."""
    try:
        with path.open("rb") as file:
            return max(0, sum(block.count(b"\n") for block in iter(lambda: file.read(1 << 20), b"")) - 1)
    except OSError:
        return 0


def _is_there(pid: object) -> bool:
    try:
        os.kill(int(str(pid)), 0)
    except (ValueError, OverflowError, ProcessLookupError):
        return False
    except OSError:  # it is another's
        return True
    return True

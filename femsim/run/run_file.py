"""run.json of a run: written at the start, every few seconds, and however the run ends."""

from __future__ import annotations

import os
import platform
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from femsim.base.files import write_json

#: The run says so often (s) that it is alive and how far it came.
BEAT_S = 5.0


class RunFile:
    """run.json, with the process that writes it and when it was last heard of.

    Parameters
    ----------
    folder : Path, optional
        Run folder; None writes nothing.
    info : dict
        Its content; changed here.
    handle : int
        Descriptor of the folder, or -1, see :func:`~femsim.run.folder.hold_folder`.
    """

    clock = staticmethod(time.monotonic)

    def __init__(self, folder: Path | None, info: dict[str, Any], handle: int = -1) -> None:
        self.folder, self.info, self._handle = folder, info, handle
        before = info.get("process", {})
        resumed = [*before.get("resumed", []), {"at": _now(), "step": before.get("step", 0)}] if before else []
        self._process = {"pid": os.getpid(), "host": platform.node(), "resumed": resumed}
        self._last = self.clock()
        self.set_step(int(before.get("step", 0)))

    def set_step(self, step: int) -> None:
        """Note how far the run is, and when."""
        self.info["process"] = self._process | {"step": step, "heartbeat": _now()}

    def beat(self, step: int) -> None:
        """Say that the run is alive, when it is time to."""
        if self.folder is not None and self.clock() - self._last > BEAT_S:
            self.set_step(step)
            self.write()

    def write(self) -> None:
        """Write the file.

        Raises
        ------
        OSError
            It cannot be written.
        """
        self._last = self.clock()
        if self.folder is not None:
            write_json(self.folder / "run.json", self.info)

    def write_last(self) -> None:
        """Write the file after a fault as far as that is possible, also where the folder was moved to."""
        try:
            self.write()
        except OSError:
            with suppress(OSError):
                if self._handle >= 0:
                    write_json(Path(f"/proc/self/fd/{self._handle}") / "run.json", self.info)


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S%z")

"""Files written whole, and in a thread beside the caller."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

__all__ = ["Worker", "replace_file"]

_BINARY = getattr(os, "O_BINARY", 0)  # Windows


class Worker:
    """Does one task after another; the error of a task is raised by the next call.

    Parameters
    ----------
    background : bool
        Work in a thread while the caller continues. Otherwise each task is done, or fails, in `start`.
    """

    def __init__(self, background: bool) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="frames") if background else None
        self._running: Future[None] | None = None

    def wait(self) -> None:
        """Wait for the last task, and raise its error if it failed."""
        running = self._running
        if running is None:
            return
        try:
            running.result()
        finally:
            if running.done():
                self._running = None

    @property
    def busy(self) -> bool:
        """Whether a task is running, or has ended without a `wait`."""
        return self._running is not None

    def start(self, work: Callable[[], None]) -> None:
        """Wait for the previous task, then start this one."""
        self.wait()
        if self._pool is None:
            work()
        else:
            self._running = self._pool.submit(work)

    def close(self) -> None:
        """Wait for the last task, end the thread, and raise the error of that task if it failed."""
        if self._pool is not None:
            self._pool.shutdown()
        self.wait()


def replace_file(path: str, data: bytes) -> None:
    """Write a file under a temporary name and rename it: readers see the old or the new one, whole.

    Raises
    ------
    OSError
        When it cannot be written in full.
    """
    folder, name = os.path.split(path)
    temporary = os.path.join(folder, f".{name}.tmp")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | _BINARY, 0o666)
    try:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(handle, rest) :]
    finally:
        os.close(handle)
    os.replace(temporary, path)

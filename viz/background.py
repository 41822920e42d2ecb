"""Work in a thread beside the caller."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

__all__ = ["Worker"]


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

    @property
    def settled(self) -> bool:
        """Whether no task is running: all that was started has been done, or has failed."""
        return self._running is None or self._running.done()

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

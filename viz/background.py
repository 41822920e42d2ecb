"""Work in a thread beside the caller."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

__all__ = ["Worker"]


class Worker:
    """Does one piece of work after the other, each when the one before it is done; an error comes with the next call.

    Parameters
    ----------
    background : bool
        Work in a thread while the caller goes on. Otherwise each piece is done, or fails, where it is given.
    """

    def __init__(self, background: bool) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="frames") if background else None
        self._running: Future[None] | None = None

    def wait(self) -> None:
        """Wait until the piece that was given last is done, and raise its error if it failed."""
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
        """Whether a piece is being done, or was and nobody waited for it."""
        return self._running is not None

    def start(self, work: Callable[[], None]) -> None:
        """Wait for the piece before, then start this one."""
        self.wait()
        if self._pool is None:
            work()
        else:
            self._running = self._pool.submit(work)

    def close(self) -> None:
        """Wait for the last piece, end the thread, and raise the error of that piece if it failed."""
        if self._pool is not None:
            self._pool.shutdown()
        self.wait()

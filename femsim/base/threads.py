"""Threads of the numerical libraries: as many as a run asks for, whatever the environment says."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress

from femsim.base.errors import InputError


@contextmanager
def blas_threads(count: int) -> Iterator[None]:
    """Let BLAS and OpenMP use so many threads inside the block.

    Sums that are divided among threads are rounded otherwise, so results are the same bits only for the same number.

    Parameters
    ----------
    count : int
        Threads, at least 1.

    Raises
    ------
    InputError
        Another number.
    """
    with BlasThreads(count).limit():
        yield


class BlasThreads:
    """Limits as :func:`blas_threads` does, again and again: the libraries are looked for once, since that takes milliseconds.

    Parameters
    ----------
    count : int
        Threads, at least 1.
    """

    def __init__(self, count: int) -> None:
        check_threads(count)
        self.count, self._controller = count, None
        with suppress(ImportError):  # an installation from before it was needed; femsim doctor names it
            from threadpoolctl import ThreadpoolController

            ThreadpoolController().info()  # libraries that are asked load their threads: the next one finds those too
            self._controller = ThreadpoolController()

    def limit(self) -> AbstractContextManager[object]:
        """Limit the threads inside a block."""
        return nullcontext() if self._controller is None else self._controller.limit(limits=self.count)


def check_threads(count: int) -> None:
    """Refuse a number of threads that cannot be; InputError."""
    most = os.cpu_count() or 1
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= max(most, 64):
        raise InputError(f"threads is {count!r}; allowed are whole numbers from 1 to {max(most, 64)}, here best at most {most}.")


def pools() -> list[dict[str, object]]:
    """Libraries with threads that are loaded: name, version and number of threads, for run.json; empty without threadpoolctl."""
    try:
        from threadpoolctl import threadpool_info
    except ImportError:
        return []
    return [
        {"library": p.get("internal_api"), "version": p.get("version"), "threads": p["num_threads"]} for p in threadpool_info()
    ]

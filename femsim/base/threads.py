"""Threads of the numerical libraries: as many as a run asks for, whatever the environment says."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Lock
from typing import Any

from femsim.base.errors import InputError

#: BLAS has one number of threads in a process: what the blocks that run now ask for, in the order in which they began, and what
#: puts back what was before the first of them.
_lock, _asked, _before = Lock(), list[int](), list[Any]()


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
            self._openmp = self._controller.select(user_api="openmp")

    @contextmanager
    def limit(self) -> Iterator[None]:
        """Limit the threads inside a block. Of blocks that overlap, in several threads, none undoes what another still needs.

        Those that ask for several numbers get that of the last one that began: OpenMP counts for each thread, BLAS for all.
        """
        if self._controller is None:
            yield
            return
        with _lock:
            _let_go()
            found = {one["user_api"]: one["num_threads"] for one in self._openmp.info()}
            own = self._controller.limit(limits=self.count)
            if not _asked:
                _before[:] = [own]
            _asked.append(self.count)
        try:
            yield
        finally:
            with _lock:
                _let_go()
                _asked.remove(self.count)
                if _asked:
                    self._controller.limit(limits=found | {"blas": _asked[-1]})
                else:
                    _before[0].restore_original_limits()
                    self._openmp.limit(limits=found)
                _let_go()


def _let_go() -> None:
    """Let this thread, or the next one, set the threads of OpenBLAS: new threadpoolctl lets the first one alone do so."""
    from threadpoolctl import OpenBLASController

    with suppress(AttributeError):
        OpenBLASController.clear_controlling_thread(force=True)


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

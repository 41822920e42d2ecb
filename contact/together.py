"""Threads that wait for each other inside kernels.

A kernel of a team is compiled with ``nogil=True`` and called at once by every thread, each with its own number. It works on its
share, and meets the others by :func:`wait` before it reads what they wrote. Nothing is added up across threads here: sums are
taken over pieces whose bounds do not depend on the number of threads, so that neither do the bits.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numba
import numpy as np
from numba.core import cgutils, types
from numba.extending import intrinsic

from contact.compiled import njit

#: Looks at a thread that has not come yet, before the processor is given to others.
_LOOKS = 500
#: Numbers of two threads lie on two lines of the processor's cache.
_LINE = 8
#: More meetings than there can be: who waits for them waits no longer.
_NEVER = 2**62
#: Lets another thread run; a function of the operating system.
_give_way = types.ExternalFunction("SwitchToThread" if os.name == "nt" else "sched_yield", types.int32())


@intrinsic
def _seen(_: Any, array: Any, place: Any) -> Any:
    """Read array[place]; what was written before it was published is seen after."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = _pointer(context, builder, signature, arguments)
        return builder.load_atomic(pointer, "acquire", 8)

    return types.int64(array, place), generate


@intrinsic
def _publish(_: Any, array: Any, place: Any, value: Any) -> Any:
    """Write array[place], after all that was written before."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.store_atomic(arguments[2], _pointer(context, builder, signature, arguments), "release", 8)
        return context.get_dummy_value()

    return types.void(array, place, types.int64), generate


def _pointer(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    kind = signature.args[0]
    return cgutils.get_item_pointer(
        context, builder, kind, context.make_array(kind)(context, builder, arguments[0]), [arguments[1]]
    )


@njit(cache=True, inner=True)
def wait(met: np.ndarray, thread: int, threads: int) -> None:
    """Go on when all threads have come here; ``met`` (8 threads,) int64 counts the meetings of each."""
    if threads > 1:
        meeting = met[_LINE * thread] + 1
        _publish(met, np.int64(_LINE * thread), np.int64(meeting))
        for other in range(threads):
            looks = 0
            while _seen(met, np.int64(_LINE * other)) < min(meeting, _NEVER):
                looks += 1
                if looks > _LOOKS:
                    _give_way()


class Team:
    """Threads that run one kernel together; the caller is the first of them.

    Parameters
    ----------
    threads : int
        How many; where kernels are not compiled, one.
    """

    def __init__(self, threads: int) -> None:
        self.threads = 1 if numba.config.DISABLE_JIT else threads
        self.met = np.zeros(_LINE * self.threads, dtype=np.int64)
        self._pool = ThreadPoolExecutor(self.threads - 1) if self.threads > 1 else None

    def run(self, work: Callable[[int], Any]) -> list[Any]:
        """Call ``work(thread)`` in every thread, and return what each returns."""
        if self._pool is None:
            return [work(0)]
        self.met[:] = 0

        def guarded(thread: int) -> Any:
            try:
                return work(thread)
            except BaseException:
                self.met[:] = _NEVER  # nobody waits for a thread that does not come
                raise

        try:
            others = [self._pool.submit(guarded, thread) for thread in range(1, self.threads)]
        except BaseException:  # the system has no more threads
            self.met[:] = _NEVER
            raise
        return [guarded(0), *(other.result() for other in others)]

    def __enter__(self) -> Team:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown()

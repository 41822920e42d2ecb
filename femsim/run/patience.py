"""Steps that take long: a word about them, and an end where the user asks for one."""

from __future__ import annotations

import ctypes
import logging
import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self

from contact.compiled import Kernel

#: A step is spoken of that takes this many times the median of those before, and at least so long (s); again at each doubling.
MANY_TIMES, AT_LEAST = 100.0, 10.0
#: Before there is a median, kernels may be compiled: a step is spoken of that takes at least so long, s.
AT_FIRST = 60.0
#: Steps after which there is a median to compare with.
_KNOWN = 5
#: How often a step in progress is looked at, s.
_LOOK = 0.2
_COMPILES = "; the first steps of a kind of scene compile their kernels, once for all"
_COMPILING = "; it is compiling a kernel, once for all"
_log = logging.getLogger("femsim")


class StepTooLongError(Exception):
    """A step took longer than it may; raised in it, wherever it is, like a KeyboardInterrupt."""


class Patience:
    """Watches how long steps take, from a thread of its own.

    Parameters
    ----------
    limit : float, s, optional
        Longest wall time of a step. Default: no limit.
    """

    clock = staticmethod(time.monotonic)

    def __init__(self, limit: float | None = None) -> None:
        self.limit = limit
        self._lock, self._over = threading.Lock(), threading.Event()
        self._taken: list[float] = []
        self._step, self._time, self._began, self._next_word = 0, 0.0, 0.0, 0.0
        self._stepping = self._fired = False
        self._who = 0
        self._thread = threading.Thread(target=self._watch, name="femsim patience", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    @contextmanager
    def step(self, number: int, end: float) -> Iterator[None]:
        """Watch a step, by its number and the time at its end, s.

        Raises
        ------
        StepTooLongError
            It took longer than ``limit``.
        """
        median = statistics.median(self._taken) if len(self._taken) >= _KNOWN else None
        with self._lock:
            self._step, self._time, self._began = number, end, self.clock()
            self._next_word = AT_FIRST if median is None else max(AT_LEAST, MANY_TIMES * median)
            self._stepping, self._fired, self._who = True, False, threading.get_ident()
        arrived = False
        try:
            yield
        except StepTooLongError:
            arrived = True
            raise
        finally:
            with self._lock:
                self._stepping = False
                fired = self._fired
            if fired and not arrived:
                time.sleep(10.0)  # it is on its way, and arrives here
        self._taken.append(self.clock() - self._began)
        del self._taken[:-1000]

    def _watch(self) -> None:
        while not self._over.wait(_LOOK):
            with self._lock:
                if not self._stepping or self._fired:
                    continue
                taken = self.clock() - self._began
                if self.limit is not None and taken > self.limit:
                    self._fired = True
                    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self._who), ctypes.py_object(StepTooLongError))
                elif taken > self._next_word:
                    self._next_word *= 2.0
                    _log.warning(self._word(taken))

    def _word(self, taken: float) -> str:
        beside = f", {taken / statistics.median(self._taken):.0f} times the median" if len(self._taken) >= _KNOWN else ""
        compiles = (_COMPILING if Kernel.under_way else "") if beside else _COMPILES
        return (
            f"femsim: step {self._step} at {self._time:.4g} s takes long: {taken:.0f} s so far"
            f"{beside}{compiles}. "
            "Ctrl-C ends the run after it, twice at once; --max-step-seconds ends a run by itself, --max-halvings 0 takes each "
            "step as it comes."
        )

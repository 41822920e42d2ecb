"""How a process is asked to end: SIGINT (Ctrl-C), SIGTERM and SIGHUP, which all mean the same here.

The first of them ends a run after the step in progress, the second ends at once; what there is, is written either way. A signal
that the process was told to ignore (``nohup``, jobs in the background of a script) stays ignored.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

#: The signals that ask to end, where the system has them.
ENDING = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))


class Interruption:
    """Whether somebody has asked to end, and by which signal; calling it says so.

    Attributes
    ----------
    number : int
        The signal; 0 before any.
    """

    def __init__(self) -> None:
        self.number = 0

    def __call__(self) -> bool:
        """Say whether somebody has asked."""
        return bool(self.number)


@contextmanager
def interruptible() -> Iterator[Interruption]:
    """Note the first signal in this block, for a loop that ends when it may; a second one raises KeyboardInterrupt."""
    asked = Interruption()

    def handler(number: int, frame: FrameType | None) -> None:
        _leave_terminal(number)
        if asked.number:
            raise KeyboardInterrupt
        asked.number = number

    with _handling(ENDING, handler):
        yield asked


@contextmanager
def ending_at_once() -> Iterator[Interruption]:
    """Let SIGTERM and SIGHUP raise KeyboardInterrupt in this block, as Ctrl-C does, where they would end the process.

    What the block is given says whether one came: a library that is just being loaded may make another exception of it.
    """
    asked = Interruption()

    def handler(number: int, frame: FrameType | None) -> None:
        asked.number = number
        _leave_terminal(number)
        raise KeyboardInterrupt

    with _handling([number for number in ENDING if signal.getsignal(number) == signal.SIG_DFL], handler):
        yield asked


@contextmanager
def ignoring_hangup() -> Iterator[None]:
    """Ignore SIGHUP in this block; processes that are started in it do so for ever."""
    numbers = [number for number in ENDING if number == getattr(signal, "SIGHUP", None)]
    with _handling(numbers, signal.SIG_IGN):
        yield


def end_by(number: int) -> None:
    """End a script that was asked to end while femsim had the word: SIGTERM and SIGHUP without a handler of its own exit.

    SIGINT does not: a script reads ``Run.status``, and Ctrl-C once more ends it.

    Raises
    ------
    SystemExit
        With 128 and the number of the signal, as shells say it.
    """
    if number in ENDING and number != signal.SIGINT and signal.getsignal(number) == signal.SIG_DFL:
        raise SystemExit(128 + number)


@contextmanager
def _handling(numbers: Any, handler: Callable[[int, FrameType | None], None] | signal.Handlers) -> Iterator[None]:
    """Handle some signals in a block, those that are not ignored; outside of the main thread none."""
    previous: dict[int, Any] = {}
    with suppress(ValueError):  # not in the main thread: signals are the caller's business
        for number in numbers:
            if signal.getsignal(number) != signal.SIG_IGN:
                previous[number] = signal.signal(number, handler)
    try:
        yield
    finally:
        for caught, old in previous.items():
            signal.signal(caught, old)


def _leave_terminal(number: int) -> None:
    """After SIGHUP the terminal may be gone, and writing to it an error: output to it goes nowhere from now on."""
    if number != getattr(signal, "SIGHUP", None):
        return
    for stream in (sys.__stdout__, sys.__stderr__):
        with suppress(OSError, ValueError, AttributeError):
            if stream is not None and stream.isatty():
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, stream.fileno())
                os.close(nowhere)

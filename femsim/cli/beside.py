"""A second process that compiles kernels while the first one goes on: a first start takes less time where a core is free.

The run compiles what it calls, in that order. The second process goes through a list of the same from its end, compiles what has
no file yet and ends where the two meet. Both only fill the folder of compiled kernels, so results have the same bits with it and
without; what goes wrong in it is compiled by the run as ever. It ends when the run lets go of its input, however the run ends.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from femsim.base.numba_cache import cache_trouble, folder_in_use
from femsim.cli.kernel_list import Listed, kernels_for, kinds_of, missing, read_types

#: Fewer kernels are compiled sooner than a process starts.
FEWEST = 12
_CHILD = "import sys; from femsim.cli.beside import compile_backwards; compile_backwards(sys.argv[1], frozenset(sys.argv[2:]))"


@contextmanager
def compiling_beside(name: str, scene: Any) -> Iterator[bool]:
    """Let a second process compile in this block, from the last kernel that the scene will need; say whether there is one.

    There is none where few kernels are missing, where there is one core, and where their folder cannot be written.

    Parameters
    ----------
    name : str
        Name of the scene's file without its suffix.
    scene : Scene
        The scene.
    """
    process = _start(name, kinds_of(scene))
    try:
        yield process is not None
    finally:
        if process is not None:
            with suppress(OSError):
                process.kill()
            process.communicate()


def _start(name: str, kinds: frozenset[str]) -> subprocess.Popen[bytes] | None:
    """Start the process, unless there is no need or no place for it."""
    with suppress(OSError, ValueError):  # no list, or no process can be started: the run compiles all
        folder = folder_in_use()
        if folder and not cache_trouble() and _cores() > 1 and len(missing(kernels_for(name, kinds), folder)) >= FEWEST:
            return subprocess.Popen(
                [sys.executable, "-c", _CHILD, name, *sorted(kinds)], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )  # fmt: skip
    return None


def _cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def compile_backwards(name: str, kinds: frozenset[str]) -> None:
    """Compile the kernels for a scene, the last first; the process ends when its input ends.

    Parameters
    ----------
    name : str
        Name of the scene.
    kinds : frozenset of str
        Its kinds of bodies, see :func:`~femsim.cli.kernel_list.kinds_of`.
    """
    threading.Thread(target=_end_with_input, name="femsim end of compiling", daemon=True).start()
    folder = folder_in_use()
    for kernel in reversed(kernels_for(name, kinds)):
        if missing([kernel], folder):  # looked up each time: the run compiles too
            with suppress(Exception):  # a list that is out of date
                _compile(kernel)


def _end_with_input() -> None:
    """End this process when nobody holds the other end of its input any more."""
    while os.read(0, 1):
        pass
    os._exit(0)


def _compile(kernel: Listed) -> None:
    """Compile a kernel for the types of the list, into its file."""
    getattr(importlib.import_module(kernel.module), kernel.name).compile(read_types(kernel.types))

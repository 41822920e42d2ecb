"""How kernels are compiled: numba's ``njit``, without the code that nothing calls.

numba makes three functions of every kernel: the kernel, one that Python calls and one that C calls. The last two take about
a quarter of the time that a kernel needs. No kernel here is called from C, and most are called by kernels only.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import FunctionCache
from numba.core.registry import CPUDispatcher


def njit(*, cache: bool, inner: bool = False, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Decorate a kernel; as ``numba.njit``, without the function for C.

    Parameters
    ----------
    cache : bool
        Keep the compiled code in a file.
    inner : bool
        Only kernels call it: also without the function for Python. A call from Python, as in a test, compiles the kernel once
        more. With ``forceinline=True`` always so.
    **options
        Options of ``numba.njit``.
    """
    options |= {"nopython": True, "no_cfunc_wrapper": True}
    kind = Kernel
    if inner or options.get("forceinline"):
        options["no_cpython_wrapper"] = True
        kind = InnerKernel

    def decorate(function: Callable[..., Any]) -> Any:
        if numba.config.DISABLE_JIT:
            return function
        kernel = kind(function, targetoptions=options)
        if cache:
            kernel.enable_caching()
        return kernel

    return decorate


class Kernel(CPUDispatcher):  # type: ignore[misc]
    """A kernel, compiled without collecting garbage: there is hardly any, and looking for it takes a seventh of the time."""

    def enable_caching(self) -> None:
        """Keep the compiled code in a file."""
        self._cache = KernelCache(self.py_func)

    def compile(self, sig: Any) -> Any:
        """Compile for a signature, unless it has been, or is in a file."""
        if not gc.isenabled():  # also where one kernel compiles another
            return super().compile(sig)
        gc.disable()
        try:
            return super().compile(sig)
        finally:
            gc.enable()


class InnerKernel(Kernel):
    """A kernel that kernels call: its compiled code has no function for Python."""

    @cached_property
    def _for_python(self) -> Any:
        """The same kernel with its function for Python; not cached: the file has room for one of the two."""
        options = {name: value for name, value in self.targetoptions.items() if name != "no_cpython_wrapper"}
        return Kernel(self.py_func, targetoptions=options)

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Call it from Python."""
        return self._for_python(*args, **named)


class KernelCache(FunctionCache):  # type: ignore[misc]
    """The files of a kernel, one process at a time.

    numba reads the index of the signatures, gives a new one the next number and writes both. Two processes that did so at once
    could give two signatures the same file, and a third would run code that takes other arguments.
    """

    def save_overload(self, sig: Any, data: Any) -> None:
        """Write the code for a signature."""
        with one_at_a_time(Path(self.cache_path)):
            super().save_overload(sig, data)


@contextmanager
def one_at_a_time(folder: Path) -> Iterator[None]:
    """Let other processes wait while this one is in the block; where there are no locks, nobody waits."""
    handle = -1
    with suppress(OSError, ImportError):  # ImportError: Windows
        import fcntl

        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(handle, fcntl.LOCK_EX)
    try:
        yield
    finally:
        if handle >= 0:
            os.close(handle)  # and with it the lock

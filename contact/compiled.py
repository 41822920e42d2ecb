"""How kernels are compiled: numba's ``njit``, without the code that nothing calls.

numba makes three functions of every kernel: the kernel, one that Python calls and one that C calls. The last two take about
a quarter of the time that a kernel needs. No kernel here is called from C, and most are called by kernels only.

A sixth of the time went into asking again what the same operator makes of the same types (16 400 of 16 800 questions for the
first step of the main job); here the answers are remembered. A twentieth went into when variables live, found eight times for a
kernel and used once; here it is found where it is used.
"""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from threading import RLock
from typing import Any, ClassVar

import numba
from numba.core import transforms
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.postproc import PostProcessor, VariableLifetime
from numba.core.registry import CPUDispatcher
from numba.core.targetconfig import ConfigStack
from numba.core.types.functions import BaseFunction

from contact.kernel_sources import sources_digest


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

    #: How many kernels are being compiled at the moment, or read from a file.
    under_way: ClassVar[int] = 0
    #: CPU time that it has taken in this process, s.
    spent: ClassVar[float] = 0.0

    _kept = False
    _cache: Any

    def enable_caching(self) -> None:
        """Keep the compiled code in a file, whose place is looked for at the first call: most kernels are never called."""
        self._kept = True

    def compile(self, sig: Any) -> Any:
        """Compile for a signature, unless it has been, or is in a file."""
        started = time.process_time()
        if self._kept and not isinstance(self._cache, KernelCache):
            self._cache = KernelCache(self.py_func)
        Kernel.under_way += 1
        try:
            with _without_garbage(), _SHORTER.on():
                return super().compile(sig)
        finally:
            Kernel.under_way -= 1
            if not Kernel.under_way:
                Kernel.spent += time.process_time() - started

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """Type a call by a kernel: a number that stands there is one like any other, so that it has no code of its own."""
        return super().get_call_template(tuple(map(_number, args)), {name: _number(given) for name, given in kws.items()})


def _number(given: Any) -> Any:
    """Return the type of an argument, of an integer or a truth value without its value."""
    return numba.types.unliteral(given) if isinstance(given, numba.types.IntegerLiteral | numba.types.BooleanLiteral) else given


@contextmanager
def _without_garbage() -> Iterator[None]:
    """Collect no garbage in the block; where one kernel compiles another, this is so already."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


class _Shorter:
    """Two shorter ways through numba, which lead to the same code.

    numba goes through all forms of an operator, up to 60, for each place where a kernel uses it; here answers are remembered. A
    function type never changes once it is made (another form makes another type), and what an answer leaves in it is put back
    each time. Failures are asked again.

    After each of eight passes numba finds which variables live in which block; only the last, which writes their ends into the
    code, reads it. Generators, and what is not compiled, would read more.
    """

    def __init__(self) -> None:
        self._answers: dict[tuple[Any, ...], tuple[Any, Any]] = {}
        self._flags: tuple[Any, str] = (None, "")
        self._depth = 0
        self._lock = RLock()
        self._ask, self._process = BaseFunction.get_call_type, PostProcessor.run

    @contextmanager
    def on(self) -> Iterator[None]:
        """Take them in the block, also in blocks within it and in other threads."""
        with self._lock:
            self._depth += 1
            if self._depth == 1:
                self._ask, self._process = BaseFunction.get_call_type, PostProcessor.run
                BaseFunction.get_call_type = lambda function, *call: self._answer(function, *call)  # type: ignore[method-assign]
                PostProcessor.run = lambda one, *ends, **named: self._after_pass(one, *ends, **named)
        try:
            yield
        finally:
            with self._lock:
                self._depth -= 1
                if self._depth == 0:
                    BaseFunction.get_call_type, PostProcessor.run = self._ask, self._process  # type: ignore[method-assign]

    def _after_pass(self, one: Any, emit_dels: bool = False, extend_lifetimes: bool = False) -> None:
        """Put the blocks of a function in order after a pass, as ``PostProcessor.run`` does."""
        code = one.func_ir
        if emit_dels or code.is_generator:
            self._process(one, emit_dels, extend_lifetimes)
            return
        code.blocks = transforms.canonicalize_cfg(code.blocks)
        code.variable_lifetime = VariableLifetime(code.blocks)  # finds what it is asked for when it is
        code.generator_info = None

    def _answer(self, function: Any, context: Any, args: Any, kws: Any) -> Any:
        """Return the signature of a call, as ``BaseFunction.get_call_type`` does."""
        flags, options = self._flags
        if flags is not (newest := ConfigStack.top_or_none()):  # some functions are compiled for the options of their caller
            options = "" if newest is None else newest.summary()
            self._flags = newest, options
        key = function, context, tuple(args), tuple(kws.items()), options
        known = self._answers.get(key)
        if known is None:
            signature = self._ask(function, context, args, kws)
            self._answers[key] = signature, function.get_impl_key(signature)
            return signature
        signature, implementation = known
        function._impl_keys[signature.args] = implementation
        return signature


_SHORTER = _Shorter()


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


class Fixed:
    """A kernel for one place that calls it with arguments of the same kinds each time: numba asks for the kinds once.

    It takes 0.6 us for each array of a named tuple to find out what it is, ten times what it takes to hand it over. Who calls
    sees to it that arrays have the same type of numbers, are as many-dimensional and are as contiguous as those of the first
    call: nothing asks again, unless ``checks`` is on.

    Parameters
    ----------
    kernel : callable
        The kernel.

    Attributes
    ----------
    checks : bool
        Whether each call is checked, of all such places; for tests.
    """

    checks: ClassVar[bool] = False

    def __init__(self, kernel: Callable[..., Any]) -> None:
        self._kernel, self._kinds = kernel, ()
        self._entry: Callable[..., Any] | None = None

    def __call__(self, *args: Any) -> Any:
        """Call the kernel."""
        if self._entry is None or Fixed.checks:
            return self._asked(args)
        return self._entry(*args)

    def _asked(self, args: tuple[Any, ...]) -> Any:
        """Call it by numba, and keep the compiled code that it has for these kinds."""
        if isinstance(self._kernel, Kernel):
            kinds = tuple(map(self._kernel.typeof_pyval, args))
            if self._kinds and kinds != self._kinds:
                raise TypeError(f"{self._kernel.__name__} was called with {self._kinds} and then with {kinds}")
            self._kinds = kinds
        answer = self._kernel(*args)
        if self._kinds and self._kinds in self._kernel.overloads:
            self._entry = self._kernel.overloads[self._kinds].entry_point
        return answer


class KernelCache(FunctionCache):  # type: ignore[misc]
    """The files of a kernel, one process at a time, and only those of what its code is made of now.

    numba reads the index of the signatures, gives a new one the next number and writes both. Two processes that did so at once
    could give two signatures the same file, and a third would run code that takes other arguments. And it compiles anew where
    the file of a kernel has changed, but not where that of a kernel has which is part of it, see :mod:`contact.kernel_sources`.
    """

    _stamped = False

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Read the code for a signature; None where there is none of these sources."""
        self._stamp()
        return super().load_overload(sig, target_context)

    def save_overload(self, sig: Any, data: Any) -> None:
        """Write the code for a signature."""
        self._stamp()
        with one_at_a_time(Path(self.cache_path)):
            super().save_overload(sig, data)

    def _stamp(self) -> None:
        """Ask for files of these sources alone: at the first call, when all modules are there."""
        if not self._stamped:
            stamp = self._impl.locator.get_source_stamp(), sources_digest(self._py_func.__module__)
            self._cache_file = IndexDataCacheFile(self._cache_path, self._impl.filename_base, stamp)
            self._stamped = True


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

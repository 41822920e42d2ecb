"""Run a reader in a child process that cannot take more memory or time than a file of its size deserves.

The parent keeps one helper process, started with the first call. The helper imports the reader's library and forks a child for
each call; the child sets its limits, reads, and writes plain arrays into a pipe. Children therefore start with warm libraries,
and the helper, which never reads a file, stays healthy. Nothing is pickled: the answer is JSON and the bytes of numbers.
"""

from __future__ import annotations

import array
import importlib
import json
import math
import os
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

#: What a child may take beside what Python and the libraries take: this many times the file, and this many bytes.
TIMES_FILE, BYTES = 20, 150_000_000
#: The answer may be this many times the file (files are compressed) and this many bytes.
ANSWER_TIMES_FILE, ANSWER_BYTES = 10, 40_000_000
#: Processor time, s: for any file, and for each million bytes; wall time is this many times longer, for a busy machine.
SECONDS, SECONDS_A_MEGABYTE, WALL = 2, 1.0, 8

_HEAD = struct.Struct("<Q")
_KINDS = "biuf"
_TOO_MUCH = 1 << 8  # how a child ends that exits with 1, which is for want of memory


class Refused(ValueError):  # noqa: N818 - it reads "the file is refused"
    """A file that cannot be read; the message is the reason, without the file's name."""


#: Environment in which libraries take no addresses in advance: pyarrow takes 1 GB, and each thread's heap 64 MB.
_SPARING = {"ARROW_DEFAULT_MEMORY_POOL": "system", "MALLOC_ARENA_MAX": "1"}


class _Helper:
    """The helper of this process, and the lock of its socket."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.owner = 0
        self.process: subprocess.Popen[bytes] | None = None
        self.socket: socket.socket | None = None

    def start(self) -> socket.socket:
        """Return the socket of a helper that belongs to this process, and not to the one that forked it."""
        if self.socket is not None and self.owner == os.getpid() and self.process is not None and self.process.poll() is None:
            return self.socket
        self.stop()
        ours, theirs = socket.socketpair()
        code = f"import sys; sys.path[:] = {sys.path!r}; from foreign.child import serve; serve({theirs.fileno()})"
        one = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")  # it forks: no threads
        self.process = subprocess.Popen(
            [sys.executable, "-c", code],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is for the parent
            env=os.environ | one | _SPARING,
        )
        theirs.close()
        self.owner, self.socket = os.getpid(), ours
        return ours

    def stop(self) -> None:
        """Let the helper go: it ends when its socket closes."""
        if self.socket is not None:
            self.socket.close()
        if self.process is not None and self.owner == os.getpid():
            with suppress(OSError):
                self.process.kill()
            self.process.wait()
        self.process = self.socket = None


_helper = _Helper()
_inline = False


@contextmanager
def in_this_process() -> Iterator[None]:
    """Run readers without a child inside the block: for files that are known to be good, and for the fuzzer, which has limits."""
    global _inline
    before, _inline = _inline, True
    try:
        yield
    finally:
        _inline = before


def call(
    function: Callable[..., Mapping[str, Any]], size: int, *, libraries: Sequence[str] = (), **arguments: Any
) -> dict[str, Any]:
    """Call a reader in a child.

    Parameters
    ----------
    function : callable
        A function at the top of a module; it returns a mapping of names to arrays of numbers, and to what JSON knows.
    size : int
        Size of the file, bytes; the limits follow from it.
    libraries : sequence of str
        Modules that the helper imports once, so that not every child has to.
    **arguments
        What JSON knows.

    Returns
    -------
    dict
        What the function returned.

    Raises
    ------
    Refused
        The reader raised an error (its text), or the child took too much memory or time or died.
    """
    if _inline or not hasattr(os, "fork") or not sys.executable:
        try:
            return dict(function(**arguments))
        except (Exception, SystemExit) as error:
            raise Refused(_reason(error)) from error
    seconds = SECONDS + SECONDS_A_MEGABYTE * size / 1e6
    request = {
        "module": function.__module__, "function": function.__qualname__, "arguments": arguments, "libraries": list(libraries),
        "memory": TIMES_FILE * size + BYTES, "seconds": seconds, "wall": WALL,
    }  # fmt: skip
    with _helper.lock:
        try:
            answer, status = _asked_twice(request, ANSWER_TIMES_FILE * size + ANSWER_BYTES)
        except BaseException:  # also after Ctrl-C: what is still in the socket belongs to this call
            _helper.stop()
            raise
    return _unpacked(answer, status, seconds)


def _asked_twice(request: dict[str, Any], most: int) -> tuple[bytearray, int]:
    """Ask the helper, and where it was killed a new one, once."""
    for _ in range(2):
        try:
            return _ask(_helper.start(), request, most)
        except OSError:
            _helper.stop()
    raise Refused("the process that reads files of others cannot be started; free some memory")


def _ask(helper: socket.socket, request: dict[str, Any], most: int) -> tuple[bytearray, int]:
    """Send a request, read the answer of the child and how it ended."""
    text = json.dumps(request).encode()
    ours, theirs = os.pipe()
    try:
        helper.sendmsg([_HEAD.pack(len(text))], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [theirs]))])
    except BaseException:
        os.close(ours)
        raise
    finally:
        os.close(theirs)
    answer = bytearray()
    with open(ours, "rb", buffering=0) as pipe:
        helper.sendall(text)
        while len(answer) <= most and (piece := pipe.read(1 << 20)):
            answer += piece
    status = _HEAD.unpack(_exactly(helper, _HEAD.size))[0]
    return (bytearray(), _TOO_MUCH) if len(answer) > most else (answer, status)


def _unpacked(answer: bytearray, status: int, seconds: float) -> dict[str, Any]:
    """Arrays of an answer, without a copy."""
    if status or len(answer) < _HEAD.size:
        _say(status, seconds)
    length = _HEAD.unpack_from(answer)[0]
    head = json.loads(answer[_HEAD.size : _HEAD.size + length])
    if "refused" in head:
        raise Refused(head["refused"])
    values, place = dict(head["data"]), _HEAD.size + length
    for name, kind, shape in head["arrays"]:
        dtype = np.dtype(kind)
        count = math.prod(shape)
        if dtype.kind not in _KINDS or place + count * dtype.itemsize > len(answer):
            raise Refused("the reader broke off")
        values[name] = np.frombuffer(answer, dtype, count, place).reshape(shape)
        place += count * dtype.itemsize
    return values


def _say(status: int, seconds: float) -> NoReturn:
    """Raise Refused for a child that did not answer."""
    import signal

    number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    if number in (signal.SIGXCPU, signal.SIGALRM, signal.SIGKILL):
        raise Refused(f"reading it takes longer than {seconds:.0f} s, which is far too long for its size; it is damaged")
    if number:
        raise Refused(f"the reader crashed on it ({signal.Signals(number).name}); it is damaged")
    raise Refused(f"reading it takes more memory than {TIMES_FILE} times its size and {BYTES / 1e6:.0f} MB; it is damaged")


def _exactly(stream: socket.socket, count: int) -> bytes:
    """Read so many bytes, or raise ConnectionError."""
    parts = b""
    while len(parts) < count:
        piece = stream.recv(count - len(parts))
        if not piece:
            raise ConnectionError("the other side is gone")
        parts += piece
    return parts


# ---------------------------------------------------------------------- the helper and its children


def serve(number: int) -> None:
    """Fork a child for each request that comes in by a socket, until it closes. This is all that the helper does."""
    import gc

    with socket.socket(fileno=number) as stream:
        while True:
            head, descriptors, _, _ = socket.recv_fds(stream, _HEAD.size, 1)
            if not head or not descriptors:
                return
            head += _exactly(stream, _HEAD.size - len(head))
            request = json.loads(_exactly(stream, _HEAD.unpack(head)[0]))
            for library in request["libraries"]:
                with suppress(Exception):  # the child says what is missing
                    importlib.import_module(library)
            gc.freeze()
            child = os.fork()
            if not child:
                stream.detach()
                os.close(number)
                _read(request, descriptors[0])
            os.close(descriptors[0])
            stream.sendall(_HEAD.pack(os.waitpid(child, 0)[1]))


def _read(request: dict[str, Any], pipe: int) -> NoReturn:
    """Be the child: limits, the reader, the answer, the end."""
    import resource
    import signal

    seconds = math.ceil(request["seconds"])
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(request["wall"] * seconds)
    own = _address_space()
    for limit, value in (
        (resource.RLIMIT_AS, own + request["memory"]),
        (resource.RLIMIT_CPU, seconds + math.ceil(sum(resource.getrusage(resource.RUSAGE_SELF)[:2]))),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, 0),
    ):
        with suppress(OSError, ValueError):  # a system may have a lower limit, or none of this kind
            resource.setrlimit(limit, (value, value))
    try:
        function = importlib.import_module(request["module"])
        for name in request["function"].split("."):
            function = getattr(function, name)
        pieces = _packed(function(**request["arguments"]))  # type: ignore[operator]
    except MemoryError:
        os._exit(1)
    except (Exception, SystemExit) as error:
        pieces = _packed({}, refused=_reason(error))
    with open(pipe, "wb") as stream:
        for piece in pieces:
            stream.write(piece)
    os._exit(0)


def _packed(values: Mapping[str, Any], **more: Any) -> list[Any]:
    """Write what a reader found as bytes: the length of a JSON text, the text, the bytes of each array."""
    arrays = {name: np.ascontiguousarray(value) for name, value in values.items() if isinstance(value, np.ndarray)}
    for name, value in arrays.items():
        if value.dtype.kind not in _KINDS:
            raise Refused(f"its {name} holds {value.dtype}, which are no numbers")
    head = {
        "data": {name: value for name, value in values.items() if name not in arrays},
        "arrays": [[name, value.dtype.str, list(value.shape)] for name, value in arrays.items()],
    } | more
    text = json.dumps(head).encode()
    return [_HEAD.pack(len(text)), text, *(value.reshape(-1).view(np.uint8) for value in arrays.values() if value.size)]


def _reason(error: BaseException) -> str:
    """First line of what an error says; its kind where it says nothing."""
    if isinstance(error, SystemExit):
        return "no reader could make sense of it"
    text = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)[:300]
    return text if isinstance(error, (Refused, OSError)) or " " in text else f"{type(error).__name__}: {text}"


def _address_space() -> int:
    """Address space of this process, bytes."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:  # no Linux
        return 4 << 30

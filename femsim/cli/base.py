"""The frame of the command line: the app, shared types of options, and how errors become sentences."""

from __future__ import annotations

import errno
import io
import os
import re
import sys
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TextIO

from cyclopts import App, CycloptsError, MissingArgumentError, Parameter, Token, UnusedCliTokensError

from femsim.base.errors import InputError, number_alone, what_to_do
from femsim.base.place import __version__
from femsim.base.signals import Interruption, ending_at_once
from femsim.base.status import INTERNAL, INTERRUPTED, OK, WRONG_INPUT

_OUTPUT = "standard output"
#: Errors of disks; libraries do not always name the file.
_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)
#: What the words that a command needs look like.
_EXAMPLES = {
    "run": "soft_ball_gripping (femsim scenes lists more)",
    "describe": "soft_ball_gripping (femsim scenes lists more)",
    "sweep": "grip.toml (docs/sweeps.md)",
    "sensitivity": "grip.toml (docs/sweeps.md)",
    "calibrate": "beam.toml (docs/calibration.md)",
    "compare": "runs/soft log.csv",
    "bench": "small",
    "solve": "problem.hdf5",
    "fit-material": "test.csv",
    "play": "soft_ball_gripping",
    "reproduce": "cond --quick",
} | dict.fromkeys(("render", "plot", "report", "view", "paraview", "resume", "repair"), "runs/soft")


def _told(default: object) -> str | None:
    """Default of an option as the help tells it; that nothing is given, and that a flag is not set, goes without saying."""
    return None if default in (None, (), "") or default is False else str(default)


app = App(
    name="femsim",
    version=__version__,
    help="Simulate soft and rigid bodies that are manipulated, in exact Signorini-Coulomb contact. Units are SI.",
    help_epilogue="Exit status: 0 converged, 2 wrong input, 3 some step did not converge or the run is wrong, 130 interrupted, "
    "1 a bug.",
    suppress_keyboard_interrupt=False,
    default_parameter=Parameter(show_default=_told),
)


def _whole(kind: object, tokens: Sequence[Token]) -> int:
    """Read a whole number; cyclopts itself would read 1.5 as 1 without a word."""
    try:
        return int(tokens[0].value)
    except ValueError:
        raise ValueError(f"{tokens[0].value!r} is no whole number") from None


Whole = Annotated[int, Parameter(converter=_whole)]
Flag = Annotated[bool, Parameter(negative=())]
Assignments = Annotated[tuple[str, ...], Parameter(name="--set", negative=())]


@Parameter(name="*")
@dataclass(frozen=True)
class CaseOptions:
    """Options of every command that runs many cases."""

    out: Annotated[Path | None, Parameter(help="Folder of results; default runs/NAME.")] = None
    resume: Annotated[Flag, Parameter(help="Go on with a folder that exists: run what is missing or failed.")] = False
    scheduler: Annotated[
        str | None, Parameter(help="Address of a Dask scheduler, tcp://HOST:PORT; default a cluster of this machine's cores.")
    ] = None
    workers: Annotated[Whole | None, Parameter(help="Processes on this machine; default one a core.")] = None


@Parameter(name="*")
@dataclass(frozen=True)
class SweepOptions(CaseOptions):
    """Options of the commands that run the cases of a sweep file."""

    dry_run: Annotated[Flag, Parameter(help="Only show the cases, and estimate time and disk.")] = False
    yes: Annotated[Flag, Parameter(help="Allow more than 10000 cases.")] = False


def _wrong_input() -> tuple[type[Exception], ...]:
    from contact.errors import ContactError
    from materials.errors import MaterialError
    from meshes.errors import MeshError
    from viz.errors import VizError

    return InputError, MeshError, MaterialError, ContactError, VizError


def main() -> None:
    """Entry point of the ``femsim`` command."""
    _in_utf8()
    sys.exit(execute(sys.argv[1:]))


def _in_utf8() -> None:
    """Start again in UTF-8 mode where names of files are read in another code: in a C locale that Python was told to keep."""
    if sys.getfilesystemencoding().lower() != "utf-8" and not sys.flags.utf8_mode:
        os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])


def execute(arguments: list[str]) -> int:
    """Run a command and return its exit status; every error becomes a sentence.

    Parameters
    ----------
    arguments : list of str
        Words after ``femsim``.
    """
    _open_streams()
    output, sys.stdout = sys.stdout, _Output(sys.stdout)
    try:
        with _plain_warnings(), ending_at_once() as asked:
            status = _sentences(arguments, asked)
            try:
                sys.stdout.flush()
            except OSError as error:
                return _no_output(error)
        return status
    finally:
        sys.stdout = output


@contextmanager
def _plain_warnings() -> Iterator[None]:
    """Print warnings to a user without the line of code that gave them; those of other kinds are shown as ever."""
    shown = warnings.showwarning

    def show(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        if category is UserWarning:
            print(f"femsim: note: {message}", file=sys.stderr)
        else:
            shown(message, category, filename, lineno, file, line)

    warnings.showwarning = show
    try:
        yield
    finally:
        warnings.showwarning = shown


def _sentences(arguments: list[str], asked: Interruption) -> int:
    """Run a command; what goes wrong is printed as a sentence."""
    try:
        status = app(arguments, exit_on_error=False, print_error=False, result_action="return_value")
        return status if isinstance(status, int) else OK
    except CycloptsError as error:
        called = " ".join(error.command_chain or ())
        print(f"femsim: {_said(error, called)} (see 'femsim {f'{called} ' if called else ''}--help')", file=sys.stderr)
        return WRONG_INPUT
    except KeyboardInterrupt:
        print("femsim: interrupted.", file=sys.stderr)
        return INTERRUPTED
    except Exception as error:
        if asked():
            print("femsim: interrupted.", file=sys.stderr)
            return INTERRUPTED
        if isinstance(error, _wrong_input()):
            print(f"femsim: {error}", file=sys.stderr)
            return WRONG_INPUT
        if isinstance(error, BrokenPipeError) or (isinstance(error, OSError) and error.filename == _OUTPUT):
            return _no_output(error)
        if isinstance(error, OSError) and (error.filename or error.errno in _DISK):
            what = error.filename or f"a file, perhaps of {os.environ.get('NUMBA_CACHE_DIR', 'the compiled kernels')}"
            print(f"femsim: {what}: {error.strerror}; {what_to_do(error)}.", file=sys.stderr)
            return WRONG_INPUT
        traceback.print_exc()
        print("femsim: this is a bug in femsim; please report it with the lines above and the command you gave.", file=sys.stderr)
        return INTERNAL


#: What people try, and what does it here.
OTHER_WORDS = {
    **dict.fromkeys(("film", "movie", "video", "animate", "picture", "pictures"), "femsim render RUN makes pictures and a film"),
    **dict.fromkeys(("simulate", "start", "sim", "exec", "execute"), "femsim run SCENE simulates"),
    **dict.fromkeys(("show", "gui", "open", "live", "watch"), "femsim view RUN shows a run in the browser"),
    **dict.fromkeys(("list", "ls", "examples"), "femsim scenes lists the scenes that come with femsim"),
    **dict.fromkeys(("figure", "figures", "graph", "chart"), "femsim plot RUN draws its curves"),
    **dict.fromkeys(("info", "params", "parameters", "inspect"), "femsim describe SCENE lists the parameters of a scene"),
    **dict.fromkeys(("optimize", "optimise", "identify", "fit"), "femsim calibrate FILE fits parameters to logs"),
    **dict.fromkeys(("continue", "restart"), "femsim resume RUN goes on with a run"),
    **dict.fromkeys(("check", "diagnose", "test"), "femsim doctor says what works on this machine"),
    **dict.fromkeys(("export", "convert", "save"), "femsim run writes frames that ParaView opens and tables (CSV)"),
    "help": "femsim --help lists the commands",
}


def _said(error: CycloptsError, called: str) -> str:
    """Say what is wrong with the words of a command, in our words where those of cyclopts are a programmer's."""
    text = " ".join(str(error).split())
    name = error.argument.name.lstrip("-") if error.argument is not None else ""
    if isinstance(error, MissingArgumentError) and "requires an argument" in text:
        if error.keyword is not None:
            return f"{error.keyword} is given without a value."
        return f"{called} needs {name.upper()}, for instance: femsim {called} {_EXAMPLES.get(called, name.upper())}"
    if isinstance(error, UnusedCliTokensError) and error.unused_tokens:
        return (
            f"{called} takes no further word, but {' '.join(error.unused_tokens)!r} is given; options are written --NAME VALUE."
        )
    unknown = re.match(r'Unknown command "(\w+)"', text)
    if unknown and unknown[1].lower() in OTHER_WORDS:
        return f"there is no command {unknown[1]!r}; {OTHER_WORDS[unknown[1].lower()]}."
    wrong = re.fullmatch(r'Invalid value for (\S+): unable to convert "(.*)" into float(?:\|Literal\[(\w+)\])?(\|None)?\.', text)
    if wrong:
        hint = number_alone(wrong[2])
        kind = f"a number{f' or {wrong[3]}' if wrong[3] else ''}"
        return f"{wrong[1]} is {wrong[2]!r}, but must be {kind}{f': write it {hint}' if hint else ''}."
    return text


def _no_output(error: OSError) -> int:
    """Say that standard output cannot be written, unless its reader has just had enough; return the exit status."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    with suppress(OSError, ValueError):  # what is waiting would be tried again when Python ends
        os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
    if isinstance(error, BrokenPipeError):
        return OK
    print(
        f"femsim: standard output: {error.strerror}; results in files are complete. Send it elsewhere, or use --quiet.",
        file=sys.stderr,
    )
    return WRONG_INPUT


class _Output(io.TextIOBase):
    """Standard output whose errors name it, as those of files name the file; None, where it is closed, gives only errors."""

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write."""
        with named_output():
            if self._stream is None:
                raise OSError(errno.EBADF, os.strerror(errno.EBADF))
            return self._stream.write(text)

    def flush(self) -> None:
        """Flush."""
        with named_output():
            if self._stream is not None:
                self._stream.flush()

    def fileno(self) -> int:
        """Return the descriptor."""
        if self._stream is None:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        return self._stream.fileno()

    def isatty(self) -> bool:
        """Whether it is a terminal."""
        return self._stream is not None and self._stream.isatty()

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """Encoding of what is written."""
        return "utf-8" if self._stream is None else self._stream.encoding


@contextmanager
def named_output() -> Iterator[None]:
    """Name standard output in the errors of the block."""
    try:
        yield
    except OSError as error:
        error.filename = _OUTPUT
        raise


def _open_streams() -> None:
    """Fill the places of standard streams that are closed, which the next file that is opened would take."""
    if None not in (sys.stdin, sys.stdout, sys.stderr):
        return
    while True:
        handle = os.open(os.devnull, os.O_RDWR)
        if handle > 2:
            os.close(handle)
            break
    sys.stdin = sys.stdin or open(os.devnull, encoding="utf-8")
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")

"""The frame of the command line: the app, shared types of options, and how errors become sentences."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import App, CycloptsError, Parameter, Token

from femsim.base.errors import InputError
from femsim.base.place import __version__
from femsim.base.status import INTERNAL, INTERRUPTED, OK, WRONG_INPUT

app = App(
    name="femsim",
    version=__version__,
    help="Simulate soft and rigid bodies that are manipulated, in exact Signorini-Coulomb contact. Units are SI.",
    help_epilogue="Exit status: 0 converged, 2 wrong input, 3 some step did not converge or the run is wrong, 130 interrupted, "
    "1 a bug.",
    suppress_keyboard_interrupt=False,
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
    sys.exit(execute(sys.argv[1:]))


def execute(arguments: list[str]) -> int:
    """Run a command and return its exit status; every error becomes a sentence.

    Parameters
    ----------
    arguments : list of str
        Words after ``femsim``.
    """
    try:
        status = app(arguments, exit_on_error=False, print_error=False, result_action="return_value")
        sys.stdout.flush()
        return status if isinstance(status, int) else OK
    except BrokenPipeError:  # the reader of our output has stopped reading
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except CycloptsError as error:
        print(f"femsim: {' '.join(str(error).split())} (see 'femsim --help')", file=sys.stderr)
        return WRONG_INPUT
    except KeyboardInterrupt:
        print("femsim: interrupted.", file=sys.stderr)
        return INTERRUPTED
    except Exception as error:
        if isinstance(error, _wrong_input()):
            print(f"femsim: {error}", file=sys.stderr)
            return WRONG_INPUT
        if isinstance(error, OSError) and error.filename:
            print(
                f"femsim: {error.filename}: {error.strerror}; free the disk or choose another folder by --out.", file=sys.stderr
            )
            return WRONG_INPUT
        traceback.print_exc()
        print("femsim: this is a bug in femsim; please report it with the lines above and the command you gave.", file=sys.stderr)
        return INTERNAL

"""What a benchmark compares: solvers with options, solvers of users, and sets of problems, all named on one line."""

from __future__ import annotations

import ast
import runpy
import signal
import threading
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

from contact import SOLVERS, ContactError, make_solver
from contact.compiled import Kernel
from femsim.base.errors import InputError, did_you_mean
from femsim.base.place import data_folder

#: Folders of ``data/`` with problems, by the name of the set: our own small ones, one of each kind.
SETS = {"small": "problems"}
_FILES = (".hdf5", ".h5")
#: Shortest time between two looks at the clock, s.
_SHORTEST = 1e-3
#: Time after which a block that is over its time, and goes on, is asked again, s; and one that compiles a kernel.
_AGAIN, _COMPILING = 0.5, 0.05


class Entrant(NamedTuple):
    """A solver with options.

    Attributes
    ----------
    label : str
        As it was written, ``name:option=value:...``; rows and curves carry it.
    name : str
        Name in ``contact.SOLVERS``.
    options : dict
        Options that were written.
    """

    label: str
    name: str
    options: dict[str, Any]


def read_entrant(text: str) -> Entrant:
    """Read ``name:option=value:option=value``; values are Python numbers, True, False, None, or words.

    Raises
    ------
    InputError
        Unknown solver, a part that is no option=value, or an option that is given twice.
    """
    name, *parts = (part.strip() for part in text.split(":"))
    if name not in SOLVERS:
        raise InputError(f"solver {name!r} is unknown{did_you_mean(name, SOLVERS)} See 'femsim solvers'.")
    options: dict[str, Any] = {}
    for part in parts:
        option, sign, value = (piece.strip() for piece in part.partition("="))
        if not (option and sign and value):
            raise InputError(f"{text!r} has the part {part!r}; write a solver as name:option=value, for instance admm:every=1.")
        if option in options:
            raise InputError(f"{text!r} gives the option {option!r} twice; give it once.")
        try:
            options[option] = ast.literal_eval(value[:1].upper() + value[1:] if value in ("true", "false", "none") else value)
        except (ValueError, SyntaxError):
            options[option] = value
    return Entrant(text, name, options)


def read_entrants(solvers: Sequence[str] | None, common: dict[str, Any], leave_out: str) -> list[Entrant]:
    """Read all solvers and check their options once.

    Parameters
    ----------
    solvers : sequence of str, optional
        As :func:`read_entrant` reads them. Default all but ``leave_out`` and presets of others.
    common : dict
        Options of all; their own ones come first.
    leave_out : str
        Name of a solver that is not compared unless it is named.

    Raises
    ------
    InputError, ContactError
        No solver, an unknown one, or an option that is unknown or out of range.
    """
    default = (name for name, entry in SOLVERS.items() if name != leave_out and not entry.preset_of)
    texts = list(dict.fromkeys(solvers if solvers is not None else default))
    if not texts:
        raise InputError(f"no solver was named; there are {', '.join(SOLVERS)}.")
    entrants = [read_entrant(text) for text in texts]
    entrants = [entrant._replace(options=common | entrant.options) for entrant in entrants]
    for entrant in entrants:
        make_solver(entrant.name, **entrant.options)
    return entrants


def expand_sets(problems: Sequence[str | Path], known: Sequence[str] = ()) -> list[Path]:
    """Replace folders, and names of :data:`SETS`, by the problem files in them, sorted; scenes and files stay.

    Parameters
    ----------
    problems : sequence of path
        Files, scenes, folders and names of sets.
    known : sequence of str
        Names that are scenes, which come before sets of the same name.

    Raises
    ------
    InputError
        A folder without problems.
    """
    expanded: list[Path] = []
    for problem in map(Path, problems):
        named = str(problem) in SETS and str(problem) not in known and not problem.exists()
        folder = data_folder(SETS[str(problem)]) if named else problem
        if not folder.is_dir():
            expanded.append(problem)
            continue
        files = sorted(file for file in folder.iterdir() if file.suffix in _FILES)
        if not files:
            raise InputError(f"the folder {folder} has no problem ({' or '.join(_FILES)}); name another one.")
        expanded += files
    return expanded


def load_plugin(path: str | Path) -> list[str]:
    """Run a Python file that registers solvers by :func:`femsim.register_solver`; return their names.

    Parameters
    ----------
    path : path
        The file. It runs with the rights of the user, as scene files do.

    Raises
    ------
    InputError
        A file that is missing, fails, or registers nothing.
    """
    path, before = Path(path), dict(SOLVERS)
    if not path.is_file():
        beside = [str(file) for file in path.parent.glob("*.py")]
        raise InputError(f"the plugin {str(path)!r} does not exist{did_you_mean(str(path), beside)}")
    try:
        runpy.run_path(str(path))
    except ContactError as error:
        raise InputError(f"the plugin {path}: {error}") from error
    except (Exception, SystemExit) as error:
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
        line = lines[-1] if lines else getattr(error, "lineno", None)
        place = f"{path}, line {line}" if line else f"{path}"
        raise InputError(f"the plugin {place}: {type(error).__name__}: {error}; correct the file.") from error
    added = [name for name, entry in SOLVERS.items() if before.get(name) is not entry]
    if not added:
        raise InputError(f"the plugin {path} registers no solver; call femsim.register_solver(name, function) in it.")
    return added


@contextmanager
def limited(seconds: float | None) -> Iterator[None]:
    """Raise TimeoutError in the block after some seconds of CPU time of the process.

    Compiled code is not interrupted: the error comes when it returns. Nor is compiling, since numba drops an error that is raised
    in what LLVM calls back, and then lacks the code; its time does not count. In other threads than the first, and where the
    system has no such timer, there is no limit.
    """
    if seconds is None or threading.current_thread() is not threading.main_thread() or not hasattr(signal, "SIGALRM"):
        yield
        return
    end, over = time.process_time() - Kernel.spent + seconds, False

    def look(number: int, frame: FrameType | None) -> None:
        left = end + Kernel.spent - time.process_time()
        if over:
            return
        if Kernel.under_way:
            signal.setitimer(signal.ITIMER_REAL, max(left, _COMPILING))
            return
        if left <= 0.0:
            # once more later, since Python drops an error that is raised while it deletes an object
            signal.setitimer(signal.ITIMER_REAL, _AGAIN)
            raise TimeoutError
        # a timer of wall time, since one of CPU time makes the clock of the process coarse on some systems
        signal.setitimer(signal.ITIMER_REAL, max(left, _SHORTEST))

    before = signal.signal(signal.SIGALRM, look)
    signal.setitimer(signal.ITIMER_REAL, max(seconds, _SHORTEST))
    try:
        yield
    finally:
        over = True
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)

"""The run folder: made before a run, put back where the run does not start, rid of what it replaced when it is complete."""

from __future__ import annotations

import hashlib
import itertools
import os
import platform
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from femsim.base.errors import InputError
from femsim.base.files import is_free
from foreign.text import read_json
from foreign.whole import is_at_work
from viz.ending import is_locked, is_written_to
from viz.files import no_run


@dataclass(frozen=True)
class TakenFolder:
    """A run folder that this process made or found empty, and holds.

    Attributes
    ----------
    folder : Path
        The folder.
    handle : int
        See :func:`hold_folder`.
    replaced : Path or None
        Where the run lies that it replaces.
    found : bool
        It was there, and empty.
    """

    folder: Path
    handle: int
    replaced: Path | None
    found: bool

    def give_back(self) -> None:
        """Leave things as they were, since the run does not start: an old run comes back, an empty folder stays."""
        if not self.found:
            _undo_folder(self.folder, self.replaced)
            return
        for path in self.folder.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def take_folder(folder: Path, overwrite: bool, held: ExitStack) -> TakenFolder:
    """Make the run folder, or take an empty one, and hold it; an old run is set aside until the new one is complete.

    Parameters
    ----------
    folder : Path
        Run folder.
    overwrite : bool
        Replace a run that is there.
    held : ExitStack
        Holds the folder from now on.

    Raises
    ------
    InputError
        It is not empty and must stay, another process holds it, or it cannot be written.
    """
    found = folder.is_dir() and is_free(folder)
    replaced = _prepare_folder(folder, overwrite)
    # where another process took it since, it is no longer ours to undo
    return TakenFolder(folder, held.enter_context(hold_folder(folder)), replaced, found)


def _prepare_folder(folder: Path, overwrite: bool) -> Path | None:
    """Make the run folder or take an empty one; an old run is set aside. Return where it went."""
    replaced = None
    if not is_free(folder):
        refuse_busy(folder)
        if folder.resolve() in (Path.cwd(), *Path.cwd().parents):
            raise InputError(f"the output folder {folder} is the one you are in; choose another by --out.")
        if not overwrite:
            raise InputError(
                f"the output folder {folder} exists; choose another by --out, or replace it by --overwrite (in Python "
                "overwrite=True)."
            )
        if not (folder / "run.json").is_file():
            raise InputError(
                f"the folder {folder} is not a run (it has no run.json), so it is not replaced; choose another by --out."
            )
    try:
        if not is_free(folder):
            # never the name of one that an earlier run set aside and then did not complete
            replaced = next(name for name in _replaced_names(folder) if not name.exists())
            folder.rename(replaced)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / ".writable").touch()
        (folder / ".writable").unlink()
    except OSError as error:
        if replaced is not None and replaced.exists():
            _undo_folder(folder, replaced)
        raise InputError(f"the output folder {folder} cannot be written ({error.strerror}); choose another by --out.") from error
    return replaced


def _undo_folder(folder: Path, replaced: Path | None) -> None:
    """Remove the folder of a run that did not start, and put the old run back."""
    shutil.rmtree(folder, ignore_errors=True)
    if replaced is not None:
        replaced.rename(folder)


def remove_halves(folder: Path) -> list[str]:
    """Remove files and folders that a killed process had half written under another name; return a sentence for each.

    What a process is writing just now, such as a comparison beside a run that goes on, stays.
    """
    done = []
    for path in sorted(folder.rglob(".*.tmp*")):
        if any(is_at_work(part) for part in (path, *path.parents)):
            continue
        if path.is_dir():  # of a comparison
            shutil.rmtree(path)
            done.append(f"{path.name}: half a folder, removed.")
        elif path.exists():  # not in a folder that is gone by now
            path.unlink()
            done.append(f"{path.name}: half a file, removed.")
    return done


def refuse_busy(folder: Path) -> None:
    """Refuse a run folder that another process is writing into.

    Raises
    ------
    InputError
        Names the process.
    """
    info: Any = {}
    with suppress(OSError, ValueError):
        info = read_json(folder / "run.json")
    process = info.get("process") if isinstance(info, dict) else None
    if is_locked(folder) or (process and is_written_to(folder, info)):
        known = process if isinstance(process, dict) else None
        if known and (known.get("pid"), known.get("host")) == (os.getpid(), platform.node()):
            raise InputError(
                f"a simulation or run of this process is writing into the run folder {folder}; close() it first, or choose "
                "another by --out."
            )
        who = f"process {known.get('pid')} on {known.get('host')}" if known else "another process"
        raise InputError(f"{who} is writing into the run folder {folder}; wait until it ends, or choose another by --out.")


@contextmanager
def hold_folder(folder: Path, refuse: Callable[[Path], None] = refuse_busy) -> Iterator[int]:
    """Hold the lock of a folder, which tells other processes that this one writes into it; no kill leaves it behind.

    Parameters
    ----------
    folder : Path
        Folder of results.
    refuse : callable
        ``refuse(folder)`` raises where another process holds it; default for run folders.

    Yields
    ------
    int
        Descriptor of the folder, wherever it is moved to; -1 where the system has no locks of folders.

    Raises
    ------
    InputError
        Another process holds it.
    """
    try:
        import fcntl

        handle = os.open(folder, os.O_RDONLY)
    except (ImportError, OSError):  # no locks of folders on this system
        yield -1
        return
    try:
        with suppress(OSError):  # some file systems have no locks
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                refuse(folder)
        yield handle
    finally:
        os.close(handle)


def digest_of(data: bytes) -> str:
    """Digest of a file's content."""
    return hashlib.blake2b(data, digest_size=32).hexdigest()


def _replaced_names(folder: Path) -> Iterator[Path]:
    """Names of runs set aside, in the order of use."""
    folder = Path(os.path.abspath(folder))  # "." has no name
    name = f".{folder.name}.replaced"
    yield folder.with_name(name)
    yield from (folder.with_name(f"{name}-{number}") for number in itertools.count(2))


def remove_replaced(folder: Path) -> None:
    """Remove all runs that were set aside for this one, which is complete."""
    for path in itertools.takewhile(Path.exists, _replaced_names(folder)):
        if path.is_symlink():
            path.unlink()
        else:
            shutil.rmtree(path)


def read_scene(path: Path) -> bytes:
    """Read a scene file; InputError where it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"the scene file {path} cannot be read ({error.strerror}); correct scene_path.") from error


def read_run_json(folder: Path) -> Any:
    """Read run.json of a run folder; InputError where there is none, or it cannot be read."""
    if not (folder / "run.json").is_file():
        raise InputError(no_run(folder))
    try:
        return read_json(folder / "run.json")
    except (OSError, ValueError) as error:
        raise InputError(f"{folder / 'run.json'} cannot be read ({error}); run the scene again.") from error

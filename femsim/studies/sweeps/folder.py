"""The folder of results of a sweep or calibration: refused, held while one works on it, begun."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

from femsim.base.errors import InputError
from femsim.base.files import is_free, write_errors
from femsim.run.folder import hold_folder


def check_folder(folder: Path, what: str, *, resume: bool) -> None:
    """Refuse a folder of results that is not empty, or that holds something else.

    Parameters
    ----------
    folder : Path
        Folder of results.
    what : str
        What it should hold, "sweep" or "calibration"; it then has a file WHAT.json.
    resume : bool
        Whether to continue in it.

    Raises
    ------
    InputError
        It is not empty and ``resume`` is not set, or it holds other files but not this one, or it is not a folder.
    """
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file, not a folder; choose another by --out.")
    if not is_free(folder) and not resume:
        raise InputError(f"the folder {folder} exists; go on with it by --resume, or choose another by --out.")
    if folder.exists() and not (folder / f"{what}.json").is_file() and any(folder.iterdir()):
        raise InputError(f"the folder {folder} is no {what} (it has no {what}.json); choose another by --out.")


def hold_results(folder: Path) -> AbstractContextManager[int]:
    """Hold a folder of results, which one sweep or calibration at a time works on.

    Raises
    ------
    InputError
        Another process holds it.
    """
    return hold_folder(folder, _refuse_shared)


def _refuse_shared(folder: Path) -> None:
    raise InputError(f"another process is working on the folder {folder}; wait until it ends, or choose another by --out.")


@contextmanager
def begun_folder(folder: Path, held: ExitStack | None) -> Iterator[None]:
    """Make a folder of results and write what it begins with; of a new one nothing is left where that fails.

    Parameters
    ----------
    folder : Path
        Folder of results.
    held : ExitStack or None
        Holds a new folder from now on; None for one that is there and held.

    Raises
    ------
    InputError
        It cannot be written, or another process has just made it.
    """
    with write_errors(f"the folder {folder}", "choose another by --out"):
        folder.mkdir(parents=True, exist_ok=held is None)  # one that came since it was looked for is not ours to remove
        if held is not None:
            held.enter_context(hold_results(folder))
        try:
            yield
        except OSError:
            if held is not None:
                shutil.rmtree(folder, ignore_errors=True)
            raise

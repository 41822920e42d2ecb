"""Files and folders that no reader ever sees half-written: filled under a temporary name, then renamed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


def temporary_name(path: str | Path) -> str:
    """Return the name under which a file is written: beside it, with its suffix and the number of this process.

    By the suffix programs choose a format; by the number two processes do not write into each other's file.
    """
    folder, name = os.path.split(path)  # a frame has many files, and parts of a Path take 20 us
    stem, suffix = os.path.splitext(name)
    return os.path.join(folder, f".{stem}.{os.getpid()}.tmp{suffix}")


@contextmanager
def replacing(path: str | Path) -> Iterator[str]:
    """Write a file, or a new folder, in one step: the block fills a temporary name, which then takes the path's place.

    Until then, and when the block raises, the path stays as it was; what the block has written is then removed.

    Parameters
    ----------
    path : str or Path
        File to write or replace, or folder to make (it must not exist).

    Yields
    ------
    str
        See :func:`temporary_name`.

    Raises
    ------
    OSError
        The file cannot be written; ``filename`` is the path, not the temporary name.
    """
    temporary = temporary_name(path)
    try:
        yield temporary
        os.replace(temporary, path)
    except BaseException as error:  # no temporary file stays, also not after Ctrl-C
        with suppress(OSError):
            shutil.rmtree(temporary) if os.path.isdir(temporary) else os.unlink(temporary)
        if isinstance(error, OSError) and error.errno is not None and error.filename in (None, temporary):
            error.filename = str(path)
        raise

"""Files and folders that no reader ever sees half-written: filled under a temporary name, then renamed."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

#: A process that is at work adds something within this time, s; numbers of processes are used again.
_LATELY_S = 600.0


def temporary_name(path: str | Path) -> str:
    """Return the name under which a file is written: beside it, with its suffix and the number of this process.

    By the suffix programs choose a format; by the number two processes do not write into each other's file.
    """
    folder, name = os.path.split(path)  # a frame has many files, and parts of a Path take 20 us
    stem, suffix = os.path.splitext(name)
    return os.path.join(folder, f".{stem}.{os.getpid()}.tmp{suffix}")


def is_at_work(temporary: str | Path) -> bool:
    """Whether the process that a temporary name belongs to is there still, another one than this, and wrote to it lately.

    Processes of other machines are not seen.
    """
    name = re.fullmatch(r"\..*\.([0-9]{1,9})\.tmp(\..*)?", os.path.basename(temporary))
    if name is None or int(name[1]) in (0, os.getpid()):
        return False
    try:
        if time.time() - os.stat(temporary).st_mtime > _LATELY_S:
            return False
        os.kill(int(name[1]), 0)
    except PermissionError:  # of another user
        return True
    except OSError:
        return False
    return True


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

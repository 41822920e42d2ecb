"""Files and folders that are whole or not there: written under a temporary name, then renamed."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from femsim.base.errors import InputError
from foreign import whole


def is_file(path: Path) -> bool:
    """Whether a path that a file names is a file; False also for names that no file can have, such as those that are too long."""
    return os.path.isfile(path)


def is_free(folder: Path) -> bool:
    """Whether results can go into a folder: none of this name is there, or an empty one, as tempfile makes them."""
    try:
        return not folder.exists() or not any(folder.iterdir())
    except OSError:  # a file, or a folder that may not be read
        return False


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Write a file, or a new folder, in one step: the block fills a temporary name, which then takes the path's place.

    As :func:`foreign.whole.replacing`, with a Path.
    """
    with whole.replacing(path) as temporary:
        yield Path(temporary)


@contextmanager
def named_errors(path: Path) -> Iterator[None]:
    """Name the file in each OSError of the block that does not: writing to an open file gives such errors."""
    try:
        yield
    except OSError as error:
        if error.errno is not None and error.filename is None:
            error.filename = str(path)
        raise


def check_output(path: Path, advice: str) -> None:
    """Refuse an output file that cannot be made, before the work whose result it takes.

    Parameters
    ----------
    path : Path
        File to write; an existing one will be replaced.
    advice : str
        What the user can do.

    Raises
    ------
    InputError
        It is a folder, or lies in one that does not exist.
    """
    if path.is_dir() or not path.parent.is_dir():
        reason = "is a folder" if path.is_dir() else "lies in a folder that does not exist"
        raise InputError(f"the output {path} {reason}; {advice}.")


@contextmanager
def write_errors(what: object, advice: str) -> Iterator[None]:
    """Turn an OSError of the block into "WHAT cannot be written (REASON); ADVICE.".

    Parameters
    ----------
    what : object
        Path, or words such as "the folder runs/a".
    advice : str
        What the user can do.

    Raises
    ------
    InputError
        In place of an OSError.
    """
    try:
        yield
    except OSError as error:
        raise InputError(f"{what} cannot be written ({error.strerror or error}); {advice}.") from error


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Write a JSON file in one step; arrays become lists, and what JSON does not know becomes text."""
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(content, indent=2, default=_plain) + "\n", encoding="utf-8")


def plain_json(value: Any) -> Any:
    """Return what comes back of a value when it is written as JSON and read again."""
    return json.loads(json.dumps(value, default=_plain))


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    return str(value)

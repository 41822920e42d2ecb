"""Files in TOML that users write: reading, and the sentences of their checker."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from femsim.base.errors import InputError, did_you_mean


def read_toml(path: Path, what: str) -> dict[str, Any]:
    """Read a file.

    Parameters
    ----------
    path : Path
        TOML file.
    what : str
        What it is, for the message.

    Raises
    ------
    InputError
        It cannot be read, or is no TOML.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"the {what} {path} cannot be read ({error.strerror}); name a TOML file.") from error
    except ValueError as error:  # also not UTF-8
        raise InputError(f"{path} is no TOML: {error}.") from error


def error_sentence(entry: Any, where: str, keys: Iterable[str]) -> str:
    """Turn an error of pydantic into a sentence that names the key and what is allowed.

    Parameters
    ----------
    entry : dict
        One of ``ValidationError.errors()``.
    where : str
        Place of the key in the file.
    keys : iterable of str
        Keys that are allowed at that place.
    """
    message = str(entry["msg"]).removeprefix("Value error, ")
    if entry["type"] == "extra_forbidden":
        return f"{where}: the key is unknown{did_you_mean(str(entry['loc'][-1]), keys)}"
    if entry["type"] == "missing":
        return f"{where} is missing; add it."
    if entry["type"] == "value_error":
        return f"{where or 'the file'} {message}."
    return f"{where} is {entry['input']!r}, but: {message[0].lower()}{message[1:]}."

"""TOML files that users write: reading them, checking them against a model, and one sentence for each wrong entry."""

from __future__ import annotations

import itertools
import types
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, Field, ValidationError

import foreign
from femsim.base.errors import InputError, did_you_mean, number_alone
from foreign import text

Model = TypeVar("Model", bound=BaseModel)
#: Wrong entries of a file that are named; a file with more is no such file.
MOST_SENTENCES = 50
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Finite = Annotated[float, Field(allow_inf_nan=False)]


def _as_pair(value: Any) -> Any:
    return tuple(float(v) if type(v) is int else v for v in value) if isinstance(value, list) else value


#: TOML has lists, and whole numbers where a user means 1.0.
AsPair = BeforeValidator(_as_pair)
Pair = Annotated[tuple[float, float], AsPair]


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
        The file cannot be read, or is not TOML.
    """
    if path.suffix == ".py":
        raise InputError(f"{path} is a Python file, not a {what} (.toml); a scene is run by femsim run {path}.")
    try:
        return text.read_toml(path)
    except OSError as error:
        raise InputError(f"the {what} {path} cannot be read ({error.strerror}); name a TOML file.") from error
    except foreign.Refused as error:
        quotes = "; words stand in quotes" if "Invalid value" in str(error) else ""
        raise InputError(f"{path} is not valid TOML: {error}{quotes}.") from error


def checked(model: type[Model], content: Mapping[str, Any], source: object) -> Model:
    """Check what a file holds against a model.

    Parameters
    ----------
    model : subclass of BaseModel
        What is allowed.
    content : mapping
        What the file holds.
    source : object
        The file, for messages.

    Raises
    ------
    InputError
        Every wrong entry, a line each.
    """
    try:
        return model.model_validate(dict(content))
    except ValidationError as error:
        raise InputError("\n".join(error_sentences(model, error.errors(), source))) from None


def error_sentences(model: type[BaseModel], entries: Iterable[Any], source: object) -> list[str]:
    """Turn errors of pydantic into sentences that name the file, the key and what is allowed; equal ones once.

    Parameters
    ----------
    model : subclass of BaseModel
        What was checked.
    entries : iterable of dict
        Out of ``ValidationError.errors()``.
    source : object
        The file.
    """
    return list(dict.fromkeys(f"{source}: {_sentence(model, entry)}" for entry in itertools.islice(entries, MOST_SENTENCES)))


def _sentence(model: type[BaseModel], entry: Any) -> str:
    place = entry["loc"]
    where = ".".join(str(part + 1) if isinstance(part, int) else part for part in place)
    message = str(entry["msg"]).removeprefix("Value error, ").rstrip(".")
    if entry["type"] == "extra_forbidden":
        return f"{where}: the key is unknown{did_you_mean(str(place[-1]), _keys_at(model, place[:-1]))}"
    if entry["type"] == "missing":
        return f"{where} is missing; add it."
    if entry["type"] == "value_error":
        return f"{where or 'the file'} {message}."
    given = entry["input"]
    if entry["type"] in ("model_type", "model_attributes_type", "dict_type"):
        return f"{where} is {repr(given)[:300]}, but must be a table, {{ ... }}."
    hint = number_alone(given) if isinstance(given, str) else ""
    said = (
        message.replace("Input should be a valid", "must be a")
        .replace("Input should be", "must be")
        .replace("a integer", "an integer")
    )
    colon = "" if said.startswith("must") else ":"
    return f"{where} is {repr(given)[:300]}, but{colon} {said[0].lower()}{said[1:]}{f': write it {hint}' if hint else ''}."


def _keys_at(model: type[BaseModel], place: Sequence[str | int]) -> list[str]:
    """List the keys of the table at a place: follow the types of fields, of values of tables and of entries of lists."""
    kind: Any = model
    for step in place:
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            kind = kind.model_fields[str(step)].annotation
        else:
            kind = get_args(kind)[-1]  # of dict[str, X] and list[X]
        kind = _table_in(kind)
    return list(kind.model_fields)


def _table_in(kind: Any) -> Any:
    """Choose, of ``X | None`` and ``X | str``, the X that is a table; strip ``Annotated``."""
    if hasattr(kind, "__metadata__"):
        kind = get_args(kind)[0]
    if get_origin(kind) in (Union, types.UnionType):
        members = [member for member in get_args(kind) if member is not type(None)]
        return next((m for m in members if isinstance(m, type) and issubclass(m, BaseModel)), members[0])
    return kind

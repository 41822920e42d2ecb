"""TOML files that users write: reading them, checking them against a model, and one sentence for each wrong entry."""

from __future__ import annotations

import itertools
import re
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

    Where a value may be of several kinds, pydantic gives an error for each of them; these become one sentence.

    Parameters
    ----------
    model : subclass of BaseModel
        What was checked.
    entries : iterable of dict
        Out of ``ValidationError.errors()``.
    source : object
        The file.
    """
    groups: dict[Any, list[Any]] = {}
    for number, entry in enumerate(itertools.islice(entries, MOST_SENTENCES)):
        depth = _kinds_from(model, entry["loc"])
        groups.setdefault(number if depth is None else entry["loc"][:depth], []).append(entry)
    sentences = (
        _sentence(model, group[0]) if isinstance(key, int) else _sentence_of_kinds(model, key, group)
        for key, group in groups.items()
    )
    return list(dict.fromkeys(f"{source}: {sentence}" for sentence in sentences))


def _sentence_of_kinds(model: type[BaseModel], place: Sequence[str | int], group: Sequence[Any]) -> str:
    """Say what a value is that is of none of the kinds that it may be of.

    An entry of a list stands for the list where it may be what the list may be, else for itself.
    """
    whole = [entry for entry in group if len(entry["loc"]) == len(place) + 1]
    kinds = [_kind_said(entry) for entry in whole]
    for entry in group:
        if entry not in whole and len(entry["loc"]) == len(place) + 2 and _kind_said(entry) not in kinds:
            return _sentence(model, {**entry, "loc": (*place, entry["loc"][-1])})
    *most, last = dict.fromkeys(kinds if len(whole) == len(group) else [*kinds, "a list of such"])
    given = (whole or group)[0]["input"]
    hint = number_alone(given) if isinstance(given, str) else ""
    allowed = f"{', '.join(most)}{' or ' if most else ''}{last}"
    return f"{_where(place)} is {repr(given)[:300]}, but must be {allowed}{f': write it {hint}' if hint else ''}."


def _kind_said(entry: Any) -> str:
    return _said(entry).removeprefix("must be ").partition(", unable")[0]


def _where(place: Sequence[str | int]) -> str:
    return ".".join(str(part + 1) if isinstance(part, int) else part for part in place)


def _said(entry: Any) -> str:
    """Say in our words what pydantic asks of a value."""
    message = str(entry["msg"]).removeprefix("Value error, ").strip().rstrip(".")
    count = re.fullmatch(r"\w+ should have (at least|at most) (\d+) items? after validation, not \d+", message)
    if count:
        return f"must have {count[1]} {count[2]} {'entry' if count[2] == '1' else 'entries'}"
    return (
        message.replace("Input should be a valid", "must be a")
        .replace("Input should be", "must be")
        .replace("a integer", "an integer")
        .replace("a boolean", "true or false")
    )


def _kinds_from(model: type[BaseModel], place: Sequence[str | int]) -> int | None:
    """Find the step of a place that is no key, but one of several kinds that the value there may be of."""
    kind: Any = model
    for depth, step in enumerate(place):
        if hasattr(kind, "__metadata__"):
            kind = get_args(kind)[0]
        if get_origin(kind) in (Union, types.UnionType):
            members = [member for member in get_args(kind) if member is not type(None)]
            if len(members) > 1:
                tables = any(isinstance(member, type) and issubclass(member, BaseModel) for member in members)
                return None if tables or not isinstance(step, str) else depth
            kind = members[0]
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            if step not in kind.model_fields:
                return None
            kind = kind.model_fields[str(step)].annotation
        elif get_origin(kind) in (dict, list, tuple):
            kind = get_args(kind)[-1]
        else:
            return None
    return None


def _sentence(model: type[BaseModel], entry: Any) -> str:
    place = entry["loc"]
    where, said = _where(place), _said(entry)
    if entry["type"] == "extra_forbidden":
        return f"{where}: the key is unknown{did_you_mean(str(place[-1]), _keys_at(model, place[:-1]))}"
    if entry["type"] == "missing":
        return f"{where} is missing; add it."
    if entry["type"] == "value_error":
        return f"{where or 'the file'} {said}."
    given = entry["input"]
    if entry["type"] in ("model_type", "model_attributes_type", "dict_type"):
        return f"{where} is {repr(given)[:300]}, but must be a table, {{ ... }}."
    hint = number_alone(given) if isinstance(given, str) else ""
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

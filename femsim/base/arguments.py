"""Which argument of a call is of another kind than its annotation says."""

from __future__ import annotations

import inspect
from collections import abc
from collections.abc import Callable, Mapping
from functools import cache
from numbers import Real
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

import numpy as np

_IN_WORDS: Mapping[Any, str] = {
    float: "a number", int: "a whole number", str: "a text", bool: "True or False", NoneType: "None", Path: "a path",
    np.ndarray: "an array of numbers",
}  # fmt: skip
_SIMPLE = frozenset((str, bool, NoneType))
_LISTED = (list, tuple, abc.Sequence, abc.Iterable)
_MAPPED = (dict, abc.Mapping)
#: Longest value that is shown.
_SHOWN = 60


def wrong_argument(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any], *, simple: bool = False
) -> str | None:
    """Sentence on the first argument of a call that is not of the kind that its annotation names; None where all are.

    Parameters
    ----------
    function : callable
        What is called. Annotations that cannot be read, or name kinds that cannot be asked, count as met.
    args, kwargs : tuple and mapping
        Its arguments.
    simple : bool
        Whether only texts and yes or no are asked for: what a function may keep for later without a look at it.
    """
    signature, hints = _declared(function)
    try:
        given = signature.bind(*args, **kwargs).arguments
    except TypeError:
        return None
    for name, value in given.items():
        if name not in hints or (simple and not _SIMPLE.issuperset(get_origin(k) or k for k in _alternatives(hints[name]))):
            continue
        if not _is_of(value, hints[name]):
            return f"{name} is {shown(value)}, but must be {_in_words(hints[name])}."
    return None


@cache
def _declared(function: Callable[..., Any]) -> tuple[inspect.Signature, dict[str, Any]]:
    """Signature of a function, and the kinds of its parameters that stand for one value each."""
    signature = inspect.signature(function)
    absent: dict[str, Any] = {}  # names that only the type checker knows
    hints = None
    while hints is None:
        try:
            hints = inspect.get_annotations(function, locals=absent, eval_str=True)
        except NameError as error:
            name = error.name or ""
            if name in absent:
                hints = {}
            absent[name] = Any
    several = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    single = [name for name, parameter in signature.parameters.items() if parameter.kind not in several]
    return signature, {name: hints[name] for name in single if name in hints}


def _alternatives(hint: Any) -> tuple[Any, ...]:
    """Kinds that a hint allows."""
    if get_origin(hint) in (Union, UnionType):
        return tuple(kind for part in get_args(hint) for kind in _alternatives(part))
    return (hint,)


def _is_of(value: Any, hint: Any) -> bool:
    """Whether a value is of a kind; kinds that cannot be asked are met."""
    kinds = _alternatives(hint)
    if len(kinds) > 1:
        return any(_is_of(value, kind) for kind in kinds)
    origin = get_origin(hint) or hint
    if origin is Any:
        return True
    if origin is Literal:
        return any(type(value) is type(word) and value == word for word in get_args(hint))
    if origin is bool:
        return isinstance(value, (bool, np.bool_)) or (isinstance(value, Real) and value in (0, 1))
    if origin in (float, int):
        return (isinstance(value, Real) and not isinstance(value, bool)) or (isinstance(value, np.ndarray) and value.ndim == 0)
    if origin is np.ndarray:
        return _is_numeric(value)
    if origin is abc.Callable:
        return callable(value) and _takes(value, *get_args(hint)[:1])
    if origin in _LISTED:
        return isinstance(value, (abc.Iterable, abc.Mapping)) and not isinstance(value, (str, bytes)) and _holds(value, hint)
    if origin in _MAPPED:
        return isinstance(value, abc.Mapping)
    return not isinstance(origin, type) or getattr(origin, "_is_protocol", False) or isinstance(value, origin)


def _takes(function: Callable[..., Any], kinds: Any = ...) -> bool:
    """Whether a function takes as many values as a hint says; those that do not tell do."""
    try:
        inspect.signature(function).bind(*([None] * len(kinds) if isinstance(kinds, list) else []))
    except TypeError:
        return not isinstance(kinds, list)
    except ValueError:  # one that is not written in Python
        return True
    return True


def _holds(values: Any, hint: Any) -> bool:
    """Whether all that a list holds is of the kind that its hint names."""
    kinds = [kind for kind in get_args(hint) if kind is not Ellipsis]
    if get_origin(hint) is tuple and len(kinds) == len(get_args(hint)) and len(values) != len(kinds):
        return False
    if isinstance(values, abc.Mapping) or len(set(kinds)) != 1:
        return not isinstance(values, abc.Mapping)
    return all(_is_of(value, kinds[0]) for value in values)


def _is_numeric(value: Any) -> bool:
    """Whether something is an array of numbers or truth values, or could be one."""
    try:
        return np.asarray(value).dtype.kind in "biuf"
    except ValueError:  # rows of different lengths
        return False


def _in_words(hint: Any) -> str:
    """Say what a kind is called."""
    words = []
    for kind in _alternatives(hint):
        origin = get_origin(kind) or kind
        if origin is Literal:
            word = ", ".join(map(repr, get_args(kind)))
        elif origin is abc.Callable:
            word = _function_in_words(*get_args(kind))
        elif origin in _LISTED:
            held = [part for part in get_args(kind) if part is not Ellipsis]
            plural = {float: "numbers", int: "whole numbers", str: "texts"}.get(held[0], "") if held else ""
            pair = origin is tuple and len(held) == len(get_args(kind)) == 2
            word = f"{'two' if pair else 'a list of'} {plural}" if plural else "a list"
        else:
            word = _IN_WORDS.get(origin, f"a {getattr(origin, '__name__', origin)}")
        if word not in words:
            words.append(word)
    return " or ".join(words)


def _function_in_words(takes: Any = ..., gives: Any = Any) -> str:
    """Say what a function is called by what it takes and gives."""
    if takes == [float]:
        known = "fs.Profile" if gives is float else "fs.Motion" if get_args(gives) == (np.ndarray, np.ndarray) else ""
        return f"a function of time{known and f', e.g. {known},'}"
    return "a function of points" if takes == [np.ndarray] else "a function"


def shown(value: Any) -> str:
    """Show a value on one short line, or its kind."""
    text = " ".join(repr(value).split())
    return text if len(text) <= _SHOWN else f"a {type(value).__name__}"

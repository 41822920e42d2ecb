"""Values of options as the kinds that their annotations name; words of a command line become flags and whole numbers."""

from __future__ import annotations

import math
from dataclasses import fields
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints
from weakref import WeakKeyDictionary

import numpy as np

#: Words for flags.
_FLAGS = {"on": True, "yes": True, "true": True, "off": False, "no": False, "false": False}
_IN_WORDS = {bool: "True and False (on and off)", int: "whole numbers", float: "numbers", str: "texts", NoneType: "None"}
#: Whole numbers fit 64 bits.
_LARGEST = 2.0**63
#: Longest value that is shown.
_SHOWN = 60
#: Kinds of the options of each class that was asked for.
_READ: WeakKeyDictionary[type, dict[str, tuple[Any, ...]]] = WeakKeyDictionary()
#: What no option is.
WRONG = object()


def kinds_of(options: type) -> dict[str, tuple[Any, ...]]:
    """Types and words that each option of a dataclass may be, by its annotation; without those of other kinds."""
    known = _READ.get(options)
    if known is None:
        try:
            hints = get_type_hints(options)
        except NameError:  # a class in a function, of types that are named there
            hints = {}
        each = {field.name: _alternatives(hints.get(field.name)) for field in fields(options)}
        known = {name: kinds for name, kinds in each.items() if all(isinstance(k, str) or k in _IN_WORDS for k in kinds)}
        _READ[options] = known
    return known


def _alternatives(hint: Any) -> tuple[Any, ...]:
    """Types, and words of a ``Literal``, that an annotation names."""
    if get_origin(hint) is Literal:
        return get_args(hint)
    if get_origin(hint) in (Union, UnionType):
        return tuple(kind for each in get_args(hint) for kind in _alternatives(each))
    return (hint,)


def of_kind(value: Any, kinds: tuple[Any, ...]) -> Any:
    """Return a value as one of its kinds, the same object where it is one; ``WRONG`` where it is none.

    Which words and numbers are good is not asked here, but that numbers are finite.
    """
    if value is None:
        return None if NoneType in kinds else WRONG
    if isinstance(value, str):
        if any(kind is str or isinstance(kind, str) for kind in kinds):
            return value
        return _FLAGS.get(value.lower(), WRONG) if bool in kinds else WRONG
    if bool in kinds:
        if isinstance(value, bool | np.bool_) or (isinstance(value, int | np.integer) and value in (0, 1)):
            return bool(value)
        return WRONG
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.integer | np.floating):
        return WRONG
    try:
        number = float(value)
    except OverflowError:
        return WRONG
    if float in kinds and math.isfinite(number):
        return value if isinstance(value, float) else number
    if int in kinds and abs(number) <= _LARGEST and number.is_integer():
        return value if type(value) is int else int(value)
    return WRONG


def in_words(kinds: tuple[Any, ...]) -> str:
    """Return the kinds of an option as words."""
    return ", and ".join(_IN_WORDS.get(kind, repr(kind)) for kind in kinds)


def shown(value: object) -> str:
    """Return a value as a message shows it."""
    try:
        text = repr(value)
    except ValueError:  # a whole number of thousands of digits
        return f"one {type(value).__name__} that is too long to show"
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 4]} ..."

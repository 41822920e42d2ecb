"""The exception of wrong input, and the sentence that names the nearest known word."""

from __future__ import annotations

import difflib
import errno
import functools
import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ParamSpec, TypeVar

_Given = ParamSpec("_Given")
_Returned = TypeVar("_Returned")
_Class = TypeVar("_Class", bound=type)
_Value = TypeVar("_Value")
#: Errors of Python itself, by which a function fails that was given something it cannot use.
OF_PYTHON = frozenset((TypeError, ValueError, AttributeError, IndexError, KeyError))
#: Sizes of units that are written behind numbers by mistake, in SI units.
_SIZES = {
    "s": 1.0, "ms": 1e-3, "us": 1e-6, "min": 60.0, "m": 1.0, "cm": 1e-2, "mm": 1e-3, "um": 1e-6, "N": 1.0, "mN": 1e-3, "kN": 1e3,
    "Pa": 1.0, "kPa": 1e3, "MPa": 1e6, "GPa": 1e9, "kg": 1.0, "g": 1e-3, "J": 1.0, "mJ": 1e-3, "Hz": 1.0, "kg/m3": 1.0, "%": 1e-2,
}  # fmt: skip
_WITH_UNIT = re.compile(r"\s*([-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?)\s*([a-zA-Z%µ][a-zA-Z0-9/^]*)\s*")


class InputError(ValueError):
    """Wrong input; the message names the file and field, the value, what is allowed and what to do."""


def nearest(name: str, options: Iterable[str]) -> str | None:
    """Find the option that a mistyped name most likely means.

    Parameters
    ----------
    name : str
        Name that was given.
    options : iterable of str
        Known names.

    Returns
    -------
    str or None
        The most similar option, or None when none is similar.
    """
    by_lower = {option.lower(): option for option in options}
    matches = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=0.6)
    stem, dot, ending = name.lower().rpartition(".")
    if matches and dot and matches[0].endswith(dot + ending):  # that both end in .py does not make them alike
        stems = {option.removesuffix(dot + ending): option for option in by_lower}
        matches = [stems[near] for near in difflib.get_close_matches(stem, stems, n=1, cutoff=0.6)]
    begun = [option for option in by_lower if len(name) > 2 and option.startswith(name.lower())]
    if not matches and len(begun) == 1:  # pos for position
        matches = begun
    return by_lower[matches[0]] if matches else None


def meant(name: object, options: Iterable[str], others: Mapping[str, str] | None = None) -> str:
    """Return the question whether the nearest option is meant, with a blank before it; "" where none is near.

    Parameters
    ----------
    name : object
        What was given.
    options : iterable of str
        Known names.
    others : mapping of str to str, optional
        Words of other programs, in small letters, and the options that they are here.
    """
    text = str(name)
    guess = (others or {}).get(text.lower().replace("-", "_").replace(" ", "_")) or nearest(text, options)
    return f" did you mean {guess!r}?" if guess else ""


def number_alone(text: str) -> str:
    """Say how a number with a unit is written without one; "" for anything else.

    For instance "10ms" gives "without a unit, which is SI: 0.01".
    """
    match = _WITH_UNIT.fullmatch(text)
    size = _SIZES.get(match[2].replace("µ", "u")) if match else None
    if match is None or size is None:
        return ""
    try:
        return f"without a unit, which is SI: {float(match[1]) * size:.6g}"
    except ValueError:
        return ""


def naming_parameters(function: Callable[_Given, _Returned], *, at_once: bool = False) -> Callable[_Given, _Returned]:
    """Let a wrong keyword of a function name the nearest parameter and all of them; a decorator.

    An argument of another kind than its annotation says is named where the function fails by an error of Python; with
    ``at_once`` texts and yes or no before it begins. So are arguments that lack.
    """
    signature = inspect.signature(function)
    takes_others = any(p.kind is p.VAR_KEYWORD for p in signature.parameters.values())
    known = [name for name, p in signature.parameters.items() if p.kind is not p.POSITIONAL_ONLY and name != "self"]
    allowed = frozenset(known)

    def called(args: tuple[Any, ...]) -> str:
        return type(args[0]).__name__ if function.__name__ == "__init__" else function.__name__

    @functools.wraps(function)
    def named(*args: _Given.args, **kwargs: _Given.kwargs) -> _Returned:
        if not (takes_others or allowed.issuperset(kwargs)):
            wrong = next(name for name in kwargs if name not in allowed)
            raise TypeError(f"{called(args)}() has no parameter {wrong!r}{did_you_mean(wrong, known)}")
        if at_once and (said := _wrong_argument(function, args, kwargs, simple=True)):
            raise InputError(f"{called(args)}: {said}")
        try:
            return function(*args, **kwargs)
        except Exception as error:
            if type(error) is TypeError and (lacking := _lacking(signature, args, kwargs)):
                names, them = ", ".join(map(repr, lacking)), "it" if len(lacking) == 1 else "them"
                raise TypeError(
                    f"{called(args)}() lacks {names}; give {them} too. It takes {', '.join(sorted(known))}."
                ) from error
            if type(error) in OF_PYTHON and (said := _wrong_argument(function, args, kwargs)):
                raise InputError(f"{called(args)}: {said}") from error
            raise

    return named


def _lacking(signature: inspect.Signature, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[str]:
    """Parameters without a default that a call does not give; none where it gives too many."""
    try:
        given = signature.bind_partial(*args, **kwargs).arguments
    except TypeError:
        return []
    needed = (
        p for p in signature.parameters.values() if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
    )
    return [p.name for p in needed if p.name not in given]


def _wrong_argument(function: Callable[..., Any], args: Any, kwargs: Mapping[str, Any], *, simple: bool = False) -> str | None:
    """Say what :func:`femsim.base.arguments.wrong_argument` does, which needs numpy; the command line begins without it."""
    from femsim.base.arguments import wrong_argument

    return wrong_argument(function, args, kwargs, simple=simple)


def naming_all_parameters(kind: _Class, *, at_once: bool = False) -> _Class:
    """Let wrong keywords and arguments of all public methods of a class be named, see :func:`naming_parameters`; a decorator."""
    for name, thing in list(vars(kind).items()):
        if not name.startswith("_") and inspect.isfunction(thing):
            setattr(kind, name, naming_parameters(thing, at_once=at_once))
    return kind


def naming_fields(kind: _Class) -> _Class:
    """Let wrong keywords and arguments of a dataclass be named, see :func:`naming_parameters`; a decorator above its own."""
    kind.__init__ = naming_parameters(kind.__init__)  # type: ignore[misc]
    return kind


class UnknownNameError(KeyError):
    """A name that a table of results does not have; it reads as a sentence."""

    def __str__(self) -> str:
        return str(self.args[0])


class Named(dict[str, _Value]):
    """A table of results by name that answers an unknown name with those that it has.

    Parameters
    ----------
    what : str
        What its entries are called, for instance "sensor of this run".
    entries : mapping of str
        The entries.
    elsewhere : mapping of str to str, optional
        Names that may be looked for here, and what gives them.
    """

    def __init__(self, what: str, entries: Mapping[str, _Value], elsewhere: Mapping[str, str] | None = None) -> None:
        super().__init__(entries)
        self.what, self.elsewhere = what, dict(elsewhere or {})

    def __reduce__(self) -> tuple[Any, ...]:
        return Named, (self.what, dict(self), self.elsewhere)

    def __missing__(self, name: object) -> _Value:
        there = self.elsewhere.get(str(name))
        question = did_you_mean(str(name), self)
        raise UnknownNameError(f"{self.what} {name!r} is unknown{question}{f' Read it by {there}.' if there else ''}")


def no_attribute(owner: str, name: str, known: Iterable[str], others: Mapping[str, str] | None = None) -> AttributeError:
    """Return the error of a name that an object does not have, with the nearest one; ``others`` as in :func:`meant`."""
    question = meant(name, known, others) if not name.startswith("_") else ""
    return AttributeError(f"{owner} has no attribute {name!r}{question and f';{question}'}")


def did_you_mean(name: str, options: Iterable[str]) -> str:
    """Suggest the nearest option and list all of them; the end of a sentence that starts "... is unknown".

    Parameters
    ----------
    name : str
        Name that was given.
    options : iterable of str
        Known names.

    Returns
    -------
    str
        ``"; did you mean 'x'? There are x, y."``, without the question when nothing is similar.
    """
    known = sorted(set(options))
    guess = nearest(name, known)
    question = f"; did you mean {guess!r}? There" if guess else "; there"
    if not known:
        return "; there is none."
    return f"{question} {'is only' if len(known) == 1 else 'are'} {', '.join(known)}."


def what_to_do(error: OSError) -> str:
    """Say what the user can do about a file that cannot be read or written."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "free the disk, or choose another folder by --out; femsim resume goes on with a run"
    if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ESTALE):
        return "it or its folder was moved or removed meanwhile; put it back and use femsim resume, or run again"
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return "choose a folder that you may write to by --out"
    if error.errno == errno.EFBIG:
        return "raise the limit of file sizes (ulimit -f), or choose another folder by --out"
    return "see to the disk, or choose another folder by --out"

"""The kernels that first steps need, in the order of their first calls: so that a second process can compile them from the end.

``first_kernels.txt`` beside this file has a line for each scene that was recorded (its name, its kinds of bodies, its integrator)
and then one for each kernel: module, name, the scenes that call it, the types of its arguments. ``python docs/make_kernels.py``
writes it. What is out of date in it costs time only: a kernel that is no more is passed over.

Types are written as ``float64:2C`` (an array of two dimensions, C-order), ``int64`` (a number), ``(a b)`` (a tuple) and
``module.Name(a b)`` (a named group of arrays).
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LIST = Path(__file__).with_name("first_kernels.txt")
_TOKEN = re.compile(r"\s*([()]|[^\s()]+)")


@dataclass(frozen=True)
class Listed:
    """A kernel and the types of a call, as the list has it."""

    module: str
    name: str
    scenes: tuple[str, ...]
    types: str

    @property
    def index(self) -> str:
        """How the names of its index files begin."""
        return f"{self.module.rpartition('.')[2]}.{self.name}-"


def read_list(path: Path = LIST) -> tuple[dict[str, frozenset[str]], list[Listed]]:
    """Read the list: the kinds of bodies of each scene with its integrator, and the kernels; nothing where there is no list."""
    scenes: dict[str, frozenset[str]] = {}
    kernels: list[Listed] = []
    if not path.is_file():
        return scenes, kernels
    for line in path.read_text(encoding="utf-8").splitlines():
        first, _, rest = line.partition(" ")
        if first == "scene":
            name, *kinds = rest.split()
            scenes[name] = frozenset(kinds)
        elif rest and not first.startswith("#"):
            name, called, types = (*rest.split(" ", 2), "")[:3]
            kernels.append(Listed(first, name, tuple(called.split(",")), types))
    return scenes, kernels


def kinds_of(scene: Any) -> frozenset[str]:
    """Kinds of bodies of a scene and its integrator, by which it is compared with the scenes of the list."""
    return frozenset([*(type(body).__name__ for body in scene.bodies), scene.integrator])


def kernels_for(name: str, kinds: frozenset[str], path: Path = LIST) -> list[Listed]:
    """Select what the first steps of a scene will call, in their order.

    Parameters
    ----------
    name : str
        Of the scene. One of the list gets its own kernels.
    kinds : frozenset of str
        What :func:`kinds_of` says of it. Another one gets what all scenes of these kinds call.
    path : Path
        The list.
    """
    scenes, kernels = read_list(path)
    alike = {name} if name in scenes else {other for other in scenes if scenes[other] == kinds}
    return [kernel for kernel in kernels if alike and alike <= set(kernel.scenes)]


def missing(kernels: Iterable[Listed], folder: str | Path) -> list[Listed]:
    """Select the kernels that have no file in the folder of compiled kernels."""
    there = {path.name.split("-")[0] + "-" for path in Path(folder).rglob("*.nbi")}
    return [kernel for kernel in kernels if kernel.index not in there]


def write_types(types: Iterable[Any]) -> str:
    """Write the types of a call.

    Raises
    ------
    TypeError
        A type that has no writing here.
    """
    return " ".join(_write(one) for one in types)


def _numba_types() -> Any:
    """Numba's types, imported when they are needed: reading the list takes a millisecond, numba half a second."""
    return importlib.import_module("numba.core.types")


def _write(one: Any) -> str:
    types = _numba_types()
    if isinstance(one, types.Array) and one.mutable and one.aligned:
        return f"{one.dtype}:{one.ndim}{one.layout}"
    if isinstance(one, types.BaseNamedTuple):
        group = one.instance_class
        return f"{group.__module__}.{group.__qualname__}({write_types(one.types)})"
    if isinstance(one, types.UniTuple | types.Tuple):
        return f"({write_types(one.types)})"
    if isinstance(one, types.Integer | types.Float | types.Boolean | types.NoneType):
        return str(one)
    raise TypeError(f"{one} has no writing in a list of kernels")


def read_types(text: str) -> tuple[Any, ...]:
    """Read what :func:`write_types` wrote.

    Raises
    ------
    ValueError, ImportError, AttributeError
        Text that it did not write, a module or group that is no more.
    """
    tokens = iter(_TOKEN.findall(text))
    found = tuple(_read(tokens))
    if next(tokens, None) is not None or text.count("(") != text.count(")"):
        raise ValueError(f"the brackets of {text!r} do not fit")
    return found


def _read(tokens: Iterator[str]) -> Iterator[Any]:
    """Read types until a bracket is closed or the text ends."""
    types = _numba_types()
    held: list[Any] = []
    for token in tokens:
        if token == ")":
            break
        if token == "(":
            inner = tuple(_read(tokens))
            group = held.pop() if held and isinstance(held[-1], type) else None
            held.append(_tuple(inner, group))
        elif ":" in token:
            dtype, _, form = token.partition(":")
            held.append(types.Array(getattr(types, dtype), int(form[:-1]), form[-1]))
        elif "." in token:
            module, _, name = token.rpartition(".")
            held.append(getattr(importlib.import_module(module), name))
        else:
            held.append(getattr(types, "boolean" if token == "bool" else token))
    yield from held


def _tuple(inner: tuple[Any, ...], group: Any) -> Any:
    types = _numba_types()
    if group is None:
        return types.Tuple.from_types(inner)
    alike = inner and all(one == inner[0] for one in inner)
    return types.NamedUniTuple(inner[0], len(inner), group) if alike else types.NamedTuple(inner, group)

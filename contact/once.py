"""Properties that are found once for each object."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, overload

T = TypeVar("T")


class once(Generic[T]):  # noqa: N801  # a decorator
    """``functools.cached_property`` without its lock, which takes Python 3.11 three times as long as what it guards.

    Two threads that ask at once may both find what is asked, and both are told the same.
    """

    def __init__(self, find: Callable[[Any], T]) -> None:
        self._find, self._name, self.__doc__ = find, find.__name__, find.__doc__

    @overload
    def __get__(self, owner: None, kind: type) -> Self: ...

    @overload
    def __get__(self, owner: object, kind: type) -> T: ...

    def __get__(self, owner: object | None, kind: type) -> Self | T:
        """Find it, and put it where the next question sees it at once."""
        if owner is None:
            return self
        found = owner.__dict__[self._name] = self._find(owner)
        return found

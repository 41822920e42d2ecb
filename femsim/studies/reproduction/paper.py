"""The figures that papers publish, from ``data/reference/papers_001.toml`` and its like."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

from femsim.base.place import data_folder
from foreign.text import read_toml


class Printed(float):
    """A number that keeps the digits in which the paper prints it.

    Parameters
    ----------
    text : str
        The digits.
    """

    def __init__(self, text: str) -> None:
        self.text = text


@cache
def _file(paper: str) -> dict[str, Any]:
    return read_toml(data_folder("reference") / f"papers_{paper}.toml", parse_float=Printed)


def published(name: str, paper: str = "001") -> Any:
    """Return what the paper publishes in a table or figure.

    Parameters
    ----------
    name : str
        A key of the file, e.g. "table_II" or "figure_11".
    paper : str
        Its number.
    """
    return _file(paper)[name]


def printed(values: Iterable[Printed]) -> str:
    """Write numbers as the paper prints them."""
    return "; ".join(value.text for value in values)

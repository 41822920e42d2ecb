"""One mistake in the code, of which `mutant_table.py` has many."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    """One thing wrong.

    Attributes
    ----------
    group : str
        "physics", "sensors", "energies" or "judges".
    what : str
        What is wrong then, in words.
    file : str
        File, from the root.
    old, new : str
        A text that stands in it exactly once, and what takes its place.
    tests : str
        What pytest is asked to run: files or tests under ``tests/``, apart by blanks.
    """

    group: str
    what: str
    file: str
    old: str
    new: str
    tests: str

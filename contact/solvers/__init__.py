"""Solvers of the contact problem by name.

A solver is a class with ``description``, an options dataclass and ``solve(problem, warm_start) -> Solution``. To add one:
write it in a file of this folder and add one line to :data:`SOLVERS`.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from contact.errors import ContactError
from contact.solvers.base import History, Solution, Solver, WarmStart
from contact.solvers.cond import Cond, CondOptions


@dataclass(frozen=True)
class SolverEntry:
    """One line of the registry: a sentence, the options dataclass and the class."""

    description: str
    options: type
    solver: type


SOLVERS: dict[str, SolverEntry] = {
    "cond": SolverEntry(Cond.description, CondOptions, Cond),
}


def make_solver(name: str, **options: Any) -> Solver:
    """Create a solver by name; options that are None keep their defaults.

    Raises
    ------
    ContactError
        Unknown solver or option.
    """
    if name not in SOLVERS:
        raise ContactError(f"solver {name!r} is unknown; there are {', '.join(map(repr, SOLVERS))} (see 'femsim solvers').")
    entry = SOLVERS[name]
    known = [f.name for f in fields(entry.options)]
    given = {key: value for key, value in options.items() if value is not None}
    for key in given:
        if key not in known:
            raise ContactError(f"solver {name!r} has no option {key!r}; it has {', '.join(known)}.")
    solver: Solver = entry.solver(entry.options(**given))
    return solver


__all__ = [
    "SOLVERS",
    "Cond",
    "CondOptions",
    "History",
    "Solution",
    "Solver",
    "SolverEntry",
    "WarmStart",
    "make_solver",
]

"""Solvers of the contact problem by name.

A solver is a class with ``description``, an options dataclass that extends :class:`~contact.solvers.base.SolverOptions`, and
``solve(problem, warm_start) -> Solution``. To add one: write it in a file of this folder, with its iterations as a
:class:`~contact.solvers.base.Method` for :func:`~contact.solvers.base.drive`, and add one line to :data:`SOLVERS`.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from contact.errors import ContactError
from contact.solvers.apgd import Apgd, ApgdOptions
from contact.solvers.auto import Auto, AutoOptions
from contact.solvers.banded import Banded, BandedOptions
from contact.solvers.base import History, Remembering, Solution, Solver, SolverOptions, WarmStart
from contact.solvers.ccs import Ccs, CcsOptions
from contact.solvers.cond import Cond, CondOptions
from contact.solvers.cond_newton import CondNewton, CondNewtonOptions
from contact.solvers.exact import Exact, ExactOptions
from contact.solvers.pgs import Pgs, PgsOptions


@dataclass(frozen=True)
class SolverEntry:
    """One line of the registry: a sentence, the options dataclass and the class."""

    description: str
    options: type[SolverOptions]
    solver: type


SOLVERS: dict[str, SolverEntry] = {
    "auto": SolverEntry(Auto.description, AutoOptions, Auto),
    "banded": SolverEntry(Banded.description, BandedOptions, Banded),
    "cond": SolverEntry(Cond.description, CondOptions, Cond),
    "cond-newton": SolverEntry(CondNewton.description, CondNewtonOptions, CondNewton),
    "exact": SolverEntry(Exact.description, ExactOptions, Exact),
    "pgs": SolverEntry(Pgs.description, PgsOptions, Pgs),
    "apgd": SolverEntry(Apgd.description, ApgdOptions, Apgd),
    "ccs": SolverEntry(Ccs.description, CcsOptions, Ccs),
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
    "Apgd",
    "ApgdOptions",
    "Auto",
    "AutoOptions",
    "Banded",
    "BandedOptions",
    "Ccs",
    "CcsOptions",
    "Cond",
    "CondNewton",
    "CondNewtonOptions",
    "CondOptions",
    "Exact",
    "ExactOptions",
    "History",
    "Pgs",
    "PgsOptions",
    "Remembering",
    "Solution",
    "Solver",
    "SolverEntry",
    "SolverOptions",
    "WarmStart",
    "make_solver",
]

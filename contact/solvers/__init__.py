"""Solvers of the contact problem by name.

A solver is a class with ``description``, an options dataclass that extends :class:`~contact.solvers.base.SolverOptions`, and
``solve(problem, warm_start) -> Solution``. To add one: write it in a file of this folder, with its iterations as a
:class:`~contact.solvers.judge.Method` for :func:`~contact.solvers.judge.drive`, and add one line to :data:`SOLVERS`.

``base``, ``judge``
    What all share: options (``option_kinds`` are their types), warm start, solution; the driver and its judge. ``with_rows``
    lets solvers of contacts alone take problems with rows, ``registered`` has the solvers of users, ``presets`` those that are
    others with other defaults.
``cond``, ``cond_newton``
    COND (papers/001), and COND finished by Newton. Its kernels: ``cond_kernels`` are Algorithms 1 to 3,
    ``cond_contact_kernels`` what they do to contacts, ``cond_system_kernels`` to A and W, ``cond_groups`` the arrays that they
    take; ``block_rows`` is a product in vector instructions.
``exact``, ``banded``, ``auto``
    The accurate solver, whose iterates ``mixing`` extrapolates, with ``dense`` where W is dense and ``primal_newton``
    (``newton_ways``, ``primal_kernels``) where W is never formed, and ``older_factors`` serve later steps; the solver of rods
    alone; the choice among them.
``alternating``
    Alternating steps between dynamics and contact law, by which COND-Newton solves piles of soft bodies.
``multigrid``, ``krylov``
    Newton systems of large bodies by a two-level cycle (``multigrid_kernels``) inside GMRES.
``condensed``, ``sweeps``, ``apgd``
    What rivals on W share; PGS with its ``local_kernels``; APGD.
``splitting``, ``ccs``, ``subadmm``
    ADMM with its ``linear_steps`` and ``penalty``; CCS, which is one of it; ADMM body by body.
``canal``, ``augmented``, ``strict_newton``, ``penalty_path``
    The augmented Lagrangian of papers/000 and 002, with the ways of its Newton systems in ``canal_ways``; what such methods
    share; the baselines of papers/000; the path by which CANAL ends where its slip speeds do not settle.
``converted``, ``invertible``, ``definite``
    Local problems for solvers that need A; contact forces from velocities alone; whether A is positive definite.

Compiled loops of a solver are in ``NAME_kernels``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from difflib import get_close_matches
from typing import Any

from contact.errors import ContactError
from contact.solvers.apgd import Apgd, ApgdOptions
from contact.solvers.auto import Auto, AutoOptions
from contact.solvers.banded import Banded, BandedOptions
from contact.solvers.base import History, Remembering, Solution, Solver, SolverOptions, WarmStart
from contact.solvers.canal import Canal, CanalOptions
from contact.solvers.ccs import Ccs, CcsOptions
from contact.solvers.cond import Cond, CondOptions
from contact.solvers.cond_newton import CondNewton, CondNewtonOptions
from contact.solvers.exact import Exact, ExactOptions
from contact.solvers.presets import (
    AdmmCcpOptions,
    AdmmNcpFpOptions,
    AdmmNcpLaOptions,
    AdmmNcpSaOptions,
    FadmmOptions,
    NbgsOptions,
    PAdmmOptions,
    PFadmmOptions,
    PgsCcpDsOptions,
    PgsCcpOptions,
    PgsNcpOptions,
    RaisimDsEsOptions,
    RaisimDsOptions,
    RaisimOptions,
)
from contact.solvers.registered import FunctionSolver, SolverFunction, condense, function_solver
from contact.solvers.splitting import Admm, AdmmOptions
from contact.solvers.subadmm import Subadmm, SubadmmOptions
from contact.solvers.sweeps import Pgs, PgsOptions


@dataclass(frozen=True)
class SolverEntry:
    """One line of the registry: a sentence, the options dataclass and the class.

    ``preset_of`` names the solver of which it is only other defaults, empty where it is none.
    """

    description: str
    options: type[SolverOptions]
    solver: type
    preset_of: str = ""


def _preset(name: str, solver: type, options: type[SolverOptions]) -> SolverEntry:
    """Return the entry of a preset, described by the first line of its options."""
    return SolverEntry((options.__doc__ or "").splitlines()[0], options, solver, name)


SOLVERS: dict[str, SolverEntry] = {
    "auto": SolverEntry(Auto.description, AutoOptions, Auto),
    "banded": SolverEntry(Banded.description, BandedOptions, Banded),
    "cond": SolverEntry(Cond.description, CondOptions, Cond),
    "cond-newton": SolverEntry(CondNewton.description, CondNewtonOptions, CondNewton),
    "canal": SolverEntry(Canal.description, CanalOptions, Canal),
    "exact": SolverEntry(Exact.description, ExactOptions, Exact),
    "pgs": SolverEntry(Pgs.description, PgsOptions, Pgs),
    "apgd": SolverEntry(Apgd.description, ApgdOptions, Apgd),
    "ccs": SolverEntry(Ccs.description, CcsOptions, Ccs),
    "admm": SolverEntry(Admm.description, AdmmOptions, Admm),
    "subadmm": SolverEntry(Subadmm.description, SubadmmOptions, Subadmm),
    "pgs-ccp": _preset("pgs", Pgs, PgsCcpOptions),
    "pgs-ccp-ds": _preset("pgs", Pgs, PgsCcpDsOptions),
    "pgs-ncp": _preset("pgs", Pgs, PgsNcpOptions),
    "nbgs": _preset("pgs", Pgs, NbgsOptions),
    "raisim": _preset("pgs", Pgs, RaisimOptions),
    "raisim-ds": _preset("pgs", Pgs, RaisimDsOptions),
    "raisim-ds-es": _preset("pgs", Pgs, RaisimDsEsOptions),
    "p-admm": _preset("admm", Admm, PAdmmOptions),
    "fadmm": _preset("admm", Admm, FadmmOptions),
    "p-fadmm": _preset("admm", Admm, PFadmmOptions),
    "admm-ccp": _preset("admm", Admm, AdmmCcpOptions),
    "admm-ncp-fp": _preset("admm", Admm, AdmmNcpFpOptions),
    "admm-ncp-la": _preset("admm", Admm, AdmmNcpLaOptions),
    "admm-ncp-sa": _preset("admm", Admm, AdmmNcpSaOptions),
}


def register_solver(name: str, function: SolverFunction) -> None:
    """Add a solver made of a plain function to the registry, or replace one that was added so.

    Parameters
    ----------
    name : str
        Its name: letters, digits, "-" and "_".
    function : callable
        ``function(problem)`` returns forces (nc, 3), N, or (v, forces), of a :class:`~contact.problem.ContactProblem` or
        :class:`~contact.local.LocalProblem` with one coefficient a contact. Where it yields them instead, each is an iteration,
        judged by true residuals; it ends where one converged. Parameters named ``start`` (forces to start from), ``tolerance``
        and ``max_iterations`` are given; others, which need defaults, are options of the solver. Its docstring is its
        description.

    Raises
    ------
    ContactError
        A name that is not allowed or that one of our solvers has, or something that is no function of a problem.
    """
    options, solver = function_solver(name, function)
    known = SOLVERS.get(name)
    if known is not None and not issubclass(known.solver, FunctionSolver):
        raise ContactError(f"solver {name!r} is there already; choose another name.")
    SOLVERS[name] = SolverEntry(solver.description, options, solver)


def _near(name: str, known: Iterable[str]) -> str:
    """Return the name that may have been meant, as an end of a sentence; empty where none is close."""
    known = list(known)
    close = get_close_matches(name, known, 1) or [full for full in known if len(name) > 2 and full.startswith(name)]
    return f" (did you mean {close[0]!r}?)" if close else ""


def make_solver(name: str, **options: Any) -> Solver:
    """Create a solver by name; options that are None keep their defaults.

    Raises
    ------
    ContactError
        Unknown solver or option, or a value that is not allowed.
    """
    if not isinstance(name, str):
        raise ContactError(
            f"a solver is named by a text, not by {type(name).__name__}; there are {', '.join(map(repr, SOLVERS))}."
        )
    if name not in SOLVERS:
        close = _near(name, SOLVERS)
        raise ContactError(
            f"solver {name!r} is unknown{close}; there are {', '.join(map(repr, SOLVERS))} (see 'femsim solvers')."
        )
    entry = SOLVERS[name]
    known = [f.name for f in fields(entry.options)]
    given = {key: value for key, value in options.items() if value is not None}
    for key in given:
        if key not in known:
            raise ContactError(f"solver {name!r} has no option {key!r}{_near(key, known)}; it has {', '.join(known)}.")
    solver: Solver = entry.solver(entry.options(**given))
    return solver


__all__ = [
    "SOLVERS",
    "Admm",
    "AdmmOptions",
    "Apgd",
    "ApgdOptions",
    "Auto",
    "AutoOptions",
    "Banded",
    "BandedOptions",
    "Canal",
    "CanalOptions",
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
    "Subadmm",
    "SubadmmOptions",
    "WarmStart",
    "condense",
    "make_solver",
    "register_solver",
]

"""What all solvers share: common options, warm start and solution. :mod:`contact.solvers.judge` judges and drives them."""

from __future__ import annotations

import inspect
import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import wraps
from typing import Any, ClassVar, Literal, Protocol, get_args, runtime_checkable

import numpy as np

from contact.errors import ContactError
from contact.linear import Backend
from contact.local import LocalProblem
from contact.metrics import LawArguments, Residuals, is_finite
from contact.problem import ContactProblem
from contact.solvers.option_kinds import WRONG, in_words, kinds_of, of_kind, shown

#: Most threads that are allowed; more than the processors are in vain.
_MOST_THREADS = max(os.cpu_count() or 1, 64)

Status = Literal["converged", "infeasible", "stopped at rounding", "stopped at the limit", "failed"]
#: An option to be checked: name, value, whether it is good, and what is allowed.
Check = tuple[str, object, bool, str]


@dataclass
class WarmStart:
    """Starting point of a solve.

    Attributes
    ----------
    v : ndarray, (n,), m/s
        Velocity of the previous step (the representative velocity, not the end velocity; see papers/001 section V-A5).
    lam : ndarray, (nc, 3), N
        Contact forces of the previous step in this step's frames, zero for new contacts.
    row_forces : ndarray, (p,), N, optional
        Forces of the rows of the previous step. Default zero.
    """

    v: np.ndarray
    lam: np.ndarray
    row_forces: np.ndarray | None = None


@dataclass
class _FittingStart(WarmStart):
    """A start whose arrays fit a problem; nobody writes to them."""

    problem: ContactProblem | LocalProblem | None = None


def checked_start(problem: ContactProblem | LocalProblem, start: WarmStart) -> WarmStart:
    """Return a start whose arrays fit a problem, with lists and whole numbers as float64.

    One that was returned for this problem stays as it is: solvers hand theirs on to others. Kernels read as many numbers as the
    problem has, whatever an array holds. The velocity of a local problem is not used.

    Raises
    ------
    ContactError
        Something that is no start, or another number of velocities or forces than the problem has, or one that is not finite.
    """
    if isinstance(start, _FittingStart) and start.problem is problem:
        return start
    try:
        v, lam, rows = start.v, start.lam, start.row_forces
    except AttributeError:
        raise ContactError(
            f"the warm start is {type(start).__name__}; give a WarmStart with velocities v and contact forces lam, or None."
        ) from None
    nc, p = problem.n_contacts, 0
    if isinstance(problem, ContactProblem):
        v = _fitting("v", v, (problem.n,), f"({problem.n},), one velocity for each row of A")
        p = 0 if problem.rows is None else problem.rows.n_rows
    lam = _fitting("lam", lam, (nc, 3), f"({nc}, 3), three forces for each of {nc} contacts")
    if rows is not None:
        rows = _fitting("row_forces", rows, (p,), f"({p},), one force for each row")
    return _FittingStart(v, lam, rows, problem)


def start_pair(problem: ContactProblem, warm_start: WarmStart | None) -> tuple[np.ndarray, np.ndarray]:
    """Velocity, (n,), m/s, and forces, (nc, 3), N, at which a solve starts, its own to write to; zero without a warm start."""
    nc = problem.n_contacts
    if warm_start is None:
        return np.zeros(problem.n), np.zeros((nc, 3))
    return np.array(warm_start.v, dtype=np.float64), np.array(warm_start.lam, dtype=np.float64).reshape(nc, 3)


def _fitting(name: str, values: Any, shape: tuple[int, ...], allowed: str) -> np.ndarray:
    """Return values of a warm start as finite numbers of a shape, the same array where it is one."""
    if type(values) is np.ndarray and values.dtype == np.float64 and values.shape == shape and values.flags.c_contiguous:
        if is_finite(values):
            return values
    try:
        given = np.asarray(values)
    except ValueError:  # rows of different lengths
        given = np.asarray(None)
    if given.dtype.kind not in "fiu":
        raise ContactError(f"{name} of the warm start is {type(values).__name__}; it needs real numbers of shape {allowed}.")
    array = np.ascontiguousarray(given, dtype=np.float64)
    if array.shape not in (shape, (math.prod(shape),)):
        raise ContactError(
            f"{name} of the warm start has shape {array.shape}; it needs {allowed}. Leave it out to start from zero."
        )
    bad = np.flatnonzero(~np.isfinite(array))
    if len(bad):
        raise ContactError(
            f"{name} of the warm start holds {array.ravel()[bad[0]]} at entry {bad[0]}; every value must be finite. "
            "Leave the warm start out to start from zero."
        )
    return array if array.shape == shape else array.reshape(shape)


@dataclass
class History:
    """Residuals by iteration, the first row after the first iteration.

    Attributes
    ----------
    dynamics : ndarray, (iterations,)
        True dynamics residual of the pair that would be returned, formula as ``metrics.dynamics_residual``.
    contact : ndarray, (iterations,)
        True contact residual, formula as ``metrics.contact_residual``.
    step_norm : ndarray, (iterations,), m/s
        Step length theta of the iteration; reported, never used to stop.
    """

    dynamics: np.ndarray
    contact: np.ndarray
    step_norm: np.ndarray


@dataclass
class Solution:
    """Answer of a solver.

    Attributes
    ----------
    v : ndarray, (n,), m/s
        Velocity.
    lam : ndarray, (nc, 3), N
        Contact forces, normal first.
    status : {"converged", "infeasible", "stopped at rounding", "stopped at the limit", "failed"}
        Judged by true residuals.
    message : str
        One sentence on how it ended.
    iterations : int
        Iterations used.
    history : History
        Residuals by iteration.
    timings : dict
        Seconds by stage.
    details : dict
        Solver-specific numbers, documented by the solver; of an infeasible problem also ``closing_contacts``, (k,) int.
    row_forces : ndarray, (p,), N
        Forces of the rows of a problem that has rows, else empty. Where rows repeat each other, those of least norm.
    residuals : Residuals or None
        Those by which ``v`` and ``lam`` were judged, as ``contact.metrics.residuals`` has them of the problem that was given;
        None where another law or problem was judged.
    law : LawArguments or None
        What ``contact.metrics.law_arguments`` has of them beside, where ``residuals`` is not None.
    """

    v: np.ndarray
    lam: np.ndarray
    status: Status
    message: str
    iterations: int
    history: History
    timings: dict[str, float] = field(default_factory=dict)
    details: dict[str, Any] = field(default_factory=dict)
    row_forces: np.ndarray = field(default_factory=lambda: np.zeros(0))
    residuals: Residuals | None = None
    law: LawArguments | None = None

    @property
    def converged(self) -> bool:
        """Whether the tolerance was reached by true residuals."""
        return self.status == "converged"

    def told(self, *, message: str | None = None, iterations: int | None = None, details: dict[str, Any]) -> Solution:
        """Return the same answer with other details, and where given another message and number of iterations."""
        return Solution(
            self.v, self.lam, self.status, self.message if message is None else message,
            self.iterations if iterations is None else iterations, self.history, self.timings, details, self.row_forces,
            self.residuals, self.law,
        )  # fmt: skip


class Solver(Protocol):
    """Anything that solves a :class:`~contact.problem.ContactProblem`."""

    def solve(self, problem: ContactProblem, warm_start: WarmStart | None = None) -> Solution:
        """Solve, optionally from a starting point."""
        ...


def _starting(solve: Callable[..., Solution], kind: type[ContactProblem | LocalProblem]) -> Callable[..., Solution]:
    """Make a method ``solve`` of a solver check the kind of its problem and what it starts from."""

    @wraps(solve)
    def solved(self: Any, problem: Any, warm_start: WarmStart | None = None) -> Solution:
        if not isinstance(problem, kind):
            hint = "; a ContactProblem goes to solve, a LocalProblem to solve_local"
            raise ContactError(f"{solve.__name__} takes a {kind.__name__}, not a {type(problem).__name__}{hint}.")
        return solve(self, problem, None if warm_start is None else checked_start(problem, warm_start))

    return solved


class Told:
    """Base of solvers, which says what one is: its name, and the options that differ from their defaults.

    Their ``solve`` and ``solve_local`` start from nothing that does not fit the problem, see :func:`checked_start`.
    """

    options: Any

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        for name, kind in (("solve", ContactProblem), ("solve_local", LocalProblem)):
            if name in cls.__dict__:
                setattr(cls, name, _starting(cls.__dict__[name], kind))

    def __repr__(self) -> str:
        standard = type(self.options)()
        names = [field.name for field in fields(self.options) if field.repr]
        own = [n for n in names if getattr(self.options, n) != getattr(standard, n)]
        told = ", ".join(f"{n}={getattr(self.options, n)!r}" for n in own)
        return f"<solver {self.options.solver_name!r}{f': {told}' if told else ''}>"


@runtime_checkable
class Remembering(Protocol):
    """A solver whose solves leave something for the next one by which its bits depend on the solves before.

    Given back what it remembered, a new solver with the same options gives the bits that the old one would have given.
    """

    def memory(self) -> dict[str, np.ndarray]:
        """Return what the next solve reads, arrays by name; empty before the first one. Nobody writes into them."""
        ...

    def recall(self, memory: Mapping[str, np.ndarray]) -> None:
        """Take back what :meth:`memory` returned; empty: forget all."""
        ...


def below(arrays: Mapping[str, np.ndarray], folder: str) -> dict[str, np.ndarray]:
    """Return the arrays whose names begin with ``FOLDER/``, by the rest of their names: the memory of one part of a whole."""
    start = f"{folder}/"
    return {name[len(start) :]: value for name, value in arrays.items() if name.startswith(start)}


# ---------------------------------------------------------------------- options


@dataclass(frozen=True)
class SolverOptions:
    """Options of every solver.

    Attributes
    ----------
    tolerance : float
        Both true residuals (dynamics and contact, see ``contact.metrics``) must be at most this, and the force balance of each
        body at most five times this; no contact may break its law by more than a hundred times this (at most 1 %), relative to
        the largest velocity of the contacts that press.
    max_iterations : int
        Limit of iterations.
    """

    solver_name: ClassVar[str]

    tolerance: float = 1e-5
    max_iterations: int = 1000

    def __post_init__(self) -> None:
        """Check the values once, each made what its annotation says (:mod:`contact.solvers.option_kinds`).

        Raises
        ------
        ContactError
            The first value of another kind or outside its range.
        """
        for name, kinds in kinds_of(type(self)).items():
            given = getattr(self, name)
            kept = of_kind(given, kinds)
            if kept is WRONG:
                told = {check[0]: check[3] for check in type(self)()._checks()}  # what is allowed beside defaults
                raise self._wrong(name, given, in_words(kinds) if bool in kinds or name not in told else told[name])
            if kept is not given:
                object.__setattr__(self, name, kept)
        for name, value, good, allowed in self._checks():
            if not good:
                raise self._wrong(name, value, allowed)

    def _wrong(self, name: str, value: object, allowed: str) -> ContactError:
        return ContactError(f"option {name} of solver {self.solver_name!r} is {shown(value)}; allowed are {allowed}.")

    def _checks(self) -> list[Check]:
        """Return what is allowed; a class that adds options adds its rows."""
        return [
            ("tolerance", self.tolerance, 0 < self.tolerance < 1, "numbers between 0 and 1"),
            self._limit_check(),
        ]

    def _limit_check(self) -> Check:
        return "max_iterations", self.max_iterations, self.max_iterations >= 1, "integers >= 1"

    @classmethod
    def describe(cls) -> str:
        """Text on all options, each from the class that documents it last."""
        texts: dict[str, str] = {}
        for base in reversed(cls.__mro__):
            _, _, attributes = inspect.cleandoc(base.__dict__.get("__doc__") or "").partition("Attributes\n----------\n")
            name = ""
            for line in attributes.splitlines():
                name = name if line.startswith(" ") else line.split(" : ")[0]
                texts[name] = line if not line.startswith(" ") else f"{texts[name]}\n{line}"
        head = (inspect.getdoc(cls) or "").partition("\n")[0]
        return "\n".join([head, "", *texts.values()])


@dataclass(frozen=True)
class OperatorOptions(SolverOptions):
    """Options of solvers with a choice between the contact law and its relaxation.

    Attributes
    ----------
    operator : {"strict", "proximal"}
        Projection of papers/001 eq. (26): strict satisfies the Signorini-Coulomb law, proximal its convex relaxation (eq. 28).
    """

    operator: Literal["strict", "proximal"] = "strict"

    def _checks(self) -> list[Check]:
        return [
            *super()._checks(),
            ("operator", self.operator, self.operator in self._operators(), " and ".join(map(repr, self._operators()))),
        ]

    def _operators(self) -> tuple[str, ...]:
        """Return the operators that the solver has."""
        return "strict", "proximal"


@dataclass(frozen=True)
class FactorizationOptions(SolverOptions):
    """Options of solvers that factorize A.

    Attributes
    ----------
    backend : {"auto", "pardiso", "superlu"}
        Direct solver, see ``contact.linear``. Default: Pardiso where it runs.
    threads : int
        Threads of the direct solver. Default 1.
    """

    backend: Backend = "auto"
    threads: int = 1

    def _checks(self) -> list[Check]:
        return [
            *super()._checks(),
            ("backend", self.backend, self.backend in get_args(Backend), "'auto', 'pardiso' and 'superlu'"),
            ("threads", self.threads, 1 <= self.threads <= _MOST_THREADS, f"integers from 1 to {_MOST_THREADS}"),
        ]

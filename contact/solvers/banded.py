"""Banded: exact solver for rods alone, Newton steps on velocities and forces with one sweep along the chain each."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp

from contact.errors import ContactError
from contact.metrics import natural_map_scale
from contact.problem import ContactProblem, from_isotropic, isotropic, to_isotropic
from contact.solvers import banded_kernels as kernels
from contact.solvers.base import Solution, SolverOptions, Told, WarmStart
from contact.solvers.judge import Judge, Rows, drive
from contact.solvers.with_rows import takes_rows

#: Newton steps that are taken before the first is judged from outside; those after them are judged one by one.
_AT_ONCE = 5
#: Proximal shift relative to the compliance of a contact, and scale of the trial forces (see ``contact.solvers.dense``).
_RULES = kernels.ProximalRules(shift=1e-6, trial_scale=10.0)


@dataclass(frozen=True)
class BandedOptions(SolverOptions):
    """Options of the solver for chains.

    Attributes
    ----------
    max_iterations : int
        Limit of Newton steps. Default 25; 1 to 4 are usual.
    """

    solver_name: ClassVar[str] = "banded"

    tolerance: float = 1e-8
    max_iterations: int = 25


class Banded(Told):
    """Regularised semi-smooth Newton for chains of links.

    A is block tridiagonal with 6x6 blocks (rods, each its own chain) and every contact acts on one link, so the contact forces
    are eliminated link by link from a Newton step on (v, lam), and the step is one block LU sweep whose cost is linear in the
    number of links. Each step is a proximal one around the present forces, which leaves no trace in the answer. Between steps
    what a contact holds beyond friction goes on to those beside it that stick, so that where many begin to slide they do so in
    a few steps.

    Parameters
    ----------
    options : BandedOptions, optional
        Options; defaults are documented there.

    Notes
    -----
    It does not look for another way when Newton's method cycles: it then says that it stopped at the limit, and ``auto`` goes on
    with the exact solver.
    """

    description = "Banded: Newton with one sweep along the chain a step; for rods alone, in contact with driven or fixed parts"

    def __init__(self, options: BandedOptions | None = None) -> None:
        self.options = options or BandedOptions()
        self._pattern: _Pattern | None = None
        #: the problem that was asked about last, and its contacts on links
        self._asked: tuple[ContactProblem, _OnLinks | None] | None = None

    def fits(self, problem: ContactProblem) -> bool:
        """Whether all bodies are rods, which nothing joins, and every contact acts on one link of one of them."""
        if not problem.groups or any(group.kind != "links" for group in problem.groups):
            return False
        return self._gathered(problem) is not None

    def _gathered(self, problem: ContactProblem) -> _OnLinks | None:
        """Contacts of a problem and where its links are in A; None where it is of another kind."""
        if self._asked is None or self._asked[0] is not problem:
            if self._pattern is None or not self._pattern.is_of(problem.A):
                self._pattern = _Pattern.of(problem.A)
            self._asked = problem, _on_links(problem, self._pattern)
        return self._asked[1]

    @takes_rows
    def solve(self, problem: ContactProblem, warm_start: WarmStart | None = None) -> Solution:
        """Solve the problem.

        Parameters
        ----------
        problem : ContactProblem
            Rods alone: groups of kind "links", A block tridiagonal, every contact on one link.
        warm_start : WarmStart, optional
            Velocity and forces of the previous step. Default zero.

        Raises
        ------
        ContactError
            A problem of another kind.
        """
        started = time.perf_counter()
        on_links = self._gathered(problem)
        if on_links is None:
            raise ContactError(
                "solver 'banded' takes rods alone: A must be block tridiagonal with 6x6 blocks and each contact act on one link; "
                "use 'exact' or 'auto'."
            )
        newton = _NewtonSteps(problem, warm_start, on_links)
        gathered = time.perf_counter()
        judge = Judge(problem, self.options.tolerance)
        drive(newton, judge, self.options.max_iterations)
        return judge.solution({"gather": gathered - started, "iterate": time.perf_counter() - gathered}, {})


class _Pattern(NamedTuple):
    """Where the blocks of links are in matrices of one pattern, (n, 2, 6, 6), see ``find_links``; None where it has others."""

    indptr: np.ndarray
    indices: np.ndarray
    place: np.ndarray | None

    @classmethod
    def of(cls, A: sp.csc_matrix) -> _Pattern:
        n = A.shape[0] // 6
        place = np.empty((n, 2, 6, 6), dtype=np.int64)
        found = A.shape[0] == 6 * n and kernels.find_links(A.indptr, A.indices, place)
        return cls(A.indptr, A.indices, place if found else None)

    def is_of(self, A: sp.csc_matrix) -> bool:
        """Whether a matrix has the very arrays of this pattern."""
        return self.indptr is A.indptr and self.indices is A.indices


class _OnLinks(NamedTuple):
    """Where the links of a problem are in A; link of each contact, (nc,), and its rows of J there, (nc, 3, 6)."""

    place: np.ndarray
    link: np.ndarray
    jacobian: np.ndarray


def _on_links(problem: ContactProblem, pattern: _Pattern) -> _OnLinks | None:
    """Gather the contacts of a problem; None where it has others than those on one link of a chain."""
    law, nc = isotropic(problem), problem.n_contacts
    link, jacobian = np.empty(nc, dtype=np.int64), np.empty((nc, 3, 6))
    if pattern.place is None or not kernels.gather_contacts(law.J.indptr, law.J.indices, law.J.data, link, jacobian):
        return None
    return _OnLinks(pattern.place, link, jacobian)


_NOTHING = np.empty(0, dtype=np.int64)
_NO_SPREAD = kernels.SpreadWork(_NOTHING, _NOTHING, _NOTHING, np.empty((0, 3)), np.empty(3))


def _spread_work(link: np.ndarray, upper: np.ndarray) -> kernels.SpreadWork:
    """Return what goes along the chains."""
    nc, chain = len(link), np.empty(len(upper), dtype=np.int64)
    kernels.number_chains(upper, chain)
    order = np.argsort(link, kind="stable")
    return kernels.SpreadWork(order, chain, np.empty(nc, dtype=np.int64), np.empty((nc, 3)), np.empty(3))


class _NewtonSteps:
    """The iterations of :class:`Banded` on one problem; a singular matrix of a step is a failure."""

    over = False

    def __init__(self, problem: ContactProblem, warm_start: WarmStart | None, on_links: _OnLinks) -> None:
        self.problem, law = problem, isotropic(problem)
        nc, n = problem.n_contacts, problem.n // 6
        diagonal, upper = np.empty((n, 6, 6)), np.empty((n, 6, 6))
        place, link, jacobian = on_links
        kernels.gather_links(place, law.A.data, diagonal, upper)
        self.v, self.lam = np.zeros((n, 6)), np.zeros((nc, 3))
        if warm_start is not None:
            self.v[:] = np.reshape(warm_start.v, (n, 6))
            self.lam[:] = to_isotropic(problem, warm_start.lam.reshape(nc, 3))
        self._chain = kernels.Chain(diagonal, upper, law.b.reshape(n, 6), law.weight.reshape(n, 6))
        self._contacts = kernels.LinkContacts(link, jacobian, law.phi, law.friction, 1.0 / natural_map_scale(law))
        self._u = np.empty((nc, 3))
        rest, push, step = np.empty((3, n, 6))
        reduced, right = np.empty((2, n, 6, 6))
        self._work = kernels.NewtonWork(rest, push, step, reduced, right, np.empty((nc, 3, 3)), np.empty((nc, 3)))
        self._spread = _NO_SPREAD if nc == 0 else _spread_work(link, upper)
        self.best, self.failed = -1, False

    def until(self, aim: float, limit: int) -> Rows:
        """Take Newton steps; before those after the first, contacts that hold too much let others slide."""
        begun, alone = self.best >= 0, len(self.lam) == 0
        rows = np.empty((1 if begun or alone else min(_AT_ONCE, limit), 3))
        count, possible = kernels.iterate(
            self._chain, self._contacts, _RULES, self.v, self.lam, self._u, self._work, self._spread, begun, aim, rows
        )
        self.failed = not possible
        self.best += count
        return [(None, None, float(rows[0, 2]))] if alone else rows[:count]

    def answer(self) -> tuple[np.ndarray, np.ndarray]:
        return self.v.ravel(), from_isotropic(self.problem, self.lam)

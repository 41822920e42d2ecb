"""Exact: the accurate solver for stiff problems, by a lagged factorization and a contact problem condensed on its contacts."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from contact.compressed import rows_of_contacts
from contact.delassus import DelassusOperator
from contact.jacobian_kernels import mark_columns
from contact.linear import Factorization
from contact.local import LocalProblem
from contact.metrics import LawArguments, Residuals, contact_velocity, norm, residuals
from contact.problem import ContactProblem, force_scales, from_isotropic, isotropic, to_isotropic
from contact.solvers import exact_kernels as kernels
from contact.solvers.base import Check, FactorizationOptions, Solution, Told, WarmStart, start_pair
from contact.solvers.dense import DenseResult, DenseSolver
from contact.solvers.judge import Judge, Row, drive, unbalanced
from contact.solvers.mixing import Iterate, Mixing
from contact.solvers.with_rows import takes_rows

#: An older factorization is renewed when, at the pace of the last iteration, more than this many would still be needed.
_PATIENCE = 12
#: The contact problem is solved to this part of the tolerance, or of the residual that the iteration started from.
_INNER_TOLERANCE, _INNER_REDUCTION = 0.1, 1e-4
#: ... times this for each time that the judge, who also scales velocities by diag(A), was not content with it.
_SHARPER = 0.1
#: ... and never more sharply than rounding of its residual lets it be: 16 times that of a number near 1.
_SHARPEST = 16.0 * sys.float_info.epsilon
#: Iterations with factors that serve and no new contacts that did not halve the best residual, after which it stops.
_STALLED, _BETTER = 12, 0.5
#: ... of which one whose contact problem took all of its sweeps counts for so many: it creeps and is as dear as hundreds.
_CREEPS = 4
#: What it says when it stopped so; whether rounding is why is not known, as contact problems that were not solved stall as well.
_STALLS = "Stopped after {} iterations, the last of which came no nearer: try another solver or a larger tolerance"
#: A contact stands still along its normal below this part of the largest contact velocity: the sign there is rounding's.
_STANDING = 1e-10
#: Rows that open contacts act on are kept in the patch as well while it stays below this size, those that close soonest first.
_GENEROUS_PATCH = 300
#: Problems without contacts and with this many unknowns at most are factorized each time: what refinement leaves within the
#: tolerance adds up where a body turns freely for long (a rigid box that flew at 1 m/s gained 2e-7 of its energy a step).
_SMALL = 60


def _too_slow(before: float, after: float, tolerance: float) -> bool:
    """Whether going on at the pace from one residual to the next takes more than ``_PATIENCE`` iterations."""
    return after > tolerance and (after >= before or np.log(tolerance / after) / np.log(after / before) > _PATIENCE)


@dataclass(frozen=True)
class ExactOptions(FactorizationOptions):
    """Options of the exact solver.

    Attributes
    ----------
    max_iterations : int
        Limit of refinements, each with a contact problem of its own. Default 60; 2 to 4 are usual.
    max_sweeps : int
        Limit of Gauss-Seidel sweeps and Newton steps in one contact problem. Default 20000; less than 100 are usual.
    lag : bool
        Use the factorization of an earlier problem for as long as it serves. Default on; off factorizes every problem.
    """

    solver_name: ClassVar[str] = "exact"

    tolerance: float = 1e-8
    max_iterations: int = 60
    max_sweeps: int = 20000
    lag: bool = True

    def _checks(self) -> list[Check]:
        return [*super()._checks(), ("max_sweeps", self.max_sweeps, self.max_sweeps >= 1, "integers >= 1")]


class Exact(Told):
    """Condensation by a lagged direct factorization, and exact contact by Gauss-Seidel and semi-smooth Newton.

    With A~ an earlier A that is factorized with the rows of the contacts kept to the end (``contact.linear``), one iteration
    finds (v+, lam+) with the contact law and ::

        A~ (v+ - v) = b + J^T lam - A v + J^T (lam+ - lam),

    whose fixed point is the solution for A. Condensed on the contacts this is u = W lam+ + q with W = J A~^-1 J^T (papers/001
    eq. 3), dense and small, solved by :class:`~contact.solvers.dense.DenseSolver`. Each iteration leaves about the part of the
    error by which A~^-1 A differs from the identity: while a soft body deforms slowly one factorization serves for tens of
    steps, and the speed does not depend on how stiff the body is. Only contacts that carry force or approach are condensed;
    any other contact is added as soon as it approaches. Where 12 iterations in a row, with factors that serve, do not halve
    the best residual, it stops.

    Parameters
    ----------
    options : ExactOptions, optional
        Options; defaults are documented there.
    factorization : Factorization, optional
        What factorizes instead of the backend of the options: ``contact.linear.DenseCholesky`` for small problems.
    only_newton : bool
        Whether contact is left to Newton's method from the warm start, see :class:`~contact.solvers.dense.DenseSolver`.

    Attributes
    ----------
    max_sweeps : int
        Limit of the sweeps of a refinement in the next solve; at first that of the options.
    all_sweeps : int
        Sweeps after which the next solve makes no other refinement; at first no number is too large.

    Notes
    -----
    ``Solution.details`` holds ``factorizations``, ``sweeps``, ``newton_steps``, ``condensed_contacts`` and ``linear_algebra``
    (the direct solver).
    """

    description = (
        "Exact: condensed on the contacts by a lagged factorization, Gauss-Seidel and Newton there; also for stiff problems"
    )

    def __init__(
        self, options: ExactOptions | None = None, factorization: Factorization | None = None, *, only_newton: bool = False
    ) -> None:
        self.options, self._only_newton = options or ExactOptions(), only_newton
        self.max_sweeps, self.all_sweeps = self.options.max_sweeps, sys.maxsize
        self._operator = DelassusOperator(self.options.backend, self.options.threads, factorization, refined=True)
        self.linear_algebra = self._operator.factorization.name

    def memory(self) -> dict[str, np.ndarray]:
        """Return what one solve leaves for the next: what the lagged factors are of."""
        return self._operator.memory()

    def recall(self, memory: Mapping[str, np.ndarray]) -> None:
        """Take it back."""
        self._operator.recall(memory)

    @takes_rows
    def solve(self, problem: ContactProblem, warm_start: WarmStart | None = None) -> Solution:
        """Solve the problem.

        Parameters
        ----------
        problem : ContactProblem
            Any problem; anisotropic friction is solved in the variables of ``isotropic(problem)``.
        warm_start : WarmStart, optional
            Velocity and forces of the previous step. Default zero.

        Raises
        ------
        ContactError
            A is not positive definite.
        """
        sweeps = self.max_sweeps, self.all_sweeps
        refinement = _Refinement(problem, warm_start, self.options, self._operator, sweeps, only_newton=self._only_newton)
        judge = refinement.judge
        drive(refinement, judge, self.options.max_iterations)
        details = {**refinement.counts, "condensed_contacts": refinement.count, "linear_algebra": self.linear_algebra}
        ended = _STALLS if refinement.stalled >= _STALLED else ""
        return judge.solution(refinement.timings, details, ended=ended)

    def solve_local(self, problem: LocalProblem, warm_start: WarmStart | None = None) -> Solution:
        """Solve a problem given as u = W lam + q; ``Solution.v`` is empty.

        Parameters
        ----------
        problem : LocalProblem
            Any problem; W may be singular and need not be symmetric.
        warm_start : WarmStart, optional
            Forces of the previous step. Default zero.
        """
        started = time.perf_counter()
        judge = Judge(problem, self.options.tolerance)
        search = _LocalSearch(problem, warm_start, self.options, judge)
        drive(search, judge, sys.maxsize)
        details = {"sweeps": search.found.sweeps, "newton_steps": search.found.newton_steps}
        return judge.solution({"contact": time.perf_counter() - started}, details)


class _Refinement:
    """The iterations of :class:`Exact` on one problem; the judge's numbers steer how sharply and with which factors."""

    failed = False

    def __init__(
        self,
        problem: ContactProblem,
        warm_start: WarmStart | None,
        options: ExactOptions,
        operator: DelassusOperator,
        sweeps: tuple[int, int],
        *,
        only_newton: bool = False,
    ) -> None:
        self.problem, self.options, self.operator, self._only_newton = problem, options, operator, only_newton
        #: most sweeps of a refinement, and those after which there is no other one
        self._max_sweeps, self._most = sweeps
        self._measured = _Measured(problem)
        self.judge = Judge(problem, options.tolerance, self._measured)
        self.law = isotropic(problem)
        nc, A, J = problem.n_contacts, problem.A, self.law.J
        self.v, lam = start_pair(problem, warm_start)
        self.forces = to_isotropic(problem, lam)
        self.u, self._Av, self.chosen = np.empty((nc, 3)), np.empty(problem.n), np.empty(nc, dtype=np.bool_)
        #: contacts that are chosen, and the residual of the dynamics that an iteration starts from: a warm start may be so good
        #: that one is enough
        self.count, self._started = kernels.begin(
            A.indptr, A.indices, A.data, J.indptr, J.indices, J.data, self.law.phi, problem.b, problem.weight, self.v,
            self.forces, _STANDING, self.u, self._Av, self.chosen,
        )  # fmt: skip
        self.timings = dict.fromkeys(("factorize", "operator", "contact", "refine", "judge"), 0.0)
        self.counts = {"factorizations": 0, "sweeps": 0, "newton_steps": 0}
        self.best = -1
        self._mixing, self._iterate = Mixing(), Iterate(self.v, self._Av, self.forces, self.v, self._Av)
        self._dense: DenseSolver | None = None
        self._fresh = False
        self._before = self._sharper = 1.0
        self._aim, self._reached = 0.0, np.inf
        self._rho = np.zeros(nc)
        self._runaway, self._crept, self.stalled, self._least = False, False, 0, np.inf

    @property
    def over(self) -> bool:
        """Whether forces run away, iterations come no nearer, or sweeps are used up."""
        return self._runaway or self.stalled >= _STALLED or self.counts["sweeps"] >= self._most

    def until(self, aim: float, limit: int) -> list[Row]:
        """One refinement: what contacts need for the residual of the dynamics, solved to a part of it."""
        if self.best >= 0:
            self._adapt()
        dense = self._dense or self._condense()
        clock, started = time.perf_counter, time.perf_counter()
        law, operator, J = self.law, self.operator, self.law.J
        chosen = slice(None) if self.count == len(self.chosen) else self.chosen
        residual = np.empty(len(law.b))
        kernels.lacking(J.indptr, J.indices, J.data, law.b, self.forces, self._Av, residual)
        q = operator.begin(residual) + self.u[chosen].ravel()
        self.timings["refine"] += clock() - started
        started = clock()
        old = self.forces[chosen].ravel()
        new = old.copy()
        q -= dense.WT.T @ old
        aim = self._sharper * max(_INNER_TOLERANCE * self.judge.tolerance, _INNER_REDUCTION * min(self._started, 1.0))
        self._aim = max(aim, _SHARPEST)
        found = dense.solve(q, new, self._aim, self._max_sweeps)
        self._reached, self._runaway, self._crept = found.residual, found.runaway, found.sweeps >= self._max_sweeps
        self.judge.know(self._rho, kernels.speed_without_forces(q, new))
        self.counts["sweeps"] += found.sweeps
        self.counts["newton_steps"] += found.newton_steps
        self.timings["contact"] += clock() - started
        started = clock()
        step, Av = operator.finish(new - old), self._Av
        self.v = self.v + step
        self.u, self._Av = contact_velocity(law, self.v), law.times(self.v)
        self._measured.Av = self._Av
        self.forces = self.forces.copy()
        self.forces[chosen] = new.reshape(-1, 3)
        self._iterate = Iterate(self.v, self._Av, self.forces, step, self._Av - Av)
        self.timings["refine"] += clock() - started
        self.best += 1
        return [(None, None, norm(step))]

    def answer(self) -> tuple[np.ndarray, np.ndarray]:
        return self.v, from_isotropic(self.problem, self.forces)

    def _condense(self) -> DenseSolver:
        """Condense on the chosen contacts, by the last factorization where it serves."""
        started, law, chosen = time.perf_counter(), self.law, self.chosen
        everything = self.count == len(chosen)
        J = law.J if everything else rows_of_contacts(law.J, chosen)
        small = law.n_contacts == 0 and law.n <= _SMALL
        self._fresh = small or not (self.options.lag and self.operator.fits(law, J))
        if self._fresh:
            self.operator.factorize(law, _patch(law, chosen, self.u), J)
            self.counts["factorizations"] += 1
        factorized = time.perf_counter()
        self.timings["factorize"] += factorized - started
        W = self.operator.operator(J)
        rho = force_scales(W.diagonal().reshape(-1, 3))
        self._rho = rho
        if not everything:
            self._rho = law.scales.copy()
            self._rho[chosen] = rho
        friction = law.friction if everything else law.friction[chosen]
        self._dense = DenseSolver(W, friction, rho, only_newton=self._only_newton)
        self.timings["operator"] += time.perf_counter() - factorized
        return self._dense

    def _adapt(self) -> None:
        """Take in contacts that approach; renew factors that are too slow; solve more sharply where the judge is not content."""
        tolerance, last = self.judge.tolerance, self.judge.last
        changed = self.count < len(self.chosen) and kernels.approach(self.u, _STANDING, self.chosen)
        if changed:
            self._dense, self.count = None, int(self.chosen.sum())
        self._watch(changed=changed)
        if self._reached <= self._aim and last.dynamics <= tolerance < max(last.contact, self.judge.error):
            self._sharper *= _SHARPER
        # without the plain norm, which depends on units: of forces that are not unique, old and new factors find others
        lacking = max(last.dynamics, unbalanced(last.balance))
        if (self.operator.single or not self._fresh) and _too_slow(self._before, lacking, tolerance):
            if self._fresh:
                self.operator.sharpen()
            self.operator.forget()
            self._dense = None
        if self._dense is None or lacking >= self._before:
            self._mixing.forget()
        self._extrapolate(lacking)
        self._before, self._started = lacking, last.dynamics

    def _extrapolate(self, lacking: float) -> None:
        """Go on from the extrapolation of what the last iterations led to, where the dynamics lack more than the tolerance.

        Below it, steps are what the contact problem was solved to, and rounding: a combination of them is no nearer, and it is no
        answer of a contact problem, from which the next search would find the law at once.
        """
        if lacking <= self.judge.tolerance:
            self._mixing.forget()
            return
        self.v, self._Av, self.forces = self._mixing.extrapolated(self._iterate)
        self.u = contact_velocity(self.law, self.v)

    def _watch(self, *, changed: bool) -> None:
        """Count iterations that hardly came nearer with what they had: the same contacts, and factors that serve."""
        worst = max(self.judge.last.worst, self.judge.error)
        serving = self._fresh or self.judge.excess <= self.judge.tolerance
        if changed or not serving or not worst > _BETTER * self._least:
            self.stalled = 0
        else:
            self.stalled += _CREEPS if self._crept else 1
        self._least = min(self._least, worst)


class _Measured:
    """Residuals of the last iterate of a problem, whose A v, (n,), N, is told.

    The judge has this, and not the refinement that has the judge: what refers to itself keeps its arrays until Python looks for
    such, and that took 1 to 6 % of the steps of small scenes.
    """

    def __init__(self, problem: ContactProblem) -> None:
        self.problem = problem
        self.Av: np.ndarray | None = None

    def __call__(self, v: np.ndarray, lam: np.ndarray, law: LawArguments) -> Residuals:
        """Measure the residuals of velocities (n,) and forces (nc, 3) with these arguments of their contact law."""
        return residuals(self.problem, v, lam, Av=self.Av, law=law)


class _LocalSearch:
    """One search of :class:`~contact.solvers.dense.DenseSolver` on a local problem; its rows are what it reports on the way."""

    over, failed = True, False

    def __init__(self, problem: LocalProblem, warm_start: WarmStart | None, options: ExactOptions, judge: Judge) -> None:
        self.problem, self.options, self.judge = problem, options, judge
        self.lam = np.zeros(3 * problem.n_contacts)
        if warm_start is not None:
            self.lam = np.array(warm_start.lam, dtype=np.float64).ravel()
        self._dense = DenseSolver(np.ascontiguousarray(problem.W.T), problem.friction, problem.scales)
        self.best, self.found = -1, DenseResult(0, 0, np.inf)

    def until(self, aim: float, limit: int) -> list[Row]:
        """Search to the end; the last row is that of the answer."""
        nothing = np.zeros(0)
        rows: list[Row] = []

        def report(iterate: np.ndarray, _u: np.ndarray) -> None:
            self.judge.look(nothing, iterate, len(rows))
            rows.append((0.0, self.judge.last.contact, 0.0))

        goal = _INNER_TOLERANCE * aim
        self.found = self._dense.solve(self.problem.q.ravel(), self.lam, goal, self.options.max_sweeps, report)
        if not self.judge.converged:
            rows.append((0.0, None, 0.0))
        self.best = len(rows) - 1
        return rows

    def answer(self) -> tuple[np.ndarray, np.ndarray]:
        return np.zeros(0), self.lam


def _patch(problem: ContactProblem, chosen: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Rows that the factorization keeps: those of the chosen contacts, (nc,) bool, and of others that may come next.

    Those let it serve the next steps too, but each row makes every factorization and solve dearer. Soonest close contacts whose
    velocity u (nc, 3), m/s, with the gap in it is small beside the speed at which the gap shrinks.
    """
    J, used = problem.J, np.zeros(problem.n, dtype=np.bool_)
    mark_columns(J.indptr, J.indices, used)
    rows = used.nonzero()[0]
    if len(rows) <= _GENEROUS_PATCH:
        return rows
    gap = np.where(chosen, 1.0, u[:, 0])
    sooner = np.argsort((u[:, 0] - problem.phi[:, 0]) / gap, kind="stable")
    rank = np.empty(len(gap), dtype=np.int64)
    rank[sooner] = np.arange(1, len(gap) + 1)
    rank[chosen] = 0
    first = np.full(J.shape[1], len(gap) + 1)
    np.minimum.at(first, J.indices, np.repeat(rank, np.diff(J.indptr[::3])))
    return np.flatnonzero(first < max(int(np.sort(first[rows])[_GENEROUS_PATCH]), 1))

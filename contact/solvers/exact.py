"""Exact: the accurate solver for stiff problems, by a lagged factorization and a contact problem condensed on its contacts."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import get_args

import numpy as np
import scipy.sparse as sp

from contact.delassus import DelassusOperator
from contact.linear import Backend
from contact.local import LocalProblem
from contact.metrics import contact_velocity, norm
from contact.problem import ContactProblem, force_scales, from_isotropic, isotropic, to_isotropic
from contact.solvers.base import Judge, Solution, WarmStart, check_options
from contact.solvers.dense import DenseSolver

#: An older factorization is renewed when, at the pace of the last iteration, more than this many would still be needed.
_PATIENCE = 12
#: The contact problem is solved to this part of the tolerance, or of the residual that the iteration started from.
_INNER_TOLERANCE, _INNER_REDUCTION = 0.1, 1e-4
#: ... times this for each time that the judge, who scales velocities by diag(A) instead of W, was not content with it.
_SHARPER = 0.1
#: Rows that open contacts act on are kept in the patch as well while it stays below this size.
_GENEROUS_PATCH = 900


def _too_slow(before: float, after: float, tolerance: float) -> bool:
    """Whether going on at the pace from one residual to the next takes more than ``_PATIENCE`` iterations."""
    return after > tolerance and (after >= before or np.log(tolerance / after) / np.log(after / before) > _PATIENCE)


@dataclass(frozen=True)
class ExactOptions:
    """Options of the exact solver.

    Attributes
    ----------
    tolerance : float
        Both true residuals (dynamics and contact, see ``contact.metrics``) must be at most this, and the force balance of each
        body at most five times this. Default 1e-8.
    max_iterations : int
        Limit of refinements, each with a contact problem of its own. Default 60; 2 to 4 are usual.
    max_sweeps : int
        Limit of Gauss-Seidel sweeps and Newton steps in one contact problem. Default 20000; less than 100 are usual.
    backend : {"auto", "pardiso", "superlu"}
        Direct solver, see ``contact.linear``. Default: Pardiso where it runs.
    threads : int
        Threads of the direct solver. Default 1.
    lag : bool
        Use the factorization of an earlier problem for as long as it serves. Default on; off factorizes every problem.
    """

    tolerance: float = 1e-8
    max_iterations: int = 60
    max_sweeps: int = 20000
    backend: Backend = "auto"
    threads: int = 1
    lag: bool = True

    def __post_init__(self) -> None:
        """Check the values once.

        Raises
        ------
        ContactError
            A value outside its range.
        """
        check_options(
            "exact",
            ("tolerance", self.tolerance, 0 < self.tolerance < 1, "numbers between 0 and 1"),
            ("max_iterations", self.max_iterations, self.max_iterations >= 1, "integers >= 1"),
            ("max_sweeps", self.max_sweeps, self.max_sweeps >= 1, "integers >= 1"),
            ("backend", self.backend, self.backend in get_args(Backend), "'auto', 'pardiso' and 'superlu'"),
            ("threads", self.threads, self.threads >= 1, "integers >= 1"),
        )


class Exact:
    """Condensation by a lagged direct factorization, and exact contact by Gauss-Seidel and semi-smooth Newton.

    With A~ an earlier A that is factorized with the rows of the contacts kept to the end (``contact.linear``), one iteration
    finds (v+, lam+) with the contact law and ::

        A~ (v+ - v) = b + J^T lam - A v + J^T (lam+ - lam),

    whose fixed point is the solution for A. Condensed on the contacts this is u = W lam+ + q with W = J A~^-1 J^T (papers/001
    eq. 3), dense and small, solved by :class:`~contact.solvers.dense.DenseSolver`. Each iteration leaves about the part of the
    error by which A~^-1 A differs from the identity: while a soft body deforms slowly one factorization serves for tens of
    steps, and the speed does not depend on how stiff the body is. Only contacts that carry force or approach are condensed;
    any other contact is added as soon as it approaches.

    Parameters
    ----------
    options : ExactOptions, optional
        Options; defaults are documented there.

    Notes
    -----
    ``Solution.details`` holds ``factorizations``, ``sweeps``, ``newton_steps``, ``condensed_contacts`` and ``linear_algebra``
    (the direct solver).
    """

    description = (
        "Exact: condensed on the contacts by a lagged factorization, Gauss-Seidel and Newton there; also for stiff problems"
    )

    def __init__(self, options: ExactOptions | None = None) -> None:
        self.options = options or ExactOptions()
        self._operator = DelassusOperator(self.options.backend, self.options.threads)
        self.linear_algebra = self._operator.factorization.name

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
        options, operator = self.options, self._operator
        clock = time.perf_counter
        same = isotropic(problem)
        nc = problem.n_contacts
        v, forces = np.zeros(problem.n), np.zeros((nc, 3))
        if warm_start is not None:
            v, forces = np.array(warm_start.v, dtype=np.float64), to_isotropic(problem, warm_start.lam.reshape(nc, 3)).copy()
        timings = dict.fromkeys(("factorize", "operator", "contact", "refine", "judge"), 0.0)
        details = {"factorizations": 0, "sweeps": 0, "newton_steps": 0}
        judge = Judge(problem, options.tolerance)
        u = contact_velocity(same, v)
        chosen = forces.any(axis=1) | (u[:, 0] <= 0)
        J, dense, fresh = same.J, None, False
        before = sharper = 1.0
        for _ in range(options.max_iterations):
            started = clock()
            if dense is None:
                J = same.J if chosen.all() else same.J[np.repeat(chosen, 3)]
                fresh = not (options.lag and operator.fits(same, J))
                if fresh:
                    operator.factorize(same, self._patch(same, J))
                    details["factorizations"] += 1
                timings["factorize"] += clock() - started
                started = clock()
                W = operator.operator(J)
                dense = DenseSolver(W, same.friction[chosen], force_scales(W.diagonal().reshape(-1, 3)))
                timings["operator"] += clock() - started
                started = clock()
            residual = same.b + same.pushed(forces) - same.A @ v
            q = operator.begin(residual) + u[chosen].ravel()
            timings["refine"] += clock() - started
            started = clock()
            old, new = forces[chosen].ravel(), forces[chosen].ravel()
            q -= dense.WT.T @ old
            aim = sharper * max(_INNER_TOLERANCE * options.tolerance, _INNER_REDUCTION * min(before, 1.0))
            found = dense.solve(q, new, aim, options.max_sweeps)
            details["sweeps"] += found.sweeps
            details["newton_steps"] += found.newton_steps
            timings["contact"] += clock() - started
            started = clock()
            step = operator.finish(new - old)
            v += step
            u = contact_velocity(same, v)
            forces[chosen] = new.reshape(-1, 3)
            timings["refine"] += clock() - started
            started = clock()
            done = judge.done(v, from_isotropic(problem, forces), norm(step))
            timings["judge"] += clock() - started
            if done:
                break
            approaching = ~chosen & (u[:, 0] < 0)
            if approaching.any():
                chosen |= approaching
                dense = None
            dynamics, contact = judge.residuals
            if found.residual <= aim and dynamics <= options.tolerance < contact:
                sharper *= _SHARPER
            if not fresh and _too_slow(before, judge.dynamics, options.tolerance):
                operator.forget()
                dense = None
            before = judge.dynamics
        details["condensed_contacts"] = int(chosen.sum())
        return judge.solution(timings, {**details, "linear_algebra": self.linear_algebra})

    @staticmethod
    def _patch(problem: ContactProblem, J: sp.csr_matrix) -> np.ndarray:
        """Rows that the factorization keeps: those of all contacts while they are few, so that it serves the next steps too."""
        everything = np.unique(problem.J.indices)
        return everything if len(everything) <= _GENEROUS_PATCH else np.unique(J.indices)

    def solve_local(self, problem: LocalProblem, warm_start: WarmStart | None = None) -> Solution:
        """Solve a problem given as u = W lam + q; ``Solution.v`` is empty.

        Parameters
        ----------
        problem : LocalProblem
            Any problem; W may be singular and need not be symmetric.
        warm_start : WarmStart, optional
            Forces of the previous step. Default zero.
        """
        options, started = self.options, time.perf_counter()
        lam = np.zeros(3 * problem.n_contacts) if warm_start is None else np.array(warm_start.lam, dtype=np.float64).ravel()
        judge, nothing = Judge(problem, options.tolerance), np.zeros(0)
        rho = force_scales(problem.W.diagonal().reshape(-1, 3))
        dense = DenseSolver(np.ascontiguousarray(problem.W.T), problem.friction, rho)

        def report(iterate: np.ndarray, _u: np.ndarray) -> None:
            judge.done(nothing, iterate, 0.0)

        aim = _INNER_TOLERANCE * options.tolerance
        found = dense.solve(problem.q.ravel(), lam, aim, options.max_sweeps, report)
        if not judge.converged:
            judge.done(nothing, lam, 0.0)
        details = {"sweeps": found.sweeps, "newton_steps": found.newton_steps}
        return judge.solution({"contact": time.perf_counter() - started}, details)

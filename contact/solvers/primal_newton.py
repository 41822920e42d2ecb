"""Newton steps on (v, lam) that never form W: forces are eliminated contact by contact, then one sparse system is solved."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from contact.linear import Backend
from contact.problem import ContactProblem
from contact.solvers import primal_kernels as kernels
from contact.solvers.base import below
from contact.solvers.multigrid import MultigridWay
from contact.solvers.newton_ways import BandedWay, DenseWay, SparseWay, Way, columns_of
from contact.solvers.older_factors import OlderFactors


class PrimalNewton:
    """Regularised semi-smooth Newton steps on (v, lam) of one problem after another.

    With dlam = change - gain J dv of :func:`contact.solvers.primal_kernels.linearise` a step is ::

        (A + J^T gain J) dv = b + J^T (lam + change) - A v

    so that the dynamics hold to rounding after it, and the contact law where the states of all contacts were right.

    Parameters
    ----------
    backend, threads
        See ``contact.sparse_lu.make_sparse_factors``.
    """

    def __init__(self, backend: Backend = "auto", threads: int = 1) -> None:
        self._dense, self._banded, self.sparse = DenseWay(), BandedWay(), SparseWay(backend, threads, lag=False)
        self._older = OlderFactors(self.sparse.factors)
        self.multigrid = MultigridWay(self.sparse, backend, threads)
        self.way: Way = self.sparse

    def take(self, law: ContactProblem) -> None:
        """Take a problem with one friction coefficient a contact."""
        nc, columns = law.n_contacts, columns_of(law)
        self.problem = law
        self.rho = law.scales
        self.columns = columns
        ways: tuple[Way, ...] = self._banded, self._dense, self.multigrid, self.sparse
        self.way = next(way for way in ways if way.take(law, columns))
        self._gain, self._change = np.empty((nc, 3, 3)), np.empty((nc, 3))
        self.state = np.full(nc, -1, dtype=np.int8)
        self.changed = nc
        self.step_size = 0.0

    def law(self, shift: float, trial_scale: float) -> kernels.Law:
        """Parameters of the linearisation, relative to the compliances of the contacts."""
        return kernels.Law(self.problem.friction, 1.0 / self.rho, shift, trial_scale)

    def memory(self) -> dict[str, np.ndarray]:
        """Return what one problem leaves for the next: pattern and factors of the sparse way, the coarse matrix of multigrid."""
        parts = {"sparse": self.sparse.memory(), "multigrid": self.multigrid.memory(), "older": self._older.memory()}
        return {f"{name}/{key}": value for name, part in parts.items() for key, value in part.items()}

    def recall(self, memory: Mapping[str, np.ndarray]) -> None:
        """Take it back."""
        for name, way in (("sparse", self.sparse), ("multigrid", self.multigrid), ("older", self._older)):
            way.recall(below(memory, name))

    def step(self, rules: kernels.Law, v: np.ndarray, lam: np.ndarray, centre: np.ndarray, share: float = 0.0) -> bool:
        """One Newton step on v (n,), m/s, and lam (nc, 3), N, in place; False where the matrix cannot be factorized.

        ``share`` is the residual of the dynamics that the step may leave, where it iterates; 0 for none beyond rounding.
        """
        problem = self.problem
        u = problem.moved(v).reshape(-1, 3) + problem.phi
        self.changed = kernels.linearise(rules, lam, u, centre, self._gain, self._change, self.state)
        if not np.isfinite(self._gain).all():
            return False
        Av = problem.times(v)
        size = max(float(np.linalg.norm(problem.weight * problem.b)), float(np.linalg.norm(problem.weight * Av)))
        if self._go_by_older_factors(v, lam, problem.b + problem.pushed(lam) - Av, share * size):
            return True
        r = problem.b + problem.pushed(lam + self._change) - Av
        if not self.way.factorize(self._gain):
            self._older.forget()
            return False
        if self.way is self.sparse:
            self._older.take(problem, self._gain)
        dv = self.way.solve(r, share * size)
        v += dv
        self.step_size = float(np.linalg.norm(dv))
        kernels.add_forces(self._gain, self._change, problem.moved(dv).reshape(-1, 3), lam)
        return bool(np.isfinite(self.step_size))

    def _go_by_older_factors(self, v: np.ndarray, lam: np.ndarray, r: np.ndarray, left: float) -> bool:
        """Take the step with the factors of an earlier one, where the dynamics lack r (n,), N; False where they do not serve."""
        problem = self.problem
        if self.way is not self.sparse or not self.sparse.has_factors or not self._older.serve(problem, self._gain):
            return False
        found, steps = self._older.solve(problem, self._gain, self._change, r, left)
        self.sparse.krylov_steps += steps
        if found is None:
            return False
        v += found[0]
        lam += found[1]
        self.step_size = float(np.linalg.norm(found[0]))
        return True

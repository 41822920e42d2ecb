"""Newton steps on velocities and forces together, by GMRES with the factors of an earlier step: contacts may have moved since."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from contact.compressed import compressed_rows, times_transposed
from contact.jacobian_kernels import gather
from contact.problem import ContactProblem
from contact.solvers import primal_kernels as kernels
from contact.solvers.krylov import gmres
from contact.sparse_lu import SparseFactors

#: Most steps of GMRES, those after which the pace is asked, since contacts of other states take the first ones, and most contacts
#: that may have changed their state since the factors were made.
_STEPS, _TRIED, _FEW = 16, 5, 12
#: Part of what may be left that they leave, so that forces balance better.
_SHARPER = 0.1


class Linearised(NamedTuple):
    """Law of the contacts about a pair, dlam = change - gain J dv: force per velocity (nc,) and gain (nc, 3, 3), N s/m."""

    rho: np.ndarray
    gain: np.ndarray


class OlderFactors:
    """What the factors of A + J^T gain J were made of, so that they precondition the system of a later Newton step.

    Solved for is (dv, dlam) of ::

        A dv - J^T dlam = r,    dlam + gain J dv = change

    with the rows of the law in scales of their own. Where dlam is eliminated, as where the system is factorized, what contacts
    hold is stiffer than all else by five digits, and factors made before contacts moved a little are of no use; here all that
    they lack is what contacts have moved, and the few that changed their state.

    Parameters
    ----------
    factors : SparseFactors
        Factors of the last A + J^T gain J that :meth:`take` was given.
    """

    def __init__(self, factors: SparseFactors) -> None:
        self._factors = factors
        self.forget()

    def forget(self) -> None:
        """Drop what is known of the factors."""
        self._J: sp.csr_matrix | None = None
        self._law = Linearised(np.zeros(0), np.zeros((0, 3, 3)))

    def take(self, problem: ContactProblem, gain: np.ndarray) -> None:
        """Take what the factors were made of just now, gain (nc, 3, 3), N s/m."""
        self._J, self._law = problem.J, Linearised(problem.scales, gain.copy())

    def memory(self) -> dict[str, np.ndarray]:
        """Return what is known of the factors."""
        if self._J is None:
            return {}
        J = self._J
        return {"indptr": J.indptr, "indices": J.indices, "data": J.data, "n": np.array(J.shape[1]), **self._law._asdict()}

    def recall(self, memory: Mapping[str, np.ndarray]) -> None:
        """Take it back."""
        self.forget()
        if memory:
            self._J = compressed_rows(memory["indptr"], memory["indices"], memory["data"], int(memory["n"]))
            self._law = Linearised(memory["rho"], memory["gain"])

    def serve(self, problem: ContactProblem, gain: np.ndarray) -> bool:
        """Whether as many contacts on as many rows, and no more than a few of another state, may be those of the factors."""
        if self._J is None or self._J.shape != problem.J.shape:
            return False
        return kernels.differing(self._law.gain, gain) <= _FEW

    def solve(
        self, problem: ContactProblem, gain: np.ndarray, change: np.ndarray, r: np.ndarray, left: float
    ) -> tuple[tuple[np.ndarray, np.ndarray] | None, int]:
        """Solve for dv (n,), m/s, and dlam (nc, 3), N; None where too few steps lead there. Return the steps too.

        Parameters
        ----------
        problem : ContactProblem
            The problem, with one friction coefficient a contact.
        gain, change : ndarray, (nc, 3, 3) N s/m and (nc, 3) N
            Its law, linearised.
        r : ndarray, (n,), N
            What the dynamics lack.
        left : float
            What may be left of the residual in the norm ||r||^2 = sum r_i^2 / A_ii, and so of the law.
        """
        n, now = problem.n, Linearised(problem.scales, gain)
        assert self._J is not None
        older, old = self._J, self._law
        moved, rows, pulled = np.empty(older.shape[0]), np.empty_like(change), np.empty_like(change)

        def both(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            x, product = np.empty(len(y)), np.empty(len(y))
            kernels.from_law_rows(old.rho, old.gain, y[n:].reshape(-1, 3), pulled)
            x[:n] = self._factors.solve(y[:n] + times_transposed(older, pulled.ravel()))
            gather(older.indptr, older.indices, older.data, x[:n], moved)
            forces = x[n:].reshape(-1, 3)
            forces[:] = pulled
            kernels.add_forces(old.gain, np.zeros_like(pulled), moved.reshape(-1, 3), forces)
            product[:n] = problem.times(x[:n]) - problem.pushed(forces)
            kernels.law_rows(now.rho, now.gain, forces, problem.moved(x[:n]).reshape(-1, 3), rows)
            product[n:] = rows.ravel()
            return x, product

        kernels.law_rows(now.rho, now.gain, change, np.zeros_like(change), rows)
        weight = np.concatenate([problem.weight, np.repeat(np.sqrt(now.rho), 3)])
        found = gmres(both, weight, np.concatenate([r, rows.ravel()]), _SHARPER * left, _STEPS, _TRIED)
        if found.x is None:
            return None, found.steps
        return (found.x[:n], found.x[n:].reshape(-1, 3)), found.steps

"""CCS: contact-constraint splitting, ADMM with one factorised solve an iteration (papers/001 Table VII, papers/003)."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import scipy.sparse as sp

from contact.delassus import DelassusOperator
from contact.local import LocalProblem
from contact.metrics import natural_map_scale
from contact.metrics_kernels import larger, relative
from contact.nodalize import nodalize
from contact.problem import ContactProblem, from_isotropic, isotropic, to_isotropic
from contact.solvers.base import Check, FactorizationOptions, Judge, OperatorOptions, Row, Solution, WarmStart, drive
from contact.solvers.ccs_kernels import split_step
from contact.solvers.condensed import relaxation_note
from contact.solvers.converted import solve_converted
from contact.solvers.dense import relative_residual

#: Iterations before the first change of the penalty; each later one waits until twice as many have been done.
_FIRST_BALANCE = 50
#: Ratio of contact to dynamics residual that is left alone; beyond it the penalty moves by its square root, at most so much.
_BALANCED, _MOST_CHANGE = 10.0, 4.0
#: Factor of the automatic gain of virtual nodes, whose multipliers make the answer independent of it.
_GAIN_FACTOR = 50.0


@dataclass(frozen=True)
class CcsOptions(FactorizationOptions, OperatorOptions):
    """Options of CCS.

    Attributes
    ----------
    operator : {"strict", "proximal"}
        Projection of papers/001 eq. (26): strict satisfies the Signorini-Coulomb law, proximal its convex relaxation, which our
        metrics do not pass where contacts slide (the status then says "stopped at the limit"). ADMM is proven to converge for
        the proximal one only.
    penalty : float
        Penalty of each contact as a multiple of its force per velocity ``contact.metrics.natural_map_scale``. Default 1. Measured
        without ``adaptive`` on the gripped ball, 0.1 to 10 MPa: best between 0.3 and 1, a tenth of that costs 3 to 10 times the
        iterations.
    adaptive : bool
        Change the penalty by the square root of the ratio of contact to dynamics residual where that is beyond a factor of 10,
        after 50, 100, 200, ... iterations (residual balancing, papers/003 eqs. 41-42 with the true residuals). Each change
        factorises anew. Default on.
    relaxation : float
        Over-relaxation in (0, 2). Default 1.6 (38 % fewer iterations than 1 on the gripped ball).
    virtual_nodes : bool
        Solve the nodalized problem of papers/001 eq. (15) instead, where contacts on bodies act on virtual nodes. The force
        between a virtual node and its body is a constraint of the splitting (its multiplier follows papers/000 eq. 11), so the
        answer is that of the original problem. Default off.
    gain : float, N s/m, optional
        kv of all virtual nodes; it decides the speed only. Default: see ``contact.nodalize_kernels.conditioning_gains``.
    """

    solver_name: ClassVar[str] = "ccs"

    penalty: float = 1.0
    adaptive: bool = True
    relaxation: float = 1.6
    virtual_nodes: bool = False
    gain: float | None = None

    def _checks(self) -> list[Check]:
        gain = self.gain
        return [
            *super()._checks(),
            ("penalty", self.penalty, 0 < self.penalty < np.inf, "positive numbers"),
            ("relaxation", self.relaxation, 0 < self.relaxation < 2, "numbers between 0 and 2"),
            ("gain", gain, gain is None or 0 < gain < np.inf, "positive numbers in N s/m, or None for automatic"),
        ]


class _Splitting:
    """Iterations of ADMM on one problem.

    Unknown x = [v; virtual nodes], constraints G x: contacts C x = z - phi with z under the contact law, links L x = 0 between
    virtual nodes and bodies. ``A`` holds the penalty of the links (their gain) already, that of the contacts is added here.
    """

    def __init__(
        self,
        problem: ContactProblem,
        warm_start: WarmStart | None,
        options: CcsOptions,
        operator: DelassusOperator,
        pattern: sp.csc_matrix | None,
    ) -> None:
        self.problem, self.options, self.operator = problem, options, operator
        self.law = isotropic(problem)
        self.strict = options.operator == "strict"
        self.rho = natural_map_scale(self.law)
        nc = problem.n_contacts
        self.gain = np.zeros(0)
        system, links = problem, sp.csr_matrix((0, problem.n))
        if options.virtual_nodes:
            nodal = nodalize(problem, gain=options.gain, gain_factor=_GAIN_FACTOR, multiplier=np.zeros((nc, 3)))
            system, self.gain = nodal.assembled(), np.repeat(nodal.gain, 3)
            # the rows of the virtual nodes in eq. (15) are -kv (J_v v - v_v)
            links = -sp.diags(1.0 / self.gain) @ system.A[problem.n :]
        self.system = isotropic(system)
        C = self.system.J
        self.virtual = C[:, problem.n :]
        self.G = sp.vstack([C, links], format="csr")
        self._share_pattern(C, pattern)
        # the dynamics residual of (v, lam) is J^T of what the projection changed: its few columns, weighted as in the metrics
        columns = np.unique(self.law.J.indices)
        weight = 1.0 / np.sqrt(problem.diagonal)
        self._J_weighted = sp.csr_matrix((self.law.J[:, columns] @ sp.diags(weight[columns])).T)
        weighted = weight * problem.b
        self._b_weighted, self._b_size = weighted[columns], float(np.linalg.norm(weighted))
        self._b_elsewhere = float(np.linalg.norm(np.delete(weighted, columns)))

        v = np.zeros(problem.n) if warm_start is None else warm_start.v
        start = np.zeros((nc, 3)) if warm_start is None else to_isotropic(problem, warm_start.lam.reshape(-1, 3))
        self.lam = np.array(start, dtype=np.float64).ravel()
        self.factor, self.factorizations = options.penalty, 0
        self._now = self.lam.copy()
        self._link_force = np.asarray(self.virtual.T @ self._now)
        self._u = np.asarray(self.law.J @ v) + self.law.phi.ravel()
        self._z = np.zeros(3 * nc)
        self._factorize()
        split_step(self._u, self.law.friction, self._penalty, self.strict, 1.0, self._z, self._now.copy())
        self.rows: list[tuple[float, float, float]] = []
        self.best, self.law_residual, self._smallest = 0, np.inf, np.inf
        self._force = np.zeros(self.G.shape[0])
        self._v: np.ndarray | None = v
        self._balance_at, self._since = _FIRST_BALANCE, 0

    def _share_pattern(self, C: sp.csr_matrix, known: sp.csc_matrix | None) -> None:
        """Bring A and the unit penalty of the contacts to one pattern, the known one where it is the same (no new analysis)."""
        A, K = self.system.A.tocoo(), (C.T @ sp.diags(np.repeat(self.rho, 3)) @ C).tocoo()
        S = (abs(C).T @ abs(C)).tocoo()  # where K can have entries, also where they happen to cancel
        where = np.concatenate([A.row, K.row, S.row]), np.concatenate([A.col, K.col, S.col])
        a = np.concatenate([A.data, np.zeros(K.nnz + S.nnz)])
        k = np.concatenate([np.zeros(A.nnz), K.data, np.zeros(S.nnz)])
        self._A, penalty = (sp.csc_matrix((values, where), shape=A.shape) for values in (a, k))
        self._K = penalty.data
        self.matrix = self._A.copy()
        if known is not None and np.array_equal(known.indptr, self._A.indptr) and np.array_equal(known.indices, self._A.indices):
            self.matrix = known

    def _factorize(self) -> None:
        self.matrix.data = self._A.data + self.factor * self._K
        self.operator.factorize(replace(self.system, A=self.matrix, J=self.G))
        self._response = self.operator.operator(self.G)
        self._free = self.operator.begin(self.system.b)
        self._penalty = self.factor * self.rho
        self.factorizations += 1

    @property
    def over(self) -> bool:
        return self.failed

    @property
    def failed(self) -> bool:
        """Whether the last iteration gave a value that is not finite."""
        return bool(self.rows) and not np.isfinite(self.rows[-1]).all()

    def velocity(self) -> np.ndarray:
        """Velocity v, (n,), of the best iterate."""
        if self._v is None:
            self._v = self.operator.finish(self._force)[: self.law.n]
        return self._v

    def answer(self) -> tuple[np.ndarray, np.ndarray]:
        return self.velocity(), from_isotropic(self.problem, self.lam.reshape(-1, 3))

    def until(self, aim: float, limit: int) -> list[Row]:
        """Iterate until dynamics and contact residual are at most ``aim``."""
        first = len(self.rows)
        while len(self.rows) < first + limit and not self.failed:
            self._advance()
            dynamics, contact, _ = self.rows[-1]
            if dynamics <= aim and contact <= aim:
                break
        return list(self.rows[first:])

    def _advance(self) -> None:
        law, options = self.law, self.options
        nc3 = len(self._now)
        if options.adaptive and len(self.rows) == self._balance_at:
            self._rebalance()
        phi, penalty = law.phi.ravel(), np.repeat(self._penalty, 3)
        force = np.concatenate([self._now + penalty * (self._z - phi), self._link_force])
        moved = self._free + self._response @ force
        contact, stretch = moved[:nc3] + phi, moved[nc3:]
        carried = self._now - penalty * (contact - self._z)
        split_step(contact, law.friction, self._penalty, self.strict, options.relaxation, self._z, self._now)
        self._link_force = self._link_force - self.gain * stretch
        u = contact + self.virtual @ stretch
        step = float(np.linalg.norm(u - self._u))
        self._u = u
        dynamics = self._dynamics(carried)
        residual = relative_residual(self._now, u, law.friction, self.rho)
        self.rows.append((dynamics, residual, step))
        own = residual if self.strict else relative_residual(self._now, u, law.friction, self.rho, False)
        worst = larger(own, dynamics)
        if worst < self._smallest:
            self.best, self.law_residual, self._smallest = len(self.rows) - 1, own, worst
            self.lam, self._force, self._v = self._now.copy(), force, None

    def _dynamics(self, carried: np.ndarray) -> float:
        """``metrics.dynamics_residual`` of the present v and lam, from the force ``carried`` with which v solves the dynamics."""
        force = self._J_weighted @ carried
        Av = np.hypot(float(np.linalg.norm(self._b_weighted + force)), self._b_elsewhere)
        now = self._J_weighted @ self._now
        scale = larger(Av, larger(self._b_size, float(np.linalg.norm(now))))
        return float(relative(float(np.linalg.norm(force - now)), scale))

    def _rebalance(self) -> None:
        """Change the penalty where one residual has been far above the other over the last half of the iterations since."""
        recent = np.array(self.rows[(self._since + len(self.rows)) // 2 :])[:, :2]
        self._since, self._balance_at = len(self.rows), 2 * len(self.rows)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = float(np.exp(np.diff(np.log(recent), axis=1).mean()))
        if np.isfinite(ratio) and ratio > 0 and not 1 / _BALANCED < ratio < _BALANCED:
            self.velocity()
            self.factor *= float(np.clip(np.sqrt(ratio), 1 / _MOST_CHANGE, _MOST_CHANGE))
            self._factorize()


class Ccs:
    """Contact-constraint splitting: ADMM between the dynamics and the contact law (papers/001 section V-E1; papers/003 Alg. 1).

    Minimising over v with penalty R on J v + phi = z gives one linear solve with A + J^T R J an iteration, then each contact is
    projected alone and its multiplier is lam. Papers/003 splits forces (its eq. 25); here velocities are split, as Daviet (2020)
    does, so that the matrix stays positive definite. R has one value a contact (the preconditioning of papers/003 section 6.1).

    Departures: the solve is applied through its restriction to the rows that contacts touch, ``J (A + J^T R J)^-1 J^T``, which
    one factorization yields with the Schur complement of ``contact.linear``; the iterates are the same, and v itself is computed
    only for the answer. The strict operator solves the Signorini-Coulomb law, without proof of convergence. Virtual nodes have a
    multiplier each.

    Parameters
    ----------
    options : CcsOptions, optional
        Options; defaults are documented there.

    Notes
    -----
    The answer is (v, lam) with v from the linear solve and lam in the cone; ``Solution.details``: ``operator``, ``law_residual``
    (natural map of the law that was solved, which for the proximal operator is the convex relaxation), ``returned_iteration``
    (the best by that law and the dynamics), ``penalty`` (the last), ``factorizations``, ``virtual_nodes`` (count) and
    ``backend``. The step of the history is the change of the contact velocities.
    """

    description = "CCS: contact-constraint splitting, ADMM with one factorised solve an iteration (baseline of papers/001)"

    def __init__(self, options: CcsOptions | None = None) -> None:
        self.options = options or CcsOptions()
        self._operator = DelassusOperator(self.options.backend, self.options.threads)
        self._matrix: sp.csc_matrix | None = None

    def solve(self, problem: ContactProblem, warm_start: WarmStart | None = None) -> Solution:
        """Solve the problem; ContactError when A is not positive definite.

        Parameters
        ----------
        problem : ContactProblem
            Any problem, friction isotropic or not; with ``virtual_nodes``, contacts between at most two bodies.
        warm_start : WarmStart, optional
            Velocity and forces of the previous step. Default zero.
        """
        started = time.perf_counter()
        splitting = _Splitting(problem, warm_start, self.options, self._operator, self._matrix)
        self._matrix = splitting.matrix
        prepared = time.perf_counter()
        judge = Judge(problem, self.options.tolerance)
        drive(splitting, judge, self.options.max_iterations)
        details = {
            "operator": self.options.operator,
            "law_residual": splitting.law_residual,
            "returned_iteration": splitting.best + 1,
            "penalty": splitting.factor,
            "factorizations": splitting.factorizations,
            "virtual_nodes": len(splitting.gain) // 3,
            "backend": self._operator.factorization.name,
        }
        times = {"prepare": prepared - started, "iterate": time.perf_counter() - prepared}
        return judge.solution(
            times, details, relaxation_note("coulomb" if splitting.strict else "relaxed", splitting.law_residual)
        )

    def solve_local(self, problem: LocalProblem, warm_start: WarmStart | None = None) -> Solution:
        """Solve a problem given by W and q, by way of an equivalent one; see ``contact.solvers.converted.solve_converted``.

        Parameters
        ----------
        problem : LocalProblem
            Problem with a symmetric W without negative eigenvalues; ContactError otherwise.
        warm_start : WarmStart, optional
            Forces to start from. Default zero.
        """
        return solve_converted(problem, warm_start, Ccs, self.options)

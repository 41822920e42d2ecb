"""CCS: contact-constraint splitting (papers/001 Table VII), the engine of ``splitting`` with a penalty on velocities."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy.sparse as sp

from contact.delassus import DelassusOperator
from contact.linear import make_factorization
from contact.local import LocalProblem
from contact.metrics import natural_map_scale
from contact.nodalize import nodalize
from contact.problem import ContactProblem, from_isotropic, isotropic, to_isotropic
from contact.solvers.base import Check, FactorizationOptions, OperatorOptions, Solution, Told, WarmStart, start_pair
from contact.solvers.condensed import relaxation_note
from contact.solvers.judge import Judge, drive
from contact.solvers.linear_steps import DualStep, LinearStep, PrimalStep, choose
from contact.solvers.penalty import make_rule
from contact.solvers.splitting import GlobalDynamics, Plan, Side, Splitting, local_splitting
from contact.solvers.with_rows import takes_rows

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


class Ccs(Told):
    """Contact-constraint splitting: ADMM between the dynamics and the contact law (papers/001 section V-E1; papers/003 Alg. 1).

    Minimising over v with penalty R on J v + phi = z gives one linear solve with A + J^T R J an iteration, then each contact is
    projected alone and its multiplier is lam. Papers/003 splits forces (its eq. 25); here velocities are split, as Daviet (2020)
    does, with the same iterates. R has one value a contact (the preconditioning of papers/003 section 6.1).

    Departures: where contacts are few beside A, the solve is applied through W = J A^-1 J^T, which is formed once
    (:class:`contact.solvers.linear_steps.DualStep`); the iterates are the same, and v itself is computed only for the answer.
    The strict operator solves the Signorini-Coulomb law, without proof of convergence. Virtual nodes have a multiplier each.

    Parameters
    ----------
    options : CcsOptions, optional
        Options; defaults are documented there.

    Notes
    -----
    The answer is (v, lam) with v from the linear solve and lam in the cone; ``Solution.details``: ``operator``, ``law_residual``
    (natural map of the law that was solved, which for the proximal operator is the convex relaxation), ``returned_iteration``
    (the best by that law and the dynamics), ``penalty`` (the last), ``factorizations``, ``virtual_nodes`` (count), ``linear`` and
    ``backend``. The step of the history is the change of the contact velocities.
    """

    description = "CCS: contact-constraint splitting, ADMM with one factorised solve an iteration (baseline of papers/001)"

    def __init__(self, options: CcsOptions | None = None) -> None:
        self.options = options or CcsOptions()
        self._operator = DelassusOperator(self.options.backend, self.options.threads)
        self._factors = make_factorization(self.options.backend, self.options.threads)

    @takes_rows
    def solve(self, problem: ContactProblem, warm_start: WarmStart | None = None) -> Solution:
        """Solve the problem; ContactError when A is not positive definite.

        Parameters
        ----------
        problem : ContactProblem
            Any problem, friction isotropic or not; with ``virtual_nodes``, contacts between at most two bodies.
        warm_start : WarmStart, optional
            Velocity and forces of the previous step. Default zero.
        """
        started, options, same = time.perf_counter(), self.options, isotropic(problem)
        dynamics = GlobalDynamics(problem, same)
        step: LinearStep
        coupling, gain = None, np.zeros(0)
        if options.virtual_nodes:
            step, coupling, gain = self._with_virtual_nodes(problem)
        elif choose(same) == "dual":
            step = DualStep(same, self._operator)
        else:
            step = PrimalStep(same, self._factors)
        v, lam = start_pair(problem, warm_start)
        lam = to_isotropic(problem, lam).ravel()
        rho = natural_map_scale(same)
        side = Side(step, same.friction, rho, dynamics, coupling, gain)
        if isinstance(step, DualStep) and coupling is not None:
            step.free_force = np.asarray(coupling.T @ lam)

        def answer(v: np.ndarray, lam: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            return v[: problem.n], from_isotropic(problem, lam.reshape(-1, 3))

        splitting = Splitting(side, self._plan(rho), lam, same.moved(v) + same.phi.ravel(), answer, v)
        judge = Judge(problem, options.tolerance)
        if isinstance(step, DualStep) and coupling is None:
            step.tell(judge)
        return self._finish(splitting, judge, started, len(gain) // 3, step.name)

    def solve_local(self, problem: LocalProblem, warm_start: WarmStart | None = None) -> Solution:
        """Solve a problem given by W and q alone; v of the solution is empty.

        Parameters
        ----------
        problem : LocalProblem
            W may be non-symmetric.
        warm_start : WarmStart, optional
            Forces to start from. Default zero.
        """
        started = time.perf_counter()
        lam = np.zeros(3 * problem.n_contacts) if warm_start is None else warm_start.lam.ravel()
        splitting = local_splitting(problem, lam, self._plan(problem.scales))
        return self._finish(splitting, Judge(problem, self.options.tolerance), started, 0, "dual")

    def _with_virtual_nodes(self, problem: ContactProblem) -> tuple[DualStep, sp.csr_matrix, np.ndarray]:
        """Linear step on the nodalized problem, contact velocities by the links, and the gains of the links.

        The penalty of the links (their gain) is in its A already; their forces are given to each solve.
        """
        multiplier = np.zeros((problem.n_contacts, 3))
        nodal = nodalize(problem, gain=self.options.gain, gain_factor=_GAIN_FACTOR, multiplier=multiplier)
        system, gain = nodal.assembled(), np.repeat(nodal.gain, 3)
        same = isotropic(system)
        # the rows of the virtual nodes in eq. (15) are -kv (J_v v - v_v)
        links = -sp.diags(1.0 / gain) @ system.A[problem.n :]
        step = DualStep(same, self._operator, sp.vstack([same.J, links], format="csr"))
        return step, sp.csr_matrix(same.J[:, problem.n :]), gain

    def _plan(self, base: np.ndarray) -> Plan:
        options = self.options
        rule = make_rule("doubling" if options.adaptive else "fixed", 1)
        return Plan(options.operator, base, 1.0 / options.penalty, np.ones_like(base), rule, options.relaxation)

    def _finish(self, splitting: Splitting, judge: Judge, started: float, nodes: int, linear: str) -> Solution:
        prepared = time.perf_counter()
        drive(splitting, judge, self.options.max_iterations)
        details = {
            "operator": self.options.operator,
            "law_residual": splitting.law_residual,
            "returned_iteration": splitting.best + 1,
            "penalty": 1.0 / splitting.rho,
            "factorizations": splitting.factorizations,
            "virtual_nodes": nodes,
            "linear": linear,
            "backend": self._operator.factorization.name,
        }
        times = {"prepare": prepared - started, "iterate": time.perf_counter() - prepared}
        note = relaxation_note(splitting.law, splitting.law_residual)
        return judge.solution(times, details, note, ended=splitting.ended)

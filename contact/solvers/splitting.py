"""ADMM: splitting between the dynamics and the contact law (papers/003 Algs. 1 to 3, papers/004 Alg. 6).

One engine serves ``admm`` and its presets, and :mod:`contact.solvers.ccs`. Forces are split in x, which the dynamics carry, and
y in the friction cones, with one linear step an iteration (:mod:`contact.solvers.linear_steps`), then each contact by itself.
Splitting velocities, as CCS does, gives the same iterates with Theta = R^-1.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple, get_args

import numpy as np
import scipy.sparse as sp

from contact.delassus import DelassusOperator
from contact.linear import make_factorization, make_quasi_definite
from contact.local import SYMMETRY, LocalProblem
from contact.metrics import natural_map_scale
from contact.metrics_kernels import larger, relative
from contact.problem import ContactProblem, from_isotropic, isotropic, to_isotropic
from contact.solvers.base import Check, FactorizationOptions, OperatorOptions, Solution, Told, WarmStart, start_pair
from contact.solvers.condensed import Law, relaxation_note
from contact.solvers.dense import relative_residual
from contact.solvers.judge import Judge, Row, drive
from contact.solvers.linear_steps import DenseStep, DualStep, Linear, LinearStep, PrimalStep, SaddleStep, choose
from contact.solvers.penalty import Policy, Rule, Sizes, largest_eigenvalue, make_rule
from contact.solvers.splitting_kernels import LAGGED, PROXIMAL, STRICT, split_sizes, split_step
from contact.solvers.with_rows import takes_rows

Operator = Literal["strict", "lagged", "proximal"]
_OPERATORS: dict[str, int] = {"strict": STRICT, "proximal": PROXIMAL, "lagged": LAGGED}
#: A method of the relaxed law ends where that law holds to this part of the aim, and the contact law does not.
_OWN_LAW = 0.1
#: Least penalty that the spectral choice takes for the least eigenvalue of W, as a part of the mean compliance.
_LEAST_EIGENVALUE = 1e-6


@dataclass(frozen=True)
class AdmmOptions(FactorizationOptions, OperatorOptions):
    """Options of ADMM.

    Attributes
    ----------
    operator : {"strict", "lagged", "proximal"}
        Strict: projection of papers/001 eq. (26). Lagged: closest point of the cone, with the correction of De Saxce of the
        iteration before (papers/004). Both hold the Signorini-Coulomb law where they come to rest, without proof that they do.
        Proximal: closest point of the cone alone, the convex relaxation (papers/003), which our metrics do not pass where
        contacts slide (the status then says "stopped at the limit"). Default strict.
    penalty : float or "spectral"
        First rho. With ``scaling="contact"`` a multiple of the compliance of each contact, the mean diagonal of its block of W
        (of J diag(A)^-1 J^T where W is not formed); else in m/(N s). "spectral": sqrt(L m) (L/m)^0.2 with L the largest
        eigenvalue of W and m its least one, taken as 1e-6 of the mean compliance; needs W. Default 0.1.
    policy : {"residual", "balanced", "normalized", "linear", "spectral", "doubling", "fixed"}
        How rho changes; each change factorizes anew. Residual: by the root of the ratio of dynamics to contact residual.
        Balanced: the same of the primal and the dual residual of the splitting. Normalized: of these relative to forces and
        velocities. Linear: by 1.5 where one is ten times the other. Spectral: by (L/m)^0.05 there. Doubling: by the true
        residuals after 50, 100, 200, ... iterations. Default residual.
    every : int
        Iterations between looks of the policy (of the first three rarer as time goes on). Default 5.
    scaling : {"contact", "none"}
        Whether rho is scaled by contact. Default contact.
    relaxation : float
        Over-relaxation in (0, 2). Default 1: with it the dual residual is no measure, so adaptive policies hardly move.
    accelerate : bool
        Nesterov's extrapolation, restarted where the combined residual does not fall (papers/003 Alg. 3). Default on.
    linear : {"auto", "dual", "primal", "saddle"}
        Form of the linear step, see :mod:`contact.solvers.linear_steps`. Default: dual where W is small beside A, else primal.
    """

    solver_name: ClassVar[str] = "admm"

    operator: Operator = "strict"  # type: ignore[assignment]
    penalty: float | Literal["spectral"] = 0.1
    policy: Policy = "residual"
    every: int = 5
    scaling: Literal["contact", "none"] = "contact"
    relaxation: float = 1.0
    accelerate: bool = True
    linear: Linear = "auto"

    def _checks(self) -> list[Check]:
        rho, forms = self.penalty, get_args(Linear)
        if "spectral" in (rho, self.policy):
            forms = ("auto", "dual")  # those with W
        number = rho == "spectral" or (not isinstance(rho, str) and 0 < rho < np.inf)
        return [
            *super()._checks(),
            ("penalty", rho, number, "positive numbers and 'spectral'"),
            ("policy", self.policy, self.policy in get_args(Policy), ", ".join(map(repr, get_args(Policy)))),
            ("every", self.every, self.every >= 1, "integers >= 1"),
            ("scaling", self.scaling, self.scaling in ("contact", "none"), "'contact' and 'none'"),
            ("relaxation", self.relaxation, 0 < self.relaxation < 2, "numbers between 0 and 2"),
            ("linear", self.linear, self.linear in forms, ", ".join(map(repr, forms))),
        ]

    def _operators(self) -> tuple[str, ...]:
        return "strict", "lagged", "proximal"


class Plan(NamedTuple):
    """What the iterations of a splitting do.

    Attributes
    ----------
    operator : {"strict", "lagged", "proximal"}
        See :class:`AdmmOptions`.
    base : ndarray, (nc,), N s/m
        Force per velocity of each contact; the penalty R is ``base / rho``.
    rho : float
        First factor.
    weight : ndarray, (nc,)
        Scale of each contact in the norms of the policy, sqrt(m/(N s)).
    rule : Rule
        Policy.
    relaxation : float
        Over-relaxation.
    accelerate : bool
        Whether to extrapolate.
    """

    operator: Operator
    base: np.ndarray
    rho: float
    weight: np.ndarray
    rule: Rule
    relaxation: float = 1.0
    accelerate: bool = False


class Side(NamedTuple):
    """A problem as the iterations see it, in isotropic variables.

    Attributes
    ----------
    step : LinearStep
        Dynamics with a penalty.
    friction, rho : ndarray, (nc,), and N s/m
        Coulomb coefficients and the scale of the natural map that judges.
    dynamics : callable
        ``dynamics(x, u, y)`` is the dynamics residual of forces y that are returned, beside the forces x that the dynamics carry
        and their contact velocities u.
    coupling : csr_matrix, (3 nc, l), or None
        Contact velocities by the velocities of free rows; None where there are no free rows.
    gain : ndarray, (l,), N s/m
        Penalty of the free rows.
    """

    step: LinearStep
    friction: np.ndarray
    rho: np.ndarray
    dynamics: Callable[[np.ndarray, np.ndarray, np.ndarray], float]
    coupling: sp.csr_matrix | None = None
    gain: np.ndarray = np.zeros(0)


class Splitting:
    """Iterations of ADMM on one problem, a ``Method`` for :func:`contact.solvers.judge.drive`.

    Parameters
    ----------
    side : Side
        The problem.
    plan : Plan
        What is done.
    lam, u : ndarray, (3 nc,), N and m/s
        Forces and contact velocities at the start.
    answer : callable
        ``answer(v, lam)`` returns those of the problem that is judged.
    v : ndarray, (n,), m/s, optional
        Velocity at the start, returned where no iteration is better.
    """

    def __init__(
        self,
        side: Side,
        plan: Plan,
        lam: np.ndarray,
        u: np.ndarray,
        answer: Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]],
        v: np.ndarray | None = None,
    ) -> None:
        self.side, self.plan, self._answer = side, plan, answer
        self.rho, self.factorizations = plan.rho, 0
        self._operator = _OPERATORS[plan.operator]
        self.lam = np.array(lam, dtype=np.float64)
        self._now, self._u, self._z = self.lam.copy(), u, np.zeros(len(lam))
        self._factorize()
        split_step(u, side.friction, self._penalty, self._operator, 1.0, self._z, self._now.copy(), self._z, self._now.copy())
        # what the linear step takes: extrapolated where the plan says so
        self._force, self._velocity = self._now.copy(), self._z.copy()
        self._next_force, self._next_velocity = np.empty_like(self._now), np.empty_like(self._now)
        self._momentum, self._combined, self._factor = 1.0, np.inf, 1.0
        self.rows: list[tuple[float, float, float]] = []
        self.best, self.law_residual, self._smallest = 0, np.inf, np.inf
        self._carried, self._best_u, self._v = self._now.copy(), u, v
        self.own_law_holds = False

    @property
    def law(self) -> Law:
        """Law that holds where the iterations come to rest."""
        return "relaxed" if self.plan.operator == "proximal" else "coulomb"

    def _factorize(self) -> None:
        self._penalty = self.plan.base / self.rho
        self._rows_penalty = np.repeat(self._penalty, 3)
        self.side.step.prepare(self._rows_penalty)
        self.factorizations += 1

    @property
    def over(self) -> bool:
        """Whether a value is not finite, the law of the method holds and is another one than ours, or the iterates rest."""
        return self.failed or self.own_law_holds or self._rests

    @property
    def _rests(self) -> bool:
        """Whether nothing is left to change: both residuals of the last iteration are zero, as always without contacts."""
        return bool(self.rows) and self.rows[-1][:2] == (0.0, 0.0) and self.side.coupling is None

    @property
    def ended(self) -> str:
        """How the iterations ended, where it was by the law that they solve, or because they rest."""
        if self._rests:
            return "Ended after {} iterations, which leave nothing but rounding"
        return "Ended where its own law holds, after {} iterations" if self.own_law_holds else ""

    @property
    def failed(self) -> bool:
        """Whether the last iteration gave a value that is not finite."""
        return bool(self.rows) and not np.isfinite(self.rows[-1]).all()

    def velocity(self) -> np.ndarray:
        """Velocity v, (n,), of the best iterate."""
        if self._v is None:
            self._v = self.side.step.velocity(self._carried, self._best_u)
        return self._v

    def answer(self) -> tuple[np.ndarray, np.ndarray]:
        """Velocity and forces of the best iterate, in the variables of the problem that is judged."""
        return self._answer(self.velocity(), self.lam)

    def until(self, aim: float, limit: int) -> list[Row]:
        """Iterate until dynamics and contact residual are at most ``aim``."""
        first = len(self.rows)
        while len(self.rows) < first + limit and not self.over:
            own = self._advance()
            dynamics, contact, _ = self.rows[-1]
            if dynamics <= aim and contact <= aim:
                break
            self.own_law_holds = self.law == "relaxed" and max(own, dynamics) <= _OWN_LAW * aim
        return list(self.rows[first:])

    def _advance(self) -> float:
        """One iteration; return the residual of its own law."""
        side, plan, step = self.side, self.plan, self.side.step
        if self._factor != 1.0:
            self._adapt()
        penalty = self._rows_penalty
        u = step.solve(self._force + penalty * self._velocity)
        carried = self._force - penalty * (u - self._velocity)
        split_step(
            u, side.friction, self._penalty, self._operator, plan.relaxation, self._velocity, self._force, self._next_velocity,
            self._next_force,
        )  # fmt: skip
        now, z = self._next_force, self._next_velocity
        sizes = split_sizes(carried, self._penalty, plan.weight, self._velocity, self._force, z, now)
        full = carried
        if side.coupling is not None and isinstance(step, DenseStep):
            full = np.concatenate([carried, step.free_force])
            stretch = step.free_velocity.copy()
            u = u + side.coupling @ stretch
            step.free_force = step.free_force - side.gain * stretch
        moved = u - self._u
        length, self._u = math.sqrt(float(moved @ moved)), u
        dynamics = side.dynamics(carried, u, now)
        contact = relative_residual(now, u, side.friction, side.rho)
        self.rows.append((dynamics, contact, length))
        own = contact if self.law == "coulomb" else relative_residual(now, u, side.friction, side.rho, False)
        worst = larger(own, dynamics)
        if worst < self._smallest:
            self.best, self.law_residual, self._smallest = len(self.rows) - 1, own, worst
            self.lam, self._carried, self._best_u, self._v = now.copy(), full, u, None
        self._extrapolate(sizes[4])
        found = Sizes(sizes[0], sizes[1], sizes[2], sizes[3], dynamics, own)
        self._factor = plan.rule.factor(len(self.rows), found)
        return own

    def _extrapolate(self, combined: float) -> None:
        """Take over the new iterate, with momentum where the combined residual falls."""
        if not self.plan.accelerate:
            self._force, self._next_force = self._next_force, self._force
            self._velocity, self._next_velocity = self._next_velocity, self._velocity
            return
        part = 0.0
        if combined < _RESTART * self._combined:
            grown = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * self._momentum * self._momentum))
            part, self._momentum, self._combined = (self._momentum - 1.0) / grown, grown, combined
        else:
            self._momentum, self._combined = 1.0, self._combined / _RESTART
        new, z = self._next_force.copy(), self._next_velocity.copy()
        self._force, self._velocity = new + part * (new - self._now), z + part * (z - self._z)
        self._now, self._z = new, z

    def _adapt(self) -> None:
        """Change the penalty as the rule asked after the last iteration."""
        self.velocity()
        self.rho *= self._factor
        self._factorize()
        self._factor, self._momentum, self._combined = 1.0, 1.0, np.inf


#: The combined residual must fall to this part for the momentum to go on (papers/003 Alg. 3).
_RESTART = 0.999


class GlobalDynamics:
    """``metrics.dynamics_residual`` of the velocity of forces x beside forces y, on the few rows that contacts act on.

    Parameters
    ----------
    problem : ContactProblem
        The problem.
    law : ContactProblem
        The same with isotropic friction.
    """

    def __init__(self, problem: ContactProblem, law: ContactProblem) -> None:
        columns = np.unique(law.J.indices)
        weight = 1.0 / np.sqrt(problem.diagonal)
        self._J_weighted = sp.csr_matrix((law.J[:, columns] @ sp.diags(weight[columns])).T)
        weighted = weight * problem.b
        self._b_weighted, self._b_size = weighted[columns], float(np.linalg.norm(weighted))
        self._b_elsewhere = float(np.linalg.norm(np.delete(weighted, columns)))

    def __call__(self, carried: np.ndarray, u: np.ndarray, now: np.ndarray) -> float:
        """Residual of the pair; u is not used."""
        force = self._J_weighted @ carried
        Av = np.hypot(float(np.linalg.norm(self._b_weighted + force)), self._b_elsewhere)
        returned = self._J_weighted @ now
        scale = larger(Av, larger(self._b_size, float(np.linalg.norm(returned))))
        return float(relative(float(np.linalg.norm(force - returned)), scale))


class Admm(Told):
    """Alternating directions: one linear step an iteration, then each contact alone (papers/003 Algs. 1 to 3; papers/004 Alg. 6).

    The default is our choice: accelerated, balanced by true residuals, scaled by contact, strict; those of the papers are in
    :mod:`contact.solvers.presets`. Departures: the proximal term of papers/004 is left out, since Theta
    already makes every matrix definite; the spectral gradient of papers/003 is not offered, which names it without a formula.

    Parameters
    ----------
    options : AdmmOptions, optional
        Options; defaults are documented there.

    Notes
    -----
    ``Solution.details``: ``operator``, ``law_residual`` (natural map of the law that was solved), ``returned_iteration`` (the
    best by that law and the dynamics), ``rho`` (the last), ``factorizations``, ``linear`` and ``backend``. The answer is (v,
    lam) with v from the linear step and lam in the cone. The step of the history is the change of the contact velocities. In
    the local form, which has no dynamics, its first column is |x - lam| over |lam| in the norm of W, x the force that the
    linear step carries.
    """

    description = "ADMM: splitting with an adaptive penalty and momentum, one factorised solve an iteration (papers/003, 004)"

    def __init__(self, options: AdmmOptions | None = None) -> None:
        self.options = options or AdmmOptions()
        backend, threads = self.options.backend, self.options.threads
        self._operator = DelassusOperator(backend, threads)
        self._factors, self._quasi_definite = make_factorization(backend, threads), make_quasi_definite(backend, threads)

    @takes_rows
    def solve(self, problem: ContactProblem, warm_start: WarmStart | None = None) -> Solution:
        """Solve the problem; ContactError when A is not positive definite.

        Parameters
        ----------
        problem : ContactProblem
            Any problem, friction isotropic or not.
        warm_start : WarmStart, optional
            Velocity and forces of the previous step. Default zero.
        """
        started, options, same = time.perf_counter(), self.options, isotropic(problem)
        judge = Judge(problem, options.tolerance)
        linear = options.linear
        if linear == "auto":
            linear = "dual" if "spectral" in (options.penalty, options.policy) else choose(same)
        step: LinearStep
        scales = same.scales
        W = None
        if linear == "dual":
            dual = DualStep(same, self._operator)
            step, W, scales = dual, dual.W, dual.scales
            dual.tell(judge)
        elif linear == "primal":
            step = PrimalStep(same, self._factors)
        else:
            step = SaddleStep(same, self._quasi_definite)
        v, lam = start_pair(problem, warm_start)
        lam = to_isotropic(problem, lam).ravel()
        side = Side(step, same.friction, natural_map_scale(same), GlobalDynamics(problem, same))
        splitting = Splitting(
            side, self._plan(scales, W), lam, same.moved(v) + same.phi.ravel(),
            lambda v, lam: (v, from_isotropic(problem, lam.reshape(-1, 3))), v,
        )  # fmt: skip
        return self._finish(splitting, judge, started, linear, backend=self._operator.factorization.name)

    def solve_local(self, problem: LocalProblem, warm_start: WarmStart | None = None) -> Solution:
        """Solve a problem given by W and q alone; v of the solution is empty.

        Parameters
        ----------
        problem : LocalProblem
            W may be non-symmetric.
        warm_start : WarmStart, optional
            Its forces are the start. Default zero.
        """
        started = time.perf_counter()
        judge = Judge(problem, self.options.tolerance)
        lam = np.zeros(3 * problem.n_contacts) if warm_start is None else warm_start.lam.ravel()
        splitting = local_splitting(problem, lam, self._plan(problem.scales, problem.W))
        return self._finish(splitting, judge, started, "dual")

    def _plan(self, scales: np.ndarray, W: np.ndarray | None) -> Plan:
        options = self.options
        contact = options.scaling == "contact"
        base = scales if contact else np.ones_like(scales)
        weight = 1.0 / np.sqrt(base)
        rho, condition = options.penalty, 1.0
        if "spectral" in (options.penalty, options.policy) and W is not None and len(scales):
            # of W, or of W scaled as the penalty is
            largest = largest_eigenvalue(W, np.repeat(weight, 3))
            least = _LEAST_EIGENVALUE * float(np.mean(W.diagonal() / np.repeat(weight, 3) ** 2))
            if least > 0:  # W is 0 where the rows of a problem hold all that its contacts act on
                condition = max(largest / least, 1.0)
            if rho == "spectral":
                rho = math.sqrt(largest * least) * condition**0.2
        rho = 1.0 if rho == "spectral" or not rho > 0 else rho
        rule = make_rule(options.policy, options.every, condition)
        return Plan(options.operator, base, rho, weight, rule, options.relaxation, options.accelerate)

    def _finish(self, splitting: Splitting, judge: Judge, started: float, linear: str, **more: str) -> Solution:
        prepared = time.perf_counter()
        drive(splitting, judge, self.options.max_iterations)
        details = {
            "operator": self.options.operator,
            "law_residual": splitting.law_residual,
            "returned_iteration": splitting.best + 1,
            "rho": splitting.rho,
            "factorizations": splitting.factorizations,
            "linear": linear,
        } | more
        times = {"prepare": prepared - started, "iterate": time.perf_counter() - prepared}
        note = relaxation_note(splitting.law, splitting.law_residual)
        return judge.solution(times, details, note, ended=splitting.ended)


def local_splitting(problem: LocalProblem, lam: np.ndarray, plan: Plan) -> Splitting:
    """Return iterations on a problem given by W, which is taken as it is.

    Parameters
    ----------
    problem : LocalProblem
        The problem.
    lam : ndarray, (3 nc,), N
        Forces to start from.
    plan : Plan
        What is done.
    """
    W, q = problem.W, problem.q.ravel()
    largest = float(np.abs(W).max(initial=0.0))
    symmetric = bool(np.abs(W - W.T).max(initial=0.0) <= SYMMETRY * largest)

    def energy(force: np.ndarray, velocity: np.ndarray) -> float:
        return math.sqrt(max(float(force @ velocity), 0.0))

    def gap(carried: np.ndarray, u: np.ndarray, now: np.ndarray) -> float:
        moved = W @ now
        size = larger(energy(carried, u - q), energy(now, moved))
        return float(relative(energy(carried - now, u - q - moved), size))

    step = DenseStep(W, q, len(q), symmetric)
    side = Side(step, problem.friction, problem.scales, gap)
    return Splitting(side, plan, lam, q + W @ lam, lambda v, lam: (v, lam.reshape(-1, 3)))

"""COND: contact nodalization and diagonalization, the primary solver (papers/001 Algorithms 1-3)."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from contact.linear import same_pattern
from contact.metrics import LawArguments, Residuals, law_arguments, natural_map_scale, residuals
from contact.nodalize import AUTO_GAIN_FACTOR, NodalContactProblem, layout, nodalize
from contact.problem import ContactProblem, isotropic
from contact.solvers import cond_contact_kernels as contact_kernels, cond_kernels as iteration, cond_system_kernels as kernels
from contact.solvers.base import Check, OperatorOptions, Solution, WarmStart, start_pair
from contact.solvers.block_rows import BlockPattern, apply_blocks
from contact.solvers.cond_groups import (
    Acceleration,
    Bodies,
    ContactArrays,
    Guard,
    Iterates,
    Matrix,
    Progress,
    Rules,
    State,
    Steps,
    Work,
)
from contact.solvers.converted import Converting
from contact.solvers.judge import BALANCE_FACTOR, Judge, drive
from contact.solvers.with_rows import takes_rows

_MAX_EIGENVALUE = 1.95
#: Factor on the steps of bodies and virtual nodes (measured: 7 % fewer iterations over the gripped ball, half in its worst step).
_BODY_STEP = 0.9
#: Factor of the automatic kv when multipliers make the answer independent of it.
EXACT_GAIN_FACTOR = 50.0
#: The multipliers of the virtual nodes are updated at most every so many iterations ...
UPDATE_INTERVAL = 20
#: ... and when the dynamics residual is below this part of what the virtual nodes carry beyond their multipliers.
UPDATE_RATIO = 0.1
#: Lanes of the sums over rows.
_LANES = 256


@dataclass(frozen=True)
class CondOptions(OperatorOptions):
    """Options of COND.

    Attributes
    ----------
    max_iterations : int
        Limit of iterations. Default 5000.
    step : {"frobenius", "barzilai-borwein"}
        Step sizes: minimal Frobenius norm of I - W A (IV-C1), or both Barzilai-Borwein sizes in turn times a Jacobi-scaled W
        (IV-C2), with a safe step where they fail.
    chebyshev : bool, optional
        Chebyshev acceleration (Alg. 3). Default on with Frobenius steps; not allowed with Barzilai-Borwein steps, which leave the
        interval it is made for.
    relaxation : float
        Under-relaxation u of Alg. 3 in (0, 1]. Default 1: 0.8 cost 10-30 % iterations and gained nothing.
    delay : int
        Iterations l_s before the acceleration starts. Default 10 (measured on the gripped ball: 6 % fewer iterations than 3).
    gain : float, N s/m, optional
        kv of all virtual nodes (eq. 14). Default: automatic, ``gain_factor`` times the stiffness at the contact.
    gain_factor : float, optional
        Factor of the automatic kv, see ``contact.nodalize_kernels``. Default 50 with ``exact_gain``, where it only
        decides the speed, else 10, where it decides the accuracy.
    exact_gain : bool
        Update the multipliers of the virtual nodes until they move with their bodies to the tolerance (papers/000 eq. 11);
        the answer then does not depend on kv. Off: the paper's eq. (15), with the error lam/kv of Prop. 2.
    regularization : float, m/(N s), optional
        Omega of the invertible contact model (eq. 37) is this times the identity: J v + phi + Omega lam enters the contact law,
        and the contact residual is that of this law. Default none. See :func:`contact.solvers.invertible.inverse_contact`.
    local_sweeps : int
        Largest number of extra Gauss-Seidel passes an iteration over contacts that share a node.
    patience : int
        Iterations within which the best residual must fall by a tenth, or the acceleration restarts there; the second time the
        plain iteration takes over, and its steps are halved when it stalls too. Default 1000: 300 gave up on balls of 10 MPa.
    """

    solver_name: ClassVar[str] = "cond"

    max_iterations: int = 5000
    step: Literal["frobenius", "barzilai-borwein"] = "frobenius"
    chebyshev: bool | None = None
    relaxation: float = 1.0
    delay: int = 10
    gain: float | None = None
    gain_factor: float | None = None
    exact_gain: bool = True
    regularization: float | None = None
    local_sweeps: int = 5
    patience: int = 1000

    def _checks(self) -> list[Check]:
        step, gain, factor, regularization = self.step, self.gain, self.gain_factor, self.regularization
        unaccelerated = "False and None with Barzilai-Borwein steps"
        positive, omega = "positive numbers in N s/m, or None for automatic", "positive numbers in m/(N s), or None for none"
        return [
            *super()._checks(),
            ("step", step, step in ("frobenius", "barzilai-borwein"), "'frobenius' and 'barzilai-borwein'"),
            ("chebyshev", self.chebyshev, not self.chebyshev or step == "frobenius", unaccelerated),
            ("relaxation", self.relaxation, 0 < self.relaxation <= 1, "numbers in (0, 1]"),
            ("gain", gain, gain is None or gain > 0, positive),
            ("gain_factor", factor, factor is None or factor > 0, "positive numbers"),
            ("regularization", regularization, regularization is None or 0 < regularization < np.inf, omega),
            ("delay", self.delay, self.delay >= 1, "integers >= 1"),
            ("local_sweeps", self.local_sweeps, self.local_sweeps >= 0, "integers >= 0"),
            ("patience", self.patience, self.patience >= 10, "integers >= 10"),
        ]


class Cond(Converting):
    """Contact nodalization and diagonalization.

    Parameters
    ----------
    options : CondOptions, optional
        Options; defaults are documented there.

    Notes
    -----
    ``Solution.details`` holds ``virtual_nodes`` (count), ``virtual_slip`` (m/s, speed of a virtual node relative to its body),
    ``largest_eigenvalue`` (of W A, estimated), ``coupled_contacts`` (contacts that share a node), ``returned_iteration`` (the
    last one, or the best by true residuals where none converged), ``regularization`` (Omega, 0 without) and ``operator``.
    """

    description = "COND: velocity fixed-point iteration on nodal contacts, Chebyshev-accelerated (papers/001)"

    def __init__(self, options: CondOptions | None = None) -> None:
        self.options = options or CondOptions()
        self._pattern: BlockPattern | None = None
        self._eigenvector: np.ndarray | None = None
        #: pattern of A that a recalled eigenvector belongs to
        self._recalled: tuple[np.ndarray, np.ndarray] | None = None

    def memory(self) -> dict[str, np.ndarray]:
        """Return what one solve leaves for the next: the eigenvector of the largest eigenvalue, and the pattern it belongs to."""
        if self._pattern is None or self._eigenvector is None:
            return {}
        return {"eigenvector": self._eigenvector, "indptr": self._pattern.indptr, "indices": self._pattern.indices}

    def recall(self, memory: Mapping[str, np.ndarray]) -> None:
        """Take it back."""
        self._pattern = None
        self._eigenvector = memory["eigenvector"].copy() if memory else None
        self._recalled = (memory["indptr"], memory["indices"]) if memory else None

    @takes_rows
    def solve(self, problem: ContactProblem, warm_start: WarmStart | None = None) -> Solution:
        """Solve the problem (Algs. 1-3).

        Parameters
        ----------
        problem : ContactProblem
            Problem with any contacts; virtual nodes are made where needed.
        warm_start : WarmStart, optional
            Velocity and forces of the previous step. Default zero.
        """
        options, clock = self.options, time.perf_counter
        started = clock()
        fixed_point, nodalizing = self.iterations(problem, warm_start)
        nodal, prepared = fixed_point.nodal, clock()
        judge = Judge(problem, options.tolerance, fixed_point.measure, fixed_point.law, options.operator == "proximal")
        drive(fixed_point, judge, options.max_iterations)
        timings = {"nodalize": nodalizing, "prepare": prepared - started - nodalizing, "iterate": clock() - prepared}
        details = {
            "virtual_nodes": nodal.n_virtual,
            "virtual_slip": nodal.virtual_slip(fixed_point.state.iterates.best),
            "largest_eigenvalue": fixed_point.eigenvalue,
            "coupled_contacts": int(np.count_nonzero(fixed_point.contacts.coupled)),
            "returned_iteration": fixed_point.best + 1,
            "regularization": options.regularization or 0.0,
            "operator": options.operator,
        }
        regularization = options.regularization
        law = f"contact law regularised by {regularization:g} m/(N s)" if regularization else ""
        return judge.solution(timings, details, law=law)

    def iterations(self, problem: ContactProblem, warm_start: WarmStart | None) -> tuple[FixedPoint, float]:
        """Prepare the iterations on a problem from a start; return them and the seconds that the nodalization took."""
        options, started = self.options, time.perf_counter()
        v, lam = start_pair(problem, warm_start)
        nodal = nodalize(
            problem,
            gain=options.gain,
            gain_factor=options.gain_factor or (EXACT_GAIN_FACTOR if options.exact_gain else AUTO_GAIN_FACTOR),
            multiplier=lam if options.exact_gain else None,
        )
        nodalized = time.perf_counter()
        return self._prepare(nodal, v, lam), nodalized - started

    def _prepare(self, nodal: NodalContactProblem, v: np.ndarray, lam: np.ndarray) -> FixedPoint:
        """Gather the arrays of the iteration that starts from v and lam."""
        problem, options = nodal.problem, self.options
        if self._pattern is None or not self._pattern.matches(problem.A):
            self._pattern = BlockPattern(problem.A, nodal.rows, nodal.virtual_start)
            if not same_pattern(self._recalled, problem.A):
                self._eigenvector = None
            self._recalled = None
        pattern = self._pattern
        kernels.scatter_entries(problem.A.data, pattern.places, pattern.values)
        matrix = Matrix(
            pattern.ptr, pattern.col, pattern.values, nodal.virtual_start, nodal.ptr, nodal.dof, nodal.jac, nodal.gain
        )  # fmt: skip
        bodies, diagonal = _bodies(nodal), np.empty(nodal.size)
        kernels.extended_diagonal(matrix, bodies.diagonal, diagonal)
        steps = self._steps(nodal, matrix, bodies)
        eigenvalue = self._limit_steps(nodal, matrix, diagonal, steps)
        if options.step == "barzilai-borwein":
            steps = steps._replace(inverse=np.linalg.inv(steps.dense))
        return FixedPoint(nodal, (matrix, steps, bodies, diagonal), eigenvalue, WarmStart(v, lam), options)

    def _steps(self, nodal: NodalContactProblem, matrix: Matrix, bodies: Bodies) -> Steps:
        """Step-size matrix W: Frobenius (IV-C1) or Jacobi on nodes, inverse diagonal block on bodies, 1/kv on virtual nodes."""
        w = np.empty(nodal.size)
        w[: nodal.virtual_start] = bodies.diagonal
        is_nodes, dense = bodies.stride > 0, nodal.blocks.copy()
        kernels.add_gain_blocks(matrix, nodal.group_of, bodies.start, dense)
        dense = dense[~is_nodes]
        if dense.size:
            dense = np.linalg.inv(dense)
        if self.options.step == "frobenius":
            kernels.node_steps(matrix, 0, nodal.virtual_start // 3, w)
        else:
            kernels.jacobi_steps(matrix, w)
        kernels.shrink_steps(matrix, nodal.group_of, is_nodes, w)
        # padding rows stand alone; bodies with their virtual nodes have eigenvalues up to two, which 0.9 brings back to 1.8
        w[layout(nodal.problem.groups).padding] = 1.0
        w[nodal.virtual_start :] *= _BODY_STEP
        dense *= _BODY_STEP
        return Steps(w, bodies.start[~is_nodes], (bodies.stop - bodies.start)[~is_nodes], dense, dense)

    def _limit_steps(self, nodal: NodalContactProblem, matrix: Matrix, diagonal: np.ndarray, steps: Steps) -> float:
        """Largest eigenvalue of W A; W of Frobenius steps is scaled where it comes too near to two, which nothing else bounds."""
        x = np.zeros(nodal.size)
        cold = self._eigenvector is None
        if cold:
            x[:] = np.random.default_rng(0).standard_normal(nodal.size) / np.sqrt(diagonal)
        else:
            x[: nodal.virtual_start] = self._eigenvector
        value = kernels.largest_eigenvalue(matrix, steps, x, 30 if cold else 3, np.empty((3, nodal.size)))
        self._eigenvector = x[: nodal.virtual_start].copy()
        if value > _MAX_EIGENVALUE and self.options.step == "frobenius":
            steps.w[:] *= _MAX_EIGENVALUE / value
            steps.dense[:] *= _MAX_EIGENVALUE / value
        return float(value)


class FixedPoint:
    """The iterations of :class:`Cond` on one problem."""

    over = False

    def __init__(
        self,
        nodal: NodalContactProblem,
        system: tuple[Matrix, Steps, Bodies, np.ndarray],
        eigenvalue: float,
        start: WarmStart,
        options: CondOptions,
    ) -> None:
        self.nodal, self.eigenvalue, self._options = nodal, eigenvalue, options
        self.contacts = _contact_arrays(nodal, options.regularization or 0.0)
        adaptive = options.step == "barzilai-borwein"
        rules = Rules(
            options.operator == "strict", float(options.regularization or 0.0), not adaptive and options.chebyshev is not False,
            adaptive, float(options.relaxation), options.delay, options.local_sweeps, options.patience, options.exact_gain,
            UPDATE_RATIO, BALANCE_FACTOR,
        )  # fmt: skip
        self._safe_step = 1.0 / eigenvalue if adaptive else 1.0
        matrix, steps, bodies, diagonal = system
        self._bodies = bodies
        self._system = matrix, steps, self.contacts, bodies, rules, diagonal
        self._history = np.empty((options.max_iterations, 3))
        self.state = self._begin(start, nodal.multiplier.copy())

    def _begin(self, start: WarmStart, multiplier: np.ndarray) -> State:
        """State of the iteration before its first step."""
        nodal, lam, safe_step = self.nodal, start.lam, self._safe_step
        x, x_old, Ax, Ax_old, star, A_star, A_best, b_now, force, zero = np.empty((10, nodal.size))
        iterates = Iterates(x, x_old, Ax, Ax_old, star, A_star, nodal.extend(start.v), A_best, np.empty_like(lam), lam)
        work = Work(
            b_now, multiplier, force, np.empty(nodal.virtual_start), np.zeros((nodal.n_virtual, 3)),
            np.empty(len(nodal.problem.groups)), np.empty((3, _LANES)), zero,
        )  # fmt: skip
        iteration.begin(self._system[0], self._bodies, iterates, work)
        return State(
            Progress(0, True, 0.0, np.inf, 0, 0, safe_step), iterates, work, Acceleration(0, 1.0, 0.0, 0.0),
            Guard(np.inf, 0, 0, safe_step, 0, UPDATE_INTERVAL),
        )  # fmt: skip

    def again(self, v: np.ndarray, lam: np.ndarray) -> None:
        """Begin anew from v, (n,), m/s, and lam, (nc, 3), N, with which the virtual nodes carry the contact forces."""
        lam = lam.reshape(-1, 3).copy()
        multiplier = lam[self.nodal.contact_of] if self._options.exact_gain else np.zeros((self.nodal.n_virtual, 3))
        self.state = self._begin(WarmStart(v, lam), multiplier)

    @property
    def best(self) -> int:
        """Row of the history of the best iterate."""
        return self.state.progress.best_at - 1

    @property
    def failed(self) -> bool:
        """Whether a value is not finite."""
        return not self.state.progress.finite

    def until(self, aim: float, limit: int) -> np.ndarray:
        """Iterate until residuals and balances, judged in the loop, are at most ``aim``."""
        first = self.state.progress.iteration
        self.state = iteration.iterate(*self._system, aim, limit, self.state, self._history)
        return self._history[first : self.state.progress.iteration]

    def answer(self) -> tuple[np.ndarray, np.ndarray]:
        """Velocity, (n,), m/s, and forces, (nc, 3), N, of the best iterate."""
        return self.state.iterates.best[self.nodal.rows], self.state.iterates.best_lam

    def measure(self, v: np.ndarray, lam: np.ndarray, law: LawArguments) -> Residuals:
        """Residuals by the contact law that the options ask for; without multipliers it holds where the virtual nodes are.

        Balances are relative to what would hold each body at the start, see :func:`contact.metrics_kernels.holding_forces`.
        """
        nodal, options = self.nodal, self._options
        best, product = self.state.iterates.best, self.state.iterates.A_best
        if nodal.n_virtual:  # their share is in the product of the iteration
            matrix, product = self._system[0], np.empty(nodal.virtual_start)
            apply_blocks(matrix.ptr, matrix.col, matrix.values, best, product)
        relaxed, loads = options.operator == "proximal", self._bodies.least_force
        return residuals(nodal.problem, v, lam, relaxed=relaxed, loads=loads, Av=product[nodal.rows], law=law)

    def law(self, v: np.ndarray, lam: np.ndarray) -> LawArguments:
        """Arguments of the natural map by that law."""
        return law_arguments(self.nodal.problem, v, lam, self._options.regularization or 0.0, self._slip)

    @property
    def _slip(self) -> np.ndarray | None:
        """Velocities of virtual nodes relative to their bodies, (nc, 3), m/s, where the contact law holds for the former."""
        nodal = self.nodal
        return nodal.contact_slip(self.state.iterates.best) if nodal.n_virtual and not self._options.exact_gain else None


def _contact_arrays(nodal: NodalContactProblem, regularization: float) -> ContactArrays:
    problem, coupled = nodal.problem, np.empty(nodal.problem.n_contacts, dtype=np.bool_)
    contact_kernels.mark_coupled(nodal.node, np.empty(nodal.size, dtype=np.int64), coupled)
    return ContactArrays(
        nodal.node, nodal.block, nodal.virtual_start, problem.phi, problem.coefficients, isotropic(problem).friction,
        problem.tangent_stretch, natural_map_scale(problem, regularization), coupled, bool(coupled.any()),
    )  # fmt: skip


def _bodies(nodal: NodalContactProblem) -> Bodies:
    problem, places = nodal.problem, layout(nodal.problem.groups)
    b, diagonal, inverse = np.empty((3, nodal.virtual_start))
    b_square = iteration.spread_bodies(problem.b, problem.diagonal, nodal.rows, b, diagonal, inverse)
    least = np.empty(len(problem.groups))
    return Bodies(places.start, places.stop, places.stride, places.of_row, b, diagonal, inverse, b_square, least)

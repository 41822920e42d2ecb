"""COND: contact nodalization and diagonalization, the primary solver (papers/001 Algorithms 1-3)."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy.sparse as sp

from contact.local import LocalProblem
from contact.metrics import natural_map_scale
from contact.nodalize import AUTO_GAIN_FACTOR, NodalContactProblem, body_blocks, nodalize
from contact.problem import ContactProblem, isotropic
from contact.solvers import cond_kernels as kernels
from contact.solvers.base import BALANCE_FACTOR, History, Solution, Status, WarmStart, check_options
from contact.solvers.converted import solve_converted

_MAX_EIGENVALUE = 1.95
#: Factor on the steps of bodies and virtual nodes (measured: 7 % fewer iterations over the gripped ball, half in its worst step).
_BODY_STEP = 0.9
#: Factor of the automatic kv when multipliers make the answer independent of it.
EXACT_GAIN_FACTOR = 50.0
#: The multipliers of the virtual nodes are updated at most every so many iterations ...
UPDATE_INTERVAL = 20
#: ... and when the dynamics residual is below this part of what the virtual nodes carry beyond their multipliers.
UPDATE_RATIO = 0.1


@dataclass(frozen=True)
class CondOptions:
    """Options of COND.

    Attributes
    ----------
    tolerance : float
        Both true residuals (dynamics and contact, see ``contact.metrics``) must be at most this, and the force balance of each
        body at most five times this. Default 1e-5.
    max_iterations : int
        Limit of iterations. Default 5000.
    operator : {"strict", "proximal"}
        Projection of eq. (26): strict satisfies the Signorini-Coulomb law, proximal its convex relaxation (eq. 28).
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
        Factor of the automatic kv, see ``contact.nodalize.automatic_gains``. Default 50 with ``exact_gain``, where it only
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

    tolerance: float = 1e-5
    max_iterations: int = 5000
    operator: Literal["strict", "proximal"] = "strict"
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

    def __post_init__(self) -> None:
        """Check the values once.

        Raises
        ------
        ContactError
            A value outside its range.
        """
        check_options(
            "cond",
            ("tolerance", self.tolerance, 0 < self.tolerance < 1, "numbers between 0 and 1"),
            ("max_iterations", self.max_iterations, self.max_iterations >= 1, "integers >= 1"),
            ("operator", self.operator, self.operator in ("strict", "proximal"), "'strict' and 'proximal'"),
            ("step", self.step, self.step in ("frobenius", "barzilai-borwein"), "'frobenius' and 'barzilai-borwein'"),
            (
                "chebyshev",
                self.chebyshev,
                not self.chebyshev or self.step == "frobenius",
                "False and None with Barzilai-Borwein steps",
            ),
            ("relaxation", self.relaxation, 0 < self.relaxation <= 1, "numbers in (0, 1]"),
            (
                "gain",
                self.gain,
                self.gain is None or self.gain > 0,
                "positive numbers in N s/m, or None for automatic",
            ),
            (
                "gain_factor",
                self.gain_factor,
                self.gain_factor is None or self.gain_factor > 0,
                "positive numbers",
            ),
            (
                "regularization",
                self.regularization,
                self.regularization is None or 0 < self.regularization < np.inf,
                "positive numbers in m/(N s), or None for none",
            ),
            ("delay", self.delay, self.delay >= 1, "integers >= 1"),
            ("local_sweeps", self.local_sweeps, self.local_sweeps >= 0, "integers >= 0"),
            ("patience", self.patience, self.patience >= 10, "integers >= 10"),
        )


class _BlockPattern:
    """3x3 block rows of A in the rows of x, and where their entries stand in its CSC data; depends on the pattern of A only.

    ``values`` holds the blocks as ``block_rows.apply_blocks`` wants them: each by columns, and one zero behind the last.
    """

    def __init__(self, A: sp.csc_matrix, rows: np.ndarray, size: int) -> None:
        self.indptr, self.indices = A.indptr, A.indices
        padding = np.setdiff1d(np.arange(size), rows)
        columns = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))
        values = np.concatenate([np.arange(1.0, A.nnz + 1.0), -np.ones(len(padding))])
        i, j = np.concatenate([rows[A.indices], padding]), np.concatenate([rows[columns], padding])
        blocks = sp.csr_matrix((values, (i, j)), shape=(size, size)).tobsr((3, 3))
        blocks.sort_indices()
        self.ptr = blocks.indptr.astype(np.int64)
        self.col = blocks.indices.astype(np.int32)
        flat = blocks.data.transpose(0, 2, 1).ravel()
        index = flat.astype(np.int64) - 1
        index[flat < 0] = -2
        self.index = index
        self.values = np.zeros(9 * len(self.col) + 1)

    def matches(self, A: sp.csc_matrix) -> bool:
        return A.indptr is self.indptr and A.indices is self.indices


class Cond:
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
        self._pattern: _BlockPattern | None = None
        self._eigenvector: np.ndarray | None = None

    def solve(self, problem: ContactProblem, warm_start: WarmStart | None = None) -> Solution:
        """Solve the problem (Algs. 1-3).

        Parameters
        ----------
        problem : ContactProblem
            Problem with any contacts; virtual nodes are made where needed.
        warm_start : WarmStart, optional
            Velocity and forces of the previous step. Default zero.
        """
        options = self.options
        clock = time.perf_counter
        started = clock()
        nc = problem.n_contacts
        lam = np.zeros((nc, 3)) if warm_start is None else np.array(warm_start.lam, dtype=np.float64).reshape(nc, 3)
        v0 = np.zeros(problem.n) if warm_start is None else warm_start.v
        nodal = nodalize(
            problem,
            gain=options.gain,
            gain_factor=options.gain_factor or (EXACT_GAIN_FACTOR if options.exact_gain else AUTO_GAIN_FACTOR),
            multiplier=lam if options.exact_gain else None,
        )
        nodalized = clock()
        if self._pattern is None or not self._pattern.matches(problem.A):
            self._pattern = _BlockPattern(problem.A, nodal.rows, nodal.virtual_start)
            self._eigenvector = None
        pattern = self._pattern
        kernels.gather_blocks(problem.A.data, pattern.index, pattern.values)
        matrix = (pattern.ptr, pattern.col, pattern.values, nodal.ptr, nodal.dof, nodal.jac, nodal.gain)
        diagonal = np.empty(nodal.size)
        kernels.extended_diagonal(*matrix, diagonal)
        w, dense_start, dense_size, dense = self._steps(nodal, matrix, diagonal)
        eigenvalue = self._guard(nodal, matrix, diagonal, w, (dense_start, dense_size, dense))
        coupled = _coupled_contacts(nodal)
        x = nodal.extend(v0)
        b = np.zeros(nodal.virtual_start)
        b[nodal.rows] = problem.b
        history = np.empty((options.max_iterations, 3))
        multiplier = nodal.multiplier.copy()
        prepared = clock()
        diagonal_bodies = np.ones(nodal.virtual_start)
        diagonal_bodies[nodal.rows] = problem.diagonal
        adaptive = options.step == "barzilai-borwein"
        regularization = options.regularization or 0.0
        iterations, code, returned = kernels.iterate(
            *matrix, multiplier, b, diagonal, diagonal_bodies, w, dense_start, dense_size, dense,
            np.linalg.inv(dense) if adaptive else dense, nodal.node, nodal.block, problem.phi, problem.coefficients,
            isotropic(problem).friction, problem.tangent_stretch, coupled, regularization,
            natural_map_scale(problem, regularization), *_group_arrays(nodal),
            options.operator == "strict", not adaptive and options.chebyshev is not False, adaptive,
            1.0 / eigenvalue if adaptive else 1.0, options.relaxation, options.delay, options.local_sweeps, options.patience,
            options.exact_gain, UPDATE_INTERVAL, UPDATE_RATIO, options.tolerance, BALANCE_FACTOR, options.max_iterations,
            x, lam, np.empty((12, nodal.size)), history,
        )  # fmt: skip
        done = clock()
        history = history[:iterations].copy()
        status, message = _verdict(code, iterations, returned, history, options)
        return Solution(
            x[nodal.rows],
            lam,
            status,
            message,
            iterations,
            History(history[:, 0], history[:, 1], history[:, 2]),
            {"nodalize": nodalized - started, "prepare": prepared - nodalized, "iterate": done - prepared},
            {
                "virtual_nodes": nodal.n_virtual,
                "virtual_slip": nodal.virtual_slip(x),
                "largest_eigenvalue": eigenvalue,
                "coupled_contacts": int(coupled.sum()),
                "returned_iteration": returned,
                "regularization": regularization,
                "operator": options.operator,
            },
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
        return solve_converted(problem, warm_start, Cond, self.options)

    def _steps(
        self, nodal: NodalContactProblem, matrix: tuple[np.ndarray, ...], diagonal: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Step-size matrix W: Frobenius (IV-C1) or Jacobi on nodes, inverse diagonal block on bodies, 1/kv on virtual nodes."""
        w = diagonal.copy()
        w[nodal.rows] = nodal.problem.diagonal
        bodies = [(i, g) for i, g in enumerate(nodal.problem.groups) if g.kind == "generalized"]
        dense = body_blocks(nodal.problem)
        starts, stops, strides, _ = _group_arrays(nodal)
        is_nodes = strides > 0
        kernels.add_gain_blocks(nodal.group_of, starts, nodal.ptr, nodal.dof, nodal.jac, nodal.gain, dense)
        dense = np.linalg.inv(dense[[i for i, _ in bodies]])
        if self.options.step == "frobenius":
            kernels.node_steps(matrix[0], matrix[2], 0, len(matrix[0]) - 1, nodal.virtual_start, nodal.gain, w)
        else:
            kernels.jacobi_steps(nodal.virtual_start, nodal.gain, w)
        kernels.shrink_steps(nodal.group_of, is_nodes, nodal.ptr, nodal.dof, nodal.jac, nodal.gain, w)
        # padding rows stand alone; bodies with their virtual nodes have eigenvalues up to two, which 0.9 brings back to 1.8
        padding = np.ones(nodal.virtual_start, dtype=np.bool_)
        padding[nodal.rows] = False
        w[: nodal.virtual_start][padding] = 1.0
        w[nodal.virtual_start :] *= _BODY_STEP
        dense *= _BODY_STEP
        return w, starts[~is_nodes], (stops - starts)[~is_nodes], dense

    def _guard(
        self,
        nodal: NodalContactProblem,
        matrix: tuple[np.ndarray, ...],
        diagonal: np.ndarray,
        w: np.ndarray,
        bodies: tuple[np.ndarray, np.ndarray, np.ndarray],
    ) -> float:
        """Largest eigenvalue of W A; W of Frobenius steps is scaled where it comes too near to two, which nothing else bounds."""
        x = np.zeros(nodal.size)
        cold = self._eigenvector is None
        if cold:
            x[:] = np.random.default_rng(0).standard_normal(nodal.size) / np.sqrt(diagonal)
        else:
            x[: nodal.virtual_start] = self._eigenvector
        value = kernels.largest_eigenvalue(*matrix, w, *bodies, x, 30 if cold else 3)
        self._eigenvector = x[: nodal.virtual_start].copy()
        if value > _MAX_EIGENVALUE and self.options.step == "frobenius":
            w *= _MAX_EIGENVALUE / value
            bodies[2][:] *= _MAX_EIGENVALUE / value
        return float(value)


def _coupled_contacts(nodal: NodalContactProblem) -> np.ndarray:
    """Contacts with a node that another contact uses too."""
    used = nodal.node[nodal.node >= 0]
    starts, counts = np.unique(used, return_counts=True)
    shared = starts[counts > 1]
    return np.asarray(np.isin(nodal.node, shared).any(axis=1))


def _group_arrays(nodal: NodalContactProblem) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """First row, last row + 1 and stride of each group in x, and the group of each row of x before the virtual nodes."""
    groups = nodal.problem.groups
    size = np.array([g.stop - g.start for g in groups], dtype=np.int64)
    padded = 3 * ((size + 2) // 3)
    start = np.cumsum(padded) - padded
    strides = np.array([g.stride for g in groups], dtype=np.int64)
    return start, start + size, strides, np.repeat(np.arange(len(groups)), padded)


def _verdict(code: int, iterations: int, returned: int, history: np.ndarray, options: CondOptions) -> tuple[Status, str]:
    dynamics, contact = history[max(returned, 1) - 1, :2]
    residuals = f"dynamics residual {dynamics:.2e}, contact residual {contact:.2e}, tolerance {options.tolerance:.0e}"
    if options.regularization is not None:
        residuals += f", contact law regularised by {options.regularization:g} m/(N s)"
    if code == 0:
        return "converged", f"Converged in {iterations} iterations ({residuals})."
    if returned not in (0, iterations):
        residuals = f"returned is the best iterate, that of iteration {returned}: {residuals}"
    if code == 1:
        return "stopped at the limit", f"Stopped at the limit of {iterations} iterations ({residuals})."
    return "failed", f"Iteration {iterations} gave a value that is not finite ({residuals})."

"""Banded: exact solver for rods alone, Newton steps on velocities and forces with one sweep along the chain each."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from contact.errors import ContactError
from contact.metrics import natural_map_scale, norm
from contact.problem import ContactProblem, from_isotropic, isotropic, to_isotropic
from contact.solvers import banded_kernels as kernels
from contact.solvers.base import Judge, Solution, WarmStart, check_options

#: Proximal shift relative to the compliance of a contact, and scale of the trial forces (see ``contact.solvers.dense``).
_SHIFT, _TRIAL_SCALE = 1e-6, 10.0


@dataclass(frozen=True)
class BandedOptions:
    """Options of the solver for chains.

    Attributes
    ----------
    tolerance : float
        Both true residuals (dynamics and contact, see ``contact.metrics``) must be at most this, and the force balance of each
        body at most five times this. Default 1e-8.
    max_iterations : int
        Limit of Newton steps. Default 25; 1 to 4 are usual.
    """

    tolerance: float = 1e-8
    max_iterations: int = 25

    def __post_init__(self) -> None:
        """Check the values once.

        Raises
        ------
        ContactError
            A value outside its range.
        """
        check_options(
            "banded",
            ("tolerance", self.tolerance, 0 < self.tolerance < 1, "numbers between 0 and 1"),
            ("max_iterations", self.max_iterations, self.max_iterations >= 1, "integers >= 1"),
        )


class Banded:
    """Regularised semi-smooth Newton for chains of links.

    A is block tridiagonal with 6x6 blocks (rods, each its own chain) and every contact acts on one link, so the contact forces
    are eliminated link by link from a Newton step on (v, lam), and the step is one block LU sweep whose cost is linear in the
    number of links. Each step is a proximal one around the present forces, which leaves no trace in the answer.

    Parameters
    ----------
    options : BandedOptions, optional
        Options; defaults are documented there.

    Notes
    -----
    It does not look for another way when Newton's method cycles: it then says that it stopped at the limit, and ``auto`` goes on
    with the exact solver.
    """

    description = "Banded: Newton with one sweep along the chain a step; for rods alone, touching what does not move freely"

    def __init__(self, options: BandedOptions | None = None) -> None:
        self.options = options or BandedOptions()

    @staticmethod
    def fits(problem: ContactProblem) -> bool:
        """Whether all bodies are rods, which nothing joins, and every contact acts on one link of one of them."""
        if not problem.groups or any(group.kind != "links" for group in problem.groups):
            return False
        if not kernels.is_chain(problem.A.indptr, problem.A.indices):
            return False
        link, jacobian = np.empty(problem.n_contacts, dtype=np.int64), np.empty((problem.n_contacts, 3, 6))
        return bool(kernels.gather_contacts(problem.J.indptr, problem.J.indices, problem.J.data, link, jacobian))

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
        options, clock = self.options, time.perf_counter
        started = clock()
        same, nc = isotropic(problem), problem.n_contacts
        n = problem.n // 6
        diagonal, upper = np.empty((n, 6, 6)), np.empty((n, 6, 6))
        link, jacobian = np.empty(nc, dtype=np.int64), np.empty((nc, 3, 6))
        if not (
            problem.n == 6 * n
            and kernels.gather_links(same.A.indptr, same.A.indices, same.A.data, diagonal, upper)
            and kernels.gather_contacts(same.J.indptr, same.J.indices, same.J.data, link, jacobian)
        ):
            raise ContactError(
                "solver 'banded' takes rods alone: A must be block tridiagonal with 6x6 blocks and each contact act on one link; "
                "use 'exact' or 'auto'."
            )
        v, lam = np.zeros((n, 6)), np.zeros((nc, 3))
        if warm_start is not None:
            v[:] = np.reshape(warm_start.v, (n, 6))
            lam[:] = to_isotropic(problem, warm_start.lam.reshape(nc, 3))
        b, rho = same.b.reshape(n, 6), natural_map_scale(same)
        compliance = 1.0 / rho
        u, step, gain, change = np.empty((nc, 3)), np.empty((n, 6)), np.empty((nc, 3, 3)), np.empty((nc, 3))
        work_diagonal, work_upper, pivot = np.empty((n, 6, 6)), np.empty((n, 6, 6)), np.empty((n, 6), dtype=np.int64)
        judge = Judge(problem, options.tolerance)
        kernels.contact_velocities(link, jacobian, same.phi, v, u)
        gathered = clock()
        for _ in range(options.max_iterations):
            solvable = kernels.newton_step(
                diagonal, upper, b, link, jacobian, same.phi, same.friction, compliance, _SHIFT, _TRIAL_SCALE,
                v, lam, u, step, work_diagonal, work_upper, pivot, gain, change,
            )  # fmt: skip
            if judge.done(v.ravel(), from_isotropic(problem, lam), norm(step)) or not solvable:
                break
        timings = {"gather": gathered - started, "iterate": clock() - gathered}
        return judge.solution(timings, {})

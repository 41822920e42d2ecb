"""Problems of which the digits of v leave more than the tolerance: solvers end early, and say so."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from small_blocks import soft_block

from contact import ContactProblem, make_problem
from contact.metrics import Residuals, residuals, rounding, rounding_at_most
from contact.solvers import make_solver
from contact.solvers.judge import barring


def stiff_chain(stiffness: float, links: int = 60, pressed: bool = True) -> ContactProblem:
    """Masses on springs that are so many times as stiff, that slide over a floor on both ends."""
    springs = sp.diags([np.r_[1.0, np.full(links - 2, 2.0), 1.0], -np.ones(links - 1), -np.ones(links - 1)], [0, 1, -1])
    A = sp.kron(sp.identity(links) + stiffness * springs, sp.identity(3))
    b = np.random.default_rng(3).standard_normal((links, 3)) + np.array([3.0, 0.1, -1.0])
    ends = (0, links - 1) if pressed else ()
    J = sp.lil_matrix((3 * len(ends), 3 * links))
    for m, end in enumerate(ends):
        J[3 * m : 3 * m + 3, 3 * end : 3 * end + 3] = np.array([[0.0, 0, 1], [1, 0, 0], [0, 1, 0]])
    return make_problem(A, b.ravel(), J, np.zeros((len(ends), 3)), np.full(len(ends), 0.2), dt=0.01)


@pytest.mark.skipif(np.finfo(np.longdouble).eps > 1e-18, reason="no longer numbers here")
@pytest.mark.parametrize("stiffness", [1e4, 1e7, 1e10])
def test_rounding_is_what_exact_velocities_leave_once_they_are_numbers(stiffness: float) -> None:
    problem = stiff_chain(stiffness, pressed=False)
    A, b = problem.A.toarray().astype(np.longdouble), problem.b.astype(np.longdouble)
    v = np.linalg.solve(problem.A.toarray(), problem.b).astype(np.longdouble)
    for _ in range(8):  # refinement with more digits than a number has
        v += np.linalg.solve(problem.A.toarray(), (b - A @ v).astype(np.float64))
    assert float(np.abs(A @ v - b).max()) < 1e-2 * stiffness * np.finfo(np.float64).eps * float(np.abs(v).max())
    no_forces = np.zeros((0, 3))
    left = rounding(problem, v.astype(np.float64), no_forces)
    there = np.abs(A @ v.astype(np.float64) - b)
    norms = [np.linalg.norm(problem.weight * np.asarray(x, dtype=np.float64)) for x in (there, problem.b)]
    assert 0.3 < norms[0] / norms[1] / left < 2.0
    # in doubles the residual itself is rounded too
    assert residuals(problem, v.astype(np.float64), no_forces).dynamics < 4.0 * left


def test_rounding_is_what_its_formula_says() -> None:
    """The norm of half a unit in the last place of each term of A v, over the largest of A v, b and J^T lam."""
    problem, rng = soft_block(1e7, 3), np.random.default_rng(4)
    v, lam = rng.standard_normal(problem.n), 1e3 * rng.standard_normal((problem.n_contacts, 3))
    A = problem.A.toarray()
    spread = np.sqrt(np.square(A) @ np.square(v))
    largest = max(np.linalg.norm(problem.weight * x) for x in (A @ v, problem.b, problem.J.T @ lam.ravel()))
    expected = 0.5 * np.finfo(np.float64).eps * np.linalg.norm(problem.weight * spread) / largest
    assert rounding(problem, v, lam) == pytest.approx(expected, rel=1e-12, abs=0.0)


def test_the_bound_of_rounding_is_one_and_near() -> None:
    """It spares a product with A in nearly every iteration, so it is far below the residuals of those that go on."""
    rng = np.random.default_rng(5)
    for problem in (soft_block(1e7, 3), stiff_chain(1e4), stiff_chain(1e9), stiff_chain(1e9, pressed=False)):
        for v in (rng.standard_normal(problem.n), np.ones(problem.n), make_solver("exact").solve(problem).v):
            lam = 10.0 * rng.standard_normal((problem.n_contacts, 3))
            A = problem.A.toarray()
            largest = max(np.linalg.norm(problem.weight * x) for x in (problem.b, problem.J.T @ lam.ravel()))
            left = rounding(problem, v, lam) * max(1.0, np.linalg.norm(problem.weight * (A @ v)) / largest)
            assert left <= rounding_at_most(problem, v, lam) <= 20.0 * left


@pytest.mark.parametrize("name", ["auto", "cond-newton", "canal", "exact"])
def test_solvers_end_where_rounding_bars_the_tolerance(name: str) -> None:
    problem, tolerance = stiff_chain(1e9), 1e-9
    found = make_solver(name, tolerance=tolerance, max_iterations=3000).solve(problem)
    assert found.status == "stopped at rounding" and not found.converged, found.message
    assert found.iterations < 300 and "The digits of v leave" in found.message
    reached = residuals(problem, found.v, found.lam)
    left = rounding(problem, found.v, found.lam)
    assert reached.contact <= tolerance < reached.dynamics < 8.0 * left and 4.0 * tolerance < left
    # the message asks for a larger tolerance, and that one is met
    assert make_solver(name, tolerance=8.0 * left, max_iterations=3000).solve(problem).converged


def test_auto_asks_no_other_solver_where_rounding_bars_the_tolerance() -> None:
    found = make_solver("auto", tolerance=1e-9).solve(stiff_chain(1e9))
    assert found.status == "stopped at rounding" and len(found.details["tried"]) == 1


@pytest.mark.parametrize("name", ["auto", "cond-newton", "canal", "exact"])
def test_what_can_be_solved_is_solved(name: str) -> None:
    """Rounding is far below the tolerance here, or just below: nothing may end early."""
    for problem in (soft_block(1e7, 4), stiff_chain(1e4), stiff_chain(1e6)):
        found = make_solver(name, tolerance=1e-8).solve(problem)
        assert found.converged, found.message


def test_iterates_that_break_the_contact_law_do_not_end_at_rounding() -> None:
    problem = stiff_chain(1e9)
    found = make_solver("apgd", tolerance=1e-9, max_iterations=1).solve(problem)
    assert found.status == "stopped at the limit" and residuals(problem, found.v, found.lam).contact > 1e-9


def test_what_bars_a_pair_from_the_tolerance() -> None:
    problem = stiff_chain(1e9)
    found = make_solver("cond-newton", tolerance=1e-9).solve(problem)
    left = rounding(problem, found.v, found.lam)

    def barred(dynamics: float, contact: float, tolerance: float) -> float:
        return barring(problem, found.v, found.lam, Residuals(dynamics, contact, 0.0, dynamics), tolerance)

    assert barred(2.0 * left, 1e-9, 1e-9) == left
    assert barred(100.0 * left, 1e-9, 1e-9) == 0  # there is more to gain
    assert barred(2.0 * left, 2e-9, 1e-9) == 0  # the contact law does not hold
    assert barred(2.0 * left, 1e-9, 0.9 * left) == 0  # another iterate may pass

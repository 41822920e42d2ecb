"""Stage contact: problems condensed to their contacts, their residuals, and their way to a problem with a matrix A."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from full_sets import CHECKERS, checker
from random_problems import random_local
from slow_twins import body_between_nodes, random_spd

from contact import (
    CondOptions,
    ContactError,
    ContactProblem,
    Solution,
    WarmStart,
    make_local_problem,
    make_solver,
    measure,
    measure_local,
    to_global,
)
from contact.solvers.base import History
from contact.solvers.converted import solve_converted


def good(**changes: Any) -> dict[str, Any]:
    """Two contacts, with some arguments replaced."""
    arrays = {"W": random_spd(np.random.default_rng(0), 6), "q": np.arange(6.0).reshape(2, 3), "friction": np.array([0.3, 0.4])}
    return arrays | changes


def entry(array: np.ndarray, place: Any, value: float) -> np.ndarray:
    out = np.array(array, dtype=np.float64)
    out[place] = value
    return out


# ---------------------------------------------------------------------- the door


def test_a_good_problem_is_taken_over_unchanged() -> None:
    problem = make_local_problem(**good())
    assert problem.n_contacts == 2
    assert np.array_equal(problem.W, good()["W"]) and np.array_equal(problem.q, good()["q"])
    assert np.array_equal(problem.friction, [0.3, 0.4])
    for array in (problem.W, problem.q, problem.friction):
        assert array.dtype == np.float64 and array.flags.c_contiguous
    flat = make_local_problem(sp.csc_array(np.asfortranarray(good()["W"])), np.arange(6.0), 0.5)
    assert np.array_equal(flat.W, problem.W) and flat.W.flags.c_contiguous
    assert np.array_equal(flat.q, problem.q) and np.array_equal(flat.friction, [0.5, 0.5])


def test_a_matrix_may_be_nonsymmetric_empty_or_zero_for_a_contact() -> None:
    skew = entry(good()["W"], (0, 5), 7.0)
    assert np.array_equal(make_local_problem(**good(W=skew)).W, skew)
    empty = make_local_problem(np.zeros((0, 0)), np.zeros((0, 3)), 0.3)
    assert empty.n_contacts == 0 and set(measure_local(empty, np.zeros((0, 3))).as_dict().values()) == {0.0}
    fixed = np.zeros((6, 6))
    fixed[:3, :3] = np.eye(3)
    assert make_local_problem(**good(W=fixed)).n_contacts == 2


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"W": np.eye(5)}, ("W has shape (5, 5)", "three rows a contact")),
        ({"W": np.ones((6, 3))}, ("W has shape (6, 3)", "square")),
        ({"W": np.ones(6)}, ("W has shape (6,)", "square")),
        ({"W": entry(np.eye(6), (1, 4), np.nan)}, ("W[1, 4] is nan", "finite")),
        ({"W": sp.csr_array(entry(np.eye(6), (1, 4), np.inf))}, ("W[1, 4] is inf", "finite")),
        ({"q": np.zeros((3, 2))}, ("q has shape (3, 2)", "(2, 3) or (6,)")),
        ({"q": entry(np.zeros((2, 3)), (1, 0), np.inf)}, ("q[1, 0] is inf", "finite")),
        ({"friction": np.ones(3)}, ("friction has shape (3,)", "(2,)")),
        ({"friction": np.ones((2, 2))}, ("friction has shape (2, 2)", "(2,)")),
        ({"friction": np.array([0.1, -0.2])}, ("friction of contact 1 is -0.2", ">= 0")),
        ({"friction": np.nan}, ("friction[0] is nan", "finite")),
        ({"W": -np.eye(6)}, ("contact 0", "trace -3", "Check the sign")),
        ({"W": entry(np.diag([1.0, 1, 1, 0, 0, 0]), (0, 4), 1.0)}, ("contact 1", "trace 0", "all zero")),
        ({"W": entry(np.diag([1.0, 1, 1, 0, 0, 0]), (5, 1), 1.0)}, ("contact 1", "trace 0", "all zero")),
    ],
)
def test_wrong_input_is_a_sentence(changes: dict[str, Any], words: tuple[str, ...]) -> None:
    with pytest.raises(ContactError) as caught:
        make_local_problem(**good(**changes))
    for word in words:
        assert word in str(caught.value), caught.value


# ---------------------------------------------------------------------- residuals


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("plane", [False, True])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("judge", CHECKERS)
def test_the_independent_checker_agrees(judge: str, plane: bool, seed: int, scale: float) -> None:
    """Also where W is not symmetric, and with a contact that nothing moves."""
    check_fc = checker(judge)
    rng = np.random.default_rng(seed)
    free = random_local(rng, 4, plane=plane, asymmetry=0.1)
    W = np.zeros((15, 15))
    W[:12, :12] = free.W
    q = np.vstack([free.q, [0.3, -0.2, 0.0]])
    problem = make_local_problem(W, q, np.append(free.friction, 0.6))
    r = scale * rng.standard_normal((5, 3)) * [1.0, 1.0, 0.0 if plane else 1.0]
    dim = 2 if plane else 3
    own = np.flatnonzero(np.arange(15) % 3 < dim)
    i, j = np.nonzero(np.ones((5 * dim, 5 * dim)))
    arrays = {
        "W": check_fc.matrix(5 * dim, 5 * dim, i, j, W[np.ix_(own, own)].ravel()),
        "q": q[:, :dim].ravel(),
        "mu": problem.friction,
        "d": dim,
        "kind": "local",
    }
    found, theirs = measure_local(problem, r), check_fc.check(arrays, r[:, :dim].ravel())
    assert found.contact_residual == pytest.approx(theirs["natmap_si"], rel=1e-12)
    assert found.penetration_velocity == pytest.approx(theirs["pen_vel"], rel=1e-12)
    assert found.cone_violation == pytest.approx(max(theirs["cone"], theirs["rn_neg"]), rel=1e-12)


def test_residuals_of_a_sliding_contact_by_hand() -> None:
    """Unit W, q = (-1, 3, 0), mu = 1/2: r = (1, -1/2, 0) is exact; each deviation shows in its own number."""
    problem = make_local_problem(np.eye(3), np.array([-1.0, 3.0, 0.0]), 0.5)
    exact = measure_local(problem, np.array([[1.0, -0.5, 0.0]])).as_dict()
    assert max(exact.values()) < 1e-15
    pressed = measure_local(problem, np.array([[0.75, -0.375, 0.0]]))
    assert pressed.penetration_velocity == 0.25 and pressed.complementarity == 0.1875 and pressed.cone_violation == 0.0
    # uh = (-0.25 + 2.625 / 2, 2.625), r - uh = (-0.3125, -3), its foot (0.95, -0.475)
    assert pressed.contact_residual == pytest.approx(np.hypot(0.2, 0.1) / np.hypot(1.0625, 2.625), rel=1e-14)
    assert measure_local(problem, np.array([1.0, -0.75, 0.0])).cone_violation == 0.25
    # u = (0, 3, -1/2) beside r_t = (0, -1/2)
    assert measure_local(problem, np.array([[1.0, 0.0, -0.5]])).slip_alignment == pytest.approx(1.0 + 0.5 / np.hypot(3.0, 0.5))


# ---------------------------------------------------------------------- with a matrix A


@pytest.mark.parametrize(("nc", "rank"), [(3, 9), (4, 7), (5, 1)])
@pytest.mark.parametrize("plane", [False, True])
def test_the_global_form_has_the_same_operator(nc: int, rank: int, plane: bool) -> None:
    rng = np.random.default_rng(nc)
    problem = random_local(rng, nc, rank=rank, plane=plane)
    found = to_global(problem)
    W = (found.J @ found.J.T).toarray()
    np.testing.assert_allclose(W, problem.W, atol=1e-13 * abs(problem.W).max())
    assert found.n == min(rank, 2 * nc if plane else rank)
    assert np.array_equal(found.A.toarray(), np.eye(found.n)) and not found.b.any()
    assert np.array_equal(found.phi, problem.q) and np.array_equal(found.friction, problem.friction)
    assert [group.kind for group in found.groups] == ["generalized"]
    lam = rng.standard_normal((nc, 3))
    here, there = measure_local(problem, lam).as_dict(), measure(found, found.J.T @ lam.ravel(), lam).as_dict()
    assert there["dynamics_residual"] < 1e-15
    for name, value in here.items():
        assert there[name] == pytest.approx(value, rel=1e-9), name


def test_a_clean_w_has_a_triangular_root_and_one_with_the_rounding_of_text_one_of_eigenvectors() -> None:
    rng = np.random.default_rng(4)
    clean = random_local(rng, 6, rank=11)
    found = to_global(clean)
    assert found.n == 11 and found.J.nnz == sum(18 - k for k in range(11))  # a trapezoid, its rows in the order of W
    # 8 digits, as in files written as text: negative eigenvalues, which no triangle has
    text = make_local_problem(np.vectorize(lambda value: float(f"{value:.7e}"))(clean.W), clean.q, clean.friction)
    assert np.linalg.eigvalsh(text.W)[0] < 0
    other = to_global(text)
    assert other.J.nnz == 18 * other.n
    assert np.abs((other.J @ other.J.T).toarray() - text.W).max() <= 1e-7 * np.abs(text.W).max()
    lam = make_solver("exact", tolerance=1e-10).solve_local(clean).lam  # type: ignore[attr-defined]
    for problem in (found, other):
        again = make_solver("exact", tolerance=1e-10).solve(problem)
        assert again.converged
        u, expected = problem.J @ again.v + problem.phi.ravel(), clean.contact_velocity(lam).ravel()
        assert u == pytest.approx(expected, abs=1e-5 * np.abs(expected).max())


def test_a_contact_that_nothing_opens_is_refused_in_both_forms() -> None:
    W = np.zeros((6, 6))
    W[:3, :3] = np.eye(3)
    with pytest.raises(ContactError, match="contact 1 approaches at phi_n = -1 m/s"):
        to_global(make_local_problem(W, [-1.0, 0, 0, -1.0, 0, 0], 0.3))
    assert to_global(make_local_problem(W, [-1.0, 0, 0, 1.0, 0, 0], 0.3)).n == 3


def test_a_problem_and_its_condensed_form_have_the_same_answer() -> None:
    """Delassus operator of bodies between nodes, by dense inversion: COND's forces on it solve the original."""
    problem = body_between_nodes(np.random.default_rng(3), 4, 3, inertia=3.0)
    A, J = problem.A.toarray(), problem.J.toarray()
    W = J @ np.linalg.solve(A, J.T)
    condensed = make_local_problem(
        0.5 * (W + W.T), (J @ np.linalg.solve(A, problem.b)).reshape(-1, 3) + problem.phi, problem.friction
    )
    solution = make_solver("cond", tolerance=1e-10, max_iterations=50000).solve(to_global(condensed))
    assert solution.converged
    v = np.linalg.solve(A, problem.b + J.T @ solution.lam.ravel())
    found = measure(problem, v, solution.lam)
    assert found.contact_residual < 1e-8 and measure_local(condensed, solution.lam).contact_residual < 1e-8
    assert abs(solution.lam).max() > 1e-2  # something presses


def test_nothing_to_move_is_a_problem_too() -> None:
    for problem in (
        make_local_problem(np.zeros((0, 0)), np.zeros(0), 0.3),
        make_local_problem(np.zeros((3, 3)), [1.0, 0, 0], 0.3),
    ):
        found = to_global(problem)
        assert found.n == 1 and found.n_contacts == problem.n_contacts and found.J.nnz == 0


def test_small_rounding_is_forgiven_and_more_is_refused() -> None:
    W = random_spd(np.random.default_rng(5), 6)
    off = np.zeros((6, 6))
    off[0, 4] = abs(W).max()
    assert to_global(make_local_problem(W + 0.9e-9 * off, np.zeros(6), 0.3)).n == 6
    with pytest.raises(ContactError, match=r"W is not symmetric: the largest difference to its transpose is .* takes W as it is"):
        to_global(make_local_problem(W + 1.1e-9 * off, np.zeros(6), 0.3))
    values, vectors = np.linalg.eigh(W)
    for part in (-0.9e-6, -1.1e-6):
        values[0] = part * values[-1]
        indefinite = vectors @ np.diag(values) @ vectors.T
        problem = make_local_problem(0.5 * (indefinite + indefinite.T), np.zeros(6), 0.3)
        if part > -1e-6:
            assert to_global(problem).n == 5
        else:
            with pytest.raises(ContactError, match=r"eigenvalue -.* has no negative ones"):
                to_global(problem)


@pytest.mark.parametrize("name", ["cond", "ccs"])
def test_a_solver_that_needs_a_matrix_is_judged_on_the_local_problem(name: str) -> None:
    """Forces that pass on the equivalent problem can fail on the given one, whose u follows from the forces alone."""
    tolerance, goes_on = 1e-5, 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        G = rng.standard_normal((18, 22)) / np.sqrt(18)
        problem = make_local_problem(G @ G.T, rng.standard_normal((6, 3)) - [1.0, 0.0, 0.0], 0.4)
        solver = make_solver(name, tolerance=tolerance, max_iterations=20000)
        solution = solver.solve_local(problem)  # type: ignore[attr-defined]
        assert solution.converged and measure_local(problem, solution.lam).contact_residual <= tolerance
        assert solution.v.shape == (0,) and len(solution.history.contact) == solution.iterations
        first = solver.solve(to_global(problem))
        goes_on += first.converged and measure_local(problem, first.lam).contact_residual > tolerance
        warm = solver.solve_local(problem, WarmStart(np.zeros(0), solution.lam))  # type: ignore[attr-defined]
        assert warm.converged and warm.iterations <= 2 + solution.iterations // 4
    assert goes_on or name == "ccs"  # else this shows nothing


@pytest.mark.parametrize("name", ["cond", "ccs"])
def test_a_local_problem_that_is_not_reached_is_said(name: str) -> None:
    problem = random_local(np.random.default_rng(1), 6)
    solution = make_solver(name, tolerance=1e-12, max_iterations=3).solve_local(problem)  # type: ignore[attr-defined]
    assert solution.status == "stopped at the limit" and solution.iterations == 3
    assert measure_local(problem, solution.lam).contact_residual > 1e-12


def test_a_verdict_on_the_equivalent_problem_is_not_taken_over() -> None:
    """A solver that calls everything converged is asked for more four times and then not believed."""
    problem = random_local(np.random.default_rng(2), 3)
    asked: list[tuple[float, int]] = []

    class Optimist:
        def __init__(self, options: CondOptions) -> None:
            asked.append((options.tolerance, options.max_iterations))

        def solve(self, problem: ContactProblem, warm_start: WarmStart | None = None) -> Solution:
            none = np.zeros(2)
            return Solution(np.zeros(problem.n), np.zeros((3, 3)), "converged", "Fine.", 2, History(none, none, none), {"x": 1.0})

    found = solve_converted(problem, None, Optimist, CondOptions(tolerance=1e-3, max_iterations=100))
    assert found.status == "stopped at the limit" and "Fine. But the contact residual" in found.message
    assert found.iterations == 10 and found.timings == {"x": 5.0}
    assert asked == [(pytest.approx(10.0 ** -(3 + k)), 100 - 2 * k) for k in range(5)]
    stopped = solve_converted(problem, None, Optimist, CondOptions(tolerance=1e-3, max_iterations=3))
    assert stopped.iterations == 4  # the limit is on all of them

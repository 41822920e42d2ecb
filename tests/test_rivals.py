"""PGS, APGD, CCS and ADMM against problems solvable by hand, the slow twins and each other."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from full_sets import CHECKERS, DATA, checker, full_set, needs_full_sets
from slow_twins import body_between_nodes, closest_in_cone, natural_map_residual, nodes_on_floor, project_strict, solve_contact

from contact import (
    ContactError,
    ContactProblem,
    Solution,
    WarmStart,
    make_local_problem,
    make_problem,
    make_solver,
    measure,
    measure_local,
    read_fclib,
)
from contact.solvers.apgd_kernels import Iterates, accelerated_step
from contact.solvers.condensed import Condensed
from contact.solvers.splitting_kernels import LAGGED, PROXIMAL, STRICT, split_step

RIVALS = ("pgs", "apgd", "ccs", "admm")
FRAME = np.array([[0.0, 0, 1], [1, 0, 0], [0, 1, 0]])


def solve(name: str, problem: ContactProblem, warm_start: WarmStart | None = None, **options: Any) -> Solution:
    options = {"tolerance": 1e-10, "max_iterations": 5000, "backend": "superlu"} | options
    return make_solver(name, **options).solve(problem, warm_start)


def residual(problem: ContactProblem, solution: Solution) -> float:
    found = measure(problem, solution.v, solution.lam)
    return max(found.dynamics_residual, found.contact_residual)


@pytest.mark.parametrize("name", RIVALS)
@pytest.mark.parametrize(
    ("push", "gap", "lam", "v"),
    [
        # one node of A = 2 I pressed on a floor by 3 N; friction 0.4 holds up to 1.2 N
        (1.0, 0.0, (3.0, -1.0, 0.0), (0.0, 0.0, 0.0)),
        (2.0, 0.0, (3.0, -1.2, 0.0), (0.4, 0.0, 0.0)),
        (2.0, 1.6, (0.0, 0.0, 0.0), (1.0, 0.0, -1.5)),
    ],
    ids=["stick", "slide", "lift"],
)
def test_one_node_by_hand(name: str, push: float, gap: float, lam: tuple[float, ...], v: tuple[float, ...]) -> None:
    problem = make_problem(2.0 * sp.eye(3), np.array([push, 0, -3.0]), FRAME, np.array([gap]), 0.4, dt=0.01)
    solution = solve(name, problem)
    assert solution.converged, solution.message
    np.testing.assert_allclose(solution.lam[0], lam, atol=1e-8)
    np.testing.assert_allclose(solution.v, v, atol=1e-8)


@pytest.mark.parametrize("name", RIVALS)
@pytest.mark.parametrize("friction", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("seed", range(4))
def test_random_problems_agree_with_the_slow_twin(name: str, friction: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    make = nodes_on_floor if seed % 2 else body_between_nodes
    problem = make(rng, 6, 5, friction=friction)
    v, lam = solve_contact(problem)
    solution = solve(name, problem)
    assert solution.converged, solution.message
    np.testing.assert_allclose(solution.v, v, atol=1e-7)
    np.testing.assert_allclose(solution.lam, lam, atol=1e-7)


@pytest.mark.parametrize("name", RIVALS)
def test_the_other_backend_gives_the_same(name: str) -> None:
    problem = body_between_nodes(np.random.default_rng(8), 30, 5)
    solution = solve(name, problem, backend="auto")
    assert solution.converged, solution.message
    np.testing.assert_allclose(solution.v, solve(name, problem).v, atol=1e-10)


@pytest.mark.parametrize("name", RIVALS)
def test_large_friction_is_solved_or_said(name: str) -> None:
    """At mu = 5 no method has a proof; what converges is right and the rest is said. APGD brakes and solves all of these."""
    converged = 0
    for seed in range(6):
        problem = nodes_on_floor(np.random.default_rng(seed), 5, 4, friction=5.0)
        solution = solve(name, problem, tolerance=1e-8, max_iterations=6000)
        assert solution.converged == (residual(problem, solution) <= 1e-8)
        converged += solution.converged
    assert converged == 6 if name == "apgd" else converged >= 3


@pytest.mark.parametrize("name", RIVALS)
def test_the_relaxation_lifts_what_slides(name: str) -> None:
    """By hand: W = I/2, q = (-1.5, 1, 0); the CCP force is the closest point of the cone to -2 q, with u_n = mu |u_t|."""
    problem = make_problem(2.0 * sp.eye(3), np.array([2.0, 0, -3.0]), FRAME, np.zeros(1), 0.4, dt=0.01)
    solution = solve(name, problem, operator="proximal", max_iterations=300)
    normal = (3.0 + 0.4 * 2.0) / 1.16
    np.testing.assert_allclose(solution.lam[0], (normal, -0.4 * normal, 0.0), atol=1e-9)
    np.testing.assert_allclose(solution.v[2], 0.4 * solution.v[0], atol=1e-9)
    assert solution.v[2] > 0.1
    assert solution.status == "stopped at the limit" and "relaxation" in solution.message
    assert solution.details["law_residual"] < 1e-10 < 1e-2 < measure(problem, solution.v, solution.lam).contact_residual


@pytest.mark.parametrize("name", RIVALS)
def test_operators_agree_without_friction(name: str) -> None:
    problem = body_between_nodes(np.random.default_rng(3), 6, 5, friction=0.0)
    strict, proximal = (solve(name, problem, operator=operator) for operator in ("strict", "proximal"))
    assert strict.converged and proximal.converged
    np.testing.assert_allclose(proximal.lam, strict.lam, atol=1e-8)


@pytest.mark.parametrize(("name", "virtual_nodes"), [*((name, False) for name in RIVALS), ("ccs", True)])
def test_anisotropic_friction(name: str, virtual_nodes: bool) -> None:
    options = {"virtual_nodes": True} if virtual_nodes else {}
    rng = np.random.default_rng(5)
    problem = body_between_nodes(rng, 6, 5)
    problem = replace(problem, friction=rng.uniform(0.1, 0.8, (5, 2)))
    solution = solve(name, problem, **options)
    assert solution.converged, solution.message
    assert natural_map_residual(problem, solution.v, solution.lam) < 1e-9
    np.testing.assert_allclose(problem.A @ solution.v, problem.b + problem.J.T @ solution.lam.ravel(), atol=1e-8)
    # the forces of the answer are a warm start in the same variables
    again = solve(name, problem, WarmStart(solution.v, solution.lam), tolerance=1e-8, **options)
    assert again.converged and again.iterations <= 2 + 10 * virtual_nodes


@pytest.mark.parametrize("gain", [None, 1.0, 300.0])
def test_virtual_nodes_give_the_forces_of_the_original_problem(gain: float | None) -> None:
    problem = body_between_nodes(np.random.default_rng(2), 6, 5, inertia=30.0)
    v, lam = solve_contact(problem)
    solution = solve("ccs", problem, virtual_nodes=True, gain=gain, max_iterations=20000)
    assert solution.converged, solution.message
    assert solution.details["virtual_nodes"] == 5 and solve("ccs", problem).details["virtual_nodes"] == 0
    assert solution.v.shape == (problem.n,)
    np.testing.assert_allclose(solution.v, v, atol=1e-7)
    np.testing.assert_allclose(solution.lam, lam, atol=1e-7)


@pytest.mark.parametrize("name", RIVALS)
def test_a_warm_start_saves_iterations(name: str) -> None:
    problem = body_between_nodes(np.random.default_rng(4), 8, 7)
    cold = solve(name, problem)
    nearby = replace(problem, b=problem.b * (1 + 1e-4))
    warm = solve(name, nearby, WarmStart(cold.v, cold.lam))
    assert warm.converged and warm.iterations < 0.8 * solve(name, nearby).iterations


@pytest.mark.parametrize(
    ("name", "limit", "options", "last_is_best"),
    [
        ("pgs", 7, {}, True),
        ("apgd", 4, {}, False),
        ("ccs", 9, {}, False),
        ("ccs", 7, {"virtual_nodes": True}, True),
        ("ccs", 51, {"penalty": 1e3}, False),  # the best came before the penalty changed
    ],
)
def test_the_limit_is_reported_with_the_best_iterate(name: str, limit: int, options: dict[str, Any], last_is_best: bool) -> None:
    problem = body_between_nodes(np.random.default_rng(6), 8, 7, friction=1.0)
    solution = solve(name, problem, max_iterations=limit, **options)
    assert solution.status == "stopped at the limit" and f"limit of {limit} iterations" in solution.message
    history = solution.history
    assert solution.iterations == len(history.contact) == len(history.dynamics) == len(history.step_norm) == limit
    worst = np.maximum(history.dynamics, history.contact)
    assert solution.details["returned_iteration"] == np.argmin(worst) + 1
    assert (np.argmin(worst) + 1 == limit) == last_is_best
    # the history is true: it is what the yardstick says of the pair that is returned
    found = measure(problem, solution.v, solution.lam)
    row = np.argmin(worst)
    np.testing.assert_allclose(history.contact[row], found.contact_residual, rtol=1e-9)
    np.testing.assert_allclose(history.dynamics[row], found.dynamics_residual, rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize("name", RIVALS)
def test_no_contact_gives_the_free_velocity(name: str) -> None:
    problem = nodes_on_floor(np.random.default_rng(0), 5, 0)
    for options in ({}, {"virtual_nodes": True} if name == "ccs" else {}):
        solution = solve(name, problem, **options)
        assert solution.converged and solution.lam.shape == (0, 3)
        np.testing.assert_allclose(solution.v, np.linalg.solve(problem.A.toarray(), problem.b), atol=1e-12)


@pytest.mark.parametrize("name", RIVALS)
def test_duplicate_contacts_share_the_force(name: str) -> None:
    problem = body_between_nodes(np.random.default_rng(1), 6, 4)
    single = solve(name, problem)
    double = make_problem(
        problem.A, problem.b, sp.vstack([problem.J] * 2), np.vstack([problem.phi] * 2), 0.4, dt=0.01, groups=problem.groups
    )
    solution = solve(name, double)
    assert solution.converged, solution.message
    np.testing.assert_allclose(solution.v, single.v, atol=1e-7)
    np.testing.assert_allclose(solution.lam.reshape(2, 4, 3).sum(axis=0), single.lam, atol=1e-7)


@pytest.mark.parametrize("name", RIVALS)
def test_the_order_of_contacts_does_not_matter(name: str) -> None:
    rng = np.random.default_rng(9)
    problem = body_between_nodes(rng, 6, 5, friction=0.6)
    order = rng.permutation(5)
    rows = (3 * order[:, None] + np.arange(3)).ravel()
    other = make_problem(problem.A, problem.b, problem.J[rows], problem.phi[order], 0.6, dt=0.01, groups=problem.groups)
    first, second = solve(name, problem), solve(name, other)
    np.testing.assert_allclose(second.v, first.v, atol=1e-8)
    np.testing.assert_allclose(second.lam, first.lam[order], atol=1e-8)


@pytest.mark.parametrize("name", RIVALS)
def test_units_change_neither_answer_nor_iterations(name: str) -> None:
    problem = body_between_nodes(np.random.default_rng(7), 6, 5)
    force, length = 1e9, 1e-6
    scaled = make_problem(
        problem.A * (force / length), problem.b * force, problem.J, problem.phi * length, 0.4, dt=0.01, groups=problem.groups
    )
    first, second = solve(name, problem), solve(name, scaled)
    assert second.converged and abs(second.iterations - first.iterations) <= 1
    np.testing.assert_allclose(second.v / length, first.v, atol=1e-8)
    np.testing.assert_allclose(second.lam / force, first.lam, atol=1e-8)


@pytest.mark.parametrize("name", RIVALS)
def test_repeated_solves_have_the_same_bits(name: str) -> None:
    problem = body_between_nodes(np.random.default_rng(7), 6, 5)
    solver = make_solver(name, backend="superlu", tolerance=1e-9)
    first, second = solver.solve(problem), solver.solve(problem)
    assert np.array_equal(first.lam, second.lam) and np.array_equal(first.v, second.v)


def test_a_changed_matrix_is_factorised_anew() -> None:
    problem = body_between_nodes(np.random.default_rng(7), 6, 5)
    for name in RIVALS:
        solver = make_solver(name, backend="superlu", tolerance=1e-9)
        solver.solve(problem)
        heavier = replace(problem, A=sp.csc_matrix((3.0 * problem.A.data, problem.A.indices, problem.A.indptr)))
        kept = getattr(solver, "_matrix", None)
        again = solver.solve(heavier)
        assert again.converged, again.message
        assert getattr(solver, "_matrix", None) is kept  # of ccs: with it the analysis of its pattern


def test_ccs_changes_a_penalty_that_is_far_off() -> None:
    problem = body_between_nodes(np.random.default_rng(7), 6, 5)
    fixed, adaptive = (solve("ccs", problem, penalty=1e-3, adaptive=adaptive, tolerance=1e-8) for adaptive in (False, True))
    assert fixed.details["factorizations"] == 1 and fixed.details["penalty"] == 1e-3
    assert adaptive.converged and adaptive.details["penalty"] > 1e-2
    assert adaptive.iterations < 0.5 * fixed.iterations


@pytest.mark.parametrize("name", RIVALS)
def test_an_indefinite_matrix_is_refused(name: str) -> None:
    A = sp.csc_matrix([[1.0, 2.0, 0.0], [2.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    # its contact acts on the third row only, so that the penalty of ccs cannot hide it
    J = np.array([[0, 0, 1.0], [0, 0, 0], [0, 0, 0]])
    problem = make_problem(A, np.ones(3), J, np.zeros(1), 0.4, dt=0.01)
    with pytest.raises(ContactError, match="not positive definite"):
        solve(name, problem)


@pytest.mark.parametrize("name", RIVALS)
@pytest.mark.parametrize(
    ("option", "value"),
    [("tolerance", 0.0), ("max_iterations", 0), ("operator", "exact"), ("backend", "lapack"), ("threads", 0)],
)
def test_bad_options_are_refused(name: str, option: str, value: Any) -> None:
    with pytest.raises(ContactError, match=f"option {option} of solver '{name}' is {value!r}; allowed are"):
        make_solver(name, **{option: value})


@pytest.mark.parametrize(
    ("name", "option", "value"),
    [("pgs", "check_every", 0), ("ccs", "penalty", 0.0), ("ccs", "relaxation", 2.0), ("ccs", "gain", -1.0)],
)
def test_bad_options_of_one_solver_are_refused(name: str, option: str, value: Any) -> None:
    with pytest.raises(ContactError, match=f"option {option} of solver '{name}' is {value!r}; allowed are"):
        make_solver(name, **{option: value})


# ---------------------------------------------------------------------- problems given by W and q


@pytest.mark.parametrize("name", RIVALS)
def test_a_local_problem_with_a_matrix_that_is_not_symmetric(name: str) -> None:
    rng = np.random.default_rng(11)
    G = rng.standard_normal((12, 12))
    W = G @ G.T / 12 + np.eye(12)
    W += 0.1 * rng.standard_normal((12, 12))
    problem = make_local_problem(W, rng.standard_normal((4, 3)) - [0.5, 0, 0], 0.5)
    solver: Any = make_solver(name, tolerance=1e-10)
    solution = solver.solve_local(problem)
    assert solution.converged and solution.v.shape == (0,), solution.message
    assert measure_local(problem, solution.lam).contact_residual <= 1e-10
    assert solution.lam[:, 0].any()
    warm = solver.solve_local(problem, WarmStart(np.zeros(0), solution.lam))
    assert warm.iterations == 1
    limited = make_solver(name, tolerance=1e-10, max_iterations=3)
    assert limited.solve_local(problem).status == "stopped at the limit"  # type: ignore[attr-defined]


@needs_full_sets
@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("Rover4144", "pgs"),
        ("Confeti-ex03-Fc3D-SBM", "apgd"),
        ("OneObject-i100000-316", "apgd"),
        ("OneObject-i100000-316", "pgs"),
    ],
)
def test_problems_of_others(file: str, name: str) -> None:
    """On OneObject sweeps go round in a circle until they take shorter steps."""
    problem: Any = read_fclib(full_set("fclib") / f"{file}.hdf5").problem
    solution = make_solver(name, tolerance=1e-6, max_iterations=2000).solve_local(problem)  # type: ignore[attr-defined]
    assert solution.converged, solution.message
    assert measure_local(problem, solution.lam).contact_residual <= 1e-6


# ---------------------------------------------------------------------- kernels and their twins


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("brake", [1.0, 4.0])
def test_accelerated_step_against_its_twin(strict: bool, brake: float) -> None:
    rng = np.random.default_rng(13)
    G = rng.standard_normal((9, 9))
    W, q, mu, scale = G @ G.T, rng.standard_normal(9), np.array([0.0, 0.4, 2.0]), np.array([0.1, 0.2, 0.05])
    lam, y = rng.standard_normal(9), rng.standard_normal(9)
    theta, L = 0.7, 0.05

    def twin() -> tuple[np.ndarray, np.ndarray, float, float]:
        weight = np.repeat(1.0 / scale, 3)
        gradient = (W @ y + q).reshape(3, 3)
        if strict:
            gradient[:, 0] += mu * np.linalg.norm(gradient[:, 1:], axis=1)
        bound = L
        while True:
            trial = y.reshape(3, 3) - scale[:, None] / (bound * brake) * gradient
            new = np.concatenate([closest_in_cone(t, m) for t, m in zip(trial, mu, strict=True)])
            d = new - y
            if d @ W @ d <= bound * (d @ (weight * d)):
                break
            bound = max(2 * bound, d @ W @ d / (d @ (weight * d)))
        if brake > 1 or (y - new) @ (weight * (new - lam)) > 0:
            return new, new, 1.0, 0.9 * bound
        following = 0.5 * (theta * np.sqrt(theta**2 + 4) - theta**2)
        beta = theta * (1 - theta) / (theta**2 + following)
        return new, new + beta * (new - lam), following, 0.9 * bound

    new, y_new, theta_new, bound = twin()
    assert bound > 0.9 * L  # the bound had to grow
    u, u_y = W @ lam + q, W @ y + q
    problem = Condensed(np.ascontiguousarray(W.T), q, mu, np.ones(3))
    found = accelerated_step(
        problem, scale, strict, theta, L, brake, Iterates(y, u_y, lam, u, np.empty(9), np.empty(9))
    )  # fmt: skip
    np.testing.assert_allclose(found, (theta_new, bound), rtol=1e-12)
    np.testing.assert_allclose(lam, new, atol=1e-13)
    np.testing.assert_allclose(y, y_new, atol=1e-13)
    np.testing.assert_allclose(u, W @ new + q, atol=1e-12)
    np.testing.assert_allclose(u_y, W @ y_new + q, atol=1e-12)


@pytest.mark.parametrize("operator", [STRICT, PROXIMAL, LAGGED])
def test_split_step_against_its_twin(operator: int) -> None:
    rng = np.random.default_rng(14)
    mu, penalty, relaxation = np.array([0.0, 0.4, 2.0, 0.7]), rng.uniform(0.5, 2.0, 4), 1.6
    u, z, lam = rng.standard_normal((3, 12))
    expected_lam, expected_z = np.empty((4, 3)), np.empty((4, 3))
    for i in range(4):
        rows = slice(3 * i, 3 * i + 3)
        shift = np.array([mu[i] * np.linalg.norm(z[rows][1:]) if operator == LAGGED else 0.0, 0.0, 0.0])
        p = lam[rows] - penalty[i] * (relaxation * u[rows] + (1 - relaxation) * z[rows] + shift)
        expected_lam[i] = project_strict(p, mu[i]) if operator == STRICT else closest_in_cone(p, mu[i])
        expected_z[i] = (expected_lam[i] - p) / penalty[i] - shift
    split_step(u, mu, penalty, operator, relaxation, z, lam, z, lam)
    np.testing.assert_allclose(lam, expected_lam.ravel(), atol=1e-13)
    np.testing.assert_allclose(z, expected_z.ravel(), atol=1e-13)


@pytest.mark.parametrize("name", ["cond", "ccs", "pgs", "apgd", "exact"])
def test_converged_means_both_norms_of_the_dynamics(name: str) -> None:
    """Rows of A that differ by 1e6: the norm weighted by diag A and the plain one then see different rows."""
    converged = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        scale = np.repeat([1.0, 1e3], 6)
        R = rng.standard_normal((12, 12))
        A = scale[:, None] * (R @ R.T / 12 + np.eye(12)) * scale
        b = scale * (rng.standard_normal(12) - np.tile([3.0, 0.0, 0.0], 4))
        problem = make_problem(sp.csc_matrix(A), b, sp.identity(12, format="csr"), np.zeros((4, 3)), 0.4, dt=1e-2)
        solution = make_solver(name, tolerance=1e-3).solve(problem)
        converged += solution.converged
        found = measure(problem, solution.v, solution.lam)
        assert not solution.converged or max(found.dynamics_residual, found.dynamics_residual_plain) <= 1e-3
    assert converged == 20


def solve_file(name: str, path: Path, judge: str) -> tuple[Solution, float]:
    """Solve the problem of a file to 1e-6; return also the larger residual by a checker."""
    file = read_fclib(path)
    solver: Any = make_solver(name, tolerance=1e-6)
    solution = solver.solve(file.problem) if isinstance(file.problem, ContactProblem) else solver.solve_local(file.problem)
    check_fc = checker(judge)
    r, v = file.flatten(solution.lam), solution.v if solution.v.size else None
    found = check_fc.check(check_fc.read_problem(path), r, v)
    return solution, max(found["natmap_si"], found["dyn"])


@needs_full_sets
@pytest.mark.parametrize("judge", CHECKERS)
@pytest.mark.parametrize("name", ["cond", "ccs"])
@pytest.mark.parametrize("file", ["GFC3D_TwoRods1", "GFC3D_TwoRods1-condensed"])
def test_converged_holds_by_the_checker_of_the_files(name: str, file: str, judge: str) -> None:
    """Rows of A that differ by 1e3: where only the weighted norm is asked for, both stop above the checker's bound."""
    solution, residual = solve_file(name, full_set("fclib") / f"{file}.hdf5", judge)
    assert solution.converged and residual <= 1e-6


@pytest.mark.parametrize("judge", CHECKERS)
@pytest.mark.parametrize(("name", "least"), [("cond", 8), ("ccs", 9), ("pgs", 8), ("apgd", 9), ("exact", 10)])
def test_converged_holds_by_the_checker_on_our_problems(name: str, least: int, judge: str) -> None:
    """Soft, rigid, rods, hyperstatic, local and plane; the checker knows no second friction coefficient and no joints."""
    files = [path for path in sorted((DATA / "problems").glob("*.hdf5")) if path.stem not in ("anisotropic_box", "arm")]
    found = {path.stem: solve_file(name, path, judge) for path in files}
    assert len(found) == 10
    for file, (solution, residual) in found.items():
        assert not solution.converged or residual <= 1e-6, file
    assert sum(solution.converged for solution, _ in found.values()) >= least

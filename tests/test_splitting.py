"""The engine of splitting: its three linear steps, its iterations against a plain twin, its policies, and the presets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from full_sets import DATA
from random_problems import random_local
from slow_twins import body_between_nodes, closest_in_cone, nodes_on_floor, project_strict

from contact import (
    SOLVERS,
    ContactError,
    ContactProblem,
    WarmStart,
    make_local_problem,
    make_problem,
    make_solver,
    measure,
    measure_local,
    read_fclib,
)
from contact.linear import make_quasi_definite
from contact.metrics import natural_map
from contact.problem import isotropic
from contact.solvers.linear_steps import SaddleStep, choose
from contact.solvers.penalty import Sizes, largest_eigenvalue, make_rule
from contact.solvers.splitting_kernels import split_sizes
from femsim.studies.problems.sets import sphere_stack

PRESETS = sorted(name for name, entry in SOLVERS.items() if entry.preset_of == "admm")
GLOBAL = ("anisotropic_box", "ball_on_floor", "mat_pulled", "rod_on_post", "stack", "soft_on_soft")
FORMS = ("dual", "primal", "saddle")


def of_file(name: str) -> ContactProblem:
    problem = read_fclib(Path(DATA) / "problems" / f"{name}.hdf5").problem
    assert isinstance(problem, ContactProblem)
    return problem


def compliance(problem: ContactProblem) -> float:
    """Mean diagonal of J diag(A)^-1 J^T, a penalty of the right size in m/(N s)."""
    return float(isotropic(problem).compliance.mean())


# ---------------------------------------------------------------------- linear steps


@pytest.mark.parametrize("backend", ["auto", "superlu"])
@pytest.mark.parametrize("name", GLOBAL)
def test_the_three_linear_steps_give_the_same_iterates(name: str, backend: str) -> None:
    problem = of_file(name)
    rho = compliance(problem)
    found = []
    for linear in FORMS:
        options: dict[str, Any] = {"scaling": "none", "penalty": rho, "policy": "fixed", "linear": linear, "backend": backend}
        solution = make_solver("admm", tolerance=1e-14, max_iterations=25, **options).solve(problem)
        assert solution.details["linear"] == linear and solution.iterations == 25
        found.append(solution)
    size = np.abs(found[0].lam).max()
    assert size > 0
    for other in found[1:]:
        np.testing.assert_allclose(other.lam, found[0].lam, rtol=0, atol=1e-9 * size)
        np.testing.assert_allclose(other.v, found[0].v, rtol=0, atol=1e-8 * np.abs(found[0].v).max())
        np.testing.assert_allclose(other.history.contact, found[0].history.contact, rtol=1e-4, atol=1e-9)


def test_the_form_is_chosen_by_size() -> None:
    assert choose(body_between_nodes(np.random.default_rng(1), 6, 5)) == "dual"
    n = 600
    light = make_problem(sp.identity(n), np.ones(n), sp.identity(n, format="csr"), np.zeros((n // 3, 3)), 0.3, dt=0.01)
    assert choose(light) == "primal"
    assert make_solver("admm").solve(light).details["linear"] == "primal"


@pytest.mark.parametrize("backend", ["auto", "superlu"])
def test_scaled_saddle_factors_are_accurate_where_rows_are_empty(backend: Any) -> None:
    """Second tangents of a plane problem have no rows; and penalties that span ten orders."""
    problem = body_between_nodes(np.random.default_rng(3), 6, 5)
    J = problem.J.toarray()
    J[2::3] = 0.0
    problem = make_problem(problem.A, problem.b, J, problem.phi, 0.4, dt=0.01, groups=problem.groups)
    step = SaddleStep(problem, make_quasi_definite(backend))
    rng = np.random.default_rng(4)
    penalty, force = 10.0 ** rng.uniform(-4, 6, 15), rng.standard_normal(15)
    step.prepare(penalty)
    u = step.solve(force)
    x = force - penalty * u
    v = step.velocity(x, u)
    residual = problem.A @ v - problem.b - problem.J.T @ x
    assert np.linalg.norm(residual) <= 1e-11 * np.linalg.norm(problem.J.T @ force)
    np.testing.assert_allclose(problem.J @ v + problem.phi.ravel(), u, atol=1e-11 * np.abs(u).max())


@pytest.mark.parametrize("backend", ["auto", "superlu"])
@pytest.mark.parametrize("linear", FORMS)
def test_an_indefinite_matrix_is_an_error_in_every_form(linear: str, backend: str) -> None:
    A = sp.csc_matrix([[1.0, 2.0, 0.0], [2.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    J = np.array([[0, 0, 1.0], [0, 0, 0], [0, 0, 0]])
    problem = make_problem(A, np.ones(3), J, np.zeros(1), 0.4, dt=0.01)
    with pytest.raises(ContactError, match="not positive definite"):
        make_solver("admm", linear=linear, backend=backend).solve(problem)


# ---------------------------------------------------------------------- iterations


def plain(problem: ContactProblem, rho: float, operator: str, relaxation: float, accelerate: bool, count: int) -> np.ndarray:
    """Forces after some iterations of papers/003 Algs. 1 and 3 and papers/004 Alg. 6, Theta = rho, dense."""
    A, J, phi, mu = problem.A.toarray(), problem.J.toarray(), problem.phi.ravel(), problem.friction
    K = A + J.T @ J / rho
    y, z = np.zeros(len(J)), np.zeros(len(J))

    def law(p: np.ndarray) -> np.ndarray:
        project = project_strict if operator == "strict" else closest_in_cone
        return np.concatenate([project(p[3 * i : 3 * i + 3], m) for i, m in enumerate(mu)])

    def shift(velocity: np.ndarray) -> np.ndarray:
        s = np.zeros((len(mu), 3))
        if operator == "lagged":
            s[:, 0] = mu * np.linalg.norm(velocity.reshape(-1, 3)[:, 1:], axis=1)
        return s.ravel()

    start = y - phi / rho  # u = phi where nothing moves
    z = rho * (law(start - shift(z) / rho) - start) - shift(z)
    y_hat, z_hat, a, before = y.copy(), z.copy(), 1.0, np.inf
    for _ in range(count):
        v = np.linalg.solve(K, problem.b + J.T @ (y_hat + (z_hat - phi) / rho))
        u = J @ v + phi
        s = shift(z_hat)
        p = y_hat - (relaxation * u + (1 - relaxation) * z_hat + s) / rho
        y_new = law(p)
        z_new = rho * (y_new - p) - s
        combined = ((z_new - z_hat) ** 2).sum() / rho + rho * ((y_new - y_hat) ** 2).sum()
        part = 0.0
        if accelerate and combined < 0.999 * before:
            grown = (1 + np.sqrt(1 + 4 * a * a)) / 2
            part, a, before = (a - 1) / grown, grown, combined
        else:
            a, before = 1.0, before / 0.999
        y_hat, z_hat, y, z = y_new + part * (y_new - y), z_new + part * (z_new - z), y_new, z_new
    return y.reshape(-1, 3)


@pytest.mark.parametrize("accelerate", [False, True])
@pytest.mark.parametrize("relaxation", [1.0, 1.6])
@pytest.mark.parametrize("operator", ["strict", "lagged", "proximal"])
def test_iterations_against_a_plain_twin(operator: str, relaxation: float, accelerate: bool) -> None:
    problem = nodes_on_floor(np.random.default_rng(5), 5, 4, friction=0.4)
    rho = 3.0 * compliance(problem)
    options: dict[str, Any] = {
        "operator": operator, "relaxation": relaxation, "accelerate": accelerate, "scaling": "none", "penalty": rho, "policy":
        "fixed",
    }  # fmt: skip
    for count in (1, 2, 12):
        solver = make_solver("admm", tolerance=1e-15, max_iterations=count, **options)
        solution = solver.solve(problem)
        twins = [plain(problem, rho, operator, relaxation, accelerate, k) for k in range(1, count + 1)]
        best = solution.details["returned_iteration"]
        np.testing.assert_allclose(solution.lam, twins[best - 1], atol=1e-11)


def test_ccs_is_the_same_iteration_with_the_inverse_penalty() -> None:
    problem = nodes_on_floor(np.random.default_rng(6), 5, 4, friction=0.4)
    for relaxation in (1.0, 1.6):
        one = make_solver("ccs", tolerance=1e-14, max_iterations=20, penalty=2.0, adaptive=False, relaxation=relaxation)
        two = make_solver(
            "admm", tolerance=1e-14, max_iterations=20, penalty=0.5, policy="fixed", relaxation=relaxation, accelerate=False,
            linear="primal",
        )  # fmt: skip
        first, second = one.solve(problem), two.solve(problem)
        np.testing.assert_allclose(first.lam, second.lam, atol=1e-11)
        np.testing.assert_allclose(first.history.contact, second.history.contact, rtol=1e-6, atol=1e-13)
        np.testing.assert_allclose(first.history.dynamics, second.history.dynamics, rtol=1e-6, atol=1e-13)


def test_sizes_against_their_formulas() -> None:
    rng = np.random.default_rng(8)
    x, z, y, z_new, y_new = rng.standard_normal((5, 9))
    penalty, weight = rng.uniform(0.5, 2.0, 3), rng.uniform(0.5, 2.0, 3)
    R, w = np.repeat(penalty, 3), np.repeat(weight, 3)
    expected = [
        np.linalg.norm(w * (x - y_new)),
        np.linalg.norm((y_new - y) / R / w),
        max(np.linalg.norm(w * x), np.linalg.norm(w * y_new)),
        np.linalg.norm(z_new / w),
        (R * (z_new - z) ** 2).sum() + ((y_new - y) ** 2 / R).sum(),
    ]
    np.testing.assert_allclose(split_sizes(x, penalty, weight, z, y, z_new, y_new), expected, rtol=1e-13)


# ---------------------------------------------------------------------- policies


def sizes(primal: float, dual: float, **more: float) -> Sizes:
    return Sizes(**({"primal": primal, "dual": dual, "force": 1.0, "velocity": 1.0, "dynamics": 1.0, "contact": 1.0} | more))


def test_policies_by_hand() -> None:
    assert make_rule("fixed", 5).factor(5, sizes(100.0, 1.0)) == 1.0
    balanced = make_rule("balanced", 5)
    assert balanced.factor(4, sizes(100.0, 1.0)) == 1.0  # not yet
    assert balanced.factor(5, sizes(100.0, 1.0)) == 10.0
    assert balanced.factor(9, sizes(100.0, 1.0)) == 1.0
    assert balanced.factor(10, sizes(1.0, 100.0)) == 0.1
    assert balanced.factor(15, sizes(3.9, 1.0)) == 1.0  # in the dead band
    assert balanced.factor(20, sizes(1e9, 1.0)) == 50.0  # clamped
    assert balanced.factor(25, sizes(0.0, 0.0)) == 1.0
    assert balanced.factor(200, sizes(100.0, 1.0)) == 10.0
    assert balanced.factor(219, sizes(100.0, 1.0)) == 1.0  # rarer: a tenth of the iterations
    assert balanced.factor(220, sizes(100.0, 1.0)) == 10.0
    zeros = make_rule("balanced", 1)  # a residual of zero: the clamp, four times in all
    assert [zeros.factor(k, sizes(0.0, 1.0)) for k in range(1, 7)] == [0.02] * 4 + [1.0] * 2
    assert zeros.factor(7, sizes(1.0, 0.0)) == 50.0
    assert make_rule("normalized", 1).factor(1, sizes(1.0, 1.0, force=1.0, velocity=100.0)) == 10.0
    assert make_rule("residual", 1).factor(1, sizes(1.0, 1.0, dynamics=100.0)) == 10.0
    linear = make_rule("linear", 1)
    assert [linear.factor(1, s) for s in (sizes(11.0, 1.0), sizes(9.0, 1.0), sizes(1.0, 11.0))] == [1.5, 1.0, 1.0 / 1.5]
    assert make_rule("spectral", 1, 1e6).factor(1, sizes(11.0, 1.0)) == pytest.approx(1e6**0.05)
    doubling = make_rule("doubling", 1)
    found = [doubling.factor(k, sizes(1.0, 1.0, dynamics=1.0, contact=100.0)) for k in range(1, 121)]
    assert [k for k, factor in enumerate(found, 1) if factor != 1.0] == [50, 100] and found[49] == pytest.approx(1 / 4.0)


def test_a_column_in_which_every_contact_presses_is_solved_in_few_iterations() -> None:
    """papers/003 test 1.A: the primal residual is zero from the first iteration, and less than 20 iterations are enough."""
    problem = sphere_stack()
    weights = [9.81 * mass for mass in [1000.0] + [10.0] * 9 + [10000.0] + [10.0] * 10]
    for name, every, most in (("admm", 5, 20), ("p-admm", 5, 20), ("p-admm", 1, 8), ("p-admm", 10, 40)):
        solution = make_solver(name, tolerance=1e-6, max_iterations=most, every=every).solve(problem)
        assert solution.converged, (name, every, solution.message)
        carried = np.cumsum(weights[::-1])[::-1]
        np.testing.assert_allclose(solution.lam[:, 0], carried, rtol=1e-3)


def test_the_largest_eigenvalue() -> None:
    rng = np.random.default_rng(2)
    G = rng.standard_normal((9, 3))
    W, weight = G @ G.T + 0.1 * np.eye(9), rng.uniform(1.0, 1.2, 9)
    scaled = W / weight / weight[:, None]
    assert largest_eigenvalue(W, weight, 200) == pytest.approx(np.linalg.eigvalsh(scaled)[-1], rel=1e-9)


# ---------------------------------------------------------------------- presets and what they say


@pytest.mark.parametrize("name", ["admm", *PRESETS])
def test_what_a_preset_calls_converged_holds_our_law(name: str) -> None:
    rng = np.random.default_rng(5)
    converged = 0
    for _ in range(12):
        local = random_local(rng, 4)
        solver: Any = make_solver(name, tolerance=1e-7, max_iterations=20000)
        solution = solver.solve_local(local)
        assert not solution.converged or measure_local(local, solution.lam).contact_residual <= 1e-7, solution.message
        problem = body_between_nodes(rng, 6, 5)
        other = make_solver(name, tolerance=1e-7, max_iterations=20000).solve(problem)
        found = measure(problem, other.v, other.lam)
        assert not other.converged or max(found.contact_residual, found.dynamics_residual) <= 1.001e-7
        converged += solution.converged + other.converged
    assert converged >= (0 if name == "admm-ccp" else 22)


def test_the_relaxed_law_is_met_and_said_and_not_called_converged() -> None:
    W = np.array([[1.0, 0.3, 0.0], [0.3, 1.0, 0.0], [0.0, 0.0, 1.0]])
    problem = make_local_problem(W, np.array([[-1.0, 0.8, 0.3]]), 0.4)
    solver: Any = make_solver("admm-ccp", tolerance=1e-8, max_iterations=5000)
    solution = solver.solve_local(problem)
    assert solution.status == "stopped at the limit" and solution.iterations < 500
    assert "Ended where its own law holds" in solution.message and "relaxation" in solution.message
    u = problem.contact_velocity(solution.lam)
    assert natural_map(u, solution.lam, problem.scales, problem.friction, relaxed=True) < 1e-8
    assert measure_local(problem, solution.lam).contact_residual > 1e-3


@pytest.mark.parametrize("name", ["admm", "ccs"])
def test_a_warm_start_at_the_answer_needs_few_iterations(name: str) -> None:
    problem = body_between_nodes(np.random.default_rng(4), 8, 7)
    cold = make_solver(name, tolerance=1e-10, max_iterations=20000).solve(problem)
    warm = make_solver(name, tolerance=1e-8).solve(problem, WarmStart(cold.v, cold.lam))
    assert warm.converged and warm.iterations <= 3 < cold.iterations


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"operator": "loose"}, "operator of solver 'admm' is 'loose'; allowed are 'strict' and 'lagged' and 'proximal'"),
        ({"penalty": 0.0}, "penalty of solver 'admm' is 0.0; allowed are positive numbers and 'spectral'"),
        ({"penalty": "large"}, "penalty"),
        ({"policy": "any"}, "policy"),
        ({"every": 0}, "every"),
        ({"scaling": "all"}, "scaling"),
        ({"relaxation": 2.0}, "relaxation"),
        ({"linear": "iterative"}, "linear of solver 'admm' is 'iterative'; allowed are 'auto', 'dual', 'primal', 'saddle'"),
        ({"policy": "spectral", "linear": "primal"}, "linear of solver 'admm' is 'primal'; allowed are 'auto', 'dual'"),
    ],
)
def test_options_out_of_range_are_named(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ContactError, match=words):
        make_solver("admm", **options)


def test_no_contact() -> None:
    problem = make_problem(2.0 * np.eye(3), np.ones(3), np.zeros((0, 3)), np.zeros((0, 3)), 0.4, dt=0.01)
    for linear in FORMS:
        solution = make_solver("admm", linear=linear).solve(problem)
        assert solution.converged, solution.message
        np.testing.assert_allclose(solution.v, 0.5)
    local: Any = make_solver("admm")
    assert local.solve_local(make_local_problem(np.zeros((0, 0)), np.zeros((0, 3)), 0.3)).converged


@pytest.mark.parametrize(
    ("name", "options"),
    [("admm", {"linear": "dual"}), ("admm", {"linear": "primal"}), ("admm", {"linear": "saddle"}), ("p-admm", {}), ("canal", {})],
)
def test_without_contacts_a_few_iterations_say_all(name: str, options: dict[str, str]) -> None:
    """A free chain of springs of 1e10 times its masses: rounding leaves more than the tolerance, for good."""
    n = 60
    b = np.random.default_rng(3).standard_normal(n)
    for stiffness, status in ((1.0, "converged"), (1e10, "stopped at rounding")):
        ends = np.where(np.isin(np.arange(n), (0, n - 1)), 1.0, 2.0)
        springs = stiffness * sp.diags([ends, -np.ones(n - 1), -np.ones(n - 1)], [0, 1, -1])
        problem = make_problem(sp.identity(n) + springs, b, sp.csr_matrix((0, n)), np.zeros((0, 3)), np.zeros(0), dt=0.01)
        found = make_solver(name, tolerance=1e-10, **options).solve(problem)
        assert found.status == status and found.iterations <= (3 if name == "canal" else 1)
        assert status == "converged" or "The digits of v leave" in found.message

"""Properties that hold for every problem and every solver: exact answers are exact, solvers agree, order and units are free."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings, strategies as st
from registry import LIMITED
from slow_twins import random_frame, random_spd

from contact import SOLVERS, ContactProblem, Group, Solution, make_problem, make_solver, measure

TIGHT = {"tolerance": 1e-9, "max_iterations": 50000}

#: Solvers of any problem; "banded" takes rods alone and says so.
GENERAL = sorted(set(SOLVERS) - {"banded"} - LIMITED)

#: Solvers with a choice between the law and its relaxation.
BOTH_LAWS = [n for n in GENERAL if "operator" in SOLVERS[n].options.__dataclass_fields__ and not SOLVERS[n].preset_of]

few = settings(max_examples=12, deadline=None, derandomize=True)
many = settings(max_examples=60, deadline=None, derandomize=True)


@dataclass(frozen=True)
class Case:
    """What a problem is drawn from."""

    seed: int
    nodes: int
    contacts: int
    body: bool
    stiffness: float
    friction: float


def cases(largest_friction: float = 1.5, contacts: int = 5) -> st.SearchStrategy[Case]:
    return st.builds(
        Case,
        seed=st.integers(0, 10**6),
        nodes=st.integers(contacts, contacts + 3),
        contacts=st.integers(1, contacts),
        body=st.booleans(),
        stiffness=st.sampled_from([0.1, 3.0, 30.0]),
        friction=st.one_of(st.just(0.0), st.floats(0.01, largest_friction)),
    )


def build(case: Case, rng: np.random.Generator) -> ContactProblem:
    """Nodes with A = M / dt + K on obstacles in random frames, or against a rigid body of six coordinates."""
    n, dt = 3 * case.nodes, 0.01
    mass = np.repeat(rng.uniform(0.5, 2.0, case.nodes), 3) * dt
    A = np.diag(mass / dt) + case.stiffness * random_spd(rng, n, 10.0)
    groups = [Group("soft", 0, n, "nodes")]
    J = np.zeros((3 * case.contacts, n + 6 * case.body))
    if case.body:
        A = sp.block_diag([A, 2.0 * random_spd(rng, 6, 4.0)])
        groups.append(Group("rigid", n, n + 6, "generalized"))
    for m in range(case.contacts):
        frame, r = random_frame(rng), 0.5 * rng.standard_normal(3)
        J[3 * m : 3 * m + 3, 3 * m : 3 * m + 3] = frame
        if case.body:
            cross = np.array([[0, -r[2], r[1]], [r[2], 0, -r[0]], [-r[1], r[0], 0]])
            J[3 * m : 3 * m + 3, n:] = -frame @ np.hstack([np.eye(3), -cross])
    b = rng.standard_normal(J.shape[1])
    phi = rng.standard_normal((case.contacts, 3)) * [0.3, 0.1, 0.1] - [0.3, 0.0, 0.0]
    return make_problem(A, b, J, phi, case.friction, dt=dt, groups=groups)


def drawn(case: Case) -> ContactProblem:
    return build(case, np.random.default_rng(case.seed))


def solve(problem: ContactProblem, name: str, **options: object) -> Solution:
    solution = make_solver(name, **(TIGHT | options)).solve(problem)
    assert solution.converged, f"{name}: {solution.message}"
    found = measure(problem, solution.v, solution.lam)
    assert max(found.dynamics_residual, found.contact_residual) <= 1.001 * TIGHT["tolerance"], f"{name}: {found}"
    return solution


# ---------------------------------------------------------------------- exact answers


@many
@given(case=cases(), kinds=st.lists(st.sampled_from(["open", "touch", "stick", "edge", "slip"]), min_size=5, max_size=5))
def test_metrics_vanish_at_constructed_solutions_and_not_beside_them(case: Case, kinds: list[str]) -> None:
    """Choose complementary forces and velocities first, then b and phi to make them the answer."""
    rng = np.random.default_rng(case.seed)
    problem = build(case, rng)
    nc, mu = case.contacts, case.friction
    u, lam = np.zeros((nc, 3)), np.zeros((nc, 3))
    for m, kind in zip(range(nc), kinds, strict=False):
        way = rng.standard_normal(2)
        way /= np.linalg.norm(way)
        if kind == "open":
            u[m] = [rng.uniform(0.1, 1.0), *rng.standard_normal(2)]
        elif kind == "touch":
            u[m, 1:] = rng.standard_normal(2)
        else:
            pressed = rng.uniform(0.5, 3.0)
            lam[m] = [pressed, *({"stick": 0.6, "edge": 1.0, "slip": 1.0}[kind] * mu * pressed * way)]
            u[m, 1:] = -0.7 * way if kind == "slip" else 0.0
    v = rng.standard_normal(problem.n)
    phi = u - (problem.J @ v).reshape(-1, 3)
    exact = make_problem(problem.A, problem.A @ v - problem.J.T @ lam.ravel(), problem.J, phi, mu, dt=0.01, groups=problem.groups)
    found = measure(exact, v, lam).as_dict()
    assert max(abs(value) for value in found.values()) < 1e-10, found
    if any(k not in ("open", "touch") for k in kinds[:nc]):
        assert measure(exact, v, 1.01 * lam).dynamics_residual > 1e-6
        assert measure(exact, v, -lam).contact_residual > 1e-4 and measure(exact, v, -lam).cone_violation >= 0.5
        off = u.copy()
        off[lam[:, 0] > 0, 0] += 0.1  # forces at a distance
        apart = make_problem(exact.A, exact.b, exact.J, phi + off - u, mu, dt=0.01, groups=problem.groups)
        assert measure(apart, v, lam).contact_residual > 1e-4


# ---------------------------------------------------------------------- solvers against each other


@pytest.mark.parametrize("name", GENERAL)
@few
@given(case=cases(largest_friction=0.3, contacts=3))
def test_solvers_agree_where_the_solution_is_unique(name: str, case: Case) -> None:
    problem = drawn(case)
    reference = solve(problem, "exact", tolerance=1e-11)
    solution = solve(problem, name)
    np.testing.assert_allclose(solution.v, reference.v, rtol=0, atol=1e-5 * np.abs(reference.v).max())


@pytest.mark.parametrize(
    "name", [n for n in GENERAL if "operator" in SOLVERS[n].options.__dataclass_fields__ and not SOLVERS[n].preset_of]
)
@few
@given(case=cases())
def test_without_friction_both_laws_have_one_answer(name: str, case: Case) -> None:
    problem = drawn(Case(case.seed, case.nodes, case.contacts, case.body, case.stiffness, 0.0))
    strict, proximal = (solve(problem, name, operator=law) for law in ("strict", "proximal"))
    scale = np.abs(strict.v).max()
    np.testing.assert_allclose(proximal.v, strict.v, rtol=0, atol=1e-6 * scale)
    assert not strict.lam[:, 1:].any() and not proximal.lam[:, 1:].any()


@pytest.mark.parametrize("name", sorted(LIMITED))
@few
@given(case=cases(contacts=3))
def test_presets_of_other_laws_have_our_answer_without_friction(name: str, case: Case) -> None:
    problem = drawn(Case(case.seed, case.nodes, case.contacts, case.body, case.stiffness, 0.0))
    reference = solve(problem, "exact", tolerance=1e-11)
    solution = make_solver(name, tolerance=1e-7, max_iterations=20000).solve(problem)
    early = getattr(SOLVERS[name].options(), "stop", "law") == "plateau"
    assert solution.converged or early
    np.testing.assert_allclose(solution.v, reference.v, rtol=0, atol=(1e-2 if early else 1e-4) * np.abs(reference.v).max())


@pytest.mark.parametrize("name", sorted(set(SOLVERS) - {"banded"}))
@few
@given(case=cases())
def test_converged_means_that_the_residuals_are_below_the_tolerance(name: str, case: Case) -> None:
    """With any preset, also where it solves another law, and with few iterations."""
    problem = drawn(case)
    for limit in (3, 300):
        solution = make_solver(name, tolerance=1e-6, max_iterations=limit).solve(problem)
        found = measure(problem, solution.v, solution.lam)
        held = max(found.dynamics_residual, found.contact_residual) <= 1e-6 * (1.0 + 1e-9)
        assert held or not solution.converged


# ---------------------------------------------------------------------- order and units


def unique_cases() -> st.SearchStrategy[Case]:
    return cases(largest_friction=0.3)


@pytest.mark.parametrize("name", ["cond", "exact"])
@few
@given(case=unique_cases(), order=st.permutations(range(5)))
def test_the_order_of_contacts_does_not_matter(name: str, case: Case, order: list[int]) -> None:
    problem = drawn(case)
    order = [m for m in order if m < case.contacts]
    rows = (3 * np.array(order)[:, None] + np.arange(3)).ravel()
    turned = make_problem(
        problem.A, problem.b, problem.J[rows], problem.phi[order], problem.friction[order], dt=0.01, groups=problem.groups
    )
    one, two = solve(problem, name), solve(turned, name)
    np.testing.assert_allclose(two.v, one.v, rtol=0, atol=1e-6 * np.abs(one.v).max())
    np.testing.assert_allclose(two.lam, one.lam[order], rtol=0, atol=1e-6 * max(np.abs(one.lam).max(), 1e-3))


@pytest.mark.parametrize("name", ["cond", "exact"])
@few
@given(case=unique_cases(), force=st.sampled_from([1e-6, 1e-3, 1e3, 1e6]), length=st.sampled_from([1e-6, 1e-3, 1e3]))
def test_units_of_force_and_length_do_not_matter(name: str, case: Case, force: float, length: float) -> None:
    """v in other lengths, forces in other units: A, b and phi scale, and so does the answer. Angles have no length."""
    problem = drawn(case)
    unit = np.full(problem.n, length)
    if case.body:
        unit[-3:] = 1.0
    S = sp.diags(1.0 / unit)
    power = force * length  # of b^T v and v^T A v
    scaled = make_problem(
        power * (S @ problem.A @ S), power * problem.b / unit, length * (problem.J @ S), length * problem.phi, problem.friction,
        dt=0.01, groups=problem.groups,
    )  # fmt: skip
    one, two = solve(problem, name), solve(scaled, name)
    np.testing.assert_allclose(two.v / unit, one.v, rtol=0, atol=1e-6 * np.abs(one.v).max())
    np.testing.assert_allclose(two.lam / force, one.lam, rtol=0, atol=1e-6 * max(np.abs(one.lam).max(), 1e-3))

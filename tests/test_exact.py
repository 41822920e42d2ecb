"""The exact solver: by hand, against slow twins and COND, with lagged factors, screened contacts, odd contacts and odd units."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from slow_twins import body_between_nodes, nodes_on_floor, random_spd, solve_contact
from small_blocks import soft_block
from small_matrices import BACKENDS, needs_pardiso
from small_scene import STEPS, cube_scene

import femsim as fs
from contact import (
    ContactError,
    ContactProblem,
    Group,
    Solution,
    WarmStart,
    make_local_problem,
    make_problem,
    measure,
    measure_local,
)
from contact.metrics import contact_velocity
from contact.problem import isotropic, to_isotropic
from contact.solvers import Exact, ExactOptions
from contact.solvers.dense import DenseResult
from femsim.step.stepper import Stepper

UP = np.array([[0.0, 0, 1], [1, 0, 0], [0, 1, 0]])  # normal, tangents


def with_parts(problem: ContactProblem, **changes: object) -> ContactProblem:
    arrays = {"A": problem.A, "b": problem.b, "J": problem.J, "phi": problem.phi, "friction": problem.friction} | changes
    return make_problem(**arrays, dt=problem.dt, groups=problem.groups)  # type: ignore[arg-type]


def assert_solved(problem: ContactProblem, solution: Solution, tolerance: float = 1e-8) -> None:
    found = measure(problem, solution.v, solution.lam)
    assert solution.converged, solution.message
    assert found.dynamics_residual <= tolerance and found.contact_residual <= tolerance and found.balance <= 5 * tolerance, found
    scale = np.linalg.norm(solution.lam) + 1e-300
    assert found.cone_violation <= 2 * tolerance * scale


# ---------------------------------------------------------------------- by hand and against slow twins


@pytest.mark.parametrize(
    ("push", "phi", "expected_lam", "expected_v"),
    [
        # A = 2 I, b = (push, 0, -3): pressed by 3 N, mu 0.4 holds up to 1.2 N
        (1.0, 0.0, (3.0, -1.0, 0.0), (0.0, 0.0, 0.0)),
        (2.0, 0.0, (3.0, -1.2, 0.0), (0.4, 0.0, 0.0)),
        (2.0, 0.5, (2.0, -0.8, 0.0), (0.6, 0.0, -0.5)),  # a gap of 0.5 m/s is closed first
        (2.0, 1.6, (0.0, 0.0, 0.0), (1.0, 0.0, -1.5)),
    ],
)
@pytest.mark.parametrize("backend", BACKENDS)
def test_one_node_by_hand(backend: str, push: float, phi: float, expected_lam: tuple, expected_v: tuple) -> None:
    problem = make_problem(2.0 * sp.eye(3), np.array([push, 0, -3.0]), UP, np.array([phi]), 0.4, dt=0.01)
    solution = Exact(ExactOptions(backend=backend)).solve(problem)  # type: ignore[arg-type]
    assert_solved(problem, solution)
    np.testing.assert_allclose(solution.lam[0], expected_lam, atol=1e-8)
    np.testing.assert_allclose(solution.v, expected_v, atol=1e-8)
    assert solution.details["linear_algebra"] == backend


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("friction", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("make", [nodes_on_floor, body_between_nodes])
def test_random_problems_agree_with_the_slow_twin(seed: int, friction: float, make: object) -> None:
    problem = make(np.random.default_rng(seed), 6, 5, friction=friction)  # type: ignore[operator]
    solution = Exact(ExactOptions(tolerance=1e-10)).solve(problem)
    assert_solved(problem, solution, 1e-10)
    v, lam = solve_contact(problem)
    np.testing.assert_allclose(solution.v, v, atol=1e-8)
    np.testing.assert_allclose(solution.lam, lam, atol=1e-7)


def test_superlu_gives_the_same_answer() -> None:
    problem = body_between_nodes(np.random.default_rng(4), 8, 6, inertia=4.0)
    one, two = (Exact(ExactOptions(backend=b, tolerance=1e-11)).solve(problem) for b in ("auto", "superlu"))
    assert two.details["linear_algebra"] == "superlu"
    assert_solved(problem, two)
    np.testing.assert_allclose(one.v, two.v, atol=1e-9)
    np.testing.assert_allclose(one.lam, two.lam, atol=1e-8)


def test_no_contact_is_the_free_velocity() -> None:
    problem = nodes_on_floor(np.random.default_rng(0), 5, 0)
    solution = Exact().solve(problem)
    assert solution.converged and solution.lam.shape == (0, 3)
    np.testing.assert_allclose(solution.v, np.linalg.solve(problem.A.toarray(), problem.b), atol=1e-12)


@pytest.mark.parametrize("young", [1e5, 1e7, 1e9])
@pytest.mark.parametrize("friction", [0.0, 0.4, 1.0])
def test_a_falling_block_of_any_stiffness(young: float, friction: float) -> None:
    """Nearly rigid on 16 points: diag(A) says nothing of W any more (1 : 1000), so the search must not be scaled by it."""
    problem = soft_block(young, 3, friction)
    solution = Exact().solve(problem)
    assert_solved(problem, solution)
    assert solution.details["sweeps"] < 1000 and (solution.lam[:, 0] > 0).sum() >= 3


# ---------------------------------------------------------------------- screening


def test_a_contact_that_approaches_only_because_of_another_is_added_and_solved() -> None:
    """A lever on a pivot node: pressed up at one end by its contact, the other end comes down on its own."""
    # two nodes coupled by a stiff link that makes their sum of heights rest: up on one side is down on the other
    link = 100.0 * np.outer([0, 0, 1, 0, 0, 1.0], [0, 0, 1, 0, 0, 1.0])
    J = np.zeros((6, 6))
    J[:3, :3], J[3:, 3:] = UP, UP
    problem = make_problem(np.eye(6) + link, np.zeros(6), J, np.array([-1.0, 0.5]), 0.3, dt=0.01)
    free = contact_velocity(problem, np.linalg.solve(problem.A.toarray(), problem.b))
    assert free[0, 0] < 0 < free[1, 0]
    solution = Exact(ExactOptions(tolerance=1e-10)).solve(problem)
    assert_solved(problem, solution, 1e-10)
    assert solution.details["condensed_contacts"] == 2 and (solution.lam[:, 0] > 1.0).all()
    far = with_parts(problem, phi=np.array([-1.0, 1.5]))
    solution = Exact().solve(far)
    assert_solved(far, solution)
    assert solution.details["condensed_contacts"] == 1 and not solution.lam[1].any()


def test_forces_of_a_warm_start_that_open_do_not_stay() -> None:
    problem = nodes_on_floor(np.random.default_rng(2), 6, 5)
    solution = Exact(ExactOptions(tolerance=1e-11)).solve(problem)
    wrong = Exact(ExactOptions(tolerance=1e-11)).solve(problem, WarmStart(100.0 * np.ones(problem.n), np.full((5, 3), 7.0)))
    np.testing.assert_allclose(wrong.v, solution.v, atol=1e-9)
    again = Exact(ExactOptions(tolerance=1e-10)).solve(problem, WarmStart(solution.v, solution.lam))
    assert again.converged and again.iterations == 1 and again.details["sweeps"] == 0


# ---------------------------------------------------------------------- an older factorization


def drifting(steps: int, change: float) -> list[ContactProblem]:
    """Problems whose A changes a little from one to the next, each built on its own."""
    rng = np.random.default_rng(11)
    problem, out = body_between_nodes(rng, 10, 7, inertia=2.0), []
    turn = sp.block_diag([random_spd(rng, 30, 10.0), np.zeros((6, 6))])
    for k in range(steps):
        out.append(with_parts(problem, A=problem.A + change * k * turn, b=problem.b * (1 + 0.05 * k)))
    return out


def run_sequence(problems: list[ContactProblem], solver: Exact) -> list[Solution]:
    out: list[Solution] = []
    for problem in problems:
        start = WarmStart(out[-1].v, out[-1].lam) if out else None
        out.append(solver.solve(problem, start))
        assert_solved(problem, out[-1])
    return out


def test_one_factorization_serves_a_slow_sequence_and_each_answer_is_exact() -> None:
    """Exact means by the yardstick and by a solver without memory."""
    problems = drifting(12, 0.001)
    found = run_sequence(problems, Exact())
    assert [s.details["factorizations"] for s in found] == [1] + [0] * 11
    for problem, solution in zip(problems, found, strict=True):
        fresh = Exact(ExactOptions(tolerance=1e-11)).solve(problem)
        np.testing.assert_allclose(solution.v, fresh.v, atol=1e-6 * np.abs(fresh.v).max())
    assert max(s.iterations for s in found) > 2  # an older A costs iterations


def test_one_iteration_is_enough_where_little_changed() -> None:
    """The contact problem is solved to a part of what the start lacks: a good start makes the first iteration the last.

    Solved to a part of 1 it kept the old forces, and the next iteration looked as if old factors did not serve any more.
    """
    solver, first = Exact(), drifting(1, 0.0)[0]
    start = solver.solve(first)
    for change in (1e-4, 1e-5, 1e-6):
        near = with_parts(first, b=first.b * np.random.default_rng(5).uniform(1.0 - change, 1.0 + change, first.n))
        solution = solver.solve(near, WarmStart(start.v, start.lam))
        assert_solved(near, solution)
        assert solution.iterations == 1 and not solution.details["factorizations"]
        assert np.abs(solution.lam - start.lam).max() > 0.01 * change * np.abs(start.lam).max()


def test_without_lag_each_problem_is_factorized() -> None:
    found = run_sequence(drifting(4, 0.001), Exact(ExactOptions(lag=False)))
    assert [s.details["factorizations"] for s in found] == [1] * 4


def test_a_sudden_change_of_a_makes_new_factors() -> None:
    problems = drifting(3, 0.0)
    problems[1:] = [with_parts(p, A=(300.0 if k == 0 else 0.01) * p.A) for k, p in enumerate(problems[1:])]
    found = run_sequence(problems, Exact())
    assert [s.details["factorizations"] for s in found] == [1, 1, 1]


def test_other_sizes_follow_each_other_in_one_solver() -> None:
    solver = Exact()
    for seed, nodes, contacts in ((0, 6, 4), (1, 9, 2), (2, 6, 0), (3, 6, 6), (4, 6, 4)):
        problem = nodes_on_floor(np.random.default_rng(seed), nodes, contacts)
        assert_solved(problem, solver.solve(problem))


def test_an_indefinite_matrix_is_refused_and_the_next_problem_is_not() -> None:
    problem = nodes_on_floor(np.random.default_rng(0), 4, 3)
    bad = problem.A.toarray()
    bad[0, 3] = bad[3, 0] = 1e3
    solver = Exact()
    with pytest.raises(ContactError, match="A is not positive definite"):
        solver.solve(with_parts(problem, A=sp.csc_matrix(bad)))
    assert_solved(problem, solver.solve(problem))


def test_the_factors_keep_the_rows_of_contacts_that_press_and_of_those_that_close_soonest() -> None:
    """A hundred rows of contacts in all; at the same gap the faster one, and one that moves away only where there is room."""
    rng = np.random.default_rng(7)
    nodes, contacts = 400, 200
    gaps, speeds = rng.uniform(0.5, 5.0, contacts), rng.uniform(-0.4, 0.4, contacts)
    gaps[:30], speeds[:30] = 0.1, 1.0  # these press
    J = sp.kron(sp.eye(contacts, nodes), UP).tocsr()
    v = np.zeros((nodes, 3))
    v[:contacts, 2] = -speeds
    problem = make_problem(sp.eye(3 * nodes).tocsc(), v.ravel(), J, gaps, 0.3, dt=0.01)
    solver = Exact()
    assert_solved(problem, solver.solve(problem, WarmStart(v.ravel(), np.zeros((contacts, 3)))))
    steps = np.where(speeds > 0, gaps / speeds, np.inf)
    soonest = np.argsort(steps)[:100]
    assert np.isfinite(steps[soonest]).all() and np.isinf(steps).any()
    assert set(soonest) != set(np.argsort(gaps - speeds)[:100])
    np.testing.assert_array_equal(np.unique(solver.memory()["patch"] // 3), np.sort(soonest))
    few = with_parts(problem, J=J[:270], phi=problem.phi[:90], friction=problem.friction[:90])  # there is room for all
    solver = Exact()
    solver.solve(few, WarmStart(v.ravel(), np.zeros((90, 3))))
    np.testing.assert_array_equal(np.unique(solver.memory()["patch"] // 3), np.arange(90))


def pairs(stiff: float, soft: float, n: int = 3000) -> ContactProblem:
    """Pairs of rows that one spring holds together and another apart; contacts push on one of each of some pairs."""
    block = np.array([[stiff + soft, stiff], [stiff, stiff + soft]])
    A = sp.kron(block, sp.eye(n // 2), format="csc")
    J = sp.kron(sp.eye(40, n // 3), UP).tocsr()
    b = np.random.default_rng(2).standard_normal(n)
    return make_problem(A, b, J, np.full(40, -0.1), 0.3, dt=0.01)


@needs_pardiso
@pytest.mark.parametrize(
    ("stiff", "soft", "single"),
    [
        (10.0, 1.0, True),
        (1e8, 1.0, False),  # singular in single precision
        (1e17, 1e16, False),  # too near the end of its range
        (1e-16, 1e-17, False),
        (3e5, 0.01, False),  # off by a third: even motions are
        (2.0**22, 0.3, False),  # the soft spring is rounded to 0.5, which motions that are alike do not show
    ],
)
def test_factors_of_large_problems_are_of_single_precision_where_that_serves(stiff: float, soft: float, single: bool) -> None:
    problem, solver = pairs(stiff, soft), Exact()
    solution = solver.solve(problem)
    assert_solved(problem, solution)
    assert solver.memory()["double"] != single
    twin = Exact(ExactOptions(backend="superlu")).solve(problem)
    np.testing.assert_allclose(solution.v, twin.v, rtol=1e-7, atol=3e-8 * np.abs(twin.v).max())
    again = solver.solve(problem)  # what was found out is not forgotten with the factors
    assert again.details["factorizations"] == 0
    other = Exact()
    other.recall(solver.memory())
    np.testing.assert_array_equal(solver.solve(problem).v, other.solve(problem).v)


@needs_pardiso
def test_a_matrix_that_is_not_positive_definite_speaks_not_against_single_precision() -> None:
    problem, solver = pairs(10.0, 1.0), Exact()
    with pytest.raises(ContactError, match="not positive definite"):
        solver.solve(with_parts(problem, A=problem.A - 5.0 * sp.eye(problem.n)))
    assert_solved(problem, solver.solve(problem))
    assert not solver.memory()["double"]


# ---------------------------------------------------------------------- odd contacts, odd units


@pytest.mark.parametrize("make", [nodes_on_floor, body_between_nodes])
@pytest.mark.parametrize("times", [2, 5])
def test_duplicated_contacts_share_the_force(make: object, times: int) -> None:
    for seed in range(4):
        problem = make(np.random.default_rng(seed), 6, 5)  # type: ignore[operator]
        several = with_parts(
            problem,
            J=sp.vstack([problem.J] * times),
            phi=np.tile(problem.phi, (times, 1)),
            friction=np.tile(problem.friction, times),
        )
        one, more = Exact(ExactOptions(tolerance=1e-10)).solve(problem), Exact(ExactOptions(tolerance=1e-10)).solve(several)
        assert_solved(several, more, 1e-10)
        np.testing.assert_allclose(more.v, one.v, atol=1e-7)
        np.testing.assert_allclose(more.lam.reshape(times, 5, 3).sum(axis=0), one.lam, atol=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_redundant_contacts_of_one_body(seed: int) -> None:
    """Twelve points around a rigid body of six coordinates: forces are not unique, the law holds all the same."""
    rng = np.random.default_rng(seed)
    J = np.zeros((36, 6))
    for m in range(12):
        x, y = rng.uniform(-1, 1, 2)
        z = -0.3
        J[3 * m : 3 * m + 3] = UP @ np.hstack([np.eye(3), -np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])])
    b = np.array([2.0, 1.0, -10.0, 0.5, -0.5, 1.0])
    groups = (Group("body", 0, 6, "generalized"),)
    problem = make_problem(random_spd(rng, 6, 5.0), b, J, np.zeros(12), 0.3, dt=0.01, groups=groups)
    assert_solved(problem, Exact().solve(problem))


def test_a_contact_that_nothing_can_move_is_solved_only_where_it_opens() -> None:
    """A huge force there must not hide that it approaches."""
    J = np.zeros((6, 3))
    J[:3] = UP
    for normal, possible in ((0.1, True), (-0.1, False)):
        problem = make_problem(2.0 * sp.eye(3), np.array([1.0, 0, -3.0]), J, np.array([0.0, 0.1]), 0.4, dt=0.01)
        problem.phi[1, 0] = normal  # make_problem refuses one that approaches
        solution = Exact(ExactOptions(max_sweeps=200, max_iterations=5)).solve(problem, WarmStart(np.zeros(3), np.ones((2, 3))))
        assert solution.converged == possible
        np.testing.assert_allclose(solution.lam, [[3.0, -1.0, 0.0], [0.0, 0.0, 0.0]], atol=1e-8)


@pytest.mark.parametrize(("force", "length"), [(1e-6, 1.0), (1.0, 1e-3), (1e6, 1e3), (1e-9, 1e6)])
def test_units_do_not_matter(force: float, length: float) -> None:
    """Micro-newton and kilometre: the same numbers in other units."""
    problem = body_between_nodes(np.random.default_rng(6), 8, 6, inertia=3.0)
    scaled = with_parts(problem, A=problem.A * (force / length), b=problem.b * force, phi=problem.phi * length)
    one, two = Exact().solve(problem), Exact().solve(scaled)
    assert_solved(scaled, two)
    assert two.iterations == one.iterations
    np.testing.assert_allclose(two.v / length, one.v, atol=1e-10)
    np.testing.assert_allclose(two.lam / force, one.lam, atol=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_anisotropic_friction_dissipates_most(seed: int) -> None:
    """No force of the ellipse at the normal force found dissipates more; and it is the answer of the isotropic form."""
    rng = np.random.default_rng(seed)
    problem = nodes_on_floor(rng, 6, 5)
    problem = with_parts(problem, friction=rng.uniform(0.1, 1.0, (5, 2)), b=5.0 * problem.b)
    solution = Exact(ExactOptions(tolerance=1e-11)).solve(problem)
    assert_solved(problem, solution, 1e-10)
    u, mu = contact_velocity(problem, solution.v), problem.friction
    slipping = 0
    for m in range(5):
        got = -u[m, 1:] @ solution.lam[m, 1:]
        most = solution.lam[m, 0] * np.linalg.norm(mu[m] * u[m, 1:])
        assert got == pytest.approx(most, rel=1e-7, abs=1e-8)
        slipping += most > 1e-3
    assert slipping > 0
    round_one = Exact(ExactOptions(tolerance=1e-11)).solve(isotropic(problem))
    np.testing.assert_allclose(solution.v, round_one.v, atol=1e-9)
    np.testing.assert_allclose(to_isotropic(problem, solution.lam), round_one.lam, atol=1e-8)


# ---------------------------------------------------------------------- the local form, limits, scenes


@pytest.mark.parametrize("skew", [0.0, 0.05])
@pytest.mark.parametrize("rank", [None, 7])
def test_local_problems_also_with_an_operator_that_is_singular_or_not_symmetric(skew: float, rank: int | None) -> None:
    for seed in range(5):
        rng = np.random.default_rng(seed)
        G = rng.standard_normal((18, rank or 18))
        W, q = G @ G.T, G @ rng.standard_normal(rank or 18)
        if rank is None:
            W = W + skew * rng.standard_normal((18, 18))
        problem = make_local_problem(W, q, rng.uniform(0.1, 1.0, 6))
        solution = Exact().solve_local(problem)
        assert solution.converged and solution.v.shape == (0,)
        assert measure_local(problem, solution.lam).contact_residual <= 1e-8
        assert Exact().solve_local(problem, WarmStart(np.zeros(0), solution.lam)).details["sweeps"] <= solution.details["sweeps"]


def test_a_local_and_a_global_problem_have_the_same_answer() -> None:
    problem = body_between_nodes(np.random.default_rng(3), 6, 5, inertia=3.0)
    J, inverse = problem.J.toarray(), np.linalg.inv(problem.A.toarray())
    local = make_local_problem(J @ inverse @ J.T, (J @ inverse @ problem.b).reshape(-1, 3) + problem.phi, problem.friction)
    one = Exact(ExactOptions(tolerance=1e-11)).solve_local(local)
    np.testing.assert_allclose(one.lam, Exact(ExactOptions(tolerance=1e-11)).solve(problem).lam, atol=1e-8)


def test_running_out_of_iterations_is_a_status_with_a_sentence() -> None:
    problems = drifting(2, 0.01)
    solver = Exact(ExactOptions(max_iterations=1))
    solver.solve(problems[0])
    solution = solver.solve(problems[1])
    assert solution.status == "stopped at the limit" and not solution.converged
    assert solution.message.startswith("Stopped at the limit of 1 iterations (dynamics residual")
    assert solution.iterations == 1 == len(solution.history.dynamics)
    found = measure(problems[1], solution.v, solution.lam)
    assert max(found.dynamics_residual, found.contact_residual) > 1e-8
    np.testing.assert_allclose(solution.history.dynamics[-1], found.dynamics_residual, rtol=1e-6)


def test_where_rounding_allows_no_better_it_stops() -> None:
    """A cube of steel of 200 GPa at rest: its forces are differences of terms a million times larger."""
    scene = fs.Scene("steel", dt=0.01, theta=1.0)
    scene.add_floor()
    steel = fs.Elastic(2e11, 0.3, 7800.0, name="steel")
    scene.add_soft("cube", fs.box_tets((0.02, 0.02, 0.02), 2), steel, position=(0, 0, 0.01))
    stepper = Stepper(scene, Exact())
    sweeps, ended = [], []
    for _ in range(6):
        solution = stepper.step().solution
        sweeps.append(solution.details["sweeps"])
        ended.append((solution.converged, solution.iterations, solution.message))
    assert max(sweeps) < 1000, sweeps
    stopped = [(iterations, message) for converged, iterations, message in ended if not converged]
    assert stopped and all(iterations < 40 for iterations, _ in stopped)
    assert any(" iterations, the last of which came no nearer: try another solver or a" in message for _, message in stopped)


def test_not_finite_is_a_reported_failure() -> None:
    problem = nodes_on_floor(np.random.default_rng(0), 6, 4)
    problem.b[0] = np.nan
    solution = Exact().solve(problem)
    assert solution.status == "failed" and "not finite" in solution.message


@pytest.mark.parametrize(
    ("options", "word"),
    [({"tolerance": 0.0}, "tolerance"), ({"max_iterations": 0}, "max_iterations"), ({"max_sweeps": 0}, "max_sweeps"),
     ({"backend": "mkl"}, "'mkl'"), ({"threads": 0}, "threads")],
)  # fmt: skip
def test_wrong_options_are_named(options: dict, word: str) -> None:
    with pytest.raises(ContactError, match=word):
        ExactOptions(**options)


@pytest.mark.parametrize(("sweeps", "iterations"), [(20000, 5), (19999, 14)])
def test_a_contact_problem_that_takes_all_sweeps_is_asked_three_times_more(
    monkeypatch: pytest.MonkeyPatch, sweeps: int, iterations: int
) -> None:
    monkeypatch.setattr("contact.solvers.exact.DenseSolver.solve", lambda *_: DenseResult(sweeps, 0, 1.0))
    solution = Exact().solve(soft_block(1e6, 3))
    assert solution.status == "stopped at the limit" and solution.iterations == iterations
    stalled = f"Stopped after {iterations} iterations, the last of which came no nearer: try another solver or a larger tolerance"
    assert solution.message.startswith(stalled) and "ounding" not in solution.message, solution.message


def test_no_refinement_follows_where_sweeps_are_used_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("contact.solvers.exact.DenseSolver.solve", lambda *_: DenseResult(10, 0, 1.0))
    solver = Exact()
    solver.all_sweeps = 25
    assert solver.solve(soft_block(1e6, 3)).iterations == 3


def test_the_same_input_gives_the_same_bits() -> None:
    problems = drifting(3, 0.001)
    one, two = (run_sequence(problems, Exact()) for _ in range(2))
    assert all(a.v.tobytes() == b.v.tobytes() and a.lam.tobytes() == b.lam.tobytes() for a, b in zip(one, two, strict=True))


def test_a_small_scene_is_that_of_cond() -> None:
    """Every step converges, and positions and forces are those of COND at a tight tolerance."""
    exact = fs.simulate(cube_scene(), solver="exact", tolerance=1e-10)
    cond = fs.simulate(cube_scene(), solver="cond", tolerance=1e-10, max_iterations=100000)
    assert exact.status == cond.status == "converged" and len(exact.steps["step"]) == STEPS
    assert max(exact.steps["dynamics_residual"]) <= 1e-10 and max(exact.steps["contact_residual"]) <= 1e-10
    np.testing.assert_allclose(exact.markers["corner"].position, cond.markers["corner"].position, rtol=0, atol=1e-10)
    force = cond.sensors["floor"].force
    assert np.abs(force).max() > 0.05
    np.testing.assert_allclose(exact.sensors["floor"].force, force, rtol=0, atol=1e-6 * np.abs(force).max())

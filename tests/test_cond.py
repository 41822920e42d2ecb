"""COND against hand-solvable problems and the slow twin: nodes, bodies, nodes in several contacts, fixed kv."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.integrate import solve_ivp
from slow_twins import body_between_nodes, nodes_on_floor, random_frame, random_spd, solve_contact

from contact import Cond, CondOptions, ContactError, ContactProblem, Group, WarmStart, make_problem, make_solver, measure
from contact.problem import from_isotropic, isotropic, to_isotropic
from contact.solvers import SOLVERS
from contact.solvers.invertible import inverse_contact

TIGHT = CondOptions(tolerance=1e-9, max_iterations=20000)


def test_no_contact_gives_the_free_velocity() -> None:
    rng = np.random.default_rng(0)
    problem = nodes_on_floor(rng, 5, 0)
    solution = Cond(TIGHT).solve(problem)
    assert solution.converged
    np.testing.assert_allclose(solution.v, np.linalg.solve(problem.A.toarray(), problem.b), atol=1e-8)
    assert solution.lam.shape == (0, 3)


@pytest.mark.parametrize(
    ("push", "expected_lam", "expected_v"),
    [
        # A = 2 I, b = (push, 0, -3): pressed by 3 N, mu 0.4 holds up to 1.2 N
        (1.0, (3.0, -1.0, 0.0), (0.0, 0.0, 0.0)),
        (1.2, (3.0, -1.2, 0.0), (0.0, 0.0, 0.0)),
        (2.0, (3.0, -1.2, 0.0), (0.4, 0.0, 0.0)),
    ],
)
def test_one_node_sticks_and_slips_by_hand(push: float, expected_lam: tuple, expected_v: tuple) -> None:
    frame = np.array([[0.0, 0, 1], [1, 0, 0], [0, 1, 0]])
    problem = make_problem(2.0 * sp.eye(3), np.array([push, 0, -3.0]), frame, np.zeros(1), 0.4, dt=0.01)
    solution = Cond(TIGHT).solve(problem)
    np.testing.assert_allclose(solution.lam[0], expected_lam, atol=1e-8)
    np.testing.assert_allclose(solution.v, expected_v, atol=1e-8)


def test_an_open_contact_has_no_force() -> None:
    frame = np.array([[0.0, 0, 1], [1, 0, 0], [0, 1, 0]])
    problem = make_problem(2.0 * sp.eye(3), np.array([0, 0, -3.0]), frame, np.array([1.6]), 0.4, dt=0.01)
    solution = Cond(TIGHT).solve(problem)
    assert np.all(solution.lam == 0.0)
    np.testing.assert_allclose(solution.v, [0, 0, -1.5], atol=1e-8)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("friction", [0.0, 0.3, 1.0])
def test_nodes_agree_with_the_slow_twin(seed: int, friction: float) -> None:
    problem = nodes_on_floor(np.random.default_rng(seed), 6, 5, friction=friction)
    v, lam = solve_contact(problem)
    solution = Cond(TIGHT).solve(problem)
    assert solution.converged, solution.message
    np.testing.assert_allclose(solution.v, v, atol=1e-7)
    np.testing.assert_allclose(solution.lam, lam, atol=1e-7)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("inertia", [1.0, 30.0])
def test_bodies_with_virtual_nodes_agree_with_the_slow_twin(seed: int, inertia: float) -> None:
    problem = body_between_nodes(np.random.default_rng(seed), 6, 5, inertia=inertia)
    v, lam = solve_contact(problem)
    solution = Cond(TIGHT).solve(problem)
    assert solution.converged, solution.message
    assert solution.details["virtual_nodes"] == 5
    np.testing.assert_allclose(solution.v, v, atol=1e-6)
    np.testing.assert_allclose(solution.lam, lam, atol=1e-6)


def test_a_fixed_gain_leaves_the_error_lam_over_kv() -> None:
    """Prop. 2: the virtual node creeps at |lam|/kv; the multipliers remove that."""
    problem = body_between_nodes(np.random.default_rng(1), 6, 5, inertia=30.0)
    errors = []
    for gain in (1e2, 1e3, 1e4):
        options = CondOptions(tolerance=1e-10, max_iterations=100000, gain=gain, exact_gain=False)
        solution = Cond(options).solve(problem)
        assert solution.converged, solution.message
        largest = np.linalg.norm(solution.lam, axis=1).max()
        np.testing.assert_allclose(solution.details["virtual_slip"], largest / gain, rtol=1e-4)
        errors.append(measure(problem, solution.v, solution.lam).contact_residual)
    slopes = np.diff(np.log(errors)) / np.log(10.0)
    np.testing.assert_allclose(slopes, -1.0, atol=0.1)
    exact = Cond(CondOptions(tolerance=1e-10, max_iterations=100000, gain=1e2)).solve(problem)
    assert measure(problem, exact.v, exact.lam).contact_residual < 1e-9


@pytest.mark.parametrize("angle", [60.0, 90.0, 120.0])
@pytest.mark.parametrize("friction", [0.0, 0.3, 0.8])
def test_a_node_in_a_v_groove(angle: float, friction: float) -> None:
    """A node pressed into a groove of two planes is in two contacts at once; lam is kept per contact (method: pitfall 1)."""
    half = np.deg2rad(angle / 2)
    frames = []
    for side in (-1.0, 1.0):
        n = np.array([-side * np.cos(half), 0.0, np.sin(half)])
        frames.append([n, np.cross([0.0, 1.0, 0.0], n), [0.0, 1.0, 0.0]])
    rng = np.random.default_rng(3)
    A = random_spd(rng, 9, 20.0)
    b = np.concatenate([[1.0, 0.8, -5.0], rng.standard_normal(6)])
    J = np.zeros((6, 9))
    J[:3, :3], J[3:, :3] = frames
    problem = make_problem(A, b, sp.csr_matrix(J), np.zeros(2), friction, dt=0.01)
    solution = Cond(TIGHT).solve(problem)
    assert solution.converged and solution.details["coupled_contacts"] == 2
    found = measure(problem, solution.v, solution.lam)
    assert found.contact_residual < 1e-8 and found.dynamics_residual < 1e-8
    v, _ = solve_contact(problem)
    np.testing.assert_allclose(solution.v, v, atol=1e-6)  # velocities are unique, forces in a groove need not be


def test_frictionless_groove_by_hand() -> None:
    """A 90 degree groove carries a weight W by W/(2 sin 45) on each side."""
    s = np.sqrt(0.5)
    J = np.array([[s, 0, s], [s, 0, -s], [0, 1, 0], [-s, 0, s], [s, 0, s], [0, 1, 0]])
    problem = make_problem(sp.eye(3), np.array([0, 0, -2.0]), J, np.zeros(2), 0.0, dt=0.01)
    solution = Cond(TIGHT).solve(problem)
    np.testing.assert_allclose(solution.lam[:, 0], 2.0 / (2.0 * s), atol=1e-8)
    np.testing.assert_allclose(solution.v, 0.0, atol=1e-8)


def test_a_chain_of_nodes_between_a_floor_and_a_weight() -> None:
    """Three stacked nodes: contacts share nodes; each carries the weight above it."""
    up = np.array([[0.0, 0, 1], [1, 0, 0], [0, 1, 0]])
    J = np.zeros((9, 9))
    J[:3, :3] = up
    J[3:6, 3:6], J[3:6, :3] = up, -up
    J[6:, 6:], J[6:, 3:6] = up, -up
    problem = make_problem(sp.eye(9), np.tile([0, 0, -1.0], 3), J, np.zeros(3), 0.5, dt=0.01)
    solution = Cond(TIGHT).solve(problem)
    assert solution.converged
    np.testing.assert_allclose(solution.lam[:, 0], [3.0, 2.0, 1.0], atol=1e-7)


def test_two_nodes_of_two_soft_bodies_need_no_virtual_node() -> None:
    rng = np.random.default_rng(5)
    A = sp.block_diag([random_spd(rng, 6), random_spd(rng, 6)])
    frame = random_frame(rng)
    J = np.zeros((3, 12))
    J[:, :3], J[:, 9:] = frame, -frame
    groups = (Group("a", 0, 6, "nodes"), Group("b", 6, 12, "nodes"))
    problem = make_problem(A, 3.0 * rng.standard_normal(12), J, np.zeros(1), 0.4, dt=0.01, groups=groups)
    solution = Cond(TIGHT).solve(problem)
    v, lam = solve_contact(problem)
    assert solution.details["virtual_nodes"] == 0
    np.testing.assert_allclose(solution.v, v, atol=1e-7)
    np.testing.assert_allclose(solution.lam, lam, atol=1e-7)


def test_the_answer_does_not_depend_on_the_order_of_contacts_or_on_the_unit_of_rotation() -> None:
    problem = body_between_nodes(np.random.default_rng(8), 6, 5, inertia=10.0)
    reference = Cond(TIGHT).solve(problem)
    order = np.array([3, 0, 4, 1, 2])
    rows = (3 * order[:, None] + np.arange(3)).ravel()
    shuffled = make_problem(
        problem.A,
        problem.b,
        problem.J[rows],
        problem.phi[order],
        problem.friction[order],
        dt=problem.dt,
        groups=problem.groups,
    )
    np.testing.assert_allclose(Cond(TIGHT).solve(shuffled).v, reference.v, atol=1e-7)
    scale = np.ones(problem.n)
    scale[-3:] = 1e-3  # v_rot in units 1000 times larger
    S = sp.diags(1 / scale)
    scaled = make_problem(
        S @ problem.A @ S,
        S @ problem.b,
        problem.J @ S,
        problem.phi,
        problem.friction,
        dt=problem.dt,
        groups=problem.groups,
    )
    solution = Cond(TIGHT).solve(scaled)
    np.testing.assert_allclose(solution.v / scale, reference.v, atol=1e-7)
    # the iterates are the same; only the plain norm of the dynamics, which knows units, may stop them a little later
    same = min(solution.iterations, reference.iterations) // 2
    np.testing.assert_allclose(solution.history.dynamics[:same], reference.history.dynamics[:same], rtol=1e-3)
    assert abs(solution.iterations - reference.iterations) <= 5


@pytest.mark.parametrize("lead", [6, 7, 8])
def test_nodes_may_follow_a_body_whose_rows_are_no_multiple_of_three(lead: int) -> None:
    """A gripper of 7 or 8 coordinates before a soft body: its nodes must still be block rows of their own."""
    rng = np.random.default_rng(0)
    n = lead + 18
    J = np.zeros((12, n))
    for m in range(4):
        frame = random_frame(rng)
        J[3 * m : 3 * m + 3, lead + 3 * m : lead + 3 * m + 3], J[3 * m : 3 * m + 3, :3] = frame, -frame
    problem = make_problem(
        sp.block_diag([random_spd(rng, lead, 5.0), random_spd(rng, 18)]), rng.standard_normal(n), J, -0.3 * np.ones(4), 0.4,
        dt=0.01, groups=(Group("body", 0, lead, "generalized"), Group("soft", lead, n, "nodes")),
    )  # fmt: skip
    solution = Cond(TIGHT).solve(problem)
    v, lam = solve_contact(problem)
    assert solution.converged
    np.testing.assert_allclose(solution.v, v, atol=1e-6)
    np.testing.assert_allclose(solution.lam, lam, atol=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_a_point_inside_an_element_is_a_virtual_node_of_its_nodes(seed: int) -> None:
    """The steps of nodes that carry virtual nodes must know kv J_v^T J_v, or W A leaves the stable range."""
    rng = np.random.default_rng(seed)
    J = np.zeros((6, 18))
    for m in range(2):
        frame = random_frame(rng)
        for a, share in enumerate((0.2, 0.3, 0.5)):
            J[3 * m : 3 * m + 3, 9 * m + 3 * a : 9 * m + 3 * a + 3] = share * frame
    problem = make_problem(random_spd(rng, 18), rng.standard_normal(18), J, -0.3 * np.ones(2), 0.4, dt=0.01)
    solution = Cond(TIGHT).solve(problem)
    v, lam = solve_contact(problem)
    assert solution.converged and solution.details["virtual_nodes"] == 2
    np.testing.assert_allclose(solution.v, v, atol=1e-6)
    np.testing.assert_allclose(solution.lam, lam, atol=1e-6)


def test_residuals_reported_are_those_of_the_yardstick() -> None:
    problem = body_between_nodes(np.random.default_rng(2), 6, 5)
    solution = Cond(CondOptions(tolerance=1e-6, max_iterations=20000)).solve(problem)
    found = measure(problem, solution.v, solution.lam)
    np.testing.assert_allclose(solution.history.dynamics[-1], found.dynamics_residual, rtol=1e-6)
    np.testing.assert_allclose(solution.history.contact[-1], found.contact_residual, rtol=1e-5, atol=1e-12)
    assert found.dynamics_residual <= 1e-6 and found.contact_residual <= 1e-6 and found.balance <= 1e-5


def test_stopping_at_the_limit_is_a_status_with_a_sentence() -> None:
    solution = Cond(CondOptions(tolerance=1e-12, max_iterations=3)).solve(nodes_on_floor(np.random.default_rng(0), 6, 4))
    assert solution.status == "stopped at the limit" and "3 iterations" in solution.message
    assert len(solution.history.dynamics) == 3


def test_chebyshev_saves_iterations_and_keeps_the_answer() -> None:
    problem = nodes_on_floor(np.random.default_rng(4), 20, 10, condition=500.0)
    plain = Cond(CondOptions(tolerance=1e-8, max_iterations=100000, chebyshev=False)).solve(problem)
    fast = Cond(CondOptions(tolerance=1e-8, max_iterations=100000)).solve(problem)
    assert plain.converged and fast.converged
    assert fast.iterations < 0.5 * plain.iterations
    np.testing.assert_allclose(fast.v, plain.v, atol=1e-5)


def test_the_proximal_operator_solves_the_convex_relaxation() -> None:
    """A sliding node under the relaxed law (eq. 28) lifts off by mu times its slip."""
    frame = np.array([[0.0, 0, 1], [1, 0, 0], [0, 1, 0]])
    problem = make_problem(2.0 * sp.eye(3), np.array([4.0, 0, -3.0]), frame, np.zeros(1), 0.4, dt=0.01)
    solution = Cond(CondOptions(tolerance=1e-9, operator="proximal")).solve(problem)
    assert solution.converged
    np.testing.assert_allclose(solution.v[2], 0.4 * solution.v[0], atol=1e-8)
    assert solution.v[0] > 0.1


def test_the_same_input_gives_the_same_bits() -> None:
    problem = body_between_nodes(np.random.default_rng(7), 6, 5)
    one, two = Cond(TIGHT).solve(problem), Cond(TIGHT).solve(problem)
    assert one.v.tobytes() == two.v.tobytes() and one.lam.tobytes() == two.lam.tobytes()


def test_a_warm_start_at_the_answer_stops_at_once() -> None:
    problem = body_between_nodes(np.random.default_rng(7), 6, 5)
    answer = Cond(TIGHT).solve(problem)
    again = Cond(CondOptions(tolerance=1e-6)).solve(problem, WarmStart(answer.v, answer.lam))
    assert again.iterations == 1


def test_not_finite_is_a_reported_failure() -> None:
    problem = nodes_on_floor(np.random.default_rng(0), 6, 4)
    problem.b[0] = np.nan
    solution = Cond(TIGHT).solve(problem)
    assert solution.status == "failed" and "not finite" in solution.message


# ---------------------------------------------------------------------- anisotropic friction (papers/001 eq. 12, Prop. 6)


def pressed(kind: str, seed: int, *, anisotropic: bool = False) -> ContactProblem:
    """Five contacts of nodes with an obstacle or a body, most of them closed; with random coefficients along the two tangents."""
    rng = np.random.default_rng(seed)
    problem = (nodes_on_floor if kind == "nodes" else body_between_nodes)(rng, 6, 5)
    friction = rng.uniform(0.1, 1.2, (5, 2)) if anisotropic else problem.friction
    phi = problem.phi - [0.5, 0.0, 0.0]
    return make_problem(problem.A, problem.b, problem.J, phi, friction, dt=problem.dt, groups=problem.groups)


@pytest.mark.parametrize("relaxed", [False, True])
@pytest.mark.parametrize("kind", ["nodes", "body"])
@pytest.mark.parametrize("seed", range(4))
def test_anisotropic_friction_agrees_with_the_slow_twin(seed: int, kind: str, relaxed: bool) -> None:
    problem = pressed(kind, seed, anisotropic=True)
    if relaxed:  # the substitution holds for this law too, and the twin is quick with one coefficient
        v, lam = solve_contact(isotropic(problem), relaxed=True)
        lam = from_isotropic(problem, lam)
    else:
        v, lam = solve_contact(problem, sweeps=3000)
    assert (lam[:, 0] > 0).sum() > 1
    options = CondOptions(tolerance=1e-9, max_iterations=20000, operator="proximal" if relaxed else "strict")
    solution = Cond(options).solve(problem)
    assert solution.converged, solution.message
    np.testing.assert_allclose(solution.v, v, atol=1e-6)
    np.testing.assert_allclose(solution.lam, lam, atol=1e-6)
    found = measure(problem, solution.v, solution.lam, relaxed=relaxed)
    assert found.contact_residual < 2e-9 and found.cone_violation < 1e-12
    np.testing.assert_allclose(solution.history.contact[-1], found.contact_residual, rtol=1e-4, atol=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_the_isotropic_problem_has_the_same_answer(seed: int) -> None:
    """The substitution is exact: solving it and mapping back is solving the problem; and it is judged by the same numbers."""
    problem = pressed("body", seed, anisotropic=True)
    same = isotropic(problem)
    v, lam = solve_contact(same)  # the twin with one coefficient
    solution = Cond(TIGHT).solve(problem)
    np.testing.assert_allclose(solution.v, v, atol=1e-6)
    np.testing.assert_allclose(solution.lam, from_isotropic(problem, lam), atol=1e-6)
    assert measure(problem, v, from_isotropic(problem, lam)).contact_residual < 1e-10
    rng = np.random.default_rng(seed)
    v, lam = rng.standard_normal(problem.n), rng.standard_normal((5, 3))
    one, two = measure(problem, v, lam).as_dict(), measure(same, v, to_isotropic(problem, lam)).as_dict()
    assert one == pytest.approx(two, rel=1e-12)


def test_a_sliding_node_obeys_maximum_dissipation() -> None:
    """Force -n M^2 u_t / |M u_t|: not opposite to the slip, but of all forces of the ellipse the one that dissipates most."""
    frame, mu = np.array([[0.0, 0, 1], [1, 0, 0], [0, 1, 0]]), np.array([0.8, 0.2])
    problem = make_problem(2.0 * sp.eye(3), np.array([4.0, 3.0, -3.0]), frame, np.zeros(1), mu[None], dt=0.01)
    solution = Cond(TIGHT).solve(problem)
    u = solution.v[:2]
    np.testing.assert_allclose(solution.lam[0, 1:], -3.0 * mu**2 * u / np.linalg.norm(mu * u), atol=1e-8)
    turned = np.arange(0.0, 2 * np.pi, 0.01)
    others = 3.0 * mu * np.column_stack([np.cos(turned), np.sin(turned)])
    assert -u @ solution.lam[0, 1:] >= (-others @ u).max() - 1e-7
    assert abs(u[0] * solution.lam[0, 2] - u[1] * solution.lam[0, 1]) > 0.1


def test_a_point_slides_along_the_curve_of_maximum_dissipation() -> None:
    """V-G: the path under (mu1, mu2) from the velocity (1, 1), against dv/dt = -g M^2 v / |M v| integrated by scipy."""
    frame, mu, dt, g = np.array([[0.0, 0, 1], [1, 0, 0], [0, 1, 0]]), np.array([0.4, 0.1]), 2e-4, 9.81
    v, path, solver, warm = np.array([1.0, 1.0, 0.0]), np.zeros(2), Cond(CondOptions(tolerance=1e-10)), None
    for _ in range(1000):
        problem = make_problem(sp.eye(3) / dt, v / dt - [0, 0, g], frame, np.zeros(1), mu[None], dt=dt)
        solution = solver.solve(problem, warm)
        v, warm = solution.v, WarmStart(solution.v, solution.lam)
        path += dt * v[:2]
    rate = lambda t, y: np.concatenate([y[2:], -g * mu**2 * y[2:] / np.linalg.norm(mu * y[2:])])  # noqa: E731
    exact = solve_ivp(rate, (0.0, 1000 * dt), [0.0, 0.0, 1.0, 1.0], rtol=1e-10, atol=1e-12).y[:, -1]
    np.testing.assert_allclose(np.concatenate([path, v[:2]]), exact, atol=1e-3 * np.linalg.norm(exact[:2]))
    assert exact[1] > 1.2 * exact[0]  # the path is bent


def test_columns_that_are_equal_change_no_bit() -> None:
    problem = body_between_nodes(np.random.default_rng(7), 6, 5)
    doubled = make_problem(
        problem.A, problem.b, problem.J, problem.phi, np.column_stack([problem.friction] * 2), dt=0.01, groups=problem.groups
    )
    one, two = Cond(TIGHT).solve(problem), Cond(TIGHT).solve(doubled)
    assert one.v.tobytes() == two.v.tobytes() and one.lam.tobytes() == two.lam.tobytes()


# ---------------------------------------------------------------------- Barzilai-Borwein steps (IV-C2)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", ["nodes", "body"])
def test_barzilai_borwein_steps_keep_the_answer(seed: int, kind: str) -> None:
    problem = pressed(kind, seed)
    v, lam = solve_contact(problem)
    solution = Cond(CondOptions(tolerance=1e-9, max_iterations=20000, step="barzilai-borwein")).solve(problem)
    assert solution.converged, solution.message
    np.testing.assert_allclose(solution.v, v, atol=1e-6)
    np.testing.assert_allclose(solution.lam, lam, atol=1e-6)


def test_barzilai_borwein_steps_save_iterations() -> None:
    problem = nodes_on_floor(np.random.default_rng(4), 20, 10, condition=500.0)
    plain = Cond(CondOptions(tolerance=1e-8, max_iterations=100000, chebyshev=False)).solve(problem)
    adaptive = Cond(CondOptions(tolerance=1e-8, step="barzilai-borwein")).solve(problem)
    assert plain.converged and adaptive.converged
    assert adaptive.iterations < 0.25 * plain.iterations
    np.testing.assert_allclose(adaptive.v, plain.v, atol=1e-5)


def test_barzilai_borwein_steps_stand_rows_of_very_different_size() -> None:
    """Jacobi-scaled: nodes a thousand times heavier than others cost nothing; Frobenius steps do not end in 5000 iterations."""
    problem = nodes_on_floor(np.random.default_rng(4), 20, 10, condition=500.0)
    S = sp.diags(np.repeat(10.0 ** np.random.default_rng(0).uniform(-1.5, 1.5, 20), 3))
    bad = make_problem(S @ problem.A @ S, S @ problem.b, problem.J, problem.phi, problem.friction, dt=0.01)
    solution = Cond(CondOptions(tolerance=1e-8, step="barzilai-borwein")).solve(bad)
    assert solution.converged and solution.iterations < 1000
    assert not Cond(CondOptions(tolerance=1e-8)).solve(bad).converged


# ---------------------------------------------------------------------- invertible contact (III-E1)


@pytest.mark.parametrize("operator", ["proximal", "strict"])
@pytest.mark.parametrize("kind", ["nodes", "body"])
@pytest.mark.parametrize("seed", range(3))
def test_regularised_contact_and_its_inverse(seed: int, kind: str, operator: str) -> None:
    """The forward answer is that of the Delassus operator + Omega, and the inverse finds its forces from v alone."""
    problem, omega = pressed(kind, seed, anisotropic=seed == 2 and operator == "strict"), 0.05
    v, lam = solve_contact(problem, regularization=omega, relaxed=operator == "proximal", sweeps=3000)
    options = CondOptions(tolerance=1e-10, max_iterations=20000, operator=operator, regularization=omega)
    solution = Cond(options).solve(problem)
    assert solution.converged and "regularised by 0.05" in solution.message, solution.message
    np.testing.assert_allclose(solution.v, v, atol=1e-7)
    np.testing.assert_allclose(solution.lam, lam, atol=1e-7)
    back = inverse_contact(problem, solution.v, omega, operator=operator)
    np.testing.assert_allclose(back, solution.lam, atol=1e-7)
    law = {"regularization": omega, "relaxed": operator == "proximal"}
    assert measure(problem, solution.v, solution.lam, **law).contact_residual < 2e-10
    assert measure(problem, solution.v, solution.lam).contact_residual > 1e-3  # the exact law is another one
    np.testing.assert_allclose(
        solution.history.contact[-1], measure(problem, solution.v, solution.lam, **law).contact_residual, rtol=1e-3, atol=1e-14
    )


def test_a_regularised_node_by_hand() -> None:
    """A = 2 I, weight 3 N: lam (1/2 + Omega) = 3/2 and the node sinks at Omega lam."""
    frame = np.array([[0.0, 0, 1], [1, 0, 0], [0, 1, 0]])
    problem = make_problem(2.0 * sp.eye(3), np.array([0, 0, -3.0]), frame, np.zeros(1), 0.4, dt=0.01)
    solution = Cond(CondOptions(tolerance=1e-10, regularization=0.25)).solve(problem)
    np.testing.assert_allclose(solution.lam[0], [2.0, 0.0, 0.0], atol=1e-9)
    np.testing.assert_allclose(solution.v, [0.0, 0.0, -0.5], atol=1e-9)
    np.testing.assert_allclose(inverse_contact(problem, np.array([0.1, 0.0, -0.5]), 0.25), [[2.0, -0.4, 0.0]], atol=1e-15)
    assert np.all(inverse_contact(problem, np.array([0.1, 0.0, 0.5]), 0.25) == 0.0)


@pytest.mark.parametrize(
    ("changes", "word"),
    [({"v": np.zeros(2)}, "3 finite velocities"), ({"v": np.full(3, np.nan)}, "finite"), ({"regularization": 0.0}, "positive"),
     ({"operator": "loose"}, "'loose'")],
)  # fmt: skip
def test_the_inverse_refuses_what_it_cannot_use(changes: dict, word: str) -> None:
    problem = make_problem(sp.eye(3), np.zeros(3), np.eye(3), np.zeros(1), 0.4, dt=0.01)
    given = {"v": np.zeros(3), "regularization": 0.1, "operator": "proximal"} | changes
    with pytest.raises(ContactError, match=word):
        inverse_contact(problem, given["v"], given["regularization"], operator=given["operator"])


# ---------------------------------------------------------------------- safeguards


def test_a_cycle_of_the_acceleration_falls_back_to_the_plain_iteration() -> None:
    """Strict operator, large friction: Chebyshev cycles for ever here, and the plain iteration converges."""
    problem = nodes_on_floor(np.random.default_rng(78), 4, 4, friction=5.0, condition=20.0)
    endless = Cond(CondOptions(tolerance=1e-8, patience=10**6)).solve(problem)
    assert not endless.converged
    solution = Cond(CondOptions(tolerance=1e-8, patience=100)).solve(problem)
    assert solution.converged, solution.message


def test_a_cycle_of_the_plain_iteration_ends_with_smaller_steps() -> None:
    problem = nodes_on_floor(np.random.default_rng(64), 4, 4, friction=5.0, condition=20.0)
    endless = Cond(CondOptions(tolerance=1e-8, patience=10**6, chebyshev=False)).solve(problem)
    assert not endless.converged
    solution = Cond(CondOptions(tolerance=1e-8, patience=100)).solve(problem)
    assert solution.converged, solution.message
    v, _ = solve_contact(problem)
    assert measure(problem, solution.v, solution.lam).contact_residual < 1e-8 and v.shape == solution.v.shape


@pytest.mark.parametrize("step", ["frobenius", "barzilai-borwein"])
def test_the_best_iterate_is_returned_when_none_converges(step: str) -> None:
    """By true residuals, recomputed outside; the last one is worse here."""
    problem, later = nodes_on_floor(np.random.default_rng(78), 4, 4, friction=5.0, condition=20.0), 0
    for limit in range(20, 40):
        solution = Cond(CondOptions(tolerance=1e-12, max_iterations=limit, step=step)).solve(problem)
        merit = np.maximum(solution.history.dynamics, solution.history.contact)
        found = measure(problem, solution.v, solution.lam)
        assert max(found.dynamics_residual, found.contact_residual) == pytest.approx(merit.min(), rel=1e-6)
        assert solution.details["returned_iteration"] == 1 + merit.argmin()
        if merit.argmin() < limit - 1:
            later += 1
            assert "returned is the best iterate" in solution.message
    assert later > 0


def test_without_friction_strict_and_proximal_are_the_same() -> None:
    problem = body_between_nodes(np.random.default_rng(3), 6, 5, friction=0.0)
    one, two = (Cond(CondOptions(tolerance=1e-9, operator=o)).solve(problem) for o in ("strict", "proximal"))
    assert one.converged and one.v.tobytes() == two.v.tobytes() and one.lam.tobytes() == two.lam.tobytes()


@pytest.mark.parametrize("kind", ["nodes", "body"])
def test_duplicated_contacts_share_the_force(kind: str) -> None:
    """Each contact twice: the velocity and the sum of the forces are those of the single ones."""
    make = nodes_on_floor if kind == "nodes" else body_between_nodes
    problem = make(np.random.default_rng(6), 6, 5)
    twice = make_problem(
        problem.A, problem.b, sp.vstack([problem.J] * 2), np.tile(problem.phi, (2, 1)), np.tile(problem.friction, 2),
        dt=0.01, groups=problem.groups,
    )  # fmt: skip
    one, two = Cond(TIGHT).solve(problem), Cond(TIGHT).solve(twice)
    assert one.converged and two.converged, two.message
    np.testing.assert_allclose(two.v, one.v, atol=1e-7)
    np.testing.assert_allclose(two.lam[:5] + two.lam[5:], one.lam, atol=1e-6)


def test_a_contact_that_nothing_can_move_has_no_force() -> None:
    """Whatever the warm start says; a problem of nothing but such contacts is the free motion."""
    problem = make_problem(2.0 * sp.eye(3), np.array([0, 0, -3.0]), np.zeros((3, 3)), np.array([0.1]), 0.4, dt=0.01)
    solution = Cond(TIGHT).solve(problem, WarmStart(np.zeros(3), np.ones((1, 3))))
    assert solution.converged and np.all(solution.lam == 0.0)
    np.testing.assert_allclose(solution.v, [0, 0, -1.5], atol=1e-8)


def test_the_answer_does_not_depend_on_the_units_of_force_and_time() -> None:
    problem = body_between_nodes(np.random.default_rng(9), 6, 5)
    reference = Cond(TIGHT).solve(problem)
    for force, speed in ((1e6, 1.0), (1e-6, 1e3), (1.0, 1e-6)):
        scaled = make_problem(
            force / speed * problem.A, force * problem.b, problem.J, speed * problem.phi, problem.friction,
            dt=0.01, groups=problem.groups,
        )  # fmt: skip
        solution = Cond(TIGHT).solve(scaled)
        np.testing.assert_allclose(solution.v / speed, reference.v, atol=1e-7)
        np.testing.assert_allclose(solution.lam / force, reference.lam, atol=1e-7)


@pytest.mark.parametrize(
    ("options", "word"),
    [({"tolerance": 0.0}, "tolerance"), ({"max_iterations": 0}, "max_iterations"), ({"relaxation": 1.5}, "relaxation"),
     ({"operator": "loose"}, "operator"), ({"gain": -1.0}, "gain"), ({"step": "long"}, "step"),
     ({"regularization": 0.0}, "regular"),
     ({"regularization": math.inf}, "regular"), ({"step": "barzilai-borwein", "chebyshev": True}, "chebyshev"),
     ({"speed": 3}, "speed")],
)  # fmt: skip
def test_wrong_options_are_named(options: dict, word: str) -> None:
    with pytest.raises(ContactError, match=word):
        make_solver("cond", **options)


def test_unknown_solver_lists_the_known_ones() -> None:
    with pytest.raises(ContactError, match="cond"):
        make_solver("conde")
    assert SOLVERS["cond"].description

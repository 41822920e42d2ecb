"""COND against hand-solvable problems and the slow twin: nodes, bodies, nodes in several contacts, fixed kv."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from slow_twins import body_between_nodes, nodes_on_floor, random_frame, random_spd, solve_contact

from contact import Cond, CondOptions, ContactError, Group, WarmStart, make_problem, make_solver, measure
from contact.solvers import SOLVERS

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
    assert abs(solution.iterations - reference.iterations) <= 2


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


@pytest.mark.parametrize(
    ("options", "word"),
    [({"tolerance": 0.0}, "tolerance"), ({"max_iterations": 0}, "max_iterations"), ({"relaxation": 1.5}, "relaxation"),
     ({"operator": "loose"}, "operator"), ({"gain": -1.0}, "gain"), ({"speed": 3}, "speed")],
)  # fmt: skip
def test_wrong_options_are_named(options: dict, word: str) -> None:
    with pytest.raises(ContactError, match=word):
        make_solver("cond", **options)


def test_unknown_solver_lists_the_known_ones() -> None:
    with pytest.raises(ContactError, match="cond"):
        make_solver("conde")
    assert SOLVERS["cond"].description

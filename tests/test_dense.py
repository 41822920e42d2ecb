"""The condensed contact problem u = W lam + q: each kernel against its slow twin, then the solver on known answers."""

from __future__ import annotations

import numpy as np
import pytest
from slow_twins import alart_curnier, dense_sweep, local_force, random_spd

from contact.metrics import natural_map as yardstick
from contact.problem import force_scales
from contact.solvers import dense as dense_module, dense_kernels as kernels
from contact.solvers.dense import DenseResult, DenseSolver, relative_residual
from contact.solvers.local_kernels import CONE, EXACT_RULE, Rule, sweep_contacts

UP = np.array([[0.0, 0, 1], [1, 0, 0], [0, 1, 0]])  # normal, tangents


def residual(W: np.ndarray, q: np.ndarray, lam: np.ndarray, friction: np.ndarray) -> float:
    """By ``contact.metrics``, with the scales of a local problem."""
    u = (W @ lam + q).reshape(-1, 3)
    return yardstick(u, lam.reshape(-1, 3), force_scales(W.diagonal().reshape(-1, 3)), friction)


def one_contact(block: np.ndarray, q: np.ndarray, mu: float) -> np.ndarray:
    padded = np.empty((1, 3, 3))
    kernels.diagonal_blocks(np.ascontiguousarray(block.T), padded)
    return np.array(kernels.solve_local(padded, 0, *q, mu))


def solver_of(W: np.ndarray, friction: np.ndarray) -> DenseSolver:
    return DenseSolver(np.ascontiguousarray(W.T), friction, force_scales(W.diagonal().reshape(-1, 3)))


def solved(
    W: np.ndarray,
    q: np.ndarray,
    friction: np.ndarray,
    start: np.ndarray | None = None,
    tolerance: float = 1e-12,
    sweeps: int = 20000,
) -> tuple[np.ndarray, DenseResult]:
    lam = np.zeros(len(q)) if start is None else start.copy()
    done = solver_of(W, friction).solve(q, lam, tolerance, sweeps)
    assert done.residual == pytest.approx(residual(W, q, lam, friction), rel=1e-6, abs=1e-15)
    return lam, done


# ---------------------------------------------------------------------- one contact


def block_of(rng: np.random.Generator, kind: str) -> np.ndarray:
    block = random_spd(rng, 3, 10.0 ** rng.uniform(0, 3)) * 10.0 ** rng.uniform(-6, 6)
    if kind == "skew":
        half = 0.2 * rng.standard_normal((3, 3)) * np.linalg.eigvalsh(block)[0]
        block = block + half - half.T
    if kind == "plane":
        block[2], block[:, 2] = 0.0, 0.0
    if kind == "nearly singular":
        block = random_spd(rng, 3, 1e8)
    return block


@pytest.mark.parametrize(("kind", "tolerance"), [("spd", 1e-12), ("skew", 1e-12), ("plane", 1e-12), ("nearly singular", 1e-8)])
def test_the_local_solve_meets_the_law(kind: str, tolerance: float) -> None:
    """1500 blocks of each kind over twelve decades of size; all three states of contact occur."""
    rng = np.random.default_rng(0)
    states = np.zeros(3, dtype=int)
    for _ in range(1500):
        block, mu = block_of(rng, kind), rng.choice([0.0, rng.uniform(0.0, 1.0), rng.uniform(1.0, 5.0)])
        q = rng.standard_normal(3) * 10.0 ** rng.uniform(-6, 6) - [0.5, 0.0, 0.0]
        if kind == "plane":
            q[2] = 0.0
        lam = one_contact(block, q, mu)
        assert residual(block, q, lam, np.array([mu])) <= tolerance, (block, q, mu)
        slip = np.linalg.norm((block @ lam + q)[1:])
        states[0 if lam[0] == 0 else 1 if slip <= 1e-6 * np.linalg.norm(q) else 2] += 1
    assert states.min() > 50


@pytest.mark.parametrize("ways", [1, 2])
def test_the_local_solve_of_a_link_with_few_ways_to_go_presses_no_more_than_need_be(ways: int) -> None:
    """Blocks of rank 1 and 2, q with a rounding of other contacts; where friction locks one way to go, by the least force."""
    rng, locked = np.random.default_rng(ways), 0
    for _ in range(500):
        R, mu = rng.standard_normal((3, ways)), rng.uniform(0.2, 3.0)
        rounding = 1e-16 * rng.standard_normal(3)
        q = R @ rng.standard_normal(ways) + rounding
        lam = one_contact(R @ R.T, q, mu)
        assert residual(R @ R.T, q, lam, np.array([mu])) <= 1e-9, (R, q, mu)
        if ways == 1 and q[0] < 0.0 and np.hypot(R[1, 0], R[2, 0]) > mu * abs(R[0, 0]):  # not the force along R
            locked += 1
            tangent = R[1:, 0] / np.linalg.norm(R[1:, 0])
            edge = np.array([1.0, *(mu * np.sign(R[0, 0]) * tangent)])
            least = abs(q[0] / R[0, 0]) / abs(edge @ R[:, 0]) * np.linalg.norm(edge)
            assert np.linalg.norm(lam) == pytest.approx(least, rel=1e-6)
    assert ways == 2 or locked > 50


def test_a_shifted_block_is_solved_by_elimination_whatever_its_order() -> None:
    """Skew blocks, with the largest entries of the diagonal in each place; blocks of rank 1 with a small shift, to rounding."""
    rng = np.random.default_rng(4)
    for _ in range(300):
        block, right = random_spd(rng, 3, 100.0) + 0.01 * rng.standard_normal((3, 3)), rng.standard_normal(3)
        s, shift = rng.uniform(0.1, 1.0, 2)
        found = kernels.solve_shifted(block[None], 0, s, *right, shift)
        np.testing.assert_allclose(found, np.linalg.solve(block + np.diag([shift, s, s]), right), rtol=1e-10, atol=1e-12)
        way = rng.standard_normal(3)
        found = np.array(kernels.solve_shifted(np.outer(way, way)[None], 0, 1e-8, *way, 1e-8))
        np.testing.assert_allclose((np.outer(way, way) + 1e-8 * np.eye(3)) @ found, way, rtol=0, atol=1e-14)


def test_blocks_are_singular_by_their_determinants() -> None:
    rng = np.random.default_rng(5)
    for _ in range(300):
        block = random_spd(rng, 3, 10.0 ** rng.uniform(0, 14)) + 1e-3 * rng.standard_normal((3, 3))
        block *= 10.0 ** rng.uniform(-3, 3)
        for one in (block, np.outer(block[0], block[0]), np.zeros((3, 3))):
            small = abs(np.linalg.det(one)) <= 1e-12 * np.abs(np.diag(one)).sum() ** 3
            assert kernels.is_singular(np.ascontiguousarray(one)[None], 0) == small


@pytest.mark.parametrize("beyond", [3e-9, 1e-8, 1e-3, 1.0])
def test_a_locked_contact_that_slides_where_no_force_stops_it_is_pressed_within_bounds(beyond: float) -> None:
    """A link with one way to go, so steep that friction locks it; its velocity is beyond that way by rounding, or far.

    Cofactors gave 1e8 to 1e17 times the force that stops the link, none or no number.
    """
    rng, usual = np.random.default_rng(4), []
    for _ in range(300):
        angle, speed, friction = rng.uniform(0.9, 1.4), 10.0 ** rng.uniform(-3, 1), rng.uniform(0.9, 3.0)
        way = np.array([np.cos(angle), np.sin(angle), 0.0])
        q = speed * (beyond * np.array([0.0, 1.0, rng.normal()]) - way)
        force = np.array(kernels.solve_local(0.05 * np.outer(way, way)[None], 0, *q.tolist(), friction))
        assert np.isfinite(force).all() and force[0] > 0.0
        usual.append(np.abs(force).max() * 0.05 / speed)
    assert max(usual) < 1e4 or beyond == 1.0


def test_what_nothing_presses_parts_though_friction_could_hold_it() -> None:
    """One way to go, so steep that a force in the cone holds it against what lifts it; the search starts from that."""
    way = np.array([0.5, 0.9, 0.0])
    lam, done = solved(np.outer(way, way), 0.1 * way, np.array([1.0]), np.array([1.0, -1.0, 0.0]) * 0.25)
    assert not lam.any() and done.residual == 0.0 and done.sweeps == 0
    held = solver_of(np.outer(way, way), np.array([1.0]))
    assert held.residual(0.1 * way, np.array([1.0, -1.0, 0.0]) * 0.25) < 1e-14  # it is an answer, too


def test_the_local_solve_agrees_with_halving() -> None:
    rng = np.random.default_rng(1)
    for _ in range(200):
        block, q, mu = random_spd(rng, 3, 30.0), rng.standard_normal(3) - [1.0, 0, 0], rng.uniform(0.0, 2.0)
        expected = local_force(block, q, mu)
        np.testing.assert_allclose(one_contact(block, q, mu), expected, rtol=0, atol=1e-10 * np.linalg.norm(q))


def test_borders_of_the_states_of_one_contact() -> None:
    """Unit block: the force for u = 0 is -q; a step of 1e-12 over each border."""
    for step in (-1e-12, 1e-12):
        held = one_contact(np.eye(3), np.array([-2.0, 1.0 + step, 0.0]), 0.5)
        np.testing.assert_allclose(held, [2.0, -min(1.0, 1.0 + step), 0.0], rtol=0, atol=1e-13)
        touching = one_contact(np.eye(3), np.array([step, 3.0, 0.0]), 0.5)
        np.testing.assert_allclose(touching, max(-step, 0.0) * np.array([1.0, -0.5, 0.0]), rtol=0, atol=1e-20)


def test_a_block_of_zeros_becomes_the_identity_and_an_empty_row_stays_harmless() -> None:
    W = np.zeros((6, 6))
    W[:3, :3] = [[2.0, 1, 0], [3, 4, 0], [0, 0, 0]]
    blocks = np.empty((2, 3, 3))
    kernels.diagonal_blocks(np.ascontiguousarray(W.T), blocks)
    assert np.array_equal(blocks[1], np.eye(3))
    np.testing.assert_allclose(blocks[0], W[:3, :3] + 6e-14 * np.eye(3), rtol=0, atol=1e-15)


# ---------------------------------------------------------------------- kernels on all contacts


def random_condensed(
    seed: int, k: int = 6, *, rank: int | None = None, skew: float = 0.0, press: float = 0.5
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    G = rng.standard_normal((3 * k, rank or 6 * k)) / np.sqrt(6 * k)
    q = (rng.standard_normal((k, 3)) - [press, 0.0, 0.0]).ravel() if rank is None else G @ rng.standard_normal(rank)
    return G @ G.T + skew * rng.standard_normal((3 * k, 3 * k)), q, rng.uniform(0.1, 1.0, k)


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("skew", [0.0, 0.02])
def test_sweeps_are_those_of_the_slow_twin(strict: bool, skew: float) -> None:
    W, q, friction = random_condensed(2, skew=skew)
    WT = np.ascontiguousarray(W.T)
    blocks = np.empty((6, 3, 3))
    kernels.diagonal_blocks(WT, blocks)
    lam, u = np.random.default_rng(3).standard_normal(18), np.empty(18)
    lam[::3] = [0.0, 1.0, 2.0, 0.0, 0.5, 0.1]
    lam[:3] = 0.0
    kernels.velocities(WT, q, lam, u)
    np.testing.assert_allclose(u, W @ lam + q, rtol=0, atol=1e-14)
    expected, step = lam, 0.0
    for _ in range(3):
        expected, step = dense_sweep(W, q, friction, expected, strict)
    rule = EXACT_RULE if strict else Rule(CONE, False, 1.0)
    found = sweep_contacts(WT, blocks, friction, rule, 3, lam, u)
    np.testing.assert_allclose(lam, expected, rtol=0, atol=1e-11)
    np.testing.assert_allclose(u, W @ lam + q, rtol=0, atol=1e-13)
    assert found == pytest.approx(step, rel=1e-8) and 0 < found < 1


@pytest.mark.parametrize("strict", [True, False])
def test_the_residual_is_that_of_the_yardstick(strict: bool) -> None:
    rng = np.random.default_rng(4)
    for _ in range(20):
        u, lam = rng.standard_normal((7, 3)), rng.standard_normal((7, 3))
        friction, rho = rng.uniform(0.0, 2.0, 7), rng.uniform(0.1, 10.0, 7)
        found = relative_residual(lam.ravel(), u.ravel(), friction, rho, strict)
        assert found == pytest.approx(yardstick(u, lam, rho, friction, relaxed=not strict), rel=1e-13)
    assert relative_residual(np.zeros(0), np.zeros(0), np.zeros(0), np.zeros(0)) == 0.0


def newton_system(seed: int, skew: float = 0.0, shift: float = 0.0) -> dict[str, np.ndarray]:
    """Matrix and right side at forces with u_n = 0 at the closed contacts, where the equations are those of the twin.

    W and q in the result are those of the proximal problem: u + shift (lam - centre).
    """
    W, q, friction = random_condensed(seed, 6, skew=skew)
    rng = np.random.default_rng(seed + 100)
    lam, u, centre = rng.standard_normal(18), np.empty(18), rng.standard_normal(18)
    shifts, scale = shift * rng.uniform(0.5, 1.5, 6), rng.uniform(0.3, 10.0, 6)
    lam[::3] = rng.uniform(0.5, 2.0, 6)
    lam[3:6] = 0.0
    added = np.repeat(shifts, 3)
    proximal = W + np.diag(added)
    q[::3] = -(proximal @ lam - added * centre)[::3]
    q[3] += 1.0  # contact 1 is open
    WT = np.ascontiguousarray(W.T)
    kernels.velocities(WT, q, lam, u)
    kernels.add_proximal(shifts, centre, lam, u)
    q = q - added * centre
    np.testing.assert_allclose(u, proximal @ lam + q, rtol=0, atol=1e-13)
    active, slides, trial = np.empty(6, dtype=np.int64), np.empty(6, dtype=np.bool_), np.empty((6, 3))
    count = kernels.classify(lam, u, scale, friction, active, slides, trial)
    active, slides = active[:count], slides[:count]
    matrix, right = np.empty((3 * count, 3 * count)), np.empty(3 * count)
    kernels.newton_matrix(WT, shifts, scale, friction, active, slides, trial, matrix)
    kernels.newton_right(lam, u, scale, friction, active, slides, trial, right)
    return {
        "W": proximal, "q": q, "friction": friction, "scale": scale, "lam": lam, "u": u, "active": active, "slides": slides,
        "trial": trial[:count], "matrix": matrix, "right": right,
    }  # fmt: skip


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("skew", [0.0, 0.02])
@pytest.mark.parametrize("shift", [0.0, 0.3])
def test_the_newton_system_is_the_derivative_of_the_alart_curnier_equations(seed: int, skew: float, shift: float) -> None:
    s = newton_system(seed, skew, shift)
    assert s["active"].tolist() == [0, 2, 3, 4, 5]

    def equations(lam: np.ndarray) -> np.ndarray:
        return alart_curnier(s["W"], s["q"], s["friction"], s["scale"], lam, s["active"], s["slides"])

    np.testing.assert_allclose(s["right"], -equations(s["lam"]), rtol=0, atol=1e-12)
    unknown = (3 * s["active"][:, None] + np.arange(3)).ravel()
    h = 1e-6
    for row, k in enumerate(unknown):
        step = np.zeros(18)
        step[k] = h
        derivative = (equations(s["lam"] + step) - equations(s["lam"] - step)) / (2 * h)
        np.testing.assert_allclose(s["matrix"][row], derivative, rtol=1e-7, atol=1e-8)


def test_classification_is_the_test_of_alart_and_curnier() -> None:
    states = set()
    for seed in range(6):
        s = newton_system(seed)
        y = (s["lam"] - s["u"] / np.repeat(s["scale"], 3)).reshape(-1, 3)
        assert s["active"].tolist() == np.flatnonzero(y[:, 0] > 0).tolist()
        np.testing.assert_allclose(s["trial"], y[s["active"]], rtol=1e-10, atol=1e-14)
        slides = np.linalg.norm(y[:, 1:], axis=1) > s["friction"] * y[:, 0]
        assert np.array_equal(s["slides"], slides[s["active"]])
        states |= set(s["slides"].tolist())
    assert states == {True, False}


def test_a_contact_without_force_and_speed_is_open_whatever_rounding_says() -> None:
    active, slides, trial = np.empty(2, dtype=np.int64), np.empty(2, dtype=np.bool_), np.empty((2, 3))
    lam, scale, friction = np.array([1.0, 0, 0, 0, 0, 0]), np.ones(2), np.full(2, 0.3)
    for speed, closed in ((-1e-16, [0]), (0.0, [0]), (1e-16, [0]), (-1e-10, [0, 1])):
        u = np.array([0.0, 0, 0, speed, 0, 0])
        assert active[: kernels.classify(lam, u, scale, friction, active, slides, trial)].tolist() == closed


@pytest.mark.parametrize("shift", [0.0, 0.3])
def test_a_newton_step_begins_and_ends_in_one_call_each(shift: float) -> None:
    """Contacts that open lose their force, and u is that of the others; forces that are not finite are not added."""
    W, q, friction = random_condensed(11)
    WT, rng = np.ascontiguousarray(W.T), np.random.default_rng(12)
    lam, centre, shifts, scale = rng.standard_normal(18), rng.standard_normal(18), np.full(6, shift), rng.uniform(0.3, 10.0, 6)
    lam[[3, 12]] = -5.0
    u, expected_u, expected = np.empty(18), np.empty(18), lam.copy()
    kernels.velocities(WT, q, lam, u)
    kernels.add_proximal(shifts, centre, lam, u)
    active, slides, trial, right = np.empty(6, dtype=np.int64), np.empty(6, dtype=np.bool_), np.empty((6, 3)), np.empty(18)
    closed = active[: kernels.classify(lam, u, scale, friction, active, slides, trial)].copy()
    assert 0 < len(closed) < 6
    expected.reshape(-1, 3)[np.setdiff1d(np.arange(6), closed)] = 0.0
    kernels.velocities(WT, q, expected, expected_u)
    kernels.add_proximal(shifts, centre, expected, expected_u)
    expected_right = np.empty(3 * len(closed))
    kernels.newton_right(expected, expected_u, scale, friction, closed, slides[: len(closed)], trial, expected_right)
    count = kernels.begin_newton(WT, q, lam, shifts, centre, friction, scale, u, active, slides, trial, right)
    assert active[:count].tolist() == closed.tolist()
    assert np.array_equal(lam, expected) and np.array_equal(u, expected_u)
    assert np.array_equal(right[: 3 * count], expected_right)
    change = rng.standard_normal(3 * count)
    expected.reshape(-1, 3)[closed] += change.reshape(-1, 3)
    assert kernels.end_newton(active[:count], change, lam) and np.array_equal(lam, expected)
    for bad in (np.nan, np.inf):
        change[4] = bad
        assert not kernels.end_newton(active[:count], change, lam) and np.array_equal(lam, expected)


def test_what_a_search_needs_to_know_is_found_in_one_call() -> None:
    W, _, _ = random_condensed(13, 4)
    W[3, :], W[:, 3] = 0.0, 0.0  # nothing moves contact 1 along its normal
    WT, blocks, expected = np.ascontiguousarray(W.T), np.empty((4, 3, 3)), np.empty((4, 3, 3))
    compliance, scale, fixed = np.empty(4), np.empty(4), np.empty(4, dtype=np.bool_)
    assert kernels.prepare(WT, 10.0, blocks, compliance, scale, fixed)
    kernels.diagonal_blocks(WT, expected)
    assert np.array_equal(blocks, expected) and fixed.tolist() == [False, True, False, False]
    np.testing.assert_allclose(compliance, np.trace(expected, axis1=1, axis2=2) / 3.0, rtol=1e-15)
    np.testing.assert_allclose(scale, np.where(fixed, np.inf, 10.0 * compliance), rtol=1e-15)
    W[3, 3] = 1e-6 * W[4, 4]
    assert not kernels.prepare(np.ascontiguousarray(W.T), 10.0, blocks, compliance, scale, fixed) and not fixed.any()


# ---------------------------------------------------------------------- the solver


@pytest.mark.parametrize(
    ("q", "expected"),
    [
        ((0.5, 3.0, 1.0), (0.0, 0.0, 0.0)),  # open
        ((-1.0, 0.1, -0.1), (2.0, -0.2, 0.2)),  # sticks: mu lam_n = 1
        ((-1.0, 1.2, 1.6), (2.0, -0.6, -0.8)),  # slides against q_t
    ],
)
def test_one_contact_by_hand(q: tuple[float, ...], expected: tuple[float, ...]) -> None:
    lam, _ = solved(0.5 * np.eye(3), np.array(q), np.array([0.5]))
    np.testing.assert_allclose(lam, expected, rtol=0, atol=1e-12)


def test_a_stack_of_two_contacts_by_hand() -> None:
    """Two unit masses under unit weights, one on the other on a floor: W of floor and of the contact between them."""
    W = np.kron([[1.0, -1.0], [-1.0, 2.0]], np.eye(3))
    q = np.array([-1.0, 0, 0, 0, 0.6, 0])  # free velocity of both is -1; the upper one is pulled by 0.6
    lam, _ = solved(W, q, np.array([0.5, 0.25]))
    # normal: lam_1 = 1, lam_0 = 2; the upper slides (0.6 > 0.25) and drags the lower with 0.25, which the floor holds
    np.testing.assert_allclose(lam, [2.0, -0.25, 0, 1.0, -0.25, 0], rtol=0, atol=1e-12)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("skew", [0.0, 0.02])
def test_random_problems_are_solved_to_rounding_in_few_sweeps(seed: int, skew: float) -> None:
    W, q, friction = random_condensed(seed, 12, skew=skew)
    lam, done = solved(W, q, friction)
    assert done.residual <= 1e-12 and done.sweeps < 60 and done.newton_steps > 0
    assert (lam[::3] > 0).sum() > 2


def test_a_block_on_four_points_has_many_force_fields_and_one_is_found() -> None:
    """W of rank 6 with 12 rows: weight, tilt and push of a rigid block. The normal forces carry the weight."""
    corners = np.array([[1.0, 1, -0.5], [1, -1, -0.5], [-1, 1, -0.5], [-1, -1, -0.5]])
    J = np.zeros((12, 6))
    for m, (x, y, z) in enumerate(corners):
        J[3 * m : 3 * m + 3] = UP @ np.hstack([np.eye(3), -np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])])
    inverse = np.diag([0.5, 0.5, 0.5, 3.0, 3.0, 2.0])
    W = J @ inverse @ J.T
    for push, slips in ((3.0, False), (5.0, True)):
        b = np.array([push, 0.5, -10.0, 0.1, 0.0, 0.2])
        lam, done = solved(W, J @ inverse @ b, np.full(4, 0.4))
        assert done.residual <= 1e-12
        v = inverse @ (b + J.T @ lam)
        assert lam[::3].sum() == pytest.approx(10.0, abs=1e-9)
        assert (np.linalg.norm(v) > 1e-3) == slips


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("rank", [4, 9, 15])
def test_singular_operators_of_random_rank(seed: int, rank: int) -> None:
    W, q, friction = random_condensed(seed, 8, rank=rank)
    assert solved(W, q, friction, tolerance=1e-10)[1].residual <= 1e-10


def test_a_warm_start_at_the_answer_costs_nothing_and_a_near_one_little() -> None:
    W, q, friction = random_condensed(1, 12)
    lam, done = solved(W, q, friction)
    assert solved(W, q, friction, lam, 1e-11)[1] == DenseResult(0, 0, pytest.approx(done.residual, abs=1e-13))
    near = solved(W, q + 1e-4, friction, lam)[1]
    assert near.residual <= 1e-12 and near.sweeps <= done.sweeps


def test_the_limit_is_kept_and_the_residual_told_is_that_of_the_answer() -> None:
    W, q, friction = random_condensed(3, 12)
    for limit in (1, 2, 3, 4, 5):
        _, done = solved(W, q, friction, sweeps=limit)
        assert done.sweeps <= limit
        if limit < 3:
            assert done.residual > 1e-12 and done.sweeps == limit
    assert solver_of(W, friction).solve(q, np.zeros(36), 1e-12, 1).sweeps == 1


@pytest.mark.parametrize("seed", (0, 1, 2, 4))
def test_a_search_that_gains_no_more_ends_where_that_is_enough(seed: int) -> None:
    W, q, friction = random_condensed(seed, 8, rank=9)
    on, done = (solver_of(W, friction).solve(q, np.zeros(24), 2e-17, 5000, enough=enough) for enough in (0.0, 1e-10))
    assert on.sweeps == 5000 and done.residual <= 1e-10 and done.sweeps < 2000


def test_no_contact_is_no_work() -> None:
    assert solved(np.zeros((0, 0)), np.zeros(0), np.zeros(0))[1] == DenseResult(0, 0, 0.0)


@pytest.mark.parametrize("start", [0.0, 1e12])
def test_a_contact_that_nothing_can_move_has_no_force(start: float) -> None:
    """Where it approaches, no forces are right; a huge one would make the relative residual small, and must not."""
    W, q, friction = random_condensed(2, 3)
    W[3:6], W[:, 3:6] = 0.0, 0.0
    for normal, possible in ((-1.0, False), (0.5, True)):
        q[3:6] = [normal, 0.3, 0.0]
        lam, done = solved(W, q, friction, start * np.ones(9), sweeps=200)
        assert not lam[3:6].any()
        assert (done.residual <= 1e-12) == possible
    blocks = np.empty((3, 3, 3))
    WT = np.ascontiguousarray(W.T)
    kernels.diagonal_blocks(WT, blocks)
    lam, u = np.ones(9), np.ones(9)
    sweep_contacts(WT, blocks, friction, Rule(CONE, False, 1.0), 1, lam, u)
    assert not lam[3:6].any()


def test_reports_are_the_iterates_and_the_best_is_returned() -> None:
    W, q, friction = random_condensed(5, 12)
    seen = []
    lam = np.zeros(36)
    solver_of(W, friction).solve(q, lam, 1e-12, 1000, lambda x, u: seen.append((x.copy(), u.copy())))
    for x, u in seen:
        np.testing.assert_allclose(u, W @ x + q, rtol=0, atol=1e-12)
    assert np.array_equal(seen[-1][0], lam)
    merits = [residual(W, q, x, friction) for x, _ in seen]
    assert merits[-1] == min(merits) <= 1e-12


def test_factors_are_used_again_while_they_serve_and_made_anew_when_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """One solver, a sequence of right sides: slightly other ones need no new factors, a turned slip direction does."""
    counted = {"made": 0, "used": 0}
    make, use = dense_module.sl.lapack.dgetrf, dense_module.sl.lapack.dgetrs

    def counting_make(*args: object, **options: object) -> object:
        counted["made"] += 1
        return make(*args, **options)

    def counting_use(*args: object, **options: object) -> object:
        counted["used"] += 1
        return use(*args, **options)

    monkeypatch.setattr(dense_module.sl.lapack, "dgetrf", counting_make)
    monkeypatch.setattr(dense_module.sl.lapack, "dgetrs", counting_use)
    W, q, friction = random_condensed(4, 12)
    solver, lam = solver_of(W, friction), np.zeros(36)
    solver.solve(q, lam, 1e-12, 1000)
    counted.update(made=0, used=0)
    assert solver.solve(q * (1 + 1e-7), lam, 1e-12, 1000).residual <= 1e-12
    assert counted["made"] == 0 and counted["used"] >= 1
    turn = q.reshape(-1, 3) @ np.array([[1.0, 0, 0], [0, np.cos(0.3), np.sin(0.3)], [0, -np.sin(0.3), np.cos(0.3)]])
    counted.update(made=0, used=0)
    assert solver.solve(turn.ravel(), lam, 1e-12, 1000).residual <= 1e-12
    assert counted["made"] >= 1 and counted["used"] > counted["made"]
    fresh, _ = solved(W, turn.ravel(), friction)
    np.testing.assert_allclose(lam, fresh, rtol=0, atol=1e-10)

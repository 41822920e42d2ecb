"""Local solvers of one contact against their formulas, a fine search of the energy, and the law; sweeps against a plain twin."""

from __future__ import annotations

import numpy as np
import pytest
from slow_twins import closest_in_cone, local_force as exact_force, random_spd

from contact.solvers import dense_kernels
from contact.solvers.dense import relative_residual
from contact.solvers.local_kernels import (
    BISECTION,
    CONE,
    DECOUPLED,
    DECOUPLED_LARGE,
    ELLIPSE,
    EXACT,
    Rule,
    local_force,
    sweep_contacts,
    sweep_until,
)

KINDS = (EXACT, CONE, DECOUPLED, DECOUPLED_LARGE, ELLIPSE, BISECTION)


def blocks(count: int, seed: int, coupling: float = 0.9) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Random positive definite blocks, free velocities and coefficients from 0 to 5; coupling is the largest |W_nt| there is."""
    rng = np.random.default_rng(seed)
    diagonal = np.sqrt(rng.uniform(0.3, 3.0, (count, 3)))
    a = np.empty((count, 3, 3))
    for i in range(count):
        correlation = np.eye(3)
        c = coupling * rng.uniform() * (way := rng.standard_normal(2)) / np.linalg.norm(way)
        correlation[0, 1:] = correlation[1:, 0] = c
        correlation[1, 2] = correlation[2, 1] = c[0] * c[1]
        a[i] = diagonal[i][:, None] * correlation * diagonal[i]
    q = rng.standard_normal((count, 3)) - [0.5, 0.0, 0.0]
    return a, q, np.where(rng.uniform(size=count) < 0.05, 0.0, rng.uniform(0.0, 5.0, count))


def natural_map(a: np.ndarray, q: np.ndarray, mu: float, lam: np.ndarray) -> float:
    """|lam - P_K(lam - rho uh)| over the size of the problem, one contact."""
    u, rho = a @ lam + q, 3.0 / np.trace(a)
    shifted = u + np.array([mu * np.linalg.norm(u[1:]), 0.0, 0.0])
    return float(np.linalg.norm(lam - closest_in_cone(lam - rho * shifted, mu)) / (rho * np.linalg.norm(q) + np.linalg.norm(lam)))


def visit(a: np.ndarray, q: np.ndarray, mu: float, lam: np.ndarray, rule: Rule) -> np.ndarray:
    u = a @ lam + q
    return np.array(local_force(a[None], 0, tuple(u), tuple(lam), mu, rule))


def test_the_exact_solver_needs_one_visit() -> None:
    for a, q, mu in zip(*blocks(2000, 1), strict=True):
        lam = visit(a, q, mu, np.array([0.3, 0.1, -0.2]), Rule(EXACT, False, 1.0))
        assert natural_map(a, q, mu, lam) < 1e-10


@pytest.mark.parametrize("kind", [CONE, DECOUPLED_LARGE, ELLIPSE, BISECTION])
def test_fixed_points_hold_the_law(kind: int) -> None:
    """Where the forces no longer change; with moderate coupling and friction nearly all come to rest."""
    rested = 0
    for a, q, mu in zip(*blocks(300, 2, 0.3), strict=True):
        mu = min(mu, 0.7)
        lam, rule = np.zeros(3), Rule(kind, kind != DECOUPLED_LARGE, 0.8)
        for _ in range(3000):
            new = lam + rule.relaxation * (visit(a, q, mu, lam, rule) - lam)
            done = np.abs(new - lam).max() <= 1e-14 * max(np.abs(new).max(), 1e-3)
            lam = new
            if done:
                break
        if done:
            rested += 1
            assert natural_map(a, q, mu, lam) < 1e-10
    assert rested >= 295


def test_cone_and_decoupled_are_their_formulas() -> None:
    rng = np.random.default_rng(4)
    for a, q, mu in zip(*blocks(500, 3), strict=True):
        lam = closest_in_cone(rng.standard_normal(3), mu)
        u = a @ lam + q
        step = min(3.0 / np.trace(a), 1.9 / np.linalg.norm(a, np.inf))
        for lagged in (False, True):
            shifted = u + np.array([lagged * mu * np.linalg.norm(u[1:]), 0.0, 0.0])
            expected = closest_in_cone(lam - step * shifted, mu)
            np.testing.assert_allclose(visit(a, q, mu, lam, Rule(CONE, lagged, 1.0)), expected, atol=1e-13)
        for kind, entry in ((DECOUPLED, min(a[1, 1], a[2, 2])), (DECOUPLED_LARGE, max(a[1, 1], a[2, 2]))):
            normal, t = max(0.0, lam[0] - u[0] / a[0, 0]), lam[1:] - u[1:] / entry
            t = t * min(1.0, mu * normal / max(np.linalg.norm(t), 1e-300))
            np.testing.assert_allclose(visit(a, q, mu, lam, Rule(kind, False, 1.0)), [normal, *t], atol=1e-13)


def least_energy(a: np.ndarray, q: np.ndarray, mu: float, shift: float) -> float:
    """Energy at the best of 50 000 points of {u_n = 0} on the surface of the cone."""
    angle = np.linspace(0.0, 2.0 * np.pi, 50_001)
    way = np.column_stack([np.ones_like(angle), mu * np.cos(angle), mu * np.sin(angle)])
    below = way @ a[0]
    lam = way[below > 0] * (-q[0] / below[below > 0])[:, None]
    return float((0.5 * np.einsum("ki,ij,kj->k", lam, a, lam) + lam @ (q + np.array([shift, 0.0, 0.0]))).min())


def test_the_ellipse_is_the_least_energy_and_the_walk_a_local_one() -> None:
    slid = same = 0
    for a, q, mu in zip(*blocks(250, 5), strict=True):
        stick = -np.linalg.solve(a, q)
        if q[0] >= 0.0 or mu == 0.0 or np.linalg.norm(stick[1:]) <= mu * stick[0]:
            continue
        lam0 = np.array([0.2, 0.05 * mu, 0.1 * mu])
        u = a @ lam0 + q
        for lagged in (False, True):
            shift, free = (mu * float(np.linalg.norm(u[1:])) if lagged else 0.0), u - a @ lam0
            if (a[0, 0] - mu * np.linalg.norm(a[0, 1:])) <= 0.0:
                continue  # the section is open: the energy may have no least point
            energies = []
            for kind in (ELLIPSE, BISECTION):
                lam = visit(a, q, mu, lam0, Rule(kind, lagged, 1.0))
                assert abs((a @ lam + free)[0]) < 1e-12 and np.linalg.norm(lam[1:]) == pytest.approx(mu * lam[0], rel=1e-12)
                energies.append(0.5 * lam @ a @ lam + lam @ (free + np.array([shift, 0.0, 0.0])))
            least = least_energy(a, free, mu, shift)
            assert energies[0] == pytest.approx(least, rel=1e-7, abs=1e-7)
            assert energies[1] >= least - 1e-7 * (1.0 + abs(least))
            slid += 1
            same += energies[1] == pytest.approx(least, rel=1e-7, abs=1e-7)
    assert slid > 80 and same > 0.9 * slid


def test_open_and_sticking_contacts_are_those_of_the_law() -> None:
    for kind in (ELLIPSE, BISECTION):
        for a, q, mu in zip(*blocks(300, 6), strict=True):
            stick = -np.linalg.solve(a, q)
            lam = visit(a, q, mu, np.zeros(3), Rule(kind, True, 1.0))
            if q[0] >= 0.0:
                assert not lam.any()
            elif mu == 0.0:
                np.testing.assert_allclose(lam, [-q[0] / a[0, 0], 0.0, 0.0], atol=1e-14)
            elif np.linalg.norm(stick[1:]) < mu * stick[0]:
                np.testing.assert_allclose(lam, stick, atol=1e-12)


def test_an_open_section_gives_a_force_that_is_finite() -> None:
    """W_nn - mu |W_nt| < 0: part of the section has no positive normal force, or none has."""
    for coupling in (0.7, 0.95):
        a = np.eye(3)
        a[0, 1] = a[1, 0] = coupling
        for way in np.linspace(0.0, 6.0, 13):
            for kind in (ELLIPSE, BISECTION):
                lam = visit(a, np.array([-1.0, 3 * np.cos(way), 3 * np.sin(way)]), 4.0, np.zeros(3), Rule(kind, True, 1.0))
                assert np.isfinite(lam).all() and lam[0] >= 0 and np.linalg.norm(lam[1:]) <= 4.0 * lam[0] * (1 + 1e-12)


@pytest.mark.parametrize("relaxation", [1.0, 0.6])
@pytest.mark.parametrize("lagged", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_sweeps_against_their_twin(kind: int, lagged: bool, relaxation: float) -> None:
    """Contact after contact with W written out; the local force itself is tested above, the exact one against its twin too."""
    rng = np.random.default_rng(7)
    k, rule = 5, Rule(kind, lagged, relaxation)
    W, q = random_spd(rng, 3 * k, 20.0), rng.standard_normal(3 * k) - np.tile([0.5, 0.0, 0.0], k)
    mu = np.array([0.0, 0.2, 0.5, 1.0, 0.3])
    WT, a = np.ascontiguousarray(W.T), np.empty((k, 3, 3))
    dense_kernels.diagonal_blocks(WT, a)
    lam = np.concatenate([closest_in_cone(rng.standard_normal(3), m) for m in mu])
    expected, step = lam.copy(), 0.0
    for _ in range(3):
        changes = []
        for i in range(k):
            rows = slice(3 * i, 3 * i + 3)
            u = W[rows] @ expected + q[rows]
            new = np.array(local_force(a, i, tuple(u), tuple(expected[rows]), mu[i], rule))
            if kind == EXACT:
                np.testing.assert_allclose(new, exact_force(W[rows, rows], u - W[rows, rows] @ expected[rows], mu[i]), atol=1e-10)
            change = relaxation * (new - expected[rows])
            expected[rows] = expected[rows] + change
            changes.append(np.abs(change).max())
        step = max(changes) / np.abs(expected).max()
    u = W @ lam + q
    found = sweep_contacts(WT, a, mu, rule, 3, lam, u)
    np.testing.assert_allclose(lam, expected, atol=1e-11)
    np.testing.assert_allclose(u, W @ lam + q, atol=1e-12)
    assert found == pytest.approx(step, rel=1e-6)


@pytest.mark.parametrize(("aim", "fresh"), [(0.0, True), (0.0, False), (3e-2, True)])
def test_sweeps_at_once_are_those_one_by_one(aim: float, fresh: bool) -> None:
    rng, k, rule = np.random.default_rng(5), 6, Rule(EXACT, False, 0.7)
    W = random_spd(rng, 3 * k)
    WT, a = np.ascontiguousarray(W.T), np.empty((k, 3, 3))
    dense_kernels.diagonal_blocks(WT, a)
    q, mu, rho = rng.standard_normal(3 * k) - 0.5, rng.uniform(0.1, 0.9, k), rng.uniform(0.5, 2.0, k)
    lam, u, best = np.zeros(3 * k), q.copy(), np.full(3 * k, np.nan)
    expected, v, wrong = lam.copy(), u.copy(), []
    least, kept, place, changes = 0.5, best.copy(), -1, []
    for i in range(12):
        before = v.copy()
        sweep_contacts(WT, a, mu, rule, 1, expected, v)
        if fresh and i == 11:
            dense_kernels.velocities(WT, q, expected, v)
        wrong.append(relative_residual(expected, v, mu, rho))
        changes.append(float(np.linalg.norm(v - before)))
        if wrong[-1] < least:
            least, kept, place = wrong[-1], expected.copy(), i
        if wrong[-1] <= aim:
            break
    rows = np.empty((12, 2))
    assert sweep_until(WT, q, a, mu, rho, rule, fresh, (aim, 0.5), lam, u, best, rows) == (len(wrong), place)
    assert (len(wrong) < 12) == (aim > 0) and place > 0
    for found, one in ((lam, expected), (u, v), (best, kept), (rows[: len(wrong), 0], np.array(wrong))):
        np.testing.assert_array_equal(found, one)
    np.testing.assert_allclose(rows[: len(wrong), 1], changes, rtol=1e-12)


def test_a_relaxed_force_that_opens_is_zero_in_the_end() -> None:
    """And not a number that halves for ever, by which a contact would count as one that presses."""
    lam, u = np.array([1.0, 0.1, 0.0]), np.array([2.0, 0.3, 0.0])
    sweep_contacts(np.eye(3), np.eye(3)[None], np.array([0.5]), Rule(EXACT, False, 0.5), 60, lam, u)
    assert lam.tolist() == [0.0, 0.0, 0.0]
    np.testing.assert_allclose(u, [1.0, 0.2, 0.0], atol=1e-14)

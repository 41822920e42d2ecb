"""The loops of the yardstick against numpy, and the products of contact Jacobians against scipy: the same to the last bit."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from slow_twins import body_between_nodes, project_cones

from contact import ContactError, Group, make_problem, measure, metrics as m, metrics_kernels as kernels
from contact.problem import force_scales


def contacts(seed: int, nc: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """u, lam, rho and friction of contacts of all kinds: open, without friction, sliding along their force and against it."""
    rng = np.random.default_rng(seed)
    u, lam = rng.standard_normal((nc, 3)), 5.0 * rng.standard_normal((nc, 3))
    rho, friction = rng.uniform(0.5, 4.0, nc), rng.uniform(0.0, 1.0, nc)
    u[::5] = 0.0
    lam[1::4] = 0.0
    friction[::7] = 0.0
    lam[::3, 1:] = -2.0 * u[::3, 1:]
    return u, lam, rho, friction


def aligned(u: np.ndarray, lam: np.ndarray, rho: np.ndarray) -> float:
    """Largest 1 + cosine between slip and force of contacts that clearly slide and press."""
    speed, force = np.linalg.norm(u[:, 1:], axis=1), np.linalg.norm(lam[:, 1:], axis=1)
    fastest = max(np.abs(u).max(), (np.linalg.norm(lam, axis=1) / rho).max())
    slides = (speed > 1e-6 * fastest) & (lam[:, 0] > 1e-6 * max(lam[:, 0].max(), kernels.TINY)) & (force > 0)
    cosine = (u[slides, 1:] * lam[slides, 1:]).sum(axis=1) / (speed[slides] * force[slides])
    return float((1.0 + cosine).max()) if slides.any() else 0.0


@pytest.mark.parametrize("nc", [1, 2, 9, 150])
@pytest.mark.parametrize("relaxed", [False, True])
def test_the_loops_give_the_bits_of_numpy(nc: int, relaxed: bool) -> None:
    for seed in range(20):
        u, lam, rho, friction = contacts(seed, nc)
        parts = [kernels.law_parts(*u[k], *lam[k], rho[k], friction[k], relaxed) for k in range(nc)]
        rho_u, wrong = np.array(parts)[:, :3], np.array(parts)[:, 3:]
        expected = u.copy()
        if not relaxed:
            expected[:, 0] += friction * np.linalg.norm(u[:, 1:], axis=1)
        expected *= rho[:, None]
        assert np.array_equal(rho_u, expected)
        assert np.array_equal(wrong, lam - project_cones(lam - expected, friction))
        found = kernels.natural_map(lam.ravel(), u.ravel(), friction, rho, not relaxed)
        largest = max(np.linalg.norm(lam), np.linalg.norm(expected))
        np.testing.assert_allclose(found, (np.linalg.norm(wrong), largest), rtol=1e-13)
        outside = np.linalg.norm(lam[:, 1:], axis=1) - friction * lam[:, 0]
        law = m.measure_law(u, lam, rho, friction)
        assert law.cone_violation == max(outside.max(), (-lam[:, 0]).max(), 0.0)
        assert law.slip_alignment == aligned(u, lam, rho)


def test_least_scales_of_balances() -> None:
    """The load, a hundredth of the forces that touch a group, and a millionth of what moves or of all loads: the largest."""
    lam = np.array([[3.0, 0.0, 4.0], [0.0, 12.0, 5.0], [1.0, 2.0, 2.0]])
    touches = np.array([[True, True, False], [False, False, True], [False] * 3, [False] * 3])
    out = np.empty(4)
    kernels.least_scales(np.array([0.01, 0.1, 0.0, 0.0]), np.array([0.0, 0.0, 7e3, 1.0]), lam, touches, 2e3, out)
    np.testing.assert_allclose(out, [0.01 * (5.0 + 13.0), 0.1, 7e-3, 2e-3], rtol=1e-14)


@pytest.mark.parametrize("rows", [0, 1, 7, 4000])
def test_sizes_of_the_dynamics_are_norms(rows: int) -> None:
    rng = np.random.default_rng(rows)
    Av, b, force = rng.standard_normal((3, rows)) * np.array([1.0, 3.0, 0.2])[:, None]
    weight = rng.uniform(0.1, 10.0, rows)

    def sizes(scale: np.ndarray) -> tuple[float, float]:
        largest = max(np.linalg.norm(scale * term) for term in (Av, b, force))
        return (np.linalg.norm(scale * (Av - b - force)) / largest if rows else 0.0), largest

    expected = (*sizes(weight), sizes(np.ones(rows))[0])
    assert kernels.term_sizes(Av, b, force, weight) == pytest.approx(expected, rel=1e-13)
    if rows:
        b[0] = 1e170  # its square is infinite
        assert np.isnan(kernels.term_sizes(Av, b, force, weight)[::2]).all()


@pytest.mark.parametrize("stride", [3, 6])
@pytest.mark.parametrize("points", [1, 7, 300])
def test_net_forces_are_the_sums_over_points(stride: int, points: int) -> None:
    """Of groups one behind the other; a group without points has none."""
    end = 2 + stride * points
    force, out = np.random.default_rng(points).standard_normal(end + 7), np.full(3, np.nan)
    kernels.net_forces(np.array([2, end, end + 1]), np.array([end, end + 1, end + 7]), np.array([stride, 0, 3]), force, out)
    sums = [force[2:end].reshape(-1, stride)[:, :3].sum(axis=0), np.zeros(3), force[end + 1 :].reshape(2, 3).sum(axis=0)]
    np.testing.assert_allclose(out, np.linalg.norm(sums, axis=1), rtol=1e-14)


def test_a_number_that_is_none_is_reported_and_stops_nothing() -> None:
    """Also where the tangent of a force is zero, and a number that is good follows."""
    for value in (math.nan, math.inf):
        for place in range(3):
            u, lam, rho, friction = (np.array(x) for x in ([[0.0] * 3] * 2, [[0.0] * 3] * 2, [1.0, 1.0], [0.5, 0.5]))
            lam[0, place] = value
            lam[1] = 1.0, 2.0, 0.0
            assert math.isnan(m.natural_map(u, lam, rho, friction))
            law = m.measure_law(u, lam, rho, friction)
            assert not law.cone_violation < 1.0 and law.slip_alignment == 0.0
    assert np.array_equal(kernels.larger(1.0, math.nan), math.nan, equal_nan=True)
    assert np.array_equal(kernels.larger(math.nan, 1.0), math.nan, equal_nan=True)


def test_products_of_a_jacobian_give_the_bits_of_scipy() -> None:
    rng = np.random.default_rng(4)
    problem = body_between_nodes(rng, 30, 25)
    for _ in range(5):
        v, lam = rng.standard_normal(problem.n), rng.standard_normal((25, 3))
        assert np.array_equal(problem.moved(v), problem.J @ v)
        assert np.array_equal(problem.pushed(lam), problem.J.T @ lam.ravel())
        assert np.array_equal(problem.pushed(lam.ravel()), problem.pushed(lam))
    assert sp.issparse(problem.J) and problem.J.nnz < 0.3 * np.prod(problem.J.shape)


def test_arrays_of_a_wrong_size_are_refused_before_any_loop() -> None:
    problem = body_between_nodes(np.random.default_rng(4), 4, 3)
    v = np.zeros(problem.n)
    for wrong in (np.zeros(problem.n - 1), np.zeros((problem.n, 1))):
        with pytest.raises(ContactError, match=r"v has shape .*; it must be \(18,\)"):
            problem.moved(wrong)
    for wrong in (np.zeros((2, 3)), np.zeros(10)):
        with pytest.raises(ContactError, match=r"lam has shape .*; it must hold 9 numbers"):
            problem.pushed(wrong)
        with pytest.raises(ContactError, match=r"lam has shape .*; it must hold 9 numbers"):
            measure(problem, v, wrong)


def test_each_column_belongs_to_the_group_that_holds_it() -> None:
    """One column a contact, also the first and the last of a group, and an empty group between."""
    bounds = [0, 3, 3, 9, 15]
    groups = [Group(f"g{k}", *ends, "generalized") for k, ends in enumerate(pairwise(bounds))]
    J = sp.lil_matrix((45, 15))
    for contact in range(15):
        J[3 * contact, contact] = 1.0
    A = sp.diags(np.arange(1.0, 16.0))
    problem = make_problem(A, np.zeros(15), J.tocsr(), np.zeros(15), 0.5, dt=0.01, groups=groups)
    expected = np.zeros((4, 15), dtype=np.bool_)
    expected[0, :3] = expected[2, 3:9] = expected[3, 9:] = True
    assert np.array_equal(problem.takes_part, expected)
    assert np.array_equal(problem.compliance[:, 0], 1.0 / np.arange(1.0, 16.0)) and not problem.compliance[:, 1:].any()


def test_no_scale_of_a_balance_is_below_a_millionth_of_its_kind_in_the_whole_problem() -> None:
    """Of forces (torques of links do not count) for what has points, of weighted rows for generalized coordinates."""
    groups = [Group("rod", 0, 12, "links"), Group("idle", 12, 18, "links"), Group("joint", 18, 20, "generalized")]
    b = np.arange(1.0, 21.0)
    b[12:] = 0.0
    none = np.zeros((0, 20))
    problem = make_problem(sp.identity(20), b, none, np.zeros(0), 0.5, dt=0.01, groups=groups)
    assert problem.b_size == 1 + 2 + 3 + 7 + 8 + 9
    lam, v = np.zeros((0, 3)), b.copy()
    v[12] = 1e-9  # the idle rod leaves a force where nothing acts on it
    assert m.balance(problem, v, lam) == pytest.approx(1e-9 / (1e-6 * 30.0), rel=1e-6)
    v[12], v[18] = 0.0, 1e-9
    assert m.balance(problem, v, lam) == pytest.approx(1e-9 / (1e-6 * np.linalg.norm(b)), rel=1e-6)


def test_all_residuals_are_found_in_one_call() -> None:
    """Dynamics, contact law and balance as by the functions that have one each, also of the relaxed law and of soft contacts."""
    rng = np.random.default_rng(5)
    groups = [Group("ball", 0, 9, "nodes"), Group("rod", 9, 21, "links"), Group("arm", 21, 27, "generalized")]
    root, J = rng.standard_normal((27, 27)), rng.standard_normal((12, 27))
    A, b, phi = root @ root.T + np.eye(27), rng.standard_normal(27), rng.standard_normal((4, 3))
    v, lam = rng.standard_normal(27), rng.standard_normal((4, 3))
    for friction in (0.4, np.array([[0.4, 0.1]] * 4)):
        for softness in (None, 0.03):
            problem = make_problem(A, b, J, phi, friction, dt=0.01, groups=groups, softness=softness)
            for relaxed in (False, True):
                found = m.residuals(problem, v, lam, relaxed=relaxed)
                expected = (
                    m.dynamics_residual(problem, v, lam), m.contact_residual(problem, v, lam, relaxed=relaxed),
                    m.balance(problem, v, lam), m.dynamics_residual_plain(problem, v, lam),
                )  # fmt: skip
                assert found == expected


def test_scales_of_forces_are_the_dimension_over_the_trace_of_each_contact() -> None:
    """As the formula with numpy says, for contacts in space and in a plane, without tangents, and that nothing can move."""
    rng = np.random.default_rng(6)
    for kept in ([1, 1, 1], [1, 1, 0], [1, 0, 0]):
        for still in (0, 1, 2, 7):
            blocks = rng.uniform(0.1, 3.0, (7, 3)) * kept
            blocks[3, 1:] = 0.0
            blocks[:still] = 0.0
            trace, plane = blocks.sum(axis=1), not blocks[:, 2].any()
            moves = trace > 0
            dim = np.full(7, 2.0 if plane else 3.0)
            dim[moves & ~blocks[:, 1:].any(axis=1)] = 1.0
            expected = dim / np.where(moves, trace, trace[moves].mean() if moves.any() else dim)
            np.testing.assert_allclose(force_scales(blocks), expected, rtol=1e-15)
            assert np.array_equal(force_scales(np.hstack([blocks, blocks])[:, 3:]), force_scales(blocks))

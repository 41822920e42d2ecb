"""Stage contact: projections on the ellipsoidal friction cone, by their optimality conditions and against slow twins."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from slow_twins import closest_in_cone, closest_in_ellipse, project_strict

from contact.cone import (
    project_cone,
    project_cone_elliptic,
    project_ellipse,
    project_forces,
    project_strict as fast_strict,
    project_strict_elliptic,
)

many = settings(max_examples=300, deadline=None)
force = st.one_of(st.just(0.0), st.floats(1e-6, 1e3), st.floats(-1e3, -1e-6))
forces = st.tuples(force, force, force)
coefficient = st.floats(1e-3, 1e1)


@many
@given(forces, coefficient, coefficient)
def test_the_foot_in_an_ellipse_meets_its_optimality_conditions(t: tuple[float, ...], a_0: float, a_1: float) -> None:
    """t - p = s (p_i / a_i^2) with s >= 0, and p on the edge unless t lies inside."""
    p = np.array(project_ellipse(t[1], t[2], a_0, a_1))
    pull, normal = np.array(t[1:]) - p, p / np.array([a_0, a_1]) ** 2
    if math.hypot(t[1] / a_0, t[2] / a_1) <= 1.0:
        assert np.all(pull == 0.0)
        return
    assert math.hypot(p[0] / a_0, p[1] / a_1) == pytest.approx(1.0, abs=1e-15 * 4)
    size = np.linalg.norm(t[1:]) * np.linalg.norm(normal)
    assert abs(pull[0] * normal[1] - pull[1] * normal[0]) <= 1e-14 * size
    assert pull @ normal >= -1e-14 * size


@many
@given(forces, coefficient, coefficient)
def test_strict_is_maximum_dissipation(lam: tuple[float, ...], mu_0: float, mu_1: float) -> None:
    """Of the surrogate u_t = gamma (p - lam_t): no force of the ellipse at the clipped normal force dissipates more (Prop. 6).

    The maximum of -u_t . f over the ellipse is n |(mu_i u_i)|, and the force found must reach it.
    """
    p = np.array(project_strict_elliptic(*lam, mu_0, mu_1))
    assert p[0] == max(lam[0], 0.0)
    mu = np.array([mu_0, mu_1])
    assert np.linalg.norm(p[1:] / mu) <= p[0] * (1 + 1e-15 * 4)
    u = p[1:] - np.array(lam[1:])
    assert -u @ p[1:] == pytest.approx(p[0] * np.linalg.norm(mu * u), abs=1e-12 * p[0] * mu.max() * np.linalg.norm(lam))
    np.testing.assert_allclose(p, project_strict(np.array(lam), mu), rtol=1e-12, atol=1e-13 * np.linalg.norm(lam))


@many
@given(forces, coefficient, coefficient)
def test_proximal_is_the_closest_point_of_the_cone(lam: tuple[float, ...], mu_0: float, mu_1: float) -> None:
    """Moreau: p in K, p - lam in the dual cone, both orthogonal; these hold for the projection alone."""
    p, mu = np.array(project_cone_elliptic(*lam, mu_0, mu_1)), np.array([mu_0, mu_1])
    size = np.linalg.norm(lam)
    assert np.linalg.norm(p[1:] / mu) <= p[0] + 1e-14 * size
    dual = p - lam
    assert np.linalg.norm(mu * dual[1:]) <= dual[0] + 1e-14 * size * (1 + mu.max())
    assert abs(p @ dual) <= 1e-14 * size * size


@pytest.mark.parametrize("seed", range(20))
def test_proximal_agrees_with_its_slow_twin(seed: int) -> None:
    rng = np.random.default_rng(seed)
    mu = 10.0 ** rng.uniform(-1.5, 0.7, 2)
    for lam in rng.standard_normal((20, 3)) * 10.0 ** rng.uniform(-1, 1, 3):
        np.testing.assert_allclose(project_cone_elliptic(*lam, *mu), closest_in_cone(lam, mu), rtol=1e-10, atol=1e-12)


@many
@given(forces, coefficient)
def test_equal_coefficients_give_the_circular_operators_bit_for_bit(lam: tuple[float, ...], mu: float) -> None:
    assert project_strict_elliptic(*lam, mu, mu) == fast_strict(*lam, mu)
    assert project_cone_elliptic(*lam, mu, mu) == project_cone(*lam, mu)


@many
@given(forces, coefficient)
def test_almost_equal_coefficients_give_almost_the_circular_operators(lam: tuple[float, ...], mu: float) -> None:
    """The numerical branch meets the closed form."""
    near, size = mu * (1 + 1e-13), np.linalg.norm(lam)
    np.testing.assert_allclose(project_strict_elliptic(*lam, mu, near), fast_strict(*lam, mu), atol=1e-11 * size * (1 + mu))
    np.testing.assert_allclose(project_cone_elliptic(*lam, mu, near), project_cone(*lam, mu), atol=1e-11 * size)


def test_an_ellipse_by_hand() -> None:
    """Along the axes the foot is the vertex; on the normal of a known edge point it is that point."""
    assert project_ellipse(5.0, 0.0, 2.0, 1.0) == (2.0, 0.0)
    assert project_ellipse(0.0, -5.0, 2.0, 1.0) == (0.0, -1.0)
    edge = np.array([2.0 * 0.6, 1.0 * 0.8])
    normal = edge / np.array([4.0, 1.0])
    np.testing.assert_allclose(project_ellipse(*(edge + 3.0 * normal), 2.0, 1.0), edge, rtol=1e-14)
    np.testing.assert_allclose(closest_in_ellipse(edge + 3.0 * normal, np.array([2.0, 1.0])), edge, rtol=1e-14)


def test_a_vanishing_ellipse_gives_a_finite_foot() -> None:
    p = project_ellipse(3.0, 4.0, 2e-310, 1e-310)
    np.testing.assert_allclose(np.array(p) / 1e-310, np.array([4 * 3.0, 4.0]) / math.hypot(2 * 3.0, 4.0), rtol=1e-12)
    assert project_strict_elliptic(1e-320, 1.0, 1.0, 0.5, 0.2)[1] >= 0.0


@pytest.mark.parametrize("strict", [True, False])
def test_project_forces_is_the_operator_on_each_row(strict: bool) -> None:
    rng = np.random.default_rng(0)
    trial, friction = rng.standard_normal((6, 3)), rng.uniform(0.2, 1.0, (6, 2))
    friction[0], friction[1, 1] = 0.0, friction[1, 0]
    lam = np.full((6, 3), np.nan)
    project_forces(trial, friction, strict, lam)
    operator = project_strict_elliptic if strict else project_cone_elliptic
    assert np.array_equal(lam, [operator(*t, *mu) for t, mu in zip(trial, friction, strict=True)])
    assert np.array_equal(lam[0], [max(trial[0, 0], 0.0), 0.0, 0.0])

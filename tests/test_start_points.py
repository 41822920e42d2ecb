"""Soft bodies that start strained: where their nodes are, what energy they have, and that they go on from there."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

import femsim as fs

Points = NDArray[np.float64]
RUBBER = fs.Elastic(2e5, 0.3, 1000.0, name="rubber")
SIZE, STRETCH = (0.04, 0.02, 0.02), 0.05


def stretched(points: Points) -> Points:
    return points * (1.0 + STRETCH, 1.0, 1.0)


def bar(start_points: Callable[[Points], Points] | None, **options: object) -> fs.Scene:
    scene = fs.Scene("bar", dt=2e-4, duration=0.008, theta=0.5, gravity=(0.0, 0.0, 0.0))
    material = options.pop("material", RUBBER)
    mesh = fs.box_tets(SIZE, (2, 1, 1))
    scene.add_soft("bar", mesh, material, start_points=start_points, **options)  # type: ignore[arg-type]
    scene.sensor("end", "bar", kind="marker", at=(0.5 * SIZE[0], 0.0, 0.0))
    return scene


@pytest.mark.parametrize("element", ["linear", "quadratic"])
def test_the_start_has_the_energy_of_its_strain(element: str) -> None:
    """Uniaxial strain e: (lambda/2 + mu) e^2 by volume; at rest it has none, and the rest shape stays what it was."""
    body = bar(stretched, element=element).body("bar")
    modulus = 0.5 * RUBBER.lame_lambda + RUBBER.lame_mu
    assert body.elastic_energy(body.initial_q()) == pytest.approx(modulus * STRETCH**2 * np.prod(SIZE), rel=1e-9)
    at_rest = bar(None, element=element).body("bar")
    assert at_rest.elastic_energy(at_rest.initial_q()) < 1e-20
    rest = at_rest.initial_q().reshape(-1, 3)
    np.testing.assert_array_equal(body.rest, rest)  # type: ignore[attr-defined]
    np.testing.assert_allclose(body.initial_q().reshape(-1, 3), stretched(rest), atol=1e-15)


def test_it_swings_about_rest_and_keeps_its_energy() -> None:
    """Let go, the bar shortens beyond rest and comes back; markers are glued at rest and move from the start on."""
    run = fs.simulate(bar(stretched))
    end = run.markers["end"].position[:, 0] / (0.5 * SIZE[0]) - 1.0
    assert end[0] == pytest.approx(STRETCH, rel=0.3) and end.min() < -0.5 * STRETCH
    energy = run.steps["kinetic_energy_J"] + run.steps["elastic_energy_J"]
    full = (0.5 * RUBBER.lame_lambda + RUBBER.lame_mu) * STRETCH**2 * np.prod(SIZE)
    np.testing.assert_allclose(energy, full, rtol=0.02)


def test_prony_terms_are_relaxed_at_the_start() -> None:
    """As after a long hold: the branches have no stress at the start, only what happens after it strains them."""
    viscous = RUBBER.replace(prony=((0.5, 0.1),))
    elastic_body, body = (bar(stretched, material=m).body("bar") for m in (RUBBER, viscous))
    assert body.elastic_energy(body.initial_q()) == pytest.approx(
        elastic_body.elastic_energy(elastic_body.initial_q()), rel=1e-12
    )
    still = fs.simulate(bar(None, material=viscous))
    np.testing.assert_allclose(still.markers["end"].position[:, 0], 0.5 * SIZE[0], rtol=1e-12)


def test_turning_is_about_the_centre_where_it_starts() -> None:
    omega = np.array([0.0, 0.0, 3.0])

    def moved(points: Points) -> Points:
        return np.array((0.1, 0.2, 0.3)) + stretched(points)

    body = bar(moved, angular_velocity=omega).body("bar")
    q, v = body.initial_q(), body.initial_v()
    np.testing.assert_allclose(body.momentum(q, v), 0.0, atol=1e-15)
    arm = q.reshape(-1, 3) - body.centre_of_mass(q)
    np.testing.assert_allclose(v.reshape(-1, 3), np.cross(omega, arm), atol=1e-15)


@pytest.mark.parametrize(
    ("start_points", "words"),
    [
        (lambda points: points[:-1], r"start_points of bar gave shape \(11, 3\); allowed are \(12, 3\) finite numbers of m"),
        (lambda points: points * np.nan, "start_points of bar gave shape"),
        (lambda points: points * (1.0, 1.0, -1.0), r"start_points of bar turns \d+ of \d+ tetrahedra inside out; deform it less"),
    ],
)
def test_wrong_starts_are_refused(start_points: Callable[[Points], Points], words: str) -> None:
    with pytest.raises(fs.InputError, match=words):
        bar(start_points)


@pytest.mark.parametrize("option", ["start_points", "added_mass"])
def test_what_is_no_function_of_the_points_is_refused(option: str) -> None:
    mesh = fs.box_tets((0.02,) * 3, (1, 1, 1))
    with pytest.raises(fs.InputError, match=f"{option} of cube is ndarray; give a function of the points"):
        fs.Scene("x", theta=1.0).add_soft("cube", mesh, fs.Elastic(1e5, 0.3, 1000.0), **{option: mesh.points})  # type: ignore[arg-type]

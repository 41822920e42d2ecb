"""Fields of soft bodies: against closed forms, numpy, and balances that hold for any deformation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from slow_twins import random_frame

from femsim.base.rotations import quaternion_to_matrix
from femsim.model.bodies.corotational import CorotationalBody
from femsim.model.bodies.soft_bodies import make_soft_body
from femsim.model.fields import FRAME_FIELDS
from materials import Elastic
from meshes.generate import box_tets

RUBBER = Elastic(2e5, 0.35, 1100.0)
ELEMENT_FIELDS = [field.name for field in FRAME_FIELDS if "element" in field.of]


def block(divisions: int = 2, side: float = 1.0) -> CorotationalBody:
    mesh = box_tets((side, side, side), divisions)
    return CorotationalBody("block", mesh.points, mesh.tets, RUBBER, velocity=np.zeros(3))


def full(stress: np.ndarray) -> np.ndarray:
    """Symmetric matrices (m, 3, 3) of XX, YY, ZZ, XY, YZ, XZ."""
    return stress[:, [[0, 3, 5], [3, 1, 4], [5, 4, 2]]]


def deformed(body: CorotationalBody, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return (body.rest + 0.06 * rng.standard_normal(body.rest.shape)) @ random_frame(rng).T


@pytest.mark.parametrize("turned", [False, True])
def test_stretch_by_hand(turned: bool) -> None:
    """Homogeneous stretches (a, b, c): P = 2 mu e + lambda tr(e) along the axes, sigma = P U / J."""
    body = block()
    R = random_frame(np.random.default_rng(11)) if turned else np.eye(3)
    stretch = np.array([1.2, 0.9, 1.05])
    q = ((body.rest * stretch) @ R.T).ravel()
    found = body.element_fields(q, ELEMENT_FIELDS)
    e = stretch - 1
    first_piola = 2 * RUBBER.lame_mu * e + RUBBER.lame_lambda * e.sum()
    principal = first_piola * stretch / stretch.prod()
    np.testing.assert_allclose(full(found["cauchy_stress"]), np.broadcast_to(R * principal @ R.T, (48, 3, 3)), atol=1e-9 * 2e5)
    a, b, c = principal
    np.testing.assert_allclose(found["von_mises"], math.sqrt(0.5 * ((a - b) ** 2 + (b - c) ** 2 + (c - a) ** 2)), rtol=1e-10)
    np.testing.assert_allclose(found["principal_stretches"], np.tile([1.2, 1.05, 0.9], (48, 1)), rtol=1e-12)
    np.testing.assert_allclose(
        found["strain_energy_density"], RUBBER.lame_mu * (e @ e) + RUBBER.lame_lambda / 2 * e.sum() ** 2, rtol=1e-10
    )
    np.testing.assert_allclose([quaternion_to_matrix(r) for r in found["rotation"]], np.tile(R, (48, 1, 1)), atol=1e-10)
    assert (found["rotation"][:, 0] >= 0).all()


def test_small_strain_is_hooke() -> None:
    body, e, nu = block(), 1e-7, RUBBER.poisson_ratio
    q = (body.rest * (1 + e * np.array([1, -nu, -nu]))).ravel()
    stress = body.element_fields(q, ("cauchy_stress",))["cauchy_stress"]
    np.testing.assert_allclose(stress, np.tile([RUBBER.young_modulus * e, 0, 0, 0, 0, 0], (48, 1)), atol=1e-6 * 2e5 * e)


def test_stress_balances_the_forces_of_the_step() -> None:
    """Virial: the volume integral of the Cauchy stress is the sum of internal force times position, for any deformation."""
    body = block()
    x = deformed(body, 1)
    stress = full(body.element_fields(x.ravel(), ("cauchy_stress",))["cauchy_stress"])
    edges = x[body.tets[:, 1:]] - x[body.tets[:, :1]]
    volume = np.linalg.det(edges) / 6
    assert volume.min() > 0
    virial = np.einsum("ni,nj->ij", body.internal_force, x)
    np.testing.assert_allclose(np.einsum("m,mij->ij", volume, stress), virial, atol=1e-9 * np.abs(virial).max())


def test_fields_of_random_deformations_against_numpy() -> None:
    body = block(3)
    x = deformed(body, 2)
    found = body.element_fields(x.ravel(), ELEMENT_FIELDS)
    edges = body.rest[body.tets[:, 1:]] - body.rest[body.tets[:, :1]]
    F = np.einsum("mka,mkb->mab", x[body.tets[:, 1:]] - x[body.tets[:, :1]], np.linalg.inv(edges).transpose(0, 2, 1))
    left, stretches, right = np.linalg.svd(F)
    upright = np.linalg.det(F) > 0
    assert upright.all()
    np.testing.assert_allclose(found["principal_stretches"], stretches, rtol=1e-9)
    np.testing.assert_allclose([quaternion_to_matrix(r) for r in found["rotation"]], left @ right, atol=1e-8)
    stress = full(found["cauchy_stress"])
    deviator = stress - np.trace(stress, axis1=1, axis2=2)[:, None, None] / 3 * np.eye(3)
    np.testing.assert_allclose(found["von_mises"], np.sqrt(1.5 * (deviator**2).sum(axis=(1, 2))), rtol=1e-10)
    rest_volume = np.linalg.det(edges) / 6
    assert found["strain_energy_density"] @ rest_volume == pytest.approx(body.elastic_energy(x.ravel()), rel=1e-12)


def test_an_inverted_element_has_no_stress_but_signed_stretches() -> None:
    body = block(1)
    x = body.rest * [1, 1, -0.5]
    found = body.element_fields(x.ravel(), ELEMENT_FIELDS)
    assert np.isnan(found["von_mises"]).all() and np.isnan(found["cauchy_stress"]).all()
    np.testing.assert_allclose(found["principal_stretches"][:, 2], -0.5, rtol=1e-12)


def test_only_what_is_asked_for() -> None:
    body = block(1)
    assert body.element_fields(body.rest.ravel(), ("velocity",)) == {}
    assert list(body.element_fields(body.rest.ravel(), ("rotation", "velocity"))) == ["rotation"]


def test_uniform_pressure_on_a_face_of_a_box_is_found_at_its_edges_too() -> None:
    """Forces of a uniform pressure with friction on the bottom, spread by tributary area: every node reads that."""
    body = block(3, side=0.1)
    surface, x = body.pressed_surface(), body.rest * [1.1, 1.0, 0.9]
    triangles = surface.triangles
    on_bottom = (x[triangles][:, :, 2] < x[:, 2].min() + 1e-9).all(axis=1)
    force = np.zeros_like(x)
    for triangle in triangles[on_bottom]:
        a, b, c = x[triangle]
        force[triangle] += np.linalg.norm(np.cross(b - a, c - a)) / 6 * np.array([300.0, 0.0, 1000.0])
    pressure = surface.pressure(x, force)
    bottom = x[:, 2] < x[:, 2].min() + 1e-9
    np.testing.assert_allclose(pressure[bottom], 1000.0, rtol=1e-12)
    assert not pressure[~bottom].any()
    assert not surface.pressure(x, -force * [0, 0, 1]).any()  # a pull is no pressure


@pytest.mark.parametrize("divisions", [1, 2])
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("out", [-1.0, 1.0])
def test_even_pressure_on_quadratic_elements_reads_evenly(divisions: int, axis: int, out: float) -> None:
    """Its forces are those on the middles of edges alone, a third of a face each; corners lie in it too."""
    mesh = box_tets((0.1, 0.1, 0.1), divisions)
    body, _ = make_soft_body("block", mesh, RUBBER, element="quadratic", velocity=np.zeros(3))
    surface, x = body.pressed_surface(), body.rest * [1.1, 1.0, 0.9]
    force, push = np.zeros_like(x), 300.0 * np.roll([0.0, 1.0, 0.0], axis)
    push[axis] = -1000.0 * out
    face = out * x[:, axis] > (out * x[:, axis]).max() - 1e-9
    for element in body.elements:
        for corners, middles in (((0, 1, 2), (4, 5, 6)), ((0, 1, 3), (4, 8, 7)), ((1, 2, 3), (5, 9, 8)), ((0, 2, 3), (6, 9, 7))):
            if face[element[list(corners)]].all():
                a, b, c = x[element[list(corners)]]
                force[element[list(middles)]] += np.linalg.norm(np.cross(b - a, c - a)) / 6 * push
    assert 0 < (force[:, axis] != 0.0).sum() < face.sum()
    given = (np.flatnonzero(force[:, axis]), force[force[:, axis] != 0.0])
    pressure = surface.pressure(x, force)
    np.testing.assert_allclose(pressure[face], 1000.0, rtol=1e-12)
    assert not pressure[~face].any()
    assert surface.area(x, *given).sum() == pytest.approx(0.1**3 * 1.1 * 0.9 / (0.1 * [1.1, 1.0, 0.9][axis]), rel=1e-12)

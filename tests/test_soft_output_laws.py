"""Fields of hyperelastic bodies: the balance of stress and forces that holds for every law."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from slow_twins import random_frame

from femsim.model.bodies.hyperelastic import HyperelasticBody
from femsim.model.bodies.soft_bodies import make_soft_body
from femsim.model.fields import FRAME_FIELDS
from materials import Elastic, StableNeoHookean
from meshes.generate import box_tets

ELEMENT_FIELDS = [field.name for field in FRAME_FIELDS if "element" in field.of]


def test_stress_balances_the_forces_of_the_step() -> None:
    mesh = box_tets((1.0, 1.0, 1.0), 2)
    rubber = Elastic(2e5, 0.35, 1100.0, law=StableNeoHookean())
    body = HyperelasticBody("b", mesh.points, mesh.tets, rubber, elements=mesh.tets, velocity=np.zeros(3))
    rng = np.random.default_rng(3)
    x = (body.rest + 0.05 * rng.standard_normal(body.rest.shape)) @ random_frame(rng).T
    found = body.element_fields(x.ravel(), ELEMENT_FIELDS)
    assert set(found) == set(ELEMENT_FIELDS)
    volume = np.linalg.det(x[body.tets[:, 1:]] - x[body.tets[:, :1]]) / 6
    stress = found["cauchy_stress"][:, [[0, 3, 5], [3, 1, 4], [5, 4, 2]]]
    virial = np.einsum("ni,nj->ij", body.internal_force, x)
    np.testing.assert_allclose(np.einsum("m,mij->ij", volume, stress), virial, atol=1e-9 * np.abs(virial).max())
    assert found["principal_stretches"].prod(axis=1) == pytest.approx(volume / (1 / 48), rel=1e-9)
    rest = 1.0 / 48
    assert found["strain_energy_density"].sum() * rest == pytest.approx(body.elastic_energy(x.ravel()), rel=1e-12)
    F = (x[body.tets[:, 1:]] - x[body.tets[:, :1]]).transpose(0, 2, 1) @ np.linalg.inv(
        (body.rest[body.tets[:, 1:]] - body.rest[body.tets[:, :1]]).transpose(0, 2, 1)
    )
    left, stretches, right = np.linalg.svd(F)
    np.testing.assert_allclose(found["principal_stretches"], stretches, rtol=1e-9)
    np.testing.assert_allclose(Rotation.from_quat(found["rotation"], scalar_first=True).as_matrix(), left @ right, atol=1e-9)
    assert (found["rotation"][:, 0] >= 0.0).all()


def test_quadratic_elements_are_drawn_as_eighths_with_values_of_their_points() -> None:
    """A body that is bent: the energy of the drawn parts adds up, rotations and stretches lie near those of their F."""
    mesh = box_tets((1.0, 0.2, 0.2), (5, 1, 1))
    steel = Elastic(2e5, 0.499, 1100.0, law=StableNeoHookean())
    body, drawn = make_soft_body("b", mesh, steel, element="quadratic", velocity=np.zeros(3))
    angle = 0.6 * body.rest[:, 0]
    x = np.column_stack([np.sin(angle), body.rest[:, 1], 1.0 - np.cos(angle)]) / 0.6
    x += body.rest[:, 2:] * np.column_stack([-np.sin(angle), 0.0 * angle, np.cos(angle)])
    found = body.element_fields(x.ravel(), ELEMENT_FIELDS)
    assert len(found["rotation"]) == len(drawn.tets) == 8 * len(mesh.tets)
    edges = body.rest[drawn.tets[:, 1:]] - body.rest[drawn.tets[:, :1]]
    moved = x[drawn.tets[:, 1:]] - x[drawn.tets[:, :1]]
    F = moved.transpose(0, 2, 1) @ np.linalg.inv(edges.transpose(0, 2, 1))
    left, stretches, right = np.linalg.svd(F)
    turn = Rotation.from_quat(found["rotation"], scalar_first=True).as_matrix()
    np.testing.assert_allclose(turn, left @ right, atol=0.05)
    np.testing.assert_allclose(found["principal_stretches"], stretches, atol=0.05)
    assert abs(stretches - 1.0).max() > 0.06  # the bound above is smaller than the strain
    energy = found["strain_energy_density"] @ (np.abs(np.linalg.det(edges)) / 6.0)
    assert energy == pytest.approx(body.elastic_energy(x.ravel()), rel=1e-9)

"""Kernels of the energy-momentum step, against plain formulas: the stretch, and stresses as functions of C = F^T F."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import sqrtm

from femsim.model.bodies import momentum_kernels as kernels
from femsim.model.bodies.corotational import CorotationalBody
from femsim.model.bodies.corotational_momentum_kernels import STEP_SCRATCH, step_forces_in_chunks
from femsim.model.bodies.law_kernels import COROTATIONAL, MOONEY_RIVLIN, OGDEN, ST_VENANT_KIRCHHOFF, STABLE_NEO_HOOKEAN
from femsim.model.bodies.rotation_kernels import as_matrix, commuting_product, gram
from materials import Elastic
from meshes.generate import box_tets

LAMBDA, MU, PRESSURE = 7e4, 3e4, 4e3
CONSTANTS = {MOONEY_RIVLIN: np.array([0.3, 0.2]), OGDEN: np.array([1.2, -0.4, 1.7, -2.5])}
NAMES = {COROTATIONAL: "co-rotational", ST_VENANT_KIRCHHOFF: "st-venant-kirchhoff", STABLE_NEO_HOOKEAN: "stable-neo-hookean",
         MOONEY_RIVLIN: "mooney-rivlin", OGDEN: "ogden"}  # fmt: skip


def strained(size: float, seed: int = 0) -> np.ndarray:
    """C of a deformation that turns and strains by about ``size``."""
    rng = np.random.default_rng(seed)
    turn = np.linalg.qr(rng.standard_normal((3, 3)))[0]
    F = turn @ (np.eye(3) + size * rng.standard_normal((3, 3)))
    return np.asarray(F.T @ F)


def entries(C: np.ndarray) -> tuple[float, ...]:
    return C[0, 0], C[1, 1], C[2, 2], C[0, 1], C[0, 2], C[1, 2]


def full(C: tuple[float, ...]) -> np.ndarray:
    return np.array(as_matrix(C)).reshape(3, 3)


def dilatation(law: int, C: np.ndarray) -> float:
    if law == COROTATIONAL:
        return float(np.sqrt(np.linalg.eigvalsh(C)).sum() - 3.0)
    return float(0.5 * (np.trace(C) - 3.0)) if law == ST_VENANT_KIRCHHOFF else float(np.sqrt(np.linalg.det(C)) - 1.0)


def energy(law: int, C: np.ndarray) -> float:
    """Psi of a law at C, with a pressure that acts on its dilatation."""
    s, d = np.sqrt(np.linalg.eigvalsh(C)), dilatation(law, C)
    linear, bulk = 0.0, LAMBDA
    if law == COROTATIONAL:
        own = MU * ((s - 1.0) ** 2).sum()
    elif law == ST_VENANT_KIRCHHOFF:
        own = MU * (0.25 * (s**2 - 1.0) ** 2).sum()
    elif law == STABLE_NEO_HOOKEAN:
        m, square = 4.0 / 3.0 * MU, (s**2).sum()
        own = 0.5 * m * (square - 3.0 - np.log(0.25 * (square + 1.0)))
        linear, bulk = -0.75 * m, LAMBDA + 5.0 / 6.0 * MU
    elif law == MOONEY_RIVLIN:
        c10, c01 = MU * CONSTANTS[law]
        square = s**2
        pairs = square[0] * square[1] + square[1] * square[2] + square[2] * square[0]
        own = c10 * (square.sum() - 3.0) + c01 * (pairs - 3.0)
        linear, bulk = -2.0 * c10 - 4.0 * c01, LAMBDA + 2.0 * c10
    else:
        shares, powers = MU * CONSTANTS[law][:2], CONSTANTS[law][2:]
        own = sum((m * (s**a - 1.0) / a).sum() for m, a in zip(shares, powers, strict=True))
        linear, bulk = -shares.sum(), LAMBDA + shares.sum()
    return float(own + linear * d + 0.5 * bulk * d * d + PRESSURE * d)


def arguments(law: int) -> tuple[int, np.ndarray, float, float, float, np.ndarray]:
    return law, CONSTANTS.get(law, np.zeros(2)), LAMBDA, MU, PRESSURE, np.empty((2, 3, 3))


@pytest.mark.parametrize("law", NAMES, ids=NAMES.get)
@pytest.mark.parametrize("size", [1e-3, 0.1, 0.2])
def test_the_stress_is_the_slope_of_the_energy(law: int, size: float) -> None:
    C, h = strained(size), 1e-5
    S = full(kernels._stress(entries(C), *arguments(law)))
    for i in range(3):
        for j in range(3):
            way = np.zeros((3, 3))
            way[i, j] += 0.5 * h
            way[j, i] += 0.5 * h
            slope = (energy(law, C + way) - energy(law, C - way)) / (2.0 * h)
            assert 0.5 * S[i, j] == pytest.approx(slope, abs=3e-7 * (LAMBDA + MU))


@pytest.mark.parametrize("law", NAMES, ids=NAMES.get)
@pytest.mark.parametrize("size", [0.0, 1e-8, 1e-3, 0.05, 0.2, 0.5])
def test_the_stress_is_that_by_principal_stretches(law: int, size: float) -> None:
    """Also where the iteration for the stretch does not reach, and where nothing is strained."""
    for seed in range(20):
        C = entries(strained(size, seed))
        found, wanted = (full(stress(C, *arguments(law))) for stress in (kernels._stress, kernels._principal_stress))
        worst = 1e-13 * (LAMBDA + MU + np.abs(wanted).max()) * np.linalg.cond(full(C))
        np.testing.assert_allclose(found, wanted, rtol=0, atol=worst)


@pytest.mark.parametrize("size", [0.0, 1e-6, 1e-2, 0.2, 0.6])
def test_the_stretch_is_the_root_of_c(size: float) -> None:
    for seed in range(20):
        C = strained(size, seed)
        root = sqrtm(C)
        trace, inverse = kernels.stretch(entries(C), np.empty((2, 3, 3)))
        assert trace == pytest.approx(np.trace(root).real, rel=1e-14)
        np.testing.assert_allclose(full(inverse) @ root, np.eye(3), rtol=0, atol=1e-13 * np.linalg.cond(C))


def test_a_stretch_of_nothing_is_finite() -> None:
    """A flat element, one that is a point, and numbers that are none."""
    for C in (np.diag([1.0, 1.0, 0.0]), np.zeros((3, 3)), np.diag([1.0, 1.0, 1e-20])):
        trace, inverse = kernels.stretch(entries(C), np.empty((2, 3, 3)))
        assert np.isfinite([trace, *inverse]).all()
    assert np.isnan(kernels.stretch(entries(np.full((3, 3), np.nan)), np.empty((2, 3, 3)))[0])


@pytest.mark.parametrize("law", NAMES, ids=NAMES.get)
@pytest.mark.parametrize("change", [1e-6, 3e-3, 0.2])
def test_the_discrete_stress_does_the_work_of_the_energy(law: int, change: float) -> None:
    """S : dC/2 is the change of energy: by Gauss' rule where ends are near, by energies where they are not."""
    before, towards = strained(0.1, 3), strained(0.1, 4)
    after = before + change * (towards - before) / np.linalg.norm(towards - before)
    S = full(kernels.discrete_stress(entries(before), entries(after), *arguments(law)))
    gained = energy(law, after) - energy(law, before)
    rounding = 1e-15 * abs(energy(law, before)) + 1e-12 * MU * change
    assert 0.5 * (S * (after - before)).sum() == pytest.approx(gained, abs=10.0 * rounding)


def test_products_of_symmetric_matrices() -> None:
    F = np.random.default_rng(5).standard_normal((3, 3))
    np.testing.assert_allclose(full(gram(tuple(F.ravel()))), F.T @ F, rtol=1e-14, atol=1e-15)
    A = F.T @ F
    B = A @ A - 2.0 * A
    np.testing.assert_allclose(full(commuting_product(entries(A), entries(B))), A @ B, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("damping", [0.0, 0.7])
@pytest.mark.parametrize("change", [0.0, 1e-13, 1e-5, 2e-3, 2e-2, 0.3, 3.0], ids=str)
def test_chunks_of_elements_have_the_forces_of_single_ones(change: float, damping: float) -> None:
    """From nothing that is strained to elements that are inverted: those that do not suit take the way of single elements."""
    mesh = box_tets((0.04, 0.03, 0.05), (2, 2, 3))  # 72 elements: two chunks and a part
    body = CorotationalBody("box", mesh.points, mesh.tets, Elastic(1e5, 0.4, 1000.0), velocity=np.zeros(3))
    body._lame_lambda[:40] *= 2.0
    body._lame_mu[20:60] *= 0.5
    rng = np.random.default_rng(7)
    edge, turn = 0.015, np.linalg.qr(rng.standard_normal((3, 3)))[0]
    turn *= np.sign(np.linalg.det(turn))
    x0 = mesh.points @ turn + 0.02 * edge * rng.standard_normal(mesh.points.shape)
    x1 = x0 @ turn + 0.1 + change * edge * rng.standard_normal(mesh.points.shape)
    x1[0] += 2.0 * change**4 * edge  # some change much more than others
    wanted, found = np.empty_like(x0), np.empty_like(x0)
    stress, single = np.empty((72, 6)), np.empty((72, 1, 6))
    kernels.step_forces(x0, x1, *body.point_elements(), np.full(1, damping), wanted, single)
    scratch = np.full(STEP_SCRATCH, np.nan)
    step_forces_in_chunks(
        x0, x1, mesh.tets, body._gradient, body._volume, body._lame_lambda, body._lame_mu, damping, scratch, found, stress
    )
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-12 * np.abs(wanted).max())
    np.testing.assert_allclose(stress, single[:, 0], rtol=0, atol=1e-11 * np.nanmax(np.abs(stress)), equal_nan=True)
    assert np.isnan(stress).any() == (change > 1.0)
    alone = (scratch.reshape(-1, 32)[30, :8] == 0.0).sum()  # of the last chunk, 8 elements
    assert alone == 0 if change <= 2e-3 else alone > 0

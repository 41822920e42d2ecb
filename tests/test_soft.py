"""Soft bodies: co-rotational tetrahedra against scipy's SVD, textbook element matrices and finite differences.

Kernels: polar_quaternion and rotation_steps against the SVD; deformation_gradients, chunk_forces and element_forces by energy,
forces and strains of whole bodies against the formula; stiffness_blocks against the sum of element matrices.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.transform import Rotation
from slow_twins import element_matrices, random_frame, rotation_of

from femsim.base.rotations import quaternion_from_vector, quaternion_to_matrix
from femsim.model.bodies import corotational_kernels as kernels
from femsim.model.bodies.body import StepSettings
from femsim.model.bodies.corotational import CorotationalBody
from femsim.model.bodies.rotation_kernels import polar_quaternion
from materials import Elastic
from meshes.generate import box_tets

RUBBER = Elastic(2e5, 0.35, 1100.0, rayleigh_alpha=0.7, rayleigh_beta=3e-3)
UP = np.array([0.1, -0.3, -9.81])
SIZE = (0.03, 0.04, 0.05)


def block(divisions: int | tuple[int, int, int] = 1, elastic: Elastic = RUBBER, **options: object) -> CorotationalBody:
    mesh = box_tets(SIZE, divisions)
    return CorotationalBody("block", mesh.points, mesh.tets, elastic, velocity=np.zeros(3), **options)


def deformed(body: CorotationalBody, rng: np.random.Generator, amount: float = 0.2) -> np.ndarray:
    """Positions turned, moved and shaken by a part of the mesh width."""
    x = body.rest @ random_frame(rng).T + rng.standard_normal(3)
    return (x + amount * 0.01 * rng.standard_normal(x.shape)).ravel()


def matrix(body: CorotationalBody, data: np.ndarray) -> np.ndarray:
    indptr, indices = body.pattern()
    return sp.csc_matrix((data, indices, indptr), shape=(body.n_v, body.n_v)).toarray()


def turn_by(angle: float, rng: np.random.Generator) -> np.ndarray:
    axis = rng.standard_normal(3)
    return quaternion_to_matrix(quaternion_from_vector(angle * axis / np.linalg.norm(axis)))


def quaternion_of(R: np.ndarray) -> np.ndarray:
    x, y, z, w = Rotation.from_matrix(R).as_quat()
    return np.array([w, x, y, z])


def stiffness(body: CorotationalBody, q: np.ndarray) -> np.ndarray:
    """K at q, out of A of two different betas."""
    data = [np.empty(len(body.pattern()[1])) for _ in range(2)]
    for k, theta in enumerate((1.0, 0.5)):
        settings = StepSettings(2.0, theta, UP)
        b, external = np.empty(body.n_v), np.empty(body.n_v)
        body.assemble(q, np.zeros(body.n_v), 0.0, settings, data[k], b, external)
    mass = np.diag(np.repeat(body.node_mass, 3))
    return matrix(body, data[0] - data[1]) - (0.5 - 1.0) * mass


# ---------------------------------------------------------------------- rotation


def test_polar_rotation_against_the_svd() -> None:
    """2000 random F, 35 % inverted, from random warm starts: the rotation of the sign-corrected SVD."""
    rng = np.random.default_rng(0)
    inverted = 0
    for k in range(2000):
        F = rng.standard_normal((3, 3)) * 10.0 ** rng.uniform(-3, 3)
        if (np.linalg.det(F) < 0) != (k % 20 < 7):
            F[:, 0] = -F[:, 0]
        start = rng.standard_normal(4)
        inverted += np.linalg.det(F) < 0
        q, iterations = polar_quaternion(tuple(F.ravel()), tuple(start / np.linalg.norm(start)))
        assert iterations < 30 and abs(np.linalg.norm(q) - 1.0) < 1e-14
        s = np.linalg.svd(F, compute_uv=False)
        gap = (s[1] + math.copysign(s[2], np.linalg.det(F))) / s[0]  # how well the rotation is determined
        np.testing.assert_allclose(quaternion_to_matrix(np.array(q)), rotation_of(F), atol=1e-13 / gap)
    assert inverted == 700


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_polar_rotation_of_rotations(scale: float) -> None:
    """Pure rotations are met exactly, also from the opposite orientation (a saddle of the objective)."""
    rng = np.random.default_rng(1)
    for _ in range(50):
        R = random_frame(rng)
        for start in np.eye(4):
            q, iterations = polar_quaternion(tuple((scale * R).ravel()), tuple(start))
            assert iterations < 100
            np.testing.assert_allclose(quaternion_to_matrix(np.array(q)), R, atol=1e-13)
    for start in np.eye(4):  # exact half turns
        q, _ = polar_quaternion(tuple(np.eye(3).ravel()), tuple(start))
        np.testing.assert_allclose(np.abs(q), [1, 0, 0, 0], atol=1e-14)


def test_a_warm_start_at_the_answer_stays_there() -> None:
    rng = np.random.default_rng(2)
    F = np.eye(3) + 0.2 * rng.standard_normal((3, 3))
    q, _ = polar_quaternion(tuple(F.ravel()), (1.0, 0.0, 0.0, 0.0))
    again, iterations = polar_quaternion(tuple(F.ravel()), q)
    assert iterations <= 1 and np.allclose(again, q, rtol=0, atol=1e-15)
    assert polar_quaternion((0.0,) * 9, q)[0] == q  # nothing to fit: keep


@pytest.mark.parametrize(("amount", "steps"), [(1e-9, 1), (1e-3, 2), (0.3, 3)])
def test_rotation_steps_of_chunks_against_the_svd(amount: float, steps: int) -> None:
    """From a start that is wrong by an angle: a lane that says converged is right to rounding, a refused one keeps its start.

    Singular values between 1 and 1e-3, one in five mirrored; the chunk's loop has no safeguards but to say no.
    """
    rng, c = np.random.default_rng(20), kernels.CHUNK
    converged, refused, mirrored = 0, 0, 0
    for _ in range(60):
        w = np.full(kernels.SCRATCH, np.nan)
        U, V, s = (random_frame(rng) for _ in range(c)), (random_frame(rng) for _ in range(c)), 10.0 ** rng.uniform(-3, 0, (c, 3))
        s[: c // 5, 2] *= -1.0
        F = np.array([u @ np.diag(x) @ v.T for u, x, v in zip(U, s, V, strict=True)])
        expected = np.array([rotation_of(f) for f in F])
        start = np.array([quaternion_of(R @ turn_by(amount, rng)) for R in expected])
        w[kernels._F : kernels._F + 9 * c] = F.reshape(c, 9).T.ravel()
        w[kernels._Q : kernels._Q + 4 * c] = start.T.ravel()
        for _ in range(steps):
            kernels.rotation_steps(w)
        status = w[kernels._STATUS : kernels._STATUS + c]
        q = w[kernels._Q : kernels._Q + 4 * c].reshape(4, c).T
        np.testing.assert_allclose(np.linalg.norm(q, axis=1), 1.0, atol=1e-15)
        for k in range(c):
            values = np.linalg.svd(F[k], compute_uv=False)
            gap = (values[1] + math.copysign(values[2], np.linalg.det(F[k]))) / values[0]
            if status[k] == kernels._CONVERGED:
                np.testing.assert_allclose(quaternion_to_matrix(q[k]), expected[k], atol=2e-15 / gap)
                mirrored += s[k, 2] < 0
            elif status[k] == kernels._REFUSED and steps == 1:
                assert np.array_equal(q[k], start[k])
        converged += np.count_nonzero(status == kernels._CONVERGED)
        refused += np.count_nonzero(status == kernels._REFUSED)
    assert converged > (900 if amount < 0.1 else 100) and mirrored > 20
    assert amount < 0.1 or refused > 10


def test_rotation_steps_refuse_what_has_no_rotation() -> None:
    """F = 0, a needle, a half turn (a saddle) and NaN in one chunk: refused there, and the lanes beside them do not notice."""
    c = kernels.CHUNK
    w = np.zeros(kernels.SCRATCH)
    F = np.tile(np.eye(3), (c, 1, 1))
    F[1], F[2], F[3], F[4] = 0.0, np.diag([1.0, 0.0, 0.0]), np.diag([1.0, -1.0, -1.0]), np.nan
    w[kernels._F : kernels._F + 9 * c] = F.reshape(c, 9).T.ravel()
    w[kernels._Q : kernels._Q + c] = 1.0
    kernels.rotation_steps(w)
    status = w[kernels._STATUS : kernels._STATUS + c]
    assert np.all(status[1:5] == kernels._REFUSED)
    assert status[0] == kernels._CONVERGED and np.all(status[5:] == kernels._CONVERGED)
    assert np.array_equal(w[kernels._Q : kernels._Q + 4 * c], np.repeat([1.0, 0.0, 0.0, 0.0], c))


def test_a_long_run_keeps_rotations_that_are_rotations() -> None:
    """3000 small moves: strain as that of a body that comes here at once."""
    body, rng = block(2), np.random.default_rng(21)
    q, turn = deformed(body, rng, 0.1), turn_by(0.01, rng)
    for _ in range(3000):
        q = (q.reshape(-1, 3) @ turn.T).ravel()
        body.update_elements(q)
    fresh = block(2)
    fresh.update_elements(q)
    np.testing.assert_allclose(body.strain, fresh.strain, atol=1e-14)
    np.testing.assert_allclose(body.internal_force, fresh.internal_force, atol=1e-12 * np.abs(fresh.internal_force).max())


# ---------------------------------------------------------------------- forces and energy


@pytest.mark.parametrize("amount", [0.0, 0.2, 1.0])
def test_the_force_is_the_gradient_of_the_energy(amount: float) -> None:
    """Central differences at every degree of freedom of a block of 6 tetrahedra."""
    body = block()
    x = deformed(body, np.random.default_rng(3), amount)
    x[:3] += 1e-3  # leave the rest shape also where nothing is shaken
    h, numeric = 1e-7, np.empty(body.n_q)
    for i in range(body.n_q):
        ahead, back = x.copy(), x.copy()
        ahead[i] += h
        back[i] -= h
        numeric[i] = (body.elastic_energy(ahead) - body.elastic_energy(back)) / (2 * h)
    body.update_elements(x)
    force = body.internal_force.ravel()
    np.testing.assert_allclose(numeric, force, atol=2e-6 * np.abs(force).max())


@pytest.mark.parametrize("amount", [0.3, 3.0])
def test_energy_force_and_strain_against_the_formula(amount: float) -> None:
    """psi = mu |S - I|^2 + lambda/2 tr(S - I)^2 with S = R^T F by scipy's SVD, also for inverted elements."""
    body = block(2)
    x = deformed(body, np.random.default_rng(4), amount).reshape(-1, 3)
    energy, inverted, force = 0.0, 0, np.zeros_like(x)
    mu, lam = RUBBER.lame_mu, RUBBER.lame_lambda
    strains = []
    for tet in body.tets:
        rest, now = (p[tet[1:]] - p[tet[0]] for p in (body.rest, x))
        F = np.linalg.solve(rest, now).T
        volume = np.linalg.det(rest) / 6
        R = rotation_of(F)
        E = 0.5 * (R.T @ F + F.T @ R) - np.eye(3)
        inverted += np.linalg.det(F) <= 0
        energy += volume * (mu * (E**2).sum() + 0.5 * lam * np.trace(E) ** 2)
        P = R @ (2 * mu * E + lam * np.trace(E) * np.eye(3))  # first Piola-Kirchhoff stress
        forces = volume * P @ np.linalg.inv(rest)
        force[tet[1:]] += forces.T
        force[tet[0]] -= forces.sum(axis=1)
        strains.append(E[[0, 1, 2, 0, 1, 2], [0, 1, 2, 1, 2, 0]])
    assert body.elastic_energy(x.ravel()) == pytest.approx(energy, rel=1e-10)
    np.testing.assert_allclose(body.internal_force, force, atol=1e-9 * np.abs(force).max())
    np.testing.assert_allclose(body.strain, strains, atol=1e-9)
    assert body.inverted_elements == inverted
    assert (inverted > 0) == (amount > 1.0)


def test_rigid_motion_makes_no_force_and_no_energy() -> None:
    body, rng = block(2), np.random.default_rng(5)
    scale = RUBBER.young_modulus * 0.05**2
    for _ in range(5):
        q = (body.rest @ random_frame(rng).T + rng.standard_normal(3)).ravel()
        body.update_elements(q)
        assert np.abs(body.internal_force).max() < 1e-12 * scale
        assert body.elastic_energy(q) < 1e-20 * scale
        assert body.inverted_elements == 0


def test_forces_follow_the_rotation_and_sum_to_nothing() -> None:
    body, rng = block(2), np.random.default_rng(6)
    x, R = deformed(body, rng).reshape(-1, 3), random_frame(rng)
    body.update_elements(x.ravel())
    force, energy = body.internal_force.copy(), body.elastic_energy(x.ravel())
    largest = np.abs(force).max()
    np.testing.assert_allclose(force.sum(axis=0), 0.0, atol=1e-12 * largest)
    np.testing.assert_allclose(np.cross(x, force).sum(axis=0), 0.0, atol=1e-11 * largest)
    turned = (x @ R.T + [1.0, 2.0, 3.0]).ravel()
    body.update_elements(turned)
    np.testing.assert_allclose(body.internal_force, force @ R.T, atol=1e-10 * largest)
    assert body.elastic_energy(turned) == pytest.approx(energy, rel=1e-9)


def test_linear_patch() -> None:
    """Uniform strain: the uniform stress of Hooke's law in every element, none on the inner node, traction on the faces."""
    body, rng = block((2, 2, 2)), np.random.default_rng(7)
    for turn in (np.eye(3), random_frame(rng)):
        strain = 0.05 * rng.standard_normal((3, 3))
        strain = 0.5 * (strain + strain.T)
        stress = 2 * RUBBER.lame_mu * strain + RUBBER.lame_lambda * np.trace(strain) * np.eye(3)
        body.update_elements((body.rest @ (np.eye(3) + strain) @ turn.T).ravel())
        expected = strain[[0, 1, 2, 0, 1, 2], [0, 1, 2, 1, 2, 0]]
        np.testing.assert_allclose(body.strain, np.tile(expected, (len(body.tets), 1)), atol=1e-13)
        force = body.internal_force @ turn  # back in the rest frame
        half = 0.5 * np.array(SIZE)
        middle = 0.5 * (body.rest.min(axis=0) + body.rest.max(axis=0))
        centred = body.rest - middle
        inner = np.flatnonzero(np.all(np.abs(centred) < 0.9 * half, axis=1))
        assert len(inner) == 1
        assert np.abs(force[inner]).max() < 1e-12 * np.abs(stress).max() * 0.05**2
        # moments of the nodal forces: sum x f^T = V sigma
        np.testing.assert_allclose(centred.T @ force, np.prod(SIZE) * stress, atol=1e-12 * np.prod(SIZE) * np.abs(stress).max())
        for axis in range(3):  # a face carries its traction; the side walls next to it load it by opposite shares
            area = np.prod(SIZE) / SIZE[axis]
            for sign in (1.0, -1.0):
                face = sign * centred[:, axis] > 0.9 * half[axis]
                np.testing.assert_allclose(
                    force[face].sum(axis=0), sign * stress[axis] * area, atol=1e-11 * np.abs(stress).max() * area
                )


# ---------------------------------------------------------------------- stiffness


@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize(("divisions", "amount"), [((1, 1, 2), 0.0), ((1, 1, 2), 0.3), ((2, 2, 2), 0.3), ((2, 2, 2), 3.0)])
def test_stiffness_is_the_sum_of_rotated_element_matrices(divisions: tuple[int, int, int], amount: float, mixed: bool) -> None:
    """K = sum R B^T D B R^T V with the classical 6x12 matrix B, by dense loops; one material, and one for each element."""
    body, rng = block(divisions), np.random.default_rng(8)
    q = deformed(body, rng, amount)
    if mixed:  # the first element too, so that the others differ from its ratio
        body.lame_lambda[:] *= rng.uniform(0.2, 3.0, len(body.tets))
        body.lame_mu[:] *= rng.uniform(0.2, 3.0, len(body.tets))
    K = stiffness(body, q)
    dense = np.zeros_like(K)
    for tet, la, mu in zip(body.tets, body.lame_lambda, body.lame_mu, strict=True):
        (element,) = element_matrices(body.rest, tet[None], la, mu)
        rest, now = (p[tet[1:]] - p[tet[0]] for p in (body.rest, q.reshape(-1, 3)))
        turn = np.kron(np.eye(4), rotation_of(np.linalg.solve(rest, now).T))
        rows = (3 * tet[:, None] + np.arange(3)).ravel()
        dense[np.ix_(rows, rows)] += turn @ element @ turn.T
    np.testing.assert_allclose(K, dense, atol=1e-11 * np.abs(dense).max())


def test_stiffness_is_symmetric_with_rows_that_sum_to_nothing() -> None:
    body = block(2)
    K = stiffness(body, deformed(body, np.random.default_rng(9)))
    largest = np.abs(K).max()
    np.testing.assert_allclose(K, K.T, atol=1e-14 * largest)
    np.testing.assert_allclose(K.reshape(body.n_v, -1, 3).sum(axis=1), 0.0, atol=1e-12 * largest)
    values = np.linalg.eigvalsh(K)
    assert np.abs(values[:3]).max() < 1e-12 * largest and values.min() > -1e-12 * largest


@pytest.mark.parametrize("turned", [False, True])
def test_stiffness_is_the_derivative_of_the_force_at_rest(turned: bool) -> None:
    """Exact there, also after a rotation: d R = skew(R^T dF) to first order."""
    body = block()
    R = random_frame(np.random.default_rng(10)) if turned else np.eye(3)
    q = (body.rest @ R.T).ravel()
    K, h = stiffness(body, q), 1e-8
    numeric = np.empty_like(K)
    for i in range(body.n_q):
        ahead, back = q.copy(), q.copy()
        ahead[i] += h
        back[i] -= h
        body.update_elements(ahead)
        force = body.internal_force.copy()
        body.update_elements(back)
        numeric[:, i] = (force - body.internal_force).ravel() / (2 * h)
    np.testing.assert_allclose(numeric, K, atol=1e-6 * np.abs(K).max())


def test_the_pattern_is_that_of_the_mesh() -> None:
    body = block((1, 1, 2))
    indptr, indices = body.pattern()
    coupled = np.zeros((body.n_nodes, body.n_nodes), bool)
    for tet in body.tets:
        coupled[np.ix_(tet, tet)] = True
    assert not coupled.all()  # the mesh has nodes without a common element
    for column in range(body.n_v):
        rows = indices[indptr[column] : indptr[column + 1]]
        assert np.array_equal(rows, np.flatnonzero(np.repeat(coupled[:, column // 3], 3)))


# ---------------------------------------------------------------------- mass, momentum, step


def test_mass_and_momentum() -> None:
    body, rng = block(2), np.random.default_rng(12)
    volume = np.prod(SIZE)
    assert body.mass == pytest.approx(1100.0 * volume, rel=1e-13)
    expected = np.zeros(body.n_nodes)
    for tet in body.tets:
        expected[tet] += 1100.0 * np.linalg.det(body.rest[tet[1:]] - body.rest[tet[0]]) / 24.0
    np.testing.assert_allclose(body.node_mass, expected, rtol=1e-13)
    v = rng.standard_normal(body.n_v)
    q = body.initial_q()
    momentum, energy = np.zeros(3), 0.0
    for m, velocity in zip(expected, v.reshape(-1, 3), strict=True):
        momentum += m * velocity
        energy += 0.5 * m * velocity @ velocity
    np.testing.assert_allclose(body.momentum(q, v), momentum, rtol=1e-12)
    assert body.kinetic_energy(q, v) == pytest.approx(energy, rel=1e-12)


def test_the_start_is_at_rest_positions_with_one_velocity() -> None:
    mesh = box_tets(SIZE, 1)
    body = CorotationalBody("b", mesh.points, mesh.tets, RUBBER, velocity=np.array([1.0, 2.0, 3.0]))
    assert np.array_equal(body.initial_q(), mesh.points.ravel())
    assert np.array_equal(body.initial_v().reshape(-1, 3), np.tile([1.0, 2.0, 3.0], (8, 1)))
    body.initial_q()[:] = 0.0
    assert np.array_equal(body.initial_q(), mesh.points.ravel())  # a copy each time


def step_arrays(body: CorotationalBody, q: np.ndarray, v: np.ndarray, settings: StepSettings) -> tuple[np.ndarray, ...]:
    data, b, external = np.full(len(body.pattern()[1]), np.nan), np.full(body.n_v, np.nan), np.full(body.n_v, np.nan)
    body.assemble(q, v, 0.3, settings, data, b, external)
    return data, b, external


@pytest.mark.parametrize("theta", [0.5, 0.75, 1.0])
def test_assemble_is_equation_9_with_rayleigh_damping(theta: float) -> None:
    """M (vh - v)/(theta dt) + (alpha M + beta K) vh + f + theta dt K vh = m g; theta 1/2 gives eq. (9) of papers/001."""
    body, rng = block((1, 1, 2)), np.random.default_rng(13)
    q, v, dt = deformed(body, rng), rng.standard_normal(body.n_v), 0.01
    K = stiffness(body, q)
    M = np.diag(np.repeat(body.node_mass, 3))
    data, b, external = step_arrays(body, q, v, StepSettings(dt, theta, UP))
    A = matrix(body, data)
    gravity = M @ np.tile(UP, body.n_nodes)
    np.testing.assert_allclose(A, (1 / (theta * dt) + 0.7) * M + (theta * dt + 3e-3) * K, atol=1e-10 * np.abs(A).max())
    np.testing.assert_allclose(external, gravity, rtol=1e-13)
    np.testing.assert_allclose(b, M @ v / (theta * dt) - body.internal_force.ravel() + gravity, atol=1e-12 * np.abs(b).max())
    if theta == 0.5:
        np.testing.assert_allclose(A, 2 / dt * M + 0.7 * M + (0.5 * dt + 3e-3) * K, atol=1e-10 * np.abs(A).max())
    assert np.linalg.eigvalsh(A).min() > 0
    # the equation itself, at the velocity that solves it
    vh = np.linalg.solve(A, b)
    damping = 0.7 * M + 3e-3 * K
    left = M @ (vh - v) / (theta * dt) + damping @ vh + body.internal_force.ravel() + theta * dt * K @ vh
    np.testing.assert_allclose(left, gravity, atol=1e-9 * np.abs(b).max())
    # end of the step
    q_new, v_new = np.empty_like(q), np.empty_like(v)
    body.advance(q, v, vh, StepSettings(dt, theta, UP), q_new, v_new)
    np.testing.assert_allclose(q_new, q + dt * vh, rtol=1e-15)
    np.testing.assert_allclose((1 - theta) * v + theta * v_new, vh, atol=1e-13)


def test_loads_act_at_theta_dt() -> None:
    times: list[float] = []

    def total(t: float) -> np.ndarray:
        times.append(t)
        return np.array([1.0, 2.0, 3.0])

    settings = StepSettings(0.01, 0.5, np.zeros(3))
    body = block(load=total)
    q, v = body.initial_q(), np.zeros(body.n_v)
    _, b, external = step_arrays(body, q, v, settings)
    assert times == [pytest.approx(0.305)]
    share = body.node_mass / body.mass
    np.testing.assert_allclose(external.reshape(-1, 3), share[:, None] * [1.0, 2.0, 3.0], rtol=1e-13)
    np.testing.assert_allclose(b, external, atol=1e-12)
    nodal = np.random.default_rng(14).standard_normal((body.n_nodes, 3))
    body.load = lambda t: nodal
    np.testing.assert_allclose(step_arrays(body, q, v, settings)[2], nodal.ravel(), rtol=1e-13)


def test_inverted_elements_are_counted() -> None:
    body = block(1)
    x = body.rest.copy()
    body.update_elements(x.ravel())
    assert body.inverted_elements == 0
    mirrored = x * [1, 1, -1]
    body.update_elements(mirrored.ravel())
    assert body.inverted_elements == 6
    flat = x * [1, 1, 0]  # volume zero counts
    body.update_elements(flat.ravel())
    assert body.inverted_elements == 6
    corner = int(np.argmax(np.bincount(body.tets.ravel()) == 2))  # a corner with few elements, pushed through the block
    pushed = x.copy()
    pushed[corner] -= 3.0 * (x[corner] - x.mean(axis=0))
    body.update_elements(pushed.ravel())
    expected = sum(np.linalg.det(pushed[t[1:]] - pushed[t[0]]) <= 0 for t in body.tets)
    assert 0 < expected < 6 and body.inverted_elements == expected


def test_the_same_positions_are_not_computed_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    body, rng = block(), np.random.default_rng(15)
    q, v, settings = deformed(body, rng), rng.standard_normal(24), StepSettings(0.01, 0.5, UP)
    first = step_arrays(body, q, v, settings)
    energy = body.elastic_energy(q)
    calls = []
    original = kernels.element_forces
    monkeypatch.setattr(kernels, "element_forces", lambda *a: calls.append(1) or original(*a))
    second = step_arrays(body, q.copy(), v, settings)
    assert all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))
    assert body.elastic_energy(q) == energy and calls == []
    moved = q.copy()
    moved[0] += 1e-12
    body.update_elements(moved)
    body.update_elements(q)  # back again: computed anew, and the same
    assert len(calls) == 2
    assert body.elastic_energy(q) == pytest.approx(energy, rel=1e-12)


def test_all_tetrahedra_carry_their_own_material() -> None:
    """Two constants per element in the kernels: twice as stiff elements give twice the force there."""
    body, rng = block(), np.random.default_rng(16)
    q = deformed(body, rng)
    body.update_elements(q)
    soft, K = body.internal_force.copy(), stiffness(body, q)
    body.lame_mu[:] *= 2.0
    body.lame_lambda[:] *= 2.0
    body.update_elements(q + 0.0 * q)  # same positions: nothing happens
    assert np.array_equal(body.internal_force, soft)
    body._updated_at[:] = np.nan
    body.update_elements(q)
    np.testing.assert_allclose(body.internal_force, 2.0 * soft, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(stiffness(body, q), 2.0 * K, atol=1e-10 * np.abs(K).max())

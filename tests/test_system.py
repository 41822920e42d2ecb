"""The sparse system of all bodies: layout, fixed pattern, prescribed velocities by elimination, reactions."""

from __future__ import annotations

import numpy as np
import pytest

from contact import Group
from femsim.base.rotations import quaternion_from_vector
from femsim.model.bodies.articulated import ArticulatedBody, Link
from femsim.model.bodies.body import StepSettings
from femsim.model.bodies.corotational import CorotationalBody
from femsim.model.bodies.tree_joints import Motor
from femsim.step.state import State
from femsim.step.system import System
from materials import Elastic
from meshes.generate import box_tets

G = np.array([0.0, 0.0, -9.81])
DT = 0.01


def make_bodies() -> tuple[CorotationalBody, ArticulatedBody, ArticulatedBody]:
    """A soft block of 12 nodes, a gripper of 8 coordinates, a rigid body of 6."""
    mesh = box_tets((0.02, 0.02, 0.04), (1, 1, 2))
    soft = CorotationalBody(
        "soft", mesh.points, mesh.tets, Elastic(1e5, 0.3, 1000.0, rayleigh_beta=1e-3), velocity=np.array([0.1, 0.0, -0.2])
    )
    along = np.array([1.0, 0.0, 0.0])
    links = [
        Link("base", 0.8, np.diag([1e-3, 2e-3, 3e-3]), np.zeros(3)),
        Link("left", 0.1, 1e-4 * np.eye(3), np.array([0.05, 0.0, 0.1]), along),
        Link("right", 0.15, 2e-4 * np.eye(3), np.array([-0.05, 0.0, 0.1]), -along, damping=1.0),
    ]
    gripper = ArticulatedBody(
        "gripper",
        links,
        position=np.array([0.0, 0.0, 0.3]),
        quaternion=quaternion_from_vector(np.array([0.2, -0.5, 0.1])),
        velocity=np.array([0.0, 0.1, 0.3]),
        angular_velocity=np.array([1.0, -2.0, 0.5]),
        motors=[Motor(effort=lambda t: 2.0), Motor()],
    )
    rigid = ArticulatedBody(
        "rigid",
        [Link("rigid", 0.5, np.diag([1e-3, 1e-3, 4e-4]), np.zeros(3))],
        position=np.zeros(3),
        quaternion=np.array([1.0, 0, 0, 0]),
        velocity=np.zeros(3),
        angular_velocity=np.array([0.0, 3.0, 1.0]),
    )
    return soft, gripper, rigid


def deformed_state(system: System) -> State:
    state = system.initial_state()
    rng = np.random.default_rng(0)
    state.q[system.q_slices[0]] += 1e-3 * rng.standard_normal(36)
    state.v[system.v_slices[0]] += 0.1 * rng.standard_normal(36)
    return state


def prescribe(system: System) -> np.ndarray:
    """The base of the gripper and the four lowest nodes of the block."""
    rows = np.zeros(system.n, bool)
    rows[:12] = True
    rows[system.v_slices[1].start : system.v_slices[1].start + 6] = True
    system.set_prescribed(rows)
    return rows


def dense_blocks(
    system: System, state: State, settings: StepSettings, v_start: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A, b and external of the bodies side by side, by dense matrices, for a start velocity."""
    A, b, external = np.zeros((system.n, system.n)), np.zeros(system.n), np.zeros(system.n)
    for body, q, v in zip(system.bodies, system.q_slices, system.v_slices, strict=True):
        indptr, indices = body.pattern()
        data, own_b, own_external = np.empty(len(indices)), np.empty(body.n_v), np.empty(body.n_v)
        body.assemble(state.q[q], v_start[v], state.t, settings, data, own_b, own_external)
        block = np.zeros((body.n_v, body.n_v))
        for column in range(body.n_v):
            for k in range(indptr[column], indptr[column + 1]):
                block[indices[k], column] = data[k]
        A[v, v], b[v], external[v] = block, own_b, own_external
    return A, b, external


# ---------------------------------------------------------------------- layout


def test_bodies_lie_side_by_side_in_their_order() -> None:
    system = System(make_bodies())
    assert (system.n, system.n_q) == (36 + 8 + 6, 36 + 9 + 7)
    assert system.v_slices == [slice(0, 36), slice(36, 44), slice(44, 50)]
    assert system.q_slices == [slice(0, 36), slice(36, 45), slice(45, 52)]
    assert system.groups == (
        Group("soft", 0, 36, "nodes"), Group("gripper", 36, 44, "generalized", (-1, 0, 1, 2, 3, 4, 5, 5)),
        Group("rigid", 44, 50, "generalized"),
    )  # fmt: skip
    state = system.initial_state()
    for body, q, v in zip(system.bodies, system.q_slices, system.v_slices, strict=True):
        assert np.array_equal(state.q[q], body.initial_q()) and np.array_equal(state.v[v], body.initial_v())
    assert state.t == 0.0


def test_a_system_may_be_empty() -> None:
    system = System([])
    state = system.initial_state()
    system.assemble(state, StepSettings(DT, 0.5, G), np.zeros(0))
    assert system.n == 0 and system.A.shape == (0, 0) and state.q.shape == (0,)


def test_a_copy_of_a_state_is_independent() -> None:
    state = System(make_bodies()).initial_state()
    copy = state.copy()
    copy.q[:] = 7.0
    copy.v[:] = 8.0
    copy.t = 9.0
    assert not np.any(state.q == 7.0) and not np.any(state.v == 8.0) and state.t == 0.0


@pytest.mark.parametrize("theta", [0.5, 1.0])
def test_a_and_b_are_those_of_the_bodies(theta: float) -> None:
    system = System(make_bodies())
    state, settings = deformed_state(system), StepSettings(DT, theta, G)
    system.assemble(state, settings, np.zeros(system.n))
    A, b, external = dense_blocks(system, state, settings, state.v)
    assert np.array_equal(system.A.toarray(), A)
    assert np.array_equal(system.b, b) and np.array_equal(system.external, external)
    assert np.all(system.reaction(np.ones(50), np.ones(50)) == 0.0)


def test_matrix_and_pattern_are_the_same_objects_in_every_step() -> None:
    """COND keeps what it derives from the pattern as long as indptr and indices are the same objects."""
    system = System(make_bodies())
    prescribe(system)
    state, settings = deformed_state(system), StepSettings(DT, 0.5, G)
    A, indptr, indices, data, b = system.A, system.A.indptr, system.A.indices, system.A.data, system.b
    pattern = indptr.copy(), indices.copy()
    for _ in range(3):
        system.assemble(state, settings, np.full(system.n, 0.1))
        state = system.advance(state, np.linalg.solve(system.A.toarray(), system.b), settings)
        assert system.A is A and system.b is b
        assert system.A.indptr is indptr and system.A.indices is indices and system.A.data is data
        assert np.array_equal(indptr, pattern[0]) and np.array_equal(indices, pattern[1])
    assert system.A.has_sorted_indices


def test_configurations_that_are_known_are_those_of_the_coordinates() -> None:
    """Back and forth among three poses, also one changed in place, and what a caller does to an answer: as a new body says."""
    body = make_bodies()[1]
    q, v = body.initial_q(), np.arange(1.0, 9.0)
    poses = [q, q + 0.01, q - 0.02]
    for k in (0, 1, 0, 2, 1, 0, 2, 2):
        fresh = make_bodies()[1]
        assert np.array_equal(body.momentum(poses[k], v), fresh.momentum(poses[k], v))
        assert body.kinetic_energy(poses[k], v) == fresh.kinetic_energy(poses[k], v)
        body.link_pose(poses[k], 1)[0][:] = 7.0
        for mine, other in zip(body.link_pose(poses[k], 2), fresh.link_pose(poses[k], 2), strict=True):
            assert np.array_equal(mine, other)
    q[8] += 0.1
    assert np.array_equal(body.link_pose(q, 2)[1], make_bodies()[1].link_pose(q, 2)[1])
    assert np.array_equal(body.link_jacobian(q, 2), make_bodies()[1].link_jacobian(q, 2))


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_a_body_that_turns_about_one_axis_has_its_centrifugal_force(axis: int) -> None:
    """The same right-hand side as with a hair of rotation about the other axes; none left out because one component is zero."""
    body, settings = make_bodies()[1], StepSettings(DT, 0.5, np.zeros(3))
    data, external = np.empty(64), np.empty(8)
    b, beside = np.empty(8), np.empty(8)
    v = np.zeros(8)
    v[3 + axis] = 20.0
    body.assemble(body.initial_q(), v, 0.0, settings, data, b, external)
    body.assemble(body.initial_q(), v + 1e-12, 0.0, settings, data, beside, external)
    np.testing.assert_allclose(b, beside, atol=1e-8)


# ---------------------------------------------------------------------- prescribed velocities


@pytest.mark.parametrize("theta", [0.5, 0.75, 1.0])
def test_prescribed_rows_are_the_elimination_by_hand(theta: float) -> None:
    """A_ff v_f = b_f - A_fp v_p + (J^T lam)_f, and the reaction is what the rows taken out then miss."""
    system, rng = System(make_bodies()), np.random.default_rng(1)
    state, settings = deformed_state(system), StepSettings(DT, theta, G)
    p = prescribe(system)
    given = np.where(p, rng.standard_normal(system.n), 99.0)  # free rows of it must not count
    system.assemble(state, settings, given)
    v_start = np.where(p, given - theta * (given - state.v), state.v)
    A, b, external = dense_blocks(system, state, settings, v_start)
    contact = rng.standard_normal(system.n)
    v = np.where(p, given, 0.0)
    v[~p] = np.linalg.solve(A[np.ix_(~p, ~p)], b[~p] - A[np.ix_(~p, p)] @ given[p] + contact[~p])
    found = np.linalg.solve(system.A.toarray(), system.b + np.where(p, 0.0, contact))
    np.testing.assert_allclose(found, v, rtol=1e-9, atol=1e-11)
    reaction = system.reaction(found, contact)
    expected = A @ v - b - contact
    assert np.all(reaction[~p] == 0.0)
    np.testing.assert_allclose(reaction[p], expected[p], rtol=1e-8, atol=1e-8)
    assert np.abs(expected[~p]).max() < 1e-9 * np.abs(expected).max()
    np.testing.assert_allclose(system.external, external, rtol=1e-13)
    # still symmetric and positive definite, with no coupling left
    dense = system.A.toarray()
    np.testing.assert_allclose(dense, dense.T, rtol=0, atol=1e-15 * dense.max())
    assert np.linalg.eigvalsh(dense).min() > 0
    assert np.all(dense[np.ix_(p, ~p)] == 0.0)
    assert np.array_equal(dense[p][:, p], np.diag(np.diag(A)[p])) and np.array_equal(dense[np.ix_(~p, ~p)], A[np.ix_(~p, ~p)])


@pytest.mark.parametrize("theta", [0.5, 0.75, 1.0])
def test_the_reaction_of_a_driven_body_is_newtons_law(theta: float) -> None:
    """A free-standing rigid body brought from rest to w in one step: m w / dt - m g - contact force, whatever theta is."""
    rigid = make_bodies()[2]
    system = System([rigid])
    state, settings = system.initial_state(), StepSettings(DT, theta, G)
    state.v[:] = 0.0
    system.set_prescribed(np.ones(6, bool))
    w = np.array([0.3, -0.2, 0.5, 0.0, 0.0, 0.0])
    system.assemble(state, settings, w)
    v = np.linalg.solve(system.A.toarray(), system.b)
    np.testing.assert_allclose(v, w, rtol=1e-13, atol=1e-15)
    contact = np.array([1.0, 2.0, 3.0, 0.1, 0.2, 0.3])
    expected = np.concatenate([0.5 * w[:3] / DT - 0.5 * G - contact[:3], -contact[3:]])
    np.testing.assert_allclose(system.reaction(v, contact), expected, atol=1e-10)
    new = system.advance(state, v, settings)
    assert np.array_equal(new.v, v)
    np.testing.assert_allclose(new.q[:3], DT * w[:3], rtol=1e-13)


def test_what_is_prescribed_can_change() -> None:
    system = System(make_bodies())
    state, settings = deformed_state(system), StepSettings(DT, 0.5, G)
    prescribe(system)
    system.assemble(state, settings, np.full(system.n, 0.1))
    system.set_prescribed(np.zeros(system.n, bool))
    system.assemble(state, settings, np.full(system.n, 0.1))
    A, b, _ = dense_blocks(system, state, settings, state.v)
    assert np.array_equal(system.A.toarray(), A) and np.array_equal(system.b, b)


@pytest.mark.parametrize("theta", [0.5, 1.0])
def test_advance_moves_each_body_and_ends_with_prescribed_velocities(theta: float) -> None:
    system, rng = System(make_bodies()), np.random.default_rng(2)
    state, settings = deformed_state(system), StepSettings(DT, theta, G)
    state.t = 0.3
    before = state.copy()
    p = prescribe(system)
    v_hat = rng.standard_normal(system.n)
    v_end = rng.standard_normal(system.n)
    system.assemble(state, settings, v_hat, v_end)
    new = system.advance(state, v_hat, settings)
    assert np.array_equal(state.q, before.q) and np.array_equal(state.v, before.v) and state.t == 0.3
    assert new.t == pytest.approx(0.31, rel=1e-14)
    for body, q, v in zip(system.bodies, system.q_slices, system.v_slices, strict=True):
        q_new, v_new = np.empty(body.n_q), np.empty(body.n_v)
        body.advance(state.q[q], state.v[v], v_hat[v], settings, q_new, v_new)
        assert np.array_equal(new.q[q], q_new)
        free = ~p[v]
        assert np.array_equal(new.v[v][free], v_new[free])
    assert np.array_equal(new.v[p], v_end[p])

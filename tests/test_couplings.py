"""Couplings in the sparse system: frames on links and on soft patches, held ends against differences, elimination, reactions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from contact import make_problem
from contact.nodalize import body_blocks
from contact.solvers import make_solver
from femsim.base.rotations import quaternion_conjugate, quaternion_from_vector, quaternion_multiply, vector_from_quaternion
from femsim.model.bodies.articulated import ArticulatedBody, Link
from femsim.model.bodies.body import StepSettings
from femsim.model.bodies.corotational import CorotationalBody
from femsim.model.bodies.rod import Rod
from femsim.model.bodies.rod_end import RodEnd
from femsim.model.couplings import HeldEnd
from femsim.model.frames import HoldFrame, LinkFrame, PatchFrame, surface_patch
from femsim.step.state import State
from femsim.step.system import System
from materials import Elastic, circular_section
from meshes import boundary_triangles, box_tets

STEP = StepSettings(0.01, 1.0, np.array([0.0, 0.0, -9.81]))
HOLDERS = ("base", "finger", "soft")
RUBBER = Elastic(2e6, 0.4, 1200.0, rayleigh_beta=0.0)


def gripper() -> ArticulatedBody:
    along = np.array([0.6, 0.0, 0.8])
    links = [
        Link("base", 0.8, np.diag([1e-3, 2e-3, 3e-3]), np.zeros(3)),
        Link("left", 0.1, 1e-4 * np.eye(3), np.array([0.05, 0.0, 0.02]), along),
        Link("right", 0.15, 2e-4 * np.eye(3), np.array([-0.05, 0.0, 0.02]), -along, damping=1.0),
    ]
    return ArticulatedBody(
        "gripper", links, position=np.array([0.0, 0.01, -0.03]), quaternion=quaternion_from_vector(np.array([0.2, -0.5, 0.1])),
        velocity=np.zeros(3), angular_velocity=np.zeros(3),
    )  # fmt: skip


def block() -> CorotationalBody:
    mesh = box_tets((0.04, 0.03, 0.02), (4, 3, 2))
    return CorotationalBody("block", mesh.points - [0, 0, 0.01], mesh.tets, Elastic(1e5, 0.3, 1000.0), velocity=np.zeros(3))


def make_frame(holder: str, pose: np.ndarray) -> tuple[ArticulatedBody | CorotationalBody, HoldFrame]:
    if holder == "soft":
        soft = block()
        nodes, weights, _ = surface_patch(soft, pose[:3], 0.012)
        return soft, PatchFrame(soft, nodes, weights, pose)
    body = gripper()
    return body, LinkFrame(body, 1 if holder == "finger" else 0, pose)


def held(holder: str, end: int, kind: str = "clamped") -> tuple[System, HeldEnd]:
    """A rod of four links that stands on its holder at the origin, by its start or its end, and the system of both."""
    points = np.linspace((0.0, 0.0, 0.0), (0.01, 0.0, 0.06), 5)
    points = points if end == 0 else points[::-1]
    on = RodEnd(kind, on=holder)  # type: ignore[arg-type]
    rod = Rod("rod", points, circular_section(0.003), RUBBER, **{("start", "end")[end]: on})  # type: ignore[arg-type]
    body, frame = make_frame(holder, rod.end_frames[end].copy())
    coupling = HeldEnd("rod.end", rod, end, frame, rod_index=1, holder_index=0)
    return System([body, rod], [coupling]), coupling


def moved(system: System, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Coordinates after unit time of a velocity, by the exponential map."""
    out = q.copy()
    for body, own, rows in zip(system.bodies, system.q_slices, system.v_slices, strict=True):
        nothing = np.zeros(body.n_v)
        body.advance(q[own], nothing, v[rows], StepSettings(1.0, 1.0, np.zeros(3)), out[own], nothing.copy())
    return out


def disturbed(system: System, size: float, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return moved(system, system.initial_state().q, size * rng.standard_normal(system.n))


def energy(system: System, coupling: HeldEnd, q: np.ndarray) -> float:
    """Elastic energy of the rod, its held end included."""
    coupling.prepare([q[system.q_slices[k]] for k, _ in coupling.rows], 0.0)
    return system.bodies[1].elastic_energy(q[system.q_slices[1]])


def assembled(system: System, coupling: HeldEnd, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Block and right-hand side of the coupling at coordinates."""
    system.assemble(State(q, np.zeros(system.n), 0.0), STEP, np.zeros(system.n))
    m = sum(len(rows) for _, rows in coupling.rows)
    matrix, b = np.empty((m, m)), np.empty(m)
    coupling.assemble(STEP, matrix, b)
    return matrix, b


# ---------------------------------------------------------------------- frames


@pytest.mark.parametrize("holder", HOLDERS)
def test_frames_move_as_their_jacobians_say(holder: str) -> None:
    """Difference of poses after a small motion, at a disturbed state."""
    system, coupling = held(holder, 0)
    frame = coupling._frame
    q, rng = disturbed(system, 2e-3), np.random.default_rng(1)
    own, rows = system.q_slices[0], frame.rows
    h = 1e-6
    for _ in range(3):
        v = np.zeros(system.n)
        v[rows] = rng.standard_normal(len(rows))
        poses = [frame.place(moved(system, q, s * h * v)[own]) for s in (-1, 1)]
        turn = vector_from_quaternion(quaternion_multiply(poses[1][3:], quaternion_conjugate(poses[0][3:])))
        frame.place(q[own])
        twist = frame.jacobian() @ v[rows]
        scale = np.abs(twist).max()
        assert (poses[1][:3] - poses[0][:3]) / (2 * h) == pytest.approx(twist[:3], abs=1e-7 * scale)
        assert turn / (2 * h) == pytest.approx(twist[3:], abs=1e-6 * scale)


@pytest.mark.parametrize("holder", HOLDERS)
def test_frames_follow_rigid_motions_exactly(holder: str) -> None:
    """A holder that moves as a whole takes its frame with it, and a rigid velocity field gives its own twist."""
    pose = np.array([0.004, -0.002, 0.001, *quaternion_from_vector(np.array([0.3, 0.1, -0.2]))])
    body, frame = make_frame(holder, pose)
    turn, shift = Rotation.from_rotvec([0.5, -1.2, 0.8]), np.array([0.1, 0.2, -0.3])
    q = body.initial_q()
    if isinstance(body, CorotationalBody):
        q = (turn.apply(q.reshape(-1, 3)) + shift).ravel()
    else:
        q[:3] = turn.apply(q[:3]) + shift
        q[3:7] = quaternion_multiply(quaternion_from_vector(turn.as_rotvec()), q[3:7])
    new = frame.place(q)
    assert new[:3] == pytest.approx(turn.apply(pose[:3]) + shift, abs=1e-14)
    expected = turn * Rotation.from_quat(pose[[4, 5, 6, 3]])
    assert (Rotation.from_quat(new[[4, 5, 6, 3]]).inv() * expected).magnitude() < 1e-14
    u, w = np.array([0.2, -0.1, 0.4]), np.array([1.0, 2.0, -0.5])
    if isinstance(body, CorotationalBody):
        v = (u + np.cross(w, q.reshape(-1, 3)[frame.nodes])).ravel()
    else:
        v = np.zeros(len(frame.rows))
        v[:6] = *(u + np.cross(w, q[:3])), *w
    assert frame.jacobian() @ v == pytest.approx([*(u + np.cross(w, new[:3])), *w], abs=1e-13)


def test_a_patch_spreads_force_and_torque_over_its_nodes() -> None:
    """Sum and moment of the nodal forces are those on the frame, also when the patch is bent."""
    system, coupling = held("soft", 0)
    frame, rng = coupling._frame, np.random.default_rng(2)
    q = disturbed(system, 2e-3)[system.q_slices[0]]
    place = frame.place(q)[:3]
    wrench = rng.standard_normal(6)
    forces = (frame.jacobian().T @ wrench).reshape(-1, 3)
    assert forces.sum(axis=0) == pytest.approx(wrench[:3], abs=1e-13)
    arms = q.reshape(-1, 3)[frame.nodes] - place
    assert np.cross(arms, forces).sum(axis=0) == pytest.approx(wrench[3:], abs=1e-13)


def test_the_patch_is_the_closest_part_of_the_surface() -> None:
    body = block()
    for point, radius, expected in (
        ((0.0, 0.005, 0.003), 1e-4, 9),  # above an inner node of the top with eight triangles
        ((0.005, 0.005, 0.0), 1e-4, None),
        ((0.0, 0.005, 0.0), 0.011, None),
    ):
        nodes, weights, distance = surface_patch(body, np.array(point), radius)
        assert distance == pytest.approx(point[2], abs=1e-15)
        top = np.flatnonzero(body.rest[:, 2] > -1e-9)
        assert set(nodes) <= set(top) and (weights > 0).all()
        away = np.linalg.norm(body.rest[top] - [point[0], point[1], 0.0], axis=1)
        assert set(top[away <= radius]) <= set(nodes)
        if expected:
            assert len(nodes) == expected
    nodes, weights, _ = surface_patch(body, np.zeros(3), 1.0)  # all of the surface: its whole area
    assert weights.sum() == pytest.approx(2 * (0.04 * 0.03 + 0.04 * 0.02 + 0.03 * 0.02))
    # from all sides: brute force over points of all triangles
    rng = np.random.default_rng(0)
    corners = body.rest[boundary_triangles(body.tets)]
    weights = rng.dirichlet([0.4, 0.4, 0.4], size=(len(corners), 2000))
    samples = np.einsum("tsk,tkc->tsc", weights, corners).reshape(-1, 3)
    for point in rng.uniform([-0.03, -0.03, -0.03], [0.03, 0.03, 0.01], (20, 3)):
        least = np.linalg.norm(samples - point, axis=1).min()
        assert least - 1e-3 < surface_patch(body, point, 1e-3)[2] <= least + 1e-12


# ---------------------------------------------------------------------- the block of a held end


@pytest.mark.parametrize("kind", ["clamped", "hinged"])
@pytest.mark.parametrize("end", [0, 1])
@pytest.mark.parametrize("holder", HOLDERS)
def test_forces_are_the_derivative_of_the_energy(holder: str, end: int, kind: str) -> None:
    """At a stressed state, by central differences over all rows of the holder; on the link the rod has the force itself."""
    system, coupling = held(holder, end, kind)
    q = disturbed(system, 1e-3)
    _, b = assembled(system, coupling, q)
    index, rows = coupling.rows[0]
    h = 1e-6
    for k, row in enumerate(system.v_slices[index].start + rows):
        v = np.zeros(system.n)
        v[row] = h
        slope = (energy(system, coupling, moved(system, q, v)) - energy(system, coupling, moved(system, q, -v))) / (2 * h)
        assert -b[k] == pytest.approx(slope, abs=2e-6 * np.abs(b).max())
    assert np.abs(b).max() > 0.01 and not b[len(rows) :].any()


@pytest.mark.parametrize("kind", ["clamped", "hinged"])
@pytest.mark.parametrize("holder", HOLDERS)
def test_the_block_is_the_second_derivative_where_nothing_is_stressed(holder: str, kind: str) -> None:
    """Without stress A is theta dt times the Hessian of the rod's energy, on the holder's rows and between them and the link."""
    system, coupling = held(holder, 1, kind)
    q = system.initial_state().q
    matrix, _ = assembled(system, coupling, q)
    m = len(coupling.rows[0][1])
    rows = np.concatenate([system.v_slices[k].start + own for k, own in coupling.rows])
    h = 1e-7
    rng = np.random.default_rng(3)
    for _ in range(3):
        v = np.zeros(system.n)
        v[rows] = rng.standard_normal(len(rows))
        slopes = [-assembled(system, coupling, moved(system, q, s * h * v))[1][:m] for s in (-1, 1)]
        hessian = (slopes[1] - slopes[0]) / (2 * h)
        assert STEP.dt * hessian == pytest.approx(matrix[:m] @ v[rows], abs=1e-6 * np.abs(matrix[:m]).max())
    assert not matrix[m:, m:].any() and np.array_equal(matrix, matrix.T)


@pytest.mark.parametrize("kind", ["clamped", "hinged"])
@pytest.mark.parametrize("holder", HOLDERS)
def test_the_system_is_the_sum_of_the_blocks_symmetric_and_positive(holder: str, kind: str) -> None:
    """Whatever the stress: bodies side by side plus the block of the coupling, and never indefinite."""
    for seed in range(4):
        system, coupling = held(holder, 0, kind)
        q = disturbed(system, (1e-3, 1e-2, 0.1, 0.3)[seed] * (0.02 if holder == "soft" else 1.0), seed)
        block, b = assembled(system, coupling, q)
        A, own_b = system.A.toarray(), system.b.copy()
        alone = System(system.bodies)
        alone.assemble(State(q, np.zeros(system.n), 0.0), STEP, np.zeros(system.n))
        # bodies alone place no frame: the coupling has left it where it was
        rows = np.concatenate([system.v_slices[k].start + own for k, own in coupling.rows])
        expected, expected_b = alone.A.toarray(), alone.b.copy()
        expected[np.ix_(rows, rows)] += block
        expected_b[rows] += b
        assert pytest.approx(expected, abs=1e-12 * np.abs(A).max()) == A
        assert own_b == pytest.approx(expected_b, abs=1e-12 * np.abs(own_b).max())
        assert pytest.approx(A.T, abs=1e-13 * np.abs(A).max()) == A
        scale = 1.0 / np.sqrt(A.diagonal())
        assert np.linalg.eigvalsh(scale[:, None] * A * scale).min() > 1e-8
        assert np.linalg.eigvalsh(block[:-6, :-6]).min() > -1e-10 * np.abs(block).max()


def test_damping_of_the_joints_counts() -> None:
    system, coupling = held("base", 0)
    q = system.initial_state().q
    plain, _ = assembled(system, coupling, q)
    object.__setattr__(system.bodies[1].elastic, "rayleigh_beta", 0.03)
    try:
        damped, _ = assembled(system, coupling, q)
    finally:
        object.__setattr__(RUBBER, "rayleigh_beta", 0.0)
    assert damped == pytest.approx(4.0 * plain, rel=1e-12)


def test_prescribed_rows_of_a_holder_are_eliminated() -> None:
    """With a driven base v is that of the dense system with these rows given, and the reaction is its residual there."""
    system, _ = held("finger", 0)
    rng = np.random.default_rng(5)
    state = State(disturbed(system, 2e-3), 0.01 * rng.standard_normal(system.n), 0.0)
    given = np.arange(6)
    v_given = np.zeros(system.n)
    v_given[given] = 0.05 * rng.standard_normal(6)
    start = state.v.copy()
    start[given] = v_given[given] - STEP.theta * (v_given[given] - state.v[given])
    system.assemble(State(state.q, start, 0.0), STEP, np.zeros(system.n))
    A, b = system.A.toarray(), system.b.copy()
    free = np.arange(6, system.n)
    expected = v_given.copy()
    expected[free] = np.linalg.solve(A[np.ix_(free, free)], b[free] - A[np.ix_(free, given)] @ v_given[given])
    prescribed = np.zeros(system.n, dtype=np.bool_)
    prescribed[given] = True
    system.set_prescribed(prescribed)
    system.assemble(state, STEP, v_given)
    v = np.linalg.solve(system.A.toarray(), system.b)
    assert v == pytest.approx(expected, abs=1e-11 * np.abs(expected).max())
    reaction = system.reaction(v, np.zeros(system.n))
    assert reaction[given] == pytest.approx((A @ expected - b)[given], rel=1e-9)
    assert not reaction[free].any()
    joined = A[np.ix_(given, free[2:])]
    assert np.abs(joined).max() > 1.0  # the rod does pull on the driven rows


def test_forces_of_the_coupling_are_opposite_and_those_of_the_sensor() -> None:
    system, _ = held("base", 1)
    state = State(disturbed(system, 1e-3), np.zeros(system.n), 0.0)
    system.assemble(state, STEP, np.zeros(system.n))
    v = np.linalg.solve(system.A.toarray(), system.b)
    system.accept(v)
    system.advance(state, v, STEP)
    rod = system.bodies[1]
    assert system.coupling_forces(0) == pytest.approx(rod.end_wrench[1:, :3], abs=0)
    assert system.coupling_forces(1) == pytest.approx(-rod.end_wrench[1:, :3], abs=0)
    assert rod.end_power == 0.0 and np.abs(rod.end_wrench[1]).max() > 1e-3


# ---------------------------------------------------------------------- solvers see joined groups


def test_blocks_of_bodies_leave_out_what_joins_them() -> None:
    """Whether the rod's rows come before or behind those of its holder."""
    for rod_first in (False, True):
        system, coupling = held("finger", 0)
        if rod_first:
            body, rod = system.bodies
            coupling = HeldEnd("c", rod, 0, coupling._frame, rod_index=0, holder_index=1)
            system = System([rod, body], [coupling])
        system.assemble(system.initial_state(), STEP, np.zeros(system.n))
        problem = make_problem(system.A, system.b, np.zeros((0, system.n)), np.zeros((0, 3)), 0.5, dt=0.01, groups=system.groups)
        rows = system.v_slices[int(rod_first)]
        assert body_blocks(problem)[int(rod_first)] == pytest.approx(system.A.toarray()[rows, rows], abs=0)


def test_banded_takes_rods_that_stand_alone_only() -> None:
    """Two rods side by side fit; with one entry between them, or a holder in v, they do not."""
    rods = [
        Rod(name, np.linspace((x, 0, 0), (x, 0, 0.05), 4), circular_section(0.002), RUBBER, start=RodEnd("clamped"))
        for name, x in (("a", 0.0), ("b", 0.1), ("c", 0.2))
    ]
    system = System(rods)
    system.assemble(system.initial_state(), STEP, np.zeros(system.n))
    none = np.zeros((0, system.n)), np.zeros((0, 3)), 0.5
    problem = make_problem(system.A, system.b, *none, dt=0.01, groups=system.groups)
    banded, auto = make_solver("banded"), make_solver("auto")
    assert banded.fits(problem) and auto.pick(problem) == "banded"  # type: ignore[attr-defined]
    A = system.A.tolil()
    A[0, 36] = A[36, 0] = 1e-3 * A[0, 0]
    joined = make_problem(A, system.b, *none, dt=0.01, groups=system.groups)
    assert not banded.fits(joined) and auto.pick(joined) != "banded"  # type: ignore[attr-defined]
    assert auto.solve(joined).status == "converged"


@pytest.mark.parametrize("kind", ["clamped", "hinged"])
def test_a_pull_along_the_lever_holds_the_body_as_the_second_derivative_says(kind: str) -> None:
    """A taut rod in line with the lever of its frame: turning the holder across it meets pull times lever and more, exactly."""
    links = [Link("bob", 0.8, 1e-3 * np.eye(3), np.zeros(3))]
    bob = ArticulatedBody(
        "bob",
        links,
        position=np.zeros(3),
        quaternion=np.array([1.0, 0, 0, 0]),
        velocity=np.zeros(3),
        angular_velocity=np.zeros(3),
    )
    rod = Rod(
        "rod", np.linspace((0.03, 0, 0), (0.09, 0, 0), 4), circular_section(0.003), RUBBER,
        start=RodEnd(kind, on="bob"),  # type: ignore[arg-type]
    )  # fmt: skip
    coupling = HeldEnd("c", rod, 0, LinkFrame(bob, 0, rod.end_frames[0].copy()), rod_index=1, holder_index=0)
    system = System([bob, rod], [coupling])
    q = system.initial_state().q
    rod.centres(q[7:])[:, 0] += 1e-3
    matrix, b = assembled(system, coupling, q)
    assert b[0] > 1.0  # N, away from the body
    h = 1e-6
    for row in (4, 5):
        v = np.zeros(system.n)
        v[row] = h
        slopes = [-assembled(system, coupling, moved(system, q, s * v))[1][3:6] for s in (-1, 1)]
        hessian = (slopes[1] - slopes[0]) / (2 * h)
        assert matrix[3:6, row] / STEP.dt == pytest.approx(hessian, abs=1e-5 * np.abs(hessian).max())
        assert hessian[row - 3] > 0.03 * b[0]

"""Rigid bodies and grippers: kinematics by finite differences, dynamics by conservation laws, drives by formula."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pytest
from pendulums import PENDULUMS, paths
from slow_twins import link_velocity, moved_pose, random_frame, rotation_rate

import femsim as fs
from femsim.base.rotations import quaternion_from_vector, quaternion_to_matrix
from femsim.model.bodies.articulated import ArticulatedBody, Link
from femsim.model.bodies.body import StepSettings, StepStart
from femsim.model.bodies.tree_joints import Motor

NO_GRAVITY = np.zeros(3)
G = np.array([0.4, -0.3, -9.81])


def random_inertia(rng: np.random.Generator, mass: float) -> np.ndarray:
    """Inertia of a cloud of points: any real body's."""
    x = 0.1 * rng.standard_normal((6, 3))
    x -= x.mean(axis=0)
    return mass / 6 * sum(p @ p * np.eye(3) - np.outer(p, p) for p in x)


def body_of(rng: np.random.Generator, joints: int, damping: Sequence[float] = (), **options: object) -> ArticulatedBody:
    """A base with prismatic links in random directions, at a random pose and with random velocities."""
    damping = damping or [0.0] * joints
    links = [Link("base", 1.3, random_inertia(rng, 1.3), np.zeros(3))]
    for k in range(joints):
        axis = rng.standard_normal(3)
        mass = 0.2 + 0.1 * k
        links.append(
            Link(
                f"finger{k}",
                mass,
                random_inertia(rng, mass),
                0.1 * rng.standard_normal(3),
                axis / np.linalg.norm(axis),
                damping[k],
            )
        )
    return ArticulatedBody(
        "gripper",
        links,
        position=rng.standard_normal(3),
        quaternion=quaternion_from_vector(rng.standard_normal(3)),
        joint_positions=0.05 * rng.standard_normal(joints),
        velocity=rng.standard_normal(3),
        angular_velocity=2.0 * rng.standard_normal(3),
        **options,
    )


def assembled(
    body: ArticulatedBody, q: np.ndarray, v: np.ndarray, settings: StepSettings, t: float = 0.0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A dense, b and the external force."""
    data, b, external = np.full(body.n_v**2, np.nan), np.full(body.n_v, np.nan), np.full(body.n_v, np.nan)
    body.assemble(q, v, t, settings, data, b, external)
    indptr, indices = body.pattern()
    assert np.array_equal(indptr, body.n_v * np.arange(body.n_v + 1))
    assert np.array_equal(indices, np.tile(np.arange(body.n_v), body.n_v))
    return data.reshape(body.n_v, body.n_v).T, b, external


def march(
    body: ArticulatedBody, settings: StepSettings, steps: int, watch: Callable[[np.ndarray, np.ndarray], None] | None = None
) -> tuple[np.ndarray, np.ndarray]:
    q, v = body.initial_q(), body.initial_v()
    for k in range(steps):
        A, b, _ = assembled(body, q, v, settings, k * settings.dt)
        q_new, v_new = np.empty_like(q), np.empty_like(v)
        body.advance(q, v, np.linalg.solve(A, b), settings, q_new, v_new)
        q, v = q_new, v_new
        if watch is not None:
            watch(q, v)
    return q, v


# ---------------------------------------------------------------------- kinematics


def test_link_pose_by_hand() -> None:
    """Base turned by 90 degrees about z: a link at (1, 0, 0) that slides along x by 0.5 lies at (0, 1.5, 0) from the base."""
    links = [
        Link("base", 1.0, np.eye(3), np.zeros(3)),
        Link("slide", 1.0, np.eye(3), np.array([1.0, 0, 0]), np.array([1.0, 0, 0])),
    ]
    body = ArticulatedBody(
        "b", links, position=np.array([1.0, 2.0, 3.0]), quaternion=np.array([2.0, 0, 0, 2.0]), velocity=np.zeros(3),
        angular_velocity=np.zeros(3), joint_positions=np.array([0.5]),
    )  # fmt: skip
    q = body.initial_q()
    assert (body.n_q, body.n_v, body.n_joints) == (8, 7, 1) and np.linalg.norm(q[3:7]) == pytest.approx(1.0)
    rotation, centre = body.link_pose(q, 1)
    np.testing.assert_allclose(rotation, [[0, -1, 0], [1, 0, 0], [0, 0, 1]], atol=1e-15)
    np.testing.assert_allclose(centre, [1.0, 3.5, 3.0], atol=1e-15)
    np.testing.assert_allclose(body.link_pose(q, 0)[1], [1.0, 2.0, 3.0])


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("joints", [0, 1, 3])
def test_link_jacobian_against_central_differences(joints: int, seed: int) -> None:
    """Every column of every link, at a random pose and random joint positions."""
    body = body_of(np.random.default_rng(seed), joints)
    q = body.initial_q()
    for link in range(joints + 1):
        S = body.link_jacobian(q, link)
        assert S.shape == (6, 6 + joints)
        numeric = np.column_stack([link_velocity(body.link_pose, q, link, e) for e in np.eye(body.n_v)])
        np.testing.assert_allclose(S, numeric, atol=1e-8)


def weights(body: ArticulatedBody) -> Iterator[tuple[float, np.ndarray]]:
    """Mass and inertia of each link."""
    return zip(body.tree.mass, body.tree.inertia, strict=True)


def mass_matrix(body: ArticulatedBody, q: np.ndarray) -> np.ndarray:
    """Sum over links of S^T diag(m, R I R^T) S with S by central differences."""
    M = np.zeros((body.n_v, body.n_v))
    for k, (mass, inertia) in enumerate(weights(body)):
        S = np.column_stack([link_velocity(body.link_pose, q, k, e) for e in np.eye(body.n_v)])
        R = body.link_pose(q, k)[0]
        M += mass * S[:3].T @ S[:3] + S[3:].T @ (R @ inertia @ R.T) @ S[3:]
    return M


@pytest.mark.parametrize("theta", [0.5, 1.0])
@pytest.mark.parametrize("joints", [0, 2])
def test_mass_matrix_is_the_sum_of_the_links(joints: int, theta: float) -> None:
    body = body_of(np.random.default_rng(3), joints)
    q, v = body.initial_q(), body.initial_v()
    A, _, _ = assembled(body, q, v, StepSettings(0.01, theta, G))
    M = mass_matrix(body, q)
    np.testing.assert_allclose(0.01 * theta * A, M, atol=1e-8)
    np.testing.assert_allclose(A, A.T, rtol=1e-13, atol=1e-12)
    assert np.linalg.eigvalsh(A).min() > 0
    assert body.mass == pytest.approx(1.3 + (0.2 + 0.3 if joints else 0.0), rel=1e-14)
    # and it is the Hessian of the kinetic energy, which is that of the links
    rng = np.random.default_rng(4)
    for _ in range(5):
        v = rng.standard_normal(body.n_v)
        energy = 0.0
        for k, (mass, inertia) in enumerate(weights(body)):
            twist, R = link_velocity(body.link_pose, q, k, v), body.link_pose(q, k)[0]
            energy += 0.5 * mass * twist[:3] @ twist[:3] + 0.5 * twist[3:] @ R @ inertia @ R.T @ twist[3:]
        assert body.kinetic_energy(q, v) == pytest.approx(energy, rel=1e-8)
        assert 0.005 * theta * v @ A @ v == pytest.approx(energy, rel=1e-8)
    assert body.elastic_energy(q) == 0.0


@pytest.mark.parametrize("joints", [0, 1, 3])
def test_momenta_are_those_of_the_links(joints: int) -> None:
    body = body_of(np.random.default_rng(5), joints)
    q, v = body.initial_q(), np.random.default_rng(6).standard_normal(body.n_v)
    linear, angular = np.zeros(3), np.zeros(3)
    for k, (mass, inertia) in enumerate(weights(body)):
        twist = link_velocity(body.link_pose, q, k, v)
        R, centre = body.link_pose(q, k)
        linear += mass * twist[:3]
        angular += mass * np.cross(centre, twist[:3]) + R @ inertia @ R.T @ twist[3:]
    np.testing.assert_allclose(body.momentum(q, v), linear, atol=1e-8)
    np.testing.assert_allclose(body.angular_momentum(q, v), angular, atol=1e-8)


# ---------------------------------------------------------------------- dynamics


def keeping(body: ArticulatedBody, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Force (n_v,) that keeps v constant: the rate of each link's momentum along the motion, projected by its Jacobian."""
    h, bias = 1e-6, np.zeros(body.n_v)
    for k, (mass, inertia) in enumerate(weights(body)):
        rates = []
        for s in (h, -h):
            p = moved_pose(q, s * v)
            twist, R = body.link_jacobian(p, k) @ v, body.link_pose(p, k)[0]
            rates.append(np.concatenate([mass * twist[:3], R @ inertia @ R.T @ twist[3:]]))
        bias += body.link_jacobian(q, k).T @ ((rates[0] - rates[1]) / (2 * h))
    return bias


def weight(body: ArticulatedBody, q: np.ndarray) -> np.ndarray:
    """Generalized force (n_v,) of gravity."""
    return sum(mass * body.link_jacobian(q, k)[:3].T @ G for k, mass in enumerate(body.tree.mass))


@pytest.mark.parametrize("joints", [0, 2])
@pytest.mark.parametrize("theta", [0.5, 0.75])
def test_b_holds_inertia_coriolis_and_gravity(joints: int, theta: float) -> None:
    """Force that keeps v constant, by eq. (3)."""
    body = body_of(np.random.default_rng(7), joints)
    q, v, dt = body.initial_q(), body.initial_v(), 0.01
    v[3:6] *= 20.0
    v[6:] = [0.7, -0.4][:joints]
    A, b, external = assembled(body, q, v, StepSettings(dt, theta, G))
    bias, gravity = keeping(body, q, v), weight(body, q)
    assert np.linalg.norm(bias) > 0.05
    np.testing.assert_allclose(external, gravity, atol=1e-12)
    # without joint drives A is M/(theta dt)
    # that of a free body is the mean of the step, see rigid_kernels
    close = 1e-6 if joints else dt * np.linalg.norm(v[3:6])
    np.testing.assert_allclose(b, A @ v - bias + gravity, atol=close * np.linalg.norm(bias))
    _, no_gravity, _ = assembled(body, q, v, StepSettings(dt, theta, NO_GRAVITY))
    np.testing.assert_allclose(b - no_gravity, gravity, atol=1e-9)


@pytest.mark.parametrize("joints", [0, 2])
@pytest.mark.parametrize("conserving", [False, True])
def test_the_equations_of_a_step_where_it_leads(joints: int, conserving: bool) -> None:
    """Plain twins: A v_hat - b of eq. (9), or M and eq. (3) at the mid-point, a free body by the spins at both ends."""
    motors = [Motor(effort=lambda t: 0.3), Motor(position=lambda t: 0.1, stiffness=50.0, damping=2.0)][:joints]
    load = (np.array([0.1, 0.2, 0.3]), np.array([0.4, 0.5, 0.6]))
    rng = np.random.default_rng(16)
    body = body_of(rng, joints, [1.0, 0.5][:joints], motors=motors, load=lambda t: load)
    q, v, v_hat = body.initial_q(), body.initial_v(), rng.standard_normal(body.n_v)
    settings = StepSettings(0.01, 0.5, G, conserving=conserving)
    A, b, external = assembled(body, q, v, settings)
    moved, n = body.moved(q, v_hat, 0.005), body.n_v
    there, out, inertia, data = *np.full((3, n), np.nan), np.full(n * n, np.nan)
    body.residual(moved, StepStart(q, v, 0.0), settings, v_hat, there, out, inertia)
    body.tangent(settings, data)
    if not conserving:
        np.testing.assert_allclose(out, A @ v_hat - b, rtol=1e-12, atol=1e-11)
        np.testing.assert_allclose(inertia, A @ (v_hat - v), rtol=1e-12, atol=1e-11)
        np.testing.assert_array_equal(there, external)
        np.testing.assert_array_equal(data.reshape(n, n), A)
        return
    M, damping = body.mass_matrix(moved), np.zeros(n)
    damping[6:] = [1.0, 0.5 + 50.0 * 0.005 + 2.0][:joints]
    force = np.concatenate([*load, [0.3, 50.0 * (0.1 - q[-1])][:joints]])
    np.testing.assert_allclose(there, weight(body, moved) + force, atol=1e-12)
    np.testing.assert_allclose(inertia, M @ (v_hat - v) / 0.005, atol=1e-11)
    np.testing.assert_allclose(data.reshape(n, n), M / 0.005 + np.diag(damping), rtol=1e-12, atol=1e-12)
    rate = inertia + keeping(body, moved, v_hat)
    if not joints:
        old, new = body.link_pose(q, 0)[0], body.link_pose(body.moved(q, v_hat, 0.01), 0)[0]
        (own,) = body.tree.inertia
        rate[3:] = (new @ own @ old.T @ (2.0 * v_hat - v)[3:] - old @ own @ old.T @ v[3:]) / 0.01
    np.testing.assert_allclose(out, rate - there + damping * v_hat, atol=1e-6 if joints else 1e-11)


def top(rate: float = 5.0) -> ArticulatedBody:
    rng = np.random.default_rng(8)
    R = random_frame(rng)
    inertia = R @ np.diag([0.02, 0.03, 0.045]) @ R.T
    return ArticulatedBody(
        "top", [Link("top", 2.0, inertia, np.zeros(3))], position=np.zeros(3),
        quaternion=quaternion_from_vector(rng.standard_normal(3)), velocity=np.array([0.1, 0.0, 0.0]),
        angular_velocity=rate * np.array([0.5, 1.0, -0.2]),
    )  # fmt: skip


@pytest.mark.parametrize("theta", [0.5, 1.0])
def test_a_free_top_keeps_its_angular_momentum(theta: float) -> None:
    """To rounding, at any step: 1000 steps through many tumbles."""
    body = top()
    start = body.angular_momentum(body.initial_q(), body.initial_v())
    seen: list[np.ndarray] = []
    _, v = march(body, StepSettings(0.01, theta, NO_GRAVITY), 1000, lambda q, v: seen.append(body.angular_momentum(q, v)))
    assert np.abs(np.array(seen) - start).max() < 1e-12 * np.linalg.norm(start)
    np.testing.assert_allclose(v[:3], [0.1, 0, 0], atol=1e-13)
    assert np.linalg.norm(v[3:] - body.initial_v()[3:]) > 0.5  # it does tumble


@pytest.mark.parametrize("theta", [0.5, 1.0])
def test_a_free_top_keeps_its_energy(theta: float) -> None:
    """To rounding, at any step, and its turn is of second order in dt."""
    turns = []
    for steps in (50, 100, 200):
        body = top()
        energy = body.kinetic_energy(body.initial_q(), body.initial_v())
        seen: list[float] = []
        q, _ = march(
            body, StepSettings(1.0 / steps, theta, NO_GRAVITY), steps,
            lambda q, v, body=body, seen=seen: seen.append(body.kinetic_energy(q, v)),
        )  # fmt: skip
        assert np.abs(np.array(seen) / energy - 1.0).max() < 1e-11
        turns.append(q[3:7])
    first, second = np.linalg.norm(turns[0] - turns[1]), np.linalg.norm(turns[1] - turns[2])
    assert np.log2(first / second) == pytest.approx(2.0, abs=0.2)


@pytest.mark.parametrize("held", [False, True])
def test_a_needle_gains_no_energy_by_backward_euler(held: bool) -> None:
    """Gyroscopic torques of the start moved 40 times its spin into the spin of a needle on a hinge: 18 J in 17 steps.

    One that tumbles freely, and keeps its angular momentum, had 31 times its energy after 200.
    """
    scene = fs.Scene("needle", dt=0.01, theta=1.0, gravity=(0.0, 0.0, -9.81 if held else 0.0))
    needle = scene.add_rigid(
        "needle", fs.Capsule(2e-4, 0.0075), density=1150.0, position=(0.0075, 0.0, 0.0), rotation=(0.0, np.pi / 2, 0.0),
        angular_velocity=(0.0, 0.0, 0.0) if held else (1.0, 20.0, 0.0),
    )  # fmt: skip
    if held:
        scene.join(needle, "world", kind="hinge", axis=(0.0, 1.0, 0.0), at=(0.0, 0.0, 0.0))
    sim, body = fs.Simulation(scene), scene.bodies[0]
    spin = body.angular_momentum(sim.state.q, sim.state.v)
    energies = []
    for _ in range(40 if held else 100):
        energies.append(body.kinetic_energy(sim.state.q, sim.state.v) + (9.81 * body.mass * sim.state.q[2] if held else 0.0))
        sim.step()
    assert sim.verdict == "good" and np.diff(energies).max() < 1e-4 * np.ptp([0.0, *energies])
    if not held:
        np.testing.assert_allclose(body.angular_momentum(sim.state.q, sim.state.v), spin, rtol=0, atol=1e-12 * np.abs(spin).max())


def test_a_body_that_turns_by_radians_a_step_keeps_its_angular_momentum() -> None:
    body = top(400.0)
    start = body.angular_momentum(body.initial_q(), body.initial_v())
    q, v = march(body, StepSettings(0.02, 1.0, NO_GRAVITY), 5)
    assert np.isfinite(q).all()
    np.testing.assert_allclose(body.angular_momentum(q, v), start, rtol=0, atol=1e-10 * np.linalg.norm(start))


def test_free_fall_is_the_parabola() -> None:
    """theta 1/2 is exact for constant acceleration; a thrown body turns at its constant rate about a principal axis."""
    body = ArticulatedBody(
        "stone", [Link("stone", 0.7, np.diag([0.01, 0.02, 0.03]), np.zeros(3))], position=np.array([1.0, 2.0, 3.0]),
        quaternion=np.array([1.0, 0, 0, 0]), velocity=np.array([0.5, 0.0, 4.0]), angular_velocity=np.array([0.0, 0.0, 1.5]),
    )  # fmt: skip
    q, v = march(body, StepSettings(0.01, 0.5, G), 100)
    np.testing.assert_allclose(q[:3], np.array([1.5, 2.0, 7.0]) + 0.5 * G, atol=1e-12)
    np.testing.assert_allclose(v[:3], np.array([0.5, 0.0, 4.0]) + G, atol=1e-12)
    np.testing.assert_allclose(v[3:], [0, 0, 1.5], atol=1e-13)
    np.testing.assert_allclose(quaternion_to_matrix(q[3:7])[:, 0], [np.cos(1.5), np.sin(1.5), 0], atol=1e-12)


def test_momenta_of_a_spinning_gripper_drift_only_with_the_step() -> None:
    """Joint forces are internal: both momenta are constant, and the error of the explicit Coriolis terms falls with dt."""
    errors = []
    for steps in (100, 200, 400):
        rng = np.random.default_rng(9)
        motors = [Motor(effort=lambda t: 0.3), Motor(position=lambda t: 0.02 * t, stiffness=50.0, damping=2.0)]
        body = body_of(rng, 2, motors=motors)
        q0, v0 = body.initial_q(), body.initial_v()
        q, v = march(body, StepSettings(0.5 / steps, 0.5, NO_GRAVITY), steps)
        assert abs(q[7] - q0[7]) > 0.02  # the fingers do move
        errors.append(
            [
                np.linalg.norm(body.momentum(q, v) - body.momentum(q0, v0)),
                np.linalg.norm(body.angular_momentum(q, v) - body.angular_momentum(q0, v0)),
            ]
        )
    order = np.log2(np.array(errors[:-1]) / errors[1:])
    assert np.all(order > 0.85), (order, errors)
    assert np.all(np.array(errors[-1]) < 0.02)


@pytest.mark.parametrize(("theta", "time"), [(0.5, 0.305), (1.0, 0.31)])
def test_loads_act_on_the_base_at_theta(theta: float, time: float) -> None:
    times: list[float] = []

    def load(t: float) -> tuple[np.ndarray, np.ndarray]:
        times.append(t)
        return np.array([1.0, 2.0, 3.0]), np.array([4.0, 5.0, 6.0])

    body = body_of(np.random.default_rng(10), 1, load=load)
    q, v = body.initial_q(), body.initial_v()
    settings = StepSettings(0.01, theta, NO_GRAVITY)
    _, b, external = assembled(body, q, v, settings, t=0.3)
    assert times == [pytest.approx(time)]
    np.testing.assert_allclose(external, [1, 2, 3, 4, 5, 6, 0], atol=1e-14)
    body.load = None
    np.testing.assert_allclose(b - assembled(body, q, v, settings, t=0.3)[1], [1, 2, 3, 4, 5, 6, 0], atol=1e-10)


def test_advance_moves_along_the_exponential_map() -> None:
    body, rng = body_of(np.random.default_rng(11), 2), np.random.default_rng(12)
    q, v, vh = body.initial_q(), body.initial_v(), rng.standard_normal(8)
    q_new, v_new = np.empty_like(q), np.empty_like(v)
    body.advance(q, v, vh, StepSettings(0.02, 0.75, G), q_new, v_new)
    np.testing.assert_allclose(q_new, moved_pose(q, 0.02 * vh), atol=1e-14)
    np.testing.assert_allclose(0.25 * v + 0.75 * v_new, vh, atol=1e-13)
    assert np.linalg.norm(q_new[3:7]) == pytest.approx(1.0, abs=1e-15)


def test_a_turning_rate_is_that_of_the_rotation() -> None:
    """v[3:6] is the world angular velocity: the rate of the rotation matrix along the motion."""
    body = body_of(np.random.default_rng(13), 0)
    q, v = body.initial_q(), body.initial_v()
    np.testing.assert_allclose(rotation_rate(body.link_pose, q, 0, v), v[3:6], atol=1e-8)


# ---------------------------------------------------------------------- joint drives

STEP = StepSettings(0.01, 0.75, NO_GRAVITY)


def at_joint(motor: Motor, s: float, rate: float, t: float, **joint: object) -> tuple[float, float]:
    """Force of a finger at position s (m) with a speed (m/s), and its damping in A: the drive is ``force - damping v_hat``."""
    finger = Link("finger", 0.5, 0.01 * np.eye(3), np.zeros(3), np.array([0, 0, 1.0]), **joint)  # type: ignore[arg-type]
    zero = np.zeros(3)
    body = ArticulatedBody(
        "g", [Link("base", 1.0, np.eye(3), zero), finger], position=zero, quaternion=np.array([1.0, 0, 0, 0]), velocity=zero,
        angular_velocity=zero, joint_positions=np.array([s]), motors=[motor],
    )  # fmt: skip
    v = np.zeros(7)
    v[6] = rate
    A, b, external = assembled(body, body.initial_q(), v, STEP, t)
    mass = 0.5 / (STEP.theta * STEP.dt)
    assert b[6] == pytest.approx(mass * rate + external[6], rel=1e-14, abs=1e-14)
    return external[6], A[6, 6] - mass


def near(force: float, damping: float) -> tuple[object, object]:
    return pytest.approx(force, rel=1e-12, abs=1e-12), pytest.approx(damping, rel=1e-12, abs=1e-12)


def test_a_free_joint_has_no_force() -> None:
    assert at_joint(Motor(), 0.3, -2.0, 1.0) == (0.0, 0.0)


def test_friction_of_the_joint_is_damping() -> None:
    assert at_joint(Motor(), 0.3, -2.0, 1.0, damping=3.0) == near(0.0, 3.0)


def test_a_force_acts_at_theta_dt() -> None:
    assert at_joint(Motor(effort=lambda t: 10.0 * t), 0.0, 5.0, 1.0, damping=2.0) == near(10.075, 2.0)


def test_a_servo_is_an_implicit_spring_and_damper() -> None:
    """k (target - s - theta dt v) + d (target rate - v), with the target at theta dt."""
    k, d, s, t = 400.0, 6.0, 0.02, 1.0
    motor = Motor(position=lambda t: 0.03 * t, stiffness=k, damping=d)
    assert at_joint(motor, s, 0.7, t, damping=1.5) == near(k * (0.030225 - s) + d * 0.03, k * 0.75 * 0.01 + d + 1.5)


def test_a_servo_aims_at_its_target_at_theta() -> None:
    """And not between those at the ends of the step."""
    motor = Motor(position=lambda t: 30.0 * t * t, stiffness=400.0)
    assert at_joint(motor, 0.02, 0.0, 1.0) == near(400.0 * (30.0 * 1.0075**2 - 0.02), 3.0)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_servo_saturates_at_its_largest_force(sign: float) -> None:
    """Beyond its limit it pushes with that force and is no spring any more; the last speed decides."""
    motor = Motor(position=lambda t: sign * 0.1, stiffness=400.0, damping=6.0, max_effort=30.0)
    assert at_joint(motor, 0.0, 0.0, 0.0, damping=1.5) == near(sign * 30.0, 1.5)
    # 40 - (3 + 6) 2 = 22 N
    assert at_joint(motor, 0.0, sign * 2.0, 0.0, damping=1.5) == near(sign * 40.0, 400 * 0.0075 + 6.0 + 1.5)
    assert at_joint(motor, 0.0, sign * 1.0, 0.0, damping=1.5) == near(sign * 30.0, 1.5)  # 31 N
    assert at_joint(motor, 0.0, sign * 1.2, 0.0, damping=1.5)[1] == pytest.approx(10.5)  # 29.2 N


def test_force_and_servo_add_up() -> None:
    assert at_joint(Motor(effort=lambda t: 2.0, position=lambda t: 0.1, stiffness=100.0), 0.0, 0.0, 0.0) == near(12.0, 0.75)


def test_drives_enter_a_and_b_of_their_joint_alone() -> None:
    motors = [Motor(effort=lambda t: 3.0), Motor(position=lambda t: 0.2, stiffness=50.0, damping=4.0)]
    body = body_of(np.random.default_rng(14), 2, [2.0, 0.0], motors=motors)
    q, v = body.initial_q(), body.initial_v()
    A, b, external = assembled(body, q, v, STEP)
    A_free, b_free, _ = assembled(body_of(np.random.default_rng(14), 2), q, v, STEP)
    servo, damping = at_joint(motors[1], q[8], v[7], 0.0)
    np.testing.assert_allclose(A - A_free, np.diag([0] * 6 + [2.0, damping]), atol=1e-11)
    np.testing.assert_allclose(b - b_free, [0] * 6 + [3.0, servo], atol=1e-11)
    np.testing.assert_allclose(external, [0] * 6 + [3.0, servo], atol=1e-14)


def test_damping_power() -> None:
    body = body_of(np.random.default_rng(15), 2, [2.0, 5.0])
    assembled(body, body.initial_q(), body.initial_v(), STEP)
    vh = np.array([9.0, 9, 9, 9, 9, 9, 0.5, -2.0])
    assert body.damping_power(vh) == pytest.approx(2.0 * 0.25 + 5.0 * 4.0)


def test_a_closing_force_knows_no_spring_and_no_limit() -> None:
    """What a call says of a servo belongs to a position."""
    scene = fs.Scene("force", dt=0.01, theta=1.0)
    hand = scene.add_gripper("hand", [fs.Finger("left", fs.Box((0.01, 0.01, 0.01)), (0.1, 0.0, 0.0), (1.0, 0.0, 0.0), mass=0.2)])
    (body,) = scene.bodies
    assert isinstance(body, ArticulatedBody)
    settings = StepSettings(0.01, 1.0, NO_GRAVITY)
    for drive, force, damping in (
        ({"force": lambda t: 8.0}, 8.0, 10.0), ({"position": lambda t: 0.1}, 5.0, 10.0), ({"position": lambda t: 0.0}, 0.0, 16.0)
    ):  # fmt: skip
        scene.commands.pop("hand.left", None)
        scene.drive(hand, fingers=True, stiffness=500.0, damping=1.0, max_force=5.0, **drive)  # type: ignore[arg-type]
        A, _, external = assembled(body, body.initial_q(), body.initial_v(), settings)
        assert external[6] == pytest.approx(force, abs=1e-14) and A[6, 6] == pytest.approx(20.0 + damping)


def test_a_servo_holds_its_target_against_gravity() -> None:
    """Base so heavy that it hardly moves: the finger sags by m g / k."""
    links = [
        Link("base", 1e9, 1e9 * np.eye(3), np.zeros(3)),
        Link("finger", 0.5, 0.01 * np.eye(3), np.zeros(3), np.array([0, 0, 1.0])),
    ]
    motor = Motor(position=lambda t: 0.1, stiffness=1e3, damping=50.0)
    body = ArticulatedBody(
        "g", links, position=np.zeros(3), quaternion=np.array([1.0, 0, 0, 0]), velocity=np.zeros(3), angular_velocity=np.zeros(3),
        motors=[motor], load=lambda t: (np.array([0, 0, 9.81 * 1e9]), np.zeros(3)),
    )  # fmt: skip
    q, v = march(body, StepSettings(0.01, 1.0, np.array([0, 0, -9.81])), 300)
    assert q[7] == pytest.approx(0.1 - 0.5 * 9.81 / 1e3, abs=1e-7) and abs(v[6]) < 1e-6


def test_a_gripper_on_a_string_moves_to_second_order() -> None:
    """Base, orientation and finger, at all times; the steps must follow the string, so at 4 ms the order looks like 1.7."""
    found = paths(PENDULUMS["articulated"], [1e-3, 5e-4, 2.5e-4], 0.2)
    for coordinates in (slice(0, 3), slice(3, 7), slice(7, 8)):
        first, second = np.abs(np.diff(found[:, :, coordinates], axis=0)).max(axis=(1, 2))
        assert np.log2(first / second) == pytest.approx(2.0, abs=0.02)


# ---------------------------------------------------------------------- beside robots


def carried(robot: bool) -> fs.Run:
    """A block that two sliding fingers take and carry to the side and up, as a gripper or as a robot of the same links."""
    scene = fs.Scene("carried", dt=0.01, duration=0.5, theta=1.0)
    base, pad, at = fs.Box((0.05, 0.02, 0.01)), fs.Box((0.003, 0.01, 0.01)), (0.0, 0.0, 0.2)
    sides = {"left": 1.0, "right": -1.0}
    scene.add_rigid("block", fs.Box((0.01, 0.008, 0.008)), mass=0.05, position=(0.0, 0.0, 0.15))
    if robot:
        links = [fs.RobotLink.solid("hand", fs.Piece(base), 0.5)]
        links += [fs.RobotLink.solid(name, fs.Piece(pad), 0.1) for name in sides]
        joints = [
            fs.RobotJoint(name, "hand", name, "prismatic", (-sign * 0.03, 0.0, -0.05), axis=(sign, 0.0, 0.0), damping=10.0)
            for name, sign in sides.items()
        ]
        hand = scene.add_robot(fs.Robot("hand", links, joints), position=at, self_contact=False)
        for name in sides:
            scene.drive_joint(hand, name, effort=fs.Profile([0.0, 0.02], [2.0, 4.0]))
    else:
        fingers = [fs.Finger(name, pad, (-sign * 0.03, 0.0, -0.05), (sign, 0.0, 0.0)) for name, sign in sides.items()]
        hand = scene.add_gripper("hand", fingers, position=at, mass=0.5, base=base)
        scene.drive(hand, fingers=True, force=fs.Profile([0.0, 0.02], [2.0, 4.0]))
    scene.drive(hand, fs.Motion([0.15, 0.45], [(0, 0, 0), (0.02, 0.01, 0.05)]))
    scene.set_friction("block", hand, 0.8)
    scene.sensor("wrist", hand, kind="mount")
    scene.sensor("left", "hand.left")
    scene.sensor("joint", "hand.left", kind="joint")
    return fs.simulate(scene, tolerance=1e-10)


def test_a_gripper_is_a_robot_whose_joints_slide() -> None:
    """Where the hand does not turn, its equations of eq. (9) are those of d'Alembert: all readings agree to rounding."""
    gripper, robot = carried(robot=False), carried(robot=True)
    assert gripper.status == robot.status == "converged"
    slid = gripper.stepper.state.q[14:16]
    assert slid.min() > 0.015
    np.testing.assert_allclose(robot.stepper.state.q, gripper.stepper.state.q, rtol=0, atol=1e-11)
    for name in ("wrist", "left", "joint"):
        one, other = gripper.sensors[name], robot.sensors[name]
        assert np.abs(one.force).max() > 3.0
        np.testing.assert_allclose(other.force, one.force, rtol=0, atol=1e-8)

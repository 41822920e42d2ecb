"""Robots as trees of links: kernels against slow twins, motion against quadrature and conservation laws, limits and motors."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import numpy as np
import pytest
from random_trees import random_body, random_robot, slow_frames, slow_inverse_dynamics, slow_jacobian, slow_mass
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

import femsim as fs
from contact import Capsule, make_solver
from femsim.base.place import data_folder
from femsim.model.bodies import tree_kernels as kernels
from femsim.model.bodies.rigid_kernels import lead_base
from femsim.model.bodies.tree_step_kernels import (
    Ends,
    Equations,
    Motors,
    Start,
    calming,
    end_joints,
    fill_equations,
    find_leaking,
    linearise,
)  # fmt: skip
from femsim.step.stepper import Stepper

G = 9.81
SEEDS = range(4)


# ---------------------------------------------------------------------- kernels


@pytest.mark.parametrize("seed", SEEDS)
def test_places_are_those_of_products_of_matrices(seed: int) -> None:
    body = random_body(np.random.default_rng(seed))
    q = body.initial_q()
    rotation, centre = slow_frames(body, q)
    for k in range(len(body.links)):
        R, c = body.link_pose(q, k)
        np.testing.assert_allclose(R, rotation[k], atol=1e-14)
        np.testing.assert_allclose(c, centre[k], atol=1e-14)


@pytest.mark.parametrize("seed", SEEDS)
def test_jacobians_mass_matrix_and_twists_are_those_of_differences(seed: int) -> None:
    body = random_body(np.random.default_rng(seed))
    q, v = body.initial_q(), body.initial_v()
    places, twist = kernels.no_places(len(body.links)), np.empty((len(body.links), 6))
    kernels.place_links(body.tree, q, places)
    kernels.fill_twists(body.tree, places, v, twist)
    for k in range(len(body.links)):
        S = body.link_jacobian(q, k)
        np.testing.assert_allclose(S, slow_jacobian(body, q, k), atol=1e-9)
        np.testing.assert_allclose(twist[k], S @ v, atol=1e-13)
        # what moves a contact point: the base, and the joints behind it, all about the base's centre of mass
        rows, screws = body.link_rows(k), body.link_screws(q, k)
        columns = np.zeros((6, body.n_v))
        columns[:, :6], columns[:, rows] = np.eye(6), screws.T
        arm = body.link_pose(q, k)[1] - q[:3]
        columns[:3] += np.cross(columns[3:].T, arm).T
        np.testing.assert_allclose(columns, S, atol=1e-13)
    M = body.mass_matrix(q)
    np.testing.assert_allclose(M, slow_mass(body, q), atol=1e-9)
    assert np.array_equal(M, M.T) and np.linalg.eigvalsh(M)[0] > 0.0


@pytest.mark.parametrize("seed", SEEDS)
def test_what_couples_rows_or_moves_a_link_hangs_on_one_way_to_the_ground(seed: int) -> None:
    body = random_body(np.random.default_rng(seed))
    parents = body.row_parents()
    assert parents is not None and parents[:6] == (-1, 0, 1, 2, 3, 4)
    way = [{row} for row in range(body.n_v)]
    for row, parent in enumerate(parents[1:], 1):
        assert 0 <= parent < row
        way[row] |= way[parent]
    for i, j in np.argwhere(np.tril(body.mass_matrix(body.initial_q()))):
        assert j in way[i]
    for k in range(len(body.links)):
        rows = {*range(6), *body.link_rows(k).tolist()}
        assert rows <= way[max(rows)]


def test_rows_hang_on_one_another_where_a_joint_mimics_one_of_another_leg() -> None:
    links = [fs.RobotLink(name, 1.0, inertia=0.1 * np.eye(3)) for name in ("base", "a", "b", "c", "d")]
    ends = {"a": "base", "b": "base", "c": "b", "d": "a"}
    joints = [
        fs.RobotJoint(f"to_{child}", parent, child, position=(0.3, 0.1, 0), axis=(0, 1, 0),
                      mimic=("to_c", 1.0, 0.0) if child == "d" else None)
        for child, parent in ends.items()
    ]  # fmt: skip
    body = fs.Robot("led", links, joints).body("led", np.zeros(3), np.array([1.0, 0, 0, 0]), {}, {})
    M = body.mass_matrix(body.initial_q())
    assert M[8, 7] != 0.0 and M[8, 6] != 0.0 and M[7, 6] == 0.0
    assert body.row_parents() == (-1, 0, 1, 2, 3, 4, 5, 6, 7)


def test_legs_of_a_robot_hang_on_its_base_and_a_rigid_body_is_no_tree() -> None:
    scene = fs.Scene("robots", dt=0.01, duration=0.1)
    scene.add_robot(fs.load_robot(data_folder("robots") / "quadruped.urdf"), name="dog", base="free", self_contact=False)
    scene.add_rigid("box", fs.Box((0.1, 0.1, 0.1)), mass=1.0, position=(0, 0, 3))
    dog, box = (body.row_parents() for body in scene.bodies)
    assert dog == (-1, 0, 1, 2, 3, 4, 5, 5, 5, 5, *range(6, 14)) and box is None


@pytest.mark.parametrize("seed", SEEDS)
def test_inverse_dynamics_is_that_of_dalembert(seed: int) -> None:
    rng = np.random.default_rng(seed)
    body, gravity = random_body(rng), np.array([0.4, -0.3, -G])
    q, v, rate = body.initial_q(), body.initial_v(), rng.standard_normal(body.n_v)
    places, out, rest = kernels.no_places(len(body.links)), np.empty(body.n_v), np.empty(body.n_v)
    kernels.place_links(body.tree, q, places)
    kernels.inverse_dynamics(body.tree, places, v, rate, gravity, out)
    np.testing.assert_allclose(out, slow_inverse_dynamics(body, q, v, rate, gravity), atol=3e-6 * np.abs(out).max())
    # and to rounding: what the acceleration makes of it is the mass matrix, what gravity makes the weight
    kernels.inverse_dynamics(body.tree, places, v, 0.0 * rate, gravity, rest)
    np.testing.assert_allclose(out - rest, body.mass_matrix(q) @ rate, atol=1e-12)
    kernels.inverse_dynamics(body.tree, places, 0.0 * v, 0.0 * rate, gravity, rest)
    np.testing.assert_allclose(rest, -body.mass_matrix(q)[:, :3] @ gravity, atol=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_wrenches_on_links_are_projected_by_the_jacobians(seed: int) -> None:
    rng = np.random.default_rng(seed)
    body = random_body(rng)
    q, wrench, out = body.initial_q(), rng.standard_normal((len(body.links), 6)), np.empty(body.n_v)
    places = kernels.no_places(len(body.links))
    kernels.place_links(body.tree, q, places)
    kernels.project(body.tree, places, wrench, out)
    np.testing.assert_allclose(out, sum(body.link_jacobian(q, k).T @ wrench[k] for k in range(len(body.links))), atol=1e-13)


@pytest.mark.parametrize(("theta", "some_thin"), [(0.5, False), (0.8, True), (1.0, False)])
def test_the_equations_of_a_step_are_those_of_its_parts(theta: float, some_thin: bool) -> None:
    """Plain twins: momenta at both ends where some joints are led, the mass within, motors, thin links, and A v = b."""
    rng = np.random.default_rng(3)
    body, dt, gravity = random_body(rng), 0.01, np.array([0.4, -0.3, -G])
    tree, n, links, implicit = body.tree, body.n_v, len(body.links), theta * dt
    q, v, v_hat = body.initial_q(), body.initial_v(), rng.standard_normal(n)
    rows, coordinates = body.limits()[:2]
    servo = rng.uniform(1.0, 9.0, (6, len(rows)))
    servo[5, 0] = 1e-3  # a motor at its limit
    led, ends_led, leaking = rows[1:2], np.array([1.7]), np.array([2, 5]) if some_thin else np.zeros(0, dtype=np.int64)

    def placed(at: np.ndarray) -> kernels.Places:
        places = kernels.no_places(links)
        kernels.place_links(tree, at, places)
        return places

    def momenta(at: np.ndarray, speed: np.ndarray) -> np.ndarray:
        twist, out = np.empty((links, 6)), np.empty((links, 6))
        kernels.fill_twists(tree, placed(at), speed, twist)
        kernels.fill_momenta(tree, placed(at), twist, out)
        return out

    def equations(moved: np.ndarray, speed: np.ndarray) -> tuple[np.ndarray, ...]:
        v0, v1, end, rate = v.copy(), v + (speed - v) / theta, q.copy(), np.empty(n)
        v0[led], v1[led] = ends_led - (speed[led] - v[led]) / theta, ends_led
        kernels.move(tree, q, speed, dt, True, end)
        first, last, there = momenta(q, v0), momenta(end, v1), placed(moved)
        twists = np.empty((3, links, 6))
        for places, at, twist in zip((placed(q), there, placed(end)), (v0, speed, v1), twists, strict=True):
            kernels.fill_twists(tree, places, at, twist)
        for k in leaking:
            moments, own = np.linalg.eigh(tree.inertia[k])
            axes, (w0, w, w1) = np.array([p.rotation[k] @ own[:, 0] for p in (placed(q), there, placed(end))]), twists[:, k, 3:]
            across, P, R = moments[1:].mean(), np.eye(3) - np.outer(axes[1], axes[1]), there.rotation[k]
            rest = own @ np.diag([0.0, moments[1] - across, moments[2] - across]) @ own.T
            change = across * P @ ((w1 - (axes[2] @ w1) * axes[2]) - (w0 - (axes[0] @ w0) * axes[0]))
            change += moments[0] * (axes[2] @ w1 - axes[0] @ w0) * axes[1]
            change += R @ rest @ (placed(end).rotation[k].T @ w1 - placed(q).rotation[k].T @ w0)
            change += dt * np.cross(w, moments[0] * (axes[1] @ w) * axes[1] + R @ rest @ R.T @ w)
            last[k, 3:] = first[k, 3:] + change
        kernels.step_rate(tree, there, first, last, v1 - v0, dt, rate)
        force, damping, M = np.zeros(n), np.full(n, 0.2), body.mass_matrix(moved)
        feed, target, pace, stiffness, own, limit = servo
        effort = feed + stiffness * (target - moved[coordinates]) + own * (pace - speed[rows])
        gain = np.where(np.abs(effort) > limit, 0.0, stiffness * implicit + own)
        effort = np.clip(effort, -limit, limit)
        force[rows] = effort + gain * speed[rows]
        damping[rows] += gain
        return M, rate, M[:, :3] @ gravity + force, force, damping

    ends = Ends(
        placed(q),
        kernels.no_places(links),
        kernels.no_places(links),
        *np.zeros((3, links, 6)),
        kernels.how_thin(tree.inertia),
        leaking,
    )
    motors = Motors(rows, coordinates, servo, np.full(n, 0.2))
    start, moved = Start(q, v, led, ends_led, gravity, dt, implicit, True), q.copy()
    out = Equations(np.empty((n, n)), np.empty(n), np.empty(n), np.zeros(n), np.empty(n))
    kernels.move(tree, q, v_hat, implicit, True, moved)
    fill_equations(tree, ends, motors, start, moved, v_hat, out)
    for found, wanted in zip(out, equations(moved, v_hat), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-11, atol=1e-11 * np.abs(wanted).max())

    slope, data, b = np.empty((n, n)), np.empty(n * n), np.empty(n)
    linearise(tree, ends, motors, start, out, slope, data, b)
    kernels.move(tree, q, v, implicit, True, moved)
    M, rate, external, _, damping = equations(moved, v)
    np.testing.assert_allclose(slope, M / implicit, rtol=1e-12)
    np.testing.assert_allclose(data.reshape(n, n), M / implicit + np.diag(damping), rtol=1e-12)
    np.testing.assert_allclose(b, M @ v / implicit - rate + external, rtol=1e-9, atol=1e-9 * np.abs(b).max())


@pytest.mark.parametrize("free", [True, False])
def test_a_step_ends_with_the_momentum_that_it_got(free: bool) -> None:
    """Plain twins of the kernels of its end: joints that servos calm, the base that momentum leads, and what calming exerts."""
    rng = np.random.default_rng(4)
    body, dt, theta = random_body(rng), 0.01, 0.5
    n, q, v = body.n_v, body.initial_q(), body.initial_v()
    v_hat, rate, damping, passive = rng.standard_normal((4, n))
    damping, passive, led = np.abs(damping) * 50.0, np.abs(passive), np.array([8])
    damping[10] = passive[10] = 0.0
    damping[:6] = passive[:6] = 0.0
    M, q_new, v_new, calmed = body.mass_matrix(q), body.moved(q, v_hat, dt), np.empty(n), np.empty(n)
    M_new = body.mass_matrix(q_new)
    start = Start(q, v, led, np.array([0.7]), np.zeros(3), dt, theta * dt, False)
    end_joints(start, M_new, damping, v_hat, free, v_new, calmed)
    stays = np.isin(np.arange(n), [*(() if free else range(6)), *led])
    brake = np.where(stays | (np.arange(n) < 6), 0.0, 0.25 * (dt * damping) ** 2 / M_new.diagonal())
    brake_of = np.diag(brake)[np.ix_(~stays, ~stays)]
    alone, less = v + (v_hat - v) / theta, np.zeros(n)
    less[~stays] = np.linalg.solve(M_new[np.ix_(~stays, ~stays)] + brake_of, -(brake * (alone - v_hat))[~stays])
    less[:6] = 0.0
    wanted = alone + less
    wanted[led] = 0.7
    np.testing.assert_allclose(v_new, wanted, rtol=1e-9)
    np.testing.assert_allclose(calmed, less, rtol=1e-9, atol=1e-12)

    before = M[:6] @ v
    after = before + dt * rate[:6]
    ways = {0.5: -dt * v_hat[:3], 0.8: body.centre_of_mass(q_new) - q_new[:3] - body.centre_of_mass(q) + q[:3]}
    for by, way in ways.items():
        lead_base(M, M_new, v, v_hat, rate, dt, by, v_new)
        turned = after[3:] + np.cross(way, by * before[:3] + (1.0 - by) * after[:3])
        np.testing.assert_allclose(M_new[:6] @ v_new, [*after[:3], *turned], rtol=1e-12, atol=1e-12, err_msg=str(by))

    effort, damped, change = np.ones(n), np.zeros(n), calmed.copy()
    power = calming(M_new, calmed, v_new, free, passive, damping, dt, effort, damped)
    if free:
        change[:6] = -np.linalg.solve(M_new[:6, :6], M_new[:6, 6:] @ calmed[6:])
    impulse = M_new @ change / dt
    own = np.divide(passive, damping, out=np.zeros(n), where=damping > 0.0)
    assert power == pytest.approx((v_new - 0.5 * change) @ impulse, rel=1e-9)
    np.testing.assert_allclose(effort[6:], 1.0 + ((1.0 - own) * impulse)[6:], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(damped[6:], (own * impulse)[6:], rtol=1e-9, atol=1e-9)
    assert (effort[:6] == 1.0).all() and not damped[:6].any()
    assert effort[10] == pytest.approx(1.0, abs=1e-9) and not damped[10]  # no damping, no impulse


# ---------------------------------------------------------------------- motion


def pendulum(**options: object) -> fs.Robot:
    """Two rods of 0.2 m, 0.5 and 0.6 kg, on hinges about y."""
    rods = [fs.RobotLink.solid(f"rod{k}", fs.Piece(Capsule(0.01, 0.09), (0, 0, -0.1)), 0.4 + 0.1 * k) for k in (1, 2)]
    joints = [
        fs.RobotJoint("first", "base", "rod1", axis=(0, 1, 0), **options),  # type: ignore[arg-type]
        fs.RobotJoint("second", "rod1", "rod2", axis=(0, 1, 0), position=(0, 0, -0.2)),
    ]
    return fs.Robot("pendulum", [fs.RobotLink("base"), *rods], joints)


def swing(dt: float, duration: float, **options: object) -> np.ndarray:
    scene = fs.Scene("swing", dt=dt, duration=duration, nonlinear_tolerance=1e-9, **options)  # type: ignore[arg-type]
    scene.add_robot(pendulum(), joints={"first": 1.0, "second": 0.5})
    stepper = Stepper(scene, fs.make_solver("exact"))
    for _ in range(round(duration / dt)):
        assert stepper.step().solution.converged
    return stepper.state.q[7:].copy()


def quadrature(duration: float) -> np.ndarray:
    """The same by Lagrange's equations of two physical pendulums in a plane, absolute angles, to 1e-12."""
    m, spin = np.array([0.5, 0.6]), [float(np.asarray(link.inertia)[1, 1]) for link in pendulum().links[1:]]
    length, c = 0.2, 0.1

    def rates(t: float, y: np.ndarray) -> np.ndarray:
        a, b, da, db = y
        far = m[1] * length * c
        M = np.array([
            [spin[0] + m[0] * c**2 + m[1] * length**2, far * math.cos(a - b)],
            [far * math.cos(a - b), spin[1] + m[1] * c**2],
        ])  # fmt: skip
        force = [
            -far * math.sin(a - b) * db**2 - G * (m[0] * c + m[1] * length) * math.sin(a),
            far * math.sin(a - b) * da**2 - G * m[1] * c * math.sin(b),
        ]
        return np.concatenate([[da, db], np.linalg.solve(M, force)])

    end = solve_ivp(rates, (0.0, duration), [1.0, 1.5, 0.0, 0.0], method="DOP853", rtol=1e-12, atol=1e-12).y[:, -1]
    return np.array([end[0], end[1] - end[0]])


def test_a_double_pendulum_follows_quadrature_and_converges_by_the_square_of_the_step() -> None:
    errors = [float(np.abs(swing(dt, 2.0) - quadrature(2.0)).max()) for dt in (2e-3, 1e-3)]
    assert errors[1] < 1e-4 and 1.8 < math.log2(errors[0] / errors[1]) < 2.2, errors


def test_a_fixed_base_need_not_resist_what_turns_it() -> None:
    """Two points on massless rods: nothing resists a turn about the hinge, or about the line of the rods; the base bears them."""
    found, force = [], []
    for inertia in (np.zeros((3, 3)), 1e-3 * np.eye(3)):
        scene = fs.Scene("points", dt=0.002, duration=0.5, nonlinear_tolerance=1e-10)
        links = [fs.RobotLink("base", 1.0, inertia=inertia), *(fs.RobotLink(name, 0.5, (0.2, 0, 0)) for name in ("near", "far"))]
        joints = [
            fs.RobotJoint("first", "base", "near", axis=(0, 1, 0)),
            fs.RobotJoint("second", "near", "far", axis=(0, 1, 0), position=(0.2, 0, 0)),
        ]
        scene.add_robot(fs.Robot("arm", links, joints))
        scene.sensor("mount", "arm", kind="mount")
        run = fs.simulate(scene)
        assert run.status == "converged" and run.steps["wrench_balance"].max() < 1e-9
        assert run.stepper is not None
        found.append(run.stepper.state.q[7:].copy())
        force.append(run.sensors["mount"].force)
    np.testing.assert_allclose(found[0], found[1], atol=1e-9)
    np.testing.assert_allclose(force[0], force[1], atol=1e-6)
    assert np.ptp(force[0][:, 2]) > 1.0


def test_a_theta_step_of_one_is_of_first_order() -> None:
    errors = [float(np.abs(swing(dt, 0.4, theta=1.0) - quadrature(0.4)).max()) for dt in (2e-3, 1e-3)]
    assert 0.8 < math.log2(errors[0] / errors[1]) < 1.3


@pytest.mark.parametrize("seed", range(2))
def test_a_free_robot_keeps_its_momenta(seed: int) -> None:
    rng = np.random.default_rng(seed)
    scene = fs.Scene("free", dt=2e-3, duration=0.2, gravity=(0, 0, 0))
    robot = random_robot(rng)
    speeds = {name: 2.0 * rng.standard_normal() for name in robot.joint_names() if name != "j3"}
    scene.add_robot(robot, base="free", speeds=speeds, velocity=(0.3, -0.2, 0.1), angular_velocity=2.0 * rng.standard_normal(3))
    stepper = Stepper(scene, fs.make_solver("exact"))
    (body,) = scene.bodies
    before = stepper.state
    p, L = body.momentum(before.q, before.v), body.angular_momentum(before.q, before.v)  # type: ignore[attr-defined]
    for _ in range(100):
        report = stepper.step()
        assert report.solution.converged and report.wrench_balance < 1e-9
    after = stepper.state
    assert np.abs(after.q[7:] - before.q[7:]).max() > 0.05
    np.testing.assert_allclose(body.momentum(after.q, after.v), p, atol=1e-10 * np.linalg.norm(p))
    np.testing.assert_allclose(
        body.angular_momentum(after.q, after.v),  # type: ignore[attr-defined]
        L, atol=1e-10 * np.linalg.norm(L),
    )  # fmt: skip


@pytest.mark.parametrize("theta", [0.75, 1.0])
def test_a_robot_that_is_thrown_does_not_spin_by_it(theta: float) -> None:
    """Nor does it turn otherwise than one that falls. By backward Euler 10 m/s had turned it by 31 rad/s after 0.2 s."""

    def last(velocity: tuple[float, float, float], speeds: dict[str, float]) -> np.ndarray:
        scene = fs.Scene("thrown", dt=5e-3, duration=0.1, theta=theta, nonlinear_tolerance=1e-10)
        box = fs.RobotLink.solid("box", fs.Piece(fs.Box((0.04, 0.03, 0.02))), 1.0)
        arm = fs.Robot(
            "thrown",
            [box, *pendulum().links[1:]],
            [fs.RobotJoint("first", "box", "rod1", axis=(0, 1, 0), position=(0.04, 0, 0)), *pendulum().joints[1:]],
        )
        scene.add_robot(arm, base="free", velocity=velocity, speeds=speeds)
        return np.array(fs.simulate(scene).stepper.state.v[3:])

    assert np.abs(last((10.0, 0.0, 3.0), {})).max() < 1e-8
    turning = last((0.0, 0.0, 0.0), {"first": 5.0})
    assert np.abs(turning[:3]).max() > 0.3
    np.testing.assert_allclose(last((10.0, 0.0, 3.0), {"first": 5.0}), turning, atol=1e-7)


@pytest.mark.parametrize("turn", [(0.0, 0.0, 0.0), (0.3, 0.5, -0.7)])
@pytest.mark.parametrize("seed", range(2))
def test_a_robot_on_a_base_at_rest_keeps_its_energy(seed: int, turn: tuple[float, float, float]) -> None:
    """All kinds of joints, damped, let go: what it loses is what its joints take. It had up to 2 and 13 mJ more or less.

    So it had on a base that is turned, where the quaternion of the base was off by rounding: that counted as a motion.
    """
    rng = np.random.default_rng(seed)
    scene = fs.Scene("let go", dt=0.01, nonlinear_tolerance=1e-10)
    robot = random_robot(rng)
    speeds = {name: 4.0 * rng.standard_normal() for name in robot.joint_names() if name != "j3"}
    scene.add_robot(robot, name="arm", speeds=speeds, rotation=turn)
    sim, (body,), rows = fs.Simulation(scene), scene.bodies, []
    q, v = sim.state.q, sim.state.v
    start = body.kinetic_energy(q, v) - body.mass * float(scene.gravity @ body.centre_of_mass(q))
    for _ in range(60):
        rows.append(sim.step().row())
    names = ("kinetic_energy_J", "potential_energy_J", "joint_loss_J", "other_loss_J")
    kinetic, potential, lost, other = (np.array([row[name] for row in rows]) for name in names)
    assert np.ptp(kinetic) > 5.0 and lost[-1] > 0.05
    np.testing.assert_allclose(kinetic + potential + lost, start, rtol=0.0, atol=1e-8 * kinetic.max())
    assert np.abs(other).max() < 1e-8 * kinetic.max()


def thin_links(kind: Literal["spherical", "revolute"], radius: float = 3e-4) -> fs.Robot:
    """Two rods, 30 mm long, on joints whose axis is square to both."""
    mass = 1150.0 * np.pi * radius**2 * 0.03
    across = mass * (0.03**2 / 12 + radius**2 / 4)
    rods = [fs.RobotLink(name, mass, (0.015, 0, 0), np.diag([mass * radius**2 / 2, across, across])) for name in ("a", "b")]
    joints = [
        fs.RobotJoint("first", "base", "a", kind), fs.RobotJoint("second", "a", "b", kind, position=(0.03, 0, 0)),
    ]  # fmt: skip
    return fs.Robot("rods", [fs.RobotLink("base", 1.0, np.zeros(3), np.eye(3)), *rods], joints)


@pytest.mark.parametrize("theta", [1.0, None])
def test_thin_links_on_balls_get_no_spin_from_their_swing(theta: float | None) -> None:
    """No torque acts about their axes, yet backward Euler gave them 5e4 rad/s, and 30 times the energy in 0.3 s."""
    scene = fs.Scene("rods", dt=0.01, **({} if theta is None else {"theta": theta}))
    turned = (np.cos(0.6), 0.0, 0.0, np.sin(0.6))
    scene.add_robot(thin_links("spherical"), name="rods", joints={"second": turned})
    sim, (body,) = fs.Simulation(scene), scene.bodies
    energies, spins, solves = [], [], []
    for _ in range(30):
        q, v = sim.state.q, sim.state.v
        poses = [body.link_pose(q, k) for k in (1, 2)]
        spins += [rotation[:, 0] @ (body.link_jacobian(q, k)[3:] @ v) for k, (rotation, _) in zip((1, 2), poses, strict=True)]
        weight = 9.81 * body.link_momentum(q, v, 1)[0]
        energies.append(body.kinetic_energy(q, v) + weight * sum(centre[2] for _, centre in poses))
        sim.step()
        assert sim.report is not None
        solves.append(sim.report.solves)
    assert np.abs(spins).max() < 2.0 and np.mean(solves) < 5.0 and sim.verdict != "wrong"
    if theta == 1.0:
        assert np.diff(energies).max() < 0.0 and sim.verdict == "good"


def test_a_free_chain_of_thin_links_gains_no_energy_by_backward_euler() -> None:
    """It had 1e6 times its energy after 13 steps, and still seven times after 1 s where the base took what its links did not."""
    (a, b), joint = thin_links("spherical").links[1:], thin_links("spherical").joints[1]
    scene = fs.Scene("chain", dt=0.01, theta=1.0, gravity=(0.0, 0.0, 0.0))
    bent = {"second": (np.cos(0.6), 0.0, 0.0, np.sin(0.6))}
    scene.add_robot(fs.Robot("rods", [a, b], [joint]), name="rods", base="free", joints=bent, angular_velocity=(3.0, 8.0, 12.0))
    sim, (body,) = fs.Simulation(scene), scene.bodies
    energies, p = [body.kinetic_energy(sim.state.q, sim.state.v)], body.momentum(sim.state.q, sim.state.v)
    for _ in range(40):
        sim.step()
        energies.append(body.kinetic_energy(sim.state.q, sim.state.v))
    assert np.diff(energies).max() < 0.0 and energies[-1] > 0.5 * energies[0] and sim.verdict == "good"
    np.testing.assert_allclose(body.momentum(sim.state.q, sim.state.v), p, atol=1e-9 * np.linalg.norm(p))


def test_a_thin_link_leaks_where_it_can_spin() -> None:
    """One that turns by 0.03 rad in a step about a ball does, on a hinge square to its axis not, nor does a thick one."""
    leaking = []
    for kind, radius, row in (("spherical", 3e-4, 8), ("revolute", 3e-4, 6), ("spherical", 0.01, 8)):
        body = thin_links(kind, radius).body("rods", np.zeros(3), np.array([1.0, 0, 0, 0]), {}, {})
        v, thin = 3.0 * (np.arange(body.n_v) == row), kernels.how_thin(body.tree.inertia)
        start = Start(body.initial_q(), v, np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(3), 0.01, 0.01, False)
        places, M = kernels.no_places(3), body.mass_matrix(start.q)
        kernels.place_links(body.tree, start.q, places)
        leaking.append(find_leaking(body.tree, thin, places, M, start, False, np.empty((3, 6))).tolist())
    assert leaking == [[1, 2], [], []]


# ---------------------------------------------------------------------- limits, motors, gravity, contact


def arm(**options: object) -> fs.Robot:
    """Three links: a shoulder that turns about z, an elbow about y and a wrist that slides, with a fixed tool on it."""
    solid = fs.RobotLink.solid
    links = [
        solid("base", fs.Piece(Capsule(0.03, 0.02)), 1.0),
        solid("upper", fs.Piece(Capsule(0.02, 0.1), (0.1, 0, 0), (0, math.pi / 2, 0)), 0.8),
        solid("fore", fs.Piece(Capsule(0.02, 0.1), (0.1, 0, 0), (0, math.pi / 2, 0)), 0.5),
        solid("slide", fs.Piece(fs.Box((0.01, 0.01, 0.05))), 0.2),
        solid("tool", fs.Piece(fs.Sphere(0.02)), 0.3),
    ]
    joints = [
        fs.RobotJoint("shoulder", "base", "upper", axis=(0, 0, 1), position=(0, 0, 0.1)),
        fs.RobotJoint("elbow", "upper", "fore", axis=(0, 1, 0), position=(0.2, 0, 0), **options),  # type: ignore[arg-type]
        fs.RobotJoint("wrist", "fore", "slide", "prismatic", axis=(0, 0, 1), position=(0.2, 0, 0), limits=(-0.1, 0.1)),
        fs.RobotJoint("flange", "slide", "tool", "fixed", position=(0, 0, -0.07)),
    ]
    return fs.Robot("arm", links, joints)


@pytest.mark.parametrize("solver", ["exact", "cond", "pgs", "apgd", "canal"])
def test_limits_hold_and_their_torque_is_reported(solver: str) -> None:
    """The forearm falls to its limit of 0.3 rad and stays: the stop bears the moment of what hangs on the elbow."""
    scene = fs.Scene("limit", dt=2e-3, duration=0.4)
    scene.add_robot(arm(limits=(-1.0, 0.3), damping=0.2))
    scene.drive_joint("arm", "shoulder", lambda t: 0.0)
    scene.drive_joint("arm", "wrist", lambda t: 0.0)
    scene.sensor("elbow", "arm.elbow", kind="revolute")
    run = fs.simulate(scene, solver=solver, tolerance=1e-11)
    assert run.status == "converged"
    angle, stop = run.gauges["elbow"].values["angle_rad"], run.gauges["elbow"].values["limit_Nm"]
    assert angle.max() < 0.3 + 1e-9 and abs(angle[-1] - 0.3) < 1e-9
    moment = G * math.cos(0.3) * (0.5 * 0.1 + 0.2 * 0.2 + 0.3 * 0.2) - G * math.sin(0.3) * 0.3 * 0.07
    assert stop[-1] == pytest.approx(-moment, rel=1e-6) and (stop <= 0.0).all() and not stop[angle < 0.29].any()
    assert run.steps["wrench_balance"].max() < 1e-6
    assert abs(run.gauges["elbow"].values["rate_radps"][-1]) < 1e-9


def test_servos_that_follow_profiles_are_read_at_once_as_one_by_one() -> None:
    """Also while one of them has a value that was commanded, and after that."""

    def build(wrap: Callable[[fs.Profile], Callable[[float], float]]) -> Stepper:
        scene = fs.Scene("servos", dt=2e-3, duration=1.0)
        scene.add_robot(arm(damping=0.1))
        for joint, target in (("shoulder", 0.4), ("elbow", -0.3), ("wrist", 0.02)):
            profile = fs.Profile([0.0, 0.02], [0.0, target])
            scene.drive_joint("arm", joint, wrap(profile), stiffness=50.0, damping=2.0)
        return Stepper(scene, make_solver("exact"))

    together, one_by_one = build(lambda profile: profile), build(lambda profile: lambda t: profile(t))
    for step in range(12):
        for stepper in (together, one_by_one):
            (elbow,) = (command for name, command in stepper.scene.commands.items() if "elbow" in name)
            if step == 4:
                elbow.take(0.5, stepper.state.t, 0.004)
            elif step == 8:
                elbow.release()
            stepper.step()
        assert together.state == one_by_one.state
    assert abs(together.state.q[8]) > 1e-4


@pytest.mark.parametrize("base", ["fixed", "free"])
def test_a_motion_is_followed_exactly_and_its_torque_is_that_of_inverse_dynamics(base: str) -> None:
    """Also on a base that floats without gravity: there the motion makes the base move the other way."""
    gravity = (0.0, 0.0, -G if base == "fixed" else 0.0)
    scene = fs.Scene("led", dt=1e-3, duration=0.1, gravity=gravity, nonlinear_tolerance=1e-9)
    scene.add_robot(arm(), base=base)  # type: ignore[arg-type]
    for joint, size in (("shoulder", 0.3), ("elbow", -0.2), ("wrist", 0.05)):
        scene.drive_joint("arm", joint, lambda t, size=size: size * (1.0 - math.cos(8.0 * t)))
    for joint in ("shoulder", "elbow"):
        scene.sensor(joint, f"arm.{joint}", kind="revolute")
    scene.sensor("wrist", "arm.wrist", kind="prismatic")
    run = fs.simulate(scene)
    assert run.status == "converged" and run.steps["wrench_balance"].max() < 1e-6
    t, body = run.steps["time_s"][-2], scene.bodies[0]
    assert run.gauges["elbow"].values["angle_rad"][-1] == pytest.approx(-0.2 * (1 - math.cos(0.8)), abs=1e-9)
    if base == "free":
        assert np.abs(body.momentum(run.stepper.state.q, run.stepper.state.v)).max() < 1e-9
        return
    sizes = np.array([0.3, -0.2, 0.05])
    q, v, rate = body.initial_q(), np.zeros(9), np.zeros(9)
    middle = t + 0.5e-3
    turned = 8 * middle
    q[7:], v[6:], rate[6:] = sizes * (1 - math.cos(turned)), sizes * 8 * math.sin(turned), sizes * 64 * math.cos(turned)
    places, torque = kernels.no_places(5), np.empty(9)
    kernels.place_links(body.tree, q, places)  # type: ignore[attr-defined]
    kernels.inverse_dynamics(body.tree, places, v, rate, np.array(gravity), torque)  # type: ignore[attr-defined]
    got = [run.gauges["shoulder"].values["torque_Nm"][-1], run.gauges["elbow"].values["torque_Nm"][-1]]
    np.testing.assert_allclose([*got, run.gauges["wrist"].values["force_N"][-1]], torque[6:], rtol=1e-3, atol=1e-4)


def mimicking(factor: float, **led: object) -> fs.Robot:
    """Two bars on a base, the second led by the first."""
    bars = [fs.RobotLink(name, 0.5, (x, 0, 0), 1e-3 * np.eye(3)) for name, x in (("left", 0.1), ("right", 0.2))]
    joints = [
        fs.RobotJoint("lead", "base", "left", "continuous", axis=(0, 1, 0)),
        fs.RobotJoint("led", "base", "right", position=(1, 0, 0), axis=(0, 1, 0), mimic=("lead", factor, 0.0), **led),  # type: ignore[arg-type]
    ]
    return fs.Robot("arm", [fs.RobotLink("base"), *bars], joints)


def test_a_joint_mimics_one_that_mimics_another() -> None:
    names = ("a", "b", "c")
    links = [fs.RobotLink("base"), *(fs.RobotLink(name, 0.5, (0.1, 0, 0), 1e-3 * np.eye(3)) for name in names)]

    def robot(**mimics: tuple[str, float, float]) -> fs.Robot:
        joints = [fs.RobotJoint(f"to_{k}", "base", k, "prismatic", axis=(1, 0, 0), mimic=mimics.get(k)) for k in names]
        return fs.Robot("chain", links, joints)

    scene = fs.Scene("chain", dt=0.01, gravity=(0, 0, 0))
    scene.add_robot(robot(c=("to_b", -2.0, 0.3), b=("to_a", 3.0, 0.1)), joints={"to_a": 0.2})
    places = [float(fs.Simulation(scene).pose(f"chain.{k}")[1][0]) - 0.1 for k in names]
    assert places == pytest.approx([0.2, 3.0 * 0.2 + 0.1, -2.0 * (3.0 * 0.2 + 0.1) + 0.3], abs=1e-12)
    with pytest.raises(fs.InputError, match="'to_a' mimics 'to_b', which mimics 'to_c', which mimics 'to_a'; one of them"):
        robot(a=("to_b", 1.0, 0.0), b=("to_c", 1.0, 0.0), c=("to_a", 1.0, 0.0))


def test_speeds_of_a_spherical_joint_are_in_its_axes_on_the_parent() -> None:
    """Not in those of the child, which turn along, nor in the world's: a base, a joint and a child that are all turned."""
    links = [fs.RobotLink.solid(name, fs.Piece(fs.Box((0.1, 0.2, 0.3))), 1.0) for name in ("base", "child")]
    base, frame, own = (Rotation.from_rotvec(turn) for turn in ((0.4, -0.3, 0.8), (0.2, 1.1, -0.5), (-0.7, 0.6, 0.9)))
    ball = fs.RobotJoint("ball", "base", "child", "spherical", (0.5, 0, 0), frame.as_rotvec())
    speed, dt = np.array([1.0, -2.0, 3.0]), 1e-6
    scene = fs.Scene("ball", dt=dt, duration=dt, gravity=(0, 0, 0))
    scene.add_robot(
        fs.Robot("robot", links, [ball]), rotation=base.as_rotvec(), joints={"ball": own.as_quat(scalar_first=True)},
        speeds={"ball": speed},
    )  # fmt: skip
    sim = fs.Simulation(scene)
    before = Rotation.from_matrix(sim.pose("robot.child")[0])
    np.testing.assert_allclose((before * (base * frame * own).inv()).as_rotvec(), 0.0, atol=1e-12)
    turned = Rotation.from_matrix(sim.step().pose("robot.child")[0]) * before.inv()
    np.testing.assert_allclose(turned.as_rotvec() / dt, (base * frame).apply(speed), atol=1e-4)


def test_damping_and_rotor_of_a_joint_that_mimics_are_felt_by_the_one_that_leads() -> None:
    """By the square of the factor: so their power stays the same."""
    plain, heavy = mimicking(-2.0), mimicking(-2.0, damping=0.01, rotor_inertia=0.003)
    bare, more = (robot.inverse_dynamics({}, {"lead": 0.5}, {"lead": 3.0}) for robot in (plain, heavy))
    assert more["lead"] - bare["lead"] == pytest.approx(4.0 * (0.01 * 0.5 + 0.003 * 3.0), rel=1e-12)
    scene = fs.Scene("slows", dt=0.001, duration=0.2, gravity=(0, 0, 0))
    scene.add_robot(heavy, speeds={"lead": 1.0})
    scene.sensor("lead", "arm.lead", kind="revolute")
    inertia = 0.001 + 0.005 + 4.0 * (0.001 + 0.02 + 0.003)
    rate = fs.simulate(scene).gauges["lead"].values["rate_radps"][-1]
    assert rate == pytest.approx(math.exp(-0.04 / inertia * 0.2), rel=1e-5)


@pytest.mark.parametrize("factor", [-2.0, 0.5])
def test_efforts_at_a_joint_that_mimics_are_positive_as_its_own_angle(factor: float) -> None:
    """What the motor, a stop and dry friction do at it is what they do at the one that leads: their power is the same."""
    held = fs.Scene("held", dt=0.005, duration=0.1)
    held.add_robot(mimicking(factor, friction=0.02))
    held.drive_joint("arm", "lead", fs.Profile([0.0, 1.0], [0.0, 0.1]))
    fallen = fs.Scene("fallen", dt=0.005, duration=1.0)
    fallen.add_robot(mimicking(factor, damping=0.1, limits=(-0.2, 0.2)))
    for scene, columns in ((held, ["torque_Nm", "friction_Nm"]), (fallen, ["limit_Nm"])):
        for joint in ("lead", "led"):
            scene.sensor(joint, f"arm.{joint}", kind="revolute")
        gauges = fs.simulate(scene).gauges
        lead, led = gauges["lead"].values, gauges["led"].values
        for column in columns:
            assert abs(lead[column][-1]) > 0.005
            np.testing.assert_allclose(led[column] * factor, lead[column], rtol=1e-12)
    assert abs(led["angle_rad"][-1]) == pytest.approx(0.2, abs=1e-9)
    assert led["limit_Nm"][-1] * led["angle_rad"][-1] < 0.0  # a stop pushes back


def test_a_sensor_of_a_joint_means_the_joint_where_a_link_has_its_name_too() -> None:
    """Joint "b" carries link "a", joint "a" link "b"."""
    links = [fs.RobotLink("base"), *(fs.RobotLink.solid(name, fs.Piece(Capsule(0.01, 0.09)), 0.5) for name in "ab")]
    joints = [fs.RobotJoint("b", "base", "a", axis=(0, 1, 0)), fs.RobotJoint("a", "a", "b", axis=(0, 1, 0), position=(0, 0, 0.2))]
    scene = fs.Scene("names", dt=0.001, duration=0.001, gravity=(0, 0, 0))
    scene.add_robot(fs.Robot("arm", links, joints), joints={"a": 0.7, "b": 0.3})
    for name in "ab":
        scene.sensor(name, f"arm.{name}", kind="revolute")
        scene.sensor(f"at_{name}", f"arm.{name}", kind="marker")
    run = fs.simulate(scene)
    assert [run.gauges[name].values["angle_rad"][0] for name in "ab"] == pytest.approx([0.7, 0.3])
    np.testing.assert_allclose(run.markers["at_a"].position[0], 0.0, atol=1e-9)  # of a link, which is where its joint is
    assert run.markers["at_b"].position[0, 2] > 0.1


def test_a_static_arm_bears_its_weight_at_every_joint() -> None:
    """Servos hold it; torques, reaction wrenches and the wrench of the base are its weight's, also at the fixed flange."""
    scene = fs.Scene("static", dt=0.01, duration=3.0)
    scene.add_robot(arm(damping=0.1), joints={"elbow": 0.4})
    for joint, at in (("shoulder", 0.0), ("elbow", 0.4), ("wrist", 0.0)):
        scene.drive_joint("arm", joint, lambda t, at=at: at, stiffness=2e3)
    scene.sensor("elbow", "arm.elbow", kind="revolute")
    scene.sensor("wrist", "arm.wrist", kind="prismatic")
    for joint in ("elbow", "flange"):
        scene.sensor(f"{joint}_wrench", f"arm.{joint}", kind="joint")
    scene.sensor("mount", "arm", kind="mount")
    run = fs.simulate(scene)
    angle = run.gauges["elbow"].values["angle_rad"][-1]
    slid = run.gauges["wrist"].values["position_m"][-1]
    c, s = math.cos(angle), math.sin(angle)
    moment = G * (0.5 * 0.1 * c + 0.2 * (0.2 * c + slid * s) + 0.3 * (0.2 * c + (slid - 0.07) * s))
    assert run.gauges["elbow"].values["torque_Nm"][-1] == pytest.approx(-moment, rel=1e-6)
    assert run.gauges["wrist"].values["force_N"][-1] == pytest.approx(0.5 * G * c, rel=1e-6)
    np.testing.assert_allclose(run.sensors["mount"].force[-1], [0, 0, 2.8 * G], atol=1e-6)
    np.testing.assert_allclose(run.sensors["elbow_wrench"].force[-1], [0, 0, 1.0 * G], atol=1e-6)
    np.testing.assert_allclose(run.sensors["flange_wrench"].force[-1], [0, 0, 0.3 * G], atol=1e-6)
    np.testing.assert_allclose(run.sensors["flange_wrench"].torque[-1], 0.0, atol=1e-6)
    # about the centre of the forearm the joint pushes at a lever of 0.1 m, and turns as the motor does
    about = run.sensors["elbow_wrench"].torque[-1, 1]
    assert about == pytest.approx(-moment + 0.1 * c * 1.0 * G, abs=1e-6)

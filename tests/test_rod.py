"""Rods: the joint against plain twins and finite differences, balances of momentum and energy, and what is refused.

Kernels: `Joint` and `plain_system` are the twins of joint_states, joint_blocks and system, checked by finite differences of the
energy as well; advance, rotations and spins have plain twins of their own, joint_response is in the wrenches of held ends.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from lone_rods import (
    CABLE,
    DOWN,
    NO_GRAVITY,
    ROUND,
    Stepped,
    assembled,
    dense,
    force,
    helix,
    mass_matrix,
    ring,
    stiffness,
    tangent,
)
from scipy.spatial.transform import Rotation
from slow_rods import (
    CLAMPED,
    ENDS,
    HINGED,
    Joint,
    frames_and_links,
    line,
    moved,
    shaken,
    uneven,
    walk,
)

import femsim as fs
from femsim.base.errors import InputError
from femsim.base.rotations import quaternion_multiply
from femsim.model.bodies.body import StepSettings
from femsim.model.bodies.rod import Rod
from femsim.model.bodies.rod_end import RodEnd
from femsim.model.bodies.rod_kernels import bound_pulls, foresee_pulls, pulls_by_velocity
from femsim.model.bodies.rod_make import MAX_TENSION
from materials import Elastic, rectangular_section

# ---------------------------------------------------------------------- plain twins of the joint


def plain_joints(rod: Rod, q: np.ndarray) -> list[Joint]:
    ends = [end.kind != "free" for end in rod.ends]
    return [Joint(rod, frames_and_links(rod, q), k) for k in range(0 if ends[0] else 1, rod.n_links + ends[1])]


def plain_system(
    rod: Rod, q: np.ndarray, v: np.ndarray, settings: StepSettings, end_velocity: np.ndarray, damping: tuple[float, float]
) -> tuple[np.ndarray, np.ndarray]:
    """A and b of eq. (9) in dense matrices, of the links and the two frames, then without the frames."""
    n, implicit = rod.n_links, settings.theta * settings.dt
    alpha, beta = rod.elastic.rayleigh_alpha, rod.elastic.rayleigh_beta
    K, b = np.zeros((6 * n + 12, 6 * n + 12)), np.zeros(6 * n + 12)
    for joint in plain_joints(rod, q):
        rows = slice(6 * joint.k, 6 * joint.k + 12)
        K[rows, rows] += (implicit + beta) * joint.J.T @ joint.K @ joint.J + implicit * joint.tension
        b[rows] -= joint.J.T @ joint.K @ joint.e
    links = slice(6, 6 * n + 6)
    M = mass_matrix(rod, q)
    b -= K[:, :6] @ end_velocity[0] + K[:, -6:] @ end_velocity[1]
    A, b = K[links, links] + M * (1 / implicit + alpha), b[links] + M @ v / implicit
    for i in range(n):
        w = slice(6 * i + 3, 6 * i + 6)
        b[w] -= np.cross(v[w], M[w, w] @ v[w])
        b[6 * i : 6 * i + 3] += rod.link_mass[i] * settings.gravity
        A[6 * i : 6 * i + 6, 6 * i : 6 * i + 6] += rod.lengths[i] * np.diag(np.repeat(damping, 3))
    return A, b


@pytest.mark.parametrize("amount", [0.0, 0.02, 0.4])
@pytest.mark.parametrize("ends", ENDS)
def test_system_against_plain_matrices(ends: str, amount: float) -> None:
    rod = uneven(ends, moving=True, translational_damping=2.0, rotational_damping=3e-6)
    rng = np.random.default_rng(1)
    q, v = shaken(rod, rng, amount), rng.standard_normal(rod.n_v)
    settings = StepSettings(0.01, 0.8, DOWN)
    data, b, external = assembled(rod, q, v, settings, t=2.0)
    end_velocity = np.zeros((2, 6))
    for k, end in enumerate(rod.ends):
        if end.motion is not None:
            end_velocity[k, :3] = np.subtract(walk(2.01)[0], walk(2.0)[0]) / 0.01
            old, new = (Rotation.from_rotvec(walk(t)[1]) for t in (2.0, 2.01))
            end_velocity[k, 3:] = (new * old.inv()).as_rotvec() / 0.01
    A, expected = plain_system(rod, q, v, settings, end_velocity, (2.0, 3e-6))
    got = dense(rod, data)
    assert np.array_equal(got, got.T)
    scale = np.sqrt(np.diag(A))
    np.testing.assert_allclose(got / np.outer(scale, scale), A / np.outer(scale, scale), atol=1e-12)
    np.testing.assert_allclose(b / scale, expected / scale, rtol=1e-10, atol=1e-10 * np.abs(expected / scale).max())
    np.testing.assert_allclose(external.reshape(-1, 6), rod.link_mass[:, None] * [0, 0, -9.81, 0, 0, 0], rtol=1e-14)


@pytest.mark.parametrize("amount", [0.0, 1e-7, 3e-3])
def test_nearly_straight_joints_against_plain_matrices(amount: float) -> None:
    """Turns below 0.01 rad take the series of the joint's functions."""
    rod = Rod("rod", line(5, 0.05), rectangular_section(0.004, 0.002), CABLE, rest_curvature=np.array([3.0, -2.0, 9.0]))
    rng = np.random.default_rng(9)
    q, v = shaken(rod, rng, amount), rng.standard_normal(rod.n_v)
    settings = StepSettings(0.01, 1.0, DOWN)
    data, b, _ = assembled(rod, q, v, settings)
    A, expected = plain_system(rod, q, v, settings, np.zeros((2, 6)), (0.0, 0.0))
    scale = np.sqrt(np.diag(A))
    np.testing.assert_allclose(dense(rod, data) / np.outer(scale, scale), A / np.outer(scale, scale), atol=1e-12)
    np.testing.assert_allclose(b / scale, expected / scale, rtol=1e-10, atol=1e-10 * np.abs(expected / scale).max())


def test_links_are_bricks() -> None:
    """Mass and inertia of a link 8 mm long with a section of 4 mm by 2 mm, axes 1 and 2."""
    rod = Rod("rod", line(5, 0.04), rectangular_section(0.004, 0.002), CABLE)
    mass = 1259.0 * 0.008 * 0.004 * 0.002
    np.testing.assert_allclose(rod.link_mass, mass, rtol=1e-12)
    squares = np.array([0.002**2 + 0.008**2, 0.004**2 + 0.008**2, 0.004**2 + 0.002**2])
    np.testing.assert_allclose(rod.link_inertia, np.tile(mass / 12 * squares, (5, 1)), rtol=1e-12)
    rope = Rod("rope", line(5, 0.04), replace(rectangular_section(0.004, 0.002), bending_factor=1e-4), CABLE)
    np.testing.assert_array_equal(rope.link_inertia, rod.link_inertia)


def test_clamps_of_an_arc_are_along_its_tangent() -> None:
    """Half a joint at each end: the frames of a polygon on a circle have the circle's own tangents, and there is no strain."""
    rod = Rod("rod", ring(24)[:9], ROUND, CABLE, start=CLAMPED, end=CLAMPED)
    np.testing.assert_allclose(rod.strains(rod.initial_q()), 0.0, atol=1e-12)
    for frame, angle in zip(rod.end_frames, (0.0, 2 * math.pi * 8 / 24), strict=True):
        tangent_there = Rotation.from_quat(frame[[4, 5, 6, 3]]).as_matrix()[:, 2]
        np.testing.assert_allclose(tangent_there, [-math.sin(angle), math.cos(angle), 0.0], atol=1e-12)


def test_pattern_is_block_tridiagonal_and_one_link_is_a_rod() -> None:
    rod = uneven("free")
    full = dense(rod, np.ones(len(rod.pattern()[1])))
    np.testing.assert_array_equal(full, np.kron(np.abs(np.subtract.outer(range(7), range(7))) <= 1, np.ones((6, 6))))
    single = uneven("mixed", 1, moving=True)
    rng = np.random.default_rng(0)
    q, v = shaken(single, rng, 0.1), rng.standard_normal(6)
    settings = StepSettings(0.01, 1.0, DOWN)
    data, b, _ = assembled(single, q, v, settings, t=0.0)
    velocity = np.array([0.001, -0.002, 0.003, 0.5, -0.2, 0.7])
    A, expected = plain_system(single, q, v, settings, np.array([velocity, np.zeros(6)]), (0.0, 0.0))
    np.testing.assert_allclose(dense(single, data), A, rtol=1e-12, atol=1e-12 * np.abs(A).max())
    np.testing.assert_allclose(b, expected, rtol=1e-9)


@pytest.mark.parametrize("ends", ENDS)
def test_energy_force_and_strain_against_the_plain_joint(ends: str) -> None:
    rod = uneven(ends)
    q = shaken(rod, np.random.default_rng(2), 0.4)

    def energy(x: np.ndarray) -> float:
        return sum(0.5 * joint.e @ joint.K @ joint.e for joint in plain_joints(rod, x))

    assert rod.elastic_energy(q) == pytest.approx(energy(q), rel=1e-12)
    gradient = np.empty(rod.n_v)
    for c in range(rod.n_v):
        h = 1e-6 * (0.005 if c % 6 < 3 else 1.0)
        motion = h * np.eye(rod.n_v)[c]
        gradient[c] = (energy(moved(rod, q, motion)) - energy(moved(rod, q, -motion))) / (2 * h)
    got = -force(rod, q).reshape(-1, 6)
    for part in (slice(0, 3), slice(3, 6)):
        expected = gradient.reshape(-1, 6)[:, part]
        np.testing.assert_allclose(got[:, part], expected, atol=1e-8 * np.abs(expected).max())
    strains = rod.strains(q)
    for joint in plain_joints(rod, q):
        np.testing.assert_allclose(strains[joint.k] * joint.length, joint.e, rtol=1e-10, atol=1e-14)
    assert not strains[[k for k, end in zip((0, -1), rod.ends, strict=True) if end.kind == "free"]].any()


@pytest.mark.parametrize("ends", ENDS)
def test_kept_tangent_is_exact_without_stress(ends: str) -> None:
    """At a bent rest shape without stress all of the second derivative is kept."""
    rod = uneven(ends)
    q = rod.initial_q()
    K, kept = tangent(rod, q), stiffness(rod, q)
    scale = np.sqrt(np.diag(kept))
    np.testing.assert_allclose(K / np.outer(scale, scale), kept / np.outer(scale, scale), atol=2e-8)


@pytest.mark.parametrize("ends", ["clamped", "hinged"])
def test_tension_stiffness_is_exact_under_pull(ends: str) -> None:
    """A straight rod with 20 % of stretch: what the pull adds to the second derivative is kept too."""
    stretch = 0.2

    def pull(t: float) -> tuple[np.ndarray, np.ndarray]:
        return np.array([0.0, stretch * 0.1, 0.0]), np.zeros(3)

    rod = Rod("rod", line(6, 0.1, 1), ROUND, CABLE, start=RodEnd(ends), end=RodEnd(ends, pull))
    q = rod.initial_q()
    rod.centres(q)[:] *= 1 + stretch
    if ends == "hinged":  # the two half joints are as stiff as half a joint each
        np.testing.assert_allclose(rod.strains(q)[:, 2], stretch, rtol=1e-9)
    tension = CABLE.young_modulus * ROUND.area * stretch
    assert tension < MAX_TENSION * ROUND.shear_factor_1 * CABLE.lame_mu * ROUND.area
    K, kept = tangent(rod, q), stiffness(rod, q)
    scale = np.sqrt(np.diag(kept))
    np.testing.assert_allclose(K / np.outer(scale, scale), kept / np.outer(scale, scale), atol=2e-8)
    # and the term matters: a taut string resists sideways motion by it
    side = np.kron(np.sin(np.pi * (np.arange(6) + 0.5) / 6), [1.0, 0, 0, 0, 0, 0])
    assert side @ kept @ side > 0


@pytest.mark.parametrize("side", [0, 1])
def test_pull_of_a_tip_load_is_in_the_stiffness(side: int) -> None:
    """A tip load has a lever of half a link, so its torque changes with the turn of the last link."""
    pull = 0.1 * CABLE.young_modulus * ROUND.area
    end = RodEnd(load=lambda t: (np.array([0.0, (2 * side - 1) * pull, 0.0]), NO_GRAVITY))
    start, end = (CLAMPED, end) if side else (end, CLAMPED)
    rod = Rod("rod", line(6, 0.1, 1), ROUND, CABLE, start=start, end=end)
    q = rod.initial_q()
    held = rod.centre_line(q)[0 if side else -1]
    rod.centres(q)[:] = held + 1.1 * (rod.centres(q) - held)
    assert np.abs(force(rod, q)).max() < 1e-9 * pull
    K, kept = tangent(rod, q), stiffness(rod, q)
    scale = np.sqrt(np.diag(kept))
    np.testing.assert_allclose(K / np.outer(scale, scale), kept / np.outer(scale, scale), atol=2e-8)


@pytest.mark.parametrize("amount", [0.05, 0.3])
def test_kept_stiffness_is_never_indefinite(amount: float) -> None:
    rng = np.random.default_rng(8)
    stretched = 0
    for ends in ENDS:
        rod = uneven(ends)
        for _ in range(30):
            q = shaken(rod, rng, amount)
            rod.centres(q)[:] *= 1 + rng.uniform(0, 0.5)
            kept = stiffness(rod, q)
            stretched += (rod.strains(q)[:, 2] > 0.25).any()
            scale = np.sqrt(np.diag(kept))
            assert np.linalg.eigvalsh(kept / np.outer(scale, scale)).min() > -1e-9
    assert stretched > 50


def test_pulls_are_foreseen_by_the_strain_of_the_linearisation() -> None:
    """For stiff and ball joints; against rows of the exact Jacobian of the strain."""
    rng = np.random.default_rng(8)
    for ends in ENDS:
        rod = uneven(ends)
        q = shaken(rod, rng, 0.2)
        rod.update_joints(q)
        joints, strained, n = rod.joints(), rod.strained, rod.n_links
        pull, ways, foreseen = np.zeros(n + 1), np.zeros((n + 1, 9)), np.zeros(n + 1)
        pulls_by_velocity(joints.kind, strained.force, strained.geometry, pull, ways)
        before, now = rng.standard_normal((2, n + 2, 6))
        foresee_pulls(joints.kind, pull, ways, joints.stiffness, before, now, 0.01, foreseen)
        geometry, twins = strained.geometry.copy(), plain_joints(rod, q)
        bound_pulls(foreseen, geometry)
        for joint in twins:
            own = joint.K[2, 2] * (joint.J[2] @ (now - before)[joint.k : joint.k + 2].ravel())
            expected = max(joint.pull + 0.01 * own, 0.0)
            assert pull[joint.k] == pytest.approx(joint.pull, rel=1e-9, abs=1e-12)
            assert foreseen[joint.k] == pytest.approx(expected, rel=1e-9, abs=1e-9)
            assert geometry[joint.k, 39] == pytest.approx(min(expected, max(joint.pull, 0.0), joint.ceiling), rel=1e-9, abs=1e-12)
        assert 0 < sum(foreseen[joint.k] > 0.0 for joint in twins) < len(twins)


def test_a_stiff_cable_that_swings_takes_few_linearisations() -> None:
    """5.0 a step with the pulls of links that a linearisation turned, and so drew out."""
    scene = fs.Scene("swing", dt=0.02, duration=1.0, theta=1.0)
    points, cable = np.linspace((0.0, 0.0, 0.0), (0.8, 0.3, -0.3), 21), Elastic(1e9, 0.4, 1200.0, name="cable")
    scene.add_rod("cable", points, fs.circular_section(0.004, bending=1e-3), cable, start=fs.RodEnd("hinged"))
    run = fs.simulate(scene)
    assert run.verdict == "good" and np.mean(run.steps["solves"]) < 4.5


# ---------------------------------------------------------------------- balances


@pytest.mark.parametrize("ends", ["clamped", "hinged", "mixed"])
@pytest.mark.parametrize("n", [1, 2, 3, 7])
def test_frames_that_move_alone_change_the_joints_of_the_ends(ends: str, n: int) -> None:
    """Only those are worked out again then, and the energy of all when somebody asks; links that move as well are seen."""
    rng = np.random.default_rng(5)
    rod, other = uneven(ends, n), uneven(ends, n)
    q = shaken(rod, rng, 0.2)
    for k in range(3):
        q = shaken(rod, rng, 0.2) if k == 2 else q
        frames = rod.end_frames.copy()
        frames[:, :2] += [0.002 * (k + 1), 0.001]
        frames[:, 3:] = [quaternion_multiply(np.array([0.8, 0.6, 0.0, 0.0]), turn) for turn in frames[:, 3:]]
        rod.end_frames[:] = frames
        other.reset()
        other.end_frames[:] = frames  # it remembers no joints
        np.testing.assert_array_equal(rod.joint_wrenches(q), other.joint_wrenches(q))
        np.testing.assert_array_equal(rod.strains(q), other.strains(q))
        assert rod.elastic_energy(q) == other.elastic_energy(q)


def test_rigid_motion_makes_no_force() -> None:
    rod = Rod("rod", helix(20), rectangular_section(0.003, 0.001), CABLE)
    rng = np.random.default_rng(4)
    turn, shift = Rotation.random(random_state=rng), rng.standard_normal(3)
    q = rod.initial_q().reshape(-1, 7)
    q[:, :3] = turn.apply(q[:, :3]) + shift
    x, y, z, w = turn.as_quat()
    q[:, 3:] = [quaternion_multiply(np.array([w, x, y, z]), pose[3:]) for pose in q]
    largest = CABLE.young_modulus * rod.section.area
    assert np.abs(force(rod, q.ravel())).max() < 1e-12 * largest
    assert rod.elastic_energy(q.ravel()) < 1e-20
    # and a rigid velocity meets no resistance of the joints
    spin = rng.standard_normal(3)
    v = np.column_stack([np.cross(spin, q[:, :3]), np.tile(spin, (20, 1))]).ravel()
    kept = stiffness(rod, q.ravel())
    assert np.abs(kept @ v).max() < 1e-10 * np.abs(kept).max() * np.abs(v).max()


def thrown(dt: float, theta: float) -> Stepped:
    """A bent rod in free flight, each link with a velocity of its own."""
    elastic = Elastic(2.954e6, 0.49, 1259.0, rayleigh_beta=1e-3)
    rod = Rod("rod", helix(12), rectangular_section(0.004, 0.002), elastic, rest_curvature=np.array([0.0, 5.0, -9.0]))
    moving = Stepped(rod, dt, theta)
    moving.v = 0.1 * np.random.default_rng(5).standard_normal(rod.n_v) * np.tile([1, 1, 1, 20, 20, 20], 12)
    return moving


@pytest.mark.parametrize("theta", [1.0, 0.6])
def test_free_rod_keeps_its_momentum(theta: float) -> None:
    drift = []
    for dt in (1e-4, 5e-5):
        moving = thrown(dt, theta)
        rod = moving.rod
        linear, angular = rod.momentum(moving.q, moving.v), rod.angular_momentum(moving.q, moving.v)
        for _ in range(round(0.02 / dt)):
            moving.step()
        np.testing.assert_allclose(rod.momentum(moving.q, moving.v), linear, rtol=0, atol=1e-12 * np.linalg.norm(linear))
        drift.append(np.linalg.norm(rod.angular_momentum(moving.q, moving.v) - angular) / np.linalg.norm(angular))
    assert drift[0] < 0.01 and 1.8 < drift[0] / drift[1] < 2.6  # first order in dt: the step is linearised


def test_angular_momentum_and_energy_against_plain_sums() -> None:
    rod = Rod("rod", helix(9), rectangular_section(0.004, 0.002), CABLE)
    rng = np.random.default_rng(6)
    q, v = shaken(rod, rng, 0.3), rng.standard_normal(rod.n_v)
    M, velocity = mass_matrix(rod, q), v.reshape(-1, 6)
    assert rod.kinetic_energy(q, v) == pytest.approx(0.5 * v @ M @ v, rel=1e-12)
    spin = (M @ v).reshape(-1, 6)
    expected = (np.cross(rod.centres(q), spin[:, :3]) + spin[:, 3:]).sum(axis=0)
    np.testing.assert_allclose(rod.angular_momentum(q, v), expected, rtol=1e-12, atol=1e-12 * np.abs(expected).max())
    np.testing.assert_allclose(rod.momentum(q, v), rod.link_mass @ velocity[:, :3], rtol=1e-14)
    assert rod.mass == pytest.approx(1259.0 * 8e-6 * rod.lengths.sum(), rel=1e-12)


@pytest.mark.parametrize("linear", [True, False])
def test_advance_against_plain_rotations(linear: bool) -> None:
    rod = Rod("rod", helix(5), rectangular_section(0.004, 0.002), CABLE)
    rng = np.random.default_rng(7)
    q, v, v_hat = shaken(rod, rng, 0.3), rng.standard_normal(rod.n_v), 30 * rng.standard_normal(rod.n_v)
    v_hat[3:6] = 0.0
    settings = StepSettings(0.01, 0.7, NO_GRAVITY, linear=linear)
    q_new, v_new = np.empty_like(q), np.empty_like(v)
    rod.accept(v_hat)
    rod.advance(q, v, v_hat, settings, q_new, v_new)
    for i in range(5):
        u, w = slice(6 * i, 6 * i + 3), slice(6 * i + 3, 6 * i + 6)
        np.testing.assert_allclose(q_new[7 * i : 7 * i + 3], q[7 * i : 7 * i + 3] + 0.01 * v_hat[u], rtol=1e-14)
        old = rod.axes(q)[i]
        new = Rotation.from_rotvec(0.01 * v_hat[w]).as_matrix() @ old
        np.testing.assert_allclose(rod.axes(q_new)[i], new, atol=1e-14)
        np.testing.assert_allclose(v_new[u], v[u] + (v_hat[u] - v[u]) / 0.7, rtol=1e-13)
        # spin plus dt times the torque that the equations of the step counted, or eq. (9)
        inertia = old @ np.diag(rod.link_inertia[i]) @ old.T
        middle = Rotation.from_rotvec(0.007 * v_hat[w]).as_matrix() @ old
        there = inertia if linear else middle @ np.diag(rod.link_inertia[i]) @ middle.T
        torque = (there @ v_hat[w] - inertia @ v[w]) / 0.007 + linear * np.cross(v[w], inertia @ v[w])
        spin = inertia @ v[w] + 0.01 * torque
        np.testing.assert_allclose(new @ np.diag(rod.link_inertia[i]) @ new.T @ v_new[w], spin, atol=1e-12 * np.abs(spin).max())


SPRUNG = {
    "free": lambda: Rod("rod", helix(12), ROUND, CABLE, rest_curvature=np.array([0.0, 5.0, -9.0])),
    "clamped": lambda: Rod("rod", helix(16, 0.5), ROUND, CABLE, rest_curvature=np.zeros(3), start=CLAMPED),
    "hinged": lambda: Rod("rod", helix(40), ROUND, CABLE, rest_curvature=np.zeros(3), start=HINGED, end=HINGED),
}


@pytest.mark.parametrize("ends", SPRUNG)
def test_energy_never_grows_at_theta_one(ends: str) -> None:
    """Bent rods that spring straight, with turns of up to 0.3 rad a step and no damping of their own."""
    moving = Stepped(SPRUNG[ends](), 1e-3)
    energies, turn = [moving.energy], 0.0
    for _ in range(200):
        moving.step()
        energies.append(moving.energy)
        turn = max(turn, 1e-3 * np.linalg.norm(moving.v_hat.reshape(-1, 6)[:, 3:], axis=1).max())
    assert turn > 0.1
    assert np.diff(energies).max() < 0
    assert energies[-1] < 0.6 * energies[0]


def test_held_ends_carry_what_the_rod_needs() -> None:
    """Rate of momentum = weight + drag + load - force on the frames, in every step of a rod that is swung by both ends."""

    def swing(t: float) -> tuple[np.ndarray, np.ndarray]:
        return np.array([0.0, 0.02 * math.sin(20 * t), 0.01 * t]), np.array([2.0 * t, 0.0, 5.0 * t])

    elastic = Elastic(2.954e6, 0.49, 1259.0, rayleigh_alpha=0.5, rayleigh_beta=2e-3)
    rod = Rod(
        "rod", line(15, 0.1), ROUND, elastic, start=RodEnd("clamped", swing), end=HINGED, translational_damping=0.3,
        rotational_damping=1e-5, load=lambda t: np.array([0.0, 0.002 * t, 0.001]),
    )  # fmt: skip
    for theta in (1.0, 0.6):
        moving = Stepped(rod, 1e-3, theta, DOWN)
        work, dissipated = 0.0, 0.0
        for _ in range(60):
            before = moving.energy
            moving.step()
            rate = (rod.momentum(moving.q, moving.v) - rod.momentum(*moving.old)) / 1e-3
            at = moving.t - (1.0 - theta) * 1e-3  # forces are those at theta
            outside = rod.mass * DOWN + [0.0, 0.002 * at, 0.001] + rod.drag(moving.v_hat)
            held = rod.end_wrench[:, :3].sum(axis=0)
            np.testing.assert_allclose(rate, outside - held, rtol=0, atol=1e-10 * np.linalg.norm(held))
            assert not rod.end_wrench[1, 3:].any()  # a ball joint
            power = rod.end_power + moving.external @ moving.v_hat
            work += 1e-3 * power
            dissipated += 1e-3 * power - (moving.energy - before)
        assert work > 0 and 0 < dissipated < work


def test_wrench_at_the_clamp_is_statics() -> None:
    """A rod at rest under its weight, a load on all links and one on its tip: force and moment of all of them about the clamp."""
    pull, twist = np.array([0.001, -0.0004, 0.0]), np.array([0.0, 1e-6, 2e-6])
    along = np.zeros((20, 6))
    along[:, 2], along[:, 3] = 2e-5, 1e-7
    elastic = Elastic(2.954e6, 0.49, 1259.0, rayleigh_beta=0.02)
    for side in range(2):  # clamped at the start, then at the end
        ends = {"start" if side == 0 else "end": CLAMPED, "end" if side == 0 else "start": RodEnd(load=lambda t: (pull, twist))}
        rod = Rod("rod", line(20, 0.1), ROUND, elastic, load=lambda t: along, **ends)
        moving = Stepped(rod, 0.05, 1.0, DOWN)
        for _ in range(200):
            moving.step()
        assert np.abs(moving.v).max() < 1e-9
        centres, clamp = rod.centres(moving.q), rod.end_frames[side, :3]
        outer = rod.centre_line(moving.q)[-1 - side if side == 0 else 0]
        weights = rod.link_mass[:, None] * DOWN + along[:, :3]
        force_sum = weights.sum(axis=0) + pull
        moment = np.cross(centres - clamp, weights).sum(axis=0) + along[:, 3:].sum(axis=0) + twist + np.cross(outer - clamp, pull)
        np.testing.assert_allclose(rod.end_wrench[side], [*force_sum, *moment], rtol=1e-6, atol=1e-12)
        assert not rod.end_wrench[1 - side].any()
        inner = rod.joint_wrenches(moving.q)
        beyond = slice(10, None) if side == 0 else slice(0, 10)
        expected = (weights[beyond].sum(axis=0) + pull) * (1 if side == 0 else -1)
        np.testing.assert_allclose(inner[10, :3], expected, rtol=1e-6, atol=1e-12)
        # moment in the middle, about the end of link 9
        joint = centres[9] + 0.5 * rod.lengths[9] * rod.axes(moving.q)[9, :, 2]
        loads = np.cross(centres[beyond] - joint, weights[beyond]).sum(axis=0) + along[beyond, 3:].sum(axis=0)
        loads += twist + np.cross(outer - joint, pull)
        if side == 0:
            np.testing.assert_allclose(inner[10, 3:], loads, rtol=1e-6, atol=1e-12)
        else:  # what lies before link 10 pulls the other way, about the end of link 9
            np.testing.assert_allclose(inner[10, 3:], -loads, rtol=1e-6, atol=1e-12)


def test_frames_are_followed_and_a_second_run_gives_the_same_bits() -> None:
    stiff = Elastic(1e9, 0.3, 1259.0)
    rod = Rod("rod", line(8, 0.1), ROUND, stiff, start=RodEnd("clamped", walk), translational_damping=4.0)
    results = []
    for _ in range(2):
        moving = Stepped(rod, 0.01)
        for _ in range(100):
            moving.step()
        results.append((moving.q, moving.v, rod.elastic_energy(moving.q), rod.end_wrench.copy()))
    for one, two in zip(*results, strict=True):
        np.testing.assert_array_equal(one, two)
    displacement, turn = walk(1.0)
    np.testing.assert_allclose(rod.end_frames[0, :3], displacement, atol=1e-15)
    np.testing.assert_allclose(rod.centre_line(moving.q)[0], displacement, atol=1e-5)
    start = Rotation.from_rotvec(turn).as_matrix() @ rod.axes(rod.initial_q())[0]
    np.testing.assert_allclose(rod.axes(moving.q)[0], start, atol=1e-3)


# ---------------------------------------------------------------------- input


@pytest.mark.parametrize(
    ("points", "options", "message"),
    [
        (line(4)[:, :2], {}, r"rod cord: points has shape \(5, 2\); allowed are numbers of shape \(any, 3\)"),
        ("cord", {}, "points has shape"),
        (line(4)[:1], {}, "points has 1 rows; a rod needs at least the two ends of one link"),
        (line(4) * [1, np.nan, 1], {}, r"points\[0, 1\] is nan; remove or repair it"),
        (np.array([[0, 0, 0], [1, 0, 0], [1, 0, 0], [2, 0, 0]]), {}, "link 1 has length 0 m, between points 1 and 2"),
        (
            np.array([[0, 0, 0], [1, 0, 0], [5, 0, 0]]),
            {},
            "links 0 and 1 have lengths 1 m and 4 m; neighbours may differ by a factor",
        ),
        (np.array([[0, 0, 0], [1, 0, 0], [0.2, 0.1, 0]]), {}, "turns by 3.02 rad at point 1; allowed are 2.0 rad"),
        (np.array([[0, 0, 0], [2, 0, 0], [2, 2, 0], [1, 2, 0], [1, -1, 0]]), {}, "crosses itself, links 0 and 3 meet"),
        (line(4), {"normal": np.array([2.0, 0, 0])}, "normal .* lies along the first link; give a direction across it"),
        (line(4), {"velocity": np.zeros(2)}, r"velocity has shape \(2,\)"),
        (
            line(4),
            {"rest_curvature": np.zeros((4, 3))},
            r"rest_curvature has shape \(4, 3\); allowed are numbers of shape \(3, 3\)",
        ),
        (line(4), {"rest_curvature": np.array([0, 9.0, 0])}, "rest_curvature turns a joint by 2.25 rad"),
        (line(4), {"translational_damping": -1.0}, "translational_damping is -1.0, but must be finite and at least 0, per metre"),
        (line(4), {"rotational_damping": math.inf}, "rotational_damping is inf"),
    ],
)
def test_bad_rods_are_refused(points: np.ndarray, options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Rod("cord", points, ROUND, CABLE, **options)


def test_bad_ends_are_refused() -> None:
    with pytest.raises(InputError, match="kind is 'glued'; allowed are 'free', 'clamped' and 'hinged'"):
        RodEnd("glued")
    with pytest.raises(InputError, match="a free end has no frame"):
        RodEnd(motion=walk)
    with pytest.raises(InputError, match="a hinged end takes no load"):
        RodEnd("hinged", load=lambda t: (NO_GRAVITY, NO_GRAVITY))


def test_coils_and_rings_do_not_cross_themselves() -> None:
    assert Rod("rod", helix(60, 3), ROUND, CABLE).n_links == 60
    assert Rod("rod", ring(24), ROUND, CABLE).n_links == 24
    t = np.linspace(-0.3, 1.5 * math.pi, 40)
    eight = np.column_stack([np.sin(t), 0.5 * np.sin(2 * t), 0 * t])
    eight[:, 2] = 0.05 * t  # lifted apart where it would cross
    assert Rod("rod", eight, ROUND, CABLE).n_links == 39
    eight[:, 2] = 0.0
    with pytest.raises(InputError, match="crosses itself"):
        Rod("rod", eight, ROUND, CABLE)


def test_section_is_carried_without_twist() -> None:
    rod = Rod("rod", helix(30), ROUND, CABLE, normal=np.array([0.0, 0.0, 3.0]))
    q = rod.initial_q()
    axes = rod.axes(q)
    np.testing.assert_allclose(rod.centre_line(q), helix(30), atol=1e-15)
    steps = np.diff(helix(30), axis=0)
    np.testing.assert_allclose(axes[:, :, 2], steps / np.linalg.norm(steps, axis=1)[:, None], atol=1e-12)
    across = np.array([0, 0, 1.0]) - axes[0, 2, 2] * axes[0, :, 2]
    np.testing.assert_allclose(axes[0, :, 0], across / np.linalg.norm(across), atol=1e-12)
    turns = Rotation.from_matrix(np.swapaxes(axes[:-1], 1, 2) @ axes[1:]).as_rotvec()
    np.testing.assert_allclose(turns[:, 2], 0.0, atol=1e-12)
    assert np.linalg.norm(turns, axis=1).min() > 0.1
    np.testing.assert_allclose(rod.strains(q), 0.0, atol=1e-10)

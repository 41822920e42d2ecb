"""Rods: the joint against plain twins and finite differences, balances, and statics and dynamics with closed forms."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import scipy.linalg as sl
import scipy.sparse as sp
from scipy.optimize import brentq
from scipy.spatial.transform import Rotation
from slow_rods import (
    CLAMPED,
    ENDS,
    HINGED,
    Joint,
    frames_and_links,
    heavy_cantilever,
    line,
    moved,
    shaken,
    uneven,
    walk,
)

from femsim.base.errors import InputError
from femsim.base.rotations import quaternion_from_vector, quaternion_multiply
from femsim.model.bodies.body import StepSettings
from femsim.model.bodies.rod import MAX_TENSION, Rod, RodEnd
from materials import Elastic, RodSection, circular_section, rectangular_section

NO_GRAVITY = np.zeros(3)
DOWN = np.array([0.0, 0.0, -9.81])
CABLE = Elastic(2.954e6, 0.49, 1259.0)
ROUND = circular_section(0.002)


def beam(stretch: float = 1e4, *, density: float = 1.0, torsion: float = 2.0) -> dict[str, object]:
    """Rod of E I = 1 N m^2 about both axes, E A = ``stretch`` N, shear stiffness half of it and G J = torsion / 2 N m^2."""
    moment = 1.0 / stretch
    return {
        "section": RodSection(1.0, moment, moment, torsion * moment, 1.0, 1.0, 0.01),
        "elastic": Elastic(stretch, 0.0, density),
    }


def helix(n: int, turns: float = 1.0) -> np.ndarray:
    s = np.linspace(0.0, 2.0 * math.pi * turns, n + 1)
    return 0.02 * np.column_stack([np.cos(s), np.sin(s), 0.4 * s])


def ring(n: int) -> np.ndarray:
    angle = np.linspace(0, 2 * math.pi, n + 1)
    return np.column_stack([np.cos(angle), np.sin(angle), 0 * angle])


def assembled(
    rod: Rod, q: np.ndarray, v: np.ndarray | None = None, settings: StepSettings | None = None, t: float = 0.0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A (CSC data), b and external; at rest and with a step so long that nothing of the mass is left, unless said."""
    data, b, external = np.empty(len(rod.pattern()[1])), np.empty(rod.n_v), np.empty(rod.n_v)
    rod.assemble(
        q, np.zeros(rod.n_v) if v is None else v, t, settings or StepSettings(1.0, 1.0, NO_GRAVITY), data, b, external
    )  # fmt: skip
    return data, b, external


def dense(rod: Rod, data: np.ndarray) -> np.ndarray:
    indptr, indices = rod.pattern()
    return sp.csc_matrix((data, indices, indptr), shape=(rod.n_v, rod.n_v)).toarray()


def stiffness(rod: Rod, q: np.ndarray) -> np.ndarray:
    """Stiffness that A keeps at q, out of A of two steps."""
    one, two = (dense(rod, assembled(rod, q, None, StepSettings(dt, 1.0, NO_GRAVITY))[0]) for dt in (1.0, 2.0))
    # A(dt) = M/dt + D + dt K
    mass = mass_matrix(rod, q)
    return (two - mass / 2.0) - (one - mass)


def mass_matrix(rod: Rod, q: np.ndarray) -> np.ndarray:
    blocks = []
    for mass, inertia, R in zip(rod.link_mass, rod.link_inertia, rod.axes(q), strict=True):
        blocks += [mass * np.eye(3), R @ np.diag(inertia) @ R.T]
    return sl.block_diag(*blocks)


def force(rod: Rod, q: np.ndarray, gravity: np.ndarray = NO_GRAVITY) -> np.ndarray:
    """External minus elastic force at q, (6 n,)."""
    return assembled(rod, q, None, StepSettings(1.0, 1.0, gravity))[1]


def tangent(rod: Rod, q: np.ndarray, gravity: np.ndarray = NO_GRAVITY) -> np.ndarray:
    """Minus the derivative of the force by central differences; links three apart do not touch the same force."""
    n = rod.n_links
    K = np.zeros((6 * n, 6 * n))
    for colour in range(min(3, n)):
        for c in range(6):
            h = 1e-6 * rod.lengths.min() if c < 3 else 1e-6
            motion = np.zeros((n, 6))
            motion[colour::3, c] = h
            low, high = (force(rod, moved(rod, q, s * motion.ravel()), gravity).reshape(n, 6) for s in (-1, 1))
            change = (low - high) / (2.0 * h)
            for link in range(colour, n, 3):
                near = slice(max(link - 1, 0), link + 2)
                K.reshape(n, 6, 6 * n)[near, :, 6 * link + c] = change[near]
    return K


def balanced(rod: Rod, q: np.ndarray, gravity: np.ndarray = NO_GRAVITY) -> np.ndarray:
    """Poses of a rod clamped at its start near q where all forces balance, by Newton's method.

    The links turn by the increments, but are placed by the strains that these make, so that large turns do not stretch the rod.
    """
    n = rod.n_links
    for _ in range(40):
        motion = np.linalg.solve(tangent(rod, q, gravity), force(rod, q, gravity))
        largest = np.abs(motion.reshape(-1, 6)[:, 3:]).max()
        motion *= min(1.0, 0.5 / max(largest, 1e-300))
        gap = rod.strains(q)[:n, :3] + (rod.strains(moved(rod, q, 1e-6 * motion)) - rod.strains(q))[:n, :3] / 1e-6
        gap *= np.concatenate([rod.lengths[:1] / 2, (rod.lengths[1:] + rod.lengths[:-1]) / 2])[:, None]
        q = moved(rod, q, motion)
        turns = Rotation.from_quat(np.vstack([rod.end_frames[0, 3:], rod.quaternions(q)])[:, [1, 2, 3, 0]])
        middle = turns[:-1] * Rotation.from_rotvec((turns[:-1].inv() * turns[1:]).as_rotvec() / 2)
        half = rod.axes(q)[:, :, 2] * rod.lengths[:, None] / 2
        before = np.vstack([np.zeros(3), half[:-1]])
        rod.centres(q)[:] = rod.end_frames[0, :3] + np.cumsum(middle.apply(gap) + before + half, axis=0)
        if largest < 1e-8:
            return q
    raise AssertionError("Newton's method did not converge")


def tip(rod: Rod, q: np.ndarray) -> np.ndarray:
    return rod.centre_line(q)[-1]


class Stepped:
    """A rod that is stepped on its own."""

    def __init__(self, rod: Rod, dt: float, theta: float = 1.0, gravity: np.ndarray = NO_GRAVITY) -> None:
        self.rod, self.settings = rod, StepSettings(dt, theta, gravity)
        rod.reset()
        self.q, self.v, self.t = rod.initial_q(), rod.initial_v(), 0.0
        self.old = (self.q, self.v)
        self.data, self.b, self.external = np.empty(len(rod.pattern()[1])), np.empty(rod.n_v), np.empty(rod.n_v)
        indptr, indices = rod.pattern()
        columns = np.repeat(np.arange(rod.n_v), np.diff(indptr))
        self._use = indices >= columns
        self._place = (indices - columns)[self._use], columns[self._use]

    def step(self) -> None:
        rod = self.rod
        rod.assemble(self.q, self.v, self.t, self.settings, self.data, self.b, self.external)
        band = np.zeros((12, rod.n_v))
        band[self._place] = self.data[self._use]
        self.v_hat = sl.solveh_banded(band, self.b, lower=True)  # raises where A is not positive definite
        q, v = np.empty_like(self.q), np.empty_like(self.v)
        rod.advance(self.q, self.v, self.v_hat, self.settings, q, v)
        self.old = (self.q, self.v)
        self.q, self.v, self.t = q, v, self.t + self.settings.dt

    @property
    def energy(self) -> float:
        return self.rod.kinetic_energy(self.q, self.v) + self.rod.elastic_energy(self.q)


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


# ---------------------------------------------------------------------- balances


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


def test_advance_against_plain_rotations() -> None:
    rod = Rod("rod", helix(5), rectangular_section(0.004, 0.002), CABLE)
    rng = np.random.default_rng(7)
    q, v, v_hat = shaken(rod, rng, 0.3), rng.standard_normal(rod.n_v), 30 * rng.standard_normal(rod.n_v)
    v_hat[3:6] = 0.0
    settings = StepSettings(0.01, 0.7, NO_GRAVITY)
    q_new, v_new = np.empty_like(q), np.empty_like(v)
    rod.advance(q, v, v_hat, settings, q_new, v_new)
    for i in range(5):
        u, w = slice(6 * i, 6 * i + 3), slice(6 * i + 3, 6 * i + 6)
        np.testing.assert_allclose(q_new[7 * i : 7 * i + 3], q[7 * i : 7 * i + 3] + 0.01 * v_hat[u], rtol=1e-14)
        old = rod.axes(q)[i]
        new = Rotation.from_rotvec(0.01 * v_hat[w]).as_matrix() @ old
        np.testing.assert_allclose(rod.axes(q_new)[i], new, atol=1e-14)
        np.testing.assert_allclose(v_new[u], v[u] + (v_hat[u] - v[u]) / 0.7, rtol=1e-13)
        # spin plus dt times the torque that eq. (9) counted
        inertia = old @ np.diag(rod.link_inertia[i]) @ old.T
        torque = inertia @ (v_hat[w] - v[w]) / 0.007 + np.cross(v[w], inertia @ v[w])
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
            outside = rod.mass * DOWN + [0.0, 0.002 * moving.t, 0.001] + rod.drag(moving.v_hat)
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


# ---------------------------------------------------------------------- statics


@pytest.mark.parametrize("weight", [4.2, 33.0])
def test_cantilever_under_its_weight_is_second_order(weight: float) -> None:
    expected = heavy_cantilever(weight, 1e4)
    errors, counts = [], (10, 20, 40)
    for n in counts:
        rod = Rod("rod", line(n), **beam(), start=CLAMPED)
        q = rod.initial_q()
        for part in (0.2, 1.0):
            q = balanced(rod, q, np.array([0.0, 0.0, -part * weight]))
        errors.append(np.linalg.norm(tip(rod, q)[[0, 2]] - expected))
    order = -np.polyfit(np.log(counts), np.log(errors), 1)[0]
    assert order == pytest.approx(2.0, abs=0.1)
    assert errors[1] < (1.2e-3 if weight < 10 else 2.7e-3)


def test_cantilever_under_tip_load() -> None:
    """P L^2/EI = 10: Mattiasson (1981), elliptic integrals: tip at 1 - 0.55500, 0.81061 below."""
    tips = []
    for n in (20, 40):
        size = {"load": 0.0}
        rod = Rod(
            "rod",
            line(n),
            **beam(1e6),
            start=CLAMPED,
            end=RodEnd(load=lambda t, p=size: (np.array([0, 0, -p["load"]]), NO_GRAVITY)),
        )
        q = rod.initial_q()
        for size["load"] in (1.0, 3.0, 6.0, 10.0):
            q = balanced(rod, q)
        tips.append(tip(rod, q)[[0, 2]])
    better = tips[1] + (tips[1] - tips[0]) / 3  # second order taken out
    np.testing.assert_allclose(better, [1 - 0.55500, -0.81061], atol=5e-5)
    np.testing.assert_allclose(tips[1], [1 - 0.55500, -0.81061], atol=1e-3)


def critical(lowest: Callable[[float], float], low: float, high: float) -> float:
    """Load where the smallest eigenvalue of the tangent changes its sign."""
    return brentq(lowest, low, high, xtol=1e-6)


def smallest_eigenvalue(K: np.ndarray) -> float:
    assert np.abs(K - K.T).max() < 1e-4 * np.abs(K).max()
    return float(np.linalg.eigvalsh(0.5 * (K + K.T))[0])


def test_euler_buckling() -> None:
    """A clamped-free column buckles at pi^2/4 E I/L^2."""
    n, stretch = 20, 1e5
    size = {"load": 0.0}
    rod = Rod(
        "rod", line(n), **beam(stretch), start=CLAMPED, end=RodEnd(load=lambda t: (np.array([-size["load"], 0, 0]), NO_GRAVITY))
    )

    def lowest(load: float) -> float:
        size["load"] = load
        q = rod.initial_q()
        rod.centres(q)[:] *= 1 - load / stretch
        # the links are rigid: the gaps at the joints take the shortening, that at the clamp half of one
        assert np.abs(force(rod, q)).max() < 1e-9 * stretch
        return smallest_eigenvalue(tangent(rod, q))

    load = critical(lowest, 2.0, 3.0)
    assert load == pytest.approx(math.pi**2 / 4, rel=2e-3)


def test_clamped_twist_buckling() -> None:
    """A rod between two clamps that is twisted buckles at a torque of 8.98682 E I/L (tan x = x, 2 x = 8.98682)."""
    n = 20
    bending_twist = brentq(lambda x: math.sin(x) - x * math.cos(x), 4.0, 4.7) * 2
    assert bending_twist == pytest.approx(8.98682, abs=5e-6)
    angle = {"end": 0.0}
    end = RodEnd("clamped", lambda t: (NO_GRAVITY, np.array([angle["end"], 0, 0])))
    rod = Rod("rod", line(n), **beam(1e5), start=CLAMPED, end=end)  # G J = E I = 1

    def lowest(torque: float) -> float:
        angle["end"] = torque
        rod.reset()
        q = rod.initial_q()
        share = (np.arange(n) + 0.5) / n
        for pose, part in zip(q.reshape(-1, 7), share, strict=True):
            pose[3:] = quaternion_multiply(quaternion_from_vector(np.array([part * torque, 0, 0])), pose[3:])
        assert np.abs(force(rod, q)).max() < 1e-9
        assert rod.joint_wrenches(q)[n // 2, 3] == pytest.approx(torque, rel=1e-9)
        return smallest_eigenvalue(tangent(rod, q))

    torque = critical(lowest, 8.0, 10.0)
    assert torque == pytest.approx(8.98682, rel=2e-3)


def test_bend_of_45_degrees() -> None:
    """Bathe and Bolourchi (1979): an arc of 45 degrees, radius 100, loaded across its plane; the published answers spread."""
    elastic, section = (
        Elastic(1e7, 0.0, 1.0),
        RodSection(1.0, 1 / 12, 1 / 12, 1 / 6, 5 / 6, 5 / 6, 0.5),
    )  # GJ = 2 GI, as they all do
    tips = {}
    for n in (16, 32):
        angle = np.linspace(0, math.pi / 4, n + 1)
        points = 100 * np.column_stack([np.sin(angle), 1 - np.cos(angle), 0 * angle])[:, [1, 0, 2]]
        size = {"load": 0.0}
        rod = Rod(
            "rod",
            points,
            section,
            elastic,
            start=CLAMPED,
            end=RodEnd(load=lambda t, p=size: (np.array([0, 0, p["load"]]), NO_GRAVITY)),
        )
        q = rod.initial_q()
        for size["load"] in (60.0, 150.0, 300.0, 450.0, 600.0):
            q = balanced(rod, q)
            tips[n, size["load"]] = tip(rod, q)
    # Bathe and Bolourchi, Simo and Vu-Quoc (1986), Cardona and Geradin (1988), Crisfield (1990)
    for load, published in (
        (300.0, [[22.5, 59.2, 39.5], [22.33, 58.84, 40.08], [22.14, 58.64, 40.35], [22.16, 58.53, 40.53]]),
        (600.0, [[15.9, 47.2, 53.4], [15.79, 47.23, 53.37], [15.55, 47.04, 53.50], [15.61, 46.84, 53.71]]),
    ):
        better = tips[32, load] + (tips[32, load] - tips[16, load]) / 3
        assert np.linalg.norm(tips[32, load] - better) < 0.03
        assert np.all(better > np.min(published, axis=0)) and np.all(better < np.max(published, axis=0)), (load, better)


def test_end_moment_bends_a_rod_to_a_circle() -> None:
    """M = 2 pi E I/L closes the ring, exactly also for few links: all joints turn alike."""
    size = {"moment": 0.0}
    rod = Rod(
        "rod", line(12), **beam(), start=CLAMPED, end=RodEnd(load=lambda t: (NO_GRAVITY, np.array([0, -size["moment"], 0])))
    )
    q = rod.initial_q()
    for size["moment"] in np.linspace(0.1, 1.0, 10) * 2 * math.pi:
        q = balanced(rod, q)
    np.testing.assert_allclose(tip(rod, q), 0.0, atol=1e-9)
    bending = np.linalg.norm(rod.strains(q)[:-1, 3:5], axis=1)
    np.testing.assert_allclose(bending, 2 * math.pi, rtol=1e-9)


def test_end_moment_along_no_axis_bends_a_rod_to_a_helix() -> None:
    """A rod of one bending stiffness under an end moment M: its tangent turns about M at the rate |M|/EI, whatever G J is."""
    moment, torsion = np.array([2.0, 0.0, 6.0]), 0.7
    errors, counts = [], (12, 24)
    for n in counts:
        size = {"part": 0.0}
        rod = Rod(
            "rod", line(n), **beam(torsion=torsion), start=CLAMPED,
            end=RodEnd(load=lambda t, p=size: (NO_GRAVITY, p["part"] * moment)),
        )  # fmt: skip
        q = rod.initial_q()
        for size["part"] in (0.25, 0.5, 0.75, 1.0):
            q = balanced(rod, q)
        rate = np.linalg.norm(moment)
        axis = moment / rate
        along, across = axis[0] * axis, np.array([1.0, 0, 0]) - axis[0] * axis
        expected = along + (math.sin(rate) * across + (1 - math.cos(rate)) * np.cross(axis, across)) / rate
        errors.append(np.linalg.norm(tip(rod, q) - expected))
        twist = moment[0] / (0.5 * torsion)  # along the tangent, as at the clamp
        np.testing.assert_allclose(rod.strains(q)[:-1, 5], twist, rtol=0.04 * (12 / n) ** 2)
    assert errors[1] < 0.01 and 3.5 < errors[0] / errors[1] < 4.5


def test_rest_curvature_makes_a_helix_out_of_a_straight_rod() -> None:
    """Curvature 1/m and twist of a helix, held at one end: it rolls up until nothing is left of the energy."""
    n, curvature = 40, np.array([0.0, 5.0, 3.0])
    rod = Rod("rod", line(n), **beam(), rest_curvature=curvature, start=CLAMPED)
    q = rod.initial_q()
    start = rod.elastic_energy(q)
    assert start == pytest.approx(0.5 * (25 + 9) * (n - 0.5) / n, rel=1e-9)  # the last half link has no joint
    q = balanced(rod, q)
    assert rod.elastic_energy(q) < 1e-12 * start
    rate = np.linalg.norm(curvature)
    spin = rod.axes(rod.initial_q())[0] @ curvature  # the frames turn about an axis that is fixed in space
    axis = spin / rate
    along = axis[0] * axis
    across = np.array([1.0, 0, 0]) - along
    expected = along + (math.sin(rate) * across + (1 - math.cos(rate)) * np.cross(axis, across)) / rate
    np.testing.assert_allclose(tip(rod, q), expected, atol=1e-3)


def test_hanging_rod_stretches_by_its_weight() -> None:
    """Weight w hangs from a clamp: stretch w/(2 EA), and each joint carries what is below it."""
    weight, stretch = 50.0, 1e4
    rod = Rod("rod", -line(16, axis=2), **beam(stretch), start=CLAMPED)
    q = balanced(rod, rod.initial_q(), np.array([0.0, 0.0, -weight]))
    assert -1.0 - tip(rod, q)[2] == pytest.approx(weight / 2 / stretch, rel=1e-7)
    np.testing.assert_allclose(rod.joint_wrenches(q)[:-1, 2], -weight * (1 - np.arange(16) / 16), rtol=1e-5)


# ---------------------------------------------------------------------- dynamics


def test_first_frequency_of_a_cantilever() -> None:
    """Euler-Bernoulli: 1.8751^2/(2 pi) sqrt(EI/(rho A L^4)) = 2.7106 Hz for 0.1 m of the cable of papers/001."""
    n = 20
    rod = Rod("rod", line(n, 0.1), ROUND, CABLE, start=CLAMPED)
    root = brentq(lambda x: math.cos(x) * math.cosh(x) + 1, 1.8, 1.95)
    expected = root**2 / (2 * math.pi) * math.sqrt(CABLE.young_modulus * ROUND.second_moment_1 / (1259.0 * ROUND.area * 0.1**4))
    assert expected == pytest.approx(2.7106, abs=1e-4)
    q = rod.initial_q()
    modes = sl.eigh(stiffness(rod, q), mass_matrix(rod, q), eigvals_only=True)
    assert math.sqrt(modes[0]) / (2 * math.pi) == pytest.approx(expected, rel=3e-3)
    # and in time: small motion at theta = 1/2 keeps the beat and the amplitude
    moving = Stepped(rod, 2e-3, 0.5)
    _, shape = sl.eigh(stiffness(rod, q), mass_matrix(rod, q), subset_by_index=[0, 0])
    moving.v = 1e-3 * shape[:, 0] / np.linalg.norm(shape.reshape(-1, 6)[-1, :3])
    crossings, peaks, last = [], [0.0], 0.0
    side = shape.reshape(-1, 6)[-1, :3] / np.linalg.norm(shape.reshape(-1, 6)[-1, :3])
    for _ in range(700):
        moving.step()
        now = float((rod.centres(moving.q)[-1] - rod.centres(q)[-1]) @ side)
        if last < 0 <= now:
            crossings.append(moving.t - 2e-3 * now / (now - last))
            peaks.append(0.0)
        peaks[-1] = max(peaks[-1], abs(now))
        last = now
    frequency = (len(crossings) - 1) / (crossings[-1] - crossings[0])
    assert frequency == pytest.approx(expected, rel=3e-3)
    assert peaks[2] == pytest.approx(peaks[1], rel=1e-2)


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

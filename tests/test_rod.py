"""Rods: the joint against plain twins and finite differences, balances, and statics and dynamics with closed forms."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import scipy.linalg as sl
import scipy.sparse as sp
from scipy.integrate import solve_bvp
from scipy.optimize import brentq
from scipy.spatial.transform import Rotation

from femsim.bodies.body import StepSettings
from femsim.bodies.rod import MAX_TENSION, Rod, RodEnd
from femsim.errors import InputError
from femsim.rotations import quaternion_from_vector, quaternion_multiply
from materials import Elastic, RodSection, circular_section, rectangular_section

NO_GRAVITY = np.zeros(3)
DOWN = np.array([0.0, 0.0, -9.81])
CABLE = Elastic(2.954e6, 0.49, 1259.0)
ROUND = circular_section(0.002)
CLAMPED, HINGED, FREE = RodEnd("clamped"), RodEnd("hinged"), RodEnd()


def beam(stretch: float = 1e4, *, density: float = 1.0, torsion: float = 2.0) -> dict[str, object]:
    """Rod of E I = 1 N m^2 about both axes, E A = ``stretch`` N, shear stiffness half of it and G J = torsion / 2 N m^2."""
    moment = 1.0 / stretch
    return {
        "section": RodSection(1.0, moment, moment, torsion * moment, 1.0, 1.0, 0.01),
        "elastic": Elastic(stretch, 0.0, density),
    }


def line(n: int, length: float = 1.0, axis: int = 0) -> np.ndarray:
    """Straight centre line of n links."""
    points = np.zeros((n + 1, 3))
    points[:, axis] = np.linspace(0.0, length, n + 1)
    return points


def helix(n: int, turns: float = 1.0) -> np.ndarray:
    s = np.linspace(0.0, 2.0 * math.pi * turns, n + 1)
    return 0.02 * np.column_stack([np.cos(s), np.sin(s), 0.4 * s])


def shaken(rod: Rod, rng: np.random.Generator, amount: float) -> np.ndarray:
    """Poses moved by a part of the shortest link and turned by as many radians."""
    motion = amount * rng.uniform(-1.0, 1.0, (rod.n_links, 6)) * [*(3 * [rod.lengths.min()]), 1, 1, 1]
    return moved(rod, rod.initial_q(), motion.ravel())


def moved(rod: Rod, q: np.ndarray, motion: np.ndarray) -> np.ndarray:
    """Poses after a small motion (6 n,): displacement of centres and world rotation vectors."""
    new = q.reshape(-1, 7).copy()
    new[:, :3] += motion.reshape(-1, 6)[:, :3]
    for pose, turn in zip(new, motion.reshape(-1, 6)[:, 3:], strict=True):
        pose[3:] = quaternion_multiply(quaternion_from_vector(turn), pose[3:])
    return new.ravel()


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
    """Poses near q where all forces balance, by Newton's method."""
    for _ in range(40):
        motion = np.linalg.solve(tangent(rod, q, gravity), force(rod, q, gravity))
        largest = np.abs(motion.reshape(-1, 6)[:, 3:]).max()
        q = moved(rod, q, motion * min(1.0, 0.5 / max(largest, 1e-300)))
        if largest < 1e-9:
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


def skew(x: np.ndarray) -> np.ndarray:
    return np.array([[0.0, -x[2], x[1]], [x[2], 0.0, -x[0]], [-x[1], x[0], 0.0]])


class Joint:
    """One joint in plain matrices, as in the design: strain, exact Jacobian, tension term."""

    def __init__(self, rod: Rod, poses: np.ndarray, k: int) -> None:
        section, E, G = rod.section, rod.elastic.young_modulus, rod.elastic.lame_mu
        arms = np.concatenate([[0.0], rod.lengths / 2, [0.0]])[k : k + 2]
        self.arms, self.length = arms, arms.sum()
        length = self.length
        x = poses[k : k + 2, :3]
        R = [Rotation.from_quat(p[[4, 5, 6, 3]]).as_matrix() for p in poses[k : k + 2]]
        c = [a * r[:, 2] for a, r in zip(arms, R, strict=True)]
        g = (x[1] - c[1]) - (x[0] + c[0])
        self.hinged = rod.ends[0 if k == 0 else 1].kind == "hinged" and k in (0, rod.n_links)
        phi = Rotation.from_matrix(R[0].T @ R[1]).as_rotvec()
        turn = Rotation.from_rotvec(phi / 2).as_matrix()
        size = np.linalg.norm(phi)
        EA, GA = E * section.area, G * section.area
        if self.hinged:
            middle = R[1 if k == 0 else 0]
            self.e = np.concatenate([middle.T @ g, np.zeros(3)])
            self.K = np.diag([EA, EA, EA, 0.0, 0.0, 0.0]) / length
            top = middle.T @ np.hstack([-np.eye(3), skew(c[0]), np.eye(3), skew(c[1])])
            self.J = np.vstack([top, np.zeros((3, 12))])
        else:
            middle = R[0] @ turn
            self.e = np.concatenate([middle.T @ g, phi - rod._rest[k]])
            shear = [section.shear_factor_1 * GA, section.shear_factor_2 * GA]
            bend = [E * section.second_moment_1, E * section.second_moment_2, G * section.torsion_constant]
            self.K = np.diag([*shear, EA, *bend]) / length
            B = R[0] @ (0.5 * (np.eye(3) - math.tan(size / 4) / max(size, 1e-12) * skew(phi))) @ R[0].T
            top = middle.T @ np.hstack([-np.eye(3), skew(c[0]) + skew(g) @ (np.eye(3) - B), np.eye(3), skew(c[1]) + skew(g) @ B])
            P = skew(phi)
            factor = (1 - size / 2 / math.tan(size / 2)) / size**2 if size > 1e-6 else 1 / 12
            rows = (np.eye(3) - P / 2 + factor * P @ P) @ R[0].T  # inverse of the left Jacobian
            self.J = np.vstack([top, np.hstack([np.zeros((3, 3)), -rows, np.zeros((3, 3)), rows])])
        self.gap_rows = middle @ top
        self.axis, self.pull = middle[:, 2], self.K[2, 2] * self.e[2]
        self.ceiling = np.inf if self.hinged else MAX_TENSION * min(self.K[0, 0], self.K[1, 1]) * length
        self.k, self.last = k, rod.n_links

    @property
    def tension(self) -> np.ndarray:
        """Hessian of the tension energy of the design, (12, 12)."""
        T, L, e3 = min(max(self.pull, 0.0), self.ceiling), self.length, self.e[2]
        X = -skew(self.axis)
        zero = np.zeros((3, 3))
        t_i, t_j = np.hstack([zero, X, zero, zero]), np.hstack([zero, zero, zero, X])
        if self.hinged:
            t = t_j if self.k == 0 else t_i
            return T * L * t.T @ t
        mean, across = (t_i + t_j) / 2, (np.eye(3) - np.outer(self.axis, self.axis)) @ self.gap_rows
        return T * (
            mean.T @ across + across.T @ mean + (L + e3) * mean.T @ mean + L / 4 * (t_i - t_j).T @ (t_i - t_j)
            + (self.arms[1] - self.arms[0]) / 2 * (t_j.T @ t_j - t_i.T @ t_i)
        )  # fmt: skip


def frames_and_links(rod: Rod, q: np.ndarray) -> np.ndarray:
    return np.vstack([rod._frame[0], q.reshape(-1, 7), rod._frame[1]])


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


def walk(t: float) -> tuple[np.ndarray, np.ndarray]:
    return np.array([0.001, -0.002, 0.003]) * t, np.array([0.5, -0.2, 0.7]) * t


ENDS = {
    "free": (FREE, FREE),
    "clamped": (CLAMPED, RodEnd("clamped", walk)),
    "hinged": (RodEnd("hinged", walk), HINGED),
    "mixed": (RodEnd("clamped", walk), HINGED),
}


def uneven(ends: str, n: int = 7, *, moving: bool = False, **options: object) -> Rod:
    """Bent rod of a rectangular section with links of different lengths, its frames at rest unless moving."""
    rng = np.random.default_rng(3)
    s = np.concatenate([[0.0], np.cumsum(rng.uniform(0.5, 1.5, n))]) / n
    points = np.column_stack([0.05 * s, 0.03 * s**2, 0.02 * s**3 - 0.04 * s**2])
    start, end = ENDS[ends] if moving else (RodEnd(end.kind) for end in ENDS[ends])
    elastic = Elastic(2e6, 0.3, 1100.0, rayleigh_alpha=0.7, rayleigh_beta=3e-3)
    return Rod("rod", points, rectangular_section(0.004, 0.002), elastic, start=start, end=end, **options)


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

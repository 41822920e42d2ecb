"""Rods on their own: beams of round numbers, their matrices and forces, where they balance, and steps without a system."""

from __future__ import annotations

import math

import numpy as np
import scipy.linalg as sl
import scipy.sparse as sp
from scipy.spatial.transform import Rotation
from slow_rods import moved

from femsim.model.bodies.body import StepSettings
from femsim.model.bodies.rod import Rod
from materials import Elastic, RodSection, circular_section

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
        rod.accept(self.v_hat)
        rod.advance(self.q, self.v, self.v_hat, self.settings, q, v)
        self.old = (self.q, self.v)
        self.q, self.v, self.t = q, v, self.t + self.settings.dt

    @property
    def energy(self) -> float:
        return self.rod.kinetic_energy(self.q, self.v) + self.rod.elastic_energy(self.q)

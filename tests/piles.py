"""Few bodies with many contacts: a pile of dishes on a floor, as papers/000 section VIII has them, without their shapes."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from contact import ContactProblem, Group, make_problem

#: Of the contacts below each body: radius and height of their ring, m, and tilt of their normals, degrees.
RINGS = ((0.035, 0.0, 0.0), (0.060, 0.03, 45.0), (0.070, 0.06, 45.0), (0.060, 0.09, 15.0))
#: Masses, kg, and squared radii of gyration over those of a disc of 70 mm.
MASSES, GYRATION = (0.1, 0.1, 0.1, 5.0), (0.3, 0.3, 0.5)


def cross(r: np.ndarray) -> np.ndarray:
    return np.array([[0.0, -r[2], r[1]], [r[2], 0.0, -r[0]], [-r[1], r[0], 0.0]])


def pile(ring: int, seed: int, *, force: float = 5.0, torque: float = 0.2, friction: float = 0.5) -> ContactProblem:
    """Four bodies with a ring of contacts between neighbours and below, gravity, and a random wrench on each.

    Parameters
    ----------
    ring : int
        Contacts of a ring; the problem has four times as many, and 24 velocities.
    seed : int
        Of the wrenches, the turns of the rings, and the gaps of 0 to 0.02 mm.
    force, torque : float, N and N m
        Sizes of the wrenches.
    friction : float
        Coulomb coefficient.
    """
    rng, dt, n = np.random.default_rng(seed), 1.0 / 240.0, 24
    A, b = np.zeros((n, n)), np.zeros(n)
    J, phi = np.zeros((12 * ring, n)), np.zeros(4 * ring)
    for i, mass in enumerate(MASSES):
        own = slice(6 * i, 6 * i + 6)
        A[own, own] = np.diag([mass] * 3 + [mass * 0.07**2 * share for share in GYRATION]) / dt
        push, turn = rng.standard_normal(3), rng.standard_normal(3)
        weight = np.array([0.0, 0.0, -9.81 * mass])
        b[own] = [*(force * push / np.linalg.norm(push) + weight), *(torque * turn / np.linalg.norm(turn))]
    for i, (radius, height, degrees) in enumerate(RINGS):
        first, tilt = rng.uniform(0.0, 2.0 * np.pi), np.deg2rad(degrees)
        for k in range(ring):
            m, angle = ring * i + k, first + 2.0 * np.pi * k / ring
            out = np.array([np.cos(angle), np.sin(angle), 0.0])
            normal = np.array([0.0, 0.0, np.cos(tilt)]) - np.sin(tilt) * out
            along = np.array([-np.sin(angle), np.cos(angle), 0.0])
            frame, point = np.array([normal, along, np.cross(normal, along)]), radius * out + [0.0, 0.0, height]
            for body, sign in ((i, 1.0), (i - 1, -1.0)):
                if body >= 0:
                    arm = point - [0.0, 0.0, 0.015 + 0.03 * body]
                    J[3 * m : 3 * m + 3, 6 * body : 6 * body + 6] = sign * frame @ np.hstack([np.eye(3), -cross(arm)])
            phi[m] = rng.uniform(0.0, 2e-5) / dt
    groups = [Group(f"dish {i}", 6 * i, 6 * i + 6, "generalized") for i in range(len(MASSES))]
    return make_problem(sp.csc_matrix(A), b, sp.csr_matrix(J), phi, friction, dt=dt, groups=groups)


def side_by_side(count: int, ring: int = 3) -> ContactProblem:
    """So many piles that do not know of each other, with seeds from 0 on."""
    piles = [pile(ring, seed) for seed in range(count)]
    A, J = sp.block_diag([p.A for p in piles], format="csc"), sp.block_diag([p.J for p in piles], format="csr")
    b, phi = np.concatenate([p.b for p in piles]), np.concatenate([p.phi for p in piles])
    groups = [Group(f"body {i}", 6 * i, 6 * i + 6, "generalized") for i in range(4 * count)]
    return make_problem(A, b, J, phi, np.concatenate([p.friction for p in piles]), dt=1.0 / 240.0, groups=groups)

"""Rods and joints in plain numpy, and rods in states of every kind."""

from __future__ import annotations

import math

import numpy as np
from scipy.integrate import solve_bvp
from scipy.spatial.transform import Rotation

from femsim.model.bodies.rod import Rod
from femsim.model.bodies.rod_end import RodEnd
from femsim.model.bodies.rod_make import MAX_TENSION
from materials import Elastic, rectangular_section

CLAMPED, HINGED, FREE = RodEnd("clamped"), RodEnd("hinged"), RodEnd()


def line(n: int, length: float = 1.0, axis: int = 0) -> np.ndarray:
    """Straight centre line of n links."""
    points = np.zeros((n + 1, 3))
    points[:, axis] = np.linspace(0.0, length, n + 1)
    return points


def shaken(rod: Rod, rng: np.random.Generator, amount: float) -> np.ndarray:
    """Poses moved by a part of the shortest link and turned by as many radians."""
    motion = amount * rng.uniform(-1.0, 1.0, (rod.n_links, 6)) * [*(3 * [rod.lengths.min()]), 1, 1, 1]
    return moved(rod, rod.initial_q(), motion.ravel())


def moved(rod: Rod, q: np.ndarray, motion: np.ndarray) -> np.ndarray:
    """Poses after a small motion (6 n,): displacement of centres and world rotation vectors."""
    new, motion = q.reshape(-1, 7).copy(), motion.reshape(-1, 6)
    new[:, :3] += motion[:, :3]
    turned = Rotation.from_rotvec(motion[:, 3:]) * Rotation.from_quat(new[:, [4, 5, 6, 3]])
    new[:, 3:] = turned.as_quat()[:, [3, 0, 1, 2]]
    return new.ravel()


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
        pull, shear_pull = E * section.area, G * section.area
        if self.hinged:
            middle = R[1 if k == 0 else 0]
            self.e = np.concatenate([middle.T @ g, np.zeros(3)])
            self.K = np.diag([pull, pull, pull, 0.0, 0.0, 0.0]) / length
            top = middle.T @ np.hstack([-np.eye(3), skew(c[0]), np.eye(3), skew(c[1])])
            self.J = np.vstack([top, np.zeros((3, 12))])
        else:
            middle = R[0] @ turn
            self.e = np.concatenate([middle.T @ g, phi - rod.joints().rest[k]])
            shear = [section.shear_factor_1 * shear_pull, section.shear_factor_2 * shear_pull]
            bend = [E * section.second_moment_1, E * section.second_moment_2, G * section.torsion_constant]
            self.K = np.diag([*shear, pull, *(section.bending_factor * b for b in bend)]) / length
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
    return np.vstack([rod.end_frames[0], q.reshape(-1, 7), rod.end_frames[1]])


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


def heavy_cantilever(weight: float, stretch: float) -> np.ndarray:
    """Tip (x, z) of a clamped rod of length 1 and E I = 1 under its own weight, Reissner's theory by collocation."""

    def slope(s: np.ndarray, y: np.ndarray) -> np.ndarray:
        angle, moment = y[2], y[3]
        down = weight * (1 - s)  # force on what lies behind s
        pull, shear = -down * np.sin(angle), -down * np.cos(angle)
        stretched, sheared = 1 + pull / stretch, shear / (stretch / 2)
        x = stretched * np.cos(angle) - sheared * np.sin(angle)
        z = stretched * np.sin(angle) + sheared * np.cos(angle)
        return np.array([x, z, moment, x * down])

    def ends(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.array([a[0], a[1], a[2], b[3]])

    s = np.linspace(0, 1, 101)
    guess = np.array([s, -0.1 * s, -0.1 * s, 0 * s])
    for part in (0.05, 0.2, 0.5, 1.0):
        total, weight = weight, weight * part
        found = solve_bvp(slope, ends, s, guess, tol=1e-9, max_nodes=20000)
        assert found.success
        s, guess, weight = found.x, found.y, total
    return found.y[:2, -1]

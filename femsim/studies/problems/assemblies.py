"""Rigid bodies, contacts and joints put together by hand into one contact problem, for problem sets and tests."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import scipy.sparse as sp

from contact import ContactProblem, Group, make_problem, make_rows

JointKind = Literal["ball", "hinge", "slider", "weld"]
#: The world, as a partner of contacts and joints.
WORLD = -1
#: Standard gravity, m/s^2.
GRAVITY = 9.81


@dataclass
class Assembly:
    """Bodies at their places, in one time step.

    Attributes
    ----------
    dt : float, s
        Time step.
    gravity : float, m/s^2
        Down along z.
    """

    dt: float = 0.01
    gravity: float = GRAVITY
    _mass: list[float] = field(default_factory=list)
    _inertia: list[np.ndarray] = field(default_factory=list)
    _centre: list[np.ndarray] = field(default_factory=list)
    _twist: list[np.ndarray] = field(default_factory=list)
    _load: list[np.ndarray] = field(default_factory=list)
    _contacts: list[tuple[np.ndarray, float, float]] = field(default_factory=list)
    _rows: list[tuple[np.ndarray, float, float, float, float]] = field(default_factory=list)

    def box(
        self,
        mass: float,
        size: tuple[float, float, float],
        centre: tuple[float, float, float] | np.ndarray,
        *,
        velocity: tuple[float, ...] = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0),
        load: tuple[float, ...] = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0),
    ) -> int:
        """Add a box along the axes; return its number.

        Parameters
        ----------
        mass : float, kg
            Its mass, spread evenly.
        size : (float, float, float), m
            Edges.
        centre : (float, float, float), m
            Place of its centre.
        velocity, load : six floats, m/s and rad/s, N and N m
            Velocity before the step, and wrench on it beside gravity.
        """
        squares = np.square(size)
        self._mass.append(mass)
        self._inertia.append(mass / 12.0 * (squares.sum() - squares))
        self._centre.append(np.array(centre, dtype=np.float64))
        self._twist.append(np.array(velocity, dtype=np.float64))
        self._load.append(np.array(load, dtype=np.float64))
        return len(self._mass) - 1

    def sphere(self, mass: float, radius: float, centre: tuple[float, float, float], *, lift: float = 0.0) -> int:
        """Add a sphere of a mass (kg) and radius (m), pulled up by a force (N); return its number."""
        edge = radius * float(np.sqrt(2.4))  # 2/5 m r^2 = 1/12 m 2 edge^2
        return self.box(mass, (edge, edge, edge), centre, load=(0.0, 0.0, lift, 0.0, 0.0, 0.0))

    def _along(self, body: int, point: np.ndarray, direction: np.ndarray, sign: float, row: np.ndarray) -> None:
        """Add the velocity of a point of a body along a direction to a row over (V, omega) of all bodies."""
        if body >= 0:
            row[6 * body : 6 * body + 3] += sign * direction
            row[6 * body + 3 : 6 * body + 6] += sign * np.cross(point - self._centre[body], direction)

    def _between(self, a: int, b: int, point: np.ndarray, direction: np.ndarray) -> np.ndarray:
        """Row of the velocity of a relative to b at a point, along a direction."""
        row = np.zeros(6 * len(self._mass))
        self._along(a, point, direction, 1.0, row)
        self._along(b, point, direction, -1.0, row)
        return row

    def _turning(self, a: int, b: int, axis: np.ndarray) -> np.ndarray:
        """Row of the angular velocity of a relative to b about an axis."""
        row = np.zeros(6 * len(self._mass))
        for body, sign in ((a, 1.0), (b, -1.0)):
            if body >= 0:
                row[6 * body + 3 : 6 * body + 6] += sign * axis
        return row

    def contact(
        self, a: int, b: int, point: tuple[float, float, float] | np.ndarray, normal: tuple[float, float, float] | np.ndarray,
        *, friction: float = 0.5, gap: float = 0.0,
    ) -> None:  # fmt: skip
        """Add a contact of a on b (:data:`WORLD` for the floor), the normal (3,) pointing to a, with its gap (m)."""
        where, n = np.array(point, dtype=np.float64), np.array(normal, dtype=np.float64)
        frame = _frame(n / np.linalg.norm(n))
        self._contacts.append((np.array([self._between(a, b, where, axis) for axis in frame]), gap / self.dt, friction))

    def corners(self, a: int, b: int, size: tuple[float, float], centre: np.ndarray, *, friction: float = 0.5) -> None:
        """Add the four contacts of a face (sizes along x and y, m) that lies level around a centre (3,)."""
        for x in (-0.5, 0.5):
            for y in (-0.5, 0.5):
                self.contact(a, b, centre + np.array([x * size[0], y * size[1], 0.0]), (0.0, 0.0, 1.0), friction=friction)

    def join(
        self, a: int, b: int, point: tuple[float, float, float] | np.ndarray, kind: JointKind = "ball",
        axis: tuple[float, float, float] = (0.0, 1.0, 0.0),
    ) -> None:  # fmt: skip
        """Join a to b (:data:`WORLD` for the ground) at a point; a hinge turns about its axis, a slider slides along it."""
        where, along = np.array(point, dtype=np.float64), np.array(axis, dtype=np.float64)
        frame = _frame(along / np.linalg.norm(along))
        for k, direction in enumerate(frame):
            if not (kind == "slider" and k == 0):
                self.row(self._between(a, b, where, direction))
        for k, direction in enumerate(frame):
            if kind in ("weld", "slider") or (kind == "hinge" and k > 0):
                self.row(self._turning(a, b, direction))

    def row(
        self, G: np.ndarray, *, offset: float = 0.0, low: float = -np.inf, high: float = np.inf, softness: float = 0.0
    ) -> None:
        """Add a row (6 bodies,) of ``contact.rows``; without bounds an equality."""
        self._rows.append((G, offset, low, high, softness))

    def turning(self, a: int, b: int, axis: tuple[float, float, float]) -> np.ndarray:
        """Return the row of a hinge: the angular velocity of a relative to b about an axis."""
        return self._turning(a, b, np.array(axis, dtype=np.float64))

    def problem(self) -> ContactProblem:
        """Return the problem of one step: A = M / dt, b = M v / dt + M g + loads; each body one generalized group."""
        n = 6 * len(self._mass)
        mass = np.array([[m, m, m, *inertia] for m, inertia in zip(self._mass, self._inertia, strict=True)]).ravel()
        weight = np.array([[0.0, 0.0, -self.gravity * m, 0.0, 0.0, 0.0] for m in self._mass]).ravel()
        b = mass * np.array(self._twist).ravel() / self.dt + weight + np.array(self._load).ravel()
        J = np.array([_long(one, n) for one, _, _ in self._contacts]).reshape(-1, n)
        gap, friction = np.array([(gap, mu) for _, gap, mu in self._contacts]).reshape(-1, 2).T
        groups = [Group(f"body {k}", 6 * k, 6 * k + 6, "generalized") for k in range(len(self._mass))]
        rows = None
        if self._rows:
            G = np.array([_long(one[0], n) for one in self._rows])
            rows = make_rows(sp.csr_matrix(G), *np.array([one[1:] for one in self._rows]).T)
        A, J = sp.diags(mass / self.dt, format="csc"), sp.csr_matrix(J)
        return make_problem(A, b, J, gap, friction, dt=self.dt, groups=groups, rows=rows)


def _long(row: np.ndarray, n: int) -> np.ndarray:
    """Lengthen a row (or rows), made before the last bodies came, to all n columns."""
    out = np.zeros((*row.shape[:-1], n))
    out[..., : row.shape[-1]] = row
    return out


def _frame(first: np.ndarray) -> np.ndarray:
    """Three orthonormal rows, of which the first is given, (3, 3)."""
    other = np.eye(3)[int(np.argmin(np.abs(first)))]
    second = np.cross(first, other)
    second /= np.linalg.norm(second)
    return np.array([first, second, np.cross(first, second)])

"""A cloud of free particles: a body of one's own, as CONTRIBUTING.md says how to add one."""

from __future__ import annotations

import numpy as np

import femsim as fs


class Particles(fs.BodyDefaults):
    """Balls without friction among themselves that fly freely and have contact with shapes.

    Parameters
    ----------
    name : str
        Name in outputs.
    points : ndarray, (n, 3), m
        Centres at the start.
    masses : ndarray, (n,), kg
        Their masses.
    radius : float, m
        Their radius.
    velocity : ndarray, (3,), m/s
        Velocity of all at the start.
    """

    kind = "nodes"
    what = "cloud of particles"

    def __init__(self, name: str, points: np.ndarray, masses: np.ndarray, radius: float, velocity: np.ndarray) -> None:
        self.name, self._points, self._masses, self._radius, self._velocity = name, points, masses, radius, velocity
        self.n_q = self.n_v = 3 * len(points)
        self._rows = np.repeat(masses, 3)

    @property
    def mass(self) -> float:
        return float(self._masses.sum())

    @property
    def contact_radius(self) -> float:
        return self._radius

    def initial_q(self) -> np.ndarray:
        return self._points.ravel().copy()

    def initial_v(self) -> np.ndarray:
        return np.tile(self._velocity, len(self._masses))

    def pattern(self) -> tuple[np.ndarray, np.ndarray]:
        return np.arange(self.n_v + 1), np.arange(self.n_v)  # a diagonal

    def assemble(self, q, v, t, settings, data, b, external) -> None:
        implicit = settings.theta * settings.dt
        external[:] = self._rows * np.tile(settings.gravity, len(self._masses))
        data[:] = self._rows / implicit
        b[:] = self._rows * v / implicit + external

    def advance(self, q, v, v_hat, settings, q_new, v_new) -> None:
        q_new[:] = q + settings.dt * v_hat
        v_new[:] = v + (v_hat - v) / settings.theta

    def momentum(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        return self._masses @ v.reshape(-1, 3)

    def centre_of_mass(self, q: np.ndarray) -> np.ndarray:
        return self._masses @ q.reshape(-1, 3) / self.mass

    def kinetic_energy(self, q: np.ndarray, v: np.ndarray) -> float:
        return float(0.5 * self._rows @ v**2)

"""What bodies of rigid links share: coordinates of a base and of joints, which all couple."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Generic, Protocol, TypeVar

import numpy as np

from contact import GroupKind
from femsim.model.bodies.body_defaults import BodyDefaults
from femsim.model.bodies.rigid_kernels import lead_base


class Configuration(Protocol):
    """What the coordinates q alone decide, worked out once for all who ask: q, the mass matrix M (n_v, n_v), and places."""

    @property
    def q(self) -> bytes:
        """The coordinates."""

    @property
    def M(self) -> np.ndarray:
        """Mass matrix."""


_Found = TypeVar("_Found", bound=Configuration)


class LinkedBody(BodyDefaults, ABC, Generic[_Found]):
    """Rigid body, gripper or robot.

    Parameters
    ----------
    q : ndarray, (n_q,)
        Coordinates at the start: the base's centre of mass (3), its quaternion (4), the joints.
    v : ndarray, (n_v,)
        Velocities at the start: of that point (3), the base's angular velocity (3), world, and the joints.
    """

    kind: GroupKind = "generalized"
    rigid = True

    def __init__(self, q: np.ndarray, v: np.ndarray) -> None:
        self.n_q, self.n_v = len(q), len(v)
        self._q0, self._v0 = q, v
        self._indptr = np.arange(0, self.n_v * self.n_v + 1, self.n_v, dtype=np.int64)
        self._indices = np.tile(np.arange(self.n_v, dtype=np.int64), self.n_v)
        self._known: tuple[_Found, ...] = ()  # of the three latest q: a step asks for its start, middle and end
        #: rate of momentum of all coordinates in the step, by the equations that were solved
        self._step_rate = np.zeros(self.n_v)

    def initial_q(self) -> np.ndarray:
        """Coordinates at the start."""
        return self._q0.copy()

    def initial_v(self) -> np.ndarray:
        """Velocities at the start."""
        return self._v0.copy()

    def pattern(self) -> tuple[np.ndarray, np.ndarray]:
        """Dense pattern: all coordinates of a body couple."""
        return self._indptr, self._indices

    @abstractmethod
    def _found(self, q: np.ndarray, asked: bytes) -> _Found:
        """Work out the configuration of coordinates, which are ``asked`` as bytes."""

    def _configuration(self, q: np.ndarray) -> _Found:
        """Return the configuration of coordinates; no work when they are among the three latest."""
        asked = q.tobytes()
        for known in self._known:
            if asked == known.q:
                return known
        found = self._found(q, asked)
        self._known = (found, *self._known[:2])
        return found

    def _lead_base(
        self, q: np.ndarray, v: np.ndarray, v_hat: np.ndarray, dt: float, q_new: np.ndarray, v_new: np.ndarray
    ) -> None:
        """Fill the velocity of the base by linear momentum, and angular momentum about its centre, which moves."""
        lead_base(self._configuration(q).M, self._configuration(q_new).M, v, v_hat, self._step_rate, dt, v_new)

    def momentum(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Linear momentum, kg m/s."""
        return np.asarray(self._configuration(q).M[:3] @ v)

    def kinetic_energy(self, q: np.ndarray, v: np.ndarray) -> float:
        """Kinetic energy, J, with that of rotors."""
        return float(0.5 * v @ self._configuration(q).M @ v)

    def link_origin(self, q: np.ndarray, link: int) -> np.ndarray:
        """Centre of mass of the base."""
        return q[:3]

"""What the system asks of every body."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from contact import GroupKind


@dataclass(frozen=True)
class StepSettings:
    """Settings of the time integration that bodies need.

    Attributes
    ----------
    dt : float, s
        Time step.
    theta : float
        Integration parameter in [1/2, 1]: 1/2 is papers/001 eq. (9), 1 backward Euler.
    gravity : ndarray, (3,), m/s^2
        Acceleration of gravity.
    """

    dt: float
    theta: float
    gravity: np.ndarray


class Body(Protocol):
    """A body: constant data and methods that read a state. It fills its own block of A, couplings those between bodies."""

    name: str
    kind: GroupKind
    n_q: int
    n_v: int

    def reset(self) -> None:
        """Forget what earlier steps left as starting points of inner iterations."""
        ...

    def memory(self) -> object:
        """Give what it keeps from step to step beside its coordinates, for :meth:`recall`."""
        ...

    def recall(self, memory: Any) -> None:
        """Go back, to the last bit, to where :meth:`memory` was asked."""
        ...

    def initial_q(self) -> np.ndarray:
        """Coordinates at the start, (n_q,)."""
        ...

    def initial_v(self) -> np.ndarray:
        """Velocities at the start, (n_v,)."""
        ...

    def pattern(self) -> tuple[np.ndarray, np.ndarray]:
        """Pattern of the diagonal block of A: CSC indptr (n_v + 1,) and sorted row indices."""
        ...

    def assemble(
        self,
        q: np.ndarray,
        v: np.ndarray,
        t: float,
        settings: StepSettings,
        data: np.ndarray,
        b: np.ndarray,
        external: np.ndarray,
    ) -> None:
        """Fill the block of A (CSC data) and b of eq. (9).

        ``external`` (n_v,) N becomes the force of gravity, loads and joints within b.
        """
        ...

    def advance(
        self,
        q: np.ndarray,
        v: np.ndarray,
        v_hat: np.ndarray,
        settings: StepSettings,
        q_new: np.ndarray,
        v_new: np.ndarray,
    ) -> None:
        """Fill the state at the end of the step from the representative velocity."""
        ...

    def momentum(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Linear momentum (3,), kg m/s."""
        ...

    def centre_of_mass(self, q: np.ndarray) -> np.ndarray:
        """Centre of mass (3,), m."""
        ...

    def kinetic_energy(self, q: np.ndarray, v: np.ndarray) -> float:
        """Kinetic energy, J."""
        ...

    def damping_power(self, v_hat: np.ndarray) -> float:
        """Power that drives count in ``external`` but lose to their own implicit damping, W."""
        ...

    def elastic_energy(self, q: np.ndarray) -> float:
        """Elastic energy, J."""
        ...

    @property
    def mass(self) -> float:
        """Total mass, kg."""
        ...

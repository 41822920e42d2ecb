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


@dataclass(frozen=True)
class BodyStep:
    """One step of one body, for :meth:`Body.balance`.

    Attributes
    ----------
    q, v : ndarray, (n_q,) and (n_v,)
        State at the start of the step.
    q_new, v_new : ndarray, (n_q,) and (n_v,)
        State at its end.
    v_hat : ndarray, (n_v,)
        Representative velocity of the step.
    b, external : ndarray, (n_v,), N and N m
        Right-hand side of the body, and the part of it that gravity, loads and joints make.
    drive : ndarray, (n_v,), N and N m
        Force of the drives on prescribed rows; zero elsewhere.
    dt : float, s
        Length of the step.
    driven : bool
        Whether the velocity of the whole body (of the base of a gripper) is prescribed.
    """

    q: np.ndarray
    v: np.ndarray
    q_new: np.ndarray
    v_new: np.ndarray
    v_hat: np.ndarray
    b: np.ndarray
    external: np.ndarray
    drive: np.ndarray
    dt: float
    driven: bool


@dataclass(frozen=True)
class BodyForces:
    """Forces on a body in one step beside those of contacts and couplings.

    Attributes
    ----------
    outside : ndarray, (3,), N
        Gravity, loads, and damping against the world.
    held : ndarray, (3,), N
        Force of what holds or drives the body.
    drive : ndarray, (6,), N and N m, or None
        Wrench of the drive on a driven body, for a sensor of kind mount.
    power : float, W
        Power of what holds the body from outside the system, such as the moving frame at the end of a rod.
    magnitude : float, N
        Sum of the magnitudes of all forces in b, from which rounding errors of the balance follow.
    """

    outside: np.ndarray
    held: np.ndarray
    drive: np.ndarray | None
    power: float
    magnitude: float


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

    # ---- balance: what a step did to the body

    inverted_elements: int

    def balance(self, step: BodyStep) -> BodyForces:
        """Sum up the forces of a step that change the momentum of the body, beside those of contacts and couplings."""
        ...

    def acted(self) -> dict[str, np.ndarray]:
        """Name what acted inside the body in the last step, for sensors: forces at joints, wrenches at held ends."""
        ...

    def inside_out(self, q: np.ndarray) -> np.ndarray:
        """Elements (m,) bool that are inverted beyond recovery at coordinates q; empty for a body without elements."""
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


def translations(kind: GroupKind, rows: np.ndarray) -> np.ndarray:
    """Rows of v that translate a body, (n, 3): of nodes all, of links the first three of six, of a rigid body the first three."""
    if kind == "nodes":
        return rows.reshape(-1, 3)
    return rows.reshape(-1, 6)[:, :3] if kind == "links" else rows[None, :3]


class BodyDefaults:
    """Answers that suit a body without elements, joints or memory; a body overrides those that do not fit it."""

    kind: GroupKind
    inverted_elements: int = 0

    def reset(self) -> None:
        """Nothing is remembered."""

    def memory(self) -> object:
        """Nothing is remembered."""
        return None

    def recall(self, memory: Any) -> None:
        """Nothing is remembered."""

    # ---- balance

    def balance(self, step: BodyStep) -> BodyForces:
        """Sum up the forces by the layout of the rows; nothing is damped against the world."""
        outside, held, b = (translations(self.kind, rows) for rows in (step.external, step.drive, step.b))
        drive = step.drive[:6].copy() if step.driven else None
        return BodyForces(outside.sum(axis=0), held.sum(axis=0), drive, 0.0, float(np.abs(b).sum()))

    def acted(self) -> dict[str, np.ndarray]:
        """Nothing acts inside the body."""
        return {}

    def inside_out(self, q: np.ndarray) -> np.ndarray:
        """No elements."""
        return np.zeros(0, dtype=np.bool_)

    def damping_power(self, v_hat: np.ndarray) -> float:
        """No drive is damped."""
        return 0.0

    def elastic_energy(self, q: np.ndarray) -> float:
        """Nothing is elastic."""
        return 0.0

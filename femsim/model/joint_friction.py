"""Dry friction of the joints of a robot: rows of the contact problem, each a force along a joint that is bounded and brakes.

A row of dry friction (:mod:`contact.rows`) has the force f between -c and c: inside these bounds the joint stands, v_hat = 0, at
them it moves against it. Where it stands, the velocity at the end of the step is projected on zero, as that of joints between
bodies is (:mod:`femsim.step.joint_velocity`); so what it holds does not tremble, and f is what it has to bear.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from femsim.model.bodies.body import StepSettings
from femsim.model.bodies.tree import TreeBody
from femsim.model.couplings import Constraint, CouplingDefaults

#: Part of its bound that a force of friction may lack where the joint counts as moving.
_SLIDES = 1e-9


class JointFriction(CouplingDefaults):
    """Dry friction of all joints of a robot that have some.

    Parameters
    ----------
    body : TreeBody
        The robot; what rubs is written to its ``rubbed``.
    index : int
        Its number in the system.

    Attributes
    ----------
    pushed : ndarray, (k,), N m or N
        Mean force of the last step on the rows of these joints.
    """

    kind = "joint friction"
    joins = True

    def __init__(self, body: TreeBody, index: int) -> None:
        self.name, self._body = f"{body.name}.friction", body
        joints = [joint for joint in body.joints if joint.friction > 0.0]
        own = np.array([joint.row for joint in joints], dtype=np.int64)
        self.rows: tuple[tuple[int, np.ndarray], ...] = ((index, own),)
        self._most = np.array([joint.friction for joint in joints])
        nothing = np.zeros(0, dtype=np.int64)
        self.entries: tuple[np.ndarray, np.ndarray] | None = (nothing, nothing)
        self.forces: tuple[np.ndarray, ...] = (np.zeros(3),)
        self._dt = 0.0
        self.reset()

    def reset(self) -> None:
        """Forget the forces of earlier steps."""
        self.power = self.lost = 0.0
        self._lam, self._stands = np.zeros(len(self._most)), np.zeros(len(self._most), dtype=np.bool_)
        self._take(self._lam)

    def _take(self, pushed: np.ndarray) -> None:
        self.pushed = pushed.copy()
        self._body.rubbed[self.rows[0][1]] = pushed

    def prepare(self, q: Sequence[np.ndarray], t: float, v_hat: np.ndarray | None = None) -> None:
        """Its rows are those of all places."""

    def assemble(self, settings: StepSettings, block: np.ndarray, b: np.ndarray) -> None:
        """Take the settings; nothing of it is in A or b."""
        self._dt = settings.dt
        b[:] = 0.0

    def exerted(self) -> np.ndarray:
        """No force beside those of the rows."""
        return np.zeros(len(self._most))

    def constraint(self) -> Constraint | None:
        """One row a joint."""
        k = len(self._most)
        return Constraint(np.eye(k), np.zeros(k), -self._most, self._most, np.arange(k))

    def constraint_at(self, q: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Rows of the joints that stand, (p, k), each by itself."""
        return np.eye(len(self._most))[self._stands], np.flatnonzero(self._stands)

    def release(self, impulse: np.ndarray) -> bool:
        """Let go of joints that friction cannot keep at rest at the end of a step by impulses (p,), N m s or N s; say whether."""
        over = np.zeros(len(self._most), dtype=np.bool_)
        over[self._stands] = np.abs(self._lam[self._stands] + impulse / self._dt) > self._most[self._stands]
        self._stands &= ~over
        return bool(over.any())

    def take_rows(self, forces: np.ndarray) -> None:
        """Take what rubs in the problem that was solved, (k,)."""
        self._lam = np.array(forces)
        self._stands = np.abs(self._lam) < (1.0 - _SLIDES) * self._most
        self._take(self._lam)

    def add_impulse(self, impulse: np.ndarray) -> None:
        """Add what kept the joints at rest at the end of the step, (p,), N m s or N s."""
        more = np.zeros(len(self._most))
        more[self._stands] = impulse / self._dt
        self._take(self.pushed + more)

    @property
    def row_forces(self) -> np.ndarray:
        """What rubbed in the last solve."""
        return self._lam

    def push(self) -> np.ndarray:
        """Return the same on the rows of v."""
        return self._lam

    def accept(self, v_hat: np.ndarray) -> None:
        """Count the power that it takes."""
        self.power = float(self._lam @ v_hat)
        self.lost = -self.power

    def settle(self, q: Sequence[np.ndarray]) -> None:
        """Nothing depends on where the joints are."""

    def memory(self) -> dict[str, np.ndarray]:
        """Give the forces of the last step, where the next solve starts."""
        return {"forces": self._lam}

    def recall(self, memory: Mapping[str, np.ndarray]) -> None:
        """Take them back."""
        self._lam = np.array(memory["forces"])

    def reading(self) -> tuple[float, ...]:
        """No sensor of its own: those of the joints read it."""
        return ()

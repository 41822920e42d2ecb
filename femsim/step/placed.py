"""Where the parts of a scene are in a state, and which rows of v move those that are rigid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from femsim.model.parts import Part
from femsim.step.state import State
from femsim.step.system import System

#: Row of what nothing moves.
STATIC = -1


@dataclass(frozen=True)
class Placed:
    """Where parts are.

    Attributes
    ----------
    rotation, translation : ndarray, (np, 3, 3) and (np, 3), m
        Pose of each rigid part; that of the world for all others.
    origin : ndarray, (np, 3), m
        Point that the six rows of a rigid part move.
    axis : ndarray, (np, 3)
        Direction of its prismatic joint.
    reference : ndarray, (np, 3), m
        Point that torques on each part are about.
    """

    rotation: np.ndarray
    translation: np.ndarray
    origin: np.ndarray
    axis: np.ndarray
    reference: np.ndarray


class Places:
    """Reads from a state where parts are.

    Parameters
    ----------
    system : System
        The bodies.
    parts : sequence of Part
        The parts.

    Attributes
    ----------
    row, joint_row : ndarray, (np,)
        First of the six rows of v that move a rigid part, and that of its prismatic joint; -1 for none.
    """

    def __init__(self, system: System, parts: Sequence[Part]) -> None:
        self._system, self._moving = system, [(k, part) for k, part in enumerate(parts) if part.body >= 0]
        n = len(parts)
        self._still = Placed(np.tile(np.eye(3), (n, 1, 1)), *np.zeros((4, n, 3)))
        self.row, self.joint_row = np.full(n, STATIC, dtype=np.int64), np.full(n, STATIC, dtype=np.int64)
        for k, part in self._moving:
            body, start = system.bodies[part.body], system.v_slices[part.body].start
            if body.rigid:
                self.row[k] = start
                joint, _ = body.link_joint(body.initial_q(), part.link)
                if joint >= 0:
                    self.joint_row[k] = start + joint
        self._slides = (self.joint_row >= 0).tolist()

    def read(self, state: State) -> Placed:
        """Read a state."""
        still = self._still
        placed = Placed(
            still.rotation.copy(), still.translation.copy(), still.origin.copy(), still.axis.copy(), still.reference.copy()
        )
        for k, part in self._moving:
            body, q = self._system.bodies[part.body], state.q[self._system.q_slices[part.body]]
            if body.rigid:
                placed.rotation[k], placed.translation[k] = body.link_pose(q, part.link)
                placed.origin[k] = body.link_origin(q, part.link)
                if self._slides[k]:
                    _, placed.axis[k] = body.link_joint(q, part.link)
            placed.reference[k] = body.reference(q, part.link)
        return placed

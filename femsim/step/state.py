"""What moves in a step, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass
class State:
    """State of all bodies at one time.

    Attributes
    ----------
    q : ndarray, (nq,)
        Coordinates body after body: node positions (m); position (m) and quaternion of rigid bodies; joint positions (m).
    v : ndarray, (nv,)
        Velocities body after body: node velocities (m/s); velocity (m/s) and world angular velocity (rad/s); joint speeds.
    t : float, s
        Time.
    """

    q: np.ndarray
    v: np.ndarray
    t: float

    def copy(self) -> State:
        """Independent copy."""
        return State(self.q.copy(), self.v.copy(), self.t)

"""The velocities that a step ends with where joints hold bodies: those that joints allow where they are then.

A step closes each joint where it ends, so its mean velocity leaves it closed. Where theta < 1 the velocity v1* = v0 + (v_hat -
v0)/theta that follows need not: what it has across the joint comes back with the other sign in each step, and the force of the
joint with it. So it is projected, M (v1 - v1*) = G^T p with G v1 = 0, G that of the joints where the step ends; impulses p of
joints and of contacts (:mod:`femsim.step.end_velocity`) then see bodies that are joined. Both levels are the positions and
velocities of Bruls, Acary and Cardona 2014, see there. A projection in the norm of M never adds energy.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from femsim.step.state import State
from femsim.step.system import System

#: Rows of joints depend on others to this part of the largest.
_RANK = 1e-10


class JointedMobility:
    """Velocities that impulses make at the end of a step on bodies that joints hold.

    Parameters
    ----------
    system : System
        The bodies, with joints.
    old, new : State
        Start and end of the step.
    """

    def __init__(self, system: System, old: State, new: State) -> None:
        self._system, self._old, self._new = system, old, new
        self._G = system.joint_jacobian(new)
        self._columns = np.unique(self._G.indices)
        free = self._G.copy()
        free.data[system.prescribed[free.indices]] = 0.0
        self._push = sp.csc_matrix(system.mobility(old, new, self._columns) @ free.T) if len(self._columns) else free.T
        K = (free @ self._push).toarray()
        root = np.sqrt(np.abs(K.diagonal()))
        scale = 1.0 / np.where(root > 0.0, root, 1.0)
        self._inverse = scale[:, None] * np.linalg.pinv(scale[:, None] * K * scale, rcond=_RANK, hermitian=True) * scale

    def impulses(self, v: np.ndarray) -> np.ndarray:
        """Impulses of the joints, (p,), that take from v, (n,), what they do not allow."""
        return np.asarray(-self._inverse @ (self._G @ v))

    def joined(self, v: np.ndarray) -> np.ndarray:
        """Nearest velocity, (n,), that they allow."""
        return np.asarray(v + self._push @ self.impulses(v))

    def of(self, rows: np.ndarray) -> sp.csc_matrix:
        """Velocities that impulses on some rows make, (n, n), see :meth:`femsim.step.system.System.mobility`."""
        all_rows = np.union1d(rows, self._columns)
        across = sp.csc_matrix(self._push @ sp.csc_matrix(self._inverse))
        return sp.csc_matrix(self._system.mobility(self._old, self._new, all_rows) - across @ self._push.T)

    def impulses_beside(self, momentum: np.ndarray) -> np.ndarray:
        """Impulses of the joints, (p,), where others, (n,), push joined bodies."""
        columns = np.flatnonzero(momentum)
        if not len(columns):
            return np.zeros(len(self._inverse))
        alone = self._system.mobility(self._old, self._new, np.union1d(columns, self._columns))
        return self.impulses(np.asarray(alone @ momentum))

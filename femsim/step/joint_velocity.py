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

from contact import ContactProblem
from contact.masses import as_matrix
from contact.masses_kernels import BlockRows
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
    G : sparse matrix, (p, n)
        Rows that the joints keep there.
    """

    def __init__(self, system: System, old: State, new: State, G: sp.csr_matrix) -> None:
        self._G, self._masses = G, as_matrix(system.mobility(old, new))
        free = self._G.copy()
        free.data[system.prescribed[free.indices]] = 0.0
        self._push = sp.csc_matrix(self._masses @ free.T)
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

    def velocities(self, impulse: np.ndarray) -> np.ndarray:
        """Velocities, (n,), that impulses (n,), N s, make on bodies that are joined."""
        return self.joined(self._masses @ impulse)

    def impulses_beside(self, impulse: np.ndarray) -> np.ndarray:
        """Impulses of the joints, (p,), where others, (n,), N s, push joined bodies."""
        return self.impulses(self._masses @ impulse)

    def operator(self, problem: ContactProblem, contacts: np.ndarray, dt: float) -> BlockRows:
        """W of some contacts of joined bodies, as :func:`contact.masses.split_operator` gives it without joints."""
        J = problem.J[(3 * contacts[:, None] + np.arange(3)).ravel()]
        across = J @ self._push
        W = J @ self._masses @ J.T - across @ sp.csr_matrix(self._inverse) @ across.T
        W = sp.bsr_matrix(sp.csr_matrix(dt * W), blocksize=(3, 3))
        return BlockRows(W.indptr.astype(np.int64), W.indices.astype(np.int64), np.ascontiguousarray(W.data))


def jointed_mobility(system: System, old: State, new: State, *, projected: bool) -> JointedMobility | None:
    """Return that of a step from one state to another; None where no joint keeps anything.

    ``projected`` says that the velocities of ``new`` are to be projected: rows of dry friction that cannot bear it are let go.
    """
    while system.joints and (G := system.joints.jacobian(new)).shape[0]:
        joints = JointedMobility(system, old, new, G)
        if not (projected and system.joints.release(new, joints.impulses(new.v))):
            return joints
    return None

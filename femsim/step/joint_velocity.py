"""The velocities that a step ends with where joints hold bodies: those that joints allow where they are then.

A step closes each joint where it ends, so its mean velocity leaves it closed. Where theta < 1 the velocity v1* = v0 + (v_hat -
v0)/theta that follows need not: what it has across the joint comes back with the other sign in each step, and the force of the
joint with it. So it is projected, M (v1 - v1*) = G^T p with G v1 = 0, G that of the joints where the step ends; impulses p of
joints and of contacts (:mod:`femsim.step.end_velocity`) then see bodies that are joined. Both levels are the positions and
velocities of Bruls, Acary and Cardona 2014, see there. A projection in the norm of M never adds energy.
"""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.linalg import lapack

from contact import ContactProblem, equality_kernels, masses_kernels
from contact.compressed import times_transposed
from contact.equalities import sizes_of_vectors
from contact.jacobian_kernels import gather, mark_columns
from contact.masses import split_operator, velocities
from contact.masses_kernels import BlockRows, Masses
from femsim.step.state import State
from femsim.step.system import System

#: Rows of joints depend on others to this part of the largest; where a pivot of Cholesky's factors is less than the second, they
#: may, and it is found out.
_RANK, _SURE = 1e-10, 1e-8
#: A velocity is held by joints where impulses move it by this part of what they would without.
_HELD = 1e-12


class _Set(NamedTuple):
    """Rows of joints that depend on one another, and the inverse of what impulses of them make of their velocities.

    That is D F^-T F^-1 D by Cholesky's factors F and the scale D, or ``inverse`` where rows repeat others.
    """

    rows: np.ndarray
    scale: np.ndarray
    factor: np.ndarray
    inverse: np.ndarray | None

    @classmethod
    def of(cls, rows: np.ndarray, K: np.ndarray, vector: np.ndarray) -> _Set:
        """Invert the matrix of some rows, (p, p), components of vectors with these numbers, (p,)."""
        root = np.sqrt(np.abs(K.diagonal()))
        scale = 1.0 / np.where(root > 0.0, root, 1.0)
        K = scale[:, None] * K * scale
        factor, bad = lapack.dpotrf(K, lower=1)
        if bad or factor.diagonal().min(initial=1.0) ** 2 < _SURE:
            return cls(rows, scale, factor, _least(K, sizes_of_vectors(root**2, vector) * scale))
        return cls(rows, scale, factor, None)

    def solve(self, velocity: np.ndarray) -> np.ndarray:
        """Impulses, (p,) or (p, k), that make velocities of the rows."""
        scale = self.scale if velocity.ndim == 1 else self.scale[:, None]
        if self.inverse is None:
            return np.asarray(scale * lapack.dpotrs(self.factor, scale * velocity, lower=1)[0])
        return np.asarray(scale * (self.inverse @ (scale * velocity)))


def _least(K: np.ndarray, size: np.ndarray) -> np.ndarray:
    """Inverse of a singular matrix, (p, p), that gives those impulses of which the sum of the squares by ``size`` is least."""
    values, ways = np.linalg.eigh(K)
    moves = values > _RANK * values[-1]
    inverse, still = (ways[:, moves] / values[moves]) @ ways[:, moves].T, ways[:, ~moves]
    weighted = size[:, None] * still
    kept = np.eye(len(K)) - still @ np.linalg.lstsq(weighted, np.diag(size), rcond=None)[0]
    return np.asarray(kept @ inverse @ kept.T)


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
    vector : ndarray of int, (p,)
        Numbers of the vectors that they are components of.
    """

    def __init__(self, system: System, old: State, new: State, G: sp.csr_matrix, vector: np.ndarray) -> None:
        self._G, self._masses = G, system.mobility(old, new)
        self._free = free = G
        if system.prescribes:
            self._free = free = G.copy()
            free.data[system.prescribed[free.indices]] = 0.0
            free.eliminate_zeros()
        p, n = G.shape
        of_row, self._set_of = np.empty(p, dtype=np.int64), np.empty(n, dtype=np.int64)
        sets = equality_kernels.join(free.indptr, free.indices, self._masses.block, of_row, self._set_of)
        ptr, members, work = np.zeros(sets + 1, dtype=np.int64), np.empty(p, dtype=np.int64), np.zeros(n)
        equality_kernels.by_sets(of_row, np.ones(p, dtype=np.bool_), ptr, members)
        self._sets: list[_Set] = []
        for first, last in pairwise(ptr):
            rows, K = members[first:last], np.empty((last - first, last - first))
            masses_kernels.between_rows(self._masses, free.indptr, free.indices, free.data, rows, work, K)
            self._sets.append(_Set.of(rows, K, vector[rows]))

    def impulses(self, v: np.ndarray) -> np.ndarray:
        """Impulses of the joints, (p,), that take from v, (n,), what they do not allow."""
        velocity = self._velocity(v)
        out = np.zeros(len(velocity))
        for one in self._sets:
            out[one.rows] = -one.solve(velocity[one.rows])
        return out

    def joined(self, v: np.ndarray, impulses: np.ndarray | None = None) -> np.ndarray:
        """Nearest velocity, (n,), that they allow; ``impulses`` are those of :meth:`impulses`, if known."""
        impulses = self.impulses(v) if impulses is None else impulses
        return np.asarray(v + velocities(self._masses, times_transposed(self._free, impulses)))

    def velocities(self, impulse: np.ndarray) -> np.ndarray:
        """Velocities, (n,), that impulses (n,), N s, make on bodies that are joined."""
        return self.joined(velocities(self._masses, impulse))

    def impulses_beside(self, impulse: np.ndarray) -> np.ndarray:
        """Impulses of the joints, (p,), where others, (n,), N s, push joined bodies."""
        return self.impulses(velocities(self._masses, impulse))

    def power(self, impulses: np.ndarray, v: np.ndarray) -> float:
        """Work, J, of impulses of the joints, (p,), with a velocity, (n,)."""
        return float(impulses @ self._velocity(v))

    def _velocity(self, v: np.ndarray) -> np.ndarray:
        """Velocity of each row of the joints, (p,), at a velocity of the bodies, (n,)."""
        G, out = self._G, np.empty(self._G.shape[0])
        gather(G.indptr, G.indices, G.data, v, out)
        return out

    def operator(self, problem: ContactProblem, contacts: np.ndarray, dt: float) -> BlockRows:
        """W of some contacts of joined bodies, as :func:`contact.masses.split_operator` gives it without joints."""
        J, touched = problem.J, np.zeros(problem.n, dtype=np.bool_)
        mark_columns(J.indptr, J.indices, touched)
        if self._set_of[touched].max(initial=-1) < 0:
            return split_operator(self._masses, problem, contacts, dt)
        return _without_empty(split_operator(self._merged, problem, contacts, dt))

    @cached_property
    def _merged(self) -> Masses:
        """The inverse masses of joined bodies, one block for those that joints join."""
        n, free = len(self._set_of), self._free
        ptr, members, at = np.zeros(len(self._sets) + 1, dtype=np.int64), np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
        equality_kernels.by_sets(self._set_of, np.ones(n, dtype=np.bool_), ptr, members)
        out = masses_kernels.merge(self._masses, self._set_of, ptr, members)
        start = out.start[len(out.start) - 1 - len(self._sets) :]
        for k, one in enumerate(self._sets):
            columns = members[ptr[k] : ptr[k + 1]]
            own, G = out.inverse[start[k] : start[k + 1]].reshape(len(columns), -1), np.zeros((len(one.rows), len(columns)))
            equality_kernels.gather_rows(free.indptr, free.indices, free.data, one.rows, columns, at, G)
            across, before = G @ own, own.diagonal().copy()
            own -= across.T @ one.solve(across)
            held = own.diagonal() <= _HELD * before  # what is left is rounding, as of a joint that dry friction holds
            own[held], own[:, held] = 0.0, 0.0
        return out


def _without_empty(W: BlockRows) -> BlockRows:
    """Leave out blocks of zeros: contacts of links that joints hold against each other move nothing, and join no others."""
    filled = W.blocks.any(axis=(1, 2))
    if filled.all():
        return W
    ptr = np.concatenate([[0], np.cumsum(filled)])[W.indptr]
    return BlockRows(ptr.astype(np.int64), W.indices[filled], W.blocks[filled])


def jointed_mobility(system: System, old: State, new: State, *, projected: bool) -> JointedMobility | None:
    """Return that of a step from one state to another; None where no joint keeps anything.

    ``projected`` says that the velocities of ``new`` are to be projected: rows of dry friction that cannot bear it are let go.
    """
    while system.joints and len((kept := system.joints.jacobian(new))[1]):
        joints = JointedMobility(system, old, new, *kept)
        if not (projected and system.joints.release(joints.impulses(new.v))):
            return joints
    return None

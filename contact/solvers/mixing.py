"""Extrapolation of fixed-point iterations on A v = b + J^T lam, in the norm of A."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

#: Iterates that an extrapolation looks back on. Beside steps that are self-adjoint by A two would do, as in conjugate gradients.
_MEMORY = 4
#: Differences of steps that are combinations of the others to this part count as such.
_DEPENDENT = 1e-10


class Iterate(NamedTuple):
    """What an iteration led to, arrays that are not changed.

    Attributes
    ----------
    v, Av : ndarray, (n,)
        Velocity, and A times it.
    forces : ndarray, (nc, 3)
        Contact forces.
    step, A_step : ndarray, (n,)
        By how much it changed v, and A times that.
    """

    v: np.ndarray
    Av: np.ndarray
    forces: np.ndarray
    step: np.ndarray
    A_step: np.ndarray


class Mixing:
    """Anderson's extrapolation of iterations v -> g(v) with the step g(v) - v, of least A-norm over the last few.

    With a factorized A~ and contacts that keep their states g is affine, and I - g' = P A~^-1 A, with the projection P, is
    self-adjoint by A: the extrapolation then converges as preconditioned conjugate residuals do. Forces take the same
    combination as velocities, so the equations of both hold as they do for the iterates; that they also keep the contact law is
    up to the next iteration.
    """

    def __init__(self) -> None:
        self._last: list[Iterate] = []

    def forget(self) -> None:
        """Begin anew: the iteration is another one."""
        self._last.clear()

    def extrapolated(self, last: Iterate) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Take an iterate in; return v, A v and forces to go on from."""
        before, self._last = self._last, [*self._last[1 - _MEMORY :], last]
        if not before:
            return last.v, last.Av, last.forces
        change = np.array([last.step - one.step for one in before])
        A_change = np.array([last.A_step - one.A_step for one in before])
        gram, right = change @ A_change.T, A_change @ last.step
        share = np.linalg.lstsq(0.5 * (gram + gram.T), right, rcond=_DEPENDENT)[0]
        v, Av, forces = last.v.copy(), last.Av.copy(), last.forces.copy()
        for one, part in zip(before, share, strict=True):
            v -= part * (last.v - one.v)
            Av -= part * (last.Av - one.Av)
            forces -= part * (last.forces - one.forces)
        return v, Av, forces

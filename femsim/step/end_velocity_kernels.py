"""Compiled kernels of the velocities at the end of a step: what surrounds the contact problem there, a call for each stage."""

from __future__ import annotations

import numpy as np

from contact.compiled import njit
from contact.masses_kernels import BlockRows, times_blocks


@njit(cache=True)
def close_contacts(lam: np.ndarray, u: np.ndarray, still: float, restitution: np.ndarray, closed: np.ndarray) -> tuple[int, bool]:
    """Fill the contacts that a step closed, (nc,); return how many there are, and whether any of them has restitution.

    They press, lam (nc, 3), or their gaps close at less than ``still``, m/s, by u (nc, 3).
    """
    count, bounces = 0, False
    for m in range(lam.shape[0]):
        if lam[m, 0] > 0.0 or u[m, 0] <= still:
            closed[count] = m
            count += 1
            bounces = bounces or restitution[m] != 0.0
    return count, bounces


@njit(cache=True)
def velocities_without_forces(
    indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, old: np.ndarray, new: np.ndarray, surface: np.ndarray,
    restitution: np.ndarray, closed: np.ndarray, W: BlockRows, forces: np.ndarray, q: np.ndarray,
) -> None:  # fmt: skip
    """Fill q (k, 3), m/s, of the contacts ``closed`` (k,) at the end of a step: J v1* + e min(J v0, 0) - W lam.

    ``old`` and ``new`` are v0 and v1*, (n,); ``surface`` (nc, 3), m/s, counts in both J v; ``forces`` (k, 3) are lam.
    The 11 parameters are J by its arrays, the velocities, the contacts and the result.
    """
    times_blocks(W, forces, q)
    for a in range(closed.shape[0]):
        m = closed[a]
        for c in range(3):
            before, after = 0.0, 0.0
            for k in range(indptr[3 * m + c], indptr[3 * m + c + 1]):
                before += data[k] * old[indices[k]]
                after += data[k] * new[indices[k]]
            offset, approach = surface[m, c], before + surface[m, c]
            if c == 0:
                offset += restitution[m] * (0.0 if approach >= 0.0 else approach)
            q[a, c] = after + offset - q[a, c]


@njit(cache=True)
def change_forces(
    indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, closed: np.ndarray, forces: np.ndarray, dt: float,
    whole: np.ndarray, impulse: np.ndarray,
) -> None:  # fmt: skip
    """Put ``forces`` (k, 3) of the contacts ``closed`` into ``whole`` (nc, 3), N; fill what the change pushes, (n,), N s."""
    impulse[:] = 0.0
    for a in range(closed.shape[0]):
        m = closed[a]
        for c in range(3):
            change = forces[a, c] - whole[m, c]
            whole[m, c] = forces[a, c]
            for k in range(indptr[3 * m + c], indptr[3 * m + c + 1]):
                impulse[indices[k]] += data[k] * change
    for i in range(impulse.shape[0]):
        impulse[i] *= dt


@njit(cache=True)
def work_of_forces(
    indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, lam: np.ndarray, u: np.ndarray, acting: np.ndarray,
    surface: np.ndarray, ends: np.ndarray, dt: float, out: np.ndarray,
) -> None:  # fmt: skip
    """Fill the work of each contact force by directions, (nc, 3), J: dt lam u and that of what acts beyond lam.

    That acts at the end of the step, with the mean of the velocities before and after it, half of their sum ``ends`` (n,).
    """
    for m in range(lam.shape[0]):
        for c in range(3):
            velocity = 0.0
            for k in range(indptr[3 * m + c], indptr[3 * m + c + 1]):
                velocity += data[k] * ends[indices[k]]
            late = 0.5 * dt * (acting[m, c] - lam[m, c]) * (velocity + 2.0 * surface[m, c])
            out[m, c] = dt * lam[m, c] * u[m, c] + late

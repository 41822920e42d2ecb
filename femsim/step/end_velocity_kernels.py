"""Compiled kernels of the velocities at the end of a step: what surrounds the contact problem there, a call for each stage."""

from __future__ import annotations

import math

import numpy as np

from contact.compiled import njit
from contact.masses_kernels import BlockRows, find_groups, times_blocks


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
def number_groups(indptr: np.ndarray, indices: np.ndarray, group: np.ndarray) -> int:
    """Fill the number of the group of each contact, (k,), that a chain of blocks of W joins; return how many groups there are."""
    k = group.shape[0]
    order, ptr = np.empty(k, dtype=np.int64), np.empty(k + 1, dtype=np.int64)
    count = find_groups(indptr, indices, order, ptr)
    for number in range(count):
        for i in range(ptr[number], ptr[number + 1]):
            group[order[i]] = number
    return count


@njit(cache=True, inner=True)
def impact_speed(approach: float, gap: float, pull: float, dt: float) -> float:
    """Speed, m/s, at which a gap (m) closes that closes with ``approach``, m/s, ever faster by ``pull``, m/s^2.

    What parts at first and does not come back within ``dt``, s, closes at 0.
    """
    squared = approach * approach + 2.0 * pull * gap
    if squared <= 0.0:
        return 0.0
    speed = math.sqrt(squared)
    if approach > 0.0 or (pull > 0.0 and gap > 0.0 and speed - approach <= pull * dt):
        return speed
    return 0.0


@njit(cache=True)
def rebounds(
    indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, old: np.ndarray, fall: np.ndarray, surface: np.ndarray,
    gap: np.ndarray, restitution: np.ndarray, closed: np.ndarray, still: float, most: float, dt: float, out: np.ndarray,
) -> None:  # fmt: skip
    """Fill the speeds with which the contacts ``closed`` (k,) part, (k,), m/s: e of those at which their gaps (nc,), m, close.

    They close as by the velocity of the start, ``old`` (n,), and what external forces change it by, ``fall`` (n,), m/s^2, but
    along no normal by more than ``most``. ``surface`` (nc, 3), m/s, counts in the former; gaps that close at less than
    ``still``, m/s, are closed. The 13 parameters are J by its arrays, the velocities, the contacts, the step and the result.
    """
    for a in range(closed.shape[0]):
        m = closed[a]
        if restitution[m] == 0.0:
            out[a] = 0.0
            continue
        approach, pull = -surface[m, 0], 0.0
        for k in range(indptr[3 * m], indptr[3 * m + 1]):
            approach -= data[k] * old[indices[k]]
            pull -= data[k] * fall[indices[k]]
        open_by = gap[m] if gap[m] > still * dt else 0.0
        out[a] = restitution[m] * impact_speed(approach, open_by, min(max(pull, -most), most), dt)


@njit(cache=True)
def velocities_without_forces(
    indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, new: np.ndarray, surface: np.ndarray, rebound: np.ndarray,
    closed: np.ndarray, W: BlockRows, forces: np.ndarray, q: np.ndarray,
) -> None:  # fmt: skip
    """Fill q (k, 3), m/s, of the contacts ``closed`` (k,) at the end of a step: J v1* - e s - W lam, e s (k,) being ``rebound``.

    ``new`` (n,) is v1*; ``surface`` (nc, 3), m/s, counts in J v1*; ``forces`` (k, 3) are lam.
    The 10 parameters are J by its arrays, the velocities, the contacts and the result.
    """
    times_blocks(W, forces, q)
    for a in range(closed.shape[0]):
        m = closed[a]
        for c in range(3):
            after = surface[m, c]
            for k in range(indptr[3 * m + c], indptr[3 * m + c + 1]):
                after += data[k] * new[indices[k]]
            q[a, c] = after - q[a, c]
        q[a, 0] -= rebound[a]


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


@njit(cache=True, _nrt=False)
def friction_works(work: np.ndarray) -> bool:
    """Whether the friction of any contact does work on the bodies, by the work of its force by directions, (nc, 3), J."""
    for m in range(work.shape[0]):
        if work[m, 1] + work[m, 2] > 0.0:
            return True
    return False

"""What the kernels of all contact families share: entries of J, offsets, forces and moments of one contact."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from contact.compiled import njit
from contact.vector_kernels import Vector

#: Cosine of the angle from which on a normal points aside, as that of the next face of a box seen from just beside it.
_ASIDE = 1e-2


class Given(NamedTuple):
    """What a step gives to the rows of its contacts.

    Attributes
    ----------
    prescribed : ndarray, (n,), bool
        Rows of v whose velocity is prescribed.
    v : ndarray, (n,)
        These velocities.
    dt : float, s
        Time step.
    correction, max_correction : float
        Fraction of a penetration that one step undoes, and the largest speed for it (m/s).
    """

    prescribed: np.ndarray
    v: np.ndarray
    dt: float
    correction: float
    max_correction: float


class Rows(NamedTuple):
    """Rows of contacts, with room for all that were found; a kernel fills them from the start.

    Attributes
    ----------
    keep : ndarray, (kept,)
        Number of each contact among those found.
    indptr, indices, data : ndarray
        J as CSR, three rows a contact, columns in order.
    phi : ndarray, (kept, 3), m/s
        Offset of the contact velocity.
    """

    keep: np.ndarray
    indptr: np.ndarray
    indices: np.ndarray
    data: np.ndarray
    phi: np.ndarray

    def cut(self, kept: int, entries: int) -> Rows:
        """Those that were filled: so many contacts, so many entries of J."""
        if kept == len(self.keep) and entries == len(self.data):
            return self
        return Rows(self.keep[:kept], self.indptr[: 3 * kept + 1], self.indices[:entries], self.data[:entries], self.phi[:kept])


class Sums(NamedTuple):
    """Forces of all contacts on parts and rows of v; kernels add to them.

    Attributes
    ----------
    wrench : ndarray, (parts, 6), N and N m
        Force on each part and torque about its reference.
    force_sum : ndarray, (parts,), N
        Sum of the magnitudes of the forces on each part.
    node_force : ndarray, (n,), N and N m
        Force on the rows of nodes, and torque on those of links that contacts turn.
    """

    wrench: np.ndarray
    force_sum: np.ndarray
    node_force: np.ndarray


@njit(cache=True, inner=True, _nrt=False)
def can_press(data: np.ndarray, first: int, tangents: int, stop: int) -> bool:
    """Whether anything moves along the normal of a contact with entries first to stop - 1 of J, those of tangents behind its own.

    Where nothing does (or nothing moves at all) no force could do anything.
    """
    normal, largest = 0.0, 0.0
    for e in range(first, stop):
        size = abs(data[e])
        largest = max(largest, size)
        if e < tangents:
            normal = max(normal, size)
    return normal > 1e-9 * largest


@njit(cache=True, inner=True, _nrt=False)
def normal_offset(gap: float, dt: float, correction: float, max_correction: float) -> float:
    """Return the normal part of phi: gap/dt, for a penetration only correction * gap/dt and at most max_correction m/s."""
    return gap / dt if gap >= 0.0 else max(correction * gap / dt, -max_correction)


def normal_offsets(gap: np.ndarray, given: Given, softness: np.ndarray | None = None) -> np.ndarray:
    """:func:`normal_offset` of many gaps, (nc,), m: (nc,), m/s; gap/dt where the softness (nc,), m/N, is positive."""
    out = np.empty(len(gap))
    _fill_offsets(gap, given.dt, given.correction, given.max_correction, out)
    return out if softness is None else np.where(softness > 0.0, gap / given.dt, out)


@njit(cache=True, _nrt=False)
def _fill_offsets(gap: np.ndarray, dt: float, correction: float, max_correction: float, out: np.ndarray) -> None:
    """Fill the :func:`normal_offset` of many gaps."""
    for m in range(gap.shape[0]):
        out[m] = normal_offset(gap[m], dt, correction, max_correction)


@njit(cache=True, inner=True, _nrt=False)
def keep_contact(m: int, gap: float, first: int, kept: int, entry: int, given: Given, rows: Rows) -> tuple[int, int]:
    """Keep contact m, with entries of J from ``first`` on, where anything can press it; return (contacts kept, entries).

    Its phi so far is what prescribed velocities make; the normal part of it gets that of the gap.
    """
    if not can_press(rows.data, first, rows.indptr[3 * kept + 1], entry):
        return kept, first
    rows.phi[kept, 0] += normal_offset(gap, given.dt, given.correction, given.max_correction)
    rows.keep[kept] = m
    return kept + 1, entry


@njit(cache=True, inner=True, _nrt=False)
def moment_entry(c: int, lever: Vector, force: Vector) -> float:
    """Component c (0, 1 or 2) of the moment lever x force, N m, of a lever in m and a force in N."""
    if c == 0:
        return lever[1] * force[2] - lever[2] * force[1]
    if c == 1:
        return lever[2] * force[0] - lever[0] * force[2]
    return lever[0] * force[1] - lever[1] * force[0]


@njit(cache=True, inner=True, _nrt=False)
def turn_frame(frame: np.ndarray, m: int, normal: Vector) -> bool:
    """Turn frame m of (nc, 3, 3) on the shortest way so that its first row is this normal; False where it points aside.

    Aside is the other side and the next face of a box, at right angles, where rounding would decide.

    With the axis a, first row x normal, a vector x becomes x + a x x + a x (a x x) / (1 + cos).
    """
    own = (frame[m, 0, 0], frame[m, 0, 1], frame[m, 0, 2])
    cosine = own[0] * normal[0] + own[1] * normal[1] + own[2] * normal[2]
    if not cosine > _ASIDE:
        return False
    axis = (moment_entry(0, own, normal), moment_entry(1, own, normal), moment_entry(2, own, normal))
    for r in range(3):
        x = (frame[m, r, 0], frame[m, r, 1], frame[m, r, 2])
        once = (moment_entry(0, axis, x), moment_entry(1, axis, x), moment_entry(2, axis, x))
        for c in range(3):
            frame[m, r, c] = x[c] + once[c] + moment_entry(c, axis, once) / (1.0 + cosine)
    return True


@njit(cache=True, _nrt=False)
def turn_frames(frame: np.ndarray, place: np.ndarray, now: np.ndarray, turned: np.ndarray) -> None:
    """:func:`turn_frame` of frames (nc, 3, 3) to the normals of the frames number ``place`` (nc,) of ``now`` (m, 3, 3).

    Where the place is -1, or the normal there points to the other side, they stay, and ``turned`` (nc,) is False.
    """
    for m in range(frame.shape[0]):
        k = place[m]
        turned[m] = k >= 0 and turn_frame(frame, m, (now[k, 0, 0], now[k, 0, 1], now[k, 0, 2]))


# Rows of arrays go by array and number below: a view of each would cost more than what is done with it.


@njit(cache=True, inner=True, _nrt=False)
def triple(a: np.ndarray, i: int) -> Vector:
    """Row i of an array (n, 3)."""
    return a[i, 0], a[i, 1], a[i, 2]


@njit(cache=True, inner=True, _nrt=False)
def between(a: np.ndarray, i: int, b: np.ndarray, j: int) -> Vector:
    """Vector from row i of a to row j of b, both (n, 3)."""
    return b[j, 0] - a[i, 0], b[j, 1] - a[i, 1], b[j, 2] - a[i, 2]


@njit(cache=True, inner=True, _nrt=False)
def put_entry(
    column: int, value: float, prescribed: np.ndarray, v: np.ndarray, indices: np.ndarray, data: np.ndarray, entry: int
) -> tuple[int, float]:
    """Append an entry to J; where the velocity of its column is prescribed, add to phi instead. Return (entries, part of phi)."""
    if prescribed[column]:
        return entry, value * v[column]
    indices[entry] = column
    data[entry] = value
    return entry + 1, 0.0


@njit(cache=True, inner=True, _nrt=False)
def world_force(frame: np.ndarray, m: int, lam: np.ndarray, k: int) -> Vector:
    """Force lam (row k of (kept, 3), normal first) of a contact with the frame m of (nc, 3, 3), in world components."""
    return (
        frame[m, 0, 0] * lam[k, 0] + frame[m, 1, 0] * lam[k, 1] + frame[m, 2, 0] * lam[k, 2],
        frame[m, 0, 1] * lam[k, 0] + frame[m, 1, 1] * lam[k, 1] + frame[m, 2, 1] * lam[k, 2],
        frame[m, 0, 2] * lam[k, 0] + frame[m, 1, 2] * lam[k, 1] + frame[m, 2, 2] * lam[k, 2],
    )


@njit(cache=True, inner=True, _nrt=False)
def add_side(part: int, sign: float, lever: Vector, force: Vector, wrench: np.ndarray, force_sum: np.ndarray) -> None:
    """Add the force of a contact at a lever from the reference of a part to the wrench on it."""
    for c in range(3):
        wrench[part, c] += sign * force[c]
        wrench[part, 3 + c] += sign * moment_entry(c, lever, force)
    force_sum[part] += np.sqrt(force[0] ** 2 + force[1] ** 2 + force[2] ** 2)


@njit(cache=True, _nrt=False)
def tell(lam: np.ndarray, u: np.ndarray, work: np.ndarray, slow: float, state: np.ndarray, taken: np.ndarray) -> None:
    """Fill whether contacts are open (0), stick (1) or slip (2) and what friction took, J, (nc,) each.

    lam and u, (nc, 3), N and m/s, are their forces and velocities, normal first, ``work`` (nc, 3), J, that of the forces, or none
    (0, 3). What bears hardly any of the largest force is open; what presses slips above ``slow``, m/s.
    """
    largest = 0.0
    for m in range(lam.shape[0]):
        if lam[m, 0] > largest or lam[m, 0] != lam[m, 0]:  # with one that is no number nothing presses
            largest = lam[m, 0]
    least = 1e-9 * (1e-300 if largest < 1e-300 else largest)
    for m in range(lam.shape[0]):
        state[m] = 0
        if lam[m, 0] > least:
            state[m] = 2 if np.sqrt(u[m, 1] * u[m, 1] + u[m, 2] * u[m, 2]) > slow else 1
        if work.shape[0]:
            taken[m] = -(0.0 + work[m, 1] + work[m, 2])  # a sum of zeros has no sign of its own


@njit(cache=True, _nrt=False)
def largest_slip(state: np.ndarray, u: np.ndarray) -> float:
    """Return the largest tangential speed, m/s, of contacts that are not open, by their states and velocities of :func:`tell`."""
    largest = 0.0
    for m in range(u.shape[0]):
        if state[m] > 0:
            slip = math.sqrt(u[m, 1] * u[m, 1] + u[m, 2] * u[m, 2])
            if slip > largest or slip != slip:  # what is no number is told
                largest = slip
    return largest


@njit(cache=True)
def creep(
    indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, phi: np.ndarray, there_indptr: np.ndarray,
    there_indices: np.ndarray, there_data: np.ndarray, there_phi: np.ndarray, v: np.ndarray, lam: np.ndarray, sink: float,
    slip: float,
) -> float:  # fmt: skip
    """Return the largest speed, m/s, that contacts have on rows ``there`` beyond that on the others and a part ``slip`` of it.

    Of those that press: lam is (nc, 3), normal first. Of the others, that by which bodies sink into each other there. Speeds
    along normals count ``sink`` times.
    """
    worst = 0.0
    for m in range(lam.shape[0]):
        presses = lam[m, 0] > 0.0
        own = other = 0.0
        for c in range(3 if presses else 1):
            here, there = phi[m, c], there_phi[m, c]
            for k in range(there_indptr[3 * m + c], there_indptr[3 * m + c + 1]):
                there += there_data[k] * v[there_indices[k]]
            if not presses:
                worst = max(worst, -sink * there)
                continue
            for k in range(indptr[3 * m + c], indptr[3 * m + c + 1]):
                here += data[k] * v[indices[k]]
            own += here * here
            other += ((there - here) * (sink if c == 0 else 1.0)) ** 2
        worst = max(worst, math.sqrt(other) - slip * math.sqrt(own))
    return worst

"""Kernels of contacts of nodes and links on curved shapes, by backward Euler: see ``arrived`` of `point_contacts`."""

from __future__ import annotations

import math

import numpy as np

from contact.compiled import njit
from femsim.step.rows_kernels import normal_offset, turn_frame


@njit(cache=True, inner=True, _nrt=False)
def along_row(indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, row: int, v: np.ndarray) -> float:
    """Row of J times v (n,), m/s."""
    total = 0.0
    for e in range(indptr[row], indptr[row + 1]):
        total += data[e] * v[indices[e]]
    return total


@njit(cache=True, inner=True, _nrt=False)
def on_curve(point: int, shape: int, point_row: np.ndarray, radius: np.ndarray, curved: np.ndarray) -> bool:
    """Whether a contact is of a node or link on a shape that is curved for it: see :func:`find_curved`."""
    return point_row[point] >= 0 and radius[point] >= curved[shape]


@njit(cache=True, _nrt=False)
def find_curved(
    keep: np.ndarray,
    number: np.ndarray,
    shape: np.ndarray,
    point_row: np.ndarray,
    radius: np.ndarray,
    curved: np.ndarray,
    out: np.ndarray,
) -> bool:
    """Fill which of the contacts ``keep`` (kept,) are of nodes or links on curved shapes; return whether any is.

    ``number`` and ``shape`` (nc,) are their points and shapes, ``point_row`` (p,) the first row of v of a point, -1 for those of
    rigid parts, ``radius`` (p,) that of the point, ``curved`` (s,) the least one for which shapes are curved, m.
    """
    found = False
    for k in range(keep.shape[0]):
        out[k] = on_curve(number[keep[k]], shape[keep[k]], point_row, radius, curved)
        found = found or out[k]
    return found


@njit(cache=True, _nrt=False)
def slide(
    keep: np.ndarray,
    number: np.ndarray,
    shape: np.ndarray,
    point_row: np.ndarray,
    radius: np.ndarray,
    curved: np.ndarray,
    indptr: np.ndarray,
    indices: np.ndarray,
    data: np.ndarray,
    phi: np.ndarray,
    v: np.ndarray,
) -> float:
    """Largest tangential speed, m/s, at v (n,) of those contacts that :func:`find_curved` finds; no number where one has none."""
    largest = 0.0
    for k in range(keep.shape[0]):
        if on_curve(number[keep[k]], shape[keep[k]], point_row, radius, curved):
            one = along_row(indptr, indices, data, 3 * k + 1, v) + phi[k, 1]
            two = along_row(indptr, indices, data, 3 * k + 2, v) + phi[k, 2]
            square = one * one + two * two
            if square > largest or square != square:
                largest = square
    return math.sqrt(largest)


@njit(cache=True, _nrt=False)
def turn_to(frame: np.ndarray, place: np.ndarray, there: np.ndarray, chosen: np.ndarray) -> bool:
    """Turn those frames (nc, 3, 3) that are chosen, (nc,) bool, to the normals of number ``place`` (nc,) of those ``there``.

    Those that are not found, -1, or point to the other side there are chosen no more. Return whether any turned.
    """
    found = False
    for m in range(frame.shape[0]):
        k = place[m]
        if chosen[m]:
            chosen[m] = k >= 0 and turn_frame(frame, m, (there[k, 0, 0], there[k, 0, 1], there[k, 0, 2]))
            found = found or chosen[m]
    return found


@njit(cache=True, _nrt=False)
def lead_there(
    indptr: np.ndarray,
    indices: np.ndarray,
    data: np.ndarray,
    phi: np.ndarray,
    v: np.ndarray,
    chosen: np.ndarray,
    place: np.ndarray,
    gap_there: np.ndarray,
    gap: np.ndarray,
    dt: float,
    correction: float,
    max_correction: float,
    u: np.ndarray,
) -> None:
    """Fill the contact velocities u (nc, 3), m/s, at v (n,), normal first; those chosen come to the gaps that they have there.

    These are number ``place`` (nc,) of ``gap_there``, m; ``gap`` (nc,) is that of the start, the scalars are those of
    :class:`femsim.step.rows_kernels.Given`.
    """
    for m in range(phi.shape[0]):
        for c in range(3):
            u[m, c] = along_row(indptr, indices, data, 3 * m + c, v) + phi[m, c]
        if chosen[m]:
            straight = u[m, 0] - normal_offset(gap[m], dt, correction, max_correction)
            u[m, 0] += (gap_there[place[m]] - gap[m]) / dt - straight


@njit(cache=True, _nrt=False)
def take_levers(
    chosen: np.ndarray,
    place: np.ndarray,
    number: np.ndarray,
    shape: np.ndarray,
    point_part: np.ndarray,
    shape_part: np.ndarray,
    columns: np.ndarray,
    translation: np.ndarray,
    reference: np.ndarray,
    translation_there: np.ndarray,
    reference_there: np.ndarray,
    points_there: np.ndarray,
    position_there: np.ndarray,
    position: np.ndarray,
    points: np.ndarray,
) -> None:
    """Give contacts of the middle of a step that are chosen, (nc,) bool, the levers that they have at its end, ``there``.

    Changed are positions (nc, 3) and points (p, 3), m. Contacts are number ``place`` (nc,) of those there. Levers are about the
    parts of the shapes, and of points about links that turn (6 ``columns`` of v), else about what torques on the part of the
    point are about. ``translation`` and ``reference`` (parts, 3), m, are those of the parts.
    """
    for m in range(number.shape[0]):
        if not chosen[m]:
            continue
        point, part = number[m], shape_part[shape[m]]
        own = point_part[point]
        for c in range(3):
            moved = translation_there[part, c] - translation[part, c]
            along = moved if columns[point] == 6 else reference_there[own, c] - reference[own, c]
            position[m, c] = position_there[place[m], c] - moved
            points[point, c] = points_there[point, c] - along


@njit(cache=True, _nrt=False)
def keep_ways(indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, v: np.ndarray, phi: np.ndarray, u: np.ndarray) -> None:
    """Add to phi (nc, 3), m/s, what contacts lack of their velocities u (nc, 3) at v (n,), which u becomes."""
    for m in range(phi.shape[0]):
        for c in range(3):
            u[m, c] = u[m, c] - along_row(indptr, indices, data, 3 * m + c, v) - phi[m, c]
            phi[m, c] += u[m, c]

"""Kernels of contacts on curved shapes: see ``arrived`` and ``along_chords`` of `point_contacts`."""

from __future__ import annotations

import math

import numpy as np

from contact.compiled import njit
from contact.vector_kernels import Vector
from femsim.step.rows_kernels import between, normal_offset, turn_frame

#: Rotations (parts, 3, 3) and places (parts, 3), m, of parts.
Pose = tuple[np.ndarray, np.ndarray]

#: Most that a normal leans along the way of a step, as a part of it.
_LEANS = 0.5

#: A force acts at a point, or in line with it, up to this far aside, m; beside it acts that of the rim of a cylinder.
_ASIDE = 1e-9

#: Components of normals that differ by less are the same.
_SAME = 1e-12


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
def closing(
    indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, phi: np.ndarray, v: np.ndarray, gap: np.ndarray, dt: float,
    correction: float, max_correction: float, out: np.ndarray,
) -> None:  # fmt: skip
    """Fill ``out`` (nc,), m, with what gaps change by along the normals of contacts at v (n,); see :func:`lead_there`."""
    for m in range(phi.shape[0]):
        offset = normal_offset(gap[m], dt, correction, max_correction)
        out[m] = dt * (along_row(indptr, indices, data, 3 * m, v) + phi[m, 0] - offset)


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
def may_lean(
    number: np.ndarray,
    shape: np.ndarray,
    shape_part: np.ndarray,
    faceted: np.ndarray,
    edged: np.ndarray,
    before: np.ndarray,
    rotation_before: np.ndarray,
    frame: np.ndarray,
    rotation: np.ndarray,
    position: np.ndarray,
    points: np.ndarray,
    out: np.ndarray,
) -> bool:
    """Fill which contacts of the middle of a step, (nc,), :func:`lean_along` is for; return whether any is.

    It is for those on shapes that are ``faceted`` (s,), and on those that are ``edged`` where the normal, as the shape sees it,
    is not that of the start: frames (nc, 3, 3) ``before`` and now, rotations (parts, 3, 3). Forces at another ``position``
    (nc, 3) than in line with their points (p, 3), m, are those of a rim, whose lowest point is another one in each state.
    """
    any_may = False
    for m in range(number.shape[0]):
        s, point = shape[m], number[m]
        out[m] = faceted[s]
        if edged[s]:
            for c in range(3):
                first, now = 0.0, 0.0
                for r in range(3):
                    first += rotation_before[shape_part[s], r, c] * before[m, 0, r]
                    now += rotation[shape_part[s], r, c] * frame[m, 0, r]
                out[m] = out[m] or abs(now - first) > _SAME
        if out[m]:
            d = between(points, point, position, m)
            along = d[0] * frame[m, 0, 0] + d[1] * frame[m, 0, 1] + d[2] * frame[m, 0, 2]
            for c in range(3):
                out[m] = out[m] and abs(d[c] - along * frame[m, 0, c]) < _ASIDE
        any_may = any_may or out[m]
    return any_may


@njit(cache=True, inner=True, _nrt=False)
def seen(points: np.ndarray, point: int, pose: Pose, part: int) -> Vector:
    """Return a point (p, 3), m, in the frame of a part."""
    d = between(pose[1], part, points, point)
    return (
        d[0] * pose[0][part, 0, 0] + d[1] * pose[0][part, 1, 0] + d[2] * pose[0][part, 2, 0],
        d[0] * pose[0][part, 0, 1] + d[1] * pose[0][part, 1, 1] + d[2] * pose[0][part, 2, 1],
        d[0] * pose[0][part, 0, 2] + d[1] * pose[0][part, 1, 2] + d[2] * pose[0][part, 2, 2],
    )


@njit(cache=True, _nrt=False)
def lean_along(
    number: np.ndarray,
    part: np.ndarray,
    across: np.ndarray,
    place: np.ndarray,
    gap_there: np.ndarray,
    gap: np.ndarray,
    radius: np.ndarray,
    start: np.ndarray,
    pose: Pose,
    end: np.ndarray,
    pose_there: Pose,
    rotation: np.ndarray,
    least: float,
    frame: np.ndarray,
    position: np.ndarray,
) -> bool:
    """Lean the normals of contacts of the middle of a step along the ways of their points until n . d is what gaps change by.

    What a normal n lacks of that, it takes along d: n + ((g1 - g0 - n . d) / |d|^2) d, a discrete gradient of the gap, whose
    force does the work that opens or closes it and no other. A point moves by d as its shape sees it, which does not hang on how
    a ball turns; its force goes through it.

    Contacts (nc,) are of points ``number`` with shapes of parts ``part`` and close by ``across``, m; they are number ``place`` of
    the gaps at the end, m, -1 where not found, and ``gap`` (nc,) are those of the start. ``start`` and ``end`` are the points
    (p, 3), m, ``radius`` (p,) how far from them forces act, with the poses of the parts; ``rotation`` (parts, 3, 3) is that of
    the middle. Ways of at most ``least``, m, count as none, since rounding would lead there. Changed are ``frame`` (nc, 3, 3) and
    ``position`` (nc, 3), m. Return whether any normal leans.
    """
    any_leans = False
    for m in range(number.shape[0]):
        if place[m] < 0:
            continue
        point, k = number[m], part[m]
        first, then = seen(start, point, pose, k), seen(end, point, pose_there, k)
        own = (then[0] - first[0], then[1] - first[1], then[2] - first[2])
        way = (
            rotation[k, 0, 0] * own[0] + rotation[k, 0, 1] * own[1] + rotation[k, 0, 2] * own[2],
            rotation[k, 1, 0] * own[0] + rotation[k, 1, 1] * own[1] + rotation[k, 1, 2] * own[2],
            rotation[k, 2, 0] * own[0] + rotation[k, 2, 1] * own[1] + rotation[k, 2, 2] * own[2],
        )
        square = way[0] * way[0] + way[1] * way[1] + way[2] * way[2]
        lacks = gap_there[place[m]] - gap[m] - across[m]
        if lacks == 0.0 or not square > least * least or not lacks * lacks < _LEANS * _LEANS * square:
            continue
        share = lacks / square
        leant = (frame[m, 0, 0] + share * way[0], frame[m, 0, 1] + share * way[1], frame[m, 0, 2] + share * way[2])
        size = math.sqrt(leant[0] * leant[0] + leant[1] * leant[1] + leant[2] * leant[2])
        normal = (leant[0] / size, leant[1] / size, leant[2] / size)
        before = (frame[m, 0, 0], frame[m, 0, 1], frame[m, 0, 2])
        if not turn_frame(frame, m, normal):
            continue
        any_leans = True
        for c in range(3):
            position[m, c] -= radius[point] * (normal[c] - before[c])
    return any_leans


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

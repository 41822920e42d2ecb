"""Kernels of normals that lean along the way of a step, so that forces at edges do the work of gaps: see ``along_chords``.

By the normal of the middle of a step a contact that slides over an edge, or on a curved shape, is pushed along its way, forth or
back: its gap does not change by what the normal says. What the normal n lacks it takes along the way d,

    n + ((g1 - g0 - n . d) / |d|^2) d,

a discrete gradient of the gap g from start to end (O. Gonzalez, J. Nonlinear Sci. 6, 1996), whose force does the work that opens
or closes the gap and no other.
"""

from __future__ import annotations

import math

import numpy as np

from contact.compiled import njit
from contact.vector_kernels import Vector
from femsim.step.curved_kernels import along_row
from femsim.step.rows_kernels import between, normal_offset, turn_frame

#: Rotations (parts, 3, 3) and places (parts, 3), m, of parts.
Pose = tuple[np.ndarray, np.ndarray]

#: Way of a contact in a step, m, that counts as none: rounding would lead there.
_LEAST_WAY = 1e-7

#: Most that a normal leans, as a part of the way; what stays farther off than so much of its way is not pressed.
_LEANS = 0.5

#: A force acts in line with a point up to this far aside, m; beside it acts that of the rim of a cylinder.
_ASIDE = 1e-9

#: Components of normals that differ by less are the same.
_SAME = 1e-12


@njit(cache=True, _nrt=False)
def slips(
    indptr: np.ndarray,
    indices: np.ndarray,
    data: np.ndarray,
    phi: np.ndarray,
    v: np.ndarray,
    gap: np.ndarray,
    dt: float,
    correction: float,
    max_correction: float,
    out: np.ndarray,
) -> None:
    """Fill ``out`` (nc, 3), m, with what contacts close and slip by in a step (s) at v (n,), along their frames.

    ``gap`` (nc,), m, is that of the start, the scalars are those of :class:`femsim.step.rows_kernels.Given`.
    """
    for m in range(phi.shape[0]):
        offset = normal_offset(gap[m], dt, correction, max_correction)
        for c in range(3):
            out[m, c] = dt * (along_row(indptr, indices, data, 3 * m + c, v) + phi[m, c] - (offset if c == 0 else 0.0))


@njit(cache=True, _nrt=False)
def ways_of_slips(slip: np.ndarray, frame: np.ndarray, out: np.ndarray) -> None:
    """Fill ways (nc, 3), m, in the world, of slips (nc, 3), m, along frames (nc, 3, 3)."""
    for m in range(slip.shape[0]):
        for c in range(3):
            out[m, c] = slip[m, 0] * frame[m, 0, c] + slip[m, 1] * frame[m, 1, c] + slip[m, 2] * frame[m, 2, c]


@njit(cache=True, _nrt=False)
def ways_of_points(
    number: np.ndarray,
    part: np.ndarray,
    start: np.ndarray,
    pose: Pose,
    end: np.ndarray,
    pose_there: Pose,
    rotation: np.ndarray,
    out: np.ndarray,
) -> None:
    """Fill ways (nc, 3), m, of points ``number`` as the shapes of parts ``part`` see them, turned as at the middle of the step.

    They do not hang on how a ball turns about its centre, as those of the places where it is touched do. ``start`` and ``end``
    are the points (p, 3), m, with the poses of the parts, ``rotation`` (parts, 3, 3) is that of the middle.
    """
    for m in range(number.shape[0]):
        k = part[m]
        first, then = seen(start, number[m], pose, k), seen(end, number[m], pose_there, k)
        for c in range(3):
            out[m, c] = 0.0
            for r in range(3):
                out[m, c] += rotation[k, c, r] * (then[r] - first[r])


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
def at_edges(
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
    """Fill which contacts of points with shapes, (nc,) bool, may lean; return whether any may.

    They are those on shapes that are ``faceted`` (s,), and those on shapes that are ``edged`` whose normal, as the shape sees it,
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


@njit(cache=True, _nrt=False)
def may_press(slip: np.ndarray, way: np.ndarray, gap: np.ndarray, chosen: np.ndarray) -> bool:
    """Leave out of the contacts that are chosen, (nc,) bool, those at rest and those that stay apart; return whether any is left.

    ``gap`` (nc,), m, is that of the start; ways (nc, 3) and slips (nc, 3), m, are those of the step.
    """
    any_may = False
    for m in range(gap.shape[0]):
        if chosen[m]:
            length = math.sqrt(way[m, 0] * way[m, 0] + way[m, 1] * way[m, 1] + way[m, 2] * way[m, 2])
            chosen[m] = length > _LEAST_WAY and gap[m] + slip[m, 0] < _LEANS * length
            any_may = any_may or chosen[m]
    return any_may


@njit(cache=True, _nrt=False)
def lean_along(
    chosen: np.ndarray,
    place: np.ndarray,
    gap_there: np.ndarray,
    gap: np.ndarray,
    slip: np.ndarray,
    way: np.ndarray,
    frame: np.ndarray,
) -> bool:
    """Lean the normals of contacts that are chosen, (nc,) bool, along their ways; return whether any leans.

    Contacts are number ``place`` (nc,) of the gaps at the end of the step, m, -1 where not found, and ``gap`` (nc,) are those of
    the start; ways (nc, 3) and slips (nc, 3), m, are those of the step. Changed are the frames (nc, 3, 3).
    """
    any_leans = False
    for m in range(place.shape[0]):
        if not chosen[m] or place[m] < 0:
            continue
        lacks = gap_there[place[m]] - gap[m] - slip[m, 0]
        square = way[m, 0] * way[m, 0] + way[m, 1] * way[m, 1] + way[m, 2] * way[m, 2]
        if lacks == 0.0 or not lacks * lacks < _LEANS * _LEANS * square:
            continue
        share = lacks / square
        lean = (frame[m, 0, 0] + share * way[m, 0], frame[m, 0, 1] + share * way[m, 1], frame[m, 0, 2] + share * way[m, 2])
        size = math.sqrt(lean[0] * lean[0] + lean[1] * lean[1] + lean[2] * lean[2])
        any_leans = turn_frame(frame, m, (lean[0] / size, lean[1] / size, lean[2] / size)) or any_leans
    return any_leans

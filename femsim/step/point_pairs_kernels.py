"""Kernels of contacts between points and shapes: how they are recognised, what their pairs of parts say, what carries them."""

from __future__ import annotations

import numpy as np

from contact.compiled import njit
from femsim.step.point_rows_kernels import fastest_at
from femsim.step.rows_kernels import between

#: Products of numbers of contacts in two states up to which each is looked for among all.
_FEW = 1024

#: Least cosine of the angle between two walls of a polyline of which one takes over what slides from the other.
_SMOOTH = 0.85


@njit(cache=True, _nrt=False)
def find_again(
    key: np.ndarray,
    number: np.ndarray,
    shape: np.ndarray,
    feature: np.ndarray,
    shapes: int,
    features: int,
    place: np.ndarray,
    key_there: np.ndarray,
) -> bool:
    """Fill the :func:`key_of` contacts (m,) found in another state, and their numbers ``place`` of those of ``key``, (kept,).

    A number is -1 where there is none. Of many contacts in another order False is returned, and their places are not filled.
    """
    same = key.shape[0] == number.shape[0]
    for k in range(number.shape[0]):
        key_there[k] = key_of(number[k], shape[k], feature[k], shapes, features)
        same = same and key_there[k] == key[k]
    if not same and key.shape[0] * number.shape[0] > _FEW:
        return False
    for k in range(key.shape[0]):
        place[k] = k if same else -1
        for m in range(0 if same else number.shape[0]):
            if key_there[m] == key[k]:
                place[k] = m
                break
    return True


@njit(cache=True, _nrt=False)
def hand_over(
    keep: np.ndarray,
    number: np.ndarray,
    shape: np.ndarray,
    gap: np.ndarray,
    frame: np.ndarray,
    walls: np.ndarray,
    number_there: np.ndarray,
    shape_there: np.ndarray,
    gap_there: np.ndarray,
    frame_there: np.ndarray,
    place: np.ndarray,
    used: np.ndarray,
) -> None:
    """Let the wall that a point has come to take over from the one it has left, where both nearly point one way.

    ``number``, ``shape``, ``gap`` and ``frame`` are those of all contacts before, ``keep`` (kept,) the numbers of those with
    rows; contacts found ``there`` have the same. ``place`` (kept,), -1 where a contact was not found there, is filled for the
    nearest contact of each such point with a shape of several ``walls`` (s,) by that found there which is nearest and no
    other's; ``used`` (m,) bool is filled.
    """
    used[:] = False
    for k in range(place.shape[0]):
        if place[k] >= 0:
            used[place[k]] = True
    for k in range(place.shape[0]):
        m = keep[k]
        if place[k] >= 0 or not walls[shape[m]]:
            continue
        nearest = True
        for j in range(place.shape[0]):
            other = keep[j]
            if place[j] < 0 and number[other] == number[m] and shape[other] == shape[m]:
                nearest = nearest and (gap[m] < gap[other] or (gap[m] == gap[other] and k <= j))
        best = -1
        for i in range(number_there.shape[0] if nearest else 0):
            if used[i] or number_there[i] != number[m] or shape_there[i] != shape[m]:
                continue
            cosine = 0.0
            for c in range(3):
                cosine += frame[m, 0, c] * frame_there[i, 0, c]
            if cosine > _SMOOTH and (best < 0 or gap_there[i] < gap_there[best]):
                best = i
        if best >= 0:
            place[k] = best
            used[best] = True


@njit(cache=True, inner=True, _nrt=False)
def key_of(point: int, shape: int, feature: int, shapes: int, features: int) -> int:
    """By what a contact is recognised, with so many shapes and features."""
    return (point * shapes + shape) * features + feature


@njit(cache=True, _nrt=False)
def fill_pairs(
    number: np.ndarray,
    shape: np.ndarray,
    feature: np.ndarray,
    point_part: np.ndarray,
    shape_part: np.ndarray,
    features: int,
    friction_of: np.ndarray,
    restitution_of: np.ndarray,
    friction: np.ndarray,
    restitution: np.ndarray,
    key: np.ndarray,
) -> None:
    """Fill coefficients of friction and restitution by the pairs of parts (np, np), and the :func:`key_of` contacts, (nc,)."""
    for m in range(number.shape[0]):
        own, other = point_part[number[m]], shape_part[shape[m]]
        friction[m], restitution[m] = friction_of[own, other], restitution_of[own, other]
        key[m] = key_of(number[m], shape[m], feature[m], shape_part.shape[0], features)


@njit(cache=True, _nrt=False)
def fill_sides(
    keep: np.ndarray,
    number: np.ndarray,
    shape: np.ndarray,
    found_at: np.ndarray,
    distance: np.ndarray,
    frame: np.ndarray,
    points: np.ndarray,
    point_part: np.ndarray,
    point_row: np.ndarray,
    point_columns: np.ndarray,
    around: np.ndarray,
    shape_part: np.ndarray,
    first: np.ndarray,
    part: np.ndarray,
    point: np.ndarray,
    weight: np.ndarray,
    position: np.ndarray,
    acting: np.ndarray,
    gap: np.ndarray,
) -> None:
    """Fill the parts (kept, 2) of contacts, and what carries their forces, (kept, 2, 3): points by number in the part, shares.

    And where they are, (kept, 3), where their forces act, (kept, 2, 3), and their gaps, (kept,), m. ``first`` (parts,) is the
    first of the points of each part. What contacts do not turn, a point of three ``point_columns``, bears its force where it is,
    and its contact is shown on its surface, ``around`` (m) it; see :class:`femsim.step.contacts.StepContacts` for the others.
    """
    for k in range(keep.shape[0]):
        m = keep[k]
        i, own = number[m], point_part[number[m]]
        part[k, 0], part[k, 1] = own, shape_part[shape[m]]
        for side in range(2):
            for c in range(3):
                point[k, side, c], weight[k, side, c] = -1, 0.0
                acting[k, side, c] = found_at[m, c]
        weight[k, 0, 0] = 1.0
        if point_row[i] >= 0:
            point[k, 0, 0] = i - first[own]
        for c in range(3):
            if point_row[i] >= 0 and point_columns[i] == 3:
                acting[k, 0, c] = points[i, c]
            position[k, c] = found_at[m, c] - around[i] * frame[k, 0, c]
        gap[k] = distance[m]


@njit(cache=True, _nrt=False)
def fill_near(
    number: np.ndarray,
    shape: np.ndarray,
    gap: np.ndarray,
    point_part: np.ndarray,
    shape_part: np.ndarray,
    reach: float,
    part: np.ndarray,
    near: np.ndarray,
) -> int:
    """Fill parts (nc, 2) and gaps (nc,), m, of the contacts that are closer than ``reach``, m; return how many they are."""
    count = 0
    for m in range(gap.shape[0]):
        if gap[m] < reach:
            part[count, 0], part[count, 1] = point_part[number[m]], shape_part[shape[m]]
            near[count] = gap[m]
            count += 1
    return count


@njit(cache=True, _nrt=False)
def keep_within(
    number: np.ndarray,
    shape: np.ndarray,
    gap: np.ndarray,
    point_part: np.ndarray,
    shape_part: np.ndarray,
    within: np.ndarray,
    margin: np.ndarray,
    keep: np.ndarray,
) -> None:
    """Leave out of ``keep`` (nc,) bool contacts whose gap is beyond its margin, (2,), m: the second of links of one robot.

    ``within`` (np, np) bool are the pairs of these.
    """
    for m in range(gap.shape[0]):
        most = margin[1] if within[point_part[number[m]], shape_part[shape[m]]] else margin[0]
        keep[m] = keep[m] and gap[m] <= most


@njit(cache=True, _nrt=False)
def approach(
    v: np.ndarray,
    pairs: np.ndarray,
    row: np.ndarray,
    origin: np.ndarray,
    joint_start: np.ndarray,
    joint_row: np.ndarray,
    screw: np.ndarray,
    centre: np.ndarray,
    reach: np.ndarray,
    twist: np.ndarray,
) -> float:
    """Bound of the speed (m/s) at which gaps between links of one robot close at the velocities v (n,).

    ``pairs`` (k, 2) are the parts, both on one base, whose rows of v move both alike; the arrays of
    :class:`femsim.step.point_rows_kernels.RigidParts` follow. Shapes reach so far, ``reach`` (parts,) m, from their ``centre``
    (parts, 3). Along the normal a gap closes as one of the two moves where the other stands still, also by what of it is farthest
    from its centre: the less of both counts. ``twist`` (parts, 6) is room to work in.
    """
    for part in range(row.shape[0]):
        for c in range(6):
            total = 0.0
            for e in range(joint_start[part], joint_start[part + 1]):
                total += v[joint_row[e]] * screw[e, c]
            twist[part, c] = total
    found = 0.0
    for k in range(pairs.shape[0]):
        i, j = pairs[k, 0], pairs[k, 1]
        along = (twist[i, 0] - twist[j, 0], twist[i, 1] - twist[j, 1], twist[i, 2] - twist[j, 2])
        turn = (twist[i, 3] - twist[j, 3], twist[i, 4] - twist[j, 4], twist[i, 5] - twist[j, 5])
        one = fastest_at(along, turn, between(origin, i, centre, i), reach[i])
        found = max(found, min(one, fastest_at(along, turn, between(origin, j, centre, j), reach[j])))
    return found

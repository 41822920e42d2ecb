"""How far bodies that turn together leave the tangents of their ways: kernels of contacts between points and shapes."""

from __future__ import annotations

import math

import numpy as np

from contact.compiled import njit
from contact.vector_kernels import Vector, cross, dot, minus, plus, row, times
from femsim.step.point_rows_kernels import RigidParts


@njit(cache=True, inner=True)
def turning(v: np.ndarray, parts: RigidParts, part: int, place: Vector) -> tuple[Vector, Vector]:
    """Angular velocity of a part at v (n,), and the acceleration (m/s^2) that it gives to its point at a place (m).

    That is the angular velocity times the velocity of the point by turns and joints. Of parts that nothing turns both are 0.
    """
    turn, speed, first = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0), parts.row[part]
    if first < 0:
        return turn, turn
    lever = minus(place, row(parts.origin, part))
    turn = (v[first + 3], v[first + 4], v[first + 5])
    speed = cross(turn, lever)
    for e in range(parts.joint_start[part], parts.joint_start[part + 1]):
        rate, screw = v[parts.joint_row[e]], parts.screw
        own = times(rate, (screw[e, 3], screw[e, 4], screw[e, 5]))
        turn = plus(turn, own)
        speed = plus(speed, plus(times(rate, (screw[e, 0], screw[e, 1], screw[e, 2])), cross(own, lever)))
    return turn, cross(turn, speed)


@njit(cache=True)
def bend(
    keep: np.ndarray, number: np.ndarray, shape: np.ndarray, position: np.ndarray, point_part: np.ndarray,
    point_row: np.ndarray, shape_part: np.ndarray, v: np.ndarray, parts: RigidParts,
) -> float:  # fmt: skip
    """Largest acceleration (m/s^2) by turns of one side of a contact against the other, where both turn together at v (n,).

    Contacts are those ``keep`` (kept,) of ``number`` (point), ``shape`` and ``position`` (m). Rigid parts that turn otherwise
    count by what they have in common; what deforms counts as if it turned with the part that it has contact with.
    """
    worst = 0.0
    for i in range(keep.shape[0]):
        m = keep[i]
        place = row(position, m)
        turn, way = turning(v, parts, shape_part[shape[m]], place)
        common = 1.0
        if point_row[number[m]] < 0:
            other, others_way = turning(v, parts, point_part[number[m]], place)
            larger = max(dot(turn, turn), dot(other, other))
            common, way = max(0.0, dot(turn, other)) / larger if larger > 0.0 else 0.0, minus(way, others_way)
        worst = max(worst, common * math.sqrt(dot(way, way)))
    return worst

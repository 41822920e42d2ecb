"""Kernels of contacts between surfaces and strands: rows of the contact problem, and forces on parts and nodes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from contact.compiled import njit
from contact.vector_kernels import Vector, cross, dot, minus, norm, over, times
from femsim.step.point_rows_kernels import RigidParts
from femsim.step.rows_kernels import (
    Given,
    Rows,
    Sums,
    add_side,
    between,
    keep_contact,
    moment_entry,
    put_entry,
    triple,
    world_force,
)

#: Nodes that one side of a contact may rest on: three points with two nodes each.
SIDE_NODES = 6
#: Part of the length of a chord below which its part across a normal gives no direction.
STEEP = 0.1
#: Entries of J that one contact may have, beside those of the joints of a rigid part: three rows, two sides, six columns a node.
MOST_ENTRIES = 3 * 2 * SIDE_NODES * 6

#: Least cosine of the angle between two contacts of which one takes over what slides from the other.
_SMOOTH = 0.85


class Pairs(NamedTuple):
    """Contacts between surfaces and strands.

    Attributes
    ----------
    part : ndarray, (nc, 2)
        Parts of the two sides.
    point : ndarray, (nc, 2, 3)
        Points of each side, -1 where there are fewer than three.
    weight : ndarray, (nc, 2, 3)
        Their weights.
    position : ndarray, (nc, 2, 3), m
        Where the force acts on each side that turns.
    gap : ndarray, (nc,), m
        Signed distance.
    frame : ndarray, (nc, 3, 3)
        Rows: normal, from side 1 to side 0, and two tangents.
    """

    part: np.ndarray
    point: np.ndarray
    weight: np.ndarray
    position: np.ndarray
    gap: np.ndarray
    frame: np.ndarray


class Points(NamedTuple):
    """Points of surfaces and strands, and behind them the origins of rigid parts that move theirs.

    Attributes
    ----------
    node, weight : ndarray, (p, 2)
        Points whose nodes move each point, -1 for none, and their weights.
    row : ndarray, (p,)
        First row of v of the node of each point; of points that two nodes move it is not read.
    columns : ndarray, (n,)
        At these rows, how many move the node: 3, or 6 where it turns.
    place : ndarray, (p, 3), m
        Where it is.
    part : ndarray, (p,)
        Rigid part whose origin a point is; -1 for all others.
    beside : ndarray, (p, 2)
        The points before and behind it (an end is its own) on a strand whose links contacts do not turn; -1 for all others.
    """

    node: np.ndarray
    weight: np.ndarray
    row: np.ndarray
    columns: np.ndarray
    place: np.ndarray
    part: np.ndarray
    beside: np.ndarray


class Nodes(NamedTuple):
    """Nodes that one contact rests on, with room for all; scratch of the kernels.

    The contact velocity is the sum of pull v + lever x w + swing (n . v) over the nodes, v and w their velocity and angular
    velocity, n the normal.

    Attributes
    ----------
    row : ndarray, (2 * SIDE_NODES,)
        First row of v of each, ascending.
    pull : ndarray, (2 * SIDE_NODES,)
        Its weight, negative on side 1.
    lever : ndarray, (2 * SIDE_NODES, 3), m
        Its weight times the vector of :func:`lever_of_side`.
    swing : ndarray, (2 * SIDE_NODES, 3)
        Its part of :func:`swing_of_side`, across the normal.
    point : ndarray, (2 * SIDE_NODES,)
        Number of the point that the node is.
    """

    row: np.ndarray
    pull: np.ndarray
    lever: np.ndarray
    swing: np.ndarray
    point: np.ndarray

    @staticmethod
    def empty() -> Nodes:
        """Room for one contact."""
        most = 2 * SIDE_NODES
        number, vectors = np.empty(most, dtype=np.int64), np.empty((2, most, 3))
        return Nodes(number, np.empty(most), vectors[0], vectors[1], number.copy())


@njit(cache=True, inner=True)
def insert_node(row: int, count: int, nodes: Nodes) -> tuple[int, int]:
    """Find the place of the node with this first row among the first ``count``, a new one without weight if it is not there.

    Return its place and how many nodes there are then.
    """
    place = count
    while place > 0 and nodes.row[place - 1] > row:
        place -= 1
    if place > 0 and nodes.row[place - 1] == row:
        return place - 1, count
    for m in range(count, place, -1):
        nodes.row[m], nodes.pull[m], nodes.point[m] = nodes.row[m - 1], nodes.pull[m - 1], nodes.point[m - 1]
        for c in range(3):
            nodes.lever[m, c], nodes.swing[m, c] = nodes.lever[m - 1, c], nodes.swing[m - 1, c]
    nodes.row[place], nodes.pull[place] = row, 0.0
    for c in range(3):
        nodes.lever[place, c] = nodes.swing[place, c] = 0.0
    return place, count + 1


@njit(cache=True, inner=True)
def lever_of_side(m: int, side: int, pairs: Pairs, points: Points) -> Vector:
    """Vector to where the force of contact m acts on a side, from the point of the surface or strand that the gap is measured at.

    The links of a rod turn this alone. With levers from their centres a contact between two of them would turn both along the
    rod too, which moves no point of the strand.
    """
    x, y, z = pairs.position[m, side, 0], pairs.position[m, side, 1], pairs.position[m, side, 2]
    for i in range(3):
        p = pairs.point[m, side, i]
        for j in range(2 if p >= 0 else 0):
            k, weight = points.node[p, j], pairs.weight[m, side, i] * points.weight[p, j]
            if k >= 0:
                x, y, z = x - weight * points.place[k, 0], y - weight * points.place[k, 1], z - weight * points.place[k, 2]
    return x, y, z


@njit(cache=True, inner=True)
def chord_of_side(m: int, side: int, pairs: Pairs, points: Points) -> tuple[int, int]:
    """Two points of the strand on a side of contact m, in order; (-1, -1) of a surface, and where contacts turn the links."""
    first, second = pairs.point[m, side, 0], pairs.point[m, side, 1]
    one = first if first >= 0 else second
    if points.beside[one, 0] < 0:
        return -1, -1
    return (first, second) if first >= 0 and second >= 0 else (points.beside[one, 0], points.beside[one, 1])


@njit(cache=True, inner=True)
def along_plane(chord: tuple[int, int], points: Points, normal: Vector) -> tuple[Vector, float]:
    """Direction of a chord in the plane across a normal, and its length there (m), 0 where it runs along the normal."""
    way = minus(triple(points.place, chord[1]), triple(points.place, chord[0]))
    flat = minus(way, times(dot(way, normal), normal))
    length = norm(flat)
    if length <= STEEP * norm(way):
        return flat, 0.0
    return over(flat, length), length


@njit(cache=True, inner=True)
def swing_of_side(m: int, side: int, pairs: Pairs, points: Points) -> tuple[int, int, Vector]:
    """Two points of the strand on a side of contact m and the vector T by which their velocities count, v += T n . (v_2 - v_1).

    The centre lines of two strands whose links contacts do not turn are D apart along the normal n, and their velocities alone
    would slip by w D where both turn as one, as layers on a drum do: friction would brake them, and its two forces, D apart, turn
    them. How a chord between two points turns in the plane of n and its own direction t is seen from these, -n . (v_2 - v_1) / L
    about n x t. So friction along a strand acts on its own centre line, and that along the other one on the centre line of that;
    half-way where both are the same, with T = D/2 (t . t') t' / L. Across each other each strand has its own. The spin of strands
    about themselves stays out of it. The points are -1 where a side is none of this.
    """
    here, there = chord_of_side(m, side, pairs, points), chord_of_side(m, 1 - side, pairs, points)
    nothing = (0.0, 0.0, 0.0)
    if here[0] < 0 or there[0] < 0:
        return -1, -1, nothing
    normal = (pairs.frame[m, 0, 0], pairs.frame[m, 0, 1], pairs.frame[m, 0, 2])
    own, length = along_plane(here, points, normal)
    other, others_length = along_plane(there, points, normal)
    if length == 0.0 or others_length == 0.0:
        return -1, -1, nothing
    apart = 0.0
    for k in range(2):
        for i in range(3):
            p = pairs.point[m, k, i]
            if p >= 0:
                apart += (1.0 if k == 0 else -1.0) * pairs.weight[m, k, i] * dot(triple(points.place, p), normal)
    return here[0], here[1], times(0.5 * apart * dot(own, other) / length, other)


@njit(cache=True, inner=True)
def couple_of_side(m: int, side: int, pairs: Pairs, points: Points) -> tuple[Vector, Vector]:
    """Vectors a, m, and T of a side of contact m: beside the force F on side 0 it bears the couple a (T . F), 0 without chords.

    That is what forces T . F along the normal do at the two ends of the chord, in opposite directions.
    """
    first, second, swing = swing_of_side(m, side, pairs, points)
    if first < 0:
        return swing, swing
    normal = (pairs.frame[m, 0, 0], pairs.frame[m, 0, 1], pairs.frame[m, 0, 2])
    return cross(minus(triple(points.place, second), triple(points.place, first)), normal), swing


@njit(cache=True, inner=True)
def gather_nodes(m: int, pairs: Pairs, points: Points, nodes: Nodes) -> int:
    """Fill the nodes that contact m rests on, those on both sides once; return how many there are."""
    count = 0
    for side in range(2):
        sign = 1.0 if side == 0 else -1.0
        lever = lever_of_side(m, side, pairs, points)
        for i in range(3):
            p = pairs.point[m, side, i]
            if p < 0:
                continue
            for j in range(2):
                k = points.node[p, j]
                if k < 0:
                    continue
                weight = sign * pairs.weight[m, side, i] * points.weight[p, j]
                place, count = insert_node(points.row[k], count, nodes)
                nodes.pull[place] += weight
                nodes.point[place] = k
                for c in range(3):
                    nodes.lever[place, c] += weight * lever[c]
    for side in range(2):
        first, second, swing = swing_of_side(m, side, pairs, points)
        for end in range(2 if first >= 0 else 0):
            p, sign = (first, -1.0) if end == 0 else (second, 1.0)
            for j in range(2):
                k = points.node[p, j]
                if k < 0:
                    continue
                place, count = insert_node(points.row[k], count, nodes)
                nodes.point[place] = k
                for c in range(3):
                    nodes.swing[place, c] += sign * points.weight[p, j] * swing[c]
    return int(count)


@njit(cache=True, inner=True)
def pull_by_joint(screw: np.ndarray, e: int, pull: float, lever: Vector, axis: Vector) -> float:
    """Velocity along an axis that a joint gives where a contact acts on a rigid part, by row e of ``screw`` (m, 6)."""
    value = pull * (axis[0] * screw[e, 0] + axis[1] * screw[e, 1] + axis[2] * screw[e, 2])
    for c in range(3):
        value += screw[e, 3 + c] * moment_entry(c, lever, axis)
    return value


@njit(cache=True)
def fill_rows(pairs: Pairs, points: Points, rigid: RigidParts, given: Given, nodes: Nodes, rows: Rows) -> tuple[int, int]:
    """Fill J and phi; return (contacts kept, entries of J).

    The contact velocity is u = frame (v_0 - v_1) at the positions of the two sides; a rigid part has six columns and those of
    its joints. Prescribed rows of v, contacts that
    nothing can press and the normal part of phi are treated as in :func:`femsim.step.point_rows_kernels.fill_rows`.
    """
    prescribed, v, indptr, indices, data = given.prescribed, given.v, rows.indptr, rows.indices, rows.data
    frame, columns = pairs.frame, points.columns
    kept, entry = 0, 0
    indptr[0] = 0
    for m in range(pairs.gap.shape[0]):
        count = gather_nodes(m, pairs, points, nodes)
        first_entry = entry
        for i in range(3):
            axis = (frame[m, i, 0], frame[m, i, 1], frame[m, i, 2])
            offset = 0.0
            for k in range(count):
                row, pull, lever = nodes.row[k], nodes.pull[k], triple(nodes.lever, k)
                swing = dot(triple(nodes.swing, k), axis) if i > 0 else 0.0
                for c in range(columns[row]):
                    value = pull * axis[c] + swing * frame[m, 0, c] if c < 3 else moment_entry(c - 3, lever, axis)
                    entry, moved = put_entry(row + c, value, prescribed, v, indices, data, entry)
                    offset += moved
                part = points.part[nodes.point[k]]
                for e in range(rigid.joint_start[part] if part >= 0 else 0, rigid.joint_start[part + 1] if part >= 0 else 0):
                    value = pull_by_joint(rigid.screw, e, pull, lever, axis)
                    entry, moved = put_entry(rigid.joint_row[e], value, prescribed, v, indices, data, entry)
                    offset += moved
            indptr[3 * kept + i + 1] = entry
            rows.phi[kept, i] = offset
        kept, entry = keep_contact(m, pairs.gap[m], first_entry, kept, entry, given, rows)
    return int(kept), int(entry)


@njit(cache=True)
def add_forces(
    keep: np.ndarray,
    pairs: Pairs,
    points: Points,
    acting: np.ndarray,
    reference: np.ndarray,
    lam: np.ndarray,
    nodes: Nodes,
    sums: Sums,
    world: np.ndarray,
) -> None:
    """Add the forces lam (kept, 3) of the contacts ``keep`` to ``sums``; fill ``world`` (kept, 3), the force on side 0.

    ``reference`` (parts, 3) is what torques on parts are about, ``acting`` (kept, 2, 3) where the force acts on each side. On a
    rigid part it is in the sums of the part alone.
    """
    node_force = sums.node_force
    for k in range(keep.shape[0]):
        m = keep[k]
        force = world_force(pairs.frame, m, lam, k)
        for c in range(3):
            world[k, c] = force[c]
        for n in range(gather_nodes(m, pairs, points, nodes)):
            row, pull, lever = nodes.row[n], nodes.pull[n], triple(nodes.lever, n)
            if points.part[nodes.point[n]] >= 0:
                continue
            swing = dot(triple(nodes.swing, n), force)
            for c in range(3):
                node_force[row + c] += pull * force[c] + swing * pairs.frame[m, 0, c]
            if points.columns[row] == 6:
                for c in range(3):
                    node_force[row + 3 + c] += moment_entry(c, lever, force)
        for side in range(2):
            part, sign = pairs.part[m, side], 1.0 if side == 0 else -1.0
            add_side(part, sign, between(reference, part, acting[k], side), force, sums.wrench, sums.force_sum)
            arm, swing = couple_of_side(m, side, pairs, points)
            for c in range(3):
                sums.wrench[part, 3 + c] += dot(swing, force) * arm[c]


@njit(cache=True)
def fill_couples(keep: np.ndarray, pairs: Pairs, points: Points, out: np.ndarray) -> None:
    """Fill :func:`couple_of_side` of both sides of the contacts ``keep``, matrices to multiply forces by, (kept, 2, 3, 3)."""
    for k in range(keep.shape[0]):
        for side in range(2):
            arm, swing = couple_of_side(keep[k], side, pairs, points)
            for i in range(3):
                for j in range(3):
                    out[k, side, i, j] = arm[i] * swing[j]


@njit(cache=True, _nrt=False)
def hand_over(
    body: np.ndarray,
    point: np.ndarray,
    gap: np.ndarray,
    frame: np.ndarray,
    body_there: np.ndarray,
    point_there: np.ndarray,
    gap_there: np.ndarray,
    frame_there: np.ndarray,
    able: np.ndarray,
    place: np.ndarray,
    used: np.ndarray,
) -> None:
    """Let features take over from those beside them what slides onto them, where both nearly point one way.

    It is for those of the contacts that are ``able``, (n,) bool. Bodies (n, 2), points (n, 2, 3), gaps (n,), m, and frames
    (n, 3, 3) of contacts are those of before and of those found ``there``. ``place`` (n,), -1 where a contact was not found
    there, is filled with one there that is no other's and has points in common with it on both sides; where several have left
    for it, with the least gap first. ``used`` (m,) bool is filled.
    """
    used[:] = False
    for k in range(place.shape[0]):
        if place[k] >= 0:
            used[place[k]] = True
    for i in range(body_there.shape[0]):
        if used[i]:
            continue
        best = -1
        for k in range(place.shape[0]):
            if (
                place[k] < 0
                and able[k]
                and body[k, 0] == body_there[i, 0]
                and body[k, 1] == body_there[i, 1]
                and (best < 0 or gap[k] < gap[best])
                and meets(point, k, 0, point_there, i)
                and meets(point, k, 1, point_there, i)
            ):
                cosine = 0.0
                for c in range(3):
                    cosine += frame[k, 0, c] * frame_there[i, 0, c]
                if cosine > _SMOOTH:
                    best = k
        if best >= 0:
            place[best] = i
            used[i] = True


@njit(cache=True, inner=True, _nrt=False)
def meets(point: np.ndarray, k: int, side: int, point_there: np.ndarray, i: int) -> bool:
    """Whether side ``side`` of contact k has a point that that of contact i there has, too."""
    for a in range(3):
        for b in range(3):
            if point[k, side, a] >= 0 and point[k, side, a] == point_there[i, side, b]:
                return True
    return False

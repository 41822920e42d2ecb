"""Kernels of contacts between points and shapes: rows of the contact problem, and forces on parts and nodes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from contact.compiled import njit
from femsim.step.rows_kernels import (
    Given,
    Rows,
    Sums,
    Triple,
    add_side,
    between,
    keep_contact,
    length,
    moment_entry,
    put_entry,
    turn_frame,
    world_force,
)

#: Columns of J that one side of a contact may have, beside those of the joints of a rigid part.
MOST_COLUMNS = 6


class Pairs(NamedTuple):
    """Contacts between points and shapes.

    Attributes
    ----------
    point, shape : ndarray, (nc,)
        Numbers of the two.
    gap : ndarray, (nc,), m
        Signed distance.
    frame : ndarray, (nc, 3, 3)
        Rows: normal, from the shape to the point, and two tangents.
    position : ndarray, (nc, 3), m
        Where the force acts.
    """

    point: np.ndarray
    shape: np.ndarray
    gap: np.ndarray
    frame: np.ndarray
    position: np.ndarray


class Points(NamedTuple):
    """Points that have contact with shapes.

    Attributes
    ----------
    part : ndarray, (p,)
        Part of each.
    row : ndarray, (p,)
        First of its own rows of v; -1 for points of rigid parts.
    columns : ndarray, (p,)
        Number of these rows: 3, its velocity, or 6 with the angular velocity behind it, for the centre of a link that
        contacts turn.
    place : ndarray, (p, 3), m
        Where it is.
    """

    part: np.ndarray
    row: np.ndarray
    columns: np.ndarray
    place: np.ndarray


class RigidParts(NamedTuple):
    """How the rows of v move the parts that are rigid.

    Attributes
    ----------
    row : ndarray, (parts,)
        First of six rows, velocity and angular velocity; -1 for parts that deform and for obstacles.
    origin : ndarray, (parts, 3), m
        Point that these rows move.
    joint_start, joint_row : ndarray, (parts + 1,) and (m,)
        Rows of the joints of each part, entries ``joint_start[k]`` to ``joint_start[k + 1]``.
    screw : ndarray, (m, 6)
        Velocity at the origin of the part and angular velocity that each of these gives to it.
    """

    row: np.ndarray
    origin: np.ndarray
    joint_start: np.ndarray
    joint_row: np.ndarray
    screw: np.ndarray


class Placing(NamedTuple):
    """Where things are: points (p, 3), m, and the rotation of each part, (parts, 3, 3)."""

    points: np.ndarray
    rotation: np.ndarray


@njit(cache=True)
def spread_wrenches(rigid: RigidParts, reference: np.ndarray, sums: Sums, out: np.ndarray) -> None:
    """Add to ``out`` (n,) the wrenches on rigid parts about their ``reference`` (parts, 3), m, by the rows that move them."""
    for k in range(rigid.row.shape[0]):
        row = rigid.row[k]
        if row < 0 or sums.force_sum[k] == 0.0:
            continue
        x, y = reference[k, 0] - rigid.origin[k, 0], reference[k, 1] - rigid.origin[k, 1]
        z = reference[k, 2] - rigid.origin[k, 2]
        fx, fy, fz = sums.wrench[k, 0], sums.wrench[k, 1], sums.wrench[k, 2]
        tx = sums.wrench[k, 3] + (y * fz - z * fy)
        ty = sums.wrench[k, 4] + (z * fx - x * fz)
        tz = sums.wrench[k, 5] + (x * fy - y * fx)
        out[row] += fx
        out[row + 1] += fy
        out[row + 2] += fz
        out[row + 3] += tx
        out[row + 4] += ty
        out[row + 5] += tz
        for e in range(rigid.joint_start[k], rigid.joint_start[k + 1]):
            screw = rigid.screw[e]
            along = screw[0] * fx + screw[1] * fy + screw[2] * fz
            out[rigid.joint_row[e]] += along + (screw[3] * tx + screw[4] * ty + screw[5] * tz)


class Carried(NamedTuple):
    """Points that rigid parts carry.

    Attributes
    ----------
    point, part : ndarray, (k,)
        Their numbers among all points, and the parts.
    local : ndarray, (k, 3), m
        Where they are in the frames of their parts.
    """

    point: np.ndarray
    part: np.ndarray
    local: np.ndarray


@njit(cache=True)
def place_carried(carried: Carried, rotation: np.ndarray, translation: np.ndarray, out: np.ndarray) -> None:
    """Fill world positions (p, 3), m, of points that rigid parts carry, by the poses of these: (parts, 3, 3) and (parts, 3)."""
    for i in range(carried.point.shape[0]):
        place, part = carried.point[i], carried.part[i]
        x, y, z = carried.local[i, 0], carried.local[i, 1], carried.local[i, 2]
        for c in range(3):
            turned = rotation[part, c, 0] * x + rotation[part, c, 1] * y + rotation[part, c, 2] * z
            out[place, c] = turned + translation[part, c]


@njit(cache=True, inner=True, _nrt=False)
def along_screw(screw: np.ndarray, e: int, lever: Triple, force: Triple) -> float:
    """Power of a force at a lever from the origin of a part, where a joint moves it by row e of ``screw`` (m, 6)."""
    value = force[0] * screw[e, 0] + force[1] * screw[e, 1] + force[2] * screw[e, 2]
    if screw[e, 3] != 0.0 or screw[e, 4] != 0.0 or screw[e, 5] != 0.0:
        for c in range(3):
            value += screw[e, 3 + c] * moment_entry(c, lever, force)
    return value


@njit(cache=True, inner=True, _nrt=False)
def same_screw(screw: np.ndarray, e: int, f: int) -> bool:
    """Whether rows e and f of ``screw`` (m, 6) are the same, to the last bit."""
    for c in range(6):
        if screw[e, c] != screw[f, c]:
            return False
    return True


@njit(cache=True, inner=True, _nrt=False)
def fill_within(
    own: int,
    other: int,
    force: Triple,
    lever: Triple,
    rigid: RigidParts,
    given: Given,
    indices: np.ndarray,
    data: np.ndarray,
    entry: int,
) -> tuple[int, float]:
    """Append a row of J of a contact between two links of one robot, on the first and against the second one.

    A joint that moves both alike has no column. Return the number of entries, and the part of phi that prescribed rows make.
    """
    e, e_end = rigid.joint_start[own], rigid.joint_start[own + 1]
    f, f_end = rigid.joint_start[other], rigid.joint_start[other + 1]
    offset = 0.0
    while e < e_end or f < f_end:
        on_own = f >= f_end or (e < e_end and rigid.joint_row[e] <= rigid.joint_row[f])
        on_other = e >= e_end or (f < f_end and rigid.joint_row[f] <= rigid.joint_row[e])
        row = rigid.joint_row[e] if on_own else rigid.joint_row[f]
        if not (on_own and on_other and same_screw(rigid.screw, e, f)):
            value = 0.0
            if on_own:
                value += along_screw(rigid.screw, e, lever, force)
            if on_other:
                value -= along_screw(rigid.screw, f, lever, force)
            entry, moved = put_entry(row, value, given.prescribed, given.v, indices, data, entry)
            offset += moved
        e += on_own
        f += on_other
    return entry, offset


@njit(cache=True, inner=True, _nrt=False)
def are_free(prescribed: np.ndarray, first: int, count: int) -> bool:
    """Whether none of so many rows of v is prescribed."""
    for row in range(first, first + count):
        if prescribed[row]:
            return False
    return True


@njit(cache=True, inner=True, _nrt=False)
def fill_alone(pairs: Pairs, points: Points, m: int, first: int, rows: Rows, entry: int) -> int:
    """Append the three rows of J of contact m from row ``first`` on, of a point against what nothing moves; return the entries.

    What :func:`fill_rows` does, without its questions: most contacts of ropes and cloths are such.
    """
    frame, indices, data = pairs.frame, rows.indices, rows.data
    point = pairs.point[m]
    row, columns, lever = points.row[point], points.columns[point], between(points.place, point, pairs.position, m)
    for i in range(3):
        force = (frame[m, i, 0], frame[m, i, 1], frame[m, i, 2])
        for c in range(columns):
            indices[entry + c] = row + c
        data[entry], data[entry + 1], data[entry + 2] = force
        if columns == 6:
            data[entry + 3] = lever[1] * force[2] - lever[2] * force[1]
            data[entry + 4] = lever[2] * force[0] - lever[0] * force[2]
            data[entry + 5] = lever[0] * force[1] - lever[1] * force[0]
        entry += columns
        rows.indptr[first + i + 1] = entry
    return entry


@njit(cache=True, _nrt=False)
def fill_rows(
    pairs: Pairs, points: Points, shape_part: np.ndarray, rigid: RigidParts, given: Given, rows: Rows
) -> tuple[int, int]:
    """Fill J and phi; return (contacts kept, entries of J).

    A contact between a point of part P and a shape of part S (``shape_part``, by number of the shape) has
    u = frame (v_P - v_S) at its position. Rows of v whose velocity is prescribed give no column: their motion goes into phi.
    A contact whose normal nothing can move along is dropped: without any column, or, say, between a floor and a finger that
    slides level on a driven base. The normal part of phi is that of :func:`femsim.step.rows_kernels.normal_offset`.
    Of two links of one robot, which its base moves alike, only joints count, those of both by the difference.
    """
    prescribed, v, indptr, indices, data = given.prescribed, given.v, rows.indptr, rows.indices, rows.data
    frame, position, rigid_row = pairs.frame, pairs.position, rigid.row
    kept, entry = 0, 0
    indptr[0] = 0
    for m in range(pairs.gap.shape[0]):
        point, other = pairs.point[m], shape_part[pairs.shape[m]]
        own, node_row = points.part[point], points.row[point]
        point_first = node_row if node_row >= 0 else rigid_row[own]
        point_leads = rigid_row[other] < 0 or point_first < rigid_row[other]
        first_entry = entry
        within = node_row < 0 and point_first >= 0 and point_first == rigid_row[other]
        alone = node_row >= 0 and rigid_row[other] < 0 and are_free(prescribed, node_row, points.columns[point])
        if alone:
            entry = fill_alone(pairs, points, m, 3 * kept, rows, entry)
            rows.phi[kept, 0], rows.phi[kept, 1], rows.phi[kept, 2] = 0.0, 0.0, 0.0
        for i in range(0 if alone else 3):
            offset = 0.0
            if within:
                force = (frame[m, i, 0], frame[m, i, 1], frame[m, i, 2])
                lever = between(rigid.origin, own, position, m)
                entry, offset = fill_within(own, other, force, lever, rigid, given, indices, data, entry)
                indptr[3 * kept + i + 1] = entry
                rows.phi[kept, i] = offset
                continue
            for order in range(2):
                is_point = (order == 0) == point_leads
                part, sign = (own, 1.0) if is_point else (other, -1.0)
                by_node = is_point and node_row >= 0
                if by_node:
                    row, columns, lever = node_row, points.columns[point], between(points.place, point, position, m)
                else:
                    row, columns, lever = rigid_row[part], 6, between(rigid.origin, part, position, m)
                if row < 0:
                    continue
                force = (sign * frame[m, i, 0], sign * frame[m, i, 1], sign * frame[m, i, 2])
                for c in range(columns):
                    value = force[c] if c < 3 else moment_entry(c - 3, lever, force)
                    entry, moved = put_entry(row + c, value, prescribed, v, indices, data, entry)
                    offset += moved
                if by_node:
                    continue
                for e in range(rigid.joint_start[part], rigid.joint_start[part + 1]):
                    value = along_screw(rigid.screw, e, lever, force)
                    entry, moved = put_entry(rigid.joint_row[e], value, prescribed, v, indices, data, entry)
                    offset += moved
            indptr[3 * kept + i + 1] = entry
            rows.phi[kept, i] = offset
        kept, entry = keep_contact(m, pairs.gap[m], first_entry, kept, entry, given, rows)
    return int(kept), int(entry)


@njit(cache=True, _nrt=False)
def follow(
    keep: np.ndarray,
    pairs: Pairs,
    before: Placing,
    there: Placing,
    shape_part: np.ndarray,
    now: Pairs,
    place: np.ndarray,
    frame: np.ndarray,
    position: np.ndarray,
) -> None:
    """Fill frames (kept, 3, 3) and positions (kept, 3), m, of the contacts ``keep`` where the bodies are in another state.

    A frame turns with the part of its shape and a position moves with its point. Where the contact is found there, as number
    ``place`` (kept,) of ``now`` (-1: not found), its normal and position are those of there, and the tangents turn with it on
    the shortest way, unless it points to the other side.
    """
    for k in range(keep.shape[0]):
        m, found = keep[k], place[k]
        point, part = pairs.point[m], shape_part[pairs.shape[m]]
        for r in range(3):
            local = (
                times_column(pairs.frame, m, r, before.rotation, part, 0),
                times_column(pairs.frame, m, r, before.rotation, part, 1),
                times_column(pairs.frame, m, r, before.rotation, part, 2),
            )
            for c in range(3):
                turn = there.rotation
                frame[k, r, c] = local[0] * turn[part, c, 0] + local[1] * turn[part, c, 1] + local[2] * turn[part, c, 2]
        for c in range(3):
            position[k, c] = there.points[point, c] + pairs.position[m, c] - before.points[point, c]
        if found >= 0 and turn_frame(frame, k, (now.frame[found, 0, 0], now.frame[found, 0, 1], now.frame[found, 0, 2])):
            for c in range(3):
                position[k, c] = now.position[found, c]


@njit(cache=True, inner=True, _nrt=False)
def times_column(frame: np.ndarray, m: int, r: int, rotation: np.ndarray, part: int, c: int) -> float:
    """Row r of frame m times column c of the rotation of a part."""
    return frame[m, r, 0] * rotation[part, 0, c] + frame[m, r, 1] * rotation[part, 1, c] + frame[m, r, 2] * rotation[part, 2, c]


@njit(cache=True, _nrt=False)
def fastest(v: np.ndarray, nodes: np.ndarray, rigid: RigidParts, centre: np.ndarray, reach: np.ndarray) -> float:
    """Bound of the speed (m/s) of every point of every part at the velocities v (n,).

    ``nodes``, (k, 3): first row of v, last + 1 and rows from one point to the next of each part that deforms. The shapes of
    a rigid part reach so far, ``reach`` (parts,) m, from its ``centre`` (parts, 3).
    """
    square = 0.0
    for k in range(nodes.shape[0]):
        for i in range(nodes[k, 0], nodes[k, 1], nodes[k, 2]):
            square = max(square, v[i] * v[i] + v[i + 1] * v[i + 1] + v[i + 2] * v[i + 2])
    found = np.sqrt(square)
    for part in range(rigid.row.shape[0]):
        row = rigid.row[part]
        if row < 0:
            continue
        lever = length(between(rigid.origin, part, centre, part)) + reach[part]
        speed = length((v[row], v[row + 1], v[row + 2])) + lever * length((v[row + 3], v[row + 4], v[row + 5]))
        joints = 0.0
        for e in range(rigid.joint_start[part], rigid.joint_start[part + 1]):
            screw = rigid.screw
            along = length((screw[e, 0], screw[e, 1], screw[e, 2])) + lever * length((screw[e, 3], screw[e, 4], screw[e, 5]))
            joints += abs(v[rigid.joint_row[e]]) * along
        found = max(found, speed + joints)
    return found


@njit(cache=True, _nrt=False)
def add_forces(
    keep: np.ndarray,
    pairs: Pairs,
    points: Points,
    shape_part: np.ndarray,
    reference: np.ndarray,
    lam: np.ndarray,
    sums: Sums,
    world: np.ndarray,
) -> None:
    """Add the forces lam (kept, 3) of the contacts ``keep`` to ``sums``; fill ``world`` (kept, 3), the force on the point's part.

    ``reference`` (parts, 3) is what torques on parts are about.
    """
    node_force = sums.node_force
    for k in range(keep.shape[0]):
        m = keep[k]
        point = pairs.point[m]
        own, other = points.part[point], shape_part[pairs.shape[m]]
        force = world_force(pairs.frame, m, lam, k)
        row = points.row[point]
        for c in range(3):
            world[k, c] = force[c]
            if row >= 0:
                node_force[row + c] += force[c]
        if row >= 0 and points.columns[point] == 6:
            lever = between(points.place, point, pairs.position, m)
            for c in range(3):
                node_force[row + 3 + c] += moment_entry(c, lever, force)
        add_side(own, 1.0, between(reference, own, pairs.position, m), force, sums.wrench, sums.force_sum)
        add_side(other, -1.0, between(reference, other, pairs.position, m), force, sums.wrench, sums.force_sum)

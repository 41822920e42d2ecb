"""Kernels of contacts between points and shapes: rows of the contact problem, and forces on parts and nodes.

Those that Python calls take the arrays of the tuples below one by one (``kernel(*pairs, *points)``): numba takes three times as
long to unpack a named tuple as to take its arrays.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from contact.compiled import njit
from contact.vector_kernels import Vector, cross, norm, plus
from femsim.step.rows_kernels import (
    Given,
    Rows,
    add_side,
    between,
    keep_contact,
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


@njit(cache=True)
def spread_wrenches(
    row: np.ndarray,
    origin: np.ndarray,
    joint_start: np.ndarray,
    joint_row: np.ndarray,
    screw: np.ndarray,
    reference: np.ndarray,
    wrench: np.ndarray,
    force_sum: np.ndarray,
    out: np.ndarray,
) -> None:
    """Add to ``out`` (n,) the wrenches on rigid parts about their ``reference`` (parts, 3), m, by the rows that move them.

    The first arguments are those of :class:`RigidParts`; ``wrench`` and ``force_sum`` are those of
    :class:`femsim.step.rows_kernels.Sums`.
    """
    for k in range(row.shape[0]):
        first = row[k]
        if first < 0 or force_sum[k] == 0.0:
            continue
        x, y = reference[k, 0] - origin[k, 0], reference[k, 1] - origin[k, 1]
        z = reference[k, 2] - origin[k, 2]
        fx, fy, fz = wrench[k, 0], wrench[k, 1], wrench[k, 2]
        tx = wrench[k, 3] + (y * fz - z * fy)
        ty = wrench[k, 4] + (z * fx - x * fz)
        tz = wrench[k, 5] + (x * fy - y * fx)
        out[first] += fx
        out[first + 1] += fy
        out[first + 2] += fz
        out[first + 3] += tx
        out[first + 4] += ty
        out[first + 5] += tz
        for e in range(joint_start[k], joint_start[k + 1]):
            along = screw[e, 0] * fx + screw[e, 1] * fy + screw[e, 2] * fz
            out[joint_row[e]] += along + (screw[e, 3] * tx + screw[e, 4] * ty + screw[e, 5] * tz)


@njit(cache=True)
def settle(
    row: np.ndarray,
    joint_start: np.ndarray,
    joint_row: np.ndarray,
    origin: np.ndarray,
    screw: np.ndarray,
    reference: np.ndarray,
    origin_there: np.ndarray,
    screw_there: np.ndarray,
    reference_there: np.ndarray,
    wrench: np.ndarray,
    force_sum: np.ndarray,
    node_force: np.ndarray,
    room: np.ndarray,
    spin: np.ndarray,
    out: np.ndarray,
) -> None:
    """Fill generalized forces (n,) of one sum, or of three: the first, less the second, and the third where parts are ``there``.

    The sums are those of :class:`femsim.step.rows_kernels.Sums` with one more dimension; the first ones become those of all.
    ``spin`` (np, 3) N m becomes the torques about where parts are as each force acts. ``room`` (n,) is to work in.
    """
    for i in range(wrench.shape[0]):
        room[:] = node_force[i]
        if i < 2:
            spread_wrenches(row, origin, joint_start, joint_row, screw, reference, wrench[i], force_sum[i], room)
        else:
            spread_wrenches(
                row, origin_there, joint_start, joint_row, screw_there, reference_there, wrench[i], force_sum[i], room
            )
        sign = -1.0 if i == 1 else 1.0
        for j in range(room.shape[0]):
            out[j] = room[j] if i == 0 else out[j] + sign * room[j]
            if i > 0:
                node_force[0, j] += sign * node_force[i, j]
        for k in range(wrench.shape[1]):
            for c in range(3):
                spin[k, c] = wrench[0, k, 3 + c] if i == 0 else spin[k, c] + sign * wrench[i, k, 3 + c]
            if i == 0:
                continue
            for c in range(6):
                wrench[0, k, c] += sign * wrench[i, k, c]
            if i == 2:  # torques about where parts were at the start
                x, y = reference_there[k, 0] - reference[k, 0], reference_there[k, 1] - reference[k, 1]
                z = reference_there[k, 2] - reference[k, 2]
                fx, fy, fz = wrench[2, k, 0], wrench[2, k, 1], wrench[2, k, 2]
                wrench[0, k, 3] += y * fz - z * fy
                wrench[0, k, 4] += z * fx - x * fz
                wrench[0, k, 5] += x * fy - y * fx


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
def place_carried(
    point: np.ndarray, part: np.ndarray, local: np.ndarray, rotation: np.ndarray, translation: np.ndarray, out: np.ndarray
) -> None:
    """Fill world positions (p, 3), m, of points that rigid parts carry, by the poses of these: (parts, 3, 3) and (parts, 3).

    The first three arguments are those of :class:`Carried`.
    """
    for i in range(point.shape[0]):
        place, own = point[i], part[i]
        x, y, z = local[i, 0], local[i, 1], local[i, 2]
        for c in range(3):
            turned = rotation[own, c, 0] * x + rotation[own, c, 1] * y + rotation[own, c, 2] * z
            out[place, c] = turned + translation[own, c]


@njit(cache=True, inner=True, _nrt=False)
def along_screw(screw: np.ndarray, e: int, lever: Vector, force: Vector) -> float:
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
    force: Vector,
    lever: Vector,
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
    number: np.ndarray,
    shape: np.ndarray,
    gap: np.ndarray,
    frame: np.ndarray,
    position: np.ndarray,
    point_part: np.ndarray,
    point_row: np.ndarray,
    columns_of: np.ndarray,
    place: np.ndarray,
    shape_part: np.ndarray,
    rigid_row: np.ndarray,
    origin: np.ndarray,
    joint_start: np.ndarray,
    joint_row: np.ndarray,
    screw: np.ndarray,
    prescribed: np.ndarray,
    v: np.ndarray,
    dt: float,
    correction: float,
    max_correction: float,
    keep: np.ndarray,
    indptr: np.ndarray,
    indices: np.ndarray,
    data: np.ndarray,
    phi: np.ndarray,
) -> tuple[int, int]:
    """Fill J and phi; return (contacts kept, entries of J).

    The arguments are those of :class:`Pairs`, :class:`Points`, the parts of the shapes, :class:`RigidParts`, and Given and Rows
    of :mod:`femsim.step.rows_kernels`.

    A contact between a point of part P and a shape of part S (``shape_part``, by number of the shape) has
    u = frame (v_P - v_S) at its position. Rows of v whose velocity is prescribed give no column: their motion goes into phi.
    A contact whose normal nothing can move along is dropped: without any column, or, say, between a floor and a finger that
    slides level on a driven base. The normal part of phi is that of :func:`femsim.step.rows_kernels.normal_offset`.
    Of two links of one robot, which its base moves alike, only joints count, those of both by the difference.
    """
    pairs, points = Pairs(number, shape, gap, frame, position), Points(point_part, point_row, columns_of, place)
    rigid = RigidParts(rigid_row, origin, joint_start, joint_row, screw)
    given, rows = Given(prescribed, v, dt, correction, max_correction), Rows(keep, indptr, indices, data, phi)
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
    number: np.ndarray,
    shape: np.ndarray,
    frames: np.ndarray,
    positions: np.ndarray,
    before: np.ndarray,
    rotation: np.ndarray,
    translation: np.ndarray,
    there: np.ndarray,
    turn: np.ndarray,
    shift: np.ndarray,
    shape_part: np.ndarray,
    is_turned: np.ndarray,
    axes: np.ndarray,
    centre: np.ndarray,
    frames_there: np.ndarray,
    positions_there: np.ndarray,
    place: np.ndarray,
    frame: np.ndarray,
    position: np.ndarray,
) -> None:
    """Fill frames (kept, 3, 3) and positions (kept, 3), m, of the contacts ``keep`` where the bodies are in another state.

    ``number``, ``shape``, ``frames`` and ``positions`` are those of all contacts before, as in :class:`Pairs`, the latter two
    also of those found ``there``; points (p, 3), m, and poses of parts, (parts, 3, 3) and (parts, 3), m, are ``before``,
    ``rotation`` and ``translation``, and ``there``, ``turn`` and ``shift``.

    A frame turns with the part of its shape and a position moves with its point. Where the contact is found there, as number
    ``place`` (kept,) of ``now`` (-1: not found), its normal and position are those of there, and the tangents turn with it on
    the shortest way, unless it points to the other side.

    On shapes that ``is_turned`` (s,) about an axis features are rings and helices: there a frame that is not found again follows
    its point round the axis. Poses of shapes in their parts are ``axes`` (s, 3, 3) and ``centre`` (s, 3), m. Fixed to a part that
    turns fast it would lean against the way of the point, and hold what slides.
    """
    for k in range(keep.shape[0]):
        m, found = keep[k], place[k]
        point, part = number[m], shape_part[shape[m]]
        for r in range(3):
            local = (
                times_column(frames, m, r, rotation, part, 0),
                times_column(frames, m, r, rotation, part, 1),
                times_column(frames, m, r, rotation, part, 2),
            )
            for c in range(3):
                frame[k, r, c] = local[0] * turn[part, c, 0] + local[1] * turn[part, c, 1] + local[2] * turn[part, c, 2]
        for c in range(3):
            position[k, c] = there[point, c] + positions[m, c] - before[point, c]
        if found >= 0 and turn_frame(frame, k, (frames_there[found, 0, 0], frames_there[found, 0, 1], frames_there[found, 0, 2])):
            for c in range(3):
                position[k, c] = positions_there[found, c]
        elif is_turned[shape[m]]:
            s = shape[m]
            first = seen_by(before, point, rotation, translation, part, axes, centre, s)
            then = seen_by(there, point, turn, shift, part, axes, centre, s)
            turn_about(frame, k, turn, part, axes, s, first, then)


@njit(cache=True, inner=True, _nrt=False)
def seen_by(
    points: np.ndarray, p: int, rotation: np.ndarray, translation: np.ndarray, part: int, axes: np.ndarray, centre: np.ndarray,
    s: int,
) -> tuple[float, float]:  # fmt: skip
    """Point p in the frame of shape s of a part, across its third axis, m; arguments as in :func:`follow`."""
    d = between(translation, part, points, p)
    x, y = 0.0, 0.0
    for c in range(3):
        local = d[0] * rotation[part, 0, c] + d[1] * rotation[part, 1, c] + d[2] * rotation[part, 2, c] - centre[s, c]
        x += axes[s, c, 0] * local
        y += axes[s, c, 1] * local
    return x, y


@njit(cache=True, inner=True, _nrt=False)
def turn_about(
    frame: np.ndarray, k: int, turn: np.ndarray, part: int, axes: np.ndarray, s: int, first: tuple[float, float],
    then: tuple[float, float],
) -> None:  # fmt: skip
    """Turn frame k about the axis of shape s of a part, as its point went round that from one place to another, see seen_by."""
    size = np.sqrt((first[0] ** 2 + first[1] ** 2) * (then[0] ** 2 + then[1] ** 2))
    if size == 0.0:
        return
    cosine = (first[0] * then[0] + first[1] * then[1]) / size
    sine = (first[0] * then[1] - first[1] * then[0]) / size
    local = (axes[s, 0, 2], axes[s, 1, 2], axes[s, 2, 2])
    ax = turn[part, 0, 0] * local[0] + turn[part, 0, 1] * local[1] + turn[part, 0, 2] * local[2]
    ay = turn[part, 1, 0] * local[0] + turn[part, 1, 1] * local[1] + turn[part, 1, 2] * local[2]
    az = turn[part, 2, 0] * local[0] + turn[part, 2, 1] * local[1] + turn[part, 2, 2] * local[2]
    axis = (ax, ay, az)
    for r in range(3):
        x = (frame[k, r, 0], frame[k, r, 1], frame[k, r, 2])
        along = (1.0 - cosine) * (x[0] * ax + x[1] * ay + x[2] * az)
        for c in range(3):
            frame[k, r, c] = cosine * x[c] + sine * moment_entry(c, axis, x) + along * axis[c]


@njit(cache=True, inner=True, _nrt=False)
def times_column(frame: np.ndarray, m: int, r: int, rotation: np.ndarray, part: int, c: int) -> float:
    """Row r of frame m times column c of the rotation of a part."""
    return frame[m, r, 0] * rotation[part, 0, c] + frame[m, r, 1] * rotation[part, 1, c] + frame[m, r, 2] * rotation[part, 2, c]


@njit(cache=True, _nrt=False)
def fastest(
    v: np.ndarray,
    nodes: np.ndarray,
    first: np.ndarray,
    origin: np.ndarray,
    joint_start: np.ndarray,
    joint_row: np.ndarray,
    screw: np.ndarray,
    centre: np.ndarray,
    reach: np.ndarray,
) -> float:
    """Bound of the speed (m/s) of every point of every part at the velocities v (n,).

    ``nodes``, (k, 3): first row of v, last + 1 and rows from one point to the next of each part that deforms. The shapes of
    a rigid part reach so far, ``reach`` (parts,) m, from its ``centre`` (parts, 3). What is between are the arrays of
    :class:`RigidParts`.
    """
    square = 0.0
    for k in range(nodes.shape[0]):
        for i in range(nodes[k, 0], nodes[k, 1], nodes[k, 2]):
            square = max(square, v[i] * v[i] + v[i + 1] * v[i + 1] + v[i + 2] * v[i + 2])
    found = np.sqrt(square)
    for part in range(first.shape[0]):
        row = first[part]
        if row < 0:
            continue
        lever = between(origin, part, centre, part)
        speed = fastest_at((v[row], v[row + 1], v[row + 2]), (v[row + 3], v[row + 4], v[row + 5]), lever, reach[part])
        joints = 0.0
        for e in range(joint_start[part], joint_start[part + 1]):
            along, turn = (screw[e, 0], screw[e, 1], screw[e, 2]), (screw[e, 3], screw[e, 4], screw[e, 5])
            joints += abs(v[joint_row[e]]) * fastest_at(along, turn, lever, reach[part])
        found = max(found, speed + joints)
    return found


@njit(cache=True, inner=True, _nrt=False)
def fastest_at(along: Vector, turn: Vector, lever: Vector, reach: float) -> float:
    """Bound of the speed (m/s) of points so far from the end of a lever (m), of what moves and turns so at its start."""
    return norm(plus(along, cross(turn, lever))) + reach * norm(turn)


@njit(cache=True, _nrt=False)
def add_forces(
    keep: np.ndarray,
    number: np.ndarray,
    shape: np.ndarray,
    frame: np.ndarray,
    position: np.ndarray,
    point_part: np.ndarray,
    point_row: np.ndarray,
    columns_of: np.ndarray,
    place: np.ndarray,
    shape_part: np.ndarray,
    reference: np.ndarray,
    lam: np.ndarray,
    wrench: np.ndarray,
    force_sum: np.ndarray,
    node_force: np.ndarray,
    world: np.ndarray,
) -> None:
    """Add the forces lam (kept, 3) of the contacts ``keep`` to sums; fill ``world`` (kept, 3), the force on the point's part.

    ``number``, ``shape``, ``frame`` and ``position`` are those of :class:`Pairs`, what follows those of :class:`Points` and the
    parts of the shapes; ``reference`` (parts, 3) is what torques on parts are about. The sums are those of
    :class:`femsim.step.rows_kernels.Sums`. On a point with three rows the force acts where that is, whatever its radius.
    """
    for k in range(keep.shape[0]):
        m = keep[k]
        point = number[m]
        own, other = point_part[point], shape_part[shape[m]]
        force = world_force(frame, m, lam, k)
        row = point_row[point]
        for c in range(3):
            world[k, c] = force[c]
            if row >= 0:
                node_force[row + c] += force[c]
        if row >= 0 and columns_of[point] == 6:
            lever = between(place, point, position, m)
            for c in range(3):
                node_force[row + 3 + c] += moment_entry(c, lever, force)
        by_place = row >= 0 and columns_of[point] == 3
        arm = between(reference, own, place, point) if by_place else between(reference, own, position, m)
        add_side(own, 1.0, arm, force, wrench, force_sum)
        add_side(other, -1.0, between(reference, other, position, m), force, wrench, force_sum)

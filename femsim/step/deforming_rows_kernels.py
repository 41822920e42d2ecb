"""Kernels between contacts of deforming bodies and the contact problem: Jacobian rows, offsets, forces on nodes and bodies."""

from __future__ import annotations

import numpy as np
from numba import njit

from femsim.step.point_rows_kernels import can_press, normal_offset

#: Nodes that one side of a contact may rest on: three points with two nodes each.
SIDE_NODES = 6
#: Entries of J that one contact may have: three rows, two sides, six columns a node.
MOST_ENTRIES = 3 * 2 * SIDE_NODES * 6


@njit(cache=True)
def gather_nodes(
    point: np.ndarray,
    weight: np.ndarray,
    position: np.ndarray,
    node: np.ndarray,
    node_weight: np.ndarray,
    row: np.ndarray,
    points: np.ndarray,
    rows: np.ndarray,
    pull: np.ndarray,
    lever: np.ndarray,
) -> int:
    """Fill the nodes that one contact rests on, ascending by their first row of v; answer how many there are.

    The contact velocity is the sum of pull v + lever x w over the nodes, v and w their velocity and angular velocity: pull is the
    weight, negative on side 1, and lever the weighted way from the node to where the force acts. Nodes on both sides come once.
    """
    count = 0
    for side in range(2):
        sign = 1.0 if side == 0 else -1.0
        for i in range(3):
            p = point[side, i]
            if p < 0:
                continue
            for j in range(2):
                k = node[p, j]
                if k < 0:
                    continue
                w = sign * weight[side, i] * node_weight[p, j]
                place = count
                while place > 0 and rows[place - 1] > row[k]:
                    place -= 1
                if place == 0 or rows[place - 1] != row[k]:
                    for m in range(count, place, -1):
                        rows[m], pull[m] = rows[m - 1], pull[m - 1]
                        for c in range(3):
                            lever[m, c] = lever[m - 1, c]
                    rows[place], pull[place] = row[k], 0.0
                    for c in range(3):
                        lever[place, c] = 0.0
                    count += 1
                else:
                    place -= 1
                pull[place] += w
                for c in range(3):
                    lever[place, c] += w * (position[side, c] - points[k, c])
    return count


@njit(cache=True)
def fill_touch_rows(
    point: np.ndarray,
    weight: np.ndarray,
    position: np.ndarray,
    gap: np.ndarray,
    frame: np.ndarray,
    node: np.ndarray,
    node_weight: np.ndarray,
    row: np.ndarray,
    columns: np.ndarray,
    points: np.ndarray,
    prescribed: np.ndarray,
    v_prescribed: np.ndarray,
    dt: float,
    correction: float,
    max_correction: float,
    rows: np.ndarray,
    pull: np.ndarray,
    lever: np.ndarray,
    keep: np.ndarray,
    indptr: np.ndarray,
    indices: np.ndarray,
    data: np.ndarray,
    phi: np.ndarray,
) -> tuple[int, int]:
    """Fill J (CSR, three rows a contact, columns in order) and phi; return (contacts kept, entries).

    A point moves with up to two nodes, u = frame (v_0 - v_1) at the points of the two sides. ``columns`` is 6 for bodies whose
    nodes turn (``row`` of each point; of all its nodes the first one says), else 3. Prescribed rows of v, contacts that
    nothing can press and the normal part of phi are treated as in :func:`femsim.step.point_rows_kernels.fill_rows`.
    """
    kept, entry = 0, 0
    indptr[0] = 0
    for m in range(gap.shape[0]):
        count = gather_nodes(point[m], weight[m], position[m], node, node_weight, row, points, rows, pull, lever)
        first_entry = entry
        for i in range(3):
            f0, f1, f2 = frame[m, i, 0], frame[m, i, 1], frame[m, i, 2]
            offset = 0.0
            for k in range(count):
                l0, l1, l2 = lever[k, 0], lever[k, 1], lever[k, 2]
                for c in range(columns[rows[k]]):
                    if c == 0:
                        value = pull[k] * f0
                    elif c == 1:
                        value = pull[k] * f1
                    elif c == 2:
                        value = pull[k] * f2
                    elif c == 3:
                        value = l1 * f2 - l2 * f1
                    elif c == 4:
                        value = l2 * f0 - l0 * f2
                    else:
                        value = l0 * f1 - l1 * f0
                    if prescribed[rows[k] + c]:
                        offset += value * v_prescribed[rows[k] + c]
                    else:
                        indices[entry] = rows[k] + c
                        data[entry] = value
                        entry += 1
            indptr[3 * kept + i + 1] = entry
            phi[kept, i] = offset
        if not can_press(data, first_entry, indptr[3 * kept + 1], entry):
            entry = first_entry
            continue
        phi[kept, 0] += normal_offset(gap[m], dt, correction, max_correction)
        keep[kept] = m
        kept += 1
    return kept, entry


@njit(cache=True)
def add_touch_wrenches(
    keep: np.ndarray,
    point: np.ndarray,
    weight: np.ndarray,
    position: np.ndarray,
    frame: np.ndarray,
    part: np.ndarray,
    node: np.ndarray,
    node_weight: np.ndarray,
    row: np.ndarray,
    columns: np.ndarray,
    points: np.ndarray,
    body_reference: np.ndarray,
    lam: np.ndarray,
    rows: np.ndarray,
    pull: np.ndarray,
    lever: np.ndarray,
    wrench: np.ndarray,
    force_sum: np.ndarray,
    node_force: np.ndarray,
    world: np.ndarray,
) -> None:
    """Add the forces of the contacts to those on bodies and nodes, and fill ``world`` (contacts, 3), the force on side 0.

    ``wrench``, ``force_sum`` and ``node_force`` are those of ``point_rows_kernels.sum_wrenches``. On each side the force
    acts at its own ``position``.
    """
    for k in range(keep.shape[0]):
        m = keep[k]
        magnitude = 0.0
        for c in range(3):
            world[k, c] = frame[m, 0, c] * lam[k, 0] + frame[m, 1, c] * lam[k, 1] + frame[m, 2, c] * lam[k, 2]
            magnitude += world[k, c] ** 2
        magnitude = np.sqrt(magnitude)
        f0, f1, f2 = world[k, 0], world[k, 1], world[k, 2]
        count = gather_nodes(point[m], weight[m], position[m], node, node_weight, row, points, rows, pull, lever)
        for n in range(count):
            for c in range(3):
                node_force[rows[n] + c] += pull[n] * world[k, c]
            if columns[rows[n]] == 6:
                node_force[rows[n] + 3] += lever[n, 1] * f2 - lever[n, 2] * f1
                node_force[rows[n] + 4] += lever[n, 2] * f0 - lever[n, 0] * f2
                node_force[rows[n] + 5] += lever[n, 0] * f1 - lever[n, 1] * f0
        for side in range(2):
            body = part[m, side]
            sign = 1.0 if side == 0 else -1.0
            r0 = position[m, side, 0] - body_reference[body, 0]
            r1 = position[m, side, 1] - body_reference[body, 1]
            r2 = position[m, side, 2] - body_reference[body, 2]
            for c in range(3):
                wrench[body, c] += sign * world[k, c]
            wrench[body, 3] += sign * (r1 * f2 - r2 * f1)
            wrench[body, 4] += sign * (r2 * f0 - r0 * f2)
            wrench[body, 5] += sign * (r0 * f1 - r1 * f0)
            force_sum[body] += magnitude

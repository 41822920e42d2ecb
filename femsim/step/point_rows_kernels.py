"""Kernels between detected contacts and the contact problem: Jacobian rows, offsets, forces on bodies."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True)
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


@njit(cache=True)
def normal_offset(gap: float, dt: float, correction: float, max_correction: float) -> float:
    """Return the normal part of phi: gap/dt, for a penetration only correction * gap/dt and at most max_correction m/s."""
    return gap / dt if gap >= 0.0 else max(correction * gap / dt, -max_correction)


@njit(cache=True)
def fill_rows(
    point: np.ndarray,
    shape: np.ndarray,
    gap: np.ndarray,
    frame: np.ndarray,
    position: np.ndarray,
    point_body: np.ndarray,
    point_row: np.ndarray,
    point_columns: np.ndarray,
    points: np.ndarray,
    shape_body: np.ndarray,
    body_row: np.ndarray,
    body_origin: np.ndarray,
    body_joint_row: np.ndarray,
    body_axis: np.ndarray,
    prescribed: np.ndarray,
    v_prescribed: np.ndarray,
    dt: float,
    correction: float,
    max_correction: float,
    keep: np.ndarray,
    indptr: np.ndarray,
    indices: np.ndarray,
    data: np.ndarray,
    phi: np.ndarray,
) -> tuple[int, int]:
    """Fill J (CSR, three rows a contact, columns in order) and phi; return (contacts kept, entries).

    A contact between a point of body P and a shape of body S has u = frame (v_P - v_S) at its position. A point with rows of its
    own (``point_row`` >= 0) has 3 columns, the velocity of ``points``, or 6 with the angular velocity behind it: then it is the
    centre of a link, which the contact turns. Rows of v whose velocity is prescribed give no column: their motion goes into phi.
    A contact whose normal nothing can move along is dropped: without any column, or, say, between a floor and a finger that
    slides level on a driven base. The normal part of phi is gap/dt for an open gap (speculative contact) and correction * gap/dt,
    at most max_correction m/s, for a penetration.
    """
    kept = 0
    entry = 0
    indptr[0] = 0
    for m in range(point.shape[0]):
        p_body = point_body[point[m]]
        s_body = shape_body[shape[m]]
        p_first = point_row[point[m]] if point_row[point[m]] >= 0 else body_row[p_body]
        p_leads = body_row[s_body] < 0 or p_first < body_row[s_body]
        first_entry = entry
        for i in range(3):
            offset = 0.0
            for order in range(2):
                is_point = (order == 0) == p_leads
                sign = 1.0 if is_point else -1.0
                body = p_body if is_point else s_body
                node_row = point_row[point[m]] if is_point else -1
                row = node_row if node_row >= 0 else body_row[body]
                if row >= 0:
                    if node_row >= 0:
                        columns = point_columns[point[m]]
                        origin = points[point[m]]
                    else:
                        columns = 7
                        origin = body_origin[body]
                    r0 = position[m, 0] - origin[0]
                    r1 = position[m, 1] - origin[1]
                    r2 = position[m, 2] - origin[2]
                    f0 = sign * frame[m, i, 0]
                    f1 = sign * frame[m, i, 1]
                    f2 = sign * frame[m, i, 2]
                    for c in range(columns):
                        column = row + c
                        if c == 0:
                            value = f0
                        elif c == 1:
                            value = f1
                        elif c == 2:
                            value = f2
                        elif c == 3:
                            value = r1 * f2 - r2 * f1
                        elif c == 4:
                            value = r2 * f0 - r0 * f2
                        elif c == 5:
                            value = r0 * f1 - r1 * f0
                        else:
                            column = body_joint_row[body]
                            if column < 0:
                                continue
                            value = f0 * body_axis[body, 0] + f1 * body_axis[body, 1] + f2 * body_axis[body, 2]
                        if prescribed[column]:
                            offset += value * v_prescribed[column]
                        else:
                            indices[entry] = column
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
def sum_wrenches(
    keep: np.ndarray,
    point: np.ndarray,
    shape: np.ndarray,
    frame: np.ndarray,
    position: np.ndarray,
    point_body: np.ndarray,
    point_row: np.ndarray,
    point_columns: np.ndarray,
    points: np.ndarray,
    shape_body: np.ndarray,
    body_reference: np.ndarray,
    lam: np.ndarray,
    wrench: np.ndarray,
    force_sum: np.ndarray,
    node_force: np.ndarray,
    world: np.ndarray,
) -> None:
    """Fill the forces of the contacts on bodies, nodes and points.

    ``wrench`` (bodies, 6): force N and torque N m about ``body_reference``; ``force_sum`` (bodies,): sum of force magnitudes;
    ``node_force`` (n,): force on rows of points, and torque on those of links that contacts turn; ``world`` (contacts, 3): world
    force on the point's body.
    """
    wrench[:] = 0.0
    force_sum[:] = 0.0
    node_force[:] = 0.0
    for k in range(keep.shape[0]):
        m = keep[k]
        magnitude = 0.0
        for c in range(3):
            world[k, c] = frame[m, 0, c] * lam[k, 0] + frame[m, 1, c] * lam[k, 1] + frame[m, 2, c] * lam[k, 2]
            magnitude += world[k, c] ** 2
        magnitude = np.sqrt(magnitude)
        row = point_row[point[m]]
        if row >= 0:
            for c in range(3):
                node_force[row + c] += world[k, c]
            if point_columns[point[m]] == 6:
                r0 = position[m, 0] - points[point[m], 0]
                r1 = position[m, 1] - points[point[m], 1]
                r2 = position[m, 2] - points[point[m], 2]
                node_force[row + 3] += r1 * world[k, 2] - r2 * world[k, 1]
                node_force[row + 4] += r2 * world[k, 0] - r0 * world[k, 2]
                node_force[row + 5] += r0 * world[k, 1] - r1 * world[k, 0]
        for side in range(2):
            body = point_body[point[m]] if side == 0 else shape_body[shape[m]]
            sign = 1.0 if side == 0 else -1.0
            r0 = position[m, 0] - body_reference[body, 0]
            r1 = position[m, 1] - body_reference[body, 1]
            r2 = position[m, 2] - body_reference[body, 2]
            for c in range(3):
                wrench[body, c] += sign * world[k, c]
            wrench[body, 3] += sign * (r1 * world[k, 2] - r2 * world[k, 1])
            wrench[body, 4] += sign * (r2 * world[k, 0] - r0 * world[k, 2])
            wrench[body, 5] += sign * (r0 * world[k, 1] - r1 * world[k, 0])
            force_sum[body] += magnitude

"""Compiled loops of the nodalization; see ``contact.nodalize``."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from contact.compiled import njit

#: Stands for no further column.
_NONE = 2**62


class JacobianRows(NamedTuple):
    """J in compressed rows: ``indptr`` (3nc + 1,), ``indices`` (nnz,) sorted in each row, ``data`` (nnz,)."""

    indptr: np.ndarray
    indices: np.ndarray
    data: np.ndarray


class GroupRows(NamedTuple):
    """Group of each row of v, ``of_row`` (n,); and of each group its first row and whether it consists of nodes or links."""

    of_row: np.ndarray
    start: np.ndarray
    is_nodes: np.ndarray


class ColumnMatrix(NamedTuple):
    """A in compressed columns: ``indptr`` (n + 1,), ``indices`` (nnz,), ``data`` (nnz,)."""

    indptr: np.ndarray
    indices: np.ndarray
    data: np.ndarray


class Parts(NamedTuple):
    """Nodes and virtual nodes of the contacts, rows of v; see the attributes of ``contact.nodalize.NodalContactProblem``."""

    node: np.ndarray
    block: np.ndarray
    contact_of: np.ndarray
    group_of: np.ndarray
    ptr: np.ndarray
    dof: np.ndarray
    jac: np.ndarray


@njit(cache=True, _nrt=False)
def point_velocities(virtual_start: int, ptr: np.ndarray, dof: np.ndarray, jac: np.ndarray, x: np.ndarray) -> None:
    """Update the virtual rows of x to the velocities of the points of their bodies, J_v v."""
    for q in range(ptr.shape[0] - 1):
        row = virtual_start + 3 * q
        for c in range(3):
            x[row + c] = 0.0
        for e in range(ptr[q], ptr[q + 1]):
            for c in range(3):
                x[row + c] += jac[e, c] * x[dof[e]]


@njit(cache=True, _nrt=False)
def slips(virtual_start: int, ptr: np.ndarray, dof: np.ndarray, jac: np.ndarray, x: np.ndarray, out: np.ndarray) -> None:
    """Fill the velocity of each virtual node relative to the point of its body, v_v - J_v v, (nv, 3), m/s."""
    for q in range(out.shape[0]):
        for c in range(3):
            moved = 0.0
            for e in range(ptr[q], ptr[q + 1]):
                moved += jac[e, c] * x[dof[e]]
            out[q, c] = x[virtual_start + 3 * q + c] - moved


@njit(cache=True, _nrt=False)
def gather_body_blocks(A: ColumnMatrix, groups: GroupRows, stop: np.ndarray, blocks: np.ndarray) -> None:
    """Fill the diagonal block of A of each generalized group, padded by the identity; that of the others is the identity.

    ``stop`` (groups,) is the last row + 1 of each group, ``blocks`` (groups, size, size).
    """
    for g in range(blocks.shape[0]):
        inner = 0 if groups.is_nodes[g] else stop[g] - groups.start[g]
        for i in range(blocks.shape[1]):
            for j in range(blocks.shape[2]):
                blocks[g, i, j] = 1.0 if i == j and i >= inner else 0.0
        for j in range(inner):
            column = groups.start[g] + j
            for k in range(A.indptr[column], A.indptr[column + 1]):
                i = A.indices[k] - groups.start[g]
                if 0 <= i < inner:  # the others couple it to other groups
                    blocks[g, i, j] = A.data[k]


@njit(cache=True, inner=True, _nrt=False)
def next_column(J: JacobianRows, m: int, heads: np.ndarray) -> int:
    """Smallest column of contact m from the entries ``heads`` (3,) of its rows on."""
    column = _NONE
    for i in range(3):
        if heads[i] < J.indptr[3 * m + i + 1]:
            column = min(column, int(J.indices[heads[i]]))
    return column


@njit(cache=True, inner=True, _nrt=False)
def gather_part(
    J: JacobianRows, m: int, heads: np.ndarray, of_row: np.ndarray, column: int, begin: int, dof: np.ndarray, jac: np.ndarray
) -> tuple[int, int]:
    """Gather the part of contact m that starts in ``column``, by columns, from entry ``begin`` on; moves ``heads`` on.

    A part lies in one group. Returns where it ends and the column that follows it.
    """
    group = of_row[column]
    stop = begin
    while column != _NONE and of_row[column] == group:
        dof[stop] = column
        for i in range(3):
            jac[stop, i] = 0.0
            if heads[i] < J.indptr[3 * m + i + 1] and J.indices[heads[i]] == column:
                jac[stop, i] = J.data[heads[i]]
                heads[i] += 1
        stop += 1
        column = next_column(J, m, heads)
    return stop, column


@njit(cache=True, inner=True, _nrt=False)
def is_zero(jac: np.ndarray, begin: int, stop: int) -> bool:
    """Whether a part holds zeros only."""
    for e in range(begin, stop):
        for i in range(3):
            if jac[e, i] != 0.0:
                return False
    return True


@njit(cache=True, inner=True, _nrt=False)
def fill_block(block: np.ndarray, m: int, side: int, start: int, begin: int, stop: int, dof: np.ndarray, jac: np.ndarray) -> bool:
    """Fill the block of contact m on the node at row ``start``; return whether it is orthogonal (eq. 13)."""
    for i in range(3):
        for j in range(3):
            block[m, side, i, j] = 0.0
    for e in range(begin, stop):
        for i in range(3):
            block[m, side, i, dof[e] - start] = jac[e, i]
    orthogonal = True
    for i in range(3):
        for j in range(i, 3):
            dot = 0.0
            for k in range(3):
                dot += block[m, side, i, k] * block[m, side, j, k]
            if abs(dot - (1.0 if i == j else 0.0)) > 1e-9:
                orthogonal = False
    return orthogonal


@njit(cache=True, _nrt=False)
def split_jacobian(J: JacobianRows, groups: GroupRows, virtual_start: int, parts: Parts, heads: np.ndarray) -> int:
    """Fill nodes, blocks and virtual nodes from the rows of J; return their number, or -(m + 1) when contact m has three bodies.

    A body's part of a contact is nodal when it lies on the three rows of one node and is orthogonal (eq. 13); any other
    part becomes a virtual node (eq. 14). ``heads`` (3,) int64 is scratch.
    """
    node, block, ptr, dof, jac = parts.node, parts.block, parts.ptr, parts.dof, parts.jac
    nv = 0
    ptr[0] = 0
    for m in range(node.shape[0]):
        for i in range(3):
            heads[i] = J.indptr[3 * m + i]
        sides = 0
        node[m, 0] = -1
        node[m, 1] = -1
        column = next_column(J, m, heads)
        while column != _NONE:
            begin = ptr[nv]
            stop, column = gather_part(J, m, heads, groups.of_row, column, begin, dof, jac)
            if is_zero(jac, begin, stop):
                continue
            if sides == 2:
                return -(m + 1)
            group = groups.of_row[dof[begin]]
            base = groups.start[group]
            start = base + 3 * ((dof[begin] - base) // 3)
            one_node = groups.is_nodes[group] and dof[stop - 1] < start + 3
            if one_node and fill_block(block, m, sides, start, begin, stop, dof, jac):
                node[m, sides] = start
            else:
                node[m, sides] = virtual_start + 3 * nv
                for i in range(3):
                    for j in range(3):
                        block[m, sides, i, j] = 1.0 if i == j else 0.0
                parts.contact_of[nv] = m
                parts.group_of[nv] = group
                nv += 1
                ptr[nv] = stop
            sides += 1
    return nv


@njit(cache=True, _nrt=False)
def to_rows_of_x(node: np.ndarray, rows: np.ndarray, virtual_start: int) -> None:
    """Turn nodes, (nc, 2), that are not virtual from rows of v to those of x, ``rows``."""
    for m in range(node.shape[0]):
        for side in range(2):
            if 0 <= node[m, side] < virtual_start:
                node[m, side] = rows[node[m, side]]


@njit(cache=True, _nrt=False)
def point_compliances(
    group_of: np.ndarray,
    ptr: np.ndarray,
    dof: np.ndarray,
    jac: np.ndarray,
    group_start: np.ndarray,
    group_is_nodes: np.ndarray,
    diagonal: np.ndarray,
    inverse: np.ndarray,
    compliance: np.ndarray,
) -> None:
    """Fill the mean diagonal of J_v A^-1 J_v^T of each virtual node (m/(N s)).

    A of a generalized group counts with its full inverse block ``inverse[g]``, A of a group of nodes by its diagonal.
    """
    for q in range(compliance.shape[0]):
        g = group_of[q]
        total = 0.0
        for e in range(ptr[q], ptr[q + 1]):
            if group_is_nodes[g]:
                square = jac[e, 0] * jac[e, 0] + jac[e, 1] * jac[e, 1] + jac[e, 2] * jac[e, 2]
                total += square / diagonal[dof[e]]
                continue
            for f in range(ptr[q], ptr[q + 1]):
                dot = jac[e, 0] * jac[f, 0] + jac[e, 1] * jac[f, 1] + jac[e, 2] * jac[f, 2]
                total += dot * inverse[g, dof[e] - group_start[g], dof[f] - group_start[g]]
        compliance[q] = total / 3.0


@njit(cache=True, _nrt=False)
def sharing(
    group_of: np.ndarray, group_is_nodes: np.ndarray, ptr: np.ndarray, dof: np.ndarray, count: np.ndarray, shared: np.ndarray
) -> None:
    """Fill how many virtual nodes push what each one pushes, itself included, as ``shared`` (nv,); ``count`` (n,) is scratch.

    That is its whole body for a body of generalized coordinates, else the node that the most of them hang on.
    """
    for i in range(count.shape[0]):
        count[i] = 0.0
    for q in range(shared.shape[0]):
        for e in range(ptr[q], ptr[q + 1]):
            count[dof[e]] += 1.0
    for q in range(shared.shape[0]):
        shared[q] = 0.0
        if group_is_nodes[group_of[q]]:
            for e in range(ptr[q], ptr[q + 1]):
                shared[q] = max(shared[q], count[dof[e]])
        else:
            for r in range(shared.shape[0]):
                shared[q] += group_of[r] == group_of[q]


@njit(cache=True, inner=True, _nrt=False)
def node_compliance(node: np.ndarray, virtual_start: int, m: int, own: int, diagonal: np.ndarray) -> float:
    """One over the mean diagonal of A of the node that contact m has beside its virtual node at row ``own``; 0 without one."""
    other = node[m, 1] if node[m, 0] == own else node[m, 0]
    if 0 <= other < virtual_start:
        return 3.0 / (diagonal[other] + diagonal[other + 1] + diagonal[other + 2])
    return 0.0


@njit(cache=True, _nrt=False)
def accurate_gains(
    parts: Parts, virtual_start: int, diagonal: np.ndarray, compliance: np.ndarray, factor: float, gain: np.ndarray
) -> None:
    """Fill kv where it decides the accuracy (no multipliers): factor times the stiffness of the node on the other side.

    That is the mean diagonal of A there, the choice measured for this use; where there is no such node, the stiffness of the
    body at the point.
    """
    for q in range(gain.shape[0]):
        beside = node_compliance(parts.node, virtual_start, parts.contact_of[q], virtual_start + 3 * q, diagonal)
        gain[q] = factor / (beside if beside > 0.0 else compliance[q])


@njit(cache=True, _nrt=False)
def conditioning_gains(
    parts: Parts,
    virtual_start: int,
    diagonal: np.ndarray,
    compliance: np.ndarray,
    sharers: np.ndarray,
    factor: float,
    gain: np.ndarray,
) -> None:
    """Fill kv where it decides the conditioning alone (with multipliers): factor over the compliance of the contact.

    That is the compliance of the node on the other side plus that of the body's point, times the number of virtual nodes that
    push the same (``sharers``, see :func:`sharing`).
    """
    for q in range(gain.shape[0]):
        beside = node_compliance(parts.node, virtual_start, parts.contact_of[q], virtual_start + 3 * q, diagonal)
        gain[q] = factor / (beside + sharers[q] * compliance[q])

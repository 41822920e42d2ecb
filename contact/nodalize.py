"""Contact nodalization (papers/001 section III-A): every contact acts on nodes, predefined or virtual."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numba import njit

from contact.errors import ContactError
from contact.problem import ContactProblem, Group, make_problem

#: Largest group of kind "generalized", whose block of A is inverted densely.
MAX_DENSE = 5000
#: Automatic gain of a virtual node as a multiple of the stiffness tr(A_ii)/3 of the node it touches.
AUTO_GAIN_FACTOR = 10.0


@dataclass(frozen=True)
class NodalContactProblem:
    """A contact problem whose contacts act on nodes only.

    The unknown is ``x = [v, each group padded to a multiple of three; virtual node velocities]``, so that every node is
    one block row of three. A virtual node carries the velocity of
    its contact point *in the contact frame*, sign of the body's side included, so that its block of the Jacobian is the
    identity and its coupling to the body (J_v of eq. 14) is the body's part of J itself.

    Departures from the paper: (a) the damping force of eq. (14) has a multiplier m, ``f_v = m - kv (J_v v - v_v)`` (the
    augmented-Lagrangian form of papers/000 eq. 11); with m equal to the contact force the virtual node moves exactly
    with its body, with m = 0 this is eq. (15); (b) kv may differ from node to node.

    Attributes
    ----------
    problem : ContactProblem
        The original problem.
    node : ndarray, (nc, 2), int64
        First row of x of the nodes that contact m touches; -1 where there is none.
    block : ndarray, (nc, 2, 3, 3)
        Block of the Jacobian on each node; orthogonal (eq. 13).
    rows : ndarray, (n,), int64
        Row of x of each row of v.
    virtual_start : int
        First row of x that belongs to virtual nodes.
    contact_of : ndarray, (nv,), int64
        Contact that each virtual node belongs to.
    group_of : ndarray, (nv,), int64
        Group (body) that each virtual node belongs to.
    ptr, dof, jac : ndarray, (nv + 1,), (nnz,), (nnz, 3)
        J_v of each virtual node by columns: rows ``dof[ptr[q]:ptr[q+1]]`` of x with their three coefficients.
    gain : ndarray, (nv,), N s/m
        kv of each virtual node.
    multiplier : ndarray, (nv, 3), N
        m of each virtual node, contact frame.
    """

    problem: ContactProblem
    node: np.ndarray
    block: np.ndarray
    rows: np.ndarray
    virtual_start: int
    contact_of: np.ndarray
    group_of: np.ndarray
    ptr: np.ndarray
    dof: np.ndarray
    jac: np.ndarray
    gain: np.ndarray
    multiplier: np.ndarray

    @property
    def n_virtual(self) -> int:
        """Number of virtual nodes."""
        return int(self.gain.shape[0])

    @property
    def size(self) -> int:
        """Length of x."""
        return self.virtual_start + 3 * self.n_virtual

    def extend(self, v: np.ndarray) -> np.ndarray:
        """Unknown x for a velocity v: virtual nodes move with their bodies (papers/001 section V-A5)."""
        x = np.zeros(self.size)
        x[self.rows] = v
        point_velocities(self.virtual_start, self.ptr, self.dof, self.jac, x)
        return x

    def virtual_slip(self, x: np.ndarray) -> float:
        """Largest speed of a virtual node relative to its body, m/s: the constraint error lam/kv of Prop. 2."""
        if self.n_virtual == 0:
            return 0.0
        moved = self.extend(x[self.rows])[self.virtual_start :]
        return float(np.linalg.norm((x[self.virtual_start :] - moved).reshape(-1, 3), axis=1).max())

    def assembled(self) -> ContactProblem:
        """Assemble eq. (15) as an ordinary problem of nodes only: for rivals, tests and files; not used in the step."""
        n, nv = self.problem.n, self.n_virtual
        back = np.zeros(self.size, dtype=np.int64)  # row of x -> row of [v, virtual nodes]
        back[self.rows] = np.arange(n)
        back[self.virtual_start :] = n + np.arange(3 * nv)
        rows = np.repeat(np.arange(nv), np.diff(self.ptr))
        Jv = sp.csr_matrix(
            (
                self.jac.ravel(),
                (np.repeat(3 * rows, 3) + np.tile([0, 1, 2], len(rows)), np.repeat(back[self.dof], 3)),
            ),
            shape=(3 * nv, n),
        )
        K = sp.diags(np.repeat(self.gain, 3))
        A = sp.bmat([[self.problem.A + Jv.T @ K @ Jv, -(Jv.T @ K)], [-(K @ Jv), K]], format="csc")
        m = self.multiplier.ravel()
        b = np.concatenate([self.problem.b + Jv.T @ m, -m])
        nc = self.problem.n_contacts
        entries: list[tuple[int, int, float]] = []
        for c in range(nc):
            for side in range(2):
                start = int(self.node[c, side])
                if start < 0:
                    continue
                column = int(back[start])
                entries += [(3 * c + i, column + j, float(self.block[c, side, i, j])) for i in range(3) for j in range(3)]
        i, j, x = (np.array(e) for e in zip(*entries, strict=True)) if entries else (np.zeros(0, int),) * 3
        J = sp.csr_matrix((x, (i, j)), shape=(3 * nc, n + 3 * nv))
        groups = (*self.problem.groups, *((Group("virtual nodes", n, n + 3 * nv, "nodes"),) if nv else ()))
        return make_problem(A, b, J, self.problem.phi, self.problem.friction, dt=self.problem.dt, groups=groups)


@njit(cache=True)
def point_velocities(virtual_start: int, ptr: np.ndarray, dof: np.ndarray, jac: np.ndarray, x: np.ndarray) -> None:
    """Update the virtual rows of x to the velocities of the points of their bodies, J_v v."""
    for q in range(ptr.shape[0] - 1):
        row = virtual_start + 3 * q
        for c in range(3):
            x[row + c] = 0.0
        for e in range(ptr[q], ptr[q + 1]):
            for c in range(3):
                x[row + c] += jac[e, c] * x[dof[e]]


@njit(cache=True)
def split_jacobian(
    indptr: np.ndarray,
    indices: np.ndarray,
    data: np.ndarray,
    group_of_row: np.ndarray,
    group_start: np.ndarray,
    group_is_nodes: np.ndarray,
    virtual_start: int,
    node: np.ndarray,
    block: np.ndarray,
    contact_of: np.ndarray,
    group_of: np.ndarray,
    ptr: np.ndarray,
    dof: np.ndarray,
    jac: np.ndarray,
) -> int:
    """Fill nodes, blocks and virtual nodes from the rows of J; return their number, or -(m + 1) when contact m has three bodies.

    A body's part of a contact is nodal when it lies on the three rows of one node and is orthogonal (eq. 13); any other
    part becomes a virtual node (eq. 14).
    """
    nc = node.shape[0]
    nv = 0
    ptr[0] = 0
    for m in range(nc):
        heads = (indptr[3 * m], indptr[3 * m + 1], indptr[3 * m + 2])
        h0, h1, h2 = heads
        e0, e1, e2 = indptr[3 * m + 1], indptr[3 * m + 2], indptr[3 * m + 3]
        sides = 0
        node[m, 0] = -1
        node[m, 1] = -1
        big = 2**62
        while h0 < e0 or h1 < e1 or h2 < e2:
            c0 = indices[h0] if h0 < e0 else big
            c1 = indices[h1] if h1 < e1 else big
            c2 = indices[h2] if h2 < e2 else big
            first = min(c0, c1, c2)
            group = group_of_row[first]
            # columns of this group, in order, as a provisional virtual node
            begin = ptr[nv]
            count = 0
            while h0 < e0 or h1 < e1 or h2 < e2:
                c0 = indices[h0] if h0 < e0 else big
                c1 = indices[h1] if h1 < e1 else big
                c2 = indices[h2] if h2 < e2 else big
                c = min(c0, c1, c2)
                if group_of_row[c] != group:
                    break
                dof[begin + count] = c
                jac[begin + count, 0] = 0.0
                jac[begin + count, 1] = 0.0
                jac[begin + count, 2] = 0.0
                if c0 == c:
                    jac[begin + count, 0] = data[h0]
                    h0 += 1
                if c1 == c:
                    jac[begin + count, 1] = data[h1]
                    h1 += 1
                if c2 == c:
                    jac[begin + count, 2] = data[h2]
                    h2 += 1
                count += 1
            biggest = 0.0
            for e in range(begin, begin + count):
                for i in range(3):
                    biggest = max(biggest, abs(jac[e, i]))
            if biggest == 0.0:
                continue
            if sides == 2:
                return -(m + 1)
            nodal = group_is_nodes[group]
            if nodal:
                base = group_start[group]
                start = base + 3 * ((dof[begin] - base) // 3)
                nodal = dof[begin + count - 1] < start + 3
            if nodal:
                for i in range(3):
                    for j in range(3):
                        block[m, sides, i, j] = 0.0
                for e in range(begin, begin + count):
                    for i in range(3):
                        block[m, sides, i, dof[e] - start] = jac[e, i]
                for i in range(3):
                    for j in range(3):
                        dot = 0.0
                        for k in range(3):
                            dot += block[m, sides, i, k] * block[m, sides, j, k]
                        if abs(dot - (1.0 if i == j else 0.0)) > 1e-9:
                            nodal = False
            if nodal:
                node[m, sides] = start
            else:
                node[m, sides] = virtual_start + 3 * nv
                for i in range(3):
                    for j in range(3):
                        block[m, sides, i, j] = 1.0 if i == j else 0.0
                contact_of[nv] = m
                group_of[nv] = group
                nv += 1
                ptr[nv] = begin + count
            sides += 1
    return nv


@njit(cache=True)
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


@njit(cache=True)
def sharing(
    group_of: np.ndarray, group_is_nodes: np.ndarray, ptr: np.ndarray, dof: np.ndarray, count: np.ndarray, shared: np.ndarray
) -> None:
    """Fill how many virtual nodes push what each one pushes, itself included, as ``shared`` (nv,); ``count`` (n,) is scratch.

    That is its whole body for a body of generalized coordinates, else the node that the most of them hang on.
    """
    count[:] = 0.0
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


@njit(cache=True)
def automatic_gains(
    node: np.ndarray,
    virtual_start: int,
    contact_of: np.ndarray,
    sharers: np.ndarray,
    diagonal: np.ndarray,
    compliance: np.ndarray,
    shared: bool,
    factor: float,
    gain: np.ndarray,
) -> None:
    """Fill kv.

    Not shared: factor times the mean diagonal of A of the node on the other side, the choice measured for a kv that decides the
    accuracy. Shared: factor over the compliance of the contact, that of the node plus that of the body's point times the
    number of virtual nodes that push the same (``sharers``, see :func:`sharing`); the choice for a kv that only decides the
    conditioning (multipliers on).
    Where there is no node on the other side, the body's own compliance alone.
    """
    for q in range(gain.shape[0]):
        m = contact_of[q]
        own = virtual_start + 3 * q
        other = node[m, 1] if node[m, 0] == own else node[m, 0]
        touching = 0.0
        if 0 <= other < virtual_start:
            touching = 3.0 / (diagonal[other] + diagonal[other + 1] + diagonal[other + 2])
        if shared:
            gain[q] = factor / (touching + sharers[q] * compliance[q])
        else:
            gain[q] = factor / (touching if touching > 0.0 else compliance[q])


def body_blocks(problem: ContactProblem) -> np.ndarray:
    """Diagonal blocks of A of all generalized groups, (groups, size, size), padded by the identity; nodes keep the identity."""
    size = max((g.stop - g.start for g in problem.groups if g.kind == "generalized"), default=0)
    if size > MAX_DENSE:
        raise ContactError(
            f"a group of kind 'generalized' has {size} rows; allowed are {MAX_DENSE}, because its block of A is inverted "
            "densely. Split it into bodies, or use kind 'nodes' or another solver."
        )
    blocks = np.tile(np.eye(size), (len(problem.groups), 1, 1))
    A = problem.A
    for k, group in enumerate(problem.groups):
        if group.kind == "generalized":
            span = slice(A.indptr[group.start], A.indptr[group.stop])
            columns = np.repeat(np.arange(group.stop - group.start), np.diff(A.indptr[group.start : group.stop + 1]))
            inner = group.stop - group.start
            rows, values = A.indices[span] - group.start, A.data[span]
            own = (rows >= 0) & (rows < inner)  # the others couple it to other groups
            blocks[k, :inner, :inner] = 0.0
            blocks[k, rows[own], columns[own]] = values[own]
    return blocks


def nodalize(
    problem: ContactProblem,
    *,
    gain: float | None = None,
    gain_factor: float = AUTO_GAIN_FACTOR,
    multiplier: np.ndarray | None = None,
) -> NodalContactProblem:
    """Give every contact its nodes (papers/001 eqs. 13-15).

    Parameters
    ----------
    problem : ContactProblem
        Original problem.
    gain : float, N s/m, optional
        kv of all virtual nodes. Default: automatic, see ``gain_factor``.
    gain_factor : float
        Factor of the automatic kv, see :func:`automatic_gains`.
    multiplier : ndarray, (nc, 3), N, optional
        Multiplier of the virtual nodes of each contact in its frame; default zero, which is eq. (15) of the paper.

    Raises
    ------
    ContactError
        A contact that touches three bodies, or a gain that is not positive.
    """
    for name, value in (("gain", gain), ("gain_factor", gain_factor)):
        if value is not None and not (np.isfinite(value) and value > 0):
            raise ContactError(f"{name} of the virtual nodes is {value}; allowed are positive numbers.")
    nc, J = problem.n_contacts, problem.J
    starts = np.array([g.start for g in problem.groups], dtype=np.int64)
    sizes = np.array([g.stop - g.start for g in problem.groups], dtype=np.int64)
    is_nodes = np.array([g.kind != "generalized" for g in problem.groups], dtype=np.bool_)
    group_of_row = np.repeat(np.arange(len(starts)), sizes)
    padded = 3 * ((sizes + 2) // 3)
    x_starts = np.cumsum(padded) - padded
    rows = np.arange(problem.n) + np.repeat(x_starts - starts, sizes)
    virtual_start = int(padded.sum())
    node, block = np.empty((nc, 2), dtype=np.int64), np.zeros((nc, 2, 3, 3))
    contact_of, group_of = np.empty(2 * nc, dtype=np.int64), np.empty(2 * nc, dtype=np.int64)
    ptr = np.empty(2 * nc + 1, dtype=np.int64)
    dof, jac = np.empty(J.nnz, dtype=np.int64), np.empty((J.nnz, 3))
    nv = split_jacobian(
        J.indptr, J.indices, J.data, group_of_row, starts, is_nodes, virtual_start,
        node, block, contact_of, group_of, ptr, dof, jac,
    )  # fmt: skip
    if nv < 0:
        raise ContactError(f"contact {-nv - 1} acts on three bodies or nodes of J; allowed are at most two.")
    gains = np.full(nv, np.nan if gain is None else gain)
    if gain is None and nv:
        diagonal, compliance = problem.diagonal, np.empty(nv)
        inverse = np.linalg.inv(body_blocks(problem))
        point_compliances(group_of, ptr, dof, jac, starts, is_nodes, diagonal, inverse, compliance)
        sharers = np.empty(nv)
        sharing(group_of, is_nodes, ptr, dof, np.empty(problem.n), sharers)
        automatic_gains(
            node,
            virtual_start,
            contact_of,
            sharers,
            diagonal,
            compliance,
            multiplier is not None,
            gain_factor,
            gains,
        )
    contact_of, nnz = contact_of[:nv], int(ptr[nv])
    own_node = (node >= 0) & (node < virtual_start)
    node[own_node] = rows[node[own_node]]
    dof = rows[dof[:nnz]]
    m = np.zeros((nv, 3)) if multiplier is None else np.ascontiguousarray(multiplier.reshape(-1, 3)[contact_of])
    return NodalContactProblem(
        problem,
        node,
        block,
        rows,
        virtual_start,
        contact_of,
        group_of[:nv],
        ptr[: nv + 1],
        dof,
        jac[:nnz],
        gains,
        m,
    )

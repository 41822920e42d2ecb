"""Contact nodalization (papers/001 section III-A): every contact acts on nodes, predefined or virtual."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import scipy.sparse as sp

from contact import nodalize_kernels as kernels
from contact.errors import ContactError, NotApplicableError
from contact.problem import ContactProblem, Group, group_rows, make_problem

#: Largest group of kind "generalized", whose block of A is inverted densely.
MAX_DENSE = 5000
#: Automatic gain of a virtual node as a multiple of the stiffness tr(A_ii)/3 of the node that it acts on.
AUTO_GAIN_FACTOR = 10.0


@dataclass(frozen=True)
class Layout:
    """Where the rows of v stand in x before the virtual nodes: each group is padded to a multiple of three.

    The arrays are shared by all problems with these groups; nobody writes to them.

    Attributes
    ----------
    in_v : GroupRows
        The groups by rows of v; ``last`` is the last row + 1 of each.
    start, stop, stride, of_row : ndarray, (groups,) thrice and (size,), int64
        The groups by rows of x: first row, last row + 1, rows from one point to the next (0 for generalized ones), and the group
        of each row.
    rows : ndarray, (n,), int64
        Row of x of each row of v.
    padding : ndarray, int64
        Rows of x that none of v has.
    size : int
        Number of rows of x before the virtual nodes.
    """

    in_v: kernels.GroupRows
    last: np.ndarray
    start: np.ndarray
    stop: np.ndarray
    stride: np.ndarray
    of_row: np.ndarray
    rows: np.ndarray
    padding: np.ndarray
    size: int


@lru_cache(maxsize=16)
def layout(groups: tuple[Group, ...]) -> Layout:
    """Return the layout of x for these groups, which stay the same from step to step."""
    starts, last, strides = group_rows(groups)
    sizes = last - starts
    padded = 3 * ((sizes + 2) // 3)
    x_starts, size = np.cumsum(padded) - padded, int(padded.sum())
    rows = np.arange(int(sizes.sum())) + np.repeat(x_starts - starts, sizes)
    in_v = kernels.GroupRows(np.repeat(np.arange(len(groups)), sizes), starts, strides > 0)
    of_row = np.repeat(np.arange(len(groups)), padded)
    return Layout(in_v, last, x_starts, x_starts + sizes, strides, of_row, rows, np.setdiff1d(np.arange(size), rows), size)


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
        First row of x of the nodes that contact m acts on; -1 where there is none.
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
    blocks : ndarray, (groups, any, any)
        Diagonal blocks of A of generalized groups, see :func:`body_blocks`.
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
    blocks: np.ndarray

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
        kernels.point_velocities(self.virtual_start, self.ptr, self.dof, self.jac, x)
        return x

    def virtual_slip(self, x: np.ndarray) -> float:
        """Largest speed of a virtual node relative to its body, m/s: the constraint error lam/kv of Prop. 2."""
        if self.n_virtual == 0:
            return 0.0
        return math.sqrt(np.square(self._slips(x)).sum(axis=1).max())

    def contact_slip(self, x: np.ndarray) -> np.ndarray:
        """Velocity by which the virtual nodes of each contact creep on their bodies, (nc, 3), m/s, in its frame."""
        slip = np.zeros((len(self.node), 3))
        np.add.at(slip, self.contact_of, self._slips(x))
        return slip

    def _slips(self, x: np.ndarray) -> np.ndarray:
        slips = np.empty((self.n_virtual, 3))
        kernels.slips(self.virtual_start, self.ptr, self.dof, self.jac, x, slips)
        return slips

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


def body_blocks(problem: ContactProblem) -> np.ndarray:
    """Diagonal blocks of A of all generalized groups, (groups, size, size), padded by the identity; nodes keep the identity."""
    size = max((g.stop - g.start for g in problem.groups if g.kind == "generalized"), default=0)
    if size > MAX_DENSE:
        raise ContactError(
            f"a group of kind 'generalized' has {size} rows; allowed are {MAX_DENSE}, because its block of A is inverted "
            "densely. Split it into bodies, or use kind 'nodes' or another solver."
        )
    A, groups, blocks = problem.A, layout(problem.groups), np.empty((len(problem.groups), size, size))
    kernels.gather_body_blocks(kernels.ColumnMatrix(A.indptr, A.indices, A.data), groups.in_v, groups.last, blocks)
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
        Factor of the automatic kv, see ``contact.nodalize_kernels.accurate_gains`` and, with multipliers, ``conditioning_gains``.
    multiplier : ndarray, (nc, 3), N, optional
        Multiplier of the virtual nodes of each contact in its frame; default zero, which is eq. (15) of the paper.

    Raises
    ------
    ContactError
        A contact of three bodies, or a gain that is not positive.
    """
    for name, value in (("gain", gain), ("gain_factor", gain_factor)):
        if value is not None and not (np.isfinite(value) and value > 0):
            raise ContactError(f"{name} of the virtual nodes is {value}; allowed are positive numbers.")
    nc, J = problem.n_contacts, problem.J
    places, blocks = layout(problem.groups), body_blocks(problem)
    groups, rows, virtual_start = places.in_v, places.rows, places.size
    parts = kernels.Parts(
        np.empty((nc, 2), dtype=np.int64), np.zeros((nc, 2, 3, 3)), np.empty(2 * nc, dtype=np.int64),
        np.empty(2 * nc, dtype=np.int64), np.empty(2 * nc + 1, dtype=np.int64), np.empty(J.nnz, dtype=np.int64),
        np.empty((J.nnz, 3)),
    )  # fmt: skip
    split = kernels.JacobianRows(J.indptr, J.indices, J.data), groups, virtual_start, parts, np.empty(3, dtype=np.int64)
    nv = kernels.split_jacobian(*split)
    if nv < 0:
        raise NotApplicableError(
            f"contact {-nv - 1} acts on three bodies or nodes of J; allowed are at most two, of which what is soft in a contact "
            "takes one. Use another solver."
        )
    gains = np.full(nv, np.nan if gain is None else gain)
    if gain is None and nv:
        compliance = np.empty(nv)
        inverse = np.linalg.inv(blocks)
        point_arrays = parts.group_of, parts.ptr, parts.dof, parts.jac, groups.start, groups.is_nodes
        kernels.point_compliances(*point_arrays, problem.diagonal, inverse, compliance)
        if multiplier is None:
            kernels.accurate_gains(parts, virtual_start, problem.diagonal, compliance, gain_factor, gains)
        else:
            sharers = np.empty(nv)
            kernels.sharing(parts.group_of, groups.is_nodes, parts.ptr, parts.dof, np.empty(problem.n), sharers)
            kernels.conditioning_gains(parts, virtual_start, problem.diagonal, compliance, sharers, gain_factor, gains)
    node, contact_of, nnz = parts.node, parts.contact_of[:nv], int(parts.ptr[nv])
    kernels.to_rows_of_x(node, rows, virtual_start)
    dof = rows[parts.dof[:nnz]]
    m = np.zeros((nv, 3)) if multiplier is None else np.ascontiguousarray(multiplier.reshape(-1, 3)[contact_of])
    return NodalContactProblem(
        problem,
        node,
        parts.block,
        rows,
        virtual_start,
        contact_of,
        parts.group_of[:nv],
        parts.ptr[: nv + 1],
        dof,
        parts.jac[:nnz],
        gains,
        m,
        blocks,
    )

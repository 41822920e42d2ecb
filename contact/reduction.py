"""Problems with rows or soft contacts as problems without: joints eliminated, limits and motors as contacts; for every solver.

With the unknowns x = (v, a), a of what is soft and of motors, such a problem becomes one of hard contacts alone, exactly:

======================= ==========================================================================================
softness s of a row     an unknown a with the matrix 1/s on which the force of the row acts too: a = s lam_r
softness of a contact   three such unknowns, one for each direction; they move with nothing else
limit                   a contact without friction and without tangents
motor, dry friction     a contact whose tangent is the row and whose normal is an unknown pressed on by half the span of the
                        bounds, coefficient 1: its friction force is at most that, and opposes w
equality                x = x0 + Z y, Z a basis of what all equalities allow
======================= ==========================================================================================

Departure from papers/003 (Alg. 1), which keeps equalities as rows of a saddle point with a penalty of 1e-9: in y they hold to
rounding whatever a solver does, those that repeat others need no regularisation, and solvers that factorize A or walk over its
rows gain them as well. Z is made of one dense block for each set of bodies that equalities join, orthonormal in the norm of
diag(A), by a complete orthogonal decomposition; so a chain of many hundred bodies is dear. Forces of equalities are those of
least norm.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.linalg as sl
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from contact.problem import ContactProblem, Group
from contact.rows import Rows, make_rows

#: Rows of a set that depend on others to this part of the largest are redundant; row lengths are 1.
_RANK = 1e-10
#: Rows of J, and columns, of which a reduction leaves this part of their length are zero: nothing can move along them.
_NOTHING = 1e-12
#: Equalities contradict each other where what the best velocity leaves of them is more than this part of the speeds that they
#: ask for, and of all speeds in the problem.
_BROKEN, _LEAST_BROKEN = 1e-2, 1e-3
#: Coefficient of the contact that stands for a motor.
_MOTOR_FRICTION = 1.0


@dataclass(frozen=True)
class _Joined:
    """Columns of x that equalities join, (k,), and what follows from the decomposition of the equalities E among them.

    With D the weight of the columns, 1 / sqrt(diag A), rows of E D are made of length 1.

    Attributes
    ----------
    columns, rows : ndarray of int
        Columns of x, and equalities.
    basis : ndarray, (k, k - rank)
        D times an orthonormal basis of what the rows allow.
    solve, push : callable
        Least x with E x = given, in the norm D^-1, and the least row forces, each by its length, for a force on the columns.
    """

    columns: np.ndarray
    rows: np.ndarray
    basis: np.ndarray
    solve: Callable[[np.ndarray], np.ndarray]
    push: Callable[[np.ndarray], np.ndarray]


def _decompose(columns: np.ndarray, rows: np.ndarray, E: np.ndarray, scale: np.ndarray) -> _Joined:
    """Decompose the equalities E (rows, columns) of one set."""
    M = E * scale
    length = 1.0 / np.linalg.norm(M, axis=1)
    M *= length[:, None]
    Q, R, order = sl.qr(M.T, pivoting=True)
    sizes = np.abs(R.diagonal())
    r = int((sizes > _RANK * sizes[0]).sum())
    own, left = Q[:, :r], R[:r].T  # M = P left own^T
    free = Q[:, r:]
    free[np.linalg.norm(free, axis=1) <= _NOTHING] = 0.0  # columns that the rows hold fast
    inner, upper = sl.qr(left, mode="economic")

    def solve(given: np.ndarray) -> np.ndarray:
        z = sl.solve_triangular(upper, inner.T @ (length * given)[order])
        return np.asarray(scale * (own @ z))

    def push(force: np.ndarray) -> np.ndarray:
        lam = np.empty(len(order))
        lam[order] = inner @ sl.solve_triangular(upper, own.T @ (scale * force), trans=1)
        return np.asarray(length * lam)

    return _Joined(columns, rows, scale[:, None] * free, solve, push)


class Reduction:
    """A problem with rows, the problem of contacts alone that stands for it, and the way between them.

    Parameters
    ----------
    problem : ContactProblem
        With rows, soft contacts, or both.

    Attributes
    ----------
    problem : ContactProblem
        As given.
    reduced : ContactProblem
        Without rows: contacts of the problem first, then those of limits and motors.
    """

    def __init__(self, problem: ContactProblem) -> None:
        if problem.is_plain:
            raise ValueError("the problem has neither rows nor soft contacts")
        rows, n = problem.rows or make_rows(sp.csr_matrix((0, problem.n))), problem.n
        self.problem, self.rows = problem, rows
        acts = np.diff(rows.G.indptr) > 0  # a row without entries moves nothing
        below, above = np.isfinite(rows.low), np.isfinite(rows.high)
        self._given = below & above & (rows.low == rows.high)
        self._equal = np.flatnonzero(acts & ~below & ~above)
        self._limits = np.flatnonzero(acts & (below != above))
        self._motors = np.flatnonzero(acts & below & above & ~self._given)
        #: force at which the unknown part of a row is zero, and the sense in which that part counts
        self._shift = np.zeros(rows.n_rows)
        self._shift[below] = rows.low[below]
        self._shift[above & ~below] = rows.high[above & ~below]
        self._shift[self._motors] = 0.5 * (rows.low[self._motors] + rows.high[self._motors])
        self._shift[~acts] = _of_idle_rows(rows)[~acts]
        self._sense = np.where(above & ~below, -1.0, 1.0)
        soft = np.flatnonzero((rows.softness > 0) & acts & ~self._given)
        #: contacts that are soft
        self._soft = np.zeros(0, dtype=np.int64) if problem.softness is None else np.flatnonzero(problem.softness.any(axis=1))
        self._extended = self._extend(n, soft)
        self.reduced = self._reduce(n)

    # ------------------------------------------------------------------ x = (v, a)

    def _extend(self, n: int, soft: np.ndarray) -> tuple[sp.csc_matrix, np.ndarray, sp.csr_matrix, sp.csr_matrix]:
        """Return A and b of x, J of all contacts, and the equalities E over x."""
        problem, rows = self.problem, self.rows
        ns, nm, nc = len(soft), len(self._motors), problem.n_contacts
        if len(self._equal) == rows.n_rows and not ns and not len(self._soft):  # rigid joints alone, nothing to add
            self._half, self._J, self._phi, self._friction = np.zeros(0), problem.J, problem.phi, problem.friction
            self._given_offset = rows.offset
            return problem.A, problem.b, problem.J, rows.G
        entry = sp.csr_matrix((np.ones(ns), (soft, np.arange(ns))), shape=(rows.n_rows, ns))
        own = sp.hstack([sp.diags(self._sense) @ rows.G, entry, sp.csr_matrix((rows.n_rows, nm))], format="csr")
        of_motor = own[self._motors]
        compliance = np.asarray(of_motor[:, :n].power(2) @ (1.0 / problem.diagonal))
        self._half = 0.5 * (rows.high[self._motors] - rows.low[self._motors])
        A = sp.block_diag([problem.A, sp.diags(1.0 / rows.softness[soft]), sp.diags(1.0 / compliance)], format="csc")
        b = np.concatenate([problem.b + rows.G.T @ self._shift, np.zeros(ns), -self._half])
        offset = self._sense * (rows.offset + rows.softness * self._shift)
        J = sp.hstack([problem.J, sp.csr_matrix((3 * nc, ns + nm))], format="csr")
        nl, more = len(self._limits), 3 * len(self._soft)
        normal = sp.csr_matrix((np.ones(nm), (np.arange(nm), n + ns + np.arange(nm))), shape=(nm, n + ns + nm))
        stacked = sp.vstack([own[self._limits], normal, of_motor], format="coo")
        # rows of the stack: normals of limits, then normals and tangents of motors
        place = np.concatenate([3 * np.arange(nl), 3 * (nl + np.arange(nm)), 3 * (nl + np.arange(nm)) + 1])
        extra = sp.csr_matrix((stacked.data, (place[stacked.row], stacked.col)), shape=(3 * (nl + nm), n + ns + nm))
        E = own[self._equal]
        if more:
            matrix, giving = self._of_soft_contacts()
            A, b = sp.block_diag([A, matrix], format="csc"), np.concatenate([b, np.zeros(more)])
            J, extra, E = (
                sp.hstack([J, giving], format="csr"),
                *(sp.hstack([part, sp.csr_matrix((part.shape[0], more))], format="csr") for part in (extra, E)),
            )
        self._J = sp.vstack([J, extra], format="csr")
        phi = np.zeros((nl + nm, 3))
        phi[:nl, 0], phi[nl:, 1] = offset[self._limits], offset[self._motors]
        self._phi = np.vstack([problem.phi, phi])
        mu = np.concatenate([np.zeros(nl), np.full(nm, _MOTOR_FRICTION)])
        friction = problem.friction
        self._friction = np.concatenate([friction, mu if friction.ndim == 1 else np.column_stack([mu, mu])])
        self._given_offset = offset[self._equal]
        return A, b, self._J, E

    def _of_soft_contacts(self) -> tuple[sp.dia_matrix, sp.csr_matrix]:
        """Matrix of the unknowns of soft contacts, three each, and what they add to the velocities of contacts, (3 nc, 3 k).

        Where a soft contact is hard in one direction, nothing acts on the unknown of that direction, which stays zero.
        """
        assert self.problem.softness is not None
        own = self.problem.softness[self._soft]
        gives = own > 0
        matrix = sp.diags(1.0 / np.where(gives, own, own.max(axis=1)[:, None]).ravel())
        place = (3 * self._soft[:, None] + np.arange(3))[gives]
        giving = sp.csr_matrix(
            (np.ones(len(place)), (place, np.flatnonzero(gives))), shape=(3 * self.problem.n_contacts, own.size)
        )
        return matrix, giving

    @cached_property
    def joined(self) -> list[_Joined]:
        """Sets of columns that equalities join; all velocities of a node, a link or a body belong to one set.

        Else a contact on a body would act on several groups of the reduced problem, where solvers know at most two.
        """
        A, _, _, E = self._extended
        N = A.shape[0]
        if not len(self._equal):
            return []
        node = np.arange(N)
        for group in self.problem.groups:
            index = np.arange(group.stop - group.start)
            node[group.start : group.stop] = group.start + (index - index % group.stride if group.stride else 0)
        p = E.shape[0]
        entries = E.tocoo()
        links = sp.csr_matrix((np.ones(entries.nnz), (entries.row, p + node[entries.col])), shape=(p + N, p + N))
        _, label = connected_components(links, directed=False)
        of_row, of_column = label[:p], label[p + node]
        scale = 1.0 / np.sqrt(A.diagonal())
        found = []
        for one in dict.fromkeys(of_row.tolist()):
            rows, columns = np.flatnonzero(of_row == one), np.flatnonzero(of_column == one)
            found.append(_decompose(columns, rows, E[rows][:, columns].toarray(), scale[columns]))
        return found

    @cached_property
    def contradicting(self) -> np.ndarray:
        """Rows, (k,) int, of equalities that no velocities satisfy together, as of a body held at two places that part."""
        A, b, _, E = self._extended
        equal = self.rows.is_equality & ~self._given
        broken, asked = np.where(equal, np.abs(self.rows.offset), 0.0), np.abs(self.rows.offset)
        speeds = np.abs(b) / A.diagonal()
        broken[self._equal] = np.abs(self.repeated[self._equal])
        asked[self._equal] = abs(E) @ (np.abs(self._x0) + speeds) + np.abs(self._given_offset)
        least = _LEAST_BROKEN * max(float(speeds.max(initial=0.0)), float(np.abs(self.rows.offset).max(initial=0.0)))
        return np.flatnonzero((broken > _BROKEN * asked) & (broken > least))

    @cached_property
    def repeated(self) -> np.ndarray:
        """What no velocities change of the rows' velocities, (p,): where equalities that repeat others ask for something else."""
        _, _, _, E = self._extended
        left = np.zeros(self.rows.n_rows)
        left[self._equal] = E @ self._x0 + self._given_offset
        return left

    def rows_of(self, contacts: np.ndarray) -> np.ndarray:
        """Rows, (k,) int, of the limits among contacts of the reduced problem, given by their numbers."""
        places = np.asarray(contacts, dtype=np.int64) - self.problem.n_contacts
        return np.asarray(self._limits[places[(places >= 0) & (places < len(self._limits))]])

    # ------------------------------------------------------------------ x = x0 + Z y

    def _reduce(self, n: int) -> ContactProblem:
        A, b, J, _ = self._extended
        N, dt = A.shape[0], self.problem.dt
        taken = np.zeros(N, dtype=np.bool_)
        for one in self.joined:
            taken[one.columns] = True
        groups: list[Group] = []
        blocks: list[tuple[np.ndarray, np.ndarray]] = []  # columns of x and their basis; empty: they are kept

        def add(name: str, size: int, kind: str) -> None:
            start = groups[-1].stop if groups else 0
            if size:
                groups.append(Group(name, start, start + size, kind))  # type: ignore[arg-type]

        kept: list[np.ndarray] = []
        for group in self.problem.groups:
            free = group.start + np.flatnonzero(~taken[group.start : group.stop])
            kept.append(free)
            add(group.name, len(free), group.kind)
        own, more = n + np.flatnonzero(~taken[n:]), 3 * len(self._soft)
        kept.append(own)
        add("rows", len(own) - more, "generalized")
        add("soft contacts", more, "nodes")  # each by itself, like a node; nothing joins them
        for k, one in enumerate(self.joined):
            blocks.append((one.columns, one.basis))
            add(f"joined {k}", one.basis.shape[1], "generalized")
        stays = np.concatenate(kept).astype(np.int64)
        self._x0 = np.zeros(N)
        for one in self.joined:
            self._x0[one.columns] = one.solve(-self._given_offset[one.rows])
        self._Z = _basis(N, stays, blocks)
        basis, prescribed = self._Z, self.problem.b_prescribed
        if prescribed is not None:
            prescribed = basis.T @ np.concatenate([prescribed, np.zeros(N - n)])
        if self.joined:
            b = b - A @ self._x0
            A = basis.T @ A @ basis
            A = sp.csc_matrix(0.5 * (A + A.T))
            phi = self._phi + (J @ self._x0).reshape(-1, 3)
            J = _cleaned(J, sp.csr_matrix(J @ basis), 1.0 / np.sqrt(self._extended[0].diagonal()))
        else:
            A, J, phi = sp.csc_matrix(A[:, stays][stays]), sp.csr_matrix(J[:, stays]), self._phi
        b = np.asarray(basis.T @ b)
        if not len(b):  # nothing can move: one velocity that no contact feels
            A, b, J = sp.csc_matrix(np.eye(1)), np.zeros(1), sp.csr_matrix((J.shape[0], 1))
            self._Z = sp.csr_matrix((N, 1))
            prescribed = None
            add("nothing", 1, "generalized")
        A.sort_indices()
        J.sort_indices()
        return ContactProblem(A, b, J, np.ascontiguousarray(phi), self._friction, dt, tuple(groups), prescribed)

    # ------------------------------------------------------------------ the way between them

    def shorten(self, v: np.ndarray, lam: np.ndarray) -> np.ndarray:
        """Return y of velocities v, (n,), the nearest ones that equalities allow.

        Unknowns of rows start at zero, those of soft contacts where their forces lam, (nc, 3), N, push them.
        """
        x = np.concatenate([v, np.zeros(len(self._x0) - len(v))]) - self._x0
        if self.problem.softness is not None:
            x[len(x) - 3 * len(self._soft) :] = (self.problem.softness * lam.reshape(-1, 3))[self._soft].ravel()
        if not self.joined:
            return np.asarray(self._Z.T @ x)
        weight = self._extended[0].diagonal()
        for one in self.joined:  # basis^T D^-2 basis is the identity
            x[one.columns] *= weight[one.columns]
        return np.asarray(self._Z.T @ x)

    def contacts(self, lam: np.ndarray, row_forces: np.ndarray) -> np.ndarray:
        """Contact forces of the reduced problem, (k, 3), N, from those of contacts (nc, 3) and rows (p,)."""
        nc, nl = self.problem.n_contacts, len(self._limits)
        part = self._sense * (row_forces - self._shift)
        out = np.zeros((len(self._phi), 3))
        out[:nc] = lam.reshape(nc, 3)
        out[nc : nc + nl, 0] = np.maximum(part[self._limits], 0.0)
        out[nc + nl :, 0] = self._half
        out[nc + nl :, 1] = np.clip(part[self._motors], -self._half, self._half)
        return out

    def expand(self, y: np.ndarray, lam: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Velocities (n,), contact forces (nc, 3) and row forces (p,) of an answer of the reduced problem."""
        n, nc, nl = self.problem.n, self.problem.n_contacts, len(self._limits)
        lam = lam.reshape(-1, 3)
        x = self._x0 + self._Z @ y
        forces = self._shift.copy()
        forces[self._equal] = 0.0
        forces[self._limits] += self._sense[self._limits] * lam[nc : nc + nl, 0]
        forces[self._motors] += np.clip(lam[nc + nl :, 1], -self._half, self._half)
        if self.joined:
            A, b, J, _ = self._extended
            lacking = A @ x - b - J.T @ lam.ravel()
            for one in self.joined:
                forces[self._equal[one.rows]] = one.push(lacking[one.columns])
        return x[:n], lam[:nc], forces


def _of_idle_rows(rows: Rows) -> np.ndarray:
    """Return forces (p,) for w = offset + softness force; where w asks for a bound that is not there, the force nearest zero."""
    pulled = np.where(rows.offset > 0, rows.low, np.where(rows.offset < 0, rows.high, 0.0))
    soft = rows.softness > 0
    pulled[soft] = -rows.offset[soft] / rows.softness[soft]
    return np.asarray(np.clip(np.where(np.isfinite(pulled), pulled, 0.0), rows.low, rows.high))


def _basis(N: int, stays: np.ndarray, blocks: list[tuple[np.ndarray, np.ndarray]]) -> sp.csr_matrix:
    """Z: ones for the columns that stay, then a dense block for each set of joined ones."""
    rows, columns, values, at = [stays], [np.arange(len(stays))], [np.ones(len(stays))], len(stays)
    for own, basis in blocks:
        k, m = basis.shape
        rows.append(np.repeat(own, m))
        columns.append(np.tile(at + np.arange(m), k))
        values.append(basis.ravel())
        at += m
    return sp.csr_matrix((np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))), shape=(N, at))


def _cleaned(before: sp.csr_matrix, J: sp.csr_matrix, scale: np.ndarray) -> sp.csr_matrix:
    """Make those rows of J zero of which a basis, whose rows are no longer than scale, leaves but rounding."""
    if not J.nnz:
        return J
    most = np.asarray(abs(before) @ scale)
    size = np.asarray(abs(J).max(axis=1).toarray()).ravel()
    J.data[np.repeat(size <= _NOTHING * most, np.diff(J.indptr))] = 0.0
    J.eliminate_zeros()
    return J

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
rows gain them as well. Z (``contact.equalities``) is made of one dense block for each set of bodies that equalities join; so a
chain of many hundred bodies is dear. Forces of equalities are those of least norm.
"""

from __future__ import annotations

from functools import cached_property, lru_cache

import numpy as np
import scipy.sparse as sp

from contact import equality_kernels as kernels
from contact.compressed import compressed_columns, compressed_rows, times_transposed
from contact.equalities import NOTHING, Equalities
from contact.errors import NotPositiveError
from contact.jacobian_kernels import gather, scatter
from contact.linear import NOT_POSITIVE
from contact.problem import ContactProblem, Group
from contact.rows import Rows, make_rows

#: Equalities contradict each other where what the best velocity leaves of them is more than this part of the speeds that they
#: ask for, and of all speeds in the problem.
_BROKEN, _LEAST_BROKEN = 1e-2, 1e-3
#: What closes at less than this part of the speed of free motion, and cannot move, closes by rounding of positions alone.
_ROUNDED = 1e-9
#: Coefficient of the contact that stands for a motor.
_MOTOR_FRICTION = 1.0


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
        self._acts = acts = np.diff(rows.G.indptr) > 0  # a row without entries moves nothing
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
        if not acts.all():
            self._shift[~acts] = _of_idle_rows(rows)[~acts]
        self._sense = np.where(above & ~below, -1.0, 1.0)
        soft = np.flatnonzero((rows.softness > 0) & acts & ~self._given)
        #: contacts that are soft
        self._soft = np.zeros(0, dtype=np.int64) if problem.softness is None else np.flatnonzero(problem.softness.any(axis=1))
        self._extended = self._extend(n, soft)
        self._joined = self._equalities()
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
        N, more = n + ns + nm, 3 * len(self._soft)
        entry = np.full(rows.n_rows, -1)
        entry[soft] = n + np.arange(ns)
        compliance = np.empty(rows.n_rows)
        gather(rows.G.indptr, rows.G.indices, rows.G.data**2, 1.0 / problem.diagonal, compliance)
        self._half = 0.5 * (rows.high[self._motors] - rows.low[self._motors])
        matrix, giving = self._of_soft_contacts(N)
        A = _with_diagonal(problem.A, np.concatenate([1.0 / rows.softness[soft], 1.0 / compliance[self._motors], matrix]))
        b = np.concatenate([problem.b + times_transposed(rows.G, self._shift), np.zeros(ns), -self._half, np.zeros(more)])
        offset = self._sense * (rows.offset + rows.softness * self._shift)
        nl = len(self._limits)
        # normals of limits, then normals and tangents of motors
        source, columns = np.full((nl + nm, 3), -1), np.full((nl + nm, 3), -1)
        source[:nl, 0], columns[:nl, 0] = self._limits, entry[self._limits]
        columns[nl:, 0] = n + ns + np.arange(nm)
        source[nl:, 1], columns[nl:, 1] = self._motors, entry[self._motors]
        everyone = np.arange(3 * nc)
        contacts = problem.J if not more else _laid(problem.J, everyone, np.ones(3 * nc), giving, N + more)
        own = _laid(rows.G, source.ravel(), self._sense[source.ravel()], columns.ravel(), N + more)
        self._J = compressed_rows(
            np.concatenate([contacts.indptr, contacts.indptr[-1] + own.indptr[1:]]),
            np.concatenate([contacts.indices, own.indices]), np.concatenate([contacts.data, own.data]), N + more,
        )  # fmt: skip
        E = _laid(rows.G, self._equal, self._sense[self._equal], entry[self._equal], N + more)
        phi = np.zeros((nl + nm, 3))
        phi[:nl, 0], phi[nl:, 1] = offset[self._limits], offset[self._motors]
        self._phi = np.vstack([problem.phi, phi])
        mu = np.concatenate([np.zeros(nl), np.full(nm, _MOTOR_FRICTION)])
        friction = problem.friction
        self._friction = np.concatenate([friction, mu if friction.ndim == 1 else np.column_stack([mu, mu])])
        self._given_offset = offset[self._equal]
        return A, b, self._J, E

    def _of_soft_contacts(self, N: int) -> tuple[np.ndarray, np.ndarray]:
        """Diagonal of the unknowns of soft contacts, (3 k,), from N on; and which of them each row of J gives way to, or -1.

        Where a soft contact is hard in one direction, nothing acts on the unknown of that direction, which stays zero.
        """
        given = np.full(3 * self.problem.n_contacts, -1)
        if self.problem.softness is None:
            return np.zeros(0), given
        own = self.problem.softness[self._soft]
        gives = own > 0
        place = (3 * self._soft[:, None] + np.arange(3))[gives]
        given[place] = N + np.flatnonzero(gives)
        return 1.0 / np.where(gives, own, own.max(axis=1)[:, None]).ravel(), given

    def _equalities(self) -> Equalities | None:
        """Eliminate the equalities; None where there are none."""
        A, _, _, E = self._extended
        if not E.shape[0]:
            return None
        if not (self._diagonal > 0.0).all():
            raise NotPositiveError(NOT_POSITIVE)
        nodes, scale = _nodes(self.problem.groups, A.shape[0]), 1.0 / np.sqrt(self._diagonal)
        return Equalities(E, nodes, scale, self._given_offset, self.rows.vector[self._equal])

    @cached_property
    def _diagonal(self) -> np.ndarray:
        """Diagonal of the matrix of x, (N,)."""
        A = self._extended[0]
        return self.problem.diagonal if A is self.problem.A else np.asarray(A.diagonal())

    @cached_property
    def contradicting(self) -> np.ndarray:
        """Rows, (k,) int, that no velocities satisfy together: equalities, as of a body held at two places that part.

        Also rigid ones that nothing moves along, where the force that they ask for has no bound.
        """
        rows, b = self.rows, self._extended[1]
        broken = np.abs(self.repeated)
        unbounded = np.isinf(np.where(rows.offset > 0, rows.low, rows.high))  # the force that would be needed
        idle = np.flatnonzero(~self._acts & unbounded & (rows.softness == 0))  # a soft row gives way to its force
        broken[idle] = np.abs(rows.offset[idle])
        speeds = np.abs(b) / self._diagonal
        least = _LEAST_BROKEN * max(float(speeds.max(initial=0.0)), float(np.abs(rows.offset).max(initial=0.0)))
        if not (broken > least).any():
            return np.zeros(0, dtype=np.int64)
        asked = np.abs(rows.offset)
        asked[self._equal] = abs(self._extended[3]) @ (np.abs(self._x0) + speeds) + np.abs(self._given_offset)
        return np.flatnonzero((broken > _BROKEN * asked) & (broken > least))

    @cached_property
    def _left(self) -> np.ndarray:
        """What the particular velocities leave of the equalities."""
        E = self._extended[3]
        out = np.empty(E.shape[0])
        gather(E.indptr, E.indices, E.data, self._x0, out)
        return out + self._given_offset

    @cached_property
    def repeated(self) -> np.ndarray:
        """What no velocities change of the rows' velocities, (p,): where equalities that repeat others ask for something else."""
        left = np.zeros(self.rows.n_rows)
        if self._joined is not None:
            left[self._equal] = self._left
        return left

    def rows_of(self, contacts: np.ndarray) -> np.ndarray:
        """Rows, (k,) int, of the limits among contacts of the reduced problem, given by their numbers."""
        places = np.asarray(contacts, dtype=np.int64) - self.problem.n_contacts
        return np.asarray(self._limits[places[(places >= 0) & (places < len(self._limits))]])

    # ------------------------------------------------------------------ x = x0 + Z y

    def _reduce(self, n: int) -> ContactProblem:
        A, b, J, _ = self._extended
        N, dt, joined = A.shape[0], self.problem.dt, self._joined
        groups: list[Group] = []

        def add(name: str, size: int, kind: str, parents: tuple[int, ...] | None = None) -> None:
            start = groups[-1].stop if groups else 0
            if size:
                groups.append(Group(name, start, start + size, kind, parents))  # type: ignore[arg-type]

        kept = np.ones(N, dtype=np.bool_) if joined is None else joined.kept
        for group in self.problem.groups:
            add(group.name, int(np.count_nonzero(kept[group.start : group.stop])), group.kind, group.parents)
        more = 3 * len(self._soft)
        add("rows", int(np.count_nonzero(kept[n:])) - more, "generalized")
        add("soft contacts", more, "nodes")  # each by itself, like a node; nothing joins them
        prescribed, phi = self.problem.b_prescribed, self._phi
        if prescribed is not None and N > n:
            prescribed = np.concatenate([prescribed, np.zeros(N - n)])
        if joined is None:
            self._x0 = np.zeros(N)
        else:
            self._x0, basis = joined.x0, joined.basis
            for k, width in enumerate(basis.width.tolist()):
                add(f"joined {k}", width, "generalized")
            size = groups[-1].stop if groups else 0
            if not A.has_sorted_indices:
                A = A.sorted_indices()
            if self._x0.any():
                b, along = b - self._times(self._x0), np.empty(J.shape[0])
                gather(J.indptr, J.indices, J.data, self._x0, along)
                phi = phi + along.reshape(-1, 3)
            indptr, indices, data = kernels.project(A.indptr, A.indices, A.data, basis, size)
            A = compressed_columns(indptr, indices, data, size)
            scale = 1.0 / np.sqrt(self._diagonal)
            indptr, indices, data = kernels.project_rows(J.indptr, J.indices, J.data, basis, scale, NOTHING)
            phi = self._without_rounding(phi, np.diff(indptr)[::3] == 0)
            J = compressed_rows(indptr, indices, data, size)
            b = self._shortened(b, size)
            prescribed = None if prescribed is None else self._shortened(prescribed, size)
        if not len(b):  # nothing can move: one velocity that no contact feels
            A, b, J = sp.csc_matrix(np.eye(1)), np.zeros(1), sp.csr_matrix((J.shape[0], 1))
            prescribed = None
            add("nothing", 1, "generalized")
        phi, aim = np.ascontiguousarray(phi), self.problem.aim
        return ContactProblem(A, b, J, phi, self._friction, dt, tuple(groups), prescribed, aim=aim)

    def _without_rounding(self, phi: np.ndarray, held: np.ndarray) -> np.ndarray:
        """Return phi without what is rounding in that of contacts ``held``, (nc,), whose normal velocity no equality leaves free.

        A stop of a hinge that others keep from turning closes at 0 but for rounding, and no force can change that.
        """
        held &= phi[:, 0] < 0.0
        if not held.any():
            return phi
        _, b, J, _ = self._extended
        # what the energy of the free motion is as a speed of the contact
        energy = float(b @ (b / self._diagonal)) + float(self._x0 @ (self._diagonal * self._x0))
        speeds = np.sqrt(energy * (J.power(2) @ (1.0 / self._diagonal)).reshape(-1, 3)[:, 0])
        phi = phi.copy()
        phi[held & (phi[:, 0] > -_ROUNDED * speeds), 0] = 0.0
        return phi

    def _times(self, x: np.ndarray) -> np.ndarray:
        """Return A x, (N,)."""
        A, out = self._extended[0], np.empty(len(x))
        scatter(A.indptr, A.indices, A.data, x, out)
        return out

    def _shortened(self, x: np.ndarray, size: int) -> np.ndarray:
        """Z^T x, (size,)."""
        if self._joined is None:
            return x
        out = np.empty(size)
        kernels.shorten(self._joined.basis, np.ascontiguousarray(x), out)
        return out

    # ------------------------------------------------------------------ the way between them

    def shorten(self, v: np.ndarray, lam: np.ndarray) -> np.ndarray:
        """Return y of velocities v, (n,), for those of x that eliminate no row the nearest ones that equalities allow.

        Unknowns of rows start at zero, those of soft contacts where their forces lam, (nc, 3), N, push them.
        """
        x = np.concatenate([v, np.zeros(len(self._x0) - len(v))]) - self._x0
        if self.problem.softness is not None:
            x[len(x) - 3 * len(self._soft) :] = (self.problem.softness * lam.reshape(-1, 3))[self._soft].ravel()
        if self._joined is not None:  # basis^T D^-2 basis is the identity
            x = np.where(self._joined.free, np.where(self._joined.kept, x, self._diagonal * x), 0.0)
        y = self._shortened(x, self.reduced.n)
        return y if len(y) == self.reduced.n else np.zeros(self.reduced.n)

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
        x = self._x0.copy()
        if self._joined is None:
            x += y[: len(x)]
        else:
            kernels.expand(self._joined.basis, y, x)
        forces = self._shift.copy()
        forces[self._equal] = 0.0
        forces[self._limits] += self._sense[self._limits] * lam[nc : nc + nl, 0]
        forces[self._motors] += np.clip(lam[nc + nl :, 1], -self._half, self._half)
        if self._joined is not None:
            _, b, J, _ = self._extended
            forces[self._equal] = self._joined.forces(self._times(x) - b - times_transposed(J, lam.ravel()))
        return x[:n], lam[:nc], forces


def _with_diagonal(A: sp.csc_matrix, more: np.ndarray) -> sp.csc_matrix:
    """Return A and, behind it, a diagonal (k,)."""
    if not A.has_sorted_indices:
        A = A.sorted_indices()
    own = np.arange(len(more), dtype=A.indices.dtype)
    return compressed_columns(
        np.concatenate([A.indptr, A.indptr[-1] + 1 + own]), np.concatenate([A.indices, A.shape[0] + own]),
        np.concatenate([A.data, more]), A.shape[0] + len(more),
    )  # fmt: skip


def _laid(G: sp.csr_matrix, source: np.ndarray, factor: np.ndarray, more: np.ndarray, n: int) -> sp.csr_matrix:
    """Matrix (m, n) by :func:`contact.equality_kernels.lay_rows`."""
    if not G.has_sorted_indices:
        G = G.sorted_indices()
    lengths = np.append(np.diff(G.indptr), 0)
    room = int(lengths[source].sum()) + int(np.count_nonzero(more >= 0))
    indptr, indices, data = np.empty(len(source) + 1, np.int32), np.empty(room, np.int32), np.empty(room)
    kernels.lay_rows(G.indptr, G.indices, G.data, source, factor, more, indptr, indices, data)
    return compressed_rows(indptr, indices, data, n)


@lru_cache(maxsize=16)
def _nodes(groups: tuple[Group, ...], N: int) -> np.ndarray:
    """First column of the node, link or body of each of N columns, those behind the groups by themselves; nobody writes to them.

    All velocities of one belong to one set: else a contact on a body would act on several groups of the reduced problem, where
    solvers know at most two.
    """
    node = np.arange(N)
    for group in groups:
        index = np.arange(group.stop - group.start)
        node[group.start : group.stop] = group.start + (index - index % group.stride if group.stride else 0)
    return node


def _of_idle_rows(rows: Rows) -> np.ndarray:
    """Return forces (p,) for w = offset + softness force; where w asks for a bound that is not there, the force nearest zero."""
    pulled = np.where(rows.offset > 0, rows.low, np.where(rows.offset < 0, rows.high, 0.0))
    soft = rows.softness > 0
    pulled[soft] = -rows.offset[soft] / rows.softness[soft]
    return np.asarray(np.clip(np.where(np.isfinite(pulled), pulled, 0.0), rows.low, rows.high))

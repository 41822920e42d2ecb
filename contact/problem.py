"""The contact problem: A v = b + J^T lam under the Signorini-Coulomb law, as arrays."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from contact import jacobian_kernels as kernels, metrics_kernels
from contact.checked import real_array, real_matrix, spread
from contact.errors import ContactError
from contact.metrics_kernels import Groups
from contact.once import once
from contact.rows import Rows
from contact.turns import Turns

GroupKind = Literal["nodes", "links", "generalized"]
_STRIDE: dict[GroupKind, int] = {"nodes": 3, "links": 6, "generalized": 0}


@dataclass(frozen=True)
class Group:
    """A contiguous range of velocity components that belongs to one body.

    Parameters
    ----------
    name : str
        Name used in messages and reports.
    start, stop : int
        Half-open range of rows of ``v``.
    kind : {"nodes", "links", "generalized"}
        ``"nodes"``: consecutive triples are world velocities of points, so a contact can act on them directly.
        ``"links"``: the same, but after the velocity of each point comes an angular velocity, as in a rod; the rows are as
        many as those of a soft body and coupled like them.
        ``"generalized"``: rigid or joint coordinates; a contact needs a virtual node there. Generalized groups are small
        (their diagonal block is inverted densely).

        Groups may be coupled in ``A`` (a rod that hangs on a gripper).
    parents : tuple of int, optional
        Of a kinematic tree, the row of the group that each of its rows hangs on, an earlier one; -1 where it hangs on none. Rows
        that ``A`` couples, or that move one link, then lie on one way to the ground. Default: nothing is known of them.
    """

    name: str
    start: int
    stop: int
    kind: GroupKind
    parents: tuple[int, ...] | None = None

    @property
    def stride(self) -> int:
        """Rows from the velocity of one point to that of the next; 0 where there are no points ("generalized")."""
        return _STRIDE[self.kind]


@lru_cache(maxsize=16)
def group_rows(groups: tuple[Group, ...]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """First row, last row + 1, and rows from one point to the next of each group, (groups,) int64; nobody writes to them."""
    rows = np.array([(g.start, g.stop, g.stride) for g in groups], dtype=np.int64).reshape(-1, 3)
    return rows[:, 0].copy(), rows[:, 1].copy(), rows[:, 2].copy()


@lru_cache(maxsize=16)
def row_parents(groups: tuple[Group, ...]) -> np.ndarray:
    """Row of v that each row hangs on, (n,) int64, -1 for none; of groups without parents the row before; nobody writes to it."""
    out = np.arange(groups[-1].stop if groups else 0, dtype=np.int64) - 1
    for group in groups:
        if group.parents is None:
            out[group.start : group.start + 1] = -1
        else:
            own = np.array(group.parents, dtype=np.int64)
            out[group.start : group.stop] = np.where(own < 0, -1, own + group.start)
    return out


class _Measures(NamedTuple):
    """See the properties of :class:`ContactProblem` of these names; ``groups`` is :attr:`ContactProblem.measured_groups`."""

    weight: np.ndarray
    compliance: np.ndarray
    groups: Groups
    b_size: float


@dataclass
class ContactProblem:
    """Find v and lam with A v = b + J^T lam and, for each contact, the Signorini-Coulomb law on u = J v + phi.

    The law of contact m, with u = (u_n, u_t) and lam = (lam_n, lam_t) (papers' eq. 11)::

        0 <= lam_n  _|_  u_n >= 0,   |lam_t| <= mu lam_n,   lam_t = -mu lam_n u_t / |u_t|  where u_t != 0

    With two coefficients a contact the force lies in the ellipsoidal cone |(lam_t1 / mu1, lam_t2 / mu2)| <= lam_n (eq. 12) and
    its tangent part is the one of largest dissipation -u_t . lam_t there (Prop. 6); see :func:`isotropic`.

    Build one with :func:`make_problem`, which validates.

    Attributes
    ----------
    A : scipy.sparse.csc_matrix, (n, n), N s/m
        Symmetric positive definite; one unit per row (N s/m for translations, N m s/rad for rotations).
    b : ndarray, (n,), N
        Right-hand side.
    J : scipy.sparse.csr_matrix, (3 nc, n)
        Three rows a contact: normal first, then the two tangents.
    phi : ndarray, (nc, 3), m/s
        Added to J v: gap over time step in the normal row, surface velocity of driven obstacles in all three.
    friction : ndarray, (nc,) or (nc, 2)
        Coulomb coefficient of each contact, or its coefficients along the first and the second tangent.
    dt : float, s
        Time step, used only to turn velocities into lengths in reports.
    groups : tuple of Group
        Which rows of v belong to which body.
    b_prescribed : ndarray, (n,), N, optional
        Contribution of prescribed velocities to b. It is not a force on any body, so balances of forces are relative to
        b - b_prescribed.
    rows : Rows, optional
        Joints, limits and motors: A v = b + J^T lam + G^T lam_r then. Solvers see them through ``contact.reduction``.
    turns : Turns, optional
        How parts of v have turned: solvers that keep factors of an earlier A turn them along. It changes no solution.
    points : ndarray, (n,), m, optional
        Where the points of groups of nodes are, at the rows of their velocities; other rows are zero. Solvers of large bodies
        take smooth motions from them, no answer depends on them beyond the tolerance.
    softness : ndarray, (nc, 3), m/(N s), optional
        Velocity by which each contact gives way to its force, C of papers/003: u = J v + phi + softness lam then. Solvers see it
        through ``contact.reduction``. Default hard contacts.
    enough : float
        Residual at which an answer may stop, where that is above the tolerance of the solver: for answers that only say where
        equations are linearised next. Problems with rows or soft contacts are solved to the tolerance all the same. Default 0.
    aim : float
        Residual at which an answer should stop, where that is below the tolerance of the solver. One that meets the tolerance
        alone has converged too, after all iterations. Default infinite.
    """

    A: sp.csc_matrix
    b: np.ndarray
    J: sp.csr_matrix
    phi: np.ndarray
    friction: np.ndarray
    dt: float
    groups: tuple[Group, ...]
    b_prescribed: np.ndarray | None = None
    rows: Rows | None = None
    turns: Turns | None = None
    points: np.ndarray | None = None
    softness: np.ndarray | None = None
    enough: float = 0.0
    aim: float = math.inf

    @property
    def n(self) -> int:
        """Number of velocity components."""
        return len(self.b)

    @once
    def diagonal(self) -> np.ndarray:
        """Diagonal of A, (n,), computed once."""
        A, out = self.A, np.empty(len(self.b))
        if not kernels.diagonal(A.indptr, A.indices, A.data, out):
            out = np.asarray(A.diagonal())
        return out

    @property
    def weight(self) -> np.ndarray:
        """1 / sqrt(diagonal), (n,): the weight that makes residuals of all rows comparable, computed once."""
        return self._measures.weight

    def times(self, v: np.ndarray) -> np.ndarray:
        """Return A v, (n,), N, of a velocity (n,)."""
        A, out = self.A, np.empty(len(self.b))
        kernels.scatter(A.indptr, A.indices, A.data, v, out)
        return out

    def check_velocity(self, v: np.ndarray) -> None:
        """Raise ContactError where a velocity has another size than (n,)."""
        if v.shape != self.b.shape:
            raise ContactError(f"v has shape {v.shape}; it must be ({self.n},), one velocity for each row of A.")

    def moved(self, v: np.ndarray) -> np.ndarray:
        """J v, (3 nc,), m/s, of a velocity (n,); ContactError where v has another size."""
        J = self.J
        self.check_velocity(v)
        out = np.empty(len(J.indptr) - 1)
        kernels.gather(J.indptr, J.indices, J.data, v, out)
        return out

    def each(self, lam: np.ndarray) -> np.ndarray:
        """Contact forces (nc, 3) or (3 nc,), N, as (nc, 3); ContactError where lam has another size."""
        if lam.size != self.phi.size:
            raise ContactError(f"lam has shape {lam.shape}; it must hold {self.J.shape[0]} numbers, three for each contact.")
        return lam.reshape(-1, 3)

    def pushed(self, lam: np.ndarray) -> np.ndarray:
        """J^T lam, (n,), N, of contact forces (nc, 3) or (3 nc,); ContactError where lam has another size."""
        J, flat = self.J, self.each(lam).ravel()
        out = np.empty(len(self.b))
        kernels.scatter(J.indptr, J.indices, J.data, flat, out)
        return out

    def with_rows(self, J: sp.csr_matrix, friction: np.ndarray) -> ContactProblem:
        """Return the problem with another J, (3 nc, n), and friction, (nc,) or (nc, 2), of its contacts."""
        return ContactProblem(
            self.A, self.b, J, self.phi, friction, self.dt, self.groups, self.b_prescribed, self.rows, self.turns, self.points,
            self.softness, self.enough, self.aim,
        )  # fmt: skip

    def about(self, place: np.ndarray) -> ContactProblem:
        """Return the problem of v - place, (n,), which has the same forces: it asks only for the digits of the difference.

        Prescribed velocities are those of the place there.
        """
        rows = self.rows
        if rows is not None:
            rows = replace(rows, offset=rows.offset + rows.G @ place)
        prescribed = None if self.b_prescribed is None else np.zeros(self.n)
        phi = self.phi + self.moved(place).reshape(-1, 3)
        return replace(self, b=self.b - self.times(place), phi=phi, b_prescribed=prescribed, rows=rows)

    def loaded(self, row_forces: np.ndarray) -> ContactProblem:
        """Return the problem without rows, whose b has what these forces, (p,), N, push: b + G^T lam_r."""
        if self.rows is None:
            return self
        return replace(self, b=self.b + self.rows.G.T @ row_forces, rows=None)

    @property
    def compliance(self) -> np.ndarray:
        """Diagonal of J diag(A)^-1 J^T, and the softness where there is one, (nc, 3), m/(N s), computed once."""
        return self._measures.compliance

    @once
    def stretched(self) -> ContactProblem:
        """What :func:`isotropic` makes of two coefficients a contact, made once."""
        stretch = np.column_stack([np.ones(self.n_contacts), self.tangent_stretch])
        J = self.J.copy()
        J.data = J.data * np.repeat(stretch.ravel(), np.diff(J.indptr))
        friction = np.sqrt(self.friction[:, 0] * self.friction[:, 1])
        softness = None if self.softness is None else stretch * stretch * self.softness
        return replace(self, J=J, phi=stretch * self.phi, friction=friction, softness=softness)

    @once
    def scales(self) -> np.ndarray:
        """Force per velocity of each contact, (nc,), N s/m: :func:`force_scales` of :attr:`compliance`, computed once."""
        return force_scales(self.compliance)

    @property
    def b_size(self) -> float:
        """Sum of all |b| on nodes and links, N, without torques, computed once."""
        return self._measures.b_size

    @once
    def group_rows(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """What :func:`group_rows` finds of the groups, computed once."""
        return group_rows(self.groups)

    @property
    def takes_part(self) -> np.ndarray:
        """Whether each group takes part in each contact, (groups, nc), bool, computed once."""
        return self._measures.groups.takes_part

    @property
    def measured_groups(self) -> Groups:
        """What the balance of bodies is measured with, made once."""
        return self._measures.groups

    @once
    def _measures(self) -> _Measures:
        """What residuals are measured by, found in one call."""
        start, stop, stride = self.group_rows
        nc, J = self.n_contacts, self.J
        loads, moving, least = np.empty((3, len(start)))
        groups = Groups(
            start, stop, stride, self.diagonal, np.zeros((len(start), nc), dtype=np.bool_), loads, moving, least
        )  # fmt: skip
        weight, compliance = np.empty(len(self.b)), np.empty((nc, 3))
        load = self.b if self.b_prescribed is None else self.b - self.b_prescribed
        b_size = metrics_kernels.measure_problem(
            J.indptr, J.indices, J.data, self.b, load, *groups[:6], weight, compliance.reshape(-1)
        )  # fmt: skip
        if self.softness is not None:
            compliance += self.softness
        return _Measures(weight, compliance, groups, b_size)

    @property
    def n_contacts(self) -> int:
        """Number of contacts."""
        return len(self.friction)

    @property
    def is_plain(self) -> bool:
        """Whether there are no rows and contacts are hard: what solvers take as it is."""
        return self.rows is None and self.softness is None

    @property
    def is_isotropic(self) -> bool:
        """Whether every contact has one coefficient in all directions."""
        return self.friction.ndim == 1

    @property
    def coefficients(self) -> np.ndarray:
        """Coefficients along the two tangents, (nc, 2), also where they are equal."""
        if self.is_isotropic:
            return np.repeat(self.friction[:, None], 2, axis=1)
        return self.friction

    @property
    def tangent_stretch(self) -> np.ndarray:
        """Factors N = mu / sqrt(mu1 mu2) of :func:`isotropic`, (nc, 2); ones where friction is isotropic or zero."""
        if self.is_isotropic:
            return np.ones((self.n_contacts, 2))
        ratio = np.sqrt(self.friction[:, 0] / np.where(self.friction[:, 1] > 0, self.friction[:, 1], 1.0))
        ratio[self.friction[:, 0] == self.friction[:, 1]] = 1.0
        return np.column_stack([ratio, 1.0 / ratio])


def make_problem(
    A: sp.spmatrix | sp.sparray,
    b: np.ndarray,
    J: sp.spmatrix | sp.sparray,
    phi: np.ndarray,
    friction: npt.ArrayLike,
    *,
    dt: float,
    groups: Sequence[Group] | None = None,
    rows: Rows | None = None,
    points: npt.ArrayLike | None = None,
    softness: npt.ArrayLike | None = None,
) -> ContactProblem:
    """Validate arrays once and build a :class:`ContactProblem`.

    Parameters
    ----------
    A : sparse matrix, (n, n), N s/m
        Symmetric positive definite.
    b : ndarray, (n,), N
        Right-hand side.
    J : sparse matrix, (3 nc, n)
        Contact Jacobian, normal first.
    phi : ndarray, (nc,) or (nc, 3), m/s
        Offset of the contact velocity; a vector of length nc is the normal offset.
    friction : float or ndarray, (nc,) or (nc, 2)
        Coulomb coefficients; two columns are those along the first and the second tangent (eq. 12), both positive or both zero
        in a contact. Columns that are equal everywhere are kept as one.
    dt : float, s
        Time step.
    groups : sequence of Group, optional
        Bodies in ``v``; they must cover it without overlap. Default: one group of nodes.
    rows : Rows, optional
        Joints, limits and motors, from :func:`contact.rows.make_rows`. Default none.
    points : ndarray, (n,), m, optional
        Where the points of groups of nodes are, at the rows of their velocities; zero in other rows. Solvers are faster with them
        where bodies are large.
    softness : float or ndarray, (nc,) or (nc, 3), m/(N s), optional
        Velocity by which contacts give way to their forces, one number a contact or one for each direction. Default none.

    Raises
    ------
    ContactError
        Wrong sizes, non-finite values, asymmetric A, non-positive diagonal, friction or softness out of range, or groups with
        holes.
    """
    A = real_matrix("A", A, sp.csc_matrix)
    A.sum_duplicates()
    A.sort_indices()
    b = np.ascontiguousarray(real_array("b", b))
    n = b.shape[0] if b.ndim == 1 else -1
    if b.ndim != 1 or A.shape != (n, n):
        raise ContactError(f"A has shape {A.shape} and b has shape {b.shape}; A must be (n, n) and b (n,).")
    J = real_matrix("J", J, sp.csr_matrix)
    J.sum_duplicates()
    J.sort_indices()
    if J.shape[1] != n or J.shape[0] % 3:
        raise ContactError(f"J has shape {J.shape}; it needs three rows a contact and {n} columns, as A has.")
    nc = J.shape[0] // 3
    phi = np.ascontiguousarray(real_array("phi", phi))
    if phi.shape == (nc,):
        phi = np.ascontiguousarray(np.column_stack([phi, np.zeros((nc, 2))]))
    if phi.shape != (nc, 3):
        raise ContactError(f"phi has shape {phi.shape}; allowed are ({nc},) or ({nc}, 3) for {nc} contacts.")
    mu = _shaped_friction(friction, nc)
    for name, values in (("A", A.data), ("b", b), ("J", J.data), ("phi", phi), ("friction", mu)):
        if not np.all(np.isfinite(values)):
            bad = int(np.flatnonzero(~np.isfinite(values.ravel()))[0])
            raise ContactError(f"{name} holds {values.ravel()[bad]} at entry {bad}; every value must be finite.")
    mu = _checked_friction(mu)
    if not isinstance(dt, int | float | np.integer | np.floating) or not (np.isfinite(dt) and dt > 0):
        raise ContactError(f"dt is {dt} s; it must be a positive number of seconds.")
    soft = None if softness is None else _checked_softness(softness, nc)
    normal = np.abs(J).max(axis=1).toarray().ravel()[::3] if nc else np.zeros(0)
    stuck = np.flatnonzero((normal == 0) & (phi[:, 0] < 0) & (True if soft is None else soft[:, 0] == 0))
    if len(stuck):
        raise ContactError(
            f"contact {stuck[0]} approaches at phi_n = {phi[stuck[0], 0]:.3g} m/s, but its normal row of J is zero: nothing can "
            "move along its normal, so the problem has no solution. Leave the contact out, or let a body of v take part in it."
        )
    difference = abs(A - A.T)
    largest = float(abs(A).max()) if A.nnz else 0.0
    if difference.nnz and float(difference.max()) > 1e-9 * largest:
        raise ContactError(
            f"A is not symmetric: the largest difference to its transpose is {float(difference.max()):.3g} "
            f"beside a largest entry of {largest:.3g}; pass the symmetric matrix of eq. (9)."
        )
    diagonal = A.diagonal()
    if n and diagonal.min() <= 0:
        bad = int(np.argmin(diagonal))
        raise ContactError(f"A[{bad}, {bad}] is {diagonal[bad]:.3g}; A must be positive definite.")
    if groups is not None and not isinstance(groups, Iterable):
        raise ContactError(f"groups is one {type(groups).__name__}; give a list of Group, one for each body.")
    groups = tuple(groups) if groups is not None else (Group("all", 0, n, "nodes"),)
    _check_groups(groups, n)
    if rows is not None and not isinstance(rows, Rows):
        raise ContactError(f"rows is a {type(rows).__name__}; make them by make_rows.")
    if rows is not None and rows.G.shape[1] != n:
        raise ContactError(f"G of the rows has shape {rows.G.shape}; it needs {n} columns, as A has.")
    where = None if points is None else np.ascontiguousarray(real_array("points", points))
    if where is not None and (where.shape != (n,) or not np.isfinite(where).all()):
        raise ContactError(f"points has shape {where.shape}; it needs {n} finite numbers, one for each row of v.")
    own_rows = rows if rows is not None and rows.n_rows else None
    return ContactProblem(A, b, J, phi, mu, float(dt), groups, rows=own_rows, points=where, softness=soft)


def _shaped_friction(friction: npt.ArrayLike, nc: int) -> np.ndarray:
    """Coefficients of nc contacts, (nc,) or (nc, 2)."""
    mu = real_array("friction", friction)
    if mu.shape not in ((), (nc,), (nc, 2)):
        raise ContactError(f"friction has shape {mu.shape}; allowed are a number, ({nc},) or ({nc}, 2) for {nc} contacts.")
    return spread(mu, mu.shape if mu.ndim == 2 else (nc,))


def _checked_friction(mu: np.ndarray) -> np.ndarray:
    """Check finite coefficients; two columns that are equal are one, (nc,)."""
    nc = len(mu)
    if nc and mu.min() < 0:
        bad = int(np.argmin(mu.reshape(nc, -1).min(axis=1)))
        raise ContactError(f"friction of contact {bad} is {mu[bad]}; allowed are values >= 0.")
    if mu.ndim == 2:
        half = np.flatnonzero((mu > 0).sum(axis=1) == 1)
        if len(half):
            raise ContactError(
                f"friction of contact {half[0]} is {mu[half[0]]}; two coefficients must both be positive or both be zero. "
                "For a direction without friction give a small positive value."
            )
        if np.array_equal(mu[:, 0], mu[:, 1]):
            return np.ascontiguousarray(mu[:, 0])
    return mu


def _checked_softness(given: npt.ArrayLike, nc: int) -> np.ndarray | None:
    """Return the softness of contacts as (nc, 3), or None where all are hard."""
    values = real_array("softness", given)
    if values.shape not in ((), (nc,), (nc, 3)):
        raise ContactError(f"softness has shape {values.shape}; allowed are a number, ({nc},) or ({nc}, 3) for {nc} contacts.")
    values = spread(values[:, None] if values.ndim == 1 else values, (nc, 3))
    wrong = np.flatnonzero(~((values >= 0) & np.isfinite(values)).all(axis=1))
    if len(wrong):
        raise ContactError(f"softness of contact {wrong[0]} is {values[wrong[0]]}; allowed are finite values >= 0.")
    return values if values.any() else None


def force_scales(W_diagonal: np.ndarray) -> np.ndarray:
    """Force per velocity of each contact, rho = dim / trace of its block of the Delassus operator, (nc,), N s/m.

    dim is 3, or 2 for a plane problem, whose second tangents all have zero rows, and 1 for a contact both of whose tangents have.
    A contact that nothing can move (trace zero) takes the mean compliance of the others, or 1 where all are such.

    Parameters
    ----------
    W_diagonal : ndarray, (nc, 3), m/(N s)
        Diagonal of the Delassus operator, normal first.
    """
    rho = np.empty(len(W_diagonal))
    metrics_kernels.force_scales(np.ascontiguousarray(W_diagonal), rho)
    return rho


def isotropic(problem: ContactProblem) -> ContactProblem:
    """Write the problem with one coefficient a contact.

    With mubar = sqrt(mu1 mu2) and N = diag(mu1, mu2) / mubar, the variables ``lam_t = N lam_t''`` and ``u_t'' = N u_t`` (rows of
    J and phi scaled by N) turn the ellipsoidal cone of eq. (12) into a circular one, and J^T lam and u . lam stay what they are;
    so maximum dissipation becomes the Signorini-Coulomb law with mubar, exactly. Velocities v are those of both problems; forces
    map by :func:`from_isotropic` and :func:`to_isotropic`.

    Parameters
    ----------
    problem : ContactProblem
        Any problem. One whose friction is isotropic is returned itself.
    """
    return problem if problem.is_isotropic else problem.stretched


def from_isotropic(problem: ContactProblem, lam: np.ndarray) -> np.ndarray:
    """Map forces (nc, 3), N, of a problem from those of ``isotropic(problem)``; the same array where friction is isotropic."""
    if problem.is_isotropic:
        return lam
    return np.column_stack([lam[:, 0], problem.tangent_stretch * lam[:, 1:]])


def to_isotropic(problem: ContactProblem, lam: np.ndarray) -> np.ndarray:
    """Map forces (nc, 3), N, of ``isotropic(problem)`` from those of the problem; the same array where friction is isotropic."""
    if problem.is_isotropic:
        return lam
    return np.column_stack([lam[:, 0], lam[:, 1:] / problem.tangent_stretch])


def _are_parents(parents: object, size: int) -> bool:
    """Whether this is a tuple of the row that each of so many rows hangs on."""
    return (
        isinstance(parents, tuple)
        and len(parents) == size
        and all(isinstance(parent, int | np.integer) and -1 <= parent < row for row, parent in enumerate(parents))
    )


def _check_groups(groups: Sequence[Group], n: int) -> None:
    position = 0
    for group in groups:
        if not isinstance(group, Group):
            raise ContactError(f"groups holds a {type(group).__name__}; give Group(name, start, stop, kind) for each body.")
        if group.kind not in tuple(_STRIDE):
            raise ContactError(f"group {group.name!r} has the kind {group.kind!r}; allowed are {', '.join(map(repr, _STRIDE))}.")
        if not all(isinstance(end, int | np.integer) for end in (group.start, group.stop)):
            raise ContactError(f"group {group.name!r} goes from {group.start} to {group.stop}; allowed are whole numbers.")
        if group.start != position or group.stop < group.start:
            raise ContactError(
                f"group {group.name!r} covers rows {group.start} to {group.stop}, but the next free row is {position}; "
                "groups must follow one another without holes."
            )
        if group.stride and (group.stop - group.start) % group.stride:
            raise ContactError(
                f"group {group.name!r} has {group.stop - group.start} rows; a group of {group.kind} has {group.stride} rows "
                f'a {group.kind[:-1]}. Use kind "generalized" for other coordinates.'
            )
        if group.parents is not None and (group.stride or not _are_parents(group.parents, group.stop - group.start)):
            raise ContactError(
                f"group {group.name!r} of {group.stop - group.start} rows of kind {group.kind!r} has the parents "
                f'{group.parents!r}; allowed is, for kind "generalized", a tuple with an earlier row of the group, or -1, for '
                "each row."
            )
        position = group.stop
    if position != n:
        raise ContactError(f"the groups cover {position} of {n} rows of v; they must cover all of them.")

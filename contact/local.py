"""The contact problem condensed to its contacts: u = W r + q with the Signorini-Coulomb law, as arrays.

Much data exists in this form only, often with a W that is not symmetric. Solvers that work on the Delassus operator take it
as it is; for the others :func:`to_global` finds a problem A v = b + J^T lam with the same W.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.linalg as sl
import scipy.sparse as sp

from contact.checked import real_array, spread
from contact.errors import ContactError, NotApplicableError
from contact.metrics import LocalMetrics, measure_law
from contact.problem import ContactProblem, Group, force_scales, make_problem

#: W counts as symmetric when no entry differs from its mirror image by more than this part of the largest entry.
SYMMETRY = 1e-9
#: Negative eigenvalues of W up to this part of the largest are the rounding of who wrote the file (text with eight digits).
ROUNDING = 1e-6
#: Equalities count as dependent on others below this part of the largest singular value of their scaled R.
REDUNDANT = 1e-10


@dataclass(frozen=True)
class LocalRows:
    """What equalities a local problem was condensed from: u = W r + V l + q with V^T r + R l + s = 0 (FCLib's letters).

    Attributes
    ----------
    W : ndarray, (3 nc, 3 nc), m/(N s)
        Delassus operator without the equalities.
    q : ndarray, (nc, 3), m/s
        Contact velocity without any forces.
    V : ndarray, (3 nc, p), and R : ndarray, (p, p), m/(N s)
        Velocities of contacts and of equalities by the forces of equalities. R may be singular: rows that repeat others.
    s : ndarray, (p,), m/s
        Velocity of equalities without any forces.
    """

    W: np.ndarray
    q: np.ndarray
    V: np.ndarray
    R: np.ndarray
    s: np.ndarray

    @cached_property
    def inverse(self) -> np.ndarray:
        """Inverse of R, (p, p), the pseudo-inverse where equalities depend on others: forces of least norm, each scaled."""
        root = np.sqrt(np.abs(self.R.diagonal()))
        scale = 1.0 / np.where(root > 0, root, 1.0)
        return np.asarray(scale[:, None] * np.linalg.pinv(scale[:, None] * self.R * scale, rcond=REDUNDANT) * scale)

    def forces(self, r: np.ndarray) -> np.ndarray:
        """Return the forces of the equalities, (p,), N, where contacts have the forces r, (nc, 3)."""
        return np.asarray(-self.inverse @ (self.V.T @ r.ravel() + self.s))


@dataclass(frozen=True)
class LocalProblem:
    """Find r with u = W r + q and, for each contact, the Signorini-Coulomb law between u and r.

    Build one with :func:`make_local_problem`, which validates. In the notation of :class:`~contact.problem.ContactProblem`, W is
    ``J A^-1 J^T``, q is ``J A^-1 b + phi`` and r is ``lam``.

    Attributes
    ----------
    W : ndarray, (3 nc, 3 nc), m/(N s)
        Delassus operator, normal first in each contact. It may be non-symmetric, and singular.
    q : ndarray, (nc, 3), m/s
        Contact velocity without contact forces.
    friction : ndarray, (nc,)
        Coulomb coefficient of each contact.
    rows : LocalRows, optional
        The equalities that were eliminated; W and q are what is left.
    """

    W: np.ndarray
    q: np.ndarray
    friction: np.ndarray
    rows: LocalRows | None = None

    @property
    def n_contacts(self) -> int:
        """Number of contacts."""
        return int(self.friction.shape[0])

    @cached_property
    def equivalent(self) -> ContactProblem:
        """The problem in global form, by :func:`to_global`, computed once."""
        return to_global(self)

    @cached_property
    def is_semidefinite(self) -> bool:
        """Whether W is symmetric and has no negative eigenvalues, but for rounding, as of some A; computed once."""
        W = self.W
        if float(np.abs(W - W.T).max(initial=0.0)) > SYMMETRY * float(np.abs(W).max(initial=0.0)):
            return False
        symmetric = 0.5 * (W + W.T)
        if not len(W) or _cholesky_root(symmetric) is not None:
            return True
        values = sl.eigvalsh(symmetric)
        return bool(values[0] >= -ROUNDING * np.abs(values).max())

    @cached_property
    def scales(self) -> np.ndarray:
        """Force per velocity of each contact, (nc,), N s/m: ``force_scales`` of the diagonal of W, computed once."""
        return force_scales(self.W.diagonal().reshape(-1, 3))

    def contact_velocity(self, r: np.ndarray) -> np.ndarray:
        """Velocity in the contact frames for forces r, u = W r + q, (nc, 3), m/s, normal first."""
        return np.asarray((self.W @ r.ravel()).reshape(-1, 3) + self.q)


def make_local_problem(W: np.ndarray | sp.spmatrix | sp.sparray, q: np.ndarray, friction: np.ndarray | float) -> LocalProblem:
    """Validate arrays once and build a :class:`LocalProblem`.

    Parameters
    ----------
    W : ndarray or sparse matrix, (3 nc, 3 nc), m/(N s)
        Delassus operator, normal first; it may be non-symmetric. No contact at all is allowed.
    q : ndarray, (nc, 3) or (3 nc,), m/s
        Contact velocity without contact forces.
    friction : ndarray, (nc,) or float
        Coulomb coefficients.

    Raises
    ------
    ContactError
        Wrong sizes, non-finite values, negative friction, or a contact whose diagonal block has no positive trace although its
        rows and columns are not all zero (nothing such comes from a mass matrix; an entirely zero contact cannot be moved).
    """
    W = np.ascontiguousarray(real_array("W", sp.csr_matrix(W).toarray() if sp.issparse(W) else W))
    if W.ndim != 2 or W.shape[0] != W.shape[1] or W.shape[0] % 3:
        raise ContactError(f"W has shape {W.shape}; it must be square with three rows a contact.")
    nc = W.shape[0] // 3
    q = np.ascontiguousarray(real_array("q", q))
    if q.shape not in ((nc, 3), (3 * nc,)):
        raise ContactError(f"q has shape {q.shape}; allowed are ({nc}, 3) or ({3 * nc},) for the {nc} contacts of W.")
    given = real_array("friction", friction)
    if given.shape not in ((), (nc,)):
        raise ContactError(f"friction has shape {given.shape}; allowed are one number or ({nc},) for the {nc} contacts of W.")
    friction = spread(given, (nc,))
    for name, values in (("W", W), ("q", q), ("friction", friction)):
        if not np.isfinite(values).all():
            bad = np.argwhere(~np.isfinite(values))[0]
            raise ContactError(f"{name}[{', '.join(map(str, bad))}] is {values[tuple(bad)]}; every value must be finite.")
    if nc and friction.min() < 0:
        worst = int(np.argmin(friction))
        raise ContactError(f"friction of contact {worst} is {friction[worst]}; allowed are values >= 0.")
    trace = W.diagonal().reshape(nc, 3).sum(axis=1)
    for contact in np.flatnonzero(trace <= 0):
        own = slice(3 * contact, 3 * contact + 3)
        if W[own].any() or W[:, own].any():
            raise ContactError(
                f"the diagonal block of contact {contact} in W has trace {trace[contact]:.3g}; allowed are positive traces, or "
                "contacts whose rows and columns of W are all zero. Check the sign and the order of W."
            )
    return LocalProblem(W, q.reshape(nc, 3), friction)


def eliminate_rows(
    W: np.ndarray, q: np.ndarray, friction: np.ndarray | float, V: np.ndarray, R: np.ndarray, s: np.ndarray
) -> LocalProblem:
    """Build the local problem that is left where equalities V^T r + R l + s = 0 are solved for l (papers/003 section 5).

    W' = W - V R^-1 V^T and q' = q - V R^-1 s; equalities that repeat others are allowed.

    Parameters
    ----------
    W, q, friction
        As for :func:`make_local_problem`, without the equalities.
    V : ndarray, (3 nc, p), R : ndarray, (p, p), and s : ndarray, (p,)
        As in :class:`LocalRows`.

    Raises
    ------
    ContactError
        Wrong sizes or values, also of what is left.
    """
    before = make_local_problem(W, q, friction)
    p, m = len(s), 3 * before.n_contacts
    if V.shape != (m, p) or R.shape != (p, p):
        raise ContactError(f"V has shape {V.shape} and R {R.shape}; {p} equalities (s) ask for ({m}, {p}) and ({p}, {p}).")
    rows = LocalRows(before.W, before.q, V, R, s)
    symmetric = float(np.abs(W - W.T).max(initial=0.0)) <= SYMMETRY * float(np.abs(W).max(initial=0.0))
    left = before.W - V @ rows.inverse @ V.T
    # what is left of contacts that equalities hold fast is rounding
    gone = np.abs(left).max(axis=1, initial=0.0) <= SYMMETRY * np.abs(before.W).max(axis=1, initial=0.0)
    left[gone], left[:, gone] = 0.0, 0.0
    condensed = make_local_problem(
        0.5 * (left + left.T) if symmetric else left, before.q - (V @ (rows.inverse @ s)).reshape(-1, 3), friction
    )
    return LocalProblem(condensed.W, condensed.q, condensed.friction, rows)


def measure_local(problem: LocalProblem, r: np.ndarray) -> LocalMetrics:
    """All residuals of forces r, with u recomputed from them.

    Parameters
    ----------
    problem : LocalProblem
        The problem that was to be solved.
    r : ndarray, (nc, 3) or (3 nc,), N
        Contact forces, normal first.

    Raises
    ------
    ContactError
        A problem of another kind, or another number of forces.
    """
    if not isinstance(problem, LocalProblem):
        raise ContactError(f"measure_local takes a LocalProblem, not a {type(problem).__name__}; measure takes a ContactProblem.")
    r = real_array("r", r)
    if r.size != problem.q.size:
        raise ContactError(f"r has shape {r.shape}; it must hold {problem.q.size} numbers, three for each contact.")
    return measure_law(problem.contact_velocity(r), r.reshape(-1, 3), problem.scales, problem.friction)


def to_global(problem: LocalProblem) -> ContactProblem:
    """Find a problem A v = b + J^T lam whose Delassus operator is W, with the same forces and contact velocities.

    With W = L L^T: A is the identity of the size of the rank, J = L, b = 0 and phi = q. L comes from a Cholesky factorization
    with pivots where that leaves nothing of W but rounding; else, with W = V S V^T, it is ``V sqrt(S)``, where eigenvalues
    within rounding of zero are left out, and negative ones up to 1e-6 of the largest (files written as text). The unknowns are
    one group of kind "generalized"; they have no unit of their own, and dt, which only reports use, is 1 s.

    Parameters
    ----------
    problem : LocalProblem
        Problem with a symmetric W without negative eigenvalues.

    Raises
    ------
    NotApplicableError
        W is not symmetric (an entry differs from its mirror image by more than 1e-9 of the largest), or has negative eigenvalues.
    """
    if not isinstance(problem, LocalProblem):
        raise NotApplicableError(f"to_global takes a LocalProblem, not a {type(problem).__name__}.")
    W, nc = problem.W, problem.n_contacts
    largest, difference = float(np.abs(W).max(initial=0.0)), float(np.abs(W - W.T).max(initial=0.0))
    if difference > SYMMETRY * largest:
        raise NotApplicableError(
            f"W is not symmetric: the largest difference to its transpose is {difference:.3g} beside a largest entry of "
            f"{largest:.3g}, so no problem with a matrix A has it; use a solver that takes W as it is, or (W + W^T)/2, which is "
            "another problem."
        )
    symmetric = 0.5 * (W + W.T)
    J = _cholesky_root(symmetric)
    if J is None:
        J = _eigen_root(symmetric)
    J[~W.any(axis=1)] = 0.0  # exactly, as second tangents of a plane problem are
    if not J.shape[1]:  # nothing moves: one velocity that no contact feels
        J = np.zeros((3 * nc, 1))
    rank = J.shape[1]
    made = (sp.identity(rank, format="csc"), np.zeros(rank), sp.csr_matrix(J), problem.q, problem.friction)
    groups = (Group("all", 0, rank, "generalized"),)
    if (problem.q[~J[::3].any(axis=1), 0] < 0).any():  # nothing can open those contacts: say so
        return make_problem(*made, dt=1.0, groups=groups)
    return ContactProblem(*made, 1.0, groups)  # of numbers that were checked


def _cholesky_root(W: np.ndarray) -> np.ndarray | None:
    """Return L, (m, rank), with W = L L^T to rounding, by a Cholesky factorization with pivots; None where more is left."""
    m, largest = len(W), float(W.diagonal().max(initial=0.0))
    if not largest > 0.0:
        return None
    rounding = m * np.finfo(np.float64).eps * largest
    factor, order, rank, _ = sl.lapack.dpstrf(W, tol=rounding, lower=1)
    root = np.empty((m, rank))
    root[order - 1] = np.tril(factor[:, :rank])
    left = root @ root.T
    left -= W
    return root if float(np.abs(left).max()) <= rounding else None


def _eigen_root(W: np.ndarray) -> np.ndarray:
    """Return L, (m, rank), with W = L L^T but for its eigenvalues that are not above rounding; see :func:`to_global`."""
    values, vectors = sl.eigh(W) if len(W) else (np.zeros(0), np.zeros((0, 0)))
    top = float(np.abs(values).max(initial=0.0))
    if len(W) and values[0] < -ROUNDING * top:
        raise NotApplicableError(
            f"W has the eigenvalue {values[0]:.3g} beside a largest of {top:.3g}; a Delassus operator has no negative ones. "
            "Check its sign and the order of its rows."
        )
    kept = values > len(values) * np.finfo(np.float64).eps * top
    return np.asarray(vectors[:, kept] * np.sqrt(values[kept]))

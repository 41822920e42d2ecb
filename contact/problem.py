"""The contact problem: A v = b + J^T lam under the Signorini-Coulomb law, as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import scipy.sparse as sp

from contact.errors import ContactError

GroupKind = Literal["nodes", "generalized"]


@dataclass(frozen=True)
class Group:
    """A contiguous range of velocity components that belongs to one body.

    Parameters
    ----------
    name : str
        Name used in messages and reports.
    start, stop : int
        Half-open range of rows of ``v``.
    kind : {"nodes", "generalized"}
        ``"nodes"``: consecutive triples are world velocities of points, so a contact can act on them directly.
        ``"generalized"``: rigid or joint coordinates; a contact needs a virtual node there. Generalized groups are small
        (their diagonal block is inverted densely) and couple to nothing outside themselves in ``A``.
    """

    name: str
    start: int
    stop: int
    kind: GroupKind


@dataclass(frozen=True)
class ContactProblem:
    """Find v and lam with A v = b + J^T lam and, for each contact, the Signorini-Coulomb law on u = J v + phi.

    The law of contact m, with u = (u_n, u_t) and lam = (lam_n, lam_t) (papers' eq. 11)::

        0 <= lam_n  _|_  u_n >= 0,   |lam_t| <= mu lam_n,   lam_t = -mu lam_n u_t / |u_t|  where u_t != 0

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
    friction : ndarray, (nc,)
        Coulomb coefficient of each contact.
    dt : float, s
        Time step, used only to turn velocities into lengths in reports.
    groups : tuple of Group
        Which rows of v belong to which body.
    """

    A: sp.csc_matrix
    b: np.ndarray
    J: sp.csr_matrix
    phi: np.ndarray
    friction: np.ndarray
    dt: float
    groups: tuple[Group, ...]

    @property
    def n(self) -> int:
        """Number of velocity components."""
        return int(self.b.shape[0])

    @cached_property
    def diagonal(self) -> np.ndarray:
        """Diagonal of A, (n,), computed once."""
        return np.asarray(self.A.diagonal())

    @property
    def n_contacts(self) -> int:
        """Number of contacts."""
        return int(self.friction.shape[0])


def make_problem(
    A: sp.spmatrix | sp.sparray,
    b: np.ndarray,
    J: sp.spmatrix | sp.sparray,
    phi: np.ndarray,
    friction: np.ndarray | float,
    *,
    dt: float,
    groups: Sequence[Group] | None = None,
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
    friction : ndarray, (nc,) or float
        Coulomb coefficients.
    dt : float, s
        Time step.
    groups : sequence of Group, optional
        Bodies in ``v``; they must cover it without overlap. Default: one group of nodes.

    Raises
    ------
    ContactError
        Wrong sizes, non-finite values, asymmetric A, non-positive diagonal, negative friction, or groups with holes.
    """
    A = sp.csc_matrix(A, dtype=np.float64)
    A.sum_duplicates()
    A.sort_indices()
    b = np.ascontiguousarray(b, dtype=np.float64)
    n = b.shape[0] if b.ndim == 1 else -1
    if b.ndim != 1 or A.shape != (n, n):
        raise ContactError(f"A has shape {A.shape} and b has shape {b.shape}; A must be (n, n) and b (n,).")
    J = sp.csr_matrix(J, dtype=np.float64)
    J.sum_duplicates()
    J.sort_indices()
    if J.shape[1] != n or J.shape[0] % 3:
        raise ContactError(f"J has shape {J.shape}; it needs three rows a contact and {n} columns, as A has.")
    nc = J.shape[0] // 3
    phi = np.ascontiguousarray(phi, dtype=np.float64)
    if phi.shape == (nc,):
        phi = np.ascontiguousarray(np.column_stack([phi, np.zeros((nc, 2))]))
    if phi.shape != (nc, 3):
        raise ContactError(f"phi has shape {phi.shape}; allowed are ({nc},) or ({nc}, 3) for {nc} contacts.")
    friction = np.ascontiguousarray(np.broadcast_to(np.asarray(friction, dtype=np.float64), (nc,)))
    for name, values in (("A", A.data), ("b", b), ("J", J.data), ("phi", phi), ("friction", friction)):
        if not np.all(np.isfinite(values)):
            bad = int(np.flatnonzero(~np.isfinite(values.ravel()))[0])
            raise ContactError(f"{name} holds {values.ravel()[bad]} at entry {bad}; every value must be finite.")
    if nc and friction.min() < 0:
        bad = int(np.argmin(friction))
        raise ContactError(f"friction of contact {bad} is {friction[bad]}; allowed are values >= 0.")
    if not (np.isfinite(dt) and dt > 0):
        raise ContactError(f"dt is {dt} s; it must be a positive number of seconds.")
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
    groups = tuple(groups) if groups is not None else (Group("all", 0, n, "nodes"),)
    _check_groups(groups, n)
    return ContactProblem(A, b, J, phi, friction, float(dt), groups)


def _check_groups(groups: Sequence[Group], n: int) -> None:
    position = 0
    for group in groups:
        if group.start != position or group.stop < group.start:
            raise ContactError(
                f"group {group.name!r} covers rows {group.start} to {group.stop}, but the next free row is {position}; "
                "groups must follow one another without holes."
            )
        if group.kind == "nodes" and (group.stop - group.start) % 3:
            raise ContactError(
                f"group {group.name!r} has {group.stop - group.start} rows; a group of nodes has three rows a node. "
                'Use kind "generalized" for other coordinates.'
            )
        position = group.stop
    if position != n:
        raise ContactError(f"the groups cover {position} of {n} rows of v; they must cover all of them.")

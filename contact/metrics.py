"""THE yardstick: residuals of a contact solution, computed outside all solvers.

Every function takes the problem and the returned pair (v, lam) and recomputes what it needs from ``A, b, J`` and
``phi``; nothing a solver reports about itself enters, and what is ``known`` was computed here before. Signs and scalings
follow the Signorini-Coulomb law in the form of De Saxce: with u = J v + phi and uh = u + (mu |u_t|, 0, 0), the law is
K* contains uh,  lam in K,  uh . lam = 0, which is lam = P_K(lam - rho uh) for any rho > 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from contact import metrics_kernels as kernels
from contact.checked import real_array
from contact.compressed import times_transposed
from contact.errors import ContactError
from contact.jacobian_kernels import contact_velocities, hush, is_slower, scatter_with_squares
from contact.metrics_kernels import larger, relative
from contact.problem import ContactProblem, force_scales, isotropic, to_isotropic

#: What soft contacts lack is relative at least to this part of rho phi.
_LEAST_OF_SOFT = 1e-6
#: Part of the largest 1 / rho of its vector that each row has at least.
_LEAST_OF_VECTOR = 1e-4
#: A velocity counts in the law of rows at least this part of what other velocities of its equation would make of it.
_LEAST_OF_MOTION = 1e-6
#: A contact velocity is rounding's up to this part of the sum of the sizes of its terms; those up to the second number times the
#: largest velocity are asked.
_ROUNDING, _ASKED = 1e-14, 1e-12


@dataclass
class LocalMetrics:
    """Residuals of the contact law alone, over all contacts; 0 without any.

    Attributes
    ----------
    contact_residual : float
        Unit-free, see the function of this name; of a local problem :func:`natural_map`.
    cone_violation : float, N
        Largest distance by which a force leaves its cone: |lam_t| - mu lam_n, or -lam_n.
    complementarity : float, W
        Largest |u_n lam_n|.
    penetration_velocity : float, m/s
        Largest -u_n.
    slip_alignment : float
        Largest 1 + cos(angle between slip and friction force) over contacts that clearly slide and press; 0 is exact. Clearly:
        tangential speed above 1e-6 of the largest contact speed and of the largest speed that the forces could undo
        (|lam| / rho), normal force above 1e-6 of the largest.
    """

    contact_residual: float
    cone_violation: float
    complementarity: float
    penetration_velocity: float
    slip_alignment: float

    def as_dict(self) -> dict[str, float]:
        """All numbers by name."""
        return dict(vars(self))


@dataclass
class Metrics(LocalMetrics):
    """Residuals of one solution; of what it has beside the contact law see the function of the same name for each formula."""

    dynamics_residual: float
    dynamics_residual_plain: float
    balance: float
    row_residual: float = 0.0


def contact_velocity(problem: ContactProblem, v: np.ndarray) -> np.ndarray:
    """Velocity in the contact frames, u = J v + phi, (nc, 3), m/s, normal first; what soft contacts give way is not in it."""
    J = problem.J
    problem.check_velocity(v)
    u = np.empty(problem.phi.shape)
    contact_velocities(J.indptr, J.indices, J.data, v, problem.phi, u)
    return u


def norm(x: np.ndarray) -> float:
    """2-norm of all numbers; as np.linalg.norm to the last bit, in a quarter of its time for short arrays."""
    flat = x.ravel()
    return math.sqrt(flat.dot(flat))


def is_finite(x: np.ndarray) -> bool:
    """Whether all numbers are finite; of short arrays in a third of the time that numpy takes."""
    flat = x if x.ndim == 1 else x.ravel()
    return math.isfinite(flat.dot(flat)) or bool(np.isfinite(flat).all())


def any_of(x: np.ndarray) -> bool:
    """Whether any number of an array, (n, ...), is not zero; of short ones in a fifth of the time of numpy's ``any``."""
    return len(x.nonzero()[0]) > 0


# ---------------------------------------------------------------------- the dynamics


class _Terms(NamedTuple):
    """A v, b and J^T lam + G^T lam_r, (n,) each, N."""

    Av: np.ndarray
    b: np.ndarray
    force: np.ndarray

    def sizes(self, weight: np.ndarray) -> tuple[float, float, float]:
        """Residual and largest term in the norm that a weight of each row makes, and residual in the plain one."""
        return kernels.term_sizes(*self, weight)


def _terms(
    problem: ContactProblem,
    v: np.ndarray,
    lam: np.ndarray,
    Av: np.ndarray | None = None,
    row_forces: np.ndarray | None = None,
) -> _Terms:
    force = problem.pushed(lam)
    if problem.rows is not None and row_forces is not None:
        force += times_transposed(problem.rows.G, row_forces)
    return _Terms(problem.times(v) if Av is None else Av, problem.b, force)


def _sizes(problem: ContactProblem, terms: _Terms, lam: np.ndarray) -> tuple[float, float, float]:
    """Residual of the dynamics, largest term in the same norm, N, and residual in the plain norm.

    Forces on what is soft in contacts count among the terms, as if it had rows of A: two soft contacts that squeeze a body
    between them push with no net force on it.
    """
    if problem.softness is None:
        return terms.sizes(problem.weight)
    wrong, lam = terms.Av - terms.b - terms.force, lam.reshape(-1, 3)
    soft, plain = norm(np.sqrt(problem.softness) * lam), norm(lam[problem.softness > 0])
    weighted = [norm(problem.weight * term) for term in (terms.Av, terms.b, terms.force)]
    size, largest = math.hypot(max(weighted), soft), math.hypot(max(map(norm, (terms.Av, terms.b, terms.force))), plain)
    return float(relative(norm(problem.weight * wrong), size)), size, float(relative(norm(wrong), largest))


def dynamics_residual(problem: ContactProblem, v: np.ndarray, lam: np.ndarray, Av: np.ndarray | None = None) -> float:
    """Relative residual of the dynamics, unit-free.

    ``||A v - b - J^T lam|| / max(||A v||, ||b||, ||J^T lam||)`` in the norm ``||r||^2 = sum r_i^2 / A_ii``, which does not
    change when a component of v changes its unit (papers/001 gives no such measure; see papers/004 for the family). ``Av``,
    (n,), N, is A v where the caller has it.
    """
    return _sizes(problem, _terms(problem, v, lam, Av), lam)[0]


def dynamics_residual_plain(problem: ContactProblem, v: np.ndarray, lam: np.ndarray) -> float:
    """Relative residual of the dynamics in the plain 2-norm, the measure that checkers of FCLib files use.

    The formula of :func:`dynamics_residual` without its weights: it mixes forces and torques where v has both, and rows with a
    large A hide the others.
    """
    return _sizes(problem, _terms(problem, v, lam), lam)[2]


def rounding(problem: ContactProblem, v: np.ndarray, lam: np.ndarray) -> float:
    """Dynamics residual, unit-free, that is left because v has no more digits than a number holds.

    Each v_j is off by up to half a unit in its last place, eps/2 of it, and these errors add up as independent ones do:
    ``eps/2 ||(sum_j (a_ij v_j)^2)^1/2||`` over the largest term, in the norm of :func:`dynamics_residual`. It is large where
    stiff forces cancel: 6e-7 for a bar of steel of 0.24 m that falls for 50 ms. No answer is much better (measured: 0.4 to 2.2
    times this, the best answers of five solvers).
    """
    A, Av, squares = problem.A, np.empty(problem.n), np.empty(problem.n)
    scatter_with_squares(A.indptr, A.indices, A.data, v, Av, squares)
    _, size, _ = _sizes(problem, _terms(problem, v, lam, Av), lam)
    return float(relative(0.5 * np.finfo(np.float64).eps * norm(problem.weight * np.sqrt(squares)), size))


def rounding_at_most(problem: ContactProblem, v: np.ndarray, lam: np.ndarray | None = None) -> float:
    """Bound of :func:`rounding` without a product with A: ``eps/2 (k sum_j a_jj v_j^2)^1/2 / max(||b||, ||J^T lam||)``.

    Entries of a positive definite A are at most ``(a_ii a_jj)^1/2``; k is the largest number of entries in one of its columns.
    Without ``lam`` there are no contact forces.
    """
    columns, weight = np.diff(problem.A.indptr), problem.weight
    moved = float(columns.max(initial=0)) * float((problem.diagonal * v).dot(v))
    size = norm(weight * problem.b)
    if lam is not None:
        size = max(size, norm(weight * problem.pushed(lam)))
    return float(relative(0.5 * np.finfo(np.float64).eps * math.sqrt(moved), size))


# ---------------------------------------------------------------------- the contact law, one formula each


def natural_map(u: np.ndarray, lam: np.ndarray, rho: np.ndarray, friction: np.ndarray, relaxed: bool = False) -> float:
    """Natural-map residual of the Signorini-Coulomb law in De Saxce form, unit-free; zero exactly at solutions.

    ``||lam - P_K(lam - rho uh)|| / max(||lam||, ||rho uh||)``. Arguments as for :func:`measure_law`.
    """
    if not len(lam):
        return 0.0
    return float(relative(*kernels.natural_map(lam.ravel(), u.ravel(), friction, rho, not relaxed)))


def measure_law(u: np.ndarray, lam: np.ndarray, rho: np.ndarray, friction: np.ndarray, relaxed: bool = False) -> LocalMetrics:
    """Residuals of the contact law; all are 0 when there is no contact.

    Parameters
    ----------
    u : ndarray, (nc, 3), m/s
        Contact velocities, normal first.
    lam : ndarray, (nc, 3), N
        Contact forces, normal first.
    rho : ndarray, (nc,), N s/m
        Scales of :func:`force_scales`.
    friction : ndarray, (nc,)
        Coulomb coefficients.
    relaxed : bool
        Judge the contact residual by the convex relaxation of papers/001 eq. (28), uh = u, that the proximal operator solves.
    """
    return LocalMetrics(natural_map(u, lam, rho, friction, relaxed), *kernels.law_sizes(u, lam, rho, friction))


# ---------------------------------------------------------------------- the same, of a problem and (v, lam)


def natural_map_scale(problem: ContactProblem, regularization: float = 0.0) -> np.ndarray:
    """Force per velocity of each contact, (nc,), N s/m: :func:`force_scales` of J diag(A)^-1 J^T + Omega, isotropic variables."""
    same = isotropic(problem)
    if not regularization:
        return same.scales
    squared = same.compliance.copy()
    squared[:, 0] += regularization
    squared[:, 1:] += regularization * problem.tangent_stretch**2
    return force_scales(squared)


class LawArguments(NamedTuple):
    """What the contact law is about, in the variables of ``isotropic(problem)``: see :func:`measure_law`; phi is part of u."""

    u: np.ndarray
    lam: np.ndarray
    rho: np.ndarray
    friction: np.ndarray
    phi: np.ndarray


def law_arguments(
    problem: ContactProblem, v: np.ndarray, lam: np.ndarray, regularization: float = 0.0, slip: np.ndarray | None = None
) -> LawArguments:
    """Arguments of :func:`measure_law`, with u + regularization lam for u, and + softness lam of soft contacts.

    ``slip``, (nc, 3), m/s, is added to the contact velocities. Where rounding makes them, and forces are such as they
    would ask for, both are zero, but for ``slip`` and ``regularization``: two bodies that touch and fall side by side, turned,
    approach each other at 1e-16 m/s.
    """
    lam, same, u = problem.each(lam), isotropic(problem), contact_velocity(problem, v)
    if same is problem and problem.softness is None and slip is None and not regularization:
        return _without_rounding(problem, v, LawArguments(u, lam, problem.scales, problem.friction, problem.phi))
    if slip is not None:
        u += slip
    if regularization:
        u += regularization * lam
    if problem.softness is not None:
        u += problem.softness * lam
    if same is not problem:
        u[:, 1:] *= problem.tangent_stretch
    rho = natural_map_scale(problem, regularization)
    law = LawArguments(u, to_isotropic(problem, lam), rho, same.friction, same.phi)
    return law if slip is not None or regularization else _without_rounding(same, v, law)


def _sizes_of_terms(problem: ContactProblem, v: np.ndarray) -> np.ndarray:
    """Size of the motion of which v_j is what is left, (n,), m/s: ``(sum_k (a_jk v_k)^2)^1/2 / a_jj``, at least |v_j|.

    Of a generalized group ``(sum_i s_i^2 a_ii / a_jj)^1/2`` over its rows, s_i as above: what rounding leaves in one equation
    moves all of its joints. One that is at rest in a robot that falls turns at 1e-17 rad/s. |v_j| where squares overflow.
    """
    A, diagonal, (Av, squares) = problem.A, problem.diagonal, np.empty((2, problem.n))
    scatter_with_squares(A.indptr, A.indices, A.data, v, Av, squares)
    with np.errstate(over="ignore", invalid="ignore"):
        for group in problem.groups:
            if group.kind == "generalized":
                own = slice(group.start, group.stop)
                squares[own] = diagonal[own] * (squares[own] / diagonal[own]).sum()
        sizes = np.sqrt(squares) / diagonal
    return np.where(np.isfinite(sizes), sizes, np.abs(v))


def _without_rounding(problem: ContactProblem, v: np.ndarray, law: LawArguments) -> LawArguments:
    """Set velocities and forces of contacts to zero that are but rounding of the terms of the velocities, in a copy."""
    if not is_slower(law.u, law.lam, v, _ASKED):
        return law
    law, J = law._replace(lam=law.lam.copy()), problem.J
    hush(J.indptr, J.indices, J.data, _sizes_of_terms(problem, v), law.phi, law.rho, _ROUNDING, law.u, law.lam)
    return law


def contact_residual(
    problem: ContactProblem, v: np.ndarray, lam: np.ndarray, *, regularization: float = 0.0, relaxed: bool = False
) -> float:
    """Residual of the contact law, unit-free: :func:`natural_map`; 0 when there is no contact. Options as for :func:`measure`.

    What soft contacts lack is relative at least to 1e-6 of their rho phi: where one closes just at the end of a step, all that
    the natural map divides by is rounding.
    """
    return _contact_residual(problem, law_arguments(problem, v, lam, regularization), relaxed)


def _contact_residual(problem: ContactProblem, law: LawArguments, relaxed: bool) -> float:
    u, lam, rho, friction, phi = law
    residual, scale = kernels.natural_map(lam.ravel(), u.ravel(), friction, rho, not relaxed)
    if problem.softness is not None:
        soft = problem.softness.any(axis=1)
        scale = max(scale, _LEAST_OF_SOFT * norm(rho[soft] * phi[soft, 0]))
    return float(relative(residual, scale))


def balance(problem: ContactProblem, v: np.ndarray, lam: np.ndarray) -> float:
    """Worst relative force balance of a body.

    Groups of nodes or links: ``|R| / max(|F|, |B|, 0.01 S)`` with R the sum of the forces in A v - b - J^T lam over nodes or
    links (torques of links do not count), F that of J^T lam, B that of b (without what velocities that are given put there, see
    ``ContactProblem.b_prescribed``), and S the sum of |lam| on the group. Elastic forces
    cancel in the sums, so this is the error of "contact forces + gravity = rate of momentum change", which a small residual of
    stiff elastic rows can hide, relative to the net force also where two fingers press against each other. Generalized groups:
    the dynamics residual of their own rows. No scale is below 1e-6 of its kind for the whole problem, nor below 1e-6 of the root
    of the sum of squares of a_ii v_i of the group: forces of a stiff body that moves cancel only up to their rounding, of which
    that is 225 times at the tolerance 5e-8 of solvers.
    """
    terms = _terms(problem, v, lam)
    return _balance(problem, v, lam, terms, _sizes(problem, terms, lam)[1])


def _balance(
    problem: ContactProblem, v: np.ndarray, lam: np.ndarray, terms: _Terms, size: float, loads: np.ndarray | None = None
) -> float:
    groups = problem.measured_groups if loads is None else problem.measured_groups._replace(loads=loads)
    forces = lam.reshape(problem.phi.shape)
    return float(kernels.balances(groups, terms.Av, terms.b, terms.force, v, forces, size * size, problem.b_size))


# ---------------------------------------------------------------------- rows


def row_residual(problem: ContactProblem, v: np.ndarray, row_forces: np.ndarray | None) -> float:
    """Residual of the law of joints, limits and motors, unit-free; 0 where a problem has no rows.

    ``||lam_r - clip(lam_r - rho w, low, high)|| / max(||lam_r||, ||rho (|G| |v| + |offset|)||)``, w the velocities of the rows
    and 1 / rho the diagonal of G diag(A)^-1 G^T + softness, in the norm ``||f||^2 = sum f_i^2 / rho_i``. Rows that nothing can
    move take the mean of the others, or 1 where all are such; no other row counts for less than a hundredth of the largest one of
    its vector, beside which it may be rounding. Each |v_j| counts at least 1e-6 of the motion of whose terms it is the rest.

    Parameters
    ----------
    problem : ContactProblem
        The problem that was to be solved.
    v : ndarray, (n,), m/s
        Velocity.
    row_forces : ndarray, (p,), N
        Forces of the rows.

    Raises
    ------
    ContactError
        Not one force for each row.
    """
    rows = problem.rows
    if rows is None:
        return 0.0
    if row_forces is None or row_forces.shape != (rows.n_rows,):
        said = "none" if row_forces is None else f"an array {row_forces.shape}"
        raise ContactError(f"the problem has {rows.n_rows} rows; give one force for each ({said} was given).")
    G, diagonal, give = rows.G, problem.diagonal, np.empty(rows.n_rows)
    unsure = _LEAST_OF_MOTION * _sizes_of_terms(problem, v)
    wrong, force, reach = kernels.row_sizes(
        G.indptr, G.indices, G.data, rows.offset, rows.low, rows.high, rows.softness, rows.vector, _LEAST_OF_VECTOR, diagonal,
        v, row_forces, unsure, give,
    )  # fmt: skip
    return float(relative(wrong, larger(force, reach)))


class Residuals(NamedTuple):
    """What decides on convergence, unit-free; see the functions of these names."""

    dynamics: float
    contact: float
    balance: float
    plain: float

    @property
    def worst(self) -> float:
        """The larger of dynamics and contact residual, by which iterates are compared."""
        return max(self.dynamics, self.contact)


def residuals(
    problem: ContactProblem,
    v: np.ndarray,
    lam: np.ndarray,
    *,
    relaxed: bool = False,
    loads: np.ndarray | None = None,
    Av: np.ndarray | None = None,
    law: LawArguments | None = None,
    row_forces: np.ndarray | None = None,
) -> Residuals:
    """Dynamics residual, contact residual, balance and plain dynamics residual in one pass.

    ``loads``, (groups,), N, is the load on each group of nodes or links to which its balance is relative, |B| of :func:`balance`
    by default. ``Av``, (n,), N, and ``law``, what :func:`law_arguments` gives, are handed over where the caller has them.
    ``relaxed`` and ``row_forces`` are those of :func:`measure`; rows without forces do not count.
    """
    terms = _terms(problem, v, lam, Av, row_forces)
    law = law or law_arguments(problem, v, lam)
    if problem.softness is None:
        u, forces, rho, friction, _ = law
        groups = problem.measured_groups if loads is None else problem.measured_groups._replace(loads=loads)
        found = kernels.residuals(
            *groups, *terms, v, lam.reshape(problem.phi.shape), problem.weight, u.ravel(), forces.ravel(), rho, friction, relaxed,
            problem.b_size,
        )  # fmt: skip
        return Residuals(*found)
    dynamics, size, plain = _sizes(problem, terms, lam)
    contact = _contact_residual(problem, law, relaxed)
    return Residuals(dynamics, contact, _balance(problem, v, lam, terms, size, loads), plain)


def measure(
    problem: ContactProblem,
    v: np.ndarray,
    lam: np.ndarray,
    *,
    regularization: float = 0.0,
    relaxed: bool = False,
    row_forces: np.ndarray | None = None,
    known: Residuals | None = None,
    law: LawArguments | None = None,
) -> Metrics:
    """All metrics of a returned pair.

    Those of the contact law are computed in the variables of ``isotropic(problem)``, which change nothing where friction is
    isotropic.

    Parameters
    ----------
    problem : ContactProblem
        The problem that was to be solved.
    v : ndarray, (n,), m/s
        Velocity.
    lam : ndarray, (nc, 3) or (3 nc,), N
        Contact forces, normal first.
    regularization : float, m/(N s)
        Judge the regularised law of papers/001 eq. (37), in which u = J v + phi + regularization lam; default the exact law.
    relaxed : bool
        Judge the contact residual by the convex relaxation that the proximal operator solves, see :func:`measure_law`.
    row_forces : ndarray, (p,), N
        Forces of the rows of a problem that has rows; G^T of them is part of all sums of forces.
    known : Residuals, optional
        What :func:`residuals` gave for the same arguments, of which there is nothing to compute again.
    law : LawArguments, optional
        What :func:`law_arguments` gave for the same arguments.

    Raises
    ------
    ContactError
        A problem of another kind, another number of velocities or forces, or a regularization below zero.
    """
    if not isinstance(problem, ContactProblem):
        raise ContactError(f"measure takes a ContactProblem, not a {type(problem).__name__}; measure_local takes a LocalProblem.")
    v, lam = real_array("v", v), real_array("lam", lam)
    row_forces = None if row_forces is None else real_array("row_forces", row_forces)
    if not isinstance(regularization, int | float | np.integer | np.floating) or not 0.0 <= regularization < math.inf:
        raise ContactError(f"regularization is {regularization!r}; allowed are numbers >= 0, in m/(N s).")
    law = law or law_arguments(problem, v, lam, regularization)
    found = known or residuals(problem, v, lam, relaxed=relaxed, law=law, row_forces=row_forces)
    cone, product, approach, slip = kernels.law_sizes(*law[:4])
    row = row_residual(problem, v, row_forces)
    return Metrics(found.contact, cone, product, approach, slip, found.dynamics, found.plain, found.balance, row)

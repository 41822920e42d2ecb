"""THE yardstick: residuals of a contact solution, computed outside all solvers.

Every function takes the problem and the returned pair (v, lam) and recomputes what it needs from ``A, b, J`` and
``phi``; nothing a solver reports about itself enters. Signs and scalings follow the Signorini-Coulomb law in the
form of De Saxce: with u = J v + phi and uh = u + (mu |u_t|, 0, 0), the law is  K* contains uh,  lam in K,  uh . lam = 0,
which is lam = P_K(lam - rho uh) for any rho > 0.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np

from contact.cone import project_cones
from contact.problem import ContactProblem

TINY = 1e-300
#: A force balance is relative to the net force on a body, but at least to this part of the sum of all force magnitudes on it.
NET_FRACTION = 0.01
#: ... and to this part of the sum of all |b|, far above rounding, where nothing acts on a body.
NOISE_FRACTION = 1e-6


@dataclass(frozen=True)
class Metrics:
    """Residuals of one solution; see the function of the same name for each formula."""

    dynamics_residual: float
    contact_residual: float
    cone_violation: float
    complementarity: float
    penetration_velocity: float
    slip_alignment: float
    balance: float

    def as_dict(self) -> dict[str, float]:
        """All numbers by name."""
        return asdict(self)


def contact_velocity(problem: ContactProblem, v: np.ndarray) -> np.ndarray:
    """Velocity in the contact frames, u = J v + phi, (nc, 3), m/s, normal first."""
    return np.asarray((problem.J @ v).reshape(-1, 3) + problem.phi)


def _norm(x: np.ndarray) -> float:
    return float(np.linalg.norm(x))


def dynamics_residual(problem: ContactProblem, v: np.ndarray, lam: np.ndarray) -> float:
    """Relative residual of the dynamics, unit-free.

    ``||A v - b - J^T lam|| / max(||A v||, ||b||, ||J^T lam||)`` in the norm ``||r||^2 = sum r_i^2 / A_ii``, which does not
    change when a component of v changes its unit (papers/001 gives no such measure; see papers/004 for the family).
    """
    weight = 1.0 / np.sqrt(problem.diagonal)
    Av = problem.A @ v
    force = problem.J.T @ lam.ravel()
    scale = max(_norm(weight * Av), _norm(weight * problem.b), _norm(weight * force), TINY)
    return _norm(weight * (Av - problem.b - force)) / scale


def natural_map_scale(problem: ContactProblem) -> np.ndarray:
    """Force per velocity of each contact, rho = 3 / trace of its block of J diag(A)^-1 J^T, (nc,), N s/m."""
    squared = problem.J.multiply(problem.J) @ (1.0 / problem.diagonal)
    return np.asarray(3.0 / np.maximum(squared.reshape(-1, 3).sum(axis=1), TINY))


def contact_residual(problem: ContactProblem, v: np.ndarray, lam: np.ndarray) -> float:
    """Natural-map residual of the Signorini-Coulomb law in De Saxce form, unit-free.

    ``||lam - P_K(lam - rho uh)|| / max(||lam||, ||rho uh||)`` with rho of :func:`natural_map_scale`; zero exactly at
    solutions. 0 when there is no contact.
    """
    if problem.n_contacts == 0:
        return 0.0
    lam = lam.reshape(-1, 3)
    u = contact_velocity(problem, v)
    u[:, 0] += problem.friction * np.linalg.norm(u[:, 1:], axis=1)
    rho_u = natural_map_scale(problem)[:, None] * u
    residual = lam - project_cones(lam - rho_u, problem.friction)
    return _norm(residual) / max(_norm(lam), _norm(rho_u), TINY)


def cone_violation(problem: ContactProblem, lam: np.ndarray) -> float:
    """Largest distance by which a force leaves its cone, N: max over contacts of |lam_t| - mu lam_n and -lam_n."""
    if problem.n_contacts == 0:
        return 0.0
    lam = lam.reshape(-1, 3)
    outside = np.linalg.norm(lam[:, 1:], axis=1) - problem.friction * lam[:, 0]
    return float(max(outside.max(), -lam[:, 0].min(), 0.0))


def complementarity(problem: ContactProblem, v: np.ndarray, lam: np.ndarray) -> float:
    """Largest |u_n lam_n|, W: power that a contact without restitution must not have."""
    if problem.n_contacts == 0:
        return 0.0
    return float(np.abs(contact_velocity(problem, v)[:, 0] * lam.reshape(-1, 3)[:, 0]).max())


def penetration_velocity(problem: ContactProblem, v: np.ndarray) -> float:
    """Largest approach velocity that is left over, m/s: max of -(u_n), 0 when all contacts hold."""
    if problem.n_contacts == 0:
        return 0.0
    return float(max(-contact_velocity(problem, v)[:, 0].min(), 0.0))


def slip_alignment(problem: ContactProblem, v: np.ndarray, lam: np.ndarray) -> float:
    """Largest 1 + cos(angle between slip and friction force) over contacts that clearly slide and press; 0 is exact.

    Clearly: tangential speed above 1e-6 of the largest contact speed and of the largest speed that the forces could undo
    (|lam| / rho), normal force above 1e-6 of the largest.
    """
    if problem.n_contacts == 0:
        return 0.0
    lam = lam.reshape(-1, 3)
    u = contact_velocity(problem, v)
    speed, force = np.linalg.norm(u[:, 1:], axis=1), np.linalg.norm(lam[:, 1:], axis=1)
    undone = np.linalg.norm(lam, axis=1) / natural_map_scale(problem)
    slides = (
        (speed > 1e-6 * max(np.abs(u).max(), undone.max(), TINY)) & (lam[:, 0] > 1e-6 * max(lam[:, 0].max(), TINY)) & (force > 0)
    )
    if not slides.any():
        return 0.0
    cosine = (u[slides, 1:] * lam[slides, 1:]).sum(axis=1) / (speed[slides] * force[slides])
    return float((1.0 + cosine).max())


def balance(problem: ContactProblem, v: np.ndarray, lam: np.ndarray) -> float:
    """Worst relative force balance of a body.

    Groups of nodes: ``|R| / max(|F|, |B|, 0.01 S)`` with R the sum over nodes of A v - b - J^T lam, F that of J^T lam, B that of
    b, and S the sum of |lam| on the group. Elastic forces cancel in the sums, so this is the error of "contact forces +
    gravity = rate of momentum change", which a small residual of stiff elastic rows can hide, relative to the net force also
    where two fingers press against each other. Generalized groups: the dynamics residual of their own rows. No scale is below
    1e-6 of its kind for the whole body or problem.
    """
    force = problem.J.T @ lam.ravel()
    Av = problem.A @ v
    residual = Av - problem.b - force
    weight = 1.0 / np.sqrt(problem.diagonal)
    whole = max(_norm(weight * part) for part in (Av, problem.b, force))
    magnitude = np.linalg.norm(lam.reshape(-1, 3), axis=1)
    worst = 0.0
    for group in problem.groups:
        rows = slice(group.start, group.stop)
        if group.kind == "nodes":
            total = _norm(residual[rows].reshape(-1, 3).sum(axis=0))
            touching = np.diff(problem.J[:, rows].indptr).reshape(-1, 3).any(axis=1)
            net = (_norm(part[rows].reshape(-1, 3).sum(axis=0)) for part in (force, problem.b))
            noise = NOISE_FRACTION * float(np.abs(problem.b[rows]).sum())
            scale = max(*net, NET_FRACTION * float(magnitude[touching].sum()), noise)
        else:
            total = _norm((weight * residual)[rows])
            scale = max(max(_norm((weight * part)[rows]) for part in (Av, problem.b, force)), NOISE_FRACTION * whole)
        worst = max(worst, total / max(scale, TINY))
    return worst


def measure(problem: ContactProblem, v: np.ndarray, lam: np.ndarray) -> Metrics:
    """All metrics of a returned pair.

    Parameters
    ----------
    problem : ContactProblem
        The problem that was to be solved.
    v : ndarray, (n,), m/s
        Velocity.
    lam : ndarray, (nc, 3) or (3 nc,), N
        Contact forces, normal first.
    """
    return Metrics(
        dynamics_residual(problem, v, lam),
        contact_residual(problem, v, lam),
        cone_violation(problem, lam),
        complementarity(problem, v, lam),
        penetration_velocity(problem, v),
        slip_alignment(problem, v, lam),
        balance(problem, v, lam),
    )

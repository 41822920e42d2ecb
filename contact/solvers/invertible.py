"""Contact forces from the velocity alone: the inverse of the regularised contact model (papers/001 III-E1, V-F)."""

from __future__ import annotations

from typing import Literal

import numpy as np

from contact.cone import project_forces
from contact.errors import ContactError
from contact.metrics import contact_velocity
from contact.problem import ContactProblem


def inverse_contact(
    problem: ContactProblem,
    v: np.ndarray,
    regularization: float,
    *,
    operator: Literal["strict", "proximal"] = "proximal",
) -> np.ndarray:
    """Contact forces that belong to a velocity under the contact law with Omega = regularization I (eq. 37).

    The law holds for u + Omega lam with u = J v + phi, so lam = SOL(u, Omega) of the paper: contact by contact the operator of
    eq. (26) applied to -u / regularization. (Proximal: lam in K, u + Omega lam in its dual and both orthogonal are the optimality
    conditions of the closest point of K to -u / regularization; strict: the same with the normal force fixed first.) Neither A
    nor b enters: with the v of a solve whose options hold the same regularisation and operator, lam is that of the solve to its
    tolerance, amplified by 1 / (regularization x stiffness at the contact) where that is large.

    Parameters
    ----------
    problem : ContactProblem
        J, phi and friction count, also anisotropic friction.
    v : ndarray, (n,), m/s
        Velocity result of the step.
    regularization : float, m/(N s)
        Omega of the model, positive. The paper uses 1e-3.
    operator : {"proximal", "strict"}
        Operator that v was solved with.

    Returns
    -------
    ndarray, (nc, 3), N
        Contact forces, normal first.

    Raises
    ------
    ContactError
        A velocity of another length, a regularisation that is not positive, or an unknown operator.
    """
    v = np.asarray(v, dtype=np.float64)
    if v.shape != (problem.n,) or not np.isfinite(v).all():
        raise ContactError(f"v has shape {v.shape}; give the {problem.n} finite velocities of the problem.")
    if not 0 < regularization < np.inf:
        raise ContactError(f"regularization is {regularization} m/(N s); allowed are positive numbers, those of the solve.")
    if operator not in ("strict", "proximal"):
        raise ContactError(f"operator is {operator!r}; allowed are 'strict' and 'proximal'.")
    lam = np.empty((problem.n_contacts, 3))
    project_forces(contact_velocity(problem, v) / -regularization, problem.coefficients, operator == "strict", lam)
    return lam

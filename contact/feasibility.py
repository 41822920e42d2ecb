"""Whether a contact problem can have a solution, and on which scale its velocities are; both without its solution."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from contact.local import LocalProblem
from contact.metrics import norm
from contact.metrics_kernels import TINY, translations
from contact.problem import ContactProblem, isotropic

#: Steps of the conjugate gradients after which :func:`free_velocities` gives an estimate.
_STEPS = (0, 4, 20)
#: Contacts that cannot open would need a velocity of this many times that of the data.
_OUT_OF_REACH = 100.0
#: Normal forces below this part of the largest one are not named.
_NAMED = 0.03


def free_velocities(problem: ContactProblem) -> Iterator[np.ndarray]:
    """Estimate the contact velocities without contact forces, J A^-1 b + phi, (nc, 3), m/s, without a factorization.

    First those of the translations of each body that suit its b, then after 4 and after 20 steps of conjugate gradients with the
    diagonal of A. The size of the last is right where each body is free or soft; of a stiff body that is clamped it may be too
    small. Each estimate is made when it is asked for.

    Parameters
    ----------
    problem : ContactProblem
        Any problem; the velocities are those of ``isotropic(problem)``.
    """
    law, weight = isotropic(problem), problem.weight
    load = weight * law.b
    size = float(np.abs(load).max(initial=0.0))
    if not size > TINY:
        yield law.phi
        return
    v = np.zeros(law.n)
    translations(*problem.group_rows, law.A.indptr, law.A.indices, law.A.data, law.b, v)
    yield law.moved(v).reshape(-1, 3) + law.phi
    load, x = load / size, v / size / weight
    residual: np.ndarray = load - weight * (law.A @ (weight * x))
    direction, square = residual.copy(), float(residual @ residual)
    for step in range(1, _STEPS[-1] + 1):
        product = weight * (law.A @ (weight * direction))
        energy = float(direction @ product)
        if energy > 0.0:
            x += square / energy * direction
            residual -= square / energy * product
            square, before = float(residual @ residual), square
            direction = residual + square / before * direction
        if step in _STEPS:
            yield law.moved(size * weight * x).reshape(-1, 3) + law.phi


def closing_contacts(problem: ContactProblem | LocalProblem, u: np.ndarray, lam: np.ndarray, speed: float) -> np.ndarray:
    """Contacts, (k,) int, that no velocity within reach can open together; empty where there is no proof of that.

    For normal forces lam_n >= 0, each v with J_n v + phi_n >= 0 differs from the present one by a w with
    (J_n^T lam_n) . w >= -lam_n . u_n. Where forces of any size on both sides of a body cancel while the contacts approach, w has
    no bound: then the problem has no solution (Farkas), and the forces of a solver that looks for one grow for ever. Proven is
    that |w| is at least 100 times ``speed``.

    Parameters
    ----------
    problem : ContactProblem or LocalProblem
        A local problem is tested where its W is symmetric without negative eigenvalues: else lam_n . W lam_n = 0 is no proof
        that W lam_n is zero.
    u : ndarray, (nc, 3), m/s
        Contact velocities, normal first.
    lam : ndarray, (nc, 3), N
        Contact forces, normal first.
    speed : float, m/s
        Velocity that the data know.
    """
    nothing = np.zeros(0, dtype=np.int64)
    pressing = np.maximum(lam[:, 0], 0.0)
    largest = float(pressing.max(initial=0.0))
    if not (largest > 0.0 and math.isfinite(largest)):
        return nothing
    pressing /= largest
    approach = -float(pressing @ u[:, 0]) / float(pressing.sum())
    if approach <= 0.0:  # the products below need not be made
        return nothing
    normal = np.zeros((problem.n_contacts, 3))
    normal[:, 0] = pressing
    if isinstance(problem, LocalProblem):
        W = problem.W
        compliance = np.maximum(W.diagonal()[::3], 0.0)
        net = math.sqrt(max(float(normal.ravel() @ (W @ normal.ravel())), 0.0))
    else:
        compliance, net = problem.compliance[:, 0], norm(problem.weight * problem.pushed(normal))
        if problem.softness is not None:
            net = math.hypot(net, norm(np.sqrt(problem.softness) * normal))
    alone = float(pressing @ np.sqrt(compliance))
    if alone * approach < _OUT_OF_REACH * speed * net:
        return nothing
    if isinstance(problem, LocalProblem) and not problem.is_semidefinite:
        return nothing
    return np.flatnonzero(pressing >= _NAMED)

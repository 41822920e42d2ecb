"""Compiled projection of CCS."""

from __future__ import annotations

import numpy as np

from contact.compiled import njit
from contact.cone import project_cone, project_strict


@njit(cache=True)
def split_step(
    u: np.ndarray, friction: np.ndarray, penalty: np.ndarray, strict: bool, relaxation: float, z: np.ndarray, lam: np.ndarray
) -> None:
    """Projection and multiplier update of one ADMM iteration, z and lam, (3nc,), in place (papers/003 eqs. 37-38 on velocities).

    With p = lam - penalty u the new lam = P(p) and z = (lam - p) / penalty satisfy the law of the operator exactly.
    """
    for i in range(friction.shape[0]):
        n, s, t = 3 * i, 3 * i + 1, 3 * i + 2
        p_n = lam[n] - penalty[i] * (relaxation * u[n] + (1.0 - relaxation) * z[n])
        p_0 = lam[s] - penalty[i] * (relaxation * u[s] + (1.0 - relaxation) * z[s])
        p_1 = lam[t] - penalty[i] * (relaxation * u[t] + (1.0 - relaxation) * z[t])
        if strict:
            lam[n], lam[s], lam[t] = project_strict(p_n, p_0, p_1, friction[i])
        else:
            lam[n], lam[s], lam[t] = project_cone(p_n, p_0, p_1, friction[i])
        z[n], z[s], z[t] = (lam[n] - p_n) / penalty[i], (lam[s] - p_0) / penalty[i], (lam[t] - p_1) / penalty[i]

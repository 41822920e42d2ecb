"""Independent static solution of a squeezed co-rotational body: dense SVD rotations, sparse direct solves, active sets.

Shares no code with the engine: forces and stiffness come from numpy einsum over the 12x12 element matrices.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as spla


class StaticBody:
    """Co-rotational linear tetrahedra at rest positions ``rest`` (n, 3) m with Lame constants in Pa."""

    def __init__(self, rest: np.ndarray, tets: np.ndarray, young: float, poisson: float) -> None:
        self.rest, self.tets = rest, tets
        lame = young * poisson / ((1 + poisson) * (1 - 2 * poisson))
        mu = young / (2 * (1 + poisson))
        corners = rest[tets]
        ones = np.ones((len(tets), 4, 1))
        inverse = np.linalg.inv(np.concatenate([ones, corners], axis=2))  # rows: 1, x, y, z; columns: shape functions
        self.gradient = np.swapaxes(inverse[:, 1:, :], 1, 2)  # (m, 4, 3)
        volume = np.linalg.det(corners[:, 1:] - corners[:, :1]) / 6
        B = np.zeros((len(tets), 6, 12))
        for a in range(4):
            gx, gy, gz = self.gradient[:, a].T
            B[:, 0, 3 * a], B[:, 1, 3 * a + 1], B[:, 2, 3 * a + 2] = gx, gy, gz
            B[:, 3, 3 * a], B[:, 3, 3 * a + 1] = gy, gx
            B[:, 4, 3 * a + 1], B[:, 4, 3 * a + 2] = gz, gy
            B[:, 5, 3 * a], B[:, 5, 3 * a + 2] = gz, gx
        D = np.diag([2 * mu] * 3 + [mu] * 3) + np.pad(np.full((3, 3), lame), (0, 3))
        self.Ke = np.einsum("mia,ij,mjb,m->mab", B, D, B, volume)
        rows = (3 * tets[:, :, None] + np.arange(3)).reshape(-1, 12)
        self.rows, self.i, self.j = rows, np.repeat(rows, 12, axis=1).ravel(), np.tile(rows, 12).ravel()

    def force_and_stiffness(self, x: np.ndarray) -> tuple[np.ndarray, sp.csc_matrix]:
        """Elastic force (3n,) N (gradient of the energy) and R K R^T (3n, 3n)."""
        F = np.einsum("mai,maj->mij", x[self.tets], self.gradient)
        U, _, Vt = np.linalg.svd(F)
        U[:, :, 2] *= np.sign(np.linalg.det(U @ Vt))[:, None]
        R = U @ Vt
        local = np.einsum("mji,maj->mai", R, x[self.tets]) - self.rest[self.tets]
        f = np.einsum("mab,mb->ma", self.Ke, local.reshape(-1, 12)).reshape(-1, 4, 3)
        f = np.einsum("mij,maj->mai", R, f)
        RR = np.zeros((len(R), 12, 12))
        for a in range(4):
            RR[:, 3 * a : 3 * a + 3, 3 * a : 3 * a + 3] = R
        K = RR @ self.Ke @ RR.transpose(0, 2, 1)
        n = x.size
        force = np.bincount(self.rows.ravel(), weights=f.ravel(), minlength=n)
        return force, sp.csc_matrix((K.ravel(), (self.i, self.j)), shape=(n, n))


def squeeze(body: StaticBody, surface: np.ndarray, gap: float, *, stuck: bool, increments: int) -> float:
    """Force in N on each of two plates at z = +-gap/2 that squeeze the body from its own height.

    ``stuck``: a node keeps its place on the plate from the increment in which it touches; otherwise it slides freely.
    """
    x = body.rest.copy()
    top = x[:, 2].max()
    plane = np.zeros(len(x))
    plane[surface] = np.sign(x[surface, 2])
    touched = np.zeros(len(x), dtype=bool)
    reaction = np.zeros(x.size)
    for height in np.linspace(top, gap / 2, increments + 1)[1:]:
        active = touched | (plane * x[:, 2] > height)
        start = x.copy()
        for _ in range(200):
            fixed = np.zeros(x.shape, dtype=bool)
            fixed[active, 2] = True
            if stuck:
                fixed[active, :2] = True
            if not stuck:  # free plates leave three rigid motions in their plane; pinning them carries no force
                fixed[np.argmin(np.linalg.norm(x, axis=1)), :2] = True
                fixed[np.argmax(x[:, 0]), 1] = True
            target = x.copy()
            target[active, 2] = plane[active] * height
            if stuck:
                target[active, :2] = start[active, :2]
            force, K = body.force_and_stiffness(x)
            free = ~fixed.ravel()
            step = (target - x).ravel()
            rhs = -(force + K[:, ~free] @ step[~free])[free]
            step[free] = spla.splu(K[free][:, free].tocsc(), permc_spec="MMD_AT_PLUS_A", options={"SymmetricMode": True}).solve(
                rhs
            )
            x = x + step.reshape(x.shape)
            before, reaction = reaction, body.force_and_stiffness(x)[0]
            pull = active & (plane * reaction.reshape(-1, 3)[:, 2] > 0)  # a plate pushes inwards only
            push = ~active & (plane * x[:, 2] > height * (1 + 1e-12))
            change = np.abs(reaction - before).reshape(-1, 3)[active].sum()
            if not pull.any() and not push.any() and change < 1e-6 * np.abs(reaction.reshape(-1, 3)[active]).sum():
                break
            active = (active & ~pull) | push
        else:
            raise AssertionError("the static reference did not converge")
        touched = active
    return float(np.abs(reaction.reshape(-1, 3)[active & (plane > 0), 2].sum()))

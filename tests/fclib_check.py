"""A second opinion on solutions of FCLib problems, from the definition of the law alone; it shares no code with contact/.

    python tests/fclib_check.py PROBLEM.hdf5 SOLUTION.npz --tol 1e-6

PROBLEM holds ``u = W r + q`` (local) or ``M v = H r + f, u = H^T v + w`` (global), normal first in each contact; SOLUTION holds
``r`` and, for a global problem, ``v``. The law of a contact, with ``uh = u + (mu |u_t|, 0)``: r is the closest point of its
friction cone to ``r - rho uh``, for any ``rho > 0``. Taken is 1 over the mean of the diagonal of the contact's block of W, of a
global problem with M replaced by its diagonal. Exit status 0 when both residuals are at most the tolerance, else 1.

- natmap_si: norm of ``r - P(r - rho uh)`` over the larger of those of r and rho uh.
- dyn: norm of ``M v - H r - f`` over the largest of its terms; 0 for a local problem.
- pen_vel, cone, rn_neg: largest of ``-u_n``, ``|r_t| - mu r_n`` and ``-r_n``, at least 0.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import scipy.sparse as sp
from slow_twins import closest_in_cone

Problem = dict[str, Any]


def matrix(m: int, n: int, i: np.ndarray, j: np.ndarray, x: np.ndarray) -> sp.csr_matrix:
    """Return the (m, n) matrix with these entries; those at the same place are added."""
    return sp.csr_matrix((x, (i, j)), shape=(m, n))


def read_problem(path: str | Path) -> Problem:
    """Read a file; of the storages of matrices only compressed columns, which both we and the full set write."""

    def stored(group: h5py.Group) -> sp.csr_matrix:
        assert group["nz"][0] == -1, "not by compressed columns"
        return sp.csc_matrix((group["x"][:], group["i"][:], group["p"][:]), shape=(group["m"][0], group["n"][0])).tocsr()

    with h5py.File(path) as file:
        (name,) = {"fclib_local", "fclib_global"} & set(file)
        group = file[name]
        matrices = {key: stored(group[key]) for key in ("W", "M", "H") if key in group}
        vectors = {key: values[:] for key, values in group["vectors"].items()}
        return {"kind": name.removeprefix("fclib_"), "d": int(group["spacedim"][0]), **matrices, **vectors}


def check(problem: Problem, r: np.ndarray, v: np.ndarray | None = None) -> dict[str, float]:
    """Judge impulses r and, of a global problem, velocities v."""
    d, mu, r = problem["d"], problem["mu"], np.ravel(r)
    if problem["kind"] == "local":
        u, diagonal, dyn = problem["W"] @ r + problem["q"], problem["W"].diagonal(), 0.0
    else:
        M, H = problem["M"], problem["H"]
        terms = (M @ v, H @ r, problem["f"])
        dyn = np.linalg.norm(terms[0] - terms[1] - terms[2]) / max(np.linalg.norm(term) for term in terms)
        u = H.T @ v + problem["w"]
        diagonal = H.multiply(H).T @ (1.0 / M.diagonal())
    mean = diagonal.reshape(-1, d).mean(axis=1)
    moved = mean[mean > 0]  # a contact that nothing moves takes the mean of the others
    mean = np.where(mean > 0, mean, moved.mean() if len(moved) else 1.0)
    wrong, forces, velocities = [], [], []
    for k, friction in enumerate(mu):
        force, velocity = np.zeros(3), np.zeros(3)
        force[:d], velocity[:d] = r[d * k : d * k + d], u[d * k : d * k + d]
        velocity[0] += friction * np.linalg.norm(velocity[1:])
        velocity /= mean[k]
        wrong.append(force - closest_in_cone(force - velocity, friction))
        forces.append(force)
        velocities.append(velocity)
    force = np.array(forces)
    return {
        "natmap_si": float(np.linalg.norm(wrong) / max(np.linalg.norm(force), np.linalg.norm(velocities), 1e-300)),
        "dyn": float(dyn),
        "pen_vel": float(max(0.0, -u[::d].min())),
        "cone": float(max(0.0, (np.linalg.norm(force[:, 1:], axis=1) - mu * force[:, 0]).max())),
        "rn_neg": float(max(0.0, -force[:, 0].min())),
    }


def status(problem: Path, solution: Path, tolerance: float) -> int:
    """Print the judgement of a solution in a file, and return the exit status."""
    with np.load(solution) as arrays:
        found = check(read_problem(problem), arrays["r"], arrays["v"] if "v" in arrays else None)
    print(json.dumps(found))
    return int(not (found["natmap_si"] <= tolerance and found["dyn"] <= tolerance))


if __name__ == "__main__":
    sys.exit(status(Path(sys.argv[1]), Path(sys.argv[2]), float(sys.argv[4])))

"""Locking: cantilever and Cook's membrane by linear and quadratic tetrahedra; prints the tables of data/results/checks.md.

    python -m benchmarks.locking [--fine]

``--fine`` adds the mesh that the converged figures of small strain come from (some minutes).
"""

from __future__ import annotations

import sys

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as spla

import femsim as fs
from femsim.model.bodies import hyperelastic
from femsim.model.bodies.soft import SoftBody
from femsim.model.bodies.soft_bodies import make_soft_body

G = 9.81
BEAM = (0.1, 0.02, 0.02)
REST = np.zeros(3)


def matrix(body: SoftBody, q: np.ndarray) -> sp.csc_matrix:
    """Stiffness K, N/m."""
    body.update_elements(q)
    indptr, indices = body.pattern()
    data = np.empty(len(indices))
    body._fill_matrix(np.ones(len(body.mixture.materials)), 0.0, data)
    return sp.csc_matrix((data, indices, indptr), shape=(body.n_v, body.n_v))


def solve(K: sp.csc_matrix, force: np.ndarray) -> np.ndarray:
    """Direct solution."""
    return spla.splu(K.tocsc(), permc_spec="MMD_AT_PLUS_A", options={"SymmetricMode": True}).solve(force)


def equilibrium(body: SoftBody, free: np.ndarray, load: np.ndarray, increments: int = 1, rtol: float = 1e-7) -> np.ndarray:
    """Positions (n, 3) of a body under dead loads (n, 3) N: Newton with line search on the energy, only ``free`` (3 n,) move."""
    q, f = body.initial_q(), load.ravel()
    for part in np.arange(1, increments + 1) / increments:
        for _ in range(200):
            body.update_elements(q)
            residual = (part * f - body.internal_force.ravel())[free]
            if np.linalg.norm(residual) <= rtol * np.linalg.norm(f[free]):
                break
            step = np.zeros_like(q)
            step[free] = solve(matrix(body, q)[free][:, free], residual)
            start, slope, size = body.elastic_energy(q) - part * f @ q, residual @ step[free], 1.0
            while size > 1e-6:
                moved = q + size * step
                if body.elastic_energy(moved) - part * f @ moved <= start - 1e-4 * size * slope + 1e-12 * abs(start):
                    break
                size *= 0.5
            q = q + size * step
        else:
            raise RuntimeError("the equilibrium did not converge")
    return q.reshape(-1, 3)


def cantilever(
    divisions: tuple[int, int, int],
    element: str,
    law: str,
    poisson: float,
    gravity: float,
    steps: int = 1,
    alternating: bool = False,
) -> float:
    """Mean vertical displacement (mm) of the free end of a beam 0.1 x 0.02 x 0.02 m, E 83 kPa, 1070 kg/m3, under its weight."""
    material = fs.Elastic(83e3, poisson, 1070.0, law=law)
    box = fs.box_tets(BEAM, divisions, alternating=alternating)
    body, mesh = make_soft_body("beam", box, material, element=element, velocity=np.zeros(3))
    free = np.repeat(mesh.points[:, 0] > mesh.points[:, 0].min() + 1e-9, 3)
    load = np.zeros((body.n_nodes, 3))
    load[:, 2] = -gravity * body.node_mass
    moved = equilibrium(body, free, load, steps) - mesh.points
    return 1e3 * float(moved[mesh.points[:, 0] > mesh.points[:, 0].max() - 1e-9, 2].mean())


def small_cantilever(divisions: tuple[int, int, int], element: str, poisson: float, patches: bool = False) -> float:
    """As :func:`cantilever` at g/50 for small strain: one linear solution from rest; ``patches`` as in :func:`cook`."""
    material = fs.Elastic(83e3, poisson, 1070.0)
    body, mesh = make_soft_body(
        "beam", fs.box_tets(BEAM, divisions, alternating=False), material, element=element, velocity=np.zeros(3)
    )
    free = np.repeat(mesh.points[:, 0] > mesh.points[:, 0].min() + 1e-9, 3)
    load = np.zeros((body.n_nodes, 3))
    load[:, 2] = -G / 50 * body.node_mass
    K = patch_stiffness(mesh.points, body.elements, material) if patches else matrix(body, body.initial_q())
    u = np.zeros(body.n_v)
    u[free] = solve(K[free][:, free], load.ravel()[free])
    return 1e3 * float(u.reshape(-1, 3)[mesh.points[:, 0] > mesh.points[:, 0].max() - 1e-9, 2].mean())


def cook(cells: int, element: str, poisson: float, patches: bool = False) -> float:
    """Rise (mm) of the upper right corner of Cook's membrane: plane strain, E 250 Pa, load 100 N/m, small strain.

    Corners (0, 0), (48, 44), (48, 60), (0, 44) m, one layer of cells. ``patches``: linear elements with the dilatation
    averaged over the patch of each node.
    """
    box = fs.box_tets((1.0, 1.0, 1.0), (cells, cells, 1), alternating=False)
    x, y = box.points[:, 0] + 0.5, box.points[:, 1] + 0.5
    lower, upper = 44.0 * x, 44.0 + 16.0 * x
    points = np.column_stack([48.0 * x, lower + y * (upper - lower), (box.points[:, 2] + 0.5) * 48.0 / cells])
    material = fs.Elastic(250.0, poisson, 1.0)
    mesh = fs.make_tetmesh(points, box.tets, name="cook", source="benchmarks.locking")
    body, mesh = make_soft_body("cook", mesh, material, element=element, velocity=REST)
    load = np.zeros((body.n_nodes, 3))
    right = mesh.points[:, 0] > 48.0 - 1e-9
    for triangle in mesh.surface_triangles[right[mesh.surface_triangles].all(axis=1)]:
        a, b, c = mesh.points[triangle]
        # drawn triangles of quadratic elements: all of a quadratic face's load goes to its mid-side nodes, in equal parts
        share = triangle[triangle >= len(points)] if element == "quadratic" else triangle
        weight = np.linalg.norm(np.cross(b - a, c - a)) / 2.0 * 100.0 / 16.0
        load[share, 1] += weight / len(share)
    K = patch_stiffness(mesh.points, body.elements, material) if patches else matrix(body, body.initial_q())
    free = np.ones((body.n_nodes, 3), dtype=bool)
    free[mesh.points[:, 0] < 1e-9] = False
    free[:, 2] = False
    free = free.ravel()
    u = np.zeros(body.n_v)
    u[free] = solve(K[free][:, free], load.ravel()[free])
    corner = np.argmax(mesh.points[:, 0] + mesh.points[:, 1])
    return float(u[3 * corner + 1]) * 1e3


def patch_stiffness(rest: np.ndarray, tets: np.ndarray, material: fs.Elastic) -> sp.csc_matrix:
    """Linear tetrahedra of small strain with the mean dilatation of each node's patch (quarter volumes)."""
    m, n = len(tets), len(rest)
    inverse = np.linalg.inv(rest[tets[:, 1:]] - rest[tets[:, :1]]).transpose(0, 2, 1)
    gradient = np.concatenate([-inverse.sum(axis=1, keepdims=True), inverse], axis=1)
    volume = np.linalg.det(rest[tets[:, 1:]] - rest[tets[:, :1]]) / 6.0
    rows = (3 * tets[:, :, None] + np.arange(3)).reshape(m, 12)
    strain = np.zeros((m, 3, 3, 4, 3))
    for i in range(3):
        for j in range(3):
            strain[:, i, j, :, i] += 0.5 * gradient[:, :, j]
            strain[:, i, j, :, j] += 0.5 * gradient[:, :, i]
    strain = strain.reshape(m, 9, 12)
    element = 2.0 * material.lame_mu * np.einsum("m,mia,mib->mab", volume, strain, strain)
    K = sp.coo_matrix((element.ravel(), (np.repeat(rows, 12, axis=1).ravel(), np.tile(rows, 12).ravel())), (3 * n, 3 * n)).tocsc()
    divergence = sp.coo_matrix((gradient.reshape(m, 12).ravel(), (np.repeat(np.arange(m), 12), rows.ravel())), (m, 3 * n)).tocsc()
    share = sp.coo_matrix((np.repeat(volume / 4.0, 4), (tets.ravel(), np.repeat(np.arange(m), 4))), (n, m)).tocsc()
    patch = np.asarray(share.sum(axis=1)).ravel()
    mean = sp.diags(1.0 / patch) @ share @ divergence
    return (K + material.lame_lambda * mean.T @ sp.diags(patch) @ mean).tocsc()


def main(fine: bool) -> None:
    """Print the tables."""
    ratio = hyperelastic._POINT_RATIO
    print("cantilever, g/50, small strain, mm, and Cook's membrane, mm, by Poisson's ratio")
    print("| element | mesh | 0.42 | 0.49 | 0.499 | 0.4999 | Cook's mesh | 0.3 | 0.49 | 0.499 | 0.4999 |")
    rows: list[tuple[str, str, float, tuple[int, int, int], int]] = [
        ("linear", "linear", ratio, (20, 4, 4), 16),
        ("linear, patches", "linear", ratio, (20, 4, 4), 16),
        ("quadratic, all at points", "quadratic", np.inf, (10, 2, 2), 8),
        ("quadratic, all in the mean", "quadratic", 0.0, (10, 2, 2), 8),
        ("quadratic (femsim)", "quadratic", ratio, (10, 2, 2), 8),
        ("quadratic (femsim)", "quadratic", ratio, (20, 4, 4), 16),
    ]
    if fine:
        rows.append(("quadratic (femsim)", "quadratic", ratio, (30, 6, 6), 32))
    for name, element, at_points, divisions, cells in rows:
        hyperelastic._POINT_RATIO = at_points
        patches = "patches" in name
        bend = [small_cantilever(divisions, element, nu, patches) for nu in (0.42, 0.49, 0.499, 0.4999)]
        sheet = [cook(cells, element, nu, patches) for nu in (0.3, 0.49, 0.499, 0.4999)]
        left, right = " | ".join(f"{x:.4f}" for x in bend), " | ".join(f"{x:.0f}" for x in sheet)
        print(f"| {name} | {divisions} | {left} | {cells} x {cells} | {right} |", flush=True)
    hyperelastic._POINT_RATIO = ratio
    print("\ncantilever, E 83 kPa, nu 0.42: mean tip displacement, mm")
    print("| mesh | nodes | element | law | g/50 | g |")
    cases = [
        ((20, 4, 4), "linear", False),
        ((40, 8, 8), "linear", False),
        ((20, 4, 4), "linear", True),
        ((40, 8, 8), "linear", True),
        ((10, 2, 2), "quadratic", False),
        ((20, 4, 4), "quadratic", False),
    ]
    for divisions, element, alternating in cases:
        factor = 2 if element == "quadratic" else 1
        nodes = int(np.prod([factor * d + 1 for d in divisions]))
        for law in ("corotational", "stable_neo_hookean"):
            small = cantilever(divisions, element, law, 0.42, G / 50, 1, alternating)
            large = cantilever(divisions, element, law, 0.42, G, 4, alternating)
            print(
                f"| {divisions}{' alternating' * alternating} | {nodes} | {element} | {law} | {small:.5f} | {large:.3f} |",
                flush=True,
            )


if __name__ == "__main__":
    main("--fine" in sys.argv[1:])

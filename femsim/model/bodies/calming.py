"""Calm velocities at the end of an energy-momentum step: what is too fast for the step stops turning round.

The step advances positions by v_hat and ends with v1 = 2 v_hat - v0. Motion that is fast beside dt, or overdamped, leaves v_hat near
zero: the body hardly moves, but its velocities turn round from step to step, for ever at the limit. Here each two points of a
body that resist a change of their distance exchange an impulse p along the line between them,

    p = c s / (1 + c / m),   s the speed at which they part, m their reduced mass, c = gamma dt^2 k,

k being the stiffness between them: that of a dashpot of gamma dt k, implicit in the velocities. So linear and angular momentum
stay to rounding, no rigid motion is touched, the kinetic energy never grows, and motion of frequency w loses about gamma (w dt)^2
of it: nearly nothing where the step is fine, all where it is coarse.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

#: gamma by the ``strain_damping`` of a scene.
CALMING = 0.1


def edge_stiffness(rest: np.ndarray, tets: np.ndarray, young_modulus: float) -> tuple[np.ndarray, np.ndarray]:
    """Edges of tetrahedra, (m, 2), and how stiff these are along each, (m,), N/m: the sum of E V / L^2 around it.

    Springs along the edges that are that stiff deform about as the tetrahedra do.

    Parameters
    ----------
    rest : ndarray, (n, 3), m
        Points.
    tets : ndarray, (t, 4)
        Tetrahedra of positive volume V.
    young_modulus : float, Pa
        E.
    """
    pairs = np.sort(tets[:, [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]]].reshape(-1, 2), axis=1)
    edges, edge_of = np.unique(pairs, axis=0, return_inverse=True)
    volume = np.linalg.det(rest[tets[:, 1:]] - rest[tets[:, :1]]) / 6.0
    around = np.bincount(edge_of.ravel(), weights=np.repeat(volume, 6), minlength=len(edges))
    return edges, young_modulus * around / ((rest[edges[:, 1]] - rest[edges[:, 0]]) ** 2).sum(axis=1)


@njit(cache=True)
def calm_edges(
    x: np.ndarray, edges: np.ndarray, impulse: np.ndarray, mobility: np.ndarray, v: np.ndarray, push: np.ndarray
) -> None:
    """Calm the velocities v (n, 3), m/s, of points x (n, 3), m, edge by edge.

    ``edges`` (m, 2) are pairs of points, ``impulse`` (m,), kg, is c of each, and ``mobility`` (n,), 1/kg, the inverse masses,
    zero where the velocity is prescribed. ``push`` (n, 3), N s, gains the impulses on such points.
    """
    for e in range(edges.shape[0]):
        a, b = edges[e, 0], edges[e, 1]
        d0, d1, d2 = x[b, 0] - x[a, 0], x[b, 1] - x[a, 1], x[b, 2] - x[a, 2]
        length = math.sqrt(d0 * d0 + d1 * d1 + d2 * d2)
        if length == 0.0:
            continue
        d0, d1, d2 = d0 / length, d1 / length, d2 / length
        parting = d0 * (v[b, 0] - v[a, 0]) + d1 * (v[b, 1] - v[a, 1]) + d2 * (v[b, 2] - v[a, 2])
        p = impulse[e] * parting / (1.0 + impulse[e] * (mobility[a] + mobility[b]))
        d0, d1, d2 = p * d0, p * d1, p * d2
        if mobility[a] > 0.0:
            v[a, 0] += mobility[a] * d0
            v[a, 1] += mobility[a] * d1
            v[a, 2] += mobility[a] * d2
        else:
            push[a, 0] += d0
            push[a, 1] += d1
            push[a, 2] += d2
        if mobility[b] > 0.0:
            v[b, 0] -= mobility[b] * d0
            v[b, 1] -= mobility[b] * d1
            v[b, 2] -= mobility[b] * d2
        else:
            push[b, 0] -= d0
            push[b, 1] -= d1
            push[b, 2] -= d2

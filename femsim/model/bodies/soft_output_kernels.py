"""Kernels of what is shown of soft bodies: stress, energy, stretches of elements; contact pressure of nodes.

All start from the co-rotated strain e = R^T F - 1 (components 00, 11, 22, 01, 12, 02) that the forces of the step left behind, so
they cost little beside it. With the stretch U = 1 + e and J = det U, the first Piola-Kirchhoff stress of the body is
P = R S, S = 2 mu e + lambda tr(e) 1, and the Cauchy stress is P F^T / J = R (S U / J) R^T: S and U commute, so it is symmetric.
An element that is inverted (J <= 0) has none and gets NaN.
"""

from __future__ import annotations

import math

import numpy as np

from contact.compiled import njit
from femsim.model.bodies.rotation_kernels import rotation_entries


@njit(cache=True, inner=True)
def _turned_cauchy(
    e0: float, e1: float, e2: float, e3: float, e4: float, e5: float, lame_lambda: float, lame_mu: float
) -> tuple[float, float, float, float, float, float]:
    """R^T sigma R = S U / J of one element, components 00, 11, 22, 01, 12, 02; NaN when J <= 0."""
    u0, u1, u2 = 1.0 + e0, 1.0 + e1, 1.0 + e2
    det = u0 * (u1 * u2 - e4 * e4) - e3 * (e3 * u2 - e4 * e5) + e5 * (e3 * e4 - u1 * e5)
    if not det > 0.0:
        return math.nan, math.nan, math.nan, math.nan, math.nan, math.nan
    pressure = lame_lambda * (e0 + e1 + e2)
    two_mu = 2.0 * lame_mu
    s0, s1, s2 = two_mu * e0 + pressure, two_mu * e1 + pressure, two_mu * e2 + pressure
    s3, s4, s5 = two_mu * e3, two_mu * e4, two_mu * e5
    return (
        (s0 * u0 + s3 * e3 + s5 * e5) / det,
        (s3 * e3 + s1 * u1 + s4 * e4) / det,
        (s5 * e5 + s4 * e4 + s2 * u2) / det,
        (s0 * e3 + s3 * u1 + s5 * e4) / det,
        (s3 * e5 + s1 * e4 + s4 * u2) / det,
        (s0 * e5 + s3 * e4 + s5 * u2) / det,
    )


@njit(cache=True)
def cauchy_stress(
    strain: np.ndarray, lame_lambda: np.ndarray, lame_mu: np.ndarray, quaternion: np.ndarray, stress: np.ndarray
) -> None:
    """Fill the Cauchy stress of each element, (m, 6), Pa: XX, YY, ZZ, XY, YZ, XZ in the world frame."""
    for k in range(strain.shape[0]):
        s0, s1, s2, s3, s4, s5 = _turned_cauchy(
            strain[k, 0], strain[k, 1], strain[k, 2], strain[k, 3], strain[k, 4], strain[k, 5], lame_lambda[k], lame_mu[k]
        )
        r00, r01, r02, r10, r11, r12, r20, r21, r22 = rotation_entries(
            quaternion[k, 0], quaternion[k, 1], quaternion[k, 2], quaternion[k, 3]
        )
        a0, a1, a2 = r00 * s0 + r01 * s3 + r02 * s5, r00 * s3 + r01 * s1 + r02 * s4, r00 * s5 + r01 * s4 + r02 * s2
        b0, b1, b2 = r10 * s0 + r11 * s3 + r12 * s5, r10 * s3 + r11 * s1 + r12 * s4, r10 * s5 + r11 * s4 + r12 * s2
        c0, c1, c2 = r20 * s0 + r21 * s3 + r22 * s5, r20 * s3 + r21 * s1 + r22 * s4, r20 * s5 + r21 * s4 + r22 * s2
        stress[k, 0] = a0 * r00 + a1 * r01 + a2 * r02
        stress[k, 1] = b0 * r10 + b1 * r11 + b2 * r12
        stress[k, 2] = c0 * r20 + c1 * r21 + c2 * r22
        stress[k, 3] = a0 * r10 + a1 * r11 + a2 * r12
        stress[k, 4] = b0 * r20 + b1 * r21 + b2 * r22
        stress[k, 5] = a0 * r20 + a1 * r21 + a2 * r22


@njit(cache=True)
def von_mises_stress(strain: np.ndarray, lame_lambda: np.ndarray, lame_mu: np.ndarray, out: np.ndarray) -> None:
    """Fill the von Mises value of the Cauchy stress of each element, (m,), Pa; the same in every frame, so R is not needed."""
    for k in range(strain.shape[0]):
        s0, s1, s2, s3, s4, s5 = _turned_cauchy(
            strain[k, 0], strain[k, 1], strain[k, 2], strain[k, 3], strain[k, 4], strain[k, 5], lame_lambda[k], lame_mu[k]
        )
        squares = (s0 - s1) ** 2 + (s1 - s2) ** 2 + (s2 - s0) ** 2
        out[k] = math.sqrt(0.5 * squares + 3.0 * (s3 * s3 + s4 * s4 + s5 * s5))


@njit(cache=True)
def strain_energy_density(strain: np.ndarray, lame_lambda: np.ndarray, lame_mu: np.ndarray, out: np.ndarray) -> None:
    """Fill mu e:e + lambda/2 tr(e)^2 of each element, (m,), J a m^3 at rest."""
    for k in range(strain.shape[0]):
        e0, e1, e2, e3, e4, e5 = strain[k, 0], strain[k, 1], strain[k, 2], strain[k, 3], strain[k, 4], strain[k, 5]
        trace = e0 + e1 + e2
        squares = e0 * e0 + e1 * e1 + e2 * e2 + 2.0 * (e3 * e3 + e4 * e4 + e5 * e5)
        out[k] = lame_mu[k] * squares + 0.5 * lame_lambda[k] * trace * trace


@njit(cache=True)
def principal_stretches(strain: np.ndarray, out: np.ndarray) -> None:
    """Fill the eigenvalues of U = 1 + e of each element, (m, 3), largest first; trigonometric solution of the cubic."""
    for k in range(strain.shape[0]):
        e3, e4, e5 = strain[k, 3], strain[k, 4], strain[k, 5]
        mean = (strain[k, 0] + strain[k, 1] + strain[k, 2]) / 3.0
        d0, d1, d2 = strain[k, 0] - mean, strain[k, 1] - mean, strain[k, 2] - mean
        p = math.sqrt((d0 * d0 + d1 * d1 + d2 * d2 + 2.0 * (e3 * e3 + e4 * e4 + e5 * e5)) / 6.0)
        out[k, 0] = out[k, 1] = out[k, 2] = 1.0 + mean
        if p > 0.0:
            d0, d1, d2, e3, e4, e5 = d0 / p, d1 / p, d2 / p, e3 / p, e4 / p, e5 / p
            half = 0.5 * (d0 * (d1 * d2 - e4 * e4) - e3 * (e3 * d2 - e4 * e5) + e5 * (e3 * e4 - d1 * e5))
            angle = math.acos(min(1.0, max(-1.0, half))) / 3.0
            first = 2.0 * p * math.cos(angle)
            last = 2.0 * p * math.cos(angle + 2.0 * math.pi / 3.0)
            out[k, 0] += first
            out[k, 1] -= first + last
            out[k, 2] += last


@njit(cache=True, inner=True)
def _outward(x: np.ndarray, triangles: np.ndarray, t: int) -> tuple[float, float, float, float]:
    """Outward normal of a triangle, twice as long as its area is large, and its length, m^2."""
    a, b, c = triangles[t, 0], triangles[t, 1], triangles[t, 2]
    b0, b1, b2 = x[b, 0] - x[a, 0], x[b, 1] - x[a, 1], x[b, 2] - x[a, 2]
    c0, c1, c2 = x[c, 0] - x[a, 0], x[c, 1] - x[a, 1], x[c, 2] - x[a, 2]
    n0, n1, n2 = b1 * c2 - b2 * c1, b2 * c0 - b0 * c2, b0 * c1 - b1 * c0
    return n0, n1, n2, math.sqrt(n0 * n0 + n1 * n1 + n2 * n2)


@njit(cache=True, inner=True)
def _opposed_most(
    x: np.ndarray, triangles: np.ndarray, around: np.ndarray, start: int, stop: int, f0: float, f1: float, f2: float
) -> tuple[float, float, float, float]:
    """How much of a force, N, the triangle at a node takes that the force opposes most, and its unit normal; 0 for none."""
    most, m0, m1, m2 = 0.0, 0.0, 0.0, 0.0
    for place in range(start, stop):
        n0, n1, n2, length = _outward(x, triangles, around[place])
        if length == 0.0:
            continue
        against = -(f0 * n0 + f1 * n1 + f2 * n2) / length
        if against > most:
            most, m0, m1, m2 = against, n0 / length, n1 / length, n2 / length
    return most, m0, m1, m2


@njit(cache=True)
def contact_pressure(
    x: np.ndarray, triangles: np.ndarray, first: np.ndarray, around: np.ndarray, force: np.ndarray, pressure: np.ndarray
) -> None:
    """Fill the contact pressure of each node, (n,), Pa: normal force over tributary area, both in the deformed shape.

    The surface that a node is pressed on is the outward triangle at the node that its force opposes most, with all triangles
    at the node within 60 degrees of it: at the edge of a box only the face in contact counts. A third of their area
    is the tributary area, the mean of their normals the normal. A force that does not press gives 0.

    Parameters
    ----------
    x : ndarray, (n, 3), m
        Node positions.
    triangles : ndarray, (k, 3)
        Surface, outward.
    first : ndarray, (n + 1,)
        Where the triangles of a node begin in ``around``.
    around : ndarray, (3 k,)
        Triangles by node.
    force : ndarray, (n, 3), N
        Contact force on each node.
    pressure : ndarray, (n,), Pa
        Filled; 0 where nothing presses.
    """
    for node in range(x.shape[0]):
        pressure[node] = 0.0
        f0, f1, f2 = force[node, 0], force[node, 1], force[node, 2]
        if f0 == 0.0 and f1 == 0.0 and f2 == 0.0:
            continue
        start, stop = first[node], first[node + 1]
        most, m0, m1, m2 = _opposed_most(x, triangles, around, start, stop, f0, f1, f2)
        t0, t1, t2, area = 0.0, 0.0, 0.0, 0.0
        for place in range(start, stop):
            n0, n1, n2, length = _outward(x, triangles, around[place])
            if length > 0.0 and n0 * m0 + n1 * m1 + n2 * m2 > 0.5 * length:
                t0, t1, t2, area = t0 + n0, t1 + n1, t2 + n2, area + length / 6.0
        if most > 0.0:
            length = math.sqrt(t0 * t0 + t1 * t1 + t2 * t2)
            pressure[node] = max(0.0, -(f0 * t0 + f1 * t1 + f2 * t2) / (length * area))


@njit(cache=True)
def pressed_area(
    x: np.ndarray,
    triangles: np.ndarray,
    first: np.ndarray,
    around: np.ndarray,
    node: np.ndarray,
    force: np.ndarray,
    counted: np.ndarray,
    area: np.ndarray,
) -> None:
    """Fill the area at each node that forces press on, (n,), m^2: a third of the triangles, each once.

    Each force chooses triangles as in :func:`contact_pressure`, for itself: at an edge between a floor and a wall both faces
    count, while their sum would choose one.

    Parameters
    ----------
    x, triangles, first, around : ndarray
        As there.
    node, force : ndarray, (m,) and (m, 3), N
        Forces, each with the node that it is on.
    counted : ndarray, (3 k,), bool
        Filled: which of the triangles by node count.
    area : ndarray, (n,), m^2
        Filled.
    """
    counted[:] = False
    area[:] = 0.0
    for k in range(node.shape[0]):
        start, stop = first[node[k]], first[node[k] + 1]
        most, m0, m1, m2 = _opposed_most(x, triangles, around, start, stop, force[k, 0], force[k, 1], force[k, 2])
        for place in range(start, stop if most > 0.0 else start):
            n0, n1, n2, length = _outward(x, triangles, around[place])
            if not counted[place] and n0 * m0 + n1 * m1 + n2 * m2 > 0.5 * length:
                counted[place] = True
                area[node[k]] += length / 6.0

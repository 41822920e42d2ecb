"""Calm velocities at the end of an energy-momentum step: what is too fast for the step stops turning round.

The step advances positions by v_hat and ends with v1 = 2 v_hat - v0. Motion that is fast beside dt, or overdamped, leaves v_hat
near zero: the body hardly moves, but its velocities turn round from step to step, for ever at the limit. Here each two points
of a body that resist a change of their distance exchange an impulse p along the line between them,

    p = c s / (1 + c / m),   s the speed at which they part, m their reduced mass, c = gamma dt^2 k,

k being the stiffness between them: that of a dashpot of gamma dt k, implicit in the velocities. So linear and angular momentum
stay to rounding, no rigid motion is touched, and the kinetic energy never grows. Of gamma the part

    min(1, (s - s_hat)^2 / (s^2 + s_hat^2))^2

acts, s_hat being the speed at which they part by v_hat: all where velocities turn round, nearly nothing where the step follows
the motion; and all where contacts pushed on the body in the last step.
"""

from __future__ import annotations

import math

import numpy as np

from contact.compiled import njit
from contact.vector_kernels import cross, dot, minus as less, plus as added, times as scaled
from femsim.model.bodies.rod_kernels import ABSENT, BALL, FULL, vector_at
from femsim.model.bodies.rotation_kernels import (
    Matrix,
    Vector,
    add_to_diagonal,
    cross_matrix,
    determinant,
    plus,
    rotation_at,
    scaled_matrix,
    times,
    times_vector,
    turned_diagonal,
)

#: gamma by the ``strain_damping`` of a scene.
CALMING = 0.1


def edge_stiffness(rest: np.ndarray, tets: np.ndarray, young_modulus: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Edges of tetrahedra, (m, 2), and how stiff these are along each, (m,), N/m: the sum of E V / L^2 around it.

    Springs along the edges that are that stiff deform about as the tetrahedra do.

    Parameters
    ----------
    rest : ndarray, (n, 3), m
        Points.
    tets : ndarray, (t, 4)
        Tetrahedra of positive volume V.
    young_modulus : ndarray, (t,), Pa
        E of each.
    """
    pairs = np.sort(tets[:, [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]]].reshape(-1, 2), axis=1)
    edges, edge_of = np.unique(pairs, axis=0, return_inverse=True)
    volume = np.linalg.det(rest[tets[:, 1:]] - rest[tets[:, :1]]) / 6.0
    around = np.bincount(edge_of.ravel(), weights=np.repeat(young_modulus * volume, 6), minlength=len(edges))
    return edges, around / ((rest[edges[:, 1]] - rest[edges[:, 0]]) ** 2).sum(axis=1)


@njit(cache=True, forceinline=True)
def _part_that_turns(changed: float, both: float) -> float:
    """Part of the calming that acts where the speed of parting changed within half a step, of the squares of both speeds."""
    return (changed / both) ** 2 if changed < both else 1.0


@njit(cache=True)
def edge_lengths(x: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Lengths (m,), m, of edges (m, 2) between points x (n, 3), m."""
    lengths = np.empty(edges.shape[0])
    for e in range(edges.shape[0]):
        a, b = edges[e, 0], edges[e, 1]
        d0, d1, d2 = x[b, 0] - x[a, 0], x[b, 1] - x[a, 1], x[b, 2] - x[a, 2]
        lengths[e] = math.sqrt(d0 * d0 + d1 * d1 + d2 * d2)
    return lengths


@njit(cache=True)
def calm_edges(
    x: np.ndarray,
    edges: np.ndarray,
    impulse: np.ndarray,
    mobility: np.ndarray,
    v_hat: np.ndarray,
    v: np.ndarray,
    push: np.ndarray,
) -> None:
    """Calm the velocities v (n, 3), m/s, of points x (n, 3), m, edge by edge, that came there by v_hat (n, 3), m/s.

    ``edges`` (m, 2) are pairs of points, ``impulse`` (m,), kg, is c of each in full, and ``mobility`` (n,), 1/kg, the inverse
    masses, zero where the velocity is prescribed. ``push`` (n, 3), N s, gains the impulses on such points.
    """
    for e in range(edges.shape[0]):
        a, b = edges[e, 0], edges[e, 1]
        d0, d1, d2 = x[b, 0] - x[a, 0], x[b, 1] - x[a, 1], x[b, 2] - x[a, 2]
        length = math.sqrt(d0 * d0 + d1 * d1 + d2 * d2)
        if length == 0.0:
            continue
        d0, d1, d2 = d0 / length, d1 / length, d2 / length
        parting = d0 * (v[b, 0] - v[a, 0]) + d1 * (v[b, 1] - v[a, 1]) + d2 * (v[b, 2] - v[a, 2])
        parted = d0 * (v_hat[b, 0] - v_hat[a, 0]) + d1 * (v_hat[b, 1] - v_hat[a, 1]) + d2 * (v_hat[b, 2] - v_hat[a, 2])
        c = impulse[e] * _part_that_turns((parting - parted) ** 2, parting * parting + parted * parted)
        p = c * parting / (1.0 + c * (mobility[a] + mobility[b]))
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


@njit(cache=True)
def calm_joints(
    poses: np.ndarray,
    arm: np.ndarray,
    kind: np.ndarray,
    stiffness: np.ndarray,
    factor: float,
    mass: np.ndarray,
    inertia: np.ndarray,
    v_hat: np.ndarray,
    v: np.ndarray,
    push: np.ndarray,
) -> None:
    """Calm the velocities of the links of a rod joint by joint: first how fast its two ends part, then how fast it bends.

    The impulse is that of three dashpots in the axes of the first of the two links, at one place on both, so their angular
    momentum stays as well.

    Parameters
    ----------
    poses : ndarray, (n + 2, 7), m
        Poses of the frames of the ends and, between them, of the links.
    arm, kind, stiffness : ndarray, (n + 2,) m, (n + 1,) and (n + 1, 6)
        As in :mod:`femsim.model.bodies.rod_kernels`.
    factor : float, s^2
        gamma dt^2.
    mass, inertia : ndarray, (n + 2,) kg and (n + 2, 3) kg m^2
        Of frames, which nothing moves, infinite.
    v_hat : ndarray, (n + 2, 6), m/s and rad/s
        Velocities of the step.
    v : ndarray, (n + 2, 6), m/s and rad/s
        Velocities at its end, which change.
    push : ndarray, (n + 2, 6), N s and N m s
        Gains the impulses on frames.
    """
    for k in range(kind.shape[0]):
        if kind[k] == ABSENT:
            continue
        i, j = k, k + 1
        R_i, R_j = rotation_at(poses, i), rotation_at(poses, j)
        # half-way between the two ends that the joint holds together
        ri = (
            0.5 * (poses[j, 0] - poses[i, 0] + arm[i] * R_i[2] - arm[j] * R_j[2]),
            0.5 * (poses[j, 1] - poses[i, 1] + arm[i] * R_i[5] - arm[j] * R_j[5]),
            0.5 * (poses[j, 2] - poses[i, 2] + arm[i] * R_i[8] - arm[j] * R_j[8]),
        )
        rj = (ri[0] + poses[i, 0] - poses[j, 0], ri[1] + poses[i, 1] - poses[j, 1], ri[2] + poses[i, 2] - poses[j, 2])
        I_i = turned_diagonal(R_i, (1.0 / inertia[i, 0], 1.0 / inertia[i, 1], 1.0 / inertia[i, 2]))
        I_j = turned_diagonal(R_j, (1.0 / inertia[j, 0], 1.0 / inertia[j, 1], 1.0 / inertia[j, 2]))
        along = (factor * stiffness[k, 0], factor * stiffness[k, 1], factor * stiffness[k, 2])
        if kind[k] == BALL:
            along = (along[2], along[2], along[2])
        parting, parted = _parting(v, i, j, ri, rj), _parting(v_hat, i, j, ri, rj)
        change = less(parting, parted)
        part = _part_that_turns(dot(change, change), dot(parting, parting) + dot(parted, parted))
        W = add_to_diagonal(plus(_at_lever(I_i, ri), _at_lever(I_j, rj)), 1.0 / mass[i] + 1.0 / mass[j])
        p = _implicit_impulse(turned_diagonal(R_i, scaled(part, along)), W, parting)
        _add_impulse(v, push, i, 1.0, p, cross(ri, p), mass, I_i)
        _add_impulse(v, push, j, -1.0, p, cross(rj, p), mass, I_j)
        if kind[k] == FULL:
            about = (factor * stiffness[k, 3], factor * stiffness[k, 4], factor * stiffness[k, 5])
            bending, bent = less(vector_at(v, j, 3), vector_at(v, i, 3)), less(vector_at(v_hat, j, 3), vector_at(v_hat, i, 3))
            change = less(bending, bent)
            part = _part_that_turns(dot(change, change), dot(bending, bending) + dot(bent, bent))
            m = _implicit_impulse(turned_diagonal(R_i, scaled(part, about)), plus(I_i, I_j), bending)
            _add_impulse(v, push, i, 1.0, (0.0, 0.0, 0.0), m, mass, I_i)
            _add_impulse(v, push, j, -1.0, (0.0, 0.0, 0.0), m, mass, I_j)


@njit(cache=True, inner=True)
def _parting(v: np.ndarray, i: int, j: int, ri: Vector, rj: Vector) -> Vector:
    """Velocity at which the places of a joint on links i and j part."""
    on_i = added(vector_at(v, i, 0), cross(vector_at(v, i, 3), ri))
    return less(added(vector_at(v, j, 0), cross(vector_at(v, j, 3), rj)), on_i)


@njit(cache=True, inner=True)
def _at_lever(inverse: Matrix, r: Vector) -> Matrix:
    """Velocity of a point at a lever r by impulses there, from the turn alone: -[r] I^-1 [r]."""
    x = cross_matrix(r)
    return scaled_matrix(-1.0, times(x, times(inverse, x)))


@njit(cache=True, inner=True)
def _implicit_impulse(C: Matrix, W: Matrix, s: Vector) -> Vector:
    """Impulse C s', s' = s - W C s' being the velocity that it leaves: (1 + C W)^-1 C s."""
    a = add_to_diagonal(times(C, W), 1.0)
    b = times_vector(C, s)
    inverse = 1.0 / max(determinant(a), 1.0)  # it is at least 1, but for rounding where places are absurdly far away
    return (
        inverse * determinant((b[0], a[1], a[2], b[1], a[4], a[5], b[2], a[7], a[8])),
        inverse * determinant((a[0], b[0], a[2], a[3], b[1], a[5], a[6], b[2], a[8])),
        inverse * determinant((a[0], a[1], b[0], a[3], a[4], b[1], a[6], a[7], b[2])),
    )


@njit(cache=True, inner=True)
def _add_impulse(
    v: np.ndarray, push: np.ndarray, i: int, sign: float, p: Vector, moment: Vector, mass: np.ndarray, inverse: Matrix
) -> None:
    """Add an impulse and its moment to the velocities of a link, or to the push of a frame."""
    turn = times_vector(inverse, moment)
    for c in range(3):
        v[i, c] += sign * p[c] / mass[i]
        v[i, 3 + c] += sign * turn[c]
        if math.isinf(mass[i]):
            push[i, c] += sign * p[c]
            push[i, 3 + c] += sign * moment[c]

"""Compiled kernels of COND on the contacts: the contact solver of Alg. 2, and the natural map that judges it.

See ``cond_groups`` for the arrays.
"""

from __future__ import annotations

import math

import numpy as np

from contact.compiled import njit
from contact.cone import project_cone_elliptic, project_strict_elliptic
from contact.metrics_kernels import larger, law_parts, relative
from contact.solvers.cond_groups import ContactArrays


@njit(cache=True, inner=True, _nrt=False)
def to_contact(block: np.ndarray, m: int, side: int, x: np.ndarray, s: int) -> tuple[float, float, float]:
    """Velocity of the node at row s of x in the frame of contact m, which it is on that side of."""
    x0 = x[s]
    x1 = x[s + 1]
    x2 = x[s + 2]
    return (
        block[m, side, 0, 0] * x0 + block[m, side, 0, 1] * x1 + block[m, side, 0, 2] * x2,
        block[m, side, 1, 0] * x0 + block[m, side, 1, 1] * x1 + block[m, side, 1, 2] * x2,
        block[m, side, 2, 0] * x0 + block[m, side, 2, 1] * x1 + block[m, side, 2, 2] * x2,
    )


@njit(cache=True, inner=True, _nrt=False)
def to_node(block: np.ndarray, m: int, side: int, f0: float, f1: float, f2: float) -> tuple[float, float, float]:
    """Force (f0, f1, f2) of contact m on the node of that side, in the node's coordinates."""
    return (
        block[m, side, 0, 0] * f0 + block[m, side, 1, 0] * f1 + block[m, side, 2, 0] * f2,
        block[m, side, 0, 1] * f0 + block[m, side, 1, 1] * f1 + block[m, side, 2, 1] * f2,
        block[m, side, 0, 2] * f0 + block[m, side, 1, 2] * f1 + block[m, side, 2, 2] * f2,
    )


@njit(cache=True, _nrt=False)
def mark_coupled(node: np.ndarray, uses: np.ndarray, coupled: np.ndarray) -> None:
    """Fill which contacts have a node that another one uses too, (nc,); ``uses`` (size,) is overwritten."""
    for i in range(uses.shape[0]):
        uses[i] = 0
    for m in range(node.shape[0]):
        for side in range(2):
            if node[m, side] >= 0:
                uses[node[m, side]] += 1
    for m in range(node.shape[0]):
        coupled[m] = False
        for side in range(2):
            coupled[m] = coupled[m] or (node[m, side] >= 0 and uses[node[m, side]] > 1)


@njit(cache=True, inner=True, _nrt=False)
def contact_sweep(
    first: bool,
    strict: bool,
    regularization: float,
    contacts: ContactArrays,
    alpha: float,
    w: np.ndarray,
    lam: np.ndarray,
    x: np.ndarray,
    force: np.ndarray,
) -> float:
    """One Gauss-Seidel pass over the contacts of the surrogate problem with steps alpha w (Alg. 2).

    Returns the largest force change of a coupled contact relative to the largest force of one.

    x already holds v* and alpha W J^T lam of the contacts that share a node (``coupled``). Each of those removes its own share by
    the projection of eq. (26) on gamma = sum of the steps of its nodes, and converges by passes with lam kept per contact
    (design: a node in several contacts at once). The others are solved exactly, from zero, by the ``first`` pass and left out
    later; ``force`` gets their J^T lam. A regularisation Omega = ``regularization`` I adds to gamma (eq. 37).
    """
    node, block, phi, friction = contacts.node, contacts.block, contacts.phi, contacts.friction
    coupled, first_virtual = contacts.coupled, contacts.first_virtual
    change = 0.0
    largest = 0.0
    for m in range(node.shape[0]):
        shares = coupled[m]
        if not (first or shares):
            continue
        u0, u1, u2 = phi[m, 0], phi[m, 1], phi[m, 2]
        gamma = regularization
        for side in range(2):
            s = node[m, side]
            if s >= first_virtual:  # its block is the identity
                u0 += x[s]
                u1 += x[s + 1]
                u2 += x[s + 2]
                gamma += alpha * w[s]
            elif s >= 0:
                v0, v1, v2 = to_contact(block, m, side, x, s)
                u0 += v0
                u1 += v1
                u2 += v2
                gamma += alpha * w[s]
        if gamma == 0.0:  # an obstacle against an obstacle: nothing to move
            lam[m, 0] = lam[m, 1] = lam[m, 2] = 0.0
            continue
        d0 = d1 = d2 = 0.0
        if shares:
            d0, d1, d2 = lam[m, 0], lam[m, 1], lam[m, 2]
        stiffness = 1.0 / gamma
        t0 = d0 - (u0 + regularization * d0) * stiffness
        t1 = d1 - (u1 + regularization * d1) * stiffness
        t2 = d2 - (u2 + regularization * d2) * stiffness
        if strict:
            p0, p1, p2 = project_strict_elliptic(t0, t1, t2, friction[m, 0], friction[m, 1])
        else:
            p0, p1, p2 = project_cone_elliptic(t0, t1, t2, friction[m, 0], friction[m, 1])
        d0, d1, d2 = p0 - d0, p1 - d1, p2 - d2
        lam[m, 0], lam[m, 1], lam[m, 2] = p0, p1, p2
        for side in range(2):
            s = node[m, side]
            if s < 0:
                continue
            f0, f1, f2 = d0, d1, d2
            if s < first_virtual:
                f0, f1, f2 = to_node(block, m, side, d0, d1, d2)
            step = alpha * w[s]
            x[s] += step * f0
            x[s + 1] += step * f1
            x[s + 2] += step * f2
            if not shares:
                force[s] += f0
                force[s + 1] += f1
                force[s + 2] += f2
        if shares:
            change = max(change, abs(d0) + abs(d1) + abs(d2))
            largest = max(largest, abs(p0) + abs(p1) + abs(p2))
    return change / largest if largest > 0.0 else change


@njit(cache=True, inner=True, _nrt=False)
def add_coupled_steps(contacts: ContactArrays, alpha: float, w: np.ndarray, lam: np.ndarray, x: np.ndarray) -> None:
    """Update x += alpha W J^T lam of the contacts that share a node."""
    for m in range(lam.shape[0]):
        for side in range(2) if contacts.coupled[m] else range(0):
            s = contacts.node[m, side]
            if s >= 0:
                f0, f1, f2 = lam[m, 0], lam[m, 1], lam[m, 2]
                if s < contacts.first_virtual:
                    f0, f1, f2 = to_node(contacts.block, m, side, f0, f1, f2)
                step = alpha * w[s]
                x[s] += step * f0
                x[s + 1] += step * f1
                x[s + 2] += step * f2


@njit(cache=True, inner=True, _nrt=False)
def add_coupled_forces(contacts: ContactArrays, lam: np.ndarray, force: np.ndarray) -> None:
    """Update force += J^T lam of the contacts that share a node; ``lam`` (nc, 3) and ``force`` by rows of nodes, N."""
    for m in range(lam.shape[0]):
        for side in range(2) if contacts.coupled[m] else range(0):
            s = contacts.node[m, side]
            if s >= 0:
                f0, f1, f2 = lam[m, 0], lam[m, 1], lam[m, 2]
                if s < contacts.first_virtual:
                    f0, f1, f2 = to_node(contacts.block, m, side, f0, f1, f2)
                force[s] += f0
                force[s + 1] += f1
                force[s + 2] += f2


@njit(cache=True, inner=True, _nrt=False)
def natural_residual(
    contacts: ContactArrays,
    strict: bool,
    regularization: float,
    lam: np.ndarray,
    x: np.ndarray,
    point_velocity: np.ndarray,
) -> float:
    """Natural-map residual of ``contact.metrics.contact_residual`` (of the relaxed law for the proximal operator).

    Virtual nodes count with ``point_velocity`` (nv, 3): the velocity of the point of their body for the residual of the
    original problem, or their own for that of the nodal one.
    """
    node, block, phi, stretch = contacts.node, contacts.block, contacts.phi, contacts.stretch
    first_virtual = contacts.first_virtual
    total = 0.0
    force = 0.0
    velocity = 0.0
    for m in range(node.shape[0]):
        u0 = phi[m, 0] + regularization * lam[m, 0]
        u1 = phi[m, 1] + regularization * lam[m, 1]
        u2 = phi[m, 2] + regularization * lam[m, 2]
        for side in range(2):
            s = node[m, side]
            if s >= first_virtual:
                q = (s - first_virtual) // 3
                u0 += point_velocity[q, 0]
                u1 += point_velocity[q, 1]
                u2 += point_velocity[q, 2]
            elif s >= 0:
                v0, v1, v2 = to_contact(block, m, side, x, s)
                u0 += v0
                u1 += v1
                u2 += v2
        f0 = lam[m, 0]
        f1 = lam[m, 1] / stretch[m, 0]
        f2 = lam[m, 2] / stretch[m, 1]
        v0, v1, v2, e0, e1, e2 = law_parts(
            u0, u1 * stretch[m, 0], u2 * stretch[m, 1], f0, f1, f2, contacts.rho[m], contacts.mean[m], not strict
        )
        total += e0**2 + e1**2 + e2**2
        force += f0 * f0 + f1 * f1 + f2 * f2
        velocity += v0 * v0 + v1 * v1 + v2 * v2
    return math.sqrt(relative(total, larger(force, velocity)))

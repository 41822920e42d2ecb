"""Kernel of the whole tangent of an energy-momentum step of rods: its equations differ by directions that change in the step.

Forces of :mod:`femsim.model.bodies.rod_momentum_kernels` pull along the means of both ends of the step, and strains change along
the axes at its end. So the derivative of the equations is no symmetric matrix: where stiff links turn by an angle a in a step,
what a symmetric one lacks is a/2 times their stiffness along their axes. It is taken here by differences of the forces of the
joints themselves. (Backward Euler has nearly symmetric derivatives, and steps by them are worse than by a definite matrix: links
that are pushed buckle. Measured on 37 random rods: 1.2 times the linearisations.)
"""

from __future__ import annotations

import numpy as np

from contact.compiled import njit
from contact.vector_kernels import minus as less, times as scaled
from femsim.model.bodies.rod_kernels import ABSENT, put_matrix, put_vector, vector_at
from femsim.model.bodies.rod_momentum_kernels import joint_force, turned_by_cayley, turned_force
from femsim.model.bodies.rotation_kernels import Vector, rotation_at

#: Turn of a link, rad, and way over its length, by which forces are differenced: rounding leaves 1e-8 of stiffness, the second
#: derivative 1e-7.
_DIFFERENCE = 1e-7


@njit(cache=True, forceinline=True)
def _add(data: np.ndarray, place: int, vector: Vector) -> None:
    """Add a vector to three entries, one after the other."""
    data[place] += vector[0]
    data[place + 1] += vector[1]
    data[place + 2] += vector[2]


@njit(cache=True)
def step_slopes(
    start: np.ndarray,
    rotation: np.ndarray,
    before: np.ndarray,
    after: np.ndarray,
    turn: np.ndarray,
    end_rotation: np.ndarray,
    arm: np.ndarray,
    kind: np.ndarray,
    stiffness: np.ndarray,
    rest: np.ndarray,
    slowing: float,
    lengths: np.ndarray,
    mass: np.ndarray,
    inertia: np.ndarray,
    damping: np.ndarray,
    alpha: float,
    v: np.ndarray,
    v_hat: np.ndarray,
    dt: float,
    end_pull: np.ndarray,
    force: np.ndarray,
    data: np.ndarray,
) -> bool:
    """Fill the CSC entries, as ``rod_kernels.system`` orders them, of the derivative of the equations by v_hat; True if found.

    ``start`` to ``slowing`` are those of ``step_forces``, which has filled ``end_rotation``, and ``before`` (n + 2, 7) the poses
    at the start of the step; ``lengths`` (n,) m; ``mass`` to ``dt`` are those of ``step_equations``; ``end_pull`` (2,) is that
    of ``rod_kernels.system``; ``force`` (n + 1, 9) is filled with those of the joints. False where a joint has turned by more
    than half a turn. The 22 parameters are those of these kernels and the entries.
    """
    n = mass.shape[0]
    for k in range(n + 1):
        if kind[k] == ABSENT:
            continue
        found, f, on_i, on_j = joint_force(start, rotation, after, turn, arm, kind, stiffness, rest, slowing, end_rotation, k)
        if not found:
            return False
        put_vector(force, k, 0, f)
        put_vector(force, k, 3, on_i)
        put_vector(force, k, 6, on_j)
    data[:] = 0.0
    links, links_after = before[1:-1], after[1:-1]
    for i in range(n):
        p = i + 1
        first = 36 * (3 * i - 1) if i > 0 else 0
        own = 6 if i > 0 else 0
        stride = own + (12 if i < n - 1 else 6)
        place_0, turn_0 = vector_at(after, p, 0), vector_at(turn, p, 0)
        quaternion_0 = (after[p, 3], after[p, 4], after[p, 5], after[p, 6])
        axes_0 = rotation_at(after, p)
        quaternion_start = (before[p, 3], before[p, 4], before[p, 5], before[p, 6])
        _, turning_0 = turned_force(links, links_after, v, v_hat, inertia, damping[i, 1], dt, alpha, i)
        along = 2.0 * mass[i] / dt + alpha * mass[i] + damping[i, 0]
        for c in range(6):
            column = first + c * stride
            if c < 3:
                way = _DIFFERENCE * lengths[i]
                after[p, c] += way
                change = dt / way
                data[column + own + c] += along
            else:
                change = dt / _DIFFERENCE
                kept = v_hat[6 * i + c]
                v_hat[6 * i + c] = kept + _DIFFERENCE / dt
                turn[p, c - 3] += _DIFFERENCE
                turned = turned_by_cayley(quaternion_start, vector_at(turn, p, 0))
                for m in range(4):
                    after[p, 3 + m] = turned[m]
                put_matrix(end_rotation, p, 0, rotation_at(after, p))
                _, turning = turned_force(links, links_after, v, v_hat, inertia, damping[i, 1], dt, alpha, i)
                _add(data, column + own + 3, scaled(change, less(turning, turning_0)))
                v_hat[6 * i + c] = kept
            for k in range(i, i + 2):
                if kind[k] == ABSENT:
                    continue
                found, f, on_i, on_j = joint_force(
                    start, rotation, after, turn, arm, kind, stiffness, rest, slowing, end_rotation, k
                )
                if not found:
                    on_i, on_j, f = vector_at(force, k, 3), vector_at(force, k, 6), vector_at(force, k, 0)
                pull = scaled(change, less(f, vector_at(force, k, 0)))
                # link k - 1 is pose i of joint k, link k its pose j
                if k > 0:
                    row = column + own + 6 * (k - 1 - i)
                    _add(data, row, scaled(-1.0, pull))
                    _add(data, row + 3, scaled(change, less(on_i, vector_at(force, k, 3))))
                if k < n:
                    row = column + own + 6 * (k - i)
                    _add(data, row, pull)
                    _add(data, row + 3, scaled(change, less(on_j, vector_at(force, k, 6))))
            put_vector(after, p, 0, place_0)
            put_vector(turn, p, 0, turn_0)
            for m in range(4):
                after[p, 3 + m] = quaternion_0[m]
            put_matrix(end_rotation, p, 0, axes_0)
        for end in range(2):
            if end_pull[end] > 0.0 and i == (n - 1) * end:
                for c in range(3):
                    place = first + (3 + c) * stride + own + 3
                    data[place + c] += end_pull[end]
                    _add(data, place, scaled(-end_pull[end] * axes_0[3 * c + 2], (axes_0[2], axes_0[5], axes_0[8])))
    return True

"""Kernels of a step of rigid bodies and grippers: papers/001 about its start, and the energy-momentum step where it leads."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from contact.compiled import njit
from contact.vector_kernels import minus as less, times as scaled
from femsim.model.bodies.rigid_kernels import free_rotation, solve_leading
from femsim.model.bodies.rotation_kernels import (
    Matrix,
    Vector,
    rotation_entries,
    times,
    times_transposed,
    times_vector,
    transposed_times_vector,
)
from femsim.model.bodies.tree_kernels import Places, Tree, inverse_dynamics, move
from femsim.model.bodies.tree_step_kernels import Motors, Start, fill_motors


class StepTerms(NamedTuple):
    """What a step is made of.

    Attributes
    ----------
    A : ndarray, (n_v, n_v)
        Mass matrix over theta dt, with the damping of the joints.
    b, external : ndarray, (n_v,), N and N m
        Right-hand side, and the part of it that gravity, the load and the joints make.
    bias : ndarray, (n_v,), N and N m
        Coriolis, centrifugal and gyroscopic forces C v of eq. (3).
    force, damping : ndarray, (n_v,)
        Force and damping of the joints, so that they exert ``force - damping v``.
    """

    A: np.ndarray
    b: np.ndarray
    external: np.ndarray
    bias: np.ndarray
    force: np.ndarray
    damping: np.ndarray


@njit(cache=True, forceinline=True)
def _entries(a: np.ndarray) -> Matrix:
    return a[0, 0], a[0, 1], a[0, 2], a[1, 0], a[1, 1], a[1, 2], a[2, 0], a[2, 1], a[2, 2]


@njit(cache=True, forceinline=True)
def _turning(v: np.ndarray) -> Vector:
    return v[3], v[4], v[5]


@njit(cache=True, inner=True)
def fill_bias(tree: Tree, places: Places, v: np.ndarray, out: np.ndarray) -> None:
    """Fill C v of eq. (3), (n_v,), where joints only slide: nothing where the base does not turn."""
    if v[3] == 0.0 and v[4] == 0.0 and v[5] == 0.0:
        out[:] = 0.0
        return
    inverse_dynamics(tree, places, v, np.zeros(v.shape[0]), np.zeros(3), out)


@njit(cache=True, inner=True)
def fill_turning(tree: Tree, places: Places, start: Start, inverse: np.ndarray, out: np.ndarray) -> None:
    """Fill the gyroscopic forces (6,) by which a free body turns as :func:`femsim.model.bodies.rigid_kernels.free_rotation` says.

    ``inverse`` is the inverse of its inertia, (3, 3). Where that finds no answer they are those of eq. (3).
    """
    out[:] = 0.0
    turning = _turning(start.v)
    if turning == (0.0, 0.0, 0.0):
        return
    R, inertia = _entries(places.rotation[0]), _entries(tree.inertia[0])
    own, spin, omega = transposed_times_vector(R, turning), np.empty(3), np.empty(3)
    spin[0], spin[1], spin[2] = times_vector(inertia, own)
    if not free_rotation(inverse, spin, start.dt, omega, start.cayley):
        fill_bias(tree, places, start.v, out)
        return
    change = scaled(1.0 / start.implicit, less(own, (omega[0], omega[1], omega[2])))
    out[3], out[4], out[5] = times_vector(R, times_vector(inertia, change))


@njit(cache=True, inner=True)
def _fill_external(M: np.ndarray, gravity: np.ndarray, load: np.ndarray, force: np.ndarray, out: np.ndarray) -> None:
    for a in range(out.shape[0]):
        out[a] = M[a, 0] * gravity[0] + M[a, 1] * gravity[1] + M[a, 2] * gravity[2] + force[a]
    for i in range(6):
        out[i] += load[i]


@njit(cache=True)
def linearise_about_start(
    tree: Tree, places: Places, M: np.ndarray, motors: Motors, start: Start, load: np.ndarray, inverse: np.ndarray, out: StepTerms
) -> None:  # fmt: skip
    """Fill all terms of a step about where it starts, at places with the mass matrix M (n_v, n_v); ``load`` (6,), N and N m.

    Motors are linear in the velocity of the step; whether one is at its limit says the velocity at the start.
    """
    v, n = start.v, start.v.shape[0]
    if n > 6:
        moved = start.q.copy()
        move(tree, start.q, v, start.implicit, start.cayley, moved)
        fill_motors(motors, moved, v, start.implicit, out.force, out.damping)
        fill_bias(tree, places, v, out.bias)
    else:
        fill_turning(tree, places, start, inverse, out.bias)
    _fill_external(M, start.gravity, load, out.force, out.external)
    for a in range(n):
        total = 0.0
        for c in range(n):
            out.A[a, c] = M[a, c] / start.implicit
            total += M[a, c] * v[c]
        out.A[a, a] += out.damping[a]
        out.b[a] = total / start.implicit - out.bias[a] + out.external[a]


@njit(cache=True)
def fill_residual(terms: StepTerms, v: np.ndarray, v_hat: np.ndarray, out: np.ndarray, inertia: np.ndarray) -> None:
    """Fill A v_hat - b, and A (v_hat - v), (n_v,)."""
    for a in range(v.shape[0]):
        lacking, rate = -terms.b[a], 0.0
        for c in range(v.shape[0]):
            lacking += terms.A[a, c] * v_hat[c]
            rate += terms.A[a, c] * (v_hat[c] - v[c])
        out[a], inertia[a] = lacking, rate


@njit(cache=True)
def fill_turned(
    tree: Tree, places: Places, start: Start, v_hat: np.ndarray, terms: StepTerms, out: np.ndarray, inertia: np.ndarray,
    rate: np.ndarray,
) -> None:  # fmt: skip
    """Fill a theta step of a body without joints whose inertia is that where the step leads, at theta, so that none turns.

    Parameters
    ----------
    tree, places : Tree and Places
        The body, and where it is as the step starts.
    start : Start
        How it starts.
    v_hat : ndarray, (6,)
        Representative velocity.
    terms : StepTerms
        The inertia in its A is replaced; the external forces are read.
    out, inertia, rate : ndarray, (6,), N and N m
        Filled: what is lacking at v_hat, A (v_hat - v), and the rate of momentum.
    """
    spin, turning, there = _entries(tree.inertia[0]), _turning(v_hat), start.q.copy()
    move(tree, start.q, v_hat, start.implicit, start.cayley, there)
    before, after = _entries(places.rotation[0]), rotation_entries(there[3], there[4], there[5], there[6])
    turned = times_transposed(times(after, spin), after)
    for r in range(3):
        for c in range(3):
            terms.A[3 + r, 3 + c] = turned[3 * r + c] / start.implicit
    for a in range(6):
        total = 0.0
        for c in range(6):
            total += terms.A[a, c] * (v_hat[c] - start.v[c])
        inertia[a] = rate[a] = total
    begun = times_vector(before, times_vector(spin, transposed_times_vector(before, _turning(start.v))))
    rate[3], rate[4], rate[5] = scaled(1.0 / start.implicit, less(times_vector(turned, turning), begun))
    for a in range(6):
        out[a] = rate[a] - terms.external[a]


@njit(cache=True)
def linearise_turned(
    tree: Tree, places: Places, M: np.ndarray, start: Start, load: np.ndarray, out: StepTerms, rate: np.ndarray
) -> None:
    """Fill all terms of :func:`fill_turned` about the velocity at the start, and the rate of momentum (6,) there.

    The body has the mass matrix M (6, 6) at places; there are no gyroscopic forces beside those in the rate.
    """
    lacking, inertia = np.empty(6), np.empty(6)
    out.bias[:] = 0.0
    _fill_external(M, start.gravity, load, out.force, out.external)
    for a in range(6):
        for c in range(6):
            out.A[a, c] = M[a, c] / start.implicit
    fill_turned(tree, places, start, start.v, out, lacking, inertia, rate)
    for a in range(6):
        total = -lacking[a]
        for c in range(6):
            total += out.A[a, c] * start.v[c]
        out.b[a] = total


@njit(cache=True)
def fill_middle(
    tree: Tree, before: Places, middle: Places, M: np.ndarray, start: Start, v_hat: np.ndarray, load: np.ndarray, out: StepTerms,
    inertia: np.ndarray, rate: np.ndarray,
) -> None:  # fmt: skip
    """Fill an energy-momentum step at its middle, with the mass matrix M (n_v, n_v) there.

    Parameters
    ----------
    tree, before, middle : Tree and Places
        The links, and where they are as the step starts and in its middle.
    start : Start
        How it starts.
    v_hat : ndarray, (n_v,)
        Representative velocity.
    load : ndarray, (6,), N and N m
        Load on the base.
    out : StepTerms
        A, and the external forces, from the force and damping of the joints. Its bias becomes that of bodies with joints.
    inertia, rate : ndarray, (n_v,), N and N m
        Filled: M (v_hat - v) / (theta dt), and the rate of momentum.
    """
    n = v_hat.shape[0]
    _fill_external(M, start.gravity, load, out.force, out.external)
    for a in range(n):
        total = 0.0
        for c in range(n):
            out.A[a, c] = M[a, c] / start.implicit
            total += out.A[a, c] * (v_hat[c] - start.v[c])
        out.A[a, a] += out.damping[a]
        inertia[a] = rate[a] = total
    if n > 6:
        fill_bias(tree, middle, v_hat, out.bias)
        for a in range(n):
            rate[a] += out.bias[a]
        return
    end = start.q.copy()
    move(tree, start.q, v_hat, start.dt, start.cayley, end)
    old, new = _entries(before.rotation[0]), rotation_entries(end[3], end[4], end[5], end[6])
    spin = _entries(tree.inertia[0])
    first, mean = transposed_times_vector(old, _turning(start.v)), transposed_times_vector(old, _turning(v_hat))
    last = less(scaled(2.0, mean), first)
    change = less(times_vector(new, times_vector(spin, last)), times_vector(old, times_vector(spin, first)))
    rate[3], rate[4], rate[5] = scaled(1.0 / start.dt, change)


@njit(cache=True)
def turn_momentum(M: np.ndarray, M_new: np.ndarray, torque: np.ndarray, dt: float, v_new: np.ndarray) -> None:
    """Replace the angular velocity in v_new (6,), of a body without joints, by that of its angular momentum at the end.

    The momentum is that of v_new with the mass matrix M (6, 6) at the start, and dt times the ``torque`` in its last three rows;
    M_new is that at the end.
    """
    x = np.zeros(6)
    for r in range(3, 6):
        x[r] = dt * torque[r]
        for c in range(3, 6):
            x[r] += M[r, c] * v_new[c]
    solve_leading(M_new, x)
    v_new[3:6] = x[3:6]

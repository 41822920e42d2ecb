"""Kernels of the nonlinear residual of a step: sizes of forces in the norm that the diagonal of A makes."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from contact.compiled import njit
from contact.metrics_kernels import larger


class Terms(NamedTuple):
    """Forces of the equations of a step, (n,) each, N and N m.

    Attributes
    ----------
    out : ndarray
        Left side without contacts and joints, M (v_hat - v)/(theta dt) - f.
    contact, joints : ndarray
        What contacts and joints push.
    inertia, external : ndarray
        Rate of momentum and external forces, parts of ``out``.
    b : ndarray
        Right-hand side of the linearised equations.
    """

    out: np.ndarray
    contact: np.ndarray
    joints: np.ndarray
    inertia: np.ndarray
    external: np.ndarray
    b: np.ndarray


@njit(cache=True)
def term_sizes(diagonal: np.ndarray, held: np.ndarray, terms: Terms, start: int, stop: int) -> tuple[float, float, float]:
    """Sizes of terms and of b on the rows from start to stop, half-open, and the sum of the diagonal there.

    Sizes are the roots of sum f_i^2 / diagonal_i; that of the terms is the largest of rate of momentum, external forces, contact
    forces and what holds the rows that are ``held``.
    """
    inertia = external = contact = drives = b = trace = 0.0
    for i in range(start, stop):
        weight = 1.0 / diagonal[i]
        if held[i]:
            left = terms.out[i] - terms.contact[i] - terms.joints[i]
            drives += weight * left * left
        inertia += weight * terms.inertia[i] * terms.inertia[i]
        external += weight * terms.external[i] * terms.external[i]
        contact += weight * terms.contact[i] * terms.contact[i]
        b += weight * terms.b[i] * terms.b[i]
        trace += diagonal[i]
    return math.sqrt(larger(larger(inertia, external), larger(contact, drives))), math.sqrt(b), trace


@njit(cache=True)
def sizes(diagonal: np.ndarray, held: np.ndarray, terms: Terms, lacking: np.ndarray) -> tuple[float, float, float, float]:
    """Fill what is lacking, (n,), 0 on rows that are ``held``; return its size, and those of :func:`term_sizes` on all rows."""
    lack = 0.0
    for i in range(diagonal.shape[0]):
        left = terms.out[i] - terms.contact[i] - terms.joints[i]
        lacking[i] = 0.0 if held[i] else left
        if not held[i]:
            lack += left * left / diagonal[i]
    largest, b, trace = term_sizes(diagonal, held, terms, 0, diagonal.shape[0])
    return math.sqrt(lack), largest, b, trace


class Owned(NamedTuple):
    """Rows of each body, and the least that what they lack is relative to.

    Attributes
    ----------
    starts, stops : ndarray, (bodies,)
        First and last row, half-open, of each body.
    floors : ndarray, (bodies,)
        The least of each.
    """

    starts: np.ndarray
    stops: np.ndarray
    floors: np.ndarray


@njit(cache=True)
def own_sizes(owned: Owned, diagonal: np.ndarray, held: np.ndarray, terms: Terms, still: float, scales: np.ndarray) -> None:
    """Fill the forces of each body, (bodies,), that what it lacks is relative to.

    Each is the largest of those of :func:`term_sizes`, of 1e-6 of b, of what makes the speed ``still`` and of its floor.
    """
    for k in range(scales.shape[0]):
        force, b, trace = term_sizes(diagonal, held, terms, owned.starts[k], owned.stops[k])
        scales[k] = larger(larger(force, 1e-6 * b), larger(still * math.sqrt(trace), owned.floors[k]))


@njit(cache=True)
def largest_share(owned: Owned, diagonal: np.ndarray, lacking: np.ndarray, scales: np.ndarray) -> float:
    """Return the largest part of its forces, (bodies,) scales, that a body lacks; of forces (n,)."""
    worst = 0.0
    for k in range(scales.shape[0]):
        lack = 0.0
        for i in range(owned.starts[k], owned.stops[k]):
            lack += lacking[i] * lacking[i] / diagonal[i]
        if lack > 0.0:
            worst = larger(worst, math.sqrt(lack) / scales[k])
    return worst


@njit(cache=True, _nrt=False)
def largest(v: np.ndarray) -> float:
    """Return the largest size of some numbers, (n,); no number where one of them is none."""
    found = 0.0
    for i in range(v.shape[0]):
        size = abs(v[i])
        if size > found or size != size:
            found = size
    return found


@njit(cache=True, _nrt=False)
def worst_body(owned: Owned, diagonal: np.ndarray, lacking: np.ndarray) -> int:
    """Return the first body that lacks most, of forces (n,); -1 where none lacks anything, or forces are no numbers."""
    worst, most = -1, 0.0
    for k in range(owned.starts.shape[0]):
        lack = 0.0
        for i in range(owned.starts[k], owned.stops[k]):
            lack += lacking[i] * lacking[i] / diagonal[i]
        if lack != lack:
            return -1
        if lack > most:
            worst, most = k, lack
    return worst


@njit(cache=True)
def rounding(diagonal: np.ndarray, held: np.ndarray, v_hat: np.ndarray, reach: np.ndarray, time: float) -> float:
    """Size of the forces diagonal_i (|v_hat_i| + reach_i / time) on rows that are not ``held``, in the same norm."""
    total = 0.0
    for i in range(diagonal.shape[0]):
        if not held[i]:
            speed = abs(v_hat[i]) + reach[i] / time
            total += diagonal[i] * speed * speed
    return math.sqrt(total)


@njit(cache=True, _nrt=False)
def vector_weights(diagonal: np.ndarray, start: np.ndarray, stop: np.ndarray, held: np.ndarray, out: np.ndarray) -> None:
    """Fill roots of the diagonal of A, (n,); vectors, the triples of rows from a start to a stop, have that of their mean.

    Rows that are ``held`` have 0.
    """
    for i in range(diagonal.shape[0]):
        out[i] = diagonal[i]
    for k in range(start.shape[0]):
        for i in range(start[k], stop[k], 3):
            out[i] = out[i + 1] = out[i + 2] = (diagonal[i] + diagonal[i + 1] + diagonal[i + 2]) / 3.0
    for i in range(diagonal.shape[0]):
        out[i] = 0.0 if held[i] else math.sqrt(out[i])


@njit(cache=True, _nrt=False)
def sum_on_bodies(owner: np.ndarray, wrench: np.ndarray, force_sum: np.ndarray, force: np.ndarray, size: np.ndarray) -> None:
    """Fill the sum of the forces on each body, (bodies, 3), N, and of their sizes, (bodies,), N, from those on parts.

    ``owner`` (np,) is the body of each part, -1 for none; ``wrench`` (np, 6) begins with the force on it.
    """
    force[:, :] = 0.0
    size[:] = 0.0
    for k in range(owner.shape[0]):
        if owner[k] >= 0:
            size[owner[k]] += force_sum[k]
            for c in range(3):
                force[owner[k], c] += wrench[k, c]

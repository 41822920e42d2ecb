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
def sizes(diagonal: np.ndarray, held: np.ndarray, terms: Terms, lacking: np.ndarray) -> tuple[float, float, float, float]:
    """Fill what is lacking, (n,), 0 on rows that are ``held``; return its size, of terms and of b, and the sum of the diagonal.

    Sizes are the roots of sum f_i^2 / diagonal_i; that of the terms is the largest of rate of momentum, external forces, contact
    forces and what holds the rows.
    """
    lack = inertia = external = contact = drives = b = trace = 0.0
    for i in range(diagonal.shape[0]):
        weight, left = 1.0 / diagonal[i], terms.out[i] - terms.contact[i] - terms.joints[i]
        lacking[i] = 0.0 if held[i] else left
        if held[i]:
            drives += weight * left * left
        else:
            lack += weight * left * left
        inertia += weight * terms.inertia[i] * terms.inertia[i]
        external += weight * terms.external[i] * terms.external[i]
        contact += weight * terms.contact[i] * terms.contact[i]
        b += weight * terms.b[i] * terms.b[i]
        trace += diagonal[i]
    largest = larger(larger(inertia, external), larger(contact, drives))
    return math.sqrt(lack), math.sqrt(largest), math.sqrt(b), trace


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

"""Kernels of the energy-momentum step: stresses between two states by which energy and angular momentum are kept exactly.

Between the deformation gradients F0 and F1 of an integration point, with C = F^T F, C_a = (C0 + C1)/2 and dC = C1 - C0, the
second Piola-Kirchhoff stress is the discrete derivative of the energy psi (Gonzalez, "Exact energy and momentum conserving
algorithms for general models in nonlinear elasticity", Comput. Methods Appl. Mech. Engrg. 190, 2000)

    S = S_a + (2 psi(C1) - 2 psi(C0) - S_a : dC) / (dC : dC) dC,    S_a = 2 psi'(C_a),

so S : dC/2 is the change of the energy. With the force sum_q w_q F_m S grad_a, F_m = (F0 + F1)/2, a step that ends at
x0 + dt v_hat and whose velocities change by 2 (v_hat - v0) keeps the energy, and S being symmetric it keeps the angular momentum.
Damping adds alpha (2 mu dE + lambda_q tr(dE) I) with dE = dC/2, which loses energy in proportion to the square of the change of
strain and leaves rotation alone. Small changes take
2 psi(C1) - 2 psi(C0) by Gauss' rule from stresses: differences of energies would carry their rounding, divided by |dC|, into the
stress. The mean dilatation of an element acts by the mean of its pressure at both ends, and alpha times the change of it: damping
that sees more of lambda than lambda_q at the points would lock nearly incompressible elements.

Where an end is inverted, C does not tell it from its mirror image; the element then has the stress of F_m.
"""

from __future__ import annotations

import math

import numpy as np

from contact.compiled import njit
from femsim.model.bodies.hyperelastic_kernels import (
    deformation_gradient,
    eigen_symmetric,
    plus_scaled,
    shape_gradient,
)
from femsim.model.bodies.law_kernels import dilatation, energy_terms
from femsim.model.bodies.rotation_kernels import (
    Matrix,
    Vector,
    add_to_diagonal,
    determinant,
    minus,
    plus,
    polar_quaternion,
    rotation_of,
    scaled_columns,
    scaled_matrix,
    squared_norm,
    times,
    times_transposed,
    times_vector,
    transposed_times,
)

# |dC| below which the quotient adds less than rounding, |dC|^2 of the stress; and below which three points of Gauss' rule
# give the change of energy to rounding, |dC|^7 / 2e6: where they are, and their weight
_TINY_CHANGE, _SMALL_CHANGE = 1e-9, 2e-2
_GAUSS_POINT, _GAUSS_WEIGHT = 0.5 * math.sqrt(0.6), 5.0 / 18.0
# principal stretches are at least this
_SMALL_STRETCH = 1e-6


@njit(cache=True, forceinline=True)
def _vectors(work: np.ndarray) -> Matrix:
    """Eigenvectors that :func:`eigen_symmetric` has left, as columns."""
    return (
        work[1, 0, 0], work[1, 0, 1], work[1, 0, 2], work[1, 1, 0], work[1, 1, 1], work[1, 1, 2],
        work[1, 2, 0], work[1, 2, 1], work[1, 2, 2],
    )  # fmt: skip


@njit(cache=True, inner=True)
def _principal(C: Matrix, work: np.ndarray) -> tuple[Vector, Matrix]:
    """Roots of the eigenvalues of C, and its eigenvectors as columns; ``work`` (2, 3, 3) is scratch."""
    for i in range(3):
        for j in range(3):
            work[0, i, j] = C[3 * i + j]
    eigen_symmetric(work[0], work[1])
    s = (
        math.sqrt(max(work[0, 0, 0], _SMALL_STRETCH * _SMALL_STRETCH)),
        math.sqrt(max(work[0, 1, 1], _SMALL_STRETCH * _SMALL_STRETCH)),
        math.sqrt(max(work[0, 2, 2], _SMALL_STRETCH * _SMALL_STRETCH)),
    )
    return s, _vectors(work)


@njit(cache=True, inner=True)
def _middle_stress(
    F: Matrix, law: int, constants: np.ndarray, lame_lambda: float, lame_mu: float, pressure: float, work: np.ndarray
) -> Matrix:
    """First Piola-Kirchhoff stress at F, which may be inverted, with a pressure that acts on the dilatation."""
    q, _ = polar_quaternion(F, (1.0, 0.0, 0.0, 0.0))
    R = rotation_of(q)
    B = transposed_times(R, F)
    for i in range(3):
        for j in range(3):
            work[0, i, j] = 0.5 * (B[3 * i + j] + B[3 * j + i])
    eigen_symmetric(work[0], work[1])
    s = (work[0, 0, 0], work[0, 1, 1], work[0, 2, 2])
    V = _vectors(work)
    volumetric = dilatation(law, s)
    g = plus_scaled(energy_terms(law, constants, lame_lambda, lame_mu, s, volumetric)[1], pressure, volumetric[1])
    return times_transposed(scaled_columns(times(R, V), g), V)


@njit(cache=True, forceinline=True)
def _product(A: Matrix, B: Matrix) -> float:
    """Return A : B."""
    total = 0.0
    for k in range(9):
        total += A[k] * B[k]
    return total


@njit(cache=True, inner=True)
def _stress(
    C: Matrix, law: int, constants: np.ndarray, lame_lambda: float, lame_mu: float, pressure: float, work: np.ndarray
) -> Matrix:
    """Second Piola-Kirchhoff stress at C, with a pressure that acts on the dilatation; ``work`` (2, 3, 3) is scratch."""
    s, V = _principal(C, work)
    volumetric = dilatation(law, s)
    g = plus_scaled(energy_terms(law, constants, lame_lambda, lame_mu, s, volumetric)[1], pressure, volumetric[1])
    return times_transposed(scaled_columns(V, (g[0] / s[0], g[1] / s[1], g[2] / s[2])), V)


@njit(cache=True, inner=True)
def discrete_stress(
    before: Matrix,
    after: Matrix,
    law: int,
    constants: np.ndarray,
    lame_lambda: float,
    lame_mu: float,
    pressure: float,
    work: np.ndarray,
) -> Matrix:
    """Discrete derivative S (Pa) of psi + pressure d from C0 = ``before`` to C1 = ``after``; ``work`` (2, 3, 3) is scratch."""
    middle, gained = scaled_matrix(0.5, plus(before, after)), minus(after, before)
    S = _stress(middle, law, constants, lame_lambda, lame_mu, pressure, work)
    square = squared_norm(gained)
    if square <= _TINY_CHANGE * _TINY_CHANGE:
        return S
    if square < _SMALL_CHANGE * _SMALL_CHANGE:
        offset = scaled_matrix(_GAUSS_POINT, gained)
        low = _stress(minus(middle, offset), law, constants, lame_lambda, lame_mu, pressure, work)
        high = _stress(plus(middle, offset), law, constants, lame_lambda, lame_mu, pressure, work)
        lacking = _GAUSS_WEIGHT * _product(plus(minus(low, S), minus(high, S)), gained)
    else:
        s0, s1 = _principal(before, work)[0], _principal(after, work)[0]
        dilatation_0, dilatation_1 = dilatation(law, s0), dilatation(law, s1)
        change = energy_terms(law, constants, lame_lambda, lame_mu, s1, dilatation_1)[0]
        change -= energy_terms(law, constants, lame_lambda, lame_mu, s0, dilatation_0)[0]
        change += pressure * (dilatation_1[0] - dilatation_0[0])
        lacking = 2.0 * change - _product(S, gained)
    return plus(S, scaled_matrix(lacking / square, gained))


@njit(cache=True, inner=True)
def _mean_dilatation(
    x: np.ndarray, elements: np.ndarray, gradient: np.ndarray, weight: np.ndarray, law: int, e: int, work: np.ndarray
) -> tuple[float, float, bool]:
    """Mean dilatation of an element, its volume at rest (m^3), and whether no point of it is inverted."""
    volume = mean = 0.0
    upright = True
    for p in range(weight.shape[1]):
        F = deformation_gradient(x, elements, gradient, e, p)
        upright &= determinant(F) > 0.0
        volume += weight[e, p]
        mean += weight[e, p] * dilatation(law, _principal(transposed_times(F, F), work)[0])[0]
    return mean / volume, volume, upright


@njit(cache=True)
def step_forces(
    x0: np.ndarray,
    x1: np.ndarray,
    elements: np.ndarray,
    gradient: np.ndarray,
    weight: np.ndarray,
    law: int,
    constants: np.ndarray,
    lame_lambda: np.ndarray,
    lame_mu: np.ndarray,
    point_lambda: np.ndarray,
    damping: float,
    force: np.ndarray,
) -> None:
    """Fill the force (n, 3), N, of the elements against deformation in a step from x0 to x1, (n, 3) m.

    Mesh and material are as in :func:`hyperelastic_kernels.element_stresses`; ``damping`` is alpha. The 12 parameters are both
    ends of the step, mesh, material and the result.
    """
    work = np.empty((2, 3, 3))
    for i in range(force.shape[0]):
        for c in range(3):
            force[i, c] = 0.0
    for e in range(elements.shape[0]):
        mean_0, _, upright_0 = _mean_dilatation(x0, elements, gradient, weight, law, e, work)
        mean_1, _, upright_1 = _mean_dilatation(x1, elements, gradient, weight, law, e, work)
        pressure = (lame_lambda[e] - point_lambda[e]) * (0.5 * (mean_0 + mean_1) + damping * (mean_1 - mean_0))
        la, mu = point_lambda[e], lame_mu[e]
        for p in range(weight.shape[1]):
            start = deformation_gradient(x0, elements, gradient, e, p)
            end = deformation_gradient(x1, elements, gradient, e, p)
            middle = scaled_matrix(0.5, plus(start, end))
            before, after = transposed_times(start, start), transposed_times(end, end)
            if upright_0 and upright_1:
                P = times(middle, discrete_stress(before, after, law, constants, la, mu, pressure, work))
            else:
                P = _middle_stress(middle, law, constants, la, mu, pressure, work)
            if damping > 0.0:
                strained = scaled_matrix(0.5, minus(after, before))
                slowing = add_to_diagonal(scaled_matrix(2.0 * mu, strained), la * (strained[0] + strained[4] + strained[8]))
                P = plus(P, times(middle, scaled_matrix(damping, slowing)))
            for a in range(elements.shape[1]):
                push = times_vector(P, shape_gradient(gradient, e, p, a))
                for c in range(3):
                    force[elements[e, a], c] += weight[e, p] * push[c]

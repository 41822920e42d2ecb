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
from femsim.model.bodies.law_kernels import (
    COROTATIONAL,
    OGDEN,
    ST_VENANT_KIRCHHOFF,
    STABLE_NEO_HOOKEAN,
    dilatation,
    energy_terms,
)
from femsim.model.bodies.rotation_kernels import (
    Matrix,
    Symmetric,
    Vector,
    add_to_symmetric,
    as_matrix,
    cofactors,
    commuting_product,
    determinant,
    gram,
    plus,
    polar_quaternion,
    rotation_of,
    scaled_columns,
    scaled_matrix,
    squared_norm,
    symmetric_minus,
    symmetric_part,
    symmetric_plus,
    symmetric_product,
    symmetric_scaled,
    symmetric_square,
    times,
    times_transposed,
    times_vector,
    transposed_times,
)

# |dC| below which the quotient adds less than rounding, |dC|^2 of the stress; and below which three points of Gauss' rule
# give the change of energy to rounding, |dC|^7 / 2e6: where they are, and their weight
TINY_CHANGE, SMALL_CHANGE = 1e-9, 2e-2
GAUSS_POINT, GAUSS_WEIGHT = 0.5 * math.sqrt(0.6), 5.0 / 18.0
# principal stretches are at least this; C is all but singular where det C is at most this part of (tr C)^3
_SMALL_STRETCH, _FLAT = 1e-6, 1e-9
# |I - Z Y|^2 up to which the iteration for U goes on, and below which one more step is exact to rounding; most iterations
_ROOT_REACH, _ROOT_FOUND, _MOST_ROOTS = 0.5, 1e-17, 12


@njit(cache=True, forceinline=True)
def _vectors(work: np.ndarray) -> Matrix:
    """Eigenvectors that :func:`eigen_symmetric` has left, as columns."""
    return (
        work[1, 0, 0], work[1, 0, 1], work[1, 0, 2], work[1, 1, 0], work[1, 1, 1], work[1, 1, 2],
        work[1, 2, 0], work[1, 2, 1], work[1, 2, 2],
    )  # fmt: skip


@njit(cache=True, inner=True)
def _principal(C: Symmetric, work: np.ndarray) -> tuple[Vector, Matrix]:
    """Roots of the eigenvalues of C, and its eigenvectors as columns; ``work`` (2, 3, 3) is scratch."""
    A = as_matrix(C)
    for i in range(3):
        for j in range(3):
            work[0, i, j] = A[3 * i + j]
    eigen_symmetric(work[0], work[1])
    s = (
        math.sqrt(max(work[0, 0, 0], _SMALL_STRETCH * _SMALL_STRETCH)),
        math.sqrt(max(work[0, 1, 1], _SMALL_STRETCH * _SMALL_STRETCH)),
        math.sqrt(max(work[0, 2, 2], _SMALL_STRETCH * _SMALL_STRETCH)),
    )
    return s, _vectors(work)


@njit(cache=True, inner=True, error_model="numpy")
def stretch(C: Symmetric, work: np.ndarray) -> tuple[float, Symmetric]:
    """Trace of the stretch U = C^1/2, and its inverse; ``work`` (2, 3, 3) is scratch.

    By the coupled iteration of Newton and Schulz, Y -> Y T and Z -> T Z with T = (3 I - Z Y)/2 from Y = C/c and Z = I, where
    c = tr C/3, to Y = (C/c)^1/2 and Z = Y^-1: 4 iterations at strains of 1 %, 6 at 20 %. By eigenvalues where strains are too
    large for it.
    """
    c = (C[0] + C[1] + C[2]) / 3.0
    root = (C[0] / c, C[1] / c, C[2] / c, C[3] / c, C[4] / c, C[5] / c)
    inverse = (1.0, 1.0, 1.0, 0.0, 0.0, 0.0)
    product = root
    for _ in range(_MOST_ROOTS):
        lacking = symmetric_square((product[0] - 1.0, product[1] - 1.0, product[2] - 1.0, product[3], product[4], product[5]))
        if not lacking <= _ROOT_REACH:
            break
        T = (
            1.5 - 0.5 * product[0], 1.5 - 0.5 * product[1], 1.5 - 0.5 * product[2],
            -0.5 * product[3], -0.5 * product[4], -0.5 * product[5],
        )  # fmt: skip
        root, inverse = commuting_product(root, T), commuting_product(T, inverse)
        if lacking <= _ROOT_FOUND:
            size = math.sqrt(c)
            return size * (root[0] + root[1] + root[2]), symmetric_scaled(1.0 / size, inverse)
        product = commuting_product(inverse, root)
    s, V = _principal(C, work)
    return s[0] + s[1] + s[2], symmetric_part(times_transposed(scaled_columns(V, (1.0 / s[0], 1.0 / s[1], 1.0 / s[2])), V))


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


@njit(cache=True, inner=True)
def _principal_stress(
    C: Symmetric, law: int, constants: np.ndarray, lame_lambda: float, lame_mu: float, pressure: float, work: np.ndarray
) -> Symmetric:
    """Second Piola-Kirchhoff stress at C by principal stretches, of any law; see :func:`_stress`."""
    s, V = _principal(C, work)
    volumetric = dilatation(law, s)
    g = plus_scaled(energy_terms(law, constants, lame_lambda, lame_mu, s, volumetric)[1], pressure, volumetric[1])
    return symmetric_part(times_transposed(scaled_columns(V, (g[0] / s[0], g[1] / s[1], g[2] / s[2])), V))


@njit(cache=True, inner=True, error_model="numpy")
def _stress(
    C: Symmetric, law: int, constants: np.ndarray, lame_lambda: float, lame_mu: float, pressure: float, work: np.ndarray
) -> Symmetric:
    """Second Piola-Kirchhoff stress at C, with a pressure that acts on the dilatation; ``work`` (2, 3, 3) is scratch.

    2 psi'(C) as a function of C itself where the law has one: with I = tr C, J^2 = det C and U^2 = C it is, of the law,

    * co-rotational: 2 mu I + (lambda (tr U - 3) + p - 2 mu) U^-1,
    * Saint Venant and Kirchhoff: mu (C - I) + (lambda (I - 3)/2 + p) I,
    * those in J: 2 own'(I, C) + (linear + bulk (J - 1) + p) J C^-1.

    Ogden's law, and where C is all but singular, takes principal stretches.
    """
    trace = C[0] + C[1] + C[2]
    if law == ST_VENANT_KIRCHHOFF:
        return add_to_symmetric(symmetric_scaled(lame_mu, C), lame_lambda * 0.5 * (trace - 3.0) + pressure - lame_mu)
    adjugate = cofactors(C)
    det = C[0] * adjugate[0] + C[3] * adjugate[3] + C[4] * adjugate[4]
    if law == OGDEN or not det > _FLAT * trace * trace * trace:
        return _principal_stress(C, law, constants, lame_lambda, lame_mu, pressure, work)
    if law == COROTATIONAL:
        length, inverse = stretch(C, work)
        factor = lame_lambda * (length - 3.0) + pressure - 2.0 * lame_mu
        return add_to_symmetric(symmetric_scaled(factor, inverse), 2.0 * lame_mu)
    J = math.sqrt(det)
    if law == STABLE_NEO_HOOKEAN:
        m = 4.0 / 3.0 * lame_mu
        own = m - m / (trace + 1.0)
        linear, bulk, of_strain = -0.75 * m, lame_lambda + 5.0 / 6.0 * lame_mu, 0.0
    else:
        c10, c01 = constants[0] * lame_mu, constants[1] * lame_mu
        own = 2.0 * c10 + 2.0 * c01 * trace
        linear, bulk, of_strain = -2.0 * c10 - 4.0 * c01, lame_lambda + 2.0 * c10, -2.0 * c01
    by_volume = (linear + bulk * (J - 1.0) + pressure) / J
    return add_to_symmetric(symmetric_plus(symmetric_scaled(by_volume, adjugate), symmetric_scaled(of_strain, C)), own)


@njit(cache=True, inner=True, error_model="numpy")
def discrete_stress(
    before: Symmetric,
    after: Symmetric,
    law: int,
    constants: np.ndarray,
    lame_lambda: float,
    lame_mu: float,
    pressure: float,
    work: np.ndarray,
) -> Symmetric:
    """Discrete derivative S (Pa) of psi + pressure d from C0 = ``before`` to C1 = ``after``; ``work`` (2, 3, 3) is scratch."""
    middle, gained = symmetric_scaled(0.5, symmetric_plus(before, after)), symmetric_minus(after, before)
    S = _stress(middle, law, constants, lame_lambda, lame_mu, pressure, work)
    square = symmetric_square(gained)
    if square <= TINY_CHANGE * TINY_CHANGE:
        return S
    if square < SMALL_CHANGE * SMALL_CHANGE:
        offset = symmetric_scaled(GAUSS_POINT, gained)
        low = _stress(symmetric_minus(middle, offset), law, constants, lame_lambda, lame_mu, pressure, work)
        high = _stress(symmetric_plus(middle, offset), law, constants, lame_lambda, lame_mu, pressure, work)
        lacking = GAUSS_WEIGHT * symmetric_product(symmetric_plus(symmetric_minus(low, S), symmetric_minus(high, S)), gained)
    else:
        s0, s1 = _principal(before, work)[0], _principal(after, work)[0]
        dilatation_0, dilatation_1 = dilatation(law, s0), dilatation(law, s1)
        change = energy_terms(law, constants, lame_lambda, lame_mu, s1, dilatation_1)[0]
        change -= energy_terms(law, constants, lame_lambda, lame_mu, s0, dilatation_0)[0]
        change += pressure * (dilatation_1[0] - dilatation_0[0])
        lacking = 2.0 * change - symmetric_product(S, gained)
    return symmetric_plus(S, symmetric_scaled(lacking / square, gained))


@njit(cache=True, inner=True)
def _dilatation_at(F: Matrix, law: int, work: np.ndarray) -> float:
    """Dilatation of a law at F; ``work`` (2, 3, 3) is scratch."""
    if law == COROTATIONAL:
        return stretch(gram(F), work)[0] - 3.0
    if law == ST_VENANT_KIRCHHOFF:
        return 0.5 * (squared_norm(F) - 3.0)
    return abs(determinant(F)) - 1.0


@njit(cache=True, inner=True)
def _mean_dilatation(
    x: np.ndarray, elements: np.ndarray, gradient: np.ndarray, weight: np.ndarray, law: int, e: int, work: np.ndarray
) -> float:
    """Mean dilatation of an element."""
    volume = mean = 0.0
    for p in range(weight.shape[1]):
        volume += weight[e, p]
        mean += weight[e, p] * _dilatation_at(deformation_gradient(x, elements, gradient, e, p), law, work)
    return mean / volume


@njit(cache=True, inner=True)
def _upright(x: np.ndarray, elements: np.ndarray, gradient: np.ndarray, points: int, e: int) -> bool:
    """Whether no point of an element is inverted."""
    upright = True
    for p in range(points):
        upright &= determinant(deformation_gradient(x, elements, gradient, e, p)) > 0.0
    return upright


@njit(cache=True, inner=True)
def point_stress(
    start: Matrix,
    end: Matrix,
    upright: bool,
    law: int,
    constants: np.ndarray,
    lame_lambda: float,
    lame_mu: float,
    pressure: float,
    damping: float,
    work: np.ndarray,
) -> tuple[Matrix, Symmetric]:
    """Stresses P = F_m S and S of a step from F0 = ``start`` to F1 = ``end``, Pa.

    ``upright``: whether no end is inverted; where one is, P is the stress at F_m with that of damping, and S is NaN.
    """
    middle = scaled_matrix(0.5, plus(start, end))
    before, after = gram(start), gram(end)
    strained = symmetric_scaled(0.5 * damping, symmetric_minus(after, before))
    slowing = symmetric_scaled(2.0 * lame_mu, strained)
    slowing = add_to_symmetric(slowing, lame_lambda * (strained[0] + strained[1] + strained[2]))
    if upright:
        S = symmetric_plus(discrete_stress(before, after, law, constants, lame_lambda, lame_mu, pressure, work), slowing)
        return times(middle, as_matrix(S)), S
    P = plus(_middle_stress(middle, law, constants, lame_lambda, lame_mu, pressure, work), times(middle, as_matrix(slowing)))
    return P, (math.nan, math.nan, math.nan, math.nan, math.nan, math.nan)


@njit(cache=True)
def step_forces(
    x0: np.ndarray,
    x1: np.ndarray,
    elements: np.ndarray,
    gradient: np.ndarray,
    weight: np.ndarray,
    material: np.ndarray,
    laws: np.ndarray,
    constants: np.ndarray,
    lame_lambda: np.ndarray,
    lame_mu: np.ndarray,
    point_lambda: np.ndarray,
    damping: np.ndarray,
    force: np.ndarray,
    stress: np.ndarray,
) -> None:
    """Fill the force (n, 3), N, of the elements against deformation in a step from x0 to x1, (n, 3) m, and their stress.

    Mesh and material are as in :func:`hyperelastic_kernels.element_stresses`; ``damping`` (r,) is alpha of
    each material. ``stress`` (m, p, 6) Pa becomes S: 00, 11, 22, 01, 02, 12, NaN in inverted elements. The 14 parameters are both
    ends of the step, mesh, material and results.
    """
    work = np.empty((2, 3, 3))
    for i in range(force.shape[0]):
        for c in range(3):
            force[i, c] = 0.0
    for e in range(elements.shape[0]):
        which = material[e]
        law, alpha = laws[which], damping[which]
        upright = _upright(x0, elements, gradient, weight.shape[1], e) and _upright(x1, elements, gradient, weight.shape[1], e)
        la, mu, pressure = point_lambda[e], lame_mu[e], 0.0
        if lame_lambda[e] != la:
            mean_0 = _mean_dilatation(x0, elements, gradient, weight, law, e, work)
            mean_1 = _mean_dilatation(x1, elements, gradient, weight, law, e, work)
            pressure = (lame_lambda[e] - la) * (0.5 * (mean_0 + mean_1) + alpha * (mean_1 - mean_0))
        for p in range(weight.shape[1]):
            start = deformation_gradient(x0, elements, gradient, e, p)
            end = deformation_gradient(x1, elements, gradient, e, p)
            P, S = point_stress(start, end, upright, law, constants[which], la, mu, pressure, alpha, work)
            for c in range(6):
                stress[e, p, c] = S[c]
            for a in range(elements.shape[1]):
                push = times_vector(P, shape_gradient(gradient, e, p, a))
                for c in range(3):
                    force[elements[e, a], c] += weight[e, p] * push[c]

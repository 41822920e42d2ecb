"""Kernels of elastic laws in principal stretches, for tetrahedra with any number of nodes and integration points.

The energy of an element is ``sum_q w_q psi(s_q) + V (lambda - lambda_q)/2 dbar^2``: psi has the first Lame constant lambda_q at
each point, and what is left of lambda acts on the mean dilatation dbar of the element, so that nearly incompressible elements
do not lock. With one point, or where lambda_q = lambda, this is the plain energy. psi and d are in ``law_kernels``.

Principal stretches come from F = R S, R the rotation of :func:`rotation_kernels.polar_quaternion` (warm-started),
S = V diag(s) V^T; U = R V. The smallest one is negative where det F < 0. The second derivatives by F have, in the frames U and V,
a 3 x 3 block of the stretches and for each pair (i, j) a symmetric mode with (g_i - g_j)/(s_i - s_j) and an antisymmetric one
with (g_i + g_j)/(s_i + s_j), g the derivatives by the stretches (Smith, de Goes and Kim, "Analytic Eigensystems for Isotropic
Distortion Energies", ACM Trans. Graph. 38, 2019). Projected, negative ones are set to zero. Where an element is inverted or
nearly so (J < 0.4) or blown up (J > 2.5), the laws in J are projected and get more: |P|/0.3 times the identity, so that one
linearised step does not throw it further. Forces and energy are not touched by any of this.

In an energy-momentum step F is that of the middle, but the stress is that of the step; what it costs beyond that of F is added to
the exact derivatives. Why, and why there is a kind that asks for changes of the stretch: see ``corotational_tangent_kernels``.
What damps is a viscosity of strain (``momentum_kernels``), whatever the law, and has derivatives of its own.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from contact.compiled import njit
from contact.vector_kernels import dot, entry, row
from femsim.model.bodies.law_kernels import STABLE_NEO_HOOKEAN, dilatation, energy_terms
from femsim.model.bodies.rotation_kernels import (
    Matrix,
    Vector,
    as_matrix,
    minus,
    outer,
    plus,
    polar_quaternion,
    rotation_of,
    scaled_columns,
    scaled_matrix,
    times,
    times_transposed,
    times_vector,
    transposed,
    transposed_times,
)

#: Kinds of second derivatives: as they are; the same, but projected where a point is all but inverted or a law in J far from
#: volume 1; projected, without negative dyads; and those of the stretch, without what a turn costs, projected where those are.
EXACT, GUARDED, PROJECTED, STRETCHING = 0, 1, 2, 3
# stretches closer than this (relative) share their limit; sums of stretches below it count as it
_CLOSE = 1e-5
_SMALL_SUM = 1e-6
# the same where changes of the stretch are asked for
_STRETCH_SUM = 0.05
# sum of two stretches up to which a point is all but inverted; volume ratio up to which the stress of a step is not asked for
_FLAT, _THIN = 0.5, 0.1
# outside these volume ratios a law in J is far from its quadratic model: there a step should change F by at most this
_LOW_VOLUME, _HIGH_VOLUME, _MOST_CHANGE = 0.4, 2.5, 0.3
# smallest volume ratio that a true stress is divided by
_SMALL_VOLUME = 1e-3


class PointElements(NamedTuple):
    """Elements with integration points and a law in principal stretches.

    Attributes
    ----------
    elements : ndarray, (m, k)
        Nodes.
    gradient : ndarray, (m, p, k, 3), 1/m
        Of the shape functions at the points.
    weight : ndarray, (m, p), m^3
        Of the points.
    material : ndarray of int64, (m,)
        Which of r materials each element has.
    law : ndarray of int64, (r,)
        Codes of their laws.
    constants : ndarray, (r, c)
        Of the laws, over the shear modulus.
    lame_lambda, lame_mu, point_lambda : ndarray, (m,), Pa
        Lame constants, and the part of lambda that acts at the points.
    """

    elements: np.ndarray
    gradient: np.ndarray
    weight: np.ndarray
    material: np.ndarray
    law: np.ndarray
    constants: np.ndarray
    lame_lambda: np.ndarray
    lame_mu: np.ndarray
    point_lambda: np.ndarray


@njit(cache=True, inner=True)
def eigen_symmetric(a: np.ndarray, vectors: np.ndarray) -> None:
    """Jacobi's rotations: ``a`` (3, 3), symmetric, becomes diagonal; ``vectors`` (3, 3) its eigenvectors as columns."""
    for i in range(3):
        for j in range(3):
            vectors[i, j] = 1.0 if i == j else 0.0
    for _ in range(30):
        off = a[0, 1] * a[0, 1] + a[0, 2] * a[0, 2] + a[1, 2] * a[1, 2]
        size = a[0, 0] * a[0, 0] + a[1, 1] * a[1, 1] + a[2, 2] * a[2, 2]
        if off <= 1e-32 * size or off == 0.0:
            break
        for p in range(2):
            for q in range(p + 1, 3):
                if a[p, q] == 0.0:
                    continue
                ratio = 0.5 * (a[q, q] - a[p, p]) / a[p, q]
                t = (1.0 if ratio >= 0.0 else -1.0) / (abs(ratio) + math.sqrt(1.0 + ratio * ratio))
                c = 1.0 / math.sqrt(1.0 + t * t)
                s = c * t
                a[p, p] -= t * a[p, q]
                a[q, q] += t * a[p, q]
                a[p, q] = 0.0
                a[q, p] = 0.0
                r = 3 - p - q
                x = a[r, p]
                y = a[r, q]
                a[r, p] = c * x - s * y
                a[r, q] = s * x + c * y
                a[p, r] = a[r, p]
                a[q, r] = a[r, q]
                for k in range(3):
                    x = vectors[k, p]
                    y = vectors[k, q]
                    vectors[k, p] = c * x - s * y
                    vectors[k, q] = s * x + c * y


@njit(cache=True, forceinline=True)
def _matrix(a: np.ndarray, e: int, p: int) -> Matrix:
    """Read a[e, p], a matrix."""
    return (
        a[e, p, 0, 0], a[e, p, 0, 1], a[e, p, 0, 2],
        a[e, p, 1, 0], a[e, p, 1, 1], a[e, p, 1, 2],
        a[e, p, 2, 0], a[e, p, 2, 1], a[e, p, 2, 2],
    )  # fmt: skip


@njit(cache=True, forceinline=True)
def _put_matrix(a: np.ndarray, e: int, p: int, A: Matrix) -> None:
    """Fill a[e, p]."""
    for i in range(3):
        for j in range(3):
            a[e, p, i, j] = A[3 * i + j]


@njit(cache=True, forceinline=True)
def shape_gradient(gradient: np.ndarray, e: int, p: int, a: int) -> Vector:
    """Gradient of the shape function of corner a at point p of element e."""
    return gradient[e, p, a, 0], gradient[e, p, a, 1], gradient[e, p, a, 2]


@njit(cache=True, forceinline=True)
def deformation_gradient(x: np.ndarray, elements: np.ndarray, gradient: np.ndarray, e: int, p: int) -> Matrix:
    """F = sum_a x_a grad_a^T at point p of element e."""
    F = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    for a in range(elements.shape[1]):
        F = plus(F, outer(row(x, elements[e, a]), shape_gradient(gradient, e, p, a)))
    return F


@njit(cache=True, inner=True)
def _principal_stretches(
    F: Matrix, e: int, p: int, quaternion: np.ndarray, stretches: np.ndarray, left: np.ndarray, right: np.ndarray
) -> float:
    """Find s, U and V of F = U diag(s) V^T at a point, and the quaternion of R = U V^T from the last one; return det F."""
    q, _ = polar_quaternion(F, (quaternion[e, p, 0], quaternion[e, p, 1], quaternion[e, p, 2], quaternion[e, p, 3]))
    for c in range(4):
        quaternion[e, p, c] = q[c]
    R = rotation_of(q)
    B = transposed_times(R, F)
    S = left[e, p]  # U comes to the same place
    _put_matrix(left, e, p, scaled_matrix(0.5, plus(B, transposed(B))))
    eigen_symmetric(S, right[e, p])
    for c in range(3):
        stretches[e, p, c] = S[c, c]
    _put_matrix(left, e, p, times(R, _matrix(right, e, p)))
    return stretches[e, p, 0] * stretches[e, p, 1] * stretches[e, p, 2]


@njit(cache=True)
def element_stresses(
    x: np.ndarray,
    elements: np.ndarray,
    gradient: np.ndarray,
    weight: np.ndarray,
    material: np.ndarray,
    laws: np.ndarray,
    constants: np.ndarray,
    lame_lambda: np.ndarray,
    lame_mu: np.ndarray,
    point_lambda: np.ndarray,
    quaternion: np.ndarray,
    stretches: np.ndarray,
    left: np.ndarray,
    right: np.ndarray,
    excess: np.ndarray,
    force: np.ndarray,
    cauchy: np.ndarray,
) -> tuple[float, int]:
    """Update stretches and their frames, internal forces and stresses from positions.

    P = U diag(g) V^T is the first Piola-Kirchhoff stress, g the derivatives of the energy by the stretches, those of the mean
    dilatation included; the force on node a is sum_q w_q P grad_a, the true stress U diag(g s) U^T / J. The 17 arguments are
    mesh, material, state and results of one body.

    Returns the elastic energy (J) and the number of elements with an inverted integration point.

    For n nodes, m elements of k nodes and p points: ``x`` (n, 3) m, ``elements`` (m, k), ``gradient`` (m, p, k, 3) 1/m of
    the shape functions, ``weight`` (m, p) m^3; ``material`` (m,) which of the ``laws`` (r,) with ``constants`` (r, c) an element
    has; Lame constants of each element (m,) Pa, ``point_lambda`` the part of lambda that acts at points. ``quaternion`` (m, p, 4)
    is read as warm start and updated. ``stretches`` (m, p, 3), ``left`` and ``right`` (m, p, 3, 3) become s, U and V; ``excess``
    (m,) the stress of the mean dilatation, Pa; ``force`` (n, 3) the force of the elements against deformation, N (gradient of
    the energy); ``cauchy`` (m, p, 6) the true stress xx, yy, zz, xy, yz, zx, Pa.
    """
    m, k = elements.shape
    points = weight.shape[1]
    total = 0.0
    inverted = 0
    for i in range(force.shape[0]):
        for c in range(3):
            force[i, c] = 0.0
    for e in range(m):
        law, own = laws[material[e]], constants[material[e]]
        lowest = 1.0
        volume = 0.0
        mean = 0.0
        for p in range(points):
            F = deformation_gradient(x, elements, gradient, e, p)
            lowest = min(lowest, _principal_stretches(F, e, p, quaternion, stretches, left, right))
            volume += weight[e, p]
            mean += weight[e, p] * dilatation(law, entry(stretches, e, p))[0]
        inverted += lowest <= 0.0
        mean /= volume
        extra = (lame_lambda[e] - point_lambda[e]) * mean
        excess[e] = extra
        total += 0.5 * volume * extra * mean
        for p in range(points):
            s, U, V = entry(stretches, e, p), _matrix(left, e, p), _matrix(right, e, p)
            volumetric = dilatation(law, s)
            energy, g, _ = energy_terms(law, own, point_lambda[e], lame_mu[e], s, volumetric)
            total += weight[e, p] * energy
            g = plus_scaled(g, extra, volumetric[1])
            P = times_transposed(scaled_columns(U, g), V)
            for a in range(k):
                push = times_vector(P, shape_gradient(gradient, e, p, a))
                for i in range(3):
                    force[elements[e, a], i] += weight[e, p] * push[i]
            scale = 1.0 / max(abs(s[0] * s[1] * s[2]), _SMALL_VOLUME)
            T = times_transposed(scaled_columns(U, (scale * g[0] * s[0], scale * g[1] * s[1], scale * g[2] * s[2])), U)
            cauchy[e, p, 0] = T[0] + 0.0  # no zero is negative
            cauchy[e, p, 1] = T[4] + 0.0
            cauchy[e, p, 2] = T[8] + 0.0
            cauchy[e, p, 3] = T[1] + 0.0
            cauchy[e, p, 4] = T[5] + 0.0
            cauchy[e, p, 5] = T[6] + 0.0
    return total, inverted


@njit(cache=True, forceinline=True)
def plus_scaled(g: Vector, factor: float, d: Vector) -> Vector:
    """Return g + factor d."""
    return g[0] + factor * d[0], g[1] + factor * d[1], g[2] + factor * d[2]


@njit(cache=True)
def energy_densities(
    stretches: np.ndarray,
    weight: np.ndarray,
    material: np.ndarray,
    laws: np.ndarray,
    constants: np.ndarray,
    lame_lambda: np.ndarray,
    lame_mu: np.ndarray,
    point_lambda: np.ndarray,
    density: np.ndarray,
) -> None:
    """Fill the energy by volume at rest at each integration point, (m, p), Pa, as :func:`element_stresses` adds it up."""
    points = weight.shape[1]
    for e in range(weight.shape[0]):
        law, own = laws[material[e]], constants[material[e]]
        volume = 0.0
        mean = 0.0
        for p in range(points):
            s = entry(stretches, e, p)
            volumetric = dilatation(law, s)
            density[e, p] = energy_terms(law, own, point_lambda[e], lame_mu[e], s, volumetric)[0]
            volume += weight[e, p]
            mean += weight[e, p] * volumetric[0]
        mean /= volume
        for p in range(points):
            density[e, p] += 0.5 * (lame_lambda[e] - point_lambda[e]) * mean * mean


@njit(cache=True, inner=True)
def stretch_derivatives(
    law: int, constants: np.ndarray, lame_lambda: float, lame_mu: float, extra: float, s: Vector
) -> tuple[Vector, Matrix]:
    """First and second derivatives by the stretches, Pa, of psi + extra d."""
    volumetric = dilatation(law, s)
    _, g, h = energy_terms(law, constants, lame_lambda, lame_mu, s, volumetric)
    return plus_scaled(g, extra, volumetric[1]), plus(h, scaled_matrix(extra, volumetric[2]))


@njit(cache=True, inner=True)
def point_tangent(
    g: Vector, h: Matrix, s: Vector, U: Matrix, V: Matrix, branch: float, kind: int, far: bool, work: np.ndarray, C: np.ndarray
) -> None:
    """Fill ``C`` (9, 9), Pa: second derivatives by F (row by row) of an energy of the stretches.

    ``g`` and ``h`` are its derivatives by the stretches ``s``. With u_i, v_i the columns of U and V, C is a sum of dyads: of
    each pair (i, j) ((g_i - g_j)/(s_i - s_j)) / 2 times that of u_i v_j^T + u_j v_i^T and ((g_i + g_j)/(s_i + s_j)) / 2 times
    that of u_i v_j^T - u_j v_i^T; and h in the modes u_i v_i^T, factorized as L D L^T. If PROJECTED, no negative dyad is added,
    so C is positive semidefinite. If STRETCHING, neither, and a pair has 2 (g_i - g_j)/(s_i - s_j) times the square of how the
    stretch V diag(s) V^T changes instead, (s_i u_i v_j^T + s_j u_j v_i^T)/(s_i + s_j): no turn changes that. Where ``far`` is
    set, |g|/0.3 times the identity is added if it is not EXACT. ``branch``, Pa, is twice a shear modulus that acts on the change
    of the deviator of the stretch. ``work`` (2, 3, 3) is scratch.
    """
    for r in range(9):
        for c in range(9):
            C[r, c] = 0.0
    for i in range(2):
        for j in range(i + 1, 3):
            gap = s[i] - s[j]
            if abs(gap) > _CLOSE * (abs(s[i]) + abs(s[j])):
                even = (g[i] - g[j]) / gap
            else:
                even = 0.5 * (h[4 * i] + h[4 * j]) - h[3 * i + j]
            one, other = outer(_column(U, i), _column(V, j)), outer(_column(U, j), _column(V, i))
            stretching = branch
            if kind == STRETCHING:
                stretching += max(even, 0.0)
            else:
                odd = (g[i] + g[j]) / max(s[i] + s[j], _SMALL_SUM)
                if kind == EXACT or even > 0.0:
                    _add_dyad(0.5 * even, plus(one, other), C)
                if kind == EXACT or odd > 0.0:
                    _add_dyad(0.5 * odd, minus(one, other), C)
            if stretching > 0.0:
                share = 1.0 / max(s[i] + s[j], _STRETCH_SUM)
                _add_dyad(2.0 * stretching, plus(scaled_matrix(share * s[i], one), scaled_matrix(share * s[j], other)), C)
    if branch > 0.0:
        third = branch / 3.0
        both = branch - third
        h = plus(h, (both, -third, -third, -third, both, -third, -third, -third, both))
    definite, values, vectors = _factorized(h)
    if not definite:
        for r in range(3):
            for c in range(3):
                work[0, r, c] = h[3 * r + c]
        eigen_symmetric(work[0], work[1])
        values, vectors = (work[0, 0, 0], work[0, 1, 1], work[0, 2, 2]), _matrix(work.reshape(1, 2, 3, 3), 0, 1)
    for k in range(3):
        if kind != EXACT and values[k] <= 0.0:
            continue
        _add_dyad(values[k], times_transposed(scaled_columns(U, _column(vectors, k)), V), C)
    if kind != EXACT and far:
        guard = math.sqrt(dot(g, g)) / _MOST_CHANGE
        for r in range(9):
            C[r, r] += guard
    for r in range(9):
        for c in range(r):
            C[r, c] = C[c, r]


@njit(cache=True, inner=True, error_model="numpy")
def _add_pull(stress: np.ndarray, e: int, p: int, share: float, g: Vector, s: Vector, V: Matrix, C: np.ndarray) -> None:
    """Add to C what ``share`` of the stress of a step costs beyond V diag(g/s) V^T, where it is known."""
    if not (stress[e, p, 0] == stress[e, p, 0] and s[0] * s[1] * s[2] > _THIN):
        return
    own = times_transposed(scaled_columns(V, (g[0] / s[0], g[1] / s[1], g[2] / s[2])), V)
    S = as_matrix(
        (stress[e, p, 0], stress[e, p, 1], stress[e, p, 2], stress[e, p, 3], stress[e, p, 4], stress[e, p, 5])
    )  # fmt: skip
    pull = minus(scaled_matrix(share, S), own)
    for i in range(3):
        for j in range(3):
            for c in range(3):
                C[3 * i + j, 3 * i + c] += pull[3 * min(j, c) + max(j, c)]


@njit(cache=True, inner=True)
def _add_viscosity(share: float, lame_lambda: float, lame_mu: float, s: Vector, U: Matrix, V: Matrix, C: np.ndarray) -> None:
    """Add ``share`` of (lambda tr(dE)^2 + 2 mu dE : dE) to C, dE the change of (F^T F - I)/2: what damps changes of strain."""
    F = times_transposed(scaled_columns(U, s), V)
    B = times_transposed(F, F)
    for i in range(3):
        for j in range(3):
            for k in range(3):
                C[3 * i + j, 3 * k + j] += share * lame_mu * B[3 * min(i, k) + max(i, k)]
                for c in range(3):
                    both = lame_lambda * F[3 * i + j] * F[3 * k + c] + lame_mu * F[3 * i + c] * F[3 * k + j]
                    C[3 * i + j, 3 * k + c] += share * both


@njit(cache=True, forceinline=True)
def _column(A: Matrix, k: int) -> Vector:
    """Column k of A."""
    return A[k], A[3 + k], A[6 + k]


@njit(cache=True, forceinline=True)
def _factorized(h: Matrix) -> tuple[bool, Vector, Matrix]:
    """D and L of h = L D L^T; False, and nothing of use, where h is not clearly positive definite. Reads the lower triangle."""
    none = (False, (0.0, 0.0, 0.0), h)
    d0 = h[0]
    if d0 <= 0.0:
        return none
    l10 = h[3] / d0
    l20 = h[6] / d0
    d1 = h[4] - l10 * h[3]
    if d1 <= 1e-12 * h[4]:
        return none
    l21 = (h[7] - l20 * h[3]) / d1
    d2 = h[8] - l20 * h[6] - l21 * l21 * d1
    if d2 <= 1e-12 * h[8]:
        return none
    return True, (d0, d1, d2), (1.0, 0.0, 0.0, l10, 1.0, 0.0, l20, l21, 1.0)


@njit(cache=True, inner=True)
def _add_dyad(value: float, mode: Matrix, C: np.ndarray) -> None:
    """Add value mode mode^T to C (9, 9)."""
    for r in range(9):
        scaled_mode = value * mode[r]
        for c in range(9):
            C[r, c] += scaled_mode * mode[c]


@njit(cache=True, forceinline=True)
def _far_from_rest(law: int, s: Vector) -> bool:
    """Whether a law in J is so far from volume 1 that its quadratic model does not hold."""
    return law >= STABLE_NEO_HOOKEAN and not _LOW_VOLUME < s[0] * s[1] * s[2] < _HIGH_VOLUME


@njit(cache=True, forceinline=True)
def _is_flat(s: Vector) -> bool:
    """Whether a point is all but inverted."""
    return min(s[0] + s[1], s[0] + s[2], s[1] + s[2]) <= _FLAT


@njit(cache=True)
def element_matrices(
    elements: np.ndarray,
    gradient: np.ndarray,
    weight: np.ndarray,
    material: np.ndarray,
    laws: np.ndarray,
    constants: np.ndarray,
    lame_lambda: np.ndarray,
    lame_mu: np.ndarray,
    point_lambda: np.ndarray,
    stretches: np.ndarray,
    left: np.ndarray,
    right: np.ndarray,
    excess: np.ndarray,
    stress: np.ndarray,
    share: np.ndarray,
    branch: np.ndarray,
    branch_stress: np.ndarray,
    kind: int,
    mass: np.ndarray,
    stiffness_factor: np.ndarray,
    mass_factor: float,
    place: np.ndarray,
    stride: np.ndarray,
    diagonal_place: np.ndarray,
    data: np.ndarray,
) -> None:
    """Fill the CSC entries of mass_factor M + stiffness_factor K, K the second derivatives of the energy, of a ``kind``.

    ``share`` of K is that of the energy, and the rest what damps changes of strain. Where K is exact, the ``stress`` (m, p, 6) of
    an energy-momentum step, or (0, p, 6), replaces that of F, and ``branch_stress``, in the same form, adds to it. What is as in
    :func:`element_stresses` comes from there. ``place`` (m, k, k) is where block (row a, column b) of an element begins in its
    first scalar column, ``stride`` (n,) the length of a node's scalar columns, ``diagonal_place`` (n,) the place of its diagonal
    block. The pressure of the mean dilatation enters at the points before the projection; its dyad is never negative.
    ``branch`` is the shear modulus of Prony terms over that of the law; it, ``share`` and ``stiffness_factor`` are of each
    material, (r,). The 25 arguments are mesh, material, state, factors and pattern of one body. Each call makes five small work
    arrays: half a microsecond, beside 10 us for each quadratic element.
    """
    m, k = elements.shape
    points = weight.shape[1]
    C = np.empty((9, 9))
    work = np.empty((2, 3, 3))
    half = np.empty((3, 9))
    K = np.empty((k, k, 3, 3))
    push = np.empty((k, 3))
    for i in range(data.shape[0]):
        data[i] = 0.0
    for e in range(m):
        which = material[e]
        law, own = laws[which], constants[which]
        K[:] = 0.0
        push[:] = 0.0
        volume = 0.0
        rest = lame_lambda[e] - point_lambda[e]
        for p in range(points):
            volume += weight[e, p]
            s, U, V = entry(stretches, e, p), _matrix(left, e, p), _matrix(right, e, p)
            g, h = stretch_derivatives(law, own, point_lambda[e], lame_mu[e], excess[e], s)
            far = _far_from_rest(law, s)
            own_kind = kind
            if kind != EXACT and (far or _is_flat(s)):
                own_kind = PROJECTED
            elif kind == GUARDED:
                own_kind = EXACT
            own_share = share[which] if own_kind != PROJECTED else 1.0
            if own_share < 1.0:
                g, h = (own_share * g[0], own_share * g[1], own_share * g[2]), scaled_matrix(own_share, h)
            point_tangent(g, h, s, U, V, 2.0 * lame_mu[e] * branch[which], own_kind, far, work, C)
            if own_share < 1.0:
                _add_viscosity(1.0 - own_share, point_lambda[e], lame_mu[e], s, U, V, C)
            if own_kind == EXACT and len(stress) > 0:
                _add_pull(stress, e, p, own_share, g, s, V, C)
            if own_kind == EXACT and len(branch_stress) > 0:
                _add_pull(branch_stress, e, p, own_share, (0.0, 0.0, 0.0), s, V, C)
            _add_point(weight[e, p], gradient[e, p], C, half, K)
            if rest != 0.0:
                D = times_transposed(scaled_columns(U, dilatation(law, s)[1]), V)
                _add_push(weight[e, p], gradient[e, p], D, push)
        if rest != 0.0:
            _add_dyads(rest / volume, push, K)
        _add_element(stiffness_factor[which], K, elements, e, place, stride, data)
    for n in range(mass.shape[0]):
        for i in range(3):
            data[diagonal_place[n] + i * stride[n] + i] += mass_factor * mass[n]


@njit(cache=True, inner=True, _nrt=False)
def _add_point(weight: float, gradient: np.ndarray, C: np.ndarray, half: np.ndarray, K: np.ndarray) -> None:
    """Add weight (I (x) grad_a)^T C (I (x) grad_b) of a point to the blocks K (k, k, 3, 3), a <= b; half (3, 9) is scratch."""
    k = len(gradient)
    for a in range(k):
        a0, a1, a2 = gradient[a, 0], gradient[a, 1], gradient[a, 2]
        for i in range(3):
            for c in range(9):
                half[i, c] = weight * (a0 * C[3 * i, c] + a1 * C[3 * i + 1, c] + a2 * C[3 * i + 2, c])
        for b in range(a, k):
            b0, b1, b2 = gradient[b, 0], gradient[b, 1], gradient[b, 2]
            for i in range(3):
                for j in range(3):
                    K[a, b, i, j] += half[i, 3 * j] * b0 + half[i, 3 * j + 1] * b1 + half[i, 3 * j + 2] * b2


@njit(cache=True, inner=True, _nrt=False)
def _add_push(weight: float, gradient: np.ndarray, D: Matrix, push: np.ndarray) -> None:
    """Add w D grad_a of a point to push (k, 3); D is the derivative of its dilatation by F, w its weight."""
    for i in range(3):
        for j in range(3):
            for a in range(len(gradient)):
                push[a, i] += weight * D[3 * i + j] * gradient[a, j]


@njit(cache=True, inner=True, _nrt=False)
def _add_dyads(factor: float, push: np.ndarray, K: np.ndarray) -> None:
    """Add factor push_a push_b^T to the blocks K (k, k, 3, 3), a <= b."""
    k = len(push)
    for a in range(k):
        for b in range(a, k):
            for i in range(3):
                for j in range(3):
                    K[a, b, i, j] += factor * push[a, i] * push[b, j]


@njit(cache=True, inner=True)
def _add_element(
    factor: float, K: np.ndarray, elements: np.ndarray, e: int, place: np.ndarray, stride: np.ndarray, data: np.ndarray
) -> None:
    """Add factor K to the CSC entries, K (k, k, 3, 3) the blocks (a, b), a <= b, of element e; the others are transposes."""
    k = elements.shape[1]
    for a in range(k):
        for b in range(a, k):
            at = place[e, a, b]
            back = place[e, b, a]
            step = stride[elements[e, b]]
            back_step = stride[elements[e, a]]
            for i in range(3):
                for j in range(3):
                    if a == b:  # symmetric to the last bit
                        data[at + j * step + i] += factor * K[a, b, min(i, j), max(i, j)]
                    else:
                        data[at + j * step + i] += factor * K[a, b, i, j]
                        data[back + i * back_step + j] += factor * K[a, b, i, j]

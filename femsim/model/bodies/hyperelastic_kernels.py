"""Kernels of elastic laws in principal stretches, for tetrahedra with any number of nodes and integration points.

The energy of an element is ``sum_q w_q psi(s_q) + V (lambda - lambda_q)/2 dbar^2``: psi has the first Lame constant lambda_q at
each point, and what is left of lambda acts on the mean dilatation dbar of the element, so that nearly incompressible elements
do not lock. With one point, or where lambda_q = lambda, this is the plain energy. The dilatation d is J - 1, for the
co-rotational law sum s_i - 3, for Saint Venant-Kirchhoff sum (s_i^2 - 1)/2.

Principal stretches come from F = R S, R the rotation of :func:`soft_kernels.polar_quaternion` (warm-started), S = V diag(s) V^T;
U = R V. The smallest one is negative where det F < 0. The second derivatives by F have, in the frames U and V, a 3 x 3 block
of the stretches and for each pair (i, j) a symmetric mode with (g_i - g_j)/(s_i - s_j) and an antisymmetric one with
(g_i + g_j)/(s_i + s_j), g the derivatives by the stretches (Smith, de Goes and Kim, "Analytic Eigensystems for Isotropic
Distortion Energies", ACM Trans. Graph. 38, 2019). Negative eigenvalues of all of them are set to zero. Where an element is
inverted or nearly so (J < 0.4) or blown up (J > 2.5), the laws in J get more: |P|/0.3 times the identity, so that one
linearised step does not throw it further. Forces and energy are not touched by any of this.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from femsim.model.bodies.soft_kernels import polar_quaternion, rotation_entries

COROTATIONAL, ST_VENANT_KIRCHHOFF, STABLE_NEO_HOOKEAN, MOONEY_RIVLIN, OGDEN = range(5)
#: Ogden's powers go on as parabolas below this stretch.
SMALL_STRETCH = 0.1
# stretches closer than this (relative) share their limit; sums of stretches below it count as it
_CLOSE = 1e-5
_SMALL_SUM = 1e-6
# outside these volume ratios a law in J is far from its quadratic model: there a step should change F by at most this
_LOW_VOLUME, _HIGH_VOLUME, _MOST_CHANGE = 0.4, 2.5, 0.3
# smallest volume ratio that a true stress is divided by
_SMALL_VOLUME = 1e-3


@njit(cache=True)
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


@njit(cache=True)
def dilatation(law: int, s: np.ndarray, d1: np.ndarray, d2: np.ndarray) -> float:
    """Return the dilatation at stretches ``s`` (3,); fill its first (3,) and second (3, 3) derivatives."""
    if law == COROTATIONAL:
        for i in range(3):
            d1[i] = 1.0
            for j in range(3):
                d2[i, j] = 0.0
        return s[0] + s[1] + s[2] - 3.0
    if law == ST_VENANT_KIRCHHOFF:
        for i in range(3):
            d1[i] = s[i]
            for j in range(3):
                d2[i, j] = 1.0 if i == j else 0.0
        return 0.5 * (s[0] * s[0] + s[1] * s[1] + s[2] * s[2] - 3.0)
    for i in range(3):
        d1[i] = s[(i + 1) % 3] * s[(i + 2) % 3]
        for j in range(3):
            d2[i, j] = 0.0 if i == j else s[3 - i - j]
    return s[0] * s[1] * s[2] - 1.0


@njit(cache=True)
def energy_terms(
    law: int,
    constants: np.ndarray,
    lame_lambda: float,
    lame_mu: float,
    s: np.ndarray,
    d: float,
    d1: np.ndarray,
    d2: np.ndarray,
    g: np.ndarray,
    h: np.ndarray,
) -> float:
    """Return psi (Pa) at stretches ``s`` (3,) of dilatation ``d``; fill its first (3,) and second (3, 3) derivatives.

    ``constants`` are over the shear modulus: of Mooney-Rivlin c10, c01; of Ogden all mu_p, then all alpha_p.
    """
    energy = 0.0
    linear = 0.0  # psi has linear d + bulk/2 d^2 beside the terms below
    bulk = lame_lambda
    for i in range(3):
        for j in range(3):
            h[i, j] = 0.0
    if law == COROTATIONAL:
        for i in range(3):
            energy += lame_mu * (s[i] - 1.0) * (s[i] - 1.0)
            g[i] = 2.0 * lame_mu * (s[i] - 1.0)
            h[i, i] = 2.0 * lame_mu
    elif law == ST_VENANT_KIRCHHOFF:
        for i in range(3):
            strain = 0.5 * (s[i] * s[i] - 1.0)
            energy += lame_mu * strain * strain
            g[i] = 2.0 * lame_mu * strain * s[i]
            h[i, i] = lame_mu * (3.0 * s[i] * s[i] - 1.0)
    elif law == STABLE_NEO_HOOKEAN:
        m = 4.0 / 3.0 * lame_mu
        square = s[0] * s[0] + s[1] * s[1] + s[2] * s[2]
        energy = 0.5 * m * (square - 3.0 - math.log(0.25 * (square + 1.0)))
        for i in range(3):
            g[i] = m * s[i] * (1.0 - 1.0 / (square + 1.0))
            for j in range(3):
                h[i, j] = 2.0 * m * s[i] * s[j] / ((square + 1.0) * (square + 1.0))
            h[i, i] += m * (1.0 - 1.0 / (square + 1.0))
        linear = -0.75 * m
        bulk += 5.0 / 6.0 * lame_mu
    elif law == MOONEY_RIVLIN:
        c10 = constants[0] * lame_mu
        c01 = constants[1] * lame_mu
        square = s[0] * s[0] + s[1] * s[1] + s[2] * s[2]
        pairs = s[0] * s[0] * s[1] * s[1] + s[1] * s[1] * s[2] * s[2] + s[2] * s[2] * s[0] * s[0]
        energy = c10 * (square - 3.0) + c01 * (pairs - 3.0)
        for i in range(3):
            others = square - s[i] * s[i]
            g[i] = 2.0 * s[i] * (c10 + c01 * others)
            for j in range(3):
                h[i, j] = 4.0 * c01 * s[i] * s[j]
            h[i, i] = 2.0 * (c10 + c01 * others)
        linear = -2.0 * c10 - 4.0 * c01
        bulk += 2.0 * c10
    else:
        terms = constants.shape[0] // 2
        for i in range(3):
            g[i] = 0.0
        for p in range(terms):
            m = constants[p] * lame_mu
            alpha = constants[terms + p]
            for i in range(3):
                base = max(s[i], SMALL_STRETCH)
                power = base ** (alpha - 2.0)
                curvature = m * (alpha - 1.0) * power
                slope = m * power * base
                energy += m * (power * base * base - 1.0) / alpha
                if s[i] < SMALL_STRETCH:
                    curvature = max(curvature, 0.0)
                    below = s[i] - SMALL_STRETCH
                    energy += below * (slope + 0.5 * below * curvature)
                    slope += below * curvature
                g[i] += slope
                h[i, i] += curvature
            linear -= m
            bulk += m
    energy += d * (linear + 0.5 * bulk * d)
    pressure = linear + bulk * d
    for i in range(3):
        g[i] += pressure * d1[i]
        for j in range(3):
            h[i, j] += bulk * d1[i] * d1[j] + pressure * d2[i, j]
    return energy


@njit(cache=True)
def element_stresses(
    x: np.ndarray,
    elements: np.ndarray,
    gradient: np.ndarray,
    weight: np.ndarray,
    law: int,
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

    Returns the elastic energy (J) and the number of elements with an inverted integration point.

    For n nodes, m elements of k nodes and p points: ``x`` (n, 3) m, ``elements`` (m, k), ``gradient`` (m, p, k, 3) 1/m of
    the shape functions, ``weight`` (m, p) m^3; Lame constants of each element (m,) Pa, ``point_lambda`` the part of lambda
    that acts at points. ``quaternion`` (m, p, 4) is read as warm start and updated. ``stretches`` (m, p, 3), ``left`` and
    ``right`` (m, p, 3, 3) become s, U and V; ``excess`` (m,) the stress of the mean dilatation, Pa; ``force`` (n, 3) the force
    of the elements against deformation, N (gradient of the energy); ``cauchy`` (m, p, 6) the true stress xx, yy, zz, xy, yz,
    zx, Pa.
    """
    m, k = elements.shape
    points = weight.shape[1]
    total = 0.0
    inverted = 0
    F = np.empty((3, 3))
    S = np.empty((3, 3))
    R = np.empty((3, 3))
    d1 = np.empty(3)
    d2 = np.empty((3, 3))
    g = np.empty(3)
    h = np.empty((3, 3))
    for i in range(force.shape[0]):
        for c in range(3):
            force[i, c] = 0.0
    for e in range(m):
        lowest = 1.0
        volume = 0.0
        mean = 0.0
        for p in range(points):
            for i in range(3):
                for j in range(3):
                    F[i, j] = 0.0
            for a in range(k):
                node = elements[e, a]
                for i in range(3):
                    for j in range(3):
                        F[i, j] += x[node, i] * gradient[e, p, a, j]
            q0, q1, q2, q3, _ = polar_quaternion(
                F[0, 0], F[0, 1], F[0, 2], F[1, 0], F[1, 1], F[1, 2], F[2, 0], F[2, 1], F[2, 2],
                quaternion[e, p, 0], quaternion[e, p, 1], quaternion[e, p, 2], quaternion[e, p, 3],
            )  # fmt: skip
            quaternion[e, p, 0] = q0
            quaternion[e, p, 1] = q1
            quaternion[e, p, 2] = q2
            quaternion[e, p, 3] = q3
            R[0, 0], R[0, 1], R[0, 2], R[1, 0], R[1, 1], R[1, 2], R[2, 0], R[2, 1], R[2, 2] = rotation_entries(q0, q1, q2, q3)
            for i in range(3):
                for j in range(i, 3):
                    ij = R[0, i] * F[0, j] + R[1, i] * F[1, j] + R[2, i] * F[2, j]
                    ji = R[0, j] * F[0, i] + R[1, j] * F[1, i] + R[2, j] * F[2, i]
                    S[i, j] = 0.5 * (ij + ji)
                    S[j, i] = S[i, j]
            eigen_symmetric(S, right[e, p])
            for i in range(3):
                stretches[e, p, i] = S[i, i]
                for j in range(3):
                    left[e, p, i, j] = R[i, 0] * right[e, p, 0, j] + R[i, 1] * right[e, p, 1, j] + R[i, 2] * right[e, p, 2, j]
            lowest = min(lowest, S[0, 0] * S[1, 1] * S[2, 2])
            volume += weight[e, p]
            mean += weight[e, p] * dilatation(law, stretches[e, p], d1, d2)
        inverted += lowest <= 0.0
        mean /= volume
        extra = (lame_lambda[e] - point_lambda[e]) * mean
        excess[e] = extra
        total += 0.5 * volume * extra * mean
        for p in range(points):
            s = stretches[e, p]
            d = dilatation(law, s, d1, d2)
            total += weight[e, p] * energy_terms(law, constants, point_lambda[e], lame_mu[e], s, d, d1, d2, g, h)
            for i in range(3):
                g[i] += extra * d1[i]
            for i in range(3):
                for j in range(3):  # first Piola-Kirchhoff stress U diag(g) V^T in F
                    F[i, j] = 0.0
                    for c in range(3):
                        F[i, j] += left[e, p, i, c] * g[c] * right[e, p, j, c]
            for a in range(k):
                node = elements[e, a]
                for i in range(3):
                    force[node, i] += weight[e, p] * (
                        F[i, 0] * gradient[e, p, a, 0] + F[i, 1] * gradient[e, p, a, 1] + F[i, 2] * gradient[e, p, a, 2]
                    )
            scale = 1.0 / max(abs(s[0] * s[1] * s[2]), _SMALL_VOLUME)
            for c in range(6):
                cauchy[e, p, c] = 0.0
            for c in range(3):
                t = scale * g[c] * s[c]
                u0 = left[e, p, 0, c]
                u1 = left[e, p, 1, c]
                u2 = left[e, p, 2, c]
                cauchy[e, p, 0] += t * u0 * u0
                cauchy[e, p, 1] += t * u1 * u1
                cauchy[e, p, 2] += t * u2 * u2
                cauchy[e, p, 3] += t * u0 * u1
                cauchy[e, p, 4] += t * u1 * u2
                cauchy[e, p, 5] += t * u2 * u0
    return total, inverted


@njit(cache=True)
def energy_densities(
    stretches: np.ndarray,
    weight: np.ndarray,
    law: int,
    constants: np.ndarray,
    lame_lambda: np.ndarray,
    lame_mu: np.ndarray,
    point_lambda: np.ndarray,
    density: np.ndarray,
) -> None:
    """Fill the energy by volume at rest at each integration point, (m, p), Pa, as :func:`element_stresses` adds it up."""
    d1, d2, g, h = np.empty(3), np.empty((3, 3)), np.empty(3), np.empty((3, 3))
    points = weight.shape[1]
    for e in range(weight.shape[0]):
        volume = 0.0
        mean = 0.0
        for p in range(points):
            d = dilatation(law, stretches[e, p], d1, d2)
            density[e, p] = energy_terms(law, constants, point_lambda[e], lame_mu[e], stretches[e, p], d, d1, d2, g, h)
            volume += weight[e, p]
            mean += weight[e, p] * d
        mean /= volume
        for p in range(points):
            density[e, p] += 0.5 * (lame_lambda[e] - point_lambda[e]) * mean * mean


@njit(cache=True)
def point_tangent(
    law: int,
    constants: np.ndarray,
    lame_lambda: float,
    lame_mu: float,
    extra: float,
    s: np.ndarray,
    left: np.ndarray,
    right: np.ndarray,
    project: bool,
    work: np.ndarray,
    C: np.ndarray,
) -> None:
    """Fill ``C`` (9, 9), Pa: second derivatives by F (row by row) of psi + extra d; projected to be positive semidefinite.

    ``work`` (6, 3, 3) is scratch.
    """
    g = work[0, 0]
    d1 = work[0, 1]
    h = work[1]
    d2 = work[2]
    vectors = work[3]
    mode = work[4].reshape(9)
    d = dilatation(law, s, d1, d2)
    energy_terms(law, constants, lame_lambda, lame_mu, s, d, d1, d2, g, h)
    for i in range(3):
        g[i] += extra * d1[i]
        for j in range(3):
            h[i, j] += extra * d2[i, j]
    for r in range(9):
        for c in range(9):
            C[r, c] = 0.0
    for i in range(2):
        for j in range(i + 1, 3):
            gap = s[i] - s[j]
            if abs(gap) > _CLOSE * (abs(s[i]) + abs(s[j])):
                even = (g[i] - g[j]) / gap
            else:
                even = 0.5 * (h[i, i] + h[j, j]) - h[i, j]
            odd = (g[i] + g[j]) / max(s[i] + s[j], _SMALL_SUM)
            for sign in (1.0, -1.0):
                value = 0.5 * (even if sign > 0.0 else odd)
                if project and value <= 0.0:
                    continue
                for r in range(3):
                    for c in range(3):
                        mode[3 * r + c] = left[r, i] * right[c, j] + sign * left[r, j] * right[c, i]
                _add_mode(value, mode, C)
    if not _factorize(h, vectors):
        eigen_symmetric(h, vectors)
    for k in range(3):
        value = h[k, k]
        if project and value <= 0.0:
            continue
        for r in range(3):
            for c in range(3):
                mode[3 * r + c] = (
                    vectors[0, k] * left[r, 0] * right[c, 0]
                    + vectors[1, k] * left[r, 1] * right[c, 1]
                    + vectors[2, k] * left[r, 2] * right[c, 2]
                )
        _add_mode(value, mode, C)
    if project and law >= STABLE_NEO_HOOKEAN and not _LOW_VOLUME < s[0] * s[1] * s[2] < _HIGH_VOLUME:
        guard = math.sqrt(g[0] * g[0] + g[1] * g[1] + g[2] * g[2]) / _MOST_CHANGE
        for r in range(9):
            C[r, r] += guard
    for r in range(9):
        for c in range(r):
            C[r, c] = C[c, r]


@njit(cache=True)
def _factorize(h: np.ndarray, lower: np.ndarray) -> bool:
    """Replace h (3, 3) by D and fill L of h = L D L^T; False, and nothing done, where h is not clearly positive definite."""
    d0 = h[0, 0]
    if d0 <= 0.0:
        return False
    l10 = h[1, 0] / d0
    l20 = h[2, 0] / d0
    d1 = h[1, 1] - l10 * h[1, 0]
    if d1 <= 1e-12 * h[1, 1]:
        return False
    l21 = (h[2, 1] - l20 * h[1, 0]) / d1
    d2 = h[2, 2] - l20 * h[2, 0] - l21 * l21 * d1
    if d2 <= 1e-12 * h[2, 2]:
        return False
    for i in range(3):
        for j in range(3):
            lower[i, j] = 1.0 if i == j else 0.0
    lower[1, 0] = l10
    lower[2, 0] = l20
    lower[2, 1] = l21
    h[0, 0] = d0
    h[1, 1] = d1
    h[2, 2] = d2
    return True


@njit(cache=True)
def _add_mode(value: float, mode: np.ndarray, C: np.ndarray) -> None:
    """Add value mode mode^T to C (9, 9)."""
    for r in range(9):
        scaled = value * mode[r]
        for c in range(9):
            C[r, c] += scaled * mode[c]


@njit(cache=True)
def element_matrices(
    elements: np.ndarray,
    gradient: np.ndarray,
    weight: np.ndarray,
    law: int,
    constants: np.ndarray,
    lame_lambda: np.ndarray,
    lame_mu: np.ndarray,
    point_lambda: np.ndarray,
    stretches: np.ndarray,
    left: np.ndarray,
    right: np.ndarray,
    excess: np.ndarray,
    project: bool,
    mass: np.ndarray,
    stiffness_factor: float,
    mass_factor: float,
    place: np.ndarray,
    stride: np.ndarray,
    diagonal_place: np.ndarray,
    data: np.ndarray,
) -> None:
    """Fill the CSC entries of mass_factor M + stiffness_factor K, K the second derivatives of the energy, projected.

    What is as in :func:`element_stresses` comes from there. ``place`` (m, k, k) is where block (row a, column b) of an element
    begins in its first scalar column, ``stride`` (n,) the length of a node's scalar columns, ``diagonal_place`` (n,) the place
    of its diagonal block. The pressure of the mean dilatation enters at the points before the projection; its dyad is never
    negative.
    """
    m, k = elements.shape
    points = weight.shape[1]
    C = np.empty((9, 9))
    work = np.empty((6, 3, 3))
    half = np.empty((3, 9))
    K = np.empty((k, k, 3, 3))
    push = np.empty((k, 3))
    d1 = np.empty(3)
    d2 = np.empty((3, 3))
    for i in range(data.shape[0]):
        data[i] = 0.0
    for e in range(m):
        for a in range(k):
            for c in range(3):
                push[a, c] = 0.0
            for b in range(a, k):
                for i in range(3):
                    for j in range(3):
                        K[a, b, i, j] = 0.0
        volume = 0.0
        rest = lame_lambda[e] - point_lambda[e]
        for p in range(points):
            w = weight[e, p]
            volume += w
            point_tangent(
                law, constants, point_lambda[e], lame_mu[e], excess[e], stretches[e, p], left[e, p], right[e, p], project, work, C
            )
            for a in range(k):
                for i in range(3):  # half = w (I (x) grad_a)^T C
                    for c in range(9):
                        half[i, c] = w * (
                            gradient[e, p, a, 0] * C[3 * i, c]
                            + gradient[e, p, a, 1] * C[3 * i + 1, c]
                            + gradient[e, p, a, 2] * C[3 * i + 2, c]
                        )
                for b in range(a, k):
                    b0 = gradient[e, p, b, 0]
                    b1 = gradient[e, p, b, 1]
                    b2 = gradient[e, p, b, 2]
                    for i in range(3):
                        for j in range(3):
                            K[a, b, i, j] += half[i, 3 * j] * b0 + half[i, 3 * j + 1] * b1 + half[i, 3 * j + 2] * b2
            if rest != 0.0:
                dilatation(law, stretches[e, p], d1, d2)
                for i in range(3):
                    for j in range(3):
                        t = 0.0
                        for c in range(3):
                            t += left[e, p, i, c] * d1[c] * right[e, p, j, c]
                        for a in range(k):
                            push[a, i] += w * t * gradient[e, p, a, j]
        if rest != 0.0:
            scale = rest / volume
            for a in range(k):
                for b in range(a, k):
                    for i in range(3):
                        for j in range(3):
                            K[a, b, i, j] += scale * push[a, i] * push[b, j]
        for a in range(k):
            for b in range(a, k):
                at = place[e, a, b]
                back = place[e, b, a]
                step = stride[elements[e, b]]
                back_step = stride[elements[e, a]]
                for i in range(3):
                    for j in range(3):
                        if a == b:  # symmetric to the last bit
                            data[at + j * step + i] += stiffness_factor * K[a, b, min(i, j), max(i, j)]
                        else:
                            data[at + j * step + i] += stiffness_factor * K[a, b, i, j]
                            data[back + i * back_step + j] += stiffness_factor * K[a, b, i, j]
    for n in range(mass.shape[0]):
        for i in range(3):
            data[diagonal_place[n] + i * stride[n] + i] += mass_factor * mass[n]

"""Kernels of elastic laws in principal stretches: one function a law, and the one place where a law is chosen.

The energy by volume at rest is psi(s) = own(s) + linear d(s) + bulk/2 d(s)^2 with a dilatation d of the law. A function of a law
gives ``own`` with its derivatives, ``linear`` and ``bulk``; a derivative by the stretches is a vector g, a second one a matrix h.
"""

from __future__ import annotations

import math

import numpy as np

from contact.compiled import njit
from contact.vector_kernels import times as scaled
from femsim.model.bodies.rotation_kernels import Matrix, Vector, by_entries, outer, plus, scaled_matrix

COROTATIONAL, ST_VENANT_KIRCHHOFF, STABLE_NEO_HOOKEAN, MOONEY_RIVLIN, OGDEN = range(5)
#: Ogden's powers go on as parabolas below this stretch.
SMALL_STRETCH = 0.1

#: d and its first and second derivatives.
Dilatation = tuple[float, Vector, Matrix]
#: own(s) and its first and second derivatives, linear, bulk.
Terms = tuple[float, Vector, Matrix, float, float]


@njit(cache=True, forceinline=True)
def _diagonal(a: Vector) -> Matrix:
    """Matrix with the diagonal a."""
    return a[0], 0.0, 0.0, 0.0, a[1], 0.0, 0.0, 0.0, a[2]


@njit(cache=True, forceinline=True)
def _with_diagonal(A: Matrix, a: Vector) -> Matrix:
    """Put a on the diagonal of A."""
    return a[0], A[1], A[2], A[3], a[1], A[5], A[6], A[7], a[2]


@njit(cache=True, forceinline=True)
def dilatation(law: int, s: Vector) -> Dilatation:
    """Dilatation of a law at stretches s: sum s_i - 3, sum (s_i^2 - 1)/2 or J - 1, with its derivatives."""
    if law == COROTATIONAL:
        return s[0] + s[1] + s[2] - 3.0, (1.0, 1.0, 1.0), _diagonal((0.0, 0.0, 0.0))
    if law == ST_VENANT_KIRCHHOFF:
        return 0.5 * (s[0] * s[0] + s[1] * s[1] + s[2] * s[2] - 3.0), s, _diagonal((1.0, 1.0, 1.0))
    first = (s[1] * s[2], s[2] * s[0], s[0] * s[1])
    return s[0] * s[1] * s[2] - 1.0, first, (0.0, s[2], s[1], s[2], 0.0, s[0], s[1], s[0], 0.0)


@njit(cache=True, forceinline=True)
def _corotational(lame_lambda: float, lame_mu: float, s: Vector) -> Terms:
    """Own = mu sum (s_i - 1)^2, bulk = lambda."""
    e = (s[0] - 1.0, s[1] - 1.0, s[2] - 1.0)
    energy = lame_mu * e[0] * e[0] + lame_mu * e[1] * e[1] + lame_mu * e[2] * e[2]
    two_mu = 2.0 * lame_mu
    return energy, scaled(two_mu, e), _diagonal((two_mu, two_mu, two_mu)), 0.0, lame_lambda


@njit(cache=True, forceinline=True)
def _st_venant_kirchhoff(lame_lambda: float, lame_mu: float, s: Vector) -> Terms:
    """Own = mu sum E_i^2 with E_i = (s_i^2 - 1)/2, bulk = lambda."""
    E = (0.5 * (s[0] * s[0] - 1.0), 0.5 * (s[1] * s[1] - 1.0), 0.5 * (s[2] * s[2] - 1.0))
    energy = lame_mu * E[0] * E[0] + lame_mu * E[1] * E[1] + lame_mu * E[2] * E[2]
    curvature = (3.0 * s[0] * s[0] - 1.0, 3.0 * s[1] * s[1] - 1.0, 3.0 * s[2] * s[2] - 1.0)
    return energy, by_entries(scaled(2.0 * lame_mu, E), s), _diagonal(scaled(lame_mu, curvature)), 0.0, lame_lambda


@njit(cache=True, forceinline=True)
def _stable_neo_hookean(lame_lambda: float, lame_mu: float, s: Vector) -> Terms:
    """Own = m/2 (I - 3 - log((I + 1)/4)) with I = sum s_i^2, m = 4/3 mu; linear = -3/4 m, bulk = lambda + 5/6 mu."""
    m = 4.0 / 3.0 * lame_mu
    square = s[0] * s[0] + s[1] * s[1] + s[2] * s[2]
    energy = 0.5 * m * (square - 3.0 - math.log(0.25 * (square + 1.0)))
    share = 1.0 - 1.0 / (square + 1.0)
    g = (m * s[0] * share, m * s[1] * share, m * s[2] * share)
    mixed = outer(scaled(2.0 * m, s), s)
    below = (square + 1.0) * (square + 1.0)
    h = (
        mixed[0] / below + m * share, mixed[1] / below, mixed[2] / below,
        mixed[3] / below, mixed[4] / below + m * share, mixed[5] / below,
        mixed[6] / below, mixed[7] / below, mixed[8] / below + m * share,
    )  # fmt: skip
    return energy, g, h, -0.75 * m, lame_lambda + 5.0 / 6.0 * lame_mu


@njit(cache=True, forceinline=True)
def _mooney_rivlin(lame_lambda: float, lame_mu: float, s: Vector, constants: np.ndarray) -> Terms:
    """Own = c10 (I - 3) + c01 (II - 3), II = sum of (s_i s_j)^2 of pairs; linear = -2 c10 - 4 c01, bulk = lambda + 2 c10."""
    c10 = constants[0] * lame_mu
    c01 = constants[1] * lame_mu
    square = s[0] * s[0] + s[1] * s[1] + s[2] * s[2]
    pairs = s[0] * s[0] * s[1] * s[1] + s[1] * s[1] * s[2] * s[2] + s[2] * s[2] * s[0] * s[0]
    energy = c10 * (square - 3.0) + c01 * (pairs - 3.0)
    slope = (
        c10 + c01 * (square - s[0] * s[0]),
        c10 + c01 * (square - s[1] * s[1]),
        c10 + c01 * (square - s[2] * s[2]),
    )
    h = _with_diagonal(outer(scaled(4.0 * c01, s), s), scaled(2.0, slope))
    return energy, by_entries(scaled(2.0, s), slope), h, -2.0 * c10 - 4.0 * c01, lame_lambda + 2.0 * c10


@njit(cache=True, forceinline=True)
def _power(energy: float, m: float, alpha: float, s: float) -> tuple[float, float, float]:
    """Energy + m (s^alpha - 1)/alpha, as a parabola below SMALL_STRETCH; and the first and second derivative of that term."""
    base = max(s, SMALL_STRETCH)
    power = base ** (alpha - 2.0)
    curvature = m * (alpha - 1.0) * power
    slope = m * power * base
    energy += m * (power * base * base - 1.0) / alpha
    if s < SMALL_STRETCH:
        curvature = max(curvature, 0.0)
        below = s - SMALL_STRETCH
        energy += below * (slope + 0.5 * below * curvature)
        slope += below * curvature
    return energy, slope, curvature


@njit(cache=True, inner=True)
def _ogden(lame_lambda: float, lame_mu: float, s: Vector, constants: np.ndarray) -> Terms:
    """Own = sum over p and i of mu_p (s_i^alpha_p - 1)/alpha_p; linear = -sum mu_p, bulk = lambda + sum mu_p."""
    terms = constants.shape[0] // 2
    energy = linear = 0.0
    bulk = lame_lambda
    g = (0.0, 0.0, 0.0)
    curvature = (0.0, 0.0, 0.0)
    for p in range(terms):
        m = constants[p] * lame_mu
        alpha = constants[terms + p]
        energy, g0, h0 = _power(energy, m, alpha, s[0])
        energy, g1, h1 = _power(energy, m, alpha, s[1])
        energy, g2, h2 = _power(energy, m, alpha, s[2])
        g = (g[0] + g0, g[1] + g1, g[2] + g2)
        curvature = (curvature[0] + h0, curvature[1] + h1, curvature[2] + h2)
        linear -= m
        bulk += m
    return energy, g, _diagonal(curvature), linear, bulk


@njit(cache=True, inner=True)
def energy_terms(
    law: int, constants: np.ndarray, lame_lambda: float, lame_mu: float, s: Vector, volumetric: Dilatation
) -> tuple[float, Vector, Matrix]:
    """Return psi (Pa) at stretches ``s`` of a known dilatation, and its first and second derivatives g and h.

    ``constants`` are over the shear modulus: of Mooney-Rivlin c10, c01; of Ogden all mu_p, then all alpha_p.
    """
    if law == COROTATIONAL:
        energy, g, h, linear, bulk = _corotational(lame_lambda, lame_mu, s)
    elif law == ST_VENANT_KIRCHHOFF:
        energy, g, h, linear, bulk = _st_venant_kirchhoff(lame_lambda, lame_mu, s)
    elif law == STABLE_NEO_HOOKEAN:
        energy, g, h, linear, bulk = _stable_neo_hookean(lame_lambda, lame_mu, s)
    elif law == MOONEY_RIVLIN:
        energy, g, h, linear, bulk = _mooney_rivlin(lame_lambda, lame_mu, s, constants)
    else:
        energy, g, h, linear, bulk = _ogden(lame_lambda, lame_mu, s, constants)
    d, d1, d2 = volumetric
    energy += d * (linear + 0.5 * bulk * d)
    pressure = linear + bulk * d
    g = (g[0] + pressure * d1[0], g[1] + pressure * d1[1], g[2] + pressure * d1[2])
    return energy, g, plus(h, plus(outer(scaled(bulk, d1), d1), scaled_matrix(pressure, d2)))

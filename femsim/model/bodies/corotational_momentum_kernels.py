"""The energy-momentum step of co-rotational linear tetrahedra in chunks, see ``momentum_kernels`` and ``corotational_kernels``.

Each element has one point, whose stress between the states F0 and F1 is the discrete derivative of ``momentum_kernels``. A chunk
takes the stretches at C_a and at the two outer points of Gauss' rule, C_a -+ 0.387 dC, by the iteration of Newton and Schulz, all
lanes together and without a branch. Lanes that this does not suit take the way of single elements: those that are inverted or
whose strain changes so much that energies are subtracted, and strains beyond the reach of the iteration.
"""

from __future__ import annotations

import math

import numpy as np

from contact.compiled import njit
from femsim.model.bodies.corotational_kernels import (
    CHUNK,
    packed_matrix,
    packed_symmetric,
    put_packed_matrix,
    put_packed_symmetric,
)
from femsim.model.bodies.law_kernels import COROTATIONAL
from femsim.model.bodies.momentum_kernels import GAUSS_POINT, GAUSS_WEIGHT, SMALL_CHANGE, TINY_CHANGE, point_stress
from femsim.model.bodies.rotation_kernels import (
    Symmetric,
    add_to_symmetric,
    as_matrix,
    commuting_product,
    determinant,
    gram,
    plus,
    scaled_matrix,
    symmetric_minus,
    symmetric_plus,
    symmetric_product,
    symmetric_scaled,
    symmetric_square,
    times,
    times_transposed,
    transposed_times,
)

# rows of the scratch array: edges then F at the start and at the end (9 each), their mean C and the change of it (6 each),
# whether a lane suits, mean of the diagonal of C; iteration for the root: root, its inverse, their product, what that lacks;
# stress at the middle, what the quotient adds, forces on corners 1 to 3
_START, _END, _MIDDLE, _GAINED, _SUITS, _SIZE, _ROOT, _INVERSE, _PRODUCT, _LACKS, _STRESS, _WORK, _FORCE = (
    row * CHUNK for row in (0, 9, 18, 24, 30, 31, 32, 38, 44, 50, 51, 57, 58)
)
#: Size of the scratch array.
STEP_SCRATCH = 67 * CHUNK
# |I - Z Y|^2 up to which the iteration goes on, and below which one more round is exact to rounding; most rounds
_ROOT_REACH, _ROOT_FOUND, _MOST_ROUNDS = 0.5, 1e-17, 12


@njit(cache=True, inner=True, error_model="numpy")
def _begin_chunk(w: np.ndarray, gradient: np.ndarray, start: int) -> None:
    """Replace the edges at both ends of a chunk by F there; fill mean and change of C = F^T F, and which lanes suit."""
    for k in range(CHUNK):
        G = packed_matrix(gradient, start + k)
        start_at, end_at = transposed_times(packed_matrix(w, _START + k), G), transposed_times(packed_matrix(w, _END + k), G)
        put_packed_matrix(w, _START + k, start_at)
        put_packed_matrix(w, _END + k, end_at)
        before, after = gram(start_at), gram(end_at)
        gained = symmetric_minus(after, before)
        put_packed_symmetric(w, _MIDDLE + k, symmetric_scaled(0.5, symmetric_plus(before, after)))
        put_packed_symmetric(w, _GAINED + k, gained)
        small = symmetric_square(gained) < SMALL_CHANGE * SMALL_CHANGE
        w[_SUITS + k] = 1.0 if (determinant(start_at) > 0.0) & (determinant(end_at) > 0.0) & small else 0.0
        w[_WORK + k] = 0.0


@njit(cache=True, inner=True, error_model="numpy")
def _find_roots(w: np.ndarray, offset: float, lanes: int) -> None:
    """Find the roots of C_a + ``offset`` dC and their inverses, over the root of ``_SIZE``; lanes out of reach do not suit."""
    for k in range(CHUNK):
        C = symmetric_plus(packed_symmetric(w, _MIDDLE + k), symmetric_scaled(offset, packed_symmetric(w, _GAINED + k)))
        size = (C[0] + C[1] + C[2]) / 3.0
        w[_SIZE + k] = size
        root = symmetric_scaled(1.0 / size, C)
        put_packed_symmetric(w, _ROOT + k, root)
        put_packed_symmetric(w, _INVERSE + k, (1.0, 1.0, 1.0, 0.0, 0.0, 0.0))
        put_packed_symmetric(w, _PRODUCT + k, root)
    for _ in range(_MOST_ROUNDS):
        for k in range(CHUNK):
            P = packed_symmetric(w, _PRODUCT + k)
            w[_LACKS + k] = symmetric_square(add_to_symmetric(P, -1.0))
            T = add_to_symmetric(symmetric_scaled(-0.5, P), 1.5)
            root, inverse = (
                commuting_product(packed_symmetric(w, _ROOT + k), T),
                commuting_product(T, packed_symmetric(w, _INVERSE + k)),
            )
            put_packed_symmetric(w, _ROOT + k, root)
            put_packed_symmetric(w, _INVERSE + k, inverse)
            put_packed_symmetric(w, _PRODUCT + k, commuting_product(inverse, root))
        unfinished = 0
        for k in range(lanes):
            if not w[_LACKS + k] <= _ROOT_REACH:
                w[_SUITS + k] = 0.0
            elif w[_LACKS + k] > _ROOT_FOUND:
                unfinished += 1
        if unfinished == 0:
            return
    for k in range(lanes):
        if not w[_LACKS + k] <= _ROOT_FOUND:
            w[_SUITS + k] = 0.0


@njit(cache=True, forceinline=True, error_model="numpy")
def _root_stress(w: np.ndarray, k: int, la: float, mu: float) -> Symmetric:
    """Second Piola-Kirchhoff stress 2 mu I + (lambda (tr U - 3) - 2 mu) U^-1 at the roots that were found."""
    size = math.sqrt(w[_SIZE + k])
    length = size * (w[_ROOT + k] + w[_ROOT + CHUNK + k] + w[_ROOT + 2 * CHUNK + k])
    factor = (la * (length - 3.0) - 2.0 * mu) / size
    return add_to_symmetric(symmetric_scaled(factor, packed_symmetric(w, _INVERSE + k)), 2.0 * mu)


@njit(cache=True, inner=True, error_model="numpy")
def _take_stresses(w: np.ndarray, lame_lambda: np.ndarray, lame_mu: np.ndarray, first: int, middle: bool) -> None:
    """Take the stress at the middle, or add what an outer point of Gauss' rule does beside it to the change of energy."""
    for k in range(CHUNK):
        S = _root_stress(w, k, lame_lambda[first + k], lame_mu[first + k])
        if middle:
            put_packed_symmetric(w, _STRESS + k, S)
        else:
            beside = symmetric_product(symmetric_minus(S, packed_symmetric(w, _STRESS + k)), packed_symmetric(w, _GAINED + k))
            w[_WORK + k] += GAUSS_WEIGHT * beside


@njit(cache=True, inner=True, error_model="numpy")
def _finish_chunk(
    w: np.ndarray,
    gradient: np.ndarray,
    start: int,
    volume: np.ndarray,
    lame_lambda: np.ndarray,
    lame_mu: np.ndarray,
    first: int,
    damping: float,
) -> None:
    """Fill S, with the quotient and the damping, and the forces V F_m S grad_a on corners 1 to 3."""
    for k in range(CHUNK):
        gained = packed_symmetric(w, _GAINED + k)
        square = symmetric_square(gained)
        quotient = w[_WORK + k] / square
        quotient = quotient if square > TINY_CHANGE * TINY_CHANGE else 0.0
        la, mu = lame_lambda[first + k], lame_mu[first + k]
        S = symmetric_plus(packed_symmetric(w, _STRESS + k), symmetric_scaled(quotient + damping * mu, gained))
        S = add_to_symmetric(S, 0.5 * damping * la * (gained[0] + gained[1] + gained[2]))
        put_packed_symmetric(w, _STRESS + k, S)
        middle = scaled_matrix(0.5 * volume[first + k], plus(packed_matrix(w, _START + k), packed_matrix(w, _END + k)))
        P = times(middle, as_matrix(S))
        put_packed_matrix(w, _FORCE + k, times_transposed(packed_matrix(gradient, start + k), P))


@njit(cache=True)
def step_forces_in_chunks(
    x0: np.ndarray,
    x1: np.ndarray,
    tets: np.ndarray,
    gradient: np.ndarray,
    volume: np.ndarray,
    lame_lambda: np.ndarray,
    lame_mu: np.ndarray,
    damping: float,
    w: np.ndarray,
    force: np.ndarray,
    stress: np.ndarray,
) -> None:
    """Fill the force (n, 3), N, of the elements against deformation in a step from x0 to x1, (n, 3) m, and their stress.

    Mesh and material are packed as :func:`corotational_kernels.element_forces` has them; ``damping`` is alpha, ``w``
    (STEP_SCRATCH,) is scratch, ``stress`` (m, 6) is as in :func:`momentum_kernels.step_forces`. The 11 parameters are both ends
    of the step, mesh, material, scratch and results; a small array for lanes that go alone is allocated.
    """
    work, nothing = np.empty((2, 3, 3)), np.zeros(2)
    m = tets.shape[0]
    for i in range(force.shape[0]):
        for c in range(3):
            force[i, c] = 0.0
    for chunk in range((m + CHUNK - 1) // CHUNK):
        first = chunk * CHUNK
        lanes = min(CHUNK, m - first)
        for k in range(lanes):
            i = tets[first + k, 0]
            for a in range(3):
                j = tets[first + k, a + 1]
                for c in range(3):
                    w[_START + (3 * a + c) * CHUNK + k] = x0[j, c] - x0[i, c]
                    w[_END + (3 * a + c) * CHUNK + k] = x1[j, c] - x1[i, c]
        _begin_chunk(w, gradient, 9 * first)
        _find_roots(w, 0.0, lanes)
        _take_stresses(w, lame_lambda, lame_mu, first, True)
        _find_roots(w, -GAUSS_POINT, lanes)
        _take_stresses(w, lame_lambda, lame_mu, first, False)
        _find_roots(w, GAUSS_POINT, lanes)
        _take_stresses(w, lame_lambda, lame_mu, first, False)
        _finish_chunk(w, gradient, 9 * first, volume, lame_lambda, lame_mu, first, damping)
        for k in range(lanes):
            e = first + k
            if w[_SUITS + k] == 0.0:
                start, end = packed_matrix(w, _START + k), packed_matrix(w, _END + k)
                upright = determinant(start) > 0.0 and determinant(end) > 0.0
                la, mu = lame_lambda[e], lame_mu[e]
                P, S = point_stress(start, end, upright, COROTATIONAL, nothing, la, mu, 0.0, damping, work)
                put_packed_symmetric(w, _STRESS + k, S)
                put_packed_matrix(
                    w, _FORCE + k, times_transposed(packed_matrix(gradient, 9 * first + k), scaled_matrix(volume[e], P))
                )
            for c in range(6):
                stress[e, c] = w[_STRESS + c * CHUNK + k]
            i = tets[e, 0]
            for c in range(3):
                f1, f2, f3 = w[_FORCE + c * CHUNK + k], w[_FORCE + (c + 3) * CHUNK + k], w[_FORCE + (c + 6) * CHUNK + k]
                force[tets[e, 1], c] += f1
                force[tets[e, 2], c] += f2
                force[tets[e, 3], c] += f3
                force[i, c] -= f1 + f2 + f3

"""Second derivatives of co-rotational linear tetrahedra, in chunks as in ``corotational_kernels``.

With F = R U, g_a = R grad_a, the strain e = U - I and Z = R (tr(U) I - U) R^T, the energy mu e : e + lambda/2 tr(e)^2 has the
second derivatives, by volume,

    H_ab = 2 mu (g_a . g_b) I + lambda g_a g_b^T - c [g_a]^T Z^-1 [g_b],    c = 2 mu - lambda tr(e),

[g] being the matrix of the product with g. Since [a]^T Z^-1 [b] det Z = (a . Z b) Z - (Z b) (Z a)^T, no inverse is needed.
Elements that are all but inverted have a c of at most mu times the lowest eigenvalue of Z, with which H is positive semidefinite.

In an energy-momentum step F is that of the middle, F_m, which a turn makes smaller than either end, but the stress S is that of
the step (``momentum_kernels``). H then has (grad_a . (S - S_m) grad_b) I besides, S_m = 2 mu I - c U^-1 being the stress of F_m:
without it, what only turns would seem to be pressed, and H be neither definite nor near the derivative of the force.

Where A must be definite, what the stress does as U changes for a second time is left out: the form is 2 mu dU : dU +
lambda tr(dU)^2, dU the first change of U, which is semidefinite. A turn of what is strained changes no U. With h_a = F grad_a and
B = F F^T it is H with

    [g_a]^T Z^-1 [h_b] + [h_a]^T Z^-1 [g_b] - [g_a]^T Z^-1 (tr(B) I - B) Z^-1 [g_b]

times 2 mu in place of c [g_a]^T Z^-1 [g_b].

Viscosity of strain, a stress alpha C : dE of the change dE of the strain (F^T F - I)/2 in a step, has alpha times

    D_ab = lambda h_a h_b^T + mu h_b h_a^T + mu (grad_a . grad_b) F F^T

as derivatives, but for the difference of F at the middle and at the end, which is not symmetric.

Prony terms with the shear modulus m in a step (``viscous``) and the stress S_b add the form of dU with 2 m and -2/3 m in place of
2 mu and lambda, and (grad_a . S_b grad_b) I where A need not be definite.
"""

from __future__ import annotations

import math

import numpy as np

from contact.compiled import njit
from femsim.model.bodies.corotational_kernels import (
    CHUNK,
    packed_matrix,
    packed_quaternion,
    packed_symmetric,
    place_diagonals,
    place_pair,
    put_packed_matrix,
)
from femsim.model.bodies.rotation_kernels import (
    Matrix,
    Symmetric,
    Vector,
    add_to_symmetric,
    as_matrix,
    cofactors,
    commuting_product,
    cross_matrix,
    lowest_eigenvalue,
    minus,
    plus,
    rotation_of,
    scaled_matrix,
    symmetric_part,
    symmetric_plus,
    symmetric_scaled,
    symmetric_square,
    times,
    times_transposed,
    transposed,
    transposed_times,
)

# rows of the scratch array: strain, quaternion; g, Z g, F grad of corners 1 to 3 as rows of matrices, and grad_a . grad_b and
# g_a . Z g_b; Z, F F^T; factors of g . g I, of g g^T, of what Z does, of both parts of viscosity, and of the form of dU : dU;
# the stress of the step, and what it and that of Prony terms add to g . g; blocks of corners (1, 1), (1, 2), (1, 3), (2, 2),
# (2, 3), (3, 3)
_STRAIN, _Q, _G, _Y, _H, _DOT, _CROSS, _Z, _B = (row * CHUNK for row in (0, 6, 10, 19, 28, 37, 46, 55, 64))
_EVEN, _BULK, _TWIST, _VISCOUS_BULK, _VISCOUS, _STRETCH, _STRESS, _PULL, _BLOCK = (
    row * CHUNK for row in (73, 74, 75, 76, 77, 78, 79, 85, 94)
)
#: Size of the scratch array.
TANGENT_SCRATCH = 148 * CHUNK
# eigenvalue of Z, 2 at rest, up to which an element is all but inverted; det U up to which the stress of a step is not asked for
_FLAT, _THIN = 0.5, 0.1


@njit(cache=True, forceinline=True)
def _row_of(w: np.ndarray, o: int, a: int) -> Vector:
    """Row a of the matrix of a lane at ``o``."""
    return w[o + 3 * a * CHUNK], w[o + (3 * a + 1) * CHUNK], w[o + (3 * a + 2) * CHUNK]


@njit(cache=True, forceinline=True)
def _outer(factor: float, a: Vector, b: Vector) -> Matrix:
    x, y, z = factor * a[0], factor * a[1], factor * a[2]
    return x * b[0], x * b[1], x * b[2], y * b[0], y * b[1], y * b[2], z * b[0], z * b[1], z * b[2]


@njit(cache=True, forceinline=True, error_model="numpy")
def _beyond(S: Symmetric, U: Symmetric, c: float, mu: float) -> Symmetric:
    """Stress of a step less 2 mu I - c U^-1; none where S is not known, or U all but singular."""
    adjugate = cofactors(U)
    det = U[0] * adjugate[0] + U[3] * adjugate[3] + U[4] * adjugate[4]
    S = add_to_symmetric(symmetric_plus(S, symmetric_scaled(c / det, adjugate)), -2.0 * mu)
    known = (S[0] == S[0]) & (det > _THIN)
    return (
        S[0] if known else 0.0, S[1] if known else 0.0, S[2] if known else 0.0,
        S[3] if known else 0.0, S[4] if known else 0.0, S[5] if known else 0.0,
    )  # fmt: skip


@njit(cache=True, forceinline=True)
def _stress_of(stress: np.ndarray, e: int) -> Symmetric:
    """Row e of stresses (m, 6)."""
    return stress[e, 0], stress[e, 1], stress[e, 2], stress[e, 3], stress[e, 4], stress[e, 5]


@njit(cache=True, inner=True, error_model="numpy")
def _prepare(
    w: np.ndarray,
    gradient: np.ndarray,
    start: int,
    volume: np.ndarray,
    lame_lambda: np.ndarray,
    lame_mu: np.ndarray,
    first: int,
    elastic: float,
    viscous: float,
    branch: float,
    branch_stress: np.ndarray,
) -> None:
    """Fill all rows of a chunk but the blocks, from strain and quaternion."""
    for k in range(CHUNK):
        G, R = packed_matrix(gradient, start + k), rotation_of(packed_quaternion(w, _Q + k))
        e00, e11, e22 = w[_STRAIN + k], w[_STRAIN + CHUNK + k], w[_STRAIN + 2 * CHUNK + k]
        e01, e12, e02 = w[_STRAIN + 3 * CHUNK + k], w[_STRAIN + 4 * CHUNK + k], w[_STRAIN + 5 * CHUNK + k]
        trace = e00 + e11 + e22
        U = (1.0 + e00, e01, e02, e01, 1.0 + e11, e12, e02, e12, 1.0 + e22)
        z00, z11, z22 = 2.0 + e11 + e22, 2.0 + e00 + e22, 2.0 + e00 + e11
        F = times(R, U)
        turned_z = times_transposed(times(R, (z00, -e01, -e02, -e01, z11, -e12, -e02, -e12, z22)), R)
        g = times_transposed(G, R)
        y = times(g, turned_z)
        put_packed_matrix(w, _G + k, g)
        put_packed_matrix(w, _Y + k, y)
        put_packed_matrix(w, _H + k, times_transposed(G, F))
        put_packed_matrix(w, _DOT + k, times_transposed(G, G))
        put_packed_matrix(w, _CROSS + k, times_transposed(g, y))
        put_packed_matrix(w, _Z + k, turned_z)
        put_packed_matrix(w, _B + k, times_transposed(F, F))
        v, la, mu = volume[first + k], lame_lambda[first + k], lame_mu[first + k]
        c = 2.0 * mu - la * trace
        c0, c1, c2 = z11 * z22 - e12 * e12, e01 * z22 + e02 * e12, e01 * e12 + e02 * z11
        det = z00 * c0 - e01 * c1 - e02 * c2
        beyond = _beyond(packed_symmetric(w, _STRESS + k), (U[0], U[4], U[8], U[1], U[2], U[5]), c, mu)
        if first + k < len(branch_stress):
            beyond = symmetric_plus(beyond, _stress_of(branch_stress, first + k))
        put_packed_matrix(w, _PULL + k, scaled_matrix(elastic * v, times_transposed(times(G, as_matrix(beyond)), G)))
        w[_STRETCH + k] = 2.0 * elastic * v * branch * mu
        w[_EVEN + k] = 2.0 * elastic * v * mu + w[_STRETCH + k]
        w[_BULK + k] = elastic * v * la - w[_STRETCH + k] / 3.0
        w[_TWIST + k] = elastic * v * c / det
        w[_VISCOUS_BULK + k] = viscous * v * la
        w[_VISCOUS + k] = viscous * v * mu


@njit(cache=True, inner=True)
def _limit_twist(
    w: np.ndarray, volume: np.ndarray, lame_mu: np.ndarray, first: int, lanes: int, elastic: float, positive: bool
) -> None:
    """Make H of elements that are all but inverted semidefinite; the others take the form of dU if ``positive``."""
    for k in range(lanes):
        z = symmetric_part(packed_matrix(w, _Z + k))
        # Z - 2 I has no eigenvalue beyond its norm
        near = symmetric_square(add_to_symmetric(z, -2.0)) < (2.0 - _FLAT) ** 2
        if near and not positive:
            continue
        lowest = lowest_eigenvalue(z)
        if near or lowest > _FLAT:
            if not positive:
                continue
            w[_STRETCH + k] = w[_EVEN + k]
            w[_TWIST + k] = 0.0
        else:
            w[_STRETCH + k] = 0.0
            # c = mu times the lowest eigenvalue, over the determinant: mu over the product of the two others
            total, squares = z[0] + z[1] + z[2] - lowest, symmetric_square(z) - lowest * lowest
            others = 0.5 * (total * total - squares)
            most = elastic * volume[first + k] * lame_mu[first + k] / others if lowest > 0.0 else 0.0
            w[_TWIST + k] = min(w[_TWIST + k], most) if lowest > 0.0 else 0.0
        for c in range(9):
            w[_PULL + c * CHUNK + k] = 0.0


@njit(cache=True, forceinline=True, error_model="numpy")
def _fill_block(w: np.ndarray, a: int, b: int, o: int) -> None:
    """Fill the blocks of corners a + 1 and b + 1 of a chunk at ``o``; numbers that are known where this is compiled."""
    for k in range(CHUNK):
        at, dot = (3 * a + b) * CHUNK + k, w[_DOT + (3 * a + b) * CHUNK + k]
        twist, viscous = w[_TWIST + k], w[_VISCOUS + k]
        even = w[_EVEN + k] * dot + w[_PULL + at]
        K = (even, 0.0, 0.0, 0.0, even, 0.0, 0.0, 0.0, even)
        K = plus(K, scaled_matrix(viscous * dot, packed_matrix(w, _B + k)))
        K = plus(K, scaled_matrix(-twist * w[_CROSS + at], packed_matrix(w, _Z + k)))
        K = plus(K, _outer(w[_BULK + k], _row_of(w, _G + k, a), _row_of(w, _G + k, b)))
        K = plus(K, _outer(twist, _row_of(w, _Y + k, b), _row_of(w, _Y + k, a)))
        h_a, h_b = _row_of(w, _H + k, a), _row_of(w, _H + k, b)
        K = plus(K, _outer(w[_VISCOUS_BULK + k], h_a, h_b))
        K = plus(K, _outer(viscous, h_b, h_a))
        put_packed_matrix(w, o + k, K)


@njit(cache=True, inner=True, error_model="numpy")
def _fill_blocks(w: np.ndarray) -> None:
    """Fill the blocks of a chunk."""
    _fill_block(w, 0, 0, _BLOCK)
    _fill_block(w, 0, 1, _BLOCK + 9 * CHUNK)
    _fill_block(w, 0, 2, _BLOCK + 18 * CHUNK)
    _fill_block(w, 1, 1, _BLOCK + 27 * CHUNK)
    _fill_block(w, 1, 2, _BLOCK + 36 * CHUNK)
    _fill_block(w, 2, 2, _BLOCK + 45 * CHUNK)


@njit(cache=True, inner=True, error_model="numpy")
def _half_of_stretch(w: np.ndarray, k: int, a: int, inverse: Symmetric, square: Symmetric) -> Matrix:
    """Return X_a = Z^-1 (tr(B) I - B) Z^-1 [g_a] / 2 - Z^-1 [h_a] of corner a + 1: ``square`` is what stands before [g_a] / 2."""
    by_g = times(as_matrix(square), cross_matrix(_row_of(w, _G + k, a)))
    return minus(scaled_matrix(0.5, by_g), times(as_matrix(inverse), cross_matrix(_row_of(w, _H + k, a))))


@njit(cache=True, inner=True, error_model="numpy")
def _add_stretch(w: np.ndarray, k: int) -> None:
    """Add what makes even blocks of a lane those of dU: 2 mu ([g_a]^T X_b + ([g_b]^T X_a)^T) by volume, of all mu or a part."""
    z, strained = symmetric_part(packed_matrix(w, _Z + k)), symmetric_part(packed_matrix(w, _B + k))
    adjugate = cofactors(z)
    inverse = symmetric_scaled(1.0 / (z[0] * adjugate[0] + z[3] * adjugate[3] + z[4] * adjugate[4]), adjugate)
    rest = add_to_symmetric(symmetric_scaled(-1.0, strained), strained[0] + strained[1] + strained[2])
    square = commuting_product(commuting_product(inverse, rest), inverse)
    o = _BLOCK + k
    for a in range(3):
        g_a, x_a = cross_matrix(_row_of(w, _G + k, a)), _half_of_stretch(w, k, a, inverse, square)
        for b in range(a, 3):
            g_b, x_b = cross_matrix(_row_of(w, _G + k, b)), _half_of_stretch(w, k, b, inverse, square)
            both = plus(transposed_times(g_a, x_b), transposed_times(x_a, g_b))
            put_packed_matrix(w, o, plus(packed_matrix(w, o), scaled_matrix(w[_STRETCH + k], both)))
            o += 9 * CHUNK


@njit(cache=True)
def element_tangents(
    gradient: np.ndarray,
    volume: np.ndarray,
    lame_lambda: np.ndarray,
    lame_mu: np.ndarray,
    quaternion: np.ndarray,
    strain: np.ndarray,
    stress: np.ndarray,
    elastic: float,
    viscous: float,
    branch: float,
    branch_stress: np.ndarray,
    positive: bool,
    w: np.ndarray,
    blocks: np.ndarray,
) -> None:
    """Fill ``elastic`` H + ``viscous`` D of each pair of corners; with the form of dU in place of H if ``positive``.

    Constants and state are packed as in :func:`corotational_kernels.element_forces`, which left them; ``stress`` is that of an
    energy-momentum step as :func:`momentum_kernels.step_forces` left it, here (m, 6), or (0, 6). ``branch`` is the shear modulus
    of Prony terms over that of the law, ``branch_stress`` their stress in the same form. ``blocks`` (m, 6, 9) becomes those of
    corners (0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3), row by row; ``w`` (TANGENT_SCRATCH,) is scratch. The 14
    arguments are mesh, material, state, factors and results of one body.
    """
    m = strain.shape[0]
    for chunk in range((m + CHUNK - 1) // CHUNK):
        first = chunk * CHUNK
        lanes = min(CHUNK, m - first)
        for k in range(lanes):
            for c in range(6):
                w[_STRAIN + c * CHUNK + k] = strain[first + k, c]
        for k in range(CHUNK):
            given = k < lanes and len(stress) > 0
            for c in range(6):
                w[_STRESS + c * CHUNK + k] = stress[first + k, c] if given else math.nan
        for k in range(4 * CHUNK):
            w[_Q + k] = quaternion[4 * first + k]
        _prepare(w, gradient, 9 * first, volume, lame_lambda, lame_mu, first, elastic, viscous, branch, branch_stress)
        _limit_twist(w, volume, lame_mu, first, lanes, elastic, positive)
        _fill_blocks(w)
        for k in range(lanes):
            if w[_STRETCH + k] > 0.0:
                _add_stretch(w, k)
            _write(w, k, blocks, first + k)


@njit(cache=True, inner=True)
def _write(w: np.ndarray, k: int, blocks: np.ndarray, e: int) -> None:
    """Write the blocks of a lane; those of corner 0 are minus the sums of the others."""
    o, size = _BLOCK + k, 9 * CHUNK
    k11, k12, k13 = packed_matrix(w, o), packed_matrix(w, o + size), packed_matrix(w, o + 2 * size)
    k22, k23, k33 = packed_matrix(w, o + 3 * size), packed_matrix(w, o + 4 * size), packed_matrix(w, o + 5 * size)
    k01 = scaled_matrix(-1.0, plus(plus(k11, transposed(k12)), transposed(k13)))
    k02 = scaled_matrix(-1.0, plus(plus(k12, k22), transposed(k23)))
    k03 = scaled_matrix(-1.0, plus(plus(k13, k23), k33))
    for c in range(9):
        blocks[e, 0, c] = k01[c]
        blocks[e, 1, c] = k02[c]
        blocks[e, 2, c] = k03[c]
        blocks[e, 3, c] = k12[c]
        blocks[e, 4, c] = k13[c]
        blocks[e, 5, c] = k23[c]


@njit(cache=True)
def tangent_blocks(
    column_ptr: np.ndarray,
    column_start: np.ndarray,
    stride: np.ndarray,
    block_row: np.ndarray,
    mirror: np.ndarray,
    block_ptr: np.ndarray,
    corner_row: np.ndarray,
    corner_column: np.ndarray,
    blocks: np.ndarray,
    mass: np.ndarray,
    mass_factor: float,
    diagonal: np.ndarray,
    data: np.ndarray,
) -> None:
    """Fill the CSC entries of mass_factor M + what :func:`element_tangents` left, as ``stiffness_blocks`` fills those of K.

    The 13 arguments are the pattern, state, factor and results of one body.
    """
    diagonal[:] = 0.0
    for j in range(mass.shape[0]):
        for k in range(column_ptr[j], column_ptr[j + 1]):
            K = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
            for p in range(block_ptr[k], block_ptr[k + 1]):
                a, b, e = corner_row[p] & 3, corner_column[p] & 3, corner_row[p] >> 2
                if a < b:
                    K = plus(K, _block_of(blocks, e, b - 1 if a == 0 else a + b))
                else:
                    K = plus(K, transposed(_block_of(blocks, e, a - 1 if b == 0 else a + b)))
            place_pair(data, diagonal, K, j, block_row[k], column_start[j] + 3 * (k - column_ptr[j]), mirror[k], stride)
    place_diagonals(data, diagonal, column_ptr, column_start, stride, mass, mass_factor)


@njit(cache=True, forceinline=True)
def _block_of(blocks: np.ndarray, e: int, pair: int) -> Matrix:
    """Block of a pair of corners of an element."""
    return (
        blocks[e, pair, 0], blocks[e, pair, 1], blocks[e, pair, 2], blocks[e, pair, 3], blocks[e, pair, 4],
        blocks[e, pair, 5], blocks[e, pair, 6], blocks[e, pair, 7], blocks[e, pair, 8],
    )  # fmt: skip

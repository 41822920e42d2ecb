"""Kernels of co-rotational linear tetrahedra: rotation, forces, stiffness blocks; arrays in, arrays filled.

Elements are worked off in chunks of ``CHUNK``. Constants and state of a chunk are *packed*: (chunks, rows, CHUNK), element e in
chunk e // CHUNK and lane e % CHUNK, lanes past the last element zero; so a loop over the lanes has no branch and no
gather, and the compiler turns it into vector instructions. These loops share one flat scratch array with rows at fixed places,
because only then can it see that they do not overlap. They divide as IEEE 754 says (``error_model="numpy"``): Python's
check for zero is a branch. Sums over elements are taken one after another, in their order.

The rotation has two forms: :func:`rotation_steps`, a Newton step of all lanes without a branch, and for the lanes that it
refuses the safeguarded search of :func:`femsim.model.bodies.rotation_kernels.polar_quaternion`. Both are composed of the same
pieces; only the diagonal of H is rounded differently. It is worth two forms: three chunk steps take 45 ns per element, one 20 ns,
the search from the same start 120 ns (almost a rotation) to 190 ns (strains of 2 %).
"""

from __future__ import annotations

import math

import numpy as np

from contact.compiled import njit
from contact.vector_kernels import dot, row, times as scaled
from femsim.model.bodies.rotation_kernels import (
    Matrix,
    Quaternion,
    Symmetric,
    Vector,
    add_to_diagonal,
    axial,
    cofactors,
    determinant,
    outer,
    plus,
    polar_quaternion,
    retracted,
    rotation_of,
    scaled_matrix,
    squared_norm,
    symmetric_times,
    times,
    times_transposed,
    transposed,
    transposed_times,
)

#: Elements that are worked off together.
CHUNK = 32
# rows of the scratch array: edges (9) then F (9, in the same place), quaternion, status of the rotation, det F, strain, energy,
# forces on corners 1 to 3, scaled rotated gradients of corners 1 to 3
_F, _Q, _STATUS, _DET, _STRAIN, _ENERGY, _FORCE, _ROTATED = (at * CHUNK for at in (0, 9, 13, 14, 15, 21, 22, 31))
#: Size of the scratch array.
SCRATCH = 40 * CHUNK
# values of the status row
_REFUSED, _STEPPED, _CONVERGED = 0.0, 1.0, 2.0
#: Newton steps that are tried on whole chunks before single elements get the safeguarded search.
_CHUNK_STEPS = 3


@njit(cache=True, forceinline=True)
def packed_matrix(packed: np.ndarray, o: int) -> Matrix:
    """Read the matrix of a lane, its entries CHUNK apart from place ``o`` on."""
    return (
        packed[o], packed[o + CHUNK], packed[o + 2 * CHUNK], packed[o + 3 * CHUNK], packed[o + 4 * CHUNK],
        packed[o + 5 * CHUNK], packed[o + 6 * CHUNK], packed[o + 7 * CHUNK], packed[o + 8 * CHUNK],
    )  # fmt: skip


@njit(cache=True, forceinline=True)
def put_packed_matrix(packed: np.ndarray, o: int, A: Matrix) -> None:
    """Fill the matrix of a lane."""
    packed[o] = A[0]
    packed[o + CHUNK] = A[1]
    packed[o + 2 * CHUNK] = A[2]
    packed[o + 3 * CHUNK] = A[3]
    packed[o + 4 * CHUNK] = A[4]
    packed[o + 5 * CHUNK] = A[5]
    packed[o + 6 * CHUNK] = A[6]
    packed[o + 7 * CHUNK] = A[7]
    packed[o + 8 * CHUNK] = A[8]


@njit(cache=True, forceinline=True)
def packed_symmetric(packed: np.ndarray, o: int) -> Symmetric:
    """Read the symmetric matrix of a lane."""
    return (
        packed[o], packed[o + CHUNK], packed[o + 2 * CHUNK], packed[o + 3 * CHUNK], packed[o + 4 * CHUNK], packed[o + 5 * CHUNK]
    )  # fmt: skip


@njit(cache=True, forceinline=True)
def put_packed_symmetric(packed: np.ndarray, o: int, C: Symmetric) -> None:
    """Fill the symmetric matrix of a lane."""
    packed[o] = C[0]
    packed[o + CHUNK] = C[1]
    packed[o + 2 * CHUNK] = C[2]
    packed[o + 3 * CHUNK] = C[3]
    packed[o + 4 * CHUNK] = C[4]
    packed[o + 5 * CHUNK] = C[5]


@njit(cache=True, forceinline=True)
def packed_quaternion(packed: np.ndarray, o: int) -> Quaternion:
    """Read the quaternion of a lane."""
    return packed[o], packed[o + CHUNK], packed[o + 2 * CHUNK], packed[o + 3 * CHUNK]


@njit(cache=True, forceinline=True)
def _put_quaternion(packed: np.ndarray, o: int, q: Quaternion) -> None:
    """Fill the quaternion of a lane."""
    packed[o] = q[0]
    packed[o + CHUNK] = q[1]
    packed[o + 2 * CHUNK] = q[2]
    packed[o + 3 * CHUNK] = q[3]


@njit(cache=True, inner=True, error_model="numpy")
def deformation_gradients(w: np.ndarray, gradient: np.ndarray, start: int) -> None:
    """Replace the edges x_a - x_0 of a chunk by F = sum_a (x_a - x_0) grad_a^T; ``gradient`` flat, the chunk's at ``start``."""
    for k in range(CHUNK):
        put_packed_matrix(w, _F + k, transposed_times(packed_matrix(w, _F + k), packed_matrix(gradient, start + k)))


@njit(cache=True, inner=True, error_model="numpy")
def rotation_steps(w: np.ndarray) -> None:
    """Newton step of :func:`polar_quaternion` for a chunk, only where its Hessian H is clearly definite and the step below 1 rad.

    ``w`` (SCRATCH,) holds F and the quaternions, which are replaced. The method is of third order: at the rotation the odd
    derivatives of tr(R^T F) vanish, and the retraction is odd in the step. The error it leaves is at most about
    angle^3 |F| / (smallest eigenvalue of H), and that quotient at most about |F|^3 / det H: converged when
    angle^3 |F|^3 <= 1e-17 det H. The status row says refused, stepped or converged.
    """
    for k in range(CHUNK):
        F, q = packed_matrix(w, _F + k), packed_quaternion(w, _Q + k)
        B = transposed_times(rotation_of(q), F)
        H = (B[4] + B[8], B[0] + B[8], B[0] + B[4], -0.5 * (B[1] + B[3]), -0.5 * (B[2] + B[6]), -0.5 * (B[5] + B[7]))
        C = cofactors(H)
        det = H[0] * C[0] + H[3] * C[3] + H[4] * C[4]
        inverse = 1.0 / det
        x, y, z = symmetric_times(C, axial(B))
        step = (x * inverse, y * inverse, z * inverse)
        angle2 = dot(step, step)
        square = squared_norm(F)
        definite = (H[0] > 0.0) & (C[2] > 0.0) & (det > 0.0) & (det * det > 1e-20 * square * square * square)
        taken = definite & (angle2 < 1.0)
        reach = angle2 * square
        converged = taken & (reach * reach * reach <= 1e-34 * det * det)
        w[_STATUS + k] = _CONVERGED if converged else (_STEPPED if taken else _REFUSED)
        new = retracted(q, step)
        w[_Q + k] = new[0] if taken else q[0]
        w[_Q + CHUNK + k] = new[1] if taken else q[1]
        w[_Q + 2 * CHUNK + k] = new[2] if taken else q[2]
        w[_Q + 3 * CHUNK + k] = new[3] if taken else q[3]


@njit(cache=True, forceinline=True)
def _co_rotated_strain(R: Matrix, F: Matrix) -> tuple[Vector, Vector]:
    """Strain sym(R^T F) - I: (xx, yy, zz) and (xy, yz, zx); the six products of a shear are summed one after another."""
    r00, r01, r02, r10, r11, r12, r20, r21, r22 = R
    f00, f01, f02, f10, f11, f12, f20, f21, f22 = F
    stretch = (
        r00 * f00 + r10 * f10 + r20 * f20 - 1.0,
        r01 * f01 + r11 * f11 + r21 * f21 - 1.0,
        r02 * f02 + r12 * f12 + r22 * f22 - 1.0,
    )
    shear = (
        0.5 * (r00 * f01 + r10 * f11 + r20 * f21 + r01 * f00 + r11 * f10 + r21 * f20),
        0.5 * (r01 * f02 + r11 * f12 + r21 * f22 + r02 * f01 + r12 * f11 + r22 * f21),
        0.5 * (r00 * f02 + r10 * f12 + r20 * f22 + r02 * f00 + r12 * f10 + r22 * f20),
    )
    return stretch, shear


@njit(cache=True, inner=True, error_model="numpy")
def chunk_forces(
    w: np.ndarray,
    gradient: np.ndarray,
    start: int,
    volume: np.ndarray,
    lame_lambda: np.ndarray,
    lame_mu: np.ndarray,
    first: int,
) -> None:
    """Fill det F, strain, energy, corner forces and rotated gradients of a chunk whose first element is ``first``.

    With the strain e and V the volume the energy is V (mu e : e + lambda/2 tr(e)^2), the first Piola-Kirchhoff stress
    P = R S with S = 2 mu e + lambda tr(e) I, the force on corner a V P grad_a, the rotated gradient sqrt(V mu) R grad_a. ``w``
    (SCRATCH,) holds F and the quaternions; ``gradient`` (1/m) is flat, the chunk's rows begin at ``start``; ``volume`` (m^3) and
    the Lame constants (Pa) are by element.
    """
    for k in range(CHUNK):
        F, R, G = packed_matrix(w, _F + k), rotation_of(packed_quaternion(w, _Q + k)), packed_matrix(gradient, start + k)
        w[_DET + k] = determinant(F)
        (e00, e11, e22), (e01, e12, e02) = _co_rotated_strain(R, F)
        w[_STRAIN + k] = e00
        w[_STRAIN + CHUNK + k] = e11
        w[_STRAIN + 2 * CHUNK + k] = e22
        w[_STRAIN + 3 * CHUNK + k] = e01
        w[_STRAIN + 4 * CHUNK + k] = e12
        w[_STRAIN + 5 * CHUNK + k] = e02
        v, la, mu = volume[first + k], lame_lambda[first + k], lame_mu[first + k]
        trace = e00 + e11 + e22
        squares = e00 * e00 + e11 * e11 + e22 * e22 + 2.0 * (e01 * e01 + e12 * e12 + e02 * e02)
        w[_ENERGY + k] = v * (mu * squares + 0.5 * la * trace * trace)
        pressure = v * la * trace
        two_mu = 2.0 * v * mu
        s01, s12, s02 = two_mu * e01, two_mu * e12, two_mu * e02
        S = (two_mu * e00 + pressure, s01, s02, s01, two_mu * e11 + pressure, s12, s02, s12, two_mu * e22 + pressure)
        put_packed_matrix(w, _FORCE + k, times_transposed(G, times(R, S)))
        put_packed_matrix(w, _ROTATED + k, times_transposed(G, scaled_matrix(math.sqrt(v * mu), R)))


@njit(cache=True)
def element_forces(
    x: np.ndarray,
    tets: np.ndarray,
    gradient: np.ndarray,
    volume: np.ndarray,
    lame_lambda: np.ndarray,
    lame_mu: np.ndarray,
    quaternion: np.ndarray,
    w: np.ndarray,
    rotated: np.ndarray,
    force: np.ndarray,
    strain: np.ndarray,
) -> tuple[float, int]:
    """Update rotations, rotated gradients, internal forces and co-rotated strains from positions.

    Returns the elastic energy (J) and the number of inverted elements.

    ``gradient`` holds the rest gradients of the shape functions of corners 1 to 3 (1/m), packed and flat with 9 rows; that of
    corner 0 is minus their sum. ``quaternion``, packed and flat with 4 rows, is read as warm start and updated. ``volume`` (m^3),
    ``lame_lambda`` and ``lame_mu`` (Pa) are as long as a whole number of chunks. ``w`` (SCRATCH,) is scratch. ``rotated``
    (m, 4, 3) becomes sqrt(V mu) R grad, ``force`` (n, 3) the force of the elements against deformation (N, gradient of the
    energy), ``strain`` (m, 6) the strain sym(R^T F) - I as xx, yy, zz, xy, yz, zx. The 11 arguments are mesh, material, state and
    results of one body.
    """
    m = tets.shape[0]
    energy = 0.0
    inverted = 0
    for i in range(force.shape[0]):
        force[i, 0] = 0.0
        force[i, 1] = 0.0
        force[i, 2] = 0.0
    for chunk in range((m + CHUNK - 1) // CHUNK):
        first = chunk * CHUNK
        lanes = min(CHUNK, m - first)
        for k in range(lanes):
            i = tets[first + k, 0]
            x0 = x[i, 0]
            x1 = x[i, 1]
            x2 = x[i, 2]
            for a in range(3):
                i = tets[first + k, a + 1]
                w[_F + 3 * a * CHUNK + k] = x[i, 0] - x0
                w[_F + (3 * a + 1) * CHUNK + k] = x[i, 1] - x1
                w[_F + (3 * a + 2) * CHUNK + k] = x[i, 2] - x2
        for k in range(4 * CHUNK):
            w[_Q + k] = quaternion[4 * first + k]
        deformation_gradients(w, gradient, 9 * first)
        for _ in range(_CHUNK_STEPS):
            rotation_steps(w)
            unfinished = 0
            for k in range(lanes):
                unfinished += w[_STATUS + k] != _CONVERGED
            if unfinished == 0:
                break
        if unfinished > 0:
            for k in range(lanes):
                if w[_STATUS + k] != _CONVERGED:
                    q, _ = polar_quaternion(packed_matrix(w, _F + k), packed_quaternion(w, _Q + k))
                    _put_quaternion(w, _Q + k, q)
        for k in range(4 * CHUNK):
            quaternion[4 * first + k] = w[_Q + k]
        chunk_forces(w, gradient, 9 * first, volume, lame_lambda, lame_mu, first)
        for k in range(lanes):
            e = first + k
            inverted += w[_DET + k] <= 0.0
            energy += w[_ENERGY + k]
            for c in range(6):
                strain[e, c] = w[_STRAIN + c * CHUNK + k]
            i = tets[e, 0]
            for c in range(3):
                f1 = w[_FORCE + c * CHUNK + k]
                f2 = w[_FORCE + (c + 3) * CHUNK + k]
                f3 = w[_FORCE + (c + 6) * CHUNK + k]
                force[tets[e, 1], c] += f1
                force[tets[e, 2], c] += f2
                force[tets[e, 3], c] += f3
                force[i, c] -= f1 + f2 + f3
                g1 = w[_ROTATED + c * CHUNK + k]
                g2 = w[_ROTATED + (c + 3) * CHUNK + k]
                g3 = w[_ROTATED + (c + 6) * CHUNK + k]
                rotated[e, 1, c] = g1
                rotated[e, 2, c] = g2
                rotated[e, 3, c] = g3
                rotated[e, 0, c] = -(g1 + g2 + g3)
    return energy, inverted


@njit(cache=True)
def stiffness_blocks(
    column_ptr: np.ndarray,
    column_start: np.ndarray,
    stride: np.ndarray,
    block_row: np.ndarray,
    mirror: np.ndarray,
    block_ptr: np.ndarray,
    corner_row: np.ndarray,
    corner_column: np.ndarray,
    rotated: np.ndarray,
    ratio: np.ndarray,
    mass: np.ndarray,
    stiffness_factor: float,
    mass_factor: float,
    diagonal: np.ndarray,
    data: np.ndarray,
) -> None:
    """Fill the CSC entries of mass_factor M + stiffness_factor K from the rotated gradients.

    K_ab = V (lambda ga gb^T + mu gb ga^T + mu ga.gb I) with ga = R grad_a. The blocks (i, j), i < j, of block column j are
    ``column_ptr[j]`` to ``column_ptr[j + 1]``; block k stands in row ``block_row[k]`` and sums the pairs of corners (4 element
    + corner) from ``block_ptr[k]`` on. With ``rotated`` (4 m, 3) scaled by sqrt(V mu) its sum is S = sum ga gb^T, and
    K = T + S^T + tr(S) I with T = sum (lambda/mu) ga gb^T: one material gives T = ratio S, and only elements of another ratio
    add to it. Rows of K sum to nothing, so a diagonal block is minus the sum of its column's others; ``diagonal`` (n, 6) holds
    these sums as xx, yy, zz and twice xy, xz, yz, symmetric to the last bit.

    The three scalar columns of block column j begin at ``column_start[j] + c * stride[j]``; ``mirror[k]`` is the place of block
    (j, i) in column i. The 15 arguments are the pattern, state, factors and results of one body.
    """
    common = ratio[0] if ratio.shape[0] > 0 else 0.0
    diagonal[:] = 0.0
    for j in range(mass.shape[0]):
        for k in range(column_ptr[j], column_ptr[j + 1]):
            S = T = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
            for p in range(block_ptr[k], block_ptr[k + 1]):
                a = corner_row[p]
                ga, gb = row(rotated, a), row(rotated, corner_column[p])
                S = plus(S, outer(ga, gb))
                if ratio[a >> 2] != common:
                    T = plus(T, outer(scaled(ratio[a >> 2] - common, ga), gb))
            K = add_to_diagonal(plus(plus(T, scaled_matrix(common, S)), transposed(S)), S[0] + S[4] + S[8])
            K = scaled_matrix(stiffness_factor, K)
            place_pair(data, diagonal, K, j, block_row[k], column_start[j] + 3 * (k - column_ptr[j]), mirror[k], stride)
    place_diagonals(data, diagonal, column_ptr, column_start, stride, mass, mass_factor)


@njit(cache=True, forceinline=True)
def place_pair(
    data: np.ndarray, diagonal: np.ndarray, K: Matrix, j: int, i: int, place: int, mirror: int, stride: np.ndarray
) -> None:
    """Fill block (i, j) at ``place`` and (j, i) at ``mirror``; add both to the sums of columns i and j."""
    _put_block(data, np.int64(place), stride[j], K)
    _put_block(data, np.int64(mirror), stride[i], transposed(K))
    both = (K[0], K[4], K[8], K[1] + K[3], K[2] + K[6], K[5] + K[7])
    for c in range(6):
        diagonal[i, c] += both[c]
        diagonal[j, c] += both[c]


@njit(cache=True, inner=True)
def place_diagonals(
    data: np.ndarray,
    diagonal: np.ndarray,
    column_ptr: np.ndarray,
    column_start: np.ndarray,
    stride: np.ndarray,
    mass: np.ndarray,
    mass_factor: float,
) -> None:
    """Fill the diagonal blocks, minus the sums of the others in their columns and the masses times a factor."""
    for j in range(mass.shape[0]):
        place = column_start[j] + 3 * (column_ptr[j + 1] - column_ptr[j])
        inertia = mass_factor * mass[j]
        k01, k02, k12 = -0.5 * diagonal[j, 3], -0.5 * diagonal[j, 4], -0.5 * diagonal[j, 5]
        own = (
            inertia - diagonal[j, 0], k01, k02,
            k01, inertia - diagonal[j, 1], k12,
            k02, k12, inertia - diagonal[j, 2],
        )  # fmt: skip
        _put_block(data, place, stride[j], own)


@njit(cache=True, forceinline=True)
def _put_block(data: np.ndarray, place: int, stride: int, K: Matrix) -> None:
    """Fill a block that begins at ``place``, its columns ``stride`` apart."""
    for c in range(3):
        for r in range(3):
            data[place + c * stride + r] = K[3 * r + c]

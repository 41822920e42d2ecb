"""3x3 matrices and rotations for compiled code, as tuples of numbers, beside the vectors of :mod:`contact.vector_kernels`.

A vector is three numbers, a quaternion four (w first), a matrix nine (row by row), a symmetric matrix six (00, 11, 22, 01, 02,
12). A tuple lives in registers: nothing is allocated, and the compiler sees through the calls (``forceinline``), so a formula
written with these functions is as fast as one written out, also in loops that become vector instructions. Sums run over the
summation index in its order, 0 + 1 + 2.
"""

from __future__ import annotations

import math

import numpy as np

from contact.compiled import njit
from contact.vector_kernels import dot, times as scaled

Vector = tuple[float, float, float]
Quaternion = tuple[float, float, float, float]
Symmetric = tuple[float, float, float, float, float, float]
Matrix = tuple[float, float, float, float, float, float, float, float, float]


@njit(cache=True, forceinline=True)
def by_entries(a: Vector, b: Vector) -> Vector:
    """Return a_i b_i, entry by entry."""
    return a[0] * b[0], a[1] * b[1], a[2] * b[2]


@njit(cache=True, forceinline=True)
def plus(A: Matrix, B: Matrix) -> Matrix:
    """Return A + B."""
    return A[0] + B[0], A[1] + B[1], A[2] + B[2], A[3] + B[3], A[4] + B[4], A[5] + B[5], A[6] + B[6], A[7] + B[7], A[8] + B[8]


@njit(cache=True, forceinline=True)
def minus(A: Matrix, B: Matrix) -> Matrix:
    """Return A - B."""
    return A[0] - B[0], A[1] - B[1], A[2] - B[2], A[3] - B[3], A[4] - B[4], A[5] - B[5], A[6] - B[6], A[7] - B[7], A[8] - B[8]


@njit(cache=True, forceinline=True)
def scaled_matrix(factor: float, A: Matrix) -> Matrix:
    """Return factor A."""
    return (
        factor * A[0], factor * A[1], factor * A[2], factor * A[3], factor * A[4], factor * A[5], factor * A[6], factor * A[7],
        factor * A[8],
    )  # fmt: skip


@njit(cache=True, forceinline=True)
def transposed(A: Matrix) -> Matrix:
    """Return A^T."""
    return A[0], A[3], A[6], A[1], A[4], A[7], A[2], A[5], A[8]


@njit(cache=True, forceinline=True)
def rows(a: Vector, b: Vector, c: Vector) -> Matrix:
    """Matrix with the rows a, b, c."""
    return a[0], a[1], a[2], b[0], b[1], b[2], c[0], c[1], c[2]


@njit(cache=True, forceinline=True)
def times_vector(A: Matrix, x: Vector) -> Vector:
    """Return A x."""
    return (
        A[0] * x[0] + A[1] * x[1] + A[2] * x[2],
        A[3] * x[0] + A[4] * x[1] + A[5] * x[2],
        A[6] * x[0] + A[7] * x[1] + A[8] * x[2],
    )


@njit(cache=True, forceinline=True)
def transposed_times_vector(A: Matrix, x: Vector) -> Vector:
    """Return A^T x."""
    return times_vector(transposed(A), x)


@njit(cache=True, forceinline=True)
def times(A: Matrix, B: Matrix) -> Matrix:
    """Return A B."""
    return (
        A[0] * B[0] + A[1] * B[3] + A[2] * B[6], A[0] * B[1] + A[1] * B[4] + A[2] * B[7], A[0] * B[2] + A[1] * B[5] + A[2] * B[8],
        A[3] * B[0] + A[4] * B[3] + A[5] * B[6], A[3] * B[1] + A[4] * B[4] + A[5] * B[7], A[3] * B[2] + A[4] * B[5] + A[5] * B[8],
        A[6] * B[0] + A[7] * B[3] + A[8] * B[6], A[6] * B[1] + A[7] * B[4] + A[8] * B[7], A[6] * B[2] + A[7] * B[5] + A[8] * B[8],
    )  # fmt: skip


@njit(cache=True, forceinline=True)
def transposed_times(A: Matrix, B: Matrix) -> Matrix:
    """Return A^T B."""
    return times(transposed(A), B)


@njit(cache=True, forceinline=True)
def times_transposed(A: Matrix, B: Matrix) -> Matrix:
    """Return A B^T."""
    return times(A, transposed(B))


@njit(cache=True, forceinline=True)
def turned_diagonal(R: Matrix, k: Vector) -> Matrix:
    """Return R diag(k) R^T, symmetric to the last bit."""
    a01 = k[0] * R[0] * R[3] + k[1] * R[1] * R[4] + k[2] * R[2] * R[5]
    a02 = k[0] * R[0] * R[6] + k[1] * R[1] * R[7] + k[2] * R[2] * R[8]
    a12 = k[0] * R[3] * R[6] + k[1] * R[4] * R[7] + k[2] * R[5] * R[8]
    return (
        k[0] * R[0] * R[0] + k[1] * R[1] * R[1] + k[2] * R[2] * R[2], a01, a02,
        a01, k[0] * R[3] * R[3] + k[1] * R[4] * R[4] + k[2] * R[5] * R[5], a12,
        a02, a12, k[0] * R[6] * R[6] + k[1] * R[7] * R[7] + k[2] * R[8] * R[8],
    )  # fmt: skip


@njit(cache=True, forceinline=True)
def scaled_columns(A: Matrix, k: Vector) -> Matrix:
    """Return A diag(k)."""
    return A[0] * k[0], A[1] * k[1], A[2] * k[2], A[3] * k[0], A[4] * k[1], A[5] * k[2], A[6] * k[0], A[7] * k[1], A[8] * k[2]


@njit(cache=True, forceinline=True)
def outer(a: Vector, b: Vector) -> Matrix:
    """Return a b^T."""
    return (
        a[0] * b[0], a[0] * b[1], a[0] * b[2], a[1] * b[0], a[1] * b[1], a[1] * b[2], a[2] * b[0], a[2] * b[1], a[2] * b[2],
    )  # fmt: skip


@njit(cache=True, forceinline=True)
def add_to_diagonal(A: Matrix, value: float) -> Matrix:
    """Return A + value I; the other entries keep their bits, the sign of a zero too."""
    return A[0] + value, A[1], A[2], A[3], A[4] + value, A[5], A[6], A[7], A[8] + value


@njit(cache=True, forceinline=True)
def cross_matrix(a: Vector) -> Matrix:
    """Matrix [a] of the cross product, [a] x = a x x; no zero in it is negative."""
    return 0.0, 0.0 - a[2], a[1] + 0.0, a[2] + 0.0, 0.0, 0.0 - a[0], 0.0 - a[1], a[0] + 0.0, 0.0


@njit(cache=True, forceinline=True)
def cross_times(a: Vector, B: Matrix) -> Matrix:
    """Return [a] B: a x each column of B."""
    return (
        a[1] * B[6] - a[2] * B[3], a[1] * B[7] - a[2] * B[4], a[1] * B[8] - a[2] * B[5],
        a[2] * B[0] - a[0] * B[6], a[2] * B[1] - a[0] * B[7], a[2] * B[2] - a[0] * B[8],
        a[0] * B[3] - a[1] * B[0], a[0] * B[4] - a[1] * B[1], a[0] * B[5] - a[1] * B[2],
    )  # fmt: skip


@njit(cache=True, forceinline=True)
def determinant(A: Matrix) -> float:
    """Return det A."""
    return (
        A[0] * (A[4] * A[8] - A[5] * A[7]) - A[1] * (A[3] * A[8] - A[5] * A[6]) + A[2] * (A[3] * A[7] - A[4] * A[6])
    )  # fmt: skip


@njit(cache=True, forceinline=True)
def squared_norm(A: Matrix) -> float:
    """Sum of the squares of the entries, |A|^2."""
    a, b, c, d, e, f, g, h, i = A
    return a * a + b * b + c * c + d * d + e * e + f * f + g * g + h * h + i * i


@njit(cache=True, forceinline=True)
def axial(A: Matrix) -> Vector:
    """Vector of the skew part: a with A - A^T = [a]."""
    return A[7] - A[5], A[2] - A[6], A[3] - A[1]


@njit(cache=True, forceinline=True)
def cofactors(H: Symmetric) -> Symmetric:
    """Cofactors of a symmetric matrix: its determinant times its inverse."""
    h00, h11, h22, h01, h02, h12 = H
    return (
        h11 * h22 - h12 * h12, h00 * h22 - h02 * h02, h00 * h11 - h01 * h01,
        h02 * h12 - h01 * h22, h01 * h12 - h02 * h11, h01 * h02 - h00 * h12,
    )  # fmt: skip


@njit(cache=True, forceinline=True)
def symmetric_times(C: Symmetric, x: Vector) -> Vector:
    """Return C x for a symmetric C."""
    return (
        C[0] * x[0] + C[3] * x[1] + C[4] * x[2],
        C[3] * x[0] + C[1] * x[1] + C[5] * x[2],
        C[4] * x[0] + C[5] * x[1] + C[2] * x[2],
    )


@njit(cache=True, forceinline=True)
def gram(F: Matrix) -> Symmetric:
    """Return F^T F."""
    return (
        F[0] * F[0] + F[3] * F[3] + F[6] * F[6], F[1] * F[1] + F[4] * F[4] + F[7] * F[7], F[2] * F[2] + F[5] * F[5] + F[8] * F[8],
        F[0] * F[1] + F[3] * F[4] + F[6] * F[7], F[0] * F[2] + F[3] * F[5] + F[6] * F[8], F[1] * F[2] + F[4] * F[5] + F[7] * F[8],
    )  # fmt: skip


@njit(cache=True, forceinline=True)
def as_matrix(C: Symmetric) -> Matrix:
    """All nine entries of a symmetric matrix."""
    return C[0], C[3], C[4], C[3], C[1], C[5], C[4], C[5], C[2]


@njit(cache=True, forceinline=True)
def symmetric_part(A: Matrix) -> Symmetric:
    """Return (A + A^T)/2."""
    return A[0], A[4], A[8], 0.5 * (A[1] + A[3]), 0.5 * (A[2] + A[6]), 0.5 * (A[5] + A[7])


@njit(cache=True, forceinline=True)
def symmetric_plus(A: Symmetric, B: Symmetric) -> Symmetric:
    """Return A + B."""
    return A[0] + B[0], A[1] + B[1], A[2] + B[2], A[3] + B[3], A[4] + B[4], A[5] + B[5]


@njit(cache=True, forceinline=True)
def symmetric_minus(A: Symmetric, B: Symmetric) -> Symmetric:
    """Return A - B."""
    return A[0] - B[0], A[1] - B[1], A[2] - B[2], A[3] - B[3], A[4] - B[4], A[5] - B[5]


@njit(cache=True, forceinline=True)
def symmetric_scaled(factor: float, A: Symmetric) -> Symmetric:
    """Return factor A."""
    return factor * A[0], factor * A[1], factor * A[2], factor * A[3], factor * A[4], factor * A[5]


@njit(cache=True, forceinline=True)
def add_to_symmetric(A: Symmetric, value: float) -> Symmetric:
    """Return A + value I."""
    return A[0] + value, A[1] + value, A[2] + value, A[3], A[4], A[5]


@njit(cache=True, forceinline=True)
def symmetric_product(A: Symmetric, B: Symmetric) -> float:
    """Return A : B."""
    return A[0] * B[0] + A[1] * B[1] + A[2] * B[2] + 2.0 * (A[3] * B[3] + A[4] * B[4] + A[5] * B[5])


@njit(cache=True, forceinline=True)
def symmetric_square(A: Symmetric) -> float:
    """Return A : A."""
    return symmetric_product(A, A)


@njit(cache=True, forceinline=True)
def commuting_product(A: Symmetric, B: Symmetric) -> Symmetric:
    """Return A B of matrices that commute, so that it is symmetric."""
    return (
        A[0] * B[0] + A[3] * B[3] + A[4] * B[4], A[3] * B[3] + A[1] * B[1] + A[5] * B[5], A[4] * B[4] + A[5] * B[5] + A[2] * B[2],
        A[0] * B[3] + A[3] * B[1] + A[4] * B[5], A[0] * B[4] + A[3] * B[5] + A[4] * B[2], A[3] * B[4] + A[1] * B[5] + A[5] * B[2],
    )  # fmt: skip


@njit(cache=True, forceinline=True)
def rotation_entries(q0: float, q1: float, q2: float, q3: float) -> Matrix:
    """Rotation matrix of a unit quaternion, row by row."""
    return (
        1.0 - 2.0 * (q2 * q2 + q3 * q3),
        2.0 * (q1 * q2 - q0 * q3),
        2.0 * (q1 * q3 + q0 * q2),
        2.0 * (q1 * q2 + q0 * q3),
        1.0 - 2.0 * (q1 * q1 + q3 * q3),
        2.0 * (q2 * q3 - q0 * q1),
        2.0 * (q1 * q3 - q0 * q2),
        2.0 * (q2 * q3 + q0 * q1),
        1.0 - 2.0 * (q1 * q1 + q2 * q2),
    )


@njit(cache=True, forceinline=True)
def rotation_of(q: Quaternion) -> Matrix:
    """Rotation matrix of a unit quaternion."""
    return rotation_entries(q[0], q[1], q[2], q[3])


@njit(cache=True, forceinline=True)
def rotation_at(poses: np.ndarray, p: int) -> Matrix:
    """Rotation matrix of pose p of poses (n, 7), each a place and a unit quaternion."""
    return rotation_entries(poses[p, 3], poses[p, 4], poses[p, 5], poses[p, 6])


@njit(cache=True, forceinline=True)
def relative_rotation(poses: np.ndarray, i: int, j: int) -> tuple[float, Vector, Quaternion]:
    """Quaternion (c, s), c >= 0, of the shorter turn from pose i to pose j in the axes of both, and the one half-way."""
    a0, a1, a2, a3 = poses[i, 3], poses[i, 4], poses[i, 5], poses[i, 6]
    b0, b1, b2, b3 = poses[j, 3], poses[j, 4], poses[j, 5], poses[j, 6]
    w = a0 * b0 + a1 * b1 + a2 * b2 + a3 * b3
    sign = 1.0 if w >= 0.0 else -1.0
    s = (  # of conjugate(a) b
        sign * (a0 * b1 - a1 * b0 - a2 * b3 + a3 * b2),
        sign * (a0 * b2 + a1 * b3 - a2 * b0 - a3 * b1),
        sign * (a0 * b3 - a1 * b2 + a2 * b1 - a3 * b0),
    )
    m0, m1, m2, m3 = a0 + sign * b0, a1 + sign * b1, a2 + sign * b2, a3 + sign * b3
    scale = 1.0 / math.sqrt(m0 * m0 + m1 * m1 + m2 * m2 + m3 * m3)
    return sign * w, s, (scale * m0, scale * m1, scale * m2, scale * m3)


@njit(cache=True, forceinline=True)
def turn_by_sine(c: float, s: Vector) -> float:
    """Factor h of the logarithm h s of a unit quaternion (c, s), c >= 0: 2 asin(|s|)/|s|."""
    sine = math.sqrt(dot(s, s))
    return 2.0 * math.atan2(sine, c) / sine if sine > 1e-12 else 2.0


@njit(cache=True, forceinline=True)
def middle_rotation(poses: np.ndarray, i: int, j: int) -> tuple[Quaternion, Vector]:
    """Quaternion half-way from pose i to pose j by the shorter turn, and the vector of that turn in the axes of both, rad."""
    c, s, middle = relative_rotation(poses, i, j)
    return middle, scaled(turn_by_sine(c, s), s)


@njit(cache=True, forceinline=True, error_model="numpy")
def retracted(q: Quaternion, w: Vector) -> Quaternion:
    """Turn q by a small rotation vector in its own axes: q (1, w/2), normalised.

    It agrees with the exponential map to second order, as Newton's method needs.
    """
    q0, q1, q2, q3 = q
    p1 = 0.5 * w[0]
    p2 = 0.5 * w[1]
    p3 = 0.5 * w[2]
    n0 = q0 - q1 * p1 - q2 * p2 - q3 * p3
    n1 = q0 * p1 + q1 + q2 * p3 - q3 * p2
    n2 = q0 * p2 - q1 * p3 + q2 + q3 * p1
    n3 = q0 * p3 + q1 * p2 - q2 * p1 + q3
    scale = 1.0 / math.sqrt(n0 * n0 + n1 * n1 + n2 * n2 + n3 * n3)
    return n0 * scale, n1 * scale, n2 * scale, n3 * scale


@njit(cache=True, inner=True)
def lowest_eigenvalue(H: Symmetric) -> float:
    """Smallest eigenvalue of a symmetric matrix, by the trigonometric solution of its cubic."""
    h00, h11, h22, h01, h02, h12 = H
    mean = (h00 + h11 + h22) / 3.0
    p2 = (h00 - mean) ** 2 + (h11 - mean) ** 2 + (h22 - mean) ** 2 + 2.0 * (h01 * h01 + h02 * h02 + h12 * h12)
    p = math.sqrt(p2 / 6.0)
    if not p > 0.0:
        return mean
    K = ((h00 - mean) / p, (h11 - mean) / p, (h22 - mean) / p, h01 / p, h02 / p, h12 / p)
    C = cofactors(K)
    half_det = 0.5 * (K[0] * C[0] + K[3] * C[3] + K[4] * C[4])
    return mean + 2.0 * p * math.cos(math.acos(min(1.0, max(-1.0, half_det))) / 3.0 + 2.0 * math.pi / 3.0)


@njit(cache=True, inner=True)
def polar_quaternion(F: Matrix, q: Quaternion) -> tuple[Quaternion, int]:
    """Rotation closest to F (maximises tr(R^T F) over SO(3)), from a warm start, as a unit quaternion, with the iterations used.

    Newton on the rotation group: with B = R^T F, gradient g = axial part of B and Hessian H = tr(B) I - sym(B); where H
    is not positive definite the step follows H shifted to be so, and at a saddle (g = 0, H indefinite) the axis of the largest
    curvature. For inverted elements this is the rotation of the sign-corrected SVD.
    """
    norm = math.sqrt(squared_norm(F))
    if norm == 0.0:
        return q, 0
    small = 1e-12 * norm
    for iteration in range(100):
        B = transposed_times(rotation_of(q), F)
        g = axial(B)
        trace = B[0] + B[4] + B[8]
        H = (trace - B[0], trace - B[4], trace - B[8], -0.5 * (B[1] + B[3]), -0.5 * (B[2] + B[6]), -0.5 * (B[5] + B[7]))
        C = cofactors(H)
        det = H[0] * C[0] + H[3] * C[3] + H[4] * C[4]
        definite = H[0] > small and C[2] > small * norm and det > small * norm * norm
        gradient = math.sqrt(dot(g, g))
        if definite:
            if gradient <= 1e-15 * norm:
                return q, iteration
        else:
            if gradient <= 1e-9 * norm:
                # maximum with a flat direction, or a saddle: leave along the axis with the most negative diagonal of H
                lowest = min(H[0], min(H[1], H[2]))
                if lowest > -1e-9 * norm and H[3] == 0.0 and H[4] == 0.0 and H[5] == 0.0:
                    return q, iteration
                g = (
                    norm if H[0] == lowest else 0.1 * norm,
                    norm if H[1] == lowest else 0.2 * norm,
                    norm if H[2] == lowest else 0.3 * norm,
                )
            # a shift of 2 |F| would creep away from saddles
            shift = 1.5 * max(-lowest_eigenvalue(H), 0.0) + 1e-3 * norm
            H = (H[0] + shift, H[1] + shift, H[2] + shift, H[3], H[4], H[5])
            C = cofactors(H)
            det = H[0] * C[0] + H[3] * C[3] + H[4] * C[4]
        w0, w1, w2 = symmetric_times(C, g)
        w = (w0 / det, w1 / det, w2 / det)
        angle = math.sqrt(dot(w, w))
        if angle > 1.0:  # keep the step inside the region where the model holds
            w = (w[0] / angle, w[1] / angle, w[2] / angle)
            angle = 1.0
        q = retracted(q, w)
        if definite and angle < 1e-9:  # quadratic: the next step would be below rounding
            return q, iteration + 1
    return q, 100

"""Kernels of Prony terms: a generalised Maxwell solid beside any elastic law, at integration points.

U = sqrt(C), C = F^T F, is the stretch of a point in the frame of the rest shape; of an inverted point its smallest eigenvalue is
negative, as that of R^T F. Each branch has a spring of strain x_i, in this frame, and a dashpot:

    x_i' = dev(U)' - x_i / tau_i,    energy g_i mu x_i : x_i,    T = sum_i 2 g_i mu x_i,

T the stress that does work on U. U knows nothing of rotations, so all of this is objective. The second Piola-Kirchhoff stress
S that does the same work, S : dC/2 = T : dU, solves (U S + S U)/2 = T, since dC = U dU + dU U: in the eigenvectors of U,
S_ij = 2 T_ij/(s_i + s_j). The force on node a is sum_q w_q F S grad_a.

For a step from U0 to U1 the same holds exactly with the mean (U0 + U1)/2 in place of U, since C1 - C0 is its product with
U1 - U0, both ways round: with the mean of T over the step and F in the middle, the force does the work that the springs store
and the dashpots take. This is the stress of the energy-momentum step.

In a step U changes at a constant rate, for which x_i is known exactly (:mod:`femsim.model.bodies.viscous`), so T depends on the
step by T = 2 mu (Y + gain dev(U1 - U0)) with Y the sum of what is left of the x_i.
"""

from __future__ import annotations

import math

import numpy as np

from contact.compiled import njit
from femsim.model.bodies.hyperelastic_kernels import deformation_gradient, eigen_symmetric, shape_gradient
from femsim.model.bodies.rotation_kernels import (
    Matrix,
    Vector,
    determinant,
    minus,
    plus,
    scaled_columns,
    scaled_matrix,
    symmetric_part,
    times,
    times_transposed,
    times_vector,
    transposed_times,
)

# sums of two stretches are at least this, and stretches at least this far from zero
_SMALL_SUM, _SMALL_STRETCH = 0.05, 1e-3


@njit(cache=True, inner=True)
def _eigen(A: Matrix, work: np.ndarray) -> tuple[Vector, Matrix]:
    """Eigenvalues of a symmetric A, and its eigenvectors as columns; ``work`` (2, 3, 3) is scratch."""
    for i in range(3):
        for j in range(3):
            work[0, i, j] = A[3 * i + j]
    eigen_symmetric(work[0], work[1])
    V = (
        work[1, 0, 0], work[1, 0, 1], work[1, 0, 2], work[1, 1, 0], work[1, 1, 1], work[1, 1, 2],
        work[1, 2, 0], work[1, 2, 1], work[1, 2, 2],
    )  # fmt: skip
    return (work[0, 0, 0], work[0, 1, 1], work[0, 2, 2]), V


@njit(cache=True, inner=True)
def stretch_tensor(F: Matrix, work: np.ndarray) -> tuple[Matrix, Vector, Matrix]:
    """U of F = R U with a rotation R, its eigenvalues, and its eigenvectors as columns; ``work`` (2, 3, 3) is scratch."""
    squares, V = _eigen(transposed_times(F, F), work)
    s0, s1, s2 = math.sqrt(max(squares[0], 0.0)), math.sqrt(max(squares[1], 0.0)), math.sqrt(max(squares[2], 0.0))
    if determinant(F) < 0.0:
        if s0 <= s1 and s0 <= s2:
            s0 = -s0
        elif s1 <= s2:
            s1 = -s1
        else:
            s2 = -s2
    return times_transposed(scaled_columns(V, (s0, s1, s2)), V), (s0, s1, s2), V


@njit(cache=True, forceinline=True)
def _symmetric(a: np.ndarray, e: int, p: int) -> Matrix:
    """Read a[e, p], a symmetric matrix as xx, yy, zz, xy, yz, zx."""
    xx, yy, zz, xy, yz, zx = a[e, p, 0], a[e, p, 1], a[e, p, 2], a[e, p, 3], a[e, p, 4], a[e, p, 5]
    return xx, xy, zx, xy, yy, yz, zx, yz, zz


@njit(cache=True, forceinline=True)
def _put_symmetric(a: np.ndarray, e: int, p: int, A: Matrix) -> None:
    """Fill a[e, p] with a symmetric matrix."""
    a[e, p, 0], a[e, p, 1], a[e, p, 2], a[e, p, 3], a[e, p, 4], a[e, p, 5] = A[0], A[4], A[8], A[1], A[5], A[2]


@njit(cache=True)
def stretch_tensors(x: np.ndarray, elements: np.ndarray, gradient: np.ndarray, out: np.ndarray) -> None:
    """Fill U of all points at positions x (n, 3) m: out (m, p, 6) xx, yy, zz, xy, yz, zx."""
    work = np.empty((2, 3, 3))
    for e in range(out.shape[0]):
        for p in range(out.shape[1]):
            _put_symmetric(out, e, p, stretch_tensor(deformation_gradient(x, elements, gradient, e, p), work)[0])


@njit(cache=True, forceinline=True)
def _away(s: float) -> float:
    """Stretch with its sign, at least _SMALL_STRETCH from zero."""
    return max(s, _SMALL_STRETCH) if s >= 0.0 else min(s, -_SMALL_STRETCH)


@njit(cache=True, inner=True)
def conjugate_stress(T: Matrix, s: Vector, V: Matrix) -> Matrix:
    """S of (U S + S U)/2 = T, U = V diag(s) V^T; only where a point is almost flat, or inverted, not to the last bit."""
    B = times(transposed_times(V, T), V)
    xy = (B[1] + B[3]) / max(s[0] + s[1], _SMALL_SUM)
    yz = (B[5] + B[7]) / max(s[1] + s[2], _SMALL_SUM)
    zx = (B[2] + B[6]) / max(s[2] + s[0], _SMALL_SUM)
    inner = (B[0] / _away(s[0]), xy, zx, xy, B[4] / _away(s[1]), yz, zx, yz, B[8] / _away(s[2]))
    return times_transposed(times(V, inner), V)


@njit(cache=True, forceinline=True)
def _deviator(A: Matrix) -> Matrix:
    """Take a third of its trace off the diagonal."""
    third = (A[0] + A[4] + A[8]) / 3.0
    return A[0] - third, A[1], A[2], A[3], A[4] - third, A[5], A[6], A[7], A[8] - third


@njit(cache=True)
def branch_forces(
    middle: np.ndarray,
    x: np.ndarray,
    elements: np.ndarray,
    gradient: np.ndarray,
    weight: np.ndarray,
    lame_mu: np.ndarray,
    before: np.ndarray,
    left: np.ndarray,
    gain: np.ndarray,
    mean: bool,
    force: np.ndarray,
    stress: np.ndarray,
) -> None:
    """Add the forces of the branches against deformation to ``force`` (n, 3), N, and fill their stress.

    The 12 arguments are positions, mesh, material, what is left of the start of the step, and the results.

    Parameters
    ----------
    middle : ndarray, (n, 3), m
        Positions whose F turns the stress.
    x : ndarray, (n, 3), m
        Positions up to which the strain has changed since the start of the step.
    elements, gradient, weight, lame_mu
        As in :func:`hyperelastic_kernels.element_stresses`.
    before, left : ndarray, (m, p, 6)
        U at the start of the step, and Y: xx, yy, zz, xy, yz, zx.
    gain : ndarray, (m,)
        Factor of dev(U - U0) in the stress of each element.
    mean : bool
        Whether S goes with (U0 + U)/2, for a whole step, not with U.
    force : ndarray, (n, 3), N
        Added to.
    stress : ndarray, (m, p, 6), Pa
        Becomes S: 00, 11, 22, 01, 02, 12.
    """
    work = np.empty((2, 3, 3))
    for e in range(elements.shape[0]):
        for p in range(weight.shape[1]):
            F = deformation_gradient(x, elements, gradient, e, p)
            U, s, V = stretch_tensor(F, work)
            start = _symmetric(before, e, p)
            T = plus(_symmetric(left, e, p), scaled_matrix(gain[e], _deviator(minus(U, start))))
            T = scaled_matrix(2.0 * lame_mu[e], T)
            if mean:
                s, V = _eigen(scaled_matrix(0.5, plus(U, start)), work)
                F = deformation_gradient(middle, elements, gradient, e, p)
            S = conjugate_stress(T, s, V)
            own = symmetric_part(S)
            for c in range(6):
                stress[e, p, c] = own[c]
            P = scaled_matrix(weight[e, p], times(F, S))
            for a in range(elements.shape[1]):
                push = times_vector(P, shape_gradient(gradient, e, p, a))
                for c in range(3):
                    force[elements[e, a], c] += push[c]


@njit(cache=True)
def branch_cauchy(
    x: np.ndarray, elements: np.ndarray, gradient: np.ndarray, lame_mu: np.ndarray, left: np.ndarray, stress: np.ndarray
) -> None:
    """Add the true stress F S F^T / |det F| of the branches at positions x to ``stress`` (m, p, 6), Pa; ``left`` is Y there."""
    work = np.empty((2, 3, 3))
    for e in range(stress.shape[0]):
        for p in range(stress.shape[1]):
            F = deformation_gradient(x, elements, gradient, e, p)
            _, s, V = stretch_tensor(F, work)
            S = conjugate_stress(scaled_matrix(2.0 * lame_mu[e], _symmetric(left, e, p)), s, V)
            scale = 1.0 / max(abs(determinant(F)), 1e-3)
            T = scaled_matrix(scale, times_transposed(times(F, S), F))
            stress[e, p, 0] += T[0]
            stress[e, p, 1] += T[4]
            stress[e, p, 2] += T[8]
            stress[e, p, 3] += T[1]
            stress[e, p, 4] += T[5]
            stress[e, p, 5] += T[6]

"""Kernels of co-rotational linear tetrahedra: rotation, forces, stiffness blocks; arrays in, arrays filled.

Elements are worked off in chunks of ``CHUNK``. Constants and state of a chunk are *packed*: (chunks, rows, CHUNK), element e in
chunk e // CHUNK and lane e % CHUNK, lanes past the last element zero; so a loop over the lanes has no branch and no
gather, and the compiler turns it into vector instructions. These loops share one flat scratch array with rows at fixed places,
because only then can it see that they do not overlap. They divide as IEEE 754 says (``error_model="numpy"``): Python's
check for zero is a branch. Sums over elements are taken one after another, in their order.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

#: Elements that are worked off together.
CHUNK = 32
# rows of the scratch array: edges (9) then F (9, in the same place), quaternion, status of the rotation, det F, strain, energy,
# forces on corners 1 to 3, scaled rotated gradients of corners 1 to 3
_F, _Q, _STATUS, _DET, _STRAIN, _ENERGY, _FORCE, _ROTATED = (row * CHUNK for row in (0, 9, 13, 14, 15, 21, 22, 31))
#: Size of the scratch array.
SCRATCH = 40 * CHUNK
# values of the status row
_REFUSED, _STEPPED, _CONVERGED = 0.0, 1.0, 2.0
#: Newton steps that are tried on whole chunks before single elements get the safeguarded search.
_CHUNK_STEPS = 3


@njit(cache=True)
def rotation_entries(
    q0: float, q1: float, q2: float, q3: float
) -> tuple[float, float, float, float, float, float, float, float, float]:
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


@njit(cache=True)
def polar_quaternion(
    f00: float,
    f01: float,
    f02: float,
    f10: float,
    f11: float,
    f12: float,
    f20: float,
    f21: float,
    f22: float,
    q0: float,
    q1: float,
    q2: float,
    q3: float,
) -> tuple[float, float, float, float, int]:
    """Rotation closest to F (maximises tr(R^T F) over SO(3)), from a warm start, as a unit quaternion, with the iterations used.

    Newton on the rotation group: with B = R^T F, gradient g = axial part of B and Hessian H = tr(B) I - sym(B); where H
    is not positive definite the step follows H shifted to be so, and at a saddle (g = 0, H indefinite) the axis of the largest
    curvature. For inverted elements this is the rotation of the sign-corrected SVD.
    """
    norm_f = math.sqrt(f00 * f00 + f01 * f01 + f02 * f02 + f10 * f10 + f11 * f11 + f12 * f12 + f20 * f20 + f21 * f21 + f22 * f22)
    if norm_f == 0.0:
        return q0, q1, q2, q3, 0
    for iteration in range(100):
        r00, r01, r02, r10, r11, r12, r20, r21, r22 = rotation_entries(q0, q1, q2, q3)
        b00 = r00 * f00 + r10 * f10 + r20 * f20
        b01 = r00 * f01 + r10 * f11 + r20 * f21
        b02 = r00 * f02 + r10 * f12 + r20 * f22
        b10 = r01 * f00 + r11 * f10 + r21 * f20
        b11 = r01 * f01 + r11 * f11 + r21 * f21
        b12 = r01 * f02 + r11 * f12 + r21 * f22
        b20 = r02 * f00 + r12 * f10 + r22 * f20
        b21 = r02 * f01 + r12 * f11 + r22 * f21
        b22 = r02 * f02 + r12 * f12 + r22 * f22
        g0 = b21 - b12
        g1 = b02 - b20
        g2 = b10 - b01
        trace = b00 + b11 + b22
        h00 = trace - b00
        h11 = trace - b11
        h22 = trace - b22
        h01 = -0.5 * (b01 + b10)
        h02 = -0.5 * (b02 + b20)
        h12 = -0.5 * (b12 + b21)
        m2 = h00 * h11 - h01 * h01
        det = h00 * (h11 * h22 - h12 * h12) - h01 * (h01 * h22 - h12 * h02) + h02 * (h01 * h12 - h11 * h02)
        small = 1e-12 * norm_f
        definite = h00 > small and m2 > small * norm_f and det > small * norm_f * norm_f
        gradient = math.sqrt(g0 * g0 + g1 * g1 + g2 * g2)
        if definite:
            if gradient <= 1e-15 * norm_f:
                return q0, q1, q2, q3, iteration
        else:
            if gradient <= 1e-9 * norm_f:
                # maximum with a flat direction, or a saddle: leave along the axis with the most negative diagonal of H
                lowest = min(h00, min(h11, h22))
                if lowest > -1e-9 * norm_f and h01 == 0.0 and h02 == 0.0 and h12 == 0.0:
                    return q0, q1, q2, q3, iteration
                g0 = norm_f if h00 == lowest else 0.1 * norm_f
                g1 = norm_f if h11 == lowest else 0.2 * norm_f
                g2 = norm_f if h22 == lowest else 0.3 * norm_f
            # smallest eigenvalue of H in closed form; a shift of 2 |F| would creep away from saddles
            mean = (h00 + h11 + h22) / 3.0
            p2 = (h00 - mean) ** 2 + (h11 - mean) ** 2 + (h22 - mean) ** 2 + 2.0 * (h01 * h01 + h02 * h02 + h12 * h12)
            p = math.sqrt(p2 / 6.0)
            lowest = mean
            if p > 0.0:
                k00 = (h00 - mean) / p
                k11 = (h11 - mean) / p
                k22 = (h22 - mean) / p
                k01 = h01 / p
                k02 = h02 / p
                k12 = h12 / p
                half_det = 0.5 * (k00 * (k11 * k22 - k12 * k12) - k01 * (k01 * k22 - k12 * k02) + k02 * (k01 * k12 - k11 * k02))
                lowest = mean + 2.0 * p * math.cos(math.acos(min(1.0, max(-1.0, half_det))) / 3.0 + 2.0 * math.pi / 3.0)
            shift = 1.5 * max(-lowest, 0.0) + 1e-3 * norm_f
            h00 += shift
            h11 += shift
            h22 += shift
            m2 = h00 * h11 - h01 * h01
            det = h00 * (h11 * h22 - h12 * h12) - h01 * (h01 * h22 - h12 * h02) + h02 * (h01 * h12 - h11 * h02)
        w0 = ((h11 * h22 - h12 * h12) * g0 + (h02 * h12 - h01 * h22) * g1 + (h01 * h12 - h02 * h11) * g2) / det
        w1 = ((h02 * h12 - h01 * h22) * g0 + (h00 * h22 - h02 * h02) * g1 + (h01 * h02 - h00 * h12) * g2) / det
        w2 = ((h01 * h12 - h02 * h11) * g0 + (h01 * h02 - h00 * h12) * g1 + m2 * g2) / det
        angle = math.sqrt(w0 * w0 + w1 * w1 + w2 * w2)
        if angle > 1.0:  # keep the step inside the region where the model holds
            w0 /= angle
            w1 /= angle
            w2 /= angle
            angle = 1.0
        # retraction q (1, w/2), normalised: agrees with the exponential map to second order, as Newton needs
        p1 = 0.5 * w0
        p2 = 0.5 * w1
        p3 = 0.5 * w2
        n0 = q0 - q1 * p1 - q2 * p2 - q3 * p3
        n1 = q0 * p1 + q1 + q2 * p3 - q3 * p2
        n2 = q0 * p2 - q1 * p3 + q2 + q3 * p1
        n3 = q0 * p3 + q1 * p2 - q2 * p1 + q3
        scale = 1.0 / math.sqrt(n0 * n0 + n1 * n1 + n2 * n2 + n3 * n3)
        q0 = n0 * scale
        q1 = n1 * scale
        q2 = n2 * scale
        q3 = n3 * scale
        if definite and angle < 1e-9:  # quadratic: the next step would be below rounding
            return q0, q1, q2, q3, iteration + 1
    return q0, q1, q2, q3, 100


@njit(cache=True, error_model="numpy")
def deformation_gradients(w: np.ndarray, gradient: np.ndarray, start: int) -> None:
    """Replace the edges x_a - x_0 of a chunk by F = sum_a (x_a - x_0) grad_a^T; ``gradient`` flat, the chunk's at ``start``."""
    for k in range(CHUNK):
        g10 = gradient[start + k]
        g11 = gradient[start + CHUNK + k]
        g12 = gradient[start + 2 * CHUNK + k]
        g20 = gradient[start + 3 * CHUNK + k]
        g21 = gradient[start + 4 * CHUNK + k]
        g22 = gradient[start + 5 * CHUNK + k]
        g30 = gradient[start + 6 * CHUNK + k]
        g31 = gradient[start + 7 * CHUNK + k]
        g32 = gradient[start + 8 * CHUNK + k]
        x10 = w[_F + k]
        x11 = w[_F + CHUNK + k]
        x12 = w[_F + 2 * CHUNK + k]
        x20 = w[_F + 3 * CHUNK + k]
        x21 = w[_F + 4 * CHUNK + k]
        x22 = w[_F + 5 * CHUNK + k]
        x30 = w[_F + 6 * CHUNK + k]
        x31 = w[_F + 7 * CHUNK + k]
        x32 = w[_F + 8 * CHUNK + k]
        w[_F + k] = x10 * g10 + x20 * g20 + x30 * g30
        w[_F + CHUNK + k] = x10 * g11 + x20 * g21 + x30 * g31
        w[_F + 2 * CHUNK + k] = x10 * g12 + x20 * g22 + x30 * g32
        w[_F + 3 * CHUNK + k] = x11 * g10 + x21 * g20 + x31 * g30
        w[_F + 4 * CHUNK + k] = x11 * g11 + x21 * g21 + x31 * g31
        w[_F + 5 * CHUNK + k] = x11 * g12 + x21 * g22 + x31 * g32
        w[_F + 6 * CHUNK + k] = x12 * g10 + x22 * g20 + x32 * g30
        w[_F + 7 * CHUNK + k] = x12 * g11 + x22 * g21 + x32 * g31
        w[_F + 8 * CHUNK + k] = x12 * g12 + x22 * g22 + x32 * g32


@njit(cache=True, error_model="numpy")
def rotation_steps(w: np.ndarray) -> None:
    """Newton step of :func:`polar_quaternion` for a chunk, only where its Hessian H is clearly definite and the step below 1 rad.

    The method is of third order: at the rotation the odd derivatives of tr(R^T F) vanish, and the retraction is odd in the step.
    The error it leaves is at most about angle^3 |F| / (smallest eigenvalue of H), and that quotient at most about |F|^3 / det H:
    converged when angle^3 |F|^3 <= 1e-17 det H. The status row says refused, stepped or converged.
    """
    for k in range(CHUNK):
        f00 = w[_F + k]
        f01 = w[_F + CHUNK + k]
        f02 = w[_F + 2 * CHUNK + k]
        f10 = w[_F + 3 * CHUNK + k]
        f11 = w[_F + 4 * CHUNK + k]
        f12 = w[_F + 5 * CHUNK + k]
        f20 = w[_F + 6 * CHUNK + k]
        f21 = w[_F + 7 * CHUNK + k]
        f22 = w[_F + 8 * CHUNK + k]
        q0 = w[_Q + k]
        q1 = w[_Q + CHUNK + k]
        q2 = w[_Q + 2 * CHUNK + k]
        q3 = w[_Q + 3 * CHUNK + k]
        r00, r01, r02, r10, r11, r12, r20, r21, r22 = rotation_entries(q0, q1, q2, q3)
        b00 = r00 * f00 + r10 * f10 + r20 * f20
        b01 = r00 * f01 + r10 * f11 + r20 * f21
        b02 = r00 * f02 + r10 * f12 + r20 * f22
        b10 = r01 * f00 + r11 * f10 + r21 * f20
        b11 = r01 * f01 + r11 * f11 + r21 * f21
        b12 = r01 * f02 + r11 * f12 + r21 * f22
        b20 = r02 * f00 + r12 * f10 + r22 * f20
        b21 = r02 * f01 + r12 * f11 + r22 * f21
        b22 = r02 * f02 + r12 * f12 + r22 * f22
        g0 = b21 - b12
        g1 = b02 - b20
        g2 = b10 - b01
        h00 = b11 + b22
        h11 = b00 + b22
        h22 = b00 + b11
        h01 = -0.5 * (b01 + b10)
        h02 = -0.5 * (b02 + b20)
        h12 = -0.5 * (b12 + b21)
        c00 = h11 * h22 - h12 * h12
        c01 = h02 * h12 - h01 * h22
        c02 = h01 * h12 - h02 * h11
        c11 = h00 * h22 - h02 * h02
        c12 = h01 * h02 - h00 * h12
        c22 = h00 * h11 - h01 * h01
        det = h00 * c00 + h01 * c01 + h02 * c02
        inverse = 1.0 / det
        w0 = (c00 * g0 + c01 * g1 + c02 * g2) * inverse
        w1 = (c01 * g0 + c11 * g1 + c12 * g2) * inverse
        w2 = (c02 * g0 + c12 * g1 + c22 * g2) * inverse
        angle2 = w0 * w0 + w1 * w1 + w2 * w2
        square = f00 * f00 + f01 * f01 + f02 * f02 + f10 * f10 + f11 * f11 + f12 * f12 + f20 * f20 + f21 * f21 + f22 * f22
        definite = (h00 > 0.0) & (c22 > 0.0) & (det > 0.0) & (det * det > 1e-20 * square * square * square)
        step = definite & (angle2 < 1.0)
        reach = angle2 * square
        converged = step & (reach * reach * reach <= 1e-34 * det * det)
        w[_STATUS + k] = _CONVERGED if converged else (_STEPPED if step else _REFUSED)
        # retraction q (1, w/2), normalised
        p1 = 0.5 * w0
        p2 = 0.5 * w1
        p3 = 0.5 * w2
        n0 = q0 - q1 * p1 - q2 * p2 - q3 * p3
        n1 = q0 * p1 + q1 + q2 * p3 - q3 * p2
        n2 = q0 * p2 - q1 * p3 + q2 + q3 * p1
        n3 = q0 * p3 + q1 * p2 - q2 * p1 + q3
        scale = 1.0 / math.sqrt(n0 * n0 + n1 * n1 + n2 * n2 + n3 * n3)
        w[_Q + k] = scale * n0 if step else q0
        w[_Q + CHUNK + k] = scale * n1 if step else q1
        w[_Q + 2 * CHUNK + k] = scale * n2 if step else q2
        w[_Q + 3 * CHUNK + k] = scale * n3 if step else q3


@njit(cache=True, error_model="numpy")
def chunk_forces(
    w: np.ndarray,
    gradient: np.ndarray,
    start: int,
    volume: np.ndarray,
    lame_lambda: np.ndarray,
    lame_mu: np.ndarray,
    first: int,
) -> None:
    """Fill det F, strain, energy, corner forces and rotated gradients of a chunk whose first element is ``first``."""
    for k in range(CHUNK):
        f00 = w[_F + k]
        f01 = w[_F + CHUNK + k]
        f02 = w[_F + 2 * CHUNK + k]
        f10 = w[_F + 3 * CHUNK + k]
        f11 = w[_F + 4 * CHUNK + k]
        f12 = w[_F + 5 * CHUNK + k]
        f20 = w[_F + 6 * CHUNK + k]
        f21 = w[_F + 7 * CHUNK + k]
        f22 = w[_F + 8 * CHUNK + k]
        q0 = w[_Q + k]
        q1 = w[_Q + CHUNK + k]
        q2 = w[_Q + 2 * CHUNK + k]
        q3 = w[_Q + 3 * CHUNK + k]
        r00, r01, r02, r10, r11, r12, r20, r21, r22 = rotation_entries(q0, q1, q2, q3)
        w[_DET + k] = f00 * (f11 * f22 - f12 * f21) - f01 * (f10 * f22 - f12 * f20) + f02 * (f10 * f21 - f11 * f20)
        e00 = r00 * f00 + r10 * f10 + r20 * f20 - 1.0
        e11 = r01 * f01 + r11 * f11 + r21 * f21 - 1.0
        e22 = r02 * f02 + r12 * f12 + r22 * f22 - 1.0
        e01 = 0.5 * (r00 * f01 + r10 * f11 + r20 * f21 + r01 * f00 + r11 * f10 + r21 * f20)
        e12 = 0.5 * (r01 * f02 + r11 * f12 + r21 * f22 + r02 * f01 + r12 * f11 + r22 * f21)
        e02 = 0.5 * (r00 * f02 + r10 * f12 + r20 * f22 + r02 * f00 + r12 * f10 + r22 * f20)
        w[_STRAIN + k] = e00
        w[_STRAIN + CHUNK + k] = e11
        w[_STRAIN + 2 * CHUNK + k] = e22
        w[_STRAIN + 3 * CHUNK + k] = e01
        w[_STRAIN + 4 * CHUNK + k] = e12
        w[_STRAIN + 5 * CHUNK + k] = e02
        v = volume[first + k]
        la = lame_lambda[first + k]
        mu = lame_mu[first + k]
        trace = e00 + e11 + e22
        squares = e00 * e00 + e11 * e11 + e22 * e22 + 2.0 * (e01 * e01 + e12 * e12 + e02 * e02)
        w[_ENERGY + k] = v * (mu * squares + 0.5 * la * trace * trace)
        pressure = v * la * trace
        two_mu = 2.0 * v * mu
        s00 = two_mu * e00 + pressure
        s11 = two_mu * e11 + pressure
        s22 = two_mu * e22 + pressure
        s01 = two_mu * e01
        s12 = two_mu * e12
        s02 = two_mu * e02
        p00 = r00 * s00 + r01 * s01 + r02 * s02  # V times the first Piola-Kirchhoff stress R S
        p01 = r00 * s01 + r01 * s11 + r02 * s12
        p02 = r00 * s02 + r01 * s12 + r02 * s22
        p10 = r10 * s00 + r11 * s01 + r12 * s02
        p11 = r10 * s01 + r11 * s11 + r12 * s12
        p12 = r10 * s02 + r11 * s12 + r12 * s22
        p20 = r20 * s00 + r21 * s01 + r22 * s02
        p21 = r20 * s01 + r21 * s11 + r22 * s12
        p22 = r20 * s02 + r21 * s12 + r22 * s22
        g10 = gradient[start + k]
        g11 = gradient[start + CHUNK + k]
        g12 = gradient[start + 2 * CHUNK + k]
        g20 = gradient[start + 3 * CHUNK + k]
        g21 = gradient[start + 4 * CHUNK + k]
        g22 = gradient[start + 5 * CHUNK + k]
        g30 = gradient[start + 6 * CHUNK + k]
        g31 = gradient[start + 7 * CHUNK + k]
        g32 = gradient[start + 8 * CHUNK + k]
        w[_FORCE + k] = p00 * g10 + p01 * g11 + p02 * g12
        w[_FORCE + CHUNK + k] = p10 * g10 + p11 * g11 + p12 * g12
        w[_FORCE + 2 * CHUNK + k] = p20 * g10 + p21 * g11 + p22 * g12
        w[_FORCE + 3 * CHUNK + k] = p00 * g20 + p01 * g21 + p02 * g22
        w[_FORCE + 4 * CHUNK + k] = p10 * g20 + p11 * g21 + p12 * g22
        w[_FORCE + 5 * CHUNK + k] = p20 * g20 + p21 * g21 + p22 * g22
        w[_FORCE + 6 * CHUNK + k] = p00 * g30 + p01 * g31 + p02 * g32
        w[_FORCE + 7 * CHUNK + k] = p10 * g30 + p11 * g31 + p12 * g32
        w[_FORCE + 8 * CHUNK + k] = p20 * g30 + p21 * g31 + p22 * g32
        root = math.sqrt(v * mu)
        r00 *= root
        r01 *= root
        r02 *= root
        r10 *= root
        r11 *= root
        r12 *= root
        r20 *= root
        r21 *= root
        r22 *= root
        w[_ROTATED + k] = r00 * g10 + r01 * g11 + r02 * g12
        w[_ROTATED + CHUNK + k] = r10 * g10 + r11 * g11 + r12 * g12
        w[_ROTATED + 2 * CHUNK + k] = r20 * g10 + r21 * g11 + r22 * g12
        w[_ROTATED + 3 * CHUNK + k] = r00 * g20 + r01 * g21 + r02 * g22
        w[_ROTATED + 4 * CHUNK + k] = r10 * g20 + r11 * g21 + r12 * g22
        w[_ROTATED + 5 * CHUNK + k] = r20 * g20 + r21 * g21 + r22 * g22
        w[_ROTATED + 6 * CHUNK + k] = r00 * g30 + r01 * g31 + r02 * g32
        w[_ROTATED + 7 * CHUNK + k] = r10 * g30 + r11 * g31 + r12 * g32
        w[_ROTATED + 8 * CHUNK + k] = r20 * g30 + r21 * g31 + r22 * g32


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
    energy), ``strain`` (m, 6) the strain sym(R^T F) - I as xx, yy, zz, xy, yz, zx.
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
                    q0, q1, q2, q3, _ = polar_quaternion(
                        w[_F + k], w[_F + CHUNK + k], w[_F + 2 * CHUNK + k], w[_F + 3 * CHUNK + k], w[_F + 4 * CHUNK + k],
                        w[_F + 5 * CHUNK + k], w[_F + 6 * CHUNK + k], w[_F + 7 * CHUNK + k], w[_F + 8 * CHUNK + k],
                        w[_Q + k], w[_Q + CHUNK + k], w[_Q + 2 * CHUNK + k], w[_Q + 3 * CHUNK + k],
                    )  # fmt: skip
                    w[_Q + k] = q0
                    w[_Q + CHUNK + k] = q1
                    w[_Q + 2 * CHUNK + k] = q2
                    w[_Q + 3 * CHUNK + k] = q3
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
    (j, i) in column i.
    """
    common = ratio[0] if ratio.shape[0] > 0 else 0.0
    s = stiffness_factor
    for j in range(mass.shape[0]):
        place = column_start[j]
        d = stride[j]
        d00 = d11 = d22 = d01 = d02 = d12 = 0.0
        for k in range(column_ptr[j], column_ptr[j + 1]):
            s00 = s01 = s02 = s10 = s11 = s12 = s20 = s21 = s22 = 0.0
            t00 = t01 = t02 = t10 = t11 = t12 = t20 = t21 = t22 = 0.0
            for p in range(block_ptr[k], block_ptr[k + 1]):
                a = corner_row[p]
                b = corner_column[p]
                a0 = rotated[a, 0]
                a1 = rotated[a, 1]
                a2 = rotated[a, 2]
                b0 = rotated[b, 0]
                b1 = rotated[b, 1]
                b2 = rotated[b, 2]
                s00 += a0 * b0
                s01 += a0 * b1
                s02 += a0 * b2
                s10 += a1 * b0
                s11 += a1 * b1
                s12 += a1 * b2
                s20 += a2 * b0
                s21 += a2 * b1
                s22 += a2 * b2
                if ratio[a >> 2] != common:
                    other = ratio[a >> 2] - common
                    t00 += other * a0 * b0
                    t01 += other * a0 * b1
                    t02 += other * a0 * b2
                    t10 += other * a1 * b0
                    t11 += other * a1 * b1
                    t12 += other * a1 * b2
                    t20 += other * a2 * b0
                    t21 += other * a2 * b1
                    t22 += other * a2 * b2
            trace = s00 + s11 + s22
            k00 = s * (t00 + common * s00 + s00 + trace)
            k01 = s * (t01 + common * s01 + s10)
            k02 = s * (t02 + common * s02 + s20)
            k10 = s * (t10 + common * s10 + s01)
            k11 = s * (t11 + common * s11 + s11 + trace)
            k12 = s * (t12 + common * s12 + s21)
            k20 = s * (t20 + common * s20 + s02)
            k21 = s * (t21 + common * s21 + s12)
            k22 = s * (t22 + common * s22 + s22 + trace)
            data[place] = k00
            data[place + 1] = k10
            data[place + 2] = k20
            data[place + d] = k01
            data[place + d + 1] = k11
            data[place + d + 2] = k21
            data[place + 2 * d] = k02
            data[place + 2 * d + 1] = k12
            data[place + 2 * d + 2] = k22
            place += 3
            i = block_row[k]
            m = mirror[k]
            c = stride[i]
            data[m] = k00
            data[m + 1] = k01
            data[m + 2] = k02
            data[m + c] = k10
            data[m + c + 1] = k11
            data[m + c + 2] = k12
            data[m + 2 * c] = k20
            data[m + 2 * c + 1] = k21
            data[m + 2 * c + 2] = k22
            k01 += k10
            k02 += k20
            k12 += k21
            diagonal[i, 0] += k00
            diagonal[i, 1] += k11
            diagonal[i, 2] += k22
            diagonal[i, 3] += k01
            diagonal[i, 4] += k02
            diagonal[i, 5] += k12
            d00 += k00
            d11 += k11
            d22 += k22
            d01 += k01
            d02 += k02
            d12 += k12
        diagonal[j, 0] = d00  # rows below j add to it later
        diagonal[j, 1] = d11
        diagonal[j, 2] = d22
        diagonal[j, 3] = d01
        diagonal[j, 4] = d02
        diagonal[j, 5] = d12
    for j in range(mass.shape[0]):
        place = column_start[j] + 3 * (column_ptr[j + 1] - column_ptr[j])
        d = stride[j]
        inertia = mass_factor * mass[j]
        k01 = -0.5 * diagonal[j, 3]
        k02 = -0.5 * diagonal[j, 4]
        k12 = -0.5 * diagonal[j, 5]
        data[place] = inertia - diagonal[j, 0]
        data[place + 1] = k01
        data[place + 2] = k02
        data[place + d] = k01
        data[place + d + 1] = inertia - diagonal[j, 1]
        data[place + d + 2] = k12
        data[place + 2 * d] = k02
        data[place + 2 * d + 1] = k12
        data[place + 2 * d + 2] = inertia - diagonal[j, 2]

"""Kernels of co-rotational linear tetrahedra: rotation, forces, stiffness blocks; arrays in, arrays filled."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

Quaternion = tuple[float, float, float, float]


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
        r00 = 1.0 - 2.0 * (q2 * q2 + q3 * q3)
        r01 = 2.0 * (q1 * q2 - q0 * q3)
        r02 = 2.0 * (q1 * q3 + q0 * q2)
        r10 = 2.0 * (q1 * q2 + q0 * q3)
        r11 = 1.0 - 2.0 * (q1 * q1 + q3 * q3)
        r12 = 2.0 * (q2 * q3 - q0 * q1)
        r20 = 2.0 * (q1 * q3 - q0 * q2)
        r21 = 2.0 * (q2 * q3 + q0 * q1)
        r22 = 1.0 - 2.0 * (q1 * q1 + q2 * q2)
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


@njit(cache=True)
def element_forces(
    x: np.ndarray,
    tets: np.ndarray,
    gradient: np.ndarray,
    volume: np.ndarray,
    lame_lambda: np.ndarray,
    lame_mu: np.ndarray,
    quaternion: np.ndarray,
    rotated: np.ndarray,
    force: np.ndarray,
    strain: np.ndarray,
) -> tuple[float, int]:
    """Update rotations, rotated gradients, internal forces and co-rotated strains from positions.

    Returns the elastic energy (J) and the number of inverted elements.

    ``gradient`` (m, 4, 3) holds the rest gradients of the shape functions (1/m), ``rotated`` (m, 4, 3) becomes
    sqrt(V) R grad, ``force`` (n, 3) the force of the elements against deformation (N, gradient of the energy), ``strain`` (m, 6)
    the strain sym(R^T F) - I as xx, yy, zz, xy, yz, zx, ``quaternion`` (m, 4) is read as warm start and updated.
    """
    energy = 0.0
    inverted = 0
    for i in range(force.shape[0]):
        force[i, 0] = 0.0
        force[i, 1] = 0.0
        force[i, 2] = 0.0
    for e in range(tets.shape[0]):
        f00 = f01 = f02 = f10 = f11 = f12 = f20 = f21 = f22 = 0.0
        for a in range(4):
            i = tets[e, a]
            x0 = x[i, 0]
            x1 = x[i, 1]
            x2 = x[i, 2]
            g0 = gradient[e, a, 0]
            g1 = gradient[e, a, 1]
            g2 = gradient[e, a, 2]
            f00 += x0 * g0
            f01 += x0 * g1
            f02 += x0 * g2
            f10 += x1 * g0
            f11 += x1 * g1
            f12 += x1 * g2
            f20 += x2 * g0
            f21 += x2 * g1
            f22 += x2 * g2
        if f00 * (f11 * f22 - f12 * f21) - f01 * (f10 * f22 - f12 * f20) + f02 * (f10 * f21 - f11 * f20) <= 0.0:
            inverted += 1
        q0, q1, q2, q3, _ = polar_quaternion(
            f00, f01, f02, f10, f11, f12, f20, f21, f22,
            quaternion[e, 0], quaternion[e, 1], quaternion[e, 2], quaternion[e, 3],
        )  # fmt: skip
        quaternion[e, 0] = q0
        quaternion[e, 1] = q1
        quaternion[e, 2] = q2
        quaternion[e, 3] = q3
        r00 = 1.0 - 2.0 * (q2 * q2 + q3 * q3)
        r01 = 2.0 * (q1 * q2 - q0 * q3)
        r02 = 2.0 * (q1 * q3 + q0 * q2)
        r10 = 2.0 * (q1 * q2 + q0 * q3)
        r11 = 1.0 - 2.0 * (q1 * q1 + q3 * q3)
        r12 = 2.0 * (q2 * q3 - q0 * q1)
        r20 = 2.0 * (q1 * q3 - q0 * q2)
        r21 = 2.0 * (q2 * q3 + q0 * q1)
        r22 = 1.0 - 2.0 * (q1 * q1 + q2 * q2)
        e00 = r00 * f00 + r10 * f10 + r20 * f20 - 1.0
        e11 = r01 * f01 + r11 * f11 + r21 * f21 - 1.0
        e22 = r02 * f02 + r12 * f12 + r22 * f22 - 1.0
        e01 = 0.5 * (r00 * f01 + r10 * f11 + r20 * f21 + r01 * f00 + r11 * f10 + r21 * f20)
        e12 = 0.5 * (r01 * f02 + r11 * f12 + r21 * f22 + r02 * f01 + r12 * f11 + r22 * f21)
        e02 = 0.5 * (r00 * f02 + r10 * f12 + r20 * f22 + r02 * f00 + r12 * f10 + r22 * f20)
        strain[e, 0] = e00
        strain[e, 1] = e11
        strain[e, 2] = e22
        strain[e, 3] = e01
        strain[e, 4] = e12
        strain[e, 5] = e02
        v = volume[e]
        two_mu = 2.0 * lame_mu[e]
        pressure = lame_lambda[e] * (e00 + e11 + e22)
        energy += v * (
            lame_mu[e] * (e00 * e00 + e11 * e11 + e22 * e22 + 2.0 * (e01 * e01 + e12 * e12 + e02 * e02))
            + 0.5 * pressure * (e00 + e11 + e22)
        )
        s00 = v * (two_mu * e00 + pressure)
        s11 = v * (two_mu * e11 + pressure)
        s22 = v * (two_mu * e22 + pressure)
        s01 = v * two_mu * e01
        s12 = v * two_mu * e12
        s02 = v * two_mu * e02
        root = math.sqrt(v)
        for a in range(4):
            g0 = gradient[e, a, 0]
            g1 = gradient[e, a, 1]
            g2 = gradient[e, a, 2]
            t0 = s00 * g0 + s01 * g1 + s02 * g2
            t1 = s01 * g0 + s11 * g1 + s12 * g2
            t2 = s02 * g0 + s12 * g1 + s22 * g2
            i = tets[e, a]
            force[i, 0] += r00 * t0 + r01 * t1 + r02 * t2
            force[i, 1] += r10 * t0 + r11 * t1 + r12 * t2
            force[i, 2] += r20 * t0 + r21 * t1 + r22 * t2
            rotated[e, a, 0] = root * (r00 * g0 + r01 * g1 + r02 * g2)
            rotated[e, a, 1] = root * (r10 * g0 + r11 * g1 + r12 * g2)
            rotated[e, a, 2] = root * (r20 * g0 + r21 * g1 + r22 * g2)
    return energy, inverted


@njit(cache=True)
def stiffness_blocks(
    block_ptr: np.ndarray,
    block_element: np.ndarray,
    block_corner: np.ndarray,
    base: np.ndarray,
    stride: np.ndarray,
    mirror_base: np.ndarray,
    mirror_stride: np.ndarray,
    rotated: np.ndarray,
    lame_lambda: np.ndarray,
    lame_mu: np.ndarray,
    diagonal_of: np.ndarray,
    mass: np.ndarray,
    stiffness_factor: float,
    mass_factor: float,
    data: np.ndarray,
) -> None:
    """Fill the CSC entries of mass_factor M + stiffness_factor K from the rotated gradients.

    K_ab = V (lambda ga gb^T + mu gb ga^T + mu ga.gb I) with ga = R grad_a. Every block (i, j), i <= j, gathers its elements,
    so each entry is written once; entry (r, c) of the block stands at ``base + r + c * stride`` and its transpose at the
    mirror position. ``diagonal_of`` is the node of a diagonal block, -1 otherwise.
    """
    for k in range(base.shape[0]):
        k00 = k01 = k02 = k10 = k11 = k12 = k20 = k21 = k22 = 0.0
        for p in range(block_ptr[k], block_ptr[k + 1]):
            e = block_element[p]
            a = block_corner[p] >> 2
            b = block_corner[p] & 3
            a0 = rotated[e, a, 0]
            a1 = rotated[e, a, 1]
            a2 = rotated[e, a, 2]
            b0 = rotated[e, b, 0]
            b1 = rotated[e, b, 1]
            b2 = rotated[e, b, 2]
            la = lame_lambda[e]
            mu = lame_mu[e]
            dot = mu * (a0 * b0 + a1 * b1 + a2 * b2)
            k00 += (la + mu) * a0 * b0 + dot
            k01 += la * a0 * b1 + mu * b0 * a1
            k02 += la * a0 * b2 + mu * b0 * a2
            k10 += la * a1 * b0 + mu * b1 * a0
            k11 += (la + mu) * a1 * b1 + dot
            k12 += la * a1 * b2 + mu * b1 * a2
            k20 += la * a2 * b0 + mu * b2 * a0
            k21 += la * a2 * b1 + mu * b2 * a1
            k22 += (la + mu) * a2 * b2 + dot
        m = 0.0
        if diagonal_of[k] >= 0:
            m = mass_factor * mass[diagonal_of[k]]
        s = stiffness_factor
        p = base[k]
        d = stride[k]
        data[p] = s * k00 + m
        data[p + 1] = s * k10
        data[p + 2] = s * k20
        data[p + d] = s * k01
        data[p + d + 1] = s * k11 + m
        data[p + d + 2] = s * k21
        data[p + 2 * d] = s * k02
        data[p + 2 * d + 1] = s * k12
        data[p + 2 * d + 2] = s * k22 + m
        p = mirror_base[k]
        if p >= 0:
            d = mirror_stride[k]
            data[p] = s * k00
            data[p + 1] = s * k01
            data[p + 2] = s * k02
            data[p + d] = s * k10
            data[p + d + 1] = s * k11
            data[p + d + 2] = s * k12
            data[p + 2 * d] = s * k20
            data[p + 2 * d + 1] = s * k21
            data[p + 2 * d + 2] = s * k22


@njit(cache=True)
def von_mises_stress(strain: np.ndarray, lame_mu: np.ndarray, von_mises: np.ndarray) -> None:
    """Fill the von Mises stress (Pa) of each element from its co-rotated strain; the pressure part cancels."""
    for e in range(strain.shape[0]):
        two_mu = 2.0 * lame_mu[e]
        d0 = two_mu * (strain[e, 0] - strain[e, 1])
        d1 = two_mu * (strain[e, 1] - strain[e, 2])
        d2 = two_mu * (strain[e, 2] - strain[e, 0])
        s0 = two_mu * strain[e, 3]
        s1 = two_mu * strain[e, 4]
        s2 = two_mu * strain[e, 5]
        von_mises[e] = math.sqrt(0.5 * (d0 * d0 + d1 * d1 + d2 * d2) + 3.0 * (s0 * s0 + s1 * s1 + s2 * s2))

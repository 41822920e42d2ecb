"""Rotations as quaternions (w, x, y, z) against scipy's and against their definitions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import expm
from scipy.spatial.transform import Rotation

from femsim.base import rotations as r


def random_quaternions(count: int, seed: int = 0) -> np.ndarray:
    q = np.random.default_rng(seed).standard_normal((count, 4))
    return q / np.linalg.norm(q, axis=1, keepdims=True)


def scipy_rotation(q: np.ndarray) -> Rotation:
    return Rotation.from_quat(q[[1, 2, 3, 0]])


def cross(w: np.ndarray) -> np.ndarray:
    return np.array([[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]])


def test_a_quarter_turn_about_z_by_hand() -> None:
    q = r.quaternion_from_vector(np.array([0.0, 0.0, np.pi / 2]))
    np.testing.assert_allclose(q, [np.sqrt(0.5), 0, 0, np.sqrt(0.5)], atol=1e-15)
    np.testing.assert_allclose(r.quaternion_to_matrix(q), [[0, -1, 0], [1, 0, 0], [0, 0, 1]], atol=1e-15)


def test_the_nearest_rotation_is_that_of_least_distance() -> None:
    """Of matrices near a rotation, and of those near a reflection."""
    for k, q in enumerate(random_quaternions(20, 4)):
        M = r.quaternion_to_matrix(q) + 0.1 * np.random.default_rng(k).standard_normal((3, 3))
        for matrix in (M, -M):
            R = r.nearest_rotation(matrix)
            np.testing.assert_allclose(R @ R.T, np.eye(3), atol=1e-14)
            assert np.linalg.det(R) == pytest.approx(1.0)
            for axis in 0.01 * np.vstack([np.eye(3), -np.eye(3)]):
                near = r.quaternion_to_matrix(r.quaternion_from_vector(axis)) @ R
                assert np.linalg.norm(near - matrix) > np.linalg.norm(R - matrix)


def test_matrices_agree_with_scipy() -> None:
    for q in random_quaternions(100):
        R = r.quaternion_to_matrix(q)
        np.testing.assert_allclose(R, scipy_rotation(q).as_matrix(), atol=1e-14)


def test_many_matrices_give_the_bits_that_each_gives_alone() -> None:
    matrices = np.array([np.eye(3), np.diag([-1.0, 1.0, -1.0]), *map(r.quaternion_to_matrix, random_quaternions(50, 2))])
    quaternions = r.quaternion_from_matrix(matrices)
    np.testing.assert_array_equal(quaternions, [r.quaternion_from_matrix(R) for R in matrices])
    np.testing.assert_allclose(list(map(r.quaternion_to_matrix, quaternions)), matrices, atol=1e-14)


def test_the_product_rotates_by_the_second_then_by_the_first() -> None:
    for a, b in zip(random_quaternions(50, 1), random_quaternions(50, 2), strict=True):
        ab = r.quaternion_multiply(a, b)
        np.testing.assert_allclose(r.quaternion_to_matrix(ab), r.quaternion_to_matrix(a) @ r.quaternion_to_matrix(b), atol=1e-14)
        assert np.linalg.norm(ab) == pytest.approx(1.0, abs=1e-14)


def test_the_conjugate_undoes() -> None:
    for q in random_quaternions(20, 3):
        np.testing.assert_allclose(r.quaternion_multiply(q, r.quaternion_conjugate(q)), [1, 0, 0, 0], atol=1e-15)
        np.testing.assert_allclose(r.quaternion_to_matrix(r.quaternion_conjugate(q)), r.quaternion_to_matrix(q).T, atol=1e-15)


@pytest.mark.parametrize("angle", [0.0, 1e-12, 1e-5, 0.99e-4, 1.01e-4, 1e-3, 1.0, 3.1, 6.0, 20.0])
def test_the_exponential_map(angle: float) -> None:
    """Both branches, and across the border between them: the matrix exponential of the cross product."""
    for axis in random_quaternions(10, 4)[:, 1:]:
        vector = angle * axis / np.linalg.norm(axis)
        q = r.quaternion_from_vector(vector)
        assert np.linalg.norm(q) == pytest.approx(1.0, abs=4e-16 * 4)
        np.testing.assert_allclose(r.quaternion_to_matrix(q), expm(cross(vector)), atol=2e-14 * (1 + angle))
        np.testing.assert_allclose(q[1:], np.sin(angle / 2) * axis / np.linalg.norm(axis), rtol=1e-14, atol=1e-17)


@pytest.mark.parametrize("angle", [0.0, 1e-13, 1e-9, 1e-4, 0.5, 3.0, np.pi - 1e-9])
def test_the_logarithm_is_the_inverse(angle: float) -> None:
    for axis in random_quaternions(10, 5)[:, 1:]:
        vector = angle * axis / np.linalg.norm(axis)
        q = r.quaternion_from_vector(vector)
        for sign in (1.0, -1.0):  # both quaternions of a rotation
            np.testing.assert_allclose(r.vector_from_quaternion(sign * q), vector, rtol=1e-14, atol=1e-15)


def test_the_logarithm_takes_the_shorter_way() -> None:
    q = r.quaternion_from_vector(np.array([0.0, 1.5 * np.pi, 0.0]))
    np.testing.assert_allclose(r.vector_from_quaternion(q), [0.0, -0.5 * np.pi, 0.0], atol=1e-15)


def turned(q: np.ndarray, vector: np.ndarray) -> np.ndarray:
    """A quaternion turned by a rotation vector, rad, in the world."""
    return r.quaternion_multiply(r.quaternion_from_vector(vector), q)


def test_a_product_from_the_left_turns_in_the_world() -> None:
    rng = np.random.default_rng(6)
    for q in random_quaternions(30, 6):
        vector = rng.standard_normal(3)
        matrix = r.quaternion_to_matrix(turned(q, vector))
        np.testing.assert_allclose(matrix, expm(cross(vector)) @ r.quaternion_to_matrix(q), atol=1e-13)


def test_turning_a_little_is_the_cross_product() -> None:
    """d/ds exp(s w) R = [w] R at s = 0: the convention that makes w a world angular velocity."""
    rng = np.random.default_rng(7)
    q, w, h = random_quaternions(1, 8)[0], rng.standard_normal(3), 1e-6
    ahead, back = (r.quaternion_to_matrix(turned(q, s * w)) for s in (h, -h))
    np.testing.assert_allclose((ahead - back) / (2 * h), cross(w) @ r.quaternion_to_matrix(q), atol=1e-9)


def test_cross_is_the_cross_product() -> None:
    rng = np.random.default_rng(3)
    for a, b in rng.standard_normal((20, 2, 3)):
        np.testing.assert_allclose(r.cross(a, b), np.cross(a, b), rtol=1e-14, atol=1e-15)


def test_cross_matrices_are_those_of_the_cross_product() -> None:
    a = np.random.default_rng(4).standard_normal((20, 3))
    np.testing.assert_array_equal(r.cross_matrix(a[0]), cross(a[0]))
    np.testing.assert_array_equal(r.cross_matrix(a), [cross(w) for w in a])

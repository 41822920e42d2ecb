"""Every function of ``rotation_kernels`` against numpy and scipy; test_soft has the polar rotation and its form for chunks."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from femsim.model.bodies import rotation_kernels as k

RNG = np.random.default_rng(12)
A, B = RNG.standard_normal((2, 3, 3))
X, Y = RNG.standard_normal((2, 3))
H = A + A.T
CROSS = np.array([[0, -X[2], X[1]], [X[2], 0, -X[0]], [-X[1], X[0], 0]])


def flat(matrix: np.ndarray) -> tuple[float, ...]:
    return tuple(float(x) for x in np.asarray(matrix).ravel())


def symmetric(matrix: np.ndarray) -> tuple[float, ...]:
    return flat(matrix[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]])


CASES: dict[str, tuple[Callable[..., object], tuple[object, ...], object]] = {
    "by_entries": (k.by_entries, (flat(X), flat(Y)), X * Y),
    "plus": (k.plus, (flat(A), flat(B)), A + B),
    "minus": (k.minus, (flat(A), flat(B)), A - B),
    "scaled_matrix": (k.scaled_matrix, (3.0, flat(A)), 3 * A),
    "transposed": (k.transposed, (flat(A),), A.T),
    "times_vector": (k.times_vector, (flat(A), flat(X)), A @ X),
    "transposed_times_vector": (k.transposed_times_vector, (flat(A), flat(X)), A.T @ X),
    "times": (k.times, (flat(A), flat(B)), A @ B),
    "transposed_times": (k.transposed_times, (flat(A), flat(B)), A.T @ B),
    "times_transposed": (k.times_transposed, (flat(A), flat(B)), A @ B.T),
    "turned_diagonal": (k.turned_diagonal, (flat(A), flat(X)), A @ np.diag(X) @ A.T),
    "scaled_columns": (k.scaled_columns, (flat(A), flat(X)), A @ np.diag(X)),
    "outer": (k.outer, (flat(X), flat(Y)), np.outer(X, Y)),
    "add_to_diagonal": (k.add_to_diagonal, (flat(A), 0.7), A + 0.7 * np.eye(3)),
    "cross_matrix": (k.cross_matrix, (flat(X),), CROSS),
    "cross_times": (k.cross_times, (flat(X), flat(A)), CROSS @ A),
    "determinant": (k.determinant, (flat(A),), np.linalg.det(A)),
    "squared_norm": (k.squared_norm, (flat(A),), (A * A).sum()),
    "axial": (k.axial, (flat(CROSS),), 2 * X),
    "cofactors": (k.cofactors, (symmetric(H),), symmetric(np.linalg.det(H) * np.linalg.inv(H))),
    "symmetric_times": (k.symmetric_times, (symmetric(H), flat(X)), H @ X),
    "lowest_eigenvalue": (k.lowest_eigenvalue, (symmetric(H),), np.linalg.eigvalsh(H)[0]),
    "lowest_eigenvalue of I": (k.lowest_eigenvalue, (symmetric(2 * np.eye(3)),), 2.0),
}


@pytest.mark.parametrize("name", CASES)
def test_algebra_is_that_of_numpy(name: str) -> None:
    function, arguments, expected = CASES[name]
    np.testing.assert_allclose(
        function(*arguments), np.ravel(expected) if np.ndim(expected) else expected, rtol=1e-13, atol=1e-14
    )


def test_turned_diagonals_are_symmetric_and_zeros_of_cross_matrices_positive() -> None:
    """To the last bit: so the matrix of a rod is symmetric, and its bits do not depend on the sign of a zero."""
    turned = np.reshape(k.turned_diagonal(flat(A), flat(X)), (3, 3))
    assert np.array_equal(turned, turned.T)
    assert not np.signbit(k.cross_matrix((0.0, -0.0, 0.0))).any()


def turn(q: tuple[float, ...]) -> Rotation:
    return Rotation.from_quat(np.array(q)[[1, 2, 3, 0]])


def test_rotations_are_those_of_scipy() -> None:
    poses = RNG.standard_normal((6, 7))
    poses[:, 3:] /= np.linalg.norm(poses[:, 3:], axis=1, keepdims=True)
    poses[5, 3:] = -poses[4, 3:]  # the same rotation
    for p in range(6):
        expected = turn(tuple(poses[p, 3:])).as_matrix().ravel()
        np.testing.assert_allclose(k.rotation_at(poses, p), expected, atol=1e-15)
        np.testing.assert_allclose(k.rotation_of(tuple(poses[p, 3:])), expected, atol=1e-15)
    for i, j in ((0, 1), (1, 2), (2, 3), (3, 0), (4, 5), (2, 2)):
        middle, vector = k.middle_rotation(poses, i, j)
        between = (turn(tuple(poses[i, 3:])).inv() * turn(tuple(poses[j, 3:]))).as_rotvec()
        np.testing.assert_allclose(vector, between, atol=1e-14)
        half = turn(tuple(poses[i, 3:])) * Rotation.from_rotvec(between / 2)
        np.testing.assert_allclose(turn(middle).as_matrix(), half.as_matrix(), atol=1e-14)


def test_retraction_is_the_exponential_to_second_order() -> None:
    q = flat(Rotation.random(random_state=3).as_quat()[[3, 0, 1, 2]])
    errors = []
    for size in (1e-1, 1e-2):
        w = size * X / np.linalg.norm(X)
        got = k.retracted(q, flat(w))
        assert math.hypot(*got) == pytest.approx(1.0, abs=1e-15)
        errors.append(((turn(q) * Rotation.from_rotvec(w)).inv() * turn(got)).magnitude())
    assert errors[0] < 1e-4 and errors[1] == pytest.approx(1e-3 * errors[0], rel=0.05)

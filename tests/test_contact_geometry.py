"""The small kernels under detection against numpy: vectors, closest points, trees of boxes, normals, solid angles."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.spatial import ConvexHull

from contact import (
    ContactError,
    closest_points_on_triangles,
    distance_kernels as distance,
    surface_kernels as surface,
    tree_kernels as tree,
    vector_kernels as vector,
)
from contact.deformable import DeformableDetector, Strand, Surface


def closest_on_triangle(p: np.ndarray, corners: np.ndarray) -> tuple[np.ndarray, int]:
    """Slow twin: the nearest of the foot on the plane, where it is inside, and of the clipped feet on the sides; its feature."""
    a, b, c = corners
    s, t = np.linalg.lstsq(np.column_stack([b - a, c - a]), p - a, rcond=None)[0]
    if min(s, t, 1.0 - s - t) > 0.0:
        return a + s * (b - a) + t * (c - a), distance.FACE
    found = []
    for k in range(3):
        start, side = corners[k], corners[(k + 1) % 3] - corners[k]
        along = np.clip((p - start) @ side / (side @ side), 0.0, 1.0)
        feature = distance.VERTEX_A + k if along == 0.0 else distance.VERTEX_A + (k + 1) % 3 if along == 1.0 else 1 + k
        found.append((start + along * side, feature))
    return min(found, key=lambda one: float(np.linalg.norm(p - one[0])))


def random_triangles(count: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return 1.5 * rng.standard_normal((count, 3)), rng.standard_normal((count, 3, 3))


def test_vectors_are_those_of_numpy() -> None:
    rng = np.random.default_rng(1)
    a, b, array = rng.standard_normal(3), rng.standard_normal(3), np.zeros((2, 3))
    u, v = tuple(a.tolist()), tuple(b.tolist())
    np.testing.assert_array_equal(vector.plus(u, v), a + b)
    np.testing.assert_array_equal(vector.minus(u, v), a - b)
    np.testing.assert_array_equal(vector.times(1.7, u), 1.7 * a)
    np.testing.assert_array_equal(vector.over(u, 1.7), a / 1.7)
    np.testing.assert_allclose(vector.cross(u, v), np.cross(a, b), rtol=0, atol=1e-15)
    assert vector.dot(u, v) == pytest.approx(a @ b, rel=1e-14)
    assert vector.norm(u) == pytest.approx(np.linalg.norm(a), rel=1e-15)
    vector.write_row(array, 1, u)
    np.testing.assert_array_equal(array, [[0, 0, 0], a])
    assert vector.row(array, 1) == vector.entry(array[None], 0, 1) == u


def test_closest_points_of_triangles_are_those_of_the_slow_twin() -> None:
    """All seven features of a triangle come up; the weights sum to one, and those off the feature are exactly zero."""
    corners_of = {1: (0, 1), 2: (1, 2), 3: (2, 0), 4: (0,), 5: (1,), 6: (2,), 0: (0, 1, 2)}
    count = np.zeros(7, dtype=int)
    for p, corners in zip(*random_triangles(3000), strict=True):
        *weights, feature = distance.closest_on_triangle(tuple(p), *map(tuple, corners))
        expected, expected_feature = closest_on_triangle(p, corners)
        np.testing.assert_allclose(weights @ corners, expected, rtol=0, atol=1e-11)
        assert feature == expected_feature
        assert sum(weights) == pytest.approx(1.0, abs=1e-13)
        assert set(np.flatnonzero(weights)) == set(corners_of[feature])
        count[feature] += 1
    assert count.min() > 50


def test_closest_points_on_triangles() -> None:
    points, corners = random_triangles(500)
    found = closest_points_on_triangles(points[0], corners)
    np.testing.assert_allclose(found, [closest_on_triangle(points[0], c)[0] for c in corners], rtol=0, atol=1e-11)
    by_hand = closest_points_on_triangles(
        [0.25, 0.25, 2.0], [[[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 0, 3], [1, 0, 3], [0, 1, 3]]]
    )
    np.testing.assert_array_equal(by_hand, [[0.25, 0.25, 0.0], [0.25, 0.25, 3.0]])
    assert closest_points_on_triangles(points[0], np.zeros((0, 3, 3))).shape == (0, 3)
    with pytest.raises(ContactError, match=r"corners has shape \(3, 3\)"):
        closest_points_on_triangles(points[0], corners[0])


def test_closest_points_of_lines_are_those_of_least_squares() -> None:
    rng = np.random.default_rng(2)
    for u, v, w in rng.standard_normal((200, 3, 3)):
        square = (u @ u) * (v @ v) - (u @ v) ** 2
        found = distance.closest_on_lines(u @ u, u @ v, v @ v, u @ w, v @ w, square)
        expected = np.linalg.lstsq(np.column_stack([u, -v]), -w, rcond=None)[0]
        np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-10)


@pytest.fixture(scope="module")
def ball() -> tuple[Surface, np.ndarray]:
    """A closed surface of 60 random points on an ellipsoid."""
    points = np.random.default_rng(4).standard_normal((60, 3))
    points = points / np.linalg.norm(points, axis=1)[:, None] * [0.3, 0.2, 0.1]
    triangles = ConvexHull(points).simplices.astype(np.int64)
    a, b, c = (points[triangles[:, k]] for k in range(3))
    inward = np.einsum("tk,tk->t", np.cross(b - a, c - a), a) < 0.0
    triangles[inward] = triangles[inward][:, ::-1]
    return Surface(len(points), triangles, np.full(len(triangles), 0.02)), points


def test_searches_find_all_boxes_in_reach(ball: tuple[Surface, np.ndarray]) -> None:
    """Against the boxes of all triangles, of a body that is the second of two; what comes first in the order does not count."""
    body, points = ball
    where = np.concatenate([points, points])
    detector = DeformableDetector([body, body], np.array([[False, True], [True, False]]), where)
    triangles, forest = detector._features.triangles, detector._triangle_trees
    moved = where + 0.01 * np.random.default_rng(5).standard_normal(where.shape)
    own = tree.tree_of(forest, 1)
    tree.fit_boxes(own, moved, triangles, 3)
    corners = moved[triangles[own.first :]]
    low, high = corners.min(axis=1), corners.max(axis=1)
    stack, hits, sizes = np.zeros(64, dtype=np.int64), np.zeros(256, dtype=np.int64), []
    for p in np.random.default_rng(6).uniform(-0.4, 0.4, (100, 3)):
        n = tree.search_point(own.leaf, own.boxes, own.first, tuple(p), 0.1, stack, hits)
        outside = np.linalg.norm(np.maximum(np.maximum(low - p, p - high), 0.0), axis=1)
        assert sorted(hits[:n] - own.first) == np.flatnonzero(outside <= 0.1).tolist()
        sizes.append(n)
        n = tree.search_box(own.leaf, own.boxes, own.first, tuple(p - 0.05), tuple(p + 0.08), stack, hits)
        overlapping = ((low <= p + 0.08) & (high >= p - 0.05)).all(axis=1)
        assert sorted(hits[:n] - own.first) == np.flatnonzero(overlapping).tolist()
    assert min(sizes) == 0 < max(sizes)


def test_normals_are_those_of_numpy(ball: tuple[Surface, np.ndarray]) -> None:
    body, points = ball
    dented = points.copy()
    dented[0] *= 0.5  # edges round it become concave
    detector = DeformableDetector(
        [body, Strand(np.arange(3.0), 0.1)], np.ones((2, 2), dtype=bool), np.vstack([dented, np.eye(3)])
    )
    detector.detect(np.vstack([dented, np.eye(3)]), 0.0)
    found, triangles = detector._features, body.triangles
    a, b, c = (dented[triangles[:, k]] for k in range(3))
    face = np.cross(b - a, c - a)
    face /= np.linalg.norm(face, axis=1)[:, None]
    np.testing.assert_allclose(found.face_normal, face, rtol=0, atol=1e-14)
    vertex = np.zeros_like(dented)
    for t, corners in enumerate(triangles):
        for k in range(3):
            p, q, r = dented[np.roll(corners, -k)]
            cosine = (q - p) @ (r - p) / np.linalg.norm(q - p) / np.linalg.norm(r - p)
            vertex[corners[k]] += np.arccos(cosine) * face[t]
    np.testing.assert_allclose(found.vertex_normal[:60], vertex / np.linalg.norm(vertex, axis=1)[:, None], rtol=0, atol=1e-12)
    np.testing.assert_array_equal(found.vertex_normal[60:], 0.0)
    kinds = []
    for e, (one, other) in enumerate(found.edge_faces):
        if one < 0:
            assert found.sharp[e] and not found.edge_normal[e].any()
            continue
        mean = face[one] + face[other]
        np.testing.assert_allclose(found.edge_normal[e], mean / np.linalg.norm(mean), rtol=0, atol=1e-14)
        ends = set(found.edges[e, :2])
        assert ends == set(triangles[one]) & set(triangles[other])
        (beyond,) = set(triangles[other]) - ends
        below = (dented[beyond] - dented[found.edges[e, 0]]) @ face[one] < 0.0
        assert found.sharp[e] == (below and face[one] @ face[other] < surface.FLAT)
        kinds.append(bool(found.sharp[e]))
    assert 0 < sum(kinds) < len(kinds)


def test_solid_angles_of_a_closed_surface_sum_to_4_pi_inside_and_0_outside(ball: tuple[Surface, np.ndarray]) -> None:
    body, points = ball
    octant = surface.solid_angle((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
    assert octant == pytest.approx(np.pi / 2, rel=1e-14)
    for p, inside in itertools.product(([0.0, 0.0, 0.0], [0.2, 0.0, 0.01]), (True, False)):
        centre = np.array(p) + (0.0 if inside else 0.5)
        total = sum(surface.solid_angle(*map(tuple, points[t] - centre)) for t in body.triangles)
        assert total == pytest.approx(4 * np.pi if inside else 0.0, abs=1e-12)

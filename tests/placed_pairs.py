"""Pairs of shapes anywhere in space: their contacts by the detector, and their distance by other means."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy.optimize import lsq_linear, minimize
from scipy.spatial.transform import Rotation

from contact.detect import Detector, PointContacts
from contact.detect_kernels import PARALLEL
from contact.shape_points import first_points
from contact.shapes import Box, Cone, Cylinder, Mesh, PlacedShape, Shape, closest_points_on_triangles


def detect(
    shapes: Sequence[Shape], rotation: np.ndarray, translation: np.ndarray, margin: float, mutual: bool = True, most: int = 10**6
) -> PointContacts:
    """All contacts of shapes on bodies of their own, with the features of each as points.

    Without ``mutual`` only points of the first one are tested; ``most`` contacts of two bodies are kept. Each contact has a name
    of its own.
    """
    own = [shape.features() for shape in shapes]
    first = np.cumsum([0] + [len(points) for points, _ in own[:-1]])
    may_contact = np.ones((len(shapes), len(shapes)), dtype=bool)
    may_contact[1:] &= mutual
    detector = Detector(
        [PlacedShape(shape, k) for k, shape in enumerate(shapes)],
        np.repeat(np.arange(len(shapes)), [len(points) for points, _ in own]),
        np.concatenate([radii for _, radii in own]),
        np.zeros(sum(len(points) for points, _ in own), dtype=int),
        may_contact,
        most_per_pair=most,
        **first_points(shapes, first),
    )
    points = np.concatenate([p @ turn.T + at for (p, _), turn, at in zip(own, rotation, translation, strict=True)])
    found = detector.detect(points, *detector.world_poses(rotation, translation), margin).copy()
    names = (found.point * len(shapes) + found.shape) * detector.features + found.feature
    assert len(np.unique(names)) == found.n and found.feature.max(initial=0) < detector.features
    return found


def random_boxes(rng: np.random.Generator, count: int):
    """Half extents, rotations and translations of pairs of boxes that do not touch, a third of them almost parallel.

    With each comes the true distance, from closest points found by least squares with bounds, and its direction.
    """
    while count:
        halves = rng.uniform(0.2, 1.0, (2, 3))
        rotation = Rotation.random(2, rng=rng).as_matrix()
        if count % 3 == 0:
            rotation[1] = rotation[0] @ Rotation.from_rotvec(rng.normal(size=3) * 10.0 ** rng.uniform(-9, -1)).as_matrix()
        shift = rng.normal(size=3)
        translation = np.array([np.zeros(3), shift * rng.uniform(0.5, 2.5) / np.linalg.norm(shift)])
        sides = np.hstack([rotation[0] * halves[0], -rotation[1] * halves[1]])
        closest = lsq_linear(sides, translation[1], (-1, 1), method="bvls", tol=1e-14).x
        between = translation[1] - sides @ closest
        distance = float(np.linalg.norm(between))
        if distance > 1e-3:
            count -= 1
            yield halves, rotation, translation, distance, between / distance


def separation(halves, rotation, translation, edges: bool) -> float:
    """Return the largest gap of two boxes along the normals of faces, and of pairs of edges where asked for."""
    axes = [turn[:, i] for turn in rotation for i in range(3)]
    across = [np.cross(rotation[0][:, i], rotation[1][:, j]) for i in range(3) for j in range(3)] if edges else []
    axes += [n / np.linalg.norm(n) for n in across if np.linalg.norm(n) >= PARALLEL]
    apart = translation[0] - translation[1]
    return max(abs(n @ apart) - sum(half @ abs(n @ turn) for half, turn in zip(halves, rotation, strict=True)) for n in axes)


def core(shape: Shape) -> tuple[np.ndarray, Callable[[float], float] | None, float]:
    """Half extents of a box about a shape without its round, radius of its section at z, and radius of the round all about it."""
    if isinstance(shape, Box):
        return shape.half_extents, None, 0.0
    if isinstance(shape, Cylinder | Cone):
        base, half, top = shape.radius, shape.half_length, getattr(shape, "top", shape.radius)
        return np.array([base, base, half]), lambda z: 0.5 * (base + top - (base - top) * z / half), 0.0
    return np.array([0.0, 0.0, getattr(shape, "half_length", 0.0)]), None, shape.radius


def closest(shapes: list[Shape], rotation: np.ndarray, translation: np.ndarray) -> tuple[float, np.ndarray]:
    """Distance of two shapes, and the direction from the first to the second, by minimising over the points of both."""
    cores = [core(shape) for shape in shapes]

    def between(x: np.ndarray) -> np.ndarray:
        return rotation[1] @ x[3:] + translation[1] - rotation[0] @ x[:3] - translation[0]

    def slope(x: np.ndarray) -> np.ndarray:
        w = between(x)
        return np.concatenate([-2.0 * rotation[0].T @ w, 2.0 * rotation[1].T @ w])

    rounds = [
        {"type": "ineq", "fun": lambda x, k=k, r=r: r(x[3 * k + 2]) - np.sqrt(x[3 * k] ** 2 + x[3 * k + 1] ** 2 + 1e-18)}
        for k, (_, r, _) in enumerate(cores)
        if r is not None
    ]
    bounds = [(-h, h) for half, _, _ in cores for h in half]
    found = minimize(
        lambda x: between(x) @ between(x), np.zeros(6), jac=slope, bounds=bounds, constraints=rounds, method="SLSQP",
        options={"ftol": 1e-15, "maxiter": 500},
    )  # fmt: skip
    w = between(found.x)
    length = float(np.linalg.norm(w))
    return length - cores[0][2] - cores[1][2], w / max(length, 1e-300)


def _extent(shape: Shape, ways: np.ndarray) -> np.ndarray:
    """How far a shape reaches from its origin along unit vectors (n, 3) of its frame, (n,), m."""
    if isinstance(shape, Box):
        return np.asarray(abs(ways) @ shape.half_extents)
    across, along = np.hypot(ways[:, 0], ways[:, 1]), ways[:, 2]
    if isinstance(shape, Cylinder | Cone):
        top = getattr(shape, "top", shape.radius)
        ends = shape.radius * across - shape.half_length * along, top * across + shape.half_length * along
        return np.asarray(np.maximum(*ends))
    return np.asarray(shape.radius + getattr(shape, "half_length", 0.0) * abs(along))


def sampled_gap(shapes: Sequence[Shape], rotation: np.ndarray, translation: np.ndarray, turns: int = 16) -> float:
    """Gap of two convex shapes, m: the most along any direction, which is sampled, ever closer to the best ones."""
    rng = np.random.default_rng(0)

    def along(ways: np.ndarray) -> np.ndarray:
        reach = sum(_extent(one, s * ways @ turn) for one, s, turn in zip(shapes, (1.0, -1.0), rotation, strict=True))
        return np.asarray(ways @ (translation[1] - translation[0]) - reach)

    ways, spread = rng.normal(size=(1500, 3)), 0.1
    ways /= np.linalg.norm(ways, axis=1)[:, None]
    for _ in range(turns):
        best = ways[np.argsort(-along(ways))[:8]]
        ways = np.vstack([best, (best[:, None] + spread * rng.normal(size=(8, 40, 3))).reshape(-1, 3)])
        ways /= np.linalg.norm(ways, axis=1)[:, None]
        spread *= 0.6
    return float(along(ways).max())


def measured_from_triangles(mesh: Mesh, place: np.ndarray) -> tuple[float, np.ndarray]:
    """Signed distance of a mesh at a place of its frame, m, and its normal there: of all triangles, inside by the winding number.

    The solid angles of the triangles, which add up to 4 pi inside, are those of A. Van Oosterom, J. Strackee, "The solid angle of
    a plane triangle", IEEE Trans. Biomed. Eng. 30, 1983.
    """
    corners = mesh.points[mesh.triangles]
    a, b, c = (corners - place).transpose(1, 0, 2)
    u, v, w = (np.linalg.norm(x, axis=1) for x in (a, b, c))
    whole = np.einsum("ti,ti->t", a, np.cross(b, c))
    part = u * v * w + np.einsum("ti,ti->t", a, b) * w + np.einsum("ti,ti->t", b, c) * u + np.einsum("ti,ti->t", c, a) * v
    sign = -1.0 if np.arctan2(whole, part).sum() > np.pi else 1.0
    ways = place - closest_points_on_triangles(place, corners)
    lengths = np.linalg.norm(ways, axis=1)
    k = lengths.argmin()
    return float(sign * lengths[k]), sign * ways[k] / lengths[k]

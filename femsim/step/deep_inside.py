"""Rigid parts that start deep in others, or in soft bodies, where contact by corners, edges, faces or nodes may see nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from contact import Shape, signed_distance
from femsim.model.parts import Part
from femsim.step.placed import Placed

#: Places along each side of the box that two shapes have in common.
_PLACES = 9


def deep_inside(
    parts: Sequence[Part], pairs: np.ndarray, placed: Placed, sizes: np.ndarray, deep: float
) -> Iterator[tuple[int, int, float]]:
    """Pairs of rigid parts that are in each other by more than ``deep`` times the smaller of their ``sizes`` (np,), m; how deep.

    How deep is a lower bound: the diameter of the largest of the balls about some places that fits into both.
    """
    solid = [k for k, part in enumerate(parts) if part.shapes and not len(part.nodes)]
    radius = np.array([max(np.linalg.norm(t) + shape.bounding_radius for shape, _, t in parts[k].shapes) for k in solid])
    centre = placed.translation[solid]
    for i, a in enumerate(solid):
        if not np.isfinite(radius[i]):
            continue
        reach = radius[i] + radius[i + 1 :]
        far = ((centre[i + 1 :] - centre[i]) ** 2).sum(axis=1) >= reach**2
        for j in np.flatnonzero(~far & np.isfinite(reach)).tolist():
            b = solid[i + 1 + j]
            if not (pairs[a, b] or pairs[b, a]):
                continue
            least = deep * min(float(sizes[a]), float(sizes[b]))
            depth = max(
                common_ball(one, other, *_between(placed, a, b, *of_one, *of_other), least)
                for one, *of_one in parts[a].shapes
                for other, *of_other in parts[b].shapes
            )
            if depth > least:
                yield a, b, depth


def _between(
    placed: Placed, a: int, b: int, turn_a: np.ndarray, place_a: np.ndarray, turn_b: np.ndarray, place_b: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Rotation and place of the frame of a shape of part b in that of one of part a."""
    rotation_a, rotation_b = placed.rotation[a] @ turn_a, placed.rotation[b] @ turn_b
    origin_a, origin_b = (placed.translation[k] + placed.rotation[k] @ place for k, place in ((a, place_a), (b, place_b)))
    return rotation_a.T @ rotation_b, rotation_a.T @ (origin_b - origin_a)


def common_ball(a: Shape, b: Shape, turn: np.ndarray, place: np.ndarray, least: float) -> float:
    """Diameter, m, of the largest of some balls that fit into two shapes; 0 where the boxes around them have less in common.

    ``turn`` (3, 3) and ``place`` (3,) are those of b in the frame of a.
    """
    low, high = _common_box(a, b, turn, place)
    other_low, other_high = _common_box(b, a, turn.T, -turn.T @ place)
    if (high - low).min() <= least or (other_high - other_low).min() <= least:
        return 0.0
    points = _places(low, high)
    in_a = signed_distance(a, points)[0]
    inside = np.flatnonzero(in_a < -0.5 * least)
    if not len(inside):
        return 0.0
    in_b = signed_distance(b, (points[inside] - place) @ turn)[0]
    return max(0.0, -2.0 * float(np.maximum(in_a[inside], in_b).min()))


def _places(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Places evenly spread over a box, (n, 3), m, its middle among them."""
    share = (np.arange(_PLACES) + 0.5) / _PLACES
    return np.asarray(low + np.stack(np.meshgrid(share, share, share, indexing="ij"), axis=-1).reshape(-1, 3) * (high - low))


def in_elements(
    parts: Sequence[Part],
    pairs: np.ndarray,
    placed: Placed,
    sizes: np.ndarray,
    deep: float,
    soft: Mapping[int, tuple[np.ndarray, np.ndarray]],
) -> Iterator[tuple[int, int]]:
    """Pairs of a rigid part and a soft body that has elements where the part is thick.

    There a ball fits into the part that is ``deep`` times as large as the part is thin (``sizes``, (np,), m), about a place in an
    element of the body. ``soft`` has its nodes, (n, 3), m, and tetrahedra, (m, 4), by the number of its part.
    """
    for a, part in enumerate(parts):
        least = deep * float(sizes[a])
        for b, (points, cells) in soft.items():
            if (pairs[a, b] or pairs[b, a]) and any(
                _elements_at(
                    shape, placed.rotation[a] @ turn, placed.translation[a] + placed.rotation[a] @ place, points, cells, least
                )
                for shape, turn, place in part.shapes
            ):
                yield a, b


def _elements_at(shape: Shape, turn: np.ndarray, place: np.ndarray, points: np.ndarray, cells: np.ndarray, least: float) -> bool:
    """Whether one of some places, about which balls of a diameter (m) fit into a shape placed so, lies in a tetrahedron."""
    from scipy.spatial import cKDTree

    if not np.isfinite(shape.bounding_radius):
        return False
    own, (lower, upper) = (points - place) @ turn, shape.aabb
    low, high = np.maximum(lower, own.min(axis=0)), np.minimum(upper, own.max(axis=0))
    if (high - low).min() <= least:
        return False
    where = _places(low, high)
    where = where[signed_distance(shape, where)[0] < -0.5 * least]
    corners = own[cells]
    corners = corners[((corners.max(axis=1) >= low) & (corners.min(axis=1) <= high)).all(axis=1)]
    if not len(where) or not len(corners):
        return False
    middle = corners.mean(axis=1)
    reach = np.linalg.norm(corners - middle[:, None], axis=2).max(axis=1)
    near = cKDTree(where).query_ball_point(middle, reach)
    tets = np.repeat(np.arange(len(corners)), [len(one) for one in near])
    away = where[np.concatenate([np.asarray(one, dtype=np.int64) for one in near])] - corners[tets, 0]
    sides = np.swapaxes(corners[tets, 1:] - corners[tets, :1], 1, 2)
    share = np.linalg.solve(sides, away[:, :, None])[:, :, 0]
    return bool(((share >= 0.0).all(axis=1) & (share.sum(axis=1) <= 1.0)).any())


def _common_box(a: Shape, b: Shape, turn: np.ndarray, place: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper corner of what the box around a has in common with that around b, in the frame of a."""
    lower, upper = b.aabb
    middle, half = place + turn @ (0.5 * (lower + upper)), np.abs(turn) @ (0.5 * (upper - lower))
    own_lower, own_upper = a.aabb
    return np.maximum(own_lower, middle - half), np.minimum(own_upper, middle + half)

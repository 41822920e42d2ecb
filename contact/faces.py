"""Surfaces of shapes as triangles that are tested against the distances of others, see :mod:`contact.face_kernels`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from contact.face_kernels import Faces
from contact.shapes import Box, Capsule, Cone, Cylinder, Mesh, Shape
from contact.turned_shapes import TURN_POINTS, Revolved, Thread

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]


def faced_pairs(shapes: Sequence[Shape], able: BoolArray) -> BoolArray:
    """Which shapes (s, s) are to be tested by their triangles against which others, given which pairs may have contact.

    Walls have triangles for whatever has edges, meshes for walls and threads; of two that have them the smaller one, whose
    triangles are finer, or the first. The edges of a thread are close to each other: its points are enough.
    """
    faced = np.zeros((len(shapes), len(shapes)), dtype=np.bool_)
    for i, one in enumerate(shapes):
        for j, other in enumerate(shapes):
            wall = isinstance(one, Revolved) and isinstance(other, Box | Capsule | Cone | Cylinder | Mesh | Revolved | Thread)
            if i == j or not able[i, j] or not (wall or (isinstance(one, Mesh) and isinstance(other, Revolved | Thread))):
                continue
            both = isinstance(other, Revolved) or (isinstance(other, Mesh) and wall)
            faced[i, j] = not both or (one.bounding_radius, i) < (other.bounding_radius, j)
    return faced


def triangles(shape: Shape) -> tuple[FloatArray, IntArray]:
    """Corners (t, 3, 3) of the triangles of a shape as :class:`Faces` has them, and the numbers (t, 3) of its points there."""
    if isinstance(shape, Mesh):
        return shape.points[shape.triangles], shape.triangles
    if not isinstance(shape, Revolved):
        return np.zeros((0, 3, 3)), np.zeros((0, 3), dtype=np.int64)
    step = 2.0 * np.pi / TURN_POINTS
    corners, numbers = [], []
    for i, (low, high) in enumerate(zip(shape.points[:-1], shape.points[1:], strict=True)):
        for k in range(TURN_POINTS):
            quad = [(*low, k), (*low, k + 1), (*high, k + 1), (*high, k)]
            place = np.array([(r, step * turn, z) for r, z, turn in quad])
            number = np.array([
                TURN_POINTS * (i + up) + (turn % TURN_POINTS if r > 0.0 else 0)
                for (r, _, turn), up in zip(quad, (0, 0, 1, 1), strict=True)
            ])  # fmt: skip
            for three in ([0, 1, 2], [0, 2, 3]):
                corners.append(place[three])
                numbers.append(number[three])
    return np.array(corners), np.array(numbers, dtype=np.int64)


def _owned(numbers: IntArray) -> BoolArray:
    """Whether each triangle (t, 3) is the first with the side opposite to each corner; never of a side without length."""
    sides = np.sort(np.stack([np.roll(numbers, -1, axis=1), np.roll(numbers, -2, axis=1)], axis=-1), axis=-1).reshape(-1, 2)
    owns = np.zeros(len(sides), dtype=np.bool_)
    owns[np.unique(sides, axis=0, return_index=True)[1]] = True
    owns &= sides[:, 0] != sides[:, 1]
    return owns.reshape(-1, 3)


def _balls(corners: FloatArray, turned: bool) -> tuple[FloatArray, FloatArray]:
    """Centres (t, 3) and radii (t,), m, of balls about triangles with these corners (t, 3, 3)."""
    mean = corners.mean(axis=1)
    if not turned:
        return mean, np.linalg.norm(corners - mean[:, None], axis=2).max(axis=1)

    def place(x: FloatArray) -> FloatArray:
        return np.stack([x[..., 0] * np.cos(x[..., 1]), x[..., 0] * np.sin(x[..., 1]), x[..., 2]], axis=-1)

    bulge = corners[..., 0].max(axis=1) * (1.0 - np.cos(np.ptp(corners[..., 1], axis=1)))
    return place(mean), np.linalg.norm(place(corners) - place(mean)[:, None], axis=2).max(axis=1) + bulge


def make_faces(shapes: Sequence[Shape], first: IntArray, faced: BoolArray, feature: int) -> Faces:
    """Return the triangles of all shapes that are tested by them, given their first points (s,) and the first free feature."""
    parts = [triangles(shape) if faced[i].any() else triangles(Box(np.ones(3))) for i, shape in enumerate(shapes)]
    turned = np.array([isinstance(shape, Revolved) for shape in shapes])
    balls = [_balls(corners, round_) for (corners, _), round_ in zip(parts, turned, strict=True)]
    return Faces(
        np.concatenate([[0], np.cumsum([len(corners) for corners, _ in parts])]).astype(np.int64), turned,
        np.concatenate([corners for corners, _ in parts]), np.concatenate([_owned(numbers) for _, numbers in parts]),
        np.concatenate([centre for centre, _ in balls]), np.concatenate([radius for _, radius in balls]),
        np.array([shape.padding if isinstance(shape, Revolved) else 0.0 for shape in shapes]), first,
        np.zeros(len(shapes)), faced, feature,
    )  # fmt: skip

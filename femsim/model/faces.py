"""Faces of rigid parts: surfaces by which soft bodies and rods have contact with them as with one another."""

from __future__ import annotations

import numpy as np

from contact import Box, Mesh, Shape, Surface
from femsim.model.bodies.deforming import DEPTH, Deforming
from femsim.model.parts import Part
from femsim.model.solids import visual


def flat(shape: Shape) -> bool:
    """Whether the faces of a shape are flat, so that triangles are the shape itself."""
    return isinstance(shape, Box | Mesh)


def faces(part: Part) -> Deforming:
    """Corners, edges and faces of the shapes of a rigid part or an obstacle, all of which are :func:`flat`.

    No node moves its points: they are where the part is, ``rest`` in its frame. A point of another body may have passed a face by
    half of the least extent of the shape and is still pushed out.
    """
    points, triangles, depth, count = [], [], [], 0
    for shape, rotation, translation in part.shapes:
        surface = visual(shape, translation, rotation)
        lower, upper = shape.aabb
        points.append(surface.points)
        triangles.append(surface.triangles + count)
        depth.append(np.full(len(surface.triangles), DEPTH * float((upper - lower).min())))
        count += len(surface.points)
    none = np.full(count, -1, dtype=np.int64)
    return Deforming(
        Surface(count, np.concatenate(triangles), np.concatenate(depth), rigid=True), np.concatenate(points),
        np.full((count, 2), -1, dtype=np.int64), np.zeros((count, 2)), none,
    )  # fmt: skip

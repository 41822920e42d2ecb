"""Faces of rigid parts: surfaces by which soft bodies and rods have contact with them as with one another."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from contact import Box, Capsule, Cylinder, Mesh, Shape, Sphere, Strand, Surface
from femsim.model.bodies.deforming import DEPTH, Deforming
from femsim.model.parts import Part
from femsim.model.solids import visual
from meshes import cylinder_triangles

#: What parts are made of that have contact by faces, as messages say it.
WITH_FACES = "Box and Mesh, or one Sphere, Capsule or Cylinder"
#: Corners of the rims of a cylinder that has contact by its faces: its caps are polygons inside of the circles.
_CORNERS = 16
#: Thickness of meshes that live: each simulation of a scene asks for it.
_KEPT: WeakKeyDictionary[Mesh, np.ndarray] = WeakKeyDictionary()


def flat(shape: Shape) -> bool:
    """Whether the faces of a shape are flat, so that triangles are the shape itself."""
    return isinstance(shape, Box | Mesh)


def centre_line(part: Part) -> tuple[np.ndarray, float] | None:
    """Centre of a part that is a ball, (1, 3), or the ends of the axis of a capsule, (2, 3), m, in its frame, and its radius, m.

    None for other parts.
    """
    if len(part.shapes) != 1:
        return None
    shape, rotation, translation = part.shapes[0]
    if isinstance(shape, Sphere):
        return np.array(translation, dtype=np.float64).reshape(1, 3), shape.radius
    if isinstance(shape, Capsule):
        half = shape.half_length * np.asarray(rotation)[:, 2]
        return np.array([translation - half, translation + half]), shape.radius
    return None


def cylinder_of(part: Part) -> Cylinder | None:
    """Return the shape of a part that is one cylinder; None for other parts."""
    shape = part.shapes[0][0] if len(part.shapes) == 1 else None
    return shape if isinstance(shape, Cylinder) else None


def has_faces(part: Part) -> bool:
    """Whether deforming bodies can have contact with a part by :func:`faces`."""
    if centre_line(part) is not None or cylinder_of(part) is not None:
        return True
    return bool(part.shapes) and all(flat(shape) for shape, _, _ in part.shapes)


def thickness(mesh: Mesh) -> np.ndarray:
    """Way through a mesh behind each of its triangles, (m,), m, to the next face: of four places of each the shortest."""
    if mesh not in _KEPT:
        _KEPT[mesh] = _measured(mesh)
    return _KEPT[mesh]


def _measured(mesh: Mesh) -> np.ndarray:
    """Shoot rays from the middle of each triangle, and from half-way to its corners, against its normal."""
    # heavy, and only for meshes that have contact by faces
    from vtkmodules.util.numpy_support import numpy_to_vtk, numpy_to_vtkIdTypeArray
    from vtkmodules.vtkCommonCore import mutable, vtkPoints
    from vtkmodules.vtkCommonDataModel import vtkCellArray, vtkPolyData, vtkStaticCellLocator

    corners, m = mesh.points[mesh.triangles], len(mesh.triangles)
    points, cells, surface = vtkPoints(), vtkCellArray(), vtkPolyData()
    as_vtk: Any = numpy_to_vtk
    as_numbers: Any = numpy_to_vtkIdTypeArray
    points.SetData(as_vtk(np.ascontiguousarray(mesh.points), deep=True))
    starts, numbers = 3 * np.arange(m + 1, dtype=np.int64), np.ascontiguousarray(mesh.triangles, dtype=np.int64).ravel()
    cells.SetData(as_numbers(starts, deep=True), as_numbers(numbers, deep=True))
    surface.SetPoints(points)
    surface.SetPolys(cells)
    search = vtkStaticCellLocator()
    search.SetDataSet(surface)
    search.BuildLocator()
    middle, normal = corners.mean(axis=1), np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    normal /= np.linalg.norm(normal, axis=1, keepdims=True)
    size = float(np.linalg.norm(np.ptp(mesh.points, axis=0)))
    out, at = np.full(m, np.inf), [0.0] * 3
    share: Any = mutable(0.0)
    number: Any = mutable(0)
    for k in range(m):
        for place in (middle[k], *(0.5 * (middle[k] + corners[k]))):
            start, end = place - 1e-6 * size * normal[k], place - size * normal[k]
            if search.IntersectWithLine(start, end, 0.0, share, at, [0.0] * 3, number):
                out[k] = min(out[k], float(np.linalg.norm(np.subtract(at, place))))
    return out


def faces(part: Part) -> list[Deforming]:
    """Corners, edges and faces of the shapes of a rigid part or an obstacle, all of which are :func:`flat`, or its centre line.

    No node moves its points: they are where the part is, ``rest`` in its frame. A point of another body may have passed a face by
    half of what is behind it, or of the least extent of the shape, and is still pushed out. A cylinder is two: its axis with its
    radius, for its round side, and a prism for its caps and their rims, see :class:`femsim.step.flat_ends.FlatEnds`.
    """
    if (line := centre_line(part)) is not None:
        return [_line(*line)]
    if (cylinder := cylinder_of(part)) is not None:
        _, rotation, translation = part.shapes[0]
        half = cylinder.half_length * np.asarray(rotation)[:, 2]
        surface = cylinder_triangles(cylinder.radius, 2.0 * cylinder.half_length, _CORNERS)
        depth = np.full(len(surface.triangles), 2.0 * DEPTH * min(cylinder.radius, cylinder.half_length))
        prism = Surface(len(surface.points), surface.triangles, depth, rigid=True)
        ends = np.array([translation - half, translation + half])
        return [_line(ends, cylinder.radius), _unmoved(prism, surface.points @ np.asarray(rotation).T + translation)]
    points, triangles, depths, count = [], [], [], 0
    for shape, rotation, translation in part.shapes:
        surface = visual(shape, translation, rotation)
        lower, upper = shape.aabb
        points.append(surface.points)
        triangles.append(surface.triangles + count)
        behind = thickness(shape) if isinstance(shape, Mesh) else np.full(len(surface.triangles), np.inf)
        depths.append(DEPTH * np.minimum(behind, float((upper - lower).min())))
        count += len(surface.points)
    return [_unmoved(Surface(count, np.concatenate(triangles), np.concatenate(depths), rigid=True), np.concatenate(points))]


def _line(ends: np.ndarray, radius: float) -> Deforming:
    """Return a line between ends (2, 3), m, or a point, (1, 3), with a radius, m."""
    arc = np.linalg.norm(ends - ends[0], axis=1)
    return _unmoved(Strand(arc, radius, rigid=True), ends)


def _unmoved(shape: Surface | Strand, points: np.ndarray) -> Deforming:
    """Return points (n, 3), m, that no node moves."""
    none = np.full((len(points), 2), -1, dtype=np.int64)
    return Deforming(shape, points, none, np.zeros((len(points), 2)), none[:, 0].copy())

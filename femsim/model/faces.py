"""Faces of rigid parts: surfaces by which soft bodies and rods have contact with them as with one another."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from contact import Box, Capsule, Cone, Cylinder, Mesh, Shape, Sphere, Strand, Surface
from femsim.model.bodies.deforming import DEPTH, Deforming
from femsim.model.parts import Part
from femsim.model.solids import cone_outline, visual
from meshes import TriMesh, cylinder_triangles, revolved_triangles

#: What parts are made of that have contact by faces, as messages say it.
WITH_FACES = "Box, Mesh, Sphere, Capsule, Cylinder and Cone"
#: Corners of the rims of a cylinder that has contact by its faces: its caps are polygons inside of the circles. And of a cone.
_CORNERS, _SIDES = 16, 24
#: Thickness of meshes that live: each simulation of a scene asks for it.
_KEPT: WeakKeyDictionary[Mesh, np.ndarray] = WeakKeyDictionary()


def flat(shape: Shape) -> bool:
    """Whether the faces of a shape are flat, so that triangles are the shape itself."""
    return isinstance(shape, Box | Mesh)


def without_faces(part: Part) -> list[Shape]:
    """Shapes of a part that only the nodes of deforming bodies can meet."""
    return [shape for shape, _, _ in part.shapes if not isinstance(shape, Box | Mesh | Sphere | Capsule | Cylinder | Cone)]


def has_faces(part: Part) -> bool:
    """Whether deforming bodies can have contact with a part by :func:`faces`."""
    return bool(part.shapes) and not without_faces(part)


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
    """Return the surfaces and lines by which deforming bodies have contact with a rigid part or obstacle that :func:`has_faces`.

    No node moves their points: they are where the part is, ``rest`` in its frame. All pieces with flat faces are one surface,
    past whose faces a point may be by half of what is behind, or of the least extent of the piece, and is still pushed out. A
    ball is a point, a capsule a line, with its radius, a cone a pyramid inside of it. A cylinder is four: its axis with its
    radius, for its round side, after that a prism for its caps, and a point of each rim, see
    :class:`femsim.step.flat_ends.FlatEnds`.
    """
    out, points, triangles, depths, count = [], [], [], [], 0
    for shape, turn, translation in part.shapes:
        if isinstance(shape, Sphere | Capsule | Cylinder):
            out += _round(shape, np.asarray(turn), np.asarray(translation))
            continue
        surface = _pyramid(shape, turn, translation) if isinstance(shape, Cone) else visual(shape, translation, turn)
        lower, upper = shape.aabb
        points.append(surface.points)
        triangles.append(surface.triangles + count)
        behind = thickness(shape) if isinstance(shape, Mesh) else np.full(len(surface.triangles), np.inf)
        depths.append(DEPTH * np.minimum(behind, float((upper - lower).min())))
        count += len(surface.points)
    if count:
        surface_of_all = Surface(count, np.concatenate(triangles), np.concatenate(depths), rigid=True)
        out.append(_unmoved(surface_of_all, np.concatenate(points)))
    return out


def _round(shape: Shape, turn: np.ndarray, translation: np.ndarray) -> list[Deforming]:
    """Line of a ball, a capsule or a cylinder in a pose; and the caps of the latter."""
    if isinstance(shape, Sphere):
        return [_unmoved(Strand(np.zeros(1), shape.radius, rigid=True), translation.reshape(1, 3))]
    assert isinstance(shape, Capsule | Cylinder)
    half = shape.half_length * turn[:, 2]
    line = Strand(np.array([0.0, 2.0 * shape.half_length]), shape.radius, rigid=True)
    side = _unmoved(line, np.array([translation - half, translation + half]))
    if isinstance(shape, Capsule):
        return [side]
    drawn = cylinder_triangles(shape.radius, 2.0 * shape.half_length, _CORNERS)
    depth = np.full(len(drawn.triangles), 2.0 * DEPTH * min(shape.radius, shape.half_length))
    caps = _unmoved(Surface(len(drawn.points), drawn.triangles, depth, rigid=True), drawn.points @ turn.T + translation)
    rims = [_unmoved(Strand(np.zeros(1), 0.0, rigid=True), end.reshape(1, 3)) for end in side.rest]
    return [replace(one, cylinder=shape.radius) for one in (side, caps, *rims)]


def _pyramid(cone: Cone, turn: np.ndarray, translation: np.ndarray) -> TriMesh:
    """Pyramid, or a frustum of one, inside of a cone in a pose."""
    drawn = revolved_triangles(cone_outline(cone), _SIDES)
    return replace(drawn, points=drawn.points @ np.asarray(turn).T + translation)


def _unmoved(shape: Surface | Strand, points: np.ndarray) -> Deforming:
    """Return points (n, 3), m, that no node moves."""
    none = np.full((len(points), 2), -1, dtype=np.int64)
    return Deforming(shape, points, none, np.zeros((len(points), 2)), none[:, 0].copy())

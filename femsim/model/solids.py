"""Shapes as solid bodies: their mass properties and the triangles that show them."""

from __future__ import annotations

import numpy as np

from contact import Box, Capsule, Cylinder, Mesh, Plane, Shape, Sphere
from femsim.base.errors import InputError
from meshes import (
    TriMesh,
    box_triangles,
    capsule_triangles,
    cylinder_triangles,
    make_trimesh,
    solid_mass_properties,
    sphere_triangles,
)


def mass_properties(shape: Shape) -> tuple[float, np.ndarray, np.ndarray]:
    """Mass at density 1, centre of mass and inertia about it (kg, m, kg m^2) of a homogeneous shape in its frame."""
    zero = np.zeros(3)
    if isinstance(shape, Box):
        x, y, z = shape.half_extents
        m = 8.0 * x * y * z
        return m, zero, m / 3.0 * np.diag([y * y + z * z, x * x + z * z, x * x + y * y])
    if isinstance(shape, Sphere):
        m = 4.0 / 3.0 * np.pi * shape.radius**3
        return m, zero, 0.4 * m * shape.radius**2 * np.eye(3)
    if isinstance(shape, Cylinder):
        r, h = shape.radius, 2.0 * shape.half_length
        m = np.pi * r * r * h
        side = m * (3.0 * r * r + h * h) / 12.0
        return m, zero, np.diag([side, side, 0.5 * m * r * r])
    if isinstance(shape, Capsule):
        r, h = shape.radius, 2.0 * shape.half_length
        tube, ball = np.pi * r * r * h, 4.0 / 3.0 * np.pi * r**3
        side = tube * (3 * r * r + h * h) / 12.0 + ball * (0.4 * r * r + 0.25 * h * h + 0.375 * h * r)
        return tube + ball, zero, np.diag([side, side, 0.5 * tube * r * r + 0.4 * ball * r * r])
    if isinstance(shape, Mesh):
        return solid_mass_properties(make_trimesh(shape.points, shape.triangles, name=shape.name, source=""), 1.0)
    raise InputError(f"a {type(shape).__name__} has no mass properties.")


def with_arm(pad: TriMesh, offset: np.ndarray, closing: np.ndarray) -> TriMesh:
    """Draw a finger: its pad and a thin bar from there towards the base (it touches nothing); frame of the finger's link."""
    direction = closing / np.linalg.norm(closing)
    along = -(offset - (offset @ direction) * direction)  # to the base, square to the closing direction
    length = float(np.linalg.norm(along))
    if length == 0.0:
        return pad
    third = np.cross(along / length, direction)
    depth = -float((pad.points @ direction).min())  # the back of the pad
    bar = box_triangles(np.array([0.005, 0.016, length]))
    rotation = np.column_stack([direction, -third, along / length])
    points = bar.points @ rotation.T + 0.5 * along - (depth + 0.0025) * direction
    triangles = np.concatenate([pad.triangles, bar.triangles + len(pad.points)])
    return make_trimesh(np.concatenate([pad.points, points]), triangles, name=pad.name, source="")


def visual(shape: Shape, translation: np.ndarray, rotation: np.ndarray) -> TriMesh:
    """Triangles of a shape, placed: what the outputs show."""
    if isinstance(shape, Box):
        surface = box_triangles(2.0 * np.asarray(shape.half_extents))
    elif isinstance(shape, Sphere):
        surface = sphere_triangles(shape.radius)
    elif isinstance(shape, Cylinder):
        surface = cylinder_triangles(shape.radius, 2.0 * shape.half_length)
    elif isinstance(shape, Capsule):
        surface = capsule_triangles(shape.radius, 2.0 * shape.half_length)
    elif isinstance(shape, Mesh):
        surface = make_trimesh(shape.points, shape.triangles, name=shape.name, source="")
    elif isinstance(shape, Plane):
        corners = 0.5 * np.array([[-1.0, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0]])
        surface = make_trimesh(corners, np.array([[0, 1, 2], [0, 2, 3]]), name="plane", source="")
    else:
        raise InputError(f"a {type(shape).__name__} has no triangles to draw.")
    return make_trimesh(surface.points @ rotation.T + translation, surface.triangles, name=surface.name, source="")

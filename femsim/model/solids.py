"""Shapes as solid bodies: their mass properties and the triangles that show them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from contact import Box, Capsule, Cone, Cylinder, Mesh, Plane, Revolved, Shape, Sphere, Thread
from femsim.base.errors import InputError, naming_fields
from femsim.base.rotations import quaternion_from_vector, quaternion_to_matrix
from meshes import (
    TriMesh,
    box_triangles,
    capsule_triangles,
    cylinder_triangles,
    make_trimesh,
    padded_outline,
    revolved_mass_properties,
    revolved_triangles,
    solid_mass_properties,
    sphere_triangles,
    thread_triangles,
)

#: Points on the half circle of a padded edge, and slices and sectors of a thread, where mass is summed up.
_MASS_ARCS, _SLICES, _SECTORS = 64, 2000, 96
#: Points between the ends of an edge of a box, on the axis of a capsule and of a cylinder, beside its own features.
_BETWEEN = 3


@naming_fields
@dataclass(frozen=True)
class Piece:
    """A shape in its place among those of a :class:`Compound`.

    Parameters
    ----------
    shape : Shape
        Any shape but a Plane.
    position : (3,) float, m
        Where the origin of the shape is.
    rotation : (3,) float, rad
        Rotation vector of the shape.

    Raises
    ------
    InputError
        Something else, numbers that are not finite, or a Plane, which has no end.
    """

    shape: Shape
    position: Sequence[float] | np.ndarray = (0.0, 0.0, 0.0)
    rotation: Sequence[float] | np.ndarray = (0.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        if not isinstance(self.shape, Box | Sphere | Capsule | Cylinder | Cone | Mesh | Revolved | Thread):
            raise InputError(
                f"piece of a compound is a {type(self.shape).__name__}; allowed are Box, Sphere, Capsule, Cylinder, Cone, "
                "Mesh, Revolved and Thread."
            )
        for field in ("position", "rotation"):
            value = np.asarray(getattr(self, field), dtype=np.float64)
            if value.shape != (3,) or not np.isfinite(value).all():
                raise InputError(f"{field} of a piece is {getattr(self, field)!r}; allowed are 3 finite numbers.")

    @property
    def pose(self) -> tuple[np.ndarray, np.ndarray]:
        """Rotation (3, 3) and position (3,), m, of the shape in the frame of the compound."""
        turn = quaternion_to_matrix(quaternion_from_vector(np.asarray(self.rotation, dtype=np.float64)))
        return turn, np.asarray(self.position, dtype=np.float64)


@naming_fields
@dataclass(frozen=True)
class Compound:
    """Several shapes that are one rigid thing: a socket, a bracket, a plug.

    Where pieces overlap, their mass counts twice; inner corners of pieces take part in contact where they lie on the surface.

    Parameters
    ----------
    pieces : sequence of Piece
        At least one.

    Raises
    ------
    InputError
        No piece, or something that is no Piece.
    """

    pieces: Sequence[Piece]

    def __post_init__(self) -> None:
        pieces = tuple(self.pieces)
        wrong = [piece for piece in pieces if not isinstance(piece, Piece)]
        if not pieces or wrong:
            what = f"holds a {type(wrong[0]).__name__}" if wrong else "holds nothing"
            raise InputError(f"compound {what}; give fs.Compound([fs.Piece(shape, position, rotation), ...]).")
        object.__setattr__(self, "pieces", pieces)


def placed(shape: Shape | Compound, rotation: np.ndarray, translation: np.ndarray) -> list[tuple[Shape, np.ndarray, np.ndarray]]:
    """Shapes of a solid and their poses, where the solid has this pose, (3, 3) and (3,) m."""
    if not isinstance(shape, Compound):
        return [(shape, rotation, translation)]
    poses = [piece.pose for piece in shape.pieces]
    return [
        (piece.shape, rotation @ turn, rotation @ place + translation)
        for piece, (turn, place) in zip(shape.pieces, poses, strict=True)
    ]


def mass_properties(shape: Shape | Compound) -> tuple[float, np.ndarray, np.ndarray]:
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
    if isinstance(shape, Compound):
        return _sum_of_pieces(shape)
    if isinstance(shape, Mesh):
        return solid_mass_properties(make_trimesh(shape.points, shape.triangles, name=shape.name, source=""), 1.0)
    if isinstance(shape, Cone):
        return revolved_mass_properties(cone_outline(shape))
    if isinstance(shape, Revolved):
        return revolved_mass_properties(padded_outline(shape.points, shape.padding, _MASS_ARCS))
    if isinstance(shape, Thread):
        return _mass_of_thread(shape)
    raise InputError(f"a {type(shape).__name__} has no mass properties.")


def cone_outline(cone: Cone) -> np.ndarray:
    """Radius and z, (n, 2) m, of the outline of a cone in the half plane, counter-clockwise."""
    h = cone.half_length
    points = [(0.0, -h), (cone.radius, -h), (cone.top, h)]
    return np.array(points if cone.top == 0.0 else [*points, (0.0, h)])


def _mass_of_thread(shape: Thread) -> tuple[float, np.ndarray, np.ndarray]:
    """Mass properties of a threaded rod, or of a hexagonal nut: sums over slices, each one of sectors."""
    z = shape.length * ((np.arange(_SLICES) + 0.5) / _SLICES - 0.5)
    angle = 2.0 * np.pi * np.arange(_SECTORS) / _SECTORS
    r = shape.radius_at(z[:, None] - shape.pitch * angle / (2.0 * np.pi))
    share = (shape.length / _SLICES) * (2.0 * np.pi / _SECTORS)
    mass = share * float((r**2).sum()) / 2.0
    direction = np.stack(np.broadcast_arrays(np.cos(angle), np.sin(angle)))
    first = np.append(share * np.einsum("zk,ik->i", r**3, direction) / 3.0, share * float((z[:, None] * r**2).sum()) / 2.0)
    second = np.zeros((3, 3))
    second[:2, :2] = share * np.einsum("zk,ik,jk->ij", r**4, direction, direction) / 4.0
    second[:2, 2] = second[2, :2] = share * np.einsum("z,zk,ik->i", z, r**3, direction) / 3.0
    second[2, 2] = share * float((z[:, None] ** 2 * r**2).sum()) / 2.0
    if shape.across:  # the hexagon without the hole
        side = shape.across / np.sqrt(3.0)
        prism = 1.5 * np.sqrt(3.0) * side**2 * shape.length
        own = np.diag([5.0 / 24.0 * side**2] * 2 + [shape.length**2 / 12.0])
        mass, first, second = prism - mass, -first, prism * own - second
    centre = first / mass
    second -= mass * np.outer(centre, centre)
    return mass, centre, np.trace(second) * np.eye(3) - second


def _sum_of_pieces(shape: Compound) -> tuple[float, np.ndarray, np.ndarray]:
    """Mass properties of a compound, each piece moved to the common centre (Huygens and Steiner)."""
    own = [mass_properties(piece.shape) for piece in shape.pieces]
    poses = [piece.pose for piece in shape.pieces]
    centres = [turn @ centre + place for (_, centre, _), (turn, place) in zip(own, poses, strict=True)]
    mass = sum(m for m, _, _ in own)
    middle = np.sum([m * c for (m, _, _), c in zip(own, centres, strict=True)], axis=0) / mass
    inertia = np.zeros((3, 3))
    for (m, _, about), (turn, _), centre in zip(own, poses, centres, strict=True):
        arm = centre - middle
        inertia += turn @ about @ turn.T + m * (arm @ arm * np.eye(3) - np.outer(arm, arm))
    return mass, middle, inertia


def with_arm(pad: TriMesh, offset: np.ndarray, closing: np.ndarray) -> TriMesh:
    """Draw a finger: its pad and a thin bar from there towards the base (which has no contact); frame of the finger's link."""
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


def visual(shape: Shape | Compound, translation: np.ndarray, rotation: np.ndarray) -> TriMesh:
    """Triangles of a solid, placed: what the outputs show."""
    if isinstance(shape, Compound):
        pieces = [visual(one, place, turn) for one, turn, place in placed(shape, rotation, translation)]
        first = np.cumsum([0, *(len(piece.points) for piece in pieces)])
        triangles = np.concatenate([piece.triangles + start for piece, start in zip(pieces, first, strict=False)])
        return make_trimesh(np.concatenate([piece.points for piece in pieces]), triangles, name="compound", source="")
    if isinstance(shape, Box):
        surface = box_triangles(2.0 * np.asarray(shape.half_extents))
    elif isinstance(shape, Sphere):
        surface = sphere_triangles(shape.radius)
    elif isinstance(shape, Cylinder):
        surface = cylinder_triangles(shape.radius, 2.0 * shape.half_length)
    elif isinstance(shape, Cone):
        surface = revolved_triangles(cone_outline(shape))
    elif isinstance(shape, Capsule):
        surface = capsule_triangles(shape.radius, 2.0 * shape.half_length)
    elif isinstance(shape, Mesh):
        surface = make_trimesh(shape.points, shape.triangles, name=shape.name, source="")
    elif isinstance(shape, Revolved):
        surface = revolved_triangles(padded_outline(shape.points, shape.padding))
    elif isinstance(shape, Thread):
        surface = thread_triangles(
            shape.pitch, shape.major, shape.minor, shape.crest, shape.length, shape.flank, shape.across
        )  # fmt: skip
    elif isinstance(shape, Plane):
        corners = 0.5 * np.array([[-1.0, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0]])
        surface = make_trimesh(corners, np.array([[0, 1, 2], [0, 2, 3]]), name="plane", source="")
    else:
        raise InputError(f"a {type(shape).__name__} has no triangles to draw.")
    return make_trimesh(surface.points @ rotation.T + translation, surface.triangles, name=surface.name, source="")


def close_points(shape: Shape) -> tuple[np.ndarray, np.ndarray]:
    """Points (k, 3), m, and radii (k,), m, by which the depth of a shape in others is measured: its features, and more between.

    These are a lattice on a box, points along a capsule, a cylinder and a cone, so that boxes whose faces lie flush are seen too.
    """
    points, radii = shape.features()
    if isinstance(shape, Box | Capsule | Cylinder | Cone):
        more, radius = shape.features(_BETWEEN)
        points, radii = np.concatenate([points, more]), np.concatenate([radii, radius])
    if isinstance(shape, Cylinder | Cone):
        axis = np.zeros((2 + _BETWEEN, 3))
        axis[:, 2] = np.linspace(-shape.half_length, shape.half_length, 2 + _BETWEEN)
        points, radii = np.concatenate([points, axis]), np.concatenate([radii, np.zeros(len(axis))])
    return points, radii

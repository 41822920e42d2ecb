"""Shapes thinner than the surface nodes of a soft body are apart: how deep they are in it, where contact at nodes is blind.

And shapes that press on too few of these nodes for their force to be right.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from contact import Box, Capsule, Mesh, Revolved, Shape, Sphere
from femsim.model.parts import Part
from femsim.step.placed import Placed
from femsim.step.state import State
from femsim.step.system import System
from femsim.step.thin_kernels import deepest, find_below

#: A shape may pass between the surface nodes of a soft body where an extent of it is below this many edges of the surface, as
#: between the four of a square. It is a needle where two are below this part of them, and a plate, which will easily pass with
#: its edge, where one is below this part.
PASSES, NEEDLE, PLATE = 1.5, 0.5, 0.25
#: So many edges across a flat and a round shape give its force within about a tenth, but where a rim is just on nodes; measured.
_ENOUGH_FLAT, _ENOUGH_ROUND = 2.0, 4.0
#: Points on a shape are at most this part of those edges apart, but not more than so many between the ends of an edge.
_APART, _MOST_BETWEEN = 0.5, 20
#: Directions in which points on a ball are looked at: to corners, middles of edges and middles of faces of a cube.
_AROUND = np.stack(np.meshgrid(*[[-1.0, 0.0, 1.0]] * 3, indexing="ij"), axis=-1).reshape(-1, 3)
_AROUND = np.delete(_AROUND, 13, axis=0) / np.linalg.norm(np.delete(_AROUND, 13, axis=0), axis=1)[:, None]
#: Depths below about this part of them do not count: what presses with its face is in by rounding.
_LEAST = 0.1
#: So many of them around a shape its nearest node is looked for.
_REACH = 3.0


@dataclass(frozen=True)
class Thin:
    """A shape that is thin beside the edges of the surface of a soft body that it may have contact with.

    Attributes
    ----------
    part, soft : int
        Numbers of the part that has the shape, and of the soft body.
    shape : int
        Number of the shape in its part.
    extents : ndarray, (3,), m
        Of the box around the shape, ascending; of a hollow one the first is its wall.
    edge : float, m
        Median edge of the surface elements of the body.
    """

    part: int
    soft: int
    shape: int
    extents: np.ndarray
    edge: float

    @property
    def plate(self) -> bool:
        """Whether it easily passes between nodes with its edge."""
        return float(self.extents[0]) < PLATE * self.edge

    @property
    def needle(self) -> bool:
        """Whether it is thin in two directions: it passes between nodes whichever way it goes."""
        return float(self.extents[1]) < NEEDLE * self.edge


def thin_shapes(parts: Sequence[Part], pairs: np.ndarray, sizes: np.ndarray) -> Iterator[Thin]:
    """Shapes thinner than the edges of soft bodies that may have contact with them by the nodes of these alone.

    ``pairs``, (np, np), bool, are those of points and shapes; ``sizes``, (np,), m, are those of `femsim.step.vitals.Sizes.part`.
    """
    return (one for one in _on_soft(parts, pairs, sizes) if one.extents[0] < PASSES * one.edge)


def narrow_shapes(parts: Sequence[Part], pairs: np.ndarray, sizes: np.ndarray) -> Iterator[tuple[Thin, float]]:
    """Shapes that few nodes of soft bodies bear, each with the edge, m, that would be enough; arguments of :func:`thin_shapes`.

    Needles and plates are not among them: they pass between nodes.
    """
    for one in _on_soft(parts, pairs, sizes):
        flat = isinstance(parts[one.part].shapes[one.shape][0], Box | Mesh)
        enough = float(one.extents[1]) / (_ENOUGH_FLAT if flat else _ENOUGH_ROUND)
        if not (one.needle or one.plate) and enough < one.edge * (1.0 - 1e-9):
            yield one, enough


def _on_soft(parts: Sequence[Part], pairs: np.ndarray, sizes: np.ndarray) -> Iterator[Thin]:
    """Shapes that may have contact with soft bodies by the nodes of these alone."""
    for k, part in enumerate(parts):
        for number, (shape, _, _) in enumerate(part.shapes):
            for soft in (one for one in np.flatnonzero(pairs[:, k]).tolist() if len(parts[one].triangles)):
                yield Thin(k, soft, number, thinnest(shape), float(sizes[soft]))


def thickness(shape: Shape) -> float:
    """Smallest extent of a shape, m, or the wall of a bowl."""
    lower, upper = shape.aabb
    smallest = float((upper - lower).min())
    return min(smallest, 2.0 * shape.padding) if isinstance(shape, Revolved) else smallest


def thinnest(shape: Shape) -> np.ndarray:
    """Extents of the box around a shape, ascending, (3,), m; of a bowl or a hollow mesh the first is the wall.

    The wall of a mesh is twice the depth of its deepest place on its distance grid, which cuts off half a cell on either side.
    """
    lower, upper = shape.aabb
    extents = np.sort(upper - lower)
    extents[0] = thickness(shape)
    if isinstance(shape, Mesh):
        grid = shape.grid()
        extents[0] = min(extents[0], grid.spacing - 2.0 * min(0.0, float(grid.values.min())))
    return np.asarray(extents)


class ThinShapes:
    """Measures how deep such shapes are in soft bodies. There are no rows for that in the contact problem.

    Points all over each shape are tested, half an edge apart: whether they are inside of the surface of the body, and how far
    from it. Most are ruled out by the box around the body, and by the normal at the nearest node.

    Parameters
    ----------
    system : System
        The bodies.
    parts : sequence of Part
        All parts of a scene.
    thin : sequence of Thin
        Its thin shapes.
    """

    def __init__(self, system: System, parts: Sequence[Part], thin: Sequence[Thin]) -> None:
        self._system, self._parts, self._thin = system, parts, list(thin)
        self._points = [_points(parts[one.part], one) for one in self._thin]
        self._surfaces = {one.soft: np.unique(parts[one.soft].triangles, return_inverse=True) for one in self._thin}

    def depths(self, state: State, placed: Placed) -> Iterator[tuple[Thin, float]]:
        """Depths, m, of those that are more than a little inside of a soft body in a state."""
        surfaces: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        for one, local in zip(self._thin, self._points, strict=True):
            if one.soft not in surfaces:
                part, (nodes, inverse) = self._parts[one.soft], self._surfaces[one.soft]
                body, q = self._system.bodies[part.body], state.q[self._system.q_slices[part.body]]
                surfaces[one.soft] = body.contact_points(q, nodes), inverse.reshape(-1, 3)
            points = local @ placed.rotation[one.part].T + placed.translation[one.part]
            depth = depth_inside(points, *surfaces[one.soft], _REACH * one.edge, _LEAST * one.edge)
            if depth > 0.0:
                yield one, depth


def depth_inside(
    points: np.ndarray, nodes: np.ndarray, triangles: np.ndarray, reach: float = math.inf, least: float = 0.0
) -> float:
    """How far the deepest of some points is inside of a closed surface, m; 0 where none is.

    Parameters
    ----------
    points : ndarray, (k, 3), m
        The points.
    nodes : ndarray, (n, 3), m
        Nodes of the surface.
    triangles : ndarray of int, (m, 3)
        Its triangles, outward.
    reach : float, m
        Nodes so far around the points are looked at for the nearest, all where there is none.
    least : float, m
        Points count that are further than this below the plane of the nearest node, across the mean normal of its triangles.
    """
    below = np.empty(len(points), dtype=np.bool_)
    if not find_below(points, nodes, triangles, reach, least, below):
        return 0.0
    return float(deepest(points[below], nodes[triangles]))


def _points(part: Part, thin: Thin) -> np.ndarray:
    """Points all over a shape in the frame of its part, (k, 3), m."""
    shape, rotation, translation = part.shapes[thin.shape]
    if isinstance(shape, Box):
        counts = np.minimum(np.ceil(2.0 * shape.half_extents / (_APART * thin.edge)), 1 + _MOST_BETWEEN).astype(int) + 1
        ticks = [np.linspace(-half, half, count) for half, count in zip(shape.half_extents, counts, strict=True)]
        points = np.stack(np.meshgrid(*ticks, indexing="ij"), axis=-1).reshape(-1, 3)
    elif isinstance(shape, Mesh):
        corner, apart = shape.points[shape.triangles], _APART * thin.edge
        longest = float(np.linalg.norm(corner - np.roll(corner, 1, axis=1), axis=2).max())
        points, _ = shape.features(min(max(math.ceil(longest / apart) - 1, 0), _MOST_BETWEEN))
        points = points[np.unique(np.floor(points / apart), axis=0, return_index=True)[1]]
    else:
        between = math.ceil(float(thin.extents[2]) / (_APART * thin.edge)) - 1
        points, _ = shape.features(min(max(between, 0), _MOST_BETWEEN))
        if isinstance(shape, Sphere | Capsule):  # their points are the centres of balls
            points = np.concatenate([points, *(points + shape.radius * way for way in _AROUND)])
    return np.asarray(points @ rotation.T + translation)

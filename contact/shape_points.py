"""Which points of a detector belong to which shapes: six kinds, by the first point of a shape, in the order of ``features``.

Also checks of what a detector is given: numbers of bodies, radii of points, which bodies may have contact.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypedDict

import numpy as np
import numpy.typing as npt

from contact.errors import ContactError
from contact.shapes import RIM_POINTS, Box, Capsule, Cone, Cylinder, Mesh, PlacedShape, Revolved, Shape, Sphere, Thread

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]


class FirstPoints(TypedDict):
    """First points of shapes by what these do in a :class:`contact.detect.Detector`, which says more of each; -1 for others."""

    shape_corner: list[int]
    shape_rim: list[int]
    shape_edge: list[int]
    shape_face: list[int]
    shape_centre: list[int]
    shape_thread: list[int]


#: Shapes of each kind.
_KINDS: dict[str, tuple[type, ...]] = {
    "shape_corner": (Box,),
    "shape_rim": (Cylinder, Cone),
    "shape_edge": (Mesh, Capsule),
    "shape_face": (Mesh, Revolved),
    "shape_centre": (Sphere,),
    "shape_thread": (Thread,),
}
#: What must be given for each kind, beside -1.
_WANTED = {
    "shape_corner": "for a box the first of eight points of its body with radius 0, in the order of Box.features()",
    "shape_rim": f"for a cylinder or cone the first of {2 * RIM_POINTS} points of its body with radius 0, in the order of "
    "its features()",
    "shape_edge": "for a mesh or capsule the first of the points of its features(), of its body",
    "shape_face": "for a Revolved or mesh the first of the points of its features(), of its body",
    "shape_centre": "for a sphere its centre, a point of its body and radius",
    "shape_thread": "for a thread the first of the points of its features(), of its body and with radius 0",
}
#: Kinds whose points must have the radii of ``features``, which are 0 for all but spheres; edges and faces have none of points.
_BY_RADIUS = ("shape_corner", "shape_rim", "shape_centre", "shape_thread")


def first_points(shapes: Sequence[Shape], first: Sequence[int]) -> FirstPoints:
    """Arguments of a :class:`contact.detect.Detector` for shapes whose points are those of ``features``.

    Parameters
    ----------
    shapes : sequence of Shape
        The shapes, in the order of the detector.
    first : sequence of int
        Number of the first point of each.

    Returns
    -------
    FirstPoints
        To be given to it by ``**``.
    """

    def of(kind: str) -> list[int]:
        return [start if isinstance(shape, _KINDS[kind]) else -1 for shape, start in zip(shapes, first, strict=True)]

    return FirstPoints(
        shape_corner=of("shape_corner"), shape_rim=of("shape_rim"), shape_edge=of("shape_edge"), shape_face=of("shape_face"),
        shape_centre=of("shape_centre"), shape_thread=of("shape_thread"),
    )  # fmt: skip


class ShapePoints(NamedTuple):
    """Points of a detector and its shapes: body (p,) and radius, m, (p,) of each point; the shapes and the body of each, (s,)."""

    body: IntArray
    radius: FloatArray
    shapes: tuple[PlacedShape, ...]
    shape_body: IntArray

    def own(self, s: int, first: int) -> slice:
        """Numbers of the points of shape ``s``, as many as its ``features()`` has, the first of which is point ``first``."""
        return slice(first, first + len(self.shapes[s].shape.features()[0]))

    def firsts(self, kind: str, value: npt.ArrayLike | None) -> IntArray:
        """First point of each shape (s,), -1 for none, and for all where nothing is given.

        Raises
        ------
        ContactError
            No whole numbers, or points that are not those of a shape of this kind.
        """
        first = np.full(len(self.shapes), -1) if value is None else np.array(value)
        if first.shape != (len(self.shapes),) or (len(self.shapes) and first.dtype.kind not in "iu"):
            raise ContactError(
                f"Detector: {kind} has shape {first.shape} and type {first.dtype}; give a whole number for each of the "
                f"{len(self.shapes)} shapes."
            )
        for s in np.flatnonzero(first != -1):
            if not self._has(kind, int(s), int(first[s])):
                raise ContactError(f"Detector: {kind}[{s}] is {first[s]}; give -1, or {_WANTED[kind]}.")
        return first.astype(np.int64)

    def neighbours(self, meshes: IntArray, first: IntArray) -> tuple[IntArray, IntArray]:
        """Points that share an edge with each vertex of these ``meshes`` (k,), whose first points are ``first`` (k,).

        Returned are the place of the first one of each point among them, (p + 1,), and them, in the order of the points.
        """
        pairs = [np.zeros((0, 2), dtype=np.int64)]
        for s, start in zip(meshes.tolist(), first.tolist(), strict=True):
            shape = self.shapes[s].shape
            assert isinstance(shape, Mesh)
            _, number = np.unique(shape.triangles, return_inverse=True)
            corners = start + number.reshape(-1, 3)
            pairs += [corners[:, [0, 1]], corners[:, [1, 2]], corners[:, [2, 0]]]  # closed: each edge comes in both directions
        edges = np.concatenate(pairs)
        edges = edges[np.argsort(edges[:, 0], kind="stable")]
        starts = np.searchsorted(edges[:, 0], np.arange(len(self.body) + 1))
        return starts.astype(np.int64), np.ascontiguousarray(edges[:, 1], dtype=np.int64)

    def _has(self, kind: str, s: int, first: int) -> bool:
        """Whether the points from ``first`` on are those of a shape."""
        if not isinstance(self.shapes[s].shape, _KINDS[kind]) or first < 0:
            return False
        own = self.own(s, first)
        if own.stop > len(self.body) or (self.body[own] != self.shape_body[s]).any():
            return False
        return kind not in _BY_RADIUS or bool((self.radius[own] == self.shapes[s].shape.features()[1]).all())


def whole_numbers(field: str, value: npt.ArrayLike, length: int | None, limit: int | None) -> IntArray:
    """Return whole numbers (length,) in [0, limit) as int64."""
    array = np.array(value)
    if array.size == 0:
        array = array.astype(np.int64)
    if array.ndim != 1 or array.dtype.kind not in "iu" or (length is not None and len(array) != length):
        wanted = "(p,)" if length is None else f"({length},)"
        raise ContactError(
            f"Detector: {field} has shape {array.shape} and type {array.dtype}; give whole numbers of shape {wanted}."
        )
    numbers = np.ascontiguousarray(array, dtype=np.int64)
    bad = np.flatnonzero((numbers < 0) | (numbers >= (np.iinfo(np.int64).max if limit is None else limit)))
    if len(bad):
        allowed = "0 or more" if limit is None else f"0 to {limit - 1}, as may_contact has {limit} rows"
        raise ContactError(f"Detector: {field}[{bad[0]}] is {numbers[bad[0]]}; allowed are {allowed}.")
    return numbers


def bodies_in_contact(may_contact: npt.ArrayLike) -> BoolArray:
    """Return which bodies may have contact (nb, nb); none with itself."""
    matrix = np.array(may_contact)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or matrix.dtype != np.bool_:
        raise ContactError(
            f"Detector: may_contact has shape {matrix.shape} and type {matrix.dtype}; give a square matrix "
            "of bool, one row a body."
        )
    np.fill_diagonal(matrix, False)
    return matrix


def radii(point_radius: npt.ArrayLike, n_points: int) -> FloatArray:
    """Return the radii of points (p,), m."""
    radius: FloatArray = np.array(point_radius, dtype=np.float64, order="C")
    if radius.shape != (n_points,):
        raise ContactError(f"Detector: point_radius has shape {radius.shape}; give one radius for each of the {n_points} points.")
    bad = np.flatnonzero(~((radius >= 0.0) & np.isfinite(radius)))
    if len(bad):
        raise ContactError(f"Detector: point_radius[{bad[0]}] is {radius[bad[0]]} m; give 0 or a positive, finite length.")
    return radius

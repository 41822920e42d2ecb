"""Compiled geometry of deforming surfaces: the features of all bodies, their normals, and how deep points lie inside."""

from __future__ import annotations

from math import acos, inf, sqrt
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from contact.compiled import njit
from contact.distance_kernels import closest_on_triangle
from contact.tree_kernels import Forest, fit_boxes, tree_of
from contact.vector_kernels import Vector, cross, dot, minus, norm, over, plus, row, times, write_row

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

#: An edge between faces whose normals have at least this cosine is flat: contacts beside it are those of its vertices.
FLAT = 0.9986
#: A convex edge between faces whose normals have less than this cosine is keen: it presses into a flat surface between vertices.
KEEN = 0.98


class Features(NamedTuple):
    """Points, triangles and edges of all bodies, numbered through; n points, nt triangles, ne edges.

    Attributes
    ----------
    points : ndarray, (n, 3), m
        Positions.
    triangles : ndarray, (nt, 3)
        Corners a, b, c of each triangle, counter-clockwise from outside.
    triangle_edges : ndarray, (nt, 3)
        Edges ab, bc, ca of each triangle.
    edges : ndarray, (ne, 4)
        The two ends of an edge, and the third corners of its two faces; -1 for a segment of a strand, which has no faces.
    edge_faces : ndarray, (ne, 2)
        The two faces of an edge, -1 for a segment of a strand.
    fan_start, fan : ndarray, (n + 1,) and (3 nt,)
        Triangles round point p: ``fan[fan_start[p]:fan_start[p + 1]]``.
    depth : ndarray, (nt,), m
        How deep a point may lie behind each triangle and still be pushed out.
    arc : ndarray, (n,), m
        Place of each point of a strand along it.
    face_normal, vertex_normal, edge_normal : ndarray, (nt, 3), (n, 3) and (ne, 3)
        Outward unit normals; those of vertices are weighted by angle, those of edges the mean of the two faces. They are zero for
        the points and segments of strands.
    sharp : ndarray, (ne,)
        Edges that can cross others: convex ones that are not flat, and all segments of strands.
    keen, level : ndarray, (ne,)
        Edges that are keen, as all of strands are, and those of surfaces that are flat or convex, which a keen edge of a rigid
        body can cross.
    amid : ndarray, (n,)
        Points amid a flat face of a rigid body, which press nothing that its rim, or a vertex of the other side, does not.
    """

    points: FloatArray
    triangles: IntArray
    triangle_edges: IntArray
    edges: IntArray
    edge_faces: IntArray
    fan_start: IntArray
    fan: IntArray
    depth: FloatArray
    arc: FloatArray
    face_normal: FloatArray
    vertex_normal: FloatArray
    edge_normal: FloatArray
    sharp: BoolArray
    keen: BoolArray
    level: BoolArray
    amid: BoolArray


@njit(cache=True, inner=True)
def unit(a: Vector) -> Vector:
    """Scale a vector to length 1; zero stays zero."""
    return over(a, max(norm(a), 1e-300))


@njit(cache=True, inner=True)
def angle_between(a: Vector, b: Vector) -> float:
    """Angle between two vectors, rad; a right angle where one of them is zero."""
    return acos(min(max(dot(a, b) / max(sqrt(dot(a, a) * dot(b, b)), 1e-300), -1.0), 1.0))


@njit(cache=True, inner=True)
def set_face_and_vertex_normals(features: Features) -> None:
    """Fill the normals of faces, (b - a) x (c - a), and of vertices, the sum of those of its faces times their angles there."""
    points, vertex_normal = features.points, features.vertex_normal
    vertex_normal[:] = 0.0
    for t in range(features.triangles.shape[0]):
        corner = features.triangles[t]
        a = row(points, corner[0])
        normal = unit(cross(minus(row(points, corner[1]), a), minus(row(points, corner[2]), a)))
        write_row(features.face_normal, t, normal)
        for k in range(3):
            p, q, r = corner[k], corner[(k + 1) % 3], corner[(k + 2) % 3]
            here = row(points, p)
            angle = angle_between(minus(row(points, q), here), minus(row(points, r), here))
            write_row(vertex_normal, p, plus(row(vertex_normal, p), times(angle, normal)))
    for p in range(points.shape[0]):
        write_row(vertex_normal, p, unit(row(vertex_normal, p)))


@njit(cache=True, inner=True)
def set_edge_normals(features: Features) -> None:
    """Fill the normals of edges and which edges are sharp."""
    points, edges, face_normal = features.points, features.edges, features.face_normal
    for e in range(edges.shape[0]):
        f, g = features.edge_faces[e, 0], features.edge_faces[e, 1]
        if f < 0:
            features.sharp[e], features.keen[e], features.level[e] = True, True, False
            write_row(features.edge_normal, e, (0.0, 0.0, 0.0))
            continue
        first, second = row(face_normal, f), row(face_normal, g)
        write_row(features.edge_normal, e, unit(plus(first, second)))
        # an edge is convex where the third corner of the second face lies below the first face
        height = dot(minus(row(points, edges[e, 3]), row(points, edges[e, 0])), first)
        cosine = dot(first, second)
        features.sharp[e] = cosine < FLAT and height < 0.0
        features.keen[e] = cosine < KEEN and height < 0.0
        features.level[e] = cosine >= FLAT or height < 0.0


@njit(cache=True, inner=True)
def fit_features(features: Features, bodies: IntArray, triangle_trees: Forest, edge_trees: Forest) -> None:
    """Update all normals and the trees of some bodies (k,) for the present positions."""
    for k in range(bodies.shape[0]):
        fit_boxes(tree_of(triangle_trees, bodies[k]), features.points, features.triangles, triangle_trees.n_corners)
        fit_boxes(tree_of(edge_trees, bodies[k]), features.points, features.edges, edge_trees.n_corners)
    set_face_and_vertex_normals(features)
    set_edge_normals(features)


@njit(cache=True, inner=True)
def solid_angle(a: Vector, b: Vector, c: Vector) -> float:
    """Signed solid angle of triangle abc seen from the origin, positive from behind, sr.

    A. van Oosterom, J. Strackee, "The solid angle of a plane triangle", IEEE Trans. Biomed. Eng. 30, 1983.
    """
    length_a, length_b, length_c = norm(a), norm(b), norm(c)
    bottom = length_a * length_b * length_c + dot(a, b) * length_c + dot(b, c) * length_a + dot(c, a) * length_b
    return 2.0 * np.arctan2(dot(a, cross(b, c)), bottom)


@njit(cache=True)
def depth_inside(
    points: FloatArray, first: int, stop: int, triangles: IntArray, first_triangle: int, last_triangle: int
) -> float:
    """Return the largest distance (m) to a closed surface of those of points ``first`` to ``stop`` - 1 inside it; 0 for none.

    A point is inside where the solid angles of triangles ``first_triangle`` to ``last_triangle`` - 1 sum to 4 pi, not to 0.
    """
    deepest = 0.0
    for i in range(first, stop):
        p = row(points, i)
        angle, nearest2 = 0.0, inf
        for t in range(first_triangle, last_triangle):
            a, b, c = row(points, triangles[t, 0]), row(points, triangles[t, 1]), row(points, triangles[t, 2])
            to_a, to_b, to_c = minus(a, p), minus(b, p), minus(c, p)
            angle += solid_angle(to_a, to_b, to_c)
            weight_a, weight_b, weight_c, _ = closest_on_triangle(p, a, b, c)
            offset = plus(plus(times(weight_a, to_a), times(weight_b, to_b)), times(weight_c, to_c))
            nearest2 = min(nearest2, dot(offset, offset))
        if angle > 2.0 * np.pi:
            deepest = max(deepest, sqrt(nearest2))
    return deepest

"""Compiled contacts of vertices with deforming surfaces: which features are near, which of them count, along which normal."""

from __future__ import annotations

from math import inf, sqrt

import numpy as np
import numpy.typing as npt

from contact.compiled import njit
from contact.distance_kernels import closest_on_triangle
from contact.side_kernels import SNAP, VERTEX_FACE, Kept, Near, Output, Side, Work, write_contact, write_side
from contact.surface_kernels import Features, solid_angle
from contact.tree_kernels import Tree, box_distance2, search_point
from contact.vector_kernels import Vector, dot, minus, row, times, write_row

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

#: Closer to an edge or vertex than this part of the longest edge there, the direction to it is rounding and a face gives the
#: normal: SNAP moves the closest point by a hundredth of that. Boxes of bodies are wider by this part of what contacts reach.
TINY = 1e-5
#: A triangle faces a vertex where the cosine between their outward normals is below minus this.
FACING = 0.1
#: The same for a contact normal that comes from an edge or a vertex.
FACING_RIM = 0.3
#: A vertex is in front of a face where it rises above its plane by more than this: the sine, seen from a rim of the face, and
#: where that is further off, TINY of the longest edge there: a vertex beside a large box is no less outside far from its rim.
RISES = 0.1
#: Contacts of one vertex whose normals have at least this cosine count as one, the nearest; and of one point of a strand, which
#: may lie in a tight ring: facets that are left out there would spring into it, others in each step.
SAME_NORMAL, SAME_ROUND = 0.87, 0.97
#: ... and of the centre of a rigid ball or of an end of a capsule, which else would sink into one facet by turns with the next.
SAME_RIGID = 1.0 - 1e-7
#: Contacts that one vertex keeps with one body, and one point of a strand, whose place in a list tells them apart.
MAX_KEPT, MAX_ROUND = 4, 16


@njit(cache=True, inner=True)
def faces_vertex(face_normal: FloatArray, t: int, outward: Vector) -> bool:
    """Whether triangle t and a vertex with the normal ``outward`` look at each other: n_t . n < -FACING."""
    return dot(row(face_normal, t), outward) < -FACING


@njit(cache=True, inner=True)
def keep_facing(hits: IntArray, n_hits: int, p: int, outward: Vector, triangles: IntArray, face_normal: FloatArray) -> int:
    """Keep those triangles of ``hits[:n_hits]`` that face vertex p and have it for no corner; return how many there are."""
    count = 0
    for h in range(n_hits):
        t = hits[h]
        beside = triangles[t, 0] == p or triangles[t, 1] == p or triangles[t, 2] == p
        if not beside and faces_vertex(face_normal, t, outward):
            hits[count] = t
            count += 1
    return count


@njit(cache=True, inner=True)
def snap(a: float, b: float, c: float) -> tuple[float, float, float]:
    """Barycentric weights with those below SNAP set to zero; they still sum to one."""
    a, b, c = (a if a > SNAP else 0.0), (b if b > SNAP else 0.0), (c if c > SNAP else 0.0)
    total = a + b + c
    return a / total, b / total, c / total


@njit(cache=True, inner=True)
def offset_from_triangle(p: Vector, points: FloatArray, triangles: IntArray, t: int, weights: Vector) -> Vector:
    """Vector from the point of triangle t with these weights to p, m: p - w_a a - w_b b - w_c c."""
    offset = minus(p, times(weights[0], row(points, triangles[t, 0])))
    offset = minus(offset, times(weights[1], row(points, triangles[t, 1])))
    return minus(offset, times(weights[2], row(points, triangles[t, 2])))


@njit(cache=True, inner=True)
def longest_edge2(points: FloatArray, triangles: IntArray, t: int) -> float:
    """Square of the longest edge of triangle t, m^2."""
    a, b, c = row(points, triangles[t, 0]), row(points, triangles[t, 1]), row(points, triangles[t, 2])
    ab, bc, ca = minus(b, a), minus(c, b), minus(a, c)
    return max(dot(ab, ab), dot(bc, bc), dot(ca, ca))


@njit(cache=True, inner=True)
def closest_points(
    p: Vector, hits: IntArray, n_hits: int, reach: float, points: FloatArray, triangles: IntArray, near: Near
) -> int:
    """Fill ``near`` (but for the features) with the closest points of triangles ``hits[:n_hits]`` that are within ``reach`` (m).

    Returns how many there are, -1 when there are more than ``near`` has room for.
    """
    count = 0
    for h in range(n_hits):
        t = hits[h]
        a, b, c, _ = closest_on_triangle(
            p, row(points, triangles[t, 0]), row(points, triangles[t, 1]), row(points, triangles[t, 2])
        )
        weights = snap(a, b, c)
        offset = offset_from_triangle(p, points, triangles, t, weights)
        distance2 = dot(offset, offset)
        if distance2 > reach * reach:
            continue
        if count == near.triangle.shape[0]:
            return -1
        near.triangle[count], near.distance2[count] = t, distance2
        write_row(near.weight, count, weights)
        count += 1
    return count


@njit(cache=True, inner=True)
def name_features(near: Near, n_near: int, n_edges: int, triangles: IntArray, triangle_edges: IntArray) -> int:
    """Fill in which feature holds each point of ``near`` (:class:`contact.side_kernels.Near`); return the nearest."""
    n_triangles, nearest, least2 = triangles.shape[0], -1, inf
    for k in range(n_near):
        t, a, b, c = near.triangle[k], near.weight[k, 0], near.weight[k, 1], near.weight[k, 2]
        zeros = (a == 0.0) + (b == 0.0) + (c == 0.0)
        if zeros == 0:
            near.feature[k] = t
        elif zeros == 1:
            near.feature[k] = n_triangles + triangle_edges[t, 0 if c == 0.0 else 1 if a == 0.0 else 2]
        else:
            near.feature[k] = n_triangles + n_edges + triangles[t, 0 if a > 0.0 else 1 if b > 0.0 else 2]
        if near.distance2[k] < least2:
            nearest, least2 = near.feature[k], near.distance2[k]
    return nearest


@njit(cache=True, inner=True)
def repeats(near_feature: IntArray, n_near: int, k: int) -> int:
    """How often the feature of entry k comes among the first ``n_near``; 0 where k is not the first of them."""
    count = 0
    for other in range(n_near):
        if near_feature[other] == near_feature[k]:
            if other < k:
                return 0
            count += 1
    return count


@njit(cache=True, inner=True)
def facing_beside_edge(e: int, outward: Vector, edge_faces: IntArray, face_normal: FloatArray) -> int:
    """Count the triangles beside edge e that face a vertex with the normal ``outward``."""
    return faces_vertex(face_normal, edge_faces[e, 0], outward) + faces_vertex(face_normal, edge_faces[e, 1], outward)


@njit(cache=True, inner=True)
def facing_round_vertex(q: int, outward: Vector, fan_start: IntArray, fan: IntArray, face_normal: FloatArray) -> int:
    """Count the triangles round vertex q that face a vertex with the normal ``outward``."""
    count = 0
    for i in range(fan_start[q], fan_start[q + 1]):
        count += faces_vertex(face_normal, fan[i], outward)
    return count


@njit(cache=True, inner=True)
def in_front_of_edge(e: int, offset: Vector, least: float, features: Features) -> bool:
    """Whether a vertex at an offset from a convex edge e rises by more than ``least`` (m) in front of a face beside it."""
    if not features.sharp[e]:
        return False
    first, second = features.edge_faces[e, 0], features.edge_faces[e, 1]
    above = max(dot(row(features.face_normal, first), offset), dot(row(features.face_normal, second), offset))
    return above > least


@njit(cache=True, inner=True)
def in_front_of_vertex(q: int, offset: Vector, least: float, features: Features) -> bool:
    """Whether a vertex at an offset from a convex vertex q rises by more than ``least`` (m) in front of a face round it."""
    above = 0.0
    for i in range(features.fan_start[q], features.fan_start[q + 1]):
        t = features.fan[i]
        above = max(above, dot(row(features.face_normal, t), offset))
        for k in range(3):
            e = features.triangle_edges[t, k]
            if (features.edges[e, 0] == q or features.edges[e, 1] == q) and not features.level[e]:
                return False
    return above > least


@njit(cache=True, inner=True)
def reaches_in_front(p: int, t: int, features: Features) -> bool:
    """Whether an edge of vertex p leads in front of triangle t."""
    points, normal = features.points, row(features.face_normal, t)
    corner = row(points, features.triangles[t, 0])
    for i in range(features.fan_start[p], features.fan_start[p + 1]):
        for k in range(3):
            if dot(normal, minus(row(points, features.triangles[features.fan[i], k]), corner)) > 0.0:
                return True
    return False


@njit(cache=True, inner=True)
def in_front_of_nearer(here: Vector, distance: float, features: Features, tree: Tree, work: Work) -> bool:
    """Whether the nearest of the triangles of a surface nearer than ``distance`` (m) has a vertex in front of it, outside.

    Asked are all, also those that do not face the vertex: whatever it is behind further off. Where shells that lie flush make up
    the surface, it is in front of one within another.
    """
    points, triangles, hits = features.points, features.triangles, work.hits
    nearest2, above, nearest = distance * distance * (1.0 - 1e-9), 0.0, -1
    for h in range(search_point(tree.leaf, tree.boxes, tree.first, here, distance, work.stack, hits)):
        t = hits[h]
        a, b, c, _ = closest_on_triangle(
            here, row(points, triangles[t, 0]), row(points, triangles[t, 1]), row(points, triangles[t, 2])
        )
        offset = offset_from_triangle(here, points, triangles, t, (a, b, c))
        distance2, height = dot(offset, offset), dot(row(features.face_normal, t), offset)
        if distance2 < nearest2 * (1.0 - 1e-9):
            nearest2, above, nearest = distance2, height, t
        elif distance2 <= nearest2:
            above = max(above, height)
    if nearest < 0 or above <= RISES * sqrt(nearest2) or above <= SNAP * sqrt(longest_edge2(points, triangles, nearest)):
        return False
    return not encloses(here, points, triangles, tree)


@njit(cache=True, inner=True)
def encloses(here: Vector, points: FloatArray, triangles: IntArray, tree: Tree) -> bool:
    """Whether the closed surface of a tree has a point inside: the solid angles of its triangles sum to 4 pi, not to 0."""
    angle = 0.0
    for i in range(tree.leaf.shape[0]):
        if tree.leaf[i] >= 0:
            t = tree.first + tree.leaf[i]
            a, b, c = row(points, triangles[t, 0]), row(points, triangles[t, 1]), row(points, triangles[t, 2])
            angle += solid_angle(minus(a, here), minus(b, here), minus(c, here))
    return angle > 2.0 * np.pi


@njit(cache=True, inner=True)
def along_offset(offset: Vector, distance: float, outward: Vector) -> Vector:
    """Scale an offset of this length (m) to a unit vector, turned to the side of ``outward``."""
    return times(1.0 / distance if dot(outward, offset) >= 0.0 else -1.0 / distance, offset)


@njit(cache=True, inner=True)
def most_opposed_normal(outward: Vector, feature: int, near: Near, n_near: int, face_normal: FloatArray) -> Vector:
    """Of the triangles near a feature, take that which looks most against ``outward``; return its normal."""
    least, normal = inf, (0.0, 0.0, 0.0)
    for other in range(n_near):
        if near.feature[other] == feature:
            candidate = row(face_normal, near.triangle[other])
            cosine = dot(candidate, outward)
            if cosine < least:
                least, normal = cosine, candidate
    return normal


@njit(cache=True, inner=True)
def keep_in_order(kept: Kept, count: int, gap: float, normal: Vector, near: int) -> int:
    """Insert a possible contact by its distance; return how many there are. When there is no more room, the farthest goes."""
    room = kept.gap.shape[0]
    place = min(count, room - 1)
    if count == room and abs(kept.gap[place]) <= abs(gap):
        return count
    while place > 0 and abs(kept.gap[place - 1]) > abs(gap):
        kept.gap[place], kept.near[place] = kept.gap[place - 1], kept.near[place - 1]
        write_row(kept.normal, place, row(kept.normal, place - 1))
        place -= 1
    kept.gap[place], kept.near[place] = gap, near
    write_row(kept.normal, place, normal)
    return min(count + 1, room)


@njit(cache=True, inner=True)
def repeats_a_normal(kept_normal: FloatArray, k: int, same: float) -> bool:
    """Whether a nearer one of the possible contacts has a normal with at least this cosine to that of number k."""
    for nearer in range(k):
        if not dot(row(kept_normal, k), row(kept_normal, nearer)) < same:
            return True
    return False


@njit(cache=True, inline="always")
def possible_contacts(
    features: Features, p: int, strand: bool, same: bool, nearest: int, n_near: int, tree: Tree, off: tuple[float, float],
    work: Work,
) -> int:  # fmt: skip
    """Fill ``work.kept`` with the features near vertex p that can push it; return how many there are.

    A feature counts where it is the closest in its neighbourhood, i.e. all triangles round it that face the vertex have their
    closest points on it; on another body, the nearest of all counts anyway. The normal is that of the face or, on an edge or
    vertex, along the offset, and must face the vertex; where the offset is only rounding, a face beside gives it. The vertex
    must lie no deeper than the depth of the triangle. In front of what is nearest of all (:func:`in_front_of_nearer`) it is not
    inside, unless an edge leads it through the face; of its own body it must be behind all faces of a convex edge or vertex that
    sees it inside. All triangles face the points of a strand, which have no outward normal. Those from which the vertex is away
    by the sum of both lengths ``off`` (m), or more, are left out: most of what is near, and telling whether they count is slow.
    """
    points, triangles, face_normal, near = features.points, features.triangles, features.face_normal, work.near
    n_triangles, n_edges = triangles.shape[0], features.edges.shape[0]
    here, outward, count = row(points, p), row(features.vertex_normal, p), 0
    for k in range(n_near):
        feature, t = near.feature[k], near.triangle[k]
        on_face, e, q = feature < n_triangles, feature - n_triangles, feature - n_triangles - n_edges
        offset = offset_from_triangle(here, points, triangles, t, row(near.weight, k))
        distance = sqrt(near.distance2[k])
        rounding = not on_face and near.distance2[k] <= TINY * TINY * longest_edge2(points, triangles, t)
        if on_face or (rounding and strand):
            normal = row(face_normal, t)
        elif rounding:
            normal = most_opposed_normal(outward, feature, near, n_near, face_normal)
        else:
            normal = along_offset(offset, distance, row(features.edge_normal, e) if q < 0 else row(features.vertex_normal, q))
        gap = dot(normal, offset)
        if gap - off[1] >= off[0]:
            continue
        n_repeats = repeats(near.feature, n_near, k)
        if n_repeats == 0:
            continue
        if not on_face and (same or feature != nearest):
            if q < 0:
                needed = 2 if strand else facing_beside_edge(e, outward, features.edge_faces, face_normal)
            elif strand:
                needed = features.fan_start[q + 1] - features.fan_start[q]
            else:
                needed = facing_round_vertex(q, outward, features.fan_start, features.fan, face_normal)
            if n_repeats < needed:
                continue
        if gap < 0.0 and not (strand or rounding):
            # the side of the edge or vertex, of which perhaps only one face was near, does not say that it is inside
            if not same:
                led_through = on_face and reaches_in_front(p, t, features)
                if not led_through and in_front_of_nearer(here, distance, features, tree, work):
                    continue
            elif not on_face:
                least = min(RISES * distance, TINY * sqrt(longest_edge2(points, triangles, t)))
                if q < 0 and in_front_of_edge(e, offset, least, features):
                    continue
                if q >= 0 and in_front_of_vertex(q, offset, least, features):
                    continue
        if -gap <= features.depth[t] and (strand or on_face or dot(normal, outward) <= -FACING_RIM):
            count = keep_in_order(work.kept, count, gap, normal, k)
    return count


@njit(cache=True, inner=True)
def vertex_faces(
    features: Features, vertices: Side, surface: Side, tree: Tree, margin: float, work: Work, count: int, out: Output
) -> int:
    """Write the contacts of the points of one body with one surface; return how many contacts there are now.

    Where the nearest of the possible contacts of a vertex sees it inside, it alone counts; otherwise all outside within the
    margin, the nearest of those with nearly the same normal. A vertex out of the box of the surface is outside, and has none
    further off than the margin. Returns -1 when more triangles are near a point than ``work.near`` has room for.
    """
    points, triangles, near, kept, hits = features.points, features.triangles, work.near, work.kept, work.hits
    same, reach = vertices.body == surface.body, max(margin + vertices.radius, surface.depth)
    most, alike = (MAX_ROUND, SAME_RIGID if vertices.rigid else SAME_ROUND) if vertices.strand else (MAX_KEPT, SAME_NORMAL)
    beyond = (max(margin, 0.0) + vertices.radius) * (1.0 + TINY)
    for p in range(vertices.first, vertices.stop):
        here = row(points, p)
        if features.amid[p] or box_distance2(tree.boxes, 1, here) > beyond * beyond:
            continue
        n_hits = search_point(tree.leaf, tree.boxes, tree.first, here, reach, work.stack, hits)
        if not vertices.strand:
            n_hits = keep_facing(hits, n_hits, p, row(features.vertex_normal, p), triangles, features.face_normal)
        n_near = closest_points(here, hits, n_hits, reach, points, triangles, near)
        if n_near < 0:
            return -1
        if n_near == 0:
            continue
        nearest = name_features(near, n_near, features.edges.shape[0], triangles, features.triangle_edges)
        n_kept, rank = 0, 0
        for every in range(2):  # what is further off than a contact counts only beside an inside that is deeper
            off = (inf if every else margin, vertices.radius)
            n_kept = possible_contacts(features, p, vertices.strand, same, nearest, n_near, tree, off, work)
            if n_kept == 0 or abs(kept.gap[0]) - vertices.radius < margin:
                break
        for k in range(n_kept):
            gap = kept.gap[k] - vertices.radius
            if gap >= margin or (k > 0 and (kept.gap[0] < 0.0 or kept.gap[k] < 0.0)):
                continue
            if rank >= most or repeats_a_normal(kept.normal, k, alike):
                continue
            if count < out.kind.shape[0]:
                write_contact(
                    out, count, VERTEX_FACE, p, MAX_ROUND * surface.body + rank, vertices.body, surface.body, gap,
                    row(kept.normal, k),
                )  # fmt: skip
                t, weights = near.triangle[kept.near[k]], row(near.weight, kept.near[k])
                write_side(out.point[count, 0], out.weight[count, 0], (p, p, p), (1.0, 0.0, 0.0))
                corners = (triangles[t, 0], triangles[t, 1], triangles[t, 2])
                write_side(out.point[count, 1], out.weight[count, 1], corners, weights)
            count += 1
            rank += 1
    return count

"""Compiled detection of contacts between deforming bodies: edges across edges, points on strands, and the walk over all pairs.

Points, triangles and edges are numbered through over all bodies; a body owns a range of each. The normal of a contact points from
its side 1 to its side 0. A strand is a chain of points with a radius; its edges are the segments between them. Vertices on
surfaces are in :mod:`contact.vertex_kernels`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from contact.compiled import njit
from contact.detect_kernels import DEEPER
from contact.distance_kernels import closest_on_lines
from contact.side_kernels import (
    EDGE_EDGE,
    POINT_SEGMENT,
    SNAP,
    VERTEX_FACE,
    Bodies,
    Output,
    Side,
    Work,
    side_of,
    write_contact,
    write_side,
)
from contact.surface_kernels import Features, fit_features
from contact.tree_kernels import Forest, Tree, boxes_apart, boxes_overlap, search_box, search_point, tree_of
from contact.vector_kernels import Vector, cross, dot, minus, norm, over, plus, row, times, write_row
from contact.vertex_kernels import FACING_RIM, TINY, vertex_faces

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

#: How far above the plane of a crossing the faces beside an edge may rise (sine).
SLACK = 0.1
#: Least cosine between the normal of a crossing and the outward normal of an edge.
EDGE_FACING = 0.1
#: Least sine between two edges that cross.
CROSSING = 0.05
#: Part of its size by which an edge or a face goes on, as a line or a plane, for contacts that stay on it where bodies moved.
BEYOND = 0.5
#: Part of a flat edge, from its ends on, where what crosses it is left to its vertices, if these are under a face.
BESIDE_END = 0.05
#: Strands lie along each other above this cosine; the points of one of them then suffice.
ALONG = 0.95
#: Segments of one strand can be in contact where at least this times the sum of radii lies between them along it.
SELF_ARC = np.pi


# ---- edges across edges


@njit(cache=True, inner=True)
def are_neighbours(edges: IntArray, e: int, f: int) -> bool:
    """Whether two edges share a point."""
    a, b, c, d = edges[e, 0], edges[e, 1], edges[f, 0], edges[f, 1]
    return a == c or a == d or b == c or b == d


@njit(cache=True, inner=True)
def falls_away(points: FloatArray, corner: int, foot: Vector, along: Vector, normal: Vector) -> bool:
    """Whether a corner of a face lies below the plane through ``foot`` (m), or above it by less than the angle SLACK.

    The angle is that across the edge, of direction ``along`` (m), so that it is one for all triangles of a flat face.
    """
    arm = minus(row(points, corner), foot)
    across = minus(arm, times(dot(arm, along) / max(dot(along, along), 1e-300), along))
    return dot(arm, normal) <= SLACK * norm(across)


@njit(cache=True, inner=True)
def is_ridge(points: FloatArray, edges: IntArray, e: int, edge_normal: FloatArray, foot: Vector, normal: Vector) -> bool:
    """Whether edge e of a surface can be in contact at its point ``foot`` (m) along a normal out of the surface.

    The normal is about that of the edge, and both faces fall away from the plane of contact: only then is the edge, and not one
    of its vertices, the closest to what crosses it.
    """
    if dot(normal, row(edge_normal, e)) < EDGE_FACING:
        return False
    along = minus(row(points, edges[e, 1]), row(points, edges[e, 0]))
    return falls_away(points, edges[e, 2], foot, along, normal) and falls_away(points, edges[e, 3], foot, along, normal)


@njit(cache=True, inner=True)
def depth_of_edge(e: int, edge_faces: IntArray, depth: FloatArray) -> float:
    """Return the smaller depth of the two faces of an edge, m."""
    return min(depth[edge_faces[e, 0]], depth[edge_faces[e, 1]])


@njit(cache=True, inner=True)
def passes_by(points: FloatArray, edges: IntArray, e: int, edge_normal: FloatArray, f: int, depth: float) -> bool:
    """Whether edge f, past edge e by ``depth`` (m), is out of the body of e, or nearly: through one of its two faces.

    So is the edge up from a corner that stands on a face beside its border: past the border by much, and below the face by next
    to nothing. Neither of its ends is then as deep below that face as 1 / DEEPER of the depth, and the corner has a contact.
    """
    a = row(points, edges[e, 0])
    along = minus(row(points, edges[e, 1]), a)
    one, other = minus(row(points, edges[f, 0]), a), minus(row(points, edges[f, 1]), a)
    for k in range(2, 4):
        normal = cross(along, minus(row(points, edges[e, k]), a))
        below = max(-dot(normal, one), -dot(normal, other))
        if dot(normal, row(edge_normal, e)) < 0.0:
            below = max(dot(normal, one), dot(normal, other))
        if DEEPER * below < depth * norm(normal):
            return True
    return False


@njit(cache=True, inner=True)
def crossing_lines(u: Vector, v: Vector, w: Vector) -> tuple[float, float]:
    """Parameters (s, t) of the closest points of the lines s u and t v - w; inf if these are parallel up to the sine CROSSING."""
    uu, uv, vv = dot(u, u), dot(u, v), dot(v, v)
    square = uu * vv - uv * uv
    if square <= CROSSING * CROSSING * uu * vv:
        return np.inf, np.inf
    return closest_on_lines(uu, uv, vv, dot(u, w), dot(v, w), square)


@njit(cache=True, inner=True)
def crossing(u: Vector, v: Vector, w: Vector) -> tuple[float, float]:
    """Parameters (s, t) of the closest points of the segments s u and t v - w; (-1, -1) unless both lie inside."""
    s, t = crossing_lines(u, v, w)
    if s <= SNAP or s >= 1.0 - SNAP or t <= SNAP or t >= 1.0 - SNAP:
        return -1.0, -1.0
    return s, t


@njit(cache=True, inner=True)
def box_of_edge(a: Vector, b: Vector, reach: float) -> tuple[Vector, Vector]:
    """Return the corners of the box about the edge from a to b that leaves ``reach`` (m) on all sides."""
    low = (min(a[0], b[0]) - reach, min(a[1], b[1]) - reach, min(a[2], b[2]) - reach)
    return low, (max(a[0], b[0]) + reach, max(a[1], b[1]) + reach, max(a[2], b[2]) + reach)


@njit(cache=True, inner=True)
def beside_end(points: FloatArray, edges: IntArray, sharp: bool, u: Vector, place: float, f: int) -> bool:
    """Whether edge f crosses a flat edge, of direction u, at a place, 0 to 1, so near its end that the vertex stands for it.

    It does under a face of f, where it has contact, and not ahead of f: a vertex there has none until f has passed it.
    """
    if sharp or edges[f, 2] < 0 or abs(place - 0.5) <= 0.5 - BESIDE_END:
        return False
    end, length = (times(-1.0, u) if place < 0.5 else u), norm(u)
    start = row(points, edges[f, 0])
    along = minus(row(points, edges[f, 1]), start)
    for k in range(2, 4):
        arm = minus(row(points, edges[f, k]), start)
        normal = cross(along, arm)
        if abs(dot(normal, end)) <= SLACK * length * norm(normal):
            inwards = minus(times(dot(along, along), arm), times(dot(along, arm), along))
            if dot(inwards, end) > 0.0:
                return True
    return False


@njit(cache=True, inner=True)
def may_cross(features: Features, e: int, f: int, rigid0: bool, rigid1: bool) -> bool:
    """Whether edges e of side 0 and f of side 1 can cross: both are sharp, or one is keen and rigid and the other flat."""
    if features.sharp[e] and features.sharp[f]:
        return True
    return (rigid0 and features.keen[e] and features.level[f]) or (rigid1 and features.keen[f] and features.level[e])


@njit(cache=True, inner=True)
def edge_edges(
    features: Features, side0: Side, side1: Side, tree: Tree, margin: float, work: Work, count: int, out: Output
) -> int:
    """Write the crossings of edges of two bodies, or of one with itself; return how many contacts there are now.

    Two edges that may cross (:func:`may_cross`) are in contact where their closest points lie inside both and each edge of a
    surface is a ridge there (:func:`is_ridge`), no deeper than its faces allow, and not past the other by much
    (:func:`passes_by`). Any crossing of two strands counts. The normal leads out of the surface of side 1, or into that of side
    0, or, between two strands, along the gap. An edge out of the box of the other body crosses none of its edges further off than
    the margin.
    """
    points, edges, edge_normal = features.points, features.edges, features.edge_normal
    arc, edge_faces, depth, hits = features.arc, features.edge_faces, features.depth, work.hits
    same, apart = side0.body == side1.body, margin + side0.radius + side1.radius
    # how deep an edge may be in the other body: in a strand, or of one, as deep as the surface is
    deepest = side0.depth if side1.strand else side1.depth
    beyond = (max(margin, 0.0) + side0.radius + side1.radius) * (1.0 + TINY)
    for e in range(side0.first_edge, side0.stop_edge):
        if not (features.sharp[e] or (side1.rigid and features.level[e])):
            continue
        a, b = row(points, edges[e, 0]), row(points, edges[e, 1])
        low, high = box_of_edge(a, b, beyond)
        if not boxes_overlap(tree.boxes, 1, low, high):
            continue
        depth_here = deepest if side0.strand else min(deepest, depth_of_edge(e, edge_faces, depth))
        low, high = box_of_edge(a, b, max(apart, depth_here) * (1.0 + TINY))
        for h in range(search_box(tree.leaf, tree.boxes, tree.first, low, high, work.stack, hits)):
            f = hits[h]
            if not may_cross(features, e, f, side0.rigid, side1.rigid) or (same and (f <= e or are_neighbours(edges, e, f))):
                continue
            if same and side0.strand and arc[edges[f, 0]] - arc[edges[e, 1]] < SELF_ARC * (side0.radius + side1.radius):
                continue
            c = row(points, edges[f, 0])
            u, v, w = minus(b, a), minus(row(points, edges[f, 1]), c), minus(a, c)
            s, t = crossing(u, v, w)
            if s < 0.0 or beside_end(points, edges, features.sharp[e], u, s, f):
                continue
            if beside_end(points, edges, features.sharp[f], v, t, e):
                continue
            across = cross(u, v)
            normal = over(across, norm(across))
            distance = dot(normal, minus(plus(w, times(s, u)), times(t, v)))
            if not side1.strand:
                turned = dot(normal, row(edge_normal, f)) < 0.0
            elif not side0.strand:
                turned = dot(normal, row(edge_normal, e)) > 0.0
            else:
                turned = distance < 0.0
            if turned:
                normal, distance = times(-1.0, normal), -distance
            gap = distance - side0.radius - side1.radius
            if gap >= margin:
                continue
            if not side0.strand and (
                -distance > depth_of_edge(e, edge_faces, depth)
                or not is_ridge(points, edges, e, edge_normal, plus(a, times(s, u)), times(-1.0, normal))
            ):
                continue
            if not side1.strand and (
                -distance > depth_of_edge(f, edge_faces, depth)
                or not is_ridge(points, edges, f, edge_normal, plus(c, times(t, v)), normal)
            ):
                continue
            if distance < 0.0 and (
                (not side0.strand and passes_by(points, edges, e, edge_normal, f, -distance))
                or (not side1.strand and passes_by(points, edges, f, edge_normal, e, -distance))
            ):
                continue
            if count < out.kind.shape[0]:
                write_contact(out, count, EDGE_EDGE, e, f, side0.body, side1.body, gap, normal)
                for side, edge, along in ((0, e, s), (1, f, t)):
                    ends = (edges[edge, 0], edges[edge, 1], edges[edge, 1])
                    write_side(out.point[count, side], out.weight[count, side], ends, (1.0 - along, along, 0.0))
            count += 1
    return count


# ---- points on strands


@njit(cache=True, inner=True)
def is_near_along(arc: FloatArray, p: int, c: int, d: int, length: float) -> bool:
    """Whether less than ``length`` (m) of the strand lies between its point p and its segment from c to d."""
    return max(arc[c] - arc[p], arc[p] - arc[d]) < length


@njit(cache=True, inner=True)
def runs_along(points: FloatArray, p: int, v: Vector) -> bool:
    """Whether a strand runs along the direction v at its inner point p: (t . v)^2 > ALONG^2 t^2 v^2, t between its neighbours."""
    tangent = minus(row(points, p + 1), row(points, p - 1))
    cosine = dot(tangent, v)
    return cosine * cosine > ALONG * ALONG * dot(tangent, tangent) * dot(v, v)


@njit(cache=True, inner=True)
def place_on_strand(points: FloatArray, edges: IntArray, f: int, first: int, stop: int, v: Vector, w: Vector) -> float:
    """Place, 0 to 1, on segment f of a strand of the point closest to another point; -1 where another segment holds it.

    The segment has the direction v, the point lies w from its start (m), and the strand has the segments ``first`` to
    ``stop`` - 1. A corner that is the closest point of both its segments belongs to the second one, at 0.
    """
    t = dot(v, w) / max(dot(v, v), 1e-300)
    if t <= SNAP:
        if f > first and dot(w, minus(row(points, edges[f - 1, 0]), row(points, edges[f, 0]))) > 0.0:
            return -1.0
        return 0.0
    if t >= 1.0 - SNAP:
        return 1.0 if f + 1 == stop else -1.0
    return t


@njit(cache=True, inner=True)
def point_segments(
    features: Features, side0: Side, side1: Side, tree: Tree, margin: float, work: Work, count: int, out: Output
) -> int:
    """Write the contacts of the points of side 0 with the segments of a strand, side 1; return how many contacts there are now.

    The closest point of the strand lies inside a segment or, for the points of another strand, also at a corner or an end. The
    vertices of a surface must face the strand. Where two strands lie along each other, only the points of the finer one and the
    ends of the other count (of two alike, those of the first; within one strand, the earlier points): all points of both would
    give twice the contacts that hold the two apart, and forces that are not unique.
    """
    points, edges, arc, hits = features.points, features.edges, features.arc, work.hits
    same, radii = side0.body == side1.body, side0.radius + side1.radius
    finer = side0.spacing < side1.spacing or (side0.spacing == side1.spacing and side0.body < side1.body)
    reach = max(margin, 0.0) + side0.radius + side1.radius
    for p in range(side0.first, side0.stop):
        here, inner = row(points, p), side0.first < p < side0.stop - 1
        for h in range(search_point(tree.leaf, tree.boxes, tree.first, here, reach, work.stack, hits)):
            f = hits[h]
            c, d = edges[f, 0], edges[f, 1]
            if same and is_near_along(arc, p, c, d, SELF_ARC * radii):
                continue
            start = row(points, c)
            v, w = minus(row(points, d), start), minus(here, start)
            leads = p < c if same else finer
            if side0.strand and inner and not leads and runs_along(points, p, v):
                continue
            t = place_on_strand(points, edges, f, side1.first_edge, side1.stop_edge, v, w)
            if t < 0.0 or (not side0.strand and (t == 0.0 or t == 1.0)):
                continue
            offset = minus(w, times(t, v))
            distance = norm(offset)
            gap = distance - side0.radius - side1.radius
            if gap >= margin or distance * distance <= TINY * TINY * dot(v, v):
                continue
            normal = over(offset, distance)
            if not side0.strand and dot(normal, row(features.vertex_normal, p)) > -FACING_RIM:
                continue
            if count < out.kind.shape[0]:
                write_contact(out, count, POINT_SEGMENT, p, f, side0.body, side1.body, gap, normal)
                write_side(out.point[count, 0], out.weight[count, 0], (p, p, p), (1.0, 0.0, 0.0))
                write_side(out.point[count, 1], out.weight[count, 1], (c, d, d), (1.0 - t, t, 0.0))
            count += 1
    return count


@njit(cache=True)
def find_contacts(
    features: Features, bodies: Bodies, used: IntArray, triangle_trees: Forest, edge_trees: Forest, pairs: IntArray,
    margin: FloatArray, work: Work, out: Output,
) -> int:  # fmt: skip
    """Write all contacts of pairs of bodies (k, 2) with gaps below ``margin`` (nb, nb), m; return how many there are.

    Normals, and the trees of the bodies ``used`` (m,), are updated first. Two bodies whose boxes are further apart than contacts
    reach are left out. The answer may exceed the room of ``out``; it is -1 when ``work.near`` has too little room.
    """
    fit_features(features, used, triangle_trees, edge_trees)
    count = 0
    for k in range(pairs.shape[0]):
        a, b = pairs[k, 0], pairs[k, 1]
        limit = margin[a, b]
        beyond = (max(limit, 0.0) + bodies.radius[a] + bodies.radius[b]) * (1.0 + TINY)
        if boxes_apart(tree_of(edge_trees, a).boxes, tree_of(edge_trees, b).boxes, beyond):
            continue
        for i in range(1 if a == b else 2):
            side0, side1 = side_of(bodies, b if i else a), side_of(bodies, a if i else b)
            if side1.strand:
                count = point_segments(features, side0, side1, tree_of(edge_trees, side1.body), limit, work, count, out)
            else:
                count = vertex_faces(features, side0, side1, tree_of(triangle_trees, side1.body), limit, work, count, out)
                if count < 0:
                    return -1
        count = edge_edges(features, side_of(bodies, a), side_of(bodies, b), tree_of(edge_trees, b), limit, work, count, out)
    return count


# ---- the same features elsewhere


@njit(cache=True, inner=True)
def place_crossing(points: FloatArray, point: IntArray, m: int, weight: FloatArray) -> Vector:
    """Put the weights of crossing m where the lines of its edges are closest; return the vector across both.

    It is zero, and the weights stay, where that is further from an edge than BEYOND of it, or the lines are parallel up to the
    sine CROSSING.
    """
    a, c = row(points, point[m, 0, 0]), row(points, point[m, 1, 0])
    u, v, w = minus(row(points, point[m, 0, 1]), a), minus(row(points, point[m, 1, 1]), c), minus(a, c)
    s, t = crossing_lines(u, v, w)
    if max(abs(s - 0.5), abs(t - 0.5)) > 0.5 + BEYOND:
        return 0.0, 0.0, 0.0
    weight[m, 0, 0], weight[m, 0, 1], weight[m, 1, 0], weight[m, 1, 1] = 1.0 - s, s, 1.0 - t, t
    return cross(u, v)


@njit(cache=True, inner=True)
def place_on_plane(points: FloatArray, point: IntArray, m: int, weight: FloatArray) -> Vector:
    """Put the weights of a vertex on a face, contact m, where it is closest to the plane; return the vector across that.

    It is zero, and the weights stay, where one of them would be below -BEYOND.
    """
    a = row(points, point[m, 1, 0])
    u, v, w = minus(row(points, point[m, 1, 1]), a), minus(row(points, point[m, 1, 2]), a), minus(row(points, point[m, 0, 0]), a)
    across = cross(u, v)
    square = max(dot(across, across), 1e-300)
    s, t = dot(cross(w, v), across) / square, dot(cross(u, w), across) / square
    if min(s, t, 1.0 - s - t) < -BEYOND:
        return 0.0, 0.0, 0.0
    weight[m, 1, 0], weight[m, 1, 1], weight[m, 1, 2] = 1.0 - s - t, s, t
    return across


@njit(cache=True)
def place_on_same_features(
    points: FloatArray, kind: IntArray, point: IntArray, frame: FloatArray, weight: FloatArray, now: FloatArray
) -> None:
    """Fill weights (n, 2, 3) of contacts between the same features, the points of which (n, 2, 3) are elsewhere now.

    Their normals become the first rows of ``now`` (n, 3, 3), on the side of those of ``frame``, (n, 3, 3). Edges that cross count
    as lines and faces as planes. Where these are too far off, and for vertices on edges, on vertices and on strands, weights stay
    and the normal is zero.
    """
    for m in range(point.shape[0]):
        if kind[m] == EDGE_EDGE:
            across = place_crossing(points, point, m, weight)
        elif kind[m] == VERTEX_FACE and min(point[m, 1, 0], point[m, 1, 1], point[m, 1, 2]) >= 0:
            across = place_on_plane(points, point, m, weight)
        else:
            across = (0.0, 0.0, 0.0)
        side = 1.0 if dot(across, (frame[m, 0, 0], frame[m, 0, 1], frame[m, 0, 2])) >= 0.0 else -1.0
        write_row(now[m], 0, times(side / max(norm(across), 1e-300), across))

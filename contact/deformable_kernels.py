"""Compiled kernels of contact between deforming features: trees of boxes, normals, closest points, pairs.

Points are numbered over all bodies, and so are triangles and edges; a body owns a range of each. The normal of a contact points
from its side 1 to its side 0. Features of a strand (a chain of points with a radius) are its points and the segments between.
"""

from __future__ import annotations

from math import acos, inf, sqrt

import numpy as np
import numpy.typing as npt
from numba import njit

from contact.detect_kernels import write_frame

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

#: Kinds of contacts: vertex on surface, edge on edge, point on segment.
VERTEX_FACE, EDGE_EDGE, POINT_SEGMENT = 0, 1, 2
#: Weights below this count as zero: the closest point then lies on an edge or a vertex.
SNAP = 1e-7
#: Closer than this (m) to an edge or vertex, the direction to it says nothing and a face gives the normal.
TINY = 1e-7
#: Triangles and vertices face each other where their outward normals are against each other by this cosine; the normal of
#: a contact that comes from an edge or a vertex must be against that of the vertex by the second.
FACING, FACING_RIM = 0.1, 0.3
#: Normals of one vertex that differ by less than this cosine count as one contact, the nearer.
SAME_NORMAL = 0.87
#: Contacts that one vertex keeps with one body.
MAX_KEPT = 4
#: Edges whose faces differ by less than this cosine are flat: their vertices see what touches them.
FLAT = 0.9986
#: Slack of the test that faces fall away from a touching edge, and least cosine of the normal to the edge's own.
SLACK, EDGE_FACING = 0.1, 0.1
#: Least sine between two edges that touch by crossing.
CROSSING = 0.05
#: Least cosine between strands that lie along each other, so that the points of one of them suffice.
ALONG = 0.95
#: The nearest ends of two segments of one strand that may touch are this times the sum of radii apart along it.
SELF_ARC = np.pi


@njit(cache=True)
def refit(points: FloatArray, corners: IntArray, first: int, leaf: IntArray, boxes: FloatArray) -> None:
    """Update the boxes (2 P, 6) of a complete tree: node k has children 2 k and 2 k + 1, leaf i is node P + i.

    ``corners`` holds the points of all features, ``leaf`` (P,) the feature of each leaf counted from ``first``, -1 for none.
    A box is low x, y, z, high x, y, z; that of nothing is +inf, -inf.
    """
    n = leaf.shape[0]
    for i in range(n):
        box = boxes[n + i]
        for c in range(3):
            box[c], box[3 + c] = inf, -inf
        if leaf[i] >= 0:
            for k in range(corners.shape[1]):
                p = corners[first + leaf[i], k]
                for c in range(3):
                    box[c] = min(box[c], points[p, c])
                    box[3 + c] = max(box[3 + c], points[p, c])
    for k in range(n - 1, 0, -1):
        for c in range(3):
            boxes[k, c] = min(boxes[2 * k, c], boxes[2 * k + 1, c])
            boxes[k, 3 + c] = max(boxes[2 * k, 3 + c], boxes[2 * k + 1, 3 + c])


@njit(cache=True)
def surface_normals(
    points: FloatArray,
    triangles: IntArray,
    edges: IntArray,
    faces: IntArray,
    normal: FloatArray,
    vertex_normal: FloatArray,
    edge_normal: FloatArray,
    sharp: BoolArray,
) -> None:
    """Fill unit normals of triangles, angle-weighted ones of vertices, mean ones of edges, and which edges are sharp and convex.

    ``faces`` (E, 2) are the triangles beside an edge, -1 for a segment of a strand, which counts as sharp.
    """
    vertex_normal[:] = 0.0
    for t in range(triangles.shape[0]):
        a, b, c = triangles[t, 0], triangles[t, 1], triangles[t, 2]
        ux, uy, uz = points[b, 0] - points[a, 0], points[b, 1] - points[a, 1], points[b, 2] - points[a, 2]
        vx, vy, vz = points[c, 0] - points[a, 0], points[c, 1] - points[a, 1], points[c, 2] - points[a, 2]
        nx, ny, nz = uy * vz - uz * vy, uz * vx - ux * vz, ux * vy - uy * vx
        length = max(sqrt(nx * nx + ny * ny + nz * nz), 1e-300)
        nx, ny, nz = nx / length, ny / length, nz / length
        normal[t, 0], normal[t, 1], normal[t, 2] = nx, ny, nz
        for k in range(3):
            p, q, r = triangles[t, k], triangles[t, (k + 1) % 3], triangles[t, (k + 2) % 3]
            dot, qq, rr = 0.0, 0.0, 0.0
            for i in range(3):
                dot += (points[q, i] - points[p, i]) * (points[r, i] - points[p, i])
                qq += (points[q, i] - points[p, i]) ** 2
                rr += (points[r, i] - points[p, i]) ** 2
            angle = acos(min(max(dot / max(sqrt(qq * rr), 1e-300), -1.0), 1.0))
            vertex_normal[p, 0] += angle * nx
            vertex_normal[p, 1] += angle * ny
            vertex_normal[p, 2] += angle * nz
    for p in range(points.shape[0]):
        length = sqrt(vertex_normal[p, 0] ** 2 + vertex_normal[p, 1] ** 2 + vertex_normal[p, 2] ** 2)
        for c in range(3):
            vertex_normal[p, c] /= max(length, 1e-300)
    for e in range(edges.shape[0]):
        f, g = faces[e, 0], faces[e, 1]
        sharp[e] = f < 0
        for c in range(3):
            edge_normal[e, c] = 0.0
        if f < 0:
            continue
        cosine, square, out = 0.0, 0.0, 0.0
        for c in range(3):
            edge_normal[e, c] = normal[f, c] + normal[g, c]
            cosine += normal[f, c] * normal[g, c]
            square += edge_normal[e, c] ** 2
            # the corner of the second face across the edge lies below the first face where the edge is convex
            out += (points[edges[e, 3], c] - points[edges[e, 0], c]) * normal[f, c]
        sharp[e] = cosine < FLAT and out < 0.0
        for c in range(3):
            edge_normal[e, c] /= max(sqrt(square), 1e-300)


@njit(cache=True)
def closest_on_triangle(points: FloatArray, a: int, b: int, c: int, x: float, y: float, z: float) -> tuple[float, float, float]:
    """Barycentric weights of the point of triangle (a, b, c) closest to (x, y, z), found region by region."""
    abx, aby, abz = points[b, 0] - points[a, 0], points[b, 1] - points[a, 1], points[b, 2] - points[a, 2]
    acx, acy, acz = points[c, 0] - points[a, 0], points[c, 1] - points[a, 1], points[c, 2] - points[a, 2]
    px, py, pz = x - points[a, 0], y - points[a, 1], z - points[a, 2]
    d1 = abx * px + aby * py + abz * pz
    d2 = acx * px + acy * py + acz * pz
    if d1 <= 0.0 and d2 <= 0.0:
        return 1.0, 0.0, 0.0
    px, py, pz = x - points[b, 0], y - points[b, 1], z - points[b, 2]
    d3 = abx * px + aby * py + abz * pz
    d4 = acx * px + acy * py + acz * pz
    if d3 >= 0.0 and d4 <= d3:
        return 0.0, 1.0, 0.0
    vc = d1 * d4 - d3 * d2
    if vc <= 0.0 and d1 >= 0.0 and d3 <= 0.0:
        s = d1 / (d1 - d3)
        return 1.0 - s, s, 0.0
    px, py, pz = x - points[c, 0], y - points[c, 1], z - points[c, 2]
    d5 = abx * px + aby * py + abz * pz
    d6 = acx * px + acy * py + acz * pz
    if d6 >= 0.0 and d5 <= d6:
        return 0.0, 0.0, 1.0
    vb = d5 * d2 - d1 * d6
    if vb <= 0.0 and d2 >= 0.0 and d6 <= 0.0:
        s = d2 / (d2 - d6)
        return 1.0 - s, 0.0, s
    va = d3 * d6 - d5 * d4
    if va <= 0.0 and d4 - d3 >= 0.0 and d5 - d6 >= 0.0:
        s = (d4 - d3) / ((d4 - d3) + (d5 - d6))
        return 0.0, 1.0 - s, s
    total = va + vb + vc
    return va / total, vb / total, vc / total


@njit(cache=True)
def box_distance2(boxes: FloatArray, k: int, x: float, y: float, z: float) -> float:
    """Squared distance of a point to box k; inf for the box of nothing."""
    dx = max(max(boxes[k, 0] - x, x - boxes[k, 3]), 0.0)
    dy = max(max(boxes[k, 1] - y, y - boxes[k, 4]), 0.0)
    dz = max(max(boxes[k, 2] - z, z - boxes[k, 5]), 0.0)
    return dx * dx + dy * dy + dz * dz


@njit(cache=True)
def _write(
    count: int,
    kind: int,
    key: int,
    parts: tuple[int, int],
    gap: float,
    n: tuple[float, float, float],
    out_kind: IntArray,
    out_key: IntArray,
    out_body: IntArray,
    out_gap: FloatArray,
    out_frame: FloatArray,
    out_point: IntArray,
    out_weight: FloatArray,
) -> None:
    """Update row ``count`` of the output, with no points on either side yet."""
    out_kind[count], out_key[count], out_gap[count] = kind, key, gap
    out_body[count, 0], out_body[count, 1] = parts
    write_frame(out_frame[count], n[0], n[1], n[2])
    for side in range(2):
        for i in range(3):
            out_point[count, side, i] = -1
            out_weight[count, side, i] = 0.0


@njit(cache=True)
def _faces(normal: FloatArray, t: int, vertex_normal: FloatArray, p: int) -> bool:
    """Whether triangle t and vertex p look at each other."""
    dot = normal[t, 0] * vertex_normal[p, 0] + normal[t, 1] * vertex_normal[p, 1] + normal[t, 2] * vertex_normal[p, 2]
    return dot < -FACING


@njit(cache=True)
def vertex_faces(
    points: FloatArray,
    bodies: tuple[int, int],
    first: int,
    stop: int,
    radius: float,
    bare: bool,
    vertex_normal: FloatArray,
    triangles: IntArray,
    normal: FloatArray,
    triangle_edge: IntArray,
    faces: IntArray,
    edge_normal: FloatArray,
    around_start: IntArray,
    around: IntArray,
    depth: FloatArray,
    first_triangle: int,
    leaf: IntArray,
    boxes: FloatArray,
    margin: float,
    reach: float,
    key_base: int,
    stack: IntArray,
    seen_id: IntArray,
    seen_triangle: IntArray,
    seen: FloatArray,
    good: FloatArray,
    count: int,
    out_kind: IntArray,
    out_key: IntArray,
    out_body: IntArray,
    out_gap: FloatArray,
    out_frame: FloatArray,
    out_point: IntArray,
    out_weight: FloatArray,
) -> int:
    """Update the output with the contacts of points first to stop - 1 with one surface; answer how many there are now.

    Only triangles that face the vertex count; ``bare`` points (of strands) have no outward normal, all face them. Of the features
    of these triangles (faces, edges, vertices) those count that are closest to the point in their neighbourhood: an edge or
    vertex when all triangles round it say so (round point q: ``around[around_start[q]:around_start[q + 1]]``). Where the nearest
    of them sees the point inside, it alone counts, down to ``depth`` of its triangle; otherwise all within the margin, the nearer
    of those with nearly the same normal. Rows of ``seen``: squared distance and weights; of ``good``: signed distance, normal,
    index into ``seen``. Answers -1 when more features are near than ``seen`` has room for.
    """
    room, same = out_kind.shape[0], bodies[0] == bodies[1]
    n_triangles, n_edges, leaves = triangles.shape[0], faces.shape[0], leaf.shape[0]
    for p in range(first, stop):
        x, y, z = points[p, 0], points[p, 1], points[p, 2]
        if box_distance2(boxes, 1, x, y, z) > reach * reach:
            continue
        found, top, nearest, best = 0, 1, -1, inf
        stack[0] = 1
        while top > 0:
            top -= 1
            k = stack[top]
            if box_distance2(boxes, k, x, y, z) > reach * reach:
                continue
            if k < leaves:
                stack[top], stack[top + 1] = 2 * k + 1, 2 * k
                top += 2
                continue
            t = first_triangle + leaf[k - leaves]
            a, b, c = triangles[t, 0], triangles[t, 1], triangles[t, 2]
            if (same and (a == p or b == p or c == p)) or not (bare or _faces(normal, t, vertex_normal, p)):
                continue
            wa, wb, wc = closest_on_triangle(points, a, b, c, x, y, z)
            wa, wb, wc = (wa if wa > SNAP else 0.0), (wb if wb > SNAP else 0.0), (wc if wc > SNAP else 0.0)
            total = wa + wb + wc
            wa, wb, wc = wa / total, wb / total, wc / total
            distance2 = 0.0
            for i in range(3):
                distance2 += (points[p, i] - wa * points[a, i] - wb * points[b, i] - wc * points[c, i]) ** 2
            if distance2 > reach * reach:
                continue
            if found == seen.shape[0]:
                return -1
            zeros = (wa == 0.0) + (wb == 0.0) + (wc == 0.0)
            if zeros == 0:
                feature = t
            elif zeros == 1:
                feature = n_triangles + (
                    triangle_edge[t, 0] if wc == 0.0 else triangle_edge[t, 1] if wa == 0.0 else triangle_edge[t, 2]
                )
            else:
                feature = n_triangles + n_edges + (a if wa > 0.0 else b if wb > 0.0 else c)
            seen_id[found], seen_triangle[found] = feature, t
            seen[found, 0], seen[found, 1], seen[found, 2], seen[found, 3] = distance2, wa, wb, wc
            if distance2 < best:
                best, nearest = distance2, found
            found += 1
        kept = 0
        for s in range(found):
            feature, repeats, earlier = seen_id[s], 0, False
            for r in range(found):
                if seen_id[r] == feature:
                    repeats += 1
                    earlier = earlier or r < s
            needed = 1
            if feature >= n_triangles + n_edges:
                q = feature - n_triangles - n_edges
                needed = 0
                for i in range(around_start[q], around_start[q + 1]):
                    needed += bare or _faces(normal, around[i], vertex_normal, p)
            elif feature >= n_triangles:
                needed = 0
                for i in range(2):
                    needed += bare or _faces(normal, faces[feature - n_triangles, i], vertex_normal, p)
            if earlier or (repeats < needed and (same or seen_id[nearest] != feature)):
                continue
            t = seen_triangle[s]
            a, b, c = triangles[t, 0], triangles[t, 1], triangles[t, 2]
            dx = x - seen[s, 1] * points[a, 0] - seen[s, 2] * points[b, 0] - seen[s, 3] * points[c, 0]
            dy = y - seen[s, 1] * points[a, 1] - seen[s, 2] * points[b, 1] - seen[s, 3] * points[c, 1]
            dz = z - seen[s, 1] * points[a, 2] - seen[s, 2] * points[b, 2] - seen[s, 3] * points[c, 2]
            nx, ny, nz = normal[t, 0], normal[t, 1], normal[t, 2]
            distance, flat = sqrt(seen[s, 0]), feature < n_triangles
            if not flat and distance > TINY:
                if feature >= n_triangles + n_edges:
                    q = feature - n_triangles - n_edges
                    nx, ny, nz = vertex_normal[q, 0], vertex_normal[q, 1], vertex_normal[q, 2]
                else:
                    e = feature - n_triangles
                    nx, ny, nz = edge_normal[e, 0], edge_normal[e, 1], edge_normal[e, 2]
                scale = 1.0 / distance if nx * dx + ny * dy + nz * dz >= 0.0 else -1.0 / distance
                nx, ny, nz = scale * dx, scale * dy, scale * dz
            elif not flat and not bare:
                # on the edge itself: the face that looks most against the vertex
                least = inf
                for r in range(found):
                    if seen_id[r] == feature:
                        u = seen_triangle[r]
                        dot = 0.0
                        for i in range(3):
                            dot += normal[u, i] * vertex_normal[p, i]
                        if dot < least:
                            least, nx, ny, nz = dot, normal[u, 0], normal[u, 1], normal[u, 2]
            signed = nx * dx + ny * dy + nz * dz
            if -signed > depth[t]:
                continue
            facing = nx * vertex_normal[p, 0] + ny * vertex_normal[p, 1] + nz * vertex_normal[p, 2]
            if not (bare or flat) and facing > -FACING_RIM:
                continue
            # in order of distance
            place = min(kept, good.shape[0] - 1)
            if kept == good.shape[0] and abs(good[place, 0]) <= abs(signed):
                continue
            while place > 0 and abs(good[place - 1, 0]) > abs(signed):
                for i in range(5):
                    good[place, i] = good[place - 1, i]
                place -= 1
            good[place, 0], good[place, 1], good[place, 2], good[place, 3], good[place, 4] = signed, nx, ny, nz, s
            kept = min(kept + 1, good.shape[0])
        rank = 0
        for g in range(kept):
            # a negative one counts where nothing is nearer, not even beyond the margin
            if good[g, 0] - radius >= margin or (g > 0 and (good[0, 0] < 0.0 or good[g, 0] < 0.0)):
                continue
            new = rank < MAX_KEPT
            for h in range(g):
                dot = good[g, 1] * good[h, 1] + good[g, 2] * good[h, 2] + good[g, 3] * good[h, 3]
                new = new and dot < SAME_NORMAL
            if not new:
                continue
            if count < room:
                s = int(good[g, 4])
                n = (good[g, 1], good[g, 2], good[g, 3])
                key = (VERTEX_FACE * key_base + p) * key_base + MAX_KEPT * bodies[1] + rank
                _write(
                    count, VERTEX_FACE, key, bodies, good[g, 0] - radius, n,
                    out_kind, out_key, out_body, out_gap, out_frame, out_point, out_weight,
                )  # fmt: skip
                out_point[count, 0, 0], out_weight[count, 0, 0] = p, 1.0
                for i in range(3):
                    if seen[s, 1 + i] > 0.0:
                        out_point[count, 1, i], out_weight[count, 1, i] = triangles[seen_triangle[s], i], seen[s, 1 + i]
            count += 1
            rank += 1
    return count


@njit(cache=True)
def _falls_away(points: FloatArray, corner: int, q: tuple[float, float, float], n: tuple[float, float, float]) -> bool:
    """Whether a corner of a face lies below the plane through q with normal n, or so little above that it may count as level."""
    dx, dy, dz = points[corner, 0] - q[0], points[corner, 1] - q[1], points[corner, 2] - q[2]
    return dx * n[0] + dy * n[1] + dz * n[2] <= SLACK * sqrt(dx * dx + dy * dy + dz * dz)


@njit(cache=True)
def edge_edges(
    points: FloatArray,
    bodies: tuple[int, int],
    strands: tuple[bool, bool],
    radii: tuple[float, float],
    arc: FloatArray,
    first: int,
    stop: int,
    edges: IntArray,
    faces: IntArray,
    edge_normal: FloatArray,
    sharp: BoolArray,
    depth: FloatArray,
    first_edge: int,
    leaf: IntArray,
    boxes: FloatArray,
    margin: float,
    reach: float,
    key_base: int,
    stack: IntArray,
    count: int,
    out_kind: IntArray,
    out_key: IntArray,
    out_body: IntArray,
    out_gap: FloatArray,
    out_frame: FloatArray,
    out_point: IntArray,
    out_weight: FloatArray,
) -> int:
    """Update the output with crossings of edges first to stop - 1 and the edges of one body; answer how many there are now.

    Two edges touch where their closest points lie inside both and, on the side of a surface, both faces of the edge fall away
    from the plane of contact: only there are they, and not a vertex, what is closest. Two strands touch by any crossing.
    """
    room, same, leaves = out_kind.shape[0], bodies[0] == bodies[1], leaf.shape[0]
    for e in range(first, stop):
        if not sharp[e]:
            continue
        a, b = edges[e, 0], edges[e, 1]
        lx, hx = min(points[a, 0], points[b, 0]) - reach, max(points[a, 0], points[b, 0]) + reach
        ly, hy = min(points[a, 1], points[b, 1]) - reach, max(points[a, 1], points[b, 1]) + reach
        lz, hz = min(points[a, 2], points[b, 2]) - reach, max(points[a, 2], points[b, 2]) + reach
        ux, uy, uz = points[b, 0] - points[a, 0], points[b, 1] - points[a, 1], points[b, 2] - points[a, 2]
        uu = ux * ux + uy * uy + uz * uz
        top = 1
        stack[0] = 1
        while top > 0:
            top -= 1
            k = stack[top]
            if boxes[k, 0] > hx or boxes[k, 1] > hy or boxes[k, 2] > hz:
                continue
            if boxes[k, 3] < lx or boxes[k, 4] < ly or boxes[k, 5] < lz:
                continue
            if k < leaves:
                stack[top], stack[top + 1] = 2 * k + 1, 2 * k
                top += 2
                continue
            f = first_edge + leaf[k - leaves]
            c, d = edges[f, 0], edges[f, 1]
            if not sharp[f] or (same and (f <= e or a == c or a == d or b == c or b == d)):
                continue
            if same and strands[0] and arc[c] - arc[b] < SELF_ARC * (radii[0] + radii[1]):
                continue
            vx, vy, vz = points[d, 0] - points[c, 0], points[d, 1] - points[c, 1], points[d, 2] - points[c, 2]
            wx, wy, wz = points[a, 0] - points[c, 0], points[a, 1] - points[c, 1], points[a, 2] - points[c, 2]
            vv, uv = vx * vx + vy * vy + vz * vz, ux * vx + uy * vy + uz * vz
            square = uu * vv - uv * uv
            if square <= CROSSING * CROSSING * uu * vv:
                continue
            uw, vw = ux * wx + uy * wy + uz * wz, vx * wx + vy * wy + vz * wz
            s, t = (uv * vw - vv * uw) / square, (uu * vw - uv * uw) / square
            if s <= SNAP or s >= 1.0 - SNAP or t <= SNAP or t >= 1.0 - SNAP:
                continue
            nx, ny, nz = uy * vz - uz * vy, uz * vx - ux * vz, ux * vy - uy * vx
            length = sqrt(nx * nx + ny * ny + nz * nz)
            nx, ny, nz = nx / length, ny / length, nz / length
            dx, dy, dz = wx + s * ux - t * vx, wy + s * uy - t * vy, wz + s * uz - t * vz
            # from side 1 to side 0: out of the surface of side 1, or into that of side 0, or along the gap of two strands
            outward0 = nx * edge_normal[e, 0] + ny * edge_normal[e, 1] + nz * edge_normal[e, 2]
            outward1 = nx * edge_normal[f, 0] + ny * edge_normal[f, 1] + nz * edge_normal[f, 2]
            signed = nx * dx + ny * dy + nz * dz
            if (outward1 < 0.0) if not strands[1] else (outward0 > 0.0) if not strands[0] else (signed < 0.0):
                nx, ny, nz, signed, outward0, outward1 = -nx, -ny, -nz, -signed, -outward0, -outward1
            gap = signed - radii[0] - radii[1]
            if gap >= margin:
                continue
            if not strands[0]:
                if outward0 > -EDGE_FACING or -signed > min(depth[faces[e, 0]], depth[faces[e, 1]]):
                    continue
                q = (points[a, 0] + s * ux, points[a, 1] + s * uy, points[a, 2] + s * uz)
                m = (-nx, -ny, -nz)
                if not (_falls_away(points, edges[e, 2], q, m) and _falls_away(points, edges[e, 3], q, m)):
                    continue
            if not strands[1]:
                if outward1 < EDGE_FACING or -signed > min(depth[faces[f, 0]], depth[faces[f, 1]]):
                    continue
                q = (points[c, 0] + t * vx, points[c, 1] + t * vy, points[c, 2] + t * vz)
                m = (nx, ny, nz)
                if not (_falls_away(points, edges[f, 2], q, m) and _falls_away(points, edges[f, 3], q, m)):
                    continue
            if count < room:
                key = (EDGE_EDGE * key_base + e) * key_base + f
                _write(
                    count, EDGE_EDGE, key, bodies, gap, (nx, ny, nz),
                    out_kind, out_key, out_body, out_gap, out_frame, out_point, out_weight,
                )  # fmt: skip
                out_point[count, 0, 0], out_point[count, 0, 1] = a, b
                out_weight[count, 0, 0], out_weight[count, 0, 1] = 1.0 - s, s
                out_point[count, 1, 0], out_point[count, 1, 1] = c, d
                out_weight[count, 1, 0], out_weight[count, 1, 1] = 1.0 - t, t
            count += 1
    return count


@njit(cache=True)
def point_segments(
    points: FloatArray,
    bodies: tuple[int, int],
    bare: bool,
    leads: bool,
    radii: tuple[float, float],
    arc: FloatArray,
    first: int,
    stop: int,
    vertex_normal: FloatArray,
    edges: IntArray,
    first_edge: int,
    last_edge: int,
    leaf: IntArray,
    boxes: FloatArray,
    margin: float,
    key_base: int,
    stack: IntArray,
    count: int,
    out_kind: IntArray,
    out_key: IntArray,
    out_body: IntArray,
    out_gap: FloatArray,
    out_frame: FloatArray,
    out_point: IntArray,
    out_weight: FloatArray,
) -> int:
    """Update the output with contacts of points first to stop - 1 with the segments of a strand; answer how many there are now.

    The closest point of the strand lies inside a segment or, for points of strands (``bare``), at one of its points that is
    closest in its neighbourhood. The vertices of a surface must face the strand. Where two strands lie along each other, only the
    points of that which ``leads`` count, or within one strand the earlier ones, and its ends: all points of both would make twice
    the contacts that hold the two apart, and forces that are not unique.
    """
    room, same, leaves = out_kind.shape[0], bodies[0] == bodies[1], leaf.shape[0]
    reach = max(margin, 0.0) + radii[0] + radii[1]
    for p in range(first, stop):
        x, y, z = points[p, 0], points[p, 1], points[p, 2]
        top = 1
        stack[0] = 1
        while top > 0:
            top -= 1
            k = stack[top]
            if box_distance2(boxes, k, x, y, z) > reach * reach:
                continue
            if k < leaves:
                stack[top], stack[top + 1] = 2 * k + 1, 2 * k
                top += 2
                continue
            f = first_edge + leaf[k - leaves]
            c, d = edges[f, 0], edges[f, 1]
            if same and max(arc[c] - arc[p], arc[p] - arc[d]) < SELF_ARC * (radii[0] + radii[1]):
                continue
            vx, vy, vz = points[d, 0] - points[c, 0], points[d, 1] - points[c, 1], points[d, 2] - points[c, 2]
            if bare and not (p < c if same else leads) and first < p < stop - 1:
                tx, ty = points[p + 1, 0] - points[p - 1, 0], points[p + 1, 1] - points[p - 1, 1]
                tz = points[p + 1, 2] - points[p - 1, 2]
                tv = tx * vx + ty * vy + tz * vz
                if tv * tv > ALONG * ALONG * (tx * tx + ty * ty + tz * tz) * (vx * vx + vy * vy + vz * vz):
                    continue
            wx, wy, wz = x - points[c, 0], y - points[c, 1], z - points[c, 2]
            t = (vx * wx + vy * wy + vz * wz) / max(vx * vx + vy * vy + vz * vz, 1e-300)
            if t <= SNAP:
                t = 0.0
                if not bare:
                    continue
                if f > first_edge:  # behind the segment before, too?
                    b = edges[f - 1, 0]
                    bx, by, bz = points[b, 0] - points[c, 0], points[b, 1] - points[c, 1], points[b, 2] - points[c, 2]
                    if wx * bx + wy * by + wz * bz > 0.0:
                        continue
            elif t >= 1.0 - SNAP:
                t = 1.0
                if not bare or f + 1 < last_edge:  # the next segment starts here
                    continue
            nx, ny, nz = wx - t * vx, wy - t * vy, wz - t * vz
            distance = sqrt(nx * nx + ny * ny + nz * nz)
            gap = distance - radii[0] - radii[1]
            if gap >= margin or distance <= TINY:
                continue
            nx, ny, nz = nx / distance, ny / distance, nz / distance
            if not bare and nx * vertex_normal[p, 0] + ny * vertex_normal[p, 1] + nz * vertex_normal[p, 2] > -FACING_RIM:
                continue
            if count < room:
                key = (POINT_SEGMENT * key_base + p) * key_base + f
                _write(
                    count, POINT_SEGMENT, key, bodies, gap, (nx, ny, nz),
                    out_kind, out_key, out_body, out_gap, out_frame, out_point, out_weight,
                )  # fmt: skip
                out_point[count, 0, 0], out_weight[count, 0, 0] = p, 1.0
                if t < 1.0:
                    out_point[count, 1, 0], out_weight[count, 1, 0] = c, 1.0 - t
                if t > 0.0:
                    out_point[count, 1, 1], out_weight[count, 1, 1] = d, t
            count += 1
    return count


@njit(cache=True)
def depth_inside(
    points: FloatArray, first: int, stop: int, triangles: IntArray, first_triangle: int, last_triangle: int
) -> float:
    """Find the largest distance to a closed surface of those of points first to stop - 1 that lie in it, m; 0 when none does.

    In it means that the solid angles of the triangles sum to 4 pi (A. van Oosterom, J. Strackee, "The solid angle of a plane
    triangle", IEEE Trans. Biomed. Eng. 30, 1983).
    """
    deepest = 0.0
    for p in range(first, stop):
        x, y, z = points[p, 0], points[p, 1], points[p, 2]
        angle, nearest = 0.0, inf
        for t in range(first_triangle, last_triangle):
            a, b, c = triangles[t, 0], triangles[t, 1], triangles[t, 2]
            ax, ay, az = points[a, 0] - x, points[a, 1] - y, points[a, 2] - z
            bx, by, bz = points[b, 0] - x, points[b, 1] - y, points[b, 2] - z
            cx, cy, cz = points[c, 0] - x, points[c, 1] - y, points[c, 2] - z
            la, lb, lc = sqrt(ax * ax + ay * ay + az * az), sqrt(bx * bx + by * by + bz * bz), sqrt(cx * cx + cy * cy + cz * cz)
            top = ax * (by * cz - bz * cy) + ay * (bz * cx - bx * cz) + az * (bx * cy - by * cx)
            ab, bc, ca = ax * bx + ay * by + az * bz, bx * cx + by * cy + bz * cz, cx * ax + cy * ay + cz * az
            angle += 2.0 * np.arctan2(top, la * lb * lc + ab * lc + bc * la + ca * lb)
            wa, wb, wc = closest_on_triangle(points, a, b, c, x, y, z)
            qx, qy, qz = wa * ax + wb * bx + wc * cx, wa * ay + wb * by + wc * cy, wa * az + wb * bz + wc * cz
            nearest = min(nearest, qx * qx + qy * qy + qz * qz)
        if angle > 2.0 * np.pi:
            deepest = max(deepest, sqrt(nearest))
    return deepest

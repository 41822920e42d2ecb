"""Compiled kernels of detection: signed distances, broad phase, contact points with frames.

Every function works on scalars or fills the arrays it is given. Distances are negative inside a shape; normals are unit vectors
that point out of the shape. Arrays are handed over one by one, up to 35 of them, because these kernels run in every step of every
scene: numba takes 12 arrays in 2 us, but a named tuple of 12 in 5 to 7 us.
"""

from __future__ import annotations

from math import inf, sqrt

import numpy as np
import numpy.typing as npt

from contact.compiled import njit
from contact.frustum_kernels import cone_distance
from contact.sdf_kernels import BEYOND, ask_for_chunks, distance_beyond
from contact.turned_kernels import revolved_distance, screwed_distance, thread_distance, wall_distance

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
Distance = tuple[float, float, float, float]

#: Shape kinds as the kernels know them.
PLANE, BOX, SPHERE, CAPSULE, CYLINDER, MESH, REVOLVED, THREAD, CONE = 0, 1, 2, 3, 4, 5, 6, 7, 8

#: What ``point_corner`` is of points of a Revolved, and of vertices of a mesh that can be at edges of others.
TURNED, VERTEX = -2, -3

#: ``point_corner`` of points of Thread s is this less s.
THREADED = -4

#: A normal of a corner or an edge may point into its body by this cosine (6 degrees).
LEAN = 0.1

#: Corners this close to the border of a face, as a fraction of the largest half extent, lie on the face.
HAIR = 1e-6

#: Edges with less than this sine between them do not cross: their ends are closer.
PARALLEL = 1e-2

#: A face pushes out corners up to this many times as deep as the boxes overlap.
DEEPER = 1.5

#: The first tangent leans on the world x axis while |n_x| is at most this, else on the y axis.
AXIS_SWITCH = 0.9


@njit(cache=True, inner=True)
def sphere_distance(x: float, y: float, z: float, radius: float) -> Distance:
    """Signed distance and outward unit normal of a sphere; at its centre the normal is +z."""
    length = sqrt(x * x + y * y + z * z)
    if length == 0.0:
        return -radius, 0.0, 0.0, 1.0
    return length - radius, x / length, y / length, z / length


@njit(cache=True, inner=True)
def capsule_distance(x: float, y: float, z: float, radius: float, half_length: float) -> Distance:
    """Signed distance and outward unit normal of a capsule along z; on its axis the normal is +x."""
    w = z - min(max(z, -half_length), half_length)
    length = sqrt(x * x + y * y + w * w)
    if length == 0.0:
        return -radius, 1.0, 0.0, 0.0
    return length - radius, x / length, y / length, w / length


@njit(cache=True, inner=True)
def box_distance(x: float, y: float, z: float, hx: float, hy: float, hz: float) -> Distance:
    """Signed distance and outward unit normal of a box about the origin with half extents hx, hy, hz.

    Inside, the nearest face wins; among equally near faces x before y before z, and the positive side at 0.
    """
    sx, sy, sz = 1.0 if x >= 0.0 else -1.0, 1.0 if y >= 0.0 else -1.0, 1.0 if z >= 0.0 else -1.0
    qx, qy, qz = sx * x - hx, sy * y - hy, sz * z - hz
    mx, my, mz = max(qx, 0.0), max(qy, 0.0), max(qz, 0.0)
    square = mx * mx + my * my + mz * mz
    if square > 0.0:  # outside; before the face test, which would give the face plane beyond an edge
        distance = sqrt(square)
        return distance, sx * mx / distance, sy * my / distance, sz * mz / distance
    if qx >= qy and qx >= qz:
        return qx, sx, 0.0, 0.0
    if qy >= qz:
        return qy, 0.0, sy, 0.0
    return qz, 0.0, 0.0, sz


@njit(cache=True, inner=True)
def separation(
    nx: float, ny: float, nz: float, a: int, b: int, size: FloatArray, rotation: FloatArray, translation: FloatArray
) -> float:
    """Gap between the extents of boxes ``a`` and ``b`` along a unit vector, m; negative where they overlap."""
    gap = abs(
        nx * (translation[a, 0] - translation[b, 0])
        + ny * (translation[a, 1] - translation[b, 1])
        + nz * (translation[a, 2] - translation[b, 2])
    )
    for k in range(3):
        gap -= size[a, k] * abs(nx * rotation[a, 0, k] + ny * rotation[a, 1, k] + nz * rotation[a, 2, k])
        gap -= size[b, k] * abs(nx * rotation[b, 0, k] + ny * rotation[b, 1, k] + nz * rotation[b, 2, k])
    return gap


@njit(cache=True, inner=True)
def face_separation(a: int, b: int, size: FloatArray, rotation: FloatArray, translation: FloatArray) -> float:
    """Return the largest gap between boxes ``a`` and ``b`` along the normals of their faces, m."""
    best = separation(rotation[a, 0, 0], rotation[a, 1, 0], rotation[a, 2, 0], a, b, size, rotation, translation)
    for k in range(3):
        if k > 0:
            gap = separation(rotation[a, 0, k], rotation[a, 1, k], rotation[a, 2, k], a, b, size, rotation, translation)
            best = max(best, gap)
        gap = separation(rotation[b, 0, k], rotation[b, 1, k], rotation[b, 2, k], a, b, size, rotation, translation)
        best = max(best, gap)
    return best


@njit(cache=True, inner=True)
def box_separation(a: int, b: int, size: FloatArray, rotation: FloatArray, translation: FloatArray) -> float:
    """Return the largest gap between boxes ``a`` and ``b`` along any axis, normals of faces and edges across edges, m.

    Where it is negative, its size is the depth of the overlap (separating axes). Edges within PARALLEL of each other are left
    out.
    """
    best = face_separation(a, b, size, rotation, translation)
    for i in range(3):
        ax, ay, az = rotation[a, 0, i], rotation[a, 1, i], rotation[a, 2, i]
        for j in range(3):
            bx, by, bz = rotation[b, 0, j], rotation[b, 1, j], rotation[b, 2, j]
            nx, ny, nz = ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx
            sine = sqrt(nx * nx + ny * ny + nz * nz)
            if sine >= PARALLEL:
                best = max(best, separation(nx / sine, ny / sine, nz / sine, a, b, size, rotation, translation))
    return best


@njit(cache=True, inner=True)
def corner_faces(nx: float, ny: float, nz: float, edge: FloatArray) -> bool:
    """Whether a corner is the deepest part of its body along a normal, given its edges (3, 3): unit vectors away from the corner.

    It is unless the normal points back along an edge by more than LEAN: then other points of that edge lie deeper.
    """
    for i in range(3):
        if nx * edge[i, 0] + ny * edge[i, 1] + nz * edge[i, 2] < -LEAN:
            return False
    return True


@njit(cache=True, inner=True)
def corner_distance(x: float, y: float, z: float, hx: float, hy: float, hz: float, edge: FloatArray, deepest: float) -> Distance:
    """Signed distance and normal of a box for a corner of another one with the edges (3, 3), in the frame of the box.

    It is that of :func:`box_distance` where this gives the normal of a face that the corner faces. Otherwise it is that of a
    face: of the three on its sides, the nearest one that the corner faces, within whose border it lies (or on it, within
    HAIR of the largest half extent), and that it is not behind by more than DEEPER times ``deepest`` (:func:`box_separation`).
    Without such a face it is again that of the point alone; but a corner outside that does not face the box counts as infinitely
    far, because other points of its body are nearer. So the face under a corner on an edge holds it, however its position is
    rounded.
    """
    d, nx, ny, nz = box_distance(x, y, z, hx, hy, hz)
    facing = corner_faces(nx, ny, nz, edge)
    if facing and max(abs(nx), abs(ny), abs(nz)) == 1.0:
        return d, nx, ny, nz
    sx, sy, sz = 1.0 if x >= 0.0 else -1.0, 1.0 if y >= 0.0 else -1.0, 1.0 if z >= 0.0 else -1.0
    qx, qy, qz = sx * x - hx, sy * y - hy, sz * z - hz
    hair = HAIR * max(hx, hy, hz)
    floor = min(deepest, DEEPER * deepest) - hair
    depth, fx, fy, fz = -inf, 0.0, 0.0, 0.0
    if qy <= hair and qz <= hair and qx >= floor and corner_faces(sx, 0.0, 0.0, edge):
        depth, fx = qx, sx
    if qx <= hair and qz <= hair and qy > depth and qy >= floor and corner_faces(0.0, sy, 0.0, edge):
        depth, fx, fy = qy, 0.0, sy
    if qx <= hair and qy <= hair and qz > depth and qz >= floor and corner_faces(0.0, 0.0, sz, edge):
        depth, fx, fy, fz = qz, 0.0, 0.0, sz
    if depth > -inf:
        return depth, fx, fy, fz
    if d > 0.0 and not facing:
        return inf, 0.0, 0.0, 0.0
    return d, nx, ny, nz


@njit(cache=True, inner=True)
def cylinder_distance(x: float, y: float, z: float, radius: float, half_length: float) -> Distance:
    """Signed distance and outward unit normal of a capped cylinder along z.

    Inside, the nearer of side and cap wins, the side on a tie; on the axis the side's normal is +x; at z = 0
    the upper cap wins.
    """
    rho = sqrt(x * x + y * y)
    ux, uy = (x / rho, y / rho) if rho > 0.0 else (1.0, 0.0)
    sz = 1.0 if z >= 0.0 else -1.0
    qr, qz = rho - radius, sz * z - half_length
    mr, mz = max(qr, 0.0), max(qz, 0.0)
    square = mr * mr + mz * mz
    if square > 0.0:
        distance = sqrt(square)
        return distance, ux * mr / distance, uy * mr / distance, sz * mz / distance
    if qr >= qz:
        return qr, ux, uy, 0.0
    return qz, 0.0, 0.0, sz


@njit(cache=True, inner=True)
def grid_distance(
    x: float,
    y: float,
    z: float,
    values: FloatArray,
    start: int,
    nx: int,
    ny: int,
    nz: int,
    ox: float,
    oy: float,
    oz: float,
    spacing: float,
) -> Distance:
    """Trilinear value of a distance grid and its normalised gradient; +inf and a zero normal outside.

    ``values[start:]`` holds the (nx, ny, nz) nodes in C order, the first at (ox, oy, oz). Where the gradient
    vanishes (a medial surface) the normal is +z. The 12 parameters are a point and the numbers of one grid, each from its row of
    the arrays of all grids; a tuple of them would only be taken apart again.
    """
    fx, fy, fz = (x - ox) / spacing, (y - oy) / spacing, (z - oz) / spacing
    inside = fx >= 0.0 and fy >= 0.0 and fz >= 0.0 and fx <= nx - 1 and fy <= ny - 1 and fz <= nz - 1
    if not inside:
        return inf, 0.0, 0.0, 0.0
    i, j, k = min(int(fx), nx - 2), min(int(fy), ny - 2), min(int(fz), nz - 2)
    tx, ty, tz = fx - i, fy - j, fz - k
    at = start + (i * ny + j) * nz + k
    row, sheet = nz, ny * nz
    c000, c001 = values[at], values[at + 1]
    c010, c011 = values[at + row], values[at + row + 1]
    c100, c101 = values[at + sheet], values[at + sheet + 1]
    c110, c111 = values[at + sheet + row], values[at + sheet + row + 1]
    # along z, then y, then x
    c00, c01 = c000 + tz * (c001 - c000), c010 + tz * (c011 - c010)
    c10, c11 = c100 + tz * (c101 - c100), c110 + tz * (c111 - c110)
    c0, c1 = c00 + ty * (c01 - c00), c10 + ty * (c11 - c10)
    distance = c0 + tx * (c1 - c0)
    gx = c1 - c0
    gy = (1.0 - tx) * (c01 - c00) + tx * (c11 - c10)
    gz = (1.0 - tx) * ((1.0 - ty) * (c001 - c000) + ty * (c011 - c010)) + tx * ((1.0 - ty) * (c101 - c100) + ty * (c111 - c110))
    slope = sqrt(gx * gx + gy * gy + gz * gz)
    if slope <= 1e-12 * spacing:
        return distance, 0.0, 0.0, 1.0
    return distance, gx / slope, gy / slope, gz / slope


@njit(cache=True, inner=True)
def shape_distance(
    s: int,
    x: float,
    y: float,
    z: float,
    kind: IntArray,
    size: FloatArray,
    grid_values: FloatArray | None,
    grid_index: IntArray,
    grid_place: FloatArray,
    bound: float,
) -> Distance:
    """Signed distance and outward unit normal of shape ``s`` of the table at a point of its own frame.

    A mesh that is not nearer than ``bound`` (m) may be infinitely far.

    With ``grid_values`` of None, where no shape of the table has any, what reads them is not compiled: half of it. A mesh
    whose distance was not measured there is infinitely far away, and that it was asked for is noted: whoever called measures it
    and asks again, see :meth:`contact.shapes.ShapeTable.make_asked`.
    """
    k = kind[s]
    if k == PLANE:
        return z, 0.0, 0.0, 1.0
    if k == BOX:
        return box_distance(x, y, z, size[s, 0], size[s, 1], size[s, 2])
    if k == SPHERE:
        return sphere_distance(x, y, z, size[s, 0])
    if k == CAPSULE:
        return capsule_distance(x, y, z, size[s, 0], size[s, 1])
    if k == CYLINDER:
        return cylinder_distance(x, y, z, size[s, 0], size[s, 1])
    if k == CONE:
        return cone_distance(x, y, z, size[s, 0], size[s, 1], size[s, 2])
    if grid_values is None:
        return inf, 0.0, 0.0, 1.0
    if k == REVOLVED:
        return revolved_distance(x, y, z, size[s, 0], grid_values, grid_index[s, 0], grid_index[s, 1])
    if k == THREAD:
        return thread_distance(x, y, z, size[s, 0], size[s, 1], size[s, 2], grid_values, grid_index[s, 0])
    if grid_index[s, 1] == 0:
        grid_index[s, 5] = 1
        return inf, 0.0, 0.0, 0.0
    nx, ny, nz = grid_index[s, 1], grid_index[s, 2], grid_index[s, 3]
    found = grid_distance(
        x, y, z, grid_values, grid_index[s, 0], nx, ny, nz,
        grid_place[s, 0], grid_place[s, 1], grid_place[s, 2], grid_place[s, 3],
    )  # fmt: skip
    after = grid_index[s, 0] + nx * ny * nz
    if found[0] == inf and grid_index[s, 4] > 0:
        return distance_beyond(x, y, z, bound, grid_values, after, grid_index[s, 4])
    if found[0] != found[0]:  # NaN: not measured
        i = min(int((x - grid_place[s, 0]) / grid_place[s, 3]), nx - 2)
        j = min(int((y - grid_place[s, 1]) / grid_place[s, 3]), ny - 2)
        k = min(int((z - grid_place[s, 2]) / grid_place[s, 3]), nz - 2)
        if ask_for_chunks(i, j, k, grid_values, after + grid_index[s, 4] * BEYOND, ny, nz):
            grid_index[s, 5] = 1
        return inf, 0.0, 0.0, 0.0
    return found


@njit(cache=True)
def distances(
    s: int,
    points: FloatArray,
    kind: IntArray,
    size: FloatArray,
    grid_values: FloatArray,
    grid_index: IntArray,
    grid_place: FloatArray,
    distance: FloatArray,
    normal: FloatArray,
) -> None:
    """Update distance (n,) and normal (n, 3) of shape ``s`` given points (n, 3) of its own frame."""
    for i in range(points.shape[0]):
        d, nx, ny, nz = shape_distance(
            s, points[i, 0], points[i, 1], points[i, 2], kind, size, grid_values, grid_index, grid_place, inf
        )
        distance[i] = d
        normal[i, 0], normal[i, 1], normal[i, 2] = nx, ny, nz


@njit(cache=True)
def place_shapes(
    body: IntArray,
    local_rotation: FloatArray,
    local_translation: FloatArray,
    body_rotation: FloatArray,
    body_translation: FloatArray,
    rotation: FloatArray,
    translation: FloatArray,
) -> None:
    """Update world poses of shapes given those of their bodies: R = R_b R_s, t = R_b t_s + t_b."""
    for s in range(body.shape[0]):
        b = body[s]
        for i in range(3):
            shift = body_translation[b, i]
            for j in range(3):
                shift += body_rotation[b, i, j] * local_translation[s, j]
                rotation[s, i, j] = (
                    body_rotation[b, i, 0] * local_rotation[s, 0, j]
                    + body_rotation[b, i, 1] * local_rotation[s, 1, j]
                    + body_rotation[b, i, 2] * local_rotation[s, 2, j]
                )
            translation[s, i] = shift


@njit(cache=True, inner=True)
def group_boxes(points: FloatArray, reach: FloatArray, run_start: IntArray, box: FloatArray) -> int:
    """Update box (runs, 2, 3), the bounds of each run of points grown by their reach.

    Returns the first point that is not finite, else -1. Each bound is widened by 1e-12 of the coordinates, so that rounding never
    loses a pair.
    """
    for g in range(run_start.shape[0] - 1):
        for k in range(3):
            lower, upper, largest = inf, -inf, 0.0
            for i in range(run_start[g], run_start[g + 1]):
                x = points[i, k]
                if not abs(x) < inf:
                    return i
                # a negative reach would shrink the box by more than itself along a diagonal
                grow = max(reach[i], 0.0)
                lower = min(lower, x - grow)
                upper = max(upper, x + grow)
                largest = max(largest, abs(x))
            box[g, 0, k] = lower - 1e-12 * largest
            box[g, 1, k] = upper + 1e-12 * largest
    return -1


@njit(cache=True, inner=True)
def candidate_pairs(
    box: FloatArray,
    run_body: IntArray,
    shape_body: IntArray,
    may_contact: BoolArray,
    kind: IntArray,
    box_centre: FloatArray,
    box_half: FloatArray,
    rotation: FloatArray,
    translation: FloatArray,
    pairs: IntArray,
    within: BoolArray,
    closer: float,
) -> int:
    """Update pairs (shape, run), sorted, given the bounds of runs and shapes; return how many there are.

    Of bodies ``within`` (nb, nb) the bounds of runs are ``closer`` (m) than they are: their margin is less by this.
    """
    count = 0
    lower, upper = np.empty(3), np.empty(3)
    for s in range(kind.shape[0]):
        if kind[s] != PLANE:  # the box around the shape, in the world
            for k in range(3):
                centre, half = translation[s, k], 0.0
                for j in range(3):
                    centre += rotation[s, k, j] * box_centre[s, j]
                    half += abs(rotation[s, k, j]) * box_half[s, j]
                half += 1e-12 * (abs(centre) + half)
                lower[k], upper[k] = centre - half, centre + half
        for g in range(run_body.shape[0]):
            near, less = True, closer if closer > 0.0 and within[run_body[g], shape_body[s]] else 0.0
            if kind[s] == PLANE:  # the corner of the box that lies deepest along the plane's normal
                height = 0.0
                for k in range(3):
                    n = rotation[s, k, 2]
                    height += n * ((box[g, 0, k] if n > 0.0 else box[g, 1, k]) - translation[s, k])
                near = not height > 0.0
            else:
                for k in range(3):
                    if box[g, 0, k] + less > upper[k] or box[g, 1, k] - less < lower[k]:
                        near = False
                        break
            if near and may_contact[run_body[g], shape_body[s]]:  # asked last: it is far away in memory
                pairs[count, 0] = s
                pairs[count, 1] = g
                count += 1
    return count


@njit(cache=True, inner=True)
def write_frame(frame: FloatArray, nx: float, ny: float, nz: float) -> None:
    """Update frame (3, 3): rows normal, first tangent, second tangent; right-handed and orthonormal.

    The first tangent is the world x axis (the y axis where |n_x| > AXIS_SWITCH) made orthogonal to the
    normal. The rule jumps only on two circles of the sphere of normals, none of which passes near an axis or
    a diagonal; picking the least aligned of three axes would jump exactly at the axes, where floors and boxes
    live.
    """
    if abs(nx) <= AXIS_SWITCH:
        tx, ty, tz = 1.0 - nx * nx, -nx * ny, -nx * nz
    else:
        tx, ty, tz = -ny * nx, 1.0 - ny * ny, -ny * nz
    length = sqrt(tx * tx + ty * ty + tz * tz)
    tx, ty, tz = tx / length, ty / length, tz / length
    frame[0, 0], frame[0, 1], frame[0, 2] = nx, ny, nz
    frame[1, 0], frame[1, 1], frame[1, 2] = tx, ty, tz
    frame[2, 0], frame[2, 1], frame[2, 2] = ny * tz - nz * ty, nz * tx - nx * tz, nx * ty - ny * tx


@njit(cache=True, forceinline=True, _nrt=False)
def farthest(own: int, radius: float, kind: int, margin: float, largest: float, cell: float) -> float:
    """Gap below which a point may have contact with a shape of a kind: the margin, and more for corners and round points.

    ``own`` is its ``point_corner``. On the edge of a box, where two lie flush, a corner is on the side of the box and may be deep
    below its face; ``largest`` is the largest half extent, m. At its edges the distance of a mesh errs by less than a ``cell``.
    """
    if kind == BOX and (own >= 0 or own == VERTEX):
        return max(margin, HAIR * largest)
    if kind == MESH and radius > 0.0:
        return margin + cell
    if kind == MESH and (own >= 0 or own == VERTEX):
        return max(margin, cell)
    return margin


@njit(cache=True, forceinline=True, _nrt=False)
def edges_of_corner(box: int, corner: int, s: int, rotation: FloatArray, edge: FloatArray) -> None:
    """Update edge (3, 3): as rows, unit vectors along the edges of a corner of a box, away from it, in the frame of shape s."""
    for k in range(3):
        # bit 2 - k of the number of a corner is the side on which it lies
        away = -1.0 if corner >> (2 - k) & 1 else 1.0
        x, y, z = away * rotation[box, 0, k], away * rotation[box, 1, k], away * rotation[box, 2, k]
        for i in range(3):
            edge[k, i] = rotation[s, 0, i] * x + rotation[s, 1, i] * y + rotation[s, 2, i] * z


@njit(cache=True, forceinline=True, _nrt=False)
def world_normal(nx: float, ny: float, nz: float, s: int, rotation: FloatArray) -> tuple[float, float, float]:
    """Turn a normal of shape s into the world, and take out what rounding left in the pose: it is a unit vector there."""
    wx = rotation[s, 0, 0] * nx + rotation[s, 0, 1] * ny + rotation[s, 0, 2] * nz
    wy = rotation[s, 1, 0] * nx + rotation[s, 1, 1] * ny + rotation[s, 1, 2] * nz
    wz = rotation[s, 2, 0] * nx + rotation[s, 2, 1] * ny + rotation[s, 2, 2] * nz
    length = sqrt(wx * wx + wy * wy + wz * wz)
    return wx / length, wy / length, wz / length


@njit(cache=True, inner=True)
def detect_points(
    points: FloatArray,
    radius: FloatArray,
    margin: FloatArray,
    run_start: IntArray,
    pairs: IntArray,
    n_pairs: int,
    kind: IntArray,
    size: FloatArray,
    box_centre: FloatArray,
    box_half: FloatArray,
    grid_values: FloatArray | None,
    grid_index: IntArray,
    grid_place: FloatArray,
    rotation: FloatArray,
    translation: FloatArray,
    point_corner: IntArray,
    shape_corner: IntArray,
    edge: FloatArray,
    run_body: IntArray,
    shape_body: IntArray,
    within: BoolArray,
    closer: float,
    out_point: IntArray,
    out_shape: IntArray,
    out_gap: FloatArray,
    out_frame: FloatArray,
    out_position: FloatArray,
    out_feature: IntArray,
) -> int:
    """Update the out_ arrays with every contact of the candidate pairs; return how many there are.

    ``point_corner`` (p,) is the box whose corner a point is, ``shape_corner`` (s,) the first of the eight corners of a box; -1
    for none. Corners at meshes, and vertices of meshes at meshes and boxes, are written from farther away than the margin, for
    :mod:`contact.facing_kernels` to say which of them are contacts, and points with a radius at meshes for
    :mod:`contact.round_kernels`. A point has a contact with each wall of a Revolved, whose
    number is the feature; a point of a Revolved, TURNED, has one with the nearest wall alone, since its triangles have the
    others; of two threads see :func:`contact.turned_kernels.screwed_distance`. ``edge`` (3, 3) is room to work in. Of
    bodies ``within`` (nb, nb) the margin is less by ``closer`` (m). The number may exceed the room in the arrays; contacts beyond
    it are counted, not written. For the 28 parameters see the module; they make more than 80 lines of one loop over points.
    """
    count, room = 0, out_point.shape[0]
    for c in range(n_pairs):
        s, g = pairs[c, 0], pairs[c, 1]
        less = closer if closer > 0.0 and within[run_body[g], shape_body[s]] else 0.0
        flat = kind[s] == PLANE
        tx, ty, tz = translation[s, 0], translation[s, 1], translation[s, 2]
        r00, r01, r02 = rotation[s, 0, 0], rotation[s, 0, 1], rotation[s, 0, 2]
        r10, r11, r12 = rotation[s, 1, 0], rotation[s, 1, 1], rotation[s, 1, 2]
        r20, r21, r22 = rotation[s, 2, 0], rotation[s, 2, 1], rotation[s, 2, 2]
        cx, cy, cz = box_centre[s, 0], box_centre[s, 1], box_centre[s, 2]
        hx, hy, hz = box_half[s, 0], box_half[s, 1], box_half[s, 2]
        for i in range(run_start[g], run_start[g + 1]):
            dx, dy, dz = points[i, 0] - tx, points[i, 1] - ty, points[i, 2] - tz
            # the bounding box in the shape's frame, axis by axis, with a hair for rounding
            most = margin[i] - less
            reach = radius[i] + most + 1e-12 * (abs(dx) + abs(dy) + abs(dz))
            x = r00 * dx + r10 * dy + r20 * dz
            if not flat and abs(x - cx) - hx > reach:
                continue
            y = r01 * dx + r11 * dy + r21 * dz
            if not flat and abs(y - cy) - hy > reach:
                continue
            z = r02 * dx + r12 * dy + r22 * dz
            if not flat and abs(z - cz) - hz > reach:
                continue
            own = point_corner[i]
            far = farthest(own, radius[i], kind[s], most, max(hx, hy, hz), grid_place[s, 3])
            walls = grid_index[s, 1] - 1 if kind[s] == REVOLVED and own != TURNED else 1
            for wall in range(walls):
                if grid_values is not None and walls > 1:
                    d, nx, ny, nz = wall_distance(x, y, z, size[s, 0], grid_values, grid_index[s, 0], walls + 1, wall)
                elif grid_values is not None and kind[s] == THREAD and own <= THREADED:
                    d, nx, ny, nz = screwed_distance(
                        s, THREADED - own, x, y, z, size, grid_values, grid_index, rotation, translation
                    )
                else:
                    bound = radius[i] + far
                    d, nx, ny, nz = shape_distance(s, x, y, z, kind, size, grid_values, grid_index, grid_place, bound)
                gap = d - radius[i]
                if not gap < far:
                    continue
                if own >= 0 and kind[s] == BOX:
                    edges_of_corner(own, i - shape_corner[own], s, rotation, edge)
                    if not (max(abs(nx), abs(ny), abs(nz)) == 1.0 and corner_faces(nx, ny, nz, edge)):
                        deepest = box_separation(own, s, size, rotation, translation)
                        gap, nx, ny, nz = corner_distance(x, y, z, hx, hy, hz, edge, deepest)
                    if not gap < most:
                        continue
                if count < room:
                    wx, wy, wz = world_normal(nx, ny, nz, s, rotation)
                    out_point[count], out_shape[count], out_gap[count], out_feature[count] = i, s, gap, wall
                    write_frame(out_frame[count], wx, wy, wz)
                    # half-way between two round bodies: which of them is the shape then makes no difference
                    round_ones = radius[i] > 0.0 and (kind[s] == SPHERE or kind[s] == CAPSULE)
                    way = radius[i] + 0.5 * gap if round_ones else radius[i]
                    out_position[count, 0] = points[i, 0] - way * wx
                    out_position[count, 1] = points[i, 1] - way * wy
                    out_position[count, 2] = points[i, 2] - way * wz
                count += 1
    return count


@njit(cache=True)
def search(
    points: FloatArray,
    placed: IntArray,
    body_rotation: FloatArray,
    body_translation: FloatArray,
    rotation: FloatArray,
    translation: FloatArray,
    local_rotation: FloatArray,
    local_translation: FloatArray,
    reach: FloatArray,
    run_body: IntArray,
    shape_body: IntArray,
    may_contact: BoolArray,
    box: FloatArray,
    radius: FloatArray,
    margin: FloatArray,
    run_start: IntArray,
    pairs: IntArray,
    kind: IntArray,
    size: FloatArray,
    box_centre: FloatArray,
    box_half: FloatArray,
    grid_values: FloatArray | None,
    grid_index: IntArray,
    grid_place: FloatArray,
    point_corner: IntArray,
    shape_corner: IntArray,
    edge: FloatArray,
    within: BoolArray,
    out_point: IntArray,
    out_shape: IntArray,
    out_gap: FloatArray,
    out_frame: FloatArray,
    out_position: FloatArray,
    out_feature: IntArray,
    closer: float,
) -> tuple[int, int, int]:
    """Find the contacts of points: boxes around runs of them, candidate pairs, and :func:`detect_points` on those.

    Before that :func:`place_shapes` places the shapes by the poses of their bodies ``placed`` (s,); with none of these (0,) they
    are where ``rotation`` and ``translation`` say. Of bodies ``within`` (nb, nb) margins are less by ``closer`` (m). Returns the
    first point that is not finite, else -1, and how many pairs and contacts there are.
    """
    place_shapes(placed, local_rotation, local_translation, body_rotation, body_translation, rotation, translation)
    bad = group_boxes(points, reach, run_start, box)
    if bad >= 0:
        return bad, 0, 0
    n_pairs = candidate_pairs(
        box, run_body, shape_body, may_contact, kind, box_centre, box_half, rotation, translation, pairs, within, closer,
    )  # fmt: skip
    found = detect_points(
        points, radius, margin, run_start, pairs, n_pairs, kind, size, box_centre, box_half, grid_values, grid_index, grid_place,
        rotation, translation, point_corner, shape_corner, edge, run_body, shape_body, within, closer, out_point, out_shape,
        out_gap, out_frame, out_position, out_feature,
    )  # fmt: skip
    return -1, n_pairs, found

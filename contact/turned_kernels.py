"""Compiled signed distances of what is turned about an axis: padded polylines and screw threads.

Distances are negative inside; normals are unit vectors that point out of the shape.
"""

from __future__ import annotations

from math import atan2, cos, floor, inf, pi, sin, sqrt

import numpy as np
import numpy.typing as npt

from contact.compiled import njit
from contact.turned_shapes import TURN_POINTS

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Distance = tuple[float, float, float, float]

#: What is this little below the profile of a thread, as a part of its depth, is in its groove; pitches this near are alike.
IN_GROOVE = 1e-2

#: A helix that leans misses the end of another thread by up to this part of the way to it.
STEEP = 0.5


@njit(cache=True, inner=True)
def polyline_nearest(r: float, z: float, values: FloatArray, start: int, n: int) -> tuple[float, float, float]:
    """Distance (m) of a point of the half plane r >= 0 from a polyline, and the unit vector (r, z) away from it.

    ``values[start:]`` holds r and z of its n points, one after the other. On the polyline the vector is across its segment, to
    the right of the way along it; among equally near segments the first one wins.
    """
    best, gr, gz = inf, 0.0, 0.0
    for i in range(n - 1):
        ar, az = values[start + 2 * i], values[start + 2 * i + 1]
        er, ez = values[start + 2 * i + 2] - ar, values[start + 2 * i + 3] - az
        square = er * er + ez * ez
        t = min(max(((r - ar) * er + (z - az) * ez) / square, 0.0), 1.0)
        dr, dz = r - ar - t * er, z - az - t * ez
        distance = sqrt(dr * dr + dz * dz)
        if distance < best:
            best = distance
            if distance > 1e-12 * sqrt(square):
                gr, gz = dr / distance, dz / distance
            else:
                gr, gz = ez / sqrt(square), -er / sqrt(square)
    return best, gr, gz


@njit(cache=True, inner=True)
def revolved_distance(x: float, y: float, z: float, padding: float, values: FloatArray, start: int, n: int) -> Distance:
    """Signed distance and outward unit normal of a padded polyline turned about z; on the axis "outwards" is +x."""
    rho = sqrt(x * x + y * y)
    ux, uy = (x / rho, y / rho) if rho > 0.0 else (1.0, 0.0)
    distance, gr, gz = polyline_nearest(rho, z, values, start, n)
    return distance - padding, gr * ux, gr * uy, gz


@njit(cache=True, inner=True)
def _along(r: float, z: float, values: FloatArray, start: int, k: int) -> float:
    """Place of a point along segment k of a polyline: 0 at its first point, 1 at its second."""
    ar, az = values[start + 2 * k], values[start + 2 * k + 1]
    er, ez = values[start + 2 * k + 2] - ar, values[start + 2 * k + 3] - az
    return ((r - ar) * er + (z - az) * ez) / (er * er + ez * ez)


@njit(cache=True, inner=True)
def wall_distance(x: float, y: float, z: float, padding: float, values: FloatArray, start: int, n: int, k: int) -> Distance:
    """Signed distance and normal of wall k of a padded polyline turned about z; inf where its neighbour is nearer.

    What is in a corner has a distance of each wall, what is round a bend only that of the point between them, of the first one.
    """
    rho = sqrt(x * x + y * y)
    along = _along(rho, z, values, start, k)
    if along <= 0.0 and k > 0:
        return inf, 0.0, 0.0, 1.0
    if along >= 1.0 and k < n - 2 and _along(rho, z, values, start, k + 1) > 0.0:
        return inf, 0.0, 0.0, 1.0
    return revolved_distance(x, y, z, padding, values, start + 2 * k, 2)


@njit(cache=True, inner=True)
def ridge_distance(
    r: float, s: float, pitch: float, major: float, minor: float, crest: float, run: float
) -> tuple[float, float, float]:
    """Signed distance (m) of the profile of a thread, negative below it, and the unit vector (r, s) away from it.

    The profile in the plane of radius r and height s repeats after a pitch and is its own mirror image about the middle of a
    ridge (s = 0) and of a groove, so half a pitch of it is enough. ``crest`` is half the width of the ridge at ``major``,
    ``run`` the width of a flank (m).
    """
    s -= pitch * floor(s / pitch + 0.5)
    side = 1.0 if s >= 0.0 else -1.0
    s *= side
    if s <= crest:  # under or over the top of the ridge
        best, gr, gs = r - major, 1.0, 0.0
    else:
        dr, ds = r - major, s - crest
        best, gr, gs = sqrt(dr * dr + ds * ds), 0.0, 1.0
        if best > 0.0:
            gr, gs = dr / best, ds / best
    depth = major - minor
    length = sqrt(depth * depth + run * run)
    nr, ns = run / length, depth / length  # out of the flank
    across = (r - major) * nr + (s - crest) * ns
    along = ((major - r) * ns + (s - crest) * nr) / length
    under = s > crest + run
    below = r < (minor if under else major if s <= crest else major - depth * (s - crest) / run)
    if 0.0 <= along <= 1.0 and abs(across) < abs(best):
        best, gr, gs = across, nr, ns
    if under:
        if abs(r - minor) < abs(best):
            best, gr, gs = r - minor, 1.0, 0.0
    else:
        dr, ds = r - minor, s - crest - run
        distance = sqrt(dr * dr + ds * ds)
        if 0.0 < distance < abs(best):
            best, gr, gs = distance, dr / distance, ds / distance
    if below and best > 0.0:  # a corner is nearest
        best, gr, gs = -best, -gr, -gs
    return best, gr, side * gs


@njit(cache=True, inner=True)
def hexagon_distance(x: float, y: float, half: float) -> tuple[float, float, float]:
    """Signed distance (m) and outward unit normal of a regular hexagon with two sides across x at -half and half."""
    best, nx, ny = -inf, 1.0, 0.0
    for k in range(3):
        cx, cy = (1.0, 0.0) if k == 0 else ((0.5, 0.5 * sqrt(3.0)) if k == 1 else (-0.5, 0.5 * sqrt(3.0)))
        along = cx * x + cy * y
        side = 1.0 if along >= 0.0 else -1.0
        if side * along - half > best:
            best, nx, ny = side * along - half, side * cx, side * cy
    beside = nx * y - ny * x
    beyond = abs(beside) - half / sqrt(3.0)
    if best > 0.0 and beyond > 0.0:  # a corner of the hexagon is nearest
        side = 1.0 if beside >= 0.0 else -1.0
        vx, vy = best * nx - side * beyond * ny, best * ny + side * beyond * nx
        best = sqrt(vx * vx + vy * vy)
        nx, ny = vx / best, vy / best
    return best, nx, ny


@njit(cache=True, inner=True)
def both(d: float, nx: float, ny: float, nz: float, e: float, mx: float, my: float, mz: float) -> Distance:
    """Signed distance and normal of what lies in two solids at once, given those of both.

    Outside both it is that of their edge where their surfaces meet at a right angle.
    """
    if d > 0.0 and e > 0.0:
        vx, vy, vz = d * nx + e * mx, d * ny + e * my, d * nz + e * mz
        length = sqrt(vx * vx + vy * vy + vz * vz)
        return sqrt(d * d + e * e), vx / length, vy / length, vz / length
    if d >= e:
        return d, nx, ny, nz
    return e, mx, my, mz


@njit(cache=True, inner=True)
def endless_distance(
    x: float, y: float, z: float, pitch: float, major: float, minor: float, values: FloatArray, start: int
) -> Distance:
    """Signed distance and outward unit normal of a threaded rod without ends along z; for the numbers see thread_distance.

    The distance of the profile in the plane through the axis is divided by the length of its gradient in space: exact for the
    cylinders of crest and root, and for flanks to first order in the distance.
    """
    crest, run = values[start], values[start + 1]
    rho = sqrt(x * x + y * y)
    ux, uy = (x / rho, y / rho) if rho > 0.0 else (1.0, 0.0)
    lead = pitch / (2.0 * pi)
    d, gr, gs = ridge_distance(rho, z - lead * atan2(y, x), pitch, major, minor, crest, run)
    turn = -gs * lead / max(rho, 0.5 * minor)  # slope along the circle
    scale = 1.0 / sqrt(1.0 + turn * turn)
    return d * scale, (gr * ux - turn * uy) * scale, (gr * uy + turn * ux) * scale, gs * scale


@njit(cache=True, inner=True)
def thread_distance(
    x: float, y: float, z: float, pitch: float, major: float, minor: float, values: FloatArray, start: int
) -> Distance:
    """Signed distance and outward unit normal of a threaded rod along z, or of the hexagonal nut with that thread as its hole.

    ``values[start:]`` holds half the width of the ridge at ``major``, the width of a flank, half the length and half the width of
    the hexagon across flats, 0 for a rod (m).
    """
    half_length, half = values[start + 2], values[start + 3]
    d, nx, ny, nz = endless_distance(x, y, z, pitch, major, minor, values, start)
    up = 1.0 if z >= 0.0 else -1.0
    if half == 0.0:
        return both(d, nx, ny, nz, up * z - half_length, 0.0, 0.0, up)
    q, hx, hy = hexagon_distance(x, y, half)
    q, hx, hy, hz = both(q, hx, hy, 0.0, up * z - half_length, 0.0, 0.0, up)
    return both(-d, -nx, -ny, -nz, q, hx, hy, hz)


@njit(cache=True, inner=True)
def seen_from(
    b: int, a: int, x: float, y: float, z: float, rotation: FloatArray, translation: FloatArray
) -> tuple[float, float, float]:
    """Take a point from the frame of shape a into that of shape b, given their poses in the world."""
    dx = translation[a, 0] - translation[b, 0] + rotation[a, 0, 0] * x + rotation[a, 0, 1] * y + rotation[a, 0, 2] * z
    dy = translation[a, 1] - translation[b, 1] + rotation[a, 1, 0] * x + rotation[a, 1, 1] * y + rotation[a, 1, 2] * z
    dz = translation[a, 2] - translation[b, 2] + rotation[a, 2, 0] * x + rotation[a, 2, 1] * y + rotation[a, 2, 2] * z
    return (
        rotation[b, 0, 0] * dx + rotation[b, 1, 0] * dy + rotation[b, 2, 0] * dz,
        rotation[b, 0, 1] * dx + rotation[b, 1, 1] * dy + rotation[b, 2, 1] * dz,
        rotation[b, 0, 2] * dx + rotation[b, 1, 2] * dy + rotation[b, 2, 2] * dz,
    )


@njit(cache=True, inner=True)
def screwed_distance(
    s: int,
    own: int,
    x: float,
    y: float,
    z: float,
    size: FloatArray,
    values: FloatArray,
    grid_index: IntArray,
    rotation: FloatArray,
    translation: FloatArray,
) -> Distance:
    """Signed distance and outward unit normal of Thread s at a point of its frame that is one of Thread ``own``.

    Where the thread of the point goes through the end of the other one in its groove, that end does not stop it: it enters and
    leaves along the flank. Outside the end its distance is infinite, since the part of its thread that is inside bears; inside it
    is that of the flank. The face of the end, which is nearest there and almost across the way of the point, would hold a whole
    nut for one step each time a point enters. A thread whose own end is not inside yet has contact with the face.
    """
    start, other = grid_index[s, 0], grid_index[own, 0]
    pitch, major, minor = size[s, 0], size[s, 1], size[s, 2]
    nut, up = values[start + 3] > 0.0, 1.0 if z >= 0.0 else -1.0
    hair, beyond = IN_GROOVE * (major - minor), up * z - values[start + 2]
    fits = nut != (values[other + 3] > 0.0) and abs(size[own, 0] - pitch) <= IN_GROOVE * pitch
    if not fits or beyond < -hair:
        return thread_distance(x, y, z, pitch, major, minor, values, start)
    # along its helix to the end of the other thread
    ox, oy, oz = seen_from(own, s, x, y, z, rotation, translation)
    alike = 0.0
    for k in range(3):
        alike += rotation[s, k, 2] * rotation[own, k, 2]
    inward = -up if alike > 0.0 else up
    way = beyond * inward
    angle = 2.0 * pi * way / size[own, 0]
    turned_x, turned_y = cos(angle) * ox - sin(angle) * oy, sin(angle) * ox + cos(angle) * oy
    cx, cy, cz = seen_from(s, own, turned_x, turned_y, oz + way, rotation, translation)
    half, there = values[other + 2], inward * (oz + way)
    goes_on = -half <= there <= half - pitch / TURN_POINTS and abs(up * cz - values[start + 2]) <= STEEP * abs(beyond)
    d, nx, ny, nz = endless_distance(cx, cy, cz, pitch, major, minor, values, start)
    rho = sqrt(cx * cx + cy * cy)
    if not goes_on or (-d if nut else d) < -hair or rho < minor - hair or rho > major + hair:
        return thread_distance(x, y, z, pitch, major, minor, values, start)
    if beyond > 0.0:
        return inf, 0.0, 0.0, 1.0
    d, nx, ny, nz = endless_distance(x, y, z, pitch, major, minor, values, start)
    return (-d, -nx, -ny, -nz) if nut else (d, nx, ny, nz)

"""Compiled kernels of detection: edges of boxes that cross edges of other boxes.

Tests of corners against boxes (:mod:`contact.detect_kernels`) miss two boxes whose corners all lie beside each other, e.g. a bar
across another one, or two equal squares of which one is turned. The closest points then lie inside an edge of each.
"""

from __future__ import annotations

from math import sqrt

import numpy as np
import numpy.typing as npt

from contact.compiled import njit
from contact.detect_kernels import BOX, DEEPER, HAIR, LEAN, PARALLEL, box_separation, face_separation, separation, write_frame
from contact.distance_kernels import closest_on_lines

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

#: Pairs of edges of two boxes; the number of a pair is 12 times that of the first edge, plus that of the second.
EDGE_PAIRS = 144

#: The gap of a crossing may be less than that of the boxes along a normal of a face by this fraction of it.
SLACK = 1e-2


@njit(cache=True)
def crossing_edges(
    count: int,
    shape_corner: IntArray,
    shape_body: IntArray,
    may_contact: BoolArray,
    kind: IntArray,
    size: FloatArray,
    rotation: FloatArray,
    translation: FloatArray,
    margin: FloatArray,
    out_point: IntArray,
    out_shape: IntArray,
    out_gap: FloatArray,
    out_frame: FloatArray,
    out_position: FloatArray,
    out_feature: IntArray,
) -> int:
    """Update the out_ arrays from ``count`` on with the crossing edges of all pairs of boxes; return how many contacts there are.

    The closest points of two edges count where both lie inside (not at an end, see HAIR), the common perpendicular leads out of
    both boxes (up to LEAN), and the gap is no smaller than that of the boxes along the normal of any face, nor an overlap more
    than DEEPER times as deep as along any axis: so the side of a box that stands on another one is not taken for a contact.
    ``shape_corner`` (s,) is the first point of the corners of a box, -1 where they are no points; the contact is that of the
    point at the start of the edge, with the other box as its shape. The number may exceed the room in the arrays; contacts beyond
    it are counted, not written. Arrays are handed over one by one for speed, see :mod:`contact.detect_kernels`. Over 80 lines,
    because each loop inside another one goes on with what those around it have worked out: boxes, axes, edges of a, edges of b.
    """
    n_shapes, room = kind.shape[0], out_point.shape[0]
    for first in range(n_shapes):
        for second in range(first + 1, n_shapes):
            if kind[first] != BOX or kind[second] != BOX:
                continue
            a, b = first, second
            if shape_corner[a] < 0 or not may_contact[shape_body[a], shape_body[b]]:
                a, b = second, first
                if shape_corner[a] < 0 or not may_contact[shape_body[a], shape_body[b]]:
                    continue
            reach = margin[shape_corner[a]]
            tx, ty, tz = (
                translation[a, 0] - translation[b, 0],
                translation[a, 1] - translation[b, 1],
                translation[a, 2] - translation[b, 2],
            )
            radius_a = sqrt(size[a, 0] ** 2 + size[a, 1] ** 2 + size[a, 2] ** 2)
            radius_b = sqrt(size[b, 0] ** 2 + size[b, 1] ** 2 + size[b, 2] ** 2)
            if sqrt(tx * tx + ty * ty + tz * tz) > radius_a + radius_b + max(reach, 0.0):
                continue
            faces = face_separation(a, b, size, rotation, translation)
            if faces >= reach:
                continue
            hair = HAIR * min(max(size[a, 0], size[a, 1], size[a, 2]), max(size[b, 0], size[b, 1], size[b, 2]))
            axes = box_separation(a, b, size, rotation, translation)
            least = max(faces - SLACK * abs(faces), min(axes, DEEPER * axes)) - hair
            for i in range(3):
                ax, ay, az = rotation[a, 0, i], rotation[a, 1, i], rotation[a, 2, i]
                i1, i2 = (i + 1) % 3, (i + 2) % 3
                for j in range(3):
                    bx, by, bz = rotation[b, 0, j], rotation[b, 1, j], rotation[b, 2, j]
                    j1, j2 = (j + 1) % 3, (j + 2) % 3
                    nx, ny, nz = ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx
                    sine = sqrt(nx * nx + ny * ny + nz * nz)
                    if sine < PARALLEL:
                        continue
                    out = 1.0 / sine if nx * tx + ny * ty + nz * tz >= 0.0 else -1.0 / sine
                    nx, ny, nz = out * nx, out * ny, out * nz
                    if separation(nx, ny, nz, a, b, size, rotation, translation) >= reach:
                        continue
                    n1 = nx * rotation[a, 0, i1] + ny * rotation[a, 1, i1] + nz * rotation[a, 2, i1]
                    n2 = nx * rotation[a, 0, i2] + ny * rotation[a, 1, i2] + nz * rotation[a, 2, i2]
                    m1 = nx * rotation[b, 0, j1] + ny * rotation[b, 1, j1] + nz * rotation[b, 2, j1]
                    m2 = nx * rotation[b, 0, j2] + ny * rotation[b, 1, j2] + nz * rotation[b, 2, j2]
                    cosine = ax * bx + ay * by + az * bz
                    for k in range(4):
                        a1, a2 = (1.0 if k >> 1 else -1.0), (1.0 if k & 1 else -1.0)
                        if a1 * n1 > LEAN or a2 * n2 > LEAN:
                            continue
                        a1, a2 = a1 * size[a, i1], a2 * size[a, i2]
                        px = tx + a1 * rotation[a, 0, i1] + a2 * rotation[a, 0, i2]
                        py = ty + a1 * rotation[a, 1, i1] + a2 * rotation[a, 1, i2]
                        pz = tz + a1 * rotation[a, 2, i1] + a2 * rotation[a, 2, i2]
                        for m in range(4):
                            b1, b2 = (1.0 if m >> 1 else -1.0), (1.0 if m & 1 else -1.0)
                            if b1 * m1 < -LEAN or b2 * m2 < -LEAN:
                                continue
                            b1, b2 = b1 * size[b, j1], b2 * size[b, j2]
                            wx = px - b1 * rotation[b, 0, j1] - b2 * rotation[b, 0, j2]
                            wy = py - b1 * rotation[b, 1, j1] - b2 * rotation[b, 1, j2]
                            wz = pz - b1 * rotation[b, 2, j1] - b2 * rotation[b, 2, j2]
                            gap = wx * nx + wy * ny + wz * nz
                            if gap < least or gap >= reach:
                                continue
                            along_a = ax * wx + ay * wy + az * wz
                            along_b = bx * wx + by * wy + bz * wz
                            on_a, on_b = closest_on_lines(1.0, cosine, 1.0, along_a, along_b, sine * sine)
                            if abs(on_a) > size[a, i] - hair or abs(on_b) > size[b, j] - hair:
                                continue
                            if count < room:
                                start = (k >> 1) << (2 - i1) | (k & 1) << (2 - i2)
                                out_point[count] = shape_corner[a] + start
                                out_shape[count] = b
                                out_gap[count] = gap
                                write_frame(out_frame[count], nx, ny, nz)
                                out_position[count, 0] = translation[b, 0] + px + on_a * ax
                                out_position[count, 1] = translation[b, 1] + py + on_a * ay
                                out_position[count, 2] = translation[b, 2] + pz + on_a * az
                                out_feature[count] = 1 + 12 * (4 * i + k) + 4 * j + m
                            count += 1
    return count

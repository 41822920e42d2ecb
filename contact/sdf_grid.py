"""Signed distance grid of a closed triangle mesh: exact at the nodes, trilinear between them.

The distance at a node is the exact point-triangle distance (Ericson 2005, Real-Time Collision Detection,
5.1.5), its sign that of the angle-weighted pseudonormal of the closest face, edge or vertex, which is right
for every closed surface (Baerentzen & Aanaes 2005, Signed distance computation using the angle weighted
pseudonormal). Triangles are culled by blocks of nodes: one that is the closest to a node of a block with
centre c and half diagonal r is at most 2 r further from c than the closest one to c.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, sqrt

import numpy as np
import numpy.typing as npt
from numba import njit

from contact.errors import ContactError

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

#: A grid may have this many nodes (8 bytes each).
MAX_NODES = 20_000_000


@dataclass(frozen=True, eq=False)
class SdfGrid:
    """Signed distance sampled on a regular grid, negative inside.

    Attributes
    ----------
    values : ndarray, (nx, ny, nz), m
        Exact signed distance at the nodes.
    origin : ndarray, (3,), m
        Position of node (0, 0, 0).
    spacing : float, m
        Edge length of a cell.
    """

    values: FloatArray
    origin: FloatArray
    spacing: float


def make_grid(points: FloatArray, triangles: IntArray, *, resolution: int, padding: float) -> SdfGrid:
    """Build the grid of a closed, outward oriented mesh (:class:`contact.shapes.Mesh` checks that).

    Between the nodes the error of the trilinear value is at most sqrt(3)/2 spacing (the exact distance is
    1-Lipschitz), second order in the spacing where the surface is smooth, and zero along flat faces; it is
    largest at sharp edges and at the medial surface inside.

    Parameters
    ----------
    points : ndarray, (n, 3), m
        Vertices.
    triangles : ndarray, (t, 3)
        Vertex numbers.
    resolution : int
        Cells along the longest side of the mesh.
    padding : float, m
        How far the grid reaches beyond the mesh on every side; the distance there is known up to this value
        only.

    Raises
    ------
    ContactError
        When the grid would have more than ``MAX_NODES`` nodes.
    """
    lower, upper = points.min(axis=0), points.max(axis=0)
    spacing = float((upper - lower).max()) / resolution
    # whole cells of padding: the nodes near the mesh are the same ones for every padding
    border = np.ceil(padding / spacing - 1e-9)
    cells = np.ceil((upper - lower) / spacing - 1e-9) + 2.0 * border
    if np.prod(cells + 1.0) > MAX_NODES:
        raise ContactError(
            f"Mesh: a distance grid with resolution {resolution} and padding {padding:.6g} m would have "
            f"{np.prod(cells + 1.0):.3g} nodes, at most {MAX_NODES} are allowed; lower Mesh.resolution, or "
            "let a smaller sphere touch the mesh (the grid must reach beyond the mesh by the largest radius "
            "of a point that meets it)."
        )
    shape = cells.astype(np.int64) + 1
    origin = lower - spacing * border
    values = np.empty(tuple(shape), dtype=np.float64)
    corners, normals = triangle_table(points, triangles)
    fill_grid(values, origin, spacing, corners, normals)
    return SdfGrid(values=values, origin=origin, spacing=spacing)


def triangle_table(points: FloatArray, triangles: IntArray) -> tuple[FloatArray, FloatArray]:
    """Corners (t, 3, 3) and pseudonormals (t, 7, 3) of each triangle.

    In the order face, edges ab bc ca, vertices a b c; not of unit length.
    """
    corners = np.ascontiguousarray(points[triangles])
    edge = np.roll(corners, -1, axis=1) - corners  # ab, bc, ca
    face = np.cross(edge[:, 0], edge[:, 1])
    face /= np.linalg.norm(face, axis=1, keepdims=True)
    direction = edge / np.linalg.norm(edge, axis=2, keepdims=True)
    cosine = np.einsum("tik,tik->ti", direction, -np.roll(direction, 1, axis=1))
    angle = np.arccos(np.clip(cosine, -1.0, 1.0))
    at_vertex = np.zeros_like(points)
    np.add.at(at_vertex, triangles, angle[:, :, None] * face[:, None, :])
    ends = np.sort(np.stack([triangles, np.roll(triangles, -1, axis=1)], axis=2), axis=2)
    _, number = np.unique(ends.reshape(-1, 2), axis=0, return_inverse=True)
    number = number.reshape(-1, 3)
    at_edge = np.zeros((int(number.max()) + 1, 3))
    np.add.at(at_edge, number, face[:, None, :])
    normals = np.concatenate([face[:, None], at_edge[number], at_vertex[triangles]], axis=1)
    return corners, np.ascontiguousarray(normals)


@njit(cache=True)
def point_triangle(px: float, py: float, pz: float, t: int, corners: FloatArray) -> tuple[float, int, float, float, float]:
    """Squared distance to triangle t, closest feature and vector from the closest point.

    The feature is 0 for the face, 1 to 3 for the edges ab bc ca, 4 to 6 for the vertices a b c.
    """
    ax, ay, az = corners[t, 0, 0], corners[t, 0, 1], corners[t, 0, 2]
    bx, by, bz = corners[t, 1, 0] - ax, corners[t, 1, 1] - ay, corners[t, 1, 2] - az
    cx, cy, cz = corners[t, 2, 0] - ax, corners[t, 2, 1] - ay, corners[t, 2, 2] - az
    x, y, z = px - ax, py - ay, pz - az
    d1, d2 = bx * x + by * y + bz * z, cx * x + cy * y + cz * z
    ex, ey, ez = x - bx, y - by, z - bz
    d3, d4 = bx * ex + by * ey + bz * ez, cx * ex + cy * ey + cz * ez
    fx, fy, fz = x - cx, y - cy, z - cz
    d5, d6 = bx * fx + by * fy + bz * fz, cx * fx + cy * fy + cz * fz
    va, vb, vc = d3 * d6 - d5 * d4, d5 * d2 - d1 * d6, d1 * d4 - d3 * d2
    u, w = 0.0, 0.0  # closest point a + u ab + w ac
    if d1 <= 0.0 and d2 <= 0.0:
        feature = 4
    elif d3 >= 0.0 and d4 <= d3:
        feature, u = 5, 1.0
    elif d6 >= 0.0 and d5 <= d6:
        feature, w = 6, 1.0
    elif vc <= 0.0 and d1 >= 0.0 and d3 <= 0.0:
        feature, u = 1, d1 / (d1 - d3)
    elif vb <= 0.0 and d2 >= 0.0 and d6 <= 0.0:
        feature, w = 3, d2 / (d2 - d6)
    elif va <= 0.0 and d4 >= d3 and d5 >= d6:
        feature = 2
        w = (d4 - d3) / ((d4 - d3) + (d5 - d6))
        u = 1.0 - w
    else:
        feature = 0
        u, w = vb / (va + vb + vc), vc / (va + vb + vc)
    rx, ry, rz = x - (u * bx + w * cx), y - (u * by + w * cy), z - (u * bz + w * cz)
    return rx * rx + ry * ry + rz * rz, feature, rx, ry, rz


@njit(cache=True)
def near_triangles(
    x: float,
    y: float,
    z: float,
    reach: float,
    corners: FloatArray,
    among: IntArray,
    n: int,
    near: IntArray,
    far: FloatArray,
) -> int:
    """Update near with those of among[:n] at most ``reach`` further from the point than the closest one.

    Answers how many there are; ``far`` is room for n distances.
    """
    closest = inf
    for m in range(n):
        d2, _, _, _, _ = point_triangle(x, y, z, among[m], corners)
        far[m] = sqrt(d2)
        closest = min(closest, far[m])
    limit = (closest + reach) * (1.0 + 1e-9)
    count = 0
    for m in range(n):
        if far[m] <= limit:
            near[count] = among[m]
            count += 1
    return count


@njit(cache=True)
def fill_grid(values: FloatArray, origin: FloatArray, spacing: float, corners: FloatArray, normals: FloatArray) -> None:
    """Update the node values (nx, ny, nz) by blocks of 16, then 4 nodes a side, then single nodes."""
    n_triangles = corners.shape[0]
    everything = np.arange(n_triangles)
    outer = np.empty(n_triangles, dtype=np.int64)
    inner = np.empty(n_triangles, dtype=np.int64)
    far = np.empty(n_triangles, dtype=np.float64)
    nx, ny, nz = values.shape
    ox, oy, oz = origin[0], origin[1], origin[2]
    outer_reach, inner_reach = sqrt(3.0) * 15.0 * spacing, sqrt(3.0) * 3.0 * spacing
    for i16 in range(0, nx, 16):
        for j16 in range(0, ny, 16):
            for k16 in range(0, nz, 16):
                n_outer = near_triangles(
                    ox + (i16 + 7.5) * spacing,
                    oy + (j16 + 7.5) * spacing,
                    oz + (k16 + 7.5) * spacing,
                    outer_reach,
                    corners,
                    everything,
                    n_triangles,
                    outer,
                    far,
                )
                for block in range(64):
                    i4, j4, k4 = i16 + 4 * (block // 16), j16 + 4 * (block // 4 % 4), k16 + 4 * (block % 4)
                    if i4 >= nx or j4 >= ny or k4 >= nz:
                        continue
                    n_inner = near_triangles(
                        ox + (i4 + 1.5) * spacing,
                        oy + (j4 + 1.5) * spacing,
                        oz + (k4 + 1.5) * spacing,
                        inner_reach,
                        corners,
                        outer,
                        n_outer,
                        inner,
                        far,
                    )
                    for i in range(i4, min(i4 + 4, nx)):
                        for j in range(j4, min(j4 + 4, ny)):
                            for k in range(k4, min(k4 + 4, nz)):
                                x, y, z = ox + i * spacing, oy + j * spacing, oz + k * spacing
                                best, side = inf, 0.0
                                for m in range(n_inner):
                                    t = inner[m]
                                    d2, f, rx, ry, rz = point_triangle(x, y, z, t, corners)
                                    if d2 < best:
                                        best = d2
                                        side = rx * normals[t, f, 0] + ry * normals[t, f, 1] + rz * normals[t, f, 2]
                                values[i, j, k] = -sqrt(best) if side < 0.0 else sqrt(best)

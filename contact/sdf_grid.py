"""Signed distance grid of a closed triangle mesh: exact at the nodes, trilinear between them.

The distance at a node is that of the closest triangle (:mod:`contact.distance_kernels`); its sign is that of the angle-weighted
pseudonormal of the closest face, edge or vertex, which is right for every closed surface (J. A. Baerentzen, H. Aanaes, "Signed
distance computation using the angle weighted pseudonormal", IEEE Trans. Vis. Comput. Graph. 11, 2005).

VTK offers the same as ``vtkImplicitPolyDataDistance``. For 1280 triangles on a grid of 57^3 nodes, both give the same distances
(largest difference 1e-17, no sign differs), VTK in 3.5 s, this module in less than 0.3 s; and ``contact`` needs no VTK.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from contact.errors import ContactError
from contact.sdf_kernels import CHUNK, TOGETHER, fill_grid
from contact.tree_kernels import Tree
from contact.trees import plant

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

#: A grid may have this many nodes (8 bytes each).
MAX_NODES = 20_000_000

#: A grid that would have more nodes to reach as far as large spheres ask does not: beyond it triangles are measured.
MANY_NODES = 4_000_000


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


@dataclass(frozen=True, eq=False)
class Lattice:
    """Where the nodes of a grid are.

    Attributes
    ----------
    shape : (int, int, int)
        Number of nodes along x, y, z.
    origin : ndarray, (3,), m
        Position of node (0, 0, 0).
    spacing : float, m
        Edge length of a cell.
    """

    shape: tuple[int, int, int]
    origin: FloatArray
    spacing: float


def lay_grid(points: FloatArray, *, resolution: int, padding: float, name: str = "") -> Lattice:
    """Place the nodes of the grid that :func:`make_grid` makes of the same; parameters and errors are those of it."""
    lower, upper = points.min(axis=0), points.max(axis=0)
    nodes = nodes_along(lower, upper, resolution, padding)
    if np.prod(nodes) > MAX_NODES:
        raise ContactError(
            f"Mesh {name}: a distance grid with resolution {resolution} and padding {padding:.6g} m would have "
            f"{np.prod(nodes):.3g} nodes, at most {MAX_NODES} are allowed; lower Mesh.resolution."
        )
    nx, ny, nz = (int(count) for count in nodes)
    spacing = float((upper - lower).max()) / resolution
    return Lattice((nx, ny, nz), lower - spacing * border_cells(lower, upper, resolution, padding), spacing)


def nodes_along(lower: FloatArray, upper: FloatArray, resolution: int, padding: float) -> FloatArray:
    """Nodes along x, y, z, (3,), of a grid about a mesh from ``lower`` to ``upper``, (3,) m; see :func:`make_grid`."""
    spacing = float((upper - lower).max()) / resolution
    border = border_cells(lower, upper, resolution, padding)
    return np.asarray(np.ceil((upper - lower) / spacing - 1e-9) + 2.0 * border + 1.0)


class GrowingGrid:
    """A grid whose values are measured where they are asked for, chunk by chunk of CHUNK nodes a side.

    Parameters
    ----------
    points : ndarray, (n, 3), m
        Vertices of a closed, outward oriented mesh.
    triangles : ndarray, (t, 3)
        Vertex numbers.
    place : Lattice
        Where its nodes are.

    Attributes
    ----------
    values : ndarray, (nx, ny, nz), m
        Exact signed distance at the nodes, NaN where it was not measured.
    known : ndarray of bool, (cx, cy, cz)
        Chunks that were.
    """

    def __init__(self, points: FloatArray, triangles: IntArray, place: Lattice) -> None:
        self.values = np.full(place.shape, np.nan)
        self.known: BoolArray = np.zeros(chunks_along(place.shape), dtype=np.bool_)
        self._place = place
        self._corners, self._normals = triangle_table(points, triangles)
        forest = plant([self._corners.mean(axis=1)], 3)
        self._tree = Tree(0, forest.leaf, forest.boxes)
        self._whole: SdfGrid | None = None

    def measure(self, wanted: BoolArray) -> None:
        """Measure the values of some chunks, (cx, cy, cz), that are not known yet."""
        news = wanted & ~self.known
        if news.any():
            place = self._place
            fill_grid(self.values, place.origin, place.spacing, news, self._tree, self._corners, self._normals)
            self.known |= news

    def whole(self) -> SdfGrid:
        """Measure all that is not known yet, and return the grid."""
        if self._whole is None:
            self.measure(np.ones_like(self.known))
            self._whole = SdfGrid(self.values, self._place.origin, self._place.spacing)
        return self._whole


def chunks_along(nodes: tuple[int, int, int]) -> tuple[int, int, int]:
    """Chunks along x, y, z of a grid of so many nodes."""
    nx, ny, nz = (-(-count // CHUNK) for count in nodes)
    return nx, ny, nz


def begin_grid(points: FloatArray, triangles: IntArray, *, resolution: int, padding: float, name: str = "") -> GrowingGrid:
    """Begin the grid that :func:`make_grid` makes of the same; parameters and errors are those of it."""
    return GrowingGrid(points, triangles, lay_grid(points, resolution=resolution, padding=padding, name=name))


def make_grid(points: FloatArray, triangles: IntArray, *, resolution: int, padding: float, name: str = "") -> SdfGrid:
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
    name : str
        Name of the mesh, for messages.

    Raises
    ------
    ContactError
        When the grid would have more than ``MAX_NODES`` nodes.
    """
    return begin_grid(points, triangles, resolution=resolution, padding=padding, name=name).whole()


def border_cells(lower: FloatArray, upper: FloatArray, resolution: int, padding: float) -> float:
    """Whole cells of padding of a grid about a mesh from ``lower`` to ``upper``, (3,) m, given as for :func:`make_grid`.

    Being whole, they leave the nodes near the mesh where they are for every padding, and paddings of as many cells have one grid.
    """
    return float(np.ceil(padding / (float((upper - lower).max()) / resolution) - 1e-9))


def triangle_tree(points: FloatArray, triangles: IntArray) -> FloatArray:
    """Triangles as :func:`contact.sdf_kernels.distance_beyond` reads them, (blocks BEYOND,), m.

    A tree of 2 n boxes, lower and upper corner, is over n blocks: box k has the parts 2 k and 2 k + 1, box n + i is that of block
    i, and box 0 is none. The corners of TOGETHER triangles of each block follow, neighbours in space; the last may repeat one.
    """
    corners = points[triangles]
    leaf = plant([corners.mean(axis=1)], 3).leaf
    order = leaf[leaf >= 0]
    order = np.concatenate([order, np.full(-len(order) % TOGETHER, order[-1])])
    blocks = corners[order].reshape(-1, 3 * TOGETHER, 3)
    n = len(blocks)
    boxes = np.zeros((2 * n, 2, 3))
    boxes[n:, 0], boxes[n:, 1] = blocks.min(axis=1), blocks.max(axis=1)
    for k in range(n - 1, 0, -1):
        boxes[k, 0], boxes[k, 1] = boxes[2 * k : 2 * k + 2, 0].min(axis=0), boxes[2 * k : 2 * k + 2, 1].max(axis=0)
    return np.concatenate([boxes.ravel(), blocks.ravel()])


def triangle_table(points: FloatArray, triangles: IntArray) -> tuple[FloatArray, FloatArray]:
    """Corners (t, 3, 3), m, and pseudonormals (t, 7, 3) of each triangle.

    The pseudonormals are in the order of the features of :mod:`contact.distance_kernels`: face, edges ab, bc, ca, vertices a, b,
    c. Only that of the face has unit length.
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
    _, number = np.unique(ends[:, :, 0] * len(points) + ends[:, :, 1], return_inverse=True)
    at_edge = np.zeros((int(number.max()) + 1, 3))
    np.add.at(at_edge, number, face[:, None, :])
    normals = np.concatenate([face[:, None], at_edge[number], at_vertex[triangles]], axis=1)
    return corners, np.ascontiguousarray(normals)

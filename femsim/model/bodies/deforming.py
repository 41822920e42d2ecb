"""Surfaces and strands: what soft bodies and rods have contact with each other by, as points on nodes of the body."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from contact import Strand, Surface

#: Part of the thickness of the elements below a surface that a point may have passed and is still pushed out.
DEPTH = 0.5


@dataclass(frozen=True)
class Deforming:
    """Surface or strand of a part that deforms, by points of which each moves with one node of the body, or with two.

    Attributes
    ----------
    shape : Surface or Strand
        As the detector takes it.
    rest : ndarray, (n, 3), m
        Where the points are at rest.
    node : ndarray, (n, 2)
        Numbers of the points whose nodes move each point: its own, or two others; -1 for none.
    weight : ndarray, (n, 2)
        Their weights, which sum to one.
    number : ndarray, (n,)
        Node that each point belongs to, by its place in the nodes of the part.
    cylinder : float, m
        Radius of the cylinder whose round side this is, or whose caps, or a point of a rim; 0 for all others.
    """

    shape: Surface | Strand
    rest: np.ndarray
    node: np.ndarray
    weight: np.ndarray
    number: np.ndarray
    cylinder: float = 0.0

    def positions(self, nodes: np.ndarray) -> np.ndarray:
        """Positions of the points from those of the nodes of the part, (k, 3), m."""
        return _positions(self.node, self.weight, self.number, nodes)


def _positions(node: np.ndarray, weight: np.ndarray, number: np.ndarray, nodes: np.ndarray) -> np.ndarray:
    points = np.asarray(nodes[number])
    between = np.flatnonzero(node[:, 1] >= 0)
    near, far = node[between].T
    first, second = weight[between].T
    points[between] = first[:, None] * points[near] + second[:, None] * points[far]
    return points


def strand(centres: np.ndarray, lengths: np.ndarray, radius: float) -> Deforming:
    """Strand of a rod: the centres of its links and, beyond them, its two ends.

    An end lies half a link beyond the last centre, on the line through the last two centres, and belongs to the last link.
    A rod of one link is its centre.

    Parameters
    ----------
    centres : ndarray, (k, 3), m
        Centres of the links at the start.
    lengths : ndarray, (k,), m
        Lengths of the links.
    radius : float, m
        Contact radius.
    """
    n = len(lengths)
    ends = np.concatenate([[0.0], np.cumsum(lengths)])
    arc = 0.5 * (ends[1:] + ends[:-1])
    if n == 1:
        node, weight, number = np.array([[0, -1]]), np.array([[1.0, 0.0]]), np.zeros(1, dtype=np.int64)
    else:
        arc = np.concatenate([ends[:1], arc, ends[-1:]])
        node = np.column_stack([np.arange(n + 2), np.full(n + 2, -1)])
        weight = np.column_stack([np.ones(n + 2), np.zeros(n + 2)])
        number = np.clip(np.arange(n + 2) - 1, 0, n - 1)
        for end, near, far, link, next_link in ((0, 1, 2, 0, 1), (n + 1, n, n - 1, n - 1, n - 2)):
            beyond = lengths[link] / (lengths[link] + lengths[next_link])
            node[end], weight[end] = (near, far), (1.0 + beyond, -beyond)
    return Deforming(Strand(arc, radius), _positions(node, weight, number, centres), node, weight, number)


def surface(rest: np.ndarray, tets: np.ndarray, nodes: np.ndarray, triangles: np.ndarray) -> Deforming:
    """Surface of a body of tetrahedra, its points the nodes on it.

    Parameters
    ----------
    rest : ndarray, (n, 3), m
        Nodes of the body at rest.
    tets : ndarray, (m, 4)
        Tetrahedra.
    nodes : ndarray, (k,)
        Nodes of the surface, sorted.
    triangles : ndarray, (t, 3)
        Triangles of the surface, numbers of nodes of the body.
    """
    k = len(nodes)
    node = np.column_stack([np.arange(k), np.full(k, -1)])
    weight = np.column_stack([np.ones(k), np.zeros(k)])
    shape = Surface(k, np.searchsorted(nodes, triangles), DEPTH * _thickness(rest, tets, triangles))
    return Deforming(shape, rest[nodes], node, weight, np.arange(k))


def _thickness(rest: np.ndarray, tets: np.ndarray, triangles: np.ndarray) -> np.ndarray:
    """Return the least height at rest of the tetrahedra below each surface triangle and those around its corners, (t,) m.

    The neighbours count because the elements at the rim of a thin body are wider than it is thick.
    """
    n = len(rest)

    def key(corners: np.ndarray) -> np.ndarray:
        low, middle, high = np.sort(corners, axis=-1).reshape(-1, 3).T
        return np.asarray((low * n + middle) * n + high)

    faces = key(tets[:, [[1, 2, 3], [0, 2, 3], [0, 1, 3], [0, 1, 2]]])
    order = np.argsort(faces, kind="stable")
    tet = order[np.searchsorted(faces, key(triangles), sorter=order)] // 4
    edges = rest[tets[tet, 1:]] - rest[tets[tet, :1]]
    a, b, c = (rest[triangles[:, i]] for i in range(3))
    height = np.abs(np.linalg.det(edges)) / np.linalg.norm(np.cross(b - a, c - a), axis=1)
    least = np.full(n, np.inf)
    np.minimum.at(least, triangles, height[:, None])
    return np.asarray(least[triangles].min(axis=1))

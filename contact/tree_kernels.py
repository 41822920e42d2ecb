"""Compiled binary trees of boxes over triangles or edges: fitted to new positions, and searched near a point or a box.

A tree of P leaves (a power of two) has the nodes 1 to 2 P - 1: node k has the children 2 k and 2 k + 1, and leaf i is node P + i.
A box is low x, y, z, high x, y, z; the box of an empty leaf is +inf, -inf, which is near nothing.
"""

from __future__ import annotations

from math import inf
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from contact.compiled import njit
from contact.vector_kernels import Vector

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


class Forest(NamedTuple):
    """Trees of all nb bodies, one after the other.

    Attributes
    ----------
    first : ndarray, (nb + 1,)
        First feature of each body, and the number of features.
    root : ndarray, (nb + 1,)
        First leaf of each body, and the number of leaves.
    leaf : ndarray, (leaves,)
        Feature of each leaf, counted from the first of its body; -1 for none.
    boxes : ndarray, (2 leaves, 6), m
        Box of each node.
    n_corners : int
        Points of a feature: 3 of a triangle, 2 of an edge.
    """

    first: IntArray
    root: IntArray
    leaf: IntArray
    boxes: FloatArray
    n_corners: int


class Tree(NamedTuple):
    """The tree of one body: its first feature, the feature of each leaf (P,) counted from it, boxes of the nodes (2 P, 6), m."""

    first: int
    leaf: IntArray
    boxes: FloatArray


@njit(cache=True, inner=True)
def tree_of(forest: Forest, body: int) -> Tree:
    """Return views of the tree of one body."""
    start, stop = forest.root[body], forest.root[body + 1]
    return Tree(forest.first[body], forest.leaf[start:stop], forest.boxes[2 * start : 2 * stop])


@njit(cache=True, inner=True)
def fit_boxes(tree: Tree, points: FloatArray, corners: IntArray, n_corners: int) -> None:
    """Update the boxes of a tree for points (n, 3), m; a feature has the first ``n_corners`` points of its row of ``corners``."""
    leaves, boxes = tree.leaf.shape[0], tree.boxes
    for i in range(leaves):
        box = boxes[leaves + i]
        for axis in range(3):
            box[axis], box[3 + axis] = inf, -inf
        if tree.leaf[i] >= 0:
            for k in range(n_corners):
                p = corners[tree.first + tree.leaf[i], k]
                for axis in range(3):
                    box[axis] = min(box[axis], points[p, axis])
                    box[3 + axis] = max(box[3 + axis], points[p, axis])
    for node in range(leaves - 1, 0, -1):
        for axis in range(3):
            boxes[node, axis] = min(boxes[2 * node, axis], boxes[2 * node + 1, axis])
            boxes[node, 3 + axis] = max(boxes[2 * node, 3 + axis], boxes[2 * node + 1, 3 + axis])


@njit(cache=True, inner=True)
def box_distance2(boxes: FloatArray, node: int, p: Vector) -> float:
    """Squared distance of a point to the box of a node, m^2; inf for the box of an empty leaf."""
    dx = max(max(boxes[node, 0] - p[0], p[0] - boxes[node, 3]), 0.0)
    dy = max(max(boxes[node, 1] - p[1], p[1] - boxes[node, 4]), 0.0)
    dz = max(max(boxes[node, 2] - p[2], p[2] - boxes[node, 5]), 0.0)
    return dx * dx + dy * dy + dz * dz


@njit(cache=True, inner=True)
def boxes_overlap(boxes: FloatArray, node: int, low: Vector, high: Vector) -> bool:
    """Whether the box of a node and the box from ``low`` to ``high`` overlap."""
    if boxes[node, 0] > high[0] or boxes[node, 1] > high[1] or boxes[node, 2] > high[2]:
        return False
    return not (boxes[node, 3] < low[0] or boxes[node, 4] < low[1] or boxes[node, 5] < low[2])


@njit(cache=True, inner=True)
def boxes_apart(boxes: FloatArray, others: FloatArray, reach: float) -> bool:
    """Whether along some axis more than ``reach`` (m) is between all that two trees hold; never where one is empty."""
    if boxes[1, 0] > boxes[1, 3] or others[1, 0] > others[1, 3]:
        return False
    for axis in range(3):
        if boxes[1, axis] - others[1, 3 + axis] > reach or others[1, axis] - boxes[1, 3 + axis] > reach:
            return True
    return False


@njit(cache=True, inner=True)
def search_point(leaf: IntArray, boxes: FloatArray, first: int, p: Vector, reach: float, stack: IntArray, hits: IntArray) -> int:
    """Write the features whose boxes are at most ``reach`` (m) from a point into ``hits``; return their number.

    ``stack`` needs room for two nodes a level, ``hits`` for all leaves.
    """
    leaves, count, top = leaf.shape[0], 0, 1
    stack[0] = 1
    while top > 0:
        top -= 1
        node = stack[top]
        if box_distance2(boxes, node, p) > reach * reach:
            continue
        if node < leaves:
            stack[top], stack[top + 1] = 2 * node + 1, 2 * node
            top += 2
        else:
            hits[count] = first + leaf[node - leaves]
            count += 1
    return count


@njit(cache=True, inner=True)
def search_box(leaf: IntArray, boxes: FloatArray, first: int, low: Vector, high: Vector, stack: IntArray, hits: IntArray) -> int:
    """Write the features whose boxes overlap that from ``low`` to ``high`` (m) into ``hits``; return their number.

    ``stack`` needs room for two nodes a level, ``hits`` for all leaves.
    """
    leaves, count, top = leaf.shape[0], 0, 1
    stack[0] = 1
    while top > 0:
        top -= 1
        node = stack[top]
        if not boxes_overlap(boxes, node, low, high):
            continue
        if node < leaves:
            stack[top], stack[top + 1] = 2 * node + 1, 2 * node
            top += 2
        else:
            hits[count] = first + leaf[node - leaves]
            count += 1
    return count

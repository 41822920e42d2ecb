"""Which driven parts and links have contact by their faces with a soft body at a time: those whose edges are near it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from contact.compiled import Fixed
from contact.creases import segments
from femsim.model.parts import Part
from femsim.step import near_edges_kernels as kernels
from femsim.step.placed import Placed
from femsim.step.state import State
from femsim.step.system import System

#: Part of the longest edge of a triangle within which an edge of a rigid part is near it, however slow the two are.
PART = 0.1


class _Edges(NamedTuple):
    """Edges of a rigid part, (k, 2, 3), m, in its frame, and the corners of the box round them, (3,) each."""

    edges: np.ndarray
    lower: np.ndarray
    upper: np.ndarray


class _Surface(NamedTuple):
    """Triangles (n, 3) of the surface of a soft body and the longest edge of each at rest, (n,), m."""

    triangles: np.ndarray
    size: np.ndarray


class NearEdges:
    """Finds them. Where only the inside of a face presses, nodes bear that just as well, at less cost, and follow a turn exactly.

    Parameters
    ----------
    system : System
        The bodies.
    parts : sequence of Part
        All parts.
    pairs : ndarray, (np, np), bool
        Pairs of a soft body and a rigid part that may have contact either way, symmetric.

    Attributes
    ----------
    pairs : ndarray, (np, np), bool
        Those.
    """

    def __init__(self, system: System, parts: Sequence[Part], pairs: np.ndarray) -> None:
        self.pairs, self._system, self._near = pairs, system, Fixed(kernels.is_near)
        soft = [k for k in range(len(parts)) if pairs[k].any() and len(parts[k].triangles)]
        self._soft = [(k, parts[k].body, _surface_of(system, parts[k]), np.flatnonzero(pairs[k]).tolist()) for k in soft]
        self._edges = {j: _edges_of(parts[j]) for j in np.flatnonzero(pairs[soft].any(axis=0)).tolist()}

    def __bool__(self) -> bool:
        return bool(self._soft)

    def find(self, state: State, placed: Placed, reach: float) -> np.ndarray:
        """Pairs, (np, np) bool, with an edge of the rigid part within a reach, m, of a face of the soft body, symmetric."""
        near = np.zeros_like(self.pairs)
        for k, body, surface, others in self._soft:
            x = state.q[self._system.q_slices[body]].reshape(-1, 3)
            for j in others:
                rotation, translation = np.ascontiguousarray(placed.rotation[j]), placed.translation[j]
                near[k, j] = near[j, k] = self._near(*self._edges[j], rotation, translation, x, *surface, reach, PART)
        return near


def _edges_of(part: Part) -> _Edges:
    """Edges of all shapes of a rigid part."""
    each = []
    for shape, rotation, translation in part.shapes:
        start, end, _, _ = segments(shape)
        each.append(np.stack([start, end], axis=1) @ rotation.T + translation)
    edges = np.concatenate(each)
    return _Edges(edges, edges.min(axis=(0, 1)), edges.max(axis=(0, 1)))


def _surface_of(system: System, part: Part) -> _Surface:
    """Surface of a soft body."""
    corners = system.bodies[part.body].initial_q().reshape(-1, 3)[part.triangles]
    length = np.linalg.norm(corners - np.roll(corners, 1, axis=1), axis=2)
    return _Surface(np.ascontiguousarray(part.triangles, dtype=np.int64), length.max(axis=1))

"""What pushes the nodes of a soft body along its surface: sides of rigid parts that nodes ahead of an edge are caught at."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from femsim.model.parts import Part
from femsim.step import vitals_kernels as kernels
from femsim.step.contacts import StepContacts
from femsim.step.state import State
from femsim.step.system import System

#: Sine of the angle to each triangle at a node, 30 degrees, below which a force on it pushes along the surface.
_ALONG = 0.5


class Snag(NamedTuple):
    """What a rigid part presses on the nodes of a soft body in a step.

    Attributes
    ----------
    part, soft : int
        Numbers of the two parts.
    pressed, along : float, N
        Sum of the normal forces, and of those that push nodes along their surface.
    """

    part: int
    soft: int
    pressed: float
    along: float


class _Surface(NamedTuple):
    """Surface of a soft body by the points of its part, as :func:`femsim.step.vitals_kernels.against` takes it."""

    triangles: np.ndarray
    first: np.ndarray
    around: np.ndarray


class Snags:
    """Finds it. By its nodes alone a surface passes through the edge of a part that slides on it, and the next node is ploughed.

    Parameters
    ----------
    system : System
        The bodies.
    parts : sequence of Part
        All parts of a scene.
    pairs : ndarray, (np, np), bool
        Pairs of points and shapes.
    """

    def __init__(self, system: System, parts: Sequence[Part], pairs: np.ndarray) -> None:
        self._system, self._parts = system, parts
        shaped = np.array([bool(part.shapes) for part in parts])
        #: parts that press on the nodes of each soft one, (np,) bool, and its surface
        self._soft = {
            k: (pairs[k] & shaped, _surface_of(part))
            for k, part in enumerate(parts)
            if len(part.triangles) and (pairs[k] & shaped).any()
        }

    def find(self, contacts: StepContacts, state: State) -> Iterator[Snag]:
        """Those of a step that ended in a state."""
        for k, (shaped, surface) in self._soft.items():
            other = contacts.part[:, 1]
            mine = np.flatnonzero((contacts.part[:, 0] == k) & shaped[other] & (contacts.lam[:, 0] > 0.0))
            if not len(mine):
                continue
            body, q = self._system.bodies[self._parts[k].body], state.q[self._system.q_slices[self._parts[k].body]]
            x, inwards = body.contact_points(q, self._parts[k].nodes), np.empty(len(mine))
            kernels.against(contacts.point[mine, 0, 0], contacts.normal[mine], x, *surface, inwards)
            force, by = contacts.lam[mine, 0], other[mine]
            pressed = np.bincount(by, force, len(shaped))
            along = np.bincount(by, force * (inwards < _ALONG), len(shaped))
            yield from (Snag(j, k, float(pressed[j]), float(along[j])) for j in np.unique(by).tolist())


def _surface_of(part: Part) -> _Surface:
    order = np.argsort(part.nodes, kind="stable")
    triangles = order[np.searchsorted(part.nodes, part.triangles, sorter=order)]
    corners = triangles.ravel()
    first = np.concatenate([[0], np.cumsum(np.bincount(corners, minlength=len(part.nodes)))])
    return _Surface(np.ascontiguousarray(triangles), first, np.argsort(corners, kind="stable") // 3)

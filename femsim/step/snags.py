"""What pushes the nodes of a soft body along its surface: sides of rigid parts that nodes ahead of an edge are caught at."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from contact.compiled import Fixed
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
        Sum of the normal forces, and of those that push nodes along their surface with another side than the one that presses.
    """

    part: int
    soft: int
    pressed: float
    along: float


class _Surface(NamedTuple):
    """Surface of a soft body by its nodes and the points of its part, as :func:`femsim.step.vitals_kernels.press` takes it."""

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
        self._system, self._sums = system, np.zeros((len(parts), 5))
        shaped = np.array([bool(part.shapes) for part in parts])
        #: of each soft part that others press on by its nodes, those and its surface
        self._soft = [
            (k, part.body, np.flatnonzero(pairs[k] & shaped).tolist(), _surface_of(part), Fixed(kernels.press))
            for k, part in enumerate(parts)
            if len(part.triangles) and (pairs[k] & shaped).any()
        ]

    def find(self, contacts: StepContacts, state: State) -> tuple[Snag, ...]:
        """Those of a step that ended in a state."""
        if not self._soft:
            return ()
        found: list[Snag] = []
        one = contacts.part, contacts.lam, contacts.point, contacts.normal
        given = [np.ascontiguousarray(array) for array in one]  # a view of many normals is not contiguous, that of one is
        for k, body, others, surface, press in self._soft:
            x = state.q[self._system.q_slices[body]].reshape(-1, 3)
            press(k, *given, x, *surface, _ALONG, self._sums)
            found += [Snag(j, k, *self._sums[j, :2].tolist()) for j in others if self._sums[j, 0] > 0.0]
        return tuple(found)


def _surface_of(part: Part) -> _Surface:
    order = np.argsort(part.nodes, kind="stable")
    corners = order[np.searchsorted(part.nodes, part.triangles, sorter=order)].ravel()
    first = np.concatenate([[0], np.cumsum(np.bincount(corners, minlength=len(part.nodes)))])
    return _Surface(np.ascontiguousarray(part.triangles), first, np.argsort(corners, kind="stable") // 3)

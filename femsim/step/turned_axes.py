"""Contacts of shapes that are turned about an axis: how their normals lie to the axes of both sides."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from contact import PlacedShape, PointContacts
from contact.metrics import any_of
from contact.shapes import Cone, Cylinder, Revolved, Thread
from femsim.step.contact_family import Found
from femsim.step.placed import Placed
from femsim.step.rows_kernels import turn_frames
from femsim.step.system import System

#: Halves of turns of a step, rad, that differ by less count as the same.
_EVEN = 1e-4
#: Turned shapes sit round each other where places of contact go so alike round both axes, as a part of their way.
_COAXIAL = 0.1


class Axes:
    """The axes of shapes that are turned about one.

    Parameters
    ----------
    shapes : sequence of PlacedShape
        All shapes; their bodies are parts.
    first : sequence of int
        First point of each, of all ``count`` points.
    count : int
        How many points there are.
    row : ndarray, (parts,)
        First row of v that moves each part, -1 for none.
    system : System
        The bodies.

    Attributes
    ----------
    turned : (ndarray, ndarray, ndarray)
        Which shapes are a Revolved or a Thread, (s,) bool, and the poses of all in their parts, (s, 3, 3) and (s, 3), m.
    """

    def __init__(self, shapes: Sequence[PlacedShape], first: Sequence[int], count: int, row: np.ndarray, system: System) -> None:
        def are(*kinds: type) -> np.ndarray:
            return np.array([isinstance(one.shape, kinds) for one in shapes], dtype=np.bool_)

        self.turned = (
            are(Revolved, Thread),
            np.array([one.rotation for one in shapes], dtype=np.float64).reshape(-1, 3, 3),
            np.array([one.translation for one in shapes], dtype=np.float64).reshape(-1, 3),
        )
        self._row, self._system = row, system
        self._part = np.array([one.body for one in shapes], dtype=np.int64)
        self._threads, self._round = are(Thread), are(Revolved, Cylinder, Cone)
        self._any_thread = bool(self._threads.any())
        #: shape of each point that is one of a Revolved, else -1; None where there is no other turned shape
        self._rings: np.ndarray | None = None
        if are(Revolved).any() and np.count_nonzero(self._round) > 1:
            self._rings = np.full(count, -1)
            for k in np.flatnonzero(are(Revolved)).tolist():
                self._rings[first[k] : first[k] + len(shapes[k].shape.features()[0])] = k

    def _seen(self, shape: np.ndarray, placed: Placed, position: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Axes of shapes (n,) in the world, and the ways (n, 3), m, of places (n, 3), m, that go round them, a radian."""
        _, axes, centre = self.turned
        part = self._part[shape]
        axis = np.einsum("mij,mj->mi", placed.rotation[part], axes[shape, :, 2])
        lever = position - placed.translation[part] - np.einsum("mij,mj->mi", placed.rotation[part], centre[shape])
        return axis, np.cross(axis, lever)

    def meet(self, found: PointContacts, point_part: np.ndarray, placed: Placed) -> None:
        """Turn normals of points of a Revolved that sits round what is turned too, or in it, so that they meet its own axis.

        How it turns about that changes no gap, but its 32 points of a ring go on to where the other surface is nearer: what
        presses them in a step would brake it, by the play of both times the sine of half its turn. Of two free bodies, which a
        force may turn both, it is the axis of the shape that normals meet.
        """
        if self._rings is None:
            return
        own = self._rings[found.point]
        which = np.flatnonzero((own >= 0) & self._round[found.shape])
        free = (self._row >= 0) & ~self._system.prescribed[self._row]
        which = which[free[point_part[found.point[which]]] & ~free[self._part[found.shape[which]]]]
        if not len(which):
            return
        axis, along = self._seen(own[which], placed, found.position[which])
        others, way = self._seen(found.shape[which], placed, found.position[which])
        way *= np.sign((axis * others).sum(axis=1))[:, None]
        square = (along**2).sum(axis=1)
        near = ((along - way) ** 2).sum(axis=1) <= _COAXIAL**2 * square
        near &= square > 0.0
        which, along, square = which[near], along[near], square[near]
        _lean(found.frame, which, -(found.frame[which, 0] * along).sum(axis=1) / square, along)

    def led(
        self, found: Found, keep: np.ndarray, frame: np.ndarray, point_part: np.ndarray, v_hat: np.ndarray, dt: float
    ) -> np.ndarray:
        """Frames (kept, 3, 3) with normals on threads across the way that v_hat (n,) leads by Cayley's map in a step (s).

        What turns by w in a step dt does so by 2 arctan(w dt/2) there, and its thread leads it by so much less. Where nothing
        turns on a thread, the same array is returned.
        """
        if not self._any_thread:
            return frame
        c: PointContacts = found.contacts
        own = np.flatnonzero(self._threads[c.shape[keep]])
        if not len(own):
            return frame
        number = keep[own]
        axis, along = self._seen(c.shape[number], found.placed, c.position[number])
        one = 0.5 * dt * self._spin(point_part[c.point[number]], axis, v_hat)
        other = 0.5 * dt * self._spin(self._part[c.shape[number]], axis, v_hat)
        little = np.abs(one - other) < _EVEN
        turns = (np.arctan(one) - np.arctan(other)) / np.where(little, 1.0, one - other)
        share = np.where(little, 1.0 / (1.0 + one * other), turns) - 1.0
        square = (along**2).sum(axis=1)
        lean = share * (frame[own, 0] * along).sum(axis=1) / np.where(square > 0.0, square, 1.0)
        if not any_of(lean):
            return frame
        frame = frame.copy()
        _lean(frame, own, lean, along)
        return frame

    def _spin(self, part: np.ndarray, axis: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Angular velocities (n,), rad/s, of parts about axes (n, 3) at v; of links that of their base."""
        row = self._row[part]
        if not any_of(row >= 0):
            return np.zeros(len(row))
        rate = v[np.maximum(row, 0)[:, None] + np.arange(3, 6)]
        return np.where(row >= 0, (rate * axis).sum(axis=1), 0.0)


def _lean(frame: np.ndarray, which: np.ndarray, lean: np.ndarray, along: np.ndarray) -> None:
    """Turn frames ``which`` (k,) of (n, 3, 3) so that their normals lean by so much, (k,) 1/m, along ways (k, 3), m."""
    wanted, place = frame[which], np.full(len(frame), -1)
    wanted[:, 0] += lean[:, None] * along
    wanted[:, 0] /= np.linalg.norm(wanted[:, 0], axis=1)[:, None]
    place[which] = np.arange(len(which))
    turn_frames(frame, place, wanted, np.empty(len(frame), dtype=np.bool_))

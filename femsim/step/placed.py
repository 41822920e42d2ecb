"""Where the parts of a scene are in a state, and which rows of v move those that are rigid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from contact.compiled import Fixed
from femsim.model.parts import Part
from femsim.step.layout import in_one
from femsim.step.point_rows_kernels import RigidParts, settle, spread_wrenches
from femsim.step.rows_kernels import Sums
from femsim.step.state import State
from femsim.step.system import System

#: Row of what nothing moves.
STATIC = -1


@dataclass
class Placed:
    """Where parts are.

    Attributes
    ----------
    rotation, translation : ndarray, (np, 3, 3) and (np, 3), m
        Pose of each rigid part; that of the world for all others.
    origin : ndarray, (np, 3), m
        Point that the six rows of a rigid part move.
    screw : ndarray, (m, 6)
        What the joints of each rigid part give to it: velocity at its ``origin`` and angular velocity, see :class:`Places`.
    reference : ndarray, (np, 3), m
        Point that torques on each part are about.
    rigid : RigidParts or None
        What :meth:`Places.rigid` makes of it, once it was asked.
    """

    rotation: np.ndarray
    translation: np.ndarray
    origin: np.ndarray
    screw: np.ndarray
    reference: np.ndarray
    rigid: RigidParts | None = field(default=None, init=False, repr=False, compare=False)


class Places:
    """Reads from a state where parts are.

    Parameters
    ----------
    system : System
        The bodies.
    parts : sequence of Part
        The parts.

    Attributes
    ----------
    row : ndarray, (np,)
        First of the six rows of v that move a rigid part; -1 for none.
    joint_start, joint_row : ndarray, (np + 1,) and (m,)
        Rows of v of the joints between the base and each rigid part: entries ``joint_start[k]`` to ``joint_start[k + 1]``.
    still : Placed
        Where parts are that nothing moves.
    """

    def __init__(self, system: System, parts: Sequence[Part]) -> None:
        self._spread, self._settle, self._room = Fixed(spread_wrenches), Fixed(settle), np.empty(system.n)
        self._system, self._moving = system, [(k, part) for k, part in enumerate(parts) if part.body >= 0]
        n = len(parts)
        self.row, rows = np.full(n, STATIC, dtype=np.int64), [np.zeros(0, dtype=np.int64)] * n
        links: dict[int, tuple[list[int], list[int]]] = {}
        for k, part in self._moving:
            body, start = system.bodies[part.body], system.v_slices[part.body].start
            if body.rigid:
                self.row[k] = start
                rows[k] = start + body.link_rows(part.link)
                own = links.setdefault(part.body, ([], []))
                own[0].append(k)
                own[1].append(part.link)
        self.joint_start = np.concatenate([[0], np.cumsum([len(own) for own in rows])]).astype(np.int64)
        self.joint_row = np.concatenate([*rows, np.zeros(0, dtype=np.int64)]).astype(np.int64)
        self._soft = [(k, part) for k, part in self._moving if not system.bodies[part.body].rigid]
        rotation, place, screw = np.tile(np.eye(3), (n, 1, 1)), np.zeros((n, 3)), np.zeros((len(self.joint_row), 6))
        self.still = Placed(rotation, place, place, screw, place)
        #: of each body with rigid parts these, their links, and the entries of their screws
        self._links = [
            (
                index, in_one(np.array(own)), tuple(named),
                np.concatenate([np.arange(self.joint_start[k], self.joint_start[k + 1]) for k in own]).astype(np.int64),
            )
            for index, (own, named) in links.items()
        ]  # fmt: skip

    def read(self, state: State) -> Placed:
        """Read a state."""
        still = self.still
        screw = still.screw.copy() if len(still.screw) else still.screw
        placed = Placed(still.rotation.copy(), still.translation.copy(), still.origin.copy(), screw, still.reference.copy())
        for index, parts, links, entries in self._links:
            body, q = self._system.bodies[index], state.q[self._system.q_slices[index]]
            found = body.link_places(q, links)
            placed.rotation[parts], placed.translation[parts] = found.rotation, found.centre
            placed.origin[parts], placed.reference[parts] = found.origin, found.reference
            if len(entries):
                placed.screw[entries] = found.screw
        for k, part in self._soft:
            body, q = self._system.bodies[part.body], state.q[self._system.q_slices[part.body]]
            placed.reference[k] = body.reference(q, part.link)
        return placed

    def rigid(self, placed: Placed) -> RigidParts:
        """How the rows of v move the rigid parts where they are."""
        if placed.rigid is None:
            placed.rigid = RigidParts(self.row, placed.origin, self.joint_start, self.joint_row, placed.screw)
        return placed.rigid

    def spread(self, placed: Placed, sums: Sums, out: np.ndarray) -> None:
        """Add to ``out``, (n,), the wrenches on rigid parts, N and N m, about their references."""
        self._spread(*self.rigid(placed), placed.reference, sums.wrench, sums.force_sum, out)

    def settle(self, placed: Placed, there: Placed, sums: Sums) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the generalized forces (n,) of one or three sums: the first, less the second, and the third ``there``.

        Also the torques (np, 3) about where parts are as each force acts, and the generalized forces (n,) of the last sum alone.
        The sums have one more dimension; the first of them become those of all, with torques about where parts are placed.
        """
        out, spin = np.empty(sums.node_force.shape[1]), np.empty((sums.wrench.shape[1], 3))
        rows, moved = self.rigid(placed), self.rigid(there)
        self._settle(
            rows.row, rows.joint_start, rows.joint_row, rows.origin, rows.screw, placed.reference, moved.origin, moved.screw,
            there.reference, *sums, self._room, spin, out,
        )  # fmt: skip
        return out, spin, self._room.copy()

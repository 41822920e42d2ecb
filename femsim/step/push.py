"""Forces from outside the scene on points of its parts: of a hand that pulls, or of a test whether a robot keeps its feet."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from femsim.base.errors import InputError
from femsim.base.rotations import cross
from femsim.model.bodies.outputs import points_of
from femsim.step.rows_kernels import Sums
from femsim.step.state import State
from femsim.step.stepper import Stepper

#: Nodes or links of a body that deforms share a force within this part of its size around the point, so that none is torn out.
_REACH = 0.1


@dataclass(frozen=True)
class Push:
    """A force on a point of a part; the point goes with the part, the force keeps its direction.

    Attributes
    ----------
    part : int
        Number of the part.
    force : ndarray, (3,), N
        World.
    place : ndarray, (3,), m
        The point of a rigid part, from its centre of mass, in its frame; zero of others.
    nodes, weights : ndarray, (k,)
        Nodes or links of others that share the force, and their shares, whose sum is 1; empty of a rigid part.
    """

    part: int
    force: np.ndarray
    place: np.ndarray
    nodes: np.ndarray
    weights: np.ndarray

    @classmethod
    def at(cls, stepper: Stepper, part: int, point: np.ndarray | None, force: np.ndarray) -> Push:
        """Push a part at the point of it that is nearest to a point of the world, (3,), m; None: at its centre of mass.

        Raises
        ------
        InputError
            The part is an obstacle, which nothing moves.
        """
        name, body, nothing = stepper.scene.part_names[part], stepper.body_of(part), np.zeros(0)
        if body is None:
            raise InputError(f"push of {name!r}: it is an obstacle, which no force moves; push a body.")
        if body.rigid:
            rotation, centre = stepper.link_pose(part)
            place = np.zeros(3) if point is None else (point - centre) @ rotation
            return cls(part, force, place, nothing.astype(np.int64), nothing)
        points = _points(stepper, part, stepper.state)
        if point is None:
            q = stepper.state.q[stepper.system.q_slices[stepper.scene.parts[part].body]]
            inertia = body.inertia(q, q)
            diagonal = inertia.diagonal(axis1=1, axis2=2).ravel() if isinstance(inertia, np.ndarray) else inertia.diagonal()
            masses = diagonal.reshape(len(points), -1)[:, 0]
            return cls(part, force, np.zeros(3), np.arange(len(points)), masses / masses.sum())
        away = np.linalg.norm(points - point, axis=1)
        reach = _REACH * float(np.linalg.norm(np.ptp(points, axis=0)))
        shares = np.maximum(1.0 - (away - away.min()) / reach, 0.0)
        nodes = np.flatnonzero(shares)
        return cls(part, force, np.zeros(3), nodes, shares[nodes] / shares.sum())

    def point(self, stepper: Stepper) -> np.ndarray:
        """Where it acts now, (3,), m."""
        if len(self.nodes):
            return np.asarray(self.weights @ _points(stepper, self.part, stepper.state)[self.nodes])
        rotation, centre = stepper.link_pose(self.part)
        return np.asarray(centre + rotation @ self.place)

    def add(self, stepper: Stepper, out: np.ndarray) -> None:
        """Add it to forces on the rows of all bodies, (n,), N and N m."""
        if len(self.nodes):
            points = _points(stepper, self.part, stepper.state)
            rows = out[stepper.system.v_slices[stepper.scene.parts[self.part].body]].reshape(len(points), -1)
            rows[self.nodes, :3] += self.weights[:, None] * self.force
            return
        placed = stepper.placed
        acting = np.arange(len(placed.reference)) == self.part
        wrench = np.zeros((len(acting), 6))
        wrench[self.part, :3] = self.force
        wrench[self.part, 3:] = cross(self.point(stepper) - placed.reference[self.part], self.force)
        stepper.contacts.places.spread(placed, Sums(wrench, acting.astype(float), out), out)

    def memory(self) -> dict[str, np.ndarray]:
        """Return it as arrays."""
        return {
            "part": np.array(self.part),
            "force": self.force,
            "place": self.place,
            "nodes": self.nodes,
            "weights": self.weights,
        }

    @classmethod
    def of(cls, memory: Mapping[str, np.ndarray]) -> Push:
        """Make the push of which :meth:`memory` gave these arrays."""
        return cls(int(memory["part"]), memory["force"], memory["place"], memory["nodes"], memory["weights"])


def pushed(stepper: Stepper, pushes: Collection[Push]) -> np.ndarray | None:
    """Sum of pushes on the rows of all bodies, (n,), N and N m; None without any."""
    if not pushes:
        return None
    out = np.zeros(stepper.system.n)
    for push in pushes:
        push.add(stepper, out)
    return out


def _points(stepper: Stepper, part: int, state: State) -> np.ndarray:
    """Nodes or centres of links of a body that deforms, (n, 3), m."""
    index = stepper.scene.parts[part].body
    points = points_of(stepper.system.bodies[index].kind, state.q[stepper.system.q_slices[index]])
    if points is None:
        raise InputError(f"push of {stepper.scene.part_names[part]!r}: its body is neither rigid nor made of points.")
    return points

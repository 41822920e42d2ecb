"""Held nodes of soft bodies: they follow a rigid motion, as if glued to a robot's hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from femsim.base.errors import InputError
from femsim.base.rotations import angular_velocity, quaternion_from_vector, quaternion_to_matrix
from femsim.model.commands import rate_of
from femsim.model.drives import PoseFunction


@dataclass(frozen=True)
class Hold:
    """Nodes of a soft body that follow a motion; see :meth:`femsim.scene.scene.Scene.hold`.

    Attributes
    ----------
    name : str
        Name for sensors.
    body : int
        Number of the soft body in the system.
    nodes : ndarray of int, (k,)
        Its held nodes, sorted.
    rest : ndarray, (k, 3), m
        Where they start.
    pivot : ndarray, (3,), m
        Point of the motion at the start: its displacement is that of this point, its rotation is about it.
    motion : PoseFunction, optional
        The motion; None where the nodes go with a driven body.
    leader : int
        Number of that body, -1 for none.
    gives_way : bool
        Whether a spring pulls them instead, a :class:`femsim.model.compliance.CompliantHold` of the same name.
    """

    name: str
    body: int
    nodes: np.ndarray
    rest: np.ndarray
    pivot: np.ndarray
    motion: PoseFunction | None
    leader: int = -1
    gives_way: bool = False

    def __repr__(self) -> str:
        followed = "a motion" if self.motion is not None else f"body {self.leader}"
        how = " by a spring" if self.gives_way else ""
        return f"<Hold {self.name!r}: {len(self.nodes)} nodes of body {self.body} follow {followed}{how}>"

    @property
    def rows(self) -> np.ndarray:
        """Rows of the body's v that belong to the nodes, (3 k,)."""
        return np.asarray((3 * self.nodes[:, None] + np.arange(3)).ravel())

    def positions(self, motion: PoseFunction, t: float) -> np.ndarray:
        """Where the nodes are at time t (s) of a motion, (k, 3), m."""
        displacement, rotation = motion(t)
        turn = quaternion_to_matrix(quaternion_from_vector(np.asarray(rotation, dtype=np.float64)))
        return np.asarray(self.pivot + displacement + (self.rest - self.pivot) @ turn.T)

    def velocities(self, motion: PoseFunction, t: float, dt: float) -> np.ndarray:
        """Velocities of the nodes at time t (s) of a motion, at the end of a step of dt (s), (k, 3), m/s."""
        _, rotation = motion(t)
        rate, turning = rate_of(motion, t, dt)
        vector = np.asarray(rotation, dtype=np.float64)
        lever = (self.rest - self.pivot) @ quaternion_to_matrix(quaternion_from_vector(vector)).T
        return np.asarray(rate + np.cross(angular_velocity(vector, turning), lever))


def held_wrench(points: np.ndarray, forces: np.ndarray, about: np.ndarray) -> np.ndarray:
    """Force and torque (6,), N and N m, about a point (3,) of forces (k, 3), N, at points (k, 3), m."""
    return np.concatenate([forces.sum(axis=0), np.cross(points - about, forces).sum(axis=0)])


def nodes_where(what: str, points: np.ndarray, where: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Numbers of the points (n, 3), m, where a condition (n,) bool holds; InputError where it gives anything else."""
    mask, n = np.asarray(where(points)), len(points)
    if mask.shape != (n,) or mask.dtype != np.bool_:
        raise InputError(f"{what} gave shape {mask.shape} and type {mask.dtype}; allowed is one bool a node, shape ({n},).")
    return np.flatnonzero(mask)


def chosen_nodes(what: str, points: np.ndarray, where: Callable[[np.ndarray], np.ndarray] | np.ndarray) -> np.ndarray:
    """Sorted numbers of the nodes that a condition or a list of numbers chooses.

    Parameters
    ----------
    what : str
        Name of the field in messages.
    points : ndarray, (n, 3), m
        The nodes.
    where : callable or array_like
        ``where(points) -> (n,) bool``, or node numbers.

    Raises
    ------
    InputError
        An answer or numbers of another kind, or no node at all.
    """
    n = len(points)
    if callable(where):
        nodes = nodes_where(what, points, where)
    else:
        numbers = np.asarray(where)
        if numbers.ndim != 1 or (numbers.size and numbers.dtype.kind not in "iu"):
            given = f"has shape {numbers.shape} and type {numbers.dtype}" if numbers.ndim else f"is {where!r}"
            mask = "; np.flatnonzero makes numbers of yes and no" if numbers.dtype.kind == "b" else ""
            raise InputError(
                f"{what} {given}; allowed are node numbers or a condition on points (n, 3) m, "
                f"e.g. lambda p: p[:, 2] > 0.01{mask}."
            )
        nodes = np.unique(numbers.astype(np.int64))
        if len(nodes) and not 0 <= nodes[0] <= nodes[-1] < n:
            raise InputError(f"{what} names node {nodes[0] if nodes[0] < 0 else nodes[-1]}; allowed are 0 to {n - 1}.")
    if not len(nodes):
        raise InputError(
            f"{what} chooses no node; widen it, the body reaches from {points.min(axis=0)} m to {points.max(axis=0)} m."
        )
    return nodes

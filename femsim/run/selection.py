"""Which contacts a sensor counts: those of its part, on some points of its surface, with some partners."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from femsim.base.errors import InputError
from femsim.model.bodies.outputs import points_of
from femsim.model.holds import chosen_nodes, nodes_where
from femsim.scene.sensor_kinds import SENSOR_KINDS, SensorSpec
from femsim.step.contacts import Late, StepContacts
from femsim.step.stepper import Stepper


class Selection:
    """Contacts of one part, on some of its points, with some partners.

    Parameters
    ----------
    stepper : Stepper
        The simulation.
    sensor : SensorSpec
        The sensor.

    Attributes
    ----------
    part : int
        The part.
    partners : ndarray, (nb,), bool
        Parts on the other side that count.
    chosen : ndarray, (n,), bool, optional
        Points of a body with nodes or links that count.

    Raises
    ------
    InputError
        Parts that never come into contact, or a surface that ``where`` does not hit.
    """

    def __init__(self, stepper: Stepper, sensor: SensorSpec) -> None:
        names, pairs = stepper.scene.part_names, stepper.contacts.pairs
        self.part = names.index(sensor.part)
        self.partners = np.array([not sensor.partners or name in sensor.partners for name in names])
        self.chosen: np.ndarray | None = None
        self._inside: Callable[[np.ndarray, StepContacts], np.ndarray] | None = None
        if not (pairs[self.part] & self.partners).any():
            raise InputError(
                f"sensor {sensor.name}: {sensor.part!r} never has contact with "
                f"{', '.join(map(repr, sensor.partners)) or 'anything'} here "
                "(parts of one body, neighbours in a robot, both fixed or driven, or ignored by the scene, do not); name another "
                "partner."
            )
        if sensor.where is not None:
            self._limit(stepper, sensor, sensor.where)

    def _limit(self, stepper: Stepper, sensor: SensorSpec, where: Callable[[np.ndarray], np.ndarray] | np.ndarray) -> None:
        """Limit the selection to some points of a body with nodes or links, or to places on a rigid part."""
        what, body = f"where of sensor {sensor.name}", stepper.body_of(self.part)
        start = None if body is None else points_of(body.kind, body.initial_q())
        if start is not None:
            self.chosen = np.isin(stepper.scene.parts[self.part].nodes, chosen_nodes(what, start, where))
            if not self.chosen.any():
                raise InputError(f"{what} chooses only nodes inside {sensor.part!r}, none on its surface; widen it.")
            return
        if not callable(where):
            raise InputError(f"{what} are numbers, but {sensor.part!r} is rigid and has no nodes; give a condition on points.")
        condition, turn, place = where, np.eye(3), np.zeros(3)
        if body is not None and body.rigid:
            link = stepper.scene.parts[self.part].link
            turn, place = (pose.copy() for pose in body.link_pose(body.initial_q(), link))

        def inside(places: np.ndarray, c: StepContacts) -> np.ndarray:
            then = (places - c.reference[self.part]) @ c.rotation[self.part] @ turn.T + place
            out = np.zeros(len(places), dtype=np.bool_)
            out[nodes_where(what, then, condition) if len(places) else []] = True
            return out

        self._inside = inside

    def shares(self, c: StepContacts) -> np.ndarray:
        """How much of each contact belongs to the selection, by the side that the part is on, (nc, 2), from 0 to 1."""
        out = np.zeros((len(c.gap), 2))
        for side in (0, 1):
            own = np.flatnonzero((c.part[:, side] == self.part) & self.partners[c.part[:, 1 - side]])
            if self._inside is not None:
                out[own, side] = self._inside((c.opposite if side else c.position)[own], c)
            elif self.chosen is not None:
                point = c.point[own, side]
                out[own, side] = (c.weight[own, side] * (self.chosen[point] & (point >= 0))).sum(axis=1)
            else:
                out[own, side] = 1.0
        return out

    def wrench(self, c: StepContacts) -> np.ndarray:
        """Force and torque (6,) that the selected contacts exert on the part, about its reference where that is as each acts."""
        shares, late = self.shares(c), c.late
        if not shares.any():
            return np.zeros(6)
        if late is None:
            return self._exerted(shares, c, c.force)
        return self._exerted(shares, c, c.force - late.force) + self._exerted(shares, late, late.force)

    def _exerted(self, shares: np.ndarray, at: StepContacts | Late, forces: np.ndarray) -> np.ndarray:
        """Wrench (6,) of shares, (nc, 2), of forces (nc, 3), N, that act at these places."""
        force = np.concatenate([shares[:, :1] * forces, -shares[:, 1:] * forces])
        arm = np.concatenate([at.position, at.opposite]) - at.reference[self.part]
        moments = arm.T @ force  # their skew part is the torque
        return np.concatenate([force.sum(axis=0), (moments - moments.T)[[1, 2, 0], [2, 0, 1]]])


class GapSearch:
    """Search for gaps, once for all sensors of a run where the coordinates are the same.

    Parameters
    ----------
    stepper : Stepper
        The simulation; the largest reach of its sensors is that of the search.
    """

    def __init__(self, stepper: Stepper) -> None:
        self._stepper = stepper
        self._q = np.zeros(0)
        self._reach = max((s.reach for s in stepper.scene.sensors if "reach" in SENSOR_KINDS[s.kind].limits), default=0.0)
        self._found: tuple[np.ndarray, np.ndarray] = (np.zeros((0, 2)), np.zeros(0))

    def found(self) -> tuple[np.ndarray, np.ndarray]:
        """Parts (n, 2) and gaps (n,), m, in the current state."""
        state = self._stepper.state
        if not np.array_equal(self._q, state.q):
            self._q, self._found = state.q.copy(), self._stepper.contacts.gaps(state, self._reach)
        return self._found

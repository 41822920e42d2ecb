"""Which contacts a sensor counts: those of its part, on some points of its surface, with some partners."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from femsim.base.errors import InputError
from femsim.model.bodies.outputs import points_of
from femsim.model.holds import chosen_nodes, nodes_where
from femsim.scene.sensor_kinds import SENSOR_KINDS, SensorSpec
from femsim.step.contacts import StepContacts
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
        out, of_it = np.zeros((len(c.gap), 2)), c.part == self.part
        for side in (0, 1) if of_it.any() else ():  # most sensors of a hand have no contact
            own = np.flatnonzero(of_it[:, side] & self.partners[c.part[:, 1 - side]])
            if self._inside is not None:
                out[own, side] = self._inside(c.acting[own, side], c)
            elif self.chosen is not None:
                point = c.point[own, side]
                out[own, side] = (c.weight[own, side] * (self.chosen[point] & (point >= 0))).sum(axis=1)
            else:
                out[own, side] = 1.0
        return out

    def wrench(self, parts: Sequence[tuple[float, StepContacts]]) -> np.ndarray:
        """Mean force and torque (6,) that the selected contacts exert on the part in the parts of a step, see :func:`exerted`."""
        return exerted(parts, self.shares, self.part)


def exerted(parts: Sequence[tuple[float, StepContacts]], shares: Callable[[StepContacts], np.ndarray], about: int) -> np.ndarray:
    """Mean force and torque, (6,), N and N m, of shares of contacts over a step, about where a part is as each force acts.

    Parameters
    ----------
    parts : sequence of (float, StepContacts)
        Length, s, and contacts of each sub-step.
    shares : callable
        How much of each contact counts, by the side it acts on, (nc, 2).
    about : int
        The part whose reference torques are about.
    """
    out = np.zeros(6)
    for dt, c in parts:
        own = shares(c)
        if not own.any():
            continue
        late = np.zeros_like(c.force) if c.late is None else c.late.force
        for at, forces in ((c, c.force - late), (c.late, late)):
            if at is None:
                continue
            force = np.concatenate([own[:, :1] * forces, -own[:, 1:] * forces])
            arm = np.concatenate([at.acting[:, 0], at.acting[:, 1]]) - at.reference[about]
            moments = arm.T @ force  # their skew part is the torque
            out[:3] += dt * force.sum(axis=0)
            out[3:] += dt * (moments - moments.T)[[1, 2, 0], [2, 0, 1]]
            if at.couple is not None:
                out[3:] += dt * np.einsum("ms,msij,mj->i", own, at.couple, forces)
    return np.asarray(out / sum(dt for dt, _ in parts))


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

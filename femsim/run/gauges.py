"""What sensors read beside whole wrenches: some of the contacts of a part, joints, gap, area, slip, energy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from femsim.base.errors import InputError
from femsim.base.rotations import cross
from femsim.model.bodies.articulated import ArticulatedBody
from femsim.model.bodies.body import Body
from femsim.model.bodies.rod import Rod
from femsim.model.bodies.soft import SoftBody
from femsim.model.bodies.soft_output import SoftOutput
from femsim.model.couplings import HeldEnd
from femsim.model.holds import chosen_nodes, nodes_where
from femsim.scene.scene import SensorSpec
from femsim.step.contacts import StepContacts
from femsim.step.report import StepReport
from femsim.step.stepper import Stepper


@dataclass
class _Selection:
    """Which contacts a sensor counts: those of one part, on some of its points, with some partners.

    Attributes
    ----------
    part : int
        The part.
    partners : ndarray, (nb,), bool
        Parts on the other side that count.
    chosen : ndarray, (n,), bool, optional
        Points of a soft body or rod that count.
    inside : callable, optional
        ``inside(places (k, 3) m, contacts) -> (k,) bool`` of a rigid part.
    outputs : dict of int to SoftOutput
        Soft parts whose nodes make the area.
    slip, friction : float, m and J
        Sums so far.
    """

    part: int
    partners: np.ndarray
    chosen: np.ndarray | None = None
    inside: Callable[[np.ndarray, StepContacts], np.ndarray] | None = None
    outputs: dict[int, SoftOutput] = field(default_factory=dict)
    slip: float = 0.0
    friction: float = 0.0

    def shares(self, c: StepContacts) -> np.ndarray:
        """How much of each contact belongs to the selection, by the side that the part is on, (nc, 2), from 0 to 1."""
        out = np.zeros((len(c.gap), 2))
        for side in (0, 1):
            own = np.flatnonzero((c.part[:, side] == self.part) & self.partners[c.part[:, 1 - side]])
            if self.inside is not None:
                out[own, side] = self.inside((c.opposite if side else c.position)[own], c)
            elif self.chosen is not None:
                point = c.point[own, side]
                out[own, side] = (c.weight[own, side] * (self.chosen[point] & (point >= 0))).sum(axis=1)
            else:
                out[own, side] = 1.0
        return out


class Gauges:
    """Reads those sensors of a stepper that its report alone does not answer; one call a step for each, in the order of time.

    Parameters
    ----------
    stepper : Stepper
        The simulation, before its first step.

    Raises
    ------
    InputError
        Parts that never touch, an area without a soft body, or a surface that ``where`` does not hit.
    """

    def __init__(self, stepper: Stepper) -> None:
        self.stepper = stepper
        self._names = [part.name for part in stepper.scene.parts]
        self._start = [tuple(pose.copy() for pose in stepper.link_pose(k)) for k in range(len(self._names))]
        self._selections = {s.name: self._select(s) for s in stepper.scene.sensors if s.counts_contacts}
        self._reach = max((s.reach for s in stepper.scene.sensors if s.kind == "gap"), default=0.0)
        self._momenta = {s.name: self._momentum(s) for s in stepper.scene.sensors if s.kind == "joint"}
        self._gaps: tuple[int, np.ndarray, np.ndarray] = (-1, np.zeros((0, 2)), np.zeros(0))

    def read(self, sensor: SensorSpec, report: StepReport) -> np.ndarray | None:
        """Give the numbers of a sensor after a step, in the order of its columns; None for one that is not of these kinds."""
        if sensor.kind == "energy":
            return self._energy(sensor)
        if sensor.kind == "joint":
            return self._joint(sensor, report)
        if not sensor.counts_contacts:
            return None
        selection = self._selections[sensor.name]
        if sensor.kind == "gap":
            return self._gap(sensor, selection)
        if sensor.kind == "area":
            return self._area(selection, report.contacts, selection.shares(report.contacts))
        if sensor.kind == "contact":
            wrenches = [dt * self._wrench(selection, c, selection.shares(c)) for dt, c in report.parts]
            return np.asarray(np.sum(wrenches, axis=0) / sum(dt for dt, _ in report.parts))
        for dt, contacts in report.parts:
            self._slip(selection, contacts, selection.shares(contacts), dt)
        return np.array([selection.slip, selection.friction])

    # ------------------------------------------------------------------ contacts

    def _select(self, sensor: SensorSpec) -> _Selection:
        part, meets = self._names.index(sensor.part), self.stepper.contacts.pairs
        partners = np.array([not sensor.partners or name in sensor.partners for name in self._names])
        selection = _Selection(part, partners)
        if not (meets[part] & partners).any():
            raise InputError(
                f"sensor {sensor.name}: {sensor.part!r} never touches {', '.join(map(repr, sensor.partners)) or 'anything'} here "
                "(parts of one body, or both fixed or driven, do not); name another partner."
            )
        if sensor.where is not None:
            self._limit(sensor, selection, sensor.where)
        if sensor.kind == "area":
            own = isinstance(self.stepper.body_of(part), SoftBody)
            sides = {k: self.stepper.body_of(k) for k in ([part] if own else map(int, np.flatnonzero(meets[part] & partners)))}
            selection.outputs = {k: SoftOutput(body) for k, body in sides.items() if isinstance(body, SoftBody)}
            if not selection.outputs:
                raise InputError(
                    f"sensor {sensor.name}: {sensor.part!r} touches no soft body, and the area is that of the loaded nodes of "
                    "one; use kind 'contact' for its force."
                )
        return selection

    def _limit(self, sensor: SensorSpec, selection: _Selection, where: Callable[[np.ndarray], np.ndarray] | np.ndarray) -> None:
        """Limit a selection to some points of a soft body or rod, or to places on a rigid part."""
        what, body = f"where of sensor {sensor.name}", self.stepper.body_of(selection.part)
        if isinstance(body, SoftBody | Rod):
            if isinstance(body, SoftBody):
                surface, start = self.stepper.scene.parts[selection.part].nodes, body.rest
            else:
                surface, start = np.arange(body.n_links), body.centres(body.initial_q())
            selection.chosen = np.isin(surface, chosen_nodes(what, start, where))
            if not selection.chosen.any():
                raise InputError(f"{what} chooses only nodes inside {sensor.part!r}, none on its surface; widen it.")
            return
        if not callable(where):
            raise InputError(f"{what} are numbers, but {sensor.part!r} is rigid and has no nodes; give a condition on points.")
        condition, (turn, place) = where, self._start[selection.part]

        def inside(places: np.ndarray, c: StepContacts) -> np.ndarray:
            then = (places - c.reference[selection.part]) @ c.rotation[selection.part] @ turn.T + place
            out = np.zeros(len(places), dtype=np.bool_)
            out[nodes_where(what, then, condition) if len(places) else []] = True
            return out

        selection.inside = inside

    def _wrench(self, selection: _Selection, c: StepContacts, shares: np.ndarray) -> np.ndarray:
        """Force and torque (6,) that the selected contacts exert on the part, about its reference."""
        force = np.concatenate([shares[:, :1] * c.force, -shares[:, 1:] * c.force])
        arm = np.concatenate([c.position, c.opposite]) - c.reference[selection.part]
        return np.concatenate([force.sum(axis=0), np.cross(arm, force).sum(axis=0)])

    def _gap(self, sensor: SensorSpec, selection: _Selection) -> np.ndarray:
        """Smallest gap (1,) at the end of the step; inf where the detector sees none within the reach."""
        stepper = self.stepper
        if self._gaps[0] != stepper.state.step:  # once a step for all sensors
            self._gaps = (stepper.state.step, *stepper.contacts.gaps(stepper.state, self._reach))
        _, part, gap = self._gaps
        own = np.zeros(len(gap), dtype=np.bool_)
        for side in (0, 1):
            own |= (part[:, side] == selection.part) & selection.partners[part[:, 1 - side]]
        smallest = float(gap[own].min(initial=np.inf))
        return np.array([smallest if smallest < sensor.reach else np.inf])

    def _area(self, selection: _Selection, c: StepContacts, shares: np.ndarray) -> np.ndarray:
        """Area (1,) of the loaded nodes of the soft part, or of those that press on the rigid one."""
        stepper, area = self.stepper, 0.0
        for k, output in selection.outputs.items():
            # the share is known by the side of the sensed part; the nodes are on the side of k
            own = shares if k == selection.part else shares[:, ::-1]
            nodes = stepper.scene.parts[k].nodes
            force = np.zeros((output.body.n_nodes, 3))
            for side in (0, 1):
                use = np.flatnonzero((c.part[:, side] == k) & (own[:, side] > 0.0) & (c.state > 0))
                if not len(use):
                    continue
                point = c.point[use, side]
                weight = np.where(point >= 0, c.weight[use, side], 0.0)
                if k == selection.part and selection.chosen is not None:
                    weight = weight * selection.chosen[point]
                pull = (1.0 if side == 0 else -1.0) * c.force[use]
                np.add.at(force, nodes[point], weight[:, :, None] * pull[:, None, :])
            x = stepper.state.q[stepper.system.q_slices[stepper.scene.parts[k].body]].reshape(-1, 3)
            area += float(output.contact_area(x, force).sum())
        return np.array([area])

    def _slip(self, selection: _Selection, c: StepContacts, shares: np.ndarray, dt: float) -> None:
        """Add the way slipped (m) and the work of friction (J) of a step, or of a part of one, of dt (s)."""
        share = np.minimum(shares.sum(axis=1), 1.0)
        pressing = share * c.lam[:, 0] * (c.state > 0)
        if pressing.sum() > 0.0:
            selection.slip += dt * float(pressing @ np.linalg.norm(c.u[:, 1:], axis=1) / pressing.sum())
        selection.friction -= dt * float(share @ (c.lam[:, 1:] * c.u[:, 1:]).sum(axis=1))

    # ------------------------------------------------------------------ bodies

    def _body(self, sensor: SensorSpec) -> tuple[Body, int, np.ndarray, np.ndarray]:
        """Body of a sensor, its number in the system, its coordinates and velocities."""
        stepper, k = self.stepper, self._names.index(sensor.part)
        index, body = stepper.scene.parts[k].body, stepper.body_of(k)
        assert body is not None
        q, v = stepper.system.q_slices[index], stepper.system.v_slices[index]
        return body, index, stepper.state.q[q], stepper.state.v[v]

    def _energy(self, sensor: SensorSpec) -> np.ndarray:
        """Kinetic and elastic energy, and potential of gravity from the origin, (3,) J, of the whole body."""
        body, _, q, v = self._body(sensor)
        potential = -body.mass * float(self.stepper.settings.gravity @ body.centre_of_mass(q))
        return np.array([body.kinetic_energy(q, v), body.elastic_energy(q), potential])

    def _momentum(self, sensor: SensorSpec) -> np.ndarray:
        """Momentum (3,), kg m/s, and spin about its own centre (3,), kg m^2/s, of the link of a sensor."""
        body, _, q, v = self._body(sensor)
        assert isinstance(body, ArticulatedBody)
        k = self.stepper.scene.parts[self._names.index(sensor.part)].link
        link, twist, turn = body.links[k], body.link_jacobian(q, k) @ v, body.link_pose(q, k)[0]
        return np.concatenate([link.mass * twist[:3], turn @ link.inertia @ turn.T @ twist[3:]])

    def _joint(self, sensor: SensorSpec, report: StepReport) -> np.ndarray:
        """Force and torque (6,) that the base exerts on a finger through its joint: what else does not explain its motion."""
        stepper, k = self.stepper, self._names.index(sensor.part)
        body, index, q, _ = self._body(sensor)
        assert isinstance(body, ArticulatedBody)
        number = stepper.scene.parts[k].link
        momentum = self._momentum(sensor)
        out = (momentum - self._momenta[sensor.name]) / stepper.settings.dt - report.forces.wrench[k]
        self._momenta[sensor.name] = momentum
        out[:3] -= body.links[number].mass * stepper.settings.gravity
        centre = body.link_pose(q, number)[1]
        for coupling in stepper.scene.couplings:
            if isinstance(coupling, HeldEnd) and coupling.carried_by(index, number):
                place, wrench = coupling.pull()
                out[:3] -= wrench[:3]
                out[3:] -= wrench[3:] + cross(place - centre, wrench[:3])
        return np.asarray(out)

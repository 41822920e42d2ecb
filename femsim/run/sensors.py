"""How each kind of sensor is read after a step; :mod:`femsim.scene.sensor_kinds` declares the kinds.

To add a kind: its declaration there, and a class here under the same name in :data:`READERS`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from femsim.base.errors import InputError
from femsim.base.rotations import cross, nearest_rotation
from femsim.model.bodies.body import Body
from femsim.model.bodies.outputs import Marker
from femsim.model.couplings import Coupling
from femsim.run.instruments import Instrument
from femsim.run.selection import GapSearch, Selection, exerted
from femsim.scene.scene import Scene
from femsim.scene.sensor_kinds import SENSOR_KINDS, WRENCH, SensorSpec
from femsim.step.contacts import StepContacts
from femsim.step.placed import Placed
from femsim.step.prescribed import held_points
from femsim.step.report import StepReport
from femsim.step.state import State
from femsim.step.stepper import Stepper

#: Contacts of a node press about the same way where the cosine of their normals is more than this.
_ABOUT = 0.7


class Acted(NamedTuple):
    """When what a step read acted: forces are means over it, by backward Euler those at its end.

    The state then, where the parts are then, and how long that is before the end of the step, s.
    """

    state: State
    placed: Placed
    back: float


class Reader(ABC):
    """Reads one sensor: one call per step, in the order of time.

    Parameters
    ----------
    stepper : Stepper
        The simulation.
    sensor : SensorSpec
        The sensor.
    gaps : GapSearch
        Search for gaps that all sensors of a run share.

    Attributes
    ----------
    part : int
        Part that the sensor is on.
    """

    def __init__(self, stepper: Stepper, sensor: SensorSpec, gaps: GapSearch) -> None:
        self.stepper, self.sensor, self.gaps = stepper, sensor, gaps
        self.part = stepper.scene.part_names.index(sensor.part)

    @abstractmethod
    def read(self, report: StepReport) -> Sequence[float] | np.ndarray:
        """Give the numbers of the sensor after a step, in the order of its columns."""

    def origin(self, acted: Acted) -> np.ndarray:
        """Point (3,), m, world, that a torque is about: the centre of mass of the part, the world's origin for obstacles."""
        return acted.placed.reference[self.part]

    def axes(self, acted: Acted) -> np.ndarray:
        """Axes that turn with the part, (3, 3), as columns."""
        return acted.placed.rotation[self.part]

    def memory(self) -> dict[str, np.ndarray]:
        """Give what the reader carries from step to step, arrays by name, for :meth:`recall`."""
        return {}

    def recall(self, memory: Mapping[str, np.ndarray]) -> None:  # noqa: B027 (most readers carry nothing)
        """Take back what :meth:`memory` gave."""

    def reset(self) -> None:  # noqa: B027 (most readers carry nothing)
        """Forget it: the next step is the first that counts."""

    @property
    def body(self) -> Body:
        """Body of the part."""
        body = self.stepper.body_of(self.part)
        assert body is not None, "the scene lets obstacles have sensors only that need no body"
        return body

    @property
    def index(self) -> int:
        """Number of the body in the system."""
        return self.stepper.scene.parts[self.part].body

    @property
    def q(self) -> np.ndarray:
        """Coordinates of the body."""
        return self.stepper.state.q[self.stepper.system.q_slices[self.index]]

    @property
    def v(self) -> np.ndarray:
        """Velocities of the body."""
        return self.stepper.state.v[self.stepper.system.v_slices[self.index]]


# ------------------------------------------------------------------ wrenches


class ContactReader(Reader):
    """Wrench of all contacts of a part, or of some."""

    def __init__(self, stepper: Stepper, sensor: SensorSpec, gaps: GapSearch) -> None:
        super().__init__(stepper, sensor, gaps)
        self._selection = Selection(stepper, sensor) if sensor.limited else None

    def read(self, report: StepReport) -> np.ndarray:
        """Mean over the step."""
        if self._selection is None:
            return np.concatenate([report.forces.wrench[self.part, :3], report.forces.spin[self.part]])
        return self._selection.wrench(report.parts)


class MountReader(Reader):
    """Wrench of a drive on a driven body, or on held nodes."""

    def read(self, report: StepReport) -> np.ndarray:
        """As the step counted it; zero for a body without a drive."""
        return report.mount.get(self.sensor.hold or self.body.name, np.zeros(6))

    def origin(self, acted: Acted) -> np.ndarray:
        """Centre of the base, or mean of the held nodes."""
        return self._held(acted)[0].mean(axis=0) if self.sensor.hold else super().origin(acted)

    def axes(self, acted: Acted) -> np.ndarray:
        """Of held nodes axes that turn as they do, the world's where they start; nodes in one line do not roll about it."""
        if not self.sensor.hold:
            return super().axes(acted)
        points, start = (x - x.mean(axis=0) for x in self._held(acted))
        spread = points.T @ start
        return nearest_rotation(spread + (1e-12 * float((start**2).sum()) + np.finfo(np.float64).tiny) * np.eye(3))

    def _held(self, acted: Acted) -> tuple[np.ndarray, np.ndarray]:
        """Where the held nodes are, and where they start, (k, 3), m."""
        hold = next(hold for hold in self.stepper.scene.holds if hold.name == self.sensor.hold)
        return held_points(self.stepper.system, hold, acted.state), hold.rest


class RodEndReader(Reader):
    """Wrench of a rod on what holds its start or its end."""

    def __init__(self, stepper: Stepper, sensor: SensorSpec, gaps: GapSearch) -> None:
        super().__init__(stepper, sensor, gaps)
        self._end = ("start", "end").index(sensor.kind)

    def read(self, report: StepReport) -> np.ndarray:
        """As the step counted it."""
        return self.body.held_end(self._end)[0]

    def origin(self, acted: Acted) -> np.ndarray:
        """Place of the frame."""
        return self.body.held_end(self._end, acted.back)[1]


class JointReader(Reader):
    """Wrench that a base or link exerts through a joint on all that hangs on it: what else does not explain its motion."""

    def __init__(self, stepper: Stepper, sensor: SensorSpec, gaps: GapSearch) -> None:
        super().__init__(stepper, sensor, gaps)
        part = stepper.scene.parts[self.part]
        self._link, self._links = part.link, self.body.hangs_on(part.link)
        self._parts = [k for k, one in enumerate(stepper.scene.parts) if one.body == part.body and one.link in self._links]
        self.reset()

    def _moving(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Momentum, spin about the centre of mass of the link, this centre, and the sum of masses times places: (12,)."""
        body = self.body
        centre, out = body.link_pose(q, self._link)[1], np.zeros(12)
        for link in self._links:
            mass, momentum = body.link_momentum(q, v, link)
            place = body.link_pose(q, link)[1]
            out[:6] += momentum
            out[3:6] += cross(place - centre, momentum[:3])
            out[9:] += mass * place
        out[6:9] = centre
        return out

    def reset(self) -> None:
        """Start from the momentum of the current state."""
        self._momentum = self._moving(self.q, self.v)

    def read(self, report: StepReport) -> np.ndarray:
        """Change of momentum over the step, less contacts, weight and held rods."""
        stepper, system, out = self.stepper, self.stepper.system, np.zeros(6)
        mass = sum(self.body.link_momentum(self.q, self.v, link)[0] for link in self._links)
        time = sum(dt for dt, _ in report.parts)
        for (dt, _), (theta, q, v) in zip(report.parts, report.ends, strict=True):
            before, after = self._momentum, self._moving(q[system.q_slices[self.index]], v[system.v_slices[self.index]])
            self._momentum = after
            out += (dt / time) * self._borne(before, after, dt, theta, mass)
        out -= exerted(report.parts, lambda c: np.isin(c.part, self._parts).astype(np.float64), self.part)
        for coupling in stepper.scene.couplings:
            out -= coupling.pull_on(self.index, self._link)
        return np.asarray(out)

    def _borne(self, before: np.ndarray, after: np.ndarray, dt: float, theta: float, mass: float) -> np.ndarray:
        """Change of momentum over a step, or a part of one, less weight, (6,), from what :meth:`_moving` gives of its ends."""
        out, gravity = (after[:6] - before[:6]) / dt, self.stepper.settings.gravity
        # the spin is about a point that moves; as all do in the step, before what acts at its end makes them faster
        moved = (after[6:] - before[6:]) / dt
        out[3:] += cross(moved[:3], moved[3:])
        weighed = before[6:] + theta * (after[6:] - before[6:])  # weight acts where the step asks for forces
        out[:3] -= mass * gravity
        out[3:] -= cross(weighed[3:] - mass * weighed[:3], gravity)
        return np.asarray(out)

    def memory(self) -> dict[str, np.ndarray]:
        """Give momentum, spin and centre at the end of the last step."""
        return {"momentum": self._momentum.copy()}

    def recall(self, memory: Mapping[str, np.ndarray]) -> None:
        """Take them back."""
        self._momentum = memory["momentum"].copy()


class JointStateReader(Reader):
    """Position and speed of a joint, and what its motor, its limits and its dry friction exert."""

    def __init__(self, stepper: Stepper, sensor: SensorSpec, gaps: GapSearch) -> None:
        super().__init__(stepper, sensor, gaps)
        self._link = stepper.scene.parts[self.part].link

    def read(self, report: StepReport) -> list[float]:
        """Place at the end of the step, forces of the step."""
        position, speed, effort, friction, row, ratio = self.body.joint_state(self.q, self.v, self._link)
        stops = float(report.forces.node_force[self.stepper.system.v_slices[self.index].start + row])
        return [position, speed, effort, stops / ratio, friction]


# ------------------------------------------------------------------ places, actuators, energies


class MarkerReader(Reader):
    """Position of a material point."""

    def read(self, report: StepReport) -> np.ndarray:
        """Position at the end of the step."""
        marker: Marker | None = self.sensor.marker
        return self.stepper.placed.reference[self.part] if marker is None else self.body.marker_position(self.q, marker)


class CouplingReader(Reader):
    """What a coupling reads of itself, e.g. tension and length of a tendon."""

    def read(self, report: StepReport) -> Sequence[float]:
        """As the coupling gives it."""
        return self.coupling.reading()

    @property
    def coupling(self) -> Coupling:
        """The coupling."""
        return next(c for c in self.stepper.scene.couplings if c.name == self.sensor.coupling)


class ReactionReader(CouplingReader):
    """Wrench of a joint on the body named first."""

    def origin(self, acted: Acted) -> np.ndarray:
        """Where the joint is, or the mean of the glued nodes."""
        slices = self.stepper.system.q_slices
        return self.coupling.about([acted.state.q[slices[body]] for body, _ in self.coupling.rows])


class EnergyReader(Reader):
    """Kinetic and elastic energy of a body, and potential of gravity from the origin."""

    def read(self, report: StepReport) -> list[float]:
        """Give all at the end of the step."""
        body, q = self.body, self.q
        potential = -body.mass * float(self.stepper.settings.gravity @ body.centre_of_mass(q))
        return [body.kinetic_energy(q, self.v), body.elastic_energy(q), potential]


# ------------------------------------------------------------------ contacts


class GapReader(Reader):
    """Smallest distance to the partner."""

    def __init__(self, stepper: Stepper, sensor: SensorSpec, gaps: GapSearch) -> None:
        super().__init__(stepper, sensor, gaps)
        self._selection = Selection(stepper, sensor)

    def read(self, report: StepReport) -> list[float]:
        """Smallest gap at the end of the step; inf where the detector sees none within the reach."""
        part, gap = self.gaps.found()
        own = np.zeros(len(gap), dtype=np.bool_)
        for side in (0, 1):
            own |= (part[:, side] == self.part) & self._selection.partners[part[:, 1 - side]]
        smallest = float(gap[own].min(initial=np.inf))
        return [smallest if smallest < self.sensor.reach else np.inf]


class AreaReader(Reader):
    """Area of the loaded nodes of a soft body, or of those that press on a rigid part."""

    def __init__(self, stepper: Stepper, sensor: SensorSpec, gaps: GapSearch) -> None:
        super().__init__(stepper, sensor, gaps)
        self._selection = Selection(stepper, sensor)
        others = np.flatnonzero(stepper.contacts.pairs[self.part] & self._selection.partners)
        own = stepper.body_of(self.part)
        sides = [self.part] if own is not None and own.pressed_surface() is not None else [int(k) for k in others]
        bodies = {k: body for k in sides if (body := stepper.body_of(k)) is not None}
        self._surfaces = {k: surface for k, body in bodies.items() if (surface := body.pressed_surface()) is not None}
        if not self._surfaces:
            raise InputError(
                f"sensor {sensor.name}: {sensor.part!r} has no contact with a soft body, and the area is that "
                "of the loaded nodes of one; use kind 'contact' for its force."
            )

    def read(self, report: StepReport) -> list[float]:
        """Area at the end of the step, by the contacts of its last part."""
        stepper, c, area = self.stepper, report.contacts, 0.0
        shares, chosen = self._selection.shares(c), self._selection.chosen
        for k, surface in self._surfaces.items():
            # the share is known by the side of the sensed part; the nodes are on the side of k
            own = shares if k == self.part else shares[:, ::-1]
            nodes = stepper.scene.parts[k].nodes
            x = stepper.state.q[stepper.system.q_slices[stepper.scene.parts[k].body]].reshape(-1, 3)
            counted, on, forces = np.ones(len(x)), [nodes[:0]], [np.zeros((0, 3))]
            if k == self.part and chosen is not None:
                counted[nodes] = chosen
            bears = _bearing(c, k)
            for side in (0, 1):
                use = np.flatnonzero((c.part[:, side] == k) & (own[:, side] > 0.0) & (c.state > 0))
                pull = (1.0 if side == 0 else -1.0) * c.force[use]
                push = (pull * c.normal[use]).sum(axis=1, keepdims=True) * c.normal[use]
                contact, corner = np.nonzero(bears[use, side])
                on.append(nodes[c.point[use[contact], side, corner]])
                forces.append(push[contact])
            node, force = np.concatenate(on), np.concatenate(forces)
            area += float(surface.area(x, node, force) @ counted)
        return [area]


def _bearing(c: StepContacts, part: int) -> np.ndarray:
    """Points of a part that contacts press on, (nc, 2, 3) bool, by side.

    A contact on an edge or a face presses on its ends or corners; where some of these have contacts of their own about there,
    even open ones, on them alone. What crosses an edge covers one of its ends, and the other one bears a share of the force, but
    lies beyond.
    """
    bears = (c.point >= 0) & (c.weight > 0.0) & (c.part == part)[:, :, None]
    alone = bears.sum(axis=2) == 1
    between = bears.any(axis=2) & ~alone & (c.state > 0)[:, None]
    if not between.any():
        return np.asarray(bears)
    covered: dict[int, list[np.ndarray]] = {}
    for number, side in zip(*np.nonzero(alone), strict=True):
        (point,) = c.point[number, side, bears[number, side]].tolist()
        covered.setdefault(point, []).append((1.0 - 2.0 * side) * c.normal[number])
    for number, side in zip(*np.nonzero(between), strict=True):
        normal = (1.0 - 2.0 * side) * c.normal[number]
        own = [any(normal @ one > _ABOUT for one in covered.get(point, ())) for point in c.point[number, side].tolist()]
        if (bears[number, side] & own).any():
            bears[number, side] &= own
    return np.asarray(bears)


class SlipReader(Reader):
    """Slip distance and work of friction since the start."""

    def __init__(self, stepper: Stepper, sensor: SensorSpec, gaps: GapSearch) -> None:
        super().__init__(stepper, sensor, gaps)
        self._selection = Selection(stepper, sensor)
        self.reset()

    def reset(self) -> None:
        """Start both sums at 0."""
        self._slip, self._friction = 0.0, 0.0

    def read(self, report: StepReport) -> list[float]:
        """Add those of the step."""
        for dt, contacts in report.parts:
            self._add(contacts, dt)
        return [self._slip, self._friction]

    def _add(self, c: StepContacts, dt: float) -> None:
        """Add slip (m) and work of friction (J) of a step, or of a part of one, of dt (s)."""
        share = np.minimum(self._selection.shares(c).sum(axis=1), 1.0)
        pressing = share * c.lam[:, 0] * (c.state > 0)
        if pressing.sum() > 0.0:
            self._slip += dt * float(pressing @ np.linalg.norm(c.u[:, 1:], axis=1) / pressing.sum())
        self._friction += float(share @ c.taken)

    def memory(self) -> dict[str, np.ndarray]:
        """Give both sums."""
        return {"slip": np.array(self._slip), "friction": np.array(self._friction)}

    def recall(self, memory: Mapping[str, np.ndarray]) -> None:
        """Take them back."""
        self._slip, self._friction = float(memory["slip"]), float(memory["friction"])


class PairReader(Reader):
    """How many contacts a part has with its partners, how hard they press and rub."""

    def __init__(self, stepper: Stepper, sensor: SensorSpec, gaps: GapSearch) -> None:
        super().__init__(stepper, sensor, gaps)
        self._selection = Selection(stepper, sensor)

    def read(self, report: StepReport) -> list[float]:
        """Give contacts that press and slip and the largest speed, m/s, in the last part of the step; forces, N, as its means.

        In the order of the columns: contacts, of them slipping, normal force, friction force, speed.
        """
        c, own, forces, time = report.contacts, np.zeros(0, dtype=np.int64), np.zeros(2), 0.0
        for dt, contacts in report.parts:
            share = self._selection.shares(contacts).sum(axis=1)
            own, time = np.flatnonzero(share), time + dt
            if len(own):
                lam = contacts.lam[own]
                rub = np.linalg.norm(lam[:, 1:], axis=1)
                forces += dt * (np.minimum(share[own], 1.0) @ np.column_stack([lam[:, 0], rub]))
        pressing = own[c.state[own] > 0]
        if not len(pressing):
            return [0.0, 0.0, *(forces / time).tolist(), 0.0]
        speed = float(np.linalg.norm(c.u[pressing, 1:], axis=1).max())
        return [float(len(pressing)), float((c.state[pressing] == 2).sum()), *(forces / time).tolist(), speed]


#: The class that reads each kind.
READERS: dict[str, type[Reader]] = {
    "contact": ContactReader,
    "mount": MountReader,
    "start": RodEndReader,
    "end": RodEndReader,
    "reaction": ReactionReader,
    "chamber": CouplingReader,
    "tendon": CouplingReader,
    "torsion": CouplingReader,
    "spring": CouplingReader,
    "joint": JointReader,
    "revolute": JointStateReader,
    "prismatic": JointStateReader,
    "marker": MarkerReader,
    "gap": GapReader,
    "area": AreaReader,
    "slip": SlipReader,
    "pair": PairReader,
    "energy": EnergyReader,
}


class Sensors:
    """All sensors of a run, with the instruments that show some of them.

    What they carry from step to step is kept in the state of the simulation (``State.sensors``), and taken back from a state
    that is restored, before or after this is made. A sensor that such a state knows nothing of starts there.

    Parameters
    ----------
    stepper : Stepper
        The simulation.

    Raises
    ------
    InputError
        A sensor that cannot count any contact, or an instrument that the time step cannot show.
    """

    def __init__(self, stepper: Stepper) -> None:
        scene, settings, gaps = stepper.scene, stepper.settings, GapSearch(stepper)
        self._stepper = stepper
        #: the sensors that are read: the scene may get others later
        self.specs = tuple(scene.sensors)
        self._readers = [READERS[sensor.kind](stepper, sensor, gaps) for sensor in scene.sensors]
        self._instruments = {
            sensor.name: Instrument(sensor.reading, settings.dt, settings.gravity)
            for sensor in scene.sensors
            if sensor.reading is not None
        }
        self.recall(stepper.state.sensors)
        self._keep()
        stepper.on_restore.append(self.recall)

    def row(self, report: StepReport) -> list[float]:
        """Read all sensors after a step: the row of sensors.csv."""
        row, measured = [report.time], []
        acted = self._acted(report) if self._instruments else None
        for reader in self._readers:
            values = [float(x) for x in reader.read(report)]
            row += values
            if acted is not None and reader.sensor.name in self._instruments:
                measured += [float(x) for x in self._shown(reader, acted, report.time, np.array(values))]
        self._keep()
        return row + measured

    def reseed(self, seed: int) -> None:
        """Start the noise of all instruments anew, from a seed and the number of the instrument."""
        for number, instrument in enumerate(self._instruments.values()):
            instrument.reseed((seed, number))
        self._keep()

    def _keep(self) -> None:
        """Put what is carried into the state; a new one, since nobody writes into a state."""
        memory = self.memory()
        if memory or self._stepper.state.sensors:
            self._stepper.state = replace(self._stepper.state, sensors=memory)

    def _acted(self, report: StepReport) -> Acted:
        """Give the moment at which what a step read acted."""
        stepper, back = self._stepper, (1.0 - report.theta) * sum(length for length, _ in report.parts)
        if back == 0.0:
            return Acted(stepper.state, stepper.placed, back)
        state = stepper.system.moved(stepper.state, stepper.state.v_hat, -back)
        return Acted(state, stepper.contacts.places.read(state), back)

    def _shown(self, reader: Reader, acted: Acted, time: float, wrench: np.ndarray) -> np.ndarray:
        """Give what the instrument of a sensor shows of its wrench, (6,), after a step that ended at a time, s."""
        stepper, reading, origin, placed = self._stepper, reader.sensor.reading, reader.origin(acted), acted.placed
        assert reading is not None
        named = reading.turns and reading.frame != "body"
        part = stepper.scene.part_names.index(reading.frame) if named else reader.part
        tool = None
        if reading.tool == "body":
            q = acted.state.q[stepper.system.q_slices[reader.index]]
            tool = (reader.body.mass, reader.body.centre_of_mass(q))
        elif reading.tool is not None:
            tool = (reading.tool[0], origin + reader.axes(acted) @ reading.tool[1])
        pose = placed.rotation[part], placed.translation[part]
        return self._instruments[reader.sensor.name].read(time, wrench, origin, pose, tool)

    def _carriers(self) -> dict[str, Reader | Instrument]:
        """Name what carries something from step to step, by the beginning of its names."""
        readers = {reader.sensor.name: reader for reader in self._readers}
        return {**readers, **{f"{name}_measured": instrument for name, instrument in self._instruments.items()}}

    def memory(self) -> dict[str, np.ndarray]:
        """Give what readers and instruments carry from step to step, arrays by ``SENSOR/NAME``, for :meth:`recall`."""
        return {f"{name}/{key}": value for name, one in self._carriers().items() for key, value in one.memory().items()}

    def recall(self, memory: Mapping[str, np.ndarray]) -> None:
        """Take back what :meth:`memory` gave; what it does not tell of starts in the current state."""
        for name, one in self._carriers().items():
            own = {key.rpartition("/")[2]: value for key, value in memory.items() if key.rpartition("/")[0] == name}
            if own.keys() == one.memory().keys():
                one.recall(own)
            else:
                one.reset()


def sensor_columns(scene: Scene) -> list[str]:
    """Header of sensors.csv of a scene."""
    columns = ["time_s"]
    columns += [f"{s.name}_{c.name}" for s in scene.sensors for c in SENSOR_KINDS[s.kind].columns]
    return columns + [f"{s.name}_measured_{c.name}" for s in scene.sensors if s.reading is not None for c in WRENCH]

"""What bodies of rigid links share: trees of links in generalized coordinates, of a base and of joints, and what drives these."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from contact import GroupKind
from contact.compiled import Fixed
from contact.metrics import is_finite
from femsim.base.errors import InputError
from femsim.base.rotations import quaternion_from_matrix
from femsim.model.bodies import tree_kernels as kernels
from femsim.model.bodies.body import BodyForces, BodyStep, LinkPlaces, StepSettings
from femsim.model.bodies.body_defaults import BodyDefaults
from femsim.model.bodies.rigid_kernels import lead_base
from femsim.model.bodies.tree_joints import Followed, Motor, TreeJoint
from femsim.model.bodies.tree_kernels import FIXED, PRISMATIC, SPHERICAL, Places, Tree
from femsim.model.bodies.tree_step_kernels import Motors, Start
from femsim.model.frames import LinkFrame

#: Coordinates whose configurations a body keeps: a step asks for those of its start, a guess, its middle and its end.
_LATEST = 4
# called by all bodies of links with arrays of the same kinds
_configure, _move, _fill_link_places = Fixed(kernels.configure), Fixed(kernels.move), Fixed(kernels.fill_link_places)


@dataclass
class _Configuration:
    """What the coordinates q alone decide, worked out once for all who ask: where the links are, the mass matrix (n_v, n_v)."""

    places: Places
    M: np.ndarray


class LinkedBody(BodyDefaults, ABC):
    """Rigid body, gripper or robot: a tree of rigid links on a base. Those who derive from it take the step.

    ``q`` and ``v`` are those of :mod:`femsim.model.bodies.tree_kernels`: six rows of the base, then the joints.

    Parameters
    ----------
    name : str
        Name in outputs.
    tree : Tree
        Its links.
    joints : sequence of TreeJoint
        The joints that have coordinates of their own, by rows of v.
    q, v : ndarray, (n_q,) and (n_v,)
        State at the start.
    motors : sequence of Motor, optional
        What drives the joints of one coordinate; default nothing.
    """

    kind: GroupKind = "generalized"
    rigid = True

    def __init__(
        self,
        name: str,
        tree: Tree,
        joints: Sequence[TreeJoint],
        q: np.ndarray,
        v: np.ndarray,
        motors: Sequence[Motor] = (),
    ) -> None:
        self.name, self.tree, self.joints = name, tree, tuple(joints)
        self.n_q, self.n_v = len(q), len(v)
        self._q0, self._v0 = q.astype(np.float64), v.astype(np.float64)
        self._indptr = np.arange(0, self.n_v * self.n_v + 1, self.n_v, dtype=np.int64)
        self._indices = np.tile(np.arange(self.n_v, dtype=np.int64), self.n_v)
        self._known: dict[bytes, _Configuration] = {}  # of the latest q
        #: rate of momentum of all coordinates in the step, by the equations that were solved
        self._step_rate = np.zeros(self.n_v)
        self._conserving = False
        self._mass = float(tree.mass.sum())
        links = range(len(tree.parent))
        self._turns = quaternion_from_matrix(tree.turn)
        self._rows = self._rows_of_links()
        chains = [self._chain(k) for k in links]
        self._hang_on = [[m for m in links if k in chains[m]] for k in links]
        self._pivots = [next((m for m in chain if tree.kind[m] != PRISMATIC), 0) for chain in chains]
        self._twist = np.zeros((len(links), 6))
        self._asked_links: tuple[int, ...] = ()
        joints_1 = [joint for joint in self.joints if tree.kind[joint.link] != SPHERICAL]
        self._scalar = {joint.name: k for k, joint in enumerate(joints_1)}
        #: rows of v and entries of q of joints of one coordinate, and what drives them
        self._own_rows = np.array([joint.row for joint in joints_1], dtype=np.int64)
        self._own_coordinates = np.array([joint.coordinate for joint in joints_1], dtype=np.int64)
        self._asked_rows = (self._own_rows[:0],) * 3
        #: rows of v of joints that follow a motion exactly
        self._led = self._own_rows[:0]
        #: velocities with which these end a step
        self._ends = np.zeros(0)
        self.motors = list(motors) if motors else [Motor() for _ in joints_1]
        self._followed = Followed(self.motors)
        self._passive = np.zeros(self.n_v)
        for joint in self.joints:
            self._passive[joint.row : joint.row + (3 if tree.kind[joint.link] == SPHERICAL else 1)] = joint.damping
        self._servo = np.zeros((6, len(joints_1)))  # feed, target, pace, stiffness, damping, limit of a step
        self._servo[5] = np.inf
        self._drives = Motors(self._own_rows, self._own_coordinates, self._servo, self._passive)
        #: generalized force of the motors without their damping, of the last linearisation; damping that is implicit in A
        self._force, self.joint_damping = np.zeros(self.n_v), np.zeros(self.n_v)

    def initial_q(self) -> np.ndarray:
        """Coordinates at the start."""
        return self._q0.copy()

    def initial_v(self) -> np.ndarray:
        """Velocities at the start."""
        return self._v0.copy()

    def pattern(self) -> tuple[np.ndarray, np.ndarray]:
        """Dense pattern: all coordinates of a body couple."""
        return self._indptr, self._indices

    def limits(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Rows of v, entries of q, ranges (k, 2), rad or m, and links of the joints of one coordinate."""
        own = [joint for joint in self.joints if joint.name in self._scalar]
        ranges = np.array([joint.limits for joint in own], dtype=np.float64).reshape(-1, 2)
        return self._own_rows, self._own_coordinates, ranges, np.array([joint.link for joint in own], dtype=np.int64)

    # ---- links

    def _chain(self, link: int) -> list[int]:
        """Links from one down to the base, without the base."""
        out = []
        while link > 0:
            out.append(link)
            link = int(self.tree.parent[link])
        return out

    def _rows_of_links(self) -> list[np.ndarray]:
        """Rows of v of the joints that move each link, each once, in order; a parent stands before its children."""
        rows = [np.zeros(0, dtype=np.int64)]
        for link in range(1, len(self.tree.parent)):
            rows.append(np.union1d(rows[self.tree.parent[link]], self._own_rows_of(link)))
        return rows

    def _own_rows_of(self, link: int) -> np.ndarray:
        """Rows of v of the joint that a link hangs on."""
        count = {FIXED: 0, SPHERICAL: 3}.get(int(self.tree.kind[link]), 1)
        return np.arange(count, dtype=np.int64) + self.tree.row[link]

    def hangs_on(self, link: int) -> list[int]:
        """Links that a joint carries: its own and all above it."""
        return self._hang_on[link]

    def link_rows(self, link: int) -> np.ndarray:
        """Rows of v of the joints between the base and a link."""
        return self._rows[link]

    def rows_between(self, a: int, b: int) -> np.ndarray:
        """Rows of v of the joints on the way from one link to another, (k,), each once, in order."""
        way = set(self._chain(a)) ^ set(self._chain(b))
        return np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *(self._own_rows_of(k) for k in way)]))

    # ---- joints of one coordinate, and what drives them

    def row_parents(self) -> tuple[int, ...] | None:
        """Row that each row of v hangs on: of all that move a link too, the nearest before it; None for a base alone."""
        if self.n_v == 6:
            return None
        hangs = np.zeros((self.n_v, self.n_v), dtype=np.bool_)
        for rows in self._rows:
            moving = np.concatenate([np.arange(6), rows])
            hangs[np.ix_(moving, moving)] = True
        parents = np.full(self.n_v, -1)
        for row in range(self.n_v - 1, 0, -1):  # those before a row lie on one way to the ground, also with mimic joints
            before = np.flatnonzero(hangs[row, :row])
            parents[row] = before[-1]
            hangs[np.ix_(before, before)] = True
        return tuple(parents.tolist())

    def joint_names(self) -> list[str]:
        """Names of the joints of one coordinate."""
        return list(self._scalar)

    def drive_joint(self, name: str, drive: Mapping[str, Any]) -> None:
        """Set what drives a joint: fields of :class:`Motor`; ``force`` and ``max_force`` are its effort."""
        words = {"force": "effort", "max_force": "max_effort"}
        own = self._scalar[name]
        self._servo[:, own] = 0.0, 0.0, 0.0, 0.0, 0.0, np.inf
        self.motors[own] = replace(Motor(), **{words.get(key, key): value for key, value in drive.items()})
        self._followed = Followed(self.motors)

    def _start_motors(self, t: float, settings: StepSettings) -> None:
        """Read the targets of the motors for a step from t (s)."""
        place, dt = t + settings.theta * settings.dt, settings.dt
        together = self._followed.as_given()
        if together and len(self._followed.own):
            self._followed.fill(t, settings, self._servo)
        for k in self._followed.others if together else [*self._followed.others, *self._followed.own.tolist()]:
            motor = self.motors[k]
            effort, target, pace = motor.asked(t, place, dt, settings.theta)
            self._servo[:, k] = effort, target, pace, motor.stiffness, motor.damping, motor.max_effort
        if not is_finite(self._servo[:3]):
            lost = self.joint_names()[int(np.flatnonzero(~np.isfinite(self._servo[:3]).all(axis=0))[0])]
            raise InputError(
                f"joint {self.name}.{lost}: its drive gives a target, speed or effort that is not finite from {t:g} s on; "
                "correct its function of time."
            )

    def damping_power(self, v_hat: np.ndarray) -> float:
        """Power that the joints lose to their damping, W; servo forces count without it in ``external``."""
        return float(self.joint_damping @ (v_hat * v_hat)) if self.joints else 0.0

    # ---- places

    @property
    def mass(self) -> float:
        """Total mass, kg."""
        return self._mass

    def _configuration(self, q: np.ndarray) -> _Configuration:
        """Return the configuration of coordinates; no work when they are among the four latest."""
        asked = q.tobytes()
        known = self._known.get(asked)
        if known is not None:
            return known
        found = _Configuration(kernels.no_places(len(self._rows)), np.empty((self.n_v, self.n_v)))
        _configure(self.tree, np.ascontiguousarray(q, dtype=np.float64), found.places, found.M)
        if len(self._known) == _LATEST:
            del self._known[next(iter(self._known))]  # the oldest
        self._known[asked] = found
        return found

    def mass_matrix(self, q: np.ndarray) -> np.ndarray:
        """Mass matrix (n_v, n_v), with the rotors."""
        return self._configuration(q).M.copy()

    def moved(self, q: np.ndarray, v_hat: np.ndarray, time: float) -> np.ndarray:
        """Pose by the exponential map, in an energy-momentum step by Cayley's."""
        start = np.ascontiguousarray(q, dtype=np.float64)
        out = start.copy()
        _move(self.tree, start, np.ascontiguousarray(v_hat, dtype=np.float64), float(time), self._conserving, out)
        return out

    def link_pose(self, q: np.ndarray, link: int) -> tuple[np.ndarray, np.ndarray]:
        """World rotation (3, 3) and centre of mass (3,) of a link."""
        places = self._configuration(q).places
        return places.rotation[link].copy(), places.centre[link].copy()

    def link_places(self, q: np.ndarray, links: Sequence[int]) -> LinkPlaces:
        """Poses, origins, references and screws of links."""
        places, asked = self._configuration(q).places, tuple(links)
        if asked != self._asked_links:  # the same ones in every step
            rows = [self._rows[link] for link in asked]
            starts = np.concatenate([[0], np.cumsum([len(own) for own in rows])]).astype(np.int64)
            self._asked_links, self._asked_rows = asked, (np.array(asked), starts, np.concatenate([*rows, starts[:0]]))
        which, starts, rows_of_all = self._asked_rows
        k = len(which)
        origin, screw = np.empty((k, 3)), np.empty((len(rows_of_all), 6))
        origin[:] = q[:3]
        if not len(rows_of_all):  # a rigid body, or the base alone
            return LinkPlaces(places.rotation[which], centre := places.centre[which], origin, centre, screw)
        rotation, centre = np.empty((k, 3, 3)), np.empty((k, 3))
        _fill_link_places(self.tree, places, which, starts, rows_of_all, rotation, centre, screw)
        return LinkPlaces(rotation, centre, origin, centre, screw)

    def link_jacobian(self, q: np.ndarray, link: int) -> np.ndarray:
        """Jacobian S (6, n_v) of a link: velocity of its centre of mass and its angular velocity."""
        S = np.empty((6, self.n_v))
        kernels.fill_jacobian(self.tree, self._configuration(q).places, link, S)
        return S

    def link_turn(self, q: np.ndarray, link: int) -> np.ndarray:
        """Quaternion of a link, (4,)."""
        out = np.empty(4)
        kernels.turn_of_link(self.tree, self._turns, q, link, out)
        return out

    def link_lever(self, q: np.ndarray, link: int, point: np.ndarray) -> np.ndarray:
        """Arm (3,), m, of a point about the axis of the last joint before it that does not slide, else about the base."""
        places, pivot = self._configuration(q).places, self._pivots[link]
        return np.asarray(point - (places.origin[pivot] if pivot else places.centre[0]))

    def link_screws(self, q: np.ndarray, link: int) -> np.ndarray:
        """Velocity at the base's centre of mass and angular velocity that these rows give to the link, (k, 6)."""
        rows = self._rows[link]
        out = np.empty((len(rows), 6))
        kernels.fill_screws(self.tree, self._configuration(q).places, link, rows, out)
        return out

    def reference(self, q: np.ndarray, link: int) -> np.ndarray:
        """Centre of mass of the link."""
        return self._configuration(q).places.centre[link].copy()

    def link_origin(self, q: np.ndarray, link: int) -> np.ndarray:
        """Centre of mass of the base."""
        return q[:3]

    def hold_frame(self, link: int, pose: np.ndarray, radius: float) -> LinkFrame:
        """Frame fixed to a link."""
        return LinkFrame(self, link, pose)

    # ---- the step

    def _start(self, q: np.ndarray, v: np.ndarray, settings: StepSettings) -> Start:
        """From where a step is taken, and how."""
        return Start(q, v, self._led, self._ends, settings.gravity, settings.dt, settings.theta * settings.dt, self._conserving)

    def _lead_base(
        self, q: np.ndarray, v: np.ndarray, v_hat: np.ndarray, dt: float, theta: float, q_new: np.ndarray, v_new: np.ndarray
    ) -> None:
        """Fill the velocity of the base by linear momentum, and angular momentum about its centre, which moves."""
        lead_base(self._configuration(q).M, self._configuration(q_new).M, v, v_hat, self._step_rate, dt, theta, v_new)

    def balance(self, step: BodyStep) -> BodyForces:
        """Sum up the forces of a step; who drives the base also exerts what turning links need."""
        held, drive = step.drive[:3], None
        if step.driven:
            held = held + self._turning_force(step)
            drive = np.concatenate([held, step.drive[3:6]])
        lost = float(self._passive @ (step.v_hat * step.v_hat))
        return BodyForces(step.external[:3], held, drive, 0.0, float(np.abs(step.b).sum()), lost)

    @abstractmethod
    def _turning_force(self, step: BodyStep) -> np.ndarray:
        """Force (3,), N, that changes the linear momentum of a step beside that in its equations."""

    # ---- momenta and energy

    def momentum(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Linear momentum, kg m/s."""
        return np.asarray(self._configuration(q).M[:3] @ v)

    def kinetic_energy(self, q: np.ndarray, v: np.ndarray) -> float:
        """Kinetic energy, J, with that of rotors."""
        return float(0.5 * v @ self._configuration(q).M @ v)

    def centre_of_mass(self, q: np.ndarray) -> np.ndarray:
        """Centre of mass, (3,), m."""
        return np.asarray(self.tree.mass @ self._configuration(q).places.centre / self._mass)

    def link_momentum(self, q: np.ndarray, v: np.ndarray, link: int) -> tuple[float, np.ndarray]:
        """Mass, momentum and spin of a link."""
        momenta = self._link_momenta(q, v)
        return float(self.tree.mass[link]), momenta[link]

    def _link_momenta(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Momentum and spin of each link, (links, 6)."""
        places, out = self._configuration(q).places, np.empty_like(self._twist)
        kernels.fill_twists(self.tree, places, v, self._twist)
        kernels.fill_momenta(self.tree, places, self._twist, out)
        return out

    def angular_momentum(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Angular momentum about the origin, (3,), kg m^2/s."""
        momenta = self._link_momenta(q, v)
        return np.asarray((np.cross(self._configuration(q).places.centre, momenta[:, :3]) + momenta[:, 3:]).sum(axis=0))

    def sensor_kinds(self, link: int) -> frozenset[str]:
        """Energy; the wrench of the drive on the base, of the joint on a link."""
        return super().sensor_kinds(link) | {"mount" if link == 0 else "joint"}

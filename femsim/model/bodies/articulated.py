"""Rigid bodies and grippers: a free base link with any number of prismatic links on it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from femsim.base.rotations import cross, quaternion_to_matrix, rotate_quaternion
from femsim.model.bodies.body import BodyForces, BodyStep, LinkPlaces, StepSettings, StepStart
from femsim.model.bodies.links import LinkedBody
from femsim.model.bodies.rigid_kernels import Links, Placed, free_rotation, place_links, turn_by_cayley
from femsim.model.frames import LinkFrame

Load = Callable[[float], tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True)
class Link:
    """One rigid link.

    Attributes
    ----------
    name : str
        Name, unique in the body.
    mass : float, kg
        Mass.
    inertia : ndarray, (3, 3), kg m^2
        Inertia about the link's centre of mass, axes of the base.
    offset : ndarray, (3,), m
        Centre of mass in the frame of the base at joint position zero (zero for the base itself).
    axis : ndarray, (3,), optional
        Unit direction of the prismatic joint in the frame of the base; None for the base.
    """

    name: str
    mass: float
    inertia: np.ndarray
    offset: np.ndarray
    axis: np.ndarray | None = None


@dataclass
class _Configuration:
    """What the coordinates q alone decide, worked out once for all who ask.

    Attributes
    ----------
    q : bytes
        The coordinates.
    rotation : ndarray, (3, 3)
        World rotation of the base, and so of all links.
    lever, axis : ndarray, (links, 3), m and 1
        From the base's centre of mass to those of the links, and joint directions (zero for the base), world.
    arm : ndarray, (links, 3), m
        ``lever x axis``.
    inertia : ndarray, (3, 3), kg m^2
        Sum of the links' inertias about their own centres, world axes.
    M : ndarray, (n_v, n_v)
        Mass matrix.
    """

    q: bytes
    rotation: np.ndarray
    lever: np.ndarray
    axis: np.ndarray
    arm: np.ndarray
    inertia: np.ndarray
    M: np.ndarray


@dataclass
class JointDrive:
    """Actuator of one prismatic joint, implicit in A.

    Attributes
    ----------
    force : callable, optional
        ``force(t)`` in N along the joint axis (force control).
    position : callable, optional
        ``position(t)`` in m, target of a servo (position control) with ``stiffness`` N/m, ``damping`` N s/m and ``max_force`` N.
    friction_damping : float, N s/m
        Viscous friction of the joint, always on.
    limits : (float, float), m
        Range of the joint; outside it a stop of ``stop_stiffness`` N/m acts, implicit too.
    """

    force: Callable[[float], float] | None = None
    position: Callable[[float], float] | None = None
    stiffness: float = 1e4
    damping: float = 1e2
    max_force: float = np.inf
    friction_damping: float = 0.0
    limits: tuple[float, float] = (-np.inf, np.inf)
    stop_stiffness: float = 1e5

    def linearised(self, s: float, rate: float, t: float, settings: StepSettings) -> tuple[float, float]:
        """Force and damping (N, N s/m) so that the joint force of the step is ``force - damping * v_hat``.

        Parameters
        ----------
        s : float, m
            Joint position at the start of the step.
        rate : float, m/s
            Last joint speed, used to see whether the servo would exceed its limit.
        t : float, s
            Time at the start of the step.
        settings : StepSettings
            Integration settings.
        """
        implicit = settings.theta * settings.dt
        force, damping = 0.0, self.friction_damping
        if self.force is not None:
            force += float(self.force(t + implicit))
        if self.position is not None:
            target = float(self.position(t + implicit))
            target_rate = (float(self.position(t + settings.dt)) - float(self.position(t))) / settings.dt
            servo = self.stiffness * (target - s) + self.damping * target_rate
            servo_damping = self.stiffness * implicit + self.damping
            trial = servo - servo_damping * rate
            if abs(trial) > self.max_force:
                force += float(np.copysign(self.max_force, trial))
            else:
                force, damping = force + servo, damping + servo_damping
        low, high = self.limits
        if s < low or s > high:
            force += self.stop_stiffness * ((low if s < low else high) - s)
            damping += self.stop_stiffness * implicit
        return force, damping


class ArticulatedBody(LinkedBody[_Configuration]):
    """Rigid body (one link) or gripper (a base with prismatic links), in generalized coordinates.

    ``q`` holds the base's centre of mass (3), its quaternion (4) and the joint positions; ``v`` the base's velocity (3), its
    world angular velocity (3) and the joint speeds. The mass matrix is S^T M S with S the Jacobian of the links; Coriolis and
    gyroscopic terms are those of eq. (3), explicit in b.

    Departure from the paper, whose explicit gyroscopic term drifts: a body without joints turns by the constant angular velocity
    that keeps energy and angular momentum of its free rotation, whatever theta is; the torque impulse of the step is added to its
    angular momentum, and w follows from the new orientation.

    In an energy-momentum step the body turns by Cayley's map. Without joints its spin goes from R0 I W0 to R1 I W1,
    W0 + W1 = 2 R0^T w_hat the velocities in its own axes, so that the work of a torque is the change of its energy. With joints
    M and the Coriolis terms are those of the mid-point, and the velocities at the end are such that the impulses of the step
    are the changes of linear and angular momentum.

    Parameters
    ----------
    name : str
        Name in outputs.
    links : sequence of Link
        Base first.
    position : ndarray, (3,), m
        Base centre of mass at the start.
    quaternion : ndarray, (4,)
        Base orientation at the start.
    joint_positions : ndarray, (k,), m
        Joint positions at the start.
    velocity, angular_velocity : ndarray, (3,), m/s and rad/s
        Velocities at the start.
    drives : sequence of JointDrive
        One for each joint.
    load : callable, optional
        ``load(t) -> (force, torque)`` on the base, N and N m, world frame.
    """

    def __init__(
        self,
        name: str,
        links: Sequence[Link],
        *,
        position: np.ndarray,
        quaternion: np.ndarray,
        velocity: np.ndarray,
        angular_velocity: np.ndarray,
        joint_positions: np.ndarray | None = None,
        drives: Sequence[JointDrive] = (),
        load: Load | None = None,
    ) -> None:
        self.name = name
        self.links = tuple(links)
        self.n_joints = len(self.links) - 1
        self.what = "gripper" if self.n_joints else "rigid body"
        self.drives = list(drives) if drives else [JointDrive() for _ in range(self.n_joints)]
        self.load = load
        joints = np.zeros(self.n_joints) if joint_positions is None else np.asarray(joint_positions, dtype=np.float64)
        super().__init__(
            np.concatenate([position, quaternion / np.linalg.norm(quaternion), joints]),
            np.concatenate([velocity, angular_velocity, np.zeros(self.n_joints)]),
        )
        self._masses, self._mass = np.array([link.mass for link in self.links]), float(sum(link.mass for link in self.links))
        self._offsets = np.array([link.offset for link in self.links], dtype=np.float64)
        self._axes = np.array([np.zeros(3) if link.axis is None else link.axis for link in self.links], dtype=np.float64)
        self._inertia = np.sum([link.inertia for link in self.links], axis=0)
        self._of_links = Links(self._masses, self._offsets, self._axes, self._inertia)
        self._inverse_inertia = np.linalg.inv(self.links[0].inertia)
        self.joint_force = np.zeros(self.n_joints)
        self.joint_damping = np.zeros(self.n_joints)
        self.bias = np.zeros(self.n_v)
        self._conserving = False
        self._asked_links: tuple[int, ...] = ()
        self._asked_axes: list[np.ndarray] = []
        self._step_mass = np.zeros((self.n_v, self.n_v))  # that of the last residual of an energy-momentum step

    @property
    def mass(self) -> float:
        """Total mass, kg."""
        return self._mass

    def _found(self, q: np.ndarray, asked: bytes) -> _Configuration:
        """Rotation, levers and mass matrix of coordinates."""
        lever, axis, arm = np.empty((3, len(self.links), 3))
        rotation, inertia = np.empty((2, 3, 3))
        out = Placed(rotation, lever, axis, arm, inertia, np.zeros((self.n_v, self.n_v)))
        place_links(self._of_links, q, out)
        return _Configuration(asked, *out)

    def link_pose(self, q: np.ndarray, link: int) -> tuple[np.ndarray, np.ndarray]:
        """World rotation (3, 3) and centre of mass (3,) of a link."""
        configuration = self._configuration(q)
        return configuration.rotation.copy(), q[:3] + configuration.lever[link]

    def link_jacobian(self, q: np.ndarray, link: int) -> np.ndarray:
        """Jacobian S (6, n_v) of a link: velocity of its centre of mass and its angular velocity."""
        configuration = self._configuration(q)
        S = np.zeros((6, self.n_v))
        S[:3, :3] = S[3:, 3:6] = np.eye(3)
        x, y, z = configuration.lever[link]
        S[:3, 3:6] = [[0.0, z, -y], [-z, 0.0, x], [y, -x, 0.0]]
        if link > 0:
            S[:3, 5 + link] = configuration.axis[link]
        return S

    def _bias(self, configuration: _Configuration, v: np.ndarray) -> np.ndarray:
        """Coriolis, centrifugal and gyroscopic forces C v of eq. (3), (n_v,)."""
        out = np.zeros(self.n_v)
        o0, o1, o2 = (float(c) for c in v[3:6])
        if o0 == o1 == o2 == 0.0:
            return out
        out[3:6] = cross(v[3:6], configuration.inertia @ v[3:6])
        # acceleration of the centres: omega x (omega x lever) + 2 s' omega x axis = omega x (omega x lever + 2 s' axis)
        turning = np.array([[0.0, -o2, o1], [o2, 0.0, -o0], [-o1, o0, 0.0]])
        inner = configuration.lever @ turning.T
        inner[1:] += 2.0 * v[6:, None] * configuration.axis[1:]
        force = self._masses[:, None] * (inner @ turning.T)
        out[:3] = force.sum(axis=0)
        for lever, pull in zip(configuration.lever, force, strict=True):
            out[3:6] += cross(lever, pull)
        out[6:] = (configuration.axis[1:] * force[1:]).sum(axis=1)
        return out

    def _turning(self, configuration: _Configuration, v: np.ndarray, settings: StepSettings) -> np.ndarray:
        """Gyroscopic forces (6,) by which a free body without joints turns as :func:`rigid_kernels.free_rotation` says."""
        out = np.zeros(6)
        if not v[3:6].any():
            return out
        rotation, omega = configuration.rotation, np.empty(3)
        spin = self.links[0].inertia @ (rotation.T @ v[3:6])
        if not free_rotation(self._inverse_inertia, spin, settings.dt, omega, settings.conserving):
            return self._bias(configuration, v)
        out[3:] = configuration.inertia @ (v[3:6] - rotation @ omega) / (settings.theta * settings.dt)
        return out

    def assemble(
        self,
        q: np.ndarray,
        v: np.ndarray,
        t: float,
        settings: StepSettings,
        data: np.ndarray,
        b: np.ndarray,
        external: np.ndarray,
    ) -> None:
        """Fill A = M/(theta dt) + joint damping and b = M v/(theta dt) - C v + f_ext (eq. 9)."""
        implicit = settings.theta * settings.dt
        self._conserving = settings.conserving
        configuration = self._configuration(q)
        M = configuration.M
        self._fill_external(configuration, t + implicit, settings, external)
        A = M / implicit
        for j, drive in enumerate(self.drives):
            self.joint_force[j], self.joint_damping[j] = drive.linearised(q[7 + j], v[6 + j], t, settings)
            external[6 + j] += self.joint_force[j]
            A[6 + j, 6 + j] += self.joint_damping[j]
        data[:] = A.ravel()
        self.bias = self._bias(configuration, v) if self.n_joints else self._turning(configuration, v, settings)
        b[:] = M @ v / implicit - self.bias + external

    def _fill_external(self, configuration: _Configuration, t: float, settings: StepSettings, external: np.ndarray) -> None:
        """Fill gravity and the load at a time, (n_v,)."""
        np.matmul(configuration.M[:, :3], settings.gravity, out=external)
        if self.load is not None:
            force, torque = self.load(t)
            external[:3] += force
            external[3:6] += torque

    def moved(self, q: np.ndarray, v_hat: np.ndarray, time: float) -> np.ndarray:
        """Pose by the exponential map, in an energy-momentum step by Cayley's."""
        out = np.empty(self.n_q)
        out[:3] = q[:3] + time * v_hat[:3]
        out[7:] = q[7:] + time * v_hat[6:]
        if self._conserving:
            turn_by_cayley(q[3:7], time * v_hat[3:6], out[3:7])
        else:
            out[3:7] = rotate_quaternion(q[3:7], time * v_hat[3:6])
        return out

    def residual(
        self,
        moved: np.ndarray,
        start: StepStart,
        settings: StepSettings,
        v_hat: np.ndarray,
        external: np.ndarray,
        out: np.ndarray,
        inertia: np.ndarray,
    ) -> None:
        """Fill A v_hat - b of ``assemble``, or the equations of the energy-momentum step, M and Coriolis terms at ``moved``."""
        if not settings.conserving:
            super().residual(moved, start, settings, v_hat, external, out, inertia)
            return
        implicit, middle = settings.theta * settings.dt, self._configuration(moved)
        self._step_mass[:] = middle.M
        self._fill_external(middle, start.t + implicit, settings, external)
        external[6:] += self.joint_force
        np.matmul(middle.M / implicit, v_hat - start.v, out=inertia)
        self._step_rate[:] = inertia
        if self.n_joints:
            self._step_rate += self._bias(middle, v_hat)
        else:
            end = np.empty(4)
            turn_by_cayley(start.q[3:7], settings.dt * v_hat[3:6], end)
            old, new = self._configuration(start.q).rotation, quaternion_to_matrix(end)
            before, mean = old.T @ start.v[3:6], old.T @ v_hat[3:6]
            spin = self.links[0].inertia
            self._step_rate[3:6] = (new @ spin @ (2.0 * mean - before) - old @ spin @ before) / settings.dt
        out[:] = self._step_rate - external
        out[6:] += self.joint_damping * v_hat[6:]

    def tangent(self, settings: StepSettings, data: np.ndarray) -> None:
        """Fill A of ``assemble``, in an energy-momentum step with the mass matrix of the last residual."""
        if not settings.conserving:
            super().tangent(settings, data)
            return
        A = self._step_mass / (settings.theta * settings.dt)
        joints = np.arange(6, self.n_v)
        A[joints, joints] += self.joint_damping
        data[:] = A.ravel()

    def advance(
        self,
        q: np.ndarray,
        v: np.ndarray,
        v_hat: np.ndarray,
        settings: StepSettings,
        q_new: np.ndarray,
        v_new: np.ndarray,
    ) -> None:
        """Fill the pose by the exponential map and the velocity at the end of the step."""
        dt = settings.dt
        if settings.conserving:
            self._conserving_advance(q, v, v_hat, dt, q_new, v_new)
            return
        q_new[:3] = q[:3] + dt * v_hat[:3]
        q_new[3:7] = rotate_quaternion(q[3:7], dt * v_hat[3:6])
        q_new[7:] = q[7:] + dt * v_hat[6:]
        v_new[:] = v + (v_hat - v) / settings.theta
        if self.n_joints == 0:
            old, new = quaternion_to_matrix(q[3:7]), quaternion_to_matrix(q_new[3:7])
            inertia_old = old @ self.links[0].inertia @ old.T
            inertia_new = new @ self.links[0].inertia @ new.T
            momentum = inertia_old @ v_new[3:6] + dt * self.bias[3:6]
            v_new[3:6] = np.linalg.solve(inertia_new, momentum)

    def _conserving_advance(
        self, q: np.ndarray, v: np.ndarray, v_hat: np.ndarray, dt: float, q_new: np.ndarray, v_new: np.ndarray
    ) -> None:
        """Fill the state at the end of an energy-momentum step."""
        q_new[:] = self.moved(q, v_hat, dt)
        v_new[:] = 2.0 * v_hat - v
        if not self.n_joints:
            v_new[3:6] = self._configuration(q_new).rotation @ (self._configuration(q).rotation.T @ v_new[3:6])
            return
        self._lead_base(q, v, v_hat, dt, q_new, v_new)

    def inertia(self, q: np.ndarray, q_new: np.ndarray) -> np.ndarray:
        """M where the step ends, (1, n_v, n_v); of a gripper in a theta step where it starts, as ``advance`` counts momentum."""
        return self._configuration(q if self.n_joints and not self._conserving else q_new).M[None]

    def damping_power(self, v_hat: np.ndarray) -> float:
        """Power that the joints lose to their damping, W; servo forces count without it in ``external``."""
        return float(np.dot(self.joint_damping, v_hat[6:] ** 2))

    # ---- balance

    def balance(self, step: BodyStep) -> BodyForces:
        """Sum up the forces of a step; who drives the base also exerts what turning links need."""
        held, drive = step.drive[:3], None
        if step.driven:
            held = held + self.turning_force(step)
            drive = np.concatenate([held, step.drive[3:6]])
        return BodyForces(step.external[:3], held, drive, 0.0, float(np.abs(step.b).sum()))

    def acted(self) -> dict[str, np.ndarray]:
        """Force and damping of the joints, (k,) N and N s/m."""
        return {"joint_force": self.joint_force.copy(), "joint_damping": self.joint_damping.copy()}

    def take_acted(self, acted: Mapping[str, np.ndarray]) -> None:
        """Answer that these acted at the joints."""
        self.joint_force[:], self.joint_damping[:] = acted["joint_force"], acted["joint_damping"]

    def turning_force(self, step: BodyStep) -> np.ndarray:
        """Force (3,), N, that changes the linear momentum of a step beside that in its equations, of order dt while links turn.

        The equations have M and the Coriolis terms of the start of the step, M_0 (v_1 - v_0) / dt + C_0 of the last ``assemble``;
        in an energy-momentum step those of the last ``residual``. The momentum changes by M_1 v_1 - M_0 v_0. Who drives the base
        exerts the difference too. What contacts change in the speeds of joints at the end of an energy-momentum step is in the
        forces of the drive already, see :meth:`femsim.step.system.System.carried`.
        """
        old, new = self._configuration(step.q).M[:3], self._configuration(step.q_new).M[:3]
        if self._conserving:
            end = np.concatenate([step.v_new[:6], 2.0 * step.v_hat[6:] - step.v[6:]])
            return np.asarray((new @ end - old @ step.v) / step.dt - self._step_rate[:3])
        return np.asarray((new - old) @ step.v_new / step.dt - self.bias[:3])

    def centre_of_mass(self, q: np.ndarray) -> np.ndarray:
        """Centre of mass, (3,), m."""
        return np.asarray(q[:3] + self._masses @ self._configuration(q).lever / self.mass)

    def angular_momentum(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Angular momentum about the origin, (3,), kg m^2/s."""
        rotation = self._configuration(q).rotation
        total = np.zeros(3)
        for k, link in enumerate(self.links):
            twist = self.link_jacobian(q, k) @ v
            centre = self.link_pose(q, k)[1]
            total += link.mass * cross(centre, twist[:3]) + rotation @ link.inertia @ rotation.T @ twist[3:]
        return total

    # ---- outputs

    def joint_names(self) -> list[str]:
        """Names of the fingers."""
        return [link.name.rsplit(".", 1)[-1] for link in self.links[1:]]

    def drive_joint(self, name: str, drive: Mapping[str, Any]) -> None:
        """Set fields of the :class:`JointDrive` of a finger."""
        own = self.joint_names().index(name)
        self.drives[own] = replace(self.drives[own], **drive)

    def sensor_kinds(self, link: int) -> frozenset[str]:
        """Energy; the wrench of the drive on the base, of the joint on a finger."""
        return super().sensor_kinds(link) | {"mount" if link == 0 else "joint"}

    def link_momentum(self, q: np.ndarray, v: np.ndarray, link: int) -> tuple[float, np.ndarray]:
        """Mass, momentum and spin of a link."""
        own, twist, turn = self.links[link], self.link_jacobian(q, link) @ v, self.link_pose(q, link)[0]
        return own.mass, np.concatenate([own.mass * twist[:3], turn @ own.inertia @ turn.T @ twist[3:]])

    def hold_frame(self, link: int, pose: np.ndarray, radius: float) -> LinkFrame:
        """Frame fixed to a link."""
        return LinkFrame(self, link, pose)

    # ---- contact

    def reference(self, q: np.ndarray, link: int) -> np.ndarray:
        """Centre of mass of the link."""
        return self.link_pose(q, link)[1]

    def link_turn(self, q: np.ndarray, link: int) -> np.ndarray:
        """Quaternion of all links, (4,): none turns by itself."""
        return q[3:7]

    def link_lever(self, q: np.ndarray, link: int, point: np.ndarray) -> np.ndarray:
        """Arm (3,), m, of a point about the base's centre of mass."""
        return point - q[:3]

    def link_places(self, q: np.ndarray, links: Sequence[int]) -> LinkPlaces:
        """Poses, origins, references and screws of links, from one configuration."""
        configuration, axes, count = self._configuration(q), self._axes_of(tuple(links)), len(links)
        centre, screw = q[:3] + configuration.lever[list(links)], np.zeros((len(axes), 6))
        for k, axis in enumerate(axes):
            screw[k, :3] = configuration.rotation @ axis
        rotation, origin = configuration.rotation[None].repeat(count, axis=0), q[None, :3].repeat(count, axis=0)
        return LinkPlaces(rotation, centre, origin, centre, screw)

    def _axes_of(self, links: tuple[int, ...]) -> list[np.ndarray]:
        """Axes of the prismatic joints of links, in the base's frame."""
        if links != self._asked_links:  # the same ones in every step
            found = [self.links[link].axis for link in links]
            self._asked_links, self._asked_axes = links, [axis for axis in found if axis is not None]
        return self._asked_axes

    def link_rows(self, link: int) -> np.ndarray:
        """Row of the prismatic joint of a finger."""
        return np.zeros(0, dtype=np.int64) if self.links[link].axis is None else np.array([5 + link])

    def link_screws(self, q: np.ndarray, link: int) -> np.ndarray:
        """Axis of the prismatic joint of a finger."""
        axis = self.links[link].axis
        if axis is None:
            return np.zeros((0, 6))
        return np.concatenate([self._configuration(q).rotation @ axis, np.zeros(3)])[None]

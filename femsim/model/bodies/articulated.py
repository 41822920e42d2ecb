"""Rigid bodies and grippers: trees of a base alone, or with prismatic joints on it, that step as papers/001 has it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from contact.compiled import Fixed
from femsim.model.bodies import articulated_kernels as kernels
from femsim.model.bodies.articulated_kernels import StepTerms
from femsim.model.bodies.body import BodyForces, BodyStep, StepSettings, StepStart
from femsim.model.bodies.links import LinkedBody
from femsim.model.bodies.tree_joints import Motor, TreeJoint
from femsim.model.bodies.tree_kernels import FIXED, PRISMATIC, Tree

# called by all such bodies with arrays of the same kinds
_linearise_about_start, _fill_residual = Fixed(kernels.linearise_about_start), Fixed(kernels.fill_residual)
_fill_middle, _turn_momentum = Fixed(kernels.fill_middle), Fixed(kernels.turn_momentum)
_linearise_turned, _fill_turned = Fixed(kernels.linearise_turned), Fixed(kernels.fill_turned)

#: Part of its spin about the axis of least inertia that a step may leak into it where joints stop that spin: more than once it,
#: and it grows from step to step. Half of that leaves room for joints and contacts of other kinds.
_MOST_LEAK = 0.5

Load = Callable[[float], tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True)
class Link:
    """One rigid link, with the joint that it slides by.

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
    damping : float, N s/m
        Viscous friction of the joint, always on.
    limits : (float, float), m
        Range of the joint, which it cannot leave.
    """

    name: str
    mass: float
    inertia: np.ndarray
    offset: np.ndarray
    axis: np.ndarray | None = None
    damping: float = 0.0
    limits: tuple[float, float] = (-np.inf, np.inf)


def _tree(links: Sequence[Link]) -> tuple[Tree, list[TreeJoint]]:
    """Tree of links that slide on the first, and their joints, which are called like the fingers."""
    k = np.arange(len(links))
    on_joint = k > 0
    tree = Tree(
        np.where(on_joint, 0, -1),
        np.where(on_joint, PRISMATIC, FIXED),
        np.where(on_joint, 5 + k, -1),
        np.where(on_joint, 6 + k, -1),
        on_joint,
        np.ones(len(links)),
        np.zeros(len(links)),
        np.array([link.offset for link in links], dtype=np.float64),
        np.tile(np.eye(3), (len(links), 1, 1)),
        np.array([np.zeros(3) if link.axis is None else link.axis for link in links], dtype=np.float64),
        np.zeros((len(links), 3)),
        np.array([link.mass for link in links], dtype=np.float64),
        np.array([link.inertia for link in links], dtype=np.float64),
        np.zeros(5 + len(links)),
    )
    joints = [
        TreeJoint(link.name.rsplit(".", 1)[-1], i, 5 + i, 6 + i, link.limits, link.damping)
        for i, link in enumerate(links)
        if i > 0
    ]
    return tree, joints


class ArticulatedBody(LinkedBody):
    """Rigid body (one link) or gripper (a base with prismatic links), in generalized coordinates.

    ``q`` holds the base's centre of mass (3), its quaternion (4) and the joint positions; ``v`` the base's velocity (3), its
    world angular velocity (3) and the joint speeds. The mass matrix is S^T M S with S the Jacobian of the links; Coriolis and
    gyroscopic terms are those of eq. (3), explicit in b. So are motors: whether one is at its limit says the start of the step.

    Departure from the paper, whose explicit gyroscopic term drifts: a body without joints turns by the constant angular velocity
    that keeps energy and angular momentum of its free rotation, whatever theta is; the torque impulse of the step is added to its
    angular momentum, and w follows from the new orientation. One so thin and fast that its spin about its axis would grow by
    that torque has gyroscopic forces of where the step leads instead, as rods have: they keep angular momentum, and damp spin.

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
    motors : sequence of Motor
        One for each joint; none drives nothing.
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
        motors: Sequence[Motor] = (),
        load: Load | None = None,
    ) -> None:
        self.n_joints = len(links) - 1
        self.what = "gripper" if self.n_joints else "rigid body"
        self.load = load
        at = np.zeros(self.n_joints) if joint_positions is None else joint_positions
        tree, joints = _tree(links)
        super().__init__(
            name, tree, joints,
            np.concatenate([position, quaternion / np.linalg.norm(quaternion), at]),
            np.concatenate([velocity, angular_velocity, np.zeros(self.n_joints)]),
            motors,
        )  # fmt: skip
        self._inverse_inertia = np.linalg.inv(tree.inertia[0])
        principal, axes = np.linalg.eigh(tree.inertia[0])
        #: axis of least inertia, in its own frame; by how much its spin leaks per square of the angle that it turns by in a step
        self._thin, self._leak = axes[:, 0].copy(), 0.5 * (principal[2] / principal[0] - 1.0)
        #: whether gyroscopic forces of a step are those of where it leads; A, rate of momentum and place of its last
        #: linearisation and of the last residual
        self._turned, nothing = False, np.zeros(6)
        self._led_by: tuple[np.ndarray, np.ndarray, np.ndarray] = (np.zeros((6, 6)), nothing, nothing)
        self._asked = self._led_by
        n = self.n_v
        self._terms = StepTerms(np.zeros((n, n)), np.zeros(n), np.zeros(n), np.zeros(n), self._force, self.joint_damping)
        #: no load, and that on the base in the step that was assembled last, (6,), N and N m
        self._no_load = self._step_load = np.zeros(6)

    def _load_at(self, t: float) -> np.ndarray:
        """Load on the base at a time, (6,), N and N m."""
        return self._no_load if self.load is None else np.concatenate(self.load(t), dtype=np.float64)

    # ---- the step

    def _start_motors(self, t: float, settings: StepSettings) -> None:
        """Read the targets of the motors for a step from t (s); servos aim at those at theta of the step."""
        super()._start_motors(t, settings)
        if settings.theta < 1.0:
            for k, motor in enumerate(self.motors):
                if motor.position is not None:
                    self._servo[1, k] = motor.position(t + settings.theta * settings.dt)

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
        self._conserving = settings.conserving
        if self.n_joints:
            self._start_motors(t, settings)
        self._step_load = self._load_at(t + settings.theta * settings.dt)
        there, start = self._configuration(q), self._start(q, v, settings)
        self._turned = self._leaks(there.places.rotation[0], v, settings)
        if self._turned:
            rate = np.empty(6)
            _linearise_turned(self.tree, there.places, there.M, start, self._step_load, self._terms, rate)
            self._led_by = (self._terms.A.copy(), rate, v.copy())
        else:
            _linearise_about_start(
                self.tree, there.places, there.M, self._drives, start, self._step_load, self._inverse_inertia, self._terms
            )
        data[:], b[:], external[:] = self._terms.A.ravel(), self._terms.b, self._terms.external

    def _leaks(self, rotation: np.ndarray, v: np.ndarray, settings: StepSettings) -> bool:
        """Whether gyroscopic forces of the start would move too much momentum into the spin about the thin axis of the body.

        A thin body that turns by the angle h across that axis, and spins about it by w, leaves (I_t/I_a - 1) h^2/2 of w in the
        spin where a joint takes what the torque of the free rotation does: of a needle a thousand times w.
        """
        if settings.linear or settings.conserving or self.n_joints:
            return False
        w = v[3:6]
        squared = float(w @ w)
        if self._leak * settings.dt**2 * squared <= _MOST_LEAK:
            return False
        along = float(self._thin @ (rotation.T @ w))
        return self._leak * settings.dt**2 * (squared - along * along) > _MOST_LEAK

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
        terms = self._terms
        if self._turned:
            places, rate = self._configuration(start.q).places, np.empty(6)
            _fill_turned(self.tree, places, self._start(start.q, start.v, settings), v_hat, terms, out, inertia, rate)
            external[:] = terms.external
            self._asked = (terms.A.copy(), rate, v_hat.copy())
            return
        if not settings.conserving:
            _fill_residual(terms, start.v, v_hat, out, inertia)
            external[:] = terms.external
            return
        middle, before = self._configuration(moved), self._configuration(start.q).places
        begun = self._start(start.q, start.v, settings)
        _fill_middle(
            self.tree, before, middle.places, middle.M, begun, v_hat, self._step_load, terms, inertia, self._step_rate
        )  # fmt: skip
        external[:] = terms.external
        out[:] = self._step_rate - external + self.joint_damping * v_hat

    def tangent(self, settings: StepSettings, data: np.ndarray) -> None:
        """Fill A of ``assemble``; with the mass matrix of the last residual in energy-momentum steps, and of bodies that leak."""
        data[:] = self._terms.A.ravel()
        self._led_by = self._asked

    def accept(self, v_hat: np.ndarray) -> None:
        """Take the rate of momentum of the equations that were solved, where gyroscopic forces are those of where they lead."""
        if self._turned:
            A, rate, place = self._led_by
            self._step_rate = rate + A @ (v_hat - place)

    def advance(
        self,
        q: np.ndarray,
        v: np.ndarray,
        v_hat: np.ndarray,
        settings: StepSettings,
        q_new: np.ndarray,
        v_new: np.ndarray,
    ) -> None:
        """Fill the pose by the exponential map, or Cayley's, and the velocity at the end of the step."""
        q_new[:] = self.moved(q, v_hat, settings.dt)
        v_new[:] = v + (v_hat - v) / settings.theta
        if settings.conserving and self.n_joints:
            self._lead_base(q, v, v_hat, settings.dt, settings.theta, q_new, v_new)
        elif settings.conserving:
            old, new = self._configuration(q).places.rotation[0], self._configuration(q_new).places.rotation[0]
            v_new[3:6] = new @ (old.T @ v_new[3:6])
        elif not self.n_joints:
            old, new, torque = self._configuration(q).M, self._configuration(q_new).M, self._terms.bias
            if self._turned:
                v_new[3:6], torque = v[3:6], self._step_rate
            _turn_momentum(old, new, torque, settings.dt, v_new)

    def inertia(self, q: np.ndarray, q_new: np.ndarray) -> np.ndarray:
        """M where the step ends, (1, n_v, n_v); of a gripper in a theta step where it starts, as ``advance`` counts momentum."""
        return self._configuration(q if self.n_joints and not self._conserving else q_new).M[None]

    # ---- balance

    def balance(self, step: BodyStep) -> BodyForces:
        """Sum up the forces of a step; who drives a body without joints also exerts what turns its angular momentum.

        A theta step has the gyroscopic torque of a free body, by which the velocity at its end is found; one that is driven has
        that of its motion.
        """
        forces = super().balance(step)
        if forces.drive is not None and not self.n_joints and not self._conserving:
            old, new = self._configuration(step.q).M[3:], self._configuration(step.q_new).M[3:]
            if self._turned:
                forces.drive[3:6] += (new @ step.v_new - old @ step.v) / step.dt - self._asked[1][3:]
            else:
                forces.drive[3:6] += (new - old) @ step.v_new / step.dt - self._terms.bias[3:]
        return forces

    @property
    def joint_force(self) -> np.ndarray:
        """Force of the motors on the joints in the last step, without their damping, (k,) N."""
        return self._force[6:]

    def acted(self) -> dict[str, np.ndarray]:
        """Force and damping of the joints, (k,) N and N s/m."""
        return {"joint_force": self.joint_force.copy(), "joint_damping": self.joint_damping[6:].copy()}

    def take_acted(self, acted: Mapping[str, np.ndarray]) -> None:
        """Answer that these acted at the joints."""
        self.joint_force[:], self.joint_damping[6:] = acted["joint_force"], acted["joint_damping"]

    def _turning_force(self, step: BodyStep) -> np.ndarray:
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
        return np.asarray((new - old) @ step.v_new / step.dt - self._terms.bias[:3])

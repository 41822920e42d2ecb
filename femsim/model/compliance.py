"""Compliant drives: hands that follow a motion by springs and dampers, and give way to what they cannot push through.

:class:`CompliantDrive` pulls the base of a rigid body. :class:`CompliantHold` pulls nodes of a soft body that
:class:`femsim.model.kept_shape.KeptShape` makes move together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from contact.metrics import is_finite
from femsim.base.errors import InputError
from femsim.base.rotations import cross, quaternion_conjugate, quaternion_multiply, quaternion_to_matrix, vector_from_quaternion
from femsim.model.bodies.body import StepSettings
from femsim.model.couplings import CouplingDefaults
from femsim.model.drives import PoseFunction, driven_pose
from femsim.model.frames import HoldFrame


class CompliantDrive(CouplingDefaults):
    """Impedance of six axes between a rigid base and a motion, implicit in A.

    With e the offset of the target from the base, displacement and rotation vector in the world frame, the wrench on the base is
    K e + D (velocity of the target - v), K and D diagonal along and about the axes of the world. Its force and its torque are
    cut off at a largest magnitude each. Where neither is, A gains theta dt K + D; where one is, the part of that across its
    direction.

    Rotations of the target by more than pi away from the base are read as the shorter way round.

    Parameters
    ----------
    name : str
        Name in messages.
    body : str
        Name of the body.
    index : int
        Its number in the system.
    q0 : ndarray, (n_q,)
        Its coordinates at the start, from which the motion counts.
    motion : PoseFunction
        ``motion(t) -> (displacement (3,) m, rotation vector (3,) rad)``.
    stiffness, damping : ndarray, (6,)
        N/m and N s/m along x, y, z, then N m/rad and N m s/rad about them.
    limit : (float, float), N and N m
        Largest force and torque.

    Attributes
    ----------
    wrench : ndarray, (6,), N and N m
        What acted on the base in the last step, torque about its centre of mass.
    flipped : bool
        Whether the target passed half a turn, so that its torque changed sides, since the start or the state taken back last.
    """

    kind = "compliant drive"

    def __init__(
        self,
        name: str,
        body: str,
        index: int,
        q0: np.ndarray,
        motion: PoseFunction,
        *,
        stiffness: np.ndarray,
        damping: np.ndarray,
        limit: tuple[float, float] = (np.inf, np.inf),
    ) -> None:
        self.name, self._body, self._q0, self._motion = name, body, q0.copy(), motion
        self.stiffness, self.damping, self.limit = stiffness, damping, limit
        self.rows: tuple[tuple[int, np.ndarray], ...] = ((index, np.arange(6)),)
        self.entries: tuple[np.ndarray, np.ndarray] | None = None
        self.forces: tuple[np.ndarray, ...] = (np.zeros(3),)
        self.power, self.wrench = 0.0, np.zeros(6)
        #: velocities of the last step, where the next one looks whether a limit is reached, and of the last solve
        self._twist = self._latest = np.zeros(6)
        #: rotation vector of the target from the base as the last step left it, and as it was read last, rad
        self._turn = self._turned = np.zeros(3)
        self.flipped = False
        self._pace, self._block = np.zeros(6), np.zeros((6, 6))

    def _target(self, t: float) -> np.ndarray:
        """Pose at a time, (7,): position (m) and quaternion."""
        pose = np.concatenate(driven_pose(self._q0, self._motion, t))
        if not is_finite(pose):
            raise InputError(
                f"the motion of {self._body} is not finite at {t:.9g} s; correct the function of time that it follows, which a "
                "step asks at its start, at its end, and where it balances forces: at theta 1/2 in its middle."
            )
        return pose

    def prepare(self, q: Sequence[np.ndarray], t: float, v_hat: np.ndarray | None = None) -> None:
        """Read the offset of the target: from the start of the step, or from where ``v_hat``, (6,), leads."""
        self._time, self._start = t, v_hat is None
        way = _way(self._place(q[0]), self._target(t))
        self._spring, self._turned = self.stiffness * way, way[3:]
        self._known = self._twist if v_hat is None else self._motion_by(v_hat)

    def _place(self, q: np.ndarray) -> np.ndarray:
        """Pose of what it pulls at coordinates of the body, (7 or more,)."""
        return q

    def _motion_by(self, v_hat: np.ndarray) -> np.ndarray:
        """Velocity and angular velocity, (6,), of what it pulls, by those of its rows, where it was placed last."""
        return np.array(v_hat)

    def _spread(self, wrench: np.ndarray) -> np.ndarray:
        """Spread a wrench on what it pulls over its rows."""
        return wrench

    def assemble(self, settings: StepSettings, block: np.ndarray, b: np.ndarray) -> None:
        """Fill stiffness and damping, and the wrench as it would be at rest."""
        implicit = settings.theta * settings.dt
        if self._start:
            begin = self._time - implicit
            self._pace = _way(self._target(begin), self._target(begin + settings.dt)) / settings.dt
            self._spring -= implicit * self.stiffness * self._known  # about where the velocity of the last step leads
        uncut, own = self._uncut(), np.diag(implicit * self.stiffness + self.damping)
        for part, most in zip((slice(0, 3), slice(3, 6)), self.limit, strict=True):
            size = float(np.linalg.norm(uncut[part]))
            if size > most:
                across = np.eye(3) - np.outer(uncut[part], uncut[part]) / size**2
                own[part, part] = most / size * across @ own[part, part] @ across
        self._block = own
        b[:] = self._spread(self._cut(uncut) + own @ self._known)
        self._fill(block)

    def _fill(self, block: np.ndarray) -> None:
        """Fill what its rows add to A."""
        np.copyto(block, self._block)

    def _uncut(self) -> np.ndarray:
        """Wrench without limits at the place and the velocity of the last :meth:`prepare`, (6,)."""
        return np.asarray(self._spring + self.damping * (self._pace - self._known))

    def _cut(self, wrench: np.ndarray) -> np.ndarray:
        """Cut a wrench off at the limits, (6,)."""
        out = wrench.copy()
        for part, most in zip((slice(0, 3), slice(3, 6)), self.limit, strict=True):
            size = float(np.linalg.norm(wrench[part]))
            if size > most:
                out[part] *= most / size
        return out

    def exerted(self) -> np.ndarray:
        """Force on its rows: on a base its wrench, (6,), N and N m."""
        return self._spread(self._cut(self._uncut()))

    def accept(self, v_hat: np.ndarray) -> None:
        """Take the wrench of the step and its power."""
        self._latest = self._motion_by(v_hat)
        self.wrench = self._cut(self._uncut()) - self._block @ (self._latest - self._known)
        self.forces, self.power = (self.wrench[:3].copy(),), float(self.wrench @ self._latest)

    def settle(self, q: Sequence[np.ndarray]) -> None:
        """Keep the velocity of the step for the next one, and look whether a turn that it resists jumped to its other side."""
        self._twist = self._latest
        far = np.minimum(abs(self._turn), abs(self._turned)) > 0.5 * np.pi  # at half a turn its largest part is pi / sqrt(3)
        self.flipped |= bool((far & (self._turn * self._turned < 0.0) & (self.stiffness[3:] > 0.0)).any())
        self._turn = self._turned

    def reset(self) -> None:
        """Start from rest."""
        self._twist = self._latest = np.zeros(6)
        self._turn = self._turned = np.zeros(3)
        self.flipped = False

    def memory(self) -> dict[str, np.ndarray]:
        """Give the velocity of the last step, and the turn of the target."""
        return {"twist": self._twist, "turn": self._turn}

    def recall(self, memory: Mapping[str, np.ndarray]) -> None:
        """Take them back; older checkpoints have no turn."""
        self._twist = self._latest = memory["twist"]
        self._turn = self._turned = memory.get("turn", np.zeros(3))
        self.flipped = False

    def reading(self) -> tuple[float, ...]:
        """No sensor of its own: a mount sensor of the body reads it."""
        return ()

    def acted(self) -> dict[str, np.ndarray]:
        """Also the wrench, (6,)."""
        return super().acted() | {"wrench": self.wrench}

    def take_acted(self, acted: Mapping[str, np.ndarray]) -> None:
        """Answer that these acted."""
        super().take_acted(acted)
        self.wrench = acted["wrench"]

    def describe(self) -> dict[str, list[float] | float | None]:
        """Stiffness and damping along and about x, y, z, and largest force and torque, SI; None for no limit."""
        force, torque = (most if np.isfinite(most) else None for most in self.limit)
        both = {"stiffness": self.stiffness.tolist(), "damping": self.damping.tolist()}
        return {**both, "max_force_N": force, "max_torque_Nm": torque}

    def mounted(self) -> tuple[str, np.ndarray] | None:
        """Name of the body, and the wrench on its base."""
        return self._body, self.wrench


class CompliantHold(CompliantDrive):
    """The same of nodes of a soft body that move together: the wrench is spread over three of them.

    How it is spread changes nothing but the forces by which the nodes keep their shape. It is about the frame's origin, which
    is where the motion has its own, and acts there.

    Parameters
    ----------
    name, index, motion, stiffness, damping, limit
        See :class:`CompliantDrive`.
    frame : HoldFrame
        Frame that the three nodes carry.
    start : ndarray, (7,)
        Its pose at the start: position (m) and quaternion.
    middle : ndarray, (3,), m
        Mean of all held nodes at the start, which the torque of a sensor is about.
    """

    kind = "compliant hold"

    def __init__(
        self,
        name: str,
        index: int,
        frame: HoldFrame,
        start: np.ndarray,
        middle: np.ndarray,
        motion: PoseFunction,
        *,
        stiffness: np.ndarray,
        damping: np.ndarray,
        limit: tuple[float, float] = (np.inf, np.inf),
    ) -> None:
        super().__init__(name, name, index, start, motion, stiffness=stiffness, damping=damping, limit=limit)
        self._frame, self._pose, self._G = frame, start, frame.jacobian()
        self._arm = quaternion_to_matrix(start[3:7]).T @ (start[:3] - middle)
        self.rows = ((index, frame.rows),)

    def _place(self, q: np.ndarray) -> np.ndarray:
        self._pose = self._frame.place(q)
        self._G = self._frame.jacobian()
        return self._pose

    def _motion_by(self, v_hat: np.ndarray) -> np.ndarray:
        return np.asarray(self._G @ v_hat)

    def _spread(self, wrench: np.ndarray) -> np.ndarray:
        return np.asarray(self._G.T @ wrench)

    def _fill(self, block: np.ndarray) -> None:
        own = self._G.T @ self._block @ self._G
        np.copyto(block, 0.5 * (own + own.T))

    def accept(self, v_hat: np.ndarray) -> None:
        """Also shift the torque to the mean of the nodes."""
        super().accept(v_hat)
        arm = quaternion_to_matrix(self._pose[3:7]) @ self._arm
        self.wrench[3:] += cross(arm, self.wrench[:3])


def _way(start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Displacement (m) and rotation vector (rad), (6,), from a pose (7 or more) to another one, world frame."""
    turn = quaternion_multiply(end[3:7], quaternion_conjugate(start[3:7]))
    return np.concatenate([end[:3] - start[:3], vector_from_quaternion(turn)])

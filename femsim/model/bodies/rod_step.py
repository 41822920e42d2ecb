"""A rod in a step: forces and their tangent, the wrenches at its ends, and where the step leads."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from femsim.base.rotations import cayley_from_quaternion, cross, quaternion_conjugate, quaternion_multiply, quaternion_to_matrix
from femsim.model.bodies import rod_kernels as kernels, rod_momentum_kernels as momentum_kernels, rod_slope_kernels
from femsim.model.bodies.body import StepSettings, StepStart
from femsim.model.bodies.body_defaults import BodyDefaults
from femsim.model.bodies.calming import CALMING, calm_joints
from femsim.model.bodies.evenness import Evenness
from femsim.model.bodies.rod_end import RodEnd
from femsim.model.bodies.rod_frames import EndFrames
from femsim.model.bodies.rod_joints import StrainedJoints
from femsim.model.bodies.rod_make import RodMake
from materials import Elastic

Load = Callable[[float], np.ndarray]


class SteppedRod(BodyDefaults):
    """What a rod does in a step; :class:`femsim.model.bodies.rod.Rod` says which step that is, and has energies and outputs.

    Parameters
    ----------
    make : RodMake
        Its links and joints.
    ends : (RodEnd, RodEnd)
        What happens at its start and its end.
    elastic : Elastic
        Material, asked for its damping in every step.
    damping : ndarray, (n, 2), N s/m and N m s/rad
        Drag on the velocity and the angular velocity of each link.
    load : callable, optional
        ``load(t) -> (n, 6)`` or ``(3,)``, see :class:`femsim.model.bodies.rod.Rod`.

    Attributes
    ----------
    n_links : int
        Number of links.
    lengths : ndarray, (n,), m
        Of the links at rest.
    link_mass, link_inertia : ndarray, (n,) and (n, 3), kg and kg m^2
        Of the links, the latter about the axes of the section.
    strained : StrainedJoints
        Its joints, at the poses that were asked for last.
    end_frames, end_wrench, end_power
        See :class:`femsim.model.bodies.rod.Rod`.
    """

    def __init__(
        self, make: RodMake, ends: tuple[RodEnd, RodEnd], elastic: Elastic, damping: np.ndarray, load: Load | None
    ) -> None:
        self.ends, self.elastic, self.load, self._damping = ends, elastic, load, damping
        self.is_held = any(end.kind != "free" for end in ends)
        self.lengths, self.link_mass, self.link_inertia = make.lengths, make.mass, make.inertia
        self._mass = float(make.mass.sum())
        n = self.n_links = len(make.lengths)
        self.n_q, self.n_v = 7 * n, 6 * n
        self._joints, self.strained = make.joints, StrainedJoints(make.joints)
        self._frames = EndFrames(self.name, ends, make.frames)
        self.end_frames = self._frames.now
        self.end_wrench, self.end_power = np.zeros((2, 6)), 0.0
        self._indptr, self._indices = _pattern(n)
        self._evenness = Evenness(make.joints.stiffness.ravel)
        #: mass and inertia with the frames of the ends around them, which nothing moves
        self._padded = (
            np.pad(self.link_mass, 1, constant_values=np.inf),
            np.pad(self.link_inertia, ((1, 1), (0, 0)), constant_values=np.inf),
        )
        self._make_buffers(n)
        self.reset()

    def _make_buffers(self, n: int) -> None:
        """Arrays that the kernels fill."""
        self._blocks, self._damping_blocks = np.zeros((n + 1, kernels.BLOCKS)), np.zeros((n + 1, kernels.BLOCKS))
        # of the velocities about which A is linearised: those of all poses, the change of the forces at all joints by damping,
        # and at the ends by stiffness
        self._velocities, self._responses = np.zeros((n + 2, 6)), np.zeros((n + 1, 12))
        self._response, self._known_response = np.zeros((2, 12)), np.zeros((2, 12))
        self._start_rotation = np.empty((n + 2, 9))
        # of the energy-momentum step: poses at its start and its end, joints at its start, turns between, axes at its end, forces
        # of the joints
        self._conserving = False
        self._before, self._after = np.empty((n + 2, 7)), np.empty((n + 2, 7))
        self._joint_starts = np.zeros((n + 1, momentum_kernels.START))
        self._turn, self._end_rotation = np.zeros((n + 2, 3)), np.empty((n + 2, 9))
        self._step_force, self._start_velocity = np.empty((n + 1, 9)), np.zeros(self.n_v)
        #: pulls at the last linearisation, how they go with the velocities of the poses, these velocities, and what that
        #: linearisation foresees where the last residual was asked
        self._pulls, self._pull_ways, self._linearised_at = np.zeros(n + 1), np.zeros((n + 1, 9)), np.zeros((n + 2, 6))
        self._foreseen = np.zeros(n + 1)
        #: whether that linearisation was solved; else a guess is what the residual was asked at
        #: forces of the joints that act in the step: elastic ones, or those of an energy-momentum step
        self._acting = self.strained.force
        self._end_pull = np.zeros(2)

    @property
    def mass(self) -> float:
        """Total mass, kg."""
        return self._mass

    def reset(self) -> None:
        """Frames of the ends back to the start, so that a second run gives the same bits."""
        self._frames.reset()
        self.strained.forget()
        self.end_wrench[:] = 0.0
        self.end_power = 0.0
        self._evenness.reset()

    def memory(self, q: np.ndarray) -> dict[str, np.ndarray]:
        """Frames of the ends, (2, 7), and how strains have changed; those of now follow from the poses."""
        return {"end_frames": self.end_frames.copy()} | self._evenness.memory()

    def recall(self, memory: Mapping[str, np.ndarray], q: np.ndarray) -> None:
        """Put the frames of the ends, and how strains have changed, back."""
        self.end_frames[:] = memory["end_frames"]
        self._evenness.recall(memory)

    def pattern(self) -> tuple[np.ndarray, np.ndarray]:
        """Block-tridiagonal pattern of 6x6 blocks, link after link along the rod."""
        return self._indptr, self._indices

    def place_end(self, k: int, pose: np.ndarray) -> None:
        """Put the frame of end k (0 start, 1 end) that a body carries to a pose (7,)."""
        self.end_frames[k] = self._frames.next[k] = pose

    def move_end(self, k: int, twist: np.ndarray) -> None:
        """Say the velocity and angular velocity (6,) that the frame of end k, carried by a body, has in the step."""
        self._frames.twist(k)[:] = twist

    def end_at(self, k: int, pose: np.ndarray) -> None:
        """Say the pose (7,) at which the frame of end k, carried by a body, ends an energy-momentum step."""
        self._after[-k] = pose

    def end_joint(self, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Matrix (12, 12) of the joint of end k, as it enters A, and derivative (12,) of its energy; frame first, then the link.

        As the last :meth:`assemble` made them, which has put the part of the link alone into A and b already.
        """
        joint = k * self.n_links
        s, u, w, t, cross_turn, t_j = self._blocks[joint].reshape(6, 3, 3)
        matrix = np.block([[s, -u, -s, -w], [-u.T, t, u.T, cross_turn], [-s, u, s, w], [-w.T, cross_turn.T, w.T, t_j]])
        n, m_i, m_j = self._acting[joint].reshape(3, 3)
        force = np.concatenate([-n, m_i, n, m_j])
        order = np.arange(12) if k == 0 else np.arange(-6, 6)
        return matrix[np.ix_(order, order)], force[order]

    def end_force(self, k: int) -> np.ndarray:
        """Force (12,) that deforms the joint of end k at the last residual, damping included; frame first, then the link."""
        joint = k * self.n_links
        n, m_i, m_j = self._acting[joint].reshape(3, 3)
        return (np.concatenate([-n, m_i, n, m_j]) + self._responses[joint])[np.arange(12) if k == 0 else np.arange(-6, 6)]

    def update_joints(self, q: np.ndarray, frames: np.ndarray | None = None) -> None:
        """Update strains, forces and energy of all joints for poses q and frames, by default the current ones."""
        self.strained.update(q, self.end_frames if frames is None else frames)

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
        """Fill A = M/(theta dt) + D + (theta dt + beta) J^T K J + theta dt T and b = M v/(theta dt) - C v - f + f_ext (eq. 9).

        T is the tension stiffness, D the drag and alpha M. The forces that the motion of the ends' frames makes within the step
        are in b, not in ``external``; their power is :attr:`end_power`.
        """
        joints, strained = self._joints, self.strained
        implicit = settings.theta * settings.dt
        self._conserving, self._acting = settings.conserving, strained.force
        self._frames.move(t, settings.dt, settings.conserving)
        self.update_joints(q)
        self._start_rotation[:] = strained.rotation
        self._before[:] = strained.poses
        if settings.conserving:
            momentum_kernels.joint_starts(
                strained.poses, strained.rotation, joints.arm, joints.kind, joints.rest, self._joint_starts
            )  # fmt: skip
            if settings.strain_damping > 0.0:
                self._evenness.begin(strained.strain.ravel().copy())
        self._known_response[:] = 0.0
        self._linearised_at[:], self._is_solved = 0.0, False
        kernels.pulls_by_velocity(joints.kind, strained.force, strained.geometry, self._pulls, self._pull_ways)
        self._external_forces(q, t + implicit, settings.gravity, external.reshape(-1, 6))
        kernels.joint_blocks(joints.kind, joints.arm, strained.geometry, self._stiffness_factor(settings), implicit, self._blocks)
        b[:] = external
        kernels.system(
            strained.rotation, v, self.link_mass, self.link_inertia, self._damping, joints.kind, strained.force, self._blocks,
            implicit * self._end_pull, self._frames.motion, implicit, self.elastic.rayleigh_alpha, self._response, data, b,
        )  # fmt: skip

    def _stiffness_factor(self, settings: StepSettings) -> float:
        """Factor of the stiffness of the joints in A, s."""
        return settings.theta * settings.dt * (1.0 + 2.0 * self._evenness.damping(settings)) + self.elastic.rayleigh_beta

    def moved(self, q: np.ndarray, v_hat: np.ndarray, time: float) -> np.ndarray:
        """Poses by the exponential map, in an energy-momentum step by Cayley's."""
        out, v_new = np.empty(self.n_q), np.empty(self.n_v)
        if self._conserving:
            momentum_kernels.turned_poses(q.reshape(-1, 7), v_hat, time, out.reshape(-1, 7))
            return out
        kernels.advance(q.reshape(-1, 7), v_hat, v_hat, self.link_inertia, time, 1.0, True, out.reshape(-1, 7), v_new)
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
        """Fill (M v_hat - M_0 v)/(theta dt) + D v_hat + beta J^T K J v_hat + f - f_ext; M, f and J^T K J at ``moved``.

        M_0 is that of the start. The spin of a link is advanced by the torque on it, see ``advance``. In a linear step M is M_0
        too, and C v there besides.
        """
        joints, strained = self._joints, self.strained
        implicit, beta = settings.theta * settings.dt, self.elastic.rayleigh_beta
        if settings.conserving:
            self._conserving_residual(moved, start, settings, v_hat, external, out, inertia)
            self._foresee(implicit)
            return
        self.update_joints(moved, self._frames.after(implicit))
        self._external_forces(moved, start.t + implicit, settings.gravity, external.reshape(-1, 6))
        self._velocities[1:-1] = v_hat.reshape(-1, 6)
        for k in range(2):
            self._velocities[-k] = self._frames.twist(k)
        self._foresee(implicit)
        kernels.equations(
            self._start_rotation, strained.rotation, start.v, v_hat, self.link_mass, self.link_inertia, self._damping,
            strained.force, implicit, self.elastic.rayleigh_alpha, settings.linear, out, inertia,
        )  # fmt: skip
        if beta > 0.0:
            kernels.joint_blocks(joints.kind, joints.arm, strained.geometry, beta, 0.0, self._damping_blocks)
            kernels.add_joint_responses(self._damping_blocks, self._velocities, self._responses, out)
        out -= external

    def _conserving_residual(
        self,
        moved: np.ndarray,
        start: StepStart,
        settings: StepSettings,
        v_hat: np.ndarray,
        external: np.ndarray,
        out: np.ndarray,
        inertia: np.ndarray,
    ) -> None:
        """Fill the equations of :mod:`femsim.model.bodies.rod_momentum_kernels`; stiffness damps the change of strain."""
        joints, strained = self._joints, self.strained
        dt = settings.dt
        self._velocities[1:-1], self._start_velocity = v_hat.reshape(-1, 6), start.v
        frames = np.empty((2, 7))
        momentum_kernels.turned_poses(start.q.reshape(-1, 7), v_hat, dt, self._after[1:-1])
        for k, end in enumerate(self.ends):
            self._velocities[-k] = self._frames.twist(k)
            if end.on is None:
                self._after[-k] = self._frames.next[k]
            if end.kind == "free":
                frames[k] = self._before[-k]
                continue
            old, new = self._before[-k], self._after[-k]
            frames[k, :3] = 0.5 * (old[:3] + new[:3])
            frames[k, 3:] = old[3:] + np.copysign(1.0, old[3:] @ new[3:]) * new[3:]
            frames[k, 3:] /= np.linalg.norm(frames[k, 3:])
            self._turn[-k] = cayley_from_quaternion(quaternion_multiply(new[3:], quaternion_conjugate(old[3:])))
        np.multiply(dt, self._velocities[1:-1, 3:], out=self._turn[1:-1])
        self.update_joints(moved, frames)
        momentum_kernels.step_forces(
            self._joint_starts, self._start_rotation, self._after, self._turn, joints.arm, joints.kind, joints.stiffness,
            joints.rest, self._slowing(settings), strained.force, self._end_rotation, self._step_force,
        )  # fmt: skip
        kernels.take_pulls(joints.kind, self._step_force, joints.ceiling, strained.geometry)
        self._acting = self._step_force
        self._responses[:] = 0.0
        axes = 0.5 * (self._start_rotation[[1, -2], 2::3] + self._end_rotation[[1, -2], 2::3])
        self._external_forces(moved, start.t + 0.5 * dt, settings.gravity, external.reshape(-1, 6), axes)
        momentum_kernels.step_equations(
            self._before[1:-1], self._after[1:-1], start.v, v_hat, self.link_mass, self.link_inertia, self._damping,
            self._step_force, dt, self.elastic.rayleigh_alpha, out, inertia,
        )  # fmt: skip
        out -= external

    def _foresee(self, implicit: float) -> None:
        """Say what pulls the last linearisation led one to expect at the velocities of the poses."""
        kernels.foresee_pulls(
            self._joints.kind, self._pulls, self._pull_ways, self._joints.stiffness, self._linearised_at, self._velocities,
            implicit, self._foreseen,
        )  # fmt: skip

    def tangent(self, settings: StepSettings, data: np.ndarray) -> None:
        """Fill A as ``assemble`` does, stiffness and M at the poses of the last residual, of a linear step M at its start.

        Pulls count in the tension stiffness as far as the last linearisation that was solved foresaw them. Links that turned by
        an angle a are too long by a^2/2, and what stiff ones pull by that, which the next linearisation takes away, would hold
        them where they are (after the independent stresses of Magisano, Leonetti and Garcea 2017). Where a guess leads pulls
        count as they are: cables that hardly move took a fifth more linearisations else.
        """
        joints, strained = self._joints, self.strained
        implicit, factor = settings.theta * settings.dt, self._stiffness_factor(settings)
        known, geometry = factor if settings.conserving else implicit, strained.geometry.copy()
        if self._is_solved:
            kernels.bound_pulls(self._foreseen, geometry)
        kernels.pulls_by_velocity(joints.kind, self._acting, geometry, self._pulls, self._pull_ways)
        self._linearised_at[:] = self._velocities
        kernels.joint_blocks(joints.kind, joints.arm, geometry, known, implicit, self._blocks)
        for k, joint in enumerate((0, self.n_links)):
            kernels.joint_response(self._blocks, joint, self._velocities[joint : joint + 2].ravel(), self._known_response[k])
        if known != factor:
            kernels.joint_blocks(joints.kind, joints.arm, geometry, factor, implicit, self._blocks)
        rotation = self._start_rotation if settings.linear else strained.rotation
        kernels.system(
            rotation, np.zeros(self.n_v), self.link_mass, self.link_inertia, self._damping, joints.kind, strained.force,
            self._blocks, implicit * self._end_pull, np.zeros((2, 12)), implicit, self.elastic.rayleigh_alpha,
            np.zeros((2, 12)), data, np.empty(self.n_v),
        )  # fmt: skip

    def _slowing(self, settings: StepSettings) -> float:
        """Part of the change of strain in an energy-momentum step that is damped."""
        return self._evenness.damping(settings) + self.elastic.rayleigh_beta / settings.dt

    def whole_tangent(self, settings: StepSettings, data: np.ndarray) -> bool:
        """Fill the derivative of an energy-momentum step, see :mod:`femsim.model.bodies.rod_slope_kernels`; no other one's."""
        joints, implicit = self._joints, settings.theta * settings.dt
        return settings.conserving and rod_slope_kernels.step_slopes(
            self._joint_starts, self._start_rotation, self._before, self._after, self._turn, self._end_rotation, joints.arm,
            joints.kind, joints.stiffness, joints.rest, self._slowing(settings), self.lengths, self.link_mass, self.link_inertia,
            self._damping, self.elastic.rayleigh_alpha, self._start_velocity, self._velocities[1:-1].ravel(), settings.dt,
            implicit * self._end_pull, np.empty((self.n_links + 1, 9)), data,
        )  # fmt: skip

    def accept(self, v_hat: np.ndarray) -> None:
        """Work out the wrench on the frames of the ends from the velocities of the step."""
        self.end_power, self._is_solved = 0.0, True
        for k, joint in enumerate((0, self.n_links)):
            if self._joints.kind[joint] == kernels.ABSENT:
                continue
            own, link = slice(6 * k, 6 * k + 6), slice(6 - 6 * k, 12 - 6 * k)
            motion = self._frames.motion[k].copy()
            motion[link] = v_hat[:6] if k == 0 else v_hat[-6:]
            kernels.joint_response(self._blocks, joint, motion, self._response[k])
            self._response[k] -= self._known_response[k]
            self.end_wrench[k] = -self._response[k, own]
            if k == 0:
                self.end_wrench[k] += np.concatenate([self._acting[joint, :3], -self._acting[joint, 3:6]])
            else:
                self.end_wrench[k] -= np.concatenate([self._acting[joint, :3], self._acting[joint, 6:]])
            if self.ends[k].on is None:
                self.end_power -= float(self.end_wrench[k] @ motion[own])

    def _external_forces(
        self, q: np.ndarray, t: float, gravity: np.ndarray, force: np.ndarray, axes: np.ndarray | None = None
    ) -> None:
        """Fill gravity and loads, (n, 6) N and N m; and the pull of loads on free ends times their lever, N m.

        ``axes`` (2, 3) along the first and the last link, default those at q, turn the levers.
        """
        kernels.weights(self.link_mass, gravity, force)
        if self.load is not None:
            load = np.asarray(self.load(t), dtype=np.float64)
            if load.ndim == 1:
                force[:, :3] += (self.link_mass / self.mass)[:, None] * load
            else:
                force += load
        for k, (end, link, side) in enumerate(zip(self.ends, (0, -1), (-0.5, 0.5), strict=True)):
            if end.load is None:
                continue
            tip, torque = (np.asarray(part, dtype=np.float64) for part in end.load(t))
            axis = quaternion_to_matrix(q.reshape(-1, 7)[link, 3:])[:, 2] if axes is None else axes[k]
            lever = side * self.lengths[link] * axis
            force[link, :3] += tip
            force[link, 3:] += torque + cross(lever, tip)
            self._end_pull[k] = max(float(tip @ lever), 0.0)

    def advance(
        self,
        q: np.ndarray,
        v: np.ndarray,
        v_hat: np.ndarray,
        settings: StepSettings,
        q_new: np.ndarray,
        v_new: np.ndarray,
    ) -> None:
        """Fill poses by the exponential map and velocities at the end of the step."""
        poses, poses_new = q.reshape(-1, 7), q_new.reshape(-1, 7)
        self._evenness.end(settings)
        if settings.conserving:
            momentum_kernels.step_advance(poses, v, v_hat, settings.dt, poses_new, v_new)
        else:
            kernels.advance(poses, v, v_hat, self.link_inertia, settings.dt, settings.theta, settings.linear, poses_new, v_new)
        self.end_frames[:] = self._frames.next

    def calm(
        self, q: np.ndarray, v_hat: np.ndarray, v: np.ndarray, settings: StepSettings, held: np.ndarray, push: np.ndarray
    ) -> None:
        """Calm the joints, those of ends that no body carries too, whose frames then bear the impulse."""
        poses, (rates, rates_hat, on_frame) = np.empty((self.n_links + 2, 7)), np.zeros((3, self.n_links + 2, 6))
        poses[0], poses[-1] = self.end_frames
        poses[1:-1], rates[1:-1] = q.reshape(-1, 7), v.reshape(-1, 6)
        if not self._evenness.touched:
            rates_hat[1:-1] = v_hat.reshape(-1, 6)
        kind = self._joints.kind.copy()
        for k, end in enumerate(self.ends):
            rates[-k] = self._frames.twist(k)
            rates_hat[-k] = 0.0 if self._evenness.touched else rates[-k]
            kind[-k] = kernels.ABSENT if end.on is not None else kind[-k]
        calm_joints(
            poses, self._joints.arm, kind, self._joints.stiffness, CALMING * settings.strain_damping * settings.dt**2,
            *self._padded, rates_hat, rates, on_frame,
        )  # fmt: skip
        v.reshape(-1, 6)[:] = rates[1:-1]
        wrench = on_frame[[0, -1]] / settings.dt
        self.end_wrench += wrench
        self.end_power -= float((wrench * rates[[0, -1]]).sum())

    def touch(self, touched: bool) -> None:
        """Damp in full from the next step on, or less where it moves evenly."""
        self._evenness.touched = touched


def _pattern(n: int) -> tuple[np.ndarray, np.ndarray]:
    """CSC pattern of full 6x6 blocks, block tridiagonal, link after link: pointers and rows."""
    first = np.maximum(np.arange(n) - 1, 0)
    last = np.minimum(np.arange(n) + 2, n)
    counts = np.repeat(6 * (last - first), 6)
    pointers = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    rows = np.concatenate([np.tile(np.arange(6 * a, 6 * z), 6) for a, z in zip(first, last, strict=True)])
    return pointers, rows.astype(np.int64)

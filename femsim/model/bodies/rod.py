"""Rods: Cosserat theory in maximal coordinates, a chain of rigid links with elastic joints.

Over 600 lines: one class answers all of the body protocol from one set of arrays.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np

from contact import GroupKind
from femsim.base.errors import InputError
from femsim.base.rotations import (
    cayley_from_quaternion,
    cross,
    quaternion_conjugate,
    quaternion_from_vector,
    quaternion_multiply,
    quaternion_to_matrix,
    vector_from_quaternion,
)
from femsim.model.bodies import rod_kernels as kernels, rod_momentum_kernels as momentum_kernels
from femsim.model.bodies.body import BodyForces, BodyStep, StepSettings, StepStart
from femsim.model.bodies.body_defaults import BodyDefaults
from femsim.model.bodies.calming import CALMING, calm_joints
from femsim.model.bodies.deforming import Deforming, strand
from femsim.model.bodies.evenness import Evenness
from femsim.model.bodies.outputs import Drawing, DrawnFrame, describe_elastic
from femsim.model.bodies.rod_end import END_KINDS, RodEnd
from femsim.model.bodies.rod_output import RodJoints, rod_fields
from femsim.model.bodies.rod_shape import carried_frames, checked, link_lengths, turns_at_rest, turns_at_start
from femsim.model.drives import driven_pose
from femsim.model.frames import RodFrame
from femsim.model.parts import Part
from materials import Elastic, RodSection

Load = Callable[[float], np.ndarray]

#: Largest pull that enters A as tension stiffness, as a fraction of the shear stiffness k G A.
MAX_TENSION = 0.7


class Rod(BodyDefaults):
    """Cosserat rod: stretch, shear, bending and twist between rigid links (papers/001 section V-C5, their ref. [66]).

    ``q`` holds for each link its centre (3) and quaternion (4), ``v`` the velocity of the centre (3) and the world angular
    velocity (3); so the centre of link i is the node of rows 6 i to 6 i + 2 of the contact problem. The axes of a link are those
    of the section: 1 and 2 across, 3 along the rod. Neighbours i and j are joined by a spring with strain
    e = [R^T g ; log(R_i^T R_j) - phi_0], R half-way between the two, g the gap at the joint; its stiffness is
    diag(k1 GA, k2 GA, EA, EI1, EI2, GJ) / L. Of the second derivative of the energy, A keeps J^T K J with the exact J and, of
    what the stress adds, the tension stiffness of the pull within [0, 0.7 k GA]; it drops what compression, shear
    and moments add, and the derivative of the tangent map of the rotation. So A is positive definite; the force itself is exact.

    Departures from the paper, which does not give its strain: the rest rotation is subtracted from the logarithm, so that
    helices are exact and both directions along the rod are equal; damping is per metre of rod, so that results do not depend
    on the number of links; the frames of held ends are followed exactly. The spin of a link is advanced by the torque on it.

    The step is linearised: at theta = 1 energy never grew in tests while no link turned by more than 0.3 rad a step, but can
    where a strongly bent rod springs loose in one large step; at theta = 1/2 a taut rod needs damping.

    The 13 parameters are those of :meth:`femsim.scene.scene.Scene.add_rod`, all but four optional.

    Parameters
    ----------
    name : str
        Name in outputs.
    points : ndarray, (n + 1, 3), m
        Ends of the n links along the rod at the start, world. Their distances are the lengths of the links at rest.
    section : RodSection
        Cross section.
    elastic : Elastic
        Material; ``rayleigh_alpha`` damps by mass, ``rayleigh_beta`` the joints by stiffness.
    normal : ndarray, (3,), optional
        Direction of axis 1 of the section at the first link, made square to it; carried along the rod without twist. Default: the
        coordinate axis that is most across the first link.
    rest_curvature : ndarray, (3,) or (n - 1, 3), 1/m, optional
        Curvature about axes 1 and 2 and twist about axis 3 of the rod without stress, for all or each inner joint. Default: that
        of ``points``, so the rod starts without stress; zeros make a straight rod that is bent at the start.
    velocity : ndarray, (3,), m/s, optional
        Of all links at the start; zero by default.
    angular_velocity : ndarray, (3,), rad/s, optional
        Of the rod as a whole at the start, about its centre of mass, world; zero by default.
    start, end : RodEnd
        What happens at the first and the last of ``points``.
    translational_damping : float, N s/m per m
        Drag on the velocity of the rod, per metre.
    rotational_damping : float, N m s/rad per m
        Drag on its angular velocity, per metre.
    load : callable, optional
        ``load(t) -> (n, 6)`` force and torque on the centre of each link, N and N m, or ``(3,)`` total force spread by mass, N.

    Attributes
    ----------
    n_links : int
        Number of links.
    lengths : ndarray, (n,), m
        Lengths of the links at rest.
    translational_damping, rotational_damping : float
        As given, per metre.
    end_frames : ndarray, (2, 7), m
        Position and quaternion of the frames of start and end, where the last step left them.
    end_wrench : ndarray, (2, 6), N and N m
        Force and torque of the rod on the frames of its start and end, world, about the frame; as the last step counted them,
        at theta = 1 at its end, damping of the joints included. Zero at free ends. Filled by :meth:`advance`.
    end_power : float, W
        Power that the frames with a motion of their own gave the rod in the last step.

    Raises
    ------
    InputError
        Points that are not finite, links of no length, a kink sharper than 2 rad, a centre line that crosses itself, or a
        parameter out of range.
    """

    kind: GroupKind = "links"

    def __init__(
        self,
        name: str,
        points: np.ndarray,
        section: RodSection,
        elastic: Elastic,
        *,
        normal: np.ndarray | None = None,
        rest_curvature: np.ndarray | None = None,
        velocity: np.ndarray | None = None,
        angular_velocity: np.ndarray | None = None,
        start: RodEnd | None = None,
        end: RodEnd | None = None,
        translational_damping: float = 0.0,
        rotational_damping: float = 0.0,
        load: Load | None = None,
    ) -> None:
        self.name, self.section, self.elastic, self.load = name, section, elastic, load
        self.ends = (start or RodEnd(), end or RodEnd())
        self.is_held = any(end.kind != "free" for end in self.ends)
        points = checked(name, "points", points, (None, 3))
        for field, value in (("translational_damping", translational_damping), ("rotational_damping", rotational_damping)):
            if not 0.0 <= value < np.inf:
                raise InputError(f"rod {name}: {field} is {value!r}, but must be finite and at least 0, per metre of rod.")
        self.translational_damping, self.rotational_damping = float(translational_damping), float(rotational_damping)
        self.lengths = link_lengths(name, points)
        n = self.n_links = len(self.lengths)
        self.n_q, self.n_v = 7 * n, 6 * n
        self._velocity, self._angular_velocity = (
            np.zeros(3) if value is None else checked(name, field, value, (3,))
            for field, value in (("velocity", velocity), ("angular_velocity", angular_velocity))
        )
        tangents = np.diff(points, axis=0) / self.lengths[:, None]
        quaternions = carried_frames(name, tangents, None if normal is None else checked(name, "normal", normal, (3,)))
        self._q0 = np.column_stack([0.5 * (points[1:] + points[:-1]), quaternions]).ravel()
        self._make_links()
        self._make_joints()
        turn = turns_at_start(quaternions, self._joint_lengths)
        self._rest = turn if rest_curvature is None else turns_at_rest(name, rest_curvature, self._joint_lengths)
        self._frame0 = np.array(
            [
                [*points[0], *quaternion_multiply(quaternions[0], quaternion_from_vector(-turn[0]))],
                [*points[-1], *quaternion_multiply(quaternions[-1], quaternion_from_vector(turn[-1]))],
            ]
        )
        self._make_state()
        self._make_pattern()
        self.reset()

    def _make_links(self) -> None:
        """Mass, inertia about the axes and damping of each link: a slender bar with the rotary inertia of the section."""
        section, density, lengths = self.section, self.elastic.density, self.lengths
        mass = density * section.area * lengths
        self.link_mass = mass
        slender = mass * lengths**2 / 12.0
        rotary = density * lengths[:, None] * [section.second_moment_1, section.second_moment_2, section.polar_moment]
        self.link_inertia = np.ascontiguousarray(rotary + slender[:, None] * [1.0, 1.0, 0.0])
        #: the same with the frames of the ends around them, which nothing moves
        self._padded = (
            np.pad(self.link_mass, 1, constant_values=np.inf),
            np.pad(self.link_inertia, ((1, 1), (0, 0)), constant_values=np.inf),
        )
        self._damping = lengths[:, None] * [self.translational_damping, self.rotational_damping]

    def _make_joints(self) -> None:
        """Kinds, lengths and stiffness of the joints; joint k is between poses k and k + 1, of which 0 and n + 1 are the ends."""
        section, young, shear = self.section, self.elastic.young_modulus, self.elastic.lame_mu
        self._arm = np.concatenate([[0.0], 0.5 * self.lengths, [0.0]])
        self._joint_lengths = self._arm[:-1] + self._arm[1:]
        self._kind = np.full(self.n_links + 1, kernels.FULL, dtype=np.int64)
        self._kind[[0, -1]] = [END_KINDS[end.kind] for end in self.ends]
        along = [
            section.shear_factor_1 * shear * section.area,
            section.shear_factor_2 * shear * section.area,
            young * section.area,
        ]
        solid = np.array([young * section.second_moment_1, young * section.second_moment_2, shear * section.torsion_constant])
        self._stiffness = np.array([*along, *section.bending_factor * solid]) / self._joint_lengths[:, None]
        self._ceiling = MAX_TENSION * min(along[:2])

    def _make_state(self) -> None:
        """Arrays that the kernels fill, and what is known of the ends."""
        n = self.n_links
        self._poses = np.empty((n + 2, 7))
        self._rotation = np.empty((n + 2, 9))
        self._geometry = np.zeros((n + 1, kernels.GEOMETRY))
        self._force = np.empty((n + 1, 9))
        self._strain = np.empty((n + 1, 6))
        self._blocks, self._damping_blocks = np.zeros((n + 1, kernels.BLOCKS)), np.zeros((n + 1, kernels.BLOCKS))
        self.end_frames = self._frame0.copy()
        self._frame_next = self._frame0.copy()
        self._end_motion, self._response = np.zeros((2, 12)), np.zeros((2, 12))
        # of the velocities about which A is linearised: those of all poses, the change of the forces at all joints by damping,
        # and at the ends by stiffness
        self._velocities, self._responses = np.zeros((n + 2, 6)), np.zeros((n + 1, 12))
        self._known_response = np.zeros((2, 12))
        self._start_rotation = np.empty((n + 2, 9))
        # of the energy-momentum step: poses at its start and its end, joints at its start, turns between, axes at its end, forces
        # of the joints
        self._conserving = False
        self._before, self._after = np.empty((n + 2, 7)), np.empty((n + 2, 7))
        self._joint_starts = np.zeros((n + 1, momentum_kernels.START))
        self._turn, self._end_rotation = np.zeros((n + 2, 3)), np.empty((n + 2, 9))
        self._step_force = np.empty((n + 1, 9))
        self._evenness = Evenness(self._stiffness.ravel)
        self._acting = self._force
        self._end_pull = np.zeros(2)
        self._spin = np.empty((n, 3))
        self._updated_at = np.full((n + 2, 7), np.nan)
        self._energy = 0.0
        self.end_wrench = np.zeros((2, 6))
        self.end_power = 0.0

    def _make_pattern(self) -> None:
        """CSC pattern of full 6x6 blocks, block tridiagonal, link after link."""
        n = self.n_links
        first = np.maximum(np.arange(n) - 1, 0)
        last = np.minimum(np.arange(n) + 2, n)
        counts = np.repeat(6 * (last - first), 6)
        self._indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        self._indices = np.concatenate([np.tile(np.arange(6 * a, 6 * z), 6) for a, z in zip(first, last, strict=True)]).astype(
            np.int64
        )

    @property
    def mass(self) -> float:
        """Total mass, kg."""
        return float(self.link_mass.sum())

    def reset(self) -> None:
        """Frames of the ends back to the start, so that a second run gives the same bits."""
        self.end_frames[:] = self._frame0
        self._place_frames(0.0, self.end_frames)
        self._updated_at[:] = np.nan
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

    def initial_q(self) -> np.ndarray:
        """Centres and quaternions at the start."""
        return self._q0.copy()

    def initial_v(self) -> np.ndarray:
        """Velocities at the start: the rod turns about its centre of mass as if rigid."""
        arm = self.centres(self._q0) - self.centre_of_mass(self._q0)
        v = np.empty((self.n_links, 6))
        v[:, :3] = self._velocity + np.cross(self._angular_velocity, arm)
        v[:, 3:] = self._angular_velocity
        return v.ravel()

    def pattern(self) -> tuple[np.ndarray, np.ndarray]:
        """Block-tridiagonal pattern of 6x6 blocks, link after link along the rod."""
        return self._indptr, self._indices

    def _place_frames(self, t: float, frame: np.ndarray) -> None:
        """Fill the poses (2, 7) of the frames of the ends at a time; those that a body carries are left alone."""
        for k, end in enumerate(self.ends):
            if end.motion is None and end.on is None:
                frame[k] = self._frame0[k]
            elif end.motion is not None:
                frame[k, :3], frame[k, 3:] = driven_pose(self._frame0[k], end.motion, t)

    def _move_frames(self, t: float, dt: float) -> None:
        """Poses of the frames at the start and the end of the step, and their constant velocities between.

        Those of the energy-momentum step lead there by Cayley's map.
        """
        self._place_frames(t, self.end_frames)
        self._place_frames(t + dt, self._frame_next)
        self._end_motion[:] = 0.0
        for k, end in enumerate(self.ends):
            if end.motion is not None:
                old, new = self.end_frames[k], self._frame_next[k]
                motion = self._end_motion[k, 6 * k : 6 * k + 6]
                motion[:3] = (new[:3] - old[:3]) / dt
                turn = quaternion_multiply(new[3:], quaternion_conjugate(old[3:]))
                motion[3:] = (cayley_from_quaternion(turn) if self._conserving else vector_from_quaternion(turn)) / dt

    def place_end(self, k: int, pose: np.ndarray) -> None:
        """Put the frame of end k (0 start, 1 end) that a body carries to a pose (7,)."""
        self.end_frames[k] = self._frame_next[k] = pose

    def move_end(self, k: int, twist: np.ndarray) -> None:
        """Say the velocity and angular velocity (6,) that the frame of end k, carried by a body, has in the step."""
        self._end_motion[k, 6 * k : 6 * k + 6] = twist

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
        """Update strains, forces and energy of all joints for poses q and frames, by default the current ones.

        No work when nothing moved.
        """
        poses, joints = self._poses, self.n_links + 1
        poses[0], poses[-1] = self.end_frames if frames is None else frames
        poses[1:-1] = q.reshape(-1, 7)
        moved = kernels.moved_from(poses, self._updated_at)
        if moved == 0:
            return
        self._updated_at[:] = poses
        if moved == 2 or joints <= 3:
            self._energy = self._fill_joints(slice(0, joints))
            return
        self._fill_joints(slice(0, 2))
        self._fill_joints(slice(joints - 2, joints))
        self._energy = np.nan

    def _fill_joints(self, own: slice) -> float:
        """Fill what is known of joints, two or more, at the poses; return their energy, J."""
        sides = slice(own.start, own.stop + 1)
        poses, rotation = self._poses[sides], self._rotation[sides]
        kernels.rotations(poses, rotation)
        energy = kernels.joint_states(
            poses, rotation, self._arm[sides], self._kind[own], self._stiffness[own], self._rest[own], self._ceiling,
            self._geometry[own], self._force[own], self._strain[own],
        )  # fmt: skip
        return float(energy)

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
        implicit = settings.theta * settings.dt
        self._conserving, self._acting = settings.conserving, self._force
        self._move_frames(t, settings.dt)
        self.update_joints(q)
        self._start_rotation[:] = self._rotation
        self._before[:] = self._poses
        if settings.conserving:
            momentum_kernels.joint_starts(self._poses, self._rotation, self._arm, self._kind, self._rest, self._joint_starts)
            if settings.strain_damping > 0.0:
                self._evenness.begin(self._strain.ravel().copy())
        self._known_response[:] = 0.0
        self._external_forces(q, t + implicit, settings.gravity, external.reshape(-1, 6))
        kernels.joint_blocks(self._kind, self._arm, self._geometry, self._stiffness_factor(settings), implicit, self._blocks)
        b[:] = external
        kernels.system(
            self._rotation, v, self.link_mass, self.link_inertia, self._damping, self._kind, self._force, self._blocks,
            implicit * self._end_pull, self._end_motion, implicit, self.elastic.rayleigh_alpha, self._response, data, b,
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
        kernels.advance(q.reshape(-1, 7), v_hat, v_hat, self.link_inertia, time, 1.0, out.reshape(-1, 7), v_new)
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
        """Fill M (v_hat - v)/(theta dt) + C v + D v_hat + beta J^T K J v_hat + f - f_ext, f and J^T K J at ``moved``.

        M and C are those of the start of the step: the spin of a link is advanced by the torque on it, see ``advance``.
        """
        implicit, beta = settings.theta * settings.dt, self.elastic.rayleigh_beta
        if settings.conserving:
            self._conserving_residual(moved, start, settings, v_hat, external, out, inertia)
            return
        frames = self.end_frames.copy()
        for k, end in enumerate(self.ends):
            if end.motion is not None:
                twist = implicit * self._end_motion[k, 6 * k : 6 * k + 6]
                frames[k, :3] += twist[:3]
                frames[k, 3:] = quaternion_multiply(quaternion_from_vector(twist[3:]), frames[k, 3:])
        self.update_joints(moved, frames)
        self._external_forces(moved, start.t + implicit, settings.gravity, external.reshape(-1, 6))
        self._velocities[1:-1] = v_hat.reshape(-1, 6)
        for k in range(2):
            self._velocities[-k] = self._end_motion[k, 6 * k : 6 * k + 6]
        kernels.equations(
            self._start_rotation, start.v, v_hat, self.link_mass, self.link_inertia, self._damping, self._force, implicit,
            self.elastic.rayleigh_alpha, out, inertia,
        )  # fmt: skip
        if beta > 0.0:
            kernels.joint_blocks(self._kind, self._arm, self._geometry, beta, 0.0, self._damping_blocks)
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
        dt = settings.dt
        self._velocities[1:-1] = v_hat.reshape(-1, 6)
        frames = np.empty((2, 7))
        momentum_kernels.turned_poses(start.q.reshape(-1, 7), v_hat, dt, self._after[1:-1])
        for k, end in enumerate(self.ends):
            self._velocities[-k] = self._end_motion[k, 6 * k : 6 * k + 6]
            if end.on is None:
                self._after[-k] = self._frame_next[k]
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
            self._joint_starts, self._start_rotation, self._after, self._turn, self._arm, self._kind, self._stiffness, self._rest,
            self._evenness.damping(settings) + self.elastic.rayleigh_beta / dt, self._force, self._end_rotation, self._step_force,
        )  # fmt: skip
        kernels.take_pulls(self._kind, self._step_force, self._ceiling, self._geometry)
        self._acting = self._step_force
        self._responses[:] = 0.0
        axes = 0.5 * (self._start_rotation[[1, -2], 2::3] + self._end_rotation[[1, -2], 2::3])
        self._external_forces(moved, start.t + 0.5 * dt, settings.gravity, external.reshape(-1, 6), axes)
        momentum_kernels.step_equations(
            self._before[1:-1], self._after[1:-1], start.v, v_hat, self.link_mass, self.link_inertia, self._damping,
            self._step_force, dt, self.elastic.rayleigh_alpha, out, inertia,
        )  # fmt: skip
        out -= external

    def tangent(self, settings: StepSettings, data: np.ndarray) -> None:
        """Fill A as ``assemble`` does, stiffness at the poses of the last residual, M and C at the start of the step.

        In an energy-momentum step M is there too.
        """
        implicit, factor = settings.theta * settings.dt, self._stiffness_factor(settings)
        known = factor if settings.conserving else implicit
        kernels.joint_blocks(self._kind, self._arm, self._geometry, known, implicit, self._blocks)
        for k, joint in enumerate((0, self.n_links)):
            kernels.joint_response(self._blocks, joint, self._velocities[joint : joint + 2].ravel(), self._known_response[k])
        if known != factor:
            kernels.joint_blocks(self._kind, self._arm, self._geometry, factor, implicit, self._blocks)
        rotation = self._rotation if settings.conserving else self._start_rotation
        kernels.system(
            rotation, np.zeros(self.n_v), self.link_mass, self.link_inertia, self._damping, self._kind, self._force,
            self._blocks, implicit * self._end_pull, np.zeros((2, 12)), implicit, self.elastic.rayleigh_alpha,
            np.zeros((2, 12)), data, np.empty(self.n_v),
        )  # fmt: skip

    def accept(self, v_hat: np.ndarray) -> None:
        """Work out the wrench on the frames of the ends from the velocities of the step."""
        self.end_power = 0.0
        for k, joint in enumerate((0, self.n_links)):
            if self._kind[joint] == kernels.ABSENT:
                continue
            own, link = slice(6 * k, 6 * k + 6), slice(6 - 6 * k, 12 - 6 * k)
            motion = self._end_motion[k].copy()
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
            kernels.advance(poses, v, v_hat, self.link_inertia, settings.dt, settings.theta, poses_new, v_new)
        self.end_frames[:] = self._frame_next

    def calm(
        self, q: np.ndarray, v_hat: np.ndarray, v: np.ndarray, settings: StepSettings, held: np.ndarray, push: np.ndarray
    ) -> None:
        """Calm the joints, those of ends that no body carries too, whose frames then bear the impulse."""
        poses, (rates, rates_hat, on_frame) = np.empty((self.n_links + 2, 7)), np.zeros((3, self.n_links + 2, 6))
        poses[0], poses[-1] = self.end_frames
        poses[1:-1], rates[1:-1] = q.reshape(-1, 7), v.reshape(-1, 6)
        if not self._evenness.touched:
            rates_hat[1:-1] = v_hat.reshape(-1, 6)
        kind = self._kind.copy()
        for k, end in enumerate(self.ends):
            rates[-k] = self._end_motion[k, 6 * k : 6 * k + 6]
            rates_hat[-k] = 0.0 if self._evenness.touched else rates[-k]
            kind[-k] = kernels.ABSENT if end.on is not None else kind[-k]
        calm_joints(
            poses, self._arm, kind, self._stiffness, CALMING * settings.strain_damping * settings.dt**2,
            *self._padded, rates_hat, rates, on_frame,
        )  # fmt: skip
        v.reshape(-1, 6)[:] = rates[1:-1]
        wrench = on_frame[[0, -1]] / settings.dt
        self.end_wrench += wrench
        self.end_power -= float((wrench * rates[[0, -1]]).sum())

    def touch(self, touched: bool) -> None:
        """Damp in full from the next step on, or less where it moves evenly."""
        self._evenness.touched = touched

    def inertia(self, q: np.ndarray, q_new: np.ndarray) -> np.ndarray:
        """Mass and inertia of each link where it ends, one block after the other, (2 n_links, 3, 3)."""
        blocks = np.empty((2 * self.n_links, 3, 3))
        kernels.link_masses(q_new.reshape(-1, 7), self.link_mass, self.link_inertia, blocks)
        return blocks

    def momentum(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Linear momentum, kg m/s."""
        return np.asarray(self.link_mass @ v.reshape(-1, 6)[:, :3])

    def centre_of_mass(self, q: np.ndarray) -> np.ndarray:
        """Centre of mass, (3,), m."""
        return np.asarray(self.link_mass @ self.centres(q) / self.mass)

    def angular_momentum(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Angular momentum about the origin, (3,), kg m^2/s."""
        kernels.spins(q.reshape(-1, 7), v, self.link_inertia, self._spin)
        orbit = np.cross(self.centres(q), self.link_mass[:, None] * v.reshape(-1, 6)[:, :3])
        return np.asarray((orbit + self._spin).sum(axis=0))

    def kinetic_energy(self, q: np.ndarray, v: np.ndarray) -> float:
        """Kinetic energy, J."""
        kernels.spins(q.reshape(-1, 7), v, self.link_inertia, self._spin)
        velocity = v.reshape(-1, 6)
        x, y, z = velocity.T[:3]
        return float(0.5 * (self.link_mass @ (x * x + y * y + z * z) + (velocity[:, 3:] * self._spin).sum()))

    def elastic_energy(self, q: np.ndarray) -> float:
        """Elastic energy of the joints, those of held ends included, J; frames as the last step left them."""
        self.update_joints(q)
        if math.isnan(self._energy):  # only the frames have moved since all joints were
            self._energy = self._fill_joints(slice(0, self.n_links + 1))
        return self._energy

    # ---- balance

    def balance(self, step: BodyStep) -> BodyForces:
        """Sum up the forces of a step; frames that no body carries hold their ends from outside the system, and may move."""
        outside = step.external.reshape(-1, 6)[:, :3].sum(axis=0) + self.drag(step.v_hat)
        held = -self.end_wrench[[end.on is None for end in self.ends], :3].sum(axis=0)
        return BodyForces(outside, held, None, self.end_power, float(np.abs(step.b.reshape(-1, 6)[:, :3]).sum()))

    def acted(self) -> dict[str, np.ndarray]:
        """Wrench (2, 6) on the frames of the ends, N and N m, and the power (1,) of those that move, W."""
        return {"end_wrench": self.end_wrench.copy(), "end_power": np.array([self.end_power])}

    def take_acted(self, acted: Mapping[str, np.ndarray]) -> None:
        """Answer that these acted at the ends."""
        self.end_wrench[:], self.end_power = acted["end_wrench"], float(acted["end_power"][0])

    def drag(self, v_hat: np.ndarray) -> np.ndarray:
        """Total force (3,), N, of the damping that acts against the world: per metre and mass-proportional."""
        factor = self._damping[:, 0] + self.elastic.rayleigh_alpha * self.link_mass
        return np.asarray(-factor @ v_hat.reshape(-1, 6)[:, :3])

    def centres(self, q: np.ndarray) -> np.ndarray:
        """Centres of the links, (n, 3), m; a view."""
        return q.reshape(-1, 7)[:, :3]

    def quaternions(self, q: np.ndarray) -> np.ndarray:
        """Orientations of the links, (n, 4), w first; a view."""
        return q.reshape(-1, 7)[:, 3:]

    def axes(self, q: np.ndarray) -> np.ndarray:
        """World rotations of the links, (n, 3, 3), their columns the axes 1, 2, 3."""
        rotation = np.empty((self.n_links, 9))
        kernels.rotations(np.ascontiguousarray(q.reshape(-1, 7)), rotation)
        return rotation.reshape(-1, 3, 3)

    def centre_line(self, q: np.ndarray) -> np.ndarray:
        """Return the ends of the links along the rod, (n + 1, 3), m: the two tips, and between links the middle of their ends."""
        half = 0.5 * self.lengths[:, None] * self.axes(q)[:, :, 2]
        before, behind = self.centres(q) - half, self.centres(q) + half
        return np.concatenate([before[:1], 0.5 * (behind[:-1] + before[1:]), behind[-1:]])

    def strains(self, q: np.ndarray) -> np.ndarray:
        """Strains of the joints beyond rest, (n + 1, 6): shear along 1 and 2, stretch, bending about 1 and 2 and twist (1/m).

        In the axes half-way between the two links; the first and the last row are the joints of the ends, zero where free.
        """
        self.update_joints(q)
        return self._strain / self._joint_lengths[:, None]

    def joint_wrenches(self, q: np.ndarray) -> np.ndarray:
        """Elastic force (N) and moment (N m) in each joint, (n + 1, 6), world.

        What lies behind the joint exerts them on what lies before it, about the end of the link before it; so a pull has
        a force along axis 3. The first and the last row are the joints of the ends, zero where free.
        """
        self.update_joints(q)
        out = np.zeros((self.n_links + 1, 6))
        out[:, :3] = self._force[:, :3]
        lever = self._arm[:-1, None] * self._rotation[:-1].reshape(-1, 3, 3)[:, :, 2]
        out[:, 3:] = -self._force[:, 3:6] - np.cross(lever, self._force[:, :3])
        return out

    def joints(self) -> RodJoints:
        """Joints of the rod; views, not to be changed."""
        return RodJoints(self._kind, self._arm, self._stiffness, self._rest)

    def frames_at(self, t: float) -> np.ndarray:
        """Position (m) and quaternion of the frames of start and end at a time, (2, 7)."""
        frames = np.empty((2, 7))
        self._place_frames(t, frames)
        return frames

    # ---- contact

    @property
    def contact_radius(self) -> float:
        """Contact radius of the section, m."""
        return self.section.contact_radius

    def contact_points(self, q: np.ndarray, nodes: np.ndarray) -> np.ndarray:
        """Centres of links, (k, 3), m."""
        return self.centres(q)[nodes]

    def contact_rows(self, nodes: np.ndarray) -> np.ndarray:
        """Six rows a link."""
        return 6 * nodes

    def deforming(self, part: Part) -> Deforming | None:
        """Its centre line, to its two ends."""
        return strand(self.centres(self._q0), self.lengths, self.section.contact_radius)

    # ---- outputs

    what = "rod"
    holds_rods = False
    advice = "is a rod; hold an end of it by fs.RodEnd with a motion when you add it."

    def hold_frame(self, link: int, pose: np.ndarray, radius: float) -> RodFrame:
        """Frame fixed to the nearest link."""
        return RodFrame(self, pose)

    def drawing(self, link: int) -> Drawing:
        """Centre line at the start."""
        return Drawing("line", self.centre_line(self._q0))

    def frame(self, q: np.ndarray, v: np.ndarray, force: np.ndarray, names: Collection[str]) -> DrawnFrame:
        """Centre line with its fields and the radius of its contacts."""
        line, v, force = self.centre_line(q), v.reshape(-1, 6)[:, :3], force.reshape(-1, 6)[:, :3]
        fields = rod_fields(
            self.centre_line(self._q0), line, self.axes(q), self.quaternions(q), v, force, self.joint_wrenches(q), names
        )  # fmt: skip
        return DrawnFrame(line, {"radius": np.full(len(line), self.section.contact_radius)} | fields)

    def sensor_kinds(self, link: int) -> frozenset[str]:
        """Energy, and the wrench at each end that something holds."""
        held = {side for side, end in zip(("start", "end"), self.ends, strict=True) if end.kind != "free"}
        return super().sensor_kinds(link) | held

    def held_end(self, end: int) -> tuple[np.ndarray, np.ndarray]:
        """Wrench of the last step on the frame of an end, and where that is."""
        return self.end_wrench[end], self.end_frames[end, :3]

    def describe(self) -> dict[str, Any]:
        """Its material, links, section, ends and damping."""
        return {
            "material": describe_elastic(self.elastic), "links": self.n_links, "length_m": float(self.lengths.sum()),
            "section": vars(self.section), "ends": [end.kind for end in self.ends],
            "translational_damping_Nspm2": self.translational_damping,
            "rotational_damping_Nmsprad_pm": self.rotational_damping,
        }  # fmt: skip

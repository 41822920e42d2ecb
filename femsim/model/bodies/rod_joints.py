"""The joints of a rod: what they are, and their strains, forces and energy at poses of what they join."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from femsim.model.bodies import rod_kernels as kernels


@dataclass(frozen=True, repr=False)
class RodJoints:
    """The joints of a rod as numbers, joint k between poses k and k + 1: frame of the start, the n links, frame of the end.

    Attributes
    ----------
    kind : ndarray, (n + 1,), int64
        ``ABSENT``, ``FULL`` or ``BALL`` of :mod:`femsim.model.bodies.rod_kernels`.
    arm : ndarray, (n + 2,), m
        Half the length of each link, zero for the frames.
    stiffness : ndarray, (n + 1, 6), N/m and N m/rad
        Along axes 1, 2, 3 of the section and about them.
    rest : ndarray, (n + 1, 3), rad
        Turn of each joint at rest.
    ceiling : float, N
        Largest pull that enters A as tension stiffness.
    """

    kind: np.ndarray
    arm: np.ndarray
    stiffness: np.ndarray
    rest: np.ndarray
    ceiling: float

    def __repr__(self) -> str:
        return f"<RodJoints of {len(self.arm) - 2} links>"

    @property
    def lengths(self) -> np.ndarray:
        """Length of rod that each joint bends, (n + 1,), m: from centre to centre, at the ends half a link."""
        return np.asarray(self.arm[:-1] + self.arm[1:])


class StrainedJoints:
    """The joints of a rod at the poses for which they were updated last.

    Parameters
    ----------
    joints : RodJoints
        What they are.

    Attributes
    ----------
    poses : ndarray, (n + 2, 7)
        Positions (m) and quaternions: frame of the start, the n links, frame of the end.
    rotation : ndarray, (n + 2, 9)
        The same turns as matrices, row by row.
    geometry : ndarray, (n + 1, GEOMETRY)
        What the blocks of A need, see :mod:`femsim.model.bodies.rod_kernels`.
    force : ndarray, (n + 1, 9), N and N m
        Elastic force of each joint, and its moments on the two sides, as the kernels have them.
    strain : ndarray, (n + 1, 6), m and rad
        Gap and turn of each joint beyond rest, in the axes half-way.
    """

    def __init__(self, joints: RodJoints) -> None:
        n = len(joints.arm)
        self.joints = joints
        self.poses = np.empty((n, 7))
        self.rotation = np.empty((n, 9))
        self.geometry = np.zeros((n - 1, kernels.GEOMETRY))
        self.force = np.empty((n - 1, 9))
        self.strain = np.empty((n - 1, 6))
        self._updated_at = np.full((n, 7), np.nan)
        self._energy = 0.0

    def __repr__(self) -> str:
        return f"<StrainedJoints: {len(self.joints.kind)}>"

    def forget(self) -> None:
        """Work all out at the next update."""
        self._updated_at[:] = np.nan

    def update(self, q: np.ndarray, frames: np.ndarray) -> None:
        """Update all for poses of the links, (7 n,), and frames of the ends, (2, 7); no work where nothing moved."""
        poses, joints = self.poses, len(self.joints.kind)
        poses[0], poses[-1] = frames
        poses[1:-1] = q.reshape(-1, 7)
        moved = kernels.moved_from(poses, self._updated_at)
        if moved == 0:
            return
        self._updated_at[:] = poses
        if moved == 2 or joints <= 3:
            self._energy = self._fill(slice(0, joints))
            return
        self._fill(slice(0, 2))
        self._fill(slice(joints - 2, joints))
        self._energy = np.nan

    def _fill(self, own: slice) -> float:
        """Fill what is known of joints, two or more, at the poses; return their energy, J."""
        sides, joints = slice(own.start, own.stop + 1), self.joints
        poses, rotation = self.poses[sides], self.rotation[sides]
        kernels.rotations(poses, rotation)
        energy = kernels.joint_states(
            poses, rotation, joints.arm[sides], joints.kind[own], joints.stiffness[own], joints.rest[own], joints.ceiling,
            self.geometry[own], self.force[own], self.strain[own],
        )  # fmt: skip
        return float(energy)

    @property
    def energy(self) -> float:
        """Elastic energy, J."""
        if math.isnan(self._energy):  # only the frames have moved since all joints were
            self._energy = self._fill(slice(0, len(self.joints.kind)))
        return self._energy

    def wrenches(self) -> np.ndarray:
        """Elastic force (N) and moment (N m), (n + 1, 6), world: of what lies behind on the end of the link before."""
        out = np.zeros((len(self.joints.kind), 6))
        out[:, :3] = self.force[:, :3]
        lever = self.joints.arm[:-1, None] * self.rotation[:-1].reshape(-1, 3, 3)[:, :, 2]
        out[:, 3:] = -self.force[:, 3:6] - np.cross(lever, self.force[:, :3])
        return out

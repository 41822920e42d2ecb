"""The frames that hold the ends of a rod: where they are, and how they move in a step."""

from __future__ import annotations

import numpy as np

from contact.metrics import is_finite
from femsim.base.errors import InputError
from femsim.base.rotations import (
    cayley_from_quaternion,
    quaternion_conjugate,
    quaternion_from_vector,
    quaternion_multiply,
    vector_from_quaternion,
)
from femsim.model.bodies.rod_end import RodEnd
from femsim.model.drives import driven_pose


class EndFrames:
    """Frames of the two ends of a rod; of free ones they stay at the start.

    Parameters
    ----------
    rod : str
        Name of the rod.
    ends : (RodEnd, RodEnd)
        What happens at the start and at the end.
    start : ndarray, (2, 7)
        Positions (m) and quaternions at the start.

    Attributes
    ----------
    now, next : ndarray, (2, 7)
        Where they are as a step starts, and as it ends.
    motion : ndarray, (2, 12), m/s and rad/s
        Their constant velocities in the step, as those of the two sides of the joint of each end; zero for the link.
    """

    def __init__(self, rod: str, ends: tuple[RodEnd, RodEnd], start: np.ndarray) -> None:
        self._rod, self._ends, self._start = rod, ends, start
        self.now, self.next = start.copy(), start.copy()
        self.motion = np.zeros((2, 12))

    def __repr__(self) -> str:
        return f"<EndFrames: {self._ends[0].kind} and {self._ends[1].kind}>"

    def reset(self) -> None:
        """Back to the start, so that a second run gives the same bits."""
        self.now[:] = self._start
        self.place(0.0, self.now)

    def place(self, t: float, frames: np.ndarray) -> None:
        """Fill the poses (2, 7) at a time; those that a body carries are left alone; InputError where one is not finite."""
        for k, end in enumerate(self._ends):
            if end.motion is None and end.on is None:
                frames[k] = self._start[k]
            elif end.motion is not None:
                frames[k, :3], frames[k, 3:] = driven_pose(self._start[k], end.motion, t)
                if not is_finite(frames[k]):
                    raise InputError(
                        f"the motion of the {('start', 'end')[k]} of {self._rod} is not finite at {t:g} s; correct the function "
                        "of time that it follows."
                    )

    def move(self, t: float, dt: float, conserving: bool) -> None:
        """Begin a step: poses at its start and its end, and the constant velocities between.

        Those of the energy-momentum step lead there by Cayley's map.
        """
        self.place(t, self.now)
        self.place(t + dt, self.next)
        self.motion[:] = 0.0
        for k, end in enumerate(self._ends):
            if end.motion is not None:
                old, new, twist = self.now[k], self.next[k], self.twist(k)
                twist[:3] = (new[:3] - old[:3]) / dt
                turn = quaternion_multiply(new[3:], quaternion_conjugate(old[3:]))
                twist[3:] = (cayley_from_quaternion(turn) if conserving else vector_from_quaternion(turn)) / dt

    def twist(self, k: int) -> np.ndarray:
        """Velocity and angular velocity (6,) of the frame of end k in the step; a view."""
        return self.motion[k, 6 * k : 6 * k + 6]

    def after(self, time: float) -> np.ndarray:
        """Poses (2, 7) at a time since the start of the step, of those that follow a motion; others stay."""
        frames = self.now.copy()
        for k, end in enumerate(self._ends):
            if end.motion is not None:
                moved = time * self.twist(k)
                frames[k, :3] += moved[:3]
                frames[k, 3:] = quaternion_multiply(quaternion_from_vector(moved[3:]), frames[k, 3:])
        return frames

"""What happens at an end of a rod: free, or held by a frame that stands, moves or is carried."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from femsim.base.errors import InputError, meant, naming_fields
from femsim.model.bodies import rod_kernels as kernels
from femsim.model.drives import PoseFunction

EndLoad = Callable[[float], tuple[np.ndarray, np.ndarray]]
RodEndKind = Literal["free", "clamped", "hinged"]

#: What other programs call them.
_OTHER_WORDS = {
    "fixed": "clamped",
    "clamp": "clamped",
    "built_in": "clamped",
    "pinned": "hinged",
    "ball": "hinged",
    "none": "free",
}
#: Kinds of ends, and the kernels' numbers of their joints.
END_KINDS = {"free": kernels.ABSENT, "clamped": kernels.FULL, "hinged": kernels.BALL}


class Holder(Protocol):
    """Something of a scene that can hold an end, by the names of its parts; ``femsim.scene.checks.Handle`` is one."""

    @property
    def parts(self) -> tuple[str, ...]:
        """Names of its parts, the main one first."""
        ...


@naming_fields
@dataclass(frozen=True)
class RodEnd:
    """What happens at one end of a rod.

    A held end hangs on a frame by the elastic joint of half a link: "clamped" in all six ways (with twice the stiffness of an
    inner joint), "hinged" by a ball joint of 2 E A / L in all three directions. The frame is where the rod's end is at the start.
    It stands, follows ``motion``, or is carried by another body of the scene, which then feels the rod.

    Parameters
    ----------
    kind : {"free", "clamped", "hinged"}
        How it is held.
    motion : callable, optional
        ``motion(t) -> (displacement, rotation vector)`` of the frame from its pose at the start, m and rad, world, e.g. a
        :class:`~femsim.model.drives.Motion`; a frame without it stands still. A rotation is about the end of the rod.
    load : callable, optional
        ``load(t) -> (force, torque)`` on a free end, N and N m, world; acts at the tip, half a link from the last centre.
    on : Handle or str, optional
        What carries the frame: a rigid body, a gripper (its base), a link of a gripper ("gripper.left"), a soft body or an
        obstacle that the scene has already. The end may lie in a rigid holder, but no further from its surface than the rod's
        contact radius, see :class:`femsim.model.couplings.HeldEnd`.

    Raises
    ------
    InputError
        An unknown kind, a motion or holder of a free end, a motion beside a holder, or a load on a held end.
    """

    kind: RodEndKind = "free"
    motion: PoseFunction | None = None
    load: EndLoad | None = None
    on: Holder | str | None = None

    def __post_init__(self) -> None:
        """Check that the parts fit together."""
        if self.kind not in END_KINDS:
            question = meant(self.kind, END_KINDS, _OTHER_WORDS)
            raise InputError(f"rod end: kind is {self.kind!r};{question} allowed are 'free', 'clamped' and 'hinged'.")
        if self.kind == "free" and self.motion is not None:
            raise InputError("rod end: a free end has no frame that could follow a motion; make it 'clamped' or 'hinged'.")
        if self.kind == "free" and self.on is not None:
            raise InputError("rod end: a free end has no frame that a body could carry; make it 'clamped' or 'hinged'.")
        if self.on is not None and self.motion is not None:
            raise InputError(
                "rod end: it has a motion and a holder, but its frame can follow only one; drive the holder instead of the end."
            )
        if self.kind != "free" and self.load is not None:
            raise InputError(
                f"rod end: a {self.kind} end takes no load, its frame carries it; make the end 'free' or move the frame."
            )

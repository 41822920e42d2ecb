"""Joints between bodies, by kind: rows of the contact problem that hold two frames, or nodes and a frame, together (`joined`)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np

from femsim.base.rotations import cross, cross_matrix, quaternion_conjugate, quaternion_multiply, quaternion_to_matrix
from femsim.model.couplings import Constraint
from femsim.model.joined import Joined, Side, Strength

JointKind = Literal["ball", "hinge", "slider", "weld"]


class Joint(Joined):
    """A joint between two frames, whose first axes are that of the joint; its kinds are below, by name in :data:`JOINTS`.

    Parameters
    ----------
    name, sides, strength
        See :class:`Joined`.
    limits : (float, float), rad or m
        Range of a joint with a ``free`` motion, counted from the start; infinite for none.
    friction : float, N m or N
        Dry friction of this motion.

    Attributes
    ----------
    has_axis : bool
        Whether it has an axis, which must then be given.
    free : slice or None
        Part of the wrench along this free motion, of a joint that slides along its axis the force and of one that turns about it
        the torque, on which limits and friction act; its row is the last of ``_held``. None for a joint without such a motion.
    position : float, rad or m
        How far this motion went; whole turns count.
    """

    has_axis = False
    free: slice | None = None

    def __init__(
        self,
        name: str,
        sides: tuple[Side, Side],
        strength: Strength,
        limits: tuple[float, float] = (-np.inf, np.inf),
        friction: float = 0.0,
    ) -> None:
        self.limits, self.friction = limits, friction
        self._poses = (sides[0].pose, sides[1].pose)
        self._at = sides[0].pose[:3]
        self._axes = quaternion_to_matrix(sides[1].pose[3:7])
        super().__init__(name, sides, strength)

    def reset(self) -> None:
        """Also the position: 0."""
        super().reset()
        self.position = self._arrived = 0.0

    def _arrive(self) -> None:
        """Keep the position that limits bound."""
        self._arrived = self.position

    # ------------------------------------------------------------------ what a kind of joint is

    @abstractmethod
    def _opening(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Errors of what is held, (p,), m and rad, at the poses (7,) of both sides; set ``position``."""

    @abstractmethod
    def _held(self, relative: np.ndarray, axes: np.ndarray) -> np.ndarray:
        """Rate of the opening, (p, m), and then of the position, by the motion (6, m) of the first side relative to the second.

        The columns of ``axes``, (3, 3), are the axes of the second side.
        """

    @abstractmethod
    def _reaction(self, lam: np.ndarray, axes: np.ndarray) -> np.ndarray:
        """Force and torque on the first side, (6,), of forces of the opening (p,)."""

    # ------------------------------------------------------------------ what follows from it

    def _read(self, q: Sequence[np.ndarray]) -> np.ndarray:
        given = iter(q)
        a, b = (side.place(None if side.frame is None else next(given)) for side in self.sides)
        self._poses = a, b
        return self._opening(a, b)

    def _points(self) -> np.ndarray:
        return self._poses[0][None, :3].copy()

    def _jacobian(self, shift: np.ndarray) -> np.ndarray:
        point = self._at = self._poses[0][:3] + shift[0]
        first, second = (side.motion(point, pose) for side, pose in zip(self.sides, self._poses, strict=True))
        self._axes = quaternion_to_matrix(self._poses[1][3:7])
        return self._held(np.hstack([first, -second]), self._axes)

    def _pull(self, number: int, lam: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        force = self._wrench(lam)[:3] * (1.0, -1.0)[number]
        return force, np.outer(self._at - self._poses[number][:3], force)

    def _more(self, G: np.ndarray) -> Constraint:
        """Return the equalities, then those of limits and friction."""
        own = super()._more(G)
        if self.free is None:
            return own
        more: list[tuple[np.ndarray, float, float, float]] = []
        rate = G[len(own.G)]
        known = 0.0 if self._about is None else float(rate @ self._about)
        for sign, bound in zip((1.0, -1.0), self.limits, strict=True):
            if np.isfinite(bound):
                gap = sign * (self._arrived - bound) / self._dt - sign * known
                more.append((sign * rate, gap, 0.0, np.inf))
        if self.friction > 0.0:
            more.append((rate, 0.0, -self.friction, self.friction))
        if not more:
            return own
        rows, offset, low, high = zip(*more, strict=True)
        return Constraint(
            np.vstack([own.G, *rows]),
            np.concatenate([own.offset, offset]),
            np.concatenate([own.low, low]),
            np.concatenate([own.high, high]),
            np.concatenate([own.vector, len(own.G) + np.arange(len(more))]),
        )

    def _wrench(self, lam: np.ndarray) -> np.ndarray:
        out, more = self._reaction(lam, self._axes), lam[len(self.opening) :]
        if len(more) and self.free is not None:
            signs = [sign for sign, bound in zip((1.0, -1.0), self.limits, strict=True) if np.isfinite(bound)]
            signs += [1.0] * (len(more) - len(signs))
            out[self.free] += float(np.dot(signs, more)) * self._axes[:, 0]
        return out

    def accept(self, v_hat: np.ndarray) -> None:
        """Count the power of friction, which it takes from its bodies."""
        if self.friction > 0.0 and len(self._lam) and not self.broken:
            self.power = float(self._lam[-1] * (self._G[-1] @ v_hat))
            self.lost = -self.power

    def memory(self) -> dict[str, np.ndarray]:
        """Also the position, which counts whole turns."""
        return super().memory() | {"position": np.array([self.position])}

    def recall(self, memory: Mapping[str, np.ndarray]) -> None:
        """Take it back."""
        super().recall(memory)
        self.position = self._arrived = float(memory["position"][0])


class Ball(Joint):
    """Leaves all turns free."""

    def _opening(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.asarray(a[:3] - b[:3])

    def _held(self, relative: np.ndarray, axes: np.ndarray) -> np.ndarray:
        return relative[:3]

    def _reaction(self, lam: np.ndarray, axes: np.ndarray) -> np.ndarray:
        return np.concatenate([lam[:3], np.zeros(3)])


class Hinge(Joint):
    """Leaves the turn about its axis free."""

    has_axis = True
    free = slice(3, 6)

    def _opening(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        turn, axes = _turn(a, b), quaternion_to_matrix(b[3:7])
        self.position += _nearest(2.0 * float(np.arctan2(turn[1], turn[0])) - self.position)
        tilt = cross(axes[:, 0], quaternion_to_matrix(a[3:7])[:, 0])
        return np.concatenate([a[:3] - b[:3], axes[:, 1:].T @ tilt])

    def _held(self, relative: np.ndarray, axes: np.ndarray) -> np.ndarray:
        about = axes.T @ relative[3:]
        return np.vstack([relative[:3], about[1:], about[:1]])

    def _reaction(self, lam: np.ndarray, axes: np.ndarray) -> np.ndarray:
        return np.concatenate([lam[:3], axes[:, 1:] @ lam[3:5]])


class Slider(Joint):
    """Leaves sliding along the axis of the second side free."""

    has_axis = True
    free = slice(0, 3)

    def _pull(self, number: int, lam: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """Give that on the first side; on the second one its force turns along, and moves."""
        return super()._pull(number, lam) if number == 0 else None

    def _opening(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        away, axes = a[:3] - b[:3], quaternion_to_matrix(b[3:7])
        self.position = float(axes[:, 0] @ away)
        return np.concatenate([axes[:, 1:].T @ away, _twist(a, b)])

    def _held(self, relative: np.ndarray, axes: np.ndarray) -> np.ndarray:
        along = axes.T @ relative[:3]
        return np.vstack([along[1:], axes.T @ relative[3:], along[:1]])

    def _reaction(self, lam: np.ndarray, axes: np.ndarray) -> np.ndarray:
        return np.concatenate([axes[:, 1:] @ lam[:2], axes @ lam[2:5]])


class Weld(Joint):
    """Leaves nothing free."""

    def _opening(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.concatenate([a[:3] - b[:3], _twist(a, b)])

    def _held(self, relative: np.ndarray, axes: np.ndarray) -> np.ndarray:
        return np.vstack([relative[:3], axes.T @ relative[3:]])

    def _reaction(self, lam: np.ndarray, axes: np.ndarray) -> np.ndarray:
        return np.concatenate([lam[:3], axes @ lam[3:6]])


#: Kinds of joints between two frames, by name.
JOINTS: dict[str, type[Joint]] = {"ball": Ball, "hinge": Hinge, "slider": Slider, "weld": Weld}


def _turn(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Quaternion from the second to the first of two poses, (4,), in the axes of the second."""
    return quaternion_multiply(quaternion_conjugate(b[3:7]), a[3:7])


def _twist(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Turn from the second to the first as a vector, (3,), rad where it is small."""
    turn = _turn(a, b)
    return np.asarray(np.copysign(2.0, turn[0]) * turn[1:])


class Glue(Joined):
    """Nodes of a soft body that keep their places in a frame: of a rigid body, a rod or the world.

    Parameters
    ----------
    name, sides, strength
        See :class:`Joined`; the first side is the soft body, whose frame says which nodes.
    points : ndarray, (k, 3), m
        Their places at the start.
    """

    def __init__(self, name: str, sides: tuple[Side, Side], strength: Strength, points: np.ndarray) -> None:
        pose = sides[1].pose
        self._local = (points - pose[:3]) @ quaternion_to_matrix(pose[3:7])
        self._at, self._pose, self._arms = points.copy(), pose, points - pose[:3]
        super().__init__(name, sides, strength)

    def _read(self, q: Sequence[np.ndarray]) -> np.ndarray:
        frame = self.sides[0].frame
        assert frame is not None
        self._at = q[0][frame.rows].reshape(-1, 3)
        self._pose = self.sides[1].place(q[1] if len(q) > 1 else None)
        self._arms = self._local @ quaternion_to_matrix(self._pose[3:7]).T
        return np.asarray((self._at - self._pose[:3] - self._arms).ravel())

    def _points(self) -> np.ndarray:
        return self._at.copy()

    def _jacobian(self, shift: np.ndarray) -> np.ndarray:
        m, second = 3 * len(self._at), self.sides[1]
        G = np.zeros((m, m + second.size))
        G[:, :m] = np.eye(m)
        if second.size:
            motion = second.motion(self._pose[:3], self._pose)
            arms = self._at + shift - self._pose[:3]
            G[:, m:] = (cross_matrix(arms).reshape(m, 3) @ motion[3:]) - np.tile(motion[:3], (len(arms), 1))
        return G

    def _pull(self, number: int, lam: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        force = -lam.reshape(-1, 3)
        return force.sum(axis=0), self._arms.T @ force

    def _vectors(self) -> np.ndarray:
        """Return that of the force on each node."""
        return np.arange(len(self.opening)) // 3 * 3

    def _wrench(self, lam: np.ndarray) -> np.ndarray:
        force = lam.reshape(-1, 3)
        arms = self._at - self._at.mean(axis=0)
        return np.concatenate([force.sum(axis=0), np.cross(arms, force).sum(axis=0)])


def _nearest(angle: float) -> float:
    """Turn an angle, rad, into that between -pi and pi."""
    return float((angle + np.pi) % (2.0 * np.pi) - np.pi)

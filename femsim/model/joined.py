"""What all joints share: two sides, when their rows are formed, what their forces are, and that they may break.

A joint closes: with c its opening (m and rad), each step finds velocities v_hat with c = 0 where it ends. Linearised about a
velocity v that is c(v) / dt + G (v_hat - v) = 0 with forces G^T lam_r, rows of :mod:`contact.rows`, and A has what rigid bodies
that turn under the last of these resist; at the start of a step, with v unknown, c / dt + G v_hat = 0. In an energy-momentum step
G is that of the mean of the places where a step begins and ends, about which forces turn; then joints of points do no work and
keep the angular momentum exactly, as the rod ends of :class:`femsim.model.couplings.HeldEnd` do. Multipliers instead of springs:
nothing gives way.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from femsim.base.rotations import cross_matrix
from femsim.model.bodies.body import StepSettings
from femsim.model.couplings import Constraint, CouplingDefaults, about_centres
from femsim.model.frames import HoldFrame, OnNodes, width_of

#: Part of its bound that a force of friction may lack where the joint counts as moving.
_SLIDES = 1e-9


@dataclass(frozen=True)
class Side:
    """One side of a joint.

    Attributes
    ----------
    body : int
        Number of the body in the system; -1 for the world.
    frame : HoldFrame or None
        Frame that it carries; None where it stands still.
    pose : ndarray, (7,)
        Pose of the frame at the start: position (m) and quaternion.
    """

    body: int
    frame: HoldFrame | None
    pose: np.ndarray

    @property
    def size(self) -> int:
        """Number of rows of v that move the frame."""
        return 0 if self.frame is None else len(self.frame.rows)

    def place(self, q: np.ndarray | None) -> np.ndarray:
        """Pose (7,) at coordinates of the body."""
        return self.pose if self.frame is None or q is None else self.frame.place(q)

    def motion(self, point: np.ndarray, pose: np.ndarray) -> np.ndarray:
        """Velocity of a point (3,) fixed to the frame, and angular velocity, by the rows, (6, size), where it was placed last."""
        if self.frame is None:
            return np.zeros((6, 0))
        G = self.frame.jacobian().copy()
        G[:3] -= cross_matrix(point - pose[:3]) @ G[3:]
        return G


@dataclass(frozen=True)
class Strength:
    """What a joint bears before it breaks, at the end of the step in which it bears more; N and N m, infinite for ever."""

    force: float = np.inf
    torque: float = np.inf


class Joined(CouplingDefaults):
    """What all joints share: when rows are formed, what their forces are, and that they may break.

    Parameters
    ----------
    name : str
        Name in messages and of the sensor.
    sides : (Side, Side)
        First and second side; the first is no part of the world.
    strength : Strength
        When it breaks.

    Attributes
    ----------
    wrench : ndarray, (6,), N and N m
        Mean force and torque of the last step on the first side, about the joint.
    broken : bool
        Whether it has.
    opening : ndarray, (p,), m and rad
        Error of the equalities where the last ``prepare`` led.
    pushed : ndarray, (m,), N and N m
        Mean force of the last step on the rows of both sides.
    """

    kind = "reaction"
    joins = True

    def __init__(self, name: str, sides: tuple[Side, Side], strength: Strength) -> None:
        self.name, self.sides, self.strength = name, sides, strength
        moving = [side for side in sides if side.frame is not None]
        self.rows: tuple[tuple[int, np.ndarray], ...] = tuple((s.body, s.frame.rows) for s in moving if s.frame is not None)
        frames = [(side.body, sign, side.frame) for side, sign in zip(sides, (1.0, -1.0), strict=True) if side.frame is not None]
        #: links of robots that carry a side, by the number of the body, and in which direction the joint pulls each
        self._carriers = [(body, link) for body, _, frame in frames for link in frame.carriers]
        self._signs = np.array([sign for _, sign, frame in frames for _ in frame.carriers])[:, None]
        nothing = np.zeros(0, dtype=np.int64)
        #: sides whose rigid bodies turn under the force of the joint, and the columns of what turns them
        self._turning = self._turning_sides()
        own = [np.meshgrid(columns, columns, indexing="ij") for _, columns in self._turning]
        self.entries: tuple[np.ndarray, np.ndarray] | None = (
            np.concatenate([nothing, *(rows.ravel() for rows, _ in own)]),
            np.concatenate([nothing, *(columns.ravel() for _, columns in own)]),
        )
        self.opening = np.zeros(0)
        self._dt, self._conserving = 0.0, False
        self._about: np.ndarray | None = None
        self._start: list[np.ndarray] = []
        self._G, self._kept, self._holding = np.zeros((0, 0)), np.zeros((0, 0)), np.zeros(0, dtype=np.bool_)
        self._bounded, self._vector = self._holding, nothing
        self.reset()

    def reset(self) -> None:
        """Forget what earlier steps did: whole, and without forces."""
        self._lam, self._slides, self.broken = np.zeros(0), False, False
        self.power, self.wrench = 0.0, np.zeros(6)
        self._reach, self._pulls = np.zeros((len(self._carriers), 3)), np.zeros((len(self._carriers), 6))
        self.forces = tuple(np.zeros(3) for _ in self.rows)
        self.pushed = np.zeros(sum(side.size for side in self.sides))

    # ------------------------------------------------------------------ what a joint is

    @abstractmethod
    def _read(self, q: Sequence[np.ndarray]) -> np.ndarray:
        """Place both sides at coordinates of their bodies; opening of the equalities, (p,)."""

    def _arrive(self) -> None:
        """Keep what rows ask of the place that was read last, beside the opening."""

    @abstractmethod
    def _jacobian(self, shift: np.ndarray) -> np.ndarray:
        """Velocities of the openings by the rows of both sides, (p, m), where they were placed last.

        ``shift``, (k, 3), m, is the offset from there to the points about which forces turn.
        """

    @abstractmethod
    def _points(self) -> np.ndarray:
        """Points on the first side at which forces act, (k, 3), m, where it was placed last."""

    @abstractmethod
    def _wrench(self, lam: np.ndarray) -> np.ndarray:
        """Force and torque about the joint on the first side, (6,), of forces of the rows (p,)."""

    def _pull(self, number: int, lam: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """Force (3,) of forces of the rows (p,) on a side, and sum (3, 3) of the arms from its frame times forces at their ends.

        None where it is no force that the side only turns under.
        """
        return None

    def _turning_sides(self) -> list[tuple[int, np.ndarray]]:
        """Sides on rigid links, but for two of one body, by number, and the columns of the block that turn them."""
        sizes, found = (0, self.sides[0].size, self.sides[0].size + self.sides[1].size), []
        if self.sides[0].body == self.sides[1].body:
            return []
        for number, side in enumerate(self.sides):
            if side.frame is not None and side.frame.rigid:
                found.append((number, np.arange(sizes[number] + 3, sizes[number + 1])))
        return found

    def _more(self, G: np.ndarray) -> Constraint:
        """Return all rows of a joint: the equalities, which come first in G, and what a kind of joint adds to them."""
        p = len(self.opening)
        free, offset = np.full(p, np.inf), self.opening / self._dt
        if self._about is not None:
            offset = offset - G[:p] @ self._about
        if len(self._vector) != p:
            self._vector = self._vectors()
        return Constraint(G[:p], offset, -free, free, self._vector)

    def _vectors(self) -> np.ndarray:
        """First row of the force or of the torque that each row of the opening is a component of, (p,)."""
        pushes = [bool(self._wrench(unit)[:3].any()) for unit in np.eye(len(self.opening))]
        return np.array([pushes.index(one) for one in pushes], dtype=np.int64)

    # ------------------------------------------------------------------ in a step

    def prepare(self, q: Sequence[np.ndarray], t: float, v_hat: np.ndarray | None = None) -> None:
        """Read the opening at the start of the step, or where ``v_hat``, (m,), leads; G in between."""
        self._about = None if v_hat is None else np.array(v_hat)
        if self.broken:
            self.opening = np.zeros_like(self.opening)
            self._sum_up(np.zeros(6))
            self.pushed = np.zeros_like(self.pushed)
            return
        if v_hat is None:
            self._start = [each.copy() for each in q]
            self.opening = self._read(q)
            self._arrive()
            self._G = self._jacobian(np.zeros_like(self._points()))
            return
        mean = arms = np.zeros((0, 3))
        if self._conserving:
            self._read(self._start)
            mean, arms = 0.5 * self._points(), 0.5 * self._levers()
        self.opening = self._read(self._moved(v_hat))
        self._arrive()
        if self._conserving:
            mean, arms = mean + 0.5 * self._points(), arms + 0.5 * self._levers()
        self._read(q)
        self._reach = arms if self._conserving else self._levers()
        here = self._points()
        self._G = self._jacobian(mean - here if self._conserving else np.zeros_like(here))

    def _levers(self) -> np.ndarray:
        """Arms from the centres of mass of the links that carry a side to the joint, (k, 3), m, where it was placed last."""
        if not self._carriers:
            return np.zeros((0, 3))
        centres = [side.frame.centres() for side in self.sides if side.frame is not None]
        return np.asarray(self._points().mean(axis=0) - np.concatenate(centres))

    def _moved(self, v_hat: np.ndarray) -> list[np.ndarray]:
        """Coordinates at the end of the step."""
        out, at = [], 0
        moving = [side for side in self.sides if side.frame is not None]
        for side, start in zip(moving, self._start, strict=True):
            assert side.frame is not None
            out.append(side.frame.moved(start, v_hat[at : at + side.size], self._dt))
            at += side.size
        return out

    def assemble(self, settings: StepSettings, block: np.ndarray, b: np.ndarray) -> None:
        """Take the settings; nothing of a joint is in A or b."""
        self._dt, self._conserving = settings.dt, settings.conserving
        block[:], b[:] = 0.0, 0.0

    def tangent(self, settings: StepSettings, block: np.ndarray, b: np.ndarray, *, positive: bool) -> bool:
        """Fill what the last forces of the rows resist turns of rigid bodies with; not what they lead on.

        That would make A indefinite wherever light struts bear much.
        """
        self._dt, self._conserving = settings.dt, settings.conserving
        block[:], b[:] = 0.0, 0.0
        if self.broken:
            return False
        at, lam = 0, self.row_forces
        for number, columns in self._turning:
            size = len(columns) ** 2
            if (pull := self._pull(number, lam)) is not None:
                frame = self.sides[number].frame
                assert frame is not None
                K = settings.theta * settings.dt * turning_stiffness(frame.jacobian(), *pull)
                block[at : at + size] = positive_part(K).ravel()
            at += size
        return False

    def exerted(self) -> np.ndarray:
        """No force beside those of the rows."""
        return np.zeros(sum(side.size for side in self.sides))

    def constraint(self) -> Constraint | None:
        """Rows of the joint where the last ``prepare`` placed it; None where it is broken."""
        return None if self.broken else self._more(self._G)

    def constraint_at(self, q: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Rows that velocities at coordinates of its bodies keep, (p, m): equalities, limits that press, friction that holds.

        Also the numbers of the vectors that they are components of, (p,).
        """
        if self.broken:
            return np.zeros((0, sum(side.size for side in self.sides))), np.zeros(0, dtype=np.int64)
        opening, about = self.opening, self._about
        self._read(q)
        self._arrive()
        constraint = self._more(self._jacobian(np.zeros_like(self._points())))
        self.opening, self._about = opening, about
        lam = self.row_forces
        bound = constraint.high - constraint.low
        pressing = (constraint.low == -np.inf) | (lam != 0.0)
        held = (np.abs(lam) < (1.0 - _SLIDES) * constraint.high) & (not self._slides)
        self._bounded = np.isfinite(bound)
        self._holding = np.where(self._bounded, held, pressing)
        self._kept = constraint.G[self._holding]
        return self._kept, constraint.vector[self._holding]

    def release(self, impulse: np.ndarray) -> bool:
        """Let go of dry friction where it cannot keep the joint at rest at the end of the step."""
        if self.broken or self._slides or not (self._bounded & self._holding).any():
            return False
        lam = self.row_forces.copy()
        lam[self._holding] += impulse / self._dt
        high = self._more(self._G).high
        self._slides = bool((np.abs(lam[self._bounded]) > high[self._bounded]).any())
        return self._slides

    def strength_of(self, row: int) -> float:
        """Force of a row of the last :meth:`constraint`, N or N m, at which the joint breaks by itself; infinite for ever."""
        unit = np.zeros(len(self.row_forces))
        unit[row] = 1.0
        wrench, strength = self._wrench(unit), self.strength
        parts = ((wrench[:3], strength.force), (wrench[3:], strength.torque))
        return min((most / norm for part, most in parts if (norm := float(np.linalg.norm(part))) > 0.0), default=np.inf)

    def break_off(self) -> None:
        """Break, whatever it bears."""
        self.broken = True

    def take_rows(self, forces: np.ndarray) -> None:
        """Take the forces of its rows in the problem that was solved, (p,)."""
        self._lam, self._slides = np.array(forces), False
        self.pushed = self._more(self._G).G.T @ self._lam
        self._sum_up(self._wrench(self._lam))

    def add_impulse(self, impulse: np.ndarray) -> None:
        """Add what rows of :meth:`constraint_at` did for the velocities at the end of the step, (p,), N s.

        Now all that acted is known: the joint breaks where that is more than it bears. Not before, since the velocities at the
        end are those of bodies that it held in the step.
        """
        if self.broken:
            return
        lam = np.zeros(len(self._holding))
        lam[self._holding] = impulse / self._dt
        self.pushed = self.pushed + self._kept.T @ lam[self._holding]
        late = self._wrench(lam)
        self._sum_up(self.wrench + late)
        self._pulls = self._pulls + self._signs * about_centres(late, self._levers())
        force, torque = (float(np.linalg.norm(part)) for part in (self.wrench[:3], self.wrench[3:]))
        self.broken = force > self.strength.force or torque > self.strength.torque

    @property
    def row_forces(self) -> np.ndarray:
        """Forces of its rows in the last solve, (p,); zero before the first one."""
        constraint = self._more(self._G)
        p = len(constraint.offset)
        return self._lam if len(self._lam) == p else np.zeros(p)

    def push(self) -> np.ndarray:
        """Force of its rows on those of v, (m,), where the last ``prepare`` placed it."""
        return np.zeros(len(self.pushed)) if self.broken else np.asarray(self._more(self._G).G.T @ self.row_forces)

    def _sum_up(self, wrench: np.ndarray) -> None:
        force = wrench[:3].copy()
        self.wrench = wrench
        signs = [sign for side, sign in zip(self.sides, (1.0, -1.0), strict=True) if side.frame is not None]
        self.forces = tuple(sign * force for sign in signs)

    def accept(self, v_hat: np.ndarray) -> None:
        """Nothing depends on the velocity."""

    def settle(self, q: Sequence[np.ndarray]) -> None:
        """Tell what it did to links in the step, and how wide its patches are now."""
        self._pulls = self._signs * about_centres(self.wrench, self._reach)
        frames = [side.frame for side in self.sides if side.frame is not None]
        self.width = 1.0 if self.broken else min(width_of(frame, each) for frame, each in zip(frames, q, strict=True))

    # ------------------------------------------------------------------ what is kept and read

    def memory(self) -> dict[str, np.ndarray]:
        """Give the forces of the last step and whether it is broken."""
        return {"forces": self._lam, "broken": np.array([float(self.broken)])}

    def recall(self, memory: Mapping[str, np.ndarray]) -> None:
        """Take them back."""
        self._lam, self.broken = np.array(memory["forces"]), bool(memory["broken"][0])
        if self.broken:
            self._sum_up(np.zeros(6))

    def acted(self) -> dict[str, np.ndarray]:
        """Also the wrench, (6,), the pulls on links, (k, 6), and whether it is broken, (1,)."""
        return super().acted() | {"wrench": self.wrench, "pulls": self._pulls, "broken": np.array([float(self.broken)])}

    def take_acted(self, acted: Mapping[str, np.ndarray]) -> None:
        """Answer that these acted."""
        super().take_acted(acted)
        self.wrench, self._pulls = np.array(acted["wrench"]), np.array(acted["pulls"])

    def reading(self) -> tuple[float, ...]:
        """Force and torque on the first side, about the joint."""
        return tuple(self.wrench.tolist())

    def about(self, q: Sequence[np.ndarray]) -> np.ndarray:
        """Place of the joint on the first side, or mean of the glued nodes."""
        first = self.sides[0]
        return first.place(None if first.frame is None else q[0])[:3].copy()

    def pull_on(self, body: int, link: int) -> np.ndarray:
        """Wrench of the joint on a link and what hangs on it."""
        own = [pull for carrier, pull in zip(self._carriers, self._pulls, strict=True) if carrier == (body, link)]
        return np.sum([np.zeros(6), *own], axis=0)


def turning_stiffness(G: np.ndarray, force: np.ndarray, moments: np.ndarray) -> np.ndarray:
    """Stiffness against turns, (m - 3, m - 3), N m, of forces that keep their directions on a frame that a rigid link carries.

    It is -sum_k f_k . d2x_k/dq_i dq_j. On a chain of links the velocity of a point by row j, G_j, turns with each row i before j:
    d2x/dq_i dq_j = w_i x G_j, with w_i what i turns by. The three rows of a ball joint of a robot count as joints in turn.

    Parameters
    ----------
    G : ndarray, (6, m)
        Velocity of the frame and angular velocity by its rows: those of a base, of which the first three turn nothing, and then
        those of joints from there on.
    force : ndarray, (3,), N
        Sum of the forces.
    moments : ndarray, (3, 3), N m
        Sum of a_k f_k^T over them, a_k the arm from the frame to where each acts.
    """
    along, turn = G[:3, 3:], G[3:, 3:]
    by = (cross_matrix(force) @ turn).T @ along + turn.T @ (moments - np.trace(moments) * np.eye(3)) @ turn
    out = np.triu(by) + np.triu(by, 1).T
    out[:3, :3] = 0.5 * (by[:3, :3] + by[:3, :3].T)  # turns of a base are no coordinates
    return np.asarray(-out)


def positive_part(K: np.ndarray) -> np.ndarray:
    """Part of a symmetric matrix (m, m) without its negative eigenvalues."""
    values, vectors = np.linalg.eigh(K)
    out = (vectors * np.maximum(values, 0.0)) @ vectors.T
    return np.asarray(0.5 * (out + out.T))


class NodeFrame(OnNodes):
    """Nodes of a soft body as the first side of a joint: where their mean is, without a turn.

    Parameters
    ----------
    nodes : ndarray of int, (k,)
        The nodes.
    """

    def __init__(self, nodes: np.ndarray) -> None:
        super().__init__(nodes)
        self.lever = np.zeros(3)

    def place(self, q: np.ndarray) -> np.ndarray:
        """Mean position, no turn."""
        return np.concatenate([q[self.rows].reshape(-1, 3).mean(axis=0), [1.0, 0.0, 0.0, 0.0]])

    def jacobian(self) -> np.ndarray:
        """Velocity of their mean by those of the nodes, (6, 3k); no angular velocity."""
        k = len(self.nodes)
        return np.vstack([np.tile(np.eye(3) / k, k), np.zeros((3, 3 * k))])

"""What joins bodies in the system: symmetric blocks of A between their rows, and rod ends that other bodies hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from contact import Mesh, Shape, closest_points_on_triangles, signed_distance
from femsim.base.errors import InputError
from femsim.base.rotations import cross_matrix
from femsim.base.wrenches import move_wrench
from femsim.model.bodies.body import StepSettings
from femsim.model.bodies.rod import Rod
from femsim.model.frames import HoldFrame, width_of


class Constraint(NamedTuple):
    """Rows of ``contact.rows`` between the rows of v of a coupling.

    Attributes
    ----------
    G : ndarray, (p, m)
        Velocity of each by the rows of v.
    offset : ndarray, (p,), m/s or rad/s
        Added to it.
    low, high : ndarray, (p,), N or N m
        Bounds of the forces.
    vector : ndarray of int, (p,)
        Number of the vector that each row is a component of, at most that of the row.
    """

    G: np.ndarray
    offset: np.ndarray
    low: np.ndarray
    high: np.ndarray
    vector: np.ndarray


class Coupling(Protocol):
    """A force between bodies that is implicit in A.

    The system calls in this order: ``prepare`` before the bodies fill their blocks, ``assemble`` after that, and ``accept`` with
    the velocity that was solved for. Then ``prepare`` where that leads, with this velocity, and ``exerted``, from which follows
    whether the equations of the step hold there; if not, ``assemble`` again, and so on. At last ``settle``, when the bodies have
    their new coordinates. A step may be put back and taken anew (:mod:`femsim.step.advance`): what the next step reads beside
    the coordinates goes through ``memory``.

    Attributes
    ----------
    name : str
        Name in messages.
    kind : str
        Kind of the coupling; sensors of the kinds that name it among their ``couplings`` record its ``reading``.
    rows : tuple of (int, ndarray)
        Each body that it acts on, by its number in the system, and the rows of that body's v, in order. The block of the
        coupling is that of all these rows.
    entries : tuple of ndarray or None
        Row and column, within the block, of its entries, each pair once; None where it is dense.
    power : float, W
        What it did from outside on the bodies in the last step; 0 where it only passes on or stores.
    lost : float, W
        What the friction of a joint took of it.
    forces : tuple of ndarray, (3,), N
        Total force on each of these bodies in the last step.
    joins : bool
        Whether it holds them together by rows of the contact problem, :meth:`constraint`, instead of forces in A and b.
    opening : ndarray, m and rad
        What these rows lack where the last ``prepare`` led; empty without rows.
    pushed : ndarray, (m,), N and N m
        What they did to the rows of v in the last step; empty without rows.
    width : float
        Least width of a patch of nodes by which it holds a body, where the last ``settle`` found it, relative to that at rest;
        1 without a patch.
    """

    name: str
    kind: str
    rows: tuple[tuple[int, np.ndarray], ...]
    entries: tuple[np.ndarray, np.ndarray] | None
    forces: tuple[np.ndarray, ...]
    power: float
    lost: float
    joins: bool
    opening: np.ndarray
    pushed: np.ndarray
    width: float

    def prepare(self, q: Sequence[np.ndarray], t: float, v_hat: np.ndarray | None = None) -> None:
        """Read the coordinates of its bodies where it acts: at the start of the step, or where ``v_hat``, (m,), leads.

        Forces are those of time ``t`` (s), theta dt after the step begins.
        """
        ...

    def assemble(self, settings: StepSettings, block: np.ndarray, b: np.ndarray) -> None:
        """Fill what it adds to A, symmetric positive semi-definite, (m, m) or the values of ``entries``, and its force, (m,).

        The force is that at rest in the place of the last ``prepare``; at the start of a step it is what b gains.
        """
        ...

    def tangent(self, settings: StepSettings, block: np.ndarray, b: np.ndarray, *, positive: bool) -> bool:
        """Fill the same where the last ``prepare`` led; without ``positive`` the block may be indefinite.

        Returns whether the last one that was filled may be another one than this, which is ``positive``.
        """
        ...

    def exerted(self) -> np.ndarray:
        """Force on its rows, (m,), at the place and the velocity of the last ``prepare``."""
        ...

    def reset(self) -> None:
        """Forget what earlier runs left."""
        ...

    def constraint(self) -> Constraint | None:
        """Rows by which it holds its bodies instead of forces, as the last ``prepare`` and ``assemble`` say; None for none."""
        ...

    def constraint_at(self, q: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Rows that velocities keep at coordinates of its bodies, (p, m), and numbers of the vectors they are of, (p,)."""
        ...

    def release(self, impulse: np.ndarray) -> bool:
        """Let go, for this step, of rows of the last ``constraint_at`` of which impulses (p,), N s, ask too much; say whether."""
        ...

    def strength_of(self, row: int) -> float:
        """Force of a row of the last ``constraint``, N or N m, at which it breaks; infinite for ever."""
        ...

    def break_off(self) -> None:
        """Break, whatever it bears."""
        ...

    def take_rows(self, forces: np.ndarray) -> None:
        """Take the forces of its rows, (p,), before ``accept``."""
        ...

    def add_impulse(self, impulse: np.ndarray) -> None:
        """Take what the rows of the last ``constraint_at`` did to the velocities at the end of the step, (p,), N s."""
        ...

    def push(self) -> np.ndarray:
        """Force of its rows on those of v, (m,), where the last ``prepare`` placed it and as large as they were last."""
        ...

    @property
    def row_forces(self) -> np.ndarray:
        """Last forces of its rows, as many as it has now."""
        ...

    def accept(self, v_hat: np.ndarray) -> None:
        """Take the representative velocity of its rows, (m,)."""
        ...

    def settle(self, q: Sequence[np.ndarray]) -> None:
        """Read the coordinates of its bodies at the end of the step."""
        ...

    def memory(self) -> dict[str, np.ndarray]:
        """Give what the next step reads beside the coordinates; arrays that do not change."""
        ...

    def recall(self, memory: Mapping[str, np.ndarray]) -> None:
        """Go back to where :meth:`memory` was asked; ``settle`` follows."""
        ...

    def acted(self) -> dict[str, np.ndarray]:
        """Name what acted in the last step, for sensors and the balance of forces."""
        ...

    def take_acted(self, acted: Mapping[str, np.ndarray]) -> None:
        """Answer from now on that this acted, in the form of :meth:`acted`: the mean of a step that was taken in sub-steps."""
        ...

    def reading(self) -> tuple[float, ...]:
        """Numbers of a sensor on it after a step, in the order of the columns of its kind; none without such a kind."""
        ...

    def about(self, q: Sequence[np.ndarray]) -> np.ndarray:
        """Point (3,), m, world, that a torque of :meth:`reading` is about, at coordinates of the bodies of ``rows``."""
        ...

    def pull_on(self, body: int, link: int) -> np.ndarray:
        """Mean wrench of the last step on a link of a body (by its number) on a joint, and on all that hangs on it, (6,).

        N, and N m about the centre of mass of the link where that is as each force acts.
        """
        ...

    def mounted(self) -> tuple[str, np.ndarray] | None:
        """Name of a body that it drives, and its wrench on it, (6,), N and N m, for a mount sensor; None where it drives none."""
        ...

    def describe(self) -> dict[str, list[float] | float | None]:
        """Numbers for run.json of what drives a body, SI; empty where it drives none."""
        ...


class CouplingDefaults:
    """Answers of a coupling that remembers nothing and acts by its forces and its power alone."""

    forces: tuple[np.ndarray, ...]
    power: float
    lost = 0.0
    joins = False
    opening: np.ndarray = np.zeros(0)
    pushed: np.ndarray = np.zeros(0)
    width = 1.0

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {getattr(self, 'name', '')!r}>"

    def reset(self) -> None:
        """Nothing is kept from run to run."""

    def tangent(self: Coupling, settings: StepSettings, block: np.ndarray, b: np.ndarray, *, positive: bool) -> bool:
        """Fill what ``assemble`` fills, which is semi-definite."""
        self.assemble(settings, block, b)
        return False

    def constraint(self) -> Constraint | None:
        """None: it acts by forces."""
        return None

    def constraint_at(self, q: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """No rows."""
        return np.zeros((0, 0)), np.zeros(0, dtype=np.int64)

    def release(self, impulse: np.ndarray) -> bool:
        """Its rows bear all."""
        return False

    def strength_of(self, row: int) -> float:
        """Its rows bear all."""
        return np.inf

    def break_off(self) -> None:
        """Nothing of it breaks."""

    def take_rows(self, forces: np.ndarray) -> None:
        """No rows."""

    def add_impulse(self, impulse: np.ndarray) -> None:
        """No rows."""

    def push(self) -> np.ndarray:
        """No rows."""
        return np.zeros(0)

    @property
    def row_forces(self) -> np.ndarray:
        """No rows."""
        return np.zeros(0)

    def memory(self) -> dict[str, np.ndarray]:
        """Nothing is remembered."""
        return {}

    def recall(self, memory: Mapping[str, np.ndarray]) -> None:
        """Nothing is remembered."""

    def acted(self) -> dict[str, np.ndarray]:
        """Name the forces on the bodies, (k, 3), N, and the power, (1,), W."""
        return {"forces": np.array(self.forces), "power": np.array([self.power])}

    def take_acted(self, acted: Mapping[str, np.ndarray]) -> None:
        """Answer that these acted."""
        self.forces, self.power = tuple(acted["forces"]), float(acted["power"][0])

    def about(self, q: Sequence[np.ndarray]) -> np.ndarray:
        """Any point: it reads no torque."""
        return np.zeros(3)

    def pull_on(self, body: int, link: int) -> np.ndarray:
        """Nothing: it does not act on links."""
        return np.zeros(6)

    def mounted(self) -> tuple[str, np.ndarray] | None:
        """None: it drives no body."""
        return None

    def describe(self) -> dict[str, list[float] | float | None]:
        """Nothing: it drives no body."""
        return {}


class HeldEnd(CouplingDefaults):
    """End of a rod whose frame another body carries.

    The joint is that of any held end (half a link, see ``Rod``), with the same linearisation. With G the
    Jacobian of the frame and [B_ff, B_fl; B_lf, B_ll] the matrix of the joint, of which the rod has B_ll, A gains
    G^T B_ff G and G^T B_fl, b loses G^T f. Of what the change of G would add, A keeps the tension stiffness of the frame's
    lever d: the pull F . d across d, as at a loaded tip of a rod, by which a pendulum swings back; so A stays positive definite.
    The rod's ``end_wrench`` is what the holder feels.

    In an energy-momentum step the joint sees the frame where the step begins and where it ends, and G turns about the mean
    of both places, so that moments cancel exactly, and on rigid holders work too.

    Parameters
    ----------
    name : str
        Name in messages.
    rod : Rod
        The rod.
    end : int
        0 for its start, 1 for its end.
    frame : HoldFrame
        Frame of the holder.
    rod_index, holder_index : int
        Numbers of the rod and the holder in the system.
    """

    kind = "held end"

    def __init__(self, name: str, rod: Rod, end: int, frame: HoldFrame, *, rod_index: int, holder_index: int) -> None:
        self.name, self._rod, self._end, self._frame = name, rod, end, frame
        self._size = len(frame.rows)
        own = np.arange(6) if end == 0 else np.arange(rod.n_v - 6, rod.n_v)
        self.rows: tuple[tuple[int, np.ndarray], ...] = ((holder_index, frame.rows), (rod_index, own))
        self.entries: tuple[np.ndarray, np.ndarray] | None = None
        self.forces: tuple[np.ndarray, ...] = (np.zeros(3), np.zeros(3))
        self.power = 0.0
        self._conserving, self._dt = False, 0.0
        self._arms, self._pulls = np.zeros((len(frame.carriers), 3)), np.zeros((len(frame.carriers), 6))

    def pull_on(self, body: int, link: int) -> np.ndarray:
        """Wrench of the rod on a link and what hangs on it, where this link carries the end."""
        if self.rows[0][0] != body or link not in self._frame.carriers:
            return np.zeros(6)
        return np.asarray(self._pulls[self._frame.carriers.index(link)])

    def acted(self) -> dict[str, np.ndarray]:
        """Also the pulls on links, (k, 6)."""
        return super().acted() | {"pulls": self._pulls}

    def take_acted(self, acted: Mapping[str, np.ndarray]) -> None:
        """Answer that these acted."""
        super().take_acted(acted)
        self._pulls = acted["pulls"]

    def reading(self) -> tuple[float, ...]:
        """No sensor of its own: those of the rod read it."""
        return ()

    def prepare(self, q: Sequence[np.ndarray], t: float, v_hat: np.ndarray | None = None) -> None:
        """Place the frame where the holder has it."""
        if v_hat is None:
            self._start = q[0].copy()
            self._place(q[0])
            return
        if self._conserving:
            both = [self._start, self._frame.moved(self._start, v_hat[: self._size], self._dt)]
            (first, arms), (last, moved) = (self._reach(coordinates) for coordinates in both)
            pose = self._place(q[0])
            mean, self._arms = 0.5 * (first[:3] + last[:3]), 0.5 * (arms + moved)
            self._jacobian[:3] -= cross_matrix(mean - pose[:3]) @ self._jacobian[3:]
            self._rod.end_at(self._end, last)
        else:
            self._place(q[0])
            self._arms = self._reach(q[0])[1]
        self.accept(v_hat)

    def _reach(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Pose (7,) of the frame, and arms (k, 3), m, to it from the centres of mass of the links that carry it."""
        pose = self._frame.place(q)
        return pose, pose[:3] - self._frame.centres()

    def _place(self, q: np.ndarray) -> np.ndarray:
        """Place the frame where the holder has it at coordinates q; its pose (7,)."""
        pose = self._frame.place(q)
        self._rod.place_end(self._end, pose)
        self._jacobian = self._frame.jacobian()
        return pose

    def assemble(self, settings: StepSettings, block: np.ndarray, b: np.ndarray) -> None:
        """Fill the parts of the joint that act on the holder."""
        self._conserving, self._dt = settings.conserving, settings.dt
        B, force = self._rod.end_joint(self._end)
        G, m = self._jacobian, self._size
        block[:] = 0.0
        own = G.T @ B[:6, :6] @ G
        block[:m, :m] = 0.5 * (own + own.T)
        block[:m, m:] = G.T @ B[:6, 6:]
        block[m:, :m] = block[:m, m:].T
        lever, turn = self._frame.lever, G[3:]
        pull = settings.theta * settings.dt * float(-force[:3] @ lever)
        if pull > 0.0:
            axis = lever / np.linalg.norm(lever)
            block[:m, :m] += pull * (turn.T @ turn - np.outer(axis @ turn, axis @ turn))
        b[:m] = -G.T @ force[:6]
        b[m:] = 0.0

    def exerted(self) -> np.ndarray:
        """Force of the joint on the holder; that on the rod is in the rod's own equations."""
        out = np.zeros(self._size + 6)
        out[: self._size] = -self._jacobian.T @ self._rod.end_force(self._end)[:6]
        return out

    def accept(self, v_hat: np.ndarray) -> None:
        """Tell the rod how the frame moves in the step."""
        self._rod.move_end(self._end, self._jacobian @ v_hat[: self._size])

    def settle(self, q: Sequence[np.ndarray]) -> None:
        """Take the force of the step and place the frame where the holder has it now."""
        force = self._rod.end_wrench[self._end, :3].copy()
        self.forces, self._pulls = (force, -force), about_centres(self._rod.end_wrench[self._end], self._arms)
        self._rod.place_end(self._end, self._frame.place(q[0]))
        self.width = width_of(self._frame, q[0])


def about_centres(wrench: np.ndarray, arms: np.ndarray) -> np.ndarray:
    """Return a wrench (6,), N and N m, about the points that arms (k, 3), m, lead from to where it acts, (k, 6)."""
    if not len(arms):
        return np.zeros((0, 6))
    forces = np.tile(wrench[:3], (len(arms), 1))
    return np.hstack([forces, move_wrench(forces, wrench[3:], arms)])


def holder_gap(
    shapes: Sequence[tuple[Shape, np.ndarray, np.ndarray]], rotation: np.ndarray, translation: np.ndarray, points: np.ndarray
) -> np.ndarray:
    """Signed distance of points (k, 3) to the shapes of a part at a pose, (k,), m; -inf for a part that has none."""
    gap = np.full(len(points), np.inf if shapes else -np.inf)
    for shape, turn, place in shapes:
        local = ((points - translation) @ rotation - place) @ turn
        distance = signed_distance(shape, np.ascontiguousarray(local))[0]
        if isinstance(shape, Mesh):  # far from it its grid says only that
            for k in np.flatnonzero(np.isinf(distance)):
                closest = closest_points_on_triangles(local[k], shape.points[shape.triangles])
                distance[k] = np.linalg.norm(closest - local[k], axis=1).min()
        gap = np.minimum(gap, distance)
    return gap


def check_reach(what: str, holder: str, distance: float, radius: float) -> None:
    """Refuse an end that lies further from its holder than the rod's contact radius."""
    if distance > radius * (1.0 + 1e-9):
        raise InputError(
            f"{what} is held by {holder!r}, but lies {1e3 * distance:.4g} mm from its surface; allowed is the rod's contact "
            f"radius of {1e3 * radius:.4g} mm, so move the end or the holder."
        )

"""A hand that pulls a point of a part towards a place, like a rubber band: what the mouse does in a live view."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as sla

from femsim.run.simulation import Simulation
from femsim.step.push import Push

#: Acceleration that "weight" means, also where a scene has no gravity, m/s^2.
_G = 9.81
#: Largest stiffness of the band, of the mass that its point feels, and largest damping, of the mass of the body: times 1/dt^2 and
#: 1/dt. A force that is constant within a step swings up at 4 and 2.
_STIFFEST, _TOUGHEST = 0.5, 0.5
#: Most that it pulls, times the strength and the weight; and part of the length by which it may jerk the point further in a step.
_MOST, _JERK = 3.0, 0.05


class Hand:
    """Holds a point of a part, and pulls it by :meth:`Simulation.push`.

    The band pulls by ``strength`` times the weight of the body where it is stretched by ``length``, unless steps are too long for
    so stiff a band, by three times that at most, and is damped by the velocity of the centre of the part. It tightens so gently
    that no step jerks the point away.

    Parameters
    ----------
    sim : Simulation
        The simulation.
    part : str
        What is held: a body, a link of a robot, a soft body or a rod.
    at : ndarray, (3,), m
        Where, world.
    strength : float, 1
        Pull in weights of the body.
    length : float, m
        Stretch at which it pulls so.

    Raises
    ------
    InputError
        No such part, or an obstacle.
    """

    def __init__(self, sim: Simulation, part: str, at: np.ndarray, strength: float, length: float) -> None:
        self.sim, self.part = sim, part
        sim.push(part, np.zeros(3), at)
        stepper = sim.stepper
        number, nothing = stepper.scene.part_names.index(part), np.zeros(3)
        self._held, self._whole = (Push.at(stepper, number, point, nothing) for point in (at, None))
        mass, felt = self._masses(number, at)
        self.stiffness = min(strength * mass * _G / length, _STIFFEST * felt / sim.dt**2)
        self._most, self._change = _MOST * strength * mass * _G, 2.0 * _JERK * length * felt / sim.dt**2
        self._force = np.zeros(3)
        self._damping = min(np.sqrt(self.stiffness * mass), _TOUGHEST * mass / sim.dt)
        self._before = self._whole.point(stepper)

    @property
    def point(self) -> np.ndarray:
        """Where the held point is, (3,), m."""
        return self._held.point(self.sim.stepper)

    def pull(self, to: np.ndarray) -> np.ndarray:
        """Pull towards a place, (3,), m, in the next step; return the force, (3,), N."""
        centre = self._whole.point(self.sim.stepper)
        velocity, self._before = (centre - self._before) / self.sim.dt, centre
        wanted = _at_most(self.stiffness * (to - self.point), self._most) - self._damping * velocity
        self._force = self._force + _at_most(wanted - self._force, self._change)
        self.sim.push(self.part, self._force)
        return self._force

    def let_go(self) -> None:
        """Pull no more."""
        self.sim.push(self.part, None)

    def _masses(self, number: int, at: np.ndarray) -> tuple[float, float]:
        """Mass of the body, and the least that its point feels in any direction, kg."""
        stepper = self.sim.stepper
        index = stepper.scene.parts[number].body
        body, rows = stepper.system.bodies[index], stepper.system.v_slices[index]
        q = stepper.state.q[stepper.system.q_slices[index]]
        inertia = body.inertia(q, q)
        M = sp.block_diag(list(inertia), format="csc") if isinstance(inertia, np.ndarray) else sp.csc_matrix(inertia)
        pushes = np.zeros((3, stepper.system.n))
        for push, direction in zip(pushes, np.eye(3), strict=True):
            Push.at(stepper, number, at, direction).add(stepper, push)
        own = np.ascontiguousarray(pushes[:, rows].T)
        mobility = own.T @ sla.splu(M).solve(own)
        every = {"nodes": 3, "links": 6}.get(body.kind, M.shape[0])
        return float(M.diagonal()[::every].sum()), 1.0 / float(np.linalg.eigvalsh(0.5 * (mobility + mobility.T))[-1])


def _at_most(vector: np.ndarray, length: float) -> np.ndarray:
    """Return a vector, (3,), shortened to a length where it is longer."""
    size = float(np.linalg.norm(vector))
    return vector * (length / size) if size > length else vector

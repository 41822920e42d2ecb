"""Robots: trees of rigid links in generalized coordinates, on a base that is free or that a motion drives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from contact.compiled import Fixed
from femsim.base.errors import InputError, did_you_mean
from femsim.model.bodies import tree_kernels as kernels, tree_step_kernels as step_kernels
from femsim.model.bodies.body import BodyForces, BodyStep, StepSettings, StepStart
from femsim.model.bodies.links import LinkedBody
from femsim.model.bodies.tree_joints import TreeJoint
from femsim.model.bodies.tree_kernels import PRISMATIC, REVOLUTE, Tree
from femsim.model.bodies.tree_step_kernels import Ends, Equations, Start
from femsim.model.commands import rate_of

#: A motion that a joint follows exactly may leave its range by so much, rad or m.
_BEYOND = 1e-6

# called by all robots with arrays of the same kinds
_linearise, _fill_equations = Fixed(step_kernels.linearise), Fixed(step_kernels.fill_equations)
_end_joints, _find_leaking = Fixed(step_kernels.end_joints), Fixed(step_kernels.find_leaking)


class TreeBody(LinkedBody):
    """Robot: a tree of rigid links joined by revolute, prismatic, spherical and fixed joints.

    ``q`` and ``v`` are those of :mod:`femsim.model.bodies.tree_kernels`: six rows of the base, then the joints. A base that
    stands still, or moves in a given way, is one that a motion drives.

    The equations of a step are d'Alembert's where it leads within its length, q(theta dt): the changes of the momenta and spins h
    of all links, from (q0, v0) to (q1, v1) with v1 = v0 + (v_hat - v0)/theta, do no work on what the joints allow beside that of
    the forces, sum_k S_k^T (h_k1 - h_k0)/dt = f. They are of second order in dt where theta is 1/2, and of first order else.
    The spin of thin links that turn fast changes by :func:`tree_kernels.thin_impulse`: h1 - h0 would drive that about the thin
    axis by the much larger one across it, see :func:`tree_step_kernels.find_leaking`.
    At the end the velocity of the base is the one with which linear and angular momentum of the whole have changed by the
    impulses of the step, to the last digits. Energy-momentum steps keep the energy exactly where the base rests and no joint
    follows a motion, see :func:`tree_step_kernels.keep_energy`, else to the order of the step. Where the base is a thin link
    backward Euler leaves it the velocity of the equations: energy never grows, angular momentum has an error of order dt.

    Joints that are damped hard, by a servo say, would turn their speed round in each step of theta < 1. So an impulse at the end
    of the step, which counts as effort of the motor, leaves each, where it moves alone, v1 = v0 + phi (v_hat - v0) with phi = 1 +
    (1/theta - 1)/(1 + r^2/4), r = dt d/M_jj, d being the damping of the joint in A, theta dt K of the servo's stiffness included:
    of no effect on the order where r is small, and backward Euler's where it is large. Joints without damping, and motors at
    their limit, get no impulse: those of the others move them. Springs on joints count so where they turn round; what their
    impulses take is lost to damping.

    Parameters
    ----------
    name : str
        Name in outputs.
    tree : Tree
        Its links.
    link_names : sequence of str
        Their names.
    above : sequence of str
        Name of the joint that each link hangs on; "" for the base.
    joints : sequence of TreeJoint
        The joints that have coordinates of their own, by rows of v.
    q, v : ndarray, (n_q,) and (n_v,)
        State at the start.
    """

    what = "robot"
    gives_way = True

    def __init__(
        self,
        name: str,
        tree: Tree,
        link_names: Sequence[str],
        above: Sequence[str],
        joints: Sequence[TreeJoint],
        q: np.ndarray,
        v: np.ndarray,
    ) -> None:
        super().__init__(name, tree, joints, q, v)
        self.links, self.above = tuple(link_names), tuple(above)
        #: joints that follow a motion exactly, by number, and their ranges
        self._exact, self._exact_ranges = np.zeros(0, dtype=np.int64), np.zeros((0, 2))
        #: generalized force of motors, and of damping, in the last step
        self.effort, self.damped = np.zeros(self.n_v), np.zeros(self.n_v)
        #: that of dry friction, written by :class:`femsim.model.joint_friction.JointFriction`
        self.rubbed = np.zeros(self.n_v)
        #: damping (n_v,) by which joints on springs are calmed, by the names of springs, see :mod:`femsim.model.joint_springs`
        self.sprung: dict[str, np.ndarray] = {}
        #: rate of momentum of the last linearisation, and where it was; mass matrix, rate and place of the last residual
        self._rate_there, self._place = np.zeros(self.n_v), np.zeros(self.n_v)
        self._asked = (np.zeros((self.n_v, self.n_v)), self._rate_there, self._place)
        self._implicit, self._gravity = 1.0, np.zeros(3)
        self._slope, self._calmed = np.zeros((self.n_v, self.n_v)), np.zeros(self.n_v)
        self._calmed_to = np.zeros(self.n_v)
        #: whether nothing prescribes how its base moves
        self.base_free = True
        links = len(self.links)
        self._middle, self._end, self._momenta = kernels.no_places(links), kernels.no_places(links), np.zeros((2, links, 6))
        self._thin = kernels.how_thin(tree.inertia)
        #: links whose spin the equations of the step do not have as h1 - h0
        self._leaking = np.zeros(0, dtype=np.int64)

    # ---- links and joints

    def joint(self, name: str) -> TreeJoint:
        """Look up a joint that has coordinates of its own.

        Raises
        ------
        InputError
            No such joint.
        """
        names = [joint.name for joint in self.joints]
        if name not in names:
            raise InputError(f"joint {name!r} is unknown in robot {self.name!r}{did_you_mean(name, names)}")
        return self.joints[names.index(name)]

    def turns(self, name: str) -> bool:
        """Whether a joint turns, and does not slide."""
        return int(self.tree.kind[self.joint(name).link]) != PRISMATIC

    def with_mimics(self, name: str) -> str:
        """Words behind the largest speed of a joint where others mimic it; "" where none does."""
        return " with joints that mimic it" if np.count_nonzero(self.tree.row == self.joint(name).row) > 1 else ""

    def joint_link(self, name: str) -> int:
        """Link that hangs on a joint, also a fixed one; -1 for no such joint."""
        return self.above.index(name) if name and name in self.above else -1

    def drive_joint(self, name: str, drive: Mapping[str, Any]) -> None:
        """Set what drives a joint, exactly too: fields of :class:`~femsim.model.bodies.tree_joints.Motor`."""
        super().drive_joint(name, drive)
        self._exact = np.array([k for k, motor in enumerate(self.motors) if motor.exact], dtype=np.int64)
        self._led = self._own_rows[self._exact]
        self._ends = np.zeros(len(self._led))
        self._exact_ranges = self.limits()[2][self._exact]

    def led_joints(self) -> list[TreeJoint]:
        """Joints that follow a motion exactly."""
        names = self.joint_names()
        return [self.joint(names[k]) for k in self._exact]

    def driven_rows(self) -> np.ndarray:
        """Rows of v of the joints that follow a motion exactly."""
        return self._led

    def driven_velocity(self, q: np.ndarray, t: float, dt: float) -> np.ndarray:
        """Speeds of these joints that end a step exactly on their motion.

        Raises
        ------
        InputError
            A motion that leaves the range of its joint.
        """
        targets = np.array([motor.position(t + dt) for motor in self.motors if motor.exact and motor.position is not None])
        low, high = self._exact_ranges.T
        outside = np.flatnonzero((targets < low - _BEYOND) | (targets > high + _BEYOND))
        if len(outside):
            k = int(outside[0])
            raise InputError(
                f"joint {self.name}.{self.joint_names()[self._exact[k]]} is driven to {targets[k]:.6g} at {t + dt:g} s; its "
                f"range is {low[k]:.6g} to {high[k]:.6g}. Keep its motion within, or give a stiffness: the stop then holds it."
            )
        return (targets - q[self._own_coordinates[self._exact]]) / dt

    def driven_rate(self, t: float, dt: float) -> np.ndarray:
        """Speeds of these joints by their motion at time t, s, at the end of a step of dt."""
        return np.array([rate_of(motor.position, t, dt) for motor in self.motors if motor.exact and motor.position is not None])

    def end_driven(self, velocity: np.ndarray) -> None:
        """Take the speeds, (k,), with which these joints end the steps that are assembled from now on."""
        self._ends = velocity

    # ---- places

    def inverse_dynamics(self, q: np.ndarray, v: np.ndarray, rate: np.ndarray, gravity: np.ndarray) -> np.ndarray:
        """Generalized force (n_v,) for accelerations ``rate`` (n_v,), N m and N; without damping of the joints."""
        out = np.empty(self.n_v)
        kernels.inverse_dynamics(self.tree, self._configuration(q).places, v, rate, gravity, out)
        return out

    def frame_pose(self, q: np.ndarray, link: int) -> tuple[np.ndarray, np.ndarray]:
        """World rotation (3, 3) and origin (3,), m, of the frame of a link."""
        places = self._configuration(q).places
        return places.rotation[link].copy(), places.origin[link].copy()

    # ---- the step

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
        """Fill A = M/(theta dt) + damping of the joints and b = M v/(theta dt) - C v + f_ext (papers/001 eq. 9).

        Departure from the paper, which evaluates M, C and the forces where the step starts: here they are those within the step
        that the velocities of its start lead to. The next linearisation is needed less often.
        """
        self._implicit, self._conserving, self._gravity = settings.theta * settings.dt, settings.conserving, settings.gravity
        self._start_motors(t, settings)
        there = self._configuration(q)
        begun = self._start(q, v, settings)
        self._leaking = _find_leaking(self.tree, self._thin, there.places, there.M, begun, self.base_free, self._twist)
        ends, start, out = self._equations(q, v, settings, external)
        self._rate_there, self._place = out.rate, v.copy()
        _linearise(self.tree, ends, self._drives, start, out, self._slope, data, b)

    def _equations(
        self, q: np.ndarray, v: np.ndarray, settings: StepSettings, external: np.ndarray
    ) -> tuple[Ends, Start, Equations]:
        """Where a step begins, with room for where it leads, how it is taken, and room for its equations."""
        places = self._configuration(q).places
        out = Equations(np.empty((self.n_v, self.n_v)), np.empty(self.n_v), external, self._force, self.joint_damping)
        (first, last), begun = self._momenta, self._start(q, v, settings)
        return Ends(places, self._middle, self._end, first, last, self._twist, self._thin, self._leaking), begun, out

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
        """Fill what d'Alembert's equations of the step lack at v_hat."""
        ends, begun, there = self._equations(start.q, start.v, settings, external)
        _fill_equations(self.tree, ends, self._drives, begun, moved, v_hat, there)
        inertia[:] = there.rate
        out[:] = there.rate - external + self.joint_damping * v_hat
        self._asked = (there.M, there.rate, v_hat.copy())

    def tangent(self, settings: StepSettings, data: np.ndarray) -> None:
        """Fill A of ``assemble`` with the mass matrix of the last residual."""
        M, self._rate_there, self._place = self._asked
        step_kernels.fill_slope(M, self.joint_damping, self._implicit, self._slope, data)

    def accept(self, v_hat: np.ndarray) -> None:
        """Take the efforts of the joints and the rate of momentum of the equations that were solved."""
        self._step_rate = self._rate_there + self._slope @ (v_hat - self._place)
        self.damped = -self._passive * v_hat
        self.effort = self._force + (self._passive - self.joint_damping) * v_hat

    def advance(
        self,
        q: np.ndarray,
        v: np.ndarray,
        v_hat: np.ndarray,
        settings: StepSettings,
        q_new: np.ndarray,
        v_new: np.ndarray,
    ) -> None:
        """Fill the state at the end of the step; the base has the velocity that the momentum of the whole leaves to it."""
        q_new[:] = self.moved(q, v_hat, settings.dt)
        start, M = self._start(q, v, settings), self._configuration(q_new).M
        _end_joints(start, M, self.joint_damping + self._sprung(), v_hat, self.base_free, v_new, self._calmed)
        self._end_base(q, v, v_hat, settings.dt, q_new, v_new)
        self._calmed_to = v_new.copy()

    def fly(
        self,
        q: np.ndarray,
        v: np.ndarray,
        v_hat: np.ndarray,
        external: np.ndarray,
        dt: float,
        q_new: np.ndarray,
        v_new: np.ndarray,
    ) -> None:
        """Give the base the velocity that the impulses of gravity leave to it."""
        self._step_rate[:6] = external[:6]
        self._end_base(q, v, v_hat, dt, q_new, v_new)
        self._calmed_to = v_new.copy()

    def _end_base(self, q: np.ndarray, v: np.ndarray, v_hat: np.ndarray, dt: float, q_new: np.ndarray, v_new: np.ndarray) -> None:
        """Give the base the velocity of the momenta at the end, but by backward Euler where the base itself leaks.

        There that would put into its spin what the equations kept out of it.
        """
        if self._implicit < dt or not (self._leaking == 0).any():
            self._lead_base(q, v, v_hat, dt, self._implicit / dt, q_new, v_new)

    def inertia(self, q: np.ndarray, q_new: np.ndarray) -> np.ndarray:
        """M where the step ends, by which its momentum is counted, (1, n_v, n_v)."""
        return self._configuration(q_new).M[None]

    # ---- balance

    def balance(self, step: BodyStep) -> BodyForces:
        """Sum up the forces of a step, and take the efforts of joints that follow a motion, and of those that were calmed.

        Who drives the base also bears the torques of what calmed joints; their force is in :meth:`_turning_force`.
        """
        if len(self._led):
            self.effort[self._led] = step.drive[self._led]
        forces = super().balance(step)
        forces.power += self._power_of_gravity(step)
        if not self._calmed.any():
            return forces
        if forces.drive is not None:
            forces.drive[3:6] += self._configuration(step.q_new).M[3:6] @ self._calmed / step.dt
        power, lost = self._add_calming(step)
        forces.power += power
        forces.lost += lost
        return forces

    def _power_of_gravity(self, step: BodyStep) -> float:
        """Power of gravity by the way of the centre of mass, W, beyond what its force where the step led has on v_hat."""
        way = self.centre_of_mass(step.q_new) - self.centre_of_mass(step.q)
        return float(self._gravity @ (self.mass / step.dt * way - self._asked[0][:3] @ step.v_hat))

    def _sprung(self) -> np.ndarray:
        """Damping of all springs by which joints are calmed, (n_v,)."""
        return sum(self.sprung.values(), np.zeros(self.n_v))

    def _add_calming(self, step: BodyStep) -> tuple[float, float]:
        """Add the impulses that calmed joints to efforts and damping of the step; a free base gives way to them.

        Returns
        -------
        (float, float)
            Power, W, of these impulses: what they change the kinetic energy by, over the step. Servos brake and push with it.
            And what of it the damping of the joints takes.
        """
        M, middle = self._configuration(step.q_new).M, self._calmed_to.copy()
        if step.driven:
            middle[:6] = step.v_new[:6]
        before = self.damped.copy()
        sprung = self._sprung()
        passive, damping = self._passive + sprung, self.joint_damping + sprung
        power = step_kernels.calming(
            M, self._calmed, middle, not step.driven, passive, damping, step.dt, self.effort, self.damped
        )
        mean = middle - 0.5 * self._calmed
        return float(power), float((before - self.damped)[6:] @ mean[6:])

    def _turning_force(self, step: BodyStep) -> np.ndarray:
        """Force (3,), N, that changes the linear momentum of a step beside that in its equations: what contacts add is in it.

        Drives exert what the equations ask for at the answer, where the last residual was asked.
        """
        old, new = self._configuration(step.q).M[:3], self._configuration(step.q_new).M[:3]
        end = step.v_new.copy()
        end[6:] = (step.v + (step.v_hat - step.v) * (step.dt / self._implicit) + self._calmed)[6:]
        end[self._led] = step.v_new[self._led]
        return np.asarray((new @ end - old @ step.v) / step.dt - self._asked[1][:3])

    def acted(self) -> dict[str, np.ndarray]:
        """Generalized force of the motors, of damping and of dry friction, (n_v,), N m and N."""
        return {"effort": self.effort.copy(), "damped": self.damped.copy(), "rubbed": self.rubbed.copy()}

    def take_acted(self, acted: Mapping[str, np.ndarray]) -> None:
        """Answer that these acted at the joints."""
        self.effort, self.damped, self.rubbed = (acted[name].copy() for name in ("effort", "damped", "rubbed"))

    def describe(self) -> dict[str, Any]:
        """Links with their masses, and joints."""
        return {
            "links_kg": {name: float(mass) for name, mass in zip(self.links, self.tree.mass, strict=True)},
            "joints": [joint.name for joint in self.joints],
        }

    def sensor_kinds(self, link: int) -> frozenset[str]:
        """Those of all bodies of links; place and effort of a joint."""
        own = {REVOLUTE: {"revolute"}, PRISMATIC: {"prismatic"}}.get(int(self.tree.kind[link]), set())
        return super().sensor_kinds(link) | own

    def joint_state(self, q: np.ndarray, v: np.ndarray, link: int) -> tuple[float, float, float, float, int, float]:
        """Position and speed of the joint of a link, effort and dry friction in the last step, its row of v, its ratio to that.

        Efforts of a joint that mimics do the work of those of the one that leads: they are these divided by the ratio.
        """
        row, ratio = int(self.tree.row[link]), float(self.tree.ratio[link])
        position = ratio * float(q[self.tree.coordinate[link]]) + float(self.tree.offset[link])
        return position, ratio * float(v[row]), float(self.effort[row]) / ratio, float(self.rubbed[row]) / ratio, row, ratio

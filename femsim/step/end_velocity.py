"""The velocities that a step with contact ends with: what presses there neither approaches nor, but for restitution, leaves.

A step finds v_hat, by which everything moves, and a body ends it with v1* = v0 + (v_hat - v0)/theta. Where theta < 1 that turns
the velocity of what presses round: it comes to the contact (J v_hat = -gap/dt) and would end as fast away from it. So the law of
contact is asked once more, of the velocity at the end: with the mass matrix M and the contacts that the step closed,

    M (v1 - v1*) = dt J^T (lam1 - lam),   Signorini-Coulomb between lam1 and u1 = J v1 - e s (the latter normal),

e being the restitution of the pair and s the speed at which its gap closes: that of the start of the step, -J v0, and what
external forces add on the way, so that a body leaves a floor with the energy with which it came there, and a ceiling with no
more (with s = -J v0 it lost m g gap or gained that). What prescribed velocities make is in both J v. The forces lam1 are those
that act: the momentum of the step changes by dt J^T lam1, and that is what sensors read. This is the impact law of Moreau and
Newton beside the exact law for the positions; both levels as in Bruls, Acary and Cardona, "Simultaneous enforcement of
constraints at position and velocity levels in the nonsmooth generalized-alpha scheme", Comput. Methods Appl. Mech. Engrg. 281,
2014.

A contact of softness c, whose lam left it c lam deep, feels what the rest of the step presses further, gap + (1 - theta) dt J v1
+ c lam1 = 0. So u1 has c / ((1 - theta) dt) (lam1 - lam) more: it is hard where c is small, else it rebounds, damped.

Positions feel lam, momentum lam1. Where lam1 presses less than lam (a point that comes to the floor and is lifted by what happens
beside it), friction that keeps positions back and is taken from momentum again would do work on the bodies. There the step is
solved again with a friction that the force that acts allows, lam1_n / lam_n of it: :func:`weakened`.

Without friction and restitution v1 is the point of the cone {J v >= 0} that is nearest, in the norm of M, to the velocity
without contact forces, and v1* M v1 = |v1|^2 + dt (J v1) . lam >= |v1|^2, so |v1| <= |v1*|, whatever lam >= 0 is: the end of a
step never adds energy. Soft contacts add c/(1 - theta) |lam1 - lam|^2 on the right.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from contact import ContactProblem, from_isotropic, isotropic, to_isotropic
from contact.compiled import Fixed
from contact.masses import operator_root, softened, split_operator, velocities
from contact.masses_kernels import BlockRows
from contact.metrics import any_of, is_finite
from contact.split import solve_split
from femsim.model.bodies.body import StepSettings
from femsim.step import end_velocity_kernels as kernels
from femsim.step.contacts import ContactRows
from femsim.step.joint_velocity import JointedMobility
from femsim.step.mobility import mass_times
from femsim.step.newton import Newton, Solved
from femsim.step.prescribed import Prescribed
from femsim.step.rebounds import Budget, rebound_speeds, without_gain
from femsim.step.residual_kernels import largest
from femsim.step.state import State
from femsim.step.system import System

#: Residual of the contact law that the search for the velocities at the end aims at, and the one that is enough: there a search
#: that hardly gains any more ends.
_TOLERANCE, _ENOUGH = 1e-11, 1e-6

# every step hands over the same kinds of arrays
_without_forces = Fixed(kernels.velocities_without_forces)


@dataclass
class EndVelocity:
    """Velocities at the end of a step and what the contacts did to get there.

    Attributes
    ----------
    v : ndarray, (n,)
        Velocity at the end of the step.
    lam : ndarray, (nc, 3), N
        Contact forces that act in the step, normal first.
    work : ndarray, (nc, 3), J
        Work of each by directions, from where gaps are: with the velocity at which they close beyond the gap.
    held : ndarray, (n,), N and N m
        What drives add to their forces on prescribed rows for it.
    residual : float
        How well the contact law holds for them, see :func:`contact.split.solve_split`.
    late : (ContactRows, ndarray) or None
        Contacts at the end of the step and the part of ``lam`` that acts there, (nc, 3), N; None where there is none.
    driving : float, J
        Work of drives against joints at the end of the step, beyond that with the velocities of the step.
    friction_beyond : float, J
        What friction takes by its own work beyond what impacts with restitution take in all.
    """

    v: np.ndarray
    lam: np.ndarray
    work: np.ndarray
    held: np.ndarray
    residual: float = 0.0
    late: tuple[ContactRows, np.ndarray] | None = None
    driving: float = 0.0
    friction_beyond: float = 0.0

    def judged(self, solved: Solved) -> Solved:
        """Call a step not converged where the contact law does not hold for the velocities at its end."""
        if self.residual <= _ENOUGH or not solved.solution.converged:
            return solved
        message = (
            f"The contact law of the velocities at the end of the step holds to {self.residual:.2g} only. Take a smaller dt."
        )
        return replace(solved, solution=replace(solved.solution, status="stopped at the limit", message=message))


def weakened(friction: np.ndarray, rows: ContactRows, solved: Solved, end: EndVelocity, newton: Newton) -> np.ndarray | None:
    """Return the friction that the forces at the end allow, where it did work on bodies because of more; None where it did not.

    With sliding friction lam_t = lam1_t its work is dt lam_t . u_t, which is never positive.

    Parameters
    ----------
    friction : ndarray, (nc,) or (nc, 2)
        Coefficients with which the positions were found.
    rows : ContactRows
        Contacts of the step, with their own coefficients.
    solved : Solved
        The last contact problem of the step and what came of it.
    end : EndVelocity
        What acts.
    newton : Newton
        The work that the forces would do at its ``still`` counts as none.
    """
    if not kernels.friction_works(end.work):
        return None
    lam, gained = solved.solution.lam, end.work[:, 1:].sum(axis=1)
    share = np.ones(len(lam))
    less = np.flatnonzero((gained > 0.0) & (lam[:, 0] > np.maximum(end.lam[:, 0], 0.0)))
    share[less] = np.maximum(end.lam[less, 0], 0.0) / lam[less, 0]
    allowed = np.minimum(friction, (rows.friction.T * share).T)
    # what others gain stays, however often the step is solved again: their friction is what the force at the end allows
    weaker = np.atleast_2d((allowed < friction).T).any(axis=0)
    none = solved.problem.dt * newton.still * np.sqrt((lam**2).sum(axis=1)).sum()
    return allowed if gained[weaker & (gained > 0.0)].sum() > none else None


def end_velocity(
    system: System,
    settings: StepSettings,
    rows: ContactRows,
    solved: Solved,
    u: np.ndarray,
    old: State,
    new: State,
    newton: Newton,
    joints: JointedMobility | None = None,
) -> EndVelocity:
    """Find the velocities at the end of a step and the contact forces that lead to them.

    Parameters
    ----------
    system : System
        The bodies.
    settings : StepSettings
        Settings of the step.
    rows : ContactRows
        Its contacts where bodies are at its end.
    solved : Solved
        Its last contact problem and what came of it.
    u : ndarray, (nc, 3), m/s
        Contact velocities of the answer.
    old, new : State
        Start and end of the step; the velocities of ``new`` are those of its bodies alone, v1*.
    newton : Newton
        Gaps that close at less than its ``still`` count as closed; where it asks for one linearisation, the scheme of papers/001,
        velocities turn round as they do there.
    joints : JointedMobility, optional
        Of a system with joints. Their impulses count in it alone; the velocities of ``new`` are then those that they allow.
    """
    problem, lam, dt = solved.problem, solved.solution.lam, settings.dt
    closed, held = np.empty(len(lam), dtype=np.int64), system.calmed / -dt
    count, bounces = kernels.close_contacts(lam, u, newton.still, rows.restitution, closed)
    turned = (settings.theta < 1.0 and newton.tolerance is not None) or bounces
    if not (count and turned and is_finite(new.v) and is_finite(lam)):
        return EndVelocity(new.v, lam, dt * lam * u, held)
    closed, soft = closed[:count], rows.softness
    if soft is not None and settings.theta == 1.0:  # what is soft has moved by its velocity at the end
        closed, soft = closed[soft[closed] == 0.0], None
    moved: Callable[[np.ndarray], np.ndarray]
    root: Callable[[], sp.csr_matrix] | None = None
    own = problem.with_rows(rows.J, rows.friction)
    law = isotropic(own)
    if joints is None:
        masses = system.mobility(old, new)
        moved, W = partial(velocities, masses), split_operator(masses, law, closed, dt)
        root = partial(operator_root, masses, law, closed, dt) if soft is None else None
    else:
        moved, W = joints.velocities, joints.operator(law, closed, dt)
    if soft is not None:
        W = softened(W, soft[closed] / ((1.0 - settings.theta) * dt))
    impact = _Impact(rows, own, law, closed, W, root, moved, lam, u, new.v)
    beyond = 0.0
    if not bounces:
        found = impact.ends(np.zeros(len(closed)))
    else:
        rebound = rebound_speeds(rows, closed, old.v, moved(system.external), settings, newton.still)
        budget = Budget.of(system, solved, closed, W, old, new, settings)
        found = without_gain(impact.ends, lambda end: budget.gained(end.work), budget.group, rebound)
        beyond = budget.friction_beyond(found.work)
    if system.prescribes:
        held = held + system.carried(old, new, found.v - new.v) / dt
    late = (rows, found.acting - lam)
    return EndVelocity(found.v, found.acting, found.work, held, found.residual, late, friction_beyond=beyond)


class _Found(NamedTuple):
    """Velocities, (n,), forces that act, (nc, 3), N, their work, (nc, 3), J, and the residual of the contact law."""

    v: np.ndarray
    acting: np.ndarray
    work: np.ndarray
    residual: float


@dataclass
class _Impact:
    """The contact law of the velocities at the end of a step, for the contacts ``closed``, (k,), of its ``rows``.

    ``own`` and ``law`` are the problem with these rows and the one with one coefficient a contact, ``W`` the operator of the
    latter, ``root`` gives a sparse root of that, ``moved`` what impulses make of velocities; ``lam`` and ``u`` are those of the
    step, (nc, 3), and ``before`` is v1*.
    """

    rows: ContactRows
    own: ContactProblem
    law: ContactProblem
    closed: np.ndarray
    W: BlockRows
    root: Callable[[], sp.csr_matrix] | None
    moved: Callable[[np.ndarray], np.ndarray]
    lam: np.ndarray
    u: np.ndarray
    before: np.ndarray

    def ends(self, rebound: np.ndarray) -> _Found:
        """Find velocities and forces where contacts part with these speeds, (k,), m/s."""
        closed, surface, J, dt = self.closed, self.rows.surface, self.law.J, self.own.dt
        same = self.own.is_isotropic
        along = surface if same else surface * np.column_stack([np.ones(len(self.lam)), self.own.tangent_stretch])
        acting = to_isotropic(self.own, self.lam).copy()
        forces, q, impulse = acting[closed], np.empty((len(closed), 3)), np.empty(len(self.before))
        _without_forces(J.indptr, J.indices, J.data, self.before, along, rebound, closed, self.W, forces, q)
        before = forces.copy()
        residual = solve_split(self.W, q, self.law.friction[closed], forces, _TOLERANCE, enough=_ENOUGH, root=self.root)
        still = self.W.indptr[1:] == self.W.indptr[:-1]  # what nothing moves goes on to press as it did
        forces[still] = before[still]
        kernels.change_forces(J.indptr, J.indices, J.data, closed, forces, dt, acting, impulse)
        v = self.before + self.moved(impulse)
        if not same:
            whole, acting = acting, self.lam.copy()
            acting[closed] = from_isotropic(self.own, whole)[closed]
        J, work = self.own.J, np.empty_like(self.lam)
        kernels.work_of_forces(J.indptr, J.indices, J.data, self.lam, self.u, acting, surface, self.before + v, dt, work)
        return _Found(v, acting, work, residual)


def drive_work(
    system: System,
    given: Prescribed,
    late: np.ndarray | None,
    end: EndVelocity,
    old: State,
    new: State,
    dt: float,
    still: float,
) -> float:
    """Work, J, that drives do in a step beyond that of their forces with the velocities ``given.v`` of the step, and by joints.

    What changes velocities at its end acts with those of the end, and inertia with the mean of those of start and end: of a
    motion whose acceleration or velocity jumps these are not the same.

    Parameters
    ----------
    system : System
        The bodies.
    given : Prescribed
        Velocities of prescribed rows.
    late : ndarray, (n,), N and N m, or None
        Generalized contact forces that act at its end.
    end : EndVelocity
        How it ends.
    old, new : State
        Start and end; of the latter only coordinates are read.
    dt : float, s
        Time step.
    still : float, m/s or rad/s
        By how much velocities may differ that count as the same.
    """
    work = 0.0
    if given.end is not given.v:
        held = end.held if late is None else end.held - late
        work += dt * float(held @ (given.end - given.v))
    uneven = np.where(system.prescribed, 0.5 * (old.v + end.v) - given.v, 0.0)
    if largest(uneven) <= still:
        return work
    for body, q, v in zip(system.bodies, system.q_slices, system.v_slices, strict=True):
        own = system.prescribed[v]
        if any_of(own) and any_of(uneven[v]):
            change = mass_times(body.inertia(old.q[q], new.q[q]), end.v[v] - old.v[v])
            work += float(change[own] @ uneven[v][own])
    return work

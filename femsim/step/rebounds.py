"""How fast contacts with restitution part: by the speed at which their gaps close, and no faster than energy allows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from contact.masses_kernels import BlockRows
from femsim.model.bodies.body import StepSettings
from femsim.step import end_velocity_kernels as kernels
from femsim.step.contact_family import joined
from femsim.step.contacts import ContactRows
from femsim.step.mobility import mass_times
from femsim.step.newton import Solved
from femsim.step.state import State
from femsim.step.system import System

EndT = TypeVar("EndT")

#: Part of the kinetic energy of an impact that what else is solved to a tolerance may add, and the most trials of less rebound.
_ROUGH, _TRIALS = 1e-6, 6


def rebound_speeds(
    rows: ContactRows, closed: np.ndarray, before: np.ndarray, fall: np.ndarray, settings: StepSettings, still: float
) -> np.ndarray:
    """Return the speeds with which contacts part, (k,), m/s: the restitution times the speed at which their gaps close.

    Parameters
    ----------
    rows : ContactRows
        All contacts.
    closed : ndarray, (k,)
        Those that the step closed.
    before : ndarray, (n,), m/s and rad/s
        Velocity at the start of the step.
    fall : ndarray, (n,), m/s^2 and rad/s^2
        What external forces change it by. It is taken for no more than gravity: stiff motors are external forces too, but what
        they begin with moves hardly anything.
    settings : StepSettings
        Settings of the step.
    still : float, m/s
        Gaps that close at less are closed.
    """
    J, gap, out = rows.J, joined([own.gap for own in rows.families]), np.empty(len(closed))
    most = float(np.linalg.norm(settings.gravity))
    kernels.rebounds(
        J.indptr, J.indices, J.data, before, fall, rows.surface, gap, rows.restitution, closed, still, most, settings.dt, out
    )  # fmt: skip
    return out


@dataclass
class Budget:
    """Energy that a step may give back to bodies in contact, by groups of contacts that move one another.

    Where a body turns far in a step, or several contacts stick and part at once, Newton's law would give more. Kinetic energy
    changes by the work of all forces in the step, less what the integrator takes, (theta - 1/2) (v1* - v0) . M (v1* - v0), and by
    the work of what acts at the end. So contacts may do no more than was taken, which is nothing for theta = 1/2.

    Attributes
    ----------
    closed : ndarray, (k,)
        Contacts that the step closed.
    group : ndarray, (k,)
        Number of the group of each of them.
    closing : ndarray, (k,), J
        Work that forces did while gaps closed; that of contacts is counted from where gaps are.
    taken : ndarray, (groups,), J
        What the integrator took from their bodies, with those that are joined to them.
    hard : ndarray, (groups,), bool
        Groups that are judged: what soft contacts store is given back.
    """

    closed: np.ndarray
    group: np.ndarray
    closing: np.ndarray
    taken: np.ndarray
    hard: np.ndarray

    @classmethod
    def of(
        cls, system: System, solved: Solved, closed: np.ndarray, W: BlockRows, old: State, new: State, settings: StepSettings
    ) -> Budget:
        """Take the contacts ``closed`` (k,) of a solved step from one state to another, of v1*; W is their operator."""
        rows = solved.rows
        closing = settings.dt * solved.solution.lam[closed, 0] * rows.offsets[closed]
        group = np.empty(len(closed), dtype=np.int64)
        taken = np.zeros(kernels.number_groups(W.indptr, W.indices, group))
        if settings.theta > 0.5:
            company, lost = _companies(system), _lost(system, old, new)
            starts, J = np.array([v.start for v in system.v_slices]), rows.J
            for g in range(len(taken)):
                touched = np.zeros(system.n, dtype=np.bool_)
                for m in closed[group == g]:
                    touched[J.indices[J.indptr[3 * m] : J.indptr[3 * m + 3]]] = True
                own = np.unique(company[np.searchsorted(starts, np.flatnonzero(touched), side="right") - 1])
                taken[g] = lost[np.isin(company, own)].sum()
        soft = np.zeros(len(closed), dtype=np.bool_) if rows.softness is None else rows.softness[closed] > 0.0
        return cls(closed, group, closing, taken, np.bincount(group, soft, len(taken)) == 0.0)

    def gained(self, work: np.ndarray) -> np.ndarray:
        """Energy from nothing of each group, (groups,), J, by the work of contacts, (nc, 3), J.

        0 where it is within what is rough, or not judged.
        """
        done, groups = work[self.closed].sum(axis=1) - self.closing, len(self.taken)
        gained = np.bincount(self.group, done, groups) - self.taken
        rough = _ROUGH * (self.taken + np.bincount(self.group, np.abs(done) + np.abs(self.closing), groups))
        return np.where(self.hard & (np.abs(gained) > rough), gained, 0.0)

    def friction_beyond(self, work: np.ndarray) -> float:
        """Energy, J, that friction takes by its own work beyond what impacts take in all, by the work of contacts, (nc, 3), J.

        Where friction stops a corner, Newton's law lets it part as fast as it came: then normal forces do work, which friction
        takes in the same impact. Or friction does it, and they take it.
        """
        groups, work = len(self.taken), work[self.closed]
        rubbed = -np.bincount(self.group, work[:, 1:].sum(axis=1), groups)
        lost = np.maximum(self.taken + rubbed - np.bincount(self.group, work[:, 0] - self.closing, groups), 0.0)
        return float((rubbed - np.clip(rubbed, 0.0, lost))[self.hard].sum())


def _lost(system: System, old: State, new: State) -> np.ndarray:
    """Energy, J, that the integrator takes from each body: what changed its momentum did more than its kinetic energy shows."""
    lost = np.empty(len(system.bodies))
    for k, (body, q, v) in enumerate(zip(system.bodies, system.q_slices, system.v_slices, strict=True)):
        v_hat, v0, v1 = (np.where(system.prescribed[v], 0.0, each[v]) for each in (new.v_hat, old.v, new.v))
        before = mass_times(body.inertia(old.q[q], old.q[q]), v0)
        after = mass_times(body.inertia(old.q[q], new.q[q]), v1)
        lost[k] = v_hat @ (after - before) - 0.5 * (v1 @ after - v0 @ before)
    return lost


def _companies(system: System) -> np.ndarray:
    """Return which bodies hang together, by the number of each one's company, (bodies,)."""
    company = np.arange(len(system.bodies))
    for coupling in system.couplings:
        first, *others = [company[k] for k, _ in coupling.rows]
        company[np.isin(company, others)] = first
    return company


def without_gain(
    ends: Callable[[np.ndarray], EndT], gained: Callable[[EndT], np.ndarray], group: np.ndarray, rebound: np.ndarray
) -> EndT:
    """End a step with such a part of the rebounds, (k,), m/s, of each group of contacts that no group has energy from nothing.

    The part of each group is found by false position, in which an end that stays counts half, as by the Illinois rule.

    Parameters
    ----------
    ends : callable
        What comes of rebounds.
    gained : callable
        The energy, J, that each group, (groups,), has from nothing by that.
    group : ndarray, (k,)
        Number of the group of each contact.
    rebound : ndarray, (k,), m/s
        Rebounds by the restitution of the pairs.
    """
    found = ends(rebound)
    high = gained(found)
    over = high > 0.0
    if not over.any():
        return found
    below, above = np.where(over, 0.0, 1.0), np.ones_like(high)
    low = gained(ends(below[group] * rebound))
    over &= low < 0.0  # what gains without any rebound has it from elsewhere
    for _ in range(_TRIALS):
        if not over.any():
            break
        share = below.copy()
        share[over] += ((above - below) * low)[over] / (low - high)[over]
        new = gained(ends(share[group] * rebound))
        more, less = over & (new > 0.0), over & (new <= 0.0)
        above[more], high[more], low[more] = share[more], new[more], 0.5 * low[more]
        below[less], low[less], high[less] = share[less], new[less], 0.5 * high[less]
        over &= new != 0.0
    return ends(below[group] * rebound)

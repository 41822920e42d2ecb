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
    """Energy that a step gives to rigid bodies in contact, by groups of contacts that move one another.

    Where a body turns far in a step, or several contacts stick and part at once, Newton's law would add some.

    Attributes
    ----------
    group : ndarray, (k,)
        Number of the group of each contact that the step closed.
    bodies : list of (int, int)
        Group and number of each body of those that are judged, with the bodies that are joined to it.
    judged : ndarray, (groups,), bool
        Groups of rigid bodies alone that are free or joined to such, unless a contact is soft.
    begun : ndarray, (groups,), J
        Kinetic energy of their bodies at the start, and work of external forces in the step.
    """

    system: System
    rows: ContactRows
    closed: np.ndarray
    group: np.ndarray
    bodies: list[tuple[int, int]]
    judged: np.ndarray
    begun: np.ndarray
    q: np.ndarray
    dt: float

    @classmethod
    def of(cls, system: System, rows: ContactRows, closed: np.ndarray, W: BlockRows, old: State, new: State, dt: float) -> Budget:
        """Take the contacts ``closed`` (k,) of a step (s) from one state to another; W is their operator."""
        group = np.empty(len(closed), dtype=np.int64)
        count = kernels.number_groups(W.indptr, W.indices, group)
        starts, J = np.array([v.start for v in system.v_slices]), rows.J
        company, able = _companies(system)
        soft = rows.softness is not None and bool(rows.softness.any())  # what these store is given back
        judged, begun, bodies = np.ones(count, dtype=np.bool_), np.zeros(count), []
        for g in range(count):
            touched = np.zeros(system.n, dtype=np.bool_)
            for m in closed[group == g]:
                touched[J.indices[J.indptr[3 * m] : J.indptr[3 * m + 3]]] = True
            own = np.unique(company[np.searchsorted(starts, np.flatnonzero(touched), side="right") - 1])
            judged[g] = able[own].all() and not soft
            for k in np.flatnonzero(np.isin(company, own)).tolist() if judged[g] else ():
                body, q, v = system.bodies[k], system.q_slices[k], system.v_slices[k]
                begun[g] += body.kinetic_energy(old.q[q], old.v[v]) + dt * float(system.external[v] @ new.v_hat[v])
                bodies.append((g, k))
        return cls(system, rows, closed, group, bodies, judged, begun, new.q, dt)

    def gained(self, v: np.ndarray, acting: np.ndarray) -> np.ndarray:
        """Energy from nothing of each group, (groups,), J, by velocities at the end, (n,), and forces that act, (nc, 3), N.

        0 where it is within what is rough, or not judged.
        """
        ended = np.zeros_like(self.begun)
        for g, k in self.bodies:
            ended[g] += self.system.bodies[k].kinetic_energy(self.q[self.system.q_slices[k]], v[self.system.v_slices[k]])
        driven = self.dt * (acting * self.rows.surface)[self.closed].sum(axis=1)
        gained = ended - self.begun + np.bincount(self.group, driven, minlength=len(ended))
        rough = _ROUGH * (ended + np.abs(self.begun))
        return np.where(self.judged & (np.abs(gained) > rough), gained, 0.0)


def _companies(system: System) -> tuple[np.ndarray, np.ndarray]:
    """Return which bodies hang together, by the number of each one's company, and the companies of rigid, free bodies alone.

    What joins these holds by rows, so that it does no work but what friction takes.
    """
    company = np.arange(len(system.bodies))
    for coupling in system.couplings:
        first, *others = [company[k] for k, _ in coupling.rows]
        company[np.isin(company, others)] = first
    able = np.zeros(len(company), dtype=np.bool_)
    able[company] = True
    for k, (body, v) in enumerate(zip(system.bodies, system.v_slices, strict=True)):
        able[company[k]] &= body.kind == "generalized" and body.n_v == 6 and not system.prescribed[v].any()
    for coupling in system.couplings:
        able[company[coupling.rows[0][0]]] &= coupling.joins
    return company, able


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

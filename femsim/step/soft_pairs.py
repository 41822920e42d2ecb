"""Pairs whose contacts give way: the energy that they hold, and how deep they are beyond what their softness says."""

from __future__ import annotations

import numpy as np

from femsim.step.contact_family import Near
from femsim.step.contacts import ContactRows, Contacts, StepContacts
from femsim.step.placed import Placed
from femsim.step.state import State

#: Part of the smaller size of two parts that softness may let them into each other without a word.
_MOST = 0.5


def energy_at(contacts: Contacts, state: State, placed: Placed) -> float:
    """Elastic energy, J, of soft contacts in a state from their depths there, in which parts are placed so."""
    softness = contacts.rules.softness
    if softness is None:
        return 0.0
    parts, gaps, _ = contacts.overlapping(state, placed)
    soft = softness[parts[:, 0], parts[:, 1]]
    gives = soft > 0.0
    return 0.5 * float((gaps[gives] ** 2 / soft[gives]).sum())


def energy_of(rows: ContactRows, lam: np.ndarray) -> float:
    """Elastic energy, J, of the soft contacts of a step, by the forces lam (nc, 3), N, at its end."""
    return 0.0 if rows.softness is None else 0.5 * float(rows.softness @ lam[:, 0] ** 2)


def hard_penetration(contacts: Contacts, state: State, placed: Placed) -> float:
    """Largest penetration in a state, m, in which parts are placed so, of what contact keeps apart and does not give way."""
    found, softness = contacts.overlapping(state, placed), contacts.rules.softness
    hard = ~found.led if softness is None else ~found.led & (softness[found.parts[:, 0], found.parts[:, 1]] == 0.0)
    return max(0.0, -float(found.gaps[hard].min(initial=0.0)))


def beyond(softness: np.ndarray | None, sizes: np.ndarray, overlaps: Near, contacts: StepContacts, lam: np.ndarray) -> Near:
    """Return what overlaps, its gaps less what the contact that gives way most lets each pair.

    That is at most half of the smaller size: what is deeper may be pushed out on the other side.

    Parameters
    ----------
    softness : ndarray, (np, np), m/N, or None
        That of each pair of parts.
    sizes : ndarray, (np,), m
        Sizes of the parts.
    overlaps : Near
        Its gaps are all negative.
    contacts : StepContacts
        Contacts of the step.
    lam : ndarray, (nc, 3), N
        Forces that belong to the gaps.
    """
    if softness is None or not len(overlaps.gaps):
        return overlaps
    parts, gaps, led = overlaps
    gives = np.zeros_like(softness)
    first, second = contacts.part.T
    np.maximum.at(gives, (first, second), softness[first, second] * lam[:, 0])
    gives = np.minimum(np.maximum(gives, gives.T), _MOST * np.minimum(sizes[:, None], sizes))
    return Near(parts, np.minimum(gaps + gives[parts[:, 0], parts[:, 1]], 0.0), led)

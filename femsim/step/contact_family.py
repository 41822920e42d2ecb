"""What all families of contacts answer: detection, rows of the contact problem, forces. `contacts` joins them.

What a call finds is a value that the next one takes, so no call depends on what another one left behind. Nobody writes to such
a value; records that every step makes are not frozen all the same, since a frozen one takes three times as long to make.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple, Protocol

import numpy as np

from contact.metrics import any_of
from femsim.model.contact_rules import Breaks
from femsim.step.placed import Placed
from femsim.step.rows_kernels import Given, Rows, Sums
from femsim.step.state import State
from femsim.step.whole_joints import WholeJoints


@dataclass
class Rates:
    """Velocities that bound how far things move in a step.

    Attributes
    ----------
    v_hat, v_prescribed : ndarray, (n,)
        Velocity of the last step, and that of prescribed rows in this one; zero elsewhere.
    """

    v_hat: np.ndarray
    v_prescribed: np.ndarray


@dataclass
class Found:
    """What a family found in a state; other families read nothing of it.

    Attributes
    ----------
    contacts : PointContacts or DeformableContacts
        As the detector of the family gives them.
    points : ndarray, (p, 3), m
        Where the points of the family are.
    placed : Placed
        Where the parts are.
    margin : float or ndarray, m
        Within what it was found.
    every : (ndarray, ndarray, ndarray) or None
        Of contacts that followed the bodies to the end of a step, points, shapes and gaps, m, of all that is found there.
    spared : bool
        Whether contacts were left out that others seem to hold too.
    """

    contacts: Any
    points: np.ndarray
    placed: Placed
    margin: float | np.ndarray = 0.0
    every: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None
    spared: bool = False


@dataclass
class FamilyRows:
    """Rows of those contacts of a family that are in the problem.

    Attributes
    ----------
    found : Found
        All that was found; frames may have been turned since, see :class:`femsim.model.contact_rules.AnisotropicPair`.
    keep : ndarray, (kept,)
        The contacts in the problem.
    indptr, indices, data : ndarray
        Their rows of J, CSR.
    phi : ndarray, (kept, 3), m/s
        Offset of the contact velocity.
    friction : ndarray, (kept,) or (kept, 2)
        Coefficients.
    key : ndarray, (kept,)
        By what each is recognised in the next step.
    frame : ndarray, (kept, 3, 3)
        Rows: normal and two tangents.
    gap : ndarray, (kept,), m
        Signed distance at the start of the step.
    restitution : ndarray, (kept,)
        Part of the speed of approach with which each parts.
    softness : ndarray, (kept,), m/N, or None
        How far each gives way to its normal force; None where no pair is soft.
    curved : ndarray, (kept, 3), m/s, or None
        What of phi says how far ways along curved shapes, and of what turns, leave the tangents; None where nothing does.
    """

    found: Found
    keep: np.ndarray
    indptr: np.ndarray
    indices: np.ndarray
    data: np.ndarray
    phi: np.ndarray
    friction: np.ndarray
    key: np.ndarray
    frame: np.ndarray
    gap: np.ndarray
    restitution: np.ndarray
    softness: np.ndarray | None = None
    curved: np.ndarray | None = None

    def __len__(self) -> int:
        """Return the number of contacts."""
        return len(self.keep)

    def of(self, found: Found) -> FamilyRows:
        """Return the same rows of what was found elsewhere."""
        return FamilyRows(
            found, self.keep, self.indptr, self.indices, self.data, self.phi, self.friction, self.key, self.frame, self.gap,
            self.restitution, self.softness, self.curved,
        )  # fmt: skip


@dataclass
class Sides:
    """Contacts in the problem and what they bear; see :class:`femsim.step.contacts.StepContacts`.

    Where contacts bear no couples beside their forces, ``couple`` is None.
    """

    position: np.ndarray
    acting: np.ndarray
    normal: np.ndarray
    gap: np.ndarray
    force: np.ndarray
    part: np.ndarray
    point: np.ndarray
    weight: np.ndarray
    couple: np.ndarray | None = None

    @classmethod
    def joined(cls, families: Sequence[Sides]) -> Sides:
        """Those of all families, one after the other."""
        if len(families) == 1:
            return families[0]
        couple: np.ndarray | None = None
        if any([one.couple is not None for one in families]):
            couple = np.concatenate([np.zeros((len(one.gap), 2, 3, 3)) if one.couple is None else one.couple for one in families])
        out = cls(*[np.concatenate([getattr(one, name) for one in families]) for name in _COLUMNS])
        out.couple = couple
        return out


#: Fields of :class:`Sides` with an entry for each contact of every family; couples are not.
_COLUMNS = tuple(field.name for field in fields(Sides) if field.name != "couple")

#: Which contacts are too deep, (n,) bool, by their parts (n, 2) and gaps (n,), m.
Deep = Callable[[np.ndarray, np.ndarray], np.ndarray]

#: The state at the end of a step and its parts, placed when it is first asked for.
Arrived = Callable[[], tuple[State, Placed]]


class Near(NamedTuple):
    """Contacts of a state closer than something.

    Attributes
    ----------
    parts : ndarray, (n, 2)
        Parts of the two sides.
    gaps : ndarray, (n,), m
        Signed distances.
    led : ndarray, (n,), bool
        Which of them no force can push apart, since exact motions lead both sides, see :class:`WholeJoints`.
    """

    parts: np.ndarray
    gaps: np.ndarray
    led: np.ndarray

    def select(self, keep: np.ndarray) -> Near:
        """Choose some of them, by (n,) bool."""
        return Near(self.parts[keep], self.gaps[keep], self.led[keep])

    @property
    def pressed(self) -> Near:
        """Those that forces can push apart."""
        return self.select(~self.led) if any_of(self.led) else self

    @property
    def depth(self) -> float:
        """The largest penetration, m; 0 where none overlap."""
        return max(0.0, -float(self.gaps.min())) if len(self.gaps) else 0.0


class Family(Protocol):
    """Contacts of one kind.

    Attributes
    ----------
    hidden : bool
        Whether what it bears is no force between parts, and shows in no list of contacts: limits of joints.
    whole_joints : WholeJoints
        What of it waits for a joint to break.
    """

    hidden: bool
    whole_joints: WholeJoints

    def detect(self, state: State, placed: Placed, margin: float | np.ndarray) -> Found:
        """Find the contacts of a state within a margin, m: one number, or what :meth:`speeds` has made of one."""
        ...

    def speeds(self, placed: Placed, rates: Rates) -> float | np.ndarray:
        """Bounds of the speeds at which its gaps may close, m/s."""
        ...

    def rows(self, found: Found, given: Given) -> FamilyRows:
        """Rows of the contacts, without those that nothing can press."""
        ...

    def moved(self, rows: FamilyRows, there: State, placed: Placed, given: Given, *, middle: bool) -> FamilyRows:
        """Rows of the same contacts where the bodies are in another state, with the gaps of the start.

        At the middle of a step normals and points are those of there, as far as the contacts are found there; at its end they
        stay, and only move along.
        """
        ...

    def on_same_features(self, rows: FamilyRows, there: State, placed: Placed, given: Given) -> FamilyRows:
        """Rows of contacts as in :meth:`moved`, not found again but where they were on the bodies."""
        ...

    def accept(self, rows: FamilyRows, lam: np.ndarray, sums: Sums) -> np.ndarray:
        """Add the forces lam (kept, 3), N, normal first, to the sums; return those in the world, (kept, 3)."""
        ...

    def sides(self, rows: FamilyRows, world: np.ndarray) -> Sides:
        """Contacts with what :meth:`accept` returned, contact by contact."""
        ...

    def gaps(self, state: State, placed: Placed, reach: float, known: Found | None = None) -> Near:
        """Find all contacts of a state closer than ``reach`` (m).

        ``known`` is something that the family found before; of the same ``placed`` it may have them already.
        """
        ...

    def leading(self, state: State, placed: Placed, deep: Deep) -> list[Breaks]:
        """Whole welds each of which alone keeps contacts that are ``deep`` in a state from any force."""
        ...

    def max_penetration(self, state: State, placed: Placed) -> float:
        """Largest penetration in a state, m."""
        ...

    def overlaps(self, state: State) -> list[tuple[int, int, float, float]]:
        """Parts that overlap more than contact can undo: (part, part, depth, largest depth that is undone), m; slow."""
        ...


def matched(wanted: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Places of keys among those known, (n,) int64; -1 for those that are not there."""
    if not len(known):
        return np.full(len(wanted), -1)
    if len(wanted) == len(known) and (wanted == known).all():
        return np.arange(len(known))
    order = np.argsort(known, kind="stable")
    place = order[np.minimum(np.searchsorted(known, wanted, sorter=order), len(known) - 1)]
    return np.where(known[place] == wanted, place, -1)


def joined(arrays: Sequence[np.ndarray]) -> np.ndarray:
    """One array of those of all families; that of the only one that has any entries is it."""
    if len(arrays) == 1:
        return arrays[0]
    filled = [array for array in arrays if array.size]
    return np.concatenate(arrays) if len(filled) > 1 else (filled or arrays)[0]


def no_rows(columns: int = 1) -> FamilyRows:
    """No rows at all, with so many coefficients of friction a contact; what was found is still to be told."""
    whole, number, vectors = np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros((0, 3))
    indptr, indices = np.zeros(1, dtype=np.int32), np.zeros(0, dtype=np.int32)
    friction = number if columns == 1 else np.zeros((0, columns))
    place = np.zeros((0, 3))
    nothing = Found(None, place, Placed(np.zeros((0, 3, 3)), place, place, np.zeros((0, 6)), place))
    return FamilyRows(nothing, whole, indptr, indices, number, vectors, friction, whole, np.zeros((0, 3, 3)), number, number)


def room(n: int, most_entries: int) -> Rows:
    """Room for the rows of n contacts with so many entries each, their integers as scipy would choose them."""
    return Rows(
        np.empty(n, dtype=np.int64), np.empty(3 * n + 1, dtype=np.int32), np.empty(most_entries * n, dtype=np.int32),
        np.empty(most_entries * n), np.empty((n, 3)),
    )  # fmt: skip

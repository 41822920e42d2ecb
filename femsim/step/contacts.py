"""All contacts of a scene: one list of families, whose rows and forces are joined once.

Each call takes what the one before it found::

    placed = contacts.places.read(state)
    found = contacts.detect(state, placed, margins)
    rows = contacts.rows(found, v_prescribed, dt)
    start = contacts.warm_start(rows, memory, v_hat)
    forces, memory = contacts.accept(rows, lam, u, work)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, pairwise

import numpy as np
import scipy.sparse as sp

from contact import ContactProblem, WarmStart
from contact.compiled import Fixed
from contact.compressed import compressed_rows
from contact.metrics import any_of
from contact.once import once
from femsim.model.contact_rules import Breaks, ContactRules
from femsim.model.parts import Part
from femsim.step.by_faces import at_nodes, pairs_by_faces
from femsim.step.contact_family import Deep, Family, FamilyRows, Found, Near, Rates, Sides, joined
from femsim.step.deforming_contacts import DeformingFamily, deforming_contacts
from femsim.step.force_memory import ForceMemory
from femsim.step.joint_limits import LimitFamily
from femsim.step.placed import Placed, Places
from femsim.step.point_contacts import PointFamily
from femsim.step.rows_kernels import Given, Sums, normal_offsets, tell
from femsim.step.state import State
from femsim.step.system import System

Memory = tuple[ForceMemory, ...]


@dataclass
class Late:
    """The part of contact forces that acts at the end of a step, where bodies are then; names as in :class:`StepContacts`."""

    acting: np.ndarray
    force: np.ndarray
    reference: np.ndarray
    couple: np.ndarray | None


@dataclass
class StepContacts:
    """Contacts of one step and their forces; those between soft bodies and rods come last.

    Attributes
    ----------
    position : ndarray, (nc, 3), m
        Where the body that the force is given for is touched, world.
    normal : ndarray, (nc, 3)
        From the shape to the point; of two deforming bodies, from the second to the first.
    gap : ndarray, (nc,), m
        Distance at the start of the step.
    force : ndarray, (nc, 3), N
        Force on the point's body (or the first), world; on the other one it is the opposite.
    state : ndarray, (nc,), int64
        0 open, 1 stick, 2 slip.
    part : ndarray, (nc, 2), int64
        Parts of the two sides; the force is that on side 0.
    acting : ndarray, (nc, 2, 3), m
        Where the force acts on each side, world: on a rod whose links contacts do not turn, on its centre line.
    lam, u : ndarray, (nc, 3), N and m/s
        Force and velocity of side 0 against side 1 in the frame of the contact, normal first.
    taken : ndarray, (nc,), J
        What friction took in the step. Where the velocities at the end of a step are found apart, the forces that act are not
        those that belong to ``u``, so it is no product of the two.
    point : ndarray, (nc, 2, 3), int64
        Points of each side that carry the force, by their number in the part (surface nodes in their order, links); -1 for none:
        rigid parts carry it at the place where it acts.
    weight : ndarray, (nc, 2, 3)
        Their shares, which sum to one.
    reference, rotation : ndarray, (np, 3) and (np, 3, 3), m and 1
        What torques on each part are about, and how rigid parts are turned, where the forces act.
    key : ndarray, (nc, 2), int64
        What each is recognised by in the next step: its kind, and its number there.
    late : Late or None
        The part of ``force`` that acts elsewhere, at the end of the step; None where all of it acts in one place.
    couple : ndarray, (nc, 2, 3, 3), m, or None
        Times the force, the couple on each side beside it, by which strands turn with each other; None where there is none.
    """

    position: np.ndarray
    normal: np.ndarray
    gap: np.ndarray
    force: np.ndarray
    state: np.ndarray
    part: np.ndarray
    acting: np.ndarray
    lam: np.ndarray
    u: np.ndarray
    taken: np.ndarray
    point: np.ndarray
    weight: np.ndarray
    reference: np.ndarray
    rotation: np.ndarray
    key: np.ndarray
    late: Late | None = None
    couple: np.ndarray | None = None


@dataclass
class ContactForces:
    """Contact forces of one step; of a step that was taken in sub-steps, their means, and the contacts of the last one.

    Attributes
    ----------
    contacts : StepContacts
        Contact by contact.
    wrench : ndarray, (np, 6), N and N m
        Force on each part and torque about the place of its reference half-way through the step.
    spin : ndarray, (np, 3), N m
        Torque on each part about its reference where that is as each force acts: what turns it, wherever it flies.
    force_sum : ndarray, (np,), N
        Sum of the magnitudes of the forces on each part.
    node_force : ndarray, (n,), N and N m
        Force on the rows of v of nodes and links, and torque on links that contacts turn.
    generalized : ndarray, (n,), N and N m
        J^T lam with the columns of prescribed rows, which J lacks.
    late : ndarray, (n,), N and N m, or None
        The part of ``generalized`` that acts at the end of the step, where bodies are then; None where all acts in one place.
    """

    contacts: StepContacts
    wrench: np.ndarray
    spin: np.ndarray
    force_sum: np.ndarray
    node_force: np.ndarray
    generalized: np.ndarray
    late: np.ndarray | None = None


@dataclass
class ContactRows:
    """Rows of all contacts in the problem.

    Attributes
    ----------
    families : tuple of FamilyRows
        Those of each family, in the order of the problem.
    J : scipy.sparse.csr_matrix, (3 nc, n)
        Jacobian, normal first.
    phi : ndarray, (nc, 3), m/s
        Offset of the contact velocity.
    friction : ndarray, (nc,) or (nc, 2)
        Coefficients.
    given : Given
        What the step gives to them.
    restitution : ndarray, (nc,)
        Part of the speed of approach with which each contact parts.
    softness : ndarray, (nc,), m/N, or None
        How far each contact gives way to its normal force; None where all are hard.
    """

    families: tuple[FamilyRows, ...]
    J: sp.csr_matrix
    phi: np.ndarray
    friction: np.ndarray
    given: Given
    restitution: np.ndarray
    softness: np.ndarray | None = None

    @once
    def parts(self) -> tuple[slice, ...]:
        """Which contacts are those of each family."""
        ends = [0, *accumulate([len(own.keep) for own in self.families])]
        return tuple([slice(start, stop) for start, stop in pairwise(ends)])

    @property
    def spared(self) -> bool:
        """Whether contacts were left out that others seem to hold too."""
        return any([own.found.spared for own in self.families])

    @once
    def offsets(self) -> np.ndarray:
        """The part of the normal phi that gaps make, (nc,), m/s."""
        return normal_offsets(joined([own.gap for own in self.families]), self.given, self.softness)

    @once
    def surface(self) -> np.ndarray:
        """The part of phi that prescribed velocities make, (nc, 3), m/s."""
        surface = self.phi.copy()
        surface[:, 0] -= self.offsets
        for own, where in zip(self.families, self.parts, strict=True):
            if own.curved is not None:
                surface[where] -= own.curved
        return surface

    def sticky(self, reach: float) -> np.ndarray:
        """Coefficients as :attr:`friction`, but 0 for contacts of deforming bodies whose gap is larger than ``reach``, m.

        Equal and opposite forces act on the two points of such a contact, which are a gap apart: friction would turn the bodies.
        It acts at the end of the step instead, where the gap is closed.
        """
        if len(self.families) == 1:
            return self.friction
        friction = self.friction.copy()
        for own, where in zip(self.families[1:], self.parts[1:], strict=True):
            friction[where][own.gap > reach] = 0.0
        return friction

    def with_friction(self, friction: np.ndarray) -> ContactRows:
        """Return the same with other coefficients."""
        if friction is self.friction:
            return self
        return ContactRows(self.families, self.J, self.phi, friction, self.given, self.restitution, self.softness)

    @property
    def placed(self) -> Placed:
        """Where the parts are."""
        return self.families[0].found.placed

    def problem(self, system: System, dt: float, enough: float = 0.0, aim: float = math.inf) -> ContactProblem:
        """Contact problem of a step (s) with the assembled system; ``enough`` and ``aim`` are those of the problem."""
        return ContactProblem(
            system.A, system.b, self.J, self.phi, self.friction, dt, system.groups, system.b_prescribed, system.joint_rows(),
            system.turns(), system.points(), None if self.softness is None else np.outer(self.softness / dt, (1.0, 0.0, 0.0)),
            enough=enough, aim=aim,
        )  # fmt: skip


def within(speeds: Sequence[float | np.ndarray], time: float, margins: Sequence[float | np.ndarray]) -> bool:
    """Whether no gap that closes at most at these speeds, m/s, of each family closes by more than its margin, m, in a time, s."""
    for speed, margin in zip(speeds, margins, strict=True):
        closer = time * speed <= margin
        if any_of(~closer) if isinstance(closer, np.ndarray) else not closer:
            return False
    return True


class Contacts:
    """Contacts of a system.

    Parameters
    ----------
    system : System
        The bodies.
    parts : list of Part
        What can have contact.
    rules : ContactRules
        Which parts may have contact, and how.

    Attributes
    ----------
    pairs : ndarray, (np, np), bool
        Which parts may have contact with which, symmetric, themselves included.
    by_faces : ndarray, (np, np), bool
        Pairs of a soft body or rod and a rigid part that have contact by the corners, edges and faces of this one, symmetric.
    owner : ndarray, (np,)
        Body of each part; -1 for obstacles.
    correction : float
        Fraction of a penetration that a step undoes: that of the rules, or 0.
    """

    def __init__(self, system: System, parts: list[Part], rules: ContactRules) -> None:
        self.system, self.parts, self.rules, self.correction = system, parts, rules, rules.correction
        self.places = Places(system, parts)
        able, self.by_faces = pairs_by_faces(system, parts, rules)
        self._points = PointFamily(system, parts, self.places, at_nodes(rules, self.by_faces))
        self._deforming = deforming_contacts(system, parts, self.places, rules, able, self.by_faces)
        self.families: list[Family] = [self._points, *self._deforming]
        limits = LimitFamily(system, parts)
        if len(limits.row):
            self.families.append(limits)
        self._nothing, self._tell = Sums(np.zeros((len(parts), 6)), np.zeros(len(parts)), np.zeros(system.n)), Fixed(tell)
        self._hidden = [k for k, family in enumerate(self.families) if family.hidden]
        self._whole_joints = [family.whole_joints for family in self.families]
        self.pairs = rules.pairs | rules.pairs.T | np.diag([part.self_contact for part in parts])
        self.owner = np.array([part.body for part in parts], dtype=np.int64)

    # ------------------------------------------------------------------ one step

    def margins(self, placed: Placed, rates: Rates, base: float, time: float) -> list[float | np.ndarray]:
        """Return the detection margin of each family, m: a base (m), and how far gaps may close in a time (s)."""
        return [base + time * speeds for speeds in self.speeds(placed, rates)]

    def speeds(self, placed: Placed, rates: Rates) -> list[float | np.ndarray]:
        """Bounds of the speeds, m/s, at which the gaps of each family may close."""
        return [family.speeds(placed, rates) for family in self.families]

    def bend(self, rows: ContactRows, v_hat: np.ndarray) -> float:
        """Acceleration, m/s^2, by which bodies that turn together leave the tangents of their ways where they have contact."""
        return self._points.bend(rows.families[0], v_hat)

    def slide(self, rows: ContactRows, rates: Rates) -> tuple[float, float]:
        """Speeds, m/s, at which what deforms slides: along curved shapes, and along what deforms too, see both families."""
        sliding = zip(self._deforming, rows.families[1:], strict=False)
        past = max((family.slide(own, rates) for family, own in sliding), default=0.0)
        return self._points.slide(rows.families[0], rates), past

    def speed(self, rows: ContactRows, rates: Rates) -> float:
        """Largest speed, m/s, of the points of surfaces and strands that have these contacts."""
        return max(
            (family.speed(own, rates) for family, own in zip(self._deforming, rows.families[1:], strict=False)), default=0.0
        )

    def detect(self, state: State, placed: Placed, margins: Sequence[float | np.ndarray]) -> tuple[Found, ...]:
        """Find the contacts of a state, in which parts are placed so, within the margin of each family, m."""
        return tuple([family.detect(state, placed, margin) for family, margin in zip(self.families, margins, strict=True)])

    def spare(
        self, rows: ContactRows, found: Sequence[Found], rates: Rates, dt: float, depth: float, way: float
    ) -> tuple[Found, ...] | None:
        """Return what was found, which has these rows, without contacts that others seem to hold too; None where all are needed.

        See :meth:`femsim.step.deforming_contacts.DeformingFamily.spare`.
        """
        if not self._deforming:
            return None
        fewer = self._deforming[0].spare(rows.families[1], rates, dt, depth, way)
        return None if fewer is None else (found[0], fewer, *found[2:])

    def rows(self, found: Sequence[Found], v_prescribed: np.ndarray, dt: float, *, stay: bool = False) -> ContactRows:
        """Rows of the contacts, without those that nothing can press, at prescribed velocities (n,).

        Where they will ``stay`` as they are at the start, they lead along the chords of the ways of what driven bases carry.
        """
        given = Given(self.system.prescribed, v_prescribed, dt, self.correction, self.rules.max_correction)
        each = tuple([family.rows(one, given) for family, one in zip(self.families, found, strict=True)])
        if stay:
            self._points.follow_turns(each[0].found, each[0].keep, given, each[0].phi, middle=False)
        friction = [rows.friction for rows in each]
        if self.rules.anisotropic and any(one.ndim == 2 for one in friction):
            friction = [one if one.ndim == 2 else np.repeat(one[:, None], 2, axis=1) for one in friction]
        return self._joined(each, joined(friction), given)

    def moved(
        self,
        rows: ContactRows,
        there: State,
        v_prescribed: np.ndarray,
        dt: float,
        *,
        middle: bool,
        placed: Placed | None = None,
    ) -> ContactRows:
        """Rows of the same contacts, with their gaps and friction, where the bodies are in another state.

        Parameters
        ----------
        rows : ContactRows
            Those of the start of a step.
        there : State
            Middle or end of the step; only its coordinates are read.
        v_prescribed : ndarray, (n,)
            Prescribed velocities.
        dt : float, s
            Time step.
        middle : bool
            Whether normals, and the points that are closest, are found again there.
        placed : Placed, optional
            Where the parts are there. Default: read from the state.
        """
        given = Given(self.system.prescribed, v_prescribed, dt, self.correction, self.rules.max_correction)
        placed = self.places.read(there) if placed is None else placed
        pairs = zip(self.families, rows.families, strict=True)
        each = tuple([family.moved(own, there, placed, given, middle=middle) for family, own in pairs])
        return self._joined(each, rows.friction, given)

    def arrived(self, rows: ContactRows, there: State, v_hat: np.ndarray) -> ContactRows:
        """Rows with the normals of the end of a step, ``there``, to which v_hat (n,) leads, for what slides on curved shapes.

        Levers are those of the end too; all else is that of ``rows``, of the middle.
        """
        points = self._points.arrived(rows.families[0], there, self.places.read(there), v_hat, rows.given)
        if points is rows.families[0]:
            return rows
        return self._joined((points, *rows.families[1:]), rows.friction, rows.given)

    def along_arcs(self, rows: ContactRows, v_hat: np.ndarray) -> ContactRows:
        """Rows of the middle of an energy-momentum step with the ways of what turns along threads where v_hat (n,) leads."""
        points = self._points.along_arcs(rows.families[0], v_hat, rows.given)
        if points is rows.families[0]:
            return rows
        return self._joined((points, *rows.families[1:]), rows.friction, rows.given)

    def along_chords(self, rows: ContactRows, start: ContactRows, v_hat: np.ndarray, there: Callable[[], State]) -> ContactRows:
        """Rows of the middle of an energy-momentum step whose forces do the work that gaps change by from its start to its end.

        The step began with the rows of the ``start``; v_hat (n,) leads to its end, ``there``, which is asked for where needed.
        """

        @cache
        def arrived() -> tuple[State, Placed]:
            state = there()
            return state, self.places.read(state)

        families: list[PointFamily | DeformingFamily] = [self._points, *self._deforming]
        each = [
            family.along_chords(own, first, v_hat, rows.given, arrived)
            for family, own, first in zip(families, rows.families, start.families, strict=False)
        ]
        if all(one is own for one, own in zip(each, rows.families, strict=False)):
            return rows
        return self._joined((*each, *rows.families[len(each) :]), rows.friction, rows.given)

    def on_same_features(self, rows: ContactRows, there: State, v_prescribed: np.ndarray, dt: float) -> ContactRows:
        """Rows of the same contacts, at prescribed velocities (n,) in a step (s), at its middle, each where it was on its bodies.

        Unlike those of :meth:`moved` they change smoothly with the state, so that Newton's method finds where they lead.
        """
        given = Given(self.system.prescribed, v_prescribed, dt, self.correction, self.rules.max_correction)
        placed = self.places.read(there)
        pairs = list(zip(self.families, rows.families, strict=True))
        each = tuple(family.on_same_features(own, there, placed, given) for family, own in pairs)
        if all(one is own for one, (_, own) in zip(each, pairs, strict=True)):
            return rows
        return self._joined(each, rows.friction, given)

    def _joined(self, each: tuple[FamilyRows, ...], friction: np.ndarray, given: Given) -> ContactRows:
        """Rows of all families."""
        filled = [rows for rows in each if len(rows.keep)] or each[:1]
        if len(filled) == 1 and filled[0].softness is None:
            own = filled[0]
            J = compressed_rows(own.indptr, own.indices, own.data, self.system.n)
            return ContactRows(each, J, own.phi, friction, given, own.restitution)
        indptr = each[0].indptr
        for more in each[1:]:
            indptr = np.concatenate([indptr, indptr[-1] + more.indptr[1:]])
        phi = joined([rows.phi for rows in each])
        indices, data = joined([rows.indices for rows in each]), joined([rows.data for rows in each])
        J = compressed_rows(indptr, indices, data, self.system.n)
        softness = self._softness(each)
        if softness is not None:
            gap, phi = joined([rows.gap for rows in each]), phi.copy()
            phi[:, 0] += normal_offsets(gap, given, softness) - normal_offsets(gap, given)
        return ContactRows(each, J, phi, friction, given, joined([rows.restitution for rows in each]), softness)

    def _softness(self, each: tuple[FamilyRows, ...]) -> np.ndarray | None:
        """Softness of all contacts, (nc,), m/N; None where none of them is soft."""
        if self.rules.softness is None:
            return None
        softness = joined([np.zeros(len(rows)) if rows.softness is None else rows.softness for rows in each])
        return softness if softness.any() else None

    def warm_start(self, rows: ContactRows, memory: Memory, v_hat: np.ndarray, row_forces: np.ndarray | None = None) -> WarmStart:
        """Velocity of the last step, and the forces of contacts that persist, turned into the frames of this step."""
        each = zip(rows.families, memory, strict=True)
        return WarmStart(v_hat, joined([known.recall(own.key, own.frame) for own, known in each]), row_forces)

    def accept(
        self,
        rows: ContactRows,
        lam: np.ndarray,
        u: np.ndarray,
        work: np.ndarray | None = None,
        late: tuple[ContactRows, np.ndarray] | None = None,
    ) -> tuple[ContactForces, Memory]:
        """Return the forces of a solution on parts and nodes, and what the next step starts from.

        Parameters
        ----------
        rows : ContactRows
            The contacts.
        lam : ndarray, (nc, 3), N
            Contact forces, normal first.
        u : ndarray, (nc, 3), m/s
            Contact velocities J v + phi.
        work : ndarray, (nc, 3), J, optional
            Work of each force on the bodies, by directions. Default: none.
        late : (ContactRows, ndarray), optional
            The contacts at the end of the step, and the part of ``lam`` that acts there, (nc, 3), N. Default: none.
        """
        placed = rows.placed
        if not len(lam):
            return self._nothing_acts(placed)
        moved = None if late is None or late[0].families is rows.families else late[0]
        sums = Sums(*[np.zeros((1 if moved is None else 3, *own.shape)) for own in self._nothing])
        world, then = self._summed(rows, lam, sums, 0), None
        if late is not None and moved is not None:  # what acts at the end of the step does so where bodies are then
            world -= self._summed(rows, late[1], sums, 1)
            arrived = self._summed(moved, late[1], sums, 2)
            world += arrived
            there = self._sides(moved, self._cut(moved, arrived))
            then = Late(there.acting, self._shown(moved, arrived), moved.placed.reference, there.couple)
        generalized, spin, last = self.places.settle(placed, placed if moved is None else moved.placed, sums)
        each = self._cut(rows, world)
        memory = tuple([ForceMemory.of(own.key, forces) for own, forces in zip(rows.families, each, strict=True)])
        side = self._sides(rows, each)
        lam, u, world = self._shown(rows, lam), self._shown(rows, u), self._shown(rows, world)
        state, taken = np.empty(len(lam), dtype=np.int64), np.zeros(len(lam))
        self._tell(lam, u, lam[:0] if work is None else work, self.rules.slow, state, taken)
        contacts = StepContacts(
            side.position, side.normal, side.gap, world, state, side.part, side.acting, lam, u, taken, side.point, side.weight,
            placed.reference, placed.rotation, _keys(rows), then, side.couple,
        )  # fmt: skip
        late_forces = None if moved is None else last
        return ContactForces(
            contacts, sums.wrench[0], spin, sums.force_sum[0], sums.node_force[0], generalized, late_forces
        ), memory

    def _nothing_acts(self, placed: Placed) -> tuple[ContactForces, Memory]:
        """Return the forces of a step without contacts, in which parts are placed so."""
        none, vectors, weights = np.zeros(0), np.zeros((0, 3)), np.zeros((0, 2, 3))
        whole, pairs, points = (np.zeros(shape, dtype=np.int64) for shape in (0, (0, 2), (0, 2, 3)))
        contacts = StepContacts(
            vectors, vectors, none, vectors, whole, pairs, np.zeros((0, 2, 3)), vectors, vectors, none, points, weights,
            placed.reference, placed.rotation, pairs,
        )  # fmt: skip
        wrench, force_sum, node_force = (own.copy() for own in self._nothing)
        return ContactForces(contacts, wrench, wrench[:, 3:], force_sum, node_force, node_force.copy()), self.no_memory()

    def _summed(self, rows: ContactRows, lam: np.ndarray, sums: Sums, place: int) -> np.ndarray:
        """Sum forces (nc, 3), N, normal first, on parts and nodes, at a place of the sums; return them in the world, (nc, 3)."""
        own_sums = Sums(sums.wrench[place], sums.force_sum[place], sums.node_force[place])
        each = zip(self.families, rows.families, self._cut(rows, np.ascontiguousarray(lam)), strict=True)
        return joined([family.accept(own, forces, own_sums) for family, own, forces in each])

    def _cut(self, rows: ContactRows, values: np.ndarray) -> list[np.ndarray]:
        """Values (nc, ...) of each family."""
        return [values] if len(rows.families) == 1 else [values[where] for where in rows.parts]

    def _sides(self, rows: ContactRows, each: list[np.ndarray]) -> Sides:
        """Return the contacts with the forces of each family, (kept, 3), N, in the world."""
        borne = zip(self.families, rows.families, each, strict=True)
        return Sides.joined([family.sides(own, force) for family, own, force in borne if len(own.keep)])

    def _shown(self, rows: ContactRows, values: np.ndarray) -> np.ndarray:
        """Values (nc, 3) of contacts, zero where these are no contacts between parts."""
        hidden = [rows.parts[k] for k in self._hidden if len(rows.families[k].keep)]
        if not hidden:
            return values
        out = values.copy()
        for where in hidden:
            out[where] = 0.0
        return out

    # ------------------------------------------------------------------ readings of a state

    def no_memory(self) -> Memory:
        """Nothing known, for the first step."""
        return tuple(ForceMemory.empty() for _ in self.families)

    def max_penetration(self, state: State, placed: Placed) -> float:
        """Largest penetration in a state, m."""
        return max(family.max_penetration(state, placed) for family in self.families)

    def overlapping(self, state: State, placed: Placed, rows: ContactRows | None = None) -> Near:
        """Find what overlaps in a state in which parts are placed so; gaps are all negative.

        ``rows`` may be those of :meth:`moved` there, so that what was found for them is not looked for again.
        """
        found = [None] * len(self.families) if rows is None else [own.found for own in rows.families]
        each = [family.gaps(state, placed, 0.0, known) for family, known in zip(self.families, found, strict=True)]
        return each[0] if len(each) == 1 else Near(*[joined(arrays) for arrays in zip(*each, strict=True)])

    def overlapping_unjoined(self, state: State, placed: Placed) -> Near:
        """Find what overlaps, as :meth:`overlapping` does, where all joints that contact waits for have broken."""
        with ExitStack() as stack:
            for whole in self._whole_joints:
                stack.enter_context(whole.ignored())
            return self.overlapping(state, placed)

    def never(self, a: int, b: int) -> None:
        """Leave two parts without contact also when the joint between them breaks."""
        for whole in self._whole_joints:
            whole.never(a, b)

    def leading(self, state: State, placed: Placed, deep: Deep) -> list[Breaks]:
        """Whole welds each of which alone keeps contacts that are ``deep`` in a state from any force."""
        return [joint for family in self.families for joint in family.leading(state, placed, deep)]

    def led(self, part: int, other: int) -> bool:
        """Whether no force can push a part, all of it, away from another one, or from the world, -1 for it."""
        return self.families[0].whole_joints.led(part, other)

    def gaps(self, state: State, reach: float) -> tuple[np.ndarray, np.ndarray]:
        """Parts (n, 2) and gaps (n,), m, of all contacts of a state closer than ``reach`` (m)."""
        placed = self.places.read(state)
        parts, gaps, _ = zip(*(family.gaps(state, placed, reach) for family in self.families), strict=True)
        return joined(parts), joined(gaps)

    def overlaps(self, state: State) -> list[tuple[int, int, float, float]]:
        """Parts that overlap more than contact can undo: (part, part, depth, largest depth that is undone), m; slow."""
        return [one for family in self.families for one in family.overlaps(state)]


def _keys(rows: ContactRows) -> np.ndarray:
    """Return the number of the family of each contact, and its key there, (nc, 2)."""
    out = np.empty((len(rows.phi), 2), dtype=np.int64)
    for k, (own, where) in enumerate(zip(rows.families, rows.parts, strict=True)):
        out[where, 0], out[where, 1] = k, own.key
    return out

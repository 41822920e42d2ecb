"""Contacts of surfaces and strands: of soft bodies and rods with one another and themselves, and with faces of rigid parts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from contact import DeformableContacts, DeformableDetector, Strand
from contact.metrics import any_of
from femsim.model.bodies.deforming import Deforming
from femsim.model.contact_rules import Breaks, ContactRules, NoContact
from femsim.model.parts import Part, skins_of_points
from femsim.step import deforming_rows_kernels as kernels, leaning_kernels as leaning
from femsim.step.contact_family import Arrived, Deep, FamilyRows, Found, Near, Rates, Sides, matched, no_rows, room
from femsim.step.flat_ends import FlatEnds
from femsim.step.placed import Placed, Places
from femsim.step.rows_kernels import Given, Rows, Sums, turn_frames
from femsim.step.seams import Seams
from femsim.step.state import State
from femsim.step.system import System
from femsim.step.whole_joints import WholeJoints


class DeformingFamily:
    """The family of contacts between surfaces and strands.

    A soft body has contact by its surface, a rod by its centre line at its contact radius: the chain of the centres of its
    links, continued straight to its two ends. The ends move with the two links beside them. Rigid parts and obstacles have
    contact with these by their faces where the scene says so.

    Parameters
    ----------
    system : System
        The bodies.
    parts : sequence of Part
        All parts.
    places : Places
        The rows of v that move rigid parts.
    able : dict of int to list of Deforming
        Surfaces and strands by the number of their part.
    pairs : ndarray, (k, k), bool
        Which of all these, one after the other, may have contact with each other, on the diagonal which with themselves.
    rules : ContactRules
        How they have it.
    """

    hidden = False

    def __init__(
        self,
        system: System,
        parts: Sequence[Part],
        places: Places,
        able: dict[int, list[Deforming]],
        pairs: np.ndarray,
        rules: ContactRules,
    ) -> None:
        self._system, self._places, self._rules = system, places, rules
        numbers, self._able = _one_by_one(able), [one for each in able.values() for one in each]
        self._number, self._owners = np.array(numbers, dtype=np.int64), [parts[k] for k in numbers]
        hung = _hung(system, self._owners, self._able, places, numbers)
        self._where, self._carriers = hung.where, hung.carriers
        self._node, self._weight, self._row, self._part, self._columns = hung.node, hung.weight, hung.row, hung.part, hung.columns
        self._beside = _beside(self._owners, self._able, self._where)
        self._own = np.concatenate([np.zeros(0), *(one.number for one in self._able)]).astype(np.int64)
        rest = np.concatenate([np.zeros((0, 3)), *(one.rest for one in self._able)])
        self._detector = DeformableDetector([one.shape for one in self._able], pairs, rest)
        self._flat_ends = FlatEnds(self._able, self._where)
        self._without = [self._points_without(rule) for rule in rules.no_contact if rule.part in able and rule.other in able]
        self.whole_joints = self._joints_between(rules)
        self._skin, self._seams = self._skins_of_points(parts), Seams(parts, rules.pairs)
        self._rigid = any(_rigid(system, part) for part in self._owners)
        self._scratch = kernels.Nodes.empty()
        self._turns = np.array([part.turns or _rigid(system, part) for part in self._owners], dtype=np.bool_)
        joints = int(np.diff(places.joint_start)[self._carriers].max(initial=0))
        self._most_entries = kernels.MOST_ENTRIES + 3 * joints
        self._no_rows = no_rows()

    def _joints_between(self, rules: ContactRules) -> WholeJoints:
        """Find what waits for a joint to break."""
        part, node = np.repeat(self._number, [len(one.rest) for one in self._able]), np.full(len(self._own), -1)
        for owner, one, where in zip(self._owners, self._able, self._where, strict=True):
            if not _rigid(self._system, owner):
                node[where] = np.asarray(owner.nodes)[one.number]
        return WholeJoints(rules.until_broken, part, node, rules.welds, len(rules.pairs), rules.led)

    def _skins_of_points(self, parts: Sequence[Part]) -> np.ndarray | None:
        """Skin of each point, (p,) int; None where no part has regions, whose contacts then have the skins of parts."""
        if not any(owner.regions for owner in self._owners):
            return None
        skin, each = np.repeat(self._number, [len(one.rest) for one in self._able]), skins_of_points(parts)
        for number, owner, one, where in self._each():
            if owner.regions:
                skin[where] = each[number][one.number]
        return skin

    def _points_without(self, rule: NoContact) -> tuple[int, int, int, int]:
        """First and last point, half-open, of links without contact, the part of their rod, and the other one."""
        where = self._where[self._number.tolist().index(rule.part)]
        # points are the two ends and the centres between them; the end of the rod never has contact with what holds it
        n = where.stop - where.start - 2
        first = where.start + (rule.first + 1 if rule.first > 0 else 0)
        last = where.start + rule.last + 1 if rule.last < n else where.stop
        return first, last, rule.part, rule.other

    # ------------------------------------------------------------------ detection

    def _each(self) -> Iterator[tuple[int, Part, Deforming, slice]]:
        """Go through the parts: number, part, what it has, and which points are its."""
        return zip(self._number.tolist(), self._owners, self._able, self._where, strict=True)

    def _place_points(self, state: State, placed: Placed) -> np.ndarray:
        """World positions of all points, (p, 3), m."""
        points = np.empty((len(self._node), 3))
        for k, part, one, where in self._each():
            if _rigid(self._system, part):
                points[where] = one.rest @ placed.rotation[k].T + placed.translation[k]
                continue
            q = state.q[self._system.q_slices[part.body]]
            points[where] = one.positions(self._system.bodies[part.body].contact_points(q, part.nodes))
        return points

    def _find(self, points: np.ndarray, placed: Placed, margin: float | np.ndarray) -> DeformableContacts:
        """Contacts within a margin, m, without those that the rules exclude; moves points of rims to where they are closest."""
        found = self._detector.detect(points, margin)
        if self._flat_ends.aim(found, points):
            found = self._detector.detect(points, margin)
        found = self._flat_ends.kept(found, points)
        keep = ~self.whole_joints.at_surfaces(found.point)
        part = self._number[found.body]
        for side in (0, 1) if self._seams and len(found) else ():
            place = found.position
            on = (part[:, side], part[:, 1 - side], place[:, side], place[:, 1 - side])
            keep &= ~self._seams.covered(*on, found.gap, placed)
        for first, last, rod, other in self._without:
            near = np.asarray(((found.point >= first) & (found.point < last)).any(axis=2))
            for side in (0, 1):
                keep &= ~(near[:, side] & (part[:, side] == rod) & (part[:, 1 - side] == other))
        return found if keep.all() else found.select(keep)

    def detect(self, state: State, placed: Placed, margin: float | np.ndarray) -> Found:
        """Find the contacts of a state within a margin, one number or one for each two bodies, m."""
        points = self._place_points(state, placed)
        found = self._find(points, placed, margin)
        led = self.whole_joints.led_at_surfaces(found.point)
        return Found(found.select(~led) if led.any() else found, points, placed, margin)

    def spare(self, rows: FamilyRows, rates: Rates, dt: float, depth: float, way: float) -> Found | None:
        """Leave out of what was found the contacts that others seem to hold too; None where all are needed.

        These are left out where nothing is deeper than ``depth``, m, or slides by more than a ``way``, m, in a step of dt, s:
        where vertices slide past edges, others hold in the end than in the beginning.
        """
        found = rows.found
        c: DeformableContacts = found.contacts
        if not (self._rigid and len(c) and c.gap.min() >= -depth) or dt * self.slide(rows, rates) > way:
            return None
        needed = c.needed(self._detector.bodies)
        return None if needed.all() else replace(found, contacts=c.select(needed), spared=True)

    def _velocities(self, placed: Placed, rates: Rates) -> np.ndarray:
        """Velocities of all points, (p, 3), m/s."""
        own = rates.v_hat[self._row[: len(self._node), None] + np.arange(3)]
        each = np.einsum("pi,pic->pc", self._weight, own[np.minimum(self._node, len(own) - 1)])
        v = np.where(self._system.prescribed, rates.v_prescribed, rates.v_hat)
        for k, part, one, where in self._each():
            if _rigid(self._system, part):
                each[where] = self._carried(placed, v, k, one)
        return np.asarray(each)

    def slide(self, rows: FamilyRows, rates: Rates) -> float:
        """Largest speed, m/s, at which the features of a contact pass each other across its normal."""
        if not len(rows):
            return 0.0
        sides = self._sides_move(rows, rates)
        past, normal = sides[:, 0] - sides[:, 1], rows.frame[:, 0]
        past -= (past * normal).sum(axis=1, keepdims=True) * normal
        return float(np.sqrt((past**2).sum(axis=1).max()))

    def speed(self, rows: FamilyRows, rates: Rates) -> float:
        """Largest speed, m/s, of a side of a contact."""
        return float(np.linalg.norm(self._sides_move(rows, rates), axis=2).max()) if len(rows) else 0.0

    def _sides_move(self, rows: FamilyRows, rates: Rates) -> np.ndarray:
        """Velocities of both sides of contacts, (kept, 2, 3), m/s."""
        c: DeformableContacts = rows.found.contacts
        return _weighted(c.weight[rows.keep], c.point[rows.keep], self._velocities(rows.found.placed, rates))

    def speeds(self, placed: Placed, rates: Rates) -> np.ndarray:
        """Bounds of the speed (m/s) at which points of each two bodies may near each other, (bodies, bodies)."""
        each = self._velocities(placed, rates)
        means = np.array([each[where].mean(axis=0) for where in self._where])
        spread = np.array(
            [np.linalg.norm(each[where] - mean, axis=1).max() for where, mean in zip(self._where, means, strict=True)]
        )
        for caps, *rims in self._flat_ends.groups:  # whose points go round
            means[rims], spread[rims] = means[caps], spread[caps]
        return np.asarray(np.linalg.norm(means[:, None] - means, axis=2) + spread[:, None] + spread)

    def _carried(self, placed: Placed, v: np.ndarray, k: int, one: Deforming) -> np.ndarray:
        """Velocities of the points of rigid part k, (n, 3), m/s, by those of all bodies, (n,)."""
        places, row = self._places, self._places.row[k]
        if row < 0:
            return np.zeros((len(one.rest), 3))
        joints = slice(places.joint_start[k], places.joint_start[k + 1])
        twist = v[row : row + 6] + v[places.joint_row[joints]] @ placed.screw[joints]
        lever = one.rest @ placed.rotation[k].T + (placed.translation[k] - placed.origin[k])
        x, y, z = twist[3:].tolist()
        return np.asarray(twist[:3] + lever @ np.array([[0.0, z, -y], [-z, 0.0, x], [y, -x, 0.0]]))

    def max_penetration(self, state: State, placed: Placed) -> float:
        """Largest penetration in a state, m."""
        return max(-float(self._find(self._place_points(state, placed), placed, 0.0).gap.min(initial=0.0)), 0.0)

    def gaps(self, state: State, placed: Placed, reach: float, known: Found | None = None) -> Near:
        """Find all contacts of a state closer than ``reach`` (m)."""
        found = self._find(self._place_points(state, placed), placed, reach)
        led = self.whole_joints.led_at_surfaces(found.point)
        return Near(np.asarray(self._number[found.body]), np.asarray(found.gap).copy(), led)

    def leading(self, state: State, placed: Placed, deep: Deep) -> list[Breaks]:
        """Whole welds each of which alone keeps contacts that are ``deep`` in a state from any force."""
        found = self._find(self._place_points(state, placed), placed, 0.0)
        return self.whole_joints.leading_at_surfaces(found.point[deep(self._number[found.body], found.gap)])

    def overlaps(self, state: State) -> list[tuple[int, int, float, float]]:
        """Parts that overlap, (part, part, depth, largest depth that is undone), m; slow. A rod may overlap what holds it."""
        joined = {frozenset((rod, other)) for _, _, rod, other in self._without}
        found = self._detector.overlaps(self._place_points(state, self._places.read(state)))
        lines = self._flat_ends.lines
        named = [
            (int(self._number[a]), int(self._number[b]), depth, bound) for a, b, depth, bound in found if lines.isdisjoint((a, b))
        ]
        return [one for one in named if {one[0], one[1]} not in joined]

    # ------------------------------------------------------------------ rows and forces

    def _pairs(self, found: DeformableContacts) -> kernels.Pairs:
        return kernels.Pairs(
            self._number[found.body], found.point, found.weight, found.position, found.gap, found.frame
        )  # fmt: skip

    def _points(self, found: Found) -> kernels.Points:
        place = found.points
        if len(self._carriers):
            place = np.concatenate([place, found.placed.origin[self._carriers]])
        return kernels.Points(self._node, self._weight, self._row, self._columns, place, self._part, self._beside)

    def rows(self, found: Found, given: Given) -> FamilyRows:
        """Rows of the contacts, without those that nothing can press."""
        if not len(found.contacts):
            return self._no_rows.of(found)
        c: DeformableContacts = found.contacts
        rows = self._filled(found, given)
        keep = rows.keep
        sides = self._number[c.body[keep]]
        skins = sides if self._skin is None else self._skin[_heaviest(c)[keep]]
        return FamilyRows(
            found, keep, rows.indptr, rows.indices, rows.data, rows.phi,
            self._rules.friction[skins[:, 0], skins[:, 1]], c.key[keep], c.frame[keep], c.gap[keep],
            self._rules.restitution[sides[:, 0], sides[:, 1]],
            None if self._rules.softness is None else self._rules.softness[sides[:, 0], sides[:, 1]],
        )  # fmt: skip

    def _filled(self, found: Found, given: Given) -> Rows:
        """Entries of J and phi of contacts, of those that something can press."""
        rows, rigid = room(len(found.contacts), self._most_entries), self._places.rigid(found.placed)
        pairs = self._pairs(found.contacts)
        return rows.cut(*kernels.fill_rows(pairs, self._points(found), rigid, given, self._scratch, rows))

    def moved(self, rows: FamilyRows, there: State, placed: Placed, given: Given, *, middle: bool) -> FamilyRows:
        """Rows of the same contacts where the bodies are in another state.

        Those that are not found there stay on the features that they were on.
        """
        if not len(rows):
            return rows
        c: DeformableContacts = rows.found.contacts.select(rows.keep)
        points, frame, point, weight = self._place_points(there, placed), rows.frame.copy(), c.point.copy(), c.weight.copy()
        now = self._find(points, placed, rows.found.margin)
        place, known = self._found_again(rows, c, now), np.empty(len(c), dtype=np.bool_)
        turn_frames(frame, place, now.frame, known)
        point[known], weight[known] = now.point[place[known]], now.weight[place[known]]
        self._stay(c, ~known, points, frame, weight)
        return self._moved(rows, c, placed, given, (points, frame, point, weight))

    def _found_again(self, rows: FamilyRows, c: DeformableContacts, now: DeformableContacts) -> np.ndarray:
        """Places of contacts c with rows, (n,), among those that were found now; -1 for those that were not.

        What slides goes from feature to feature; held by the first one alone a kink of a rod would sink into the next edge. Where
        neither side turns, forces act at two places, a gap apart, and contacts stay on their features, see :meth:`_stay`.
        """
        place, turns = matched(rows.key, now.key), self._turns[c.body].any(axis=1)
        if len(now) and (turns & (place < 0)).any():
            used = np.empty(len(now), dtype=np.bool_)
            kernels.hand_over(
                c.body, c.point, rows.gap, rows.frame, now.body, now.point, now.gap, now.frame, turns, place, used
            )  # fmt: skip
        return place

    def along_chords(self, rows: FamilyRows, start: FamilyRows, v_hat: np.ndarray, given: Given, arrived: Arrived) -> FamilyRows:
        """Rows of the middle of an energy-momentum step whose forces do the work that gaps change by.

        v_hat (n,) leads to its end, where what slides may be over another feature: see :mod:`femsim.step.leaning_kernels`. Where
        neither side turns, forces act at two places, in line along the normal; leaning they would turn the bodies.
        """
        if not len(rows):
            return rows
        leans = self._turns[rows.found.contacts.body[rows.keep]].any(axis=1)
        slip, way = np.empty_like(rows.phi), np.empty_like(rows.phi)
        leaning.slips(rows.indptr, rows.indices, rows.data, rows.phi, v_hat, rows.gap, *given[2:], slip)
        leaning.ways_of_slips(slip, rows.frame, way)
        if not leaning.may_press(slip, way, rows.gap, leans):
            return rows
        c: DeformableContacts = rows.found.contacts.select(rows.keep)
        there, placed = arrived()
        now = self._find(self._place_points(there, placed), placed, rows.found.margin)
        frame = rows.frame.copy()
        if not leaning.lean_along(leans, self._found_again(rows, c, now), now.gap, rows.gap, slip, way, frame):
            return rows
        return self._moved(rows, c, rows.found.placed, given, (rows.found.points, frame, c.point, c.weight))

    def on_same_features(self, rows: FamilyRows, there: State, placed: Placed, given: Given) -> FamilyRows:
        """Rows of the same contacts on the same features, where the bodies are in another state."""
        if not len(rows):
            return rows
        c: DeformableContacts = rows.found.contacts.select(rows.keep)
        points, frame, weight = self._place_points(there, placed), rows.frame.copy(), c.weight.copy()
        self._stay(c, np.ones(len(c), dtype=np.bool_), points, frame, weight)
        return self._moved(rows, c, placed, given, (points, frame, c.point, weight))

    def _stay(self, c: DeformableContacts, which: np.ndarray, points: np.ndarray, frame: np.ndarray, weight: np.ndarray) -> None:
        """Move frames (n, 3, 3) and weights (n, 2, 3) of some contacts, (n,) bool, on the features that they were on.

        With the weights and the normal of before, points that have slid past each other would be apart across the normal, and
        equal and opposite forces on them would turn the bodies; not where a side turns, which feels the force at the other one.
        """
        own = np.flatnonzero(which & ~self._turns[c.body].any(axis=1))
        if len(own):
            weight[own], now = c.select(own).on_same_features(points)
            turned = frame[own]
            turn_frames(turned, np.arange(len(own)), now, np.empty(len(own), dtype=np.bool_))
            frame[own] = turned

    def _moved(
        self, rows: FamilyRows, c: DeformableContacts, placed: Placed, given: Given, where: tuple[np.ndarray, ...]
    ) -> FamilyRows:
        """Rows of contacts, before ``c``, that are now where these points (p, 3), frames, points of each side and weights say.

        Links that contacts turn feel the force where it acts on the other side.
        """
        found, (points, frame, point, weight) = rows.found, where
        radius = np.einsum("msc,mc->ms", c.position - _weighted(c.weight, c.point, found.points), rows.frame[:, 0])
        on_nodes = _weighted(weight, point, points)
        position = on_nodes + radius[:, :, None] * frame[:, None, 0]
        turns = self._turns[c.body]
        position[turns.all(axis=1)] = position[turns.all(axis=1)].mean(axis=1, keepdims=True)
        for side in (0, 1):
            own = turns[:, side] & ~turns[:, 1 - side]
            position[own, side] = position[own, 1 - side]
        on = replace(c, frame=frame, point=point, weight=weight, position=position)
        moved = Found(on, points, placed, found.margin, spared=found.spared)
        out = self._filled(moved, given)
        if len(out.keep) < len(c):
            return rows
        kept = {name: getattr(rows, name) for name in ("friction", "key", "gap", "restitution", "softness")}
        return FamilyRows(moved, out.keep, out.indptr, out.indices, out.data, out.phi, frame=frame, **kept)

    def accept(self, rows: FamilyRows, lam: np.ndarray, sums: Sums) -> np.ndarray:
        """Add the forces lam (kept, 3), N, normal first, to the sums; return those in the world, (kept, 3)."""
        if not len(rows):
            return rows.phi
        found, keep, world = rows.found, rows.keep, np.empty((len(rows), 3))
        pairs = self._pairs(found.contacts)
        kernels.add_forces(
            keep, pairs, self._points(found), self._acting(rows), found.placed.reference, lam, self._scratch, sums, world
        )  # fmt: skip
        return world

    def _acting(self, rows: FamilyRows) -> np.ndarray:
        """Where the forces act on each side, (kept, 2, 3), m: on the nodes of a side that does not turn, not on its surface."""
        c: DeformableContacts = rows.found.contacts.select(rows.keep)
        return np.where(self._turns[c.body][:, :, None], c.position, _weighted(c.weight, c.point, rows.found.points))

    def sides(self, rows: FamilyRows, world: np.ndarray) -> Sides:
        """Return contacts with these forces, (kept, 3), N, one by one."""
        keep = rows.keep
        c: DeformableContacts = rows.found.contacts
        point = c.point[keep]
        own = np.where(point >= 0, self._own[point], -1)
        return Sides(
            c.position[keep, 0], self._acting(rows), rows.frame[:, 0], c.gap[keep], world, self._pairs(c).part[keep], own,
            c.weight[keep], self._couples(rows),
        )  # fmt: skip

    def _couples(self, rows: FamilyRows) -> np.ndarray | None:
        """Couple on each side beside the force, times that, (kept, 2, 3, 3), m; None where no strands have any."""
        if not any_of(self._beside >= 0):
            return None
        out = np.zeros((len(rows), 2, 3, 3))
        kernels.fill_couples(rows.keep, self._pairs(rows.found.contacts), self._points(rows.found), out)
        return out


def _heaviest(contacts: DeformableContacts) -> np.ndarray:
    """Points of both sides that bear most of the force of each contact, (n, 2)."""
    most = contacts.weight.argmax(axis=2)[:, :, None]
    return np.take_along_axis(contacts.point, most, axis=2)[:, :, 0]


def _weighted(weight: np.ndarray, point: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Weighted means of points, (nc, 2, 3), m; where there is no point, -1, the weight is zero."""
    return np.asarray(np.einsum("msi,msic->msc", weight, points[point]))


class _Hung(NamedTuple):
    """What moves the points of surfaces and strands, fields of :class:`~femsim.step.deforming_rows_kernels.Points`.

    ``where`` says which points are those of each part, ``carriers`` (c,) are the rigid parts that move theirs; their origins
    stand behind all points.
    """

    where: list[slice]
    carriers: np.ndarray
    node: np.ndarray
    weight: np.ndarray
    row: np.ndarray
    part: np.ndarray
    columns: np.ndarray


def _hung(system: System, owners: Sequence[Part], able: Sequence[Deforming], places: Places, numbers: Sequence[int]) -> _Hung:
    """Hang the points of parts on what moves them: nodes of their own, or the origin of a rigid part."""
    moves = [_rigid(system, part) and places.row[k] >= 0 for k, part in zip(numbers, owners, strict=True)]
    carriers = np.array([k for k, one in zip(numbers, moves, strict=True) if one], dtype=np.int64)
    ends = np.cumsum([0, *(len(one.rest) for one in able)]).tolist()
    count, origin = ends[-1], ends[-1] + np.cumsum(moves) - 1
    node, weight, row = (
        np.empty((count, 2), dtype=np.int64),
        np.empty((count, 2)),
        np.zeros(count + len(carriers), dtype=np.int64),
    )
    where, columns = [slice(*pair) for pair in pairwise(ends)], np.full(system.n, 3, dtype=np.int64)
    for k, (part, one, own) in enumerate(zip(owners, able, where, strict=True)):
        if _rigid(system, part):  # its rows are not read
            node[own], weight[own] = (origin[k] if moves[k] else -1, -1), (1.0, 0.0)
            continue
        rows = system.v_slices[part.body]
        if part.turns:
            columns[rows] = 6
        node[own], weight[own] = np.where(one.node >= 0, one.node + own.start, -1), one.weight
        row[own] = rows.start + system.bodies[part.body].contact_rows(part.nodes)[one.number]
    row[count:] = places.row[carriers]
    columns[row[count:]] = 6
    return _Hung(where, carriers, node, weight, row, np.concatenate([np.full(count, -1), carriers]).astype(np.int64), columns)


def _beside(owners: Sequence[Part], able: Sequence[Deforming], where: Sequence[slice]) -> np.ndarray:
    """Neighbours of each point on a strand whose links contacts do not turn, (p, 2); -1 for all others."""
    beside = np.full((where[-1].stop, 2), -1)
    for part, one, own in zip(owners, able, where, strict=True):
        if isinstance(one.shape, Strand) and not (part.turns or part.shapes) and len(one.rest) > 1:
            number = np.arange(own.start, own.stop)
            beside[own] = np.clip(np.column_stack([number - 1, number + 1]), own.start, own.stop - 1)
    return beside


def _rigid(system: System, part: Part) -> bool:
    """Whether a part is an obstacle or a part of a rigid body."""
    return part.body < 0 or system.bodies[part.body].rigid


def _one_by_one(able: dict[int, list[Deforming]]) -> list[int]:
    """Part of each of all surfaces and strands, one after the other."""
    return [k for k, each in able.items() for _ in each]


def deforming_contacts(
    system: System,
    parts: Sequence[Part],
    places: Places,
    rules: ContactRules,
    able: dict[int, list[Deforming]],
    by_faces: np.ndarray,
) -> list[DeformingFamily]:
    """Return the family of the parts ``able``; no family where none of them may have contact with another or itself.

    A rigid part has it only in the pairs ``by_faces``, (np, np), see :func:`femsim.step.by_faces.pairs_by_faces`.
    """
    numbers = _one_by_one(able)
    own = np.ix_(numbers, numbers)
    rigid = np.array([_rigid(system, parts[k]) for k in numbers], dtype=np.bool_)
    pairs = (rules.pairs[own] | rules.pairs[own].T) & (by_faces[own] | ~(rigid[:, None] | rigid))
    np.fill_diagonal(pairs, [parts[k].self_contact for k in numbers])
    return [DeformingFamily(system, parts, places, able, np.asarray(pairs), rules)] if pairs.any() else []

"""Contacts between points and shapes: nodes of soft bodies, links of rods and features of rigid parts against shapes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from contact import Box, Detector, Mesh, PlacedShape, Plane, PointContacts, Revolved, first_points
from contact.compiled import Fixed
from contact.metrics import any_of, norm
from contact.shapes import Shape, signed_distance
from femsim.base.rotations import cross_matrix, quaternion_from_vector, quaternion_to_matrix
from femsim.model.contact_rules import Breaks, ContactRules
from femsim.model.parts import Part, skins_of, skins_of_points
from femsim.step import (
    curved_kernels as curved,
    leaning_kernels as leaning,
    point_pairs_kernels as pair_kernels,
    point_rows_kernels as kernels,
    turning_kernels,
)
from femsim.step.contact_family import Arrived, Deep, FamilyRows, Found, Near, Rates, Sides, matched, no_rows, room
from femsim.step.placed import Placed, Places
from femsim.step.rows_kernels import Given, Rows, Sums
from femsim.step.seams import Seams
from femsim.step.state import State
from femsim.step.system import System
from femsim.step.turned_axes import Axes
from femsim.step.whole_joints import WholeJoints

#: Half the turn of a step, rad, from which on what a driven base carries is led no further off its tangent: nothing sticks there.
_MOST_CARRIED = 0.5


class _Points(NamedTuple):
    """The points and shapes of all parts, in the order of the parts.

    Attributes
    ----------
    shapes : list of PlacedShape
        Shapes of rigid parts and obstacles.
    first : list of int
        First point of each.
    own : list of (slice, ndarray or None)
        Where the points of each part stand among all, and for rigid parts and obstacles where they are in its own frame, m.
    part, row : ndarray, (p,)
        Part of each point, and the first row of v that moves it, -1 where it moves with a rigid part or not at all.
    radius : ndarray, (p,), m
        Radius of each.
    """

    shapes: list[PlacedShape]
    first: list[int]
    own: list[tuple[slice, np.ndarray | None]]
    part: np.ndarray
    row: np.ndarray
    radius: np.ndarray


def _points_of(system: System, parts: Sequence[Part]) -> _Points:
    """Gather the points and shapes of all parts: nodes of those that deform, features of the shapes of the others."""
    shapes: list[PlacedShape] = []
    first: list[int] = []
    own: list[tuple[slice, np.ndarray | None]] = []
    rows, radii = [], [np.zeros(0)]
    count = 0
    for k, part in enumerate(parts):
        start = count
        if len(part.nodes):
            body, local = system.bodies[part.body], None
            count += len(part.nodes)
            rows.append(system.v_slices[part.body].start + body.contact_rows(part.nodes))
            radii.append(np.full(len(part.nodes), body.contact_radius))
        else:
            features: list[np.ndarray] = [np.zeros((0, 3))]
            for shape, rotation, translation in part.shapes:
                shapes.append(PlacedShape(shape, k, rotation, translation, k))
                first.append(count)
                points, radius = shape.features()  # also of obstacles: what lies on one may overhang it on all sides
                features.append(points @ rotation.T + translation)
                radii.append(radius)
                count += len(points)
            local = np.concatenate(features)
            rows.append(np.full(count - start, -1))
        own.append((slice(start, count), local))
    part_of = np.repeat(np.arange(len(parts), dtype=np.int64), [where.stop - where.start for where, _ in own])
    return _Points(shapes, first, own, part_of, np.concatenate(rows).astype(np.int64), np.concatenate(radii))


def _least_round(shape: Shape) -> float:
    """Least radius, m, of points that go round a shape: links go round the edges of boxes, nodes go from face to face."""
    if isinstance(shape, Plane):
        return math.inf
    return float(np.finfo(float).tiny) if isinstance(shape, Box) else 0.0


class PointFamily:
    """The family of contacts between points and shapes.

    Parameters
    ----------
    system : System
        The bodies.
    parts : sequence of Part
        The parts; shapes are on rigid ones and obstacles, points on all.
    places : Places
        The rows of v that move rigid parts.
    rules : ContactRules
        Which of them may have contact, and how.

    Attributes
    ----------
    point_part, shape_part : ndarray, (p,) and (s,)
        Part of each point and of each shape.
    """

    hidden = False

    def __init__(self, system: System, parts: Sequence[Part], places: Places, rules: ContactRules) -> None:
        self._system, self._parts, self._places, self._rules = system, parts, places, rules
        self._place_carried, self._fastest = Fixed(kernels.place_carried), Fixed(kernels.fastest)
        self._bend = Fixed(turning_kernels.bend)
        self._fill_rows, self._follow, self._add_forces = map(Fixed, (kernels.fill_rows, kernels.follow, kernels.add_forces))
        self._find_again, self._fill_pairs, self._fill_sides = map(
            Fixed, (pair_kernels.find_again, pair_kernels.fill_pairs, pair_kernels.fill_sides)
        )
        self._hand_over = Fixed(pair_kernels.hand_over)
        self._at_edges, self._slips, self._ways, self._may_press, self._lean_along = map(
            Fixed, (leaning.at_edges, leaning.slips, leaning.ways_of_points, leaning.may_press, leaning.lean_along)
        )  # fmt: skip
        self._find_curved, self._turn_to, self._slide = map(Fixed, (curved.find_curved, curved.turn_to, curved.slide))
        self._lead_there, self._take_levers, self._keep_ways = map(
            Fixed, (curved.lead_there, curved.take_levers, curved.keep_ways)
        )  # fmt: skip
        self._fill_near, self._keep_within = Fixed(pair_kernels.fill_near), Fixed(pair_kernels.keep_within)
        self._closing = Fixed(pair_kernels.approach)
        points = _points_of(system, parts)
        shapes, self._own, self.point_part, self._row = points.shapes, points.own, points.part, points.row
        self.shape_part = np.array([s.body for s in shapes], dtype=np.int64)
        self._find_skins()
        self._sort_points(len(points.part))
        self._columns = np.array([6 if part.turns else 3 for part in parts], dtype=np.int64)[points.part]
        #: links that contacts do not turn, which bear forces at their centres, and the radius of each, 0 of all other points
        self._by_centre = (self._row >= 0) & (self._columns == 3) & (points.radius > 0.0)
        self._any_by_centre = any_of(self._by_centre)
        self._around = np.where(self._by_centre, points.radius, 0.0)
        #: how far from a point forces act, m
        self._levers = points.radius - self._around
        moved = np.where(places.row >= 0, kernels.MOST_COLUMNS + np.diff(places.joint_start), 0)
        of_points = np.where(self._row >= 0, self._columns, moved[self.point_part])
        #: entries of J that a contact has at most, on both sides
        self._most_entries = 3 * int(of_points.max(initial=0) + moved[self.shape_part].max(initial=0))
        self._detector = Detector(
            shapes, points.part, points.radius, self._point_skin, rules.pairs,
            most_per_pair=rules.most_per_pair, within=self._find_links(),
            **first_points([placed.shape for placed in shapes], points.first),
        )  # fmt: skip
        self._shapes, self._seams = shapes, Seams(parts, rules.pairs)
        #: shapes of several walls, which take over from each other what slides along them
        self._walls = np.array([isinstance(one.shape, Revolved) and len(one.shape.points) > 2 for one in shapes], dtype=np.bool_)
        self._any_walls = any_of(self._walls)
        #: those and meshes, and boxes: what slides over their edges is pushed across its way
        self._faceted = self._walls | np.array([isinstance(one.shape, Mesh) for one in shapes], dtype=np.bool_)
        self._boxes = np.array([isinstance(one.shape, Box) for one in shapes], dtype=np.bool_)
        self._any_edges = any_of(self._faceted | self._boxes)
        self._radius, self._curved = points.radius, np.array([_least_round(one.shape) for one in shapes])
        self._axes = Axes(shapes, points.first, len(points.part), places.row, system)
        self._no_rows = no_rows(2 if rules.anisotropic else 1)
        #: where bounds were asked for at prescribed velocities, at which, and what they are: the same in all of a step
        self._given: tuple[Placed, np.ndarray, float | np.ndarray] = (places.still, np.zeros(0), 0.0)
        self._first = np.array([where.start for where, _ in self._own])
        self._leave_out(len(points.part))
        #: rows of the points of parts that deform, and how far the shapes of rigid parts reach from their centres of mass (m)
        deforming = {part.body for part in parts if part.body >= 0 and not system.bodies[part.body].rigid}
        nodes = [(g.start, g.stop, g.stride) for g in (system.groups[body] for body in sorted(deforming))]
        self._nodes = np.array(nodes, dtype=np.int64).reshape(-1, 3)
        self._reach = np.array([max((norm(t) + s.bounding_radius for s, _, t in part.shapes), default=0.0) for part in parts])

    def _leave_out(self, count: int) -> None:
        """Note what has no contact: some of the ``count`` points with a part, and pairs until a joint breaks."""
        rules = self._rules
        #: first and last point, half-open, and the part that they have no contact with
        self._without = [
            (self._own[rule.part][0].start + rule.first, self._own[rule.part][0].start + rule.last, rule.other)
            for rule in rules.no_contact
        ]
        node = np.full(count, -1, dtype=np.int64)
        for part, where in self._deforming:
            node[where] = part.nodes
        #: what waits for a joint to break
        self.whole_joints = WholeJoints(rules.until_broken, self.point_part, node, rules.welds, len(rules.pairs), rules.led)

    def _find_skins(self) -> None:
        """Note the skin of each point, and the restitution of pairs of skins; shapes have the skins of their parts."""
        self._point_skin, part = self.point_part.copy(), [skin.part for skin in skins_of(self._parts)]
        for found, (where, local) in zip(skins_of_points(self._parts), self._own, strict=True):
            if local is None:
                self._point_skin[where] = found
        self._restitution = self._rules.restitution[np.ix_(part, part)]

    def _find_links(self) -> np.ndarray | None:
        """Note, and return, which parts are links of one robot that may have contact."""
        row = self._places.row
        owner = np.array([part.body for part in self._parts])
        within = self._rules.pairs & (owner[:, None] == owner) & (owner >= 0)
        links = within.any(axis=0)
        #: pairs of such links, None without any
        self._within = within if links.any() else None
        #: the same, one by one, but those that deform
        linked = np.argwhere(np.triu(within | within.T, 1))
        self._linked = np.ascontiguousarray(linked[(row[linked] >= 0).all(axis=1)])
        self._twist = np.zeros((len(row), 6))
        return self._within

    def _sort_points(self, count: int) -> None:
        """Note where all points are while nothing moves, the parts that deform and move theirs, and the points of rigid ones."""
        self._still, self._deforming = np.zeros((count, 3)), []
        carried, places_of = np.zeros(count, dtype=np.bool_), np.zeros((count, 3))
        for part, (where, local) in zip(self._parts, self._own, strict=True):
            if local is None:
                self._deforming.append((part, where))
            elif part.body >= 0:
                carried[where], places_of[where] = True, local
            else:
                self._still[where] = local
        own_points = np.flatnonzero(carried)
        self._carried_points = kernels.Carried(own_points, self.point_part[own_points], places_of[own_points])

    # ------------------------------------------------------------------ detection

    def _place_points(self, state: State, placed: Placed) -> np.ndarray:
        """World positions of all points, (p, 3), m."""
        points = self._still.copy()
        self._place_carried(*self._carried_points, placed.rotation, placed.translation, points)
        for part, where in self._deforming:
            q = state.q[self._system.q_slices[part.body]]
            points[where] = self._system.bodies[part.body].contact_points(q, part.nodes)
        return points

    def _find(
        self,
        points: np.ndarray,
        placed: Placed,
        margin: float | np.ndarray,
        *,
        whole: bool = False,
        among: np.ndarray | None = None,
    ) -> PointContacts:
        """Contacts within a margin, m, or the two of :meth:`speeds`, but those that the rules exclude; views of a detector.

        Where two parts have many, some are left out, unless they are asked for as a ``whole``; those of other points than
        ``among`` (k,) may be missing. A link that contacts do not turn bears its force at its centre, and so does the shape: with
        a lever to the surface what friction does to a drum would turn no cable, and a cable wound on it would creep back by the
        radius of the cable over that of the drum.
        """
        one = max(margin.tolist()) if isinstance(margin, np.ndarray) else float(margin)
        closer = one - float(margin[1]) if isinstance(margin, np.ndarray) else 0.0
        found = self._detector.detect_placed(
            points, placed.rotation, placed.translation, one, whole=whole, among=among, closer=closer
        )
        if self._seams and len(found.gap) and (covered := self._is_covered(found, placed)).any():
            found = found.select(~covered)
        self._axes.meet(found, self.point_part, placed)
        if self._any_by_centre:
            own = self._by_centre[found.point]
            found.position[own] = points[found.point[own]]
        joints = self.whole_joints
        if not len(found.gap) or not (self._without or joints or (self._within is not None and isinstance(margin, np.ndarray))):
            return found
        keep = ~joints.at_shapes(found.point, self.shape_part[found.shape])
        if self._within is not None and isinstance(margin, np.ndarray):
            self._keep_within(
                found.point, found.shape, found.gap, self.point_part, self.shape_part, self._within, margin, keep
            )  # fmt: skip
        for first, last, other in self._without:
            keep &= (found.point < first) | (found.point >= last) | (self.shape_part[found.shape] != other)
        return found.select(keep) if any_of(~keep) else found

    def _is_covered(self, found: PointContacts, placed: Placed) -> np.ndarray:
        """Contacts with edges and faces of boxes that others cover, (n,) bool."""
        on, out = self.shape_part[found.shape], np.zeros(len(found), dtype=np.bool_)
        which = np.flatnonzero((self._seams.group[on] >= 0) & self._boxes[found.shape])
        if not len(which):
            return out
        on, position, normal, gap = on[which], found.position[which], found.frame[which, 0], found.gap[which]
        place = position.copy()
        for s in np.unique(found.shape[which]).tolist():
            own, box = found.shape[which] == s, self._shapes[s]
            turn, shift = placed.rotation[box.body] @ box.rotation, placed.rotation[box.body] @ box.translation
            distance, outward = signed_distance(box.shape, (position[own] - shift - placed.translation[box.body]) @ turn)
            place[own] -= distance[:, None] * (outward @ turn.T)
        point = place + gap[:, None] * normal
        out[which] = self._seams.covered(on, self.point_part[found.point[which]], place, point, gap, placed)
        return out

    def detect(self, state: State, placed: Placed, margin: float | np.ndarray) -> Found:
        """Find the contacts of a state within a margin, m."""
        points = self._place_points(state, placed)
        found = self._find(points, placed, margin)
        if self.whole_joints.leads:
            led = self.whole_joints.led_at_shapes(found.point, self.shape_part[found.shape])
            found = found.select(~led)
        return Found(found.copy(), points, placed, margin)

    def speeds(self, placed: Placed, rates: Rates) -> float | np.ndarray:
        """Bound of the speed of every point of every part, m/s, in the last step and by what is prescribed in this one.

        The points of a rod are the centres of its links: their distance to a shape decides on contact. With links of one robot
        that may have contact a second bound, (2,), is that of their approach: what its base does closes no gap between them.
        """
        speeds = self._speeds(placed, rates.v_hat)
        if not (self._system.prescribes and any_of(rates.v_prescribed)):
            return speeds
        if not (self._given[0] is placed and self._given[1] is rates.v_prescribed):
            self._given = (placed, rates.v_prescribed, self._speeds(placed, rates.v_prescribed))
        return speeds + self._given[2]

    def _speeds(self, placed: Placed, v: np.ndarray) -> float | np.ndarray:
        """Both bounds, or the only one, at the velocities v (n,)."""
        speed = self.fastest(placed, v)
        return speed if self._within is None else np.array([speed, self._approach(placed, v)])

    def _approach(self, placed: Placed, v: np.ndarray) -> float:
        """Bound of the speed (m/s) at which two links of one robot approach each other at the velocities v (n,)."""
        parts = self._places.rigid(placed)
        return self._closing(v, self._linked, *parts, placed.translation, self._reach, self._twist)

    def fastest(self, placed: Placed, v: np.ndarray) -> float:
        """Bound of the speed (m/s) of every point of every part at the velocities v (n,)."""
        return self._fastest(v, self._nodes, *self._places.rigid(placed), placed.translation, self._reach)

    def bend(self, rows: FamilyRows, v: np.ndarray) -> float:
        """Acceleration, m/s^2, by which bodies that turn together leave the tangents of their ways where they have contact."""
        c: PointContacts = rows.found.contacts
        parts = self._places.rigid(rows.found.placed)
        return self._bend(rows.keep, c.point, c.shape, c.position, self.point_part, self._row, self.shape_part, v, parts)

    def max_penetration(self, state: State, placed: Placed) -> float:
        """Largest penetration in a state, m."""
        gap = self._find(self._place_points(state, placed), placed, 0.0).gap
        return float(-gap.min()) if len(gap) else 0.0

    def gaps(self, state: State, placed: Placed, reach: float, known: Found | None = None) -> Near:
        """Find all contacts of a state closer than ``reach`` (m)."""
        if known is not None and known.placed is placed and known.every is not None and self._detector.nested:
            point, shape, gap = known.every
        else:
            found, reach = self._find(self._place_points(state, placed), placed, reach), math.inf
            point, shape, gap = found.point, found.shape, found.gap
        parts, near = np.empty((len(gap), 2), dtype=np.int64), np.empty(len(gap))
        n = self._fill_near(point, shape, gap, self.point_part, self.shape_part, reach, parts, near)
        led = self.whole_joints.led_at_shapes(point, self.shape_part[shape])
        return Near(parts[:n], near[:n], led if n == len(led) else led[gap < reach])

    def leading(self, state: State, placed: Placed, deep: Deep) -> list[Breaks]:
        """Whole welds each of which alone keeps contacts that are ``deep`` in a state from any force."""
        found = self._find(self._place_points(state, placed), placed, 0.0)
        on = self.shape_part[found.shape]
        deep_ones = deep(np.column_stack([self.point_part[found.point], on]), found.gap)
        return self.whole_joints.leading_at_shapes(found.point[deep_ones], on[deep_ones])

    def overlaps(self, state: State) -> list[tuple[int, int, float, float]]:
        """None: what is inside a shape is pushed out however deep it is."""
        return []

    # ------------------------------------------------------------------ rows and forces

    def rows(self, found: Found, given: Given) -> FamilyRows:
        """Rows of the contacts, without those that nothing can press."""
        if not len(found.contacts.gap):
            return self._no_rows.of(found)
        rules = self._rules
        both: np.ndarray | None = None
        if rules.anisotropic:
            found, both = self._turn_frames(found, self._detector.friction(found.contacts, rules.friction))
        c: PointContacts = found.contacts
        rows = self._filled(found, given)
        keep, phi = rows.keep, rows.phi
        n = len(keep)
        if n < len(c.gap):
            c, both = c.select(keep), None if both is None else both[keep]
        friction, restitution, key = np.empty(n), np.empty(n), np.empty(n, dtype=np.int64)
        self._fill_pairs(
            c.point, c.shape, c.feature, self._point_skin, self.shape_part, self._detector.features, rules.friction,
            self._restitution, friction, restitution, key,
        )  # fmt: skip
        softness = None if rules.softness is None else rules.softness[self.point_part[c.point], self.shape_part[c.shape]]
        return FamilyRows(
            found, keep, rows.indptr, rows.indices, rows.data, phi, friction if both is None else both, key, c.frame, c.gap,
            restitution, softness,
        )  # fmt: skip

    def _filled(self, found: Found, given: Given) -> Rows:
        """Entries of J and phi of contacts, of those that something can press."""
        c: PointContacts = found.contacts
        rows = room(len(c.point), self._most_entries)
        kept, entries = self._fill_rows(
            c.point, c.shape, c.gap, c.frame, c.position, self.point_part, self._row, self._columns, found.points,
            self.shape_part, *self._places.rigid(found.placed), *given, *rows,
        )  # fmt: skip
        return rows.cut(kept, entries)

    def _found_again(self, rows: FamilyRows, now: PointContacts) -> np.ndarray:
        """Places of contacts with rows, (n,), among those that were found now; -1 for those that were not.

        What slides along a polyline that was turned about an axis goes from wall to wall; held by the first one alone it would go
        straight on through the next ones, which push it out again with energy from nowhere.
        """
        key = rows.key
        place, keys = np.empty(len(key), dtype=np.int64), np.empty(len(now.point), dtype=np.int64)
        shapes, features = len(self.shape_part), self._detector.features
        if not self._find_again(key, now.point, now.shape, now.feature, shapes, features, place, keys):
            place = matched(key, keys)
        if self._any_walls:
            c: PointContacts = rows.found.contacts
            self._hand_over(
                rows.keep, c.point, c.shape, c.gap, c.frame, self._walls, now.point, now.shape, now.gap, now.frame, place,
                np.empty(len(now.point), dtype=np.bool_),
            )  # fmt: skip
        return place

    def moved(self, rows: FamilyRows, there: State, placed: Placed, given: Given, *, middle: bool) -> FamilyRows:
        """Rows of the same contacts where the bodies are in another state; the force acts on both sides at one place."""
        points = self._place_points(there, placed)
        now = self._find(points, placed, rows.found.margin, whole=True, among=rows.found.contacts.point if middle else None)
        every = None if middle else (now.point.copy(), now.shape.copy(), now.gap.copy())
        return self._moved(rows, points, placed, given, now, self._found_again(rows, now), every)

    def arrived(self, rows: FamilyRows, there: State, placed: Placed, v_hat: np.ndarray, given: Given) -> FamilyRows:
        """Rows of the middle of a step, of nodes and links on curved shapes with the normals of its end, where v_hat (n,) leads.

        A contact leads along the tangent of its shape, which a curved one leaves: with the normal of the start a link that slides
        by s round a radius R lifts off by s^2/2R, and what pulls it back acts against its motion, as friction of s/R would. With
        that of the end it comes to rest on the shape, if phi says how far this is from the tangent. Forces have the levers of the
        end too, about shapes and links: at the places of the middle the torque of friction would lack s/2 times what presses.
        Contacts move as at the middle, by what phi has beside.
        """
        before = rows.found
        c: PointContacts = before.contacts
        on_curves, n = np.empty(len(rows), dtype=np.bool_), len(rows)
        if not self._find_curved(rows.keep, c.point, c.shape, self._row, self._radius, self._curved, on_curves) or len(c) > n:
            return rows
        points = self._place_points(there, placed)
        now = self._find(points, placed, before.margin, whole=True, among=c.point)
        place, frame = self._found_again(rows, now), rows.frame.copy()
        turned = self._turn_to(frame, place, now.frame, on_curves)  # from here on those that were found there
        c = PointContacts(c.point, c.shape, c.gap, frame, c.position, c.feature)
        middle = Found(c, before.points, before.placed, before.margin, before.every, before.spared)
        out = self._filled(middle, given)
        if not turned or len(out.keep) < n:
            return rows
        self.follow_turns(middle, out.keep, given, out.phi, middle=True)
        u = np.empty_like(out.phi)
        self._lead_there(
            out.indptr, out.indices, out.data, out.phi, v_hat, on_curves, place, now.gap, rows.gap, *given[2:], u
        )  # fmt: skip
        position, levers = c.position.copy(), before.points.copy()
        self._take_levers(
            on_curves, place, c.point, c.shape, self.point_part, self.shape_part, self._columns, before.placed.translation,
            before.placed.reference, placed.translation, placed.reference, points, now.position, position, levers,
        )  # fmt: skip
        c = PointContacts(c.point, c.shape, c.gap, frame, position, c.feature)
        found = Found(c, levers, before.placed, before.margin, before.every, before.spared)
        out = self._filled(found, given)
        if len(out.keep) < n:
            return rows
        self._keep_ways(out.indptr, out.indices, out.data, v_hat, out.phi, u)
        return FamilyRows(
            found, rows.keep, out.indptr, out.indices, out.data, out.phi, rows.friction, rows.key, frame, rows.gap,
            rows.restitution, rows.softness, u,
        )  # fmt: skip

    def slide(self, rows: FamilyRows, rates: Rates) -> float:
        """Largest speed, m/s, at which nodes and links slide along curved shapes."""
        c: PointContacts = rows.found.contacts
        return self._slide(
            rows.keep, c.point, c.shape, self._row, self._radius, self._curved, rows.indptr, rows.indices, rows.data, rows.phi,
            rates.v_hat,
        )  # fmt: skip

    def on_same_features(self, rows: FamilyRows, there: State, placed: Placed, given: Given) -> FamilyRows:
        """Rows whose frames turn with the part of the shape and whose places move with the point, none of them found again."""
        c: PointContacts = rows.found.contacts
        return self._moved(rows, self._place_points(there, placed), placed, given, c, np.full(len(rows.keep), -1), None)

    def _moved(
        self,
        rows: FamilyRows,
        points: np.ndarray,
        placed: Placed,
        given: Given,
        now: PointContacts,
        place: np.ndarray,
        every: tuple[np.ndarray, np.ndarray, np.ndarray] | None,
    ) -> FamilyRows:
        """Rows of contacts that follow the bodies: found again as number ``place`` (kept,) of those ``now``, -1 for not.

        ``every`` are the pairs found there and their gaps, where they are at the end of the step.
        """
        found, keep = rows.found, rows.keep
        c: PointContacts = found.contacts
        n = len(keep)
        frame, position = np.empty((n, 3, 3)), np.empty((n, 3))
        self._follow(
            keep, c.point, c.shape, c.frame, c.position, found.points, found.placed.rotation, found.placed.translation, points,
            placed.rotation, placed.translation, self.shape_part, *self._axes.turned, now.frame, now.position, place, frame,
            position,
        )  # fmt: skip
        if n < len(c.gap):
            c = PointContacts(c.point[keep], c.shape[keep], c.gap[keep], frame, position, c.feature[keep])
        else:
            c = PointContacts(c.point, c.shape, c.gap, frame, position, c.feature)
        moved = Found(c, points, placed, found.margin, every)
        out = self._filled(moved, given)
        if len(out.keep) < n:  # one that nothing can press there, at the edge of that
            return rows
        ways = rows.curved if every is None else None
        if ways is not None:
            out.phi[:] += ways
        elif every is None:
            self.follow_turns(moved, out.keep, given, out.phi, middle=True)
        return FamilyRows(
            moved, out.keep, out.indptr, out.indices, out.data, out.phi, rows.friction, rows.key, frame, rows.gap,
            rows.restitution, rows.softness, ways,
        )  # fmt: skip

    def along_arcs(self, rows: FamilyRows, v_hat: np.ndarray, given: Given) -> FamilyRows:
        """Rows of the middle of an energy-momentum step, on threads with normals across the way that v_hat (n,) leads.

        What turns by w in a step dt does so by 2 arctan(w dt/2), Cayley's map, and its thread leads it by so much less. By the
        normals of the middle alone it would sink into the flank, by a micrometre a step at a tenth of a turn.
        """
        c: PointContacts = rows.found.contacts
        frame = self._axes.led(rows.found, rows.keep, rows.frame, self.point_part, v_hat, given.dt)
        if frame is rows.frame:
            return rows
        found = replace(rows.found, contacts=replace(c.select(rows.keep), frame=frame))
        out = self._filled(found, given)
        if len(out.keep) < len(rows):
            return rows
        return replace(
            rows, found=found, keep=out.keep, indptr=out.indptr, indices=out.indices, data=out.data, phi=out.phi, frame=frame
        )

    def along_chords(self, rows: FamilyRows, start: FamilyRows, v_hat: np.ndarray, given: Given, arrived: Arrived) -> FamilyRows:
        """Rows of the middle of an energy-momentum step whose forces do the work that gaps of shapes with edges change by.

        The step began with the rows of the ``start``, and v_hat (n,) leads to its end, where another wall or facet may be
        nearest: see :mod:`femsim.step.leaning_kernels`. The force of a ball goes through its centre as before.
        """
        if not self._any_edges or len(start) != len(rows):
            return rows
        c: PointContacts = rows.found.contacts.select(rows.keep)
        leans, before, middle = np.empty(len(rows), dtype=np.bool_), start.found, rows.found.placed.rotation
        if not self._at_edges(
            c.point, c.shape, self.shape_part, self._faceted, self._boxes, start.frame, before.placed.rotation, rows.frame,
            middle, c.position, rows.found.points, leans,
        ):  # fmt: skip
            return rows
        there, placed = arrived()
        points, slip, way = self._place_points(there, placed), np.empty_like(rows.phi), np.empty_like(rows.phi)
        self._slips(rows.indptr, rows.indices, rows.data, rows.phi, v_hat, rows.gap, *given[2:], slip)
        poses = [(where.rotation, where.translation) for where in (before.placed, placed)]
        self._ways(c.point, self.shape_part[c.shape], before.points, poses[0], points, poses[1], middle, way)
        if not self._may_press(slip, way, rows.gap, leans):
            return rows
        now = self._find(points, placed, rows.found.margin, whole=True, among=c.point)
        frame = rows.frame.copy()
        if not self._lean_along(leans, self._found_again(rows, now), now.gap, rows.gap, slip, way, frame):
            return rows
        position = c.position - self._levers[c.point, None] * (frame[:, 0] - rows.frame[:, 0])
        found = replace(rows.found, contacts=replace(c, frame=frame, position=position))
        out = self._filled(found, given)
        if len(out.keep) < len(rows):
            return rows
        return replace(
            rows, found=found, keep=out.keep, indptr=out.indptr, indices=out.indices, data=out.data, phi=out.phi, frame=frame
        )

    def follow_turns(self, found: Found, keep: np.ndarray, given: Given, phi: np.ndarray, *, middle: bool) -> None:
        """Add to phi (kept, 3) how far the way of what driven bases carry leaves its tangent, where they turn.

        Contacts are those of the start or of the middle of the step. By the theta rule nodes go straight, and are at the middle
        on the chord of the way of the base. A rigid part turns with the base, so that its points leave their tangents as those of
        the base do; but its centre goes straight. In an energy-momentum step Cayley's map turns the base, by which ways are as
        they are at the middle.
        """
        if (middle and self._system.conserving) or not (self._system.prescribes and any_of(given.v)):
            return
        c: PointContacts = found.contacts
        sides = (self.point_part[c.point[keep]], 1.0), (self.shape_part[c.shape[keep]], -1.0)
        free = (self._places.row >= 0) & ~given.prescribed[self._places.row]
        for k in np.unique(np.concatenate([side for side, _ in sides])):
            row = self._places.row[k]
            turn = given.v[row + 3 : row + 6]
            if row < 0 or not (given.prescribed[row + 3] and turn.any()):
                continue
            half = min(0.5 * given.dt * norm(turn), _MOST_CARRIED)
            bend = (math.tan(half) / half - 1.0) * cross_matrix(turn)
            if not middle:
                bend = (quaternion_to_matrix(quaternion_from_vector(given.dt * turn)) - np.eye(3)) / given.dt - cross_matrix(turn)
            for (side, sign), (other, _) in zip(sides, sides[::-1], strict=True):
                own, other = keep[side == k], other[side == k]
                place = np.where(free[other, None], found.placed.translation[other], c.position[own])
                lever = (place - found.placed.origin[k]) @ bend.T
                phi[side == k] += sign * np.einsum("mij,mj->mi", c.frame[own], lever)

    def _turn_frames(self, found: Found, friction: np.ndarray) -> tuple[Found, np.ndarray]:
        """Turn the first tangents of contacts of anisotropic pairs into their directions; return the coefficients too."""
        c: PointContacts = found.contacts
        frame = c.frame.copy()
        both = np.repeat(friction[:, None], 2, axis=1)
        sides = self._point_skin[c.point], self.shape_part[c.shape]
        for pair in self._rules.anisotropic:
            own = np.flatnonzero(pair.pairs[sides])
            normal = frame[own, 0]
            direction = found.placed.rotation[pair.part] @ pair.direction
            tangent = direction - (normal @ direction)[:, None] * normal
            length = np.linalg.norm(tangent, axis=1)
            # along the normal there is no first direction: such a contact keeps the mean coefficient
            own, normal, tangent = (x[length > 1e-6] for x in (own, normal, tangent / np.maximum(length, 1e-300)[:, None]))
            frame[own, 1], frame[own, 2] = tangent, np.cross(normal, tangent)
            both[own] = pair.coefficients
        return replace(found, contacts=replace(c, frame=frame)), both

    def accept(self, rows: FamilyRows, lam: np.ndarray, sums: Sums) -> np.ndarray:
        """Add the forces lam (kept, 3), N, normal first, to the sums; return those in the world, (kept, 3)."""
        found, keep, world = rows.found, rows.keep, np.empty((len(rows), 3))
        c: PointContacts = found.contacts
        self._add_forces(
            keep, c.point, c.shape, c.frame, c.position, self.point_part, self._row, self._columns, found.points, self.shape_part,
            found.placed.reference, lam, *sums, world,
        )  # fmt: skip
        return world

    def sides(self, rows: FamilyRows, world: np.ndarray) -> Sides:
        """Return contacts with these forces, (kept, 3), N, one by one."""
        keep = rows.keep
        c: PointContacts = rows.found.contacts
        n = len(keep)
        part, point, weight = np.empty((n, 2), dtype=np.int64), np.empty((n, 2, 3), dtype=np.int64), np.empty((n, 2, 3))
        position, acting, gap = np.empty((n, 3)), np.empty((n, 2, 3)), np.empty(n)
        self._fill_sides(
            keep, c.point, c.shape, c.position, c.gap, rows.frame, rows.found.points, self.point_part, self._row, self._columns,
            self._around, self.shape_part, self._first, part, point, weight, position, acting, gap,
        )  # fmt: skip
        return Sides(position, acting, rows.frame[:, 0], gap, world, part, point, weight)

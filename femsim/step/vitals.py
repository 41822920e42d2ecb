"""What a step says about the health of a run beside its residuals: who is in whom, how deep, what creeps, how far bodies went."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from contact import ContactProblem
from contact.compiled import Fixed
from contact.metrics import norm
from femsim.model.parts import Part
from femsim.scene.scene import Scene
from femsim.step import vitals_kernels as kernels
from femsim.step.contact_family import Near
from femsim.step.contacts import ContactForces, Contacts
from femsim.step.led_pairs import LedPairs, led_or_on_led, led_rules
from femsim.step.placed import Placed
from femsim.step.snags import Snag, Snags
from femsim.step.state import State
from femsim.step.system import System
from femsim.step.thin_rods import ThinOnRods, thin_on_rods
from femsim.step.thin_shapes import ThinShapes, narrow_shapes, thickness, thin_shapes

#: Contacts stick for certain whose tangential force is at most this part of what friction allows.
_STICKS = 0.95
#: What overlaps at the start is apart after the time that the fastest push takes, and so many steps.
_PUSHES = 50
#: Contacts press that bear more than this part of the largest normal force.
_PRESSES = 1e-6


@dataclass(frozen=True)
class Depth:
    """Two parts in each other.

    Attributes
    ----------
    parts : (int, int)
        Their numbers in the scene; -1 where nothing is in anything.
    depth : float, m
        How deep, beyond where they started.
    share : float
        The same relative to the smaller size of the two, see :class:`Sizes`.
    """

    parts: tuple[int, int] = (-1, -1)
    depth: float = 0.0
    share: float = 0.0


_NO_DEPTH = Depth()


@dataclass
class Vitals:
    """What a step says about the health of a run.

    Attributes
    ----------
    deepest : Depth
        Of the pairs that contact keeps apart, the one that is deepest relative to its size at the end of the step.
    led : Depth
        The same of what nothing can push: both sides are driven, held or fixed.
    between : Depth
        Thin shape that is deepest, without a force, in a soft body relative to the edges of its surface, see `thin_shapes`, or
        in a rod relative to its radius, see `thin_rods`.
    creep : Depth
        The pair whose sticking contacts creep fastest; ``depth`` is the speed in m/s, ``share`` the distance in the step by size.
    inverted : tuple of int
        Inverted elements at the end of the step, by body.
    way : (int, float)
        Part that went furthest in the step relative to its own extent, and how far; of those that are near others.
    turn : (int, float), rad
        Rigid part or rod among them that turned most, and by how much.
    pushed : float, J
        Energy that contact put in by undoing penetrations.
    mended : float, J
        Part of that by undoing what the steps before had let in, not what overlapped at the start.
    snags : tuple of Snag
        What rigid parts press on the nodes of soft bodies, and what of it pushes these along their surface.
    locked : tuple of int
        Parts whose contacts friction locks: undoing their overlaps would have taken forces without bound, and was left out.
    """

    deepest: Depth = _NO_DEPTH
    led: Depth = _NO_DEPTH
    between: Depth = _NO_DEPTH
    creep: Depth = _NO_DEPTH
    inverted: tuple[int, ...] = ()
    way: tuple[int, float] = (-1, 0.0)
    turn: tuple[int, float] = (-1, 0.0)
    pushed: float = 0.0
    mended: float = 0.0
    snags: tuple[Snag, ...] = ()
    locked: tuple[int, ...] = ()

    @property
    def worst(self) -> Depth:
        """Pair of either kind that is deepest relative to its size."""
        return max(self.deepest, self.led, key=lambda found: found.share)

    @staticmethod
    def joined(parts: Sequence[Vitals]) -> Vitals:
        """Those of a step of several parts: the worst of what happens in them, the end of what is."""
        last = parts[-1]
        return replace(
            last,
            creep=max((one.creep for one in parts), key=lambda found: found.share),
            way=max((one.way for one in parts), key=lambda found: found[1]),
            turn=max((one.turn for one in parts), key=lambda found: found[1]),
            pushed=sum(one.pushed for one in parts),
            mended=sum(one.mended for one in parts),
            locked=tuple(sorted({part for one in parts for part in one.locked})),
        )


@dataclass(frozen=True)
class Sizes:
    """Lengths that penetrations and distances are measured by.

    Attributes
    ----------
    part : ndarray, (np,), m
        Size of each part that another may not sink into by much: the median edge of its surface elements, the thickness of a
        rod, the smallest extent of its shapes, the wall of a bowl; infinite for planes.
    what : tuple of str
        In words what these are: "elements", "thickness".
    extent : ndarray, (np,), m
        Diameter of the ball around each part at the start, about the mean of its nodes or its frame; infinite for planes. Of
        links that fixed joints hold together, which guard each other, each counts as the largest.
    """

    part: np.ndarray
    what: tuple[str, ...]
    extent: np.ndarray

    @classmethod
    def of(cls, system: System, parts: Sequence[Part], state: State) -> Sizes:
        """Measure them in a state."""
        found = [_part_size(system, part, state) for part in parts]
        extent = np.array([_part_extent(system, part, state) for part in parts])
        for lump in _lumps(system, parts):
            extent[lump] = max((float(extent[k]) for k in lump if np.isfinite(extent[k])), default=np.inf)
        return cls(np.array([size for size, _ in found]), tuple(what for _, what in found), extent)

    def of_pair(self, a: int, b: int) -> tuple[float, int]:
        """Smaller size of two parts, m, and whose it is."""
        which = a if self.part[a] <= self.part[b] else b
        return float(self.part[which]), which


def _part_size(system: System, part: Part, state: State) -> tuple[float, str]:
    if not len(part.nodes):
        return min((thickness(shape) for shape, _, _ in part.shapes), default=math.inf), "thickness"
    body, q = system.bodies[part.body], state.q[system.q_slices[part.body]]
    if body.contact_radius > 0.0:
        return 2.0 * body.contact_radius, "thickness"
    if not len(part.triangles):
        return math.inf, "elements"
    corner = body.contact_points(q, part.triangles.ravel()).reshape(-1, 3, 3)
    return float(np.median(np.linalg.norm(corner - np.roll(corner, 1, axis=1), axis=2))), "elements"


def _part_extent(system: System, part: Part, state: State) -> float:
    """Diameter of the ball around a part, m; infinite where it has no shape and no nodes, or a plane."""
    if not len(part.nodes):
        return max((2.0 * (float(np.linalg.norm(t)) + shape.bounding_radius) for shape, _, t in part.shapes), default=math.inf)
    body, q = system.bodies[part.body], state.q[system.q_slices[part.body]]
    points = body.contact_points(q, part.nodes)
    return 2.0 * (float(np.linalg.norm(points - points.mean(axis=0), axis=1).max()) + body.contact_radius) or math.inf


def _lumps(system: System, parts: Sequence[Part]) -> list[list[int]]:
    """Numbers of rigid parts that fixed joints hold together, a list for each two or more of them."""
    lumps: dict[tuple[int, bytes], list[list[int]]] = {}
    for k, part in enumerate(parts):
        if part.body < 0 or not (body := system.bodies[part.body]).rigid:
            continue
        alike = lumps.setdefault((part.body, body.link_rows(part.link).tobytes()), [])
        for lump in alike:  # mimic joints have the rows of others
            if not len(body.rows_between(parts[lump[0]].link, part.link)):
                lump.append(k)
                break
        else:
            alike.append([k])
    return [lump for alike in lumps.values() for lump in alike if len(lump) > 1]


class VitalSigns:
    """Reads the vitals of the steps of a scene.

    Parameters
    ----------
    scene : Scene
        What is simulated.
    system : System
        Its bodies.
    contacts : Contacts
        Its contacts.
    state : State
        Where it starts.

    Attributes
    ----------
    sizes : Sizes
        Lengths by which depths and distances are measured.
    at_start : dict of (int, int) to float
        Pairs of parts that overlap at the start, and how deep, m.
    led_pairs : ndarray, (np, np), bool
        Pairs that nothing can push apart, whose gaps are measured all the same.
    thin : list of Thin
        Shapes thin enough to pass between the surface nodes of a soft body that they may have contact with.
    narrow : list of (Thin, float)
        Shapes that few of those nodes bear, with the edge of elements that would be enough, m.
    thin_on_rods : list of ThinOnRod
        Shapes thin enough to pass between the links of a rod.
    """

    def __init__(self, scene: Scene, system: System, contacts: Contacts, state: State) -> None:
        self._system, self._contacts, self._fastest = system, contacts, scene.max_correction
        self.sizes = Sizes.of(system, contacts.parts, state)
        self.led_pairs = led_rules(scene, contacts.rules)
        self._link_speeds = Fixed(kernels.link_speeds)
        self._bodies, self._places = [part.body for part in contacts.parts], contacts.places
        self._led_part = led_or_on_led(scene)
        self._may_cross = np.flatnonzero(self.led_pairs.any(axis=0)).tolist()
        self._led = LedPairs(contacts.parts, self.led_pairs) if self.led_pairs.any() else None
        at_points, placed = contacts.rules.pairs & ~contacts.by_faces, contacts.places.read(state)
        self.thin = list(thin_shapes(contacts.parts, at_points, self.sizes.part))
        self.narrow = list(narrow_shapes(contacts.parts, at_points, self.sizes.part))
        self._thin = ThinShapes(system, contacts.parts, self.thin)
        self._snags = Snags(system, contacts.parts, at_points)
        self.thin_on_rods = list(thin_on_rods(system, contacts.parts, at_points, contacts.rules))
        self._thin_on_rods = ThinOnRods(system, contacts.parts, self.thin_on_rods, state, placed)
        self.at_start: dict[tuple[int, int], float] = {}
        start = contacts.overlapping_unjoined(state, placed)[:2]
        for pairs, gaps in (start, *([self._led.gaps(placed)] if self._led else [])):
            for (a, b), gap in zip(pairs.tolist(), gaps.tolist(), strict=True):
                key = (min(a, b), max(a, b))
                self.at_start[key] = max(self.at_start.get(key, 0.0), -gap)
        self._softness = contacts.rules.softness
        #: overlaps at the start from which depths are counted: none of soft pairs, which forces have pressed in
        self._from = {pair: depth for pair, depth in self.at_start.items() if not self.soft(*pair)}
        self._stride = [group.stride for group in system.groups]

    def led(self, a: int, b: int) -> bool:
        """Whether two parts are both driven or fixed, so that no contact force moves one of them against its drive."""
        return bool(self._led_part[a] and self._led_part[b]) or bool(self.led_pairs[a, b])

    def soft(self, a: int, b: int) -> bool:
        """Whether the contacts of two parts give way."""
        return self._softness is not None and bool(self._softness[a, b] > 0.0)

    def read(
        self,
        problem: ContactProblem,
        lam: np.ndarray,
        forces: ContactForces,
        new: State,
        placed: Placed,
        overlaps: Near,
    ) -> Vitals:
        """Read those of a step.

        Parameters
        ----------
        problem : ContactProblem
            The last one of the step.
        lam : ndarray, (nc, 3), N
            Its answer; what acted may differ from it, see :mod:`femsim.step.end_velocity`.
        forces : ContactForces
            What acted.
        new : State
            Where the step ended.
        placed : Placed
            Where the parts are there.
        overlaps : Near
            All points and surfaces that overlap there, beyond what soft contacts give way.
        """
        led = _NO_DEPTH if self._led is None else self._deepest(*self._led.gaps(placed))
        pressed = overlaps.pressed
        if pressed is not overlaps:
            held = overlaps.select(overlaps.led)
            led = max(led, self._deepest(held.parts, held.gaps), key=lambda found: found.share)
        inverted = tuple(int(body.inverted_elements) for body in self._system.bodies)
        contacts = forces.contacts
        way, turn = self._moves(new.v_hat, problem.dt, placed, self._near_others(contacts.part))
        speed = np.empty(len(contacts.gap))
        kernels.undoing(contacts.gap, problem.dt, self._contacts.correction, self._fastest, speed)
        if self._softness is not None:  # penetrations of soft contacts are elastic energy
            speed *= self._softness[contacts.part[:, 0], contacts.part[:, 1]] == 0.0
        each = problem.dt * contacts.lam[:, 0] * speed
        pushed = float(each.sum())
        mended = pushed
        if self._from and new.t < _PUSHES * problem.dt + max(self._from.values()) / self._fastest:
            mended = float(each[self._from_start(contacts.part) == 0.0].sum())
        depths = [Depth((one.part, one.soft), depth, depth / one.edge) for one, depth in self._thin.depths(new, placed)]
        on_rods = self._thin_on_rods.depths(new, placed)
        depths += [Depth((thin.part, thin.rod), depth, depth / thin.radius) for thin, depth in on_rods]
        between = max(depths, key=lambda found: found.share, default=_NO_DEPTH)
        creep, snags = self._creep(problem, lam, forces), self._snags.find(contacts, new)
        return Vitals(self._deepest(pressed.parts, pressed.gaps), led, between, creep, inverted, way, turn, pushed, mended, snags)

    def _deepest(self, parts: np.ndarray, gaps: np.ndarray) -> Depth:
        """Pair that is deepest relative to its size, and beyond where it started."""
        if not len(gaps):
            return _NO_DEPTH
        depth = -gaps
        if self._from:
            depth = depth - self._from_start(parts)
        worst, share = kernels.deepest(parts, depth, self.sizes.part)
        if not share > 0.0:
            return _NO_DEPTH
        return Depth((int(parts[worst, 0]), int(parts[worst, 1])), float(depth[worst]), share)

    def _from_start(self, parts: np.ndarray) -> np.ndarray:
        """Depths, (n,), m, from which those of pairs of parts, (n, 2), count."""
        low, high = parts.min(axis=1).tolist(), parts.max(axis=1).tolist()
        return np.array([self._from.get(pair, 0.0) for pair in zip(low, high, strict=True)])

    def deeper(self, parts: np.ndarray, gaps: np.ndarray, bound: float) -> np.ndarray:
        """Which contacts, of parts (n, 2) and with gaps (n,), m, are deeper than a bound, m, beyond the start; (n,) bool."""
        return np.asarray(-gaps > bound + self._from_start(parts))

    def _creep(self, problem: ContactProblem, lam: np.ndarray, forces: ContactForces) -> Depth:
        """Pair whose sticking contacts creep fastest, by the forces and velocities of one law."""
        contacts, u = forces.contacts, forces.contacts.u
        if not len(lam):
            return _NO_DEPTH
        limit = problem.friction if problem.friction.ndim == 1 else problem.friction.min(axis=1)
        worst, speed = kernels.fastest_creep(lam, u, limit, _STICKS, _PRESSES)
        a, b = contacts.part[worst].tolist()
        return Depth((a, b), speed, problem.dt * speed / self.sizes.of_pair(a, b)[0])

    def _near_others(self, pairs: np.ndarray) -> list[int]:
        """Parts in contact with others, (nc, 2), or that nothing keeps out of them; the limits of a joint are contacts of one."""
        return sorted({*pairs[pairs[:, 0] != pairs[:, 1]].ravel().tolist(), *self._may_cross})

    def _moves(
        self, v_hat: np.ndarray, dt: float, placed: Placed, near: Sequence[int]
    ) -> tuple[tuple[int, float], tuple[int, float]]:
        """Which of some parts went furthest by its extent in a step, and which turned most."""
        way, turn = (-1, 0.0), (-1, 0.0)
        for k in near:
            if self._bodies[k] < 0:
                continue
            speed, spin = self._speeds(k, v_hat, placed)
            far = dt * speed / float(self.sizes.extent[k])
            way = (k, far) if far > way[1] else way
            turn = (k, dt * spin) if dt * spin > turn[1] else turn
        return way, turn

    def _speeds(self, k: int, v_hat: np.ndarray, placed: Placed) -> tuple[float, float]:
        """Speed of a part, m/s, of the fastest of its nodes where it deforms, and of turning, rad/s, 0 where it cannot."""
        body, places = self._bodies[k], self._places
        v = v_hat[self._system.v_slices[body]]
        if self._system.bodies[body].rigid:
            if places.joint_start[k] == places.joint_start[k + 1]:
                return norm(v[:3]), norm(v[3:6])
            speed, spin = self._link_speeds(k, v_hat, *places.rigid(placed), placed.translation)
            return float(speed), float(spin)
        stride = self._stride[body]
        if stride not in (3, 6) or not len(v):
            return 0.0, 0.0
        each = v.reshape(-1, stride)
        speed = math.sqrt(float(np.einsum("ij,ij->i", each[:, :3], each[:, :3]).max()))
        return speed, float(np.linalg.norm(each[:, 3:].mean(axis=0))) if stride == 6 else 0.0

"""Shapes thinner than the gaps between the links of a rod: how deep they are in it, where contact at link centres is blind."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from contact import Shape, Strand, signed_distance
from femsim.model.contact_rules import ContactRules
from femsim.model.parts import Part
from femsim.step.placed import Placed
from femsim.step.state import State
from femsim.step.system import System
from femsim.step.thin_shapes import thickness

#: Points between two link centres at which a shape is looked for are at most this part of the radius apart, and so many.
_APART, _MOST_BETWEEN = 0.5, 32


@dataclass(frozen=True)
class ThinOnRod:
    """A shape that fits between two links of a rod that it may have contact with.

    Attributes
    ----------
    part, rod : int
        Numbers of the part that has the shape, and of the rod.
    shape : int
        Number of the shape in its part.
    extents : ndarray, (3,), m
        Of the box around the shape, ascending; of a bowl the first is its wall.
    spacing, radius : float, m
        Distance of the link centres along the rod, and the radius at which each has contact.
    open : ndarray, (n - 1,), bool
        Between which neighbouring links: both have contact with the part.
    """

    part: int
    rod: int
    shape: int
    extents: np.ndarray
    spacing: float
    radius: float
    open: np.ndarray

    @property
    def needle(self) -> bool:
        """Whether it is thin in two directions: it passes between links whichever way it goes."""
        return float(self.extents[1]) < self.spacing - 2.0 * self.radius


def thin_on_rods(system: System, parts: Sequence[Part], pairs: np.ndarray, rules: ContactRules) -> Iterator[ThinOnRod]:
    """Shapes thinner than the gaps between links of rods that may have contact with them by the centres of these alone.

    ``pairs``, (np, np), bool, are those of points and shapes.
    """
    for rod, part in enumerate(parts):
        shaped = [k for k in np.flatnonzero(pairs[rod]).tolist() if parts[k].shapes]
        one = system.bodies[part.body].deforming(part) if part.body >= 0 and shaped else None
        if one is None or not isinstance(one.shape, Strand) or len(part.nodes) < 2:
            continue
        spacing, radius = float(np.median(np.diff(one.shape.arc)[1:-1])), one.shape.radius
        for k in shaped:
            for number, (shape, _, _) in enumerate(parts[k].shapes):
                extents = np.sort(np.ptp(shape.aabb, axis=0))
                extents[0] = thickness(shape)
                if extents[0] < spacing - 2.0 * radius:
                    yield ThinOnRod(k, rod, number, extents, spacing, radius, _open(rules, len(part.nodes), rod, k))


def _open(rules: ContactRules, n_links: int, rod: int, other: int) -> np.ndarray:
    """Between which neighbours of the links of a rod there is contact with a part; joints count as whole for ever."""
    able = np.ones(n_links, dtype=np.bool_)
    for rule in rules.no_contact:
        if (rule.part, rule.other) == (rod, other):
            able[rule.first : rule.last] = False
    for joined in rules.until_broken:
        if set(joined.parts) == {rod, other}:
            nodes = joined.nodes[joined.parts.index(rod)]
            able[slice(None) if nodes is None else nodes] = False
    return np.asarray(able[1:] & able[:-1])


class ThinOnRods:
    """Measures how deep such shapes are in rods, beyond that at the start. There are no rows for that in the contact problem.

    Points of the centre line near the shape are tested: how much nearer to it than the radius they are.

    Parameters
    ----------
    system : System
        The bodies.
    parts : sequence of Part
        All parts of a scene.
    thin : sequence of ThinOnRod
        Its thin shapes.
    state : State
        Where it starts.
    placed : Placed
        Where the parts are there.
    """

    def __init__(self, system: System, parts: Sequence[Part], thin: Sequence[ThinOnRod], state: State, placed: Placed) -> None:
        self._system, self._parts, self._thin = system, parts, list(thin)
        self._at_start = [self._depth(one, state, placed) for one in self._thin]

    def depths(self, state: State, placed: Placed) -> Iterator[tuple[ThinOnRod, float]]:
        """Depths, m, of those that are in a rod in a state."""
        for one, start in zip(self._thin, self._at_start, strict=True):
            depth = self._depth(one, state, placed) - start
            if depth > 0.0:
                yield one, depth

    def _depth(self, one: ThinOnRod, state: State, placed: Placed) -> float:
        part, (shape, rotation, translation) = self._parts[one.rod], self._parts[one.part].shapes[one.shape]
        body, q = self._system.bodies[part.body], state.q[self._system.q_slices[part.body]]
        x = (body.contact_points(q, part.nodes) - placed.translation[one.part]) @ placed.rotation[one.part]
        return depth_between((x - translation) @ rotation, one.open, shape, one.radius)


def depth_between(x: np.ndarray, between: np.ndarray, shape: Shape, radius: float) -> float:
    """How deep a shape is in a rod between the centres of its links, m; 0 where it is not.

    Parameters
    ----------
    x : ndarray, (n, 3), m
        Centres of the links in the frame of the shape.
    between : ndarray, (n - 1,), bool
        Between which neighbours to look.
    shape : Shape
        The shape.
    radius : float, m
        Of the rod.
    """
    lower, upper = shape.aabb
    low, high = np.minimum(x[1:], x[:-1]) - radius, np.maximum(x[1:], x[:-1]) + radius
    near = np.flatnonzero(between & (low < upper).all(axis=1) & (high > lower).all(axis=1))
    if not len(near):
        return 0.0
    longest = float(np.linalg.norm(x[near + 1] - x[near], axis=1).max())
    count = min(math.ceil(longest / (_APART * radius)), _MOST_BETWEEN)
    share = (np.arange(1, count) / count)[:, None, None]
    points = x[near] + share * (x[near + 1] - x[near])
    return max(0.0, radius - float(signed_distance(shape, points.reshape(-1, 3))[0].min(initial=math.inf)))

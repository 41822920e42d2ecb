"""Contacts that wait until a joint breaks: what whole joints hold together, or to what motions lead, is left out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np

from femsim.model.contact_rules import Breaks, UntilBroken, Welded


class Held(NamedTuple):
    """What one joint leaves without contact as long as it is whole.

    Attributes
    ----------
    joint : Breaks
        The joint.
    parts : (int, int)
        The two parts.
    points : (ndarray, ndarray), (p,), bool
        Which of all points belong to each side.
    whole : (bool, bool)
        Whether a side is all of its part.
    """

    joint: Breaks
    parts: tuple[int, int]
    points: tuple[np.ndarray, np.ndarray]
    whole: tuple[bool, bool]


class Grouped:
    """Groups of what whole welds hold, also through other parts: contact in one would only repeat them.

    Parameters
    ----------
    welds : sequence of Welded
        What the scene says.
    n_parts : int
        Number of parts.
    part, node : ndarray, (p,)
        See :class:`WholeJoints`.
    """

    def __init__(self, welds: Sequence[Welded], n_parts: int, part: np.ndarray, node: np.ndarray) -> None:
        self._welds, self._n_parts, self._part, self._node = welds, n_parts, part, node
        self._known: tuple[bool, ...] | None = None
        self._groups = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)

    def __bool__(self) -> bool:
        """Whether there are welds."""
        return bool(self._welds)

    def now(self) -> tuple[np.ndarray, np.ndarray]:
        """Group of each part, all of it, and of each point, -1 where no weld holds it alone."""
        broken = tuple(weld.joint is not None and weld.joint.broken for weld in self._welds)
        if broken != self._known:
            self._known, self._groups = broken, self._found([w for w, off in zip(self._welds, broken, strict=True) if not off])
        return self._groups

    def at_shapes(self, point: np.ndarray, shape_part: np.ndarray) -> np.ndarray:
        """Which contacts between points (m,) and shapes of parts (m,) are within a group, (m,) bool."""
        of_part, of_point = self.now()
        return np.asarray(of_point[point] == of_part[shape_part])

    def at_surfaces(self, point: np.ndarray) -> np.ndarray:
        """Which contacts between points (m, 2, k) of two surfaces or strands are within a group, (m,) bool; -1 is no point."""
        group = self.now()[1][point]  # of each point; any where there is none
        one = group[:, :1, :1]
        return np.asarray((one[:, 0, 0] >= 0) & ((group == one) | (point < 0)).all(axis=(1, 2)))

    def without(self, joint: Breaks) -> Grouped:
        """Group what holds where one joint has broken."""
        return Grouped([weld for weld in self._welds if weld.joint is not joint], self._n_parts, self._part, self._node)

    def whole(self) -> list[Breaks]:
        """Welds that hold now."""
        return [weld.joint for weld in self._welds if weld.joint is not None and not weld.joint.broken]

    def _found(self, welds: Sequence[Welded]) -> tuple[np.ndarray, np.ndarray]:
        """Find the groups by these welds."""
        of_part = np.arange(self._n_parts + 1)  # the last is the world, which is part -1
        for weld in welds:
            if weld.nodes[0] is None and weld.nodes[1] is None:
                a, b = of_part[list(weld.parts)]
                of_part[of_part == a] = b
        of_point = np.where(self._node < 0, of_part[self._part], -1)
        for number, weld in enumerate(welds, self._n_parts + 1):
            group = next((of_part[k] for k, nodes in zip(weld.parts, weld.nodes, strict=True) if nodes is None), number)
            for k, nodes in zip(weld.parts, weld.nodes, strict=True):
                if nodes is not None:
                    of_point[(self._part == k) & np.isin(self._node, nodes)] = group
        return of_part, of_point


class WholeJoints:
    """Says of contacts which of them wait for a joint to break, and which no force can push apart.

    Parameters
    ----------
    rules : sequence of UntilBroken
        What the scene says.
    part, node : ndarray, (p,)
        Part of each point, and the node or link of its body that it belongs to; -1 on rigid parts.
    welds : sequence of Welded
        What welds hold, of ``n_parts`` parts. Default: nothing.
    led : sequence of Welded
        Parts and nodes that exact motions alone move against each other. Default: none.
    """

    def __init__(
        self,
        rules: Sequence[UntilBroken],
        part: np.ndarray,
        node: np.ndarray,
        welds: Sequence[Welded] = (),
        n_parts: int = 0,
        led: Sequence[Welded] = (),
    ) -> None:
        self._held = []
        self._grouped = Grouped(welds, n_parts, part, node)
        #: groups of what welds and exact motions hold
        self._led = Grouped([*welds, *led], n_parts, part, node)
        for rule in rules:
            points = [
                (part == k) & (True if nodes is None else np.isin(node, nodes))
                for k, nodes in zip(rule.parts, rule.nodes, strict=True)
            ]
            whole = rule.nodes[0] is None, rule.nodes[1] is None
            self._held.append(Held(rule.joint, rule.parts, (points[0], points[1]), whole))
        self._never: set[frozenset[int]] = set()
        self._ignored = False

    def never(self, a: int, b: int) -> None:
        """Leave two parts without contact also when their joint breaks."""
        self._never.add(frozenset((a, b)))

    @contextmanager
    def ignored(self) -> Iterator[None]:
        """For a while find what is found where all joints have broken."""
        self._ignored = True
        try:
            yield
        finally:
            self._ignored = False

    def _now(self) -> list[Held]:
        """Those that hold now."""
        if self._ignored:
            return []
        return [held for held in self._held if not held.joint.broken or frozenset(held.parts) in self._never]

    def __bool__(self) -> bool:
        """Whether any holds now."""
        return not self._ignored and (bool(self._grouped) or (bool(self._held) and bool(self._now())))

    def at_shapes(self, point: np.ndarray, shape_part: np.ndarray) -> np.ndarray:
        """Which contacts between points (m,) and shapes of parts (m,) wait, (m,) bool."""
        out = np.zeros(len(point), dtype=np.bool_)
        if self._grouped and not self._ignored:
            out |= self._grouped.at_shapes(point, shape_part)
        for held in self._now():
            for own, other in ((0, 1), (1, 0)):
                if held.whole[other]:
                    out |= held.points[own][point] & (shape_part == held.parts[other])
        return out

    @property
    def leads(self) -> bool:
        """Whether exact motions lead anything against anything else, see :meth:`led_at_shapes`."""
        return bool(self._led)

    def led_at_shapes(self, point: np.ndarray, shape_part: np.ndarray) -> np.ndarray:
        """Which of these contacts no force can push apart, (m,) bool: what is welded to both sides exact motions lead.

        They count where depths are measured, but have no rows: their force would have no bound, and where they lie flush, none.
        """
        return self._led.at_shapes(point, shape_part) if self._led else np.zeros(len(point), dtype=np.bool_)

    def led(self, part: int, other: int) -> bool:
        """Whether no force can push a part, all of it, away from another one, or from the world, -1 for it."""
        of_part = self._led.now()[0]
        return bool(of_part[part] in (of_part[other], of_part[-1]))

    def led_at_surfaces(self, point: np.ndarray) -> np.ndarray:
        """Those as :meth:`led_at_shapes` between points (m, 2, k) of two surfaces or strands, (m,) bool; -1 is no point."""
        return self._led.at_surfaces(point) if self._led else np.zeros(len(point), dtype=np.bool_)

    def leading_at_shapes(self, point: np.ndarray, shape_part: np.ndarray) -> list[Breaks]:
        """Whole welds each of which alone keeps some of these contacts from any force, see :meth:`led_at_shapes`."""
        led = self.led_at_shapes(point, shape_part)
        return [one for one in self._led.whole() if (led & ~self._led.without(one).at_shapes(point, shape_part)).any()]

    def leading_at_surfaces(self, point: np.ndarray) -> list[Breaks]:
        """Those as :meth:`leading_at_shapes` between points (m, 2, k) of two surfaces or strands; -1 is no point."""
        led = self.led_at_surfaces(point)
        return [one for one in self._led.whole() if (led & ~self._led.without(one).at_surfaces(point)).any()]

    def at_surfaces(self, point: np.ndarray) -> np.ndarray:
        """Which contacts between points (m, 2, k) of two surfaces or strands wait, (m,) bool; -1 is no point."""
        out = np.zeros(len(point), dtype=np.bool_)
        if self._grouped and not self._ignored:
            out |= self._grouped.at_surfaces(point)
        for held in self._now():
            first, second = ((own[point] | (point < 0)).all(axis=2) for own in held.points)
            out |= (first[:, 0] & second[:, 1]) | (first[:, 1] & second[:, 0])
        return out

"""Contacts that wait until a joint breaks: what a whole joint holds together is left out of what was found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np

from femsim.model.contact_rules import Breaks, UntilBroken


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


class WholeJoints:
    """Says of contacts which of them wait for a joint to break.

    Parameters
    ----------
    rules : sequence of UntilBroken
        What the scene says.
    part, node : ndarray, (p,)
        Part of each point, and the node or link of its body that it belongs to; -1 on rigid parts.
    """

    def __init__(self, rules: Sequence[UntilBroken], part: np.ndarray, node: np.ndarray) -> None:
        self._held = []
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
        return bool(self._held) and bool(self._now())

    def at_shapes(self, point: np.ndarray, shape_part: np.ndarray) -> np.ndarray:
        """Which contacts between points (m,) and shapes of parts (m,) wait, (m,) bool."""
        out = np.zeros(len(point), dtype=np.bool_)
        for held in self._now():
            for own, other in ((0, 1), (1, 0)):
                if held.whole[other]:
                    out |= held.points[own][point] & (shape_part == held.parts[other])
        return out

    def at_surfaces(self, point: np.ndarray) -> np.ndarray:
        """Which contacts between points (m, 2, k) of two surfaces or strands wait, (m,) bool; -1 is no point."""
        out = np.zeros(len(point), dtype=np.bool_)
        for held in self._now():
            first, second = ((own[point] | (point < 0)).all(axis=2) for own in held.points)
            out |= (first[:, 0] & second[:, 1]) | (first[:, 1] & second[:, 0])
        return out

"""Pairs of rigid parts that no contact keeps apart, being driven or fixed both: how deep they go into each other."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from contact import Detector, PlacedShape, first_points
from femsim.model.contact_rules import ContactRules
from femsim.model.parts import Part
from femsim.model.solids import close_points
from femsim.scene.own_contact import led_own_pairs
from femsim.scene.pairs import led_parts
from femsim.scene.scene import Scene
from femsim.step.placed import Placed


def led_rules(scene: Scene, rules: ContactRules) -> np.ndarray:
    """Pairs of rigid parts, (np, np) bool, that no contact keeps apart though they move against each other.

    Both are driven or fixed, or they are fingers of one gripper, or links of one robot whose joints in between follow motions
    exactly. Two obstacles never move; a finger and its own base overlap.
    """
    body, link = np.array([p.body for p in scene.parts]), np.array([p.link for p in scene.parts])
    shaped = np.array([len(p.shapes) > 0 for p in scene.parts])
    fixed = body < 0
    led = led_or_on_led(scene)
    same = (body[:, None] == body) & ~fixed
    fingers = same & (link[:, None] > 0) & (link > 0) & ~np.array([k >= 0 and scene.bodies[k].gives_way for k in body])
    apart = led[:, None] & led & ~same & ~(fixed[:, None] & fixed)
    pairs = (apart | fingers | led_own_pairs(scene)) & shaped[:, None] & shaped & ~rules.pairs & ~rules.pairs.T
    np.fill_diagonal(pairs, False)
    if rules.ignored is not None:
        pairs &= ~rules.ignored
    return np.asarray(pairs)


def led_or_on_led(scene: Scene) -> np.ndarray:
    """Parts that nothing can push, (np,) bool, and the fingers of driven grippers."""
    fingers = [part.body in scene.motions and not scene.bodies[part.body].gives_way for part in scene.parts]
    return np.asarray(led_parts(scene) | np.array(fingers, dtype=np.bool_))


class LedPairs:
    """Measures the depths of such pairs. There are no rows for them in the contact problem.

    Besides the points that contact goes by, those of :func:`femsim.model.solids.close_points` are tested.

    Parameters
    ----------
    parts : sequence of Part
        All parts of a scene.
    pairs : ndarray, (np, np), bool
        Which of them are measured, symmetric.
    """

    def __init__(self, parts: Sequence[Part], pairs: np.ndarray) -> None:
        shapes: list[PlacedShape] = []
        points, radii, part_of, firsts = [np.zeros((0, 3))], [np.zeros(0)], [], []
        count = 0
        for k in np.flatnonzero(pairs.any(axis=0)).tolist():
            for shape, rotation, translation in parts[k].shapes:
                shapes.append(PlacedShape(shape, k, rotation, translation, k))
                firsts.append(count)
                own, radius = close_points(shape)
                points.append(own @ rotation.T + translation)
                radii.append(radius)
                part_of.append(np.full(len(own), k))
                count += len(own)
        self._local = np.concatenate(points)
        self._part = np.concatenate([np.zeros(0, dtype=np.int64), *part_of]).astype(np.int64)
        self._shape_part = np.array([placed.body for placed in shapes], dtype=np.int64)
        #: which parts they are; where they were when they were asked for last, and what was found: a fixed base stays there
        self._involved = np.flatnonzero(pairs.any(axis=0))
        self._none = (np.zeros((0, 2), dtype=np.int64), np.zeros(0))
        self._asked, self._answer = b"", self._none
        self._detector = Detector(
            shapes, self._part, np.concatenate(radii), self._part, pairs,
            **first_points([placed.shape for placed in shapes], firsts),
        )  # fmt: skip

    def gaps(self, placed: Placed) -> tuple[np.ndarray, np.ndarray]:
        """Parts (n, 2) and gaps (n,), m, all negative, of what overlaps where parts are placed so."""
        asked = placed.rotation[self._involved].tobytes() + placed.translation[self._involved].tobytes()
        if asked != self._asked:
            self._asked, self._answer = asked, self._found(placed)
        return self._answer

    def _found(self, placed: Placed) -> tuple[np.ndarray, np.ndarray]:
        """Look for them."""
        world = np.einsum("pij,pj->pi", placed.rotation[self._part], self._local) + placed.translation[self._part]
        found = self._detector.detect_on(world, placed.rotation, placed.translation, 0.0)
        if not len(found):
            return self._none
        return np.column_stack([self._part[found.point], self._shape_part[found.shape]]), found.gap.copy()

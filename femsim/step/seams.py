"""Seams: where boxes of one part, or of obstacles, touch or overlap, and what would catch at an edge that is covered there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from contact import Box
from contact.shapes import signed_distance
from femsim.model.parts import Part
from femsim.step.placed import Placed

#: Boxes whose faces are flush to this part of their least half extent, of two the lesser, make one surface.
FLUSH = 2e-3
#: Of that: how far a place may be off a box that covers it, how little a box may rise there, and what is rounding.
_TOUCH, _LOW, _HAIR = 0.25, 0.5, 1e-3


class _Pieces(NamedTuple):
    """Boxes of a group in its frame: shapes, poses (b, 3, 3) and (b, 3), m, half extents (b, 3), m, and parts (b,).

    Faces that stand out by ``flush``, (b, 1), m, are still flush.
    """

    shapes: list[Box]
    rotation: np.ndarray
    translation: np.ndarray
    half: np.ndarray
    part: np.ndarray
    flush: np.ndarray


class Seams:
    """Contacts at edges and faces that another box covers.

    A point that slides over the seam of two boxes meets the edge of the next one, whose nearest place is at the level of the
    point, and the normal there is along the way. On the two boxes together that place is none of contact: the distance to them
    falls from there along the box that the point comes from, and behind it no face stands up.

    Parameters
    ----------
    parts : sequence of Part
        All parts of a scene.
    pairs : ndarray, (np, np), bool
        Which may have contact with each other.
    """

    def __init__(self, parts: Sequence[Part], pairs: np.ndarray) -> None:
        self._pairs = pairs | pairs.T
        #: groups of boxes that keep their places to each other: each compound, and all obstacles
        self._groups: list[_Pieces] = []
        #: group of each part, -1 for none
        self.group = np.full(len(parts), -1, dtype=np.int64)
        still = [k for k, part in enumerate(parts) if part.body < 0]
        for members in (still, *([k] for k, part in enumerate(parts) if part.body >= 0)):
            self._add(parts, members)

    def __bool__(self) -> bool:
        return bool(self._groups)

    def _add(self, parts: Sequence[Part], members: Sequence[int]) -> None:
        """Make a group of the boxes of some parts that touch another one, if there are any."""
        every = [(k, *one) for k in members for one in parts[k].shapes if isinstance(one[0], Box)]
        if len(every) < 2:
            return
        part, shapes, rotation, translation = zip(*every, strict=True)
        half = np.array([shape.half_extents for shape in shapes])
        flush = FLUSH * half.min(axis=1, keepdims=True)
        pieces = _Pieces(list(shapes), np.array(rotation), np.array(translation), half, np.array(part), flush)
        reach = np.einsum("bij,bj->bi", np.abs(pieces.rotation), half) + flush
        apart = np.abs(pieces.translation[:, None] - pieces.translation)
        touching = (apart <= reach[:, None] + reach).all(axis=2)
        which = np.flatnonzero(touching.sum(axis=1) > 1)  # each touches itself
        if len(which):
            self.group[pieces.part[which]] = len(self._groups)
            self._groups.append(_Pieces([pieces.shapes[k] for k in which], *(array[which] for array in pieces[1:])))

    def covered(
        self, on: np.ndarray, other: np.ndarray, place: np.ndarray, point: np.ndarray, gap: np.ndarray, placed: Placed
    ) -> np.ndarray:
        """Contacts that are none of the boxes together, (n,) bool.

        Parameters
        ----------
        on, other : ndarray, (n,)
            Part with the surface of each contact, and that of the point which is near it.
        place, point : ndarray, (n, 3), m
            The place on the surface, and the point, in the world.
        gap : ndarray, (n,), m
            Signed distance of the two.
        placed : Placed
            Where the parts are.
        """
        out, of = np.zeros(len(on), dtype=np.bool_), self.group[on]
        for number in np.unique(of[of >= 0]).tolist():
            which = np.flatnonzero(of == number)
            own = on[which]
            turn, shift = placed.rotation[own], placed.translation[own]
            there, near = (np.einsum("nji,nj->ni", turn, at[which] - shift) for at in (place, point))
            out[which] = self._covered(self._groups[number], self._pairs[:, other[which]], there, near, gap[which])
        return out

    def _covered(self, pieces: _Pieces, pairs: np.ndarray, place: np.ndarray, point: np.ndarray, gap: np.ndarray) -> np.ndarray:
        """Ask the same of contacts of one group, in its frame; ``pairs`` (np, n) says whose boxes points may touch."""
        hair, out = _HAIR * pieces.flush, np.zeros(len(place), dtype=np.bool_)
        at_place, at_point = _distances(pieces, place), _distances(pieces, point)
        # boxes that a contact may be of, to whose surfaces the place is the nearest; of two the lesser says what is flush
        of_it = (np.abs(at_place) <= hair) & (at_point >= gap - hair)
        flush = np.minimum(pieces.flush, np.where(of_it, pieces.flush, np.inf).min(axis=0))
        covers = (at_place <= _TOUCH * flush) & (at_point < gap - hair) & pairs[pieces.part]
        for a in np.flatnonzero(covers.any(axis=1)).tolist():
            which = np.flatnonzero(covers[a])
            _, normal = signed_distance(pieces.shapes[a], (point[which] - pieces.translation[a]) @ pieces.rotation[a])
            rise = flush[a, which]
            above = place[which] + rise[:, None] * (normal @ pieces.rotation[a].T)
            stands = of_it[:, which] & (_distances(pieces, above) < _LOW * rise)
            stands[a] = False
            out[which] |= ~stands.any(axis=0)
        return out


def _distances(pieces: _Pieces, points: np.ndarray) -> np.ndarray:
    """Signed distances (boxes, n), m, of all boxes at points of the frame of their group."""
    beyond = np.abs(np.einsum("bji,bnj->bni", pieces.rotation, points - pieces.translation[:, None])) - pieces.half[:, None]
    outside = np.sqrt((np.maximum(beyond, 0.0) ** 2).sum(axis=2))
    return np.asarray(outside + np.minimum(beyond.max(axis=2), 0.0))

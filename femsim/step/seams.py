"""Seams: where boxes of one part, or of obstacles, touch or overlap, and what would catch at an edge that is covered there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from contact import Box
from contact.shapes import signed_distance
from femsim.model.parts import Part
from femsim.step.placed import Placed

#: Boxes whose faces are flush to this part of their least half extent make one surface.
FLUSH = 2e-3
#: Of that: how far a place may be off a box that covers it, how little a box may rise there, and what is rounding.
_TOUCH, _LOW, _HAIR = 0.25, 0.5, 1e-3


class _Piece(NamedTuple):
    """A box of a part: its pose in the frame of its group, and how far, m, faces may stand out and still be flush."""

    shape: Box
    rotation: np.ndarray
    translation: np.ndarray
    part: int
    flush: float


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
        self._groups: list[list[_Piece]] = []
        #: group of each part, -1 for none
        self.group = np.full(len(parts), -1, dtype=np.int64)
        still = [k for k, part in enumerate(parts) if part.body < 0]
        for members in (still, *([k] for k, part in enumerate(parts) if part.body >= 0)):
            self._add(parts, members)

    def __bool__(self) -> bool:
        return bool(self._groups)

    def _add(self, parts: Sequence[Part], members: Sequence[int]) -> None:
        """Make a group of the boxes of some parts that touch another one, if there are any."""
        every = [
            _Piece(shape, rotation, translation, k, FLUSH * float(np.min(shape.half_extents)))
            for k in members for shape, rotation, translation in parts[k].shapes if isinstance(shape, Box)
        ]  # fmt: skip
        reach = [np.abs(one.rotation) @ one.shape.half_extents + one.flush for one in every]
        touching = [
            any(a is not b and (np.abs(a.translation - b.translation) <= u + w).all() for b, w in zip(every, reach, strict=True))
            for a, u in zip(every, reach, strict=True)
        ]
        pieces = [one for one, touches in zip(every, touching, strict=True) if touches]
        if pieces:
            self.group[[one.part for one in pieces]] = len(self._groups)
            self._groups.append(pieces)

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

    def _covered(
        self, pieces: list[_Piece], pairs: np.ndarray, place: np.ndarray, point: np.ndarray, gap: np.ndarray
    ) -> np.ndarray:
        """Ask the same of contacts of one group, in its frame; ``pairs`` (np, n) says whose boxes points may touch."""
        at_place = [_distance(one, place)[0] for one in pieces]
        at_point = [_distance(one, point) for one in pieces]
        out = np.zeros(len(place), dtype=np.bool_)
        for a, (piece, place_in, (near, normal)) in enumerate(zip(pieces, at_place, at_point, strict=True)):
            hair = _HAIR * piece.flush
            covers = pairs[piece.part] & (place_in <= _TOUCH * piece.flush) & (near < gap - hair)
            if not covers.any():
                continue
            # the boxes that the contact may be of, to whose surfaces the place is the nearest, must not stand up there
            above = place[covers] + piece.flush * normal[covers]
            for b, other in enumerate(pieces):
                if b == a:
                    continue
                of_it = (np.abs(at_place[b][covers]) <= hair) & (at_point[b][0][covers] >= gap[covers] - hair)
                stands = of_it & (_distance(other, above)[0] < _LOW * piece.flush)
                covers[covers] = ~stands
                above = above[~stands]
            out |= covers
        return out


def _distance(piece: _Piece, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Signed distances (n,), m, and unit normals (n, 3) of a box at points of the frame of its group."""
    distance, normal = signed_distance(piece.shape, (points - piece.translation) @ piece.rotation)
    return distance, normal @ piece.rotation.T

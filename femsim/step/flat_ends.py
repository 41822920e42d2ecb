"""Contacts of cylinders by their faces: their round sides are those of lines with a radius, their caps those of prisms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from contact import DeformableContacts, Strand
from contact.side_kernels import VERTEX_FACE
from femsim.model.bodies.deforming import Deforming

#: Cosine of normal and axis up to which a contact is one of the round side, and above which one of a cap or its rim.
LEAN = 0.05


class FlatEnds:
    """The cylinders among surfaces and strands, each of which is a line with a radius, a capsule, and a prism inside of it.

    Of the line count the contacts whose normal is about square to the axis, which are exact: what crosses or faces the round
    side. At an end, where the rim is what touches a face that leans by the cosine c to the axis, the line is closer than the rim
    by r (1 - sqrt(1 - c^2)). Where a cap is nearer than the round side, what is inside lies behind that cap. Of the prism count
    the other contacts: caps and their rims.

    Parameters
    ----------
    able : sequence of Deforming
        Surfaces and strands, the caps of a cylinder right after its round side.
    where : sequence of slice
        Which points are theirs.
    """

    def __init__(self, able: Sequence[Deforming], where: Sequence[slice]) -> None:
        self._ends = np.full((len(able), 2), -1)
        self._radius = np.array([one.cylinder for one in able], dtype=np.float64)
        self._is_line = np.array([one.cylinder > 0.0 and isinstance(one.shape, Strand) for one in able], dtype=np.bool_)
        for k in np.flatnonzero(self._radius).tolist():
            line = where[k if self._is_line[k] else k - 1]
            self._ends[k] = line.start, line.stop - 1
        self.lines = frozenset(np.flatnonzero(self._is_line).tolist())

    def kept(self, found: DeformableContacts, points: np.ndarray) -> DeformableContacts:
        """Contacts that count, with the gaps of rims; ``points``, (p, 3), m, are those where they were found."""
        if not self.lines or not len(found):
            return found
        keep, gap = np.ones(len(found), dtype=np.bool_), found.gap.copy()
        for side in (0, 1):
            own = np.flatnonzero(self._ends[found.body[:, side], 0] >= 0)
            if not len(own):
                continue
            body, normal = found.body[own, side], found.frame[own, 0]
            first, last = points[self._ends[body, 0]], points[self._ends[body, 1]]
            length = np.linalg.norm(last - first, axis=1)
            axis = (last - first) / length[:, None]
            cosine = (normal * axis).sum(axis=1)
            square, line, at_end = np.abs(cosine) <= LEAN, self._is_line[body], found.kind[own] == VERTEX_FACE
            shorter = self._radius[body] * (1.0 - np.sqrt(np.maximum(1.0 - cosine**2, 0.0)))
            place = np.einsum("mi,mic->mc", found.weight[own, side], points[found.point[own, side]])
            along = ((place - first) * axis).sum(axis=1)
            to_cap = np.maximum(np.minimum(along, length - along), 0.0)
            keep[own] &= np.where(line, square & (at_end | (-found.gap[own] <= to_cap)), ~square)
            rim = own[line & square & at_end]
            gap[rim] += shorter[line & square & at_end]
        return replace(found, gap=gap).select(keep)

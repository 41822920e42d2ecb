"""Contacts of cylinders by their faces: of lines with a radius for round sides, of prisms for caps, and of points of rims."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from contact import DeformableContacts, Strand, Surface, closest_points_on_triangles
from contact.side_kernels import VERTEX_FACE
from femsim.model.bodies.deforming import Deforming

#: Cosine of normal and axis up to which a contact is one of the round side, and above which one of a cap or its rim.
LEAN = 0.05
#: A surface goes on below a rim where, so many radii further inside than it is deep, it falls by at most this part of the way.
_PAST, _FALLS = 1e-3, 0.25
#: Sine of that angle from which on the point of a rim that is closest to a face is known; nearer to it the cap lies on the face.
_KNOWN = 0.02
_LINE, _CAPS, _RIM = 1, 2, 3


class FlatEnds:
    """The cylinders among surfaces and strands: a line with a radius, a capsule; a prism inside of it; and a point of each rim.

    Of the line count the contacts whose normal is about square to the axis, which are exact: what crosses or faces the round
    side. At an end, where the rim is what touches a face that leans by the cosine c to the axis, the line is closer than the
    rim by r (1 - sqrt(1 - c^2)), and the surface must go on below the rim: what stands on a cap, and beside its middle, does
    not. Where a cap is nearer than the round side, what is inside lies behind that cap. Of the prism count the other contacts:
    caps and, up to the sides of its polygon, their rims. The point of a rim is the closest one to the face that is the closest
    to its centre, exactly; it goes round the rim as the cylinder rolls.

    Parameters
    ----------
    able : sequence of Deforming
        Surfaces and strands; of a cylinder the round side, its caps, and the centres of both rims follow one another.
    where : sequence of slice
        Which points are theirs.
    """

    def __init__(self, able: Sequence[Deforming], where: Sequence[slice]) -> None:
        n = len(able)
        self._kind, self._ends, self._end = np.zeros(n, dtype=np.int64), np.full((n, 2), -1), np.full(n, -1)
        self._radius = np.array([one.cylinder for one in able], dtype=np.float64)
        self._point = np.array([own.start for own in where], dtype=np.int64)
        #: bodies of the caps of each cylinder and of both its rims
        self.groups: list[tuple[int, int, int]] = []
        for k, (one, own) in enumerate(zip(able, where, strict=True)):
            if one.cylinder > 0.0 and isinstance(one.shape, Strand) and len(one.rest) == 2:
                self._kind[k : k + 4] = _LINE, _CAPS, _RIM, _RIM
                self._ends[k : k + 4] = own.start, own.stop - 1
                self._end[k + 2 : k + 4] = own.start, own.stop - 1
                self.groups.append((k + 1, k + 2, k + 3))
        self._of_end = {int(self._end[k]): k for k in np.flatnonzero(self._kind == _RIM).tolist()}
        self.lines = frozenset(np.flatnonzero((self._kind == _LINE) | (self._kind == _RIM)).tolist())
        surfaces = [
            one.shape.triangles + own.start
            for one, own in zip(able, where, strict=True)
            if isinstance(one.shape, Surface) and not one.shape.rigid
        ]
        self._triangles = np.concatenate([np.zeros((0, 3), dtype=np.int64), *(surfaces if self.groups else ())])
        corners = self._triangles.ravel()
        self._around = np.argsort(corners, kind="stable") // 3
        self._first = np.searchsorted(np.sort(corners), np.arange(max((own.stop for own in where), default=0) + 1))

    def aim(self, found: DeformableContacts, points: np.ndarray) -> bool:
        """Move points of rims, of ``points`` (p, 3), m, where they are closest to what is near; whether any has moved."""
        near = np.flatnonzero((found.kind == VERTEX_FACE) & (self._kind[found.body[:, 0]] == _LINE)) if self.groups else ()
        best: dict[int, tuple[float, np.ndarray]] = {}
        for m in near:
            k = self._of_end[int(found.point[m, 0, 0])]
            out, sine = self._out(k, found.frame[m, 0], points)
            if sine > _KNOWN:
                gap = float(found.gap[m]) + self._radius[k] * (1.0 - sine)
                best[k] = min(best.get(k, (np.inf, out)), (gap, out), key=lambda one: one[0])
        for k, (_, out) in best.items():
            points[self._point[k]] = points[self._end[k]] - self._radius[k] * out
        return bool(best)

    def _out(self, k: int, normal: np.ndarray, points: np.ndarray) -> tuple[np.ndarray, float]:
        """Part of a normal square to the axis of a cylinder, made a unit vector, and the sine of its angle to the axis."""
        first, last = points[self._ends[k]]
        axis = (last - first) / np.linalg.norm(last - first)
        out = normal - (normal @ axis) * axis
        sine = float(np.linalg.norm(out))
        return out / max(sine, 1e-300), sine

    def kept(self, found: DeformableContacts, points: np.ndarray) -> DeformableContacts:
        """Contacts that count, with the gaps of rims; ``points``, (p, 3), m, are those where they were found."""
        if not self.groups or not len(found):
            return found
        keep, gap = np.ones(len(found), dtype=np.bool_), found.gap.copy()
        for side in (0, 1):
            own = np.flatnonzero(self._kind[found.body[:, side]])
            if not len(own):
                continue
            body, normal = found.body[own, side], found.frame[own, 0]
            first, last = points[self._ends[body, 0]], points[self._ends[body, 1]]
            length = np.linalg.norm(last - first, axis=1)
            axis = (last - first) / length[:, None]
            cosine = (normal * axis).sum(axis=1)
            kind, square, at_end = self._kind[body], np.abs(cosine) <= LEAN, found.kind[own] == VERTEX_FACE
            shorter = self._radius[body] * (1.0 - np.sqrt(np.maximum(1.0 - cosine**2, 0.0)))
            place = np.einsum("mi,mic->mc", found.weight[own, side], points[found.point[own, side]])
            along = ((place - first) * axis).sum(axis=1)
            to_cap = np.maximum(np.minimum(along, length - along), 0.0)
            line, aimed = kind == _LINE, (points[self._point[body]] != points[self._end[body]]).any(axis=1)
            keep[own] &= np.where(line, square & (at_end | (-found.gap[own] <= to_cap)), ~square & ((kind == _CAPS) | aimed))
            rim = line & square & at_end
            gap[own[rim]] += shorter[rim]
            for m in own[rim].tolist():
                keep[m] = keep[m] and self._goes_on(found, m, side, float(gap[m]), points)
        return replace(found, gap=gap).select(keep)

    def _goes_on(self, found: DeformableContacts, m: int, side: int, gap: float, points: np.ndarray) -> bool:
        """Whether the surface of contact m with the rim on this side, gap in m, goes on below the rim, or rises; else it ends."""
        body, corners = int(found.body[m, side]), found.point[m, 1 - side]
        end, other = (points[at] for at in (found.point[m, side, 0], self._ends[body].sum() - found.point[m, side, 0]))
        length, radius = float(np.linalg.norm(other - end)), float(self._radius[body])
        inwards, outwards = (other - end) / length, found.frame[m, 0] * (1.0 if side == 0 else -1.0)
        across = outwards - (outwards @ inwards) * inwards
        further = min(max(-gap, 0.0) + _PAST * radius, length)
        goal = end - radius * across / np.linalg.norm(across) - gap * outwards + further * inwards
        triangles = np.concatenate([self._around[self._first[p] : self._first[p + 1]] for p in corners[corners >= 0]])
        if not len(triangles):  # of a strand
            return True
        abc = points[self._triangles[triangles]]
        apart = goal - closest_points_on_triangles(goal, abc)
        normal = np.cross(abc[:, 1] - abc[:, 0], abc[:, 2] - abc[:, 0])
        above = (apart * normal).sum(axis=1) / np.linalg.norm(normal, axis=1)
        distance, way = np.linalg.norm(apart, axis=1), float(np.linalg.norm(goal - found.weight[m, 1 - side] @ points[corners]))
        return bool(above[distance <= distance.min() + 1e-6 * way].max() <= _FALLS * way)

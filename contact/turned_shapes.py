"""Shapes that are turned about an axis, with exact distances: padded polylines and screw threads; lengths in m.

Triangles for pictures and mass are made in :mod:`meshes.turned` from the same numbers; this library imports nothing of ours.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from contact.checked import array_of, positive, whole
from contact.errors import ContactError

FloatArray = npt.NDArray[np.float64]

#: Points on each ring of a Revolved and on each turn of the edges of a Thread.
TURN_POINTS = 32


@dataclass(frozen=True, eq=False, init=False)
class Revolved:
    """All points within ``padding`` of a polyline that is turned about z: bowls, plates, pots, bottles (papers/000, appendix B).

    Attributes
    ----------
    points : ndarray, (n, 2), m
        Radius and z of the n points of the polyline, at least two. Only the first may lie on the axis; it closes the bottom.
    padding : float, m
        Half the thickness of the wall; edges are round. The distance is exact outside. Inside it is that of the polyline less the
        padding: exact in straight walls, at the inner side of a bend less deep than it is.

    Raises
    ------
    ContactError
        Points on top of each other or too near to the axis, or a wall that overlaps itself in a bend.
    """

    points: FloatArray
    padding: float

    def __init__(self, points: npt.ArrayLike, padding: float) -> None:
        profile = array_of("Revolved", "points", points, (-1, 2))
        positive("Revolved", "padding", padding)
        if len(profile) < 2:
            raise ContactError(f"Revolved: points has {len(profile)} rows; give two or more of radius and z (m).")
        length = np.linalg.norm(np.diff(profile, axis=0), axis=1)
        if not (length > 0.0).all():
            raise ContactError(f"Revolved: points {int(np.argmin(length))} and the next one are equal; leave one out.")
        radius = profile[:, 0]
        bad = np.flatnonzero((radius < padding) & ~((np.arange(len(radius)) == 0) & (radius == 0.0)))
        if len(bad):
            raise ContactError(
                f"Revolved: points[{bad[0]}] has radius {radius[bad[0]]} m; give at least the padding, {padding} m, or 0 for the "
                "first point, which then lies on the axis."
            )
        _check_bends(profile, float(padding))
        object.__setattr__(self, "points", profile)
        object.__setattr__(self, "padding", float(padding))

    @property
    def bounding_radius(self) -> float:
        """Radius of the enclosing ball about the origin, m."""
        return float(np.linalg.norm(self.points, axis=1).max()) + self.padding

    @property
    def aabb(self) -> tuple[FloatArray, FloatArray]:
        """Lower and upper corner, (3,) each, m."""
        r = float(self.points[:, 0].max())
        low, high = float(self.points[:, 1].min()), float(self.points[:, 1].max())
        return np.array([-r, -r, low]) - self.padding, np.array([r, r, high]) + self.padding

    @property
    def numbers(self) -> tuple[tuple[float, ...], FloatArray]:
        """Padding, and radius and z of all points one after the other, for the kernels."""
        return (self.padding,), self.points.ravel()

    def features(self, extra: int = 0) -> tuple[FloatArray, FloatArray]:
        """Points (k, 3) m and radii (k,) m: TURN_POINTS on the ring of each point of the polyline, with the padding as radius.

        ``extra`` rings lie between two of them, evenly; a point on the axis is alone.
        """
        whole("Revolved.features", "extra", extra, 0)
        part = np.arange(1, extra + 1)[:, None] / (extra + 1)
        between = [a + (b - a) * part for a, b in zip(self.points[:-1], self.points[1:], strict=True)]
        rings = np.concatenate([self.points, *between])
        turn = 2.0 * np.pi * np.arange(TURN_POINTS) / TURN_POINTS
        points = [
            np.column_stack([r * np.cos(turn), r * np.sin(turn), np.full(TURN_POINTS, z)])
            if r > 0.0
            else np.array([[0.0, 0.0, z]])
            for r, z in rings
        ]
        every = np.concatenate(points)
        return every, np.full(len(every), self.padding)


@dataclass(frozen=True)
class Thread:
    """A threaded rod along z, or a hexagonal nut with the thread in its hole; right-handed.

    The profile in a plane through the axis is a trapezoid that repeats after a pitch: ridges whose tops lie at ``major``, grooves
    at ``minor``. At z = 0 the middle of a ridge is at +x. For a nut this is the profile of its hole.

    Attributes
    ----------
    pitch : float, m
        Way along the axis in one turn.
    major, minor : float, m
        Largest and smallest radius.
    crest : float, m
        Width of the profile at ``major``.
    length : float, m
        Length; it reaches from -length/2 to length/2.
    flank : float, rad
        Angle between a flank and the plane across the axis: 30 degrees for ISO threads.
    across : float, m
        Width of a nut across flats; 0 for a rod.

    Raises
    ------
    ContactError
        Lengths that do not make a thread.
    """

    pitch: float
    major: float
    minor: float
    crest: float
    length: float
    flank: float = np.pi / 6.0
    across: float = 0.0

    def __post_init__(self) -> None:
        for field in ("pitch", "major", "minor", "crest", "length"):
            positive("Thread", field, getattr(self, field))
        if not 0.0 < self.flank < 0.5 * np.pi:
            raise ContactError(f"Thread: flank is {self.flank} rad; give an angle above 0 and below pi/2.")
        if self.minor >= self.major:
            raise ContactError(f"Thread: minor is {self.minor} m; give less than major, {self.major} m.")
        if self.crest + 2.0 * self.run >= self.pitch:
            raise ContactError(
                f"Thread: a ridge is {self.crest + 2.0 * self.run:.6g} m wide at its foot; that must be less than the pitch, "
                f"{self.pitch} m: make the crest or the depth smaller."
            )
        if self.across != 0.0:
            positive("Thread", "across", self.across)
            if self.across <= 2.0 * self.major:
                raise ContactError(f"Thread: across is {self.across} m; give more than twice major, {2.0 * self.major} m.")

    @classmethod
    def metric(cls, diameter: float, pitch: float, length: float, *, play: float = 0.0, across: float = 0.0) -> Thread:
        """Thread of the basic profile of ISO 68-1, lengths in m.

        Parameters
        ----------
        diameter, pitch : float, m
            Nominal diameter and pitch; M48: 0.048 and 0.005.
        length : float, m
            Length.
        play : float, m
            The profile is this much farther from the axis, radially.
        across : float, m
            Width across flats of a nut; 0 for a rod, whose core is then that of ISO 724, d3 = d - 1.22687 P.
        """
        for field, value in (("diameter", diameter), ("pitch", pitch)):
            positive("Thread.metric", field, value)
        core = 1.082532 if across else 1.226869
        return cls(pitch, 0.5 * diameter + play, 0.5 * (diameter - core * pitch) + play, 0.125 * pitch, length, across=across)

    @property
    def run(self) -> float:
        """Width of a flank along the axis, m."""
        return float((self.major - self.minor) * np.tan(self.flank))

    @property
    def bounding_radius(self) -> float:
        """Radius of the enclosing ball about the origin, m."""
        return float(np.hypot(self.across / np.sqrt(3.0) if self.across else self.major, 0.5 * self.length))

    @property
    def aabb(self) -> tuple[FloatArray, FloatArray]:
        """Lower and upper corner, (3,) each, m."""
        x, y = (0.5 * self.across, self.across / np.sqrt(3.0)) if self.across else (self.major, self.major)
        upper = np.array([x, y, 0.5 * self.length])
        return -upper, upper

    @property
    def numbers(self) -> tuple[tuple[float, ...], FloatArray]:
        """Pitch, major and minor; half the crest, width of a flank, half the length, half the width across; for the kernels."""
        return (self.pitch, self.major, self.minor), np.array([0.5 * self.crest, self.run, 0.5 * self.length, 0.5 * self.across])

    def radius_at(self, height: npt.ArrayLike) -> FloatArray:
        """Radius (m) of the profile at heights (any shape, m) above the middle of a ridge."""
        s = np.asarray(height, dtype=np.float64)
        s = np.abs(s - self.pitch * np.floor(s / self.pitch + 0.5))
        r: FloatArray = np.clip(self.major - (s - 0.5 * self.crest) / np.tan(self.flank), self.minor, self.major)
        return r

    def features(self, extra: int = 0) -> tuple[FloatArray, FloatArray]:
        """Points (k, 3) m and radii (k,), 0: along the edges of the thread, around its ends, and the corners of a nut.

        The edges are those that stick out: of the crest for a rod, of the smallest radius for a nut. ``extra`` points lie between
        two of the TURN_POINTS of a turn.
        """
        whole("Thread.features", "extra", extra, 0)
        n, half = TURN_POINTS * (1 + extra), 0.5 * self.length
        out, edge = (self.minor, 0.5 * self.crest + self.run) if self.across else (self.major, 0.5 * self.crest)
        first, last = (-half - edge) / self.pitch, (half + edge) / self.pitch
        turn = np.arange(np.ceil(n * first), np.floor(n * last) + 1) / n
        parts = []
        for side in (edge, -edge):
            z = self.pitch * turn + side
            inside = np.abs(z) <= half
            angle = 2.0 * np.pi * turn[inside]
            parts.append(np.column_stack([out * np.cos(angle), out * np.sin(angle), z[inside]]))
        angle = 2.0 * np.pi * np.arange(n) / n
        for end in (-half, half):
            r = self.radius_at(end - self.pitch * angle / (2.0 * np.pi))
            parts.append(np.column_stack([r * np.cos(angle), r * np.sin(angle), np.full(n, end)]))
            if self.across:
                corner = np.pi * (np.arange(6) / 3.0 + 1.0 / 6.0)
                far = self.across / np.sqrt(3.0)
                parts.append(np.column_stack([far * np.cos(corner), far * np.sin(corner), np.full(6, end)]))
        points = np.concatenate(parts)
        return points, np.zeros(len(points))


def _check_bends(profile: FloatArray, padding: float) -> None:
    """Raise ContactError where the wall about a polyline (n, 2) overlaps itself."""
    way = np.diff(profile, axis=0)
    length = np.linalg.norm(way, axis=1)
    if profile[0, 0] == 0.0:  # the mirror image beyond the axis is the segment before the first one
        way = np.concatenate([[[way[0, 0], -way[0, 1]]], way])
        length = np.concatenate([length[:1], length])
    cosine = np.einsum("ij,ij->i", way[:-1], way[1:]) / (length[:-1] * length[1:])
    # the inner sides of a bend meet padding tan(angle / 2) before its point
    short = padding * np.sqrt(np.maximum(1.0 - cosine, 0.0) / np.maximum(1.0 + cosine, 1e-300))
    room = np.minimum(length[:-1], length[1:])
    tight = np.flatnonzero(short > room)
    if len(tight):
        raise ContactError(
            f"Revolved: the wall of padding {padding} m overlaps itself in bend {int(tight[0])} of the polyline, where "
            f"segments are {room[tight[0]]:.6g} m long; allowed are gentler bends, longer segments or a smaller padding."
        )
    along = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(profile, axis=0), axis=1))])
    for i in range(len(profile) - 1):
        for j in range(i + 2, len(profile) - 1):
            # a wall whose bends are gentle enough comes back after this way at the soonest
            least = np.pi * padding - (along[j] - along[i + 1])
            apart = min(
                _apart(_cut(profile[i : i + 2][::-1], least)[::-1], profile[j : j + 2]),
                _apart(profile[i : i + 2], _cut(profile[j : j + 2], least)),
            )
            if apart < 2.0 * padding:
                raise ContactError(
                    f"Revolved: segments {i} and {j} of the polyline come within {apart:.6g} m of each other; allowed is twice "
                    f"the padding, {2.0 * padding} m, or more."
                )


def _cut(segment: FloatArray, off: float) -> FloatArray:
    """Segment (2, 2) without so much of its start; what is gone is far away."""
    way = segment[1] - segment[0]
    part = off / float(np.linalg.norm(way))
    if part >= 1.0:
        return np.array([[np.inf, 0.0], [np.inf, 1.0]])
    return np.stack([segment[0] + max(part, 0.0) * way, segment[1]])


def _apart(a: FloatArray, b: FloatArray) -> float:
    """Distance of two segments (2, 2), 0 where they cross; infinite where one is far away."""
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        return np.inf

    def side(p: FloatArray, q: FloatArray, x: FloatArray) -> float:
        return float((q[0] - p[0]) * (x[1] - p[1]) - (q[1] - p[1]) * (x[0] - p[0]))

    if side(a[0], a[1], b[0]) * side(a[0], a[1], b[1]) < 0.0 and side(b[0], b[1], a[0]) * side(b[0], b[1], a[1]) < 0.0:
        return 0.0
    ends = [(b, a[0]), (b, a[1]), (a, b[0]), (a, b[1])]
    found = []
    for (start, end), x in ends:
        part = np.clip((x - start) @ (end - start) / ((end - start) @ (end - start)), 0.0, 1.0)
        found.append(float(np.linalg.norm(x - start - part * (end - start))))
    return min(found)

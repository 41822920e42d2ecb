"""Solids that are turned about z: padded polylines (bowls, pots, bottles) and screw threads; their triangles and mass."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from meshes.errors import MeshError
from meshes.surface import TriMesh, make_trimesh

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Points (in barycentric coordinates) and weights that integrate polynomials of degree 4 over a triangle exactly.
_A, _B = 0.445948490915965, 0.091576213509771
_PLACES = np.array([np.roll([1.0 - 2.0 * a, a, a], k) for a in (_A, _B) for k in range(3)])
_WEIGHTS = np.repeat([0.223381589678011, 0.109951743655322], 3)


def padded_outline(points: ArrayLike, padding: float, arcs: int = 12) -> Floats:
    """Return the outline of all that lies within a padding of a polyline in the half plane r >= 0.

    Parameters
    ----------
    points : array_like, (n, 2), m
        Radius and z of its points. When the first one lies on the axis, the outline starts and ends there.
    padding : float, m
        Padding; bends are wide enough for it.
    arcs : int
        Segments of the half circle about an end.

    Returns
    -------
    ndarray, (k, 2), m
        Radius and z, counter-clockwise where r points right and z up; a closed line, without the first point at its end.

    Raises
    ------
    MeshError
        Fewer than two points, or a padding that is not positive.
    """
    line = np.asarray(points, dtype=np.float64)
    if line.ndim != 2 or line.shape[1] != 2 or len(line) < 2 or not padding > 0.0:
        raise MeshError(
            f"padded_outline: points has shape {line.shape} and padding is {padding} m; give (n, 2), two or more, and a positive "
            "length."
        )
    closed = line[0, 0] == 0.0
    outer = _side(line, padding, arcs, closed)
    inner = _side(line * (1.0, -1.0), padding, arcs, closed)[::-1] * (1.0, -1.0)
    ends = [outer, _cap(line[-1], line[-1] - line[-2], padding, arcs), inner]
    if not closed:
        ends.append(_cap(line[0], line[0] - line[1], padding, arcs))
    return np.concatenate(ends)


def _side(line: Floats, padding: float, arcs: int, closed: bool) -> Floats:
    """Return the outline on the right of a polyline; its bends are arcs outside and points inside."""
    way = np.diff(line, axis=0)
    way /= np.linalg.norm(way, axis=1)[:, None]
    right = np.column_stack([way[:, 1], -way[:, 0]])
    found = []
    if closed:  # half of the bend with the mirror image of the first segment
        towards = -1.0 if right[0, 1] < 0.0 else 1.0
        if right[0, 0] > 1e-12:
            found += _arc(line[0], np.array([0.0, towards]), right[0], padding, arcs)
        found.append(line[0] + (0.0, padding / right[0, 1]) if right[0, 0] <= 1e-12 else line[0] + padding * right[0])
    else:
        found.append(line[0] + padding * right[0])
    for i in range(1, len(line) - 1):
        turn = way[i - 1, 0] * way[i, 1] - way[i - 1, 1] * way[i, 0]
        if turn > 1e-12:  # to the left: the right side is outside
            found += [*_arc(line[i], right[i - 1], right[i], padding, arcs), line[i] + padding * right[i]]
        else:
            found.append(line[i] + padding * (right[i - 1] + right[i]) / (1.0 + right[i - 1] @ right[i]))
    found.append(line[-1] + padding * right[-1])
    return np.array(found)


def _arc(centre: Floats, first: Floats, last: Floats, padding: float, arcs: int) -> list[Floats]:
    """Return points of an arc from one direction on, without the last one."""
    angle = float(np.arccos(np.clip(first @ last, -1.0, 1.0)))
    n = max(1, int(np.ceil(arcs * angle / np.pi)))
    sense = 1.0 if first[0] * last[1] - first[1] * last[0] >= 0.0 else -1.0
    turns = sense * angle * np.arange(n) / n
    across = np.array([-first[1], first[0]])
    return [centre + padding * (np.cos(t) * first + np.sin(t) * across) for t in turns]


def _cap(end: Floats, out: Floats, padding: float, arcs: int) -> Floats:
    """Return the half circle about an end, from the right of the way out to its left, without both."""
    out = out / np.linalg.norm(out)
    right = np.array([out[1], -out[0]])
    turns = np.pi * np.arange(1, arcs) / arcs
    return np.asarray(end + padding * (np.cos(turns)[:, None] * right + np.sin(turns)[:, None] * out))


def revolved_triangles(outline: ArrayLike, segments: int = 64) -> TriMesh:
    """Return the closed surface of an outline that is turned about z.

    Parameters
    ----------
    outline : array_like, (n, 2), m
        Radius and z, counter-clockwise as :func:`padded_outline` gives it; no point on the axis, or the first and the last.
    segments : int
        Points around z, at least 3.

    Raises
    ------
    MeshError
        Other points on the axis, or fewer than 3 segments.
    """
    line = np.asarray(outline, dtype=np.float64)
    poles = bool(line[0, 0] <= 0.0 and line[-1, 0] <= 0.0)
    if segments < 3 or (line[1:-1, 0] <= 0.0).any() or (not poles and (line[[0, -1], 0] <= 0.0).any()):
        raise MeshError(
            f"revolved_triangles: segments is {segments} and the smallest radius {line[:, 0].min()} m; give 3 or more, and an "
            "outline whose first and last points lie on the axis, or none."
        )
    rings = line[1:-1] if poles else line
    angle = 2.0 * np.pi * np.arange(segments) / segments
    around = np.stack([rings[:, :1] * np.cos(angle), rings[:, :1] * np.sin(angle), np.tile(rings[:, 1:], segments)], axis=-1)
    number = np.arange(len(rings) * segments).reshape(len(rings), segments)
    low = number[:-1] if poles else number
    high = number[1:] if poles else np.roll(number, -1, axis=0)
    triangles = [_strip(low, high)]
    points = [around.reshape(-1, 3)]
    if poles:
        first, last = number.size, number.size + 1
        points.append(np.array([[0.0, 0.0, line[0, 1]], [0.0, 0.0, line[-1, 1]]]))
        after = np.roll(number, -1, axis=1)
        triangles.append(np.column_stack([after[0], number[0], np.full(segments, first)]))
        triangles.append(np.column_stack([number[-1], after[-1], np.full(segments, last)]))
    source = f"revolved_triangles({len(line)} points, {segments})"
    return make_trimesh(np.concatenate(points), np.concatenate(triangles), name="revolved", source=source)


def _strip(low: Ints, high: Ints) -> Ints:
    """Return two triangles for each cell between rows of points that close around, outward where z rises from low to high."""
    low_next, high_next = np.roll(low, -1, axis=1), np.roll(high, -1, axis=1)
    one = np.stack([low, low_next, high_next], axis=-1).reshape(-1, 3)
    two = np.stack([low, high_next, high], axis=-1).reshape(-1, 3)
    return np.concatenate([one, two])


def revolved_mass_properties(outline: ArrayLike) -> tuple[float, Floats, Floats]:
    """Return volume (m^3), centre (3,) m and inertia about it (3, 3) m^5, at density 1, of an outline turned about z.

    Parameters
    ----------
    outline : array_like, (n, 2), m
        Radius and z, counter-clockwise. The integrals over its area are exact.
    """
    line = np.asarray(outline, dtype=np.float64)
    a, b, c = np.broadcast_to(line[0], line[2:].shape), line[1:-1], line[2:]
    area = 0.5 * ((b[:, 0] - a[:, 0]) * (c[:, 1] - a[:, 1]) - (b[:, 1] - a[:, 1]) * (c[:, 0] - a[:, 0]))
    places = np.einsum("qk,kti->tqi", _PLACES, np.stack([a, b, c]))
    share = 2.0 * np.pi * area[:, None] * _WEIGHTS
    r, z = places[..., 0], places[..., 1]
    volume = float((share * r).sum())
    height = float((share * r * z).sum()) / volume
    about = float((share * r**3).sum())
    side = 0.5 * about + float((share * r * z**2).sum()) - volume * height**2
    return volume, np.array([0.0, 0.0, height]), np.diag([side, side, about])


def thread_triangles(
    pitch: float, major: float, minor: float, crest: float, length: float, flank: float, across: float = 0.0, segments: int = 48
) -> TriMesh:
    """Return the closed surface of a threaded rod along z, or of a hexagonal nut with the thread as its hole; right-handed.

    Parameters
    ----------
    pitch, major, minor, crest, length : float, m
        Pitch, radii of the tops of the ridges and of the grooves, width of the tops, length.
    flank : float, rad
        Angle between a flank and the plane across the axis.
    across : float, m
        Width of a nut across flats; 0 for a rod.
    segments : int
        Points of a turn, a multiple of 12, so that the corners of a hexagon are among them.

    Raises
    ------
    MeshError
        When ``segments`` is no multiple of 12.
    """
    if segments < 12 or segments % 12:
        raise MeshError(f"thread_triangles: segments is {segments}; give a multiple of 12.")
    half, edge = 0.5 * length, 0.5 * crest
    foot = edge + (major - minor) * np.tan(flank)
    turns = np.arange(-np.ceil(half / pitch) - 2.0, np.ceil(half / pitch) + 2.0)
    s = (pitch * turns[:, None] + np.array([-foot, -edge, edge, foot])).ravel()
    angle = 2.0 * np.pi * np.arange(segments) / segments
    z = s[:, None] + pitch * angle / (2.0 * np.pi)

    def radius(height: Floats) -> Floats:
        away = np.abs(height - pitch * np.floor(height / pitch + 0.5))
        return np.asarray(np.clip(major - (away - edge) / np.tan(flank), minor, major))

    # rows follow the edges of the thread; those beyond the ends are one point a column. After a turn row i goes on in row i + 4.
    number = np.arange(z.size).reshape(z.shape) + 2 * segments
    number[z <= -half] = np.broadcast_to(np.arange(segments), z.shape)[z <= -half]
    number[z >= half] = np.broadcast_to(np.arange(segments) + segments, z.shape)[z >= half]
    wide = np.column_stack([number[:-4], number[4:, 0]])
    low, high = wide[:-1], wide[1:]
    quads = (low[:, :-1], low[:, 1:], high[:, 1:], high[:, :-1])
    triangles = [np.stack([quads[i] for i in three], axis=-1).reshape(-1, 3) for three in ((0, 1, 2), (0, 2, 3))]
    rings = [_ring(radius(height - pitch * angle / (2.0 * np.pi)), angle, height) for height in (-half, half)]
    field = _ring(radius(np.broadcast_to(s[:, None], z.shape)), angle, z).reshape(-1, 3)
    bottom, top = np.arange(segments)[None], np.arange(segments)[None] + segments
    points = [*rings, field]
    count = 2 * segments + len(field)
    if across:
        triangles = [three[:, ::-1] for three in triangles]
        out = 0.5 * across / np.cos(angle - np.pi / 3.0 * np.round(angle / (np.pi / 3.0)))
        points += [_ring(out, angle, -half), _ring(out, angle, half)]
        low, high = np.arange(segments)[None] + count, np.arange(segments)[None] + count + segments
        triangles += [_strip(bottom, low), _strip(low, high), _strip(high, top)]
    else:
        points.append(np.array([[0.0, 0.0, -half], [0.0, 0.0, half]]))
        after = np.roll(np.arange(segments), -1)
        triangles.append(np.column_stack([after, bottom[0], np.full(segments, count)]))
        triangles.append(np.column_stack([top[0], after + segments, np.full(segments, count + 1)]))
    every = np.concatenate(triangles)
    a, b, c = every.T
    every = every[(a != b) & (b != c) & (c != a)]
    used, every = np.unique(every, return_inverse=True)
    source = f"thread_triangles({pitch}, {major}, {minor}, {crest}, {length}, {flank}, {across}, {segments})"
    return make_trimesh(np.concatenate(points)[used], every.reshape(-1, 3), name="thread", source=source)


def _ring(radius: Floats, angle: Floats, z: float | Floats) -> Floats:
    """Return points (..., 3) at radii and angles (..., n) and heights, m."""
    return np.stack([radius * np.cos(angle), radius * np.sin(angle), np.broadcast_to(z, radius.shape)], axis=-1)

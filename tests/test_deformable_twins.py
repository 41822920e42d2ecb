"""Twins in plain Python of the kernels that write crossings of edges and points on strands: all pairs, every rule spelled out."""

from __future__ import annotations

import functools
import itertools
import math
from collections import defaultdict
from dataclasses import replace

import numpy as np
from scipy.spatial.transform import Rotation

import femsim as fs
from contact import deformable_kernels as kernels, vertex_kernels
from contact.deformable import DeformableContacts, DeformableDetector, Strand, Surface
from contact.detect_kernels import DEEPER
from contact.side_kernels import EDGE_EDGE, POINT_SEGMENT, SNAP
from contact.surface_kernels import FLAT, KEEN

Body = Surface | Strand
Found = dict[tuple[int, ...], tuple[float, np.ndarray, np.ndarray]]


def normals(points: np.ndarray, triangles: np.ndarray) -> np.ndarray:
    a, b, c = (points[triangles[:, k]] for k in range(3))
    n = np.cross(b - a, c - a)
    return n / np.linalg.norm(n, axis=1)[:, None]


def level_edges(body: Body, points: np.ndarray, first: int) -> list[tuple[int, int, np.ndarray, list[int], int]]:
    """Ends, outward normal and third corners of the edges that are not concave; whether each is flat 0, sharp 1, or keen 2."""
    if isinstance(body, Strand):
        return [(first + k, first + k + 1, np.zeros(3), [], 1) for k in range(body.n_points - 1)]
    faces, normal = defaultdict(list), normals(points, body.triangles + first)
    for t, corners in enumerate(body.triangles + first):
        for k in range(3):
            a, b, c = np.roll(corners, -k).tolist()
            faces[min(a, b), max(a, b)].append((t, c))
    edges = []
    for (a, b), ((t, c), (u, d)) in faces.items():
        cosine, mean = normal[t] @ normal[u], normal[t] + normal[u]
        if cosine >= FLAT or (points[d] - points[a]) @ normal[t] < 0:
            edges.append((a, b, mean / np.linalg.norm(mean), [c, d], int(cosine < FLAT) + int(cosine < KEEN)))
    return edges


#: Of edges farther from each other than this nothing is asked: it is more than margin, radii and depths together, m.
FAR = 0.03


def plain_crossings(bodies: tuple[Body, Body], points: np.ndarray, firsts: tuple[int, int], margin: float) -> Found:
    """Gap, normal and parameters of all crossings of two bodies, by the ends of the edges."""
    radii = [body.radius if isinstance(body, Strand) else 0.0 for body in bodies]
    solid = [isinstance(body, Surface) for body in bodies]
    found: Found = {}
    rigid = [isinstance(body, Surface) and body.rigid for body in bodies]
    for one, other in itertools.product(*(level_edges(b, points, f) for b, f in zip(bodies, firsts, strict=True))):
        (a, b, out0, beyond0, kind0), (c, d, out1, beyond1, kind1) = one, other
        if not ((kind0 and kind1) or (rigid[0] and kind0 == 2) or (rigid[1] and kind1 == 2)):
            continue
        u, v = points[b] - points[a], points[d] - points[c]
        between = points[a] + 0.5 * u - points[c] - 0.5 * v
        if math.sqrt(between @ between) > 0.5 * (math.sqrt(u @ u) + math.sqrt(v @ v)) + FAR:
            continue
        n = np.cross(u, v)
        if np.linalg.norm(n) <= kernels.CROSSING * np.linalg.norm(u) * np.linalg.norm(v):
            continue
        n /= np.linalg.norm(n)
        s, t, _ = np.linalg.solve(np.column_stack([u, -v, -n]), points[c] - points[a])
        if not (SNAP < s < 1 - SNAP and SNAP < t < 1 - SNAP):
            continue
        if any(kind == 0 and abs(place - 0.5) > 0.5 - kernels.BESIDE_END for kind, place in ((kind0, s), (kind1, t))):
            continue
        foot0, foot1 = points[a] + s * u, points[c] + t * v
        if (n @ out1 if solid[1] else -n @ out0 if solid[0] else n @ (foot0 - foot1)) < 0:
            n = -n
        distance = n @ (foot0 - foot1)
        ridges = True
        sides = (foot0, -n, out0, beyond0, u), (foot1, n, out1, beyond1, v)
        for k, (foot, outward, edge_normal, beyond, way) in enumerate(sides):
            if solid[k]:
                arms = points[beyond] - foot
                across = np.linalg.norm(np.cross(arms, way), axis=1) / np.linalg.norm(way)
                below = (arms @ outward <= kernels.SLACK * across).all()
                ridges &= bool(below and outward @ edge_normal >= kernels.EDGE_FACING and -distance <= bodies[k].depth[0])
        if distance < 0:  # a strand has no faces to pass by
            for (p, q, edge_normal, beyond, _), ends in ((one, (c, d)), (other, (a, b))):
                for corner in beyond:
                    face = np.cross(points[q] - points[p], points[corner] - points[p])
                    face *= np.sign(face @ edge_normal) / np.linalg.norm(face)
                    below = max((points[p] - points[end]) @ face for end in ends)
                    ridges &= bool(DEEPER * below >= -distance)
        if ridges and distance - sum(radii) < margin:
            found[a, b, c, d] = (distance - sum(radii), n, np.array([s, t]))
    return found


def along_fraction(p: np.ndarray, a: np.ndarray, b: np.ndarray) -> float:
    t = np.clip((p - a) @ (b - a) / ((b - a) @ (b - a)), 0.0, 1.0)
    return 0.0 if t <= SNAP else 1.0 if t >= 1 - SNAP else float(t)


def plain_points(bodies: tuple[Body, Strand], points: np.ndarray, firsts: tuple[int, int], leads: bool, margin: float) -> Found:
    """Gap, normal and place of the points of the first body on the strand that is the second, by point and place on the strand.

    A place is a segment and a fraction of it below 1; the end of the strand is the place (number of segments, 0).
    """
    body, strand = bodies
    bare, n = isinstance(body, Strand), strand.n_points - 1
    line = points[firsts[1] : firsts[1] + n + 1]
    radii = strand.radius + (body.radius if isinstance(body, Strand) else 0.0)
    outward = np.zeros((body.n_points, 3))
    if isinstance(body, Surface):
        own = points[firsts[0] : firsts[0] + body.n_points]
        for corners, normal in zip(body.triangles, normals(own, body.triangles), strict=True):
            for k in range(3):
                p, q, r = own[np.roll(corners, -k)]
                outward[corners[k]] += normal * np.arccos((q - p) @ (r - p) / np.linalg.norm(q - p) / np.linalg.norm(r - p))
        outward /= np.linalg.norm(outward, axis=1)[:, None]
    found: Found = {}
    for i in range(body.n_points):
        p = points[firsts[0] + i]
        fraction = [along_fraction(p, line[f], line[f + 1]) for f in range(n)]
        inside = [(f, t) for f, t in enumerate(fraction) if 0.0 < t < 1.0]
        corners = [(f, 0.0) for f in range(n + 1) if (f == 0 or fraction[f - 1] == 1.0) and (f == n or fraction[f] == 0.0)]
        for f, t in inside + (corners if bare else []):
            segment = min(f, n - 1)
            v = line[segment + 1] - line[segment]
            if bare and not leads and 0 < i < body.n_points - 1:
                tangent = points[firsts[0] + i + 1] - points[firsts[0] + i - 1]
                if abs(tangent @ v) > kernels.ALONG * np.linalg.norm(tangent) * np.linalg.norm(v):
                    continue
            offset = p - (line[f] + (t * v if f < n else 0.0))
            distance = float(np.linalg.norm(offset))
            if distance - radii < margin and (bare or offset @ outward[i] <= -vertex_kernels.FACING_RIM * distance):
                found[firsts[0] + i, firsts[1] + f] = (distance - radii, offset / distance, np.array([t]))
    return found


def written(contacts: DeformableContacts, kind: int, sides: tuple[int, int]) -> Found:
    """The contacts of a kind between two sides, in the form of the twins."""
    found: Found = {}
    for k in np.flatnonzero((contacts.kind == kind) & (contacts.body == sides).all(axis=1)):
        p, w, n = contacts.point[k], contacts.weight[k], contacts.frame[k, 0]
        if kind == EDGE_EDGE:
            found[p[0, 0], p[0, 1], p[1, 0], p[1, 1]] = (contacts.gap[k], n, w[:, 1])
        else:  # at the end of a segment only its second point counts
            place, t = (p[1, 1], 0.0) if w[1, 0] == 0.0 else (p[1, 0], w[1, 1])
            found[p[0, 0], place] = (contacts.gap[k], n, np.array([t]))
    return found


def same(found: Found, expected: Found) -> int:
    assert found.keys() == expected.keys()
    for key, values in found.items():
        for one, other in zip(values, expected[key], strict=True):
            np.testing.assert_allclose(one, other, rtol=0, atol=1e-9)
    return len(found)


@functools.cache
def cube() -> tuple[Surface, np.ndarray]:
    shell = fs.box_tets((0.1, 0.1, 0.1), 2).surface()
    body = Surface(len(shell.points), shell.triangles, np.full(len(shell.triangles), 0.01))
    return body, shell.points - shell.points.mean(axis=0)


def wavy_strand(rng: np.random.Generator, count: int, radius: float) -> tuple[Strand, np.ndarray]:
    x = np.linspace(-0.1, 0.1, count)
    points = np.column_stack([x, 0 * x, 0 * x]) + 0.004 * rng.standard_normal((count, 3))
    return Strand(np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(points, axis=0), axis=1))]), radius), points


def random_pairs(rng: np.random.Generator, first: str, second: str, count: int):
    """Pairs of bodies near each other, with their points."""
    for _ in range(count):
        bodies, where = [], []
        for k, name in enumerate((first, second)):
            body, points = cube() if name == "cube" else wavy_strand(rng, 14 - 4 * k, 0.003 - 0.001 * k)
            bodies.append(body)
            shift = rng.standard_normal(3)
            far = {"cubecube": 0.115, "strandcube": 0.06, "strandstrand": 0.004}[first + second] * rng.uniform(0.8, 1.3)
            where.append(points @ Rotation.random(rng=rng).as_matrix().T + k * far * shift / np.linalg.norm(shift))
        yield (bodies[0], bodies[1]), np.concatenate(where), (0, bodies[0].n_points)


BOTH = np.array([[False, True], [True, False]])


def test_crossings_are_those_of_the_plain_twin() -> None:
    """Cubes, one of them rigid, a strand and a cube, two strands: every crossing, with its gap, normal and parameters."""
    rng, count = np.random.default_rng(0), []
    for *kinds, pairs, hard in (
        ("cube", "cube", 60, None), ("strand", "cube", 20, None), ("strand", "strand", 10, None),
        ("cube", "cube", 30, 0), ("cube", "cube", 30, 1), ("strand", "cube", 20, 1),
    ):  # fmt: skip
        count.append(0)
        for given, points, firsts in random_pairs(rng, *kinds, pairs):
            bodies = tuple(replace(body, rigid=True) if k == hard else body for k, body in enumerate(given))
            contacts = DeformableDetector(bodies, BOTH, points).detect(points, 0.012)
            count[-1] += same(written(contacts, EDGE_EDGE, (0, 1)), plain_crossings(bodies, points, firsts, 0.012))
    assert min(count) >= 10, count


def test_points_on_strands_are_those_of_the_plain_twin() -> None:
    """Points of a strand and vertices of a cube on another strand, inside segments, at corners and at ends."""
    rng, count = np.random.default_rng(1), []
    for *kinds, number in (("strand", "strand", 15), ("strand", "cube", 60)):
        count.append(0)
        for bodies, points, firsts in random_pairs(rng, *kinds, number):
            contacts = DeformableDetector(bodies, BOTH, points).detect(points, 0.012)
            pairs: set[tuple[int, ...]] = set()
            for one, other in ((0, 1), (1, 0)):
                strand = bodies[other]
                if not isinstance(strand, Strand):
                    continue
                leads = isinstance(bodies[one], Strand) and bodies[one].spacing < strand.spacing
                expected = plain_points((bodies[one], strand), points, (firsts[one], firsts[other]), leads, 0.012)
                for key, (_, _, (t,)) in list(expected.items()):  # two points that find each other are one contact, the first
                    if t == 0.0:
                        if tuple(sorted(key)) in pairs:
                            del expected[key]
                        pairs.add(tuple(sorted(key)))
                count[-1] += same(written(contacts, POINT_SEGMENT, (one, other)), expected)
    assert min(count) >= 10, count

"""Contact of a robot with itself: which pairs of its links may have some, and which nothing can push apart."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations

import numpy as np

from contact import Box, ContactError, Detector, Mesh, PlacedShape, Shape, first_points
from femsim.base.errors import InputError
from femsim.model.bodies.tree import TreeBody
from femsim.model.bodies.tree_kernels import FIXED
from femsim.model.parts import OwnPair, Part
from femsim.model.solids import close_points
from femsim.scene.contents import SceneContents

#: Links that overlap by no more than this at the start have contact, m: what is meant to lie flush is rounded in files.
_FLUSH = 1e-6
#: Where inner points of a box are along each of its sides, from -1 to 1.
_INNER = (-0.9, 0.0, 0.9)
#: From so many triangles of a mesh points in it are looked for.
_RAYS = 12
#: So many pairs of links are named in a note.
_NAMED = 3


def add_own_contact(scene: SceneContents, body: TreeBody, first: int, without: Sequence[tuple[str, str]]) -> None:
    """Let links of a robot have contact with each other, those that are no neighbours and do not overlap at the start.

    Parameters
    ----------
    scene : SceneContents
        The scene, which has the robot and its parts already; it gets the pairs, and a note on those that overlap.
    body : TreeBody
        The robot.
    first : int
        Number of the part of its base; those of the other links follow in order.
    without : sequence of (str, str)
        Pairs of links that its description leaves out.
    """
    parts = scene.parts[first : first + len(body.links)]
    pairs = pairs_of_links(body.tree.parent, body.tree.kind == FIXED, np.array([len(part.shapes) > 0 for part in parts]))
    left_out = {frozenset(pair) for pair in without}
    pairs = [(a, b) for a, b in pairs if frozenset((body.links[a], body.links[b])) not in left_out]
    overlapping = _overlaps(body, parts, pairs)
    apart = [pair for pair in pairs if pair not in overlapping]
    scene.own_pairs += [OwnPair(first + a, first + b, body.rows_between(a, b)) for a, b in apart]
    if overlapping:
        deepest = sorted(overlapping, key=lambda pair: -overlapping[pair])
        named = ", ".join(f"{body.links[a]} and {body.links[b]} ({1e3 * overlapping[a, b]:.2g} mm)" for a, b in deepest[:_NAMED])
        more = f" and {len(deepest) - _NAMED} pairs more" if len(deepest) > _NAMED else ""
        scene.notes.append(
            f"robot {body.name}: links {named}{more} overlap at the start, so they have no contact with each other all along"
        )


def pairs_of_links(parent: np.ndarray, fixed: np.ndarray, shaped: np.ndarray) -> list[tuple[int, int]]:
    """Pairs of links that have shapes, move against each other and are no neighbours.

    Links that fixed joints hold together count as one. Neighbours hang on each other by a joint; links without shapes between
    them do not part them, as in a joint of two or three axes that is made of simple ones.

    Parameters
    ----------
    parent : ndarray, (links,), int64
        Link that each hangs on, which comes before it; -1 for the base.
    fixed : ndarray, (links,), bool
        Whether it does so by a fixed joint.
    shaped : ndarray, (links,), bool
        Whether it has shapes.

    Returns
    -------
    list of (int, int)
        The lower number first.
    """
    lump = np.arange(len(parent))
    for k in range(1, len(parent)):
        if fixed[k]:
            lump[k] = lump[parent[k]]
    solid = {int(one) for one in lump[shaped]}
    above: dict[int, int] = {}
    for k in sorted(solid - {0}):
        up = int(lump[parent[k]])
        while up and up not in solid:
            up = int(lump[parent[up]])
        above[k] = up
    out = []
    links = np.flatnonzero(shaped).tolist()
    for i, a in enumerate(links):
        for b in links[i + 1 :]:
            one, other = int(lump[a]), int(lump[b])
            if one != other and above.get(one) != other and above.get(other) != one:
                out.append((a, b))
    return out


def _overlaps(body: TreeBody, parts: list[Part], pairs: list[tuple[int, int]]) -> dict[tuple[int, int], float]:
    """Pairs of links that overlap at the start, and how deep, m."""
    if not pairs:
        return {}
    allowed = np.zeros((len(parts), len(parts)), dtype=np.bool_)
    for a, b in pairs:
        allowed[a, b] = allowed[b, a] = True
    shapes: list[PlacedShape] = []
    points, radii, part_of, firsts, count = [], [], [], [], 0
    for k, part in enumerate(parts):
        for shape, rotation, translation in part.shapes:
            shapes.append(PlacedShape(shape, k, rotation, translation, k))
            own, radius = close_points(shape)
            inner = _inner_points(shape)
            own, radius = np.concatenate([own, inner]), np.concatenate([radius, np.zeros(len(inner))])
            firsts.append(count)
            points.append(own @ rotation.T + translation)
            radii.append(radius)
            part_of.append(np.full(len(own), k))
            count += len(own)
    number = np.concatenate(part_of).astype(np.int64)
    starts = first_points([placed.shape for placed in shapes], firsts)
    try:
        detector = Detector(shapes, number, np.concatenate(radii), number, allowed, **starts)
    except ContactError as error:
        raise InputError(
            f"robot {body.name}: its links cannot have contact with each other: {error} Or say self_contact=False in add_robot."
        ) from error
    poses = [body.link_pose(body.initial_q(), k) for k in range(len(parts))]
    rotation, centre = (np.array([pose[i] for pose in poses]) for i in range(2))
    world = np.einsum("pij,pj->pi", rotation[number], np.concatenate(points)) + centre[number]
    found = detector.detect(world, *detector.world_poses(rotation, centre), 0.0)
    out: dict[tuple[int, int], float] = {}
    for one, placed, gap in zip(number[found.point].tolist(), found.shape.tolist(), found.gap.tolist(), strict=True):
        other = int(detector.shape_body[placed])
        pair = (min(one, other), max(one, other))
        if -gap > _FLUSH:
            out[pair] = max(out.get(pair, 0.0), -gap)
    return out


def _inner_points(shape: Shape) -> np.ndarray:
    """Points (k, 3), m, well within a shape: where two equal ones are in one place, no point of a surface is inside of the other.

    Round shapes have some among their points.
    """
    if isinstance(shape, Mesh):
        return _middles(shape.points[shape.triangles])
    if not isinstance(shape, Box):
        return np.zeros((0, 3))
    return np.asarray(np.stack(np.meshgrid(*[_INNER] * 3, indexing="ij"), axis=-1).reshape(-1, 3) * shape.half_extents)


def _middles(corners: np.ndarray) -> np.ndarray:
    """Points (k, 3), m, half way from some triangles of a closed surface, (t, 3, 3), to what lies straight behind them."""
    first, u, v = corners[:, 0], corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
    across = np.cross(u, v)
    size = np.linalg.norm(across, axis=1)
    out = []
    for k in np.unique(np.linspace(0, len(corners) - 1, _RAYS).astype(np.int64)):
        start, way = corners[k].mean(axis=0), -across[k] / size[k]
        # where the ray meets the plane of each triangle, and whether that is within (Moeller and Trumbore 1997)
        slope, to = across @ way, start - first
        with np.errstate(divide="ignore", invalid="ignore"):
            far = -np.einsum("ij,ij->i", to, across) / slope
            turned = np.cross(to, way)
            a, b = -np.einsum("ij,ij->i", v, turned) / slope, np.einsum("ij,ij->i", u, turned) / slope
            behind = far[(a >= 0.0) & (b >= 0.0) & (a + b <= 1.0) & (far > _FLUSH)]
        if len(behind):
            out.append(start + 0.5 * behind.min() * way)
    return np.array(out).reshape(-1, 3)


def marked(count: int, pairs: Iterable[OwnPair]) -> np.ndarray:
    """Pairs of parts as a symmetric matrix, (count, count), bool."""
    out = np.zeros((count, count), dtype=np.bool_)
    for pair in pairs:
        out[pair.a, pair.b] = out[pair.b, pair.a] = True
    return out


def own_pairs(scene: SceneContents) -> np.ndarray:
    """Pairs of links of one robot that contact keeps apart, (np, np) bool, symmetric."""
    return marked(len(scene.parts), (pair for pair in scene.own_pairs if not _is_led(scene, pair)))


def led_own_pairs(scene: SceneContents) -> np.ndarray:
    """Pairs of links of one robot that would have contact, but whose joints in between all follow motions exactly; as before."""
    return marked(len(scene.parts), (pair for pair in scene.own_pairs if _is_led(scene, pair)))


def fixed_pairs(scene: SceneContents) -> list[tuple[int, int]]:
    """Pairs of links of one robot without a joint that moves in between."""
    links = [(k, part) for k, part in enumerate(scene.parts) if part.body >= 0 and scene.bodies[part.body].rigid]
    of_one = [(i, a, j, b) for (i, a), (j, b) in combinations(links, 2) if a.body == b.body]
    return [(i, j) for i, a, j, b in of_one if not len(scene.bodies[a.body].rows_between(a.link, b.link))]


def _is_led(scene: SceneContents, pair: OwnPair) -> bool:
    """Whether all joints between two links follow motions exactly, so that nothing can push them apart."""
    body = scene.bodies[scene.parts[pair.a].body]
    return bool(np.isin(pair.rows, body.driven_rows()).all())

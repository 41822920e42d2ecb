"""Which rigid parts have contact with soft bodies and rods by their corners, edges and faces, and which at the nodes of these."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from contact import Box, Capsule, Cone, Cylinder, Mesh, Shape, Sphere, Strand
from contact.creases import is_smooth_and_convex, segments
from femsim.base.errors import InputError
from femsim.model.bodies.deforming import Deforming
from femsim.model.contact_rules import ContactRules
from femsim.model.faces import faces, flat, has_faces
from femsim.model.parts import Part, skins_of
from femsim.step.system import System

#: A shape has contact by its faces with a soft body or rod where it is thinner than so many of the body's elements or, in the
#: middle one of its three extents, narrower than so many: measured, boxes of 2 elements and less tip or fall between nodes, of 3
#: and more do not.
THIN, NARROW = 1.0, 4.0
#: ... of a ball, a capsule, a cylinder or a cone so many across: between nodes one of two sinks in by 0.3 elements, one of 1.4
#: falls through.
ROUND = 3.0
#: ... and with a soft body where it has an edge that turns by more than this, rad: at the nodes, one that slides goes between
#: them and its side ploughs those ahead.
EDGE = 0.5

#: A rod has contact with a smooth convex mesh at its nodes where the cells of the sampled distance are at most this part of its
#: radius: measured, a string round a cylinder errs by 1 % then, by 2 % with cells of a radius, by 20 % with those of six.
CELL = 0.5


def element_of(one: Deforming) -> float:
    """Median edge of the elements of a surface at rest, or mean length of the links of a strand, m."""
    if isinstance(one.shape, Strand):
        return one.shape.spacing
    corner = one.rest[one.shape.triangles]
    return float(np.median(np.linalg.norm(corner - np.roll(corner, 1, axis=1), axis=2)))


def is_small(shape: Shape, element: float) -> bool:
    """Whether a shape can pass between points that are an element, m, apart, or tip between them."""
    enough = element * (1.0 - 1e-9)
    lower, upper = shape.aabb
    thin, narrow, _ = np.sort(upper - lower)
    if isinstance(shape, Sphere | Capsule | Cylinder | Cone):
        return bool(thin < THIN * enough or 2.0 * shape.radius < ROUND * enough)
    return bool(thin < THIN * enough or narrow < NARROW * enough)


def has_edge(shape: Shape) -> bool:
    """Whether a flat shape has an edge that nodes ahead of it can be caught at: a box, or a mesh whose faces turn that far."""
    if not isinstance(shape, Mesh):
        return isinstance(shape, Box)
    _, _, one, two = segments(shape)
    return bool((np.einsum("ni,ni->n", one, two) > -np.cos(EDGE)).any())


def is_coarse(part: Part, strand: Strand) -> bool:
    """Whether a strand would see a mesh of a part too coarsely by its sampled distance.

    That is rounded off along edges, and where the mesh turns inwards it has valleys between its cells: links that lie in one have
    two normals by turns, and press on one wall of a groove alone.
    """
    for shape, _, _ in part.shapes:
        if isinstance(shape, Mesh):
            lower, upper = shape.aabb
            cell = float((upper - lower).max()) / shape.resolution
            if cell > CELL * strand.radius or not is_smooth_and_convex(shape):
                return True
    return False


def pairs_by_faces(system: System, parts: Sequence[Part], rules: ContactRules) -> tuple[dict[int, list[Deforming]], np.ndarray]:
    """Find what has contact by surfaces and strands, and by the faces of which rigid parts.

    By default these are free rigid bodies and obstacles that have faces, with soft bodies where they have edges
    (:func:`has_edge`), with rods where they are coarse (:func:`is_coarse`), with both where they are small compared with the
    elements of the other (:func:`is_small`), but where friction differs by direction; ``Part.by_faces`` says otherwise for all
    pairs of a part. Driven parts and links have it with nodes: these contacts follow a turn exactly, those by faces only the
    middle of a step.

    Returns
    -------
    able : dict of int to list of Deforming
        Surfaces and strands by the number of their part: of parts that deform, and of rigid ones that have contact by faces.
    pairs : ndarray, (np, np), bool
        Pairs of a part that deforms and a rigid one that have contact by faces, symmetric.

    Raises
    ------
    InputError
        Friction of a pair that the scene wants by faces differs by direction.
    """
    n = len(parts)
    pairs, may = np.zeros((n, n), dtype=np.bool_), rules.pairs | rules.pairs.T
    turned = np.zeros((n, n), dtype=np.bool_)
    owner = np.array([skin.part for skin in skins_of(parts)])
    for pair in rules.anisotropic:
        first, second = np.nonzero(pair.pairs | pair.pairs.T)
        turned[owner[first], owner[second]] = True
    deforms: dict[int, Deforming] = {}
    for k, part in enumerate(parts):
        if part.body >= 0 and (one := system.bodies[part.body].deforming(part)) is not None:
            deforms[k] = one
    elements = {k: element_of(one) for k, one in deforms.items()}
    able = {k: [one] for k, one in deforms.items()}
    for k, part in enumerate(parts):
        if k in deforms or part.by_faces is False or not has_faces(part):
            continue
        shapes = [shape for shape, _, _ in part.shapes]
        edge = any(has_edge(shape) for shape in shapes)
        for other in (one for one in deforms if may[one, k]):
            if turned[other, k] and part.by_faces:
                raise InputError(
                    f"friction of {parts[other].name!r} and {part.name!r} differs by direction, which contact by faces does not "
                    f"know; give one coefficient, or leave {part.name!r} out of contact_by_faces."
                )
            loose = rules.loose is None or rules.loose[k]
            shape = deforms[other].shape
            if isinstance(shape, Strand):  # its points are round themselves: only long gaps between them hide a round part
                seen = all(map(flat, shapes)) and (
                    is_coarse(part, shape) or any(is_small(one, elements[other]) for one in shapes)
                )
            else:
                seen = edge or any(is_small(one, elements[other]) for one in shapes)
            if part.by_faces or (loose and not turned[other, k] and seen):
                pairs[other, k] = pairs[k, other] = True
        if pairs[k].any():
            able[k] = faces(part)
    return {k: able[k] for k in sorted(able)}, pairs


def at_nodes(rules: ContactRules, pairs: np.ndarray) -> ContactRules:
    """Rules of the contacts between points and shapes: without the pairs that have contact by faces."""
    return replace(rules, pairs=rules.pairs & ~pairs) if pairs.any() else rules

"""Which rigid parts have contact with soft bodies and rods by their corners, edges and faces, and which at the nodes of these."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from contact import Box, Shape, Strand
from contact.creases import segments
from femsim.base.errors import InputError
from femsim.model.bodies.deforming import Deforming
from femsim.model.contact_rules import ContactRules
from femsim.model.faces import faces, flat
from femsim.model.parts import Part, skins_of
from femsim.step.system import System

#: A shape has contact by its faces with a soft body or rod where it is thinner than so many of the body's elements or, in the
#: middle one of its three extents, narrower than so many: measured, boxes of 2 elements and less tip or fall between nodes, of 3
#: and more do not.
THIN, NARROW = 1.0, 4.0
#: ... and with a soft body where it has an edge that turns by more than this, rad: at the nodes, one that slides goes between
#: them and its side ploughs those ahead.
EDGE = 0.5


def element_of(one: Deforming) -> float:
    """Median edge of the elements of a surface at rest, or mean length of the links of a strand, m."""
    if isinstance(one.shape, Strand):
        return one.shape.spacing
    corner = one.rest[one.shape.triangles]
    return float(np.median(np.linalg.norm(corner - np.roll(corner, 1, axis=1), axis=2)))


def is_small(part: Part, element: float) -> bool:
    """Whether a shape of a part can pass between points that are an element, m, apart, or tip between them."""
    for shape, _, _ in part.shapes:
        lower, upper = shape.aabb
        thin, narrow, _ = np.sort(upper - lower)
        if thin < THIN * element * (1.0 - 1e-9) or narrow < NARROW * element * (1.0 - 1e-9):
            return True
    return False


def has_edge(shape: Shape) -> bool:
    """Whether a flat shape has an edge that nodes ahead of it can be caught at: a box, or a mesh whose faces turn that far."""
    if isinstance(shape, Box):
        return True
    _, _, one, two = segments(shape)
    return bool((np.einsum("ni,ni->n", one, two) > -np.cos(EDGE)).any())


def pairs_by_faces(system: System, parts: Sequence[Part], rules: ContactRules) -> tuple[dict[int, Deforming], np.ndarray]:
    """Find what has contact by surfaces and strands, and by the faces of which rigid parts.

    By default these are free rigid bodies and obstacles made of boxes and meshes, with soft bodies where they have edges
    (:func:`has_edge`), with all where they are small compared with the elements of the other (:func:`is_small`), but where
    friction differs by direction; ``Part.by_faces`` says otherwise for all pairs of a part. Driven parts and links have it with
    nodes: these contacts follow a turn exactly, those by faces only the middle of a step.

    Returns
    -------
    able : dict of int to Deforming
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
    soft = {k for k, one in deforms.items() if not isinstance(one.shape, Strand)}
    able = dict(deforms)
    for k, part in enumerate(parts):
        if k in deforms or not part.shapes or part.by_faces is False or not all(flat(shape) for shape, _, _ in part.shapes):
            continue
        edge = any(has_edge(shape) for shape, _, _ in part.shapes)
        for other in (one for one in deforms if may[one, k]):
            if turned[other, k] and part.by_faces:
                raise InputError(
                    f"friction of {parts[other].name!r} and {part.name!r} differs by direction, which contact by faces does not "
                    f"know; give one coefficient, or leave {part.name!r} out of contact_by_faces."
                )
            loose = rules.loose is None or rules.loose[k]
            by_itself = (edge and other in soft) or is_small(part, elements[other])
            if part.by_faces or (loose and not turned[other, k] and by_itself):
                pairs[other, k] = pairs[k, other] = True
        if pairs[k].any():
            able[k] = faces(part)
    return {k: able[k] for k in sorted(able)}, pairs


def at_nodes(rules: ContactRules, pairs: np.ndarray) -> ContactRules:
    """Rules of the contacts between points and shapes: without the pairs that have contact by faces."""
    return replace(rules, pairs=rules.pairs & ~pairs) if pairs.any() else rules

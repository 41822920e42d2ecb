"""What a scene is at its start: overlaps, and shapes too thin or narrow for the soft bodies that they may have contact with."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

import numpy as np

from contact import Strand
from femsim.base.errors import InputError
from femsim.model.bodies.outputs import points_of
from femsim.model.faces import WITH_FACES, has_faces
from femsim.model.parts import Part
from femsim.scene.pairs import led_in_part
from femsim.scene.plausible import notes_on_settings
from femsim.scene.scene import Scene
from femsim.step.contacts import Contacts
from femsim.step.deep_inside import deep_inside, in_elements
from femsim.step.state import State
from femsim.step.system import System
from femsim.step.thin_rods import ThinOnRod
from femsim.step.thin_shapes import Thin
from femsim.step.vitals import VitalSigns
from femsim.step.whole_joints import Grouped

#: Of a rigid part inside another one or an obstacle, refused is more than this part of the smaller size of the two.
DEEP = 0.5
#: The radius of what a ring is made of is less than this part of its length.
_RING = 0.1
#: So many parts are named in a message.
_SHOWN = 6


def check_start(scene: Scene, contacts: Contacts, vital_signs: VitalSigns, state: State, dt: float) -> list[str]:
    """Refuse a scene that cannot start well; return notes on what seems odd about it.

    Raises
    ------
    InputError
        Soft bodies and rods that overlap too deeply to be pushed apart, rigid ones that are half in another, and shapes that pass
        between the surface nodes of a soft body.
    """
    waiting = {rule.pair for rule in contacts.rules.until_broken if rule.pair is not None} | _welded(
        contacts, vital_signs.at_start
    )
    soft = _check_soft(scene, contacts, state, waiting)
    thin = [
        *_check_thin(scene, vital_signs.thin),
        *_narrow(scene, vital_signs.narrow),
        *_thin_on_rods(scene, vital_signs.thin_on_rods),
    ]
    rigid = [
        *_overlaps(scene, contacts, vital_signs, waiting),
        *_unseen(scene, contacts, vital_signs, state, waiting),
        *_between_nodes(scene, contacts, vital_signs, state, waiting),
    ]
    masses = [note for body, notes in scene.mass_notes.items() if body not in scene.motions for note in notes]
    edges = _round_edges(scene, contacts) if scene.theta == 1.0 else []
    rings = _open_rings(scene, contacts.system)
    return [*scene.notes, *masses, *notes_on_settings(dt, scene.gravity), *soft, *rigid, *thin, *edges, *rings]


def _open_rings(scene: Scene, system: System) -> list[str]:
    """Note rods whose tips meet though one of them is free: they are told as rings, and open."""
    notes = []
    for part, strand in _strands(scene, system):
        body = system.bodies[part.body]
        drawn, kinds = body.drawing(part.link), body.sensor_kinds(part.link)
        if drawn is None:
            continue
        length = np.linalg.norm(np.diff(drawn.points, axis=0), axis=1).sum()
        joined = [rows for one in system.couplings for number, rows in one.rows if number == part.body]
        free = [
            side not in kinds and not any(((first <= rows) & (rows < first + 6)).any() for rows in joined)
            for side, first in (("start", 0), ("end", body.n_v - 6))
        ]
        if any(free) and np.linalg.norm(drawn.points[-1] - drawn.points[0]) < strand.radius < _RING * length:
            notes.append(
                f"the tips of {part.name} meet, but nothing joins them, and it opens there: to close a ring, hold both on one "
                "small rigid body, by fs.RodEnd('clamped', on=...)"
            )
    return notes


def _strands(scene: Scene, system: System) -> Iterator[tuple[Part, Strand]]:
    """Parts that are rods, and their centre lines."""
    for part in scene.parts:
        one = system.bodies[part.body].deforming(part) if len(part.nodes) else None
        if one is not None and isinstance(one.shape, Strand):
            yield part, one.shape


def _round_edges(scene: Scene, contacts: Contacts) -> list[str]:
    """Note rods that have contact by faces: backward Euler leads them past edges along the tangents of earlier places."""
    notes, numbers = [], {part.name: k for k, part in enumerate(scene.parts)}
    for part, strand in _strands(scene, contacts.system):
        others = [scene.parts[other].name for other in np.flatnonzero(contacts.by_faces[numbers[part.name]]).tolist()]
        if others:
            notes.append(
                f"{part.name} has contact by faces with {_first(others)}, and theta=1 adds to its friction over edges what it "
                f"slides in a step, divided by its radius of {1e3 * strand.radius:.3g} mm: leave theta out where it slides "
                "over some, or take a small dt"
            )
    return notes


def _welded(contacts: Contacts, overlapping: Collection[tuple[int, int]]) -> set[tuple[int, int]]:
    """Those of these pairs of parts that welds hold together, be it by other parts."""
    none = np.zeros(0, dtype=np.int64)
    group = Grouped(contacts.rules.welds, len(contacts.rules.pairs), none, none).now()[0]
    return {(a, b) for a, b in overlapping if group[a] == group[b]}


def _for_ever(scene: Scene, contacts: Contacts, a: int, b: int, depth: float) -> str:
    """Leave two parts without contact that contact could not push apart when the joint between them breaks; say so."""
    contacts.never(a, b)
    first, second = scene.parts[a].name, scene.parts[b].name
    return (
        f"{first} and {second} overlap by {1e3 * depth:.3g} mm at the start, too much for contact to push them apart: they pass "
        "through each other also when the joint between them breaks"
    )


def _check_soft(scene: Scene, contacts: Contacts, state: State, waiting: Collection[tuple[int, int]]) -> list[str]:
    """Refuse soft bodies and rods that overlap too deeply to be pushed apart; note where they overlap visibly.

    Those with rigid parts are noted by :func:`_overlaps`, unless they wait for a joint to break.
    """
    notes = []
    for a, b, depth, bound in contacts.overlaps(state):
        if (min(a, b), max(a, b)) in waiting:
            if depth > bound:
                notes.append(_for_ever(scene, contacts, a, b, depth))
            continue
        first, second = scene.parts[a].name, scene.parts[b].name
        if depth > bound:
            raise InputError(
                f"scene {scene.name!r}: {first!r} and {second!r} overlap by {1e3 * depth:.3g} mm at the start; allowed are "
                f"less than {1e3 * bound:.3g} mm (half of an element, "
                "of a rigid part with faces, or of the radii of rods). Move them apart."
            )
        if depth > scene.margin and not any(scene.parts[k].shapes for k in (a, b)):
            notes.append(_pushed(scene, f"{first} and {second} overlap by {1e3 * depth:.3g} mm at the start"))
    return notes


def _pushed(scene: Scene, said: str, when: str = "") -> str:
    """Say of an overlap what contact does to it."""
    speed = scene.max_correction if scene.correction else 0.0
    return f"{said}; contact pushes them apart, at up to {speed:g} m/s{when}"


def _overlaps(scene: Scene, contacts: Contacts, vital_signs: VitalSigns, waiting: Collection[tuple[int, int]]) -> list[str]:
    """Note overlaps with rigid parts and obstacles, and refuse those that are too deep to be a slip of the pen."""
    out, names = [], scene.part_names
    for (a, b), depth in vital_signs.at_start.items():
        soft = [k for k in (a, b) if not scene.parts[k].shapes]
        if depth <= scene.margin or len(soft) == 2:
            continue
        first, second = (b, a) if scene.parts[a].body < 0 else (a, b)
        said = f"{names[first]} and {names[second]} overlap by {1e3 * depth:.3g} mm at the start"
        size, which = vital_signs.sizes.of_pair(a, b)
        if vital_signs.led(a, b):
            out.append(f"{said}; nothing pushes them apart, and only what they go deeper counts as an error")
        elif depth > DEEP * size * (1.0 - 1e-9) and (a, b) in waiting:
            out.append(_for_ever(scene, contacts, a, b, depth))
        elif depth > DEEP * size * (1.0 - 1e-9):
            raise InputError(
                f"scene {scene.name!r}: {said}, more than half of the {vital_signs.sizes.what[which]} of {names[which]} "
                f"({1e3 * size:.3g} mm), so it is not clear to which side. Move them apart."
            )
        elif vital_signs.soft(a, b):
            out.append(f"{said}; their contacts are soft, and press as if that had pressed them together")
        else:
            when = " once the joint between them breaks" if (a, b) in waiting else ""
            links = [names[k] for k in (a, b) if led_in_part(scene, k)]
            along = f", but {links[0]} only along joints that follow no motion exactly" if links else ""
            out.append(_pushed(scene, said, when + along))
    return out


def _unseen(
    scene: Scene, contacts: Contacts, vital_signs: VitalSigns, state: State, waiting: Collection[tuple[int, int]]
) -> list[str]:
    """Refuse rigid parts that are deep in each other though no corner, edge or face may be in contact; note those joined."""
    out, sizes = [], vital_signs.sizes
    found = deep_inside(scene.parts, contacts.rules.pairs, contacts.places.read(state), sizes.part, DEEP)
    for a, b, depth in found:
        if (a, b) in waiting:
            if not vital_signs.at_start.get((a, b), 0.0) > DEEP * sizes.of_pair(a, b)[0]:
                out.append(_for_ever(scene, contacts, a, b, depth))
            continue
        size, which = sizes.of_pair(a, b)
        raise InputError(
            f"scene {scene.name!r}: {scene.parts[a].name} and {scene.parts[b].name} overlap by {1e3 * depth:.3g} mm or more at "
            f"the start, more than half of the {sizes.what[which]} of {scene.parts[which].name} ({1e3 * size:.3g} mm), where "
            "contact may not see it. Move them apart."
        )
    return out


def _between_nodes(
    scene: Scene, contacts: Contacts, vital_signs: VitalSigns, state: State, waiting: Collection[tuple[int, int]]
) -> list[str]:
    """Note rigid parts that lie in soft bodies, between their nodes, where no overlap is seen."""
    soft, system = {}, contacts.system
    for k, part in enumerate(scene.parts):
        if part.body < 0 or part.shapes:
            continue
        body = system.bodies[part.body]
        drawing, points = body.drawing(part.link), points_of(body.kind, state.q[system.q_slices[part.body]])
        if drawing is not None and drawing.cells is not None and points is not None:
            soft[k] = points, drawing.cells
    seen = {pair for pair, depth in vital_signs.at_start.items() if depth > scene.margin} | set(waiting)
    found = in_elements(scene.parts, contacts.rules.pairs, contacts.places.read(state), vital_signs.sizes.part, DEEP, soft)
    return [
        f"{scene.parts[a].name} lies in {scene.parts[b].name} at the start, between its nodes, where contact does not see it; "
        "move them apart"
        for a, b in found
        if (min(a, b), max(a, b)) not in seen
    ]


def _check_thin(scene: Scene, thin: Sequence[Thin]) -> list[str]:
    """Refuse shapes that fit between the surface nodes of soft bodies in contact with them; note those whose edge does."""
    notes: dict[tuple[int, int], str] = {}
    needles = {(one.part, one.soft): one for one in reversed(thin) if one.needle and not scene.thin_shapes}
    for one in thin:
        across, edge = 1e3 * one.extents, 1e3 * one.edge
        name, soft = scene.parts[one.part].name, scene.parts[one.soft].name
        if one.needle and not scene.thin_shapes:
            like = sorted({scene.parts[part].name for part, _ in needles} - {name})
            too = f", and the same of {_first(map(repr, like))}, which are thin beside soft bodies as well," if like else ""
            raise InputError(
                f"scene {scene.name!r}: {name!r} is {across[1]:.3g} mm across, and the surface nodes of "
                f"{soft!r} are {edge:.3g} mm apart: it would pass between them without a force, "
                f"since contact is at the nodes. Say scene.contact_by_faces({name!r}){too} if it is made of {WITH_FACES}; else "
                f"take elements of {across[1]:.2g} mm there, a thicker shape, or thin_shapes=True of the scene where they "
                "never have contact."
            )
        if one.plate and not one.needle:
            faces = has_faces(scene.parts[one.part])
            by = f"scene.contact_by_faces({name!r}) gives" if faces else f"elements of {across[0]:.2g} mm there give"
            notes[one.part, one.soft] = (
                f"{name} is {across[0]:.3g} mm thick, and the surface nodes of {soft} are {edge:.3g} mm apart: with its edge it "
                f"may pass between them without a force; {by} it contact there, and the health verdict says so if it passes"
            )
    return list(notes.values())


def _narrow(scene: Scene, narrow: Sequence[tuple[Thin, float]]) -> list[str]:
    """Note shapes that few nodes of a soft body, or none, bear: all of one body in one note, as a hand has many."""
    found: dict[int, dict[int, tuple[Thin, float]]] = {}
    for one, enough in narrow:
        found.setdefault(one.soft, {})[one.part] = one, enough
    notes = []
    for soft, parts in found.items():
        ordered = sorted(parts.values(), key=lambda each: each[0].extents[1])
        first, enough = ordered[0]
        more = [scene.parts[one.part].name for one, _ in ordered[1:]]
        notes.append(
            f"{scene.parts[first.part].name} is {1e3 * first.extents[1]:.3g} mm across, and the surface nodes of "
            f"{scene.parts[soft].name} are {1e3 * first.edge:.3g} mm apart: few of them or none bear it, and the force between "
            f"them may be off by half and more; take elements of {1e3 * enough:.2g} mm where they touch"
            + (f"; {_first(more)} {'are' if len(more) > 1 else 'is'} narrow beside it as well" if more else "")
        )
    return notes


def _first(names: Iterable[str]) -> str:
    """Return the first of many names, and how many more there are."""
    every = list(names)
    return ", ".join(every[:_SHOWN]) + (f" and {len(every) - _SHOWN} more" if len(every) > _SHOWN else "")


def _thin_on_rods(scene: Scene, thin: Sequence[ThinOnRod]) -> list[str]:
    """Note shapes that fit between the links of rods in contact with them, whichever way they go."""
    notes: dict[tuple[int, int], str] = {}
    for one in (one for one in thin if one.needle and one.open.any()):
        name, rod = scene.parts[one.part].name, scene.parts[one.rod].name
        notes[one.part, one.rod] = (
            f"{name} is {1e3 * one.extents[1]:.3g} mm across, and fits between the links of {rod}, whose centres, where contact "
            f"is, are {1e3 * one.spacing:.3g} mm apart: take links of {1e3 * (one.extents[1] + 2.0 * one.radius):.2g} mm, or "
            f"contact_by_faces if it is made of {WITH_FACES}; the health verdict says so if it passes"
        )
    return list(notes.values())

"""Bodies, obstacles and their parts: the work behind the ``add_...`` calls of a scene.

Each function takes what its call on :class:`femsim.scene.scene.Scene` takes, one argument per option of the user; so some have
more than ten.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, get_args

import numpy as np

from contact import Box, Mesh, Plane, Shape
from femsim.base.errors import InputError, did_you_mean, meant
from femsim.base.rotations import quaternion_from_vector, quaternion_to_matrix
from femsim.model.bodies.articulated import ArticulatedBody, Link
from femsim.model.bodies.body import Body, check_body
from femsim.model.bodies.mixture import Region
from femsim.model.bodies.rod import Rod
from femsim.model.bodies.rod_end import END_KINDS, RodEnd, RodEndKind
from femsim.model.bodies.soft_bodies import ElementKind, make_soft_body
from femsim.model.commands import FORCE, MOTION, WRENCH
from femsim.model.contact_rules import NoContact
from femsim.model.couplings import HeldEnd, check_reach, holder_gap
from femsim.model.holds import chosen_nodes
from femsim.model.parts import Part
from femsim.model.solids import Compound, mass_properties, placed, visual, with_arm
from femsim.scene import plausible
from femsim.scene.checks import (
    DENSEST,
    Finger,
    Handle,
    Vector,
    check_shape,
    checked_load,
    function_of_time,
    node_masses,
    node_places,
    positive,
    rigid_load,
    vector,
)
from femsim.scene.contents import SceneContents
from materials import Elastic, Law, Material, MaterialError, RodSection, material as card
from meshes import TetMesh, load_tetmesh, require_simple

RodContact = Literal["centre", "surface"]


#: A link of a rod that starts closer to the holder of its end than its radius, by more than this fraction of it, is in it.
_HAIR = 1e-3

#: Elements of other programs, and what they are here.
_OTHER_ELEMENTS = dict.fromkeys(("tet4", "c3d4", "p1", "t4"), "linear") | dict.fromkeys(
    ("tet10", "c3d10", "p2", "t10", "second_order"), "quadratic"
)


def add_soft(
    scene: SceneContents,
    name: str,
    mesh: TetMesh | str | Path,
    material: str | Elastic,
    position: Vector,
    rotation: Vector,
    scale: float,
    velocity: Vector,
    angular_velocity: Vector,
    surface: str | None,
    fixed: Callable[[np.ndarray], np.ndarray] | None,
    load: Callable[[float], Vector] | None,
    law: Law | str | None,
    regions: Mapping[str, str | Elastic] | None,
    element: ElementKind,
    added_mass: Callable[[np.ndarray], np.ndarray] | None,
    start_points: Callable[[np.ndarray], np.ndarray] | None,
    self_contact: bool,
) -> Handle:
    """Add a deformable body of tetrahedra, see :meth:`femsim.scene.scene.Scene.add_soft`."""
    scene.check_name(name)
    if element not in get_args(ElementKind):
        question = meant(element, ("linear", "quadratic"), _OTHER_ELEMENTS)
        raise InputError(f"element of {name} is {element!r};{question} allowed are 'linear' and 'quadratic'.")
    if not isinstance(mesh, TetMesh):
        mesh = load_tetmesh(mesh)
    elastic = elastic_of(material)
    if law is not None:
        elastic = elastic.replace(law=law)
    parts = _regions(name, mesh, elastic, regions or {})
    for region in parts:
        if (taken := f"{name}.{region.name}") in scene.part_names:
            raise InputError(f"region {region.name!r} of {name}: {taken!r} is a body too; give one of the two another name.")
    for what, one in ((name, elastic), *((f"region {part.name!r} of {name}", part.elastic) for part in parts)):
        scene.notes += plausible.notes_on_material(what, one)
        scene.notes += plausible.notes_on_elements(what, element, one.poisson_ratio)
    if not parts:
        scene.notes += plausible.notes_on_regions(name, mesh.regions, len(mesh.tets))
    require_simple(mesh.surface())
    turn = quaternion_to_matrix(quaternion_from_vector(_turn(scene, name, rotation)))
    scale = positive(f"scale of {name}", scale, "")
    mesh = replace(mesh, points=scale * mesh.points @ turn.T + vector(f"position of {name}", position))
    source, digest = mesh.source, mesh.digest
    scene.notes += plausible.notes_on_mesh(name, mesh.points, scene.largest_size)
    scene.notes += plausible.notes_on_margin(name, float(np.ptp(mesh.points, axis=0).max()), scene.margin)
    body, mesh = make_soft_body(
        name, mesh, elastic, element=element,
        velocity=_speed(scene, name, velocity),
        angular_velocity=vector(f"angular_velocity of {name}", angular_velocity), regions=parts,
    )  # fmt: skip
    points = mesh.points
    if load is not None:
        body.load = scene.command(f"{name}.load", checked_load(name, load, (len(points), 3)), *FORCE)
    if added_mass is not None:
        carried = node_masses(name, added_mass, points)
        scene.notes += plausible.notes_on_added_mass(name, carried)
        body.carry(carried)
    if start_points is not None:
        body.start_at(node_places(name, start_points, points, body.tets))
    index = len(scene.bodies)
    if fixed is not None:
        scene.fixed_nodes[index] = chosen_nodes(f"fixed of {name}", points, fixed)
    scene.bodies.append(body)
    part = Part(name, index, 0, surface or elastic.name, [], None, mesh.surface_nodes, self_contact=self_contact)
    part.triangles = mesh.surface_triangles
    if parts:
        part.regions = tuple((region.name, surface or region.elastic.name or elastic.name) for region in parts)
        part.region = body.mixture.of_nodes(body.elements, body.rest)[part.nodes]
    scene.parts.append(part)
    scene.meshes[name] = {
        "source": source,
        "digest": digest,
        "nodes": len(points),
        "tets": len(body.elements),
        "element": element,
        "law": elastic.law.kind,
    }
    return Handle(name, (name,))


def _regions(name: str, mesh: TetMesh, elastic: Elastic, given: Mapping[str, str | Elastic]) -> list[Region]:
    """Regions of a mesh that have materials of their own; refuse names that it has not, and elements with two of them."""
    if not isinstance(given, Mapping):
        raise InputError(f"regions of {name} are {given!r}; allowed is a material for each name, e.g. {{'base': 'pla'}}.")
    out: list[Region] = []
    taken = np.full(len(mesh.tets), -1)
    for region, material in given.items():
        if region not in mesh.regions:
            known = did_you_mean(str(region), mesh.regions) if mesh.regions else "; it has none: name some by mesh.with_region."
            raise InputError(f"region {region!r} of {name}: its mesh has no such region{known}")
        own = elastic_of(material, f"region {region!r} of {name}: ")
        if own.rayleigh_alpha != elastic.rayleigh_alpha:
            raise InputError(
                f"region {region!r} of {name}: its material has rayleigh_alpha {own.rayleigh_alpha:g} 1/s, that of the body "
                f"{elastic.rayleigh_alpha:g} 1/s, but a body has one; write .replace(rayleigh_alpha=...)."
            )
        shared = taken[mesh.regions[region]]
        if (shared >= 0).any():
            other = out[int(shared.max())].name
            raise InputError(
                f"regions {other!r} and {region!r} of {name} share {int((shared >= 0).sum())} tetrahedra, which can have one "
                "material; leave one of the two out of regions, or make one by mesh.with_region that ends at the other."
            )
        taken[mesh.regions[region]] = len(out)
        out.append(Region(region, own, mesh.regions[region]))
    return out


def add_body(
    scene: SceneContents, body: Body, shape: Shape | None, nodes: Sequence[int] | np.ndarray | None, surface: str
) -> Handle:
    """Add a body of the user's own, see :meth:`femsim.scene.scene.Scene.add_body`."""
    body = check_body(body)
    scene.check_name(body.name)
    points = {"nodes": body.n_v // 3, "links": body.n_v // 6}.get(body.kind, 0)
    if body.rigid and nodes is not None:
        raise InputError(f"body {body.name!r} is rigid and has no nodes; give it a shape instead.")
    if not body.rigid and shape is not None:
        raise InputError(f"body {body.name!r} is not rigid, so a shape cannot be fixed to it; its nodes have contact.")
    chosen = np.arange(points) if nodes is None else np.asarray(nodes)
    if chosen.ndim != 1 or (len(chosen) and (chosen.dtype.kind not in "iu" or not 0 <= chosen.min() <= chosen.max() < points)):
        raise InputError(f"nodes of {body.name!r} are {nodes!r}; allowed are whole numbers from 0 to {points - 1}.")
    part = Part(body.name, len(scene.bodies), 0, surface, nodes=np.unique(chosen).astype(np.int64))
    if shape is not None:
        part.shapes, part.visual = [(shape, np.eye(3), np.zeros(3))], visual(shape, np.zeros(3), np.eye(3))
    scene.parts.append(part)
    scene.bodies.append(body)
    return Handle(body.name, (body.name,))


def add_rod(
    scene: SceneContents,
    name: str,
    points: np.ndarray,
    section: RodSection,
    material: str | Elastic,
    ends: tuple[RodEnd | RodEndKind | None, RodEnd | RodEndKind | None],
    normal: Vector | None,
    rest_curvature: np.ndarray | None,
    velocity: Vector | None,
    angular_velocity: Vector,
    damping: tuple[float, float],
    load: Callable[[float], np.ndarray] | None,
    contact: RodContact,
    surface: str | None,
    self_contact: bool,
) -> Handle:
    """Add a rod, see :meth:`femsim.scene.scene.Scene.add_rod`."""
    scene.check_name(name)
    if contact not in get_args(RodContact):
        raise InputError(f"contact of {name} is {contact!r}; allowed are 'centre' and 'surface'.")
    elastic = elastic_of(material)
    if elastic.prony:
        raise InputError(
            f"material of {name} has Prony terms, prony = {elastic.prony!r}, which only soft bodies have; give a rod a material "
            "without, e.g. by .replace(prony=()), and damp it by rayleigh_beta or translational_damping."
        )
    scene.notes += plausible.notes_on_material(name, elastic)
    checked = [_rod_end(scene, name, side, end) for side, end in zip(("start", "end"), ends, strict=True)]
    holders = [_holder(scene, f"{side} of {name}", name, e) for side, e in zip(("start", "end"), checked, strict=True)]
    # an end that an obstacle holds stands still
    first, last = (
        replace(e, on=None) if h >= 0 and scene.parts[h].body < 0 else e for e, h in zip(checked, holders, strict=True)
    )
    body = Rod(
        name, points, section, elastic, rest_curvature=rest_curvature,
        normal=None if normal is None else vector(f"normal of {name}", normal),
        velocity=None if velocity is None else _speed(scene, name, velocity),
        angular_velocity=vector(f"angular_velocity of {name}", angular_velocity),
        start=first, end=last, translational_damping=damping[0], rotational_damping=damping[1],
    )  # fmt: skip
    scene.notes += plausible.notes_on_rod(name, body.contact_radius, points, scene.largest_size)
    if load is not None:
        body.load = scene.command(f"{name}.load", checked_load(name, load, (body.n_links, 6)), *FORCE)
    for k, holder in enumerate(holders):
        if holder >= 0:
            _check_end(scene, body, k, holder)
    for k, holder in enumerate(holders):
        if holder >= 0:
            _hold_end(scene, body, k, holder)
    part = Part(name, len(scene.bodies), 0, surface or elastic.name, [], None, np.arange(body.n_links), contact == "surface")
    part.self_contact = self_contact
    scene.parts.append(part)
    scene.bodies.append(body)
    return Handle(name, (name,))


def add_rigid(
    scene: SceneContents,
    name: str,
    shape: Shape | Compound,
    density: float | None,
    mass: float | None,
    position: Vector,
    rotation: Vector,
    velocity: Vector,
    angular_velocity: Vector,
    surface: str,
    load: Callable[[float], tuple[Vector, Vector]] | None,
) -> Handle:
    """Add a free rigid body, see :meth:`femsim.scene.scene.Scene.add_rigid`."""
    scene.check_name(name)
    check_shape(f"shape of {name}", shape)
    if isinstance(shape, Plane):
        raise InputError(f"shape of {name} is a Plane, which has no mass; use add_floor or add_obstacle.")
    if (density is None) == (mass is None):
        raise InputError(f"{name} has density {density} and mass {mass}; give exactly one of them.")
    for piece, _, _ in placed(shape, np.eye(3), np.zeros(3)):
        if isinstance(piece, Mesh):
            scene.notes += plausible.notes_on_mesh(name, piece.points, scene.largest_size)
    unit_mass, centre, unit_inertia = mass_properties(shape)
    if mass is None:
        mass = positive(f"density of {name}", density if density is not None else 0.0, "kg/m^3", DENSEST) * unit_mass
        scene.notes += plausible.notes_on_density(name, float(density or 0.0))
    mass = positive(f"mass of {name}", mass, "kg")
    if density is None:
        scene.mass_notes[len(scene.bodies)] = plausible.notes_on_mass(name, mass, unit_mass)
    drawn = visual(shape, -centre, np.eye(3))
    extent = float(np.ptp(drawn.points, axis=0).max())
    scene.notes += plausible.notes_on_margin(name, extent, scene.margin)
    if not isinstance(shape, Mesh):
        scene.notes += plausible.notes_on_size(name, extent, scene.largest_size)
    quaternion = quaternion_from_vector(_turn(scene, name, rotation))
    link = Link(name, mass, unit_inertia * (mass / unit_mass), np.zeros(3))
    body = ArticulatedBody(
        name, [link],
        position=vector(f"position of {name}", position) + quaternion_to_matrix(quaternion) @ centre,
        quaternion=quaternion,
        velocity=_speed(scene, name, velocity),
        angular_velocity=vector(f"angular_velocity of {name}", angular_velocity),
        load=None if load is None else scene.command(f"{name}.load", rigid_load(name, load), *WRENCH),
    )  # fmt: skip
    scene.parts.append(Part(name, len(scene.bodies), 0, surface, placed(shape, np.eye(3), -centre), drawn))
    scene.bodies.append(body)
    return Handle(name, (name,))


def add_gripper(
    scene: SceneContents,
    name: str,
    fingers: Sequence[Finger],
    position: Vector,
    rotation: Vector,
    mass: float,
    base: Shape | None,
    surface: str,
    joint_damping: float,
    joint_limits: tuple[float, float],
) -> Handle:
    """Add a gripper, see :meth:`femsim.scene.scene.Scene.add_gripper`."""
    scene.check_name(name)
    _check_fingers(scene, name, fingers)
    if not (joint_damping >= 0 and joint_limits[0] <= 0 <= joint_limits[1] and joint_limits[0] < joint_limits[1]):
        raise InputError(
            f"gripper {name} has joint_damping {joint_damping} and joint_limits {joint_limits}; allowed are damping >= 0, and a "
            "lower limit below the upper one with 0 between them, where fingers start."
        )
    index = len(scene.bodies)
    visible = Box((0.05, 0.02, 0.01)) if base is None else base
    _check_solid(f"base of {name}", visible)
    unit_mass, _, unit_inertia = mass_properties(visible)
    mass = positive(f"mass of {name}", mass, "kg")
    links = [Link(name, mass, unit_inertia * (mass / unit_mass), np.zeros(3))]
    shapes = [] if base is None else [(base, np.eye(3), np.zeros(3))]
    parts = [Part(name, index, 0, surface, shapes, visual(visible, np.zeros(3), np.eye(3)))]
    for k, finger in enumerate(fingers):
        link, part = _finger(f"{name}.{finger.name}", finger, index, k + 1, surface)
        links.append(replace(link, damping=joint_damping, limits=joint_limits))
        parts.append(part)
    body = ArticulatedBody(
        name, links,
        position=vector(f"position of {name}", position),
        quaternion=quaternion_from_vector(_turn(scene, name, rotation)),
        velocity=np.zeros(3), angular_velocity=np.zeros(3),
    )  # fmt: skip
    scene.bodies.append(body)
    scene.parts += parts
    return Handle(name, tuple(p.name for p in parts))


def add_obstacle(
    scene: SceneContents, name: str, shape: Shape | Compound, position: Vector, rotation: Vector, surface: str
) -> Handle:
    """Add a shape that never moves, see :meth:`femsim.scene.scene.Scene.add_obstacle`."""
    scene.check_name(name)
    check_shape(f"shape of {name}", shape)
    turn = quaternion_to_matrix(quaternion_from_vector(_turn(scene, name, rotation)))
    place = vector(f"position of {name}", position)
    scene.parts.append(Part(name, -1, 0, surface, placed(shape, turn, place), visual(shape, place, turn)))
    return Handle(name, (name,))


def _turn(scene: SceneContents, name: str, rotation: Vector) -> np.ndarray:
    """Check a rotation vector, (3,) rad; note one that seems to be in degrees."""
    turn = vector(f"rotation of {name}", rotation)
    scene.notes += plausible.notes_on_turn(f"rotation of {name}", turn)
    return turn


def _speed(scene: SceneContents, name: str, velocity: Vector) -> np.ndarray:
    """Check a velocity, (3,) m/s; note one that seems to be in millimetres."""
    speed = vector(f"velocity of {name}", velocity)
    scene.notes += plausible.notes_on_speed(name, speed)
    return speed


def elastic_of(value: str | Elastic, what: str = "") -> Elastic:
    """Values of a material: a card of the library, or values of one's own; ``what`` begins the messages."""
    if isinstance(value, Elastic):
        return value
    if isinstance(value, Material):
        raise InputError(f"{what}material is the card {value.name!r}; give what its elastic() returns, or the name of a card.")
    if not isinstance(value, str):
        raise InputError(
            f"{what}material is {value!r}; give the name of a card (femsim materials) or values of your own, for instance "
            "fs.Elastic(density=1070, young_modulus=1e5, poisson_ratio=0.45)."
        )
    try:
        return card(value).elastic()
    except MaterialError as error:
        raise MaterialError(f"{what}{error}") from None


# ------------------------------------------------------------------ grippers


def _check_fingers(scene: SceneContents, name: str, fingers: Sequence[Finger]) -> None:
    if not fingers:
        raise InputError(f"gripper {name} has no finger; give at least one fs.Finger.")
    names = [f.name for f in fingers]
    if len(set(names)) != len(names):
        raise InputError(f"fingers of gripper {name} are named {names}; each needs a name of its own.")
    for finger in fingers:
        scene.check_name(f"{name}.{finger.name}")
        _check_solid(f"pad of {name}.{finger.name}", finger.pad)


def _check_solid(what: str, shape: Shape | Compound) -> None:
    """Refuse what is no shape, or one without mass."""
    check_shape(what, shape)
    if isinstance(shape, Plane):
        raise InputError(f"{what} is a Plane, which has no mass; use a Box or another solid shape.")


def _finger(full: str, finger: Finger, body: int, link: int, surface: str) -> tuple[Link, Part]:
    """Link and part of a finger."""
    axis = vector(f"closing direction of {full}", finger.closing)
    if not np.linalg.norm(axis) > 0:
        raise InputError(f"closing direction of {full} is zero; give the direction in which it closes.")
    turn = quaternion_to_matrix(quaternion_from_vector(vector(f"rotation of {full}", finger.rotation)))
    unit_mass, centre, unit_inertia = mass_properties(finger.pad)
    mass = positive(f"mass of {full}", finger.mass, "kg")
    offset = vector(f"offset of {full}", finger.offset)
    inertia = turn @ unit_inertia @ turn.T * (mass / unit_mass)
    shift = -turn @ centre
    drawn = with_arm(visual(finger.pad, shift, turn), offset, axis)
    part = Part(full, body, link, surface, placed(finger.pad, turn, shift), drawn)
    return Link(full, mass, inertia, offset, axis / np.linalg.norm(axis)), part


# ------------------------------------------------------------------ ends of rods


def _rod_end(scene: SceneContents, rod: str, side: str, given: RodEnd | RodEndKind | None) -> RodEnd:
    """End of a rod with checked functions, kept as ``ROD.SIDE``."""
    what = f"{side} of {rod}"
    if given is not None and not isinstance(given, RodEnd | str):
        shown = f"the class {given.__name__}" if isinstance(given, type) else f"a {type(given).__name__}"
        raise InputError(
            f"{what} is {shown}; allowed are an fs.RodEnd, e.g. fs.RodEnd('clamped'), and the words "
            f"{', '.join(map(repr, END_KINDS))}."
        )
    end = RodEnd(given) if isinstance(given, str) else given or RodEnd()
    function_of_time(what, "motion", end.motion, "use e.g. fs.Motion.")
    if end.motion is not None:
        return replace(end, motion=scene.command(f"{rod}.{side}", end.motion, *MOTION, led=True))
    if end.load is not None:
        return replace(end, load=scene.command(f"{rod}.{side}", rigid_load(what, end.load), *WRENCH))
    return end


def _holder(scene: SceneContents, what: str, rod: str, end: RodEnd) -> int:
    """Part that carries an end of a rod; -1 for none."""
    if end.on is None:
        return -1
    name = end.on if isinstance(end.on, str) else end.on.parts[0]
    names = scene.part_names
    if name == rod:
        raise InputError(
            f"{what} is held by the rod itself; name another body. Both ends of a ring are held on one small rigid body."
        )
    if name not in names:
        raise InputError(
            f"{what} is held by {name!r}, which the scene does not have (yet); add it first{did_you_mean(name, names)}"
        )
    body = scene.body_of(scene.parts[names.index(name)])
    if body is not None and not body.holds_rods:
        advice = " A weld joins two rods: scene.join." if body.what == "rod" else ""
        raise InputError(
            f"{what} is held by {name!r}, a {body.what}; allowed are rigid bodies, grippers, links of robots, soft bodies and "
            f"obstacles.{advice}"
        )
    return names.index(name)


def _end_gap(scene: SceneContents, holder: int, points: np.ndarray) -> np.ndarray:
    """Signed distance of points (k, 3) to a rigid part as it starts, distance to the surface of a soft one, (k,), m."""
    part = scene.parts[holder]
    body = scene.body_of(part)
    if body is not None and not body.rigid:
        return body.surface_distance(points)
    pose = (np.eye(3), np.zeros(3)) if body is None else body.link_pose(body.initial_q(), part.link)
    return holder_gap(part.shapes, pose[0], pose[1], points)


def _check_end(scene: SceneContents, rod: Rod, end: int, holder: int) -> None:
    """Refuse an end that is too far from its holder."""
    side, radius = ("start", "end")[end], rod.section.contact_radius
    gap = _end_gap(scene, holder, rod.end_frames[end : end + 1, :3])
    check_reach(f"{side} of {rod.name}", scene.parts[holder].name, float(gap[0]), radius)


def _hold_end(scene: SceneContents, rod: Rod, end: int, holder: int) -> None:
    """Couple an end of a rod, which is the next body and part, to its holder; links that start in it have no contact with it."""
    part, radius, pose = scene.parts[holder], rod.section.contact_radius, rod.end_frames[end].copy()
    centres = rod.centres(rod.initial_q())
    gap = _end_gap(scene, holder, centres)
    along = np.linalg.norm(np.diff(centres, axis=0), axis=1)
    count = _links_in_holder(gap, along, radius) if end == 0 else _links_in_holder(gap[::-1], along[::-1], radius)
    links = (0, count) if end == 0 else (rod.n_links - count, rod.n_links)
    scene.no_contact.append(NoContact(len(scene.parts), *links, holder))
    body = scene.body_of(part)
    if body is None:
        return
    frame = body.hold_frame(part.link, pose, radius)
    name = f"{rod.name}.{('start', 'end')[end]}"
    scene.couplings.append(HeldEnd(name, rod, end, frame, rod_index=len(scene.bodies), holder_index=part.body))


def _links_in_holder(gap: np.ndarray, along: np.ndarray, radius: float) -> int:
    """How many links from an end on are in its holder or beside where the rod leaves it.

    ``gap`` (n,) m: of the centres of the links, from that end on, to the surface; ``along`` (n - 1,) m: between these. Links that
    go on along the surface, as those of a string wound on its drum, have contact with it.
    """
    count = int(np.argmax(np.append(gap >= (1.0 - _HAIR) * radius, True)))
    way = 0.0
    while count < len(gap) and gap[count] < 2.0 * radius:
        way += float(along[count - 1]) if count else radius
        if way > 2.0 * radius:
            break
        count += 1
    return count

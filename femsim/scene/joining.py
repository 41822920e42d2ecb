"""Joints between bodies of a scene: welds, hinges, sliders and balls, and soft bodies glued to others."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from femsim.base.errors import InputError, did_you_mean, meant
from femsim.base.rotations import quaternion_from_matrix
from femsim.model.contact_rules import UntilBroken, Welded
from femsim.model.frames import HoldFrame, reach_of_ring
from femsim.model.holds import chosen_nodes
from femsim.model.joined import Joined, NodeFrame, Side, Strength
from femsim.model.joints import JOINTS, Glue, JointKind
from femsim.scene.checks import Handle, Vector, name_of, positive, vector
from femsim.scene.contents import SceneContents
from femsim.scene.plausible import notes_on_limits

#: Words of other programs, and what they are here.
_OTHER_KINDS = {
    "fixed": "weld", "glue": "weld", "rigid": "weld", "revolute": "hinge", "rotational": "hinge", "pin": "hinge",
    "prismatic": "slider", "translational": "slider", "spherical": "ball", "point": "ball",
}  # fmt: skip
#: The world as a partner.
WORLD = "world"


def join(
    scene: SceneContents,
    a: Handle | str,
    b: Handle | str,
    kind: JointKind,
    at: Vector,
    axis: Vector | None,
    limits: tuple[float, float] | None,
    friction: float,
    breakable: float | Sequence[float] | None,
    where: Callable[[np.ndarray], np.ndarray] | None,
    contact: bool,
    name: str | None,
) -> Handle:
    """Join two bodies, see :meth:`femsim.scene.scene.Scene.join`, whose options are the 12 parameters."""
    first, second = name_of(a), name_of(b)
    what = f"join of {first} and {second}"
    if kind not in JOINTS:
        question = meant(kind, JOINTS, _OTHER_KINDS)
        raise InputError(f"{what}: kind is {kind!r};{question} allowed are {', '.join(map(repr, JOINTS))}.")
    place, strength = vector(f"at of {what}", at), _strength(what, breakable)
    form = JOINTS[kind]
    if form.has_axis == (axis is None):
        raise InputError(f"{what}: a {kind} {'has an axis; give it' if form.has_axis else 'has no axis; leave it out'}.")
    if form.free is None and (limits is not None or friction):
        raise InputError(f"{what}: a {kind} has neither limits nor friction; leave them out, or use a hinge or a slider.")
    parts = [_part(scene, what, first), _part(scene, what, second)]
    numbers = [-1 if part < 0 else scene.parts[part].body for part in parts]
    two_links = parts[0] != parts[1] and numbers[0] >= 0 and scene.bodies[numbers[0]].rigid
    if numbers[0] == numbers[1] and not two_links:
        same = "both stand still" if numbers[0] < 0 else "both are the same"
        ring = numbers[0] >= 0 and scene.bodies[numbers[0]].what == "rod"
        advice = " Both ends of a ring are held on one small rigid body: fs.RodEnd(on=...)." if ring else ""
        raise InputError(f"{what}: {same}; join two bodies, or two links of a robot.{advice}")
    if numbers[0] < 0:
        raise InputError(f"{what}: {first!r} stands still; name the body that moves first.")
    number = 1 + sum(c.joins for c in scene.couplings)
    chosen = name or f"{first}.joint{number}"
    scene.check_name(chosen)
    joint: Joined
    soft = [n for n in numbers if n >= 0 and scene.bodies[n].tetrahedra() is not None]
    if soft and kind == "weld":
        if len(soft) == 2:
            raise InputError(
                f"{what}: a weld does not glue two soft bodies to each other; make them one mesh with a region "
                "for each material, or weld both to a rigid body."
            )
        if soft[0] != numbers[0]:
            raise InputError(f"{what}: name the soft body first, then what its nodes are glued to.")
        joint = _glue(scene, what, chosen, parts, place, strength, where)
    else:
        if where is not None:
            raise InputError(f"{what}: where says which nodes of a soft body a weld glues; leave it out.")
        pose = np.concatenate([place, _frame(what, axis)])
        sides = tuple(Side(n, _carried(scene, part, pose), pose) for n, part in zip(numbers, parts, strict=True))
        stops = _limits(what, limits)
        if kind == "hinge":
            scene.notes += notes_on_limits(chosen, stops)
        joint = form(chosen, (sides[0], sides[1]), strength, stops, _friction(what, friction))
    scene.couplings.append(joint)
    if kind == "weld":
        held = (_welded(scene, joint.sides[0]), _welded(scene, joint.sides[1]))
        scene.welds.append(Welded((parts[0], parts[1]), held, joint))
    if parts[1] >= 0:
        _part_without_contact(scene, (parts[0], parts[1]), joint, kind, contact)
    return Handle(chosen, (chosen,))


def _part_without_contact(scene: SceneContents, parts: tuple[int, int], joint: Joined, kind: JointKind, contact: bool) -> None:
    """Say what the joint leaves without contact: both parts until it breaks, or of a weld what nothing can move apart anyway.

    There contact would ask again for what the weld gives; by rounding it may ask for a little more, which no force can give.
    """
    if contact and kind != "weld":
        return
    nodes = [_welded(scene, side) if contact else None for side in joint.sides]
    if all(one is None for one in nodes) and joint.strength == Strength():
        scene.joined.append(parts)
    else:
        scene.until_broken.append(UntilBroken(parts, (nodes[0], nodes[1]), joint))


def _welded(scene: SceneContents, side: Side) -> np.ndarray | None:
    """Nodes or links of a side that a weld holds; None where that is all of a rigid part."""
    if isinstance(side.frame, NodeFrame):
        return side.frame.nodes
    if side.frame is None or scene.bodies[side.body].rigid:
        return None
    return np.unique(side.frame.rows // 6)


def _part(scene: SceneContents, what: str, name: str) -> int:
    """Part of a name; -1 for the world."""
    if name == WORLD:
        return -1
    names = scene.part_names
    if name not in names:
        if name in (body.name for body in scene.bodies):
            raise InputError(f"{what}: {name!r} has several parts; name one of them.")
        raise InputError(f"{what}: {name!r} is unknown in scene {scene.name!r}{did_you_mean(name, [*names, WORLD])}")
    return names.index(name)


def _glue(
    scene: SceneContents,
    what: str,
    name: str,
    parts: Sequence[int],
    place: np.ndarray,
    strength: Strength,
    where: Callable[[np.ndarray], np.ndarray] | None,
) -> Glue:
    """Glue nodes of a soft body."""
    body = scene.bodies[scene.parts[parts[0]].body]
    tets = body.tetrahedra_at_start()
    assert tets is not None
    if where is None:
        raise InputError(f"{what}: a soft body is glued by nodes; say which by where, a function of its points (n, 3) m.")
    nodes = chosen_nodes(f"where of {what}", tets.rest, where)
    pose = np.concatenate([place, [1.0, 0.0, 0.0, 0.0]])
    frame = None if parts[1] < 0 else _carried(scene, parts[1], pose)
    other = -1 if frame is None else scene.parts[parts[1]].body
    sides = Side(scene.parts[parts[0]].body, NodeFrame(nodes), pose), Side(other, frame, pose)
    return Glue(name, sides, strength, tets.rest[nodes])


def _carried(scene: SceneContents, part: int, pose: np.ndarray) -> HoldFrame | None:
    """Frame at a pose that the body of a part carries; None where it stands still."""
    if part < 0 or scene.parts[part].body < 0:
        return None
    return scene.bodies[scene.parts[part].body].hold_frame(scene.parts[part].link, pose, _reach(scene, part, pose[:3]))


def _reach(scene: SceneContents, part: int, place: np.ndarray) -> float:
    """Radius, m, of the patch of a soft body that carries a frame: a tenth of its size, or more where that is one element."""
    tets = scene.bodies[scene.parts[part].body].tetrahedra_at_start()
    return 0.0 if tets is None else max(0.1 * float(np.ptp(tets.rest, axis=0).max()), reach_of_ring(tets, place))


def _frame(what: str, axis: Vector | None) -> np.ndarray:
    """Quaternion of axes of which the first is the given one; of the world without one."""
    if axis is None:
        return np.array([1.0, 0.0, 0.0, 0.0])
    along = vector(f"axis of {what}", axis)
    length = float(np.linalg.norm(along))
    if not length > 0.0:
        raise InputError(f"axis of {what} is zero; give a direction, such as (0, 1, 0).")
    first = along / length
    second = np.cross(np.eye(3)[int(np.argmin(np.abs(first)))], first)
    second /= np.linalg.norm(second)
    return quaternion_from_matrix(np.column_stack([first, second, np.cross(first, second)]))


def _strength(what: str, breakable: float | Sequence[float] | None) -> Strength:
    """Read force, N, or force and torque, N m."""
    if breakable is None:
        return Strength()
    given = np.atleast_1d(np.asarray(breakable, dtype=np.float64))
    if given.shape not in ((1,), (2,)) or not (given > 0).all():
        raise InputError(f"breakable of {what} is {breakable!r}; allowed are positive numbers, N or (N, N m).")
    return Strength(*given.tolist())


def _limits(what: str, limits: tuple[float, float] | None) -> tuple[float, float]:
    """Check a range, rad or m."""
    if limits is None:
        return -np.inf, np.inf
    low, high = (float(value) for value in limits)
    if not low <= 0.0 <= high or low == high:
        raise InputError(
            f"limits of {what} are {limits!r}; allowed are a lower one <= 0 and an upper one >= 0, counted from the start and "
            "different from each other; for no play use a weld."
        )
    return low, high


def _friction(what: str, friction: float) -> float:
    """Check dry friction, N m or N."""
    return positive(f"friction of {what}", friction, "N m or N") if friction else 0.0

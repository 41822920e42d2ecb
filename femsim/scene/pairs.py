"""Pairs of a scene: friction, restitution, softness; which have no contact, and which by faces; sensors on all that have."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from itertools import combinations

import numpy as np

from femsim.base.errors import InputError, did_you_mean
from femsim.model.faces import WITH_FACES, without_faces
from femsim.model.parts import Part, skins_of
from femsim.scene.checks import Handle, Vector, name_of, vector
from femsim.scene.contents import SceneContents
from femsim.scene.frictions import FrictionRule, IgnoredContact, Side, add_rule, side_of
from femsim.scene.own_contact import fixed_pairs, led_own_pairs, own_pairs
from femsim.scene.plausible import notes_on_friction
from femsim.scene.sensing import make_sensor
from materials import FrictionTable


def set_friction(
    scene: SceneContents, a: Handle | str, b: Handle | str, coefficient: float | tuple[float, float], direction: Vector | None
) -> None:
    """Set the friction of a pair, see :meth:`femsim.scene.scene.Scene.set_friction`."""
    sides = side_of(scene.parts, a), side_of(scene.parts, b)
    what = f"friction of {sides[0].name!r} and {sides[1].name!r}"
    of_pair = f"friction of {sides[0].name} and {sides[1].name}"
    if isinstance(coefficient, (int, float, np.floating, np.integer)):
        if direction is not None:
            raise InputError(f"{what}: a direction needs two coefficients (along it, across it); {coefficient} is one.")
        add_rule(scene.friction_rules, FrictionRule(sides, FrictionTable.check(coefficient, what)))
        scene.notes += notes_on_friction(of_pair, coefficient)
        return
    along, across = (float(x) for x in vector(f"{what}, coefficients", coefficient, 2))
    if min(along, across) <= 0:
        raise InputError(f"{what}: coefficients are {along} and {across}; allowed are two positive numbers.")
    carrier = b.parts[0] if isinstance(b, Handle) else b
    rigid = scene.rigid_parts()
    if carrier not in rigid:
        raise InputError(f"{what}: the second of the pair carries the direction, so it must be one of {rigid}, not {carrier!r}.")
    if direction is None:
        raise InputError(f"{what}: two coefficients need direction=(x, y, z), the direction of the first one.")
    axis = vector(f"{what}, direction", direction)
    if not np.linalg.norm(axis) > 0:
        raise InputError(f"{what}: direction is {tuple(axis)}; give a vector that is not zero.")
    axis, index = axis / np.linalg.norm(axis), scene.part_names.index(carrier)
    add_rule(scene.friction_rules, FrictionRule(sides, math.sqrt(along * across), (along, across), axis, index))
    scene.notes += notes_on_friction(of_pair, along, across)


def set_restitution(scene: SceneContents, a: Handle | str, b: Handle | str, coefficient: float) -> None:
    """Set the restitution of a pair, see :meth:`femsim.scene.scene.Scene.set_restitution`."""
    allowed = "numbers from 0 (they stay in contact) to 1 (they separate as fast as they came)"
    add_rule(scene.restitution_rules, _rule(scene, "restitution", (a, b), coefficient, 1.0, allowed))


def set_softness(scene: SceneContents, a: Handle | str, b: Handle | str, softness: float) -> None:
    """Set the softness of a pair, see :meth:`femsim.scene.scene.Scene.set_softness`."""
    allowed = "finite numbers from 0 (hard), in m/N"
    add_rule(scene.softness_rules, _rule(scene, "softness", (a, b), softness, sys.float_info.max, allowed))


def _rule(
    scene: SceneContents, what: str, pair: tuple[Handle | str, Handle | str], value: float, most: float, allowed: str
) -> FrictionRule:
    """Check a number from 0 to ``most`` that is said of a pair."""
    sides = side_of(scene.parts, pair[0], what), side_of(scene.parts, pair[1], what)
    number = isinstance(value, (int, float, np.floating, np.integer)) and not isinstance(value, bool)
    if not (number and 0 <= value <= most):
        raise InputError(f"{what} of {sides[0].name!r} and {sides[1].name!r} is {value!r}; allowed are {allowed}.")
    return FrictionRule(sides, float(value))


def contact_group(scene: SceneContents, name: str, members: Sequence[Handle | str]) -> str:
    """Give bodies and links a common name, see :meth:`femsim.scene.scene.Scene.contact_group`."""
    if isinstance(members, Handle | str) or not members:
        raise InputError(f"contact group {name!r}: members are {members!r}; give a list of bodies, e.g. [ball, 'gripper.left'].")
    taken = {
        *(name for skin in skins_of(scene.parts) for name in (skin.name, skin.surface)),
        *(body.name for body in scene.bodies),
        *scene.groups,
    }
    if not name or name in taken:
        raise InputError(
            f"contact group {name!r}: the name is empty or that of a body, surface, region or group; choose another."
        )
    parts: set[int] = set()
    for member in members:
        side = _side(scene, member)
        if not side.parts:
            raise InputError(f"contact group {name!r}: {side.name!r} is a surface; name bodies, or ignore the surface itself.")
        parts |= set(side.parts)
    scene.groups[name] = tuple(sorted(parts))
    return name


def ignore_contact(scene: SceneContents, a: Handle | str, b: Handle | str | None) -> None:
    """Leave out the contact of a pair, see :meth:`femsim.scene.scene.Scene.ignore_contact`."""
    first = _side(scene, a)
    second = first if b is None else _side(scene, b)
    bodies = {scene.parts[k].body if scene.parts[k].body >= 0 else -2 - k for side in (first, second) for k in side.parts}
    own = (own_pairs(scene) | led_own_pairs(scene))[np.ix_(first.parts, second.parts)]
    if first.parts and second.parts and len(bodies) == 1 and not own.any():
        same = scene.body(name_of(a)).name if isinstance(a, Handle) else first.name
        raise InputError(
            f"ignore_contact: {same!r} is one body, and what is named of it has no contact with itself anyway; name two. A soft "
            "body or rod has contact with itself by self_contact=True alone."
        )
    scene.ignored.append(IgnoredContact((first, second)))


def contact_by_faces(scene: SceneContents, bodies: Sequence[Handle | str], *, on: bool = True) -> None:
    """Let soft bodies and rods have contact with faces, see :meth:`femsim.scene.scene.Scene.contact_by_faces`."""
    if not bodies:
        raise InputError("contact_by_faces names nothing; give rigid bodies, links or obstacles, e.g. 'box', 'gripper.left'.")
    for what in bodies:
        if not isinstance(what, Handle | str):
            raise InputError(f"contact_by_faces: {what!r} is no body; give handles or names one by one, e.g. 'box', 'plate'.")
        side = _side(scene, what)
        chosen = [part for part, meant in zip(scene.parts, side.of_parts(scene.parts), strict=True) if meant]
        for part in chosen:
            body = scene.body_of(part)
            if body is not None and not body.rigid:
                raise InputError(
                    f"contact_by_faces: {part.name!r} deforms, and has contact by its surface anyway; name rigid bodies, "
                    "links or obstacles."
                )
            round_ = without_faces(part) if on else []
            if round_:
                raise InputError(
                    f"contact_by_faces: {part.name!r} has a {type(round_[0]).__name__}; name parts that are made of {WITH_FACES}."
                )
        shaped = [part for part in chosen if part.shapes]
        if not shaped:
            raise InputError(f"contact_by_faces: {side.name!r} has no shape, so nothing has contact with it; name another part.")
        for part in shaped:
            part.by_faces = on


def _side(scene: SceneContents, what: Handle | str) -> Side:
    """Find what is meant by a handle, or the name of a body, link, surface or group."""
    name = name_of(what)
    if name in scene.groups and not isinstance(what, Handle):
        return Side(name, scene.groups[name])
    known = {*scene.part_names, *(part.surface for part in scene.parts), *scene.groups}
    if not isinstance(what, Handle) and name not in known:
        raise InputError(f"contact: body, surface or group {name!r} is unknown{did_you_mean(name, sorted(known))}")
    return side_of(scene.parts, what, "contact")


def ignored_pairs(scene: SceneContents) -> np.ndarray:
    """Pairs of parts whose contact is left out, (np, np) bool, symmetric.

    By a statement, by a joint between them, or since welds that do not break hold them together, also by other parts and links
    on fixed joints: a hand welded to a flange without shapes and the link below that.
    """
    out = np.zeros((len(scene.parts), len(scene.parts)), dtype=np.bool_)
    for statement in scene.ignored:
        first, second = (side.of_parts(scene.parts) for side in statement.sides)
        out |= np.outer(first, second) | np.outer(second, first)
    for a, b in scene.joined:
        out[a, b] = out[b, a] = True
    breaks = [rule.joint for rule in scene.until_broken]
    for_ever = [weld.parts for weld in scene.welds if weld.parts[1] >= 0 and not any(weld.joint is one for one in breaks)]
    if for_ever:
        group = np.arange(len(scene.parts))
        for a, b in [*for_ever, *fixed_pairs(scene)]:
            group[group == group[a]] = group[b]
        out |= (group[:, None] == group) & ~np.eye(len(group), dtype=np.bool_)
    return out


def led_parts(scene: SceneContents) -> np.ndarray:
    """Which parts nothing can push, (np,) bool: obstacles, and links on driven bases whose joints all follow motions."""
    out = np.array([part.body < 0 for part in scene.parts], dtype=np.bool_)
    for k, part in enumerate(scene.parts):
        if part.body in scene.motions:
            body = scene.bodies[part.body]
            out[k] = bool(np.isin(body.link_rows(part.link), body.driven_rows()).all())
    return out


def led_in_part(scene: SceneContents, part: int) -> bool:
    """Whether a part is a link of which some joints, but not all, follow motions exactly: forces move it along the others."""
    link = scene.parts[part]
    if link.body < 0:
        return False
    body = scene.bodies[link.body]
    led = np.isin(body.link_rows(link.link), body.driven_rows())
    return bool(led.any() and not led.all())


def loose_parts(scene: SceneContents) -> np.ndarray:
    """Free rigid bodies and obstacles, (np,) bool: neither driven nor links of grippers and robots."""
    bodies = [part.body for part in scene.parts]
    return np.array([body < 0 or (body not in scene.motions and bodies.count(body) == 1) for body in bodies], dtype=np.bool_)


def sense_pairs(scene: SceneContents) -> list[str]:
    """Add a sensor to each pair, see :meth:`femsim.scene.scene.Scene.sense_pairs`."""
    parts, ignored = scene.parts, ignored_pairs(scene)
    led, own = led_parts(scene), own_pairs(scene)
    names = []
    for (i, a), (j, b) in combinations(enumerate(parts), 2):
        within = a.body == b.body and a.body >= 0 and not own[i, j]
        if within or (led[i] and led[j]) or ignored[i, j] or not (_able(a) and _able(b)):
            continue
        on, other = (a, b) if a.body >= 0 else (b, a)
        names.append(f"{on.name}-{other.name}")
        if names[-1] not in {sensor.name for sensor in scene.sensors}:
            scene.sensors.append(make_sensor(scene, names[-1], on.name, "pair", None, None, None, other.name, None, None))
    return names


def _able(part: Part) -> bool:
    """Whether a part can have contact."""
    return bool(part.shapes) or len(part.nodes) > 0

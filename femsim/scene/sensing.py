"""Sensors of a scene: the checks behind :meth:`femsim.scene.scene.Scene.sensor`, by the declarations of the kinds."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from femsim.base.errors import InputError, did_you_mean, meant
from femsim.model.bodies.body import Body
from femsim.model.bodies.outputs import Marker
from femsim.model.couplings import Coupling
from femsim.model.holds import Hold
from femsim.model.parts import Part
from femsim.scene.checks import Handle, Vector, part_of, positive, vector
from femsim.scene.contents import SceneContents
from femsim.scene.reading import Reading
from femsim.scene.sensor_kinds import SENSOR_KINDS, SensorSpec

#: What a sensor is called elsewhere, and the kind that it is here.
_OTHER_WORDS = {
    "force": "contact", "forces": "contact", "wrench": "mount", "force_torque": "mount", "ft": "mount", "position": "marker",
    "point": "marker", "pressure": "chamber", "angle": "revolute", "torque": "revolute", "distance": "gap", "proximity": "gap",
}  # fmt: skip

#: Kinds of sensors that are on joints.
_OF_JOINTS = ("joint", "revolute", "prismatic")


def make_sensor(
    scene: SceneContents,
    name: str,
    on: Handle | str,
    kind: str,
    node: int | None,
    at: Vector | None,
    reading: Reading | None,
    partner: Handle | str | None,
    where: Callable[[np.ndarray], np.ndarray] | np.ndarray | None,
    reach: float | None,
) -> SensorSpec:
    """Check a sensor; the parameters are those of :meth:`femsim.scene.scene.Scene.sensor`."""
    part = part_of(on)
    coupling = _sensed_coupling(scene, name, part, kind)
    if coupling is None:
        part = _hanging_part(scene, part, kind)
    if coupling is not None:
        part = scene.bodies[coupling.rows[0][0]].name
    hold = _sensed_hold(scene, name, part, kind)
    if hold is not None:
        part = scene.bodies[hold.body].name
    if part not in scene.part_names:
        raise InputError(f"sensor {name}: part {part!r} is unknown{did_you_mean(part, scene.part_names)}")
    if kind not in SENSOR_KINDS:
        question = meant(kind, SENSOR_KINDS, _OTHER_WORDS)
        raise InputError(f"sensor {name} has kind {kind!r};{question} allowed are {', '.join(map(repr, SENSOR_KINDS))}.")
    _check_name(scene, name, reading)
    declared, entry = SENSOR_KINDS[kind], scene.parts[scene.part_names.index(part)]
    body = scene.body_of(entry)
    if declared.refusal and hold is None and not (body is not None and kind in body.sensor_kinds(entry.link)):
        raise InputError(f"sensor {name}: {declared.refusal.format(part=part)}")
    _check_limits(name, kind, {"partner": partner, "where": where, "reach": reach})
    partners = _partners(scene, name, part, kind, partner)
    if reading is not None:
        _check_reading(scene, name, kind, body, reading)
    return SensorSpec(
        name, part, kind, marker=_marker(name, kind, entry, body, node, at), hold=hold.name if hold else "",
        coupling=coupling.name if coupling else "", reading=reading, partners=partners, where=where,
        reach=0.01 if reach is None else positive(f"reach of sensor {name}", reach, "m"),
    )  # fmt: skip


def _hanging_part(scene: SceneContents, part: str, kind: str) -> str:
    """Part that hangs on a joint, where one is named, as "ROBOT.JOINT"; otherwise the part itself.

    A joint may have the name of another link; kinds of joints then mean the joint, all others the link.
    """
    links = () if kind in _OF_JOINTS else scene.part_names
    name, _, joint = part.partition(".")
    for index, body in enumerate(scene.bodies):
        if body.name == name and part not in links and (link := body.joint_link(joint)) >= 0:
            return next(one.name for one in scene.parts if one.body == index and one.link == link)
    return part


def _sensed_hold(scene: SceneContents, sensor: str, part: str, kind: str) -> Hold | None:
    """Hold that a sensor is on, named itself or by its body; None where it is on something else."""
    own = [hold for hold in scene.holds if hold.name == part]
    if own and kind != "mount":
        raise InputError(f"sensor {sensor}: held nodes {part!r} have no kind {kind!r}; use 'mount', or name the body.")
    if not own and kind == "mount":
        own = [hold for hold in scene.holds if scene.bodies[hold.body].name == part]
    if len(own) > 1:
        raise InputError(f"sensor {sensor}: {part!r} is held at several places; name one of {[hold.name for hold in own]}.")
    return own[0] if own else None


def _sensed_coupling(scene: SceneContents, sensor: str, part: str, kind: str) -> Coupling | None:
    """Coupling that a sensor is on, named itself or by its body; None where the sensor is on a part.

    A spring may have the name of a link or joint, which kinds that read no coupling then mean.
    """
    sensed, kinds = scene.sensed_couplings(), SENSOR_KINDS[kind].couplings if kind in SENSOR_KINDS else ()
    own = [c for c in sensed if c.name == part]
    if not kinds and _hanging_part(scene, part, kind) in scene.part_names:
        return None
    if own and own[0].kind not in kinds:
        use = " or ".join(repr(name) for name, declared in SENSOR_KINDS.items() if own[0].kind in declared.couplings)
        raise InputError(f"sensor {sensor}: {part!r} has no kind {kind!r}; use {use}, or name the body.")
    if not kinds:
        return None
    own = own or [c for c in sensed if c.kind in kinds and scene.bodies[c.rows[0][0]].name == part]
    if not own:
        names = [c.name for c in sensed if c.kind in kinds]
        raise InputError(f"sensor {sensor}: nothing of kind {kind!r} is on {part!r}{did_you_mean(part, names)}")
    if len(own) > 1:
        raise InputError(f"sensor {sensor}: {part!r} has {[c.name for c in own]} of kind {kind!r}; name one of them.")
    return own[0]


def _check_name(scene: SceneContents, name: str, reading: Reading | None) -> None:
    """Refuse a name that cannot begin a column, or that is taken."""
    if not name or any(c in name for c in ',"\n'):
        raise InputError(f"sensor name {name!r} is empty or holds a comma, quote or line break; choose another.")
    taken = {s.name for s in scene.sensors} | {f"{s.name}_measured" for s in scene.sensors if s.reading is not None}
    if taken & ({name} if reading is None else {name, f"{name}_measured"}):
        raise InputError(f"sensor {name!r} exists already; choose another name.")


def _check_limits(sensor: str, kind: str, given: dict[str, object]) -> None:
    """Refuse limits of a sensor that its kind does not take."""
    for option, value in given.items():
        if value is not None and option not in SENSOR_KINDS[kind].limits:
            kinds = ", ".join(name for name, declared in SENSOR_KINDS.items() if option in declared.limits)
            raise InputError(f"sensor {sensor}: {option} is for the kinds {kinds}, not {kind!r}; leave it out.")


def _partners(scene: SceneContents, sensor: str, part: str, kind: str, partner: Handle | str | None) -> tuple[str, ...]:
    """Parts of the partner of a sensor; none for all."""
    if partner is None:
        if SENSOR_KINDS[kind].needs_partner:
            raise InputError(f"sensor {sensor}: a {kind} is that of {part!r} to something; name it as partner.")
        return ()
    if isinstance(partner, Handle):
        return partner.parts
    names = scene.part_names
    bodies = [scene.bodies[p.body].name if p.body >= 0 else "" for p in scene.parts]
    found = tuple(name for name, body in zip(names, bodies, strict=True) if partner == body) or (partner,)
    if not set(found) <= set(names):
        raise InputError(f"sensor {sensor}: partner {partner!r} is unknown{did_you_mean(partner, names)}")
    return found


def _check_reading(scene: SceneContents, sensor: str, kind: str, body: Body | None, reading: Reading) -> None:
    """Refuse options of a reading that its sensor cannot have."""
    declared = SENSOR_KINDS[kind]
    if not declared.is_wrench:
        what = f"kind {kind!r}" if declared.series == "gauges" else f"a {kind}"
        raise InputError(f"sensor {sensor}: a reading is of forces and torques; {what} has none, leave it out.")
    if body is not None and not body.rigid and isinstance(reading.frame, str) and reading.frame == "body":
        raise InputError(
            f"sensor {sensor}: a soft body or rod has no frame of its own; give its reading the frame 'world', or that of a "
            "rigid part by its name."
        )
    if reading.tool is not None and kind != "mount":
        raise InputError(
            f"sensor {sensor}: 'tool' takes a weight off a sensor of kind 'mount'; one of kind {kind!r} carries none."
        )
    rigid = scene.rigid_parts()
    if reading.turns and reading.frame not in ("body", *rigid):
        raise InputError(
            f"sensor {sensor}: frame of its reading is {reading.frame!r}; allowed are 'world', 'body', the name of a rigid "
            f"part, and a rotation vector or matrix{did_you_mean(reading.frame, rigid)}"
        )


def _marker(sensor: str, kind: str, part: Part, body: Body | None, node: int | None, at: Vector | None) -> Marker | None:
    """Point of a marker; None for one on an obstacle, and for other kinds."""
    what = f"sensor {sensor}"
    if at is not None and (kind != "marker" or body is None or node is not None):
        raise InputError(f"{what}: 'at' places a marker on a soft body, instead of a node; leave one of them out.")
    if kind != "marker" or body is None:
        return None
    return body.marker(what, part.link, node, None if at is None else vector(f"{what}: at", at))

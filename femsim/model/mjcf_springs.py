"""Springs of MJCF files: fixed tendons with a stiffness, a damping or an actuator, and joints with a springdamper."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from xml.etree.ElementTree import Element

import numpy as np

from femsim.base.errors import InputError
from femsim.model.joint_springs import RobotSpring
from femsim.model.mjcf_elements import MjcfElements
from femsim.model.robots import Robot, RobotJoint, RobotLink

#: So many sums are named in a note.
_SHOWN = 8


def tendon_springs(
    reader: MjcfElements,
    tendons: Sequence[tuple[Element, Element]],
    joints: Mapping[str, RobotJoint],
    rests: Mapping[str, float],
    keeps: Sequence[str],
    taken: Sequence[str],
) -> dict[str, RobotSpring]:
    """Springs and dampers of fixed tendons over joints of the robot, and those that actuators pull, by the names of the tendons.

    Parameters
    ----------
    reader : MjcfElements
        Reads their numbers, and takes notes.
    tendons : sequence of (Element, Element)
        All <fixed> of the file, and with what they have by default.
    joints : mapping of str to RobotJoint
        Joints of the robot.
    rests : mapping of str to float, rad or m
        Where joints have their springref.
    keeps : sequence of str
        Names of tendons whose length an equality keeps.
    taken : sequence of str
        Names of other springs.
    """
    driven = {one.get("tendon", "") for actuators in reader.root.findall("actuator") for one in actuators} - {""}
    out: dict[str, RobotSpring] = {}
    for k, (given, tendon) in enumerate(tendons, 1):
        name = tendon.get("name") or f"tendon{k}"
        what = f"tendon {name!r}"
        pulled: dict[str, float] = {}
        for one in given.findall("joint"):
            joint = one.get("joint", "")
            pulled[joint] = pulled.get(joint, 0.0) + reader.number(what, one, "coef")
        stiffness, damping = _first(reader, what, tendon, "stiffness"), _first(reader, what, tendon, "damping")
        if not (stiffness or damping or name in driven) or name in keeps or not pulled or not all(pulled.values()):
            continue
        if any(one not in joints or joints[one].kind in ("fixed", "spherical") for one in pulled):
            continue  # of another tree, or locked: the note on tendons names it
        if stiffness < 0.0 or damping < 0.0:
            raise reader.wrong(what, f"has stiffness {stiffness:g} and damping {damping:g}; allowed are numbers from 0.")
        words = tendon.get("springlength", "-1").split()
        both = Element("fixed", {"springlength": " ".join(words * 2 if len(words) == 1 else words)})
        low, high = (float(end) for end in reader.numbers(what, both, "springlength", 2))
        if low == high == -1.0:
            low = high = sum(coefficient * rests.get(joint, 0.0) for joint, coefficient in pulled.items())
        own = name + "_" * (name in taken or (name in driven and name in joints))
        out[name] = RobotSpring(own, pulled, stiffness, low if low == high else (low, high), damping)
    if sums := [repr(one.name) for name, one in out.items() if name in driven]:
        more = f" and {len(sums) - _SHOWN} more" if len(sums) > _SHOWN else ""
        reader.note(f"actuators pull sums of joints; drive them by drive_joint: {', '.join(sums[:_SHOWN])}{more}")
    return out


def spring_dampers(
    reader: MjcfElements,
    asked: Mapping[str, tuple[float, float]],
    links: Sequence[RobotLink],
    joints: Sequence[RobotJoint],
    free: bool,
    drawn: Mapping[str, float],
    rests: Mapping[str, float],
) -> tuple[list[RobotJoint], list[RobotSpring]]:
    """Joints with the damping, and springs with the stiffness, that springdamper asks for: by the inertia where they are drawn.

    It is the inverse of the joint's entry of the inverse mass matrix: the inertia that it feels where all others give way.

    Parameters
    ----------
    reader : MjcfElements
        Takes notes.
    asked : mapping of str to (float, float)
        Time constant, s, and damping ratio by names of joints.
    links, joints : sequence of RobotLink and RobotJoint
        Of the robot, no joint mimics another.
    free : bool
        Whether the base gives way too.
    drawn, rests : mapping of str to float, rad or m
        Where joints are drawn, but at 0, and where they have their springref.
    """
    loose = [replace(one, limits=(-math.inf, math.inf)) for one in joints]
    try:
        body = Robot("drawn", links, loose).body("drawn", np.zeros(3), np.array([1.0, 0.0, 0.0, 0.0]), drawn, {})
    except InputError as error:
        reader.note(f"springdamper of joints is left out, since their inertia is not known: {error}")
        return list(joints), []
    first = 0 if free else 6
    weights = np.diag(np.linalg.inv(body.mass_matrix(body.initial_q())[first:, first:]))
    known, damping, springs = set(body.joint_names()), {}, []
    for name, (time, ratio) in asked.items():
        if name in known:
            inertia = 1.0 / float(weights[body.joint(name).row - first])
            damping[name] = 2.0 * inertia / time
            springs.append(RobotSpring(name, {name: 1.0}, inertia / (time * ratio) ** 2, rests[name]))
    return [replace(one, damping=damping.get(one.name, one.damping)) for one in joints], springs


def _first(reader: MjcfElements, what: str, tendon: Element, key: str) -> float:
    """First number of an attribute, which may have those of higher powers behind it; 0 where it has none."""
    words = (tendon.get(key) or "0").split()
    if any(word.strip("+-0.") for word in words[1:]):
        reader.note(f"of the {key} of {what} the first number is read; it is linear")
    return reader.number(what, Element(tendon.tag, {key: words[0]}), key)

"""What MJCF files say of a start and of friction, in words: both are those of a scene."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from xml.etree.ElementTree import Element

import numpy as np
from scipy.spatial.transform import Rotation

from femsim.model.mjcf_elements import MjcfElements
from femsim.model.robots import RobotJoint

#: So many keyframes or bodies are named.
_SHOWN = 6


def friction_left(found: Mapping[float, Sequence[str]]) -> str:
    """Say what friction geoms have.

    Parameters
    ----------
    found : mapping of float to sequence of str
        Bodies whose geoms have it, by the coefficient.
    """
    each = "; ".join(f"{value:g} of {_first(bodies)}" for value, bodies in sorted(found.items()))
    return f"friction of geoms is left out ({each}); scene.set_friction gives it"


def keys_left(keys: Sequence[Element], joints: Sequence[RobotJoint], free: bool) -> str:
    """Name keyframes, and say how to start as in the first one that has a place for each joint of the robot.

    Parameters
    ----------
    keys : sequence of Element
        All <key> of the file.
    joints : sequence of RobotJoint
        Those of the robot, in the order of the file.
    free : bool
        Whether the base has a free joint, whose pose a key has first.
    """
    names = [key.get("name", "") or f"number {k}" for k, key in enumerate(keys, 1)]
    said = f"keyframes are left out ({_first(names)})"
    moving = [joint for joint in joints if joint.kind != "fixed"]
    size = (7 if free else 0) + sum(4 if joint.kind == "spherical" else 1 for joint in moving)
    for name, key in zip(names, keys, strict=True):
        places = _numbers(key.get("qpos", ""))
        if len(places) == size and size and np.isfinite(places).all():
            start = _start(places, moving, free)
            return f"{said}; {f'start as in {name!r} by {start} in add_robot' if start else f'in {name!r} all are at 0'}"
    return said


def equality_left(reader: MjcfElements, origins: Mapping[str, np.ndarray], element: Element, active: bool) -> str:
    """Say that an equality is not read, and what to do instead.

    Parameters
    ----------
    reader : MjcfElements
        Reads its numbers.
    origins : mapping of str to ndarray, (3,), m
        Origin of the frame of each body in that of its link.
    element : Element
        The equality, with what it has by default.
    active : bool
        Whether it is.
    """
    ends = [element.get(key, "") or "world" for key in ("body1", "body2")]
    tag, said = element.tag, f"<equality><{element.tag}> is not read"
    if not active or tag not in ("connect", "weld"):
        return f"{said}; {'it is not active' if not active else 'what it couples moves by itself'}"
    if ends[0] not in origins or tag == "weld":
        return f"{said}; two links are joined by scene.join"
    anchor = origins[ends[0]] + reader.numbers("<connect>", element, "anchor", 3, "0 0 0")
    at = ", ".join(f"{one:.6g}" for one in anchor)
    return f"{said}; close it by scene.join, with a 'ball' of {ends[0]!r} and {ends[1]!r} at ({at}) in the frame of {ends[0]!r}"


def tendons_left(
    tendons: Sequence[tuple[Element, Element]], joints: Sequence[str], keeping: Sequence[str], springs: Sequence[str], total: int
) -> str:
    """Say what of tendons is left out, and name fixed ones that couple joints of the robot by it; "" where all is read.

    Parameters
    ----------
    tendons : sequence of (Element, Element)
        All <fixed> of the file, and with what they have by default.
    joints : sequence of str
        Names of the joints of the robot.
    keeping, springs : sequence of str
        Names of tendons whose length an equality keeps, and of those that are read as springs.
    total : int
        Number of tendons in the file.
    """
    found, beside = [], []
    for given, tendon in tendons:
        pulled = [(one.get("coef", "?"), one.get("joint", "")) for one in given.findall("joint")]
        by = [key for key in ("range", "stiffness", "damping", "frictionloss") if _numbers(tendon.get(key, "")).any()]
        if tendon.get("limited") == "false":
            by = [key for key in by if key != "range"]
        name, numbers = tendon.get("name", ""), [f"{key} {tendon.get(key)}" for key in by]
        if name in springs:
            beside += [f"{one} of {name!r}" for one in numbers if one.split()[0] in ("range", "frictionloss")]
        elif len(pulled) > 1 and by and name not in keeping and all(joint in joints for _, joint in pulled):
            way = " + ".join(f"{coefficient} {joint!r}" for coefficient, joint in pulled)
            found.append(f"{name!r} ({way}, by {' and '.join(numbers)})")
    if not (found or beside) and len(springs) == total:
        return ""
    read = ["joints that an <equality> couples"] * bool(keeping) + ["sums of joints with springs or motors"] * bool(springs)
    said = f"of <tendon> only {' and '.join(read)} are read" if read else "<tendon> is not read"
    said += f", not {_few(beside)}" if beside else ""
    return f"{said}; these couple joints that move by themselves here, so drive them together: {_few(found)}" if found else said


def _start(places: np.ndarray, moving: Sequence[RobotJoint], free: bool) -> str:
    """Arguments of add_robot for the places of a key; without joints that are at 0, and those that mimic others."""
    words, at, given = [], 0, []
    if free:
        turn = places[3:7] if places[3:7].any() else np.array([1.0, 0.0, 0.0, 0.0])
        words = [f"position={_row(places[:3])}", f"rotation={_row(Rotation.from_quat(turn[[1, 2, 3, 0]]).as_rotvec())}"]
        at = 7
    for joint in moving:
        own = places[at : at + (4 if joint.kind == "spherical" else 1)]
        at += len(own)
        if joint.mimic is None and (own[1:].any() if len(own) > 1 else own.any()):
            given.append(f"{joint.name!r}: {_row(own) if len(own) > 1 else f'{own[0]:.6g}'}")
    return ", ".join([*words, *([f"joints={{{', '.join(given)}}}"] if given else [])])


def _row(values: np.ndarray) -> str:
    return f"({', '.join(f'{one:.6g}' for one in values)})"


def _numbers(text: str) -> np.ndarray:
    """Numbers of a text, none where it holds something else."""
    try:
        return np.array([float(word) for word in text.split()])
    except ValueError:
        return np.zeros(0)


def _first(names: Sequence[str]) -> str:
    return _few([*map(repr, names)])


def _few(said: Sequence[str]) -> str:
    more = f" and {len(said) - _SHOWN} more" if len(said) > _SHOWN else ""
    return ", ".join(said[:_SHOWN]) + more

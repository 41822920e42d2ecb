"""What MJCF files say of a start and of friction, in words: both are those of a scene."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from xml.etree.ElementTree import Element

import numpy as np
from scipy.spatial.transform import Rotation

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


def tendons_left(tendons: Sequence[tuple[Element, Element]], joints: Sequence[str], coupling: Sequence[str]) -> str:
    """Name fixed tendons that couple joints of the robot by a range, a spring or friction, as the end of a note; "" without any.

    Parameters
    ----------
    tendons : sequence of (Element, Element)
        All <fixed> of the file, and with what they have by default.
    joints : sequence of str
        Names of the joints of the robot.
    coupling : sequence of str
        Names of tendons that are read.
    """
    found = []
    for given, tendon in tendons:
        pulled = [(one.get("coef", "?"), one.get("joint", "")) for one in given.findall("joint")]
        by = [key for key in ("range", "stiffness", "damping", "frictionloss") if _numbers(tendon.get(key, "")).any()]
        if tendon.get("limited") == "false":
            by = [key for key in by if key != "range"]
        if len(pulled) > 1 and by and tendon.get("name") not in coupling and all(joint in joints for _, joint in pulled):
            way = " + ".join(f"{coefficient} {joint!r}" for coefficient, joint in pulled)
            found.append(f"{tendon.get('name', '')!r} ({way}, by {' and '.join(f'{key} {tendon.get(key)}' for key in by)})")
    if not found:
        return ""
    more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    return f"; these couple joints that move by themselves here, so drive them together: {', '.join(found[:_SHOWN])}{more}"


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
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(map(repr, names[:_SHOWN])) + more

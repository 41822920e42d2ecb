"""What a scene said when a simulation of it was made: who changes it later is told."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import is_
from typing import Any

import numpy as np

from femsim.base.errors import InputError
from femsim.scene.contents import SceneContents
from femsim.scene.frictions import FrictionRule
from femsim.scene.settings import CHECKS

#: What no step reads.
_ASIDE = {"name", "duration", "largest_size", "thin_shapes"}
#: Settings that can be set, by name.
SETTINGS = tuple(name for name in ("dt", "adaptive", "theta", "integrator", *CHECKS) if name not in _ASIDE)
#: What a scene is made of, by the name of the attribute, in words; and what of it can go on in another simulation.
_BUILT = {
    "bodies": "bodies", "parts": "parts", "sensors": "sensors", "couplings": "joints, chambers, tendons or springs",
    "holds": "holds", "fixed_nodes": "fixed nodes",
}  # fmt: skip
_STATED = {
    "motions": "drives, loads or other functions of time", "commands": "drives, loads or other functions of time",
    "friction_rules": "rules of contact", "restitution_rules": "rules of contact", "softness_rules": "rules of contact",
    "ignored": "pairs without contact", "no_contact": "pairs without contact", "joined": "pairs without contact",
    "until_broken": "pairs without contact", "welds": "pairs without contact", "own_pairs": "pairs without contact",
    "loads": "loads of bodies", "shapes": "shapes of parts",
}  # fmt: skip

#: What bodies and parts hold themselves, by the name in :data:`_STATED`.
_OF_THEM: dict[str, Callable[[SceneContents], Iterator[object]]] = {
    "loads": lambda scene: (load for body in scene.bodies if callable(load := vars(body).get("load"))),
    "shapes": lambda scene: (shape for part in scene.parts for shape in part.shapes),
}


class Described:
    """What a scene said, of which nothing may change while it is stepped.

    Parameters
    ----------
    scene : SceneContents
        The scene, as it is now.
    """

    def __init__(self, scene: SceneContents) -> None:
        self._scene = scene
        self._settings, self._things, self._surfaces = _settings(scene), _things(scene), _surfaces(scene)

    def refuse_changes(self, call: str) -> None:
        """Refuse a call where the scene says something else now.

        Raises
        ------
        InputError
            It does; the message names what, and what to do.
        """
        scene, now = self._scene, _settings(self._scene)
        things = [name for name, held in _things(scene).items() if not _same(held, self._things[name])]
        if {"bodies", "parts"} & set(things):  # which bring theirs
            things = [name for name in things if name not in _OF_THEM]
        words = list(dict.fromkeys((_BUILT | _STATED)[name] for name in things))
        if not words and _surfaces(scene) != self._surfaces:
            words = ["surfaces of parts, or what contact they have"]
        said = [f"other {' and '.join(words)}"] if words else []
        said += [
            f"another {name}, {_shown(now[name])} for {_shown(was)},"
            for name, was in self._settings.items()
            if _differ(was, now[name])
        ]
        if not said:
            return
        on = "" if set(things) & set(_BUILT) else "; to go on from here, let it restore what save() of this one gives"
        raise InputError(
            f"{call}: scene {scene.name!r} has {' and '.join(said)} than when this simulation was made; it knows nothing of "
            f"that. Make a new one, fs.Simulation(scene){on}."
        )


def _settings(scene: SceneContents) -> dict[str, Any]:
    """Collect the settings by name; arrays are copies."""
    found = {name: getattr(scene, name) for name in SETTINGS}
    return found | {"gravity": scene.gravity.copy(), "default_friction": scene.default_friction}


def _things(scene: SceneContents) -> dict[str, tuple[object, ...]]:
    """Everything that a scene holds, by the names of :data:`_BUILT` and :data:`_STATED`."""
    held = {name: getattr(scene, name) for name in (*_BUILT, *_STATED) if name not in _OF_THEM}
    things = {name: tuple(own.values() if isinstance(own, dict) else own) for name, own in held.items()}
    return things | {name: tuple(found(scene)) for name, found in _OF_THEM.items()}


def _surfaces(scene: SceneContents) -> list[tuple[str, bool | None, bool]]:
    """Collect what can be said of parts after they were made."""
    return [(part.surface, part.by_faces, part.self_contact) for part in scene.parts]


def _same(a: tuple[object, ...], b: tuple[object, ...]) -> bool:
    """Whether they are the same things; a statement that was made again in the same words is."""
    if len(a) != len(b):
        return False
    return all(map(is_, a, b)) or (isinstance(a[0], FrictionRule) and sorted(map(repr, a)) == sorted(map(repr, b)))


def _differ(a: object, b: object) -> bool:
    return bool(np.any(a != b)) if isinstance(a, np.ndarray) else a != b


def _shown(value: object) -> str:
    return f"({', '.join(f'{x:g}' for x in value)})" if isinstance(value, np.ndarray) else f"{value!r}"

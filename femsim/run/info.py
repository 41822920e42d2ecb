"""What run.json says of a run: scene, settings, bodies, friction, solver, machine."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Mapping
from itertools import combinations_with_replacement, product
from pathlib import Path
from typing import Any

import numpy as np

from contact import Solver
from femsim.base.threads import pools
from femsim.base.versions import machine, versions
from femsim.model.parts import skins_of
from femsim.scene.frictions import pair_restitution, pair_softness
from femsim.scene.scene import Scene


def run_info(
    scene: Scene, scene_path: str | Path | None, settings: Mapping[str, Any], solver: str, chosen: Solver
) -> dict[str, Any]:
    """Content of run.json at the start of a run.

    Parameters
    ----------
    scene : Scene
        The scene.
    scene_path : path, optional
        Its file.
    settings : mapping
        Settings of the run that are not those of the scene, by name with unit.
    solver : str
        Name of the solver.
    chosen : Solver
        The solver.
    """
    return {
        "status": "running",
        "message": "",
        "scene": {"name": scene.name, "file": str(scene_path) if scene_path else None}
        | ({"path": str(Path(scene_path).resolve())} if scene_path else {}),
        "parameters": scene.parameters,
        "settings": dict(settings),
        "health_bounds": {name: _plain(value) for name, value in vars(scene.health).items()},
        "bodies": describe_bodies(scene),
        "parts": scene.part_names,
        "drives": describe_drives(scene),
        "sensors": {sensor.name: {"kind": sensor.kind, "part": sensor.part} for sensor in scene.sensors},
        "friction": describe_friction(scene),
        "restitution": describe_restitution(scene),
        "softness": describe_softness(scene),
        "ignored_contacts": [str(statement) for statement in scene.ignored],
        "solver": {
            "name": solver,
            "options": vars(getattr(chosen, "options", None)) if hasattr(chosen, "options") else {},
            "linear_algebra": getattr(chosen, "linear_algebra", None),
        },
        "versions": versions(),
        "machine": machine() | {"libraries": pools()},
        "command": " ".join(sys.argv),
        "started": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
    }


def _plain(value: float | tuple[float, float]) -> Any:
    """Numbers as JSON holds them: what is infinite is null."""
    return [_plain(one) for one in value] if isinstance(value, tuple) else value if math.isfinite(value) else None


def describe_bodies(scene: Scene) -> dict[str, Any]:
    """Entry of each body: what it is, mass, number of velocities, its own description, and its mesh where it has one."""
    out: dict[str, Any] = {}
    for body in scene.bodies:
        entry: dict[str, Any] = {"what": body.what, "mass_kg": body.mass, "velocities": body.n_v} | body.describe()
        if body.name in scene.meshes:
            entry["mesh"] = scene.meshes[body.name]
        out[body.name] = entry
    return out


def describe_drives(scene: Scene) -> dict[str, Any]:
    """Entry of each driven base and of held nodes: what it is of, and the spring of one that gives way."""
    springs = {found[0]: coupling.describe() for coupling in scene.couplings if (found := coupling.mounted()) is not None}
    held = {hold.name: {"body": scene.bodies[hold.body].name, "nodes": len(hold.nodes)} for hold in scene.holds}
    names = dict.fromkeys([*(scene.bodies[k].name for k in scene.motions), *springs, *held])
    return {name: held.get(name, {"body": name}) | {"exact": name not in springs} | springs.get(name, {}) for name in names}


def describe_friction(scene: Scene) -> list[dict[str, Any]]:
    """Coefficients of all pairs: by ``bodies`` where these were named in the scene, of the others by ``surfaces``."""
    found, parts, skins = scene.pair_friction(), scene.parts, skins_of(scene.parts)
    surfaces = sorted({skin.surface for skin in skins})
    own = np.array([surfaces.index(skin.surface) for skin in skins], dtype=np.int64)
    fixed = np.array([parts[skin.part].body < 0 for skin in skins])
    named = np.array([*(rule.bodies > 0 for rule in scene.friction_rules), False])[found.rule]
    entries: list[dict[str, Any]] = []

    def add(what: str, names: tuple[str, str], i: int, j: int) -> None:
        entry: dict[str, Any] = {what: list(names), "coefficient": float(found.values[i, j])}
        rule = scene.friction_rules[found.rule[i, j]] if found.rule[i, j] >= 0 else None
        if rule is not None and rule.coefficients is not None and rule.direction is not None:
            both, axis = list(rule.coefficients), rule.direction.tolist()
            entry |= {"coefficients": both, "direction": axis, "of": parts[rule.carrier].name}
        entries.append(entry)

    for first, second in combinations_with_replacement(range(len(surfaces)), 2):
        sides = (np.flatnonzero(own == which).tolist() for which in (first, second))
        pairs = [(i, j) for i, j in product(*sides) if first < second or i <= j]
        rest = [(i, j) for i, j in pairs if not named[i, j]]
        if rest:
            add("surfaces", (surfaces[first], surfaces[second]), *rest[0])
        for i, j in pairs:
            if named[i, j] and not (fixed[i] and fixed[j]):
                add("bodies", (skins[i].name, skins[j].name), i, j)
    return entries


def describe_restitution(scene: Scene) -> list[dict[str, Any]]:
    """Coefficients of restitution of the pairs of parts that rebound by one."""
    return _of_pairs(scene, pair_restitution(scene.parts, scene.restitution_rules), "coefficient")


def describe_softness(scene: Scene) -> list[dict[str, Any]]:
    """Softness of the pairs of parts whose contacts give way, m/N."""
    values = pair_softness(scene.parts, scene.softness_rules)
    return [] if values is None else _of_pairs(scene, values, "m_per_N")


def _of_pairs(scene: Scene, values: np.ndarray, what: str) -> list[dict[str, Any]]:
    """Entries of the pairs of parts whose value (np, np) is positive, but for those of obstacles."""
    parts = scene.parts
    pairs = combinations_with_replacement(range(len(parts)), 2)
    return [
        {"bodies": [parts[i].name, parts[j].name], what: float(values[i, j])}
        for i, j in pairs
        if values[i, j] > 0.0 and not parts[i].body == parts[j].body == -1
    ]

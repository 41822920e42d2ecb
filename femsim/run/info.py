"""What run.json says of a run: scene, settings, bodies, friction, solver, machine."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from contact import Solver
from femsim.base.versions import machine, versions
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
        "scene": {"name": scene.name, "file": str(scene_path) if scene_path else None},
        "parameters": scene.parameters,
        "settings": dict(settings),
        "bodies": describe_bodies(scene),
        "friction": describe_friction(scene),
        "solver": {
            "name": solver,
            "options": vars(getattr(chosen, "options", None)) if hasattr(chosen, "options") else {},
            "linear_algebra": getattr(chosen, "linear_algebra", None),
        },
        "versions": versions(),
        "machine": machine(),
        "command": " ".join(sys.argv),
        "started": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
    }


def describe_bodies(scene: Scene) -> dict[str, Any]:
    """Entry of each body: what it is, mass, number of velocities, its own description, and its mesh where it has one."""
    out: dict[str, Any] = {}
    for body in scene.bodies:
        entry: dict[str, Any] = {"what": body.what, "mass_kg": body.mass, "velocities": body.n_v} | body.describe()
        if body.name in scene.meshes:
            entry["mesh"] = scene.meshes[body.name]
        out[body.name] = entry
    return out


def describe_friction(scene: Scene) -> list[dict[str, Any]]:
    """Coefficients of all pairs of surfaces."""
    surfaces = sorted({p.surface for p in scene.parts})
    matrix = scene.friction_matrix(surfaces)
    pairs: list[dict[str, Any]] = [
        {"surfaces": [a, b], "coefficient": float(matrix[i, j])}
        for i, a in enumerate(surfaces)
        for j, b in enumerate(surfaces)
        if i <= j
    ]
    for pair in scene.anisotropic:
        entry = next(p for p in pairs if sorted(p["surfaces"]) == sorted(pair.surfaces))
        entry |= {"coefficients": list(pair.coefficients), "direction": list(pair.direction), "of": scene.parts[pair.part].name}
    return pairs

"""Functions sent to another process: those that build a scene, step it and measure its run, with their arguments."""

from __future__ import annotations

import base64
import inspect
import json
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from femsim.base.errors import InputError
from femsim.base.packages import require
from femsim.scene.scene_file import load_scene, scene_parameters

if TYPE_CHECKING:  # who hands cases out needs no kernels
    from femsim.run.result import Run
    from femsim.scene.scene import Scene

#: Columns of every table of runs, beside parameters and what is measured.
TAKEN = ("case", "status", "verdict", "message")


@dataclass(frozen=True)
class Packed:
    """What a process needs to make a case.

    Attributes
    ----------
    build : callable or path
        ``build(**parameters) -> Scene``, or a scene file.
    parameters : dict
        Arguments of that.
    measure : callable, optional
        ``measure(run) -> {name: number}``.
    loop : callable, optional
        ``loop(sim, **parameters)`` steps the simulation of the scene, given those that it names. Those that it alone names are
        not for the scene. Default: the scene runs to its end.
    """

    build: Callable[..., Scene] | str | Path
    parameters: Mapping[str, Any]
    measure: Callable[[Run], Mapping[str, float]] | None
    loop: Callable[..., object] | None = None

    def scene(self) -> Scene:
        """Build the scene; InputError where something else comes of it."""
        from femsim.scene.scene import Scene

        alone = names_of_loop(self.loop) - set(names_of_build(self.build) or self.parameters)
        given = {name: value for name, value in self.parameters.items() if name not in alone}
        made: Any = self.build(**given) if callable(self.build) else load_scene(self.build, **given)
        if not isinstance(made, Scene):
            raise InputError(f"build gave {made!r}; it must return an fs.Scene.")
        return made

    def run(self, scene: Scene, settings: Mapping[str, Any]) -> Run:
        """Let the loop step a simulation of the scene with these settings, and return what it recorded."""
        from femsim.run.simulation import Simulation, StepFailedError

        assert self.loop is not None
        named = {name: self.parameters[name] for name in names_of_loop(self.loop) if name in self.parameters}
        with suppress(StepFailedError), Simulation(scene, record=True, **settings) as sim:
            self.loop(sim, **named)
        run = sim.close()
        assert run is not None
        if not len(run.steps["step"]) and run.status != "failed":
            raise InputError("loop took no step; let it call step() of the simulation that it is given.")
        return run

    def values(self, run: Run) -> dict[str, float]:
        """Numbers that are measured of a run, by name; InputError where something else comes of it, or a name is taken."""
        if self.measure is None:
            return {}
        found: Any = self.measure(run)
        try:
            values = {str(name): float(np.asarray(value, dtype=np.float64).item()) for name, value in dict(found).items()}
        except (TypeError, ValueError) as error:
            raise InputError(f"measure gave {found!r}, but must give numbers by name, {{'force': 1.0}} ({error}).") from None
        for name in values:
            if name in self.parameters or name in TAKEN:
                what = "a parameter of the scene" if name in self.parameters else "a column of every table"
                raise InputError(f"measure gave {name!r}, which is {what} already; choose another name.")
        return values


def names_of_build(build: Callable[..., Scene] | str | Path) -> list[str] | None:
    """Names of the parameters of a scene; None where it takes any."""
    if not callable(build):
        return [parameter.name for parameter in scene_parameters(Path(build))]
    signature = inspect.signature(build)
    if any(p.kind is p.VAR_KEYWORD for p in signature.parameters.values()):
        return None
    return list(signature.parameters)


def names_of_loop(loop: Callable[..., object] | None) -> set[str]:
    """Names of the parameters that a loop takes beside its simulation."""
    if loop is None:
        return set()
    named = list(inspect.signature(loop).parameters.values())[1:]
    return {one.name for one in named if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)}


def pack(packed: Packed) -> str:
    """Write functions and arguments as text; those of a notebook or script go by value, those of modules by their name.

    Raises
    ------
    InputError
        Something in them cannot travel, or cloudpickle is not installed.
    """
    require("cloudpickle", "fs.run_many", "sweep")
    import cloudpickle

    try:
        return json.dumps([sys.path, base64.b85encode(cloudpickle.dumps(packed)).decode("ascii")])
    except Exception as error:  # pickle's errors are of many kinds, and so are those of what is pickled
        raise InputError(
            f"what builds the cases cannot be sent to another process ({type(error).__name__}: {error}); let it make open files, "
            "simulations and the like by itself, or use workers=0."
        ) from error


def unpack(text: str) -> Packed:
    """Read what :func:`pack` wrote."""
    import cloudpickle

    places, data = json.loads(text)
    sys.path += [place for place in places if place not in sys.path]  # where modules lie that it names
    packed = cloudpickle.loads(base64.b85decode(data))
    assert isinstance(packed, Packed)
    return packed

"""Functions sent to another process: the one that builds a scene, with its arguments, and the one that measures its run."""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from femsim.base.errors import InputError
from femsim.base.packages import require
from femsim.scene.scene_file import load_scene

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
    """

    build: Callable[..., Scene] | str | Path
    parameters: Mapping[str, Any]
    measure: Callable[[Run], Mapping[str, float]] | None

    def scene(self) -> Scene:
        """Build the scene; InputError where something else comes of it."""
        from femsim.scene.scene import Scene

        made: Any = self.build(**self.parameters) if callable(self.build) else load_scene(self.build, **self.parameters)
        if not isinstance(made, Scene):
            raise InputError(f"build gave {made!r}; it must return an fs.Scene.")
        return made

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

"""Where a simulation stood, to go back there: in memory or in a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import foreign
from contact.solvers.base import below
from femsim.base.errors import InputError, naming_parameters
from femsim.base.files import replacing, write_errors
from femsim.scene.scene import Scene
from femsim.step.state import State
from foreign.text import read_npz

#: Version of the files; since 2 they name what the scene has.
VERSION = 2
#: What of a scene is named, see :func:`names_of`.
NAMED = ("body", "part", "coupling", "sensor")


def names_of(scene: Scene) -> dict[str, tuple[str, ...]]:
    """Name what a scene has, by kind and in order, in the words of a message."""
    return {
        "body": tuple(f"{body.name} of {body.n_q} coordinates" for body in scene.bodies),
        "part": tuple(scene.part_names),
        "coupling": tuple(coupling.name for coupling in scene.couplings),
        "sensor": tuple(f"{s.name} ({s.kind}) of {s.hold or s.coupling or s.part}" for s in scene.sensors),
    }


@dataclass(frozen=True, repr=False)
class Saved:
    """Where a simulation stood, all of it: what follows :meth:`femsim.Simulation.restore` followed then, to the last bit.

    Attributes
    ----------
    state : State
        State of the bodies, contacts and sensors; its arrays are read-only.
    solver : dict of str to ndarray
        What the solver remembers.
    commands : dict of str to dict of str to ndarray
        Targets that were set, by name.
    pushes : dict of str to dict of str to ndarray
        Forces from outside, by the names of parts, see :meth:`femsim.Simulation.push`.
    rows : tuple of (list of float, list of float)
        Last rows of sensors.csv and steps.csv; empty before the first step.
    health : dict
        What the health verdict knows.
    names : dict of str to tuple of str
        What the scene has, in order: "body", with the number of coordinates, "part", "coupling" and "sensor", with what it is on.
    """

    state: State
    solver: Mapping[str, np.ndarray]
    commands: Mapping[str, Mapping[str, np.ndarray]]
    pushes: Mapping[str, Mapping[str, np.ndarray]]
    rows: tuple[list[float], list[float]]
    health: Mapping[str, Any]
    names: Mapping[str, tuple[str, ...]]

    def __post_init__(self) -> None:
        """Whoever has it looks at the state only, which the simulation shares."""
        object.__setattr__(self, "state", self.state.to_look_at())

    def __repr__(self) -> str:
        return f"<Saved simulation at {self.state.t:g} s, step {self.state.step}>"

    @naming_parameters
    def write(self, path: str | Path) -> None:
        """Write it to a file in numpy's format npz, without the health verdict; it is there as a whole or not at all.

        Raises
        ------
        InputError
            It cannot be written.
        """
        arrays = {f"state/{name}": value for name, value in self.state.arrays().items()}
        arrays |= {f"solver/{name}": value for name, value in self.solver.items()}
        for folder, held in (("command", self.commands), ("push", self.pushes)):
            arrays |= {f"{folder}/{name}/{key}": value for name, own in held.items() for key, value in own.items()}
        arrays |= {f"names/{kind}": np.array(own, dtype=str) for kind, own in self.names.items()}
        arrays |= {"row/sensors": np.array(self.rows[0]), "row/steps": np.array(self.rows[1])}
        where = f"the file {path}", "choose another folder or name"
        with write_errors(*where), replacing(Path(path)) as temporary, temporary.open("wb") as file:
            np.savez(file, allow_pickle=False, version=np.array(VERSION), **arrays)

    @classmethod
    @naming_parameters
    def read(cls, path: str | Path) -> Saved:
        """Read a file that :meth:`write` wrote; its health verdict starts anew.

        Raises
        ------
        InputError
            No such file, or one that holds no saved simulation of this version.
        """
        try:
            arrays = read_npz(Path(path))
        except (OSError, foreign.Refused) as error:
            raise InputError(f"{path}: cannot be read as a saved simulation ({error}); give a file of Saved.write.") from error
        version = arrays.pop("version", np.array(-1))
        if version.shape != () or version != VERSION:
            found = f" but of version {version}" if version.shape == () and version.dtype.kind in "iu" and version > 0 else ""
            raise InputError(f"{path}: is no saved simulation of version {VERSION}{found}; write it again with this femsim.")

        def by_name(folder: str) -> dict[str, dict[str, np.ndarray]]:
            held: dict[str, dict[str, np.ndarray]] = {}
            for name, value in below(arrays, folder).items():
                target, _, key = name.rpartition("/")
                held.setdefault(target, {})[key] = value
            return held

        try:
            state, rows = (
                State.from_arrays(below(arrays, "state")),
                (arrays["row/sensors"].tolist(), arrays["row/steps"].tolist()),
            )
            names = {kind: tuple(str(name) for name in arrays[f"names/{kind}"]) for kind in NAMED}
        except (KeyError, IndexError, TypeError, ValueError, OverflowError) as error:
            raise InputError(f"{path}: is no complete simulation ({error}); the file is damaged, take an earlier one.") from error
        return cls(state, below(arrays, "solver"), by_name("command"), by_name("push"), rows, {}, names)

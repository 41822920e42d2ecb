"""Checks of what users give to a scene, and the names that it gives back."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import get_args

import numpy as np

from contact import Shape
from contact.metrics import is_finite
from femsim.base.errors import InputError, naming_fields
from femsim.model.solids import Compound

Vector = Sequence[float] | np.ndarray


@dataclass(frozen=True)
class Handle:
    """Name of an added body, for ``drive``, ``sensor``, ``set_friction`` and the like; ``add_...`` returns it.

    Attributes
    ----------
    name : str
        Name of the body.
    parts : tuple of str
        Names of its parts, which can come into contact and be sensed: the body itself, or the links of a gripper.
    """

    name: str
    parts: tuple[str, ...]


@naming_fields
@dataclass(frozen=True)
class Finger:
    """One prismatic finger of a gripper.

    Parameters
    ----------
    name : str
        Name, e.g. "left".
    pad : Shape or Compound
        Contact shape of the finger; also what is drawn.
    offset : (3,) float, m
        Centre of the pad in the frame of the gripper's base at joint position zero.
    closing : (3,) float
        Direction in which the finger closes, frame of the base; normalised.
    mass : float, kg
        Mass of the finger.
    rotation : (3,) float, rad
        Rotation vector of the pad in the frame of the base.
    """

    name: str
    pad: Shape | Compound
    offset: Vector
    closing: Vector
    mass: float = 0.1
    rotation: Vector = (0.0, 0.0, 0.0)


def check_shape(what: str, shape: object) -> None:
    """Refuse what is no shape, e.g. a mesh or a path."""
    if not isinstance(shape, Shape | Compound):
        allowed = ", ".join(kind.__name__ for kind in (*get_args(Shape), Compound))
        given = f"the class {shape.__name__}" if isinstance(shape, type) else f"a {type(shape).__name__}"
        raise InputError(
            f"{what} is {given}; allowed are {allowed}. A TriMesh m becomes one by fs.Mesh(m.points, m.triangles), a file by "
            "fs.mesh_shape(path)."
        )


def name_of(what: Handle | str) -> str:
    """Name of a body that is given by its handle or its name."""
    return what.name if isinstance(what, Handle) else what


def part_of(what: Handle | str) -> str:
    """Name of a part that is given by its name, or by the handle of its body: its first part."""
    return what.parts[0] if isinstance(what, Handle) else what


def vector(what: str, value: Vector, size: int = 3) -> np.ndarray:
    """Finite numbers (size,); InputError otherwise."""
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        array = np.zeros(0)
    if array.shape != (size,) or not np.all(np.isfinite(array)):
        raise InputError(f"{what} is {value!r}; allowed are {size} finite numbers.")
    return array


#: Longest time step, s, and largest density, kg/m^3: beyond them one step takes minutes, or masses overflow.
LONGEST_STEP, DENSEST = 100.0, 1e12


def positive(what: str, value: float, unit: str, most: float = math.inf) -> float:
    """Return a positive finite number that is at most so large; InputError otherwise."""
    if not (isinstance(value, int | float | np.floating) and np.isfinite(value) and 0 < value <= most):
        limit = f" up to {most:g} {unit}" if most < math.inf else ""
        raise InputError(f"{what} is {value!r} {unit}; allowed are positive numbers{limit}.")
    return float(value)


def function_of_time(what: str, name: str, value: object, advice: str) -> None:
    """Refuse what is given but is no function."""
    if value is not None and not callable(value):
        raise InputError(f"{what}: {name} is {value!r}, but must be a function of time in s; {advice}")


def checked_load(name: str, load: Callable[[float], Vector], each: tuple[int, int]) -> Callable[[float], np.ndarray]:
    """Check a load, (3,) in all or one row per node or link, whenever it is asked for."""
    function_of_time(f"load of {name}", "load", load, "give one that returns (3,) N.")
    return partial(_load_at, name, load, each)  # which can be pickled, as a function within this one cannot


def _load_at(name: str, load: Callable[[float], Vector], each: tuple[int, int], t: float) -> np.ndarray:
    """Ask for a load, and check it."""
    force = np.asarray(load(t), dtype=np.float64)
    if force.shape not in ((3,), each):
        raise InputError(f"load of {name} gave shape {force.shape} at {t:g} s; allowed are (3,) and {each}, in N.")
    if not np.isfinite(force).all():
        bad = force if force.ndim == 1 else force[~np.isfinite(force).all(axis=1)][0]
        raise _no_load(name, "force", bad, "N", t)
    return force


def _no_load(name: str, what: str, value: np.ndarray, unit: str, t: float) -> InputError:
    """Say that a load, (3,), is not finite."""
    numbers = ", ".join(f"{x:g}" for x in value)
    return InputError(f"load of {name}: {what} is ({numbers}) {unit} at {t:g} s; allowed are finite numbers.")


def rigid_load(name: str, load: Callable[[float], tuple[Vector, Vector]]) -> Callable[[float], tuple[np.ndarray, np.ndarray]]:
    """Check a force and a torque, whenever they are asked for."""
    function_of_time(f"load of {name}", "load", load, "give one that returns (force, torque), (3,) each, N and N m.")
    return partial(_rigid_load_at, name, load)


def _rigid_load_at(name: str, load: Callable[[float], tuple[Vector, Vector]], t: float) -> tuple[np.ndarray, np.ndarray]:
    """Ask for a force and a torque, and check them."""
    wrench = np.asarray(load(t), dtype=np.float64)
    if wrench.shape != (2, 3):
        raise InputError(
            f"load of {name} gave shape {wrench.shape} at {t:g} s; allowed is (force, torque), (3,) each, N and N m."
        )
    for what, part, unit in zip(("force", "torque"), wrench, ("N", "N m"), strict=True) if not is_finite(wrench) else ():
        if not np.isfinite(part).all():
            raise _no_load(name, what, part, unit, t)
    return wrench[0], wrench[1]


def _function_of_points(what: str, name: str, value: object) -> None:
    """Refuse what is no function."""
    if not callable(value):
        raise InputError(f"{what} of {name} is {type(value).__name__}; give a function of the points (n, 3) m of the mesh.")


def node_masses(name: str, added_mass: Callable[[np.ndarray], np.ndarray], points: np.ndarray) -> np.ndarray:
    """Check the mass that the nodes carry, (n,) kg."""
    _function_of_points("added_mass", name, added_mass)
    mass = np.asarray(added_mass(points), dtype=np.float64)
    if mass.shape != (len(points),):
        raise InputError(f"added_mass of {name} gave shape {mass.shape}; allowed are ({len(points)},) numbers of kg.")
    if not (mass >= 0.0).all() or not np.isfinite(mass).all():
        node = int(np.flatnonzero(~((mass >= 0.0) & np.isfinite(mass)))[0])
        raise InputError(f"added_mass of {name} gave {mass[node]:g} kg at node {node}; allowed are numbers >= 0, and finite.")
    return mass


def node_places(name: str, start_points: Callable[[np.ndarray], np.ndarray], points: np.ndarray, tets: np.ndarray) -> np.ndarray:
    """Check where the nodes start, (n, 3) m: no tetrahedron (m, 4) may be inverted there."""
    _function_of_points("start_points", name, start_points)
    places = np.array(start_points(points.copy()), dtype=np.float64)
    if places.shape != points.shape or not np.isfinite(places).all():
        raise InputError(f"start_points of {name} gave shape {places.shape}; allowed are {points.shape} finite numbers of m.")
    corners = places[tets]
    inverted = int((np.linalg.det(corners[:, 1:] - corners[:, :1]) <= 0.0).sum())
    if inverted:
        raise InputError(f"start_points of {name} turns {inverted} of {len(tets)} tetrahedra inside out; deform it less.")
    return places
